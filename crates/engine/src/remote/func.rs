//! Loaded programs and their functions, as values that Rust calls.

use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, Weak};

use brolga_executor::wire::{Blob, ExecutorRefusal, Given, Got, LowArg};
use brolga_executor::{CellId, ExecutorError, Graph, UnitId};
use brolga_interp::{self as interp, Interp, SimMemory, Val};
use brolga_ir::{Context, FuncId, Module, Type};
use brolga_jit::{CallError, LookupError, Packing, Params, Value};
use brolga_runtime::Limits;

use super::Shared;
use super::error::RemoteError;
use super::object::{RemoteParams, RemoteValue};
use super::portable::{Function, Portable};
use crate::error::Error;
use crate::program::Program;

/// The functions of one program in an executor. Clones share it; it is retired with the last clone and the last function taken from it.
#[derive(Clone)]
pub struct RemoteUnit {
    inner: Arc<Inner>,
}

struct Inner {
    shared: Arc<Shared>,
    id: UnitId,
    functions: BTreeMap<String, Function>,
    names: BTreeMap<String, Vec<String>>,
    /// Types and global variables of the program.
    declared: Module,
    /// The cells that lead to it.
    cells: Mutex<Vec<Weak<Cell>>>,
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.shared.retire(self.id);
    }
}

/// A cell of the executor.
struct Cell {
    id: CellId,
    symbol: String,
    shared: Arc<Shared>,
    target: RwLock<Target>,
}

/// What a cell leads to.
#[derive(Clone)]
struct Target {
    unit: RemoteUnit,
    /// The type of the function object, for calls with objects.
    callee: Option<Type>,
}

impl Drop for Cell {
    fn drop(&mut self) {
        self.shared.drop_cell(self.id);
    }
}

impl std::fmt::Debug for RemoteUnit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RemoteUnit").field("functions", &self.inner.functions.keys()).finish()
    }
}

impl RemoteUnit {
    pub(super) fn load(
        shared: &Arc<Shared>,
        program: &Program,
        roots: impl IntoIterator<Item = FuncId>,
    ) -> Result<RemoteUnit, RemoteError> {
        let Portable { sealed, functions, names, declared } =
            Portable::new(&shared.engine, program, roots, &shared.key())?;
        let id = shared.load(sealed.into())?;
        let (shared, cells) = (shared.clone(), Mutex::default());
        Ok(RemoteUnit { inner: Arc::new(Inner { shared, id, functions, names, declared, cells }) })
    }

    /// Compiles and loads another program, and leads all functions that were looked up in this unit to the other program's functions with
    /// the same symbol. Calls that have begun continue in the former code. A function that the other program does not have stays what it
    /// is. Global variables of the other program have their first values.
    ///
    /// # Errors
    /// As [`RemoteEngine::compile`](super::RemoteEngine::compile); a function has another type there. Then nothing is changed, unless the
    /// executor was lost meanwhile: then the functions are the new ones after a restart.
    pub fn replace(&self, program: &Program) -> Result<RemoteUnit, RemoteError> {
        let shared = &self.inner.shared;
        let roots = program.module().funcs().map(|(id, _)| id);
        let new = RemoteUnit::load(shared, program, roots)?;
        let live: Vec<Arc<Cell>> = self.cells().iter().filter_map(Weak::upgrade).collect();
        let mut moved = Vec::new();
        for cell in live {
            let (before, after) =
                (self.inner.functions.get(&cell.symbol), new.inner.functions.get(&cell.symbol));
            let (Some(before), Some(after)) = (before, after) else { continue };
            if !before.ty.is_called_like(&after.ty) {
                let (expected, found) = (before.ty.describe(), after.ty.describe_beside(&before.ty));
                return Err(Error::Changed { function: cell.symbol.clone(), expected, found }.into());
            }
            moved.push((cell, after.callee));
        }
        let ids: Vec<CellId> = moved.iter().map(|(cell, _)| cell.id).collect();
        let led = shared.lead(&ids, new.inner.id);
        for (cell, callee) in moved {
            let target = Target { unit: new.clone(), callee };
            let before =
                std::mem::replace(&mut *cell.target.write().unwrap_or_else(PoisonError::into_inner), target);
            new.cells().push(Arc::downgrade(&cell));
            // The last handle retires the unit.
            drop(before);
        }
        led?;
        Ok(new)
    }

    fn cells(&self) -> MutexGuard<'_, Vec<Weak<Cell>>> {
        self.inner.cells.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The symbols of all functions, in order.
    pub fn symbols(&self) -> impl Iterator<Item = &str> {
        self.inner.functions.keys().map(String::as_str)
    }

