//! Fields: `getfield`, `setfield!`, their atomic relatives, `isdefined`.
//!
//! A field is named by a symbol or a number from 1. Fields of arrays, memories and memory references are
//! computed; among them only `:ref` and `:size` of an array can be set. The memory order must match the
//! field: `@atomic` fields require an atomic order, others none (`ConcurrencyViolationError`).

use super::Interp;
use super::error::{Eval, Fault, Stop};
use super::heap::Object;
use super::places::Place;
use super::value::{ObjId, Val};
use brolga_ir::builtin::{Builtin, PARTS_DO_NOT_FIT};
use brolga_ir::op::Ordering;
use brolga_ir::types::{MAX_WIDTH, Type, TypeField};

impl Interp<'_> {
    pub(super) fn field_builtin(&mut self, builtin: Builtin, args: &[Val]) -> Eval<Val> {
        let op = builtin.name();
        let [object, field, rest @ ..] = args else {
            return match (builtin, args) {
                (Builtin::Isdefined, _) => {
                    Err(Fault::Unsupported("isdefined of a variable".to_owned()).into())
                }
                _ => Err(Fault::OperandCount { op: op.to_owned(), given: args.len() }.into()),
            };
        };
        match (builtin, rest) {
            (Builtin::Getfield, _) => self.get_field(object, field, rest),
            (Builtin::Isdefined, _) => {
                if let Val::Module(_) = object {
                    let place = self.global_place(object, field)?;
                    return Ok(Val::bool(self.peek(&place)?.is_some()));
                }
                Ok(Val::bool(self.field_is_defined(object, field)?))
            }
            (Builtin::Setfield, [val, order @ ..]) => {
                if let &Val::Object { ty, id } = object
                    && self.heap.array(id).is_some()
                {
                    self.set_array_field(ty, id, field, val)?;
                    return Ok(val.clone());
                }
                let place = self.field_place(op, object, field, order.first())?;
                self.write_place(op, &place, val.clone())?;
                Ok(val.clone())
            }
            (Builtin::Swapfield, [val, order @ ..]) => {
                let place = self.field_place(op, object, field, order.first())?;
                self.swap(op, &place, val.clone())
            }
            (Builtin::Replacefield, [expected, val, order @ ..]) => {
                let place = self.field_place(op, object, field, order.first())?;
                self.replace(op, &place, expected, val.clone())
            }
            (Builtin::Setfieldonce, [val, order @ ..]) => {
                let place = self.field_place(op, object, field, order.first())?;
                self.set_once(op, &place, val.clone())
            }
            _ => Err(Fault::OperandCount { op: op.to_owned(), given: args.len() }.into()),
        }
    }

    fn get_field(&mut self, object: &Val, field: &Val, rest: &[Val]) -> Eval<Val> {
        let (mut order, mut checked) = (None, true);
        for arg in rest {
            match arg {
                Val::Symbol(_) => order = Some(arg),
                other => checked &= self.bounds_operand("getfield", other)?,
            }
        }
        match object {
            Val::Struct(data) => {
                let index = self.field_index(object, field, data.fields().len(), checked)?;
                match data.fields().get(index) {
                    Some(Some(val)) => Ok(val.clone()),
                    _ => Err(self.exception("UndefRefError", Vec::new())),
                }
            }
            Val::Singleton(_) => {
                self.field_index(object, field, 0, checked)?;
                Err(self.bounds_error(object.clone(), field.clone()))
            }
            Val::MemoryRef { memory, offset, .. } => {
                match self.field_index_of(field, &["ptr_or_offset", "mem"]) {
                    Some(0) => self.untyped_pointer(*memory, *offset),
                    Some(1) => self.memory_object(*memory),
                    _ => Err(self.no_field(object, field)),
                }
            }
            Val::Module(_) => {
                let place = self.global_place(object, field)?;
                self.read_place(&place)
            }
            &Val::Object { ty, id } => match self.heap.get(id) {
                Some(Object::Struct(fields)) => {
                    let count = fields.len();
                    let index = self.field_index(object, field, count, checked)?;
                    self.check_order("getfield", ty, index, order)?;
                    self.read_place(&self.field_of(ty, id, index))
                }
                Some(Object::Array(array)) => {
                    let array = array.clone();
                    match self.field_index_of(field, &["ref", "size"]) {
                        Some(0) => self.memory_ref(array.memory, array.offset),
                        Some(1) => self.new_tuple(array.dims.iter().map(|&d| Val::int64(d)).collect()),
                        _ => Err(self.no_field(object, field)),
                    }
                }
                Some(Object::Memory(memory)) => {
                    let length = memory.length as i64;
                    match self.field_index_of(field, &["length", "ptr"]) {
                        Some(0) => Ok(Val::int64(length)),
                        Some(1) => self.untyped_pointer(id, 0),
                        _ => Err(self.no_field(object, field)),
                    }
                }
                _ => Err(self.no_field(object, field)),
            },
            Val::Type(of) => {
                let name = match field {
                    Val::Symbol(name) => self.module.cx.names.text(*name),
                    _ => "",
                };
                match self.types().type_field(*of, name) {
                    Some(TypeField::Number(ty, bits)) => Ok(Val::Bits { ty, bits: bits.into() }),
                    Some(TypeField::Type(ty)) => Ok(Val::Type(ty)),
                    Some(TypeField::Names) => {
                        let names = self.types().field_names(*of).unwrap_or_default();
                        self.new_tuple(names.into_iter().map(Val::Symbol).collect())
                    }
                    None => Err(self.no_field(object, field)),
                }
            }
            Val::Bits { .. } | Val::Symbol(_) | Val::Token(_) => Err(self.no_field(object, field)),
        }
    }

    fn field_is_defined(&mut self, object: &Val, field: &Val) -> Eval<bool> {
        let index = |interp: &Self, ty: Type, count: usize| match field {
            Val::Symbol(name) => interp.types().field_index(ty, *name),
            other => {
                let n = other.as_int64().and_then(|n| usize::try_from(n.checked_sub(1)?).ok());
                n.filter(|&n| n < count)
            }
        };
        Ok(match object {
            Val::Struct(data) => {
                let found = index(self, data.ty(), data.fields().len());
                found.is_some_and(|n| data.fields().get(n).is_some_and(Option::is_some))
            }
            &Val::Object { ty, id } => match self.heap.get(id) {
                Some(Object::Struct(fields)) => match index(self, ty, fields.len()) {
                    Some(index) => self.peek(&self.field_of(ty, id, index))?.is_some(),
                    None => false,
                },
                Some(Object::Array(_)) => self.field_index_of(field, &["ref", "size"]).is_some(),
                Some(Object::Memory(_)) => self.field_index_of(field, &["length", "ptr"]).is_some(),
                _ => false,
            },
            Val::MemoryRef { .. } => self.field_index_of(field, &["ptr_or_offset", "mem"]).is_some(),
            _ => false,
        })
    }

    /// The place of a field to be changed.
    pub(super) fn field_place(
        &mut self,
        op: &str,
        object: &Val,
        field: &Val,
        order: Option<&Val>,
    ) -> Eval<Place> {
        let &Val::Object { ty, id } = object else {
            let text = format!(
                "{op}: immutable struct of type {} cannot be changed",
                self.type_text(object.type_of(self.types()))
            );
            return Err(self.message("ErrorException", &text));
        };
        let Some(Object::Struct(fields)) = self.heap.get(id) else {
            let text = format!("{op} on a `{}`", self.type_text(ty));
            return Err(self.message("ErrorException", &text));
        };
        let index = self.field_index(object, field, fields.len(), true)?;
        self.check_order(op, ty, index, order)?;
        if let Some(decl) = self.types().fields(ty).and_then(|f| f.get(index))
            && decl.is_const
        {
            let name = self.module.cx.names.text(decl.name);
            let text = format!("{op}: const field .{name} of type {} cannot be changed", self.type_text(ty));
            return Err(self.message("ErrorException", &text));
        }
        Ok(self.field_of(ty, id, index))
    }

    /// The position, from 0, of a field among `count`.
    fn field_index(&mut self, object: &Val, field: &Val, count: usize, checked: bool) -> Eval<usize> {
        if let Val::Symbol(name) = field {
            let found = self.types().field_index(object.ty(self.types()), *name);
            return found.filter(|&n| n < count).ok_or_else(|| self.no_field(object, field));
        }
        let Some(n) = field.as_int64() else { return Err(self.no_field(object, field)) };
        match usize::try_from(n.wrapping_sub(1)).ok().filter(|&n| n < count) {
            Some(index) => Ok(index),
            None if checked => Err(self.bounds_error(object.clone(), field.clone())),
            None => Err(Fault::UncheckedBounds { index: n.wrapping_sub(1), length: count as u64 }.into()),
        }
    }

    /// The position of a field of a type laid out by the run time.
    fn field_index_of(&self, field: &Val, names: &[&str]) -> Option<usize> {
        match field {
            Val::Symbol(name) => {
                let text = self.module.cx.names.text(*name);
                names.iter().position(|&n| n == text)
            }
            other => {
                let n = usize::try_from(other.as_int64()?.checked_sub(1)?).ok()?;
                (n < names.len()).then_some(n)
            }
        }
    }

    fn no_field(&mut self, object: &Val, field: &Val) -> Stop {
        match field {
            Val::Symbol(_) => {
                let ty = Val::Type(object.type_of(self.types()));
                self.exception("FieldError", vec![ty, field.clone()])
            }
            _ if field.as_int64().is_none() => self.type_error("getfield", Type::SYMBOL, field.clone()),
            _ => self.bounds_error(object.clone(), field.clone()),
        }
    }

    /// Checks that a memory order fits a field.
    fn check_order(&mut self, op: &str, ty: Type, index: usize, order: Option<&Val>) -> Eval<()> {
        let order = match order {
            None => Ordering::NotAtomic,
            Some(order) => self.ordering(op, order)?,
        };
        let is_atomic = self.types().fields(ty).and_then(|f| f.get(index)).is_some_and(|f| f.is_atomic);
        let text = match (is_atomic, order) {
            (true, Ordering::NotAtomic) => "atomic field cannot be accessed non-atomically",
            (false, order) if order != Ordering::NotAtomic => {
                "non-atomic field cannot be accessed atomically"
            }
            _ => return Ok(()),
        };
        Err(self.message("ConcurrencyViolationError", &format!("{op}: {text}")))
    }

    /// A memory order given as a symbol.
    pub(super) fn ordering(&mut self, op: &str, val: &Val) -> Eval<Ordering> {
        let Val::Symbol(name) = val else {
            return Err(self.type_error(op, Type::SYMBOL, val.clone()));
        };
        match Ordering::from_name(self.module.cx.names.text(*name)) {
            Some(order) => Ok(order),
            None => Err(self.message("ConcurrencyViolationError", "invalid atomic ordering")),
        }
    }

    // ----- fields that the run time lays out -----

    pub(super) fn memory_ref(&mut self, memory: ObjId, offset: i64) -> Eval<Val> {
        let elem = self.heap.memory(memory).map_or(Type::ANY, |m| m.elem);
        let ty = self.made(self.types().memory_ref(elem))?;
        Ok(Val::MemoryRef { ty, memory, offset })
    }

    fn memory_object(&mut self, id: ObjId) -> Eval<Val> {
        let elem = self.heap.memory(id).map_or(Type::ANY, |m| m.elem);
        let ty = self.made(self.types().memory(elem))?;
        Ok(Val::Object { ty, id })
    }

    fn untyped_pointer(&mut self, memory: ObjId, index: i64) -> Eval<Val> {
        let address = self.element_address(memory, index)?;
        let ty = self.made(self.types().ptr(Type::NOTHING))?;
        Ok(Val::Bits { ty, bits: u128::from(address) })
    }

    /// The number of elements from `offset` to the end of the memory; `None` if `offset` is out of range.
    fn elements_from(&self, memory: ObjId, offset: i64) -> Option<i64> {
        let length = self.heap.memory(memory).map_or(0, |memory| memory.length);
        i64::try_from(length).ok()?.checked_sub(offset).filter(|&rest| offset >= 0 && rest >= 0)
    }

    /// Checks that an array with these parts does not exceed its memory. A program with open doors is
    /// responsible for that itself where the type of the array is known.
    pub(super) fn check_parts(
        &mut self,
        memory: ObjId,
        offset: i64,
        dims: &[i64],
        text: &'static str,
    ) -> Eval<()> {
        let count = dims.iter().try_fold(1i64, |all, &dim| all.checked_mul(dim).filter(|_| dim >= 0));
        match count.zip(self.elements_from(memory, offset)).is_some_and(|(count, behind)| count <= behind) {
            false if self.options.checked => Err(self.message("ErrorException", text)),
            _ => Ok(()),
        }
    }

    fn set_array_field(&mut self, ty: Type, id: ObjId, field: &Val, val: &Val) -> Eval<()> {
        let Some((elem, rank)) = self.types().array_parts(ty) else { return Ok(()) };
        match (self.field_index_of(field, &["ref", "size"]), val) {
            (Some(0), &Val::MemoryRef { memory, offset, .. }) => {
                let wanted = self.made(self.types().memory_ref(elem))?;
                if !self.is_a(val, wanted) {
                    return Err(self.type_error("setfield!", wanted, val.clone()));
                }
                let Some(array) = self.heap.array(id) else { return Ok(()) };
                let (mut dims, is_same) = (array.dims.clone(), array.memory == memory);
                let there = self.elements_from(memory, offset);
                // Julia 1.11 removes elements at the front by advancing `ref` and then reducing the size. In
                // between, a checked vector has the elements that remain.
                if let ([size], Some(there)) = (&mut dims[..], there)
                    && is_same
                    && self.options.checked
                {
                    *size = (*size).min(there);
                }
                self.check_parts(memory, offset, &dims, PARTS_DO_NOT_FIT)?;
                if let Some(Object::Array(array)) = self.heap.get_mut(id) {
                    (array.memory, array.offset, array.dims) = (memory, offset, dims);
                }
                Ok(())
            }
            (Some(1), _) => match self.dims(val) {
                Some(dims) if dims.len() == rank as usize => {
                    if let Some(array) = self.heap.array(id).cloned() {
                        self.check_parts(array.memory, array.offset, &dims, PARTS_DO_NOT_FIT)?;
                    }
                    if let Some(Object::Array(array)) = self.heap.get_mut(id) {
                        array.dims = dims;
                    }
                    Ok(())
                }
                _ => {
                    let rank = (rank as usize).min(MAX_WIDTH);
                    let wanted = self.made(self.types().tuple(&vec![Type::INT64; rank]))?;
                    Err(self.type_error("setfield!", wanted, val.clone()))
                }
            },
            (Some(_), _) => {
                let wanted = self.made(self.types().memory_ref(elem))?;
                Err(self.type_error("setfield!", wanted, val.clone()))
            }
            (None, _) => Err(self.no_field(&Val::Object { ty, id }, field)),
        }
    }

    /// The numbers of a tuple of `Int64`.
    pub(super) fn dims(&self, val: &Val) -> Option<Vec<i64>> {
        self.tuple_elements(val)?.iter().map(Val::as_int64).collect()
    }
}
