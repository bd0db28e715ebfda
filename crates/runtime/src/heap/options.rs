//! Options and statistics of a heap.

use std::time::Duration;

use super::pauses::Pauses;

/// Whether collections may treat old and young objects differently.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Generations {
    /// Every collection is full.
    Off,
    /// Collections are normally minor.
    On,
    /// Minor collections while they pay off.
    #[default]
    Adaptive,
}

/// How often to collect in addition to due collections. For tests.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Stress {
    /// No additional collections.
    #[default]
    Off,
    /// At every safepoint, and at every allocation, none of which is then inlined.
    EverySafepoint,
    /// Like `EverySafepoint` while a collection visits at most this many objects and frames; beyond that
    /// proportionally less often, so that the cost of a safepoint does not depend on the depth of the stack
    /// or the number of live objects.
    Paced(u32),
    /// After this number of cells or large objects has been allocated.
    Every(u32),
}

/// Options of a heap.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HeapOptions {
    /// Bytes beyond which allocation fails; `None`: three quarters of the memory of the machine or the
    /// container, where the system reports it, otherwise `usize::MAX`. Counted in blocks of 32 KiB, which
    /// hold objects of one size, and units of 2 KiB for objects of more than 16 KiB. Names and types that
    /// programs make at run time count as external bytes, by an estimate, and may take half of it.
    pub limit: Option<usize>,
    /// Bytes to which the heap grows before the first collection, and later even if less is live.
    pub initial: usize,
    /// How far the heap may grow beyond its live size, in percent of it.
    pub growth_percent: u32,
    /// `None`: throughput, each collection stops the program once, for as long as it takes. Otherwise short pauses: collections work in slices
    /// between which the program runs, each of at most half of this time, so that a pause, with waiting for threads, is not longer; the scan of the
    /// roots and of handles is not divided. A millisecond is a good value. Objects that become unreachable during a collection stay until the next, so
    /// the heap should have a quarter more room. Default heap only.
    pub pause: Option<Duration>,
    /// Whether to make minor collections.
    pub generations: Generations,
    /// Whether to collect more often than needed.
    pub stress: Stress,
    /// Whether to overwrite freed memory, so that a use after free shows. Slow: the whole heap is touched.
    pub poison: bool,
    /// Whether to check every collection by a second, naive one. Very slow.
    pub verify: bool,
    /// Whether every object is followed by bytes that each collection checks, so that a write past its end is
    /// detected, and a read there never returns contents of an object. Slow: no allocation is inlined, and
    /// objects are larger. Default heap only.
    pub canaries: bool,
}

impl Default for HeapOptions {
    fn default() -> HeapOptions {
        HeapOptions {
            limit: None,
            initial: 16 << 20,
            growth_percent: 100,
            pause: None,
            generations: Generations::default(),
            stress: Stress::default(),
            poison: false,
            verify: false,
            canaries: false,
        }
    }
}

/// Statistics of a heap. Totals count from the heap's creation.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct HeapStats {
    /// Minor collections.
    pub minor_collections: u64,
    /// Full collections.
    pub full_collections: u64,
    /// Total time for which the world was stopped.
    pub pause_total: Duration,
    /// The longest pause.
    pub pause_max: Duration,
    /// The lengths of the pauses. Default heap only.
    pub pauses: Pauses,
    /// The longest time for which the world was stopped within any ten milliseconds: the rest is the *minimum mutator utilisation*. Default heap only.
    pub stopped_of_10ms: Duration,
    /// The number of pauses in which a collection did a part of its work ([`HeapOptions::pause`]).
    pub slices: u64,
    /// Collections whose end could not be divided, because the program had changed more than a slice could follow, or had no memory left.
    pub undivided: u64,
    /// The last pause.
    pub pause_last: Duration,
    /// Time spent waiting for threads to stop.
    pub stopping_total: Duration,
    /// Bytes allocated up to the last collection, in cells and blocks.
    pub allocated_bytes: u64,
    /// Bytes found live by the last collection, in cells and blocks.
    pub live_bytes: usize,
    /// Objects found live by the last collection.
    pub live_objects: usize,
    /// Bytes in blocks that now hold objects.
    pub used_bytes: usize,
    /// Bytes currently mapped.
    pub mapped_bytes: usize,
    /// External bytes that were announced and not yet released, including names and types.
    pub external_bytes: usize,
    /// Finalizers waiting to run.
    pub finalizers_ready: usize,
    /// Finalizers that threw or panicked;
    /// [`Heap::take_finalizer_failures`](super::Heap::take_finalizer_failures) returns the messages.
    pub finalizers_failed: u64,
}
