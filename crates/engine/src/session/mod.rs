//! Sessions: programs that many threads define, compile on demand, replace and remove concurrently.
//!
//! ```text
//!   Session ── create_dylib ──► Dylib ── read, build ──► Definitions ── define ──► symbols, each a promise
//!                                 │ link_against                                        │ lookup
//!                                 └── func::<(i64,), i64>("fib") ◄── linked ◄── compiled by the session's workers
//! ```
//!
//! A *dylib* is a namespace of functions with a list of dylibs that it sees. Defining a program is cheap. Each
//! function gets an indirection cell at its first use. Its body is a unit (the functions of an SCC share one), which is
//! compiled at the first lookup of the function or of a function that needs it. A lookup completes when the function
//! and all its possible callees can run.
//!
//! | what | how |
//! |---|---|
//! | compile in parallel | [`Workers`]: a pool, the calling threads, an executor of the embedder, or an order determined by a seed |
//! | look up | [`Dylib::func`] and [`Dylib::function`] wait and compile meanwhile; [`Dylib::request`] is a future |
//! | supply machine code | [`Dylib::define_code`] |
//! | supply another representation | [`Dylib::promise`]: signatures now, the program at the first lookup |
//! | call Rust | [`Dylib::define_fn`]: a closure with typed arguments; [`Dylib::define_host`]: one with objects; [`Dylib::define_c_symbol`]: a C function |
//! | compile when called | [`Definitions::lazy`]: the first call compiles the function, not the lookup |
//! | compile twice | [`Definitions::tiered`]: first in a single pass, then with all passes after many calls or iterations |
//! | interpret first | [`Definitions::interpreted`]: the first calls do not wait for compilation |
//! | call functions as values | a dynamic call finds every method of the session that is visible in its world, from any definition |
//! | replace | [`Dylib::redefine`]: calls from the next world on reach the new function, and [`Redefined`] lists the exceptions; [`Definitions::replaceable`]: calls of running frames do, too |
//! | remove | [`Tracker::remove`](brolga_linking::Tracker::remove) for what was defined through [`Dylib::tracked_by`], [`Dylib::remove`], [`Dylib::clear`], with a policy for its dependants |
//! | change programs before they are defined | [`Session::transform`] |
//! | use Base | programs link the methods of Base that they use and do not define from one library, which all other definitions override |
//! | open code compiled ahead of time | [`Dylib::open_package`]; [`PackageBuild`] makes it |
//! | call by another name, through another dylib | [`Dylib::alias`], [`Dylib::reexport`] |
//! | find programs on demand, by missing names | [`Dylib::add_source`] |
//! | compile ahead what the last run called | [`Session::call_order`], [`Session::compile_ahead`] |
//! | find C symbols elsewhere | [`Dylib::add_process_symbols`], [`Dylib::add_library`], [`Dylib::add_object`], [`Dylib::add_archive`], [`Dylib::add_generator`] |
//! | run at opening and closing | [`Definitions::initializer`], [`Dylib::open`], [`Dylib::update`], [`Dylib::close`] |
//! | evaluate text, list methods | [`Evaluator`], [`Dylib::methods`] |
//! | inspect symbols and pending work | [`Dylib::symbols`], [`Session::dump`], [`Session::observe`], [`Session::report_failures`] |
//! | end | [`Session::end`] |
//!
//! **Failure.** The error of a lookup has the chain of failed symbols down to the root, and the root's own error
//! ([`SessionError::causes`]). Later lookups get the same error.
//!
//! **Waiting.** Compilation may call functions that are not compiled yet; one thread suffices for all work. A
//! thread that would wait for its own work, directly or through others, gets an error.
//!
//! **Names.** Each program that [`Dylib::read`] reads has a view of the session's names and types
//! ([`Session::context`]). Dropping the program releases those that no other program uses. Types that programs declare
//! stay as long as the session.
//!
//! **Memory.** Code is freed when the session no longer refers to it, no thread is in a world that sees it, and
//! no handle reaches it: a handle keeps an eager function and the eager functions it calls. With a limit
//! ([`Options::code_limit`]), code of lazy functions that have not been called recently is evicted when there is no
//! room, and compiled again at the next call. The name of each C function that programs call stays as a symbol of
//! the run time, which frees no symbols.
//!
//! **Worlds.** Each definition, redefinition and removal advances the world. A call from Rust runs in the newest world,
//! and everything it calls stays in that world: static calls, dynamic calls, calls by C, inlined copies, loops that move
//! to a higher tier. `invokelatest` enters the newest world.
//!
//! | kind of definition | a frame that runs while a function is redefined | while a function is removed | the next call from Rust |
//! |---|---|---|---|
//! | eager (the default), [`lazy`](Definitions::lazy), [`tiered`](Definitions::tiered), [`interpreted`](Definitions::interpreted) | calls the old body until it returns | the same | reaches the new body; for a removed function, throws |
//! | [`replaceable`](Definitions::replaceable), for hot reload | reaches the new body at its next call | calls the old body until it returns | the same |
//!
//! The kinds differ in when a body is compiled: an eager function's before a lookup completes, also after a
//! redefinition; the others' at the first call. A callee that has been redefined since is compiled at its first call
//! in any case. A redefined function stays eager or lazy.
//!
//! **Removing.** [`Dependants`] is the policy for code that uses a removed definition. With a
//! tombstone that code stays, and from the next world on every call from another unit to a removed function throws
//! `CompileError`, which names the function:
//!
//! | use of the removed function | after a tombstone |
//! |---|---|
//! | calls in compiled code | throw, even after the name is defined again: a caller that was linked before must be defined again, too. [`Dylib::redefine`] replaces a function under its callers |
//! | dynamic calls | no longer find the method from the thread's next entry into compiled code on: `MethodError`, with any policy |
//! | copies that were inlined | stay, as when a function is replaced; so do results computed at compile time |
//! | `try` around a call | catches the error, unless the compiler removed the `try` because neither the callee nor the rest of its body could throw |
//! | frames in older worlds | continue as if nothing had been removed |
//! | handles ([`Function`], [`TypedFunc`](brolga_jit::TypedFunc)) to it | throw. After any other removal, and after the end, handles to eager functions can be called; handles to lazy ones throw |
//! | C pointers (`cfunction`, [`Function::c_address`]) to it | throw, as other calls do: C receives the exception as from any callback. They are valid as long as a handle to the function exists |
//! | C pointers that removed code made | belong to the functions they point to, and live as long |
//! | C code in object files and archives ([`Dylib::add_object`], [`Dylib::add_archive`]) | stays linked to its callers: exceptions do not unwind through C |
//!
//! The bytes of a removed function are freed when no thread is in a world that sees it ([`Session::stats`]).
//!
//! | files, lowest layer first | content |
//! |---|---|
//! | `input` (on `pipeline.rs`), `scope`, `imports`, `names_in`, `owners`, `type_names`, `reach`, `variables` | compilation inputs: functions of a program, optimised concurrently, guided by counters, with the parts of other programs that they see |
//! | `cells`, `target`, `method_table`, `shared` | linking: cells and their holders, code by address, rows for dynamic calls, the state of all units |
//! | `compile`, `detached`, `unit` | code: from functions to linked code, for the tables or without a symbol |
//! | `lazy`, `boxed_entry`, `promise`, `host` | users of code: bodies of cells, dynamic calls, functions of the embedder |
//! | `tiering/` | tiers: policy, tier 0, profiles, continuations of loops, eviction |
//! | `removal`, `invalidation`, `deferred` | changes of code: a definition is removed, a callee is redefined |
//! | `link_orders`, `exports`, `sources` | what a dylib sees: link orders, re-exports, aliases, programs that it finds |
//! | `dylib`, `definitions`, `reading`, `define`, `prepare`, `batch`, `opening`, `libraries`, `objects`, `c_names`, `library` | dylibs: reading, definition in one step, opening and closing, C symbols, methods of Base |
//! | `package`, `package_info` | packages: programs with their code, built ahead of time and opened by path; their description |
//! | `own_code` | functions whose machine code the embedder supplies |
//! | `function`, `evaluator`, `workers`, `error` | handles and options of an embedder |

