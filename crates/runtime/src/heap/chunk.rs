//! Chunks: aligned memory with mark bits at its start.
//!
//! ```text
//!   chunk, aligned to CHUNK
//!   ├── mark bits of side 0: one for each word of the chunk   64 KiB, two blocks
//!   ├── mark bits of side 1                                   the same
//!   └── blocks 4 to 127 of BLOCK bytes, 16 units each         cells of one class, or units of large objects
//! ```
//!
//! The marks of one side say which objects are alive, for the allocation between them. A full marking in slices (`slices.rs`) sets the marks of
//! the other side, which is all zero before, and then the sides change roles. Without slices side 1 is never touched, so it takes no memory.
//!
//! A large object takes consecutive units, starting at any unit. Whole blocks would waste up to half of the
//! memory of objects slightly larger than 16 or 32 KiB.
//!
//! The address of an object determines its chunk (by masking) and so the position of its mark bit. An object
//! that is larger than a chunk has its own chunk, longer than `CHUNK`; it starts in the first blocks, so the
//! same mask works.
//!
//! **C1.** A mark bit is written only by the collector while the world is stopped, and read by it and by the one mutator that
//! owns the block; a sweep, which no mutator sees, clears the bits of the side that is not in use.
//! **C2.** An address whose chunk is looked up is in a mapped chunk: it is the address of a cell of this
//! heap.

use std::ptr::NonNull;

use super::class::SizeClass;
use super::layout::{BLOCK, FIRST_CELL, TAG_BYTES};
use super::object::Object;
use super::pages::Pages;

/// The size and alignment of a chunk.
pub(crate) const CHUNK: usize = 4 << 20;
/// Blocks of a chunk, including those with mark bits.
pub(crate) const BLOCKS: usize = CHUNK / BLOCK;
/// Blocks at the start of a chunk that hold its mark bits.
pub(crate) const RESERVED: usize = 2 * MARK_BYTES / BLOCK;
/// The unit of large objects.
pub(crate) const UNIT: usize = 2 << 10;
/// Units of a chunk, including those with mark bits.
pub(crate) const UNITS: usize = CHUNK / UNIT;
/// Units of a block.
pub(crate) const UNITS_PER_BLOCK: usize = BLOCK / UNIT;
/// Units at the start of a chunk that hold its mark bits.
pub(crate) const RESERVED_UNITS: usize = RESERVED * UNITS_PER_BLOCK;
/// The offset of a large object in its first unit.
pub(crate) const LARGE_OBJECT: usize = FIRST_CELL + TAG_BYTES;

const WORD: usize = 8;
const MARK_BYTES: usize = CHUNK / WORD / 8;
const MARKS_PER_WORD: usize = 64;
/// Words of mark bits that belong to one block.
const BLOCK_MARK_WORDS: usize = BLOCK / WORD / MARKS_PER_WORD;

/// One of the two sets of mark bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Side {
    /// Of its bits in the chunk.
    offset: usize,
}

impl Side {
    /// The other one.
    pub(crate) fn other(self) -> Side {
        Side { offset: MARK_BYTES - self.offset }
    }
}

/// A mapped chunk.
#[derive(Debug)]
pub(crate) struct Chunk {
    pages: Pages,
}

impl Chunk {
    /// A chunk with room for `bytes` bytes after the mark bits, in whole blocks; `None` if the system has no
    /// memory.
    pub(crate) fn map(bytes: usize) -> Option<Chunk> {
        let blocks = bytes.div_ceil(BLOCK).checked_add(RESERVED)?;
        Some(Chunk { pages: Pages::map(blocks.checked_mul(BLOCK)?, CHUNK)? })
    }

    pub(crate) fn address(&self) -> usize {
        self.pages.base().addr().get()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.pages.bytes()
    }

    /// Clears all marks of a side.
    ///
    /// # Safety
    ///
    /// The caller is the collector, or no code uses this side (C1).
    pub(crate) unsafe fn clear_side(&self, side: Side) {
        // SAFETY: every chunk begins with the bits of both sides.
        unsafe { self.pages.base().add(side.offset).write_bytes(0, MARK_BYTES) }
    }

