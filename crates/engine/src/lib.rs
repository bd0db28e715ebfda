//! Engines and sessions: programs in, callable functions out.
//!
//! | file, in reading order | contents |
//! |---|---|
//! | `program` | [`Program`]: text or a built module, read and verified |
//! | `options`, `error` | [`Options`], [`Error`] |
//! | `pipeline` | passes, lowering and root placement, function by function, by one thread or many |
//! | `stages` | [`Stages`]: the pipeline on one thread, step by step |
//! | `boxed` | boxed entries, compiled on demand |
//! | `engine` | [`Engine`]: compiles a program at once, on the calling thread |
//! | [`session`] | [`Session`]: functions compiled on demand by many threads, replaced and removed |
//! | [`remote`] | [`remote::RemoteEngine`]: compiles here, and runs in another process |
//! | [`bridge`], `evaluate` | [`Evaluator`]: calls and tests written as text, run natively or by the interpreter |
//! | `kept_run` | [`KeptRun`]: a call whose code is in a cache or an image, run without reading the program |
//! | `main_call` | [`main_call`]: the call by which a process starts a program |
//! | `format` | the normal form of a text, with its comments |
//! | `cached` | code that outlives the process: looked up in a cache before it is compiled |
//! | [`emit`] | listings and object files |
//! | [`image`], `emission`, `library`, `clones`, `trim` | programs compiled ahead of time and opened by path; code generation on several threads; functions exported to C; functions with several versions; trimming to the reach of some functions |
//!
//! The facade crate `brolga` re-exports what embedders use.

#![forbid(unsafe_code)]

mod boxed;
pub mod bridge;
mod cached;
mod clones;
mod emission;
pub mod emit;
mod engine;
mod error;
mod evaluate;
mod format;
pub mod image;
mod image_info;
mod kept_run;
mod library;
mod main_call;
mod options;
mod pipeline;
mod prelude;
mod program;
pub mod remote;
pub mod session;
mod stages;
mod sync;
mod trim;
mod varargs;

pub use brolga_codegen::isa::CpuTarget;
pub use engine::{Engine, Unit, build};
pub use error::{Broken, Error, Fault};
pub use evaluate::{Counted, Evaluator, Failure, Verdict};
pub use format::format;
pub use image::Image;
pub use kept_run::KeptRun;
pub use main_call::main_call;
pub use options::{Options, tier};
pub use prelude::names as library_functions;
pub use program::{Program, read_unit};
pub use session::{Session, SessionError, Workers};
pub use stages::Stages;
