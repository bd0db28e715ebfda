//! How functions of a program become code in the session's tables.
//!
//! ```text
//!   Functions ── make_low ──► Lowered ── generate ──► Output ── imports looked up ──► link ──► complete ──► ready, with what was found
//!                                                                ▲                                  │
//!                                                                └── what was found has moved ──────┘
//! ```
//!
//! Compiling holds no lock and needs nothing but the plan, so units compile side by side; between two stages a worker may take other
//! units through the first (`continue_with`). The references of the code are read from the code itself, looked up in the dylib's link order until they have
//! an address, and recorded as the needs of the unit: it is ready when all that it may call is ready.
//!
//! | symbol in the code | is |
//! |---|---|
//! | a slot: a function of another unit | required; a failure to have it is the unit's. It is a cell, which has an address before its function is compiled (`lazy.rs`) |
//! | a counter | the same; slots and counters of loops are the unit's own |
//! | a C symbol without a library | taken from the link order when it is there, else from the process |
//! | all else | the run time's |
//!
//! So the code of a unit is the same whatever lies behind the functions that it calls, and units that call each other are linked in any order.
//!
//! A callee of a unit may be redefined before the unit is in the tables. Then nothing of it comes there, and it is linked again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use brolga_codegen::compiled::Symbol as Import;
use brolga_codegen::isa::Tier;
use brolga_codegen::ways::Route;
use brolga_ir::{Func, FuncId};
use brolga_jit::{
    Compiled, FindCell, Foreign, IndirectCell, Linkage, LoopEntry, Moving, Source, Style, Target, Unit,
};
use brolga_linking::{
    Definition, Dependence, Label, Need, Responsibility, Symbol, SymbolFlags, SymbolScope, Until, Want,
};

use brolga_runtime::Runtime;
use brolga_runtime::events::{Event, Stage as EventStage};

use super::evict;
use super::lazy::{self, BODY, HOT};
use super::linking;
use super::loops::FoundLoop;
use super::plan::lock;
use super::profile::Profile;
use super::target::{Code, Native, Place, give_up};
use super::unit::{Functions, Loaded, Shared, Stage};
use crate::error::Error;
use crate::native_type::function_type;
use crate::options::tier;

/// A compiled unit before linking.
pub(crate) struct Output {
    compiled: Compiled,
    /// The loops that may be left.
    loops: Vec<FoundLoop>,
    /// The functions.
    ids: Vec<FuncId>,
    /// How many statements it was made from.
    weight: u32,
}

/// The references of a unit's code that a session knows.
pub(crate) fn wants(names: &SymbolScope, output: &Output) -> Vec<Want> {
    let of_loops: BTreeSet<&str> =
        output.loops.iter().flat_map(|found| [found.entry(), &*found.question]).collect();
    let want = |import: &Import| {
        let (text, need) = match import {
            Import::Slot(name) | Import::Counter(name) if of_loops.contains(name.as_str()) => return None,
            Import::Slot(name) | Import::Counter(name) => (name, Need::Required),
            Import::Foreign { name, library: None, .. } => (name, Need::Weak),
            _ => return None,
        };
        Some(Want { symbol: names.intern(text), need })
    };
    output.compiled.imports().into_iter().filter_map(want).collect()
}

/// Keeps a responsibility by functions of a program, stage by stage: between two of them the worker may take other units through the
/// first.
pub(crate) fn compile_and_link(
    shared: Arc<Shared>,
    loaded: Arc<Loaded>,
    ids: &[FuncId],
    responsibility: Responsibility<Native>,
) {
    let low = match make_low(shared.jit.runtime(), &loaded, ids) {
        Ok(low) => low,
        Err(error) => return responsibility.fail(error),
    };
    responsibility.continue_with(low.weight(), move |responsibility| {
        let output = match generate(&shared, &loaded, low) {
            Ok(output) => output,
            Err(error) => return responsibility.fail(error),
        };
        let weight = output.weight;
        responsibility.continue_with(weight, move |responsibility| {
            look_up_and_link(shared, loaded, output, responsibility);
        });
    });
}

fn look_up_and_link(
    shared: Arc<Shared>,
    loaded: Arc<Loaded>,
    output: Output,
    responsibility: Responsibility<Native>,
) {
    // The lookup holds what it wants.
    let names = responsibility.session().scope();
    let all = wants(&names, &output);
    responsibility.lookup_answer(all, Until::Resolved, move |responsibility, found| match found {
        Ok(found) => link(shared, loaded, output, responsibility, &found),
        Err(error) => {
            let Ok(symbols) = responsibility.symbols() else { return };
            let again = Functions::again(&shared, &loaded, &output.ids, &symbols);
            give_up(responsibility, error.passes(), error, again);
        }
    });
}

