//! Ranges of integers, derived from the operations that compute them.
//!
//! ```text
//! %1 = zext_int(i64, b::i8)       0 … 255
//! %2 = and_int(x, 15)             0 … 15            signed; a sum that may wrap is anything of its type
//! %3 = add_int(%1, %2)            0 … 270
//! %4 = load(m; region = length)   0 … 2⁶² - 1       `size` as well; `header` is not negative
//! ```
//!
//! One sweep in reverse postorder. A φ that closes a loop has the full range: comparisons bound it, which `passes/correlated`
//! adds to these ranges. Values of up to 64 bits; all others have no range.
//!
//! Cost: constant time for each instruction.

use crate::replace::sized;
use brolga_ir::analysis::Rpo;
use brolga_ir::builtin::Builtin;
use brolga_ir::intrinsic::{Intrinsic, Shape};
use brolga_ir::op::Region;
use brolga_ir::{Func, Inst, Op, Type, Value};
use cranelift_entity::SecondaryMap;

/// The least and the greatest value that a signed integer can have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Range {
    pub(crate) lo: i64,
    pub(crate) hi: i64,
}

impl Range {
    pub(crate) const ZERO: Range = Range { lo: 0, hi: 0 };

    /// All values of a width.
    pub(crate) fn all(bits: u32) -> Range {
        let hi = i64::MAX >> (64 - bits.clamp(1, 64));
        Range { lo: !hi, hi }
    }

    fn exactly(value: i64) -> Range {
        Range { lo: value, hi: value }
    }

    fn join(self, other: Range) -> Range {
        Range { lo: self.lo.min(other.lo), hi: self.hi.max(other.hi) }
    }

    fn is_inside(self, outer: Range) -> bool {
        self.lo >= outer.lo && self.hi <= outer.hi
    }

    pub(crate) fn is_natural(self) -> bool {
        self.lo >= 0
    }
}

/// The width of an integer of up to 64 bits in low IR.
pub(crate) fn width(ty: Type) -> Option<u32> {
    ty.as_low().filter(|low| low.is_int()).map(|low| low.bits()).filter(|&bits| bits <= 64)
}

/// A constant as a signed integer.
pub(crate) fn constant(func: &Func, value: Value) -> Option<i64> {
    let shift = 64 - width(func.ty(value))?;
    Some(((func.as_bits(value)? as u64) << shift).cast_signed() >> shift)
}

/// Whether a value is a length that is far from the largest integer.
pub(crate) fn is_bounded_length(func: &Func, value: Value) -> bool {
    let load = func.def_inst(value).map(|def| func.op(def));
    matches!(load, Some(Op::Load(access)) if matches!(access.region, Region::Length | Region::Size))
}

/// The ranges of the values of a low function.
#[derive(Debug)]
pub(crate) struct Ranges {
    of: SecondaryMap<Value, Option<Range>>,
}

impl Ranges {
    /// Analyses all reachable blocks.
    pub(crate) fn of(func: &Func, rpo: &Rpo) -> Ranges {
        let mut all = Ranges { of: sized(func.value_count()) };
        for &block in rpo.blocks() {
            for inst in func.block_insts(block) {
                all.note(func, inst);
            }
        }
        all
    }

    /// The range of a value; `None` if it is not an integer of up to 64 bits.
    pub(crate) fn get(&self, func: &Func, value: Value) -> Option<Range> {
        if let Some(range) = self.of[value] {
            return Some(range);
        }
        match constant(func, value) {
            Some(c) => Some(Range::exactly(c)),
            None => width(func.ty(value)).map(Range::all),
        }
    }

    fn note(&mut self, func: &Func, inst: Inst) {
        let mut results = func.results(inst);
        let Some(first) = results.next() else { return };
        if let Op::Intrinsic(op) = func.op(inst)
            && op.shape() == Shape::CheckedPair
        {
            if let Some(flag) = results.next() {
                self.of[flag] = Some(Range { lo: 0, hi: 1 });
            }
            self.of[first] = strict(op).and_then(|op| self.intrinsic(func, op, inst, first));
            return;
        }
        self.of[first] = match func.op(inst) {
            Op::Intrinsic(op) => self.intrinsic(func, op, inst, first),
            Op::Builtin(Builtin::Ifelse) => self.joined(func, &func.args(inst)[1..]),
            Op::Phi => {
                // Operands over back edges have not been visited.
                let seen = |&v: &Value| self.of[v].is_some() || func.def_inst(v).is_none();
                if func.args(inst).iter().all(seen) { self.joined(func, func.args(inst)) } else { None }
            }
            Op::Copy => self.joined(func, func.args(inst)),
            Op::Load(access) => match (access.region, width(func.ty(first))) {
                (Region::Length | Region::Size, Some(64)) => Some(Range { lo: 0, hi: Region::LONGEST }),
                (Region::Header, Some(64)) => Some(Range { lo: 0, hi: i64::MAX }),
                _ => None,
            },
            _ => None,
        };
        if self.of[first].is_none() {
            self.of[first] = width(func.ty(first)).map(Range::all);
        }
    }

    fn joined(&self, func: &Func, values: &[Value]) -> Option<Range> {
        let mut ranges = values.iter().map(|&v| self.get(func, v));
        let first = ranges.next()??;
        ranges.try_fold(first, |all, one| Some(all.join(one?)))
    }

