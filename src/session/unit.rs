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
//! | a slot, a counter | the same, but it is ready before its function is compiled (`lazy.rs`); those of loops are the unit's own |
//! | a C symbol without a library | taken from the link order when it is there, else from the process |
//! | all else | the run time's |
//!
//! Units that call each other would wait for each other's addresses. One of them goes on without: that call goes through a slot (`bends.rs`).
//!
//! **Who relies on whom.** A function relies on what is known of the bodies of its own program's functions, unless they lie behind slots
//! (`plan.rs`). If linking finds another definition of one of them, because it was redefined before its caller was compiled, the
//! caller is compiled again, with nothing known of that one but its types; and so is who relies on the caller.
//!
//! A unit that makes calls which are decided at run time needs every method of its program, and those of other programs whose functions
//! it has in its hands: the run time finds only what is compiled, and has an entry (`entries.rs`).
//!
//! What a unit was linked to may be defined anew before it is in the tables. Then nothing of it comes there, and it is linked again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, OnceLock};

use brolga_codegen::compile::Symbol as Import;
use brolga_codegen::isa::Tier;
use brolga_codegen::sig::FunctionType;
use brolga_codegen::ways::Route;
use brolga_gcroots::Lowering as Roots;
use brolga_ir::builtin::Builtin;
use brolga_ir::{Func, FuncId, Level, Module, Op, Type};
use brolga_jit::{
    Compiled, Evictor, FindSlot, Foreign, Globals, Jit, Linkage, LoopEntry, Method, Moving, NoSlot, Slot,
    Source, Style, Unit, Upgrader,
};
use brolga_opt::OptLevel;
use brolga_session::{
    Definition, Dependence, Label, MaterializationUnit, Need, Responsibility, Symbol, SymbolFlags, Want,
};

use super::bends::{self, Awaited, Bend};
use super::entries;
use super::evict::{self, Demoter};
use super::lazy::{BODY, HOT, Slots, type_of};
use super::linking;
use super::loops::FoundLoop;
use super::plan::{Plan, lock};
use super::profile::Profile;
use super::scope::{mentioned, without_bodies};
use super::target::{Code, Function, Kept, Native, Origin, Place, Placed};
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
    pub(crate) slots: Arc<Slots>,
    /// Calls that wait for functions to have addresses.
    pub(crate) awaited: Arc<Awaited>,
    pub(crate) compiled: Mutex<Totals>,
    upgrades: Mutex<Upgrades>,
    /// What gives code up when memory is short, and the limit; none if there is no limit.
    demoter: OnceLock<(Arc<Demoter>, usize)>,
    in_background: bool,
}

/// Who optimises functions that have become hot.
enum Upgrades {
    /// Whoever asks for it.
    Asked,
    /// A thread, when there is a function in two tiers.
    Expected,
    /// A thread; none if the system refuses one.
    Background(Option<Upgrader>),
}

/// What was compiled so far.
#[derive(Clone, Copy, Default)]
pub(crate) struct Totals {
    pub(crate) functions: u64,
    pub(crate) bytes: u64,
    /// Functions whose code was given up.
    pub(crate) evicted: u64,
}

impl Shared {
    pub(crate) fn new(
        jit: Jit,
        level: OptLevel,
        opt: brolga_opt::Options,
        roots: Roots,
        in_background: bool,
    ) -> Shared {
        Shared {
            jit,
            level,
            opt,
            roots,
            placed: Arc::default(),
            slots: Arc::default(),
            awaited: Arc::default(),
            compiled: Mutex::default(),
            demoter: OnceLock::new(),
            in_background,
            upgrades: Mutex::new(if in_background { Upgrades::Expected } else { Upgrades::Asked }),
        }
    }

    /// Lets code be given up when memory for it is short.
    pub(crate) fn set_limit(self: &Arc<Shared>, session: &linking::Session<Native>, limit: usize) {
        let demoter = Arc::new(Demoter::new(self, session));
        let evictor: Arc<dyn Evictor> = demoter.clone();
        self.jit.set_evictor(&evictor);
        // It is set once, when the session is made.
        let _ = self.demoter.set((demoter, limit));
    }

