//! Literals in registers and memory, by the rules of `ir::abi`: how values are passed to low IR and native
//! code here.
//!
//! The facade has another implementation for its users. This one is deliberately separate: the tests that use
//! it detect disagreements between the facade and `lower`.
//!
//! ```text
//! Literal ──encode──► one number per register ──► a call ──► numbers ──decode──► Literal
//!                        └─ addresses of bytes that a Place keeps ─┘
//! ```

use brolga_ir::abi::{Form, FormKind};
use brolga_ir::module::Literal;
use brolga_ir::types::FieldRepr;
use brolga_ir::{Const, Context, Type, TypeKind};

/// Storage for values in memory form.
pub(super) trait Place {
    /// Stores bytes and returns their address.
    fn put(&mut self, bytes: &[u8]) -> Option<u64>;

    fn get(&mut self, address: u64, size: usize) -> Option<Vec<u8>>;

    /// The address of the permanent record of a string or symbol.
    fn record(&mut self, text: &Const) -> Option<u64>;

    /// The string or symbol, according to the type, whose permanent record is at an address.
    fn text(&mut self, ty: Type, address: u64) -> Option<Const>;
}

pub(super) fn type_of(literal: &Literal) -> Type {
    literal.ty()
}

/// The registers that hold a value. `None` if its type is not the form's, or the storage is full.
pub(super) fn encode(cx: &Context, form: &Form, value: &Literal, place: &mut dyn Place) -> Option<Vec<u128>> {
    match &form.kind {
        FormKind::Never => None,
        FormKind::Ghost => Some(Vec::new()),
        FormKind::Scalar => Some(vec![scalar(value, place)?]),
        FormKind::Aggregate(parts) => {
            let Literal::Aggregate { fields, .. } = value else { return None };
            let mut all = Vec::new();
            for (part, field) in parts.iter().zip(fields) {
                all.extend(encode(cx, &part.form, field, place)?);
            }
            Some(all)
        }
        FormKind::Union(members) => {
            let selector = members.iter().position(|&m| m == type_of(value))?;
            let words = form.leaves.len() - 1;
            let mut bytes = vec![0; 8 * words];
            write(cx, members[selector], value, &mut bytes, place)?;
            let word =
                |chunk: &[u8]| chunk.iter().rev().fold(0u128, |word, &byte| word << 8 | u128::from(byte));
            Some(bytes.chunks(8).map(word).chain([selector as u128]).collect())
        }
        FormKind::Memory => {
            let mut bytes = vec![0; form.size as usize];
            write(cx, form.ty, value, &mut bytes, place)?;
            Some(vec![u128::from(place.put(&bytes)?)])
        }
    }
}

/// The value held by registers.
pub(super) fn decode(cx: &Context, form: &Form, leaves: &[u128], place: &mut dyn Place) -> Option<Literal> {
    match &form.kind {
        FormKind::Never => None,
        FormKind::Ghost => read(cx, form.ty, &[], place),
        FormKind::Scalar => from_bits(form.ty, *leaves.first()?, place),
        FormKind::Aggregate(parts) => {
            let mut fields = Vec::with_capacity(parts.len());
            for part in parts {
                let own = leaves.get(part.first..part.first + part.form.leaves.len())?;
                fields.push(decode(cx, &part.form, own, place)?);
            }
            Some(Literal::Aggregate { ty: form.ty, fields })
        }
        FormKind::Union(members) => {
            let (&selector, words) = leaves.split_last()?;
            let member = *members.get(usize::try_from(selector).ok()?)?;
            let bytes: Vec<u8> = words.iter().flat_map(|&word| (word as u64).to_le_bytes()).collect();
            read(cx, member, &bytes, place)
        }
        FormKind::Memory => {
            let bytes = place.get(u64::try_from(*leaves.first()?).ok()?, form.size as usize)?;
            read(cx, form.ty, &bytes, place)
        }
    }
}

fn scalar(value: &Literal, place: &mut dyn Place) -> Option<u128> {
    match value {
        Literal::Const(Const::Bits { bits, .. }) => Some(*bits),
        Literal::Const(text @ (Const::String(_) | Const::Symbol(_))) => place.record(text).map(u128::from),
        _ => None,
    }
}

fn from_bits(ty: Type, bits: u128, place: &mut dyn Place) -> Option<Literal> {
    let constant = if ty == Type::STRING || ty == Type::SYMBOL {
        place.text(ty, u64::try_from(bits).ok()?)?
    } else {
        Const::Bits { ty, bits }
    };
    Some(Literal::Const(constant))
}

/// Writes a value of a type, which may be a union, in its C layout.
fn write(cx: &Context, ty: Type, value: &Literal, out: &mut [u8], place: &mut dyn Place) -> Option<()> {
    let types = &cx.types;
    if let TypeKind::Union(members) = types.kind(ty) {
        let selector = members.iter().position(|&m| m == type_of(value))?;
        let (payload, _) = types.union_extent(members)?;
        *out.get_mut(payload as usize)? = selector as u8;
        return write(cx, members[selector], value, out, place);
    }
    match value {
        Literal::Const(Const::Singleton(_)) => Some(()),
        Literal::Const(_) => {
            let bits = scalar(value, place)?.to_le_bytes();
            let size = types.primitive(ty).map_or(8, |(bits, _)| usize::from(bits) / 8);
            out.get_mut(..size)?.copy_from_slice(&bits[..size]);
            Some(())
        }
        Literal::Aggregate { fields, .. } => {
            let layout = types.layout(ty).ok()?;
            for (field, value) in layout.fields.iter().zip(fields) {
                write(cx, field.ty, value, out.get_mut(field.offset as usize..)?, place)?;
            }
            Some(())
        }
        Literal::Array { .. } => None,
    }
}

/// Reads a value of a type from its C layout.
fn read(cx: &Context, ty: Type, bytes: &[u8], place: &mut dyn Place) -> Option<Literal> {
    let types = &cx.types;
    if types.is_singleton(ty) {
        return Some(Literal::Const(Const::Singleton(ty)));
    }
    if let TypeKind::Union(members) = types.kind(ty) {
        let (payload, _) = types.union_extent(members)?;
        let member = *members.get(usize::from(*bytes.get(payload as usize)?))?;
        return read(cx, member, bytes, place);
    }
    let number = |size: usize| -> Option<u128> {
        Some(bytes.get(..size)?.iter().rev().fold(0, |word, &byte| word << 8 | u128::from(byte)))
    };
    if let Some((bits, _)) = types.primitive(ty) {
        return from_bits(ty, number(usize::from(bits) / 8)?, place);
    }
    if types.field_repr(ty) == FieldRepr::Pointer {
        return from_bits(ty, number(8)?, place);
    }
    let layout = types.layout(ty).ok()?;
    let fields = layout.fields.iter().map(|f| read(cx, f.ty, bytes.get(f.offset as usize..)?, place));
    Some(Literal::Aggregate { ty, fields: fields.collect::<Option<_>>()? })
}
