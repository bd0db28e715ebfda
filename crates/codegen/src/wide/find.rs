//! Which vectors of a loop are halves of vectors of 256 bits, and what the loop reads and leaves.
//!
//! Stores that follow each other go together, and so do the vectors that are carried, in the order in which their next values are computed. From there
//! the operands go together in the same order: two loads of neighbours, two operations of one kind, two values from outside. If anything remains
//! alone, the loop stays as it is.
//!
//! A pair is made where its later half was. What it is made of was made by then: each half behind its own operands.

use brolga_ir::builtin::Builtin;
use brolga_ir::intrinsic::{Intrinsic, Shape};
use brolga_ir::lanes::Lanes;
use brolga_ir::{Block, Func, Inst, LowType, Op, PtrClass, Value};
use cranelift_entity::EntitySet;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::{
    Address, Base, Bound, Carried, Counter, End, Features, Made, Pair, Step, Wide, WideLoop,
};
use crate::single_pass::asm::Cond;

/// The longest loop, in instructions. Pairs are found from their uses, one inside the other, so this bounds the depth.
const MAX_INSTS: usize = 300;

/// The values that are used in another block than the one that defines them.
pub(crate) fn leaving(func: &Func) -> EntitySet<Value> {
    let mut leaving = EntitySet::new();
    for block in func.blocks() {
        for inst in func.block_insts(block) {
            for &value in func.args(inst) {
                if func.def_inst(value).is_some_and(|def| func.inst_block(def) != Some(block)) {
                    leaving.insert(value);
                }
            }
        }
    }
    leaving
}

/// Whether a block leads to itself and computes with vectors.
pub(crate) fn is_candidate(func: &Func, block: Block) -> bool {
    let is_vector = |inst| {
        matches!(func.op(inst), Op::Load(_) | Op::Store(_))
            && func.args(inst).last().into_iter().copied().chain(func.result(inst)).any(|v| is_v128(func, v))
    };
    func.successors(block).contains(&block) && func.block_insts(block).any(is_vector)
}

fn is_v128(func: &Func, value: Value) -> bool {
    func.ty(value).as_low() == Some(LowType::V128)
}

/// The loop that a block is; `None` if it has to stay as it is. `leaving` are the [values](leaving) that are used outside.
pub(crate) fn find(
    func: &Func,
    block: Block,
    features: Features,
    leaving: &EntitySet<Value>,
) -> Option<WideLoop> {
    let mut search = Search {
        func,
        block,
        features,
        at: FxHashMap::default(),
        memory: Vec::new(),
        words: Vec::new(),
        inputs: Vec::new(),
        counters: Vec::new(),
        carried: Vec::new(),
        pairs: FxHashMap::default(),
        values: Vec::new(),
        masks: EntitySet::new(),
        place: 0,
    };
    search.classify()?;
    search.counters()?;
    let carried = search.carried_pairs()?;
    let stores = search.stores()?;
    for (pair, results) in &carried {
        let next = search.pair(*results)?;
        let number = search.carried.len();
        search.carried.push(Carried { phis: *pair, results: *results, next });
        // The next value of one is made in the loop, and is that of no other.
        let made = &search.values[next].made;
        let fixed = matches!(made, Made::Input(_) | Made::Constant(_) | Made::Carried(_));
        if fixed || search.carried[..number].iter().any(|other| other.next == next) {
            return None;
        }
    }
    let steps = search.steps(&stores);
    let is_left = |v: Value| search.carried.iter().any(|one| one.results.contains(&v));
    let leaves = func.block_insts(block).flat_map(|inst| func.results(inst)).filter(|&v| leaving.contains(v));
    if leaves.into_iter().any(|v| is_v128(func, v) && !is_left(v)) {
        return None;
    }
    let (end, exit) = search.end()?;
    let Search { counters, words, inputs, carried, values, .. } = search;
    let values = values.into_iter().map(|value| value.made).collect();
    Some(WideLoop { counters, words, inputs, carried, values, steps, end, exit })
}

/// A value of 256 bits on its way.
struct Placed {
    made: Made,
    /// Where in the block it is made.
    place: usize,
}

