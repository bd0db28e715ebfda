//! Typed places inside objects.
//!
//! ```text
//!   At     a value of a known concrete type, at an offset of an object: a boxed value is at 0, an inline field further in
//!   Place  a field or element: its layout is known, its contents are read
//!   Place ── held ──► Held ─┬─ Undefined      a null reference, or an inline value whose first reference is null
//!                           ├─ Object         a reference
//!                           └─ Inline(At)     the value itself, or the member of a union of bits selected by its selector
//! ```
//!
//! Reading needs no memory; boxing an inline value does, and so is a safepoint.
//!
//! Layouts are read in the context of the object's type. A stored value's type may belong to another context;
//! it is compared by [`RuntimeTypes::type_in`](crate::heap::RuntimeTypes::type_in).

use std::sync::Arc;

use brolga_ir::Context;
use brolga_ir::types::{FieldRepr, Layout, Type};

use crate::heap::{
    ARRAY_DATA, ARRAY_DIMS, ARRAY_MEMORY, LENGTH, Object, ObjectKind, Scope, elements_at, elements_from,
};

/// A value of a concrete type inside an object.
#[derive(Clone, Copy)]
pub(crate) struct At<'a> {
    pub(crate) cx: &'a Arc<Context>,
    pub(crate) ty: Type,
    pub(crate) object: Object,
    pub(crate) offset: usize,
}

/// A field or element.
#[derive(Clone, Copy)]
pub(crate) struct Place<'a> {
    pub(crate) cx: &'a Arc<Context>,
    /// The type of values that may be stored.
    pub(crate) ty: Type,
    pub(crate) repr: FieldRepr,
    pub(crate) object: Object,
    pub(crate) offset: usize,
    /// The offset of the selector of a union of bits.
    selector: usize,
    /// Whether it is a field of an immutable value, whose inline fields are always defined.
    is_part: bool,
    /// Whether it is an `@atomic` field.
    pub(crate) is_atomic: bool,
}

/// The value at a place.
#[derive(Clone, Copy)]
pub(crate) enum Held<'a> {
    Undefined,
    Object(Object),
    Inline(At<'a>),
}

impl<'a> At<'a> {
    /// The value of an object; `None` for weak references, which have no type.
    pub(crate) fn boxed(object: Object) -> Option<At<'a>> {
        let desc = object.desc();
        Some(At { cx: desc.context(), ty: desc.ty()?, object, offset: 0 })
    }

    pub(crate) fn layout(self) -> Option<&'a Layout> {
        self.cx.types.layout(self.ty).ok()
    }

    /// Field `index`, from 0, of an object that is a struct, tuple or named tuple.
    pub(crate) fn field_of(object: Object, index: usize) -> Option<Place<'a>> {
        let desc = object.desc();
        let row = desc.field_table().rows().get(index)?;
        let at = At { cx: desc.context(), ty: desc.ty()?, object, offset: 0 };
        Some(at.field(row.ty, row.repr, row.offset, row.is_atomic, !desc.is_mutable()))
    }

    fn field(self, ty: Type, repr: FieldRepr, offset: usize, is_atomic: bool, is_part: bool) -> Place<'a> {
        let offset = self.offset + offset;
        let selector = match repr {
            FieldRepr::BitsUnion { selector } => offset + selector as usize,
            _ => 0,
        };
        Place { cx: self.cx, ty, repr, object: self.object, offset, selector, is_part, is_atomic }
    }

    /// The fields of a struct, tuple or named tuple; empty for primitive values.
    pub(crate) fn fields(self) -> impl ExactSizeIterator<Item = Place<'a>> {
        let fields = self.layout().map_or(&[][..], |layout| &layout.fields);
        let is_part = !self.cx.types.is_mutable(self.ty);
        let decls = if is_part { None } else { self.cx.types.fields(self.ty) };
        fields.iter().enumerate().map(move |(n, field)| {
            let is_atomic = decls.and_then(|decls| decls.get(n)).is_some_and(|decl| decl.is_atomic);
            self.field(field.ty, field.repr, field.offset as usize, is_atomic, is_part)
        })
    }

    /// The bits of a primitive value.
    pub(crate) fn bits(self) -> Option<u128> {
        let (bits, _) = self.cx.types.primitive(self.ty)?;
        let mut bytes = [0; 16];
        self.object.read_bits(self.offset, &mut bytes[..usize::from(bits).div_ceil(8)]);
        Some(u128::from_le_bytes(bytes))
    }
}

