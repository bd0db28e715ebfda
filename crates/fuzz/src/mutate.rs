//! Damage: texts and bytes that are almost valid, where readers are most likely to break.
//!
//! | level | mutations |
//! |---|---|
//! | bytes | a bit flips, bytes vanish, double, swap places, become noise; the end is truncated |
//! | numbers | a length, index or offset becomes an extreme one (binaries: little-endian, or seven bits per byte) |
//! | tokens | a word or sign vanishes, doubles, is swapped with another, or replaced by one from a list of difficult ones |
//! | lines | a line vanishes, doubles, moves, or joins its neighbour |
//!
//! | fields | a number in a module in binary form is replaced by another of the same size; boundaries of sections and items move |
//!
//! A mutated input may by chance still be valid. Nothing here depends on the grammar of texts; fields are
//! those described in `ir::binary` and `aot::package`.

use super::rng::Rng;

/// Words and signs for which readers have rules, or should have.
const HARD_TOKENS: &[&str] = &[
    "φ",
    "φᶜ",
    "ϒ",
    "π",
    "%0",
    "%1",
    "%99999999999999999999",
    "#0",
    "#1",
    "#999999999",
    "goto",
    "if",
    "not",
    "return",
    "unreachable",
    "enter",
    "end",
    "function",
    "struct",
    "mutable",
    "abstract",
    "type",
    "primitive",
    "(",
    ")",
    "{",
    "}",
    "[",
    "]",
    ",",
    "::",
    "=>",
    "==",
    "=",
    "│",
    "└──",
    "1 ─",
    "2 ┄",
    "\"",
    "'",
    "\\",
    "$(Expr(",
    "$(QuoteNode(",
    ":(",
    "Union{}",
    "Union{",
    "Tuple{",
    "Vararg{",
    "@NamedTuple{",
    "Ptr{",
    "Type{",
    "Any",
    "Int64",
    "Int128",
    "Float16",
    "Core.Const(",
    "var\"",
    "#self#",
    "_1",
    "_0",
    "_4294967296",
    "0x",
    "0xffffffffffffffffffffffffffffffffff",
    "1e999",
    "NaN",
    "-",
    "--",
    ".",
    "..",
    "...",
    "# check:",
    "# signature:",
    "# types:",
    "\u{0}",
    "\u{feff}",
    "𝒳",
    "\r\n",
    "9223372036854775808",
    "-170141183460469231731687303715884105729",
    "invoke",
    "builtin",
    "dynamic",
    "inline",
    "noinline",
    "new",
];

/// A text with one or a few defects.
pub fn text(rng: &mut Rng, original: &str) -> String {
    let mut text = original.to_owned();
    for _ in 0..rng.between(1, 3) {
        text = match rng.below(10) {
            0..5 => tokens(rng, &text),
            5..8 => lines(rng, &text),
            _ => {
                let mut bytes = text.into_bytes();
                damage(rng, &mut bytes);
                String::from_utf8_lossy(&bytes).into_owned()
            }
        };
    }
    text
}

/// Bytes with one or a few defects.
pub fn bytes(rng: &mut Rng, original: &[u8]) -> Vec<u8> {
    let mut bytes = original.to_vec();
    for _ in 0..rng.between(1, 4) {
        if rng.chance(40) {
            number(rng, &mut bytes);
        } else {
            damage(rng, &mut bytes);
        }
    }
    bytes
}

