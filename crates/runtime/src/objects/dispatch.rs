//! Where the calls of a thread go: the world that it is in, and what it remembers.
//!
//! ```text
//!   thread ──►  +0           stamp: what the lines of this table and this world begin with; 0: ask the run time
//!               +8           identity of the table that calls look in; 0 outside of all worlds
//!               +64 · (1+n)  line n  +0   stamp + number of operands
//!                                    +8   address of the boxed entry
//!                                    +16  the tags of the operands, as many as there are
//! ```
//!
//! **Lines.** Compiled code looks a call up by itself: the tags of the callee and the arguments choose one line out of
//! [`LINES`], and if the line has the same stamp and the same tags, the call goes to its address. So one comparison says that
//! neither the world nor the table has changed, and one cache serves all calls of the thread, however many methods each
//! reaches. `codegen/src/thread.rs` has the same numbers; `jit` holds them against each other.
//!
//! ```text
//!   h = tag 0; for each further tag: h = rotate_left(h, 7) ^ tag
//!   n = (h · MULTIPLIER >> SHIFT) & MASK, which is a multiple of 64 already
//! ```
//!
//! **World.** A thread is in a world while it runs compiled code: the newest one of the moment in which its outermost entry was
//! made, or that of an `invokelatest`. Its entries hold for one table in one world, which have one stamp. The
//! thread is pinned at the same time (`retired.rs`), so the code behind a line stays for as long as the line can be hit. Only in a world that
//! is older than the pin, which `invoke_in_world` enters, that is not so; there nothing is remembered.
//!
//! **Others.** What lines cannot hold is in a table of its own: types as operands, many operands, functions of the host, calls that
//! no method fits, ambiguous calls, and `invoke`s with a signature.

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

/// The most operands, with the callee, of a call that has a line.
pub const LINE_KEYS: usize = 6;
/// How many lines there are.
const LINES: usize = 256;
/// Bytes of a line.
const LINE_BYTES: usize = 64;
/// One of the constants by which compiled code finds its line; the header of the file says how.
pub const LINE_MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;
/// One of the constants by which compiled code finds its line; the header of the file says how.
pub const LINE_SHIFT: u32 = 50;
/// One of the constants by which compiled code finds its line; the header of the file says how.
pub const LINE_MASK: u64 = ((LINES - 1) * LINE_BYTES) as u64;
/// One of the constants by which compiled code finds its line; the header of the file says how.
pub const LINE_ROTATE: u32 = 7;
/// From one stamp to the next: the number of operands fits between.
const STAMP_STEP: u64 = 8;

/// The most operands of a call that is remembered.
const MOST: usize = 15;
/// Other calls than these many are forgotten together.
const OTHERS: usize = 4096;

/// Where a call of operands with certain types goes.
#[repr(C, align(64))]
#[derive(Clone, Copy)]
struct Line {
    stamp: u64,
    address: usize,
    keys: [u64; LINE_KEYS],
}

impl Line {
    /// No stamp is 0, and none is the number of operands alone.
    const EMPTY: Line = Line { stamp: 0, address: 0, keys: [0; LINE_KEYS] };
}

/// The part that compiled code reads. The thread has its address.
#[repr(C, align(64))]
pub(crate) struct Lines {
    stamp: Cell<u64>,
    /// [`Table::identity`] of the table in use; 0 outside of all worlds.
    table: Cell<usize>,
    lines: [Cell<Line>; LINES],
}

/// Offsets that machine code contains.
pub struct LinesLayout;

impl LinesLayout {
    /// The stamp.
    pub const STAMP: usize = offset_of!(Lines, stamp);
    /// The identity of the table in use.
    pub const TABLE: usize = offset_of!(Lines, table);
    /// The first line.
    pub const FIRST: usize = offset_of!(Lines, lines);
    /// The address of the entry, in a line.
    pub const ADDRESS: usize = offset_of!(Line, address);
    /// The tags, in a line.
    pub const KEYS: usize = offset_of!(Line, keys);
}

const _: () = assert!(size_of::<Line>() == LINE_BYTES && LINE_KEYS < STAMP_STEP as usize);

/// The outcome of a call without a line.
enum Found {
    Method(Weak<Method>),
    /// No method takes it; the operator that the callee is then.
    Nothing(Option<Operator>),
    Ambiguous(Ambiguous),
    /// Of an `invoke` with a signature: the method, and the types in the signature.
    Declared(Weak<Method>, Arc<[TypeRef]>),
}

