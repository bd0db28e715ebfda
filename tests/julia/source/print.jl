# Prints programs as the tests read them: each function with the code behind it, and checks with the values that Julia computes.
#
#     julia print.jl first.jl FOLDER
#
# The file of programs defines a module `Programs` and `CASES`: names of functions, each with tuples of arguments. Written for Julia 1.5, which Debian 11
# has as a package; later versions name parts of the compiler otherwise. Their spelling is used where 1.5 has its own: types in place of constants, no
# undefined edges of φ.
#
# A program is its function, all that this invokes, and of calls that are decided at run time the instances that ran. Functions that only cold blocks
# call are printed if they are short; longer ones throw an exception of the same type.

using InteractiveUtils
include(ARGS[1])
const FOLDER = ARGS[2]
const MOST_LINES = 6000
# The rows of the longest body that is printed though only cold blocks call it.
const COLD_LINES = parse(Int, get(ENV, "COLD_LINES", "60"))

# ----- values as literals -----

literal(x) = repr(x)
literal(x::Union{Int8,Int16,Int32,Int128}) = "$(typeof(x))($x)"
literal(x::Float16) = isfinite(x) ? "Float16($(Float64(x)))" : isnan(x) ? "NaN16" : x > 0 ? "Inf16" : "-Inf16"
literal(x::Tuple) = length(x) == 1 ? "($(literal(x[1])),)" : "(" * join(map(literal, x), ", ") * ")"
literal(x::Enum) = "reinterpret($(spelled(typeof(x))), $(literal(Integer(x))))"
literal(x::Base.RefValue) = "$(spelled(typeof(x)))($(literal(x[])))"
literal(x::Pair) = literal(x[1]) * " => " * literal(x[2])
literal(x::UnitRange) = "$(literal(first(x))):$(literal(last(x)))"
literal(x::Rational) = "$(literal(numerator(x)))//$(literal(denominator(x)))"
function literal(x::NamedTuple)
    isempty(x) && return "NamedTuple()"
    "(" * join(["$k = $(literal(v))" for (k, v) in pairs(x)], ", ") * (length(x) == 1 ? ",)" : ")")
end
function literal(x::Array{T,1}) where {T}
    T === Int64 && !isempty(x) ? repr(x) : string(T, "[", join(map(literal, x), ", "), "]")
end

spelled(t) = sprint(show, t)

# ----- typed code -----

widened(t) = t isa Core.Compiler.MaybeUndef ? widened(t.typ) : Core.Compiler.widenconst(t)

function typed(instance)
    world = ccall(:jl_get_world_counter, UInt, ())
    params = Core.Compiler.Params(world)
    code, result = Core.Compiler.typeinf_code(instance.def, instance.specTypes, instance.sparam_vals, true, params)
    code === nothing && return nothing
    Base.remove_linenums!(code)
    if code.ssavaluetypes isa Vector
        map!(widened, code.ssavaluetypes, code.ssavaluetypes)
    end
    for (i, row) in enumerate(code.code)
        if row isa Core.PiNode && !(row.typ isa Type)
            code.code[i] = Core.PiNode(row.val, widened(row.typ))
        end
    end
    code, result
end

# Whether each row belongs to a block that ends with `unreachable`.
function cold_rows(code)
    starts = Set{Int}()
    for (i, row) in enumerate(code.code)
        row isa Core.GotoNode && push!(starts, row.label, i + 1)
        row isa Expr || continue
        row.head === :gotoifnot && push!(starts, row.args[2], i + 1)
        row.head === :enter && push!(starts, row.args[1], i + 1)
        row.head in (:return, :unreachable) && push!(starts, i + 1)
    end
    cold = falses(length(code.code))
    is_cold = false
    for i in length(cold):-1:1
        if i == length(cold) || i + 1 in starts
            is_cold = code.code[i] isa Expr && code.code[i].head === :unreachable
        end
        cold[i] = is_cold
    end
    cold
end

# Types of constant rows are written where they are used; φ has no undefined edges.
function later_spelling(text)
    lines = split(text, '\n')
    types = Dict{String,String}()
    for line in lines
        found = match(r"(%[0-9]+) *= ([A-Za-z0-9_.]+|[A-Za-z_.]+\{.*\})::Type\{", line)
        found === nothing || (types[found.captures[1]] = found.captures[2])
    end
    new(found) = haskey(types, found[6:end]) ? "%new(" * types[found[6:end]] : found
    text = join([replace(line, r"%new\((%[0-9]+)" => new) for line in lines], '\n')
    text = replace(text, r"#[0-9]+ => #undef, " => "")
    replace(text, r", #[0-9]+ => #undef" => "")
