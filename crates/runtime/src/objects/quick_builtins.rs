//! Builtins on the operands that they usually have, without roots.
//!
//! ```text
//! nfields(t)          t a tuple                                            the length of its table of fields
//! getfield(t, n)      t a tuple, n an Int64        ──► FieldRow  ──┐
//! getfield(x, :name)  x a struct                   ──► FieldRow  ──┼──►  a reference, an Int64, a Float64 or a Bool
//! arrayref(b, v, n)   v an array, n an Int64       ──► element   ──┘
//! arraylen(v)         v an array                                           the product of its extents
//! ```
//!
//! Methods over `Any` make these calls one after another: a loop over the arguments of `print` has two for each argument. Everything else, and every
//! error, is left to the general way (`Ops::builtin`), which roots its operands first.
//!
//! Nothing here is a safepoint. Boxing the value may be one, so it comes last (`routines/objects.rs`).
//!
//! Cost: constant, linear in the fields for a name.

use brolga_ir::builtin::Builtin;
use brolga_ir::types::{FieldRepr, Type};

use crate::heap::{ARRAY_DIMS, FieldRow, Object, ObjectKind};

use super::place::{Place, Row};

/// The value of a builtin.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Quick {
    Object(Object),
    Int64(i64),
    /// Its bits.
    Float64(u64),
    Bool(bool),
}

/// The value of the builtin whose function is the first object for the others; `None` for everything that is not handled here.
pub(crate) fn quick_builtin(all: &[Object]) -> Option<Quick> {
    let (callee, args) = all.split_first()?;
    match (callee.desc().builtin()?, args) {
        (Builtin::Nfields, &[of]) => {
            let table = of.desc().field_table();
            table.is_tuple().then_some(Quick::Int64(table.rows().len() as i64))
        }
        (Builtin::Getfield, &[of, field]) => field_of(of, field),
        // Bounds are checked whatever the flag says (`elements.rs`).
        (Builtin::Getfield, &[of, field, flag]) if is_bool(flag) => field_of(of, field),
        (Builtin::Arraylen, &[of]) => {
            let ObjectKind::Array { dims, .. } = of.desc().kind() else { return None };
            let extents = (0..*dims as usize).map(|d| of.word_at(ARRAY_DIMS + 8 * d).cast_signed());
            let length = extents.fold(1u64, |n, d| n.saturating_mul(d.max(0).cast_unsigned()));
            Some(Quick::Int64(length.cast_signed()))
        }
        (Builtin::Arrayref, &[flag, of, index]) if is_bool(flag) => {
            if !matches!(of.desc().kind(), ObjectKind::Array { .. }) {
                return None;
            }
            let place = Row::of(of)?.place(position(index)?)?;
            value_at(place)
        }
        _ => None,
    }
}

/// The contents of the field with this name or, of a tuple, number; `None` if the field is not one of the common ones, is undefined or missing.
pub(crate) fn field_of(of: Object, field: Object) -> Option<Quick> {
    let table = of.desc().field_table();
    let index = match field.desc().kind() {
        ObjectKind::Symbol => table.find(field.string()?)?,
        _ if table.is_tuple() => position(field)?,
        _ => return None,
    };
    let row: &FieldRow = table.rows().get(index).filter(|row| !row.is_atomic)?;
    value_of(row.repr, row.ty, of, row.offset)
}

/// An element of a tuple, by its position from 0.
pub(crate) fn element_of(tuple: Object, index: usize) -> Option<Quick> {
    let row = tuple.desc().field_table().rows().get(index)?;
    value_of(row.repr, row.ty, tuple, row.offset)
}

fn value_at(place: Place<'_>) -> Option<Quick> {
    value_of(place.repr, place.ty, place.object, place.offset)
}

fn value_of(repr: FieldRepr, ty: Type, of: Object, offset: usize) -> Option<Quick> {
    match (repr, ty) {
        (FieldRepr::Pointer, _) => of.pointer_at(offset).map(Quick::Object),
        (FieldRepr::Inline, Type::INT64) => Some(Quick::Int64(of.word_at(offset).cast_signed())),
        (FieldRepr::Inline, Type::FLOAT64) => Some(Quick::Float64(of.word_at(offset))),
        (FieldRepr::Inline, Type::BOOL) => {
            let mut byte = [0];
            of.read_bits(offset, &mut byte);
            Some(Quick::Bool(byte[0] & 1 != 0))
        }
        _ => None,
    }
}

/// The position, from 0, that an `Int64` names.
pub(crate) fn position(number: Object) -> Option<usize> {
    match number.desc().ty()? {
        Type::INT64 => usize::try_from(number.word_at(0).cast_signed().checked_sub(1)?).ok(),
        _ => None,
    }
}

pub(crate) fn is_bool(object: Object) -> bool {
    object.desc().ty() == Some(Type::BOOL)
}
