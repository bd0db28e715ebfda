//! Checks that the repository follows `ARCHITECTURE.md`: a test compares each list with the code.
//!
//! | rule | where the list is |
//! |---|---|
//! | crates depend on what the arrows allow, and on nothing else | `arrows` in ARCHITECTURE.md |
//! | a package has the metadata that the registry requires | here |
//! | `unsafe` is in the listed files only; crates without one forbid it | `tests/tidy/unsafe.txt` |
//! | a folder does not name what it must not know | `absences` in ARCHITECTURE.md |
//! | files of a crate do not import each other in cycles, but for those listed | `cycles` in ARCHITECTURE.md |
//! | Cranelift's IR is named in `crates/codegen` only | here |
//! | every atomic operation carries its row of the file's ordering table | the file's own header |
//! | every path that a document names exists | the documents |
//! | headers, file lengths, no stubs | here |
//! | no source, test, example or document uses a retired word | `tests/tidy/retired.txt` |
//! | no document, no message, and no comment of a listed crate has a phrase that reads translated | `tests/support/words.rs` |
//! | a page of the guide is listed, and its snippets are tests | `docs/guide/src/SUMMARY.md`, `src/guide.rs` |
//! | the guide lists every error code and option | `docs/guide/src/errors.md`, `docs/guide/src/options.md` |
//! | a pass is a file, a row of the pass table and a folder of tests | `crates/opt/src/passes/` |
//!
//! Everything is textual, on code with comments and strings blanked out (`support::code_of`).

#[path = "support/modules.rs"]
mod modules;
mod support;
#[path = "support/words.rs"]
mod words;

use std::collections::{BTreeMap, BTreeSet};

use support::{
    SourceFile, code_of, files_below, has_word, hold, is_ident_char, read, root, rust_files, shipped,
    use_paths,
};

/// Longer files hold more than one idea.
const MAX_LINES: usize = 1000;

/// The documents outside of [`DOCUMENT_FOLDERS`].
const DOCUMENTS: [&str; 7] = [
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "README.md",
    "SECURITY.md",
    "crates/opt/src/rules/README.md",
    "editors/README.md",
];

/// The folders whose Markdown files are documents.
const DOCUMENT_FOLDERS: [&str; 3] = ["docs", "benches", "changes"];

/// Files with comments of ours beside Rust and Markdown.
const OTHER_TEXTS: [&str; 10] =
    [".c", ".h", ".css", ".jl", ".jlir", ".js", ".scm", ".sh", ".suppressions", ".txt"];

/// The list `tag` of ARCHITECTURE.md as (name, rest of the line); `name: words` or `name  words`.
fn architecture_list(tag: &str) -> Vec<(String, String)> {
    let text = read("ARCHITECTURE.md");
    let split = |line: &str| {
        let (name, rest) = line.trim().split_once(char::is_whitespace).unwrap_or((line.trim(), ""));
        (name.trim_end_matches(':').to_owned(), rest.trim().to_owned())
    };
    fenced(&text, tag).into_iter().map(split).collect()
}

/// The list `tests/tidy/NAME.txt` as (name, rest of the line), separated by two blanks or more.
fn tidy_list(name: &str) -> Vec<(String, String)> {
    let text = read(&format!("tests/tidy/{name}.txt"));
    let lines = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    lines
        .map(|line| {
            let (name, rest) = line.split_once("  ").expect("two blanks after the name");
            (name.to_owned(), rest.trim().to_owned())
        })
        .collect()
}

/// The paths of all documents.
fn documents() -> impl Iterator<Item = String> {
    let below = DOCUMENT_FOLDERS.iter().flat_map(|folder| files_below(folder, ".md"));
    DOCUMENTS.iter().map(|path| (*path).to_owned()).chain(below)
}

/// The lines of the fenced block that starts with three backticks and `tag` in the Markdown `text`.
fn fenced<'a>(text: &'a str, tag: &str) -> Vec<&'a str> {
    let open = format!("```{tag}");
    let mut lines = text.lines().skip_while(|line| line.trim_end() != open);
    assert!(lines.next().is_some(), "there is no fenced block `{tag}`");
    lines.take_while(|line| !line.starts_with("```")).filter(|line| !line.trim().is_empty()).collect()
}

/// Numbers of the lines of `code`, from 1, in which `word` stands as a whole identifier.
fn word_lines<'a>(code: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    code.lines().enumerate().filter(move |(_, line)| has_word(line, word)).map(|(index, _)| index + 1)
}