    /// A block by its number.
    pub(crate) fn block(&self, index: usize) -> BlockPtr {
        let offset = (index * BLOCK).min(self.pages.bytes() - BLOCK);
        // SAFETY: the offset is inside the mapping.
        BlockPtr(unsafe { self.pages.base().add(offset) })
    }

    /// A unit by its number.
    pub(crate) fn unit(&self, index: usize) -> UnitPtr {
        let offset = (index * UNIT).min(self.pages.bytes() - UNIT);
        // SAFETY: the offset is inside the mapping.
        UnitPtr(unsafe { self.pages.base().add(offset) })
    }
}

/// A unit of a mapped chunk, where a large object may begin.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct UnitPtr(NonNull<u8>);

impl UnitPtr {
    /// The object that begins here.
    pub(crate) fn object(self) -> NonNull<u8> {
        // SAFETY: a unit is longer than this offset.
        unsafe { self.0.add(LARGE_OBJECT) }
    }

    /// Fills the unit and the following memory with a byte.
    ///
    /// # Safety
    ///
    /// That many bytes are mapped, and no code uses their content.
    pub(crate) unsafe fn fill(self, bytes: usize, byte: u8) {
        // SAFETY: by the contract.
        unsafe { self.0.write_bytes(byte, bytes) }
    }
}

/// A block of a mapped chunk.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct BlockPtr(NonNull<u8>);

// SAFETY: an address. Each operation's contract says how it may be used.
unsafe impl Send for BlockPtr {}

impl BlockPtr {
    pub(crate) fn address(self) -> usize {
        self.0.addr().get()
    }

    /// The cell at a position.
    pub(crate) fn cell(self, class: SizeClass, position: usize) -> NonNull<u8> {
        debug_assert!(position <= class.cells());
        // SAFETY: cells are inside the block, and the last one ends at or before its end.
        unsafe { self.0.add(FIRST_CELL + position.min(class.cells()) * class.cell_bytes()) }
    }

    fn marks(self, side: Side) -> *mut u64 {
        let first = self.address() % CHUNK / WORD / MARKS_PER_WORD;
        self.0.as_ptr().map_addr(|address| (address & !(CHUNK - 1)) + side.offset + first * WORD).cast()
    }

    /// # Safety
    ///
    /// The caller is the collector, or the mutator that owns the block (C1), and the chunk is mapped.
    unsafe fn mark_word(self, side: Side, index: usize) -> u64 {
        // SAFETY: by the contract; the index is reduced to the block's words.
        unsafe { self.marks(side).add(index % BLOCK_MARK_WORDS).read() }
    }

    /// The number of marked objects that start in the block.
    ///
    /// # Safety
    ///
    /// As for [`BlockPtr::next_run`].
    pub(crate) unsafe fn count_marks(self, side: Side) -> usize {
        // SAFETY: by the contract.
        (0..BLOCK_MARK_WORDS).map(|word| unsafe { self.mark_word(side, word) }.count_ones() as usize).sum()
    }

    /// Clears all marks of the block.
    ///
    /// # Safety
    ///
    /// The caller is the collector (C1), and the chunk is mapped.
    pub(crate) unsafe fn clear_marks(self, side: Side) {
        // SAFETY: by the contract; the words belong to the block.
        unsafe { self.marks(side).write_bytes(0, BLOCK_MARK_WORDS) }
    }

    /// The next cells, from position `from` on, without marked objects: at most as many as fit `max_bytes`,
    /// at least one. Returns the range of positions.
    ///
    /// # Safety
    ///
    /// The caller is the collector, or the mutator that owns the block (C1), and the chunk is mapped.
    pub(crate) unsafe fn next_run(
        self,
        side: Side,
        class: SizeClass,
        from: usize,
        max_bytes: usize,
    ) -> Option<(usize, usize)> {
        let (cells, bytes) = (class.cells(), class.cell_bytes());
        let bit = |position: usize| (FIRST_CELL + TAG_BYTES + position * bytes) / WORD;
        // SAFETY: by the contract.
        let word = |bit: usize| unsafe { self.mark_word(side, bit / MARKS_PER_WORD) };
        let start = (from..cells).find(|&p| word(bit(p)) >> (bit(p) % MARKS_PER_WORD) & 1 == 0)?;
        let end = cells.min(start + (max_bytes / bytes).max(1));
        // Bits are set only at starts of objects, so the next set bit ends the run.
        let (mut at, last) = (bit(start) + 1, bit(end - 1));
        while at <= last {
            let rest = word(at) >> (at % MARKS_PER_WORD);
            if rest != 0 {
                let found = at + rest.trailing_zeros() as usize;
                let position = (found * WORD - FIRST_CELL - TAG_BYTES) / bytes;
                return Some((start, position.min(end)));
            }
            at = (at / MARKS_PER_WORD + 1) * MARKS_PER_WORD;
        }
        Some((start, end))
    }

