//! Marking: finding everything reachable from roots.
//!
//! ```text
//!   roots ──► stack ──► queue of 16, each prefetched as it comes in ──► mark; push what it refers to ──► stack
//!                  ▲                                                                                       │
//!   ranges ────────┴───────────────────────────────────────────────────────────────────────────────────────┘
//!   (large `Memory`s, in slices)
//! ```
//!
//! An object's tag and mark bit are usually cache misses; the queue hides their latency. There is no recursion: the
//! stack is a vector, and a `Memory` of a million elements goes through it in slices.
//!
//! A marked object gets the `OLD` bit if generations or slices are enabled, so that the store barrier records later
//! stores into it.
//!
//! A marking may stop after any amount of work and go on in a later pause: what is in the queue then goes back to the stack.
//!
//! Cost: a few nanoseconds for each object and pointer; stack memory depends on the graph (a list needs one
//! entry).
//!
//! Not done: marking with several threads.

use super::census::Census;
use super::chunk::{MarkBit, Side};
use super::desc::Scan;
use super::layout::{LENGTH, MEMORY_ELEMENTS, TAG_OLD, TAG_PERMANENT};
use super::object::Object;

const QUEUE: usize = 16;
/// The number of elements of a `Memory` pushed at a time.
const SLICE: usize = 256;
/// The cost of a slice of elements, in visits.
const SLICE_WORK: usize = SLICE / 16;

/// Elements of a `Memory` that have not been visited yet.
struct Range {
    memory: Object,
    next: usize,
}

/// The state of a marking.
pub(crate) struct Marker {
    stack: Vec<Object>,
    ranges: Vec<Range>,
    queue: [Option<Object>; QUEUE],
    head: usize,
    old: u64,
    /// The permanent object visited last. Most pointers to permanent objects refer to the same one,
    /// `nothing`.
    permanent: Option<Object>,
    visited: usize,
    /// Work beside visits.
    scanned: usize,
    most_work: usize,
    /// The number of objects marked.
    marked: usize,
    side: Side,
    /// The census, if requested.
    census: Option<Census>,
}

impl Marker {
    /// `ages`: whether marked objects become old. Sets the marks of this side.
    pub(crate) fn new(ages: bool, side: Side) -> Marker {
        Marker {
            stack: Vec::new(),
            ranges: Vec::new(),
            queue: [None; QUEUE],
            head: 0,
            old: if ages { TAG_OLD } else { 0 },
            permanent: None,
            visited: 0,
            scanned: 0,
            most_work: usize::MAX,
            marked: 0,
            side,
            census: None,
        }
    }

    /// From now on records the types it meets.
    pub(crate) fn take_census(&mut self) {
        self.census = Some(Census::default());
    }

    /// The census of met types.
    pub(crate) fn census(&mut self) -> Option<Census> {
        self.census.take()
    }

    /// The number of visits to objects, marked or not.
    pub(crate) fn visited(&self) -> usize {
        self.visited
    }

    /// The objects pushed but not yet scanned.
    pub(crate) fn pushed(&self) -> Vec<Object> {
        self.stack.clone()
    }

    /// From now on [`Marker::drain`] stops after this much work since the start.
    pub(crate) fn limit(&mut self, most_work: usize) {
        self.most_work = most_work;
    }

    /// The work since the start, counted in visits.
    pub(crate) fn work(&self) -> usize {
        self.visited + self.scanned
    }

    /// The number of objects on the stack.
    pub(crate) fn pending(&self) -> usize {
        self.stack.len()
    }

    /// The number of objects marked.
    pub(crate) fn marked(&self) -> usize {
        self.marked
    }

    /// The side whose marks it sets.
    pub(crate) fn side(&self) -> Side {
        self.side
    }

    /// Must be called when the program has run since the last visit: permanent objects may have been freed.
    pub(crate) fn resume(&mut self) {
        self.permanent = None;
    }

    /// Pushes a live object.
    pub(crate) fn push(&mut self, object: Object) {
        self.stack.push(object);
    }

