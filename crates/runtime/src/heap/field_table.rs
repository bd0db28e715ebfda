//! The fields of a type by name, for accesses whose type is only known at run time.
//!
//! ```text
//!   getfield(x, :name)   tag of x ──► TypeDesc ──► FieldTable ──► name, offset, how to read it
//! ```
//!
//! The names are stored with the type, so a search compares bytes: it takes no lock and neither interns nor
//! allocates. A table is made on first use; most types never need one.
//!
//! Cost of a search: linear in the fields, which are few.

use brolga_ir::Context;
use brolga_ir::types::{FieldRepr, Layout, Type};

/// The fields of a struct, tuple or named tuple.
#[derive(Debug, Default)]
pub(crate) struct FieldTable {
    rows: Box<[FieldRow]>,
    is_tuple: bool,
}

/// A field.
#[derive(Debug)]
pub(crate) struct FieldRow {
    name: Option<Box<str>>,
    /// The type of values that may be stored.
    pub(crate) ty: Type,
    /// How values are stored.
    pub(crate) repr: FieldRepr,
    pub(crate) offset: usize,
    /// Whether it is declared `const`.
    pub(crate) is_const: bool,
    /// Whether it is declared `@atomic`.
    pub(crate) is_atomic: bool,
}

impl FieldRow {
    /// The name; `None` for tuples.
    pub(crate) fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }
}

impl FieldTable {
    pub(super) fn new(cx: &Context, ty: Type, layout: &Layout) -> FieldTable {
        let types = &cx.types;
        let decls = types.fields(ty).unwrap_or_default();
        let names = types.field_names(ty).unwrap_or_default();
        let rows = layout.fields.iter().enumerate().map(|(n, field)| {
            let decl = decls.get(n);
            FieldRow {
                name: names.get(n).map(|&name| cx.names.text(name).into()),
                ty: field.ty,
                repr: field.repr,
                offset: field.offset as usize,
                is_const: decl.is_some_and(|decl| decl.is_const),
                is_atomic: decl.is_some_and(|decl| decl.is_atomic),
            }
        });
        FieldTable { rows: rows.collect(), is_tuple: types.tuple_elements(ty).is_some() }
    }

    /// The approximate size of the table, in bytes.
    pub(super) fn bytes(&self) -> usize {
        let names = self.rows.iter().filter_map(|row| row.name()).map(|name| name.len() + 16);
        size_of_val(&*self.rows) + names.sum::<usize>()
    }

    /// The fields in order.
    pub(crate) fn rows(&self) -> &[FieldRow] {
        &self.rows
    }

    /// Whether it is a tuple's.
    pub(crate) fn is_tuple(&self) -> bool {
        self.is_tuple
    }

    /// The position, from 0, of the field with this name.
    pub(crate) fn find(&self, name: &[u8]) -> Option<usize> {
        self.rows.iter().position(|row| row.name.as_ref().is_some_and(|known| known.as_bytes() == name))
    }
}
