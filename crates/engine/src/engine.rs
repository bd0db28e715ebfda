//! The engine: programs in, callable functions out.
//!
//! ```text
//! Program ── Stages ──► low functions ── codegen, link ──► Unit ── func::<(i64,), i64>("fib") ──► TypedFunc::call
//! ```
//!
//! An engine and everything it returns are `Send + Sync`; a unit's code is freed when the last handle to the unit, or to a
//! function of it, is dropped.

use brolga_runtime::events::{Event, Stage};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use brolga_aot::image::Functions;
use brolga_cache::Fingerprint;
use brolga_codegen::isa::Tier;
use brolga_codegen::target::{self, Target};
use brolga_gcroots::Lowering as Roots;
use brolga_interp::{self as interp, Interp, SimMemory};
use brolga_ir::{Arch, FuncId, Module};
use brolga_jit::{
    BuildError, CodeListener, CodeMemoryStats, Compiled, Globals, Jit, JitOptions, Linkage, LookupError,
    Params, Scoped, ScopedFunc, ScopedParams, Source, Style, Symbolized, TypedFunc, UntypedFunc, Value,
};
use brolga_opt::OptLevel;
use brolga_runtime::{Doors, Runtime};

use crate::boxed::{self, Recipe};
use crate::bridge;
use crate::cached::{CodeCache, FromCache, How, Packages, compile_program, keep_run};
use crate::error::Error;
use crate::options::{Options, tier};
use crate::pipeline::watched;
use crate::program::Program;
use crate::stages::{Linked, Stages};
use brolga_codegen::native_type::function_type;

/// Compiles programs and links them into the process. Clones share one engine.
#[derive(Clone)]
pub struct Engine {
    shared: Arc<Shared>,
}

struct Shared {
    jit: Jit,
    level: OptLevel,
    roots: Roots,
    opt: brolga_opt::Options,
    options: JitOptions,
    doors: Option<Doors>,
    /// Whether programs are priced.
    fuel: bool,
    /// The time limit for compiling a program.
    compile_limit: Option<Duration>,
    /// Features of the processor that code of images may not use.
    masked: Vec<(String, bool)>,
    /// The cache and packages searched for code.
    cache: Option<CodeCache>,
}

impl Engine {
    /// Creates an engine with its own run time.
    pub fn new(options: Options) -> Result<Engine, Error> {
        let mut options = options.settled();
        let runtime = Runtime::new(std::mem::take(&mut options.runtime));
        Engine::make(runtime, options)
    }

    /// Creates an engine whose code runs in a shared run time. The heap and output options are not
    /// used. Open doors apply only to this engine.
    pub fn on(runtime: &Arc<Runtime>, options: Options) -> Result<Engine, Error> {
        Engine::make(runtime.clone(), options)
    }

    fn make(runtime: Arc<Runtime>, options: Options) -> Result<Engine, Error> {
        let Options { level, roots, opt, jit: options, doors, masked, fuel, compile_limit, cache, .. } =
            options;
        let opt = Options::passes(opt, doors)?;
        let jit = Jit::new(runtime, options)?;
        if fuel {
            jit.runtime().expect_prices();
        }
        let cache = cache.map(|cache| {
            let how = (level, &opt, roots);
            CodeCache::new(Some(cache), Packages::default(), (&jit, &options), how, fuel)
        });
        Ok(Engine {
            shared: Arc::new(Shared {
                jit,
                level,
                roots,
                opt,
                options,
                doors,
                masked,
                fuel,
                compile_limit,
                cache,
            }),
        })
    }

    /// The run time of the compiled code: its constants, C symbols and output.
    pub fn runtime(&self) -> &Arc<Runtime> {
        self.shared.jit.runtime()
    }

