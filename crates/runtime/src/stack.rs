//! Where the stack of the running operating-system thread ends.
//!
//! Compiled code compares its stack pointer with a limit, which requires the lowest usable address. The
//! system is queried once per thread and runtime (tens of microseconds on a main thread under glibc, which
//! reads a file).
//!
//! On a stack made by the program itself (fibers), which the system has no record of, a limit from another
//! stack is either always or never exceeded. Entering the run time there is an error
//! ([`AttachError::OtherStack`](crate::AttachError::OtherStack)).
//!
//! Not done: systems other than Linux and macOS.

/// The lowest address of the running thread's stack and its size; `None` if the system does not provide them.
#[cfg(all(any(target_os = "linux", target_os = "android"), not(miri)))]
pub(crate) fn current_bounds() -> Option<(usize, usize)> {
    let mut attributes = std::mem::MaybeUninit::<libc::pthread_attr_t>::uninit();
    let mut lowest = std::ptr::null_mut();
    let mut size = 0;
    // SAFETY: the first call initialises the attributes if it succeeds, and only then are they read and
    // destroyed. All pointers are to locals of the right type.
    let status = unsafe {
        match libc::pthread_getattr_np(libc::pthread_self(), attributes.as_mut_ptr()) {
            0 => {
                let status = libc::pthread_attr_getstack(attributes.as_ptr(), &mut lowest, &mut size);
                libc::pthread_attr_destroy(attributes.as_mut_ptr());
                status
            }
            failed => failed,
        }
    };
    (status == 0).then_some((lowest.addr(), size))
}

/// The lowest address of the running thread's stack and its size; `None` if the system does not provide them.
#[cfg(all(target_os = "macos", not(miri)))]
pub(crate) fn current_bounds() -> Option<(usize, usize)> {
    // SAFETY: both calls only read the system's data about the running thread.
    let (highest, size) = unsafe {
        let thread = libc::pthread_self();
        (libc::pthread_get_stackaddr_np(thread).addr(), libc::pthread_get_stacksize_np(thread))
    };
    Some((highest.checked_sub(size)?, size))
}

/// The lowest address of the running thread's stack and its size; `None` if the system does not provide them.
#[cfg(not(any(target_os = "linux", target_os = "android", target_os = "macos", miri)))]
pub(crate) fn current_bounds() -> Option<(usize, usize)> {
    None
}

/// Under Miri locals may be anywhere, and no code compares a stack pointer.
#[cfg(miri)]
pub(crate) fn current_bounds() -> Option<(usize, usize)> {
    Some((0, usize::MAX >> 1))
}

/// Whether the running thread is the process's initial thread.
#[cfg(all(any(target_os = "linux", target_os = "android"), not(miri)))]
pub(crate) fn is_main_thread() -> bool {
    // SAFETY: both calls only read the system's data about the running thread.
    unsafe { libc::getpid() == libc::gettid() }
}

/// Whether the running thread is the process's initial thread.
#[cfg(all(target_os = "macos", not(miri)))]
pub(crate) fn is_main_thread() -> bool {
    // SAFETY: the call only reads the system's data about the running thread.
    unsafe { libc::pthread_main_np() == 1 }
}

/// Whether the running thread is the process's initial thread, where the system reports it.
#[cfg(any(not(any(target_os = "linux", target_os = "android", target_os = "macos")), miri))]
pub(crate) fn is_main_thread() -> bool {
    false
}

#[cfg(all(test, not(miri)))]
mod tests {
    #[test]
    fn a_local_lies_within_the_bounds_on_every_thread() {
        let check = || {
            let local = 0u8;
            let here = (&raw const local).addr();
            let (lowest, size) = super::current_bounds().unwrap();
            assert!(lowest < here && here < lowest + size);
            size
        };
        check();
        let size = std::thread::Builder::new().stack_size(1 << 20).spawn(check).unwrap().join().unwrap();
        assert!((1 << 20..4 << 20).contains(&size), "{size}");
    }
}
