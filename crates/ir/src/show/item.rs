//! The parts of a value and the pieces of its text, which `compose.rs` and `forms.rs` work on.

use crate::types::{PrimitiveRepr, Type, Types};

use super::Shown;
use std::borrow::Cow;
use std::fmt::Write;

/// The length in bytes at which the text of a value is cut.
pub const MAX_TEXT: usize = 1 << 24;

/// The number of elements of an array that are written.
pub const MAX_SHOWN: usize = 1 << 20;

/// Marks an omission.
pub(super) const CUT: &str = "…";

/// A type and the table that it belongs to.
#[derive(Clone, Copy, Debug)]
pub struct TypeIn<'t> {
    /// The table.
    pub types: &'t Types,
    pub ty: Type,
}

impl<'t> TypeIn<'t> {
    pub(super) fn with(self, ty: Type) -> TypeIn<'t> {
        TypeIn { ty, ..self }
    }

    /// The text of the type.
    pub fn text(self) -> String {
        self.types.display(self.ty).to_string()
    }

    /// Whether two types, possibly of different tables, have the same text.
    pub(super) fn is(self, other: TypeIn<'_>) -> bool {
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
    Str(Cow<'t, [u8]>),
    Symbol(String),
    /// A type as a value.
    Type(TypeIn<'t>),
    Module(String),
    /// A token, which is not a value of the program.
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
        elem: TypeIn<'t>,
        /// The extents.
        dims: Vec<i64>,
        /// As many as the product of the extents, or as many as requested.
        elements: Vec<Option<N>>,
    },
}

/// Values that can be shown.
pub trait Graph<'t> {
    /// A value.
    type Node: Clone;
    /// Error returned by a read.
    type Error;

    /// Its type: the result of `typeof`, and `Type{T}` for the type `T`.
    fn ty(&self, node: &Self::Node) -> TypeIn<'t>;

    /// A number that identifies an object; `None` for a value that cannot contain itself.
    fn identity(&self, node: &Self::Node) -> Option<usize>;

    /// Its parts; for an array the first `most` elements.
    fn view(&mut self, node: &Self::Node, most: usize) -> Result<View<'t, Self::Node>, Self::Error>;
}

pub(super) enum Item<'t, N> {
    /// A value, and the type that is announced for it.
    Val(Option<N>, Option<TypeIn<'t>>),
    Text(&'static str),
    Owned(String),
    /// The elements of an array that are still to be written in a row.
    Row(Row<'t, N>),
    /// The end of an object.
    Leave,
}

/// Elements in a row. They become items one at a time, since an array may have a million.
pub(super) struct Row<'t, N> {
    pub(super) elements: std::vec::IntoIter<Option<N>>,
    pub(super) elem: TypeIn<'t>,
    pub(super) has_begun: bool,
    /// Whether the array has more elements.
    pub(super) is_cut: bool,
}

/// The scalar form of a value of a builtin primitive type.
pub(super) fn shown(ty: TypeIn<'_>, bits: u128) -> Option<Shown<'static>> {
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

/// Writes a string in quotes, up to the text limit: escapes take up to four times as many bytes.
pub(super) fn write_text(out: &mut String, bytes: &[u8]) {
    let kept = &bytes[..bytes.len().min(MAX_TEXT)];
    // Writing to a string cannot fail.
    let _ = write!(out, "{}", Shown::Str(kept));
    if kept.len() < bytes.len() {
        out.push_str(CUT);
    }
}
