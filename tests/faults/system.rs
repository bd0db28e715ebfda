//! System calls that fail on demand.
//!
//! ```text
//!   brolga, std ──► mmap, mprotect, … ──► this file ──► the system
//!                                            └── the n-th one, or all from the n-th on: ENOMEM, EMFILE, EAGAIN
//! ```
//!
//! The functions here have the names of those of the C library, so the linker binds all references in the test's process to them, and shipped code does
//! not contain them. Internal calls of the C library, such as those of `malloc`, bypass them; so do the alternative signal stacks of Rust's threads,
//! without which `std` aborts.
//!
//! **S1.** One test at a time arms the counter, because the process has one table of functions.

use std::ffi::{c_char, c_int, c_long, c_uint, c_void};
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering::SeqCst};

/// How calls fail.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Plan {
    /// None does.
    Count,
    /// One of them: the first has the number 0.
    Once(usize),
    /// This one and all behind it.
    From(usize),
}

const NEVER: usize = usize::MAX;
static FIRST: AtomicUsize = AtomicUsize::new(NEVER);
static LAST: AtomicUsize = AtomicUsize::new(NEVER);
static SEEN: AtomicUsize = AtomicUsize::new(0);
static FAILED: AtomicUsize = AtomicUsize::new(0);
/// Bytes of addresses that are mapped by these functions.
static MAPPED: AtomicI64 = AtomicI64::new(0);

/// Begins to count calls from 0, which fail by the plan.
pub(crate) fn arm(plan: Plan) {
    let (first, last) = match plan {
        Plan::Count => (NEVER, NEVER),
        Plan::Once(at) => (at, at),
        Plan::From(at) => (at, NEVER),
    };
    SEEN.store(0, SeqCst);
    FAILED.store(0, SeqCst);
    LAST.store(last, SeqCst);
    FIRST.store(first, SeqCst);
}

/// Lets all calls succeed. How many were counted, and how many of them failed.
pub(crate) fn disarm() -> (usize, usize) {
    FIRST.store(NEVER, SeqCst);
    (SEEN.load(SeqCst), FAILED.load(SeqCst))
}

/// Bytes of addresses that are mapped.
pub(crate) fn mapped() -> i64 {
    MAPPED.load(SeqCst)
}

/// Whether this call is to fail, with this reason.
fn fails(reason: c_int) -> bool {
    let number = SEEN.fetch_add(1, SeqCst);
    let failed = number >= FIRST.load(SeqCst) && number <= LAST.load(SeqCst);
    if failed {
        FAILED.fetch_add(1, SeqCst);
        // SAFETY: the address is that of the thread's own error number.
        unsafe { *libc::__errno_location() = reason };
    }
    failed
}

/// # Safety
///
/// As the function of C.
#[unsafe(no_mangle)]
unsafe extern "C" fn mmap(
    address: *mut c_void,
    bytes: usize,
    protection: c_int,
    flags: c_int,
    file: c_int,
    offset: i64,
) -> *mut c_void {
    // Mappings of `std` itself have none of these.
    let ours = flags & (libc::MAP_NORESERVE | libc::MAP_FIXED) != 0;
    if ours && fails(libc::ENOMEM) {
        return libc::MAP_FAILED;
    }
    // SAFETY: by the contract of this function.
    let mapped = unsafe { libc::syscall(libc::SYS_mmap, address, bytes, protection, flags, file, offset) };
    let mapped = mapped as *mut c_void;
    if mapped != libc::MAP_FAILED && flags & libc::MAP_FIXED == 0 {
        MAPPED.fetch_add(bytes as i64, SeqCst);
    }
    mapped
}

/// # Safety
///
/// As the function of C.
#[unsafe(no_mangle)]
unsafe extern "C" fn mmap64(
    address: *mut c_void,
    bytes: usize,
    protection: c_int,
    flags: c_int,
    file: c_int,
    offset: i64,
) -> *mut c_void {
    // SAFETY: by the contract of this function.
    unsafe { mmap(address, bytes, protection, flags, file, offset) }
}

/// # Safety
///
/// As the function of C.
#[unsafe(no_mangle)]
unsafe extern "C" fn munmap(address: *mut c_void, bytes: usize) -> c_int {
    // SAFETY: by the contract of this function.
    let done = unsafe { libc::syscall(libc::SYS_munmap, address, bytes) } as c_int;
    if done == 0 {
        MAPPED.fetch_sub(bytes as i64, SeqCst);
    }
    done
}

