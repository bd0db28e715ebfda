//! `Memory` and `Array` in safe Rust.
//!
//! ```text
//!   Array │ data ──┐ │ memory │ dims… │          elements start .. start + length belong to the array
//!                  │     │
//!                  │     ▼
//!   Memory│ length │ data │ e e e e e e e e e │ selectors, if elements are unions of bits
//!                  └────────────► start
//! ```
//!
//! A vector grows into the free part of its `Memory` at that end, and into a new one of twice the size when
//! that is full, so appending takes amortised constant time. Deleted elements are cleared: they keep nothing
//! alive, and growing finds zeros.
//!
//! The elements of a column are outside of its `Memory` (`column.rs`), so they are reached by the address in it.
//!
//! Indices count from 0 and are linear. Every access is checked against the `Memory` itself, whose length
//! never changes, so a race on an array's fields yields a wrong element or an error, but never an access
//! outside.

use std::mem::MaybeUninit;
use std::ptr::NonNull;

use brolga_ir::types::FieldRepr;

use super::desc::{Element, ObjectKind, TypeDesc, TypeRef};
use super::heap::{Heap, OutOfMemory};
use super::layout::{
    ARRAY_DATA, ARRAY_DIMS, ARRAY_MEMORY, LENGTH, MEMORY_DATA, MEMORY_ELEMENTS, STRING_BYTES,
};
use super::mutator::Mutator;
use super::object::Object;
use super::scope::{Bits, Obj, ObjectError, Root, Scope, check_bits, wrong_kind};

/// The smallest capacity after growing.
const SMALLEST_GROWTH: usize = 4;
/// The most bytes that grow without a scope: moving more takes polls.
const LARGEST_PLAIN: u64 = 1 << 20;

/// An end of a vector.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// Before the first element.
    Front,
    /// After the last element.
    Back,
}

/// Elements in a `Memory`.
#[derive(Clone, Copy)]
struct Elements<'a> {
    memory: Object,
    element: &'a Element,
    capacity: usize,
    start: usize,
    length: usize,
}

impl Elements<'_> {
    fn stride(&self) -> usize {
        self.element.stride as usize
    }

    /// The offset of element `index` in the `Memory`.
    fn offset(&self, index: usize) -> Result<usize, ObjectError> {
        Ok(elements_at(self.memory).wrapping_add(self.position(index)? * self.stride()))
    }

    /// The offset of the selector of element `index` in the `Memory`.
    fn selector(&self, index: usize) -> Result<usize, ObjectError> {
        let selectors = self.capacity * self.stride();
        Ok(elements_at(self.memory).wrapping_add(selectors + self.position(index)?))
    }

    fn position(&self, index: usize) -> Result<usize, ObjectError> {
        let position = self.start.checked_add(index).filter(|&p| p < self.capacity && index < self.length);
        position.ok_or(ObjectError::Index { index, length: self.length })
    }

    /// A sub-range.
    fn part(self, start: usize, count: usize) -> Result<Self, ObjectError> {
        match start.checked_add(count) {
            Some(end) if end <= self.length => {
                Ok(Elements { start: self.start + start, length: count, ..self })
            }
            _ => Err(ObjectError::Index { index: start, length: self.length }),
        }
    }

    fn is_union(&self) -> bool {
        matches!(self.element.repr, FieldRepr::BitsUnion { .. })
    }

    /// Clears bytes of the `Memory`.
    fn zero(&self, first: usize, bytes: usize) {
        zero(self.memory, first, bytes);
    }
}

