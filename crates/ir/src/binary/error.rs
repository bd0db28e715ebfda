//! Errors of reading bytes, with their places.

use crate::diag::Diagnostic;
use crate::module::{Module, ModuleError};
use crate::verify::{ModuleViolations, point_into_printout};
use std::fmt;

/// Bytes that are not a module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BinaryError {
    /// The byte at which reading stopped, or where the faulty part begins.
    pub offset: usize,
    pub refusal: Refusal,
}

/// Why bytes are refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// They do not begin as a module does.
    Magic,
    /// They have another version.
    Version {
        found: u16,
        /// The version that this reader accepts.
        known: u16,
    },
    /// Undefined flags are set.
    Flags,
    /// The checksum does not match: the bytes were damaged.
    Checksum,
    /// They end too early.
    Truncated,
    /// Bytes follow the end.
    Trailing,
    /// A number is out of range for its field.
    Number,
    /// A count is larger than what the remaining bytes can hold, or than what is allowed.
    Count { count: u64 },
    /// A text is not UTF-8.
    Utf8,
    /// A part begins with an undefined tag.
    Tag {
        /// The kind of part.
        what: &'static str,
        /// The byte.
        tag: u8,
    },
    /// A reference to something that does not exist.
    Reference { what: &'static str, number: u64 },
    /// An unknown name.
    Name { what: &'static str, name: String },
    /// Literals nest too deep.
    TooDeep,
    /// A type cannot be made; the sentence says why.
    Type(String),
    /// The type of this name is declared differently.
    Redeclared(String),
    /// A function or global occurs twice, or lacks its function object.
    Module(ModuleError),
    /// The module breaks rules of the verifier.
    Malformed {
        /// The function or global with the first broken rule.
        name: String,
        /// The findings; places point into the printed function.
        diagnostics: Vec<Diagnostic>,
    },
}

impl BinaryError {
    /// The error for a module that was read and does not verify.
    pub(super) fn malformed(module: &Module, found: ModuleViolations, starts: &[usize]) -> BinaryError {
        if let Some((id, violations)) = found.funcs.first() {
            let (_, diagnostics) = point_into_printout(&module.cx, &module[*id], violations);
            let offset = starts.get(id.as_u32() as usize).copied().unwrap_or(0);
            return BinaryError {
                offset,
                refusal: Refusal::Malformed { name: module[*id].symbol(&module.cx), diagnostics },
            };
        }
        let global = found.globals.first();
        let name = global.map_or(String::new(), |g| module.cx.names.text(g.name).to_owned());
        let offset = super::HEADER;
        match global {
            Some(g) => BinaryError { offset, refusal: Refusal::Type(g.message(&module.cx)) },
            None => BinaryError { offset, refusal: Refusal::Malformed { name, diagnostics: Vec::new() } },
        }
    }
}

impl fmt::Display for BinaryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at byte {}: {}", self.offset, self.refusal)
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Magic => f.write_str("this is not a module"),
            Refusal::Version { found, known } => {
                write!(f, "the module is of version {found}, but only version {known} can be read")
            }
            Refusal::Flags => f.write_str("unknown flags are set"),
            Refusal::Checksum => f.write_str("the checksum does not agree: the module is damaged"),
            Refusal::Truncated => f.write_str("the module ends too early"),
            Refusal::Trailing => f.write_str("something follows the end of the module"),
            Refusal::Number => f.write_str("a number is too large"),
            Refusal::Count { count } => write!(f, "there cannot be {count} parts here"),
            Refusal::Utf8 => f.write_str("a text is not UTF-8"),
            Refusal::Tag { what, tag } => write!(f, "no {what} begins with the byte {tag}"),
            Refusal::Reference { what, number } => write!(f, "there is no {what} number {number}"),
            Refusal::Name { what, name } => write!(f, "there is no {what} named `{name}`"),
            Refusal::TooDeep => f.write_str("literals nest too deep"),
            Refusal::Type(message) => f.write_str(message),
            Refusal::Redeclared(name) => write!(f, "`{name}` is already declared differently"),
            Refusal::Module(ModuleError::DuplicateMethod(_)) => f.write_str("a method is listed twice"),
            Refusal::Module(ModuleError::DuplicateGlobal(_)) => f.write_str("a global is listed twice"),
            Refusal::Module(ModuleError::NoFunctionObject) => {
                f.write_str("a high function lacks its argument 0")
            }
            Refusal::Malformed { name, diagnostics } => {
                write!(f, "`{name}` is malformed")?;
                diagnostics.iter().try_for_each(|d| write!(f, "; {} [{}]", d.message, d.code))
            }
        }
    }
}

impl std::error::Error for BinaryError {}