mod batch;
mod boxed_entry;
mod c_fn;
mod c_names;
mod call_order;
mod cells;
mod compile;
mod declared;
mod deferred;
mod define;
mod definitions;
mod detached;
mod dump;
mod dylib;
mod error;
mod evaluator;
mod exports;
mod first_calls;
mod function;
mod host;
mod imports;
mod input;
mod invalidation;
mod lazy;
mod libraries;
mod library;
mod link_orders;
mod loader;
mod method_table;
mod names_in;
mod needs;
mod objects;
mod offer;
mod opening;
mod own_code;
mod owners;
mod package;
mod package_info;
mod prepare;
mod promise;
mod reach;
mod reading;
mod recompile;
mod removal;
mod scope;
mod shared;
mod sources;
mod target;
pub(crate) mod tiering;
mod transform;
mod type_names;
mod unit;
mod variables;
mod workers;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock};

use brolga_codegen::isa::Tier;
use brolga_ir::Context;
use brolga_ir::doors::Door;
use brolga_jit::{CellOwner, CodeListener, CodeMemoryStats, Jit, Symbolized};
/// The linking model that sessions are built on, for the tests of this workspace. The names below are the part that embedders need.
#[doc(hidden)]
pub use brolga_linking as linking;
/// An error of an operation on symbols: missing, duplicate, failed or used symbols.
pub use brolga_linking::Error as SymbolError;
/// The C symbols requested from a [`Generator`].
pub use brolga_linking::Request as SymbolRequest;
pub use brolga_linking::{
    Addresses, Dependants, Dispatcher, Generator, Happened, Name, Observed, OnDrop, OnExecutor, PoolOptions,
    Priority, Progress, SymbolFacts, SymbolFlags, Task,
};
use brolga_linking::{DylibId, Label};
use brolga_runtime::{Doors, Runtime};
pub use brolga_runtime::{HostArg, HostOutcome, HostResult, TypedHost};

