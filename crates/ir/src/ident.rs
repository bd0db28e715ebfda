//! Identifiers, and the spelling of other names.
//!
//! Julia prints a name that is not an identifier as `var"…"` where a name is expected, and as `Symbol("…")` where a
//! symbol value is. Identifiers start with a letter (of any script), `_`, or one of a few symbol classes that
//! mathematicians use as letters, and continue with the same, digits, marks, primes and `!`.

use std::fmt;

/// Words that cannot be names, in order.
const RESERVED: &[&str] = &[
    "baremodule",
    "begin",
    "break",
    "catch",
    "const",
    "continue",
    "do",
    "else",
    "elseif",
    "end",
    "export",
    "false",
    "finally",
    "for",
    "function",
    "global",
    "if",
    "import",
    "let",
    "local",
    "macro",
    "module",
    "quote",
    "return",
    "struct",
    "true",
    "try",
    "using",
    "while",
];

/// Whether `c` may begin an identifier.
pub fn is_start(c: char) -> bool {
    c.is_alphabetic()
        || c == '_'
        || matches!(c, '∇' | '∂' | '∞' | '∅' | '∫' | '∑' | '∏' | '⊤' | '⊥' | '∀' | '∃')
        || (c as u32 > 0x1f000 && !c.is_control())
}

/// Whether `c` may occur inside an identifier.
pub fn is_continue(c: char) -> bool {
    is_start(c)
        || c.is_numeric()
        || matches!(c, '!' | '\'' | '′' | '″' | '‴' | '⁗')
        || matches!(c as u32, 0x0300..=0x036f | 0x20d0..=0x20ff | 0x2070..=0x209f | 0xfe00..=0xfe0f)
}

/// Whether `text` can be written as a name without quoting.
pub fn is_identifier(text: &str) -> bool {
    let is_word = match text.as_bytes() {
        // Equivalent to the general case, without looking up character classes: nearly all names are ASCII,
        // and symbols are made of names.
        [first, rest @ ..] if text.is_ascii() => {
            let may_start = |byte: &u8| byte.is_ascii_alphabetic() || *byte == b'_';
            may_start(first) && rest.iter().all(|b| may_start(b) || b.is_ascii_digit() || *b == b'!')
        }
        _ => {
            let mut chars = text.chars();
            // A prime after a name means the adjoint, so it is not part of the name, although other primes
            // are.
            chars.next().is_some_and(is_start) && chars.all(|c| is_continue(c) && c != '\'')
        }
    };
    is_word && RESERVED.binary_search(&text).is_err()
}

/// Writes `text` as a name: bare, or as `var"…"`. There, as in Julia, quotes are escaped, and backslashes
/// only before a quote. A control character, which would break the line, is written as its picture (`␊`).
pub fn write_name(f: &mut impl fmt::Write, text: &str) -> fmt::Result {
    if is_identifier(text) {
        return f.write_str(text);
    }
    f.write_str("var\"")?;
    let mut backslashes = 0;
    for c in text.chars() {
        if c == '"' {
            f.write_str(&"\\".repeat(backslashes + 1))?;
        }
        backslashes = if c == '\\' { backslashes + 1 } else { 0 };
        match c as u32 {
            code @ 0..0x20 => f.write_char(char::from_u32(0x2400 + code).unwrap_or('␀'))?,
            _ if c.is_control() => f.write_char('␡')?,
            _ => f.write_char(c)?,
        }
    }
    f.write_str(&"\\".repeat(backslashes))?;
    f.write_char('"')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_others() {
        for good in ["x", "θ₀", "α′", "insertion_sort!", "_", "β₁", "∇f", "x1"] {
            assert!(is_identifier(good), "{good}");
        }
        for bad in ["", "1x", "#f#1", "a b", "end", "+", "x'", "a.b"] {
            assert!(!is_identifier(bad), "{bad}");
        }
        assert!(RESERVED.is_sorted() && RESERVED.iter().all(|word| !is_identifier(word)));
        // The fast path for bytes agrees with the character classes.
        for c in (0..128u8).map(char::from) {
            assert_eq!(is_identifier(&c.to_string()), is_start(c), "{c:?}");
            assert_eq!(is_identifier(&format!("x{c}")), is_continue(c) && c != '\'', "{c:?}");
        }
        let mut out = String::new();
        write_name(&mut out, "#a\\b\\\"\n\\").unwrap();
        assert_eq!(out, r##"var"#a\b\\\"␊\\""##);
    }
}
