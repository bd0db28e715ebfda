//! The blocks of a heap: which are free, which hold cells with room, which belong to large objects.
//!
//! ```text
//!   Space
//!   ├── slabs       chunks of BLOCKS blocks, by address      Free · Cells(class) · Large · Rest
//!   ├── huge        chunks with one object each, by address
//!   └── available   for each class: blocks with free cells that no mutator owns, found by the last collection
//! ```
//!
//! A mutator takes a block, hands out its free cells run by run, and forgets it; the next collection finds out what lives in
//! it. A block without live objects is free for any class. Everything is under one lock, which is taken once per block.
//!
//! **Accounting.** `used` counts whole blocks that are not free, because that is what memory costs; the limit is on `used`
//! plus external bytes. `allocated` counts what was handed out since the last collection and triggers the next.
//!
//! Cost: a collection looks at each block in use once (64 words of marks).
//!
//! Not done: giving back pages of single free blocks; only whole chunks go back to the system.

use std::collections::{BTreeMap, BTreeSet};

use super::chunk::{BLOCK, BLOCKS, BlockPtr, CHUNK, Chunk, LARGE_OBJECT, MarkBit, RESERVED};
use super::class::{CLASSES, FIRST_CELL, SizeClass, TAG_BYTES};
use super::object::Object;

/// What freed memory is overwritten with.
pub(crate) const POISON: u8 = 0xdd;

/// Large objects of more blocks have a chunk of their own.
const MAX_LARGE_BLOCKS: usize = 32;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    /// Not in use; `zeroed` if nothing was ever written to it.
    Free {
        zeroed: bool,
    },
    Cells(SizeClass),
    /// The first block of a large object that has so many.
    Large {
        blocks: usize,
    },
    /// A further block of a large object, or one with mark bits.
    Rest,
}

#[derive(Debug)]
struct Slab {
    chunk: Chunk,
    kinds: Box<[Kind; BLOCKS]>,
    /// One bit for each free block.
    free: u128,
}

impl Slab {
    fn new(chunk: Chunk) -> Slab {
        let mut kinds = Box::new([Kind::Free { zeroed: true }; BLOCKS]);
        kinds[..RESERVED].fill(Kind::Rest);
        Slab { chunk, kinds, free: ALL_FREE }
    }

    /// The first of `count` free blocks in a row.
    fn find(&self, count: usize) -> Option<usize> {
        let rows = (1..count).fold(self.free, |rows, k| rows & self.free >> k);
        (rows != 0).then(|| rows.trailing_zeros() as usize)
    }

    /// Takes blocks out of the free ones; whether all are zero.
    fn take(&mut self, first: usize, kind: Kind, count: usize) -> bool {
        let taken = first..first + count;
        let zeroed = taken.clone().all(|index| self.kinds[index] == Kind::Free { zeroed: true });
        self.kinds[taken.clone()].fill(Kind::Rest);
        self.kinds[first] = kind;
        taken.for_each(|index| self.free &= !(1 << index));
        zeroed
    }

    fn give_back(&mut self, first: usize, count: usize) {
        for index in first..first + count {
            self.kinds[index] = Kind::Free { zeroed: false };
            self.free |= 1 << index;
        }
    }
}

const ALL_FREE: u128 = u128::MAX << RESERVED;

/// Why there is no memory now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Shortage {
    /// The limit would be exceeded.
    Limit,
    /// The system gave none.
    System,
}

/// What is alive.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Live {
    pub(crate) bytes: usize,
    pub(crate) objects: usize,
}

/// All memory of one heap.
#[derive(Debug)]
pub(crate) struct Space {
    slabs: BTreeMap<usize, Slab>,
    /// Slabs that may have a free block.
    roomy: BTreeSet<usize>,
    huge: BTreeMap<usize, Chunk>,
    available: Vec<Vec<(BlockPtr, usize)>>,
    used: usize,
    mapped: usize,
    /// Bytes handed out since the last collection, external ones included.
    pub(crate) allocated: usize,
    /// Bytes that objects own elsewhere.
    pub(crate) external: usize,
    limit: Option<usize>,
}

impl Space {
    pub(crate) fn new(limit: Option<usize>) -> Space {
        Space {
            slabs: BTreeMap::new(),
            roomy: BTreeSet::new(),
            huge: BTreeMap::new(),
            available: vec![Vec::new(); CLASSES],
            used: 0,
            mapped: 0,
            allocated: 0,
            external: 0,
            limit,
        }
    }

    pub(crate) fn used(&self) -> usize {
        self.used
    }

    pub(crate) fn mapped(&self) -> usize {
        self.mapped
    }

    /// Whether `bytes` more, in the heap or outside, stay below the limit.
    pub(crate) fn has_room(&self, bytes: usize) -> bool {
        let wanted = self.used.checked_add(self.external).and_then(|sum| sum.checked_add(bytes));
        wanted.is_some_and(|wanted| self.limit.is_none_or(|limit| wanted <= limit))
    }

