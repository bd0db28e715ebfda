//! The engine: one instruction set, one code memory, one runtime, and room for code in it.
//!
//! It is below cells, tiers and units and does not depend on them. They are built on it: `unit.rs` is loaded code, `load.rs` loads it, and
//! the routines of cells and tiers that trampolines call are passed to it as a table (`routines.rs`).

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use brolga_codegen::compile::{Compiler, Limits};
use brolga_codegen::isa::{IsaError, IsaOptions, TargetIsa};
use brolga_codegen::sig::Signature;
use brolga_instances::{Attempt, Evicted, Moving, Room};
use brolga_runtime::Runtime;

use crate::cell::{Place, Places, Selector, Selectors};
use crate::debug::code_map::{CodeListener, CodeMap, Symbolized};
use crate::entry::trampoline::{Entries, Entry, EntryError, FindRoutine, Routines};
use crate::generators::Generators;
use crate::link::cranelift::CraneliftLinker;
use crate::link::image_code::{self, ImageCode};
use crate::link::linker::{LinkError, LinkUnit, Linker, LoadedUnit, Resolver};
use crate::link::loader::Loader;
use crate::memory::code_memory::{CodeMemory, CodeMemoryOptions};
use crate::memory::error::CodeMemoryError;
use crate::memory::evictor::Evictor;
use crate::memory::nearby::Nearby;
use crate::memory::reservation::{CodeMemoryStats, Parts};
use crate::memory::space::Draft;
use crate::tiering::upgrade::UpgradeQueue;

/// The number of requests to an evictor before a unit is refused. Each requests twice as much.
const EVICTIONS: u32 = 24;
/// The number of waits for moving code when room is short, and the time of each.
const WAITS: u32 = 200;
const WAIT: Duration = Duration::from_millis(1);
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
    pub linker: LinkerKind,
}

/// The implementations of [`Linker`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum LinkerKind {
    /// [`Loader`]: units share pages.
    #[default]
    Loader,
    /// [`CraneliftLinker`]: each unit has its own pages.
    Cranelift,
}

/// The reason why there is no engine: a fault of the machine or the system.
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
    /// The routines of this crate.
    own: FindRoutine,
    isa: TargetIsa,
    limits: Limits,
    generators: Generators,
    linker: Box<dyn Linker>,
    map: Arc<CodeMap>,
    memory: CodeMemory,
    nearby: Nearby,
    evictor: Mutex<Option<Weak<dyn Evictor>>>,
    /// Code that will soon be evictable, or free.
    room: Room,
    entries: Entries,
    places: Arc<Places>,
    selectors: Arc<Selectors>,
    upgrades: UpgradeQueue,
}

impl Jit {
    /// An engine for programs of `runtime`, whose code calls these routines beside the run time's.
    pub(crate) fn with_routines(
        runtime: Arc<Runtime>,
        options: JitOptions,
        own: FindRoutine,
    ) -> Result<Jit, JitError> {
        let isa = TargetIsa::new(options.isa)?;
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
        let (entries, upgrades) = (Entries::default(), UpgradeQueue::default());
        let (evictor, limits) = (Mutex::default(), options.limits);
        let generators = Generators::new(limits);
        let room = Room::new();
        let shared = Shared {
            runtime,
            own,
            isa,
            limits,
            generators,
            linker,
            map,
            memory,
            nearby: Nearby::default(),
            evictor,
            room,
            entries,
            places,
            selectors,
            upgrades,
        };
        Ok(Jit { shared: Arc::new(shared) })
    }

    /// The runtime that compiled code belongs to.
    pub fn runtime(&self) -> &Arc<Runtime> {
        &self.shared.runtime
    }

    /// The instruction set to compile for.
    pub fn isa(&self) -> &TargetIsa {
        &self.shared.isa
    }

    /// A new compiler with the engine's limits; one for each thread that compiles.
    pub fn compiler(&self) -> Compiler {
        Compiler::new(self.shared.limits)
    }

    /// The bytes of code memory in use, as in the statistics.
    pub fn in_use(&self) -> usize {
        self.memory_stats().in_use
    }

    /// The state of the code memory, without retired code.
    pub(crate) fn memory_stats(&self) -> CodeMemoryStats {
        let mut stats = self.shared.linker.stats();
        self.shared.nearby.add_to(&mut stats);
        stats
    }

    /// The index of all code that the engine has loaded, by address.
    pub fn code_map(&self) -> &Arc<CodeMap> {
        &self.shared.map
    }

    /// Reports all loaded code to a listener until the engine is dropped; see [`PerfMap`](crate::PerfMap),
    /// [`JitDump`](crate::JitDump) and [`GdbInterface`](crate::GdbInterface).
    pub fn listen(&self, listener: Arc<dyn CodeListener>) {
        self.shared.map.listen(listener);
    }

