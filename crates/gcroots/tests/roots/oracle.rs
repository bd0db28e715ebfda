//! The oracle: runs a placed function on simulated objects and collects at every safepoint.
//!
//! It shares no code with placement and does not use liveness. It walks one path at a time, with a random
//! choice at every branch. Objects are numbers. At a safepoint every object dies that is not reachable from
//! the words of the linked frames (or those listed in the safepoint's map), from permanent objects, or
//! through immutable fields of such objects. An instruction that uses a dead object afterwards had an
//! unrooted operand.
//!
//! Its strict rules:
//!
//! * A mutable field may change at any time: it keeps nothing alive, and each load yields another object.
//! * An entry point with argument words overwrites them before it returns.
//! * A callee may let its arguments die during the call; only argument words and the operands of C functions
//!   must survive it.
//! * A thrown exception leaves the innermost frame wrong, as when callees do not unlink their frames.
//! * Words of a linked frame that were never written are an error, and so are words with dead objects.
//! * Returning with a different innermost frame from the caller's is an error, and so is linking a frame
//!   twice.
//!
//! The original function, whose instructions keep their numbers, has the facts that placement drops: loads
//! from immutable memory, the object of a loaded pointer, and preserved regions. Integers are not computed.

use std::collections::{BTreeMap, BTreeSet};

use brolga_gcroots::Lowering;
use brolga_ir::constant::Address;
use brolga_ir::intrinsic::Intrinsic;
use brolga_ir::op::Region;
use brolga_ir::runtime_fn::RuntimeKind;
use brolga_ir::{Block, Const, Func, Inst, LowType, Op, PtrClass, RuntimeFn, Slot, Type, Value};
use cranelift_entity::EntityRef;

use crate::random::Random;

/// Where the thread keeps its innermost frame.
const GC_STACK: i32 = crate::support::HEAP.gc_stack as i32;

/// An abstract value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Val {
    Undefined,
    Null,
    Object(usize),
    /// A pointer into an object.
    Inside(usize),
    /// A permanent object.
    Permanent,
    Thread,
    /// An address in a stack slot.
    Stack(Slot, i64),
    /// The innermost frame of the caller.
    Caller,
    /// The frame of a callee that has ended.
    Gone,
    /// A constant integer.
    Int(i64),
    /// Another integer, or any other address.
    Other,
}

#[derive(Default)]
struct Object {
    dead: bool,
    /// By offset: what immutable fields refer to.
    immutable: BTreeMap<i32, usize>,
}

/// A failing path.
#[derive(Debug)]
pub(crate) struct Wrong {
    pub(crate) what: String,
    pub(crate) at: Inst,
}

/// One run.
pub(crate) struct Oracle<'a> {
    original: &'a Func,
    placed: &'a Func,
    lowering: Lowering,
    preserved: &'a BTreeMap<Inst, Vec<Value>>,
    random: &'a mut Random,
    values: Vec<Val>,
    objects: Vec<Object>,
    memory: BTreeMap<(Slot, i64), Val>,
    gc_stack: Val,
    handlers: Vec<(Inst, Block)>,
    /// The contents of tracked slots.
    tracked: BTreeMap<Slot, Val>,
    /// Decides `ifelse` choices.
    coin: usize,
    search: Option<&'a mut Search>,
    /// Whether every collection moves every object.
    moving: bool,
    /// The number of collections so far, and for each value their number when it was defined.
    collections: u32,
    since: Vec<u32>,
}

type Run<T> = Result<T, Wrong>;

enum Next {
    On,
    Jump(Block),
    End,
}

/// The maximum number of instructions per run.
const MAX_STEPS: usize = 600;

/// Runs a function along `paths` paths; returns the first error.
pub(crate) fn run(
    original: &Func,
    placed: &Func,
    lowering: Lowering,
    paths: usize,
    random: &mut Random,
) -> Result<(), Wrong> {
    runs(original, placed, lowering, paths, random, None, false)
}

/// Like [`run`], but every collection moves every object.
pub(crate) fn run_moving(
    original: &Func,
    placed: &Func,
    lowering: Lowering,
    paths: usize,
    random: &mut Random,
) -> Result<(), Wrong> {
    runs(original, placed, lowering, paths, random, None, true)
}

