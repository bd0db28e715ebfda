//! Compiling and linking in process: from compiled functions to calls that Rust can make.
//!
//! ```text
//!   low Func ──► CompiledFunction ──┐                    names resolved by us
//!                DataObject ────────┴─► LinkUnit ──► Linker ──► LoadedUnit ──► Unit ──► TypedFunc::call
//!                                                       │                       │
//!                                                  CodeMemory             entry trampolines
//! ```
//!
//! Reading order:
//!
//! | file             | what it holds                                                                    |
//! |------------------|----------------------------------------------------------------------------------|
//! | `pages.rs`       | the system calls on pages                                                        |
//! | `arena.rs`       | which bytes of a stripe are free                                                 |
//! | `code_memory.rs` | one reservation of address space: shared stripes with two mappings, page runs    |
//! | `code_map.rs`    | the ordered index of loaded code: from an address to unit, function and line     |
//! | `reservation.rs` | its ranges, chunks and second mapping                                            |
//! | `space.rs`       | what a unit holds of it: pages of its own, or blocks                             |
//! | `fetch.rs`       | lets processors fetch what was written: caches, barriers                          |
//! | `linker.rs`      | the trait, link units, symbol resolution and every check before placing          |
//! | `relocate.rs`    | what a relocation writes                                                         |
//! | `loader.rs`      | the trait by ourselves: units share pages                                        |
//! | `cranelift.rs`   | the trait by `cranelift-jit`, one module for each link unit                      |
//! | `perf_map.rs`, `jitdump.rs`, `gdb.rs`, `elf.rs` | loaded code for profilers and debuggers                  |
//! | `unwind_tables.rs` | loaded code for the system's unwinder                                           |
//! | `cache.rs`       | who frees code when there is no room                                              |
//! | `entry.rs`       | trampolines, one for each native signature                                       |
//! | `engine.rs`      | [`Jit`] and [`Unit`]: what the layer above holds                                 |
//! | `generators.rs`  | scratch memory of compiling, used by one thread after the other                  |
//! | `program.rs`     | [`Jit::build`]: from low IR to a unit                                            |
//! | `image.rs`       | code of an image: its addresses are in one table                                 |
//! | `c_entry.rs`     | addresses by which C calls functions                                             |
//! | `cell/`          | indirect cells: functions compiled when called first, replaced while called      |
//! | `interpret.rs`   | functions that are interpreted until their code is there                         |
//! | `tiers.rs`       | functions that are compiled again when they are called often                     |
//! | `object_file.rs` | object files and static archives of other compilers                                |
//! | `globals.rs`     | global variables of a program                                                    |
//! | `value.rs`       | Rust types at the doorway and the words that carry them                          |
//! | `func.rs`        | the doorway: typed and untyped calls                                             |
//!
//! Everything loaded is owned: a unit's memory goes back to the system when the last handle to it, to a function of it
//! or to a unit that was linked against it is dropped.

mod activation;
mod arena;
mod c_entry;
mod cache;
mod cell;
mod code_map;
mod code_memory;
mod cranelift;
mod elf;
mod engine;
mod entry;
mod fetch;
mod func;
#[cfg(feature = "gdb")]
mod gdb;
mod generators;
mod globals;
mod image;
mod interpret;
mod jitdump;
mod linker;
mod loader;
mod maps;
mod object_file;
mod pages;
mod perf_map;
mod profile;
mod program;
mod relocate;
mod reservation;
mod scoped;
mod space;
mod tiers;
mod unwind_tables;
mod value;

pub use activation::{Activation, RawEntry, activate};
pub use brolga_instances::{Evicted, Moving};
pub use c_entry::CEntryError;
pub use cache::{Evictor, UnitCache};
pub use cell::{
    Body, CellError, CellOwner, Elsewhere, FindCell, Held, IndirectCell, Materialize, NoCell, Reserved,
    Superseded, Switch, Target,
};
pub use code_map::{CodeFunction, CodeListener, CodeMap, CodeUnit, Symbolized, UnitId};
pub use code_memory::{CodeMemory, CodeMemoryError, CodeMemoryOptions, CodeMemoryStats, Mapping};
pub use cranelift::CraneliftLinker;
pub use engine::{Jit, JitError, JitOptions, LinkerKind, Unit, WeakUnit};
pub use entry::EntryError;
pub use func::{CallError, LookupError, TypedFunc, UntypedFunc, Word};
#[cfg(feature = "gdb")]
pub use gdb::GdbInterface;
pub use globals::{GlobalError, Globals};
pub use image::{ImageCode, ImageFunction, ImageLinkage};
pub use interpret::{Interpret, Interpreter};
pub use jitdump::JitDump;
pub use linker::{DataObject, DataRelocation, Import, LinkError, LinkUnit, Linker, LoadedUnit, Resolver};
pub use loader::Loader;
pub use object_file::{Archive, Foreign, LoadedObject, ObjectFile, ObjectFileError};
pub use perf_map::PerfMap;
pub use profile::Cells;
pub use program::{BuildError, Compiled, Linkage, Source, Style, compile_for};
pub use scoped::{Handle, Scoped, ScopedFunc, ScopedParams, Text, Vector};
pub use tiers::{LoopEntry, Tiers, Upgrade, Upgrades};
pub use unwind_tables::UnwindTables;
pub use value::{Params, Value, ValueError};
