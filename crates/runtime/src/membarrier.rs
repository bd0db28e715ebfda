//! The fences between threads that enter compiled code, or the heap, and threads that stop them or retire code.
//!
//! Entering is frequent, so its fence is a compiler fence where the system can execute fences on other
//! threads on demand (`brolga_instances::Fences`): on Linux by `membarrier`, since version 4.14. Creating a
//! heap tests for the call; without it, both sides execute full fences.
//!
//! The registration belongs to the process, is inherited by a fork and cannot be undone; registering again
//! costs a system call.
//!
//! Not done: `FlushProcessWriteBuffers` of Windows.

use brolga_instances::Fences;

/// The best fences available on the system.
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

    /// A fence on all running threads of registered processes.
    const PRIVATE_EXPEDITED: c_int = 1 << 3;
    /// Registers the process for it.
    const REGISTER_PRIVATE_EXPEDITED: c_int = 1 << 4;

    fn membarrier(command: c_int) -> bool {
        // SAFETY: the call takes a command and flags, and does not access the caller's memory.
        unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) == 0 }
    }

    /// Registers the process; returns whether [`barrier`] can be called from now on.
    pub(super) fn register() -> bool {
        // The kernel lists commands that it may refuse, so one is tried.
        membarrier(REGISTER_PRIVATE_EXPEDITED) && membarrier(PRIVATE_EXPEDITED)
    }

    /// A full fence on each running thread of the process.
    pub(super) fn barrier() {
        // After the registration the call fails only if the kernel cannot allocate a set of processors. No
        // thread may continue without the fence, so the call is retried.
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