/// A method that an `invoke` goes to, and the types in its signature.
pub(crate) type Declared = (Arc<Method>, Arc<[TypeRef]>);

/// The distance between the stamp of an `invoke` with a signature and that of a call.
const DECLARED: u64 = STAMP_STEP - 1;

/// A thread's state for its calls.
pub(crate) struct Dispatch {
    lines: Box<Lines>,
    /// 0 outside of all worlds.
    world: Cell<u64>,
    /// The worlds that entries on the stack are in. The thread's part of the heap shows them to those who retire code.
    span: Arc<Span>,
    /// That of the last outermost entry, or of the innermost.
    table: RefCell<Arc<Table>>,
    /// The table and the world that have the last stamp, and that stamp.
    last: Cell<(u64, u64, u64)>,
    others: RefCell<FxHashMap<Box<[u64]>, Found>>,
}

/// The thread is in a world until this is dropped; then it is where it was before.
#[must_use = "the thread leaves the world when this is dropped"]
pub struct InWorld<'t> {
    dispatch: &'t Dispatch,
    stamp: u64,
    identity: usize,
    world: u64,
    span: (u64, u64),
    /// If it was another one.
    table: Option<Arc<Table>>,
}

impl Drop for InWorld<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        self.dispatch.lines.stamp.set(self.stamp);
        self.dispatch.lines.table.set(self.identity);
        self.dispatch.world.set(self.world);
        self.dispatch.span.set(self.span);
        if let Some(table) = self.table.take() {
            self.dispatch.table.replace(table);
        }
    }
}

impl Dispatch {
    /// Where the world is.
    pub(crate) const WORLD: usize = offset_of!(Dispatch, world);

    /// Of a thread that will call methods of this table first.
    pub(crate) fn new(table: Arc<Table>, span: Arc<Span>) -> Dispatch {
        Dispatch {
            lines: Box::new(Lines {
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

    /// The part that compiled code reads; it stays in place for as long as this.
    pub(crate) fn lines(&self) -> *const Lines {
        &raw const *self.lines
    }

    /// The table that calls go to.
    pub(crate) fn table(&self) -> Arc<Table> {
        self.table.borrow().clone()
    }

    /// The world that the thread is in; the newest one if it is in none.
    pub(crate) fn world(&self) -> u64 {
        match self.world.get() {
            0 => self.table.borrow().worlds.newest(),
            world => world,
        }
    }

    pub(crate) fn is_in_world(&self) -> bool {
        self.world.get() != 0
    }

    /// Enters the newest world of a table. A thread that runs compiled code of the same table stays in its world. The
    /// thread has been pinned before.
    #[inline(always)]
    pub(crate) fn enter(&self, table: &MethodTable, is_outermost: bool) -> InWorld<'_> {
        let (same, id) = {
            let current = self.table.borrow();
            (Arc::ptr_eq(&current, &table.shared), table.shared.id)
        };
        let (stamp, identity) = (self.lines.stamp.get(), self.lines.table.get());
        let (world, span) = (self.world.get(), self.span.get());
        let other = if same { None } else { self.change_table(table) };
        if is_outermost || !same || world == 0 {
            self.set_of(id, table.shared.worlds.newest());
        }
        // Nothing unwinds from here on, so the guard is built where it is used.
        InWorld { dispatch: self, stamp, identity, world, span, table: other }
    }

    /// Lets calls go to another table. The one before comes back, unless the thread is outside of all worlds: there no table is in use, and the
    /// next entry may find its own still here.
    #[cold]
    fn change_table(&self, table: &MethodTable) -> Option<Arc<Table>> {
        let other = self.table.replace(table.shared.clone());
        (self.world.get() != 0).then_some(other)
    }

    /// Enters the newest world.
    pub(crate) fn latest(&self) -> InWorld<'_> {
        let before = self.before();
        let newest = self.table.borrow().worlds.newest();
        self.set(newest);
        before
    }

    /// Enters a world that there has been; the newest one if there has not.
    pub(crate) fn at(&self, world: u64) -> InWorld<'_> {
        let before = self.before();
        let newest = self.table.borrow().worlds.newest();
        if world >= newest {
            self.set(newest);
        } else {
            self.lines.stamp.set(0);
            self.be_in(world.max(1));
        }
        before
    }

    #[inline(always)]
    fn before(&self) -> InWorld<'_> {
        InWorld {
            dispatch: self,
            stamp: self.lines.stamp.get(),
            identity: self.lines.table.get(),
            world: self.world.get(),
            span: self.span.get(),
            table: None,
        }
    }

