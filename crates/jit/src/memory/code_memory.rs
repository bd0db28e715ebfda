//! Memory for machine code and its data.
//!
//! One range of addresses is reserved up front, so that all loaded code and data are within reach of a 32-bit relative
//! reference. It is divided by two schemes at once:
//!
//! ```text
//!   addresses of the code                                      addresses to write to (dual mapping)
//!   ┌──────────────────────────┬─────┬──────────────┐          ┌──────────────────────────┬ ─ ─ ─
//!   │ stripe: code    r-x      │ run │ stripe: data │          │ the same memory   rw-    │
//!   └──────────────────────────┴─────┴──────────────┘          └──────────────────────────┴ ─ ─ ─
//!     chunk chunk ◄── blocks     own     read-only  r--          one file in memory under both
//!                                pages   writable   rw-
//! ```
//!
//! * **Stripes** are chunks of one permission, shared by many units; a unit has a *block* of bytes in each that it needs
//!   (`arena.rs`). Code and read-only data have a second mapping at other addresses, by which they are written. No
//!   permission ever changes, so loading and freeing need no system call for that. Freed memory is overwritten with instructions
//!   that trap, and reused; pages without any block return to the system, some later, and so do chunks.
//! * **Sparse** pages are of one unit alone, an image's, with both mappings; a function is written when it is needed.
//! * **Runs** are pages of one unit alone: written, then sealed. They are for writers that use a single address, and for
//!   systems where dual mapping is refused.
//!
//! ```text
//!   run               code             read-only    writable      each on its own pages
//!   while linking     read+write       read+write   read+write
//!   sealed            read+execute     read         read+write
//! ```
//!
//! Invariants: M1, blocks, runs and chunks do not overlap and are inside the reservation; M2, no mapping is ever writable
//! and executable; M3, a page outside of chunks and runs has no access and no memory; M4, the reservation outlives its
//! content; M5, an operation that fails does not change loaded code.
//!
//! A failing system call is an error with its size. Pages that cannot be returned (the system refuses the mapping) stay
//! reserved and unused, and are counted.
//!
//! **Forks.** Mappings of the file are not inherited: a child that runs compiled code after `fork` ends with a fault, instead
//! of running its parent's writes. In a child nothing is freed, and loading is an error. [`Mapping::Private`] is for
//! programs that fork and continue.
//!
//! **Poison.** A page that was returned to the system reads as zeros until its chunk is dropped: no trap on x86-64.
//!
//! **Fetching.** `fetch.rs` orders writing code before running it on another processor. On x86-64 nothing is needed, even if
//! the bytes were other code before: the processor snoops writes by physical address.
//!
//! Cost: a block takes two short locks over its life, a run five system calls of 1 to 3 µs; on aarch64 either one more.
//!
//! Not done: systems other than Unix.

use std::collections::BTreeMap;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex};

use crate::memory::arena::Pool;
use crate::memory::error::CodeMemoryError;
use crate::memory::pages::{self, READ_WRITE};
use crate::memory::reservation::{CodeMemoryStats, Dual, Free, Part, Parts, Reservation, Side, State};
use crate::memory::space::{Blocks, Draft, Run, Sparse};

/// How code is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Mapping {
    /// Through a second mapping, where the system supports that; otherwise as `Private`.
    #[default]
    Dual,
    /// Before its pages become executable. Each unit has its own pages.
    Private,
}

/// Options of code memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CodeMemoryOptions {
    /// Bytes of address space to reserve, at most 1 GiB, and as many for the second mapping: less if the process has a limit
    /// (`ulimit -v`) or the system refuses this size.
    pub reserve: usize,
    /// The most bytes of units that may be loaded at one time, beside what the reservation allows.
    pub limit: Option<usize>,
    /// How code is written.
    pub mapping: Mapping,
}

impl Default for CodeMemoryOptions {
    /// Room for the code of some hundred thousand functions. A process may have thousands of reservations, so one is not as large as it could be.
    fn default() -> Self {
        CodeMemoryOptions { reserve: DEFAULT_RESERVE, limit: None, mapping: Mapping::default() }
    }
}

/// The default reservation.
const DEFAULT_RESERVE: usize = 256 << 20;

/// Above this the two ends of the reservation could be out of each other's reach.
const MAX_RESERVE: usize = 1 << 30;

/// Where the address space of the process is limited, a reservation takes 1/n of it, twice with the second mapping.
const ADDRESS_SHARE: usize = 16;

