//! Freeing retired code once no thread can be running it.
//!
//! Threads are *inside* while they run compiled code and *outside* otherwise. Each has its own counter, which
//! is odd inside:
//!
//! ```text
//!   thread       0 ──enter──► 1 ──leave──► 2 ──enter──► 3 …
//!   retire(x)    notes (thread, counter) for each thread inside: it may hold x
//!   collect()    drops notes whose counter has changed; returns each x without notes
//! ```
//!
//! A thread that enters after `x` was unlinked cannot find it, so it is never noted. A thread that stays
//! inside for long, in an endless loop, may *report* which code its frames are in, at a safepoint or wherever
//! else it is outside the code; its notes for all other code are dropped. A thread that *stays*, because it
//! waits for something, lets others report in its place: the thread that retires or collects does so, once
//! for each item, until the thread continues or enters again. Both ends are under the lock: the staying
//! thread does not find unlinked code before it continues, and no thread reads its frames while it changes
//! them. When it has left such an inner entry and is still waiting, its frames are the same as before: it
//! stays again. Entries nest; the outermost counts.
//!
//! | row | operation | order | pairs with | without it |
//! |---|---|---|---|---|
//! | R1 | enter: odd counter | Release | R5 | a collector sees the new counter without the thread's earlier accesses, and frees the code that it ran before |
//! | R2 | enter: light fence before reading any word that leads to code | [`Fences`] | R4 | the thread reads the old word, and retiring does not see that it is inside |
//! | R3 | leave: even counter | Release | R5 | the code is freed while the last instructions of the thread are in it |
//! | R4 | retire: heavy fence between the store that unlinks and reading the counters, once for a batch | [`Fences`] | R2 | like R2 |
//! | R5 | retire, collect: a thread's counter | Acquire | R1, R3 | like R1, R3 |
//! | R6 | own counter; the number of items waiting for this thread | Relaxed | – | nothing: own words, and a hint: the next collection does what a leaving thread misses |
//!
//! Before retiring, the thread has unlinked the code: it has stored other addresses to every word that led
//! there, each with release order.
//!
//! Invariants: an item is returned once, by one call; a note never survives its thread's next leave; free
//! items are returned in the order in which they were retired. Under the lock the only foreign code that runs
//! is the closures of `report`, `stay` and `look`.
//!
//! Cost: entering is two stores and the light fence; retiring executes the heavy fence once per batch and
//! visits all threads; collecting visits all threads, and visits all notes only if anything has changed since
//! the last time, so `n` items that wait for one thread are not visited `n` times. The scheme is
//! quiescent-state-based reclamation (McKenney, Slingwine 1998; Hart et al. 2007), with a counter for each
//! thread instead of a common epoch, so that one slow thread delays only the code that it may hold.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::sync::Arc;

use crate::fences::Fences;
use crate::sync::{AtomicU64, AtomicUsize, Mutex, Ordering, lock};

/// Retired items, and the threads that they wait for. See the file's header.
pub struct Reclaimer<T> {
    shared: Arc<Shared<T>>,
}

impl<T> Clone for Reclaimer<T> {
    fn clone(&self) -> Self {
        Reclaimer { shared: Arc::clone(&self.shared) }
    }
}

impl<T> Default for Reclaimer<T> {
    fn default() -> Self {
        Reclaimer::new()
    }
}

impl<T> std::fmt::Debug for Reclaimer<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let state = lock(&self.shared.state);
        write!(f, "{} items wait for {} threads at most", state.items.len(), state.threads.len())
    }
}

struct Shared<T> {
    state: Mutex<State<T>>,
    fences: Fences,
}

struct State<T> {
    threads: Vec<Known<T>>,
    items: VecDeque<Item<T>>,
    /// Whether more items may be free than at the last collection although no counter has changed.
    has_changed: bool,
}

/// A thread, and its answer while it stays.
struct Known<T> {
    thread: Arc<Quiescence>,
    /// Its counter at the last collection.
    seen: u64,
    stays: Option<Standing<T>>,
}

/// The number of a thread's stay, and the closure that tells whether its frames are in an item.
type Standing<T> = (u64, Box<dyn Fn(&T) -> bool + Send>);

/// The part of a thread that other threads read, in its own cache lines.
#[repr(align(128))]
struct Quiescence {
    counter: AtomicU64,
    /// The number of items waiting for the thread to leave.
    awaited: AtomicUsize,
}