    /// Sees to it that the threads of a pool find room.
    fn keep_room(&self) {
        let Some((demoter, limit)) = self.demoter.get().filter(|_| self.in_background) else { return };
        let most = limit / 4 * 3;
        if self.jit.stats().in_use <= most {
            return;
        }
        // What is freed between the two figures is counted as free in both.
        let leaving = demoter.leaving();
        let in_use = self.jit.stats().in_use.saturating_sub(leaving);
        if in_use > most {
            self.jit.evict(in_use - most);
        }
    }

    /// A function in two tiers is about to be defined.
    pub(crate) fn expect_hot(&self) {
        let mut upgrades = lock(&self.upgrades);
        if let Upgrades::Expected = *upgrades {
            *upgrades = Upgrades::Background(self.jit.start_upgrades().ok());
        }
    }

    /// Ends the thread that optimises, and waits for it.
    pub(crate) fn finish_upgrades(&self) {
        let upgrades = std::mem::replace(&mut *lock(&self.upgrades), Upgrades::Asked);
        if let Upgrades::Background(Some(upgrader)) = upgrades {
            upgrader.finish();
        }
    }
}

/// What is known of a program as a whole.
#[derive(Clone)]
pub(crate) struct Whole {
    pub(super) globals: Globals,
    /// Whether some function of it makes calls that are decided at run time.
    is_open: bool,
    /// The symbols of its functions that such calls may go to.
    methods: Arc<[Arc<str>]>,
    /// The world in which it was loaded: its methods are visible since then, whenever they are compiled.
    pub(super) world: u64,
    kept: Option<Kept>,
    /// What those who rely on its functions know them by.
    origin: Origin,
    /// Whether its functions lie behind slots.
    is_lazy: bool,
    /// The functions that its code calls through slots, by symbol.
    behind_slots: BTreeSet<String>,
    /// The symbols of functions of other programs that calls may go to which are decided at run time.
    pub(super) others: BTreeSet<String>,
}

impl Whole {
    /// Looks at a verified module, which defines the functions `own`. `behind_slots` are those of its imports that are called
    /// so; its own are if it is lazy.
    pub(crate) fn new(
        shared: &Shared,
        module: &Module,
        own: &[FuncId],
        kept: Option<Kept>,
        is_lazy: bool,
        mut behind_slots: BTreeSet<String>,
    ) -> Result<Whole, Error> {
        let globals = Globals::new(shared.jit.runtime());
        if !module.globals().is_empty() {
            for global in module.globals() {
                let name = module.cx.names.text(global.name);
                globals.declare(name);
                globals.declare_type(&module.cx, name, global.ty);
            }
            crate::engine::set_globals(module, &globals, shared.jit.runtime())?;
        }
        let calls_unknown = |&id: &FuncId| {
            let func = &module[id];
            let mut ops = func.blocks().flat_map(|b| func.block_insts(b)).map(|inst| func.op(inst));
            ops.any(decides_later)
        };
        let is_open = own.iter().any(calls_unknown);
        let is_method = |id: &&FuncId| module[**id].level == Level::High;
        let methods = own.iter().filter(is_method).map(|&id| module[id].symbol(&module.cx).into()).collect();
        if is_lazy {
            behind_slots.extend(own.iter().map(|&id| module[id].symbol(&module.cx)));
        }
        let world = shared.jit.runtime().world();
        let others = others(module, own);
        Ok(Whole {
            globals,
            is_open,
            methods,
            world,
            kept,
            origin: Origin::default(),
            is_lazy,
            behind_slots,
            others,
        })
    }