/// A part removed from a placed function, to see whether a run fails without it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Removed {
    /// A store of a root, which stores null instead. Otherwise the old content of the word might keep the
    /// object alive by chance.
    Store(Inst),
    /// A word in the map of a safepoint.
    Entry(Inst, u32),
}

/// The outcome of a removal.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Watched {
    /// The number of collections at which the removed part would have held an object.
    pub(crate) met: usize,
    /// The number of those at which nothing else held the object, so that it died.
    pub(crate) lost: usize,
}

/// Runs a function with a part removed until the removal is detected. The search favours paths on which that
/// can happen: no exception ends them early, and at a branch it mostly takes the successor taken less often
/// so far. `Ok`: never detected.
pub(crate) fn search(
    original: &Func,
    placed: &Func,
    lowering: Lowering,
    removed: Removed,
    paths: usize,
    random: &mut Random,
) -> Result<Watched, Wrong> {
    let mut search = Search { removed, taken: BTreeMap::new(), watched: Watched::default(), word: None };
    runs(original, placed, lowering, paths, random, Some(&mut search), false)?;
    Ok(search.watched)
}

/// A search for a path on which the removal is detected.
struct Search {
    removed: Removed,
    /// How often each successor of a branch was taken.
    taken: BTreeMap<(Block, usize), usize>,
    watched: Watched,
    /// The word that the removed store wrote last, and the value that it would hold.
    word: Option<(Slot, i64, Val)>,
}

fn runs(
    original: &Func,
    placed: &Func,
    lowering: Lowering,
    paths: usize,
    random: &mut Random,
    mut search: Option<&mut Search>,
    moving: bool,
) -> Result<(), Wrong> {
    let preserved = preserved(original);
    for _ in 0..paths {
        let coin = random.below(2);
        let mut oracle = Oracle {
            original,
            placed,
            lowering,
            preserved: &preserved,
            random,
            values: vec![Val::Undefined; placed.value_count()],
            objects: Vec::new(),
            memory: BTreeMap::new(),
            gc_stack: Val::Caller,
            handlers: Vec::new(),
            tracked: BTreeMap::new(),
            coin,
            search: search.as_deref_mut(),
            moving,
            collections: 0,
            since: vec![0; placed.value_count()],
        };
        oracle.path()?;
    }
    Ok(())
}

