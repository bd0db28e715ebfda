//! Dynamic dispatch of a thread: its world, and its global inline cache.
//!
//! ```text
//!   thread ──►  +0           stamp of the current table and world; 0: no line can hit, all calls use the run time
//!               +8           identity of the current method table; 0 outside of all worlds
//!               +64 · (1+n)  line n  +0   stamp + number of operands
//!                                    +8   address of the boxed entry
//!                                    +16  the tags of the operands, one word each
//! ```
//!
//! **Lines.** Compiled code searches the cache itself: a hash of the tags of callee and arguments selects one
//! of [`LINES`] lines, and if the line has the same stamp and tags, the call goes to its address. Comparing
//! the stamp checks world, table and number of operands at once. One cache serves all calls of the thread,
//! however many methods a call site reaches. `codegen/src/thread.rs` has the same constants; `jit` checks
//! that they are equal.
//!
//! ```text
//!   h = tag 0; for each further tag: h = rotate_left(h, 7) ^ tag
//!   n = (h · MULTIPLIER >> SHIFT) & MASK, which is a multiple of 64 already
//! ```
//!
//! **World.** While a thread runs compiled code it is in a world: the newest one at its outermost entry, or
//! at an `invokelatest`. A stamp identifies a table and a world. The thread is pinned before it enters the
//! world (`retired.rs`), so the code of a line stays as long as the line can hit. This does not hold in a
//! world older than the pin, which `invoke_in_world` enters; there the stamp is 0 and nothing is cached.
//!
//! **Other outcomes.** A hash table holds the outcomes that do not fit a line: for calls with types as
//! operands or with many operands, for host functions, for calls without a method or with ambiguous methods,
//! and for `invoke`s with a signature.

use std::cell::{Cell, RefCell};
use std::mem::offset_of;
use std::sync::{Arc, Weak};

use rustc_hash::FxHashMap;

use crate::heap::{Heap, Object, TypeRef};
use crate::span::Span;

use super::methods::{Ambiguous, Method, MethodTable, Table, key};
use super::names::operator_name;
use super::quick::Operator;
use super::relations::IsaCache;

/// The maximum number of operands, with the callee, of a call that has a line.
pub const LINE_KEYS: usize = 6;
/// The number of lines.
const LINES: usize = 256;
/// Bytes of a line.
const LINE_BYTES: usize = 64;
/// Constant of the hash that selects a line; see the file's header.
pub const LINE_MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;
/// Constant of the hash that selects a line; see the file's header.
pub const LINE_SHIFT: u32 = 50;
/// Constant of the hash that selects a line; see the file's header.
pub const LINE_MASK: u64 = ((LINES - 1) * LINE_BYTES) as u64;
/// Constant of the hash that selects a line; see the file's header.
pub const LINE_ROTATE: u32 = 7;
/// The difference of successive stamps. Greater than the number of operands, which a line adds to its stamp.
const STAMP_STEP: u64 = 8;

/// The maximum number of operands of a call whose outcome is cached.
const MAX_KEYS: usize = 15;
/// The capacity of the table of other outcomes; when it is full, it is cleared.
const MAX_OTHERS: usize = 4096;

/// A line of the cache: the target of a call with these operand types.
#[repr(C, align(64))]
#[derive(Clone, Copy)]
struct Line {
    stamp: u64,
    address: usize,
    keys: [u64; LINE_KEYS],
}

impl Line {
    /// A line that never hits: stamps in use are at least [`STAMP_STEP`].
    const EMPTY: Line = Line { stamp: 0, address: 0, keys: [0; LINE_KEYS] };
}

/// The part read by compiled code. The thread structure has its address.
#[repr(C, align(64))]
pub(crate) struct InlineCache {
    stamp: Cell<u64>,
    /// [`Table::identity`] of the table in use; 0 outside of all worlds.
    table: Cell<usize>,
    lines: [Cell<Line>; LINES],
}

/// Offsets that machine code contains.
pub struct InlineCacheLayout;

impl InlineCacheLayout {
    /// The stamp.
    pub const STAMP: usize = offset_of!(InlineCache, stamp);
    /// The identity of the table in use.
    pub const TABLE: usize = offset_of!(InlineCache, table);
    /// The first line.
    pub const FIRST: usize = offset_of!(InlineCache, lines);
    /// The address of the entry, in a line.
    pub const ADDRESS: usize = offset_of!(Line, address);
    /// The tags, in a line.
    pub const KEYS: usize = offset_of!(Line, keys);
}

