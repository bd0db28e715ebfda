//! The method of a call: the run time and the interpreter against Julia.
//!
//! Each method returns its number. A call without an applicable method, or without a most specific one, is a
//! `MethodError`.

use std::sync::Arc;

use brolga_interp::{Interp, Options, SimMemory};
use brolga_ir::diag::SourceFile;
use brolga_ir::text::{Unit, read, read_call};
use brolga_ir::{Context, Module};
use brolga_runtime::Runtime;
use brolga_runtime::RuntimeOptions;
use brolga_runtime::objects::{MethodEntry, MethodRow, MethodTable, Methods};

/// A module with methods `f` of the given parameters.
fn module(params: &[&str]) -> Module {
    let mut text =
        "struct Two\n    a::Any\n    b::Any\nend\n\nabstract type Shape end\n\nstruct Dot <: Shape\nend\n"
            .to_owned();
    for (number, params) in params.iter().enumerate() {
        text += &format!("\nfunction f({params})::Int64\n1 ─     return {number}\nend\n");
    }
    let source = SourceFile::new("t", &text).unwrap();
    let (Unit { module, .. }, found) = read(&source, &Context::new());
    assert!(!found.has_errors(), "{text}");
    module
}

/// The same methods in their own table.
fn methods(runtime: &Arc<Runtime>, module: &Module) -> (MethodTable, Methods) {
    let table = runtime.method_table();
    let rows = module.funcs().enumerate().map(|(number, (_, func))| {
        let (function, args) = func.sig.params.split_first().unwrap();
        let mut args: Vec<_> = args.iter().map(|param| param.ty).collect();
        let rest = func.sig.vararg.then(|| {
            args.pop();
            module.vararg_element(func)
        });
        let entry = MethodEntry::host(move |scope, _| Ok(scope.int(number as i64).unwrap()));
        MethodRow {
            function: function.ty,
            args,
            rest,
            statics: brolga_ir::types::Statics::default(),
            name: number.to_string(),
            entry,
        }
    });
    let added = runtime.add_methods_to(&table, &module.cx, rows).unwrap();
    (table, added)
}

/// The result of a call by the interpreter and by the run time; `None` is a `MethodError`.
fn both(runtime: &Arc<Runtime>, module: &Module, table: &MethodTable, call: &str) -> [Option<String>; 2] {
    let source = SourceFile::new("call", call).unwrap();
    let call = read_call(&source, module).unwrap_or_else(|_| panic!("cannot read {call}"));
    let mut interp = Interp::new(module, Options::default(), Box::new(SimMemory::default()));
    let callee = interp.term(&call.callee).unwrap();
    let args: Vec<_> = call.args.iter().map(|arg| interp.term(arg).unwrap()).collect();
    let expected = interp.call_value(callee.clone(), &args).ok().map(|val| interp.show(&val).unwrap());
    let found = runtime
        .enter(|scope| {
            let callee = scope.copy_in(&mut interp, &callee).unwrap();
            let args: Vec<_> = args.iter().map(|arg| scope.copy_in(&mut interp, arg).unwrap()).collect();
            // Twice: the cached result is the same.
            let [first, second] = [(); 2].map(|()| {
                let result = runtime.call_in(table, scope, callee, &args);
                result.ok().map(|root| scope.show(root.get(scope)))
            });
            assert_eq!(first, second);
            first
        })
        .unwrap();
    [expected, found]
}

/// The parameters of methods, and calls with the number of the method that each reaches.
type Case = (&'static [&'static str], &'static [(&'static str, Option<usize>)]);

