//! The objects of one interpreter.
//!
//! An arena: objects are freed only with the interpreter, so no reference can dangle, cycles cost nothing,
//! and dropping a list of a million nodes is dropping a vector. A budget bounds it.
//!
//! ```text
//! Struct   fields                                  mutable structs, Core.Box, RefValue
//! String   bytes, or an address once one was requested
//! Memory   element type, length, data ───┬── Raw   pointer-free inline elements: bytes in raw memory
//! Array    memory, offset, dimensions    └── Vals  everything else: one value for each element
//! ```
//!
//! Old (`arrayref`) and new (`:ref`, `:size`) array operations work on the same `Array`.

use super::value::{ObjId, Val};
use brolga_ir::types::Type;

#[derive(Debug)]
pub(super) enum Object {
    Struct(Vec<Option<Val>>),
    String(Text),
    Memory(Memory),
    Array(Array),
}

/// The contents of a string.
#[derive(Debug)]
pub(super) struct Text {
    pub(super) bytes: Vec<u8>,
    /// The address of the zero-terminated bytes, once they have one; from then on they are read from there.
    pub(super) address: Option<u64>,
}

/// The contents of a `Memory`.
#[derive(Debug)]
pub(super) struct Memory {
    pub(super) elem: Type,
    pub(super) length: u64,
    pub(super) data: Data,
    /// The address for elements stored as values, whose memory is reserved but unused.
    pub(super) address: Option<u64>,
}

impl Memory {
    /// Whether elements take no bytes, so that all are alike, and there may be more of them than any loop
    /// could visit.
    pub(super) fn has_empty_elements(&self) -> bool {
        matches!(self.data, Data::Raw { elem_size: 0, .. })
    }
}

/// The elements of a `Memory`.
#[derive(Debug)]
pub(super) enum Data {
    Raw { address: u64, elem_size: u64 },
    Vals(Vec<Option<Val>>),
}

/// The contents of an `Array`.
#[derive(Clone, Debug)]
pub(super) struct Array {
    pub(super) memory: ObjId,
    pub(super) offset: i64,
    pub(super) dims: Vec<i64>,
}

impl Array {
    /// The number of elements.
    pub(super) fn length(&self) -> u64 {
        self.dims.iter().fold(1, |n: u64, &d| n.saturating_mul(d.max(0) as u64))
    }
}

/// All objects of an interpreter.
#[derive(Debug)]
pub(super) struct Heap {
    objects: Vec<Object>,
    budget: u64,
}

/// The weight of an object and of each of its values.
pub(super) const UNIT: u64 = size_of::<Option<Val>>() as u64;

/// The heap's budget is spent.
pub(super) struct Full;

impl Heap {
    pub(super) fn new(budget: u64) -> Heap {
        Heap { objects: Vec::new(), budget }
    }

    /// Reserves space for `values` values in the budget, before they are made.
    pub(super) fn reserve(&mut self, values: u64) -> Result<(), Full> {
        let cost = values.checked_mul(UNIT).ok_or(Full)?;
        self.budget = self.budget.checked_sub(cost).ok_or(Full)?;
        Ok(())
    }

    /// Makes an object; the space for its contents was reserved before.
    pub(super) fn make(&mut self, object: Object) -> Result<ObjId, Full> {
        self.reserve(2)?;
        let id = ObjId(u32::try_from(self.objects.len()).map_err(|_| Full)?);
        self.objects.push(object);
        Ok(id)
    }

    pub(super) fn get(&self, id: ObjId) -> Option<&Object> {
        self.objects.get(id.0 as usize)
    }

    pub(super) fn get_mut(&mut self, id: ObjId) -> Option<&mut Object> {
        self.objects.get_mut(id.0 as usize)
    }

    pub(super) fn memory(&self, id: ObjId) -> Option<&Memory> {
        match self.get(id)? {
            Object::Memory(memory) => Some(memory),
            _ => None,
        }
    }

    pub(super) fn array(&self, id: ObjId) -> Option<&Array> {
        match self.get(id)? {
            Object::Array(array) => Some(array),
            _ => None,
        }
    }
}
