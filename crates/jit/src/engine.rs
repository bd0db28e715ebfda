//! The engine: one instruction set, one code memory, one runtime, and the units loaded into them.
//!
//! A [`Unit`] is a handle; clones share what is loaded. It keeps the engine's parts that its code needs: the runtime with
//! its constants, and the code memory. Symbols of a unit are resolved in this order:
//!
//! | symbol                | by                                                     |
//! |-----------------------|--------------------------------------------------------|
//! | function, data object | the unit itself, then the units that it may see, in order |
//! | slot, counter         | whoever links the unit ([`FindCell`](crate::FindCell))    |
//! | routine               | the runtime's table                                    |
//! | C symbol              | the runtime's [`Foreign`](brolga_runtime::Foreign)     |
//! | constant, type        | a permanent object of the runtime                      |

mod retired;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::Duration;

use brolga_codegen::callback::callback_name;
use brolga_codegen::compile::{Compiler, Limits};
use brolga_codegen::compiled::{NamedType, Symbol};
use brolga_codegen::isa::{HostIsa, IsaError, IsaOptions};
use brolga_codegen::sig::{FunctionType, Signature};
use brolga_instances::{Attempt, Evicted, Moving, Room};
use brolga_ir::types::LayoutError;
use brolga_ir::{Context, Type};
use brolga_runtime::objects::{CodeEntry, CodeOwner, EntryCaller, MethodTable, Methods};
use brolga_runtime::{FrameMapsInForce, Runtime};

use crate::cell::{CellOwner, IndirectCell, Place, Places, Selector, Selectors};
use crate::debug::code_map::{CodeListener, CodeMap, Symbolized};
use crate::entry::trampoline::{Entries, Entry, EntryError, Routines};
use crate::generators::Generators;
use crate::link::cranelift::CraneliftLinker;
use crate::link::foreign::Foreign;
use crate::link::globals::Globals;
use crate::link::image_code::{self, ImageCode};
use crate::link::linker::{Import, LinkError, LinkUnit, Linker, LoadedUnit, Resolver, release};
use crate::link::loader::Loader;
use crate::link::maps;
use crate::memory::code_memory::{CodeMemory, CodeMemoryOptions};
use crate::memory::error::CodeMemoryError;
use crate::memory::evictor::Evictor;
use crate::memory::reservation::CodeMemoryStats;
use crate::tiering::profile::Cells;
use crate::tiering::tiers::Hot;

/// How often an evictor is asked before a unit is refused. Each time it is asked for twice as much.
const EVICTIONS: u32 = 24;
/// How often who is short of room waits for what moves, and how long each time.
const PATIENCE: u32 = 200;
const MOMENT: Duration = Duration::from_millis(1);
/// About the size of a trampoline.
const ENTRY_BYTES: usize = 256;

/// Options of an engine.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct JitOptions {
    /// The instruction set.
    pub isa: IsaOptions,
    /// Sizes above which functions are refused.
    pub limits: Limits,
    /// The code memory.
    pub memory: CodeMemoryOptions,
    /// The linker.
    pub linker: LinkerKind,
}

/// The implementations of [`Linker`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum LinkerKind {
    /// [`Loader`]: units share pages.
    #[default]
    Loader,
    /// [`CraneliftLinker`]: each unit has pages of its own.
    Cranelift,
}

