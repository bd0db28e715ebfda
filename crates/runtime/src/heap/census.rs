//! Which types of the heap are in use, found by a full collection.
//!
//! Problem: the heap describes the types that programs mention and those that they make while they run. After the program or the last object is
//! gone, the descriptions would stay as long as the heap.
//!
//! ```text
//!   context ── held by modules, units, handles, methods ──► in use
//!      ▲                                                       not so: held by descriptions alone
//!   descriptions ── held by code, methods, handles ──► in use     │
//!      ▲                                                          ▼
//!   objects: tags, type objects, instances, boxes ── census ──► in use, or else the context and its descriptions go
//! ```
//!
//! A description is unused when
//!
//! 1. no code has its address: none ever had it, or the context of the program is unused;
//! 2. no reference to it is left but the one of the table, and those of unused descriptions;
//! 3. no live object has the type, and no live object, root or weak reference leads to one of its permanent objects.
//!
//! The context of a program is unused when it has no views but the heap's, no reference to those is left but the ones of the heap's table and of descriptions, and
//! rules 2 and 3 hold for its descriptions. The program's code holds the context.
//!
//! These rules compare reference counts. Holders of addresses without references:
//!
//! | holder of addresses of descriptions | why it is safe |
//! |---|---|
//! | compiled code | it has them from [`Runtime::type_address`](crate::Runtime::type_address) and its like, which mark the table's row for the program; its unit holds the context (`Code` in `crates/jit/src/engine.rs`), until no thread can run the code |
//! | tables of methods, by the callee's tag | a method holds the descriptions of its callee, its parameters and its signature |
//! | profiles | a guess: a type in a profile is looked up by its tag, and code tests for the type that is found |
//!
//! Two caches of threads have addresses and hold nothing: lines of dynamic calls, which belong to a world, and answers of `isa`. So the collection
//! takes unused descriptions out of the table, and the runtime frees them in a later world, when no thread is left in an earlier one
//! ([`Runtime::free_unused_types`](crate::Runtime::free_unused_types)). Caches of `isa` are emptied when the number
//! of sweeps has changed.
//!
//! Why the counts are valid: the world is stopped and the table locked, so no code gets a reference from an object or from the table. A thread outside
//! of the heap can clone a reference that it has, and that one was counted.
//!
//! Cost: nothing without a request; in a collection with a census one look-up in a hash table for each object.
//!
//! Not done: mmtk's heap keeps all types. A context with a holder keeps the types that code has; symbols stay as long as the heap, because programs keep
//! pointers to their text, as Julia's do.

use std::collections::BTreeSet;

use rustc_hash::FxHashSet;

use super::desc::TypeRef;
use super::layout::{TAG_BITS, TAG_PERMANENT};
use super::object::Object;

/// The types and permanent objects that a collection has met.
#[derive(Default)]
pub(crate) struct Census {
    /// Tags without their low bits.
    tags: FxHashSet<u64>,
    /// The addresses of permanent objects.
    permanent: BTreeSet<usize>,
}

impl Census {
    /// Notes a live object, or a permanent one that something leads to.
    pub(crate) fn note(&mut self, object: Object) {
        let tag = object.tag();
        self.tags.insert(tag & !TAG_BITS);
        if tag & TAG_PERMANENT != 0 {
            self.permanent.insert(object.address());
        }
    }

    /// Whether an object has this type, or something leads to the type as an object, or to its only instance.
    pub(super) fn has(&self, ty: &TypeRef) -> bool {
        self.tags.contains(&(ty.tag() & !TAG_BITS)) || self.permanent.range(ty.addresses()).next().is_some()
    }
}
