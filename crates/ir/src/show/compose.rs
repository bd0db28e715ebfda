//! Composite values as Julia's `show` and `print` write them.
//!
//! The interpreter and the run time expose the parts of their values through [`Graph`], so that a value
//! has the same text in both. Inside a container whose element type determines an element's type, the element
//! is written without its own type mark, so each part is written with the type that its context announces:
//!
//! ```text
//! Float32[1.0, 2.0]          announced Float32, so `1.0` and not `1.0f0`
//! Any[1.0f0, true]           announced Any
//! [(1, 0x02)]                the digits distinguish Int64 and UInt8, so no prefix
//! ```
//!
//! A work list replaces recursion. A mutable object that contains itself is written as
//! `#= circular reference @-n =#`, where *n* is the number of levels up to it.
//!
//! A shared value is written at each occurrence, so a few objects may have an exponentially long text. It is
//! cut at [`MAX_TEXT`] bytes, an array after [`MAX_SHOWN`] elements; `…` marks an omission.
//!
//! The pieces of values with parts come from `forms.rs`.

use super::forms::{element_parts, field_parts, form_parts, singleton, sub_string};
use super::item::{CUT, Graph, Item, MAX_SHOWN, MAX_TEXT, TypeIn, View, shown, write_text};
use super::{Element, Shown, printed};
use rustc_hash::FxHashMap;
use std::fmt::Write;

/// The objects being written, outermost first.
#[derive(Default)]
struct Open {
    path: Vec<usize>,
    levels: FxHashMap<usize, usize>,
}

impl Open {
    /// Enters an object; if it is already open, returns the number of levels up to it.
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
        View::Str(bytes) => Ok(bytes.into_owned()),
        View::Symbol(name) => Ok(name.into_bytes()),
        View::Bits(bits) => Ok(match shown(graph.ty(node), bits) {
            Some(shown) => printed(shown),
            None => show(graph, node)?.into_bytes(),
        }),
        View::Fields(fields) => match sub_string(graph, graph.ty(node), &fields)? {
            Some(bytes) => Ok(bytes.into_owned()),
            None => Ok(show(graph, node)?.into_bytes()),
        },
        _ => Ok(show(graph, node)?.into_bytes()),
    }
}

/// Writes a value without parts; returns the pieces of any other, in order.
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
            write_text(out, &bytes);
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
        View::Fields(fields) => match form_parts(graph, ty, announced, &fields)? {
            Some(pieces) => pieces,
            None => field_parts(ty, announced, fields),
        },
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
