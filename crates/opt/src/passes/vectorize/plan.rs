//! Which instructions of a loop become vectors.
//!
//! ```text
//! scalar    counters and their steps, computations of addresses from them, the test, the poll
//! vector    loads and stores of neighbours, computations on loaded values, reductions
//! outside   invariant values: in all lanes if a vector uses them
//! ```
//!
//! A scalar value is never in a lane and a vector is never part of an address; a loop in which they mix has no plan.

use crate::CpuFeatures;
use crate::counted::{Counted, Recurrence, Tested, is_invariant, recurrences};
use crate::heads::head_phis;
use crate::loop_copy::splittable_step;
use brolga_ir::analysis::{Loops, Use, Uses};
use brolga_ir::builtin::Builtin;
use brolga_ir::intrinsic::{Intrinsic, Shape};
use brolga_ir::lanes::Lanes;
use brolga_ir::{Func, Inst, Op, Type, Types, Value};
use rustc_hash::{FxHashMap, FxHashSet};

/// Larger blocks gain little from lanes, and are visited several times.
const MAX_BLOCK: usize = 200;
/// The greatest step of the tested counter, so that the step of a trip is an immediate.
const MAX_STEP: i128 = 1 << 20;
/// Loops with more loads and stores are left alone: all pairs are compared.
pub(super) const MAX_ACCESSES: usize = 16;
/// The most bytes of the widest elements in a trip: eight vectors, four where nothing is widened and the processor has
/// neither registers of 256 bits (two vectors are one there) nor 32 of them. Those have FMA.
const MAX_WIDE: u32 = 128;
const MAX_PLAIN: u32 = 64;
/// Up to this offset the accesses of a trip have one as well.
const MAX_OFFSET: i32 = i32::MAX - MAX_WIDE as i32;
/// The most vector instructions in a trip, unless it has the fewest possible iterations. More do not keep the execution
/// units busier, and lengthen the remainder after the trips.
const MAX_VECTORS: usize = 40;
/// The number of independent partial sums: enough that none waits for the one before, even if two are merged into one.
const MAX_SUMS: usize = 8;

/// A value that all iterations accumulate with one operation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reduction {
    /// The φ of the head.
    pub(super) phi: Inst,
    /// The increment of an iteration.
    pub(super) next: Inst,
    pub(super) how: Combine,
    pub(super) lanes: Lanes,
}

/// How two values are combined.
#[derive(Clone, Copy, Debug)]
pub(super) enum Combine {
    /// By an operation.
    Op(Intrinsic),
    /// The smaller or the larger, chosen by a comparison. Equal values are indistinguishable.
    Choice { compare: Inst, other: Value },
}

impl Reduction {
    /// The neutral element of the operation, in a lane; `None` if that is the reduction's start.
    pub(super) fn identity(&self) -> Option<u128> {
        let Combine::Op(op) = self.how else { return None };
        let ones = u128::MAX >> (128 - self.lanes.element().bits());
        Some(match op {
            Intrinsic::MulInt => 1,
            Intrinsic::AndInt => ones,
            // -0.0 plus x is x, also if x is -0.0.
            Intrinsic::AddFloatFast => 1 << (self.lanes.element().bits() - 1),
            Intrinsic::MulFloatFast if self.lanes == Lanes::F64x2 => u128::from(1.0f64.to_bits()),
            Intrinsic::MulFloatFast => u128::from(1.0f32.to_bits()),
            _ => 0,
        })
    }

    /// The vector form of the operation that joins two.
    fn vector(&self) -> Vector {
        match self.how {
            Combine::Op(op) => Vector::Lanes(op, self.lanes),
            Combine::Choice { .. } => Vector::Select(self.lanes),
        }
    }
}

/// The vector form of an instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Vector {
    Load(Lanes),
    Store(Lanes),
    Lanes(Intrinsic, Lanes),
    Select(Lanes),
    /// To other lanes, width by width.
    Convert(Intrinsic, Lanes, Lanes),
    /// A mask as numbers 0 and 1, in lanes of another width perhaps.
    Bits(Lanes, Lanes),
}

impl Vector {
    /// The lanes of the result, or of the stored value.
    fn lanes(self) -> Lanes {
        match self {
            Vector::Load(lanes)
            | Vector::Store(lanes)
            | Vector::Lanes(_, lanes)
            | Vector::Select(lanes)
            | Vector::Convert(_, _, lanes)
            | Vector::Bits(_, lanes) => lanes,
        }
    }
}

