//! Functions of a program as a unit that is materialized when somebody looks.
//!
//! ```text
//!   Functions { plan, ids } ── compile ──► Compiled ── imports looked up ──► link ──► resolve ──► emit, with what was found
//! ```
//!
//! Compiling holds no lock and needs nothing but the plan, so units compile side by side. What the code refers to is read from
//! the code itself, looked up in the dylib's link order until it has an address, and named as what the unit needs: it is ready
//! when all that it may call is ready.
//!
//! | symbol in the code | is |
//! |---|---|
//! | a function | required; a failure to have it is the unit's |
//! | a C symbol without a library | taken from the link order when it is there, else from the process |
//! | all else | the run time's |
//!
//! A unit that makes calls which are decided at run time needs every method of its program.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use brolga_codegen::compile::Symbol as Import;
use brolga_codegen::generate::Generator;
use brolga_gcroots::Lowering as Roots;
use brolga_ir::builtin::Builtin;
use brolga_ir::{FuncId, Level, Module, Op};
use brolga_jit::{Compiled, Globals, Jit, Linkage, Method, Source};
use brolga_opt::OptLevel;
use brolga_session::{
    Definition, Dependence, Label, MaterializationUnit, Need, Responsibility, Symbol, SymbolFlags, Until,
    Want,
};

use super::plan::{Plan, lock};
use super::target::{Code, Kept, Native, Placed};
use crate::engine::{function_type, method};
use crate::error::Error;
use crate::options::tier;
use crate::stages::{dispatches, has_objects};

/// What all units of a session share. Nothing in it leads back to the session.
pub(crate) struct Shared {
    pub(crate) jit: Jit,
    level: OptLevel,
    opt: brolga_opt::Options,
    roots: Roots,
    pub(crate) placed: Arc<Placed>,
    /// Generators that no thread is using.
    generators: Mutex<Vec<Generator>>,
    pub(crate) compiled: Mutex<Totals>,
}

/// What was compiled so far.
#[derive(Clone, Copy, Default)]
pub(crate) struct Totals {
    pub(crate) functions: u64,
    pub(crate) bytes: u64,
}

impl Shared {
    pub(crate) fn new(jit: Jit, level: OptLevel, opt: brolga_opt::Options, roots: Roots) -> Shared {
        Shared {
            jit,
            level,
            opt,
            roots,
            placed: Arc::default(),
            generators: Mutex::default(),
            compiled: Mutex::default(),
        }
    }
}

/// A program that was defined, and how it is compiled.
pub(crate) struct Loaded {
    pub(crate) plan: Plan,
    /// The functions that it defines; the others are imported.
    own: Vec<FuncId>,
    globals: Globals,
    /// Whether some function of it makes calls that are decided at run time.
    is_open: bool,
    names: BTreeMap<FuncId, Arc<str>>,
    kept: Option<Kept>,
}

impl Loaded {
    /// Takes a verified module, which defines the functions `own`.
    pub(crate) fn new(
        shared: &Shared,
        module: Module,
        own: Vec<FuncId>,
        kept: Option<Kept>,
    ) -> Result<Loaded, Error> {
        let globals = Globals::new(shared.jit.runtime());
        if !module.globals().is_empty() {
            for global in module.globals() {
                globals.declare(module.cx.names.text(global.name));
            }
            crate::engine::set_globals(&module, &globals, shared.jit.runtime())?;
        }
        let calls_unknown = |&id: &FuncId| {
            let func = module.func(id);
            let mut ops = func.blocks().flat_map(|b| func.block_insts(b)).map(|inst| func.op(inst));
            ops.any(decides_later)
        };
        let is_open = own.iter().any(calls_unknown);
        let names = own.iter().map(|&id| (id, module.symbol(id).into())).collect();
        let plan = Plan::new(module, shared.level, shared.opt.clone(), shared.roots);
        Ok(Loaded { plan, own, globals, is_open, names, kept })
    }

    /// The symbols of all functions that it defines.
    pub(crate) fn symbols(&self) -> impl Iterator<Item = (FuncId, &Arc<str>)> {
        self.names.iter().map(|(id, name)| (*id, name))
    }

    /// The functions that it defines, in sets that are linked together.
    pub(crate) fn units(&self) -> Vec<Vec<FuncId>> {
        let mut seen = std::collections::BTreeSet::new();
        let mut units = Vec::new();
        for &id in &self.own {
            let mut circle = self.plan.circle(id);
            circle.retain(|id| self.names.contains_key(id));
            if circle.iter().all(|&id| seen.insert(id)) {
                units.push(circle);
            }
        }
        units
    }

    /// The functions that can be called by dispatch.
    fn methods(&self) -> impl Iterator<Item = FuncId> + '_ {
        self.own.iter().copied().filter(|&id| self.plan.module().func(id).level == Level::High)
    }
}

/// Whether an operation may call a function that only running decides.
fn decides_later(op: Op) -> bool {
    let calls = [Builtin::ApplyIterate, Builtin::Invoke, Builtin::Invokelatest, Builtin::InvokeInWorld];
    match op {
        Op::Call | Op::CallRuntime(_) => true,
        Op::Builtin(builtin) => calls.contains(&builtin),
        _ => false,
    }
}

