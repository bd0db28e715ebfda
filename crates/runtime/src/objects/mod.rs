//! Operations of running code on objects beyond allocation: relations, dispatch, the builtins on boxed
//! values.
//!
//! Compiled code performs operations on known types inline. All others are here, with every operand an
//! object. They use [`Scope`](crate::heap::Scope) and its roots, as an embedder would; `unsafe` is needed
//! only where addresses enter or leave.
//!
//! | file | what it holds |
//! |---|---|
//! | `place.rs` | typed places inside objects: reading, boxing, storing |
//! | `relations.rs` | `isa`, `===` |
//! | `throw.rs` | raising exceptions, and making their objects |
//! | `show.rs` | objects as text |
//! | `methods.rs` | generic functions: which method a call reaches, and in which worlds |
//! | `deferred.rs` | boxed entries that are compiled on the first call of their method |
//! | `dispatch.rs` | dynamic dispatch of a thread: its world, and its inline cache |
//! | `call.rs` | calls of any object |
//! | `change.rs` | reading and changing places, atomically where threads share them |
//! | `quick.rs` | operators on common numbers |
//! | `builtins.rs`, `fields.rs`, `elements.rs`, `numbers.rs`, `base.rs` | calls without a method, by family |
//! | `moves.rs` | moving and clearing elements, with polls |
//! | `copies.rs`, `identity.rs` | entry points of Julia's run time for copies and for identity |
//! | `values.rs` | values of the interpreter as objects, and back |

mod access;
mod base;
mod builtins;
pub(crate) mod call;
mod change;
mod copies;
pub(crate) mod deferred;
mod dispatch;
pub(crate) mod elements;
pub(crate) mod entry;
pub(crate) mod fields;
pub(crate) mod identity;
pub(crate) mod methods;
mod moves;
mod names;
mod numbers;
mod parameters;
pub(crate) mod place;
mod quick;
pub(crate) mod quick_builtins;
pub(crate) mod relations;
pub(crate) mod show;
pub(crate) mod throw;
mod values;
mod variables;

pub use deferred::{DeferredEntry, Elsewhere, EntrySource, error_in_words};
pub use dispatch::{
    InWorld, InlineCacheLayout, LINE_KEYS, LINE_MASK, LINE_MULTIPLIER, LINE_ROTATE, LINE_SHIFT,
};
pub use entry::{CodeEntry, CodeOwner, EntryCaller, ThreadPointer};
pub use methods::{
    Ambiguous, HostFn, LaterMethods, MethodEntry, MethodRow, MethodTable, Methods, NewMethods,
};
pub use throw::Raised;
pub use values::CopyError;

pub(crate) use call::Ops;
pub(crate) use dispatch::{Dispatch, InlineCache};
pub(crate) use methods::{Table, Worlds};
pub(crate) use relations::IsaCache;
