//! Functions of a program as a unit that is materialized when somebody looks, and what units of a session share. How they become code:
//! `make.rs`.
//!
//! **Who relies on whom.** An eager function relies on what is known of the bodies of its own program's functions (`plan.rs`). When one of these is
//! redefined, so are the bodies that rely on it, in the same step (`inlined.rs`).
//!
//! Targets of dynamic calls are found by the run time, and compiled then (`methods.rs`).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, OnceLock};

use brolga_codegen::sig::FunctionType;
use brolga_gcroots::Lowering as Roots;
use brolga_ir::builtin::Builtin;
use brolga_ir::{FuncId, Level, Module, Op};
use brolga_jit::{Evictor, Globals, Jit};
use brolga_linking::{MaterializationUnit, Responsibility, Symbol, SymbolFlags};
use brolga_opt::OptLevel;

use super::cells::Cells;
use super::evict::Demoter;
use super::lazy::type_of;
use super::linking;
use super::make::compile_and_link;
use super::methods::SessionMethods;
use super::plan::Plan;
use super::profile::Profile;
use super::target::{Kept, Native, Origin, Placed};
use crate::boxed::Recipe;
use crate::error::Error;
use crate::native_type::is_type_of;

/// The state that all units of a session share. Nothing in it leads back to the session.
pub(crate) struct Shared {
    pub(crate) jit: Jit,
    pub(super) level: OptLevel,
    opt: brolga_opt::Options,
    roots: Roots,
    pub(crate) placed: Arc<Placed>,
    pub(crate) cells: Arc<Cells>,
    pub(crate) methods: Arc<SessionMethods>,
    pub(crate) compiled: Mutex<Totals>,
    /// The evictor for memory shortages, and the limit; none if there is no limit.
    demoter: OnceLock<(Arc<Demoter>, usize)>,
    in_background: bool,
    /// Whether symbols of C are those that dylibs define.
    pub(crate) takes_addresses: bool,
}

/// Totals of compilation.
#[derive(Clone, Copy, Default)]
pub(crate) struct Totals {
    pub(crate) functions: u64,
    pub(crate) bytes: u64,
    /// Functions whose code was evicted.
    pub(crate) evicted: u64,
}

impl Shared {
    pub(crate) fn new(
        jit: Jit,
        level: OptLevel,
        opt: brolga_opt::Options,
        roots: Roots,
        methods: Arc<SessionMethods>,
        in_background: bool,
        takes_addresses: bool,
    ) -> Shared {
        let cells = Cells::new(jit.runtime());
        Shared {
            jit,
            level,
            opt,
            roots,
            placed: Arc::default(),
            cells,
            methods,
            compiled: Mutex::default(),
            demoter: OnceLock::new(),
            in_background,
            takes_addresses,
        }
    }

    /// How boxed entries are compiled.
    pub(super) fn recipe(&self) -> Recipe {
        Recipe { level: self.level, opt: self.opt.clone(), roots: self.roots }
    }

    /// Lets code be evicted when memory for it is short.
    pub(crate) fn set_limit(self: &Arc<Shared>, session: &linking::Session<Native>, limit: usize) {
        let demoter = Arc::new(Demoter::new(self, session));
        let evictor: Arc<dyn Evictor> = demoter.clone();
        self.jit.set_evictor(&evictor);
        // It is set once, when the session is made.
        let _ = self.demoter.set((demoter, limit));
    }

    /// Whether code is evicted when memory is short.
    pub(super) fn gives_up(&self) -> bool {
        self.demoter.get().is_some()
    }

    /// Sees to it that the threads of a pool find room.
    pub(super) fn keep_room(&self) {
        let Some((_, limit)) = self.demoter.get().filter(|_| self.in_background) else { return };
        let most = limit / 4 * 3;
        if self.jit.in_use() <= most {
            return;
        }
        let stats = self.jit.stats();
        let in_use = stats.in_use - stats.retired;
        if in_use > most {
            self.jit.evict(in_use - most);
        }
    }
}

/// Facts about a program as a whole.
#[derive(Clone)]
pub(crate) struct Whole {
    pub(super) globals: Globals,
    pub(super) kept: Option<Kept>,
    /// The identity by which dependants know its functions.
    pub(super) origin: Origin,
    /// Whether its functions are eager: they rely on each other's bodies, and those that call each other are one unit.
    pub(super) is_eager: bool,
    /// The functions of its own that have cells, by symbol.
    pub(super) behind_cells: BTreeSet<String>,
}

