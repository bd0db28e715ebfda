//! Pointer classes of types: pointers that keep objects alive, and pointers that need live objects.

use brolga_ir::{LowType, PtrClass, Type};

/// The class of a pointer type.
pub(crate) fn class(ty: Type) -> Option<PtrClass> {
    match ty.as_low() {
        Some(LowType::Ptr(class)) => Some(class),
        _ => None,
    }
}

/// Whether pointers of this type keep, or need, an object alive.
pub(crate) fn is_managed(ty: Type) -> bool {
    !matches!(class(ty), None | Some(PtrClass::Raw))
}
