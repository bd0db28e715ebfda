//! One runtime: an independent world with its constants, C symbols and output.
//!
//! Runtimes share nothing. Compiled code belongs to one, keeps it alive and reaches it through its thread.

use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use brolga_ir::Context;
use brolga_ir::types::{LayoutError, Type, Types};

use crate::exception::Exception;
use crate::foreign::Foreign;
use crate::frames::{FrameMaps, FrameMapsInForce};
use crate::heap::{Collection, Heap, HeapOptions, Obj, Object, Root, Scope, Unused};
#[cfg(feature = "heap-mmtk")]
use crate::heap::{MmtkError, MmtkOptions};
use crate::objects::{
    Ambiguous, InWorld, IsaCache, MethodRow, MethodTable, Methods, NewMethods, Ops, Table, Worlds,
};
use crate::output::{Output, Sink};
use crate::records::{StringRef, SymbolRef};
use crate::retired::{Graveyard, RetiredCode};
use crate::routines;
use crate::thread::{AttachError, EnterError, Reporter, Thread, forget_gone, with_attached, with_heap_scope};
use crate::trace::{Symbolizer, Symbolizers, Traces};

/// What can be chosen about a runtime.
#[derive(Default)]
pub struct RuntimeOptions {
    /// Where `print` writes.
    pub output: Output,
    /// The heap.
    pub heap: HeapOptions,
    /// Which exceptions have a stack trace.
    pub traces: Traces,
}

/// Why a call of an object gave none.
#[derive(thiserror::Error, Clone, PartialEq, Eq, Debug)]
pub enum CallError {
    /// The callee threw.
    #[error(transparent)]
    Exception(#[from] Exception),
    /// The thread cannot be attached.
    #[error(transparent)]
    Attach(#[from] AttachError),
    /// The scope or the table of methods is one of another runtime.
    #[error("the scope or the table of methods belongs to another runtime")]
    OtherRuntime,
}

/// Why methods cannot be added. The caller's fault.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum MethodError {
    /// A type of the signature has no form at run time.
    Layout(LayoutError),
    /// The table was made by another runtime.
    OtherRuntime,
}

impl MethodError {
    /// The message.
    pub fn display<'a>(&'a self, types: &'a Types) -> impl fmt::Display + 'a {
        fmt::from_fn(move |f| match self {
            MethodError::Layout(error) => fmt::Display::fmt(&error.display(types), f),
            MethodError::OtherRuntime => f.write_str("the table of methods belongs to another runtime"),
        })
    }
}

/// What compiled code needs beside a thread.
pub struct Runtime {
    routines: Vec<(&'static str, usize)>,
    foreign: Foreign,
    sink: Sink,
    worlds: Arc<Worlds>,
    /// Methods of no program, which all programs see.
    methods: MethodTable,
    graveyard: Graveyard,
    /// Attached threads; some have ended.
    reporters: Mutex<Vec<Reporter>>,
    traces: Traces,
    symbolizers: Symbolizers,
    heap: Heap,
    /// Held while an atomic field is accessed that no single access reaches.
    atomics: Mutex<()>,
    /// The last field: the heap lists threads by address, so they outlive it.
    _forget: ForgetThreads,
}

/// Types that nobody uses, until no thread is left in the worlds up to `last`: lines of dynamic calls have their addresses.
struct UnusedTypes {
    _types: Unused,
    last: u64,
}

impl RetiredCode for UnusedTypes {
    fn contains_any(&self, _: &[usize]) -> bool {
        false
    }

    fn worlds(&self) -> Option<(u64, u64)> {
        Some((0, self.last))
    }
}

/// Drops what the running operating-system thread is to a runtime, when the rest of it is gone.
struct ForgetThreads;

impl Drop for ForgetThreads {
    fn drop(&mut self) {
        forget_gone();
    }
}

impl Runtime {
    /// A new world.
    pub fn new(options: RuntimeOptions) -> Arc<Runtime> {
        let heap = Heap::new(options.heap.clone());
        Runtime::with(options, heap)
    }

