//! Fields of objects, as values.

use std::mem::MaybeUninit;

use crate::error::{BrolgaError, fenced};
use crate::object::BrolgaObject;
use crate::out::{given, place};
use crate::value::{BrolgaKind, BrolgaValue, unboxed};

/// Returns a field of a struct by its number, from 0; `nothing` for a field that is not set.
#[unsafe(no_mangle)]
#[must_use]
pub extern "C" fn brolga_object_field(
    object: Option<&BrolgaObject>,
    index: usize,
    value: Option<&mut MaybeUninit<BrolgaValue>>,
) -> Option<Box<BrolgaError>> {
    fenced(|| {
        let (object, value) = (given(object, "object")?, place(value, "value")?);
        value.write(object.look(|scope, root| {
            let of = root.get(scope);
            let desc = of.desc();
            let types = &desc.context().types;
            let field = desc.ty().and_then(|ty| types.fields(ty)?.get(index)).map(|field| field.ty);
            let name = field.map(|ty| types.display(ty).to_string()).unwrap_or_default();
            let bits = match BrolgaKind::of_name(&name) {
                BrolgaKind::Bool | BrolgaKind::Int8 | BrolgaKind::Uint8 => u64::from(of.bits::<u8>(index)?),
                BrolgaKind::Int16 | BrolgaKind::Uint16 => u64::from(of.bits::<u16>(index)?),
                BrolgaKind::Int32 | BrolgaKind::Uint32 | BrolgaKind::Float32 | BrolgaKind::Char => {
                    u64::from(of.bits::<u32>(index)?)
                }
                BrolgaKind::Nothing => 0,
                BrolgaKind::Object => {
                    return match of.field(index)? {
                        Some(found) => unboxed(scope, &object.runtime, found),
                        None => BrolgaValue::from_bits(BrolgaKind::Nothing, 0),
                    };
                }
                _ => of.bits::<u64>(index)?,
            };
            BrolgaValue::from_bits(BrolgaKind::of_name(&name), bits)
        })?);
        Ok(())
    })
}
