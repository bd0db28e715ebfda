//! The reader from text to module: names, literals, blocks, and what is refused.

mod text_support;

use brolga_ir::builtin::Builtin;
use brolga_ir::constant::Const;
use brolga_ir::func::{CalleeData, Func};
use brolga_ir::hints::Inlining;
use brolga_ir::text::{Outcome, Term, read, read_call};
use brolga_ir::{Context, Op, Type};
use text_support::{files, findings, source, unit};

/// The constants that are operands of the only function in `text`, in order, as `type bits`.
fn integers(text: &str) -> Vec<String> {
    let unit = unit(text);
    let (_, func) = unit.module.funcs().last().unwrap();
    let types = &unit.module.cx.types;
    let insts: Vec<_> = func.blocks().flat_map(|b| func.block_insts(b)).collect();
    let values = insts.iter().flat_map(|&i| func.args(i));
    values
        .filter_map(|&v| match func.as_const(v)? {
            Const::Bits { ty, bits } if *ty != Type::BOOL => Some(format!("{} {bits:x}", types.display(*ty))),
            _ => None,
        })
        .collect()
}

fn first_func(text: &str) -> (std::sync::Arc<Context>, Func) {
    let unit = unit(text);
    let func = unit.module.funcs().next().unwrap().1.clone();
    (unit.module.cx.clone(), func)
}

#[test]
fn every_corpus_file_and_example_is_read() {
    for (name, text) in files("tests/corpus").into_iter().chain(files("examples")) {
        let unit = unit(&text);
        assert!(unit.module.func_count() > 0 && !unit.checks.is_empty(), "{name}");
    }
}

#[test]
fn integers_take_their_type_from_their_place() {
    let types = "# types: mutable struct S; f::Int8; g::Any; end\n";
    let table = [
        ("Base.sub_int(x, 65)::Int32", "Int32 41"),
        ("Base.sub_int(65, 1)::Int32", "Int32 41, Int32 1"),
        ("(x === -1)::Bool", "Int32 ffffffff"),
        ("(1 === 2)::Bool", "Int64 1, Int64 2"),
        ("(u === 7)::Bool", "Int64 7"),
        ("Base.slt_int(x, 100)::Bool", "Int32 64"),
        ("Base.checked_sadd_int(1, 2)::Tuple{Int16, Bool}", "Int16 1, Int16 2"),
        ("Base.shl_int(1, 0x0000000000000002)::Int8", "Int8 1, UInt64 2"),
        ("Base.shl_int(x, 2)::Int32", "Int64 2"),
        ("Base.sitofp(Float64, 3)::Float64", "Int64 3"),
        ("Core.ifelse(b, -1, 2)::Int16", "Int16 ffff, Int16 2"),
        ("Core.tuple(1, 2)::Tuple{Int8, Int64}", "Int8 1, Int64 2"),
        ("φ (#1 => 7)::Int128", "Int128 7"),
        ("φ (#1 => 7)::Union{Nothing, Int32}", "Int32 7"),
        ("φ (#1 => 7)::Union{Int16, Int32}", "Int64 7"),
        ("ϒ (7)::Int16", "Int16 7"),
        ("%new(S, 3, 4)::S", "Int8 3, Int64 4"),
        ("Base.setfield!(s, :f, 3)::Int8", "Int8 3"),
        ("Base.setfield!(s, 1, 3)::Int8", "Int64 1, Int8 3"),
        ("Base.replacefield!(s, :f, 3, 4)::Any", "Int8 3, Int8 4"),
        ("Base.modifyfield!(s, :f, Main.:+, 3)::Any", "Int8 3"),
        ("Base.memoryrefset!(m, 3, :not_atomic, false)::Int16", "Int16 3"),
        ("Base.arrayset(true, a, 3, 4)::Any", "Int16 3, Int64 4"),
        ("Base.pointerset(p, 3, 4, 1)::Ptr{Int16}", "Int16 3, Int64 4, Int64 1"),
        ("Base.atomic_pointerreplace(p, 3, 4, :acquire, :acquire)::Any", "Int16 3, Int16 4"),
        ("invoke Main.h(3::Int8, -3::Int64)::Any", "Int8 3, Int64 fffffffffffffffd"),
        ("$(Expr(:foreigncall, :(:abs), Int32, svec(Int32), 0, :(:ccall), -5))::Int32", "Int32 fffffffb"),
        ("dynamic Main.h(5, Int32(6))::Any", "Int64 5, Int32 6"),
        ("5::Int16", "Int16 5"),
        (
            "Core.tuple(Int8(-3), Float16(0.5), 'θ', 1.5f0)::Any",
            "Int8 fd, Float16 3800, Char ceb80000, Float32 3fc00000",
        ),
        (
            "Core.tuple(-Inf, NaN32, -0.0, Inf16)::Any",
            "Float64 fff0000000000000, Float32 7fc00000, Float64 8000000000000000, Float16 7c00",
        ),
        ("Core.tuple(Ptr{Nothing} @0x0000000000000010)::Any", "Ptr{Nothing} 10"),
    ];
    for (row, expected) in table {
        let params =
            "b::Bool, x::Int32, u::UInt32, s::S, m::MemoryRef{Int16}, a::Vector{Int16}, p::Ptr{Int16}";
        let text = format!("{types}function f({params})::Any\n1 ─ %1 = {row}\n└── return %1\nend\n");
        assert_eq!(integers(&text).join(", "), expected, "{row}");
    }
    let returned = "function f()::Int16\n1 ─ return 5\nend\n";
    assert_eq!(integers(returned), ["Int16 5"]);
}