pub use brolga_aot::package::{BuildId, is_package};
pub use c_fn::CFn;
pub use call_order::{BadCallOrder, CallOrder};
pub use deferred::{Redefined, Retyped};
pub use definitions::Definitions;
pub use dylib::{Dylib, Method, WeakDylib};
pub use error::SessionError;
pub use evaluator::Evaluator;
pub use function::{CodeInstance, Function, Request};
pub use invalidation::Invalidated;
pub use link_orders::Exports;
pub use objects::CSymbol;
pub use package::{OpenedPackage, PackageBuild, PackageImage};
pub use package_info::{PackageInfo, StoredProgram, package_info};
pub use promise::Signature;
pub use target::{Code, Native};
pub use workers::{Jobserver, Workers};

pub use brolga_jit::{CellError, CodeReference, ObjectFileError, OwnCode};
pub use brolga_runtime::objects::{HostFn, Raised};

use crate::boxed::Recipe;
use crate::cached::{CodeCache, Packages};
pub use crate::cached::{Reason, Recompiled};
use crate::error::Error;
use crate::options::Options;
use crate::sync::{self, lock};
use invalidation::Edges;
use library::Library;
use method_table::MethodTable;
use owners::Owners;
use removal::Removal;
use scope::Scope;
use shared::Shared;
use sources::Sources;
use type_names::TypeNames;

/// Tracks definitions, so that they can be removed together ([`Dylib::create_tracker`]).
pub type Tracker = brolga_linking::Tracker<Native>;

/// The session's own state of a dylib, in addition to its tables.
struct Home {
    linking: linking::Dylib<Native>,
    scope: Arc<Scope>,
    /// Functions to run when it is closed, in the order in which they were defined.
    finalizers: Vec<String>,
    /// The finalizers of an open dylib, looked up and callable.
    due: Vec<Function>,
    /// The number of the last change before `due` was looked up.
    due_since: u64,
}

type Homes = BTreeMap<DylibId, Home>;

/// See [`Session::report_failures`].
type Reporter = Arc<dyn Fn(&SessionError) + Send + Sync>;

