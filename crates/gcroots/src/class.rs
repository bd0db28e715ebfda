//! Pointer classes of types: pointers that keep objects alive, and pointers that require live objects.

use brolga_ir::{PtrClass, Type};

/// Whether pointers of this type keep an object alive, or require one to be alive.
pub(crate) fn is_managed(ty: Type) -> bool {
    !matches!(ty.ptr_class(), None | Some(PtrClass::Raw))
}
