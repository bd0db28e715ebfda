//! The input of a compilation: the functions of a program that are optimised together.
//!
//! ```text
//!   program ── ProgramFacts: globals, objects that its code keeps, which functions have cells
//!      │
//!      └─► CompilationInput, one per tier ── its pipeline (`pipeline.rs`) ──► low functions, one by one ──► units (`unit.rs`)
//! ```
//!
//! **Reliance.** An eager function relies on summaries of the bodies of its own program's functions (`pipeline.rs`). When such a function is
//! redefined, the bodies that rely on it are replaced in the same step (`invalidation.rs`).
//!
//! **Tiers.** A function that is compiled twice has two inputs. The first is [counting](Counting): it is compiled quickly, at `O1` at most, and counts calls and
//! iterations. The second is compiled with the session's options, guided by the first one's profile. A function that is compiled once has
//! one input, which counts nothing.

use std::any::Any;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, OnceLock};

use brolga_aot::package::{Edge, Seen};
use brolga_cache::{Digest, Fingerprint};
use brolga_codegen::sig::FunctionType;
use brolga_ir::heap_abi::HeapAbi;
use brolga_ir::module::Global;
use brolga_ir::{Func, FuncId, Level, Module};
use brolga_jit::Globals;
use brolga_opt::OptLevel;
use brolga_opt::callgraph::callees;
use brolga_runtime::Runtime;

use super::names_in::Bindings;
use crate::boxed::Recipe;
use crate::cached::{CodeCache, Keys};
use crate::error::Error;
use crate::pipeline::{Pipeline, Settings};
use crate::program::Callees;
use crate::session::tiering::profile::Profile;
use brolga_codegen::native_type::{is_type_of, type_of};

/// Objects kept alive by code, in addition to its references.
pub(crate) type Kept = Arc<dyn Any + Send + Sync>;

/// The identity of the program that code was compiled from: equal for functions that were optimised together.
#[derive(Clone, Default)]
pub(crate) struct Origin(Arc<u8>);

impl PartialEq for Origin {
    fn eq(&self, other: &Origin) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

/// Facts about a program as a whole.
#[derive(Clone)]
pub(crate) struct ProgramFacts {
    pub(super) globals: Globals,
    pub(super) kept: Option<Kept>,
    /// The targets of its calls.
    pub(super) bindings: Arc<Bindings>,
    /// The identity that dependants record for its functions.
    pub(super) origin: Origin,
    /// Whether its functions are eager: they rely on each other's bodies, and mutually recursive functions are one unit.
    pub(super) is_eager: bool,
    /// Its own functions that have cells, by symbol.
    pub(super) behind_cells: BTreeSet<Arc<str>>,
    /// When calls of missing methods and C functions are refused.
    pub(super) callees: Callees,
    /// The cache with the units of the program, from its first look-up on.
    cached: Arc<OnceLock<CodeCache>>,
}

impl ProgramFacts {
    /// Collects the facts of a verified module, whose own functions in `behind_cells` have cells. `known` finds the cells of variables that other
    /// programs define.
    pub(crate) fn new(
        runtime: &Arc<Runtime>,
        module: &Module,
        (kept, bindings): (Option<Kept>, Arc<Bindings>),
        is_eager: bool,
        behind_cells: BTreeSet<Arc<str>>,
        callees: Callees,
        known: impl Fn(&Global) -> Option<Globals>,
    ) -> Result<ProgramFacts, Error> {
        let globals = Globals::new(runtime);
        if !module.globals().is_empty() {
            let mut adopted = Vec::new();
            for global in module.globals() {
                let name = module.cx.names.text(global.name);
                match known(global) {
                    Some(of) => adopted.push((name, of)),
                    None => {
                        globals.describe(&module.cx, global);
                        globals.declare(name);
                    }
                }
            }
            crate::engine::set_globals(module, &globals, runtime)?;
            adopted.iter().for_each(|(name, of)| globals.adopt(name, of));
        }
        Ok(ProgramFacts {
            globals,
            kept,
            bindings,
            origin: Origin::default(),
            is_eager,
            behind_cells,
            callees,
            cached: Arc::default(),
        })
    }

