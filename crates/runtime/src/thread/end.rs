//! The end of a thread in the middle of compiled code.
//!
//! ```text
//!   exit          compiled code ─► C ─► exit ─► destructors of thread-local values        the frames still exist below
//!   pthread_exit  start of the thread ─► destructors of thread-local values               the frames are jumped over
//! ```
//!
//! Both run the destructors of thread-local values while the thread counts as running in the heap. A walk
//! over the stack with the system's unwinder distinguishes the two: the return address recorded by the last
//! exit from compiled code (`frames.rs`) is on the stack only if the frames still exist. Addresses of frames
//! do not decide it, because the destructors may run deeper on the stack than the frames were.
//!
//! **Invariant.** Frames classified as standing do exist, so a collection may read them until the end of the
//! process. Frames classified as abandoned are not read; if they do exist, because of C frames without unwind
//! tables in between, no thread returns to them.
//!
//! Cost: a walk over the stack, once for each thread that ends in compiled code.

use std::ffi::c_void;
use std::sync::Arc;

use super::Thread;
use crate::instance::Runtime;

/// The state of a thread's frames when its thread-local values are destroyed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum FramesAtEnd {
    /// It has none, and is outside the heap.
    None,
    /// They stay on the stack until the process ends.
    Standing,
    /// They no longer exist, or no thread returns to them.
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

    /// Called when the thread does not return to its frames, which still exist. Its roots stay; collections
    /// do not wait for it.
    pub(super) fn stand(&self, runtime: &Runtime) {
        let paused = runtime.heap().pause(&self.mutator);
        // Never ended. The depth is 0 now, so calls by `atexit` handlers enter and leave like calls in a
        // blocking region.
        let _ = paused;
    }

    /// Called when the thread's frames no longer exist, nor the guards in them: it is outside compiled code
    /// and the heap.
    pub(super) fn forget_frames(&self, runtime: &Runtime) {
        self.pop_exceptions(0);
        self.carried.stop();
        self.handler.set(std::ptr::null_mut());
        runtime.heap().forget_frames(&self.mutator);
        self.mutator.participant.leave_all();
        self.held.borrow_mut().clear();
    }

    /// The runtime, for a C call that may never return. `None` if it is gone.
    ///
    /// The thread owns the reference, so a frame that C jumps over leaks nothing.
    pub(crate) fn hold_runtime(&self) -> Option<HeldRuntime<'_>> {
        let runtime = self.runtime()?;
        let address = Arc::as_ptr(&runtime);
        self.held.borrow_mut().push(runtime);
        Some(HeldRuntime { thread: self, runtime: address })
    }
}

/// The runtime of a thread, held until this is dropped or its frame is jumped over.
pub(crate) struct HeldRuntime<'t> {
    thread: &'t Thread,
    runtime: *const Runtime,
}

impl std::ops::Deref for HeldRuntime<'_> {
    type Target = Runtime;

    fn deref(&self) -> &Runtime {
        // SAFETY: the thread's list holds the runtime until `self` is dropped; `forget_frames`, which clears
        // the list, runs only when the frame that contains `self` no longer exists.
        unsafe { &*self.runtime }
    }
}

impl Drop for HeldRuntime<'_> {
    fn drop(&mut self) {
        let last = self.thread.held.borrow_mut().pop();
        drop(last);
    }
}

/// Whether any frame of the running thread returns to an address.
#[cfg(all(unix, not(miri)))]
fn returns_to(address: usize) -> bool {
    /// Makes the unwinder continue.
    const GOES_ON: i32 = 0;
    /// Makes the unwinder stop: `_URC_NORMAL_STOP`.
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
        // SAFETY: the unwinder passes its context, and the pointer that it was given, which is the only
        // reference.
        let (ip, search) = unsafe { (_Unwind_GetIP(context), &mut *search.cast::<Search>()) };
        search.found |= ip == search.address;
        if search.found { STOPS } else { GOES_ON }
    }

    let mut search = Search { address, found: false };
    // SAFETY: `visit` expects this pointer. The walk reads the stack of the running thread, whose frames
    // exist meanwhile.
    unsafe { _Unwind_Backtrace(visit, (&raw mut search).cast()) };
    search.found
}

/// Not supported here.
#[cfg(not(all(unix, not(miri))))]
fn returns_to(_: usize) -> bool {
    false
}
