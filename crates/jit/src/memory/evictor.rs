//! Freeing code when there is no room for more: the engine's interface to its evictor (`cache.rs` is one).

use brolga_instances::Evicted;

/// Frees code when there is no room for more.
pub trait Evictor: Send + Sync {
    /// Gives up units, so many bytes of code if it can, and says what has come of it. It must not load code.
    fn evict(&self, bytes: usize) -> Evicted;
}
