//! One runtime: an independent instance with its constants, C symbols and output.
//!
//! Runtimes share nothing. Compiled code belongs to one, keeps it alive and finds it through its thread.

use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use brolga_ir::Context;
use brolga_ir::types::{LayoutError, Type, TypeKind, Types};

use crate::events::Events;
use crate::foreign::Foreign;
use crate::frames::{FrameMaps, FrameMapsInForce};
use crate::heap::{Heap, HeapOptions, Obj, Object};
use crate::objects::{
    Ambiguous, IsaCache, LaterMethods, MethodRow, MethodTable, Methods, NewMethods, Table, Worlds,
};
use crate::output::{OUTPUT_LIMIT, Output, Sink};
use crate::records::{StringRef, SymbolRef};
use crate::retired::{Reporter, RetireList};
use crate::trace::{Symbolizer, Symbolizers, Traces};
use crate::watch::Watch;

/// Options of a runtime.
#[derive(Default)]
pub struct RuntimeOptions {
    /// Where `print` writes.
    pub output: Output,
    /// The maximum number of bytes of text buffered in memory: captured text, or text for a writer that
    /// another thread is using. `None`: 256 MiB. Text beyond it is dropped and reported as an output error
    /// ([`Sink::take_error`]).
    pub output_limit: Option<usize>,
    /// The heap.
    pub heap: HeapOptions,
    /// Which exceptions have a stack trace.
    pub traces: Traces,
}

/// Why methods cannot be added. The caller's fault.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum MethodError {
    /// A type of the signature has no run-time form.
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