#[test]
fn globals_give_their_type_to_what_is_stored() {
    let text = "# globals: global x::Int8 = 3\nfunction f()::Any\n1 ─ (Main.x = 5)::Int8\n│   Core.setglobal!(Main, :x, 6)::Int8\n\
                │   %3 = Main.x::Int8\n└── return %3\nend\n";
    assert_eq!(integers(text), ["Int8 5", "Int8 6"]);
    let (cx, func) = first_func(text);
    let ops: Vec<Op> = func.block_insts(func.entry().unwrap()).map(|i| func.op(i)).collect();
    assert_eq!(
        ops[..3],
        [
            Op::Builtin(Builtin::Setglobal),
            Op::Builtin(Builtin::Setglobal),
            Op::GetGlobal(cx.names.intern("x"))
        ]
    );
}

#[test]
fn arguments_go_by_name_number_and_slot() {
    let text = "function f(x::Int64, ::Int64, Float64::Int64)::Any\n\
                1 ─ %1 = Core.tuple(x, _2, x@_2, _3, _4, Float64, #self#, _1)::Any\n└── return %1\nend\n";
    let (_, func) = first_func(text);
    let inst = func.first_inst(func.entry().unwrap()).unwrap();
    let p = func.params();
    assert_eq!(func.args(inst), [p[1], p[1], p[1], p[2], p[3], p[3], p[0], p[0]]);
}

#[test]
fn callees() {
    let text = "# types: struct C; end\nfunction g(x::Any)::Any\n1 ─ return x\nend\nfunction f(c::C, h::Any)::Any\n\
                1 ─ %1 = Main.throw(c)::Any\n│   %2 = (Core.Intrinsics.add_int)(1, 2)::Int64\n│   %3 = g(1)::Any\n\
                │   %4 = h(1)::Any\n│   %5 = invoke (c::C)(1::Int64)::Int64\n│   %6 = invoke c(1::Int64)::Int64\n\
                │   %7 = Main.C()::C\n│   %8 = (1 + 2)::Any\n│   %9 = -%8::Any\n│   %10 = Base.show(c)::Any\n└── return %9\nend\n";
    let unit = unit(text);
    let (_, func) = unit.module.funcs().last().unwrap();
    let insts: Vec<_> = func.block_insts(func.entry().unwrap()).collect();
    let ops: Vec<Op> = insts.iter().map(|&i| func.op(i)).collect();
    assert_eq!(ops[0], Op::Builtin(Builtin::Throw));
    assert!(matches!(ops[1], Op::Intrinsic(_)));
    assert!([2, 3, 6, 7, 8, 9].iter().all(|&i| ops[i] == Op::Call));
    let closure = func.ty(func.params()[1]);
    for inst in &insts[4..6] {
        let Op::Invoke(callee) = func.op(*inst) else { panic!() };
        let CalleeData::Method { function, args, result } = func.callee(callee) else { panic!() };
        assert_eq!((*function, &**args, *result), (closure, &[Type::INT64][..], Type::INT64));
        assert_eq!(func.args(*inst)[0], func.params()[1]);
    }
}

