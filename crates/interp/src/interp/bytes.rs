//! Values as bytes in raw memory, following the layouts of the type table.
//!
//! Only pointer-free values have bytes here: primitive types, and immutable structs, tuples and small unions of them.
//! A small union's selector counts its members in printing order, as in [`Layout`](brolga_ir::types::Layout).

use super::error::{Eval, Fault};
use super::value::Val;
use brolga_ir::types::{FieldRepr, Type, TypeKind, Types};

/// The maximum nesting of inline structs that are read; types nest less through parameters.
const MAX_INLINE_DEPTH: usize = 256;

/// Whether values of a type can be turned into bytes and back.
pub(super) fn has_bytes(types: &Types, ty: Type) -> bool {
    types.field_repr(ty) == FieldRepr::Inline && types.layout(ty).is_ok_and(|l| l.is_bits())
}

/// The number of bytes of a type's values.
pub(super) fn size_of(types: &Types, ty: Type) -> Eval<u64> {
    match types.layout(ty) {
        Ok(layout) => Ok(u64::from(layout.size)),
        Err(error) => Err(Fault::Type(error.display(types).to_string()).into()),
    }
}

/// The bytes of a value of exactly the type `ty`; padding is zero.
pub(super) fn encode(types: &Types, ty: Type, val: &Val) -> Eval<Vec<u8>> {
    let mut out = vec![0; size_of(types, ty)? as usize];
    let mut work = vec![(0usize, ty, val)];
    while let Some((offset, ty, val)) = work.pop() {
        match val {
            Val::Bits { bits, .. } => {
                let size = (size_of(types, ty)? as usize).min(16);
                let Some(room) = out.get_mut(offset..offset + size) else { return Err(no_bytes(types, ty)) };
                room.copy_from_slice(&bits.to_le_bytes()[..size]);
            }
            Val::Singleton(_) => {}
            Val::Struct(data) => {
                let layout = types.layout(ty).map_err(|_| no_bytes(types, ty))?;
                for (field, val) in layout.fields.iter().zip(data.fields()) {
                    let Some(val) = val else { return Err(no_bytes(types, field.ty)) };
                    let at = offset + field.offset as usize;
                    match field.repr {
                        FieldRepr::Inline => work.push((at, field.ty, val)),
                        FieldRepr::BitsUnion { selector } => {
                            let given = val.ty(types);
                            let number = types.members(&field.ty).iter().position(|&m| m == given);
                            let number = number.ok_or_else(|| no_bytes(types, given))?;
                            out[at + selector as usize] = number as u8;
                            work.push((at, given, val));
                        }
                        FieldRepr::Pointer => return Err(no_bytes(types, field.ty)),
                    }
                }
            }
            _ => return Err(no_bytes(types, ty)),
        }
    }
    Ok(out)
}

/// The value of type `ty` in the bytes.
pub(super) fn decode(types: &Types, ty: Type, bytes: &[u8]) -> Eval<Val> {
    decode_at(types, ty, bytes, 0)
}

fn decode_at(types: &Types, ty: Type, bytes: &[u8], depth: usize) -> Eval<Val> {
    if depth > MAX_INLINE_DEPTH {
        return Err(Fault::Type(format!("`{}` nests too deep to be read", types.display(ty))).into());
    }
    if types.is_singleton(ty) {
        return Ok(Val::Singleton(ty));
    }
    if types.primitive(ty).is_some() || ty.as_low().is_some() {
        let mut word = [0; 16];
        let size = bytes.len().min(16);
        word[..size].copy_from_slice(&bytes[..size]);
        let bits = u128::from_le_bytes(word);
        // A `Bool` is its lowest bit.
        return Ok(Val::bits(types, ty, if ty == Type::BOOL { bits & 1 } else { bits }));
    }
    let layout = types.layout(ty).map_err(|_| no_bytes(types, ty))?;
    let mut fields = Vec::with_capacity(layout.fields.len());
    for field in &layout.fields {
        let at = field.offset as usize;
        let Some(part) = bytes.get(at..at + field.size as usize) else { return Err(no_bytes(types, ty)) };
        fields.push(match field.repr {
            FieldRepr::Inline => Some(decode_at(types, field.ty, part, depth + 1)?),
            FieldRepr::BitsUnion { selector } => {
                let number = part.get(selector as usize).copied().unwrap_or(0);
                let Some(&member) = types.members(&field.ty).get(usize::from(number)) else {
                    return Err(Fault::Type(format!(
                        "{number} is not a selector of `{}`",
                        types.display(field.ty)
                    ))
                    .into());
                };
                let size = size_of(types, member)? as usize;
                Some(decode_at(types, member, &part[..size.min(part.len())], depth + 1)?)
            }
            // Zero bytes as a reference mean undefined.
            FieldRepr::Pointer => None,
        });
    }
    Ok(Val::aggregate(ty, fields))
}