    /// The same program, for the recompiled function of this module, with the targets of its calls.
    pub(crate) fn again(&self, module: &Module, id: FuncId, bindings: Bindings) -> ProgramFacts {
        let before = self.bindings.iter().map(|(symbol, dylib)| (symbol.clone(), *dylib));
        ProgramFacts {
            globals: self.globals.clone(),
            kept: self.kept.clone(),
            bindings: Arc::new(bindings.into_iter().chain(before).collect()),
            origin: Origin::default(),
            is_eager: self.is_eager,
            behind_cells: BTreeSet::from([module.symbol_of(id)]),
            callees: self.callees,
            cached: self.cached.clone(),
        }
    }
}

/// A function of an input.
#[derive(Clone)]
pub(crate) struct BodySource {
    pub(crate) input: Arc<CompilationInput>,
    pub(crate) id: FuncId,
}

/// The counters of first-tier code in addition to its call counter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Counting {
    /// The number of iterations after which a loop continues in better code.
    pub(crate) iterations: u32,
}

/// Functions that are optimised together, and how they are compiled: a program, or one function of it.
pub(crate) struct CompilationInput {
    /// The counters of its code, if it is of the first of two tiers.
    pub(super) counting: Option<Counting>,
    pub(super) pipeline: Pipeline<'static>,
    pub(super) facts: Arc<ProgramFacts>,
    /// The functions that it defines; all others are imported.
    pub(super) names: BTreeMap<FuncId, Arc<str>>,
    /// The counters of its first tier, which guide the second.
    pub(super) profile: Option<Arc<Profile>>,
    /// The types of its functions that have cells, by symbol.
    pub(super) types: BTreeMap<String, Arc<FunctionType>>,
    /// Hashes of the inputs of its functions' code; empty without a cache.
    keys: OnceLock<Keys>,
    /// All functions that it was verified with, by symbol.
    known: OnceLock<BTreeMap<Arc<str>, FuncId>>,
    calls: OnceLock<StaticCalls>,
}

/// The static calls of a program.
struct StaticCalls {
    callees: BTreeMap<FuncId, Vec<FuncId>>,
    /// All callees.
    called: BTreeSet<FuncId>,
}

impl StaticCalls {
    fn of(module: &Module) -> StaticCalls {
        let callees = |(id, func)| (id, callees(module, func).into_iter().collect());
        let callees: BTreeMap<FuncId, Vec<FuncId>> = module.funcs().map(callees).collect();
        let called = callees.values().flatten().copied().collect();
        StaticCalls { callees, called }
    }
}

impl CompilationInput {
    /// Takes a verified module, which defines the functions `own`, for code that runs on this heap. `profile` has the counters of the first of two tiers, which
    /// guide the second.
    pub(crate) fn new(
        (recipe, heap): (&Recipe, &'static HeapAbi),
        module: Module,
        own: &[FuncId],
        facts: Arc<ProgramFacts>,
        counting: Option<Counting>,
        profile: Option<Arc<Profile>>,
    ) -> CompilationInput {
        let names: BTreeMap<FuncId, Arc<str>> = own.iter().map(|&id| (id, module.symbol_of(id))).collect();
        let level = if counting.is_some() { recipe.level.min(OptLevel::O1) } else { recipe.level };
        let advice = profile.clone().filter(|_| counting.is_none());
        // A function that may be replaced while its callers run has no facts (`pipeline.rs`).
        let is_known = |id: &FuncId| {
            names.contains_key(id) && (facts.is_eager || !facts.behind_cells.contains(&module.symbol_of(*id)))
        };
        let others = module.funcs().map(|(id, _)| id).filter(|id| !is_known(id)).collect();
        let options = Cow::Owned(recipe.opt.clone());
        let settings = Settings { level, options, roots: recipe.roots, heap: *heap, advice };
        let pipeline = Pipeline::new(module, settings, others);
        CompilationInput {
            counting,
            pipeline,
            facts,
            names,
            profile,
            types: BTreeMap::new(),
            keys: OnceLock::new(),
            known: OnceLock::new(),
            calls: OnceLock::new(),
        }
    }

    /// The same functions, with these types for some of them.
    pub(crate) fn with_types<'a>(
        mut self,
        types: impl IntoIterator<Item = &'a Arc<FunctionType>>,
    ) -> CompilationInput {
        self.types.extend(types.into_iter().map(|ty| (ty.symbol.clone(), ty.clone())));
        self
    }

