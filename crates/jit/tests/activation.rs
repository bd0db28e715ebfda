//! Calls within one entry, and raw entries.

mod support;

use brolga_codegen::isa::Tier;
use brolga_jit::{CallError, activate};
use support::lazy::{Program, STEPS};
use support::{compile, engine, int_function, ints, load};

#[test]
fn calls_within_an_activation_reach_what_is_behind_the_cell() {
    let jit = engine();
    let program = Program::new(&jit, Tier::Baseline, STEPS);
    let targets = ["step", "stride"].map(|name| program.target(name));
    let owner = program.owner("step");
    owner.set(targets[0].clone()).unwrap();
    let step = owner.cell().func::<(i64,), i64>().unwrap();
    let raw = step.raw();
    let word = raw.word().expect("a cell has a word");
    let [one, two] = activate(jit.runtime(), |activation| {
        let call = |arg: i64| {
            let mut result = 0;
            // SAFETY: the function takes one integer and returns one; the activation is of its runtime.
            unsafe { raw.call(activation, (&raw const arg).cast(), &raw mut result) }.map(|()| result as i64)
        };
        let within = |arg| (step.call_within(activation, (arg,)), call(arg));
        let before = within(1);
        owner.set(targets[1].clone()).unwrap();
        // SAFETY: the cell is held, and its word is in memory as long as it is.
        let leads = unsafe { std::sync::atomic::AtomicUsize::from_ptr(word.cast_mut()) };
        assert_eq!(leads.load(std::sync::atomic::Ordering::Acquire), raw.code());
        [before, within(1)]
    })
    .unwrap();
    assert_eq!((one, two), ((Ok(2), Ok(2)), (Ok(3), Ok(3))));
}

#[test]
fn code_replaced_within_an_activation_is_freed_after_it() {
    let jit = engine();
    let program = Program::new(&jit, Tier::Baseline, STEPS);
    let owner = program.owner("step");
    owner.set(program.target("step")).unwrap();
    let step = owner.cell().func::<(i64,), i64>().unwrap();
    let target = program.target("stride");
    activate(jit.runtime(), |activation| {
        std::thread::scope(|scope| scope.spawn(|| owner.set(target).unwrap()).join().unwrap());
        assert_eq!(jit.runtime().retired(), 1, "another thread has retired it, and this one is pinned");
        assert_eq!(step.call_within(activation, (1,)), Ok(3));
    })
    .unwrap();
    assert_eq!(jit.runtime().retired(), 0);
}

#[test]
fn exceptions_leave_one_call_and_not_the_activation() {
    let jit = engine();
    let function = compile(&jit, Tier::Optimised, "throws", &ints(1, 1), |c| {
        c.throw("brolga_throw_divide", &[]);
    });
    let unit = load(&jit, vec![function], vec![int_function("throws", 1)]);
    let throws = unit.func::<(i64,), i64>("throws").unwrap();
    let raw = throws.raw();
    assert_eq!(raw.word(), None, "its code stays where it is");
    activate(jit.runtime(), |activation| {
        for _ in 0..3 {
            let thrown = throws.call_within(activation, (1,));
            let Err(CallError::Exception(thrown)) = thrown else { panic!("it throws: {thrown:?}") };
            let (arg, mut result) = (1u64, 0u64);
            // SAFETY: the function takes one integer and returns one; the activation is of its runtime.
            let again = unsafe { raw.call(activation, &raw const arg, &raw mut result) };
            assert_eq!(again, Err(*thrown));
            assert!(matches!(throws.call((1,)), Err(CallError::Exception(_))), "an entry of its own nests");
        }
    })
    .unwrap();
}

#[test]
fn activations_and_scopes_of_one_runtime_do_not_mix() {
    let jit = engine();
    let program = Program::new(&jit, Tier::Baseline, STEPS);
    let owner = program.owner("step");
    owner.set(program.target("step")).unwrap();
    let step = owner.cell().func::<(i64,), i64>().unwrap();
    jit.runtime()
        .enter(|_| assert!(matches!(activate(jit.runtime(), |_| ()), Err(CallError::InScope))))
        .unwrap();
    activate(jit.runtime(), |activation| {
        let inside = jit.runtime().enter(|_| step.call_within(activation, (1,)));
        assert_eq!(inside, Ok(Err(CallError::InScope)));
        assert_eq!(step.call_within(activation, (1,)), Ok(2));
    })
    .unwrap();
    // Another runtime's activation is unsuitable; the call enters its own.
    let other = engine();
    assert_eq!(activate(other.runtime(), |activation| step.call_within(activation, (1,))), Ok(Ok(2)));
}