impl Quiescence {
    /// From now on others see the thread as outside. Called by the thread itself.
    #[inline(always)]
    fn end(&self) {
        let counter = self.counter.load(Ordering::Relaxed); // R6
        self.counter.store(counter.wrapping_add(1), Ordering::Release); // R3
    }
}

struct Item<T> {
    what: T,
    known_to: Vec<Knows>,
}

/// A thread that may hold the item.
struct Knows {
    thread: Arc<Quiescence>,
    /// The counter at the time of retiring.
    counter: u64,
    /// The stay for which the thread's frames were found to be in the item.
    stay: Option<u64>,
}

impl<T> Item<T> {
    fn is_free(&mut self, threads: &[Known<T>]) -> bool {
        let what = &self.what;
        self.known_to.retain_mut(|knows| {
            let counter = knows.thread.counter.load(Ordering::Acquire); // R5
            if counter != knows.counter {
                return false;
            }
            let known = threads.iter().find(|known| Arc::ptr_eq(&known.thread, &knows.thread));
            let Some((number, holds)) = known.and_then(|known| known.stays.as_ref()) else { return true };
            // Within the same stay the frames are unchanged.
            knows.stay.replace(*number) == Some(*number) || holds(what)
        });
        self.known_to.is_empty()
    }
}

impl<T> State<T> {
    /// Whether more items may be free than at the last check. The next check sees later changes.
    fn has_news(&mut self) -> bool {
        let mut has_news = std::mem::take(&mut self.has_changed);
        for known in &mut self.threads {
            let counter = known.thread.counter.load(Ordering::Acquire); // R5
            has_news |= std::mem::replace(&mut known.seen, counter) != counter;
        }
        has_news
    }
}

impl<T> Reclaimer<T> {
    /// A reclaimer without items or threads. Both sides execute full fences.
    #[must_use]
    pub fn new() -> Reclaimer<T> {
        Reclaimer::with(Fences::symmetric())
    }

    /// Like [`Reclaimer::new`], with these fences between threads that enter and those that retire.
    #[must_use]
    pub fn with(fences: Fences) -> Reclaimer<T> {
        let state = Mutex::new(State { threads: Vec::new(), items: VecDeque::new(), has_changed: false });
        Reclaimer { shared: Arc::new(Shared { state, fences }) }
    }

    /// A thread that will run code. It starts outside.
    #[must_use]
    pub fn participant(&self) -> Participant<T> {
        let own = Arc::new(Quiescence { counter: AtomicU64::new(0), awaited: AtomicUsize::new(0) });
        lock(&self.shared.state).threads.push(Known { thread: Arc::clone(&own), seen: 0, stays: None });
        Participant {
            shared: Arc::clone(&self.shared),
            fences: self.shared.fences,
            own,
            depth: Cell::new(0),
            held: Cell::new(0),
            stands: Cell::new(None),
            staying: RefCell::default(),
            next_stay: Cell::new(0),
        }
    }

    /// Retires an item that is unlinked. It is returned by [`Reclaimer::collect`].
    pub fn retire(&self, what: T) {
        self.retire_all([what]);
    }

    /// Retires several items at once, which is cheaper than one by one.
    pub fn retire_all(&self, what: impl IntoIterator<Item = T>) {
        let mut what = what.into_iter().peekable();
        if what.peek().is_none() {
            return;
        }
        // Collected before taking the lock: the iterator is the caller's code.
        let what: Vec<T> = what.collect();
        let mut state = lock(&self.shared.state);
        self.shared.fences.heavy(); // R4
        let State { threads, items, has_changed } = &mut *state;
        let inside = |known: &Known<T>| {
            let counter = known.thread.counter.load(Ordering::Acquire); // R5
            (!counter.is_multiple_of(2)).then_some(counter)
        };
        let inside: Vec<_> = threads.iter().filter_map(|known| Some((known, inside(known)?))).collect();
        for what in what {
            let known_to = inside.iter().filter_map(|&(known, counter)| {
                let stay = known.stays.as_ref().map(|(number, holds)| holds(&what).then_some(*number));
                if stay == Some(None) {
                    return None;
                }
                known.thread.awaited.fetch_add(1, Ordering::Relaxed); // R6
                Some(Knows { thread: Arc::clone(&known.thread), counter, stay: stay.flatten() })
            });
            let known_to: Vec<_> = known_to.collect();
            *has_changed |= known_to.is_empty();
            items.push_back(Item { what, known_to });
        }
    }

