//! Exceptions: their kinds, what is known about one that was thrown, and the form in which it arrives in Rust.
//!
//! Compiled code throws by calling a routine that adds a [`Pending`] exception to the thread's stack of exceptions and then
//! going on at the innermost handler (`thread.rs` of `codegen`). The stack is Julia's: an exception stays on it while it is
//! being handled, and `pop_exception` takes it off.
//!
//! An exception that the run time raises itself holds numbers and addresses of permanent records only, so throwing formats and
//! allocates nothing. It becomes an object when compiled code asks for it (`throw.rs` of `objects`), and a text when it leaves
//! through the doorway, as [`Exception`]. That text is the interpreter's: both ask `brolga_ir::show`.

use std::sync::Arc;

use brolga_ir::Context;
use brolga_ir::types::Type;

use crate::heap::{Heap, Object, Persistent};
use crate::objects::show::{Made, exception_type, show_exception};
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
    /// A type has no field of that name.
    FieldError,
    /// A field was accessed in another way than its declaration demands.
    ConcurrencyViolationError,
    /// A function that was to be compiled when it is called first could not be.
    CompileError,
    /// An object of any other type.
    Other,
}

/// An exception that left compiled code.
#[derive(Clone)]
pub struct Exception {
    /// Its type, as far as it is one of the builtin ones.
    pub kind: ExceptionKind,
    /// What it says, without the type's name in front; may be empty.
    pub message: String,
    text: String,
    context: Arc<Context>,
    ty: Type,
    object: Option<Arc<Persistent>>,
}

impl Exception {
    /// The exception on the stack of a thread that runs.
    pub(crate) fn new(heap: &Heap, pending: Pending) -> Exception {
        let text = show_exception(heap, pending);
        let (context, ty) = exception_type(heap, pending);
        let kind = match pending {
            Pending::Kind(kind, _) => kind,
            Pending::Object(object) => ExceptionKind::of(object.desc()),
        };
        let name = context.types.display(ty).to_string();
        let message = match text.strip_prefix(&name) {
            Some(rest) => rest.strip_prefix(':').or(rest.strip_prefix(" with")).unwrap_or(rest).trim_start(),
            None => &text,
        };
        let object = pending.object().map(|object| Arc::new(heap.persistent(object)));
        Exception { kind, message: message.into(), text, context: context.clone(), ty, object }
    }

    /// An exception where there should be one and is none.
    pub(crate) fn missing(context: Arc<Context>) -> Exception {
        let text = "unwound without an exception".to_owned();
        let kind = ExceptionKind::ErrorException;
        let ty = kind.builtin_type(&context).unwrap_or(Type::ANY);
        Exception { kind, message: text.clone(), text, context, ty, object: None }
    }

    /// The exception object; `None` for an exception that the run time raised and nobody caught on its way, which was never
    /// made into an object.
    pub fn object(&self) -> Option<&Persistent> {
        self.object.as_deref()
    }

    /// The exception's type, and the context that it belongs to.
    pub fn ty(&self) -> (&Arc<Context>, Type) {
        (&self.context, self.ty)
    }

    /// The exception's type as a program with this context knows it; `None` if it is the type of another program.
    pub fn type_in(&self, cx: &Arc<Context>) -> Option<Type> {
        if Arc::ptr_eq(&self.context, cx) {
            return Some(self.ty);
        }
        self.kind.builtin_type(cx)
    }
}

impl PartialEq for Exception {
    fn eq(&self, other: &Exception) -> bool {
        let same_object = match (&self.object, &other.object) {
            (Some(a), Some(b)) => Arc::ptr_eq(a, b),
            (a, b) => a.is_none() && b.is_none(),
        };
        self.kind == other.kind && self.text == other.text && same_object
    }
}

impl Eq for Exception {}

impl std::fmt::Debug for Exception {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut out = f.debug_struct("Exception");
        out.field("kind", &self.kind).field("text", &self.text).field("object", &self.object);
        out.finish_non_exhaustive()
    }
}

