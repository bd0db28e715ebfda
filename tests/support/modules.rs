//! Which source files of a package name each other, and the import cycles among them.
//!
//! ```text
//!  a/src/lib.rs   a/src/parse.rs   a/src/parse/number.rs      files
//!       []            [parse]         [parse, number]         module paths
//! ```
//!
//! A file depends on the file that defines what it names through `use` or through a path that starts with `crate`, `self` or
//! `super`. A name that a module re-exports leads to the file that defines it, so a table of contents takes no part in a cycle.
//! The file of a module and the files of its folder are one room: a file may name items that its own module file defines.
//!
//! Everything is textual: names that macros build, and inherent methods, are invisible. Cost: linear in the code.

use std::collections::{BTreeMap, BTreeSet};

use crate::support::{SourceFile, is_ident_char, use_paths};

/// The module path of a file below `src`: `["parse", "number"]`.
type ModulePath = Vec<String>;

/// Each file of the package and the files of the package that it names.
type Imports = BTreeMap<String, BTreeSet<String>>;

struct Package<'a> {
    /// The file of each module.
    files: BTreeMap<ModulePath, &'a SourceFile>,
    /// The names that each module re-exports, and the paths that they stand for.
    reexports: BTreeMap<ModulePath, BTreeMap<String, ModulePath>>,
}

/// The import cycles of the package whose sources lie below `src` (a path that ends in `/`): the files of each strongly
/// connected component of more than one file, sorted.
pub(crate) fn import_cycles(files: &[SourceFile], src: &str) -> Vec<Vec<String>> {
    components(&imports(files, src)).into_iter().filter(|component| component.len() > 1).collect()
}

/// The imports within a cycle, a line for each file.
pub(crate) fn names_within(files: &[SourceFile], src: &str, cycle: &[String]) -> String {
    let imports = imports(files, src);
    let line = |file: &String| {
        let named: Vec<&str> =
            imports[file].iter().filter(|path| cycle.contains(path)).map(String::as_str).collect();
        format!("    {file} names {}", named.join(", "))
    };
    cycle.iter().map(line).collect::<Vec<_>>().join("\n")
}

fn imports(files: &[SourceFile], src: &str) -> Imports {
    let mut package = Package { files: BTreeMap::new(), reexports: BTreeMap::new() };
    for file in files {
        if let Some(path) = file.path.strip_prefix(src) {
            package.files.insert(module_path(path), file);
        }
    }
    for (module, file) in &package.files {
        let names = use_paths(&public_uses(&file.shipped))
            .into_iter()
            .filter_map(|path| {
                let name = path.rsplit([' ', ':']).next()?.to_owned();
                Some((name, package.absolute(module, &path)?))
            })
            .collect();
        package.reexports.insert(module.clone(), names);
    }
    let named = |module: &ModulePath, file: &SourceFile| {
        let code = flatten_inline_modules(&file.shipped);
        let paths = use_paths(&code).into_iter().chain(inline_paths(&code));
        paths
            .filter_map(|path| package.resolve(package.absolute(module, &path)?, 0))
            .filter(|target| *target != module && !is_own_room(target, module))
            .map(|target| package.files[target].path.clone())
            .collect()
    };
    package.files.iter().map(|(module, file)| (file.path.clone(), named(module, file))).collect()
}

/// Whether `target` is the module file of a folder that holds `module`. The root of the crate is no such folder.
fn is_own_room(target: &ModulePath, module: &ModulePath) -> bool {
    !target.is_empty() && module.starts_with(target)
}

impl Package<'_> {
    /// `path`, as it stands in `module`, from the root of the crate; nothing if it leads out of the crate.
    fn absolute(&self, module: &ModulePath, path: &str) -> Option<ModulePath> {
        let path = path.split(" as ").next().unwrap_or("");
        let mut parts: Vec<String> = path.split("::").map(|part| part.trim().to_owned()).collect();
        if parts.last().is_some_and(|last| last == "*" || last == "self") {
            parts.pop();
        }
        let mut base = module.clone();
        match parts.first()?.as_str() {
            "crate" => base.clear(),
            "self" => {}
            "super" => {
                while parts.get(1).is_some_and(|part| part == "super") {
                    parts.remove(0);
                    base.pop();
                }
                base.pop();
            }
            first => {
                base.push(first.to_owned());
                let is_child = self.files.contains_key(&base);
                base.pop();
                if !is_child {
                    return None;
                }
                parts.insert(0, String::new());
            }
        }
        base.extend(parts.drain(1..));
        Some(base)
    }

    /// The module whose file defines `path`. Re-exports of re-exports are followed to a depth that no crate has.
    fn resolve(&self, path: ModulePath, depth: usize) -> Option<&ModulePath> {
        let (module, length) =
            (0..=path.len()).rev().find_map(|n| Some((self.files.get_key_value(&path[..n])?.0, n)))?;
        let reexported = path.get(length).and_then(|name| self.reexports.get(module)?.get(name));
        match reexported {
            Some(target) if *target != path && depth < 8 => {
                let rest = path[length + 1..].iter().cloned();
                self.resolve(target.iter().cloned().chain(rest).collect(), depth + 1)
            }
            _ => Some(module),
        }
    }
}

