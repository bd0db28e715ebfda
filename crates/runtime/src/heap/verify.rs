//! A second, naive marking that checks the first.
//!
//! It starts from the same roots, walks the objects by their layouts (not by the collector's scan tables),
//! collects them in a set (not in mark bits), and checks that each address is a cell's, that its tag is a
//! type's, and that the collector has marked it. After a full collection the counts must agree as well:
//! nothing unreachable stays.
//!
//! Cost: many times the cost of the collection.

use std::fmt;

use rustc_hash::FxHashSet;

use super::chunk::{MarkBit, Side};
use super::desc::ObjectKind;
use super::layout::{ARRAY_MEMORY, LENGTH, MEMORY_ELEMENTS, TAG_PERMANENT};
use super::object::Object;
use super::space::Space;
use super::types::RuntimeTypes;

/// A finding of verification: a defect of the collector, of root placement, or of code that wrote out of
/// bounds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Broken {
    /// A pointer does not point to a cell.
    NoCell { address: usize, from: usize },
    /// A tag does not refer to a type.
    NoType { address: usize, tag: u64 },
    /// The collector has missed a reachable object.
    Unmarked { address: usize, name: String },
    /// The collector has kept an unreachable object.
    Count { reached: usize, marked: usize },
    /// Bytes after an object were overwritten.
    Overrun { address: usize, bytes: usize, name: String },
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Broken::NoCell { address, from } => {
                write!(
                    f,
                    "a pointer in the object at {from:#x} (0: a root) leads to {address:#x}, which is not a cell"
                )
            }
            Broken::NoType { address, tag } => {
                write!(f, "the tag {tag:#x} of the object at {address:#x} names no type")
            }
            Broken::Unmarked { address, name } => {
                write!(f, "the `{name}` at {address:#x} is reachable and not marked")
            }
            Broken::Overrun { address, bytes, name } => {
                write!(f, "memory after the {bytes} bytes of the `{name}` at {address:#x} was written")
            }
            Broken::Count { reached, marked } => {
                write!(f, "{reached} objects are reachable and {marked} are marked")
            }
        }
    }
}

/// The naive marking.
#[derive(Default)]
pub(crate) struct Oracle {
    work: Vec<(Object, usize)>,
    seen: FxHashSet<Object>,
}

impl Oracle {
    pub(crate) fn root(&mut self, object: Object) {
        self.work.push((object, 0));
    }

    /// Checks everything reachable, and counts the part in the heap. Must be called with the world stopped,
    /// after marking and before sweeping; `side` has the marks.
    pub(crate) fn check(mut self, side: Side, space: &Space, types: &RuntimeTypes) -> Result<usize, Broken> {
        let mut count = 0;
        let mut known_tags = FxHashSet::default();
        while let Some((object, from)) = self.work.pop() {
            if !self.seen.insert(object) {
                continue;
            }
            let address = object.address();
            let in_heap = space.is_place_of_object(address);
            // An object outside the heap is permanent; only then may its tag be read at all.
            if !in_heap && (!address.is_multiple_of(8) || object.tag() & TAG_PERMANENT == 0) {
                return Err(Broken::NoCell { address, from });
            }
            let tag = object.tag();
            if !known_tags.contains(&(tag >> 4)) {
                if !types.has_tag(tag) {
                    return Err(Broken::NoType { address, tag });
                }
                known_tags.insert(tag >> 4);
            }
            if !in_heap {
                continue;
            }
            count += 1;
            // SAFETY: the object is in a cell of a mapped chunk, and the world is stopped.
            if !unsafe { MarkBit::of(side, object).get() } {
                return Err(Broken::Unmarked { address, name: object.desc().name().into() });
            }
            self.push_fields(object);
        }
        Ok(count)
    }

    fn push_fields(&mut self, object: Object) {
        let mut push = |offset: usize| {
            self.work.extend(object.pointer_at(offset).map(|field| (field, object.address())));
        };
        match object.desc().kind() {
            ObjectKind::Struct(layout) => layout.pointers.iter().for_each(|&at| push(at as usize)),
            ObjectKind::Array { .. } => push(ARRAY_MEMORY),
            ObjectKind::Memory(element) if element.pointers.is_empty() => {}
            ObjectKind::Memory(element) => {
                for index in 0..object.word_at(LENGTH) as usize {
                    let start = MEMORY_ELEMENTS + index * element.stride as usize;
                    element.pointers.iter().for_each(|&at| push(start + at as usize));
                }
            }
            ObjectKind::String
            | ObjectKind::Symbol
            | ObjectKind::Module
            | ObjectKind::Weak
            | ObjectKind::DataType
            | ObjectKind::NoInstances => {}
        }
    }
}
