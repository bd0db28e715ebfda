//! The loop in lanes: a copy of the loop whose trips are several iterations, made into vectors in place.
//!
//! ```text
//! p ─ enter? ─┬─> q ─> m … ─┬─> e ─ any left? ─> …      q  values in all lanes, what reductions start with
//!             │        ^────┘                           m  the copy: vectors, counters a trip further
//!             └─> rest: the loop as it was              e  lanes of reductions put together
//! ```

use super::overlap::{Walk, ask_apart};
use super::plan::{Combine, Plan, Reduction, Vector};
use crate::address::{plus, times};
use crate::loop_copy::{Copied, Enter, Escapes, end_of, ins, split_at};
use crate::passes::unroll::trip_limit;
use crate::ssa_repair::Repair;
use brolga_ir::analysis::{Loops, Uses};
use brolga_ir::builtin::Builtin;
use brolga_ir::cursor::Cursor;
use brolga_ir::intrinsic::Intrinsic;
use brolga_ir::lanes::Lanes;
use brolga_ir::{Block, Func, Inst, Op, Type, Types, Value};
use rustc_hash::FxHashMap;
use smallvec::{SmallVec, smallvec};

pub(super) fn emit(
    func: &mut Func,
    types: &Types,
    loops: &Loops,
    uses: &Uses,
    plan: &Plan,
    checks: &[(Walk, Walk)],
    repair: &mut Repair,
) {
    let counted = plan.counted;
    let shape = counted.shape;
    let escapes = Escapes::of(func, loops, uses, shape.l);
    let mut body: Vec<Inst> = func.block_insts(shape.header).collect();
    // Of the end there is no copy in the main loop.
    body.pop();
    let (limit, enter) = trip_limit(func, types, &counted, plan.iterations);
    let enter = match apart(func, types, plan, checks) {
        None => enter,
        Some(apart) => {
            let and = |func: &mut Func, known| {
                ins(func, shape.preheader, Intrinsic::AndInt, &[known, apart], Type::I8)
            };
            match enter {
                Enter::Below => Enter::BelowAnd(apart),
                Enter::BelowAnd(known) => Enter::BelowAnd(and(func, known)),
                Enter::If(known) => Enter::If(and(func, known)),
            }
        }
    };
    let split = split_at(func, loops, &counted, limit, enter, 1);
    let Some(copy) = split.iterations.first() else { return };
    let main = copy.block(shape.header);
    let copies = body.into_iter().zip(func.block_insts(main)).collect();
    let before = plan.counters.iter().find_map(|r| {
        let phi = func.def_inst(copy.value(r.value))?;
        func.phi_edges(phi).map(|(block, _)| block).find(|&b| b != main)
    });
    let after = func.successors(main).iter().copied().find(|&b| b != main);
    let (Some(before), Some(after)) = (before, after) else { return };
    let mut lanes =
        InLanes { func, types, plan, copy, copies, main, before, after, made: FxHashMap::default() };
    lanes.counters();
    lanes.starts();
    for &(inst, vector) in &plan.vectors {
        lanes.vector(inst, vector);
    }
    lanes.ends();
    // Behind the main loop the values of the copy are there, also those that are put together only there.
    let seen =
        Copied { blocks: std::iter::once((shape.header, after)).collect(), values: copy.values.clone() };
    escapes.repair(&[seen], repair);
}

/// Whether all these walks are apart, as a truth value at the end of the preheader.
fn apart(func: &mut Func, types: &Types, plan: &Plan, checks: &[(Walk, Walk)]) -> Option<Value> {
    if checks.is_empty() {
        return None;
    }
    let (pre, counter) = (plan.counted.shape.preheader, plan.counted.test.counter);
    let end = end_of(func, types, &plan.counted);
    let iterations = ins(func, pre, Intrinsic::SubInt, &[end, counter.start], Type::I64);
    let mut all = None;
    for (a, b) in checks {
        let [a, b] = [a, b].map(|walk| extent(func, types, pre, walk, iterations));
        let apart = ask_apart(func, pre, a, b);
        all = Some(match all {
            None => apart,
            Some(others) => ins(func, pre, Intrinsic::AndInt, &[others, apart], Type::I8),
        });
    }
    all
}

