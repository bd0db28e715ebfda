//! Elements of arrays and memories: the builtins of Julia 1.11 and later (`memoryrefnew` …) and of Julia before
//! (`arrayref` …), and the entry points of Julia's run time that make arrays and change their length.
//!
//! Both families work on the same objects. Positions count from 1 in the program and from 0 here. An access out of bounds is
//! refused even where the program asks for no check.

use brolga_ir::builtin::Builtin;
use brolga_ir::types::Type;

use crate::heap::{ARRAY_DIMS, End, LENGTH, Object, ObjectKind, Root};
use crate::pending::ExceptionKind;

use super::call::{Done, Ops};
use super::fields::memory_of_ref;
use super::place::{Place, Row, address, clear, copy_element, position};
use super::show::INVALID_LENGTH;
use super::throw::Raised;

impl<'f, 'h> Ops<'_, 'f, 'h> {
    pub(crate) fn element_builtin(&mut self, builtin: Builtin, args: &[Root<'f, 'h>]) -> Done<'f, 'h> {
        let op = builtin.name();
        match (builtin, args) {
            (Builtin::Memorynew, &[ty, length]) => self.new_memory(op, ty, length),
            (Builtin::Memoryrefnew, &[of]) => {
                let object = self.object(of);
                match object.desc().kind() {
                    // Not the address of the elements: without bytes they are counted.
                    ObjectKind::Memory(_) => self.memory_ref(of, address(object, 0)),
                    _ if memory_of_ref(object).is_some() => Ok(of),
                    _ => Err(self.bad_operand(op, "a Memory", of)),
                }
            }
            (Builtin::Memoryrefnew, &[of, index, ref rest @ ..]) => {
                let checked = match rest.first() {
                    Some(&flag) => self.flag_operand(op, flag)?,
                    None => true,
                };
                let (memory, offset) = self.base_of_reference(op, of)?;
                let Some(index_value) = self.int64(index) else {
                    return Err(self.fixed_type_error(op, Type::INT64, index));
                };
                let at = offset.wrapping_add(index_value.wrapping_sub(1));
                if checked && !is_inside(memory, at) {
                    return Err(self.scope.raise_bounds(of, index));
                }
                let memory_root = self.scope.add_root(memory);
                self.memory_ref(memory_root, address(memory, at))
            }
            (Builtin::Memoryrefget, &[reference, _, checked]) => {
                let place = self.element_place(op, reference, checked)?;
                self.read(place)
            }
            (Builtin::Memoryrefset, &[reference, value, _, checked]) => {
                let place = self.element_place(op, reference, checked)?;
                self.write(op, place, value)?;
                Ok(value)
            }
            (Builtin::Memoryrefswap, &[reference, value, _, checked]) => {
                let place = self.element_place(op, reference, checked)?;
                self.swap(op, place, value)
            }
            (Builtin::Memoryrefmodify, &[reference, f, x, _, checked]) => {
                let place = self.element_place(op, reference, checked)?;
                self.modify(op, place, f, x)
            }
            (Builtin::Memoryrefreplace, &[reference, expected, value, _, _, checked]) => {
                let place = self.element_place(op, reference, checked)?;
                self.replace(op, place, expected, value)
            }
            (Builtin::Memoryrefsetonce, &[reference, value, _, _, checked]) => {
                let place = self.element_place(op, reference, checked)?;
                self.set_once(op, place, value)
            }
            (Builtin::MemoryrefIsassigned, &[reference, _, checked]) => {
                // Outside nothing is assigned, whether that is checked or not.
                self.flag_operand(op, checked)?;
                let (memory, offset) = self.reference(op, reference)?;
                let place = usize::try_from(offset).ok().and_then(|at| Place::element(memory, at));
                let assigned = place.is_some_and(|place| place.is_assigned());
                self.scope.bool(assigned)
            }
            (Builtin::Memoryrefoffset, &[reference]) => {
                let (_, offset) = self.reference(op, reference)?;
                self.scope.box_int(offset.wrapping_add(1))
            }
            (Builtin::Arrayref, &[checked, array, ref indices @ ..]) => {
                let place = self.array_place(op, checked, array, indices)?;
                self.read(place)
            }
            (Builtin::Arrayset, &[checked, array, value, ref indices @ ..]) => {
                let place = self.array_place(op, checked, array, indices)?;
                self.write(op, place, value)?;
                Ok(array)
            }
            (Builtin::Arraylen, &[array]) => {
                let (_, dims) = self.array_operand(op, array)?;
                let length = dims.iter().fold(1u64, |n, &d| n.saturating_mul(d.max(0).cast_unsigned()));
                self.scope.box_int(length.cast_signed())
            }
            (Builtin::Arraysize, &[array, dim]) => {
                let (_, dims) = self.array_operand(op, array)?;
                match self.int64(dim) {
                    Some(n @ 1..) => {
                        let extent = usize::try_from(n - 1).ok().and_then(|n| dims.get(n).copied());
                        self.scope.box_int(extent.unwrap_or(1))
                    }
                    Some(_) => {
                        let text = "arraysize: dimension out of range";
                        Err(self.message(ExceptionKind::ErrorException, text))
                    }
                    None => Err(self.fixed_type_error(op, Type::INT64, dim)),
                }
            }
            _ => Err(self.bad_count(op, args.len())),
        }
    }

    /// A fresh `Memory` whose type and length are given as objects.
    pub(crate) fn new_memory(&mut self, op: &str, ty: Root<'f, 'h>, length: Root<'f, 'h>) -> Done<'f, 'h> {
        let desc = self.type_operand(op, ty)?;
        if !matches!(desc.kind(), ObjectKind::Memory(_)) {
            return Err(self.unsupported(&format!("{op} takes a Memory type here, not `{}`", desc.name())));
        }
        let Some(length) = self.int64(length) else {
            return Err(self.fixed_type_error(op, Type::INT64, length));
        };
        let Ok(length) = usize::try_from(length) else {
            return Err(self.message(ExceptionKind::ArgumentError, INVALID_LENGTH));
        };
        let desc = self.scope.desc_of(desc.context(), desc.ty().unwrap_or(Type::ANY))?;
        self.scope.memory(&desc, length).map_err(|error| self.scope.raise(&error))
    }

    /// The `Memory` of a `Memory` or of a reference into one, and the number of elements before it.
    fn base_of_reference(&mut self, op: &str, of: Root<'f, 'h>) -> Result<(Object, i64), Raised> {
        let object = self.object(of);
        match object.desc().kind() {
            ObjectKind::Memory(_) => Ok((object, 0)),
            _ => self.reference(op, of),
        }
    }

    /// The `Memory` that a reference is into, and the number of elements before it.
    fn reference(&mut self, op: &str, of: Root<'f, 'h>) -> Result<(Object, i64), Raised> {
        let object = self.object(of);
        match memory_of_ref(object) {
            Some(memory) => Ok((memory, position(memory, object.word_at(0)))),
            None => Err(self.bad_operand(op, "a MemoryRef", of)),
        }
    }

    /// The place that a `MemoryRef` refers to.
    fn element_place(
        &mut self,
        op: &str,
        reference: Root<'f, 'h>,
        checked: Root<'f, 'h>,
    ) -> Result<Place<'h>, Raised> {
        let checked = self.flag_operand(op, checked)?;
        let (memory, offset) = self.reference(op, reference)?;
        match usize::try_from(offset).ok().and_then(|at| Place::element(memory, at)) {
            Some(place) => Ok(place),
            None if checked => {
                let one = self.scope.box_int(1)?;
                Err(self.scope.raise_bounds(reference, one))
            }
            None => Err(self.unchecked(offset, memory.word_at(LENGTH))),
        }
    }

    fn unchecked(&mut self, index: i64, length: u64) -> Raised {
        self.unsupported(&format!("unchecked access to element {index} (from 0) of {length}"))
    }

    /// The elements of an array, and its extents.
    pub(crate) fn array_operand(&mut self, op: &str, array: Root<'f, 'h>) -> Result<(Row, Vec<i64>), Raised> {
        let object = self.object(array);
        match (object.desc().kind(), Row::of(object)) {
            (ObjectKind::Array { dims, .. }, Some(row)) => {
                let dims = (0..*dims as usize).map(|d| object.word_at(ARRAY_DIMS + 8 * d).cast_signed());
                Ok((row, dims.collect()))
            }
            _ => Err(self.bad_operand(op, "an Array", array)),
        }
    }

    /// The place of an element of an array by one index for each dimension, or fewer: the last one then counts
    /// through all remaining dimensions.
    fn array_place(
        &mut self,
        op: &str,
        checked: Root<'f, 'h>,
        array: Root<'f, 'h>,
        indices: &[Root<'f, 'h>],
    ) -> Result<Place<'h>, Raised> {
        let checked = self.flag_operand(op, checked)?;
        let (row, dims) = self.array_operand(op, array)?;
        let mut numbers = Vec::with_capacity(indices.len());
        for &index in indices {
            match self.int64(index) {
                Some(n) => numbers.push(n),
                None => return Err(self.fixed_type_error(op, Type::INT64, index)),
            }
        }
        let mut inside = !numbers.is_empty() || row.length == 1;
        let (mut at, mut stride) = (0i64, 1i64);
        for (n, &index) in numbers.iter().enumerate() {
            let is_last = n + 1 == numbers.len();
            let extent: i64 = match dims.get(n..) {
                Some(rest) if is_last => rest.iter().fold(1, |n: i64, &d| n.saturating_mul(d)),
                Some(rest) => rest.first().copied().unwrap_or(1),
                None => 1,
            };
            let zero_based = index.wrapping_sub(1);
            inside &= (0..extent).contains(&zero_based);
            at = at.wrapping_add(zero_based.wrapping_mul(stride));
            stride = stride.wrapping_mul(extent);
        }
        let place = usize::try_from(at).ok().filter(|_| inside).and_then(|at| row.place(at));
        match place {
            Some(place) => Ok(place),
            None if checked => {
                let index = match numbers[..] {
                    [only] => self.scope.box_int(only)?,
                    _ => self.scope.tuple(indices)?,
                };
                Err(self.scope.raise_bounds(array, index))
            }
            None => Err(self.unchecked(at, row.length as u64)),
        }
    }

    /// A fresh array of a type given as an object.
    pub(crate) fn new_array(&mut self, op: &str, ty: Root<'f, 'h>, dims: Option<Vec<i64>>) -> Done<'f, 'h> {
        let desc = self.type_operand(op, ty)?;
        let dims = match (desc.kind(), dims) {
            (ObjectKind::Array { dims: rank, .. }, Some(dims)) if dims.len() == *rank as usize => dims,
            _ => return Err(self.unsupported(&format!("{op} takes an array type and its dimensions"))),
        };
        // Each product on the way has to fit, too, as in compiled code.
        let length = dims.iter().try_fold(1i64, |n, &d| n.checked_mul(d).filter(|_| d >= 0));
        if length.is_none() {
            // A vector is its `Memory`, whose length is at fault.
            let text = if dims.len() == 1 { INVALID_LENGTH } else { "invalid Array dimensions" };
            return Err(self.message(ExceptionKind::ArgumentError, text));
        }
        let dims: Vec<usize> = dims.into_iter().map(|d| d as usize).collect();
        let desc = self.scope.desc_of(desc.context(), desc.ty().unwrap_or(Type::ANY))?;
        self.scope.array(&desc, &dims).map_err(|error| self.scope.raise(&error))
    }

    /// Inserts (fresh) or removes `by` elements at a position from 0; positions beyond the end mean the end.
    pub(crate) fn resize(
        &mut self,
        op: &str,
        array: Root<'f, 'h>,
        at: i64,
        by: i64,
        grow: bool,
    ) -> Done<'f, 'h> {
        let (_, dims) = self.array_operand(op, array)?;
        let (&[old], Ok(count)) = (&dims[..], usize::try_from(by)) else {
            return Err(self.bad_operand(op, "a Vector and a count", array));
        };
        let at = if grow { at.min(old) } else { at.min(old.saturating_sub(by)) };
        if at < 0 || (!grow && by > old) {
            let index = self.scope.box_int(at.saturating_add(1))?;
            return Err(self.scope.raise_bounds(array, index));
        }
        let end = if at == 0 && old > 0 { End::Front } else { End::Back };
        if grow {
            self.scope.grow(array, end, count).map_err(|error| self.scope.raise(&error))?;
        }
        if end == End::Back {
            self.shift(array, at as usize, old as usize, count, grow);
        }
        if !grow {
            self.scope.delete(array, end, count).map_err(|error| self.scope.raise(&error))?;
        }
        self.scope.nothing()
    }

    /// Moves the elements behind a position of a vector up or down, when there were `old`.
    fn shift(&self, vector: Root<'f, 'h>, at: usize, old: usize, count: usize, up: bool) {
        let Some(row) = Row::of(self.object(vector)) else { return };
        let move_one = |from: usize, to: usize| {
            if let (Some(from), Some(to)) = (row.place(from), row.place(to)) {
                copy_element(self.scope, from, to);
            }
        };
        if up {
            (at..old).rev().for_each(|n| move_one(n, n + count));
            (at..old.min(at + count)).filter_map(|n| row.place(n)).for_each(clear);
        } else {
            (at..old - count).for_each(|n| move_one(n + count, n));
        }
    }
}

fn is_inside(memory: Object, offset: i64) -> bool {
    u64::try_from(offset).is_ok_and(|n| n < memory.word_at(LENGTH))
}
