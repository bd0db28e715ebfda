//! Results of the API in Rust.

use std::ffi::CStr;
use std::mem::MaybeUninit;

use brolga_capi::error::{BrolgaError, brolga_error_message};

pub(crate) type Failed = Option<Box<BrolgaError>>;

/// The output of a function that succeeds.
pub(crate) fn out<T>(call: impl FnOnce(Option<&mut MaybeUninit<T>>) -> Failed) -> T {
    let mut place = MaybeUninit::uninit();
    let error = call(Some(&mut place));
    assert!(error.is_none(), "{error:?}");
    // SAFETY: a function that succeeds has written its output.
    unsafe { place.assume_init() }
}

/// The same, of a handle.
pub(crate) fn owned<T>(call: impl FnOnce(Option<&mut MaybeUninit<*mut T>>) -> Failed) -> Box<T> {
    // SAFETY: the API returns each result of `Box::into_raw` once.
    unsafe { Box::from_raw(out(call)) }
}

/// The message of a function that fails.
pub(crate) fn message(error: Failed) -> String {
    let error = error.expect("an error");
    // SAFETY: a text that lives as long as the error.
    unsafe { CStr::from_ptr(brolga_error_message(Some(&error))) }.to_string_lossy().into_owned()
}