    /// Looks up a function of numbers, tuples and structs of them. The name is as for [`Unit::func`](crate::Unit::func).
    ///
    /// # Errors
    /// There is no such function, or the Rust types do not represent its types; the executor was lost.
    pub fn func<A: Params, R: Value>(&self, name: &str) -> Result<RemoteFunc<A, R>, RemoteError> {
        let ty = &self.function(name)?.ty;
        let packing = Packing::of::<A, R>(ty)?;
        Ok(RemoteFunc { cell: self.cell(&ty.symbol)?, packing, signature: PhantomData })
    }

    /// Looks up a function with strings or vectors among its arguments and results, which are copied.
    ///
    /// # Errors
    /// As [`RemoteUnit::func`].
    pub fn func_of<A: RemoteParams, R: RemoteValue>(
        &self,
        name: &str,
    ) -> Result<RemoteObjects<A, R>, RemoteError> {
        let Function { ty, callee } = self.function(name)?;
        A::check(ty)?;
        if !R::stands_for(&ty.result) {
            let (name, julia) = (ty.name.clone(), ty.result.name.clone());
            return Err(LookupError::Result { name, julia, rust: std::any::type_name::<R>() }.into());
        }
        // A closure is not called by its symbol.
        callee.ok_or_else(|| self.missing(name))?;
        Ok(RemoteObjects { cell: self.cell(&ty.symbol)?, signature: PhantomData })
    }

    fn function(&self, name: &str) -> Result<&Function, LookupError> {
        let Inner { functions, names, .. } = &*self.inner;
        let symbol = match names.get(name).map(Vec::as_slice) {
            Some([only]) => only,
            Some(several @ [_, ..]) => {
                return Err(LookupError::Ambiguous { name: name.into(), methods: several.to_vec() });
            }
            _ => name,
        };
        functions.get(symbol).ok_or_else(|| self.missing(name))
    }

    fn missing(&self, name: &str) -> LookupError {
        LookupError::NoFunction { name: name.into(), available: self.symbols().map(str::to_owned).collect() }
    }

    fn cell(&self, symbol: &str) -> Result<Arc<Cell>, ExecutorError> {
        let shared = self.inner.shared.clone();
        let id = shared.cell(symbol, self.inner.id)?;
        let callee = self.inner.functions.get(symbol).and_then(|function| function.callee);
        let target = RwLock::new(Target { unit: self.clone(), callee });
        let cell = Arc::new(Cell { id, symbol: symbol.to_owned(), shared, target });
        let mut cells = self.cells();
        cells.retain(|cell| cell.strong_count() > 0);
        cells.push(Arc::downgrade(&cell));
        Ok(cell)
    }

    /// A function of any type.
    pub(crate) fn untyped(&self, symbol: &str) -> Result<RemoteUntyped, ExecutorError> {
        Ok(RemoteUntyped(self.cell(symbol)?))
    }

    /// Sets its global variables to their first values.
    ///
    /// # Errors
    /// The executor was lost, or its heap has no room.
    pub fn reset(&self) -> Result<(), ExecutorError> {
        match self.inner.declared.globals() {
            [] => Ok(()),
            _ => self.inner.shared.executor().reset(self.inner.id),
        }
    }
}

impl Cell {
    fn target(&self) -> Target {
        self.target.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Calls it, with the types of the program that it leads to.
    fn call(&self, given: Given, limits: &Limits, cx: &Arc<Context>) -> Result<Got, ExecutorError> {
        self.shared.executor().call(self.id, given, limits, cx)
    }
}

/// A function that is called with low values or with objects.
#[derive(Clone)]
pub(crate) struct RemoteUntyped(Arc<Cell>);

impl RemoteUntyped {
    /// Calls it with low arguments. Returns the low results, and the bytes in the room for a result in memory.
    pub(crate) fn call_low(
        &self,
        args: Vec<brolga_jit::LowArg>,
        limits: &Limits,
    ) -> Result<(Vec<u128>, Vec<u8>), ExecutorError> {
        let args = args.into_iter().map(wire).collect();
        match self.0.call(Given::Low(args), limits, &self.0.target().unit.inner.declared.cx)? {
            Got::Low { results, room } => Ok((results, room.map(|Blob(bytes)| bytes).unwrap_or_default())),
            Got::Object(_) => Err(unexpected()),
        }
    }

