//! Errors of lowering, with their places.
//!
//! A function is refused as a whole, with all reasons at once. A value
//! that depends on a refused one is not reported again.

use brolga_ir::Inst;
use brolga_ir::func::Place;
use std::fmt;

/// All reasons why a function has no native form yet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LowerErrors {
    /// The function, by its symbol.
    pub function: String,
    /// The reasons, in the order in which control reaches them; at least one.
    pub errors: Vec<LowerError>,
}

/// One reason.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LowerError {
    /// The part of the function.
    pub at: At,
    /// Its source location; for arguments and the result the function's first statement.
    pub place: Place,
    /// The reason.
    pub why: Refusal,
}

/// A part of a function.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum At {
    /// An argument, by its number; 0 is the function object.
    Argument(usize),
    /// The result.
    Result,
    /// A statement.
    Inst(Inst),
}

/// Why something has no native form.
#[derive(thiserror::Error, Clone, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// Values of a type have no register form.
    #[error("{why}")]
    Form {
        /// The type's name and the problem.
        why: String,
    },
    /// An operation that native code does not have.
    #[error("{what} is not compiled to native code")]
    Unsupported {
        /// The operation.
        what: String,
    },
    /// The operation is refused wherever it occurs.
    #[error("{why}")]
    Refused {
        /// The operation's own message.
        why: &'static str,
    },
    /// The operands do not fit the operation.
    #[error("the operands of `{op}` do not fit it")]
    Operands {
        /// The operation.
        op: String,
    },
    /// A memory order that the operation does not have.
    #[error("`{op}` does not take this memory order")]
    MemoryOrder {
        /// The operation.
        op: String,
    },
    /// The function is not well-formed IR.
    #[error("{what}")]
    Malformed {
        /// The broken rule.
        what: &'static str,
    },
}

impl fmt::Display for LowerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.at {
            At::Argument(n) => write!(f, "argument {n}: {}", self.why),
            At::Result => write!(f, "result: {}", self.why),
            At::Inst(_) => self.why.fmt(f),
        }
    }
}

impl fmt::Display for LowerErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` cannot be compiled to native code", self.function)?;
        for (n, error) in self.errors.iter().enumerate() {
            write!(f, "{}{error}", if n == 0 { ": " } else { "; " })?;
        }
        Ok(())
    }
}

impl std::error::Error for LowerError {}

impl std::error::Error for LowerErrors {}
