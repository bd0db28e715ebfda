//! Boxed entries: compiled functions that take their arguments as objects, for dynamic calls.

use std::any::Any;
use std::ffi::c_void;
use std::sync::Arc;

/// The address of the running [`Thread`](crate::Thread), as compiled code passes it on.
pub type ThreadPointer = *const c_void;

/// The trampoline of a compiled entry: address, thread, arguments, their number; it returns the result, or null if an exception is
/// pending.
pub type EntryCaller = unsafe extern "C" fn(usize, ThreadPointer, *const *mut u8, i64) -> *mut u8;

/// Keeps compiled code, and the memory that it names, where they are.
pub type CodeOwner = Arc<dyn Any + Send + Sync>;

/// A compiled function that takes its arguments as objects.
#[derive(Clone, Debug)]
pub struct CodeEntry {
    pub(crate) address: usize,
    pub(crate) call: EntryCaller,
    /// It keeps the code for as long as the method.
    pub(super) owner: CodeOwner,
}

impl CodeEntry {
    /// An entry at an address, what calls it, and what keeps it: a call in flight holds the owner, so that methods may be removed
    /// at any time.
    ///
    /// # Safety
    ///
    /// `call` calls the function at `address` as [`EntryCaller`] says, on the thread that it is called on, for as long as `owner`
    /// is held. The function keeps the contract of compiled code with the heap: it takes objects of
    /// the heap of the thread's runtime, which the caller keeps alive, and gives one.
    pub unsafe fn new(address: usize, call: EntryCaller, owner: CodeOwner) -> CodeEntry {
        CodeEntry { address, call, owner }
    }
}