    /// Calls an object, the first value, with the others.
    pub(crate) fn call_objects(
        &self,
        interp: &mut Interp<'_>,
        values: &[Val],
        limits: &Limits,
    ) -> Result<Val, ExecutorError> {
        let graph = Graph::encode(interp, values);
        let graph = graph.map_err(|error| ExecutorRefusal::Values(error.to_string()))?;
        let cx = interp.module().cx.clone();
        let Got::Object(graph) = self.0.call(Given::Objects(graph), limits, &cx)? else {
            return Err(unexpected());
        };
        let values = graph.decode(interp).map_err(|error| ExecutorError::Values(error.to_string()))?;
        values.into_iter().next().ok_or_else(unexpected)
    }
}

fn unexpected() -> ExecutorError {
    ExecutorError::Values("it has another form than the call's result".to_owned())
}

fn wire(arg: brolga_jit::LowArg) -> LowArg {
    match arg {
        brolga_jit::LowArg::Bits(bits) => LowArg::Bits(bits),
        brolga_jit::LowArg::Pointer(pointer) => LowArg::Pointer(pointer.expose_provenance() as u64),
        brolga_jit::LowArg::Memory(bytes) => LowArg::Memory(Blob(bytes)),
        brolga_jit::LowArg::Room(bytes) => LowArg::Room(u32::try_from(bytes).unwrap_or(u32::MAX)),
    }
}

/// A function in an executor with a Rust signature that fits it. Calls are made by any number of threads at a time. An address (`*mut T`) is one
/// of the executor's memory.
pub struct RemoteFunc<A, R> {
    cell: Arc<Cell>,
    packing: Packing,
    signature: PhantomData<fn(A) -> R>,
}

impl<A, R> Clone for RemoteFunc<A, R> {
    fn clone(&self) -> Self {
        RemoteFunc { cell: self.cell.clone(), packing: self.packing.clone(), signature: PhantomData }
    }
}

impl<A, R> std::fmt::Debug for RemoteFunc<A, R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RemoteFunc").field("cell", &self.cell.id).finish_non_exhaustive()
    }
}

impl<A: Params, R: Value> RemoteFunc<A, R> {
    /// Calls the function.
    ///
    /// # Errors
    /// As a call in process ([`ExecutorError::Call`]); or the executor was lost.
    pub fn call(&self, args: A) -> Result<R, ExecutorError> {
        self.call_limited(&Limits::new(), args)
    }

    /// As [`RemoteFunc::call`], under limits. The time counts from here on.
    ///
    /// # Errors
    /// Also that a limit was reached.
    pub fn call_limited(&self, limits: &Limits, args: A) -> Result<R, ExecutorError> {
        let args = self.packing.pack(args).into_iter().map(wire).collect();
        match self.cell.call(Given::Low(args), limits, &self.cell.target().unit.inner.declared.cx)? {
            Got::Low { results, room } => {
                let room = room.map(|Blob(bytes)| bytes).unwrap_or_default();
                Ok(self.packing.unpack(&results, &room).map_err(CallError::from)?)
            }
            Got::Object(_) => Err(unexpected()),
        }
    }
}

/// A function in an executor with strings or vectors, which each call copies.
pub struct RemoteObjects<A, R> {
    cell: Arc<Cell>,
    signature: PhantomData<fn(A) -> R>,
}

impl<A, R> Clone for RemoteObjects<A, R> {
    fn clone(&self) -> Self {
        RemoteObjects { cell: self.cell.clone(), signature: PhantomData }
    }
}

impl<A, R> std::fmt::Debug for RemoteObjects<A, R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RemoteObjects").field("cell", &self.cell.id).finish_non_exhaustive()
    }
}

impl<A: RemoteParams, R: RemoteValue> RemoteObjects<A, R> {
    /// Calls the function.
    ///
    /// # Errors
    /// As [`RemoteFunc::call`].
    pub fn call(&self, args: A) -> Result<R, ExecutorError> {
        self.call_limited(&Limits::new(), args)
    }

    /// As [`RemoteObjects::call`], under limits.
    ///
    /// # Errors
    /// Also that a limit was reached.
    pub fn call_limited(&self, limits: &Limits, args: A) -> Result<R, ExecutorError> {
        let Target { unit, callee } = self.cell.target();
        let options = interp::Options::default();
        let interp = &mut Interp::new(&unit.inner.declared, options, Box::<SimMemory>::default());
        let callee = callee.ok_or_else(|| unit.missing(&self.cell.symbol));
        let callee = callee.map_err(|error| ExecutorRefusal::Call(error.to_string()))?;
        let mut values = vec![Val::Singleton(callee)];
        args.append(interp, &mut values).map_err(|error| ExecutorRefusal::Values(error.to_string()))?;
        let value = RemoteUntyped(self.cell.clone()).call_objects(interp, &values, limits)?;
        R::of_value(interp, &value).map_err(|error| CallError::from(error).into())
    }
}
