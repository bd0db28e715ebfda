//! Generic functions: which method a call reaches, and in which worlds.
//!
//! ```text
//!   callee's type ──► methods ── visible in the world, and applicable ── the one below all others ──► its entry
//! ```
//!
//! **Specificity.** Of two applicable methods, the one whose signature, as a tuple type, is a subtype of the
//! other's is more specific. Of two with equal signatures the later one wins, so a function can be redefined.
//! If none is below all others, the call is ambiguous: [`Ambiguous`] names two in conflict.
//!
//! **Worlds.** A runtime counts its worlds: each change of any table makes the next one. A method is visible
//! from the world in which it was added up to the last one before its removal. A call runs in the world in
//! which its thread entered compiled code (`dispatch.rs`), so running code keeps the methods that it started
//! with.
//!
//! Code that is compiled on its first call belongs to an earlier program: its methods are visible since that
//! program, even in worlds that threads have already entered. The entries that such a thread holds for these
//! calls stay.
//!
//! **Tables.** A [`MethodTable`] belongs to a program, whose calls find its methods and, after them, the
//! methods of the runtime's common table. Programs do not see each other's methods. If signatures are equal,
//! the program's own wins.
//!
//! **Search.** A table returns the list of a callee's methods, which is immutable from then on; the search
//! itself, which tests subtypes, runs without a lock. It considers the methods that the first argument allows
//! (`methods/list.rs`).
//!
//! | row | operation | order | pairs with | without it |
//! |-----|-----------|-------|------------|------------|
//! | D1  | a change is complete: store the newest world | SeqCst | D2 | a thread enters a world but does not find its methods |
//! | D2  | enter a world: load the newest one | SeqCst | D1, R4 of `brolga_instances` | a thread that was overlooked when a method was retired finds it |
//! | D3  | the last world of a method | Relaxed | – | nothing: its reader has entered a world, which D1 and D2 order |
//! | D4  | a method leaves its table: its mark | Relaxed | – | nothing: lists are made under the table's lock, as marks are |
//!
//! Dropping the result of [`Runtime::add_methods`](crate::Runtime::add_methods) removes its methods. Threads
//! that enter later do not see them; when no thread runs them any more, code and function are freed
//! (`retired.rs`). [`Runtime::change_methods`](crate::Runtime::change_methods) adds methods and hides others
//! in one world.
//!
//! **Lazy signatures.** A table finds the methods of a callee by the text of its type, so a method can be
//! added without making type objects. The first call of that callee makes the type objects of its signature.
//! A session registers each method of each program; most are never called by dispatch, and cost a row but
//! nothing on the heap.
//!
//! **Later methods.** The first methods of a table may be made when it is first searched or changed
//! ([`LaterMethods`]), so an opened program makes no row for a function that is never called by dispatch.
//! They are visible since the table was made, and rank below everything added to it.
//!
//! **Variables.** If a method has a `where`, its arguments' types are the upper bounds; the further
//! conditions on the variables are checked afterwards, in searches and for specificity alike
//! (`variables.rs`).
//!
//! Not done: methods for all functions below an abstract type.

mod list;

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::mem::offset_of;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock, Weak};

use brolga_ir::types::{LayoutError, Statics, Type, TypeKind};
use brolga_ir::{Context, FuncId, Level, Module};

use crate::heap::{Heap, Object, Root, Scope, TypeRef};
use crate::retired::{RetireList, Retired, RetiredCode, free};

use super::deferred::{DeferredEntry, EntrySource};
use super::entry::CodeEntry;
use super::relations::{IsaCache, as_type};
use super::throw::Raised;
use super::variables::Variables;
use list::MethodList;

/// A host function that the program can call. The first argument is the function object.
pub type HostFn =
    dyn for<'f, 'h> Fn(&mut Scope<'f, 'h>, &[Root<'f, 'h>]) -> Result<Root<'f, 'h>, Raised> + Send + Sync;

