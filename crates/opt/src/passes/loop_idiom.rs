//! Fills memory with the routine that does it best.
//!
//! ```text
//! h: %i = φ (p => s, l => %n)              c: %a = φ (p => b + w·s, t => a + k)     %r = φ (p => w·rounds, t => r - k)
//!    store(b + w·%i, v)             ==>       k = min(r, CHUNK)    memset(%a, v, k)
//! l: %n = add_int(%i, 1)                      goto x if k == r, else t
//!    goto h if %n < end, else x            t: safepoint()          goto c
//! ```
//!
//! `memset` writes sixteen to sixty-four bytes at a time. It knows nothing of polls, so it is given [`CHUNK`] bytes at a time, which take it
//! some microseconds: as long as `polls` lets a loop go without one.
//!
//! | condition | because |
//! |---|---|
//! | the loop counts up by one, and its first round is guarded | the number of rounds is the distance to the end |
//! | one store of a constant of which all bytes are equal | what `memset` can write |
//! | the number of rounds is not known to be small | a call costs as much as some rounds |
//! | its address goes up by its size in each round, in raw memory | no byte is left out |
//! | nothing else has an effect, and nothing is used behind the loop | nothing else is lost |
//!
//! Cost: the blocks of innermost loops. Breaks the graph. Not done: copies, since nothing says that two pieces of raw memory do not overlap;
//! counters that go down.

use crate::address::{Addresses, plus, times};
use crate::counted::{Counted, Relation, Signed, Tested};
use crate::facts::Fact;
use crate::loop_copy::{Escapes, jump_block, rename_pred};
use crate::pass::{Changed, Pass, PassCx, PassLevel};
use crate::undefined::MaybeUndefined;
use brolga_ir::analysis::{Cfg, Loop, Loops};
use brolga_ir::builtin::Builtin;
use brolga_ir::cursor::Cursor;
use brolga_ir::effects::effects;
use brolga_ir::func::ForeignData;
use brolga_ir::intrinsic::Intrinsic;
use brolga_ir::op::Region;
use brolga_ir::{Func, Inst, Op, Type, Types, Value};

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
    let undefined = MaybeUndefined::of(func, cfg, cx.facts.rpo());
    for l in loops.iter().filter(|&l| loops.is_innermost(l)) {
        let Some(fill) = Fill::of(func, cx.types(), cfg, loops, &undefined, l) else { continue };
        if !Escapes::of(func, loops, uses, l).is_empty() {
            continue;
        }
        if !cx.spend("fills") {
            break;
        }
        fill.write(func, cx.types());
        for &block in loops.blocks(l) {
            func.remove_block(block);
        }
    }
    cx.changed()
}

/// A loop that fills memory.
struct Fill {
    counted: Counted,
    poll: Option<Inst>,
    /// The address in the first round, without what the counter adds, and the bytes that are added to it.
    base: Value,
    terms: Vec<(Value, i64)>,
    constant: i64,
    size: i64,
    byte: u8,
}

