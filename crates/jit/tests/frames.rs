//! Frames of compiled code are found from outside of it: by return address, through C functions and entries, after throws; and
//! with them the objects that their maps name. Code whose frames are found by maps catches what code with linked frames throws.

mod support;

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use brolga_codegen::isa::Tier;
use brolga_codegen::sig::{Abi, FunctionType, ValueType};
use brolga_codegen::translate::signature_of;
use brolga_gcroots::{Lowering, Options, place};
use brolga_ir::diag::SourceFile;
use brolga_ir::func::RootMap;
use brolga_ir::verify::verify_module;
use brolga_ir::{Context, Func, Op, text};
use brolga_jit::{Jit, Source, Unit};
use brolga_runtime::heap::DEFAULT_ABI;
use brolga_runtime::{Runtime, with_attached};
use support::{TIERS, engine};

/// `down` calls itself and then C; `cross` calls C, which calls `down`; `catch` throws from below and continues.
const PROGRAM: &str = "
low function down(n::i64)::i64
1 ─ %1 = eq_int(n, 0)::i8
└──      goto #3 if not %1
2 ─ %3 = $(Expr(:foreigncall, :(:look), i64, svec(), 0, :(:ccall)))::i64
└──      return %3
3 ─ %5 = sub_int(n, 1)::i64
│   %6 = invoke down(%5)::i64
│   %7 = add_int(%6, 1)::i64
└──      return %7
end

low function cross(n::i64)::i64
1 ─ %1 = $(Expr(:foreigncall, :(:back), i64, svec(i64), 0, :(:ccall), :(n)))::i64
│   %2 = $(Expr(:foreigncall, :(:look), i64, svec(), 0, :(:ccall)))::i64
│   %3 = add_int(%1, %2)::i64
└──      return %3
end

low function fail(n::i64)::i64
1 ─ %1 = eq_int(n, 0)::i8
└──      goto #3 if not %1
2 ─      brolga_throw_bounds(7)
└──      unreachable
3 ─ %5 = sub_int(n, 1)::i64
│   %6 = invoke fail(%5)::i64
└──      return %6
end

low function catch(n::i64)::i64
1 ─ %1 = brolga_exception_depth()::i64
└── %2 = enter #3
2 ─ %3 = invoke fail(n)::i64
│        $(Expr(:leave, :(%2)))
└──      return %3
3 ─      brolga_pop_exception(%1)
│   %7 = invoke down(1)::i64
└──      return %7
end

low function keep(n::i64)::i64
1 ─ %1 = brolga_gc_box_int(n)::tracked
│   %2 = slot_addr(0; size = 16, align = 16)::ptr
│        store(%2, %1; offset = 8, region = frame, align = 8)
│   %4 = $(Expr(:foreigncall, :(:collect), i64, svec(), 0, :(:ccall)))::i64
└──      return %4
end
";

/// `catch` keeps a box beyond what `link` throws while its frame is linked.
const MIXED: &str = "
low function throw(n::i64)::i64
1 ─      brolga_throw_bounds(n)
└──      unreachable
end

low function link(n::i64)::i64
1 ─ %1 = brolga_gc_box_int(n)::tracked
│   %2 = invoke throw(n)::i64
│   %3 = load(%1; offset = 0, region = immutable, align = 8)::i64
│   %4 = add_int(%2, %3)::i64
└──      return %4
end

low function catch(n::i64)::i64
1 ─ %1 = brolga_gc_box_int(n)::tracked
│   %2 = brolga_exception_depth()::i64
└── %3 = enter #3
2 ─ %4 = invoke link(n)::i64
│        $(Expr(:leave, :(%3)))
└──      return %4
3 ─      brolga_pop_exception(%2)
│   %6 = $(Expr(:foreigncall, :(:collect), i64, svec(), 0, :(:ccall)))::i64
│   %7 = load(%1; offset = 0, region = immutable, align = 8)::i64
│   %8 = add_int(%6, %7)::i64
└──      return %8
end
";

