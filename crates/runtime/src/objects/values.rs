//! Values of `ir`'s interpreter as objects, and back: whole graphs, with sharing and cycles.
//!
//! ```text
//!   Val::Object ── a blank object, once for each ──► filled later ┐
//!   Val::Struct ── its fields first, then itself ─────────────────┴──► Root
//! ```
//!
//! On both sides every cycle contains an object with an identity. So objects with an identity are made blank
//! at the first reference and filled later; immutable values are made bottom-up. Work lists replace
//! recursion.
//!
//! Cost: linear in everything reachable, and a root for each value in the caller's frame, until that ends.
//!
//! Not done: modules and tokens, which have no object; weak references, which have no value.

use std::sync::Arc;

use brolga_interp::{Interp, ObjId, Outcome, Struct, Val};
use brolga_ir::Context;
use brolga_ir::show::View;
use brolga_ir::types::Type;
use rustc_hash::FxHashMap;

use crate::heap::{
    ARRAY_DIMS, LENGTH, Object, ObjectError, ObjectKind, Root, Scope, TypeRef, address_of, position_of,
};

use super::fields::element_type;
use super::place::{At, Held, Place, Row, store};
use super::relations::as_type;

/// Why a value or object cannot be copied.
#[derive(thiserror::Error, Debug)]
pub enum CopyError {
    /// The heap has no room, or the type has no instances.
    #[error(transparent)]
    Object(#[from] ObjectError),
    /// The interpreter cannot make or read the value.
    #[error("the interpreter cannot copy the value: {0:?}")]
    Interpreter(Box<Outcome>),
    /// It has no counterpart.
    #[error("{0} has no counterpart")]
    NoCounterpart(String),
}

impl From<Outcome> for CopyError {
    fn from(outcome: Outcome) -> CopyError {
        CopyError::Interpreter(Box::new(outcome))
    }
}

// ----- values to objects -----

enum Task {
    Make(Option<Val>),
    /// After the fields are made.
    Assemble(Struct),
    /// After the `Memory` is made.
    Reference(Type, i64),
}

struct ToObjects<'a, 'm, 'f, 'h> {
    scope: &'a mut Scope<'f, 'h>,
    interp: &'a mut Interp<'m>,
    cx: Arc<Context>,
    known: FxHashMap<ObjId, Root<'f, 'h>>,
    /// By the address of the fields, which the values in `values` keep alive.
    structs: FxHashMap<usize, Root<'f, 'h>>,
    values: Vec<Struct>,
    blank: Vec<(Val, Root<'f, 'h>)>,
}

impl<'f, 'h> Scope<'f, 'h> {
    /// An object equal to an interpreter's value, with everything that it refers to.
    pub fn copy_in(&mut self, interp: &mut Interp<'_>, val: &Val) -> Result<Root<'f, 'h>, CopyError> {
        let cx = interp.module().cx.clone();
        let mut copy = ToObjects {
            scope: self,
            interp,
            cx,
            known: FxHashMap::default(),
            structs: FxHashMap::default(),
            values: Vec::new(),
            blank: Vec::new(),
        };
        let root = copy.make(val.clone())?;
        while let Some((val, object)) = copy.blank.pop() {
            copy.fill(&val, object)?;
        }
        Ok(root)
    }

    /// An interpreter's value equal to an object, with everything that it refers to.
    pub fn copy_out(
        &self,
        interp: &mut Interp<'_>,
        object: crate::heap::Obj<'_, 'h>,
    ) -> Result<Val, CopyError> {
        let cx = interp.module().cx.clone();
        let known = FxHashMap::default();
        let mut copy = ToValues { scope: self, interp, cx, known, blank: Vec::new() };
        let val = copy.make(Held::Object(object.object))?;
        while let Some((object, val)) = copy.blank.pop() {
            copy.fill(object, &val)?;
        }
        val.ok_or_else(|| CopyError::NoCounterpart("an undefined reference".into()))
    }
}

impl<'m, 'f, 'h> ToObjects<'_, 'm, 'f, 'h> {
    fn desc(&self, ty: Type) -> Result<TypeRef, CopyError> {
        let found = self.scope.heap().type_object(&self.cx, ty);
        found.map_err(|error| CopyError::NoCounterpart(error.display(&self.cx.types).to_string()))
    }