    /// A new world whose memory `mmtk` manages. A process has one of them, for ever. Of `options.heap` only the stress counts.
    #[cfg(feature = "heap-mmtk")]
    pub fn with_mmtk(options: RuntimeOptions, mmtk: &MmtkOptions) -> Result<Arc<Runtime>, MmtkError> {
        let heap = Heap::with_mmtk(options.heap.clone(), mmtk)?;
        Ok(Runtime::with(options, heap))
    }

    fn with(options: RuntimeOptions, heap: Heap) -> Arc<Runtime> {
        let graveyard = Graveyard::with(heap.fences());
        let worlds = Worlds::new(graveyard.clone());
        Arc::new(Runtime {
            routines: routines::sorted_table(),
            foreign: Foreign::default(),
            sink: Sink::new(options.output),
            methods: MethodTable { shared: Table::new(&worlds, None) },
            worlds,
            graveyard,
            reporters: Mutex::default(),
            traces: options.traces,
            symbolizers: Symbolizers::default(),
            heap,
            atomics: Mutex::default(),
            _forget: ForgetThreads,
        })
    }

    /// The record of a symbol constant.
    pub fn symbol(&self, name: &str) -> SymbolRef {
        self.heap.symbols().symbol(name)
    }

    /// The object of a module.
    pub fn module(&self, name: &str) -> SymbolRef {
        self.heap.modules().symbol(name)
    }

    /// The record of a string constant.
    pub fn string(&self, content: &[u8]) -> StringRef {
        self.heap.strings().string(content)
    }

    /// The address of a type as an object: what is in the tags of objects of the type, if it has any.
    pub fn type_address(&self, cx: &Arc<Context>, ty: Type) -> Result<usize, LayoutError> {
        self.heap.type_object(cx, ty).map(|desc| desc.object().expose())
    }

    /// The type whose objects have this tag, as `cx` numbers it; `None` if it is no tag that was ever given out, or that of a type of
    /// another program. Cost: a walk over all types.
    pub fn type_of_tag(&self, cx: &Arc<Context>, tag: u64) -> Option<Type> {
        self.heap.types().type_of_tag(tag, cx)
    }

    /// The address of the only object of a type: `nothing`, a function object.
    pub fn instance_address(&self, cx: &Arc<Context>, ty: Type) -> Result<usize, LayoutError> {
        let desc = self.heap.type_object(cx, ty)?;
        self.heap.types().instance(&desc).map(Object::expose).ok_or(LayoutError::NotConcrete(ty))
    }

    /// The address of the permanent box of a value of a primitive type.
    pub fn boxed_address(&self, cx: &Arc<Context>, ty: Type, bits: u128) -> Result<usize, LayoutError> {
        if cx.types.primitive(ty).is_none() {
            return Err(LayoutError::NotConcrete(ty));
        }
        let desc = self.heap.describe(cx, ty)?;
        Ok(self.heap.permanent_box(&desc, bits).expose())
    }

    /// The content of a symbol or string that compiled code returned, by its address; `None` if it is no record of this
    /// runtime. Cost: a walk over all records.
    pub fn content(&self, address: usize) -> Option<Vec<u8>> {
        self.heap.symbols().content(address).or_else(|| self.heap.strings().content(address))
    }

    /// The address of a routine that compiled code may call.
    pub fn routine(&self, name: &str) -> Option<usize> {
        if name == "brolga_runtime" {
            // What C calls back says by this whose code it is.
            return Some(std::ptr::from_ref(self).addr());
        }
        let at = self.routines.binary_search_by_key(&name, |(known, _)| known).ok()?;
        Some(self.routines[at].1)
    }

    /// Tells the collector where calls of the code at these addresses keep their roots, until the result is dropped.
    ///
    /// # Safety
    ///
    /// Whenever a call that a map names is under way, the words on the map hold objects of this runtime or null; and the result
    /// is kept for as long as such code may run.
    pub unsafe fn add_frame_maps(&self, code: Range<usize>, maps: FrameMaps) -> FrameMapsInForce {
        // SAFETY: by the contract.
        unsafe { self.heap.frames().add(code, maps) }
    }