/// The body of a method.
#[derive(Clone)]
pub enum MethodEntry {
    /// Compiled code.
    Code(CodeEntry),
    /// Code that is compiled when a call first reaches the method.
    Deferred(Arc<DeferredEntry>),
    /// A host function.
    Host(Arc<HostFn>),
}

impl MethodEntry {
    /// The code, if there is any yet.
    pub(crate) fn code(&self) -> Option<&CodeEntry> {
        match self {
            MethodEntry::Code(code) => Some(code),
            MethodEntry::Deferred(deferred) => deferred.ready(),
            MethodEntry::Host(_) => None,
        }
    }

    /// Code that `source` makes when a call first reaches the method.
    pub fn deferred(source: impl EntrySource + 'static) -> MethodEntry {
        MethodEntry::Deferred(Arc::new(DeferredEntry::new(source)))
    }

    /// A host function as a method.
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
            MethodEntry::Deferred(deferred) => f.debug_tuple("Deferred").field(&deferred.ready()).finish(),
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
    /// The variables of its `where`, if it has open ones.
    pub statics: Statics,
    /// The name for messages: the symbol of the method.
    pub name: String,
    /// The body.
    pub entry: MethodEntry,
}

impl MethodRow {
    /// A high function of a module as a row; `None` if dynamic calls cannot reach it, because it takes no function object.
    pub fn of(module: &Module, id: FuncId, entry: MethodEntry) -> Option<MethodRow> {
        let func = &module[id];
        let (function, args) = func.sig.params.split_first().filter(|_| func.level == Level::High)?;
        let mut args: Vec<Type> = args.iter().map(|param| param.ty).collect();
        let rest = func.sig.vararg.then(|| {
            args.pop();
            module.vararg_element(func)
        });
        let (statics, name) = (func.sig.statics.clone(), func.symbol(&module.cx));
        Some(MethodRow { function: function.ty, args, rest, statics, name, entry })
    }
}

impl MethodRow {
    /// A method with exactly these arguments, without open variables.
    pub fn new(function: Type, args: Vec<Type>, name: impl Into<String>, entry: MethodEntry) -> MethodRow {
        MethodRow { function, args, rest: None, statics: Statics::default(), name: name.into(), entry }
    }
}

/// The origin of a method, lowest rank first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Origin {
    /// A library; all other methods take precedence ([`NewMethods::of_library`]).
    Library,
    /// The runtime's own table.
    Common,
    /// The table of a program.
    Program,
}

/// A method.
#[derive(Debug)]
pub(crate) struct Method {
    /// If two methods have the same signature, the one of greater rank is called: later methods rank above
    /// earlier ones of the same origin.
    rank: (Origin, u64),
    first_world: u64,
    last_world: AtomicU64,
    /// Whether its table counts it as removed.
    is_gone: AtomicBool,
    cx: Arc<Context>,
    row: MethodRow,
    /// The type objects of the row; the inner `None` if a type cannot have one, so that no object has that
    /// type.
    signed: OnceLock<Option<Signed>>,
}

/// The signature of a method as type objects.
#[derive(Debug)]
struct Signed {
    /// The key of callees ([`key`]).
    key: u64,
    /// The callee's type, or the callee if it is a type: the key is its address.
    _callee: TypeRef,
    args: Box<[TypeRef]>,
    rest: Option<TypeRef>,
    /// The arguments as a tuple type.
    signature: TypeRef,
    /// The constraints of the variables of its `where` on the arguments.
    variables: Option<Arc<Variables>>,
}

/// The key of a callee's methods: the text of its type, or of the type that it is. Types with the same text
/// share a list; [`Signed::key`] distinguishes them.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Head {
    is_type: bool,
    text: Box<str>,
}

impl Head {
    /// The key for a function object's type.
    fn of(cx: &Context, function: Type) -> Head {
        let (is_type, ty) = match *cx.types.kind(function) {
            TypeKind::TypeOf(of) => (true, of),
            _ => (false, function),
        };
        Head { is_type, text: cx.types.display(ty).to_string().into() }
    }

