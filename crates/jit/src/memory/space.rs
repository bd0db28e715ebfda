//! The code memory of a unit: pages of its own, or blocks of shared pages.
//!
//! | holding    | made by                        | written                         | when it is dropped                        |
//! |------------|--------------------------------|---------------------------------|-------------------------------------------|
//! | [`Run`]    | `CodeMemory::allocate`         | by the owner of its address, until it is sealed | the pages go back          |
//! | [`Draft`]  | `CodeMemory::draft`            | here; sealed into a run         | as a run                                  |
//! | [`Sparse`] | `CodeMemory::sparse`           | here, part by part while others run, through the second mapping | the pages go back |
//! | [`Blocks`] | `CodeMemory::allocate_blocks`  | here, through the second mapping | code becomes traps, the bytes are reused |
//!
//! `code_memory.rs` states the invariants M1 to M5.

use std::ops::Range;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, PoisonError};

use crate::memory::error::CodeMemoryError;
use crate::memory::fetch;
use crate::memory::pages::{self, READ, READ_EXECUTE};
use crate::memory::reservation::{Block, Part, Parts, Reservation};

/// The pages of one unit. They are returned when it is dropped.
pub(crate) struct Run {
    reservation: Arc<Reservation>,
    offset: usize,
    /// Sizes in whole pages.
    parts: Parts,
}

impl Run {
    /// A range that was taken for it.
    pub(crate) fn new(reservation: Arc<Reservation>, offset: usize, parts: Parts) -> Run {
        Run { reservation, offset, parts }
    }

    /// The first byte.
    pub(crate) fn base(&self) -> NonNull<u8> {
        self.reservation.at(self.offset)
    }

    /// The range of addresses of all parts.
    pub(crate) fn addresses(&self) -> Range<usize> {
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

    /// Removes write access from code and read-only data, and makes the code executable by every thread.
    pub(crate) fn seal(&self) -> Result<(), CodeMemoryError> {
        let Parts { code, read_only, .. } = self.parts;
        let failed = |bytes| move |source| CodeMemoryError::Protect { bytes, source };
        if code > 0 {
            // SAFETY: the range is the code part of this run; M2, the new protection removes write access as it grants
            // execution.
            unsafe { pages::protect(self.base(), code, READ_EXECUTE) }.map_err(failed(code))?;
        }
        if read_only > 0 {
            // SAFETY: the range is the read-only part of this run.
            unsafe { pages::protect(self.base().add(code), read_only, READ) }.map_err(failed(read_only))?;
        }
        if code > 0 {
            // SAFETY: the range is mapped for as long as this run is there.
            unsafe { fetch::publish(self.base(), code) }.map_err(failed(code))?;
        }
        Ok(())
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        let bytes = self.bytes();
        // SAFETY: M1, the range is this run's own, and every user of its code or data held the run.
        let returned = bytes == 0 || unsafe { pages::forget(self.base(), bytes) }.is_ok();
        let mut state = self.reservation.lock();
        let stats = &mut state.free.stats;
        stats.in_use -= bytes;
        stats.mapped -= bytes;
        stats.resident -= bytes;
        stats.runs -= 1;
        stats.freed += 1;
        if returned {
            state.free.give_back(self.offset, bytes);
        } else {
            stats.lost += bytes;
        }
    }
}

/// A run with at least this many bytes of code and read-only data is populated at once.
const POPULATED: usize = 1 << 18;

/// A run that is being written. Only its owner can reach it, so it is not sealed.
pub(crate) struct Draft {
    run: Run,
}

impl Draft {
    /// A run that is not shared yet.
    pub(crate) fn new(run: Run) -> Draft {
        // Writable bytes may be zeros that nobody reads.
        let filled = run.parts.code + run.parts.read_only;
        if filled >= POPULATED {
            // SAFETY: M1, the range is the run's own.
            unsafe { pages::populate(run.base(), filled) };
        }
        Draft { run }
    }

    /// The addresses of a part, rounded up to pages.
    pub(crate) fn addresses(&self, part: Part) -> Range<usize> {
        let Parts { code, read_only, .. } = self.run.parts;
        let before = match part {
            Part::Code => 0,
            Part::ReadOnly => code,
            Part::Writable => code + read_only,
        };
        let start = self.run.base().addr().get() + before;
        start..start + self.run.parts.of(part)
    }

