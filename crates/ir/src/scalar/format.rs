//! The binary float formats: taking bits apart, and the one routine that rounds.
//!
//! ```text
//! bit   [sign][ exponent ][ fraction ]         F16: 1+5+10    F32: 1+8+23    F64: 1+11+52
//! value (-1)^sign × 2^(exponent - bias) × 1.fraction      exponent 0: subnormal, 0.fraction × 2^(1 - bias)
//!                                                         exponent all ones: infinity, or NaN if fraction ≠ 0
//! ```
//!
//! [`Format::round`] returns the float nearest to `magnitude × 2^exponent`, ties to the even one, for an
//! exact integer magnitude. Every conversion that can be inexact goes through it: integers of 128 bits,
//! `Float64` results of narrower arithmetic, format changes. There is no second rounding anywhere on such a
//! path.
//!
//! `half` and `rustc_apfloat` are not used: the routine is twenty lines, and the reference must not share its
//! rounding with anything that generated code may call.

use super::int;

/// A binary interchange format.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Format {
    fraction_bits: u32,
    exponent_bits: u32,
}

/// A finite float, exactly: `±magnitude × 2^exponent`.
pub(super) struct Finite {
    pub(super) negative: bool,
    pub(super) magnitude: u128,
    pub(super) exponent: i32,
}

impl Format {
    pub(super) const F16: Format = Format { fraction_bits: 10, exponent_bits: 5 };
    pub(super) const F32: Format = Format { fraction_bits: 23, exponent_bits: 8 };
    pub(super) const F64: Format = Format { fraction_bits: 52, exponent_bits: 11 };

    /// The bits of positive infinity: an exponent of all ones.
    fn infinity(&self) -> u128 {
        int::mask(self.exponent_bits) << self.fraction_bits
    }

    fn quiet_bit(&self) -> u128 {
        1 << (self.fraction_bits - 1)
    }

    /// The exponent of the least normal number, `1 - bias`.
    fn least_exponent(&self) -> i32 {
        2 - (1 << (self.exponent_bits - 1))
    }

    /// The sign bit.
    pub(super) fn sign(&self) -> u128 {
        1 << (self.fraction_bits + self.exponent_bits)
    }

    pub(super) fn is_nan(&self, bits: u128) -> bool {
        bits & !self.sign() > self.infinity()
    }

    pub(super) fn is_negative(&self, bits: u128) -> bool {
        bits & self.sign() != 0
    }

    /// The NaN produced by an operation without a NaN operand.
    pub(super) fn default_nan(&self) -> u128 {
        self.infinity() | self.quiet_bit()
    }

    /// A NaN with its quiet bit set.
    pub(super) fn quieted(&self, nan: u128) -> u128 {
        nan | self.quiet_bit()
    }

    /// The parts of a finite float; `None` for infinities and NaN.
    pub(super) fn finite(&self, bits: u128) -> Option<Finite> {
        let unsigned = bits & !self.sign();
        if unsigned >= self.infinity() {
            return None;
        }
        let fraction = bits & int::mask(self.fraction_bits);
        let field = (unsigned >> self.fraction_bits) as i32;
        // A subnormal has the exponent of the least normal number and no leading bit.
        let leading = if field == 0 { 0 } else { 1 << self.fraction_bits };
        Some(Finite {
            negative: self.is_negative(bits),
            magnitude: leading | fraction,
            exponent: self.least_exponent() + (field.max(1) - 1) - self.fraction_bits.cast_signed(),
        })
    }

    /// The nearest float; ties go to even, overflow to infinity.
    pub(super) fn round(&self, Finite { negative, magnitude, exponent }: Finite) -> u128 {
        let sign = if negative { self.sign() } else { 0 };
        if magnitude == 0 {
            return sign;
        }
        let length = 128 - magnitude.leading_zeros().cast_signed();
        // The exponent of the leading bit; a subnormal result keeps the least one and has no leading bit.
        let binade = (exponent + length - 1).max(self.least_exponent());
        // The result is a multiple of 2^(binade - fraction_bits): this many bits of the magnitude are below
        // it.
        let dropped = binade - self.fraction_bits.cast_signed() - exponent;
        let significand = match dropped {
            ..=0 => magnitude.checked_shl(dropped.unsigned_abs()).unwrap_or(0),
            1..=128 => {
                let dropped = dropped.unsigned_abs();
                let kept = magnitude.checked_shr(dropped).unwrap_or(0);
                let rest = magnitude & int::mask(dropped);
                let half = 1 << (dropped - 1);
                kept + u128::from(rest > half || (rest == half && kept & 1 == 1))
            }
            _ => 0,
        };
        // The leading bit, and a carry from rounding, increment the exponent field.
        let steps = (binade - self.least_exponent()).unsigned_abs();
        let bits = (u128::from(steps) << self.fraction_bits) + significand;
        sign | bits.min(self.infinity())
    }

    /// The same number in another format, rounded if narrower. A NaN keeps its sign and the upper
    /// bits of its payload, and becomes quiet.
    pub(super) fn to(&self, target: &Format, bits: u128) -> u128 {
        if let Some(number) = self.finite(bits) {
            return target.round(number);
        }
        let sign = if self.is_negative(bits) { target.sign() } else { 0 };
        let fraction = bits & int::mask(self.fraction_bits);
        if fraction == 0 {
            return sign | target.infinity();
        }
        let payload = (fraction << (64 - self.fraction_bits)) >> (64 - target.fraction_bits);
        sign | target.default_nan() | payload
    }

    /// The value as a `Float64`, exactly.
    pub(super) fn widen(&self, bits: u128) -> f64 {
        f64::from_bits(self.to(&Format::F64, bits) as u64)
    }

    /// The float nearest to a `Float64`.
    pub(super) fn narrow(&self, value: f64) -> u128 {
        Format::F64.to(self, u128::from(value.to_bits()))
    }
}

/// The bits of the `Float16` nearest to a number, ties to even. A NaN keeps its sign and the upper bits of
/// its payload.
pub fn f64_to_f16(value: f64) -> u16 {
    Format::F16.narrow(value) as u16
}

/// The value of a `Float16` given by its bits, exactly.
pub fn f16_to_f64(bits: u16) -> f64 {
    Format::F16.widen(u128::from(bits))
}
