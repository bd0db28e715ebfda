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

use brolga_ir::show::Shown;

use crate::records::{StringRef, SymbolRef};

macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident,)*) => {
        /// What went wrong.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
        pub enum ExceptionKind {
            $($(#[$doc])* $kind,)*
        }

        impl ExceptionKind {
            /// All kinds.
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
    ErrorException,
    /// An argument has a value that the function does not take.
    ArgumentError,
    /// An index is outside of what it indexes.
    BoundsError,
    /// Sizes do not fit together.
    DimensionMismatch,
    /// Integer division by zero, or of the smallest value by -1.
    DivideError,
    /// An argument is outside of a function's domain.
    DomainError,
    /// A value has no exact counterpart in the type it is converted to.
    InexactError,
    /// Compiled code was asked to stop from outside.
    InterruptException,
    /// No method fits a call.
    MethodError,
    /// Memory ran out.
    OutOfMemoryError,
    /// A checked operation left the range of its type.
    OverflowError,
    /// The stack ran out.
    StackOverflowError,
    /// A value is not of the type that was asserted.
    TypeError,
    /// A field or element was read before it was set.
    UndefRefError,
    /// A variable was read before it was set.
    UndefVarError,
    /// A key is not in a collection.
    KeyError,
    /// An assertion does not hold.
    AssertionError,
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
            (ExceptionKind::DomainError, message) if !message.is_empty() => {
                write!(f, "{name} with {message}")
            }
            (ExceptionKind::StackOverflowError | ExceptionKind::InterruptException, "") => {
                write!(f, "{name}:")
            }
            (_, "") => f.write_str(name),
            (_, message) => write!(f, "{name}: {message}"),
        }
    }
}

impl std::error::Error for Exception {}

/// What a routine recorded about an exception.
#[derive(Clone, Copy)]
pub(crate) enum Detail {
    None,
    Message(StringRef),
    Index(i64),
    /// A function and the argument that it does not take.
    Domain(SymbolRef, f64),
    /// An operator, a conversion, a variable or a place, by the kind.
    Name(SymbolRef),
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
        let message = match (self.kind, self.detail) {
            (kind, Detail::None) => without_detail(kind).to_string(),
            (_, Detail::Message(text)) => text.text(),
            (_, Detail::Index(index)) => format!("attempt to access index [{index}]"),
            (_, Detail::Domain(function, argument)) => {
                let (function, argument) = (function.name(), Shown::F64(argument));
                // Julia's words for a function whose result would be complex.
                format!(
                    "{argument}:\n{function} was called with a negative real argument but will only return a complex \
                     result if called with a complex argument. Try {function}(Complex(x))."
                )
            }
            (ExceptionKind::UndefVarError, Detail::Name(variable)) => {
                format!("`{}` not defined", variable.name())
            }
            (ExceptionKind::OverflowError, Detail::Name(operator)) => {
                format!("{} overflowed", operator.name())
            }
            (ExceptionKind::TypeError, Detail::Name(place)) => format!("in {}", place.name()),
            (_, Detail::Name(name)) => name.name(),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::Records;

    #[test]
    fn messages_read_as_julia_prints_them() {
        let records = Records::new(0);
        let show = |kind, detail| Pending { kind, detail }.render().to_string();
        let (sym, text) = (|s: &str| records.symbol(s), |s: &str| records.string(s.as_bytes()));
        use ExceptionKind as K;
        assert_eq!(show(K::DivideError, Detail::None), "DivideError: integer division error");
        assert_eq!(show(K::ErrorException, Detail::Message(text("no"))), "no");
        assert_eq!(show(K::ArgumentError, Detail::Message(text("no"))), "ArgumentError: no");
        assert_eq!(show(K::StackOverflowError, Detail::None), "StackOverflowError:");
        assert_eq!(show(K::BoundsError, Detail::None), "BoundsError");
        assert_eq!(show(K::UndefVarError, Detail::Name(sym("x"))), "UndefVarError: `x` not defined");
        assert_eq!(show(K::OverflowError, Detail::Name(sym("+"))), "OverflowError: + overflowed");
        let domain = show(K::DomainError, Detail::Domain(sym("sqrt"), -1.0));
        assert!(domain.starts_with("DomainError with -1.0:\nsqrt was called"), "{domain}");
    }
}
