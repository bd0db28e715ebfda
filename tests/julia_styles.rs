//! Programs printed in the styles of Julia 1.6 to 1.13 read to the same module.
//!
//! The printer here takes the normal form of a program and writes it as `code_typed` and `code_ircode` of a version do:
//!
//! ```text
//! normal form   │    %5 = intrinsic Base.sle_int(1, n)::Bool
//! 1.6           │    %5 = Base.sle_int(1, n)::Bool
//! 1.9 ircode    4 │    %5 = Base.sle_int(1, n)::Bool                                   │╻ <=
//! 1.10 source   │  ┌ @ int.jl:488 within `<=`
//!               │  │ %5 = Base.sle_int(1, n)::Bool
//! 1.12 ircode   4 │    %5 = intrinsic (Core.Intrinsics.sle_int)(1, n)::Bool            │╻ <=
//! ```
//!
//! Each style differs from the normal form as the version does: labels, the callee and the arguments of `invoke`, how handlers are entered and left,
//! gutters of lines, rails, `unreachable`, and the spelling of types. Programs are the corpus, `tests/julia/` and the shared ones where
//! they are there.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use brolga::format;
use brolga::unstable::read_unit;

/// The text around the rows.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Around {
    /// `CodeInfo(` … `) => R`.
    CodeInfo,
    /// The same as the element of a `Vector{Any}`.
    Listed,
    /// The rows alone, with lines at the left and names at the right, as `code_ircode` prints.
    Gutters,
    /// `CodeInfo(` with rows that say where the next ones come from, and rails.
    Source,
}

/// How a version prints.
#[derive(Clone, Copy, Debug)]
struct Style {
    version: &'static str,
    around: Around,
    /// `intrinsic`, `builtin`, `dynamic`, and `invoke` in a column of nine.
    labels: bool,
    /// `(Core.Intrinsics.add_int)(…)`.
    parenthesised: bool,
    /// `_2` for arguments of `invoke`.
    slots: bool,
    /// `$(Expr(:enter, #n))`, and handlers that leave themselves.
    old_handlers: bool,
    /// `Tuple{Int64,Int64}`, `$(Expr(:unreachable))`.
    old_spelling: bool,
}

const PLAIN: Style = Style {
    version: "1.6",
    around: Around::CodeInfo,
    labels: false,
    parenthesised: false,
    slots: true,
    old_handlers: true,
    old_spelling: true,
};

const STYLES: [Style; 10] = [
    PLAIN,
    Style { version: "1.6 listed", around: Around::Listed, ..PLAIN },
    Style { version: "1.9", old_spelling: false, ..PLAIN },
    Style { version: "1.9 ircode", around: Around::Gutters, old_spelling: false, ..PLAIN },
    Style { version: "1.10", slots: false, old_spelling: false, ..PLAIN },
    Style { version: "1.10 source", around: Around::Source, slots: false, old_spelling: false, ..PLAIN },
    Style { version: "1.11", slots: false, old_handlers: false, old_spelling: false, ..PLAIN },
    Style { version: "1.12", labels: true, slots: false, old_handlers: false, old_spelling: false, ..PLAIN },
    Style {
        version: "1.12 ircode",
        around: Around::Gutters,
        labels: true,
        parenthesised: true,
        slots: true,
        old_handlers: false,
        old_spelling: false,
    },
    Style {
        version: "1.13 source",
        around: Around::Source,
        labels: true,
        slots: false,
        old_handlers: false,
        old_spelling: false,
        ..PLAIN
    },
];

/// A row of the normal form.
struct Row<'t> {
    /// The number of the block that it begins.
    head: Option<&'t str>,
    guard: &'t str,
    ssa: Option<&'t str>,
    /// Without label.
    stmt: &'t str,
    label: Option<&'t str>,
}