/// A loop that can be executed in lanes.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) counted: Counted,
    /// How many iterations make a trip.
    pub(super) iterations: usize,
    /// The least possible number: the lanes of the widest elements.
    fewest: usize,
    /// Conversions to wider integers, or masks made to such, whose only use is a sum: they are added up before they are
    /// widened.
    pub(super) summed: FxHashSet<Inst>,
    /// The instructions that become vectors, in their order, without the φ.
    pub(super) vectors: Vec<(Inst, Vector)>,
    pub(super) reductions: Vec<Reduction>,
    pub(super) counters: Vec<Recurrence>,
}

impl Plan {
    pub(super) fn of(
        func: &Func,
        types: &Types,
        loops: &Loops,
        uses: &Uses,
        cpu: CpuFeatures,
        counted: &Counted,
    ) -> Option<Plan> {
        let shape = counted.shape;
        let small = func.block_insts(shape.header).take(MAX_BLOCK + 1).count() <= MAX_BLOCK;
        let one_block = shape.header == shape.latch && small;
        if !one_block || counted.test.tested != Tested::Next {
            return None;
        }
        let step = splittable_step(func, counted).filter(|&step| step <= MAX_STEP)?;
        let counters: Vec<Recurrence> = recurrences(func, loops, &shape)
            .filter(|r| {
                r.const_step(func).is_some() && !func.ty(r.value).as_low().is_some_and(|l| l.is_float())
            })
            .collect();
        let mut search = Search {
            func,
            loops,
            cpu,
            counted,
            vectors: FxHashMap::default(),
            masks: FxHashSet::default(),
            counters: &counters,
            data: FxHashSet::default(),
            widths: None,
            accesses: 0,
        };
        search.find_data();
        let reductions = search.reductions(uses)?;
        let mut found = Vec::new();
        for inst in func.block_insts(shape.header).filter(|&i| func.op(i) != Op::Phi) {
            if let Some(vector) = search.inst(types, inst)? {
                found.push((inst, vector));
            }
        }
        let (narrow, wide) = search.widths?;
        let accesses = search.accesses;
        // A reduction without an addend, or with other readers, is not a reduction.
        let settled = |r: &Reduction| found.contains(&(r.next, r.vector()));
        // Lanes without an iteration would contribute to the result.
        let whole = |r: &Reduction| r.lanes.element().bytes() == wide;
        let reduced = reductions.iter().all(|r| settled(r) && whole(r));
        // Elements that are not neighbours are not in one vector.
        let apart = step != 1 && accesses > 0;
        if accesses == 0 && reductions.is_empty() || accesses > MAX_ACCESSES || !reduced || apart {
            return None;
        }
        let summed = found.iter().filter(|(inst, _)| is_summed(func, uses, &reductions, *inst));
        let summed: FxHashSet<Inst> = summed.map(|&(inst, _)| inst).collect();
        let fewest = 16 / wide as usize;
        let known = counted.iterations(func);
        let fits = |&n: &usize| {
            let few = known.is_some_and(|known| known < 2 * n as u64)
                || n > fewest && counted.is_short(func, 2 * n);
            let count = found.iter().map(|(_, vector)| parts(n, vector.lanes())).sum::<usize>();
            let bytes = n as u32 * wide;
            let is_plain = !cpu.fma && wide == narrow;
            let most =
                if n as u32 * narrow > 16 && wide != narrow || is_plain { MAX_PLAIN } else { MAX_WIDE };
            n == fewest && !few || bytes <= most && count <= MAX_VECTORS && !few
        };
        let iterations = (0..4).map(|doublings| fewest << doublings).take_while(fits).last()?;
        // Widening takes one operation for each doubling, and pays if they are fewer than the iterations.
        if (wide / narrow).ilog2() as usize >= iterations {
            return None;
        }
        // After a trip only the counters' next values and the reductions have their values of its last iteration.
        let stays = |inst: Inst| {
            let last =
                |v: Value| counters.iter().any(|r| r.next == v) || reductions.iter().any(|r| r.next == inst);
            let inside = |one: &Use| func.inst_block(one.inst) == Some(shape.header);
            func.results(inst).all(|v| last(v) || uses.of(v).iter().all(inside))
        };
        let usable = func.block_insts(shape.header).all(stays);
        usable.then_some(Plan {
            counted: *counted,
            iterations,
            fewest,
            summed,
            vectors: found,
            reductions,
            counters,
        })
    }

