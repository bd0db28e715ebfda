//! Pointer classes of types: pointers that keep objects alive, and pointers that need live objects.

use brolga_ir::{PtrClass, Type};

/// Whether pointers of this type keep, or need, an object alive.
pub(crate) fn is_managed(ty: Type) -> bool {
    !matches!(ty.ptr_class(), None | Some(PtrClass::Raw))
}
