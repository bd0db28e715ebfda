//! Determines which types of the heap are in use, by a full collection.
//!
//! Problem: the heap describes the types that programs mention and those that they make at run time. When the
//! program and the last object are gone, the descriptions would otherwise stay as long as the heap.
//!
//! ```text
//!   context ── held by modules, units, handles, methods ──► in use
//!      ▲                                                       unused: held only by descriptions
//!   descriptions ── held by code, methods, handles ──► in use     │
//!      ▲                                                          ▼
//!   objects: tags, type objects, instances, boxes ── census ──► in use, or else the context and its descriptions are freed
//! ```
//!
//! A description is unused when
//!
//! 1. no code has its address: none ever had it, or the context of the program is unused;
//! 2. no reference to it is left except from the table and from unused descriptions;
//! 3. no live object has the type, and no live object, root or weak reference refers to one of its permanent
//!    objects.
//!
//! The context of a program is unused when it has no views but the heap's, the only references to those are
//! the heap's table's and descriptions', and rules 2 and 3 hold for its descriptions. The program's code
//! holds the context.
//!
//! These rules compare reference counts. Some holders have addresses without references:
//!
//! | holder of addresses of descriptions | why it is safe |
//! |---|---|
//! | compiled code | it gets them from [`Runtime::type_address`](crate::Runtime::type_address) and similar functions, which mark the table's row for the program; its unit holds the context (`Code` in `crates/jit/src/engine.rs`) until no thread can run the code |
//! | tables of methods, by the callee's tag | a method holds the descriptions of its callee, its parameters and its signature |
//! | profiles | hints only: a type in a profile is looked up by its tag, and code tests for the type that is found |
//!
//! Two per-thread caches have addresses without references: lines of dynamic calls, which belong to a world,
//! and results of `isa`. So the collection removes unused descriptions from the table, and the runtime frees
//! them in a later world, when no thread is left in an earlier one
//! ([`Runtime::free_unused_types`](crate::Runtime::free_unused_types)). Caches of `isa` are cleared when the
//! number of sweeps has changed.
//!
//! Why the counts are valid: the world is stopped and the table locked, so no code obtains a reference from
//! an object or from the table. A thread outside the heap can clone a reference that it has, and that one was
//! counted.
//!
//! Cost: none without a request; a collection with a census does one hash-table look-up for each object.
//!
//! Not done: mmtk's heap keeps all types. A context with a holder keeps the types that code has; symbols stay
//! as long as the heap, because programs keep pointers to their text, as in Julia.

use std::collections::BTreeSet;

use rustc_hash::FxHashSet;

use super::desc::TypeRef;
use super::layout::{TAG_BITS, TAG_PERMANENT};
use super::object::Object;

/// The types and permanent objects met by a collection.
#[derive(Default)]
pub(crate) struct Census {
    /// Tags without their low bits.
    tags: FxHashSet<u64>,
    /// The addresses of permanent objects.
    permanent: BTreeSet<usize>,
}

impl Census {
    /// Records a live object, or a permanent one that is referred to.
    pub(crate) fn note(&mut self, object: Object) {
        let tag = object.tag();
        self.tags.insert(tag & !TAG_BITS);
        if tag & TAG_PERMANENT != 0 {
            self.permanent.insert(object.address());
        }
    }

    /// Whether an object has this type, or something refers to the type as an object, or to its only
    /// instance.
    pub(super) fn has(&self, ty: &TypeRef) -> bool {
        self.tags.contains(&(ty.tag() & !TAG_BITS)) || self.permanent.range(ty.addresses()).next().is_some()
    }
}