    fn of_callee(callee: Object) -> Option<Head> {
        let (is_type, desc) = match as_type(callee) {
            Some(of) => (true, of),
            None => (false, callee.desc()),
        };
        Some(Head { is_type, text: desc.context().types.display(desc.ty()?).to_string().into() })
    }
}

/// Methods to be added ([`Runtime::change_methods`](crate::Runtime::change_methods)).
#[derive(Debug, Default)]
pub struct NewMethods {
    rows: Vec<(Head, Arc<Context>, MethodRow)>,
    is_library: bool,
}

impl NewMethods {
    /// Methods of a library: a method with the same signature outside libraries takes precedence, whichever
    /// came first.
    #[must_use]
    pub fn of_library() -> NewMethods {
        NewMethods { is_library: true, ..NewMethods::default() }
    }

    /// Adds a row, with types of `cx`. Makes no type objects: a row of a type without objects is never called.
    pub fn add(&mut self, cx: &Arc<Context>, row: MethodRow) {
        self.rows.push((Head::of(cx, row.function), cx.clone(), row));
    }

    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
}

/// An ambiguous call: two methods apply, and neither is more specific. The program's fault.
#[derive(thiserror::Error, Clone, PartialEq, Eq, Debug)]
#[error("the call is ambiguous: `{first}` and `{second}` both fit it, and neither is more specific")]
pub struct Ambiguous {
    /// One method.
    pub first: String,
    /// Another.
    pub second: String,
}

/// The state that all tables of a runtime share.
pub(crate) struct Worlds {
    newest: AtomicU64,
    changing: Mutex<Changes>,
    retire_list: RetireList,
}

/// The state accessed only by method changes.
#[derive(Default)]
struct Changes {
    methods: u64,
    tables: u64,
}

impl Worlds {
    pub(crate) fn new(retire_list: RetireList) -> Arc<Worlds> {
        Arc::new(Worlds { newest: AtomicU64::new(1), changing: Mutex::default(), retire_list })
    }

    /// The newest world.
    #[inline]
    pub(crate) fn newest(&self) -> u64 {
        self.newest.load(Ordering::SeqCst) // D2
    }

    fn change(&self) -> MutexGuard<'_, Changes> {
        self.changing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes the next world.
    fn advance(&self, world: u64) {
        self.newest.store(world, Ordering::SeqCst); // D1
    }
}

/// The methods of a program. Clones share them.
#[derive(Clone)]
#[repr(C)]
pub struct MethodTable {
    /// [`Table::identity`], which compiled code compares with the identity of the table in use
    /// (`dispatch.rs`).
    identity: usize,
    pub(crate) shared: Arc<Table>,
}

impl fmt::Debug for MethodTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("MethodTable").field(&self.shared.id).finish()
    }
}

impl MethodTable {
    /// The offset at which compiled code finds the identity of the table.
    pub const IDENTITY: usize = offset_of!(MethodTable, identity);

    pub(crate) fn new(shared: Arc<Table>) -> MethodTable {
        MethodTable { identity: Table::identity(&shared), shared }
    }

    /// The number of the table in its runtime.
    pub fn id(&self) -> u64 {
        self.shared.id
    }
}

/// See [`MethodTable`].
pub(crate) struct Table {
    pub(crate) id: u64,
    pub(crate) worlds: Arc<Worlds>,
    /// The runtime's common table, for a program's table.
    base: Option<Arc<Table>>,
    lists: RwLock<BTreeMap<Head, MethodList>>,
    /// Its first methods, if they are made lazily.
    later: OnceLock<Weak<Later>>,
}

/// The first methods of a table, made when it is first searched or changed. They are removed when this is
/// dropped.
#[must_use = "the methods are removed when this is dropped"]
pub struct LaterMethods(#[expect(dead_code, reason = "held so that the table finds them")] Arc<Later>);

impl fmt::Debug for LaterMethods {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LaterMethods")
    }
}

