//! From functions of a program to linked code, without the session's tables.
//!
//! ```text
//!   CompilationInput ── make_low ──► Lowered ── generate ──► Output ── look up its references ──► link_unit ──► Unit
//! ```
//!
//! Compiling holds no lock and needs only the input, so units compile in parallel. The references are read from the code itself
//! ([`wants`]); the callers look them up: `unit.rs` for units of the tables, `detached.rs` for functions without a symbol.
//!
//! | symbol in the code | is |
//! |---|---|
//! | a cell: a function of another unit | resolved in the link order; `needs.rs` describes the case without a definition. It has an address before its function is compiled (`lazy.rs`) |
//! | a counter | required; cells and counters of loops are the unit's own |
//! | a C symbol | resolved in the link order if defined there, else the run time's own |
//! | everything else | the run time's |
//!
//! So the code of a unit does not depend on the code that its cells call, and units that call each other are linked in any order.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use brolga_cache::Fingerprint;
use brolga_codegen::compiled::Symbol as Import;
use brolga_codegen::isa::Tier;
use brolga_codegen::linkage::CallKind;
use brolga_codegen::sig::FunctionType;
use brolga_ir::signature::func_symbol;
use brolga_ir::{Func, FuncId, Module};
use brolga_jit::{
    Compiled, FindCell, Foreign, IndirectCell, Linkage, LoopEntry, Moving, Outside, Source, Style, Unit,
};
use brolga_linking::{Definition, SymbolScope, Want};
use brolga_opt::osr::Exit;
use brolga_runtime::events::Stage;

use super::input::CompilationInput;
use super::linking;
use super::needs::{Need, Needs};
use super::shared::Shared;
use super::sync::lock;
use super::target::{Native, Place};
use crate::cached::{CodeCache, Continuation, KeptLoop};
use crate::error::Error;
use crate::options::tier;
use crate::pipeline::{Run, watched};
use crate::program::Callees;
use crate::session::tiering::profile::Profile;
use brolga_codegen::native_type::{declared_type, function_type};

/// A loop of a function that was compiled in the first tier.
pub(crate) struct FoundLoop {
    pub(crate) func: FuncId,
    /// Describes the exit from the loop.
    pub(crate) exit: Continuation,
    /// The type of the continuation.
    pub(crate) ty: Arc<FunctionType>,
    pub(crate) check: Arc<str>,
}

impl FoundLoop {
    pub(crate) fn new(module: &Module, func: FuncId, exit: Exit) -> Option<FoundLoop> {
        let cx = &module.cx;
        let ty = declared_type(cx, exit.entry_symbol(cx).to_owned(), &exit.entry.sig)?;
        let check = exit.check_symbol(cx).into();
        Some(FoundLoop { func, exit: Continuation::Found(Arc::new(exit)), ty: Arc::new(ty), check })
    }

    /// Decodes a loop of a unit from a cache; `ids` are the unit's functions.
    fn of_kept(module: &Module, ids: &[FuncId], kept: KeptLoop) -> Option<FoundLoop> {
        let cx = &module.cx;
        let ty = declared_type(cx, func_symbol(cx, &kept.entry), &kept.entry)?;
        let check = func_symbol(cx, &kept.check).into();
        let exit = Continuation::Marked(kept.mark.into());
        Some(FoundLoop { func: *ids.get(kept.func)?, exit, ty: Arc::new(ty), check })
    }

    /// The cached form; `None` for a loop that comes from the cache.
    fn kept(&self, ids: &[FuncId]) -> Option<KeptLoop> {
        let Continuation::Found(exit) = &self.exit else { return None };
        let func = ids.iter().position(|&id| id == self.func)?;
        let (entry, check) = (exit.entry.sig.clone(), exit.check.sig.clone());
        Some(KeptLoop { func, entry, check, mark: exit.mark() })
    }

    /// The name by which the loop calls its continuation.
    pub(crate) fn entry(&self) -> &str {
        &self.ty.symbol
    }
}

/// A compiled unit before linking.
pub(crate) struct Output {
    pub(super) compiled: Compiled,
    /// The loops that may be left for a higher tier.
    pub(super) loops: Vec<FoundLoop>,
    pub(super) ids: Vec<FuncId>,
    /// The number of statements it was compiled from.
    pub(super) weight: u32,
    /// Whether it is from the cache.
    pub(super) is_loaded: bool,
}