    /// The items that no thread can be running. The caller drops them.
    #[must_use = "what is given back is freed by dropping it"]
    pub fn collect(&self) -> Vec<T> {
        self.shared.collect()
    }

    /// Passes the waiting items to `show`, in the order in which they were retired. `show` must not call the
    /// reclaimer.
    pub fn look(&self, show: impl FnMut(&T)) {
        lock(&self.shared.state).items.iter().map(|item| &item.what).for_each(show);
    }

    /// The number of waiting items.
    #[must_use]
    pub fn waiting(&self) -> usize {
        lock(&self.shared.state).items.len()
    }
}

impl<T> Shared<T> {
    fn collect(&self) -> Vec<T> {
        let mut state = lock(&self.state);
        let (mut free, mut kept) = (Vec::new(), VecDeque::new());
        if !state.has_news() {
            return free;
        }
        let State { threads, items, .. } = &mut *state;
        for mut item in items.drain(..) {
            if item.is_free(threads) {
                free.push(item.what);
            } else {
                kept.push_back(item);
            }
        }
        *items = kept;
        free
    }
}

/// A thread registered with the reclaimer. Dropping it removes the thread.
pub struct Participant<T> {
    shared: Arc<Shared<T>>,
    fences: Fences,
    own: Arc<Quiescence>,
    /// The number of entries that have not been left.
    depth: Cell<usize>,
    /// The number of items that its frames were in at its last report.
    held: Cell<usize>,
    /// The stay in effect.
    stands: Cell<Option<u64>>,
    /// The stays that are in effect, or will be when the entries after them are left; by number, the
    /// innermost last.
    staying: RefCell<Vec<u64>>,
    next_stay: Cell<u64>,
}

impl<T> std::fmt::Debug for Participant<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.depth.get() > 0 { "inside" } else { "outside" })
    }
}

