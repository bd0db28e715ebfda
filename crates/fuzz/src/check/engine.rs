//! The engines that run a module, with a common interface.
//!
//! | engine | runs |
//! |---|---|
//! | [`HighInterpreter`] | high IR, as read or after the passes of a level |
//! | [`LowInterpreter`] | low IR, from `lower` alone or with the passes of a level before and after |
//! | [`Native`](super::Native) | machine code at a level |

use super::outcome::Outcome;
use super::verify;
use brolga_engine::Stages;
use brolga_interp::{Interp, Options, Outcome as End, SimMemory, Val};
use brolga_ir::module::Literal;
use brolga_ir::{Const, Context, FuncId, Level, Module, Type};
use brolga_opt::{Cx, OptLevel, PASSES};
use std::borrow::Cow;

/// An engine that runs a module.
pub trait Engine {
    /// Its name in reports.
    fn name(&self) -> String;

    /// Prepares a module for running. An error is the engine's reason to refuse it.
    fn load<'m>(&self, module: &'m Module) -> Result<Box<dyn Loaded + 'm>, String>;

    /// The same engine with a limit on the rewrites of its passes; `None` if it has no passes.
    fn limited(&self, opt_limit: u64) -> Option<Box<dyn Engine + '_>> {
        let _ = opt_limit;
        None
    }
}

/// A module that is ready to run.
pub trait Loaded {
    /// Calls a function. `args` does not include the function object.
    fn call(&mut self, func: FuncId, args: &[Literal]) -> Outcome;
}

/// The passes that run on a module first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Passes {
    /// The level of the pipeline.
    pub level: OptLevel,
    /// The maximum number of rewrites by the passes; `None` for no limit.
    pub opt_limit: Option<u64>,
    /// A pass that is skipped, unless it is required: later passes then see IR that the full pipeline rarely
    /// produces.
    pub without: Option<&'static str>,
}

impl Passes {
    pub fn of(level: OptLevel) -> Passes {
        Passes { level, opt_limit: None, without: None }
    }

    /// The pipeline of a level without one pass, whose index is `number` modulo their count.
    pub fn without_one(level: OptLevel, number: u64) -> Passes {
        let pass = PASSES[(number % PASSES.len() as u64) as usize];
        Passes { without: Some(pass.name), ..Passes::of(level) }
    }

    pub(super) fn limited(self, opt_limit: u64) -> Passes {
        Passes { opt_limit: Some(opt_limit), ..self }
    }

    pub(super) fn name(self) -> String {
        let limit = self.opt_limit.map_or(String::new(), |limit| format!(", {limit} rewrites"));
        let without = self.without.map_or(String::new(), |pass| format!(" without {pass}"));
        format!("{:?}{without}{limit}", self.level)
    }

    /// Runs the passes on functions of a module, with the verifier after each.
    pub(super) fn stages<'m>(self, module: &'m Module, options: &'m brolga_opt::Options) -> Stages<'m, 'm> {
        Stages::new(module, self.level, options, Cx::new(self.opt_limit))
    }

    pub(super) fn options(self) -> brolga_opt::Options {
        brolga_opt::Options { skip: self.without.into_iter().collect(), ..verifying() }
    }
}

/// Options that run the verifier after each pass.
pub(super) fn verifying() -> brolga_opt::Options {
    brolga_opt::Options { verify_each: true, ..brolga_opt::Options::default() }
}

/// The reference interpreter on high IR, in a fresh state for each call.
#[derive(Clone, Copy, Debug)]
pub struct HighInterpreter {
    /// The maximum number of statements per call.
    pub max_steps: u64,
    /// The passes that run on the module first; `None` for none.
    pub passes: Option<Passes>,
}

impl Engine for HighInterpreter {
    fn name(&self) -> String {
        let passes = self.passes.map_or(String::new(), |passes| format!(" at {}", passes.name()));
        format!("interpreter of high IR{passes}")
    }

    fn load<'m>(&self, module: &'m Module) -> Result<Box<dyn Loaded + 'm>, String> {
        let Some(passes) = self.passes else {
            return Ok(Box::new(HighLoaded { module: Cow::Borrowed(module), max_steps: self.max_steps }));
        };
        Ok(Box::new(HighLoaded { module: Cow::Owned(optimised(module, passes)?), max_steps: self.max_steps }))
    }

    fn limited(&self, opt_limit: u64) -> Option<Box<dyn Engine + '_>> {
        let passes = Some(self.passes?.limited(opt_limit));
        Some(Box::new(HighInterpreter { passes, ..*self }))
    }
}

/// A module after the passes on high IR.
pub(super) fn optimised(module: &Module, passes: Passes) -> Result<Module, String> {
    let options = passes.options();
    let mut stages = passes.stages(module, &options);
    let mut optimised = module.without_functions();
    for (id, func) in module.funcs() {
        let func = match func.level {
            Level::High => stages.high(id).map_err(|error| error.to_string())?,
            Level::Low => func.clone(),
        };
        optimised.add_func(func).map_err(|error| format!("{error:?}"))?;
    }
    verify(&optimised)?;
    Ok(optimised)
}

struct HighLoaded<'m> {
    module: Cow<'m, Module>,
    max_steps: u64,
}

impl Loaded for HighLoaded<'_> {
    fn call(&mut self, func: FuncId, args: &[Literal]) -> Outcome {
        let options = Options { max_steps: self.max_steps, ..Options::default() };
        let mut interp = Interp::new(&self.module, options, Box::new(SimMemory::default()));
        let cx = &self.module.cx;
        let args: Result<Vec<Val>, End> = args.iter().map(|arg| to_val(&mut interp, cx, arg)).collect();
        let end = args.and_then(|args| interp.call(func, &args));
        match end {
            Ok(val) => match to_literal(&mut interp, cx, &val) {
                Some(value) => Outcome::Returned(value),
                None => Outcome::Failed("the result is not a literal".to_owned()),
            },
            Err(end) => ended(&mut interp, cx, end),
        }
    }
}

/// The outcome of a call that did not return.
pub(super) fn ended(interp: &mut Interp<'_>, cx: &Context, end: End) -> Outcome {
    match end {
        End::OutOfFuel => Outcome::OutOfFuel,
        End::Ended(end) => Outcome::Failed(end.to_string()),
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

pub(super) fn to_val(interp: &mut Interp<'_>, cx: &Context, literal: &Literal) -> Result<Val, End> {
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
        // Generated values have no identity.
        Literal::Array { ty, .. } => Val::Singleton(*ty),
    })
}

pub(super) fn to_literal(interp: &mut Interp<'_>, cx: &Context, val: &Val) -> Option<Literal> {
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
