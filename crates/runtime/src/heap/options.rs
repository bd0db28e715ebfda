//! Options and statistics of a heap.

use std::time::Duration;

use super::pauses::Pauses;

/// Whether collections may treat old and young objects differently.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Generations {
    /// Every collection looks at everything.
    Off,
    /// Minor collections as a rule.
    On,
    /// Minor collections while they pay.
    #[default]
    Adaptive,
}

/// How often to collect beyond what memory asks for. For tests.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Stress {
    /// Not at all.
    #[default]
    Off,
    /// At every allocation that leaves the inlined path, which then is every one, and at every safepoint.
    EverySafepoint,
    /// As `EverySafepoint` while a collection looks at no more than so many objects and frames; when it looks at more, so much
    /// more rarely, so that a safepoint costs about the same however deep the stack is and however much lives.
    Paced(u32),
    /// When so many cells or large objects were allocated since the last time.
    Every(u32),
}

/// Options of a heap.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HeapOptions {
    /// Bytes beyond which allocation fails; `None`: three quarters of the memory that the machine or the container has, where the system
    /// tells that, and `usize::MAX` what the system gives. Counted in blocks of 32 KiB, which hold objects of one size,
    /// and units of 2 KiB for objects of more than 16 KiB. Names and types that programs make while they run count as external bytes, by an estimate,
    /// and take half at most.
    pub limit: Option<usize>,
    /// Bytes to which the heap grows before the first collection, and in spite of having less live.
    pub initial: usize,
    /// By how much the heap may grow beyond what is live, in percent of that.
    pub growth_percent: u32,
    /// Whether minor collections are made.
    pub generations: Generations,
    /// Collecting more often than needed.
    pub stress: Stress,
    /// Whether freed memory is overwritten, so that a use after free shows. Slow: the whole heap is touched.
    pub poison: bool,
    /// Whether every collection is checked by a second, naive one. Very slow.
    pub verify: bool,
    /// Whether every object is followed by bytes that each collection checks, so that a write past its end shows, and a read there returns
    /// nothing that an object holds. Slow: no allocation is inlined, and objects are larger. Of the default heap only.
    pub canaries: bool,
}

impl Default for HeapOptions {
    fn default() -> HeapOptions {
        HeapOptions {
            limit: None,
            initial: 16 << 20,
            growth_percent: 100,
            generations: Generations::default(),
            stress: Stress::default(),
            poison: false,
            verify: false,
            canaries: false,
        }
    }
}

/// Statistics of a heap. The sums count from the heap's creation.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct HeapStats {
    /// Minor collections.
    pub minor_collections: u64,
    /// Full collections.
    pub full_collections: u64,
    /// Time in which the world was stopped.
    pub pause_total: Duration,
    /// The longest pause.
    pub pause_max: Duration,
    /// How long the pauses were. Of the default heap only.
    pub pauses: Pauses,
    /// The last pause.
    pub pause_last: Duration,
    /// Time spent waiting for threads to stop.
    pub stopping_total: Duration,
    /// Bytes allocated up to the last collection, in cells and blocks.
    pub allocated_bytes: u64,
    /// Bytes that the last collection found live, in cells and blocks.
    pub live_bytes: usize,
    /// Objects that the last collection found live.
    pub live_objects: usize,
    /// Bytes in blocks that hold objects now.
    pub used_bytes: usize,
    /// Bytes mapped now.
    pub mapped_bytes: usize,
    /// External bytes that were announced and not taken back, those of names and types included.
    pub external_bytes: usize,
    /// Finalizers that wait to run.
    pub finalizers_ready: usize,
    /// Finalizers that threw or panicked; [`Heap::take_finalizer_failures`](super::Heap::take_finalizer_failures) says what.
    pub finalizers_failed: u64,
}
