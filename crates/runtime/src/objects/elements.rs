//! Elements of arrays and memories: the builtins of Julia 1.11 and later (`memoryrefnew` …) and of earlier
//! versions (`arrayref` …), and the entry points of Julia's run time that make arrays and change their
//! length.
//!
//! Both families work on the same objects. Positions count from 1 in the program and from 0 here.
//!
//! **Bounds** are always checked, even if an operand disables the check and the doors are open: such an
//! operand promises that the check cannot fail, and a builtin that is called as a value has no check that
//! could be omitted at compile time. So every reference made by the run time is to an element of its
//! `Memory`, or to its end.

use brolga_ir::builtin::Builtin;
use brolga_ir::types::Type;

use crate::heap::{ARRAY_DIMS, End, LENGTH, Object, ObjectKind, Root, address_of, position_of};
use crate::pending::ExceptionKind;

use super::call::{Done, Ops};
use super::fields::memory_of_ref;
use super::place::{Place, Row};
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
                    // Not the address of the elements: elements without bytes are counted instead.
                    ObjectKind::Memory(_) => self.memory_ref(of, address_of(object, 0).unwrap_or(0)),
                    _ if memory_of_ref(object).is_some() => Ok(of),
                    _ => Err(self.bad_operand(op, "a Memory", of)),
                }
            }
            (Builtin::Memoryrefnew, &[of, index, ref rest @ ..]) => {
                if let Some(&flag) = rest.first() {
                    self.flag_operand(op, flag)?;
                }
                let (memory, offset) = self.base_of_reference(op, of)?;
                let Some(index_value) = self.int64(index) else {
                    return Err(self.fixed_type_error(op, Type::INT64, index));
                };
                let at =
                    offset.zip(index_value.checked_sub(1)).and_then(|(offset, by)| offset.checked_add(by));
                let at = at.and_then(|at| usize::try_from(at).ok()).filter(|&at| at < length_of(memory));
                let Some(address) = at.and_then(|at| address_of(memory, at)) else {
                    return Err(self.scope.raise_bounds(of, index));
                };
                let memory_root = self.scope.add_root(memory);
                self.memory_ref(memory_root, address)
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
            (Builtin::MemoryrefIsassigned, &[reference, _, flag]) => {
                // Elements outside the bounds are unassigned, whether or not they are checked.
                self.flag_operand(op, flag)?;
                let (memory, offset) = self.reference(op, reference)?;
                let assigned = element_at(memory, offset).is_some_and(|place| place.is_assigned());
                self.scope.bool(assigned)
            }
            (Builtin::Memoryrefoffset, &[reference]) => match self.reference(op, reference)? {
                (_, Some(offset)) => self.scope.box_int(offset.wrapping_add(1)),
                (_, None) => Err(self.unsupported("memoryrefoffset: no element begins at the reference")),
            },
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
    fn base_of_reference(&mut self, op: &str, of: Root<'f, 'h>) -> Result<(Object, Option<i64>), Raised> {
        let object = self.object(of);
        match object.desc().kind() {
            ObjectKind::Memory(_) => Ok((object, Some(0))),
            _ => self.reference(op, of),
        }
    }

    /// The `Memory` that a reference points into, and the number of elements before it ([`position_of`]).
    fn reference(&mut self, op: &str, of: Root<'f, 'h>) -> Result<(Object, Option<i64>), Raised> {
        let object = self.object(of);
        match memory_of_ref(object) {
            Some(memory) => Ok((memory, position_of(memory, object.word_at(0)))),
            None => Err(self.bad_operand(op, "a MemoryRef", of)),
        }
    }

    /// The place referred to by a `MemoryRef`. `flag`: the operand that says whether bounds are checked.
    fn element_place(
        &mut self,
        op: &str,
        reference: Root<'f, 'h>,
        flag: Root<'f, 'h>,
    ) -> Result<Place<'h>, Raised> {
        self.flag_operand(op, flag)?;
        let (memory, offset) = self.reference(op, reference)?;
        match element_at(memory, offset) {
            Some(place) => Ok(place),
            None => {
                let one = self.scope.box_int(1)?;
                Err(self.scope.raise_bounds(reference, one))
            }
        }
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

    /// The place of an array element by one index for each dimension, or fewer: the last one then counts
    /// through all remaining dimensions. `flag`: the operand that says whether bounds are checked.
    fn array_place(
        &mut self,
        op: &str,
        flag: Root<'f, 'h>,
        array: Root<'f, 'h>,
        indices: &[Root<'f, 'h>],
    ) -> Result<Place<'h>, Raised> {
        self.flag_operand(op, flag)?;
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
            // A wrapped value is not used: while all indices are within their extents, the sum is less than
            // the product of the extents, and otherwise the row has no element beyond its `Memory`.
            at = at.wrapping_add(zero_based.wrapping_mul(stride));
            stride = stride.wrapping_mul(extent);
        }
        let place = usize::try_from(at).ok().filter(|_| inside).and_then(|at| row.place(at));
        match place {
            Some(place) => Ok(place),
            None => {
                let index = match numbers[..] {
                    [only] => self.scope.box_int(only)?,
                    _ => self.scope.tuple(indices)?,
                };
                Err(self.scope.raise_bounds(array, index))
            }
        }
    }

    /// A fresh array of a type given as an object.
    pub(crate) fn new_array(&mut self, op: &str, ty: Root<'f, 'h>, dims: Option<Vec<i64>>) -> Done<'f, 'h> {
        let desc = self.type_operand(op, ty)?;
        let dims = match (desc.kind(), dims) {
            (ObjectKind::Array { dims: rank, .. }, Some(dims)) if dims.len() == *rank as usize => dims,
            _ => return Err(self.unsupported(&format!("{op} takes an array type and its dimensions"))),
        };
        // Each intermediate product must fit as well, as in compiled code.
        let length = dims.iter().try_fold(1i64, |n, &d| n.checked_mul(d).filter(|_| d >= 0));
        if length.is_none() {
            // A vector reports its `Memory`'s length.
            let text = if dims.len() == 1 { INVALID_LENGTH } else { "invalid Array dimensions" };
            return Err(self.message(ExceptionKind::ArgumentError, text));
        }
        let dims: Vec<usize> = dims.into_iter().map(|d| d as usize).collect();
        let desc = self.scope.desc_of(desc.context(), desc.ty().unwrap_or(Type::ANY))?;
        self.scope.array(&desc, &dims).map_err(|error| self.scope.raise(&error))
    }

    /// As [`Ops::change_length`]; returns `nothing`.
    pub(crate) fn resize(
        &mut self,
        op: &str,
        array: Root<'f, 'h>,
        at: i64,
        by: i64,
        grow: bool,
    ) -> Done<'f, 'h> {
        self.change_length(op, array, at, by, grow)?;
        self.scope.nothing()
    }

    /// Inserts (fresh) or removes `by` elements at a position from 0; positions beyond the end mean the end.
    pub(crate) fn change_length(
        &mut self,
        op: &str,
        array: Root<'f, 'h>,
        at: i64,
        by: i64,
        grow: bool,
    ) -> Result<(), Raised> {
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
            self.shift(array, at as usize, old as usize, count, grow)?;
        }
        if !grow {
            self.scope.delete(array, end, count).map_err(|error| self.scope.raise(&error))?;
        }
        Ok(())
    }

    /// Moves the elements after a position of a vector up or down, given that there were `old`.
    fn shift(
        &mut self,
        vector: Root<'f, 'h>,
        at: usize,
        old: usize,
        count: usize,
        up: bool,
    ) -> Result<(), Raised> {
        let Some(row) = Row::of(self.object(vector)) else { return Ok(()) };
        let memory = self.scope.add_root(row.memory);
        let (from, to, moved) =
            if up { (at, at + count, old - at) } else { (at + count, at, old - count - at) };
        // Another thread may have made the vector shorter.
        let moved = moved.min(row.length.saturating_sub(from.max(to)));
        self.move_elements((memory, row.start + to), (memory, row.start + from), moved)?;
        if up {
            self.clear_elements((memory, row.start + at), count.min(old - at))?;
        }
        Ok(())
    }
}

fn length_of(memory: Object) -> usize {
    memory.word_at(LENGTH) as usize
}

/// The element of a `Memory` after this many others, if there is one.
fn element_at<'h>(memory: Object, position: Option<i64>) -> Option<Place<'h>> {
    Place::element(memory, usize::try_from(position?).ok()?)
}