#[test]
fn types_of_all_forms() {
    let table = [
        ("Union{}", "Union{}"),
        ("Union{Nothing, Core.Int64}", "Union{Nothing, Int64}"),
        ("NTuple{3, Int8}", "Tuple{Int8, Int8, Int8}"),
        ("Tuple{Int8, Vararg{Int64}}", "Tuple{Int8, Vararg{Int64}}"),
        ("Tuple{Vararg{Int8, 2}}", "Tuple{Int8, Int8}"),
        ("Tuple", "Tuple{Vararg{Any}}"),
        ("NamedTuple{(:a, :b), Tuple{Int8, Any}}", "@NamedTuple{a::Int8, b}"),
        ("@NamedTuple{a::Int8, b}", "@NamedTuple{a::Int8, b}"),
        ("Base.RefValue{String}", "Base.RefValue{String}"),
        ("Array{Float64, 2}", "Matrix{Float64}"),
        ("Array{Float64, 3}", "Array{Float64, 3}"),
        ("Vector{<:Integer}", "Array"),
        ("Array{T, 1} where T<:Real", "Array"),
        ("Tuple{T, Int8} where T<:Integer", "Tuple{Integer, Int8}"),
        ("Dict{K, V} where {K, V}", "Dict"),
        ("Dictt{K, V} where {K, V}", "?"),
        ("Type{Int8}", "Type{Int8}"),
        ("Type{T} where T", "Type"),
        ("typeof(Base.:+)", "typeof(Base.var\"+\")"),
        ("Core.Const(5)", "Int64"),
        ("Core.Const(Main.f)", "typeof(f)"),
        ("typeof(Main.A.f)", "typeof(A.f)"),
        ("typeof(Core.Intrinsics.f)", "typeof(Base.f)"),
        ("Core.PartialStruct(Tuple{Int64, Any}, Any[Core.Const(1), Any])", "Tuple{Int64, Any}"),
        ("GenericMemory{:not_atomic, Int8, Core.AddrSpace{Core}(0x00)}", "Memory{Int8}"),
        ("Val{3}", "Val{3}"),
        ("Val{:x}", "Val{:x}"),
        ("UInt", "UInt64"),
        ("Cvoid", "Nothing"),
    ];
    for (written, shown) in table {
        let text = format!("function f(x::{written})::Any\n1 ─ return x\nend\n");
        if shown == "?" {
            assert_eq!(findings(&text), ["1 unknown-name"], "{written}");
            continue;
        }
        let (cx, func) = first_func(&text);
        assert_eq!(cx.types.display(func.sig.params[1].ty).to_string(), shown, "{written}");
    }
}

#[test]
fn declarations_may_come_in_any_order() {
    let text = "# types: struct B{T} <: A{T}; x::T; next::Union{Nothing, C}; end\n\
                # types: mutable struct C; b::B{Int64}; end\n# types: abstract type A{T} <: Z end\n# types: abstract type Z end\n\
                function f(c::C)::Any\n1 ─ return c\nend\n";
    let (cx, func) = first_func(text);
    let c = func.sig.params[1].ty;
    let b = cx.types.field_type(c, 0).unwrap();
    assert_eq!(cx.types.field_type(b, 0), Some(Type::INT64));
    assert_eq!(cx.types.display(cx.types.supertype(b)).to_string(), "A{Int64}");
    let cycle = "# types: abstract type A <: B end\n# types: abstract type B <: A end\n";
    assert!(!findings(cycle).is_empty());
}