/// The first byte that a walk touches, and the one behind the last.
fn extent(func: &mut Func, types: &Types, pre: Block, walk: &Walk, iterations: Value) -> (Value, Value) {
    let mut low = walk.root;
    let size = func.bits(types, Type::I64, walk.size.into());
    if let Some(start) = walk.start {
        let distance = ins(func, pre, Intrinsic::MulInt, &[start, size], Type::I64);
        low = ins(func, pre, Intrinsic::AddPtr, &[low, distance], Type::PTR);
    }
    let mut at = Cursor::new(func);
    at.before_terminator(pre);
    for &(term, factor) in &walk.terms {
        let distance = times(&mut at, types, term, factor);
        low = plus(&mut at, Some(low), distance);
    }
    if walk.disp != 0 {
        let disp = func.bits(types, Type::I64, walk.disp.into());
        low = ins(func, pre, Intrinsic::AddPtr, &[low, disp], Type::PTR);
    }
    let bytes = ins(func, pre, Intrinsic::MulInt, &[iterations, size], Type::I64);
    (low, ins(func, pre, Intrinsic::AddPtr, &[low, bytes], Type::PTR))
}

/// The copy of the loop while it becomes vectors.
struct InLanes<'a> {
    func: &'a mut Func,
    types: &'a Types,
    plan: &'a Plan,
    copy: &'a Copied,
    /// By instruction of the loop: its copy.
    copies: FxHashMap<Inst, Inst>,
    main: Block,
    before: Block,
    after: Block,
    /// By value of the loop, or used in it: the vector.
    made: FxHashMap<Value, Value>,
}

