//! Composite values as Julia's `show` and `print` write them.
//!
//! The interpreter and the run time expose the parts of their values through [`Graph`], so that a value
//! has the same text in both. Inside a container whose element type determines an element's type, the element is written
//! without its own mark, so each part is written with the type that its surroundings announce:
//!
//! ```text
//! Float32[1.0, 2.0]          announced Float32, so `1.0` and not `1.0f0`
//! Any[1.0f0, true]           announced Any
//! [(1, 0x02)]                the digits distinguish Int64 and UInt8, so no prefix
//! ```
//!
//! A list of things still to be written replaces recursion. A mutable object that is inside itself is written as
//! `#= circular reference @-n =#`, where *n* counts the levels up to it.
//!
//! A shared value is written at each of its places, so a few objects may have an exponentially long text. It is cut at
//! [`MAX_TEXT`] bytes, an array after [`MAX_SHOWN`] elements; `…` marks an omission.
//!
//! Not done: the special forms of `Complex`, `Rational` and ranges, which print as plain structs.

use super::{Element, Shown, printed};
use crate::types::{Decl, PrimitiveRepr, Type, TypeKind, Types};
use rustc_hash::FxHashMap;
use std::fmt::Write;

/// The length in bytes at which the text of a value is cut.
pub const MAX_TEXT: usize = 1 << 24;

/// How many elements of an array are written.
pub const MAX_SHOWN: usize = 1 << 20;

/// Where something is left out.
const CUT: &str = "…";

/// A type and the table that it belongs to.
#[derive(Clone, Copy, Debug)]
pub struct TypeIn<'t> {
    /// The table.
    pub types: &'t Types,
    /// The type.
    pub ty: Type,
}

impl<'t> TypeIn<'t> {
    fn with(self, ty: Type) -> TypeIn<'t> {
        TypeIn { ty, ..self }
    }

    /// The text of the type.
    pub fn text(self) -> String {
        self.types.display(self.ty).to_string()
    }

    /// Whether two types, of two tables perhaps, read the same.
    fn is(self, other: TypeIn<'_>) -> bool {
        if std::ptr::eq(self.types, other.types) { self.ty == other.ty } else { self.text() == other.text() }
    }
}

/// The parts of a value.
#[derive(Clone, Debug)]
pub enum View<'t, N> {
    /// The bits of a primitive value.
    Bits(u128),
    /// The only value of its type.
    Singleton,
    /// The bytes of a string.
    Str(Vec<u8>),
    /// A symbol.
    Symbol(String),
    /// A type as a value.
    Type(TypeIn<'t>),
    /// A module.
    Module(String),
    /// A token, which is no value of the program.
    Token,
    /// The place before element `offset + 1` of a `Memory`.
    MemoryRef {
        /// The `Memory`.
        memory: Option<N>,
        /// The number of elements before it.
        offset: i64,
    },
    /// A struct, tuple or named tuple; `None` for an undefined field.
    Fields(Vec<Option<N>>),
    /// An `Array` or `Memory`; elements in column-major order, `None` for an undefined one.
    Elements {
        /// The element type.
        elem: TypeIn<'t>,
        /// The extents.
        dims: Vec<i64>,
        /// As many as the extents multiply to, or as were asked for.
        elements: Vec<Option<N>>,
    },
}

/// Values that can be shown.
pub trait Graph<'t> {
    /// A value.
    type Node: Clone;
    /// Why one cannot be read.
    type Error;

    /// Its type: what `typeof` gives, and `Type{T}` for the type `T`.
    fn ty(&self, node: &Self::Node) -> TypeIn<'t>;

    /// A number that the same object has every time and no other one; `None` for a value that cannot be inside itself.
    fn identity(&self, node: &Self::Node) -> Option<usize>;

    /// Its parts; of an array the first `most` elements.
    fn view(&mut self, node: &Self::Node, most: usize) -> Result<View<'t, Self::Node>, Self::Error>;
}

