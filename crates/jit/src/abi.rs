//! The version number of the ABI that generated code relies on, for code that outlives the process: in images and caches.

use brolga_codegen::abi_id::abi_id;
use brolga_ir::heap_abi::HeapAbi;
use brolga_runtime::heap::{
    ARRAY_DATA, ARRAY_DIMS, ARRAY_MEMORY, LENGTH, MEMORY_DATA, MEMORY_ELEMENTS, STRING_BYTES, TAG_BYTES,
};

/// The object layouts that code relies on, in addition to the layouts of the heap's cells and tags.
const OBJECTS: [usize; 8] =
    [LENGTH, MEMORY_DATA, MEMORY_ELEMENTS, STRING_BYTES, ARRAY_DATA, ARRAY_MEMORY, ARRAY_DIMS, TAG_BYTES];

/// The number of all layouts and calls that code on this heap relies on.
pub fn abi_of(heap: &HeapAbi) -> u64 {
    abi_id(heap, &OBJECTS)
}
