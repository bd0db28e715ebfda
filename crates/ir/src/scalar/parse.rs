//! Numbers in text, as C's `strtod` reads them, for Julia's run time.

use std::str::FromStr;

/// A format of floats, by its precision and its exponents.
pub trait Format: FromStr {
    /// The bits of the significand, the first one included.
    const PRECISION: i64;
    /// The exponents of the smallest and of the largest power of two that are normal numbers.
    const EXPONENTS: (i64, i64);
    /// The exact conversion of a number that the format contains, or of an infinity.
    fn exactly(value: f64) -> Self;
}

impl Format for f64 {
    const PRECISION: i64 = 53;
    const EXPONENTS: (i64, i64) = (-1022, 1023);

    fn exactly(value: f64) -> f64 {
        value
    }
}

impl Format for f32 {
    const PRECISION: i64 = 24;
    const EXPONENTS: (i64, i64) = (-126, 127);

    fn exactly(value: f64) -> f32 {
        value as f32
    }
}

/// The number that a text spells: decimal, hexadecimal (`0x1.8p3`), `inf`, `nan`, with optional white space
/// around it. `None` for any other text.
pub fn parse_float<T: Format>(text: &[u8]) -> Option<T> {
    // C's white space includes the vertical tab; Rust's does not.
    let is_space = |byte: &u8| byte.is_ascii_whitespace() || *byte == 0x0b;
    let start = text.iter().position(|byte| !is_space(byte))?;
    let end = text.iter().rposition(|byte| !is_space(byte))?;
    let text = std::str::from_utf8(&text[start..=end]).ok()?;
    let (negative, digits) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    match digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        Some(digits) => hexadecimal::<T>(negative, digits),
        None => text.parse().ok(),
    }
}

/// `1.8p3`: hexadecimal digits and a decimal exponent of 2, rounded once to nearest, ties to even.
fn hexadecimal<T: Format>(negative: bool, text: &str) -> Option<T> {
    let (digits, exponent) = match text.split_once(['p', 'P']) {
        Some((digits, exponent)) => {
            let shown = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
            if shown.is_empty() || !shown.bytes().all(|byte| byte.is_ascii_digit()) {
                return None;
            }
            // Exponents out of range make the result zero or infinite, whatever the digits.
            let size: i64 = shown.parse().unwrap_or(i64::MAX / 4).min(i64::MAX / 4);
            (digits, if exponent.starts_with('-') { -size } else { size })
        }
        None => (text, 0),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    // The leading 60 bits, whether a bit after them is set, and the power of two of the last of them.
    let (mut bits, mut rest, mut scale) = (0u64, false, exponent);
    for (n, digit) in whole.chars().chain(fraction.chars()).enumerate() {
        let digit = u64::from(digit.to_digit(16)?);
        let is_whole = n < whole.len();
        if bits >> 56 == 0 {
            bits = bits << 4 | digit;
            scale -= if is_whole { 0 } else { 4 };
        } else {
            rest |= digit != 0;
            scale += if is_whole { 4 } else { 0 };
        }
    }
    let signed = |value: f64| T::exactly(if negative { -value } else { value });
    if bits == 0 {
        return Some(signed(0.0));
    }
    let shift = i64::from(bits.leading_zeros());
    // The significand, left-aligned; its last bit is set if the dropped digits are not all zero.
    let (bits, top) = (bits << shift | u64::from(rest), scale - shift + 63);
    let (least, most) = T::EXPONENTS;
    let kept = T::PRECISION - (least - top).max(0);
    if top > most {
        return Some(signed(f64::INFINITY));
    }
    if kept < 0 {
        return Some(signed(0.0));
    }
    let cut = 64 - kept;
    let (quotient, half) = ((u128::from(bits) >> cut) as u64, 1u128 << (cut - 1));
    let below = u128::from(bits) & (2 * half - 1);
    let up = below > half || below == half && quotient & 1 == 1;
    let power = top - 63 + cut;
    // Both factors are exact, and so is their product, unless it is infinite.
    let unit = if power < -1022 {
        f64::from_bits(1 << (power + 1074))
    } else {
        f64::from_bits(((power + 1023) as u64) << 52)
    };
    let value = (quotient + u64::from(up)) as f64 * unit;
    let is_infinite = top == most && (quotient + u64::from(up)) >> T::PRECISION != 0;
    Some(signed(if is_infinite { f64::INFINITY } else { value }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_whole_texts() {
        let known: [(&[u8], Option<f64>); 12] = [
            (b"1.5", Some(1.5)),
            (b" \t-2e3\n", Some(-2000.0)),
            (b".5", Some(0.5)),
            (b"5.", Some(5.0)),
            (b"+inf", Some(f64::INFINITY)),
            (b"1e400", Some(f64::INFINITY)),
            (b"", None),
            (b"   ", None),
            (b"1 2", None),
            (b"1x", None),
            (b"1\0", None),
            (b"\xff", None),
        ];
        for (text, number) in known {
            assert_eq!(parse_float::<f64>(text), number, "{text:?}");
        }
        assert!(parse_float::<f64>(b"NaN").is_some_and(f64::is_nan));
        assert_eq!(parse_float::<f32>(b"0.1"), Some(0.1f32));
    }

    #[test]
    fn hexadecimal_numbers_are_rounded_once() {
        let known: [(&[u8], Option<f64>); 17] = [
            (b"0x1f", Some(31.0)),
            (b"-0X1.8p3", Some(-12.0)),
            (b"0x.8", Some(0.5)),
            (b"0x10.P-4", Some(1.0)),
            (b"0x1p-1074", Some(f64::from_bits(1))),
            (b"0x1p-1075", Some(0.0)),
            (b"0x1.8p-1075", Some(f64::from_bits(1))),
            (b"0x1.fffffffffffffp1023", Some(f64::MAX)),
            (b"0x1.fffffffffffff8p1023", Some(f64::INFINITY)),
            (b"0x1.00000000000008p0", Some(1.0)),
            (b"0x1.000000000000080000001p0", Some(1.0 + f64::EPSILON)),
            (b"0x1p99999999999999999999", Some(f64::INFINITY)),
            (b"0x0p99999999999999999999", Some(0.0)),
            (b"0x", None),
            (b"0x1p", None),
            (b"0x1p+-3", None),
            (b"0xg", None),
        ];
        for (text, number) in known {
            assert_eq!(parse_float::<f64>(text), number, "{}", String::from_utf8_lossy(text));
        }
        assert_eq!(parse_float::<f32>(b"0x1.0000010000000001p0"), Some(1.0 + f32::EPSILON));
        assert_eq!(parse_float::<f32>(b"0x1.ffffffp127"), Some(f32::INFINITY));
        assert_eq!(parse_float::<f32>(b"0x1p-149"), Some(f32::from_bits(1)));
    }
}
