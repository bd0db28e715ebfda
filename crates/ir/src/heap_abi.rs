//! What compiled code knows of the heap: numbers that a run time gives.
//!
//! Whoever makes code for a heap takes them from here and from nowhere else. Two heaps with the same fingerprint run the same
//! code; an image stores the fingerprint that it was compiled for.
//!
//! ```text
//!   allocate      c = [thread + runs + 16·class]; n = c + cell; if n > [thread + runs + 16·class + 8] (unsigned): slow
//!                 [thread + runs + 16·class] = n; [c] = tag; object = c + 8
//!   store         [object + offset] = value; if [object - 8] & old: brolga_gc_write(thread, object)
//!   frame         [f] = 4·count; [f + 8] = [thread + gc_stack]; [thread + gc_stack] = f; roots at f + 16 …
//! ```
//!
//! The store barrier may be left out for an object that was allocated since the last safepoint, and when the value is null or
//! permanent.

/// What compiled code knows of the heap.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HeapAbi {
    /// Bytes of the tag word, which ends where the object begins.
    pub tag_bytes: usize,
    /// Bits of a tag that are not the address of the type.
    pub tag_bits: u64,
    /// The tag bit that sends stores of pointers to the slow path.
    pub tag_old: u64,
    /// The tag bit of objects outside of the heap.
    pub tag_permanent: u64,
    /// The number of size classes.
    pub classes: usize,
    /// The largest cell.
    pub max_cell: usize,
    /// Offset in the thread: innermost GC frame.
    pub gc_stack: usize,
    /// Offset in the thread: cursor of class 0, its limit in the next word.
    pub runs: usize,
    /// From the cursor of one class to the next.
    pub run_bytes: usize,
    /// Whether new objects are zero.
    pub zeroed: bool,
    /// Whether objects move at safepoints.
    pub moving: bool,
}

impl HeapAbi {
    /// A number that differs when any of the others does.
    pub fn fingerprint(&self) -> u64 {
        let HeapAbi { tag_bytes, tag_bits, tag_old, tag_permanent, .. } = *self;
        let HeapAbi { classes, max_cell, gc_stack, runs, run_bytes, zeroed, moving, .. } = *self;
        let sizes = [tag_bytes, classes, max_cell, gc_stack, runs, run_bytes].map(|size| size as u64);
        let others = [tag_bits, tag_old, tag_permanent, zeroed.into(), moving.into()];
        // FNV-1a, by words.
        let step = |hash: u64, word: &u64| (hash ^ word).wrapping_mul(0x100_0000_01b3);
        sizes.iter().chain(&others).fold(0xcbf2_9ce4_8422_2325, step)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fingerprint_sees_every_number() {
        let own = HeapAbi {
            tag_bytes: 8,
            tag_bits: 15,
            tag_old: 2,
            tag_permanent: 8,
            classes: 40,
            max_cell: 2048,
            gc_stack: 24,
            runs: 64,
            run_bytes: 16,
            zeroed: true,
            moving: false,
        };
        let others = [
            HeapAbi { tag_old: 4, ..own },
            HeapAbi { runs: own.runs + 8, ..own },
            HeapAbi { moving: true, ..own },
            HeapAbi { max_cell: own.max_cell - 16, ..own },
        ];
        for other in others {
            assert_ne!(own.fingerprint(), other.fingerprint(), "{other:?}");
        }
    }
}
