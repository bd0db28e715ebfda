//! Functions that are compiled again when they have been called often.

mod support;

use std::error::Error;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, OnceLock, Weak};

use brolga_codegen::isa::Tier;
use brolga_codegen::linkage::CallKind;
use brolga_jit::{
    CellOwner, FindCell, IndirectCell, Jit, Materialize, Style, Target, Tiers, Upgrade, Upgrades,
};
use support::engine;
use support::lazy::{Program, STEPS};

type Optimise = dyn Fn(&Two) -> Result<Target, Box<dyn Error + Send + Sync>> + Send + Sync;

/// `step` in two tiers, of which the second is `stride`, and `count`, which calls it.
struct Two {
    program: Arc<Program>,
    owners: OnceLock<[CellOwner; 2]>,
    optimise: Box<Optimise>,
    optimised: AtomicUsize,
}

/// Upgrades that a thread of the test runs.
struct Sent(Sender<Upgrade>);

impl Upgrades for Sent {
    fn enqueue(&self, upgrade: Upgrade) -> Option<Box<dyn FnOnce() + Send>> {
        self.0.send(upgrade).unwrap();
        None
    }
}

struct Step(Weak<Two>);
struct Count(Weak<Two>);

const THRESHOLD: i32 = 100;

impl Two {
    fn new(jit: &Jit, optimise: Box<Optimise>) -> Arc<Two> {
        let program = Program::new(jit, Tier::Baseline, STEPS);
        let optimised = AtomicUsize::new(0);
        let two = Arc::new(Two { program, owners: OnceLock::new(), optimise, optimised });
        let step = Arc::new(Step(Arc::downgrade(&two)));
        let step = jit.tiered(two.program.ty("step"), step, THRESHOLD, None).unwrap();
        let count = Arc::new(Count(Arc::downgrade(&two)));
        let count = jit.cell(two.program.ty("count"), count).unwrap();
        assert!(two.owners.set([step, count]).is_ok());
        two
    }

    fn cells(&self) -> [IndirectCell; 2] {
        self.owners.get().unwrap().each_ref().map(CellOwner::cell)
    }

    fn call(&self, n: i64) -> i64 {
        self.cells()[1].func::<(i64,), i64>().unwrap().call((n,)).unwrap()
    }
}

impl FindCell for Two {
    fn cell(&self, name: &str) -> Result<IndirectCell, String> {
        let [step, count] = self.cells();
        Ok(if name == "step" { step } else { count })
    }
}

impl Materialize for Step {
    fn materialize(&self) -> Result<Target, Box<dyn Error + Send + Sync>> {
        let two = self.0.upgrade().ok_or("gone")?;
        let style = Style { counted: &|name| name == "step", ..Tier::Baseline.into() };
        Ok(two.program.target_with("step", style, &*two))
    }

    fn may_pass(&self, error: &(dyn Error + Send + Sync + 'static)) -> bool {
        error.to_string() == "no room"
    }
}

impl Tiers for Step {
    fn optimise(&self) -> Result<Target, Box<dyn Error + Send + Sync>> {
        let two = self.0.upgrade().ok_or("gone")?;
        two.optimised.fetch_add(1, Ordering::Relaxed);
        (two.optimise)(&two)
    }
}

impl Materialize for Count {
    fn materialize(&self) -> Result<Target, Box<dyn Error + Send + Sync>> {
        let two = self.0.upgrade().ok_or("gone")?;
        let style = Style { others: &|_| CallKind::Cell, ..Tier::Baseline.into() };
        Ok(two.program.target_with("count", style, &*two))
    }
}

fn stride(two: &Two) -> Result<Target, Box<dyn Error + Send + Sync>> {
    Ok(two.program.target_style("stride", Tier::Optimised.into()))
}

#[test]
fn a_function_is_optimised_once_after_as_many_calls_as_asked_for() {
    let jit = engine();
    let two = Two::new(&jit, Box::new(stride));
    let limit = i64::from(THRESHOLD);
    assert_eq!((two.call(limit), jit.upgrade_hot()), (limit, 0));
    assert_eq!((two.call(1), jit.upgrade_hot()), (1, 1));
    assert_eq!((two.call(10 * limit), jit.upgrade_hot()), (20 * limit, 0));
    assert_eq!(two.optimised.load(Ordering::Relaxed), 1);
    assert_eq!(jit.runtime().retired(), 0, "the first tier is gone");
}

#[test]
fn threads_that_call_reach_the_second_tier_without_stopping() {
    let jit = engine();
    let two = Two::new(&jit, Box::new(stride));
    let (sender, upgrades) = channel();
    jit.upgrade_by(Arc::new(Sent(sender)));
    let upgrader =
        std::thread::spawn(move || upgrades.into_iter().map(Upgrade::run).filter(|&done| done).count());
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let count = two.cells()[1].func::<(i64,), i64>().unwrap();
                loop {
                    match count.call((1000,)).unwrap() {
                        2000 => break,
                        sum => assert!((1000..2000).contains(&sum), "{sum}"),
                    }
                }
            });
        }
    });
    assert_eq!((two.optimised.load(Ordering::Relaxed), jit.upgrade_hot()), (1, 0));
    // The engine has the sender.
    drop((two, jit));
    assert_eq!(upgrader.join().unwrap(), 1);
}

#[test]
fn a_function_that_cannot_be_optimised_keeps_its_code() {
    let ways: [Box<Optimise>; 2] =
        [Box::new(|_| Err("too clever".into())), Box::new(|_| panic!("much too clever"))];
    for optimise in ways {
        let jit = engine();
        let two = Two::new(&jit, optimise);
        assert_eq!((two.call(1000), jit.upgrade_hot()), (1000, 0));
        assert_eq!((two.call(1000), jit.upgrade_hot()), (1000, 0));
        assert_eq!(two.optimised.load(Ordering::Relaxed), 1);
    }
}

#[test]
fn a_failed_optimisation_is_retried_after_twice_as_many_calls() {
    let jit = engine();
    let refused = |two: &Two| two.optimised.load(Ordering::Relaxed) <= 2;
    let two =
        Two::new(&jit, Box::new(move |two| if refused(two) { Err("no room".into()) } else { stride(two) }));
    let mut limit = i64::from(THRESHOLD);
    for round in 0..3 {
        assert_eq!((two.call(limit), jit.upgrade_hot()), (limit, 0));
        assert_eq!(two.optimised.load(Ordering::Relaxed), round);
        assert_eq!((two.call(1), jit.upgrade_hot()), (1, usize::from(round == 2)));
        assert_eq!(two.optimised.load(Ordering::Relaxed), round + 1);
        limit *= 2;
    }
    assert_eq!((two.call(10), jit.upgrade_hot()), (20, 0));
}

#[test]
fn code_replaced_during_optimisation_is_not_overwritten() {
    let jit = engine();
    let two = Two::new(
        &jit,
        Box::new(|two| {
            let [step, _] = two.owners.get().unwrap();
            step.set(two.program.target_style("step", Tier::Baseline.into()))?;
            stride(two)
        }),
    );
    assert_eq!((two.call(1000), jit.upgrade_hot(), two.call(1000)), (1000, 0, 1000));
}