enum Item<'t, N> {
    /// A value, and the type that is announced for it.
    Val(Option<N>, Option<TypeIn<'t>>),
    Text(&'static str),
    Owned(String),
    /// The elements of an array that are still to be written in a row.
    Row(Row<'t, N>),
    /// An object is done.
    Leave,
}

/// Elements in a row. They become items one by one, since an array may have a million of them.
struct Row<'t, N> {
    elements: std::vec::IntoIter<Option<N>>,
    elem: TypeIn<'t>,
    has_begun: bool,
    /// Whether the array has more elements.
    is_cut: bool,
}

/// The objects that are being written, outermost first.
#[derive(Default)]
struct Open {
    path: Vec<usize>,
    levels: FxHashMap<usize, usize>,
}

impl Open {
    /// Goes into an object; if it is open already, how many levels up.
    fn enter(&mut self, id: usize) -> Option<usize> {
        if let Some(level) = self.levels.get(&id) {
            return Some(self.path.len() - level);
        }
        self.levels.insert(id, self.path.len());
        self.path.push(id);
        None
    }

    fn leave(&mut self) {
        if let Some(id) = self.path.pop() {
            self.levels.remove(&id);
        }
    }
}

/// The text that Julia's `show` writes for a value.
pub fn show<'t, G: Graph<'t>>(graph: &mut G, node: &G::Node) -> Result<String, G::Error> {
    let mut out = String::new();
    let mut open = Open::default();
    let mut work = vec![Item::Val(Some(node.clone()), None)];
    while let Some(item) = work.pop() {
        if out.len() > MAX_TEXT {
            out.push_str(CUT);
            break;
        }
        match item {
            Item::Text(text) => out.push_str(text),
            Item::Owned(text) => out.push_str(&text),
            Item::Row(mut row) => match row.elements.next() {
                Some(element) => {
                    out.push_str(if row.has_begun { ", " } else { "" });
                    row.has_begun = true;
                    let elem = row.elem;
                    work.extend([Item::Row(row), Item::Val(element, Some(elem))]);
                }
                None if row.is_cut => out.extend([", ", CUT]),
                None => {}
            },
            Item::Leave => open.leave(),
            Item::Val(None, _) => out.push_str("#undef"),
            Item::Val(Some(val), announced) => {
                let mut parts = parts(graph, &mut out, &val, announced, &mut open)?;
                work.extend(parts.drain(..).rev());
            }
        }
    }
    Ok(out)
}

/// The bytes that Julia's `print` writes: text without quotes, numbers without marks.
pub fn print<'t, G: Graph<'t>>(graph: &mut G, node: &G::Node) -> Result<Vec<u8>, G::Error> {
    match graph.view(node, MAX_SHOWN)? {
        View::Str(bytes) => Ok(bytes),
        View::Symbol(name) => Ok(name.into_bytes()),
        View::Bits(bits) => Ok(match shown(graph.ty(node), bits) {
            Some(shown) => printed(shown),
            None => show(graph, node)?.into_bytes(),
        }),
        _ => Ok(show(graph, node)?.into_bytes()),
    }
}

/// Writes a value without parts; gives the pieces of any other, in order.
fn parts<'t, G: Graph<'t>>(
    graph: &mut G,
    out: &mut String,
    node: &G::Node,
    announced: Option<TypeIn<'t>>,
    open: &mut Open,
) -> Result<Vec<Item<'t, G::Node>>, G::Error> {
    let ty = graph.ty(node);
    let is_announced = announced.is_some_and(|announced| announced.is(ty));
    let identity = graph.identity(node);
    if let Some(up) = identity.and_then(|id| open.enter(id)) {
        // Writing to a string cannot fail, here and below.
        let _ = write!(out, "#= circular reference @-{up} =#");
        return Ok(Vec::new());
    }
    let mut pieces = match graph.view(node, MAX_SHOWN)? {
        View::Bits(bits) => {
            let _ = match shown(ty, bits) {
                Some(shown) if is_announced => write!(out, "{}", Element(shown)),
                Some(shown) => write!(out, "{shown}"),
                None => write_bits(out, ty, bits),
            };
            Vec::new()
        }
        View::Singleton => {
            out.push_str(&singleton(ty));
            Vec::new()
        }
        View::Str(bytes) => {
            let _ = write!(out, "{}", Shown::Str(&bytes));
            Vec::new()
        }
        View::Symbol(name) => {
            let _ = write!(out, "{}", Shown::Symbol(&name));
            Vec::new()
        }
        View::Type(of) => {
            out.push_str(&of.text());
            Vec::new()
        }
        View::Module(name) => {
            out.push_str(&name);
            Vec::new()
        }
        View::Token => {
            out.push_str("#token");
            Vec::new()
        }
        View::MemoryRef { memory, offset } => {
            let _ = write!(out, "{}(", ty.text());
            let position = format!(", {})", offset.wrapping_add(1));
            vec![Item::Val(memory, None), Item::Owned(position)]
        }
        View::Fields(fields) => field_parts(ty, announced, fields),
        View::Elements { elem, dims, elements } => element_parts(ty, is_announced, elem, &dims, elements),
    };
    if identity.is_some() {
        pieces.push(Item::Leave);
    }
    Ok(pieces)
}

