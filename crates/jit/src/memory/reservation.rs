//! The reservation of `code_memory.rs`: its ranges, the chunks of its stripes, and the second mapping.
//!
//! ```text
//!   State, under the lock    Free    ranges without chunk or run ──► take / give_back
//!                            Pool×3  blocks of each stripe (`arena.rs`) ──► chunks, surplus pages ──► system calls here
//! ```
//!
//! `code_memory.rs` states the invariants M1 to M5. The system is called under the lock only when a chunk is added or
//! dropped, or when many pages go back.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::ptr::NonNull;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::memory::arena::Pool;
use crate::memory::error::CodeMemoryError;
use crate::memory::pages::{self, READ, READ_EXECUTE, READ_WRITE};

pub(crate) struct Reservation {
    pub(crate) base: NonNull<u8>,
    pub(crate) bytes: usize,
    pub(crate) page: usize,
    pub(crate) limit: usize,
    pub(crate) dual: Option<Dual>,
    pub(crate) state: Mutex<State>,
}

/// The second mapping.
pub(crate) struct Dual {
    /// Where the reservation's first byte would be written; as long as the reservation.
    alias: NonNull<u8>,
    bytes: usize,
    pub(crate) file: OwnedFd,
    /// The process that may write.
    pub(crate) process: u32,
}

// SAFETY: the addresses are of memory that this structure owns and that any thread may unmap; the free ranges are under a
// lock.
unsafe impl Send for Reservation {}
// SAFETY: as above.
unsafe impl Sync for Reservation {}

/// Use of code memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CodeMemoryStats {
    /// Bytes of address space reserved.
    pub reserved: usize,
    /// Bytes that belong to loaded units: blocks, and whole pages of runs. Retired code is included: a limit is one of memory.
    pub in_use: usize,
    /// Bytes of retired code in use: replaced, evicted or removed, freed when no thread can run it. An engine counts them; the
    /// statistics of memory alone have none.
    pub retired: usize,
    /// The most bytes that were in use at one time.
    pub peak: usize,
    /// Bytes of chunks and runs: addresses that can be accessed.
    pub mapped: usize,
    /// Bytes of pages that have memory.
    pub resident: usize,
    /// Loaded units, trampolines included.
    pub runs: usize,
    /// How many of them have been freed.
    pub freed: u64,
    /// Bytes that could not be returned to the system and will not be used again.
    pub lost: usize,
    /// Whether code is written through a second mapping.
    pub dual: bool,
}

pub(crate) struct State {
    pub(crate) free: Free,
    /// By [`Part`].
    pub(crate) pools: [Pool; 3],
}

pub(crate) struct Free {
    /// Free ranges by offset, never adjacent to each other.
    pub(crate) ranges: BTreeMap<usize, usize>,
    /// Without the figures of the pools: `mapped` and `resident` count runs.
    pub(crate) stats: CodeMemoryStats,
}

/// Sizes of the three parts of a unit.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Parts {
    pub(crate) code: usize,
    pub(crate) read_only: usize,
    pub(crate) writable: usize,
}

/// One of the parts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Part {
    Code,
    ReadOnly,
    Writable,
}

impl Part {
    pub(crate) const ALL: [Part; 3] = [Part::Code, Part::ReadOnly, Part::Writable];

    fn protection(self) -> i32 {
        match self {
            Part::Code => READ_EXECUTE,
            Part::ReadOnly => READ,
            Part::Writable => READ_WRITE,
        }
    }
}

impl Parts {
    pub(crate) fn total(self) -> Option<usize> {
        self.code.checked_add(self.read_only)?.checked_add(self.writable)
    }

    /// The sizes in whole pages.
    pub(crate) fn paged(self, page: usize) -> Option<Parts> {
        let paged = |bytes: usize| bytes.checked_next_multiple_of(page);
        Some(Parts {
            code: paged(self.code)?,
            read_only: paged(self.read_only)?,
            writable: paged(self.writable)?,
        })
    }

    pub(crate) fn of(self, part: Part) -> usize {
        match part {
            Part::Code => self.code,
            Part::ReadOnly => self.read_only,
            Part::Writable => self.writable,
        }
    }
}

impl Dual {
    pub(crate) fn new(bytes: usize) -> io::Result<Dual> {
        let file = pages::memory_file(bytes)?;
        Ok(Dual { alias: pages::reserve(bytes)?, bytes, file, process: std::process::id() })
    }

    /// Whether this is not the process that made the memory.
    pub(crate) fn is_foreign(&self) -> bool {
        self.process != std::process::id()
    }