    /// Makes trips half as long; `false` if they would be too short.
    pub(super) fn shorten(&mut self) -> bool {
        let half = self.iterations / 2;
        let shorter = half >= self.fewest;
        if shorter {
            self.iterations = half;
        }
        shorter
    }

    /// Whether a trip has several vectors of its widest values.
    pub(super) fn has_long_trips(&self) -> bool {
        self.iterations > self.fewest
    }

    /// How many vectors a value of these lanes takes in a trip.
    pub(super) fn parts(&self, lanes: Lanes) -> usize {
        parts(self.iterations, lanes)
    }

    /// The lanes before and after a conversion whose full vectors are added up during widening.
    pub(super) fn added_up(&self, vector: Vector) -> Option<(Lanes, Lanes)> {
        let (from, to) = match vector {
            Vector::Convert(_, from, to) => (from, to),
            Vector::Bits(mask, to) => (mask.as_int(), to),
            _ => return None,
        };
        (self.iterations as u32 >= from.count() && to.count() < from.count()).then_some((from, to))
    }

    /// How many values a reduction is carried in.
    pub(super) fn carried(&self, func: &Func, reduction: &Reduction) -> usize {
        let addend = |inst: &Inst| func.args(reduction.next).iter().any(|&v| func.def_inst(v) == Some(*inst));
        let summed = self.vectors.iter().find(|(inst, _)| self.summed.contains(inst) && addend(inst));
        let parts = match summed.and_then(|&(_, vector)| self.added_up(vector)) {
            Some((from, _)) => self.parts(from),
            None => self.parts(reduction.lanes),
        };
        match reduction.how {
            Combine::Op(_) => parts.min(MAX_SUMS),
            Combine::Choice { .. } => parts,
        }
    }
}

/// How many vectors hold as many elements as there are iterations.
fn parts(iterations: usize, lanes: Lanes) -> usize {
    (iterations * lanes.element().bytes() as usize).div_ceil(16)
}

/// Whether an instruction widens integers only for a sum.
fn is_summed(func: &Func, uses: &Uses, reductions: &[Reduction], inst: Inst) -> bool {
    let widens = matches!(func.op(inst), Op::Intrinsic(Intrinsic::SextInt | Intrinsic::ZextInt));
    let sum = |r: &Reduction| {
        let adds = matches!(r.how, Combine::Op(Intrinsic::AddInt));
        adds && func.result(inst).is_some_and(|v| uses.of(v).iter().all(|one| one.inst == r.next))
    };
    widens && reductions.iter().any(sum)
}

struct Search<'a> {
    func: &'a Func,
    loops: &'a Loops,
    cpu: CpuFeatures,
    counted: &'a Counted,
    /// The values that become vectors, with their lanes; a mask has the lanes of the values that it selects.
    vectors: FxHashMap<Value, Lanes>,
    masks: FxHashSet<Value>,
    counters: &'a [Recurrence],
    /// The instructions that compute stored values and reductions; computations on counters alone are in lanes if they are
    /// among them.
    data: FxHashSet<Inst>,
    /// The bytes of the smallest and the largest element.
    widths: Option<(u32, u32)>,
    accesses: usize,
}