    /// The C symbols that compiled code may call.
    pub fn foreign(&self) -> &Foreign {
        &self.foreign
    }

    /// Where `print` writes.
    pub fn sink(&self) -> &Sink {
        &self.sink
    }

    /// The heap. Nothing is mapped before the first object.
    pub fn heap(&self) -> &Heap {
        &self.heap
    }

    pub(crate) fn reporters(&self) -> MutexGuard<'_, Vec<Reporter>> {
        self.reporters.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A thread attached itself. The list forgets threads that have ended when it has doubled.
    pub(crate) fn add_reporter(&self, reporter: Reporter) {
        let mut reporters = self.reporters();
        if reporters.len() == reporters.capacity() {
            reporters.retain(Reporter::is_alive);
        }
        reporters.push(reporter);
    }

    /// Adds somebody who knows what lies at addresses of compiled code, for as long as it lives.
    pub fn add_symbolizer(&self, symbolizer: Weak<dyn Symbolizer>) {
        self.symbolizers.add(symbolizer);
    }

    pub(crate) fn symbolizers(&self) -> &Symbolizers {
        &self.symbolizers
    }

    pub(crate) fn traces(&self) -> Traces {
        self.traces
    }

    pub(crate) fn graveyard(&self) -> &Graveyard {
        &self.graveyard
    }

    pub(crate) fn atomics(&self) -> &Mutex<()> {
        &self.atomics
    }

    /// The methods that all programs see.
    pub fn methods(&self) -> &MethodTable {
        &self.methods
    }

    /// Methods of a program of its own: none yet beside those that all programs see.
    pub fn method_table(&self) -> MethodTable {
        MethodTable { shared: Table::new(&self.worlds, Some(&self.methods.shared)) }
    }

    /// Makes the next world: threads that enter compiled code from now on are in it. `prepare` is told its number first, and makes visible what
    /// is visible from that world on. It runs under the lock of all changes of methods, so it must not add or drop methods, nor run foreign code.
    pub fn next_world(&self, prepare: impl FnOnce(u64)) -> u64 {
        self.methods.shared.change(NewMethods::default(), &mut [], prepare).0
    }

    /// As [`Runtime::next_world`], with methods that all programs see from that world on, and others that nobody sees from then on. The result
    /// has one element for each new method. Makes no type objects, and calls nothing but `prepare`; what is hidden goes when it is dropped.
    pub fn change_methods(
        &self,
        new: NewMethods,
        old: &mut [Methods],
        prepare: impl FnOnce(u64),
    ) -> (u64, Vec<Methods>) {
        self.methods.shared.change(new, old, prepare)
    }

    /// As [`Runtime::change_methods`], with methods of a program, whose table belongs to this runtime.
    pub fn change_methods_of(
        &self,
        table: &MethodTable,
        new: NewMethods,
    ) -> Result<Vec<Methods>, MethodError> {
        if !self.owns(table) {
            return Err(MethodError::OtherRuntime);
        }
        Ok(table.shared.change(new, &mut [], |_| {}).1)
    }

    /// The newest world.
    pub fn world(&self) -> u64 {
        self.worlds.newest()
    }

    /// Frees the types of contexts that nobody uses any more, when there are twice as many types as the last time: with their objects, and a full
    /// collection that finds out. Does nothing inside a scope. To be called when a program is compiled.
    pub fn free_unused_types(self: &Arc<Self>) {
        if !self.heap.types().is_sweep_due(self.heap.stats().live_bytes) {
            return;
        }
        // In a scope nothing is collected; the next program tries again.
        let _collected = self.enter(|scope| scope.collect_kind(Collection::Full));
        let types = self.heap.types().take_swept();
        if !types.is_empty() {
            let last = self.next_world(|_| ()) - 1;
            self.retire([Box::new(UnusedTypes { _types: types, last }) as Box<dyn RetiredCode>]);
        }
    }

