//! Exceptions: their kinds, what is known about one that was thrown, and the form in which it arrives in Rust.
//!
//! Compiled code throws by calling a routine that adds a [`Pending`] exception to the thread's stack of exceptions and then
//! going on at the innermost handler (`thread.rs` of `codegen`). The stack is Julia's: an exception stays on it while it is
//! being handled, and `pop_exception` takes it off.
//!
//! An exception that the run time raises itself holds numbers and addresses of permanent records only, so throwing formats and
//! allocates nothing. It becomes an object when compiled code asks for it (`throw.rs` of `objects`), and a text when it leaves
//! through the doorway, as [`Exception`]. That text is the interpreter's: both ask `brolga_ir::show`.

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::mem::offset_of;
use std::sync::Arc;

use brolga_ir::Context;
use brolga_ir::base_fn::{BaseAction, BaseFn, Thrown};
use brolga_ir::show::show_plain_error;
use brolga_ir::types::Type;

use crate::heap::{EXCEPTION_KINDS, Heap, Object, Persistent};
use crate::objects::elements::INVALID_LENGTH;
use crate::objects::show::{Made, exception_type, print_made, show_exception};
use crate::records::{StringRef, SymbolRef};
use crate::trace::StackFrame;

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

            /// What stands in front of the message in the text of most exceptions of this kind.
            const fn usual_lead(self) -> &'static str {
                match self {
                    $(ExceptionKind::$kind => concat!(stringify!($kind), ": "),)*
                }
            }

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

const _: () = assert!(ExceptionKind::ALL.len() <= EXCEPTION_KINDS, "each kind has its place in the heap's list");

/// An exception that left compiled code.
#[derive(Clone)]
pub struct Exception {
    /// Its type, as far as it is one of the builtin ones.
    pub kind: ExceptionKind,
    /// What it says, without the type's name in front; may be empty.
    pub message: String,
    /// What stands in front of it in the text.
    lead: Cow<'static, str>,
    context: Arc<Context>,
    ty: Type,
    object: Option<Arc<Persistent>>,
    trace: Arc<[StackFrame]>,
}

impl Exception {
    /// The exception on the stack of a thread that runs.
    pub(crate) fn new(heap: &Heap, pending: Pending) -> Exception {
        let kind = match pending {
            Pending::Kind(kind, _) => kind,
            Pending::Object(object) => ExceptionKind::of(object.desc()),
        };
        let mut text = pending.plain_text().unwrap_or_else(|| show_exception(heap, pending));
        let (context, ty) = exception_type(heap, pending);
        let own_name;
        let name = match pending {
            Pending::Kind(kind, _) if kind != ExceptionKind::Other => kind.name(),
            _ => {
                own_name = context.types.display(ty).to_string();
                &own_name
            }
        };
        let message = match text.strip_prefix(name) {
            Some(rest) => rest.strip_prefix(':').or(rest.strip_prefix(" with")).unwrap_or(rest).trim_start(),
            None => &text,
        };
        let lead = match &text[..text.len() - message.len()] {
            "" => Cow::Borrowed(""),
            lead if lead == kind.usual_lead() => Cow::Borrowed(kind.usual_lead()),
            lead => Cow::Owned(lead.to_owned()),
        };
        text.drain(..lead.len());
        let object = pending.object().map(|object| Arc::new(heap.persistent(object)));
        Exception { kind, message: text, lead, context: context.clone(), ty, object, trace: Arc::default() }
    }

    /// The same, with where it came from.
    pub(crate) fn with_trace(self, trace: Arc<[StackFrame]>) -> Exception {
        Exception { trace, ..self }
    }

    /// An exception where there should be one and is none.
    pub(crate) fn missing(context: Arc<Context>) -> Exception {
        let message = "unwound without an exception".to_owned();
        let kind = ExceptionKind::ErrorException;
        let ty = kind.builtin_type(&context).unwrap_or(Type::ANY);
        let lead = Cow::Borrowed("");
        Exception { kind, message, lead, context, ty, object: None, trace: Arc::default() }
    }