struct Later {
    table: Weak<Table>,
    make: Box<dyn Fn() -> NewMethods + Send + Sync>,
    /// The newest world when the table received them.
    world: u64,
    made: OnceLock<Option<Methods>>,
}

/// Added methods. They are removed when this is dropped.
#[must_use = "the methods are removed when this is dropped"]
pub struct Methods {
    table: Arc<Table>,
    rows: Vec<(Head, Arc<Method>)>,
    world: u64,
    /// Whether a change has hidden them.
    is_hidden: bool,
}

impl Methods {
    /// The world in which they became visible.
    pub fn world(&self) -> u64 {
        self.world
    }

    /// Hides them from threads that enter this world or a later one.
    fn hide(&mut self, world: u64) {
        if !std::mem::replace(&mut self.is_hidden, true) {
            for (_, method) in &self.rows {
                method.last_world.store(world - 1, Ordering::Relaxed); // D3
            }
        }
    }
}

impl fmt::Debug for Methods {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.rows.iter().map(|(_, method)| method.name())).finish()
    }
}

impl Drop for Methods {
    fn drop(&mut self) {
        if self.rows.is_empty() {
            return;
        }
        let worlds = self.table.worlds.clone();
        if !self.is_hidden {
            let changes = worlds.change();
            let world = worlds.newest() + 1;
            self.hide(world);
            worlds.advance(world);
            drop(changes);
        }
        // Host closures and code are dropped outside the lock: their destructors may call back here.
        let buried = self.rows.drain(..).map(|(head, method)| {
            Box::new(Buried { table: self.table.clone(), head, method: Some(method) }) as Retired
        });
        worlds.retire_list.retire_all(buried);
        free(worlds.retire_list.collect());
    }
}

/// A method hidden from threads that enter a world from now on. It leaves its table when no thread can find
/// it.
struct Buried {
    table: Arc<Table>,
    head: Head,
    method: Option<Arc<Method>>,
}

impl RetiredCode for Buried {
    /// A frame in its code belongs to a thread in one of its worlds.
    fn contains_any(&self, _: &[usize]) -> bool {
        false
    }

    fn worlds(&self) -> Option<(u64, u64)> {
        let method = self.method.as_ref()?;
        Some((method.first_world, method.last_world.load(Ordering::Relaxed))) // D3
    }

    fn keeper(&self) -> Option<&dyn Any> {
        self.method.as_ref()?.entry().code().map(|code| -> &dyn Any { &*code.owner })
    }
}

impl Drop for Buried {
    fn drop(&mut self) {
        let Some(method) = self.method.take() else { return };
        let mut lists = self.table.lists.write().unwrap_or_else(PoisonError::into_inner);
        let Some(list) = lists.get(&self.head) else { return };
        method.is_gone.store(true, Ordering::Relaxed); // D4
        let before = match list.without_one() {
            Some(None) => lists.remove(&self.head),
            Some(Some(left)) => lists.insert(self.head.clone(), left),
            None => None,
        };
        drop(lists);
        // Values with destructors are dropped outside the lock.
        drop((before, method));
    }
}

/// The key of methods: the address of the callee's type, or of a callee that is a type, which is odd.
pub(crate) fn key(callee: Object) -> u64 {
    match as_type(callee) {
        Some(of) => of.tag() | 1,
        None => callee.desc().tag(),
    }
}

impl Table {
    /// An identity unique among all live tables of the process, of any runtime: its address.
    pub(crate) fn identity(table: &Arc<Table>) -> usize {
        Arc::as_ptr(table).addr()
    }

    /// A table; with a base it is a program's.
    pub(crate) fn new(worlds: &Arc<Worlds>, base: Option<&Arc<Table>>) -> Arc<Table> {
        let id = {
            let mut changes = worlds.change();
            changes.tables += 1;
            changes.tables
        };
        let (worlds, base, later) = (worlds.clone(), base.cloned(), OnceLock::new());
        Arc::new(Table { id, worlds, base, lists: RwLock::default(), later })
    }