impl Whole {
    /// Looks at a verified module, of whose own functions those `behind_cells` have cells.
    pub(crate) fn new(
        shared: &Shared,
        module: &Module,
        kept: Option<Kept>,
        is_eager: bool,
        behind_cells: BTreeSet<String>,
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
        Ok(Whole { globals, kept, origin: Origin::default(), is_eager, behind_cells })
    }

    /// The same program, for the recompiled function of this module.
    pub(crate) fn again(&self, module: &Module, id: FuncId) -> Whole {
        Whole {
            globals: self.globals.clone(),
            kept: self.kept.clone(),
            origin: Origin::default(),
            is_eager: self.is_eager,
            behind_cells: BTreeSet::from([module[id].symbol(&module.cx)]),
        }
    }
}

/// A function of a program, for what is made before the program is put together.
#[derive(Clone, Default)]
pub(crate) struct Pin(Arc<OnceLock<(Arc<Loaded>, FuncId)>>);

impl Pin {
    /// Says which function it is, once.
    pub(crate) fn put(&self, loaded: &Arc<Loaded>, id: FuncId) {
        // It is put together once.
        let _ = self.0.set((loaded.clone(), id));
    }

    pub(crate) fn get(&self) -> Option<&(Arc<Loaded>, FuncId)> {
        self.0.get()
    }
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
    pub(super) stage: Stage,
    pub(super) plan: Plan,
    pub(super) whole: Arc<Whole>,
    /// The functions that it defines; the others are imported.
    pub(super) names: BTreeMap<FuncId, Arc<str>>,
    /// The counters of its first tier, which advise the second.
    pub(super) profile: Option<Arc<Profile>>,
    /// The types of those of its functions that lie behind cells, by symbol.
    pub(super) types: BTreeMap<String, Arc<FunctionType>>,
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
        // Nothing is known of what may become another function while its callers run (`plan.rs`).
        let is_known = |id: &FuncId| {
            names.contains_key(id)
                && (whole.is_eager || !whole.behind_cells.contains(&module[*id].symbol(&module.cx)))
        };
        let others = module.funcs().map(|(id, _)| id).filter(|id| !is_known(id)).collect();
        let heap = shared.jit.runtime().heap().abi();
        let plan = Plan::new(module, level, shared.opt.clone(), shared.roots, heap, advice, others);
        Loaded { stage, plan, whole, names, profile, types: BTreeMap::new(), known: OnceLock::new() }
    }

    /// The same functions, of which some have these types.
    pub(crate) fn with_types<'a>(mut self, types: impl IntoIterator<Item = &'a Arc<FunctionType>>) -> Loaded {
        self.types.extend(types.into_iter().map(|ty| (ty.symbol.clone(), ty.clone())));
        self
    }

    pub(super) fn known(&self) -> &BTreeMap<String, FuncId> {
        let module = self.plan.module();
        self.known.get_or_init(|| module.funcs().map(|(id, func)| (func.symbol(&module.cx), id)).collect())
    }

    /// Refuses a function that has come to be another since its callers were verified: symbols say nothing of results.
    pub(super) fn check(&self, symbol: &str, found: &FunctionType) -> Result<(), Error> {
        if self.types.get(symbol).is_some_and(|ty| ty.is_called_like(found)) {
            return Ok(());
        }
        let module = self.plan.module();
        let Some(&id) = self.known().get(symbol) else { return Ok(()) };
        let func = &module[id];
        if func.level == Level::High && is_type_of(&module.cx, &func.sig, found) {
            return Ok(());
        }
        match type_of(module, id) {
            Some(ty) if !ty.is_called_like(found) => Err(Error::Changed {
                function: symbol.to_owned(),
                expected: ty.describe(),
                found: found.describe_beside(&ty),
            }),
            _ => Ok(()),
        }
    }

    /// The functions, in their final forms as far as they were asked for.
    pub(crate) fn module(&self) -> &Module {
        self.plan.module()
    }

    /// The program that they are of.
    pub(crate) fn whole(&self) -> Arc<Whole> {
        self.whole.clone()
    }

    /// The identity by which dependants know its functions.
    pub(crate) fn origin(&self) -> &Origin {
        &self.whole.origin
    }

    /// Their counters, if any.
    pub(crate) fn profile(&self) -> Option<Arc<Profile>> {
        self.profile.clone()
    }

    /// The functions that it defines, in sets that are linked together.
    pub(crate) fn units(&self) -> Vec<Vec<FuncId>> {
        let mut seen = BTreeSet::new();
        let mut units = Vec::new();
        for &id in self.names.keys() {
            // Eager functions that call each other do so directly.
            let mut circle = if self.whole.is_eager { self.plan.circle(id) } else { vec![id] };
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
    /// The source that makes the same unit again, if there is no room for it, or for a unit that it needs.
    pub(super) fn again(
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