/// The lines of a manifest as (section, key): `brolga-ir.workspace = true` below `[dependencies]` is
/// `("dependencies", "brolga-ir")`.
fn manifest_keys(text: &str) -> Vec<(String, String)> {
    let mut keys = Vec::new();
    let mut section = String::new();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
        if let Some(name) = line.strip_prefix('[') {
            section = name.trim_end_matches(']').to_owned();
            // `[dependencies.name]` is a section and a key at once.
            if let Some((kind, name)) = section.rsplit_once("dependencies.") {
                keys.push((format!("{kind}dependencies"), name.to_owned()));
            }
        } else if let Some((key, _)) = line.split_once('=') {
            let key = key.trim().split('.').next().unwrap_or("").trim_matches('"');
            keys.push((section.clone(), key.to_owned()));
        }
    }
    keys
}

/// Folders of the workspace's packages, the root package as `""`.
fn package_dirs() -> Vec<String> {
    let mut dirs: Vec<String> = std::fs::read_dir(root().join("crates"))
        .expect("the crates folder")
        .map(|entry| entry.expect("a readable directory").path())
        .filter(|path| path.join("Cargo.toml").is_file())
        .map(|path| {
            format!("crates/{}/", path.file_name().and_then(|name| name.to_str()).expect("a UTF-8 name"))
        })
        .collect();
    dirs.push(String::new());
    dirs.sort();
    dirs
}

#[test]
fn crates_depend_on_what_the_arrows_allow() {
    let arrows = architecture_list("arrows");
    let mut broken = Vec::new();
    let names: Vec<&str> = arrows.iter().map(|(name, _)| name.as_str()).collect();
    for (index, (name, allowed)) in arrows.iter().enumerate() {
        for upward in allowed.split_whitespace().filter(|dep| names[index..].contains(dep)) {
            broken.push(format!(
                "ARCHITECTURE.md: `{name}` names `{upward}`, which is not above it in the list"
            ));
        }
    }
    let allowed: BTreeMap<&str, BTreeSet<&str>> =
        arrows.iter().map(|(name, deps)| (name.as_str(), deps.split_whitespace().collect())).collect();
    for dir in package_dirs() {
        let manifest = format!("{dir}Cargo.toml");
        let text = read(&manifest);
        let name = text.lines().find_map(|line| line.strip_prefix("name = ")).expect("a package name");
        let name = name.trim().trim_matches('"');
        let Some(allowed) = allowed.get(name) else {
            broken.push(format!("{manifest}: `{name}` has no line in the list `arrows`"));
            continue;
        };
        let keys = manifest_keys(&text);
        let deps = |wanted: fn(&str) -> bool| -> BTreeSet<&str> {
            keys.iter().filter(|(section, _)| wanted(section)).map(|(_, key)| key.as_str()).collect()
        };
        let plain = deps(|section| {
            section != "workspace.dependencies"
                && section.ends_with("dependencies")
                && !section.ends_with("dev-dependencies")
        });
        let for_tests = deps(|section| section.ends_with("dev-dependencies"));
        for dep in plain.difference(allowed) {
            broken.push(format!("{manifest}: `{name}` depends on `{dep}`, which its arrows do not allow"));
        }
        for dep in allowed.difference(&plain) {
            broken.push(format!("ARCHITECTURE.md: `{name}` no longer depends on `{dep}`: remove the arrow"));
        }
        let own = names.iter().position(|known| *known == name).unwrap_or(0);
        // A package may turn features of itself on for its tests.
        for dep in for_tests.iter().filter(|dep| **dep != name && names[own..].contains(dep)) {
            broken.push(format!("{manifest}: tests of `{name}` depend on `{dep}`, which is not above it"));
        }
        if !text.contains("[lints]\nworkspace = true") {
            broken.push(format!("{manifest}: `{name}` does not take the workspace's lints"));
        }
    }
    hold("The arrows between crates (a new one is a decision: write it into ARCHITECTURE.md):", &broken);
}

#[test]
fn packages_can_be_published() {
    let mut broken = Vec::new();
    for dir in package_dirs() {
        let manifest = format!("{dir}Cargo.toml");
        let text = read(&manifest);
        let keys = manifest_keys(&text);
        if keys.contains(&("package".to_owned(), "publish".to_owned())) {
            continue;
        }
        let fields =
            ["description", "keywords", "categories", "license", "repository", "rust-version", "version"];
        for field in fields.iter().filter(|field| !keys.iter().any(|(s, k)| s == "package" && k == *field)) {
            broken.push(format!("{manifest}: `{field}` is missing"));
        }
        for line in text.lines().filter(|line| line.contains("path = \"crates/")) {
            if !line.contains("version = ") {
                broken.push(format!("{manifest}: `{line}` has a path without a version"));
            }
        }
        for licence in ["LICENSE-APACHE", "LICENSE-MIT"] {
            if !root().join(&dir).join(licence).exists() {
                broken.push(format!("{manifest}: its package has no {licence}; link the one of the root"));
            }
        }
    }
    hold("What the registry asks of each package (`publish = false` excepts one):", &broken);
}

