//! Stores into large arrays, recorded one by one where collections work in slices.
//!
//! Problem: the store barrier records the object that was stored into, and the collector scans it again. For an array of a million
//! references that is a pause of some milliseconds, each time that one of them changes.
//!
//! ```text
//!   Memory │ tag: … SLOTS OLD │ length │ data │ r r r r r r r … │ one bit for each word before
//!                                                  └─ stored: bit set, (Memory, offset) on the thread's list
//! ```
//!
//! So a `Memory` of references that is too large for a cell has a bit in its tag, and room for its bits after its elements. A store that
//! says where it stored sets the bit of the word and adds it to the list, once until the next scan, and `OLD` stays. A store that does not
//! (a copy of many elements) is recorded by its object, as in others. A collection visits the recorded references in the pause in which it ends,
//! and clears their bits, so that none is set in an array that dies.
//!
//! | row | operation | order | pairs with | without it |
//! |-----|-----------|-------|------------|------------|
//! | L1  | load and set a bit | Relaxed | – | two threads would both list the word; one location, so no order is needed |
//! | L2  | clear a bit | Relaxed | – | done while the world is stopped |
//!
//! Cost: a call for each store into an old large array; a 64th of such an array.

use std::sync::atomic::{AtomicU64, Ordering};

use super::desc::{Scan, TypeDesc};
use super::layout::{LENGTH, TAG_SLOTS};
use super::object::Object;

const WORD: usize = 8;
const BITS: usize = u64::BITS as usize;

/// The bytes of an object of `bytes` bytes with its bits.
pub(super) fn with_bits(bytes: usize) -> usize {
    bytes.next_multiple_of(WORD).saturating_add(bytes.div_ceil(WORD).div_ceil(BITS) * WORD)
}

/// Whether large objects of a type have bits.
pub(super) fn has_bits(ty: &TypeDesc) -> bool {
    matches!(ty.scan(), Scan::Elements { .. })
}

/// The word with the bit of a reference, and the bit; `None` if the object has no bits, or no reference of it has the offset.
fn bit_of<'a>(object: Object, offset: usize) -> Option<(&'a AtomicU64, u64)> {
    if object.tag() & TAG_SLOTS == 0 {
        return None;
    }
    let bytes = object.desc().size_with_length(|| object.word_at(LENGTH));
    let place = offset / WORD;
    if offset >= bytes || !offset.is_multiple_of(WORD) {
        return None;
    }
    let at = bytes.next_multiple_of(WORD) + place / BITS * WORD;
    // SAFETY: the object was allocated with `with_bits` bytes, because its tag has `TAG_SLOTS`, and its length never changes.
    let word = unsafe { &*object.place(at).cast::<AtomicU64>() };
    Some((word, 1 << (place % BITS)))
}

/// Records a stored reference on a list. Returns whether that was possible; otherwise the object is to be recorded.
pub(super) fn record(object: Object, offset: usize, list: &mut Vec<(Object, usize)>) -> bool {
    let Some((word, bit)) = bit_of(object, offset) else { return false };
    let is_set = word.load(Ordering::Relaxed) & bit != 0; // L1
    if is_set {
        return true;
    }
    let before = word.fetch_or(bit, Ordering::Relaxed); // L1
    if before & bit == 0 {
        list.push((object, offset));
    }
    true
}

/// Takes a recorded reference off the record and returns its referent. The world is stopped.
pub(super) fn take(object: Object, offset: usize) -> Option<Object> {
    if let Some((word, bit)) = bit_of(object, offset) {
        word.fetch_and(!bit, Ordering::Relaxed); // L2
    }
    object.pointer_at(offset)
}
