//! Output of a real Julia is read and verified: the shared programs, and spellings of single constructs.
//!
//! The programs are in `shared/julia` next to the project; without them their test is vacuous. Refused
//! programs are listed with their reason; the list may only shrink.

use std::fs;
use std::path::PathBuf;

use brolga_interp::{Interp, Options, SimMemory, Verdict};
use brolga_ir::Context;
use brolga_ir::diag::{SourceFile, Style};
use brolga_ir::text::{read, show_unit};
use brolga_ir::verify::verify_module;

/// Programs that are read with errors or break a rule, and why.
const REFUSED: &[(&str, &str)] = &[];

fn programs() -> Vec<PathBuf> {
    let shared = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/julia");
    let below =
        |folder: PathBuf| fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut all: Vec<PathBuf> = below(shared.clone())
        .chain(below(shared.join("min")))
        .filter(|path| path.extension().is_some_and(|ext| ext == "txt" || ext == "jlir"))
        .collect();
    all.sort();
    all
}

/// The fault of a text, if any.
fn refusal(name: &str, text: &str) -> Option<String> {
    let source = SourceFile::new(name, text).expect("a text of usual size");
    let (unit, found) = read(&source, &Context::new());
    if found.has_errors() {
        return Some(found.render(&source, &Style::PLAIN));
    }
    verify_module(&unit.module).err().map(|broken| format!("{broken:?}").chars().take(2000).collect())
}

#[test]
fn shared_programs_are_read() {
    let mut wrong = Vec::new();
    for path in programs() {
        let name = path.file_name().expect("a file").to_string_lossy().into_owned();
        let text = fs::read_to_string(&path).expect("a text");
        let listed = REFUSED.iter().any(|(known, _)| *known == name);
        match refusal(&name, &text) {
            Some(why) if !listed => wrong.push(format!("{name}: {why}")),
            None if listed => wrong.push(format!("{name} is read: leave it out of the list")),
            _ => {}
        }
    }
    assert!(wrong.is_empty(), "{} programs\n{}", wrong.len(), wrong.join("\n"));
}

/// Runs the checks of a text in the interpreter, as written and as printed.
fn passes(text: &str) {
    let once = |text: &str| {
        let source = SourceFile::new("t", text).expect("a text of usual size");
        let (unit, found) = read(&source, &Context::new());
        assert!(!found.has_errors(), "{text}\n{}", found.render(&source, &Style::PLAIN));
        if let Err(broken) = verify_module(&unit.module) {
            panic!("{text}\n{broken:?}");
        }
        assert!(!unit.checks.is_empty(), "{text}");
        for check in &unit.checks {
            let mut interp = Interp::new(&unit.module, Options::default(), Box::new(SimMemory::default()));
            if let Verdict::Failed { expected, found } = interp.run_check(check) {
                let line = &text[check.span.start as usize..check.span.end as usize];
                panic!("{line}\nexpected {expected}\nfound    {found}\n{text}");
            }
        }
        show_unit(&unit).to_string()
    };
    let printed = once(text);
    assert_eq!(once(&printed), printed);
}

/// A function of one row, whose result is returned.
fn row(signature: &str, checks: &[&str], row: &str, ty: &str) -> String {
    let checks: String = checks.iter().map(|check| format!("# {check}\n")).collect();
    format!(
        "# signature: {signature}\n{checks}CodeInfo(\n1 ─ %1 = {row}::{ty}\n└──      return %1\n) => {ty}\n"
    )
}

#[test]
fn numbers_of_two_parts() {
    for (text, ty, value) in [
        ("1.0 + 0.0im", "Complex{Float64}", "Complex{Float64}(1.0, 0.0)"),
        ("1 - 2im", "Complex{Int64}", "Complex{Int64}(1, -2)"),
        ("0.0 - 1.5im", "ComplexF64", "Complex{Float64}(0.0, -1.5)"),
        ("1.0f0 + 2.0f0im", "ComplexF32", "Complex{Float32}(1.0f0, 2.0f0)"),
        ("1.0 - Inf*im", "ComplexF64", "Complex{Float64}(1.0, -Inf)"),
        ("im", "Complex{Bool}", "Complex{Bool}(false, true)"),
        ("1//2", "Rational{Int64}", "Rational{Int64}(1, 2)"),
        ("-1//2", "Rational{Int64}", "Rational{Int64}(-1, 2)"),
        ("1:3", "UnitRange{Int64}", "UnitRange{Int64}(1, 3)"),
        ("1:2:5", "StepRange{Int64, Int64}", "StepRange{Int64, Int64}(1, 2, 5)"),
    ] {
        let check = format!("check: f() == {value}");
        // Julia prints infix expressions in parentheses.
        passes(&row(&format!("f()::{ty}"), &[&check], &format!("({text})"), ty));
        passes(&format!("# signature: f()::{ty}\n# {check}\nCodeInfo(\n1 ─     return {text}\n) => {ty}\n"));
    }
}

