//! Functions that Julia's library calls by LLVM names, and intrinsics that Julia no longer has.
//!
//! ```text
//! foreigncall("llvm.sqrt.f64", Float64, svec(Float64), 0, :(:llvmcall), x, x)     Core.Intrinsics.sqrt_llvm(x)
//! foreigncall("llvm.pow.f32", …, :(:llvmcall), x, y, …)                           the C function `powf`
//! Base.fpislt(x, y)                                                               a few comparisons of x, y and their bits
//! ```
//!
//! The name of an LLVM intrinsic ends with its type. One without a counterpart throws when reached.

use super::super::ast::Expr;
use super::body::Body;
use crate::constant::Const;
use crate::diag::Span;
use crate::entity::{Inst, Value};
use crate::func::ForeignData;
use crate::intrinsic::Intrinsic;
use crate::op::Op;
use crate::types::Type;

/// The counterpart of an LLVM intrinsic.
#[derive(Clone, Copy)]
enum Counterpart {
    /// An intrinsic, and the number of arguments it takes.
    Intrinsic(Intrinsic, usize),
    /// A function of C's mathematics library for doubles; the float variant has an `f` suffix.
    C(&'static str),
}

/// The counterparts of LLVM's intrinsics, by name without type.
const COUNTERPARTS: [(&str, Counterpart); 27] = [
    ("sqrt", Counterpart::Intrinsic(Intrinsic::SqrtLlvm, 1)),
    ("fabs", Counterpart::Intrinsic(Intrinsic::AbsFloat, 1)),
    ("floor", Counterpart::Intrinsic(Intrinsic::FloorLlvm, 1)),
    ("ceil", Counterpart::Intrinsic(Intrinsic::CeilLlvm, 1)),
    ("trunc", Counterpart::Intrinsic(Intrinsic::TruncLlvm, 1)),
    ("rint", Counterpart::Intrinsic(Intrinsic::RintLlvm, 1)),
    ("nearbyint", Counterpart::Intrinsic(Intrinsic::RintLlvm, 1)),
    ("roundeven", Counterpart::Intrinsic(Intrinsic::RintLlvm, 1)),
    ("copysign", Counterpart::Intrinsic(Intrinsic::CopysignFloat, 2)),
    ("fma", Counterpart::Intrinsic(Intrinsic::FmaFloat, 3)),
    ("fmuladd", Counterpart::Intrinsic(Intrinsic::MuladdFloat, 3)),
    ("ctpop", Counterpart::Intrinsic(Intrinsic::CtpopInt, 1)),
    // The second argument says that zero is undefined: any result is allowed, so Julia's intrinsic will do.
    ("ctlz", Counterpart::Intrinsic(Intrinsic::CtlzInt, 1)),
    ("cttz", Counterpart::Intrinsic(Intrinsic::CttzInt, 1)),
    ("bswap", Counterpart::Intrinsic(Intrinsic::BswapInt, 1)),
    ("pow", Counterpart::C("pow")),
    ("exp", Counterpart::C("exp")),
    ("exp2", Counterpart::C("exp2")),
    ("log", Counterpart::C("log")),
    ("log2", Counterpart::C("log2")),
    ("log10", Counterpart::C("log10")),
    ("sin", Counterpart::C("sin")),
    ("cos", Counterpart::C("cos")),
    ("minnum", Counterpart::C("fmin")),
    ("maxnum", Counterpart::C("fmax")),
    ("round", Counterpart::C("round")),
    ("ldexp", Counterpart::C("ldexp")),
];

impl<'a> Body<'_, 'a> {
    /// A call in LLVM's convention: becomes an intrinsic, a C function, or a refusal.
    pub(super) fn llvm_call(
        &mut self,
        inst: Inst,
        name: &str,
        (result, params): (Type, Box<[Type]>),
        args: &[Expr<'a>],
        results: &[Type],
        at: Span,
    ) -> Option<()> {
        let mut parts = name.strip_prefix("llvm.").unwrap_or(name).split('.');
        let bare = parts.next().unwrap_or_default();
        let counterpart = COUNTERPARTS.iter().find(|(known, _)| *known == bare).map(|(_, found)| *found);
        let exprs = |count: usize| -> Vec<&Expr<'a>> { args.iter().take(count).collect() };
        match counterpart {
            Some(Counterpart::Intrinsic(op, count)) if params.len() >= count => {
                self.intrinsic(inst, op, &exprs(count), results, at)
            }
            Some(Counterpart::C(double)) if matches!(result, Type::FLOAT64 | Type::FLOAT32) => {
                let suffix = if result == Type::FLOAT32 { "f" } else { "" };
                let name = Some(self.r.cx.names.intern(&format!("{double}{suffix}")));
                let count = params.len();
                let foreign =
                    self.func.add_foreign(ForeignData { name, result, params, variadic_after: None });
                self.set(inst, Op::ForeignCall(foreign), results, &exprs(count))
            }
            _ => {
                let why = "LLVM's intrinsics are known that are functions of numbers";
                self.refuse_late(inst, format!("`{name}`"), why, at)
            }
        }
    }

    /// `fpislt(x, y)` of Julia until 1.6: whether `x` sorts before `y`, with -0.0 before 0.0 and NaN last.
    ///
    /// ```text
    /// x == x  and  ( y != y  or  ( bits(x) < 0 ? bits(x) >ᵤ bits(y) : bits(x) < bits(y) ) )
    /// ```
    ///
    /// For floats of equal sign the bits have the order of the values, reversed for negative ones.
    pub(super) fn comes_before(&mut self, inst: Inst, args: &[&Expr<'a>], at: Span) -> Option<()> {
        let values = self.operands(Op::Intrinsic(Intrinsic::LtFloat), &[Type::BOOL], args)?;
        self.count_operands(&"fpislt", Intrinsic::LtFloat.text_arity(), args.len(), at)?;
        let &[x, y] = &values[..] else { return None };
        let bits = match self.func.ty(x) {
            Type::FLOAT16 => Type::INT16,
            Type::FLOAT32 => Type::INT32,
            _ => Type::INT64,
        };
        let mut emit =
            |op: Intrinsic, args: &[Value], ty: Type| self.insert_before(inst, Op::Intrinsic(op), args, ty);
        let a = emit(Intrinsic::Bitcast, &[x], bits)?;
        let b = emit(Intrinsic::Bitcast, &[y], bits)?;
        let is_number = emit(Intrinsic::EqFloat, &[x, x], Type::BOOL)?;
        let to_nan = emit(Intrinsic::NeFloat, &[y, y], Type::BOOL)?;
        let above = emit(Intrinsic::SltInt, &[a, b], Type::BOOL)?;
        let below = emit(Intrinsic::UltInt, &[b, a], Type::BOOL)?;
        let zero = self.func.constant(Const::Bits { ty: bits, bits: 0 });
        let mut emit = |op: Op, args: &[Value], ty: Type| self.insert_before(inst, op, args, ty);
        let is_negative = emit(Op::Intrinsic(Intrinsic::SltInt), &[a, zero], Type::BOOL)?;
        let ordered =
            emit(Op::Builtin(crate::builtin::Builtin::Ifelse), &[is_negative, below, above], Type::BOOL)?;
        let any = emit(Op::Intrinsic(Intrinsic::OrInt), &[to_nan, ordered], Type::BOOL)?;
        self.func.set_op(inst, Op::Intrinsic(Intrinsic::AndInt), &[is_number, any]);
        Some(())
    }
}
