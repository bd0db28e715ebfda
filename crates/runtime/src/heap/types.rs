//! The run-time types of one heap: one description for each type, created on first use.
//!
//! **One type, one description.** Each program has its own context, and several programs may share a heap. A
//! type that mentions no declaration of a program (`Int64`, `Vector{Any}`, `Val{3}`) is the same in all of
//! them: it is translated into the heap's own context, the *base*, and described there. Types of functions
//! are also translated, because module and name identify a function; its methods are in tables. A type that
//! mentions a declaration of a program belongs to the program's context. The heap holds a view of that
//! context, so the context's address stays its key. Hence two types are equal exactly if they have the same
//! description. Relations between two types are decided in the context of the one that is not in the base.
//!
//! **Views.** A view of a context frees all that it holds at once, and a description holds the view that it
//! was made through. So that a type is freed when nothing uses it, the heap has several views of each
//! context:
//!
//! ```text
//!   base      first     fixed types, exceptions, types that routines instantiate: a bounded number    as long as the heap
//!             of texts  per program, the types that its text mentions                                 as long as the program and its types in use
//!             newest    types that programs make at run time                                          a sweep begins another; until its last type is freed
//!   program   own       the types that its text mentions                                              as long as the program and its types
//!             newest    types that programs make at run time                                          as in the base
//! ```
//!
//! A sweep frees types that nothing uses (`census.rs`). A meter counts their size, with the names, and the
//! heap counts it towards its limit before a program makes more (`Heap::count_tables`).
//!
//! | row | operation | order | pairs with | without it |
//! |---|---|---|---|---|
//! | U1 | is_census_wanted, sweeps: load, store, add | Relaxed | – | nothing: a missed census is taken by a later collection; `relations.rs` explains why a cache sees the number |
//!
//! Small `Int64`s, from -512 to 511, and both `Bool`s are boxed once. Their boxes are permanent objects.

use std::collections::{BTreeMap, BTreeSet};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use brolga_ir::Context;
use brolga_ir::heap_abi::{SMALL_INT_BYTES, SMALL_INTS, SMALLEST_INT};
use brolga_ir::meter::Meter;
use brolga_ir::types::{Layout, LayoutError, Type, TypeError, TypeKind, Types};

use super::census::Census;
use super::desc::{Maker, ObjectKind, TypeDesc, TypeRef};
use super::layout::{TAG_BITS, TAG_PERMANENT};
use super::object::Object;
use super::permanent::Words;

/// A permanent box of an `Int64` or a `Bool`.
#[derive(Debug)]
#[repr(C)]
struct Small {
    // Never changed. Atomic because tags and fields of all objects are read as atomic words.
    tag: AtomicU64,
    value: AtomicI64,
}

const _: () = assert!(size_of::<Small>() == SMALL_INT_BYTES, "compiled code goes from one box to another");

/// All run-time types of one heap.
#[derive(Debug)]
pub(crate) struct RuntimeTypes {
    maker: Maker,
    /// The first view of the base.
    base: Arc<Context>,
    string: TypeRef,
    symbol: TypeRef,
    module: TypeRef,
    weak: TypeRef,
    datatype: TypeRef,
    kinds: [TypeRef; KINDS.len()],
    int64: TypeRef,
    float64: TypeRef,
    common: OnceLock<CommonTypes>,
    /// The types with the same number in every context, indexed by it and filled on request: no sweep removes
    /// them.
    fixed: [OnceLock<TypeRef>; FIXED_TYPES],
    by_type: Mutex<ByType>,
    small_ints: Box<[Small]>,
    bools: Box<[Small]>,
    /// Whether the next full collection takes a census.
    is_census_wanted: AtomicBool,
    /// The number of sweeps that removed types.
    sweeps: Arc<AtomicU64>,
}

/// The types of types that are not `DataType`s.
const KINDS: [Type; 3] = [Type::UNION, Type::UNION_ALL, Type::TYPEOF_BOTTOM];

/// The number of types with the same number in every context.
const FIXED_TYPES: usize = Type::TOKEN.index() + 1;

