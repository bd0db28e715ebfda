//! The library through the embedder's interface: read, compile, look up, call, drop.

use std::cell::Cell;
use std::thread;

use brolga::executor::{RemoteEngine, RemoteError};
use brolga::host::{Word, WrongArgument};
use brolga::ir::cursor::Cursor;
use brolga::ir::func::{Param, Signature};
use brolga::ir::{Context, Func, Level, Module, Type};
use brolga::opt::Cx;
use brolga::opt::lower::boxed_entry;
use brolga::unstable::Stages;
use brolga::{
    CallError, Engine, Error, Evaluator, ExceptionKind, Fault, LookupError, OptLevel, Options, Output,
    Program, Unit, Verdict,
};

const SOURCE: &str = "
struct Point
    x::Float64
    y::Float64
end
primitive type Odd 24 end
# check: twice(2) == 4
# check: twice(1.5) == 3.0
# check: count(1) == 1
# throws: inverse(0) DivideError
function twice(n::Int64)::Int64
1 ─ %1 = Base.add_int(n, n)::Int64
└──      return %1
end
function twice(x::Float64)::Float64
1 ─ %1 = Base.add_float(x, x)::Float64
└──      return %1
end
function inverse(d::Int64)::Int64
1 ─ %1 = Base.checked_sdiv_int(1000, d)::Int64
└──      return %1
end
function mirrored(t::Tuple{Int64, Bool}, p::Point)::Tuple{Bool, Int64}
1 ─ %1 = Base.getfield(t, 1)::Int64
│   %2 = Base.getfield(t, 2)::Bool
│   %3 = Core.tuple(%2, %1)::Tuple{Bool, Int64}
└──      return %3
end
function count(n::Int64)::Int64
1 ─ %1 = Base.trunc_int(Odd, n)::Odd
│   %2 = Base.zext_int(Int64, %1)::Int64
└──      return %2
end
function keep(c::Odd)::Nothing
1 ─      return nothing
end
function greet(n::Int64)::Nothing
1 ─      invoke Base.println(\"n = \"::String, n::Int64)::Nothing
└──      return nothing
end
";

fn program() -> Program {
    Program::read("facade.jlir", SOURCE.as_bytes()).unwrap_or_else(|error| panic!("{error}"))
}

/// Everything in the program but what needs the heap.
fn unit(engine: &Engine, program: &Program) -> Unit {
    let module = program.module();
    let native = ["twice", "inverse", "mirrored", "greet"];
    let roots = native.iter().flat_map(|name| module.named(module.cx.names.intern(name)));
    engine.compile_only(program, roots).unwrap_or_else(|error| panic!("{error}"))
}

fn engine(level: OptLevel) -> Engine {
    Engine::new(crate::doors::open(Options::new()).opt_level(level).verify_each(true).output(Output::Capture))
        .expect("an engine")
}

#[test]
fn methods_are_found_by_their_symbols_and_bare_names_when_there_is_one() {
    for level in OptLevel::ALL {
        let unit = unit(&engine(level), &program());
        assert_eq!(unit.func::<(i64,), i64>("twice(Int64)").unwrap().call((21,)), Ok(42));
        assert_eq!(unit.func::<(f64,), f64>("twice(Float64)").unwrap().call((0.75,)), Ok(1.5));
        assert_eq!(unit.func::<(i64,), i64>("inverse").unwrap().call((8,)), Ok(125));
        let error = unit.func::<(i64,), i64>("twice").unwrap_err();
        assert!(matches!(error, LookupError::Ambiguous { .. }), "{error}");
        assert!(error.to_string().contains("`twice(Float64)`, `twice(Int64)`"), "{error}");
    }
}

#[test]
fn signatures_are_checked_against_the_types_of_the_source() {
    let unit = unit(&engine(OptLevel::O1), &program());
    let error = unit.func::<(i32,), i64>("inverse").unwrap_err().to_string();
    assert_eq!(error, "argument 1 of `inverse(Int64)` is `Int64`, which `i32` does not represent");
    assert!(matches!(unit.func::<(), i64>("inverse"), Err(LookupError::Count { expected: 1, .. })));
    assert!(matches!(unit.func::<(i64,), u64>("inverse"), Err(LookupError::Result { .. })));
    // A struct of the program has no Rust type; its bits can be given all the same.
    let mirrored = unit.untyped("mirrored").unwrap();
    let point = [1.0f64, 2.0].map(|x| u128::from(x.to_bits()));
    assert_eq!(mirrored.call(&[5, 1, point[0], point[1]]), Ok(vec![1, 5]));
}

#[test]
fn exceptions_are_errors_in_every_thread() {
    let inverse = unit(&engine(OptLevel::O2), &program()).func::<(i64,), i64>("inverse").unwrap();
    thread::scope(|scope| {
        for divisor in 0..4 {
            let inverse = inverse.clone();
            scope.spawn(move || match (divisor, inverse.call((divisor,))) {
                (0, Err(CallError::Exception(thrown))) => assert_eq!(thrown.kind, ExceptionKind::DivideError),
                (_, result) => assert_eq!(result, Ok(1000 / divisor)),
            });
        }
    });
}

#[test]
fn printing_goes_where_the_options_say() {
    let engine = engine(OptLevel::O2);
    let greet = unit(&engine, &program()).func::<(i64,), ()>("greet").unwrap();
    greet.call((7,)).unwrap();
    assert_eq!(engine.runtime().sink().take_captured(), b"n = 7\n");
}

#[test]
fn a_function_of_another_program_is_an_error() {
    let program = program();
    let foreign = brolga::ir::FuncId::from_u32(99);
    let is_told = |error: &Error| {
        let Error::ForeignFunction { id, count } = *error else { return false };
        id == foreign && count == program.module().func_count() && error.fault() == Fault::Caller
    };
    let error = engine(OptLevel::O1).compile_only(&program, [foreign]).unwrap_err();
    assert!(is_told(&error), "{error}");
    let remote = RemoteEngine::in_process(Options::new()).unwrap().compile_only(&program, [foreign]);
    assert!(matches!(&remote, Err(RemoteError::Program(error)) if is_told(error)), "{remote:?}");
    let options = brolga::opt::Options::default();
    let mut stages = Stages::new(program.module(), OptLevel::O1, &options, Cx::default());
    let outcomes = [
        stages.high(foreign).map(drop),
        stages.optimised(foreign).map(drop),
        stages.passes(foreign, &[]).map(drop),
        stages.low(foreign).map(drop),
        stages.placed(foreign).map(drop),
        stages.linked([foreign]).map(drop),
    ];
    assert!(outcomes.iter().all(|outcome| outcome.as_ref().is_err_and(is_told)), "{outcomes:?}");
    let found = brolga::opt::callgraph::components(program.module(), &|_| vec![foreign]);
    assert_eq!(found.concat().len(), program.module().func_count());
    let from = |root| brolga::opt::callgraph::components_from(program.module(), root, &|_| vec![foreign]);
    assert!(from(foreign).is_empty());
    assert_eq!(from(program.module().funcs().next().unwrap().0).len(), 1);
    let refused = boxed_entry(program.module(), foreign).unwrap_err();
    assert!(refused.to_string().contains("another module"), "{refused}");
}

/// A module whose parts are of another context is refused, whatever is of it.
#[test]
fn a_module_of_two_contexts_is_broken_input() {
    let other = Context::new();
    let types: Vec<Type> = (0..5_000).map(|n| other.types.int(n)).collect();
    let far = types[4_999];
    let cx = Context::new();
    let mut module = Module::new(cx.clone());
    let name = cx.names.intern("f");
    let param = |ty| Param { name: None, ty };
    let params = vec![param(cx.types.function(name)), param(far)];
    let sig = Signature { params, results: vec![Type::INT64], ..Signature::default() };
    let mut func = Func::new(name, Level::High, sig);
    let mut at = Cursor::new(&mut func);
    at.append_block();
    let one = at.int(&cx.types, Type::INT64, 1);
    at.ret(&[one]);
    module.add_func(func).unwrap();
    let Err(Error::Broken(broken)) = Program::from_module(module) else { panic!("it is taken") };
    assert!(broken.to_string().contains("structure-id"), "{broken}");
}

#[test]
fn functions_without_native_code_are_refused_by_name_and_interpreted() {
    let program = program();
    let engine = engine(OptLevel::O2);
    let error = engine.compile(&program).unwrap_err();
    assert!(matches!(&error, Error::NotNative(_)), "{error}");
    assert!(error.to_string().contains("a width that no register has"), "{error}");
    let verdicts = |mut evaluator: Evaluator<'_>| -> Vec<Verdict> {
        program.checks().iter().map(|check| evaluator.check(check)).collect()
    };
    let native = verdicts(Evaluator::native(&program, &engine));
    assert!(matches!(&native[2], Verdict::Skipped { reason } if reason.contains("Odd")), "{native:?}");
    assert_eq!([&native[0], &native[1], &native[3]], [&Verdict::Passed; 3]);
    assert_eq!(verdicts(Evaluator::interpreted(&program)), vec![Verdict::Passed; 4]);
}

