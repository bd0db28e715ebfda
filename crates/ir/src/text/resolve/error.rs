//! Errors of a text whose syntax is right: names without a meaning, literals without a type, statements
//! that no function of this IR can hold.
//!
//! Rules that need whole functions (definitions dominate uses, operand types agree) are the verifier's.

use std::fmt::{self, Display};

use crate::diag::Finding;
use crate::intrinsic::Arity;

/// A broken rule of the text form, found while names are looked up.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ResolveError {
    /// No type has this name.
    UnknownType {
        /// The name.
        name: String,
    },
    /// Nothing has this name.
    UnknownName {
        /// The name.
        name: String,
    },
    /// No operation of low IR has this name.
    UnknownOperation {
        /// The name.
        name: String,
    },
    /// No row is labelled so.
    UnknownRow {
        /// The label.
        row: u32,
    },
    /// A row does not have that many results.
    UnknownPart {
        /// The label.
        row: u32,
        /// The expected result.
        part: u32,
        /// How many there are.
        results: usize,
    },
    /// No block has this number.
    UnknownBlock {
        /// The number.
        block: u32,
    },
    /// `_n` beyond the arguments.
    UnknownArgument {
        /// The number in the text.
        number: u32,
        /// How many arguments there are, the function included.
        count: usize,
    },
    /// Two rows have one label.
    DuplicateRow {
        /// The label.
        row: u32,
    },
    /// Two blocks have one number.
    DuplicateBlock {
        /// The number.
        block: u32,
    },
    /// Two functions with one name and the same argument types.
    DuplicateMethod {
        /// The function's name.
        name: String,
    },
    /// Two globals with one name.
    DuplicateGlobal {
        /// The name.
        name: String,
    },
    /// An expression stands where only a value can.
    NotAValue,
    /// An expression stands where only a type can.
    NotAType,
    /// An expression stands where only a literal or a constructor of literals can.
    NotAConstant,
    /// The type cannot be made.
    BadType {
        /// Why.
        why: String,
    },
    /// A statement with a value has no `::T`.
    MissingType,
    /// The literal does not fit into its type.
    LiteralRange {
        /// The literal.
        literal: String,
        /// The type.
        ty: String,
    },
    /// The literal cannot become a value of the type.
    LiteralType {
        /// The literal.
        literal: String,
        /// The type.
        ty: String,
    },
    /// Something that Julia prints and this IR does not have.
    Unsupported {
        /// The construct.
        what: String,
        /// Why it goes no further.
        why: &'static str,
    },
    /// A hint about inlining stands where nothing is inlined.
    StrayHint {
        /// The hint.
        word: &'static str,
        /// Why it says nothing there.
        why: &'static str,
    },
    /// A dump has no `# signature:` line above it.
    MissingSignature,
    /// A statement that ends its block has a row behind it.
    RowAfterEnd,
    /// The last block does not end in a terminator.
    FallsOffEnd,
    /// The rows of an `Expr` are not what its head needs.
    HeadArguments {
        /// The head.
        head: String,
        /// Its requirement.
        needs: &'static str,
    },
    /// A wrong number of operands.
    OperandCount {
        /// The operation.
        name: String,
        /// How many there are.
        given: usize,
        /// How many it takes.
        arity: Arity,
    },
    /// The type that a conversion names is not the row's.
    ConversionTarget {
        /// The named type.
        named: String,
        /// The type of the row.
        row: String,
    },
    /// `leave` removes more handlers than there are.
    NoHandler,
    /// Blocks are reached with different handlers.
    HandlersDiffer {
        /// The block.
        block: u32,
    },
    /// A global or constant is not initialised.
    GlobalWithoutValue {
        /// Its name.
        name: String,
    },
    /// A constant operand of a type whose values have an identity.
    MutableConstant {
        /// The type.
        ty: String,
    },
    /// A string constant that is not UTF-8.
    StringNotUtf8,
    /// One stack slot with two sizes or alignments.
    SlotDiffers {
        /// The number of the slot.
        slot: u32,
    },
    /// The library that a `foreigncall` names is not consulted.
    LibraryIgnored {
        /// The library.
        library: String,
    },
}

