//! Generic functions: which method a call goes to.
//!
//! ```text
//!   callee's type ──► methods ── those whose signature the arguments fit ── the one below all others ──► its entry
//! ```
//!
//! **Specificity.** Of two methods that a call fits, the one whose signature, as a tuple type, is a subtype of the other's is the
//! more specific. Of two with equal signatures the one that came later counts, so a function can be defined again. If none is
//! below all others, the call is ambiguous: [`Ambiguous`] names two that are in each other's way.
//!
//! **Cache.** A thread remembers to which entry a callee and arguments of these types went. What it remembers is void when any
//! method was added or removed since; a counter says so.
//!
//! | row | operation | order | pairs with | without it |
//! |-----|-----------|-------|------------|------------|
//! | D1  | add or remove methods: count up, under the lock | Release | D2 | – (the next row says) |
//! | D2  | look into the cache: load the counter | Acquire | D1 | a thread that was told of new methods would still call the old ones |
//!
//! Methods go when what [`Runtime::add_methods`](crate::Runtime::add_methods) gave is dropped. A call in flight holds the code that it is
//! in ([`CodeOwner`]); caches hold none.
//!
//! Not done: worlds; methods for all functions below an abstract type; type variables.

use std::any::Any;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, Weak};

use brolga_ir::Context;
use brolga_ir::types::{LayoutError, Type, TypeKind};

use crate::heap::{Heap, Object, Root, Scope, TypeRef};
use crate::thread::Thread;

use super::relations::{IsaCache, as_type};
use super::throw::Raised;

/// A function of the host that the program can call. The first argument is the function object.
pub type HostFn =
    dyn for<'f, 'h> Fn(&mut Scope<'f, 'h>, &[Root<'f, 'h>]) -> Result<Root<'f, 'h>, Raised> + Send + Sync;

/// What calls a compiled entry: address, thread, arguments, their number; it gives the result, or null if an exception is
/// pending.
pub type EntryCaller = unsafe extern "C" fn(usize, *const Thread, *const *mut u8, i64) -> *mut u8;

/// Keeps compiled code, and the memory that it names, where they are.
pub type CodeOwner = Arc<dyn Any + Send + Sync>;

/// A compiled function that takes its arguments as objects.
#[derive(Clone, Debug)]
pub struct CodeEntry {
    pub(crate) address: usize,
    pub(crate) call: EntryCaller,
    owner: CodeOwner,
}

impl CodeEntry {
    /// An entry at an address, what calls it, and what keeps it: a call in flight holds the owner, so that methods may be removed
    /// at any time.
    ///
    /// # Safety
    ///
    /// `call` calls the function at `address` as [`EntryCaller`] says, on the thread that it is called on, for as long as `owner`
    /// is held. The function keeps the contract of compiled code with the heap: it takes objects of
    /// the heap of the thread's runtime, which the caller keeps alive, and gives one.
    pub unsafe fn new(address: usize, call: EntryCaller, owner: CodeOwner) -> CodeEntry {
        CodeEntry { address, call, owner }
    }
}

/// What a method does.
#[derive(Clone)]
pub enum MethodEntry {
    /// Compiled code.
    Code(CodeEntry),
    /// A function of the host.
    Host(Arc<HostFn>),
}

impl MethodEntry {
    /// A function of the host as a method.
    pub fn host(
        body: impl for<'f, 'h> Fn(&mut Scope<'f, 'h>, &[Root<'f, 'h>]) -> Result<Root<'f, 'h>, Raised>
        + Send
        + Sync
        + 'static,
    ) -> MethodEntry {
        MethodEntry::Host(Arc::new(body))
    }
}

impl fmt::Debug for MethodEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MethodEntry::Code(entry) => entry.fmt(f),
            MethodEntry::Host(_) => f.write_str("Host"),
        }
    }
}

/// A method to be added.
#[derive(Clone, Debug)]
pub struct MethodRow {
    /// The type of the function object.
    pub function: Type,
    /// The types of the arguments, without the function object.
    pub args: Vec<Type>,
    /// The type of all further arguments, if there may be any.
    pub rest: Option<Type>,
    /// The name for messages: the symbol of the method.
    pub name: String,
    /// What it does.
    pub entry: MethodEntry,
}

/// A method.
#[derive(Debug)]
pub(crate) struct Method {
    /// Greater for methods that came later.
    serial: u64,
    /// Those that were added together have the same.
    set: u64,
    args: Box<[TypeRef]>,
    rest: Option<TypeRef>,
    /// The arguments as a tuple type.
    signature: TypeRef,
    name: Box<str>,
    pub(crate) entry: MethodEntry,
}

