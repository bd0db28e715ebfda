//! Functions that are compiled twice: fast when they are called first, well when they have turned out to be called often.
//!
//! ```text
//!   tier 1:  count -= 1; below zero? ── brolga_hot ──► Upgrade ──► Upgrade::run: tiers.optimise() ──► cell leads to tier 2
//!            └─ runs on, whatever happens              a task of the embedder's `Upgrades`, or a call of `Jit::upgrade_hot`
//! ```
//!
//! Code of tier 1 counts the entries of its functions ([`Style::counted`](crate::Style)) in the counter of their cells. Code of tier 2
//! does not count. The store that makes a cell lead to it is all that happens to running threads: the next call finds it, and a
//! function of tier 1 calls itself through its cell.
//!
//! **Loops** that continue for long would stay in tier 1 until they return. So a loop may have a function that continues at its head
//! ([`LoopEntry`]; `opt::osr` makes both), and at its head the question whether to leave for it:
//!
//! ```text
//!   head:  count -= 1; below zero? ── brolga_loop ── code of the entry is there ──► leave: call [its cell], return what it gives
//!          └─ continues                      └──────── not yet: queue it once, count on
//! ```
//!
//! The entry has a cell and a counter like other functions, but no stub: its word is read only after a question was
//! answered by yes, and from then on it leads to the same code until the cell goes. The unit of the loop owns the cell, so
//! it is there for as long as a thread can be at the head.
//!
//! `brolga_hot` and `brolga_loop` are called where objects live that nobody keeps. So they do nothing but hand an upgrade over: no safepoint, no
//! code of others ([`Upgrades::enqueue`]). Where handing over takes such code, it is done at the thread's next safepoint. A function whose optimisation fails stays what it is, and is not tried again, unless its source
//! says that the reason may pass ([`Materialize::may_pass`]): then after twice as many calls, or rounds, as the last time.
//!
//! **Counts** may be lost, since threads count in one word by a load and a store. A store that comes late could even bring back what a
//! word held for code that has been replaced. So no word ever holds more than [`STRIDE`]: longer counts are counted in
//! strides, and what comes late costs one at most.
//!
//! **Locks**: the queue's and that of a cell, in which nothing is called.
//!
//! | row | operation | order | pairs with | without it |
//! |---|---|---|---|---|
//! | T1 | count a loop that was left; read the count; ask for the time | Relaxed | – | nothing: they are figures |
//!
//! Cost: counting is three instructions and a branch, and a call for each stride; a function is put into the queue once.

use std::collections::{BTreeMap, VecDeque};
use std::error::Error;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use brolga_codegen::sig::FunctionType;
use brolga_codegen::ways::{HOT, LOOP};
use brolga_runtime::events::{Event, Stage};
use brolga_runtime::with_attached;

use crate::cell::{Body, CellOwner, IndirectCell, Materialize, NoCell, Target, WeakCell, cell_of_counter};
use crate::engine::Jit;
use crate::tiering::interpret::Interpreter;

/// The most that a counter holds.
pub(crate) const STRIDE: i32 = 1 << 12;

/// Makes the code of a function in two tiers. [`Materialize::materialize`] gives the first, which counts its entries.
pub trait Tiers: Materialize {
    /// The code of the second. Called once each time that the function has become hot, on a thread that runs no compiled code meanwhile.
    fn optimise(&self) -> Result<Target, Box<dyn Error + Send + Sync>>;
}

/// A function that continues at the head of a loop of another one, once the loop has gone round often.
#[derive(Clone)]
pub struct LoopEntry {
    /// Its type. The symbol in it is the name by which the loop calls it.
    pub ty: Arc<FunctionType>,
    /// The name by which the loop asks whether to leave.
    pub question: Arc<str>,
    /// Makes its code, on a thread that runs no compiled code meanwhile.
    pub source: Arc<dyn Materialize>,
    /// After how many rounds it is wanted.
    pub rounds: u32,
}

