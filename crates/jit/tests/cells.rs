//! Calls through cells while their code is replaced.

mod support;

use std::sync::atomic::{AtomicBool, Ordering};

use brolga_jit::{BuildError, CellError, LinkError, Source};
use support::lazy::{Program, STEPS};
use support::{TIERS, engine, int_function};

#[test]
fn code_behind_a_cell_is_replaced_while_threads_call_it() {
    const CALLS: i64 = 1000;
    for tier in TIERS {
        let jit = engine();
        let program = Program::new(&jit, tier, STEPS);
        let targets = ["step", "stride"].map(|name| program.target(name));
        let (owner, count) = (program.owner("step"), program.cell("count"));
        owner.set(targets[0].clone()).unwrap();
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4)
                .map(|_| {
                    let count = count.func::<(i64,), i64>().unwrap();
                    let stop = &stop;
                    scope.spawn(move || {
                        let mut seen = Vec::new();
                        while !stop.load(Ordering::Relaxed) {
                            seen.push(count.call((CALLS,)).unwrap());
                        }
                        seen
                    })
                })
                .collect();
            for round in 0..2000 {
                owner.set(targets[(round + 1) % 2].clone()).unwrap();
                if round % 100 == 0 {
                    std::thread::yield_now();
                }
            }
            stop.store(true, Ordering::Relaxed);
            for thread in threads {
                let seen = thread.join().unwrap();
                assert!(seen.iter().all(|sum| (CALLS..=2 * CALLS).contains(sum)), "{seen:?}");
            }
        });
        for (target, sum) in targets.into_iter().zip([CALLS, 2 * CALLS]) {
            owner.set(target).unwrap();
            assert_eq!(program.call("count", CALLS).unwrap(), sum);
        }
        assert_eq!(program.count("count"), 1);
    }
}

#[test]
fn code_that_takes_something_else_does_not_get_behind_a_cell() {
    let jit = engine();
    let program = Program::new(&jit, TIERS[0], STEPS);
    let refused = program.owner("step").set(program.target("split"));
    assert!(matches!(refused, Err(CellError::Type { .. })), "{refused:?}");
    let other = engine();
    let strange = Program::new(&other, TIERS[0], STEPS);
    let refused = program.owner("step").set(strange.target("step"));
    assert!(matches!(refused, Err(CellError::OtherEngine { .. })), "{refused:?}");
    assert_eq!(program.call("step", 1), Ok(2));
}

#[test]
fn a_unit_whose_cells_are_not_there_or_are_others_is_not_linked() {
    use brolga_codegen::isa::Tier;
    use brolga_codegen::linkage::CallKind;
    use brolga_ir::diag::SourceFile;
    use brolga_ir::{Context, text};
    use brolga_jit::{Linkage, Style};

    // Here `step` takes two.
    const OTHER: &str = "
low function step(n::i64, m::i64)::i64
1 ─ return m
end

low function caller(n::i64)::i64
1 ─ %1 = invoke step(n, n)::i64
└──      return %1
end
";
    let jit = engine();
    let program = Program::new(&jit, TIERS[0], STEPS);
    let cx = Context::new();
    let (unit, _) = text::read(&SourceFile::new("other.jlir", OTHER).unwrap(), &cx);
    let caller = unit.module.funcs().map(|(_, func)| func).find(|func| cx.names.text(func.name) == "caller");
    let source = Source { func: caller.unwrap(), ty: Some(int_function("caller", 1).into()) };
    let style = Style { others: &|_| CallKind::Cell, ..Tier::Baseline.into() };
    let compiled = jit.compile(&cx, &[source], style).unwrap();
    let missing = jit.link(&compiled, &Linkage::default());
    assert!(matches!(missing, Err(BuildError::Link(LinkError::Unresolved { .. }))), "{missing:?}");
    let refused = jit.link(&compiled, &Linkage { indirect: Some(&*program), ..Linkage::default() });
    assert!(matches!(&refused, Err(BuildError::Signature { name, .. }) if name == "step"), "{refused:?}");
}

const RING: &str = "
low function even(n::i64)::i64
1 ─ %1 = eq_int(n, 0)::i8
└──      goto #3 if not %1
2 ─      return 1
3 ─ %4 = sub_int(n, 1)::i64
│   %5 = invoke odd(%4)::i64
└──      return %5
end

low function odd(n::i64)::i64
1 ─ %1 = eq_int(n, 0)::i8
└──      goto #3 if not %1
2 ─      return 0
3 ─ %4 = sub_int(n, 1)::i64
│   %5 = invoke even(%4)::i64
└──      return %5
end
";