/// The elements of an object, which must not move while they are used.
fn elements_of<'a>(object: Object) -> Result<Elements<'a>, ObjectError> {
    let (memory, dims) = match object.desc().kind() {
        ObjectKind::Memory(_) => (object, None),
        ObjectKind::Array { dims, .. } => {
            let memory = object.pointer_at(ARRAY_MEMORY);
            (memory.ok_or_else(|| wrong_kind(object.desc(), "elements yet"))?, Some(*dims))
        }
        _ => return Err(wrong_kind(object.desc(), "elements")),
    };
    let ObjectKind::Memory(element) = memory.desc().kind() else {
        return Err(wrong_kind(object.desc(), "elements"));
    };
    let capacity = memory.word_at(LENGTH) as usize;
    let Some(dims) = dims else {
        return Ok(Elements { memory, element, capacity, start: 0, length: capacity });
    };
    let data = object.word_at(ARRAY_DATA);
    // A program with open doors may set the parts to anything; the `Memory` limits the number of elements.
    let behind = elements_from(memory, data).unwrap_or(0);
    let length = dims_of(object, dims).fold(1, usize::saturating_mul).min(behind);
    Ok(Elements { memory, element, capacity, start: capacity - behind, length })
}

/// The offset of the elements of a `Memory` from it; it wraps if they are outside.
pub(crate) fn elements_at(memory: Object) -> usize {
    (memory.word_at(MEMORY_DATA) as usize).wrapping_sub(memory.address())
}

/// The number of elements before an address in a `Memory`; for elements without size the first word of a
/// reference is that number. `None`: no element begins there. The distance must be a whole number of strides,
/// so an address a few bytes off is not mistaken for the preceding element. It may be negative or beyond the
/// end: only code that opened a door makes such references, and callers compare it with the length.
pub(crate) fn position_of(memory: Object, address: u64) -> Option<i64> {
    let ObjectKind::Memory(element) = memory.desc().kind() else { return None };
    let distance = match i64::from(element.stride) {
        0 => return Some(address.cast_signed()),
        _ => address.wrapping_sub(memory.word_at(MEMORY_DATA)).cast_signed(),
    };
    let stride = i64::from(element.stride);
    (distance % stride == 0).then(|| distance / stride)
}

/// The first word of a reference to element `position` of a `Memory`; `None` if the `Memory` is shorter.
pub(crate) fn address_of(memory: Object, position: usize) -> Option<u64> {
    let ObjectKind::Memory(element) = memory.desc().kind() else { return None };
    if position > memory.word_at(LENGTH) as usize {
        return None;
    }
    // A position is at most the length, and all elements of a `Memory` take at most `isize::MAX` bytes
    // (`Scope::memory`, `brolga_gc_memory`) from its address on. So neither the product nor the sum wraps.
    Some(match u64::from(element.stride) {
        0 => position as u64,
        stride => memory.word_at(MEMORY_DATA) + position as u64 * stride,
    })
}

/// The number of elements of a `Memory` from the data of an array on; `None` for another object.
pub(crate) fn elements_from(memory: Object, data: u64) -> Option<usize> {
    let start = usize::try_from(position_of(memory, data)?).ok()?;
    (memory.word_at(LENGTH) as usize).checked_sub(start)
}

fn dims_of(array: Object, dims: u32) -> impl Iterator<Item = usize> {
    (0..dims as usize).map(move |dim| array.word_at(ARRAY_DIMS + 8 * dim) as usize)
}

/// Refuses elements that are not bits of this size.
pub(super) fn check_size(element: &Element, size: usize) -> Result<(), ObjectError> {
    let is_bits = element.repr == FieldRepr::Inline && element.pointers.is_empty();
    match is_bits && element.stride as usize == size {
        true => Ok(()),
        false => Err(ObjectError::NotBits { what: "the element", size }),
    }
}

/// The address of the first element of an array or `Memory`, and the number of elements, if they are bits of
/// this size and not unions.
pub(crate) fn bits_of(object: Object, size: usize) -> Result<(NonNull<u8>, usize), ObjectError> {
    let elements = elements_of(object)?;
    check_size(elements.element, size)?;
    let start = elements_at(elements.memory).wrapping_add(elements.start.min(elements.capacity) * size);
    // `elements_of` clamps the range to the `Memory`.
    let first = NonNull::new(elements.memory.place(start)).unwrap_or(elements.memory.pointer());
    Ok((first, elements.length))
}

