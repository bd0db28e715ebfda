//! Memory for machine code and its data.
//!
//! One range of addresses is reserved up front, so that everything loaded lies within reach of a 32-bit relative
//! reference; pages get memory only while a unit lives in them.
//!
//! ```text
//!   reservation   ┌────────┬───────────────┬──────────────────────────────┐
//!                 │ run    │ run           │ free (no access, no memory)  │
//!                 └────────┴───────────────┴──────────────────────────────┘
//!   run           ┌─────────────┬──────────────┬──────────┐
//!                 │ code        │ read-only    │ writable │   each on pages of its own
//!                 └─────────────┴──────────────┴──────────┘
//!   while linking    read+write     read+write   read+write
//!   sealed           read+execute   read         read+write
//! ```
//!
//! Invariants: M1, runs do not overlap and lie in the reservation; M2, a page is never writable and executable; M3, a
//! page that belongs to no run has no access and no memory; M4, the reservation outlives its runs.
//!
//! A failing system call is an error with its size. A run that cannot be returned (the system refuses the mapping) stays
//! reserved, without being handed out again, and is counted.
//!
//! Cost: a run costs about five system calls over its life, 1 to 3 µs each, and rounds each part up to pages.
//!
//! Not done: sharing pages between units, dual mappings; systems other than Unix.

use std::collections::BTreeMap;
use std::io;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, PoisonError};

/// What can be chosen about code memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CodeMemoryOptions {
    /// Bytes of address space to reserve: the limit of everything loaded at one time.
    pub reserve: usize,
}

impl Default for CodeMemoryOptions {
    /// Half of what a signed 32-bit distance reaches.
    fn default() -> Self {
        CodeMemoryOptions { reserve: MAX_RESERVE }
    }
}

/// Above this the two ends of the reservation could be out of each other's reach.
const MAX_RESERVE: usize = 1 << 30;

/// Why there is no code memory.
#[derive(thiserror::Error, Debug)]
pub enum CodeMemoryError {
    /// The system does not give so much address space. The system's limits are at fault.
    #[error("cannot reserve {bytes} bytes of address space for code")]
    Reserve {
        /// What was asked for.
        bytes: usize,
        /// The system's answer.
        source: io::Error,
    },
    /// Everything reserved is in use, or in pieces too small.
    #[error("code memory is full: {bytes} bytes wanted, {free} of {reserved} free")]
    Full {
        /// What was asked for.
        bytes: usize,
        /// What is free in all.
        free: usize,
        /// The size of the reservation.
        reserved: usize,
    },
    /// The system refuses memory for pages, or a change of their permissions.
    #[error("cannot change the protection of {bytes} bytes of code memory")]
    Protect {
        /// How much.
        bytes: usize,
        /// The system's answer.
        source: io::Error,
    },
}

/// What is in use.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CodeMemoryStats {
    /// Bytes of address space reserved.
    pub reserved: usize,
    /// Bytes in pages that belong to loaded units.
    pub in_use: usize,
    /// The most bytes that were in use at one time.
    pub peak: usize,
    /// Page runs, one for each loaded unit.
    pub runs: usize,
    /// Bytes that could not be returned to the system and will not be used again.
    pub lost: usize,
}

/// A reservation. Clones share it.
#[derive(Clone)]
pub struct CodeMemory {
    reservation: Arc<Reservation>,
}

struct Reservation {
    base: NonNull<u8>,
    bytes: usize,
    page: usize,
    free: Mutex<Free>,
}

// SAFETY: the base is an address of memory that this structure owns and that any thread may unmap; the list of free
// ranges is behind a lock.
unsafe impl Send for Reservation {}
// SAFETY: as above.
unsafe impl Sync for Reservation {}

struct Free {
    /// Free ranges by offset, never adjacent to each other.
    ranges: BTreeMap<usize, usize>,
    stats: CodeMemoryStats,
}

/// Sizes of the three parts of a run.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Parts {
    pub(crate) code: usize,
    pub(crate) read_only: usize,
    pub(crate) writable: usize,
}

/// The pages of one unit. They are returned when it is dropped.
pub(crate) struct Run {
    reservation: Arc<Reservation>,
    offset: usize,
    /// Sizes in whole pages.
    parts: Parts,
}

impl CodeMemory {
    /// Reserves address space.
    pub fn new(options: CodeMemoryOptions) -> Result<CodeMemory, CodeMemoryError> {
        let page = system::page_size();
        let bytes = options.reserve.clamp(page, MAX_RESERVE) / page * page;
        let base = system::reserve(bytes).map_err(|source| CodeMemoryError::Reserve { bytes, source })?;
        let free = Free {
            ranges: BTreeMap::from([(0, bytes)]),
            stats: CodeMemoryStats { reserved: bytes, ..CodeMemoryStats::default() },
        };
        Ok(CodeMemory { reservation: Arc::new(Reservation { base, bytes, page, free: Mutex::new(free) }) })
    }

    /// What is in use now.
    pub fn stats(&self) -> CodeMemoryStats {
        self.reservation.lock().stats
    }

