//! Building from low IR: calls within and between units, throwing, and types that do not fit.

mod support;

use brolga_codegen::isa::Tier;
use brolga_codegen::sig::{Abi, FunctionType, ValueType};
use brolga_ir::func::CalleeData;
use brolga_ir::hints::{Hint, Site};
use brolga_ir::intrinsic::Intrinsic;
use brolga_ir::{Context, Func, Level, LowType, Op, Param, RuntimeFn, Signature, Type};
use brolga_jit::{BuildError, CallError, Cells, LinkError, Linkage, Source, Style};
use brolga_runtime::ExceptionKind;
use support::{TIERS, engine, int_function};

const INT: Type = Type::low(LowType::I64);

/// A function of one 64-bit integer whose one block ends in the operation that `body` returns, with its operands.
fn function(
    cx: &Context,
    name: &str,
    body: impl FnOnce(&mut Func, brolga_ir::Block, brolga_ir::Value) -> Vec<brolga_ir::Value>,
) -> Func {
    let sig = Signature {
        params: vec![Param { name: None, ty: INT }],
        results: vec![INT],
        vararg: false,
        ..Signature::default()
    };
    let mut func = Func::new(cx.names.intern(name), Level::Low, sig);
    let block = func.make_block();
    func.append_block(block);
    let argument = func.params()[0];
    let values = body(&mut func, block, argument);
    let op = if values.is_empty() { Op::Unreachable } else { Op::Return };
    let end = func.make_inst(op, &values, &[], &[]);
    func.append_inst(end, block);
    func
}

fn add(
    func: &mut Func,
    block: brolga_ir::Block,
    a: brolga_ir::Value,
    b: brolga_ir::Value,
) -> brolga_ir::Value {
    let inst = func.make_inst(Op::Intrinsic(Intrinsic::AddInt), &[a, b], &[], &[INT]);
    func.append_inst(inst, block);
    func.results(inst).next().unwrap()
}

fn call(
    cx: &Context,
    func: &mut Func,
    block: brolga_ir::Block,
    name: &str,
    argument: brolga_ir::Value,
) -> brolga_ir::Value {
    let symbol = cx.names.intern(name);
    let callee = func.add_callee(CalleeData::Symbol { symbol, params: [INT].into(), results: [INT].into() });
    let inst = func.make_inst(Op::CallSymbol(callee), &[argument], &[], &[INT]);
    func.append_inst(inst, block);
    func.results(inst).next().unwrap()
}

/// A source that is looked up by another name than it is linked by.
fn source<'a>(func: &'a Func, name: &str) -> Source<'a> {
    Source { func, ty: Some(int_function(name, 1).into()) }
}

#[test]
fn functions_call_each_other_within_and_between_units() {
    for tier in TIERS {
        let (jit, cx) = (engine(), Context::new());
        let twice = function(&cx, "twice(Int64)", |func, block, x| vec![add(func, block, x, x)]);
        let four = function(&cx, "four(Int64)", |func, block, x| {
            let once = call(&cx, func, block, "twice(Int64)", x);
            vec![call(&cx, func, block, "twice(Int64)", once)]
        });
        let below =
            jit.build(&cx, &[Source { func: &twice, ty: None }, source(&four, "four")], tier, &[]).unwrap();
        assert_eq!(below.func::<(i64,), i64>("four").unwrap().call((5,)), Ok(20));
        assert!(below.func::<(i64,), i64>("twice").is_err());

        let five = function(&cx, "five(Int64)", |func, block, x| {
            let four = call(&cx, func, block, "four(Int64)", x);
            vec![add(func, block, four, x)]
        });
        let missing = jit.build(&cx, &[source(&five, "five")], tier, &[]);
        assert!(matches!(missing, Err(BuildError::Link(LinkError::Unresolved { .. }))));
        let above = jit.build(&cx, &[source(&five, "five")], tier, &[below]).unwrap();
        assert_eq!(above.func::<(i64,), i64>("five").unwrap().call((5,)), Ok(25));
    }
}

