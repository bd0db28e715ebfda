//! Replaces loops that fill or copy memory by calls of `memset` or `memmove`, or by `MemCopy` instructions.
//!
//! ```text
//! h: %i = φ (p => s, l => %n)              c: %a = φ (p => b + w·s, t => a + k)     %r = φ (p => w·iterations, t => r - k)
//!    store(b + w·%i, v)             ==>       k = min(r, CHUNK)    memset(%a, v, k)
//! l: %n = add_int(%i, 1)                      goto x if k == r, else t
//!    goto h if %n < end, else x            t: safepoint()          goto c
//! ```
//!
//! The routines write 16 to 64 bytes at a time. They do not poll for safepoints, so each call gets at most [`CHUNK`] bytes,
//! which take some microseconds: as long as `polls` lets a loop run without a poll. A length known to be at most that
//! needs one call.
//!
//! | condition | because |
//! |---|---|
//! | the loop counts up or down by one, and its first iteration is guarded | the number of iterations is the distance to the bound |
//! | one store, of a constant whose bytes are all equal or of a loaded value | these are the patterns of the routines (`copy` for the latter) |
//! | the number of iterations is not known to be small | a call costs as much as some iterations |
//! | the address changes by the size of the access in each iteration | the bytes are contiguous |
//! | nothing else has an effect, and no value is used after the loop | nothing else is lost |
//!
//! If the bytes belong to a `Memory`, it is an operand of the call, which keeps it alive as the loop did.
//!
//! Cost: one visit of the blocks of innermost loops; one sweep over a function with a copy. Breaks the control flow
//! graph. Not done: addresses with an induction variable of their own.

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

pub(crate) const PASS: Pass = Pass::new("loop-idiom", PassLevel::Low, run)
    .needs(&[Fact::Cfg, Fact::Loops, Fact::Uses])
    .breaks(&[Fact::Cfg, Fact::Uses]);

/// A loop known to have fewer iterations is left to other passes.
const MIN_ITERATIONS: u64 = 64;
/// The most bytes written between two polls.
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

/// A loop whose only effect is one store to contiguous addresses.
struct Stores {
    counted: Counted,
    poll: Option<Inst>,
    to: Walk,
    inst: Inst,
    /// The number of iterations, if known.
    iterations: Option<u64>,
}

/// The pattern that a loop writes.
enum Written {
    Byte(u8),
    Copy(Transfer),
}

