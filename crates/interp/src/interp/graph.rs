//! Access to the values of an interpreter, for copying them elsewhere and back: taken apart, and made piece
//! by piece, so that cyclic values can be made.

use super::error::Fault;
use super::heap::{Array, Object};
use super::value::Val;
use super::{Interp, Outcome, bytes};
use brolga_ir::show::View;
use brolga_ir::types::Type;

impl<'m> Interp<'m> {
    /// The parts of a value; for elements of size zero the first [`MAX_SHOWN`](brolga_ir::show::MAX_SHOWN).
    pub fn view(&mut self, val: &Val) -> Result<View<'m, Val>, Outcome> {
        self.take_apart(val).map_err(|stop| self.outcome_without_place(stop))
    }

    /// The `Memory` of an `Array`, the number of its elements before the array's first, and the extents.
    pub fn array_parts(&self, val: &Val) -> Option<(Val, i64, Vec<i64>)> {
        let Val::Object { id, .. } = *val else { return None };
        let Array { memory, offset, dims } = self.heap.array(id)?;
        let elem = self.heap.memory(*memory)?.elem;
        let ty = self.types().memory(elem).ok()?;
        Some((Val::Object { ty, id: *memory }, *offset, dims.clone()))
    }

    /// The number of elements of a `Memory`.
    pub fn memory_length(&self, val: &Val) -> Option<u64> {
        let Val::Object { id, .. } = *val else { return None };
        self.heap.memory(id).map(|memory| memory.length)
    }

    /// An object of a mutable struct type with undefined fields.
    pub fn blank_struct(&mut self, ty: Type) -> Result<Val, Outcome> {
        let types = self.types();
        let layout = types.layout(ty).map(|layout| &layout.fields[..]).unwrap_or_default();
        let fields = layout.iter().map(|field| bytes::fresh(types, field.ty, field.repr)).collect();
        let made = match self.reserve(layout.len() as u64) {
            Ok(()) if types.is_mutable(ty) => self.make(ty, Object::Struct(fields)),
            Ok(()) => Err(Fault::Type(format!("`{}` has no objects", self.type_text(ty))).into()),
            Err(stop) => Err(stop),
        };
        made.map_err(|stop| self.outcome_without_place(stop))
    }

    /// A `Memory` with undefined elements.
    pub fn blank_memory(&mut self, elem: Type, length: u64) -> Result<Val, Outcome> {
        let made = self.new_memory(elem, length).and_then(|id| {
            let ty = self.made(self.types().memory(elem))?;
            Ok(Val::Object { ty, id })
        });
        made.map_err(|stop| self.outcome_without_place(stop))
    }

    /// An `Array` over the elements of a `Memory` from `offset` on.
    pub fn array_over(&mut self, memory: &Val, offset: i64, dims: &[i64]) -> Result<Val, Outcome> {
        let made = self.memory_operand(memory).and_then(|(memory, elem)| {
            let ty = self.made(self.types().array(elem, dims.len() as u32))?;
            self.make(ty, Object::Array(Array { memory, offset, dims: dims.to_vec() }))
        });
        made.map_err(|stop| self.outcome_without_place(stop))
    }

    /// A `MemoryRef` to the element at `offset`.
    pub fn memory_ref_to(&mut self, memory: &Val, offset: i64) -> Result<Val, Outcome> {
        let made = self.memory_operand(memory).and_then(|(memory, _)| self.memory_ref(memory, offset));
        made.map_err(|stop| self.outcome_without_place(stop))
    }

    /// Sets a field of a mutable struct or an element of a `Memory`, by its number from 0.
    pub fn set_part(&mut self, of: &Val, index: usize, part: Val) -> Result<(), Outcome> {
        let done = match *of {
            Val::Object { ty, id } if matches!(self.heap.get(id), Some(Object::Struct(_))) => {
                let place = self.field_of(ty, id, index);
                self.write_place("setfield!", &place, part)
            }
            Val::Object { id, .. } => self.set_element(id, index as i64, part),
            _ => Err(Fault::Type("a part of something that has none".to_owned()).into()),
        };
        done.map_err(|stop| self.outcome_without_place(stop))
    }

    fn memory_operand(&self, memory: &Val) -> super::error::Eval<(super::ObjId, Type)> {
        if let Val::Object { id, .. } = *memory
            && let Some(memory) = self.heap.memory(id)
        {
            return Ok((id, memory.elem));
        }
        Err(self.bad_operand("an array", "a Memory", memory))
    }
}
