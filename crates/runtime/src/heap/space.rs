//! The memory of a heap: free blocks, blocks of cells with room, and large objects.
//!
//! ```text
//!   Space
//!   ├── slabs       chunks, by address
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
//! Cost: a collection examines each block in use once (64 words of marks). Finding a block examines at most
//! 32 words in a slab that has one; finding a large object, each slab with a free unit.
//!
//! Not done: returning pages of single free blocks; only whole chunks are returned to the system.

use std::collections::{BTreeMap, BTreeSet};

use super::chunk::{
    BLOCKS, BlockPtr, CHUNK, Chunk, LARGE_OBJECT, MarkBit, RESERVED, RESERVED_UNITS, UNIT, UNITS,
    UNITS_PER_BLOCK, UnitPtr,
};
use super::class::{CLASSES, SizeClass};
use super::huge::HugeObjects;
use super::layout::{BLOCK, FIRST_CELL, TAG_BYTES};
use super::object::Object;

/// The byte that overwrites freed memory.
pub(crate) const POISON: u8 = 0xdd;

/// Large objects with more units have their own chunk.
const MAX_LARGE_UNITS: usize = 512;

/// The use of a unit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    /// Not in use; `zeroed` if nothing was ever written to it.
    Free { zeroed: bool },
    /// The first unit of a block of cells.
    Cells(SizeClass),
    /// The first unit of a large object with this many units.
    Large { units: u16 },
    /// Another unit of a block or of a large object, or one with mark bits.
    Rest,
}

/// The number of units per word of `Slab::free`.
const WORD: usize = u64::BITS as usize;
/// The bits of a block's units in such a word.
const BLOCK_BITS: u64 = (1 << UNITS_PER_BLOCK) - 1;

#[derive(Debug)]
struct Slab {
    chunk: Chunk,
    kinds: Box<[Kind; UNITS]>,
    /// One bit for each free unit.
    free: [u64; UNITS / WORD],
    /// An upper bound of the longest run of free units, so that a slab without room is not searched for each
    /// object.
    longest: usize,
}

impl Slab {
    fn new(chunk: Chunk) -> Slab {
        let mut kinds = Box::new([Kind::Free { zeroed: true }; UNITS]);
        kinds[..RESERVED_UNITS].fill(Kind::Rest);
        let mut free = [u64::MAX; UNITS / WORD];
        (0..RESERVED_UNITS).for_each(|unit| free[unit / WORD] &= !(1 << (unit % WORD)));
        Slab { chunk, kinds, free, longest: UNITS }
    }

    fn free_units(&self) -> usize {
        self.free.iter().map(|word| word.count_ones() as usize).sum()
    }

    fn is_empty(&self) -> bool {
        self.free_units() == UNITS - RESERVED_UNITS
    }

    /// The first unit of the lowest free block.
    fn find_block(&self) -> Option<usize> {
        self.free.iter().zip((0..).step_by(WORD)).find_map(|(word, first)| {
            let blocks = (0..WORD).step_by(UNITS_PER_BLOCK);
            blocks.clone().find(|&at| word >> at & BLOCK_BITS == BLOCK_BITS).map(|at| first + at)
        })
    }

    /// The highest run of `count` free units; returns its first unit.
    fn find_units(&mut self, count: usize) -> Option<usize> {
        if self.longest < count {
            return None;
        }
        let mut end = UNITS;
        while let Some(last) = self.last_below(end, |free| free) {
            end = self.last_below(last, |free| !free).map_or(0, |used| used + 1);
            if last + 1 - end >= count {
                return Some(last + 1 - count);
            }
        }
        self.longest = count - 1;
        None
    }

    /// The highest unit below `end` whose bit is set in `of(word)`, where `word` is its word of `free`.
    fn last_below(&self, end: usize, of: impl Fn(u64) -> u64) -> Option<usize> {
        let mut end = end;
        while end > 0 {
            let last = end - 1;
            let found = of(self.free[last / WORD]) << (WORD - 1 - last % WORD);
            if found != 0 {
                return Some(last - found.leading_zeros() as usize);
            }
            end = last / WORD * WORD;
        }
        None
    }