    /// Tries both views of one page, and puts the page back.
    pub(crate) fn is_permitted(&self, reservation: &Reservation) -> bool {
        let mapped = reservation.map_chunk(self, Part::Code, 0, reservation.page);
        let dropped = reservation.unmap_chunk(self, Part::Code, 0, reservation.page);
        // Memory that cannot be put back would be reported as lost; such a system is unsuitable for dual mapping.
        mapped.is_ok() && dropped.is_ok()
    }
}

impl Reservation {
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing panics between the steps of a change.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn check_limit(&self, state: &State, bytes: usize) -> Result<(), CodeMemoryError> {
        let in_use = state.free.stats.in_use;
        match in_use.checked_add(bytes) {
            Some(sum) if sum <= self.limit => Ok(()),
            // No limit was set, so the number is beyond all memory.
            _ if self.limit == usize::MAX => Err(self.full(state, bytes)),
            _ => Err(CodeMemoryError::Limit { bytes, in_use, limit: self.limit }),
        }
    }

    pub(crate) fn full(&self, state: &State, bytes: usize) -> CodeMemoryError {
        CodeMemoryError::Full { bytes, free: state.free.ranges.values().sum(), reserved: self.bytes }
    }

    pub(crate) fn take_block(
        &self,
        state: &mut State,
        part: Part,
        bytes: usize,
        align: usize,
        total: usize,
    ) -> Result<Block, CodeMemoryError> {
        let Some(bytes) = Pool::block_bytes(bytes) else { return Err(self.full(state, total)) };
        if let Some(offset) = state.pools[part as usize].take(bytes, align) {
            return Ok(Block { offset, bytes });
        }
        self.add_chunk(state, part, bytes, align, total)?;
        // The chunk was made for it.
        let taken = state.pools[part as usize].take(bytes, align);
        taken.map(|offset| Block { offset, bytes }).ok_or_else(|| self.full(state, total))
    }

    /// Adds a chunk in which the block has room. Code grows from the low end and data from the high end, so that chunks of one
    /// permission are neighbours and the system joins their mappings.
    fn add_chunk(
        &self,
        state: &mut State,
        part: Part,
        bytes: usize,
        align: usize,
        total: usize,
    ) -> Result<(), CodeMemoryError> {
        let Some(dual) = &self.dual else { return Err(CodeMemoryError::Forked) };
        let side = if part == Part::Code { Side::Low } else { Side::High };
        let sizes: Vec<usize> = state.pools[part as usize].chunk_sizes(bytes, align).collect();
        let find = |state: &mut State| {
            sizes.iter().find_map(|&size| state.free.take(size, side).map(|offset| (offset, size)))
        };
        let mut found = find(state);
        if found.is_none() {
            self.drop_empty_chunks(state);
            found = find(state);
        }
        let Some((offset, size)) = found else { return Err(self.full(state, total)) };
        if let Err(source) = self.map_chunk(dual, part, offset, size) {
            self.return_chunk(state, part, offset..offset + size);
            return Err(CodeMemoryError::Protect { bytes: size, source });
        }
        state.pools[part as usize].add_chunk(offset, size);
        Ok(())
    }

    pub(crate) fn drop_empty_chunks(&self, state: &mut State) {
        for part in Part::ALL {
            while let Some(chunk) = state.pools[part as usize].take_empty_chunk() {
                self.return_chunk(state, part, chunk);
            }
        }
    }

    /// Returns a range that has no owner any more.
    pub(crate) fn return_chunk(&self, state: &mut State, part: Part, chunk: Range<usize>) {
        let Some(dual) = &self.dual else { return };
        match self.unmap_chunk(dual, part, chunk.start, chunk.len()) {
            Ok(()) => state.free.give_back(chunk.start, chunk.len()),
            Err(_) => state.free.stats.lost += chunk.len(),
        }
    }

    /// Makes a chunk accessible.
    fn map_chunk(&self, dual: &Dual, part: Part, offset: usize, bytes: usize) -> io::Result<()> {
        let base = self.at(offset);
        if part == Part::Writable {
            // SAFETY: by M1 and M3 the range belongs to the caller alone.
            return unsafe { pages::protect(base, bytes, READ_WRITE) };
        }
        // SAFETY: as above; M2, this view cannot be written to.
        unsafe { pages::map_file(base, bytes, part.protection(), &dual.file, offset) }?;
        // SAFETY: the second view has the same layout, and M1 holds for it as well; M2, it cannot be executed.
        unsafe { pages::map_file(dual.at(offset), bytes, READ_WRITE, &dual.file, offset) }
    }

