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

use brolga_ir::scalar::parse_float;
use brolga_ir::types::Type;

use crate::heap::{ARRAY_DIMS, End, LENGTH, ObjectError, ObjectKind, Root, position_of};
use crate::pending::ExceptionKind;

use super::call::{Done, Ops};
use super::place::{Place, Row, STRETCH, clear};
use super::throw::Raised;

impl<'f, 'h> Ops<'_, 'f, 'h> {
    /// Calls a function of this file; returns `None` for others.
    pub(crate) fn copying_call(
        &mut self,
        name: &str,
        args: &[Root<'f, 'h>],
    ) -> Result<Option<Root<'f, 'h>>, Raised> {
        let made = match (name, args) {
            ("jl_string_to_array", &[text]) => {
                let memory = self.bytes_of_string(name, text)?;
                let length = self.object(memory).word_at(LENGTH);
                let types = self.scope.common_types()?;
                let array = self.scope.bare_array(&types.byte_vector);
                let array = self.alright(array)?;
                self.object(array).set_word_at(ARRAY_DIMS, length);
                self.scope.set_memory(self.object(array), self.object(memory), 0);
                array
            }
            ("jl_string_to_genericmemory", &[text]) => self.bytes_of_string(name, text)?,
            ("jl_array_to_string", &[array]) => {
                let (row, dims) = self.array_operand(name, array)?;
                let text = self.scope.string_of_bytes(array, 0, row.length);
                let text = self.alright(text)?;
                if dims.len() == 1 {
                    let emptied = self.scope.delete(array, End::Back, row.length);
                    self.alright(emptied)?;
                } else {
                    let array = self.object(array);
                    (0..dims.len()).for_each(|dim| array.set_word_at(ARRAY_DIMS + 8 * dim, 0));
                }
                text
            }
            ("jl_genericmemory_to_string", &[memory, length]) => {
                let length = self.count_of(name, memory, length)?;
                let text = self.scope.string_of_bytes(memory, 0, length);
                self.alright(text)?
            }
            ("jl_array_copy", &[array]) => {
                let (row, dims) = self.array_operand(name, array)?;
                let memory = self.copy_of(array, 0, row.length)?;
                let desc = self.object(array).desc();
                let desc = self.scope.desc_of(desc.context(), desc.ty().unwrap_or(Type::ANY))?;
                let copy = self.scope.bare_array(&desc);
                let copy = self.alright(copy)?;
                let object = self.object(copy);
                for (dim, extent) in dims.into_iter().enumerate() {
                    object.set_word_at(ARRAY_DIMS + 8 * dim, extent.cast_unsigned());
                }
                self.scope.set_memory(object, self.object(memory), 0);
                copy
            }
            ("jl_genericmemory_copy", &[memory]) => {
                let row = self.memory_row(name, memory)?;
                self.copy_of(memory, 0, row.length)?
            }
            ("jl_genericmemory_copy_slice", &[memory, from, length]) => {
                let length = self.count_of(name, memory, length)?;
                let row = self.memory_row(name, memory)?;
                let start = position_of(row.memory, self.word(name, from)?.cast_unsigned());
                match start.and_then(|start| usize::try_from(start).ok()) {
                    Some(start) => self.copy_of(memory, start, length)?,
                    None => return Err(self.out_of_bounds(memory, start)),
                }
            }
            (
                "jl_array_ptr_copy" | "jl_genericmemory_copyto",
                &[to, to_address, from, from_address, count],
            ) => {
                let to_address = self.word(name, to_address)?.cast_unsigned();
                let from_address = self.word(name, from_address)?.cast_unsigned();
                let count = usize::try_from(self.word(name, count)?).unwrap_or(0);
                self.copy_elements(name, (to, to_address), (from, from_address), count)?;
                self.scope.nothing()?
            }
            ("jl_array_isassigned", &[array, index]) => {
                let (row, _) = self.array_operand(name, array)?;
                let index = usize::try_from(self.word(name, index)?).ok();
                let assigned = index.and_then(|n| row.place(n)).is_some_and(|place| place.is_assigned());
                self.c_int(assigned)?
            }
            ("jl_reshape_array", &[ty, array, dims]) => self.reshaped(name, ty, array, dims)?,
            ("jl_symbol_n", &[start, length]) => {
                // The bytes and the symbol, and a copy of each.
                let most = usize::try_from(self.word(name, length)?).unwrap_or(0).saturating_mul(4);
                self.scope.count_copy(most)?;
                let bytes = self.bytes_of_c(name, start, length)?;
                match std::str::from_utf8(&bytes) {
                    Ok(text) if !text.contains('\0') => self.scope.counted_symbol(text)?,
                    _ => {
                        let text = "the name of a Symbol is UTF-8 without zero bytes";
                        return Err(self.message(ExceptionKind::ArgumentError, text));
                    }
                }
            }
            ("jl_try_substrtod" | "jl_try_substrtof", &[start, offset, length]) => {
                let start = self.word(name, start)?.wrapping_add(self.word(name, offset)?);
                let start = self.scope.box_int(start)?;
                let bytes = self.bytes_of_c(name, start, length)?;
                let base = self.base();
                let (found, ty, bits) = match name {
                    "jl_try_substrtod" => {
                        let number = parse_float::<f64>(&bytes);
                        (number.is_some(), Type::FLOAT64, number.unwrap_or(0.0).to_bits().into())
                    }
                    _ => {
                        let number = parse_float::<f32>(&bytes);
                        (number.is_some(), Type::FLOAT32, number.unwrap_or(0.0).to_bits().into())
                    }
                };
                let found = self.scope.bool(found)?;
                let number = self.scope.box_bits(&base, ty, bits)?;
                self.scope.tuple(&[found, number])?
            }
            _ => return Ok(None),
        };
        Ok(Some(made))
    }

    /// The heap's result, or an exception with the reason.
    pub(crate) fn alright<T>(&mut self, made: Result<T, ObjectError>) -> Result<T, Raised> {
        made.map_err(|error| self.scope.raise(&error))
    }

    /// A C truth value.
    pub(crate) fn c_int(&mut self, value: bool) -> Done<'f, 'h> {
        let base = self.base();
        self.scope.box_bits(&base, Type::INT32, value.into())
    }

    /// `at`: the position from 0, if the address belongs to an element.
    fn out_of_bounds(&mut self, of: Root<'f, 'h>, at: Option<i64>) -> Raised {
        match self.scope.box_int(at.map_or(0, |at| at.saturating_add(1))) {
            Ok(index) => self.scope.raise_bounds(of, index),
            Err(raised) => raised,
        }
    }

    /// A `Memory{UInt8}` with the bytes of a string.
    fn bytes_of_string(&mut self, op: &str, text: Root<'f, 'h>) -> Done<'f, 'h> {
        if !matches!(self.object(text).desc().kind(), ObjectKind::String) {
            return Err(self.bad_operand(op, "a String", text));
        }
        let types = self.scope.common_types()?;
        let memory = self.scope.memory_of_string(&types.bytes, text);
        self.alright(memory)
    }

    fn memory_row(&mut self, op: &str, memory: Root<'f, 'h>) -> Result<Row, Raised> {
        let object = self.object(memory);
        match (object.desc().kind(), Row::of(object)) {
            (ObjectKind::Memory(_), Some(row)) => Ok(row),
            _ => Err(self.bad_operand(op, "a Memory", memory)),
        }
    }

    /// A number of elements, at most the `Memory`'s.
    fn count_of(&mut self, op: &str, memory: Root<'f, 'h>, count: Root<'f, 'h>) -> Result<usize, Raised> {
        let row = self.memory_row(op, memory)?;
        let given = self.word(op, count)?;
        match usize::try_from(given) {
            Ok(given) if given <= row.length => Ok(given),
            _ => {
                let index = self.scope.box_int(given)?;
                Err(self.scope.raise_bounds(memory, index))
            }
        }
    }

    /// A `Memory` with some elements of an array or `Memory`.
    fn copy_of(&mut self, of: Root<'f, 'h>, start: usize, count: usize) -> Done<'f, 'h> {
        let Some(row) = Row::of(self.object(of)) else {
            return Err(self.bad_operand("copy", "an Array", of));
        };
        if start.checked_add(count).is_none_or(|end| end > row.length) {
            return Err(self.out_of_bounds(of, i64::try_from(start).ok()));
        }
        let desc = row.memory.desc();
        let desc = self.scope.desc_of(desc.context(), desc.ty().unwrap_or(Type::ANY))?;
        let memory = self.scope.memory_of_part(&desc, of, start, count);
        self.alright(memory)
    }

    /// Copies elements of arrays or memories, by address; they may overlap.
    fn copy_elements(
        &mut self,
        op: &str,
        (to, to_address): (Root<'f, 'h>, u64),
        (from, from_address): (Root<'f, 'h>, u64),
        count: usize,
    ) -> Result<(), Raised> {
        // Addresses may be anywhere in the `Memory`, even outside an array's part.
        let whole =
            |ops: &Self, of: Root<'f, 'h>| Row::of(ops.object(of)).and_then(|row| Row::of(row.memory));
        let Some(to_row) = whole(self, to) else { return Err(self.bad_operand(op, "an Array", to)) };
        let Some(from_row) = whole(self, from) else { return Err(self.bad_operand(op, "an Array", from)) };
        if count == 0 {
            return Ok(());
        }
        let position = |row: Row, address| position_of(row.memory, address);
        let start = |row: Row, address| usize::try_from(position(row, address)?).ok();
        let fits = |row: Row, at: usize| at.checked_add(count).is_some_and(|end| end <= row.length);
        let (to_start, from_start) = (start(to_row, to_address), start(from_row, from_address));
        let Some(to_start) = to_start.filter(|&at| fits(to_row, at)) else {
            return Err(self.out_of_bounds(to, position(to_row, to_address)));
        };
        let Some(from_start) = from_start.filter(|&at| fits(from_row, at)) else {
            return Err(self.out_of_bounds(from, position(from_row, from_address)));
        };
        let same = to_row.memory.desc().tag() == from_row.memory.desc().tag();
        let (to, from) = (self.scope.add_root(to_row.memory), self.scope.add_root(from_row.memory));
        match same {
            true => self.move_elements((to, to_start), (from, from_start), count),
            false => self.convert_elements(op, (to, to_start), (from, from_start), count),
        }
    }

    /// Stores elements of a `Memory` into one of another type, which is never the same `Memory`.
    fn convert_elements(
        &mut self,
        op: &str,
        (to, to_start): (Root<'f, 'h>, usize),
        (from, from_start): (Root<'f, 'h>, usize),
        count: usize,
    ) -> Result<(), Raised> {
        for start in (0..count).step_by(STRETCH) {
            let (to, from) = (self.object(to), self.object(from));
            // The roots of the boxes are dropped with each stretch.
            self.in_frame(|ops| {
                let (to, from) = (ops.scope.add_root(to), ops.scope.add_root(from));
                (start..count.min(start + STRETCH))
                    .try_for_each(|n| ops.convert_element(op, (to, to_start + n), (from, from_start + n)))
            })?;
            self.poll_within()?;
        }
        Ok(())
    }

    fn convert_element(
        &mut self,
        op: &str,
        (to, to_at): (Root<'f, 'h>, usize),
        (from, from_at): (Root<'f, 'h>, usize),
    ) -> Result<(), Raised> {
        let Some(place) = Place::element(self.object(from), from_at) else { return Ok(()) };
        let value = self.scope.box_held(place.held())?;
        let Some(place) = Place::element(self.object(to), to_at) else { return Ok(()) };
        match value {
            Some(value) => self.write(op, place, value)?,
            // Other element types do not distinguish undefined from zero.
            None => clear(place),
        }
        Ok(())
    }

    /// An array of another shape with the elements of an array.
    fn reshaped(
        &mut self,
        op: &str,
        ty: Root<'f, 'h>,
        array: Root<'f, 'h>,
        dims: Root<'f, 'h>,
    ) -> Done<'f, 'h> {
        let desc = self.type_operand(op, ty)?;
        let (row, _) = self.array_operand(op, array)?;
        let dims = self.dims(dims)?.unwrap_or_default();
        let length = dims.iter().try_fold(1u64, |n, &d| n.checked_mul(u64::try_from(d).ok()?));
        let fits = match desc.kind() {
            ObjectKind::Array { dims: rank, memory } => {
                *rank as usize == dims.len() && memory.tag() == row.memory.desc().tag()
            }
            _ => false,
        };
        if !fits {
            return Err(self.bad_operand(op, "an array type with the elements of an array", array));
        }
        if length != Some(row.length as u64) {
            let text = "new dimensions must have the number of elements of the array";
            return Err(self.message(ExceptionKind::DimensionMismatch, text));
        }
        let desc = self.scope.desc_of(desc.context(), desc.ty().unwrap_or(Type::ANY))?;
        let made = self.scope.bare_array(&desc);
        let made = self.alright(made)?;
        let object = self.object(made);
        for (dim, extent) in dims.into_iter().enumerate() {
            object.set_word_at(ARRAY_DIMS + 8 * dim, extent.cast_unsigned());
        }
        let Some(row) = Row::of(self.object(array)) else { return Ok(made) };
        self.scope.set_memory(object, row.memory, row.start);
        Ok(made)
    }
}