#[test]
fn values_as_type_parameters() {
    for value in ["true", "false", "0x03", "'x'", ":name", "-7", "3", "Int32(5)"] {
        let ty = format!("V{{Int64, {value}}}");
        let made = row(&format!("f(x::Int64)::{ty}"), &[], &format!("%new({ty}, x)"), &ty);
        let text = format!(
            "# types: struct V{{T, B}}; x::T; end\n{made}# signature: g(x::Int64)::Int64\n# check: g(4) == 4\nCodeInfo(\n\
             1 ─ %1 = invoke Main.f(x::Int64)::{ty}\n│   %2 = Base.getfield(%1, :x)::Int64\n└──      return %2\n) => Int64\n"
        );
        passes(&text);
    }
    let text = "# signature: f(x::Val{B})::Any where B\n# check: f(Val{true}()) == true\n# check: f(Val{0x03}()) == 0x03\n\
                CodeInfo(\n1 ─ %1 = $(Expr(:static_parameter, 1))::Any\n└──      return %1\n) => Any\n";
    passes(text);
}

#[test]
fn lengths_of_tuples_are_parameters() {
    passes(
        "# types: struct Index{N}; I::NTuple{N, Int64}; end\n# signature: f(x::Int64)::Int64\n# check: f(5) == 7\nCodeInfo(\n\
         1 ─ %1 = Core.tuple(x, 7)::Tuple{Int64, Int64}\n│   %2 = %new(Index{2}, %1)::Index{2}\n\
         │   %3 = Base.getfield(%2, :I)::Tuple{Int64, Int64}\n│   %4 = Base.getfield(%3, 2, true)::Int64\n└──      return %4\n) => Int64\n",
    );
    passes(
        "# signature: f(x::NTuple{N, Int64})::Any where N\n# check: f((1, 2, 3)) == 3\n# check: f(()) == 0\nCodeInfo(\n\
         1 ─ %1 = $(Expr(:static_parameter, 1))::Any\n└──      return %1\n) => Any\n",
    );
}

#[test]
fn constant_objects() {
    passes(&row(
        "f()::Bool",
        &["check: f() == false"],
        "Base.isdefined($(QuoteNode(NamedTuple())), :init)",
        "Bool",
    ));
    passes(
        "# signature: f()::Int64\n# throws: f() ErrorException\nCodeInfo(\n\
         1 ─     Core.throw(ErrorException(\"fatal error in type inference (type bound)\"))::Union{}\n└──     unreachable\n) => Int64\n",
    );
    // One object for all calls.
    passes(&row(
        "f(x::Int64)::Int64",
        &["check: f(2) == 20"],
        "Base.arrayref(true, $(QuoteNode([10, 20, 30])), x)",
        "Int64",
    ));
    passes(&format!(
        "# globals: const tab::Vector{{Int64}} = [1, 2]\n{}",
        row("f(x::Int64)::Int64", &["check: f(2) == 2"], "Base.arrayref(true, Main.tab, x)", "Int64")
    ));
    passes(
        "# types: struct By{T}; by::T; end\n# signature: g(b::By{typeof(abs)})::Int64\nCodeInfo(\n1 ─     return 1\n) => Int64\n\
         # signature: f()::Int64\n# check: f() == 1\nCodeInfo(\n\
         1 ─ %1 = invoke Main.g($(QuoteNode(Main.By{typeof(abs)}(abs)))::By{typeof(abs)})::Int64\n└──     return %1\n) => Int64\n",
    );
}

