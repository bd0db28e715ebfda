//! The layout that compiled code, the heap and its objects agree on: blocks, cells, tag words, strings and arrays.
//!
//! ```text
//!   block │ 8 unused │ tag │ object …  │ tag │ object …  │ … │ rest │
//!                    └──── cell ─────┘
//!   tag       address of the type │ OLD │ PERMANENT
//!   String    length │ bytes …
//!   Memory    length │ address of the elements │ elements …
//!   Array     address of the first element │ Memory │ dimensions …
//! ```

/// The size of a block.
pub(crate) const BLOCK: usize = 32 << 10;

/// Where the first cell of a block lies.
pub(crate) const FIRST_CELL: usize = 8;

/// Bytes of the tag word in front of every object.
pub const TAG_BYTES: usize = 8;

/// The tag bit of objects that the store barrier has to look at.
pub const TAG_OLD: u64 = 1;

/// The tag bit of objects outside of the heap.
pub const TAG_PERMANENT: u64 = 2;

/// The bits of a tag word that are not the address of the type.
pub const TAG_BITS: u64 = 15;

/// Where the length of a `Memory` or `String` lies.
pub const LENGTH: usize = 0;

/// Where the bytes of a `String` begin.
pub const STRING_BYTES: usize = 8;

/// Where the address of the elements of a `Memory` lies.
pub const MEMORY_DATA: usize = 8;

/// Where the elements of a `Memory` begin.
pub const MEMORY_ELEMENTS: usize = 16;

/// Where the address of an `Array`'s first element lies.
pub const ARRAY_DATA: usize = 0;

/// Where the `Memory` of an `Array` lies.
pub const ARRAY_MEMORY: usize = 8;

/// Where the dimensions of an `Array` begin.
pub const ARRAY_DIMS: usize = 16;

/// Where the heap's words lie in a [`Thread`](crate::Thread), whose layout is checked against this where it is defined.
pub(crate) const MUTATOR: usize = 40;
