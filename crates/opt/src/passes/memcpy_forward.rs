//! Redirects reads of copied memory to the source, so that copies of memory through slots lose their readers.
//!
//! ```text
//! mem_copy(s, p, 24)                              mem_copy(s, p, 24)                `dse` drops it
//! %1 = load(s; offset = 8)                 ==>    %1 = load(p; offset = 8)
//! mem_copy(q, s, 24)                              mem_copy(q, p, 24)
//!
//! store(s, x)     store(s, y; offset = 8)         store(s, x)     …
//! mem_copy(q, s, 16)                       ==>    store(q, x)     store(q, y; offset = 8)
//!
//! memset(s, 0, 32)                                memset(s, 0, 32)
//! %2 = load(s; offset = 16)                ==>    %2 is 0
//! mem_copy(q, s, 16)                              memset(q, 0, 16)
//! ```
//!
//! A walk over the blocks tracks the contents of memory: copies, fills and stores, each with the bytes it wrote. An entry is dropped when an instruction
//! may write these bytes or, for a copy, those that it read. A block starts with the entries at the end of its only predecessor.
//!
//! | reader of `s` | becomes | if |
//! |---|---|---|
//! | a load of copied bytes | a load of the source | all accesses to the source are of one kind of memory, which the load then names |
//! | a copy of copied bytes | a copy of the source | destination and source do not overlap; onto the source itself, nothing |
//! | a load, a copy of filled bytes | a constant; a fill | it is not a pointer |
//! | a copy of stored bytes | the stores | they are at most [`MAX_STORES`], fill it without a gap, and `s` stays in the function |
//!
//! Only copies of bytes onto themselves are removed: `dse` decides whether `s` still has readers.
//!
//! Cost: nothing in a function without copies and fills; otherwise one sweep, and for each access at most [`MAX_KNOWN`] entries. Breaks the uses. Not
//! done: joins of paths; sizes that are not constant; slots that could share memory.

use crate::alias::{Alias, Aliases, Location, Root};
use crate::facts::Fact;
use crate::pass::{Changed, Pass, PassCx, PassLevel};
use crate::replace::Replacements;
use brolga_ir::cursor::Cursor;
use brolga_ir::effects::{Regions, effects};
use brolga_ir::intrinsic::Intrinsic;
use brolga_ir::op::{Access, Region};
use brolga_ir::{Block, Foreign, Func, Inst, LowType, Op, Type, Types, Value};
use cranelift_entity::SecondaryMap;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

pub(crate) const PASS: Pass =
    Pass::new("memcpy-forward", PassLevel::Low, run).needs(&[Fact::Cfg]).breaks(&[Fact::Uses]);

/// The limit of facts about memory at one place; the oldest is dropped first.
const MAX_KNOWN: usize = 16;

/// A copy does not become more stores than this.
const MAX_STORES: usize = 8;

/// The bytes that were written last by one instruction.
#[derive(Clone, Copy)]
struct Known {
    at: Location,
    what: What,
}

#[derive(Clone, Copy)]
enum What {
    /// The value that was at this address, and its place.
    Copied(Value, Location),
    /// This byte, by this function.
    Filled(u8, Foreign),
    Stored(Value),
}

type State = SmallVec<[Known; 4]>;

fn run(func: &mut Func, cx: &mut PassCx<'_>) -> Changed {
    let (cfg, rpo) = (cx.facts.cfg(), cx.facts.rpo());
    let copies = |i: Inst| func.op(i) == Op::MemCopy || is_memset(func, cx.types(), i).is_some();
    if !rpo.blocks().iter().any(|&b| func.block_insts(b).any(copies)) {
        return Changed::No;
    }
    let aliases = Aliases::of(func, cx.types(), rpo);
    let kinds = kinds(func, &aliases, rpo.blocks());
    let mut forward =
        Forward { aliases, kinds, types: cx.types(), state: State::new(), values: Replacements::default() };
    let mut ends: SecondaryMap<Block, Option<State>> = SecondaryMap::new();
    'blocks: for &block in rpo.blocks() {
        let from = cfg.single_pred(block).filter(|&p| {
            let handler = func.terminator(p).is_some_and(|t| func.op(t) == Op::Enter);
            !handler && rpo.position(p) < rpo.position(block)
        });
        forward.state = from.and_then(|p| ends[p].clone()).unwrap_or_default();
        let mut next = func.first_inst(block);
        while let Some(inst) = next {
            next = func.next_inst(inst);
            forward.values.apply_to(func, cx.context(), inst);
            if !forward.inst(func, cx, inst) {
                break 'blocks;
            }
        }
        ends[block] = Some(std::mem::take(&mut forward.state));
    }
    forward.values.apply(func, cx.context());
    cx.changed()
}

/// The address, the byte and the size of a fill, and its function.
fn is_memset(func: &Func, types: &Types, inst: Inst) -> Option<(Value, u8, u64, Foreign)> {
    let Op::ForeignCall(foreign) = func.op(inst) else { return None };
    let (&[at, byte, size], Some(name)) = (func.args(inst), func.foreign(foreign).name) else { return None };
    let known = types.names().text(name) == "memset" && func.result(inst).is_some();
    let (byte, size) = (func.as_bits(byte)?, func.as_bits(size)?);
    known.then_some((at, byte as u8, u64::try_from(size).ok()?, foreign))
}

