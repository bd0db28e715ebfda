//! The type that the context expects of a literal.
//!
//! Julia prints signed integers of all widths alike. Reader and printer share this computation, so that the
//! reader restores the type of every literal that the printer leaves bare. An operand is *plain* if its text
//! does not show its type: a decimal integer. The expected type follows from the operation, the type of the
//! row and the operands that are not plain:
//!
//! | context | expected type |
//! |---|---|
//! | arithmetic | the row's type, else the other operand's |
//! | comparison | the type of the other operand |
//! | `===` | the type of the other operand, if it is an integer |
//! | `ifelse`, φ, ϒ, copy | the row's type |
//! | written field, element or pointer target | its type |
//! | argument of `invoke` or `foreigncall`, field of `%new` | its declared type |
//! | `return` | the function's result type |
//! | anything else | none: `Int64`, or `i64` in low IR |

use crate::builtin::Builtin;
use crate::constant::Const;
use crate::func::{CalleeData, Func};
use crate::intrinsic::{Intrinsic, Shape};
use crate::op::{Level, Op};
use crate::types::{PrimitiveRepr, Type, Types};

/// The type of a decimal integer where `wanted` is expected: that type if it is a signed integer, or its only
/// signed member.
pub(super) fn integer_type(types: &Types, level: Level, wanted: Option<Type>) -> Type {
    if level == Level::Low {
        return wanted.filter(|ty| ty.as_low().is_some_and(|low| low.is_int())).unwrap_or(Type::I64);
    }
    let Some(wanted) = wanted else { return Type::INT64 };
    let signed = |ty: Type| matches!(types.primitive(ty), Some((_, PrimitiveRepr::Signed)));
    let mut members = types.members(&wanted).iter().copied().filter(|&member| signed(member));
    match (members.next(), members.next()) {
        (Some(only), None) => only,
        _ => Type::INT64,
    }
}

/// The signed integers among the members of a type. If there are several, the other operands of a φ of the
/// type determine a decimal integer's type.
pub(super) fn signed_members(types: &Types, ty: Type) -> Vec<Type> {
    let is_signed = |ty: &Type| matches!(types.primitive(*ty), Some((_, PrimitiveRepr::Signed)));
    types.members(&ty).iter().copied().filter(is_signed).collect()
}

/// An operation with the known facts about its operands.
pub(super) struct Site<'a> {
    pub(super) types: &'a Types,
    pub(super) func: &'a Func,
    pub(super) op: Op,
    /// The type of the first result.
    pub(super) result: Option<Type>,
    /// The type of an operand, if it is not plain.
    pub(super) known: &'a dyn Fn(usize) -> Option<Type>,
    /// The operand that names a field, if any.
    pub(super) field: Option<&'a Const>,
}

impl Site<'_> {
    /// The expected type of operand `index`.
    pub(super) fn wanted(&self, index: usize) -> Option<Type> {
        match self.op {
            Op::Intrinsic(op) => self.intrinsic(op, index),
            Op::Builtin(op) => self.builtin(op, index),
            Op::Phi | Op::Copy | Op::Upsilon => self.result,
            Op::Return => self.func.sig.results.get(index).copied(),
            Op::New(ty) => self.types.field_type(ty, index),
            Op::Invoke(callee) | Op::CallSymbol(callee) => match self.func.callee(callee) {
                CalleeData::Method { args, .. } => args.get(index.checked_sub(1)?).copied(),
                CalleeData::Symbol { params, .. } => params.get(index).copied(),
            },
            Op::ForeignCall(foreign) => {
                let data = self.func.foreign(foreign);
                let first = usize::from(data.name.is_none());
                data.params.get(index.checked_sub(first)?).copied()
            }
            Op::CallRuntime(entry) => entry.params().get(index).copied(),
            _ => None,
        }
    }

    /// The type of an operand other than `index`; the operations concerned have at most three.
    fn other(&self, index: usize) -> Option<Type> {
        (0..3).filter(|&i| i != index).find_map(|i| (self.known)(i))
    }

    fn pointee(&self) -> Option<Type> {
        self.types.pointee((self.known)(0)?)
    }

    fn intrinsic(&self, op: Intrinsic, index: usize) -> Option<Type> {
        match (op.shape(), index) {
            (
                Shape::IntUnary
                | Shape::FloatUnary
                | Shape::IntBinary
                | Shape::IntDivide
                | Shape::FloatBinary
                | Shape::FloatTernary,
                _,
            )
            | (Shape::Shift, 0) => self.result.or_else(|| self.other(index)),
            (Shape::IntCompare | Shape::FloatCompare, _) => self.other(index),
            (Shape::CheckedPair, _) => {
                let result = self.result?;
                self.types.field_type(result, 0).or(Some(result))
            }
            (Shape::PtrStore | Shape::AtomicStore | Shape::AtomicSwap | Shape::AtomicReplace, 1)
            | (Shape::AtomicModify | Shape::AtomicReplace, 2) => self.pointee(),
            _ => None,
        }
    }

    fn builtin(&self, op: Builtin, index: usize) -> Option<Type> {
        use Builtin::*;
        match (op, index) {
            // `===` compares values of any types, so a float next to a `Float16` is a `Float64` as elsewhere.
            (Egal, _) => self.other(index).filter(|&ty| ty != Type::FLOAT16),
            (Ifelse, 1 | 2) => self.result.or_else(|| (self.known)(3 - index)),
            (Tuple, _) => self.types.field_type(self.result?, index),
            (Setfield | Swapfield | Setfieldonce | Replacefield, 2) | (Replacefield | Modifyfield, 3) => {
                self.field_type()
            }
            (Memoryrefset | Memoryrefswap | Memoryrefreplace | Memoryrefsetonce, 1)
            | (Memoryrefreplace | Memoryrefmodify, 2) => self.types.memory_ref_element((self.known)(0)?),
            (Arrayset, 2) => Some(self.types.array_parts((self.known)(1)?)?.0),
            (Compilerbarrier, 1) | (Blackbox, 0) => self.result,
            _ => None,
        }
    }

    fn field_type(&self) -> Option<Type> {
        let object = (self.known)(0)?;
        let index = match self.field? {
            Const::Symbol(name) => self.types.field_index(object, *name)?,
            Const::Bits { bits, .. } => usize::try_from(bits.checked_sub(1)?).ok()?,
            _ => return None,
        };
        self.types.field_type(object, index)
    }
}