fn write_bits(out: &mut String, ty: TypeIn<'_>, bits: u128) -> std::fmt::Result {
    let text = ty.text();
    match ty.types.pointee(ty.ty) {
        Some(_) => write!(out, "{text} @0x{bits:016x}"),
        None => {
            let digits = ty.types.primitive(ty.ty).map_or(32, |(bits, _)| usize::from(bits) / 4);
            write!(out, "{text}(0x{bits:0digits$x})")
        }
    }
}

/// The text of the only value of a type.
pub(super) fn singleton(ty: TypeIn<'_>) -> String {
    let types = ty.types;
    match types.kind(ty.ty) {
        TypeKind::Function(name) => types.names().text(name.name).to_owned(),
        TypeKind::TypeOf(of) => types.display(*of).to_string(),
        TypeKind::Tuple { .. } => "()".to_owned(),
        TypeKind::NamedTuple { .. } => "NamedTuple()".to_owned(),
        _ if ty.ty == Type::NOTHING => "nothing".to_owned(),
        _ if types.nominal_parts(ty.ty).is_some_and(|(decl, _)| is_builtin(types, decl, "Missing")) => {
            "missing".to_owned()
        }
        _ => format!("{}()", ty.text()),
    }
}

/// Whether a declaration is the builtin of this name.
fn is_builtin(types: &Types, decl: Decl, name: &str) -> bool {
    decl.is_builtin() && types.names().text(types.decl(decl).name) == name
}

/// The pieces of a struct, tuple or named tuple.
fn field_parts<'t, N>(
    ty: TypeIn<'t>,
    announced: Option<TypeIn<'t>>,
    fields: Vec<Option<N>>,
) -> Vec<Item<'t, N>> {
    let types = ty.types;
    let names = types.names();
    let mut parts = Vec::with_capacity(2 * fields.len() + 2);
    let announced_field = |n: usize| {
        let announced = announced?;
        match announced.types.kind(announced.ty) {
            TypeKind::Tuple { .. } | TypeKind::NamedTuple { .. } => {
                announced.types.field_type(announced.ty, n).map(|ty| announced.with(ty))
            }
            _ => None,
        }
    };
    let is_pair = types.nominal_parts(ty.ty).is_some_and(|(decl, _)| is_builtin(types, decl, "Pair"));
    if is_pair && fields.len() == 2 {
        for (n, field) in fields.into_iter().enumerate() {
            if n > 0 {
                parts.push(Item::Text(" => "));
            }
            parts.push(Item::Val(field, None));
        }
        return parts;
    }
    let labels = match types.kind(ty.ty) {
        TypeKind::NamedTuple { names, .. } => Some(names),
        TypeKind::Tuple { .. } => None,
        _ => {
            parts.push(Item::Owned(ty.text()));
            None
        }
    };
    parts.push(Item::Text("("));
    let is_tuple = matches!(types.kind(ty.ty), TypeKind::Tuple { .. } | TypeKind::NamedTuple { .. });
    let end = if is_tuple && fields.len() == 1 { ",)" } else { ")" };
    for (n, field) in fields.into_iter().enumerate() {
        if n > 0 {
            parts.push(Item::Text(", "));
        }
        if let Some(&label) = labels.and_then(|l| l.get(n)) {
            let mut text = String::new();
            let _ = crate::ident::write_name(&mut text, names.text(label));
            parts.push(Item::Owned(text + " = "));
        }
        parts.push(Item::Val(field, announced_field(n)));
    }
    parts.push(Item::Text(end));
    parts
}