/// The smallest useful reservation: if not even this is available, there is no code memory.
const SMALLEST_RESERVE: usize = 1 << 20;

/// A reservation. Clones share it.
#[derive(Clone)]
pub struct CodeMemory {
    reservation: Arc<Reservation>,
}

impl CodeMemory {
    /// Reserves address space.
    pub fn new(options: CodeMemoryOptions) -> Result<CodeMemory, CodeMemoryError> {
        let page = pages::page_size();
        let wanted = options.reserve.clamp(page, MAX_RESERVE);
        // Both mappings take addresses, and where these are limited everything else needs some as well.
        let share =
            brolga_runtime::heap::address_limit().map_or(wanted, |limit| wanted.min(limit / ADDRESS_SHARE));
        let mut bytes = (share / page * page).max(page);
        // The limit does not show how much of it is left.
        let base = loop {
            let refused = match pages::reserve(bytes) {
                Ok(base) => break base,
                Err(source) => CodeMemoryError::Reserve { bytes, source },
            };
            let smaller = bytes / 2 / page * page;
            if smaller < SMALLEST_RESERVE {
                return Err(refused);
            }
            bytes = smaller;
        };
        Ok(CodeMemory::at(base, bytes, options))
    }

    /// Reserves address space within a range; `None` if the system has none there.
    pub(crate) fn within(options: CodeMemoryOptions, range: &Range<usize>) -> Option<CodeMemory> {
        let page = pages::page_size();
        let bytes = options.reserve.clamp(page, MAX_RESERVE).checked_next_multiple_of(page)?;
        let base = pages::reserve_within(bytes, range)?;
        Some(CodeMemory::at(base, bytes, options))
    }

    /// Memory in a range of addresses that was reserved for it.
    fn at(base: NonNull<u8>, bytes: usize, options: CodeMemoryOptions) -> CodeMemory {
        let page = pages::page_size();
        let free = Free {
            ranges: BTreeMap::from([(0, bytes)]),
            stats: CodeMemoryStats { reserved: bytes, ..CodeMemoryStats::default() },
        };
        let state = State { free, pools: [(); 3].map(|()| Pool::new(page, bytes)) };
        let limit = options.limit.unwrap_or(usize::MAX);
        let mut reservation = Reservation { base, bytes, page, limit, dual: None, state: Mutex::new(state) };
        if options.mapping == Mapping::Dual {
            // Where it is refused, runs serve as well.
            reservation.dual = Dual::new(bytes).ok().filter(|dual| dual.is_permitted(&reservation));
        }
        reservation.lock().free.stats.dual = reservation.dual.is_some();
        CodeMemory { reservation: Arc::new(reservation) }
    }

    /// The most bytes that may be in use, if there is a limit.
    pub(crate) fn limit(&self) -> Option<usize> {
        Some(self.reservation.limit).filter(|&limit| limit < usize::MAX)
    }

    /// The reserved addresses.
    pub(crate) fn addresses(&self) -> Range<usize> {
        let start = self.reservation.base.addr().get();
        start..start + self.reservation.bytes
    }

    /// The current use.
    pub fn stats(&self) -> CodeMemoryStats {
        let state = self.reservation.lock();
        let mut stats = state.free.stats;
        for pool in &state.pools {
            stats.mapped += pool.mapped();
            stats.resident += pool.resident();
        }
        stats
    }

    /// Whether units can have blocks.
    pub(crate) fn has_blocks(&self) -> bool {
        self.reservation.dual.is_some()
    }

    /// Pages for one unit, readable and writable.
    pub(crate) fn allocate(&self, parts: Parts) -> Result<Run, CodeMemoryError> {
        let reservation = &self.reservation;
        let mut state = reservation.lock();
        let (parts, bytes, offset) = self.take(&mut state, parts)?;
        let stats = &mut state.free.stats;
        stats.mapped += bytes;
        stats.resident += bytes;
        state.free.count_unit(bytes);
        drop(state);
        // From here on dropping the run returns the range.
        let run = Run::new(reservation.clone(), offset, parts);
        // SAFETY: by M1 the range belongs to this run alone, and nothing points into it yet.
        unsafe { pages::protect(run.base(), bytes, READ_WRITE) }
            .map_err(|source| CodeMemoryError::Protect { bytes, source })?;
        Ok(run)
    }

