//! Collections in slices: short pauses between which the program runs ([`HeapOptions::pause`](super::HeapOptions::pause)).
//!
//! ```text
//!   idle ── half of the budget is allocated ──► mark, in pauses ── nothing left in a pause that began with the roots ──► sweep, without pauses ──► idle
//!              ▲                                  ▲
//!              └ `step`, earlier                  └ allocation that takes a block or a large object, when `pace.rs` says so; `step`
//!
//!   a pause     marks ── the stack is empty ── what was stored into ── roots ── marks ── empty again: weak references, finalizers, the end
//!               └──────────── time is over: the next pause ────────────┘        └─ time is over: the next pause
//! ```
//!
//! Both kinds of collection work so. A minor one adds to the marks of the last collection. A full one sets the marks of the other side, which is clear, while
//! allocation uses the marks of this one (`chunk.rs`); at its end the sides change roles. Clearing marks, counting them and returning memory are
//! not parts of a pause (`sweep.rs`).
//!
//! **Protocol.** Only the thread that stopped the world (`world.rs`) sets marks, under the lock of the state. The protocol of `handshake.rs`, with its
//! model, orders everything here. A slice may be any thread's.
//!
//! **Why nothing that is reachable is missed.** This is *incremental update*, with the barrier of generations: what was scanned and
//! changes later is scanned again.
//!
//! I1. An object is *scanned* once its tag has `OLD` and what it referred to then has been pushed. The marker sets `OLD` first (`mark.rs`).
//! I2. A store of a reference into an object that has `OLD` is recorded before the next safepoint: the object, which loses `OLD`, or the word (`slots.rs`).
//! I3. In the last pause everything recorded and then all roots are visited, and the stack is emptied, while the program does not run.
//!
//! Take the end of the last pause, and a chain of references from a root to an object without mark. A root refers to no object
//! without mark (I3), so a marked one refers to it. That one was scanned. If the reference was there then, the object was pushed, and has been visited.
//! If it was stored later, the store was recorded (I2), and the word or the object visited in the last pause, or in one before and then again by I1.
//!
//! The stores that I2 leaves out are right for the same reason as for minor collections: any reachable object may become `OLD` at any safepoint, in slices as
//! by a collection at once, and at no other time.
//!
//! | without barrier | why it is right |
//! |---|---|
//! | stores into an object allocated since the last safepoint (compiled code, `Scope`, copies into a new `Memory`, `WeakRef`s) | it has no mark and no `OLD`: it is scanned later, if it is reached, with what was stored. Allocation never sets marks |
//! | the value is permanent or null, or the object itself | there is nothing to mark: the object itself is marked if it has `OLD` |
//! | large copies in pieces with safepoints between | each piece ends with the barrier, before the safepoint |
//! | removal of a reference | what is reachable otherwise is marked by the other reference; if that was read from here, it went to a root or was stored, see above and below |
//! | frames, scopes, exceptions, persistent handles, cells, cells of threads | roots, visited in the last pause |
//! | a weak reference or handle that is read | its object goes to a root |
//! | objects waiting for finalizers | no references: they are looked at in the last pause, after marking |
//! | permanent objects, objects on the stack | the former have no references into the heap, references of the latter are roots of the frame |
//! | columns | they have no references |
//!
//! A recorded object without mark is dropped from the list: it is scanned when it is reached, or is dead. That happens in full collections
//! only, for objects that are `OLD` since earlier ones.
//!
//! **What may be freed when.** A sweep frees what has no mark on the side that is in use. It has ended before the next marking begins, and nothing is freed
//! during a marking: what is on the stack, reachable or not, stays. New objects have no mark; those that are alive get theirs in the last pause at
//! the latest, and blocks that the program allocates from are swept after it returned them in that pause.
//!
//! **The last pause is short** if the roots lead to little that is new: each look at them leaves less to the next. After
//! [`MOST_LOOKS`] the rest is done at once ([`HeapStats::undivided`](super::HeapStats::undivided)), so a program cannot keep a marking from its end. The same
//! happens when four times as much was allocated as planned: very short slices do not keep up, and memory must not grow without bound.
//!
//! **A requested collection** (`Scope::collect`), or one for which memory ran out, stops the world for all of its work: it abandons a marking under way, and is then
//! full. Stress asks for a slice of some objects at each safepoint.
//!
//! Not done: marking beside the program; dividing the scan of the roots of one deep stack, and of many handles.

