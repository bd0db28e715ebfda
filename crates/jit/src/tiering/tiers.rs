//! Functions in two tiers: compiled fast at the first call, optimised when they are hot.
//!
//! ```text
//!   tier 1:  count -= 1; below zero? ── brolga_hot ──► Upgrade ──► Upgrade::run: tiers.optimise() ──► cell leads to tier 2
//!            └─ continues in any case                  a task of the embedder's `Upgrades`, or a call of `Jit::upgrade_hot`
//! ```
//!
//! Code of tier 1 counts the entries of its functions ([`Style::counted`](crate::Style)) in the counter of their cells. Code of tier 2
//! does not count. One store directs the cell to it and does not disturb running threads: the next call reaches it, and a
//! function of tier 1 calls itself through its cell.
//!
//! **Loops** that run for long would stay in tier 1 until they end. So a loop may have a continuation, a function that begins at its head
//! ([`LoopEntry`](super::counting::LoopEntry); `opt::osr` makes both), and at its head a check whether to leave for it:
//!
//! ```text
//!   head:  count -= 1; below zero? ── brolga_loop ── code of the entry is ready ──► leave: call [its cell], return its result
//!          └─ continues                      └──────── not yet: queue it once, count on
//! ```
//!
//! The entry has a cell and a counter like other functions, but no stub: its word is read only after a positive
//! check, and from then on it leads to the same code until the cell is dropped. The unit of the loop owns the cell, so
//! it lives as long as a thread can be at the head.
//!
//! `brolga_hot` and `brolga_loop` are called where unrooted objects are live. So they only enqueue an upgrade: no safepoint, no
//! foreign code ([`Upgrades::enqueue`]). If the hand-over needs foreign code, that runs at the thread's next safepoint. A function whose optimisation
//! fails keeps its code, and is not tried again, unless its source reports that the failure may be temporary
//! ([`Materialize::may_pass`](crate::Materialize::may_pass)): then after twice as many calls, or iterations, as the last time.
//!
//! Counters and limits: `counting.rs`; the hand-over: `upgrade.rs`.
//!
//! Cost: counting is three instructions and a branch, and a call for each stride; a function is put into the queue once.

use std::sync::Arc;

use brolga_codegen::linkage::{HOT, LOOP};
use brolga_codegen::sig::FunctionType;
use brolga_runtime::events::{Event, Stage};
use brolga_runtime::with_attached;

use crate::cell::{Body, CellOwner, IndirectCell, NoCell, Record, cell_of_counter};
use crate::engine::Jit;
use crate::tiering::counting::Tiers;
use crate::tiering::interpreter::Interpreter;
use crate::tiering::upgrade::{Upgradable, Upgrade, Upgrades, Wanted};

impl Upgradable for Record {
    fn upgrade(self: Arc<Self>, wanted: Wanted) -> bool {
        let cell = IndirectCell { record: self };
        let events = cell.jit().runtime().events();
        let _span = events.span(Stage::Upgrade, || &cell.ty().symbol);
        match wanted {
            Wanted::Compile => cell.compile_asked(),
            Wanted::Optimise => {
                let is_better = matches!(cell.optimise(), Ok(true));
                if is_better {
                    events.tell(Event::TieredUp { function: &cell.ty().symbol });
                }
                is_better
            }
        }
    }
}

/// Hands over a hot function. Not a safepoint.
pub(crate) fn hand_over(cell: &IndirectCell, wanted: Wanted) {
    let jit = cell.jit();
    if let Some(rest) = jit.upgrades().enqueue(Upgrade::new(cell.downgrade(), wanted)) {
        // The running thread is attached: it runs compiled code.
        let _attached = with_attached(jit.runtime(), |thread| thread.at_safepoint(rest));
    }
}

impl Jit {
    /// A cell for a function that is compiled in two tiers: the second after `threshold` entries. It is interpreted before, if there is an `interpreter`
    /// and its parameters and result are [numbers](brolga_codegen::lazy::can_be_interpreted).
    pub fn tiered(
        &self,
        ty: impl Into<Arc<FunctionType>>,
        tiers: Arc<dyn Tiers>,
        threshold: i32,
        interpreter: Option<Interpreter>,
    ) -> Result<CellOwner, NoCell> {
        CellOwner::new(self, ty.into(), Body::Tiered { tiers, threshold, interpreter })
    }

    /// How often a thread has continued in a [`LoopEntry`](crate::LoopEntry).
    pub fn left_loops(&self) -> u64 {
        self.upgrades().left_loops()
    }

    /// Makes `upgrades` optimise hot functions in the background from now on. The first one stays.
    pub fn upgrade_by(&self, upgrades: Arc<dyn Upgrades>) {
        self.upgrades().set_background(upgrades);
    }

    /// Optimises, on this thread, the functions that have become hot and that are not upgraded in the background. Returns their number.
    pub fn upgrade_hot(&self) -> usize {
        let mut count = 0;
        loop {
            // The lock is not held while the function is optimised.
            let Some(upgrade) = self.upgrades().next() else { return count };
            count += usize::from(upgrade.run());
        }
    }
}

/// The routines of this file.
pub(crate) fn routine(name: &str) -> Option<usize> {
    match name {
        HOT => Some(brolga_hot as *const () as usize),
        LOOP => Some(brolga_loop as *const () as usize),
        _ => None,
    }
}

/// The routine of tier 1 when the counter of a function has gone below zero. Not a safepoint.
extern "C" fn brolga_hot(counter: usize) {
    // SAFETY: compiled code passes the address of the counter that it was linked with, whose cell its unit keeps.
    let cell = unsafe { cell_of_counter(counter) };
    if cell.became_hot() {
        hand_over(&cell, Wanted::Optimise);
    }
}

/// Reports to the listener, if there is one, that this thread leaves a loop, the first time and when the number has doubled: at its next safepoint, because a
/// listener is foreign code.
fn tell_left(cell: &IndirectCell) {
    let runtime = cell.jit().runtime();
    if !runtime.events().is_on() {
        return;
    }
    let times = cell.jit().upgrades().count_left(cell.word());
    if !times.is_power_of_two() {
        return;
    }
    let (to, function) = (Arc::downgrade(runtime), cell.ty().symbol.clone());
    let tell = move || {
        if let Some(runtime) = to.upgrade() {
            runtime.events().tell(Event::LeftLoop { function: &function, times });
        }
    };
    // The running thread is attached: it runs compiled code.
    let _attached = with_attached(runtime, |thread| thread.at_safepoint(tell));
}

/// The routine of tier 1 when the counter of a loop has gone below zero: 1 if the loop is to be left. Not a safepoint.
extern "C" fn brolga_loop(counter: usize) -> u32 {
    // SAFETY: as in `brolga_hot`.
    let cell = unsafe { cell_of_counter(counter) };
    if cell.became_hot() {
        hand_over(&cell, Wanted::Compile);
    }
    let leaves = cell.leads_on();
    if leaves {
        cell.jit().upgrades().count_left_loop();
        tell_left(&cell);
    }
    leaves.into()
}
