//! Raw access to objects: the tag word and the fields after it.
//!
//! ```text
//!   address of the object ─┐
//!   ┌───────────────────┬──▼───────────────────────────┐
//!   │ tag               │ fields, or length and bytes … │
//!   └───────────────────┴──────────────────────────────┘
//!     63 …            4   3   2   1          0
//!     address of TypeDesc │ 0 │ SLOTS │ PERMANENT │ OLD
//! ```
//!
//! | bit | meaning |
//! |---|---|
//! | `OLD` | survived a collection and is not in a remembered set: storing a pointer into it takes the slow path |
//! | `SLOTS` | stores into it are remembered one by one (`slots.rs`) |
//! | `PERMANENT` | is not a cell of the heap, holds no pointer into it, and is never freed |
//!
//! **O1.** An [`Object`] is held only while its referent cannot be freed: by the collector during a pause, or
//! by the running mutator that reached it, until its next safepoint. Its tag refers to a [`TypeDesc`] of the
//! heap, which lives as long. **O2.** A pointer field holds null or such an object.
//!
//! Fields are read and written with atomic operations, because threads of the program may race on them; a
//! race may yield an old or a new value, but never half a pointer.
//!
//! | row | operation | order | pairs with | without it |
//! |-----|-----------|-------|------------|------------|
//! | G1  | tag: load | Relaxed | – | nothing: the type part never changes, the bits are hints to the store barrier |
//! | G2  | clear `OLD`: fetch-and | Relaxed | – | two threads would both remember the object; one location, so no order is needed |
//! | G3  | tag: store | Relaxed | – | done before the object is reachable, or while the world is stopped |
//! | S1  | store of a pointer | Release | S2 | another thread would follow the pointer to fields it cannot see yet |
//! | S2  | load of a pointer | Acquire | S1 | as S1, from the other side |
//! | B1  | load and store of bits | Relaxed | – | nothing: races on bits have no order to keep |
//! | A1  | atomic field: load, store, compare and exchange | SeqCst | A1 | a program that requires a single order of all changes would see two |

use std::ptr::NonNull;
use std::sync::atomic::{AtomicPtr, AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering};

use super::desc::{ObjectKind, TypeDesc};
use super::layout::{LENGTH, STRING_BYTES, TAG_BITS, TAG_BYTES, TAG_OLD};

/// An object (O1).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(transparent)]
pub(crate) struct Object(NonNull<u8>);

// SAFETY: an address; O1 restricts its use.
unsafe impl Send for Object {}

impl TypeDesc {
    fn at(&self, offset: usize) -> Object {
        let address = std::ptr::from_ref(self).addr() + offset;
        let pointer = std::ptr::with_exposed_provenance_mut(address);
        // SAFETY: every description that can be referred to is in a `Record`, with a tag before it and before
        // the instance, whose provenance `TypeRef::new` exposed. Both are permanent objects of the heap.
        unsafe { Object::from_pointer(NonNull::new_unchecked(pointer)) }
    }

    /// The type as an object.
    pub(crate) fn object(&self) -> Object {
        self.at(0)
    }

    /// The only object of the type, if it has exactly one.
    pub(crate) fn instance(&self) -> Option<Object> {
        self.instance_offset().map(|offset| self.at(offset))
    }
}

impl Object {
    /// # Safety
    ///
    /// The pointer is the address of an object, and O1 holds for as long as the result is used.
    pub(crate) unsafe fn from_pointer(pointer: NonNull<u8>) -> Object {
        Object(pointer)
    }

    pub(crate) fn pointer(self) -> NonNull<u8> {
        self.0
    }

    pub(crate) fn address(self) -> usize {
        self.0.addr().get()
    }

    /// The address, for machine code to contain.
    pub(crate) fn expose(self) -> usize {
        self.0.as_ptr().expose_provenance()
    }

    fn tag_word<'a>(self) -> &'a AtomicU64 {
        // SAFETY: every object has a tag word before it, with the object's alignment (O1).
        unsafe { self.0.sub(TAG_BYTES).cast().as_ref() }
    }

    pub(crate) fn tag(self) -> u64 {
        self.tag_word().load(Ordering::Relaxed) // G1
    }

    pub(crate) fn set_tag(self, tag: u64) {
        self.tag_word().store(tag, Ordering::Relaxed); // G3
    }

    /// Clears `OLD` in the tag; returns whether it was set.
    pub(crate) fn forget_old(self) -> bool {
        self.tag_word().fetch_and(!TAG_OLD, Ordering::Relaxed) & TAG_OLD != 0 // G2
    }

    /// The object's type. The lifetime is the heap's: callers bind it to a borrow of the heap.
    pub(crate) fn desc<'a>(self) -> &'a TypeDesc {
        // SAFETY: the tag of an object holds the address of a type of its heap (O1).
        unsafe { desc_of_tag(self.tag()) }
    }