#[test]
fn files_import_each_other_in_no_cycle() {
    let listed: BTreeSet<String> = architecture_list("cycles").into_iter().map(|(path, _)| path).collect();
    let files = rust_files();
    let (mut in_cycles, mut broken) = (BTreeSet::new(), Vec::new());
    for dir in package_dirs() {
        let src = format!("{dir}src/");
        for cycle in modules::import_cycles(&files, &src) {
            if cycle.iter().any(|path| !listed.contains(path)) {
                broken.push(format!("a cycle:\n{}", modules::names_within(&files, &src, &cycle)));
            }
            in_cycles.extend(cycle);
        }
    }
    broken.extend(listed.difference(&in_cycles).map(|path| format!("{path}: is listed and in no cycle")));
    hold("Import cycles between files of a crate (the list `cycles` may only shrink):", &broken);
}

#[test]
fn unsafe_is_in_the_listed_files_only() {
    let listed: BTreeSet<String> = tidy_list("unsafe").into_iter().map(|(path, _)| path).collect();
    let files = rust_files();
    let found: BTreeSet<String> =
        files.iter().filter(|file| has_word(&file.code, "unsafe")).map(|file| file.path.clone()).collect();
    let mut broken: Vec<String> = Vec::new();
    broken.extend(found.difference(&listed).map(|path| format!("{path}: has `unsafe` and is not listed")));
    broken.extend(listed.difference(&found).map(|path| format!("{path}: is listed and has no `unsafe`")));
    for dir in package_dirs() {
        let src = format!("{dir}src/");
        let names = ["lib.rs", "main.rs"].map(|name| format!("{src}{name}"));
        let start = names.iter().find(|name| root().join(name).is_file()).expect("a crate's first file");
        let forbids = read(start).contains("#![forbid(unsafe_code)]");
        if !forbids && !listed.iter().any(|path| path.starts_with(&src)) {
            broken.push(format!("{start}: no file of the crate is listed, so it forbids unsafe code"));
        }
    }
    hold("`unsafe` is in the files of tests/tidy/unsafe.txt, each with its reason:", &broken);
}

/// Each row of the tables of statements and of the C API names its tests, by file and function.
#[test]
fn the_tests_that_the_pages_on_orc_and_julia_name_exist() {
    let pages = [
        ("docs/conformance-orc.md", &["The document", "The C API"][..], 50),
        ("docs/conformance-julia-jit.md", &["# Conformance"], 20),
    ];
    let mut broken = Vec::new();
    for (path, sections, least) in pages {
        let page = read(path);
        let is_checked = |section: &&str| sections.iter().any(|start| section.starts_with(start));
        let tables = page.split("## ").filter(is_checked);
        let rows = tables.flat_map(str::lines).filter(|line| line.starts_with("| "));
        let mut count = 0;
        for row in rows {
            let tests = row.trim_end_matches(" |").rsplit_once(" | ").map_or("", |(_, tests)| tests);
            for (file, names) in tests.split("; ").filter_map(|tests| tests.split_once("`: ")) {
                let code = read(file.trim_start_matches('`'));
                let missing = names.split(", ").filter(|name| !code.contains(&format!("fn {name}(")));
                broken.extend(missing.map(|name| format!("{path}: {file}` has no function `{name}`")));
                count += 1;
            }
        }
        assert!(count >= least, "the tables of {path} have {count} tests");
    }
    hold("The tests in the tables of the pages on conformance exist:", &broken);
}

#[test]
fn folders_do_not_name_what_they_must_not_know() {
    let files = rust_files();
    let mut broken = Vec::new();
    for (folder, words) in architecture_list("absences") {
        let below: Vec<&SourceFile> = files.iter().filter(|file| file.path.starts_with(&folder)).collect();
        if below.is_empty() {
            broken.push(format!(
                "ARCHITECTURE.md: the list `absences` names `{folder}`, where no source file is"
            ));
        }
        for file in below {
            let code = file.shipped.as_str();
            let imports = use_paths(code);
            for word in words.split_whitespace() {
                let imported =
                    imports.iter().any(|path| path == word || path.starts_with(&format!("{word}::")));
                if imported || has_word(code, word) {
                    broken.push(format!("{}: names `{word}`", file.path));
                }
            }
        }
    }
    hold("Invariants that are absences (the list `absences` in ARCHITECTURE.md):", &broken);
}

