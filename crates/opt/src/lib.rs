//! The optimiser: passes over functions of both IR levels, and what runs them.
//!
//! ```text
//! optimize(module, func, level, options, cx)                     run_passes(module, func, passes, options, cx)
//!     └─ pipeline    the steps of a level, and why in that order        │
//!          └─ scope    around each step: dump, time, fence, verify  <───┘
//!               └─ passes/*    one pass each; `rules/` for the algebra that several use
//! ```
//!
//! | file | what it holds |
//! |---|---|
//! | `options`, `error`, `report` | what goes in, what goes wrong, what comes out |
//! | `pass`, `facts`, `fuel` | what a pass is and what it is given |
//! | `scope` | the only place that dumps, times, verifies and names a pass in a crash |
//! | `pipeline` | the table of pipelines and the table of constraints on it |
//! | `refit` | what becomes of the claim that a type is when one value takes the place of another |
//! | `replace`, `heads`, `ssa_repair` | replacing values all over a function; the φ of a block; values that are made in several places |
//! | `alias`, `exprs`, `ranges` | which memory an access touches; instructions by what they compute; how large an integer can be |
//! | `counted`, `address` | loops that count; addresses in them as sums |
//! | `loop_copy`, `undefined`, `defined` | copies of loops; values that may be undefined; tests of their uses, before any pass |
//! | `osr` | loops that ask whether they are to go on in another function, and that function |
//! | `callgraph`, `summary`, `escape` | the order in which callees come before callers; what a call does, and what becomes of its arguments |
//!
//! Functions are optimised one at a time against a module that nobody changes meanwhile, so any number of threads may do it
//! at once. There is no global state, no clock, no printing and no knowledge of code generation or of the run time.
#![forbid(unsafe_code)]

mod address;
mod alias;
pub mod callgraph;
mod claims;
mod counted;
pub mod defined;
mod error;
mod escape;
mod exprs;
mod facts;
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
mod scope;
mod ssa_repair;
pub mod summary;
mod undefined;

pub use error::{CrashNote, OptError};
pub use facts::{Fact, Facts};
pub use fuel::Fuel;
pub use options::{CheckBounds, CpuFeatures, OptLevel, Options, PassFilter};
pub use pass::{Changed, Pass, PassCx, PassLevel};
pub use passes::inline::InlineLimits;
pub use pipeline::{PASSES, parse_passes, pass_named, stage};
pub use report::{Report, StepReport};
pub use scope::{Cx, Dump, Step, Visit, When};

use brolga_ir::{Func, FuncId, Level, Module};

/// Runs the pipeline of `level` on a function: the stage for high IR or the one for low IR, whichever it is.
///
/// `module` is what the function may call and inline. It must hold verified functions, and so must `func` be. From O1 on a high
/// function leaves with a new summary.
pub fn optimize(
    module: &Module,
    mut func: Func,
    level: OptLevel,
    options: &Options,
    cx: &mut Cx<'_>,
) -> Result<(Func, Report), OptError> {
    let (report, mut facts) = run_stage(module, &mut func, level, options, cx)?;
    if level > OptLevel::O0 && func.level == Level::High {
        facts.provide(&[Fact::Cfg], &func);
        func.summary = Some(summary::summarise_over(module, &func, facts.cfg(), facts.rpo()));
    }
    Ok((func, report))
}

/// As [`optimize`], for a function that may be replaced while callers stay: it leaves without a summary, so that nobody relies on what
/// its body does.
pub fn optimize_replaceable(
    module: &Module,
    mut func: Func,
    level: OptLevel,
    options: &Options,
    cx: &mut Cx<'_>,
) -> Result<(Func, Report), OptError> {
    let (report, _) = run_stage(module, &mut func, level, options, cx)?;
    func.summary = None;
    Ok((func, report))
}

fn run_stage(
    module: &Module,
    func: &mut Func,
    level: OptLevel,
    options: &Options,
    cx: &mut Cx<'_>,
) -> Result<(Report, Facts), OptError> {
    scope::PassScope::run(module, func, &stage(level, func.level), options, cx)
}

/// Runs the pipeline of `level` on every function of a module, callees first, so that what is inlined is optimised already.
///
/// A low function goes through the stage for low IR. Nothing is lowered here.
pub fn optimize_module(
    module: &mut Module,
    level: OptLevel,
    options: &Options,
    cx: &mut Cx<'_>,
) -> Result<Report, OptError> {
    let mut report = Report::default();
    if level > OptLevel::O0 {
        summary::summarise_module(module);
    }
    let low = module.funcs().filter(|(_, f)| f.level == Level::Low).map(|(id, _)| id);
    let order: Vec<FuncId> = low.chain(callgraph::bottom_up(module).into_iter().flatten()).collect();
    for id in order {
        let (func, row) = optimize(module, module[id].clone(), level, options, cx)?;
        module[id] = func;
        report.merge(row);
    }
    Ok(report)
}

/// Runs a list of passes on a function, as `--passes=` does.
pub fn run_passes(
    module: &Module,
    mut func: Func,
    passes: &[&'static Pass],
    options: &Options,
    cx: &mut Cx<'_>,
) -> Result<(Func, Report), OptError> {
    let steps: Vec<Step> =
        passes.iter().map(|&pass| Step { label: pass.name, pass, visit: Visit::Always }).collect();
    let (report, _) = scope::PassScope::run(module, &mut func, &steps, options, cx)?;
    Ok((func, report))
}
