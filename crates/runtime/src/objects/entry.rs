//! Boxed entries: compiled functions that take their arguments as objects, for dynamic calls.

use std::any::Any;
use std::ffi::c_void;
use std::sync::Arc;

/// The address of the running [`Thread`](crate::Thread), as passed by compiled code.
pub type ThreadPointer = *const c_void;

/// The trampoline of a compiled entry: address, thread, arguments, their number; it returns the result, or null if an exception is
/// pending.
pub type EntryCaller = unsafe extern "C" fn(usize, ThreadPointer, *const *mut u8, i64) -> *mut u8;

/// Keeps compiled code, and the memory it refers to, alive and in place.
pub type CodeOwner = Arc<dyn Any + Send + Sync>;

/// A compiled function that takes its arguments as objects.
#[derive(Clone, Debug)]
pub struct CodeEntry {
    pub(crate) address: usize,
    pub(crate) call: EntryCaller,
    /// Keeps the code as long as the method.
    pub(super) owner: CodeOwner,
}

impl CodeEntry {
    /// An entry at an address, with its trampoline and its owner: a call in flight holds the owner, so that
    /// methods may be removed at any time.
    ///
    /// # Safety
    ///
    /// `call` calls the function at `address` as documented for [`EntryCaller`], on the calling thread, for
    /// as long as `owner` is held. The function upholds the contract of compiled code with the heap: it takes
    /// objects of the heap of the thread's runtime, which the caller keeps alive, and returns one.
    pub unsafe fn new(address: usize, call: EntryCaller, owner: CodeOwner) -> CodeEntry {
        CodeEntry { address, call, owner }
    }
}
