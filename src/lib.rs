//! Brolga turns a Julia-like SSA IR into fast native code.
#![forbid(unsafe_code)]

mod bridge;
pub mod emit;
mod engine;
mod error;
mod evaluate;
mod format;
pub mod fuzz;
mod options;
mod program;
mod stages;

pub use brolga_ir as ir;
pub use brolga_jit::{CallError, LookupError, Params, TypedFunc, UntypedFunc, Value, ValueError};
pub use brolga_opt as opt;
pub use brolga_opt::{CheckBounds, OptLevel};
pub use brolga_runtime::{Exception, ExceptionKind, Interrupt, Output, Runtime};
pub use engine::{Engine, Unit};
pub use error::{Broken, Error};
pub use evaluate::{Evaluator, Failure, Verdict};
pub use format::format;
pub use options::Options;
pub use program::{Program, read_unit};
pub use stages::Stages;