    /// Adds methods that all programs see. They are there until the result is dropped.
    pub fn add_methods(
        &self,
        cx: &Arc<Context>,
        rows: impl IntoIterator<Item = MethodRow>,
    ) -> Result<Methods, LayoutError> {
        self.methods.shared.add(&self.heap, cx, rows)
    }

    /// Adds methods of a program, whose table belongs to this runtime. They are there until the result is dropped, and visible from the
    /// next world on.
    pub fn add_methods_to(
        &self,
        table: &MethodTable,
        cx: &Arc<Context>,
        rows: impl IntoIterator<Item = MethodRow>,
    ) -> Result<Methods, MethodError> {
        if !self.owns(table) {
            return Err(MethodError::OtherRuntime);
        }
        table.shared.add(&self.heap, cx, rows).map_err(MethodError::Layout)
    }

    /// Whether a table was made by this runtime. Another one's names objects of another heap, and counts other worlds.
    pub fn owns(&self, table: &MethodTable) -> bool {
        Arc::ptr_eq(&table.shared.worlds, &self.worlds)
    }

    /// The name of the method that a call would go to in the newest world; `None` if no method fits, and in tables of other
    /// runtimes.
    pub fn which<'h>(
        &self,
        table: &MethodTable,
        callee: Obj<'_, 'h>,
        args: &[Obj<'_, 'h>],
    ) -> Result<Option<String>, Ambiguous> {
        if !self.owns(table) {
            return Ok(None);
        }
        let args: Vec<Object> = args.iter().map(|arg| arg.object).collect();
        let (cache, world) = (IsaCache::default(), self.world());
        let found = table.shared.find(&self.heap, &cache, world, callee.object, &args)?;
        Ok(found.map(|method| method.name().to_owned()))
    }

    /// Calls an object with others: a function, a closure, a type. Builtins and operators are called as well as methods. Inside
    /// of compiled code the call finds the methods of its program, in its world; elsewhere those of no program.
    pub fn call<'f, 'h>(
        self: &Arc<Self>,
        scope: &mut Scope<'f, 'h>,
        callee: Root<'f, 'h>,
        args: &[Root<'f, 'h>],
    ) -> Result<Root<'f, 'h>, CallError> {
        self.call_where(scope, |thread| thread.stay_or_enter_world(&self.methods), callee, args)
    }

    /// As [`Runtime::call`], with the methods of a program.
    pub fn call_in<'f, 'h>(
        self: &Arc<Self>,
        table: &MethodTable,
        scope: &mut Scope<'f, 'h>,
        callee: Root<'f, 'h>,
        args: &[Root<'f, 'h>],
    ) -> Result<Root<'f, 'h>, CallError> {
        if !self.owns(table) {
            return Err(CallError::OtherRuntime);
        }
        self.call_where(scope, |thread| Some(thread.enter_world(table)), callee, args)
    }

    fn call_where<'f, 'h>(
        self: &Arc<Self>,
        scope: &mut Scope<'f, 'h>,
        enter_world: impl for<'t> FnOnce(&'t Thread) -> Option<InWorld<'t>>,
        callee: Root<'f, 'h>,
        args: &[Root<'f, 'h>],
    ) -> Result<Root<'f, 'h>, CallError> {
        if !std::ptr::eq(scope.heap(), &self.heap) {
            return Err(CallError::OtherRuntime);
        }
        with_attached(self, |thread| {
            let entered = thread.enter();
            let _world = enter_world(thread);
            match (Ops { scope, thread, runtime: self }.apply(callee, args)) {
                Ok(result) if !entered.carries() => Ok(result),
                _ => Err(CallError::Exception(entered.take_exception())),
            }
        })?
    }

    /// Calls `body` with the right to make and use objects, on the running thread, which is attached if it was not.
    pub fn enter<R>(
        self: &Arc<Self>,
        body: impl for<'f, 'h> FnOnce(&mut Scope<'f, 'h>) -> R,
    ) -> Result<R, EnterError> {
        with_heap_scope(self, body)
    }
}
