//! The tracing garbage-collected heap.
//!
//! Non-moving, generational by sticky mark bits, one heap per runtime. The design is Julia's: size classes,
//! and marks that stay set between full collections. Free cells are not linked: a block's mark bits show
//! them, and a mutator takes them in runs, so that compiled code allocates by adding to a cursor.
//!
//! ```text
//!  compiled code ── cursor, limit ──┐                         ┌── roots: GC frames, scopes, handles
//!  Rust ── Scope, Root, Obj ────────┤                         │
//!                                   ▼                         ▼
//!            Mutator (in Thread) ── Heap ── collect ── mark ── sweep blocks ── Space ── chunks
//! ```
//!
//! | file | what it holds |
//! |---|---|
//! | `options.rs` | options; statistics |
//! | `class.rs` | size classes |
//! | `pages.rs` | memory from the system |
//! | `chunk.rs` | chunks, blocks, mark bits |
//! | `space.rs`, `slab.rs`, `sweep.rs` | which blocks are free; large objects; sweeping; the limit |
//! | `huge.rs` | objects that have their own chunk |
//! | `desc.rs`, `types.rs` | run-time types and their table |
//! | `field_table.rs` | fields by name |
//! | `permanent.rs` | constants as objects |
//! | `layout.rs` | blocks, cells, tags, strings and arrays: what compiled code and the heap agree on |
//! | `object.rs` | raw access to tags and fields |
//! | `mutator.rs` | the heap's part of a thread, with the words that compiled code uses |
//! | `handshake.rs`, `world.rs` | stopping the world |
//! | `policy.rs` | when to collect, and what |
//! | `mark.rs`, `collect.rs`, `verify.rs`, `canaries.rs` | a collection, and its checks |
//! | `slices.rs`, `phase.rs`, `pace.rs`, `slots.rs` | a collection in slices: short pauses |
//! | `handles.rs` | persistent roots, weak handles, finalizers of dead objects |
//! | `thread_cells.rs` | thread-local variables |
//! | `heap.rs` | the heap, and its interface to memory backends |
//! | `memory.rs` | the memory of a heap: cells or `mmtk` |
//! | `finalize.rs` | finalizers, and running them |
//! | `cells.rs` | the default memory: allocation and its slow paths |
//! | `abi.rs` | the offsets and masks that compiled code contains |
//! | `mmtk/` | the alternative memory, by the crate `mmtk`, with the feature `heap-mmtk` |
//! | `scope.rs`, `array.rs` | objects in safe Rust |
//! | `column.rs` | vectors over memory of the host |
//!
//! Not done: parallel marking; moving; returning single pages.

mod abi;
mod array;
mod canaries;
mod cells;
mod census;
mod chunk;
mod class;
mod collect;
mod column;
mod desc;
mod field_table;
mod finalize;
mod handles;
mod handshake;
#[expect(clippy::module_inception, reason = "the heap itself, beside its parts")]
mod heap;
mod huge;
mod layout;
mod machine;
mod mark;
mod memory;
#[cfg(feature = "heap-mmtk")]
mod mmtk;
mod mutator;
mod object;
mod options;
mod pace;
mod pages;
mod pauses;
mod permanent;
mod phase;
mod policy;
mod scope;
mod slab;
mod slices;
mod slots;
mod space;
mod sweep;
mod thread_cells;
mod types;
mod verify;
mod world;

pub use abi::DEFAULT_ABI;
pub use array::End;
pub use class::{CLASSES, MAX_CELL, SizeClass};
pub use column::Column;
pub use desc::{Element, ObjectKind, TypeDesc, TypeRef};
pub(crate) use field_table::FieldRow;
pub use finalize::{Finalizer, VisitFn};
pub(crate) use handles::CellWord;
pub use handles::{Persistent, RootCell, WeakHandle};
pub(crate) use heap::{EXCEPTION_KINDS, allocate_at_hand};
pub use heap::{Heap, OutOfMemory};
pub use layout::{
    ARRAY_DATA, ARRAY_DIMS, ARRAY_MEMORY, LENGTH, MEMORY_DATA, MEMORY_ELEMENTS, STRING_BYTES, TAG_BITS,
    TAG_BYTES, TAG_OLD, TAG_PERMANENT,
};
pub use machine::address_limit;
#[cfg(feature = "heap-mmtk")]
pub use mmtk::{MmtkError, MmtkOptions, MmtkPlan};
pub use mutator::{GcFrame, Mutator, MutatorLayout};
pub use options::{Generations, HeapOptions, HeapStats, Stress};
pub use pauses::Pauses;
pub use policy::Collection;
pub use scope::{Bits, Obj, ObjectError, Root, Scope};
pub(crate) use types::{CommonTypes, Unused, translate};

pub(crate) use array::{
    address_of, bits_of, drop_first_in_place, elements_at, elements_from, grow_in_place, grow_plain,
    position_of, shrink_in_place,
};
pub(crate) use layout::MUTATOR;
pub(crate) use mutator::Paused;
pub(crate) use object::{Object, desc_of_tag};
pub(crate) use scope::with_scope;
pub(crate) use world::{POLL_COLLECT, POLL_END};