impl Search<'_> {
    /// The φ of the head that are not counters: all have to be reductions.
    fn reductions(&mut self, uses: &Uses) -> Option<Vec<Reduction>> {
        let (func, shape) = (self.func, self.counted.shape);
        let mut found = Vec::new();
        for phi in head_phis(func, shape.header) {
            let value = func.result(phi)?;
            if self.counters.iter().any(|r| r.value == value) {
                continue;
            }
            let lanes = Lanes::of(func.ty(value).as_low()?)?;
            let (_, next) = shape.edges(func, phi)?;
            let next = func.def_inst(next).filter(|&i| func.inst_block(i) == Some(shape.header))?;
            let how = combine(func, uses, value, next)?;
            let compare = match how {
                Combine::Choice { compare, .. } => Some(compare),
                Combine::Op(_) => None,
            };
            let once = func.args(next).iter().filter(|&&v| v == value).count() == 1;
            let only = uses.of(value).iter().all(|one| one.inst == next || Some(one.inst) == compare);
            let result = func.result(next)?;
            let outside = uses
                .of(result)
                .iter()
                .all(|one| one.inst == phi || func.inst_block(one.inst) != Some(shape.header));
            if !once || !only || !outside {
                return None;
            }
            self.note(lanes);
            self.vectors.insert(value, lanes);
            found.push(Reduction { phi, next, how, lanes });
        }
        Some(found)
    }

    fn find_data(&mut self) {
        let (func, shape) = (self.func, self.counted.shape);
        let in_loop = |v: Value| func.def_inst(v).filter(|&i| func.inst_block(i) == Some(shape.header));
        let stored =
            func.block_insts(shape.header).filter_map(|inst| match (func.op(inst), func.args(inst)) {
                (Op::Store(_), &[_, value, ..]) => Some(value),
                _ => None,
            });
        let carried = head_phis(func, shape.header).filter_map(|phi| Some(shape.edges(func, phi)?.1));
        let counts = |v: Value| self.counters.iter().any(|r| r.value == v || r.next == v);
        let mut ahead: Vec<Value> = stored.chain(carried).collect();
        while let Some(value) = ahead.pop() {
            let Some(inst) = in_loop(value).filter(|_| !counts(value)) else { continue };
            let ends = matches!(func.op(inst), Op::Phi | Op::Load(_));
            if !ends && self.data.insert(inst) {
                ahead.extend(func.args(inst));
            }
        }
    }

    fn note(&mut self, lanes: Lanes) {
        let bytes = lanes.element().bytes();
        let (narrow, wide) = self.widths.unwrap_or((bytes, bytes));
        self.widths = Some((narrow.min(bytes), wide.max(bytes)));
    }

    fn lanes_of(&mut self, ty: Type) -> Option<Lanes> {
        let lanes = Lanes::of(ty.as_low()?)?;
        self.note(lanes);
        Some(lanes)
    }

    /// Whether a value may be in lanes: it is a vector, a counter, or the same in all iterations.
    fn is_data(&self, value: Value) -> bool {
        !self.masks.contains(&value)
            && (self.vectors.contains_key(&value)
                || self.counters.iter().any(|r| r.value == value || r.next == value)
                || is_invariant(self.func, self.loops, self.counted.shape.l, value))
    }

    /// The lanes of a value that is in lanes, or may be.
    fn lanes_in(&mut self, value: Value) -> Option<Lanes> {
        match self.vectors.get(&value) {
            Some(&lanes) => Some(lanes),
            None => self.lanes_of(self.func.ty(value)),
        }
    }

    /// The vector form of a conversion.
    fn conversion(&mut self, op: Intrinsic, of: Value, result: Value) -> Option<Vector> {
        if !self.masks.contains(&of) && !self.is_data(of) {
            return None;
        }
        let from = self.lanes_in(of)?;
        let to = self.lanes_of(self.func.ty(result))?;
        self.vectors.insert(result, to);
        if self.masks.contains(&of) {
            let bits = op == Intrinsic::ZextInt && !to.is_float();
            return bits.then_some(Vector::Bits(from, to));
        }
        steps(op, from, to).map(|_| Vector::Convert(op, from, to))
    }

    /// The form of an instruction: a vector, or itself; the outer `None` if it can be neither.
    fn inst(&mut self, types: &Types, inst: Inst) -> Option<Option<Vector>> {
        let func = self.func;
        let args = func.args(inst);
        match func.op(inst) {
            Op::Load(access) if access.offset <= MAX_OFFSET => {
                self.accesses += 1;
                let result = func.result(inst)?;
                let lanes = self.lanes_of(func.ty(result))?;
                if self.vectors.contains_key(&args[0]) {
                    return None;
                }
                self.vectors.insert(result, lanes);
                return Some(Some(Vector::Load(lanes)));
            }
            Op::Store(access) if access.offset <= MAX_OFFSET => {
                self.accesses += 1;
                let lanes = self.lanes_of(func.ty(args[1]))?;
                let data = self.is_data(args[1]) && !self.vectors.contains_key(&args[0]);
                return data.then_some(Some(Vector::Store(lanes)));
            }
            Op::Safepoint | Op::Branch | Op::Goto => {
                return args.iter().all(|v| !self.vectors.contains_key(v)).then_some(None);
            }
            _ => {}
        }
        let counts = |v: Value| self.counters.iter().any(|r| r.next == v);
        let made_of_counters = self.data.contains(&inst)
            && !func.result(inst).is_some_and(counts)
            && !args.iter().all(|&v| is_invariant(func, self.loops, self.counted.shape.l, v));
        if !made_of_counters && !args.iter().any(|v| self.vectors.contains_key(v)) {
            let effects = brolga_ir::effects::effects(func, types, inst);
            let pure = effects.may_be_hoisted() && effects.reads.is_empty();
            return pure.then_some(None);
        }
        let result = func.result(inst)?;
        match func.op(inst) {
            Op::Intrinsic(op) if matches!(op.shape(), Shape::Convert(_)) => {
                self.conversion(op, args[0], result).map(Some)
            }
            Op::Intrinsic(op) => {
                let of = match args.iter().find_map(|v| self.vectors.get(v).copied()) {
                    Some(of) => of,
                    None => self.lanes_of(func.ty(*args.first()?))?,
                };
                // Without the processor's own operation a routine computes each lane. Products of 64 bits are made of
                // products of 32, which costs as much as it saves where there are two lanes only; processors with FMA have
                // four, or the operation.
                let costly = match (op, of) {
                    (Intrinsic::FmaFloat, _) | (Intrinsic::MulInt, Lanes::I64x2) => !self.cpu.fma,
                    _ if Lanes::counts_bits(op) => !self.cpu.bit_counts,
                    _ => false,
                };
                let count = usize::from(Lanes::shifts(op));
                let (data, counts) = args.split_at(args.len() - count);
                let typed = data.iter().all(|&v| self.is_data(v) && func.ty(v) == Type::low(of.element()));
                let counted = counts.iter().all(|&v| {
                    func.as_bits(v).is_some()
                        || func.ty(v) == Type::I64 && is_invariant(func, self.loops, self.counted.shape.l, v)
                });
                if costly || !of.allows(op) || !typed || !counted {
                    return None;
                }
                if Lanes::compares(op) {
                    self.masks.insert(result);
                } else if func.ty(result) != Type::low(of.element()) {
                    return None;
                }
                self.vectors.insert(result, of);
                Some(Some(Vector::Lanes(op, of)))
            }
            Op::Builtin(Builtin::Ifelse) => {
                let &[mask, yes, no] = args else { return None };
                let lanes = self.lanes_of(func.ty(result))?;
                let wide = self.vectors.get(&mask).map(|l| l.element().bytes());
                let fits = self.masks.contains(&mask) && wide == Some(lanes.element().bytes());
                let whole = fits && self.is_data(yes) && self.is_data(no);
                if !whole {
                    return None;
                }
                self.vectors.insert(result, lanes);
                Some(Some(Vector::Select(lanes)))
            }
            _ => None,
        }
    }
}