#[test]
fn exceptions_by_their_constructors() {
    for (args, ty) in [
        (":trunc::Symbol, Int64::Any, 2.5::Any", "InexactError"),
        ("\"a\"::String", "ArgumentError"),
        ("-1.0::Any", "DomainError"),
        ("-1.0::Any, \"below\"::String", "DomainError"),
        ("", "AssertionError"),
        ("\"a\"::String, 3::Int64", "StringIndexError"),
        ("", "EOFError"),
        (":f::Symbol, Int64::Any, 2.5::Any", "TypeError"),
        (":x::Symbol", "UndefVarError"),
    ] {
        passes(&format!(
            "# signature: f()::Int64\n# throws: f() {ty}\nCodeInfo(\n1 ─ %1 = invoke Base.{ty}({args})::{ty}\n│        Base.throw(%1)::Union{{}}\n\
             └──     unreachable\n) => Int64\n"
        ));
    }
    passes(
        "# signature: f()::Int64\n# throws: f() InexactError\nCodeInfo(\n1 ─ %1 = %new(InexactError, :trunc, Int64, 2.5)::InexactError\n\
         │        Base.throw(%1)::Union{}\n└──     unreachable\n) => Int64\n",
    );
}

#[test]
fn conditions_that_may_be_no_bool() {
    for ty in ["Any", "Union{Bool, Int64}", "Union{Missing, Bool}"] {
        let other = if ty.contains("Missing") { "missing" } else { "3" };
        passes(&format!(
            "# signature: f(x::{ty})::Int64\n# check: f(true) == 1\n# check: f(false) == 2\n# throws: f({other}) TypeError\nCodeInfo(\n\
             1 ─      goto #3 if not x\n2 ─      return 1\n3 ─      return 2\n) => Int64\n"
        ));
    }
    // A condition that is never a `Bool` remains an error.
    let text = "# signature: f(x::Int64)::Int64\nCodeInfo(\n1 ─      goto #3 if not x\n2 ─      return 1\n3 ─      return 2\n) => Int64\n";
    assert!(refusal("t", text).is_some());
}

#[test]
fn addresses_in_integers() {
    for (call, value) in [
        ("Base.add_ptr(x, 0x0000000000000001)::UInt64", "0x0000000000000008"),
        ("Base.sub_ptr(x, 0x0000000000000001)::UInt64", "0x0000000000000006"),
    ] {
        passes(&format!(
            "# signature: f(x::UInt64)::UInt64\n# check: f(0x0000000000000007) == {value}\nCodeInfo(\n1 ─ %1 = {call}\n└──     return %1\n) => UInt64\n"
        ));
    }
    passes(
        "# signature: f(p::Ptr{UInt8}, x::UInt64)::Bool\n# check: f(Ptr{UInt8}(0x10), 0x0000000000000010) == true\nCodeInfo(\n\
         1 ─ %1 = Base.eq_int(p, x)::Bool\n└──     return %1\n) => Bool\n",
    );
}

#[test]
fn constructs_without_meaning_are_refused_where_they_are_reached() {
    for row in [
        "$(Expr(:copyast, :($(QuoteNode(:(x >= 0))))))::Expr",
        "(Core.Intrinsics.cglobal)(:jl_uv_stdout, Ptr{Nothing})::Ptr{Ptr{Nothing}}",
        "$(Expr(:isdefined, :(y)))::Bool",
        "$(Expr(:new_opaque_closure, Tuple{Int64}, Int64, Int64, true, :(x)))::Any",
        "Base.llvmcall((\"define\", \"entry\"), Int64, Tuple{Int64}, x)::Int64",
        "$(Expr(:foreigncall, \"llvm.x86.rdtsc\", Int64, svec(), 0, :(:llvmcall)))::Int64",
    ] {
        passes(&format!(
            "# signature: f(x::Int64)::Int64\n# check: f(1) == 1\n# throws: f(-1) CompileError\nCodeInfo(\n\
             1 ─ %1 = Base.slt_int(x, 0)::Bool\n└──      goto #3 if not %1\n2 ─ %3 = {row}\n└──      unreachable\n3 ─      return x\n) => Int64\n"
        ));
    }
}

