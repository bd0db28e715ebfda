//! Errors of building a function.

use super::Variable;
use crate::diag::{Diagnostic, SourceFile, Style, counted};
use crate::entity::{Block, Slot, Value};
use cranelift_entity::EntityRef;
use std::fmt;

/// Why the builder refused a request.
#[derive(Clone, Debug)]
pub enum BuildError {
    /// The current block has ended; switch to another one first.
    BlockEnded(Block),
    /// The block has ended, so nothing can be added to it.
    SwitchToEnded(Block),
    /// The entry cannot be a target.
    EntryTarget,
    /// The block is sealed, so there cannot be a further jump to it.
    Sealed(Block),
    /// The block is a jump target with other handlers in force than before, or than when its variables were
    /// assigned.
    Protected(Block),
    /// The id belongs to another function.
    Foreign {
        /// The refused id.
        id: ForeignId,
        /// The name of the function under construction.
        function: String,
        /// The number of parts of this kind so far.
        count: usize,
    },
    /// The function has no argument with this number.
    NoParam(usize),
    /// The variable is read where no assignment can have happened before.
    NeverAssigned(Variable),
    /// A value of another type than the variable's is assigned.
    VariableType {
        /// The variable.
        variable: Variable,
        /// A sentence naming both types.
        message: String,
    },
    /// A type that the statement needs cannot be made.
    Type(String),
    /// The integer does not fit the type, or the type is not an integer type.
    Constant {
        /// The integer.
        value: i128,
        /// The type's text.
        ty: String,
    },
    /// The operation has no result type that follows from its operands; use a method that takes it.
    NeedsResultType(&'static str),
    /// An inlining hint for a value that is not the result of a function call, or for a function of low IR.
    NeverInlined(Option<Value>),
    /// No method accepts these operands.
    NoMethod {
        /// The call as text.
        call: String,
        /// The existing methods.
        candidates: Vec<String>,
    },
    /// The statement breaks a rule of the verifier.
    Rule {
        /// The rule's code.
        code: &'static str,
        /// The verifier's message.
        message: String,
    },
    /// The finished function breaks rules of the verifier.
    Malformed {
        /// The function as text.
        text: SourceFile,
        /// The findings, pointing into the text.
        diagnostics: Vec<Diagnostic>,
    },
}

/// An id passed to the builder of a function other than the one it belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ForeignId {
    /// A value.
    Value(Value),
    /// A block.
    Block(Block),
    /// A stack slot.
    Slot(Slot),
    /// A variable.
    Variable(Variable),
}

impl ForeignId {
    /// The kind of part it names.
    fn kind(self) -> &'static str {
        match self {
            ForeignId::Value(_) => "value",
            ForeignId::Block(_) => "block",
            ForeignId::Slot(_) => "stack slot",
            ForeignId::Variable(_) => "variable",
        }
    }

    /// An id of this kind with the given number.
    fn numbered(self, number: usize) -> ForeignId {
        match self {
            ForeignId::Value(_) => ForeignId::Value(Value::new(number)),
            ForeignId::Block(_) => ForeignId::Block(Block::new(number)),
            ForeignId::Slot(_) => ForeignId::Slot(Slot::new(number)),
            ForeignId::Variable(_) => ForeignId::Variable(Variable::new(number)),
        }
    }
}

impl fmt::Display for ForeignId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ForeignId::Value(id) => fmt::Display::fmt(id, f),
            ForeignId::Block(id) => fmt::Display::fmt(id, f),
            ForeignId::Slot(id) => fmt::Display::fmt(id, f),
            ForeignId::Variable(id) => fmt::Display::fmt(id, f),
        }
    }
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BuildError::BlockEnded(block) => {
                write!(f, "the current {block} has ended: switch to another block first")
            }
            BuildError::SwitchToEnded(block) => {
                write!(f, "{block} has ended already: nothing can be added to it")
            }
            BuildError::EntryTarget => f.write_str("the entry block cannot be a target"),
            BuildError::Sealed(block) => write!(f, "{block} is sealed: no further jump may lead to it"),
            BuildError::Protected(block) => write!(
                f,
                "{block} is jumped to with other handlers in force: leave them first, and jump to a protected block before variables are assigned in it"
            ),
            BuildError::Foreign { id, function, count } => {
                let kind = id.kind();
                write!(f, "{id} is not a {kind} of `{function}`, which has ")?;
                match count.checked_sub(1) {
                    None => write!(f, "none: it was made for another function"),
                    Some(last) => {
                        let (all, last) = (counted(*count, kind), id.numbered(last));
                        write!(f, "{all} up to {last}: it was made for another function")
                    }
                }
            }
            BuildError::NoParam(n) => write!(f, "the function has no argument number {n}"),
            BuildError::NeverAssigned(variable) => write!(f, "{variable} is read before any assignment"),
            BuildError::VariableType { message, .. } | BuildError::Type(message) => f.write_str(message),
            BuildError::Constant { value, ty } => write!(f, "{value} is not a value of type `{ty}`"),
            BuildError::NeedsResultType(name) => {
                write!(f, "the result type of `{name}` does not follow from its operands and must be given")
            }
            BuildError::NeverInlined(Some(value)) => {
                write!(f, "{value} is not a result of a call whose function's body could replace it")
            }
            BuildError::NeverInlined(None) => f.write_str("functions of low IR are not inlined"),
            BuildError::NoMethod { call, candidates } => {
                write!(f, "no method takes {call}")?;
                candidates.iter().try_for_each(|candidate| write!(f, "; there is {candidate}"))
            }
            BuildError::Rule { code, message } => write!(f, "{message} [{code}]"),
            BuildError::Malformed { text, diagnostics } => {
                diagnostics.iter().try_for_each(|d| f.write_str(&d.render(text, &Style::PLAIN)))
            }
        }
    }
}

impl std::error::Error for BuildError {}