/// How an instruction combines a value with another, if the order of many combinations does not matter.
fn combine(func: &Func, uses: &Uses, value: Value, next: Inst) -> Option<Combine> {
    match (func.op(next), func.args(next)) {
        (
            Op::Intrinsic(
                op @ (Intrinsic::AddInt
                | Intrinsic::MulInt
                | Intrinsic::AndInt
                | Intrinsic::OrInt
                | Intrinsic::XorInt
                | Intrinsic::AddFloatFast
                | Intrinsic::MulFloatFast),
            ),
            _,
        ) => Some(Combine::Op(op)),
        (Op::Builtin(Builtin::Ifelse), &[cond, yes, no]) => {
            let other = [(yes, no), (no, yes)].into_iter().find(|pair| pair.0 == value)?.1;
            let compare = func.def_inst(cond)?;
            let Op::Intrinsic(op) = func.op(compare) else { return None };
            // For floats it does matter: there are two zeros, and NaN is neither smaller nor larger.
            let orders =
                matches!(op, Intrinsic::SltInt | Intrinsic::SleInt | Intrinsic::UltInt | Intrinsic::UleInt);
            let both =
                matches!(*func.args(compare), [a, b] if (a, b) == (value, other) || (a, b) == (other, value));
            let only = uses.of(cond).iter().all(|one| one.inst == next);
            (orders && both && only && value != other).then_some(Combine::Choice { compare, other })
        }
        _ => None,
    }
}

/// The number of conversion steps between two lane widths; `None` if one of the steps does not exist.
fn steps(op: Intrinsic, from: Lanes, to: Lanes) -> Option<usize> {
    if (op, from, to) == (Intrinsic::Sitofp, Lanes::I64x2, Lanes::F64x2) {
        return Some(1);
    }
    let mut at = from;
    for step in 0..=3 {
        if at == to {
            return Some(step);
        }
        at = at.made_by(op);
    }
    None
}
