//! Fields by name or number, and the operations on any place: read, write, swap, modify, replace, set once.
//!
//! A field is named by a symbol or a number from 1. Fields of arrays, memories and memory references are
//! computed; among them only `:ref` and `:size` of an array can be set. The memory order must match the
//! field: `@atomic` fields require an atomic order, others none (`ConcurrencyViolationError`).
//!
//! `change.rs` reads and changes places, atomically where other threads may change them.

use std::sync::Arc;

use brolga_ir::Context;
use brolga_ir::builtin::{Builtin, PARTS_DO_NOT_FIT};
use brolga_ir::op::Ordering;
use brolga_ir::types::{MAX_WIDTH, Type, TypeField};

use crate::heap::{
    ARRAY_DATA, ARRAY_DIMS, ARRAY_MEMORY, FieldRow, LENGTH, MEMORY_DATA, Object, ObjectKind, Root,
    elements_from,
};
use crate::pending::ExceptionKind;

use super::call::{Done, Ops};
use super::place::{At, Held, Place};
use super::relations::{as_type, egal};
use super::throw::Raised;

/// The offset of the `Memory` in a memory reference.
const MEMORY_OF_REF: usize = 8;

/// Whether an array with these extents has no more elements than its `Memory` has from its data on.
fn lies_behind(memory: Option<Object>, data: u64, extents: &[i64]) -> bool {
    let count = extents.iter().try_fold(1u64, |all, &extent| all.checked_mul(u64::try_from(extent).ok()?));
    let there = memory.and_then(|memory| elements_from(memory, data)).unwrap_or(0);
    count.is_some_and(|count| count <= there as u64)
}

