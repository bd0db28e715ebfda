//! The layout that compiled code, the heap and its objects agree on: blocks, cells, tag words, strings and arrays.
//!
//! ```text
//!   block │ 8 unused │ tag │ object …  │ tag │ object …  │ … │ rest │
//!                    └──── cell ─────┘
//!   tag       address of the type │ OLD │ PERMANENT │ SLOTS
//!   String    length │ bytes …
//!   Memory    length │ address of the elements │ elements …
//!   Array     address of the first element │ Memory │ dimensions …
//! ```

/// The size of a block.
pub(crate) const BLOCK: usize = 32 << 10;

/// The offset of the first cell of a block.
pub(crate) const FIRST_CELL: usize = 8;

/// Size of the tag word before every object.
pub const TAG_BYTES: usize = 8;

/// The tag bit of objects that the store barrier has to handle.
pub const TAG_OLD: u64 = 1;

/// The tag bit of objects outside the heap.
pub const TAG_PERMANENT: u64 = 2;

/// The tag bit of `Memory`s into which stores are recorded one by one (`slots.rs`).
pub(crate) const TAG_SLOTS: u64 = 4;

/// The bits of a tag word that are not the address of the type.
pub const TAG_BITS: u64 = 15;

/// The offset of the length of a `Memory` or `String`.
pub const LENGTH: usize = 0;

/// The offset of the bytes of a `String`.
pub const STRING_BYTES: usize = 8;

/// The offset of the address of the elements of a `Memory`.
pub const MEMORY_DATA: usize = 8;

/// The offset of the elements of a `Memory`.
pub const MEMORY_ELEMENTS: usize = 16;

/// The offset of the address of an `Array`'s first element.
pub const ARRAY_DATA: usize = 0;

/// The offset of the `Memory` of an `Array`.
pub const ARRAY_MEMORY: usize = 8;

/// The offset of the dimensions of an `Array`.
pub const ARRAY_DIMS: usize = 16;

/// The offset of the heap's words in a [`Thread`](crate::Thread), which is checked where that type is
/// defined.
pub(crate) const MUTATOR: usize = 40;