#[test]
fn a_block_that_falls_through_gets_a_goto() {
    let (_, func) =
        first_func("function f()::Int64\n1 ─ %1 = Base.add_int(1, 2)::Int64\n2 ─ return %1\nend\n");
    let blocks: Vec<_> = func.blocks().collect();
    assert_eq!(func.successors(blocks[0]), [blocks[1]]);
    assert_eq!(func.block_insts(blocks[0]).count(), 2);
}

#[test]
fn a_branch_continues_at_the_next_block_or_where_it_says() {
    let text =
        "function f(b::Bool)::Int64\n1 ─ goto #3 if not b\n2 ─ goto #3 if not b else #1\n3 ─ return 1\nend\n";
    let (_, func) = first_func(text);
    let b: Vec<_> = func.blocks().collect();
    assert_eq!(func.successors(b[0]), [b[1], b[2]]);
    assert_eq!(func.successors(b[1]), [b[0], b[2]]);
}

#[test]
fn constants_may_stand_between_phis() {
    let text = "function f()::Any\n1 ─ goto #2\n2 ┄ %2 = φ (#1 => 1)::Int64\n│   nothing::Nothing\n│   %4 = φ (#1 => 2)::Int64\n\
                └── return %4\nend\n";
    let (_, func) = first_func(text);
    let second = func.blocks().nth(1).unwrap();
    let ops: Vec<Op> = func.block_insts(second).map(|i| func.op(i)).collect();
    assert_eq!(ops, [Op::Phi, Op::Phi, Op::Copy, Op::Return]);
}

#[test]
fn counting_leaves_become_leaves_by_token() {
    let text = "function f(x::Any)::Any\n1 ─ %1 = $(Expr(:enter, #6))\n2 ─ %2 = $(Expr(:enter, #5))\n3 ─ invoke Main.g()::Any\n\
                └── $(Expr(:leave, 2))\n4 ─ return 1\n5 ┄ $(Expr(:leave, 1))\n│   invoke Main.g()::Any\n│   $(Expr(:pop_exception, :(%2)))\n\
                │   $(Expr(:leave, 1))\n└── return 2\n6 ┄ $(Expr(:leave, 1))\n│   $(Expr(:pop_exception, :(%1)))\n└── return 3\nend\n";
    let (_, func) = first_func(text);
    let leaves: Vec<Vec<usize>> = func
        .blocks()
        .flat_map(|b| func.block_insts(b))
        .filter(|&i| func.op(i) == Op::Leave)
        .map(|i| {
            let enter =
                |v: &_| func.blocks().position(|b| func.inst_block(func.def_inst(*v).unwrap()) == Some(b));
            func.args(i).iter().map(|v| enter(v).unwrap() + 1).collect()
        })
        .collect();
    // The body leaves both handlers, innermost first; the inner handler leaves the outer one; the outer
    // leaves none.
    assert_eq!(leaves, [vec![2, 1], vec![1]]);
}

#[test]
fn checks_are_calls_of_constants() {
    let text = "# types: struct P{T}; x::T; end\nfunction f(x::Any)::Any\n1 ─ return x\nend\n\
                # check: f(P(Int8(3))) == P{Int8}(3)\n# check: f([1 2; 3 4]) == Int16[]\n# check: f(UInt8[1, 0x02]) == [1, 2.5]\n\
                # check: f(typemin(Int8)) == (typemax(Float32), reinterpret(Float32, 0x7fc00001))\n# throws: f(1:3) BoundsError\n\
                # check: f(\"\\xff\") == (a = 1, b = :x)\n# check: P{Int64}(3)(4) == nothing\n";
    let unit = unit(text);
    let cx = &unit.module.cx;
    let show = |t: &Term| cx.types.display(t.ty()).to_string();
    let shown: Vec<(String, String)> = unit
        .checks
        .iter()
        .map(|c| {
            let outcome = match &c.outcome {
                Outcome::Returns(term) => show(term),
                Outcome::Throws(ty) => format!("throws {}", cx.types.display(*ty)),
            };
            (show(&c.call.args[0]), outcome)
        })
        .collect();
    let shown: Vec<(&str, &str)> = shown.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
    assert_eq!(
        shown,
        [
            ("P{Int8}", "P{Int8}"),
            ("Matrix{Int64}", "Vector{Int16}"),
            ("Vector{UInt8}", "Vector{Float64}"),
            ("Int8", "Tuple{Float32, Float32}"),
            ("UnitRange{Int64}", "throws BoundsError"),
            ("String", "@NamedTuple{a::Int64, b::Symbol}"),
            ("Int64", "Nothing"),
        ]
    );
    let Term::Array { items, dims, .. } = &unit.checks[1].call.args[0] else { panic!() };
    let bits: Vec<u128> = items
        .iter()
        .map(|t| match t {
            Term::Const(Const::Bits { bits, .. }) => *bits,
            _ => panic!(),
        })
        .collect();
    assert_eq!((bits, &dims[..]), (vec![1, 3, 2, 4], &[2, 2][..]));
}

