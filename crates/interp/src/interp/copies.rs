//! Entry points of Julia's run time that copy: between strings, arrays and memories, and out of raw memory.
//!
//! | function | here |
//! |---|---|
//! | `jl_string_to_array`, `jl_string_to_genericmemory` | the bytes of a string, copied |
//! | `jl_array_to_string` | a string; the array is empty afterwards |
//! | `jl_genericmemory_to_string` | a string of the first bytes |
//! | `jl_array_copy`, `jl_genericmemory_copy`, `jl_genericmemory_copy_slice` | a fresh array or memory |
//! | `jl_array_ptr_copy`, `jl_genericmemory_copyto` | elements of one into another, by address |
//! | `jl_array_isassigned`, `jl_reshape_array` | |
//! | `jl_symbol_n` | the symbol with these bytes as its name |
//! | `jl_try_substrtod`, `jl_try_substrtof` | parses a number from part of a text |
//!
//! In Julia the array of a string shares its bytes. Here it does not, because a string never changes.

use super::error::{Eval, Fault};
use super::heap::{Array, Data, Object};
use super::places::REFERENCE_BYTES;
use super::value::{ObjId, Val};
use super::{Interp, bytes};
use brolga_ir::scalar::parse_float;
use brolga_ir::types::Type;

impl Interp<'_> {
    /// Calls a function of this file; returns `None` for others.
    pub(super) fn copying_call(&mut self, name: &str, args: &[Val]) -> Eval<Option<Val>> {
        let val = match (name, args) {
            ("jl_string_to_array", [text]) => {
                let bytes = self.string_operand(name, text)?;
                let memory = self.memory_of_bytes(&bytes)?;
                let ty = self.made(self.types().array(Type::UINT8, 1))?;
                self.make(ty, Object::Array(Array { memory, offset: 0, dims: vec![bytes.len() as i64] }))?
            }
            ("jl_string_to_genericmemory", [text]) => {
                let bytes = self.string_operand(name, text)?;
                let id = self.memory_of_bytes(&bytes)?;
                Val::Object { ty: self.made(self.types().memory(Type::UINT8))?, id }
            }
            ("jl_array_to_string", [array]) => {
                let (id, data) = self.array_operand(name, array)?;
                let bytes = self.bytes_of(name, array, data.memory, data.offset, data.length())?;
                let text = self.new_string(bytes)?;
                if let Some(Object::Array(array)) = self.heap.get_mut(id) {
                    array.dims.fill(0);
                }
                text
            }
            ("jl_genericmemory_to_string", [memory, length]) => {
                let id = self.memory_object_operand(name, memory)?;
                let length = self.count_of(name, memory, length)?;
                let bytes = self.bytes_of(name, memory, id, 0, length)?;
                self.new_string(bytes)?
            }
            ("jl_array_copy", [array]) => {
                let (_, data) = self.array_operand(name, array)?;
                let elem = self.heap.memory(data.memory).map_or(Type::ANY, |m| m.elem);
                let memory = self.copy_of(data.memory, data.offset, data.length(), elem)?;
                self.make(
                    array.ty(self.types()),
                    Object::Array(Array { memory, offset: 0, dims: data.dims }),
                )?
            }
            ("jl_genericmemory_copy", [memory]) => {
                let id = self.memory_object_operand(name, memory)?;
                let (elem, length) = self.extent(id).unwrap_or((Type::ANY, 0));
                Val::Object { ty: memory.ty(self.types()), id: self.copy_of(id, 0, length, elem)? }
            }
            ("jl_genericmemory_copy_slice", [memory, from, length]) => {
                let id = self.memory_object_operand(name, memory)?;
                let length = self.count_of(name, memory, length)?;
                let start = self.position_of(name, id, from)?;
                self.check_part(memory, id, start, length)?;
                let elem = self.heap.memory(id).map_or(Type::ANY, |m| m.elem);
                Val::Object { ty: memory.ty(self.types()), id: self.copy_of(id, start, length, elem)? }
            }
            (
                "jl_array_ptr_copy" | "jl_genericmemory_copyto",
                [to, to_address, from, from_address, count],
            ) => {
                let (to_memory, from_memory) =
                    (self.elements_operand(name, to)?, self.elements_operand(name, from)?);
                let to_start = self.position_of(name, to_memory, to_address)?;
                let from_start = self.position_of(name, from_memory, from_address)?;
                let count = u64::try_from(self.word(name, count)?).unwrap_or(0);
                if count > 0 {
                    self.check_part(to, to_memory, to_start, count)?;
                    self.check_part(from, from_memory, from_start, count)?;
                }
                self.copy_elements((to_memory, to_start), (from_memory, from_start), count)?;
                Val::NOTHING
            }
            ("jl_array_isassigned", [array, index]) => {
                let (_, data) = self.array_operand(name, array)?;
                let index = self.word(name, index)?;
                let is_inside = u64::try_from(index).is_ok_and(|n| n < data.length());
                let assigned =
                    is_inside && self.element(data.memory, data.offset.wrapping_add(index))?.is_some();
                Val::Bits { ty: Type::INT32, bits: assigned.into() }
            }
            ("jl_reshape_array", [ty, array, dims]) => {
                let ty = self.type_operand(name, ty)?;
                let (_, data) = self.array_operand(name, array)?;
                let elem = self.heap.memory(data.memory).map(|m| m.elem);
                let dims = self.dims(dims).unwrap_or_default();
                let length = dims.iter().try_fold(1u64, |n, &d| n.checked_mul(u64::try_from(d).ok()?));
                let fits = self
                    .types()
                    .array_parts(ty)
                    .is_some_and(|(of, rank)| Some(of) == elem && rank as usize == dims.len());
                if !fits {
                    return Err(self.wrong_operand(
                        name,
                        "an array type with the elements of an array",
                        array,
                    ));
                }
                if length != Some(data.length()) {
                    return Err(self.message("DimensionMismatch", RESHAPE));
                }
                self.make(ty, Object::Array(Array { dims, ..data }))?
            }
            ("jl_symbol_n", [address, length]) => {
                self.count_tables()?;
                let length = u64::try_from(self.word(name, length)?).unwrap_or(u64::MAX);
                let bytes = self.bytes_at(name, address, length)?;
                match std::str::from_utf8(&bytes) {
                    Ok(text) if !text.contains('\0') => Val::Symbol(self.name(text)),
                    _ => return Err(self.message("ArgumentError", SYMBOL)),
                }
            }
            ("jl_try_substrtod" | "jl_try_substrtof", [address, offset, length]) => {
                let start = self.word(name, address)?.wrapping_add(self.word(name, offset)?);
                let start = Val::int64(start);
                let length = u64::try_from(self.word(name, length)?).unwrap_or(u64::MAX);
                let bytes = self.bytes_at(name, &start, length)?;
                let number = match name {
                    "jl_try_substrtod" => {
                        let number = parse_float::<f64>(&bytes);
                        (number.is_some(), Val::float64(number.unwrap_or(0.0)))
                    }
                    _ => {
                        let number = parse_float::<f32>(&bytes);
                        let bits = number.unwrap_or(0.0).to_bits();
                        (number.is_some(), Val::Bits { ty: Type::FLOAT32, bits: bits.into() })
                    }
                };
                self.new_tuple(vec![Val::bool(number.0), number.1])?
            }
            _ => return Ok(None),
        };
        Ok(Some(val))
    }

    fn string_operand(&mut self, op: &str, val: &Val) -> Eval<Vec<u8>> {
        if let &Val::Object { id, .. } = val
            && let Some(bytes) = self.text(id)?
        {
            return Ok(bytes);
        }
        Err(self.wrong_operand(op, "a String", val))
    }

    fn memory_object_operand(&mut self, op: &str, val: &Val) -> Eval<ObjId> {
        match *val {
            Val::Object { id, .. } if self.heap.memory(id).is_some() => Ok(id),
            _ => Err(self.wrong_operand(op, "a Memory", val)),
        }
    }

    /// The memory of an array, or the memory itself.
    pub(super) fn elements_operand(&mut self, op: &str, val: &Val) -> Eval<ObjId> {
        match *val {
            Val::Object { id, .. } if self.heap.memory(id).is_some() => Ok(id),
            _ => Ok(self.array_operand(op, val)?.1.memory),
        }
    }

    /// A number of elements, at most the memory's.
    fn count_of(&mut self, op: &str, memory: &Val, count: &Val) -> Eval<u64> {
        let given = self.word(op, count)?;
        let length = match *memory {
            Val::Object { id, .. } => self.heap.memory(id).map_or(0, |m| m.length),
            _ => 0,
        };
        match u64::try_from(given) {
            Ok(given) if given <= length => Ok(given),
            _ => Err(self.bounds_error(memory.clone(), Val::int64(given))),
        }
    }

    /// Throws `BoundsError` unless a memory has `count` elements from a position on.
    fn check_part(&mut self, of: &Val, memory: ObjId, start: i64, count: u64) -> Eval<()> {
        let length = self.heap.memory(memory).map_or(0, |m| m.length);
        match u64::try_from(start).ok().and_then(|start| start.checked_add(count)) {
            Some(end) if end <= length => Ok(()),
            _ => Err(self.bounds_error(of.clone(), Val::int64(start.saturating_add(1)))),
        }
    }

    /// The position in a memory of the element at an address.
    fn position_of(&mut self, op: &str, memory: ObjId, address: &Val) -> Eval<i64> {
        let address = self.word(op, address)? as u64;
        let first = self.element_address(memory, 0)?;
        let size = match self.heap.memory(memory).map(|m| &m.data) {
            Some(Data::Raw { elem_size, .. }) => (*elem_size).max(1),
            _ => REFERENCE_BYTES,
        };
        Ok(address.wrapping_sub(first).cast_signed().wrapping_div(size as i64))
    }

    fn memory_of_bytes(&mut self, bytes: &[u8]) -> Eval<ObjId> {
        let id = self.new_memory(Type::UINT8, bytes.len() as u64)?;
        let address = self.element_address(id, 0)?;
        self.memory.store(address, 1, bytes)?;
        Ok(id)
    }

    /// Elements of one byte each.
    fn bytes_of(&mut self, op: &str, of: &Val, memory: ObjId, start: i64, length: u64) -> Eval<Vec<u8>> {
        let (address, capacity) = match self.heap.memory(memory) {
            Some(memory) => match memory.data {
                Data::Raw { address, elem_size: 1 } => (address, memory.length),
                _ => return Err(self.wrong_operand(op, "elements of one byte", of)),
            },
            None => return Err(self.wrong_operand(op, "elements of one byte", of)),
        };
        let is_inside = u64::try_from(start).is_ok_and(|start| start.saturating_add(length) <= capacity);
        if !is_inside {
            return Err(Fault::UncheckedBounds { index: start, length: capacity }.into());
        }
        self.reserve(length / 32 + 1)?;
        let mut bytes = vec![0; length as usize];
        self.memory.load(address.wrapping_add_signed(start), 1, &mut bytes)?;
        Ok(bytes)
    }

    /// Bytes at an address given by the program, which must not be null if there are any.
    fn bytes_at(&mut self, op: &str, address: &Val, length: u64) -> Eval<Vec<u8>> {
        self.reserve(length / 32 + 1)?;
        let address = if length == 0 { 0 } else { self.text_address(op, address)? };
        let mut bytes = vec![0; length as usize];
        if length > 0 {
            self.memory.load(address, 1, &mut bytes)?;
        }
        Ok(bytes)
    }

    fn copy_of(&mut self, memory: ObjId, start: i64, length: u64, elem: Type) -> Eval<ObjId> {
        let fresh = self.new_memory(elem, length)?;
        self.copy_elements((fresh, 0), (memory, start), length)?;
        Ok(fresh)
    }

    /// Copies elements, which may overlap; undefined ones stay undefined.
    fn copy_elements(&mut self, to: (ObjId, i64), from: (ObjId, i64), count: u64) -> Eval<()> {
        let elem = |interp: &Self, id| interp.heap.memory(id).map(|memory| memory.elem);
        if self.has_empty_elements(to.0) && elem(self, to.0) == elem(self, from.0) {
            return Ok(());
        }
        self.reserve(count)?;
        let count = count as i64;
        let held =
            (0..count).map(|n| self.element(from.0, from.1.wrapping_add(n))).collect::<Eval<Vec<_>>>()?;
        for (n, val) in (0..count).zip(held) {
            let at = to.1.wrapping_add(n);
            match val {
                Some(val) => self.set_element(to.0, at, val)?,
                None => self.unset_element(to.0, at)?,
            }
        }
        Ok(())
    }

    /// Resets an element to its state in a fresh memory.
    pub(super) fn unset_element(&mut self, memory: ObjId, index: i64) -> Eval<()> {
        let types = self.types();
        let (length, elem) = self.heap.memory(memory).map_or((0, Type::ANY), |m| (m.length, m.elem));
        let fresh = bytes::fresh(types, elem, types.field_repr(elem));
        let place = match self.heap.get_mut(memory) {
            Some(Object::Memory(memory)) => match &mut memory.data {
                Data::Vals(vals) => usize::try_from(index).ok().and_then(|n| vals.get_mut(n)),
                Data::Raw { .. } => None,
            },
            _ => None,
        };
        match place {
            Some(place) => *place = fresh,
            None => return Err(Fault::UncheckedBounds { index, length }.into()),
        }
        Ok(())
    }
}

const RESHAPE: &str = "new dimensions must have the number of elements of the array";
const SYMBOL: &str = "the name of a Symbol is UTF-8 without zero bytes";