/// Whether a value in a field of a mutable object or in an element counts as undefined: the rule of
/// [`Types::first_reference`]. The enclosing layout determines how the value is stored: a struct that
/// contains itself is a reference there.
pub(super) fn is_undefined(types: &Types, ty: Type, repr: FieldRepr, val: &Val) -> bool {
    let (mut ty, mut repr, mut val) = (ty, repr, val);
    while let (FieldRepr::Inline, Val::Struct(data)) = (repr, val) {
        let (Some(first), Ok(layout)) = (types.first_reference(ty, repr), types.layout(ty)) else {
            return false;
        };
        let fields = layout.fields.iter().zip(data.fields());
        let mut around = fields.filter(|(at, _)| (at.offset..at.offset + at.size).contains(&first));
        match around.next() {
            Some((at, Some(inner))) => (ty, repr, val) = (at.ty, at.repr, inner),
            Some((_, None)) => return true,
            None => return false,
        }
    }
    false
}

/// The initial value of a field of this type: all bits zero, or undefined.
pub(super) fn fresh(types: &Types, ty: Type, repr: FieldRepr) -> Option<Val> {
    let ty = match repr {
        FieldRepr::Pointer => return None,
        FieldRepr::Inline => ty,
        FieldRepr::BitsUnion { .. } => *types.members(&ty).first()?,
    };
    let size = types.layout(ty).ok()?.size as usize;
    decode(types, ty, &vec![0; size]).ok()
}

fn no_bytes(types: &Types, ty: Type) -> super::error::Stop {
    debug_assert!(!matches!(types.kind(ty), TypeKind::Low(_)));
    Fault::Unsupported(format!("values of type `{}` have no bytes in raw memory", types.display(ty))).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use brolga_ir::Context;
    use brolga_ir::types::{DeclKind, FieldDecl};

    #[test]
    fn values_survive_the_way_through_bytes() {
        let cx = Context::new();
        let t = &cx.types;
        let union = t.union(&[Type::NOTHING, Type::INT16]).unwrap();
        let decl = t.declare(cx.names.intern("Rec"), &[]).unwrap();
        let fields = [("a", Type::INT8), ("b", union), ("c", Type::FLOAT64)]
            .map(|(name, ty)| FieldDecl::new(cx.names.intern(name), ty));
        t.define(decl, Type::ANY, DeclKind::Struct { mutable: false, fields: fields.into() }).unwrap();
        let rec = t.nominal(decl, &[]).unwrap();
        for b in [Val::NOTHING, Val::bits(t, Type::INT16, 0xfffe)] {
            let a = Val::bits(t, Type::INT8, 0x80);
            let val = Val::aggregate(rec, vec![Some(a), Some(b.clone()), Some(Val::float64(2.5))]);
            let bytes = encode(t, rec, &val).unwrap();
            assert_eq!(bytes.len(), 16);
            let Val::Struct(back) = decode(t, rec, &bytes).unwrap() else { panic!("a struct") };
            assert_eq!(back.fields()[1].as_ref().map(|v| v.ty(t)), Some(b.ty(t)));
            assert_eq!(back.fields()[2].as_ref().and_then(Val::as_bits), Some(2.5f64.to_bits().into()));
        }
        assert!(has_bytes(t, rec));
        assert!(!has_bytes(t, Type::STRING));
        assert!(!has_bytes(t, union));
    }
}
