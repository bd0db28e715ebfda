//! Integers: each width by the Rust type of that width.

use super::Expected;

macro_rules! widths {
    ($($function:ident $signed:ty, $unsigned:ty;)*) => {$(
        pub(super) fn $function(name: &str, args: &[u128]) -> Option<Expected> {
            const BITS: u128 = <$unsigned>::BITS as u128;
            let second = args.get(1).copied().unwrap_or(0);
            let (u, v) = (args[0] as $unsigned, second as $unsigned);
            let (x, y) = (u as $signed, v as $signed);
            let of_signed = |value: $signed| Expected::Bits(value as $unsigned as u128);
            let of_unsigned = |value: $unsigned| Expected::Bits(value as u128);
            let of_bool = |value: bool| Expected::Bits(value.into());
            let signed_pair =
                |(value, over): ($signed, bool)| Expected::Pair(value as $unsigned as u128, over);
            let unsigned_pair = |(value, over): ($unsigned, bool)| Expected::Pair(value as u128, over);
            let or_throw = |value: Option<Expected>| value.unwrap_or(Expected::Throws);
            Some(match name {
                "neg_int" => of_signed(x.wrapping_neg()),
                "not_int" => of_unsigned(!u),
                "bswap_int" => of_unsigned(u.swap_bytes()),
                "bitreverse_int" => of_unsigned(u.reverse_bits()),
                "ctpop_int" => Expected::Bits(u.count_ones().into()),
                "ctlz_int" => Expected::Bits(u.leading_zeros().into()),
                "cttz_int" => Expected::Bits(u.trailing_zeros().into()),
                "and_int" => of_unsigned(u & v),
                "or_int" => of_unsigned(u | v),
                "xor_int" => of_unsigned(u ^ v),
                "add_int" => of_signed(x.wrapping_add(y)),
                "sub_int" => of_signed(x.wrapping_sub(y)),
                "mul_int" => of_signed(x.wrapping_mul(y)),
                "flipsign_int" => of_signed(if y < 0 { x.wrapping_neg() } else { x }),
                // The count has its own type, so it is looked at in full.
                "shl_int" => of_unsigned(if second < BITS { u << second } else { 0 }),
                "lshr_int" => of_unsigned(if second < BITS { u >> second } else { 0 }),
                "ashr_int" => of_signed(x >> second.min(BITS - 1)),
                "sdiv_int" | "checked_sdiv_int" => or_throw(x.checked_div(y).map(of_signed)),
                "udiv_int" | "checked_udiv_int" => or_throw(u.checked_div(v).map(of_unsigned)),
                "srem_int" | "checked_srem_int" if y == -1 => Expected::Bits(0),
                "srem_int" | "checked_srem_int" => or_throw(x.checked_rem(y).map(of_signed)),
                "urem_int" | "checked_urem_int" => or_throw(u.checked_rem(v).map(of_unsigned)),
                "eq_int" => of_bool(u == v),
                "ne_int" => of_bool(u != v),
                "slt_int" => of_bool(x < y),
                "sle_int" => of_bool(x <= y),
                "ult_int" => of_bool(u < v),
                "ule_int" => of_bool(u <= v),
                "checked_sadd_int" => signed_pair(x.overflowing_add(y)),
                "checked_ssub_int" => signed_pair(x.overflowing_sub(y)),
                "checked_smul_int" => signed_pair(x.overflowing_mul(y)),
                "checked_uadd_int" => unsigned_pair(u.overflowing_add(v)),
                "checked_usub_int" => unsigned_pair(u.overflowing_sub(v)),
                "checked_umul_int" => unsigned_pair(u.overflowing_mul(v)),
                _ => return None,
            })
        }
    )*};
}

widths! {
    of_8 i8, u8;
    of_16 i16, u16;
    of_32 i32, u32;
    of_64 i64, u64;
    of_128 i128, u128;
}

/// The operations that Julia uses on `Bool`.
pub(super) fn of_bool(name: &str, args: &[u128]) -> Option<Expected> {
    let x = args[0] == 1;
    let y = args.get(1) == Some(&1);
    let value = match name {
        "not_int" => !x,
        "and_int" => x && y,
        "or_int" => x || y,
        "xor_int" | "ne_int" => x != y,
        "eq_int" => x == y,
        "slt_int" | "ult_int" => !x && y,
        "sle_int" | "ule_int" => !x || y,
        _ => return None,
    };
    Some(Expected::Bits(value.into()))
}