impl<'a> Place<'a> {
    pub(crate) fn held(self) -> Held<'a> {
        let Place { cx, object, offset, .. } = self;
        match self.repr {
            FieldRepr::Pointer => object.pointer_at(offset).map_or(Held::Undefined, Held::Object),
            FieldRepr::Inline => {
                let first = match self.is_part {
                    true => None,
                    false => cx.types.first_reference(self.ty, self.repr),
                };
                match first.map(|first| object.pointer_at(offset + first as usize)) {
                    Some(None) => Held::Undefined,
                    _ => Held::Inline(At { cx, ty: self.ty, object, offset }),
                }
            }
            FieldRepr::BitsUnion { .. } => {
                let mut which = [0];
                object.read_bits(self.selector, &mut which);
                let members = cx.types.members(&self.ty);
                match members.get(usize::from(which[0])) {
                    Some(&ty) => Held::Inline(At { cx, ty, object, offset }),
                    None => Held::Undefined,
                }
            }
        }
    }

    /// Whether a value is assigned.
    pub(crate) fn is_assigned(self) -> bool {
        !matches!(self.held(), Held::Undefined)
    }

    /// Element `index`, from 0, of a `Memory`, which must be long enough.
    pub(crate) fn element(memory: Object, index: usize) -> Option<Place<'a>> {
        let desc = memory.desc();
        let ObjectKind::Memory(element) = desc.kind() else { return None };
        let length = memory.word_at(LENGTH) as usize;
        if index >= length {
            return None;
        }
        let stride = element.stride as usize;
        // All elements and selectors of a `Memory` take at most `isize::MAX` bytes, and the index is less than the length.
        let first = elements_at(memory);
        let (offset, selector) =
            (first.wrapping_add(index * stride), first.wrapping_add(length * stride + index));
        Some(Place {
            cx: desc.context(),
            ty: element.ty,
            repr: element.repr,
            object: memory,
            offset,
            selector,
            is_part: false,
            is_atomic: false,
        })
    }
}

/// Consecutive elements of an array or memory: never more than the `Memory` has, for any extents set by the
/// program.
#[derive(Clone, Copy)]
pub(crate) struct Row {
    pub(crate) memory: Object,
    /// The position of the first element in the `Memory`.
    pub(crate) start: usize,
    pub(crate) length: usize,
}

impl Row {
    /// The elements of an array or memory; `None` for other objects.
    pub(crate) fn of(object: Object) -> Option<Row> {
        match object.desc().kind() {
            ObjectKind::Memory(_) => {
                Some(Row { memory: object, start: 0, length: object.word_at(LENGTH) as usize })
            }
            ObjectKind::Array { dims, .. } => {
                let memory = object.pointer_at(ARRAY_MEMORY)?;
                let behind = elements_from(memory, object.word_at(ARRAY_DATA)).unwrap_or(0);
                let said = (0..*dims as usize)
                    .fold(1u64, |n, d| n.saturating_mul(object.word_at(ARRAY_DIMS + 8 * d)));
                let start = memory.word_at(LENGTH) as usize - behind;
                Some(Row { memory, start, length: (said as usize).min(behind) })
            }
            _ => None,
        }
    }

    pub(crate) fn place<'a>(self, index: usize) -> Option<Place<'a>> {
        let index = (index < self.length).then_some(index)?;
        Place::element(self.memory, self.start.checked_add(index)?)
    }
}

/// Copies a value of this layout. References are copied one at a time, so that a collector or another thread
/// never sees half of one.
pub(crate) fn copy(layout: &Layout, to: (Object, usize), from: (Object, usize)) {
    let mut at = 0;
    let bits = |start: usize, end: usize| copy_bits(to, from, start, end);
    for &pointer in layout.pointers.iter() {
        let pointer = pointer as usize;
        bits(at, pointer);
        to.0.set_pointer_at(to.1 + pointer, from.0.pointer_at(from.1 + pointer));
        at = pointer + 8;
    }
    bits(at, layout.size as usize);
}

