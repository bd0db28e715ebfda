//! What running code does with objects beyond allocating them: relations, dispatch, the builtins on boxed values.
//!
//! Compiled code does inline what it knows the types of. Everything else comes here, with every operand an object. Nothing
//! here is `unsafe`, apart from the routines that take what compiled code passes: the rest is written on
//! [`Scope`](crate::heap::Scope) and its roots, as an embedder would write it.
//!
//! | file | what it holds |
//! |---|---|
//! | `place.rs` | typed places inside objects: reading, boxing, storing |
//! | `relations.rs` | `isa`, `===` |
//! | `throw.rs` | raising exceptions, and making the objects that they are |
//! | `show.rs` | objects as text |
//! | `routines.rs` | what compiled code calls |

mod place;
mod relations;
pub(crate) mod routines;
pub(crate) mod show;
mod throw;

pub use throw::Raised;

pub(crate) use relations::IsaCache;
