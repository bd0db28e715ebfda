//! Type tests in optimised code, made to fail at every operand.
//!
//! ```text
//! f(a, b, n, site, round, other)     a program of dynamic::guarded: operand `site` is `other` in one iteration
//!
//!   warm    a, b of one pair of types, site = -1                f is promoted to tier 2, where all type tests hold
//!   sweep   every site × every type of `other` × some iterations    at each operand, each test fails once, and the loop continues
//! ```
//!
//! All calls have the interpreter's results. Coverage is measured as well: the interpreter also runs the
//! optimised module and counts block entries, which shows for each branch on a type test whether both of its
//! targets were entered.
//!
//! A branch is taken to one side only ([`Guards::one_sided`]) if an earlier test decides it, or if both
//! operands would have to change in the same iteration.
//!
//! Not done: exchanging both operands of an operator in the same iteration.

use super::differential::{Call, load};
use super::engine::{Engine, HighInterpreter, Passes, ended, optimised, to_literal, to_val};
use super::outcome::Outcome;
use super::tiers::{OTHERS, Tiered};
use super::{Failure, Trouble, fenced};
use crate::dynamic::{self, Guarded};
use crate::rng::Rng;
use crate::values;
use brolga_engine::Program;
use brolga_interp::{Interp, Options, SimMemory};
use brolga_ir::builtin::Builtin;
use brolga_ir::hints::{Hint, Seen};
use brolga_ir::intrinsic::Intrinsic;
use brolga_ir::module::Literal;
use brolga_ir::{Const, Context, Func, FuncId, Inst, Module, Op, Type, Value};
use std::collections::BTreeSet;

/// The number of loop iterations per call.
const ROUNDS: i64 = 4;
/// Calls before the sweep: enough to reach the second tier with a profile.
const WARM: usize = 20;
/// The types of the first two arguments during warm-up.
const STABLE: [[Type; 2]; 4] = [
    [Type::INT64, Type::INT64],
    [Type::FLOAT64, Type::FLOAT64],
    [Type::FLOAT64, Type::INT64],
    [Type::UINT8, Type::UINT8],
];
const MAX_STEPS: u64 = 100_000;

/// The statistics of a sweep over a program of dynamic operators.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Guards {
    /// Calls on which the engines agreed.
    pub calls: usize,
    /// The number of them that returned.
    pub returned: usize,
    /// The number of branches on type tests in the optimised function.
    pub guards: usize,
    /// The number of these branches that were taken to one side only.
    pub one_sided: usize,
}

/// Sweeps the program of a seed as described in the file's header.
pub fn check_guards(seed: u64, tiered: &Tiered) -> Result<Guards, Box<Failure>> {
    let Guarded { text, sites } = dynamic::guarded(seed);
    sweep(seed, &text, sites, tiered).map_err(|trouble| Box::new(Failure { seed, text, trouble }))
}

fn sweep(seed: u64, text: &str, sites: i64, tiered: &Tiered) -> Result<Guards, Trouble> {
    let program = fenced("reading", || Program::read("guarded", text.as_bytes()))?;
    let program = program.map_err(|error| Trouble::Unreadable(error.to_string()))?;
    let module = program.module();
    let (cx, name) = (&module.cx, module.cx.names.intern("f"));
    let &[id] = module.methods(cx.types.function(name)) else {
        return Err(Trouble::Malformed("there is one `f`".to_owned()));
    };
    let mut rng = Rng::new(!seed);
    let passes = Passes::of(tiered.level);
    let looked_at = hinted(module, id, &mut rng);
    let high = optimised(&looked_at, passes).map_err(Trouble::Malformed)?;
    let options = Options { max_steps: u64::MAX, ..Options::default() };
    let mut counting = Interp::new(&high, options, Box::new(SimMemory::default()));
    counting.count_blocks();
    let oracle = HighInterpreter { max_steps: MAX_STEPS, passes: None };
    let mut expecting = load(&oracle, module)?;
    let refused = |why| Trouble::Refused { engine: tiered.name(), why };
    let mut all = Guards::default();
    for stable in STABLE {
        // One session for each pair, so that each pair has its own profile and code.
        let mut loaded = fenced("loading", || tiered.session(program.clone(), module))?.map_err(refused)?;
        for args in calls(&mut rng, cx, stable, sites) {
            let is_sweep = args.1;
            let call = Call { module, id, args: &args.0 };
            if is_sweep && !loaded.is_optimised(id) {
                return Err(Trouble::Malformed("the function has not reached the second tier".to_owned()));
            }
            let expected = call.outcome(&mut *expecting)?;
            if matches!(expected, Outcome::Failed(_) | Outcome::OutOfFuel) {
                return Err(call.trouble(&[(&oracle, &expected)], None));
            }
            let got = call.outcome(&mut loaded)?;
            if !expected.agrees(&got, cx) {
                return Err(call.trouble(&[(&oracle, &expected), (tiered, &got)], None));
            }
            let got = fenced("a call", || interpret(&mut counting, cx, id, &args.0))?;
            if !expected.agrees(&got, cx) {
                let engine = HighInterpreter { max_steps: MAX_STEPS, passes: Some(passes) };
                return Err(call.trouble(&[(&oracle, &expected), (&engine as &dyn Engine, &got)], None));
            }
            all.calls += 1;
            all.returned += usize::from(matches!(expected, Outcome::Returned(_)));
        }
    }
    let entered: BTreeSet<_> = counting
        .block_counts()
        .into_iter()
        .filter(|&(func, ..)| func == id)
        .map(|(_, block, _)| block)
        .collect();
    let func = &high[id];
    for inst in branches_on_types(func) {
        let sides = func.inst_blocks(inst).iter().filter(|block| entered.contains(block)).count();
        all.guards += 1;
        all.one_sided += usize::from(sides < 2);
    }
    Ok(all)
}