impl std::fmt::Debug for LoopEntry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LoopEntry").field("entry", &self.ty.symbol).finish_non_exhaustive()
    }
}

/// The action at the limit of a cell's counter.
pub(crate) enum Then {
    /// Nothing: nobody counts, or it has been done.
    Nothing,
    /// The second tier of the function.
    Optimise(Arc<dyn Tiers>),
    /// The code behind the cell, which is that of a loop's entry.
    Enter,
}

/// How far a cell's counter is.
pub(crate) struct Counting {
    pub(crate) then: Then,
    /// After how many.
    pub(crate) count: i32,
    /// The count left when the present stride is over.
    left: i32,
    /// Whether the function was put into the queue.
    queued: bool,
}

impl Counting {
    /// Nothing is counted.
    pub(crate) fn nothing() -> Counting {
        Counting::new(Then::Nothing, 0)
    }

    pub(crate) fn new(then: Then, count: i32) -> Counting {
        Counting { then, count, left: count.max(0), queued: false }
    }

    /// The next stride. The word goes below zero one count after it is zero.
    pub(crate) fn stride(&mut self) -> i32 {
        let next = self.left.min(STRIDE);
        self.left -= next;
        next
    }

    /// How many calls were counted, where the counter holds this; none if nothing counts them. Those behind the limit are not counted.
    pub(crate) fn counted(&self, word: i32) -> Option<u32> {
        if !matches!(self.then, Then::Optimise(_)) {
            return None;
        }
        let left = if self.queued { 0 } else { self.left.saturating_add(word.clamp(0, STRIDE)) };
        Some(self.count.saturating_sub(left).max(0).unsigned_abs())
    }

    /// The counter has gone below zero: what it is to count next, and whether the function is to be put into the queue now.
    pub(crate) fn exhausted(&mut self) -> (i32, bool) {
        if self.left > 0 {
            return (self.stride(), false);
        }
        let wanted = !matches!(self.then, Then::Nothing) && !std::mem::replace(&mut self.queued, true);
        (STRIDE, wanted)
    }
}

/// A job for a function.
#[derive(Clone, Copy)]
pub(crate) enum Job {
    /// Its first code.
    Compile,
    /// Better code than it has.
    Optimise,
}

/// A function that is to get code, or better code.
pub struct Upgrade {
    cell: WeakCell,
    job: Job,
}

impl Upgrade {
    /// Makes the code, on a thread that runs no compiled code meanwhile; whether the function has other code now. It may be gone, or have
    /// been replaced; an error is kept with the function.
    pub fn run(self) -> bool {
        let Some(cell) = self.cell.upgrade() else { return false };
        let events = cell.jit().runtime().events();
        let _span = events.span(Stage::Upgrade, || &cell.ty().symbol);
        match self.job {
            Job::Compile => cell.compile_asked(),
            Job::Optimise => {
                let is_better = matches!(cell.optimise(), Ok(true));
                if is_better {
                    events.tell(Event::TieredUp { function: &cell.ty().symbol });
                }
                is_better
            }
        }
    }
}

impl std::fmt::Debug for Upgrade {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Upgrade").finish_non_exhaustive()
    }
}

/// Runs [upgrades](Upgrade) in the background.
pub trait Upgrades: Send + Sync {
    /// Takes an upgrade from a thread in the middle of compiled code, where references may be in use that nobody keeps: it does not block, run the
    /// upgrade, enter the heap, or call code that may. If taking it needs any of that, it gives back the rest of the work, which is done at the
    /// thread's next safepoint.
    fn enqueue(&self, upgrade: Upgrade) -> Option<Box<dyn FnOnce() + Send>>;
}