/// The pieces of an array or memory.
fn element_parts<'t, N: Clone>(
    ty: TypeIn<'t>,
    is_announced: bool,
    elem: TypeIn<'t>,
    dims: &[i64],
    elements: Vec<Option<N>>,
) -> Vec<Item<'t, N>> {
    let mut parts = Vec::new();
    if dims.len() > 1 && elements.is_empty() {
        let dims: Vec<String> = dims.iter().map(i64::to_string).collect();
        parts.push(Item::Owned(format!("{}(undef, {})", ty.text(), dims.join(", "))));
        return parts;
    }
    if !is_announced && (elements.is_empty() || !is_told_by_its_text(elem)) {
        parts.push(Item::Owned(elem.text()));
    }
    parts.push(Item::Text(if dims.is_empty() { "fill(" } else { "[" }));
    let said = dims.iter().fold(1, |n: usize, &d| n.saturating_mul(usize::try_from(d).unwrap_or(0)));
    let is_cut = said > MAX_SHOWN && elements.len() == MAX_SHOWN;
    // Elements that do not fill the extents are written in a row.
    if dims.len() <= 1 || said != elements.len() {
        parts.push(Item::Row(Row { elements: elements.into_iter(), elem, has_begun: false, is_cut }));
    } else {
        let extent = |n: usize| dims.get(n).and_then(|&d| usize::try_from(d).ok()).unwrap_or(1);
        let (rows, columns) = (extent(0), extent(1));
        let page_size = rows.saturating_mul(columns).max(1);
        for (page, elements) in elements.chunks(page_size).enumerate() {
            if page > 0 {
                // As many semicolons as the number of the highest dimension that just ended.
                let mut size = 1;
                let ended = dims[2..].iter().take_while(|&&d| {
                    size = i64::saturating_mul(size, d);
                    page as i64 % size.max(1) == 0
                });
                parts.push(Item::Owned(";".repeat(3 + ended.count()) + " "));
            }
            for row in 0..rows {
                if row > 0 {
                    parts.push(Item::Text("; "));
                }
                for column in 0..columns {
                    if column > 0 {
                        parts.push(Item::Text(" "));
                    }
                    let element = elements.get(column * rows + row).cloned().flatten();
                    parts.push(Item::Val(element, Some(elem)));
                }
            }
        }
    }
    parts.push(Item::Text(if dims.is_empty() { ")" } else { "]" }));
    parts
}

/// Whether the text of an element shows its type, so that an array needs no prefix.
fn is_told_by_its_text(elem: TypeIn<'_>) -> bool {
    let types = elem.types;
    let mut work = vec![elem.ty];
    while let Some(ty) = work.pop() {
        let told = matches!(ty, Type::INT64 | Type::FLOAT64 | Type::CHAR | Type::STRING | Type::SYMBOL)
            || types.is_singleton(ty);
        if told {
            continue;
        }
        match (types.tuple_elements(ty), types.array_parts(ty)) {
            (Some(elems), _) => work.extend(elems),
            (None, Some((elem, _))) => work.push(elem),
            (None, None) => return false,
        }
    }
    true
}

/// The scalar form of a value of a builtin primitive type.
fn shown(ty: TypeIn<'_>, bits: u128) -> Option<Shown<'static>> {
    let low = match ty.ty.as_low() {
        Some(low) if low.is_float() => Some((low.bits() as u16, PrimitiveRepr::Float)),
        Some(low) => Some((low.bits() as u16, PrimitiveRepr::Signed)),
        None => None,
    };
    let (width, repr) = low.or_else(|| ty.types.primitive(ty.ty))?;
    Some(match (repr, width) {
        (PrimitiveRepr::Bool, _) => Shown::Bool(bits != 0),
        (PrimitiveRepr::Char, _) => Shown::Char(bits as u32),
        (PrimitiveRepr::Signed, _) => {
            let unused = 128 - u32::from(width);
            Shown::Signed((bits << unused).cast_signed() >> unused)
        }
        (PrimitiveRepr::Unsigned, _) => Shown::Unsigned { bits: width, value: bits },
        (PrimitiveRepr::Float, 16) => Shown::F16(bits as u16),
        (PrimitiveRepr::Float, 32) => Shown::F32(f32::from_bits(bits as u32)),
        (PrimitiveRepr::Float, 64) => Shown::F64(f64::from_bits(bits as u64)),
        (PrimitiveRepr::Float | PrimitiveRepr::Bits, _) => return None,
    })
}
