//! Functions that are compiled twice: fast when they are called first, well when they have turned out to be called often.
//!
//! ```text
//!   tier 1:  count -= 1; below zero? ── brolga_hot ──► queue ──► who upgrades: tiers.optimise() ──► cell leads to tier 2
//!            └─ goes on, whatever happens                        a thread of an `Upgrader`, or a call of `Jit::upgrade_hot`
//! ```
//!
//! Code of tier 1 counts the entries of its functions ([`Style::counted`](crate::Style)) in the counter of their cells. Code of tier 2
//! does not count. The store that makes a cell lead to it is all that happens to running threads: the next call finds it, and a
//! function of tier 1 calls itself through its cell.
//!
//! **Loops** that go on for long would stay in tier 1 until they return. So a loop may have a function that goes on at its head
//! ([`LoopEntry`]; `opt::osr` makes both), and at its head the question whether to leave for it:
//!
//! ```text
//!   head:  count -= 1; below zero? ── brolga_loop ── code of the entry is there ──► leave: call [its cell], return what it gives
//!          └─ goes on                      └──────── not yet: queue it once, count on
//! ```
//!
//! The entry has a cell and a counter like other functions, but no stub: its word is read only after a question was
//! answered by yes, and from then on it leads to the same code until the cell goes. The unit of the loop owns the cell, so
//! it is there for as long as a thread can be at the head.
//!
//! `brolga_hot` and `brolga_loop` are called where objects live that nobody keeps. So they do nothing but put a function into the
//! queue: no safepoint, no code of others. A function whose optimisation fails stays what it is, and is not tried again, unless its source
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

use std::collections::VecDeque;
use std::error::Error;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use brolga_codegen::sig::FunctionType;
use brolga_codegen::ways::{HOT, LOOP};

use crate::cell::{CellOwner, Materialize, NoCell, Target, WeakCell, cell_of_counter};
use crate::engine::Jit;
use crate::interpret::Interpreter;

/// The most that a counter holds.
pub(crate) const STRIDE: i32 = 1 << 12;

/// Makes the code of a function in two tiers. [`Materialize::materialize`] gives the first, which counts its entries.
pub trait Tiers: Materialize {
    /// The code of the second. Called once each time that the function has become hot, on a thread that runs no compiled code meanwhile.
    fn optimise(&self) -> Result<Target, Box<dyn Error + Send + Sync>>;
}

/// A function that goes on at the head of a loop of another one, once the loop has gone round often.
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

/// What a cell's counter leads to.
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
    /// What is to be counted when the present stride is over.
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

    /// The counter has gone below zero: what it is to count next, and whether the function is to be put into the queue now.
    pub(crate) fn exhausted(&mut self) -> (i32, bool) {
        if self.left > 0 {
            return (self.stride(), false);
        }
        let wanted = !matches!(self.then, Then::Nothing) && !std::mem::replace(&mut self.queued, true);
        (STRIDE, wanted)
    }
}

/// What is to be done for a function.
#[derive(Clone, Copy)]
pub(crate) enum Job {
    /// Its first code.
    Compile,
    /// Better code than it has.
    Optimise,
}

/// Functions that have become hot, in order.
#[derive(Default)]
pub(crate) struct HotQueue {
    state: Mutex<State>,
    changed: Condvar,
    /// How often a thread has left a loop.
    left_loops: AtomicU64,
    /// A clock that goes on when code is made, or called through a stub.
    clock: AtomicU64,
}

#[derive(Default)]
struct State {
    functions: VecDeque<(WeakCell, Job)>,
    /// Upgraders that are to stop.
    stopping: usize,
}

impl HotQueue {
    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing panics between the steps of a change.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The time, which goes on.
    pub(crate) fn tick(&self) -> u64 {
        self.clock.fetch_add(1, Ordering::Relaxed) // T1
    }

    pub(crate) fn push(&self, function: WeakCell, job: Job) {
        self.lock().functions.push_back((function, job));
        self.changed.notify_one();
    }