/// Types that routines instantiate, found without a search.
#[derive(Debug)]
pub(crate) struct CommonTypes {
    /// `Memory{UInt8}`.
    pub(crate) bytes: TypeRef,
    /// `Vector{UInt8}`.
    pub(crate) byte_vector: TypeRef,
    /// `Ptr{Nothing}`.
    pub(crate) address: TypeRef,
}

impl CommonTypes {
    fn new(types: &RuntimeTypes) -> Result<CommonTypes, LayoutError> {
        let base = &types.base;
        let make = |ty: Result<Type, TypeError>| {
            types.type_object(base, ty.map_err(|_| LayoutError::Unbounded(Type::UINT8))?)
        };
        Ok(CommonTypes {
            bytes: make(base.types.memory(Type::UINT8))?,
            byte_vector: make(base.types.array(Type::UINT8, 1))?,
            address: make(base.types.ptr(Type::NOTHING))?,
        })
    }
}

/// The smallest number of types at which a sweep is due.
const MIN_TYPES_TO_SWEEP: usize = 2048;

/// No sweep is due while the heap has fewer types than one for this many live bytes, because a census visits
/// all live objects. A type with its part of the context takes about a quarter of this.
const LIVE_BYTES_PER_TYPE: usize = 4096;

/// Types removed by sweeps. Dropping this frees them, which must wait until no thread has their addresses.
#[derive(Default, Debug)]
pub(crate) struct Unused {
    types: Vec<TypeRef>,
    boxes: Vec<Words>,
}

impl Unused {
    pub(crate) fn is_empty(&self) -> bool {
        self.types.is_empty() && self.boxes.is_empty()
    }
}

#[derive(Default, Debug)]
struct ByType {
    /// By the [address](Context::address) of the context (0: the base) and the type. A type of the base also
    /// has a row for each context that it was translated from.
    types: BTreeMap<(usize, Type), Row>,
    /// The heap's views of the contexts of programs, which the descriptions hold.
    contexts: BTreeMap<usize, Views>,
    /// The newest view of the base.
    newest: Option<Arc<Context>>,
    /// The number of types at which the next sweep is due.
    sweep_at: usize,
    /// The meter's count after the last sweep, once the unused types are freed.
    swept_bytes: usize,
    unused: Unused,
}

#[derive(Debug)]
struct Row {
    ty: TypeRef,
    /// Whether code of the program has the address: then the type stays as long as the context.
    is_in_code: bool,
}

/// The heap's views for one program.
#[derive(Clone, Debug)]
struct Views {
    own: Arc<Context>,
    newest: Option<Arc<Context>>,
    /// The view of the base for types that the program's text mentions.
    of_text: Arc<Context>,
}

impl ByType {
    /// The rows of descriptions that belong to a context.
    fn own_rows(&self, at: usize) -> impl Iterator<Item = &Row> {
        let rows = self.types.range((at, Type::BOTTOM)..(at + 1, Type::BOTTOM));
        rows.map(|(_, row)| row).filter(move |row| is_home(at, &row.ty))
    }

    /// Whether a program's context and its types are unused.
    fn is_unused(&self, at: usize, census: &Census) -> bool {
        let Some(Views { own, .. }) = self.contexts.get(&at) else { return false };
        // The heap's views, with the references to them from rows of the table.
        let mut views = BTreeMap::from([(Arc::as_ptr(own).addr(), (own, 1))]);
        for row in self.own_rows(at) {
            let cx = row.ty.context();
            views.entry(Arc::as_ptr(cx).addr()).or_insert((cx, 0)).1 += 1;
        }
        let holders = Holders::of(self.own_rows(at).map(|row| &row.ty));
        own.views() == views.len()
            && views.values().all(|&(cx, count)| Arc::strong_count(cx) == count)
            && self.own_rows(at).all(|row| holders.are_all_of(&row.ty) && !census.has(&row.ty))
    }

