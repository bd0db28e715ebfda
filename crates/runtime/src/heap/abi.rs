//! The numbers of [`HeapAbi`] that hold for the default heap.

use super::class::{CLASSES, MAX_CELL, TAG_BYTES};
use super::mutator::MutatorLayout;
use super::object::{TAG_BITS, TAG_OLD, TAG_PERMANENT};
use crate::thread::ThreadLayout;
use brolga_ir::heap_abi::HeapAbi;

/// What code for the default heap knows of it.
pub const DEFAULT_ABI: HeapAbi = HeapAbi {
    tag_bytes: TAG_BYTES,
    tag_bits: TAG_BITS,
    tag_old: TAG_OLD,
    tag_permanent: TAG_PERMANENT,
    classes: CLASSES,
    max_cell: MAX_CELL,
    gc_stack: ThreadLayout::MUTATOR + MutatorLayout::GC_STACK,
    runs: ThreadLayout::MUTATOR + MutatorLayout::RUNS,
    run_bytes: MutatorLayout::RUN_BYTES,
    zeroed: true,
    moving: false,
};
