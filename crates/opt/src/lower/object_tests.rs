//! The shapes of low IR for objects that root placement and code generation rely on.
//!
//! Its meaning is tested natively: the text tests `tests/filetests/run/objects-*`.

use super::{Options, boxed_entry, lower};
use brolga_ir::diag::{SourceFile, Style};
use brolga_ir::text::{read, show_func};
use brolga_ir::verify::verify_func;
use brolga_ir::{Context, Module};

const TYPES: &str = "
mutable struct Node
    const key::Int64
    next::Union{Nothing, Node}
    any::Any
end
";

fn module(text: &str) -> Module {
    let source = SourceFile::new("test", format!("{TYPES}{text}")).unwrap();
    let (unit, found) = read(&source, &Context::new());
    assert!(!found.has_errors(), "{}", found.render(&source, &Style::PLAIN));
    unit.module
}

/// The low form of the first function.
fn text_of(text: &str) -> String {
    let module = module(text);
    let (_, func) = module.funcs().next().unwrap();
    let low = lower(&module, func, &Options::default()).unwrap_or_else(|why| panic!("{why}"));
    verify_func(&module.cx, &low).unwrap();
    show_func(&module.cx, &low).to_string()
}

/// The low form of a function with these statements, the last one being `%9`, which is returned.
fn rows(params: &str, result: &str, rows: &[&str]) -> String {
    let body: String = rows
        .iter()
        .enumerate()
        .map(|(n, row)| {
            let rail = if n == 0 { "1 ─" } else { "│  " };
            format!("{rail} {row}\n")
        })
        .collect();
    text_of(&format!("function f({params})::{result}\n{body}└──      return %9\nend\n"))
}

#[test]
fn a_new_object_needs_no_barrier_and_an_old_one_does() {
    let new = rows("n::Node", "Node", &["%9 = %new(Node, 1, n, n)::Node"]);
    assert!(new.contains("alloc(Node)") && !new.contains("write_barrier"), "{new}");
    assert!(
        new.contains("offset = 0, region = immutable") && new.contains("offset = 8, region = field"),
        "{new}"
    );
    let old = rows("n::Node, m::Node", "Node", &["%9 = Base.setfield!(n, :next, m)::Node"]);
    assert!(old.contains("write_barrier(_1, _2)"), "{old}");
    let permanent = rows("n::Node", "Nothing", &["%9 = Base.setfield!(n, :next, nothing)::Nothing"]);
    assert!(!permanent.contains("write_barrier"), "{permanent}");
}

#[test]
fn a_field_that_may_be_undefined_is_tested() {
    let tested = rows("n::Node", "Any", &["%9 = Base.getfield(n, :any)::Any"]);
    assert!(tested.contains("brolga_throw_undef_ref()"), "{tested}");
    let bits = rows("n::Node", "Int64", &["%9 = Base.getfield(n, :key)::Int64"]);
    assert!(!bits.contains("brolga_throw") && bits.contains("region = immutable"), "{bits}");
}

#[test]
fn constants_truths_and_ghosts_become_permanent_objects() {
    for (params, value, object) in [
        ("", "7", "boxed_addr(Int64, 7)"),
        ("b::Bool", "b", "boxed_addr(Bool, 1)"),
        ("", "nothing", "instance_addr(Nothing)"),
        ("", "Int64", "type_addr(Int64)"),
        ("", ":x", "symbol_addr(:x)"),
        ("", "Main", "module_addr(:Main)"),
        ("", "\"x\"", "string_addr(\"x\")"),
    ] {
        let shown = text_of(&format!("function f({params})::Any\n1 ─      return {value}\nend\n"));
        assert!(shown.contains(object) && !shown.contains("alloc("), "{shown}");
    }
    let number = text_of("function f(x::Int64)::Any\n1 ─      return x\nend\n");
    // A small number is found by its distance from the first permanent box.
    assert!(number.contains("boxed_addr(Int64, 18446744073709551104)"), "{number}");
    assert!(number.contains("alloc(Int64)"), "{number}");
    let float = text_of("function f(x::Float64)::Any\n1 ─      return x\nend\n");
    assert!(float.contains("alloc(Float64)"), "{float}");
}

#[test]
fn type_tests_look_at_the_tag_or_at_the_object() {
    let tag = rows("x::Any", "Bool", &["%9 = (x isa Float64)::Bool"]);
    assert!(tag.contains("type_of(_1)") && tag.contains("type_addr(Float64)"), "{tag}");
    let nothing = rows("x::Any", "Bool", &["%9 = (x === nothing)::Bool"]);
    assert!(nothing.contains("instance_addr(Nothing)") && !nothing.contains("type_of"), "{nothing}");
    let other = rows("x::Union{Nothing, Node}", "Bool", &["%9 = (x isa Node)::Bool"]);
    assert!(other.contains("instance_addr(Nothing)") && !other.contains("type_of"), "{other}");
    let number = rows("x::Any", "Bool", &["%9 = (x isa Integer)::Bool"]);
    assert!(number.contains("brolga_isa(_1, type_addr(Integer))"), "{number}");
}

