//! Makes addresses in loops as cheap as the processor's addressing allows.
//!
//! An invariant part is added before the loop, a constant goes into the access, and a product of the counter that no addressing
//! mode makes becomes a sum.
//!
//! ```text
//! h: %i = φ (p => 0, l => %n)                   p: %b = add_ptr(q, 8·m)     %s = 8·k     %c0 = r + 0·k
//!    … load(q + 8·(m + %i + 1) - 8)             h: %i = φ (p => 0, l => %n)
//!    … load(r + 8·(%i·k + 1) - 8)         ==>      %c = φ (p => %c0, l => %d)
//! l: %n = add_int(%i, 1)                           … load(%b + 8·%i)          base + index × scale: costs nothing on x86-64
//!                                                  … load(%c)
//!                                               l: %d = add_ptr(%c, %s)
//! ```
//!
//! An address is taken apart into a sum, modulo 2⁶⁴: a base, terms that do not change in the loop, a multiple of one counter, and a
//! constant. The multiple is a constant, or a value that does not change times a constant.
//!
//! | multiple | address in the loop |
//! |---|---|
//! | 0, 1, 2, 4 or 8 times an integer counter, or a counter that is an address | base and terms, summed before the loop, plus the multiple |
//! | any other | a counter of its own, if no more than [`MAX_COUNTERS`] are needed |
//!
//! An address that is already a base plus a multiple is unchanged. Every sum is the old one in another order, so
//! no fact about ranges is needed. Only untracked bases are moved: a sum with a tracked one is a derived pointer, which would have to be
//! kept alive through the loop. An element of an array is an untracked address that `gc_loaded` ties to its object; each access repeats the tie,
//! which keeps the object alive as long as addresses derived from it are used.
//!
//! Cost: at most [`MAX_PARTS`](crate::address::MAX_PARTS) parts for each access in innermost loops. Breaks the uses. Not done: addresses in outer loops; counters
//! narrower than 64 bits; products other than addresses.

use crate::address::{Addresses, Sum, plus, times};
use crate::counted::{Recurrence, Shape};
use crate::facts::Fact;
use crate::pass::{Changed, Pass, PassCx, PassLevel};
use crate::undefined::WhenAsked;
use brolga_ir::cursor::Cursor;
use brolga_ir::intrinsic::Intrinsic;
use brolga_ir::op::Access;
use brolga_ir::{Func, Inst, Op, Type, Types, Value};

pub(crate) const PASS: Pass =
    Pass::new("strength-reduce", PassLevel::Low, run).needs(&[Fact::Cfg, Fact::Loops]).breaks(&[Fact::Uses]);

/// Each new counter takes a register through the loop.
const MAX_COUNTERS: usize = 4;

fn run(func: &mut Func, cx: &mut PassCx<'_>) -> Changed {
    let (cfg, loops) = (cx.facts.cfg(), cx.facts.loops());
    if loops.is_empty() {
        return Changed::No;
    }
    let undefined = WhenAsked::new(cfg, cx.facts.rpo());
    for l in loops.iter().filter(|&l| loops.is_innermost(l)) {
        let Some(shape) = Shape::of(cfg, loops, l) else { continue };
        let accesses = |func: &Func, block| func.block_insts(block).any(|i| access_of(func, i).is_some());
        if !loops.blocks(l).iter().any(|&block| accesses(func, block)) {
            continue;
        }
        let addresses = Addresses::of(func, loops, undefined.get(func), shape);
        let mut reduced = Reduced { addresses, made: Vec::new(), scaled: Vec::new(), new_counters: 0 };
        for &block in loops.blocks(l) {
            let accesses: Vec<Inst> =
                func.block_insts(block).filter(|&i| access_of(func, i).is_some()).collect();
            for inst in accesses {
                if !reduced.reduce(func, cx, inst) {
                    return cx.changed();
                }
            }
        }
    }
    cx.changed()
}

/// How an instruction accesses memory at its first operand.
fn access_of(func: &Func, inst: Inst) -> Option<Access> {
    match func.op(inst) {
        Op::Load(access) | Op::Store(access) => Some(access),
        _ => None,
    }
}

/// The addresses of a loop.
struct Reduced<'a> {
    addresses: Addresses<'a>,
    /// Sums without their constant, and the addresses made for them.
    made: Vec<(Sum, Value)>,
    /// Multiples of counters that are computed at the head.
    scaled: Vec<(Value, i64, Value)>,
    new_counters: usize,
}

