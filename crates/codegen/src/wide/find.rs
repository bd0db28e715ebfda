//! Which vectors of a loop are halves of vectors of 256 bits, and what the loop reads and leaves.
//!
//! Pairing starts at stores to adjacent addresses and at carried vectors, in the order in which their next values are computed. It continues with their
//! operands, pairwise in the same order: two loads from adjacent addresses, two operations of one kind, two values from outside the loop. If a vector has no
//! partner, the loop stays as it is.
//!
//! A wide value is computed at the position of its later half. Its operands are available there, because each half follows its own operands.

use brolga_ir::builtin::Builtin;
use brolga_ir::func::LineColumn;
use brolga_ir::intrinsic::{Intrinsic, Shape};
use brolga_ir::lanes::Lanes;
use brolga_ir::{Block, Func, Inst, LowType, Op, PtrClass, Value};
use cranelift_entity::EntitySet;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::{Address, Base, Bound, Carried, Counter, End, Features, Made, Parts, Step, Wide, WideLoop};
use crate::single_pass::asm::Cond;

/// The longest loop, in instructions. Pairs are found from their uses, one inside the other, so this bounds the depth.
const MAX_INSTS: usize = 300;

/// The numbers by which `vectorize` makes floats of signed integers: exponents, masks and signs.
const SIGNED_TO_FLOAT: [u64; 4] =
    [0x4330_0000_0000_0000, 0x0000_0000_ffff_ffff, 0x4530_0000_8010_0000, 0x4530_0000_8000_0000];

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