    /// The activations of compiled code that were on the stack when it was thrown, the innermost first; empty if they were not
    /// recorded ([`RuntimeOptions::traces`](crate::RuntimeOptions::traces)). Does not count when exceptions are compared.
    pub fn trace(&self) -> &[StackFrame] {
        &self.trace
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
        self.kind == other.kind
            && self.message == other.message
            && self.lead == other.lead
            && same_object
    }
}

impl Eq for Exception {}

impl std::fmt::Debug for Exception {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut out = f.debug_struct("Exception");
        out.field("kind", &self.kind).field("text", &self.to_string()).field("object", &self.object);
        out.finish_non_exhaustive()
    }
}

/// As Julia shows it: `DivideError: integer division error`, `ArgumentError: …`, and an `ErrorException` by its message.
impl std::fmt::Display for Exception {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.lead)?;
        f.write_str(&self.message)
    }
}

impl std::error::Error for Exception {}

/// What a routine recorded about an exception.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Detail {
    None,
    Message(StringRef),
    Index(i64),
    /// What a function of Base got that throws: a symbol, and the bits of numbers.
    Operands(Thrown, SymbolRef, [u128; 2]),
    /// A variable.
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

impl Pending {
    /// The text, if it takes no more than the name of the type and a text that was given.
    fn plain_text(self) -> Option<String> {
        let Pending::Kind(kind, detail) = self else { return None };
        match detail {
            Detail::None => show_plain_error(kind.name(), None),
            Detail::Message(text) => show_plain_error(kind.name(), Some(&text.text())),
            Detail::Index(_) | Detail::Operands(..) | Detail::Name(_) => None,
        }
    }
}

/// A thread's stack of exceptions: those that are being handled or thrown, innermost last.
#[derive(Default, Debug)]
#[repr(C)]
pub(crate) struct Exceptions {
    /// How many there are, in a word that compiled code reads where a handler comes into force.
    depth: Cell<usize>,
    stack: RefCell<Vec<Pending>>,
}

impl Exceptions {
    /// Where the depth is.
    pub(crate) const DEPTH: usize = offset_of!(Exceptions, depth);

    pub(crate) fn depth(&self) -> usize {
        self.depth.get()
    }

    pub(crate) fn last(&self) -> Option<Pending> {
        self.stack.borrow().last().copied()
    }

    /// The last one, if there are more than `depth`.
    pub(crate) fn last_above(&self, depth: usize) -> Option<Pending> {
        self.stack.borrow().get(depth..)?.last().copied()
    }

    /// Changes the stack; all that makes it longer or shorter goes through here.
    fn change<R>(&self, change: impl FnOnce(&mut Vec<Pending>) -> R) -> R {
        let mut stack = self.stack.borrow_mut();
        let result = change(&mut stack);
        self.depth.set(stack.len());
        result
    }

    pub(crate) fn push(&self, pending: Pending) {
        self.change(|stack| stack.push(pending));
    }

    pub(crate) fn truncate(&self, depth: usize) {
        self.change(|stack| stack.truncate(depth));
    }

    /// Of the exceptions above `depth` the last one stays.
    pub(crate) fn keep_last(&self, depth: usize) {
        self.change(|stack| {
            let last = stack.pop();
            stack.truncate(depth);
            stack.extend(last);
        });
    }

    /// Puts something in the place of the last one, if there is one.
    pub(crate) fn replace_last(&self, pending: Pending) {
        self.change(|stack| stack.last_mut().map(|last| *last = pending));
    }

    /// All that are objects.
    pub(crate) fn each_object(&self, mut visit: impl FnMut(&mut Object)) {
        self.change(|stack| stack.iter_mut().filter_map(Pending::object_mut).for_each(&mut visit));
    }
}

impl Detail {
    /// The fields of the exception's object.
    pub(crate) fn fields(self, kind: ExceptionKind, heap: &Heap) -> Vec<Option<Made>> {
        let symbol = |name: SymbolRef| Some(Made::Symbol(name.name()));
        match self {
            // All that throws it in this way is what makes a `Memory`.
            Detail::None if kind == ExceptionKind::ArgumentError => {
                vec![Some(Made::Text(INVALID_LENGTH.into()))]
            }
            Detail::None => Vec::new(),
            Detail::Message(text) => vec![Some(Made::Text(text.text()))],
            Detail::Index(index) => {
                vec![None, Some(Made::Bits(Type::INT64, u128::from(index.cast_unsigned())))]
            }
            Detail::Operands(thrown, name, bits) => fields_of(thrown, &name.name(), bits, heap),
            Detail::Name(name) if kind == ExceptionKind::UndefVarError => {
                vec![symbol(name), Some(Made::Bits(Type::UINT64, 0)), None]
            }
            Detail::Name(name) => vec![symbol(name)],
        }
    }
}