    /// Pages for one unit without writable data, which are written part by part through the second mapping; `None` if there is none.
    pub(crate) fn sparse(&self, parts: Parts) -> Result<Option<Sparse>, CodeMemoryError> {
        let reservation = &self.reservation;
        let Some(dual) = reservation.dual.as_ref().filter(|dual| !dual.is_foreign()) else { return Ok(None) };
        let mut state = reservation.lock();
        let (parts, bytes, offset) = self.take(&mut state, parts)?;
        if let Err(source) = reservation.map_sparse(dual, offset, parts) {
            reservation.return_sparse(&mut state, dual, offset, parts);
            return Err(CodeMemoryError::Protect { bytes, source });
        }
        state.free.stats.mapped += bytes;
        state.free.count_unit(bytes);
        drop(state);
        Ok(Some(Sparse::new(reservation.clone(), offset, parts)))
    }

    /// Takes addresses for the parts of one unit: their sizes in whole pages, the sum, and the offset.
    fn take(&self, state: &mut State, parts: Parts) -> Result<(Parts, usize, usize), CodeMemoryError> {
        let reservation = &self.reservation;
        let full = |state: &State| reservation.full(state, parts.total().unwrap_or(usize::MAX));
        let paged = parts.paged(reservation.page).and_then(|paged| Some((paged, paged.total()?)));
        let (paged, bytes) = paged.ok_or_else(|| full(state))?;
        reservation.check_limit(state, bytes)?;
        let offset = match state.free.take(bytes, Side::Low) {
            Some(offset) => offset,
            None => {
                reservation.drop_empty_chunks(state);
                state.free.take(bytes, Side::Low).ok_or_else(|| full(state))?
            }
        };
        Ok((paged, bytes, offset))
    }

    /// As [`CodeMemory::allocate`], for a writer that is to be checked.
    pub(crate) fn draft(&self, parts: Parts) -> Result<Draft, CodeMemoryError> {
        Ok(Draft::new(self.allocate(parts)?))
    }

