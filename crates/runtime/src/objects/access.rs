//! Boxing, tuples, and loads of fields and elements, for code in a scope. Failures are raised.

use std::fmt::Display;
use std::sync::Arc;

use brolga_ir::Context;
use brolga_ir::types::{FieldRepr, Type, TypeKind};

use crate::heap::{CommonTypes, Obj, ObjectError, ObjectKind, Root, Scope, TypeRef};

use super::place::{At, Held, Place, Row, copy, store};
use super::throw::Raised;

/// Smaller copies of object contents are not counted.
const SMALL_COPY: usize = 1 << 20;
/// The maximum by which a text grows beyond the request.
const MOST_GROWTH: usize = 16 << 20;

impl<'f, 'h> Scope<'f, 'h> {
    /// A value of a primitive type as an object; small ones are permanent. A safepoint.
    pub(crate) fn box_bits(
        &mut self,
        cx: &Arc<Context>,
        ty: Type,
        bits: u128,
    ) -> Result<Root<'f, 'h>, Raised> {
        let heap = self.heap();
        let small = match ty {
            Type::INT64 => heap.types().small_int(bits as i64),
            Type::BOOL => heap.types().boxed_bool(bits & 1 != 0),
            _ => None,
        };
        if let Some(small) = small {
            return Ok(self.add_root(small));
        }
        // The common ones are found without the lock of the table of types.
        let desc = match ty {
            Type::INT64 => heap.types().int64().clone(),
            Type::FLOAT64 => heap.types().float64().clone(),
            _ => self.desc_of(cx, ty)?,
        };
        let root = self.zeroed_object(&desc).map_err(|error| self.raise(&error))?;
        let object = root.get(self).object;
        object.write_bits(0, &bits.to_le_bytes()[..desc.size().min(16)]);
        Ok(root)
    }

    /// A value of 64 bits as an object. A safepoint.
    pub(crate) fn box_word(&mut self, desc: &TypeRef, word: u64) -> Result<Root<'f, 'h>, Raised> {
        let root = self.zeroed_object(desc).map_err(|error| self.raise(&error))?;
        root.get(self).object.set_word_at(0, word);
        Ok(root)
    }

    /// An `Int64` as an object.
    pub(crate) fn box_int(&mut self, value: i64) -> Result<Root<'f, 'h>, Raised> {
        let base = self.heap().types().base().clone();
        self.box_bits(&base, Type::INT64, u128::from(value.cast_unsigned()))
    }

    /// A `Bool` as an object.
    pub fn bool(&mut self, value: bool) -> Result<Root<'f, 'h>, Raised> {
        let base = self.heap().types().base().clone();
        self.box_bits(&base, Type::BOOL, value.into())
    }

    /// `nothing`.
    pub(crate) fn nothing(&mut self) -> Result<Root<'f, 'h>, Raised> {
        let base = self.heap().types().base().clone();
        let desc = self.desc_of(&base, Type::NOTHING)?;
        match self.heap().types().instance(&desc) {
            Some(instance) => Ok(self.add_root(instance)),
            None => self.zeroed_object(&desc).map_err(|error| self.raise(&error)),
        }
    }

