//! Computes sums, products and bit operations in an order in which constants meet and invariant operands are combined first.
//!
//! ```text
//! %2 = add_int(%1, a)                              %2 = add_int(a, b)            licm moves it before the loop
//! %3 = add_int(%2, b)        %1 varies      ==>    %4 = add_int(%2, %1)
//!
//! %2 = add_int(x, 3)
//! %3 = sub_int(7, y)                               %3 = sub_int(x, y)
//! %4 = add_int(%2, %3)                      ==>    %4 = add_int(%3, 10)
//! ```
//!
//! A *chain* is a tree of operations of one *family* whose inner results are used once, all in one loop. Its *leaves* are its operands:
//!
//! | family | operations | leaves that cancel |
//! |---|---|---|
//! | sums | `add_int`, `sub_int`, `neg_int` | `x` and `-x` |
//! | sums of floats | the same with `_fast` | none: ∞ - ∞ |
//! | products | `mul_int`; `mul_float_fast` | none |
//! | bits | `and_int`, `or_int`, `xor_int` | the second `x`; of `xor_int` both |
//!
//! All of them may be computed in any order, integers because they are taken modulo 2ⁿ and floats because `_fast` permits
//! it; strict floats have no family. A leaf has a *level*: the depth of the innermost loop around the chain in which it is
//! made; the value that the chain itself carries from iteration to iteration is above the others of that loop, so that an
//! iteration waits for one operation only. Leaves are joined from the lowest level on. Constants become one, which comes
//! last in 64-bit sums and products, where an access absorbs it, and elsewhere first among the invariant leaves.
//!
//! A signed remainder by a power of two that is only compared with 0 becomes a bit operation: `rem(x, 2) == 0` tests the
//! lowest bit.
//!
//! A chain is rebuilt only if constants or leaves cancel or the sum of the levels of its operations falls, so ordered chains are unchanged.
//! It has no more operations than before and replaces its last one, so nothing is computed speculatively.
//!
//! Cost: one sweep for the uses, then each operation is in one chain, of at most [`MAX_LEAVES`] leaves. Breaks the uses. Not done: common factors; addresses,
//! which `strength-reduce` takes apart; equal partial sums of two chains.

use crate::facts::Fact;
use crate::pass::{Changed, Pass, PassCx, PassLevel};
use crate::replace::Replacements;
use brolga_ir::analysis::{Loop, Loops};
use brolga_ir::cursor::Cursor;
use brolga_ir::intrinsic::Intrinsic;
use brolga_ir::scalar::{Outcome, Scalar, ScalarType, eval};
use brolga_ir::{Block, Func, Inst, LowType, Op, Value};
use cranelift_entity::SecondaryMap;
use cranelift_entity::packed_option::PackedOption;
use smallvec::SmallVec;

pub(crate) const PASS: Pass = Pass::new("reassociate", PassLevel::Low, run)
    .needs(&[Fact::Cfg, Fact::DomTree, Fact::Loops])
    .breaks(&[Fact::Uses]);

/// The limit of leaves; an operation beyond it is a leaf itself.
const MAX_LEAVES: usize = 16;

fn run(func: &mut Func, cx: &mut PassCx<'_>) -> Changed {
    let (rpo, loops) = (cx.facts.rpo(), cx.facts.loops());
    let mut users = Users::of(func);
    let mut values = Replacements::default();
    'blocks: for &block in rpo.blocks() {
        let mut next = func.first_inst(block);
        while let Some(root) = next {
            next = func.next_inst(root);
            if let Some(mask) = users.mask_of_remainder(func, root) {
                if !cx.spend("remainders that are only compared with 0") {
                    break 'blocks;
                }
                let x = func.args(root)[0];
                let mask = func.bits(cx.types(), func.ty(x), mask);
                func.set_op(root, Op::Intrinsic(Intrinsic::AndInt), &[x, mask]);
                continue;
            }
            let Some(family) = Family::of(func, root) else { continue };
            values.apply_to(func, cx.context(), root);
            if users.continues(func, loops, family, root, block) {
                continue;
            }
            let Some(chain) = Chain::of(func, loops, &users, family, root, block) else { continue };
            let Some(leaves) = chain.improved(func) else { continue };
            if !cx.spend("chains put in order") {
                break 'blocks;
            }
            if let Some(value) = chain.emit(func, cx, &leaves, root)
                && let Some(result) = func.result(root)
            {
                values.set(result, value);
                users.keep(value);
                func.remove_inst(root);
            }
            for &inner in &chain.inner[1..] {
                func.remove_inst(inner);
            }
        }
    }
    values.apply(func, cx.context());
    cx.changed()
}

/// The user of a value, if there is exactly one.
struct Users(SecondaryMap<Value, User>);

