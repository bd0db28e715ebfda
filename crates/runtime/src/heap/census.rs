//! Which types of the heap are in use, found by a full collection.
//!
//! Problem: a program has a context, and the heap describes the types of the context that the program's code and objects use. After the program is
//! dropped, its descriptions would stay as long as the heap.
//!
//! ```text
//!   context ── held by modules, units, handles, methods ──► in use
//!      ▲                                                       not so: held by descriptions alone
//!   descriptions ── held by methods, handles ──► in use           │
//!      ▲                                                          ▼
//!   objects: tags, type objects, instances, boxes ── census ──► in use, or else the context and its descriptions go
//! ```
//!
//! A context goes as a whole. It is unused when
//!
//! 1. it has no view but the heap's, and no reference to that is left but those of the heap's table and of its own descriptions;
//! 2. no reference to a description is left but that of the table and those of descriptions of the same context;
//! 3. no live object has one of its types, and no live object, root or weak reference leads to one of its permanent objects.
//!
//! Rules 1 and 2 compare reference counts. A holder of addresses without references must hold the context for that long:
//!
//! | holder of addresses of descriptions | why rule 1 or 2 holds |
//! |---|---|
//! | compiled code | its unit holds the context (`Code` in `crates/jit/src/engine.rs`), until no thread can run the code |
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
//! Not done: mmtk's heap keeps all types. A context with a holder keeps all its types.

use std::collections::BTreeSet;
use std::ops::Range;

use rustc_hash::FxHashSet;

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

    /// Whether an object has this tag.
    pub(crate) fn has_tag(&self, tag: u64) -> bool {
        self.tags.contains(&(tag & !TAG_BITS))
    }

    /// Whether something leads to a permanent object at these addresses.
    pub(crate) fn leads_to(&self, addresses: Range<usize>) -> bool {
        self.permanent.range(addresses).next().is_some()
    }
}
