//! The executor's own part: a run time, a loader, and tables of units and cells.
//!
//! ```text
//!   UnitId ──► Loaded: declarations, code, global variables, methods
//!                ▲
//!   CellId ──► Cell: symbol ──► Target: the function in its unit
//! ```
//!
//! A call takes the target of its cell and keeps it, so cells may lead elsewhere and units may be retired while calls run. A process serves
//! a controller by this ([`serve`](crate::serve())); in the controller's process it is an executor as well, the one to compare with.
//!
//! Nothing here compiles functions: code generation makes only trampolines, one for each signature of called functions.

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::{Arc, PoisonError, RwLock};

use brolga_aot::unit;
use brolga_cache::CacheKey;
use brolga_interp::{self as interp, Interp, SimMemory};
use brolga_ir::{Context, Module};
use brolga_jit::{
    BuildError, CallError, Compiled, Globals, Jit, JitError, JitOptions, Linkage, LowArgs, UntypedFunc,
    WeakUnit,
};
use brolga_runtime::objects::{CodeEntry, EntrySource, MethodEntry, MethodRow, NewMethods};
use brolga_runtime::{EnterError, LimitError, Limits, Runtime};

use crate::executor::{CellId, Executor, ExecutorError, UnitId};
use crate::graph::Graph;
use crate::stored::{self, Opened, StoredEntry};
use crate::wire::{Blob, ExecutorRefusal, Given, Got, LowArg, Status};

/// The largest value that is passed in memory, in bytes, as for layouts of types.
const MAX_ROOM: u32 = 512 << 10;

/// An executor in this process.
pub struct InProcess {
    jit: Jit,
    key: CacheKey,
    units: RwLock<BTreeMap<UnitId, Arc<Loaded>>>,
    cells: RwLock<BTreeMap<CellId, Cell>>,
}

impl std::fmt::Debug for InProcess {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("InProcess").finish_non_exhaustive()
    }
}

/// A loaded program.
struct Loaded {
    module: Module,
    unit: brolga_jit::Unit,
    globals: Globals,
}

/// A cell.
struct Cell {
    symbol: Arc<str>,
    target: Option<Arc<Target>>,
}

/// The function that a cell leads to.
struct Target {
    func: UntypedFunc,
    of: Arc<Loaded>,
}

/// Links the boxed entry of a method when a call first reaches it.
struct BoxedEntry {
    unit: WeakUnit,
    cx: Arc<Context>,
    entry: StoredEntry,
}

impl EntrySource for BoxedEntry {
    fn make(&self) -> Result<CodeEntry, Box<dyn Error + Send + Sync>> {
        let unit = self.unit.upgrade().ok_or("its program is gone")?;
        let code = unit::read(&self.entry.code.0, &self.cx)?.code;
        let compiled = Compiled::of_code(&self.cx, code, Vec::new())?;
        let visible = [unit.clone()];
        let linkage = Linkage { visible: &visible, ..Linkage::default() };
        Ok(unit.jit().link_boxed(&compiled, &self.entry.symbol, &linkage)?)
    }
}

/// A method whose boxed entry was not sent.
struct NoEntry;

impl EntrySource for NoEntry {
    fn make(&self) -> Result<CodeEntry, Box<dyn Error + Send + Sync>> {
        Err("the program was sent without an entry for dynamic calls of this method".into())
    }
}

impl InProcess {
    /// An executor on a run time, for programs that are sealed with this key.
    ///
    /// # Errors
    /// There is no code memory.
    pub fn new(runtime: Arc<Runtime>, options: JitOptions, key: CacheKey) -> Result<InProcess, JitError> {
        let jit = Jit::new(runtime, options)?;
        Ok(InProcess { jit, key, units: RwLock::default(), cells: RwLock::default() })
    }

    /// The run time.
    pub fn runtime(&self) -> &Arc<Runtime> {
        self.jit.runtime()
    }

    fn loaded(&self, unit: UnitId) -> Result<Arc<Loaded>, ExecutorRefusal> {
        let units = self.units.read().unwrap_or_else(PoisonError::into_inner);
        units.get(&unit).cloned().ok_or(ExecutorRefusal::NoUnit(unit.0))
    }

    fn target(&self, cell: CellId) -> Result<Arc<Target>, ExecutorRefusal> {
        let cells = self.cells.read().unwrap_or_else(PoisonError::into_inner);
        let cell = cells.get(&cell).ok_or(ExecutorRefusal::NoCell(cell.0))?;
        cell.target.clone().ok_or_else(|| ExecutorRefusal::NoCode(cell.symbol.to_string()))
    }