impl<T> Participant<T> {
    /// Enters: code that the thread finds from now on is not freed until the pin is dropped.
    #[inline(always)]
    pub fn pin(&self) -> Pin<'_, T> {
        let depth = self.depth.get();
        self.depth.set(depth + 1);
        let suspended = if self.stands.get().is_some() { self.go_on() } else { None };
        if depth == 0 {
            self.begin();
        }
        Pin { participant: self, suspended }
    }

    /// Like [`Participant::pin`], for a thread that is outside, and without a guard: it must call
    /// [`Participant::leave_outermost`] to leave.
    #[inline(always)]
    pub fn enter_outermost(&self) {
        debug_assert!(self.depth.get() == 0 && self.stands.get().is_none());
        self.depth.set(1);
        self.begin();
    }

    /// From now on others see the thread as inside.
    #[inline(always)]
    fn begin(&self) {
        let counter = self.own.counter.load(Ordering::Relaxed); // R6
        self.own.counter.store(counter.wrapping_add(1), Ordering::Release); // R1
        self.fences.light(); // R2
    }

    /// Leaves the entry of [`Participant::enter_outermost`].
    #[inline(always)]
    pub fn leave_outermost(&self) {
        debug_assert!(self.depth.get() == 1);
        self.depth.set(0);
        self.own.end();
    }

    /// Reports, at a safepoint, which of the retired items the thread's frames are in: it holds no others.
    /// `holds` must not call the reclaimer.
    pub fn report(&self, mut holds: impl FnMut(&T) -> bool) {
        let mut state = lock(&self.shared.state);
        let State { items, has_changed, .. } = &mut *state;
        let is_own = |knows: &Knows| Arc::ptr_eq(&knows.thread, &self.own);
        let mut held = 0;
        for item in items {
            if item.known_to.iter().any(is_own) {
                if holds(&item.what) {
                    held += 1;
                } else {
                    item.known_to.retain(|knows| !is_own(knows));
                    *has_changed = true;
                }
            }
        }
        self.own.awaited.store(held, Ordering::Relaxed); // R6
        self.held.set(held);
    }

    /// Lets others call `holds`, once per item, until the guard is dropped or the thread enters again; before
    /// that the thread must not read any word that leads to code. `holds` must not call the reclaimer. It is
    /// called under the lock, by any thread, while the thread stays.
    pub fn stay(&self, holds: impl Fn(&T) -> bool + Send + 'static) -> Stay<'_, T> {
        // An outer stay takes effect again when this one ends: nothing was entered between them.
        let outer = self.go_on();
        let number = self.next_stay.replace(self.next_stay.get() + 1);
        self.staying.borrow_mut().push(number);
        self.stand((number, Box::new(holds)));
        Stay { participant: self, number, outer }
    }

    /// From now on others call the closure.
    fn stand(&self, standing: Standing<T>) {
        self.stands.set(Some(standing.0));
        let mut state = lock(&self.shared.state);
        self.set_stays(&mut state, Some(standing));
        state.has_changed |= self.is_awaited();
    }

    /// Puts a suspended stay into effect again, unless it has ended.
    #[cold]
    fn resume(&self, suspended: Option<Standing<T>>) {
        if let Some(suspended) = suspended.filter(|(number, _)| self.staying.borrow().contains(number)) {
            self.stand(suspended);
        }
    }

    /// Ends the stay in effect: items retired from now on are noted for the thread. Returns the stay.
    fn go_on(&self) -> Option<Standing<T>> {
        self.stands.take()?;
        self.set_stays(&mut lock(&self.shared.state), None)
    }

    fn set_stays(&self, state: &mut State<T>, standing: Option<Standing<T>>) -> Option<Standing<T>> {
        let own = state.threads.iter_mut().find(|known| Arc::ptr_eq(&known.thread, &self.own))?;
        std::mem::replace(&mut own.stays, standing)
    }

    /// Called by a thread that ends: the frames of its entries and stays are gone without having been left,
    /// and no guard is dropped any more. The thread is now outside.
    pub fn leave_all(&self) {
        drop(self.go_on());
        self.staying.borrow_mut().clear();
        if self.depth.replace(0) > 0 {
            self.own.end();
        }
    }

    /// Whether the thread is inside. Called by the thread itself.
    #[must_use]
    pub fn is_inside(&self) -> bool {
        self.depth.get() > 0
    }

    /// Whether an item waits for this thread to leave or to report. Costs a load.
    #[must_use]
    #[inline]
    pub fn is_awaited(&self) -> bool {
        self.own.awaited.load(Ordering::Relaxed) > 0 // R6
    }

    /// The approximate number of items waiting for this thread to leave or to report, and how many of them
    /// its frames were in at its last report. Called by the thread itself.
    #[must_use]
    pub fn awaited(&self) -> (usize, usize) {
        (self.own.awaited.load(Ordering::Relaxed), self.held.get()) // R6
    }

    /// The items that are free now, if some waited for this thread; for threads that have just left. The
    /// caller drops them.
    #[must_use = "what is given back is freed by dropping it"]
    pub fn collect_if_awaited(&self) -> Vec<T> {
        if self.depth.get() > 0 || !self.is_awaited() {
            return Vec::new();
        }
        self.own.awaited.store(0, Ordering::Relaxed); // R6
        self.held.set(0);
        self.shared.collect()
    }
}

impl<T> Drop for Participant<T> {
    fn drop(&mut self) {
        let mut state = lock(&self.shared.state);
        state.threads.retain(|known| !Arc::ptr_eq(&known.thread, &self.own));
        // Its counter is no longer read.
        state.has_changed = true;
    }
}

/// A stay of a thread. Dropping it lets the thread continue.
#[must_use = "the thread continues when it is dropped"]
pub struct Stay<'p, T> {
    participant: &'p Participant<T>,
    number: u64,
    /// The outer stay that it suspends.
    outer: Option<Standing<T>>,
}

impl<T> Drop for Stay<'_, T> {
    fn drop(&mut self) {
        let Stay { participant, number, outer } = self;
        participant.staying.borrow_mut().retain(|staying| staying != number);
        if participant.stands.get() == Some(*number) {
            let ended = participant.go_on();
            participant.resume(outer.take());
            drop(ended);
        }
    }
}

/// An entry of a thread. Dropping the outermost one leaves.
#[must_use = "the thread leaves when the pin is dropped"]
pub struct Pin<'p, T> {
    participant: &'p Participant<T>,
    /// The stay that was in effect at the entry.
    suspended: Option<Standing<T>>,
}

