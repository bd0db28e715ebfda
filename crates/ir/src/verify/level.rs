//! Level: a function is high or low, and so is everything in it.

use super::{Checker, Site};
use crate::constant::Const;
use crate::entity::Inst;
use crate::intrinsic::Shape;
use crate::op::{Level, Op};
use crate::types::{StaticBound, Statics, Type, TypeKind};

/// Rules about the two levels.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LevelRule {
    /// `level-operation`: the operation belongs to the other level.
    Operation {
        /// The function's level.
        level: Level,
    },
    /// `level-type`: a value's type belongs to the other level.
    ValueType {
        /// The function's level.
        level: Level,
        ty: Type,
    },
    /// `level-signature`: an argument or result type belongs to the other level, or is not a type of values.
    SignatureType {
        /// The function's level.
        level: Level,
        ty: Type,
    },
    /// `level-result`: a high function does not have exactly one result.
    ResultCount { given: usize },
    /// `level-function-object`: a high function lacks argument 0.
    NoFunctionObject,
    /// `level-vararg`: the collecting argument is not a tuple, or the function is low.
    Vararg {
        /// The type of the last argument.
        ty: Option<Type>,
    },
    /// `level-statics`: the variables of the `where` are invalid.
    Statics { why: &'static str },
}

impl Checker<'_> {
    pub(super) fn signature(&mut self) {
        let func = self.func;
        let level = func.level;
        let types = func.sig.params.iter().map(|p| p.ty).chain(func.sig.results.iter().copied());
        for ty in types {
            if !self.is_of_level(ty) || ty == Type::TOKEN {
                self.report(Site::Func, LevelRule::SignatureType { level, ty });
            }
        }
        let last = func.sig.params.last().map(|p| p.ty);
        let is_tuple = last.is_some_and(|ty| matches!(self.types.kind(ty), TypeKind::Tuple { .. }));
        if func.sig.vararg && (level == Level::Low || !is_tuple || func.sig.params.len() < 2) {
            self.report(Site::Func, LevelRule::Vararg { ty: last });
        }
        if let Some(why) = self.statics_fault() {
            self.report(Site::Func, LevelRule::Statics { why });
        }
        if level == Level::High {
            if func.sig.results.len() != 1 {
                self.report(Site::Func, LevelRule::ResultCount { given: func.sig.results.len() });
            }
            if func.sig.params.is_empty() {
                self.report(Site::Func, LevelRule::NoFunctionObject);
            }
        }
    }

    fn statics_fault(&self) -> Option<&'static str> {
        let sig = &self.func.sig;
        let Statics { params, patterns } = &sig.statics;
        let beyond = |ty: Type, count: usize| self.types.mentions(ty, &|n| n as usize >= count);
        let open = params.iter().any(|param| matches!(param.bound, StaticBound::Open { .. }));
        let bounds_fit = params.iter().enumerate().all(|(n, param)| match param.bound {
            StaticBound::Open { lower, upper } => !beyond(lower, 0) && !beyond(upper, n),
            StaticBound::Value(ty) => !beyond(ty, 0) && ty.as_low().is_none(),
            StaticBound::Undefined => true,
        });
        if !params.is_empty() && self.func.level == Level::Low {
            Some("a function of low IR has none")
        } else if !bounds_fit {
            Some("a bound or value mentions a variable that does not precede its own")
        } else if patterns.len() != if open { sig.params.len() } else { 0 } {
            Some("there is a pattern for each parameter if a variable is open, and else none")
        } else if patterns.iter().any(|&pattern| beyond(pattern, params.len())) {
            Some("a pattern mentions a variable that there is not")
        } else {
            None
        }
    }

    /// Checks that operation, operands and results belong to the level; `false` if not.
    pub(super) fn level(&mut self, inst: Inst) -> bool {
        let func = self.func;
        let level = func.level;
        let op = func.op(inst);
        let unlowered = match op {
            Op::Intrinsic(op) => matches!(
                op.shape(),
                Shape::PtrLoad
                    | Shape::PtrStore
                    | Shape::AtomicLoad
                    | Shape::AtomicStore
                    | Shape::AtomicSwap
                    | Shape::AtomicModify
                    | Shape::AtomicReplace
            ),
            _ => false,
        };
        if op.level().is_some_and(|l| l != level) || (unlowered && level == Level::Low) {
            self.at(inst, LevelRule::Operation { level });
            return false;
        }
        // The operand of a query is the type it asks about, on both levels; an order is a symbol.
        let by_value =
            !matches!(op, Op::Intrinsic(i) if matches!(i.shape(), Shape::Query | Shape::AtomicFence));
        let values = func.args(inst).iter().copied().filter(|_| by_value).chain(func.results(inst));
        let bad = values.map(|v| (v, func.ty(v))).find(|&(value, ty)| {
            let address = matches!(func.as_const(value), Some(Const::Address(_)));
            !self.is_of_level(ty) || (address && level == Level::High)
        });
        if let Some((_, ty)) = bad {
            self.at(inst, LevelRule::ValueType { level, ty });
        }
        bad.is_none()
    }

    fn is_of_level(&self, ty: Type) -> bool {
        match self.func.level {
            Level::High => ty.as_low().is_none() && !self.types.is_value(ty),
            Level::Low => ty.as_low().is_some() || ty == Type::TOKEN,
        }
    }
}