    /// Types that are found without a search.
    pub(crate) fn common_types(&mut self) -> Result<&'h CommonTypes, Raised> {
        let types = self.heap().types();
        types.common().map_err(|error| self.raise_type(&error.display(&types.base().types)))
    }

    /// Must be called before the program makes a name or a type: throws `OutOfMemoryError` if there are too
    /// many. A safepoint.
    fn count_tables(&mut self) -> Result<(), Raised> {
        self.heap().count_tables(self.mutator()).map_err(|error| self.raise(&error.into()))
    }

    /// The type of a kind, made if the heap's limit has room for it. A safepoint.
    pub(crate) fn counted_type(&mut self, cx: &Context, kind: TypeKind) -> Result<Type, Raised> {
        if let Some(known) = cx.types.known(&kind) {
            return Ok(known);
        }
        self.count_tables()?;
        cx.types.of_kind(kind).map_err(|error| self.raise_type(&error.display(&cx.types)))
    }

    /// The symbol with a name made by the program, if the heap's limit has room for it. A safepoint.
    pub(crate) fn counted_symbol(&mut self, name: &str) -> Result<Root<'f, 'h>, Raised> {
        if self.heap().symbols().known_symbol(name).is_none() {
            self.count_tables()?;
        }
        Ok(self.symbol(name))
    }

    /// Checks that the heap's limit has room for a copy of an object's content of this size. A safepoint.
    pub(crate) fn count_copy(&mut self, bytes: usize) -> Result<(), Raised> {
        if bytes < SMALL_COPY {
            return Ok(());
        }
        let heap = self.heap();
        heap.add_external(self.mutator(), bytes).map_err(|error| self.raise(&error.into()))?;
        heap.release_external(bytes);
        Ok(())
    }

    /// Reserves `more` bytes at the end of a text whose length the program controls. A safepoint, unless
    /// there is room.
    pub(crate) fn make_room(&mut self, text: &mut Vec<u8>, more: usize) -> Result<(), Raised> {
        if more <= text.capacity() - text.len() {
            return Ok(());
        }
        let doubled = text.len().saturating_add(text.len().min(MOST_GROWTH));
        let wanted = text.len().saturating_add(more).max(doubled);
        self.count_copy(wanted)?;
        let reserved = text.try_reserve_exact(wanted - text.len());
        reserved.map_err(|_| self.raise_kind(crate::ExceptionKind::OutOfMemoryError))
    }

    /// The run-time form of a type made by a builtin. Types that cannot be made raise an exception.
    pub(crate) fn desc_of(&mut self, cx: &Arc<Context>, ty: Type) -> Result<TypeRef, Raised> {
        self.heap().type_object(cx, ty).map_err(|error| self.raise_type(&error.display(&cx.types)))
    }

    /// Raises an error for a type that cannot be made.
    fn raise_type(&mut self, error: &dyn Display) -> Raised {
        self.raise_message(crate::ExceptionKind::ErrorException, &error.to_string())
    }

    /// A new immutable or mutable struct with the given fields, whose types must fit; the others are
    /// undefined.
    pub(crate) fn new_struct(
        &mut self,
        cx: &Arc<Context>,
        ty: Type,
        fields: &[Option<Root<'_, 'h>>],
    ) -> Result<Root<'f, 'h>, Raised> {
        let desc = self.desc_of(cx, ty)?;
        if let Some(instance) = self.heap().types().instance(&desc) {
            return Ok(self.add_root(instance));
        }
        let root = self.zeroed_object(&desc).map_err(|error| self.raise(&error))?;
        let object = root.get(self).object;
        let places = At::boxed(object).into_iter().flat_map(At::fields);
        for (place, field) in places.zip(fields) {
            if let Some(field) = field {
                let value = field.get(self).object;
                store(self, place, value);
            }
        }
        Ok(root)
    }

    /// A tuple of the objects, with exactly their types.
    pub fn tuple(&mut self, elements: &[Root<'_, 'h>]) -> Result<Root<'f, 'h>, Raised> {
        let heap = self.heap();
        // The tuple has the context of its first element whose type a program declares.
        let descs: Vec<_> = elements.iter().map(|element| element.get(self).exact_type()).collect();
        let cx = heap.types().context_of(descs.iter().map(|desc| &**desc));
        let parts = descs.iter().map(|desc| heap.types().type_in(desc, &cx).unwrap_or(Type::ANY));
        let kind = TypeKind::Tuple { elems: parts.collect(), vararg: None };
        let ty = self.counted_type(&cx, kind)?;
        let fields: Vec<_> = elements.iter().copied().map(Some).collect();
        self.new_struct(&cx, ty, &fields)
    }

    /// Stores into a field or element after a type check; nothing makes a reference undefined again.
    fn store_checked(&self, place: Place<'_>, value: Option<Obj<'_, 'h>>) -> Result<(), ObjectError> {
        let text = |ty| place.cx.types.display(ty).to_string();
        match value {
            None if place.repr == FieldRepr::Pointer => {
                place.object.set_pointer_at(place.offset, None);
                Ok(())
            }
            Some(value)
                if self.heap().is_of(value.object, place.cx, place.ty)
                    && store(self, place, value.object) =>
            {
                Ok(())
            }
            Some(value) => {
                Err(ObjectError::WrongType { expected: text(place.ty), got: value.desc().name().into() })
            }
            None => {
                Err(ObjectError::WrongType { expected: text(place.ty), got: "undefined reference".into() })
            }
        }
    }

    /// Stores into a field, by its number from 0. An inline field receives a copy. `None` makes a reference
    /// undefined.
    pub fn set_field(
        &self,
        of: Obj<'_, 'h>,
        index: usize,
        value: Option<Obj<'_, 'h>>,
    ) -> Result<(), ObjectError> {
        let places = At::boxed(of.object).map(At::fields);
        let length = places.as_ref().map_or(0, ExactSizeIterator::len);
        match places.and_then(|mut places| places.nth(index)) {
            Some(place) => self.store_checked(place, value),
            None => Err(ObjectError::Index { index, length }),
        }
    }

    /// Stores into an element of an array or memory, by its number from 0, like [`Scope::set_field`].
    pub fn set_element(
        &self,
        of: Obj<'_, 'h>,
        index: usize,
        value: Option<Obj<'_, 'h>>,
    ) -> Result<(), ObjectError> {
        let row = Row::of(of.object);
        match row.and_then(|row| row.place(index)) {
            Some(place) => self.store_checked(place, value),
            None => Err(ObjectError::Index { index, length: row.map_or(0, |row| row.length) }),
        }
    }

    /// The value of an element, like [`Scope::load_field`].
    pub fn load_element(&mut self, of: Root<'_, 'h>, index: usize) -> Result<Option<Root<'f, 'h>>, Raised> {
        let object = of.get(self).object;
        match Row::of(object).and_then(|row| row.place(index)) {
            Some(place) => self.box_held(place.held()),
            None => Ok(None),
        }
    }

    /// The value of a field, as a separate object if it is inline in `of`; `None` if it is undefined.
    pub fn load_field(&mut self, of: Root<'_, 'h>, index: usize) -> Result<Option<Root<'f, 'h>>, Raised> {
        let object = of.get(self).object;
        let place = At::field_of(object, index);
        match place {
            Some(place) => self.box_held(place.held()),
            None => Ok(None),
        }
    }

    /// The value at a place, as an object; `None` if it is undefined. A safepoint.
    pub(crate) fn box_held(&mut self, held: Held<'_>) -> Result<Option<Root<'f, 'h>>, Raised> {
        let heap = self.heap();
        match held {
            Held::Undefined => Ok(None),
            Held::Object(object) => Ok(Some(self.add_root(object))),
            // Without a look at the table of types.
            Held::Inline(At { cx, ty: ty @ (Type::INT64 | Type::FLOAT64), object, offset }) => {
                self.box_bits(cx, ty, object.word_at(offset).into()).map(Some)
            }
            Held::Inline(At { cx, ty, object, offset }) => {
                if let Some(bits) = (At { cx, ty, object, offset }).bits() {
                    let cx = cx.clone();
                    return self.box_bits(&cx, ty, bits).map(Some);
                }
                let cx = cx.clone();
                let desc = self.desc_of(&cx, ty)?;
                if let Some(instance) = heap.types().instance(&desc) {
                    return Ok(Some(self.add_root(instance)));
                }
                let holder = self.add_root(object);
                let made = self.zeroed_object(&desc).map_err(|error| self.raise(&error))?;
                if let ObjectKind::Struct(layout) = desc.kind() {
                    copy(layout, (made.get(self).object, 0), (holder.get(self).object, offset));
                }
                Ok(Some(made))
            }
        }
    }
}

impl<'a> Obj<'a, '_> {
    /// The type of the object, from its tag.
    pub(crate) fn exact_type(self) -> &'a crate::heap::TypeDesc {
        self.object.desc()
    }
}
