//! The executor: compiled code in a process of its own.
//!
//! A wild pointer, a bug of the code generator or an attack on it ends the process in which the code runs. Here that process is a helper:
//! it has a run time and a loader, and the process that compiles, the *controller*, continues without it.
//!
//! ```text
//!   controller                                             executor
//!   passes, code generation                                loader, heap, methods, unwinder
//!      │ unit: code without addresses ── Load ───────────► linked; symbols are resolved here
//!      │                                  Cell, Lead ────► a number for the function ──► its code
//!      │ words, or values as bytes ───── Call ───────────► typed call on the thread of the lane
//!      │ result, exception, limit ◄───── Done ──────────────┘
//!      └ tables of what was sent ─────── all again ──────► another process, when this one is lost
//! ```
//!
//! | file, in reading order | contents |
//! |---|---|
//! | `executor` | [`Executor`]: what a controller needs of an executor, wherever that is |
//! | [`wire`] | frames and messages |
//! | `handshake`, `settings` | versions, ABI id, key; what the controller decides about the process |
//! | `stored` | a program with its code as sealed bytes |
//! | `graph` | values with everything that they refer to, as bytes |
//! | `in_process` | [`InProcess`]: run time, loader, tables of units and cells |
//! | `serve`, `become_executor` | a process that answers one controller; [`serve_controller`] for programs that are executors |
//! | `lost`, `process` | [`Process`]: the other process, as the controller sees it |
//! | [`fuzz`] | everything that reads bytes of the other side, for fuzzers |
//!
//! **Wire form.** What is sent is a unit as the cache of code stores it (`brolga_aot::unit`): machine code, relocations by symbols, frame
//! maps, and the declarations of its functions. It is never IR, and never code that was placed. An address of one process means
//! nothing in the other; only a program that has pointers of its own passes them.
//!
//! **Handshake.** Versions, architecture and ABI id have to be equal, and both sides prove that they have the key. Each program is
//! sealed with it. A difference is refused by its name, on both sides.
//!
//! **Life of a function.** The controller compiles it, with the boxed entries of its program, and sends the unit under a number of its
//! choice. The executor links it, resolves C symbols in its own process, and sets global variables to their first values. The
//! controller makes a cell, which leads to the function of that symbol in a unit, and calls the cell. A cell may be led to another
//! unit while calls run. A retired unit is freed when no cell leads to it and no thread runs it, as in process.
//!
//! **Life of a call.** It is written on a lane, a connection that the calling thread has for itself, and read by a thread that
//! runs it and answers. Arguments and results without objects are low values, in line; others are graphs, which are checked where
//! they arrive. An exception comes back with kind, message, type and trace; limits are set over there, and a token that is cancelled
//! here ends the call there. If the process ends, the calls under way fail with [`ExecutorLost`], and so does everything later.
//!
//! **Loss and replay.** The numbers are the controller's, so it sends the same messages again to another process, and its handles
//! stay valid. Global variables have their first values there: what a program had computed is gone with the process.
//!
//! **Trust.** The key is a permission to run code. The controller trusts nothing that the executor sends: sizes, numbers, types and
//! bits are checked, and a message that is none ends the process.
//!
//! **Sessions.** To run over [`Executor`], a session would name units and cells by numbers in place of handles
//! (`brolga_jit::Unit`, `IndirectCell`), have its cells' stubs ask for materialization by a message, and read counters of tiers from
//! there. Until then a session compiles for its own process.
//!
//! Cost: a call is one message in each direction, without a switch of threads in the executor; `benches/README.md` has the figures.
//!
//! Not done: sessions, lazy functions, tiers and host functions over the trait; handles of objects; a ring in shared memory for calls;
//! executors on other machines or of other architectures; filters of system calls. The loader comes with the code generator's crate, whose
//! trampolines it compiles, so an executor contains Cranelift, though no optimiser.

#![forbid(unsafe_code)]

mod become_executor;
mod blob;
mod executor;
pub mod fuzz;
mod graph;
mod handshake;
mod in_process;
mod lost;
mod process;
mod serve;
mod settings;
mod stored;
pub mod wire;

pub use become_executor::{BecomeError, serve_controller};
pub use executor::{CellId, Executor, ExecutorError, UnitId};
pub use graph::{Graph, GraphError};
pub use handshake::{HandshakeError, HandshakeFact, OpenError};
pub use in_process::InProcess;
pub use lost::{Ending, ExecutorLost};
pub use process::{Process, Receiver, Spawn, SpawnError};
pub use serve::{ServeError, serve};
pub use settings::{CodeSettings, ProcessLimits, RuntimeSettings, Settings};
pub use stored::{Sealing, SendError};