#[test]
fn a_throwing_entry_of_the_run_time_arrives_as_an_exception() {
    for tier in TIERS {
        let (jit, cx) = (engine(), Context::new());
        let bounds = function(&cx, "bounds", |func, block, x| {
            let inst = func.make_inst(Op::CallRuntime(RuntimeFn::ThrowBounds), &[x], &[], &[]);
            func.append_inst(inst, block);
            vec![]
        });
        let outer = function(&cx, "outer", |func, block, x| vec![call(&cx, func, block, "bounds", x)]);
        let sources = [Source { func: &bounds, ty: None }, source(&outer, "outer")];
        let unit = jit.build(&cx, &sources, tier, &[]).unwrap();
        let Err(CallError::Exception(thrown)) = unit.func::<(i64,), i64>("outer").unwrap().call((7,)) else {
            panic!("no exception");
        };
        assert_eq!(thrown.kind, ExceptionKind::BoundsError);
        assert!(thrown.message.contains("[7]"), "{thrown}");
    }
}

#[test]
fn a_recorded_type_that_is_not_the_code_s_is_refused() {
    let (jit, cx) = (engine(), Context::new());
    let func = function(&cx, "same", |_, _, x| vec![x]);
    let float = ValueType::scalar("Float64", Abi::F64);
    let ty = FunctionType::of_leaves("same", vec![float.clone()], float);
    let refused = jit.build(&cx, &[Source { func: &func, ty: Some(ty.into()) }], Tier::Baseline, &[]);
    assert!(matches!(refused, Err(BuildError::Signature { name, .. }) if name == "same"));
    assert_eq!(jit.stats().runs, 0);
}

#[test]
fn code_that_counts_where_no_cell_is_is_refused() {
    let (jit, cx) = (engine(), Context::new());
    let sig = function(&cx, "same", |_, _, x| vec![x]).sig;
    let mut func = Func::new(cx.names.intern("branch"), Level::Low, sig);
    let [entry, yes, no] = std::array::from_fn(|_| func.make_block());
    [entry, yes, no].into_iter().for_each(|block| func.append_block(block));
    let x = func.params()[0];
    let test = func.make_inst(Op::Intrinsic(Intrinsic::EqInt), &[x, x], &[], &[Type::low(LowType::I8)]);
    func.append_inst(test, entry);
    let test = func.results(test).next().unwrap();
    let branch = func.make_inst(Op::Branch, &[test], &[yes, no], &[]);
    func.append_inst(branch, entry);
    for block in [yes, no] {
        let back = func.make_inst(Op::Return, &[x], &[], &[]);
        func.append_inst(back, block);
    }
    func.set_hint(branch, Hint { site: Some(Site { cell: 5, swapped: false }), ..Hint::default() });
    let style = Style { is_profiled: true, ..Tier::Baseline.into() };
    let compiled = jit.compile(&cx, &[source(&func, "branch")], style).unwrap();
    let link = |cells: &Cells| jit.link(&compiled, &Linkage { cells: Some(cells), ..Linkage::default() });
    assert!(matches!(link(&Cells::new(5)), Err(BuildError::Cells { needed: 6, given: 5 })));
    let cells = Cells::new(6);
    let unit = link(&cells).unwrap();
    assert_eq!(unit.func::<(i64,), i64>("branch").unwrap().call((7,)), Ok(7));
    assert_eq!(cells.branch(5), (1, 0));
}

/// A function that returns twice its argument through a slot of this many bytes; or its argument plus the result of `name`
/// for it, repeatedly.
fn with_frame(cx: &Context, name: &str, bytes: u32, recursive: bool) -> Func {
    use brolga_ir::func::SlotData;
    use brolga_ir::op::{Access, Region};
    function(cx, name, |func, block, x| {
        let slot = func.add_slot(SlotData::bytes(bytes, 3));
        let address = func.make_inst(Op::SlotAddr(slot), &[], &[], &[Type::PTR]);
        func.append_inst(address, block);
        let address = func.result(address).unwrap();
        let access = Access { offset: 0, region: Region::Slot, align_log2: 3 };
        let store = func.make_inst(Op::Store(access), &[address, x], &[], &[]);
        func.append_inst(store, block);
        let value = if recursive { call(cx, func, block, name, x) } else { x };
        let load = func.make_inst(Op::Load(access), &[address], &[], &[INT]);
        func.append_inst(load, block);
        let loaded = func.result(load).unwrap();
        vec![add(func, block, value, loaded)]
    })
}