impl<'a, 'h> Obj<'a, 'h> {
    fn elements(self) -> Result<Elements<'a>, ObjectError> {
        elements_of(self.object)
    }

    /// The bits of all elements of an array or `Memory`, copied in bulk.
    ///
    /// # Errors
    /// The elements do not have this size, or they contain references.
    pub fn copied_bits<T: Bits>(self) -> Result<Vec<T>, ObjectError> {
        let (first, length) = bits_of(self.object, T::SIZE)?;
        let mut copy = Vec::<T>::with_capacity(length);
        // SAFETY: the object has this many elements, and all bits are values of the sealed types `Bits`.
        unsafe {
            first.as_ptr().copy_to_nonoverlapping(copy.as_mut_ptr().cast(), length * T::SIZE);
            copy.set_len(length);
        }
        Ok(copy)
    }

    /// Copies the bits of the first elements of an array or `Memory` in bulk, as many as there is room for. Returns how many
    /// elements there are.
    ///
    /// # Errors
    /// As for [`Obj::copied_bits`].
    pub fn copy_bits_to<T: Bits>(self, to: &mut [MaybeUninit<T>]) -> Result<usize, ObjectError> {
        let (first, length) = bits_of(self.object, T::SIZE)?;
        let count = length.min(to.len());
        // SAFETY: the object has `length` elements and the slice room for `count`. They may overlap: a host may copy a column into
        // itself.
        unsafe { first.as_ptr().copy_to(to.as_mut_ptr().cast(), count * T::SIZE) };
        Ok(length)
    }

    /// The number of elements of a `Memory` or `Array`.
    pub fn length(self) -> Result<usize, ObjectError> {
        Ok(self.elements()?.length)
    }

    /// The dimensions of an `Array`.
    pub fn dims(self) -> Result<Vec<usize>, ObjectError> {
        match self.desc().kind() {
            ObjectKind::Array { dims, .. } => Ok(dims_of(self.object, *dims).collect()),
            _ => Err(wrong_kind(self.desc(), "dimensions")),
        }
    }

    /// The referent of a reference element; `None` if it is undefined.
    pub fn element(self, index: usize) -> Result<Option<Obj<'a, 'h>>, ObjectError> {
        let elements = self.elements()?;
        if elements.element.repr != FieldRepr::Pointer {
            return Err(wrong_kind(self.desc(), "references as elements"));
        }
        Ok(elements.memory.pointer_at(elements.offset(index)?).map(|object| self.with(object)))
    }

    /// The bits of an element without pointers.
    pub fn element_bits<T: Bits>(self, index: usize) -> Result<T, ObjectError> {
        let (memory, offset) = self.find_bits_element(index, T::SIZE)?;
        let mut bytes = [0; 16];
        memory.read_bits(offset, &mut bytes[..T::SIZE]);
        Ok(T::from_bytes(&bytes))
    }

    /// Stores into an element without pointers.
    pub fn set_element_bits<T: Bits>(self, index: usize, value: T) -> Result<(), ObjectError> {
        let (memory, offset) = self.find_bits_element(index, T::SIZE)?;
        let bytes = value.to_bytes();
        check_bits(self.desc(), self.elements()?.element.ty, &bytes[..T::SIZE])?;
        memory.write_bits(offset, &bytes[..T::SIZE]);
        Ok(())
    }

    fn find_bits_element(self, index: usize, size: usize) -> Result<(Object, usize), ObjectError> {
        let elements = self.elements()?;
        check_size(elements.element, size)?;
        Ok((elements.memory, elements.offset(index)?))
    }

    /// The selector of an element that is a union of bits, and its bits as the selected type.
    pub fn union_element<T: Bits>(self, index: usize) -> Result<(u8, T), ObjectError> {
        let (elements, selector) = self.find_union_element(index, T::SIZE)?;
        let (mut bytes, mut which) = ([0; 16], [0]);
        elements.memory.read_bits(elements.offset(index)?, &mut bytes[..T::SIZE]);
        elements.memory.read_bits(selector, &mut which);
        Ok((which[0], T::from_bytes(&bytes)))
    }

    /// Stores into an element that is a union of bits, as the member with this number, whose size is at most
    /// `T`'s.
    pub fn set_union_element<T: Bits>(self, index: usize, which: u8, value: T) -> Result<(), ObjectError> {
        let (elements, selector) = self.find_union_element(index, T::SIZE)?;
        let (types, union) = (&self.desc().context().types, elements.element.ty);
        let members = types.members(&union);
        let Some(&member) = members.get(usize::from(which)) else {
            return Err(ObjectError::Index { index: which.into(), length: members.len() });
        };
        if types.layout(member).is_ok_and(|layout| layout.size as usize > T::SIZE) {
            return Err(ObjectError::NotBits { what: "the member of the union", size: T::SIZE });
        }
        let bytes = value.to_bytes();
        check_bits(self.desc(), member, &bytes[..T::SIZE])?;
        elements.memory.write_bits(elements.offset(index)?, &bytes[..T::SIZE]);
        elements.memory.write_bits(selector, &[which]);
        Ok(())
    }

    fn find_union_element(self, index: usize, size: usize) -> Result<(Elements<'a>, usize), ObjectError> {
        let elements = self.elements()?;
        if !elements.is_union() || size > elements.stride() {
            return Err(ObjectError::NotBits { what: "the element, as part of a union,", size });
        }
        let selector = elements.selector(index)?;
        Ok((elements, selector))
    }
}