    /// Marks free units as used. Returns whether no code has written to any of them, so that all their bytes are zero.
    fn take(&mut self, first: usize, kind: Kind, count: usize) -> bool {
        let taken = &mut self.kinds[first..first + count];
        let zeroed = taken.iter().all(|kind| *kind == Kind::Free { zeroed: true });
        taken.fill(Kind::Rest);
        self.kinds[first] = kind;
        (first..first + count).for_each(|unit| self.free[unit / WORD] &= !(1 << (unit % WORD)));
        zeroed
    }

    fn give_back(&mut self, first: usize, count: usize) {
        self.kinds[first..first + count].fill(Kind::Free { zeroed: false });
        (first..first + count).for_each(|unit| self.free[unit / WORD] |= 1 << (unit % WORD));
        self.longest = UNITS;
    }
}

/// Why no memory is available now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Shortage {
    /// The limit would be exceeded.
    Limit,
    /// The system has none.
    System,
}

/// The number of live objects, and their size in bytes.
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
    with_block: BTreeSet<usize>,
    /// Slabs that may have a free unit.
    with_unit: BTreeSet<usize>,
    huge: HugeObjects,
    available: Vec<Vec<(BlockPtr, usize)>>,
    used: usize,
    mapped: usize,
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
        self.mapped + self.huge.mapped()
    }

    /// Whether another `bytes` bytes, in the heap or outside, stay within the limit.
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
        if !self.has_room(BLOCK) {
            return Err(Shortage::Limit);
        }
        let (at, first) = loop {
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
        if !self.has_room(bytes) {
            return Err(Shortage::Limit);
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
            _ => self.huge.take(bytes, is_clear).ok_or(Shortage::System)?,
        };
        self.used += bytes;
        self.allocated = self.allocated.saturating_add(bytes);
        Ok(object)
    }

    fn take_units(&mut self, units: u16) -> Result<(UnitPtr, bool), Shortage> {
        let count = usize::from(units);
        let found =
            self.with_unit.iter().find_map(|&at| Some((at, self.slabs.get_mut(&at)?.find_units(count)?)));
        let (at, first) = match found {
            Some(found) => found,
            None => (self.map_slab()?, UNITS - count),
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

    /// Clears all marks.
    ///
    /// # Safety
    ///
    /// The caller is the collector, and the world is stopped.
    pub(crate) unsafe fn clear_marks(&mut self) {
        for slab in self.slabs.values() {
            for (unit, kind) in slab.kinds.iter().enumerate() {
                // SAFETY: by the contract; the slab is mapped, and a large object begins at each unit of that
                // kind.
                unsafe {
                    match kind {
                        Kind::Cells(_) => slab.chunk.block(unit / UNITS_PER_BLOCK).clear_marks(),
                        Kind::Large { .. } => {
                            MarkBit::of(Object::from_pointer(slab.chunk.unit(unit).object())).clear();
                        }
                        Kind::Free { .. } | Kind::Rest => {}
                    }
                }
            }
        }
        // SAFETY: by the contract.
        unsafe { self.huge.clear_marks() };
    }

    /// Frees unmarked objects, and finds the blocks that have room.
    ///
    /// # Safety
    ///
    /// The caller is the collector, the world is stopped, no mutator owns a block, and everything reachable is marked.
    pub(crate) unsafe fn sweep(&mut self, poison: bool) -> Live {
        let mut live = Live::default();
        self.available.iter_mut().for_each(Vec::clear);
        self.allocated = 0;
        for (&at, slab) in &mut self.slabs {
            let mut unit = RESERVED_UNITS;
            while unit < UNITS {
                match slab.kinds[unit] {
                    Kind::Free { .. } | Kind::Rest => unit += 1,
                    Kind::Cells(class) => {
                        let block = slab.chunk.block(unit / UNITS_PER_BLOCK);
                        // SAFETY: by the contract; the slab is mapped.
                        let marked = unsafe { block.count_marks() };
                        live.objects += marked;
                        live.bytes += marked * class.cell_bytes();
                        if poison {
                            // SAFETY: by the contract, unmarked cells of this block are unreachable.
                            unsafe { poison_free_cells(block, class) };
                        }
                        if marked == 0 {
                            slab.give_back(unit, UNITS_PER_BLOCK);
                            self.used -= BLOCK;
                        } else if marked < class.cells() {
                            let free = (class.cells() - marked) * class.cell_bytes();
                            self.available[class.index()].push((block, free));
                        }
                        unit += UNITS_PER_BLOCK;
                    }
                    Kind::Large { units } => {
                        let (place, units) = (slab.chunk.unit(unit), usize::from(units));
                        // SAFETY: the object's memory is mapped, and the world is stopped.
                        if unsafe { MarkBit::of(Object::from_pointer(place.object())).get() } {
                            live.objects += 1;
                            live.bytes += units * UNIT;
                        } else {
                            if poison {
                                // SAFETY: by the contract, the object is unreachable.
                                unsafe { place.fill(units * UNIT, POISON) };
                            }
                            slab.give_back(unit, units);
                            self.used -= units * UNIT;
                        }
                        unit += units;
                    }
                }
            }
            self.with_block.insert(at);
            self.with_unit.insert(at);
        }
        // Popped from the end: using low addresses first keeps the heap compact.
        self.available.iter_mut().for_each(|blocks| blocks.reverse());
        // SAFETY: by the contract.
        let swept = unsafe { self.huge.sweep(poison.then_some(POISON)) };
        live.objects += swept.live_objects;
        live.bytes += swept.live_bytes;
        self.used -= swept.freed_bytes;
        live
    }

    /// Returns spare chunks of huge objects to the system until `keep` bytes of them are left, or fewer if
    /// the limit has no room for them.
    pub(crate) fn drop_spare(&mut self, keep: usize) {
        let taken = self.used.saturating_add(self.external);
        let room = self.limit.map_or(usize::MAX, |limit| limit.saturating_sub(taken));
        self.huge.drop_spare(keep.min(room));
    }

    /// Returns chunks without objects to the system, as long as `keep` free bytes remain.
    pub(crate) fn trim(&mut self, keep: usize) {
        self.drop_spare(keep);
        let free: usize = self.slabs.values().map(|slab| slab.free_units() * UNIT).sum();
        let mut free = free + self.huge.spare_bytes();
        let (with_block, with_unit, mapped) = (&mut self.with_block, &mut self.with_unit, &mut self.mapped);
        self.slabs.retain(|at, slab| {
            let bytes = (UNITS - RESERVED_UNITS) * UNIT;
            let goes = slab.is_empty() && free.saturating_sub(bytes) >= keep;
            if goes {
                free -= bytes;
                *mapped -= slab.chunk.bytes();
                with_block.remove(at);
                with_unit.remove(at);
            }
            !goes
        });
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

/// # Safety
///
/// The caller is the collector, and unmarked cells of the block are unreachable.
unsafe fn poison_free_cells(block: BlockPtr, class: SizeClass) {
    let mut from = 0;
    // SAFETY: by the contract.
    while let Some((start, end)) = unsafe { block.next_run(class, from, BLOCK) } {
        let bytes = class.cell_bytes();
        // SAFETY: the cells of the run are in the block, and by the contract no code uses them.
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
            objects.iter().step_by(2).for_each(|&object| assert!(MarkBit::of(object).set()));
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
    fn units_are_found_where_a_naive_search_finds_them() {
        let mut slab = Slab::new(Chunk::map((BLOCKS - RESERVED) * BLOCK).unwrap());
        let mut state = 1_u64;
        let mut random = |below: usize| {
            state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            (state >> 33) as usize % below
        };
        for _ in 0..if cfg!(miri) { 20 } else { 500 } {
            let is_free = |slab: &Slab, first: usize, count: usize| {
                (first..first + count).all(|unit| matches!(slab.kinds[unit], Kind::Free { .. }))
            };
            let count = 1 + random(70);
            let naive = (0..=UNITS - count).rev().find(|&first| is_free(&slab, first, count));
            assert_eq!(slab.find_units(count), naive, "{count}");
            let block =
                (0..UNITS).step_by(UNITS_PER_BLOCK).find(|&first| is_free(&slab, first, UNITS_PER_BLOCK));
            assert_eq!(slab.find_block(), block);
            if let Some(first) = naive {
                slab.take(first, Kind::Large { units: count as u16 }, count);
            }
            let free = RESERVED_UNITS + random(UNITS - RESERVED_UNITS - 20);
            slab.give_back(free, random(20));
            let counted = slab.kinds.iter().filter(|kind| matches!(kind, Kind::Free { .. })).count();
            assert_eq!(slab.free_units(), counted);
        }
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
            MarkBit::of(object).set();
            assert_eq!(space.sweep(false).objects, 1);
            space.clear_marks();
            assert_eq!(space.sweep(false).objects, 0);
        }
        assert_eq!(space.used(), 0);
        space.drop_spare(0);
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