/// See the file's header.
pub(crate) struct Functions {
    pub(crate) shared: Arc<Shared>,
    pub(crate) loaded: Arc<Loaded>,
    pub(crate) ids: Vec<FuncId>,
    pub(crate) symbols: Vec<(Symbol, SymbolFlags)>,
}

impl MaterializationUnit<Native> for Functions {
    fn symbols(&self) -> Vec<(Symbol, SymbolFlags)> {
        self.symbols.clone()
    }

    fn materialize(self: Box<Self>, responsibility: Responsibility<Native>) {
        compile_and_link(self.shared, self.loaded, &self.ids, responsibility);
    }
}

/// What a unit became before it is linked.
struct Output {
    compiled: Compiled,
    methods: Vec<Method>,
    /// Whether it needs all methods of its program.
    dispatches: bool,
}

/// Keeps a responsibility by functions of a program.
pub(crate) fn compile_and_link(
    shared: Arc<Shared>,
    loaded: Arc<Loaded>,
    ids: &[FuncId],
    responsibility: Responsibility<Native>,
) {
    let output = match compile(&shared, &loaded, ids) {
        Ok(output) => output,
        Err(error) => return responsibility.fail(error),
    };
    let session = responsibility.session().clone();
    let want = |import: &&Import| {
        let (text, need) = match import {
            Import::Function(name) => (name, Need::Required),
            Import::Foreign { name, library: None } => (name, Need::Weak),
            _ => return None,
        };
        Some(Want { symbol: session.intern(text), need })
    };
    let wants = output.compiled.imports().iter().filter_map(want).collect();
    responsibility.lookup_then(wants, Until::Resolved, move |responsibility, found| {
        link(&shared, &loaded, &output, responsibility, &found);
    });
}

fn compile(shared: &Shared, loaded: &Loaded, ids: &[FuncId]) -> Result<Output, Arc<Error>> {
    let plan = &loaded.plan;
    let placed = ids.iter().map(|&id| plan.placed(id)).collect::<Result<Vec<_>, _>>()?;
    let mut entries = Vec::new();
    if loaded.is_open || placed.iter().any(has_objects) {
        for &id in ids.iter().filter(|&&id| plan.module().func(id).level == Level::High) {
            entries.push((id, plan.placed_entry(id)?));
        }
    }
    let module = plan.module();
    let mut sources: Vec<Source<'_>> = Vec::with_capacity(placed.len() + entries.len());
    for (&id, low) in ids.iter().zip(&placed) {
        sources.push(Source { func: low, ty: Some(function_type(module, id, low)) });
    }
    sources.extend(entries.iter().map(|(_, low)| Source { func: low, ty: None }));
    let methods = entries.iter().filter_map(|(id, _)| method(module, *id)).collect();
    let dispatches = placed.iter().any(dispatches);

    let generator = lock(&shared.generators).pop();
    let mut generator = generator.unwrap_or_else(|| Generator::new(shared.jit.limits()));
    let compiled = shared.jit.compile(&module.cx, &sources, tier(shared.level), &mut generator);
    lock(&shared.generators).push(generator);
    let compiled = compiled.map_err(Error::from)?;
    let mut totals = lock(&shared.compiled);
    totals.functions += ids.len() as u64;
    totals.bytes += compiled.code_bytes() as u64;
    drop(totals);
    Ok(Output { compiled, methods, dispatches })
}

fn link(
    shared: &Arc<Shared>,
    loaded: &Arc<Loaded>,
    output: &Output,
    responsibility: Responsibility<Native>,
    found: &[Definition<Native>],
) {
    let session = responsibility.session().clone();
    let (mut visible, mut foreign) = (Vec::new(), BTreeMap::new());
    for definition in found {
        let Some(address) = definition.address else { continue };
        match shared.placed.get(address) {
            Some(function) => visible.push(function.unit),
            None => drop(foreign.insert(session.names().text(definition.label.symbol).to_string(), address)),
        }
    }
    let linkage = Linkage {
        visible: &visible,
        globals: Some(&loaded.globals),
        methods: &output.methods,
        // Programs of one session call each other's functions, whose dynamic calls find the same methods whoever calls.
        table: None,
        foreign: Some(&foreign),
        ..Linkage::default()
    };
    let unit = match shared.jit.link(&output.compiled, &linkage) {
        Ok(unit) => unit,
        Err(error) => return responsibility.fail(Error::from(error)),
    };
    let Ok(symbols) = responsibility.symbols() else { return };
    let names = symbols.iter().map(|(symbol, _)| session.names().text(*symbol));
    let (code, addresses) = Code::enter(&shared.placed, &unit, names, loaded.kept.clone());
    let mut needs: Vec<Dependence<Native>> = found.iter().map(|&found| found.into()).collect();
    if output.dispatches {
        let methods = loaded.methods().filter_map(|id| loaded.names.get(&id));
        let Ok(dylib) = responsibility.dylib() else { return };
        needs.extend(methods.map(|name| Dependence::from(Label { dylib, symbol: session.intern(name) })));
    }
    // Whoever removed the unit meanwhile has told those who wait; the code goes with its hold.
    if responsibility.attach(code).is_err() {
        return;
    }
    let addresses = addresses.into_iter().map(|(name, address)| (session.intern(&name), address));
    if let Ok(resolved) = responsibility.resolve(addresses) {
        // A refusal has failed the unit, with its reason.
        let _ = resolved.emit(needs);
    }
}