    /// The evictor that frees code when there is no room for a unit, while its owner holds it.
    pub fn set_evictor(&self, evictor: &Arc<dyn Evictor>) {
        let mut current = self.shared.evictor.lock().unwrap_or_else(PoisonError::into_inner);
        *current = Some(Arc::downgrade(evictor));
    }

    /// The function and line of an address in compiled code. A return address is the address of the instruction after the
    /// call: pass the address before it.
    pub fn symbolize(&self, address: usize) -> Option<Symbolized> {
        self.shared.map.symbolize(address)
    }

    pub(crate) fn generators(&self) -> &Generators {
        &self.shared.generators
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

    /// Loads code of an image into its own memory, and makes room for it.
    pub(crate) fn place_image(
        &self,
        code: &ImageCode<'_>,
        imports: &[usize],
        owners: &[Arc<LoadedUnit>],
    ) -> Result<Arc<LoadedUnit>, LinkError> {
        let Shared { memory, map, .. } = &*self.shared;
        let place = || image_code::place(memory, map, code, imports, owners);
        self.making_room(code.bytes, None, LinkError::is_shortage, place)
    }

    /// Pages for a unit of object files within a range of addresses, and room for it; `None` if no such addresses are free.
    pub(crate) fn draft_within(
        &self,
        parts: Parts,
        allowed: &Range<usize>,
    ) -> Result<Option<Draft>, CodeMemoryError> {
        let Shared { memory, nearby, .. } = &*self.shared;
        let make = || nearby.draft(memory, parts, allowed);
        self.making_room(parts.code, None, CodeMemoryError::is_shortage, make)
    }

    /// Allocates room. If there is none, the evictor frees some, in growing steps.
    #[expect(
        clippy::disallowed_methods,
        reason = "a thread that leaves code notifies no other thread, and one that does not leave is not waited for"
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
        let (mut wanted, mut tries, mut waits) = (wanted.max(1), EVICTIONS, WAITS);
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
            let may_wait = waits > 0;
            if may_wait {
                waits -= 1;
                std::thread::sleep(WAIT);
                self.runtime().free_retired();
            }
            may_wait
        };
        // Code without its own count is held as soon as it is made.
        let own = new.is_none().then(|| self.unmade());
        let Some(new) = new.or(own.as_ref()) else { return make() };
        self.shared.room.reserve(new, attempt, evict, wait, || self.shared.linker.stats().freed)
    }

    /// Requests the eviction of `bytes` bytes of code. Code that no thread runs is free then.
    pub fn evict(&self, bytes: usize) -> Evicted {
        self.shared.room.evict(|| self.ask_evictor(bytes))
    }

    fn ask_evictor(&self, bytes: usize) -> Evicted {
        let evictor = self.shared.evictor.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let evictor = evictor.and_then(|evictor| evictor.upgrade());
        match evictor.map(|evictor| evictor.evict(bytes)) {
            Some(Evicted::Nothing) if self.runtime().retired() > 0 => Evicted::Soon,
            evicted => evicted.unwrap_or(Evicted::Nothing),
        }
    }

    /// For [`Linkage::new`](crate::Linkage::new): code under construction, which cannot be evicted before this is dropped. A thread that is short
    /// of room meanwhile waits.
    pub fn unmade(&self) -> Moving {
        self.shared.room.unmade()
    }

    /// Code that will soon be free.
    pub(crate) fn moving(&self) -> Moving {
        self.shared.room.moving()
    }

    /// Whether code may be evicted while threads wait for other code.
    pub(crate) fn evicts(&self) -> bool {
        self.shared.evictor.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// The trampoline of boxed entries.
    pub(crate) fn boxed_entry(&self) -> Result<&Entry, LinkError> {
        let Shared { entries, isa, linker, .. } = &*self.shared;
        let make = || entries.boxed(isa, &**linker);
        self.making_room(ENTRY_BYTES, None, EntryError::is_shortage, make).map_err(|error| match error {
            EntryError::Link(error) => error,
            error => LinkError::Backend { reason: format!("no entry for methods: {error}") },
        })
    }

    /// The trampoline of stubs.
    pub(crate) fn lazy_entry(
        &self,
        signature: &Signature,
        interpreted: bool,
    ) -> Result<Arc<Entry>, EntryError> {
        let Shared { entries, isa, linker, .. } = &*self.shared;
        let make = || entries.lazy(signature, interpreted, isa, &**linker, &self.routines());
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

    /// The routines that code may call.
    pub(crate) fn routines(&self) -> Routines<'_> {
        Routines { runtime: &self.shared.runtime, own: self.shared.own }
    }

    /// Functions that became hot.
    pub(crate) fn upgrades(&self) -> &UpgradeQueue {
        &self.shared.upgrades
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
