//! One collection of the cell heap, from stopping the world to resuming it. Finalizers run afterwards
//! (`heap.rs`).
//!
//! | phase | minor | full |
//! |---|---|---|
//! | 1 | retire the mutators' runs | the same; clear all marks |
//! | 2 | mark from roots and from old objects that were stored into; if that is too much, continue as a full collection | mark from roots |
//! | 3 | clear weak references and handles to unmarked objects, even in dead objects | the same |
//! | 4 | mark dead objects with a visiting finalizer, and everything reachable from them | the same |
//! | 5 | verification, if enabled | the same |
//! | 6 | free unmarked blocks, list those with room | the same; return whole chunks |
//!
//! Phase 6 does not touch cells: mutators find the free ones on demand. Chunks are unmapped after the world has resumed.
//!
//! With short pauses, requested collections and those for which memory ran out work like this; all others work
//! in slices (`slices.rs`).

use std::time::Instant;

use super::cells::{Cells, State};
use super::chunk::{MarkBit, Side};
use super::heap::Heap;
use super::layout::TAG_PERMANENT;
use super::mark::Marker;
use super::mutator::Mutator;
use super::object::Object;
use super::options::Generations;
use super::policy::{Collection, Outcome};
use super::verify::{Broken, Oracle};
use super::world::Stopped;
use crate::events::{Span, Stage};

impl Cells {
    /// Collects; `false` if another thread did so instead.
    ///
    /// # Panics
    ///
    /// If verification is enabled and finds the heap broken.
    pub(super) fn stop_and_collect(&self, heap: &Heap, mutator: &Mutator, kind: Collection) -> bool {
        let asked = Instant::now();
        let stopping = phase(heap, "stop threads");
        let Some(stopped) = heap.world.stop(mutator) else { return false };
        drop(stopping);
        let began = Instant::now();
        let (result, gone) = {
            let state = &mut *self.lock();
            // SAFETY: the world is stopped by this thread, until `stopped` is dropped.
            let result = unsafe {
                let kind = state.settle(heap.options(), kind);
                cycle(heap, &stopped, state, kind)
            };
            state.note_pause(asked, began);
            (result, state.space.take_gone())
        };
        drop(stopped);
        drop(gone);
        if let Err(broken) = result {
            panic!("the heap is broken after a {kind:?} collection: {broken}");
        }
        true
    }
}

impl State {
    /// Counts a pause that ends now. It was asked for at one time, and the world was stopped at another.
    pub(super) fn note_pause(&mut self, asked: Instant, began: Instant) {
        let now = Instant::now();
        let (pause, stats) = (now - asked, &mut self.stats);
        stats.stopping_total += began - asked;
        stats.pause_total += pause;
        stats.pause_last = pause;
        stats.pauses.add(pause);
        stats.pause_max = stats.pause_max.max(pause);
        stats.stopped_of_10ms = self.density.add(asked, now);
    }
}

/// A part of a collection, for listeners.
pub(super) fn phase<'h>(heap: &'h Heap, name: &'static str) -> Span<'h> {
    heap.events().span(Stage::Phase, || name)
}

