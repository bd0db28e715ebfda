//! Exceptions: their kinds, what is known about one that was thrown, and the form in which it arrives in Rust.
//!
//! Compiled code throws by calling a routine that adds a [`Pending`] exception to the thread's stack of exceptions and then
//! going on at the innermost handler (`thread.rs` of `codegen`). The stack is Julia's: an exception stays on it while it is
//! being handled, and `pop_exception` takes it off.
//!
//! A pending exception holds numbers and addresses of permanent records only, so throwing formats nothing. The message
//! is made when the exception leaves through the doorway, as [`Exception`], which owns all it shows.
//!
//! Not done: exceptions that are objects of the program (`throw(MyError(1))`); they need the heap.

use crate::records::{StringRef, SymbolRef};

macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident = $number:literal,)*) => {
        /// What went wrong. The numbers are part of the code: compiled code passes them to routines.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
        #[repr(u32)]
        pub enum ExceptionKind {
            $($(#[$doc])* $kind = $number,)*
        }

        impl ExceptionKind {
            /// All kinds, in the order of their numbers.
            pub const ALL: &[ExceptionKind] = &[$(ExceptionKind::$kind,)*];

            /// The name of the exception type, as Julia has it.
            pub const fn name(self) -> &'static str {
                match self {
                    $(ExceptionKind::$kind => stringify!($kind),)*
                }
            }
        }
    };
}

kinds! {
    /// `error("…")`.
    ErrorException = 0,
    /// An argument has a value that the function does not take.
    ArgumentError = 1,
    /// An index is outside of what it indexes.
    BoundsError = 2,
    /// Sizes do not fit together.
    DimensionMismatch = 3,
    /// Integer division by zero, or of the smallest value by -1.
    DivideError = 4,
    /// An argument is outside of a function's domain.
    DomainError = 5,
    /// A value has no exact counterpart in the type it is converted to.
    InexactError = 6,
    /// Compiled code was asked to stop from outside.
    InterruptException = 7,
    /// No method fits a call.
    MethodError = 8,
    /// Memory ran out.
    OutOfMemoryError = 9,
    /// A checked operation left the range of its type.
    OverflowError = 10,
    /// The stack ran out.
    StackOverflowError = 11,
    /// A value is not of the type that was asserted.
    TypeError = 12,
    /// A field or element was read before it was set.
    UndefRefError = 13,
    /// A variable was read before it was set.
    UndefVarError = 14,
    /// A key is not in a collection.
    KeyError = 15,
    /// An assertion does not hold.
    AssertionError = 16,
}

impl ExceptionKind {
    /// The kind with this number. A number that no kind has can only come from code of another version; it is shown
    /// as an `ErrorException`.
    pub fn from_number(number: u32) -> ExceptionKind {
        Self::ALL.get(number as usize).copied().unwrap_or(ExceptionKind::ErrorException)
    }
}

/// An exception that left compiled code.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Exception {
    /// The exception's type.
    pub kind: ExceptionKind,
    /// What it says, without the type's name in front; may be empty.
    pub message: String,
}

/// As Julia shows it: `DivideError: integer division error`, `ArgumentError: …`, and an `ErrorException` by its message.
impl std::fmt::Display for Exception {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let name = self.kind.name();
        match (self.kind, self.message.as_str()) {
            (ExceptionKind::ErrorException, message) => f.write_str(message),
            // Julia puts the value behind "with" and has no colon before it.
            (ExceptionKind::DomainError, message) if !message.is_empty() => write!(f, "{name} with {message}"),
            (ExceptionKind::StackOverflowError | ExceptionKind::InterruptException, "") => write!(f, "{name}:"),
            (_, "") => f.write_str(name),
            (_, message) => write!(f, "{name}: {message}"),
        }
    }
}

impl std::error::Error for Exception {}

/// A number that an exception is about.
#[derive(Clone, Copy)]
pub(crate) enum Number {
    Int(i128),
    Float(f64),
}

/// What a routine recorded about an exception.
#[derive(Clone, Copy)]
pub(crate) enum Detail {
    None,
    Message(StringRef),
    Bounds { what: Option<StringRef>, index: i64 },
    Domain { value: Number, message: StringRef },
    Inexact { function: SymbolRef, ty: SymbolRef, value: Number },
    Overflow { operator: SymbolRef, ty: SymbolRef, left: i128, right: i128 },
    OverflowNegation { ty: SymbolRef, value: i128 },
    Variable(SymbolRef),
    Type { place: SymbolRef, expected: StringRef, got: StringRef },
}