    /// Fills part of the block with a byte.
    ///
    /// # Safety
    ///
    /// The range is mapped, and no code uses its content.
    pub(crate) unsafe fn fill(self, offset: usize, bytes: usize, byte: u8) {
        // SAFETY: by the contract.
        unsafe { self.0.add(offset).write_bytes(byte, bytes) }
    }
}

/// The mark bit of an object.
#[derive(Clone, Copy)]
pub(crate) struct MarkBit {
    word: *mut u64,
    mask: u64,
}

impl MarkBit {
    /// The mark bit of an object of the heap, of a side.
    pub(crate) fn of(side: Side, object: Object) -> MarkBit {
        let bit = object.address() % CHUNK / WORD;
        let offset = side.offset + bit / MARKS_PER_WORD * WORD;
        let word = object.pointer().as_ptr().map_addr(|address| (address & !(CHUNK - 1)) + offset).cast();
        MarkBit { word, mask: 1 << (bit % MARKS_PER_WORD) }
    }

    /// Whether the object is marked.
    ///
    /// # Safety
    ///
    /// The object is a cell of a mapped chunk (C2), and the world is stopped (C1).
    pub(crate) unsafe fn get(self) -> bool {
        // SAFETY: by the contract.
        unsafe { self.word.read() & self.mask != 0 }
    }

    /// Sets the mark; returns whether it was clear before.
    ///
    /// # Safety
    ///
    /// As for [`MarkBit::get`], and the caller is the collector.
    pub(crate) unsafe fn set(self) -> bool {
        // SAFETY: by the contract.
        unsafe {
            let word = self.word.read();
            self.word.write(word | self.mask);
            word & self.mask == 0
        }
    }

    /// Clears the mark.
    ///
    /// # Safety
    ///
    /// As for [`MarkBit::set`].
    pub(crate) unsafe fn clear(self) {
        // SAFETY: by the contract.
        unsafe { self.word.write(self.word.read() & !self.mask) }
    }

    /// Prefetches the mark.
    pub(crate) fn prefetch(self) {
        super::object::prefetch(self.word.cast());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_the_gaps_between_marks() {
        let chunk = Chunk::map(BLOCK).unwrap();
        let block = chunk.block(RESERVED);
        let mut side = Side::default();
        for class in SizeClass::all().step_by(if cfg!(miri) { 17 } else { 1 }) {
            let cells = class.cells();
            let marked = |p: usize| p % 7 == 3 || p.is_multiple_of(5) || p == cells - 1;
            for position in (0..cells).filter(|&p| marked(p)) {
                // SAFETY: a cell of a mapped chunk that no other code refers to.
                unsafe {
                    let object = Object::from_pointer(block.cell(class, position).add(TAG_BYTES));
                    assert!(MarkBit::of(side, object).set());
                    assert!(MarkBit::of(side, object).get());
                }
            }
            let mut from = 0;
            let mut free = Vec::new();
            // SAFETY: as above.
            while let Some((start, end)) = unsafe { block.next_run(side, class, from, 100) } {
                assert!(start < end && (end - start) <= (100 / class.cell_bytes()).max(1));
                free.extend(start..end);
                from = end;
            }
            assert_eq!(free, (0..cells).filter(|&p| !marked(p)).collect::<Vec<_>>(), "{class:?}");
            // SAFETY: as above.
            unsafe {
                assert_eq!(block.count_marks(side), (0..cells).filter(|&p| marked(p)).count());
                block.clear_marks(side);
                assert_eq!(block.next_run(side, class, 0, BLOCK), Some((0, cells)));
            }
            side = side.other();
        }
    }
}