end

# The instance for any number of last arguments: the text of a signature cannot say how many there are.
function for_any_number(instance)
    params = collect(Base.unwrap_unionall(instance.specTypes).parameters)
    fixed = length(Base.method_argnames(instance.def)) - 1
    (!instance.def.isva || length(params) <= fixed || !isempty(instance.sparam_vals)) && return instance
    element(t) = (t = Base.unwrap_unionall(t); t isa DataType && t.name === Vararg.body.body.name ? t.parameters[1] : t)
    declared = element(last(Base.unwrap_unionall(instance.def.sig).parameters))
    rest = map(element, params[fixed+1:end])
    any(t -> t isa TypeVar, [rest; declared]) && return instance
    only = all(t -> t === rest[1], rest) ? rest[1] : declared
    Core.Compiler.specialize_method(instance.def, Tuple{params[1:fixed]...,Vararg{only}}, instance.sparam_vals)
end

# ----- signatures -----

quoted(name) = Base.isidentifier(name) || Base.isoperator(name) ? string(name) : "var\"$name\""

function signature(instance, result)
    params = collect(Base.unwrap_unionall(instance.specTypes).parameters)
    method, names = instance.def, Base.method_argnames(instance.def)
    name(i) = i > length(names) || startswith(string(names[i]), "#") ? "" : string(names[i])
    args, last = String[], length(names)
    for i in 2:length(params)
        if method.isva && i >= last
            rest = params[i]
            if rest isa UnionAll || rest isa DataType && rest.name === Vararg.body.body.name
                element = Base.unwrap_unionall(rest).parameters[1]
                element isa TypeVar && (element = element.ub)
                push!(args, "$(name(last))::$(spelled(element))...")
            else
                types = params[i:end]
                element = all(t -> t == types[1], types) ? spelled(types[1]) : "Any"
                push!(args, "$(name(last))::$element...")
            end
            break
        end
        push!(args, "$(name(i))::$(spelled(params[i]))")
    end
    method.isva && length(params) < last && push!(args, "$(name(last))::Any...")
    callee = params[1]
    is_type = callee isa DataType && callee <: Type && callee.name === Type.body.name
    function_name = callee isa DataType && isdefined(callee, :instance) ? callee.name.mt.name : nothing
    is_bound = function_name !== nothing && isdefined(callee.name.module, function_name)
    head = is_type ? "(::$(spelled(callee)))" :
        is_bound && typeof(getfield(callee.name.module, function_name)) === callee ? quoted(function_name) :
        "($(isempty(name(1)) ? "self" : name(1))::$(spelled(callee)))"
    vars, sig = TypeVar[], method.sig
    while sig isa UnionAll
        push!(vars, sig.var)
        sig = sig.body
    end
    known = ["$(v.name) = $(p isa Type ? spelled(p) : literal(p))" for (v, p) in zip(vars, instance.sparam_vals) if !(p isa TypeVar)]
    "# signature: $head($(join(args, ", ")))::$(spelled(result))" *
        (isempty(known) || length(known) != length(vars) ? "" : " where {$(join(known, ", "))}")
end

# ----- types and globals that the code names -----

# Types that the reader knows.
const KNOWN = Set([
    :AbstractDict, :AbstractSet, :AbstractString, :ArgumentError, :BitArray, :BoundsError, :CartesianIndex, :CartesianIndices, :Colon,
    :Complex, :Dict, :DimensionMismatch, :DivideError, :DomainError, :EOFError, :ErrorException, :Generator, :HasShape, :IndexLinear,
    :InexactError, :IteratorSize, :KeyError, :LinearIndices, :MethodError, :Missing, :Nothing, :OneTo, :OverflowError, :Pair, :Rational,
    :Ref, :RefValue, :ReinterpretArray, :Set, :Some, :StepRange, :StringIndexError, :SubArray, :SubString, :TypeError, :UndefInitializer,
    :UnitRange, :Val,
])

field_type(t) = t isa TypeVar ? string(t.name) : replace(spelled(t), r"\b([A-Z][A-Za-z0-9]*)<:[A-Za-z.]+(\{[^{}]*\})?(?=[,}])" => s"\1")

function declaration(T)
    name = T.name.name
    head = Base.isidentifier(name) ? string(name) : "var\"$name\""
    if !isempty(T.parameters)
        bounds = [v.ub === Any ? string(v.name) : "$(v.name)<:$(spelled(v.ub))" for v in T.parameters]
        head *= "{" * join(bounds, ", ") * "}"
    end
    T.super === Any || (head *= " <: $(field_type(T.super))")
    T.abstract && return "abstract type $head end"
    T.size > 0 && isempty(fieldnames(T)) && return "primitive type $head $(8 * T.size) end"
    fields = join(["$n::$(field_type(t)); " for (n, t) in zip(fieldnames(T), T.types)])
    "$(T.mutable ? "mutable " : "")struct $head; $(fields)end"
