//! Algebra: replacements of one instruction, from itself and the definitions of its operands.
//!
//! A rule changes one instruction and inserts none, so it never makes a function larger. The catalogue, the canonical forms
//! and the proof that the rules terminate are in `README.md` beside this file.
//!
//! | file | operations |
//! |---|---|
//! | `fold` | any pure intrinsic of constants |
//! | `int` | integer arithmetic, bits, shifts, division, addresses |
//! | `compare` | comparisons of integers and floats, `not` of them |
//! | `float` | floating-point arithmetic |
//! | `convert` | conversions |
//! | `types` | `===`, `isa`, `<:`, `typeof`, `sizeof`, `nfields`, `isdefined`, `typeassert`, fields of constants |
//! | `select` | `ifelse`, φ, π, copies, `throw_undef_if_not` |

mod compare;
mod convert;
mod float;
mod fold;
mod int;
mod select;
mod types;

pub(crate) use fold::evaluate;
pub(crate) use types::{constant_field, field_position};

use brolga_ir::analysis::Cfg;
use brolga_ir::builtin::Builtin;
use brolga_ir::intrinsic::{Intrinsic, Shape};
use brolga_ir::{Func, Inst, Level, Op, Type, Types, Value};

/// The replacement of an instruction.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Rewrite {
    /// Its result is this value.
    Value(Value),
    /// Its two results are these values (low IR).
    Values(Value, Value),
    /// It becomes this operation on these operands, with the same result.
    Op(Op, Vec<Value>),
    /// It does nothing.
    Nothing,
}

impl Rewrite {
    fn unary(op: Intrinsic, x: Value) -> Option<Rewrite> {
        Some(Rewrite::Op(Op::Intrinsic(op), vec![x]))
    }

    fn binary(op: Intrinsic, x: Value, y: Value) -> Option<Rewrite> {
        Some(Rewrite::Op(Op::Intrinsic(op), vec![x, y]))
    }
}

/// The instruction to which rules apply.
pub(crate) struct Site<'a> {
    pub(crate) func: &'a mut Func,
    pub(crate) types: &'a Types,
    pub(crate) cfg: &'a Cfg,
    pub(crate) inst: Inst,
    /// The type of the first result; `Union{}` if there is none.
    pub(crate) ty: Type,
}

/// Finds the first rule that applies, with the name that reports count it under.
pub(crate) fn simplify(site: &mut Site<'_>) -> Option<(&'static str, Rewrite)> {
    let named = |name| move |rewrite| (name, rewrite);
    match site.func.op(site.inst) {
        Op::Intrinsic(op) => fold::simplify(site, op).map(named("folded")).or_else(|| match op.shape() {
            Shape::IntUnary
            | Shape::IntBinary
            | Shape::IntDivide
            | Shape::Shift
            | Shape::CheckedPair
            | Shape::PtrOffset => int::simplify(site, op).map(named("integer rules")),
            Shape::IntCompare | Shape::FloatCompare => {
                compare::simplify(site, op).map(named("comparison rules"))
            }
            Shape::FloatUnary | Shape::FloatBinary | Shape::FloatTernary => {
                float::simplify(site, op).map(named("float rules"))
            }
            Shape::Convert(kind) => convert::simplify(site, kind).map(named("conversion rules")),
            _ => None,
        }),
        Op::Builtin(Builtin::Ifelse) | Op::Phi | Op::Pi | Op::Copy | Op::ThrowUndefIfNot(_) => {
            select::simplify(site).map(named("copies and choices"))
        }
        Op::Builtin(op) => types::simplify(site, op).map(named("type rules")),
        Op::StaticParameter(number) => types::static_parameter(site, number).map(named("static parameters")),
        Op::StaticDefined(number) => types::static_defined(site, number).map(named("static parameters")),
        _ => None,
    }
}

impl Site<'_> {
    /// `c + x  →  x + c`, and `c == x  →  x == c`.
    fn constant_last(&self, op: Intrinsic, x: Value, y: Value) -> Option<Rewrite> {
        let is_first = op.is_commutative() && self.is_constant(x) && !self.is_constant(y);
        if is_first { Rewrite::binary(op, y, x) } else { None }
    }

    fn args(&self) -> &[Value] {
        self.func.args(self.inst)
    }

    fn arg(&self, n: usize) -> Option<Value> {
        self.args().get(n).copied()
    }

    fn pair(&self) -> Option<(Value, Value)> {
        match *self.args() {
            [x, y] => Some((x, y)),
            _ => None,
        }
    }

    fn bits(&self, value: Value) -> Option<u128> {
        self.func.as_bits(value)
    }

    fn is_constant(&self, value: Value) -> bool {
        self.bits(value).is_some()
    }

    /// The intrinsic that makes a value, with its operands.
    fn made_by(&self, value: Value) -> Option<(Intrinsic, &[Value])> {
        let inst = self.func.def_inst(value)?;
        match self.func.op(inst) {
            // In code that is never reached an instruction may use its own result.
            Op::Intrinsic(op) if inst != self.inst => Some((op, self.func.args(inst))),
            _ => None,
        }
    }

    /// The operand of a value that `op` makes.
    fn unary_of(&self, value: Value, op: Intrinsic) -> Option<Value> {
        match self.made_by(value)? {
            (found, &[x]) if found == op => Some(x),
            _ => None,
        }
    }

    /// The operands of a value that `op` makes.
    fn binary_of(&self, value: Value, op: Intrinsic) -> Option<(Value, Value)> {
        match self.made_by(value)? {
            (found, &[x, y]) if found == op => Some((x, y)),
            _ => None,
        }
    }

    fn constant(&mut self, ty: Type, bits: u128) -> Value {
        self.func.bits(self.types, ty, bits)
    }

    fn constant_value(&mut self, ty: Type, bits: u128) -> Option<Rewrite> {
        Some(Rewrite::Value(self.constant(ty, bits)))
    }

    /// A truth value, which is a byte on the low level.
    fn truth(&mut self, value: bool) -> Option<Rewrite> {
        let ty = if self.func.level == Level::High { Type::BOOL } else { Type::I8 };
        self.constant_value(ty, u128::from(value))
    }
}