#[derive(Clone, Copy, Default)]
struct User {
    inst: PackedOption<Inst>,
    several: bool,
}

impl Users {
    fn of(func: &Func) -> Users {
        let mut all: SecondaryMap<Value, User> = SecondaryMap::new();
        for inst in func.blocks().flat_map(|b| func.block_insts(b)) {
            for &arg in func.args(inst) {
                all[arg] = User { inst: inst.into(), several: all[arg].inst.is_some() };
            }
        }
        Users(all)
    }

    /// From now on the value is not an inner result.
    fn keep(&mut self, value: Value) {
        self.0[value].several = true;
    }

    /// The mask of the bits below 2ᵏ, for a signed remainder by 2ᵏ that is only compared with 0: these bits decide that for
    /// either sign.
    fn mask_of_remainder(&self, func: &Func, inst: Inst) -> Option<u128> {
        let (Op::Intrinsic(Intrinsic::SremInt), &[_, by]) = (func.op(inst), func.args(inst)) else {
            return None;
        };
        let by = func.as_bits(by).filter(|bits| bits.count_ones() == 1)?;
        let result = func.result(inst)?;
        let User { inst: user, several } = self.0[result];
        let user = user.expand().filter(|_| !several)?;
        let asks = match (func.op(user), func.args(user)) {
            (Op::Intrinsic(Intrinsic::EqInt | Intrinsic::NeInt), &[a, b]) => {
                func.as_bits(if a == result { b } else { a }) == Some(0)
            }
            _ => false,
        };
        asks.then(|| by - 1)
    }

    /// Whether an operation is part of the chain of its only user.
    fn continues(&self, func: &Func, loops: &Loops, family: Family, inst: Inst, block: Block) -> bool {
        let Some(result) = func.result(inst) else { return false };
        let User { inst: user, several } = self.0[result];
        let Some(user) = user.expand().filter(|_| !several) else { return false };
        let home = func.inst_block(user);
        Family::of(func, user) == Some(family)
            && home.is_some_and(|home| home == block || loops.loop_of(home) == loops.loop_of(block))
    }
}

/// Operations that may be computed in any order together.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Family {
    /// The operation that joins two leaves.
    join: Intrinsic,
    ty: ScalarType,
}

impl Family {
    fn of(func: &Func, inst: Inst) -> Option<Family> {
        let Op::Intrinsic(op) = func.op(inst) else { return None };
        let join = match op {
            Intrinsic::AddInt | Intrinsic::SubInt | Intrinsic::NegInt => Intrinsic::AddInt,
            Intrinsic::AddFloatFast | Intrinsic::SubFloatFast | Intrinsic::NegFloatFast => {
                Intrinsic::AddFloatFast
            }
            Intrinsic::MulInt
            | Intrinsic::AndInt
            | Intrinsic::OrInt
            | Intrinsic::XorInt
            | Intrinsic::MulFloatFast => op,
            _ => return None,
        };
        let ty = match func.ty(func.result(inst)?).as_low()? {
            LowType::F16 => ScalarType::F16,
            LowType::F32 => ScalarType::F32,
            LowType::F64 => ScalarType::F64,
            low if low.is_int() => ScalarType::Int { bits: low.bits() as u16 },
            _ => return None,
        };
        Some(Family { join, ty })
    }

    /// The difference and the negation, of sums.
    fn minus(self) -> Option<(Intrinsic, Intrinsic)> {
        match self.join {
            Intrinsic::AddInt => Some((Intrinsic::SubInt, Intrinsic::NegInt)),
            Intrinsic::AddFloatFast => Some((Intrinsic::SubFloatFast, Intrinsic::NegFloatFast)),
            _ => None,
        }
    }

    /// The neutral element.
    fn identity(self) -> Scalar {
        let bits = match (self.join, self.ty) {
            (Intrinsic::MulInt, _) => 1,
            (Intrinsic::AndInt, _) => u128::MAX >> (128 - u32::from(self.ty.bits())),
            (Intrinsic::MulFloatFast, ScalarType::F16) => 0x3c00,
            (Intrinsic::MulFloatFast, ScalarType::F32) => u128::from(1.0_f32.to_bits()),
            (Intrinsic::MulFloatFast, _) => u128::from(1.0_f64.to_bits()),
            _ => 0,
        };
        Scalar::new(self.ty, bits)
    }

    /// Whether the constant comes last.
    fn is_part_of_addresses(self) -> bool {
        self.ty == ScalarType::Int { bits: 64 } && matches!(self.join, Intrinsic::AddInt | Intrinsic::MulInt)
    }
}

#[derive(Clone, Copy)]
struct Leaf {
    value: Value,
    /// It is subtracted.
    minus: bool,
    level: u32,
}