#[test]
fn broken_programs_are_refused_with_places_whether_read_or_built() {
    let text = SOURCE.replacen("add_int(n, n)::Int64", "add_int(n, n)::Float64", 1);
    let error = Program::read("broken.jlir", text.as_bytes()).unwrap_err().to_string();
    assert!(error.contains("--> broken.jlir:12:"), "{error}");

    let cx = Context::new();
    let ty = cx.types.function(cx.names.intern("f"));
    let sig = Signature {
        params: vec![Param { name: None, ty }],
        results: vec![Type::INT64],
        vararg: false,
        ..Signature::default()
    };
    let mut func = Func::new(cx.names.intern("f"), Level::High, sig);
    let block = func.make_block();
    func.append_block(block);
    let mut module = Module::new(cx);
    module.add_func(func).unwrap();
    let error = Program::from_module(module).unwrap_err();
    assert!(matches!(&error, Error::Broken(broken) if broken.findings.has_errors()), "{error}");
}

#[test]
fn code_goes_with_its_last_handle() {
    let (engine, program) = (engine(OptLevel::O0), program());
    let unit = unit(&engine, &program);
    let twice = unit.func::<(i64,), i64>("twice(Int64)").unwrap();
    let with_unit = engine.code_memory().in_use;
    drop(unit);
    assert_eq!(engine.code_memory().in_use, with_unit, "a function holds the code of its unit");
    assert_eq!(twice.call((4,)), Ok(8));
    drop(twice);
    assert!(engine.code_memory().in_use < with_unit, "nothing holds the code any more");
}

