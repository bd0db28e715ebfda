//! Functions in two tiers: called with values of the same types until they are optimised for these, then with
//! others.
//!
//! ```text
//! f(1.5::Any, 2::Any)      until the profile has `Float64` and `Int64`         tier 1, then tier 2
//! f(0x07, 2), f(true, 2)   each argument of type `Any` with each other type             every tier-2 test of it fails
//! f(1.5, 2)                the types of the profile again                               the same code
//! ```
//!
//! The interpreter on the module is the oracle for each call. Sessions refuse doors here, so the modules have
//! none.
//!
//! Cost: the compilation of a session, and some sixty calls of each function by both engines.

use super::differential::{Call, is_called, load};
use super::engine::{Engine, Loaded};
use super::native::call_compiled;
use super::outcome::Outcome;
use super::{Failure, Trouble, fenced};
use crate::rng::Rng;
use crate::values;
use brolga_codegen::isa::Tier;
use brolga_engine::session::{Definitions, Dylib};
use brolga_engine::{Options, Program, Session, Workers};
use brolga_ir::abi::NativeSignature;
use brolga_ir::module::Literal;
use brolga_ir::text::show_module;
use brolga_ir::{Context, FuncId, Module, Type};
use brolga_jit::UntypedFunc;
use brolga_opt::OptLevel;
use brolga_runtime::Runtime;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Calls of a function with the types of its profile. A profile of fewer than sixteen calls is not used.
const WARM: usize = 20;
/// The number of calls after which a function is optimised.
const CALLS: u32 = 18;
/// The number of iterations after which a loop continues in optimised code.
const ITERATIONS: u32 = 40;
/// Further calls with the types of the profile after other types, and calls with any types.
const AGAIN: usize = 4;
/// The types that each argument of unknown type has in turn.
pub(super) const OTHERS: [Type; 11] = [
    Type::INT64,
    Type::FLOAT64,
    Type::BOOL,
    Type::INT32,
    Type::UINT8,
    Type::FLOAT32,
    Type::INT128,
    Type::FLOAT16,
    Type::UINT64,
    Type::NOTHING,
    Type::STRING,
];

/// Functions of a session in two tiers. A function that was called often enough is optimised after the call.
#[derive(Clone)]
pub struct Tiered {
    /// The run time of the sessions.
    pub runtime: Arc<Runtime>,
    /// The level of the second tier.
    pub level: OptLevel,
}

impl Engine for Tiered {
    fn name(&self) -> String {
        format!("tiers up to {:?}", self.level)
    }

    fn load<'m>(&self, module: &'m Module) -> Result<Box<dyn Loaded + 'm>, String> {
        let program = Program::from_module(module.clone()).map_err(|error| error.to_string())?;
        self.session(program, module).map(|loaded| Box::new(loaded) as Box<dyn Loaded + 'm>)
    }
}

impl Tiered {
    /// The functions of a program in a session. `module` is the program's module.
    pub(super) fn session<'m>(
        &self,
        program: Program,
        module: &'m Module,
    ) -> Result<TieredLoaded<'m>, String> {
        let options = Options::new().opt_level(self.level);
        let made = Session::in_context(&module.cx, &self.runtime, options, Workers::Caller);
        let session = made.map_err(|error| error.to_string())?;
        let dylib = session.create_dylib("main").map_err(|error| error.to_string())?;
        let definitions = Definitions::from(program).tiered(CALLS).iterations(ITERATIONS);
        dylib.define(definitions).map_err(|error| error.to_string())?;
        Ok(TieredLoaded { module, session, dylib, funcs: BTreeMap::new() })
    }
}

/// A module in a session.
pub(super) struct TieredLoaded<'m> {
    module: &'m Module,
    session: Session,
    dylib: Dylib,
    funcs: BTreeMap<FuncId, (UntypedFunc, NativeSignature)>,
}