    /// An object for a value; objects with an identity are filled later.
    fn make(&mut self, val: Val) -> Result<Root<'f, 'h>, CopyError> {
        let mut work = vec![Task::Make(Some(val))];
        let mut done: Vec<Option<Root<'f, 'h>>> = Vec::new();
        while let Some(task) = work.pop() {
            match task {
                Task::Make(None) => done.push(None),
                Task::Make(Some(Val::Struct(data))) => {
                    match self.structs.get(&data.fields().as_ptr().addr()) {
                        Some(&root) => done.push(Some(root)),
                        None => {
                            work.push(Task::Assemble(data.clone()));
                            work.extend(data.fields().iter().rev().cloned().map(Task::Make));
                        }
                    }
                }
                Task::Make(Some(val @ Val::MemoryRef { ty, offset, .. })) => {
                    let View::MemoryRef { memory, .. } = self.interp.view(&val)? else {
                        return Err(CopyError::NoCounterpart("a broken reference".into()));
                    };
                    work.push(Task::Reference(ty, offset));
                    work.push(Task::Make(memory));
                }
                Task::Make(Some(val)) => {
                    let root = self.simple(&val)?;
                    done.push(Some(root));
                }
                Task::Assemble(data) => {
                    let fields = done.split_off(done.len().saturating_sub(data.fields().len()));
                    let root = self.assemble(data.ty(), &fields)?;
                    self.structs.insert(data.fields().as_ptr().addr(), root);
                    self.values.push(data);
                    done.push(Some(root));
                }
                Task::Reference(ty, offset) => {
                    let memory = done.pop().flatten();
                    let root = self.scope.zeroed_object(&self.desc(ty)?)?;
                    if let Some(memory) = memory {
                        let (object, memory) = (root.get(self.scope).object, memory.get(self.scope).object);
                        let position = usize::try_from(offset).ok();
                        let Some(address) = position.and_then(|at| address_of(memory, at)) else {
                            return Err(CopyError::NoCounterpart("a reference to no element".into()));
                        };
                        object.set_word_at(0, address);
                        object.set_pointer_at(8, Some(memory));
                    }
                    done.push(Some(root));
                }
            }
        }
        let root = done.pop().flatten();
        root.ok_or_else(|| CopyError::NoCounterpart("an undefined value".into()))
    }

    fn assemble(&mut self, ty: Type, fields: &[Option<Root<'f, 'h>>]) -> Result<Root<'f, 'h>, CopyError> {
        let desc = self.desc(ty)?;
        if let Some(instance) = self.scope.heap().types().instance(&desc) {
            return Ok(self.scope.add_root(instance));
        }
        let root = self.scope.zeroed_object(&desc)?;
        let object = root.get(self.scope).object;
        for (place, field) in At::boxed(object).into_iter().flat_map(At::fields).zip(fields) {
            if let Some(field) = field {
                self.store(place, *field)?;
            }
        }
        Ok(root)
    }

    fn store(&self, place: Place<'_>, value: Root<'f, 'h>) -> Result<(), CopyError> {
        match store(self.scope, place, value.get(self.scope).object) {
            true => Ok(()),
            false => Err(CopyError::NoCounterpart("a value of another type than its place".into())),
        }
    }

    /// A value that is not an immutable struct.
    fn simple(&mut self, val: &Val) -> Result<Root<'f, 'h>, CopyError> {
        let none = |what: &str| Err(CopyError::NoCounterpart(what.into()));
        match *val {
            Val::Bits { ty, .. } if ty.as_low().is_some() => none("a value of a low type"),
            Val::Bits { ty, bits } => {
                let desc = self.desc(ty)?;
                let root = self.scope.zeroed_object(&desc)?;
                root.get(self.scope).object.write_bits(0, &bits.to_le_bytes()[..desc.size().min(16)]);
                Ok(root)
            }
            Val::Singleton(ty) => self.assemble(ty, &[]),
            Val::Type(ty) => {
                let desc = self.desc(ty)?;
                Ok(self.scope.add_root(desc.object()))
            }
            Val::Symbol(name) => Ok(self.scope.symbol(self.cx.names.text(name))),
            Val::Object { ty, id } => match self.known.get(&id) {
                Some(&root) => Ok(root),
                None => {
                    let root = self.blank(ty, val)?;
                    self.known.insert(id, root);
                    Ok(root)
                }
            },
            Val::Module(name) => {
                let module = self.scope.heap().modules().symbol(self.cx.names.text(name));
                Ok(self.scope.add_root(module.object()))
            }
            Val::Token(_) => none("a token"),
            Val::Struct(_) | Val::MemoryRef { .. } => none("a part of a value"),
        }
    }