/// Functions in the form that becomes machine code.
struct Lowered {
    ids: Vec<FuncId>,
    /// Theirs, in this order.
    funcs: Vec<Func>,
    loops: Vec<FoundLoop>,
}

impl Lowered {
    /// How many statements there are.
    fn weight(&self) -> u32 {
        let all = self.funcs.iter().map(Func::inst_count).sum::<usize>();
        u32::try_from(all).unwrap_or(u32::MAX)
    }
}

/// Machine code of functions, and what is to be known about it.
pub(crate) fn compile(shared: &Shared, loaded: &Loaded, ids: &[FuncId]) -> Result<Output, Arc<Error>> {
    generate(shared, loaded, make_low(shared.jit.runtime(), loaded, ids)?)
}

fn make_low(runtime: &Runtime, loaded: &Loaded, ids: &[FuncId]) -> Result<Lowered, Arc<Error>> {
    let plan = &loaded.plan;
    let is_first = matches!(loaded.stage, Stage::First { .. });
    let (mut funcs, mut loops) = (Vec::with_capacity(ids.len()), Vec::new());
    let module = plan.module();
    for &id in ids {
        let _span = runtime.events().span(EventStage::Optimise, || module[id].symbol(&module.cx));
        if is_first {
            let (low, exits) = plan.leaving(id)?;
            funcs.push(low);
            loops.extend(exits.into_iter().filter_map(|exit| FoundLoop::new(plan.module(), id, exit)));
        } else {
            funcs.push(plan.placed(id)?);
        }
    }
    Ok(Lowered { ids: ids.to_vec(), funcs, loops })
}

/// Machine code.
fn generate(shared: &Shared, loaded: &Loaded, low: Lowered) -> Result<Output, Arc<Error>> {
    let weight = low.weight();
    let Lowered { ids, funcs, loops } = low;
    let module = loaded.plan.module();
    let is_first = matches!(loaded.stage, Stage::First { .. });
    let mut sources: Vec<Source<'_>> = Vec::with_capacity(funcs.len());
    for (&id, low) in ids.iter().zip(&funcs) {
        let known = loaded.types.get(module.cx.names.text(low.name)).cloned();
        let ty = known.unwrap_or_else(|| function_type(module, id, low).into());
        sources.push(Source { func: low, ty: Some(ty) });
    }

    let route = |name: &str| match loops.iter().any(|found| *found.question == *name) {
        true => Route::Question,
        false => Route::Slot,
    };
    let tier = if is_first { Tier::Baseline } else { tier(shared.level) };
    let counts = |name: &str| is_first && loaded.names.values().any(|own| **own == *name);
    let is_profiled = is_first && loaded.profile.is_some();
    // C calls what is behind the cell of a function, as everybody does.
    let apart = |name: &str| loaded.whole.behind_cells.contains(name);
    let (others, counted, apart) = (&route, &counts, &apart);
    let style = Style { tier, others, counted, apart, has_c_entries: true, is_profiled };
    let compiled = shared.jit.compile(&module.cx, &sources, style).map_err(Error::from)?;
    let mut totals = lock(&shared.compiled);
    totals.functions += ids.len() as u64;
    totals.bytes += compiled.code_bytes() as u64;
    drop(totals);
    Ok(Output { compiled, loops, ids, weight })
}

/// Links what was compiled to what was found. Nothing if what was found is no longer there.
pub(crate) fn link_unit(
    shared: &Arc<Shared>,
    session: &linking::Session<Native>,
    loaded: &Loaded,
    output: &Output,
    found: &[Definition<Native>],
    loops: &[LoopEntry],
    new: Option<&Moving>,
) -> Result<Option<Unit>, Error> {
    let (mut cells, mut foreign) = (Found::default(), BTreeMap::new());
    for definition in found {
        let name = session.names().text(definition.label.symbol);
        let Some(address) = definition.address else { continue };
        let leads = || session.leads_to(definition.label);
        let Ok(place) = shared.placed.find(address, leads) else { return Ok(None) };
        match place {
            Some(Place::Function(function)) => {
                loaded.check(&name, function.ty())?;
                cells.0.insert(name, function.cell);
            }
            // Functions without a native form are called by dispatch alone.
            Some(Place::Compiled(_)) => {}
            Some(Place::Object(object)) => {
                foreign.insert(name.to_string(), Foreign { address, object: Some(object) });
            }
            // The run time has the functions that checked programs may call.
            None if !shared.takes_addresses => {}
            None => drop(foreign.insert(name.to_string(), Foreign { address, object: None })),
        }
    }
    let linkage = Linkage {
        visible: &[],
        globals: Some(&loaded.whole.globals),
        // Programs of one session call each other's functions, whose dynamic calls find the same methods whoever calls.
        table: None,
        foreign: Some(&foreign),
        slots: Some(&cells),
        loops,
        cells: loaded.profile.as_deref().map(Profile::cells),
        new,
    };
    Ok(Some(shared.jit.link(&output.compiled, &linkage)?))
}