impl TieredLoaded<'_> {
    /// Whether a function has reached the second tier.
    pub(super) fn is_optimised(&self, func: FuncId) -> bool {
        let symbol = self.module[func].symbol(&self.module.cx);
        let facts = self.session.functions();
        facts.iter().any(|facts| facts.symbol == symbol && facts.tier == Some(Tier::Optimised))
    }

    fn find(&mut self, func: FuncId) -> Result<&(UntypedFunc, NativeSignature), String> {
        if !self.funcs.contains_key(&func) {
            let (cx, declared) = (&self.module.cx, &self.module[func]);
            let symbol = declared.symbol(cx);
            let found = self.dylib.function(&symbol).map_err(|error| error.to_string())?;
            let callable = found.untyped().map_err(|error| error.to_string())?;
            let signature = NativeSignature::new(&cx.types, &declared.sig);
            let signature = signature.map_err(|_| format!("`{symbol}` has no native form"))?;
            self.funcs.insert(func, (callable, signature));
        }
        self.funcs.get(&func).ok_or_else(|| "the function was not found".to_owned())
    }
}

impl Loaded for TieredLoaded<'_> {
    fn call(&mut self, func: FuncId, args: &[Literal]) -> Outcome {
        let (module, runtime) = (self.module, self.session.runtime().clone());
        let outcome = match self.find(func) {
            Ok((callable, signature)) => call_compiled(module, callable, signature, args, &runtime),
            Err(why) => Outcome::Failed(why),
        };
        self.session.optimize_hot();
        outcome
    }
}

/// The statistics of a comparison of tiers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Climbed {
    /// Calls on which both engines agreed.
    pub calls: usize,
    /// The number of them that returned.
    pub returned: usize,
    /// Functions that reached the second tier.
    pub optimised: usize,
}

/// Calls every high function of a module, except the methods of Base, as described in the file's header.
pub fn check_tiers(
    seed: u64,
    module: &Module,
    oracle: &dyn Engine,
    tiered: &Tiered,
) -> Result<Climbed, Box<Failure>> {
    let compared = climb(seed, module, oracle, tiered);
    compared.map_err(|trouble| {
        let text = fenced("printing", || show_module(module).to_string()).unwrap_or_default();
        Box::new(Failure { seed, text, trouble })
    })
}

fn climb(seed: u64, module: &Module, oracle: &dyn Engine, tiered: &Tiered) -> Result<Climbed, Trouble> {
    let program = fenced("building", || Program::from_module(module.clone()))?;
    let program = program.map_err(|error| Trouble::Malformed(error.to_string()))?;
    let mut expecting = load(oracle, module)?;
    let refused = |why| Trouble::Refused { engine: tiered.name(), why };
    let mut loaded = fenced("loading", || tiered.session(program, module))?.map_err(refused)?;
    let mut climbed = Climbed::default();
    let mut rng = Rng::new(seed ^ 0x71e5);
    for (id, func) in module.funcs().filter(|(_, func)| is_called(&module.cx, func)) {
        let types: Vec<Type> = func.sig.params.iter().skip(1).map(|p| p.ty).collect();
        for args in arguments(&mut rng, &module.cx, &types) {
            let call = Call { module, id, args: &args };
            let expected = call.outcome(&mut *expecting)?;
            if matches!(expected, Outcome::Failed(_) | Outcome::OutOfFuel) {
                return Err(call.trouble(&[(oracle, &expected)], None));
            }
            let got = call.outcome(&mut loaded)?;
            if !expected.agrees(&got, &module.cx) {
                return Err(call.trouble(&[(oracle, &expected), (tiered, &got)], None));
            }
            climbed.calls += 1;
            climbed.returned += usize::from(matches!(expected, Outcome::Returned(_)));
        }
        climbed.optimised += usize::from(loaded.is_optimised(id));
    }
    Ok(climbed)
}

/// The arguments of all calls of a function, in order. Empty if a type has no literals.
fn arguments(rng: &mut Rng, cx: &Context, types: &[Type]) -> Vec<Vec<Literal>> {
    let stable: Vec<Type> =
        types.iter().map(|&ty| if ty == Type::ANY { values::of_any_type(rng) } else { ty }).collect();
    let mut all = Vec::new();
    all.extend((0..WARM).filter_map(|_| values::arguments(rng, cx, &stable)));
    for n in (0..types.len()).filter(|&n| types[n] == Type::ANY) {
        for other in OTHERS {
            let mut changed = stable.clone();
            changed[n] = other;
            all.extend(values::arguments(rng, cx, &changed));
        }
    }
    all.extend((0..AGAIN).filter_map(|_| values::arguments(rng, cx, &stable)));
    all.extend((0..AGAIN).filter_map(|_| values::arguments(rng, cx, types)));
    all
}