    /// Sets the table's first methods, which `make` makes on demand; `None` if it already has such methods.
    /// `make` must not access tables.
    pub(crate) fn add_later(
        self: &Arc<Self>,
        make: Box<dyn Fn() -> NewMethods + Send + Sync>,
    ) -> Option<LaterMethods> {
        let (table, world) = (Arc::downgrade(self), self.worlds.newest());
        let later = Arc::new(Later { table, make, world, made: OnceLock::new() });
        self.later.set(Arc::downgrade(&later)).ok()?;
        Some(LaterMethods(later))
    }

    /// Makes the deferred methods. Threads that search meanwhile wait.
    fn fill(&self) {
        let Some(later) = self.later.get().and_then(Weak::upgrade) else { return };
        later.made.get_or_init(|| {
            let table = later.table.upgrade()?;
            let new = (later.make)();
            let mut changes = table.worlds.change();
            let rows = table.ranked(&mut changes, new, later.world);
            table.insert(&rows);
            drop(changes);
            Some(Methods { table, rows, world: later.world, is_hidden: false })
        });
    }

    /// New methods, visible from a world on, ranking above all existing ones.
    fn ranked(&self, changes: &mut Changes, new: NewMethods, world: u64) -> Vec<(Head, Arc<Method>)> {
        let origin = match self.base {
            _ if new.is_library => Origin::Library,
            Some(_) => Origin::Program,
            None => Origin::Common,
        };
        let method = |(head, cx, row)| {
            changes.methods += 1;
            (head, Arc::new(Method::new((origin, changes.methods), world, cx, row)))
        };
        new.rows.into_iter().map(method).collect()
    }

    /// Inserts methods into the lists of their callees.
    fn insert(&self, rows: &[(Head, Arc<Method>)]) {
        let mut added: BTreeMap<&Head, Vec<Arc<Method>>> = BTreeMap::new();
        for (head, method) in rows {
            added.entry(head).or_default().push(method.clone());
        }
        let mut lists = self.lists.write().unwrap_or_else(PoisonError::into_inner);
        let mut before = Vec::with_capacity(added.len());
        for (head, added) in added {
            match lists.get_mut(head) {
                Some(list) => {
                    let all: MethodList = list.iter().chain(added).collect();
                    before.push(std::mem::replace(list, all));
                }
                None => drop(lists.insert(head.clone(), added.into_iter().collect())),
            }
        }
        // Lists are dropped outside the lock.
        drop(lists);
    }

    /// Adds methods, after checking their signatures.
    pub(crate) fn add(
        self: &Arc<Self>,
        heap: &Heap,
        cx: &Arc<Context>,
        rows: impl IntoIterator<Item = MethodRow>,
    ) -> Result<Methods, LayoutError> {
        let mut new = NewMethods::default();
        let mut signed = Vec::new();
        for row in rows {
            signed.push(Signed::new(heap, cx, &row)?);
            new.add(cx, row);
        }
        if new.is_empty() {
            let world = self.worlds.newest();
            return Ok(Methods { table: self.clone(), rows: Vec::new(), world, is_hidden: false });
        }
        let (world, added) = self.change(new, &mut [], |_| {});
        let rows = added.into_iter().flat_map(|mut one| std::mem::take(&mut one.rows));
        let rows: Vec<(Head, Arc<Method>)> = rows.collect();
        for ((_, method), signed) in rows.iter().zip(signed) {
            // A thread that computed it concurrently has made the same.
            let _ = method.signed.set(Some(signed));
        }
        Ok(Methods { table: self.clone(), rows, world, is_hidden: false })
    }