use std::time::{Duration, Instant};

use super::canaries::Canaries;
use super::cells::{Cells, State};
use super::chunk::Side;
use super::collect::{alive, note_census, phase};
use super::heap::Heap;
use super::mark::Marker;
use super::mutator::Mutator;
use super::options::{Generations, HeapOptions};
use super::pace::{self, Pace};
use super::phase::{Marking, Phase, Swept};
use super::policy::{Collection, Outcome};
use super::scope::Scope;
use super::slots;
use super::verify::{Broken, Oracle};
use super::world::Stopped;

/// Looks at the roots after which the rest is done at once.
const MOST_LOOKS: u32 = 24;
/// Visits between two looks at the clock.
const PIECE: usize = 512;
/// The work of any slice, and of any beyond that for the roots: their scan is not divided, so it must not be in vain.
const LEAST: usize = 64;
/// Recorded stores between two looks at the clock.
const RECORDED: usize = 32;
/// The most objects of a slice under stress.
const STRESSED: u64 = 64;

/// How much a slice may do.
pub(super) struct Budget {
    until: Option<Instant>,
    work: Option<usize>,
    /// Work that is done in any case.
    least: usize,
}

impl Budget {
    fn time(length: Duration) -> Budget {
        Budget { until: Instant::now().checked_add(length), work: None, least: LEAST }
    }

    fn all() -> Budget {
        Budget { until: None, work: None, least: 0 }
    }

    /// The work until the next look; none if the budget is spent.
    fn piece(&self) -> Option<usize> {
        if self.least > 0 {
            return Some(self.least.min(PIECE));
        }
        let left = self.work.map_or(PIECE, |work| work.min(PIECE));
        let in_time = || self.until.is_none_or(|until| Instant::now() < until);
        (left > 0 && in_time()).then_some(left)
    }

    fn spend(&mut self, work: usize) {
        self.least = self.least.saturating_sub(work);
        if let Some(left) = &mut self.work {
            *left = left.saturating_sub(work);
        }
    }

    /// Spends some; returns whether nothing is left.
    fn is_spent_by(&mut self, work: usize) -> bool {
        self.spend(work);
        self.piece().is_none()
    }
}

impl Marking {
    fn new(heap: &Heap, state: &State, kind: Collection, gave_up: bool) -> Marking {
        let (space, options) = (&state.space, heap.options());
        let side = if kind == Collection::Full { space.side().other() } else { space.side() };
        let visited = state.policy.last_visited(kind);
        let expected = pace::expected(kind, state.stats.live_objects, visited, options, space.allocated);
        let pace = Pace::new(space.allocated, state.policy.budget(), space.room(), expected);
        let mut marker = Marker::new(true, side);
        if kind == Collection::Full && heap.types().wants_census() {
            marker.take_census();
        }
        Marking { kind, marker, pace, gave_up, looks: 0 }
    }

    /// Marks until nothing is left or the budget is spent; returns whether nothing is left.
    ///
    /// # Safety
    ///
    /// As for [`Marker::drain`].
    unsafe fn drain(&mut self, budget: &mut Budget) -> bool {
        while let Some(piece) = budget.piece() {
            let before = self.marker.work();
            self.marker.limit(before.saturating_add(piece));
            // SAFETY: by the contract.
            let is_done = unsafe { self.marker.drain() };
            budget.spend(self.marker.work() - before);
            if is_done {
                return true;
            }
        }
        false
    }

