//! Fills and copies memory with the routine that does it best.
//!
//! ```text
//! h: %i = φ (p => s, l => %n)              c: %a = φ (p => b + w·s, t => a + k)     %r = φ (p => w·rounds, t => r - k)
//!    store(b + w·%i, v)             ==>       k = min(r, CHUNK)    memset(%a, v, k)
//! l: %n = add_int(%i, 1)                      goto x if k == r, else t
//!    goto h if %n < end, else x            t: safepoint()          goto c
//! ```
//!
//! The routines write sixteen to sixty-four bytes at a time. They know nothing of polls, so they are given [`CHUNK`] bytes at a time, which take
//! some microseconds: as long as `polls` lets a loop run without one. A length that is known to be less is written at once.
//!
//! | condition | because |
//! |---|---|
//! | the loop counts up or down by one, and its first round is guarded | the number of rounds is the distance to the end |
//! | one store of a constant of which all bytes are equal, or of what was loaded | what a routine can write (`copy` for the latter) |
//! | the number of rounds is not known to be small | a call costs as much as some rounds |
//! | its address changes by its size in each round | no byte is left out |
//! | nothing else has an effect, and nothing is used behind the loop | nothing else is lost |
//!
//! Where a `Memory` has the bytes, the routine's operands keep it alive, as those of the loop did.
//!
//! Cost: the blocks of innermost loops; one sweep over a function in which something is copied. Breaks the graph. Not done: addresses that count by
//! themselves.

mod copy;

use crate::address::{Addresses, Sum, plus, times};
use crate::counted::{Counted, Relation, Signed, Tested};
use crate::facts::Fact;
use crate::heads::head_phis;
use crate::loop_copy::{Escapes, jump_block, rename_pred};
use crate::pass::{Changed, Pass, PassCx, PassLevel};
use crate::undefined::WhenAsked;
use brolga_ir::analysis::{Cfg, Loop, Loops};
use brolga_ir::builtin::Builtin;
use brolga_ir::cursor::Cursor;
use brolga_ir::effects::effects;
use brolga_ir::func::ForeignData;
use brolga_ir::intrinsic::Intrinsic;
use brolga_ir::op::{Access, Region};
use brolga_ir::{Block, Func, Inst, Op, Type, Types, Value};
use copy::{Copies, Transfer};

pub(crate) const PASS: Pass = Pass {
    name: "loop-idiom",
    level: PassLevel::Low,
    required: false,
    needs: &[Fact::Cfg, Fact::Loops, Fact::Uses],
    breaks: &[Fact::Cfg, Fact::Uses],
    run,
};

/// A loop that is known to have fewer rounds is left for others.
const MIN_ROUNDS: u64 = 64;
/// How many bytes are written between two polls.
const CHUNK: i128 = 1 << 16;

fn run(func: &mut Func, cx: &mut PassCx<'_>) -> Changed {
    let (cfg, loops, uses) = (cx.facts.cfg(), cx.facts.loops(), cx.facts.uses());
    if loops.is_empty() {
        return Changed::No;
    }
    let rpo = cx.facts.rpo();
    let undefined = WhenAsked::new(cfg, rpo);
    let mut copies = Copies::new(rpo);
    for l in loops.iter().filter(|&l| loops.is_innermost(l)) {
        let Some(stores) = Stores::of(func, cx.types(), cfg, loops, &undefined, l) else { continue };
        let what = match stores.filled(func) {
            Some(byte) => Written::Byte(byte),
            None => match copies.copied(func, cx.types(), loops, undefined.get(func), &stores) {
                Some(copy) => Written::Copy(copy),
                None => continue,
            },
        };
        if !Escapes::of(func, loops, uses, l).is_empty() {
            continue;
        }
        let counts = if matches!(what, Written::Byte(_)) { "fills" } else { "copies" };
        if !cx.spend(counts) {
            break;
        }
        stores.write(func, cx.types(), loops, &what);
    }
    cx.changed()
}

/// A loop that does nothing but store neighbours.
struct Stores {
    counted: Counted,
    poll: Option<Inst>,
    to: Walk,
    inst: Inst,
    /// How many rounds there are, if that is known.
    rounds: Option<u64>,
}

/// The writes of a loop.
enum Written {
    Byte(u8),
    Copy(Transfer),
}

