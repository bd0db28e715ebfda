//! Freeing code when there is no room for more: what an engine asks, without knowing by what it is answered (`cache.rs` is one answer).

use brolga_instances::Evicted;

/// Frees code when there is no room for more.
pub trait Evictor: Send + Sync {
    /// Gives up units, so many bytes of code if it can, and says what has come of it. It must not load code.
    fn evict(&self, bytes: usize) -> Evicted;
}