fn link(
    shared: Arc<Shared>,
    loaded: Arc<Loaded>,
    output: Output,
    responsibility: Responsibility<Native>,
    found: &[Definition<Native>],
) {
    let session = responsibility.session().clone();
    let (Ok(own), Ok(dylib)) = (responsibility.definitions(), responsibility.dylib()) else { return };
    let symbols: Vec<(Symbol, SymbolFlags)> = own.iter().map(|own| (own.label.symbol, own.flags)).collect();
    let rounds = match loaded.stage {
        Stage::First { rounds } => rounds,
        Stage::Only | Stage::Second => 0,
    };
    let loops = output.loops.iter().map(|found| found.link(&shared, &session, dylib, &loaded, rounds));
    let source = match (symbols.as_slice(), output.ids.as_slice()) {
        (&[(symbol, flags)], &[id]) if !loaded.whole.is_eager && !loaded.types.is_empty() => {
            let source = evict::Source { loaded: loaded.clone(), id, symbol, flags };
            shared.gives_up().then_some(source)
        }
        _ => None,
    };
    let again = Functions::again(&shared, &loaded, &output.ids, &symbols);
    let loops: Vec<LoopEntry> = loops.collect();
    let new = shared.jit.unmade();
    let unit = link_unit(&shared, &session, &loaded, &output, found, &loops, Some(&new));
    let unit = match unit {
        Ok(Some(unit)) => unit,
        // It has been redefined meanwhile.
        Ok(None) => return look_up_and_link(shared, loaded, output, responsibility),
        Err(error) => return give_up(responsibility, error.is_shortage(), Arc::new(error), again),
    };
    let names = symbols.iter().map(|(symbol, _)| {
        let text = session.names().text(*symbol);
        let function = text.strip_suffix(BODY).or_else(|| text.strip_suffix(HOT));
        (*symbol, function.map_or_else(|| text.clone(), Arc::from))
    });
    let names: Vec<(Symbol, Arc<str>)> = names.collect();
    let published: Vec<Arc<str>> = match shared.jit.runtime().events().is_on() {
        true => names.iter().map(|(_, name)| name.clone()).collect(),
        false => Vec::new(),
    };
    let is_first = matches!(loaded.stage, Stage::First { .. });
    // The code of eager bodies, by function.
    let behind = symbols.iter().zip(&names).filter(|((_, flags), _)| flags.has(SymbolFlags::INNER));
    let behind = behind.filter_map(|(_, (_, name))| Some((name.clone(), unit.target(name)?)));
    let behind: Vec<(Arc<str>, Target)> = behind.collect();
    let compiled = (&unit, &loaded.whole.origin, source);
    let (code, addresses) = Code::enter(&shared.placed, compiled, names, loaded.whole.kept.clone());
    let needs: Vec<Dependence<Native>> = found.iter().map(|&found| found.into()).collect();
    let unfinished = responsibility.complete(code, addresses, needs, Some(again.into()));
    if unfinished.is_none() {
        for (name, target) in &behind {
            let symbol = session.symbol(name);
            let function = Label { dylib, symbol: symbol.symbol() };
            lazy::provide(&shared, &session, function, &loaded.whole.origin, target.clone());
        }
    }
    // It is gone, or can be evicted from now on.
    drop((behind, unit, new));
    match unfinished {
        // A callee has been redefined meanwhile, and the unit has not been published.
        Some(responsibility) => look_up_and_link(shared, loaded, output, responsibility),
        None => {
            for function in &published {
                let tier = if is_first { 1 } else { 2 };
                shared.jit.runtime().events().tell(Event::Published { function, tier });
            }
            shared.keep_room();
        }
    }
}

/// The cells that a unit's code names.
#[derive(Default)]
pub(super) struct Found(pub(super) BTreeMap<Arc<str>, IndirectCell>);

impl FindCell for Found {
    fn cell(&self, name: &str) -> Result<IndirectCell, String> {
        self.0.get(name).cloned().ok_or_else(|| "it is no function of a program any more".to_owned())
    }
}