/// Whether a block is its own successor and computes with vectors: it loads, stores or carries some.
pub(crate) fn is_candidate(func: &Func, block: Block) -> bool {
    let is_vector = |inst| {
        matches!(func.op(inst), Op::Load(_) | Op::Store(_) | Op::Phi)
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
    parts: usize,
) -> Option<WideLoop> {
    let mut search = Search {
        func,
        block,
        features,
        parts,
        at: FxHashMap::default(),
        memory: Vec::new(),
        words: Vec::new(),
        inputs: Vec::new(),
        counters: Vec::new(),
        carried: Vec::new(),
        groups: FxHashMap::default(),
        values: Vec::new(),
        place: 0,
    };
    search.classify()?;
    search.counters()?;
    let carried = search.carried_groups()?;
    let stores = search.stores()?;
    for (phis, results) in carried {
        let next = search.group(results.clone())?;
        let number = search.carried.len();
        search.carried.push(Carried { phis, results, next });
        // Its next value is computed in the loop, and no other carried value has the same one.
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
    let end_line = func.terminator(block).map_or(LineColumn::UNKNOWN, |end| func.place(end).at);
    let Search { counters, words, inputs, carried, values, .. } = search;
    let values = values.into_iter().map(|value| value.made).collect();
    Some(WideLoop { parts, counters, words, inputs, carried, values, steps, end, end_line, exit })
}

/// A wide value under construction.
struct Placed {
    made: Made,
    /// The position in the block where it is computed.
    place: usize,
    /// Whether the bits of each lane are equal.
    is_mask: bool,
}

pub(super) struct Search<'a> {
    func: &'a Func,
    block: Block,
    features: Features,
    /// The number of vectors in a wide value.
    parts: usize,
    /// Places of the block's instructions.
    at: FxHashMap<Inst, usize>,
    /// Its accesses, in order.
    memory: Vec<Inst>,
    words: Vec<Value>,
    inputs: Vec<Parts<Value>>,
    counters: Vec<Counter>,
    carried: Vec<Carried>,
    groups: FxHashMap<Parts<Value>, Wide>,
    values: Vec<Placed>,
    /// The position of the value under examination.
    place: usize,
}

impl Search<'_> {
    pub(super) fn features(&self) -> Features {
        self.features
    }

    pub(super) fn parts(&self) -> usize {
        self.parts
    }

    pub(super) fn is_mask(&self, of: Wide) -> bool {
        self.values[of].is_mask
    }

    pub(super) fn constant_parts(&self, of: Wide) -> Option<&Parts<u128>> {
        match &self.values[of].made {
            Made::Constant(parts) => Some(parts),
            _ => None,
        }
    }

    pub(super) fn make(&mut self, made: Made, is_mask: bool) -> Wide {
        self.values.push(Placed { made, place: self.place, is_mask });
        self.values.len() - 1
    }

    fn constant(&mut self, bits: Parts<u128>) -> Wide {
        let made = Made::Constant(bits);
        let known = self.values.iter().position(|value| value.made == made);
        known.unwrap_or_else(|| self.make(made, false))
    }

    /// The same constant in all parts.
    pub(super) fn constant_of(&mut self, bits: u128) -> Wide {
        self.constant(SmallVec::from_elem(bits, self.parts))
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

    /// The value that a φ has in the next iteration.
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

    /// The φs of paired vectors, with their values for the next iteration.
    fn carried_groups(&mut self) -> Option<Vec<(Parts<Value>, Parts<Value>)>> {
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
        if !handed.len().is_multiple_of(self.parts) {
            return None;
        }
        let groups = handed.chunks(self.parts);
        let split = |group: &[(usize, Value, Value)]| {
            (group.iter().map(|one| one.1).collect(), group.iter().map(|one| one.2).collect())
        };
        let groups: Vec<(Parts<Value>, Parts<Value>)> = groups.map(split).collect();
        for (number, (phis, _)) in groups.iter().enumerate() {
            let made = self.make(Made::Carried(number), false);
            self.groups.insert(phis.clone(), made);
        }
        Some(groups)
    }

    /// The paired stores: the position of the last one, the address, and the stored value.
    fn stores(&mut self) -> Option<Vec<(usize, Address, Wide)>> {
        let func = self.func;
        let all: Vec<Inst> =
            self.memory.iter().copied().filter(|&inst| matches!(func.op(inst), Op::Store(_))).collect();
        if !all.len().is_multiple_of(self.parts) {
            return None;
        }
        let mut found = Vec::new();
        for group in all.chunks(self.parts) {
            let address = self.neighbours(group)?;
            let first = self.memory.iter().position(|inst| inst == &group[0])?;
            if self.memory.get(first..first + self.parts)? != group {
                return None;
            }
            let stored: Option<Parts<Value>> =
                group.iter().map(|&store| func.args(store).get(1).copied()).collect();
            let stored = self.group(stored?)?;
            found.push((*self.at.get(group.last()?)?, address, stored));
        }
        Some(found)
    }

    /// The address of accesses that are neighbours.
    fn neighbours(&mut self, accesses: &[Inst]) -> Option<Address> {
        let first = self.address(*accesses.first()?)?;
        for (n, &access) in accesses.iter().enumerate() {
            let disp = first.disp.checked_add(16 * n as i32)?;
            if self.address(access)? != (Address { disp, ..first }) {
                return None;
            }
        }
        Some(first)
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

    /// The wide value with these parts.
    fn group(&mut self, parts: Parts<Value>) -> Option<Wide> {
        if let Some(&made) = self.groups.get(&parts) {
            return Some(made);
        }
        let inside: Parts<Option<Inst>> = parts.iter().map(|&part| self.inside(part)).collect();
        let made = match inside.iter().copied().collect::<Option<Parts<Inst>>>() {
            Some(insts) => self.inner(&insts)?,
            None if inside.iter().all(Option::is_none) => self.outer(&parts),
            None => return None,
        };
        self.groups.insert(parts, made);
        Some(made)
    }

    fn outer(&mut self, parts: &Parts<Value>) -> Wide {
        self.place = 0;
        match parts.iter().map(|&part| self.func.as_bits(part)).collect() {
            Some(bits) => self.constant(bits),
            None => {
                self.inputs.push(parts.clone());
                self.make(Made::Input(self.inputs.len() - 1), false)
            }
        }
    }

    /// The operands with this number of instructions.
    fn operands(&self, insts: &[Inst], n: usize) -> Option<Parts<Value>> {
        insts.iter().map(|&inst| self.func.args(inst).get(n).copied()).collect()
    }

    /// The wide value that instructions of one kind make.
    fn inner(&mut self, insts: &[Inst]) -> Option<Wide> {
        let func = self.func;
        let op = func.op(*insts.first()?);
        if !matches!(op, Op::Load(_)) && insts.iter().any(|&inst| func.op(inst) != op) {
            return None;
        }
        let place = insts.iter().filter_map(|inst| self.at.get(inst).copied()).max()?;
        match op {
            Op::Load(_) => self.loaded(insts, place),
            Op::Splat(Lanes::I64x2) => {
                let of = self.operands(insts, 0)?;
                let same = of.iter().all(|&value| value == of[0]);
                let (counter, distance) = self.counter_of(of[0]).filter(|_| same)?;
                self.place = place;
                Some(self.make(Made::Splat(counter, distance), false))
            }
            Op::LaneSelect => {
                if let Some(made) = self.extreme_of(insts, place) {
                    return Some(made);
                }
                let [mask, yes, no] =
                    [0, 1, 2].map(|n| self.operands(insts, n).and_then(|of| self.group(of)));
                let (mask, yes, no) = (mask?, yes?, no?);
                self.place = place;
                self.is_mask(mask).then(|| self.make(Made::Blend(mask, no, yes), false))
            }
            Op::Lanes(op, lanes) if lanes.made_by(op) == lanes => self.computed(insts, op, lanes, place),
            _ => None,
        }
    }

    /// Loads of neighbours, with no store between the first and the last.
    fn loaded(&mut self, insts: &[Inst], place: usize) -> Option<Wide> {
        let func = self.func;
        let address = self.neighbours(insts)?;
        let places = || insts.iter().filter_map(|load| self.memory.iter().position(|inst| inst == load));
        let mut between = self.memory.get(places().min()?..places().max()?)?.iter();
        if between.any(|&inst| matches!(func.op(inst), Op::Store(_))) {
            return None;
        }
        self.place = place;
        Some(self.make(Made::Load(address), false))
    }

    fn computed(&mut self, insts: &[Inst], op: Intrinsic, lanes: Lanes, place: usize) -> Option<Wide> {
        let func = self.func;
        if let Some(made) = self.converted(insts, op, lanes, place) {
            return Some(made);
        }
        if Lanes::shifts(op) {
            let counts = self.operands(insts, 1)?;
            let count = func.as_bits(counts[0])?;
            let same = counts.iter().all(|&other| func.as_bits(other) == Some(count));
            let of = self.operands(insts, 0)?;
            let of = self.group(of)?;
            self.place = place;
            return if same { self.shift(op, lanes, of, count) } else { None };
        }
        let mut args = SmallVec::<[Wide; 3]>::new();
        for n in 0..func.args(insts[0]).len() {
            let of = self.operands(insts, n)?;
            args.push(self.group(of)?);
        }
        self.place = place;
        match args[..] {
            [of] => self.unary(op, lanes, of),
            [a, b] => self.binary(op, lanes, a, b),
            [a, b, c] => self.ternary(op, lanes, [a, b, c]),
            _ => None,
        }
    }

    /// Integers of 64 bits that become floats by the six operations of `vectorize`, as one instruction.
    fn converted(&mut self, insts: &[Inst], op: Intrinsic, lanes: Lanes, place: usize) -> Option<Wide> {
        if op.strict() != Intrinsic::AddFloat || lanes != Lanes::F64x2 || !self.features.avx512 {
            return None;
        }
        let of: Parts<Value> = insts.iter().map(|&inst| self.int_of_float(inst)).collect::<Option<_>>()?;
        let of = self.group(of)?;
        self.place = place;
        Some(self.floats_of(of))
    }

    /// The integers that a sum is the floats of: `(x >> 32 ^ A) - B + (x & C | D)`.
    fn int_of_float(&self, sum: Inst) -> Option<Value> {
        let func = self.func;
        let made = |value: Value, op: Intrinsic, lanes: Lanes| {
            let inst = self.inside(value).filter(|&inst| func.op(inst) == Op::Lanes(op, lanes))?;
            let &[left, right] = func.args(inst) else { return None };
            Some((left, func.as_bits(right)?))
        };
        let splat = |bits: u64| Lanes::I64x2.splat(bits.into());
        let &[high, low] = func.args(sum) else { return None };
        let (low, exponent) = made(low, Intrinsic::OrInt, Lanes::I64x2)?;
        let (of, mask) = made(low, Intrinsic::AndInt, Lanes::I64x2)?;
        let (high, both) = made(high, Intrinsic::SubFloat, Lanes::F64x2)?;
        let (high, sign) = made(high, Intrinsic::XorInt, Lanes::I64x2)?;
        let (same, count) = made(high, Intrinsic::LshrInt, Lanes::I64x2)?;
        let numbers = [exponent, mask, both, sign] == SIGNED_TO_FLOAT.map(splat) && count == 32;
        (numbers && same == of).then_some(of)
    }

    /// The lesser or greater of two, chosen by a comparison of them.
    fn extreme_of(&mut self, insts: &[Inst], place: usize) -> Option<Wide> {
        let func = self.func;
        let parts = |select: &Inst| {
            let &[mask, yes, no] = func.args(*select) else { return None };
            let compare = self.inside(mask)?;
            let &[a, b] = func.args(compare) else { return None };
            let is_less = (yes, no) == (a, b);
            (is_less || (yes, no) == (b, a)).then_some((func.op(compare), is_less, a, b))
        };
        let all: Parts<_> = insts.iter().map(parts).collect::<Option<_>>()?;
        let (compare, is_less, ..) = all[0];
        let Op::Lanes(op, lanes) = compare else { return None };
        if all.iter().any(|one| (one.0, one.1) != (compare, is_less)) {
            return None;
        }
        let signed = match op {
            Intrinsic::SltInt | Intrinsic::SleInt => true,
            Intrinsic::UltInt | Intrinsic::UleInt => false,
            _ => return None,
        };
        let a = self.group(all.iter().map(|one| one.2).collect())?;
        let b = self.group(all.iter().map(|one| one.3).collect())?;
        self.place = place;
        self.extreme(is_less, signed, lanes, a, b)
    }

    /// The steps of an iteration, in order, each with its place in the source.
    fn steps(&self, stores: &[(usize, Address, Wide)]) -> Vec<(LineColumn, Step)> {
        let fixed = |made: &Made| matches!(made, Made::Input(_) | Made::Constant(_) | Made::Carried(_));
        let made = self.values.iter().enumerate().filter(|(_, value)| !fixed(&value.made));
        let mut steps: Vec<(usize, Step)> = made.map(|(n, value)| (value.place, Step::Make(n))).collect();
        steps.extend(stores.iter().map(|&(place, address, stored)| (place, Step::Store(address, stored))));
        steps.sort_by_key(|&(place, _)| place);
        let lines: Vec<LineColumn> =
            self.func.block_insts(self.block).map(|inst| self.func.place(inst).at).collect();
        let line = |place: usize| lines.get(place).copied().unwrap_or(LineColumn::UNKNOWN);
        steps.into_iter().map(|(place, step)| (line(place), step)).collect()
    }

    /// The test at the end, and the exit of the loop.
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
    (func.ty(value).as_low()?.bits() == 64)
        .then(|| func.as_bits(value))?
        .and_then(|bits| i32::try_from(bits as u64 as i64).ok())
}