/// Copies the bytes from `start` to `end` of a value.
fn copy_bits(to: (Object, usize), from: (Object, usize), start: usize, end: usize) {
    for start in (start..end).step_by(CHUNK) {
        copy_chunk(to, from, start, (end - start).min(CHUNK));
    }
}

/// The number of elements that a routine handles between two polls.
pub(crate) const STRETCH: usize = 4096;

/// The number of bytes copied at once.
const CHUNK: usize = 64;

fn copy_chunk(to: (Object, usize), from: (Object, usize), start: usize, length: usize) {
    let mut buffer = [0; CHUNK];
    let part = &mut buffer[..length];
    from.0.read_bits(from.1.wrapping_add(start), part);
    to.0.write_bits(to.1.wrapping_add(start), part);
}

/// Copies plain-bits elements starting at `from` over those starting at `to`, which have the same type, are
/// at least as many and may overlap; `false` if they are not plain bits.
pub(crate) fn copy_plain(from: Place<'_>, to: Place<'_>, count: usize) -> bool {
    let ObjectKind::Memory(element) = from.object.desc().kind() else { return false };
    if element.repr != FieldRepr::Inline || !element.pointers.is_empty() {
        return false;
    }
    let (bytes, to, from) =
        (count * element.stride as usize, (to.object, to.offset), (from.object, from.offset));
    if to.0 == from.0 && to.1 > from.1 {
        // From the end, so that nothing is overwritten before it is copied.
        for start in (0..bytes).step_by(CHUNK).rev() {
            copy_chunk(to, from, start, (bytes - start).min(CHUNK));
        }
    } else {
        copy_bits(to, from, 0, bytes);
    }
    true
}

/// Copies an element over another of the same `Memory`.
pub(crate) fn copy_element(scope: &Scope<'_, '_>, from: Place<'_>, to: Place<'_>) {
    match from.repr {
        FieldRepr::Pointer => to.object.set_pointer_at(to.offset, from.object.pointer_at(from.offset)),
        FieldRepr::Inline => {
            if let Some(layout) = (At { cx: from.cx, ty: from.ty, object: from.object, offset: 0 }).layout() {
                copy(layout, (to.object, to.offset), (from.object, from.offset));
            }
        }
        FieldRepr::BitsUnion { selector } => {
            let mut which = [0];
            copy_bits((to.object, to.offset), (from.object, from.offset), 0, selector as usize);
            from.object.read_bits(from.selector, &mut which);
            to.object.write_bits(to.selector, &which);
        }
    }
    scope.after_store(to.object);
}

/// Resets an element to its state in a fresh `Memory`.
pub(crate) fn clear(place: Place<'_>) {
    let zeros =
        |size: usize| (0..size).for_each(|n| place.object.write_bits(place.offset.wrapping_add(n), &[0]));
    match place.repr {
        FieldRepr::Pointer => place.object.set_pointer_at(place.offset, None),
        FieldRepr::Inline => {
            let at = At { cx: place.cx, ty: place.ty, object: place.object, offset: place.offset };
            let Some(layout) = at.layout() else { return };
            layout
                .pointers
                .iter()
                .for_each(|&p| place.object.set_pointer_at(place.offset + p as usize, None));
            zeros(layout.size as usize);
        }
        FieldRepr::BitsUnion { selector } => {
            zeros(selector as usize);
            place.object.write_bits(place.selector, &[0]);
        }
    }
}

/// Stores an object's value into a place; `false` if the place does not accept its type.
pub(crate) fn store(scope: &Scope<'_, '_>, place: Place<'_>, value: Object) -> bool {
    let types = scope.heap().types();
    match place.repr {
        FieldRepr::Pointer => {
            place.object.set_pointer_at(place.offset, Some(value));
            scope.after_store(place.object);
            return true;
        }
        FieldRepr::Inline => {}
        FieldRepr::BitsUnion { .. } => {
            let given = types.type_in(value.desc(), &types.newest(place.cx));
            let members = place.cx.types.members(&place.ty);
            let Some(which) = members.iter().position(|&member| Some(member) == given) else { return false };
            place.object.write_bits(place.selector, &[which as u8]);
        }
    }
    let ObjectKind::Struct(layout) = value.desc().kind() else { return false };
    copy(layout, (place.object, place.offset), (value, 0));
    if !layout.is_bits() {
        scope.after_store(place.object);
    }
    true
}
