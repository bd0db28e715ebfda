//! Thread-local storage of object files: `__tls_get_addr`, blocks of threads, destructors at the end of threads.
//!
//! ```text
//!   word pair (module, offset) ──► __tls_get_addr ──► this thread's blocks by module ──► block + offset
//!                                                          │ none yet
//!                                                          └──► Module: a copy of the template, kept by module and thread
//! ```
//!
//! A block is made when a thread first needs it. It is freed with its thread or with its module, whichever ends first.
//! Destructors (`__cxa_thread_atexit`) run at the end of their thread, which keeps the code for them; at the end of the
//! module the destructors of the ending thread run, and no others. The end of the process is not the end of its main thread
//! here.
//!
//! **Locks**: the table of modules, then blocks of a module; no code of a unit is called under them.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::any::Any;
use std::collections::BTreeMap;
use std::ffi::c_void;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock, Weak};

use super::static_tls::StaticTls;

/// The names by which code registers destructors.
pub(super) const EXITS: [&str; 2] = ["__cxa_thread_atexit", "__cxa_thread_atexit_impl"];

/// The address of a function of ours that a unit may name.
pub(super) fn own(name: &str) -> Option<usize> {
    match name {
        "__tls_get_addr" => Some(get_addr as *const () as usize),
        _ if EXITS.contains(&name) => Some(at_thread_exit as *const () as usize),
        _ => None,
    }
}

/// The first content of a block.
#[derive(Debug)]
pub(super) struct Template {
    pub(super) bytes: Box<[u8]>,
    pub(super) align: usize,
}

/// The thread-local storage of one unit.
#[derive(Debug)]
pub(super) struct Module {
    id: usize,
    /// `__dso_handle` of the unit.
    handle: usize,
    template: OnceLock<Template>,
    /// What keeps the code in memory.
    unit: OnceLock<Weak<dyn Any + Send + Sync>>,
    /// Where it is at a fixed distance from the thread's pointer.
    fixed: OnceLock<StaticTls>,
    /// By thread.
    blocks: Mutex<BTreeMap<usize, Block>>,
}

#[derive(Debug)]
struct Block {
    start: NonNull<u8>,
    layout: Layout,
}

// SAFETY: a block is bytes, which are freed once, by whoever drops it.
unsafe impl Send for Block {}

impl Drop for Block {
    fn drop(&mut self) {
        // SAFETY: it was allocated with the layout.
        unsafe { dealloc(self.start.as_ptr(), self.layout) }
    }
}

#[derive(Default)]
struct Modules {
    last: usize,
    by_id: BTreeMap<usize, Arc<Module>>,
}

static MODULES: RwLock<Modules> = RwLock::new(Modules { last: 0, by_id: BTreeMap::new() });

/// The place of a thread-local symbol: its module, and the offset in each block of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ThreadLocal {
    pub(crate) module: usize,
    pub(crate) offset: usize,
}

impl ThreadLocal {
    /// Its address in this thread; `None` without memory, or if the module has ended.
    pub(crate) fn address(self) -> Option<usize> {
        let address = address_in_block(self.module, self.offset);
        (!address.is_null()).then(|| address.expose_provenance())
    }

    /// Its distance from the pointer of each thread. Fixes the module, unless a thread uses it already: then, or without room, `None`.
    pub(super) fn distance(self) -> Option<isize> {
        let module = by_id(self.module)?;
        let start = module.fix_unused()?;
        Some(start.wrapping_add_unsigned(self.offset))
    }
}

/// Keeps a module registered.
pub(super) struct Registered(Arc<Module>);

impl Registered {
    pub(super) fn module(&self) -> Arc<Module> {
        self.0.clone()
    }

    /// The number by which code names it.
    pub(super) fn id(&self) -> usize {
        self.0.id
    }
}

/// Removes a module, with the blocks of all threads.
impl Drop for Registered {
    fn drop(&mut self) {
        let gone = MODULES.write().unwrap_or_else(PoisonError::into_inner).by_id.remove(&self.0.id);
        let blocks = std::mem::take(&mut *self.0.lock());
        drop((gone, blocks));
    }
}

