//! The ways to run a module, behind one interface.

use super::leaves::{Place, decode, encode};
use super::outcome::Outcome;
use brolga_ir::abi::NativeSignature;
use brolga_ir::constant::Address;
use brolga_ir::diag::Style;
use brolga_ir::interp::{Interp, Options, Outcome as End, SimMemory, Val};
use brolga_ir::module::Literal;
use brolga_ir::verify::{point_into_printout, verify_module};
use brolga_ir::{Const, Context, FuncId, Module, Type};
use brolga_opt::lower::{self, lower_module};
use std::collections::BTreeMap;

/// A way to run a module.
pub trait Engine {
    /// What reports call it.
    fn name(&self) -> String;

    /// Makes a module ready to run. An error means that the engine refuses it, with the reason.
    fn load<'m>(&self, module: &'m Module) -> Result<Box<dyn Loaded + 'm>, String>;
}

/// A module that can run.
pub trait Loaded {
    /// Calls a function on arguments without the function object.
    fn call(&mut self, func: FuncId, args: &[Literal]) -> Outcome;
}

/// The reference interpreter on high IR, in a fresh state for each call.
#[derive(Clone, Copy, Debug)]
pub struct HighInterpreter {
    /// How many statements a call may execute.
    pub max_steps: u64,
}

impl Engine for HighInterpreter {
    fn name(&self) -> String {
        "interpreter of high IR".to_owned()
    }

    fn load<'m>(&self, module: &'m Module) -> Result<Box<dyn Loaded + 'm>, String> {
        Ok(Box::new(HighLoaded { module, max_steps: self.max_steps }))
    }
}

struct HighLoaded<'m> {
    module: &'m Module,
    max_steps: u64,
}

impl Loaded for HighLoaded<'_> {
    fn call(&mut self, func: FuncId, args: &[Literal]) -> Outcome {
        let options = Options { max_steps: self.max_steps, ..Options::default() };
        let mut interp = Interp::new(self.module, options, Box::new(SimMemory::default()));
        let cx = &self.module.cx;
        let args: Result<Vec<Val>, End> = args.iter().map(|arg| to_val(&mut interp, cx, arg)).collect();
        let end = args.and_then(|args| interp.call(func, &args));
        match end {
            Ok(val) => match to_literal(&mut interp, cx, &val) {
                Some(value) => Outcome::Returned(value),
                None => Outcome::Failed("the result is no literal".to_owned()),
            },
            Err(end) => ended(&mut interp, cx, end),
        }
    }
}

/// How a call that did not return ended.
fn ended(interp: &mut Interp<'_>, cx: &Context, end: End) -> Outcome {
    match end {
        End::OutOfFuel => Outcome::OutOfFuel,
        End::Error(error) => Outcome::Failed(error.to_string()),
        End::Thrown(exception) => {
            let kind = cx.types.display(exception.type_of(&cx.types)).to_string();
            let says = matches!(kind.as_str(), "ErrorException" | "ArgumentError");
            let message = match &exception {
                Val::Struct(fields) if says => match fields.fields().first() {
                    Some(Some(text)) => interp.string_bytes(text).ok().flatten(),
                    _ => None,
                },
                _ => None,
            };
            let message = message.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
            Outcome::Threw { kind, message }
        }
    }
}

fn to_val(interp: &mut Interp<'_>, cx: &Context, literal: &Literal) -> Result<Val, End> {
    Ok(match literal {
        Literal::Const(Const::Bits { ty, bits }) => Val::Bits { ty: *ty, bits: *bits },
        Literal::Const(Const::Symbol(name)) => Val::Symbol(*name),
        Literal::Const(Const::String(name)) => interp.string(cx.names.text(*name).as_bytes())?,
        Literal::Const(other) => Val::Singleton(other.ty()),
        Literal::Aggregate { ty, fields } => {
            let fields: Result<Vec<_>, End> =
                fields.iter().map(|f| to_val(interp, cx, f).map(Some)).collect();
            Val::aggregate(*ty, fields?)
        }
    })
}

fn to_literal(interp: &mut Interp<'_>, cx: &Context, val: &Val) -> Option<Literal> {
    Some(match val {
        Val::Bits { ty, bits } => Literal::Const(Const::Bits { ty: *ty, bits: *bits }),
        Val::Singleton(ty) => Literal::Const(Const::Singleton(*ty)),
        Val::Symbol(name) => Literal::Const(Const::Symbol(*name)),
        Val::Object { ty: Type::STRING, .. } => {
            let bytes = interp.string_bytes(val).ok()??;
            Literal::Const(Const::String(cx.names.intern(std::str::from_utf8(&bytes).ok()?)))
        }
        Val::Struct(fields) => {
            let values: Option<Vec<_>> =
                fields.fields().iter().map(|f| to_literal(interp, cx, f.as_ref()?)).collect();
            Literal::Aggregate { ty: fields.ty(), fields: values? }
        }
        _ => return None,
    })
}

/// The reference interpreter on low IR: what `lower` makes of a module, without any other pass.
#[derive(Clone, Copy, Debug)]
pub struct LowInterpreter {
    /// How many statements a call may execute.
    pub max_steps: u64,
}

impl Engine for LowInterpreter {
    fn name(&self) -> String {
        "interpreter of low IR".to_owned()
    }

    fn load<'m>(&self, module: &'m Module) -> Result<Box<dyn Loaded + 'm>, String> {
        let cx = &module.cx;
        let mut low = Module::new(cx.clone());
        let mut entries = BTreeMap::new();
        for (id, lowered) in lower_module(module, &lower::Options::default()) {
            let func = lowered.map_err(|errors| errors.to_string())?;
            let signature = NativeSignature::new(&cx.types, &module.func(id).sig);
            let signature = signature.map_err(|_| format!("`{}` has no native form", module.symbol(id)))?;
            let low_id = low.add_func(func).map_err(|error| format!("{error:?}"))?;
            entries.insert(id, (low_id, signature));
        }
        verify(&low)?;
        Ok(Box::new(LowLoaded { low, entries, max_steps: self.max_steps }))
    }
}

/// Every broken rule of a module as text.
pub(super) fn verify(module: &Module) -> Result<(), String> {
    let Err(found) = verify_module(module) else { return Ok(()) };
    let mut text = String::new();
    for (id, violations) in &found.funcs {
        let (source, findings) = point_into_printout(&module.cx, module.func(*id), violations);
        findings.iter().for_each(|finding| text.push_str(&finding.render(&source, &Style::PLAIN)));
    }
    found.globals.iter().for_each(|global| text.push_str(&global.message(&module.cx)));
    Err(text)
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
        let types = self.low.func(*low_id).sig.params.iter().map(|p| p.ty);
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