    /// The same program, for a function of it that is made anew, that of this module, and calls these through slots.
    pub(crate) fn again(&self, lazy_imports: BTreeSet<String>, module: &Module, id: FuncId) -> Whole {
        let mut behind_slots = lazy_imports;
        behind_slots.extend(self.is_lazy.then(|| module[id].symbol(&module.cx)));
        Whole {
            globals: self.globals.clone(),
            is_open: self.is_open,
            methods: self.methods.clone(),
            world: self.world,
            kept: self.kept.clone(),
            origin: Origin::default(),
            is_lazy: self.is_lazy,
            behind_slots,
            others: others(module, &[id]),
        }
    }

    /// Whether functions that do not call each other for all that can be seen may do so when they are optimised. Directly, that
    /// would be a circle of units that wait for each other's addresses.
    pub(crate) fn may_tangle(&self) -> bool {
        self.is_open && !self.is_lazy
    }
}

/// The functions of a module beside its own that calls may go to which are decided at run time.
fn others(module: &Module, own: &[FuncId]) -> BTreeSet<String> {
    let own: BTreeSet<FuncId> = own.iter().copied().collect();
    let mentioned: BTreeSet<Type> = module.funcs().flat_map(|(id, _)| mentioned(module, id)).collect();
    let imported = module.funcs().filter(|(id, func)| {
        func.level == Level::High
            && !own.contains(id)
            && func.sig.params.first().is_some_and(|object| mentioned.contains(&object.ty))
    });
    imported.map(|(_, func)| func.symbol(&module.cx)).collect()
}

/// How often a function is compiled, and which time this is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Once, as the session's options say.
    Only,
    /// Twice; fast, and counting its calls, and the rounds of its loops.
    First {
        /// After how many rounds a loop is to be left for better code.
        rounds: u32,
    },
    /// Twice; as the session's options say.
    Second,
}

/// Functions that are optimised with each other in sight, and how they are compiled: a program, or a function of it.
pub(crate) struct Loaded {
    stage: Stage,
    pub(super) plan: Plan,
    pub(super) whole: Arc<Whole>,
    /// The functions that it defines; the others are imported.
    names: BTreeMap<FuncId, Arc<str>>,
    /// What its first tier counts, and its second has in mind.
    profile: Option<Arc<Profile>>,
    /// All functions that it was verified with, by symbol.
    known: OnceLock<BTreeMap<String, FuncId>>,
}

impl Loaded {
    /// Takes a verified module, which defines the functions `own`.
    pub(crate) fn new(
        shared: &Shared,
        module: Module,
        own: &[FuncId],
        whole: Arc<Whole>,
        stage: Stage,
        profile: Option<Arc<Profile>>,
    ) -> Loaded {
        let names: BTreeMap<FuncId, Arc<str>> =
            own.iter().map(|&id| (id, module[id].symbol(&module.cx).into())).collect();
        let is_first = matches!(stage, Stage::First { .. });
        let level = if is_first { shared.level.min(OptLevel::O1) } else { shared.level };
        let advice = profile.clone().filter(|_| stage == Stage::Second);
        let is_behind_slot = |id: FuncId| whole.behind_slots.contains(&module[id].symbol(&module.cx));
        let others =
            module.funcs().map(|(id, _)| id).filter(|id| !names.contains_key(id) || is_behind_slot(*id));
        let others = others.collect();
        let plan = Plan::new(module, level, shared.opt.clone(), shared.roots, advice, others);
        Loaded { stage, plan, whole, names, profile, known: OnceLock::new() }
    }

    pub(super) fn known(&self) -> &BTreeMap<String, FuncId> {
        let module = self.plan.module();
        self.known.get_or_init(|| module.funcs().map(|(id, func)| (func.symbol(&module.cx), id)).collect())
    }

    /// Refuses a function that has come to be another since its callers were verified: symbols say nothing of results.
    fn check(&self, symbol: &str, found: &FunctionType) -> Result<(), Error> {
        let module = self.plan.module();
        match self.known().get(symbol).and_then(|&id| type_of(module, id)) {
            Some(ty) if !ty.is_called_like(found) => Err(Error::Changed {
                function: symbol.to_owned(),
                expected: ty.describe(),
                found: found.describe_beside(&ty),
            }),
            _ => Ok(()),
        }
    }