/// # Safety
///
/// As the function of C.
#[unsafe(no_mangle)]
unsafe extern "C" fn mprotect(address: *mut c_void, bytes: usize, protection: c_int) -> c_int {
    if protection != libc::PROT_NONE && fails(libc::ENOMEM) {
        return -1;
    }
    // SAFETY: by the contract of this function.
    unsafe { libc::syscall(libc::SYS_mprotect, address, bytes, protection) as c_int }
}

/// # Safety
///
/// As the function of C.
#[unsafe(no_mangle)]
unsafe extern "C" fn madvise(address: *mut c_void, bytes: usize, advice: c_int) -> c_int {
    if fails(libc::ENOMEM) {
        return -1;
    }
    // SAFETY: by the contract of this function.
    unsafe { libc::syscall(libc::SYS_madvise, address, bytes, advice) as c_int }
}

/// # Safety
///
/// As the function of C.
#[unsafe(no_mangle)]
unsafe extern "C" fn memfd_create(name: *const c_char, flags: c_uint) -> c_int {
    if fails(libc::EMFILE) {
        return -1;
    }
    // SAFETY: by the contract of this function.
    unsafe { libc::syscall(libc::SYS_memfd_create, name, flags) as c_int }
}

/// # Safety
///
/// As the function of C.
#[unsafe(no_mangle)]
unsafe extern "C" fn ftruncate(file: c_int, length: i64) -> c_int {
    if fails(libc::EIO) {
        return -1;
    }
    // SAFETY: by the contract of this function.
    unsafe { libc::syscall(libc::SYS_ftruncate, file, length) as c_int }
}

/// # Safety
///
/// As the function of C.
#[unsafe(no_mangle)]
unsafe extern "C" fn fallocate(file: c_int, mode: c_int, offset: i64, bytes: i64) -> c_int {
    if fails(libc::EIO) {
        return -1;
    }
    // SAFETY: by the contract of this function.
    unsafe { libc::syscall(libc::SYS_fallocate, file, mode, offset, bytes) as c_int }
}

/// # Safety
///
/// As the function of C.
#[unsafe(no_mangle)]
unsafe extern "C" fn open64(path: *const c_char, flags: c_int, mode: c_uint) -> c_int {
    if fails(libc::EMFILE) {
        return -1;
    }
    // SAFETY: by the contract of this function. Without a file to create the mode is not looked at.
    unsafe { libc::syscall(libc::SYS_openat, libc::AT_FDCWD, path, flags | libc::O_LARGEFILE, mode) as c_int }
}

/// # Safety
///
/// As the function of C.
#[unsafe(no_mangle)]
unsafe extern "C" fn write(file: c_int, bytes: *const c_void, count: usize) -> isize {
    // The test's own messages arrive.
    if file > 2 && fails(libc::ENOSPC) {
        return -1;
    }
    // SAFETY: by the contract of this function.
    unsafe { libc::syscall(libc::SYS_write, file, bytes, count) as isize }
}

/// # Safety
///
/// As the function of C.
#[unsafe(no_mangle)]
unsafe extern "C" fn fsync(file: c_int) -> c_int {
    if fails(libc::EIO) {
        return -1;
    }
    // SAFETY: by the contract of this function.
    unsafe { libc::syscall(libc::SYS_fsync, file) as c_int }
}

/// # Safety
///
/// As the function of C.
#[unsafe(no_mangle)]
unsafe extern "C" fn rename(from: *const c_char, to: *const c_char) -> c_int {
    if fails(libc::EIO) {
        return -1;
    }
    let here = c_long::from(libc::AT_FDCWD);
    // SAFETY: by the contract of this function.
    unsafe { libc::syscall(libc::SYS_renameat2, here, from, here, to, 0) as c_int }
}

type Start = extern "C" fn(*mut c_void) -> *mut c_void;
type Create =
    unsafe extern "C" fn(*mut libc::pthread_t, *const libc::pthread_attr_t, Start, *mut c_void) -> c_int;

/// # Safety
///
/// As the function of C.
#[unsafe(no_mangle)]
unsafe extern "C" fn pthread_create(
    thread: *mut libc::pthread_t,
    attributes: *const libc::pthread_attr_t,
    start: Start,
    argument: *mut c_void,
) -> c_int {
    if fails(libc::EAGAIN) {
        return libc::EAGAIN;
    }
    // SAFETY: the name is a C string; the next function of it is that of the C library.
    let next = unsafe { libc::dlsym(libc::RTLD_NEXT, c"pthread_create".as_ptr()) };
    // SAFETY: the C library has it, with this type, or there would be no threads in this process.
    let next = unsafe { std::mem::transmute::<*mut c_void, Option<Create>>(next) };
    // SAFETY: by the contract of this function.
    next.map_or(libc::EAGAIN, |next| unsafe { next(thread, attributes, start, argument) })
}