    /// The type that this object is, if it is one. The lifetime is the heap's, as for [`Object::desc`].
    pub(crate) fn as_desc<'a>(self) -> Option<&'a TypeDesc> {
        let is_type = matches!(self.desc().kind(), ObjectKind::DataType);
        // SAFETY: the address of a type is its tag without the low bits.
        is_type.then(|| unsafe { desc_of_tag(self.address() as u64) })
    }

    /// The bytes of a `String` or `Symbol`, or the name of a `Module`. The lifetime is the object's: callers
    /// bind it to whatever keeps the object alive.
    pub(crate) fn string<'a>(self) -> Option<&'a [u8]> {
        if !matches!(self.desc().kind(), ObjectKind::String | ObjectKind::Symbol | ObjectKind::Module) {
            return None;
        }
        let length = usize::try_from(self.word_at(LENGTH)).ok()?;
        // SAFETY: a string has as many bytes as its length states, which are written only before the string
        // is published.
        Some(unsafe { self.bytes(STRING_BYTES, length) })
    }

    /// The address of bits. Elements of a column (`column.rs`) are memory of the host: their offset from the object wraps, and
    /// their provenance is exposed, as the heap's is to compiled code.
    pub(super) fn place(self, offset: usize) -> *mut u8 {
        std::ptr::with_exposed_provenance_mut(self.address().wrapping_add(offset))
    }

    fn word<'a>(self, offset: usize) -> &'a AtomicPtr<u8> {
        debug_assert!(offset.is_multiple_of(8));
        // SAFETY: callers pass offsets of pointer fields of the object's layout, or of elements within its length.
        unsafe { self.0.add(offset).cast().as_ref() }
    }

    /// The object that a pointer field refers to.
    pub(crate) fn pointer_at(self, offset: usize) -> Option<Object> {
        NonNull::new(self.word(offset).load(Ordering::Acquire)).map(Object) // S2
    }

    /// Stores without a barrier.
    pub(crate) fn set_pointer_at(self, offset: usize, value: Option<Object>) {
        let pointer = value.map_or(std::ptr::null_mut(), |object| object.0.as_ptr());
        self.word(offset).store(pointer, Ordering::Release); // S1
    }

    /// Compares and exchanges a pointer, without a barrier.
    pub(crate) fn exchange_pointer_at(self, offset: usize, seen: Option<Object>, value: Object) -> bool {
        let seen = seen.map_or(std::ptr::null_mut(), |object| object.0.as_ptr());
        let done = self.word(offset).compare_exchange(
            seen,
            value.0.as_ptr(),
            Ordering::SeqCst, // A1
            Ordering::SeqCst, // A1
        );
        done.is_ok()
    }

    /// Bits of 1, 2, 4 or 8 bytes, in one access. They must be aligned to their size.
    pub(crate) fn scalar_at(self, offset: usize, size: usize) -> u64 {
        let place = self.place(offset);
        // SAFETY: callers pass offsets and sizes of scalars inside the object, whose layout aligns them.
        unsafe {
            match size {
                1 => (*place.cast::<AtomicU8>()).load(Ordering::SeqCst).into(), // A1
                2 => (*place.cast::<AtomicU16>()).load(Ordering::SeqCst).into(), // A1
                4 => (*place.cast::<AtomicU32>()).load(Ordering::SeqCst).into(), // A1
                _ => (*place.cast::<AtomicU64>()).load(Ordering::SeqCst),       // A1
            }
        }
    }

    /// The corresponding store.
    pub(crate) fn set_scalar_at(self, offset: usize, size: usize, bits: u64) {
        let place = self.place(offset);
        // SAFETY: as for `scalar_at`.
        unsafe {
            match size {
                1 => (*place.cast::<AtomicU8>()).store(bits as u8, Ordering::SeqCst), // A1
                2 => (*place.cast::<AtomicU16>()).store(bits as u16, Ordering::SeqCst), // A1
                4 => (*place.cast::<AtomicU32>()).store(bits as u32, Ordering::SeqCst), // A1
                _ => (*place.cast::<AtomicU64>()).store(bits, Ordering::SeqCst),      // A1
            }
        }
    }

    /// The corresponding compare-and-exchange.
    pub(crate) fn exchange_scalar_at(self, offset: usize, size: usize, seen: u64, bits: u64) -> bool {
        const ONE: Ordering = Ordering::SeqCst; // A1
        let place = self.place(offset);
        // SAFETY: as for `scalar_at`.
        unsafe {
            match size {
                1 => (*place.cast::<AtomicU8>()).compare_exchange(seen as u8, bits as u8, ONE, ONE).is_ok(),
                2 => {
                    (*place.cast::<AtomicU16>()).compare_exchange(seen as u16, bits as u16, ONE, ONE).is_ok()
                }
                4 => {
                    (*place.cast::<AtomicU32>()).compare_exchange(seen as u32, bits as u32, ONE, ONE).is_ok()
                }
                _ => (*place.cast::<AtomicU64>()).compare_exchange(seen, bits, ONE, ONE).is_ok(),
            }
        }
    }