/// `parse/number.rs` gives `["parse", "number"]`, `parse/mod.rs` and `parse.rs` both `["parse"]`, `lib.rs` nothing.
fn module_path(path: &str) -> ModulePath {
    let mut parts: ModulePath = path.trim_end_matches(".rs").split('/').map(str::to_owned).collect();
    if matches!(parts.last().map(String::as_str), Some("mod" | "lib" | "main")) {
        parts.pop();
    }
    parts
}

/// The `use` items of `code` that have a visibility, as code.
fn public_uses(code: &str) -> String {
    let mut items = String::new();
    for (at, _) in code.match_indices("use ") {
        let before = code[..at].trim_end();
        let is_public = before.ends_with("pub")
            || (before.ends_with(')') && before.rsplit_once("pub(").is_some_and(|(_, rest)| rest.len() < 16));
        if is_public && let Some(end) = code[at..].find(';') {
            items.push_str(&code[at..=at + end]);
            items.push('\n');
        }
    }
    items
}

/// Paths in expressions and types that start with `crate`, `self` or `super`.
fn inline_paths(code: &str) -> impl Iterator<Item = String> + '_ {
    ["crate::", "self::", "super::"].into_iter().flat_map(move |start| {
        code.match_indices(start).filter_map(move |(at, _)| {
            let path = code[at..].split(|c| !is_ident_char(c) && c != ':').next()?;
            let is_whole = !code[..at].ends_with(|c| is_ident_char(c) || c == ':');
            // A path that ends in colons is the head of a `use` group.
            (is_whole && !path.ends_with(':')).then(|| path.to_owned())
        })
    })
}

/// `code` with `super::` written as `self::` inside of inline modules, whose parent is the module of the file.
fn flatten_inline_modules(code: &str) -> String {
    let mut flat = String::with_capacity(code.len());
    let mut rest = code;
    while let Some(at) = next_inline_module(rest) {
        let end = rest[at..].char_indices().scan(0usize, |depth, (offset, c)| {
            match c {
                '{' => *depth += 1,
                '}' => *depth -= 1,
                _ => {}
            }
            Some((offset, *depth))
        });
        let end = end.skip_while(|&(_, depth)| depth == 0).find(|&(_, depth)| depth == 0);
        let end = end.map_or(rest.len(), |(offset, _)| at + offset);
        flat.push_str(&rest[..at]);
        flat.push_str(&rest[at..end].replace("super::", "self::"));
        rest = &rest[end..];
    }
    flat + rest
}

/// The place of the first `mod name {`.
fn next_inline_module(code: &str) -> Option<usize> {
    code.match_indices("mod ").map(|(at, _)| at).find(|&at| {
        let after = code[at + 4..].trim_start_matches(is_ident_char);
        !code[..at].ends_with(is_ident_char) && after.starts_with(" {")
    })
}

/// Strongly connected components (Kosaraju), each sorted, in the order of their first files.
fn components(imports: &Imports) -> Vec<Vec<String>> {
    let mut reversed: Imports = imports.keys().map(|file| (file.clone(), BTreeSet::new())).collect();
    for (file, targets) in imports {
        for target in targets {
            reversed.entry(target.clone()).or_default().insert(file.clone());
        }
    }
    let mut order = Vec::new();
    let mut seen = BTreeSet::new();
    for file in imports.keys() {
        postorder(imports, file, &mut seen, &mut order);
    }
    let mut seen = BTreeSet::new();
    let mut components = Vec::new();
    for file in order.iter().rev() {
        let mut component = Vec::new();
        postorder(&reversed, file, &mut seen, &mut component);
        component.sort();
        components.push(component);
    }
    components.sort();
    components
}

/// Appends the files that `from` reaches and that were not `seen`, each after those that it reaches.
fn postorder(imports: &Imports, from: &str, seen: &mut BTreeSet<String>, order: &mut Vec<String>) {
    if !seen.insert(from.to_owned()) {
        return;
    }
    for target in imports.get(from).into_iter().flatten() {
        postorder(imports, target, seen, order);
    }
    order.push(from.to_owned());
}