    /// Scans an object that was stored into, if it is marked already; otherwise it will be scanned when it is reached, or is dead.
    ///
    /// # Safety
    ///
    /// As for [`Marker::drain`].
    pub(crate) unsafe fn rescan(&mut self, object: Object) {
        // SAFETY: an object that was remembered is a cell of the heap; the rest is the contract.
        if unsafe { MarkBit::of(self.side, object).get() } {
            self.scanned += 1;
            self.age(object, object.tag());
            self.scan(object);
        }
    }

    /// Marks everything reachable from the pushed objects; `false` if it stopped at the limit, after which it may go on.
    ///
    /// # Safety
    ///
    /// The caller is the collector, and the world is stopped; the pushed objects, and every pointer reached
    /// from them, are objects of this heap, or permanent.
    pub(crate) unsafe fn drain(&mut self) -> bool {
        // SAFETY: by the contract of this function.
        unsafe { if self.census.is_some() { self.run::<true>() } else { self.run::<false>() } }
    }

    /// # Safety
    ///
    /// As for [`Marker::drain`].
    unsafe fn run<const COUNTED: bool>(&mut self) -> bool {
        let mut queued = 0;
        loop {
            while queued < QUEUE
                && let Some(object) = self.stack.pop()
            {
                object.prefetch();
                MarkBit::of(self.side, object).prefetch();
                self.queue[(self.head + queued) % QUEUE] = Some(object);
                queued += 1;
            }
            let Some(object) = self.queue[self.head].take() else {
                match self.ranges.pop() {
                    Some(range) if self.work() >= self.most_work => {
                        self.ranges.push(range);
                        return false;
                    }
                    Some(range) => self.scan_elements(range.memory, range.next),
                    None => return true,
                }
                continue;
            };
            if self.work() >= self.most_work {
                self.stack.push(object);
                self.stack.extend(self.queue.iter_mut().filter_map(Option::take));
                return false;
            }
            self.head = (self.head + 1) % QUEUE;
            queued -= 1;
            self.visited += 1;
            let tag = object.tag();
            if COUNTED && let Some(census) = &mut self.census {
                census.note(object);
            }
            if tag & TAG_PERMANENT != 0 {
                self.permanent = Some(object);
                continue;
            }
            // SAFETY: an object that is not permanent is a cell of this heap; the rest is the contract.
            if unsafe { MarkBit::of(self.side, object).set() } {
                self.marked += 1;
                self.age(object, tag);
                self.scan(object);
            }
        }
    }

    fn age(&self, object: Object, tag: u64) {
        let aged = tag & !TAG_OLD | self.old;
        if aged != tag {
            object.set_tag(aged);
        }
    }

    fn scan(&mut self, object: Object) {
        match object.desc().scan() {
            Scan::Nothing => {}
            Scan::Words(mask) => {
                let mut rest = *mask;
                while rest != 0 {
                    let child = object.pointer_at(8 * rest.trailing_zeros() as usize);
                    self.stack.extend(child.filter(|_| child != self.permanent));
                    rest &= rest - 1;
                }
            }
            Scan::Offsets(offsets) => {
                self.stack.extend(offsets.iter().filter_map(|&at| object.pointer_at(at as usize)));
            }
            Scan::Elements { .. } => self.scan_elements(object, 0),
        }
    }

    fn scan_elements(&mut self, memory: Object, first: usize) {
        let Scan::Elements { stride, offsets } = memory.desc().scan() else { return };
        let length = usize::try_from(memory.word_at(LENGTH)).unwrap_or(usize::MAX);
        self.scanned += SLICE_WORK.min(length / 16);
        let end = length.min(first.saturating_add(SLICE));
        for index in first..end {
            let start = MEMORY_ELEMENTS + index * *stride as usize;
            self.stack.extend(offsets.iter().filter_map(|&at| memory.pointer_at(start + at as usize)));
        }
        if end < length {
            self.ranges.push(Range { memory, next: end });
        }
    }
}