#[test]
fn only_codegen_names_cranelift_ir() {
    let mut broken = Vec::new();
    for file in rust_files().iter().filter(|file| !file.path.starts_with("crates/codegen/")) {
        let in_tests_or_benches = file.path.starts_with("benches/") || file.path.contains("/tests/");
        let shipped = if in_tests_or_benches { continue } else { &file.shipped };
        if has_word(shipped, "cranelift_frontend") {
            broken.push(format!("{}: names `cranelift_frontend`", file.path));
        }
        let named_in_use = use_paths(shipped).iter().any(|path| {
            let mut parts = path.split("::").map(str::trim);
            parts.next() == Some("cranelift_codegen")
                && parts.next().is_some_and(|part| part == "ir" || part == "*" || part.starts_with("ir "))
        });
        if named_in_use || shipped.contains("cranelift_codegen::ir") {
            broken.push(format!("{}: names Cranelift's IR", file.path));
        }
        let linker = ["crates/jit/", "crates/aot/"].iter().any(|dir| file.path.starts_with(dir));
        let foreign =
            |name: &str| name.starts_with("cranelift_") && (!linker || name == "cranelift_frontend");
        let words: BTreeSet<&str> =
            shipped.split(|c| !is_ident_char(c)).filter(|word| foreign(word)).collect();
        for word in words {
            // The IR's dense tables come from `cranelift-entity`, which knows nothing of code generation.
            if word != "cranelift_entity" {
                broken.push(format!("{}: names `{word}`, which only codegen, jit and aot may", file.path));
            }
        }
    }
    broken.dedup();
    hold(
        "Only crates/codegen names Cranelift's IR; jit and aot see its isa, module, jit and object parts:",
        &broken,
    );
}

#[test]
fn atomics_carry_their_row() {
    let mut broken = Vec::new();
    let for_tests =
        |path: &str| ["tests", "benches"].iter().any(|dir| path.split('/').any(|part| part == *dir));
    for file in rust_files().iter().filter(|file| !for_tests(&file.path)) {
        // Other things are called `Ordering` too: of comparisons, and of the IR's own atomic operations.
        if !use_paths(&file.code).iter().any(|path| path.contains("atomic") || path.starts_with("loom")) {
            continue;
        }
        let text = read(&file.path);
        let rows: BTreeSet<&str> = text
            .lines()
            .filter_map(|line| line.strip_prefix("//! |"))
            .filter_map(|row| row.split('|').next())
            .map(str::trim)
            .collect();
        let orders = ["Relaxed", "Acquire", "Release", "AcqRel", "SeqCst"];
        for (index, (line, code)) in text.lines().zip(file.shipped.lines()).enumerate() {
            let Some(order) = orders.iter().find(|order| code.contains(&format!("Ordering::{order}"))) else {
                continue;
            };
            let comment = line.rsplit_once("//").map_or("", |(_, comment)| comment);
            let tag = comment.split_whitespace().find(|word| is_row_tag(word));
            match tag.map(|tag| tag.trim_end_matches(['.', ',', ':'])) {
                None => broken.push(format!("{}:{}: `{order}` without its row tag", file.path, index + 1)),
                Some(tag) if !rows.contains(tag) => {
                    broken.push(format!(
                        "{}:{}: the header's table has no row `{tag}`",
                        file.path,
                        index + 1
                    ));
                }
                Some(_) => {}
            }
        }
    }
    hold(
        "Each atomic operation names its row of the file's ordering table (`// P1`; columns: row, operation, order, \
         pairs with, what goes wrong without it):",
        &broken,
    );
}

/// `P1`, `R12`: capitals, then digits.
fn is_row_tag(word: &str) -> bool {
    let word = word.trim_end_matches(['.', ',', ':']);
    let digits = word.trim_start_matches(|c: char| c.is_ascii_uppercase());
    digits.len() < word.len() && !digits.is_empty() && digits.chars().all(|c| c.is_ascii_digit())
}