impl Reduced<'_> {
    /// Rewrites the address of an access in its cheaper form. False if there was no fuel left.
    fn reduce(&mut self, func: &mut Func, cx: &mut PassCx<'_>, inst: Inst) -> bool {
        let (Some(access), Some(&address)) = (access_of(func, inst), func.args(inst).first()) else {
            return true;
        };
        let kept = self.kept_alive(func, address);
        let address = kept.map_or(address, |(_, raw)| raw);
        if self.addresses.is_fixed(func, address) || func.ty(address) != Type::PTR {
            return true;
        }
        let Some(mut sum) = self.addresses.sum(func, address) else { return true };
        let Some(counter) = self.addresses.counter_of(&sum) else { return true };
        let offset = i64::from(access.offset).wrapping_add(std::mem::take(&mut sum.constant));
        let (Ok(offset), true) = (i32::try_from(offset), saves(&sum, func)) else { return true };
        let free = matches!(sum.factor, 0 | 1 | 2 | 4 | 8) && sum.by.is_none();
        sum.operations = 0;
        let known = self.made.iter().find(|(made, _)| *made == sum).map(|&(_, address)| address);
        if known.is_none() && !free && self.new_counters == MAX_COUNTERS {
            return true;
        }
        if !cx.spend(if free { "indexed addresses" } else { "address counters" }) {
            return false;
        }
        let new = known.unwrap_or_else(|| {
            let new = if free {
                self.indexed(func, cx.types(), &sum, counter.value)
            } else {
                self.counted(func, cx.types(), &sum, counter)
            };
            self.made.push((sum, new));
            new
        });
        let access = Access { offset, ..access };
        let op = if matches!(func.op(inst), Op::Load(_)) { Op::Load(access) } else { Op::Store(access) };
        let mut args = func.args(inst).to_vec();
        args[0] = match kept {
            Some((memory, _)) => {
                Cursor::new(func).before(inst).ins_value(Op::GcLoaded, &[memory, new], Type::LOADED)
            }
            None => new,
        };
        func.set_op(inst, op, &args);
        true
    }

    /// The object that keeps an address alive, which does not change, and the address.
    fn kept_alive(&self, func: &Func, address: Value) -> Option<(Value, Value)> {
        let def = func.def_inst(address).filter(|&def| func.op(def) == Op::GcLoaded)?;
        let &[memory, raw] = func.args(def) else { return None };
        self.addresses.is_fixed(func, memory).then_some((memory, raw))
    }

    /// Fixed part plus a multiple of the counter, made at the head of the loop.
    fn indexed(&mut self, func: &mut Func, types: &Types, sum: &Sum, counter: Value) -> Value {
        let fixed = self.addresses.fixed_part(func, types, sum);
        let mut at = Cursor::new(func);
        at.at_first_insertion_point(self.addresses.shape.header);
        let known = self.scaled.iter().find(|&&(by, factor, _)| (by, factor) == (counter, sum.factor));
        let part = match known {
            Some(&(.., part)) => {
                if let Some(def) = at.func.def_inst(part).filter(|_| sum.factor != 1) {
                    at.after(def);
                }
                part
            }
            None => times(&mut at, types, counter, sum.factor),
        };
        if known.is_none() {
            self.scaled.push((counter, sum.factor, part));
        }
        plus(&mut at, fixed, part)
    }

    /// A counter that is the address.
    fn counted(&mut self, func: &mut Func, types: &Types, sum: &Sum, counter: Recurrence) -> Value {
        self.new_counters += 1;
        let fixed = self.addresses.fixed_part(func, types, sum);
        let mut at = Cursor::new(func);
        at.before_terminator(self.addresses.shape.preheader);
        let mut multiple = |value: Value| {
            let by = sum.by.map(|(by, factor)| times(&mut at, types, by, factor));
            let all = match (by, sum.factor) {
                (Some(by), 0) => by,
                (by, factor) => {
                    let factor = at.int(types, Type::I64, i128::from(factor));
                    by.map_or(factor, |by| plus(&mut at, Some(by), factor))
                }
            };
            at.ins_value(Op::Intrinsic(Intrinsic::MulInt), &[value, all], Type::I64)
        };
        let (first, stride) = (multiple(counter.start), multiple(counter.step));
        let start = plus(&mut at, fixed, first);
        let ty = at.func.ty(start);
        at.at_first_insertion_point(self.addresses.shape.header);
        let value = at.phi(ty);
        at.before_terminator(self.addresses.shape.latch);
        let next = plus(&mut at, Some(value), stride);
        if let Some(phi) = func.def_inst(value) {
            func.add_phi_edge(phi, self.addresses.shape.preheader, start);
            func.add_phi_edge(phi, self.addresses.shape.latch, next);
        }
        value
    }
}

/// Whether fewer operations are left in the loop, not counting those that addressing modes perform.
fn saves(sum: &Sum, func: &Func) -> bool {
    if sum.counter.is_some_and(|c| func.ty(c) == Type::PTR) {
        // An invariant part would need a register for each sum with it.
        return sum.factor == 1
            && sum.by.is_none()
            && sum.base.is_none()
            && sum.terms.is_empty()
            && sum.operations > 0;
    }
    let indexed = usize::from(sum.factor != 1) + usize::from(sum.base.is_some() || !sum.terms.is_empty());
    sum.base.is_some()
        && (sum.by.is_some() || !matches!(sum.factor, 1 | 2 | 4 | 8) || sum.operations > indexed)
}
