//! Sums over a counter, in closed form.
//!
//! ```text
//! h: %i = φ (p => 1, h => %n)                p: %k = …                       n iterations, from the start and the bound
//!    %s = φ (p => 0, h => %t)                   %t = a0·N + (a1 + a2)·C(N, 2) + 2·a2·C(N, 3)
//!    %p = mul_int(%i, %i)            ==>     h: as before, and nothing after the loop uses its sum
//!    %t = add_int(%s, %p)
//! x: … uses of %t …                          x: … uses of p's %t …
//! ```
//!
//! In iteration j, from 0, a counter is `start + step·j`, so sums and products of counters and invariant values are
//! polynomials `a0 + a1·j + a2·j²`, up to the second degree. The sum of `C(j, k)` over N iterations is `C(N, k + 1)`, and
//! `j²` is `2·C(j, 2) + j`.
//!
//! **Modulo 2⁶⁴.** `C(N, 2)` is `(N >> 1) · ((N - 1) | 1)`: of two neighbours one is even, and halved. `3·C(N, 3)` is `C(N, 2)·(N - 2)`, and a division by 3
//! is a product with the inverse of 3, which is exact modulo 2⁶⁴ because 3 is odd.
//!
//! **N** is the distance of the bound from the start. The counter goes up by one, so it meets a bound that it has to differ
//! from; one that it has to stay below is known to be at least the start. If start and bound are equal the loop has 2⁶⁴
//! iterations, so nothing after it is ever executed.
//!
//! Only sums that nothing else in the loop uses are replaced: then the loop no longer computes them, and `loop-delete` finds
//! most of these loops empty.
//!
//! Cost: the instructions that a sum is made of, at most [`MAX_STEPS`]. Not done: higher degrees, other widths than 64 bits, products.

use crate::counted::{Counted, Recurrence, Relation, Tested, is_invariant, recurrences, signed};
use crate::heads::head_phis;
use crate::loop_copy::ins;
use crate::pass::PassCx;
use crate::undefined::MaybeUndefined;
use brolga_ir::analysis::{Loops, Uses};
use brolga_ir::intrinsic::Intrinsic;
use brolga_ir::{Func, Inst, Op, Type, Types, Value};

/// The most instructions that make up a polynomial.
const MAX_STEPS: u32 = 12;
/// The inverse of 3 modulo 2⁶⁴.
const INVERSE_OF_3: u64 = 0xaaaa_aaaa_aaaa_aaab;

/// A loop whose test is its only exit.
pub(super) struct Sums<'a> {
    pub(super) counted: Counted,
    pub(super) guarded: bool,
    pub(super) loops: &'a Loops,
    pub(super) uses: &'a Uses,
    pub(super) undefined: &'a MaybeUndefined,
}

/// `a0 + a1·j + a2·j²`; missing coefficients are 0.
type Polynomial = [Option<Value>; 3];

