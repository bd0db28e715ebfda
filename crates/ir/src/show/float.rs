//! Floats: the fewest digits that read back as the same value, in one of two forms.
//!
//! The value is `0.d₁d₂…dₙ × 10^point`; `point` alone chooses the form:
//!
//! ```text
//!                       point ≤ -4     -3 … 0       1 … most              above
//!                       1.0e-5         0.0001       123.4   100000.0      1.0e6
//! most                  6 for Float64 and Float32, 3 for Float16
//! exponent letter       e; f for Float32 where the text or the enclosing array states the type
//! type mark             none for Float64; f0 after a Float32 without exponent; Float16(…) around a Float16
//! ```
//!
//! Digits of `Float64` and `Float32` come from Rust's `{:e}`, which yields the shortest representation
//! nearest to the value. Digits of `Float16` are searched for: rounding to 1, 2, … 5 digits until one reads
//! back as the same bits.

use std::fmt;

use crate::scalar::{f16_to_f64, f64_to_f16};

/// How much of the type the text shows.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Marks {
    /// `1.5f0`
    Typed,
    /// `1.5`, but `1.0f-5`
    Plain,
    /// `1.5` and `1.0e-5`
    Printed,
}

/// `0.digits × 10^point`
struct Decimal {
    digits: String,
    point: i32,
}

/// The significant digits of a positive number in Rust's `{:e}` form, `d.ddde±x`.
fn decimal(scientific: &str) -> Decimal {
    let (significand, exponent) = scientific.split_once('e').unwrap_or((scientific, "0"));
    let digits: String = significand.chars().filter(char::is_ascii_digit).collect();
    Decimal { digits, point: exponent.parse().unwrap_or(0) + 1 }
}

/// The fewest digits that read back as a positive finite `Float16`; of several candidates, the nearest.
fn shortest_f16(bits: u16) -> Decimal {
    let value = f16_to_f64(bits);
    for precision in 0..5 {
        let nearest = format!("{value:.precision$e}");
        let (significand, exponent) = nearest.split_once('e').unwrap_or((&nearest, "0"));
        let digits: i32 = significand.replace('.', "").parse().unwrap_or(0);
        let exponent = exponent.parse().unwrap_or(0) - precision as i32;
        // Floats are denser below a power of two than above it, so the nearest decimal may read back as
        // another value while its neighbour does not.
        for candidate in [digits, digits + 1, digits - 1] {
            let text = format!("{candidate}e{exponent}");
            if text.parse().is_ok_and(|read: f64| f64_to_f16(read) == bits) {
                let trimmed = candidate.to_string();
                let point = exponent + trimmed.len() as i32;
                return Decimal { digits: trimmed.trim_end_matches('0').to_owned(), point };
            }
        }
    }
    decimal(&format!("{value:e}"))
}

pub(super) fn write_f64(f: &mut fmt::Formatter<'_>, value: f64) -> fmt::Result {
    write_sign(f, value)?;
    match special(value) {
        Some(name) => f.write_str(name),
        None => write_decimal(f, &decimal(&format!("{:e}", value.abs())), 6, 'e').map(drop),
    }
}

pub(super) fn write_f32(f: &mut fmt::Formatter<'_>, value: f32, marks: Marks) -> fmt::Result {
    write_sign(f, value.into())?;
    let letter = if marks == Marks::Printed { 'e' } else { 'f' };
    let (form, mark) = match special(value.into()) {
        Some(name) => (f.write_str(name).map(|()| Form::Fixed)?, "32"),
        None => (write_decimal(f, &decimal(&format!("{:e}", value.abs())), 6, letter)?, "f0"),
    };
    if marks == Marks::Typed && form == Form::Fixed { f.write_str(mark) } else { Ok(()) }
}

pub(super) fn write_f16(f: &mut fmt::Formatter<'_>, bits: u16, marks: Marks) -> fmt::Result {
    let value = f16_to_f64(bits);
    let typed = marks == Marks::Typed;
    if let Some(name) = special(value) {
        write_sign(f, value)?;
        return write!(f, "{name}{}", if typed { "16" } else { "" });
    }
    if typed {
        f.write_str("Float16(")?;
    }
    write_sign(f, value)?;
    let magnitude = bits & 0x7fff;
    let decimal = if magnitude == 0 { decimal("0e0") } else { shortest_f16(magnitude) };
    write_decimal(f, &decimal, 3, 'e')?;
    if typed { f.write_str(")") } else { Ok(()) }
}

fn special(value: f64) -> Option<&'static str> {
    if value.is_nan() {
        Some("NaN")
    } else if value.is_infinite() {
        Some("Inf")
    } else {
        None
    }
}

/// NaN is written without a sign.
fn write_sign(f: &mut fmt::Formatter<'_>, value: f64) -> fmt::Result {
    if value.is_sign_negative() && !value.is_nan() { f.write_str("-") } else { Ok(()) }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Fixed,
    Exponent,
}

/// Writes a decimal number; `most` is the greatest number of digits before the point of the fixed form.
fn write_decimal(
    f: &mut fmt::Formatter<'_>,
    &Decimal { ref digits, point }: &Decimal,
    most: i32,
    letter: char,
) -> Result<Form, fmt::Error> {
    let count = i32::try_from(digits.len()).unwrap_or(i32::MAX);
    let or_zero = |fraction: &str| if fraction.is_empty() { "0".to_owned() } else { fraction.to_owned() };
    if !(-3..=most).contains(&point) {
        let (first, rest) = digits.split_at_checked(1).unwrap_or((digits, ""));
        write!(f, "{first}.{}{letter}{}", or_zero(rest), point - 1)?;
        return Ok(Form::Exponent);
    }
    let zeros = |n: i32| "0".repeat(usize::try_from(n).unwrap_or(0));
    if point <= 0 {
        write!(f, "0.{}{digits}", zeros(-point))?;
    } else {
        let whole = usize::try_from(point.min(count)).unwrap_or(0);
        let (whole, fraction) = digits.split_at_checked(whole).unwrap_or((digits, ""));
        write!(f, "{whole}{}.{}", zeros(point - count), or_zero(fraction))?;
    }
    Ok(Form::Fixed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_half_reads_back_from_its_digits_and_from_no_fewer() {
        for bits in 1..0x7c00 {
            let Decimal { digits, point } = shortest_f16(bits);
            let reads_as = |digits: &str| {
                let text = format!("0.{digits}e{point}");
                text.parse().map(f64_to_f16).unwrap_or(0)
            };
            assert_eq!(reads_as(&digits), bits, "0.{digits}e{point}");
            assert!(!digits.ends_with('0') && !digits.starts_with('0'), "{digits}");
            // Neither neighbour with one digit fewer has the same value.
            let shorter: i32 = digits[..digits.len() - 1].parse().unwrap_or(0);
            for shorter in [shorter, shorter + 1] {
                let width = digits.len() - 1;
                let same_length = shorter.to_string().len() == width;
                assert!(!same_length || reads_as(&shorter.to_string()) != bits, "0.{digits}e{point}");
            }
        }
    }
}