    /// Enters compiled code once, for all calls within `body` ([`TypedFunc::call_within`](brolga_jit::TypedFunc::call_within)): for embedders
    /// that make many short calls.
    ///
    /// # Errors
    /// The thread cannot be attached, or a scope of the runtime is in use on it.
    pub fn activate<R>(
        &self,
        body: impl for<'t> FnOnce(&brolga_jit::Activation<'t>) -> R,
    ) -> Result<R, brolga_jit::CallError> {
        brolga_jit::activate(self.runtime(), body)
    }

    /// Whether the doors are open.
    pub(crate) fn has_open_doors(&self) -> bool {
        self.shared.doors.is_some()
    }

    /// Refuses a program with doors while they are closed.
    pub(crate) fn admit(&self, program: &Program) -> Result<(), Error> {
        if self.has_open_doors() { Ok(()) } else { program.check_doors() }
    }

    /// Whether it prices programs.
    pub(crate) fn prices(&self) -> bool {
        self.shared.fuel
    }

    /// The cache searched before code of the program with this name is compiled.
    pub(crate) fn cache_of(&self, program: &str) -> Option<CodeCache> {
        Some(self.shared.cache.as_ref()?.of_program("program", program.as_bytes()))
    }

    pub(crate) fn jit(&self) -> &Jit {
        &self.shared.jit
    }

    /// The level, passes, roots and options of the code that the engine generates.
    pub(crate) fn settings(&self) -> (OptLevel, &brolga_opt::Options, Roots, JitOptions) {
        let Shared { level, roots, opt, options, .. } = &*self.shared;
        (*level, opt, *roots, *options)
    }

    /// The features of the processor that code of images may use, by Cranelift's names.
    pub(crate) fn image_features(&self) -> Result<Vec<String>, Error> {
        Ok(target::resolve(Arch::HOST, &Target::native(self.shared.masked.clone()))?)
    }

    /// The state of the memory for compiled code.
    pub fn code_memory(&self) -> CodeMemoryStats {
        self.shared.jit.stats()
    }

    /// Reports all compiled code from now on to a profiler's or debugger's listener: [`PerfMap`](brolga_jit::PerfMap),
    /// [`JitDump`](brolga_jit::JitDump), [`GdbInterface`](brolga_jit::GdbInterface), [`UnwindTables`](brolga_jit::UnwindTables).
    pub fn listen(&self, listener: Arc<dyn CodeListener>) {
        self.shared.jit.listen(listener);
    }

    /// The function and line that an address in compiled code belongs to.
    pub fn symbolize(&self, address: usize) -> Option<Symbolized> {
        self.shared.jit.symbolize(address)
    }

    /// Compiles all functions of a program.
    ///
    /// # Errors
    /// The program has doors, and they are closed; a function has no native form, or is too large; code memory is full.
    pub fn compile(&self, program: &Program) -> Result<Unit, Error> {
        self.compile_only(program, program.module().funcs().map(|(id, _)| id))
    }

    /// Compiles these functions of a program and their callees; other functions may lack a native form. Global variables have
    /// their first values.
    pub fn compile_only(
        &self,
        program: &Program,
        roots: impl IntoIterator<Item = FuncId>,
    ) -> Result<Unit, Error> {
        let globals = Globals::new(self.runtime());
        let unit = self.compile_with(program, roots, &globals, None)?;
        set_globals(program.module(), &globals, self.runtime())?;
        Ok(unit)
    }

    /// As [`Engine::compile_only`], with existing global variables, which are not set. With a cache, the code is stored under the facts of a run, if any.
    pub(crate) fn compile_with(
        &self,
        program: &Program,
        roots: impl IntoIterator<Item = FuncId>,
        globals: &Globals,
        run: Option<&Fingerprint>,
    ) -> Result<Unit, Error> {
        let cache = self.cache_of(program.source().name());
        let _published = Published(cache.as_ref());
        let code = self.code_of(program, roots, cache.as_ref())?;
        let module = code.module(program);
        for global in module.globals() {
            globals.describe(&module.cx, global);
        }
        let bodies = with_bodies(module, &code.ids);
        let unit =
            link(self.jit(), module, &code.compiled, bodies, self.recipe(cache.clone()), Some(globals))?;
        if let (Some(cache), Some(run)) = (&cache, run) {
            keep_run(cache, run, module, (&code.ids, &code.facts));
        }
        let names = code.names(program);
        let events = self.runtime().events();
        if events.is_on() {
            for id in &code.ids {
                let (function, is_loaded) = (&module[*id].symbol(&module.cx), code.loaded.contains(id));
                events.tell(Event::Published { function, tier: Tier::Optimised, is_loaded });
            }
        }
        Ok(Unit::new(unit, names))
    }

    /// The code of these functions and their callees, from the cache where possible, as one unit that is not linked yet.
    pub(crate) fn code_of(
        &self,
        program: &Program,
        roots: impl IntoIterator<Item = FuncId>,
        cache: Option<&CodeCache>,
    ) -> Result<Code, Error> {
        self.admit(program)?;
        self.runtime().free_unused_types();
        if program.takes_fuel() {
            self.runtime().expect_prices();
        }
        let priced = self.shared.fuel.then(|| program.priced_module());
        let module = priced.as_ref().unwrap_or(program.module());
        let (begun, limit) = (Instant::now(), self.shared.compile_limit);
        let stop = || limit.is_some_and(|limit| begun.elapsed() > limit) || self.runtime().has_ended();
        let events = self.runtime().events();
        let Shared { jit, level, roots: lowering, opt, .. } = &*self.shared;
        let heap = self.runtime().heap().abi();
        let FromCache { compiled, ids, loaded, facts } = match cache {
            Some(cache) => {
                let how = How { jit, level: *level, opt, roots: *lowering, heap };
                compile_program(cache, &how, module, roots, &stop)?
            }
            None => {
                let cx = watched(events).with_stop(stop);
                let stages = Stages::new(module, *level, opt, cx);
                let mut stages = stages.with_roots(*lowering).on_heap(heap);
                let span = events.span(Stage::Optimise, || program.source().name().to_owned());
                let linked = stages.linked(roots)?;
                drop(span);
                stages.check_time()?;
                let style = Style { stop: &stop, ..tier(*level).into() };
                let compiled = generate(jit, module, &linked, style)?;
                let ids = linked.funcs.into_keys().collect();
                FromCache { compiled, ids, loaded: BTreeSet::new(), facts: Vec::new() }
            }
        };
        Ok(Code { priced, compiled, ids, loaded, facts })
    }

    /// The recipe for boxed entries that accompany the engine's code.
    pub(crate) fn recipe(&self, cache: Option<CodeCache>) -> Recipe {
        let Shared { level, roots, .. } = &*self.shared;
        recipe_of(tier(*level), *roots, cache)
    }

    /// Links code from the cache as one unit, with a method for each function; `None` if it cannot be linked.
    pub(crate) fn link_kept(
        &self,
        module: &Module,
        compiled: &Compiled,
        methods: Vec<FuncId>,
        globals: &Globals,
        cache: CodeCache,
    ) -> Option<brolga_jit::Unit> {
        link(self.jit(), module, compiled, methods, self.recipe(Some(cache)), Some(globals)).ok()
    }
}