    /// Blocks for one unit, each at a multiple of its part's alignment.
    pub(crate) fn allocate_blocks(&self, parts: Parts, aligns: Parts) -> Result<Blocks, CodeMemoryError> {
        let reservation = &self.reservation;
        if reservation.dual.as_ref().is_none_or(|dual| dual.is_foreign()) {
            return Err(CodeMemoryError::Forked);
        }
        let mut state = reservation.lock();
        let total = parts.total().unwrap_or(usize::MAX);
        reservation.check_limit(&state, total)?;
        state.free.count_unit(0);
        // Dropping them returns their memory, and takes the lock. They are assembled under the lock.
        let mut blocks = Blocks::new(reservation.clone());
        let mut failed = None;
        for part in Part::ALL {
            let bytes = parts.of(part);
            if bytes == 0 {
                continue;
            }
            match reservation.take_block(&mut state, part, bytes, aligns.of(part), total) {
                Ok(block) => {
                    state.free.grow(block.bytes);
                    blocks.put(part, block);
                }
                Err(error) => {
                    failed = Some(error);
                    break;
                }
            }
        }
        drop(state);
        failed.map_or(Ok(blocks), Err)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::space::TRAP;

    fn small() -> CodeMemory {
        CodeMemory::new(CodeMemoryOptions {
            reserve: 16 * pages::page_size(),
            ..CodeMemoryOptions::default()
        })
        .unwrap()
    }

    fn code(bytes: usize) -> Parts {
        Parts { code: bytes, ..Parts::default() }
    }

    #[test]
    fn pages_return_and_merge() {
        let memory = small();
        let page = pages::page_size();
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
        let page = pages::page_size();
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

    fn blocks(
        memory: &CodeMemory,
        code: usize,
        read_only: usize,
        writable: usize,
    ) -> Result<Blocks, CodeMemoryError> {
        let parts = Parts { code, read_only, writable };
        memory.allocate_blocks(parts, Parts { code: 32, read_only: 16, writable: 4096 })
    }

    /// Bytes as they are seen where code runs.
    fn seen(blocks: &Blocks, part: Part, count: usize) -> Vec<u8> {
        let start = blocks.addresses(part).start;
        // SAFETY: the part has `count` readable bytes, and no code writes to them now.
        unsafe { std::slice::from_raw_parts(std::ptr::with_exposed_provenance::<u8>(start), count) }.to_vec()
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn blocks_share_pages_and_no_view_is_writable_and_executable() {
        let memory = CodeMemory::new(CodeMemoryOptions::default()).unwrap();
        assert!(memory.stats().dual, "this system refuses dual mapping");
        let mut first = blocks(&memory, 40, 8, 8).unwrap();
        let second = blocks(&memory, 40, 8, 8).unwrap();
        for part in Part::ALL {
            let start = first.addresses(part).start;
            assert_eq!(start % [32, 16, 4096][part as usize], 0);
            first.write(part, 3, &[1, 2, 3]);
            assert_eq!(seen(&first, part, 6)[3..], [1, 2, 3]);
            assert_eq!(seen(&second, part, 6), [0; 6]);
        }
        let page = |blocks: &Blocks| blocks.addresses(Part::Code).start / 4096;
        assert_eq!(page(&first), page(&second));
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        assert!(maps.lines().all(|line| !line.split(' ').nth(1).unwrap().contains("wx")));
        let views: Vec<_> = maps.lines().filter(|line| line.contains("brolga code")).collect();
        assert!(
            views.iter().any(|line| line.contains("r-xs")) && views.iter().any(|line| line.contains("rw-s"))
        );
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn freed_code_traps_and_its_bytes_are_used_again() {
        let memory = CodeMemory::new(CodeMemoryOptions::default()).unwrap();
        let kept = blocks(&memory, 32, 0, 0).unwrap();
        let mut freed = blocks(&memory, 48, 0, 0).unwrap();
        freed.write(Part::Code, 0, &[0x90; 48]);
        let start = freed.addresses(Part::Code).start;
        drop(freed);
        // SAFETY: the page is still mapped, because it holds another block.
        let bytes = unsafe { std::slice::from_raw_parts(std::ptr::with_exposed_provenance::<u8>(start), 48) };
        assert!(bytes.iter().all(|byte| *byte == TRAP));
        assert_eq!(blocks(&memory, 48, 0, 0).unwrap().addresses(Part::Code).start, start);
        drop(kept);
        assert_eq!((memory.stats().in_use, memory.stats().runs), (0, 0));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn pages_and_chunks_return() {
        let memory = CodeMemory::new(CodeMemoryOptions::default()).unwrap();
        let held: Vec<_> = (0..200).map(|_| blocks(&memory, 60_000, 30_000, 1_000).unwrap()).collect();
        let most = memory.stats();
        assert!(most.resident >= 200 * 91_000 && most.mapped >= most.resident);
        drop(held);
        let least = memory.stats();
        assert_eq!((least.in_use, least.lost, least.peak), (0, 0, most.in_use));
        assert!(least.resident <= 3 * 64 * 4096, "{least:?}");
        assert!(least.mapped <= 3 << 20, "{least:?}");
    }

    #[test]
    fn a_limit_is_kept_and_what_does_not_fit_changes_nothing() {
        for mapping in [Mapping::Dual, Mapping::Private] {
            let options =
                CodeMemoryOptions { limit: Some(64 << 10), mapping, ..CodeMemoryOptions::default() };
            let memory = CodeMemory::new(options).unwrap();
            let run = memory.allocate(code(60 << 10)).unwrap();
            let before = memory.stats();
            assert!(matches!(
                memory.allocate(code(8 << 10)),
                Err(CodeMemoryError::Limit { limit: 65_536, .. })
            ));
            if memory.has_blocks() {
                assert!(matches!(blocks(&memory, 4096, 16, 16), Err(CodeMemoryError::Limit { .. })));
                assert!(matches!(blocks(&memory, usize::MAX, 16, 16), Err(CodeMemoryError::Limit { .. })));
                drop(blocks(&memory, 1024, 16, 16).unwrap());
            }
            let after = memory.stats();
            assert_eq!((after.in_use, after.runs), (before.in_use, before.runs));
            drop(run);
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_full_reservation_is_an_error_and_empty_chunks_make_room_for_other_parts() {
        let memory = small();
        let mut held = Vec::new();
        let error = loop {
            match blocks(&memory, 1024, 0, 0) {
                Ok(block) => held.push(block),
                Err(error) => break error,
            }
        };
        assert!(matches!(error, CodeMemoryError::Full { .. }), "{error}");
        assert_eq!(held.len(), 64);
        assert!(blocks(&memory, 16, 16, 0).is_err(), "code has room, data has not");
        assert_eq!(memory.stats().runs, 64);
        drop(held);
        drop(blocks(&memory, 0, 60 << 10, 0).unwrap());
        drop(memory.allocate(code(64 << 10)).unwrap());
        assert_eq!((memory.stats().in_use, memory.stats().lost), (0, 0));
    }
}
