//! The result of every scalar intrinsic, from Rust's own arithmetic: nothing here knows `ir::scalar`.
//!
//! | file | operands |
//! |---|---|
//! | `int` | integers of 8 to 128 bits and `Bool`, by the Rust type of that width |
//! | `float` | `Float32` and `Float64`, by `f32` and `f64` |
//! | `half` | `Float16`, which Rust does not have, by a table of its 31,744 finite magnitudes |
//! | `convert` | from one to the other |
//!
//! Values travel as bits in the low end of a `u128`.

mod convert;
mod float;
mod half;
mod int;

pub(crate) use convert::convert;

/// The type of an operand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// `Bool`
    Bool,
    /// An integer of a width, of either sign.
    Int(u32),
    /// A float of a width.
    Float(u32),
}

impl Kind {
    pub(crate) fn bits(self) -> u32 {
        match self {
            Kind::Bool => 8,
            Kind::Int(bits) | Kind::Float(bits) => bits,
        }
    }
}

/// The result of a call of an intrinsic.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Expected {
    /// These bits.
    Bits(u128),
    /// These bits or those: the operation may round once or twice.
    Either(u128, u128),
    /// Some NaN.
    Nan,
    /// Zero of either sign.
    Zero,
    /// Bits and whether the operation overflowed.
    Pair(u128, bool),
    /// `DivideError`
    Throws,
    /// Nothing is promised.
    Open,
}

/// The result of the intrinsic of this Julia name, which is no conversion, for operands whose first has type `kind`.
pub(crate) fn expected(name: &str, kind: Kind, args: &[u128]) -> Option<Expected> {
    match kind {
        Kind::Bool => int::of_bool(name, args),
        Kind::Int(8) => int::of_8(name, args),
        Kind::Int(16) => int::of_16(name, args),
        Kind::Int(32) => int::of_32(name, args),
        Kind::Int(64) => int::of_64(name, args),
        Kind::Int(_) => int::of_128(name, args),
        Kind::Float(bits) => match name.strip_suffix("_fast") {
            Some(strict) => fast(strict, bits, args),
            None => of_float(name, bits, args),
        },
    }
}

fn of_float(name: &str, bits: u32, args: &[u128]) -> Option<Expected> {
    match bits {
        16 => half::operation(name, args),
        32 => float::of_32(name, args),
        _ => float::of_64(name, args),
    }
}

/// A `_fast` operation has the strict value where that is ordinary; NaN, infinity and the sign of zero are open.
fn fast(strict: &str, bits: u32, args: &[u128]) -> Option<Expected> {
    let ordinary = |value: u128| {
        let value = convert::to_f64(bits, value);
        value.is_finite()
    };
    let is_zero = |value: u128| convert::to_f64(bits, value) == 0.0;
    let value = of_float(strict, bits, args)?;
    let compares = ["eq_float", "ne_float", "lt_float", "le_float"].contains(&strict);
    Some(match value {
        _ if !args.iter().all(|&a| ordinary(a)) => Expected::Open,
        Expected::Bits(_) if compares => value,
        Expected::Bits(v) if is_zero(v) => Expected::Zero,
        Expected::Bits(v) if ordinary(v) => value,
        _ => Expected::Open,
    })
}

/// Values at the edges of a type.
pub(crate) fn edges(kind: Kind) -> Vec<u128> {
    let mask = |bits: u32| u128::MAX >> (128 - bits);
    let mut values = match kind {
        Kind::Bool => vec![0, 1],
        Kind::Int(bits) => {
            let top = 1u128 << (bits - 1);
            let odd = 0x0123_4567_89ab_cdef_fedc_ba98_7654_3210u128;
            vec![0, 1, 2, 7, top, top + 1, top - 1, top >> 1, mask(bits), mask(bits) - 1, odd & mask(bits)]
        }
        Kind::Float(bits) => {
            let fraction: u32 = match bits {
                16 => 10,
                32 => 23,
                _ => 52,
            };
            let infinity = mask(bits - 1) & !mask(fraction);
            let one = (infinity >> 1) & infinity;
            let magnitudes = [
                0,
                1,
                mask(fraction),
                1 << fraction,
                one - 1,
                one,
                one + 1,
                // 1.5, 2.5 and 3.5: halfway between integers.
                one | 1 << (fraction - 1),
                (one + (1 << fraction)) | 1 << (fraction - 2),
                (one + (1 << fraction)) | 3 << (fraction - 2),
                infinity - 1,
                infinity,
                infinity | 1,
                infinity | 1 << (fraction - 1),
                infinity | 1 << (fraction - 1) | 5,
            ];
            magnitudes.iter().flat_map(|&m| [m, m | 1 << (bits - 1)]).collect()
        }
    };
    values.sort_unstable();
    values.dedup();
    values
}
