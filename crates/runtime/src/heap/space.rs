//! The memory of a heap: free blocks, blocks of cells with room, and large objects.
//!
//! ```text
//!   Space
//!   ├── slabs       chunks, by address (`slab.rs`)
//!   │                 blocks of cells ──►          ◄── large objects, in units
//!   ├── huge        chunks with one object each (`huge.rs`)
//!   └── available   for each class: blocks with free cells that no mutator owns, found by the last collection
//! ```
//!
//! A mutator takes a block, allocates its free cells run by run, and drops it; the next collection finds the
//! live objects in it. A block without live objects is free for any class. One lock protects everything; it
//! is taken once per block.
//!
//! Blocks are taken from the low end of a slab and large objects from the high end, so that the gaps between
//! large objects, which may be shorter than a block, are where blocks are searched last.
//!
//! **Accounting.** `used` counts whole blocks and units that are not free, which is the memory occupied; the
//! limit applies to `used` plus external bytes. `allocated` counts the bytes allocated since the last
//! collection and triggers the next.
//!
//! A collection that stops the world for all of its work sweeps at its end (`sweep.rs`); one in slices leaves it to later allocations.
//!
//! Cost: a collection examines each block in use once (64 words of marks). Finding a block examines at most
//! 32 words in a slab that has one; finding a large object, each slab with a free unit.
//!
//! Not done: returning pages of single free blocks; only whole chunks are returned to the system.

use std::collections::{BTreeMap, BTreeSet};

use super::chunk::{
    BLOCKS, BlockPtr, CHUNK, Chunk, LARGE_OBJECT, RESERVED, RESERVED_UNITS, Side, UNIT, UNITS,
    UNITS_PER_BLOCK, UnitPtr,
};
use super::class::{CLASSES, SizeClass};
use super::huge::HugeObjects;
use super::layout::{BLOCK, FIRST_CELL, TAG_BYTES};
use super::object::Object;
use super::slab::{Kind, Live, Slab};

/// Large objects with more units have their own chunk.
const MAX_LARGE_UNITS: usize = 512;

/// While a sweep is under way, an allocation sweeps at most this many slabs for what it needs before it takes a free block or maps a new slab.
const SEARCHED: usize = 4;

/// Why no memory is available now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Shortage {
    /// The limit would be exceeded.
    Limit,
    /// The system has none.
    System,
}

/// A sweep under way: the slabs that are left, and the blocks found.
#[derive(Debug)]
pub(super) struct Sweeping {
    /// The slabs that have not been swept, the next one last.
    pub(super) left: Vec<usize>,
    pub(super) live: Live,
    /// Whether the marks of the other side are cleared.
    pub(super) clears: bool,
    pub(super) poison: bool,
    /// Blocks with room in one slab.
    pub(super) found: Vec<(SizeClass, BlockPtr, usize)>,
}

/// All memory of one heap.
#[derive(Debug)]
pub(crate) struct Space {
    pub(super) slabs: BTreeMap<usize, Slab>,
    /// Slabs that may have a free block.
    pub(super) with_block: BTreeSet<usize>,
    /// Slabs that may have a free unit.
    pub(super) with_unit: BTreeSet<usize>,
    pub(super) huge: HugeObjects,
    pub(super) available: Vec<Vec<(BlockPtr, usize)>>,
    /// Whose marks say what is alive.
    pub(super) side: Side,
    /// The sweep that is under way.
    pub(super) sweeping: Option<Sweeping>,
    /// Chunks to be returned to the system, by dropping them.
    pub(super) gone: Vec<Chunk>,
    pub(super) used: usize,
    mapped: usize,
    /// Bytes of huge objects made since the last collection, and between the two before it.
    pub(super) huge_made: usize,
    pub(super) huge_wanted: usize,
    /// Bytes allocated since the last collection, including external ones.
    pub(crate) allocated: usize,
    /// Bytes that objects own outside the heap.
    pub(crate) external: usize,
    limit: Option<usize>,
}