impl InLanes<'_> {
    /// Counters go a trip further; addresses are those of the first iteration of the trip.
    fn counters(&mut self) {
        let test = self.plan.counted.test;
        let compare = self.func.args(test.branch).first().and_then(|&c| self.func.def_inst(c));
        for r in &self.plan.counters {
            let (Some(step), next) = (r.const_step(self.func), self.copy.value(r.next)) else { continue };
            let Some(add) = self.func.def_inst(next) else { continue };
            let (op, ty) = (self.func.op(add), self.func.ty(next));
            let args = self.func.args(add).to_vec();
            let first = Cursor::new(self.func).before(add).ins_value(op, &args, ty);
            let trip = step * self.plan.iterations as i128;
            let trip = self.func.bits(self.types, self.func.ty(r.step), trip as u128);
            for arg in self.func.args_mut(add).iter_mut().filter(|arg| **arg == r.step) {
                *arg = trip;
            }
            for (&of, &copy) in &self.copies {
                let counts = copy == add || Some(of) == compare || self.func.op(copy) == Op::Phi;
                if !counts && self.func.inst_block(copy) == Some(self.main) {
                    for arg in self.func.args_mut(copy).iter_mut().filter(|arg| **arg == next) {
                        *arg = first;
                    }
                }
            }
        }
    }

    /// A reduction starts with its first value in one lane, and with what changes nothing in the others.
    fn starts(&mut self) {
        for reduction in &self.plan.reductions {
            let (Some(value), Some(&phi)) =
                (self.func.result(reduction.phi), self.copies.get(&reduction.phi))
            else {
                continue;
            };
            let start = self.func.phi_edges(phi).find(|&(b, _)| b == self.before).map(|(_, v)| v);
            let Some(start) = start else { continue };
            let (op, args) = match reduction.identity() {
                Some(identity) => (
                    Op::InsertLane(reduction.lanes, 0),
                    vec![self.constant(reduction.lanes, identity), start],
                ),
                // The smaller or larger of a value and itself is that value.
                None => (Op::Splat(reduction.lanes), vec![start]),
            };
            let mut at = Cursor::new(self.func);
            let init = at.before_terminator(self.before).ins_value(op, &args, Type::V128);
            let vector = self.func.make_inst(Op::Phi, &[init], &[self.before], &[Type::V128]);
            self.func.set_place(vector, self.func.place(phi));
            self.func.prepend_inst(vector, self.main);
            self.made.extend(self.func.result(vector).map(|made| (value, made)));
        }
    }

    fn constant(&mut self, lanes: Lanes, bits: u128) -> Value {
        self.func.bits(self.types, Type::V128, lanes.splat(bits))
    }

    /// A value in lanes: a vector, or what is the same in all iterations in each of them.
    fn operand(&mut self, value: Value, lanes: Lanes) -> Value {
        if let Some(&made) = self.made.get(&value) {
            return made;
        }
        if let Some(made) = self.counter(value, lanes) {
            self.made.insert(value, made);
            return made;
        }
        let made = match self.func.as_bits(value) {
            Some(bits) => self.constant(lanes, bits),
            None => Cursor::new(self.func).before_terminator(self.before).ins_value(
                Op::Splat(lanes),
                &[value],
                Type::V128,
            ),
        };
        self.made.insert(value, made);
        made
    }

    /// A counter in lanes: what it is in each iteration of the trip.
    fn counter(&mut self, value: Value, lanes: Lanes) -> Option<Value> {
        let r = self.plan.counters.iter().find(|r| r.value == value || r.next == value)?;
        let step = r.const_step(self.func)?;
        let ahead = i128::from(r.next == value);
        let mask = u128::MAX >> (128 - lanes.element().bits());
        let distance = |n: u32| (step.wrapping_mul(i128::from(n) + ahead)).cast_unsigned() & mask;
        let distances = (0..lanes.count()).fold(0, |all, n| lanes.insert(all, n, distance(n)));
        let distances = self.func.bits(self.types, Type::V128, distances);
        let first = self.copy.value(r.value);
        let mut at = Cursor::new(self.func);
        at.at_first_insertion_point(self.main);
        let all = at.ins_value(Op::Splat(lanes), &[first], Type::V128);
        Some(at.ins_value(Op::Lanes(Intrinsic::AddInt, lanes), &[all, distances], Type::V128))
    }

    /// The lanes of all iterations of a trip as one integer, if they are a part of a vector only.
    fn part(&self, lanes: Lanes) -> Option<Lanes> {
        match self.plan.iterations as u32 * lanes.element().bytes() {
            4 => Some(Lanes::I32x4),
            8 => Some(Lanes::I64x2),
            _ => None,
        }
    }

    /// Vectors in other lanes, in front of an instruction.
    fn converted(&mut self, before: Inst, op: Intrinsic, from: Lanes, to: Lanes, mut vector: Value) -> Value {
        let mut at = from;
        while at != to && at.made_by(op) != at {
            let mut cursor = Cursor::new(self.func);
            vector = cursor.before(before).ins_value(Op::Lanes(op, at), &[vector], Type::V128);
            at = at.made_by(op);
        }
        vector
    }

    fn vector(&mut self, inst: Inst, vector: Vector) {
        let Some(&copy) = self.copies.get(&inst) else { return };
        let args = self.func.args(inst).to_vec();
        let (op, operands) = match vector {
            Vector::Load(lanes) => {
                let (load, address) = (self.func.op(inst), self.func.args(copy).to_vec());
                match self.part(lanes) {
                    None => (load, address),
                    Some(part) => {
                        let ty = Type::low(part.element());
                        let loaded = Cursor::new(self.func).before(copy).ins_value(load, &address, ty);
                        let zero = self.constant(part, 0);
                        (Op::InsertLane(part, 0), vec![zero, loaded])
                    }
                }
            }
            Vector::Store(lanes) => {
                let mut value = self.operand(args[1], lanes);
                if let Some(part) = self.part(lanes) {
                    let (op, ty) = (Op::ExtractLane(part, 0), Type::low(part.element()));
                    value = Cursor::new(self.func).before(copy).ins_value(op, &[value], ty);
                }
                (self.func.op(inst), vec![self.func.args(copy)[0], value])
            }
            Vector::Convert(op, from, to) => {
                let value = self.operand(args[0], from);
                let made = self.converted(copy, op, from, to, value);
                self.made.extend(self.func.result(inst).map(|value| (value, made)));
                self.func.remove_inst(copy);
                return;
            }
            Vector::Bits(from, to) => {
                let mask = self.operand(args[0], from);
                // Ones stay ones in any width.
                let op = if to.count() < from.count() { Intrinsic::SextInt } else { Intrinsic::TruncInt };
                let mask = self.converted(copy, op, int_lanes(from), to, mask);
                let one = self.constant(to, 1);
                (Op::Lanes(Intrinsic::AndInt, to), vec![mask, one])
            }
            Vector::Lanes(op, lanes) => {
                let counts = usize::from(Lanes::shifts(op));
                let data = args.len() - counts;
                let mut operands: Vec<Value> = args[..data].iter().map(|&v| self.operand(v, lanes)).collect();
                for &count in &args[data..] {
                    operands.push(match self.func.as_bits(count) {
                        // A count beyond 64 bits shifts as far as the largest.
                        Some(bits) => self.func.bits(self.types, Type::I64, bits.min(u64::MAX.into())),
                        None => count,
                    });
                }
                (Op::Lanes(op, lanes), operands)
            }
            Vector::Select(lanes) => (Op::LaneSelect, args.iter().map(|&v| self.operand(v, lanes)).collect()),
        };
        let mut at = Cursor::new(self.func);
        at.before(copy);
        match vector {
            Vector::Store(_) => {
                at.ins(op, &operands, &[]);
            }
            _ => {
                let made = at.ins_value(op, &operands, Type::V128);
                self.made.extend(self.func.result(inst).map(|value| (value, made)));
            }
        }
        if !self.plan.reductions.iter().any(|r| r.next == inst) {
            self.func.remove_inst(copy);
        }
    }

    /// Lanes of reductions are put together behind the loop, by the instruction that did it in each iteration.
    fn ends(&mut self) {
        for reduction in &self.plan.reductions {
            let (Some(&phi), Some(&next)) =
                (self.copies.get(&reduction.phi), self.copies.get(&reduction.next))
            else {
                continue;
            };
            let made = |value: Option<Value>| value.and_then(|v| self.made.get(&v).copied());
            let (head, end) = (made(self.func.result(reduction.phi)), made(self.func.result(reduction.next)));
            let (Some(head), Some(end)) = (head.and_then(|v| self.func.def_inst(v)), end) else { continue };
            self.func.add_phi_edge(head, self.main, end);
            self.func.remove_inst(phi);
            self.func.remove_inst(next);
            let ty = Type::low(reduction.lanes.element());
            let mut at = Cursor::new(self.func);
            at.at_first_insertion_point(self.after);
            let lane = |at: &mut Cursor<'_>, n: u32| {
                at.ins_value(Op::ExtractLane(reduction.lanes, n as u8), &[end], ty)
            };
            let mut sum = lane(&mut at, 0);
            let last = reduction.lanes.count() - 1;
            for n in 1..=last {
                let other = lane(&mut at, n);
                let (op, args) = put_together(&mut at, reduction, sum, other);
                if n == last {
                    at.place_inst(next);
                    self.func.set_op(next, op, &args);
                    break;
                }
                sum = at.ins_value(op, &args, ty);
            }
        }
    }
}

/// The operation that puts what a reduction came to together with another value, as an iteration does.
fn put_together(
    at: &mut Cursor<'_>,
    reduction: &Reduction,
    sofar: Value,
    value: Value,
) -> (Op, SmallVec<[Value; 3]>) {
    match reduction.how {
        Combine::Op(op) => (Op::Intrinsic(op), smallvec![sofar, value]),
        Combine::Choice { compare, other } => {
            let as_now = |&v: &Value| if v == other { value } else { sofar };
            let sides: SmallVec<[Value; 2]> = at.func.args(compare).iter().map(as_now).collect();
            let cond = at.ins_value(at.func.op(compare), &sides, Type::I8);
            // In the loop's own instruction the operands stand in the order that the comparison is meant for.
            let chosen = at.func.args(reduction.next)[1..].iter().map(as_now);
            let args = std::iter::once(cond).chain(chosen).collect();
            (Op::Builtin(Builtin::Ifelse), args)
        }
    }
}

/// Integers of the same width.
fn int_lanes(lanes: Lanes) -> Lanes {
    match lanes {
        Lanes::F32x4 => Lanes::I32x4,
        Lanes::F64x2 => Lanes::I64x2,
        int => int,
    }
}