#[test]
fn every_element_access_names_what_keeps_it_alive() {
    let load = rows("a::Vector{Any}, i::Int64", "Any", &["%9 = Base.arrayref(false, a, i)::Any"]);
    assert!(load.contains("gc_loaded(") && load.contains("region = element"), "{load}");
    let store =
        rows("m::MemoryRef{Any}, x::Any", "Any", &["%9 = Base.memoryrefset!(m, x, :not_atomic, false)::Any"]);
    assert!(store.contains("gc_loaded(_2, _1)") && store.contains("write_barrier(_2, _3)"), "{store}");
    let union = rows(
        "m::MemoryRef{Union{Nothing, Int64}}",
        "Union{Nothing, Int64}",
        &["%9 = Base.memoryrefget(m, :not_atomic, false)::Union{Nothing, Int64}"],
    );
    assert_eq!(union.matches("gc_loaded(").count(), 2, "{union}");
}

#[test]
fn values_for_a_handler_go_through_slots() {
    let shown = text_of(
        "function f(x::Any, d::Int64)::Any
1 ─ %1 = ϒ (x)::Any
└── %2 = enter #3
2 ─ %3 = Base.checked_sdiv_int(1, d)::Int64
│        $(Expr(:leave, :(%2)))
└──      return %3
3 ─ %6 = φᶜ (%1)::Any
│   %7 = $(Expr(:the_exception))::Any
│        $(Expr(:pop_exception, :(%2)))::Nothing
└──      return %6
end
",
    );
    assert!(shown.contains("tracked = true"), "{shown}");
    let order = [
        "brolga_exception_depth()",
        "enter #",
        "(:leave",
        "brolga_current_exception()",
        "brolga_pop_exception(",
    ];
    let places: Vec<Option<usize>> = order.iter().map(|part| shown.find(part)).collect();
    assert!(places.is_sorted() && places.iter().all(Option::is_some), "{shown}");
}

#[test]
fn a_call_by_dispatch_and_the_entry_that_it_reaches() {
    let call = rows("g::Any, x::Float64", "Any", &["%9 = g(x, 1)::Any"]);
    assert!(call.contains("call_args(brolga_apply, _1, "), "{call}");
    let module = module("function f(x::Float64, rest::Any...)::Float64\n1 ─      return x\nend\n");
    let (id, _) = module.funcs().next().unwrap();
    let entry = boxed_entry(&module, id).unwrap();
    verify_func(&module.cx, &entry).unwrap();
    let shown = show_func(&module.cx, &entry).to_string();
    assert!(shown.contains("#boxed\"(::ptr, ::i64)::tracked"), "{shown}");
    assert!(shown.contains("load(_1; offset = 8, region = frame, align = 8)::tracked"), "{shown}");
    assert!(shown.contains("brolga_tuple(") && shown.contains("alloc(Float64)"), "{shown}");
}

/// A loop that carries its value as a number over one edge and as an object over the other, with these rows in it and after it.
fn iteration(within: &str, behind: &str) -> String {
    text_of(&format!(
        "function f(x::Any, g::Any)::Any
1 ─      goto #2
2 ┄ %1 = φ (#1 => x, #5 => %6)::Any
│   %2 = (%1 isa Float64)::Bool
└──      goto #4 if not %2
3 ─ %3 = π (%1, Float64)
│   %4 = Base.add_float(%3, 1.5)::Float64
└──      goto #5
4 ─ %5 = g(%1, 1.5)::Any
└──      goto #5
5 ┄ %6 = φ (#3 => %4, #4 => %5)::Any
│   {within}
│   %7 = Base.lt_float(1.0, 2.0)::Bool
└──      goto #2 if not %7
6 ─ {behind}
└──      return %6
end
"
    ))
}

#[test]
fn a_number_on_one_way_into_a_phi_has_no_box_there() {
    let nothing = "$(Expr(:code_coverage_effect))";
    let shown = iteration(nothing, nothing);
    // One box for the call, and one for the result.
    assert_eq!(shown.matches("alloc(Float64)").count(), 2, "{shown}");
    assert!(shown.contains("::f64") && shown.contains("eq_int("), "{shown}");
    let add = shown.find("add_float").unwrap();
    let next = shown[add..].find("goto").unwrap();
    assert!(!shown[add..add + next].contains("alloc"), "{shown}");
}

#[test]
fn a_phi_that_others_want_as_an_object_is_one() {
    let (nothing, uses) = ("$(Expr(:code_coverage_effect))", ["Base.donotdelete(%6)::Nothing"; 3]);
    let uses = uses.join("\n│   ");
    let within = iteration(&uses, nothing);
    assert_eq!(within.matches("alloc(Float64)").count(), 1, "{within}");
    // After the loop a box costs less than in each of its iterations: one for the call, one for each use, and one for the result.
    let behind = iteration(nothing, &uses);
    assert_eq!(behind.matches("alloc(Float64)").count(), 5, "{behind}");
    let untested = text_of(
        "function f(x::Any, y::Float64, c::Bool)::Any
1 ─      goto #3 if not c
2 ─      goto #3
3 ┄ %1 = φ (#1 => x, #2 => y)::Any
└──      return %1
end
",
    );
    assert!(!untested.contains("eq_int(") && untested.contains("alloc(Float64)"), "{untested}");
}

#[test]
fn an_operand_that_may_be_undefined_is_not_read() {
    let shown = text_of(
        "function f(x::Any, y::Float64)::Bool
1 ─ %1 = ϒ (x)::Any
└── %2 = enter #3
2 ─      $(Expr(:leave, :(%2)))
└──      goto #4
3 ─ %3 = φᶜ (%1)::Any
│        $(Expr(:pop_exception, :(%2)))::Nothing
└──      goto #4
4 ┄ %4 = φ (#2 => y, #3 => %3)::Any
│   %5 = (%4 isa Float64)::Bool
└──      return %5
end
",
    );
    assert!(shown.contains("alloc(Float64)"), "{shown}");
}