/// A call that two methods fit, none of which is more specific. The program's fault.
#[derive(thiserror::Error, Clone, PartialEq, Eq, Debug)]
#[error("the call is ambiguous: `{first}` and `{second}` both fit it, and neither is more specific")]
pub struct Ambiguous {
    /// One method.
    pub first: String,
    /// Another.
    pub second: String,
}

/// All methods of a runtime.
#[derive(Default)]
pub(crate) struct MethodTables {
    tables: RwLock<Tables>,
    generation: AtomicU64,
}

#[derive(Default)]
struct Tables {
    by_function: BTreeMap<u64, Vec<Arc<Method>>>,
    serial: u64,
}

/// Methods that were added. They are removed when this is dropped.
#[must_use = "the methods are removed when this is dropped"]
pub struct Methods {
    tables: Arc<MethodTables>,
    set: u64,
}

impl fmt::Debug for Methods {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Methods").field(&self.set).finish()
    }
}

impl Drop for Methods {
    fn drop(&mut self) {
        // Closures of the host and code go after the lock: their destructors may come back here.
        let mut removed = Vec::new();
        let mut tables = self.tables.write();
        tables.by_function.retain(|_, methods| {
            removed.extend(methods.extract_if(.., |method| method.set == self.set));
            !methods.is_empty()
        });
        self.tables.changed();
        drop(tables);
    }
}

/// What methods are found by: the address of the callee's type, or that of a callee that is a type, which is odd.
fn key(callee: Object) -> u64 {
    match as_type(callee) {
        Some(of) => of.tag() | 1,
        None => callee.desc().tag(),
    }
}

impl MethodTables {
    fn read(&self) -> RwLockReadGuard<'_, Tables> {
        // Nothing that can panic happens under the lock.
        self.tables.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Tables> {
        self.tables.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn changed(&self) {
        self.generation.fetch_add(1, Ordering::Release); // D1
    }

    pub(crate) fn add(
        self: &Arc<Self>,
        heap: &Heap,
        cx: &Arc<Context>,
        rows: impl IntoIterator<Item = MethodRow>,
    ) -> Result<Methods, LayoutError> {
        let mut made = Vec::new();
        for MethodRow { function, args, rest, name, entry } in rows {
            let types = &cx.types;
            let signature = match rest {
                Some(rest) => types.tuple_vararg(&args, rest),
                None => types.tuple(&args),
            };
            let signature = heap.type_object(cx, signature.map_err(|_| LayoutError::TooNested(function))?)?;
            let desc = |ty| heap.type_object(cx, ty);
            let key = match *types.kind(function) {
                TypeKind::TypeOf(of) => desc(of)?.tag() | 1,
                _ => desc(function)?.tag(),
            };
            let args = args.into_iter().map(desc).collect::<Result<_, _>>()?;
            let rest = rest.map(desc).transpose()?;
            made.push((key, Method { serial: 0, set: 0, args, rest, signature, name: name.into(), entry }));
        }
        let mut tables = self.write();
        let set = tables.serial;
        for (key, mut method) in made {
            (method.serial, method.set) = (tables.serial, set);
            tables.serial += 1;
            tables.by_function.entry(key).or_default().push(Arc::new(method));
        }
        // An empty set has a number of its own, too.
        tables.serial += 1;
        self.changed();
        Ok(Methods { tables: self.clone(), set })
    }

    /// The method that a call goes to.
    pub(crate) fn find(
        &self,
        heap: &Heap,
        cache: &IsaCache,
        callee: Object,
        args: &[Object],
    ) -> Result<Option<Arc<Method>>, Ambiguous> {
        let tables = self.read();
        let Some(methods) = tables.by_function.get(&key(callee)) else { return Ok(None) };
        let fits: Vec<_> = methods.iter().filter(|method| method.fits(heap, cache, args)).collect();
        let is_best = |a: &&&Arc<Method>| fits.iter().all(|b| a.comes_before(heap, b));
        match (fits.iter().find(is_best), &fits[..]) {
            (Some(&best), _) => Ok(Some(best.clone())),
            (None, []) => Ok(None),
            (None, [first, rest @ ..]) => {
                // Two that are in each other's way; there are such two, or one of them would be the best.
                let pairs = fits.iter().flat_map(|a| fits.iter().map(move |b| (a, b)));
                let clash =
                    pairs.into_iter().find(|(a, b)| !a.comes_before(heap, b) && !b.comes_before(heap, a));
                let (a, b) =
                    clash.map_or((*first, rest.first().copied().unwrap_or(first)), |(a, b)| (*a, *b));
                Err(Ambiguous { first: a.name.to_string(), second: b.name.to_string() })
            }
        }
    }

    /// The method with these argument types, or the one for more general ones that `invoke` takes for them.
    pub(crate) fn find_declared(&self, heap: &Heap, callee: Object, args: &[TypeRef]) -> Option<Arc<Method>> {
        let tables = self.read();
        let methods = tables.by_function.get(&key(callee))?;
        let fits: Vec<_> = methods.iter().filter(|method| method.takes(heap, args)).collect();
        let best = fits.iter().find(|a| fits.iter().all(|b| a.comes_before(heap, b)));
        best.map(|&best| best.clone())
    }

    /// What the cache is valid for.
    fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire) // D2
    }
}