impl<'f, 'h> Scope<'f, 'h> {
    /// A `Memory` with zero bits or undefined references.
    pub fn memory(&mut self, ty: &TypeRef, length: usize) -> Result<Root<'f, 'h>, ObjectError> {
        self.memory_of(ty, length, Heap::allocate)
    }

    fn memory_of(
        &mut self,
        ty: &TypeRef,
        length: usize,
        allocate: fn(&Heap, &Mutator, &TypeDesc, usize) -> Result<Object, OutOfMemory>,
    ) -> Result<Root<'f, 'h>, ObjectError> {
        if !matches!(ty.kind(), ObjectKind::Memory(_)) {
            return Err(wrong_kind(ty, "elements"));
        }
        let bytes = ty.size_with_length(|| length as u64);
        // Elements of size zero still have a length, which programs read as an `Int64`.
        if bytes.max(length) > isize::MAX as usize {
            return Err(OutOfMemory { requested: bytes.max(length) }.into());
        }
        self.check_owner(ty)?;
        let object = allocate(self.heap, self.mutator(), ty, bytes)?;
        object.set_word_at(LENGTH, length as u64);
        object.set_word_at(MEMORY_DATA, (object.address() + MEMORY_ELEMENTS) as u64);
        Ok(self.add_root(object))
    }

    /// An `Array` with zero bits or undefined references.
    pub fn array(&mut self, ty: &TypeRef, dims: &[usize]) -> Result<Root<'f, 'h>, ObjectError> {
        let ObjectKind::Array { dims: count, memory } = ty.kind() else {
            return Err(wrong_kind(ty, "dimensions"));
        };
        if *count as usize != dims.len() {
            return Err(ObjectError::Index { index: dims.len(), length: *count as usize });
        }
        let length = dims.iter().try_fold(1usize, |product, &dim| product.checked_mul(dim));
        let Some(length) = length else { return Err(OutOfMemory { requested: usize::MAX }.into()) };
        self.check_owner(ty)?;
        let memory = self.memory(memory, length)?;
        self.array_over(ty, dims, memory)
    }

