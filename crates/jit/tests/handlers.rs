//! Exception handlers in compiled code: nested, in loops, through many frames, for everything that throws.

mod support;

use std::sync::mpsc;

use brolga_codegen::isa::Tier;
use brolga_ir::diag::SourceFile;
use brolga_ir::verify::verify_module;
use brolga_ir::{Context, text};
use brolga_jit::{CallError, Jit, Source, Unit};
use brolga_runtime::{ExceptionKind, Interrupt};
use support::{TIERS, engine, int_function};

const PROGRAM: &str = include_str!("handlers.jlir");

/// The unit of the program, in which every function takes and returns 64-bit integers.
fn build(jit: &Jit, tier: Tier) -> Unit {
    let cx = Context::new();
    let (unit, findings) = text::read(&SourceFile::new("handlers.jlir", PROGRAM).unwrap(), &cx);
    assert!(!findings.has_errors(), "{findings:?}");
    assert!(verify_module(&unit.module).is_ok());
    let funcs: Vec<_> = unit.module.funcs().map(|(_, func)| func.clone()).collect();
    let source = |func| {
        let func: &brolga_ir::Func = func;
        Source { func, ty: Some(int_function(cx.names.text(func.name), func.sig.params.len()).into()) }
    };
    jit.build(&cx, &funcs.iter().map(source).collect::<Vec<_>>(), tier, &[]).unwrap()
}

fn call(unit: &Unit, name: &str, argument: i64) -> Result<i64, ExceptionKind> {
    match unit.func::<(i64,), i64>(name).unwrap().call((argument,)) {
        Ok(value) => Ok(value),
        Err(CallError::Exception(exception)) => Err(exception.kind),
        Err(other) => panic!("{other}"),
    }
}

#[test]
fn exceptions_arrive_at_the_innermost_handler_and_the_next_one_out_of_it() {
    use ExceptionKind as K;
    for tier in TIERS {
        let jit = engine();
        let unit = build(&jit, tier);
        let run = |name, argument| call(&unit, name, argument);
        assert_eq!(run("down", 5), Err(K::BoundsError));
        for depth in [0, 1, 100] {
            assert_eq!(run("catch", depth), Ok(1000 + depth));
        }
        assert_eq!(run("divide", 5), Ok(20));
        assert_eq!(run("divide", 0), Ok(-1));
        // Thrown again out of the inner handler, by a callee, by a rethrow, by a check; 0 throws nothing.
        assert_eq!(
            (0..5).map(|n| run("nested", n)).collect::<Vec<_>>(),
            [Ok(0), Ok(11), Ok(12), Ok(13), Ok(14)]
        );
        assert_eq!(run("rethrow", 3), Err(K::BoundsError));
        // The outer handler is in force again after the inner region and inside the inner handler.
        assert_eq!(run("again", 0), Ok(111));
        assert_eq!(run("again", 1), Ok(101));
        // No handler is left in the list.
        assert_eq!(run("down", 0), Err(K::BoundsError));
    }
}

#[test]
fn handlers_in_loops_and_in_every_frame_of_a_recursion() {
    for tier in TIERS {
        let jit = engine();
        let unit = build(&jit, tier);
        for count in [0, 1, 10, 1000] {
            let expected = (1..=count)
                .map(|i| {
                    if i % 3 == 0 {
                        100
                    } else if i % 3 == 1 {
                        10
                    } else {
                        i
                    }
                })
                .sum();
            assert_eq!(call(&unit, "looped", count), Ok(expected));
        }
        assert_eq!(call(&unit, "frames", 1000), Ok(1000));
        assert_eq!(call(&unit, "retry", 20), Ok(20));
    }
}

#[test]
fn values_live_in_the_handler_survive() {
    for tier in TIERS {
        let jit = engine();
        let unit = build(&jit, tier);
        // Slots hold what was stored last before the throw.
        assert_eq!(
            (0..4).map(|n| call(&unit, "progress", n)).collect::<Vec<_>>(),
            [Ok(0), Ok(1), Ok(2), Ok(30)]
        );
        // Arguments on the stack belong to the callee, which never popped them.
        for _ in 0..3 {
            assert_eq!(call(&unit, "many", 7), Ok(7 * 66 + 7));
        }
    }
}

#[test]
fn a_stack_overflow_is_caught_and_the_stack_is_there_again() {
    for tier in TIERS {
        let jit = engine();
        let unit = build(&jit, tier);
        for _ in 0..3 {
            assert_eq!(call(&unit, "overflow", 1), Ok(-5));
        }
        assert_eq!(call(&unit, "catch", 100), Ok(1100));
    }
}

#[test]
fn an_interrupt_is_caught_at_a_safepoint_inside_a_region() {
    for tier in TIERS {
        let jit = engine();
        let unit = build(&jit, tier);
        let (sender, handle) = mpsc::channel();
        let running = std::thread::spawn({
            let (unit, jit) = (unit.clone(), jit.clone());
            move || {
                sender.send(Interrupt::for_current(jit.runtime()).unwrap()).unwrap();
                call(&unit, "endless", 9)
            }
        });
        let interrupt = handle.recv().unwrap();
        while !running.is_finished() {
            interrupt.raise();
            std::thread::yield_now();
        }
        assert_eq!(running.join().unwrap(), Ok(10));
    }
}
