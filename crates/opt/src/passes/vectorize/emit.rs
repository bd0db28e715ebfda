//! The loop in lanes: a copy of the loop whose trips are several iterations, made into vectors in place.
//!
//! ```text
//! p ─ enter? ─┬─> q ─> m … ─┬─> e ─ any left? ─> …      q  values in all lanes, start values of reductions
//!             │        ^────┘                           m  the copy: vectors, counters a trip further
//!             └─> rest: the loop as it was              e  lanes of reductions combined
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
use brolga_ir::op::Access;
use brolga_ir::{Block, Func, Inst, Op, Type, Types, Value};
use rustc_hash::FxHashMap;
use smallvec::{SmallVec, smallvec};

/// The head of the loop in lanes.
pub(super) fn emit(
    func: &mut Func,
    types: &Types,
    loops: &Loops,
    uses: &Uses,
    plan: &Plan,
    checks: &[(Walk, Walk)],
    repair: &mut Repair,
) -> Option<Block> {
    let counted = plan.counted;
    let shape = counted.shape;
    let escapes = Escapes::of(func, loops, uses, shape.l);
    let mut body: Vec<Inst> = func.block_insts(shape.header).collect();
    // The terminator has no copy in the main loop.
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
    let copy = split.iterations.first()?;
    let main = copy.block(shape.header);
    let copies = body.into_iter().zip(func.block_insts(main)).collect();
    let before = plan.counters.iter().find_map(|r| {
        let phi = func.def_inst(copy.value(r.value))?;
        func.phi_edges(phi).map(|(block, _)| block).find(|&b| b != main)
    });
    let after = func.successors(main).iter().copied().find(|&b| b != main);
    let (before, after) = (before?, after?);
    let mut lanes =
        InLanes { func, types, plan, copy, copies, main, before, after, made: FxHashMap::default() };
    lanes.counters();
    lanes.starts();
    for &(inst, vector) in &plan.vectors {
        lanes.vector(inst, vector);
    }
    lanes.ends();
    // After the main loop the values of the copy are available, also those that are only combined there.
    let seen =
        Copied { blocks: std::iter::once((shape.header, after)).collect(), values: copy.values.clone() };
    escapes.repair(&[seen], repair);
    Some(main)
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

/// The first byte that a walk touches, and one past the last.
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

/// The vectors that hold a value in the iterations of a trip.
type Parts = SmallVec<[Value; 4]>;

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
    /// By value of the loop, or used in it: its vectors in a trip, in the order of the iterations.
    made: FxHashMap<Value, Parts>,
}