/// Updates the checksum of a damaged module in binary form, so that the reader proceeds past it.
pub fn seal(bytes: &mut [u8]) {
    let Some((header, body)) = bytes.split_at_mut_checked(16) else { return };
    // 64-bit FNV-1a, as specified in `ir::binary`.
    let checksum = body.iter().fold(0xcbf2_9ce4_8422_2325u64, |sum, &byte| {
        (sum ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    header[8..].copy_from_slice(&checksum.to_le_bytes());
}

/// Makes the checksums of a damaged image right, so that the reader proceeds past them.
pub fn seal_image(bytes: &mut [u8]) {
    brolga_engine::image::seal(bytes);
}

/// CRC-32, as used in Ethernet.
fn crc(bytes: &[u8]) -> u32 {
    const TABLE: [u32; 256] = {
        let mut table = [0; 256];
        let mut byte = 0;
        while byte < 256 {
            let (mut sum, mut bit) = (byte as u32, 0);
            while bit < 8 {
                sum = sum >> 1 ^ if sum & 1 == 1 { 0xedb8_8320 } else { 0 };
                bit += 1;
            }
            table[byte] = sum;
            byte += 1;
        }
        table
    };
    !bytes.iter().fold(!0u32, |sum, &byte| sum >> 8 ^ TABLE[usize::from(sum as u8 ^ byte)])
}

/// The size of a binary module's header, which is followed by the lengths of the sections.
const MODULE_HEADER: usize = 16;
const MODULE_SECTIONS: usize = 7;
const FUNCTIONS: usize = 5;

fn word(bytes: &[u8], at: usize) -> Option<usize> {
    bytes.get(at..at.checked_add(4)?)?.try_into().ok().map(|word| u32::from_le_bytes(word) as usize)
}

/// A module in binary form with one or a few changed fields and an updated checksum. Its length is unchanged.
pub fn module(rng: &mut Rng, original: &[u8]) -> Vec<u8> {
    let mut bytes = original.to_vec();
    for _ in 0..1 + usize::from(rng.chance(20)) {
        match rng.below(20) {
            0 => border(rng, &mut bytes, MODULE_HEADER, MODULE_SECTIONS),
            1 => {
                if let Some((list, count)) = functions(&bytes) {
                    border(rng, &mut bytes, list, count);
                }
            }
            _ => field(rng, &mut bytes),
        }
    }
    seal(&mut bytes);
    bytes
}

/// The start of the list of ends of functions, and its length.
fn functions(bytes: &[u8]) -> Option<(usize, usize)> {
    let before: usize = (0..FUNCTIONS).map(|n| word(bytes, MODULE_HEADER + 4 * n)).sum::<Option<usize>>()?;
    let start = MODULE_HEADER + 4 * MODULE_SECTIONS + before;
    Some((start + 4, word(bytes, start)?))
}

/// Moves the boundary between two adjacent items of `count` whose lengths or ends are listed: one grows by as
/// much as the other shrinks.
fn border(rng: &mut Rng, bytes: &mut [u8], list: usize, count: usize) {
    let at = list + 4 * rng.below(count.saturating_sub(1).max(1));
    let by = rng.between(1, 9) as u32;
    let mut add = |at: usize, by: u32| {
        if let Some(place) = bytes.get_mut(at..at + 4) {
            let old = u32::from_le_bytes([place[0], place[1], place[2], place[3]]);
            place.copy_from_slice(&old.wrapping_add(by).to_le_bytes());
        }
    };
    add(at, by);
    if rng.chance(70) {
        add(at + 4, by.wrapping_neg());
    }
}

/// Replaces a number with seven bits per byte by another of the same size.
fn field(rng: &mut Rng, bytes: &mut [u8]) {
    let first = MODULE_HEADER + 4 * MODULE_SECTIONS;
    let Some(room) = bytes.len().checked_sub(first).filter(|&room| room > 0) else { return };
    let start = match functions(bytes) {
        // Most of a module is functions, and most of their contents are numbers.
        Some((list, count)) if rng.chance(70) && list + 4 * count < bytes.len() => {
            let items = list + 4 * count;
            items + rng.below(bytes.len() - items)
        }
        _ => first + rng.below(room),
    };
    let begin = (first..start).rev().take_while(|&at| bytes[at] & 0x80 != 0).last().unwrap_or(start);
    let length = bytes[begin..].iter().take_while(|&&byte| byte & 0x80 != 0).count() + 1;
    let Some(place) = bytes.get(begin..begin + length) else { return };
    let old = place.iter().rev().fold(0u64, |number, &byte| number << 7 | u64::from(byte & 0x7f));
    let new = match rng.below(8) {
        0 => old.wrapping_add(1),
        1 => old.wrapping_sub(1),
        2 => old ^ 1 << rng.below(7),
        3 => rng.below(4) as u64,
        4 => rng.below(32) as u64,
        5 => u64::MAX,
        6 => old.wrapping_add(rng.below(16) as u64).wrapping_sub(8),
        _ => u64::from(bytes[first + rng.below(room)]),
    };
    for (n, byte) in bytes[begin..begin + length].iter_mut().enumerate() {
        let more = if n + 1 < length { 0x80 } else { 0 };
        *byte = (new >> (7 * n).min(63)) as u8 & 0x7f | more;
    }
}

/// The header of a package and its sections, whose offsets and lengths it contains.
const PACKAGE_DIRECTORY: usize = 72;
const PACKAGE_SECTIONS: usize = 7;
const PROGRAMS: usize = 3;
/// The sections of the index and the units, which determine the machine code.
const CODE: std::ops::Range<usize> = 4..6;

fn package_section(bytes: &[u8], section: usize) -> Option<std::ops::Range<usize>> {
    let at = PACKAGE_DIRECTORY + 8 * section;
    let (start, length) = (word(bytes, at)?, word(bytes, at + 4)?);
    Some(start..start.checked_add(length).filter(|&end| end <= bytes.len())?)
}

/// The modules of a package in binary form, as far as its list can be read.
pub fn modules_of(bytes: &[u8]) -> Vec<std::ops::Range<usize>> {
    let Some(section) = package_section(bytes, PROGRAMS) else { return Vec::new() };
    let (mut at, mut found) = (section.start, Vec::new());
    while at < section.end {
        let module = (|| {
            let start = at.checked_add(4)?.checked_add(word(bytes, at)?)?.checked_add(8)?;
            let end = start.checked_add(word(bytes, start - 4)?)?;
            (end <= section.end).then_some(start..end)
        })();
        let Some(module) = module else { break };
        at = module.end;
        found.push(module);
    }
    found
}

/// A package with changed fields and an updated checksum; and whether its code is unchanged, so that each
/// call runs code that was compiled for its callee, or compiles it.
pub fn package(rng: &mut Rng, original: &[u8]) -> (Vec<u8>, bool) {
    let mut bytes = original.to_vec();
    let modules = modules_of(&bytes);
    let kind = rng.below(10);
    let mut is_code_kept = true;
    match rng.pick(&modules).cloned() {
        Some(range) if kind < 7 => {
            let forged = module(rng, &bytes[range.clone()]);
            bytes[range].copy_from_slice(&forged);
        }
        _ if kind < 9 => {
            let section = rng.below(PACKAGE_SECTIONS);
            is_code_kept = !CODE.contains(&section);
            if let Some(range) = package_section(&bytes, section).filter(|range| !range.is_empty()) {
                number(rng, &mut bytes[range]);
            }
        }
        _ => {
            is_code_kept = false;
            border(rng, &mut bytes, PACKAGE_DIRECTORY, 2 * PACKAGE_SECTIONS);
        }
    }
    seal_package(&mut bytes);
    (bytes, is_code_kept)
}

/// Updates the checksum of a damaged package.
fn seal_package(bytes: &mut [u8]) {
    let Some(place) = bytes.get_mut(12..16) else { return };
    place.fill(0);
    let checksum = crc(bytes);
    bytes[12..16].copy_from_slice(&checksum.to_le_bytes());
}

/// A range of up to `most` positions below `length`.
fn stretch(rng: &mut Rng, length: usize, most: usize) -> std::ops::Range<usize> {
    let start = rng.below(length);
    start..(start + rng.between(1, most)).min(length)
}

fn damage(rng: &mut Rng, bytes: &mut Vec<u8>) {
    if bytes.is_empty() {
        return bytes.push(rng.next_u64() as u8);
    }
    let at = rng.below(bytes.len());
    match rng.below(8) {
        0 | 1 => bytes[at] ^= 1 << rng.below(8),
        2 => bytes[at] = rng.next_u64() as u8,
        3 => drop(bytes.drain(stretch(rng, bytes.len(), 12))),
        4 => {
            let copy = bytes[stretch(rng, bytes.len(), 40)].to_vec();
            bytes.splice(at..at, copy);
        }
        5 => {
            let other = rng.below(bytes.len());
            bytes.swap(at, other);
        }
        6 => bytes.truncate(at),
        _ => {
            let noise: Vec<u8> = (0..rng.between(1, 6)).map(|_| rng.next_u64() as u8).collect();
            bytes.splice(at..at, noise);
        }
    }
}

/// Overwrites a number with an extreme one.
fn number(rng: &mut Rng, bytes: &mut [u8]) {
    const FIXED: [u64; 8] = [0, 1, 0x7f, 0xff, 0xffff, 0x7fff_ffff, 0xffff_ffff, u64::MAX];
    const SEVEN_BITS: [&[u8]; 5] =
        [&[0x7f], &[0x80, 0], &[0xff, 0x7f], &[0xff, 0xff, 0xff, 0xff, 0x0f], &[0xff; 10]];
    let value = rng.pick(&FIXED).copied().unwrap_or(0).to_le_bytes();
    let pattern = if rng.chance(50) {
        &value[..1 << rng.below(4)]
    } else {
        rng.pick(&SEVEN_BITS).copied().unwrap_or(&[])
    };
    let at = rng.below(bytes.len());
    for (place, &byte) in bytes.iter_mut().skip(at).zip(pattern) {
        *place = byte;
    }
}

/// Words, single signs and blanks, in order.
fn split(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        let end = if is_word(first) { rest.find(|c| !is_word(c)) } else { Some(first.len_utf8()) };
        let (part, after) = rest.split_at(end.unwrap_or(rest.len()));
        parts.push(part);
        rest = after;
    }
    parts
}

fn tokens(rng: &mut Rng, text: &str) -> String {
    // Splitting a large text to change one word would cost more than reading it: a part of it is enough.
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let chosen = rng.below(lines.len());
    let mut parts = split(lines.get(chosen).copied().unwrap_or(""));
    if parts.is_empty() {
        return rng.pick(HARD_TOKENS).copied().unwrap_or("").to_owned();
    }
    let (at, other) = (rng.below(parts.len()), rng.below(parts.len()));
    match rng.below(6) {
        0 => drop(parts.remove(at)),
        1 => parts.insert(at, parts[at]),
        2 => parts.swap(at, other),
        3 => parts[at] = parts[other],
        4 => parts[at] = rng.pick(HARD_TOKENS).copied().unwrap_or(""),
        _ => parts.insert(at, rng.pick(HARD_TOKENS).copied().unwrap_or("")),
    }
    let line = parts.concat();
    let mut lines = lines;
    if let Some(place) = lines.get_mut(chosen) {
        *place = &line;
    }
    lines.concat()
}

fn lines(rng: &mut Rng, text: &str) -> String {
    let mut lines: Vec<&str> = text.split_inclusive('\n').collect();
    if lines.is_empty() {
        return "\n".to_owned();
    }
    let (at, other) = (rng.below(lines.len()), rng.below(lines.len()));
    match rng.below(6) {
        0 => drop(lines.remove(at)),
        1 => lines.insert(other, lines[at]),
        2 => lines.swap(at, other),
        3 => lines[at] = lines[at].trim_end_matches('\n'),
        4 => lines.truncate(at),
        _ => drop(lines.drain(stretch(rng, lines.len(), 6))),
    }
    lines.concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn most_mutants_differ_and_equal_seeds_agree() {
        let original =
            "function f(x::Int64)::Int64\n1 ─ %1 = Base.add_int(x, 1)::Int64\n└──      return %1\nend\n";
        let mutants = |seed| {
            let mut rng = Rng::new(seed);
            (0..200).map(|_| text(&mut rng, original)).collect::<Vec<_>>()
        };
        assert_eq!(mutants(1), mutants(1));
        assert!(mutants(1).iter().filter(|m| *m != original).count() > 150);
    }

    #[test]
    fn a_sealed_module_has_the_checksum_that_it_is_written_with() {
        let module = crate::shapes::module(crate::shapes::Shape::StraightLine, 10);
        let original = brolga_ir::binary::write(&module);
        let mut sealed = original.clone();
        sealed[8] ^= 1;
        seal(&mut sealed);
        assert_eq!(original, sealed);
    }

    #[test]
    fn nothing_is_too_short_to_mutate() {
        let mut rng = Rng::new(2);
        for _ in 0..500 {
            text(&mut rng, "");
            text(&mut rng, "│");
            bytes(&mut rng, &[]);
            bytes(&mut rng, &[7]);
        }
    }

    #[test]
    fn parts_put_together_are_the_text() {
        let original = "│   %2 = φ (#1 => θ_1)::Float64\n";
        assert_eq!(split(original).concat(), original);
        assert!(split(original).contains(&"θ_1"));
    }
}
