//! The C functions of `utf8proc` that Julia's library calls, on top of the tables of maintained crates.
//!
//! | C function | here | tables |
//! |---|---|---|
//! | `utf8proc_category` | [`category`] | `unicode-properties` |
//! | `utf8proc_charwidth` | [`char_width`] | `unicode-width` |
//! | `utf8proc_toupper`, `tolower`, `totitle` | [`to_upper`], [`to_lower`], [`to_title`] | the standard library |
//! | `utf8proc_isupper`, `islower` | [`is_upper`], [`is_lower`] | the case mappings |
//! | `utf8proc_codepoint_valid` | [`is_valid`] | |
//!
//! A character is a number, which need not be a code point: numbers above `0x10ffff` are unassigned,
//! surrogates have their own category. Case mappings are the simple ones, from one character to one.
//!
//! Not done: normalization and grapheme breaks (`utf8proc_decompose`, `utf8proc_grapheme_break`).

use unicode_properties::{GeneralCategory, UnicodeGeneralCategory};
use unicode_width::UnicodeWidthChar;

/// `UTF8PROC_CATEGORY_CS`: a surrogate.
const SURROGATE: i32 = 28;

/// The general category as `utf8proc` numbers it, from 0 (`Cn`, unassigned) to 29 (`Co`, private use).
pub fn category(character: u32) -> i32 {
    let Some(character) = char::from_u32(character) else {
        return if character <= 0x10_ffff { SURROGATE } else { 0 };
    };
    match character.general_category() {
        GeneralCategory::Unassigned => 0,
        GeneralCategory::UppercaseLetter => 1,
        GeneralCategory::LowercaseLetter => 2,
        GeneralCategory::TitlecaseLetter => 3,
        GeneralCategory::ModifierLetter => 4,
        GeneralCategory::OtherLetter => 5,
        GeneralCategory::NonspacingMark => 6,
        GeneralCategory::SpacingMark => 7,
        GeneralCategory::EnclosingMark => 8,
        GeneralCategory::DecimalNumber => 9,
        GeneralCategory::LetterNumber => 10,
        GeneralCategory::OtherNumber => 11,
        GeneralCategory::ConnectorPunctuation => 12,
        GeneralCategory::DashPunctuation => 13,
        GeneralCategory::OpenPunctuation => 14,
        GeneralCategory::ClosePunctuation => 15,
        GeneralCategory::InitialPunctuation => 16,
        GeneralCategory::FinalPunctuation => 17,
        GeneralCategory::OtherPunctuation => 18,
        GeneralCategory::MathSymbol => 19,
        GeneralCategory::CurrencySymbol => 20,
        GeneralCategory::ModifierSymbol => 21,
        GeneralCategory::OtherSymbol => 22,
        GeneralCategory::SpaceSeparator => 23,
        GeneralCategory::LineSeparator => 24,
        GeneralCategory::ParagraphSeparator => 25,
        GeneralCategory::Control => 26,
        GeneralCategory::Format => 27,
        GeneralCategory::Surrogate => SURROGATE,
        GeneralCategory::PrivateUse => 29,
    }
}

/// The width of a character in terminal columns: 0, 1 or 2.
pub fn char_width(character: u32) -> i32 {
    let Some(known) = char::from_u32(character) else { return 0 };
    match category(character) {
        // Private use characters take one column, as does a soft hyphen.
        29 => 1,
        27 if character == 0xad => 1,
        _ => known.width().unwrap_or(0).min(2) as i32,
    }
}

/// The upper case form; the character itself if it has no single-character form.
pub fn to_upper(character: u32) -> u32 {
    match character {
        // The only letter whose single upper case form the standard library lacks, because text becomes `SS`.
        0xdf => 0x1e9e,
        // Greek letters with iota subscript, which become two letters in text.
        0x1f80..=0x1f87 | 0x1f90..=0x1f97 | 0x1fa0..=0x1fa7 => character + 8,
        0x1fb3 | 0x1fc3 | 0x1ff3 => character + 9,
        _ => single(character, |c| only(c.to_uppercase())),
    }
}

/// The lower case form; the character itself if it has no single-character form.
pub fn to_lower(character: u32) -> u32 {
    match character {
        0x130 => 0x69,
        _ => single(character, |c| only(c.to_lowercase())),
    }
}