struct Chain {
    family: Family,
    leaves: SmallVec<[Leaf; 8]>,
    /// The operations, from the last one down.
    inner: SmallVec<[Inst; 8]>,
    /// The sum of their levels.
    cost: u32,
}

impl Chain {
    /// The chain that ends with an operation; `None` if it has too few leaves for another order.
    fn of(
        func: &Func,
        loops: &Loops,
        users: &Users,
        family: Family,
        root: Inst,
        block: Block,
    ) -> Option<Chain> {
        let is_inner = |value: Value| {
            let def = func.def_inst(value)?;
            let home = func.inst_block(def)?;
            (Family::of(func, def) == Some(family) && users.continues(func, loops, family, def, home))
                .then_some(def)
        };
        if !func.args(root).iter().any(|&v| is_inner(v).is_some()) {
            return None;
        }
        let carried = |value: Value| carried_by(func, loops, block, root, value);
        let mut leaves: SmallVec<[Leaf; 8]> = SmallVec::new();
        let mut inner: SmallVec<[Inst; 8]> = SmallVec::new();
        let mut open: SmallVec<[(Value, bool); 8]> = SmallVec::new();
        let push = |open: &mut SmallVec<[(Value, bool); 8]>, inst: Inst, minus: bool| {
            let flips = |n: usize| match func.op(inst) {
                Op::Intrinsic(Intrinsic::SubInt | Intrinsic::SubFloatFast) => n == 1,
                Op::Intrinsic(Intrinsic::NegInt | Intrinsic::NegFloatFast) => true,
                _ => false,
            };
            open.extend(func.args(inst).iter().enumerate().rev().map(|(n, &v)| (v, minus ^ flips(n))));
        };
        inner.push(root);
        push(&mut open, root, false);
        while let Some((value, minus)) = open.pop() {
            let room = leaves.len() + open.len() + 2 <= MAX_LEAVES && inner.len() < 2 * MAX_LEAVES;
            match is_inner(value).filter(|_| room) {
                Some(inst) => {
                    inner.push(inst);
                    push(&mut open, inst, minus);
                }
                None => {
                    let level = 2 * level_of(func, loops, block, value) + u32::from(carried(value));
                    leaves.push(Leaf { value, minus, level });
                }
            }
        }
        let mut levels: SmallVec<[(Value, u32); 24]> = leaves.iter().map(|l| (l.value, l.level)).collect();
        let mut cost = 0;
        for &inst in inner.iter().rev() {
            let of = |v: &Value| levels.iter().find(|(known, _)| known == v).map_or(0, |&(_, level)| level);
            let level = func.args(inst).iter().map(of).max().unwrap_or(0);
            levels.extend(func.result(inst).map(|v| (v, level)));
            cost += level;
        }
        Some(Chain { family, leaves, inner, cost })
    }

    /// The leaves in the order in which they are joined, if that is better.
    fn improved(&self, func: &mut Func) -> Option<Order> {
        let family = self.family;
        let mut constants = 0;
        let mut constant = family.identity();
        let mut rest: SmallVec<[Leaf; 8]> = SmallVec::new();
        for leaf in &self.leaves {
            let Some(bits) = func.as_bits(leaf.value) else {
                rest.push(*leaf);
                continue;
            };
            constants += 1;
            let mut value = Scalar::new(family.ty, bits);
            if leaf.minus {
                value = one(family.minus()?.1, family.ty, &[value])?;
            }
            constant = one(family.join, family.ty, &[constant, value])?;
        }
        if constant.is_nan() {
            return None;
        }
        let before = rest.len();
        self.cancel(&mut rest);
        rest.sort_by_key(|leaf| leaf.level);
        let first = rest.iter().take_while(|leaf| leaf.level == 0).count();
        let has_constant = constant != family.identity() || rest.is_empty();
        let at = match (has_constant, family.is_part_of_addresses()) {
            (false, _) => None,
            (true, true) => Some(rest.len()),
            (true, false) => Some(first),
        };
        let order = Order { rest, constant: at.map(|at| (at, constant)) };
        let fewer = constants > 1 || order.rest.len() < before || (constants == 1 && !has_constant);
        (fewer || order.cost() < self.cost).then_some(order)
    }

    /// Removes leaves that cancel each other.
    fn cancel(&self, leaves: &mut SmallVec<[Leaf; 8]>) {
        let (both, opposite) = match self.family.join {
            Intrinsic::AddInt => (true, true),
            Intrinsic::XorInt => (true, false),
            Intrinsic::AndInt | Intrinsic::OrInt => (false, false),
            _ => return,
        };
        let mut n = 0;
        while let Some(&leaf) = leaves.get(n) {
            let same = |l: &Leaf| l.value == leaf.value && (l.minus != leaf.minus) == opposite;
            match leaves[n + 1..].iter().position(same) {
                Some(other) => {
                    leaves.remove(n + 1 + other);
                    if both {
                        leaves.remove(n);
                    }
                }
                None => n += 1,
            }
        }
    }