    /// A block with free cells of a class.
    pub(crate) fn take_cells(&mut self, class: SizeClass) -> Result<BlockPtr, Shortage> {
        if let Some((block, free)) = self.available[class.index()].pop() {
            self.allocated += free;
            return Ok(block);
        }
        let (block, _) = self.take_blocks(1, Kind::Cells(class))?;
        self.allocated += BLOCK;
        Ok(block)
    }

    /// Zeroed memory for an object of `bytes` bytes that is too large for a cell. Its tag is for the caller to write.
    pub(crate) fn take_large(&mut self, bytes: usize) -> Result<Object, Shortage> {
        let blocks = bytes.checked_add(LARGE_OBJECT).ok_or(Shortage::System)?.div_ceil(BLOCK);
        let block = if blocks <= MAX_LARGE_BLOCKS {
            let (block, zeroed) = self.take_blocks(blocks, Kind::Large { blocks })?;
            if !zeroed {
                // SAFETY: the blocks were free, so nobody uses them.
                unsafe { block.fill(0, blocks * BLOCK, 0) };
            }
            block
        } else {
            let bytes = blocks.checked_mul(BLOCK).ok_or(Shortage::System)?;
            if !self.has_room(bytes) {
                return Err(Shortage::Limit);
            }
            let chunk = Chunk::map(blocks).ok_or(Shortage::System)?;
            let block = chunk.block(RESERVED);
            self.used += bytes;
            self.mapped += chunk.bytes();
            self.huge.insert(chunk.address(), chunk);
            block
        };
        self.allocated = self.allocated.saturating_add(blocks * BLOCK);
        // SAFETY: the memory is new; the caller makes it an object before anybody can reach it.
        Ok(unsafe { Object::from_pointer(block.large_object()) })
    }

    fn take_blocks(&mut self, count: usize, kind: Kind) -> Result<(BlockPtr, bool), Shortage> {
        if !self.has_room(count * BLOCK) {
            return Err(Shortage::Limit);
        }
        let found = self.roomy.iter().find_map(|&at| Some((at, self.slabs.get(&at)?.find(count)?)));
        let (at, first) = match found {
            Some(found) => found,
            None => {
                let chunk = Chunk::map(BLOCKS - RESERVED).ok_or(Shortage::System)?;
                let at = chunk.address();
                self.mapped += chunk.bytes();
                self.slabs.insert(at, Slab::new(chunk));
                self.roomy.insert(at);
                (at, RESERVED)
            }
        };
        let slab = self.slabs.get_mut(&at).ok_or(Shortage::System)?;
        let zeroed = slab.take(first, kind, count);
        if slab.free == 0 {
            self.roomy.remove(&at);
        }
        self.used += count * BLOCK;
        Ok((slab.chunk.block(first), zeroed))
    }

    /// Forgets all marks.
    ///
    /// # Safety
    ///
    /// The caller is the collector, and the world is stopped.
    pub(crate) unsafe fn clear_marks(&mut self) {
        for slab in self.slabs.values() {
            for (index, kind) in slab.kinds.iter().enumerate() {
                if matches!(kind, Kind::Cells(_) | Kind::Large { .. }) {
                    // SAFETY: by the contract; the slab is mapped.
                    unsafe { slab.chunk.block(index).clear_marks() };
                }
            }
        }
        for chunk in self.huge.values() {
            // SAFETY: as above.
            unsafe { chunk.block(RESERVED).clear_marks() };
        }
    }

    /// Frees what is not marked, and finds out which blocks have room.
    ///
    /// # Safety
    ///
    /// The caller is the collector, the world is stopped, no mutator owns a block, and everything reachable is marked.
    pub(crate) unsafe fn sweep(&mut self, poison: bool) -> Live {
        let mut live = Live::default();
        self.available.iter_mut().for_each(Vec::clear);
        self.allocated = 0;
        for (&at, slab) in &mut self.slabs {
            for index in RESERVED..BLOCKS {
                let block = slab.chunk.block(index);
                match slab.kinds[index] {
                    Kind::Free { .. } | Kind::Rest => {}
                    Kind::Cells(class) => {
                        // SAFETY: by the contract; the slab is mapped.
                        let marked = unsafe { block.count_marks() };
                        live.objects += marked;
                        live.bytes += marked * class.cell_bytes();
                        if poison {
                            // SAFETY: by the contract, unmarked cells of this block are unreachable.
                            unsafe { poison_free_cells(block, class) };
                        }
                        if marked == 0 {
                            slab.give_back(index, 1);
                            self.used -= BLOCK;
                        } else if marked < class.cells() {
                            let free = (class.cells() - marked) * class.cell_bytes();
                            self.available[class.index()].push((block, free));
                        }
                    }
                    Kind::Large { blocks } => {
                        // SAFETY: the object's memory is mapped, and the world is stopped.
                        if unsafe { MarkBit::of(Object::from_pointer(block.large_object())).get() } {
                            live.objects += 1;
                            live.bytes += blocks * BLOCK;
                            continue;
                        }
                        if poison {
                            // SAFETY: by the contract, the object is unreachable.
                            unsafe { block.fill(0, blocks * BLOCK, POISON) };
                        }
                        slab.give_back(index, blocks);
                        self.used -= blocks * BLOCK;
                    }
                }
            }
            if slab.free != 0 {
                self.roomy.insert(at);
            }
        }
        // Popped from the end: low addresses first keeps the heap together.
        self.available.iter_mut().for_each(|blocks| blocks.reverse());
        let (used, mapped) = (&mut self.used, &mut self.mapped);
        self.huge.retain(|_, chunk| {
            // SAFETY: as for large objects.
            let kept =
                unsafe { MarkBit::of(Object::from_pointer(chunk.block(RESERVED).large_object())).get() };
            let bytes = chunk.bytes() - RESERVED * BLOCK;
            if kept {
                live.objects += 1;
                live.bytes += bytes;
            } else {
                *used -= bytes;
                *mapped -= chunk.bytes();
            }
            kept
        });
        live
    }