    /// Functions of the program that it relies on, of which others were found than those, or may be: what has no address yet.
    fn strangers(
        &self,
        shared: &Shared,
        session: &linking::Session<Native>,
        found: &[Definition<Native>],
    ) -> BTreeSet<FuncId> {
        let (module, known) = (self.plan.module(), self.known());
        let stranger = |definition: &Definition<Native>| {
            let symbol = match definition.address {
                None => session.names().text(definition.label.symbol),
                Some(address) => match shared.placed.get(address)? {
                    Function::Code { symbol, program, .. } if program != self.whole.origin => symbol,
                    _ => return None,
                },
            };
            let id = known.get(&*symbol)?;
            (self.names.contains_key(id) && module[*id].entry().is_some()).then_some(*id)
        };
        found.iter().filter_map(stranger).collect()
    }

    /// The same functions, for which these are defined elsewhere.
    fn without(&self, shared: &Shared, strangers: &BTreeSet<FuncId>) -> Loaded {
        let module = without_bodies(self.plan.module(), strangers);
        let own: Vec<FuncId> = self.names.keys().copied().filter(|id| !strangers.contains(id)).collect();
        let whole = Whole { origin: Origin::default(), ..Whole::clone(&self.whole) };
        Loaded::new(shared, module, &own, Arc::new(whole), self.stage, self.profile.clone())
    }

    /// The functions, in their final forms as far as they were asked for.
    pub(crate) fn module(&self) -> &Module {
        self.plan.module()
    }

    /// The program that they are of.
    pub(crate) fn whole(&self) -> Arc<Whole> {
        self.whole.clone()
    }

    /// What is counted of them, if something is.
    pub(crate) fn profile(&self) -> Option<Arc<Profile>> {
        self.profile.clone()
    }

    /// The functions that it defines, in sets that are linked together.
    pub(crate) fn units(&self) -> Vec<Vec<FuncId>> {
        let mut seen = BTreeSet::new();
        let mut units = Vec::new();
        for &id in self.names.keys() {
            // Calls through slots need not go round together.
            let mut circle = if self.whole.is_lazy { vec![id] } else { self.plan.circle(id) };
            circle.retain(|id| self.names.contains_key(id));
            if circle.iter().all(|&id| seen.insert(id)) {
                units.push(circle);
            }
        }
        units
    }
}

/// Whether an operation may call a function that only running decides.
pub(crate) fn decides_later(op: Op) -> bool {
    let calls = [Builtin::ApplyIterate, Builtin::Invoke, Builtin::Invokelatest, Builtin::InvokeInWorld];
    match op {
        Op::Call | Op::CallRuntime(_) => true,
        Op::Builtin(builtin) => calls.contains(&builtin),
        _ => false,
    }
}

/// See the file's header.
#[derive(Clone)]
pub(crate) struct Functions {
    pub(crate) shared: Arc<Shared>,
    pub(crate) loaded: Arc<Loaded>,
    pub(crate) ids: Vec<FuncId>,
    pub(crate) symbols: Vec<(Symbol, SymbolFlags)>,
}

impl Functions {
    /// What makes the same again, if there is no room for it, or for what it needs.
    fn again(
        shared: &Arc<Shared>,
        loaded: &Arc<Loaded>,
        ids: &[FuncId],
        symbols: &[(Symbol, SymbolFlags)],
    ) -> Functions {
        let symbols = symbols.to_vec();
        Functions { shared: shared.clone(), loaded: loaded.clone(), ids: ids.to_vec(), symbols }
    }
}