/// Why there is no engine. The machine's or the system's fault.
#[derive(thiserror::Error, Debug)]
pub enum JitError {
    /// There is no code generator for the processor.
    #[error(transparent)]
    Isa(#[from] IsaError),
    /// There is no code memory.
    #[error(transparent)]
    Memory(#[from] CodeMemoryError),
}

/// Compiles and links into this process. Clones share one engine.
#[derive(Clone)]
pub struct Jit {
    shared: Arc<Shared>,
}

struct Shared {
    runtime: Arc<Runtime>,
    isa: HostIsa,
    limits: Limits,
    generators: Generators,
    linker: Box<dyn Linker>,
    map: Arc<CodeMap>,
    memory: CodeMemory,
    evictor: Mutex<Option<Weak<dyn Evictor>>>,
    /// Code that is about to be evictable, or free.
    room: Room,
    entries: Entries,
    places: Arc<Places>,
    selectors: Arc<Selectors>,
    hot: Hot,
}

impl Jit {
    /// An engine for programs of `runtime`.
    pub fn new(runtime: Arc<Runtime>, options: JitOptions) -> Result<Jit, JitError> {
        let isa = HostIsa::new(options.isa)?;
        let map = Arc::new(CodeMap::default());
        let symbolizer: Weak<CodeMap> = Arc::downgrade(&map);
        runtime.add_symbolizer(symbolizer);
        let memory = CodeMemory::new(options.memory)?;
        let places = Arc::new(Places::new(memory.clone()));
        let selectors = Arc::new(Selectors::new(memory.clone()));
        let linker: Box<dyn Linker> = match options.linker {
            LinkerKind::Loader => Box::new(Loader::new(memory.clone(), map.clone())),
            LinkerKind::Cranelift => Box::new(CraneliftLinker::new(&isa, memory.clone(), map.clone())),
        };
        let (entries, hot) = (Entries::default(), Hot::default());
        let (evictor, limits) = (Mutex::default(), options.limits);
        let generators = Generators::new(limits);
        let room = Room::new();
        let shared = Shared {
            runtime,
            isa,
            limits,
            generators,
            linker,
            map,
            memory,
            evictor,
            room,
            entries,
            places,
            selectors,
            hot,
        };
        Ok(Jit { shared: Arc::new(shared) })
    }

    /// The runtime that compiled code belongs to.
    pub fn runtime(&self) -> &Arc<Runtime> {
        &self.shared.runtime
    }

    /// The instruction set to compile for.
    pub fn isa(&self) -> &HostIsa {
        &self.shared.isa
    }

    /// A new compiler with the engine's limits; one for each thread that compiles.
    pub fn compiler(&self) -> Compiler {
        Compiler::new(self.shared.limits)
    }

    /// The state of the code memory. Cost: a look at all code that is retired.
    pub fn stats(&self) -> CodeMemoryStats {
        // Code freed between the two figures is in their difference.
        let retired = self.retired_bytes();
        let stats = self.shared.linker.stats();
        CodeMemoryStats { retired: retired.min(stats.in_use), ..stats }
    }

    /// The bytes of code memory in use, as in the statistics.
    pub fn in_use(&self) -> usize {
        self.shared.linker.stats().in_use
    }

    /// The index of all code that the engine has loaded, by address.
    pub fn code_map(&self) -> &Arc<CodeMap> {
        &self.shared.map
    }

    /// Tells a listener about all code that is loaded, from now on until the engine goes; see [`PerfMap`](crate::PerfMap),
    /// [`JitDump`](crate::JitDump) and [`GdbInterface`](crate::GdbInterface).
    pub fn listen(&self, listener: Arc<dyn CodeListener>) {
        self.shared.map.listen(listener);
    }

    /// Who frees code when there is no room for a unit, for as long as somebody holds it.
    pub fn set_evictor(&self, evictor: &Arc<dyn Evictor>) {
        let mut current = self.shared.evictor.lock().unwrap_or_else(PoisonError::into_inner);
        *current = Some(Arc::downgrade(evictor));
    }

    /// The function and line of an address in compiled code. A return address is that of the instruction behind the call: give
    /// the address before it.
    pub fn symbolize(&self, address: usize) -> Option<Symbolized> {
        self.shared.map.symbolize(address)
    }

    pub(crate) fn generators(&self) -> &Generators {
        &self.shared.generators
    }

    /// Loads a unit. `types` describes the functions that can be looked up in it; `visible` are the units whose functions
    /// and data it may refer to. [`Jit::build`] is the safe way to the same.
    ///
    /// # Safety
    ///
    /// L1: the code keeps the conventions of `codegen` (calling convention, pinned register, handler records, the
    /// signatures of routines, frame maps). L2: each type's signature is the one that the code of its symbol was compiled with.
    pub unsafe fn load(
        &self,
        unit: &LinkUnit,
        types: impl IntoIterator<Item = FunctionType>,
        visible: &[Unit],
    ) -> Result<Unit, LinkError> {
        // SAFETY: by the contract.
        unsafe { self.load_program(unit, types.into_iter().map(Arc::new), visible, None, Vec::new()) }
    }

    /// As [`Jit::load`], with what is known of the program that the code is made from.
    ///
    /// # Safety
    ///
    /// L1 and L2.
    pub(crate) unsafe fn load_program(
        &self,
        unit: &LinkUnit,
        types: impl IntoIterator<Item = Arc<FunctionType>>,
        visible: &[Unit],
        program: Option<Program<'_>>,
        loops: Vec<CellOwner>,
    ) -> Result<Unit, LinkError> {
        let place = |resolver: &dyn Resolver| {
            let loaded = self.link_unit(unit, resolver, program.and_then(|program| program.new))?;
            // SAFETY: by the contract; `Code` drops the maps in front of what they describe.
            let maps = unsafe { maps::put_in_force(&self.shared.runtime, unit, &loaded) };
            Ok((loaded, maps))
        };
        self.load_placed(types, visible, program, loops, place)
    }

    /// As [`Jit::load_program`], for code that `place` puts into memory. It gives the code and the maps of its frames, for the contracts of which
    /// it answers.
    pub(crate) fn load_placed(
        &self,
        types: impl IntoIterator<Item = Arc<FunctionType>>,
        visible: &[Unit],
        program: Option<Program<'_>>,
        loops: Vec<CellOwner>,
        place: impl FnOnce(&dyn Resolver) -> Result<(Arc<LoadedUnit>, Option<FrameMapsInForce>), LinkError>,
    ) -> Result<Unit, LinkError> {
        if program.is_some_and(|program| !self.shared.runtime.owns(program.table)) {
            let reason = "the table of methods belongs to another runtime".into();
            return Err(LinkError::Backend { reason });
        }
        let table = Arc::new(program.map_or(self.shared.runtime.methods(), |program| program.table).clone());
        let (runtime, slots) = (&self.shared.runtime, RefCell::default());
        let resolver = Visible { jit: self, runtime, units: visible, program, table: &table, slots };
        let (loaded, maps) = place(&resolver)?;
        let slots = resolver.slots.into_inner();
        let types = types.into_iter().map(|ty| (ty.name.clone(), ty)).collect();
        let needs_heap = program.is_some_and(|p| p.needs_heap)
            || visible.iter().any(|unit| unit.inner.needs_heap)
            // The function behind a cell may be any.
            || !slots.is_empty();
        let globals = program.map(|program| program.globals.clone());
        let visible = visible.iter().map(|unit| unit.inner.code.clone()).collect();
        let cells = program.and_then(|program| program.cells).cloned();
        let code = Arc::new(Code {
            maps,
            loaded,
            cx: program.map(|program| program.cx.clone()),
            globals,
            table,
            loops,
            cells_called: slots,
            cells,
            visible,
        });
        let inner = Inner { methods: OnceLock::new(), code, types, needs_heap, jit: self.clone() };
        Ok(Unit { inner: Arc::new(inner) })
    }

    /// Links a unit, and makes room for it.
    pub(crate) fn link_unit(
        &self,
        unit: &LinkUnit,
        resolver: &dyn Resolver,
        new: Option<&Moving>,
    ) -> Result<Arc<LoadedUnit>, LinkError> {
        let wanted = unit.functions.iter().map(|function| function.code.len()).sum::<usize>();
        self.making_room(wanted, new, LinkError::is_shortage, || self.shared.linker.link(unit, resolver))
    }

    /// Puts code of an image into memory of its own, and makes room for it.
    pub(crate) fn place_image(
        &self,
        code: &ImageCode<'_>,
        imports: &[usize],
        owners: &[Arc<LoadedUnit>],
    ) -> Result<Arc<LoadedUnit>, LinkError> {
        let Shared { memory, map, .. } = &*self.shared;
        let place = || image_code::place(memory, map, code, imports, owners);
        self.making_room(code.code.len(), None, LinkError::is_shortage, place)
    }

    /// Does what needs room. When there is none, the evictor makes some, of more and more units.
    #[expect(
        clippy::disallowed_methods,
        reason = "threads that leave code tell nobody, and one that does not leave is not to be waited for"
    )]
    fn making_room<T, E>(
        &self,
        wanted: usize,
        new: Option<&Moving>,
        is_shortage: impl Fn(&E) -> bool,
        mut make: impl FnMut() -> Result<T, E>,
    ) -> Result<T, E> {
        if !self.evicts() {
            return make();
        }
        let (mut wanted, mut tries, mut patience) = (wanted.max(1), EVICTIONS, PATIENCE);
        let attempt = || match make() {
            Ok(made) => Attempt::Made(made),
            Err(error) if is_shortage(&error) => Attempt::Short(error),
            Err(error) => Attempt::Failed(error),
        };
        let evict = || {
            if tries == 0 {
                return Evicted::Nothing;
            }
            tries -= 1;
            let asked = wanted;
            wanted = wanted.saturating_mul(2);
            self.ask_evictor(asked)
        };
        // Evicted code is free when the threads that may run it have come to a safepoint, or have left.
        let wait = || {
            let goes_on = patience > 0;
            if goes_on {
                patience -= 1;
                std::thread::sleep(MOMENT);
                self.runtime().free_retired();
            }
            goes_on
        };
        // Code without a count of its own is held as soon as it is made.
        let own = new.is_none().then(|| self.unmade());
        let Some(new) = new.or(own.as_ref()) else { return make() };
        self.shared.room.make(new, attempt, evict, wait, || self.shared.linker.stats().freed)
    }

