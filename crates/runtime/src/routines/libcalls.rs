//! Arithmetic that neither the processor nor Cranelift provides: 128-bit division and conversions, half
//! precision, and the rounding and fused operations on processors without the instructions.
//!
//! A 128-bit integer is passed as two halves, low first, and returned through a pointer, because C
//! conventions differ in how they pass one. Nothing here panics: division by zero returns 0 (compiled code
//! has checked before), the smallest value divided by -1 wraps, and conversions out of range saturate.
//!
//! Half precision shares no code with the reference semantics in `ir`; tests compare the two.

use std::cell::Cell;

/// Where a routine stores a 128-bit result: low half, high half.
pub(crate) type Wide = Cell<[u64; 2]>;

fn signed(low: u64, high: u64) -> i128 {
    unsigned(low, high).cast_signed()
}

fn unsigned(low: u64, high: u64) -> u128 {
    u128::from(high) << 64 | u128::from(low)
}

fn store(out: &Wide, value: u128) {
    out.set([value as u64, (value >> 64) as u64]);
}

macro_rules! division {
    ($name:ident, $join:ident, $operation:ident) => {
        pub(crate) extern "C" fn $name(out: &Wide, al: u64, ah: u64, bl: u64, bh: u64) {
            let (a, b) = ($join(al, ah), $join(bl, bh));
            // The wrapping operation's only remaining failure is division by zero.
            store(out, if b == 0 { 0 } else { a.$operation(b) as u128 });
        }
    };
}

division!(brolga_i128_div, signed, wrapping_div);
division!(brolga_i128_rem, signed, wrapping_rem);
division!(brolga_u128_div, unsigned, wrapping_div);
division!(brolga_u128_rem, unsigned, wrapping_rem);

pub(crate) extern "C" fn brolga_i128_to_f32(low: u64, high: u64) -> f32 {
    signed(low, high) as f32
}

pub(crate) extern "C" fn brolga_i128_to_f64(low: u64, high: u64) -> f64 {
    signed(low, high) as f64
}

pub(crate) extern "C" fn brolga_u128_to_f32(low: u64, high: u64) -> f32 {
    unsigned(low, high) as f32
}

pub(crate) extern "C" fn brolga_u128_to_f64(low: u64, high: u64) -> f64 {
    unsigned(low, high) as f64
}

pub(crate) extern "C" fn brolga_f64_to_i128(out: &Wide, value: f64) {
    store(out, (value as i128).cast_unsigned());
}

pub(crate) extern "C" fn brolga_f64_to_u128(out: &Wide, value: f64) {
    store(out, value as u128);
}

pub(crate) extern "C" fn brolga_f16_to_f32(bits: u32) -> f32 {
    f16_to_f32(bits as u16)
}

pub(crate) extern "C" fn brolga_f32_to_f16(value: f32) -> u32 {
    // Widening is exact, so this rounds only once.
    f64_to_f16(f64::from(value)).into()
}

pub(crate) extern "C" fn brolga_f64_to_f16(value: f64) -> u32 {
    f64_to_f16(value).into()
}

/// The value of a half-precision number, exactly. A NaN keeps its sign and payload and becomes quiet.
pub(crate) fn f16_to_f32(bits: u16) -> f32 {
    let sign = u32::from(bits & 0x8000) << 16;
    let magnitude = u32::from(bits & 0x7fff);
    match magnitude {
        // A subnormal is a multiple of 2^-24, which single precision represents exactly.
        0..0x400 => f32::from_bits(sign | (magnitude as f32 * f32::from_bits(0x3380_0000)).to_bits()),
        0x400..0x7c00 => f32::from_bits(sign | ((magnitude << 13) + (112 << 23))),
        0x7c00 => f32::from_bits(sign | 0x7f80_0000),
        _ => f32::from_bits(sign | 0x7fc0_0000 | magnitude << 13),
    }
}

/// The half-precision number nearest to a value, ties to even. A NaN keeps its sign and the upper bits of its payload.
pub(crate) fn f64_to_f16(value: f64) -> u16 {
    let bits = value.to_bits();
    let sign = (bits >> 48) as u16 & 0x8000;
    let magnitude = f64::from_bits(bits & (u64::MAX >> 1));
    if magnitude.is_nan() {
        return sign | 0x7e00 | (bits >> 42) as u16 & 0x3ff;
    }
    // 65520 is halfway between the largest finite number and its would-be successor; the tie becomes
    // infinity.
    if magnitude >= 65520.0 {
        return sign | 0x7c00;
    }
    // Adding and subtracting a power of two whose last place is the result's makes the processor round. The
    // last place is 2^-10 of the value's binade, and 2^-24 for subnormals.
    let binade = ((magnitude.to_bits() >> 52) as i64 - 1023).max(-14);
    let place = f64::from_bits(((binade - 10 + 52 + 1023) as u64) << 52);
    let rounded = (magnitude + place) - place;
    let binade = ((rounded.to_bits() >> 52) as i64 - 1023).max(-15);
    let encoded = match binade {
        // Below the least normal number the encoding counts multiples of 2^-24.
        -15 => (rounded * f64::from(1u32 << 24)) as u16,
        _ => ((binade + 15) as u16) << 10 | (rounded.to_bits() >> 42) as u16 & 0x3ff,
    };
    sign | encoded
}