impl From<Functions> for linking::Unit<Native> {
    fn from(functions: Functions) -> Self {
        (Box::new(functions) as Box<dyn MaterializationUnit<Native>>).into()
    }
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
pub(crate) struct Output {
    compiled: Compiled,
    methods: Vec<Method>,
    /// Whether it needs all methods of its program.
    dispatches: bool,
    /// The loops that may be left.
    loops: Vec<FoundLoop>,
    /// The functions.
    ids: Vec<FuncId>,
    /// How many statements it was made from.
    weight: u32,
    /// Whether C may have addresses in it.
    has_callbacks: bool,
    /// The functions that it calls through slots because they wait for it (`bends.rs`), or lie behind slots since it was made.
    bent: BTreeSet<String>,
}

/// What the code of a unit refers to and a session knows.
pub(crate) fn wants(session: &linking::Session<Native>, output: &Output) -> Vec<Want> {
    let of_loops: BTreeSet<&str> =
        output.loops.iter().flat_map(|found| [found.entry(), found.question.as_str()]).collect();
    let want = |import: &Import| {
        let (text, need) = match import {
            Import::Slot(name) | Import::Counter(name) if of_loops.contains(name.as_str()) => return None,
            Import::Function(name) | Import::Slot(name) | Import::Counter(name) => (name, Need::Required),
            Import::Foreign { name, library: None } => (name, Need::Weak),
            _ => return None,
        };
        Some(Want { symbol: session.intern(text), need })
    };
    output.compiled.imports().into_iter().filter_map(want).collect()
}

/// The methods of other programs that calls may go to which are decided at run time.
fn wanted_methods(session: &linking::Session<Native>, loaded: &Loaded, output: &Output) -> Vec<Want> {
    let names = loaded.whole.others.iter().filter(|_| output.dispatches);
    names.map(|name| Want { symbol: session.intern(name), need: Need::Weak }).collect()
}

/// Keeps a responsibility by functions of a program, stage by stage: between two of them the worker may take other units through the
/// first.
pub(crate) fn compile_and_link(
    shared: Arc<Shared>,
    loaded: Arc<Loaded>,
    ids: &[FuncId],
    responsibility: Responsibility<Native>,
) {
    let low = match make_low(&loaded, ids) {
        Ok(low) => low,
        Err(error) => return responsibility.fail(error),
    };
    responsibility.go_on(low.weight(), move |responsibility| {
        let output = match generate(&shared, &loaded, low, BTreeSet::new()) {
            Ok(output) => output,
            Err(error) => return responsibility.fail(error),
        };
        let weight = output.weight;
        responsibility.go_on(weight, move |responsibility| {
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
    let session = responsibility.session();
    let mut all = wants(session, &output);
    let methods = wanted_methods(session, &loaded, &output);
    all.extend(
        methods.into_iter().filter(|want| !all.iter().any(|w| w.symbol == want.symbol)).collect::<Vec<_>>(),
    );
    responsibility.lookup_to_link(all, move |responsibility, found| match found {
        Ok(found) => link(shared, loaded, output, responsibility, &found),
        Err(error) if error.passes() => {
            let Ok(symbols) = responsibility.symbols() else { return };
            let again = Functions::again(&shared, &loaded, &output.ids, &symbols);
            responsibility.fail_for_now(error, again);
        }
        Err(error) => responsibility.fail(error),
    });
}

/// Functions in the form that becomes machine code.
struct Lowered {
    ids: Vec<FuncId>,
    /// Theirs, in this order.
    funcs: Vec<Func>,
    entries: Vec<(FuncId, Func)>,
    loops: Vec<FoundLoop>,
}

impl Lowered {
    /// How many statements there are.
    fn weight(&self) -> u32 {
        let entries = self.entries.iter().map(|(_, entry)| entry);
        let all = self.funcs.iter().chain(entries).map(Func::inst_count).sum::<usize>();
        u32::try_from(all).unwrap_or(u32::MAX)
    }
}

/// Machine code of functions, and what is to be known about it.
pub(crate) fn compile(shared: &Shared, loaded: &Loaded, ids: &[FuncId]) -> Result<Output, Arc<Error>> {
    generate(shared, loaded, make_low(loaded, ids)?, BTreeSet::new())
}

fn make_low(loaded: &Loaded, ids: &[FuncId]) -> Result<Lowered, Arc<Error>> {
    let plan = &loaded.plan;
    let is_first = matches!(loaded.stage, Stage::First { .. });
    let (mut funcs, mut loops) = (Vec::with_capacity(ids.len()), Vec::new());
    for &id in ids {
        if is_first {
            let (low, exits) = plan.leaving(id)?;
            funcs.push(low);
            loops.extend(exits.into_iter().filter_map(|exit| FoundLoop::new(plan.module(), id, exit)));
        } else {
            funcs.push(plan.placed(id)?);
        }
    }
    let mut entries = Vec::new();
    // The entries of the first tier stay: whoever found a method by them keeps it.
    let has_entries = loaded.stage != Stage::Second;
    if has_entries && (loaded.whole.is_open || funcs.iter().any(has_objects)) {
        for &id in ids.iter().filter(|&&id| plan.module()[id].level == Level::High) {
            entries.push((id, plan.placed_entry(id)?));
        }
    }
    Ok(Lowered { ids: ids.to_vec(), funcs, entries, loops })
}

/// Machine code. The functions `bent` are called through slots, beside those that are so anyway.
fn generate(
    shared: &Shared,
    loaded: &Loaded,
    low: Lowered,
    bent: BTreeSet<String>,
) -> Result<Output, Arc<Error>> {
    let weight = low.weight();
    let Lowered { ids, funcs, entries, loops } = low;
    let module = loaded.plan.module();
    let is_first = matches!(loaded.stage, Stage::First { .. });
    let mut sources: Vec<Source<'_>> = Vec::with_capacity(funcs.len() + entries.len());
    for (&id, low) in ids.iter().zip(&funcs) {
        sources.push(Source { func: low, ty: Some(function_type(module, id, low)) });
    }
    sources.extend(entries.iter().map(|(_, low)| Source { func: low, ty: None }));
    let methods = entries.iter().filter_map(|(id, _)| method(module, *id)).collect();
    let dispatches = funcs.iter().any(dispatches);
    let has_callbacks = funcs.iter().any(|low| {
        low.blocks()
            .flat_map(|block| low.block_insts(block))
            .any(|inst| matches!(low.op(inst), Op::CFunction(_)))
    });

    let route = |name: &str| {
        let is_behind_slot = loaded.whole.behind_slots.contains(name) || bent.contains(name);
        if is_behind_slot || loops.iter().any(|found| found.entry() == name) {
            Route::Slot
        } else if loops.iter().any(|found| found.question == name) {
            Route::Question
        } else {
            Route::Far
        }
    };
    let tier = if is_first { Tier::Baseline } else { tier(shared.level) };
    let counts = |name: &str| is_first && loaded.names.values().any(|own| **own == *name);
    let is_profiled = is_first && loaded.profile.is_some();
    // Who finds a function by its boxed entry calls what is behind its slot, as everybody does.
    let apart = |name: &str| loaded.whole.behind_slots.contains(name);
    let style = Style { tier, others: &route, counted: &counts, apart: &apart, is_profiled };
    let compiled = shared.jit.compile(&module.cx, &sources, style).map_err(Error::from)?;
    let mut totals = lock(&shared.compiled);
    totals.functions += ids.len() as u64;
    totals.bytes += compiled.code_bytes() as u64;
    drop(totals);
    Ok(Output { compiled, methods, dispatches, loops, ids, weight, has_callbacks, bent })
}

/// The slots of a unit's own.
#[derive(Default)]
pub(crate) struct Ways {
    loops: Vec<LoopEntry>,
    /// Those of functions that wait for it, by name.
    bends: BTreeMap<String, Arc<Bend>>,
}

/// Links what was compiled to what was found. Nothing if what was found is no longer there.
pub(crate) fn link_unit(
    shared: &Arc<Shared>,
    session: &linking::Session<Native>,
    loaded: &Loaded,
    output: &Output,
    found: &[Definition<Native>],
    ways: &Ways,
    new: Option<&Moving>,
) -> Result<Option<Unit>, Error> {
    let (mut visible, mut foreign) = (Vec::new(), BTreeMap::new());
    let mut slots = Found::default();
    for definition in found {
        let name = session.names().text(definition.label.symbol).to_string();
        if let Some(bend) = ways.bends.get(&name) {
            slots.0.insert(name, bend.slot());
            continue;
        }
        let Some(address) = definition.address else { continue };
        let leads = || session.leads_to(definition.label);
        let Ok(place) = shared.placed.find_any(address, leads) else { return Ok(None) };
        let function = match place {
            Some(Place::Function(function)) => function,
            Some(Place::Object(object)) => {
                foreign.insert(name, Foreign { address, object: Some(object) });
                continue;
            }
            None => {
                foreign.insert(name, Foreign { address, object: None });
                continue;
            }
        };
        if let Some(ty) = function.ty() {
            loaded.check(&name, ty)?;
        }
        match function {
            Function::Code { unit, .. } => visible.push(unit),
            Function::Slot(slot) => drop(slots.0.insert(name, slot)),
        }
    }
    let linkage = Linkage {
        visible: &visible,
        globals: Some(&loaded.whole.globals),
        methods: &output.methods,
        // Programs of one session call each other's functions, whose dynamic calls find the same methods whoever calls.
        table: None,
        since: Some(loaded.whole.world),
        foreign: Some(&foreign),
        slots: Some(&slots),
        loops: &ways.loops,
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
    let (Ok(symbols), Ok(dylib)) = (responsibility.symbols(), responsibility.dylib()) else { return };
    let strangers = loaded.strangers(&shared, &session, found);
    if !strangers.is_empty() {
        let loaded = Arc::new(loaded.without(&shared, &strangers));
        return compile_and_link(shared, loaded, &output.ids, responsibility);
    }
    let output = match bent(&shared, &session, &loaded, output, found) {
        Ok(output) => output,
        Err(error) => return responsibility.fail(error),
    };
    let rounds = match loaded.stage {
        Stage::First { rounds } => rounds,
        Stage::Only | Stage::Second => 0,
    };
    let loops = output.loops.iter().map(|found| found.link(&shared, &session, dylib, &loaded, rounds));
    let source = match (symbols.as_slice(), output.ids.as_slice()) {
        (&[(symbol, flags)], &[id]) if loaded.whole.is_lazy && !output.has_callbacks => {
            let source = evict::Source { loaded: loaded.clone(), id, symbol, flags };
            shared.demoter.get().is_some().then_some(source)
        }
        _ => None,
    };
    let again = Functions::again(&shared, &loaded, &output.ids, &symbols);
    let fail = |responsibility: Responsibility<Native>, error: Arc<Error>| match error.is_shortage() {
        // There may be room when somebody looks again.
        true => responsibility.fail_for_now(error, again.clone()),
        false => responsibility.fail(error),
    };
    // They take room of their own, which who is about to make something else would wait for.
    if output.dispatches
        && let Err(error) = entries::make(&shared, &session, &loaded, found)
    {
        return fail(responsibility, error);
    }
    let ways = match bends_of(&shared, &session, &loaded, &output, found) {
        Ok(bends) => Ways { loops: loops.collect(), bends },
        Err(error) if error.is_shortage() => return responsibility.fail_for_now(error, again),
        Err(error) => return responsibility.fail(error),
    };
    let new = shared.jit.unmade();
    let unit = link_unit(&shared, &session, &loaded, &output, found, &ways, Some(&new));
    let unit = match unit {
        Ok(Some(unit)) => unit,
        // Somebody has defined it anew meanwhile.
        Ok(None) => return look_up_and_link(shared, loaded, output, responsibility),
        Err(error) => return fail(responsibility, error.into()),
    };
    let names = symbols.iter().map(|(symbol, _)| {
        let text = session.names().text(*symbol);
        let function = text.strip_suffix(BODY).or_else(|| text.strip_suffix(HOT));
        (*symbol, function.map_or_else(|| text.clone(), Arc::from))
    });
    let bends = bends::all(ways.bends.into_values(), &shared.placed, found);
    let compiled = (&unit, &loaded.whole.origin, source, bends);
    let (code, addresses) = Code::enter(&shared.placed, compiled, names, loaded.whole.kept.clone());
    let mut needs: Vec<Dependence<Native>> = found.iter().map(|&found| found.into()).collect();
    if output.dispatches {
        let symbol = |name: &Arc<str>| match loaded.whole.is_lazy {
            true => session.intern(&format!("{name}{BODY}")),
            false => session.intern(name),
        };
        needs.extend(
            loaded.whole.methods.iter().map(|name| Dependence::from(Label { dylib, symbol: symbol(name) })),
        );
    }
    let labels = || symbols.iter().map(|(symbol, _)| Label { dylib, symbol: *symbol });
    let target = |label: Label| unit.target(&session.names().text(label.symbol));
    let awaiting = shared.awaited.take(labels());
    bends::lead(&awaiting, target);
    let unfinished = responsibility.complete(code, addresses.iter().copied(), needs, Some(again.into()));
    if unfinished.is_none() {
        // Who has come to wait since then has not found an address, and these are not looked for again.
        let leads_here = |&(symbol, address): &(Symbol, usize)| {
            let label = Label { dylib, symbol };
            (session.leads_to(label) == Some(address)).then_some(label)
        };
        let late = shared.awaited.take(addresses.iter().filter_map(leads_here));
        bends::lead(&late, target);
    }
    // It is gone, or can be given up from now on.
    drop((unit, new));
    match unfinished {
        // What it was linked to has been defined anew meanwhile, and nobody has seen it.
        Some(responsibility) => {
            shared.awaited.put_back(&awaiting);
            look_up_and_link(shared, loaded, output, responsibility);
        }
        None => shared.keep_room(),
    }
}

/// The code of a unit for what was found: functions without an address, and those that have come to lie behind slots since it was made, are
/// called through slots.
fn bent(
    shared: &Shared,
    session: &linking::Session<Native>,
    loaded: &Loaded,
    output: Output,
    found: &[Definition<Native>],
) -> Result<Output, Arc<Error>> {
    let is_behind_slot = |definition: &&Definition<Native>| match definition.address {
        Some(address) => matches!(shared.placed.get(address), Some(Function::Slot(_))),
        None => true,
    };
    let behind_slots: BTreeSet<String> = found
        .iter()
        .filter(is_behind_slot)
        .map(|definition| session.names().text(definition.label.symbol).to_string())
        .collect();
    let called = output.compiled.imports().into_iter().filter_map(|import| match import {
        Import::Function(name) => Some(name),
        Import::Slot(name) if output.bent.contains(name) => Some(name),
        _ => None,
    });
    let bent: BTreeSet<String> = called.filter(|name| behind_slots.contains(*name)).cloned().collect();
    if bent == output.bent {
        return Ok(output);
    }
    let low = make_low(loaded, &output.ids)?;
    generate(shared, loaded, low, bent)
}

/// The slots of the functions that a unit calls so because they wait for it.
fn bends_of(
    shared: &Shared,
    session: &linking::Session<Native>,
    loaded: &Loaded,
    output: &Output,
    found: &[Definition<Native>],
) -> Result<BTreeMap<String, Arc<Bend>>, NoSlot> {
    let mut bends = BTreeMap::new();
    for definition in found {
        let name = session.names().text(definition.label.symbol);
        if definition.address.is_some() || !output.bent.contains(&*name) {
            continue;
        }
        let id = loaded.known().get(&*name);
        // What has no native form is not called by code.
        let Some(ty) = id.and_then(|&id| type_of(loaded.module(), id)) else { continue };
        bends.insert(name.to_string(), bends::bend(shared, session, definition.label, ty)?);
    }
    Ok(bends)
}

/// The slots that a unit's code names.
#[derive(Default)]
pub(super) struct Found(pub(super) BTreeMap<String, Slot>);

impl FindSlot for Found {
    fn slot(&self, name: &str) -> Result<Slot, String> {
        self.0.get(name).cloned().ok_or_else(|| "it is not behind a slot any more".to_owned())
    }
}