    /// Asks the evictor to evict so many bytes of code. Code that no thread runs is free then.
    pub fn evict(&self, bytes: usize) -> Evicted {
        self.shared.room.give_up(|| self.ask_evictor(bytes))
    }

    fn ask_evictor(&self, bytes: usize) -> Evicted {
        let evictor = self.shared.evictor.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let evictor = evictor.and_then(|evictor| evictor.upgrade());
        match evictor.map(|evictor| evictor.evict(bytes)) {
            Some(Evicted::Nothing) if self.runtime().retired() > 0 => Evicted::Soon,
            evicted => evicted.unwrap_or(Evicted::Nothing),
        }
    }

    /// For [`Linkage::new`](crate::Linkage::new): code that is about to be made, and cannot be evicted before this is dropped. A thread that is short
    /// of room meanwhile has reason to wait.
    pub fn unmade(&self) -> Moving {
        self.shared.room.unmade()
    }

    /// Code that is about to be free.
    pub(crate) fn moving(&self) -> Moving {
        self.shared.room.moving()
    }

    /// Whether code may be evicted while threads wait for other code.
    pub(crate) fn evicts(&self) -> bool {
        self.shared.evictor.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// The trampoline of boxed entries.
    fn boxed_entry(&self) -> Result<&Entry, LinkError> {
        let Shared { entries, isa, linker, .. } = &*self.shared;
        let make = || entries.boxed(isa, &**linker);
        self.making_room(ENTRY_BYTES, None, EntryError::is_shortage, make).map_err(|error| match error {
            EntryError::Link(error) => error,
            error => LinkError::Backend { reason: format!("no entry for methods: {error}") },
        })
    }

    /// The function of a unit with this symbol, which is a boxed entry, as the run time calls it. It keeps the unit's code.
    pub(crate) fn boxed_code(&self, unit: &Unit, symbol: &str) -> Result<CodeEntry, LinkError> {
        let boxed = self.boxed_entry()?;
        // SAFETY: the address is that of a trampoline of this type, by `codegen::entry`; the entry's owner keeps it.
        let call: EntryCaller =
            unsafe { std::mem::transmute(std::ptr::with_exposed_provenance::<()>(boxed.address)) };
        let Some(address) = unit.loaded().function(symbol) else {
            let fault = "is a method's entry and not in the unit";
            return Err(LinkError::Malformed { name: symbol.to_owned(), fault });
        };
        // A call in flight holds the owner, which may be all that is left of the engine when it comes back.
        let keeper: MethodKeeper = (unit.inner.code.clone(), boxed.unit.clone());
        let owner: CodeOwner = Arc::new(keeper);
        // SAFETY: the code at the address is a boxed entry, whose signature `Jit::link_boxed` compared, and the owner keeps it and all that it
        // refers to, and the trampoline.
        Ok(unsafe { CodeEntry::new(address, call, owner) })
    }

    /// The trampoline of stubs.
    pub(crate) fn lazy_entry(
        &self,
        signature: &Signature,
        interpreted: bool,
    ) -> Result<Arc<Entry>, EntryError> {
        let Shared { entries, isa, linker, runtime, .. } = &*self.shared;
        let make = || entries.lazy(signature, interpreted, isa, &**linker, runtime);
        self.making_room(ENTRY_BYTES, None, EntryError::is_shortage, make)
    }

    /// A place for a cell.
    pub(crate) fn take_place(&self) -> Result<Place, CodeMemoryError> {
        let take = || Place::take(&self.shared.places);
        self.making_room(ENTRY_BYTES, None, CodeMemoryError::is_shortage, take)
    }

    /// A world selector.
    pub(crate) fn take_selector(&self) -> Result<Selector, CodeMemoryError> {
        let take = || Selector::take(&self.shared.selectors);
        self.making_room(ENTRY_BYTES, None, CodeMemoryError::is_shortage, take)
    }

    pub(crate) fn hot(&self) -> &Hot {
        &self.shared.hot
    }

    /// Whether both are the same engine.
    pub(crate) fn is(&self, other: &Jit) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }

