//! Sweeping: finding the blocks with room, and freeing what has no mark.
//!
//! ```text
//!   marking ends ── begin_sweep: huge objects; no block is available ── sweep_next: one slab ── … ── end_sweep: what lives
//!                                                                         ▲
//!        a collection, at once ───────────────────────────────────────────┤
//!        allocations and steps, one by one, without stopping the world ───┘
//! ```
//!
//! A sweep needs no pause: it reads marks, which only the collector writes, of blocks that no mutator owns, and nothing is allocated in a
//! slab before it has been swept. If the marks of the other side are from the last full marking, the sweep clears them, so that they
//! are zero when the next one begins (`chunk.rs`).
//!
//! Cost: 8 KiB of marks for each megabyte in use, some microseconds a slab.

use super::chunk::Side;
use super::slab::{Live, POISON};
use super::space::{Space, Sweeping};

impl Space {
    /// Clears the marks of all objects.
    ///
    /// # Safety
    ///
    /// The caller is the collector, and the world is stopped.
    pub(crate) unsafe fn clear_marks(&mut self) {
        // SAFETY: by the contract.
        unsafe {
            self.slabs.values().for_each(|slab| slab.clear_marks(self.side));
            self.huge.clear_marks(self.side);
        }
    }

    /// Clears what a marking on the other side that is abandoned has set.
    ///
    /// # Safety
    ///
    /// The caller is the collector, and the world is stopped.
    pub(crate) unsafe fn clear_other_side(&mut self) {
        let other = self.side.other();
        // SAFETY: by the contract.
        unsafe {
            self.slabs.values().for_each(|slab| slab.chunk.clear_side(other));
            self.huge.clear_marks(other);
        }
    }

    /// Frees unmarked objects, and finds the blocks that have room.
    ///
    /// # Safety
    ///
    /// The caller is the collector, the world is stopped, no mutator owns a block, and everything reachable is marked.
    pub(crate) unsafe fn sweep(&mut self, poison: bool) -> Live {
        // SAFETY: by the contract.
        unsafe { self.begin_sweep(self.side, poison) };
        // Blocks are popped from the end: the lowest slab comes last, because using low addresses first keeps the heap compact.
        if let Some(sweeping) = &mut self.sweeping {
            sweeping.left.reverse();
        }
        while self.sweep_next() {}
        self.end_sweep().unwrap_or_default()
    }

    /// Begins a sweep by the marks of a side, which say from now on what is alive. Until a slab is swept nothing is allocated in it.
    ///
    /// # Safety
    ///
    /// As for [`Space::sweep`].
    pub(crate) unsafe fn begin_sweep(&mut self, marked: Side, poison: bool) {
        let clears = marked != self.side;
        self.side = marked;
        self.available.iter_mut().for_each(Vec::clear);
        self.with_block.clear();
        self.with_unit.clear();
        self.allocated = 0;
        self.huge_wanted = std::mem::take(&mut self.huge_made);
        // SAFETY: by the contract.
        let swept = unsafe {
            let swept = self.huge.sweep(marked, poison.then_some(POISON));
            if clears {
                self.huge.clear_marks(marked.other());
            }
            swept
        };
        self.used -= swept.freed_bytes;
        let live = Live { bytes: swept.live_bytes, objects: swept.live_objects };
        let left = self.slabs.keys().rev().copied().collect();
        self.sweeping = Some(Sweeping { left, live, clears, poison, found: Vec::new() });
    }

    /// Sweeps a slab; returns whether there was one.
    pub(crate) fn sweep_next(&mut self) -> bool {
        let Some(sweeping) = &mut self.sweeping else { return false };
        let Some(at) = sweeping.left.pop() else { return false };
        let Some(slab) = self.slabs.get_mut(&at) else { return true };
        // SAFETY: `begin_sweep` was called by the collector when everything was marked and no mutator owned a block; nothing has been allocated
        // in the slab since, and no marking begins before the sweep has ended (`slices.rs`).
        let (live, freed) = unsafe { slab.sweep(self.side, sweeping.poison, &mut sweeping.found) };
        if sweeping.clears {
            // SAFETY: no code uses the other side before the next marking.
            unsafe { slab.chunk.clear_side(self.side.other()) };
        }
        sweeping.live.objects += live.objects;
        sweeping.live.bytes += live.bytes;
        self.used -= freed;
        for (class, block, free) in sweeping.found.drain(..).rev() {
            self.available[class.index()].push((block, free));
        }
        self.with_block.insert(at);
        self.with_unit.insert(at);
        true
    }

    /// Ends a sweep that has no slab left; returns what is alive. `None` if there are slabs left, or no sweep is under way.
    pub(crate) fn end_sweep(&mut self) -> Option<Live> {
        let done = self.sweeping.take_if(|sweeping| sweeping.left.is_empty())?;
        Some(done.live)
    }
}

#[cfg(test)]
mod tests {
    use super::super::chunk::{BLOCKS, MarkBit};
    use super::super::class::SizeClass;
    use super::super::object::Object;
    use super::*;

    #[test]
    fn a_sweep_in_parts_finds_what_a_sweep_at_once_finds_and_allocation_goes_on_between() {
        let mut space = Space::new(None);
        let class = SizeClass::of(1000, 8).unwrap();
        let blocks: Vec<_> = (0..3 * BLOCKS).map(|_| space.take_cells(class).unwrap()).collect();
        let side = space.side().other();
        // SAFETY: no other code can reach the space; the first cell of every third block counts as reachable.
        unsafe {
            for block in blocks.iter().step_by(3) {
                assert!(MarkBit::of(side, Object::from_pointer(block.cell(class, 0).add(8))).set());
            }
            space.begin_sweep(side, false);
        }
        assert!(space.end_sweep().is_none(), "nothing has been swept");
        let mut taken = Vec::new();
        while space.sweep_next() {
            taken.push(space.take_cells(class).unwrap());
            taken.push(space.take_cells(SizeClass::of(40, 8).unwrap()).unwrap());
        }
        let live = space.end_sweep().unwrap();
        assert_eq!((live.objects, live.bytes), (BLOCKS, BLOCKS * class.cell_bytes()));
        let all = taken.len();
        taken.sort_unstable();
        taken.dedup();
        assert_eq!(taken.len(), all, "no block is taken twice");
        // SAFETY: as above. The other side is clear, so nothing counts as reachable.
        unsafe { space.begin_sweep(side.other(), false) };
        while space.sweep_next() {}
        assert_eq!(space.end_sweep().unwrap().objects, 0);
        assert_eq!(space.used(), 0);
    }
}