thread_local! {
    static RUNTIME: RefCell<Option<Arc<Runtime>>> = const { RefCell::new(None) };
    static UNIT: RefCell<Option<Unit>> = const { RefCell::new(None) };
    static SEEN: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
}

fn runtime() -> Arc<Runtime> {
    RUNTIME.with(|runtime| runtime.borrow().clone().unwrap())
}

extern "C" fn look() -> i64 {
    let seen =
        with_attached(&runtime(), |thread| thread.frames().map(|frame| frame.return_address).collect());
    SEEN.set(seen.unwrap());
    0
}

extern "C" fn back(n: i64) -> i64 {
    let unit = UNIT.with(|unit| unit.borrow().clone().unwrap());
    let found = unit.untyped("down").unwrap().call(&[n as u128]).unwrap()[0] as i64;
    found + 100 * SEEN.take().len() as i64
}

/// How many objects are alive after a collection.
extern "C" fn collect() -> i64 {
    let runtime = runtime();
    // Overwrites the former content of the stack.
    std::hint::black_box(&mut [0x5555_5555_5555_5555_u64; 2048]);
    runtime.enter(|scope| scope.collect()).unwrap();
    runtime.heap().stats().live_objects as i64
}

fn build(jit: &Jit, tier: Tier, change: impl Fn(&str, &mut Func)) -> Unit {
    let cx = Context::new();
    build_in(jit, &cx, PROGRAM, tier, change)
}

fn build_in(
    jit: &Jit,
    cx: &Arc<Context>,
    program: &str,
    tier: Tier,
    change: impl Fn(&str, &mut Func),
) -> Unit {
    let (unit, findings) = text::read(&SourceFile::new("frames.jlir", program).unwrap(), cx);
    assert!(!findings.has_errors(), "{findings:?}");
    assert!(verify_module(&unit.module).is_ok());
    let mut funcs: Vec<Func> = unit.module.funcs().map(|(_, func)| func.clone()).collect();
    let mut sources = Vec::new();
    for func in &mut funcs {
        let name = cx.names.text(func.name).to_owned();
        change(&name, func);
        let signature = signature_of(func).unwrap();
        let (params, result) =
            (vec![ValueType::scalar("Int64", Abi::I64)], ValueType::scalar("Int64", Abi::I64));
        let ty = FunctionType { symbol: name.clone(), name, params, result, signature };
        sources.push(Source { func, ty: Some(ty.into()) });
    }
    // SAFETY: C functions of the declared types.
    unsafe {
        jit.runtime().foreign().define("look", look as *const ());
        jit.runtime().foreign().define("back", back as *const ());
        jit.runtime().foreign().define("collect", collect as *const ());
    }
    let built = jit.build(cx, &sources, tier, &[]).unwrap();
    RUNTIME.set(Some(jit.runtime().clone()));
    UNIT.set(Some(built.clone()));
    built
}

/// The functions that the most recently seen addresses return to.
fn seen(unit: &Unit) -> Vec<&str> {
    let name = |address: usize| {
        let mut functions = unit.loaded().functions();
        functions.find(|(_, start, size)| (*start..=start + size).contains(&address)).map_or("?", |f| f.0)
    };
    SEEN.take().into_iter().map(name).collect()
}

#[test]
fn frames_are_those_of_compiled_code_innermost_first() {
    for tier in TIERS {
        let jit = engine();
        let unit = build(&jit, tier, |_, _| {});
        let call = |name: &str, n| unit.untyped(name).unwrap().call(&[n]).unwrap()[0];
        assert_eq!(call("down", 3), 3);
        assert_eq!(seen(&unit), ["down"; 4]);
        // Inside of the callback there are three frames of `down` and one of `cross`; after it one is left.
        assert_eq!(call("cross", 2), 402);
        assert_eq!(seen(&unit), ["cross"]);
        // The frames that the throw left are no longer found.
        assert_eq!(call("catch", 5), 1);
        assert_eq!(seen(&unit), ["down", "down", "catch"]);
        // Outside there are no frames.
        look();
        assert_eq!(seen(&unit), [""; 0]);
        UNIT.take();
    }
}

