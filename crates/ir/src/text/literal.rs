//! The values of literals: numbers by their digits, strings and characters by their escapes.
//!
//! A string is bytes, because Julia prints an invalid byte as `\xff`; a character is Julia's word, its UTF-8 bytes
//! from the top, for the same reason. The width of a `0x`, `0o` or `0b` literal comes from its digits, leading zeros
//! included, as Julia does it.

use std::borrow::Cow;

use super::ast::Literal;
use super::error::{Fault, Parse, SyntaxError};
use crate::diag::Span;

/// A decimal literal: digits with an optional fraction and exponent.
pub(super) fn decimal(text: &str) -> Result<Literal<'static>, SyntaxError> {
    let bad = || SyntaxError::BadNumber { text: text.to_owned() };
    let plain: Cow<'_, str> = if text.contains('_') { text.replace('_', "").into() } else { text.into() };
    if plain.bytes().all(|b| b.is_ascii_digit()) {
        let magnitude: u128 = plain.parse().map_err(|_| SyntaxError::NumberTooLarge)?;
        return Ok(Literal::Int { negative: false, magnitude: magnitude.into() });
    }
    if plain.contains('f') {
        return plain.replace('f', "e").parse().map(Literal::Float32).map_err(|_| bad());
    }
    plain.parse().map(Literal::Float64).map_err(|_| bad())
}

/// The digits after `0x`, `0o` or `0b`.
pub(super) fn unsigned(digits: &str, radix: u32) -> Result<Literal<'static>, SyntaxError> {
    let plain = digits.replace('_', "");
    let bad = || SyntaxError::BadNumber { text: digits.to_owned() };
    if plain.is_empty() || !plain.chars().all(|c| c.is_digit(radix)) {
        return Err(bad());
    }
    let value = u128::from_str_radix(&plain, radix).map_err(|_| SyntaxError::NumberTooLarge)?;
    let spelled = match radix {
        16 => plain.len() * 4,
        2 => plain.len(),
        // Octal digits do not divide the widths; the first one counts for the bits that it needs.
        _ => {
            (plain.len() - 1) * 3
                + (32 - plain.chars().next().and_then(|c| c.to_digit(8)).unwrap_or(0).leading_zeros())
                    as usize
        }
    };
    let bits = [8, 16, 32, 64, 128].into_iter().find(|&b| spelled <= b as usize);
    bits.map(|bits| Literal::Unsigned { value: value.into(), bits }).ok_or(SyntaxError::NumberTooLarge)
}

/// The bytes of a string literal whose body, without the quotes, is `body`.
pub(super) fn string(src: &str, body: Span) -> Parse<Cow<'_, [u8]>> {
    let text = &src[body.range()];
    if !text.contains('\\') {
        return Ok(Cow::Borrowed(text.as_bytes()));
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        bytes.extend_from_slice(&rest.as_bytes()[..at]);
        rest = &rest[at..];
        let len = escape(rest, &mut bytes).ok_or_else(|| bad_escape(rest, text.len() - rest.len(), body))?;
        rest = &rest[len..];
    }
    bytes.extend_from_slice(rest.as_bytes());
    Ok(Cow::Owned(bytes))
}

/// Julia's word for a character literal whose body is `body`.
pub(super) fn character(src: &str, body: Span) -> Parse<u32> {
    let text = &src[body.range()];
    let mut bytes = Vec::with_capacity(4);
    let mut rest = text;
    let mut scalars = 0;
    while let Some(c) = rest.chars().next() {
        if c == '\\' {
            let before = bytes.len();
            let len =
                escape(rest, &mut bytes).ok_or_else(|| bad_escape(rest, text.len() - rest.len(), body))?;
            // `'\xe2\x88'` spells one malformed character byte by byte.
            let raw_byte = rest.as_bytes().get(1) == Some(&b'x') && bytes.len() == before + 1;
            scalars += u32::from(!raw_byte || before == 0);
            rest = &rest[len..];
        } else {
            bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
            scalars += 1;
            rest = &rest[c.len_utf8()..];
        }
    }
    if scalars != 1 || bytes.len() > 4 {
        return Err(Fault::new(SyntaxError::NotOneChar, body));
    }
    let mut word = [0; 4];
    word[..bytes.len()].copy_from_slice(&bytes);
    Ok(u32::from_be_bytes(word))
}

fn bad_escape(rest: &str, at: usize, body: Span) -> Fault {
    let escape: String = rest.chars().take(2).collect();
    let start = body.start + at as u32;
    let span = Span::new(start, start + escape.len() as u32);
    Fault::new(SyntaxError::BadEscape { escape }, span)
}

/// Decodes the escape at the start of `text` and returns its length.
fn escape(text: &str, out: &mut Vec<u8>) -> Option<usize> {
    let kind = text[1..].chars().next()?;
    let simple = match kind {
        'n' => Some(b'\n'),
        't' => Some(b'\t'),
        'r' => Some(b'\r'),
        'e' => Some(0x1b),
        'a' => Some(7),
        'b' => Some(8),
        'f' => Some(0xc),
        'v' => Some(0xb),
        '\\' | '"' | '\'' | '$' | '`' => Some(kind as u8),
        _ => None,
    };
    if let Some(byte) = simple {
        out.push(byte);
        return Some(2);
    }
    let (skip, radix, most) = match kind {
        'x' => (2, 16, 2),
        'u' => (2, 16, 4),
        'U' => (2, 16, 8),
        '0'..='7' => (1, 8, 3),
        _ => return None,
    };
    let digits: &str = {
        let rest = &text[skip..];
        let len = rest.char_indices().take(most).take_while(|(_, c)| c.is_digit(radix)).count();
        &rest[..len]
    };
    let value = u32::from_str_radix(digits, radix).ok()?;
    match kind {
        'u' | 'U' => push_scalar(value, out)?,
        _ => out.push(u8::try_from(value).ok()?),
    }
    Some(skip + digits.len())
}

/// UTF-8 of a code point; Julia also encodes surrogates.
fn push_scalar(value: u32, out: &mut Vec<u8>) -> Option<()> {
    match char::from_u32(value) {
        Some(c) => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
        None if (0xd800..0xe000).contains(&value) => {
            out.extend_from_slice(&[0xed, 0x80 | (value >> 6 & 0x3f) as u8, 0x80 | (value & 0x3f) as u8]);
        }
        None => return None,
    }
    Some(())
}

/// The name between the quotes of `var"…"`: only quotes and the backslashes before them (or at the end) are escaped.
pub(super) fn raw_name(body: &str) -> Cow<'_, str> {
    if !body.contains('\\') {
        return Cow::Borrowed(body);
    }
    let mut name = String::with_capacity(body.len());
    let mut slashes = 0;
    for c in body.chars() {
        if c == '\\' {
            slashes += 1;
            continue;
        }
        name.extend(std::iter::repeat_n('\\', if c == '"' { slashes / 2 } else { slashes }));
        slashes = 0;
        name.push(c);
    }
    name.extend(std::iter::repeat_n('\\', slashes / 2));
    Cow::Owned(name)
}