#[test]
fn llvms_intrinsics_by_name() {
    for (ty, call, value) in [
        (
            "Float64",
            "\"llvm.sqrt.f64\", Float64, svec(Float64), 0, :(:llvmcall), :(x), :(x)",
            "f(6.25) == 2.5",
        ),
        (
            "Float64",
            "\"llvm.pow.f64\", Float64, svec(Float64, Float64), 0, :(:llvmcall), :(x), 2.0, 2.0, :(x)",
            "f(3.0) == 9.0",
        ),
        (
            "Float32",
            "\"llvm.pow.f32\", Float32, svec(Float32, Float32), 0, :(:llvmcall), :(x), 2.0f0, 2.0f0, :(x)",
            "f(3.0f0) == 9.0f0",
        ),
        (
            "Float64",
            "\"llvm.fma.f64\", Float64, svec(Float64, Float64, Float64), 0, :(:llvmcall), :(x), :(x), 1.0, 1.0, :(x), :(x)",
            "f(3.0) == 10.0",
        ),
        (
            "UInt64",
            "\"llvm.ctlz.i64\", UInt64, svec(UInt64, Bool), 0, :(:llvmcall), :(x), false, false, :(x)",
            "f(0x0000000000000001) == 0x000000000000003f",
        ),
    ] {
        passes(&format!(
            "# signature: f(x::{ty})::{ty}\n# check: {value}\nCodeInfo(\n1 ─ %1 = $(Expr(:foreigncall, {call}))::{ty}\n└──      return %1\n) => {ty}\n"
        ));
    }
}

#[test]
fn floats_in_order_with_nan_behind_everything() {
    passes(
        "# signature: f(x::Float64, y::Float64)::Bool\n# check: f(1.0, 2.0) == true\n# check: f(2.0, 1.0) == false\n# check: f(-2.0, -1.0) == true\n\
         # check: f(-1.0, -2.0) == false\n# check: f(-0.0, 0.0) == true\n# check: f(0.0, -0.0) == false\n# check: f(Inf, NaN) == true\n\
         # check: f(NaN, Inf) == false\n# check: f(NaN, NaN) == false\n# check: f(-1.0, NaN) == true\nCodeInfo(\n\
         1 ─ %1 = Base.fpislt(x, y)::Bool\n└──      return %1\n) => Bool\n",
    );
    // A function of the program with this name is that function.
    passes(
        "# signature: f(x::Int64)::Int64\n# check: f(1) == 7\nCodeInfo(\n1 ─ %1 = invoke Main.fpislt(x::Int64)::Int64\n└──      return %1\n) => Int64\n\n\
         # signature: fpislt(x::Int64)::Int64\nCodeInfo(\n1 ─      return 7\n) => Int64\n",
    );
}

#[test]
fn static_parameters_as_operands() {
    // The annotation determines a type; without one, and without a `where`, the variable is unknown.
    passes(
        "# signature: f(x::Int64)::Bool\n# check: f(1) == true\nCodeInfo(\n\
         1 ─ %1 = Base.isa(x, $(Expr(:static_parameter, 1))::Type{Int64})::Bool\n└──      return %1\n) => Bool\n",
    );
    passes(
        "# signature: f(x::Int64)::Bool\n# throws: f(1) UndefVarError\nCodeInfo(\n\
         1 ─ %1 = Base.isa(x, $(Expr(:static_parameter, 1)))::Bool\n└──      return %1\n) => Bool\n",
    );
    passes(
        "# signature: f(x::Int64)::Bool where {T = Float64}\n# check: f(1) == false\nCodeInfo(\n\
         1 ─ %1 = Base.isa(x, $(Expr(:static_parameter, 1))::Type{Float64})::Bool\n└──      return %1\n) => Bool\n",
    );
}

#[test]
fn rows_behind_the_end_of_a_block() {
    let text = |row: &str| {
        format!(
            "# signature: f(x::Int64)::Int64\n# check: f(1) == 1\nCodeInfo(\n1 ─ %1 = Base.slt_int(x, 0)::Bool\n└──      goto #3 if not %1\n\
             2 ─      $(Expr(:unreachable))::Union{{}}\n│        {row}\n└──      $(Expr(:unreachable))::Union{{}}\n3 ┄      return x\n) => Int64\n"
        )
    };
    passes(&text("φ ()::Union{}"));
    passes(&text("nothing::Nothing"));
    let found = refusal("t", &text("Base.add_int(x, 1)::Int64")).expect("refused");
    assert!(found.contains("a statement follows the one that ends the block"), "{found}");
}

