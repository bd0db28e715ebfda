//! The run time: what compiled code needs while it runs.
//!
//! Reading order:
//!
//! | file           | what it holds                                                                         |
//! |----------------|---------------------------------------------------------------------------------------|
//! | `instance.rs`  | [`Runtime`]: one independent instance, which owns everything else                     |
//! | `enter.rs`     | making a runtime, and calling into it from Rust                                       |
//! | `records.rs`   | permanent records of symbols, modules and string constants                             |
//! | `pending.rs`   | exception kinds, and the exceptions that a thread handles or throws                   |
//! | `exception.rs` | exceptions as Rust values                                                             |
//! | `thread.rs`    | [`Thread`]: the words that compiled code uses, attaching, interrupting                |
//! | `limits.rs`    | deadlines, tokens and fuel that end calls                                              |
//! | `watch.rs`     | the thread that watches the clock for them                                            |
//! | `guests.rs`    | calls as futures, which yield at polls                                                |
//! | `turn.rs`      | whose turn it is: the polling thread's or the guest's                                  |
//! | `membarrier.rs` | the fences between threads that enter and threads that stop them or retire code        |
//! | `retired.rs`   | retired code, until no thread can be running it                                       |
//! | `retire.rs`    | how the run time retires code and frees it                                            |
//! | `stack.rs`     | where the stack of an operating-system thread ends                                    |
//! | `heap/`        | objects, their types, and the garbage collector                                       |
//! | `host/`        | typed host functions                                                                  |
//! | `objects/`     | operations of running code on objects: relations, exceptions, dispatch, builtins   |
//! | `trace.rs`     | stack traces: where compiled code was when it threw                                   |
//! | `doors.rs`     | the embedder's promise about unchecked programs                                        |
//! | `foreign.rs`   | C symbols                                                                             |
//! | `events.rs`    | one listener of compilations, publications, tiers and collections                     |
//! | `c_functions.rs` | C functions of Julia's run time and of `utf8proc`                                   |
//! | `output.rs`    | where `print` writes                                                                  |
//! | `routines/`    | the routines that compiled code calls, by name                                        |
//!
//! Miri runs all tests that neither open libraries nor call machine code, including the heap's: `.ci/miri`.
//!
//! Nothing here compiles or links. The only state outside a [`Runtime`] is, for each operating-system thread,
//! the list of runtimes that it is attached to.

mod c_functions;
mod carried;
mod doors;
mod enter;
pub mod events;
mod exception;
mod fence;
mod foreign;
mod frames;
mod guests;
pub mod heap;
mod host;
mod instance;
mod limits;
mod membarrier;
pub mod objects;
mod output;
mod pending;
mod records;
mod retire;
mod retired;
mod routines;
mod span;
mod stack;
mod thread;
mod trace;
mod turn;
mod watch;

pub use doors::Doors;
pub use enter::ObjectCallError;
pub use exception::Exception;
pub use fence::fenced;
pub use foreign::{Foreign, ForeignError};
pub use frames::{EntryRecord, Frame, FrameMaps, FrameMapsInForce, Frames, HandlerRecord};
pub use guests::{GuestCall, GuestError, GuestOptions, Guests};
pub use host::{HostArg, HostField, HostFields, HostFunction, HostOutcome, HostResult, Struct, TypedHost};
pub use instance::{MethodError, Runtime, RuntimeOptions};
pub use limits::{Cancel, Fuel, LimitError, Limits, Remaining, WakeAtEnd};
pub use output::{Output, Sink};
pub use pending::ExceptionKind;
pub use records::{StringRef, SymbolRef};
pub use retired::RetiredCode;
pub use thread::{
    AttachError, EnterError, Entered, Entrant, HeapEntry, Interrupt, Outermost, STACK_RESERVE, Thread,
    ThreadLayout, with_attached, with_entrant,
};
pub use trace::{MAX_FRAMES, StackFrame, Symbolizer, Traces, show_trace};
pub use watch::Ended;
