//! One module, several engines, the same arguments: the same outcomes.

use super::engine::{Engine, Loaded};
use super::outcome::{Outcome, show};
use super::{Failure, Trouble, fenced};
use crate::fuzz::rng::Rng;
use crate::fuzz::values;
use brolga_ir::module::Literal;
use brolga_ir::text::show_module;
use brolga_ir::{FuncId, Level, Module, Type};

/// How a module compared.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Compared {
    /// Calls on which all engines agreed.
    pub calls: usize,
    /// How many of them returned; the others threw.
    pub returned: usize,
}

/// A module in an engine.
#[derive(Clone, Copy)]
pub struct Run<'a> {
    /// The engine.
    pub engine: &'a dyn Engine,
    /// The module; all modules of a comparison have one context and the same functions in the same order.
    pub module: &'a Module,
}

/// Calls every high function on `rounds` argument lists in every run. The first run is the oracle.
pub fn check_differential(seed: u64, runs: &[Run<'_>], rounds: usize) -> Result<Compared, Box<Failure>> {
    let Some(oracle) = runs.first() else { return Ok(Compared::default()) };
    let module = oracle.module;
    let fail = |trouble| Box::new(Failure { seed, text: show_module(module).to_string(), trouble });
    let mut loaded: Vec<(String, Box<dyn Loaded + '_>)> = Vec::new();
    for run in runs {
        let name = run.engine.name();
        let ready = fenced("loading", || run.engine.load(run.module)).map_err(fail)?;
        let ready = ready.map_err(|why| fail(Trouble::Refused { engine: name.clone(), why }))?;
        loaded.push((name, ready));
    }
    let mut compared = Compared::default();
    let mut rng = Rng::new(seed ^ 0x5eed);
    for (id, func) in module.funcs().filter(|(_, func)| func.level == Level::High) {
        let types: Vec<Type> = func.sig.params.iter().skip(1).map(|p| p.ty).collect();
        for _ in 0..rounds {
            let Some(args) = values::arguments(&mut rng, &module.cx, &types) else { break };
            let outcome = compare(module, &mut loaded, id, &args).map_err(fail)?;
            compared.calls += 1;
            compared.returned += usize::from(matches!(outcome, Outcome::Returned(_)));
        }
    }
    Ok(compared)
}

/// Calls one function in every engine; gives the outcome on which they agree.
fn compare(
    module: &Module,
    loaded: &mut [(String, Box<dyn Loaded + '_>)],
    id: FuncId,
    args: &[Literal],
) -> Result<Outcome, Trouble> {
    let cx = &module.cx;
    let mut first: Option<(String, Outcome)> = None;
    for (name, engine) in loaded {
        let outcome = fenced("a call", || engine.call(id, args))?;
        match &first {
            None if matches!(outcome, Outcome::Failed(_) | Outcome::OutOfFuel) => {}
            None => {
                first = Some((name.clone(), outcome));
                continue;
            }
            Some((_, expected)) if expected.agrees(&outcome, cx) => continue,
            Some(_) => {}
        }
        let args: Vec<String> = args.iter().map(|arg| show(arg, cx)).collect();
        let call = format!("{} on ({})", module.symbol(id), args.join(", "));
        let ours = (name.clone(), outcome.display(cx).to_string());
        let theirs = first.map(|(name, outcome)| (name, outcome.display(cx).to_string()));
        return Err(Trouble::Differs { call, outcomes: theirs.into_iter().chain([ours]).collect() });
    }
    first.map(|(_, outcome)| outcome).ok_or(Trouble::Refused {
        engine: "none".to_owned(),
        why: "there is no engine to compare".to_owned(),
    })
}