    pub(crate) fn entry(&self, signature: &Signature) -> Result<Arc<Entry>, EntryError> {
        let make = || self.shared.entries.get(signature, &self.shared.isa, &*self.shared.linker);
        self.making_room(ENTRY_BYTES, None, EntryError::is_shortage, make)
    }
}

/// Facts about the program of the code.
#[derive(Clone, Copy)]
pub(crate) struct Program<'a> {
    /// The context of its types.
    pub(crate) cx: &'a Arc<Context>,
    /// Whether its code handles objects.
    pub(crate) needs_heap: bool,
    pub(crate) globals: &'a Globals,
    /// Where its dynamic calls look.
    pub(crate) table: &'a MethodTable,
    /// C symbols that come before those that the runtime finds.
    pub(crate) foreign: Option<&'a BTreeMap<String, Foreign>>,
    /// Whether calls look for C symbols that are not found.
    pub(crate) defers_foreign: bool,
    /// The slots that its code names.
    pub(crate) slots: &'a BTreeMap<&'a str, Result<IndirectCell, String>>,
    /// The words of the functions whose C entries it names.
    pub(crate) c_callees: &'a BTreeSet<Symbol>,
    /// The cells that it counts in.
    pub(crate) cells: Option<&'a Cells>,
    /// The counter of the code until it can be evicted.
    pub(crate) new: Option<&'a Moving>,
}

