//! Functions that are compiled at their first call: arguments and results are preserved, for every kind of caller and outcome.

mod support;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, RwLock, mpsc};

use brolga_codegen::isa::Tier;
use brolga_jit::{Body, CallError, Jit, JitOptions, Word};
use brolga_runtime::heap::{HeapOptions, Stress};
use brolga_runtime::{ExceptionKind, Runtime, RuntimeOptions};
use support::lazy::{Program, thrown};
use support::{TIERS, engine};

const PROGRAM: &str = "
low function leaf(n::i64)::i64
1 ─ %1 = add_int(n, 1)::i64
└──      return %1
end

low function middle(n::i64)::i64
1 ─ %1 = invoke leaf(n)::i64
│   %2 = invoke leaf(%1)::i64
└──      return %2
end

low function top(n::i64)::i64
1 ─ %1 = invoke middle(n)::i64
│   %2 = invoke leaf(%1)::i64
└──      return %2
end

# Many arguments of both kinds, so that some of each come on the stack, and more results than registers.
low function wide(a::i64, b::i64, c::i64, d::i64, e::i64, f::i64, g::i64, h::i64, i::i64, u::f64, v::f64, w::f64, x::f64, y::f64, z::f64, p::f64, q::f64, r::f64, s::f64)::(i64, i64, f64, f64, i64, i64)
1 ─ return (a, i, u, s, h, b)
end

low function calls_wide(n::i64, x::f64)::i64
1 ─ %1 = add_int(n, 1)::i64
│   %2 = add_float(x, x)::f64
│   %3 = invoke wide(n, 2, 3, 4, 5, 6, 7, 8, %1, x, x, x, x, x, x, x, x, x, %2)::(i64, i64, f64, f64, i64, i64)
│   %9 = sub_float(%3.3, %3.2)::f64
│   %10 = eq_float(%9, x)::i8
└── goto #3 if not %10
2 ─ %12 = mul_int(%3, 1000)::i64
│   %13 = add_int(%12, %3.1)::i64
│   %14 = mul_int(%13, 10)::i64
│   %15 = add_int(%14, %3.4)::i64
│   %16 = mul_int(%15, 10)::i64
│   %17 = add_int(%16, %3.5)::i64
└── return %17
3 ─ return -1
end

low function unbox(a::tracked, n::i64, b::tracked)::i64
1 ─ %1 = load(a; offset = 0, region = immutable, align = 8)::i64
│   %2 = load(b; offset = 0, region = immutable, align = 8)::i64
│   %3 = add_int(%1, %2)::i64
│   %4 = add_int(%3, n)::i64
└──      return %4
end

# Only the callee keeps the objects.
low function boxes(n::i64)::i64
1 ─ %1 = brolga_gc_box_int(n)::tracked
│   %2 = invoke unbox(%1, n, %1)::i64
└──      return %2
end

low function swap(a::tracked, n::i64, b::tracked)::(tracked, i64, tracked)
1 ─ return (b, n, a)
end

low function catches(n::i64)::i64
1 ─ %1 = brolga_exception_depth()::i64
└── %2 = enter #3
2 ─ %3 = invoke leaf(n)::i64
│        $(Expr(:leave, :(%2)))
└──      return %3
3 ─      brolga_pop_exception(%1)
└──      return -1
end

low function deep(n::i64)::i64
1 ─ %1 = invoke deep(n)::i64
│   %2 = invoke leaf(%1)::i64
└──      return %2
end
";

/// An engine whose heap collects at each safepoint and overwrites freed memory.
fn stressed() -> Jit {
    let heap =
        HeapOptions { stress: Stress::EverySafepoint, poison: true, verify: true, ..HeapOptions::default() };
    Jit::new(Runtime::new(RuntimeOptions { heap, ..RuntimeOptions::default() }), JitOptions::default())
        .unwrap()
}

#[test]
fn functions_are_compiled_in_the_order_of_their_first_calls_and_once() {
    for tier in TIERS {
        let program = Program::new(&engine(), tier, PROGRAM);
        assert!(!program.cell("leaf").is_ready());
        for n in 0..3 {
            assert_eq!(program.call("top", n), Ok(n + 3));
        }
        assert_eq!(*program.compiled.lock().unwrap(), ["top", "middle", "leaf"]);
        assert!(program.cell("leaf").is_ready());
    }
}