/// The references of a unit's code that a session resolves.
pub(crate) fn wants(
    names: &SymbolScope,
    input: &CompilationInput,
    output: &Output,
    needs: &Needs,
) -> Vec<Want> {
    let of_loops: BTreeSet<&str> =
        output.loops.iter().flat_map(|found| [found.entry(), &*found.check]).collect();
    let want = |import: &Import| {
        let (text, need) = match import {
            Import::IndirectCell(name) | Import::Counter(name) if of_loops.contains(name.as_str()) => {
                return None;
            }
            Import::Counter(name) => (name, linking::Need::Required),
            Import::IndirectCell(name) => match needs.function(name) {
                Need::Direct => (name, linking::Need::Required),
                Need::Inside | Need::Decided => (name, linking::Need::Weak),
            },
            Import::Foreign { name, library: None, .. } => (name, linking::Need::Weak),
            _ => return None,
        };
        let at = input.facts.bindings.get(text.as_str()).copied();
        Some(Want { symbol: names.intern(text), need, at })
    };
    output.compiled.imports().into_iter().filter_map(want).collect()
}

/// Lowered functions, ready for code generation.
pub(super) struct Lowered {
    ids: Vec<FuncId>,
    /// Their lowered bodies, in the same order.
    funcs: Vec<Func>,
    loops: Vec<FoundLoop>,
    /// The time that lowering took.
    cost: Duration,
}

impl Lowered {
    /// The number of statements.
    pub(super) fn weight(&self) -> u32 {
        let all = self.funcs.iter().map(Func::inst_count).sum::<usize>();
        u32::try_from(all).unwrap_or(u32::MAX)
    }
}

/// Compiles functions to machine code with its metadata, which are stored in the cache under these facts.
pub(crate) fn compile(
    shared: &Shared,
    input: &CompilationInput,
    ids: &[FuncId],
    facts: Option<&Fingerprint>,
) -> Result<Output, Arc<Error>> {
    let is_in_vain = || shared.jit.runtime().has_ended();
    generate(shared, input, make_low(shared, input, ids, &is_in_vain)?, facts, &is_in_vain)
}

/// The unit of the functions from the cache.
pub(super) fn find(
    cache: &CodeCache,
    input: &CompilationInput,
    ids: &[FuncId],
    facts: &Fingerprint,
) -> Option<Output> {
    let module = input.pipeline.module();
    let (compiled, kept) = cache.find_unit(facts, module, input.types_of(ids))?;
    let loops = kept.into_iter().map(|kept| FoundLoop::of_kept(module, ids, kept));
    let loops = loops.collect::<Option<Vec<_>>>()?;
    let weight = u32::try_from(compiled.code_bytes()).unwrap_or(u32::MAX);
    Some(Output { compiled, loops, ids: ids.to_vec(), weight, is_loaded: true })
}

/// Optimises and lowers functions and places their roots.
///
/// # Errors
/// Also [`OptError::Stopped`](brolga_opt::OptError::Stopped): the time limit for compiling has passed, or the result is not needed any more.
pub(super) fn make_low(
    shared: &Shared,
    input: &CompilationInput,
    ids: &[FuncId],
    is_in_vain: &(dyn Fn() -> bool + Sync),
) -> Result<Lowered, Arc<Error>> {
    let start = Instant::now();
    let pipeline = &input.pipeline;
    let is_first = input.counting.is_some();
    let (mut funcs, mut loops) = (Vec::with_capacity(ids.len()), Vec::new());
    let limit = shared.recipe.compile_limit;
    let (module, events) = (pipeline.module(), shared.jit.runtime().events());
    let stop = || limit.is_some_and(|limit| start.elapsed() > limit) || is_in_vain();
    let mut cx = watched(events).with_stop(stop);
    let mut run = Run { cx: &mut cx, report: None };
    for &id in ids {
        let _span = events.span(Stage::Optimise, || module[id].symbol(&module.cx));
        if is_first {
            let (low, exits) = pipeline.leaving(&mut run, id)?;
            funcs.push(low);
            loops.extend(exits.into_iter().filter_map(|exit| FoundLoop::new(module, id, exit)));
        } else {
            funcs.push(pipeline.placed(&mut run, id)?);
        }
    }
    cx.check_time().map_err(Error::from)?;
    Ok(Lowered { ids: ids.to_vec(), funcs, loops, cost: start.elapsed() })
}