    /// Removes and returns the unused types of all contexts.
    fn take_unused_types(&mut self, census: &Census) -> Vec<TypeRef> {
        let may_go = |row: &Row| !row.is_in_code && !census.has(&row.ty);
        // Rows that only shorten look-ups do not count as users.
        self.types.retain(|&(at, _), row| row.is_in_code || is_home(at, &row.ty));
        let rows = || self.types.values().filter(|row| may_go(row)).map(|row| &row.ty);
        let mut holders = Holders::of(rows());
        for ty in rows().filter(|ty| !holders.are_all_of(ty)).collect::<Vec<_>>() {
            holders.release(ty);
        }
        let taken = self.types.extract_if(.., |_, row| may_go(row) && holders.are_all_of(&row.ty));
        taken.map(|(_, row)| row.ty).collect()
    }
}

/// Whether a description belongs to the context of its row (0: the base).
fn is_home(at: usize, ty: &TypeRef) -> bool {
    at == 0 || ty.context().address() == at
}

/// The number of references to each description from rows of the table, and from arrays, which hold their
/// `Memory`.
struct Holders(BTreeMap<u64, usize>);

impl Holders {
    /// The references from rows and arrays to descriptions that have one row each.
    fn of<'a>(rows: impl Iterator<Item = &'a TypeRef>) -> Holders {
        let rows: Vec<&TypeRef> = rows.collect();
        let mut holders = Holders(rows.iter().map(|ty| (ty.tag(), 1)).collect());
        for memory in rows.into_iter().filter_map(memory_of) {
            holders.0.entry(memory.tag()).and_modify(|count| *count += 1);
        }
        holders
    }

    /// Discounts an array that stays.
    fn release(&mut self, ty: &TypeRef) {
        if let Some(memory) = memory_of(ty) {
            self.0.entry(memory.tag()).and_modify(|count| *count -= 1);
        }
    }

    /// Whether a description has no other references.
    fn are_all_of(&self, ty: &TypeRef) -> bool {
        self.0.get(&ty.tag()) == Some(&ty.holders())
    }
}

fn memory_of(ty: &TypeRef) -> Option<&TypeRef> {
    match ty.kind() {
        ObjectKind::Array { memory, .. } => Some(memory),
        _ => None,
    }
}

impl RuntimeTypes {
    pub(crate) fn new() -> RuntimeTypes {
        let meter = Arc::default();
        let base = Context::metered(&meter);
        let maker = Maker { owner: Arc::new(()), meter };
        let fixed = |ty, kind| maker.fixed(&base, ty, kind);
        let datatype = TypeRef::new(fixed(Type::DATATYPE, ObjectKind::DataType), None);
        let make = |desc| TypeRef::new(desc, Some(datatype.tag()));
        let bits = |bytes| {
            let layout = Layout { size: bytes, align: bytes, fields: Box::new([]), pointers: Arc::default() };
            ObjectKind::Struct(layout)
        };
        let int64 = make(fixed(Type::INT64, bits(8)));
        let bool = make(fixed(Type::BOOL, bits(1)));
        let small = |ty: &TypeRef, value: i64| Small {
            tag: AtomicU64::new(ty.tag() | TAG_PERMANENT),
            value: AtomicI64::new(value),
        };
        let types = RuntimeTypes {
            small_ints: (SMALLEST_INT..).take(SMALL_INTS).map(|value| small(&int64, value)).collect(),
            // The value is one byte at the address of the word.
            bools: [0i64, 1i64.to_le()].into_iter().map(|value| small(&bool, value)).collect(),
            string: make(fixed(Type::STRING, ObjectKind::String)),
            symbol: make(fixed(Type::SYMBOL, ObjectKind::Symbol)),
            module: make(fixed(Type::MODULE, ObjectKind::Module)),
            weak: make(maker.weak(&base)),
            kinds: KINDS.map(|kind| make(fixed(kind, ObjectKind::DataType))),
            float64: make(fixed(Type::FLOAT64, bits(8))),
            int64,
            datatype,
            common: OnceLock::new(),
            fixed: [const { OnceLock::new() }; FIXED_TYPES],
            by_type: Mutex::default(),
            is_census_wanted: AtomicBool::new(false),
            sweeps: Arc::default(),
            maker,
            base,
        };
        let RuntimeTypes { string, symbol, module, datatype, kinds, int64, float64, .. } = &types;
        let known = [string, symbol, module, datatype, int64, float64, &bool].into_iter().chain(kinds);
        let row = |ty: &TypeRef| Row { ty: ty.clone(), is_in_code: false };
        let known = known.filter_map(|desc| Some(((0, desc.ty()?), row(desc)))).collect();
        types.lock().types = known;
        types
    }