impl InLanes<'_> {
    /// Counters go a trip further; addresses belong to the first iteration of the trip.
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

    /// A reduction starts with its first value in one lane, and with the neutral element in the others.
    fn starts(&mut self) {
        for reduction in &self.plan.reductions {
            let (Some(value), Some(&phi)) =
                (self.func.result(reduction.phi), self.copies.get(&reduction.phi))
            else {
                continue;
            };
            let start = self.func.phi_edges(phi).find(|&(b, _)| b == self.before).map(|(_, v)| v);
            let Some(start) = start else { continue };
            let mut carried = Parts::new();
            for n in 0..self.plan.carried(self.func, reduction) {
                let mut at = Cursor::new(self.func);
                let init = match reduction.identity() {
                    Some(identity) => {
                        let neutral = at.func.bits(self.types, Type::V128, reduction.lanes.splat(identity));
                        at.before_terminator(self.before);
                        match n {
                            0 => at.ins_value(
                                Op::InsertLane(reduction.lanes, 0),
                                &[neutral, start],
                                Type::V128,
                            ),
                            _ => neutral,
                        }
                    }
                    // The smaller or larger of a value and itself is that value.
                    None => at.before_terminator(self.before).ins_value(
                        Op::Splat(reduction.lanes),
                        &[start],
                        Type::V128,
                    ),
                };
                let vector = self.func.make_inst(Op::Phi, &[init], &[self.before], &[Type::V128]);
                self.func.set_place(vector, self.func.place(phi));
                self.func.prepend_inst(vector, self.main);
                carried.extend(self.func.result(vector));
            }
            self.made.insert(value, carried);
        }
    }

    fn constant(&mut self, lanes: Lanes, bits: u128) -> Value {
        self.func.bits(self.types, Type::V128, lanes.splat(bits))
    }

    /// A value in lanes: vectors, or an invariant value in each lane.
    fn operand(&mut self, value: Value, lanes: Lanes) -> Parts {
        if let Some(made) = self.made.get(&value) {
            return made.clone();
        }
        let made = match self.counter(value, lanes) {
            Some(made) => made,
            None => {
                let all = match self.func.as_bits(value) {
                    Some(bits) => self.constant(lanes, bits),
                    None => Cursor::new(self.func).before_terminator(self.before).ins_value(
                        Op::Splat(lanes),
                        &[value],
                        Type::V128,
                    ),
                };
                smallvec![all; self.plan.parts(lanes)]
            }
        };
        self.made.insert(value, made.clone());
        made
    }

    /// A counter in lanes: its value in each iteration of the trip.
    fn counter(&mut self, value: Value, lanes: Lanes) -> Option<Parts> {
        let r = self.plan.counters.iter().find(|r| r.value == value || r.next == value)?;
        let step = r.const_step(self.func)?;
        let ahead = i128::from(r.next == value);
        let mask = u128::MAX >> (128 - lanes.element().bits());
        let first = self.copy.value(r.value);
        let mut at = Cursor::new(self.func);
        at.at_first_insertion_point(self.main);
        let all = at.ins_value(Op::Splat(lanes), &[first], Type::V128);
        let part = |n: usize| {
            let before = n as i128 * i128::from(lanes.count()) + ahead;
            let distance = |lane: u32| step.wrapping_mul(i128::from(lane) + before).cast_unsigned() & mask;
            let distances = (0..lanes.count()).fold(0, |all, lane| lanes.insert(all, lane, distance(lane)));
            let distances = at.func.bits(self.types, Type::V128, distances);
            at.ins_value(Op::Lanes(Intrinsic::AddInt, lanes), &[all, distances], Type::V128)
        };
        Some((0..self.plan.parts(lanes)).map(part).collect())
    }

    /// The lanes of all iterations of a trip as one integer, if they are a part of a vector only.
    fn part(&self, lanes: Lanes) -> Option<Lanes> {
        match self.plan.iterations as u32 * lanes.element().bytes() {
            4 => Some(Lanes::I32x4),
            8 => Some(Lanes::I64x2),
            _ => None,
        }
    }

    /// An operation on vectors before an instruction.
    fn ins(&mut self, before: Inst, op: Op, args: &[Value]) -> Value {
        Cursor::new(self.func).before(before).ins_value(op, args, Type::V128)
    }

    /// The high half of a vector as the low half.
    fn high(&mut self, before: Inst, vector: Value) -> Value {
        let mut at = Cursor::new(self.func);
        let high = at.before(before).ins_value(Op::ExtractLane(Lanes::I64x2, 1), &[vector], Type::I64);
        self.ins(before, Op::InsertLane(Lanes::I64x2, 0), &[vector, high])
    }

    /// The low halves of two vectors.
    fn joined(&mut self, before: Inst, low: Value, high: Value) -> Value {
        let mut at = Cursor::new(self.func);
        let half = at.before(before).ins_value(Op::ExtractLane(Lanes::I64x2, 0), &[high], Type::I64);
        self.ins(before, Op::InsertLane(Lanes::I64x2, 1), &[low, half])
    }

    /// Vectors in other lanes, before an instruction.
    fn converted(
        &mut self,
        before: Inst,
        op: Intrinsic,
        from: Lanes,
        to: Lanes,
        mut vectors: Parts,
    ) -> Parts {
        if (op, from) == (Intrinsic::Sitofp, Lanes::I64x2) {
            return vectors.into_iter().map(|vector| self.float_of(before, vector)).collect();
        }
        let mut at = from;
        while at != to && at.made_by(op) != at {
            let next = at.made_by(op);
            let step = Op::Lanes(op, at);
            let mut made = Parts::new();
            if next.count() < at.count() {
                let many = self.plan.parts(next) > vectors.len();
                for vector in vectors {
                    made.push(self.ins(before, step, &[vector]));
                    if many {
                        let high = self.high(before, vector);
                        made.push(self.ins(before, step, &[high]));
                    }
                }
            } else {
                for pair in vectors.chunks(2) {
                    let low = self.ins(before, step, &[pair[0]]);
                    made.push(match pair.get(1) {
                        None => low,
                        Some(&high) => {
                            let high = self.ins(before, step, &[high]);
                            self.joined(before, low, high)
                        }
                    });
                }
            }
            (vectors, at) = (made, next);
        }
        vectors
    }

    /// Signed integers of 64 bits as floats. If x is high · 2³² + low, the bits of `low` after the exponent of 2⁵² are the
    /// number 2⁵² + low, and the bits of `high` with its sign turned after the exponent of 2⁸⁴ are 2⁸⁴ + 2⁶³ + high · 2³².
    /// Both are exact, and so is the second less 2⁸⁴ + 2⁶³ + 2⁵²; only the sum rounds.
    fn float_of(&mut self, before: Inst, vector: Value) -> Value {
        const LOW: u128 = 0x4330_0000_0000_0000;
        const HIGH: u128 = 0x4530_0000_8000_0000;
        const BOTH: u128 = 0x4530_0000_8010_0000;
        let (int, float) = (Lanes::I64x2, Lanes::F64x2);
        let mask = self.constant(int, 0xffff_ffff);
        let [low, high, both] = [LOW, HIGH, BOTH].map(|bits| self.constant(int, bits));
        let count = self.func.bits(self.types, Type::I64, 32);
        let x = self.ins(before, Op::Lanes(Intrinsic::AndInt, int), &[vector, mask]);
        let x = self.ins(before, Op::Lanes(Intrinsic::OrInt, int), &[x, low]);
        let y = self.ins(before, Op::Lanes(Intrinsic::LshrInt, int), &[vector, count]);
        let y = self.ins(before, Op::Lanes(Intrinsic::XorInt, int), &[y, high]);
        let y = self.ins(before, Op::Lanes(Intrinsic::SubFloat, float), &[y, both]);
        self.ins(before, Op::Lanes(Intrinsic::AddFloat, float), &[y, x])
    }

    /// A vector with the sums of a narrow one's lanes, in lanes of the sum's width: each width has room for the sum of two
    /// of the one before.
    fn widened_sum(&mut self, before: Inst, op: Intrinsic, from: Lanes, to: Lanes, vector: Value) -> Value {
        let (mut at, mut sum) = (from, vector);
        while at != to && at.made_by(op) != at {
            let high = self.high(before, sum);
            let halves = [sum, high].map(|half| self.ins(before, Op::Lanes(op, at), &[half]));
            at = at.made_by(op);
            sum = self.ins(before, Op::Lanes(Intrinsic::AddInt, at), &halves);
        }
        sum
    }

    /// A mask as numbers 0 and 1.
    fn bits(&mut self, copy: Inst, from: Lanes, to: Lanes, masks: Parts) -> Parts {
        let from = from.as_int();
        let one_of = |lanes: &mut Self, at: Lanes, vectors: Parts| -> Parts {
            let one = lanes.constant(at, 1);
            let and = Op::Lanes(Intrinsic::AndInt, at);
            vectors.into_iter().map(|mask| lanes.ins(copy, and, &[mask, one])).collect()
        };
        if to.count() < from.count() {
            let ones = one_of(self, from, masks);
            return self.converted(copy, Intrinsic::ZextInt, from, to, ones);
        }
        // Ones stay ones in any width.
        let masks = self.converted(copy, Intrinsic::TruncInt, from, to, masks);
        one_of(self, to, masks)
    }

    /// The widening of an instruction: the operation, the lanes before and after, and the narrow vectors.
    fn narrow(&mut self, copy: Inst, inst: Inst, vector: Vector) -> Option<(Intrinsic, Lanes, Lanes, Parts)> {
        let of = *self.func.args(inst).first()?;
        match vector {
            Vector::Convert(op, from, to) => Some((op, from, to, self.operand(of, from))),
            Vector::Bits(mask, to) => {
                let from = mask.as_int();
                let masks = self.operand(of, from);
                Some((Intrinsic::ZextInt, from, to, self.bits(copy, from, from, masks)))
            }
            _ => None,
        }
    }

    /// The next values of a reduction: each of its vectors takes its share of a trip's operands.
    fn reduce(&mut self, reduction: &Reduction, op: Intrinsic, copy: Inst) {
        let value = self.func.result(reduction.phi);
        let Some(mut carried) = value.and_then(|v| self.made.get(&v).cloned()) else { return };
        let other = self.func.args(reduction.next).iter().copied().find(|&v| Some(v) != value);
        let Some(other) = other else { return };
        let widening = self.func.def_inst(other).filter(|inst| self.plan.summed.contains(inst));
        let vector = widening.and_then(|inst| self.plan.vectors.iter().copied().find(|&(i, _)| i == inst));
        let narrow = vector.and_then(|(inst, vector)| self.narrow(copy, inst, vector));
        let addends = match narrow {
            Some((op, from, to, vectors))
                if vector.is_some_and(|(_, vector)| self.plan.added_up(vector).is_some()) =>
            {
                vectors.into_iter().map(|vector| self.widened_sum(copy, op, from, to, vector)).collect()
            }
            Some((op, from, to, vectors)) => self.converted(copy, op, from, to, vectors),
            None => self.operand(other, reduction.lanes),
        };
        for (n, addend) in addends.into_iter().enumerate() {
            let n = n % carried.len();
            carried[n] = self.ins(copy, Op::Lanes(op, reduction.lanes), &[carried[n], addend]);
        }
        self.made.extend(self.func.result(reduction.next).map(|next| (next, carried)));
    }

    fn vector(&mut self, inst: Inst, vector: Vector) {
        let Some(&copy) = self.copies.get(&inst) else { return };
        let args = self.func.args(inst).to_vec();
        let reduction = self.plan.reductions.iter().find(|r| r.next == inst);
        let made = match vector {
            Vector::Load(lanes) => self.loads(copy, lanes),
            Vector::Store(lanes) => {
                let values = self.operand(args[1], lanes);
                self.stores(copy, lanes, &values);
                Parts::new()
            }
            // The sum emits them.
            Vector::Convert(..) | Vector::Bits(..) if self.plan.summed.contains(&inst) => Parts::new(),
            Vector::Convert(op, from, to) => {
                let vectors = self.operand(args[0], from);
                self.converted(copy, op, from, to, vectors)
            }
            Vector::Bits(from, to) => {
                let masks = self.operand(args[0], from);
                self.bits(copy, from, to, masks)
            }
            Vector::Lanes(op, _) if let Some(reduction) = reduction => {
                self.reduce(reduction, op, copy);
                return;
            }
            Vector::Lanes(op, lanes) => {
                let counts = usize::from(Lanes::shifts(op));
                let (data, counts) = args.split_at(args.len() - counts);
                let counts: Parts = counts.iter().map(|&count| self.shift_count(count)).collect();
                self.lane_by_lane(copy, Op::Lanes(op, lanes), lanes, data, &counts)
            }
            Vector::Select(lanes) => self.lane_by_lane(copy, Op::LaneSelect, lanes, &args, &[]),
        };
        if !made.is_empty() {
            self.made.extend(self.func.result(inst).map(|value| (value, made)));
        }
        if reduction.is_none() {
            self.func.remove_inst(copy);
        }
    }

    /// An operation on each of the vectors of its operands; `same` are operands of all of them.
    fn lane_by_lane(&mut self, copy: Inst, op: Op, lanes: Lanes, data: &[Value], same: &[Value]) -> Parts {
        let data: SmallVec<[Parts; 3]> = data.iter().map(|&v| self.operand(v, lanes)).collect();
        let parts = data.iter().map(|parts| parts.len()).min().unwrap_or(0);
        let one = |n: usize| {
            let args: Parts = data.iter().map(|parts| parts[n]).chain(same.iter().copied()).collect();
            self.ins(copy, op, &args)
        };
        (0..parts).map(one).collect()
    }

    fn shift_count(&mut self, count: Value) -> Value {
        match self.func.as_bits(count) {
            // A count beyond 64 bits shifts as far as the largest.
            Some(bits) => self.func.bits(self.types, Type::I64, bits.min(u64::MAX.into())),
            None => count,
        }
    }

    /// The loads of a trip, before the copy of the load.
    fn loads(&mut self, copy: Inst, lanes: Lanes) -> Parts {
        let (load, address) = (self.func.op(copy), self.func.args(copy).to_vec());
        match self.part(lanes) {
            None => (0..self.plan.parts(lanes)).map(|n| self.ins(copy, further(load, n), &address)).collect(),
            Some(part) => {
                let ty = Type::low(part.element());
                let loaded = Cursor::new(self.func).before(copy).ins_value(load, &address, ty);
                let zero = self.constant(part, 0);
                smallvec![self.ins(copy, Op::InsertLane(part, 0), &[zero, loaded])]
            }
        }
    }

    /// The stores of a trip, before the copy of the store.
    fn stores(&mut self, copy: Inst, lanes: Lanes, values: &[Value]) {
        let (store, address) = (self.func.op(copy), self.func.args(copy)[0]);
        let part = self.part(lanes);
        for (n, &value) in values.iter().enumerate() {
            let mut at = Cursor::new(self.func);
            at.before(copy);
            let value = match part {
                None => value,
                Some(part) => at.ins_value(Op::ExtractLane(part, 0), &[value], Type::low(part.element())),
            };
            at.ins(further(store, n), &[address, value], &[]);
        }
    }

    /// Combines the lanes of reductions after the loop, with the operation of the loop's own instruction.
    fn ends(&mut self) {
        for reduction in &self.plan.reductions {
            let (Some(&phi), Some(&next)) =
                (self.copies.get(&reduction.phi), self.copies.get(&reduction.next))
            else {
                continue;
            };
            let made = |value: Option<Value>| value.and_then(|v| self.made.get(&v).cloned());
            let (heads, ends) =
                (made(self.func.result(reduction.phi)), made(self.func.result(reduction.next)));
            let (Some(heads), Some(ends)) = (heads, ends) else { continue };
            for (&head, &end) in heads.iter().zip(&ends) {
                if let Some(head) = self.func.def_inst(head) {
                    self.func.add_phi_edge(head, self.main, end);
                }
            }
            self.func.remove_inst(phi);
            self.func.remove_inst(next);
            let ty = Type::low(reduction.lanes.element());
            let mut at = Cursor::new(self.func);
            at.at_first_insertion_point(self.after);
            let Some(all) = ends.into_iter().reduce(|a, b| vectors_together(&mut at, reduction, a, b)) else {
                continue;
            };
            let lane = |at: &mut Cursor<'_>, n: u32| {
                at.ins_value(Op::ExtractLane(reduction.lanes, n as u8), &[all], ty)
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

/// An access `vectors` vectors after another.
fn further(op: Op, vectors: usize) -> Op {
    let at = |access: Access| Access { offset: access.offset + 16 * vectors as i32, ..access };
    match op {
        Op::Load(access) => Op::Load(at(access)),
        Op::Store(access) => Op::Store(at(access)),
        op => op,
    }
}

/// Combines two vectors of a reduction, lane by lane.
fn vectors_together(at: &mut Cursor<'_>, reduction: &Reduction, a: Value, b: Value) -> Value {
    let lanes = reduction.lanes;
    match reduction.how {
        Combine::Op(op) => at.ins_value(Op::Lanes(op, lanes), &[a, b], Type::V128),
        Combine::Choice { compare, other } => {
            let as_now = |&v: &Value| if v == other { b } else { a };
            let sides: Parts = at.func.args(compare).iter().map(as_now).collect();
            let Op::Intrinsic(op) = at.func.op(compare) else { return a };
            let mask = at.ins_value(Op::Lanes(op, lanes), &sides, Type::V128);
            let chosen = at.func.args(reduction.next)[1..].iter().map(as_now);
            let args: Parts = std::iter::once(mask).chain(chosen).collect();
            at.ins_value(Op::LaneSelect, &args, Type::V128)
        }
    }
}

/// The operation that combines a reduction's result with another value, as an iteration does.
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
            // The loop's own instruction has its operands in the order of the comparison.
            let chosen = at.func.args(reduction.next)[1..].iter().map(as_now);
            let args = std::iter::once(cond).chain(chosen).collect();
            (Op::Builtin(Builtin::Ifelse), args)
        }
    }
}