const _: () = assert!(size_of::<Line>() == LINE_BYTES && LINE_KEYS < STAMP_STEP as usize);

/// A cached outcome of a call without a line.
enum Found {
    Method(Weak<Method>),
    /// No method applies; the operator that the call falls back to.
    Nothing(Option<Operator>),
    Ambiguous(Ambiguous),
    /// The method of an `invoke` with a signature, and the types in the signature.
    Declared(Weak<Method>, Arc<[TypeRef]>),
}

/// The method of an `invoke` with a signature, and the types in the signature.
pub(crate) type Declared = (Arc<Method>, Arc<[TypeRef]>);

/// Added to the stamp in the keys of an `invoke` with a signature, to distinguish them from keys of calls.
const DECLARED: u64 = STAMP_STEP - 1;

/// A thread's state for dynamic dispatch.
pub(crate) struct Dispatch {
    cache: Box<InlineCache>,
    /// 0 outside of all worlds.
    world: Cell<u64>,
    /// The range of worlds of the entries on the stack, shared with the mutator. It determines which retired
    /// code can be freed.
    span: Arc<Span>,
    /// The table of the innermost entry; outside of all worlds, of the last outermost one.
    table: RefCell<Arc<Table>>,
    /// The table's identity, the world and the stamp of the most recent new stamp. `table` holds that table,
    /// so no other table can get its identity; the identity is 0 if `table` holds another table.
    last: Cell<(usize, u64, u64)>,
    others: RefCell<FxHashMap<Box<[u64]>, Found>>,
}

/// Keeps the thread in a world. Dropping it restores the former world and table.
#[must_use = "the thread leaves the world when this is dropped"]
pub struct InWorld<'t> {
    dispatch: &'t Dispatch,
    stamp: u64,
    identity: usize,
    world: u64,
    span: (u64, u64),
    /// The former table, if different.
    table: Option<Arc<Table>>,
}

impl Drop for InWorld<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        self.dispatch.cache.stamp.set(self.stamp);
        self.dispatch.cache.table.set(self.identity);
        self.dispatch.world.set(self.world);
        self.dispatch.span.set(self.span);
        if let Some(table) = self.table.take() {
            self.dispatch.change_back(table);
        }
    }
}

impl Dispatch {
    /// The offset of the world.
    pub(crate) const WORLD: usize = offset_of!(Dispatch, world);

    /// The state of a thread outside of all worlds.
    pub(crate) fn new(table: Arc<Table>, span: Arc<Span>) -> Dispatch {
        Dispatch {
            cache: Box::new(InlineCache {
                stamp: Cell::new(0),
                table: Cell::new(0),
                lines: [const { Cell::new(Line::EMPTY) }; LINES],
            }),
            world: Cell::new(0),
            span,
            table: RefCell::new(table),
            last: Cell::new((0, 0, 0)),
            others: RefCell::default(),
        }
    }

    /// The part read by compiled code. Its address is fixed while `self` exists.
    pub(crate) fn inline_cache(&self) -> *const InlineCache {
        &raw const *self.cache
    }

    /// Whether the thread is outside all worlds and the last stamp belongs to this table.
    #[inline(always)]
    pub(crate) fn may_begin(&self, table: &MethodTable) -> bool {
        self.world.get() == 0 && self.last.get().0 == Table::identity(&table.shared)
    }

    /// Enters the newest world of a table for which [`Dispatch::may_begin`] holds. The thread must be pinned.
    #[inline(always)]
    pub(crate) fn begin(&self, table: &MethodTable) {
        debug_assert!(Arc::ptr_eq(&self.table.borrow(), &table.shared));
        let world = table.shared.worlds.newest();
        let (of, last_world, last) = self.last.get();
        let stamp = if world == last_world { last } else { self.next_stamp(of, world) };
        let cache: &InlineCache = &self.cache;
        cache.table.set(Table::identity(&table.shared));
        cache.stamp.set(stamp);
        self.world.set(world);
        self.span.begin(world);
    }

    /// Leaves all worlds.
    #[inline(always)]
    pub(crate) fn end(&self) {
        let cache: &InlineCache = &self.cache;
        cache.stamp.set(0);
        cache.table.set(0);
        self.world.set(0);
        self.span.end();
    }

    /// The current method table.
    pub(crate) fn table(&self) -> Arc<Table> {
        self.table.borrow().clone()
    }

    /// The current world; the newest one outside of all worlds.
    pub(crate) fn world(&self) -> u64 {
        match self.world.get() {
            0 => self.table.borrow().worlds.newest(),
            world => world,
        }
    }

