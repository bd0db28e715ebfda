//! The end of a thread in the middle of compiled code.
//!
//! ```text
//!   exit          compiled code ─► C ─► exit ─► destructors of thread-local values        the frames stand below
//!   pthread_exit  start of the thread ─► destructors of thread-local values               the frames are jumped over
//! ```
//!
//! Both run the destructors of thread-local values while the thread counts as running in the heap. The two are told apart by a
//! walk over the stack with the system's unwinder: the return address that the last exit from compiled code recorded
//! (`frames.rs`) is on the stack only if the frames stand. Addresses of frames do not decide it, because the destructors
//! may run deeper on the stack than the frames lay.
//!
//! **Invariant.** Frames that are classified as standing do stand, so a collection may read them to the end of the process. Frames that are
//! classified as abandoned are not read; if they do stand, because C without unwind tables lies between, no thread returns to them.
//!
//! Cost: a walk over the stack, once for each thread that ends in compiled code.

use std::ffi::c_void;
use std::sync::Arc;

use super::Thread;
use crate::instance::Runtime;

/// The state of a thread's frames when its thread-local values are destroyed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum FramesAtEnd {
    /// It has none, and is outside of the heap.
    None,
    /// They stay on the stack until the process is gone.
    Standing,
    /// They are gone, or no thread returns to them.
    Abandoned,
}

impl Thread {
    /// The state of the thread's frames. On the thread, while its thread-local values are destroyed.
    pub(super) fn frames_at_end(&self) -> FramesAtEnd {
        let innermost = self.frames().next();
        if innermost.is_none() && self.mutator.depth.get() == 0 && !self.mutator.participant.is_inside() {
            return FramesAtEnd::None;
        }
        match innermost {
            Some(frame) if frame.return_address != 0 && returns_to(frame.return_address) => {
                FramesAtEnd::Standing
            }
            _ => FramesAtEnd::Abandoned,
        }
    }

    /// The thread does not return to its frames, which stand. Its roots stay; collections do not wait for it.
    pub(super) fn stand(&self, runtime: &Runtime) {
        let paused = runtime.heap().pause(&self.mutator);
        // Never ended. The depth is 0 now, so calls by handlers of `atexit` enter and leave as calls in a blocking region do.
        let _ = paused;
    }

    /// The thread's frames are gone, and so are the guards in them: it is outside of compiled code and of the heap.
    pub(super) fn forget_frames(&self, runtime: &Runtime) {
        self.pop_exceptions(0);
        self.carried.stop();
        self.handler.set(std::ptr::null_mut());
        runtime.heap().forget_frames(&self.mutator);
        self.mutator.participant.leave_all();
        self.held.borrow_mut().clear();
    }

    /// The runtime, for a call by C that may never come back. `None` when it is gone.
    ///
    /// The thread owns the reference, so a frame that C jumps over leaks nothing.
    pub(crate) fn hold_runtime(&self) -> Option<HeldRuntime<'_>> {
        let runtime = self.runtime()?;
        let address = Arc::as_ptr(&runtime);
        self.held.borrow_mut().push(runtime);
        Some(HeldRuntime { thread: self, runtime: address })
    }
}

/// The runtime of a thread, which stays until this is dropped or its frame is jumped over.
pub(crate) struct HeldRuntime<'t> {
    thread: &'t Thread,
    runtime: *const Runtime,
}

impl std::ops::Deref for HeldRuntime<'_> {
    type Target = Runtime;

    fn deref(&self) -> &Runtime {
        // SAFETY: the thread's list holds the runtime until `self` is dropped; `forget_frames`, which clears the list, runs when the
        // frame that `self` lies in is gone.
        unsafe { &*self.runtime }
    }
}

impl Drop for HeldRuntime<'_> {
    fn drop(&mut self) {
        let last = self.thread.held.borrow_mut().pop();
        drop(last);
    }
}

/// Whether some frame of the running thread returns to an address.
#[cfg(all(unix, not(miri)))]
fn returns_to(address: usize) -> bool {
    /// The unwinder continues.
    const GOES_ON: i32 = 0;
    /// The unwinder stops: `_URC_NORMAL_STOP`.
    const STOPS: i32 = 4;

    struct Search {
        address: usize,
        found: bool,
    }

    unsafe extern "C" {
        fn _Unwind_Backtrace(
            visit: unsafe extern "C" fn(context: *mut c_void, search: *mut c_void) -> i32,
            search: *mut c_void,
        ) -> i32;
        fn _Unwind_GetIP(context: *mut c_void) -> usize;
    }

    /// # Safety
    ///
    /// Called by `_Unwind_Backtrace` below.
    unsafe extern "C" fn visit(context: *mut c_void, search: *mut c_void) -> i32 {
        // SAFETY: the unwinder hands over its context, and the pointer that it was given, which leads to the only reference.
        let (ip, search) = unsafe { (_Unwind_GetIP(context), &mut *search.cast::<Search>()) };
        search.found |= ip == search.address;
        if search.found { STOPS } else { GOES_ON }
    }

    let mut search = Search { address, found: false };
    // SAFETY: `visit` takes the pointer for what it is. The walk reads the stack of the running thread, whose frames stand while it does.
    unsafe { _Unwind_Backtrace(visit, (&raw mut search).cast()) };
    search.found
}

/// Unknown here.
#[cfg(not(all(unix, not(miri))))]
fn returns_to(_: usize) -> bool {
    false
}