    /// Pages for one unit, readable and writable.
    pub(crate) fn allocate(&self, parts: Parts) -> Result<Run, CodeMemoryError> {
        let reservation = &self.reservation;
        let full = |free: usize| CodeMemoryError::Full {
            bytes: parts.code.saturating_add(parts.read_only).saturating_add(parts.writable),
            free,
            reserved: reservation.bytes,
        };
        let paged = |bytes: usize| bytes.checked_next_multiple_of(reservation.page);
        let whole = || {
            let parts = Parts {
                code: paged(parts.code)?,
                read_only: paged(parts.read_only)?,
                writable: paged(parts.writable)?,
            };
            let bytes = parts.code.checked_add(parts.read_only)?.checked_add(parts.writable)?;
            Some((parts, bytes))
        };
        let mut free = reservation.lock();
        let available = reservation.bytes - free.stats.in_use - free.stats.lost;
        let (parts, bytes) = whole().ok_or_else(|| full(available))?;
        let offset = free.take(bytes).ok_or_else(|| full(available))?;
        drop(free);
        // From here on dropping the run returns the range.
        let run = Run { reservation: reservation.clone(), offset, parts };
        // SAFETY: by M1 the range belongs to this run alone, and nothing points into it yet.
        unsafe { system::protect(run.base(), bytes, system::READ_WRITE) }
            .map_err(|source| CodeMemoryError::Protect { bytes, source })?;
        Ok(run)
    }
}

impl Reservation {
    fn lock(&self) -> std::sync::MutexGuard<'_, Free> {
        // Nothing panics between the steps of a change.
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        // SAFETY: M4: no run is left, since each holds the reservation; nothing else points into the range.
        unsafe { system::unmap(self.base, self.bytes) }
    }
}

impl Free {
    /// The first range that is long enough, cut to size. A unit without any bytes gets the empty range.
    fn take(&mut self, bytes: usize) -> Option<usize> {
        let (&offset, &length) = self.ranges.iter().find(|(_, length)| **length >= bytes)?;
        if bytes > 0 {
            self.ranges.remove(&offset);
            if length > bytes {
                self.ranges.insert(offset + bytes, length - bytes);
            }
        }
        self.stats.in_use += bytes;
        self.stats.peak = self.stats.peak.max(self.stats.in_use);
        self.stats.runs += 1;
        Some(offset)
    }

    fn give_back(&mut self, offset: usize, bytes: usize) {
        if bytes == 0 {
            return;
        }
        let (mut start, mut end) = (offset, offset + bytes);
        if let Some((&before, &length)) = self.ranges.range(..offset).next_back()
            && before + length == offset
        {
            self.ranges.remove(&before);
            start = before;
        }
        if let Some(length) = self.ranges.remove(&end) {
            end += length;
        }
        self.ranges.insert(start, end - start);
    }
}

impl Run {
    /// The first byte.
    pub(crate) fn base(&self) -> NonNull<u8> {
        // SAFETY: M1, the offset lies in the reservation.
        unsafe { self.reservation.base.add(self.offset) }
    }

    /// The range of addresses of all parts.
    pub(crate) fn addresses(&self) -> std::ops::Range<usize> {
        let start = self.base().addr().get();
        start..start + self.bytes()
    }

    /// The parts, rounded up to pages.
    pub(crate) fn parts(&self) -> Parts {
        self.parts
    }

    fn bytes(&self) -> usize {
        self.parts.code + self.parts.read_only + self.parts.writable
    }

    /// Takes the right to write from code and read-only data, and makes the code executable by every thread.
    pub(crate) fn seal(&self) -> Result<(), CodeMemoryError> {
        let Parts { code, read_only, .. } = self.parts;
        let failed = |bytes| move |source| CodeMemoryError::Protect { bytes, source };
        if code > 0 {
            // SAFETY: the range is the code part of this run.
            unsafe { wasmtime_jit_icache_coherence::clear_cache(self.base().as_ptr().cast(), code) }
                .map_err(failed(code))?;
            // SAFETY: as above; M2, the new protection takes writing away as it gives execution.
            unsafe { system::protect(self.base(), code, system::READ_EXECUTE) }.map_err(failed(code))?;
        }
        if read_only > 0 {
            // SAFETY: the range is the read-only part of this run.
            unsafe { system::protect(self.base().add(code), read_only, system::READ) }
                .map_err(failed(read_only))?;
        }
        if code > 0 {
            wasmtime_jit_icache_coherence::pipeline_flush_mt().map_err(failed(code))?;
        }
        Ok(())
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        let bytes = self.bytes();
        // SAFETY: M1, the range is this run's own, and whoever used code or data in it held the run.
        let returned = bytes == 0 || unsafe { system::forget(self.base(), bytes) }.is_ok();
        let mut free = self.reservation.lock();
        free.stats.in_use -= bytes;
        free.stats.runs -= 1;
        if returned {
            free.give_back(self.offset, bytes);
        } else {
            free.stats.lost += bytes;
        }
    }
}

/// The system calls, each with the one thing that it is used for.
mod system {
    use std::io;
    use std::ptr::{NonNull, null_mut};

