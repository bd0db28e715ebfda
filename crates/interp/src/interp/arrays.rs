//! Arrays and memories: the builtins of Julia 1.11 and later (`memoryrefnew` …) and of earlier versions
//! (`arrayref` …).
//!
//! Both work on the same objects. Positions count from 1 in the program and from 0 here. An unchecked access out of
//! bounds is a fault, not an exception.

use super::Interp;
use super::error::{Eval, Fault};
use super::heap::{Array, Object};
use super::places::Place;
use super::value::Val;
use brolga_ir::builtin::{Builtin, NEW_PARTS_DO_NOT_FIT};
use brolga_ir::types::Type;

/// The message for a `Memory` of a negative length.
pub(super) const INVALID_LENGTH: &str =
    "invalid GenericMemory size: the number of elements is either negative or too large";

impl Interp<'_> {
    pub(super) fn array_builtin(&mut self, builtin: Builtin, args: &[Val]) -> Eval<Val> {
        let op = builtin.name();
        match (builtin, args) {
            (Builtin::Memorynew, [ty, length]) => {
                let ty = self.type_operand(op, ty)?;
                let Some(elem) = self.types().memory_element(ty) else {
                    return Err(self.bad_operand(op, "a Memory type", &Val::Type(ty)));
                };
                self.memory_of_length(ty, elem, length)
            }
            (Builtin::Memoryrefnew, [of]) => match of {
                Val::MemoryRef { .. } => Ok(of.clone()),
                Val::Object { id, .. } if self.heap.memory(*id).is_some() => self.memory_ref(*id, 0),
                other => Err(self.wrong_operand(op, "a Memory", other)),
            },
            (Builtin::Memoryrefnew, [of, index, rest @ ..]) => {
                let checked = match rest.first() {
                    Some(flag) => self.bounds_operand(op, flag)?,
                    None => true,
                };
                let start = self.array_builtin(Builtin::Memoryrefnew, std::slice::from_ref(of))?;
                let Val::MemoryRef { ty, memory, offset } = start else { return Ok(start) };
                let Some(index) = index.as_int64() else {
                    return Err(self.type_error(op, Type::INT64, index.clone()));
                };
                let at = offset.wrapping_add(index.wrapping_sub(1));
                if checked && !self.is_inside(memory, at) {
                    return Err(self.bounds_error(of.clone(), Val::int64(index)));
                }
                Ok(Val::MemoryRef { ty, memory, offset: at })
            }
            (Builtin::Memoryrefget, [reference, _, checked]) => {
                let place = self.checked_place(op, reference, checked)?;
                self.read_place(&place)
            }
            (Builtin::Memoryrefset, [reference, val, _, checked]) => {
                let place = self.checked_place(op, reference, checked)?;
                self.write_place(op, &place, val.clone())?;
                Ok(val.clone())
            }
            (Builtin::Memoryrefswap, [reference, val, _, checked]) => {
                let place = self.checked_place(op, reference, checked)?;
                self.swap(op, &place, val.clone())
            }
            (Builtin::Memoryrefreplace, [reference, expected, val, _, _, checked]) => {
                let place = self.checked_place(op, reference, checked)?;
                self.replace(op, &place, expected, val.clone())
            }
            (Builtin::Memoryrefsetonce, [reference, val, _, _, checked]) => {
                let place = self.checked_place(op, reference, checked)?;
                self.set_once(op, &place, val.clone())
            }
            (Builtin::MemoryrefIsassigned, [reference, _, checked]) => {
                let checked = self.bounds_operand(op, checked)?;
                match *reference {
                    Val::MemoryRef { memory, offset, .. } if checked && !self.is_inside(memory, offset) => {
                        Ok(Val::bool(false))
                    }
                    _ => {
                        let place = self.element_place(reference, checked)?;
                        Ok(Val::bool(self.peek(&place)?.is_some()))
                    }
                }
            }
            (Builtin::Memoryrefoffset, [Val::MemoryRef { offset, .. }]) => {
                Ok(Val::int64(offset.wrapping_add(1)))
            }
            (Builtin::Arrayref, [checked, array, indices @ ..]) => {
                let place = self.array_place(op, checked, array, indices)?;
                self.read_place(&place)
            }
            (Builtin::Arrayset, [checked, array, val, indices @ ..]) => {
                let place = self.array_place(op, checked, array, indices)?;
                self.write_place(op, &place, val.clone())?;
                Ok(array.clone())
            }
            (Builtin::Arraylen, [array]) => {
                let (_, array) = self.array_operand(op, array)?;
                Ok(Val::int64(array.length() as i64))
            }
            (Builtin::Arraysize, [array, dim]) => {
                let (_, array) = self.array_operand(op, array)?;
                match dim.as_int64() {
                    Some(dim @ 1..) => {
                        let size = usize::try_from(dim - 1).ok().and_then(|n| array.dims.get(n).copied());
                        Ok(Val::int64(size.unwrap_or(1)))
                    }
                    Some(_) => Err(self.message("ErrorException", "arraysize: dimension out of range")),
                    None => Err(self.type_error(op, Type::INT64, dim.clone())),
                }
            }
            _ => {
                let given = args.first().cloned().unwrap_or(Val::NOTHING);
                Err(self.wrong_operand(op, "other operands", &given))
            }
        }
    }

    /// A fresh `Memory` whose length is a value of the program.
    pub(super) fn memory_of_length(&mut self, ty: Type, elem: Type, length: &Val) -> Eval<Val> {
        let Some(length) = length.as_int64() else {
            return Err(self.type_error("memorynew", Type::INT64, length.clone()));
        };
        let Ok(length) = u64::try_from(length) else {
            return Err(self.message("ArgumentError", INVALID_LENGTH));
        };
        let id = self.new_memory(elem, length)?;
        Ok(Val::Object { ty, id })
    }

    /// `%new(Array{T, N}, ref, size)`
    pub(super) fn new_array_object(&mut self, ty: Type, rank: u32, args: Vec<Val>) -> Eval<Val> {
        let [Val::MemoryRef { memory, offset, .. }, size] = args.as_slice() else {
            return Err(Fault::OperandCount { op: "%new of an array".to_owned(), given: args.len() }.into());
        };
        let same_elem =
            self.types().array_parts(ty).map(|(e, _)| e) == self.heap.memory(*memory).map(|m| m.elem);
        match self.dims(size) {
            Some(dims) if dims.len() == rank as usize && same_elem => {
                let (memory, offset) = (*memory, *offset);
                self.check_parts(memory, offset, &dims, NEW_PARTS_DO_NOT_FIT)?;
                self.make(ty, Object::Array(Array { memory, offset, dims }))
            }
            _ => Err(self.bad_operand("%new of an array", "a reference and a size of its type", size)),
        }
    }

    fn is_inside(&self, memory: super::ObjId, offset: i64) -> bool {
        let length = self.heap.memory(memory).map_or(0, |m| m.length);
        u64::try_from(offset).is_ok_and(|n| n < length)
    }

    fn checked_place(&mut self, op: &str, reference: &Val, checked: &Val) -> Eval<Place> {
        let checked = self.bounds_operand(op, checked)?;
        self.element_place(reference, checked)
    }

    /// The place referred to by a `MemoryRef`.
    pub(super) fn element_place(&mut self, reference: &Val, checked: bool) -> Eval<Place> {
        let &Val::MemoryRef { memory, offset, .. } = reference else {
            return Err(self.wrong_operand("memoryrefget", "a MemoryRef", reference));
        };
        if checked && !self.is_inside(memory, offset) {
            return Err(self.bounds_error(reference.clone(), Val::int64(1)));
        }
        let ty = self.heap.memory(memory).map_or(Type::ANY, |m| m.elem);
        Ok(Place::Element { memory, index: offset, ty })
    }

    pub(super) fn array_operand(&mut self, op: &str, val: &Val) -> Eval<(super::ObjId, Array)> {
        if let &Val::Object { id, .. } = val
            && let Some(array) = self.heap.array(id)
        {
            return Ok((id, array.clone()));
        }
        Err(self.wrong_operand(op, "an Array", val))
    }

    /// The place of an array element by one index for each dimension, or fewer: the last one then counts
    /// through all remaining dimensions.
    fn array_place(&mut self, op: &str, checked: &Val, array: &Val, indices: &[Val]) -> Eval<Place> {
        let checked = self.bounds_operand(op, checked)?;
        let (_, data) = self.array_operand(op, array)?;
        let mut numbers = Vec::with_capacity(indices.len());
        for index in indices {
            match index.as_int64() {
                Some(n) => numbers.push(n),
                None => return Err(self.type_error(op, Type::INT64, index.clone())),
            }
        }
        let mut inside = !numbers.is_empty() || data.length() == 1;
        let (mut at, mut stride) = (0i64, 1i64);
        for (n, &index) in numbers.iter().enumerate() {
            let is_last = n + 1 == numbers.len();
            let extent: i64 = match data.dims.get(n..) {
                Some(rest) if is_last => rest.iter().fold(1, |n: i64, &d| n.saturating_mul(d)),
                Some(rest) => rest.first().copied().unwrap_or(1),
                None => 1,
            };
            let zero_based = index.wrapping_sub(1);
            inside &= (0..extent).contains(&zero_based);
            at = at.wrapping_add(zero_based.wrapping_mul(stride));
            stride = stride.wrapping_mul(extent);
        }
        if checked && !inside {
            let index = match numbers[..] {
                [only] => Val::int64(only),
                _ => self.new_tuple(indices.to_vec())?,
            };
            return Err(self.bounds_error(array.clone(), index));
        }
        let memory = data.memory;
        let ty = self.heap.memory(memory).map_or(Type::ANY, |m| m.elem);
        if !inside {
            return Err(Fault::UncheckedBounds { index: at, length: data.length() }.into());
        }
        Ok(Place::Element { memory, index: data.offset.wrapping_add(at), ty })
    }
}
