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
//! | part             | content                                                                          |
//! |------------------|----------------------------------------------------------------------------------|
//! | `memory/`        | memory for code: one reservation of address space, eviction                      |
//! | `link/`          | link units, relocations, the two linkers, object files, images                   |
//! | `debug/`         | the index of loaded code; profilers, debuggers, the system's unwinder            |
//! | `entry/`         | trampolines from Rust and from C                                                 |
//! | `engine.rs`      | [`Jit`]: instruction set, code memory, room; independent of cells and tiers      |
//! | `unit.rs`        | [`Unit`]: loaded code and what stays with it                                     |
//! | `generators.rs`  | scratch memory of compilation, used by one thread after the other                |
//! | `cell/`          | indirect cells: functions compiled when called first, replaced while called      |
//! | `tiering/`       | interpreter tier, counters, second tier                                          |
//! | `load.rs`        | symbols resolved, code loaded                                                    |
//! | `program.rs`     | [`Jit::build`]: from low IR to a unit                                            |
//! | `routines.rs`    | the routines that code calls here; [`Jit::new`]                                  |
//! | `call/`          | typed and untyped calls from Rust                                                |
//!
//! Everything loaded is owned: a unit's memory returns to the system when the last handle to it, to a function of it
//! or to a unit that was linked against it is dropped.

pub mod abi;
mod call;
mod cell;
mod debug;
mod engine;
mod entry;
mod generators;
mod link;
mod load;
mod memory;
mod program;
mod routines;
mod tiering;
mod unit;

pub use brolga_codegen::plain_entry::PlainForm;
pub use brolga_instances::{Evicted, Moving};
pub use call::activation::{Activation, RawEntry, activate};
pub use call::by_memory::{LowArg, LowArgs, Packing};
pub use call::func::{CallError, LookupError, NoValue, UntypedFunc, Word, WrongArgument};
pub use call::guest::AsyncCall;
pub use call::scoped::{Scoped, ScopedFunc, ScopedParams, Text, Vector};
pub use call::typed::TypedFunc;
pub use call::value::{Handle, Params, StructValue, Value, ValueError};
pub use cell::{
    Body, CellError, CellOwner, Elsewhere, FindCell, Held, IndirectCell, InstanceFacts, Materialize, NoCell,
    Reserved, Superseded, Switch, Target,
};
pub use debug::code_map::{CodeFunction, CodeListener, CodeMap, CodeUnit, Symbolized, UnitId};
#[cfg(feature = "gdb")]
pub use debug::gdb::GdbInterface;
pub use debug::jitdump::JitDump;
pub use debug::perf_map::PerfMap;
pub use debug::unwind_tables::UnwindTables;
pub use engine::{Jit, JitError, JitOptions, LinkerKind};
pub use entry::c_entry::CEntryError;
pub use entry::plain::PlainEntry;
pub use entry::trampoline::EntryError;
pub use link::cranelift::CraneliftLinker;
pub use link::foreign::{Foreign, LoadedObject, Outside};
pub use link::globals::{GlobalError, Globals};
pub use link::image::ImageLinkage;
pub use link::image_code::{ImageCode, ImageFunction, ImageFunctions, WriteCode};
pub use link::linker::{
    DataObject, DataRelocation, Import, LinkError, LinkUnit, Linker, LoadedUnit, Resolver,
};
pub use link::loader::Loader;
pub use link::object::{Archive, CodeReference, Given, ObjectFile, ObjectFileError, OwnCode};
pub use memory::cache::UnitCache;
pub use memory::code_memory::{CodeMemory, CodeMemoryOptions, Mapping};
pub use memory::error::CodeMemoryError;
pub use memory::evictor::Evictor;
pub use memory::reservation::CodeMemoryStats;
pub use program::{BuildError, Compiled, Linkage, Source, Style, compile_for};
pub use tiering::counting::{LoopEntry, Tiers};
pub use tiering::interpreter::{Interpret, Interpreter};
pub use tiering::profile::Cells;
pub use tiering::upgrade::{Upgrade, Upgrades};
pub use unit::{Unit, WeakUnit};