    /// Makes the next world, in which `new` is visible and `old` is not. `prepare` is called with its number
    /// first. The result has one element for each new method.
    pub(crate) fn change(
        self: &Arc<Self>,
        new: NewMethods,
        old: &mut [Methods],
        prepare: impl FnOnce(u64),
    ) -> (u64, Vec<Methods>) {
        self.fill();
        let mut changes = self.worlds.change();
        let world = self.worlds.newest() + 1;
        prepare(world);
        let rows = self.ranked(&mut changes, new, world);
        old.iter_mut().for_each(|old| old.hide(world));
        self.insert(&rows);
        self.worlds.advance(world);
        drop(changes);
        let one = |row| Methods { table: self.clone(), rows: vec![row], world, is_hidden: false };
        (world, rows.into_iter().map(one).collect())
    }

    /// The methods of a callee: the program's, and the methods of the runtime's common table.
    fn lists(&self, callee: Object) -> [Option<MethodList>; 2] {
        let Some(head) = Head::of_callee(callee) else { return [None, None] };
        self.fill();
        // Nothing that can panic happens under the lock.
        let of =
            |table: &Table| table.lists.read().unwrap_or_else(PoisonError::into_inner).get(&head).cloned();
        [of(self), self.base.as_deref().and_then(of)]
    }

    /// The method that a call reaches in a world.
    pub(crate) fn find(
        &self,
        heap: &Heap,
        cache: &IsaCache,
        world: u64,
        callee: Object,
        args: &[Object],
    ) -> Result<Option<Arc<Method>>, Ambiguous> {
        let (lists, key) = (self.lists(callee), key(callee));
        let candidates = lists.iter().flatten().flat_map(|list| list.candidates(heap, args.first()));
        let visible = candidates.filter(|method| method.is_visible(world));
        let of_callee = visible.filter(|method| method.is_of(heap, key));
        let fits: Vec<Arc<Method>> = of_callee.filter(|method| method.fits(heap, cache, args)).collect();
        let is_best = |a: &&Arc<Method>| fits.iter().all(|b| a.comes_before(heap, b));
        match (fits.iter().find(is_best), &fits[..]) {
            (Some(best), _) => Ok(Some(best.clone())),
            (None, []) => Ok(None),
            (None, [first, rest @ ..]) => {
                // Two methods in conflict; such a pair exists, otherwise one of them would be the best.
                let pairs = fits.iter().flat_map(|a| fits.iter().map(move |b| (a, b)));
                let clash =
                    pairs.into_iter().find(|(a, b)| !a.comes_before(heap, b) && !b.comes_before(heap, a));
                let (a, b) = clash.unwrap_or((first, rest.first().unwrap_or(first)));
                Err(Ambiguous { first: a.name().to_owned(), second: b.name().to_owned() })
            }
        }
    }

    /// The method with these argument types, or the more general one that `invoke` selects for them.
    pub(crate) fn find_declared(
        &self,
        heap: &Heap,
        world: u64,
        callee: Object,
        args: &[TypeRef],
    ) -> Option<Arc<Method>> {
        let (lists, key) = (self.lists(callee), key(callee));
        let visible = lists.iter().flatten().flat_map(|list| list.iter()).filter(|m| m.is_visible(world));
        let of_callee = visible.filter(|method| method.is_of(heap, key));
        let fits: Vec<Arc<Method>> = of_callee.filter(|method| method.takes(heap, args)).collect();
        let best = fits.iter().find(|a| fits.iter().all(|b| a.comes_before(heap, b)));
        best.cloned()
    }
}