/// # Safety
///
/// The caller has stopped the world.
unsafe fn cycle(
    heap: &Heap,
    stopped: &Stopped<'_>,
    state: &mut State,
    kind: Collection,
) -> Result<(), Broken> {
    let State { space, policy, stats, work, revived, canaries, slots, .. } = state;
    let (ages, side) = (Cells::ages(&heap.options), space.side());
    let mut kind = match heap.options.generations {
        Generations::Off => Collection::Full,
        Generations::On | Generations::Adaptive => kind,
    };
    let mut oracle = heap.options.verify.then(Oracle::default);
    let mut marker = Marker::new(ages, side);
    let marking = phase(heap, "mark");
    let mut root = |marker: &mut Marker, object: Object| {
        marker.push(object);
        if let Some(oracle) = &mut oracle {
            oracle.root(object);
        }
        object
    };
    if kind == Collection::Full {
        // SAFETY: the world is stopped.
        unsafe { space.clear_marks() };
        if heap.types().wants_census() {
            marker.take_census();
        }
    }
    let mut frames = 0;
    for mutator in stopped.mutators() {
        mutator.retire();
        // SAFETY: the world is stopped.
        frames += unsafe { mutator.each_root(&heap.frames, &mut |object| root(&mut marker, object)) };
        let remembered = mutator.remembered.take();
        heap.handles.keep_remembered(remembered);
        slots.append(&mut mutator.slots.borrow_mut());
    }
    heap.handles.each_root(|object| root(&mut marker, object));
    let roots = if kind == Collection::Minor { marker.pushed() } else { Vec::new() };
    for object in heap.handles.take_remembered() {
        if kind == Collection::Minor {
            // SAFETY: the world is stopped. The object is marked: it was old, and marks stay between full collections.
            unsafe { marker.rescan(object) };
        }
    }
    for (object, offset) in slots.drain(..) {
        // All marked objects are old, so this one is marked.
        let child = super::slots::take(object, offset).filter(|_| kind == Collection::Minor);
        child.into_iter().for_each(|child| marker.push(child));
    }
    if kind == Collection::Minor {
        marker.limit(policy.most_visits(&heap.options));
    }
    // SAFETY: here and below, the world is stopped, and roots and fields hold objects of this heap.
    let gave_up = unsafe { !marker.drain() };
    if gave_up {
        kind = Collection::Full;
        marker = Marker::new(ages, side);
        roots.into_iter().for_each(|object| marker.push(object));
        // SAFETY: as above.
        unsafe {
            space.clear_marks();
            marker.drain();
        }
    }
    marker.limit(usize::MAX);
    drop(marking);
    let clearing = phase(heap, "weak references");
    heap.handles.clear_weak(|object| alive(side, object));
    let dead = heap.handles.find_dead(|object| alive(side, object).is_some());
    *revived = !dead.is_empty();
    for object in dead {
        root(&mut marker, object);
    }
    // SAFETY: as above.
    unsafe { marker.drain() };
    note_census(heap, &mut marker);
    heap.handles.forget_weak_refs(|object| alive(side, object));
    drop(clearing);
    let reached = match oracle {
        Some(oracle) => {
            let _verifying = phase(heap, "verify");
            Some(oracle.check(side, space, heap.types())?)
        }
        None => None,
    };

    canaries.check()?;
    canaries.keep(|object| alive(side, object).is_some());
    let sweeping = phase(heap, "sweep");
    let allocated = space.allocated;
    // SAFETY: the world is stopped, no mutator owns a block after `retire`, and everything reachable is marked.
    let live = unsafe { space.sweep(heap.options.poison) };
    drop(sweeping);
    let before = stats.live_bytes + allocated;
    let outcome = Outcome {
        kind,
        live: live.bytes.saturating_add(space.external),
        freed: before.saturating_sub(live.bytes),
        visited: marker.visited(),
        gave_up,
    };
    *work = frames + outcome.visited.max(reached.unwrap_or_default());
    policy.record(&heap.options, outcome);
    match kind {
        Collection::Minor => {
            stats.minor_collections += 1;
            space.drop_spare(policy.budget());
        }
        Collection::Full => {
            stats.full_collections += 1;
            space.trim(policy.budget());
        }
    }
    stats.allocated_bytes += allocated as u64;
    stats.live_bytes = live.bytes;
    stats.live_objects = live.objects;
    match reached {
        Some(reached) if kind == Collection::Full && reached != live.objects => {
            Err(Broken::Count { reached, marked: live.objects })
        }
        _ => Ok(()),
    }
}

/// Ends a census, if there is one: takes the types that are not in use out of the table. After marking, and before weak references are forgotten.
pub(super) fn note_census(heap: &Heap, marker: &mut Marker) {
    let Some(mut census) = marker.census() else { return };
    let side = marker.side();
    // Weak references to permanent objects stay.
    heap.handles.clear_weak(|object| {
        if object.tag() & TAG_PERMANENT != 0 {
            census.note(object);
        }
        alive(side, object)
    });
    heap.take_unused_types(&census);
}

/// An object that is marked on this side, or permanent. Only during a collection, after marking.
pub(super) fn alive(side: Side, object: Object) -> Option<Object> {
    // SAFETY: called by the collector, while the world is stopped; an object that is not permanent is a cell of the heap.
    let is = object.tag() & TAG_PERMANENT != 0 || unsafe { MarkBit::of(side, object).get() };
    is.then_some(object)
}