/// The address of an access, which changes by its size in each round.
struct Walk {
    sum: Sum,
    /// The object that keeps the memory alive.
    owner: Option<Value>,
    size: i64,
}

impl Walk {
    fn of(
        func: &Func,
        addresses: &Addresses<'_>,
        counted: &Counted,
        inst: Inst,
        access: Access,
        size: i64,
    ) -> Option<Walk> {
        let address = *func.args(inst).first()?;
        let (inside, owner) = match func.def_inst(address).map(|def| (func.op(def), func.args(def))) {
            Some((Op::GcLoaded, &[owner, inside])) => (inside, Some(owner)),
            _ => (address, None),
        };
        let mut sum = addresses.sum(func, inside)?;
        sum.constant = sum.constant.wrapping_add(i64::from(access.offset));
        let there = owner.is_none_or(|owner| addresses.is_fixed(func, owner));
        let steps = sum.counter == Some(counted.test.counter.value)
            && sum.factor.checked_abs() == Some(size)
            && sum.by.is_none()
            && sum.base.is_some();
        (there && steps).then_some(Walk { sum, owner, size })
    }

    /// The address in the first round, made at the end of a block.
    fn first(&self, func: &mut Func, types: &Types, block: Block, start: Value) -> Option<Value> {
        let mut at = Cursor::new(func);
        at.before_terminator(block);
        let constant = at.int(types, Type::I64, i128::from(self.sum.constant));
        let first = times(&mut at, types, start, self.sum.factor);
        let mut all = self.sum.base;
        for &(term, factor) in &self.sum.terms {
            let part = times(&mut at, types, term, factor);
            all = Some(plus(&mut at, all, part));
        }
        for part in [first, constant] {
            all = Some(plus(&mut at, all, part));
        }
        all
    }

    /// The first byte that the loop touches: of rounds that go down it is touched last.
    fn low(
        &self,
        func: &mut Func,
        types: &Types,
        block: Block,
        stores: &Stores,
        bytes: Value,
    ) -> Option<Value> {
        let first = self.first(func, types, block, stores.counted.test.counter.start)?;
        if stores.goes_up(func) {
            return Some(first);
        }
        let mut at = Cursor::new(func);
        at.before_terminator(block);
        let size = at.int(types, Type::I64, i128::from(self.size));
        let behind = plus(&mut at, Some(first), size);
        Some(at.ins_value(Op::Intrinsic(Intrinsic::SubPtr), &[behind, bytes], Type::PTR))
    }
}

impl Stores {
    fn of(
        func: &Func,
        types: &Types,
        cfg: &Cfg,
        loops: &Loops,
        undefined: &WhenAsked<'_>,
        l: Loop,
    ) -> Option<Stores> {
        let counted = Counted::of(func, cfg, loops, l)?;
        let test = &counted.test;
        let step = match test.relation {
            Relation::Less(Signed::Yes) | Relation::AtMost(Signed::Yes) => 1,
            Relation::Greater(Signed::Yes) | Relation::AtLeast(Signed::Yes) => -1,
            _ => return None,
        };
        let counts = test.tested == Tested::Next
            && test.counter.const_step(func) == Some(step)
            && func.ty(test.counter.value) == Type::I64
            && counted.is_guarded(func, cfg, loops);
        let rounds = counted.rounds(func);
        if !counts || rounds.is_some_and(|n| n < MIN_ROUNDS) || loops.exits(cfg, l).count() != 1 {
            return None;
        }
        let (mut store, mut poll) = (None, None);
        for &block in loops.blocks(l) {
            // Executed in every round: the only branch is the test.
            if block != counted.shape.latch && func.terminator(block).is_none_or(|t| func.op(t) != Op::Goto) {
                return None;
            }
            for inst in func.block_insts(block) {
                match func.op(inst) {
                    Op::Store(access) if store.is_none() => store = Some((inst, access)),
                    Op::Safepoint if poll.is_none() => poll = Some(inst),
                    Op::Goto | Op::Branch => {}
                    _ if effects(func, types, inst).is_removable() => {}
                    _ => return None,
                }
            }
        }
        let (inst, access) = store?;
        let undefined = undefined.get(func);
        if undefined.has(func, test.bound) {
            return None;
        }
        let size = i64::from(func.ty(*func.args(inst).get(1)?).as_low()?.bytes());
        let addresses = Addresses::of(func, loops, undefined, counted.shape);
        let to = Walk::of(func, &addresses, &counted, inst, access, size)?;
        Some(Stores { counted, poll, to, inst, rounds })
    }