fn row(line: &str) -> Row<'_> {
    let first = line.split(' ').next().unwrap_or_default();
    let head = first.bytes().all(|byte| byte.is_ascii_digit()).then_some(first);
    let end = match head {
        Some(number) => {
            let rest = &line[number.len() + 1..];
            number.len() + 1 + rest.find(' ').unwrap_or(rest.len())
        }
        None => line.find(' ').unwrap_or(line.len()),
    };
    let (guard, rest) = line.split_at(end);
    let mut stmt = rest.trim_start();
    let mut ssa = None;
    if stmt.starts_with('%')
        && let Some((name, rest)) = stmt.split_once('=')
        && name.trim_end()[1..].bytes().all(|byte| byte.is_ascii_digit())
    {
        ssa = Some(name.trim_end());
        stmt = rest.trim_start();
    }
    let label = ["intrinsic", "builtin", "dynamic builtin", "dynamic"]
        .into_iter()
        .find(|label| stmt.strip_prefix(label).is_some_and(|rest| rest.starts_with(' ')));
    if let Some(label) = label {
        stmt = &stmt[label.len() + 1..];
    }
    Row { head, guard, ssa, stmt, label }
}

/// Calls a function on the parts of a text outside strings and characters.
fn outside_strings(text: &str, mut change: impl FnMut(&str) -> String) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('"') {
        // `var"…"` is a name, and as opaque as a string.
        out += &change(&rest[..at]);
        let mut end = at + 1;
        let bytes = rest.as_bytes();
        while end < bytes.len() && bytes[end] != b'"' {
            end += if bytes[end] == b'\\' { 2 } else { 1 };
        }
        end = (end + 1).min(rest.len());
        out += &rest[at..end];
        rest = &rest[end..];
    }
    out + &change(rest)
}

/// The names of the parameters of a signature, by their slots.
fn parameters(signature: &str) -> Vec<String> {
    let (mut depth, mut part, mut parts) = (0, String::new(), Vec::new());
    let open = if signature.starts_with('(') {
        signature.find(")(").map_or(0, |at| at + 1)
    } else {
        signature.find('(').unwrap_or(0)
    };
    for c in signature[open + 1..].chars() {
        match c {
            '(' | '{' => depth += 1,
            ')' if depth == 0 => break,
            ')' | '}' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(std::mem::take(&mut part));
                continue;
            }
            _ => {}
        }
        part.push(c);
    }
    parts.push(part);
    parts.iter().map(|part| part.split("::").next().unwrap_or_default().trim().to_owned()).collect()
}

/// The slots of the arguments that `invoke` names.
fn with_slots(stmt: &str, names: &[String]) -> String {
    outside_strings(stmt, |text| {
        let mut out = text.to_owned();
        for (n, name) in names.iter().enumerate().filter(|(_, name)| !name.is_empty()) {
            for before in ["(", ", "] {
                out = out.replace(&format!("{before}{name}::"), &format!("{before}_{}::", n + 2));
            }
        }
        out
    })
}

/// The statement of a row as a version prints it.
fn statement(row: &Row<'_>, style: Style, names: &[String]) -> String {
    let mut stmt = row.stmt.to_owned();
    if let Some(call) = stmt.strip_prefix("invoke ") {
        let mut call = call.to_owned();
        // The callee by its value has its type since 1.12.
        if !style.labels
            && let Some(rest) = call.strip_prefix('(')
            && rest.starts_with('%')
            && let Some((value, rest)) = rest.split_once("::")
            && let Some(end) = rest.find(")(")
        {
            call = format!("{value}{}", &rest[end + 1..]);
        }
        if style.slots {
            call = with_slots(&call, names);
        }
        stmt = if style.labels { format!("   invoke {call}") } else { format!("invoke {call}") };
    }
    if style.old_handlers {
        if let Some(target) = stmt.strip_prefix("enter #")
            && target.bytes().all(|byte| byte.is_ascii_digit())
        {
            stmt = format!("$(Expr(:enter, #{target}))");
        }
        if let Some(tokens) = stmt.strip_prefix("$(Expr(:leave, ") {
            stmt = format!("$(Expr(:leave, {}))", tokens.matches('%').count());
        }
    }
    if style.old_spelling && stmt == "unreachable" {
        stmt = "$(Expr(:unreachable))::Union{}".to_owned();
    }
    if style.old_spelling {
        stmt = outside_strings(&stmt, tight_types);
    }
    if let (Some(label), true) = (row.label, style.labels) {
        if style.parenthesised
            && let Some((callee, rest)) = stmt.split_once('(')
            && let Some(name) = callee.strip_prefix("Base.").filter(|name| !name.contains([':', '.']))
            && label == "intrinsic"
        {
            stmt = format!("(Core.Intrinsics.{name})({rest}");
        }
        stmt = format!("{label:>9} {stmt}");
    }
    stmt
}