    /// Gives chunks without objects back to the system, as long as `keep` free bytes stay.
    pub(crate) fn trim(&mut self, keep: usize) {
        let mut free: usize = self.slabs.values().map(|slab| slab.free.count_ones() as usize * BLOCK).sum();
        let (roomy, mapped) = (&mut self.roomy, &mut self.mapped);
        self.slabs.retain(|at, slab| {
            let bytes = (BLOCKS - RESERVED) * BLOCK;
            let goes = slab.free == ALL_FREE && free.saturating_sub(bytes) >= keep;
            if goes {
                free -= bytes;
                *mapped -= slab.chunk.bytes();
                roomy.remove(at);
            }
            !goes
        });
    }

    /// Whether an address is one that an object of this heap can have.
    pub(crate) fn is_place_of_object(&self, address: usize) -> bool {
        let at = address & !(CHUNK - 1);
        let offset = address % CHUNK;
        if self.huge.contains_key(&at) {
            return offset == RESERVED * BLOCK + LARGE_OBJECT;
        }
        let Some(slab) = self.slabs.get(&at) else { return false };
        let in_block = offset % BLOCK;
        match slab.kinds[offset / BLOCK] {
            Kind::Cells(class) => in_block.checked_sub(FIRST_CELL + TAG_BYTES).is_some_and(|distance| {
                distance.is_multiple_of(class.cell_bytes()) && distance / class.cell_bytes() < class.cells()
            }),
            Kind::Large { .. } => in_block == LARGE_OBJECT,
            Kind::Free { .. } | Kind::Rest => false,
        }
    }
}

/// # Safety
///
/// The caller is the collector, and unmarked cells of the block are unreachable.
unsafe fn poison_free_cells(block: BlockPtr, class: SizeClass) {
    let mut from = 0;
    // SAFETY: by the contract.
    while let Some((start, end)) = unsafe { block.next_run(class, from, BLOCK) } {
        let bytes = class.cell_bytes();
        // SAFETY: the cells of the run are in the block, and by the contract nobody uses them.
        unsafe { block.fill(FIRST_CELL + start * bytes, (end - start) * bytes, POISON) };
        from = end;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_reused_and_the_limit_holds() {
        let mut space = Space::new(Some(10 * BLOCK));
        let class = SizeClass::of(24, 8).unwrap();
        let first: Vec<_> = std::iter::from_fn(|| space.take_cells(class).ok()).collect();
        assert_eq!(first.len(), 10);
        assert_eq!(space.take_large(100_000), Err(Shortage::Limit));
        // SAFETY: nobody else knows the space, and nothing in it is reachable.
        let live = unsafe { space.sweep(true) };
        assert_eq!((live.objects, space.used()), (0, 0));
        let large = space.take_large(9 * BLOCK).unwrap();
        assert!(space.is_place_of_object(large.address()));
        assert!(!space.is_place_of_object(large.address() + 8));
        // SAFETY: the object has that many bytes, and nobody writes it.
        assert!(unsafe { large.bytes(0, 9 * BLOCK) }.iter().all(|&byte| byte == 0), "poison is gone");
    }

    #[test]
    fn huge_objects_come_and_go() {
        let mut space = Space::new(None);
        let object = space.take_large(3 * CHUNK).unwrap();
        assert!(space.is_place_of_object(object.address()));
        assert!(space.mapped() >= 3 * CHUNK);
        // SAFETY: nobody else knows the space.
        unsafe {
            MarkBit::of(object).set();
            assert_eq!(space.sweep(false).objects, 1);
            space.clear_marks();
            assert_eq!(space.sweep(false).objects, 0);
        }
        assert_eq!((space.mapped(), space.used()), (0, 0));
        assert_eq!(space.take_large(usize::MAX), Err(Shortage::System));
        assert_eq!(space.take_large(usize::MAX / 2), Err(Shortage::System));
    }

    #[test]
    fn whole_chunks_go_back() {
        let mut space = Space::new(None);
        for _ in 0..3 * BLOCKS {
            space.take_cells(SizeClass::of(1000, 8).unwrap()).unwrap();
        }
        assert_eq!(space.mapped(), 4 * CHUNK);
        // SAFETY: nobody else knows the space.
        unsafe { space.sweep(false) };
        space.trim(CHUNK);
        assert_eq!(space.mapped(), 2 * CHUNK);
        space.trim(0);
        assert_eq!(space.mapped(), 0);
    }
}