/// Types that embedders share between threads.
const _: () = {
    const fn shared<T: Send + Sync>() {}
    shared::<Engine>();
    shared::<Unit>();
    shared::<Program>();
    shared::<Error>();
    shared::<brolga::Failure>();
    shared::<brolga::TypedFunc<(i64, f64), (bool, char)>>();
    shared::<brolga::UntypedFunc>();
};

#[test]
fn objects_pass_inside_a_scope_and_globals_have_their_first_values() {
    let source = "
mutable struct Counter
    n::Int64
end
global total::Int64 = 40
function counter(n::Int64)::Counter
1 ─ %1 = %new(Counter, n)::Counter
└──      return %1
end
function step(c::Counter)::Int64
1 ─ %1 = Base.getfield(c, :n)::Int64
│   %2 = Base.add_int(%1, 1)::Int64
│        Base.setfield!(c, :n, %2)::Int64
│   %4 = Main.total::Int64
│   %5 = Base.add_int(%4, 1)::Int64
│        Core.setglobal!(Main, :total, %5)::Int64
└──      return %2
end
function sum()::Int64
1 ─ %1 = Main.total::Int64
└──      return %1
end
";
    let program = Program::read("counter.jlir", source.as_bytes()).unwrap();
    for level in [OptLevel::O0, OptLevel::O2] {
        let engine =
            Engine::new(crate::doors::open(Options::new()).opt_level(level).gc_stress(true)).unwrap();
        let unit = engine.compile(&program).unwrap();
        let (make, step) = (unit.untyped("counter").unwrap(), unit.untyped("step").unwrap());
        engine
            .runtime()
            .enter(|scope| {
                let made = make.call_in(scope, &[Word::Bits(5)]).unwrap();
                let [Word::Object(Some(counter))] = made[..] else { panic!("{made:?}") };
                for expected in 6..9 {
                    scope.collect();
                    let given = step.call_in(scope, &[Word::Object(Some(counter))]).unwrap();
                    assert!(matches!(given[..], [Word::Bits(bits)] if bits == expected), "{given:?}");
                }
                assert_eq!(counter.get(scope).bits::<i64>(0), Ok(8));
            })
            .unwrap();
        assert_eq!(unit.func::<(), i64>("sum").unwrap().call(()), Ok(43));
        assert!(matches!(step.call(&[0]), Err(CallError::Word { index: 0, object: true })));
    }
}

