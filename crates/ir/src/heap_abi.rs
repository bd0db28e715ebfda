//! The heap's interface to compiled code: numbers provided by the run time.
//!
//! Code for a heap takes them only from here. Two heaps with the same fingerprint run the same code; an image
//! stores the fingerprint that it was compiled for.
//!
//! ```text
//!   allocate      c = [thread + runs + 16·class]; n = c + cell; if n > [thread + runs + 16·class + 8] (unsigned): slow
//!                 [thread + runs + 16·class] = n; [c] = tag; object = c + 8; zero the words that are not written immediately
//!   store         [object + offset] = value; if [object - 8] & old: brolga_gc_write(thread, object),
//!                 or brolga_gc_write_at(thread, object, address) for one reference of a `Memory`
//!   frame         [f] = 4·count; [f + 8] = [thread + gc_stack]; [thread + gc_stack] = f; roots at f + 16 …
//! ```
//!
//! The store barrier may be omitted for an object allocated since the last safepoint, and when the value is
//! null or permanent.

/// The smallest of the integers for which every heap has consecutive permanent boxes.
pub const SMALLEST_INT: i64 = -512;
/// The number of these boxes.
pub const SMALL_INTS: usize = 1024;
/// The distance between two of these boxes.
pub const SMALL_INT_BYTES: usize = 16;

/// Offset in the thread: units of fuel left until `brolga_refuel` is called, a signed 32-bit number.
pub const THREAD_FUEL: i32 = 20;

/// The heap's interface to compiled code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HeapAbi {
    /// Size of the tag word, which ends where the object begins.
    pub tag_bytes: usize,
    /// Bits of a tag that are not the address of the type.
    pub tag_bits: u64,
    /// The tag bit that sends stores of pointers to the slow path.
    pub tag_old: u64,
    /// The tag bit of objects outside the heap.
    pub tag_permanent: u64,
    /// The bytes of a cell of each size class, tag included, ascending.
    pub cells: &'static [u32],
    /// Offset in the thread: innermost GC frame.
    pub gc_stack: usize,
    /// Offset in the thread: the allocation cursor of class 0, followed by its limit.
    pub runs: usize,
    /// The distance from one class's cursor to the next.
    pub run_bytes: usize,
    /// Whether free cells are zero. If not, the code that takes one writes every word of the object before the next safepoint.
    pub zeroed: bool,
    /// Whether objects move at safepoints.
    pub moving: bool,
}

impl HeapAbi {
    /// A number that differs if any of the others differs.
    pub fn fingerprint(&self) -> u64 {
        let HeapAbi { tag_bytes, tag_bits, tag_old, tag_permanent, .. } = *self;
        let HeapAbi { cells, gc_stack, runs, run_bytes, zeroed, moving, .. } = *self;
        let sizes = [tag_bytes, cells.len(), gc_stack, runs, run_bytes].map(|size| size as u64);
        let others = [tag_bits, tag_old, tag_permanent, zeroed.into(), moving.into()];
        // FNV-1a over words.
        let step = |hash: u64, word: &u64| (hash ^ word).wrapping_mul(0x100_0000_01b3);
        let hash = sizes.iter().chain(&others).fold(0xcbf2_9ce4_8422_2325, step);
        cells.iter().fold(hash, |hash, &cell| step(hash, &cell.into()))
    }

    /// The size class of objects of `bytes` bytes, tag excluded, aligned to `align` (at most 16), and the
    /// size of its cells. `None`: the object is too large for a cell.
    pub fn class_of(&self, bytes: usize, align: usize) -> Option<(usize, u32)> {
        let least = bytes.checked_add(self.tag_bytes)?;
        let align = align.clamp(8, 16);
        let first = self.cells.partition_point(|&cell| (cell as usize) < least);
        let fits = |&(_, cell): &(usize, &u32)| (*cell as usize).is_multiple_of(align);
        self.cells.iter().enumerate().skip(first).find(fits).map(|(class, &cell)| (class, cell))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: HeapAbi = HeapAbi {
        tag_bytes: 8,
        tag_bits: 15,
        tag_old: 2,
        tag_permanent: 8,
        cells: &[16, 24, 32, 48, 64],
        gc_stack: 24,
        runs: 64,
        run_bytes: 16,
        zeroed: true,
        moving: false,
    };

    #[test]
    fn the_fingerprint_sees_every_number() {
        let own = OWN;
        let others = [
            HeapAbi { tag_old: 4, ..own },
            HeapAbi { runs: own.runs + 8, ..own },
            HeapAbi { moving: true, ..own },
            HeapAbi { cells: &[16, 24, 32, 48, 80], ..own },
            HeapAbi { cells: &[16, 24, 32, 48], ..own },
        ];
        for other in others {
            assert_ne!(own.fingerprint(), other.fingerprint(), "{other:?}");
        }
    }

    #[test]
    fn the_class_is_the_first_whose_cells_fit() {
        let class = |bytes, align| OWN.class_of(bytes, align);
        assert_eq!(class(0, 8), Some((0, 16)));
        assert_eq!(class(16, 8), Some((1, 24)));
        assert_eq!(class(16, 16), Some((2, 32)));
        assert_eq!(class(17, 1), Some((2, 32)));
        assert_eq!(class(56, 8), Some((4, 64)));
        assert_eq!((class(57, 8), class(usize::MAX, 8)), (None, None));
    }
}