#[test]
fn arguments_on_the_stack_and_results_in_memory_pass_by() {
    for tier in TIERS {
        let program = Program::new(&engine(), tier, PROGRAM);
        let calls = program.cell("calls_wide").untyped().unwrap();
        for n in [7u128, 9] {
            let expected = ((n * 1000 + n + 1) * 10 + 8) * 10 + 2;
            assert_eq!(calls.call(&[n, u128::from(1.5f64.to_bits())]), Ok(vec![expected]));
        }
        assert_eq!(program.count("wide"), 1);
    }
}

#[test]
fn objects_survive_collections_while_their_callee_is_compiled() {
    for tier in TIERS {
        let jit = stressed();
        let collects = Box::new(|program: &Program, _: &str| {
            // Freed memory is overwritten, and used again at once.
            program.jit.runtime().enter(|scope| {
                scope.collect();
                (0..100).for_each(|_| drop(scope.string(b"0123456")));
            })?;
            Ok(None)
        });
        let program = Program::with_hook(&jit, tier, PROGRAM, collects);
        assert_eq!(program.call("boxes", 1_000_000), Ok(3_000_000));
        assert_eq!(program.call("boxes", 2_000_000), Ok(6_000_000));
        jit.runtime()
            .enter(|scope| {
                let boxed = scope.string(b"kept").unwrap();
                let args = [Word::Object(Some(boxed)), Word::Bits(5), Word::Object(None)];
                let given = program.cell("swap").untyped().unwrap().call_in(scope, &args).unwrap();
                let [Word::Object(None), Word::Bits(5), Word::Object(Some(root))] = given[..] else {
                    panic!("{given:?}")
                };
                assert_eq!(root.get(scope).text(), Some("kept"));
            })
            .unwrap();
        jit.runtime().enter(|scope| scope.collect()).unwrap();
        assert_eq!(jit.runtime().heap().stats().live_objects, 0, "no frame stayed linked");
    }
}

#[test]
fn a_failed_compilation_throws_its_cause_on_each_call() {
    for tier in TIERS {
        let tries = Arc::new(AtomicUsize::new(0));
        let counted = tries.clone();
        let refuses = Box::new(move |_: &Program, name: &str| match name {
            "leaf" => {
                counted.fetch_add(1, Ordering::Relaxed);
                Err("the disk is on fire".into())
            }
            "wide" => panic!("lost my {}", "marbles"),
            _ => Ok(None),
        });
        let program = Program::with_hook(&stressed(), tier, PROGRAM, refuses);
        for _ in 0..3 {
            let text = thrown(program.call("top", 1));
            assert_eq!(text, "CompileError: cannot compile `leaf`: the disk is on fire");
        }
        assert_eq!(tries.load(Ordering::Relaxed), 3, "each call asks");
        assert_eq!(program.call("catches", 1), Ok(-1), "the caller's handler gets it");
        let wide = program.cell("calls_wide").untyped().unwrap();
        let text = thrown(wide.call(&[1, 1]));
        assert!(text.contains("panicked: lost my marbles"), "{text}");

        program.owner("leaf").set(program.target("leaf")).unwrap();
        assert_eq!(program.call("top", 1), Ok(4));
        program.owner("leaf").reset(Body::Once(program.source("leaf")));
        assert!(thrown(program.call("top", 1)).contains("fire"));
        assert_eq!(tries.load(Ordering::Relaxed), 5);
    }
}

#[test]
fn nothing_has_the_identity_of_a_slot_that_somebody_has() {
    let program = Program::new(&stressed(), TIERS[0], PROGRAM);
    let (jit, ty) = (program.cell("leaf").jit().clone(), program.cell("leaf").ty().clone());
    let make = || jit.cell(ty.clone(), program.source("leaf")).unwrap();
    let owner = make();
    let (held, identity) = (owner.cell(), owner.identity());
    drop(owner);
    assert!((0..64).map(|_| make()).all(|other| other.identity() != identity));
    drop(held);
}

