//! The fences between threads that enter compiled code, or the heap, and threads that stop them or retire code.
//!
//! Entering is frequent, so its fence is the compiler's where the system executes fences on other threads on demand
//! (`brolga_instances::Fences`): on Linux by `membarrier`, since version 4.14. The making of a heap tests for the call;
//! without it, both sides execute full fences.
//!
//! The registration belongs to the process, is inherited by a fork and cannot be undone; to register again costs a system call.
//!
//! Not done: `FlushProcessWriteBuffers` of Windows.

use brolga_instances::Fences;

/// The best fences that the system has.
pub(crate) fn system_fences() -> Fences {
    #[cfg(all(target_os = "linux", not(miri)))]
    if linux::register() {
        return Fences::asymmetric(linux::barrier);
    }
    Fences::symmetric()
}

#[cfg(all(target_os = "linux", not(miri)))]
mod linux {
    use libc::c_int;

    /// A fence on all running threads of the process, for those that have registered.
    const PRIVATE_EXPEDITED: c_int = 1 << 3;
    /// Registers the process for it.
    const REGISTER_PRIVATE_EXPEDITED: c_int = 1 << 4;

    fn membarrier(command: c_int) -> bool {
        // SAFETY: the call takes a command and flags, and touches no memory of the caller.
        unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) == 0 }
    }

    /// Whether [`barrier`] can be called from now on.
    pub(super) fn register() -> bool {
        // The kernel lists commands that it may refuse, so one is tried.
        membarrier(REGISTER_PRIVATE_EXPEDITED) && membarrier(PRIVATE_EXPEDITED)
    }

    /// A full fence on each running thread of the process.
    pub(super) fn barrier() {
        // After the registration the call fails only where the kernel finds no memory for a set of processors. No thread can continue without
        // the fence, so the call is repeated.
        while !membarrier(PRIVATE_EXPEDITED) {
            std::thread::yield_now();
        }
    }
}

#[cfg(all(test, target_os = "linux", not(miri)))]
mod tests {
    use super::*;

    #[test]
    fn the_barrier_can_be_called_wherever_it_was_chosen() {
        for _ in 0..2 {
            let fences = system_fences();
            fences.light();
            fences.heavy();
        }
        if linux::register() {
            assert_eq!(format!("{:?}", system_fences()), "asymmetric");
        }
    }
}