/// As Julia shows it: `DivideError: integer division error`, `ArgumentError: …`, and an `ErrorException` by its message.
impl std::fmt::Display for Exception {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for Exception {}

/// What a routine recorded about an exception.
#[derive(Clone, Copy, Debug)]
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
#[derive(Clone, Copy, Debug)]
pub(crate) enum Pending {
    /// One that the run time raised, and nobody has asked for as an object.
    Kind(ExceptionKind, Detail),
    /// An object that was thrown.
    Object(Object),
}

impl Detail {
    /// The fields of the exception's object.
    pub(crate) fn fields(self, kind: ExceptionKind) -> Vec<Option<Made>> {
        let symbol = |name: SymbolRef| Some(Made::Symbol(name.name()));
        match self {
            Detail::None => Vec::new(),
            Detail::Message(text) => vec![Some(Made::Text(text.text()))],
            Detail::Index(index) => {
                vec![None, Some(Made::Bits(Type::INT64, u128::from(index.cast_unsigned())))]
            }
            Detail::Domain(function, argument) => {
                let function = function.name();
                // Julia's words for a function whose result would be complex.
                let text = format!(
                    "{function} was called with a negative real argument but will only return a complex result if \
                     called with a complex argument. Try {function}(Complex(x))."
                );
                vec![Some(Made::Bits(Type::FLOAT64, argument.to_bits().into())), Some(Made::Text(text))]
            }
            Detail::Name(operator) if kind == ExceptionKind::OverflowError => {
                vec![Some(Made::Text(format!("{} overflowed", operator.name())))]
            }
            Detail::Name(name) if kind == ExceptionKind::UndefVarError => {
                vec![symbol(name), Some(Made::Bits(Type::UINT64, 0)), None]
            }
            Detail::Name(name) => vec![symbol(name)],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::heap::HeapOptions;

    #[test]
    fn messages_read_as_julia_prints_them() {
        let heap = Heap::new(HeapOptions::default());
        let show = |kind, detail| Exception::new(&heap, Pending::Kind(kind, detail));
        let sym = |s: &str| heap.symbols().symbol(s);
        let text = |s: &str| heap.strings().string(s.as_bytes());
        use ExceptionKind as K;
        let rows = [
            (K::DivideError, Detail::None, "DivideError: integer division error"),
            (K::ErrorException, Detail::Message(text("no")), "no"),
            (K::ArgumentError, Detail::Message(text("no")), "ArgumentError: no"),
            (K::StackOverflowError, Detail::None, "StackOverflowError:"),
            (K::BoundsError, Detail::None, "BoundsError"),
            (K::BoundsError, Detail::Index(7), "BoundsError: attempt to access index [7]"),
            (K::UndefVarError, Detail::Name(sym("x")), "UndefVarError: `x` not defined"),
            (K::OverflowError, Detail::Name(sym("+")), "OverflowError: + overflowed"),
            (K::InexactError, Detail::Name(sym("trunc")), "InexactError: trunc"),
            (K::TypeError, Detail::Name(sym("if")), "TypeError: in if"),
        ];
        for (kind, detail, expected) in rows {
            let exception = show(kind, detail);
            assert_eq!((exception.to_string().as_str(), exception.kind), (expected, kind));
        }
        assert_eq!(show(K::ArgumentError, Detail::Message(text("no"))).message, "no");
        let domain = show(K::DomainError, Detail::Domain(sym("sqrt"), -1.0));
        assert!(domain.to_string().starts_with("DomainError with -1.0:\nsqrt was called"), "{domain}");
        assert!(domain.message.starts_with("-1.0:\nsqrt was called"), "{domain}");
    }

    #[test]
    fn every_kind_has_a_type() {
        let cx = Context::new();
        for &kind in ExceptionKind::ALL {
            let ty = kind.builtin_type(&cx);
            assert_eq!(
                ty.is_some_and(|ty| cx.types.is_exception(ty)),
                kind != ExceptionKind::Other,
                "{kind:?}"
            );
        }
    }
}
