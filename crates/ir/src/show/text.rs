//! Characters, strings and symbols: the printable ones, and escapes for the rest.
//!
//! A Julia `Char` is 32 bits that hold the bytes of its UTF-8 form from the left, so that it can also hold
//! malformed bytes:
//!
//! ```text
//! 'a'  61 00 00 00      'é'  c3 a9 00 00      '🦀'  f0 9f a6 80      a stray byte  ff 00 00 00
//! well formed: a leading byte, as many continuation bytes as it announces, zeros; and no shorter form exists.
//! ```
//!
//! A well-formed sequence has a code point, which may be a surrogate or beyond U+10FFFF; those print as escapes.
//! Other bytes print one by one. A string is cut into characters by the same rule: a leading byte takes
//! the continuation bytes that follow, at most as many as it announces.
//!
//! *Printable* means Unicode letters, marks, numbers, punctuation, symbols and spaces. Rust's tables cover
//! all but spaces; their Unicode version may differ from Julia's.

use std::fmt::{self, Write};

use crate::ident;

/// Julia's bits of a character: its UTF-8 bytes from the left.
pub fn char_to_bits(c: char) -> u32 {
    let mut bytes = [0; 4];
    c.encode_utf8(&mut bytes);
    u32::from_be_bytes(bytes)
}

/// The character of Julia's bits; `None` if they are malformed or not a Unicode scalar value.
pub fn bits_to_char(bits: u32) -> Option<char> {
    code_point(bits).and_then(char::from_u32)
}

/// The bytes that a character is written as; malformed bits are the bytes they hold.
pub(super) fn char_bytes(bits: u32) -> Vec<u8> {
    let bytes = bits.to_be_bytes();
    let used = bytes.iter().rposition(|&byte| byte != 0).map_or(1, |last| last + 1);
    bytes[..used].to_vec()
}

/// The length of a character that begins with this byte; `None` for continuation bytes and those never used.
fn announced_length(lead: u8) -> Option<usize> {
    match lead {
        0..0x80 => Some(1),
        0xc0..0xe0 => Some(2),
        0xe0..0xf0 => Some(3),
        0xf0..0xf8 => Some(4),
        _ => None,
    }
}

fn is_continuation(byte: u8) -> bool {
    byte & 0xc0 == 0x80
}

/// The code point of well-formed bits.
fn code_point(bits: u32) -> Option<u32> {
    let bytes @ [lead, ..] = bits.to_be_bytes();
    let length = announced_length(lead)?;
    let (used, unused) = bytes.split_at_checked(length)?;
    let (_, continuation) = used.split_first()?;
    if !continuation.iter().all(|&byte| is_continuation(byte)) || unused.iter().any(|&byte| byte != 0) {
        return None;
    }
    let (lead_mask, least) = match length {
        1 => (0x7f, 0),
        2 => (0x1f, 0x80),
        3 => (0x0f, 0x800),
        _ => (0x07, 0x1_0000),
    };
    let value = continuation
        .iter()
        .fold(u32::from(lead & lead_mask), |value, byte| value << 6 | u32::from(byte & 0x3f));
    (value >= least).then_some(value)
}

/// Splits off the first character of a string: its bits, and the rest.
fn next_char(bytes: &[u8]) -> Option<(u32, &[u8])> {
    let &lead = bytes.first()?;
    let announced = announced_length(lead).unwrap_or(1);
    let continuation = bytes.iter().skip(1).take(announced - 1).take_while(|&&byte| is_continuation(byte));
    let (used, rest) = bytes.split_at_checked(1 + continuation.count())?;
    let mut padded = [0; 4];
    for (place, byte) in padded.iter_mut().zip(used) {
        *place = *byte;
    }
    Some((u32::from_be_bytes(padded), rest))
}

fn is_printable(code: u32) -> bool {
    let Some(c) = char::from_u32(code) else { return false };
    if c.is_ascii() {
        return matches!(c, ' '..='~');
    }
    if c.is_whitespace() {
        return !c.is_control() && !matches!(c, '\u{2028}' | '\u{2029}');
    }
    // After another character, std escapes exactly the unprintable characters; alone it also escapes
    // combining marks.
    let mut bytes = [b'a', 0, 0, 0, 0];
    let end = 1 + c.encode_utf8(&mut bytes[1..]).len();
    str::from_utf8(&bytes[..end]).is_ok_and(|text| text.escape_debug().nth(1) == Some(c))
}

/// Julia's letter after the backslash for a control character.
fn escape_letter(code: u32) -> Option<char> {
    Some(match code {
        7 => 'a',
        8 => 'b',
        9 => 't',
        10 => 'n',
        11 => 'v',
        12 => 'f',
        13 => 'r',
        27 => 'e',
        _ => return None,
    })
}