    /// Emits the chain before its last operation, which becomes the last of the new one; returns its replacement if no
    /// operation is left.
    fn emit(&self, func: &mut Func, cx: &PassCx<'_>, order: &Order, root: Inst) -> Option<Value> {
        let ty = func.ty(func.result(root)?);
        let mut parts: SmallVec<[(Value, bool); 8]> =
            order.rest.iter().map(|leaf| (leaf.value, leaf.minus)).collect();
        if let Some((at, constant)) = order.constant {
            parts.insert(at, (func.bits(cx.types(), ty, constant.bits()), false));
            // A constant is the second operand if the operands commute.
            if at == 0 && parts.get(1).is_some_and(|&(_, minus)| !minus) {
                parts.swap(0, 1);
            }
        }
        let negate = self.family.minus().map(|(_, negate)| Op::Intrinsic(negate));
        let (&(mut sofar, mut minus), more) = parts.split_first()?;
        let Some((&last, middle)) = more.split_last() else {
            if let Some(negate) = negate.filter(|_| minus) {
                func.set_op(root, negate, &[sofar]);
                return None;
            }
            return Some(sofar);
        };
        for &part in middle {
            let (op, args, negative) = self.joined((sofar, minus), part);
            sofar = Cursor::new(func).before(root).ins_value(Op::Intrinsic(op), &args, ty);
            minus = negative;
        }
        let (op, args, minus) = self.joined((sofar, minus), last);
        match negate.filter(|_| minus) {
            Some(negate) => {
                let sum = Cursor::new(func).before(root).ins_value(Op::Intrinsic(op), &args, ty);
                func.set_op(root, negate, &[sum]);
            }
            None => func.set_op(root, Op::Intrinsic(op), &args),
        }
        None
    }

    /// The operation that joins two parts, and whether its result is to be subtracted.
    fn joined(&self, a: (Value, bool), b: (Value, bool)) -> (Intrinsic, [Value; 2], bool) {
        match (self.family.minus(), a.1, b.1) {
            (Some((minus, _)), false, true) => (minus, [a.0, b.0], false),
            (Some((minus, _)), true, false) => (minus, [b.0, a.0], false),
            (_, both, _) => (self.family.join, [a.0, b.0], both),
        }
    }
}

/// Leaves in the order in which they are joined.
struct Order {
    rest: SmallVec<[Leaf; 8]>,
    /// The constant, and the number of leaves before it.
    constant: Option<(usize, Scalar)>,
}

impl Order {
    /// The sum of the levels of the operations.
    fn cost(&self) -> u32 {
        let all_minus = !self.rest.is_empty() && self.rest.iter().all(|leaf| leaf.minus);
        let last = self.rest.last().map_or(0, |leaf| leaf.level);
        let joins: u32 = self.rest.iter().skip(1).map(|leaf| leaf.level).sum();
        // The constant joins the leaf before it, or the next one.
        let with = self.constant.map_or(0, |(at, _)| match at.checked_sub(1) {
            Some(before) => self.rest.get(before).map_or(0, |leaf| leaf.level),
            None => self.rest.first().map_or(0, |leaf| leaf.level),
        });
        joins + with + if all_minus && self.constant.is_none() { last } else { 0 }
    }
}

/// The depth of the innermost loop around a block in which a value is made.
fn level_of(func: &Func, loops: &Loops, block: Block, value: Value) -> u32 {
    let Some(home) = func.def_inst(value).and_then(|def| func.inst_block(def)) else { return 0 };
    let mut at: Option<Loop> = loops.loop_of(block);
    while let Some(l) = at {
        if loops.contains(l, home) {
            return loops.depth(l);
        }
        at = loops.parent(l);
    }
    0
}

/// Whether a value is the result of a chain's last operation in the iteration before.
fn carried_by(func: &Func, loops: &Loops, block: Block, root: Inst, value: Value) -> bool {
    let Some((l, def)) = loops.loop_of(block).zip(func.def_inst(value)) else { return false };
    func.op(def) == Op::Phi
        && func.inst_block(def) == Some(loops.header(l))
        && func.phi_edges(def).any(|(_, v)| func.result(root) == Some(v))
}

fn one(op: Intrinsic, ty: ScalarType, operands: &[Scalar]) -> Option<Scalar> {
    match eval(op, ty, operands).ok()? {
        Outcome::One(value) => Some(value),
        Outcome::Pair(..) => None,
    }
}
