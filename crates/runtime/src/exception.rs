//! Exceptions as Rust values.
//!
//! A pending exception (`pending.rs`) becomes an [`Exception`] where it leaves compiled code. Its text is the
//! same as the interpreter's: both use `brolga_ir::show`.

use std::borrow::Cow;
use std::sync::Arc;

use brolga_ir::Context;
use brolga_ir::types::Type;

use crate::heap::{EXCEPTION_KINDS, Heap, Persistent, translate};
use crate::objects::show::{exception_type, show_exception};
use crate::pending::{ExceptionKind, Pending};
use crate::trace::StackFrame;

const _: () =
    assert!(ExceptionKind::ALL.len() <= EXCEPTION_KINDS, "each kind has its place in the heap's list");

/// An exception that left compiled code.
#[derive(Clone)]
pub struct Exception {
    /// Its type, if it is one of the builtin ones.
    pub kind: ExceptionKind,
    /// The message, without the type's name before it; may be empty.
    pub message: String,
    /// The text before the message.
    lead: Cow<'static, str>,
    context: Arc<Context>,
    ty: Type,
    object: Option<Arc<Persistent>>,
    trace: Arc<[StackFrame]>,
}

impl Exception {
    /// The exception on the stack of a running thread.
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

    /// The same exception, with the frames it came from.
    pub(crate) fn with_trace(self, trace: Arc<[StackFrame]>) -> Exception {
        Exception { trace, ..self }
    }

    /// A stand-in for a missing exception.
    pub(crate) fn missing(context: Arc<Context>) -> Exception {
        let message = "unwound without an exception".to_owned();
        let kind = ExceptionKind::ErrorException;
        let ty = kind.builtin_type(&context).unwrap_or(Type::ANY);
        let lead = Cow::Borrowed("");
        Exception { kind, message, lead, context, ty, object: None, trace: Arc::default() }
    }

    /// An exception of a run time in another process, as its parts, with its type in a context of this process. It has no object.
    pub fn of_parts(
        kind: ExceptionKind,
        (lead, message): (String, String),
        (context, ty): (Arc<Context>, Type),
        trace: Vec<StackFrame>,
    ) -> Exception {
        let lead = Cow::Owned(lead);
        Exception { kind, message, lead, context, ty, object: None, trace: trace.into() }
    }

    /// The text before the message: the type's name, as far as the exception is shown with it.
    pub fn lead(&self) -> &str {
        &self.lead
    }

    /// The activations of compiled code that were on the stack when it was thrown, innermost first; empty if
    /// they were not recorded ([`RuntimeOptions::traces`](crate::RuntimeOptions::traces)). Ignored when
    /// exceptions are compared.
    pub fn trace(&self) -> &[StackFrame] {
        &self.trace
    }

    /// The exception object; `None` for an exception that the run time raised and that no handler caught on
    /// its way, so that it was never made into an object.
    pub fn object(&self) -> Option<&Persistent> {
        self.object.as_deref()
    }

    /// The exception's type, and the context that it belongs to.
    pub fn ty(&self) -> (&Arc<Context>, Type) {
        (&self.context, self.ty)
    }

    /// The type of the thrown value in the context of a program; `None` if another program declares it.
    pub fn type_in(&self, cx: &Arc<Context>) -> Option<Type> {
        if self.context.is_same(cx) {
            return Some(self.ty);
        }
        translate(&self.context.types, &cx.types, self.ty)
    }
}

impl PartialEq for Exception {
    fn eq(&self, other: &Exception) -> bool {
        let same_object = match (&self.object, &other.object) {
            (Some(a), Some(b)) => Arc::ptr_eq(a, b),
            (a, b) => a.is_none() && b.is_none(),
        };
        self.kind == other.kind && self.message == other.message && self.lead == other.lead && same_object
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

#[cfg(test)]
mod tests {
    use brolga_ir::base_fn::{BaseFn, Thrown};

    use super::*;
    use crate::heap::HeapOptions;
    use crate::pending::Detail;

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
            (K::StackOverflowError, Detail::None, "StackOverflowError: the stack is used up"),
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
        // Bits that compiled code leaves above a narrow number are ignored.
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
