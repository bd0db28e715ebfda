//! Outputs: results written through a pointer of the caller.

use std::mem::MaybeUninit;

use crate::error::BrolgaError;

/// The caller's memory for an output.
type Out<'a, T> = Option<&'a mut MaybeUninit<T>>;

/// The memory, or an error for a null pointer.
pub(crate) fn place<'a, T>(out: Out<'a, T>, name: &str) -> Result<&'a mut MaybeUninit<T>, BrolgaError> {
    out.ok_or_else(|| BrolgaError::null(name))
}

/// The target of a pointer, or an error for a null pointer.
pub(crate) fn given<T>(pointer: Option<T>, name: &str) -> Result<T, BrolgaError> {
    pointer.ok_or_else(|| BrolgaError::null(name))
}

/// Passes ownership of an object to C, which frees it.
pub(crate) fn give<T>(place: &mut MaybeUninit<*mut T>, object: T) {
    place.write(Box::into_raw(Box::new(object)));
}
