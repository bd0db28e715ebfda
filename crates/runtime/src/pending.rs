//! Exceptions on a thread: their kinds, and the stack of exceptions being handled or thrown.
//!
//! Compiled code throws by calling a routine that pushes a [`Pending`] exception onto the thread's stack of
//! exceptions, and then continues at the innermost handler. The stack is Julia's: an exception stays on it
//! while it is being handled, and `pop_exception` removes it.
//!
//! An exception raised by the run time itself holds only numbers and addresses of permanent records, so a
//! throw neither formats nor allocates. It becomes an object when compiled code reads it
//! (`objects/throw.rs`), and a text when it reaches Rust (`exception.rs`).

use std::cell::{Cell, RefCell};
use std::mem::offset_of;

use brolga_ir::base_fn::{BaseAction, BaseFn, Thrown};
use brolga_ir::show::show_plain_error;

use crate::heap::Object;
use crate::records::{StringRef, SymbolRef};

macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident,)*) => {
        /// The kind of an exception.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
        pub enum ExceptionKind {
            $($(#[$doc])* $kind,)*
        }

        impl ExceptionKind {
            /// All kinds.
            pub const ALL: &[ExceptionKind] = &[$(ExceptionKind::$kind,)*];

            /// The text before the message of most exceptions of this kind.
            pub(crate) const fn usual_lead(self) -> &'static str {
                match self {
                    $(ExceptionKind::$kind => concat!(stringify!($kind), ": "),)*
                }
            }

            /// Julia's name of the exception type.
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
    /// An argument has a value that the function does not accept.
    ArgumentError,
    /// An index is out of bounds.
    BoundsError,
    /// Sizes do not match.
    DimensionMismatch,
    /// Integer division by zero, or of the smallest value by -1.
    DivideError,
    /// An argument is outside of a function's domain.
    DomainError,
    /// A value has no exact counterpart in the type it is converted to.
    InexactError,
    /// A request from another thread to stop compiled code.
    InterruptException,
    /// No method applies to a call.
    MethodError,
    /// Memory ran out.
    OutOfMemoryError,
    /// A checked operation left the range of its type.
    OverflowError,
    /// The stack ran out.
    StackOverflowError,
    /// A value does not have the asserted type.
    TypeError,
    /// A field or element was read before it was set.
    UndefRefError,
    /// A variable was read before it was set.
    UndefVarError,
    /// A key is not in a collection.
    KeyError,
    /// An assertion does not hold.
    AssertionError,
    /// A type has no field with that name.
    FieldError,
    /// A field was accessed in a way that its declaration does not allow.
    ConcurrencyViolationError,
    /// A function to be compiled on its first call could not be compiled.
    CompileError,
    /// An object of any other type.
    Other,
}

impl ExceptionKind {
    /// The kind of the exception that a function of Base throws.
    pub(crate) fn of_base(function: BaseFn) -> ExceptionKind {
        let kind = match function.action() {
            BaseAction::Throw(name) => ExceptionKind::ALL.iter().copied().find(|kind| kind.name() == name),
            BaseAction::Rethrow | BaseAction::Print { .. } | BaseAction::Text | BaseAction::Shown => None,
        };
        kind.unwrap_or(ExceptionKind::ErrorException)
    }
}

/// The details of an exception that a routine recorded.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Detail {
    None,
    Message(StringRef),
    Index(i64),
    /// The operands of a throwing function of Base: a symbol, and the bits of numbers.
    Operands(Thrown, SymbolRef, [u128; 2]),
    /// A variable.
    Name(SymbolRef),
}

/// An exception on a thread's stack of exceptions.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Pending {
    /// An exception raised by the run time, and not yet made into an object.
    Kind(ExceptionKind, Detail),
    /// A thrown object.
    Object(Object),
}

impl Pending {
    /// The text, if it consists of the type's name and a given text.
    pub(crate) fn plain_text(self) -> Option<String> {
        let Pending::Kind(kind, detail) = self else { return None };
        match detail {
            Detail::None => show_plain_error(kind.name(), None),
            Detail::Message(text) => show_plain_error(kind.name(), Some(&text.text())),
            Detail::Index(_) | Detail::Operands(..) | Detail::Name(_) => None,
        }
    }
}

/// A thread's stack of exceptions being handled or thrown, innermost last.
#[derive(Default, Debug)]
#[repr(C)]
pub(crate) struct Exceptions {
    /// The number of exceptions, in a word that compiled code reads when it installs a handler.
    depth: Cell<usize>,
    stack: RefCell<Vec<Pending>>,
    /// The depth of an exception that Rust has raised and that has no trace yet; 0 if there is none.
    untraced: Cell<usize>,
}

impl Exceptions {
    /// The offset of the depth.
    pub(crate) const DEPTH: usize = offset_of!(Exceptions, depth);

    pub(crate) fn depth(&self) -> usize {
        self.depth.get()
    }

    pub(crate) fn last(&self) -> Option<Pending> {
        self.stack.borrow().last().copied()
    }

    /// The last exception, if there are more than `depth`.
    pub(crate) fn last_above(&self, depth: usize) -> Option<Pending> {
        self.stack.borrow().get(depth..)?.last().copied()
    }

    /// Changes the stack; everything that changes its length uses this.
    fn change<R>(&self, change: impl FnOnce(&mut Vec<Pending>) -> R) -> R {
        let mut stack = self.stack.borrow_mut();
        let result = change(&mut stack);
        self.depth.set(stack.len());
        result
    }

    /// Pushes an exception whose trace has been taken, or is not wanted.
    pub(crate) fn push(&self, pending: Pending) {
        self.change(|stack| stack.push(pending));
        self.untraced.set(0);
    }

    /// Pushes an exception that Rust raises. Its trace is taken on return to compiled code.
    pub(crate) fn raise(&self, pending: Pending) {
        self.change(|stack| stack.push(pending));
        self.untraced.set(self.depth());
    }

    /// Whether the last exception still needs a trace. Clears the mark.
    pub(crate) fn take_untraced(&self) -> bool {
        self.depth() > 0 && self.untraced.replace(0) == self.depth()
    }

    pub(crate) fn truncate(&self, depth: usize) {
        self.change(|stack| stack.truncate(depth));
    }

    /// Drops the exceptions above `depth` except the last.
    pub(crate) fn keep_last(&self, depth: usize) {
        self.change(|stack| {
            let last = stack.pop();
            stack.truncate(depth);
            stack.extend(last);
        });
    }

    /// Replaces the last exception, if there is one.
    pub(crate) fn replace_last(&self, pending: Pending) {
        self.change(|stack| stack.last_mut().map(|last| *last = pending));
    }

    /// Visits all exceptions that are objects.
    pub(crate) fn each_object(&self, mut visit: impl FnMut(&mut Object)) {
        self.change(|stack| stack.iter_mut().filter_map(Pending::object_mut).for_each(&mut visit));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_rust_raises_needs_a_trace_once() {
        let (exceptions, pending) =
            (Exceptions::default(), Pending::Kind(ExceptionKind::DivideError, Detail::None));
        exceptions.raise(pending);
        assert!(exceptions.take_untraced());
        assert!(!exceptions.take_untraced(), "it has been taken");
        exceptions.raise(pending);
        exceptions.push(pending);
        assert!(!exceptions.take_untraced(), "a later throw has its trace");
        exceptions.raise(pending);
        exceptions.truncate(2);
        assert!(!exceptions.take_untraced(), "the raised one is gone");
    }
}