#[test]
fn methods_are_chosen_as_julia_chooses_them() {
    const NONE: Option<usize> = None;
    let cases: &[Case] = &[
        // Subtypes: the closest wins, in any order of definition.
        (
            &["x::Any", "x::Number", "x::Integer", "x::Int64", "x::Real"],
            &[
                ("f(1)", Some(3)),
                ("f(0x01)", Some(2)),
                ("f(1.5)", Some(4)),
                ("f(\"a\")", Some(0)),
                ("f()", NONE),
            ],
        ),
        // In both positions at once: neither is closer in both.
        (
            &["x::Int64, y::Any", "x::Any, y::Int64"],
            &[("f(1, \"a\")", Some(0)), ("f(\"a\", 1)", Some(1)), ("f(1, 1)", NONE), ("f(:a, :b)", NONE)],
        ),
        // A third method below both resolves it; one below only one of them does not.
        (
            &["x::Int64, y::Any", "x::Any, y::Int64", "x::Int64, y::Int64"],
            &[("f(1, 1)", Some(2)), ("f(1, 1.5)", Some(0))],
        ),
        (
            &["x::Number, y::Any", "x::Any, y::Number", "x::Int64, y::Number"],
            &[("f(1, 1)", Some(2)), ("f(1.5, 1)", NONE)],
        ),
        // Collected arguments: fewer are closer, and fixed ones are closer still.
        (
            &["x::Any...", "x::Any", "x::Any, y::Any...", "x::Int64, y::Int64..."],
            &[
                ("f()", Some(0)),
                ("f(\"a\")", Some(1)),
                ("f(\"a\", 1)", Some(2)),
                ("f(1, 1)", Some(3)),
                ("f(1, 1.5)", Some(2)),
                ("f(1, 2, 3)", Some(3)),
            ],
        ),
        (&["x::Int64, y::Any...", "x::Any, y::Int64"], &[("f(1, 1)", NONE), ("f(1, 1.5)", Some(0))]),
        (&["x::Int64...", "x::Number..."], &[("f(1, 2)", Some(0)), ("f(1, 2.0)", Some(1)), ("f()", Some(0))]),
        // Unions are above their members, and incomparable with types that share only some of them.
        (
            &["x::Union{Int64, Float64}", "x::Number", "x::Int64"],
            &[("f(1)", Some(2)), ("f(1.5)", Some(0)), ("f(0x01)", Some(1))],
        ),
        (
            &["x::Union{Int64, String}", "x::Number"],
            &[("f(1)", NONE), ("f(\"a\")", Some(0)), ("f(1.5)", Some(1))],
        ),
        (&["x::Nothing", "x::Union{Nothing, Int64}"], &[("f(nothing)", Some(0)), ("f(1)", Some(1))]),
        // Tuples vary with their elements; arrays do not.
        (
            &["x::Tuple{Any, Any}", "x::Tuple{Int64, Int64}", "x::Tuple{Int64, Any}", "x::Tuple"],
            &[("f((1, 2))", Some(1)), ("f((1, :a))", Some(2)), ("f((:a, 1))", Some(0)), ("f((1,))", Some(3))],
        ),
        (
            &["x::Vector{Number}", "x::Vector{Int64}", "x::Any"],
            &[("f([1, 2])", Some(1)), ("f([1.5])", Some(2))],
        ),
        // Types as arguments.
        (
            &["x::Type{Int64}", "x::DataType", "x::Any"],
            &[("f(Int64)", Some(0)), ("f(String)", Some(1)), ("f(1)", Some(2))],
        ),
        // Types of the program.
        (
            &["x::Shape", "x::Dot", "x::Two"],
            &[("f(Dot())", Some(1)), ("f(Two(1, 2))", Some(2)), ("f(1)", NONE)],
        ),
        // The number of arguments decides first.
        (&["x::Any", "x::Any, y::Any"], &[("f(1)", Some(0)), ("f(1, 2)", Some(1)), ("f(1, 2, 3)", NONE)]),
    ];
    let runtime = Runtime::new(RuntimeOptions::default());
    let mut wrong = Vec::new();
    for (params, calls) in cases {
        let module = module(params);
        let (table, _methods) = methods(&runtime, &module);
        for (call, expected) in *calls {
            let [by_interpreter, by_runtime] = both(&runtime, &module, &table, call);
            let expected = expected.map(|number| number.to_string());
            if by_interpreter != expected || by_runtime != expected {
                wrong.push(format!(
                    "{params:?}\n  {call}: {expected:?}, interpreter {by_interpreter:?}, run time {by_runtime:?}"
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_order_of_definition_decides_nothing_but_between_equals() {
    let runtime = Runtime::new(RuntimeOptions::default());
    let params = ["x::Any", "x::Number", "x::Int64", "x::Union{Int64, Float64}"];
    // All orders of four.
    for order in 0..24 {
        let mut left: Vec<&str> = params.to_vec();
        let mut number = order;
        let ordered: Vec<&str> = (1..=4)
            .rev()
            .map(|count| {
                let taken = left.remove(number % count);
                number /= count;
                taken
            })
            .collect();
        let module = module(&ordered);
        let (table, _methods) = methods(&runtime, &module);
        for (call, expected) in [("f(1)", 2), ("f(1.5)", 3), ("f(0x01)", 1), ("f(:a)", 0)] {
            let found = both(&runtime, &module, &table, call);
            let expected = ordered.iter().position(|&p| p == params[expected]).map(|n| n.to_string());
            assert_eq!(found, [expected.clone(), expected], "{call} of {ordered:?}");
        }
    }
}