/// By root: the kind of memory as which it is accessed; `None` if there are several, or for a kind with stronger guarantees.
fn kinds(func: &Func, aliases: &Aliases, blocks: &[Block]) -> FxHashMap<Root, Option<Region>> {
    let mut found: FxHashMap<Root, Option<Region>> = FxHashMap::default();
    for inst in blocks.iter().flat_map(|&b| func.block_insts(b)) {
        let (Op::Load(access) | Op::Store(access), Some(&at)) = (func.op(inst), func.args(inst).first())
        else {
            continue;
        };
        let plain = matches!(access.region, Region::Raw | Region::Slot | Region::Field | Region::Element);
        let region = Some(access.region).filter(|_| plain);
        let known = found.entry(aliases.address(at).root).or_insert(region);
        if *known != region {
            *known = None;
        }
    }
    found
}

struct Forward<'a> {
    aliases: Aliases,
    kinds: FxHashMap<Root, Option<Region>>,
    types: &'a Types,
    state: State,
    values: Replacements,
}

impl Forward<'_> {
    /// Visits an instruction. False if there was no fuel left.
    fn inst(&mut self, func: &mut Func, cx: &mut PassCx<'_>, inst: Inst) -> bool {
        match func.op(inst) {
            Op::Load(_) => self.load(func, cx, inst),
            Op::MemCopy => match self.aliases.copied(func, self.types, inst) {
                Some((to, from)) => self.copy(func, cx, inst, to, from),
                None => true,
            },
            _ => {
                self.visit(func, inst);
                true
            }
        }
    }

    /// Notes the effect of an unchanged instruction.
    fn visit(&mut self, func: &Func, inst: Inst) {
        let known = self.known_after(func, inst);
        self.pass(func, inst);
        if let Some(known) = known {
            self.push(known);
        }
    }

    /// The fact about memory after a store or a fill.
    fn known_after(&self, func: &Func, inst: Inst) -> Option<Known> {
        if let Op::Store(_) = func.op(inst) {
            let at = self.aliases.access(func, self.types, inst)?;
            let value = *func.args(inst).get(1)?;
            return at.size.map(|_| Known { at, what: What::Stored(value) });
        }
        let (at, byte, size, foreign) = is_memset(func, self.types, inst)?;
        Some(Known { at: self.anywhere(at, size), what: What::Filled(byte, foreign) })
    }

    fn anywhere(&self, at: Value, size: u64) -> Location {
        let regions = Regions::POINTABLE | Regions::SLOT;
        Location { address: self.aliases.address(at), size: Some(size), regions }
    }

    fn push(&mut self, known: Known) {
        if self.state.len() == MAX_KNOWN {
            self.state.remove(0);
        }
        self.state.push(known);
    }

    /// Drops the facts that an instruction may change.
    fn pass(&mut self, func: &Func, inst: Inst) {
        let effects = effects(func, self.types, inst);
        if effects.writes.is_empty() && !effects.fence {
            return;
        }
        let (aliases, types) = (&self.aliases, self.types);
        let changes = |at: &Location| aliases.may_write(func, types, inst, &effects, at);
        self.state.retain(|known| match known.what {
            What::Copied(_, from) => !changes(&known.at) && !changes(&from),
            _ => !changes(&known.at),
        });
    }

    /// The write that covers all bytes of a place, and the offset of the place in it.
    fn find(&self, at: &Location) -> Option<(Known, u64)> {
        let wide = |known: &Known| Location {
            regions: known.at.regions | Regions::POINTABLE | Regions::SLOT,
            ..known.at
        };
        self.state.iter().rev().find_map(|known| {
            let far = at.address.disp.wrapping_sub(known.at.address.disp);
            self.aliases.covers(&wide(known), at).then_some((*known, far))
        })
    }

    /// The kind of memory as which a root may be accessed.
    fn kind(&self, func: &Func, root: Root) -> Option<Region> {
        match (self.kinds.get(&root), root) {
            (Some(&kind), _) => kind,
            (None, Root::Slot(_)) if self.aliases.stays(root) => Some(Region::Slot),
            // Other addresses may access it as a slot.
            (None, _) if self.aliases.may_be_slot(func, root) => None,
            (None, _) => Some(Region::Raw),
        }
    }

    fn load(&mut self, func: &mut Func, cx: &mut PassCx<'_>, inst: Inst) -> bool {
        let Some(at) = self.aliases.access(func, self.types, inst).filter(|at| !at.regions.is_empty()) else {
            return true;
        };
        let (Some((known, far)), Some(result)) = (self.find(&at), func.result(inst)) else { return true };
        match known.what {
            What::Stored(_) => true,
            What::Filled(byte, _) => {
                let ty = func.ty(result);
                let Some(low) = ty.as_low().filter(|low| low.is_int() || low.is_float()) else { return true };
                if !cx.spend("loads of what was filled") {
                    return false;
                }
                let ones = u128::MAX >> (128 - low.bits());
                let bits = (u128::MAX / 0xff * u128::from(byte)) & ones;
                let constant = func.bits(self.types, ty, bits);
                self.values.set(result, constant);
                func.remove_inst(inst);
                true
            }
            What::Copied(source, from) => {
                let (Some(region), Ok(offset)) = (self.kind(func, from.address.root), i32::try_from(far))
                else {
                    return true;
                };
                if !cx.spend("loads of what was copied") {
                    return false;
                }
                func.set_op(inst, Op::Load(Access { offset, region, align_log2: 0 }), &[source]);
                true
            }
        }
    }

    fn copy(
        &mut self,
        func: &mut Func,
        cx: &mut PassCx<'_>,
        inst: Inst,
        to: Location,
        from: Location,
    ) -> bool {
        let &[target, mut source, size] = func.args(inst) else { return true };
        let mut from = from;
        let found = self.find(&from).filter(|_| from.size.is_some_and(|size| size > 0));
        match found.map(|(known, far)| (known.what, far)) {
            Some((What::Copied(first, place), far)) => {
                let address = part_of(place, far, from.size);
                match self.aliases.alias(func, &to, &address) {
                    Alias::Must => {
                        if !cx.spend("copies of bytes onto themselves") {
                            return false;
                        }
                        func.remove_inst(inst);
                        return true;
                    }
                    Alias::No if far == 0 || func.ty(first) == Type::PTR => {
                        if !cx.spend("copies of copies") {
                            return false;
                        }
                        source = self.plus(func, inst, first, far);
                        func.set_op(inst, Op::MemCopy, &[target, source, size]);
                        from = address;
                    }
                    _ => {}
                }
            }
            // A slot whose address stays here must not escape through a fill, which is a call.
            Some((What::Filled(byte, foreign), _)) if self.aliases.stays(to.address.root) => {
                self.pass(func, inst);
                self.push(Known { at: to, what: What::Filled(byte, foreign) });
                return true;
            }
            Some((What::Filled(byte, foreign), _)) if func.ty(target) == Type::PTR => {
                if !cx.spend("copies of what was filled") {
                    return false;
                }
                let byte = func.bits(self.types, Type::I32, byte.into());
                let mut at = Cursor::new(func);
                let fill = at.before(inst).ins(Op::ForeignCall(foreign), &[target, byte, size], &[Type::PTR]);
                func.remove_inst(inst);
                self.visit(func, fill);
                return true;
            }
            _ => {
                if let Some(stores) = self.stores(func, &to, &from) {
                    if !cx.spend("copies of what was stored") {
                        return false;
                    }
                    for (access, value) in stores {
                        let op = Op::Store(access);
                        let store = Cursor::new(func).before(inst).ins(op, &[target, value], &[]);
                        self.visit(func, store);
                    }
                    func.remove_inst(inst);
                    return true;
                }
            }
        }
        self.pass(func, inst);
        if to.size.is_some() {
            self.push(Known { at: to, what: What::Copied(source, from) });
        }
        true
    }

    fn plus(&self, func: &mut Func, before: Inst, base: Value, far: u64) -> Value {
        if far == 0 {
            return base;
        }
        let mut at = Cursor::new(func);
        let far = at.before(before).int(self.types, Type::I64, i128::from(far));
        at.ins_value(Op::Intrinsic(Intrinsic::AddPtr), &[base, far], Type::PTR)
    }

    /// The stores that replace a copy of stored bytes.
    fn stores(&self, func: &Func, to: &Location, from: &Location) -> Option<Vec<(Access, Value)>> {
        let size = from.size?;
        let region = self.kind(func, to.address.root).filter(|_| self.aliases.stays(from.address.root))?;
        let mut parts: Vec<(u64, u64, Value)> = Vec::new();
        for known in &self.state {
            let (at, What::Stored(value), Some(bytes)) = (known.at.address, known.what, known.at.size) else {
                continue;
            };
            let far = at.disp.wrapping_sub(from.address.disp);
            if at.root == from.address.root && at.index == from.address.index && far < size {
                parts.push((far, bytes, value));
            }
        }
        parts.sort_unstable_by_key(|&(far, ..)| far);
        let mut end = 0;
        for &(far, bytes, _) in &parts {
            if far != end {
                return None;
            }
            end += bytes;
        }
        let wide = |v: Value| func.ty(v).as_low() == Some(LowType::V128);
        if end != size || parts.len() > MAX_STORES || parts.iter().any(|&(.., v)| wide(v)) {
            return None;
        }
        let store = |(far, _, value)| {
            let offset = i32::try_from(far).ok()?;
            Some((Access { offset, region, align_log2: 0 }, value))
        };
        parts.into_iter().map(store).collect()
    }
}

/// A part of a place.
fn part_of(of: Location, far: u64, size: Option<u64>) -> Location {
    let mut part = Location { size, ..of };
    part.address.disp = part.address.disp.wrapping_add(far);
    part
}