macro_rules! float_operations {
    ($($name:ident: $float:ident $method:ident;)*) => {
        $(pub(crate) extern "C" fn $name(value: $float) -> $float {
            value.$method()
        })*
    };
}

float_operations! {
    brolga_ceil_f32: f32 ceil;
    brolga_ceil_f64: f64 ceil;
    brolga_floor_f32: f32 floor;
    brolga_floor_f64: f64 floor;
    brolga_trunc_f32: f32 trunc;
    brolga_trunc_f64: f64 trunc;
    brolga_nearest_f32: f32 round_ties_even;
    brolga_nearest_f64: f64 round_ties_even;
}

pub(crate) extern "C" fn brolga_fma_f32(a: f32, b: f32, c: f32) -> f32 {
    a.mul_add(b, c)
}

pub(crate) extern "C" fn brolga_fma_f64(a: f64, b: f64, c: f64) -> f64 {
    a.mul_add(b, c)
}

pub(crate) extern "C" fn brolga_rem_f32(a: f32, b: f32) -> f32 {
    a % b
}

pub(crate) extern "C" fn brolga_rem_f64(a: f64, b: f64) -> f64 {
    a % b
}

#[cfg(test)]
mod tests {
    use super::*;

    fn divide(routine: extern "C" fn(&Wide, u64, u64, u64, u64), a: u128, b: u128) -> u128 {
        let out = Wide::new([0; 2]);
        routine(&out, a as u64, (a >> 64) as u64, b as u64, (b >> 64) as u64);
        let [low, high] = out.get();
        unsigned(low, high)
    }

    #[test]
    fn division_covers_every_edge() {
        let smallest = i128::MIN as u128;
        assert_eq!(divide(brolga_i128_div, smallest, u128::MAX), smallest);
        assert_eq!(divide(brolga_i128_rem, smallest, u128::MAX), 0);
        assert_eq!(divide(brolga_i128_div, (-7i128) as u128, 2) as i128, -3);
        assert_eq!(divide(brolga_i128_rem, (-7i128) as u128, 2) as i128, -1);
        assert_eq!(divide(brolga_u128_div, u128::MAX, 1 << 100), (1 << 28) - 1);
        assert_eq!(divide(brolga_u128_rem, u128::MAX, 1 << 100), (1 << 100) - 1);
        for routine in [brolga_i128_div, brolga_i128_rem, brolga_u128_div, brolga_u128_rem] {
            assert_eq!(divide(routine, 5, 0), 0);
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "arithmetic, and much of it")]
    fn half_precision_agrees_with_the_reference_for_every_number() {
        for bits in 0..=u16::MAX {
            let value = f64::from(f16_to_f32(bits));
            let reference = brolga_ir::scalar::f16_to_f64(bits);
            assert!(
                value.to_bits() == reference.to_bits() || value.is_nan() && reference.is_nan(),
                "{bits:#x}"
            );
            if !value.is_nan() {
                assert_eq!(f64_to_f16(value), bits);
            }
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "arithmetic, and much of it")]
    fn rounding_to_half_precision_agrees_with_the_reference_around_every_number_and_every_tie() {
        let check = |value: f64| {
            let (ours, reference) = (f64_to_f16(value), brolga_ir::scalar::f64_to_f16(value));
            assert_eq!(ours, reference, "{value:e}");
        };
        for bits in 0..0x7c00u16 {
            let (this, next) = (f64::from(f16_to_f32(bits)), f64::from(f16_to_f32(bits + 1)));
            let middle = if next.is_infinite() { 65520.0 } else { (this + next) / 2.0 };
            for value in [middle, middle.next_down(), middle.next_up(), this.next_up()] {
                check(value);
                check(-value);
            }
        }
        for value in
            [0.0, -0.0, f64::MAX, f64::MIN_POSITIVE, f64::INFINITY, f64::from_bits(0xfff8_1234_0000_0000)]
        {
            check(value);
        }
    }
}
