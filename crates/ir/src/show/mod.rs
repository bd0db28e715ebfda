//! Values as Julia's `show` prints them, for constants in the printer, results of `brolga run`, and
//! messages.
//!
//! | value | text | in an array of its type |
//! |---|---|---|
//! | signed integer of any width | `55` | `55` |
//! | unsigned integer | `0x0f`, all digits of the width | `0x0f` |
//! | `Bool` | `true` | `1` |
//! | `Float64` | `1.0`, `1.0e-6`, `Inf`, `NaN` | the same |
//! | `Float32` | `1.5f0`, `1.0f-5`, `Inf32`, `NaN32` | `1.5`, `1.0f-5`, `Inf`, `NaN` |
//! | `Float16` | `Float16(0.5)`, `Inf16`, `NaN16` | `0.5`, `Inf`, `NaN` |
//! | `Char` | `'c'`, `'\n'`, `'\u200b'`, `'\xff'` | the same |
//! | `String` | `"a\"q\"\n\$"` | the same |
//! | `Symbol` | `:x`, `:+`, `:(==)`, `Symbol("Not Found")` | the same |
//!
//! [`Shown`] prints the second column, [`Element`] the third; [`printed`] returns the text by `print` instead
//! of `show`. `float.rs` has the rules for digits, `text.rs` the rules for characters, strings and symbols.
//! The type of a value selects among them. `compose.rs` writes composite values, `error.rs` exceptions in the
//! words of Julia's `showerror`.

mod compose;
mod error;
mod float;
mod forms;
mod item;
mod text;

use std::fmt;

pub use compose::{print, show};
pub use error::{AMBIGUOUS_WORLD, INVOKE_MISFIT, show_error, show_plain_error};
pub use item::{Graph, MAX_SHOWN, MAX_TEXT, TypeIn, View};
pub use text::{bits_to_char, char_to_bits};

/// A value to be printed.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Shown<'a> {
    /// A truth value.
    Bool(bool),
    /// A signed integer of any width.
    Signed(i128),
    /// An unsigned integer.
    Unsigned {
        /// The width, which determines the number of digits.
        bits: u16,
        value: u128,
    },
    /// A `Float16`, by its bits.
    F16(u16),
    /// A `Float32`.
    F32(f32),
    /// A `Float64`.
    F64(f64),
    /// A `Char`, by Julia's bits; see [`char_to_bits`].
    Char(u32),
    /// A `String`, by its bytes, which need not be valid UTF-8.
    Str(&'a [u8]),
    /// A `Symbol`.
    Symbol(&'a str),
}

/// A value whose type is known from its context, as inside `Float32[1.5]`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Element<'a>(pub Shown<'a>);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Shown::Bool(value) => write!(f, "{value}"),
            Shown::Signed(value) => write!(f, "{value}"),
            Shown::Unsigned { bits, value } => {
                write!(f, "0x{value:0digits$x}", digits = usize::from(bits.div_ceil(4)))
            }
            Shown::F16(bits) => float::write_f16(f, bits, float::Marks::Typed),
            Shown::F32(value) => float::write_f32(f, value, float::Marks::Typed),
            Shown::F64(value) => float::write_f64(f, value),
            Shown::Char(bits) => text::write_char(f, bits),
            Shown::Str(bytes) => text::write_string(f, bytes),
            Shown::Symbol(name) => text::write_symbol(f, name),
        }
    }
}

impl fmt::Display for Element<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Shown::Bool(value) => write!(f, "{}", u8::from(value)),
            Shown::F16(bits) => float::write_f16(f, bits, float::Marks::Plain),
            Shown::F32(value) => float::write_f32(f, value, float::Marks::Plain),
            other => other.fmt(f),
        }
    }
}