impl Signed {
    fn new(heap: &Heap, cx: &Arc<Context>, row: &MethodRow) -> Result<Signed, LayoutError> {
        let types = &cx.types;
        let signature = match row.rest {
            Some(rest) => types.tuple_vararg(&row.args, rest),
            None => types.tuple(&row.args),
        };
        let desc = |ty| heap.type_object(cx, ty);
        let signature = desc(signature.map_err(|_| LayoutError::TooNested(row.function))?)?;
        let (callee, of_type) = match *types.kind(row.function) {
            TypeKind::TypeOf(of) => (desc(of)?, 1),
            _ => (desc(row.function)?, 0),
        };
        let key = callee.tag() | of_type;
        let args: Box<[TypeRef]> = row.args.iter().copied().map(desc).collect::<Result<_, _>>()?;
        let rest = row.rest.map(desc).transpose()?;
        let (statics, vararg) = (&row.statics, rest.is_some());
        let variables = statics
            .is_open()
            .then(|| Arc::new(Variables { cx: cx.clone(), statics: statics.clone(), vararg }));
        Ok(Signed { key, _callee: callee, args, rest, signature, variables })
    }

    fn count_fits(&self, count: usize) -> bool {
        if self.rest.is_some() { count >= self.args.len() } else { count == self.args.len() }
    }

    fn types(&self) -> impl Iterator<Item = &TypeRef> {
        self.args.iter().chain(self.rest.iter().cycle())
    }
}

impl Method {
    fn new(rank: (Origin, u64), first_world: u64, cx: Arc<Context>, row: MethodRow) -> Method {
        let (last_world, signed) = (AtomicU64::new(u64::MAX), OnceLock::new());
        Method { rank, first_world, last_world, is_gone: AtomicBool::new(false), cx, row, signed }
    }

    pub(crate) fn name(&self) -> &str {
        &self.row.name
    }

    pub(crate) fn entry(&self) -> &MethodEntry {
        &self.row.entry
    }

    fn is_visible(&self, world: u64) -> bool {
        self.first_world <= world && world <= self.last_world.load(Ordering::Relaxed) // D3
    }

    /// The signature as type objects, which are made on the first request.
    fn signed(&self, heap: &Heap) -> Option<&Signed> {
        self.signed.get_or_init(|| Signed::new(heap, &self.cx, &self.row).ok()).as_ref()
    }

    /// The type of the first parameter, if there is one.
    pub(super) fn first_type(&self, heap: &Heap) -> Option<&TypeRef> {
        self.signed(heap)?.args.first()
    }

    fn is_of(&self, heap: &Heap, key: u64) -> bool {
        self.signed(heap).is_some_and(|signed| signed.key == key)
    }

    pub(super) fn fits(&self, heap: &Heap, cache: &IsaCache, args: &[Object]) -> bool {
        self.signed(heap).is_some_and(|signed| {
            signed.count_fits(args.len())
                && args.iter().zip(signed.types()).all(|(&arg, ty)| heap.is_a(Some(cache), arg, ty))
                && signed.variables.as_ref().is_none_or(|variables| variables.bind(heap, args).is_some())
        })
    }

    fn takes(&self, heap: &Heap, args: &[TypeRef]) -> bool {
        self.signed(heap).is_some_and(|signed| {
            signed.count_fits(args.len())
                && args.iter().zip(signed.types()).all(|(arg, ty)| heap.types().is_subtype(arg, ty))
                && signed.variables.as_ref().is_none_or(|variables| variables.take(heap, args))
        })
    }

    /// Whether a call to which both apply prefers this one, or they are the same.
    fn comes_before(&self, heap: &Heap, other: &Method) -> bool {
        let (Some(this), Some(that)) = (self.signed(heap), other.signed(heap)) else { return false };
        let is_subtype = || heap.types().is_subtype(&this.signature, &that.signature);
        match (&this.variables, &that.variables) {
            _ if this.signature == that.signature && this.variables == that.variables => {
                self.rank >= other.rank
            }
            (_, None) => is_subtype(),
            (own, Some(others)) => {
                is_subtype()
                    && match own {
                        Some(own) => others.are_above(own),
                        None => {
                            let (args, rest) = (this.args.iter().cloned(), this.rest.clone());
                            // Two represent any number of further arguments.
                            let all: Vec<TypeRef> =
                                args.chain(rest.iter().cloned()).chain(rest.clone()).collect();
                            others.take(heap, &all)
                        }
                    }
            }
        }
    }
}
