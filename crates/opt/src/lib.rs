//! The optimiser: passes over functions of both IR levels, and their pipeline.
//!
//! ```text
//! optimize(module, func, level, options, cx)                     run_passes(module, func, passes, options, cx)
//!     └─ pipeline    the steps of a level, and reasons for their order  │
//!          └─ scope    around each step: dump, time, fence, verify  <───┘
//!               └─ passes/*    one pass each; `rules/` for the algebra that several use
//! ```
//!
//! | file | what it holds |
//! |---|---|
//! | `options`, `error`, `report` | input, errors, output |
//! | `pass`, `facts`, `fuel` | a pass and its input |
//! | `run` | the entry points: a level, or a list of passes, over a function or a module |
//! | `scope` | the only place that dumps, times, verifies and names a pass in a crash |
//! | `pipeline` | the table of pipelines and the table of constraints on it |
//! | `refit` | the asserted type of a row when one value takes the place of another |
//! | `replace`, `heads`, `ssa_repair` | replacing values in the whole function; the φ of a block; values with several definitions |
//! | `bounds` | which bounds checks are made |
//! | `alias`, `exprs`, `ranges` | the memory of an access; equal instructions; ranges of integers |
//! | `counted`, `address` | loops that count; addresses in them as sums |
//! | `loop_copy`, `undefined`, `defined` | copies of loops; values that may be undefined; tests of their uses, before any pass |
//! | `likely`, `frequency` | rarely entered blocks; how often blocks are entered |
//! | `osr` | loops with a check for leaving to another function, and that function |
//! | `callgraph`, `summary`, `escape` | callees before callers; effects of calls; fates of arguments |
//!
//! Functions are optimised one at a time against a module that no code changes meanwhile, so any number of threads may do it
//! at once. There is no global state, no clock, no printing and no dependence on code generation or on the run time.
#![forbid(unsafe_code)]

mod address;
mod alias;
mod asserted;
mod bounds;
pub mod callgraph;
mod counted;
pub mod defined;
mod error;
mod escape;
mod exprs;
mod extra;
mod facts;
mod frequency;
mod fuel;
mod heads;
mod likely;
mod loop_copy;
mod loop_note;
pub mod lower;
mod options;
pub mod osr;
mod pass;
mod passes;
pub mod pipeline;
mod ranges;
mod refit;
mod replace;
mod report;
mod rules;
mod run;
mod scope;
mod ssa_repair;
pub mod summary;
mod undefined;

pub use error::{CrashNote, OptError};
pub use extra::{ExtraPass, steps};
pub use facts::{Fact, Facts};
pub use fuel::Fuel;
pub use options::{
    COMPILE_MEMORY, CheckBounds, CpuFeatures, InlineLimits, OptLevel, Options, PassFilter, memory_of,
};
pub use pass::{Changed, Pass, PassCx, PassLevel};
pub use passes::union_split::guessed;
pub use pipeline::{PASSES, parse_passes, pass_named, stage};
pub use report::{Report, StepReport};
pub use run::{optimize, optimize_module, optimize_replaceable, run_passes};
pub use scope::{Cx, Dump, Moment, Step, Visit, When};
