//! Conversions: by Rust's `as`, which rounds to nearest and saturates.

use super::{Expected, Kind, half};

/// The value of a float.
pub(super) fn to_f64(bits: u32, value: u128) -> f64 {
    match bits {
        16 => half::to_f64(value),
        32 => f32::from_bits(value as u32).into(),
        _ => f64::from_bits(value as u64),
    }
}

/// The integer that the bits are, with the sign that the width gives them.
fn signed(bits: u32, value: u128) -> i128 {
    match bits {
        8 => (value as i8).into(),
        16 => (value as i16).into(),
        32 => (value as i32).into(),
        64 => (value as i64).into(),
        _ => value as i128,
    }
}

macro_rules! to_int {
    ($value:expr, $bits:expr, $($width:literal $ty:ty as $unsigned:ty),*) => {
        match $bits {
            $($width => ($value as $ty) as $unsigned as u128,)*
            _ => 0,
        }
    };
}

/// The result of the conversion of this Julia name.
pub(crate) fn convert(name: &str, from: Kind, to: Kind, value: u128) -> Option<Expected> {
    let mask = u128::MAX >> (128 - to.bits());
    let is_nan = |value: u128| matches!(from, Kind::Float(bits) if to_f64(bits, value).is_nan());
    Some(Expected::Bits(match name {
        // `Bool` keeps its lowest bit.
        "bitcast" | "trunc_int" if to == Kind::Bool => value & 1,
        "bitcast" | "trunc_int" | "zext_int" => value & mask,
        "sext_int" if from == Kind::Bool => value,
        "sext_int" => signed(from.bits(), value) as u128 & mask,
        "fptosi" => {
            let value = to_f64(from.bits(), value);
            to_int!(value, to.bits(), 8 i8 as u8, 16 i16 as u16, 32 i32 as u32, 64 i64 as u64, 128 i128 as u128)
        }
        "fptoui" => {
            let value = to_f64(from.bits(), value);
            to_int!(value, to.bits(), 8 u8 as u8, 16 u16 as u16, 32 u32 as u32, 64 u64 as u64, 128 u128 as u128)
        }
        "sitofp" => {
            let value = if from == Kind::Bool { value as i128 } else { signed(from.bits(), value) };
            match to.bits() {
                // Below the limit `f64` holds an integer that a half can be exactly; above, both are infinite.
                16 => half::nearest(value as f64),
                32 => (value as f32).to_bits().into(),
                _ => (value as f64).to_bits().into(),
            }
        }
        "uitofp" => match to.bits() {
            16 => half::nearest(value as f64),
            32 => (value as f32).to_bits().into(),
            _ => (value as f64).to_bits().into(),
        },
        "fptrunc" | "fpext" if is_nan(value) => return Some(Expected::Nan),
        "fptrunc" | "fpext" => {
            let value = to_f64(from.bits(), value);
            match to.bits() {
                16 => half::nearest(value),
                32 => (value as f32).to_bits().into(),
                _ => value.to_bits().into(),
            }
        }
        _ => return None,
    }))
}