#[test]
fn exceptions_thrown_again_by_julias_own_function() {
    passes(
        "# signature: f(x::Int64)::Int64\n# throws: f(1) ErrorException\nCodeInfo(\n1 ─      $(Expr(:enter, #3))\n\
         2 ─      Core.throw(ErrorException(\"a\"))::Union{}\n└──      $(Expr(:unreachable))::Union{}\n\
         3 ┄      $(Expr(:leave, 1))\n│        invoke Main.rethrow()::Union{}\n└──      $(Expr(:unreachable))::Union{}\n) => Int64\n\n\
         # signature: rethrow()::Union{}\nCodeInfo(\n1 ─     $(Expr(:foreigncall, :(:jl_rethrow), Union{}, svec(), 0, :(:ccall)))::Union{}\n\
         └──     $(Expr(:unreachable))::Union{}\n) => Union{}\n",
    );
}

#[test]
fn arrays_as_operands() {
    passes(
        "# signature: f(i::Int64)::UInt16\n# check: f(2) == 0x000b\nCodeInfo(\n\
         1 ─ %1 = Base.arrayref(true, UInt16[0x000a, 0x000b], i)::UInt16\n└──      return %1\n) => UInt16\n",
    );
}

#[test]
fn tuples_of_any_length_as_they_were_printed() {
    let text = |ty: &str| {
        format!(
            "# signature: f(x::Any)::Bool\n# check: f((1, 2)) == true\n# check: f(()) == true\n# check: f((\"a\",)) == false\nCodeInfo(\n\
             1 ─ %1 = Base.isa(x, {ty})::Bool\n└──      return %1\n) => Bool\n"
        )
    };
    passes(&text("Tuple{Vararg{Int64,N} where N}"));
    passes(&text("Tuple{Vararg{Int64}}"));
}

#[test]
fn functions_of_base_behind_a_nested_module() {
    // The module of the program sees Base's exports; its `typeof(iseven)` is Base's function.
    passes(
        "# signature: f(x::Int64)::Bool\n# check: f(2) == true\nCodeInfo(\n1 ─ %1 = Main.Programs.iseven::typeof(iseven)\n\
         │   %2 = (%1 === Base.iseven)::Bool\n└──      return %2\n) => Bool\n",
    );
    // A function defined by the program takes precedence.
    passes(
        "# signature: f(x::Int64)::Int64\n# check: f(2) == 9\nCodeInfo(\n1 ─ %1 = invoke Main.Programs.iseven(x::Int64)::Int64\n└──      return %1\n) => Int64\n\n\
         # signature: iseven(x::Int64)::Int64\nCodeInfo(\n1 ─      return 9\n) => Int64\n",
    );
}

#[test]
fn results_of_c_by_reference_are_objects() {
    let text = "# signature: f(x::Any)::String\nCodeInfo(\n\
                1 ─ %1 = $(Expr(:foreigncall, :(:jl_array_to_string), Ref{String}, svec(Any), 0, :(:ccall), :(x)))::String\n└──      return %1\n) => String\n";
    assert_eq!(refusal("t", text), None);
}