/// An exception on a thread's stack of exceptions.
#[derive(Clone, Copy)]
pub(crate) struct Pending {
    pub(crate) kind: ExceptionKind,
    pub(crate) detail: Detail,
}

impl Pending {
    /// The exception with its message, free of the runtime's records.
    pub(crate) fn render(&self) -> Exception {
        let message = match self.detail {
            Detail::None => without_detail(self.kind).to_string(),
            Detail::Message(text) => text.text(),
            Detail::Bounds { what: None, index } => format!("attempt to access index [{index}]"),
            Detail::Bounds { what: Some(what), index } => {
                format!("attempt to access {} at index [{index}]", what.text())
            }
            Detail::Domain { value, message } => format!("{}:\n{}", number(value), message.text()),
            Detail::Inexact { function, ty, value } => {
                let (function, ty, value) = (function.name(), ty.name(), number(value));
                match function == ty {
                    true => format!("{ty}({value})"),
                    false => format!("{function}({ty}, {value})"),
                }
            }
            Detail::Overflow { operator, ty, left, right } => {
                let (operator, ty) = (operator.name(), ty.name());
                let (left, right) = (integer(&ty, left), integer(&ty, right));
                format!("{left} {operator} {right} overflowed for type {ty}")
            }
            Detail::OverflowNegation { ty, value } => {
                format!("checked arithmetic: cannot compute -x for x = {value}::{}", ty.name())
            }
            Detail::Variable(name) => format!("`{}` not defined", name.name()),
            Detail::Type { place, expected, got } => {
                format!("in {}, expected {}, got a value of type {}", place.name(), expected.text(), got.text())
            }
        };
        Exception { kind: self.kind, message }
    }
}

/// What Julia says about an exception of which only the kind is known.
fn without_detail(kind: ExceptionKind) -> &'static str {
    match kind {
        ExceptionKind::DivideError => "integer division error",
        ExceptionKind::UndefRefError => "access to undefined reference",
        _ => "",
    }
}

/// An operand that arrived in 128 bits; only a `UInt128` uses the highest one as part of the number.
fn integer(ty: &str, value: i128) -> String {
    if ty.starts_with('U') { (value as u128).to_string() } else { value.to_string() }
}

fn number(value: Number) -> String {
    match value {
        Number::Int(value) => value.to_string(),
        Number::Float(value) => crate::output::float64(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::Records;

    #[test]
    fn numbers_and_names_agree() {
        for (number, kind) in ExceptionKind::ALL.iter().enumerate() {
            assert_eq!(*kind as usize, number);
            assert_eq!(ExceptionKind::from_number(number as u32), *kind);
        }
        assert_eq!(ExceptionKind::DivideError.name(), "DivideError");
    }

    #[test]
    fn messages_read_as_julia_prints_them() {
        let records = Records::default();
        let show = |kind, detail| Pending { kind, detail }.render().to_string();
        let (sym, text) = (|s: &str| records.symbol(s), |s: &str| records.string(s.as_bytes()));
        use ExceptionKind as K;
        assert_eq!(show(K::DivideError, Detail::None), "DivideError: integer division error");
        assert_eq!(show(K::ErrorException, Detail::Message(text("no"))), "no");
        assert_eq!(show(K::ArgumentError, Detail::Message(text("no"))), "ArgumentError: no");
        assert_eq!(show(K::StackOverflowError, Detail::None), "StackOverflowError:");
        assert_eq!(show(K::BoundsError, Detail::None), "BoundsError");
        assert_eq!(show(K::UndefVarError, Detail::Variable(sym("x"))), "UndefVarError: `x` not defined");
        let inexact = |f: &str| Detail::Inexact { function: sym(f), ty: sym("Int8"), value: Number::Int(300) };
        assert_eq!(show(K::InexactError, inexact("trunc")), "InexactError: trunc(Int8, 300)");
        assert_eq!(show(K::InexactError, inexact("Int8")), "InexactError: Int8(300)");
        let overflow = Detail::Overflow { operator: sym("*"), ty: sym("UInt128"), left: -1, right: 2 };
        assert_eq!(
            show(K::OverflowError, overflow),
            "OverflowError: 340282366920938463463374607431768211455 * 2 overflowed for type UInt128"
        );
        let domain = Detail::Domain { value: Number::Float(-1.0), message: text("no root") };
        assert_eq!(show(K::DomainError, domain), "DomainError with -1.0:\nno root");
    }
}