struct Inner {
    linking: linking::Session<Native>,
    shared: Arc<Shared>,
    cx: Arc<Context>,
    homes: Mutex<Homes>,
    edges: Edges,
    owners: Arc<Owners>,
    sources: Sources,
    types: Arc<TypeNames>,
    /// The number of host functions defined so far.
    last_number: Mutex<u64>,
    /// Serializes changes: held while definitions take effect and while removed ones leave the tables. It is taken before all other locks.
    changes: Mutex<()>,
    library: Library,
    /// Called with failures that no lookup waits for.
    reporter: Mutex<Option<Reporter>>,
    /// Called with symbol events.
    observer: Mutex<Option<dump::Observer>>,
    /// Changes programs before they are defined.
    transform: Mutex<Option<transform::Transform>>,
    /// Run at the end; `None` afterwards.
    exits: Mutex<Option<Vec<loader::Exit>>>,
    /// The stores searched for code before a function is compiled.
    code: CodeCache,
    doors: Option<Doors>,
    /// Whether programs are priced.
    fuel: bool,
}

/// See the module's page. Clones share one session.
///
/// A session may be dropped without [`Session::end`], also by a worker or inside a scope: work that no thread waits for
/// is not started, and finalisers of open dylibs do not run. Handles to eager functions can still be called, as after an end;
/// handles to lazy ones throw.
#[derive(Clone)]
pub struct Session {
    inner: Arc<Inner>,
}

/// Statistics of a session.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct SessionStats {
    /// The number of compilations of functions.
    pub compiled_functions: u64,
    /// The bytes of machine code generated.
    pub compiled_bytes: u64,
    /// The number of symbols, counting all versions.
    pub symbols: usize,
    /// The number of units, each compiled and freed as a whole.
    pub units: usize,
    /// How often a thread left a running loop for code of a higher tier.
    pub left_loops: u64,
    /// The number of pending lookups.
    pub lookups: usize,
    /// The number of units that are not ready because a dependency is not.
    pub waiting: usize,
    /// The number of functions and symbols of archives that are in memory and belong to the session.
    pub placed: usize,
    /// How often the code of a lazy function was evicted because code memory was short.
    pub evicted: u64,
    /// The state of code memory.
    pub code: CodeMemoryStats,
}

/// A snapshot of a function of a session.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct FunctionFacts {
    /// The dylib that defines it.
    pub dylib: String,
    /// Its symbol.
    pub symbol: String,
    /// The tier of its newest version; `None` if it was removed.
    pub tier: Option<Tier>,
    /// The code size in bytes of the unit in which it was compiled.
    pub bytes: usize,
    /// The calls that tier 1 counted, up to the limit for the next tier; `None` where calls are not counted.
    pub calls: Option<u32>,
}

impl Session {
    /// Creates a session with its own run time.
    ///
    /// # Errors
    /// There is no code generator for this machine, or no memory for code.
    pub fn new(options: Options, workers: Workers) -> Result<Session, Error> {
        let mut options = options.settled();
        let runtime = Runtime::new(std::mem::take(&mut options.runtime));
        Session::make(runtime, Context::new(), options, workers, Packages::default())
    }

    /// Creates a session whose code runs in an existing run time. Engines and sessions in one run time share the heap, symbols
    /// of C and the output; the heap and output settings of `options` are ignored. Objects of types that programs declare
    /// belong to one session, unless the sessions have [one context](Session::in_context).
    ///
    /// # Errors
    /// As [`Session::new`].
    pub fn on(runtime: &Arc<Runtime>, options: Options, workers: Workers) -> Result<Session, Error> {
        Session::make(runtime.clone(), Context::new(), options, workers, Packages::default())
    }

    /// As [`Session::on`], with the names and types of a context, for example another session's: a type that programs of both sessions declare is one type.
    ///
    /// # Errors
    /// As [`Session::new`].
    pub fn in_context(
        cx: &Arc<Context>,
        runtime: &Arc<Runtime>,
        options: Options,
        workers: Workers,
    ) -> Result<Session, Error> {
        Session::make(runtime.clone(), cx.view(), options, workers, Packages::default())
    }

