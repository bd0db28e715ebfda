//! Takes objects apart for [`brolga_ir::show`], which writes them as text.
//!
//! Nothing here allocates in the heap, so there is no safepoint between reading and writing. An exception
//! without an object is shown without making one.
//!
//! Texts can be megabytes. Once a limited call of the thread has ended, a text for running code gets no
//! further parts: that code ends at its next poll.

use std::borrow::Cow;
use std::sync::Arc;

use brolga_ir::Context;
use brolga_ir::base_fn::{BaseFn, Thrown};
use brolga_ir::show::{Graph, TypeIn, View, print, show, show_error};
use brolga_ir::types::Type;

use crate::heap::{ARRAY_DIMS, Heap, Obj, Object, ObjectKind, Scope, position_of};
use crate::pending::{Detail, ExceptionKind, Pending};
use crate::records::SymbolRef;

use super::place::{At, Held, Place, Row};
use super::relations::as_type;

/// A part of an exception that has not been made into an object.
#[derive(Clone, Debug)]
pub(crate) enum Made {
    /// A value of a primitive type.
    Bits(Type, u128),
    Symbol(String),
    Text(String),
    Type(Type),
    /// Its parts must not be tuples.
    Tuple(Vec<Made>),
}

impl Made {
    fn ty(&self, base: &Context) -> Type {
        match self {
            Made::Bits(ty, _) => *ty,
            Made::Symbol(_) => Type::SYMBOL,
            Made::Text(_) => Type::STRING,
            Made::Type(of) => base.types.type_of_type(*of),
            Made::Tuple(parts) => {
                let parts: Vec<Type> = parts.iter().map(|part| part.ty(base)).collect();
                base.types.tuple(&parts).unwrap_or(Type::ANY)
            }
        }
    }
}

/// Something to be shown.
#[derive(Clone)]
enum Node<'t> {
    Object(Object),
    At(At<'t>),
    Made(Made),
    Exception(ExceptionKind, Detail),
}

struct Objects<'t> {
    heap: &'t Heap,
    /// Whether a limited call of the thread for whose code the text is made has ended; `None` for a text
    /// requested by the embedder.
    is_ending: Option<IsEnding<'t>>,
}

/// Whether a limited call of a thread has ended.
pub(crate) type IsEnding<'t> = &'t dyn Fn() -> bool;

/// A limited call ended before a text was complete.
struct Ended;

impl<'t> Objects<'t> {
    fn base(&self) -> &'t Arc<Context> {
        self.heap.types().base()
    }
}

fn node<'t>(place: Option<Place<'t>>) -> Option<Node<'t>> {
    match place?.held() {
        Held::Undefined => None,
        Held::Object(object) => Some(Node::Object(object)),
        Held::Inline(at) => Some(Node::At(at)),
    }
}

fn type_in(cx: &Context, ty: Type) -> TypeIn<'_> {
    TypeIn { types: &cx.types, ty }
}

fn value_view<'t>(at: At<'t>) -> View<'t, Node<'t>> {
    if let Some(bits) = at.bits() {
        return View::Bits(bits);
    }
    if at.cx.types.memory_ref_element(at.ty).is_some() {
        let memory = at.object.pointer_at(at.offset + 8);
        let offset = memory.and_then(|memory| position_of(memory, at.object.word_at(at.offset))).unwrap_or(0);
        return View::MemoryRef { memory: memory.map(Node::Object), offset };
    }
    if at.cx.types.is_singleton(at.ty) {
        return View::Singleton;
    }
    View::Fields(at.fields().map(|place| node(Some(place))).collect())
}

/// The number of elements between two checks for the end of a limited call.
const ELEMENTS: usize = 4096;

fn object_view<'t>(
    object: Object,
    most: usize,
    is_ending: Option<IsEnding<'t>>,
) -> Result<View<'t, Node<'t>>, Ended> {
    if let Some(of) = as_type(object) {
        return Ok(View::Type(type_in(of.context(), of.ty().unwrap_or(Type::ANY))));
    }
    Ok(match object.desc().kind() {
        ObjectKind::String => View::Str(object.string().unwrap_or_default().into()),
        ObjectKind::Symbol => {
            View::Symbol(String::from_utf8_lossy(object.string().unwrap_or_default()).into_owned())
        }
        ObjectKind::Module => {
            View::Module(String::from_utf8_lossy(object.string().unwrap_or_default()).into_owned())
        }
        ObjectKind::Weak => View::Fields(vec![object.pointer_at(0).map(Node::Object)]),
        kind => match (Row::of(object), At::boxed(object)) {
            (Some(row), _) => {
                let dims = match kind {
                    ObjectKind::Array { dims, .. } => (0..*dims as usize)
                        .map(|d| object.word_at(ARRAY_DIMS + 8 * d).cast_signed())
                        .collect(),
                    _ => vec![row.length as i64],
                };
                // If the extents do not match the `Memory`, the existing elements are shown in a row.
                let said = dims.iter().try_fold(1i64, |n, &d| n.checked_mul(d.max(0)));
                let dims = if said == Some(row.length as i64) { dims } else { vec![row.length as i64] };
                let ends = |n| n % ELEMENTS == 0 && is_ending.is_some_and(|is_ending| is_ending());
                let element = |n| if ends(n) { Err(Ended) } else { Ok(node(row.place(n))) };
                let elements = (0..row.length.min(most)).map(element).collect::<Result<_, _>>()?;
                let elem = match row.memory.desc().kind() {
                    ObjectKind::Memory(element) => element.ty,
                    _ => Type::ANY,
                };
                View::Elements { elem: type_in(row.memory.desc().context(), elem), dims, elements }
            }
            (None, Some(at)) => value_view(at),
            (None, None) => View::Singleton,
        },
    })
}

