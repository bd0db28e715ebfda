//! Objects and the heap: scopes, roots, persistent handles, collection, statistics.
//!
//! A [`Scope`] lasts for one visit of a thread to the heap; roots belong to it. The heap belongs to a [`Runtime`](crate::Runtime), which engines and
//! sessions share by reference, and is freed with the last of them.

pub use brolga_runtime::heap::*;
pub use brolga_runtime::{ObjectCallError, objects};