    /// An `Array` of these dimensions that uses a `Memory`, which is as long, from its start on.
    pub(super) fn array_over(
        &mut self,
        ty: &TypeRef,
        dims: &[usize],
        memory: Root<'_, 'h>,
    ) -> Result<Root<'f, 'h>, ObjectError> {
        let root = self.allocate(ty, ty.size())?;
        let (array, memory) = (root.get(self).object, memory.get(self).object);
        for (dim, &extent) in dims.iter().enumerate() {
            array.set_word_at(ARRAY_DIMS + 8 * dim, extent as u64);
        }
        self.set_memory(array, memory, 0);
        Ok(root)
    }

    /// A vector with these elements, copied in bulk.
    ///
    /// # Errors
    /// Out of memory, or the type is not a vector type with elements of the given bits.
    pub fn vector_of<T: Bits>(&mut self, ty: &TypeRef, elements: &[T]) -> Result<Root<'f, 'h>, ObjectError> {
        let ObjectKind::Array { dims: 1, memory } = ty.kind() else { return Err(wrong_kind(ty, "ends")) };
        let ObjectKind::Memory(element) = memory.kind() else { return Err(wrong_kind(ty, "elements")) };
        check_size(element, T::SIZE)?;
        // If some bit patterns are invalid (`Bool`), the type is not one of bits.
        if check_bits(memory, element.ty, &[0xff; 16][..T::SIZE]).is_err() {
            let check = |bits: &T| check_bits(memory, element.ty, &bits.to_bytes()[..T::SIZE]);
            elements.iter().try_for_each(check)?;
        }
        let memory = self.memory_of(memory, elements.len(), Heap::allocate_to_fill)?;
        let (first, length) = bits_of(memory.get(self).object, T::SIZE)?;
        debug_assert_eq!(length, elements.len());
        let bytes = length.min(elements.len()) * T::SIZE;
        // SAFETY: the `Memory` has this many elements, and no other code can reach it.
        unsafe { first.copy_from_nonoverlapping(NonNull::from(elements).cast(), bytes) };
        self.array_over(ty, &[elements.len()], memory)
    }

    /// An `Array` without a `Memory` yet.
    pub(crate) fn bare_array(&mut self, ty: &TypeRef) -> Result<Root<'f, 'h>, ObjectError> {
        self.allocate(ty, ty.size())
    }

    /// Makes an array use a `Memory` from element `start` on; ignored if the `Memory` is shorter.
    pub(crate) fn set_memory(&self, array: Object, memory: Object, start: usize) {
        let Some(data) = address_of(memory, start) else { return };
        self.store(array, ARRAY_MEMORY, Some(memory));
        array.set_word_at(ARRAY_DATA, data);
    }

    /// Appends or prepends `count` undefined elements to a vector.
    pub fn grow(&mut self, vector: Root<'_, 'h>, end: End, count: usize) -> Result<(), ObjectError> {
        let old = vector.get(self).vector()?;
        let length = old.length.checked_add(count).filter(|&length| length <= isize::MAX as usize);
        let Some(length) = length else { return Err(OutOfMemory { requested: usize::MAX }.into()) };
        let room = match end {
            End::Front => old.start,
            End::Back => old.capacity.saturating_sub(old.start.saturating_add(old.length)),
        };
        if count > room {
            let ObjectKind::Array { memory, .. } = vector.get(self).desc().kind() else { return Ok(()) };
            let memory = memory.clone();
            // Neither sum wraps: both lengths are at most `isize::MAX`. There may not be enough memory for
            // that capacity, but for the elements.
            let capacity = (length + old.length).clamp(SMALLEST_GROWTH, isize::MAX as usize);
            self.frame(|scope| {
                let new = scope.memory(&memory, capacity)?;
                let (array, new) = (vector.get(scope), new.get(scope).object);
                let old = array.vector()?;
                let slack = capacity - length;
                // Room before the elements stays, but for a half: a queue grows at one end and loses elements at the other.
                let start = if end == End::Front { slack + count } else { old.start.min(slack / 2) };
                move_elements(&old, new, capacity, start);
                scope.set_memory(array.object, new, start);
                Ok::<_, ObjectError>(())
            })?;
        }
        let array = vector.get(self);
        if end == End::Front {
            let now = array.vector()?;
            self.set_memory(array.object, now.memory, now.start.saturating_sub(count));
        }
        array.object.set_word_at(ARRAY_DIMS, length as u64);
        Ok(())
    }