/// Registers a module, whose template is not known yet.
pub(super) fn register(handle: usize) -> Registered {
    let mut modules = MODULES.write().unwrap_or_else(PoisonError::into_inner);
    modules.last += 1;
    let (template, unit, fixed) = (OnceLock::new(), OnceLock::new(), OnceLock::new());
    let module =
        Arc::new(Module { id: modules.last, handle, template, unit, fixed, blocks: Mutex::default() });
    modules.by_id.insert(module.id, module.clone());
    Registered(module)
}

fn find(is: impl Fn(&Module) -> bool) -> Option<Arc<Module>> {
    let modules = MODULES.read().unwrap_or_else(PoisonError::into_inner);
    modules.by_id.values().find(|module| is(module)).cloned()
}

fn by_id(id: usize) -> Option<Arc<Module>> {
    MODULES.read().unwrap_or_else(PoisonError::into_inner).by_id.get(&id).cloned()
}

impl Module {
    pub(super) fn fill(&self, template: Template) {
        let _already = self.template.set(template);
    }

    /// Puts it at a fixed distance from the thread's pointer, and returns that; `None` if there is no room.
    pub(super) fn fix(&self, template: &Template) -> Option<isize> {
        let fixed = StaticTls::new(&template.bytes, template.align)?;
        Some(self.fixed.get_or_init(|| fixed).offset())
    }

    /// The same for a module whose template is known, unless it has blocks.
    fn fix_unused(&self) -> Option<isize> {
        if let Some(fixed) = self.fixed.get() {
            return Some(fixed.offset());
        }
        let template = self.template.get()?;
        // The system's loader has a lock, under which another thread may need a block.
        let new = StaticTls::new(&template.bytes, template.align)?;
        let blocks = self.lock();
        if blocks.is_empty() {
            // Another thread's storage serves as well.
            let _ = self.fixed.set(new);
        }
        drop(blocks);
        self.fixed.get().map(StaticTls::offset)
    }