/// A function in which one tier needs a frame of many megabytes and another one does not is compiled by both. If the stack
/// is too small it throws.
#[test]
fn a_frame_larger_than_most_stacks_is_made() {
    const FRAME: u32 = 48 << 20;
    for tier in TIERS {
        let (jit, cx) = (engine(), Context::new());
        let flat = with_frame(&cx, "flat", FRAME, false);
        let unit = jit.build(&cx, &[source(&flat, "flat")], tier, &[]).unwrap();
        let run = |stack: u32| {
            let unit = unit.clone();
            let thread = std::thread::Builder::new().stack_size(stack as usize);
            let call = move || unit.func::<(i64,), i64>("flat").unwrap().call((21,));
            thread.spawn(call).unwrap().join().unwrap()
        };
        let Err(CallError::Exception(thrown)) = run(FRAME) else { panic!("no exception") };
        assert_eq!(thrown.kind, ExceptionKind::StackOverflowError);
        assert_eq!(run(FRAME + (4 << 20)), Ok(42));
    }
}

#[test]
fn a_frame_larger_than_the_reserve_is_guarded_at_the_entry() {
    for tier in TIERS {
        let (jit, cx) = (engine(), Context::new());
        // deep(n) = 1 + deep(n), through a megabyte of stack each time, and flat(n) = n through the same megabyte.
        let (deep, flat) = (with_frame(&cx, "deep", 1 << 20, true), with_frame(&cx, "flat", 1 << 20, false));
        let unit = jit.build(&cx, &[source(&deep, "deep"), source(&flat, "flat")], tier, &[]).unwrap();
        let run = |name: &str| unit.func::<(i64,), i64>(name).unwrap().call((21,));
        assert_eq!(run("flat"), Ok(42));
        let Err(CallError::Exception(thrown)) = run("deep") else { panic!("no exception") };
        assert_eq!(thrown.kind, ExceptionKind::StackOverflowError);
        assert_eq!(run("flat"), Ok(42));
    }
}

#[test]
fn an_endless_loop_is_stopped_at_its_safepoint() {
    use brolga_runtime::Interrupt;
    for tier in TIERS {
        let (jit, cx) = (engine(), Context::new());
        let mut func = function(&cx, "endless", |_, _, x| vec![x]);
        let (entry, head) = (func.entry().unwrap(), func.make_block());
        func.append_block(head);
        let old = func.terminator(entry).unwrap();
        func.remove_inst(old);
        let poll = func.make_inst(Op::Safepoint, &[], &[], &[]);
        func.append_inst(poll, head);
        for block in [entry, head] {
            let jump = func.make_inst(Op::Goto, &[], &[head], &[]);
            func.append_inst(jump, block);
        }
        let unit = jit.build(&cx, &[source(&func, "endless")], tier, &[]).unwrap();
        let (sender, handle) = std::sync::mpsc::channel();
        let running = std::thread::spawn({
            let (unit, jit) = (unit.clone(), jit.clone());
            move || {
                sender.send(Interrupt::for_current(jit.runtime()).unwrap()).unwrap();
                unit.func::<(i64,), i64>("endless").unwrap().call((1,))
            }
        });
        let interrupt = handle.recv().unwrap();
        // A request before the entry is void, so it is repeated until the code stops.
        while !running.is_finished() {
            interrupt.raise();
            std::thread::yield_now();
        }
        let Err(CallError::Exception(thrown)) = running.join().unwrap() else { panic!("no exception") };
        assert_eq!(thrown.kind, ExceptionKind::InterruptException);
    }
}