#[test]
fn other_spellings() {
    // Types: names of Base, aliases, variables inside variables.
    for ty in [
        "Dict{String, Int64}",
        "SubArray{Float64, 1, Vector{Float64}, Tuple{UnitRange{Int64}}, true}",
        "SubString{String}",
        "Base.Generator{Vector{Int64}, typeof(sin)}",
        "BitVector",
        "BitMatrix",
        "CartesianIndex{2}",
        "AbstractVector{Int64}",
        "AbstractVector",
        "AbstractMatrix{<:Real}",
        "StridedVector{Float64}",
        "ComplexF64",
        "IOBuffer",
        "Base.GenericIOBuffer{Memory{UInt8}}",
        "Base.Iterators.Filter{typeof(isodd), UnitRange{Int64}}",
        "Base.RefValue{Int64}",
        "Colon",
        "Core.Colon",
        "NamedTuple",
        "NTuple{N, Int64} where N",
        "Tuple{Vararg{Int64, N}} where N",
        "Dict{_A, _B} where _B where _A",
        "Dict{A, B} where B<:Integer where A<:AbstractString",
        "Type{Vector{T}} where T",
        "Clong",
        "Base.Order.ForwardOrdering",
    ] {
        let text = format!("# signature: f(x::{ty})::Int64\nCodeInfo(\n1 ─     return 1\n) => Int64\n");
        assert_eq!(refusal("t", &text), None, "{ty}");
    }
    let unknown = "# signature: f(x::Dictt{Int64, Int64})::Int64\nCodeInfo(\n1 ─     return 1\n) => Int64\n";
    assert_eq!(refusal("t", unknown), None, "a type that is not declared refuses the rows that use it");
    let source = SourceFile::new("t", unknown).expect("a text of usual size");
    let warning = read(&source, &Context::new()).1.render(&source, &Style::PLAIN);
    assert!(warning.contains("there is no type `Dictt`"), "{warning}");
    // Calls.
    passes(
        "# signature: g(a::String, b::Any...)::Int64\nCodeInfo(\n1 ─ %1 = Base.nfields(b)::Int64\n└──      return %1\n) => Int64\n\
         # signature: f(x::Int64)::Int64\n# check: f(1) == 2\nCodeInfo(\n1 ─ %1 = invoke Main.g(\"a\"::String, x::Vararg{Any}, \"c\")::Int64\n└──      return %1\n) => Int64\n",
    );
    passes(
        "# signature: g(f::Function, x::Int64)::Int64\nCodeInfo(\n1 ─     return x\n) => Int64\n\
         # signature: f(x::Int64)::Int64\n# check: f(1) == 1\nCodeInfo(\n1 ─ %1 = invoke Main.g(sprint::Function, x::Int64)::Int64\n└──      return %1\n) => Int64\n",
    );
    passes(&row("f()::Any", &["check: f() == (:)"], "Core.ifelse(true, Core.Colon(), (:))", "Any"));
    passes(
        "# types: mutable struct Count; @atomic n::Int64; end\n# signature: f(x::Int64)::Any\n# check: f(3) == 8\nCodeInfo(\n\
         1 ─ %1 = %new(Count, 5)::Count\n\
         │   %2 = $(Expr(:invoke_modify, MethodInstance for +(::Int64, ::Int64), Core.modifyfield!, :(%1), :(:n), :(Base.add_int), :(x), :(:monotonic)))::Pair{Int64, Int64}\n\
         │   %3 = Base.getfield(%2, 2)::Int64\n└──      return %3\n) => Any\n",
    );
    // Aliases as constants.
    passes(
        "# types: struct Gen{T}; x::T; end\n# globals: const Alias::Type{Gen{Int64}} = Gen{Int64}\n# signature: f(x::Int64)::Int64\n# check: f(1) == 1\n\
         CodeInfo(\n1 ─ %1 = Main.Alias::Type{Gen{Int64}}\n│   %2 = %new(Alias, x)::Gen{Int64}\n│   %3 = Base.getfield(%2, :x)::Int64\n└──      return %3\n) => Int64\n",
    );
}