    /// Removes `count` elements at one end of a vector.
    pub fn delete(&mut self, vector: Root<'_, 'h>, end: End, count: usize) -> Result<(), ObjectError> {
        let array = vector.get(self);
        let old = array.vector()?;
        let Some(length) = old.length.checked_sub(count) else {
            return Err(ObjectError::Index { index: count, length: old.length });
        };
        let gone = if end == End::Front { 0..count } else { length..old.length };
        if !gone.is_empty() {
            old.offset(gone.end - 1)?;
            old.zero(old.offset(gone.start)?, gone.len() * old.stride());
            if old.is_union() {
                old.zero(old.selector(gone.start)?, gone.len());
            }
        }
        if end == End::Front {
            self.set_memory(array.object, old.memory, old.start.saturating_add(count));
        }
        array.object.set_word_at(ARRAY_DIMS, length as u64);
        Ok(())
    }
}

impl<'f, 'h> Scope<'f, 'h> {
    /// A string of `count` one-byte elements of an array or `Memory`, from `start` on.
    pub(crate) fn string_of_bytes(
        &mut self,
        of: Root<'_, 'h>,
        start: usize,
        count: usize,
    ) -> Result<Root<'f, 'h>, ObjectError> {
        let elements = of.get(self).elements()?.part(start, count)?;
        if elements.stride() != 1 || !elements.element.pointers.is_empty() || elements.is_union() {
            return Err(wrong_kind(of.get(self).desc(), "elements of one byte"));
        }
        let text = self.zeroed_string(count)?;
        // A moving `Memory` is elsewhere by now.
        let elements = of.get(self).elements()?.part(start, count)?;
        let from = elements_at(elements.memory).wrapping_add(elements.start);
        // SAFETY: `part` has checked the range against the `Memory`; the string has room for `count` bytes and is not shared yet.
        unsafe { text.get(self).object.copy_to_new(STRING_BYTES, elements.memory, from, count) };
        Ok(text)
    }

    /// A `Memory` of a type with one-byte elements, containing the bytes of a string.
    pub(crate) fn memory_of_string(
        &mut self,
        ty: &TypeRef,
        text: Root<'_, 'h>,
    ) -> Result<Root<'f, 'h>, ObjectError> {
        let length = text.get(self).string_bytes().map(<[u8]>::len);
        let one_byte = matches!(ty.kind(), ObjectKind::Memory(element) if element.stride == 1);
        let Some(length) = length.filter(|_| one_byte) else {
            return Err(wrong_kind(text.get(self).desc(), "bytes"));
        };
        let memory = self.memory(ty, length)?;
        let (new, text) = (memory.get(self).object, text.get(self).object);
        // SAFETY: a string has as many bytes as its length states, and the new `Memory`, not shared yet, has
        // room for them.
        unsafe { new.copy_to_new(MEMORY_ELEMENTS, text, STRING_BYTES, length) };
        Ok(memory)
    }

    /// A new `Memory` of a type, with `count` elements of an array or `Memory` with the same element type,
    /// from `start` on.
    pub(crate) fn memory_of_part(
        &mut self,
        ty: &TypeRef,
        of: Root<'_, 'h>,
        start: usize,
        count: usize,
    ) -> Result<Root<'f, 'h>, ObjectError> {
        let elements = of.get(self).elements()?.part(start, count)?;
        if elements.memory.desc().tag() != ty.tag() {
            return Err(wrong_kind(of.get(self).desc(), "elements of this type"));
        }
        let new = self.memory(ty, count)?;
        // A moving `Memory` is elsewhere by now.
        let elements = of.get(self).elements()?.part(start, count)?;
        move_elements(&elements, new.get(self).object, count, 0);
        Ok(new)
    }
}

