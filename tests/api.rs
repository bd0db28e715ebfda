//! Checks the embedders' interface: the facade's public API names no Cranelift type, and all operations that take the number of a function
//! are tested with foreign ones.
//!
//! Cranelift breaks its API every month; a Cranelift type in a public signature would make each of its releases a
//! breaking one of ours. The check is textual. It starts at the facade's own source, which may not name Cranelift at all,
//! follows each `pub use brolga_…` into the crate it comes from, and reads the public signatures of what is re-exported there:
//!
//!     pub use brolga_jit::Unit;      every `struct`/`enum`/`trait`/`type`/`fn Unit` and every `impl … Unit` in crates/jit
//!     pub use brolga_ir as ir;       every item in crates/ir
//!
//! A signature leaks when it names a path `cranelift_…` or a name that its file imports from such a path.
//! Not seen: names that macros make.

mod support;

use std::collections::BTreeSet;

use support::{SourceFile, files_below, has_word, hold, read, rust_files, use_paths};

/// The re-exports of the facade from one crate.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Export {
    /// All of it, or a module of it.
    Everything,
    /// The item of this name.
    Item(String),
}

/// The facade: the library part of the root package.
fn is_facade(file: &SourceFile) -> bool {
    file.path.starts_with("src/")
}

/// `(folder of the crate's source, what is exported)` for each `pub use brolga_…` of `code`.
fn exports(code: &str) -> BTreeSet<(String, Export)> {
    let public: String = code.match_indices("pub use ").map(|(at, _)| statement(&code[at..])).collect();
    use_paths(&public)
        .iter()
        .filter_map(|path| {
            let path = path.split(" as ").next()?.trim();
            let (krate, item) = path.split_once("::").unwrap_or((path, ""));
            let folder = format!("crates/{}/src/", krate.strip_prefix("brolga_")?);
            let name = item.rsplit("::").next().unwrap_or("");
            let whole =
                name.is_empty() || name == "*" || name == "self" || name.starts_with(char::is_lowercase);
            Some((folder, if whole { Export::Everything } else { Export::Item(name.to_owned()) }))
        })
        .collect()
}

fn statement(code: &str) -> &str {
    code.find(';').map_or(code, |end| &code[..=end])
}

/// The names that `code` imports from Cranelift's crates, as they are called in the file.
fn foreign_names(code: &str) -> BTreeSet<String> {
    use_paths(code)
        .iter()
        .filter(|path| path.starts_with("cranelift_"))
        .filter_map(|path| path.rsplit([':', ' ']).next())
        .map(str::to_owned)
        .collect()
}

/// The items of a file, nested ones as part of the item around them: each ends at `;` or at its closing brace.
fn items(code: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let (mut depth, mut start) = (0usize, 0);
    for (at, c) in code.char_indices() {
        match c {
            '{' | '(' | '[' => depth += 1,
            '}' | ')' | ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 && matches!(c, ';' | '}') {
            found.push(&code[start..=at]);
            start = at + 1;
        }
    }
    found
}

/// The parts of an item that its users see: signatures without bodies, public fields, variants.
fn public_signatures(item: &str) -> Vec<&str> {
    let head = item.split('{').next().unwrap_or("");
    let after = |place: &'static str, from: usize| {
        item[from..].match_indices(place).map(move |(at, _)| signature(&item[from + at..]))
    };
    if has_word(head, "impl") && has_word(head, "for") {
        return after("fn ", 0).chain([head]).collect();
    }
    if has_word(head, "impl") || has_word(head, "mod") {
        return after("pub ", 0).collect();
    }
    if !head.contains("pub ") {
        return Vec::new();
    }
    if has_word(head, "struct") {
        let body = item.find(['{', '(']).unwrap_or(item.len());
        return after("pub ", body).chain([&item[..body]]).collect();
    }
    if has_word(head, "trait") {
        return after("fn ", 0).chain([head]).collect();
    }
    if has_word(head, "enum") {
        // A variant may be called like a type of Cranelift's; what it holds stands in brackets.
        let body = item.find('{').map_or("", |at| &item[at + 1..]);
        return bracketed(body);
    }
    if has_word(head, "fn") { vec![head] } else { vec![item] }
}

/// The parts of `text` in brackets of any kind, at any depth.
fn bracketed(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut depth, mut start) = (0usize, 0);
    for (at, c) in text.char_indices() {
        match c {
            '(' | '{' | '[' => {
                if depth == 0 {
                    start = at;
                }
                depth += 1;
            }
            ')' | '}' | ']' if depth > 0 => {
                depth -= 1;
                if depth == 0 {
                    parts.push(&text[start..at]);
                }
            }
            _ => {}
        }
    }
    parts
}

/// The declaration at the head of `text`: up to its body, or to the end of the field.
fn signature(text: &str) -> &str {
    let mut depth = 0usize;
    let mut before = ' ';
    for (at, c) in text.char_indices() {
        match c {
            '{' | ';' | '}' => return &text[..at],
            ',' | ')' if depth == 0 => return &text[..at],
            '(' | '[' | '<' => depth += 1,
            ')' | ']' => depth = depth.saturating_sub(1),
            '>' if before != '-' => depth = depth.saturating_sub(1),
            _ => {}
        }
        before = c;
    }
    text
}

/// Whether `item` declares `name`, or implements something for it.
fn concerns(item: &str, name: &str) -> bool {
    let head = item.split(['{', ';']).next().unwrap_or("");
    let declares = ["struct", "enum", "trait", "type", "fn", "const", "union"]
        .iter()
        .any(|keyword| head.contains(&format!("{keyword} {name}")));
    (declares || has_word(head, "impl")) && has_word(head, name)
}