/// A unit that is loaded. Clones share it; it is freed with the last of them and of what was taken from it.
#[derive(Clone)]
pub struct Unit {
    inner: Arc<Inner>,
}

struct Inner {
    /// Methods that go when the last handle goes, before the code does.
    methods: OnceLock<Vec<Methods>>,
    code: Arc<Code>,
    types: BTreeMap<String, Arc<FunctionType>>,
    /// Whether its code, or code that it calls, handles objects.
    needs_heap: bool,
    jit: Jit,
}

/// The memory and references that stay for as long as code of a unit may run.
pub(crate) struct Code {
    #[expect(dead_code, reason = "held so that the collector finds the roots of the code")]
    maps: Option<FrameMapsInForce>,
    loaded: Arc<LoadedUnit>,
    /// The context of the types that the code names by address.
    #[expect(dead_code, reason = "held so that the heap keeps the types")]
    cx: Option<Arc<Context>>,
    /// The cells that the code names by address.
    globals: Option<Globals>,
    /// Where its calls look, which the code names by address.
    table: Arc<MethodTable>,
    /// The cells that the code names by address.
    cells_called: Vec<IndirectCell>,
    /// The continuations of its loops: theirs alone, and so as long as they are there.
    #[expect(dead_code, reason = "held so that loops find code behind their questions")]
    loops: Vec<CellOwner>,
    /// The cells of a profile, which the code names by address.
    #[expect(dead_code, reason = "held so that the code can count in them")]
    cells: Option<Cells>,
    /// The code that it may call by its address, which has cells of its own.
    visible: Vec<Arc<Code>>,
}

/// The owner of the code of methods, with the trampoline.
type MethodKeeper = (Arc<Code>, Arc<LoadedUnit>);

impl Drop for Code {
    fn drop(&mut self) {
        release(self.let_go(), Code::let_go);
    }
}

impl Code {
    /// The cells that it calls functions through.
    pub(crate) fn cells_called(&self) -> &[IndirectCell] {
        &self.cells_called
    }

    /// The units that it keeps alone.
    fn let_go(&mut self) -> Vec<Arc<Code>> {
        std::mem::take(&mut self.visible)
    }