    pub(super) const READ: i32 = libc::PROT_READ;
    pub(super) const READ_WRITE: i32 = libc::PROT_READ | libc::PROT_WRITE;
    pub(super) const READ_EXECUTE: i32 = libc::PROT_READ | libc::PROT_EXEC;

    const NOTHING_THERE: i32 = libc::MAP_PRIVATE | libc::MAP_ANON | libc::MAP_NORESERVE;

    pub(super) fn page_size() -> usize {
        // SAFETY: asks for a constant of the system.
        let size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
        // No supported system has larger pages than 64 KiB, so that is safe to assume where it does not tell.
        usize::try_from(size).ok().filter(|size| size.is_power_of_two()).unwrap_or(64 << 10)
    }

    pub(super) fn reserve(bytes: usize) -> io::Result<NonNull<u8>> {
        // SAFETY: a new mapping at an address of the system's choice touches nothing that exists.
        let base = unsafe { libc::mmap(null_mut(), bytes, libc::PROT_NONE, NOTHING_THERE, -1, 0) };
        match NonNull::new(base.cast::<u8>()) {
            Some(start) if base != libc::MAP_FAILED => Ok(start),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// # Safety
    ///
    /// The pages belong to the caller, and no reference into them contradicts the new protection.
    pub(super) unsafe fn protect(base: NonNull<u8>, bytes: usize, protection: i32) -> io::Result<()> {
        if bytes == 0 {
            return Ok(());
        }
        // SAFETY: by the contract of this function.
        match unsafe { libc::mprotect(base.as_ptr().cast(), bytes, protection) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Gives the memory of pages back and leaves their addresses reserved.
    ///
    /// # Safety
    ///
    /// The pages belong to the caller, and nothing points into them any more.
    pub(super) unsafe fn forget(base: NonNull<u8>, bytes: usize) -> io::Result<()> {
        let flags = NOTHING_THERE | libc::MAP_FIXED;
        // SAFETY: the new, inaccessible mapping replaces pages that are the caller's by the contract of this function.
        let mapped = unsafe { libc::mmap(base.as_ptr().cast(), bytes, libc::PROT_NONE, flags, -1, 0) };
        if mapped == libc::MAP_FAILED { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// # Safety
    ///
    /// The range is one that `reserve` gave, and nothing points into it any more.
    pub(super) unsafe fn unmap(base: NonNull<u8>, bytes: usize) {
        // SAFETY: by the contract of this function. Failing to unmap leaks addresses, which is harmless.
        unsafe { libc::munmap(base.as_ptr().cast(), bytes) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn small() -> CodeMemory {
        CodeMemory::new(CodeMemoryOptions { reserve: 16 * system::page_size() }).unwrap()
    }

    fn code(bytes: usize) -> Parts {
        Parts { code: bytes, ..Parts::default() }
    }

    #[test]
    fn pages_return_and_merge() {
        let memory = small();
        let page = system::page_size();
        let runs: Vec<_> = (0..16).map(|_| memory.allocate(code(1)).unwrap()).collect();
        assert_eq!(memory.stats().in_use, 16 * page);
        assert!(matches!(memory.allocate(code(1)), Err(CodeMemoryError::Full { free: 0, .. })));
        // Dropped in an order that leaves gaps first.
        let (even, odd): (Vec<_>, Vec<_>) = runs.into_iter().enumerate().partition(|(i, _)| i % 2 == 0);
        drop(even);
        assert!(memory.allocate(code(2 * page)).is_err(), "only single pages are free");
        drop(odd);
        assert_eq!(memory.stats().runs, 0);
        let whole = memory.allocate(code(16 * page)).unwrap();
        drop(whole);
        let stats = memory.stats();
        assert_eq!((stats.in_use, stats.peak, stats.lost), (0, 16 * page, 0));
    }

    #[test]
    fn absurd_sizes_are_errors() {
        let memory = small();
        for bytes in [usize::MAX, usize::MAX / 2, 1 << 40] {
            let parts = Parts { code: bytes, read_only: bytes, writable: 1 };
            assert!(matches!(memory.allocate(parts), Err(CodeMemoryError::Full { .. })));
        }
        assert_eq!(memory.stats().in_use, 0);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn no_page_is_ever_writable_and_executable_and_sealed_parts_have_their_protection() {
        let memory = small();
        let page = system::page_size();
        let run = memory.allocate(Parts { code: 1, read_only: 1, writable: 1 }).unwrap();
        let protections = || {
            let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
            (0..3)
                .map(|part| {
                    let at = run.addresses().start + part * page;
                    let line = maps.lines().find(|line| {
                        let (start, end) = line.split(' ').next().unwrap().split_once('-').unwrap();
                        let number = |text| usize::from_str_radix(text, 16).unwrap();
                        (number(start)..number(end)).contains(&at)
                    });
                    line.unwrap().split(' ').nth(1).unwrap().to_string()
                })
                .collect::<Vec<_>>()
        };
        assert_eq!(protections(), ["rw-p", "rw-p", "rw-p"]);
        run.seal().unwrap();
        assert_eq!(protections(), ["r-xp", "r--p", "rw-p"]);
    }
}
