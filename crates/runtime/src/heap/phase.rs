//! The state of a collection in slices between two of them (`slices.rs`).

use super::mark::Marker;
use super::pace::Pace;
use super::policy::Collection;

/// The stage of the collection in slices.
pub(super) enum Phase {
    Idle,
    Mark(Box<Marking>),
    Sweep(Swept),
}

/// A marking under way.
pub(super) struct Marking {
    pub(super) kind: Collection,
    pub(super) marker: Marker,
    pub(super) pace: Pace,
    /// Whether it is a full one that replaced a minor one.
    pub(super) gave_up: bool,
    pub(super) looks: u32,
}

/// The collection that a sweep belongs to.
pub(super) struct Swept {
    pub(super) kind: Collection,
    pub(super) gave_up: bool,
    pub(super) visited: usize,
    /// Bytes in cells and blocks before it.
    pub(super) before: usize,
}