    /// The byte with which everything is filled, by a routine that may be called with the address.
    fn filled(&self, func: &Func) -> Option<u8> {
        let Op::Store(access) = func.op(self.inst) else { return None };
        let bits = func.as_bits(*func.args(self.inst).get(1)?)?;
        let same = (0..self.to.size).all(|n| (bits >> (8 * n)) as u8 == bits as u8);
        (same && is_open(access.region)).then_some(bits as u8)
    }

    /// Whether each round touches what lies behind what the one before it touched.
    fn goes_up(&self, func: &Func) -> bool {
        let step = self.counted.test.counter.const_step(func);
        step.is_some_and(|step| (step > 0) == (self.to.sum.factor > 0))
    }

    /// Whether all is written before a poll is due.
    fn is_short(&self) -> bool {
        self.rounds.is_some_and(|n| i128::from(n) * i128::from(self.to.size) <= CHUNK)
    }

    /// How many bytes are written, made at the end of the preheader.
    fn bytes(&self, func: &mut Func, types: &Types) -> Value {
        let Counted { shape, test } = self.counted;
        let mut at = Cursor::new(func);
        at.before_terminator(shape.preheader);
        let ends = match test.relation {
            Relation::Greater(_) | Relation::AtLeast(_) => [test.counter.start, test.bound],
            _ => [test.bound, test.counter.start],
        };
        let mut rounds = at.ins_value(Op::Intrinsic(Intrinsic::SubInt), &ends, Type::I64);
        if matches!(test.relation, Relation::AtMost(_) | Relation::AtLeast(_)) {
            let one = at.int(types, Type::I64, 1);
            rounds = at.ins_value(Op::Intrinsic(Intrinsic::AddInt), &[rounds, one], Type::I64);
        }
        times(&mut at, types, rounds, self.to.size)
    }

    /// Writes the memory in front of what the loop leads to. The loop goes, or is left for what cannot be written so.
    fn write(&self, func: &mut Func, types: &Types, loops: &Loops, what: &Written) {
        let Counted { shape, test } = self.counted;
        let bytes = self.bytes(func, types);
        let Some(to) = self.to.low(func, types, shape.preheader, self, bytes) else { return };
        let mut starts = vec![(to, self.to.owner)];
        let mut asked = None;
        if let Written::Copy(copy) = what {
            let Some(from) = copy.from.low(func, types, shape.preheader, self, bytes) else { return };
            starts.push((from, copy.from.owner));
            asked = copy.ask(func, shape.preheader, to, from, bytes);
        }
        let chunk = jump_block(func, shape.preheader, test.exit);
        let before = match asked {
            None => {
                rename_pred(func, test.exit, shape.latch, chunk);
                if let Some(jump) = func.terminator(shape.preheader) {
                    func.set_inst_blocks(jump, &[chunk]);
                }
                for &block in loops.blocks(shape.l) {
                    func.remove_block(block);
                }
                shape.preheader
            }
            Some(asked) => self.keep(func, loops, chunk, asked),
        };
        if self.is_short() {
            self.call(func, types, chunk, what, &starts, bytes);
        } else {
            self.chunks(func, types, (before, chunk), what, &starts, bytes);
        }
    }

    /// Leads to the routine if this is true, and to the loop else; gives the block in front of the routine.
    fn keep(&self, func: &mut Func, loops: &Loops, chunk: Block, asked: Value) -> Block {
        let Counted { shape, test } = self.counted;
        for phi in head_phis(func, test.exit).collect::<Vec<_>>() {
            let value = func.phi_edges(phi).find(|&(b, _)| b == shape.latch).map(|(_, v)| v);
            if let Some(value) = value {
                func.add_phi_edge(phi, chunk, value);
            }
        }
        let before = jump_block(func, shape.preheader, chunk);
        let kept = jump_block(func, chunk, shape.header);
        rename_pred(func, shape.header, shape.preheader, kept);
        if let Some(jump) = func.terminator(shape.preheader) {
            func.set_op(jump, Op::Branch, &[asked]);
            func.set_inst_blocks(jump, &[before, kept]);
        }
        // Nobody gains from another form of it.
        for &block in loops.blocks(shape.l).iter().chain([&kept]) {
            func.set_cold(block);
        }
        before
    }