impl Space {
    pub(crate) fn new(limit: Option<usize>) -> Space {
        Space {
            slabs: BTreeMap::new(),
            with_block: BTreeSet::new(),
            with_unit: BTreeSet::new(),
            huge: HugeObjects::default(),
            available: vec![Vec::new(); CLASSES],
            side: Side::default(),
            sweeping: None,
            gone: Vec::new(),
            used: 0,
            mapped: 0,
            huge_made: 0,
            huge_wanted: 0,
            allocated: 0,
            external: 0,
            limit,
        }
    }

    pub(crate) fn used(&self) -> usize {
        self.used
    }

    pub(crate) fn mapped(&self) -> usize {
        self.mapped + self.huge.mapped()
    }

    /// Whether another `bytes` bytes, in the heap or outside, stay within the limit.
    pub(crate) fn has_room(&self, bytes: usize) -> bool {
        let wanted = self.used.checked_add(self.external).and_then(|sum| sum.checked_add(bytes));
        wanted.is_some_and(|wanted| self.limit.is_none_or(|limit| wanted <= limit))
    }

    /// Bytes that are left below the limit.
    pub(crate) fn room(&self) -> usize {
        let taken = self.used.saturating_add(self.external);
        self.limit.map_or(usize::MAX, |limit| limit.saturating_sub(taken))
    }

    /// Whose marks say what is alive.
    pub(crate) fn side(&self) -> Side {
        self.side
    }

    /// A block with free cells of a class.
    pub(crate) fn take_cells(&mut self, class: SizeClass) -> Result<BlockPtr, Shortage> {
        let mut searched = 0;
        let (at, first) = loop {
            if let Some((block, free)) = self.available[class.index()].pop() {
                self.allocated += free;
                return Ok(block);
            }
            if searched < SEARCHED && self.sweep_next() {
                searched += 1;
                continue;
            }
            if !self.has_room(BLOCK) {
                if self.sweep_next() {
                    continue;
                }
                return Err(Shortage::Limit);
            }
            let at = match self.with_block.first() {
                Some(&at) => at,
                None => self.map_slab()?,
            };
            match self.slabs.get(&at).and_then(Slab::find_block) {
                Some(first) => break (at, first),
                // It has none until the next collection.
                None => self.with_block.remove(&at),
            };
        };
        let slab = self.slabs.get_mut(&at).ok_or(Shortage::System)?;
        slab.take(first, Kind::Cells(class), UNITS_PER_BLOCK);
        self.used += BLOCK;
        self.allocated += BLOCK;
        Ok(slab.chunk.block(first / UNITS_PER_BLOCK))
    }

    /// Memory for an object of `bytes` bytes that is too large for a cell, zeroed if it has to be. The caller writes its tag.
    pub(crate) fn take_large(&mut self, bytes: usize, is_clear: bool) -> Result<Object, Shortage> {
        let units = bytes.checked_add(LARGE_OBJECT).ok_or(Shortage::System)?.div_ceil(UNIT);
        let bytes = units.checked_mul(UNIT).ok_or(Shortage::System)?;
        while !self.has_room(bytes) {
            if !self.sweep_next() {
                return Err(Shortage::Limit);
            }
        }
        let object = match u16::try_from(units) {
            Ok(short) if units <= MAX_LARGE_UNITS => {
                let (unit, zeroed) = self.take_units(short)?;
                if is_clear && !zeroed {
                    // SAFETY: the units were free, so no code uses them.
                    unsafe { unit.fill(bytes, 0) };
                }
                // SAFETY: the memory is new; the caller initialises it before it is reachable.
                unsafe { Object::from_pointer(unit.object()) }
            }
            _ => {
                self.huge_made = self.huge_made.saturating_add(bytes);
                self.huge.take(bytes, is_clear).ok_or(Shortage::System)?
            }
        };
        self.used += bytes;
        self.allocated = self.allocated.saturating_add(bytes);
        Ok(object)
    }