#[test]
fn objects_that_a_function_does_not_take_are_refused_wherever_they_stand() {
    let source = "
mutable struct Node
    n::Int64
end
struct Held
    n::Int64
    node::Node
end
function direct(node::Node)::Int64
1 ─ %1 = Base.getfield(node, :n)::Int64
└──      return %1
end
function inside(held::Held)::Int64
1 ─ %1 = Base.getfield(held, :node)::Node
│   %2 = Base.getfield(%1, :n)::Int64
└──      return %2
end
function wide(held::Held)::NTuple{9, Int64}
1 ─ %1 = invoke Main.inside(held::Held)::Int64
│   %2 = Core.tuple(%1, %1, %1, %1, %1, %1, %1, %1, %1)::NTuple{9, Int64}
└──      return %2
end
";
    let program = Program::read("node.jlir", source.as_bytes()).unwrap();
    let engine = Engine::new(crate::doors::open(Options::new())).unwrap();
    let unit = engine.compile(&program).unwrap();
    let [direct, inside, wide] = ["direct", "inside", "wide"].map(|name| unit.untyped(name).unwrap());
    let inside_scope = engine.runtime().enter(|scope| {
        let text = scope.string(b"no node").unwrap();
        let (none, text, one) = (Word::Object(None), Word::Object(Some(text)), Word::Bits(1));
        let words = [const { Cell::new(0u128) }; 5];
        let room = Word::Memory(&words);
        let cases = [
            (&direct, vec![none], 0, "#undef"),
            (&direct, vec![text], 0, "String"),
            (&inside, vec![one, text], 1, "String"),
            (&wide, vec![room, one, text], 2, "String"),
        ];
        // Bits are no room for a result, and too little memory is none.
        let little = Word::Memory(&words[..4]);
        for no_room in [Word::Bits(0), Word::Pointer(std::ptr::null_mut()), little] {
            let refused = wide.call_in(scope, &[no_room, one, none]).unwrap_err();
            assert_eq!(refused, CallError::Address { index: 0, bytes: Some(72) });
        }
        for (func, args, index, got) in cases {
            let (expected, got) = ("Node".to_owned(), got.to_owned());
            let refused = func.call_in(scope, &args).unwrap_err();
            assert_eq!(refused, WrongArgument { index, expected, got }.into());
        }
        // A field that may be undefined is the function's business.
        assert!(matches!(inside.call_in(scope, &[one, none]), Err(CallError::Exception(_))));
    });
    inside_scope.unwrap();
}

