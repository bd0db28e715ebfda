//! Shared parts of the tests of the text form.
#![allow(dead_code, reason = "each test file uses a part")]

use std::fs;
use std::path::PathBuf;

use brolga_ir::Context;
use brolga_ir::diag::{SourceFile, Style};
use brolga_ir::text::{Unit, read};

/// The files of a folder of the workspace: name and text, in order.
pub(crate) fn files(folder: &str) -> Vec<(String, String)> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").join(folder);
    let mut files: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_file())
        .map(|path| {
            (path.file_stem().unwrap().to_str().unwrap().to_owned(), fs::read_to_string(path).unwrap())
        })
        .collect();
    files.sort();
    assert!(!files.is_empty());
    files
}

/// A source with a short name.
pub(crate) fn source(text: &str) -> SourceFile {
    SourceFile::new("t", text).unwrap()
}

/// The unit of `text`, which must have no faults.
pub(crate) fn unit(text: &str) -> Unit {
    let source = source(text);
    let (unit, found) = read(&source, &Context::new());
    assert!(found.is_empty(), "{}", found.render(&source, &Style::PLAIN));
    unit
}

/// The findings in `text` as `line code`.
pub(crate) fn findings(text: &str) -> Vec<String> {
    let source = source(text);
    let (_, found) = read(&source, &Context::new());
    found.iter().map(|d| format!("{} {}", source.position(d.at.start).line, d.code)).collect()
}

/// The same pseudo-random numbers on every machine (SplitMix64).
pub(crate) struct Random(pub(crate) u64);

impl Random {
    /// The next number.
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `bound`.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound.max(1) as u64) as usize
    }
}

/// A few random edits of one of `texts`: bytes, tokens, truncation, pasted parts, swapped lines.
pub(crate) fn damage(random: &mut Random, texts: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = texts[random.below(texts.len())].clone();
    for _ in 0..=random.below(4) {
        let at = random.below(bytes.len());
        match random.below(6) {
            0 if !bytes.is_empty() => bytes[at] = random.next() as u8,
            1 => bytes.truncate(at),
            2 => {
                let token: &[&str] =
                    &["(", ")", "\"", "'", "│", "::", "$(", "\n", "#", "%1", "{", "end\n", "=> "];
                bytes.splice(at..at, token[random.below(token.len())].bytes());
            }
            3 => {
                let end = (at + random.below(200)).min(bytes.len());
                bytes.drain(at..end);
            }
            4 => {
                let other = &texts[random.below(texts.len())];
                let from = random.below(other.len());
                let to = (from + random.below(400)).min(other.len());
                bytes.splice(at..at, other[from..to].iter().copied());
            }
            _ => {
                let mut lines: Vec<&[u8]> = bytes.split(|&b| b == b'\n').collect();
                let (a, b) = (random.below(lines.len()), random.below(lines.len()));
                lines.swap(a, b);
                bytes = lines.join(&b'\n');
            }
        }
    }
    bytes
}