    /// A word of bits: a length, an address.
    pub(crate) fn word_at(self, offset: usize) -> u64 {
        // SAFETY: callers pass offsets of words inside the object, or of its elements.
        unsafe { &*self.place(offset).cast::<AtomicU64>() }.load(Ordering::Relaxed) // B1
    }

    pub(crate) fn set_word_at(self, offset: usize, value: u64) {
        // SAFETY: callers pass offsets of words inside the object, or of its elements.
        unsafe { &*self.place(offset).cast::<AtomicU64>() }.store(value, Ordering::Relaxed); // B1
    }

    /// Copies bits out of the object, by whole words where they are whole in the object.
    pub(crate) fn read_bits(self, offset: usize, out: &mut [u8]) {
        let (words, rest) = whole_words(offset, out.len());
        for (index, word) in out[..words].chunks_exact_mut(8).enumerate() {
            word.copy_from_slice(&self.word_at(offset.wrapping_add(8 * index)).to_ne_bytes());
        }
        for index in rest {
            // SAFETY: callers pass ranges inside the object, or of its elements.
            let source = unsafe { &*self.place(offset.wrapping_add(index)).cast::<AtomicU8>() };
            out[index] = source.load(Ordering::Relaxed); // B1
        }
    }

    /// Copies bits into the object, by whole words where they are whole in the object.
    pub(crate) fn write_bits(self, offset: usize, bytes: &[u8]) {
        let (words, rest) = whole_words(offset, bytes.len());
        for (index, word) in bytes[..words].as_chunks().0.iter().enumerate() {
            self.set_word_at(offset.wrapping_add(8 * index), u64::from_ne_bytes(*word));
        }
        for index in rest {
            // SAFETY: callers pass ranges inside the object, or of its elements.
            let target = unsafe { &*self.place(offset.wrapping_add(index)).cast::<AtomicU8>() };
            target.store(bytes[index], Ordering::Relaxed); // B1
        }
    }

    /// The bytes of an object that are no longer written.
    ///
    /// # Safety
    ///
    /// The range is in the object and is not written while the slice is used; O1 holds for `'a`.
    pub(crate) unsafe fn bytes<'a>(self, offset: usize, length: usize) -> &'a [u8] {
        // SAFETY: by the contract; memory of the heap is initialised.
        unsafe { std::slice::from_raw_parts(self.0.add(offset).as_ptr(), length) }
    }

    /// Fills an object that no other code can reach yet.
    ///
    /// # Safety
    ///
    /// The range is in the object, and only the caller can reach the object.
    pub(crate) unsafe fn fill_new(self, offset: usize, bytes: &[u8]) {
        // SAFETY: by the contract; `bytes` borrows no memory of the heap that could overlap a new object.
        unsafe { self.0.add(offset).copy_from_nonoverlapping(NonNull::from(bytes).cast(), bytes.len()) }
    }

    /// Copies bytes of one object into another that no other code can reach yet.
    ///
    /// # Safety
    ///
    /// Both ranges are in their objects, or the source's elements, and only the caller can reach `self`.
    pub(crate) unsafe fn copy_to_new(self, to: usize, source: Object, from: usize, bytes: usize) {
        // SAFETY: by the contract; a new object overlaps no other.
        unsafe { self.0.add(to).as_ptr().copy_from_nonoverlapping(source.place(from), bytes) }
    }

    /// Prefetches the tag.
    pub(crate) fn prefetch(self) {
        prefetch(self.0.as_ptr().wrapping_sub(TAG_BYTES));
    }
}

/// Splits a range of an object: the number of bytes, from its start, that are whole words, and the range of
/// the rest.
fn whole_words(offset: usize, length: usize) -> (usize, std::ops::Range<usize>) {
    let words = if offset.is_multiple_of(8) { length & !7 } else { 0 };
    (words, words..length)
}

/// The type that a tag refers to.
///
/// # Safety
///
/// The tag belongs to an object, or was returned by [`TypeDesc::tag`]; the type's heap lives for `'a`.
pub(crate) unsafe fn desc_of_tag<'a>(tag: u64) -> &'a TypeDesc {
    let address = (tag & !TAG_BITS) as usize;
    // SAFETY: by the contract; `TypeDesc::tag` exposed the address.
    unsafe { &*std::ptr::with_exposed_provenance::<TypeDesc>(address) }
}

/// Prefetches the cache line of an address.
pub(crate) fn prefetch(address: *const u8) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: a prefetch reads nothing and faults on no address.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(address.cast());
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = address;
}
