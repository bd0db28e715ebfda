//! One module, several engines, the same arguments: the outcomes must be the same.

use super::engine::{Engine, Loaded};
use super::outcome::{Outcome, show};
use super::{Failure, Trouble, fenced};
use crate::rng::Rng;
use crate::values;
use brolga_ir::module::Literal;
use brolga_ir::text::show_module;
use brolga_ir::{Context, Func, FuncId, Level, Module, Type, TypeKind, function_name};

/// More rewrites than the passes perform in any generated module.
const MAX_REWRITES: u64 = 1 << 20;

/// The statistics of a comparison.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Compared {
    /// Calls on which all engines agreed.
    pub calls: usize,
    /// The number of them that returned; the others threw.
    pub returned: usize,
}

/// A module in an engine.
#[derive(Clone, Copy)]
pub struct Run<'a> {
    pub engine: &'a dyn Engine,
    /// The module; all modules of a comparison have the same context and the same functions in the same
    /// order.
    pub module: &'a Module,
}

/// Whether checks call a function directly: a high function that is not a method of a function of Base, which
/// others call.
pub(crate) fn is_called(cx: &Context, func: &Func) -> bool {
    let object = func.sig.params.first().map(|param| cx.types.kind(param.ty));
    let of_base =
        matches!(object, Some(TypeKind::Function(name)) if cx.names.text(name.module) == function_name::BASE);
    func.level == Level::High && !of_base
}

/// Calls every high function except the methods of Base on `rounds` argument lists in every run. The first
/// run is the oracle.
pub fn check_differential(seed: u64, runs: &[Run<'_>], rounds: usize) -> Result<Compared, Box<Failure>> {
    let Some((oracle, others)) = runs.split_first() else { return Ok(Compared::default()) };
    let module = oracle.module;
    let text = || fenced("printing", || show_module(module).to_string()).unwrap_or_default();
    compare_all(seed, *oracle, others, rounds)
        .map_err(|trouble| Box::new(Failure { seed, text: text(), trouble }))
}

fn compare_all(seed: u64, oracle: Run<'_>, others: &[Run<'_>], rounds: usize) -> Result<Compared, Trouble> {
    let module = oracle.module;
    let mut loaded = others.iter().map(|run| load(run.engine, run.module)).collect::<Result<Vec<_>, _>>()?;
    let mut expecting = load(oracle.engine, module)?;
    let mut compared = Compared::default();
    let mut rng = Rng::new(seed ^ 0x5eed);
    for (id, func) in module.funcs().filter(|(_, func)| is_called(&module.cx, func)) {
        let types: Vec<Type> = func.sig.params.iter().skip(1).map(|p| p.ty).collect();
        for _ in 0..rounds {
            let Some(args) = values::arguments(&mut rng, &module.cx, &types) else { break };
            let call = Call { module, id, args: &args };
            let expected = call.outcome(&mut *expecting)?;
            if matches!(expected, Outcome::Failed(_) | Outcome::OutOfFuel) {
                return Err(call.trouble(&[(oracle.engine, &expected)], None));
            }
            for (run, engine) in others.iter().zip(&mut loaded) {
                let got = call.outcome(&mut **engine)?;
                if !expected.agrees(&got, &module.cx) {
                    let limit = call.guilty_rewrite(*run, &expected);
                    return Err(call.trouble(&[(oracle.engine, &expected), (run.engine, &got)], limit));
                }
            }
            compared.calls += 1;
            compared.returned += usize::from(matches!(expected, Outcome::Returned(_)));
        }
    }
    Ok(compared)
}

pub(super) fn load<'m>(engine: &dyn Engine, module: &'m Module) -> Result<Box<dyn Loaded + 'm>, Trouble> {
    let ready = fenced("loading", || engine.load(module))?;
    ready.map_err(|why| Trouble::Refused { engine: engine.name(), why })
}

/// A call that is made in several engines.
pub(super) struct Call<'a> {
    pub(super) module: &'a Module,
    pub(super) id: FuncId,
    pub(super) args: &'a [Literal],
}

impl Call<'_> {
    pub(super) fn outcome(&self, engine: &mut dyn Loaded) -> Result<Outcome, Trouble> {
        fenced("a call", || engine.call(self.id, self.args))
    }

    pub(super) fn trouble(&self, outcomes: &[(&dyn Engine, &Outcome)], opt_limit: Option<u64>) -> Trouble {
        let cx = &self.module.cx;
        let args: Vec<String> = self.args.iter().map(|arg| show(arg, cx)).collect();
        let call = format!("{} on ({})", self.module[self.id].symbol(&self.module.cx), args.join(", "));
        let shown =
            |&(engine, outcome): &(&dyn Engine, &Outcome)| (engine.name(), outcome.display(cx).to_string());
        Trouble::Differs { call, outcomes: outcomes.iter().map(shown).collect(), opt_limit }
    }

    /// The lowest limit of rewrites with which the engine's outcome differs, found by bisection. `None` if
    /// passes are not to blame, or the engine has none. passes are not to blame, or the engine has none.
    fn guilty_rewrite(&self, run: Run<'_>, expected: &Outcome) -> Option<u64> {
        let differs = |limit: u64| -> Option<bool> {
            let engine = run.engine.limited(limit)?;
            let mut loaded = load(&*engine, run.module).ok()?;
            let got = self.outcome(&mut *loaded).ok()?;
            Some(!expected.agrees(&got, &self.module.cx))
        };
        let (mut right, mut wrong) = (0, MAX_REWRITES);
        if differs(right)? || !differs(wrong)? {
            return None;
        }
        while wrong - right > 1 {
            let middle = right + (wrong - right) / 2;
            if differs(middle)? { wrong = middle } else { right = middle }
        }
        Some(wrong)
    }
}
