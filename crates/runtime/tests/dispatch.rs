//! Calls of objects: the run time's operations agree with the interpreter, and methods are chosen as in
//! Julia.

use std::sync::{Arc, Mutex, OnceLock, Weak};

use brolga_interp::{Interp, Options, Outcome, SimMemory, Val};
use brolga_ir::diag::SourceFile;
use brolga_ir::text::{Unit, read, read_call};
use brolga_ir::types::Type;
use brolga_ir::{Context, Module};
use brolga_runtime::heap::{End, HeapOptions, Root, Scope, Stress};
use brolga_runtime::objects::{MethodEntry, MethodRow, Methods, Raised};
use brolga_runtime::{ObjectCallError, Output, Runtime, RuntimeOptions, with_attached};

fn runtime() -> Arc<Runtime> {
    let heap = HeapOptions { poison: true, verify: true, ..HeapOptions::default() };
    Runtime::new(RuntimeOptions { heap, output: Output::Capture, ..RuntimeOptions::default() })
}

fn module(text: &str) -> Module {
    let source = SourceFile::new("t", text).unwrap();
    let (Unit { module, .. }, found) = read(&source, &Context::new());
    assert!(!found.has_errors(), "{text}");
    module
}

fn interp(module: &Module) -> Interp<'_> {
    Interp::new(module, Options::default(), Box::new(SimMemory::default()))
}

/// Callee and arguments of a call, in an interpreter.
fn operands(interp: &mut Interp<'_>, module: &Module, text: &str) -> (Val, Vec<Val>) {
    let read = |text: &str| read_call(&SourceFile::new("call", text).unwrap(), module).ok();
    // Text can name functions that a program declares and a few others; the rest is made here.
    let (name, rest) = text.split_once('(').unwrap();
    let call = read(text).or_else(|| read(&format!("tuple({rest}")));
    let call = call.unwrap_or_else(|| panic!("cannot read {text}"));
    let function = Val::Singleton(module.cx.types.function(module.cx.names.intern(name)));
    let callee = if read(text).is_some() { interp.term(&call.callee).unwrap() } else { function };
    let args = call.args.iter().map(|arg| interp.term(arg).unwrap()).collect();
    (callee, args)
}

/// The result or exception of a call, as text, by the interpreter and by the run time. Objects are copied in
/// and out.
fn both(runtime: &Arc<Runtime>, module: &Module, text: &str) -> (String, String) {
    let mut one = interp(module);
    let (callee, args) = operands(&mut one, module, text);
    let expected = match one.call_value(callee, &args) {
        Ok(val) => one.show(&val).unwrap(),
        Err(Outcome::Thrown(val)) => one.show_error(&val).unwrap(),
        Err(outcome) => one.describe(&outcome),
    };
    let mut two = interp(module);
    let (callee, args) = operands(&mut two, module, text);
    let found = runtime
        .enter(|scope| {
            let callee = scope.copy_in(&mut two, &callee).unwrap();
            let args: Vec<_> = args.iter().map(|arg| scope.copy_in(&mut two, arg).unwrap()).collect();
            match runtime.call(scope, callee, &args) {
                Ok(result) => {
                    let val = scope.copy_out(&mut two, result.get(scope)).unwrap();
                    let (shown, again) = (scope.show(result.get(scope)), two.show(&val).unwrap());
                    assert_eq!(shown, again, "{text}, as a value");
                    shown
                }
                Err(error) => error.to_string(),
            }
        })
        .unwrap();
    (expected, found)
}

const DECLARATIONS: &str = "\
mutable struct Node
    next::Union{Nothing, Node}
    val::Int64
end

struct Pt
    x::Float64
    y::Union{Nothing, Int8}
    tag::String
end

mutable struct At
    const c::Int64
    @atomic a::Int64
    any::Any
end
";