    /// Calls are made in this world until the entry is left.
    #[inline(always)]
    fn be_in(&self, world: u64) {
        self.lines.table.set(Table::identity(&self.table.borrow()));
        self.world.set(world);
        self.span.include(world);
    }

    /// The oldest and the newest world that entries on the stack are in; none outside of all worlds.
    pub(crate) fn worlds(&self) -> Option<(u64, u64)> {
        self.span.worlds()
    }

    #[inline(always)]
    fn set(&self, world: u64) {
        let id = self.table.borrow().id;
        self.set_of(id, world);
    }

    #[inline(always)]
    fn set_of(&self, id: u64, world: u64) {
        let (last_id, last_world, mut stamp) = self.last.get();
        if (last_id, last_world) != (id, world) {
            stamp += STAMP_STEP;
            self.last.set((id, world, stamp));
        }
        self.be_in(world);
        self.lines.stamp.set(stamp);
    }

    /// The method that a call goes to.
    pub(crate) fn find(
        &self,
        heap: &Heap,
        isa: &IsaCache,
        objects: &[Object],
    ) -> Result<Option<Arc<Method>>, Ambiguous> {
        let Some((&callee, args)) = objects.split_first() else { return Ok(None) };
        let stamp = self.lines.stamp.get();
        let mut keys = [0; MOST + 1];
        let remembered = match keys.get_mut(..=objects.len()) {
            Some([first, keys @ ..]) if stamp != 0 => {
                *first = stamp;
                keys.iter_mut().zip(objects).for_each(|(slot, &object)| *slot = key(object));
                true
            }
            _ => false,
        };
        if !remembered {
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
            // Those have keys of their own.
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

    /// The operator that a call without a method comes to, if that is remembered.
    pub(crate) fn operator(&self, objects: &[Object]) -> Option<Operator> {
        let stamp = self.lines.stamp.get();
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
        if others.len() >= OTHERS {
            others.clear();
        }
        others.insert(keys.into(), found);
    }

    /// The keys of an `invoke` of a callee with a signature, by the tag of its tuple type; nothing where nothing is remembered.
    fn declared_keys(&self, callee: Object, signature: u64) -> Option<[u64; 3]> {
        let stamp = self.lines.stamp.get();
        (stamp != 0).then(|| [stamp + DECLARED, key(callee), signature])
    }

    /// Where an `invoke` went before, and the types in its signature.
    pub(crate) fn declared(&self, callee: Object, signature: u64) -> Option<Declared> {
        let keys = self.declared_keys(callee, signature)?;
        match self.others.borrow().get(keys.as_slice()) {
            Some(Found::Declared(method, types)) => Some((method.upgrade()?, types.clone())),
            _ => None,
        }
    }

    /// Notes where an `invoke` goes.
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

    /// Lets compiled code find the way by itself. `keys` begins with the stamp.
    fn write_line(&self, method: &Arc<Method>, keys: &[u64]) {
        let (Some(code), [stamp, keys @ ..]) = (method.entry().code(), keys) else { return };
        let mut line = Line { stamp: stamp + keys.len() as u64, address: code.address, keys: [0; LINE_KEYS] };
        let Some(slots) = line.keys.get_mut(..keys.len()) else { return };
        // Tags are even; other keys stand for types as operands, which tags do not tell apart.
        if keys.iter().all(|key| key % 2 == 0) {
            slots.copy_from_slice(keys);
            self.lines.lines[Dispatch::line_of(keys)].set(line);
        }
    }

    fn line_of(keys: &[u64]) -> usize {
        let hash = keys.iter().copied().reduce(|hash, key| hash.rotate_left(LINE_ROTATE) ^ key).unwrap_or(0);
        ((hash.wrapping_mul(LINE_MULTIPLIER) >> LINE_SHIFT) & LINE_MASK) as usize / LINE_BYTES
    }

    /// Whether compiled code would find the way of a call by itself.
    #[cfg(test)]
    pub(crate) fn has_line(&self, objects: &[Object]) -> bool {
        let keys: Vec<u64> = objects.iter().map(|&object| key(object)).collect();
        let line = self.lines.lines[Dispatch::line_of(&keys)].get();
        let stamp = self.lines.stamp.get();
        stamp != 0 && line.stamp == stamp + keys.len() as u64 && line.keys[..keys.len()] == keys
    }
}
