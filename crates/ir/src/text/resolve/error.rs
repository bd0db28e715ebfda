//! Errors in a syntactically correct text: names without a meaning, literals without a type, statements
//! that this IR cannot represent.
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
    UnknownType { name: String },
    /// Nothing has this name.
    UnknownName { name: String },
    /// No operation of low IR has this name.
    UnknownOperation { name: String },
    /// No row has this label.
    UnknownRow {
        /// The label.
        row: u32,
    },
    /// A row does not have this many results.
    UnknownPart {
        /// The label.
        row: u32,
        /// The requested result.
        part: u32,
        /// The number of results of the row.
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
        /// The number of arguments, the function object included.
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
    DuplicateGlobal { name: String },
    /// Not a value, where one is required.
    NotAValue,
    /// Not a type, where one is required.
    NotAType,
    /// Not a literal or a constructor of literals, where one is required.
    NotAConstant,
    /// The type is not valid.
    BadType { why: String },
    /// A statement with a value has no `::T`.
    MissingType,
    /// The literal does not fit its type.
    LiteralRange { literal: String, ty: String },
    /// The literal cannot become a value of the type.
    LiteralType { literal: String, ty: String },
    /// Something that Julia prints and this IR does not have.
    Unsupported {
        /// The construct.
        what: String,
        /// Why it is not supported.
        why: &'static str,
    },
    /// An inlining hint where nothing is inlined.
    StrayHint {
        /// The hint.
        word: &'static str,
        /// Why it has no effect there.
        why: &'static str,
    },
    /// A dump has no `# signature:` line above it.
    MissingSignature,
    /// A row after a statement that ends its block.
    RowAfterEnd,
    /// The last block does not end in a terminator.
    FallsOffEnd,
    /// The arguments of an `Expr` do not match its head.
    HeadArguments {
        head: String,
        /// Its requirement.
        needs: &'static str,
    },
    /// A wrong number of operands.
    OperandCount {
        /// The operation.
        name: String,
        /// The number given.
        given: usize,
        /// The number required.
        arity: Arity,
    },
    /// The target type of a conversion differs from the row's type.
    ConversionTarget {
        /// The named type.
        named: String,
        /// The type of the row.
        row: String,
    },
    /// `leave` removes more handlers than are in force.
    NoHandler,
    /// Edges into a block disagree about the handlers in force.
    HandlersDiffer { block: u32 },
    /// A global or constant is not initialised.
    GlobalWithoutValue { name: String },
    /// Threads would share the first value of a thread-local global.
    SharedByThreads { name: String },
    /// A constant operand of a type whose values have an identity.
    MutableConstant { ty: String },
    /// A string constant that is not UTF-8.
    StringNotUtf8,
    /// One stack slot with two sizes or alignments.
    SlotDiffers {
        /// The number of the slot.
        slot: u32,
    },
    /// The library that a `foreigncall` names is not consulted.
    LibraryIgnored { library: String },
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
            GlobalWithoutValue { .. } | SharedByThreads { .. } => "global",
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
            NotAValue => {
                f.write_str("this is not an operand: only values, literals and types are allowed here")
            }
            NotAType => f.write_str("this is not a type"),
            NotAConstant => f.write_str("this is not a constant"),
            BadType { why } => f.write_str(why),
            MissingType => f.write_str("the statement has a value, so it needs its type after `::`"),
            LiteralRange { literal, ty } => write!(f, "`{literal}` does not fit into `{ty}`"),
            LiteralType { literal, ty } => write!(f, "`{literal}` is not a value of `{ty}`"),
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
            SharedByThreads { name } => write!(
                f,
                "the value has an identity, and all threads would share it as `{name}`; begin with `nothing`, and make an object in each thread"
            ),
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