impl Oracle<'_> {
    fn new_object(&mut self) -> Val {
        self.objects.push(Object::default());
        Val::Object(self.objects.len() - 1)
    }

    fn path(&mut self) -> Run<()> {
        if let Some(search) = &mut self.search {
            search.word = None;
        }
        for &param in self.placed.params() {
            self.values[param.index()] = match self.placed.ty(param) {
                Type::TRACKED => self.new_object(),
                _ => Val::Other,
            };
        }
        let mut block = self.placed.entry().expect("a function with blocks");
        let mut from = None;
        let mut steps = 0;
        loop {
            self.phis(block, from);
            let mut at = self.placed.first_inst(block);
            let target = loop {
                let Some(inst) = at else { return Ok(()) };
                at = self.placed.next_inst(inst);
                steps += 1;
                if steps > MAX_STEPS {
                    return Ok(());
                }
                match self.inst(inst)? {
                    Next::On => {}
                    Next::Jump(target) => break target,
                    Next::End => return Ok(()),
                }
            };
            (from, block) = (Some(block), target);
        }
    }

    fn phis(&mut self, block: Block, from: Option<Block>) {
        let mut new = Vec::new();
        for inst in self.placed.block_insts(block) {
            if self.placed.op(inst) != Op::Phi {
                continue;
            }
            let operand = self.placed.phi_edges(inst).find(|e| Some(e.0) == from).map(|e| e.1);
            let val = operand.map_or(Val::Undefined, |v| self.val(v));
            let since = operand.map_or(self.collections, |v| self.since[v.index()]);
            new.extend(self.placed.result(inst).map(|v| (v, val, since)));
        }
        for (value, val, since) in new {
            self.values[value.index()] = val;
            self.since[value.index()] = since;
        }
    }

    fn val(&self, value: Value) -> Val {
        match self.placed.as_const(value) {
            None => self.values[value.index()],
            Some(Const::Address(address)) => match address {
                Address::Data(_) | Address::Foreign(_) => Val::Other,
                _ => Val::Permanent,
            },
            Some(Const::Bits { ty, .. }) => match ty.as_low() {
                Some(LowType::Ptr(PtrClass::Raw)) | None => Val::Other,
                Some(LowType::Ptr(_)) => Val::Null,
                Some(_) => Val::Int(self.placed.as_bits(value).unwrap_or(0) as i64),
            },
            Some(_) => Val::Undefined,
        }
    }

    fn wrong<T>(&self, at: Inst, what: impl Into<String>) -> Run<T> {
        Err(Wrong { what: what.into(), at })
    }

    /// A used value must be alive.
    fn alive(&self, at: Inst, val: Val) -> Run<()> {
        match val {
            Val::Object(n) | Val::Inside(n) if self.objects[n].dead => {
                self.wrong(at, format!("object {n} is used and dead"))
            }
            _ => Ok(()),
        }
    }

    /// Accessed memory must not have moved since the pointer was computed. Pointers to elements do not move,
    /// and the roots that keep their owners alive are only stored.
    fn stands(&self, inst: Inst) -> Run<()> {
        let is_root_store =
            matches!(self.placed.op(inst), Op::Store(access) if access.region == Region::Frame);
        if !self.moving || is_root_store {
            return Ok(());
        }
        for &value in self.placed.args(inst) {
            let points = matches!(self.val(value), Val::Object(_) | Val::Inside(_));
            let stays = self.placed.ty(value) == Type::LOADED || self.placed.as_const(value).is_some();
            if points && !stays && self.since[value.index()] != self.collections {
                return self.wrong(inst, format!("{value:?} has moved"));
            }
        }
        Ok(())
    }

    fn uses(&self, inst: Inst) -> Run<()> {
        self.placed.args(inst).iter().try_for_each(|&v| self.alive(inst, self.val(v)))
    }

    fn define(&mut self, inst: Inst, val: Val) {
        for value in self.placed.results(inst) {
            self.values[value.index()] = val;
            self.since[value.index()] = self.collections;
        }
    }

    fn made(&mut self, inst: Inst) {
        let results: Vec<Value> = self.placed.results(inst).collect();
        for value in results {
            self.since[value.index()] = self.collections;
            self.values[value.index()] = match self.placed.ty(value) {
                Type::TRACKED => self.new_object(),
                _ => Val::Other,
            };
        }
    }

    fn inst(&mut self, inst: Inst) -> Run<Next> {
        let func = self.placed;
        let args: Vec<Val> = func.args(inst).iter().map(|&v| self.val(v)).collect();
        let original = (inst.index() < self.original.inst_count()).then(|| self.original.op(inst));
        if func.op(inst) == Op::Phi {
            return Ok(Next::On);
        }
        self.stands(inst)?;
        match func.op(inst) {
            Op::Intrinsic(Intrinsic::Bitcast) => {
                let to = func.result(inst).map(|v| func.ty(v));
                let val = match (original, args[0]) {
                    (Some(Op::TypeOf), _) => Val::Permanent,
                    (Some(Op::GcLoaded), _) => match self.val(self.original.args(inst)[0]) {
                        Val::Object(n) => Val::Inside(n),
                        other => other,
                    },
                    (_, Val::Other) if to == Some(Type::TRACKED) => self.new_object(),
                    (_, Val::Object(n)) if to != Some(Type::TRACKED) => Val::Inside(n),
                    (_, val) => val,
                };
                self.define(inst, val);
            }
            Op::Intrinsic(Intrinsic::AddPtr | Intrinsic::SubPtr) => {
                let by = func.as_bits(func.args(inst)[1]).map_or(0, |bits| bits as i64);
                let val = match args[0] {
                    Val::Object(n) | Val::Inside(n) => Val::Inside(n),
                    Val::Stack(slot, offset) => Val::Stack(slot, offset + by),
                    other => other,
                };
                self.define(inst, val);
            }
            Op::Intrinsic(_)
            | Op::Lanes(..)
            | Op::Splat(_)
            | Op::ExtractLane(..)
            | Op::InsertLane(..)
            | Op::LaneSelect => {
                self.uses(inst)?;
                self.define(inst, Val::Other);
            }
            Op::Copy => self.define(inst, args[0]),
            Op::Builtin(_) => {
                // Choices by the same condition agree, for objects as for pointers into them.
                let condition = func.args(inst)[0].index();
                let val = args[1 + (condition ^ self.coin) % 2];
                self.define(inst, val);
            }
            Op::PointerFromObjref => self.define(inst, Val::Other),
            Op::ThreadAddr => self.define(inst, Val::Thread),
            Op::SlotAddr(slot) => self.define(inst, Val::Stack(slot, 0)),
            // No program accesses memory through null or an undefined φ operand: such a path is abandoned.
            Op::Load(_) | Op::Store(_) if matches!(args[0], Val::Null | Val::Undefined) => {
                return Ok(Next::End);
            }
            Op::Load(access) => {
                self.uses(inst)?;
                let stays = matches!(original, Some(Op::Load(a)) if a.region == Region::Immutable);
                self.load(inst, args[0], access.offset, stays)?;
                if let (Some(slot), Some(value)) = (self.tracked_slot(inst), func.result(inst)) {
                    let expected = self.tracked.get(&slot).copied().unwrap_or(Val::Null);
                    if self.val(value) != expected {
                        return self
                            .wrong(inst, format!("the slot holds {:?}, not {expected:?}", self.val(value)));
                    }
                }
            }
            Op::Store(access) => {
                self.uses(inst)?;
                let stays = matches!(original, Some(Op::Store(a)) if a.region == Region::Immutable);
                self.store(inst, args[0], args[1], access.offset, stays)?;
                if self.search.as_deref().is_some_and(|s| s.removed == Removed::Store(inst))
                    && let Val::Stack(slot, at) = args[0]
                {
                    self.memory.insert((slot, at + i64::from(access.offset)), Val::Null);
                }
                if let Some(slot) = self.tracked_slot(inst) {
                    self.tracked.insert(slot, args[1]);
                }
            }
            Op::MemCopy | Op::AtomicStore(_) => self.uses(inst)?,
            Op::AtomicLoad(_) | Op::AtomicRmw(..) | Op::AtomicCas(_) => {
                self.uses(inst)?;
                self.made(inst);
            }
            Op::CallSymbol(_) | Op::Safepoint => {
                self.uses(inst)?;
                self.collect(inst, &[])?;
                return self.called(inst, true);
            }
            Op::ForeignCall(_) => {
                self.uses(inst)?;
                self.collect(inst, &args)?;
                return self.called(inst, true);
            }
            Op::CallRuntime(entry) => {
                self.uses(inst)?;
                if entry.kind() == RuntimeKind::Args {
                    let count = func.as_bits(func.args(inst)[1]).unwrap_or(0) as i64;
                    let mut words = Vec::new();
                    for n in 0..count {
                        let Val::Stack(slot, offset) = args[0] else {
                            return self.wrong(inst, "argument words without an address");
                        };
                        let word = self.memory.get(&(slot, offset + 8 * n)).copied();
                        words.push(word.unwrap_or(Val::Undefined));
                    }
                    if words.contains(&Val::Undefined) {
                        return self.wrong(inst, "an argument word was never written");
                    }
                    words.iter().try_for_each(|&word| self.alive(inst, word))?;
                    self.collect(inst, &words)?;
                    if let Val::Stack(slot, offset) = args[0] {
                        for n in 0..count {
                            self.memory.insert((slot, offset + 8 * n), Val::Null);
                        }
                    }
                } else if entry.may_safepoint() {
                    self.collect(inst, &[])?;
                }
                return match entry.returns() {
                    true => self.called(inst, entry != RuntimeFn::GcAlloc),
                    false => self.thrown(),
                };
            }
            Op::Goto => return Ok(Next::Jump(func.inst_blocks(inst)[0])),
            Op::Branch => {
                let way = self.way(func.inst_block(inst));
                return Ok(Next::Jump(func.inst_blocks(inst)[way]));
            }
            Op::Enter => {
                let &[body, handler] = func.inst_blocks(inst) else { return Ok(Next::End) };
                self.handlers.push((inst, handler));
                return Ok(Next::Jump(body));
            }
            Op::Leave => {
                for &token in func.args(inst) {
                    let innermost = self.handlers.pop().map(|h| h.0);
                    assert_eq!(innermost, func.def_inst(token), "handlers nest");
                }
            }
            Op::Return => {
                self.uses(inst)?;
                if self.lowering == Lowering::Linked && self.gc_stack != Val::Caller {
                    return self.wrong(inst, format!("returns with {:?} as innermost frame", self.gc_stack));
                }
                return Ok(Next::End);
            }
            Op::Unreachable => return Ok(Next::End),
            other => return self.wrong(inst, format!("{other:?} is left")),
        }
        Ok(Next::On)
    }

    /// The successor that a branch takes.
    fn way(&mut self, block: Option<Block>) -> usize {
        let coin = self.random.below(2);
        let (Some(search), Some(block)) = (self.search.as_deref_mut(), block) else { return coin };
        let taken = &mut search.taken;
        let count = |way: usize| taken.get(&(block, way)).copied().unwrap_or(0);
        let rarer = if count(0) == count(1) { coin } else { usize::from(count(0) > count(1)) };
        let way = if self.random.below(3) == 0 { coin } else { rarer };
        *taken.entry((block, way)).or_default() += 1;
        way
    }

    /// The tracked slot that the original instruction reads or writes.
    fn tracked_slot(&self, inst: Inst) -> Option<Slot> {
        let original = (inst.index() < self.original.inst_count()).then_some(inst)?;
        let address = self.original.def_inst(*self.original.args(original).first()?)?;
        match self.original.op(address) {
            Op::SlotAddr(slot) if self.original.slot(slot).tracked => Some(slot),
            _ => None,
        }
    }

    fn load(&mut self, inst: Inst, from: Val, offset: i32, stays: bool) -> Run<()> {
        let tracked = self.placed.result(inst).is_some_and(|v| self.placed.ty(v) == Type::TRACKED);
        let loaded = self.placed.result(inst).is_some_and(|v| self.placed.ty(v) == Type::LOADED);
        let val = match from {
            Val::Thread if offset == GC_STACK => self.gc_stack,
            Val::Stack(slot, at) => {
                let at = (slot, at + i64::from(offset));
                let val = self.memory.get(&at).copied().unwrap_or(Val::Undefined);
                // Other code with the address of the function's slot may have written it.
                let own = slot.index() < self.original.slots().count() && !self.original.slot(slot).tracked;
                if own {
                    return self.loaded(inst, tracked);
                }
                if val == Val::Undefined && tracked {
                    return self.wrong(inst, "a word that was never written is read");
                }
                val
            }
            Val::Object(n) | Val::Inside(n) if loaded => Val::Inside(n),
            Val::Object(n) | Val::Inside(n) if tracked && stays => {
                let child = match self.objects[n].immutable.get(&offset) {
                    Some(&child) => child,
                    None => {
                        self.objects.push(Object::default());
                        let child = self.objects.len() - 1;
                        self.objects[n].immutable.insert(offset, child);
                        child
                    }
                };
                Val::Object(child)
            }
            // An object that a permanent object refers to forever is as good as permanent.
            Val::Permanent if tracked && stays => Val::Permanent,
            _ if tracked => self.new_object(),
            _ => Val::Other,
        };
        self.define(inst, val);
        Ok(())
    }

    /// Defines a loaded value of unknown content: a new object if it is tracked.
    fn loaded(&mut self, inst: Inst, tracked: bool) -> Run<()> {
        let val = if tracked { self.new_object() } else { Val::Other };
        self.define(inst, val);
        Ok(())
    }

    fn store(&mut self, inst: Inst, to: Val, val: Val, offset: i32, stays: bool) -> Run<()> {
        match to {
            Val::Thread if offset == GC_STACK => self.gc_stack = val,
            Val::Stack(slot, at) => {
                let at = at + i64::from(offset);
                self.watch_store(inst, slot, at, val);
                // Only nulls are written in pairs.
                if self.placed.ty(self.placed.args(inst)[1]) == Type::V128 {
                    self.memory.insert((slot, at), Val::Null);
                    self.memory.insert((slot, at + 8), Val::Null);
                } else {
                    self.memory.insert((slot, at), val);
                }
            }
            Val::Object(n) => {
                if let (Val::Object(child), true) = (val, stays) {
                    self.objects[n].immutable.insert(offset, child);
                }
            }
            Val::Undefined => return self.wrong(inst, "a store to nowhere"),
            _ => {}
        }
        Ok(())
    }

    /// Records the word that the removed store would have written. Other stores to it write null.
    fn watch_store(&mut self, inst: Inst, slot: Slot, at: i64, val: Val) {
        let Some(search) = &mut self.search else { return };
        if search.removed == Removed::Store(inst) {
            search.word = Some((slot, at, val));
        } else if search.word.is_some_and(|(s, offset, _)| (s, offset) == (slot, at)) {
            search.word = None;
        }
    }

    /// The object that a collection would find through the removed part.
    fn watched(&self, inst: Inst) -> Option<usize> {
        let search = self.search.as_deref()?;
        let mapped = |offset: i64| {
            let map = self.placed.root_map(inst);
            map.is_some_and(|map| map.offsets.iter().any(|&o| i64::from(o) == offset))
        };
        let val = match (search.removed, search.word) {
            (Removed::Store(_), Some((_, offset, val)))
                if self.lowering == Lowering::Linked || mapped(offset) =>
            {
                val
            }
            (Removed::Entry(at, offset), _) if at == inst => {
                let slot = self.placed.root_map(inst)?.slot;
                self.memory.get(&(slot, i64::from(offset))).copied()?
            }
            _ => return None,
        };
        match val {
            Val::Object(n) if !self.objects[n].dead => Some(n),
            _ => None,
        }
    }

    /// A call has returned or throws.
    fn called(&mut self, inst: Inst, may_throw: bool) -> Run<Next> {
        let ends_nothing = self.search.is_none() || !self.handlers.is_empty();
        if may_throw && ends_nothing && self.random.below(6) == 0 {
            return self.thrown();
        }
        self.made(inst);
        Ok(Next::On)
    }

    fn thrown(&mut self) -> Run<Next> {
        let Some((_, handler)) = self.handlers.pop() else { return Ok(Next::End) };
        self.gc_stack = Val::Gone;
        Ok(Next::Jump(handler))
    }

    /// Collects. These objects have to survive.
    fn collect(&mut self, inst: Inst, survive: &[Val]) -> Run<()> {
        let mut work: Vec<usize> = Vec::new();
        match self.lowering {
            Lowering::Linked => self.linked_words(inst, &mut work)?,
            Lowering::Maps => {
                if let Some(map) = self.placed.root_map(inst) {
                    let removed = self.search.as_deref().map(|search| search.removed);
                    for &offset in &map.offsets {
                        if removed == Some(Removed::Entry(inst, offset)) {
                            continue;
                        }
                        self.root(inst, map.slot, i64::from(offset), &mut work)?;
                    }
                }
            }
        }
        for &root in &work {
            self.alive(inst, Val::Object(root))?;
        }
        let watched = self.watched(inst);
        let mut marked = vec![false; self.objects.len()];
        while let Some(n) = work.pop() {
            if !std::mem::replace(&mut marked[n], true) {
                work.extend(self.objects[n].immutable.values().copied());
            }
        }
        if let (Some(n), Some(search)) = (watched, &mut self.search) {
            search.watched.met += 1;
            search.watched.lost += usize::from(!marked[n]);
        }
        for (object, marked) in self.objects.iter_mut().zip(marked) {
            object.dead |= !marked;
        }
        self.collections += 1;
        survive.iter().try_for_each(|&val| match val {
            Val::Object(n) if self.objects[n].dead => {
                self.wrong(inst, format!("object {n} does not survive the call that it is given to"))
            }
            _ => Ok(()),
        })?;
        for &value in self.preserved.get(&self.origin(inst)).into_iter().flatten() {
            self.alive(inst, self.val(value)).map_err(|w| Wrong { what: w.what + " (preserved)", ..w })?;
        }
        Ok(())
    }

    fn linked_words(&self, inst: Inst, work: &mut Vec<usize>) -> Run<()> {
        let mut frame = self.gc_stack;
        let mut seen: BTreeSet<Slot> = BTreeSet::new();
        loop {
            match frame {
                Val::Caller => return Ok(()),
                Val::Stack(slot, 0) => {
                    if !seen.insert(slot) {
                        return self.wrong(inst, "a frame is linked to itself");
                    }
                    let size = i64::from(self.placed.slot(slot).size);
                    for n in 0..self.words(inst, slot, size)? {
                        self.root(inst, slot, 16 + 8 * n, work)?;
                    }
                    frame = self.memory.get(&(slot, 8)).copied().unwrap_or(Val::Undefined);
                }
                other => return self.wrong(inst, format!("the innermost frame is {other:?}")),
            }
        }
    }

    /// The content of a word as the collector sees it.
    fn root(&self, inst: Inst, slot: Slot, offset: i64, work: &mut Vec<usize>) -> Run<()> {
        match self.memory.get(&(slot, offset)).copied() {
            Some(Val::Object(n)) => work.push(n),
            Some(Val::Null | Val::Permanent) => {}
            // An object on the stack looks permanent because of its tag.
            Some(Val::Stack(of, at)) if self.memory.contains_key(&(of, at - 8)) => {}
            other => return self.wrong(inst, format!("the word at {offset} of the frame is {other:?}")),
        }
        Ok(())
    }

    /// The number of words that the frame's header states.
    fn words(&self, inst: Inst, slot: Slot, size: i64) -> Run<i64> {
        match self.memory.get(&(slot, 0)) {
            Some(&Val::Int(count)) if count % 4 == 0 && 16 + 2 * count <= size => Ok(count / 4),
            other => self.wrong(inst, format!("a frame of {size} bytes with {other:?} words")),
        }
    }

    /// The instruction of the original function that a safepoint corresponds to.
    fn origin(&self, inst: Inst) -> Inst {
        if inst.index() < self.original.inst_count() {
            return inst;
        }
        let join = self.placed.inst_block(inst).and_then(|b| self.placed.successors(b).first().copied());
        join.and_then(|join| self.placed.first_inst(join)).unwrap_or(inst)
    }
}