    fn blank(&mut self, ty: Type, val: &Val) -> Result<Root<'f, 'h>, CopyError> {
        if let Some(bytes) = self.interp.string_bytes(val)? {
            return Ok(self.scope.string(&bytes)?);
        }
        let desc = self.desc(ty)?;
        let root = match desc.kind() {
            ObjectKind::Memory(_) => {
                let Some(length) = self.interp.memory_length(val) else {
                    return Err(CopyError::NoCounterpart("a broken array".into()));
                };
                self.scope.memory(&desc, length as usize)?
            }
            // Its `Memory` is set when it is filled.
            ObjectKind::Array { .. } => self.scope.bare_array(&desc)?,
            _ => self.scope.zeroed_object(&desc)?,
        };
        self.blank.push((val.clone(), root));
        Ok(root)
    }

    fn fill(&mut self, val: &Val, root: Root<'f, 'h>) -> Result<(), CopyError> {
        if let Some((memory, offset, dims)) = self.interp.array_parts(val) {
            let memory = self.simple(&memory)?;
            let (array, memory) = (root.get(self.scope).object, memory.get(self.scope).object);
            for (dim, extent) in dims.into_iter().enumerate() {
                array.set_word_at(ARRAY_DIMS + 8 * dim, extent.cast_unsigned());
            }
            let Some(start) = usize::try_from(offset).ok().filter(|&at| address_of(memory, at).is_some())
            else {
                return Err(CopyError::NoCounterpart("an array of no elements of its memory".into()));
            };
            self.scope.set_memory(array, memory, start);
            return Ok(());
        }
        if matches!(root.get(self.scope).desc().kind(), ObjectKind::Memory(element) if element.is_empty()) {
            return Ok(());
        }
        let (parts, is_memory) = match self.interp.view(val)? {
            View::Fields(fields) => (fields, false),
            View::Elements { elements, .. } => (elements, true),
            _ => return Ok(()),
        };
        for (index, part) in parts.into_iter().enumerate() {
            let Some(part) = part else { continue };
            let part = self.make(part)?;
            let object = root.get(self.scope).object;
            let place = match is_memory {
                true => Place::element(object, index),
                false => At::field_of(object, index),
            };
            if let Some(place) = place {
                self.store(place, part)?;
            }
        }
        Ok(())
    }
}

// ----- objects to values -----

enum Back<'a> {
    Make(Held<'a>),
    /// After the fields are made.
    Assemble(Type, usize, Option<Object>),
    /// After the `Memory` is made.
    Reference(i64),
}

struct ToValues<'a, 'm, 'f, 'h> {
    scope: &'a Scope<'f, 'h>,
    interp: &'a mut Interp<'m>,
    cx: Arc<Context>,
    known: FxHashMap<Object, Val>,
    blank: Vec<(Object, Val)>,
}

impl ToValues<'_, '_, '_, '_> {
    fn type_in(&self, cx: &Arc<Context>, ty: Type) -> Result<Type, CopyError> {
        if cx.is_same(&self.cx) {
            return Ok(ty);
        }
        let types = self.scope.heap().types();
        let desc = types.type_object(cx, ty).ok();
        desc.and_then(|desc| types.type_in(&desc, &self.cx)).ok_or_else(|| {
            let name = cx.types.display(ty);
            CopyError::NoCounterpart(format!("the type `{name}` of another program"))
        })
    }

    /// A value for the content of a place; objects with an identity are filled later.
    fn make(&mut self, held: Held<'_>) -> Result<Option<Val>, CopyError> {
        let mut work = vec![Back::Make(held)];
        let mut done: Vec<Option<Val>> = Vec::new();
        while let Some(task) = work.pop() {
            match task {
                Back::Make(Held::Undefined) => done.push(None),
                Back::Make(Held::Object(object)) => {
                    if let Some(known) = self.known.get(&object) {
                        done.push(Some(known.clone()));
                    } else if let Some(val) = self.with_identity(object)? {
                        self.known.insert(object, val.clone());
                        done.push(Some(val));
                    } else if let Some(at) = At::boxed(object) {
                        self.push_parts(at, Some(object), &mut work, &mut done)?;
                    } else {
                        return Err(CopyError::NoCounterpart("a weak reference".into()));
                    }
                }
                Back::Make(Held::Inline(at)) => self.push_parts(at, None, &mut work, &mut done)?,
                Back::Assemble(ty, count, object) => {
                    let fields = done.split_off(done.len().saturating_sub(count));
                    let val = Val::aggregate(ty, fields);
                    if let Some(object) = object {
                        self.known.insert(object, val.clone());
                    }
                    done.push(Some(val));
                }
                Back::Reference(offset) => {
                    let memory = done.pop().flatten();
                    let val = match memory {
                        Some(memory) => Some(self.interp.memory_ref_to(&memory, offset)?),
                        None => None,
                    };
                    done.push(val);
                }
            }
        }
        Ok(done.pop().flatten())
    }