/// Cranelift names in the public signatures of `file`, for what is exported.
fn leaks(file: &SourceFile, export: &Export) -> Vec<String> {
    let code = file.shipped.as_str();
    let foreign = foreign_names(code);
    let mut found = Vec::new();
    for item in items(code) {
        if matches!(export, Export::Item(name) if !concerns(item, name)) {
            continue;
        }
        for public in public_signatures(item) {
            let named = foreign.iter().find(|name| has_word(public, name));
            let inline = public.contains("cranelift_").then_some("a path of Cranelift");
            if let Some(name) = named.map(String::as_str).or(inline) {
                let text: Vec<&str> = public.split_whitespace().take(12).collect();
                found.push(format!("{}: `{name}` in `{}`", file.path, text.join(" ")));
            }
        }
    }
    found
}

#[test]
fn the_public_api_names_no_cranelift_type() {
    let files = rust_files();
    let mut broken = Vec::new();
    let mut exported = BTreeSet::new();
    for file in files.iter().filter(|file| is_facade(file)) {
        if file.code.contains("cranelift") {
            broken.push(format!("{}: the facade names Cranelift", file.path));
        }
        exported.extend(exports(&file.code));
    }
    for (folder, export) in &exported {
        assert!(!files_below(folder.trim_end_matches('/'), ".rs").is_empty(), "`{folder}` has no source");
        for file in files.iter().filter(|file| file.path.starts_with(folder)) {
            broken.extend(leaks(file, export));
        }
    }
    broken.sort();
    broken.dedup();
    hold("The facade's public API names no Cranelift type:", &broken);
}

#[test]
fn the_facade_does_not_depend_on_cranelift() {
    let manifest = read("Cargo.toml");
    let own = manifest.split("\n[dependencies]\n").nth(1).expect("the root package's dependencies");
    let own = own.split("\n[").next().unwrap_or("");
    let named: Vec<String> =
        own.lines().filter(|line| line.contains("cranelift")).map(str::to_owned).collect();
    hold("Only the crates below the facade depend on Cranelift:", &named);
}

#[test]
fn a_leak_is_found() {
    let leak = |text: &str, export: &Export| {
        let (code, shipped) = (text.to_owned(), text.to_owned());
        leaks(&SourceFile { path: String::new(), code, shipped }, export).len()
    };
    let all = &Export::Everything;
    let import = "use cranelift_codegen::ir::{Type as ClifType, Value};\n";
    let found = |rest: &str| leak(&format!("{import}{rest}"), all);
    assert_eq!(found("pub fn f(x: &[ClifType]) -> u8 { 0 }"), 1);
    assert_eq!(found("pub struct S { pub a: u8, b: Value }"), 0, "a private field is not seen");
    assert_eq!(found("pub struct S { pub a: Value }"), 1);
    assert_eq!(found("pub struct S(u8, Value);"), 0);
    assert_eq!(found("pub struct S(pub Vec<(u8, Value)>);"), 1);
    assert_eq!(found("pub enum E { A(Value) }"), 1);
    assert_eq!(
        found("pub enum E { Value(u8), A { a: u8, b: (u8, Value) } }"),
        1,
        "a variant's name is no type"
    );
    assert_eq!(found("fn f(x: Value) {}"), 0);
    assert_eq!(found("pub fn f() { let v: Value = g(); }"), 0, "a body is not seen");
    assert_eq!(found("impl S { pub fn a(&self) {} pub(crate) fn b(&self) -> Value { v } }"), 0);
    assert_eq!(found("impl S { pub fn a(&self) -> Value { v } }"), 1);
    assert_eq!(found("impl T for S { fn a(&self) -> Value { v } }"), 1);
    assert_eq!(found("pub type V = cranelift_module::FuncId;"), 1);
    let item = &Export::Item("S".to_owned());
    assert_eq!(leak(&format!("{import}impl R {{ pub fn a() -> Value {{ v }} }}"), item), 0);
    assert_eq!(leak(&format!("{import}impl S {{ pub fn a() -> Value {{ v }} }}"), item), 1);
}

#[test]
fn exports_are_followed() {
    let found = exports(
        "use brolga_jit::Hidden;\npub use brolga_ir as ir;\npub use brolga_jit::{unit::Unit, Error};",
    );
    let item = |name: &str| ("crates/jit/src/".to_owned(), Export::Item(name.to_owned()));
    let expected = [("crates/ir/src/".to_owned(), Export::Everything), item("Unit"), item("Error")];
    assert_eq!(found, expected.into());
}

/// Functions that take a function's number, but for the pass that notes what it has inlined. An addition to this list is one to the test
/// of foreign ones in `tests/facade.rs` or to `crates/interp/tests/foreign_ids.rs`.
#[test]
fn all_that_takes_the_number_of_a_function_is_tested() {
    let mut takers = Vec::new();
    for file in rust_files() {
        let dirs = ["src/", "crates/engine/src/", "crates/interp/src/", "crates/ir/src/", "crates/opt/src/"];
        if !dirs.iter().any(|dir| file.path.starts_with(dir)) {
            continue;
        }
        for item in file.shipped.split("pub fn ").skip(1) {
            let head = item.split(['{', ';']).next().unwrap_or("");
            let operands = head.split("->").next().unwrap_or("");
            if operands.contains("FuncId") {
                takers.push(operands.split(['(', '<']).next().unwrap_or("").to_owned());
            }
        }
    }
    takers.sort();
    let known = [
        "boxed_entry",
        "call",
        "call_low",
        "compile_only",
        "compile_only",
        "components",
        "components_from",
        "declaration",
        "first_form",
        "func",
        "func_mut",
        "high",
        "inlined",
        "linked",
        "low",
        "optimised",
        "passes",
        "placed",
        "shared",
        "supersede",
        "symbol",
        "symbol_of",
    ];
    assert_eq!(takers, known);
}