end

struct Named
    seen::Set{Any}
    types::Vector{Any}
    globals::Dict{Symbol,Any}
end
Named() = Named(Set{Any}(), Any[], Dict{Symbol,Any}())

function note!(named::Named, T::Type)
    if T isa Union
        note!(named, T.a)
        return note!(named, T.b)
    end
    T = Base.unwrap_unionall(T)
    (!(T isa DataType) || T in named.seen) && return
    push!(named.seen, T)
    foreach(p -> p isa Type && note!(named, p), T.parameters)
    name = T.name
    (name.module === Core || name.name in KNOWN && name.module !== Programs || T <: Tuple || T <: NamedTuple || T <: Type) && return
    is_function = isdefined(T, :instance) && startswith(string(name.name), "#") && isdefined(name.module, name.mt.name)
    is_function && typeof(getfield(name.module, name.mt.name)) === T && return
    declared = Base.unwrap_unionall(name.wrapper)
    note!(named, declared.super)
    own(t) = Base.unwrap_unionall(t) isa DataType && Base.unwrap_unionall(t).name === name
    declared.abstract || foreach(t -> t isa Type && !own(t) && note!(named, t), declared.types)
    any(known -> known.name === name, named.types) || push!(named.types, declared)
    declared.abstract || foreach(t -> t isa Type && note!(named, t), T.types)
end

note!(named::Named, T::TypeVar) = note!(named, T.ub)

function note_row!(named::Named, x)
    if x isa Type
        note!(named, x)
    elseif x isa GlobalRef
        isdefined(x.mod, x.name) || return
        value = getfield(x.mod, x.name)
        value isa Type && return note!(named, value)
        (value isa Union{Function,Module,Core.IntrinsicFunction,Nothing} || x.mod === Core || repr(value) == string(x.name)) && return
        named.globals[x.name] = (value, isconst(x.mod, x.name))
        note!(named, typeof(value))
    elseif x isa Expr
        foreach(arg -> note_row!(named, arg), x.head === :invoke ? x.args[2:end] : x.args)
    elseif x isa QuoteNode
        note!(named, typeof(x.value))
    elseif x isa Core.PhiNode
        foreach(i -> isassigned(x.values, i) && note_row!(named, x.values[i]), 1:length(x.values))
    elseif x isa Core.PiNode
        note_row!(named, x.val)
        note_row!(named, x.typ)
    elseif !(x isa Union{Core.MethodInstance,Core.SSAValue,Core.SlotNumber,Number,String,Symbol})
        note!(named, typeof(x))
    end
end

# ----- what calls reach that are decided at run time -----

function instances(method)
    all = method.specializations
    found = [all[i] for i in 1:length(all) if isassigned(all, i)]
    Any[i for i in found if i isa Core.MethodInstance && Base.isdispatchtuple(i.specTypes)]
end

function may_reach(instance, call, code)
    params = Base.unwrap_unionall(instance.specTypes).parameters
    length(params) == length(call.args) || return false
    for k in 2:length(params)
        arg = call.args[k]
        type = arg isa Core.SSAValue ? code.ssavaluetypes[arg.id] : arg isa QuoteNode ? typeof(arg.value) :
            arg isa Union{GlobalRef,Core.SlotNumber,Expr} ? Any : typeof(arg)
        type isa Type && typeintersect(type, params[k]) === Union{} && return false
    end
    true
end

function reached(call, code)
    callee = call.args[1]
    callee isa GlobalRef && (callee = isdefined(callee.mod, callee.name) ? getfield(callee.mod, callee.name) : nothing)
    callee isa QuoteNode && (callee = callee.value)
    callee isa Union{Core.Builtin,Core.IntrinsicFunction} && return Any[]
    callee isa Union{Function,Type} || return Any[]
    methods_ = collect(methods(callee))
    found = Any[]
    for method in methods_
        some = filter(i -> may_reach(i, call, code), instances(method))
        length(some) <= 6 && append!(found, some)
    end
    length(found) <= 12 ? found : Any[]
end

function closures(code)
    found = Any[]
    for row in code.code
        row isa Expr && row.head === :new || continue
        T = row.args[1]
        T isa GlobalRef && (T = getfield(T.mod, T.name))
        T isa DataType && T <: Function && parentmodule(T) === Programs || continue
        of_type(i) = Base.unwrap_unionall(i.specTypes).parameters[1] === T
        foreach(m -> append!(found, filter(of_type, instances(m))), Base.MethodList(T.name.mt).ms)
    end
    found