/// Without blanks inside braces, as before 1.6.
fn tight_types(text: &str) -> String {
    let (mut depth, mut out) = (0, String::new());
    for c in text.chars() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ' ' if depth > 0 && out.ends_with(',') => continue,
            _ => {}
        }
        out.push(c);
    }
    out
}

/// A function of the normal form as a dump.
fn dump(signature: &str, lines: &[&str], style: Style) -> String {
    let (signature, hint) = match signature.rsplit_once(' ') {
        Some((before, hint @ ("inline" | "noinline"))) => (before, Some(hint)),
        _ => (signature, None),
    };
    let names = parameters(signature);
    let before = signature.split(" where ").next().unwrap_or_default();
    let result = before.rsplit_once(")::").map_or("Any", |(_, result)| result);
    let is_qualified = signature.starts_with('(')
        || signature.split('(').next().is_some_and(|name| name.contains('.') && !name.starts_with("var"));
    let module = if is_qualified { "" } else { "Main." };
    let mut out = format!("# signature: {module}{signature}\n");
    match style.around {
        Around::Listed => out += "1-element Vector{Any}:\n CodeInfo(\n",
        Around::CodeInfo | Around::Source => out += "CodeInfo(\n",
        Around::Gutters => {}
    }
    let rows: Vec<Row<'_>> = lines.iter().map(|line| row(line)).collect();
    let handlers: Vec<&str> = rows
        .iter()
        .filter_map(|row| row.stmt.strip_prefix("enter #"))
        .filter(|_| style.old_handlers)
        .collect();
    let width = rows.iter().filter_map(|row| row.ssa).map(str::len).max().unwrap_or(0);
    let guard_width = rows.iter().map(|row| row.guard.chars().count()).max().unwrap_or(3);
    let mut leaves = false;
    let mut last_line = 0;
    for (n, row) in rows.iter().enumerate() {
        if let Some(head) = row.head {
            leaves = handlers.iter().any(|handler| handler.split([' ', ':']).next() == Some(head));
        }
        let is_phic = row.stmt.starts_with("φᶜ");
        let (mut guard, mut inserted) = (row.guard.to_owned(), None);
        if leaves && !is_phic {
            inserted = Some(guard);
            guard = if row.guard.starts_with('└') { row.guard.to_owned() } else { "│".to_owned() };
            leaves = false;
        }
        let ssa = match row.ssa {
            Some(ssa) => format!("{ssa:width$} = "),
            None if width > 0 => " ".repeat(width + 3),
            None => "   ".to_owned(),
        };
        let stmt = statement(row, style, &names);
        let (none, leave) = (" ".repeat(width + 3), "$(Expr(:leave, 1))");
        let line = n / 2 + 1;
        // Writing to a string cannot fail.
        let _ = match style.around {
            Around::CodeInfo | Around::Listed => {
                if let Some(first) = inserted {
                    let _ = writeln!(out, "{first:guard_width$} {none}{leave}");
                }
                writeln!(out, "{guard:guard_width$} {ssa}{stmt}")
            }
            Around::Gutters => {
                let left = if line == last_line { String::new() } else { line.to_string() };
                last_line = line;
                if let Some(first) = inserted {
                    let _ = writeln!(out, "{left:4}{first:guard_width$} {none}{:80}│", leave);
                    let _ = writeln!(out, "{:4}{guard:guard_width$} {ssa}{stmt:80}│╻ f", "");
                } else {
                    let right = ["│", "│╻  size", "││╻╷ iterate", ""][n % 4];
                    let text = format!("{left:4}{guard:guard_width$} {ssa}{stmt:80}{right}");
                    let _ = writeln!(out, "{}", text.trim_end());
                }
                Ok(())
            }
            Around::Source => {
                let between = if row.head.is_some() { "" } else { "│" };
                if n % 3 == 0 {
                    let _ = writeln!(out, "{between:guard_width$} @ REPL[1]:{line} within `f`");
                }
                if let Some(first) = inserted {
                    let _ = writeln!(out, "{first:guard_width$} {none}{leave}");
                }
                if n % 3 == 1 {
                    let _ = writeln!(out, "{between:guard_width$}┌ @ int.jl:87 within `+`");
                    let _ = writeln!(out, "{between:guard_width$}│┌ @ a.jl:1 within `g` @ b.jl:{line}");
                    let _ = writeln!(out, "{guard:guard_width$}││ {ssa}{stmt}");
                    let is_last = rows.get(n + 1).is_none_or(|next| next.head.is_some());
                    writeln!(out, "{:guard_width$}└└", if is_last { "" } else { "│" })
                } else {
                    writeln!(out, "{guard:guard_width$} {ssa}{stmt}")
                }
            }
        };
    }
    if let Some(hint) = hint {
        // Optimised code has it in a block to which nothing leads.
        let last =
            rows.iter().filter_map(|row| row.head).next_back().and_then(|head| head.parse::<u32>().ok());
        let guard = format!("{} ─", last.unwrap_or(0) + 1);
        let left = if style.around == Around::Gutters { "    " } else { "" };
        let _ = writeln!(out, "{left}{guard:guard_width$} {}$(Expr(:meta, :{hint}))", " ".repeat(width + 3));
    }
    match style.around {
        Around::Gutters => out += "\n",
        _ => {
            let _ = writeln!(out, ") => {result}\n");
        }
    }
    out
}