/// The state that compiled code needs besides a thread.
pub struct Runtime {
    routines: Vec<(&'static str, usize)>,
    foreign: Foreign,
    sink: Sink,
    worlds: Arc<Worlds>,
    /// Methods that belong to no program and that all programs see.
    methods: MethodTable,
    retire_list: RetireList,
    /// Attached threads, possibly including some that have ended.
    reporters: Mutex<Vec<Box<dyn Reporter>>>,
    traces: Traces,
    symbolizers: Symbolizers,
    heap: Heap,
    /// Held while accessing an atomic field that is too large for a single access.
    atomics: Mutex<()>,
    /// The deadlines of calls.
    watch: Watch,
    /// Set when a program has prices.
    prices: OnceLock<()>,
    /// The last field, because the heap lists threads by address, so they must outlive it.
    _end: End,
}

/// The parts of a runtime provided by higher layers: routines for compiled code, and threads.
pub(crate) struct Host {
    /// Routines by name, sorted, with their addresses.
    pub(crate) routines: Vec<(&'static str, usize)>,
    /// Drops the state that the running operating-system thread keeps for runtimes that no longer exist.
    pub(crate) forget_threads: fn(),
}

/// Runs when the rest of a runtime has been dropped.
struct End(fn());

impl Drop for End {
    fn drop(&mut self) {
        (self.0)();
    }
}

impl Runtime {
    /// A new runtime with this heap; `host` provides its routines and threads.
    pub(crate) fn with(options: RuntimeOptions, heap: Heap, host: Host) -> Arc<Runtime> {
        let retire_list = RetireList::with(heap.fences());
        let worlds = Worlds::new(retire_list.clone());
        Arc::new(Runtime {
            routines: host.routines,
            foreign: Foreign::default(),
            sink: Sink::new(options.output, options.output_limit.unwrap_or(OUTPUT_LIMIT)),
            methods: MethodTable::new(Table::new(&worlds, None)),
            worlds,
            retire_list,
            reporters: Mutex::default(),
            traces: options.traces,
            symbolizers: Symbolizers::default(),
            heap,
            atomics: Mutex::default(),
            watch: Watch::default(),
            prices: OnceLock::new(),
            _end: End(host.forget_threads),
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

    /// The address of a type as an object, which is also in the tags of its instances. It is valid as long as
    /// the context is in use.
    pub fn type_address(&self, cx: &Arc<Context>, ty: Type) -> Result<usize, LayoutError> {
        self.heap.type_in_code(cx, ty).map(|desc| desc.object().expose())
    }

    /// The type whose objects have this tag, as numbered in `cx`; `None` if it was never used as a tag, or
    /// belongs to a type of another program. Cost: a walk over all types.
    pub fn type_of_tag(&self, cx: &Arc<Context>, tag: u64) -> Option<Type> {
        self.heap.types().type_of_tag(tag, cx)
    }

    /// The address of the only object of a type: `nothing`, a function object.
    pub fn instance_address(&self, cx: &Arc<Context>, ty: Type) -> Result<usize, LayoutError> {
        if let TypeKind::TypeOf(of) = *cx.types.kind(ty) {
            return self.type_address(cx, of);
        }
        let desc = self.heap.type_in_code(cx, ty)?;
        self.heap.types().instance(&desc).map(Object::expose).ok_or(LayoutError::NotConcrete(ty))
    }

    /// The address of the permanent box of a value of a primitive type.
    pub fn boxed_address(&self, cx: &Arc<Context>, ty: Type, bits: u128) -> Result<usize, LayoutError> {
        if cx.types.primitive(ty).is_none() {
            return Err(LayoutError::NotConcrete(ty));
        }
        let desc = self.heap.type_in_code(cx, ty)?;
        Ok(self.heap.permanent_box(&desc, bits).expose())
    }

    /// The content of a symbol or string that compiled code returned, by its address; `None` if it is not a
    /// record of this runtime. Cost: a walk over all records.
    pub fn content(&self, address: usize) -> Option<Vec<u8>> {
        self.heap.symbols().content(address).or_else(|| self.heap.strings().content(address))
    }

    /// The address of a routine that compiled code may call.
    pub fn routine(&self, name: &str) -> Option<usize> {
        if name == "brolga_runtime" {
            // C callbacks pass this address to identify the owner of their code.
            return Some(std::ptr::from_ref(self).addr());
        }
        let at = self.routines.binary_search_by_key(&name, |(known, _)| known).ok()?;
        Some(self.routines[at].1)
    }

    /// Tells the collector where calls of the code at these addresses keep their roots, until the result is
    /// dropped.
    ///
    /// # Safety
    ///
    /// Whenever a call that a map describes is under way, the words on the map hold objects of this runtime
    /// or null; and the result is kept for as long as such code may run.
    pub unsafe fn add_frame_maps(&self, code: Range<usize>, maps: FrameMaps) -> FrameMapsInForce {
        // SAFETY: by the contract.
        unsafe { self.heap.frames().add(code, maps) }
    }

    pub(crate) fn watch(&self) -> &Watch {
        &self.watch
    }

    /// Allows fuel as a limit: from now on there are programs with prices.
    pub fn expect_prices(&self) {
        self.prices.get_or_init(|| ());
    }

    /// Whether [`Runtime::expect_prices`] was called.
    pub fn has_prices(&self) -> bool {
        self.prices.get().is_some()
    }

    /// The C symbols that compiled code may call.
    pub fn foreign(&self) -> &Foreign {
        &self.foreign
    }

    /// Where `print` writes.
    pub fn sink(&self) -> &Sink {
        &self.sink
    }

    /// The events of this run time, and of everything that compiles for it.
    pub fn events(&self) -> &Events {
        self.heap.events()
    }

    /// The heap. Nothing is mapped before the first object is made.
    pub fn heap(&self) -> &Heap {
        &self.heap
    }

    pub(crate) fn reporters(&self) -> MutexGuard<'_, Vec<Box<dyn Reporter>>> {
        self.reporters.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records an attached thread. The list drops ended threads when it has doubled.
    pub(crate) fn add_reporter(&self, reporter: Box<dyn Reporter>) {
        let mut reporters = self.reporters();
        if reporters.len() == reporters.capacity() {
            reporters.retain(|reporter| reporter.is_alive());
        }
        reporters.push(reporter);
    }

    /// Adds a symbolizer of addresses of compiled code, for as long as it lives.
    pub fn add_symbolizer(&self, symbolizer: Weak<dyn Symbolizer>) {
        self.symbolizers.add(symbolizer);
    }

    pub(crate) fn symbolizers(&self) -> &Symbolizers {
        &self.symbolizers
    }

    pub(crate) fn traces(&self) -> Traces {
        self.traces
    }

    pub(crate) fn retire_list(&self) -> &RetireList {
        &self.retire_list
    }

    pub(crate) fn atomics(&self) -> &Mutex<()> {
        &self.atomics
    }

    /// The methods that all programs see.
    pub fn methods(&self) -> &MethodTable {
        &self.methods
    }

    /// A method table for a program: empty except for the methods that all programs see.
    pub fn method_table(&self) -> MethodTable {
        MethodTable::new(Table::new(&self.worlds, Some(&self.methods.shared)))
    }

    /// Makes the next world: threads that enter compiled code from now on are in it. `prepare` is called
    /// first with its number, and publishes what is visible from that world on. It runs under the lock of all
    /// method changes, so it must not add or drop methods, nor run foreign code.
    pub fn next_world(&self, prepare: impl FnOnce(u64)) -> u64 {
        self.methods.shared.change(NewMethods::default(), &mut [], prepare).0
    }

    /// Like [`Runtime::next_world`], with methods that all programs see from that world on, and others that
    /// are hidden from then on. The result has one element for each new method. Makes no type objects, and
    /// calls nothing but `prepare`; dropping the hidden methods frees them.
    pub fn change_methods(
        &self,
        new: NewMethods,
        old: &mut [Methods],
        prepare: impl FnOnce(u64),
    ) -> (u64, Vec<Methods>) {
        self.methods.shared.change(new, old, prepare)
    }

    /// Like [`Runtime::change_methods`], with methods of a program, whose table belongs to this runtime.
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

    /// Sets the first methods of a program's table, which belongs to this runtime: `make` is called when the
    /// table is first searched or changed, and must not access tables. The methods exist until the result is
    /// dropped. `None` if the table belongs to another runtime, or already has such methods.
    pub fn add_methods_later(
        &self,
        table: &MethodTable,
        make: impl Fn() -> NewMethods + Send + Sync + 'static,
    ) -> Option<LaterMethods> {
        self.owns(table).then(|| table.shared.add_later(Box::new(make)))?
    }

    /// The newest world.
    pub fn world(&self) -> u64 {
        self.worlds.newest()
    }

    /// Adds methods that all programs see. They exist until the result is dropped.
    pub fn add_methods(
        &self,
        cx: &Arc<Context>,
        rows: impl IntoIterator<Item = MethodRow>,
    ) -> Result<Methods, LayoutError> {
        self.methods.shared.add(&self.heap, cx, rows)
    }

    /// Adds methods of a program, whose table belongs to this runtime. They exist until the result is
    /// dropped, and are visible from the next world on.
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

    /// Whether this runtime made a table. Any other table refers to objects of another heap, and to other
    /// worlds.
    pub fn owns(&self, table: &MethodTable) -> bool {
        Arc::ptr_eq(&table.shared.worlds, &self.worlds)
    }

    /// The name of the method that a call would reach in the newest world; `None` if no method applies, and
    /// in tables of other runtimes.
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
}
