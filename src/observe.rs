//! Observing compilation, code and heap: events, code names for debuggers and profilers, listings, stack traces.
//!
//! Listeners are attached to an engine, session or runtime and hear what happens from then on. The feature `observe` adds traces for Perfetto,
//! tables and statistics.

pub use brolga_engine::emit;
pub use brolga_ir::text::{show_func, show_module};
#[cfg(feature = "gdb")]
pub use brolga_jit::GdbInterface;
pub use brolga_jit::{
    CodeFunction, CodeListener, CodeMemoryStats, CodeUnit, JitDump, PerfMap, Symbolized, UnitId, UnwindTables,
};
#[cfg(feature = "observe")]
pub use brolga_observe::*;
pub use brolga_runtime::{StackFrame, events};