/// The address of an access, which changes by the size of the access in each iteration.
struct Walk {
    /// The address that the other parts are added to.
    base: Value,
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
        let is_owner_fixed = owner.is_none_or(|owner| addresses.is_fixed(func, owner));
        let steps = sum.counter == Some(counted.test.counter.value)
            && sum.factor.checked_abs() == Some(size)
            && sum.by.is_none();
        (is_owner_fixed && steps).then_some(Walk { base: sum.base?, sum, owner, size })
    }

    /// Computes the address in the first iteration at the end of a block.
    fn first(&self, func: &mut Func, types: &Types, block: Block, start: Value) -> Value {
        let mut at = Cursor::new(func);
        at.before_terminator(block);
        let constant = at.int(types, Type::I64, i128::from(self.sum.constant));
        let first = times(&mut at, types, start, self.sum.factor);
        let mut all = self.base;
        for &(term, factor) in &self.sum.terms {
            let part = times(&mut at, types, term, factor);
            all = plus(&mut at, Some(all), part);
        }
        for part in [first, constant] {
            all = plus(&mut at, Some(all), part);
        }
        all
    }

    /// Computes the lowest address that the loop accesses, at the end of a block. If addresses decrease, it is the last
    /// one.
    fn low(&self, func: &mut Func, types: &Types, block: Block, stores: &Stores, bytes: Value) -> Value {
        let first = self.first(func, types, block, stores.counted.test.counter.start);
        if stores.goes_up(func) {
            return first;
        }
        let mut at = Cursor::new(func);
        at.before_terminator(block);
        let size = at.int(types, Type::I64, i128::from(self.size));
        let end = plus(&mut at, Some(first), size);
        at.ins_value(Op::Intrinsic(Intrinsic::SubPtr), &[end, bytes], Type::PTR)
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
        let iterations = counted.iterations(func);
        if !counts || iterations.is_some_and(|n| n < MIN_ITERATIONS) || loops.exits(cfg, l).count() != 1 {
            return None;
        }
        let (mut store, mut poll) = (None, None);
        for &block in loops.blocks(l) {
            // Every block runs in every iteration: the only branch is the test.
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
        Some(Stores { counted, poll, to, inst, iterations })
    }

    /// The byte that fills the memory, if all stored bytes are equal and C functions may access the region.
    fn filled(&self, func: &Func) -> Option<u8> {
        let Op::Store(access) = func.op(self.inst) else { return None };
        let bits = func.as_bits(*func.args(self.inst).get(1)?)?;
        let same = (0..self.to.size).all(|n| (bits >> (8 * n)) as u8 == bits as u8);
        (same && is_open(access.region)).then_some(bits as u8)
    }

    /// Whether the address increases.
    fn goes_up(&self, func: &Func) -> bool {
        let step = self.counted.test.counter.const_step(func);
        step.is_some_and(|step| (step > 0) == (self.to.sum.factor > 0))
    }

    /// Whether the number of bytes is known to be at most [`CHUNK`].
    fn is_short(&self) -> bool {
        self.iterations.is_some_and(|n| i128::from(n) * i128::from(self.to.size) <= CHUNK)
    }

    /// Computes the number of bytes at the end of the preheader.
    fn bytes(&self, func: &mut Func, types: &Types) -> Value {
        let Counted { shape, test } = self.counted;
        let mut at = Cursor::new(func);
        at.before_terminator(shape.preheader);
        let ends = match test.relation {
            Relation::Greater(_) | Relation::AtLeast(_) => [test.counter.start, test.bound],
            _ => [test.bound, test.counter.start],
        };
        let mut iterations = at.ins_value(Op::Intrinsic(Intrinsic::SubInt), &ends, Type::I64);
        if matches!(test.relation, Relation::AtMost(_) | Relation::AtLeast(_)) {
            let one = at.int(types, Type::I64, 1);
            iterations = at.ins_value(Op::Intrinsic(Intrinsic::AddInt), &[iterations, one], Type::I64);
        }
        times(&mut at, types, iterations, self.to.size)
    }

    /// Emits the calls before the exit of the loop. Removes the loop, or keeps it for the cases that a test at run time
    /// excludes.
    fn write(&self, func: &mut Func, types: &Types, loops: &Loops, what: &Written) {
        let Counted { shape, test } = self.counted;
        let bytes = self.bytes(func, types);
        let to = self.to.low(func, types, shape.preheader, self, bytes);
        let mut starts = vec![(to, self.to.owner)];
        let mut condition = None;
        if let Written::Copy(copy) = what {
            let from = copy.from.low(func, types, shape.preheader, self, bytes);
            starts.push((from, copy.from.owner));
            condition = copy.ask(func, shape.preheader, to, from, bytes);
        }
        let chunk = jump_block(func, shape.preheader, test.exit);
        let before = match condition {
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
            Some(condition) => self.keep(func, loops, chunk, condition),
        };
        if self.is_short() {
            self.call(func, types, chunk, what, &starts, bytes);
        } else {
            self.chunks(func, types, (before, chunk), what, &starts, bytes);
        }
    }

    /// Branches to the call if `condition` is true, else to the loop. Returns the block before the call.
    fn keep(&self, func: &mut Func, loops: &Loops, chunk: Block, condition: Value) -> Block {
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
            func.set_op(jump, Op::Branch, &[condition]);
            func.set_inst_blocks(jump, &[before, kept]);
        }
        // The loop rarely runs now, so other passes should not optimise it.
        for &block in loops.blocks(shape.l).iter().chain([&kept]) {
            func.set_cold(block);
        }
        before
    }

    /// Emits a call for `bytes` bytes from these addresses, at the end of a block.
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

    /// Emits a loop of calls for at most [`CHUNK`] bytes each, with a poll between them.
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

/// Emits a call of a C function that returns an address, at the end of a block.
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

/// Whether C functions may access a region.
fn is_open(region: Region) -> bool {
    matches!(region, Region::Raw | Region::Element)
}