    /// Calls the routine for a number of bytes from these addresses on, at the end of a block.
    fn call(
        &self,
        func: &mut Func,
        types: &Types,
        block: Block,
        what: &Written,
        starts: &[(Value, Option<Value>)],
        bytes: Value,
    ) {
        let mut args: Vec<Value> = starts.iter().map(|&(address, _)| address).collect();
        let mut owners: Vec<Value> = starts.iter().filter_map(|&(_, owner)| owner).collect();
        owners.dedup();
        match what {
            Written::Copy(copy) if copy.is_apart() => {
                let mut at = Cursor::new(func);
                at.before_terminator(block);
                for (arg, &(_, owner)) in args.iter_mut().zip(starts) {
                    if let Some(owner) = owner {
                        *arg = at.ins_value(Op::GcLoaded, &[owner, *arg], Type::LOADED);
                    }
                }
                args.push(bytes);
                at.ins(Op::MemCopy, &args, &[]);
            }
            Written::Copy(_) => {
                args.push(bytes);
                args.extend(owners);
                routine(func, types, block, "memmove", [Type::PTR, Type::PTR, Type::I64], &args);
            }
            Written::Byte(byte) => {
                args.push(func.bits(types, Type::I32, (*byte).into()));
                args.push(bytes);
                args.extend(owners);
                routine(func, types, block, "memset", [Type::PTR, Type::I32, Type::I64], &args);
            }
        }
    }

    /// Calls the routine so often that polls come in time.
    fn chunks(
        &self,
        func: &mut Func,
        types: &Types,
        (before, chunk): (Block, Block),
        what: &Written,
        starts: &[(Value, Option<Value>)],
        bytes: Value,
    ) {
        let again = jump_block(func, chunk, chunk);
        let mut at = Cursor::new(func);
        at.before_terminator(chunk);
        let mut here: Vec<(Value, Option<Value>)> = Vec::new();
        for &(_, owner) in starts {
            here.push((at.phi(Type::PTR), owner));
        }
        let rest = at.phi(Type::I64);
        let most = at.int(types, Type::I64, CHUNK);
        let last = at.ins_value(Op::Intrinsic(Intrinsic::UleInt), &[rest, most], Type::I8);
        let now = at.ins_value(Op::Builtin(Builtin::Ifelse), &[last, rest, most], Type::I64);
        self.call(func, types, chunk, what, &here, now);
        let mut at = Cursor::new(func);
        at.before_terminator(chunk);
        let mut phis = Vec::new();
        for (&(start, _), &(address, _)) in starts.iter().zip(&here) {
            phis.push((address, start, plus(&mut at, Some(address), now)));
        }
        let left = at.ins_value(Op::Intrinsic(Intrinsic::SubInt), &[rest, now], Type::I64);
        phis.push((rest, bytes, left));
        if let Some(end) = func.terminator(chunk) {
            func.set_op(end, Op::Branch, &[last]);
            func.set_inst_blocks(end, &[self.counted.test.exit, again]);
        }
        for (phi, start, next) in phis {
            if let Some(phi) = func.def_inst(phi) {
                func.add_phi_edge(phi, before, start);
                func.add_phi_edge(phi, again, next);
            }
        }
        if let (Some(poll), Some(jump)) = (self.poll, func.terminator(again)) {
            let new = func.make_inst(Op::Safepoint, &[], &[], &[]);
            func.set_place(new, func.place(poll));
            func.insert_before(new, jump);
        }
    }
}

/// Calls a function of C that gives an address, at the end of a block.
fn routine(func: &mut Func, types: &Types, block: Block, name: &str, params: [Type; 3], args: &[Value]) {
    let called = func.add_foreign(ForeignData {
        name: Some(types.names().intern(name)),
        result: Type::PTR,
        params: params.into(),
        variadic_after: None,
    });
    let mut at = Cursor::new(func);
    at.before_terminator(block);
    at.ins(Op::ForeignCall(called), args, &[Type::PTR]);
}

/// Whether functions of C may touch memory of a kind.
fn is_open(region: Region) -> bool {
    matches!(region, Region::Raw | Region::Element)
}