end

# ----- stubs -----

# The type of the exception that an instance makes.
function thrown(instance)
    found = typed(instance)
    found === nothing && return ErrorException
    for row in found[1].code
        row isa Expr || continue
        T = row.head === :new ? row.args[1] : nothing
        if row.head === :invoke
            callee = row.args[1].specTypes.parameters[1]
            callee isa DataType && callee <: Type && (T = callee.parameters[1])
        end
        T isa GlobalRef && (T = getfield(T.mod, T.name))
        T isa Type && T <: Exception && return T
    end
    ErrorException
end

without_names(signature) = replace(signature, r"([(, ])[A-Za-z_0-9!]+::" => s"\1::")

function stub(instance)
    T = thrown(instance)
    T in (ErrorException, ArgumentError, OverflowError, DimensionMismatch) || return nothing
    head = without_names(signature(instance, Union{}))
    head, "$head\nCodeInfo(\n1 ─ %1 = %new($T, \"stub\")::$T\n│        Core.throw(%1)::Union{}\n└──      unreachable\n) => Union{}\n"
end

# ----- a program -----

function print_program(f, name, calls)
    for args in calls
        try
            Base.invokelatest(f, deepcopy(args)...)
        catch
        end
    end
    sig = Tuple{typeof(f),map(typeof, calls[1])...}
    found = Base._methods_by_ftype(sig, -1, typemax(UInt))[1]
    root = Core.Compiler.specialize_method(found[3], found[1], found[2])
    named, parts, lines = Named(), String[], 0
    queue, known = Any[(root, 0)], Set{Any}([(root.def, root.specTypes)])
    function add(instance, depth)
        instance = for_any_number(instance)
        (instance.def, instance.specTypes) in known && return
        push!(known, (instance.def, instance.specTypes))
        push!(queue, (instance, depth))
    end
    while !isempty(queue)
        # `depth` counts the cold calls on the way.
        instance, depth = popfirst!(queue)
        made = typed(instance)
        if made === nothing || depth > 1 || lines > MOST_LINES || depth == 1 && length(made[1].code) > COLD_LINES
            short = stub(instance)
            short === nothing && continue
            head = first(split(short[1], ")::"))
            any(part -> startswith(without_names(lstrip(part)), head), parts) || push!(parts, "\n" * short[2])
            continue
        end
        code, result = made
        lines += length(code.code)
        foreach(row -> note_row!(named, row), code.code)
        code.ssavaluetypes isa Vector && foreach(T -> note!(named, T), code.ssavaluetypes)
        note!(named, result)
        foreach(p -> p isa Type && note!(named, p), Base.unwrap_unionall(instance.specTypes).parameters[2:end])
        depth == 0 && foreach(c -> add(c, 0), closures(code))
        cold = cold_rows(code)
        for (i, row) in enumerate(code.code)
            row isa Expr && row.head === :(=) && (row = row.args[2])
            row isa Expr || continue
            row.head === :call && depth == 0 && foreach(c -> add(c, 0), reached(row, code))
            row.head === :invoke && depth <= 1 && add(row.args[1], cold[i] ? depth + 1 : depth)
        end
        head = instance === root ? "" : "\n$(signature(instance, result))\n"
        push!(parts, head * later_spelling(sprint(show, code)) * " => $(spelled(result))\n")
    end
    open(joinpath(FOLDER, name * "_15.txt"), "w") do io
        println(io, signature(root, typed(root)[2]))
        isempty(named.types) && println(io, "# types: none")
        foreach(T -> println(io, "# types: ", declaration(T)), named.types)
        for (global_name, (value, is_const)) in sort(collect(named.globals), by = first)
            println(io, "# globals: $(is_const ? "const" : "global") $global_name::$(spelled(typeof(value))) = $(literal(value))")
        end
        println(io, "# style: Julia $VERSION, code_typed(optimize=true), longer bodies behind cold calls replaced by stubs")
        for args in calls
            call = "$(nameof(f))($(join(map(literal, args), ", ")))"
            try
                println(io, "# check: $call == $(literal(f(deepcopy(args)...)))")
            catch error
                println(io, "# throws: $call $(nameof(typeof(error)))")
            end
        end
        foreach(part -> print(io, part), parts)
    end
end

for (name, calls) in CASES
    try
        print_program(getfield(Programs, Symbol(name)), name, calls)
    catch error
        println("$name is not printed: ", first(sprint(showerror, error), 200))
    end
end
