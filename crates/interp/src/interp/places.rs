//! Places: reading, writing, swapping, modifying, replacing and setting once.
//!
//! Julia has the same changes for fields, globals, elements and memory at a pointer. Each family finds its
//! own places; the changes are implemented once here:
//!
//! | change | result | writes |
//! |---|---|---|
//! | swap | the old value | always |
//! | modify | `Pair(old, f(old, x))` | the result of `f`, which is called again if it changed the place |
//! | replace | `(old = …, success = …)` | if the old value is `===` the expected one |
//! | set once | whether it wrote | if the place was empty |
//!
//! There is only one thread, so every change is atomic; orders only have to be valid.

use super::Interp;
use super::bytes;
use super::error::{Eval, Fault};
use super::heap::{Data, Memory, Object};
use super::value::{ObjId, Val};
use brolga_ir::Name;
use brolga_ir::builtin::Builtin;
use brolga_ir::types::{FieldRepr, Type};

/// The distance between elements stored as values.
pub(super) const REFERENCE_BYTES: u64 = 8;

/// A place that holds a value of type `ty`, or is undefined.
#[derive(Clone, Copy, Debug)]
pub(super) enum Place {
    Field { object: ObjId, index: usize, ty: Type, repr: FieldRepr },
    Global { name: Name, ty: Type },
    Element { memory: ObjId, index: i64, ty: Type },
    Pointer { address: u64, align: u64, ty: Type },
}

/// A `modifyfield!` or similar builtin whose function is running.
#[derive(Clone, Debug)]
pub(super) struct Modify {
    /// The name of the builtin.
    pub(super) op: &'static str,
    /// What it changes.
    pub(super) place: Place,
    /// The function, and its argument besides the old value.
    pub(super) f: Val,
    pub(super) operand: Val,
    /// The old value passed to the function.
    pub(super) old: Val,
}

impl Place {
    pub(super) fn ty(&self) -> Type {
        match *self {
            Place::Field { ty, .. }
            | Place::Global { ty, .. }
            | Place::Element { ty, .. }
            | Place::Pointer { ty, .. } => ty,
        }
    }
}