#[test]
fn threads_that_call_first_at_the_same_time_compile_once() {
    const THREADS: i64 = 8;
    for tier in TIERS {
        let slow = Box::new(|_: &Program, _: &str| {
            // Long enough for the others to come.
            (0..200).for_each(|_| std::thread::yield_now());
            Ok(None)
        });
        let program = Program::with_hook(&stressed(), tier, PROGRAM, slow);
        let barrier = Barrier::new(THREADS as usize);
        std::thread::scope(|scope| {
            for n in 0..THREADS {
                let (program, barrier) = (&program, &barrier);
                scope.spawn(move || {
                    barrier.wait();
                    assert_eq!(program.call("top", n), Ok(n + 3));
                    assert_eq!(program.call("boxes", n + 1_000_000), Ok(3 * (n + 1_000_000)));
                });
            }
        });
        for name in ["top", "middle", "leaf", "boxes", "unbox"] {
            assert_eq!(program.count(name), 1, "{name}");
        }
    }
}

#[test]
fn compiling_may_call_what_is_not_compiled() {
    for tier in TIERS {
        let needs = Box::new(|program: &Program, name: &str| {
            if name == "middle" {
                assert_eq!(program.call("leaf", 4), Ok(5));
            }
            Ok(None)
        });
        let program = Program::with_hook(&engine(), tier, PROGRAM, needs);
        assert_eq!(program.call("top", 1), Ok(4));
        assert_eq!(*program.compiled.lock().unwrap(), ["top", "leaf", "middle"]);
    }
}

#[test]
fn a_thread_with_little_stack_has_it_compiled_elsewhere() {
    // The C library may hand a thread the larger stack of one that has ended. Such threads wait here, so that no such stacks
    // remain.
    const TRIES: usize = 100;
    let end = Arc::new(RwLock::new(()));
    let wait = end.write().unwrap();
    for tier in TIERS {
        let was_elsewhere = (0..TRIES).any(|_| {
            let elsewhere = Arc::new(AtomicUsize::new(0));
            let counted = elsewhere.clone();
            let outside = Box::new(move |_: &Program, _: &str| {
                let is_small = std::thread::current().name() == Some("small");
                counted.fetch_add(usize::from(!is_small), Ordering::Relaxed);
                Ok(None)
            });
            let program = Program::with_hook(&stressed(), tier, PROGRAM, outside);
            let (done, calls) = mpsc::channel();
            let (called, end) = (program.clone(), end.clone());
            let small = std::thread::Builder::new().name("small".into()).stack_size(700 << 10);
            let small = small.spawn(move || {
                let (top, boxes) = (called.call("top", 1), called.call("boxes", 1_000_000));
                done.send((top, boxes, called.call("deep", 1))).unwrap();
                drop(end.read());
            });
            small.unwrap();
            let (top, boxes, deep) = calls.recv().unwrap();
            assert_eq!((top, boxes), (Ok(4), Ok(3_000_000)));
            let Err(CallError::Exception(overflow)) = deep else { panic!("{deep:?}") };
            assert_eq!(overflow.kind, ExceptionKind::StackOverflowError);
            elsewhere.load(Ordering::Relaxed) == program.compiled.lock().unwrap().len()
        });
        assert!(was_elsewhere);
    }
    drop(wait);
}

#[test]
fn a_function_that_is_removed_says_so() {
    use brolga_jit::{Materialize, Target};
    struct Leaf(Arc<Program>);
    impl Materialize for Leaf {
        fn materialize(&self) -> Result<Target, Box<dyn std::error::Error + Send + Sync>> {
            Ok(self.0.target("leaf"))
        }
    }
    let program = Program::new(&engine(), Tier::Baseline, PROGRAM);
    let owner = program.jit.cell(program.ty("leaf"), Arc::new(Leaf(program.clone()))).unwrap();
    let cell = owner.cell();
    let leaf = cell.func::<(i64,), i64>().unwrap();
    assert_eq!(leaf.call((1,)), Ok(2));
    drop(owner);
    assert_eq!(thrown(leaf.call((1,))), "CompileError: `leaf` has been removed");
    assert!(cell.materialize().is_err());
}
