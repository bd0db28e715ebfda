//! Addresses in a loop as sums of variant and invariant parts.
//!
//! ```text
//! add_ptr(p, mul_int(add_int(add_int(m, %i), 1), 8))    =    p + 8·m + 8·%i + 8
//!                                                           base  term  counter  constant
//! ```
//!
//! All sums are modulo 2⁶⁴, so they may be made in any order, and no fact about ranges is needed. A multiple of the counter is a constant, or
//! an invariant value times a constant. Only values that are defined whenever the preheader is reached count as
//! invariant, so that they may be added there.
//!
//! Cost: at most [`MAX_PARTS`] sums and products for each address. Not done: integers narrower than 64 bits; two counters.

use crate::counted::{Recurrence, Shape, is_invariant, recurrences, signed};
use crate::undefined::MaybeUndefined;
use brolga_ir::analysis::Loops;
use brolga_ir::cursor::Cursor;
use brolga_ir::intrinsic::Intrinsic;
use brolga_ir::{Func, Op, Type, Types, Value};

/// The most sums and products of an address that are decomposed: enough for four array dimensions.
pub(crate) const MAX_PARTS: usize = 32;

/// An address as a sum.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Sum {
    /// An address that does not change.
    pub(crate) base: Option<Value>,
    /// Integers that do not change, each with its factor.
    pub(crate) terms: Vec<(Value, i64)>,
    /// The counter's value in the iteration.
    pub(crate) counter: Option<Value>,
    /// The factor of the counter that is a constant.
    pub(crate) factor: i64,
    /// A factor of the counter that does not change, with its own factor.
    pub(crate) by: Option<(Value, i64)>,
    pub(crate) constant: i64,
    /// How many operations of the loop made it.
    pub(crate) operations: usize,
}

/// The parts of the addresses of a loop.
pub(crate) struct Addresses<'a> {
    pub(crate) shape: Shape,
    counters: Vec<Recurrence>,
    undefined: &'a MaybeUndefined,
    loops: &'a Loops,
}