impl<'t> Graph<'t> for Objects<'t> {
    type Node = Node<'t>;
    type Error = Ended;

    fn ty(&self, node: &Node<'t>) -> TypeIn<'t> {
        let base = self.base();
        match node {
            Node::Object(object) => match as_type(*object).and_then(|of| Some((of.context(), of.ty()?))) {
                Some((cx, of)) => type_in(cx, cx.types.type_of(of).unwrap_or(Type::DATATYPE)),
                None => At::boxed(*object).map_or(type_in(base, Type::ANY), |at| type_in(at.cx, at.ty)),
            },
            Node::At(at) => type_in(at.cx, at.ty),
            Node::Made(Made::Type(of)) => type_in(base, base.types.type_of(*of).unwrap_or(Type::DATATYPE)),
            Node::Made(made) => type_in(base, made.ty(base)),
            Node::Exception(kind, _) => type_in(base, kind.builtin_type(base).unwrap_or(Type::ANY)),
        }
    }

    fn identity(&self, node: &Node<'t>) -> Option<usize> {
        match node {
            Node::Object(object) if object.desc().is_mutable() => Some(object.address()),
            _ => None,
        }
    }

    fn view(&mut self, node: &Node<'t>, most: usize) -> Result<View<'t, Node<'t>>, Ended> {
        if self.is_ending.is_some_and(|is_ending| is_ending()) {
            return Err(Ended);
        }
        Ok(match node {
            Node::Object(object) => return object_view(*object, most, self.is_ending),
            Node::At(at) => value_view(*at),
            Node::Made(Made::Bits(_, bits)) => View::Bits(*bits),
            Node::Made(Made::Symbol(name)) => View::Symbol(name.clone()),
            Node::Made(Made::Type(of)) => View::Type(type_in(self.base(), *of)),
            Node::Made(Made::Tuple(parts)) => {
                View::Fields(parts.iter().cloned().map(|part| Some(Node::Made(part))).collect())
            }
            Node::Made(Made::Text(text)) => View::Str(text.clone().into_bytes().into()),
            Node::Exception(kind, detail) => {
                let fields = detail.fields(*kind, self.heap);
                if fields.is_empty() {
                    View::Singleton
                } else {
                    View::Fields(fields.into_iter().map(|made| made.map(Node::Made)).collect())
                }
            }
        })
    }
}

/// The message for a `Memory` of a negative length.
pub(crate) const INVALID_LENGTH: &str =
    "invalid GenericMemory size: the number of elements is either negative or too large";

impl Detail {
    /// The fields of the exception's object.
    pub(crate) fn fields(self, kind: ExceptionKind, heap: &Heap) -> Vec<Option<Made>> {
        let symbol = |name: SymbolRef| Some(Made::Symbol(name.name()));
        match self {
            // In this form it is thrown only when a `Memory` is made.
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

/// The fields of an exception that a function of Base makes from a symbol and numbers.
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

impl<'h> Scope<'_, 'h> {
    /// The text that Julia's `show` writes for an object.
    pub fn show(&self, object: Obj<'_, 'h>) -> String {
        show_object(self.heap(), None, object.object)
    }
}

/// The text that Julia's `show` writes for an object, for code of a thread or for the embedder.
pub(crate) fn show_object(heap: &Heap, is_ending: Option<IsEnding<'_>>, object: Object) -> String {
    show(&mut Objects { heap, is_ending }, &Node::Object(object)).unwrap_or_default()
}

/// The bytes that Julia's `print` writes for an object, for code of a thread. Strings, which are printed most
/// and may be large, are not copied.
pub(crate) fn print_object<'o>(heap: &Heap, is_ending: IsEnding<'_>, object: Object) -> Cow<'o, [u8]> {
    match object.desc().kind() {
        ObjectKind::String if !is_ending() => object.string().unwrap_or_default().into(),
        _ => {
            let graph = &mut Objects { heap, is_ending: Some(is_ending) };
            print(graph, &Node::Object(object)).unwrap_or_default().into()
        }
    }
}

/// The text of a part of an exception, as `print` writes it.
pub(crate) fn print_made(heap: &Heap, made: &Made) -> String {
    let bytes = print(&mut Objects { heap, is_ending: None }, &Node::Made(made.clone())).unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The text of an uncaught exception.
pub(crate) fn show_exception(heap: &Heap, pending: Pending) -> String {
    let node = match pending {
        Pending::Object(object) => Node::Object(object),
        Pending::Kind(kind, detail) => Node::Exception(kind, detail),
    };
    show_error(&mut Objects { heap, is_ending: None }, &node).unwrap_or_default()
}

/// The types of an exception's type, and the type.
pub(crate) fn exception_type<'t>(heap: &'t Heap, pending: Pending) -> (&'t Arc<Context>, Type) {
    let base = heap.types().base();
    match pending {
        Pending::Object(object) => At::boxed(object).map_or((base, Type::ANY), |at: At<'t>| (at.cx, at.ty)),
        Pending::Kind(kind, _) => (base, heap.exception_type(kind as usize, || kind.builtin_type(base))),
    }
}
