//! Takes values of the interpreter apart for [`brolga_ir::show`], which writes them.

use super::error::{Eval, Stop};
use super::heap::Object;
use super::value::{ObjId, Val};
use super::{Interp, Outcome};
use brolga_ir::show::{Graph, MAX_SHOWN, TypeIn, View, print, show, show_error};
use brolga_ir::types::Type;

impl<'m> Interp<'m> {
    /// The text that Julia's `show` writes for a value.
    pub fn show(&mut self, val: &Val) -> Result<String, Outcome> {
        show(&mut Values(self), val).map_err(|stop| self.outcome_without_place(stop))
    }

    /// The text of an uncaught exception, as Julia's `showerror` writes it.
    pub fn show_error(&mut self, val: &Val) -> Result<String, Outcome> {
        show_error(&mut Values(self), val).map_err(|stop| self.outcome_without_place(stop))
    }

    /// The bytes that Julia's `print` writes: text without quotes, numbers without marks.
    pub(super) fn print_bytes(&mut self, val: &Val) -> Eval<Vec<u8>> {
        print(&mut Values(self), val)
    }

    /// The text that `show` writes.
    pub(super) fn shown_bytes(&mut self, val: &Val) -> Eval<Vec<u8>> {
        Ok(show(&mut Values(self), val)?.into_bytes())
    }

    pub(super) fn take_apart(&mut self, val: &Val) -> Eval<View<'m, Val>> {
        Values(self).view(val, usize::MAX)
    }

    /// The parts of an object; for an array the first `most` elements.
    fn object_view(&mut self, ty: Type, id: ObjId, most: usize) -> Eval<View<'m, Val>> {
        if let Some(bytes) = self.text(id)? {
            return Ok(View::Str(bytes.into()));
        }
        self.read_back(id)?;
        let (memory, offset, dims) = match self.heap.get(id) {
            Some(Object::Struct(fields)) => return Ok(View::Fields(self.defined_fields(ty, fields))),
            Some(Object::Array(array)) => (array.memory, array.offset, array.dims.clone()),
            Some(Object::Memory(memory)) => (id, 0, vec![memory.length as i64]),
            _ => return Ok(View::Singleton),
        };
        let (elem, length) = self.extent(id).unwrap_or((Type::ANY, 0));
        // All are alike, and there may be too many to list.
        let most = if self.has_empty_elements(memory) { most.min(MAX_SHOWN) } else { most };
        let elements =
            (0..length.min(most as u64) as i64).map(|n| self.element(memory, offset.wrapping_add(n)));
        let elements = elements.collect::<Eval<_>>()?;
        Ok(View::Elements { elem: TypeIn { types: self.types(), ty: elem }, dims, elements })
    }
}

/// An interpreter as the owner of its values.
struct Values<'a, 'm>(&'a mut Interp<'m>);

impl<'m> Graph<'m> for Values<'_, 'm> {
    type Node = Val;
    type Error = Stop;

    fn ty(&self, val: &Val) -> TypeIn<'m> {
        TypeIn { types: self.0.types(), ty: val.ty(self.0.types()) }
    }

    fn identity(&self, val: &Val) -> Option<usize> {
        match val {
            Val::Object { id, .. } => Some(id.0 as usize),
            _ => None,
        }
    }

    fn view(&mut self, val: &Val, most: usize) -> Eval<View<'m, Val>> {
        Ok(match val {
            Val::Bits { bits, .. } => View::Bits(*bits),
            Val::Singleton(_) => View::Singleton,
            Val::Symbol(name) => View::Symbol(self.0.module.cx.names.text(*name).to_owned()),
            Val::Type(of) => View::Type(TypeIn { types: self.0.types(), ty: *of }),
            Val::Module(name) => View::Module(self.0.module.cx.names.text(*name).to_owned()),
            Val::Token(_) => View::Token,
            Val::MemoryRef { ty, memory, offset } => {
                let elem = self.0.types().memory_ref_element(*ty).unwrap_or(Type::ANY);
                let ty = self.0.types().memory(elem).ok();
                let memory = ty.map(|ty| Val::Object { ty, id: *memory });
                View::MemoryRef { memory, offset: *offset }
            }
            Val::Struct(data) => View::Fields(data.fields().to_vec()),
            Val::Object { ty, id } => self.0.object_view(*ty, *id, most)?,
        })
    }
}
