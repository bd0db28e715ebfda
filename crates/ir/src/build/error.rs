//! Why a function cannot be built in some way.

use super::Variable;
use crate::diag::{Diagnostic, SourceFile, Style};
use crate::entity::{Block, Slot, Value};
use std::fmt;

/// Why a function cannot be built this way.
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
    /// The block is jumped to with other handlers in force than it was before, or than its variables were assigned with.
    Protected(Block),
    /// The value is none of this function.
    UnknownValue(Value),
    /// The block is none of this function.
    UnknownBlock(Block),
    /// The stack slot is none of this function.
    UnknownSlot(Slot),
    /// The variable is none of this builder.
    UnknownVariable(Variable),
    /// The function has no argument of this number.
    NoParam(usize),
    /// The variable is read where no assignment can have happened before.
    NeverAssigned(Variable),
    /// A value of another type than the variable's is assigned.
    VariableType {
        /// The variable.
        variable: Variable,
        /// A sentence that names both types.
        message: String,
    },
    /// A type that the statement needs cannot be made.
    Type(String),
    /// The integer does not fit into the type, or the type is no integer type.
    Constant {
        /// The integer.
        value: i128,
        /// The type's text.
        ty: String,
    },
    /// The operation has no result type that follows from its operands; use a method that takes it.
    NeedsResultType(&'static str),
    /// Inlining is requested of a value that no call of a function gives, or of a function of low IR.
    NeverInlined(Option<Value>),
    /// No method takes these operands.
    NoMethod {
        /// The call in text.
        call: String,
        /// The methods that there are.
        candidates: Vec<String>,
    },
    /// The statement breaks a rule of the verifier.
    Rule {
        /// The rule's name.
        code: &'static str,
        /// The message.
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
            BuildError::UnknownValue(value) => write!(f, "{value} is no value of this function"),
            BuildError::UnknownBlock(block) => write!(f, "{block} is no block of this function"),
            BuildError::UnknownSlot(slot) => write!(f, "{slot} is no stack slot of this function"),
            BuildError::UnknownVariable(variable) => write!(f, "{variable} was never declared"),
            BuildError::NoParam(n) => write!(f, "the function has no argument number {n}"),
            BuildError::NeverAssigned(variable) => write!(f, "{variable} is read before any assignment"),
            BuildError::VariableType { message, .. } | BuildError::Type(message) => f.write_str(message),
            BuildError::Constant { value, ty } => write!(f, "{value} is no value of type `{ty}`"),
            BuildError::NeedsResultType(name) => {
                write!(f, "the result type of `{name}` does not follow from its operands and must be given")
            }
            BuildError::NeverInlined(Some(value)) => {
                write!(f, "{value} is no result of a call whose function's body could take its place")
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