    /// Whether the number of types has doubled since the last sweep and is large relative to the live bytes
    /// of the heap, all of which a census visits, or whether all tables take more than a quarter of `limit`,
    /// and an eighth of it more than after the last sweep. If so, makes the next full collection take a
    /// census, and doubles the threshold.
    pub(crate) fn is_sweep_due(&self, live_bytes: usize, limit: Option<usize>) -> bool {
        let mut known = self.lock();
        let bytes = self.meter().bytes();
        let are_many =
            known.types.len() >= known.sweep_at.max(MIN_TYPES_TO_SWEEP).max(live_bytes / LIVE_BYTES_PER_TYPE);
        let is_due =
            are_many || limit.is_some_and(|limit| bytes > (limit / 4).max(known.swept_bytes + limit / 8));
        if is_due {
            // If no sweep follows, the next one is due when the number has doubled again.
            known.sweep_at = 2 * known.types.len();
            known.swept_bytes = bytes;
            self.is_census_wanted.store(true, Ordering::Relaxed); // U1
        }
        is_due
    }

    /// Makes the next full collection take a census. The thread that takes the call's exception requests that
    /// collection.
    pub(crate) fn want_sweep(&self) {
        self.is_census_wanted.store(true, Ordering::Relaxed); // U1
    }

    /// Whether the next full collection takes a census.
    pub(crate) fn wants_census(&self) -> bool {
        self.is_census_wanted.load(Ordering::Relaxed) // U1
    }

    /// Cancels the census of the next collection.
    pub(crate) fn end_census(&self) {
        self.is_census_wanted.store(false, Ordering::Relaxed); // U1
    }

    /// The number of sweeps that removed types. Tables with addresses of types drop entries from before the
    /// last one.
    pub(crate) fn sweeps(&self) -> &Arc<AtomicU64> {
        &self.sweeps
    }

    /// Takes the unused types of the last sweep.
    pub(crate) fn take_swept(&self) -> Unused {
        std::mem::take(&mut self.lock().unused)
    }

    /// Removes the unused types (`census.rs`). The world is stopped. `take_boxes` removes the boxes of types
    /// with these tags.
    pub(super) fn take_unused(&self, census: &Census, take_boxes: impl FnOnce(&BTreeSet<u64>) -> Vec<Words>) {
        self.end_census();
        let known = &mut *self.lock();
        // Users have their own references to it.
        known.newest = None;
        known.contexts.values_mut().for_each(|views| views.newest = None);
        let contexts: Vec<usize> =
            known.contexts.keys().copied().filter(|&at| known.is_unused(at, census)).collect();
        let mut gone = Vec::new();
        for at in contexts {
            let taken = known.types.extract_if((at, Type::BOTTOM)..(at + 1, Type::BOTTOM), |_, _| true);
            gone.extend(taken.map(|(_, row)| row.ty).filter(|ty| is_home(at, ty)));
            known.contexts.remove(&at);
        }
        gone.extend(known.take_unused_types(census));
        known.sweep_at = 2 * known.types.len();
        let freed: usize = gone.iter().map(|ty| ty.table_bytes()).sum();
        known.swept_bytes = self.meter().bytes().saturating_sub(freed);
        if !gone.is_empty() {
            let tags = gone.iter().map(|ty| ty.tag()).collect();
            known.unused.boxes.extend(take_boxes(&tags));
            known.unused.types.extend(gone);
            self.sweeps.fetch_add(1, Ordering::Relaxed); // U1
        }
    }

    /// The meter of names, types and permanent objects of the heap.
    pub(crate) fn meter(&self) -> &Arc<Meter> {
        &self.maker.meter
    }

    pub(crate) fn owner(&self) -> &Arc<()> {
        &self.maker.owner
    }

