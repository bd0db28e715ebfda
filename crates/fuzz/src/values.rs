//! Random values of a type, mostly edge cases, which reveal wrong comparisons, widths or rounding.
//!
//! | type | edges |
//! |---|---|
//! | integers | 0, 1, -1, the least and the greatest of either sign, powers of two and their neighbours, small numbers |
//! | floats | ±0, ±1, the least and greatest subnormal and normal, ±∞, NaNs with payloads, small integers, halves |
//! | `Any` | edges of `Int64`, `Float64` and other numbers; rarely a value that is not a number |
//! | `Char` | one to four bytes long |
//! | `String`, `Symbol` | empty, quotes, escapes, beyond ASCII |
//!
//! A value is a [`Literal`], which every engine can convert to its own form.

use super::rng::Rng;
use brolga_ir::Const;
use brolga_ir::module::Literal;
use brolga_ir::types::PrimitiveRepr;
use brolga_ir::{Context, Type, TypeKind};

/// The texts that become strings.
const STRINGS: &[&str] =
    &["", "a", "text", "a \"quoted\" $word", "line\nbreak\ttab", "θ → ∞", "\\", "│ %1 = φ"];
/// The texts that become symbols; several of them are not identifiers.
const SYMBOLS: &[&str] = &["a", "b", "none", "+", "Not Found", "θ", "if", "x!"];

/// Bits of an integer of this width, mostly an edge case.
pub fn int_bits(rng: &mut Rng, bits: u16) -> u128 {
    let width = u32::from(bits);
    let power = 1u128 << rng.below(usize::from(bits));
    let value = match rng.below(12) {
        0 => 0,
        1 => 1,
        2 => u128::MAX,
        3 => 1 << (width - 1),
        4 => (1 << (width - 1)) - 1,
        5 => power,
        6 => power.wrapping_sub(1),
        7 => power.wrapping_neg(),
        8..10 => (rng.below(33) as u128).wrapping_sub(16),
        _ => rng.next_u128(),
    };
    value & mask(width)
}

/// Bits of a float of this width (16, 32 or 64), mostly an edge case.
pub fn float_bits(rng: &mut Rng, bits: u16) -> u128 {
    let fraction: u32 = match bits {
        16 => 10,
        32 => 23,
        _ => 52,
    };
    let sign = if rng.chance(50) { 1u128 << (bits - 1) } else { 0 };
    let infinity = mask(u32::from(bits) - 1) & !mask(fraction);
    let one = (infinity >> 1) & infinity;
    let magnitude = match rng.below(14) {
        0 => 0,
        1 => 1,
        2 => mask(fraction),
        3 => 1 << fraction,
        4 => infinity - 1,
        5 => infinity,
        6 => infinity | 1 << (fraction - 1) | (rng.next_u128() & mask(fraction)),
        7 => infinity | 1,
        8 => one,
        9..12 => {
            // A small integer or half of one: the exponent of a power of two, and the bits below it.
            let power = rng.below(6) as u128;
            one + ((power << fraction) | (rng.next_u128() & mask(fraction) & !mask(fraction - 4)))
        }
        _ => rng.next_u128() & mask(u32::from(bits) - 1),
    };
    sign | magnitude
}

/// The bits of a character: its UTF-8 bytes, left-aligned in 32 bits.
pub fn char_bits(rng: &mut Rng) -> u128 {
    const CHARS: &[char] = &['\0', 'a', 'Z', '\n', '\'', '"', '\\', 'é', 'θ', '│', '∞', '🐦', '\u{10ffff}'];
    let mut bytes = [0; 4];
    rng.pick(CHARS).copied().unwrap_or('a').encode_utf8(&mut bytes);
    u32::from_be_bytes(bytes).into()
}