fn interpret(interp: &mut Interp<'_>, cx: &Context, id: FuncId, args: &[Literal]) -> Outcome {
    let args: Result<Vec<_>, _> = args.iter().map(|arg| to_val(interp, cx, arg)).collect();
    match args.and_then(|args| interp.call(id, &args)) {
        Ok(val) => match to_literal(interp, cx, &val) {
            Some(value) => Outcome::Returned(value),
            None => Outcome::Failed("the result is not a literal".to_owned()),
        },
        Err(end) => ended(interp, cx, end),
    }
}

/// The arguments of all calls for a pair of stable types, each with whether it belongs to the sweep.
fn calls(rng: &mut Rng, cx: &Context, stable: [Type; 2], sites: i64) -> Vec<(Vec<Literal>, bool)> {
    let int =
        |value: i64| Literal::Const(Const::Bits { ty: Type::INT64, bits: u128::from(value.cast_unsigned()) });
    let mut all = Vec::new();
    let mut call = |rng: &mut Rng, site: i64, round: i64, other: Option<Literal>, is_sweep: bool| {
        let first = stable.map(|ty| small(rng, cx, ty)).into_iter();
        let rest = [int(ROUNDS), int(site), int(round), other.unwrap_or_else(|| int(1))];
        all.push((first.chain(rest).collect(), is_sweep));
    };
    (0..WARM).for_each(|_| call(rng, -1, 0, None, false));
    let meters =
        cx.types.find_decl(cx.names.intern("Meters")).and_then(|decl| cx.types.nominal(decl, &[]).ok());
    for site in 0..sites {
        for other in OTHERS.into_iter().chain(meters) {
            let round = rng.below(ROUNDS as usize - 1) as i64;
            let value = small(rng, cx, other);
            call(rng, site, round, Some(value), true);
        }
    }
    (0..WARM / 4).for_each(|_| call(rng, -1, 0, None, true));
    all
}

/// A value of a type, rarely an extreme one.
fn small(rng: &mut Rng, cx: &Context, ty: Type) -> Literal {
    let bits = match ty {
        Type::INT64 | Type::UINT64 | Type::INT32 | Type::UINT8 if rng.chance(80) => rng.below(9) as u128,
        Type::FLOAT64 if rng.chance(80) => u128::from((rng.below(9) as f64 / 2.0).to_bits()),
        _ => {
            let nothing = Literal::Const(Const::Singleton(Type::NOTHING));
            return values::literal(rng, cx, ty).unwrap_or(nothing);
        }
    };
    Literal::Const(Const::Bits { ty, bits })
}

/// The module with the hints of a profile at the dynamic calls of a function, which add a test for one more
/// pair of types.
fn hinted(module: &Module, id: FuncId, rng: &mut Rng) -> Module {
    let mut module = module.clone();
    let func = &mut module[id];
    let calls: Vec<Inst> =
        func.blocks().flat_map(|b| func.block_insts(b)).filter(|&i| func.op(i) == Op::Call).collect();
    for call in calls {
        let function = func.args(call).first().map(|&v| func.ty(v));
        let pair = STABLE[rng.below(STABLE.len())];
        let types: Vec<Type> = function.into_iter().chain(pair).collect();
        let hint = func.hint(call).cloned().unwrap_or_default();
        func.set_hint(call, Hint { seen: vec![Seen { types: types.into(), count: 20 }], ..hint });
    }
    module
}

/// The branches of a function whose conditions are one or more type tests.
fn branches_on_types(func: &Func) -> Vec<Inst> {
    fn is_test(func: &Func, value: Value) -> bool {
        func.def_inst(value).is_some_and(|inst| match func.op(inst) {
            Op::Builtin(Builtin::Isa) => true,
            Op::Intrinsic(Intrinsic::AndInt) => func.args(inst).iter().all(|&v| is_test(func, v)),
            _ => false,
        })
    }
    let branches = func.blocks().flat_map(|b| func.block_insts(b)).filter(|&i| func.op(i) == Op::Branch);
    branches.filter(|&i| func.args(i).first().is_some_and(|&v| is_test(func, v))).collect()
}
