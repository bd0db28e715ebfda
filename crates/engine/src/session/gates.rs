//! How units of a session reach each other's functions, and lose them.
//!
//! ```text
//!   caller ── gate ──► f          gate: one for each function that other units call directly      (crates/jit/src/gates.rs)
//!   caller ── bend ──► f          bend: one for each caller that closed a circle                   (bends.rs)
//!
//!   removed by a tombstone ──► all of them are closed: every call from another unit throws CompileError
//! ```
//!
//! Code of a session calls nothing outside of its unit by its address. Callers keep gates, and open gates keep code, so what is removed in any other
//! way, or replaced, stays as long as code that was linked to it. A tombstone closes what leads to the removed functions for everybody, also for
//! functions that handles alone keep; what was removed is free when no thread runs it and no handle enters it.
//!
//! Whoever is being linked to a function when it is removed has its gate by then, or finds that it is closed, and looks it up again. In either
//! case the session refuses what was linked to something that is gone by now (`make.rs`).

use std::sync::{Arc, Mutex, Weak};

use brolga_jit::{Gate, NoCell, Target};
use brolga_linking::{Host, Label};

use super::bends::Bend;
use super::linking;
use super::methods::SessionMethods;
use super::plan::lock;
use super::target::{Code, Moved, Native};

/// What leads to a function from other units.
#[derive(Default)]
pub(crate) struct Access {
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    gate: Weak<Gate>,
    /// The gate, once C may have its entry.
    for_c: Option<Arc<Gate>>,
    bends: Vec<Weak<Bend>>,
    /// Whether the function was removed by a tombstone.
    is_closed: bool,
}

impl Access {
    /// The gate to the function, which is this.
    ///
    /// # Errors
    /// There is no memory for it. The inner one: the function has been removed.
    pub(crate) fn gate(&self, target: &Target) -> Result<Result<Arc<Gate>, Moved>, NoCell> {
        let there = || {
            let known = lock(&self.known);
            if known.is_closed { Err(Moved) } else { Ok(known.gate.upgrade()) }
        };
        match there() {
            Err(moved) => return Ok(Err(moved)),
            Ok(Some(gate)) => return Ok(Ok(gate)),
            Ok(None) => {}
        }
        // Made without the lock, since room may have to be made for it; of two threads that do the same, the first one's is taken.
        let made = target.gate()?;
        let mut known = lock(&self.known);
        if known.is_closed {
            return Ok(Err(Moved));
        }
        let gate = known.gate.upgrade().unwrap_or_else(|| made.clone());
        known.gate = Arc::downgrade(&gate);
        drop(known);
        // One that is not taken goes without the lock.
        drop(made);
        Ok(Ok(gate))
    }

    /// Keeps the gate for as long as the function, since C may call through it.
    pub(crate) fn keep(&self, gate: &Arc<Gate>) {
        let mut known = lock(&self.known);
        if !known.is_closed {
            known.for_c = Some(gate.clone());
        }
    }

    /// Lets a bend lead to the function, which is this.
    pub(crate) fn lead(&self, bend: &Arc<Bend>, target: Target) {
        let mut known = lock(&self.known);
        if known.bends.len() == known.bends.capacity() {
            // Callers that were replaced or removed, before there is more room made.
            known.bends.retain(|bend| bend.strong_count() > 0);
        }
        known.bends.push(Arc::downgrade(bend));
        drop(known);
        bend.lead(target);
        // Who has closed it meanwhile has done so before it led here.
        if lock(&self.known).is_closed {
            bend.close();
        }
    }

    /// From now on nobody comes to the function who does not run it yet.
    fn close(&self) {
        let mut known = lock(&self.known);
        known.is_closed = true;
        let (gate, bends) = (std::mem::take(&mut known.gate), std::mem::take(&mut known.bends));
        drop(known);
        gate.upgrade().into_iter().for_each(|gate| gate.close());
        bends.iter().filter_map(Weak::upgrade).for_each(|bend| bend.close());
    }
}

/// What the linking model asks of a session of machine code.
pub(crate) struct Tombs {
    pub(crate) methods: Arc<SessionMethods>,
}

impl Host<Native> for Tombs {
    fn unnamed(&self, session: &linking::Session<Native>, labels: &[Label]) {
        self.methods.remove(session, labels);
    }

    fn entomb(&self, code: &Code) {
        code.access().iter().for_each(|access| access.close());
    }
}
