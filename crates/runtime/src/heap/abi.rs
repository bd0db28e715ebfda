//! The [`HeapAbi`] of the default heap.

use super::class::CELLS;
use super::layout::{MUTATOR, TAG_BITS, TAG_BYTES, TAG_OLD, TAG_PERMANENT};
use super::mutator::MutatorLayout;
use brolga_ir::heap_abi::HeapAbi;

/// The default heap's interface to compiled code.
pub const DEFAULT_ABI: HeapAbi = HeapAbi {
    tag_bytes: TAG_BYTES,
    tag_bits: TAG_BITS,
    tag_old: TAG_OLD,
    tag_permanent: TAG_PERMANENT,
    cells: &CELLS,
    gc_stack: MUTATOR + MutatorLayout::GC_STACK,
    runs: MUTATOR + MutatorLayout::RUNS,
    run_bytes: MutatorLayout::RUN_BYTES,
    zeroed: false,
    moving: false,
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::heap::class::SizeClass;

    #[test]
    #[cfg_attr(miri, ignore = "arithmetic, and much of it")]
    fn compiled_code_and_the_heap_agree_on_classes() {
        for align in [1, 8, 16] {
            for bytes in (0..9000).chain([16_000, 16_400, 40_000]) {
                let own = SizeClass::of(bytes, align).map(|class| (class.index(), class.cell_bytes() as u32));
                assert_eq!(DEFAULT_ABI.class_of(bytes, align), own, "{bytes} {align}");
            }
        }
    }
}
