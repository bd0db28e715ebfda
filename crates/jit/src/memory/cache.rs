//! Units that may be evicted: a cache that shrinks when code memory is short.
//!
//! ```text
//!   Jit::load ── no room ──► Evictor::evict(bytes) ──► the least recently used units are dropped ──► once more
//! ```
//!
//! An engine calls its [`Evictor`] when a unit does not fit, by the limit or by the reservation of
//! [`CodeMemoryOptions`](crate::CodeMemoryOptions). [`UnitCache`] is an evictor for programs that can compile their units
//! again: queries, expressions, regular expressions. A unit with another handle, or a function of it, stays:
//! dropping it here would free nothing.
//!
//! The engine does not keep its evictor, because the units in it keep the engine.
//!
//! Cost: a look-up is two steps in ordered trees under a lock.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use brolga_instances::Evicted;

use crate::memory::evictor::Evictor;
use crate::unit::Unit;

/// Units by key; the least recently used ones are dropped when room is needed.
pub struct UnitCache<K> {
    state: Mutex<State<K>>,
}

struct State<K> {
    units: BTreeMap<K, (u64, Unit)>,
    /// Keys by the time of their last use.
    by_use: BTreeMap<u64, K>,
    /// Uses so far.
    now: u64,
}

impl<K: Ord + Clone> UnitCache<K> {
    /// An empty cache. [`Jit::set_evictor`](crate::Jit::set_evictor) makes an engine use it.
    pub fn new() -> UnitCache<K> {
        UnitCache { state: Mutex::new(State { units: BTreeMap::new(), by_use: BTreeMap::new(), now: 0 }) }
    }

    /// The unit of a key, which counts as a use.
    pub fn get(&self, key: &K) -> Option<Unit> {
        let mut state = self.lock();
        let (last, unit) = state.units.get(key)?;
        let (last, unit) = (*last, unit.clone());
        let key = state.by_use.remove(&last)?;
        let now = state.tick();
        state.by_use.insert(now, key.clone());
        state.units.insert(key, (now, unit.clone()));
        Some(unit)
    }

    /// Keeps a unit. Returns the key's previous unit.
    pub fn insert(&self, key: K, unit: Unit) -> Option<Unit> {
        let mut state = self.lock();
        let now = state.tick();
        let (last, before) = state.units.insert(key.clone(), (now, unit)).unzip();
        if let Some(last) = last {
            state.by_use.remove(&last);
        }
        state.by_use.insert(now, key);
        before
    }

    /// How many units there are.
    pub fn len(&self) -> usize {
        self.lock().units.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn lock(&self) -> MutexGuard<'_, State<K>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Ord + Clone> Default for UnitCache<K> {
    fn default() -> Self {
        UnitCache::new()
    }
}

impl<K> State<K> {
    fn tick(&mut self) -> u64 {
        self.now += 1;
        self.now
    }
}

impl<K: Ord + Clone + Send> Evictor for UnitCache<K> {
    fn evict(&self, bytes: usize) -> Evicted {
        let mut gone = Vec::new();
        let mut state = self.lock();
        let State { units, by_use, .. } = &mut *state;
        let mut freed = 0;
        by_use.retain(|_, key| {
            let Some((_, unit)) = units.get(key).filter(|(_, unit)| freed < bytes && !unit.is_shared())
            else {
                return true;
            };
            freed += unit.loaded().code().addresses().len();
            gone.extend(units.remove(key));
            false
        });
        // Units are dropped without the lock: they may keep arbitrary values.
        drop(state);
        if gone.is_empty() { Evicted::Nothing } else { Evicted::Some }
    }
}