/// The bytes that Julia's `print` writes: characters and strings unquoted, numbers in decimal and without
/// marks.
pub fn printed(value: Shown<'_>) -> Vec<u8> {
    struct Plain<'a>(Shown<'a>);
    impl fmt::Display for Plain<'_> {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            match self.0 {
                Shown::Unsigned { value, .. } => write!(f, "{value}"),
                Shown::F16(bits) => float::write_f16(f, bits, float::Marks::Printed),
                Shown::F32(value) => float::write_f32(f, value, float::Marks::Printed),
                Shown::Symbol(name) => f.write_str(name),
                other => other.fmt(f),
            }
        }
    }
    match value {
        Shown::Char(bits) => text::char_bytes(bits),
        Shown::Str(bytes) => bytes.to_vec(),
        other => Plain(other).to_string().into_bytes(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(table: &[(Shown<'_>, &str)]) {
        for (value, text) in table {
            assert_eq!(value.to_string(), *text, "{value:?}");
        }
    }

    #[test]
    fn print_has_no_quotes_and_no_marks() {
        for (value, text) in [
            (Shown::Signed(-5), "-5"),
            (Shown::Unsigned { bits: 8, value: 255 }, "255"),
            (Shown::Bool(true), "true"),
            (Shown::F16(0x3c00), "1.0"),
            (Shown::F32(1.5), "1.5"),
            (Shown::F32(1.0e-5), "1.0e-5"),
            (Shown::F32(f32::INFINITY), "Inf"),
            (Shown::F64(1.0e-6), "1.0e-6"),
            (Shown::Char(char_to_bits('θ')), "θ"),
            (Shown::Char(char_to_bits('\0')), "\0"),
            (Shown::Str(b"a\"b"), "a\"b"),
            (Shown::Symbol("Not Found"), "Not Found"),
        ] {
            assert_eq!(printed(value), text.as_bytes(), "{value:?}");
        }
        assert_eq!(printed(Shown::Char(0xff00_0000)), [0xff]);
    }

    #[test]
    fn integers_and_truth() {
        check(&[
            (Shown::Signed(55), "55"),
            (Shown::Signed(i128::MIN), "-170141183460469231731687303715884105728"),
            (Shown::Unsigned { bits: 8, value: 15 }, "0x0f"),
            (Shown::Unsigned { bits: 16, value: 0xffff }, "0xffff"),
            (Shown::Unsigned { bits: 64, value: 1 }, "0x0000000000000001"),
            (Shown::Unsigned { bits: 128, value: 1 << 127 }, "0x80000000000000000000000000000000"),
            (Shown::Bool(true), "true"),
        ]);
        assert_eq!(Element(Shown::Bool(true)).to_string(), "1");
        assert_eq!(Element(Shown::Signed(-3)).to_string(), "-3");
    }

    #[test]
    fn doubles() {
        let table = [
            (1.0, "1.0"),
            (-0.0, "-0.0"),
            (0.1, "0.1"),
            (100000.0, "100000.0"),
            (123456.0, "123456.0"),
            (123456.7, "123456.7"),
            (999999.9, "999999.9"),
            (1.0e6, "1.0e6"),
            (1234567.0, "1.234567e6"),
            (0.0001, "0.0001"),
            (0.00012345, "0.00012345"),
            (1.0e-5, "1.0e-5"),
            (1.0e-6, "1.0e-6"),
            (1.0e-15, "1.0e-15"),
            (2.75, "2.75"),
            (10.141592653589793, "10.141592653589793"),
            (1.0e300, "1.0e300"),
            (f64::MAX, "1.7976931348623157e308"),
            (5.0e-324, "5.0e-324"),
            (-1.689453125, "-1.689453125"),
            (f64::INFINITY, "Inf"),
            (f64::NEG_INFINITY, "-Inf"),
            (f64::NAN, "NaN"),
            (-f64::NAN, "NaN"),
        ];
        for (value, text) in table {
            assert_eq!(Shown::F64(value).to_string(), text);
            assert_eq!(Element(Shown::F64(value)).to_string(), text);
        }
    }

    #[test]
    fn singles_and_halves() {
        let table = [
            (Shown::F32(1.5), "1.5f0", "1.5"),
            (Shown::F32(-0.0), "-0.0f0", "-0.0"),
            (Shown::F32(0.1), "0.1f0", "0.1"),
            (Shown::F32(1.0e-5), "1.0f-5", "1.0f-5"),
            (Shown::F32(60000.15), "60000.15f0", "60000.15"),
            (Shown::F32(1.0e6), "1.0f6", "1.0f6"),
            (Shown::F32(f32::MAX), "3.4028235f38", "3.4028235f38"),
            (Shown::F32(f32::INFINITY), "Inf32", "Inf"),
            (Shown::F32(f32::NEG_INFINITY), "-Inf32", "-Inf"),
            (Shown::F32(f32::NAN), "NaN32", "NaN"),
            (Shown::F16(0x3800), "Float16(0.5)", "0.5"),
            (Shown::F16(0x0000), "Float16(0.0)", "0.0"),
            (Shown::F16(0xbc00), "Float16(-1.0)", "-1.0"),
            (Shown::F16(0x2e66), "Float16(0.1)", "0.1"),
            (Shown::F16(0x4248), "Float16(3.14)", "3.14"),
            (Shown::F16(0x5640), "Float16(100.0)", "100.0"),
            (Shown::F16(0x63d0), "Float16(1.0e3)", "1.0e3"),
            (Shown::F16(0x6800), "Float16(2.048e3)", "2.048e3"),
            (Shown::F16(0x7bff), "Float16(6.55e4)", "6.55e4"),
            (Shown::F16(0x0400), "Float16(6.104e-5)", "6.104e-5"),
            (Shown::F16(0x1400), "Float16(0.000977)", "0.000977"),
            (Shown::F16(0x0001), "Float16(6.0e-8)", "6.0e-8"),
            (Shown::F16(0x7c00), "Inf16", "Inf"),
            (Shown::F16(0xfc00), "-Inf16", "-Inf"),
            (Shown::F16(0xfe00), "NaN16", "NaN"),
        ];
        for (value, alone, element) in table {
            assert_eq!(value.to_string(), alone);
            assert_eq!(Element(value).to_string(), element);
        }
    }

    #[test]
    fn characters() {
        let table = [
            ('c', "'c'"),
            ('θ', "'θ'"),
            ('\n', r"'\n'"),
            ('\0', r"'\0'"),
            ('\x1b', r"'\e'"),
            ('\x01', r"'\x01'"),
            ('\x7f', r"'\x7f'"),
            ('\'', r"'\''"),
            ('"', "'\"'"),
            ('$', "'$'"),
            ('\\', r"'\\'"),
            ('\u{80}', r"'\u80'"),
            ('\u{200b}', r"'\u200b'"),
            ('\u{e0001}', r"'\Ue0001'"),
            ('\u{a0}', "'\u{a0}'"),
            ('\u{301}', "'\u{301}'"),
            ('🦀', "'🦀'"),
        ];
        for (c, text) in table {
            assert_eq!(Shown::Char(char_to_bits(c)).to_string(), text);
        }
        check(&[
            (Shown::Char(0xff00_0000), r"'\xff'"),
            (Shown::Char(0xc080_0000), r"'\xc0\x80'"),
            (Shown::Char(0xe282_0000), r"'\xe2\x82'"),
            (Shown::Char(0x6180_0000), r"'\x61\x80'"),
            (Shown::Char(0xeda0_8000), r"'\ud800'"),
            (Shown::Char(0xf490_8080), r"'\U110000'"),
        ]);
    }

    #[test]
    fn strings() {
        let table: [(&[u8], &str); 11] = [
            (b"text", r#""text""#),
            (b"a \"q\"\n$", r#""a \"q\"\n\$""#),
            (b"I'm \\ \t\x07\x1b", r#""I'm \\ \t\a\e""#),
            (b"\0", r#""\0""#),
            (b"\x001", r#""\x001""#),
            (b"\x7f", r#""\x7f""#),
            ("∀x∈ℝ".as_bytes(), r#""∀x∈ℝ""#),
            ("\u{80}a".as_bytes(), r#""\u0080a""#),
            ("\u{80}g".as_bytes(), r#""\u80g""#),
            (b"\xffA\xe2\x82", r#""\xffA\xe2\x82""#),
            (b"\xed\xa0\x80\xc1\xbf", r#""\ud800\xc1\xbf""#),
        ];
        for (bytes, text) in table {
            assert_eq!(Shown::Str(bytes).to_string(), text);
        }
    }

    #[test]
    fn symbols() {
        let plain =
            ["x", "none", "θ₀", "push!", "_1", "if", "+", "!=", ".+", ".==", "<:", "÷", "⊻", "&&", "..."];
        for name in plain {
            assert_eq!(Shown::Symbol(name).to_string(), format!(":{name}"));
        }
        check(&[
            (Shown::Symbol("=="), ":(==)"),
            (Shown::Symbol("="), ":(=)"),
            (Shown::Symbol("::"), ":(::)"),
            (Shown::Symbol("Not Found"), r#"Symbol("Not Found")"#),
            (Shown::Symbol("I'm a teapot"), r#"Symbol("I'm a teapot")"#),
            (Shown::Symbol(""), r#"Symbol("")"#),
            (Shown::Symbol("1x"), r#"Symbol("1x")"#),
            (Shown::Symbol("true"), r#"Symbol("true")"#),
            (Shown::Symbol("'"), r#"Symbol("'")"#),
            (Shown::Symbol("#f#5"), r##"Symbol("#f#5")"##),
            (Shown::Symbol("a$"), r#"Symbol("a\$")"#),
        ]);
    }

    #[test]
    fn character_bits_are_utf8_from_the_left() {
        assert_eq!(char_to_bits('a'), 0x6100_0000);
        assert_eq!(char_to_bits('\0'), 0);
        assert_eq!(char_to_bits('é'), 0xc3a9_0000);
        assert_eq!(char_to_bits('🦀'), 0xf09f_a680);
        for c in (0..=0x10_ffff).filter_map(char::from_u32) {
            assert_eq!(bits_to_char(char_to_bits(c)), Some(c));
        }
        for broken in
            [0x8000_0000, 0xff00_0000, 0xc080_0000, 0xeda0_8000, 0xf490_8080, 0x6100_0001, 0xc341_0000]
        {
            assert_eq!(bits_to_char(broken), None, "{broken:#x}");
        }
    }
}