/// Functions of a program in machine code, and their callees, which is not linked.
pub(crate) struct Code {
    /// The module of the functions, if it is not the program's own.
    priced: Option<Module>,
    pub(crate) compiled: Compiled,
    pub(crate) ids: Vec<FuncId>,
    /// The functions among them whose code is from the cache.
    loaded: BTreeSet<FuncId>,
    /// The facts of their units in the cache, if there is one.
    facts: Vec<Fingerprint>,
}

/// Publishes what was kept at the end of a compilation, also of one that fails: others wait for it.
pub(crate) struct Published<'a>(pub(crate) Option<&'a CodeCache>);

impl Drop for Published<'_> {
    fn drop(&mut self) {
        self.0.into_iter().for_each(CodeCache::publish);
    }
}

impl Code {
    /// The module of the functions.
    pub(crate) fn module<'a>(&'a self, program: &'a Program) -> &'a Module {
        self.priced.as_ref().unwrap_or(program.module())
    }

    /// The symbols of the functions by their bare names.
    pub(crate) fn names(&self, program: &Program) -> BTreeMap<String, Vec<String>> {
        let module = self.module(program);
        let mut names: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for &id in &self.ids {
            names.entry(module[id].spelled_name(&module.cx)).or_default().push(module[id].symbol(&module.cx));
        }
        names
    }
}

/// Compiled functions, ready to be called. Clones share the code.
#[derive(Clone, Debug)]
pub struct Unit {
    unit: brolga_jit::Unit,
    names: Names,
}

/// The symbols of the functions with a bare name.
#[derive(Clone, Debug)]
enum Names {
    Known(Arc<BTreeMap<String, Vec<String>>>),
    Image(Arc<Functions>),
}

impl Unit {
    pub(crate) fn new(unit: brolga_jit::Unit, names: BTreeMap<String, Vec<String>>) -> Unit {
        Unit { unit, names: Names::Known(Arc::new(names)) }
    }

    /// The code of an image.
    pub(crate) fn of_image(unit: brolga_jit::Unit, functions: Arc<Functions>) -> Unit {
        Unit { unit, names: Names::Image(functions) }
    }

    /// Looks up a function for calls with Rust values of the given types. The name may be a bare one (`fib`), if only
    /// one method has it, or a method's symbol (`fib(Int64)`).
    pub fn func<A: Params, R: Value>(&self, name: &str) -> Result<TypedFunc<A, R>, LookupError> {
        self.unit.func(&self.symbol(name))
    }

