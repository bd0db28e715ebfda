//! Data that C passes together with one of its functions.
//!
//! The data belongs to this library from the call that passes it. `free` is called with it once: when the function can no longer be called, or at once if the call fails.
//! Data that holds a handle of its session keeps the session alive until the session is ended, or until the definition that the function serves is removed.

use std::ffi::c_void;

/// Frees the data of a function of C when nothing can call the function any more.
pub type BrolgaFreeFn = Option<unsafe extern "C" fn(data: *mut c_void)>;

/// Data of C, and how it is freed.
pub(crate) struct Data {
    data: *mut c_void,
    free: BrolgaFreeFn,
}

// SAFETY: the data is passed only to the C functions that came with it. By the contract of each function of this library that takes such data, these
// are called by several threads and on any thread.
unsafe impl Send for Data {}
// SAFETY: as above.
unsafe impl Sync for Data {}

impl Data {
    /// Takes ownership of data.
    pub(crate) fn new(data: *mut c_void, free: BrolgaFreeFn) -> Data {
        Data { data, free }
    }

    /// The argument for the C functions.
    pub(crate) fn pointer(&self) -> *mut c_void {
        self.data
    }
}

impl Drop for Data {
    fn drop(&mut self) {
        if let Some(free) = self.free {
            // SAFETY: the function and its data were passed together, and `free` may be called on any thread, by the contract. The owner of this value called with
            // the data, and no longer exists.
            unsafe { free(self.data) };
        }
    }
}