    fn intrinsic(&self, func: &Func, op: Intrinsic, inst: Inst, result: Value) -> Option<Range> {
        use Intrinsic as I;
        let bits = width(func.ty(result))?;
        let all = Range::all(bits);
        let args = func.args(inst);
        let x = self.get(func, *args.first()?);
        let y = args.get(1).and_then(|&v| self.get(func, v));
        if matches!(op.shape(), Shape::IntCompare | Shape::FloatCompare) {
            return Some(Range { lo: 0, hi: 1 });
        }
        match (op, x?, y) {
            (I::AddInt, x, Some(y)) => fitting(all, [wide(x.lo) + wide(y.lo), wide(x.hi) + wide(y.hi)]),
            (I::SubInt, x, Some(y)) => fitting(all, [wide(x.lo) - wide(y.hi), wide(x.hi) - wide(y.lo)]),
            (I::NegInt, x, _) => fitting(all, [-wide(x.hi), -wide(x.lo)]),
            (I::NotInt, x, _) => Some(Range { lo: !x.hi, hi: !x.lo }),
            (I::MulInt, x, Some(y)) => {
                let of = |a: i64, b: i64| wide(a) * wide(b);
                fitting(all, [of(x.lo, y.lo), of(x.lo, y.hi), of(x.hi, y.lo), of(x.hi, y.hi)])
            }
            (I::AndInt, x, Some(y)) => match (x.is_natural(), y.is_natural()) {
                (true, true) => Some(Range { lo: 0, hi: x.hi.min(y.hi) }),
                (true, false) => Some(Range { lo: 0, hi: x.hi }),
                (false, true) => Some(Range { lo: 0, hi: y.hi }),
                (false, false) => None,
            },
            (I::OrInt | I::XorInt, x, Some(y)) if x.is_natural() && y.is_natural() => {
                let top = (x.hi | y.hi).cast_unsigned();
                let ones = u64::MAX.checked_shr(top.leading_zeros()).unwrap_or(0);
                Some(Range { lo: 0, hi: ones.cast_signed() })
            }
            (I::ShlInt, x, Some(y)) if y.lo == y.hi && (0..i64::from(bits)).contains(&y.lo) => {
                fitting(all, [wide(x.lo) << y.lo, wide(x.hi) << y.lo])
            }
            (I::LshrInt | I::AshrInt, x, Some(y)) if y.lo == y.hi && (0..i64::from(bits)).contains(&y.lo) => {
                if op == I::AshrInt || x.is_natural() {
                    Some(Range { lo: x.lo >> y.lo, hi: x.hi >> y.lo })
                } else if y.lo > 0 {
                    Some(Range { lo: 0, hi: Range::all(bits - y.lo as u32 + 1).hi })
                } else {
                    None
                }
            }
            (I::LshrInt, x, _) if x.is_natural() => Some(Range { lo: 0, hi: x.hi }),
            (I::SdivInt | I::CheckedSdivInt | I::UdivInt | I::CheckedUdivInt, x, Some(y))
                if y.lo > 0 && (x.is_natural() || matches!(op, I::SdivInt | I::CheckedSdivInt)) =>
            {
                Some(Range { lo: (x.lo / y.lo).min(x.lo / y.hi), hi: (x.hi / y.lo).max(x.hi / y.hi) })
            }
            (I::UremInt | I::CheckedUremInt, x, Some(y)) if y.lo > 0 => {
                let hi = if x.is_natural() { x.hi.min(y.hi - 1) } else { y.hi - 1 };
                Some(Range { lo: 0, hi })
            }
            (I::SremInt | I::CheckedSremInt, x, Some(y)) if y.lo > 0 => {
                Some(Range { lo: x.lo.clamp(1 - y.hi, 0), hi: x.hi.clamp(0, y.hi - 1) })
            }
            (I::CtpopInt | I::CtlzInt | I::CttzInt, ..) => {
                Some(Range { lo: 0, hi: i64::from(bits).min(all.hi) })
            }
            (I::SextInt, x, _) => Some(x),
            (I::ZextInt, x, _) if x.is_natural() => Some(x),
            (I::ZextInt, ..) => {
                let from = width(func.ty(args[0])).filter(|&from| from < bits)?;
                Some(Range { lo: 0, hi: Range::all(from + 1).hi })
            }
            (I::TruncInt, x, _) if x.is_inside(all) => Some(x),
            _ => None,
        }
    }
}

/// The unchecked operation that computes a checked one's result without the flag.
pub(crate) fn strict(op: Intrinsic) -> Option<Intrinsic> {
    match op {
        Intrinsic::CheckedSaddInt | Intrinsic::CheckedUaddInt => Some(Intrinsic::AddInt),
        Intrinsic::CheckedSsubInt | Intrinsic::CheckedUsubInt => Some(Intrinsic::SubInt),
        Intrinsic::CheckedSmulInt | Intrinsic::CheckedUmulInt => Some(Intrinsic::MulInt),
        _ => None,
    }
}

fn wide(value: i64) -> i128 {
    i128::from(value)
}

/// The range from the least to the greatest of some values, if none of them wraps.
pub(crate) fn fitting<const N: usize>(all: Range, values: [i128; N]) -> Option<Range> {
    let (lo, hi) = (values.into_iter().min()?, values.into_iter().max()?);
    let range = Range { lo: i64::try_from(lo).ok()?, hi: i64::try_from(hi).ok()? };
    range.is_inside(all).then_some(range)
}