impl Fill {
    fn of(
        func: &Func,
        types: &Types,
        cfg: &Cfg,
        loops: &Loops,
        undefined: &MaybeUndefined,
        l: Loop,
    ) -> Option<Fill> {
        let counted = Counted::of(func, cfg, loops, l)?;
        let test = &counted.test;
        let up_to_end = matches!(test.relation, Relation::Less(Signed::Yes) | Relation::AtMost(Signed::Yes));
        let counts = up_to_end
            && test.tested == Tested::Next
            && test.counter.const_step(func) == Some(1)
            && func.ty(test.counter.value) == Type::I64
            && counted.is_guarded(func, cfg, loops)
            && !undefined.has(func, test.bound);
        let few = counted.rounds(func).is_some_and(|n| n < MIN_ROUNDS);
        if !counts || few || loops.exits(cfg, l).count() != 1 {
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
        let (inst, access) = store.filter(|(_, access)| access.region == Region::Raw)?;
        let &[address, value] = func.args(inst) else { return None };
        let size = i64::from(func.ty(value).as_low()?.bytes());
        let bits = func.as_bits(value)?;
        let byte = (bits & 0xff) as u8;
        let same = (0..size).all(|n| (bits >> (8 * n)) as u8 == byte);
        let sum = Addresses::of(func, loops, undefined, counted.shape).sum(func, address)?;
        let steps = sum.counter == Some(test.counter.value) && sum.factor == size && sum.by.is_none();
        let constant = sum.constant.wrapping_add(i64::from(access.offset));
        (same && steps).then_some(Fill {
            counted,
            poll,
            base: sum.base?,
            terms: sum.terms,
            constant,
            size,
            byte,
        })
    }

    /// Writes the memory in front of what the loop left to.
    fn write(&self, func: &mut Func, types: &Types) {
        let Counted { shape, test } = self.counted;
        let mut at = Cursor::new(func);
        at.before_terminator(shape.preheader);
        let int = |at: &mut Cursor<'_>, n: i128| at.int(types, Type::I64, n);
        let arith = |at: &mut Cursor<'_>, op: Intrinsic, a: Value, b: Value| {
            at.ins_value(Op::Intrinsic(op), &[a, b], Type::I64)
        };

        let mut start = self.base;
        let constant = int(&mut at, i128::from(self.constant));
        let first = times(&mut at, types, test.counter.start, self.size);
        for &(term, factor) in &self.terms {
            let part = times(&mut at, types, term, factor);
            start = plus(&mut at, Some(start), part);
        }
        for part in [first, constant] {
            start = plus(&mut at, Some(start), part);
        }
        let mut rounds = arith(&mut at, Intrinsic::SubInt, test.bound, test.counter.start);
        if matches!(test.relation, Relation::AtMost(_)) {
            let one = int(&mut at, 1);
            rounds = arith(&mut at, Intrinsic::AddInt, rounds, one);
        }
        let all = times(&mut at, types, rounds, self.size);

        let chunk = jump_block(func, shape.preheader, test.exit);
        let again = jump_block(func, chunk, chunk);
        rename_pred(func, test.exit, shape.latch, chunk);
        if let Some(jump) = func.terminator(shape.preheader) {
            func.set_inst_blocks(jump, &[chunk]);
        }
        let memset = func.add_foreign(ForeignData {
            name: Some(types.names().intern("memset")),
            result: Type::PTR,
            params: [Type::PTR, Type::I32, Type::I64].into(),
            variadic_after: None,
        });
        let mut at = Cursor::new(func);
        at.before_terminator(chunk);
        let (address, rest) = (at.phi(Type::PTR), at.phi(Type::I64));
        let most = int(&mut at, CHUNK);
        let last = at.ins_value(Op::Intrinsic(Intrinsic::UleInt), &[rest, most], Type::I8);
        let now = at.ins_value(Op::Builtin(Builtin::Ifelse), &[last, rest, most], Type::I64);
        let byte = at.int(types, Type::I32, i128::from(self.byte));
        at.ins(Op::ForeignCall(memset), &[address, byte, now], &[Type::PTR]);
        let next = plus(&mut at, Some(address), now);
        let left = arith(&mut at, Intrinsic::SubInt, rest, now);
        if let Some(end) = func.terminator(chunk) {
            func.set_op(end, Op::Branch, &[last]);
            func.set_inst_blocks(end, &[test.exit, again]);
        }
        for (phi, start, next) in [(address, start, next), (rest, all, left)] {
            if let Some(phi) = func.def_inst(phi) {
                func.add_phi_edge(phi, shape.preheader, start);
                func.add_phi_edge(phi, again, next);
            }
        }
        if let (Some(poll), Some(jump)) = (self.poll, func.terminator(again)) {
            func.remove_inst(poll);
            func.insert_before(poll, jump);
        }
    }
}