    /// Removes access and memory from a chunk without blocks, wholly or partly mapped.
    fn unmap_chunk(&self, dual: &Dual, part: Part, offset: usize, bytes: usize) -> io::Result<()> {
        // SAFETY: no block is in the range (M1), so nothing points into it.
        unsafe { pages::forget(self.at(offset), bytes) }?;
        if part != Part::Writable {
            // SAFETY: as above; only the owner of a block writes to this view.
            unsafe { pages::forget(dual.at(offset), bytes) }?;
            pages::punch(&dual.file, offset, bytes)?;
        }
        Ok(())
    }

    /// Makes the pages of a sparse unit accessible.
    pub(crate) fn map_sparse(&self, dual: &Dual, offset: usize, parts: Parts) -> io::Result<()> {
        let Parts { code, read_only, .. } = parts;
        for (part, offset, bytes) in [(Part::Code, offset, code), (Part::ReadOnly, offset + code, read_only)]
        {
            if bytes > 0 {
                self.map_chunk(dual, part, offset, bytes)?;
            }
        }
        Ok(())
    }

    /// Returns the pages of a sparse unit.
    pub(crate) fn return_sparse(&self, state: &mut State, dual: &Dual, offset: usize, parts: Parts) {
        let bytes = parts.code + parts.read_only;
        // Both parts are mapped in the same way.
        match self.unmap_chunk(dual, Part::Code, offset, bytes) {
            Ok(()) => state.free.give_back(offset, bytes),
            Err(_) => state.free.stats.lost += bytes,
        }
    }

    /// Returns the memory of pages without blocks. Pages that cannot be returned stay usable.
    pub(crate) fn return_pages(&self, dual: &Dual, part: Part, run: Range<usize>) {
        let returned = if part == Part::Writable {
            // SAFETY: no block is in the pages (A3 of `arena.rs`), so none of their content is used.
            unsafe { pages::discard(self.at(run.start), run.len()) }
        } else {
            pages::punch(&dual.file, run.start, run.len())
        };
        // Then the pages keep their memory until the next time.
        drop(returned);
    }

    pub(crate) fn at(&self, offset: usize) -> NonNull<u8> {
        // SAFETY: M1, offsets are inside the reservation.
        unsafe { self.base.add(offset) }
    }
}

impl Dual {
    pub(crate) fn at(&self, offset: usize) -> NonNull<u8> {
        // SAFETY: the second view is as long as the reservation, and offsets are inside it (M1).
        unsafe { self.alias.add(offset) }
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        // SAFETY: M4: nothing is left in it, since every block and run holds the reservation; nothing else points into the range.
        unsafe { pages::unmap(self.base, self.bytes) }
    }
}

impl Drop for Dual {
    fn drop(&mut self) {
        // SAFETY: the view belongs to a reservation in which nothing is left (M4), or to none yet.
        unsafe { pages::unmap(self.alias, self.bytes) }
    }
}

/// The end of the reservation at which to look for room.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Low,
    High,
}

impl Free {
    /// The first range that is long enough, cut to size. Nothing gets the empty range.
    pub(crate) fn take(&mut self, bytes: usize, side: Side) -> Option<usize> {
        let fits = |(_, length): &(&usize, &usize)| **length >= bytes;
        let (&offset, &length) = match side {
            Side::Low => self.ranges.iter().find(fits)?,
            Side::High => self.ranges.iter().rfind(fits)?,
        };
        if bytes == 0 {
            return Some(offset);
        }
        self.ranges.remove(&offset);
        let rest = length - bytes;
        let (taken, rest_start) = match side {
            Side::Low => (offset, offset + bytes),
            Side::High => (offset + rest, offset),
        };
        if rest > 0 {
            self.ranges.insert(rest_start, rest);
        }
        Some(taken)
    }

    pub(crate) fn give_back(&mut self, offset: usize, bytes: usize) {
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

    pub(crate) fn count_unit(&mut self, bytes: usize) {
        self.stats.runs += 1;
        self.grow(bytes);
    }

    pub(crate) fn grow(&mut self, bytes: usize) {
        self.stats.in_use += bytes;
        self.stats.peak = self.stats.peak.max(self.stats.in_use);
    }
}

/// A piece of a stripe.
#[derive(Clone, Copy)]
pub(crate) struct Block {
    pub(crate) offset: usize,
    pub(crate) bytes: usize,
}