    /// The base context, for a bounded number of types: whatever is looked up through this view stays.
    pub(crate) fn base(&self) -> &Arc<Context> {
        &self.base
    }

    /// The newest view of a context, for types made at run time.
    pub(crate) fn newest(&self, cx: &Context) -> Arc<Context> {
        let mut known = self.lock();
        let newest = match self.key(cx) {
            0 => &mut known.newest,
            at => &mut self.views(&mut known, at, cx).newest,
        };
        newest.get_or_insert_with(|| cx.metered_view(self.meter())).clone()
    }

    /// The heap's views of a program's context.
    fn views<'k>(&self, known: &'k mut ByType, at: usize, cx: &Context) -> &'k mut Views {
        let view = |cx: &Context| cx.metered_view(self.meter());
        let new = || Views { own: view(cx), newest: None, of_text: view(&self.base) };
        known.contexts.entry(at).or_insert_with(new)
    }

    /// The first part of the keys of a context's rows.
    fn key(&self, cx: &Context) -> usize {
        if cx.is_same(&self.base) { 0 } else { cx.address() }
    }

    pub(crate) fn string(&self) -> &TypeRef {
        &self.string
    }

    pub(crate) fn symbol(&self) -> &TypeRef {
        &self.symbol
    }

    pub(crate) fn module(&self) -> &TypeRef {
        &self.module
    }

    pub(crate) fn weak(&self) -> &TypeRef {
        &self.weak
    }

    /// Types that are found without a search.
    pub(crate) fn common(&self) -> Result<&CommonTypes, LayoutError> {
        match self.common.get() {
            Some(known) => Ok(known),
            None => {
                let made = CommonTypes::new(self)?;
                Ok(self.common.get_or_init(|| made))
            }
        }
    }

    pub(crate) fn int64(&self) -> &TypeRef {
        &self.int64
    }

    pub(crate) fn float64(&self) -> &TypeRef {
        &self.float64
    }

    /// The description of a type with instances.
    pub(crate) fn describe(&self, cx: &Arc<Context>, ty: Type) -> Result<TypeRef, LayoutError> {
        let desc = self.type_object(cx, ty)?;
        if desc.has_instances() { Ok(desc) } else { Err(LayoutError::NotConcrete(ty)) }
    }

    /// The description of any type.
    pub(crate) fn type_object(&self, cx: &Arc<Context>, ty: Type) -> Result<TypeRef, LayoutError> {
        let Some(fixed) = self.fixed.get(ty.index()) else {
            return self.searched(cx, ty, self.key(cx));
        };
        match fixed.get() {
            Some(known) => Ok(known.clone()),
            None => {
                let found = self.searched(cx, ty, 0)?;
                Ok(fixed.get_or_init(|| found).clone())
            }
        }
    }

    /// The description of any type, for code that holds its address while the program's context is in use.
    pub(crate) fn in_code(&self, cx: &Arc<Context>, ty: Type) -> Result<TypeRef, LayoutError> {
        let found = self.type_object(cx, ty)?;
        if ty.index() < FIXED_TYPES {
            return Ok(found);
        }
        let mut known = self.lock();
        let row = known.types.entry((self.key(cx), ty));
        row.or_insert_with(|| Row { ty: found.clone(), is_in_code: true }).is_in_code = true;
        Ok(found)
    }

    /// The description of a type of the base (context 0) or of a program's context, from the map.
    fn searched(&self, cx: &Arc<Context>, ty: Type, context: usize) -> Result<TypeRef, LayoutError> {
        let mut known = self.lock();
        if let Some(row) = known.types.get(&(context, ty)) {
            return Ok(row.ty.clone());
        }
        if context == 0 {
            drop(known);
            // A type with the same number everywhere is described in the first view.
            return self.make(if cx.is_same(&self.base) { cx } else { &self.base }, 0, ty);
        }
        let is_of_heap = cx.is_metered_by(self.meter());
        let Views { own, of_text, .. } = self.views(&mut known, context, cx).clone();
        drop(known);
        // Descriptions hold a view of the heap's, not the view of the program that first needed them.
        let (own, base) = if is_of_heap { (cx, self.newest(&self.base)) } else { (&own, of_text) };
        match translate(&cx.types, &base.types, ty) {
            Some(portable) => {
                let ty_of_base = self.type_object(&base, portable)?;
                let row = || Row { ty: ty_of_base, is_in_code: false };
                Ok(self.lock().types.entry((context, ty)).or_insert_with(row).ty.clone())
            }
            None => self.make(own, context, ty),
        }
    }

    fn make(&self, cx: &Arc<Context>, context: usize, ty: Type) -> Result<TypeRef, LayoutError> {
        // Without the lock, because an array describes its `Memory`. If two threads describe a type, the
        // first entry wins.
        let made = self.maker.describe(cx, ty, |memory| self.describe(cx, memory))?;
        let kind = cx.types.type_of_type(ty);
        let of = KINDS.iter().position(|&of| of == kind).map_or(&self.datatype, |n| &self.kinds[n]);
        let row = || Row { ty: TypeRef::new(made, Some(of.tag())), is_in_code: false };
        Ok(self.lock().types.entry((context, ty)).or_insert_with(row).ty.clone())
    }

    fn lock(&self) -> MutexGuard<'_, ByType> {
        // A panic under this lock cannot leave the maps half changed.
        self.by_type.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The described type, in `cx`; `None` if it belongs to another program.
    pub(crate) fn type_in(&self, desc: &TypeDesc, cx: &Arc<Context>) -> Option<Type> {
        let ty = desc.ty()?;
        if desc.context().is_same(cx) || ty.index() <= Type::TOKEN.index() {
            return Some(ty);
        }
        let of_base = desc.context().is_same(&self.base);
        of_base.then(|| translate(&desc.context().types, &cx.types, ty)).flatten()
    }

    /// The context in which all these types can be expressed, if they belong to one program: its context, or the base.
    pub(crate) fn context_of<'a>(&self, descs: impl IntoIterator<Item = &'a TypeDesc>) -> Arc<Context> {
        let found = descs.into_iter().map(TypeDesc::context).find(|cx| !cx.is_same(&self.base));
        self.newest(found.unwrap_or(&self.base))
    }

    /// A context that has both types, and the types in it; `None` if they belong to two programs.
    pub(crate) fn in_common(&self, a: &TypeDesc, b: &TypeDesc) -> Option<(Arc<Context>, Type, Type)> {
        let cx = self.context_of([a, b]);
        let (a, b) = (self.type_in(a, &cx)?, self.type_in(b, &cx)?);
        Some((cx, a, b))
    }

    /// Whether `a <: b`.
    pub(crate) fn is_subtype(&self, a: &TypeDesc, b: &TypeDesc) -> bool {
        std::ptr::eq(a, b) || self.in_common(a, b).is_some_and(|(cx, a, b)| cx.types.is_subtype(a, b))
    }

    /// Whether the type object `of` is an instance of `b`: `Type{of} <: b`.
    pub(crate) fn is_type_of(&self, of: &TypeDesc, b: &TypeDesc) -> bool {
        let Some((cx, of, b)) = self.in_common(of, b) else { return false };
        cx.types.type_of(of).is_ok_and(|of| cx.types.is_subtype(of, b))
    }

    /// The only object of a type; `None` if it has none or several.
    pub(crate) fn instance(&self, desc: &TypeDesc) -> Option<Object> {
        match *desc.context().types.kind(desc.ty()?) {
            TypeKind::TypeOf(of) => self.type_object(desc.context(), of).ok().map(|of| of.object()),
            _ => desc.instance(),
        }
    }

    /// The permanent box of a small integer.
    pub(crate) fn small_int(&self, value: i64) -> Option<Object> {
        let index = usize::try_from(value.checked_sub(SMALLEST_INT)?).ok()?;
        boxed(&self.small_ints, index)
    }

    /// The box of a `Bool`.
    pub(crate) fn boxed_bool(&self, value: bool) -> Option<Object> {
        boxed(&self.bools, usize::from(value))
    }

    /// A permanent object for places that need an arbitrary object. It is the type object `DataType`, not
    /// Julia's `nothing`.
    pub(crate) fn nothing(&self) -> Object {
        self.datatype.object()
    }

    /// The type whose objects have this tag, in `cx`. A linear search.
    pub(crate) fn type_of_tag(&self, tag: u64, cx: &Arc<Context>) -> Option<Type> {
        let found = self.lock().types.values().find(|row| row.ty.tag() == tag & !TAG_BITS)?.ty.clone();
        self.type_in(&found, cx)
    }

    /// Whether a type has this tag. A linear search.
    pub(crate) fn has_tag(&self, tag: u64) -> bool {
        let known = self.lock();
        [&self.weak]
            .into_iter()
            .chain(known.types.values().map(|row| &row.ty))
            .any(|desc| desc.tag() == tag & !TAG_BITS)
    }
}