    /// Looks up a function for calls inside a scope, with objects among its arguments and results. The name is as for
    /// [`Unit::func`].
    pub fn func_in<A: ScopedParams, R: Scoped>(&self, name: &str) -> Result<ScopedFunc<A, R>, LookupError> {
        self.unit.func_in(&self.symbol(name))
    }

    /// Looks up a function for calls with the bits of low values.
    pub fn untyped(&self, name: &str) -> Result<UntypedFunc, LookupError> {
        self.unit.untyped(&self.symbol(name))
    }

    /// The symbols of all functions, in order.
    pub fn symbols(&self) -> impl Iterator<Item = &str> {
        self.unit.names()
    }

    /// Whether it has code for the function with this symbol.
    pub(crate) fn has(&self, symbol: &str) -> bool {
        self.unit.loaded().function(symbol).is_some()
    }

    /// The symbol of the only method with a bare name; any other name is returned unchanged.
    pub(crate) fn symbol<'a>(&'a self, name: &'a str) -> Cow<'a, str> {
        match &self.names {
            Names::Known(names) => match names.get(name).map(Vec::as_slice) {
                Some([only]) => Cow::Borrowed(only),
                _ => Cow::Borrowed(name),
            },
            Names::Image(functions) => match <[String; 1]>::try_from(functions.named(name)) {
                Ok([only]) => Cow::Owned(only),
                Err(_) => Cow::Borrowed(name),
            },
        }
    }
}

/// Sets the global variables that units use to their first values in a module.
pub(crate) fn set_globals(module: &Module, globals: &Globals, runtime: &Arc<Runtime>) -> Result<(), Error> {
    let mut interp = Interp::new(module, interp::Options::default(), Box::<SimMemory>::default());
    bridge::set_globals(globals, &mut interp, runtime)
        .map_err(|error| Error::Globals(error.to_string().into()))
}

/// Compiles and links functions that [`Stages::linked`] has lowered, as one unit.
///
/// # Errors
/// Code generation or linking refuses a function.
pub fn build<'a>(
    jit: &Jit,
    module: &Module,
    linked: &Linked,
    style: impl Into<Style<'a>>,
    globals: Option<&Globals>,
) -> Result<brolga_jit::Unit, BuildError> {
    let style = style.into();
    let compiled = generate(jit, module, linked, style)?;
    let ids: Vec<FuncId> = linked.funcs.keys().copied().collect();
    let recipe = recipe_of(style.tier, linked.roots, None);
    link(jit, module, &compiled, with_bodies(module, &ids), recipe, globals)
}

/// The machine code of functions that [`Stages::linked`] has lowered.
fn generate(jit: &Jit, module: &Module, linked: &Linked, style: Style<'_>) -> Result<Compiled, BuildError> {
    let mut sources: Vec<Source<'_>> = Vec::with_capacity(linked.funcs.len());
    for (&id, low) in &linked.funcs {
        sources.push(Source { func: low, ty: Some(function_type(module, id, low).into()) });
    }
    jit.compile(&module.cx, &sources, style)
}

/// The recipe for boxed entries that accompany code of a tier.
fn recipe_of(tier: Tier, roots: Roots, cache: Option<CodeCache>) -> Recipe {
    let level = if tier == Tier::Baseline { OptLevel::O0 } else { OptLevel::O1 };
    Recipe { level, opt: brolga_opt::Options::default(), roots, cache, compile_limit: None }
}

/// The functions with bodies, which dynamic calls may reach.
pub(crate) fn with_bodies(module: &Module, ids: &[FuncId]) -> Vec<FuncId> {
    ids.iter().copied().filter(|&id| module[id].entry().is_some()).collect()
}

/// Links code as one unit, with a method for each function.
fn link(
    jit: &Jit,
    module: &Module,
    compiled: &Compiled,
    methods: Vec<FuncId>,
    recipe: Recipe,
    globals: Option<&Globals>,
) -> Result<brolga_jit::Unit, BuildError> {
    // Other programs, and other units of this one, have their own methods.
    let runtime = jit.runtime();
    let table = runtime.method_table();
    let linkage = Linkage { globals, table: Some(&table), ..Linkage::default() };
    let unit = jit.link(compiled, &linkage)?;
    let rows = boxed::rows(&unit.downgrade(), module, methods, &Arc::new(recipe));
    // The table belongs to this runtime.
    unit.keep_methods(runtime.change_methods_of(&table, rows).unwrap_or_default());
    Ok(unit)
}