    /// Whether one of these addresses, which are ascending, lies in it, or in code that it keeps.
    pub(crate) fn contains_any(code: &Arc<Code>, addresses: &[usize]) -> bool {
        let mut seen = BTreeSet::new();
        let mut open = vec![code.clone()];
        while let Some(code) = open.pop() {
            if !seen.insert(Arc::as_ptr(&code)) {
                continue;
            }
            let own = code.loaded.code().addresses();
            // Frames return behind their calls, so perhaps to the end of their unit, and never to a unit's start.
            let first = addresses.partition_point(|&address| address <= own.start);
            if addresses.get(first).is_some_and(|&address| address <= own.end) {
                return true;
            }
            open.extend(code.visible.iter().cloned());
        }
        false
    }
}

/// A handle to a unit that does not keep it.
#[derive(Clone)]
pub struct WeakUnit {
    inner: Weak<Inner>,
}

impl WeakUnit {
    /// The unit, if somebody still has it.
    pub fn upgrade(&self) -> Option<Unit> {
        self.inner.upgrade().map(|inner| Unit { inner })
    }
}

impl Unit {
    /// A handle that does not keep the unit: for what the unit itself keeps.
    #[must_use]
    pub fn downgrade(&self) -> WeakUnit {
        WeakUnit { inner: Arc::downgrade(&self.inner) }
    }

    /// Gives the unit methods, which are removed when its last handle is dropped. Once; any later ones are refused, and removed at once.
    pub fn keep_methods(&self, methods: Vec<Methods>) -> bool {
        self.inner.methods.set(methods).is_ok()
    }

    /// The loaded unit.
    pub fn loaded(&self) -> &Arc<LoadedUnit> {
        &self.inner.code.loaded
    }

    /// Whether there are other handles to it, or functions of it.
    pub fn is_shared(&self) -> bool {
        Arc::strong_count(&self.inner) > 1
    }

    /// The engine that it was loaded by.
    pub fn jit(&self) -> &Jit {
        &self.inner.jit
    }

    /// The functions that can be looked up, by name.
    pub fn types(&self) -> impl Iterator<Item = &FunctionType> {
        self.inner.types.values().map(|ty| &**ty)
    }

    /// The global variables that its code reads and writes.
    pub fn globals(&self) -> Option<&Globals> {
        self.inner.code.globals.as_ref()
    }

    /// Where dynamic calls look that begin in the unit.
    pub fn methods(&self) -> &MethodTable {
        &self.inner.code.table
    }

    pub(crate) fn needs_heap(&self) -> bool {
        self.inner.needs_heap
    }

    /// Whether one of these addresses, which are ascending, lies in its code, or in code that it keeps.
    pub(crate) fn contains_any(&self, addresses: &[usize]) -> bool {
        Code::contains_any(&self.inner.code, addresses)
    }

    pub(crate) fn code(&self) -> &Arc<Code> {
        &self.inner.code
    }

    /// The signature of a function, by its symbol, if it can be looked up.
    pub(crate) fn signature(&self, symbol: &str) -> Option<&Signature> {
        let by_name = self.ty(symbol).filter(|ty| ty.symbol == symbol);
        by_name.or_else(|| self.types().find(|ty| ty.symbol == symbol)).map(|ty| &ty.signature)
    }

    /// The type of a function that can be looked up.
    pub fn ty(&self, name: &str) -> Option<&FunctionType> {
        self.shared_ty(name).map(|ty| &**ty)
    }

    pub(crate) fn shared_ty(&self, name: &str) -> Option<&Arc<FunctionType>> {
        self.inner.types.get(name)
    }
}

impl std::fmt::Debug for Unit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.inner.code.loaded.fmt(f)
    }
}

struct Visible<'a> {
    jit: &'a Jit,
    runtime: &'a Arc<Runtime>,
    units: &'a [Unit],
    program: Option<Program<'a>>,
    /// Where calls look that begin in the unit, which keeps it.
    table: &'a Arc<MethodTable>,
    /// The slots that were found.
    slots: RefCell<Vec<IndirectCell>>,
}