/// A program in normal form as a file of dumps.
fn restyled(normal: &str, style: Style) -> String {
    let (mut types, mut globals, mut functions) = (String::new(), String::new(), String::new());
    let mut lines = normal.lines();
    while let Some(line) = lines.next() {
        if let Some(signature) = line.strip_prefix("function ") {
            let body: Vec<&str> = lines.by_ref().take_while(|&line| line != "end").collect();
            functions += &dump(signature, &body, style);
        } else if line.starts_with("global ") || line.starts_with("const ") {
            let _ = writeln!(globals, "# globals: {line}");
        } else if line.starts_with('#') || line.is_empty() {
        } else {
            let mut decl = line.to_owned();
            if !decl.ends_with(" end") {
                for line in lines.by_ref() {
                    let end = line == "end";
                    decl = decl + "; " + line.trim();
                    if end {
                        break;
                    }
                }
            }
            let _ = writeln!(types, "# types: {decl}");
        }
    }
    // The headers of a file belong behind the first signature.
    match functions.split_once('\n') {
        Some((first, rest)) => format!("{first}\n{types}{globals}{rest}"),
        None => String::new(),
    }
}

/// The normal form of a text without its comments and tests.
fn normal(name: &str, text: &str) -> Result<String, String> {
    let (source, unit) = read_unit(name, text.as_bytes()).map_err(|error| error.to_string())?;
    let text = format(&source, &unit).map_err(|error| error.to_string())?;
    let kept: Vec<&str> = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).collect();
    Ok(kept.join("\n").trim().to_owned())
}

fn files() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let shared = root.ancestors().map(|dir| dir.join("shared/julia")).find(|dir| dir.is_dir());
    let folders = [Some(root.join("tests/corpus")), Some(root.join("tests/julia")), shared];
    let mut files: Vec<PathBuf> = folders
        .iter()
        .flatten()
        .flat_map(|folder| std::fs::read_dir(folder).expect("a folder of programs"))
        .map(|entry| entry.expect("a file").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "txt"))
        .collect();
    files.sort();
    files
}

#[test]
fn every_style_reads_to_the_same_module() {
    let (mut failed, mut count) = (Vec::new(), 0);
    for path in files() {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&path).expect("a program");
        let expected = normal(&name, &text).unwrap_or_else(|error| panic!("{name}: {error}"));
        for style in STYLES {
            let printed = restyled(&expected, style);
            count += 1;
            match normal(&name, &printed) {
                Ok(found) if found == expected => {}
                Ok(found) => {
                    let differs = expected.lines().zip(found.lines()).find(|(a, b)| a != b);
                    let (a, b) = differs.unwrap_or(("", "the length"));
                    failed.push(format!("{name} in the style of {}:\n  {a}\n  {b}", style.version));
                }
                Err(error) => failed.push(format!("{name} in the style of {}: {error}", style.version)),
            }
        }
    }
    assert!(failed.is_empty(), "{} of {count} failed:\n{}", failed.len(), failed.join("\n"));
    assert!(count >= 300, "{count}");
}
