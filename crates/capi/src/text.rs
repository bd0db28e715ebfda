//! C strings and arrays, read with checks; errors and texts passed between C and this library.

use std::ffi::{CStr, CString, c_char};
use std::mem::MaybeUninit;
use std::slice;

use crate::error::{BrolgaCode, BrolgaError, for_c};

/// A zero-terminated C string.
///
/// # Safety
///
/// The pointer is null, or refers to bytes that end in a zero byte and do not change while the result is used.
pub(crate) unsafe fn c_text<'a>(text: *const c_char, name: &str) -> Result<&'a str, BrolgaError> {
    if text.is_null() {
        return Err(BrolgaError::null(name));
    }
    // SAFETY: it is not null; the contract covers the rest.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_str().map_err(|error| BrolgaError::new(BrolgaCode::Argument, format!("`{name}`: {error}")))
}

/// A C array. Null is an empty array if its length is 0.
///
/// # Safety
///
/// The pointer is null, or refers to `length` values that do not change while the result is used.
pub(crate) unsafe fn array<'a, T>(
    first: *const T,
    length: usize,
    name: &str,
) -> Result<&'a [T], BrolgaError> {
    match (first.is_null(), length) {
        (_, 0) => Ok(&[]),
        (true, _) => Err(BrolgaError::null(name)),
        (false, _) if !first.is_aligned() || length > isize::MAX as usize / size_of::<T>().max(1) => Err(
            BrolgaError::new(BrolgaCode::Argument, format!("`{name}` is not an array of {length} elements")),
        ),
        // SAFETY: it is not null, is aligned, and its size fits; the contract covers the rest.
        (false, _) => Ok(unsafe { slice::from_raw_parts(first, length) }),
    }
}

/// Copies elements into a C array, up to its capacity.
///
/// # Safety
///
/// `to` is null, or points to room for `capacity` elements, which no other thread uses meanwhile.
pub(crate) unsafe fn fill<T: Copy>(
    to: *mut T,
    capacity: usize,
    from: &[T],
    name: &str,
) -> Result<(), BrolgaError> {
    // SAFETY: by the contract.
    let to = unsafe { room(to, capacity, name) }?;
    for (place, element) in to.iter_mut().zip(from) {
        place.write(*element);
    }
    Ok(())
}

/// The room of a C array. Null has no room, and its capacity has to be 0.
///
/// # Safety
///
/// `to` is null, or points to room for `capacity` elements, which nothing else uses while the result is used.
pub(crate) unsafe fn room<'a, T>(
    to: *mut T,
    capacity: usize,
    name: &str,
) -> Result<&'a mut [MaybeUninit<T>], BrolgaError> {
    match (to.is_null(), capacity) {
        (_, 0) => Ok(&mut []),
        (true, _) => Err(BrolgaError::null(name)),
        (false, _) if !to.is_aligned() || capacity > isize::MAX as usize / size_of::<T>().max(1) => Err(
            BrolgaError::new(BrolgaCode::Argument, format!("`{name}` has no room for {capacity} elements")),
        ),
        // SAFETY: it is not null, is aligned, and its size fits; the contract covers the rest.
        (false, _) => Ok(unsafe { slice::from_raw_parts_mut(to.cast(), capacity) }),
    }
}

/// The text of a parameter `name`.
///
/// # Safety
///
/// As [`c_text`].
pub(crate) unsafe fn name<'a>(text: *const c_char) -> Result<&'a str, BrolgaError> {
    // SAFETY: by the contract.
    unsafe { c_text(text, "name") }
}

/// An array of texts.
///
/// # Safety
///
/// `first` is null, or refers to `count` pointers, each as [`c_text`].
pub(crate) unsafe fn names<'a>(
    first: *const *const c_char,
    count: usize,
    name: &str,
) -> Result<Vec<&'a str>, BrolgaError> {
    // SAFETY: by the contract.
    let texts = unsafe { array(first, count, name) }?;
    // SAFETY: by the contract.
    let read = |(index, text): (usize, &*const c_char)| unsafe { c_text(*text, &format!("{name}[{index}]")) };
    texts.iter().enumerate().map(read).collect()
}

/// Passes ownership of a text to C, which frees it.
pub(crate) fn give_text(place: &mut MaybeUninit<*mut c_char>, text: &str) {
    place.write(for_c(text).into_raw());
}

/// An error of the caller's own, for functions that this library calls: a program that has called a host function sees an `ErrorException` with this message. The message
/// is a text of `length` bytes.
///
/// # Safety
///
/// There are `length` bytes at `message`, or it is null.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn brolga_error_new(message: *const c_char, length: usize) -> Option<Box<BrolgaError>> {
    // SAFETY: by the contract.
    let bytes = unsafe { array(message.cast::<u8>(), length, "message") };
    let told = |bytes: &[u8]| BrolgaError::new(BrolgaCode::Exception, String::from_utf8_lossy(bytes));
    Some(Box::new(bytes.map_or_else(|error| error, told)))
}

/// Frees a text that a function of this library has given to its caller. Null is nothing.
///
/// # Safety
///
/// `text` is null, or was given by this library and not freed since.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn brolga_text_free(text: *mut c_char) {
    if !text.is_null() {
        // SAFETY: the text came from `CString::into_raw`, like all texts that this library returns, and was not freed.
        drop(unsafe { CString::from_raw(text) });
    }
}