impl<'f, 'h> Ops<'_, 'f, 'h> {
    pub(crate) fn field_builtin(&mut self, builtin: Builtin, args: &[Root<'f, 'h>]) -> Done<'f, 'h> {
        let op = builtin.name();
        let &[object, field, ref rest @ ..] = args else { return Err(self.bad_count(op, args.len())) };
        if matches!(self.object(object).desc().kind(), ObjectKind::Module) {
            return Err(
                self.unsupported(&format!("`{op}` of a module by a name that is known at run time only"))
            );
        }
        match (builtin, rest) {
            (Builtin::Getfield, _) => self.get_field(object, field, rest),
            (Builtin::Isdefined, _) => {
                let defined = self.field_is_defined(object, field);
                self.scope.bool(defined)
            }
            (Builtin::Setfield, &[value, ref order @ ..]) => {
                if matches!(self.object(object).desc().kind(), ObjectKind::Array { .. }) {
                    self.set_array_field(object, field, value)?;
                    return Ok(value);
                }
                let place = self.field_place(op, object, field, order.first().copied())?;
                self.write(op, place, value)?;
                Ok(value)
            }
            (Builtin::Swapfield, &[value, ref order @ ..]) => {
                let place = self.field_place(op, object, field, order.first().copied())?;
                self.swap(op, place, value)
            }
            (Builtin::Modifyfield, &[f, x, ref order @ ..]) => {
                let place = self.field_place(op, object, field, order.first().copied())?;
                self.modify(op, place, f, x)
            }
            (Builtin::Replacefield, &[expected, value, ref order @ ..]) => {
                let place = self.field_place(op, object, field, order.first().copied())?;
                self.replace(op, place, expected, value)
            }
            (Builtin::Setfieldonce, &[value, ref order @ ..]) => {
                let place = self.field_place(op, object, field, order.first().copied())?;
                self.set_once(op, place, value)
            }
            _ => Err(self.bad_count(op, args.len())),
        }
    }

    fn get_field(&mut self, of: Root<'f, 'h>, field: Root<'f, 'h>, rest: &[Root<'f, 'h>]) -> Done<'f, 'h> {
        let mut order = None;
        for &arg in rest {
            match self.symbol_bytes(arg) {
                Some(_) => order = Some(arg),
                // Bounds are checked regardless of its value (`elements.rs`).
                None => drop(self.flag_operand("getfield", arg)?),
            }
        }
        let object = self.object(of);
        let computed = self.computed_field(object, field);
        match (object.desc().kind(), computed) {
            (ObjectKind::Array { .. }, Some(0)) => self.array_ref(of),
            (ObjectKind::Array { dims, .. }, Some(1)) => {
                let dims: Vec<i64> =
                    (0..*dims as usize).map(|d| object.word_at(ARRAY_DIMS + 8 * d).cast_signed()).collect();
                self.int_tuple(&dims)
            }
            (ObjectKind::Memory(_), Some(0)) => {
                let length = object.word_at(LENGTH).cast_signed();
                self.scope.box_int(length)
            }
            (ObjectKind::Memory(_), Some(1)) => self.address(object.word_at(MEMORY_DATA)),
            (ObjectKind::Struct(_), Some(0)) if is_memory_ref(object) => self.address(object.word_at(0)),
            (ObjectKind::Struct(_), Some(1)) if is_memory_ref(object) => {
                match object.pointer_at(MEMORY_OF_REF) {
                    Some(memory) => Ok(self.scope.add_root(memory)),
                    None => Err(self.scope.raise_kind(ExceptionKind::UndefRefError)),
                }
            }
            (ObjectKind::DataType, _) => self.field_of_type(of, field),
            (ObjectKind::Struct(_), _) if !is_memory_ref(object) => {
                let place = self.find_field(of, field)?;
                if object.desc().is_mutable() {
                    self.check_order("getfield", of, place.0, order)?;
                }
                self.read(place.1)
            }
            _ => Err(self.no_field(of, field)),
        }
    }

    fn field_of_type(&mut self, of: Root<'f, 'h>, field: Root<'f, 'h>) -> Done<'f, 'h> {
        let name = self.symbol_text(field).unwrap_or_default();
        let found = as_type(self.object(of)).and_then(|desc| {
            let found = desc.context().types.type_field(desc.ty()?, &name)?;
            Some((desc.context().clone(), found))
        });
        match found {
            Some((cx, TypeField::Number(ty, bits))) => self.scope.box_bits(&cx, ty, bits.into()),
            Some((cx, TypeField::Type(ty))) => self.scope.type_value(&cx, ty),
            Some((cx, TypeField::Names)) => {
                let ty = as_type(self.object(of)).and_then(|desc| desc.ty());
                let names = ty.and_then(|ty| cx.types.field_names(ty)).unwrap_or_default();
                let names: Vec<Root<'f, 'h>> =
                    names.into_iter().map(|name| self.scope.symbol(cx.names.text(name))).collect();
                self.scope.tuple(&names)
            }
            None => Err(self.no_field(of, field)),
        }
    }

    fn field_is_defined(&self, of: Root<'f, 'h>, field: Root<'f, 'h>) -> bool {
        let object = self.object(of);
        match object.desc().kind() {
            ObjectKind::Struct(_) if !is_memory_ref(object) => {
                let index = self.field_position(object, field);
                let place = index.and_then(|n| At::field_of(object, n));
                place.is_some_and(|place| !matches!(place.held(), Held::Undefined))
            }
            _ => self.computed_field(object, field).is_some(),
        }
    }

    /// The position of a field of an object laid out by the run time.
    fn computed_field(&self, object: Object, field: Root<'f, 'h>) -> Option<usize> {
        let names = match object.desc().kind() {
            ObjectKind::Array { .. } => ["ref", "size"],
            ObjectKind::Memory(_) => ["length", "ptr"],
            ObjectKind::Struct(_) if is_memory_ref(object) => ["ptr_or_offset", "mem"],
            _ => return None,
        };
        match self.symbol_bytes(field) {
            Some(name) => names.iter().position(|&known| known.as_bytes() == name),
            None => {
                let n = usize::try_from(self.int64(field)?.checked_sub(1)?).ok()?;
                (n < names.len()).then_some(n)
            }
        }
    }

    /// The position, from 0, of the struct field that a symbol or number names.
    fn field_position(&self, object: Object, field: Root<'f, 'h>) -> Option<usize> {
        match self.symbol_bytes(field) {
            Some(name) => object.desc().field_table().find(name),
            None => usize::try_from(self.int64(field)?.checked_sub(1)?).ok(),
        }
    }

    /// The position, from 0, of a field of a struct, and its place.
    fn find_field(&mut self, of: Root<'f, 'h>, field: Root<'f, 'h>) -> Result<(usize, Place<'h>), Raised> {
        let object = self.object(of);
        let index = self.field_position(object, field);
        match index.and_then(|n| Some((n, At::field_of(object, n)?))) {
            Some(found) => Ok(found),
            None => Err(self.no_field(of, field)),
        }
    }

    /// The place of a field to be changed.
    fn field_place(
        &mut self,
        op: &str,
        of: Root<'f, 'h>,
        field: Root<'f, 'h>,
        order: Option<Root<'f, 'h>>,
    ) -> Result<Place<'h>, Raised> {
        let desc = self.object(of).desc();
        if !desc.is_mutable() {
            let text = format!("{op}: immutable struct of type {} cannot be changed", desc.name());
            return Err(self.message(ExceptionKind::ErrorException, &text));
        }
        if !matches!(desc.kind(), ObjectKind::Struct(_)) {
            return Err(self.unsupported(&format!("{op} on a `{}`", desc.name())));
        }
        let (index, place) = self.find_field(of, field)?;
        self.check_order(op, of, index, order)?;
        let row = desc.field_table().rows().get(index).filter(|row| row.is_const);
        if let Some(name) = row.and_then(FieldRow::name) {
            let text = format!("{op}: const field .{name} of type {} cannot be changed", desc.name());
            return Err(self.message(ExceptionKind::ErrorException, &text));
        }
        Ok(place)
    }

    fn no_field(&mut self, of: Root<'f, 'h>, field: Root<'f, 'h>) -> Raised {
        match self.symbol_bytes(field) {
            Some(_) => {
                let ty = self.object(of).desc().object();
                let ty = self.scope.add_root(ty);
                self.scope.raise_fields(ExceptionKind::FieldError, &[Some(ty), Some(field)])
            }
            None if self.int64(field).is_none() => self.fixed_type_error("getfield", Type::SYMBOL, field),
            None => self.scope.raise_bounds(of, field),
        }
    }

    /// Checks that a memory order fits a field.
    fn check_order(
        &mut self,
        op: &str,
        of: Root<'f, 'h>,
        index: usize,
        order: Option<Root<'f, 'h>>,
    ) -> Result<(), Raised> {
        let order = match order {
            None => Ordering::NotAtomic,
            Some(order) => self.ordering(op, order)?,
        };
        let desc = self.object(of).desc();
        let row = desc.field_table().rows().get(index);
        let text = match (row.is_some_and(|row| row.is_atomic), order) {
            (true, Ordering::NotAtomic) => "atomic field cannot be accessed non-atomically",
            (false, order) if order != Ordering::NotAtomic => {
                "non-atomic field cannot be accessed atomically"
            }
            _ => return Ok(()),
        };
        Err(self.message(ExceptionKind::ConcurrencyViolationError, &format!("{op}: {text}")))
    }

    /// A memory order given as a symbol.
    fn ordering(&mut self, op: &str, order: Root<'f, 'h>) -> Result<Ordering, Raised> {
        let Some(name) = self.symbol_text(order) else {
            return Err(self.fixed_type_error(op, Type::SYMBOL, order));
        };
        match Ordering::from_name(&name) {
            Some(order) => Ok(order),
            None => Err(self.message(ExceptionKind::ConcurrencyViolationError, "invalid atomic ordering")),
        }
    }

    // ----- any place -----

    /// Checks that a value has the type of a place.
    pub(crate) fn check(&mut self, op: &str, place: Place<'_>, value: Root<'f, 'h>) -> Result<(), Raised> {
        // Most values have exactly the type of their place.
        let given = self.object(value).desc();
        if place.ty == Type::ANY || (given.ty() == Some(place.ty) && given.context().is_same(place.cx)) {
            return Ok(());
        }
        let ty = self.scope.desc_of(place.cx, place.ty)?;
        match self.is_a(self.object(value), &ty) {
            true => Ok(()),
            false => Err(self.scope.raise_type_error(op, &ty, value)),
        }
    }

    pub(crate) fn swap(&mut self, op: &str, place: Place<'_>, value: Root<'f, 'h>) -> Done<'f, 'h> {
        self.check(op, place, value)?;
        self.update(op, place, |_, _| Ok(Some(value))).map(|(old, _)| old)
    }

    /// Replaces the content of a place by the result of a function of it, if there is one, and retries while
    /// others interfere: returns the last value before, and its successor.
    fn update(
        &mut self,
        op: &str,
        place: Place<'_>,
        mut next: impl FnMut(&mut Self, Root<'f, 'h>) -> Result<Option<Root<'f, 'h>>, Raised>,
    ) -> Result<(Root<'f, 'h>, Option<Root<'f, 'h>>), Raised> {
        loop {
            let old = self.read(place)?;
            let new = next(self, old)?;
            let is_over = match new {
                Some(new) => self.exchange(op, place, Some(old), new)?,
                None => true,
            };
            if is_over {
                return Ok((old, new));
            }
            // The function that computes the next value may itself change the place each time.
            self.poll()?;
        }
    }

    pub(crate) fn modify(
        &mut self,
        op: &str,
        place: Place<'_>,
        f: Root<'f, 'h>,
        x: Root<'f, 'h>,
    ) -> Done<'f, 'h> {
        let (old, new) = self.update(op, place, |here, old| here.apply(f, &[old, x]).map(Some))?;
        let cx = place.cx.clone();
        let pair = cx.types.find_builtin(cx.names.intern("Pair"));
        let Some(pair) = pair else { return Err(self.unsupported("`Pair` does not exist")) };
        let ty = self.made(&cx, cx.types.nominal(pair, &[place.ty, place.ty]))?;
        self.scope.new_struct(&cx, ty, &[Some(old), new])
    }

    pub(crate) fn replace(
        &mut self,
        op: &str,
        place: Place<'_>,
        expected: Root<'f, 'h>,
        value: Root<'f, 'h>,
    ) -> Done<'f, 'h> {
        self.scope.add_root(place.object);
        self.check(op, place, value)?;
        let (old, new) = self.update(op, place, |here, old| {
            Ok(egal(here.object(old), here.object(expected)).then_some(value))
        })?;
        let cx = place.cx.clone();
        let tuple = self.made(&cx, cx.types.tuple(&[place.ty, Type::BOOL]))?;
        let names = [cx.names.intern("old"), cx.names.intern("success")];
        let ty = self.made(&cx, cx.types.named_tuple(&names, tuple))?;
        let success = self.scope.bool(new.is_some())?;
        self.scope.new_struct(&cx, ty, &[Some(old), Some(success)])
    }

    pub(crate) fn set_once(&mut self, op: &str, place: Place<'_>, value: Root<'f, 'h>) -> Done<'f, 'h> {
        let wrote = self.exchange(op, place, None, value)?;
        self.scope.bool(wrote)
    }

    // ----- fields that the run time lays out -----

    /// A tuple of `Int64`.
    pub(crate) fn int_tuple(&mut self, numbers: &[i64]) -> Done<'f, 'h> {
        let mut parts = Vec::with_capacity(numbers.len());
        for &number in numbers {
            parts.push(self.scope.box_int(number)?);
        }
        self.scope.tuple(&parts)
    }

    /// The numbers of a tuple of `Int64`.
    pub(crate) fn dims(&mut self, tuple: Root<'f, 'h>) -> Result<Option<Vec<i64>>, Raised> {
        let elements = self.tuple_elements(tuple)?;
        Ok(elements.and_then(|elements| elements.into_iter().map(|n| self.int64(n)).collect()))
    }

    fn array_ref(&mut self, array: Root<'f, 'h>) -> Done<'f, 'h> {
        let object = self.object(array);
        let Some(memory) = object.pointer_at(ARRAY_MEMORY) else {
            return Err(self.scope.raise_kind(ExceptionKind::UndefRefError));
        };
        let memory = self.scope.add_root(memory);
        self.memory_ref(memory, object.word_at(ARRAY_DATA))
    }

    /// A `MemoryRef` with this first word.
    pub(crate) fn memory_ref(&mut self, memory: Root<'f, 'h>, address: u64) -> Done<'f, 'h> {
        let desc = self.object(memory).desc();
        let (cx, elem) = element_type(desc);
        let ty = self.made(&cx, cx.types.memory_ref(elem))?;
        let desc = self.scope.desc_of(&cx, ty)?;
        let made = self.scope.zeroed_object(&desc).map_err(|error| self.scope.raise(&error))?;
        let object = self.object(made);
        object.set_word_at(0, address);
        // The object is new, so no barrier is needed.
        object.set_pointer_at(MEMORY_OF_REF, Some(self.object(memory)));
        Ok(made)
    }

    fn set_array_field(
        &mut self,
        array: Root<'f, 'h>,
        field: Root<'f, 'h>,
        value: Root<'f, 'h>,
    ) -> Result<(), Raised> {
        let object = self.object(array);
        let desc = object.desc();
        let Some((elem, rank)) = desc.ty().and_then(|ty| desc.context().types.array_parts(ty)) else {
            return Err(self.no_field(array, field));
        };
        let cx = desc.context().clone();
        match self.computed_field(object, field) {
            Some(0) => {
                let wanted = self.made(&cx, cx.types.memory_ref(elem))?;
                let wanted = self.scope.desc_of(&cx, wanted)?;
                let reference = self.object(value);
                if !self.is_a(reference, &wanted) {
                    return Err(self.scope.raise_type_error("setfield!", &wanted, value));
                }
                let (memory, data) = (reference.pointer_at(MEMORY_OF_REF), reference.word_at(0));
                let extents: Vec<i64> =
                    (0..rank as usize).map(|dim| object.word_at(ARRAY_DIMS + 8 * dim) as i64).collect();
                if !lies_behind(memory, data, &extents) {
                    // Julia 1.11 removes elements at the front by advancing `ref` and then reducing the size.
                    // In between, a vector has the elements that remain.
                    let is_same = rank == 1 && memory == object.pointer_at(ARRAY_MEMORY);
                    let there = memory.filter(|_| is_same).and_then(|memory| elements_from(memory, data));
                    let Some(there) = there else {
                        return Err(self.message(ExceptionKind::ErrorException, PARTS_DO_NOT_FIT));
                    };
                    object.set_word_at(ARRAY_DIMS, there as u64);
                }
                object.set_pointer_at(ARRAY_MEMORY, memory);
                object.set_word_at(ARRAY_DATA, data);
                self.scope.after_store(object);
                Ok(())
            }
            Some(_) => match self.dims(value)? {
                Some(dims) if dims.len() == rank as usize => {
                    // An array type determined only at run time is not a door: the list of doors could not
                    // show it.
                    if !lies_behind(object.pointer_at(ARRAY_MEMORY), object.word_at(ARRAY_DATA), &dims) {
                        return Err(self.message(ExceptionKind::ErrorException, PARTS_DO_NOT_FIT));
                    }
                    for (dim, extent) in dims.into_iter().enumerate() {
                        object.set_word_at(ARRAY_DIMS + 8 * dim, extent.cast_unsigned());
                    }
                    Ok(())
                }
                _ => {
                    let rank = (rank as usize).min(MAX_WIDTH);
                    let wanted = self.made(&cx, cx.types.tuple(&vec![Type::INT64; rank]))?;
                    let wanted = self.scope.desc_of(&cx, wanted)?;
                    Err(self.scope.raise_type_error("setfield!", &wanted, value))
                }
            },
            None => Err(self.no_field(array, field)),
        }
    }
}

/// Whether an object is a boxed `MemoryRef`.
pub(crate) fn is_memory_ref(object: Object) -> bool {
    At::boxed(object).is_some_and(|at| at.cx.types.memory_ref_element(at.ty).is_some())
}

/// The `Memory` of a boxed `MemoryRef`.
pub(crate) fn memory_of_ref(object: Object) -> Option<Object> {
    if is_memory_ref(object) { object.pointer_at(MEMORY_OF_REF) } else { None }
}

/// The element type of a `Memory`.
pub(crate) fn element_type(memory: &crate::heap::TypeDesc) -> (Arc<Context>, Type) {
    let elem = match memory.kind() {
        ObjectKind::Memory(element) => element.ty,
        _ => Type::ANY,
    };
    (memory.context().clone(), elem)
}
