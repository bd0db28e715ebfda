//! The processor time of this thread: on a machine with other load, wall-clock time would include that.

/// Seconds that this thread has run.
pub(crate) fn cpu_seconds() -> f64 {
    #[repr(C)]
    struct Timespec {
        seconds: i64,
        nanos: i64,
    }
    unsafe extern "C" {
        fn clock_gettime(clock: i32, time: *mut Timespec) -> i32;
    }
    /// Linux's number for the clock of the calling thread.
    const CLOCK_THREAD_CPUTIME_ID: i32 = 3;
    let mut time = Timespec { seconds: 0, nanos: 0 };
    // SAFETY: the function fills the structure, which has the layout of C's on 64-bit Linux.
    let failed = unsafe { clock_gettime(CLOCK_THREAD_CPUTIME_ID, &raw mut time) } != 0;
    assert!(!failed, "this system has no clock for threads");
    time.seconds as f64 + time.nanos as f64 * 1e-9
}
