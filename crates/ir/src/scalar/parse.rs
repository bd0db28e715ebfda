//! Numbers in text, as C's `strtod` reads them, for Julia's run time.

use std::str::FromStr;

/// The number that a text is: decimal, `inf`, `nan`, with white space around it. `None` if it is none, or something stands beside it.
///
/// Not done: hexadecimal floats.
pub fn parse_float<T: FromStr>(text: &[u8]) -> Option<T> {
    // C's white space has the vertical tab, which Rust's has not.
    let is_space = |byte: &u8| byte.is_ascii_whitespace() || *byte == 0x0b;
    let start = text.iter().position(|byte| !is_space(byte))?;
    let end = text.iter().rposition(|byte| !is_space(byte))?;
    std::str::from_utf8(&text[start..=end]).ok()?.parse().ok()
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
}