    pub(crate) fn is_in_world(&self) -> bool {
        self.world.get() != 0
    }

    /// Enters the newest world of a table; a thread that already runs compiled code of the same table stays in its world.
    /// The thread must be pinned.
    #[inline(always)]
    pub(crate) fn enter(&self, table: &MethodTable, is_outermost: bool) -> InWorld<'_> {
        let (same, new) = {
            let current = self.table.borrow();
            (Arc::ptr_eq(&current, &table.shared), Table::identity(&table.shared))
        };
        let (stamp, identity) = (self.cache.stamp.get(), self.cache.table.get());
        let (world, span) = (self.world.get(), self.span.get());
        let other = if same { None } else { self.change_table(table) };
        if is_outermost || !same || world == 0 {
            self.set_of(new, table.shared.worlds.newest());
        }
        // No panic is possible between the changes above and the guard that undoes them.
        InWorld { dispatch: self, stamp, identity, world, span, table: other }
    }

    /// Changes the current table and returns the former one, to be restored. `None` outside all worlds, where
    /// no table is in use: keeping the new one saves the change at the next entry.
    #[cold]
    fn change_table(&self, table: &MethodTable) -> Option<Arc<Table>> {
        let other = self.table.replace(table.shared.clone());
        (self.world.get() != 0).then_some(other)
    }

    /// Restores the table that [`Dispatch::change_table`] replaced.
    #[cold]
    fn change_back(&self, table: Arc<Table>) {
        self.table.replace(table);
        let (_, world, stamp) = self.last.get();
        self.last.set((0, world, stamp));
    }

    /// Enters the newest world.
    pub(crate) fn latest(&self) -> InWorld<'_> {
        let before = self.before();
        let newest = self.table.borrow().worlds.newest();
        self.set(newest);
        before
    }

    /// Enters `world`, or the newest world if that is older.
    pub(crate) fn at(&self, world: u64) -> InWorld<'_> {
        let before = self.before();
        let newest = self.table.borrow().worlds.newest();
        if world >= newest {
            self.set(newest);
        } else {
            self.cache.stamp.set(0);
            self.be_in(world.max(1));
        }
        before
    }

    #[inline(always)]
    fn before(&self) -> InWorld<'_> {
        InWorld {
            dispatch: self,
            stamp: self.cache.stamp.get(),
            identity: self.cache.table.get(),
            world: self.world.get(),
            span: self.span.get(),
            table: None,
        }
    }

    /// Sets the current world, and includes it in the span.
    #[inline(always)]
    fn be_in(&self, world: u64) {
        self.cache.table.set(Table::identity(&self.table.borrow()));
        self.world.set(world);
        self.span.include(world);
    }

    /// The oldest and the newest world of the entries on the stack; `None` outside of all worlds.
    pub(crate) fn worlds(&self) -> Option<(u64, u64)> {
        self.span.worlds()
    }

    #[inline(always)]
    fn set(&self, world: u64) {
        let identity = Table::identity(&self.table.borrow());
        self.set_of(identity, world);
    }

    /// The stamp of a table in a world: the last stamp if it belongs to both, otherwise a new one.
    #[inline(always)]
    fn stamp_of(&self, identity: usize, world: u64) -> u64 {
        let (last_identity, last_world, last) = self.last.get();
        if (last_identity, last_world) == (identity, world) {
            return last;
        }
        self.next_stamp(identity, world)
    }

    #[inline(always)]
    fn next_stamp(&self, identity: usize, world: u64) -> u64 {
        let stamp = self.last.get().2 + STAMP_STEP;
        self.last.set((identity, world, stamp));
        stamp
    }

    #[inline(always)]
    fn set_of(&self, identity: usize, world: u64) {
        let stamp = self.stamp_of(identity, world);
        self.be_in(world);
        self.cache.stamp.set(stamp);
    }

    /// The method of a call, from the cache or the table.
    pub(crate) fn find(
        &self,
        heap: &Heap,
        isa: &IsaCache,
        objects: &[Object],
    ) -> Result<Option<Arc<Method>>, Ambiguous> {
        let Some((&callee, args)) = objects.split_first() else { return Ok(None) };
        let stamp = self.cache.stamp.get();
        let mut keys = [0; MAX_KEYS + 1];
        let is_cached = match keys.get_mut(..=objects.len()) {
            Some([first, keys @ ..]) if stamp != 0 => {
                *first = stamp;
                keys.iter_mut().zip(objects).for_each(|(slot, &object)| *slot = key(object));
                true
            }
            _ => false,
        };
        if !is_cached {
            return self.table().find(heap, isa, self.world(), callee, args);
        }
        let keys = &keys[..=objects.len()];
        match self.others.borrow().get(keys) {
            Some(Found::Nothing(_)) => return Ok(None),
            Some(Found::Ambiguous(ambiguous)) => return Err(ambiguous.clone()),
            Some(Found::Method(method)) => {
                if let Some(method) = method.upgrade() {
                    self.write_line(&method, keys);
                    return Ok(Some(method));
                }
            }
            // `invoke`s have separate keys.
            Some(Found::Declared(..)) | None => {}
        }
        let answer = self.table().find(heap, isa, self.world(), callee, args);
        let found = match &answer {
            Ok(Some(method)) => {
                self.write_line(method, keys);
                Found::Method(Arc::downgrade(method))
            }
            Ok(None) => Found::Nothing(operator_name(callee).and_then(|name| Operator::from_name(&name))),
            Err(ambiguous) => Found::Ambiguous(ambiguous.clone()),
        };
        self.remember(keys, found);
        answer
    }

    /// The operator that a call without a method falls back to, if cached.
    pub(crate) fn operator(&self, objects: &[Object]) -> Option<Operator> {
        let stamp = self.cache.stamp.get();
        let &[callee, a, b] = objects else { return None };
        if stamp == 0 {
            return None;
        }
        match self.others.borrow().get([stamp, key(callee), key(a), key(b)].as_slice()) {
            Some(&Found::Nothing(operator)) => operator,
            _ => None,
        }
    }

    fn remember(&self, keys: &[u64], found: Found) {
        let mut others = self.others.borrow_mut();
        if others.len() >= MAX_OTHERS {
            others.clear();
        }
        others.insert(keys.into(), found);
    }

    /// The keys of an `invoke` with a signature, given by the tag of its tuple type; `None` where nothing is cached.
    fn declared_keys(&self, callee: Object, signature: u64) -> Option<[u64; 3]> {
        let stamp = self.cache.stamp.get();
        (stamp != 0).then(|| [stamp + DECLARED, key(callee), signature])
    }

    /// The cached method of an `invoke`, and the types in its signature.
    pub(crate) fn declared(&self, callee: Object, signature: u64) -> Option<Declared> {
        let keys = self.declared_keys(callee, signature)?;
        match self.others.borrow().get(keys.as_slice()) {
            Some(Found::Declared(method, types)) => Some((method.upgrade()?, types.clone())),
            _ => None,
        }
    }

    /// Caches the method of an `invoke`.
    pub(crate) fn remember_declared(
        &self,
        callee: Object,
        signature: u64,
        method: &Arc<Method>,
        types: &Arc<[TypeRef]>,
    ) {
        if let Some(keys) = self.declared_keys(callee, signature) {
            self.remember(&keys, Found::Declared(Arc::downgrade(method), types.clone()));
        }
    }

    /// Writes the line of a call, if it fits one. `keys` begins with the stamp.
    fn write_line(&self, method: &Arc<Method>, keys: &[u64]) {
        let (Some(code), [stamp, keys @ ..]) = (method.entry().code(), keys) else { return };
        let mut line = Line { stamp: stamp + keys.len() as u64, address: code.address, keys: [0; LINE_KEYS] };
        let Some(slots) = line.keys.get_mut(..keys.len()) else { return };
        // Tags are even. Odd keys represent types as operands, whose tags are all equal.
        if keys.iter().all(|key| key % 2 == 0) {
            slots.copy_from_slice(keys);
            self.cache.lines[Dispatch::line_of(keys)].set(line);
        }
    }

    fn line_of(keys: &[u64]) -> usize {
        let hash = keys.iter().copied().reduce(|hash, key| hash.rotate_left(LINE_ROTATE) ^ key).unwrap_or(0);
        ((hash.wrapping_mul(LINE_MULTIPLIER) >> LINE_SHIFT) & LINE_MASK) as usize / LINE_BYTES
    }

    /// Whether a call has a line.
    #[cfg(test)]
    pub(crate) fn has_line(&self, objects: &[Object]) -> bool {
        let keys: Vec<u64> = objects.iter().map(|&object| key(object)).collect();
        let line = self.cache.lines[Dispatch::line_of(&keys)].get();
        let stamp = self.cache.stamp.get();
        stamp != 0 && line.stamp == stamp + keys.len() as u64 && line.keys[..keys.len()] == keys
    }
}
