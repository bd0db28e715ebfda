//! The entry points of the optimiser: the pipeline of a level, or a list of passes, over a function or a module.
//!
//! The pipeline has the passes and their order, the scope runs them; this file joins the two and keeps summaries valid.

use brolga_ir::{Func, FuncId, Level, Module};

use crate::error::OptError;
use crate::extra::steps;
use crate::facts::{Fact, Facts};
use crate::options::{OptLevel, Options};
use crate::pass::Pass;
use crate::report::Report;
use crate::scope::{Cx, PassScope, Step, Visit};
use crate::{callgraph, summary};

/// Runs the pipeline of `level` on a function: the stage for high IR or the one for low IR, whichever it is.
///
/// `module` is what the function may call and inline. Its functions and `func` must be verified. From O1 on a high
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

/// As [`optimize`], for a function that may be replaced while callers stay: it leaves without a summary, so no caller relies
/// on its body.
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
    PassScope::run(module, func, &steps(level, func.level, &options.extra)?, options, cx)
}

/// Runs the pipeline of `level` on every function of a module, callees first, so that inlined bodies are already optimised.
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
    let steps: Vec<Step> = passes
        .iter()
        .map(|&pass| Step { label: pass.name, pass, visit: Visit::Always, is_extra: false })
        .collect();
    let (report, _) = PassScope::run(module, &mut func, &steps, options, cx)?;
    Ok((func, report))
}