impl<T> Drop for Pin<'_, T> {
    #[inline(always)]
    fn drop(&mut self) {
        let Participant { own, depth, .. } = self.participant;
        depth.set(depth.get() - 1);
        if depth.get() == 0 {
            own.end();
        }
        if self.suspended.is_some() {
            self.participant.resume(self.suspended.take());
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::{Arc, Reclaimer, lock};

    #[test]
    fn items_that_no_thread_knows_are_given_back_at_once_and_once() {
        let reclaimer = Reclaimer::new();
        let _outside = reclaimer.participant();
        reclaimer.retire_all([1, 2]);
        assert_eq!(reclaimer.waiting(), 2);
        let mut seen = Vec::new();
        reclaimer.look(|&item| seen.push(item));
        assert_eq!(seen, [1, 2]);
        assert_eq!(reclaimer.collect(), [1, 2]);
        assert_eq!(reclaimer.collect(), []);
    }

    #[test]
    fn only_threads_pinned_before_a_retirement_are_waited_for() {
        let reclaimer = Reclaimer::new();
        let (first, second) = (reclaimer.participant(), reclaimer.participant());
        let pin = first.pin();
        reclaimer.retire(1);
        let later = second.pin();
        reclaimer.retire(2);
        assert!(second.is_awaited());
        assert_eq!(reclaimer.collect(), []);
        drop(pin);
        assert_eq!(reclaimer.collect(), [1], "the second thread never knew it");
        drop(later);
        assert_eq!(reclaimer.collect(), [2]);
        assert_eq!(reclaimer.waiting(), 0);
    }

    #[test]
    fn a_thread_whose_frames_are_gone_is_outside() {
        let reclaimer = Reclaimer::new();
        let thread = reclaimer.participant();
        let _left = std::mem::ManuallyDrop::new(thread.pin());
        let _left = std::mem::ManuallyDrop::new(thread.stay(|_: &i32| true));
        let _left = std::mem::ManuallyDrop::new(thread.pin());
        reclaimer.retire(1);
        assert_eq!(reclaimer.collect(), []);
        thread.leave_all();
        assert!(!thread.is_inside());
        assert_eq!(reclaimer.collect(), [1]);
        thread.leave_all();
        let pin = thread.pin();
        reclaimer.retire(2);
        assert_eq!(reclaimer.collect(), [], "it enters as before");
        drop(pin);
        assert_eq!(reclaimer.collect(), [2]);
    }

    #[test]
    fn entering_again_is_not_staying() {
        let reclaimer = Reclaimer::new();
        let thread = reclaimer.participant();
        let pin = thread.pin();
        reclaimer.retire(1);
        drop(pin);
        let _again = thread.pin();
        assert_eq!(reclaimer.collect(), [1]);
    }

    #[test]
    fn a_report_frees_what_no_frame_lies_in() {
        let reclaimer = Reclaimer::new();
        let thread = reclaimer.participant();
        let pin = thread.pin();
        reclaimer.retire_all([1, 2, 3]);
        thread.report(|item| *item == 2);
        assert_eq!(reclaimer.collect(), [1, 3]);
        thread.report(|item| *item == 2);
        assert_eq!(reclaimer.collect(), [], "a frame still lies in it");
        drop(pin);
        assert_eq!(reclaimer.collect(), [2]);
    }

    #[test]
    fn waiting_items_are_looked_at_after_a_change() {
        let reclaimer = Reclaimer::new();
        let has_news = || lock(&reclaimer.shared.state).has_news();
        let (thread, other) = (reclaimer.participant(), reclaimer.participant());
        let pin = thread.pin();
        assert!(has_news() && !has_news());
        reclaimer.retire_all([1, 2, 3]);
        assert!(!has_news(), "a thread that knows them knows them still");
        assert_eq!(thread.awaited(), (3, 0));
        thread.report(|_| true);
        assert!(!has_news());
        assert_eq!(thread.awaited(), (3, 3));
        thread.report(|item| *item == 2);
        assert_eq!((has_news(), thread.awaited()), (true, (1, 1)));
        let pins = [other.pin(), other.pin()];
        assert!(has_news() && !has_news());
        drop((pins, pin));
        drop((thread, other));
        assert_eq!(reclaimer.collect(), [1, 2, 3], "there is no thread to look at");
        reclaimer.retire(4);
        assert_eq!(reclaimer.collect(), [4], "no thread knows it");
    }

    #[test]
    fn a_staying_thread_learns_nothing_until_it_continues_or_enters() {
        let reclaimer = Reclaimer::new();
        let thread = reclaimer.participant();
        let pin = thread.pin();
        reclaimer.retire_all([1, 2]);
        let stay = thread.stay(|item| item % 2 == 0);
        reclaimer.retire_all([3, 4]);
        assert_eq!(reclaimer.collect(), [1, 3]);
        drop(stay);
        reclaimer.retire(5);
        assert_eq!(reclaimer.collect(), []);
        let stay = thread.stay(|_| false);
        assert_eq!(reclaimer.collect(), [2, 4, 5]);
        let inner = thread.pin();
        reclaimer.retire(7);
        assert_eq!(reclaimer.collect(), [], "what it called may have found it");
        drop(stay);
        drop(inner);
        assert_eq!(reclaimer.collect(), [], "it continues");
        drop(pin);
        assert_eq!(reclaimer.collect(), [7]);
    }

    #[test]
    fn a_waiting_thread_stays_again_after_a_nested_pin() {
        let reclaimer = Reclaimer::new();
        let thread = reclaimer.participant();
        let pin = thread.pin();
        let stay = thread.stay(|item| *item == 2);
        for _ in 0..2 {
            let inner = thread.pin();
            reclaimer.retire_all([1, 2]);
            // It waits inside, too, and its callee has found one of the items.
            let within = thread.stay(|item| *item <= 2);
            let innermost = thread.pin();
            reclaimer.retire(3);
            assert_eq!(reclaimer.collect(), [], "what was called may have found it");
            drop(innermost);
            assert_eq!(reclaimer.collect(), [3], "{reclaimer:?}");
            drop(within);
            reclaimer.retire(4);
            assert_eq!(reclaimer.collect(), []);
            drop(inner);
            assert_eq!(reclaimer.collect(), [1, 4]);
            reclaimer.retire_all([2, 5]);
            assert_eq!(reclaimer.collect(), [5], "nothing is found while it waits");
        }
        // One stay in place of another, and then the first again.
        let within = thread.stay(|_| false);
        assert_eq!(reclaimer.collect(), [2, 2, 2, 2]);
        drop(within);
        reclaimer.retire_all([2, 6]);
        assert_eq!(reclaimer.collect(), [6]);
        drop(stay);
        reclaimer.retire(7);
        assert_eq!(reclaimer.collect(), [], "it continues");
        drop(pin);
        assert_eq!(reclaimer.collect(), [2, 7]);
    }

    #[test]
    fn a_staying_thread_is_asked_once_about_each_item() {
        let reclaimer = Reclaimer::new();
        let thread = reclaimer.participant();
        let asked = Arc::new(std::sync::Mutex::new(Vec::new()));
        let asked_about = || std::mem::take(&mut *lock(&asked));
        let pin = thread.pin();
        reclaimer.retire_all([1, 2]);
        let notes = asked.clone();
        let stay = thread.stay(move |&item: &i32| {
            lock(&notes).push(item);
            item % 2 == 0
        });
        assert_eq!(asked_about(), [], "no collection has asked");
        assert_eq!((reclaimer.collect(), asked_about()), (vec![1], vec![1, 2]));
        reclaimer.retire_all([3, 4]);
        assert_eq!((reclaimer.collect(), asked_about()), (vec![3], vec![3, 4]));
        assert_eq!((reclaimer.collect(), asked_about()), (vec![], vec![]));
        drop(thread.pin());
        assert_eq!((reclaimer.collect(), asked_about()), (vec![], vec![]), "its frames are those of before");
        drop(stay);
        reclaimer.retire(5);
        assert_eq!((reclaimer.collect(), asked_about()), (vec![], vec![]));
        drop(pin);
        assert_eq!(reclaimer.collect(), [2, 4, 5]);
    }

    #[test]
    fn the_outermost_entry_counts_and_who_was_awaited_collects() {
        let reclaimer = Reclaimer::new();
        let thread = reclaimer.participant();
        let outer = thread.pin();
        reclaimer.retire(1);
        drop(thread.pin());
        assert_eq!((reclaimer.collect(), thread.collect_if_awaited()), (vec![], vec![]));
        drop(outer);
        assert_eq!(thread.collect_if_awaited(), [1]);
        reclaimer.retire(2);
        assert_eq!(thread.collect_if_awaited(), [], "no item waits for this thread");
        assert_eq!(reclaimer.collect(), [2]);
    }

    #[test]
    fn threads_that_end_are_not_waited_for() {
        let reclaimer = Reclaimer::new();
        let thread = reclaimer.participant();
        let pin = thread.pin();
        reclaimer.retire(1);
        drop(pin);
        drop(thread);
        assert_eq!(reclaimer.collect(), [1]);
        assert_eq!(format!("{reclaimer:?}"), "0 items wait for 0 threads at most");
    }
}
