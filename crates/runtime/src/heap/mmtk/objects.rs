//! The object model required by mmtk.
//!
//! ```text
//!   start ─┐        ┌─ reference
//!          │ tag    │ word 0: forwarding pointer once the object is copied │ …
//! ```
//!
//! The tag stays readable in the old copy, the object's first word does not. Forwarding bits, marks and pins
//! are side metadata.
//!
//! **Addresses of elements** are in registers, in an `Array` and in the `Memory` itself, without a reference
//! to their object. So an object with elements, a `Memory` or a `String`, is allocated where nothing moves
//! ([`stays`]).

use mmtk::util::copy::{CopySemantics, GCWorkerCopyContext};
use mmtk::util::{Address, ObjectReference};
use mmtk::vm::{
    ObjectModel, ObjectTracer, VMGlobalLogBitSpec, VMLocalForwardingBitsSpec, VMLocalForwardingPointerSpec,
    VMLocalLOSMarkNurserySpec, VMLocalMarkBitSpec, VMLocalPinningBitSpec,
};

use super::super::array::elements_at;
use super::super::desc::{ObjectKind, Scan, TypeDesc};
use super::super::layout::{LENGTH, MEMORY_ELEMENTS, TAG_BYTES, TAG_PERMANENT};
use super::super::object::Object;
use super::extent;

/// Implements mmtk's interface.
#[derive(Default)]
pub(super) struct Vm;

pub(super) const TAG: usize = TAG_BYTES;

/// The object at an address passed by mmtk.
pub(super) fn at(address: Address) -> Object {
    let pointer = std::ptr::NonNull::new(address.to_mut_ptr::<u8>());
    // SAFETY: mmtk passes addresses of memory that it manages for us, which are not null. The caller upholds
    // O1.
    unsafe { Object::from_pointer(pointer.unwrap_or(std::ptr::NonNull::dangling())) }
}

pub(super) fn object(reference: ObjectReference) -> Object {
    at(reference.to_raw_address())
}

/// mmtk's reference to an object; `None` for permanent ones, which mmtk does not manage.
pub(super) fn reference(object: Object) -> Option<ObjectReference> {
    if object.tag() & TAG_PERMANENT != 0 {
        return None;
    }
    ObjectReference::from_raw_address(Address::from_mut_ptr(object.pointer().as_ptr()))
}

/// The size of an object that has not been forwarded.
fn size(object: Object) -> usize {
    let desc = object.desc();
    let bytes = match desc.kind() {
        ObjectKind::Memory(_) if elements_at(object) != MEMORY_ELEMENTS => desc.size(),
        _ => desc.size_with_length(|| object.word_at(LENGTH)),
    };
    // An allocated object has a size.
    extent(bytes).unwrap_or(16)
}

/// mmtk's interface to the words and copies of objects.
#[derive(Default)]
pub(super) struct Objects;

impl ObjectModel<Vm> for Objects {
    const GLOBAL_LOG_BIT_SPEC: VMGlobalLogBitSpec = VMGlobalLogBitSpec::side_first();
    const LOCAL_FORWARDING_POINTER_SPEC: VMLocalForwardingPointerSpec =
        VMLocalForwardingPointerSpec::in_header(8 * TAG as isize);
    const LOCAL_FORWARDING_BITS_SPEC: VMLocalForwardingBitsSpec = VMLocalForwardingBitsSpec::side_first();
    const LOCAL_MARK_BIT_SPEC: VMLocalMarkBitSpec =
        VMLocalMarkBitSpec::side_after(Self::LOCAL_FORWARDING_BITS_SPEC.as_spec());
    const LOCAL_PINNING_BIT_SPEC: VMLocalPinningBitSpec =
        VMLocalPinningBitSpec::side_after(Self::LOCAL_MARK_BIT_SPEC.as_spec());
    const LOCAL_LOS_MARK_NURSERY_SPEC: VMLocalLOSMarkNurserySpec =
        VMLocalLOSMarkNurserySpec::side_after(Self::LOCAL_PINNING_BIT_SPEC.as_spec());
    const OBJECT_REF_OFFSET_LOWER_BOUND: isize = TAG as isize;

    fn copy(
        from: ObjectReference,
        semantics: CopySemantics,
        context: &mut GCWorkerCopyContext<Vm>,
    ) -> ObjectReference {
        let old = object(from);
        let bytes = size(old);
        let start = context.alloc_copy(from, bytes, 16, TAG, semantics);
        // SAFETY: the old object has that many bytes from its tag on, and the new place has room for them;
        // they do not overlap.
        unsafe {
            let source = Self::ref_to_object_start(from).to_ptr::<u8>();
            start.to_mut_ptr::<u8>().copy_from_nonoverlapping(source, bytes);
        }
        // A copy is not permanent, as its original is not.
        let to = reference(at(start + TAG)).unwrap_or(from);
        context.post_copy(to, bytes, semantics);
        to
    }

    fn copy_to(from: ObjectReference, _: ObjectReference, _: Address) -> Address {
        unreachable!("asked by plans that are not offered, about {from}")
    }

    fn get_reference_when_copied_to(_: ObjectReference, to: Address) -> ObjectReference {
        // SAFETY: an address of memory is not null, and cells are aligned.
        unsafe { ObjectReference::from_raw_address_unchecked(to + TAG) }
    }

    fn get_current_size(reference: ObjectReference) -> usize {
        size(object(reference))
    }

    fn get_size_when_copied(reference: ObjectReference) -> usize {
        size(object(reference))
    }

    fn get_align_when_copied(_: ObjectReference) -> usize {
        16
    }

    fn get_align_offset_when_copied(_: ObjectReference) -> usize {
        TAG
    }

    fn get_type_descriptor(_: ObjectReference) -> &'static [i8] {
        &[]
    }

    fn ref_to_object_start(reference: ObjectReference) -> Address {
        reference.to_raw_address() - TAG
    }

    fn ref_to_header(reference: ObjectReference) -> Address {
        reference.to_raw_address() - TAG
    }

    fn dump_object(reference: ObjectReference) {
        eprintln!("{reference}: {}", object(reference).desc().name());
    }
}

/// Whether objects of a type must not move.
pub(super) fn stays(desc: &TypeDesc) -> bool {
    matches!(desc.kind(), ObjectKind::Memory(_) | ObjectKind::String)
}

/// Traces an object's referents, and updates its references to their new addresses.
pub(super) fn scan(object: Object, tracer: &mut impl ObjectTracer) {
    let mut visit = |offset: usize| {
        let Some(old) = object.pointer_at(offset).and_then(reference) else { return };
        let new = tracer.trace_object(old);
        if new != old {
            object.set_pointer_at(offset, Some(self::object(new)));
        }
    };
    match object.desc().scan() {
        Scan::Nothing => {}
        Scan::Words(mask) => {
            let mut rest = *mask;
            while rest != 0 {
                visit(8 * rest.trailing_zeros() as usize);
                rest &= rest - 1;
            }
        }
        Scan::Offsets(offsets) => offsets.iter().for_each(|&at| visit(at as usize)),
        Scan::Elements { stride, offsets } => {
            for index in 0..object.word_at(LENGTH) as usize {
                let element = MEMORY_ELEMENTS + index * *stride as usize;
                offsets.iter().for_each(|&at| visit(element + at as usize));
            }
        }
    }
}
