//! `Float32` and `Float64`: by Rust's `f32` and `f64`, which are IEEE's.

use super::Expected;

macro_rules! formats {
    ($($function:ident $float:ty, $bits:ty;)*) => {$(
        pub(super) fn $function(name: &str, args: &[u128]) -> Option<Expected> {
            let operand = |index: usize| <$float>::from_bits(args.get(index).copied().unwrap_or(0) as $bits);
            let (x, y, z) = (operand(0), operand(1), operand(2));
            let sign = 1 << (<$bits>::BITS - 1);
            // Moving bits keeps every payload.
            let moved = |bits: $bits| Some(Expected::Bits(bits.into()));
            let truth = |value: bool| Some(Expected::Bits(value.into()));
            let value = match name {
                "neg_float" => return moved(x.to_bits() ^ sign),
                "abs_float" => return moved(x.to_bits() & !sign),
                "copysign_float" => return moved(x.to_bits() & !sign | y.to_bits() & sign),
                "eq_float" => return truth(x == y),
                "ne_float" => return truth(x != y),
                "lt_float" => return truth(x < y),
                "le_float" => return truth(x <= y),
                "fpiseq" => return truth(x.is_nan() && y.is_nan() || x.to_bits() == y.to_bits()),
                "add_float" => x + y,
                "sub_float" => x - y,
                "mul_float" => x * y,
                "div_float" => x / y,
                // C's fmod, which is exact.
                "rem_float" => x % y,
                // A NaN wins, and -0.0 is less than 0.0.
                "min_float" | "max_float" if x.is_nan() || y.is_nan() => <$float>::NAN,
                "min_float" if x == y => if x.is_sign_negative() { x } else { y },
                "max_float" if x == y => if x.is_sign_negative() { y } else { x },
                "min_float" => if x < y { x } else { y },
                "max_float" => if x < y { y } else { x },
                "fma_float" => x.mul_add(y, z),
                "muladd_float" => {
                    let (once, twice) = (x.mul_add(y, z), x * y + z);
                    return Some(match (once.is_nan(), twice.is_nan()) {
                        (true, true) => Expected::Nan,
                        // inf * 0 aside, rounding the product may make an infinity that fusing does not.
                        (true, false) | (false, true) => Expected::Open,
                        _ => Expected::Either(once.to_bits().into(), twice.to_bits().into()),
                    });
                }
                "sqrt_llvm" => x.sqrt(),
                "ceil_llvm" => x.ceil(),
                "floor_llvm" => x.floor(),
                "trunc_llvm" => x.trunc(),
                "rint_llvm" => x.round_ties_even(),
                _ => return None,
            };
            Some(if value.is_nan() { Expected::Nan } else { Expected::Bits(value.to_bits().into()) })
        }
    )*};
}

formats! {
    of_32 f32, u32;
    of_64 f64, u64;
}