    pub(super) fn belong_to(&self, unit: &Arc<dyn Any + Send + Sync>) {
        let _already = self.unit.set(Arc::downgrade(unit));
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<usize, Block>> {
        self.blocks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The block of this thread, which has none yet.
    fn block(&self, thread: usize) -> Option<NonNull<u8>> {
        let mut blocks = self.lock();
        if let Some(fixed) = self.fixed.get() {
            return NonNull::new(std::ptr::with_exposed_provenance_mut(fixed.address()));
        }
        let empty = Template { bytes: Box::default(), align: 1 };
        let Template { bytes, align } = self.template.get().unwrap_or(&empty);
        let layout = Layout::from_size_align(bytes.len().max(1), (*align).max(1)).ok()?;
        // SAFETY: the layout has bytes; the template is as long as the block, and the block is nobody else's.
        let start = unsafe {
            let start = NonNull::new(alloc_zeroed(layout))?;
            start.copy_from_nonoverlapping(NonNull::from(&**bytes).cast(), bytes.len());
            start
        };
        blocks.insert(thread, Block { start, layout });
        Some(start)
    }
}

/// The blocks and destructors of a thread.
#[derive(Default)]
struct Thread {
    blocks: BTreeMap<usize, NonNull<u8>>,
    exits: Vec<Exit>,
}

/// A destructor.
struct Exit {
    module: usize,
    function: extern "C" fn(*mut c_void),
    object: *mut c_void,
}

/// The key under which the system has a thread's record.
fn key() -> Option<libc::pthread_key_t> {
    static KEY: OnceLock<Option<libc::pthread_key_t>> = OnceLock::new();
    *KEY.get_or_init(|| {
        let mut key = 0;
        // SAFETY: the key is written here; the function takes the records that `this_thread` makes.
        let status = unsafe { libc::pthread_key_create(&raw mut key, Some(end_thread)) };
        (status == 0).then_some(key)
    })
}

/// The record of this thread, which is made at the first request. No reference to it is held while code of a unit runs.
fn this_thread() -> Option<NonNull<Thread>> {
    let key = key()?;
    // SAFETY: the system keeps a word for each thread; it is null or the record that this function has made.
    unsafe {
        if let Some(known) = NonNull::new(libc::pthread_getspecific(key)) {
            return Some(known.cast());
        }
        let thread = NonNull::from(Box::leak(Box::<Thread>::default()));
        if libc::pthread_setspecific(key, thread.as_ptr().cast_const().cast()) == 0 {
            return Some(thread);
        }
        drop(Box::from_raw(thread.as_ptr()));
        None
    }
}

/// `__tls_get_addr`: the address of a thread-local symbol in this thread, null if there is no memory.
///
/// # Safety
///
/// The pair is a slot of a unit that is loaded.
pub(super) unsafe extern "C" fn get_addr(pair: *const [usize; 2]) -> *mut u8 {
    // SAFETY: by the contract.
    let [id, offset] = unsafe { *pair };
    address_in_block(id, offset)
}

/// An address in this thread's block of a module, null if there is no memory, or no module with the number.
fn address_in_block(id: usize, offset: usize) -> *mut u8 {
    let Some(thread) = this_thread() else { return std::ptr::null_mut() };
    // SAFETY: the record is this thread's alone, and nothing below calls code that may take it.
    let blocks = unsafe { &mut (*thread.as_ptr()).blocks };
    if let Some(start) = blocks.get(&id) {
        return start.as_ptr().wrapping_add(offset);
    }
    let Some(start) = by_id(id).and_then(|module| module.block(thread.addr().get())) else {
        return std::ptr::null_mut();
    };
    // The blocks of ended modules are already freed.
    let modules = MODULES.read().unwrap_or_else(PoisonError::into_inner);
    blocks.retain(|id, _| modules.by_id.contains_key(id));
    drop(modules);
    blocks.insert(id, start);
    start.as_ptr().wrapping_add(offset)
}

/// `__cxa_thread_atexit`.
extern "C" fn at_thread_exit(
    function: extern "C" fn(*mut c_void),
    object: *mut c_void,
    handle: *mut c_void,
) -> i32 {
    let module = find(|module| module.handle == handle.addr());
    let (Some(module), Some(thread)) = (module, this_thread()) else { return -1 };
    // SAFETY: the record is this thread's alone.
    unsafe { (*thread.as_ptr()).exits.push(Exit { module: module.id, function, object }) };
    0
}

/// The last destructor of this thread that is accepted.
fn take_exit(thread: NonNull<Thread>, is: impl Fn(&Exit) -> bool) -> Option<Exit> {
    // SAFETY: the record is this thread's alone.
    let exits = unsafe { &mut (*thread.as_ptr()).exits };
    let at = exits.iter().rposition(is)?;
    Some(exits.remove(at))
}

/// Runs the destructors of a module that ends, in this thread.
pub(super) fn run_exits_of(module: &Module) {
    let Some(thread) = this_thread() else { return };
    while let Some(exit) = take_exit(thread, |exit| exit.module == module.id) {
        (exit.function)(exit.object);
    }
}

/// Called by the system at the end of a thread.
unsafe extern "C" fn end_thread(record: *mut c_void) {
    let (Some(key), Some(thread)) = (key(), NonNull::new(record.cast::<Thread>())) else { return };
    // SAFETY: destructors may use thread-local symbols, so the record is this thread's again while they run.
    unsafe { libc::pthread_setspecific(key, record) };
    while let Some(exit) = take_exit(thread, |_| true) {
        let unit = by_id(exit.module).and_then(|module| module.unit.get()?.upgrade());
        // Held, the code stays; a module that is ending runs no destructors of other threads.
        if unit.is_some() {
            (exit.function)(exit.object);
        }
    }
    // SAFETY: nothing of this thread uses the record from here on.
    let thread = unsafe {
        libc::pthread_setspecific(key, std::ptr::null());
        Box::from_raw(thread.as_ptr())
    };
    for &id in thread.blocks.keys() {
        if let Some(module) = by_id(id) {
            module.lock().remove(&std::ptr::from_ref(&*thread).addr());
        }
    }
}