#[test]
fn calls_without_a_method_agree_with_the_interpreter() {
    let (runtime, module) = (runtime(), module(DECLARATIONS));
    runtime.heap().set_stress(Stress::EverySafepoint);
    let calls = "
        +(1, 2)
        +(1, 2.5, 0x03)
        -(5)
        -(true)
        *(0x02, -3)
        /(7, 2)
        div(7, -2)
        div(1, 0)
        rem(-7, 3)
        <(1, 1.5)
        ==(9007199254740993, 9007199254740992.0)
        ==(\"a\", \"a\")
        !=(:a, :b)
        !(true)
        ~(0x0f)
        &(12, 10)
        xor(true, false)
        abs(-3)
        abs(-0.0)
        min(1, 2.5)
        max(0x01, -1)
        +(1, \"a\")
        undefined_function(1, \"a\")
        Int64(2.0)
        Int64(2.5)
        Int8(300)
        Float32(1)
        Bool(1)
        Char(1)
        Node(nothing, 3)
        Node(nothing, 3.0)
        Node(nothing, 3.5)
        Node(1, 2)
        Node(1)
        Pt(1, nothing, \"t\")
        tuple(1, \"a\", :b, nothing, (2, 3.0f0))
        tuple()
        ===(1, 1)
        ===(1, 1.0)
        ===((1, \"a\"), (1, \"a\"))
        ===([1], [1])
        typeof(1)
        typeof([1.0])
        typeof((1, \"a\"))
        typeof(Int64)
        isa(1, Number)
        isa(1, Union{Nothing, Int64})
        isa(Int64, Type{Int64})
        isa(1, 2)
        <:(Int64, Number)
        <:(Vector{Int64}, Vector{Number})
        typeassert(1, Int64)
        typeassert(1, String)
        typeassert(1, 1)
        sizeof(1)
        sizeof(\"abc\")
        sizeof([1, 2, 3])
        sizeof(Int32)
        sizeof(Any)
        sizeof(:abc)
        nfields((1, 2, 3))
        nfields(5)
        fieldtype(Pt, 2)
        fieldtype(Pt, :x)
        fieldtype(Pt, :nope)
        fieldtype(Pt, 9)
        ifelse(true, 1, 2)
        ifelse(1, 1, 2)
        getfield((1, 2.5), 2)
        getfield((1, 2.5), 3)
        getfield(Pt(1.0, nothing, \"t\"), :tag)
        getfield(Pt(1.0, nothing, \"t\"), :y)
        getfield(Pt(1.0, nothing, \"t\"), :z)
        getfield(Pt(1.0, nothing, \"t\"), 0)
        getfield(Pt(1.0, nothing, \"t\"), \"x\")
        getfield(5, 1)
        getfield([1, 2, 3], :size)
        getfield([1, 2, 3], :ref)
        getfield([1, 2, 3], :nope)
        getfield(At(1, 2, 3), :a)
        getfield(At(1, 2, 3), :a, :monotonic)
        getfield(At(1, 2, 3), :c, :monotonic)
        getfield(At(1, 2, 3), :a, :wrong)
        setfield!(Node(nothing, 1), :val, 5)
        setfield!(Node(nothing, 1), :val, 5.0)
        setfield!(Node(nothing, 1), 3, 5)
        setfield!(At(1, 2, 3), :c, 5)
        setfield!(Pt(1.0, nothing, \"t\"), :x, 2.0)
        swapfield!(Node(nothing, 1), :val, 5)
        replacefield!(Node(nothing, 1), :val, 1, 6)
        replacefield!(Node(nothing, 1), :val, 2, 6)
        modifyfield!(Node(nothing, 1), :val, +, 6)
        setfieldonce!(At(1, 2, 3), :any, 6)
        isdefined(Node(nothing, 1), :next)
        isdefined(Node(nothing, 1), :nope)
        isdefined((1, 2), 3)
        arrayref(true, [1, 2, 3], 2)
        arrayref(true, [1, 2, 3], 4)
        arrayref(true, [1 2; 3 4], 1, 2)
        arrayref(true, [1 2; 3 4], 3, 1)
        arrayset(true, [1, 2, 3], 9, 2)
        arrayset(true, [1, 2, 3], 9.5, 2)
        arrayset(true, Any[1, 2.5, nothing], \"x\", 2)
        arraylen([1 2; 3 4])
        arraysize([1 2 3; 4 5 6], 2)
        arraysize([1 2 3; 4 5 6], 7)
        arraysize([1 2 3; 4 5 6], 0)
        memorynew(Memory{Int64}, 3)
        memorynew(Memory{String}, 2)
        memorynew(Memory{Int64}, -1)
        memorynew(Memory{Int64}, 2.0)
        invokelatest(+, 1, 2)
        _apply_iterate(tuple, +, (1, 2), [3, 4], (5,))
        _apply_iterate(tuple, tuple, [1.5, 2.5], Any[:a, \"b\"])
        _apply_iterate(tuple, invokelatest, (+, 1), (2,))
        applicable(+, 1)
        throw(5)
        throw(:a)
        throw((1, 2))
        error(\"no \", 5, :x)
        error()
        throw_boundserror([1, 2], 5)
        throw_boundserror([1, 2], (5,))
        throw_boundserror([1, 2], (5, 6))
        throw_overflowerr_binaryop(:+, 1, 2)
        throw_inexacterror(:trunc, Int64, 1.5)
        throw_complex_domainerror(:sqrt, -1.0)
        throw_domerr_powbysq(2, -1)
        throw_methoderror(+, 1, \"a\")
        rethrow()
        add_int(1, 2)
        slt_int(1, 2)
        checked_sadd_int(9223372036854775807, 1)
        sitofp(Float64, 3)
        trunc_int(Int8, 513)
        checked_sdiv_int(1, 0)
        add_int(1)
        donotdelete(1, 2)
        compilerbarrier(:type, 5)
        apply_type(Vector, Int64)
        apply_type(Array, Int64, 2)
    ";
    let mut wrong = Vec::new();
    for call in calls.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (expected, found) = both(&runtime, &module, call);
        if expected != found {
            wrong.push(format!("{call}\n  interpreter {expected}\n  run time    {found}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn cyclic_and_shared_values_go_there_and_back() {
    let (runtime, module) = (runtime(), module(DECLARATIONS));
    let types = &module.cx.types;
    let node = types.find_decl(module.cx.names.intern("Node")).unwrap();
    let node = types.nominal(node, &[]).unwrap();
    let mut interp = interp(&module);
    let a = interp.blank_struct(node).unwrap();
    let b = interp.blank_struct(node).unwrap();
    interp.set_part(&a, 0, b.clone()).unwrap();
    interp.set_part(&b, 0, a.clone()).unwrap();
    let shared = interp.array(Type::ANY, &[3], &[a.clone(), b, a]).unwrap();
    let outer = interp.tuple(&[shared.clone(), shared]).unwrap();
    let text = interp.show(&outer).unwrap();
    runtime
        .enter(|scope| {
            let copy = scope.copy_in(&mut interp, &outer).unwrap();
            scope.collect();
            assert_eq!(scope.show(copy.get(scope)), text);
            let arrays = [0, 1].map(|index| {
                let root = scope.load_field(copy, index).unwrap().unwrap();
                root.get(scope).address()
            });
            assert_eq!(arrays[0], arrays[1], "what was shared is shared");
            let back = scope.copy_out(&mut interp, copy.get(scope)).unwrap();
            assert_eq!(interp.show(&back).unwrap(), text);
            assert!(interp.is_equal(&back, &outer).unwrap());
        })
        .unwrap();
}

#[test]
fn a_list_of_many_immutable_values_is_copied_without_recursion() {
    let (runtime, module) = (runtime(), module(""));
    let mut interp = interp(&module);
    let some = module.cx.types.find_decl(module.cx.names.intern("Some")).unwrap();
    let some = module.cx.types.nominal(some, &[Type::ANY]).unwrap();
    let mut list = Val::NOTHING;
    for _ in 0..100_000 {
        list = Val::aggregate(some, vec![Some(list)]);
    }
    runtime
        .enter(|scope| {
            let copy = scope.copy_in(&mut interp, &list).unwrap();
            let back = scope.copy_out(&mut interp, copy.get(scope)).unwrap();
            assert!(interp.is_equal(&list, &back).unwrap());
        })
        .unwrap();
}

/// Methods of `f` that return their number.
fn numbered(runtime: &Runtime, cx: &Arc<Context>, rows: &[(&[Type], Option<Type>)]) -> Methods {
    let function = cx.types.function(cx.names.intern("f"));
    let rows = rows.iter().enumerate().map(|(number, (args, rest))| MethodRow {
        function,
        args: args.to_vec(),
        rest: *rest,
        statics: brolga_ir::types::Statics::default(),
        name: format!("f#{number}"),
        entry: MethodEntry::host(move |scope, _| Ok(scope.int(number as i64).unwrap())),
    });
    runtime.add_methods(cx, rows).unwrap()
}

fn call_f(runtime: &Arc<Runtime>, cx: &Arc<Context>, args: &[f64]) -> Result<i64, String> {
    let f = cx.types.function(cx.names.intern("f"));
    let float = runtime.heap().describe(cx, Type::FLOAT64).unwrap();
    runtime
        .enter(|scope| {
            let f = runtime.heap().type_object(cx, f).unwrap();
            let f = scope.instance(&f).unwrap();
            // Integers are passed as `Int64`.
            let args: Vec<Root<'_, '_>> = args
                .iter()
                .map(|&x| match x.fract() == 0.0 {
                    true => scope.int(x as i64).unwrap(),
                    false => scope.boxed(&float, x).unwrap(),
                })
                .collect();
            match runtime.call(scope, f, &args) {
                Ok(result) => Ok(result.get(scope).unboxed::<i64>().unwrap()),
                Err(error) => Err(error.to_string()),
            }
        })
        .unwrap()
}

#[test]
fn the_most_specific_method_is_called() {
    let (runtime, cx) = (runtime(), Context::new());
    let named = |name: &str| {
        let decl = cx.types.find_decl(cx.names.intern(name)).unwrap();
        cx.types.nominal(decl, &[]).unwrap()
    };
    let (number, int) = (named("Number"), Type::INT64);
    let _methods = numbered(
        &runtime,
        &cx,
        &[
            (&[Type::ANY], None),
            (&[number], None),
            (&[int], None),
            (&[number, int], None),
            (&[int, number], None),
            (&[], Some(Type::ANY)),
            (&[int], Some(int)),
        ],
    );
    assert_eq!(call_f(&runtime, &cx, &[1.0]), Ok(2));
    assert_eq!(call_f(&runtime, &cx, &[1.5]), Ok(1));
    assert_eq!(call_f(&runtime, &cx, &[1.5, 1.0]), Ok(3));
    assert_eq!(call_f(&runtime, &cx, &[1.0, 1.5]), Ok(4));
    assert_eq!(call_f(&runtime, &cx, &[]), Ok(5));
    assert_eq!(call_f(&runtime, &cx, &[1.0, 1.0, 1.0]), Ok(6));
    assert_eq!(call_f(&runtime, &cx, &[1.5, 1.5]), Ok(5));
    // Twice, so that the cached answer is tested too.
    for _ in 0..2 {
        let ambiguous = call_f(&runtime, &cx, &[1.0, 1.0]);
        assert_eq!(ambiguous, Err("MethodError: f(::Int64, ::Int64) is ambiguous".into()));
    }
}

#[test]
fn the_method_of_a_call_can_be_asked_for() {
    let (runtime, cx) = (runtime(), Context::new());
    let int = Type::INT64;
    let _methods = numbered(&runtime, &cx, &[(&[Type::ANY, int], None), (&[int, Type::ANY], None)]);
    let f = runtime.heap().type_object(&cx, cx.types.function(cx.names.intern("f"))).unwrap();
    runtime
        .enter(|scope| {
            let (f, one) = (scope.instance(&f).unwrap(), scope.int(1).unwrap());
            let text = scope.string(b"a").unwrap();
            let [f, one, text] = [f, one, text].map(|root| root.get(scope));
            assert_eq!(runtime.which(runtime.methods(), f, &[text, one]), Ok(Some("f#0".into())));
            assert_eq!(runtime.which(runtime.methods(), f, &[one, text]), Ok(Some("f#1".into())));
            assert_eq!(runtime.which(runtime.methods(), f, &[text]), Ok(None));
            let ambiguous = runtime.which(runtime.methods(), f, &[one, one]).unwrap_err();
            assert_eq!((ambiguous.first.as_str(), ambiguous.second.as_str()), ("f#0", "f#1"));
        })
        .unwrap();
}

#[test]
fn methods_come_and_go() {
    let (runtime, cx) = (runtime(), Context::new());
    let first = numbered(&runtime, &cx, &[(&[Type::ANY], None)]);
    assert_eq!(call_f(&runtime, &cx, &[1.0]), Ok(0));
    let second = numbered(&runtime, &cx, &[(&[Type::INT8], None), (&[Type::ANY], None)]);
    assert_eq!(call_f(&runtime, &cx, &[1.0]), Ok(1), "the later one counts");
    drop(second);
    assert_eq!(call_f(&runtime, &cx, &[1.0]), Ok(0));
    drop(first);
    let missing = call_f(&runtime, &cx, &[1.0, 1.5]);
    assert_eq!(missing, Err("MethodError: no method matching f(::Int64, ::Float64)".into()));
}

#[test]
fn closures_and_types_are_called_by_their_methods() {
    let (runtime, module) = (runtime(), module(DECLARATIONS));
    let cx = &module.cx;
    let node = cx.types.find_decl(cx.names.intern("Node")).unwrap();
    let node = cx.types.nominal(node, &[]).unwrap();
    let of_node = cx.types.type_of(node).unwrap();
    let row = |function, name: &str| MethodRow {
        function,
        args: vec![Type::ANY],
        rest: None,
        statics: brolga_ir::types::Statics::default(),
        name: name.into(),
        entry: MethodEntry::host(|scope, all| {
            scope.collect();
            scope.tuple(&[all[1], all[0]])
        }),
    };
    let _methods = runtime.add_methods(cx, [row(node, "(::Node)(Any)"), row(of_node, "Node(Any)")]).unwrap();
    let mut interp = interp(&module);
    runtime
        .enter(|scope| {
            let desc = runtime.heap().describe(cx, node).unwrap();
            let object = scope.object(&desc).unwrap();
            let arg = scope.string(b"a").unwrap();
            let result = runtime.call(scope, object, &[arg]).unwrap();
            assert_eq!(
                scope.show(result.get(scope)),
                r#"("a", Node(nothing, 0))"#.replace("nothing", "#undef")
            );
            let ty = Val::Type(node);
            let ty = scope.copy_in(&mut interp, &ty).unwrap();
            let result = runtime.call(scope, ty, &[arg]).unwrap();
            assert_eq!(scope.show(result.get(scope)), r#"("a", Node)"#);
        })
        .unwrap();
}

#[test]
fn a_panic_of_the_host_is_an_exception() {
    let (runtime, cx) = (runtime(), Context::new());
    let f = cx.types.function(cx.names.intern("f"));
    let count = Mutex::new(0);
    let row = MethodRow {
        function: f,
        args: vec![Type::ANY],
        rest: None,
        statics: brolga_ir::types::Statics::default(),
        name: "f(Any)".into(),
        entry: MethodEntry::host(move |scope, all| {
            // An exception overtaken by the panic is dropped.
            let _ = scope.throw(all[1].get(scope));
            let calls = std::mem::replace(&mut *count.lock().unwrap(), 1);
            assert!(calls > 0, "not yet");
            Err(scope.throw_error("done"))
        }),
    };
    let _methods = runtime.add_methods(&cx, [row]).unwrap();
    assert_eq!(call_f(&runtime, &cx, &[1.0]), Err("a function of the host panicked: not yet".into()));
    assert_eq!(call_f(&runtime, &cx, &[1.0]), Err("done".into()));
}

#[test]
fn a_chain_of_builtins_that_call_uses_no_stack() {
    let runtime = runtime();
    let module = module("");
    let cx = &module.cx;
    let mut interp = interp(&module);
    let result = runtime
        .enter(|scope| {
            let function = |name: &str| Val::Singleton(cx.types.function(cx.names.intern(name)));
            let latest = scope.copy_in(&mut interp, &function("invokelatest")).unwrap();
            let plus = scope.copy_in(&mut interp, &function("+")).unwrap();
            let one = scope.int(1).unwrap();
            let mut args = vec![latest; 20_000];
            args.extend([plus, one, one]);
            let result = runtime.call(scope, latest, &args);
            result.map(|root| root.get(scope).unboxed::<i64>().unwrap())
        })
        .unwrap();
    assert_eq!(result, Ok(2));
    let other = Runtime::new(RuntimeOptions::default());
    let refused = other.enter(|scope| {
        let one = scope.int(1).unwrap();
        runtime.call(scope, one, &[]).map(|_| ())
    });
    assert_eq!(refused, Ok(Err(ObjectCallError::OtherRuntime)));
}

/// The work of one thread: it makes objects, calls methods and operators on them, throws some, catches them,
/// and lets others collect. Returns the sum of its results.
fn call_and_throw(runtime: &Arc<Runtime>, cx: &Arc<Context>, rounds: i64) -> i64 {
    let function = |name: &str| {
        let ty = cx.types.function(cx.names.intern(name));
        runtime.heap().type_object(cx, ty).unwrap()
    };
    let (f, plus) = (function("f"), function("+"));
    runtime
        .enter(|scope| {
            let (f, plus) = (scope.instance(&f).unwrap(), scope.instance(&plus).unwrap());
            let mut sum = 0;
            for round in 0..rounds {
                sum += scope.frame(|scope| {
                    let number = scope.int(round * 1000).unwrap();
                    let pair = scope.tuple(&[number, number]).unwrap();
                    let [f, plus] = [f, plus].map(|root| scope.root(root.get(scope)));
                    match runtime.call(scope, f, &[pair]) {
                        Ok(first) => {
                            let twice = runtime.call(scope, plus, &[first, number]).unwrap();
                            twice.get(scope).unboxed::<i64>().unwrap()
                        }
                        Err(ObjectCallError::Exception(exception)) => {
                            let thrown = scope.get_persistent(exception.object().unwrap()).unwrap();
                            let thrown = scope.root(thrown);
                            let first = scope.load_field(thrown, 0).unwrap().unwrap();
                            -first.get(scope).unboxed::<i64>().unwrap()
                        }
                        Err(error) => panic!("{error}"),
                    }
                });
            }
            sum
        })
        .unwrap()
}

#[test]
fn threads_call_and_throw_while_others_collect() {
    let heap = HeapOptions { initial: 1 << 20, stress: Stress::Every(500), ..HeapOptions::default() };
    let heap = HeapOptions { poison: true, verify: true, ..heap };
    let runtime = Runtime::new(RuntimeOptions { heap, output: Output::Capture, ..RuntimeOptions::default() });
    let cx = Context::new();
    let row = MethodRow {
        function: cx.types.function(cx.names.intern("f")),
        args: vec![Type::ANY],
        rest: None,
        statics: brolga_ir::types::Statics::default(),
        name: "f(Any)".into(),
        // Every third pair is thrown, the others return their first element.
        entry: MethodEntry::host(|scope, all| {
            let first = scope.load_field(all[1], 0)?.unwrap();
            let number = first.get(scope).unboxed::<i64>().unwrap();
            if number / 1000 % 3 == 0 { Err(scope.throw(all[1].get(scope))) } else { Ok(first) }
        }),
    };
    let _methods = runtime.add_methods(&cx, [row]).unwrap();
    const ROUNDS: i64 = 3_000;
    let expected: i64 = (0..ROUNDS).map(|n| if n % 3 == 0 { -n * 1000 } else { 2 * n * 1000 }).sum();
    std::thread::scope(|threads| {
        for _ in 0..4 {
            threads.spawn(|| assert_eq!(call_and_throw(&runtime, &cx, ROUNDS), expected));
        }
    });
    runtime.enter(|scope| scope.collect()).unwrap();
    assert_eq!(runtime.heap().stats().live_objects, 0);
    assert!(runtime.heap().stats().minor_collections + runtime.heap().stats().full_collections > 10);
}

/// A runtime with one host function `f`.
fn with_host_f(
    body: impl for<'f, 'h> Fn(&mut Scope<'f, 'h>, &[Root<'f, 'h>]) -> Result<Root<'f, 'h>, Raised>
    + Send
    + Sync
    + 'static,
) -> (Arc<Runtime>, Arc<Context>, Methods) {
    let (runtime, cx) = (runtime(), Context::new());
    let function = cx.types.function(cx.names.intern("f"));
    let (args, name, entry) = (vec![Type::ANY], "f(Any)", MethodEntry::host(body));
    let methods = runtime.add_methods(&cx, [MethodRow::new(function, args, name, entry)]).unwrap();
    (runtime, cx, methods)
}

#[test]
fn a_function_of_the_host_leaves_no_exception_behind_and_throws_none_of_others() {
    // It propagates past two exceptions, and neither of them remains.
    let (runtime, cx, _methods) = with_host_f(|scope, all| {
        let _ = (scope.throw_error("one"), scope.throw_error("two"));
        Ok(all[1])
    });
    assert_eq!(call_f(&runtime, &cx, &[3.0]), Ok(3));
    assert!(with_attached(&runtime, |thread| thread.enter().outer_exceptions()).unwrap() == 0);

    // It keeps a `Raised` and returns it in a later call, in which nothing is pending.
    let kept = Mutex::new(None);
    let (runtime, cx, _methods) = with_host_f(move |scope, all| {
        let mut kept = kept.lock().unwrap();
        match *kept {
            Some(raised) => Err(raised),
            None => {
                *kept = Some(scope.throw_error("of the first call"));
                Ok(all[1])
            }
        }
    });
    assert_eq!(call_f(&runtime, &cx, &[4.0]), Ok(4));
    let stale = call_f(&runtime, &cx, &[4.0]);
    assert_eq!(stale, Err("a host function returned an exception that it did not raise".into()));

    // If the host raises several, the last one is thrown; the depth is restored.
    let (runtime, cx, _methods) = with_host_f(|scope, _| {
        let _ = scope.throw_error("one");
        Err(scope.throw_error("two"))
    });
    assert_eq!(call_f(&runtime, &cx, &[1.0]), Err("two".into()));
    assert!(with_attached(&runtime, |thread| thread.enter().outer_exceptions()).unwrap() == 0);
}

#[test]
fn a_function_of_the_host_that_calls_itself_without_end_is_a_stack_overflow() {
    let own = Arc::new(OnceLock::<Weak<Runtime>>::new());
    let known = own.clone();
    let (runtime, cx, _methods) = with_host_f(move |scope, all| {
        let runtime = known.get().and_then(Weak::upgrade).unwrap();
        runtime.call(scope, all[0], &all[1..]).map_err(|error| scope.throw_error(&error.to_string()))
    });
    own.set(Arc::downgrade(&runtime)).unwrap();
    let call = move || call_f(&runtime, &cx, &[1.0]);
    let result = std::thread::Builder::new().stack_size(4 << 20).spawn(call).unwrap().join().unwrap();
    assert!(result.as_ref().is_err_and(|text| text.contains("StackOverflowError")), "{result:?}");
}

#[test]
fn a_wrong_size_of_an_array_is_refused() {
    let (runtime, module) = (runtime(), module(DECLARATIONS));
    let cx = &module.cx;
    let vector = runtime.heap().type_object(cx, cx.types.vector(Type::INT64).unwrap()).unwrap();
    let matrix = cx.types.array(Type::ANY, 2).unwrap();
    let matrix = runtime.heap().type_object(cx, matrix).unwrap();
    for (ty, dims, extents) in [
        (&vector, &[3][..], &[i64::MAX][..]),
        (&vector, &[3], &[-1]),
        (&vector, &[3], &[4]),
        (&matrix, &[2, 2], &[1 << 40, 1 << 40]),
        (&matrix, &[2, 2], &[-1, -4]),
    ] {
        runtime
            .enter(|scope| {
                let setfield = cx.types.function(cx.names.intern("setfield!"));
                let setfield = runtime.heap().type_object(cx, setfield).unwrap();
                let setfield = scope.instance(&setfield).unwrap();
                let array = scope.array(ty, dims).unwrap();
                let extents: Vec<_> = extents.iter().map(|&n| scope.int(n).unwrap()).collect();
                let (name, extents) = (scope.symbol("size"), scope.tuple(&extents).unwrap());
                let before = array.get(scope).length().unwrap();
                let thrown = runtime.call(scope, setfield, &[array, name, extents]).unwrap_err();
                assert!(thrown.to_string().contains("no more elements than its ref can reach"), "{thrown}");
                let text = scope.show(array.get(scope));
                assert!(text.len() < 100, "{text}");
                assert_eq!(array.get(scope).length().unwrap(), before);
                if dims.len() == 1 {
                    let _ = scope.grow(array, End::Front, 1);
                    let _ = scope.delete(array, End::Back, 1);
                    scope.show(array.get(scope));
                }
            })
            .unwrap();
    }
}

#[test]
fn a_field_of_a_raised_exception_is_of_its_type() {
    let (runtime, module) = (runtime(), module(DECLARATIONS));
    let (expected, found) = both(&runtime, &module, "throw_inexacterror(\"text\", 1, 2)");
    assert_eq!(expected, "TypeError: in InexactError, expected Symbol, got a value of type String");
    assert_eq!(found, expected);
    let (expected, found) = both(&runtime, &module, "throw_inexacterror(:text, 1, 2)");
    assert_eq!(found, expected);
}

/// Four threads change one object's atomic fields only by builtins: no change is lost, and none is seen half
/// done.
#[test]
fn atomic_fields_change_in_one_step() {
    let text = "\
mutable struct Shared
    @atomic n::Int64
    @atomic wide::Tuple{Int64, Int64}
    @atomic any::Any
end
";
    let (runtime, module) = (runtime(), module(text));
    let cx = &module.cx;
    let decl = cx.types.find_decl(cx.names.intern("Shared")).unwrap();
    let shared = runtime.heap().type_object(cx, cx.types.nominal(decl, &[]).unwrap()).unwrap();
    let function =
        |name: &str| runtime.heap().type_object(cx, cx.types.function(cx.names.intern(name))).unwrap();
    let [modify, plus, get] = ["modifyfield!", "+", "getfield"].map(function);
    let pair = MethodRow {
        function: cx.types.function(cx.names.intern("next")),
        args: vec![Type::ANY, Type::ANY],
        rest: None,
        statics: brolga_ir::types::Statics::default(),
        name: "next(Any, Any)".into(),
        entry: MethodEntry::host(|scope, all| {
            let parts = [scope.load_field(all[1], 0)?.unwrap(), scope.load_field(all[1], 1)?.unwrap()];
            let [first, second] = parts.map(|part| part.get(scope).unboxed::<i64>().unwrap());
            assert_eq!(first, -second, "half of a change is seen");
            let parts = [first + 1, second - 1].map(|n| scope.int(n).unwrap());
            scope.tuple(&parts)
        }),
    };
    let _methods = runtime.add_methods(cx, [pair]).unwrap();
    let next = function("next");
    const ROUNDS: i64 = 400;
    let kept = runtime.enter(|scope| {
        let object = scope.object(&shared).unwrap();
        let zero = scope.int(0).unwrap();
        scope.set_field(object.get(scope), 2, Some(zero.get(scope))).unwrap();
        scope.persistent(object.get(scope))
    });
    let kept = kept.unwrap();
    let run = || {
        for _ in 0..ROUNDS {
            let done = runtime.enter(|scope| {
                let object = scope.get_persistent(&kept).map(|object| scope.root(object)).unwrap();
                let [modify, plus, next] = [&modify, &plus, &next].map(|ty| scope.instance(ty).unwrap());
                let order = scope.symbol("sequentially_consistent");
                for (field, f, x) in [("n", plus, 1), ("any", plus, 3), ("wide", next, 0)] {
                    let (field, x) = (scope.symbol(field), scope.int(x).unwrap());
                    runtime.call(scope, modify, &[object, field, f, x, order]).unwrap();
                }
            });
            done.unwrap();
        }
    };
    std::thread::scope(|threads| (0..4).for_each(|_| drop(threads.spawn(run))));
    let shown = runtime.enter(|scope| {
        let object = scope.get_persistent(&kept).map(|object| scope.root(object)).unwrap();
        let get = scope.instance(&get).unwrap();
        let order = scope.symbol("acquire");
        ["n", "any", "wide"].map(|field| {
            let field = scope.symbol(field);
            let value = runtime.call(scope, get, &[object, field, order]).unwrap();
            scope.show(value.get(scope))
        })
    });
    assert_eq!(shown.unwrap(), ["1600", "4800", "(1600, -1600)"]);
}
