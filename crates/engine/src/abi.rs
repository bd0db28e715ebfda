//! The version number of the assumptions of code, for code that outlives the process: in images, and in a cache.

use brolga_codegen::abi_id::abi_id;
use brolga_ir::heap_abi::HeapAbi;
use brolga_runtime::heap::{
    ARRAY_DATA, ARRAY_DIMS, ARRAY_MEMORY, LENGTH, MEMORY_DATA, MEMORY_ELEMENTS, STRING_BYTES, TAG_BYTES,
};

/// The layouts of objects that code takes for granted, beside those of the heap's cells and tags.
const OBJECTS: [usize; 8] =
    [LENGTH, MEMORY_DATA, MEMORY_ELEMENTS, STRING_BYTES, ARRAY_DATA, ARRAY_MEMORY, ARRAY_DIMS, TAG_BYTES];

/// The number of all layouts and calls that code on this heap takes for granted.
pub(crate) fn abi_of(heap: &HeapAbi) -> u64 {
    abi_id(heap, &OBJECTS)
}