impl<'a> Addresses<'a> {
    pub(crate) fn of(
        func: &Func,
        loops: &'a Loops,
        undefined: &'a MaybeUndefined,
        shape: Shape,
    ) -> Addresses<'a> {
        let defined = |r: &Recurrence| !undefined.has(func, r.value) && !undefined.has(func, r.step);
        let counters = recurrences(func, loops, &shape).filter(defined).collect();
        Addresses { shape, counters, undefined, loops }
    }

    /// The counter of a sum.
    pub(crate) fn counter_of(&self, sum: &Sum) -> Option<Recurrence> {
        self.counters.iter().find(|r| Some(r.value) == sum.counter).copied()
    }

    /// Decomposes an address with an untracked base; `None` if it has other parts, or no counter.
    pub(crate) fn sum(&self, func: &Func, address: Value) -> Option<Sum> {
        let sum = self.sum_of_any(func, address)?;
        sum.base.is_none_or(|base| func.ty(base) == Type::PTR).then_some(sum)
    }

    /// Like [`Addresses::sum`], also for a tracked base or one under `gc_loaded`. Such a sum must not be computed elsewhere:
    /// it would be a derived pointer that nothing keeps alive.
    pub(crate) fn sum_of_any(&self, func: &Func, address: Value) -> Option<Sum> {
        let mut sum = Sum::default();
        let mut parts = vec![(address, 1i64)];
        for _ in 0..MAX_PARTS {
            let Some((value, factor)) = parts.pop() else {
                sum.terms.retain(|&(_, factor)| factor != 0);
                sum.terms.sort_unstable();
                return sum.counter.is_some().then_some(sum);
            };
            self.add(func, &mut sum, &mut parts, value, factor)?;
        }
        None
    }

    fn add(
        &self,
        func: &Func,
        sum: &mut Sum,
        parts: &mut Vec<(Value, i64)>,
        value: Value,
        factor: i64,
    ) -> Option<()> {
        let is_address = matches!(func.ty(value), Type::PTR | Type::TRACKED | Type::LOADED);
        if !is_address && func.ty(value) != Type::I64 {
            return None;
        }
        if let Some(n) = signed(func, value).filter(|_| !is_address) {
            sum.constant = sum.constant.wrapping_add((n as i64).wrapping_mul(factor));
            return Some(());
        }
        if self.is_fixed(func, value) {
            if is_address {
                return (factor == 1 && sum.base.replace(value).is_none()).then_some(());
            }
            sum.add_term(value, factor);
            return Some(());
        }
        if self.counters.iter().any(|r| r.value == value) {
            sum.factor = sum.factor.wrapping_add(factor);
            return (*sum.counter.get_or_insert(value) == value).then_some(());
        }
        let def = func.def_inst(value)?;
        if let (Op::GcLoaded, &[_, address]) = (func.op(def), func.args(def)) {
            // The same address; the object that keeps the memory alive takes no part in it.
            parts.push((address, factor));
            return Some(());
        }
        let Op::Intrinsic(op) = func.op(def) else { return None };
        sum.operations += 1;
        match (op, func.args(def)) {
            (Intrinsic::AddInt | Intrinsic::AddPtr, &[a, b]) => parts.extend([(a, factor), (b, factor)]),
            (Intrinsic::SubInt | Intrinsic::SubPtr, &[a, b]) => {
                parts.extend([(a, factor), (b, factor.wrapping_neg())])
            }
            (Intrinsic::NegInt, &[a]) => parts.push((a, factor.wrapping_neg())),
            (Intrinsic::ShlInt, &[a, by]) => {
                let by = func.as_bits(by).filter(|&by| by < 64)?;
                parts.push((a, factor.wrapping_mul(1i64.wrapping_shl(by as u32))));
            }
            (Intrinsic::MulInt, &[a, b]) => match (signed(func, a), signed(func, b)) {
                (_, Some(n)) => parts.push((a, factor.wrapping_mul(n as i64))),
                (Some(n), _) => parts.push((b, factor.wrapping_mul(n as i64))),
                _ if self.is_fixed(func, b) => self.product(func, sum, a, b, factor)?,
                _ if self.is_fixed(func, a) => self.product(func, sum, b, a, factor)?,
                _ => return None,
            },
            _ => return None,
        }
        Some(())
    }

    /// Adds the product of an invariant value and the counter plus a constant.
    fn product(&self, func: &Func, sum: &mut Sum, of: Value, by: Value, factor: i64) -> Option<()> {
        let (of, added) = match func.def_inst(of).map(|def| (func.op(def), func.args(def))) {
            Some((Op::Intrinsic(Intrinsic::AddInt), &[a, b])) if signed(func, b).is_some() => {
                (a, signed(func, b)? as i64)
            }
            _ => (of, 0),
        };
        let is_counter = self.counters.iter().any(|r| r.value == of) && func.ty(of) == Type::I64;
        if !is_counter || *sum.counter.get_or_insert(of) != of {
            return None;
        }
        let (known, sofar) = sum.by.unwrap_or((by, 0));
        sum.by = Some((by, sofar.wrapping_add(factor)));
        if added != 0 {
            sum.add_term(by, factor.wrapping_mul(added));
        }
        (known == by).then_some(())
    }

    /// Whether a value is invariant in the loop and defined before it.
    pub(crate) fn is_fixed(&self, func: &Func, value: Value) -> bool {
        is_invariant(func, self.loops, self.shape.l, value) && !self.undefined.has(func, value)
    }

    /// Base plus terms, computed before the loop.
    pub(crate) fn fixed_part(&self, func: &mut Func, types: &Types, sum: &Sum) -> Option<Value> {
        let mut at = Cursor::new(func);
        at.before_terminator(self.shape.preheader);
        let mut all = sum.base;
        for &(term, factor) in &sum.terms {
            let part = times(&mut at, types, term, factor);
            all = Some(plus(&mut at, all, part));
        }
        all
    }
}

impl Sum {
    fn add_term(&mut self, value: Value, factor: i64) {
        match self.terms.iter_mut().find(|(v, _)| *v == value) {
            Some((_, sofar)) => *sofar = sofar.wrapping_add(factor),
            None => self.terms.push((value, factor)),
        }
    }
}

/// A value times a constant.
pub(crate) fn times(at: &mut Cursor<'_>, types: &Types, value: Value, factor: i64) -> Value {
    if factor == 1 {
        return value;
    }
    let factor = at.int(types, Type::I64, i128::from(factor));
    at.ins_value(Op::Intrinsic(Intrinsic::MulInt), &[value, factor], Type::I64)
}

/// The sum of two values, an address if the first one is one.
pub(crate) fn plus(at: &mut Cursor<'_>, to: Option<Value>, part: Value) -> Value {
    let Some(to) = to else { return part };
    let ty = at.func.ty(to);
    let op = if ty == Type::PTR { Intrinsic::AddPtr } else { Intrinsic::AddInt };
    at.ins_value(Op::Intrinsic(op), &[to, part], ty)
}