impl Visible<'_> {
    /// The word that calls of a function go through.
    fn word(&self, name: &str) -> Result<usize, String> {
        Ok(self.slot(name)?.word())
    }

    /// The C entry of this name, if it is that of a function with a word, which the unit keeps.
    fn c_entry(&self, name: &str) -> Option<Result<usize, String>> {
        let program = self.program?;
        let of =
            |callee: &&Symbol| matches!(callee, Symbol::Slot(function) if callback_name(function) == name);
        let Symbol::Slot(function) = program.c_callees.iter().find(of)? else { return None };
        let cell = match self.slot(function) {
            Ok(cell) => cell,
            Err(error) => return Some(Err(error)),
        };
        Some(cell.c_address().map_err(|error| error.to_string()))
    }

    fn slot(&self, name: &str) -> Result<IndirectCell, String> {
        let found = self.program.and_then(|program| program.slots.get(name));
        let slot = found.ok_or("nobody was asked for its slot")?.clone()?;
        if !slot.jit().is(self.jit) {
            return Err("its slot belongs to another engine".into());
        }
        self.slots.borrow_mut().push(slot.clone());
        Ok(slot)
    }

    fn in_units(&self, find: impl Fn(&LoadedUnit) -> Option<usize>) -> Result<Import, String> {
        for unit in self.units {
            if let Some(address) = find(unit.loaded()) {
                // Its constants would go with its own runtime.
                if !Arc::ptr_eq(unit.jit().runtime(), self.runtime) {
                    return Err("defined in a unit of another runtime".into());
                }
                return Ok(Import { address, owner: Some(unit.loaded().clone()) });
            }
        }
        Err("not defined in any visible unit".into())
    }
}

impl Visible<'_> {
    /// The address of a permanent object that a type describes.
    fn object(
        &self,
        named: &NamedType,
        address: impl FnOnce(&Arc<Context>, Type) -> Result<usize, LayoutError>,
    ) -> Result<Import, String> {
        let cx = self.program.ok_or("code without a program has no types")?.cx;
        match address(cx, named.ty) {
            Ok(address) => Ok(Import { address, owner: None }),
            Err(error) => Err(error.display(&cx.types).to_string()),
        }
    }
}

impl Resolver for Visible<'_> {
    fn resolve(&self, symbol: &Symbol) -> Result<Import, String> {
        let outside = |address| Import { address, owner: None };
        match symbol {
            Symbol::Function(name) => match self.c_entry(name) {
                Some(found) => found.map(outside),
                None => self.in_units(|unit| unit.function(name)),
            },
            Symbol::Data(name) => self.in_units(|unit| unit.data(name)),
            Symbol::Slot(name) => self.word(name).map(outside),
            Symbol::Counter(name) => self.slot(name).map(|slot| outside(slot.counter_address())),
            Symbol::Cells => {
                let cells = self.program.and_then(|program| program.cells).ok_or("there are no cells")?;
                Ok(outside(cells.address()))
            }
            Symbol::Methods => Ok(outside(Arc::as_ptr(self.table).expose_provenance())),
            Symbol::Routine(_) => Routines { runtime: self.runtime }.resolve(symbol),
            Symbol::Foreign { name, library, weak } => {
                let given = self.program.and_then(|program| program.foreign?.get(name));
                if let (None, Some(given)) = (library, given) {
                    return Ok(given.import());
                }
                let found = self.runtime.foreign().resolve(name, library.as_deref());
                match found {
                    Ok(address) => Ok(outside(address)),
                    // The code asks for it when it calls it.
                    Err(_) if *weak && self.program.is_some_and(|program| program.defers_foreign) => {
                        Ok(outside(0))
                    }
                    Err(error) => Err(error.to_string()),
                }
            }
            Symbol::Interned(name) => Ok(outside(self.runtime.symbol(name).address())),
            Symbol::Module(name) => Ok(outside(self.runtime.module(name).address())),
            Symbol::Text(content) => Ok(outside(self.runtime.string(content).address())),
            Symbol::Type(ty) => self.object(ty, |cx, ty| self.runtime.type_address(cx, ty)),
            Symbol::Instance(ty) => self.object(ty, |cx, ty| self.runtime.instance_address(cx, ty)),
            Symbol::Boxed { ty, low, high } => {
                let bits = u128::from(*high) << 64 | u128::from(*low);
                self.object(ty, |cx, ty| self.runtime.boxed_address(cx, ty, bits))
            }
            Symbol::Global(name) => match self.program {
                Some(Program { globals, .. }) if globals.belong_to(self.runtime) => {
                    Ok(outside(globals.address(name)))
                }
                Some(_) => Err("the global variables are those of another runtime".into()),
                None => Err("code without a program has no global variables".into()),
            },
        }
    }
}