#[test]
fn calls_are_read_on_their_own() {
    let unit = unit("function fib(n::Int64)::Int64\n1 ─ return n\nend\n");
    let call = read_call(&source("fib(35)"), &unit.module).unwrap();
    assert_eq!(call.args.len(), 1);
    for wrong in ["fib(35", "fib 35", "fob(35)", "35", ""] {
        assert!(read_call(&source(wrong), &unit.module).is_err(), "{wrong}");
    }
}

#[test]
fn unknown_names_bring_known_ones() {
    let note = |text: &str| {
        let source = source(text);
        let (_, found) = read(&source, &Context::new());
        let first = found.iter().next().unwrap();
        (first.code, first.notes.join("; "))
    };
    let body = |row: &str| format!("function f(amount::Int64)::Any\n1 ─ %1 = {row}\n└── return %1\nend\n");
    assert_eq!(
        note(&body("Base.ad_int(amount, 1)::Int64")),
        ("unknown-name", "there are `add_int`, `and_int`".into())
    );
    assert_eq!(note(&body("Core.tuple(amuont)::Any")), ("unknown-name", "there is `amount`".into()));
    assert_eq!(note(&body("Core.tuple(1)::Float46")).1, "there are `Float16`, `Float64`");
    assert_eq!(note(&body("builtin Core.zzz(1)::Any")), ("unknown-name", String::new()));
}

/// Each search considers all names, so one search per name would be quadratic.
#[test]
fn known_names_are_looked_for_a_bounded_number_of_times() {
    const COUNT: usize = 500;
    let fields = |i| format!("struct S{i}\n    x::Main.T{i}\nend\n");
    let supertypes = |i| format!("struct S{i} <: T{i}\n    x::Int64\nend\n");
    let rows = (0..COUNT).map(|i| format!("│   %{} = intrinsic Base.ad_int{i}(x, x)::Int64\n", i + 1));
    let intrinsics =
        format!("function f(x::Int64)::Int64\n1 ─ nothing\n{}└── return x\nend\n", rows.collect::<String>());
    let texts = [(0..COUNT).map(fields).collect(), (0..COUNT).map(supertypes).collect(), intrinsics];
    for text in texts {
        let (_, found) = read(&source(&text), &Context::new());
        let named = found.iter().filter(|finding| !finding.notes.is_empty()).count();
        assert!(found.iter().count() > named && (1..=COUNT / 10).contains(&named), "{named}: {text:.60}");
    }
}