impl Sums<'_> {
    /// Replaces the sums that are used after the loop. False if there was no fuel left.
    pub(super) fn replace(&self, func: &mut Func, cx: &mut PassCx<'_>) -> bool {
        let Counted { shape, test } = self.counted;
        let known = [test.bound, test.counter.start].into_iter().all(|v| !self.undefined.has(func, v));
        let meets = match test.relation {
            Relation::Differs => true,
            Relation::Less(_) | Relation::AtMost(_) => self.guarded,
            _ => false,
        };
        let by_one = test.counter.const_step(func) == Some(1) && func.ty(test.counter.value) == Type::I64;
        if !known || !meets || !by_one {
            return true;
        }
        let counters: Vec<Recurrence> = recurrences(func, self.loops, &shape)
            .filter(|r| func.ty(r.value) == Type::I64 && !self.undefined.has(func, r.start))
            .collect();
        for phi in head_phis(func, shape.header).collect::<Vec<_>>() {
            let Some((start, next, op, addend)) = self.sum(func, phi) else { continue };
            let polynomial = Polynomials { sums: self, counters: &counters };
            let mut steps = MAX_STEPS;
            // Counters have their last values from elsewhere, unless their step is not a constant.
            let is_counter = is_invariant(func, self.loops, shape.l, addend);
            let constant = is_counter && signed(func, addend).is_some();
            if constant || polynomial.degree(func, addend, &mut steps).is_none() {
                continue;
            }
            if !cx.spend("sums in closed form") {
                return false;
            }
            let types = cx.types();
            let Some(made) = polynomial.of(func, types, addend) else { continue };
            let sum = self.sum_of(func, types, made);
            let sum = match sum {
                None => start,
                Some(sum) => ins(func, shape.preheader, op, &[start, sum], Type::I64),
            };
            let outside: Vec<_> = self.uses.of(next).iter().filter(|one| one.inst != phi).copied().collect();
            for one in outside {
                if func.args(one.inst).get(one.index as usize) == Some(&next) {
                    func.args_mut(one.inst)[one.index as usize] = sum;
                }
            }
        }
        true
    }

    /// A φ that is a sum and is used for nothing else in the loop: its start, its next value, the operation, and the addend.
    fn sum(&self, func: &Func, phi: Inst) -> Option<(Value, Value, Intrinsic, Value)> {
        let shape = self.counted.shape;
        let value = func.result(phi).filter(|&v| func.ty(v) == Type::I64)?;
        let (start, next) = shape.edges(func, phi)?;
        let add = func
            .def_inst(next)
            .filter(|&i| func.inst_block(i).is_some_and(|b| self.loops.contains(shape.l, b)))?;
        let (op, addend) = match (func.op(add), func.args(add)) {
            (Op::Intrinsic(op @ (Intrinsic::AddInt | Intrinsic::SubInt)), &[a, b]) if a == value => (op, b),
            (Op::Intrinsic(Intrinsic::AddInt), &[a, b]) if b == value => (Intrinsic::AddInt, a),
            _ => return None,
        };
        let inside = |inst: Inst| func.inst_block(inst).is_some_and(|b| self.loops.contains(shape.l, b));
        let only = self.uses.of(value).iter().all(|one| one.inst == add);
        let next_uses = self.uses.of(next);
        let carried = next_uses.iter().all(|one| one.inst == phi || !inside(one.inst));
        let wanted = next_uses.iter().any(|one| one.inst != phi);
        let usable = addend != value && only && carried && wanted && !self.undefined.has(func, start);
        usable.then_some((start, next, op, addend))
    }

    /// The sum of a polynomial over all iterations, at the end of the preheader.
    fn sum_of(&self, func: &mut Func, types: &Types, [a0, a1, a2]: Polynomial) -> Option<Value> {
        let mut at = Maker { func, types, block: self.counted.shape.preheader };
        let test = self.counted.test;
        let end = match test.relation {
            Relation::AtMost(_) => {
                let one = at.number(1);
                at.plus(Some(test.bound), Some(one))
            }
            _ => Some(test.bound),
        };
        let start = at.times_number(Some(test.counter.start), u64::MAX);
        let mut count = at.plus(end, start);
        if test.tested == Tested::This {
            // The iteration whose counter is the bound is executed as well.
            count = at.plus_number(count, 1);
        }
        let count = count?;
        let mut sum = at.times(a0, Some(count));
        let linear = at.plus(a1, a2);
        if linear.is_none() && a2.is_none() {
            return sum;
        }
        let one = at.number(1);
        let half = at.op(Intrinsic::LshrInt, count, one);
        let before = at.plus_number(Some(count), u64::MAX).unwrap_or_else(|| at.number(0));
        let odd = at.op(Intrinsic::OrInt, before, one);
        let pairs = Some(at.op(Intrinsic::MulInt, half, odd));
        let of_pairs = at.times(linear, pairs);
        sum = at.plus(sum, of_pairs);
        if a2.is_some() {
            let rest = at.plus_number(Some(count), 2u64.wrapping_neg());
            let triples = at.times(pairs, rest);
            let triples = at.times_number(triples, INVERSE_OF_3.wrapping_mul(2));
            let of_triples = at.times(a2, triples);
            sum = at.plus(sum, of_triples);
        }
        sum
    }
}

struct Polynomials<'a> {
    sums: &'a Sums<'a>,
    counters: &'a [Recurrence],
}