fn boxed(table: &[Small], index: usize) -> Option<Object> {
    let value = NonNull::from(&table.get(index)?.value);
    // SAFETY: a permanent object: a tag word followed by a value, both of which live as long as the heap.
    Some(unsafe { Object::from_pointer(NonNull::from(table).cast::<u8>().with_addr(value.addr())) })
}

/// Translates a type from one table to another; `None` if it mentions a declaration of a program. Recursion follows the
/// nesting of types, which the table bounds.
pub(crate) fn translate(from: &Types, to: &Types, ty: Type) -> Option<Type> {
    translate_with(from, to, ty, false)
}

/// Like [`translate`]; `bound` inside a `UnionAll`, which binds the parameters.
fn translate_with(from: &Types, to: &Types, ty: Type, bound: bool) -> Option<Type> {
    let one = |ty: Type| translate_with(from, to, ty, bound);
    let all = |list: &[Type]| list.iter().map(|&ty| one(ty)).collect::<Option<Vec<_>>>();
    let name = |name| to.names().intern(from.names().text(name));
    match from.kind(ty) {
        TypeKind::Bottom | TypeKind::Any | TypeKind::Low(_) | TypeKind::Token => Some(ty),
        TypeKind::Nominal { decl, params } if decl.is_builtin() => to.nominal(*decl, &all(params)?).ok(),
        TypeKind::Generic(decl) if decl.is_builtin() => to.nominal(*decl, &[]).ok(),
        TypeKind::Function(function) => {
            Some(to.function_named(function.taken_over(from.names(), to.names())))
        }
        TypeKind::Param(n) if bound => Some(to.param(*n)),
        TypeKind::Nominal { .. } | TypeKind::Generic(_) | TypeKind::Param(_) => None,
        TypeKind::Tuple { elems, vararg: None } => to.tuple(&all(elems)?).ok(),
        TypeKind::Tuple { elems, vararg: Some(rest) } => to.tuple_vararg(&all(elems)?, one(*rest)?).ok(),
        TypeKind::NamedTuple { names, tuple } => {
            let names: Vec<_> = names.iter().map(|&n| name(n)).collect();
            to.named_tuple(&names, one(*tuple)?).ok()
        }
        TypeKind::Union(members) => to.union(&all(members)?).ok(),
        TypeKind::TypeOf(of) => to.type_of(one(*of)?).ok(),
        TypeKind::Int(value) => Some(to.int(*value)),
        TypeKind::Sym(value) => Some(to.sym(name(*value))),
        TypeKind::Bits { ty, bits } => Some(to.bits_value(one(*ty)?, *bits)),
        TypeKind::Values(elems) => to.tuple_value(&all(elems)?).ok(),
        TypeKind::NTuple { count, elem } if bound => to.ntuple(one(*count)?, one(*elem)?).ok(),
        TypeKind::NTuple { .. } => None,
        TypeKind::UnionAll { bounds, body } => {
            let inner = |ty: Type| translate_with(from, to, ty, true);
            let bounds: Option<Vec<(Type, Type)>> =
                bounds.iter().map(|&(lower, upper)| Some((inner(lower)?, inner(upper)?))).collect();
            to.union_all(&bounds?, inner(*body)?).ok()
        }
    }
}
