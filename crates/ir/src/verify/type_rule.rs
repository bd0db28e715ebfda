//! The rules about types, as violations name them. Apart from the checks, which several files make.

use crate::names::Name;
use crate::op::Ordering;
use crate::scalar::Misuse;
use crate::types::Type;

/// Rules about the types of operands and results; low IR uses some of them too.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TypeRule {
    /// `type-operand`: an operand is not what the operation takes.
    Operand {
        /// Its number, from 0.
        operand: usize,
        /// Its type.
        given: Type,
        /// The expected operand.
        wanted: Wanted,
    },
    /// `type-result`: the operation cannot have this type.
    Result {
        /// The type that the statement asserts.
        given: Type,
        /// The actual result.
        wanted: Wanted,
    },
    /// `type-unequal`: two operands must have one type.
    Unequal {
        /// One operand's type.
        left: Type,
        /// The number of the other operand, from 0.
        operand: usize,
        /// The other operand's type.
        right: Type,
    },
    /// `type-scalar`: the intrinsic does not exist for these types.
    Scalar(Misuse),
    /// `type-field`: the object has no such field.
    NoField {
        /// The object's type.
        object: Type,
        /// The field asked for.
        field: FieldRef,
    },
    /// `type-immutable`: the field cannot be changed.
    Immutable {
        /// The object's type.
        object: Type,
        /// The field, if the object itself is mutable and only the field is `const`.
        field: Option<FieldRef>,
    },
    /// `type-new`: instances of the type are not made this way.
    New {
        /// The type.
        ty: Type,
        /// Why.
        why: &'static str,
    },
    /// `type-field-count`: there are more values than fields, or fewer than have to be given.
    FieldCount {
        /// The type.
        ty: Type,
        /// How many values there are.
        given: usize,
        /// How many fields the type has.
        fields: usize,
    },
    /// `type-return`: the number of values is not the number of the function's results.
    ReturnCount {
        /// How many there are.
        given: usize,
        /// How many there should be.
        wanted: usize,
    },
    /// `type-order`: the symbol is not a memory order.
    Order {
        /// The symbol.
        symbol: Name,
    },
    /// `type-failure-order`: a replacement that fails is ordered more strictly than one that succeeds.
    FailureOrder {
        /// The order when it succeeds.
        success: Ordering,
        /// The order when it fails.
        failure: Ordering,
    },
    /// `type-static-parameter`: the function has no static parameter of this number.
    StaticParameter {
        /// The number, from 1.
        number: u32,
        /// How many there are.
        count: usize,
    },
}

/// The alternative to a type.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Wanted {
    /// This type.
    Type(Type),
    /// A type of this kind.
    Kind(&'static str),
}

impl From<Type> for Wanted {
    fn from(ty: Type) -> Wanted {
        Wanted::Type(ty)
    }
}

impl From<&'static str> for Wanted {
    fn from(kind: &'static str) -> Wanted {
        Wanted::Kind(kind)
    }
}

/// How a field is named.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FieldRef {
    /// By name.
    Name(Name),
    /// By number, from 1.
    Number(i64),
}