/// A program may declare types with Julia's names: unqualified, the name means the program's type, and
/// Julia's is qualified by `Core`.
#[test]
fn types_with_names_of_julias_own() {
    let boxes = "# types: struct Box; w::Int64; h::Int64; end\n\
         # signature: area(b::Main.Programs.Box)::Int64\nCodeInfo(\n1 ─ %1 = Base.getfield(b, :w)::Int64\n│   %2 = Base.getfield(b, :h)::Int64\n\
         │   %3 = Base.mul_int(%1, %2)::Int64\n└──      return %3\n) => Int64\n\
         # signature: f(x::Int64)::Int64\n# check: f(3) == 10\nCodeInfo(\n1 ─ %1 = %new(Box, x, 2)::Box\n│   %2 = %new(Core.Box)::Core.Box\n\
         │   %3 = invoke Main.area(%1::Box)::Int64\n│        Core.setfield!(%2, :contents, %3)::Int64\n│   %5 = Core.getfield(%2, :contents)::Any\n\
         │   %6 = Core.typeassert(%5, Int64)::Int64\n│   %7 = (%2 isa Box)::Bool\n│   %8 = Core.ifelse(%7, 0, 4)::Int64\n│   %9 = Base.add_int(%6, %8)::Int64\n\
         └──      return %9\n) => Int64\n";
    passes(boxes);
    // Literals, exceptions and tokens have Julia's types.
    let pairs = "# types: struct Pair; a::Int64; end\n# types: struct KeyError; code::Int64; end\n# types: struct Token; at::Int64; end\n\
         # signature: f(x::Int64)::Any\n# check: f(3) == (Pair(3), :a => 1)\nCodeInfo(\n1 ─ %1 = %new(Pair, x)::Pair\n│   %2 = Core.tuple(%1, :a => 1)::Tuple{Pair, Core.Pair{Symbol, Int64}}\n\
         └──      return %2\n) => Any\n\
         # signature: g(x::Int64)::Int64\n# check: g(3) == 3\nCodeInfo(\n1 ─ %1 = %new(Token, x)::Token\n│   %2 = Base.getfield(%1, :at)::Int64\n└──      return %2\n) => Int64\n\
         # signature: h(x::Int64)::Int64\n# throws: h(1) Core.KeyError\nCodeInfo(\n1 ─ %1 = %new(Core.KeyError, x)::Core.KeyError\n│        Core.throw(%1)::Union{}\n└──      unreachable\n) => Int64\n";
    passes(pairs);
    // A declaration identical to Julia's is Julia's.
    let same = "# types: struct Pair{A, B}; first::A; second::B; end\n# types: abstract type AbstractDict{K, V} end\n\
         # signature: f(x::Int64)::Core.Pair{Symbol, Int64}\n# check: f(3) == (:a => 3)\nCodeInfo(\n1 ─ %1 = %new(Pair{Symbol, Int64}, :a, x)::Pair{Symbol, Int64}\n└──      return %1\n) => Pair{Symbol, Int64}\n";
    let source = SourceFile::new("t", same).unwrap();
    let (unit, found) = read(&source, &Context::new());
    assert!(!found.has_errors() && unit.types.iter().all(|decl| decl.is_builtin()));
    passes(same);
    // Some names are part of the syntax of types.
    for name in ["Int64", "Array{T, N}", "Vector{T}", "Union", "Tuple", "Type", "Function"] {
        let text = format!(
            "# types: struct {name}; x::Int32; end\n# signature: f()::Int64\nCodeInfo(\n1 ─     return 1\n) => Int64\n"
        );
        assert!(refusal("t", &text).is_some_and(|why| why.contains("cannot be declared")), "{name}");
    }
}

#[test]
fn a_call_that_several_methods_fit_says_so() {
    let text = "function f(x::Int64, y::Any)::Int64\n1 ─     return 1\nend\nfunction f(x::Any, y::Int64)::Int64\n1 ─     return 2\nend\n\
         function g(x::Any)::Any\n1 ─ %1 = Main.f(x, x)::Any\n└──      return %1\nend\n# throws: g(1) MethodError\n# throws: g(\"a\") MethodError\n";
    passes(text);
    let source = SourceFile::new("t", text).unwrap();
    let (unit, _) = read(&source, &Context::new());
    let says = |at: usize| {
        let mut interp = Interp::new(&unit.module, Options::default(), Box::new(SimMemory::default()));
        let outcome = interp.run_call(&unit.checks[at].call).expect_err("an exception");
        interp.describe(&outcome)
    };
    assert!(says(0).contains("0xfffffffffffffffe"), "{}", says(0));
    assert!(says(1).contains("0x0000000000000000"), "{}", says(1));
}

#[test]
fn a_static_parameter_as_an_operand_has_the_type_of_its_value() {
    passes(
        "# signature: f(x::Vector{Int64})::Int64 where {T = Int64, N = 1}\n# check: f([7]) == 1\n\
         CodeInfo(\n1 ─     return $(Expr(:static_parameter, 2))\n) => Int64\n",
    );
    // The neighbour: a type is not a number.
    let wrong = "# signature: f(x::Vector{Int64})::Int64 where {T = Int64, N = 1}\n\
         CodeInfo(\n1 ─     return $(Expr(:static_parameter, 1))\n) => Int64\n";
    assert!(refusal("t", wrong).is_some());
}