/// Writes the bytes of malformed bits, at least one, without the padding.
fn write_bytes(f: &mut impl Write, bits: u32) -> fmt::Result {
    let mut rest = bits;
    loop {
        write!(f, "\\x{:02x}", rest >> 24)?;
        rest <<= 8;
        if rest == 0 {
            return Ok(());
        }
    }
}

/// Writes `'c'`.
pub(super) fn write_char(f: &mut impl Write, bits: u32) -> fmt::Result {
    f.write_char('\'')?;
    match (code_point(bits), bits_to_char(bits)) {
        (Some(0), _) => f.write_str("\\0")?,
        (_, Some(c @ ('\'' | '\\'))) => write!(f, "\\{c}")?,
        (Some(code), c) => match (escape_letter(code), c) {
            (Some(letter), _) => write!(f, "\\{letter}")?,
            (None, Some(c)) if is_printable(code) => f.write_char(c)?,
            _ if code <= 0x7f => write!(f, "\\x{code:02x}")?,
            _ if code <= 0xffff => write!(f, "\\u{code:x}")?,
            _ => write!(f, "\\U{code:x}")?,
        },
        (None, _) => write_bytes(f, bits)?,
    }
    f.write_char('\'')
}

/// Writes `"…"`. An escape of varying length is written with all its digits where the next character could be
/// read as one more.
pub(super) fn write_string(f: &mut impl Write, bytes: &[u8]) -> fmt::Result {
    f.write_char('"')?;
    let mut rest = bytes;
    while let Some((bits, after)) = next_char(rest) {
        let next = after.first().copied().unwrap_or(b' ');
        let width = |short: usize, full: usize| if next.is_ascii_hexdigit() { full } else { short };
        match (code_point(bits), bits_to_char(bits)) {
            (Some(0), _) => f.write_str(if matches!(next, b'0'..=b'7') { "\\x00" } else { "\\0" })?,
            (_, Some(c @ ('"' | '$' | '\\'))) => write!(f, "\\{c}")?,
            (Some(code), c) => match (escape_letter(code), c) {
                (Some(letter), _) => write!(f, "\\{letter}")?,
                (None, Some(c)) if is_printable(code) => f.write_char(c)?,
                _ if code <= 0x7f => write!(f, "\\x{code:02x}")?,
                _ if code <= 0xffff => write!(f, "\\u{code:0digits$x}", digits = width(2, 4))?,
                _ => write!(f, "\\U{code:0digits$x}", digits = width(4, 8))?,
            },
            (None, _) => write_bytes(f, bits)?,
        }
        rest = after;
    }
    f.write_char('"')
}

/// Operators that need parentheses after a colon.
const PARENTHESISED: &[&str] = &[":", "::", ":=", "=", "==", "===", "=>"];

/// Operators in ASCII, separated by spaces; most also exist with a leading dot.
const OPERATORS: &str = "! != !== $ % %= & && &= * *= + ++ += - --> -= -> . .. ... / // //= /= < <-- <--> <: << <<= <= <| = == === => > >: >= >> >>= >>> >>>= ? \\ \\= ^ ^= | |= |> || ~";

fn is_operator(name: &str) -> bool {
    let undotted = name.strip_prefix('.').filter(|rest| !rest.is_empty()).unwrap_or(name);
    let mut chars = undotted.chars();
    let one_symbol = match (chars.next(), chars.as_str()) {
        (Some(c), "" | "=") => matches!(
            c,
            '×' | '÷' | '¬' | '±' | '·' | '…' | '⁝' | '←'..='⇿' | '∀'..='⋿' | '⟀'..='⟿' | '⤀'..='⫿' | '⬀'..='⭏'
        ),
        _ => false,
    };
    one_symbol || OPERATORS.split(' ').any(|operator| operator == name || operator == undotted)
}

/// Writes `:name`, or `Symbol("…")` where the name cannot follow a colon.
pub(super) fn write_symbol(f: &mut impl Write, name: &str) -> fmt::Result {
    let mut chars = name.chars();
    // Keywords are ordinary names here; `true` and `false` would read as values.
    let is_name = chars.next().is_some_and(ident::is_start)
        && chars.all(|c| ident::is_continue(c) && c != '\'')
        && !matches!(name, "true" | "false");
    if PARENTHESISED.contains(&name) {
        write!(f, ":({name})")
    } else if is_name || is_operator(name) {
        write!(f, ":{name}")
    } else {
        f.write_str("Symbol(")?;
        write_string(f, name.as_bytes())?;
        f.write_char(')')
    }
}