    fn make(
        runtime: Arc<Runtime>,
        cx: Arc<Context>,
        options: Options,
        workers: Workers,
        packages: Packages,
    ) -> Result<Session, Error> {
        let Options { level, roots, opt, jit: made, doors, fuel, compile_limit, cache, .. } = options;
        let opt = Options::passes(opt, doors)?;
        let limit = made.memory.limit;
        let jit = Jit::new(runtime, made)?;
        if fuel {
            jit.runtime().expect_prices();
        }
        let cache = CodeCache::new(cache, packages, (&jit, &made), (level, &opt, roots), fuel);
        let (dispatcher, background) = workers.dispatcher(jit.runtime());
        let in_background = background.is_some();
        if let Some(background) = background {
            jit.upgrade_by(Arc::new(background));
        }
        let methods = Arc::new(MethodTable::new(jit.runtime()));
        let own = Arc::new(OnceLock::new());
        let linking = linking::Session::new(
            dispatcher,
            Box::new(Removal {
                methods: methods.clone(),
                runtime: jit.runtime().clone(),
                session: own.clone(),
            }),
        );
        // Boxed entries of all programs are of one group.
        let boxed = cache.of_program("session", b"boxed entries");
        let recipe = Recipe { level, opt, roots, cache: Some(boxed), compile_limit };
        let shared = Arc::new(Shared::new(jit, recipe, methods, in_background));
        if let Some(limit) = limit {
            tiering::evict::set_limit(&shared, &linking, limit);
        }
        let inner = Inner {
            linking,
            shared,
            cx,
            homes: Mutex::default(),
            edges: Edges::default(),
            owners: Arc::default(),
            sources: Sources::default(),
            types: Arc::default(),
            last_number: Mutex::default(),
            changes: Mutex::default(),
            library: Library::default(),
            reporter: Mutex::default(),
            observer: Mutex::default(),
            transform: Mutex::default(),
            exits: Mutex::new(Some(Vec::new())),
            code: cache,
            doors,
            fuel,
        };
        let inner = Arc::new(inner);
        let _ = own.set(Arc::downgrade(&inner));
        Ok(Session { inner })
    }

    /// The names and types of the programs that this session reads; modules built for it use them. Names and
    /// types made directly in it live as long as the session: build a module with its own names in a
    /// [view](Context::view).
    pub fn context(&self) -> &Arc<Context> {
        &self.inner.cx
    }

    /// The run time of the compiled code: its constants, C symbols and output.
    pub fn runtime(&self) -> &Arc<Runtime> {
        self.inner.shared.jit.runtime()
    }