    /// Takes the list of recorded stores of each thread.
    fn gather(heap: &Heap, stopped: &Stopped<'_>, state: &mut State) {
        for mutator in stopped.mutators() {
            heap.handles.keep_remembered(mutator.remembered.take());
            state.slots.append(&mut mutator.slots.borrow_mut());
        }
    }

    /// Visits what was recorded; returns `false` if the budget was spent before the end.
    ///
    /// # Safety
    ///
    /// The world is stopped.
    unsafe fn visit_recorded(&mut self, heap: &Heap, state: &mut State, budget: &mut Budget) -> bool {
        let mut left = heap.handles.take_remembered();
        while let Some(object) = left.pop() {
            // SAFETY: the world is stopped, and the object was recorded by the barrier.
            unsafe { self.marker.rescan(object) };
            if left.len().is_multiple_of(RECORDED) && budget.is_spent_by(RECORDED) && !left.is_empty() {
                heap.handles.keep_remembered(left);
                return false;
            }
        }
        while let Some((object, offset)) = state.slots.pop() {
            let child = slots::take(object, offset);
            if alive(self.marker.side(), object).is_some() {
                child.into_iter().for_each(|child| self.marker.push(child));
            }
            let is_turn = state.slots.len().is_multiple_of(RECORDED);
            if is_turn && budget.is_spent_by(RECORDED) && !state.slots.is_empty() {
                return false;
            }
        }
        true
    }

    /// Pushes the roots. Their scan is not divided, so what they lead to has some work of its own.
    ///
    /// # Safety
    ///
    /// The world is stopped.
    unsafe fn look(&mut self, heap: &Heap, stopped: &Stopped<'_>, state: &mut State, budget: &mut Budget) {
        self.looks += 1;
        if self.looks > MOST_LOOKS {
            state.stats.undivided += u64::from(self.looks == MOST_LOOKS + 1);
            *budget = Budget::all();
        }
        let mut push = |object| {
            self.marker.push(object);
            object
        };
        for mutator in stopped.mutators() {
            // SAFETY: the world is stopped.
            state.work += unsafe { mutator.each_root(&heap.frames, &mut push) };
        }
        heap.handles.each_root(push);
        budget.least = LEAST.saturating_add(self.marker.pending());
    }
}

/// Does a part of a collection; returns whether its marking ended. Afterwards the program may use everything that it can reach, and nothing else.
///
/// # Safety
///
/// The caller has stopped the world.
unsafe fn advance(
    heap: &Heap,
    stopped: &Stopped<'_>,
    state: &mut State,
    budget: &mut Budget,
) -> Result<bool, Broken> {
    state.work = 0;
    let mut marking = match std::mem::replace(&mut state.phase, Phase::Idle) {
        Phase::Mark(marking) => marking,
        Phase::Idle => {
            state.revived = false;
            let kind = state.policy.next_kind(heap.options());
            Box::new(Marking::new(heap, state, kind, false))
        }
        sweep @ Phase::Sweep(_) => {
            state.phase = sweep;
            return Ok(false);
        }
    };
    let before = marking.marker.work();
    // SAFETY: the world is stopped.
    let ended = unsafe { mark(heap, stopped, state, &mut marking, budget) };
    state.work += marking.marker.work().saturating_sub(before);
    if ended {
        // SAFETY: the world is stopped, and everything reachable is marked.
        unsafe { end(heap, stopped, state, *marking)? };
    } else {
        marking.pace.note(state.space.allocated, marking.marker.work());
        state.phase = Phase::Mark(marking);
    }
    Ok(ended)
}