/// The title case form: the upper case one, except for digraphs and for Georgian, which has none.
pub fn to_title(character: u32) -> u32 {
    match character {
        0x1c4..=0x1c6 => 0x1c5,
        0x1c7..=0x1c9 => 0x1c8,
        0x1ca..=0x1cc => 0x1cb,
        0x1f1..=0x1f3 => 0x1f2,
        0x10d0..=0x10fa | 0x10fd..=0x10ff => character,
        _ => to_upper(character),
    }
}

/// Whether a character has a lower case form and no upper case one, and is not a title case letter.
pub fn is_upper(character: u32) -> bool {
    to_lower(character) != character && to_upper(character) == character && category(character) != 3
}

/// Whether a character has an upper case form and no lower case one.
pub fn is_lower(character: u32) -> bool {
    to_upper(character) != character && to_lower(character) == character
}

/// Whether a number is a code point allowed in text: not a surrogate.
pub fn is_valid(character: u32) -> bool {
    char::from_u32(character).is_some()
}

fn single(character: u32, change: impl FnOnce(char) -> Option<char>) -> u32 {
    char::from_u32(character).and_then(change).map_or(character, u32::from)
}

fn only(mut characters: impl Iterator<Item = char>) -> Option<char> {
    let first = characters.next();
    if characters.next().is_some() { None } else { first }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn categories_have_the_numbers_of_utf8proc() {
        let known = [
            ('A', 1),
            ('a', 2),
            ('ǅ', 3),
            ('ʰ', 4),
            ('ª', 5),
            ('\u{301}', 6),
            ('5', 9),
            ('Ⅷ', 10),
            ('½', 11),
            ('_', 12),
            ('-', 13),
            ('(', 14),
            (')', 15),
            ('«', 16),
            ('»', 17),
            ('!', 18),
            ('+', 19),
            ('€', 20),
            ('^', 21),
            ('©', 22),
            (' ', 23),
            ('\u{2028}', 24),
            ('\u{2029}', 25),
            ('\n', 26),
            ('\u{ad}', 27),
            ('\u{e000}', 29),
            ('\u{378}', 0),
        ];
        for (character, number) in known {
            assert_eq!(category(character.into()), number, "{character:?}");
        }
        assert_eq!((category(0xd800), category(0x11_0000), category(u32::MAX)), (28, 0, 0));
    }

    #[test]
    fn widths_and_cases_take_any_number() {
        let widths = [
            ('a', 1),
            ('é', 1),
            ('漢', 2),
            ('\u{301}', 0),
            ('\0', 0),
            ('\n', 0),
            ('\u{e000}', 1),
            ('\u{ad}', 1),
        ];
        for (character, width) in widths {
            assert_eq!(char_width(character.into()), width, "{character:?}");
        }
        let cases = [('a', 'A'), ('ä', 'Ä'), ('ß', 'ẞ'), ('ŉ', 'ŉ'), ('ǆ', 'Ǆ'), ('1', '1'), ('ÿ', 'Ÿ')];
        for (lower, upper) in cases {
            assert_eq!(to_upper(lower.into()), u32::from(upper), "{lower:?}");
        }
        assert_eq!(to_lower('Ä'.into()), u32::from('ä'));
        assert_eq!((to_title('ǆ'.into()), to_title('a'.into())), (0x1c5, 0x41));
        assert_eq!((to_upper('ᾀ'.into()), to_upper('ῳ'.into())), ('ᾈ'.into(), 'ῼ'.into()));
        // The title case letter ǅ is neither, nor are letters without case.
        let upper: Vec<char> = "Aaǅª1ẞßΣς漢É".chars().filter(|&c| is_upper(c.into())).collect();
        let lower: Vec<char> = "Aaǅª1ẞßΣς漢é".chars().filter(|&c| is_lower(c.into())).collect();
        assert_eq!((&upper[..], &lower[..]), (&['A', 'ẞ', 'Σ', 'É'][..], &['a', 'ß', 'ς', 'é'][..]));
        for number in [0xd800, 0x11_0000, u32::MAX] {
            assert!(!is_valid(number) && !is_upper(number) && !is_lower(number));
            assert_eq!((char_width(number), to_upper(number), to_lower(number)), (0, number, number));
        }
    }
}