impl Finding for ResolveError {
    fn code(&self) -> &'static str {
        use ResolveError::*;
        match self {
            UnknownType { .. }
            | UnknownName { .. }
            | UnknownOperation { .. }
            | UnknownRow { .. }
            | UnknownPart { .. }
            | UnknownBlock { .. }
            | UnknownArgument { .. } => "unknown-name",
            DuplicateRow { .. } | DuplicateBlock { .. } | DuplicateMethod { .. } | DuplicateGlobal { .. } => {
                "duplicate-name"
            }
            NotAValue | NotAType | NotAConstant | HeadArguments { .. } | OperandCount { .. } => "operands",
            BadType { .. } | MissingType | ConversionTarget { .. } => "type",
            LiteralRange { .. } | LiteralType { .. } | StringNotUtf8 | MutableConstant { .. } => "literal",
            Unsupported { .. } => "unsupported",
            StrayHint { .. } => "hint",
            MissingSignature => "signature",
            RowAfterEnd | FallsOffEnd => "block-end",
            NoHandler | HandlersDiffer { .. } => "handlers",
            GlobalWithoutValue { .. } => "global",
            SlotDiffers { .. } => "slot",
            LibraryIgnored { .. } => "library",
        }
    }
}

impl Display for ResolveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use ResolveError::*;
        match self {
            UnknownType { name } => write!(f, "there is no type `{name}`"),
            UnknownName { name } => write!(f, "nothing is called `{name}` here"),
            UnknownOperation { name } => write!(f, "low IR has no operation `{name}`"),
            UnknownRow { row } => write!(f, "no row is labelled `%{row}`"),
            UnknownPart { row, part, results } => {
                write!(f, "`%{row}.{part}` does not exist: the row has {results} results")
            }
            UnknownBlock { block } => write!(f, "there is no block `#{block}`"),
            UnknownArgument { number, count } => {
                write!(f, "`_{number}` does not exist: there are {count} arguments, the function included")
            }
            DuplicateRow { row } => write!(f, "two rows are labelled `%{row}`"),
            DuplicateBlock { block } => write!(f, "two blocks have the number {block}"),
            DuplicateMethod { name } => write!(f, "`{name}` is already defined for these argument types"),
            DuplicateGlobal { name } => write!(f, "`{name}` is already declared"),
            NotAValue => f.write_str("this is no operand: only values, literals and types can stand here"),
            NotAType => f.write_str("this is no type"),
            NotAConstant => f.write_str("this is no constant"),
            BadType { why } => f.write_str(why),
            MissingType => f.write_str("the statement has a value, so it needs its type after `::`"),
            LiteralRange { literal, ty } => write!(f, "`{literal}` does not fit into `{ty}`"),
            LiteralType { literal, ty } => write!(f, "`{literal}` is no value of `{ty}`"),
            StrayHint { word, why } => write!(f, "`{word}` says nothing here: {why}"),
            Unsupported { what, why } => write!(f, "{what} is not supported: {why}"),
            MissingSignature => f.write_str("this IR has no signature"),
            RowAfterEnd => f.write_str("a statement follows the one that ends the block"),
            FallsOffEnd => f.write_str("control falls off the end of the last block"),
            HeadArguments { head, needs } => write!(f, "`{head}` needs {needs}"),
            OperandCount { name, given, arity } => {
                write!(f, "`{name}` takes {arity} operands, but {given} are given")
            }
            ConversionTarget { named, row } => {
                write!(f, "the conversion names `{named}`, but its row has the type `{row}`")
            }
            NoHandler => f.write_str("`leave` removes more handlers than are installed here"),
            HandlersDiffer { block } => {
                write!(f, "block #{block} is reached with different exception handlers")
            }
            GlobalWithoutValue { name } => write!(f, "`{name}` has no initial value"),
            MutableConstant { ty } => {
                write!(f, "a value of `{ty}` has an identity and cannot be a constant")
            }
            StringNotUtf8 => f.write_str("a string constant has to be UTF-8"),
            SlotDiffers { slot } => write!(f, "slot {slot} has another size or alignment elsewhere"),
            LibraryIgnored { library } => {
                write!(f, "`{library}` is not consulted: C names are looked up in the process")
            }
        }
    }
}
