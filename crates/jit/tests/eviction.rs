//! Limited memory for code: a unit that does not fit is a typed error that changes nothing, or the least recently used units
//! are dropped.

mod support;

use std::sync::{Arc, Mutex};

use brolga_codegen::isa::Tier;
use brolga_jit::{CodeMemoryError, CodeMemoryOptions, Evicted, Evictor, Jit, LinkError, Unit, UnitCache};
use cranelift_codegen::ir::InstBuilder;
use support::{compile, engines_with, int_function, ints, try_load};

const LIMIT: usize = 64 << 10;

fn limited() -> [Jit; 3] {
    engines_with(CodeMemoryOptions { limit: Some(LIMIT), ..CodeMemoryOptions::default() })
}

/// A unit whose function returns `value`, of several hundred bytes.
fn unit(jit: &Jit, value: i64) -> Result<Unit, LinkError> {
    let function = compile(jit, Tier::Baseline, "f", &ints(1, 1), |c| {
        let x = c.params()[0];
        let mut sum = c.int(value);
        for _ in 0..40 {
            sum = c.b.ins().bxor(sum, x);
            sum = c.b.ins().iadd(sum, x);
        }
        c.b.ins().return_(&[sum]);
    });
    try_load(jit, vec![function], vec![], vec![int_function("f", 1)], &[])
}

fn value(unit: &Unit) -> i64 {
    unit.func::<(i64,), i64>("f").unwrap().call((0,)).unwrap()
}

#[test]
fn over_the_limit_is_an_error_and_what_is_loaded_goes_on() {
    for jit in limited() {
        let mut units = vec![unit(&jit, 0).unwrap()];
        // The trampoline takes its room before the memory is full.
        assert_eq!(value(&units[0]), 0);
        let error = loop {
            match unit(&jit, units.len() as i64) {
                Ok(unit) => units.push(unit),
                Err(error) => break error,
            }
        };
        assert!(matches!(error, LinkError::Memory(CodeMemoryError::Limit { limit: LIMIT, .. })), "{error}");
        assert!(units.len() > 10);
        let stats = jit.stats();
        assert!(stats.in_use <= LIMIT);
        assert!(unit(&jit, 0).is_err());
        assert_eq!(jit.stats(), stats);
        for (index, unit) in units.iter().enumerate() {
            assert_eq!(value(unit), index as i64);
            let code = unit.loaded().code().function("f").unwrap();
            assert_eq!(jit.symbolize(code.address()).unwrap().unit, unit.loaded().code().id());
        }
        // Room that is given back is used.
        drop(units.swap_remove(3));
        assert_eq!(value(&unit(&jit, 77).unwrap()), 77);
    }
}

#[test]
fn the_units_that_were_not_used_longest_go_first_and_those_in_use_stay() {
    for jit in limited() {
        let cache = Arc::new(UnitCache::<i64>::new());
        let evictor: Arc<dyn Evictor> = cache.clone();
        jit.set_evictor(&evictor);
        let held = unit(&jit, 0).unwrap();
        assert_eq!(value(&held), 0);
        cache.insert(0, held.clone());
        cache.insert(1, unit(&jit, 1).unwrap());
        for key in 2..1_000 {
            cache.insert(key, unit(&jit, key).unwrap());
            // This one is in constant use.
            assert_eq!(value(&cache.get(&1).unwrap()), 1);
        }
        assert!(jit.stats().in_use <= LIMIT);
        assert!(cache.len() < 990 && cache.len() > 5, "{}", cache.len());
        assert!(cache.get(&2).is_none(), "it was used longest ago");
        assert_eq!(value(&cache.get(&999).unwrap()), 999);
        assert_eq!(value(&cache.get(&0).unwrap()), 0);
        assert_eq!(value(&held), 0);
    }
}

#[test]
fn an_evictor_that_frees_nothing_leaves_the_error() {
    struct Idle;
    impl Evictor for Idle {
        fn evict(&self, _: usize) -> Evicted {
            // It claims to have done something.
            Evicted::Some
        }
    }
    let [jit, ..] = limited();
    let evictor: Arc<dyn Evictor> = Arc::new(Idle);
    jit.set_evictor(&evictor);
    let units: Vec<Unit> = std::iter::from_fn(|| unit(&jit, 5).ok()).collect();
    assert!(units.len() > 10);
    drop(evictor);
    assert!(unit(&jit, 5).is_err());
}

/// Between a thread's attempt and its search for evictable code, another thread frees all units.
#[test]
fn room_freed_between_attempt_and_eviction_is_used() {
    struct Other(Mutex<Vec<Unit>>);
    impl Evictor for Other {
        fn evict(&self, _: usize) -> Evicted {
            let gone = std::mem::take(&mut *self.0.lock().unwrap());
            drop(gone);
            Evicted::Nothing
        }
    }
    for jit in limited() {
        let other = Arc::new(Other(Mutex::default()));
        let units: Vec<Unit> = std::iter::from_fn(|| unit(&jit, 5).ok()).collect();
        assert!(units.len() > 10);
        *other.0.lock().unwrap() = units;
        let evictor: Arc<dyn Evictor> = other;
        jit.set_evictor(&evictor);
        assert_eq!(value(&unit(&jit, 7).unwrap()), 7);
    }
}

#[test]
fn where_nothing_can_be_evicted_a_full_reservation_is_an_error() {
    for jit in engines_with(CodeMemoryOptions { reserve: 64 << 10, ..CodeMemoryOptions::default() }) {
        let nothing: Arc<dyn Evictor> = Arc::new(UnitCache::<i64>::new());
        jit.set_evictor(&nothing);
        let mut units = Vec::new();
        let error = loop {
            match unit(&jit, units.len() as i64) {
                Ok(unit) => units.push(unit),
                Err(error) => break error,
            }
        };
        assert!(matches!(error, LinkError::Memory(CodeMemoryError::Full { .. })), "{error}");
        drop(units);
        assert_eq!(value(&unit(&jit, 7).unwrap()), 7);
    }
}