    fn link(&self, opened: Opened) -> Result<Loaded, ExecutorRefusal> {
        let Opened { module, compiled, methods, mut boxed, takes_fuel } = opened;
        let runtime = self.runtime();
        runtime.free_unused_types();
        if takes_fuel {
            runtime.expect_prices();
        }
        let globals = Globals::new(runtime);
        for global in module.globals() {
            globals.describe(&module.cx, global);
        }
        let table = runtime.method_table();
        let linkage = Linkage { globals: Some(&globals), table: Some(&table), ..Linkage::default() };
        let linked = self.jit.link(&compiled, &linkage);
        let unit = linked.map_err(|error: BuildError| ExecutorRefusal::Link(error.to_string()))?;
        let mut rows = NewMethods::default();
        for id in methods {
            let symbol = module[id].symbol(&module.cx);
            let entry = match boxed.remove(&symbol) {
                Some(entry) => {
                    let (unit, cx) = (unit.downgrade(), module.cx.clone());
                    MethodEntry::deferred(BoxedEntry { unit, cx, entry })
                }
                None => MethodEntry::deferred(NoEntry),
            };
            if let Some(row) = MethodRow::of(&module, id, entry) {
                rows.add(&module.cx, row);
            }
        }
        // The table belongs to this runtime.
        unit.keep_methods(runtime.change_methods_of(&table, rows).unwrap_or_default());
        let loaded = Loaded { module, unit, globals };
        loaded.reset(runtime)?;
        Ok(loaded)
    }

    /// Calls a function with low values.
    fn call_low(target: &Target, args: &[LowArg]) -> Result<Got, ExecutorError> {
        let mut has_room = false;
        let args = args.iter().map(|arg| {
            Ok(match arg {
                LowArg::Bits(bits) => brolga_jit::LowArg::Bits(*bits),
                LowArg::Pointer(address) => {
                    brolga_jit::LowArg::Pointer(std::ptr::with_exposed_provenance_mut(*address as usize))
                }
                LowArg::Memory(Blob(bytes)) => brolga_jit::LowArg::Memory(bytes.clone()),
                LowArg::Room(bytes) if *bytes <= MAX_ROOM && !std::mem::replace(&mut has_room, true) => {
                    brolga_jit::LowArg::Room(*bytes as usize)
                }
                LowArg::Room(_) => {
                    return Err(ExecutorRefusal::Values("more room than a result needs".to_owned()));
                }
            })
        });
        let args = LowArgs::new(args.collect::<Result<_, _>>()?);
        let results = target.func.call_with(&args.words())?;
        let room = has_room.then(|| Blob(args.room()));
        Ok(Got::Low { results, room })
    }

    /// Calls an object with others, with the methods of a function's program.
    fn call_objects(&self, target: &Target, graph: &Graph) -> Result<Got, ExecutorError> {
        let interp = &mut target.of.interpreter();
        let runtime = self.runtime();
        let values = graph.decode(interp).map_err(|error| ExecutorRefusal::Values(error.to_string()))?;
        let Some((callee, args)) = values.split_first() else {
            return Err(ExecutorRefusal::Values("there is no callee".into()).into());
        };
        let called = runtime.enter(|scope| {
            let refused =
                |error: &dyn ToString| ExecutorError::Refused(ExecutorRefusal::Call(error.to_string()));
            let callee = scope.copy_in(interp, callee).map_err(|error| refused(&error))?;
            let args = args.iter().map(|arg| scope.copy_in(interp, arg)).collect::<Result<Vec<_>, _>>();
            let args = args.map_err(|error| refused(&error))?;
            let result = runtime.call_in(target.func.methods(), scope, callee, &args);
            let result = result.map_err(|error| match error {
                brolga_runtime::ObjectCallError::Exception(exception) => exception.into(),
                brolga_runtime::ObjectCallError::Attach(error) => error.into(),
                brolga_runtime::ObjectCallError::OtherRuntime => CallError::OtherRuntime,
            })?;
            scope.copy_out(interp, result.get(scope)).map_err(|error| refused(&error))
        });
        let value = called.map_err(|error: EnterError| CallError::from(error))??;
        let graph = Graph::encode(interp, std::slice::from_ref(&value));
        Ok(Got::Object(graph.map_err(|error| ExecutorRefusal::Call(error.to_string()))?))
    }
}

