//! Outcomes of calls that do not return.
//!
//! There are three kinds, never mixed: the program threw an exception, the program could not continue (a
//! [`Fault`]: malformed IR, an access outside all bounds, an unsupported operation), or the step limit was
//! reached.

use super::memory::MemoryError;
use super::value::Val;
use brolga_ir::diag::counted;
use brolga_ir::entity::{Block, Inst, Value};
use brolga_ir::func::Place;
use brolga_ir::scalar::Misuse;
use std::fmt;

/// Why a call did not return.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// An uncaught exception.
    Thrown(Val),
    /// The program could not continue.
    Error(Box<InterpError>),
    /// More steps than [`Options::max_steps`](super::Options::max_steps), or more fuel than [`Options::max_fuel`](super::Options::max_fuel).
    OutOfFuel,
    /// The program ended its process by a C function.
    Ended(ProcessEnd),
}

/// How a program ended its process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ProcessEnd {
    /// By `exit`, `_exit`, `_Exit` or `quick_exit`, with this status; the system keeps its low eight bits.
    Exit(i32),
    /// By `abort`, which raises SIGABRT.
    Abort,
}

impl fmt::Display for ProcessEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ProcessEnd::Exit(status) => {
                write!(f, "the program ended its process with status {}", status & 0xff)
            }
            ProcessEnd::Abort => f.write_str("the program aborted its process"),
        }
    }
}

/// A fault and where it happened.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct InterpError {
    /// The statement; `None` if no function was running.
    pub at: Option<At>,
    pub fault: Fault,
}

/// A statement.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct At {
    /// The symbol of the function.
    pub function: String,
    pub block: Block,
    /// The statement; `None` at the end of a block without a terminator.
    pub inst: Option<Inst>,
    /// The statement's place in its text.
    pub place: Place,
}

/// Why a program could not continue.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Fault {
    /// A value was used that no path to the use defined.
    Undefined(Value),
    /// An id does not belong to the function, or a block is not placed in it.
    ForeignId(String),
    /// A block does not end in a terminator.
    NoTerminator,
    /// Control reached `unreachable`.
    Unreachable,
    /// A φ after other instructions.
    PhiNotAtHead,
    /// The number of operands, targets or results does not match the operation.
    OperandCount { op: String, given: usize },
    /// An operand is not of the kind that the operation requires.
    Operand {
        op: String,
        /// The expected type.
        expected: &'static str,
        /// The given value.
        given: String,
    },
    /// A result, argument or π does not have the type stated in the IR.
    TypeMismatch {
        /// The type in the IR.
        expected: String,
        /// The type of the value.
        given: String,
    },
    /// A scalar operation does not exist for its operands.
    Scalar(Misuse),
    /// A function was called with the wrong number of arguments.
    ArgumentCount {
        /// The number required, the function object included.
        expected: usize,
        given: usize,
    },
    /// No function fits a call that was resolved at compile time, or a symbol.
    UnknownFunction(String),
    /// A handler was left or removed out of order.
    Handlers,
    /// No exception is being handled.
    NoException,
    /// An access without bounds check was out of bounds.
    UncheckedBounds {
        /// The position, from 0.
        index: i64,
        /// The number of elements.
        length: u64,
    },
    /// Raw memory was misused.
    Memory(MemoryError),
    /// A type is invalid.
    Type(String),
    /// Something that the interpreter does not support, with the reason.
    Unsupported(String),
}

impl fmt::Display for InterpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.fault.fmt(f)?;
        match &self.at {
            Some(At { function, block, inst: Some(inst), .. }) => {
                write!(f, " (in `{function}`, {block}, {inst})")
            }
            Some(At { function, block, inst: None, .. }) => write!(f, " (in `{function}`, {block})"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for InterpError {}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Undefined(value) => write!(f, "{value} is used but undefined on this path"),
            Fault::ForeignId(id) => write!(f, "{id} does not belong to this function"),
            Fault::NoTerminator => f.write_str("the block does not end in a terminator"),
            Fault::Unreachable => f.write_str("control reached `unreachable`"),
            Fault::PhiNotAtHead => f.write_str("a φ is after other statements of its block"),
            Fault::OperandCount { op, given } => write!(f, "{op} does not take {given} operands"),
            Fault::Operand { op, expected, given } => write!(f, "{op} takes {expected} here, not {given}"),
            Fault::TypeMismatch { expected, given } => {
                write!(f, "a value of type `{given}` where the IR says `{expected}`")
            }
            Fault::Scalar(misuse) => misuse.fmt(f),
            Fault::ArgumentCount { expected, given } => {
                let expected = counted(*expected, "argument");
                write!(f, "the function takes {expected} (itself included), not {given}")
            }
            Fault::UnknownFunction(name) => write!(f, "no function `{name}` is known"),
            Fault::Handlers => f.write_str("an exception handler is removed out of turn"),
            Fault::NoException => f.write_str("no exception is being handled"),
            Fault::UncheckedBounds { index, length } => {
                write!(f, "unchecked access to element {index} (from 0) of {length}")
            }
            Fault::Memory(error) => error.fmt(f),
            Fault::Type(text) | Fault::Unsupported(text) => f.write_str(text),
        }
    }
}

/// Why a step did not finish: the main loop adds the place, or finds a handler.
#[derive(Clone, Debug)]
pub(super) enum Stop {
    Throw(Val),
    Fault(Fault),
    OutOfFuel,
    Ended(ProcessEnd),
}

pub(super) type Eval<T> = Result<T, Stop>;

impl From<Fault> for Stop {
    fn from(fault: Fault) -> Stop {
        Stop::Fault(fault)
    }
}

impl From<MemoryError> for Stop {
    fn from(error: MemoryError) -> Stop {
        Stop::Fault(Fault::Memory(error))
    }
}