    /// Writes bytes into a part, at `at` from its start. Panics if they are not inside it.
    pub(crate) fn write(&mut self, part: Part, at: usize, bytes: &[u8]) {
        let (start, size) = self.start(part);
        assert!(at <= size && bytes.len() <= size - at, "written outside of the run");
        // SAFETY: the range is inside the run by the assertion. By M1 the bytes are this run's alone, and `&mut self`
        // guarantees that no other code writes or reads through it; references into runs are never made.
        unsafe { start.add(at).copy_from_nonoverlapping(NonNull::from(bytes).cast(), bytes.len()) }
    }

    /// Fills a part.
    pub(crate) fn fill(&mut self, part: Part, byte: u8) {
        let (start, size) = self.start(part);
        // SAFETY: as in `write`.
        unsafe { start.write_bytes(byte, size) }
    }

    /// Ends writing.
    pub(crate) fn seal(self) -> Result<Run, CodeMemoryError> {
        self.run.seal()?;
        Ok(self.run)
    }

    fn start(&mut self, part: Part) -> (NonNull<u8>, usize) {
        let addresses = self.addresses(part);
        let before = addresses.start - self.run.base().addr().get();
        // SAFETY: the part is inside the run.
        (unsafe { self.run.base().add(before) }, addresses.len())
    }
}

/// Pages of one unit, of which each part is written once, before it runs and while other parts run.
pub(crate) struct Sparse {
    reservation: Arc<Reservation>,
    offset: usize,
    /// Sizes in whole pages; nothing is writable.
    parts: Parts,
    /// The number of bytes written, and the right to write.
    written: Mutex<usize>,
}

impl Sparse {
    /// A range that was taken and mapped for it.
    pub(crate) fn new(reservation: Arc<Reservation>, offset: usize, parts: Parts) -> Sparse {
        Sparse { reservation, offset, parts, written: Mutex::new(0) }
    }

    /// The addresses of a part.
    pub(crate) fn addresses(&self, part: Part) -> Range<usize> {
        let before = if part == Part::Code { 0 } else { self.parts.code };
        let start = self.reservation.at(self.offset + before).addr().get();
        start..start + self.parts.of(part)
    }

    /// Writes bytes into a part, at `at` from its start, and makes them visible to execution. Panics if they are not inside it. Nothing in a forked process.
    pub(crate) fn write(&self, part: Part, at: usize, bytes: &[u8]) {
        let size = self.parts.of(part);
        assert!(at <= size && bytes.len() <= size - at, "written outside of the pages");
        let Some(dual) = self.reservation.dual.as_ref().filter(|dual| !dual.is_foreign()) else { return };
        let offset = self.offset + if part == Part::Code { at } else { self.parts.code + at };
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: the range is inside the pages by the assertion. By M1 they are this unit's alone, and the lock makes this the only writer; no references into
        // code memory are made, and nobody executes or reads the bytes before their writer has said that they are there.
        unsafe { dual.at(offset).copy_from_nonoverlapping(NonNull::from(bytes).cast(), bytes.len()) }
        if part == Part::Code {
            // SAFETY: the pages are mapped for as long as this is there. Where the barrier is refused, other threads have one before they run new code: they take a lock for it.
            let _ = unsafe { fetch::publish(self.reservation.at(offset), bytes.len()) };
        }
        *written += bytes.len();
        self.reservation.lock().free.stats.resident += bytes.len();
    }

    /// A function that writes code.
    pub(crate) fn writer(&self) -> impl FnMut(usize, &[u8]) + '_ {
        |at, bytes| self.write(Part::Code, at, bytes)
    }
}

impl Drop for Sparse {
    fn drop(&mut self) {
        let reservation = self.reservation.clone();
        // The memory of a forked process is the parent's.
        let Some(dual) = reservation.dual.as_ref().filter(|dual| !dual.is_foreign()) else { return };
        let Parts { code, read_only, .. } = self.parts;
        let written = *self.written.get_mut().unwrap_or_else(PoisonError::into_inner);
        let mut state = reservation.lock();
        let stats = &mut state.free.stats;
        stats.in_use -= code + read_only;
        stats.mapped -= code + read_only;
        stats.resident -= written;
        stats.runs -= 1;
        stats.freed += 1;
        reservation.return_sparse(&mut state, dual, self.offset, self.parts);
    }
}