/// Marks; returns whether everything reachable is marked and weak references are cleared.
///
/// # Safety
///
/// The caller has stopped the world.
unsafe fn mark(
    heap: &Heap,
    stopped: &Stopped<'_>,
    state: &mut State,
    marking: &mut Marking,
    budget: &mut Budget,
) -> bool {
    let _marking = phase(heap, "mark");
    marking.marker.resume();
    Marking::gather(heap, stopped, state);
    let mut has_roots = false;
    loop {
        // SAFETY: here and below, the world is stopped, and roots and fields hold objects of this heap, or permanent ones.
        if !unsafe { marking.drain(budget) } {
            let most = state.policy.most_visits(heap.options());
            if marking.kind == Collection::Minor && marking.marker.visited() >= most {
                // It does not pay: all of it is done again, in full.
                *marking = Marking::new(heap, state, Collection::Full, true);
            }
            return false;
        }
        if !has_roots {
            // The roots are last: each look at them then leaves little to do, and a long list of stores costs no looks.
            // SAFETY: as above.
            if !unsafe { marking.visit_recorded(heap, state, budget) } || budget.piece().is_none() {
                return false;
            }
            // SAFETY: as above.
            unsafe { marking.look(heap, stopped, state, budget) };
            has_roots = true;
            continue;
        }
        let side = marking.marker.side();
        heap.handles.clear_weak(|object| alive(side, object));
        let dead = heap.handles.find_dead(|object| alive(side, object).is_some());
        if dead.is_empty() {
            return true;
        }
        // They are roots now. If there is not time enough for what they lead to, the next pause looks at everything again.
        state.revived = true;
        dead.into_iter().for_each(|object| marking.marker.push(object));
    }
}

/// Ends a marking: the checks, and what the sweep needs.
///
/// # Safety
///
/// The caller has stopped the world, and everything reachable is marked.
unsafe fn end(heap: &Heap, stopped: &Stopped<'_>, state: &mut State, marking: Marking) -> Result<(), Broken> {
    let Marking { kind, mut marker, gave_up, .. } = marking;
    let side = marker.side();
    note_census(heap, &mut marker);
    heap.handles.forget_weak_refs(|object| alive(side, object));
    // SAFETY: the world is stopped.
    let reached = unsafe { check(heap, stopped, &mut state.canaries, &state.space, side)? };
    state.work += reached.unwrap_or_default();
    stopped.mutators().for_each(Mutator::retire);
    let allocated = state.space.allocated;
    // SAFETY: the world is stopped, no mutator owns a block, and everything reachable is marked.
    unsafe { state.space.begin_sweep(side, heap.options.poison) };
    let stats = &mut state.stats;
    let before = stats.live_bytes.saturating_add(allocated);
    let marked = marker.marked();
    match kind {
        Collection::Minor => {
            stats.minor_collections += 1;
            stats.live_objects += marked;
        }
        Collection::Full => {
            stats.full_collections += 1;
            stats.live_objects = marked;
        }
    }
    stats.allocated_bytes += allocated as u64;
    state.phase = Phase::Sweep(Swept { kind, gave_up, visited: marker.visited(), before });
    match reached {
        Some(reached) if reached > state.stats.live_objects => {
            Err(Broken::Count { reached, marked: state.stats.live_objects })
        }
        _ => Ok(()),
    }
}

/// The requested checks after a marking; returns the number of objects in the heap that are reachable.
///
/// # Safety
///
/// The caller has stopped the world.
unsafe fn check(
    heap: &Heap,
    stopped: &Stopped<'_>,
    canaries: &mut Canaries,
    space: &super::space::Space,
    side: Side,
) -> Result<Option<usize>, Broken> {
    let mut reached = None;
    if heap.options.verify {
        let _verifying = phase(heap, "verify");
        let mut oracle = Oracle::default();
        let mut root = |object| {
            oracle.root(object);
            object
        };
        for mutator in stopped.mutators() {
            // SAFETY: the world is stopped.
            unsafe { mutator.each_root(&heap.frames, &mut root) };
        }
        heap.handles.each_root(root);
        reached = Some(oracle.check(side, space, heap.types())?);
    }
    canaries.check()?;
    canaries.keep(|object| alive(side, object).is_some());
    Ok(reached)
}

