//! Permanent boxes: constants of programs as objects, one for each type and value.
//!
//! ```text
//!   word │ 0 │ tag │ value … │        16-byte words, so that every value is aligned
//!                  └─ the object
//! ```
//!
//! They hold bits but no references, are never changed, and live as long as the description of their type.
//!
//! Cost: a look-up in a balanced tree under a lock, when code is linked.

use std::collections::BTreeMap;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, PoisonError};

use brolga_ir::meter::{Charge, Meter};

use super::desc::TypeDesc;
use super::layout::{TAG_BITS, TAG_PERMANENT};
use super::object::Object;

/// All permanent boxes of a heap, by tag and bytes.
#[derive(Debug)]
pub(crate) struct Permanent {
    boxes: Mutex<BTreeMap<(u64, u128), Words>>,
    meter: Arc<Meter>,
}

/// A header and a value, with their memory charge.
pub(crate) type Words = Arc<([u128; 2], Charge)>;

/// The approximate size of a box, including its row in the map.
const BOX: usize = 128;

impl Permanent {
    /// No boxes yet; they are charged to a meter.
    pub(crate) fn new(meter: &Arc<Meter>) -> Permanent {
        Permanent { boxes: Mutex::default(), meter: meter.clone() }
    }

    /// Removes and returns the boxes of types.
    pub(crate) fn take(&self, is_taken: impl Fn(u64) -> bool) -> Vec<Words> {
        let mut boxes = self.boxes.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = boxes.extract_if(.., |(tag, _), _| is_taken(tag & !TAG_BITS));
        taken.map(|(_, words)| words).collect()
    }

    /// The box of a value of a primitive type, of at most 16 bytes.
    pub(crate) fn boxed(&self, ty: &TypeDesc, bits: u128) -> Object {
        let tag = ty.tag() | TAG_PERMANENT;
        // A panic under this lock cannot leave the map half changed.
        let mut boxes = self.boxes.lock().unwrap_or_else(PoisonError::into_inner);
        let words = boxes.entry((tag, bits)).or_insert_with(|| {
            let mut head = [0; 16];
            head[8..].copy_from_slice(&tag.to_ne_bytes());
            Arc::new(([u128::from_ne_bytes(head), bits.to_le()], Charge::new(&self.meter, BOX)))
        });
        let value = (&raw const words.0[1]).cast::<u8>().cast_mut();
        // SAFETY: the second word of the allocation, which lives as long as its type (`census.rs`), with the
        // type's tag before it. It is in an allocation, so it is not null.
        unsafe { Object::from_pointer(NonNull::new_unchecked(value)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::heap::{Heap, HeapOptions};
    use brolga_ir::Context;
    use brolga_ir::types::Type;

    #[test]
    fn equal_constants_are_one_object() {
        let heap = Heap::new(HeapOptions::default());
        let desc = |ty| heap.describe(&Context::new(), ty).unwrap();
        let (wide, float) = (desc(Type::INT128), desc(Type::FLOAT64));
        let permanent = Permanent::new(&Arc::default());
        let one = permanent.boxed(&wide, 1 << 100);
        assert_eq!(one, permanent.boxed(&wide, 1 << 100));
        assert_ne!(one, permanent.boxed(&wide, 1));
        assert_ne!(permanent.boxed(&wide, 1), permanent.boxed(&float, 1));
        assert!(one.address().is_multiple_of(16));
        assert_eq!((one.desc().name(), one.word_at(0), one.word_at(8)), ("Int128", 0, 1 << 36));
    }
}
