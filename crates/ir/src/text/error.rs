//! Syntax errors, found before names are looked up.
//!
//! Each variant carries the data for its sentence; [`Fault`] adds the place. A fault ends only the statement
//! or declaration that it is in: the reader continues with the next one, so that one run reports as much as
//! makes sense.

use std::fmt::{self, Display};

use crate::diag::{Diagnostic, Finding, Span};

/// A broken rule of the text form.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SyntaxError {
    /// Another token was expected here.
    Unexpected {
        /// The text found, shortened.
        found: String,
        /// The accepted alternatives.
        expected: &'static str,
    },
    /// A bracket has no partner in its statement.
    Unclosed {
        /// The opening bracket.
        open: char,
    },
    /// A string literal has no closing quote on its line.
    UnterminatedString,
    /// A character literal has no closing quote.
    UnterminatedChar,
    /// A character literal that does not contain exactly one character.
    NotOneChar,
    /// An escape that Julia does not have, or with digits out of range.
    BadEscape {
        /// The escape as written.
        escape: String,
    },
    /// Digits that do not make a number.
    BadNumber {
        /// The digits as written.
        text: String,
    },
    /// A number with more than 128 bits.
    NumberTooLarge,
    /// The number of a row or block has more than 32 bits.
    RowTooLarge,
    /// A character that cannot begin a token.
    StrayCharacter {
        /// The character.
        found: char,
    },
    /// Nesting beyond the limit.
    TooDeep { limit: u32 },
    /// A line that belongs to no container.
    StrayLine,
    /// A statement before the first block header or outside the guards.
    RowOutsideBlock,
    /// A block header without rows.
    EmptyBlock {
        /// The number of the block.
        block: u32,
    },
    /// A function or a dump without a single row.
    NoRows,
    /// `function … ` without `end`.
    MissingEnd,
    /// A `# signature:` line without a dump below it.
    SignatureWithoutBody,
    /// Not of the form `name(arg::T, …)::R`.
    NotASignature,
    /// Not of the form `name`, `name::T`, `::T` or `name::T...`.
    NotAParameter,
    /// The vararg parameter is not the last one.
    VarargNotLast,
    /// Not of the form `call == value` or `call ExceptionType`.
    NotACheck {
        /// `check` or `throws`.
        header: &'static str,
    },
    /// Rows of an array literal have different lengths.
    RaggedArray,
    /// The bytes are not UTF-8.
    InvalidUtf8,
}

impl Finding for SyntaxError {
    fn code(&self) -> &'static str {
        use SyntaxError::*;
        match self {
            Unexpected { .. } | RaggedArray => "syntax",
            Unclosed { .. } | MissingEnd => "syntax-unclosed",
            UnterminatedString
            | UnterminatedChar
            | NotOneChar
            | BadEscape { .. }
            | BadNumber { .. }
            | NumberTooLarge
            | RowTooLarge => "syntax-literal",
            StrayCharacter { .. } | StrayLine => "syntax-stray",
            TooDeep { .. } => "syntax-depth",
            RowOutsideBlock | EmptyBlock { .. } | NoRows => "syntax-rows",
            SignatureWithoutBody | NotASignature | NotAParameter | VarargNotLast => "syntax-signature",
            NotACheck { .. } => "syntax-check",
            InvalidUtf8 => "syntax-utf8",
        }
    }
}

impl Display for SyntaxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use SyntaxError::*;
        match self {
            Unexpected { found, expected } => write!(f, "expected {expected}, found {found}"),
            Unclosed { open } => write!(f, "`{open}` is never closed"),
            UnterminatedString => f.write_str("the string is not closed on its line"),
            UnterminatedChar => f.write_str("the character literal is not closed"),
            NotOneChar => f.write_str("a character literal holds exactly one character"),
            BadEscape { escape } => write!(f, "`{escape}` is not an escape sequence"),
            BadNumber { text } => write!(f, "`{text}` is not a number"),
            RowTooLarge => f.write_str("the number of a row or block does not fit into 32 bits"),
            NumberTooLarge => f.write_str("the number does not fit into 128 bits"),
            StrayCharacter { found } => write!(f, "`{}` begins nothing here", found.escape_debug()),
            TooDeep { limit } => write!(f, "nesting is deeper than {limit}"),
            StrayLine => f.write_str("this line belongs to no function, declaration or header"),
            RowOutsideBlock => f.write_str("a statement is outside the blocks"),
            EmptyBlock { block } => write!(f, "block #{block} has no statement"),
            NoRows => f.write_str("the function has no statement"),
            MissingEnd => f.write_str("the function has no `end`"),
            SignatureWithoutBody => f.write_str("no IR follows this signature"),
            NotASignature => f.write_str("a signature has the form `name(arg::T, …)::R`"),
            NotAParameter => f.write_str("a parameter has the form `name`, `name::T`, `::T` or `name::T...`"),
            VarargNotLast => f.write_str("only the last parameter can be a vararg"),
            NotACheck { header: "throws" } => {
                f.write_str("a `throws` line has the form `call ExceptionType`")
            }
            NotACheck { .. } => f.write_str("a `check` line has the form `call == value`"),
            RaggedArray => f.write_str("the rows of the array have different lengths"),
            InvalidUtf8 => f.write_str("the text is not UTF-8 from here on"),
        }
    }
}

/// A broken rule with its place. Boxed, because results that carry it pass through every parsing function.
#[derive(Clone, Debug)]
pub(super) struct Fault(Box<(SyntaxError, Span)>);

impl Fault {
    pub(super) fn new(error: SyntaxError, at: Span) -> Fault {
        Fault(Box::new((error, at)))
    }

    pub(super) fn is_too_deep(&self) -> bool {
        matches!(self.0.0, SyntaxError::TooDeep { .. })
    }

    pub(super) fn into_diagnostic(self) -> Diagnostic {
        let (error, at) = *self.0;
        Diagnostic::error(&error, at)
    }
}

pub(super) type Parse<T> = Result<T, Fault>;