/// The memory of a loaded unit.
pub(crate) enum Memory {
    /// In pages of its own.
    Run(#[expect(dead_code, reason = "held so that the unit stays in memory")] Run),
    /// In pages of its own, which are written when they are needed.
    Sparse(#[expect(dead_code, reason = "held so that the unit stays in memory")] Arc<Sparse>),
    /// In blocks of shared pages.
    Blocks(#[expect(dead_code, reason = "held so that the unit stays in memory")] Blocks),
}

/// The blocks of one unit. They are overwritten and returned when they are dropped.
pub(crate) struct Blocks {
    reservation: Arc<Reservation>,
    blocks: [Option<Block>; 3],
    /// Whether it ever became code, or was only being written.
    is_sealed: bool,
}

impl Blocks {
    /// Room for blocks, which are counted as a unit already.
    pub(crate) fn new(reservation: Arc<Reservation>) -> Blocks {
        Blocks { reservation, blocks: [None; 3], is_sealed: false }
    }

    /// Takes ownership of a block.
    pub(crate) fn put(&mut self, part: Part, block: Block) {
        self.blocks[part as usize] = Some(block);
    }

    /// The addresses of a part, which has none if its size is zero.
    pub(crate) fn addresses(&self, part: Part) -> Range<usize> {
        let block = self.blocks[part as usize].unwrap_or(Block { offset: 0, bytes: 0 });
        let start = self.reservation.at(block.offset).addr().get();
        start..start + block.bytes
    }

    /// Writes bytes into a part, at `at` from its start. Panics if they are not inside it.
    pub(crate) fn write(&mut self, part: Part, at: usize, bytes: &[u8]) {
        if let Some((start, size)) = self.writable(part) {
            assert!(at <= size && bytes.len() <= size - at, "written outside of the block");
            // SAFETY: the range is inside the block by the assertion. By M1 no other block has these bytes, and `&mut self`
            // guarantees that no other code writes or reads through this one; references into blocks are never made.
            unsafe { start.add(at).copy_from_nonoverlapping(NonNull::from(bytes).cast(), bytes.len()) }
        }
    }

    /// Fills a part.
    pub(crate) fn fill(&mut self, part: Part, byte: u8) {
        if let Some((start, size)) = self.writable(part) {
            // SAFETY: as in `write`.
            unsafe { start.write_bytes(byte, size) }
        }
    }

    /// Makes what was written to code visible to every thread that executes it.
    pub(crate) fn seal(mut self) -> Result<Blocks, CodeMemoryError> {
        let code = self.addresses(Part::Code);
        let bytes = code.len();
        let failed = |source| CodeMemoryError::Protect { bytes, source };
        if let Some(block) = self.blocks[Part::Code as usize] {
            // SAFETY: the block is mapped for as long as it is there.
            unsafe { fetch::publish(self.reservation.at(block.offset), bytes) }.map_err(failed)?;
        }
        self.is_sealed = true;
        Ok(self)
    }

    /// Where a part is written, and its size.
    fn writable(&mut self, part: Part) -> Option<(NonNull<u8>, usize)> {
        let block = self.blocks[part as usize]?;
        let start = match &self.reservation.dual {
            Some(dual) if part != Part::Writable => dual.at(block.offset),
            _ => self.reservation.at(block.offset),
        };
        Some((start, block.bytes))
    }
}

impl Drop for Blocks {
    fn drop(&mut self) {
        let reservation = self.reservation.clone();
        let Some(dual) = &reservation.dual else { return };
        // The memory is the parent's.
        if dual.is_foreign() {
            return;
        }
        self.fill(Part::Code, TRAP);
        let mut state = reservation.lock();
        state.free.stats.runs -= 1;
        state.free.stats.freed += u64::from(self.is_sealed);
        for part in Part::ALL {
            let Some(block) = self.blocks[part as usize] else { continue };
            state.free.stats.in_use -= block.bytes;
            let pool = &mut state.pools[part as usize];
            let chunk = pool.give_back(block.offset, block.bytes);
            for run in pool.surplus() {
                reservation.return_pages(dual, part, run);
            }
            if let Some(chunk) = chunk {
                reservation.return_chunk(&mut state, part, chunk);
            }
        }
    }
}

/// The filling of free code: `int3` on x86-64, `udf #0` on aarch64.
pub(crate) const TRAP: u8 = if cfg!(target_arch = "x86_64") { 0xcc } else { 0 };