/// A random value of a type; for `Any`, mostly a number. `None` for types without literals: pointers,
/// objects, other abstract types.
pub fn literal(rng: &mut Rng, cx: &Context, ty: Type) -> Option<Literal> {
    let types = &cx.types;
    let ty = if ty == Type::ANY { of_any_type(rng) } else { ty };
    if let Some((bits, repr)) = types.primitive(ty) {
        if types.pointee(ty).is_some() {
            return None;
        }
        let bits = match repr {
            PrimitiveRepr::Bool => u128::from(rng.chance(50)),
            PrimitiveRepr::Char => char_bits(rng),
            PrimitiveRepr::Float => float_bits(rng, bits),
            PrimitiveRepr::Signed | PrimitiveRepr::Unsigned | PrimitiveRepr::Bits => int_bits(rng, bits),
        };
        return Some(Literal::Const(Const::Bits { ty, bits }));
    }
    if types.is_singleton(ty) {
        return Some(Literal::Const(Const::Singleton(ty)));
    }
    let mut text = |texts: &[&str]| cx.names.intern(rng.pick(texts).copied().unwrap_or(""));
    match types.kind(ty) {
        _ if ty == Type::STRING => Some(Literal::Const(Const::String(text(STRINGS)))),
        _ if ty == Type::SYMBOL => Some(Literal::Const(Const::Symbol(text(SYMBOLS)))),
        TypeKind::Union(members) => {
            let member = rng.pick(members)?;
            literal(rng, cx, *member)
        }
        _ if types.is_concrete(ty) && !types.is_mutable(ty) => {
            let count = types.field_count(ty)?;
            let fields =
                (0..count).map(|n| literal(rng, cx, types.field_type(ty, n)?)).collect::<Option<_>>()?;
            Some(Literal::Aggregate { ty, fields })
        }
        _ => None,
    }
}

/// A type for a value of type `Any`: mostly a number type.
pub fn of_any_type(rng: &mut Rng) -> Type {
    const OFTEN: [Type; 4] = [Type::INT64, Type::FLOAT64, Type::INT64, Type::FLOAT64];
    const NUMBERS: [Type; 12] = [
        Type::BOOL,
        Type::INT8,
        Type::INT16,
        Type::INT32,
        Type::UINT8,
        Type::UINT16,
        Type::UINT32,
        Type::UINT64,
        Type::INT128,
        Type::FLOAT16,
        Type::FLOAT32,
        Type::FLOAT32,
    ];
    const OTHERS: [Type; 4] = [Type::NOTHING, Type::CHAR, Type::SYMBOL, Type::STRING];
    let list: &[Type] = match rng.below(40) {
        0 => &OTHERS,
        1..16 => &NUMBERS,
        _ => &OFTEN,
    };
    rng.pick(list).copied().unwrap_or(Type::INT64)
}

/// A random value for each of the types; `None` if one of them has no literals.
pub fn arguments(rng: &mut Rng, cx: &Context, types: &[Type]) -> Option<Vec<Literal>> {
    types.iter().map(|&ty| literal(rng, cx, ty)).collect()
}

fn mask(width: u32) -> u128 {
    u128::MAX.checked_shr(128 - width).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edges_of_floats_are_what_they_are_called() {
        let mut rng = Rng::new(3);
        let drawn: Vec<f64> = (0..2000).map(|_| f64::from_bits(float_bits(&mut rng, 64) as u64)).collect();
        let has = |test: fn(&f64) -> bool| drawn.iter().any(test);
        assert!(
            has(|x| *x == 0.0 && x.is_sign_negative()) && has(|x| x.is_infinite()) && has(|x| x.is_nan())
        );
        assert!(has(|x| x.is_subnormal()) && has(|x| *x == f64::MAX) && has(|x| *x == f64::MIN_POSITIVE));
        assert!(has(|x| *x == 1.0) && has(|x| *x == 1.5) && has(|x| *x == -2.0));
        assert!((0..100).all(|_| float_bits(&mut rng, 16) < 1 << 16));
    }

    #[test]
    fn integers_stay_in_their_width() {
        let mut rng = Rng::new(4);
        for bits in [8, 16, 32, 64] {
            assert!((0..500).all(|_| int_bits(&mut rng, bits) < 1 << bits));
        }
        assert!((0..500).any(|_| int_bits(&mut rng, 128) == 1 << 127));
    }

    #[test]
    fn literals_have_their_type() {
        let cx = Context::new();
        let mut rng = Rng::new(5);
        let inner = cx.types.tuple(&[Type::INT8, Type::NOTHING]).unwrap();
        let union = cx.types.union(&[Type::FLOAT32, inner]).unwrap();
        let outer = cx.types.tuple(&[Type::STRING, inner]).unwrap();
        assert!(matches!(literal(&mut rng, &cx, outer), Some(Literal::Aggregate { ty, .. }) if ty == outer));
        for _ in 0..50 {
            let ty = literal(&mut rng, &cx, union).unwrap().ty();
            assert!(ty == Type::FLOAT32 || ty == inner);
        }
        assert_eq!(literal(&mut rng, &cx, cx.types.ptr(Type::INT8).unwrap()), None);
        let drawn: Vec<Type> = (0..200).map(|_| literal(&mut rng, &cx, Type::ANY).unwrap().ty()).collect();
        assert!([Type::INT64, Type::FLOAT64, Type::BOOL, Type::NOTHING].iter().all(|ty| drawn.contains(ty)));
    }
}