impl<'a> Obj<'a, '_> {
    /// The elements of a one-dimensional array.
    fn vector(self) -> Result<Elements<'a>, ObjectError> {
        match self.desc().kind() {
            ObjectKind::Array { dims: 1, .. } => self.elements(),
            _ => Err(wrong_kind(self.desc(), "ends")),
        }
    }
}

/// Appends `count` elements to a vector if its `Memory` has room after it; returns whether it has. The
/// elements there are zero.
pub(crate) fn grow_in_place(vector: Object, count: i64) -> bool {
    let (ObjectKind::Array { dims: 1, .. }, Some(memory)) =
        (vector.desc().kind(), vector.pointer_at(ARRAY_MEMORY))
    else {
        return false;
    };
    let ObjectKind::Memory(element) = memory.desc().kind() else { return false };
    let stride = u64::from(element.stride);
    let past = |start: u64, count: u64| stride.checked_mul(count).and_then(|bytes| start.checked_add(bytes));
    let length = u64::try_from(count).ok().and_then(|count| vector.word_at(ARRAY_DIMS).checked_add(count));
    let end = length.and_then(|length| past(vector.word_at(ARRAY_DATA), length));
    let (Some(length), Some(end)) = (length, end) else { return false };
    // Elements without a size have no address.
    let fits =
        stride > 0 && past(memory.word_at(MEMORY_DATA), memory.word_at(LENGTH)).is_some_and(|l| end <= l);
    if fits {
        vector.set_word_at(ARRAY_DIMS, length);
    }
    fits
}

/// Removes the last `count` elements of a vector in place and clears them, if there are at least `count` and they are plain bits. Returns whether it did.
pub(crate) fn shrink_in_place(vector: Object, count: i64) -> bool {
    let shortened = plain_elements(vector, count).map(|plain| {
        let first = plain.start + plain.left * plain.stride;
        let first = elements_at(plain.memory).wrapping_add(first as usize);
        zero(plain.memory, first, ((plain.old - plain.left) * plain.stride) as usize);
        vector.set_word_at(ARRAY_DIMS, plain.left);
    });
    shortened.is_some()
}

/// Removes the first `count` elements of a vector in place and clears them, under the same conditions. Returns whether it did.
pub(crate) fn drop_first_in_place(vector: Object, count: i64) -> bool {
    let dropped = plain_elements(vector, count).map(|plain| {
        let bytes = (plain.old - plain.left) * plain.stride;
        zero(plain.memory, elements_at(plain.memory).wrapping_add(plain.start as usize), bytes as usize);
        vector.set_word_at(ARRAY_DATA, vector.word_at(ARRAY_DATA) + bytes);
        vector.set_word_at(ARRAY_DIMS, plain.left);
    });
    dropped.is_some()
}