#[test]
fn an_exception_that_leaves_compiled_code_leaves_no_frames() {
    let jit = engine();
    let unit = build(&jit, Tier::Optimised, |_, _| {});
    assert!(unit.untyped("fail").unwrap().call(&[3]).is_err());
    look();
    assert_eq!(seen(&unit), [""; 0]);
    UNIT.take();
}

#[test]
fn linked_frames_that_a_throw_gave_up_are_off_the_list_in_mapped_code() {
    for tier in TIERS {
        let jit = engine();
        let cx = Context::new();
        let unit = build_in(&jit, &cx, MIXED, tier, |name, func| {
            let lowering = if name == "link" { Lowering::Linked } else { Lowering::Maps };
            let options = Options { lowering, ..Options::new(DEFAULT_ABI) };
            let placed = place(func, &cx, &options).unwrap();
            assert_eq!(placed.slots, usize::from(name != "throw"), "{name}");
        });
        let catch = unit.untyped("catch").unwrap();
        assert_eq!(
            catch.call(&[1_000_000]),
            Ok(vec![1_000_001]),
            "{tier:?}: the caught function's box is garbage"
        );
        UNIT.take();
    }
}

/// Attaches a map of the words to the C call of `keep`.
fn map(name: &str, func: &mut Func, offsets: &[u32]) {
    if name != "keep" {
        return;
    }
    let insts: Vec<_> = func.blocks().flat_map(|block| func.block_insts(block)).collect();
    let find = |wanted: fn(Op) -> bool| insts.iter().copied().find(|&inst| wanted(func.op(inst)));
    let slot = find(|op| matches!(op, Op::SlotAddr(_))).map(|inst| func.op(inst));
    let (Some(Op::SlotAddr(slot)), Some(call)) = (slot, find(|op| matches!(op, Op::ForeignCall(_)))) else {
        panic!("the program has both")
    };
    func.set_root_map(call, RootMap { slot, offsets: offsets.into() });
}

#[test]
fn maps_keep_what_their_words_hold_during_their_call() {
    for tier in TIERS {
        for (offsets, alive) in [(Some(vec![8]), 1), (None, 0)] {
            let jit = engine();
            let unit = build(&jit, tier, |name, func| {
                if let Some(offsets) = &offsets {
                    map(name, func, offsets);
                }
            });
            let keep = unit.untyped("keep").unwrap();
            assert_eq!(keep.call(&[1_000_000]), Ok(vec![alive]), "{tier:?}");
            UNIT.take();
        }
    }
}

/// A thread that has used the heap and now runs code without objects is on the collector's list, and its stack is its own.
#[test]
fn stacks_outside_of_the_heap_are_not_looked_at() {
    let jit = engine();
    let unit = build(&jit, Tier::Optimised, |name, func| map(name, func, &[8]));
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let (runtime, down) = (jit.runtime(), unit.untyped("down").unwrap());
        let done = &done;
        scope.spawn(move || {
            RUNTIME.set(Some(runtime.clone()));
            runtime.enter(|scope| scope.collect()).unwrap();
            for _ in 0..20_000 {
                assert_eq!(down.call(&[9]), Ok(vec![9]));
            }
            // While the heap is lent, code without objects waits for collections.
            runtime
                .enter(|scope| {
                    for _ in 0..2_000 {
                        scope.blocking(|| assert_eq!(down.call(&[9]), Ok(vec![9])));
                    }
                })
                .unwrap();
            done.store(true, Ordering::Relaxed);
            SEEN.take();
        });
        while !done.load(Ordering::Relaxed) {
            runtime.enter(|scope| scope.collect()).unwrap();
        }
    });
    UNIT.take();
}