/// The fields of an exception that a function of Base makes of a symbol and numbers.
fn fields_of(thrown: Thrown, symbol: &str, bits: [u128; 2], heap: &Heap) -> Vec<Option<Made>> {
    let types = &heap.types().base().types;
    let given = thrown.types.into_iter().zip(bits).enumerate();
    let operands: Vec<Made> = given
        .filter_map(|(n, (ty, bits))| {
            let ty = ty?;
            let width = types.primitive(ty).map_or(128, |(width, _)| u32::from(width));
            Some(match (thrown.function, n) {
                (BaseFn::ThrowInexacterror, 0) => Made::Type(ty),
                _ => Made::Bits(ty, bits & (u128::MAX >> (128 - width))),
            })
        })
        .collect();
    if thrown.function == BaseFn::ThrowInexacterror {
        return vec![Some(Made::Symbol(symbol.into())), Some(Made::Tuple(operands))];
    }
    let texts: Vec<String> = operands.iter().map(|made| print_made(heap, made)).collect();
    let ty = thrown.types[0].map_or_else(String::new, |ty| types.display(ty).to_string());
    let text = Made::Text(thrown.function.thrown_text(symbol, &texts, &ty).unwrap_or_default());
    match ExceptionKind::of_base(thrown.function) {
        ExceptionKind::DomainError => vec![operands.into_iter().next(), Some(text)],
        _ => vec![Some(text)],
    }
}

impl ExceptionKind {
    /// The kind of the exception that a function of Base throws.
    pub(crate) fn of_base(function: BaseFn) -> ExceptionKind {
        let kind = match function.action() {
            BaseAction::Throw(name) => ExceptionKind::ALL.iter().copied().find(|kind| kind.name() == name),
            BaseAction::Rethrow | BaseAction::Print { .. } | BaseAction::Text => None,
        };
        kind.unwrap_or(ExceptionKind::ErrorException)
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
            (K::InterruptException, Detail::None, "InterruptException: the program was interrupted"),
            (K::BoundsError, Detail::None, "BoundsError"),
            (K::BoundsError, Detail::Index(7), "BoundsError: attempt to access index [7]"),
            (K::UndefVarError, Detail::Name(sym("x")), "UndefVarError: `x` not defined"),
        ];
        for (kind, detail, expected) in rows {
            let exception = show(kind, detail);
            assert_eq!((exception.to_string().as_str(), exception.kind), (expected, kind));
        }
        assert_eq!(show(K::ArgumentError, Detail::Message(text("no"))).message, "no");
        let thrown = |function: BaseFn, name: &str, types, bits| {
            let detail = Detail::Operands(Thrown { function, types }, sym(name), bits);
            show(ExceptionKind::of_base(function), detail)
        };
        let domain = thrown(
            BaseFn::ThrowComplexDomainerror,
            "sqrt",
            [Some(Type::FLOAT64), None],
            [(-1.0f64).to_bits().into(), 0],
        );
        assert!(domain.to_string().starts_with("DomainError with -1.0:\nsqrt was called"), "{domain}");
        assert!(domain.message.starts_with("-1.0:\nsqrt was called"), "{domain}");
        // What compiled code leaves above a narrow number does not matter.
        let narrow = thrown(BaseFn::ThrowOverflowerrBinaryop, "+", [Some(Type::INT8); 2], [0x7f, u128::MAX]);
        assert_eq!(narrow.to_string(), "OverflowError: 127 + -1 overflowed for type Int8");
        let types = [Some(Type::INT8), Some(Type::FLOAT64)];
        let inexact = thrown(BaseFn::ThrowInexacterror, "trunc", types, [0, 300.5f64.to_bits().into()]);
        assert_eq!(inexact.to_string(), "InexactError: trunc(Int8, 300.5)");
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