impl Interp<'_> {
    /// The current value, if any.
    pub(super) fn peek(&mut self, place: &Place) -> Eval<Option<Val>> {
        match *place {
            Place::Field { object, index, ty, repr } => {
                self.read_back(object)?;
                match self.heap.get(object) {
                    Some(Object::Struct(fields)) => Ok(self.if_defined(ty, repr, fields.get(index))),
                    _ => Err(Fault::Type("a field of something that has none".to_owned()).into()),
                }
            }
            Place::Global { name, .. } => self.global_value(name),
            Place::Element { memory, index, .. } => self.element(memory, index),
            Place::Pointer { address, align, ty } => {
                let mut buffer = vec![0; bytes::size_of(self.types(), ty)? as usize];
                self.memory.load(address, align, &mut buffer)?;
                bytes::decode(self.types(), ty, &buffer).map(Some)
            }
        }
    }

    /// The value at a place of an object, if any.
    fn if_defined(&self, ty: Type, repr: FieldRepr, held: Option<&Option<Val>>) -> Option<Val> {
        held.cloned().flatten().filter(|val| !bytes::is_undefined(self.types(), ty, repr, val))
    }

    /// The place of a field of a mutable object of the type `owner`.
    pub(super) fn field_of(&self, owner: Type, object: ObjId, index: usize) -> Place {
        let (ty, repr) = self.field_storage(owner, index);
        Place::Field { object, index, ty, repr }
    }

    fn field_storage(&self, owner: Type, index: usize) -> (Type, FieldRepr) {
        let layout = self.types().layout(owner).ok();
        let field = layout.and_then(|layout| layout.fields.get(index));
        field.map_or((Type::BOTTOM, FieldRepr::Pointer), |field| (field.ty, field.repr))
    }

    /// The fields of a mutable object of this type, with undefined ones as `None`.
    pub(super) fn defined_fields(&self, ty: Type, fields: &[Option<Val>]) -> Vec<Option<Val>> {
        let field = |(n, field)| {
            let (ty, repr) = self.field_storage(ty, n);
            self.if_defined(ty, repr, Some(field))
        };
        fields.iter().enumerate().map(field).collect()
    }

    /// The current value; an exception if there is none.
    pub(super) fn read_place(&mut self, place: &Place) -> Eval<Val> {
        match (self.peek(place)?, place) {
            (Some(val), _) => Ok(val),
            (None, Place::Global { name, .. }) => Err(self.undefined_variable(*name)),
            (None, _) => Err(self.exception("UndefRefError", Vec::new())),
        }
    }

    /// Writes a value, which must have the place's type.
    pub(super) fn write_place(&mut self, op: &str, place: &Place, val: Val) -> Eval<()> {
        if !self.is_a(&val, place.ty()) {
            return Err(self.type_error(op, place.ty(), val));
        }
        match *place {
            Place::Field { object, index, .. } => {
                self.read_back(object)?;
                match self.heap.get_mut(object) {
                    Some(Object::Struct(fields)) if index < fields.len() => fields[index] = Some(val),
                    _ => return Err(Fault::Type("a field of something that has none".to_owned()).into()),
                }
                self.write_through(object)?;
            }
            Place::Global { name, .. } => {
                self.globals.insert(name, val);
            }
            Place::Element { memory, index, .. } => self.set_element(memory, index, val)?,
            Place::Pointer { address, align, ty } => {
                let bytes = bytes::encode(self.types(), ty, &val)?;
                self.memory.store(address, align, &bytes)?;
            }
        }
        Ok(())
    }

    pub(super) fn swap(&mut self, op: &str, place: &Place, val: Val) -> Eval<Val> {
        if !self.is_a(&val, place.ty()) {
            return Err(self.type_error(op, place.ty(), val));
        }
        let old = self.read_place(place)?;
        self.write_place(op, place, val)?;
        Ok(old)
    }

    pub(super) fn replace(&mut self, op: &str, place: &Place, expected: &Val, val: Val) -> Eval<Val> {
        if !self.is_a(&val, place.ty()) {
            return Err(self.type_error(op, place.ty(), val));
        }
        let old = self.read_place(place)?;
        let success = self.egal(&old, expected)?;
        if success {
            self.write_place(op, place, val)?;
        }
        self.replaced(place.ty(), old, success)
    }

    pub(super) fn set_once(&mut self, op: &str, place: &Place, val: Val) -> Eval<Val> {
        if !self.is_a(&val, place.ty()) {
            return Err(self.type_error(op, place.ty(), val));
        }
        let free = self.peek(place)?.is_none();
        if free {
            self.write_place(op, place, val)?;
        }
        Ok(Val::bool(free))
    }

    // ----- globals -----

    /// The value of a global, if it has one. Its initial value is made on first access, so a call does not
    /// pay for other globals.
    pub(super) fn global_value(&mut self, name: Name) -> Eval<Option<Val>> {
        if let Some(val) = self.globals.get(&name) {
            return Ok(Some(val.clone()));
        }
        let Some(global) = self.module.global(name) else { return Ok(None) };
        let val = self.literal(&global.init)?;
        self.globals.insert(name, val.clone());
        Ok(Some(val))
    }

    pub(super) fn read_global(&mut self, name: Name) -> Eval<Val> {
        let ty = self.module.global(name).map_or(Type::ANY, |g| g.ty);
        self.read_place(&Place::Global { name, ty })
    }

    /// The place of `module.name`; the module of a global is irrelevant here.
    pub(super) fn global_place(&mut self, module: &Val, name: &Val) -> Eval<Place> {
        match (module, name) {
            (Val::Module(_), Val::Symbol(name)) => {
                let ty = self.module.global(*name).map_or(Type::ANY, |g| g.ty);
                Ok(Place::Global { name: *name, ty })
            }
            (Val::Module(_), other) => Err(self.type_error("getglobal", Type::SYMBOL, other.clone())),
            (other, _) => Err(self.type_error("getglobal", Type::MODULE, other.clone())),
        }
    }

    pub(super) fn global_builtin(&mut self, builtin: Builtin, args: &[Val]) -> Eval<Val> {
        let [module, name, rest @ ..] = args else {
            return Err(Fault::OperandCount { op: builtin.to_string(), given: args.len() }.into());
        };
        let place = self.global_place(module, name)?;
        let op = builtin.name();
        match (builtin, rest) {
            (Builtin::Getglobal, _) => self.read_place(&place),
            (Builtin::Isdefinedglobal, _) => Ok(Val::bool(self.peek(&place)?.is_some())),
            (Builtin::GetBindingType, _) => Ok(Val::Type(place.ty())),
            (Builtin::Setglobal, [val, ..]) => {
                self.write_place(op, &place, val.clone())?;
                Ok(val.clone())
            }
            (Builtin::Swapglobal, [val, ..]) => self.swap(op, &place, val.clone()),
            (Builtin::Replaceglobal, [expected, val, ..]) => self.replace(op, &place, expected, val.clone()),
            (Builtin::Setglobalonce, [val, ..]) => self.set_once(op, &place, val.clone()),
            _ => Err(Fault::OperandCount { op: builtin.to_string(), given: args.len() }.into()),
        }
    }

    // ----- elements -----

    /// The element of a memory; a position outside it is a fault, because operations that throw have already
    /// checked.
    pub(super) fn element(&mut self, id: ObjId, index: i64) -> Eval<Option<Val>> {
        let Some(memory) = self.heap.memory(id) else {
            return Err(Fault::Type("an element of something that has none".to_owned()).into());
        };
        let length = memory.length;
        let at = usize::try_from(index).ok().filter(|&n| (n as u64) < length);
        let Some(at) = at else { return Err(Fault::UncheckedBounds { index, length }.into()) };
        match memory.data {
            Data::Vals(ref vals) => {
                Ok(self.if_defined(memory.elem, self.types().field_repr(memory.elem), vals.get(at)))
            }
            Data::Raw { address, elem_size } => {
                let elem = memory.elem;
                let mut buffer = vec![0; elem_size as usize];
                self.memory.load(address + elem_size * at as u64, 1, &mut buffer)?;
                bytes::decode(self.types(), elem, &buffer).map(Some)
            }
        }
    }

    /// Stores an element of the right type.
    pub(super) fn set_element(&mut self, id: ObjId, index: i64, val: Val) -> Eval<()> {
        let Some(memory) = self.heap.memory(id) else {
            return Err(Fault::Type("an element of something that has none".to_owned()).into());
        };
        let (length, elem) = (memory.length, memory.elem);
        let at = usize::try_from(index).ok().filter(|&n| (n as u64) < length);
        let Some(at) = at else { return Err(Fault::UncheckedBounds { index, length }.into()) };
        if !self.is_a(&val, elem) {
            return Err(self.type_error("memoryrefset!", elem, val));
        }
        let raw = match self.heap.get_mut(id) {
            Some(Object::Memory(memory)) => match &mut memory.data {
                Data::Vals(vals) => {
                    vals[at] = Some(val);
                    return Ok(());
                }
                Data::Raw { address, elem_size } => *address + *elem_size * at as u64,
            },
            _ => return Ok(()),
        };
        let bytes = bytes::encode(self.types(), elem, &val)?;
        Ok(self.memory.store(raw, 1, &bytes)?)
    }

    /// Whether the elements of a memory take no bytes.
    pub(super) fn has_empty_elements(&self, memory: ObjId) -> bool {
        self.heap.memory(memory).is_some_and(Memory::has_empty_elements)
    }

    /// The element type and number of elements of an array or memory.
    pub(super) fn extent(&self, id: ObjId) -> Option<(Type, u64)> {
        match self.heap.get(id)? {
            Object::Memory(memory) => Some((memory.elem, memory.length)),
            Object::Array(array) => Some((self.heap.memory(array.memory)?.elem, array.length())),
            _ => None,
        }
    }

    /// The address of an element. Elements stored as values have reserved but unused memory there.
    pub(super) fn element_address(&mut self, id: ObjId, index: i64) -> Eval<u64> {
        let (address, size) = match self.heap.memory(id) {
            Some(&Memory { data: Data::Raw { address, elem_size }, .. }) => (address, elem_size),
            Some(&Memory { address: Some(address), .. }) => (address, REFERENCE_BYTES),
            Some(&Memory { length, .. }) => {
                let Some(size) = length.checked_mul(REFERENCE_BYTES) else {
                    return Err(self.out_of_memory());
                };
                let address = self.raw_room(size)?;
                if let Some(Object::Memory(memory)) = self.heap.get_mut(id) {
                    memory.address = Some(address);
                }
                (address, REFERENCE_BYTES)
            }
            None => {
                return Err(Fault::Type("the address of something that has no elements".to_owned()).into());
            }
        };
        Ok(address.wrapping_add(size.wrapping_mul(index as u64)))
    }
}