    /// Makes an immutable value, or queues the parts that must be made first.
    fn push_parts<'a>(
        &self,
        at: At<'a>,
        object: Option<Object>,
        work: &mut Vec<Back<'a>>,
        done: &mut Vec<Option<Val>>,
    ) -> Result<(), CopyError> {
        let ty = self.type_in(at.cx, at.ty)?;
        if let Some(bits) = at.bits() {
            done.push(Some(Val::bits(&self.cx.types, ty, bits)));
            return Ok(());
        }
        if at.cx.types.memory_ref_element(at.ty).is_some() {
            let memory = at.object.pointer_at(at.offset + 8);
            let offset =
                memory.and_then(|memory| position_of(memory, at.object.word_at(at.offset))).unwrap_or(0);
            work.push(Back::Reference(offset));
            work.push(Back::Make(memory.map_or(Held::Undefined, Held::Object)));
            return Ok(());
        }
        let held: Vec<Held<'a>> = at.fields().map(Place::held).collect();
        work.push(Back::Assemble(ty, held.len(), object));
        work.extend(held.into_iter().rev().map(Back::Make));
        Ok(())
    }

    /// The value of an object with an identity, or of a type, symbol or string; `None` for immutable values.
    fn with_identity(&mut self, object: Object) -> Result<Option<Val>, CopyError> {
        if let Some(of) = as_type(object) {
            let none = || CopyError::NoCounterpart("the type of weak references".into());
            return Ok(Some(Val::Type(self.type_in(of.context(), of.ty().ok_or_else(none)?)?)));
        }
        let desc = object.desc();
        let Some(ty) = desc.ty() else { return Ok(None) };
        let val = match desc.kind() {
            ObjectKind::String => return Ok(Some(self.interp.string(object.string().unwrap_or_default())?)),
            kind @ (ObjectKind::Symbol | ObjectKind::Module) => {
                let text = String::from_utf8_lossy(object.string().unwrap_or_default());
                let name = self.cx.names.intern(&text);
                let is_symbol = matches!(kind, ObjectKind::Symbol);
                return Ok(Some(if is_symbol { Val::Symbol(name) } else { Val::Module(name) }));
            }
            ObjectKind::Struct(_) if !desc.is_mutable() => return Ok(None),
            ObjectKind::Memory(element) => {
                let elem = self.type_in(desc.context(), element.ty)?;
                self.interp.blank_memory(elem, object.word_at(LENGTH))?
            }
            ObjectKind::Array { dims, .. } => {
                let Some(row) = Row::of(object) else {
                    return Err(CopyError::NoCounterpart("an array without elements".into()));
                };
                let dims: Vec<i64> =
                    (0..*dims as usize).map(|d| object.word_at(ARRAY_DIMS + 8 * d).cast_signed()).collect();
                let memory = match self.known.get(&row.memory) {
                    Some(known) => known.clone(),
                    None => {
                        let elem = element_type(row.memory.desc());
                        let elem = self.type_in(&elem.0, elem.1)?;
                        let memory = self.interp.blank_memory(elem, row.memory.word_at(LENGTH))?;
                        self.known.insert(row.memory, memory.clone());
                        self.blank.push((row.memory, memory.clone()));
                        memory
                    }
                };
                return Ok(Some(self.interp.array_over(&memory, row.start as i64, &dims)?));
            }
            _ => {
                let ty = self.type_in(desc.context(), ty)?;
                self.interp.blank_struct(ty)?
            }
        };
        self.blank.push((object, val.clone()));
        Ok(Some(val))
    }

    fn fill(&mut self, object: Object, val: &Val) -> Result<(), CopyError> {
        let (count, is_memory) = match object.desc().kind() {
            // Elements of size zero exist from the start, however many.
            ObjectKind::Memory(element) if element.is_empty() => (0, true),
            ObjectKind::Memory(_) => (object.word_at(LENGTH) as usize, true),
            _ => (At::boxed(object).map_or(0, |at| at.fields().len()), false),
        };
        for index in 0..count {
            let place = match is_memory {
                true => Place::element(object, index),
                false => At::field_of(object, index),
            };
            if let Some(place) = place
                && let Some(part) = self.make(place.held())?
            {
                self.interp.set_part(val, index, part)?;
            }
        }
        Ok(())
    }
}
