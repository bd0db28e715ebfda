//! Size classes: the cell for an object of a given size.
//!
//! A *cell* is a tag word followed by the object. A block of [`BLOCK`] bytes holds cells of one class; the
//! first begins eight bytes into the block, so that the first object is aligned to 16:
//!
//! ```text
//!   block │ 8 unused │ tag │ object …  │ tag │ object …  │ … │ rest │
//!                    └──── cell ─────┘
//! ```
//!
//! | classes | cell sizes | why |
//! |---|---|---|
//! | 0 to 62 | 16, 24, … 512 | most objects have a few words, and a step of one word wastes nothing |
//! | 63 on | a block divided into 56, 50, … 2 cells, rounded down to 16 | at most an eighth is lost, until one block holds few |
//!
//! In a class whose size is a multiple of 16 every object is aligned to 16, as types with 128-bit fields
//! require. Larger objects take whole units (`chunk.rs`), which wastes at most an eighth.

use super::layout::{BLOCK, FIRST_CELL, TAG_BYTES};

/// The number of size classes.
pub const CLASSES: usize = FINE + COARSE.len();

/// The largest cell that shares a block.
pub const MAX_CELL: usize = coarse_size(COARSE.len() - 1);

/// Classes whose sizes are one word apart.
const FINE: usize = 63;
const SMALLEST: usize = 16;
const LARGEST_FINE: usize = SMALLEST + 8 * (FINE - 1);

/// The number of cells in a block of each further class.
const COARSE: [usize; 24] =
    [56, 50, 44, 40, 35, 32, 28, 25, 22, 20, 18, 16, 14, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2];

const fn coarse_size(index: usize) -> usize {
    ((BLOCK - FIRST_CELL) / COARSE[index]) & !15
}

/// The cell size of each class.
pub(crate) const CELLS: [u32; CLASSES] = {
    let mut sizes = [0; CLASSES];
    let mut class = 0;
    while class < CLASSES {
        sizes[class] = if class < FINE { SMALLEST + 8 * class } else { coarse_size(class - FINE) } as u32;
        class += 1;
    }
    sizes
};

/// A size class.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct SizeClass(u8);

impl SizeClass {
    /// The class of objects of `bytes` bytes, tag excluded, aligned to `align` (at most 16). `None`: the
    /// object is too large for a cell.
    pub fn of(bytes: usize, align: usize) -> Option<SizeClass> {
        // A power of two, or this would be a division.
        let align = if align > 8 { 16 } else { 8 };
        let cell = bytes.checked_add(TAG_BYTES)?.max(SMALLEST).checked_add(align - 1)? & !(align - 1);
        if cell <= LARGEST_FINE {
            return Some(SizeClass((cell.div_ceil(8) - SMALLEST / 8) as u8));
        }
        let coarse = CELLS[FINE..].partition_point(|&size| (size as usize) < cell);
        (coarse < COARSE.len()).then_some(SizeClass((FINE + coarse) as u8))
    }

    /// All classes, from small to large.
    pub fn all() -> impl Iterator<Item = SizeClass> {
        (0..CLASSES as u8).map(SizeClass)
    }

    /// A dense index.
    pub fn index(self) -> usize {
        usize::from(self.0)
    }

    /// The size of a cell in bytes.
    pub fn cell_bytes(self) -> usize {
        CELLS[self.index()] as usize
    }

    /// The number of cells in a block.
    pub(crate) fn cells(self) -> usize {
        (BLOCK - FIRST_CELL) / self.cell_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg_attr(miri, ignore = "arithmetic, and much of it")]
    fn every_size_gets_the_smallest_class_that_fits() {
        for align in [1, 8, 16] {
            for bytes in 0..=MAX_CELL + 100 {
                let fits = |class: &SizeClass| {
                    class.cell_bytes() >= bytes + TAG_BYTES && class.cell_bytes().is_multiple_of(align)
                };
                assert_eq!(SizeClass::of(bytes, align), SizeClass::all().find(fits), "{bytes} {align}");
            }
        }
        assert_eq!(SizeClass::of(usize::MAX, 8), None);
    }

    #[test]
    fn sizes_ascend_and_little_of_a_block_is_lost() {
        let sizes: Vec<usize> = SizeClass::all().map(SizeClass::cell_bytes).collect();
        assert!(sizes.windows(2).all(|w| w[0] < w[1]), "{sizes:?}");
        for class in SizeClass::all() {
            assert!(class.cells() * class.cell_bytes() + FIRST_CELL <= BLOCK);
            assert!(BLOCK - class.cells() * class.cell_bytes() <= BLOCK / 50 + FIRST_CELL, "{class:?}");
        }
    }
}