/// Appends `count` elements to a vector of plain bits that has no room for them, in a new `Memory`. Returns the vector, which may have moved; `None` for other
/// vectors, and where there is no memory. A safepoint.
pub(crate) fn grow_plain(heap: &Heap, mutator: &Mutator, vector: Object, count: i64) -> Option<Object> {
    let old = plain_elements(vector, 0)?;
    let length = old.old.checked_add(u64::try_from(count).ok()?)?;
    let capacity = length.checked_add(old.old)?.max(SMALLEST_GROWTH as u64);
    let ObjectKind::Array { memory: ty, .. } = vector.desc().kind() else { return None };
    let (ty, bytes) = (ty.clone(), capacity.checked_mul(old.stride)?);
    if bytes > LARGEST_PLAIN {
        return None;
    }
    mutator.locals.borrow_mut().push(Some(vector));
    let new = heap.allocate(mutator, &ty, ty.size_with_length(|| capacity));
    let (vector, new) = (mutator.locals.borrow_mut().pop().flatten()?, new.ok()?);
    new.set_word_at(LENGTH, capacity);
    new.set_word_at(MEMORY_DATA, (new.address() + MEMORY_ELEMENTS) as u64);
    // Another thread may have changed the vector.
    let old = plain_elements(vector, 0).filter(|now| now.old == old.old && now.stride == old.stride)?;
    let start = (old.start / old.stride).min((capacity - length) / 2) * old.stride;
    let to = MEMORY_ELEMENTS + start as usize;
    // SAFETY: the old elements are inside their `Memory` (`plain_elements`); the new one has room for `start` bytes and `length` elements, of which they are the
    // first, and is not shared yet.
    unsafe {
        let from = elements_at(old.memory).wrapping_add(old.start as usize);
        new.copy_to_new(to, old.memory, from, (old.old * old.stride) as usize);
    }
    vector.set_pointer_at(ARRAY_MEMORY, Some(new));
    heap.after_store(mutator, vector);
    vector.set_word_at(ARRAY_DATA, (new.address() + to) as u64);
    vector.set_word_at(ARRAY_DIMS, length);
    Some(vector)
}

/// The elements of a vector that loses some, where they are plain bits.
struct PlainElements {
    memory: Object,
    stride: u64,
    /// Bytes of the `Memory` before the first one.
    start: u64,
    old: u64,
    left: u64,
}

/// `None` also if there are fewer than `count`.
fn plain_elements(vector: Object, count: i64) -> Option<PlainElements> {
    let ObjectKind::Array { dims: 1, .. } = vector.desc().kind() else { return None };
    let memory = vector.pointer_at(ARRAY_MEMORY)?;
    let ObjectKind::Memory(element) = memory.desc().kind() else { return None };
    let plain = element.repr == FieldRepr::Inline && element.pointers.is_empty();
    let (stride, old) = (u64::from(element.stride), vector.word_at(ARRAY_DIMS));
    let left = old.checked_sub(u64::try_from(count).ok()?).filter(|_| plain && stride > 0)?;
    // A program with open doors may have set the address and the length to anything.
    let start = vector.word_at(ARRAY_DATA).checked_sub(memory.word_at(MEMORY_DATA))?;
    let end = start.checked_add(old.checked_mul(stride)?)?;
    let fits = end <= memory.word_at(LENGTH).checked_mul(stride)?;
    fits.then_some(PlainElements { memory, stride, start, old, left })
}

/// Clears bytes of a `Memory`.
fn zero(memory: Object, first: usize, bytes: usize) {
    let zeros: &[u8; 256] = &[0; 256];
    for chunk in (0..bytes).step_by(zeros.len()) {
        memory.write_bits(first.wrapping_add(chunk), &zeros[..zeros.len().min(bytes - chunk)]);
    }
}

/// Copies all elements into a new `Memory` of `capacity` elements, from `start` on.
fn move_elements(old: &Elements<'_>, new: Object, capacity: usize, start: usize) {
    // Elements that a race made inconsistent are dropped.
    let count = old.length.min(old.capacity.saturating_sub(old.start)).min(capacity - start);
    let stride = old.stride();
    let at = |position: usize| MEMORY_ELEMENTS + position * stride;
    let from = |offset: usize| elements_at(old.memory).wrapping_add(offset);
    // SAFETY: both ranges are inside their objects: `count` is clamped to both; the new one is not shared
    // yet.
    unsafe { new.copy_to_new(at(start), old.memory, from(old.start * stride), count * stride) };
    if old.is_union() {
        let selectors = from(old.capacity * stride + old.start);
        // SAFETY: as above, for the selectors, which follow all elements.
        unsafe { new.copy_to_new(at(capacity) + start, old.memory, selectors, count) };
    }
}
