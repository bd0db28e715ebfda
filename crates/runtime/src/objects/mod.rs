//! Operations of running code on objects beyond allocation: relations, dispatch, the builtins on boxed values.
//!
//! Compiled code does inline what it knows the types of. Everything else comes here, with every operand an object. It is
//! written on [`Scope`](crate::heap::Scope) and its roots, as an embedder would write it; only where addresses come in or go out
//! is there `unsafe`.
//!
//! | file | what it holds |
//! |---|---|
//! | `place.rs` | typed places inside objects: reading, boxing, storing |
//! | `relations.rs` | `isa`, `===` |
//! | `throw.rs` | raising exceptions, and making the objects that they are |
//! | `show.rs` | objects as text |
//! | `methods.rs` | generic functions: which method a call goes to, and in which worlds |
//! | `deferred.rs` | boxed entries that are compiled when a call first goes to their method |
//! | `dispatch.rs` | where the calls of a thread go: its world, and what it remembers |
//! | `call.rs` | calls of anything |
//! | `change.rs` | reading and changing places, in one step where threads share them |
//! | `quick.rs` | operators on the usual numbers |
//! | `builtins.rs`, `fields.rs`, `elements.rs`, `numbers.rs`, `base.rs` | what calls of no method do, by family |
//! | `copies.rs`, `identity.rs` | entry points of Julia's run time that copy, and those about what a value is |
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
mod identity;
pub(crate) mod methods;
mod names;
mod numbers;
mod parameters;
mod place;
mod quick;
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
pub use methods::{Ambiguous, HostFn, MethodEntry, MethodRow, MethodTable, Methods, NewMethods};
pub use throw::Raised;
pub use values::CopyError;

pub(crate) use call::Ops;
pub(crate) use dispatch::{Dispatch, InlineCache};
pub(crate) use methods::{Table, Worlds};
pub(crate) use relations::IsaCache;