    fn take_units(&mut self, units: u16) -> Result<(UnitPtr, bool), Shortage> {
        let count = usize::from(units);
        let mut searched = 0;
        let (at, first) = loop {
            let mut all = self.with_unit.iter();
            match all.find_map(|&at| Some((at, self.slabs.get_mut(&at)?.find_units(count)?))) {
                Some(found) => break found,
                None if searched < SEARCHED && self.sweep_next() => searched += 1,
                None => break (self.map_slab()?, UNITS - count),
            }
        };
        let slab = self.slabs.get_mut(&at).ok_or(Shortage::System)?;
        let zeroed = slab.take(first, Kind::Large { units }, count);
        if slab.free_units() == 0 {
            self.with_unit.remove(&at);
        }
        Ok((slab.chunk.unit(first), zeroed))
    }

    /// A new, entirely free slab.
    fn map_slab(&mut self) -> Result<usize, Shortage> {
        let chunk = Chunk::map((BLOCKS - RESERVED) * BLOCK).ok_or(Shortage::System)?;
        let at = chunk.address();
        self.mapped += chunk.bytes();
        self.slabs.insert(at, Slab::new(chunk));
        self.with_block.insert(at);
        self.with_unit.insert(at);
        Ok(at)
    }

    /// Removes spare chunks of huge objects until `keep` bytes of them are left, or as many as huge objects were made between the last two
    /// collections, or fewer if the limit has no room for them. Otherwise a program that makes a large table in each of many calls would
    /// have its pages mapped again after each collection.
    pub(crate) fn drop_spare(&mut self, keep: usize) {
        let keep = keep.max(self.huge_wanted).min(self.room());
        self.gone.append(&mut self.huge.drop_spare(keep));
    }

    /// Removes chunks without objects, as long as `keep` free bytes remain.
    pub(crate) fn trim(&mut self, keep: usize) {
        self.drop_spare(keep);
        let free: usize = self.slabs.values().map(|slab| slab.free_units() * UNIT).sum();
        let mut free = free + self.huge.spare_bytes();
        let bytes = (UNITS - RESERVED_UNITS) * UNIT;
        let goes = |_: &usize, slab: &mut Slab| {
            let goes = slab.is_empty() && free.saturating_sub(bytes) >= keep;
            free -= if goes { bytes } else { 0 };
            goes
        };
        for (at, slab) in self.slabs.extract_if(.., goes) {
            self.mapped -= slab.chunk.bytes();
            self.with_block.remove(&at);
            self.with_unit.remove(&at);
            self.gone.push(slab.chunk);
        }
    }

    /// Chunks that are not needed. Dropping them returns them to the system, which takes some tenths of a millisecond for each whose pages were used.
    pub(crate) fn take_gone(&mut self) -> Vec<Chunk> {
        std::mem::take(&mut self.gone)
    }

    /// One of these chunks.
    pub(crate) fn take_one_gone(&mut self) -> Option<Chunk> {
        self.gone.pop()
    }