    pub(super) fn known(&self) -> &BTreeMap<Arc<str>, FuncId> {
        let module = self.pipeline.module();
        self.known.get_or_init(|| module.funcs().map(|(id, _)| (module.symbol_of(id), id)).collect())
    }

    /// Of the functions with these symbols, those that the functions `from` reach through static calls.
    pub(super) fn reached_statically<'s>(
        &self,
        from: &[FuncId],
        symbols: impl IntoIterator<Item = &'s String>,
    ) -> BTreeSet<&'s str> {
        let StaticCalls { callees, called } = self.calls.get_or_init(|| StaticCalls::of(self.module()));
        let id = |symbol: &'s String| Some((*self.known().get(symbol.as_str())?, symbol.as_str()));
        let sought = symbols.into_iter().filter_map(id).filter(|(id, _)| called.contains(id));
        let mut sought: BTreeMap<FuncId, &str> = sought.collect();
        let (mut found, mut seen) = (BTreeSet::new(), BTreeSet::new());
        let mut open: VecDeque<FuncId> = from.iter().copied().collect();
        // Most are callees of what was inlined, so they are near.
        while let Some(func) = open.pop_front().filter(|_| !sought.is_empty()) {
            for &callee in callees.get(&func).into_iter().flatten() {
                if seen.insert(callee) {
                    found.extend(sought.remove(&callee));
                    open.push_back(callee);
                }
            }
        }
        found
    }

    /// The native type of a function that it was verified with, if it has one.
    pub(super) fn type_of(&self, symbol: &str) -> Option<Arc<FunctionType>> {
        let known = || Some(Arc::new(type_of(self.pipeline.module(), *self.known().get(symbol)?)?));
        self.types.get(symbol).cloned().or_else(known)
    }

    /// Refuses a function whose type has changed since its callers were verified: symbols do not include results.
    pub(super) fn check(&self, symbol: &str, found: &FunctionType) -> Result<(), Error> {
        if self.types.get(symbol).is_some_and(|ty| ty.is_called_like(found)) {
            return Ok(());
        }
        let module = self.pipeline.module();
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

    /// The hash of the inputs of a unit's code; `None` for code that is not cached.
    pub(super) fn facts_of(&self, cache: &CodeCache, ids: &[FuncId]) -> Option<Fingerprint> {
        let keys = self.keys(cache)?;
        let mut facts = cache.facts("unit of a session");
        self.kind().into_iter().for_each(|flag| facts.word(u64::from(flag)));
        ids.iter().try_for_each(|&id| {
            facts.facts(&keys.get(self.module(), id, &self.note_of())?);
            Some(())
        })?;
        Some(facts.finish())
    }

    /// The cache with the units of its program, which are fetched at the first look-up.
    pub(super) fn cached(&self, cache: &CodeCache) -> CodeCache {
        let fetch = || {
            let mut symbols: Vec<&str> = self.names.values().map(|symbol| &**symbol).collect();
            symbols.sort_unstable();
            let cache = cache.of_program("session", symbols.join("\n").as_bytes());
            cache.wait(symbols.len());
            cache
        };
        self.facts.cached.get_or_init(fetch).clone()
    }

    /// Reports to the packages of a cache that functions are compiled, and against which definitions.
    pub(super) fn note(&self, cache: &CodeCache, ids: &[FuncId]) {
        let Some(keys) = self.keys(cache) else { return };
        let module = self.pipeline.module();
        let tier = if self.counting.is_some() { 1 } else { 2 };
        for &id in ids {
            let edges = || {
                let mut kind = Digest::new("kind");
                self.kind().into_iter().for_each(|flag| kind.word(u64::from(flag)));
                let kind = Edge { seen: Seen::Kind, name: String::new(), hash: *kind.finish().as_bytes() };
                let mut edges = keys.edges(module, id, &self.note_of());
                edges.push(kind);
                edges
            };
            cache.packages().note(&module[id].symbol(&module.cx), tier, edges);
        }
    }

    /// The settings that distinguish how its functions are compiled.
    fn kind(&self) -> [bool; 3] {
        [self.facts.is_eager, self.counting.is_some(), self.has_sites()]
    }

    fn has_sites(&self) -> bool {
        self.counting.is_some() && self.profile.is_some()
    }

    /// Hashes of the inputs of the functions' code; `None` for code that is not cached.
    fn keys(&self, cache: &CodeCache) -> Option<&Keys> {
        // Code that keeps an object of this process contains its address.
        let module = self.pipeline.module();
        if self.facts.kept.is_some() || !cache.is_used(&module.cx) {
            return None;
        }
        Some(self.keys.get_or_init(|| Keys::new(module, self.has_sites())))
    }

    /// How functions are called, as a further input of their code.
    fn note_of(&self) -> impl Fn(FuncId) -> u64 + '_ {
        let module = self.pipeline.module();
        |id| {
            let is_own = self.names.contains_key(&id);
            let is_behind = self.facts.behind_cells.contains(&module.symbol_of(id));
            u64::from(is_own) << 1 | u64::from(is_behind)
        }
    }

    /// The types of a unit's functions for typed calls; `None` if one of them has no native form.
    pub(super) fn types_of(&self, ids: &[FuncId]) -> Option<Vec<Arc<FunctionType>>> {
        let module = self.pipeline.module();
        let ty = |&id: &FuncId| {
            let known = self.types.get(&module[id].symbol(&module.cx)).cloned();
            known.or_else(|| type_of(module, id).map(Arc::new))
        };
        ids.iter().map(ty).collect()
    }

    /// The module with the functions; requested functions have their final forms.
    pub(crate) fn module(&self) -> &Module {
        self.pipeline.module()
    }

    /// The facts of their program.
    pub(crate) fn facts(&self) -> Arc<ProgramFacts> {
        self.facts.clone()
    }

    /// The identity that dependants record for its functions.
    pub(crate) fn origin(&self) -> &Origin {
        &self.facts.origin
    }

    pub(crate) fn profile(&self) -> Option<Arc<Profile>> {
        self.profile.clone()
    }

    /// The functions that it defines, grouped into units that are linked together.
    pub(crate) fn units(&self) -> Vec<Vec<FuncId>> {
        let mut seen = BTreeSet::new();
        let mut units = Vec::new();
        for &id in self.names.keys() {
            // Eager functions that call each other do so directly.
            let mut component = if self.facts.is_eager { self.pipeline.component(id) } else { vec![id] };
            component.retain(|id| self.names.contains_key(id));
            if component.iter().all(|&id| seen.insert(id)) {
                units.push(component);
            }
        }
        units
    }
}

/// The symbols of the functions that some functions of a module call statically.
pub(super) fn called<'m>(module: &'m Module, funcs: impl Iterator<Item = &'m Func>) -> BTreeSet<String> {
    let called: BTreeSet<FuncId> = funcs.flat_map(|func| callees(module, func)).collect();
    called.into_iter().map(|id| module[id].symbol(&module.cx)).collect()
}
