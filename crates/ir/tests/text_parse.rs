//! The reader against every corpus file, against every form of the printed style, and against damaged text.
//!
//! The corpus is `tests/corpus` of the workspace. Damage is 10,000 random edits with a fixed seed: the reader
//! must handle each of them quickly and without a panic, and every finding must point inside the text.

mod text_support;

use std::time::{Duration, Instant};

use brolga_ir::diag::{SourceFile, Style};
use brolga_ir::module::GlobalKind;
use brolga_ir::text::ast::{Expected, Expr, ExprKind, File, Literal, Stmt, TypeDeclKind};
use brolga_ir::text::{MAX_DEPTH, NotText, from_bytes, parse};
use text_support::{Random, damage, files, source};

fn corpus() -> Vec<(String, String)> {
    files("tests/corpus")
}

/// Codes and lines of the findings in `text`.
fn findings(text: &str) -> Vec<(&'static str, u32)> {
    let source = source(text);
    let (_, found) = parse(&source);
    found.iter().map(|d| (d.code, source.position(d.at.start).line)).collect()
}

/// Runs `look` on the tree of `text`, which must have no faults.
fn with<R>(text: &str, look: impl FnOnce(&File<'_>) -> R) -> R {
    let source = source(text);
    let (file, found) = parse(&source);
    assert!(found.is_empty(), "{}", found.render(&source, &Style::PLAIN));
    look(&file)
}

/// The first statement of a one-row dump.
fn stmt<R>(row: &str, look: impl FnOnce(&Stmt<'_>) -> R) -> R {
    with(&format!("# signature: f()::Any\n1 ─ {row}\n"), |file| {
        look(&file.functions[0].blocks[0].rows[0].stmt)
    })
}

/// The shape of the tree without its places.
fn shape(text: &str) -> String {
    let source = source(text);
    let (file, found) = parse(&source);
    assert!(found.is_empty(), "{}", found.render(&source, &Style::PLAIN));
    without_places(&format!("{file:?}"))
}

/// Drops `span: 1..2` and the numbers of the left gutter from a debug print.
fn without_places(debug: &str) -> String {
    let mut out = String::new();
    let mut rest = debug;
    while let Some(at) = rest.find("..") {
        let digits = |c: char| c.is_ascii_digit();
        let head = rest[..at].trim_end_matches(digits);
        out.push_str(head);
        rest = rest[at + 2..].trim_start_matches(digits);
    }
    out + rest
}

#[test]
fn every_corpus_file_parses() {
    // Functions, blocks and statements as the corpus lists them.
    let expected = [
        ("bank_transfer", 2, 9, 33),
        ("binary_search", 2, 16, 49),
        ("bit_tricks", 1, 6, 39),
        ("classify_float", 1, 14, 31),
        ("edit_distance", 1, 10, 53),
        ("fib", 1, 3, 9),
        ("fnv_hash", 1, 4, 17),
        ("grid_paths", 1, 11, 34),
        ("half_precision", 1, 7, 25),
        ("http_reason", 2, 114, 175),
        ("insertion_sort", 4, 32, 126),
        ("iterate_evens", 3, 18, 48),
        ("list_sum", 4, 16, 40),
        ("matmul_flat", 1, 28, 87),
        ("nested_try", 2, 21, 68),
        ("pointer_reverse", 2, 12, 58),
        ("ring_queue", 3, 18, 61),
        ("simd_sum_f32", 1, 9, 25),
        ("total_area", 6, 18, 63),
        ("undef_catch", 2, 16, 45),
        ("unicode_descent", 3, 14, 39),
        ("wrap_int8", 2, 12, 45),
    ];
    let mut seen = Vec::new();
    for (name, text) in corpus() {
        let checks = text.lines().filter(|l| l.starts_with("# check:") || l.starts_with("# throws:")).count();
        with(&text, |file| {
            let blocks = file.functions.iter().flat_map(|f| &f.blocks);
            let rows: usize = blocks.clone().map(|b| b.rows.len()).sum();
            seen.push((name, file.functions.len(), blocks.count(), rows));
            assert!(file.functions.iter().all(|f| f.signature.is_some()));
            assert_eq!(file.checks.len(), checks);
            for function in &file.functions {
                let rows = function.blocks.iter().flat_map(|b| &b.rows);
                for (index, row) in rows.enumerate() {
                    assert!(row.result.is_none_or(|(number, _)| number as usize == index + 1));
                }
            }
        });
    }
    let seen: Vec<_> = seen.iter().map(|(n, f, b, r)| (n.as_str(), *f, *b, *r)).collect();
    assert_eq!(seen, expected);
}

#[test]
fn every_example_parses() {
    for (name, text) in files("examples") {
        with(&text, |file| assert!(!file.functions.is_empty(), "{name}"));
    }
}

#[test]
fn line_ends_and_blanks_do_not_matter() {
    for (name, text) in corpus() {
        let plain = shape(&text);
        assert_eq!(plain, shape(&text.replace('\n', "\r\n")), "{name} with CRLF");
        assert_eq!(plain, shape(&text.replace('\n', " \t \n")), "{name} with trailing blanks");
        assert_eq!(plain, shape(text.trim_end_matches('\n')), "{name} without a final newline");
        assert_eq!(plain, shape(&format!("\u{feff}{text}")), "{name} with a byte order mark");
    }
}

#[test]
fn a_jlir_file_and_a_dump_give_the_same_tree() {
    let dump = "# types: mutable struct Node; next::Union{Nothing, Node}; val::Int64; end\n\
                # signature: f(n::Node)::Int64\n1 ─ %1 = getfield(n, :val)::Int64\n└──      return %1\n";
    let jlir = "# a comment\nmutable struct Node\n    next::Union{Nothing, Node} # its successor\n    val::Int64\nend\n\n\
                function f(n::Node)::Int64\n1 ─ %1 = getfield(n, :val)::Int64\n└──      return %1\nend\n";
    assert_eq!(shape(dump).replace("is_dump: true", "is_dump: false"), shape(jlir));
}

#[test]
fn lists_of_dumps() {
    let text = "# signature: f()::Int64\nAny[CodeInfo(\n1 ─     return 1\n) => Int64,\n# signature: g()::Int64\n CodeInfo(\n1 ─     return 2\n) => Int64]\n";
    with(text, |file| assert!(file.functions.iter().all(|f| f.shown_result.is_some())));
    let text = "julia> code_typed(f,\n           (Int64,))\n2-element Vector{Any}:\n CodeInfo(\n1 ─     return 1\n) => Int64\n";
    with(text, |file| assert_eq!(file.functions.len(), 1));
}

#[test]
fn declarations() {
    let text = "abstract type A{T} <: Number end\nprimitive type P <: A{Int64} 24 end\n\
                struct var\"#f#1\"{T<:Real, S}\n    const a::T\n    @atomic b\nend\nglobal x::Int64 = -1\nconst c = 2.5\nglobal threadlocal t = 1\nglobal threadlocal = 2\n";
    with(text, |file| {
        assert!(matches!(file.types[0].kind, TypeDeclKind::Abstract));
        assert!(matches!(file.types[1].kind, TypeDeclKind::Primitive { bits: (24, _) }));
        let TypeDeclKind::Struct { mutable: false, fields } = &file.types[2].kind else { panic!() };
        assert_eq!(file.types[2].name.0, "#f#1");
        assert!(fields[0].is_const && !fields[0].is_atomic && fields[0].ty.is_some());
        assert!(!fields[1].is_const && fields[1].is_atomic && fields[1].ty.is_none());
        use GlobalKind::{Constant, ThreadLocal, Variable};
        let globals: Vec<_> = file.globals.iter().map(|decl| (&*decl.name.0, decl.kind)).collect();
        assert_eq!(
            globals,
            [("x", Variable), ("c", Constant), ("t", ThreadLocal), ("threadlocal", Variable)]
        );
    });
}

#[test]
fn signatures_of_all_forms() {
    let forms = [
        "name(a::Int64, b)::R",
        "Base.name(::typeof(f))::R",
        "Base.:+(a::T, b::T)::T",
        "+(a::T, b::T)::T",
        "var\"#f#5\"(rest::T...)::R",
        "f(rest...)",
        "(self::T{A})(x::S)::R",
        "(::T)(x::S)::R",
        "f(x::Array{T, 1} where T<:Real)::Union{}",
    ];
    for form in forms {
        assert_eq!(findings(&format!("function {form}\n1 ─ unreachable\nend\n")), [], "{form}");
        assert_eq!(findings(&format!("# signature: {form}\n1 ─ unreachable\n")), [], "{form}");
    }
    assert_eq!(findings("# signature: f(a...)(b)\n"), [("syntax-signature", 1)]);
    assert_eq!(findings("# signature: f(a..., b)\n"), [("syntax-signature", 1)]);
    assert_eq!(findings("# signature: f(a)\n# signature: g(a)\n1 ─ return a\n"), [("syntax-signature", 1)]);
}

/// Statements of Julia 1.9 to 1.13 that the corpus does not have.
#[test]
fn statements_beyond_the_corpus() {
    let rows = [
        "%1 = $(Expr(:static_parameter, 1))::Int64",
        "%1 = $(Expr(:cfunction, Ptr{Nothing}, :($(QuoteNode(f))), :(Int32), :(svec(Int32)), :(:ccall)))::Ptr{Nothing}",
        "%1 = $(Expr(:new_opaque_closure, Tuple{Int64}, Union{}, Any, true, opaque closure @0x00007f1 in Main, :(%1)))::Core.OpaqueClosure{Tuple{Int64}, Int64}",
        "%1 = $(Expr(:copyast, :($(QuoteNode(:(a + b; f(x)))))))::Expr",
        "%1 = $(Expr(:invoke_modify, MethodInstance for +(::Int64, ::Int64), :(Base.modifyfield!), :(_2), :(:x), :(+), 1))::Pair{Int64, Int64}",
        "%1 = Base.llvmcall((\"define i64 @f() {\\n ret i64 1 }\", \"f\"), Int64, Tuple{})::Int64",
        "%1 = Base.cglobal(:jl_options, Int64)::Ptr{Int64}",
        "%1 = enter #3 with scope %2",
        "%1 = enter with scope %2",
        "$(Expr(:loopinfo, Symbol(\"julia.simdloop\"), Symbol(\"julia.ivdep\"), (Symbol(\"llvm.loop.unroll.count\"), 4)))::Any",
        "$(Expr(:aliasscope))::Any",
        "$(Expr(:inbounds, :pop))",
        "$(Expr(:meta, :inline))",
        "%1 = $(Expr(:foreigncall, :(:memcpy), Ptr{Nothing}, svec(Ptr{Nothing}, Ptr{Nothing}, UInt64), 0, :($(QuoteNode((:ccall, 0x0000, false)))), :(%1), :(%2), 0x08))::Ptr{Nothing}",
        "%1 = $(Expr(:foreigncall, \"printf\", Int32, svec(Ptr{UInt8}, Int64), 1, :(:ccall), :(%2), 7))::Int32",
        "%1 = $(Expr(:foreigncall, :(Core.tuple(:sin, \"libm\")), Float64, svec(Float64), 0, :(:ccall), :(_2)))::Float64",
        "%1 = $(Expr(:foreigncall, :(%3), Int32, svec(), 0, :(:ccall)))::Int32",
        "%1 =   unknown %9(1)::Any",
        "%1 =   dynamic -%2::Any",
        "%1 =   dynamic !%2::Any",
        "%1 =   dynamic (%2 + %3 + 4)::Any",
        "%1 =   dynamic (%2 ≤ %3)::Any",
        "%1 =   dynamic (1:%2)::Any",
        "%1 =   dynamic (%2 => :x)::Any",
        "%1 =   dynamic Base.getindex(%2, 1)::Any",
        "%1 =   dynamic %2(x, kw...)::Any",
        "%1 = invoke f(1::Int64; k = 2)::Int64",
        "%1 = φ ()::Union{}",
        "%1 = φ (#0 => x, #2 => #undef)::Int64",
        "%1 = φᶜ ()::Union{}",
        "%1 = ϒ (%2::Int64)::Int64",
        ":sym",
        "nothing",
        "%1 = Ptr{Nothing} @0x0000000000000000::Ptr{Nothing}",
        "%1 = Core.Const(Val{(1, :a)}())::Core.Const(Val{(1, :a)}())",
        "%1 = f(x)::Core.PartialStruct(Tuple{Int64, Any}, Any[Core.Const(1), Any])",
        "%1 = f(x)::Vector{<:Integer}",
        "%1 = f(x)::Array{T, 1} where T<:Real",
        "%1 = f(x)::Dict{K, V} where {K, V<:Integer}",
        "%1 = f(x)::@NamedTuple{a::Int64, b}",
        "%1 = f(x)::@Kwargs{}",
        "%1 = f(x)::NTuple{12, Int64}",
        "%1 = f(x)::typeof(Base.:+)",
        "%1 = f(x)::typeof(+)",
        "%1 = f(:<::Symbol, :(=)::Symbol, :(:)::Symbol, :var\"a b\"::Symbol, 1:3)::Any",
        "%1 = (Main.x = 5)::Int64",
        "%1 = Main.var\"#f#1\"(@_4, x@_2, #unused#@_1, #17#x)::Any",
        "%1 = [1 2; 3 -4]::Matrix{Int64}",
        "%1 = (; a = 1)::@NamedTuple{a::Int64}",
        "goto #4 if not (%1 === x) else #7",
        "return",
        "invoke(%1, Tuple{Int64}, 2)::Any",
        "intrinsic::Any",
    ];
    for row in rows {
        stmt(row, |_| ());
        stmt(&format!("{row}          │╻╷ name"), |_| ());
    }
}

/// The operators and operands of an expression of numbers and names, with each operation parenthesised.
fn grouped(expr: &Expr<'_>) -> String {
    match &expr.kind {
        ExprKind::Prefix(op, inner) => format!("({op}{})", grouped(inner)),
        ExprKind::Infix(op, args) => format!("({})", args.iter().map(grouped).collect::<Vec<_>>().join(op)),
        ExprKind::Name(name) => name.to_string(),
        ExprKind::Literal(Literal::Int { negative, magnitude }) => {
            format!("{}{}", if *negative { "-" } else { "" }, magnitude.get())
        }
        other => format!("{other:?}"),
    }
}

#[test]
fn only_powers_bind_tighter_than_prefix_operators() {
    for (row, expected) in [
        ("-x ^ y", "(-(x^y))"),
        ("-2 ^ y", "(-(2^y))"),
        ("(-2) ^ y", "(-2^y)"),
        ("-x ^ -y", "(-(x^(-y)))"),
        ("-x * y", "((-x)*y)"),
        ("-2 * y", "(-2*y)"),
        ("!x == y", "((!x)==y)"),
        ("-x << y", "((-x)<<y)"),
        ("x ^ y ^ z", "(x^(y^z))"),
    ] {
        stmt(row, |found| match found {
            Stmt::Expr(expr) => assert_eq!(grouped(expr), expected, "{row}"),
            other => panic!("{row}: {other:?}"),
        });
    }
    // An annotation belongs to the statement.
    stmt("!%2::Bool", |found| assert!(!format!("{found:?}").contains("Annotated"), "{found:?}"));
}

#[test]
fn operators_have_the_levels_of_julia() {
    for (row, expected) in [
        ("a → b + c", "(a→(b+c))"),
        ("a || b --> c", "((a||b)-->c)"),
        ("a → b ⇒ c", "(a→(b⇒c))"),
        ("x => a → b", "(x=>(a→b))"),
        ("a || b || c && d", "(a||(b||(c&&d)))"),
        ("x |> f |> g", "((x|>f)|>g)"),
        ("f <| x |> g", "(f<|(x|>g))"),
        ("a + b ≈ c", "((a+b)≈c)"),
        ("a ⊕ b × c", "(a⊕(b×c))"),
        ("a ∘ b + c", "((a∘b)+c)"),
        ("a ⊞ b ⊠ c", "(a⊞(b⊠c))"),
        ("a ▷ b ⨝ c", "((a▷b)⨝c)"),
        ("a ↑ b ↑ c", "(a↑(b↑c))"),
        ("-2 ↑ y", "(-(2↑y))"),
        ("a * b // c << d", "(a*(b//(c<<d)))"),
        ("a .+ b .× c", "(a.+(b.×c))"),
        ("a +₁ b ×₁ c", "(a+₁(b×₁c))"),
        ("a .. b + c", "(a..(b+c))"),
        ("a ~ b + c", "(a~(b+c))"),
        ("a ++ b ++ c", "(a++b++c)"),
        ("a + x -> y == z", "(a+(x->(y==z)))"),
        ("a ≥ b ∈ c", "((a≥b)∈c)"),
    ] {
        stmt(row, |found| match found {
            Stmt::Expr(expr) => assert_eq!(grouped(expr), expected, "{row}"),
            other => panic!("{row}: {other:?}"),
        });
    }
}

#[test]
fn an_unknown_operator_is_named() {
    for (row, operator) in [("a ⊦ b", "⊦"), ("a -- b", "--"), ("∘a", "∘"), ("a ? b : c", "?")] {
        let source = source(&format!("# signature: f()::Any\n1 ─ {row}\n"));
        let message = parse(&source).1.render(&source, &Style::PLAIN).to_string();
        assert!(message.contains(&format!("`{operator}`")), "{row}: {message}");
    }
}

#[test]
fn quoted_syntax_over_several_lines() {
    let text = "# signature: f()::Any\nCodeInfo(\n1 ─ %1 = $(Expr(:copyast, :($(QuoteNode(quote\n    #= REPL[1]:1 =#\n    x = 1\nend)))))::Any\n└──      return %1\n) => Any\n";
    with(text, |file| {
        let rows = &file.functions[0].blocks[0].rows;
        assert_eq!(rows.len(), 2);
        let Stmt::Expr(expr) = &rows[0].stmt else { panic!() };
        let ExprKind::Head(head, args) = &expr.kind else { panic!() };
        assert_eq!((&**head, args.len()), ("copyast", 1));
    });
}

#[test]
fn opaque_arguments_keep_their_neighbours() {
    let row = "%1 = $(Expr(:invoke_modify, MethodInstance for +(::Int64, ::Int64), :(g), 1))::Any";
    stmt(row, |stmt| {
        let Stmt::Expr(expr) = stmt else { panic!() };
        let ExprKind::Head(_, args) = &expr.kind else { panic!() };
        assert!(matches!(args[0].kind, ExprKind::Opaque));
        assert!(matches!(args[1].kind, ExprKind::Quote(_)));
        assert!(
            matches!(args[2].kind, ExprKind::Literal(Literal::Int { magnitude, .. }) if magnitude.get() == 1)
        );
    });
}

#[test]
fn names_of_statements_are_names_elsewhere() {
    stmt("%1 = φ(1)::Any", |stmt| assert!(matches!(stmt, Stmt::Expr(_))));
    stmt("%1 = Main.goto::Any", |stmt| assert!(matches!(stmt, Stmt::Expr(_))));
    stmt("%1 = (invoke + 1)::Any", |stmt| assert!(matches!(stmt, Stmt::Expr(_))));
    stmt("%1 = return::Any", |stmt| assert!(matches!(stmt, Stmt::Expr(_))));
}

#[test]
fn the_right_gutter_respects_quotes() {
    stmt("return \"a │ b\" │╻ f", |stmt| {
        let Stmt::Return(Some(value)) = stmt else { panic!() };
        assert_eq!(value.kind_string().as_deref(), Some("a │ b"));
    });
    stmt("return '│' │ g", |stmt| assert!(matches!(stmt, Stmt::Return(Some(_)))));
    stmt("return '\"' │ g", |stmt| assert!(matches!(stmt, Stmt::Return(Some(_)))));
}

/// The text of a string literal.
trait KindString {
    fn kind_string(&self) -> Option<String>;
}

impl KindString for brolga_ir::text::ast::Expr<'_> {
    fn kind_string(&self) -> Option<String> {
        match &self.kind {
            ExprKind::Literal(Literal::String(bytes)) => Some(String::from_utf8_lossy(bytes).into_owned()),
            _ => None,
        }
    }
}

#[test]
fn checks() {
    let text = "# check: f(Int8(-3), 'c', \"s\") == (lo = 1.0, hi = -0.0)\n# check: g([1, 2], Any[]) === Symbol(\"a b\")\n\
                # check: h([1 2; 3 4]) == reinterpret(Float32, 0x7fc00001)\n# throws: k(typemin(Int64)) DivideError\n";
    with(text, |file| {
        assert_eq!(file.checks.len(), 4);
        let Expected::Value(value) = &file.checks[0].expected else { panic!() };
        assert!(matches!(&value.kind, ExprKind::NamedTuple(fields) if fields.len() == 2));
        let ExprKind::Call(_, args) = &file.checks[2].call.kind else { panic!() };
        assert!(
            matches!(&args[0].kind, ExprKind::Array(items) if items.columns == Some(2) && items.items.len() == 4)
        );
        assert!(matches!(file.checks[3].expected, Expected::Throws(_)));
    });
    assert_eq!(findings("# check: f(1)\n# throws: f(1)\n"), [("syntax-check", 1), ("syntax-check", 2)]);
}

#[test]
fn faults_have_their_line_and_reading_goes_on() {
    let text = "function f(x::Int64)::Int64\n1 ─ %1 = add_int(x, 1\n│   %2 = add_int(x, \"a)\n└──      return ]\nend\n\
                nonsense\nmore nonsense\nfunction g(\n1 ─ return 1\nend\nstruct S\n    1\n    b::Int64\nend\n\
                function h()\nend\nfunction k()\n    return 1\n";
    assert_eq!(
        findings(text),
        [
            ("syntax-unclosed", 2),
            ("syntax-literal", 3),
            ("syntax", 4),
            ("syntax-stray", 6),
            ("syntax-unclosed", 8),
            ("syntax", 12),
            ("syntax-rows", 15),
            ("syntax-rows", 18),
            ("syntax-unclosed", 17),
        ]
    );
}

#[test]
fn numbers_of_rows_are_limited() {
    for row in
        ["return %99999999999", "return %1.99999999999", "%99999999999 = add_int(1, 2)", "goto #99999999999"]
    {
        assert_eq!(
            findings(&format!("# signature: f()::Any\n1 ─ {row}\n"))[0],
            ("syntax-literal", 2),
            "{row}"
        );
    }
    stmt("return %4294967295", |_| ());
}

#[test]
fn nesting_is_limited() {
    let deep = 100_000;
    let towers = [
        "(".repeat(deep),
        "[".repeat(deep),
        "-".repeat(deep) + "x",
        "- ".repeat(deep) + "x",
        "::".repeat(deep),
        "$(".repeat(deep),
        "$".repeat(deep),
        ":(".repeat(deep),
        "a{".repeat(deep),
        "f(".repeat(deep),
        "$(Expr(:a, ".repeat(deep),
        "$(QuoteNode(".repeat(deep),
        "x = ".repeat(deep) + "1",
        "x => ".repeat(deep) + "1",
        "x - ".repeat(deep) + "1",
        "x".to_owned() + &"()".repeat(deep),
        "x()".to_owned() + &".a".repeat(deep),
        "x".to_owned() + &"::T".repeat(deep),
        "x".to_owned() + &" where T".repeat(deep),
        "x".to_owned() + &"...".repeat(deep),
    ];
    for tower in towers {
        let text = format!("# signature: f()\n1 ─ {tower}\n");
        let found = findings(&text);
        assert_eq!(found.len(), 1, "{}", &tower[..20]);
        assert_eq!(found[0].1, 2);
    }
    let fits = format!("# signature: f()\n1 ─ return {}1{}\n", "(".repeat(150), ",)".repeat(150));
    assert_eq!(findings(&fits), []);
    let too_deep = MAX_DEPTH as usize + 1;
    let over = format!("# signature: f()\n1 ─ return {}1{}\n", "(".repeat(too_deep), ")".repeat(too_deep));
    assert_eq!(findings(&over), [("syntax-depth", 2)]);
}

#[test]
fn bytes_that_are_no_text_have_a_place() {
    let Err(error) = from_bytes("t", b"# fine\nf\xff\n") else { panic!() };
    let NotText::InvalidUtf8 { source, diagnostic } = *error else { panic!() };
    let at = source.position(diagnostic.at.start);
    assert_eq!((at.line, at.column), (2, 2));
}

#[test]
fn damaged_text_is_answered() {
    let texts: Vec<Vec<u8>> = corpus().into_iter().map(|(_, text)| text.into_bytes()).collect();
    let mut random = Random(20_250_101);
    let mut refused = 0;
    let begin = Instant::now();
    for _ in 0..10_000 {
        let bytes = damage(&mut random, &texts);
        let text = String::from_utf8_lossy(&bytes);
        let source = SourceFile::new("t", text).unwrap();
        let (_, found) = parse(&source);
        refused += usize::from(found.has_errors());
        for diagnostic in &found {
            assert!(
                diagnostic.at.end as usize <= source.text().len() && diagnostic.at.start <= diagnostic.at.end
            );
            assert!(!diagnostic.render(&source, &Style::PLAIN).is_empty());
        }
    }
    assert!(refused > 5_000, "only {refused} of the damaged texts were refused");
    // Generous: the texts total some 60 MB, and test machines are busy.
    assert!(begin.elapsed() < Duration::from_secs(120));
}