pub(super) struct Search<'a> {
    func: &'a Func,
    block: Block,
    features: Features,
    /// Places of the block's instructions.
    at: FxHashMap<Inst, usize>,
    /// Its accesses, in order.
    memory: Vec<Inst>,
    words: Vec<Value>,
    inputs: Vec<Pair>,
    counters: Vec<Counter>,
    carried: Vec<Carried>,
    pairs: FxHashMap<Pair, Wide>,
    values: Vec<Placed>,
    /// Values all of whose lanes have equal bits.
    masks: EntitySet<MaskOf>,
    /// Where the value is made that is looked at.
    place: usize,
}

/// The key of a set of wide values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct MaskOf(u32);
cranelift_entity::entity_impl!(MaskOf);

impl Search<'_> {
    pub(super) fn features(&self) -> Features {
        self.features
    }

    pub(super) fn is_mask(&self, of: Wide) -> bool {
        self.masks.contains(MaskOf(of as u32))
    }

    pub(super) fn make(&mut self, made: Made, is_mask: bool) -> Wide {
        let number = self.values.len();
        if is_mask {
            self.masks.insert(MaskOf(number as u32));
        }
        self.values.push(Placed { made, place: self.place });
        number
    }

    pub(super) fn constant(&mut self, bits: [u128; 2]) -> Wide {
        let known = self.values.iter().position(|value| value.made == Made::Constant(bits));
        known.unwrap_or_else(|| self.make(Made::Constant(bits), false))
    }

    /// The instruction of the loop that makes a value.
    fn inside(&self, value: Value) -> Option<Inst> {
        self.func.def_inst(value).filter(|inst| self.at.contains_key(inst))
    }

    /// Notes places and accesses; `None` if an instruction may not be in the loop.
    fn classify(&mut self) -> Option<()> {
        let func = self.func;
        for (place, inst) in func.block_insts(self.block).enumerate() {
            let vector = |v: Value| is_v128(func, v);
            let fits = match func.op(inst) {
                Op::Phi => {
                    let low = func.ty(func.result(inst)?).as_low()?;
                    matches!(low, LowType::I64 | LowType::Ptr(PtrClass::Raw) | LowType::V128)
                }
                Op::Load(_) => {
                    self.memory.push(inst);
                    vector(func.result(inst)?)
                }
                Op::Store(_) => {
                    self.memory.push(inst);
                    vector(*func.args(inst).get(1)?)
                }
                Op::Lanes(..) | Op::LaneSelect | Op::Splat(_) | Op::Copy | Op::Branch => true,
                Op::Builtin(Builtin::Ifelse) => !func.args(inst).iter().any(|&v| vector(v)),
                Op::Intrinsic(op) => matches!(
                    op.shape(),
                    Shape::IntUnary
                        | Shape::IntBinary
                        | Shape::Shift
                        | Shape::IntCompare
                        | Shape::PtrOffset
                        | Shape::Convert(_)
                ),
                _ => false,
            };
            if !fits || place >= MAX_INSTS {
                return None;
            }
            self.at.insert(inst, place);
        }
        Some(())
    }

    fn phis(&self) -> impl Iterator<Item = Inst> + use<'_> {
        let func = self.func;
        func.block_insts(self.block).take_while(move |&inst| func.op(inst) == Op::Phi)
    }

    /// What an iteration hands to a φ.
    fn handed(&self, phi: Inst) -> Option<Value> {
        self.func.phi_edges(phi).find(|&(from, _)| from == self.block).map(|(_, value)| value)
    }

    fn counters(&mut self) -> Option<()> {
        let func = self.func;
        let mut found = Vec::new();
        for inst in self.phis() {
            let phi = func.result(inst)?;
            if is_v128(func, phi) {
                continue;
            }
            let next = self.handed(inst)?;
            let add = self.inside(next)?;
            let Op::Intrinsic(Intrinsic::AddInt | Intrinsic::AddPtr) = func.op(add) else { return None };
            let step = match *func.args(add) {
                [a, b] if a == phi => b,
                [a, b] if b == phi => a,
                _ => return None,
            };
            found.push(Counter { phi, next, step: small(func, step)? });
        }
        self.counters = found;
        Some(())
    }

    /// The φs of vectors in pairs, with what is handed to them.
    fn carried_pairs(&mut self) -> Option<Vec<(Pair, Pair)>> {
        let func = self.func;
        let mut handed = Vec::new();
        for inst in self.phis() {
            let phi = func.result(inst)?;
            if is_v128(func, phi) {
                let next = self.handed(inst)?;
                handed.push((*self.at.get(&self.inside(next)?)?, phi, next));
            }
        }
        handed.sort_by_key(|&(place, ..)| place);
        if !handed.len().is_multiple_of(2) {
            return None;
        }
        let pairs: Vec<(Pair, Pair)> =
            handed.chunks(2).map(|two| ([two[0].1, two[1].1], [two[0].2, two[1].2])).collect();
        for (number, &(phis, _)) in pairs.iter().enumerate() {
            let made = self.make(Made::Carried(number), false);
            self.pairs.insert(phis, made);
        }
        Some(pairs)
    }

    /// The stores in pairs: where they go, what is stored, and the place of the later one.
    fn stores(&mut self) -> Option<Vec<(usize, Address, Wide)>> {
        let func = self.func;
        let all: Vec<Inst> =
            self.memory.iter().copied().filter(|&inst| matches!(func.op(inst), Op::Store(_))).collect();
        if !all.len().is_multiple_of(2) {
            return None;
        }
        let mut found = Vec::new();
        for two in all.chunks(2) {
            let (low, high) = (two[0], two[1]);
            let address = self.neighbours(low, high)?;
            let first = self.memory.iter().position(|&inst| inst == low)?;
            if self.memory.get(first + 1) != Some(&high) {
                return None;
            }
            let stored = self.pair([*func.args(low).get(1)?, *func.args(high).get(1)?])?;
            found.push((*self.at.get(&high)?, address, stored));
        }
        Some(found)
    }

    /// The address of two accesses that are neighbours.
    fn neighbours(&mut self, low: Inst, high: Inst) -> Option<Address> {
        let (first, second) = (self.address(low)?, self.address(high)?);
        (second == Address { disp: first.disp.checked_add(16)?, ..first }).then_some(first)
    }

    fn address(&mut self, access: Inst) -> Option<Address> {
        let func = self.func;
        let (Op::Load(at) | Op::Store(at)) = func.op(access) else { return None };
        let mut value = *func.args(access).first()?;
        let (mut index, mut disp) = (None, at.offset);
        let base = loop {
            if let Some((counter, distance)) = self.counter_of(value) {
                disp = disp.checked_add(distance)?;
                break Base::Counter(counter);
            }
            let Some(inst) = self.inside(value) else { break Base::Word(self.word(value)) };
            let args = func.args(inst);
            match func.op(inst) {
                Op::Copy | Op::Intrinsic(Intrinsic::Bitcast) => value = *args.first()?,
                Op::Intrinsic(Intrinsic::AddPtr) => {
                    value = args[0];
                    match small(func, args[1]) {
                        Some(distance) => disp = disp.checked_add(distance)?,
                        None if index.is_none() => {
                            let (counter, scale, distance) = self.scaled(args[1])?;
                            disp = disp.checked_add(distance)?;
                            index = Some((counter, scale));
                        }
                        None => return None,
                    }
                }
                _ => return None,
            }
        };
        Some(Address { base, index, disp })
    }

    /// A counter, or a sum of one and a constant, with the constant.
    fn counter_of(&self, value: Value) -> Option<(usize, i32)> {
        let of = |value| self.counters.iter().position(|counter| counter.phi == value);
        if let Some(counter) = of(value) {
            return Some((counter, 0));
        }
        let inst = self.inside(value)?;
        let Op::Intrinsic(Intrinsic::AddInt | Intrinsic::AddPtr) = self.func.op(inst) else { return None };
        let &[a, b] = self.func.args(inst) else { return None };
        let (counter, distance) = match (of(a), of(b)) {
            (Some(counter), _) => (counter, b),
            (_, Some(counter)) => (counter, a),
            _ => return None,
        };
        Some((counter, small(self.func, distance)?))
    }

    /// A distance as a counter, the binary logarithm of its factor, and a constant.
    fn scaled(&self, value: Value) -> Option<(usize, u8, i32)> {
        if let Some((counter, distance)) = self.counter_of(value) {
            return Some((counter, 0, distance));
        }
        let inst = self.inside(value)?;
        let &[of, by] = self.func.args(inst) else { return None };
        let by = small(self.func, by)?;
        let scale = match (self.func.op(inst), by) {
            (Op::Intrinsic(Intrinsic::MulInt), 1 | 2 | 4 | 8) => by.trailing_zeros() as u8,
            (Op::Intrinsic(Intrinsic::ShlInt), 0..=3) => by as u8,
            _ => return None,
        };
        let (counter, distance) = self.counter_of(of)?;
        Some((counter, scale, distance.checked_mul(1 << scale)?))
    }

    fn word(&mut self, value: Value) -> usize {
        self.words.iter().position(|&word| word == value).unwrap_or_else(|| {
            self.words.push(value);
            self.words.len() - 1
        })
    }

    /// The value of 256 bits with these halves.
    fn pair(&mut self, pair: Pair) -> Option<Wide> {
        if let Some(&made) = self.pairs.get(&pair) {
            return Some(made);
        }
        let made = match pair.map(|half| self.inside(half)) {
            [None, None] => self.from_outside(pair),
            [Some(low), Some(high)] => self.from_inside(low, high)?,
            _ => return None,
        };
        self.pairs.insert(pair, made);
        Some(made)
    }

    fn from_outside(&mut self, pair: Pair) -> Wide {
        self.place = 0;
        match pair.map(|half| self.func.as_bits(half)) {
            [Some(low), Some(high)] => self.constant([low, high]),
            _ => {
                self.inputs.push(pair);
                self.make(Made::Input(self.inputs.len() - 1), false)
            }
        }
    }

    fn from_inside(&mut self, low: Inst, high: Inst) -> Option<Wide> {
        let func = self.func;
        if func.op(low) != func.op(high) && !matches!(func.op(low), Op::Load(_)) {
            return None;
        }
        let place = (*self.at.get(&low)?).max(*self.at.get(&high)?);
        let operand = |n: usize| Some([*func.args(low).get(n)?, *func.args(high).get(n)?]);
        match func.op(low) {
            Op::Load(_) => {
                let address = self.neighbours(low, high)?;
                let [first, last] = [low, high].map(|one| self.memory.iter().position(|&inst| inst == one));
                let mut between = self.memory.get(first?..last?)?.iter();
                if between.any(|&inst| matches!(func.op(inst), Op::Store(_))) {
                    return None;
                }
                self.place = place;
                Some(self.make(Made::Load(address), false))
            }
            Op::Splat(Lanes::I64x2) if operand(0)?[0] == operand(0)?[1] => {
                let (counter, distance) = self.counter_of(operand(0)?[0])?;
                self.place = place;
                Some(self.make(Made::Splat(counter, distance), false))
            }
            Op::LaneSelect => {
                if let Some(made) = self.extreme_of(low, high, place) {
                    return Some(made);
                }
                let [mask, yes, no] = [0, 1, 2].map(|n| operand(n).and_then(|pair| self.pair(pair)));
                let (mask, yes, no) = (mask?, yes?, no?);
                self.place = place;
                self.is_mask(mask).then(|| self.make(Made::Blend(mask, no, yes), false))
            }
            Op::Lanes(op, lanes) if lanes.made_by(op) == lanes => {
                if Lanes::shifts(op) {
                    let counts = operand(1)?.map(|count| func.as_bits(count));
                    let count = counts[0].filter(|_| counts[0] == counts[1])?;
                    let of = self.pair(operand(0)?)?;
                    self.place = place;
                    return self.shift(op, lanes, of, count);
                }
                let mut args = SmallVec::<[Wide; 3]>::new();
                for n in 0..func.args(low).len() {
                    args.push(self.pair(operand(n)?)?);
                }
                self.place = place;
                match args[..] {
                    [of] => self.unary(op, lanes, of),
                    [a, b] => self.binary(op, lanes, a, b),
                    [a, b, c] => self.ternary(op, lanes, [a, b, c]),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// The lesser or greater of two, chosen by a comparison of them.
    fn extreme_of(&mut self, low: Inst, high: Inst, place: usize) -> Option<Wide> {
        let func = self.func;
        let parts = |select: Inst| {
            let &[mask, yes, no] = func.args(select) else { return None };
            let compare = self.inside(mask)?;
            let &[a, b] = func.args(compare) else { return None };
            let is_less = (yes, no) == (a, b);
            (is_less || (yes, no) == (b, a)).then_some((func.op(compare), is_less, [a, b]))
        };
        let (first, second) = (parts(low)?, parts(high)?);
        let (Op::Lanes(op, lanes), is_less, [a, b]) = first else { return None };
        if (second.0, second.1) != (first.0, is_less) {
            return None;
        }
        let signed = match op {
            Intrinsic::SltInt | Intrinsic::SleInt => true,
            Intrinsic::UltInt | Intrinsic::UleInt => false,
            _ => return None,
        };
        let (a, b) = (self.pair([a, second.2[0]])?, self.pair([b, second.2[1]])?);
        self.place = place;
        self.extreme(is_less, signed, lanes, a, b)
    }

    /// What an iteration does, in order.
    fn steps(&self, stores: &[(usize, Address, Wide)]) -> Vec<Step> {
        let fixed = |made: &Made| matches!(made, Made::Input(_) | Made::Constant(_) | Made::Carried(_));
        let made = self.values.iter().enumerate().filter(|(_, value)| !fixed(&value.made));
        let mut steps: Vec<(usize, Step)> = made.map(|(n, value)| (value.place, Step::Make(n))).collect();
        steps.extend(stores.iter().map(|&(place, address, stored)| (place, Step::Store(address, stored))));
        steps.sort_by_key(|&(place, _)| place);
        steps.into_iter().map(|(_, step)| step).collect()
    }

    /// The test at the end, and where the loop leads.
    fn end(&mut self) -> Option<(End, Block)> {
        let func = self.func;
        let branch = func.terminator(self.block)?;
        let &[yes, no] = func.inst_blocks(branch) else { return None };
        let compare = self.inside(*func.args(branch).first()?)?;
        let (Op::Intrinsic(op), &[left, right]) = (func.op(compare), func.args(compare)) else { return None };
        let (cond, swapped) = match op {
            Intrinsic::EqInt => (Cond::E, Cond::E),
            Intrinsic::NeInt => (Cond::Ne, Cond::Ne),
            Intrinsic::SltInt => (Cond::L, Cond::G),
            Intrinsic::SleInt => (Cond::Le, Cond::Ge),
            Intrinsic::UltInt => (Cond::B, Cond::A),
            Intrinsic::UleInt => (Cond::Be, Cond::Ae),
            _ => return None,
        };
        let (tested, bound, cond) = match self.inside(left) {
            Some(_) => (left, right, cond),
            None => (right, left, swapped),
        };
        if self.inside(bound).is_some() {
            return None;
        }
        let of = |value| self.counters.iter().position(|one| one.phi == value || one.next == value);
        let counter = of(tested)?;
        let exit = if yes == self.block { no } else { yes };
        let cond = if yes == self.block { cond } else { cond.opposite() };
        let bound = match small(func, bound) {
            Some(bound) => Bound::Const(bound),
            None => Bound::Word(self.word(bound)),
        };
        let is_next = self.counters[counter].next == tested;
        (exit != self.block).then_some((End { counter, is_next, cond, bound }, exit))
    }
}

/// A constant of 64 bits that fits into 32.
fn small(func: &Func, value: Value) -> Option<i32> {
    (func.ty(value).as_low()?.bits() == 64).then(|| func.as_bits(value))?.and_then(|bits| i32::try_from(bits as u64 as i64).ok())
}