    /// Enters compiled code once for all calls within `body`
    /// ([`TypedFunc::call_within`](brolga_jit::TypedFunc::call_within)): for embedders that make many short calls. All
    /// of them run in the world in which `body` began.
    ///
    /// # Errors
    /// The thread cannot be attached, or a scope of the runtime is in use on it.
    pub fn activate<R>(
        &self,
        body: impl for<'t> FnOnce(&brolga_jit::Activation<'t>) -> R,
    ) -> Result<R, brolga_jit::CallError> {
        brolga_jit::activate(self.runtime(), body)
    }

    /// Refuses definitions that need open doors while they are closed.
    pub(crate) fn need(&self, what: &'static str, door: Door) -> Result<(), SessionError> {
        match self.inner.doors {
            Some(_) => Ok(()),
            None => Err(Error::Closed { what, door }.into()),
        }
    }

    /// Prices definitions ([`Options::fuel`]) if the session was created with fuel.
    pub(crate) fn price(&self, definitions: &mut Definitions) {
        if self.inner.fuel {
            definitions.price();
        }
        if !self.runtime().has_prices() && definitions.takes_fuel() {
            self.runtime().expect_prices();
        }
    }

    /// Whether the doors are open.
    pub(crate) fn has_open_doors(&self) -> bool {
        self.inner.doors.is_some()
    }

    /// Waits until no background compilation is left, and runs such tasks itself where only waiting threads compile.
    pub fn finish_background(&self) {
        self.inner.linking.dispatcher().drain();
    }

    /// The session of the linking model, for the tests of this workspace. Programs find addresses defined there as symbols of C if the doors are open.
    #[doc(hidden)]
    pub fn linking(&self) -> &linking::Session<Native> {
        &self.inner.linking
    }

    /// Creates a dylib, which sees itself.
    ///
    /// # Errors
    /// A dylib of that name exists, or the session has ended.
    pub fn create_dylib(&self, name: &str) -> Result<Dylib, SessionError> {
        let linking = self.inner.linking.create_dylib(name)?;
        let (scope, finalizers, due) = (Arc::default(), Vec::new(), Vec::new());
        let home = Home { linking: linking.clone(), scope, finalizers, due, due_since: 0 };
        let mut homes = lock(&self.inner.homes);
        homes.insert(linking.id(), home);
        // Entries of closed dylibs are removed whenever the number of entries reaches a power of two.
        let all: Vec<linking::Dylib<Native>> = match homes.len().is_power_of_two() {
            true => homes.values().map(|home| home.linking.clone()).collect(),
            false => Vec::new(),
        };
        drop(homes);
        for dylib in all {
            if matches!(dylib.links(), Err(linking::Error::DylibClosed { .. })) {
                self.forget_dylib(dylib.id());
            }
        }
        Ok(Dylib::new(self.clone(), linking))
    }

    /// The open dylib of this name.
    pub fn dylib(&self, name: &str) -> Option<Dylib> {
        let homes = lock(&self.inner.homes);
        let mut linkings = homes.values().map(|home| &home.linking);
        let linking = linkings.find(|linking| linking.name() == name && linking.links().is_ok())?.clone();
        drop(homes);
        Some(Dylib::new(self.clone(), linking))
    }

    /// Removes everything from dylibs and closes them, all or none. Other dylibs no longer see them. Finalisers do not run ([`Dylib::close`]).
    ///
    /// # Errors
    /// The policy forbids it: code of other dylibs uses something in them.
    pub fn close_dylibs(&self, dylibs: &[&Dylib], dependants: Dependants) -> Result<(), SessionError> {
        let closed: Vec<&linking::Dylib<Native>> = dylibs.iter().map(|dylib| dylib.linking()).collect();
        self.inner.linking.close_dylibs(&closed, dependants)?;
        dylibs.iter().for_each(|dylib| self.forget_dylib(dylib.linking().id()));
        Ok(())
    }

    /// Removes the state of a closed dylib.
    fn forget_dylib(&self, id: DylibId) {
        // The entry holds values of other layers, whose destructors must not run under the lock.
        let home = lock(&self.inner.homes).remove(&id);
        drop(home);
        self.inner.edges.forget_all(id, u64::MAX);
        self.inner.owners.forget(id);
        drop(self.inner.sources.forget(id));
    }

    /// Reports all compiled code to a profiler's or debugger's listener from now on.
    pub fn listen(&self, listener: Arc<dyn CodeListener>) {
        self.inner.shared.jit.listen(listener);
    }

    /// The function and line that an address in compiled code belongs to.
    pub fn symbolize(&self, address: usize) -> Option<Symbolized> {
        self.inner.shared.jit.symbolize(address)
    }

    /// Optimises, on this thread, the [tiered](Definitions::tiered) functions that have been called often enough, and
    /// returns their number. Returns 0 inside a scope, where waiting is forbidden, and for [`Workers`] that optimise in
    /// the background: all but `Caller` and `Seeded`.
    pub fn optimize_hot(&self) -> usize {
        function::waiting(self.runtime(), || Ok(self.inner.shared.jit.upgrade_hot())).unwrap_or(0)
    }

    /// Lazy functions whose code was evicted since the last call because an inlined callee was defined
    /// again: in the order of the evictions, the last thousand at most.
    pub fn take_invalidations(&self) -> Vec<Invalidated> {
        self.inner.edges.take_log()
    }

    /// The functions that were compiled although a [package](Dylib::open_package) has code for them, because a dependency of that code has changed; by
    /// symbol and tier.
    pub fn recompiled(&self) -> Vec<Recompiled> {
        self.packages().recompiled()
    }

    /// Statistics.
    pub fn stats(&self) -> SessionStats {
        let shared = &self.inner.shared;
        let (symbols, units, lookups, waiting) = self.inner.linking.counts();
        let compiled = *lock(&shared.compiled);
        SessionStats {
            compiled_functions: compiled.functions,
            compiled_bytes: compiled.bytes,
            symbols,
            units,
            left_loops: shared.jit.left_loops(),
            lookups,
            waiting,
            placed: shared.placed.len(),
            evicted: compiled.evicted,
            code: shared.jit.stats(),
        }
    }

    /// The functions that were looked up or that compiled code calls, in the order of their symbols.
    pub fn functions(&self) -> Vec<FunctionFacts> {
        let shared = &self.inner.shared;
        let facts = |(label, owner): (Label, Arc<CellOwner>)| {
            let facts = owner.cell().facts();
            let name = self.inner.linking.name(label);
            let (dylib, symbol) = (name.dylib.to_string(), name.symbol.to_string());
            let bytes = facts.code.map_or(0, |code| code.len());
            FunctionFacts { dylib, symbol, tier: facts.tier, bytes, calls: facts.counted }
        };
        let mut functions: Vec<FunctionFacts> = shared.placed.cells().into_iter().map(facts).collect();
        functions.sort_by(|a, b| (&a.symbol, &a.dylib).cmp(&(&b.symbol, &b.dylib)));
        functions
    }

    /// Ends the session: it runs the functions registered by [`Session::at_exit`]; it refuses new work and finishes the work in progress, with its lookups; it runs the
    /// finalisers of open dylibs, the newest dylib first, and compiles lazy functions that they call; it removes all
    /// definitions. Handles to eager functions stay valid. Returns the exceptions of finalisers. A second call does
    /// nothing.
    ///
    /// Code that a worker runs must not call it. Inside a scope it does nothing and returns [`SessionError::InScope`].
    pub fn end(&self) -> Vec<SessionError> {
        let end = || {
            let mut thrown = Vec::new();
            thrown.extend(self.run_exits());
            // Nothing is recompiled during the end.
            self.inner.edges.end();
            self.inner.linking.end(|dylib| thrown.extend(self.finalize(dylib)));
            self.inner.edges.end();
            Ok(thrown)
        };
        function::waiting(self.runtime(), end).unwrap_or_else(|error| vec![error])
    }

    /// Runs the due finalisers of a dylib, last one first.
    fn finalize(&self, dylib: DylibId) -> Vec<SessionError> {
        let home = |homes: &mut Homes| homes.get_mut(&dylib).map(|h| std::mem::take(&mut h.due));
        let due = home(&mut lock(&self.inner.homes)).unwrap_or_default();
        due.iter().rev().filter_map(|function| opening::run(function).err()).collect()
    }

    /// The method name of the next host closure.
    fn host_method(&self, name: &str) -> String {
        host::method_name(name, self.next_number())
    }

    /// A number that is unique in the session.
    fn next_number(&self) -> u64 {
        let mut last = lock(&self.inner.last_number);
        *last += 1;
        *last
    }

    /// The scope of an open dylib.
    fn scope(&self, dylib: DylibId) -> Option<Arc<Scope>> {
        lock(&self.inner.homes).get(&dylib).map(|home| home.scope.clone())
    }

    /// A dylib of the linking model.
    fn home(&self, dylib: DylibId) -> Option<linking::Dylib<Native>> {
        lock(&self.inner.homes).get(&dylib).map(|home| home.linking.clone())
    }

    /// Whether a symbol is defined in a dylib.
    fn defines(&self, dylib: DylibId, symbol: &str) -> bool {
        let linking = self.linking();
        linking.names().find(symbol).is_some_and(|symbol| linking.is_defined(Label { dylib, symbol }))
    }
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.inner.linking.fmt(f)
    }
}

const _: () = {
    const fn shared_between_threads<T: Send + Sync>() {}
    shared_between_threads::<Session>();
    shared_between_threads::<Dylib>();
    shared_between_threads::<Function>();
};