#[test]
fn faults_are_found_where_they_are() {
    let body = |rows: &str| format!("function f(x::Int64)::Any\n{rows}\nend\n");
    let table = [
        (body("1 ─ %1 = Base.add_int(%7, x)::Int64\n└── return %1"), "2 unknown-name"),
        (body("1 ─ %1 = Base.add_int(_9, x)::Int64\n└── return %1"), "2 unknown-name"),
        (body("1 ─ goto #9"), "2 unknown-name"),
        (body("1 ─ %1 = Main.zzz::Int64\n└── return %1"), "2 unknown-name"),
        (body("1 ─ return 1\n1 ─ return 2"), "3 duplicate-name"),
        (body("1 ─ %1 = x::Any\n│   %1 = x::Any\n└── return x"), "3 duplicate-name"),
        (body("1 ─ return x\n│   return x"), "3 block-end"),
        (body("1 ─ %1 = x::Any"), "2 block-end"),
        (body("1 ─ goto #1 if not true"), "2 block-end"),
        (body("1 ─ %1 = Base.add_int(x, 1)\n└── return %1"), "2 type"),
        (body("1 ─ %1 = Base.sext_int(Int64, x)::Int32\n└── return %1"), "2 type"),
        (body("1 ─ %1 = Base.add_int(x)::Int64\n└── return %1"), "2 operands"),
        (body("1 ─ %1 = Core.tuple(Base.add_int(x, 1))::Any\n└── return %1"), "2 operands"),
        (body("1 ─ %1 = Base.add_int(1, 300)::Int8\n└── return %1"), "2 literal"),
        ("const s::String = \"\\xff\"\n".to_owned() + &body("1 ─ return 1"), "1 literal"),
        (body("1 ─ %1 = Base.llvmcall(x)::Int64\n└── return %1"), "2 unsupported"),
        (body("1 ─ %1 = Base.cglobal(x, Nothing)::Ptr{Nothing}\n└── return %1"), "2 unsupported"),
        (body("1 ─ %1 = $(Expr(:copyast, :($(QuoteNode(:(a = 1))))))::Any\n└── return %1"), "2 unsupported"),
        (
            body(
                "1 ─ %1 = $(Expr(:cfunction, Ptr{Nothing}, :(x), Nothing, svec(), :(:ccall)))::Ptr{Nothing}\n└── return %1",
            ),
            "2 unsupported",
        ),
        (
            body("1 ─ %1 = $(Expr(:new_opaque_closure, opaque closure @0x1 in Main))::Any\n└── return %1"),
            "2 unsupported",
        ),
        (body("1 ─ enter #2 with scope x\n2 ─ return 1"), "2 unsupported"),
        (body("1 ─ $(Expr(:boundscheck, 3))::Bool\n└── return 1"), "2 operands"),
        (body("1 ─ $(Expr(:leave, 1))\n└── return 1"), "2 handlers"),
        (
            body(
                "1 ─ %1 = $(Expr(:foreigncall, :(:f), Int32, svec(Any), 0, :(:stdcall), :(x)))::Int32\n└── return %1",
            ),
            "2 unsupported",
        ),
        (
            body(
                "1 ─ %1 = $(Expr(:foreigncall, :(:f), Int32, svec(Any), 0, :(:ccall)))::Int32\n└── return %1",
            ),
            "2 operands",
        ),
        (body("1 ─ %1 = Base.add_int(x, 1)::Int64 inline\n└── return %1"), "2 hint"),
        (body("1 ─ %1 = Core.tuple(x)::Tuple{Int64} noinline\n└── return %1"), "2 hint"),
        (body("1 ─ return x noinline"), "2 hint"),
        (body("1 ─ goto #2 if not true weights 1:2 inline\n2 ─ return x"), "2 hint"),
        (body("1 ─ %1 = Main.g(x)::Any outline\n└── return x"), "2 syntax"),
        (body("1 ─ %1 = Main.g(x)::Any inline noinline\n└── return x"), "2 syntax"),
        ("low function f(x::i64)::i64 inline\n1 ─ return x\nend\n".to_owned(), "1 hint"),
        (
            "low function f(x::i64)::i64\n1 ─ %1 = invoke g(x::i64)::i64 inline\n└── return %1\nend\n"
                .to_owned(),
            "2 hint",
        ),
        ("CodeInfo(\n1 ─ return 1\n) => Int64\n".to_owned(), "1 signature"),
        ("# signature: f(x::Strin)::Any\n1 ─ return x\n".to_owned(), "1 unknown-name"),
        ("# types: struct S; x::Int64; x::Int64; end\n".to_owned(), "1 type"),
        ("# types: primitive type P 7 end\n".to_owned(), "1 type"),
        ("# types: struct S <: Int64; end\n".to_owned(), "1 type"),
        ("# globals: global x::Int64\n".to_owned(), "1 global"),
        ("global x = 1\nglobal x = 2\n".to_owned(), "2 duplicate-name"),
        (
            "function f()::Any\n1 ─ return 1\nend\nfunction f()::Any\n1 ─ return 1\nend\n".to_owned(),
            "4 duplicate-name",
        ),
        ("# check: f(1) == 1\n".to_owned(), "1 unknown-name"),
    ];
    for (text, expected) in table {
        assert_eq!(findings(&text), [expected], "{text}");
    }
}

