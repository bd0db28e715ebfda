//! Writing JSON: escaped strings, numbers that every reader accepts.

use std::fmt::Write as _;

/// A text as a JSON string, with its quotes.
pub fn string(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            // Writing to a string cannot fail.
            c if u32::from(c) < 0x20 => drop(write!(out, "\\u{:04x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// A number; `null` if it is not finite, because JSON has no such numbers.
pub fn number(value: f64) -> String {
    if value.is_finite() { format!("{value}") } else { "null".to_owned() }
}

#[cfg(test)]
mod tests {
    #[test]
    fn strings_and_numbers() {
        assert_eq!(super::string("a\"b\\c\n\u{1}ä"), "\"a\\\"b\\\\c\\u000a\\u0001ä\"");
        assert_eq!(super::number(1.5), "1.5");
        assert_eq!(super::number(f64::NAN), "null");
    }
}
