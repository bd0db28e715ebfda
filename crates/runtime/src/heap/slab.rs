//! A slab: a chunk, the use of its units, and the sweep of them.
//!
//! Blocks of cells are taken from the low end and large objects from the high end (`space.rs`). A sweep frees what has no mark; it looks at
//! the marks of each block, 64 words, and at no object.

use super::chunk::{BlockPtr, Chunk, MarkBit, RESERVED_UNITS, Side, UNIT, UNITS, UNITS_PER_BLOCK};
use super::class::SizeClass;
use super::layout::{BLOCK, FIRST_CELL};
use super::object::Object;

/// The byte that overwrites freed memory.
pub(crate) const POISON: u8 = 0xdd;

/// The number of live objects, and their size in bytes.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Live {
    pub(crate) bytes: usize,
    pub(crate) objects: usize,
}

/// The use of a unit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
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
pub(super) struct Slab {
    pub(super) chunk: Chunk,
    pub(super) kinds: Box<[Kind; UNITS]>,
    /// One bit for each free unit.
    free: [u64; UNITS / WORD],
    /// An upper bound of the longest run of free units, so that a slab without room is not searched for each
    /// object.
    longest: usize,
}

impl Slab {
    pub(super) fn new(chunk: Chunk) -> Slab {
        let mut kinds = Box::new([Kind::Free { zeroed: true }; UNITS]);
        kinds[..RESERVED_UNITS].fill(Kind::Rest);
        let mut free = [u64::MAX; UNITS / WORD];
        (0..RESERVED_UNITS).for_each(|unit| free[unit / WORD] &= !(1 << (unit % WORD)));
        Slab { chunk, kinds, free, longest: UNITS }
    }

    pub(super) fn free_units(&self) -> usize {
        self.free.iter().map(|word| word.count_ones() as usize).sum()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.free_units() == UNITS - RESERVED_UNITS
    }

    /// The first unit of the lowest free block.
    pub(super) fn find_block(&self) -> Option<usize> {
        self.free.iter().zip((0..).step_by(WORD)).find_map(|(word, first)| {
            let blocks = (0..WORD).step_by(UNITS_PER_BLOCK);
            blocks.clone().find(|&at| word >> at & BLOCK_BITS == BLOCK_BITS).map(|at| first + at)
        })
    }

    /// The highest run of `count` free units; returns its first unit.
    pub(super) fn find_units(&mut self, count: usize) -> Option<usize> {
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
    pub(super) fn take(&mut self, first: usize, kind: Kind, count: usize) -> bool {
        let taken = &mut self.kinds[first..first + count];
        let zeroed = taken.iter().all(|kind| *kind == Kind::Free { zeroed: true });
        taken.fill(Kind::Rest);
        self.kinds[first] = kind;
        (first..first + count).for_each(|unit| self.free[unit / WORD] &= !(1 << (unit % WORD)));
        zeroed
    }

    pub(super) fn give_back(&mut self, first: usize, count: usize) {
        self.kinds[first..first + count].fill(Kind::Free { zeroed: false });
        (first..first + count).for_each(|unit| self.free[unit / WORD] |= 1 << (unit % WORD));
        self.longest = UNITS;
    }

    /// Clears the marks of all objects.
    ///
    /// # Safety
    ///
    /// The caller is the collector, and the world is stopped.
    pub(super) unsafe fn clear_marks(&self, side: Side) {
        for (unit, kind) in self.kinds.iter().enumerate() {
            // SAFETY: by the contract; the slab is mapped, and a large object begins at each unit of that
            // kind.
            unsafe {
                match kind {
                    Kind::Cells(_) => self.chunk.block(unit / UNITS_PER_BLOCK).clear_marks(side),
                    Kind::Large { .. } => {
                        MarkBit::of(side, Object::from_pointer(self.chunk.unit(unit).object())).clear();
                    }
                    Kind::Free { .. } | Kind::Rest => {}
                }
            }
        }
    }

    /// Frees what is not marked on this side. Adds blocks with free cells to `found`, ascending, with the bytes of these cells. Returns what is
    /// alive, and the bytes freed.
    ///
    /// # Safety
    ///
    /// No mutator owns a block of the slab, everything reachable is marked, and nothing has been allocated here since the marking.
    pub(super) unsafe fn sweep(
        &mut self,
        side: Side,
        poison: bool,
        found: &mut Vec<(SizeClass, BlockPtr, usize)>,
    ) -> (Live, usize) {
        let (mut live, mut freed) = (Live::default(), 0);
        let mut unit = RESERVED_UNITS;
        while unit < UNITS {
            match self.kinds[unit] {
                Kind::Free { .. } | Kind::Rest => unit += 1,
                Kind::Cells(class) => {
                    let block = self.chunk.block(unit / UNITS_PER_BLOCK);
                    // SAFETY: by the contract; the slab is mapped.
                    let marked = unsafe { block.count_marks(side) };
                    live.objects += marked;
                    live.bytes += marked * class.cell_bytes();
                    if poison {
                        // SAFETY: by the contract, unmarked cells of this block are unreachable.
                        unsafe { poison_free_cells(side, block, class) };
                    }
                    if marked == 0 {
                        self.give_back(unit, UNITS_PER_BLOCK);
                        freed += BLOCK;
                    } else if marked < class.cells() {
                        found.push((class, block, (class.cells() - marked) * class.cell_bytes()));
                    }
                    unit += UNITS_PER_BLOCK;
                }
                Kind::Large { units } => {
                    let (place, units) = (self.chunk.unit(unit), usize::from(units));
                    // SAFETY: the object's memory is mapped, and the collector writes no marks now.
                    if unsafe { MarkBit::of(side, Object::from_pointer(place.object())).get() } {
                        live.objects += 1;
                        live.bytes += units * UNIT;
                    } else {
                        if poison {
                            // SAFETY: by the contract, the object is unreachable.
                            unsafe { place.fill(units * UNIT, POISON) };
                        }
                        self.give_back(unit, units);
                        freed += units * UNIT;
                    }
                    unit += units;
                }
            }
        }
        (live, freed)
    }
}

/// # Safety
///
/// The caller is the collector, and unmarked cells of the block are unreachable.
unsafe fn poison_free_cells(side: Side, block: BlockPtr, class: SizeClass) {
    let mut from = 0;
    // SAFETY: by the contract.
    while let Some((start, end)) = unsafe { block.next_run(side, class, from, BLOCK) } {
        let bytes = class.cell_bytes();
        // SAFETY: the cells of the run are in the block, and by the contract no code uses them.
        unsafe { block.fill(FIRST_CELL + start * bytes, (end - start) * bytes, POISON) };
        from = end;
    }
}

#[cfg(test)]
mod tests {
    use super::super::chunk::{BLOCKS, RESERVED};
    use super::*;

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
}
