//! Functions of modules in text and in the binary form: reading restores what was written.

use brolga_ir::diag::SourceFile;
use brolga_ir::text::{read, show_unit};
use brolga_ir::{Context, FunctionName, Module, binary};

fn unit(text: &str) -> brolga_ir::text::Unit {
    let source = SourceFile::new("names.jlir", text).unwrap();
    let (unit, findings) = read(&source, &Context::new());
    assert!(!findings.has_errors(), "{}", findings.iter().map(|d| d.message.clone()).collect::<String>());
    unit
}

fn symbols(module: &Module) -> Vec<String> {
    module.funcs().map(|(_, func)| func.symbol(&module.cx)).collect()
}

const TEXT: &str = r#"
# check: A.g(1) == 1
# check: Base.twist(1) == 1
# check: Base.:+(1) == 1
# check: A.:+(1) == 1
# check: f(1) == 1
function A.g(x::Int64)::Int64
1 ─      return x
end
function Main.var"odd module".var"a.b"(x::Int64)::Int64
1 ─      return x
end
function var"A.g"(x::Int64)::Int64
1 ─      return x
end
function Base.twist(x::Int64)::Int64
1 ─      return x
end
function Base.Iterators.filter(x::Int64)::Int64
1 ─      return x
end
function Base.:+(x::Int64)::Int64
1 ─      return x
end
function A.:+(x::Int64)::Int64
1 ─      return x
end
function Main.f(x::Int64)::Int64
1 ─ %1 = invoke A.g(x::Int64)::Int64
│   %2 = invoke Main.A.g(%1::Int64)::Int64
│   %3 = invoke Base.Math.twist(%2::Int64)::Int64
│   %4 = invoke Main.twist(%3::Int64)::Int64
│   %5 = invoke var"odd module".var"a.b"(%4::Int64)::Int64
│   %6 = invoke Base.Iterators.filter(%5::Int64)::Int64
│   %7 = dynamic A.:+(%6)::Any
│   %8 = dynamic Main.:+(%7)::Any
│   %9 = invoke Main.var"A.g"(%6::Int64)::Int64
│   %10 = invoke f(%9::Int64)::Int64
└──      return %10
end
function h(a::typeof(A.g), b::typeof(Base.twist), c::typeof(f), d::typeof(Base.:+), e::typeof(Core.throw))::Any
1 ─ %1 = dynamic Main.h(A.g, Base.twist, Main.f, Main.:+, Core.throw)::Any
└──      return %1
end
"#;

#[test]
fn text_and_binary_keep_modules() {
    let first = unit(TEXT);
    let expected = [
        "A.g(Int64)",
        "var\"odd module\".var\"a.b\"(Int64)",
        "var\"A.g\"(Int64)",
        "Base.twist(Int64)",
        "Base.Iterators.filter(Int64)",
        "Base.var\"+\"(Int64)",
        "A.var\"+\"(Int64)",
        "f(Int64)",
        "h(typeof(A.g), typeof(Base.twist), typeof(f), typeof(Base.var\"+\"), typeof(Base.throw))",
    ];
    assert_eq!(symbols(&first.module), expected);
    let printed = show_unit(&first).to_string();
    for line in [
        "# check: A.g(1) == 1",
        "# check: Base.:+(1) == 1",
        "function A.g(x::Int64)::Int64",
        "function var\"odd module\".var\"a.b\"(x::Int64)::Int64",
        "function Base.:+(x::Int64)::Int64",
        "invoke A.g(%1::Int64)",
        "invoke Base.twist(%3::Int64)",
        "dynamic Base.:+(%7)",
        "invoke Main.var\"A.g\"(%6::Int64)",
        "invoke Main.f(%9::Int64)",
    ] {
        assert!(printed.contains(line), "{line} in\n{printed}");
    }
    let again = unit(&printed);
    assert_eq!(show_unit(&again).to_string(), printed);
    assert_eq!(symbols(&again.module), expected);
    let bytes = binary::write(&first.module);
    let decoded = binary::read(&bytes, Context::new()).unwrap();
    assert_eq!(symbols(&decoded), expected);
    assert_eq!(binary::write(&decoded), bytes);
}

#[test]
fn a_module_makes_another_function() {
    let cx = Context::new();
    let of = |text: &str| cx.types.function_of(text);
    assert_eq!(of("f"), cx.types.function(cx.names.intern("f")));
    assert_eq!(of("Main.f"), of("f"));
    assert_ne!(of("A.f"), of("f"));
    assert_ne!(of("A.f"), of("B.f"));
    assert_ne!(of("Base.f"), of("f"));
    assert_eq!(of("Core.Intrinsics.f"), of("Base.f"));
    assert_ne!(FunctionName::parse(&cx.names, "A.f"), FunctionName::parse(&cx.names, "f"));
}