/// The values preserved at each instruction, computed along paths, without a dominator tree.
fn preserved(func: &Func) -> BTreeMap<Inst, Vec<Value>> {
    let insts: Vec<Inst> = func.blocks().flat_map(|b| func.block_insts(b)).collect();
    let mut all: BTreeMap<Inst, Vec<Value>> = BTreeMap::new();
    let reach = |without: Inst| -> BTreeSet<Inst> {
        let mut found = BTreeSet::new();
        let mut work: Vec<Block> = func.entry().into_iter().collect();
        let mut seen = BTreeSet::new();
        while let Some(block) = work.pop() {
            if !seen.insert(block) {
                continue;
            }
            let mut through = true;
            for inst in func.block_insts(block) {
                if inst == without {
                    through = false;
                    break;
                }
                found.insert(inst);
            }
            if through {
                work.extend(func.successors(block));
            }
        }
        found
    };
    for &begin in insts.iter().filter(|&&i| func.op(i) == Op::GcPreserveBegin) {
        let around = reach(begin);
        let ends = insts
            .iter()
            .filter(|&&i| func.op(i) == Op::GcPreserveEnd && func.def_inst(func.args(i)[0]) == Some(begin));
        let around_ends: Vec<BTreeSet<Inst>> = ends.map(|&end| reach(end)).collect();
        for &inst in &insts {
            if !around.contains(&inst) && inst != begin && around_ends.iter().all(|a| a.contains(&inst)) {
                all.entry(inst).or_default().extend(func.args(begin));
            }
        }
    }
    all
}