/// Generates machine code, which is stored in the cache under these facts.
///
/// # Errors
/// Also [`OptError::Stopped`](brolga_opt::OptError::Stopped), as [`make_low`].
pub(super) fn generate(
    shared: &Shared,
    input: &CompilationInput,
    low: Lowered,
    facts: Option<&Fingerprint>,
    is_in_vain: &(dyn Fn() -> bool + Sync),
) -> Result<Output, Arc<Error>> {
    let start = Instant::now();
    let weight = low.weight();
    let Lowered { ids, funcs, loops, cost } = low;
    let module = input.pipeline.module();
    let is_first = input.counting.is_some();
    let mut sources: Vec<Source<'_>> = Vec::with_capacity(funcs.len());
    for (&id, low) in ids.iter().zip(&funcs) {
        let known = input.types.get(module.cx.names.text(low.name)).cloned();
        let ty = known.unwrap_or_else(|| function_type(module, id, low).into());
        sources.push(Source { func: low, ty: Some(ty) });
    }

    let call_kind = |name: &str| match loops.iter().any(|found| *found.check == *name) {
        true => CallKind::OsrCheck,
        false => CallKind::Cell,
    };
    let tier = if is_first { Tier::Baseline } else { tier(shared.recipe.level) };
    let counts = |name: &str| is_first && input.names.values().any(|own| **own == *name);
    let is_profiled = is_first && input.profile.is_some();
    // C calls a function through its cell, as all callers do.
    let apart = |name: &str| input.facts.behind_cells.contains(name);
    let (others, counted, apart) = (&call_kind, &counts, &apart);
    let limit = shared.recipe.compile_limit;
    let stop = || limit.is_some_and(|limit| cost + start.elapsed() > limit) || is_in_vain();
    let style = Style { tier, others, counted, apart, has_c_entries: true, is_profiled, stop: &stop };
    let compiled = shared.jit.compile(&module.cx, &sources, style).map_err(Error::from)?;
    let mut totals = lock(&shared.compiled);
    totals.functions += ids.len() as u64;
    totals.bytes += compiled.code_bytes() as u64;
    drop(totals);
    if let (Some(facts), Some(cache)) = (facts, &shared.recipe.cache) {
        let kept: Option<Vec<KeptLoop>> = loops.iter().map(|found| found.kept(&ids)).collect();
        if let Some(kept) = kept {
            input.cached(cache).keep_unit(facts, module, &compiled, &kept, cost + start.elapsed());
        }
    }
    Ok(Output { compiled, loops, ids, weight, is_loaded: false })
}

/// Links compiled code to the resolved symbols. `None` if one of them no longer exists.
pub(crate) fn link_unit(
    shared: &Arc<Shared>,
    session: &linking::Session<Native>,
    input: &CompilationInput,
    output: &Output,
    found: &[Definition<Native>],
    loops: &[LoopEntry],
    new: Option<&Moving>,
) -> Result<Option<Unit>, Error> {
    let mut foreign = BTreeMap::new();
    let mut cells = Found::default();
    for definition in found {
        let name = session.names().text(definition.label.symbol);
        let Some(address) = definition.address else { continue };
        let leads = || session.leads_to(definition.label);
        let Ok(place) = shared.placed.find(address, leads) else { return Ok(None) };
        match place {
            Some(Place::Function(function)) => {
                input.check(&name, function.ty())?;
                cells.0.insert(name, function.cell.clone());
            }
            // Functions without a native form are called only by dispatch.
            Some(Place::Compiled(_)) => {}
            Some(Place::Object(object)) => {
                foreign.insert(name.to_string(), Foreign { address, object: Some(object) });
            }
            // The run time has all functions that checked programs may call.
            None if shared.recipe.opt.checked => {}
            None => drop(foreign.insert(name.to_string(), Foreign { address, object: None })),
        }
    }
    let cells = OrRemoved { shared, input, cells };
    let linkage = Linkage {
        visible: &[],
        globals: Some(&input.facts.globals),
        // Programs of one session call each other's functions, whose dynamic calls find the same methods from every caller.
        table: None,
        foreign: Some(&foreign),
        defers_foreign: input.facts.callees == Callees::Late,
        outside: Outside::Given,
        indirect: Some(&cells),
        loops,
        cells: input.profile.as_deref().map(Profile::cells),
        new,
    };
    let unit = shared.jit.link(&output.compiled, &linkage)?;
    if let Some(kept) = &input.facts.kept {
        // The unit is new and holds nothing yet.
        let _ = unit.keep(kept.clone());
    }
    Ok(Some(unit))
}

/// The cells that a unit's code refers to.
#[derive(Default)]
pub(super) struct Found(pub(super) BTreeMap<Arc<str>, IndirectCell>);

impl FindCell for Found {
    fn cell(&self, name: &str) -> Result<IndirectCell, String> {
        self.0.get(name).cloned().ok_or_else(|| "it is not a function of a program any more".to_owned())
    }
}

/// The same, but calls of functions that were not found throw.
struct OrRemoved<'a> {
    shared: &'a Shared,
    input: &'a CompilationInput,
    cells: Found,
}

impl FindCell for OrRemoved<'_> {
    fn cell(&self, name: &str) -> Result<IndirectCell, String> {
        let removed = |error| {
            let ty = self.input.type_of(name).ok_or(error)?;
            self.shared.jit.removed(ty).map_err(|error| error.to_string())
        };
        self.cells.cell(name).or_else(removed)
    }
}