impl State {
    /// Sweeps some slabs, if a sweep is under way.
    fn sweep(&mut self, options: &HeapOptions, slabs: usize) {
        if !matches!(self.phase, Phase::Sweep(_)) {
            return;
        }
        for _ in 0..slabs {
            if !self.space.sweep_next() {
                break;
            }
        }
        let Some(live) = self.space.end_sweep() else { return };
        let Phase::Sweep(swept) = std::mem::replace(&mut self.phase, Phase::Idle) else { return };
        debug_assert_eq!(live.objects, self.stats.live_objects);
        self.stats.live_bytes = live.bytes;
        self.stats.live_objects = live.objects;
        self.policy.record(
            options,
            Outcome {
                kind: swept.kind,
                live: live.bytes.saturating_add(self.space.external),
                freed: swept.before.saturating_sub(live.bytes),
                visited: swept.visited,
                gave_up: swept.gave_up,
            },
        );
        match swept.kind {
            Collection::Minor => self.space.drop_spare(self.policy.budget()),
            Collection::Full => self.space.trim(self.policy.budget()),
        }
    }

    /// Ends what slices have begun, for a collection of this kind at once; returns the kind that it has to have.
    ///
    /// # Safety
    ///
    /// The caller has stopped the world.
    pub(super) unsafe fn settle(&mut self, options: &HeapOptions, kind: Collection) -> Collection {
        self.sweep(options, usize::MAX);
        let Phase::Mark(marking) = std::mem::replace(&mut self.phase, Phase::Idle) else { return kind };
        if marking.marker.side() != self.space.side() {
            // SAFETY: by the contract.
            unsafe { self.space.clear_other_side() };
        }
        // Some objects have lost `OLD` and some are `OLD` without mark: only a full marking sets that right.
        Collection::Full
    }

    /// Whether the marking under way will not end by slices.
    fn is_lost(&self) -> bool {
        matches!(&self.phase, Phase::Mark(marking) if marking.pace.is_lost(self.space.allocated))
    }

    /// Whether a slice is due: of a marking under way, or the first.
    fn is_due(&self, options: &HeapOptions) -> bool {
        let allocated = self.space.allocated;
        match &self.phase {
            Phase::Idle => allocated >= pace::start(self.policy.next_kind(options), self.policy.budget()),
            Phase::Mark(marking) => marking.pace.is_due(allocated),
            Phase::Sweep(_) => false,
        }
    }
}

impl Cells {
    /// Does what is due before `bytes` bytes are allocated. A safepoint.
    pub(super) fn pay(&self, heap: &Heap, mutator: &Mutator, pause: Duration, bytes: usize) {
        // Large objects come with more of it, in pauses one after the other.
        let turns = 1 + (bytes >> 20).min(15);
        for _ in 0..turns {
            let (is_due, is_lost, gone) = {
                let state = &mut *self.lock();
                state.sweep(heap.options(), 1 + (bytes >> 18).min(15));
                (state.is_due(heap.options()), state.is_lost(), state.space.take_one_gone())
            };
            drop(gone);
            if is_lost {
                self.end_marking(heap, mutator);
            } else if is_due {
                self.slice(heap, mutator, Budget::time(pause / 2));
            }
        }
    }

    /// Ends the marking under way at once, because memory ran out or slices do not keep up; returns `false` if there is none.
    pub(super) fn end_marking(&self, heap: &Heap, mutator: &Mutator) -> bool {
        let is_marking = {
            let state = &mut *self.lock();
            let is_marking = matches!(state.phase, Phase::Mark(_));
            state.stats.undivided += u64::from(is_marking);
            is_marking
        };
        if is_marking {
            self.slice(heap, mutator, Budget::all());
        }
        is_marking
    }

    /// A slice of some objects, as stress asks for; returns whether a collection ended.
    pub(super) fn stress_slice(&self, heap: &Heap, mutator: &Mutator) -> bool {
        let work = {
            let state = &mut *self.lock();
            state.sweep(heap.options(), 1);
            state.turn = state.turn.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            1 + (state.turn >> 33) % STRESSED
        };
        let budget = Budget { until: None, work: Some(work as usize), least: 0 };
        self.stop_for(heap, mutator, budget)
    }

