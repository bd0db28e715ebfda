//! System calls on pages, one function for each use. The callers' invariants are in `code_memory.rs`.

use std::io;
use std::ops::Range;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr::{NonNull, null_mut};

pub(crate) const READ: i32 = libc::PROT_READ;
pub(crate) const READ_WRITE: i32 = libc::PROT_READ | libc::PROT_WRITE;
pub(crate) const READ_EXECUTE: i32 = libc::PROT_READ | libc::PROT_EXEC;

const NOTHING_THERE: i32 = libc::MAP_PRIVATE | libc::MAP_ANON | libc::MAP_NORESERVE;

pub(crate) fn page_size() -> usize {
    // SAFETY: reads a constant of the system.
    let size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    // No supported system has larger pages than 64 KiB, so that is safe to assume if it is not reported.
    usize::try_from(size).ok().filter(|size| size.is_power_of_two()).unwrap_or(64 << 10)
}

pub(crate) fn reserve(bytes: usize) -> io::Result<NonNull<u8>> {
    // SAFETY: a new mapping at an address of the system's choice touches nothing that exists.
    let base = unsafe { libc::mmap(null_mut(), bytes, libc::PROT_NONE, NOTHING_THERE, -1, 0) };
    match NonNull::new(base.cast::<u8>()) {
        Some(start) if base != libc::MAP_FAILED => Ok(start),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Reserves addresses within a range; `None` if the system has none there. The middle of the range is tried first.
pub(crate) fn reserve_within(bytes: usize, range: &Range<usize>) -> Option<NonNull<u8>> {
    /// Distance of the tries.
    const STEP: usize = 32 << 20;
    /// The lowest address that is tried: systems keep some for themselves.
    const LOWEST: usize = 1 << 24;
    let (start, end) = (range.start.max(LOWEST), range.end.checked_sub(bytes)?);
    let middle = start.saturating_add(end.saturating_sub(start) / 2);
    let steps = end.saturating_sub(start) / STEP / 2 + 1;
    let tries =
        (0..=steps).flat_map(|step| [middle.checked_add(step * STEP), middle.checked_sub(step * STEP)]);
    for at in tries.flatten().map(|at| at / STEP * STEP).filter(|at| (start..=end).contains(at)) {
        let hint = std::ptr::without_provenance_mut(at);
        // SAFETY: a new mapping, at the address if it is free or at another one, touches nothing that exists.
        let base = unsafe { libc::mmap(hint, bytes, libc::PROT_NONE, NOTHING_THERE, -1, 0) };
        if base == libc::MAP_FAILED {
            return None;
        }
        let base = NonNull::new(base.cast::<u8>())?;
        if (start..=end).contains(&base.addr().get()) {
            return Some(base);
        }
        // SAFETY: the range was reserved just now, for nobody.
        unsafe { unmap(base, bytes) };
    }
    None
}

/// # Safety
///
/// The pages belong to the caller, and no reference into them contradicts the new protection.
pub(crate) unsafe fn protect(base: NonNull<u8>, bytes: usize, protection: i32) -> io::Result<()> {
    if bytes == 0 {
        return Ok(());
    }
    // SAFETY: by the contract of this function.
    done(unsafe { libc::mprotect(base.as_ptr().cast(), bytes, protection) })
}

/// Populates writable pages at once, if the system can: cheaper than a fault for each. It is a hint.
///
/// # Safety
///
/// The pages belong to the caller.
pub(crate) unsafe fn populate(base: NonNull<u8>, bytes: usize) {
    #[cfg(target_os = "linux")]
    // SAFETY: by the contract; what the pages hold stays. An error leaves the pages as they are, to be given memory when they are written.
    unsafe {
        libc::madvise(base.as_ptr().cast(), bytes, libc::MADV_POPULATE_WRITE)
    };
    #[cfg(not(target_os = "linux"))]
    let _ = (base, bytes);
}

/// Returns the memory of pages and leaves their addresses reserved.
///
/// # Safety
///
/// The pages belong to the caller, and nothing points into them any more.
pub(crate) unsafe fn forget(base: NonNull<u8>, bytes: usize) -> io::Result<()> {
    // SAFETY: by the contract of this function.
    unsafe { place(base, bytes, libc::PROT_NONE, NOTHING_THERE, -1, 0) }
}

/// Returns the memory of private pages; they stay accessible and read as zeros.
///
/// # Safety
///
/// The pages belong to the caller, and none of their content is used any more.
pub(crate) unsafe fn discard(base: NonNull<u8>, bytes: usize) -> io::Result<()> {
    // SAFETY: by the contract of this function.
    done(unsafe { libc::madvise(base.as_ptr().cast(), bytes, libc::MADV_DONTNEED) })
}

/// # Safety
///
/// The range was returned by `reserve`, and nothing points into it any more.
pub(crate) unsafe fn unmap(base: NonNull<u8>, bytes: usize) {
    // SAFETY: by the contract of this function. Failing to unmap leaks addresses, which is harmless.
    unsafe { libc::munmap(base.as_ptr().cast(), bytes) };
}

/// A file in memory, without a name, as long as `bytes` and without any pages yet.
#[cfg(target_os = "linux")]
pub(crate) fn memory_file(bytes: usize) -> io::Result<OwnedFd> {
    /// Since Linux 6.3 a file has a flag for whether it may be mapped executable.
    const MFD_EXEC: libc::c_uint = 0x10;
    let create = |flags| {
        // SAFETY: the name is a C string, which the system copies.
        match unsafe { libc::memfd_create(c"brolga code".as_ptr(), flags) } {
            -1 => Err(io::Error::last_os_error()),
            // SAFETY: the system has just returned the descriptor, and nothing else has it.
            fd => Ok(unsafe { OwnedFd::from_raw_fd(fd) }),
        }
    };
    let file = create(libc::MFD_CLOEXEC | MFD_EXEC).or_else(|_| create(libc::MFD_CLOEXEC))?;
    let length = libc::off_t::try_from(bytes).map_err(io::Error::other)?;
    // SAFETY: the descriptor is open, and nothing is mapped from it.
    done(unsafe { libc::ftruncate(file.as_raw_fd(), length) })?;
    Ok(file)
}

/// This system does not support it.
#[cfg(not(target_os = "linux"))]
pub(crate) fn memory_file(_: usize) -> io::Result<OwnedFd> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Maps a part of a file over reserved pages. A forked child does not get the mapping.
///
/// # Safety
///
/// The pages belong to the caller, and nothing points into them.
pub(crate) unsafe fn map_file(
    base: NonNull<u8>,
    bytes: usize,
    protection: i32,
    file: &OwnedFd,
    offset: usize,
) -> io::Result<()> {
    let offset = libc::off_t::try_from(offset).map_err(io::Error::other)?;
    // SAFETY: by the contract of this function.
    unsafe { place(base, bytes, protection, libc::MAP_SHARED, file.as_raw_fd(), offset) }?;
    #[cfg(target_os = "linux")]
    // SAFETY: advises about the mapping that was just made.
    done(unsafe { libc::madvise(base.as_ptr().cast(), bytes, libc::MADV_DONTFORK) })?;
    Ok(())
}

/// Returns the memory of a part of a file; it reads as zeros wherever it is mapped.
#[cfg(target_os = "linux")]
pub(crate) fn punch(file: &OwnedFd, offset: usize, bytes: usize) -> io::Result<()> {
    let (offset, bytes) = (offset as libc::off_t, bytes as libc::off_t);
    let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
    // SAFETY: changes the content of a file that belongs to the caller; whether anything relies on the content is the
    // caller's business, as with any write to a file.
    done(unsafe { libc::fallocate(file.as_raw_fd(), mode, offset, bytes) })
}

/// This system does not support it.
#[cfg(not(target_os = "linux"))]
pub(crate) fn punch(_: &OwnedFd, _: usize, _: usize) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// # Safety
///
/// The pages belong to the caller, and nothing points into them.
unsafe fn place(
    base: NonNull<u8>,
    bytes: usize,
    protection: i32,
    flags: i32,
    file: i32,
    offset: libc::off_t,
) -> io::Result<()> {
    let flags = flags | libc::MAP_FIXED;
    // SAFETY: the new mapping replaces pages that are the caller's by the contract of this function.
    let mapped = unsafe { libc::mmap(base.as_ptr().cast(), bytes, protection, flags, file, offset) };
    if mapped == libc::MAP_FAILED { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn done(status: i32) -> io::Result<()> {
    match status {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
