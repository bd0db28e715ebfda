//! Versions of a function, each for its worlds: calls reach the versions of the world that their thread entered.

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use brolga_jit::{Body, CellOwner, Jit, Materialize};
use brolga_runtime::{RetiredCode, with_attached};
use support::lazy::{Program, STEPS, thrown};
use support::{TIERS, engine};

const CALLS: i64 = 20_000;

/// Redefines a function for the worlds from the next one on.
fn redefine(jit: &Jit, owner: &CellOwner, body: Body) -> u64 {
    let (reserved, mut superseded) = (owner.reserve().unwrap(), None);
    let mut body = Some((reserved, body));
    let world = jit.runtime().next_world(|world| {
        superseded = body.take().map(|(reserved, body)| owner.supersede(reserved, world, body));
    });
    jit.runtime().retire(superseded.map(|old| Box::new(old) as Box<dyn RetiredCode>));
    world
}

#[test]
fn a_running_frame_calls_the_version_of_its_world_to_its_end() {
    for tier in TIERS {
        let jit = engine();
        let program = Program::new(&jit, tier, STEPS);
        let owner = program.owner("step");
        let count = program.cell("count").func::<(i64,), i64>().unwrap();
        assert_eq!(count.call((CALLS,)), Ok(CALLS));
        let (stop, begun) = (AtomicBool::new(false), AtomicI64::new(0));
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..3)
                .map(|_| {
                    scope.spawn(|| {
                        let mut seen = [0, 0];
                        while !stop.load(Ordering::Relaxed) {
                            begun.fetch_add(1, Ordering::Relaxed);
                            match count.call((CALLS,)).unwrap() {
                                CALLS => seen[0] += 1,
                                sum if sum == 2 * CALLS => seen[1] += 1,
                                mixed => panic!("{mixed}: a frame has called two versions"),
                            }
                        }
                        seen
                    })
                })
                .collect();
            for round in 0..200 {
                let before = begun.load(Ordering::Relaxed);
                let name = ["stride", "step"][round % 2];
                redefine(&jit, owner, Body::Once(program.source(name)));
                let expected = [2 * CALLS, CALLS][round % 2];
                assert_eq!(count.call((CALLS,)), Ok(expected), "a call that begins now is in the new world");
                while begun.load(Ordering::Relaxed) < before + 3 {
                    std::thread::yield_now();
                }
            }
            stop.store(true, Ordering::Relaxed);
            let seen = threads.into_iter().map(|thread| thread.join().unwrap());
            let seen = seen.fold([0, 0], |sum, seen| [sum[0] + seen[0], sum[1] + seen[1]]);
            assert!(seen[0] > 0 && seen[1] > 0, "{seen:?}");
        });
        jit.runtime().free_retired();
        assert_eq!(jit.runtime().retired(), 0);
    }
}

/// A thread that stays inside sees the versions of its own world, and does not delay others.
#[test]
fn versions_that_no_thread_sees_are_freed_while_one_stays_inside() {
    for tier in TIERS {
        let jit = engine();
        let program = Program::new(&jit, tier, STEPS);
        let (owner, runtime) = (program.owner("step"), jit.runtime());
        let elsewhere = |round: usize| {
            redefine(&jit, owner, Body::Once(program.source(["stride", "step"][round % 2])));
            let expected = [20, 10][round % 2];
            assert_eq!(program.call("count", 10), Ok(expected), "another thread is in the newest world");
        };
        let in_this_world = with_attached(runtime, |thread| {
            let _entered = thread.enter();
            let _world = thread.enter_world(runtime.methods());
            let blocked = thread.blocking(|| {
                for round in 0..100 {
                    std::thread::scope(|scope| scope.spawn(|| elsewhere(round)).join()).unwrap();
                    runtime.free_retired();
                    assert!(runtime.retired() <= 1, "{}", runtime.retired());
                }
            });
            assert_eq!(blocked, Ok(()));
        });
        assert_eq!(in_this_world, Ok(()));
        runtime.free_retired();
        assert_eq!(runtime.retired(), 0);
    }
}

#[test]
fn a_version_is_compiled_for_whoever_sees_it_and_removal_is_one_more() {
    for tier in TIERS {
        let jit = engine();
        let program = Program::new(&jit, tier, STEPS);
        let owner = program.owner("step");
        // Superseded before it was compiled.
        redefine(&jit, owner, Body::Once(program.source("stride")));
        assert_eq!((program.count("step"), program.count("stride")), (0, 0));
        assert_eq!(program.call("count", 10), Ok(20));
        assert_eq!((program.count("step"), program.count("stride")), (0, 1));
        redefine(&jit, owner, Body::Removed);
        assert_eq!(thrown(program.call("count", 10)), "CompileError: `step` has been removed");
        redefine(&jit, owner, Body::Once(program.source("step")));
        assert_eq!(program.call("count", 10), Ok(10));
        // Two changes that come into force in the same world: the last one counts.
        let [first, second] = [(); 2].map(|()| owner.reserve().unwrap());
        let (mut given, mut old) = (Some((first, second)), Vec::new());
        let sources: [Arc<dyn Materialize>; 2] = [program.source("step"), program.source("stride")];
        jit.runtime().next_world(|world| {
            let Some((first, second)) = given.take() else { return };
            old.push(owner.supersede(first, world, Body::Once(sources[0].clone())));
            old.push(owner.supersede(second, world, Body::Once(sources[1].clone())));
        });
        jit.runtime().retire(old.into_iter().map(|old| Box::new(old) as Box<dyn RetiredCode>));
        assert_eq!(program.call("count", 10), Ok(20));
        // A version put in place by `set` counts in all worlds.
        owner.set(program.target("step")).unwrap();
        assert_eq!(program.call("count", 10), Ok(10));
        jit.runtime().free_retired();
        assert_eq!(jit.runtime().retired(), 0);
    }
}