    /// A slice, and what follows a collection that ends in it.
    fn slice(&self, heap: &Heap, mutator: &Mutator, budget: Budget) {
        let before = heap.full_before();
        if self.stop_for(heap, mutator, budget) {
            heap.tell_collected(mutator, before);
        }
    }

    /// Stops the world for a slice; returns whether a marking ended in it. `false` also if another thread collects.
    ///
    /// # Panics
    ///
    /// If verification is enabled and finds the heap broken.
    fn stop_for(&self, heap: &Heap, mutator: &Mutator, mut budget: Budget) -> bool {
        let asked = Instant::now();
        let Some(stopped) = heap.world.stop(mutator) else { return false };
        let began = Instant::now();
        let result = {
            let state = &mut *self.lock();
            // SAFETY: the world is stopped by this thread, until `stopped` is dropped.
            let result = unsafe { advance(heap, &stopped, state, &mut budget) };
            state.stats.slices += 1;
            state.note_pause(asked, began);
            result
        };
        drop(stopped);
        match result {
            Ok(ended) => ended,
            Err(broken) => panic!("the heap is broken after a collection in slices: {broken}"),
        }
    }

    /// Works for about this time, in slices; returns whether something is left to do.
    pub(super) fn steps(&self, heap: &Heap, mutator: &Mutator, time: Duration) -> bool {
        let Some(pause) = heap.options.pause else { return false };
        let end = Instant::now().checked_add(time);
        loop {
            let (marks, gone) = {
                let state = &mut *self.lock();
                state.sweep(heap.options(), 1);
                // A collection may begin in idle time when it would soon begin anyway.
                let soon = pace::start(state.policy.next_kind(heap.options()), state.policy.budget()) / 2;
                let marks = match state.phase {
                    Phase::Idle if state.space.allocated < soon => false,
                    Phase::Idle | Phase::Mark(_) => true,
                    Phase::Sweep(_) => false,
                };
                (marks, state.space.take_one_gone())
            };
            let is_busy = marks || gone.is_some() || matches!(self.lock().phase, Phase::Sweep(_));
            drop(gone);
            if !is_busy {
                return false;
            }
            if marks {
                let left = end.map(|end| end.saturating_duration_since(Instant::now()));
                self.slice(heap, mutator, Budget::time(left.unwrap_or(pause).min(pause / 2)));
            }
            heap.world.stand_aside(mutator);
            if end.is_some_and(|end| Instant::now() >= end) {
                return true;
            }
        }
    }

    /// Whether minor collections make objects old, or slices do.
    pub(super) fn ages(options: &HeapOptions) -> bool {
        options.generations != Generations::Off || options.pause.is_some()
    }
}

impl Scope<'_, '_> {
    /// Does a part of the heap's collections that would otherwise be done during later allocations: for a host with idle time. Works for about
    /// `time`, in pauses as short as [`HeapOptions::pause`] says, and at least for one object. Any thread may do so, also several at a time. A safepoint.
    ///
    /// Returns whether something is left to do; `false` without that option.
    ///
    /// ```
    /// use std::time::Duration;
    /// use brolga_runtime::heap::HeapOptions;
    /// use brolga_runtime::{Runtime, RuntimeOptions};
    /// let heap = HeapOptions { pause: Some(Duration::from_millis(1)), ..HeapOptions::default() };
    /// let runtime = Runtime::new(RuntimeOptions { heap, ..RuntimeOptions::default() });
    /// // Nothing has been allocated, so there is nothing to do.
    /// assert!(!runtime.enter(|scope| scope.step(Duration::from_micros(200)))?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn step(&mut self, time: Duration) -> bool {
        self.heap.backend.step(self.heap, self.mutator, time)
    }
}