    /// The next function; waits for one until an upgrader is to stop.
    fn wait(&self) -> Option<(WeakCell, Job)> {
        let mut state = self.lock();
        loop {
            if state.stopping > 0 {
                state.stopping -= 1;
                return None;
            }
            if let Some(function) = state.functions.pop_front() {
                return Some(function);
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
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
        let counting = Counting::new(Then::Optimise(tiers.clone()), threshold);
        CellOwner::new(self, ty.into(), tiers, counting, interpreter)
    }

    /// How often a thread has gone on in a [`LoopEntry`].
    pub fn left_loops(&self) -> u64 {
        self.hot().left_loops.load(Ordering::Relaxed) // T1
    }

    /// Optimises the functions that have become hot, on this thread; how many.
    pub fn upgrade_hot(&self) -> usize {
        let mut count = 0;
        loop {
            // The lock is not held while the function is optimised.
            let next = self.hot().lock().functions.pop_front();
            let Some((function, job)) = next else { return count };
            count += usize::from(upgrade(&function, job));
        }
    }

    /// Starts a thread that optimises functions as they become hot.
    pub fn start_upgrades(&self) -> std::io::Result<Upgrader> {
        let jit = self.clone();
        let work = move || {
            while let Some((function, job)) = jit.hot().wait() {
                upgrade(&function, job);
            }
        };
        let thread = std::thread::Builder::new().name("upgrades".into()).spawn(work)?;
        Ok(Upgrader { jit: self.clone(), thread: Some(thread) })
    }
}

/// Whether the function has other code now. It may be gone, or have been replaced; what failed is kept with it.
fn upgrade(function: &WeakCell, job: Job) -> bool {
    let Some(cell) = function.upgrade() else { return false };
    match job {
        Job::Compile => cell.compile_asked(),
        Job::Optimise => matches!(cell.optimise(), Ok(true)),
    }
}

/// A thread that optimises functions. When it is dropped, the thread ends with what it is at; nobody waits for that, since it may be
/// dropped where waiting would be for ever: where a collection is waited for, or by a task that the thread waits for.
pub struct Upgrader {
    jit: Jit,
    thread: Option<JoinHandle<()>>,
}

impl Upgrader {
    /// Ends the thread, and waits for it. Not to be called where what it is at may need the caller: in a heap scope, or by what
    /// compiles.
    pub fn finish(mut self) {
        let thread = self.thread.take();
        drop(self);
        // The last user of an engine may be the thread itself, at the end of its last upgrade.
        let own = std::thread::current().id();
        if let Some(thread) = thread.filter(|thread| thread.thread().id() != own) {
            // It panics in no code of ours, and sources are fenced.
            let _ended = thread.join();
        }
    }
}

impl Drop for Upgrader {
    fn drop(&mut self) {
        self.jit.hot().lock().stopping += 1;
        self.jit.hot().changed.notify_all();
    }
}

impl std::fmt::Debug for Upgrader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Upgrader").finish_non_exhaustive()
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

/// What code of tier 1 calls when the counter of a function has gone below zero. Not a safepoint.
extern "C" fn brolga_hot(counter: usize) {
    // SAFETY: compiled code passes the address of the counter that it was linked with, whose cell its unit keeps.
    let cell = unsafe { cell_of_counter(counter) };
    if cell.became_hot() {
        cell.jit().hot().push(cell.downgrade(), Job::Optimise);
    }
}

/// What code of tier 1 calls when the counter of a loop has gone below zero: 1 if the loop is to be left. Not a safepoint.
extern "C" fn brolga_loop(counter: usize) -> u32 {
    // SAFETY: as in `brolga_hot`.
    let cell = unsafe { cell_of_counter(counter) };
    if cell.became_hot() {
        cell.jit().hot().push(cell.downgrade(), Job::Compile);
    }
    let leaves = cell.leads_on();
    if leaves {
        cell.jit().hot().left_loops.fetch_add(1, Ordering::Relaxed); // T1
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
