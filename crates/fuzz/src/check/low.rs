//! The reference interpreter on low IR.

use super::engine::{Engine, Loaded, Passes, ended, verifying};
use super::leaves::{Place, decode, encode};
use super::outcome::Outcome;
use super::verify;
use brolga_interp::{Interp, Options, SimMemory, Val};
use brolga_ir::abi::NativeSignature;
use brolga_ir::constant::Address;
use brolga_ir::module::Literal;
use brolga_ir::{Const, Func, FuncId, Module, Type};
use brolga_opt::lower::{self, lower_module};
use brolga_opt::{Cx, Pass, run_passes};
use std::collections::BTreeMap;

/// The reference interpreter on low IR, in a fresh state for each call.
#[derive(Clone, Copy, Debug)]
pub struct LowInterpreter {
    /// The maximum number of statements per call.
    pub max_steps: u64,
    /// The passes before and after `lower`; `None` for `lower` alone.
    pub passes: Option<Passes>,
    /// A pass that then runs on every low function.
    pub alone: Option<&'static Pass>,
}

impl Engine for LowInterpreter {
    fn name(&self) -> String {
        let passes = self.passes.map_or(String::new(), |passes| format!(" at {}", passes.name()));
        let alone = self.alone.map_or(String::new(), |pass| format!(" after `{}`", pass.name));
        format!("interpreter of low IR{passes}{alone}")
    }

    fn load<'m>(&self, module: &'m Module) -> Result<Box<dyn Loaded + 'm>, String> {
        let cx = &module.cx;
        let mut low = Module::new(cx.clone());
        let mut entries = BTreeMap::new();
        for (id, mut func) in self.lowered(module)? {
            if let Some(pass) = self.alone {
                let done = run_passes(module, func, &[pass], &verifying(), &mut Cx::default());
                func = done.map_err(|error| error.to_string())?.0;
            }
            let signature = NativeSignature::new(&cx.types, &module[id].sig);
            let signature =
                signature.map_err(|_| format!("`{}` has no native form", module[id].symbol(&module.cx)))?;
            let low_id = low.add_func(func).map_err(|error| format!("{error:?}"))?;
            entries.insert(id, (low_id, signature));
        }
        verify(&low)?;
        Ok(Box::new(LowLoaded { low, entries, max_steps: self.max_steps }))
    }

    fn limited(&self, opt_limit: u64) -> Option<Box<dyn Engine + '_>> {
        let passes = Some(self.passes?.limited(opt_limit));
        Some(Box::new(LowInterpreter { passes, ..*self }))
    }
}

impl LowInterpreter {
    fn lowered(&self, module: &Module) -> Result<Vec<(FuncId, Func)>, String> {
        let Some(passes) = self.passes else {
            let all = lower_module(module, &lower::Options::default()).into_iter();
            return all.map(|(id, low)| Ok((id, low.map_err(|errors| errors.to_string())?))).collect();
        };
        let options = passes.options();
        let mut stages = passes.stages(module, &options);
        let ids = module.funcs().map(|(id, _)| id);
        ids.map(|id| Ok((id, stages.low(id).map_err(|error| error.to_string())?))).collect()
    }
}

struct LowLoaded {
    low: Module,
    entries: BTreeMap<FuncId, (FuncId, NativeSignature)>,
    max_steps: u64,
}

impl Loaded for LowLoaded {
    fn call(&mut self, func: FuncId, args: &[Literal]) -> Outcome {
        let options = Options { max_steps: self.max_steps, ..Options::default() };
        let mut interp = Interp::new(&self.low, options, Box::new(SimMemory::default()));
        let Some((low_id, signature)) = self.entries.get(&func) else {
            return Outcome::Failed("the function was not lowered".to_owned());
        };
        let cx = &self.low.cx;
        let unfit = |what: &str| Outcome::Failed(format!("{what} has no registers"));
        let mut registers = Vec::new();
        if signature.result.is_memory() {
            let (size, align) = (signature.result.size, signature.result.align);
            match interp.memory().allocate(size.into(), align.into()) {
                Ok(address) => registers.push(u128::from(address)),
                Err(error) => return Outcome::Failed(error.to_string()),
            }
        }
        // Argument 0 is the function object, which has no registers.
        for (form, arg) in signature.params.iter().skip(1).zip(args) {
            match encode(cx, form, arg, &mut InInterpreter(&mut interp)) {
                Some(leaves) => registers.extend(leaves),
                None => return unfit("an argument"),
            }
        }
        let types = self.low[*low_id].sig.params.iter().map(|p| p.ty);
        let vals: Vec<Val> = types.zip(&registers).map(|(ty, &bits)| Val::Bits { ty, bits }).collect();
        let results = match interp.call_low(*low_id, &vals) {
            Ok(results) => results,
            Err(end) => return ended(&mut interp, cx, end),
        };
        let leaves: Vec<u128> = match signature.result.is_memory() {
            true => registers.into_iter().take(1).collect(),
            false => results.iter().filter_map(Val::as_bits).collect(),
        };
        match decode(cx, &signature.result, &leaves, &mut InInterpreter(&mut interp)) {
            Some(value) => Outcome::Returned(value),
            None => unfit("the result"),
        }
    }
}

/// The interpreter's own memory.
struct InInterpreter<'a, 'm>(&'a mut Interp<'m>);

impl Place for InInterpreter<'_, '_> {
    fn put(&mut self, bytes: &[u8]) -> Option<u64> {
        let address = self.0.memory().allocate(bytes.len() as u64, 16).ok()?;
        self.0.memory().store(address, 1, bytes).ok()?;
        Some(address)
    }

    fn get(&mut self, address: u64, size: usize) -> Option<Vec<u8>> {
        let mut bytes = vec![0; size];
        self.0.memory().load(address, 1, &mut bytes).ok()?;
        Some(bytes)
    }

    fn record(&mut self, text: &Const) -> Option<u64> {
        let address = match *text {
            Const::Symbol(name) => Address::Symbol(name),
            Const::String(name) => Address::String(name),
            _ => return None,
        };
        self.0.record_address(address).ok()
    }

    fn text(&mut self, ty: Type, address: u64) -> Option<Const> {
        let name = self.0.record_at(address)?;
        Some(if ty == Type::SYMBOL { Const::Symbol(name) } else { Const::String(name) })
    }
}