#[test]
fn code_that_no_cell_leads_to_is_freed_when_no_thread_runs_it() {
    let jit = engine();
    let in_use = || jit.stats().in_use;
    let round = || {
        let program = Program::new(&jit, TIERS[0], RING);
        assert_eq!(program.call("even", 5), Ok(0));
        let (one, once) = (in_use(), program.cell("odd"));
        for _ in 0..20 {
            program.owner("odd").set(program.target("odd")).unwrap();
        }
        assert_eq!((program.call("even", 6), in_use()), (Ok(1), one));
        drop(program);
        // A cell alone keeps no code.
        drop(once);
        assert_eq!(jit.runtime().retired(), 0);
        in_use()
    };
    let first = round();
    assert!((0..10).all(|_| round() == first));

    // While a thread is inside, the code that it may run stays, unless it reports a safepoint.
    let program = Program::new(&jit, TIERS[0], RING);
    assert_eq!(program.call("even", 1), Ok(0));
    let inside = in_use();
    let replace = || program.owner("odd").set(program.target("odd")).unwrap();
    brolga_runtime::with_attached(jit.runtime(), |thread| {
        let entered = thread.enter();
        std::thread::scope(|scope| scope.spawn(replace).join().unwrap());
        assert!(in_use() > inside && jit.runtime().retired() == 1);
        drop(entered);
        assert_eq!((in_use(), jit.runtime().retired()), (inside, 0));
        let _entered = thread.enter();
        replace();
        assert_eq!((in_use(), jit.runtime().retired()), (inside, 0));
    })
    .unwrap();
}

#[test]
fn calls_are_switched_between_bodies_and_what_was_chosen_last_stays() {
    let jit = engine();
    let program = Program::new(&jit, TIERS[0], RING);
    let even = program.cell("even").func::<(i64,), i64>().unwrap();
    assert_eq!(even.call((4,)), Ok(1));
    let mut owner = jit.cell(program.ty("even"), program.source("even")).unwrap();
    let function = owner.cell().func::<(i64,), i64>().unwrap();
    let in_use = jit.stats().in_use;
    let mut switch = owner.switch(vec![program.target("even"), program.target("odd")]).unwrap().unwrap();
    for n in 0..10 {
        assert!(switch.set(n % 2));
        // Odd numbers are odd, and not even.
        assert_eq!(function.call((3,)), Ok((n % 2) as i64));
    }
    assert!(!switch.set(2) && switch.set(1));
    drop(switch);
    assert_eq!((function.call((3,)), owner.cell().is_ready()), (Ok(1), true));
    drop((owner, function));
    assert_eq!((jit.runtime().retired(), jit.stats().in_use <= in_use), (0, true));
    assert!(jit.cell(program.ty("even"), program.source("even")).unwrap().switch(vec![]).unwrap().is_none());
}

#[test]
fn a_call_goes_where_the_end_of_the_source_has_led_its_cell() {
    use std::sync::{Arc, Mutex, OnceLock};

    use brolga_jit::{CellOwner, Materialize, Target};

    /// Makes one function, and replaces it by another one when dropped.
    struct Replaces {
        first: Mutex<Option<Target>>,
        second: Mutex<Option<Target>>,
        owner: Arc<OnceLock<CellOwner>>,
    }

    impl Materialize for Replaces {
        fn materialize(&self) -> Result<Target, Box<dyn std::error::Error + Send + Sync>> {
            Ok(self.first.lock().unwrap().take().unwrap())
        }
    }

    impl Drop for Replaces {
        fn drop(&mut self) {
            if let (Some(owner), Some(second)) = (self.owner.get(), self.second.get_mut().unwrap().take()) {
                owner.set(second).unwrap();
            }
        }
    }

    for tier in TIERS {
        let jit = engine();
        let program = Program::new(&jit, tier, STEPS);
        let target = |name| Mutex::new(Some(program.target(name)));
        let held = Arc::new(OnceLock::new());
        let source = Replaces { first: target("step"), second: target("stride"), owner: held.clone() };
        let owner = jit.cell(program.ty("step"), Arc::new(source)).unwrap();
        let cell = owner.cell();
        held.set(owner).unwrap();
        // The older code may have been freed when the call continues.
        assert_eq!(cell.func::<(i64,), i64>().unwrap().call((1,)), Ok(3));
    }
}
