//! Freeing code when there is no room for more: the engine's interface to its evictor (`cache.rs` is one).

use brolga_instances::Evicted;

/// Frees code when there is no room for more.
pub trait Evictor: Send + Sync {
    /// Drops units, `bytes` bytes of code if it can, and returns the outcome. It must not load code.
    fn evict(&self, bytes: usize) -> Evicted;
}