#[test]
fn literals_of_ranges_end_with_their_last_element() {
    let last = |range: &str, ty: &str, last: &str| {
        passes(&format!(
            "# signature: f(r::{ty})::Any\n# check: f({range}) == {last}\n\
             CodeInfo(\n1 ─ %1 = Base.getfield(r, :stop)::Any\n└──      return %1\n) => Any\n"
        ));
    };
    last("1:2:6", "StepRange{Int64, Int64}", "5");
    last("6:-4:1", "StepRange{Int64, Int64}", "2");
    last("1:2:0", "StepRange{Int64, Int64}", "0");
    last("1:-2:4", "StepRange{Int64, Int64}", "2");
    last("'a':2:'f'", "StepRange{Char, Int64}", "'e'");
    last("'a':'c'", "StepRange{Char, Int64}", "'c'");
    let none = "# signature: f()::Any\n# check: f() == 1:0:2\nCodeInfo(\n1 ─     return 1\n) => Any\n";
    assert!(refusal("t", none).is_some(), "a step of nothing");
}

#[test]
fn elements_with_nothing_or_missing_have_a_union() {
    for (array, elem) in
        [("[1, nothing]", "Union{Nothing, Int64}"), ("[missing, \"a\"]", "Union{Missing, String}")]
    {
        passes(&format!(
            "# signature: f(a::Vector{{{elem}}})::Int64\n# check: f({array}) == 2\n\
             CodeInfo(\n1 ─ %1 = Base.arraylen(a)::Int64\n└──      return %1\n) => Int64\n"
        ));
    }
    // The neighbour: three types.
    passes(
        "# signature: f(a::Vector{Any})::Int64\n# check: f([1, \"a\", nothing]) == 3\n\
         CodeInfo(\n1 ─ %1 = Base.arraylen(a)::Int64\n└──      return %1\n) => Int64\n",
    );
}

#[test]
fn tables_have_the_text_of_their_filled_places() {
    let table = |keys: &str, slot: &str| {
        format!(
            "CodeInfo(\n\
             1 ─ %1 = $(Expr(:foreigncall, :(:jl_alloc_array_1d), Vector{{UInt8}}, svec(Any, Int64), 0, :(:ccall), Vector{{UInt8}}, 2, 2))::Vector{{UInt8}}\n\
             │   %2 = $(Expr(:foreigncall, :(:jl_alloc_array_1d), Vector{{{keys}}}, svec(Any, Int64), 0, :(:ccall), Vector{{{keys}}}, 2, 2))::Vector{{{keys}}}\n\
             │   %3 = $(Expr(:foreigncall, :(:jl_alloc_array_1d), Vector{{Int64}}, svec(Any, Int64), 0, :(:ccall), Vector{{Int64}}, 2, 2))::Vector{{Int64}}\n\
             │        Base.arrayset(true, %1, 0x00, 1)::Vector{{UInt8}}\n\
             │        Base.arrayset(true, %1, {slot}, 2)::Vector{{UInt8}}\n\
             │        Base.arrayset(true, %2, key, 2)::Vector{{{keys}}}\n\
             │        Base.arrayset(true, %3, 7, 2)::Vector{{Int64}}\n\
             │   %8 = %new(Dict{{{keys}, Int64}}, %1, %2, %3, 0, 1, 0x0000000000000000, 1, 0)::Dict{{{keys}, Int64}}\n\
             │   %9 = Base.string(%8)::Any\n└──      return %9\n) => Any\n"
        )
    };
    for (keys, key, slot, text) in [
        ("String", "\"k\"", "0x81", r#"Dict(\"k\" => 7)"#),
        ("String", "\"k\"", "0x01", r#"Dict(\"k\" => 7)"#),
        ("Any", "\"k\"", "0xff", r#"Dict{Any, Int64}(\"k\" => 7)"#),
        ("String", "\"k\"", "0x02", "Dict{String, Int64}()"),
        ("Int8", "Int8(3)", "0x80", "Dict{Int8, Int64}(3 => 7)"),
    ] {
        let head = format!("# signature: f(key::{keys})::Any\n# check: f({key}) == \"{text}\"\n");
        passes(&(head + &table(keys, slot)));
    }
}