/// The functions of an engine that have become hot.
#[derive(Default)]
pub(crate) struct Hot {
    /// Upgrades that nobody runs in the background, in order.
    waiting: Mutex<VecDeque<Upgrade>>,
    background: OnceLock<Arc<dyn Upgrades>>,
    /// How often a thread has left a loop.
    left_loops: AtomicU64,
    /// The same for each loop, by the address of its cell's word, while somebody listens. Of one that lies where another one lay the count begins with that.
    left_of_each: Mutex<BTreeMap<usize, u64>>,
    /// A clock that continues when code is made, or called through a stub.
    clock: AtomicU64,
}

impl Hot {
    fn waiting(&self) -> MutexGuard<'_, VecDeque<Upgrade>> {
        // Nothing panics between the steps of a change.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The time, which continues.
    pub(crate) fn tick(&self) -> u64 {
        self.clock.fetch_add(1, Ordering::Relaxed) // T1
    }
}

/// Hands a function over that has become hot. Not a safepoint.
pub(crate) fn hand_over(cell: &IndirectCell, job: Job) {
    let (jit, upgrade) = (cell.jit(), Upgrade { cell: cell.downgrade(), job });
    let Some(background) = jit.hot().background.get() else {
        return jit.hot().waiting().push_back(upgrade);
    };
    if let Some(rest) = background.enqueue(upgrade) {
        // The running thread is attached: it runs compiled code.
        let _attached = with_attached(jit.runtime(), |thread| thread.at_safepoint(rest));
    }
}

impl Jit {
    /// A cell for a function that is compiled in two tiers: the second after `threshold` entries. It is interpreted before, if `interpreter` says
    /// how and [numbers](brolga_codegen::lazy::can_be_interpreted) are all that it takes and gives.
    pub fn tiered(
        &self,
        ty: impl Into<Arc<FunctionType>>,
        tiers: Arc<dyn Tiers>,
        threshold: i32,
        interpreter: Option<Interpreter>,
    ) -> Result<CellOwner, NoCell> {
        CellOwner::new(self, ty.into(), Body::Tiered { tiers, threshold, interpreter })
    }

    /// How often a thread has gone on in a [`LoopEntry`].
    pub fn left_loops(&self) -> u64 {
        self.hot().left_loops.load(Ordering::Relaxed) // T1
    }

    /// Lets `upgrades` run in the background what becomes hot from now on. The first one stays.
    pub fn upgrade_by(&self, upgrades: Arc<dyn Upgrades>) {
        let _first = self.hot().background.set(upgrades);
    }

    /// Optimises, on this thread, the functions that have become hot and that are not upgraded in the background; how many.
    pub fn upgrade_hot(&self) -> usize {
        let mut count = 0;
        loop {
            // The lock is not held while the function is optimised.
            let next = self.hot().waiting().pop_front();
            let Some(upgrade) = next else { return count };
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
        hand_over(&cell, Job::Optimise);
    }
}

/// Tells the listener, if there is one, that this thread leaves a loop, the first time and when the number has doubled: at its next safepoint, because a
/// listener is code of others.
fn tell_left(cell: &IndirectCell) {
    let runtime = cell.jit().runtime();
    if !runtime.events().is_on() {
        return;
    }
    let times = {
        let mut each = cell.jit().hot().left_of_each.lock().unwrap_or_else(PoisonError::into_inner);
        let times = each.entry(cell.word()).or_default();
        *times += 1;
        *times
    };
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
        hand_over(&cell, Job::Compile);
    }
    let leaves = cell.leads_on();
    if leaves {
        cell.jit().hot().left_loops.fetch_add(1, Ordering::Relaxed); // T1
        tell_left(&cell);
    }
    leaves.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_count_is_counted_in_strides() {
        for count in [0, 1, 50, STRIDE, STRIDE + 1, 10 * STRIDE + 7] {
            let mut counting = Counting::new(Then::Enter, count);
            let mut sum = counting.stride();
            loop {
                let (next, wanted) = counting.exhausted();
                assert!(next <= STRIDE);
                if wanted {
                    break;
                }
                sum += next;
            }
            assert_eq!(sum, count);
            assert_eq!(counting.exhausted(), (STRIDE, false), "it is put into the queue once");
        }
    }
}
