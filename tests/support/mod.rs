//! Reads the repository's own files for the tests that check them.
//!
//! `code_of` blanks out comments, strings and character literals, so that a rule about code ignores
//! prose. `SourceFile::shipped` is the same without the items that only tests compile. Both keep every newline, so line numbers
//! stay the lines of the file. They are lexers and not parsers: macros that build names from pieces are invisible to the rules that use
//! them.

mod shipped;

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

pub(crate) use shipped::{Shipped, shipped};

/// One Rust file of the workspace.
pub(crate) struct SourceFile {
    /// Path from the repository's root, with `/` between parts.
    pub(crate) path: String,
    /// The text with comments, strings and character literals blanked.
    pub(crate) code: String,
    /// `code` without what only tests compile: nothing of it for the file of a test module.
    pub(crate) shipped: String,
}

/// The repository's root directory.
pub(crate) fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// A file of the repository, which must be there.
pub(crate) fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("cannot read `{path}`: {error}"))
}

/// Every file below `dir` (a path from the root) whose name ends in `suffix`, sorted; nothing when there is no such folder.
pub(crate) fn files_below(dir: &str, suffix: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut pending = vec![dir.to_owned()];
    while let Some(dir) = pending.pop() {
        let Ok(entries) = fs::read_dir(root().join(&dir)) else { continue };
        for entry in entries.map(|entry| entry.expect("a readable directory")) {
            let name = entry.file_name().into_string().expect("file names are UTF-8");
            let path = format!("{dir}/{name}");
            if entry.path().is_dir() {
                if name != "target" && !name.starts_with('.') {
                    pending.push(path);
                }
            } else if name.ends_with(suffix) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// Every Rust file of the workspace, sorted by path.
pub(crate) fn rust_files() -> Vec<SourceFile> {
    let dirs = ["src", "crates", "tests", "benches", "examples", "embedding", "fuzz"];
    let mut test_modules = BTreeSet::new();
    let read_file = |path: String| {
        let code = code_of(&read(&path));
        let Shipped { code: shipped, test_modules: modules } = shipped(&code);
        let folder = folder_of_modules(&path);
        test_modules.extend(modules.into_iter().map(|module| format!("{folder}/{module}")));
        SourceFile { path, code, shipped }
    };
    let mut files: Vec<_> = dirs.iter().flat_map(|dir| files_below(dir, ".rs")).map(read_file).collect();
    assert!(files.len() > 5, "the walk found almost nothing: the checks would be empty");
    let of_tests = |path: &str| {
        let module = path.trim_end_matches(".rs").trim_end_matches("/mod");
        // The files of a test module's folder belong to it.
        module.match_indices('/').any(|(at, _)| test_modules.contains(&module[..at]))
            || test_modules.contains(module)
    };
    for file in files.iter_mut().filter(|file| of_tests(&file.path)) {
        file.shipped = blank(&file.shipped);
    }
    files
}

/// The folder in which the modules that a file declares have their files.
fn folder_of_modules(path: &str) -> &str {
    let module = path.trim_end_matches(".rs");
    ["/mod", "/lib", "/main"].iter().find_map(|name| module.strip_suffix(name)).unwrap_or(module)
}

/// `code` with blanks in place of everything but newlines.
pub(crate) fn blank(code: &str) -> String {
    code.chars().map(|c| if c == '\n' { '\n' } else { ' ' }).collect()
}

/// Whether `word` stands in `code` as a whole identifier (`unsafe` but not `unsafe_code`).
pub(crate) fn has_word(code: &str, word: &str) -> bool {
    code.match_indices(word).any(|(at, _)| {
        !code[..at].ends_with(is_ident_char) && !code[at + word.len()..].starts_with(is_ident_char)
    })
}

/// Whether `c` can be part of an identifier.
pub(crate) fn is_ident_char(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Every path that the `use` items of `code` name, groups written out: `use a::{b, c::D as E}` gives
/// `a::b` and `a::c::D as E`.
pub(crate) fn use_paths(code: &str) -> Vec<String> {
    let mut paths = Vec::new();
    for (at, _) in code.match_indices("use ") {
        if code[..at].chars().next_back().is_some_and(is_ident_char) {
            continue;
        }
        let tree = code[at + 4..].split(';').next().unwrap_or("");
        let tree = tree.split_whitespace().collect::<Vec<_>>().join(" ");
        let mut pending = vec![(String::new(), tree)];
        while let Some((prefix, tree)) = pending.pop() {
            match tree.split_once('{') {
                Some((head, group)) => {
                    let group = group.trim_end().strip_suffix('}').unwrap_or(group);
                    let prefix = format!("{prefix}{}", head.trim());
                    pending.extend(split_group(group).into_iter().map(|part| (prefix.clone(), part)));
                }
                None if tree.trim().is_empty() => {}
                None => paths.push(format!("{prefix}{}", tree.trim())),
            }
        }
    }
    paths.sort();
    paths
}

/// Splits at the commas that stand outside inner braces.
fn split_group(group: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut depth = 0usize;
    for c in group.chars() {
        match c {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                parts.push(String::new());
                continue;
            }
            _ => {}
        }
        parts.last_mut().expect("never empty").push(c);
    }
    parts
}

/// `text` with comments, strings and character literals replaced by blanks; newlines stay.
pub(crate) fn code_of(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    while at < chars.len() {
        let end = literal_end(&chars, at);
        if end == at {
            out.push(chars[at]);
            at += 1;
        } else {
            out.push_str(&blank(&String::from_iter(&chars[at..end])));
            at = end;
        }
    }
    out
}

/// Where the comment, string or character literal that starts at `at` ends; `at` itself when none starts there.
fn literal_end(chars: &[char], at: usize) -> usize {
    let peek = |offset: usize| chars.get(at + offset).copied().unwrap_or('\0');
    match chars[at] {
        '/' if peek(1) == '/' => position(chars, at, |c| c == '\n'),
        '/' if peek(1) == '*' => block_comment_end(chars, at),
        '"' => quoted_end(chars, at, '"'),
        '\'' if peek(1) == '\\' || peek(2) == '\'' => quoted_end(chars, at, '\''),
        'r' if at == 0 || !is_ident_char(chars[at - 1]) || matches!(chars[at - 1], 'b' | 'c') => {
            raw_string_end(chars, at)
        }
        _ => at,
    }
}

fn position(chars: &[char], from: usize, stop: impl Fn(char) -> bool) -> usize {
    chars[from..].iter().position(|&c| stop(c)).map_or(chars.len(), |offset| from + offset)
}

fn block_comment_end(chars: &[char], start: usize) -> usize {
    let mut depth = 0usize;
    let mut at = start;
    while at + 1 < chars.len() {
        match (chars[at], chars[at + 1]) {
            ('/', '*') => depth += 1,
            ('*', '/') => depth -= 1,
            _ => {
                at += 1;
                continue;
            }
        }
        at += 2;
        if depth == 0 {
            return at;
        }
    }
    chars.len()
}

fn quoted_end(chars: &[char], start: usize, quote: char) -> usize {
    let mut at = start + 1;
    while at < chars.len() {
        match chars[at] {
            '\\' => at += 2,
            c if c == quote => return at + 1,
            _ => at += 1,
        }
    }
    chars.len()
}

fn raw_string_end(chars: &[char], start: usize) -> usize {
    let open = position(chars, start + 1, |c| c != '#');
    if chars.get(open) != Some(&'"') {
        return start;
    }
    let hashes = open - start - 1;
    let mut at = open + 1;
    while at < chars.len() {
        if chars[at] == '"' && chars[at + 1..].iter().take_while(|&&c| c == '#').count() >= hashes {
            return at + 1 + hashes;
        }
        at += 1;
    }
    chars.len()
}

/// Fails with `rule` and the list of `broken` places, unless there is none.
#[track_caller]
pub(crate) fn hold(rule: &str, broken: &[String]) {
    assert!(broken.is_empty(), "\n{rule}\n  {}\n", broken.join("\n  "));
}