impl Loaded {
    /// An interpreter that makes values of the program. It runs none of its functions, which have no bodies.
    fn interpreter(&self) -> Interp<'_> {
        Interp::new(&self.module, interp::Options::default(), Box::<SimMemory>::default())
    }

    /// Sets the global variables to their first values.
    fn reset(&self, runtime: &Arc<Runtime>) -> Result<(), ExecutorRefusal> {
        let names = self.globals.names();
        if names.is_empty() {
            return Ok(());
        }
        let interp = &mut self.interpreter();
        let set = runtime.enter(|scope| {
            for name in names {
                let value = interp.global(interp.module().cx.names.intern(&name));
                let object = value.map(|value| scope.copy_in(interp, &value)).transpose();
                let object = object.map_err(|error| error.to_string())?;
                let set = self.globals.begin(scope, &name, object.map(|root| root.get(scope)));
                set.map_err(|error| error.to_string())?;
            }
            Ok(())
        });
        set.map_err(|error| error.to_string()).flatten().map_err(ExecutorRefusal::Program)
    }
}

impl Executor for InProcess {
    fn load(&self, unit: UnitId, program: &[u8]) -> Result<(), ExecutorError> {
        let loaded = Arc::new(self.link(stored::open(program, &self.key)?)?);
        let mut units = self.units.write().unwrap_or_else(PoisonError::into_inner);
        if units.contains_key(&unit) {
            return Err(ExecutorRefusal::Taken(unit.0).into());
        }
        units.insert(unit, loaded);
        Ok(())
    }

    fn cell(&self, cell: CellId, symbol: &str) -> Result<(), ExecutorError> {
        let mut cells = self.cells.write().unwrap_or_else(PoisonError::into_inner);
        if cells.contains_key(&cell) {
            return Err(ExecutorRefusal::Taken(cell.0).into());
        }
        cells.insert(cell, Cell { symbol: symbol.into(), target: None });
        Ok(())
    }

    fn lead(&self, cell: CellId, unit: UnitId) -> Result<(), ExecutorError> {
        let of = self.loaded(unit)?;
        let cells = self.cells.read().unwrap_or_else(PoisonError::into_inner);
        let symbol =
            cells.get(&cell).map(|cell| cell.symbol.clone()).ok_or(ExecutorRefusal::NoCell(cell.0))?;
        drop(cells);
        let func = of.unit.untyped(&symbol).map_err(|error| ExecutorRefusal::Link(error.to_string()))?;
        let target = Arc::new(Target { func, of });
        let mut cells = self.cells.write().unwrap_or_else(PoisonError::into_inner);
        let known = cells.get_mut(&cell).ok_or(ExecutorRefusal::NoCell(cell.0))?;
        let before = known.target.replace(target);
        // The last handle of a unit frees its code, which listeners may hear of.
        drop(cells);
        drop(before);
        Ok(())
    }

    fn drop_cell(&self, cell: CellId) -> Result<(), ExecutorError> {
        let before = self.cells.write().unwrap_or_else(PoisonError::into_inner).remove(&cell);
        before.map(drop).ok_or(ExecutorRefusal::NoCell(cell.0).into())
    }

    fn retire(&self, unit: UnitId) -> Result<(), ExecutorError> {
        let before = self.units.write().unwrap_or_else(PoisonError::into_inner).remove(&unit);
        before.map(drop).ok_or(ExecutorRefusal::NoUnit(unit.0).into())
    }

    fn reset(&self, unit: UnitId) -> Result<(), ExecutorError> {
        Ok(self.loaded(unit)?.reset(self.runtime())?)
    }

    fn call(
        &self,
        cell: CellId,
        given: Given,
        limits: &Limits,
        _: &Arc<Context>,
    ) -> Result<Got, ExecutorError> {
        let target = self.target(cell)?;
        let call = || match &given {
            Given::Low(args) => InProcess::call_low(&target, args),
            Given::Objects(graph) => self.call_objects(&target, graph),
        };
        if limits.are_none() {
            return call();
        }
        self.runtime().limited(limits, call).map_err(|error: LimitError| CallError::from(error))?
    }

    fn status(&self) -> Result<Status, ExecutorError> {
        let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        Ok(Status {
            process: std::process::id(),
            units: count(self.units.read().unwrap_or_else(PoisonError::into_inner).len()),
            cells: count(self.cells.read().unwrap_or_else(PoisonError::into_inner).len()),
            code_bytes: self.jit.in_use() as u64,
        })
    }
}