#[test]
fn functions_and_calls_ask_about_inlining() {
    use Inlining::{Always, Never};
    let asked = |text: &str| first_func(text).1.inlining;
    let rows =
        |rows: &str| asked(&format!("# signature: f(x::Int64)::Int64\nCodeInfo(\n{rows}\n) => Int64\n"));
    assert_eq!(rows("1 ─ return x"), None);
    assert_eq!(rows("1 ─ $(Expr(:meta, :inline))\n└── return x"), Some(Always));
    assert_eq!(rows("1 ─ $(Expr(:meta, :nospecialize, :(x)))\n└── return x"), None);
    assert_eq!(rows("1 ─ $(Expr(:meta, :propagate_inbounds, :noinline))\n└── return x"), Some(Never));
    assert_eq!(rows("1 ─ $(Expr(:meta, :inline))\n│   $(Expr(:meta, :noinline))\n└── return x"), Some(Never));
    // Optimised code has them in a separate block.
    assert_eq!(rows("1 ─ return x\n2 ─ $(Expr(:meta, :noinline))"), Some(Never));
    assert_eq!(
        rows(
            "1 ─ goto #2\n2 ─ return x\n3 ─ $(Expr(:meta, :inline))::Any\n│   $(Expr(:meta, :nospecialize))"
        ),
        Some(Always)
    );
    let signed = |signature: &str| asked(&format!("function {signature}\n1 ─ return x\nend\n"));
    assert_eq!(signed("f(x::Int64)::Int64 noinline"), Some(Never));
    assert_eq!(signed("f(x) inline"), Some(Always));
    assert_eq!(signed("f(x::T)::T where {T} inline"), Some(Always));
    assert_eq!(
        asked("# signature: f(x::Int64)::Int64 inline\n1 ─ $(Expr(:meta, :noinline))\n└── return x\n"),
        Some(Always)
    );
    let text = "function f(inline::Any)::Any\n1 ─ %1 = invoke Main.f(inline::Any)::Any noinline\n\
                │   %2 = dynamic inline(%1)::Any inline │╻ gutter\n│   %3 = (%1 + %2)::Any noinline\n\
                │   %4 = Main.f(%3)::Any\n└── return inline\nend\n";
    let (_, func) = first_func(text);
    let hints: Vec<_> = func.block_insts(func.entry().unwrap()).map(|i| func.call_inlining(i)).collect();
    assert_eq!(hints, [Some(Never), Some(Always), Some(Never), None, None]);
}

#[test]
fn only_meta_may_stand_behind_the_end() {
    let rows = |rows: &str| findings(&format!("function f(x::Int64)::Int64\n{rows}\nend\n"));
    assert_eq!(rows("1 ─ $(Expr(:meta, :inline))"), ["2 block-end"]);
    assert_eq!(rows("1 ─ goto #2\n2 ─ $(Expr(:meta, :inline))"), ["2 unknown-name"]);
    assert_eq!(rows("1 ─ return x\n2 ─ $(Expr(:meta, :inline))\n│   %2 = x::Int64"), ["4 block-end"]);
    assert_eq!(rows("1 ─ return x\n2 ─ $(Expr(:meta, :inline))\n3 ─ return x"), [""; 0]);
}

#[test]
fn a_library_is_a_warning() {
    let text = "function f(x::Float64)::Float64\n1 ─ %1 = $(Expr(:foreigncall, :($(QuoteNode((:sin, \"libm\")))), Float64, svec(Float64), 0, :($(QuoteNode((:ccall, 0x0000, false)))), :(x)))::Float64\n└── return %1\nend\n";
    let source = source(text);
    let (unit, found) = read(&source, &Context::new());
    assert!(!found.has_errors());
    assert_eq!(found.iter().map(|d| d.code).collect::<Vec<_>>(), ["library"]);
    assert_eq!(unit.module.func_count(), 1);
}