#[test]
fn source_files_are_tidy() {
    let mut broken = Vec::new();
    for file in rust_files() {
        let path = &file.path;
        let text = read(path);
        if !text.starts_with("//!") {
            broken.push(format!("{path}: starts without a `//!` header that says what problem it solves"));
        }
        let lines = text.lines().count();
        if lines > MAX_LINES {
            broken.push(format!("{path}: has {lines} lines; split it by idea (limit {MAX_LINES})"));
        }
        for stub in ["todo", "unimplemented", "dbg"] {
            for line in word_lines(&file.code, stub).filter(|line| has_macro(&file.code, *line, stub)) {
                broken.push(format!("{path}:{line}: `{stub}!` is a stub or a leftover"));
            }
        }
        for (index, (line, code)) in text.lines().zip(file.code.lines()).enumerate() {
            let comment: String = line.chars().skip(code.trim_end().chars().count()).collect();
            let marks = [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X"), concat!("HA", "CK")];
            if comment.contains("//") && marks.iter().any(|mark| has_word(&comment, mark)) {
                broken.push(format!(
                    "{path}:{}: a note to self; finish it, or state what is not done",
                    index + 1
                ));
            }
            if line.ends_with([' ', '\t']) || line.contains('\t') {
                broken.push(format!("{path}:{}: a tab or trailing blanks", index + 1));
            }
        }
    }
    hold("Source files:", &broken);
}

#[test]
fn nothing_is_called_by_a_retired_word() {
    let retired = tidy_list("retired");
    let sources = rust_files().into_iter().map(|file| file.path);
    let others = ["src", "crates", "tests", "examples", "embedding", "benches", "docs"];
    let others =
        others.iter().flat_map(|dir| OTHER_TEXTS.iter().flat_map(move |suffix| files_below(dir, suffix)));
    let mut broken = Vec::new();
    for path in sources.chain(documents()).chain(others).filter(|path| path != "tests/tidy/retired.txt") {
        for (index, line) in read(&path).lines().enumerate() {
            for (word, instead) in &retired {
                if has_word(line, word) {
                    broken.push(format!("{path}:{}: `{word}`; the word is {instead}", index + 1));
                }
            }
        }
    }
    hold("Words of the list tests/tidy/retired.txt:", &broken);
}

#[test]
fn no_document_reads_translated() {
    let mut broken = Vec::new();
    for path in documents() {
        let found = words::translated_markdown(&read(&path));
        broken.extend(found.into_iter().map(|(line, what)| format!("{path}:{line}: {what}")));
    }
    hold("Documents that read translated:", &broken);
}

#[test]
fn no_comment_reads_translated() {
    let mut broken = Vec::new();
    for file in rust_files() {
        let is_below = |folder: &&str| file.path.starts_with(&format!("{folder}/"));
        if words::SWEPT.iter().any(is_below) {
            let found = words::translated(&read(&file.path), &file.code);
            broken.extend(found.into_iter().map(|(line, what)| format!("{}:{line}: {what}", file.path)));
        }
    }
    hold("Comments that read translated:", &broken);
}

#[test]
fn no_message_reads_translated() {
    let mut broken = Vec::new();
    for file in
        rust_files().iter().filter(|file| file.path.starts_with("crates/") && file.path.contains("/src/"))
    {
        let found = words::translated_messages(&read(&file.path), &file.code, &file.shipped);
        broken.extend(found.into_iter().map(|(line, what)| format!("{}:{line}: {what}", file.path)));
    }
    hold("Messages that read translated:", &broken);
}

#[test]
fn phrases_are_found_across_lines_and_outside_code() {
    let lines = |text: &str| -> Vec<usize> {
        let mut lines: Vec<_> =
            words::translated(text, &code_of(text)).into_iter().map(|(line, _)| line).collect();
        lines.sort_unstable();
        lines
    };
    assert_eq!(lines("// It is in\n// front of it.\nlet x = 1; // behind"), [1, 3]);
    assert_eq!(lines("/// `behind`, there is\n/// no block, a round trip, it stands for it."), [0; 0]);
    assert_eq!(lines("//! ```\n//! behind\n//! ```\n//! ```text\n//! behind\n//! ```"), [5]);
    assert_eq!(lines("// Lets the thread go on. A list of each. Of each, one."), [1, 1]);
    assert_eq!(lines("let text = \"// behind\";"), [0; 0]);

    let lines = |text: &str| -> Vec<usize> {
        let mut lines: Vec<_> = words::translated_markdown(text).into_iter().map(|(line, _)| line).collect();
        lines.sort_unstable();
        lines
    };
    assert_eq!(lines("It is in\nfront.\n\n```text\nbehind\n```\n\nbehind"), [1, 8]);
    assert_eq!(lines("| it is in | front |\n|---|---|\n| behind |\n- It lies\n- `lies`"), [3, 4]);
    assert_eq!(lines("- one\n- Of each, one.\n# There is\nno title"), [2]);

    let messages = |text: &str| words::translated_messages(text, &code_of(text), &code_of(text)).len();
    let found = ["f(\"it is no name\");", "f(\"a \\\"b\\\" lies\"); // behind"].map(messages);
    assert_eq!(found, [1, 1]);
    assert_eq!(["let behind = \"lies\";", "// \"it lies\"", "f(\"`gives` it\");"].map(messages), [0; 3]);
}

fn has_macro(code: &str, line: usize, name: &str) -> bool {
    code.lines().nth(line - 1).is_some_and(|line| line.contains(&format!("{name}!")))
}

#[test]
fn documents_name_paths_that_exist() {
    let mut broken = Vec::new();
    for document in documents() {
        let text = read(&document);
        for (index, line) in text.lines().enumerate() {
            for path in named_paths(line) {
                if !root().join(&path).exists() {
                    broken.push(format!("{document}:{}: `{path}` does not exist", index + 1));
                }
            }
            let folder = document.rsplit_once('/').map_or("", |(folder, _)| folder);
            for target in link_targets(line) {
                if !root().join(folder).join(target).exists() {
                    broken.push(format!("{document}:{}: the link to `{target}` leads nowhere", index + 1));
                }
            }
        }
    }
    hold("Every path that a document names exists:", &broken);
}

#[test]
fn every_page_of_the_guide_is_listed_and_its_snippets_run() {
    let (summary, tested) = (read("docs/guide/src/SUMMARY.md"), read("src/guide.rs"));
    let mut broken = Vec::new();
    for path in files_below("docs/guide/src", ".md") {
        let page = path.rsplit('/').next().unwrap_or("");
        if page == "SUMMARY.md" {
            continue;
        }
        if !summary.contains(&format!("]({page})")) {
            broken.push(format!("{path}: SUMMARY.md does not list it"));
        }
        if !tested.contains(&format!("\"{page}\"")) {
            broken.push(format!("{path}: src/guide.rs does not name it"));
        }
    }
    hold("Pages of the guide:", &broken);
}

#[test]
fn the_reference_lists_every_error_code_and_option() {
    let is_code = |text: &&str| text.bytes().all(|b| b.is_ascii_lowercase() || b == b'-');
    let index = read("docs/guide/src/errors.md");
    let mut broken = Vec::new();
    for path in ["doors/door.rs", "text/error.rs", "text/resolve/error.rs", "verify/codes.rs"] {
        let text = read(&format!("crates/ir/src/{path}"));
        let start = text.find("fn code(").expect("the codes");
        let codes = &text[start..];
        let codes =
            if path.starts_with("verify") { codes } else { codes.split("\n    }\n").next().unwrap_or(codes) };
        let arms =
            codes.lines().map(str::trim).filter(|line| line.contains("=> \"") || line.starts_with('"'));
        for code in arms.filter_map(|arm| arm.split('"').nth(1)).filter(is_code) {
            if !index.contains(&format!("`{code}`")) {
                broken.push(format!("docs/guide/src/errors.md: `{code}` of {path} is missing"));
            }
        }
    }
    let table = read("docs/guide/src/options.md");
    for (path, what) in [("options.rs", "option"), ("session/definitions.rs", "kind of definition")] {
        let text = read(&format!("crates/engine/src/{path}"));
        let methods = text.lines().filter(|line| line.starts_with("    pub fn ") && line.contains("self"));
        let names = methods.filter(|line| !line.contains("&self")).filter_map(|line| {
            line.trim().strip_prefix("pub fn ")?.split(|c: char| !is_ident_char(c)).next()
        });
        for name in names.filter(|name| !table.contains(&format!("`{name}("))) {
            broken.push(format!("docs/guide/src/options.md: the {what} `{name}` is missing"));
        }
    }
    hold("The guide's reference is complete:", &broken);
}

/// Words of `line` that start with a folder of the repository; patterns (`*`, `<name>`, capitals as place-holders) are no paths.
fn named_paths(line: &str) -> Vec<String> {
    let folders =
        ["crates/", "src/", "tests/", "examples/", "embedding/", "docs/", "benches/", "editors/", ".ci/"];
    line.split(|c: char| c.is_whitespace() || "`()[]|,;:'\"".contains(c))
        .filter(|word| folders.iter().any(|folder| word.starts_with(folder)))
        .filter(|word| !word.contains(['*', '<', '{', '$', '…']))
        .filter_map(|word| word.split('#').next())
        .map(|word| word.trim_end_matches(['.', '/']).to_owned())
        .collect()
}

/// Targets of the Markdown links in `line` that lead to files.
fn link_targets(line: &str) -> Vec<&str> {
    line.split("](")
        .skip(1)
        .filter_map(|rest| rest.split(')').next())
        .filter_map(|target| target.split('#').next())
        .filter(|target| !target.is_empty() && !target.contains("://"))
        .collect()
}

#[test]
fn a_pass_is_a_file_a_row_and_a_test_folder() {
    let folder = "crates/opt/src/passes/";
    let files: BTreeSet<String> = files_below(folder.trim_end_matches('/'), ".rs")
        .iter()
        .map(|path| path[folder.len()..].trim_end_matches(".rs").replace('_', "-"))
        .filter(|name| name != "mod" && !name.contains('/'))
        .collect();
    let mut broken = Vec::new();
    for name in &files {
        let path = format!("{folder}{}.rs", name.replace('-', "_"));
        if !read(&path).contains(&format!("Pass::new(\"{name}\"")) {
            broken.push(format!("{path}: its pass is not named `{name}`"));
        }
        if files_below(&format!("tests/filetests/opt/{name}"), "").is_empty() {
            broken.push(format!("{path}: no test in the folder tests/filetests/opt/{name}"));
        }
    }
    for test in files_below("tests/filetests/opt", "") {
        let name = test.split('/').nth(3).unwrap_or("");
        if !files.contains(name) {
            broken.push(format!("{test}: there is no pass `{name}`"));
        }
    }
    hold("A pass is one file, whose name is its flag and its folder of tests:", &broken);
}

#[test]
fn the_readme_and_the_checks_run_the_same_commands() {
    let checks = read(".ci/run");
    let readme = read("README.md");
    let missing: Vec<String> = fenced(&readme, "sh")
        .iter()
        .map(|line| line.split('#').next().unwrap_or("").trim())
        .filter(|command| command.starts_with("cargo ") && !checks.contains(&format!("step {command}")))
        .map(|command| format!("`{command}` of the quick start is not a step of .ci/run"))
        .collect();
    hold("The commands of the README's quick start are part of the checks:", &missing);
}

#[test]
fn comments_and_literals_are_no_code() {
    let code = code_of("a /* b /* c */ d */ e // f\n\"g\\\"h\" i 'j' k<'l> '\\'' r#\"m\"n\"# o b\"p\" 'q'");
    let words: Vec<&str> = code.split_whitespace().collect();
    assert_eq!(words, ["a", "e", "i", "k<'l>", "o", "b"]);
    assert_eq!(code.lines().count(), 2, "newlines stay");
}

/// `tests/tidy/facade.txt` lists the exports of the library. A module that is re-exported whole has one line.
#[test]
fn the_facade_exports_what_its_list_says() {
    let mut found = Vec::new();
    for path in files_below("src", ".rs").iter().filter(|path| *path != "src/guide.rs") {
        let module =
            path.strip_prefix("src/").and_then(|path| path.strip_suffix(".rs")).expect("a source file");
        let module = if module == "lib" { String::new() } else { format!("{module}::") };
        let exports = code_of(&read(path))
            .replace("pub use", "\u{1}")
            .replace("use ", "private ")
            .replace('\u{1}', "use");
        for used in use_paths(&exports) {
            let name = used.rsplit(" as ").next().and_then(|name| name.rsplit("::").next()).expect("a name");
            let (original, _) = used.split_once(" as ").unwrap_or((&used, ""));
            found.push(format!("{module}{name}  {original}"));
        }
    }
    found.sort();
    let listed: Vec<String> =
        tidy_list("facade").into_iter().map(|(name, from)| format!("{name}  {from}")).collect();
    assert_eq!(
        listed,
        found,
        "tests/tidy/facade.txt lists what `src` exports; now it is\n{}\n",
        found.join("\n")
    );
    let root = found.iter().filter(|line| !line.split("  ").next().is_some_and(|name| name.contains("::")));
    assert!(root.count() <= 40, "names at the root of the library are few");
    let inside = ["brolga::ir::", "brolga::opt::", "brolga::interp::", "brolga::unstable::"];
    let uses_inside = |path: &String| {
        let text = read(path);
        text.lines().any(|line| {
            line.trim_start().starts_with("use ") && inside.iter().any(|name| line.contains(name))
        })
    };
    let programs = files_below("embedding", ".rs").into_iter().chain(documents());
    let broken: Vec<String> = programs.filter(uses_inside).collect();
    hold("Embeddings and documents use the promised part of the library alone:", &broken);
}

#[test]
fn use_groups_are_written_out() {
    let paths = use_paths("pub use a::{b, c::{D as E, f::*}};\nuse g;");
    assert_eq!(paths, ["a::b", "a::c::D as E", "a::c::f::*", "g"]);
}

/// What is left of `code`, without blanks, and the test modules in other files.
fn kept(code: &str) -> (String, Vec<String>) {
    let cut = shipped(code);
    assert_eq!(cut.code.lines().count(), code.lines().count(), "lines keep their numbers");
    (cut.code.split_whitespace().collect(), cut.test_modules)
}

#[test]
fn what_only_tests_compile_is_cut_out() {
    let without = |code: &str| kept(&format!("a();\n{code}\nb();")).0;
    for covered in [
        "#[cfg(test)]\nmod tests {\n fn f() { g(\"}\") }\n}",
        "#[cfg(test)] use super::{A, b::C};",
        "#[cfg(test)]\npub(crate) use a::B;",
        "#[cfg(test)] fn f<T: Fn() -> [u8; 3]>(x: [u8; 4]) -> u8 where T: Copy { { 1 } }",
        "#[cfg(test)] pub struct S<const N: usize = { 1 + 2 }>(u8, [u8; 3]);",
        "#[cfg(test)] const C: [S; 2] = [S { x: 1 }, S { x: 2 }];",
        "#[cfg(test)] static S: T = T { f: |x| { x } };",
        "#[cfg(test)] const fn f() -> u8 { 3 }",
        "#[cfg(test)] thread_local! { static A: u8 = 3; }",
        "#[cfg(test)] impl<T> A<T> for B where T: C<D = E> { fn f() {} }",
        "#[cfg(test)]\n#[cfg(target_os = \"linux\")]\n#[allow(unused)]\nmod tests { }",
        "#[cfg(all(test, loom))] mod models { use a; }",
        "#[cfg(all(not(loom), test))] mod models { use a; }",
        "#[cfg( test )] let x = match y { _ => 3 };",
    ] {
        assert_eq!(without(&code_of(covered)), "a();b();", "{covered}");
    }
    for kept in [
        "#[cfg(not(test))] mod a {}",
        "#[cfg(not(all(test, loom)))] mod a {}",
        "#[cfg(any(test, unix))] mod a {}",
        "#[cfg(feature = \"test\")] mod a {}",
        "#[cfg(testing)] mod a {}",
        "#[derive(Debug)] struct A { test: u8 }",
    ] {
        let code = code_of(kept);
        let all: String = code.split_whitespace().collect();
        assert_eq!(without(&code), format!("a();{all}b();"), "{kept}");
    }
}

#[test]
fn members_that_only_tests_compile_are_cut_out() {
    let cut = |code: &str| kept(code).0;
    assert_eq!(cut("struct A { #[cfg(test)] a: Map<B, C>, d: E }"), "structA{d:E}");
    assert_eq!(cut("struct A { d: E, #[cfg(test)] a: B }"), "structA{d:E,}");
    assert_eq!(cut("impl A { #[cfg(test)] fn f(&self, x: u8) {} fn g() {} }"), "implA{fng(){}}");
    assert_eq!(cut("match x { #[cfg(test)] A(b, c) => f(b, c), D => e }"), "matchx{D=>e}");
    assert_eq!(cut("f(#[cfg(test)] a, b)"), "f(b)");
}

#[test]
fn code_after_a_test_module_is_seen() {
    let (code, modules) =
        kept("mod a;\n#[cfg(test)]\nmod tests;\nmod b;\n#[cfg(test)]\npub(super) mod c;\nuse d;");
    assert_eq!(code, "moda;modb;used;");
    assert_eq!(modules, ["tests", "c"]);
    let (code, modules) = kept("mod a {}\n#![cfg(test)]\nmod b;");
    assert_eq!((code.as_str(), modules.len()), ("moda{}", 0), "an inner attribute covers the rest");
}

#[test]
fn a_cycle_after_a_test_module_is_found() {
    let file = |path: &str, text: &str| {
        let code = code_of(text);
        SourceFile { path: path.to_owned(), shipped: shipped(&code).code, code }
    };
    let files = |between: &str| {
        [
            file("src/lib.rs", "mod a; mod b;"),
            file("src/a.rs", &format!("{between} use crate::b::B; struct A;")),
            file("src/b.rs", "use crate::a::A; struct B;"),
        ]
    };
    let cycles = |between: &str| modules::import_cycles(&files(between), "src/").len();
    assert_eq!(cycles("#[cfg(test)] mod tests;"), 1);
    assert_eq!(cycles("#[cfg(test)]"), 0, "only tests name it");
}