impl Polynomials<'_> {
    fn is_fixed(&self, func: &Func, value: Value) -> bool {
        is_invariant(func, self.sums.loops, self.sums.counted.shape.l, value)
    }

    fn counter(&self, value: Value) -> Option<&Recurrence> {
        self.counters.iter().find(|r| r.value == value || r.next == value)
    }

    /// The degree of the polynomial that a value is.
    fn degree(&self, func: &Func, value: Value, steps: &mut u32) -> Option<u32> {
        *steps = steps.checked_sub(1)?;
        if func.ty(value) != Type::I64 {
            return None;
        }
        if self.is_fixed(func, value) {
            return (!self.sums.undefined.has(func, value)).then_some(0);
        }
        if let Some(counter) = self.counter(value) {
            return (!self.sums.undefined.has(func, counter.step)).then_some(1);
        }
        let inst = func.def_inst(value)?;
        let Op::Intrinsic(op) = func.op(inst) else { return None };
        let degree = match (op, func.args(inst)) {
            (Intrinsic::NegInt, &[x]) => self.degree(func, x, steps)?,
            (Intrinsic::AddInt | Intrinsic::SubInt, &[x, y]) => {
                self.degree(func, x, steps)?.max(self.degree(func, y, steps)?)
            }
            (Intrinsic::MulInt, &[x, y]) => self.degree(func, x, steps)? + self.degree(func, y, steps)?,
            (Intrinsic::ShlInt, &[x, by]) if func.as_bits(by).is_some_and(|by| by < 64) => {
                self.degree(func, x, steps)?
            }
            _ => return None,
        };
        (degree <= 2).then_some(degree)
    }

    /// The polynomial that a value is, whose coefficients are made at the end of the preheader.
    fn of(&self, func: &mut Func, types: &Types, value: Value) -> Option<Polynomial> {
        if self.is_fixed(func, value) {
            return Some([(func.as_bits(value) != Some(0)).then_some(value), None, None]);
        }
        let block = self.sums.counted.shape.preheader;
        if let Some(&Recurrence { value: this, start, step, .. }) = self.counter(value) {
            let mut at = Maker { func, types, block };
            let first =
                if value == this { at.plus(Some(start), None) } else { at.plus(Some(start), Some(step)) };
            return Some([first, Some(step), None]);
        }
        let inst = func.def_inst(value)?;
        let Op::Intrinsic(op) = func.op(inst) else { return None };
        let args = func.args(inst).to_vec();
        let x = self.of(func, types, *args.first()?)?;
        let factor = match (op, args.get(1)) {
            (Intrinsic::NegInt, _) => Some(u64::MAX),
            (Intrinsic::ShlInt, Some(&by)) => Some(1u64.checked_shl(func.as_bits(by)? as u32)?),
            _ => None,
        };
        if let Some(factor) = factor {
            let mut at = Maker { func, types, block };
            return Some(x.map(|coefficient| at.times_number(coefficient, factor)));
        }
        let y = self.of(func, types, *args.get(1)?)?;
        let mut at = Maker { func, types, block };
        Some(match op {
            Intrinsic::AddInt => [0, 1, 2].map(|n| at.plus(x[n], y[n])),
            Intrinsic::SubInt => [0, 1, 2].map(|n| {
                let minus = at.times_number(y[n], u64::MAX);
                at.plus(x[n], minus)
            }),
            Intrinsic::MulInt => [0usize, 1, 2].map(|degree| {
                (0..=degree).fold(None, |sum, n| {
                    let product = at.times(x[n], y[degree - n]);
                    at.plus(sum, product)
                })
            }),
            _ => return None,
        })
    }
}

/// Makes sums and products at the end of a block; operations on constants are folded.
struct Maker<'a> {
    func: &'a mut Func,
    types: &'a Types,
    block: brolga_ir::Block,
}

impl Maker<'_> {
    fn number(&mut self, number: u64) -> Value {
        self.func.bits(self.types, Type::I64, number.into())
    }

    fn known(&self, value: Value) -> Option<u64> {
        self.func.as_bits(value).map(|bits| bits as u64)
    }

    fn op(&mut self, op: Intrinsic, x: Value, y: Value) -> Value {
        ins(self.func, self.block, op, &[x, y], Type::I64)
    }

    fn plus(&mut self, x: Option<Value>, y: Option<Value>) -> Option<Value> {
        let (x, y) = match (x, y) {
            (Some(x), Some(y)) => (x, y),
            (one, None) | (None, one) => return one.filter(|&v| self.known(v) != Some(0)),
        };
        match (self.known(x), self.known(y)) {
            (Some(x), Some(y)) => {
                let sum = x.wrapping_add(y);
                (sum != 0).then(|| self.number(sum))
            }
            (Some(0), None) => Some(y),
            (None, Some(0)) => Some(x),
            _ => Some(self.op(Intrinsic::AddInt, x, y)),
        }
    }

    fn plus_number(&mut self, x: Option<Value>, number: u64) -> Option<Value> {
        let number = self.number(number);
        self.plus(x, Some(number))
    }

    fn times(&mut self, x: Option<Value>, y: Option<Value>) -> Option<Value> {
        let (x, y) = (x?, y?);
        match (self.known(x), self.known(y)) {
            (Some(x), Some(y)) => {
                let product = x.wrapping_mul(y);
                (product != 0).then(|| self.number(product))
            }
            (Some(0), _) | (_, Some(0)) => None,
            (Some(1), _) => Some(y),
            (_, Some(1)) => Some(x),
            _ => Some(self.op(Intrinsic::MulInt, x, y)),
        }
    }

    fn times_number(&mut self, x: Option<Value>, number: u64) -> Option<Value> {
        let number = self.number(number);
        self.times(x, Some(number))
    }
}