    /// Whether an object of this heap can have this address.
    pub(crate) fn is_place_of_object(&self, address: usize) -> bool {
        let at = address & !(CHUNK - 1);
        let offset = address % CHUNK;
        if self.huge.has(at) {
            return offset == RESERVED * BLOCK + LARGE_OBJECT;
        }
        let Some(slab) = self.slabs.get(&at) else { return false };
        if let Kind::Large { .. } = slab.kinds[offset / UNIT] {
            return offset % UNIT == LARGE_OBJECT;
        }
        let in_block = offset % BLOCK;
        match slab.kinds[offset / BLOCK * UNITS_PER_BLOCK] {
            Kind::Cells(class) => in_block.checked_sub(FIRST_CELL + TAG_BYTES).is_some_and(|distance| {
                distance.is_multiple_of(class.cell_bytes()) && distance / class.cell_bytes() < class.cells()
            }),
            Kind::Large { .. } | Kind::Free { .. } | Kind::Rest => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::chunk::MarkBit;
    use super::*;

    #[test]
    fn blocks_are_reused_and_the_limit_holds() {
        let mut space = Space::new(Some(10 * BLOCK));
        let class = SizeClass::of(24, 8).unwrap();
        let first: Vec<_> = std::iter::from_fn(|| space.take_cells(class).ok()).collect();
        assert_eq!(first.len(), 10);
        assert_eq!(space.take_large(100_000, true), Err(Shortage::Limit));
        // SAFETY: no other code can reach the space, and nothing in it is reachable.
        let live = unsafe { space.sweep(true) };
        assert_eq!((live.objects, space.used()), (0, 0));
        let large = space.take_large(10 * BLOCK - LARGE_OBJECT, true).unwrap();
        assert!(space.is_place_of_object(large.address()));
        assert!(!space.is_place_of_object(large.address() + 8));
        // SAFETY: the object has that many bytes, and no code writes to it.
        let bytes = unsafe { large.bytes(0, 10 * BLOCK - LARGE_OBJECT) };
        assert!(bytes.iter().all(|&byte| byte == 0), "poison is gone");
    }

    #[test]
    fn a_large_object_takes_its_units_and_no_more() {
        let mut space = Space::new(Some(90 * UNIT));
        let objects: Vec<_> = std::iter::from_fn(|| space.take_large(17_000, true).ok()).collect();
        assert_eq!((objects.len(), space.used()), (10, 90 * UNIT), "9 units each");
        // SAFETY: no other code can reach the space, and every other object has been dropped.
        unsafe {
            objects.iter().step_by(2).for_each(|&object| assert!(MarkBit::of(space.side(), object).set()));
            assert_eq!(space.sweep(false).bytes, 45 * UNIT);
        }
        assert_eq!(space.take_large(10 * UNIT, true), Ok(below(objects[9], 2)), "the first gap is too short");
        let refilled: Vec<_> = std::iter::from_fn(|| space.take_large(17_000, true).ok()).collect();
        assert_eq!(refilled, [objects[1], objects[3], objects[5]], "from the high end on");
    }

    /// The object that begins this many units below another.
    fn below(object: Object, units: usize) -> Object {
        // SAFETY: only compared.
        unsafe { Object::from_pointer(object.pointer().sub(units * UNIT)) }
    }

    #[test]
    fn cells_and_large_objects_share_no_byte() {
        let mut space = Space::new(Some(CHUNK));
        let mut large = Vec::new();
        let mut blocks = Vec::new();
        for size in (0..).map(|step| 16_500 + step * 1_771 % 40_000) {
            let (Ok(object), Ok(block)) =
                (space.take_large(size, true), space.take_cells(SizeClass::of(40, 8).unwrap()))
            else {
                break;
            };
            large.push((object.address() - LARGE_OBJECT, object.address() + size));
            blocks.push((block.address(), block.address() + BLOCK));
        }
        assert!(large.len() > 40, "{}", large.len());
        let mut all = [large, blocks].concat();
        all.sort_unstable();
        assert!(all.windows(2).all(|pair| pair[0].1 <= pair[1].0), "{all:x?}");
    }

    #[test]
    fn huge_objects_come_and_go() {
        let mut space = Space::new(None);
        let object = space.take_large(3 * CHUNK, true).unwrap();
        assert!(space.is_place_of_object(object.address()));
        assert!(space.mapped() >= 3 * CHUNK);
        // SAFETY: no other code can reach the space.
        unsafe {
            MarkBit::of(space.side(), object).set();
            assert_eq!(space.sweep(false).objects, 1);
            space.clear_marks();
            assert_eq!(space.sweep(false).objects, 0);
        }
        assert_eq!(space.used(), 0);
        space.drop_spare(0);
        drop(space.take_gone());
        assert_eq!(space.mapped(), 0);
        assert_eq!(space.take_large(usize::MAX, true), Err(Shortage::System));
        assert_eq!(space.take_large(usize::MAX / 2, true), Err(Shortage::System));
    }

    #[test]
    fn whole_chunks_go_back() {
        let mut space = Space::new(None);
        for _ in 0..3 * BLOCKS {
            space.take_cells(SizeClass::of(1000, 8).unwrap()).unwrap();
        }
        assert_eq!(space.mapped(), 4 * CHUNK);
        // SAFETY: no other code can reach the space.
        unsafe { space.sweep(false) };
        space.trim(CHUNK);
        assert_eq!(space.mapped(), 2 * CHUNK);
        space.trim(0);
        assert_eq!(space.mapped(), 0);
    }
}
