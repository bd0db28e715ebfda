//! The rules about types, as violations name them. Separate from the checks, which are in several files.

use crate::names::Name;
use crate::op::Ordering;
use crate::scalar::Misuse;
use crate::types::Type;

/// Rules about the types of operands and results; low IR uses some of them too.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TypeRule {
    /// `type-operand`: an operand is not what the operation accepts.
    Operand {
        /// Its number, from 0.
        operand: usize,
        given: Type,
        wanted: Wanted,
    },
    /// `type-result`: the operation cannot have this result type.
    Result {
        /// The type that the statement asserts.
        given: Type,
        /// The operation's result.
        wanted: Wanted,
    },
    /// `type-unequal`: two operands must have the same type.
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
        object: Type,
        /// The requested field.
        field: FieldRef,
    },
    /// `type-immutable`: the field cannot be modified.
    Immutable {
        object: Type,
        /// The field, if the object itself is mutable and only the field is `const`.
        field: Option<FieldRef>,
    },
    /// `type-new`: the type cannot be instantiated this way.
    New { ty: Type, why: &'static str },
    /// `type-field-count`: there are more values than fields, or fewer than required.
    FieldCount {
        ty: Type,
        /// The number of values.
        given: usize,
        /// The number of fields.
        fields: usize,
    },
    /// `type-return`: the number of values differs from the number of results of the function.
    ReturnCount {
        given: usize,
        /// The number of results.
        wanted: usize,
    },
    /// `type-order`: the symbol is not a memory order.
    Order { symbol: Name },
    /// `type-failure-order`: a replacement has a stricter order on failure than on success.
    FailureOrder {
        /// The order when it succeeds.
        success: Ordering,
        /// The order when it fails.
        failure: Ordering,
    },
    /// `type-static-parameter`: the function has no static parameter with this number.
    StaticParameter {
        /// The number, from 1.
        number: u32,
        /// The number of static parameters.
        count: usize,
    },
}

/// The requirement on a type.
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
    Name(Name),
    /// By number, from 1.
    Number(i64),
}