impl Method {
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    fn count_fits(&self, count: usize) -> bool {
        if self.rest.is_some() { count >= self.args.len() } else { count == self.args.len() }
    }

    fn types(&self) -> impl Iterator<Item = &TypeRef> {
        self.args.iter().chain(self.rest.iter().cycle())
    }

    pub(super) fn fits(&self, heap: &Heap, cache: &IsaCache, args: &[Object]) -> bool {
        self.count_fits(args.len())
            && args.iter().zip(self.types()).all(|(&arg, ty)| heap.is_a(Some(cache), arg, ty))
    }

    fn takes(&self, heap: &Heap, args: &[TypeRef]) -> bool {
        self.count_fits(args.len())
            && args.iter().zip(self.types()).all(|(arg, ty)| heap.types().is_subtype(arg, ty))
    }

    /// Whether a call that fits both goes rather to this one, or they are the same.
    fn comes_before(&self, heap: &Heap, other: &Method) -> bool {
        if self.signature == other.signature {
            return self.serial >= other.serial;
        }
        heap.types().is_subtype(&self.signature, &other.signature)
    }
}

/// The most arguments, with the callee, that a call can have to be remembered.
const MOST: usize = 6;
/// How many calls a thread remembers.
const CALLS: usize = 256;

/// Where calls went that a thread has made.
pub(crate) struct CallCache(RefCell<Box<[Option<Call>]>>);

struct Call {
    generation: u64,
    keys: [u64; MOST],
    entry: Remembered,
}

/// A method as a cache has it: it does not keep code that nobody else needs.
enum Remembered {
    Code { address: usize, call: EntryCaller, owner: Weak<dyn Any + Send + Sync> },
    Host(Arc<HostFn>),
}

impl Remembered {
    fn of(entry: &MethodEntry) -> Remembered {
        match entry {
            MethodEntry::Code(CodeEntry { address, call, owner }) => {
                Remembered::Code { address: *address, call: *call, owner: Arc::downgrade(owner) }
            }
            MethodEntry::Host(host) => Remembered::Host(host.clone()),
        }
    }

    fn entry(&self) -> Option<MethodEntry> {
        Some(match self {
            Remembered::Code { address, call, owner } => {
                MethodEntry::Code(CodeEntry { address: *address, call: *call, owner: owner.upgrade()? })
            }
            Remembered::Host(host) => MethodEntry::Host(host.clone()),
        })
    }
}

impl Default for CallCache {
    fn default() -> CallCache {
        CallCache(RefCell::new((0..CALLS).map(|_| None).collect()))
    }
}

impl CallCache {
    /// The types of callee and arguments, as far as dispatch tells them apart, and where a call of them is remembered.
    fn place(objects: &[Object]) -> Option<([u64; MOST], usize)> {
        let mut keys = [0; MOST];
        let mut hash = objects.len() as u64;
        for (slot, &object) in keys.get_mut(..objects.len())?.iter_mut().zip(objects) {
            *slot = key(object);
            hash = (hash.rotate_left(5) ^ (*slot >> 4)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        }
        Some((keys, (hash >> 48) as usize % CALLS))
    }

    /// Where a call went when it was last made.
    pub(crate) fn get(&self, tables: &MethodTables, objects: &[Object]) -> Option<MethodEntry> {
        let (keys, at) = CallCache::place(objects)?;
        let calls = self.0.borrow();
        let call = calls[at].as_ref()?;
        if call.keys == keys && call.generation == tables.generation() { call.entry.entry() } else { None }
    }

    /// Looks a call up, and remembers where it goes.
    pub(crate) fn find(
        &self,
        tables: &MethodTables,
        heap: &Heap,
        isa: &IsaCache,
        objects: &[Object],
    ) -> Result<Option<MethodEntry>, Ambiguous> {
        if let Some(entry) = self.get(tables, objects) {
            return Ok(Some(entry));
        }
        // Before the search, so that what changes during it makes the answer void.
        let generation = tables.generation();
        let Some((&callee, args)) = objects.split_first() else { return Ok(None) };
        let Some(method) = tables.find(heap, isa, callee, args)? else { return Ok(None) };
        let entry = method.entry.clone();
        if let Some((keys, at)) = CallCache::place(objects) {
            let call = Call { generation, keys, entry: Remembered::of(&entry) };
            // What was there goes after the borrow, for the same reason as removed methods.
            let before = self.0.borrow_mut()[at].replace(call);
            drop(before);
        }
        Ok(Some(entry))
    }
}