#[test]
fn values_without_end_are_cut_when_they_are_shown() {
    let source = "
struct Twice
    a::Any
    b::Any
end
function twice(n::Int64)::Any
1 ─      goto #2
2 ┄ %2 = φ (#1 => 0, #3 => %6)::Int64
│   %3 = φ (#1 => nothing, #3 => %5)::Any
│   %4 = Base.slt_int(%2, n)::Bool
└──      goto #4 if not %4
3 ─ %5 = %new(Twice, %3, %3)::Twice
│   %6 = Base.add_int(%2, 1)::Int64
└──      goto #2
4 ─      return %3
end
function tree(n::Int64)::Nothing
1 ─ %1 = invoke Main.twice(n::Int64)::Any
│        dynamic Main.println(%1)::Any
└──      return nothing
end
function row(n::Int64)::Nothing
1 ─ %1 = Core.memorynew(Memory{Nothing}, n)::Memory{Nothing}
│        dynamic Main.println(%1)::Any
└──      return nothing
end
function outside(n::Int64)::Nothing
1 ─ %1 = Core.memorynew(Memory{Nothing}, n)::Memory{Nothing}
│   %2 = Core.memoryrefnew(%1)::MemoryRef{Nothing}
│   %3 = Core.memoryrefnew(%2, 0, true)::MemoryRef{Nothing}
│   %4 = Core.memoryrefget(%3, :not_atomic, true)::Nothing
└──      return %4
end
# check: same(60) == true
function same(n::Int64)::Bool
1 ─ %1 = invoke Main.twice(n::Int64)::Any
│   %2 = invoke Main.twice(n::Int64)::Any
│   %3 = (%1 === %2)::Bool
└──      return %3
end
";
    let program = Program::read("twice.jlir", source.as_bytes()).unwrap();
    let engine = Engine::new(crate::doors::open(Options::new()).output(Output::Capture)).unwrap();
    for mut evaluator in [Evaluator::native(&program, &engine), Evaluator::interpreted(&program)] {
        assert_eq!(evaluator.check(&program.checks()[0]), Verdict::Passed);
    }
    let unit = engine.compile(&program).unwrap();
    let shown = |name: &str, n: i64| {
        unit.func::<(i64,), ()>(name).unwrap().call((n,)).unwrap();
        String::from_utf8(engine.runtime().sink().take_captured()).unwrap()
    };
    assert_eq!(shown("tree", 2), "Twice(Twice(nothing, nothing), Twice(nothing, nothing))\n");
    let tree = shown("tree", 60);
    assert!(tree.ends_with("…\n") && tree.len() < brolga::ir::show::MAX_TEXT + 100);
    assert_eq!(shown("row", 3), "[nothing, nothing, nothing]\n");
    let row = shown("row", i64::MAX / 2);
    assert!(row.starts_with("[nothing, nothing, ") && row.ends_with(", …]\n"));
    let thrown = unit.func::<(i64,), ()>("outside").unwrap().call((i64::MAX / 2,)).unwrap_err();
    assert!(thrown.to_string().contains("BoundsError: attempt to access"), "{thrown}");
}

#[test]
fn functions_that_checks_share_are_compiled_once() {
    let runs = |tests: usize| {
        let mut text = String::new();
        for n in 0..tests {
            text += &format!("# check: f{n}(3) == 9\n");
        }
        text +=
            "function shared(n::Int64)::Int64\n1 ─ %1 = Base.mul_int(n, n)::Int64\n└──      return %1\nend\n";
        for n in 0..tests {
            text += &format!(
                "function f{n}(n::Int64)::Int64\n1 ─ %1 = invoke Main.shared(n::Int64)::Int64\n└──      return %1\nend\n"
            );
        }
        let program = Program::read("t", text.as_bytes()).unwrap();
        let engine = Engine::new(crate::doors::open(Options::new()).opt_level(OptLevel::O0)).unwrap();
        let mut evaluator = Evaluator::native(&program, &engine);
        let verdicts: Vec<Verdict> = program.checks().iter().map(|check| evaluator.check(check)).collect();
        assert_eq!(verdicts, vec![Verdict::Passed; tests]);
        engine.code_memory().runs
    };
    assert_eq!(runs(5), runs(1));
}

#[test]
fn a_function_of_the_host_may_drop_the_engine_whose_code_called_it() {
    use brolga::heap::objects::{MethodEntry, MethodRow};
    use std::sync::Mutex;
    let source = "function f(x)::Any\n1 ─ %1 = dynamic Main.host(x)::Any\n└──      return %1\nend\n";
    let program = Program::read("f.jlir", source.as_bytes()).unwrap();
    let engine = Engine::new(crate::doors::open(Options::new())).unwrap();
    let runtime = engine.runtime().clone();
    let unit = engine.compile(&program).unwrap();
    let table = unit.untyped("f").unwrap().methods().clone();
    let cx = program.module().cx.clone();
    let function = |name: &str| cx.types.function(cx.names.intern(name));
    let frees = runtime.clone();
    let held = Mutex::new(Some((engine, unit)));
    let entry = MethodEntry::host(move |_, args| {
        drop(held.lock().unwrap().take());
        frees.free_retired();
        Ok(args[1])
    });
    let row = MethodRow::new(function("host"), vec![brolga::ir::Type::ANY], "host", entry);
    let _methods = runtime.add_methods(&cx, [row]).unwrap();
    let called = runtime.enter(|scope| {
        let ty = scope.heap().type_object(&cx, function("f")).unwrap();
        let (callee, one) = (scope.instance(&ty).unwrap(), scope.int(1).unwrap());
        let called = runtime.call_in(&table, scope, callee, &[one]);
        called.map(|result| result.get(scope).unboxed::<i64>().unwrap())
    });
    assert_eq!(called.unwrap(), Ok(1));
}

#[path = "support/doors.rs"]
mod doors;
