//! Inputs: their kinds, and where they end.
//!
//! An input is complete when every declaration in it has its `end`, every bracket is closed, and no string is
//! open. Only words and brackets determine this, not the parser, so a malformed function is complete too, and
//! its error is shown. An empty line always ends an input.

/// The kind of an input.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Input<'t> {
    /// Blank, or a comment.
    Empty,
    /// `:name arguments`.
    Command(&'t str, &'t str),
    /// Functions, types and globals.
    Definitions,
    /// `name = expression`, with the expression at its original offset in the input.
    Assignment(&'t str, String),
    Expression,
}

/// Words that begin a declaration.
const DECLARATIONS: [&str; 8] =
    ["function", "low", "struct", "mutable", "abstract", "primitive", "global", "const"];

pub(crate) fn kind(text: &str) -> Input<'_> {
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let is_dump = text.lines().any(|line| line.trim_start().starts_with("# signature:"));
    let Some(first) = lines.find(|line| !line.starts_with('#')) else {
        return Input::Empty;
    };
    if let Some((name, args)) = command(first) {
        return Input::Command(name, args);
    }
    if is_dump || DECLARATIONS.contains(&first_word(first)) {
        return Input::Definitions;
    }
    match assignment(text) {
        Some((name, expression)) => Input::Assignment(name, expression),
        None => Input::Expression,
    }
}

/// The name and arguments of a command.
pub(crate) fn command(line: &str) -> Option<(&str, &str)> {
    let command = line.trim().strip_prefix(':')?;
    let is_one = command.starts_with(|c: char| c.is_ascii_alphabetic() || c == '?');
    let (name, args) = command.split_once(char::is_whitespace).unwrap_or((command, ""));
    is_one.then_some((name, args.trim()))
}

fn first_word(line: &str) -> &str {
    line.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or("")
}

/// Splits `name = expression`. The text before the expression is replaced by spaces, so that its errors have
/// the right positions.
fn assignment(text: &str) -> Option<(&str, String)> {
    let (left, right) = text.split_once('=')?;
    let name = left.trim();
    let is_name = name.starts_with(|c: char| c.is_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '!'));
    if !is_name || right.starts_with(['=', '>']) {
        return None;
    }
    let blank: String = left.chars().map(|c| if c == '\n' { '\n' } else { ' ' }).collect();
    Some((name, format!("{blank} {right}")))
}

/// Whether an input needs no more lines.
#[must_use]
pub fn is_complete(text: &str) -> bool {
    let (mut open, mut brackets, mut is_dump) = (0i64, 0i64, false);
    for line in text.lines() {
        let line = line.trim();
        if line.starts_with("# signature:") {
            is_dump = true;
        }
        let (depth, is_open_string) = bracket_depth(line);
        if is_open_string {
            // A string cannot span lines in the text form: the reader reports the error.
            return true;
        }
        brackets += depth;
        let mut words = line.split_whitespace();
        let first = match words.next() {
            Some("mutable" | "low") => words.next(),
            first => first,
        };
        let ends_here = line.split_whitespace().next_back() == Some("end");
        match first {
            Some("function" | "struct") if !ends_here => open += 1,
            Some("end") => open -= 1,
            _ => {}
        }
    }
    if is_dump {
        return text.lines().any(|line| is_end_of_dump(line.trim()));
    }
    open <= 0 && brackets <= 0
}

/// The last line of a dump: the closing bracket with the result type, or the last row of a plain printout
/// followed by nothing.
fn is_end_of_dump(line: &str) -> bool {
    line.starts_with(") => ") || line == ")" || line == "end"
}

/// The number of brackets that a line opens minus those that it closes, and whether it ends inside a string.
fn bracket_depth(line: &str) -> (i64, bool) {
    let (mut depth, mut chars, mut in_string) = (0, line.chars(), false);
    while let Some(c) = chars.next() {
        match c {
            '\\' if in_string => drop(chars.next()),
            '"' => in_string = !in_string,
            _ if in_string => {}
            '\'' => {
                // A character: one scalar, or an escape, and the closing quote.
                let rest = chars.as_str();
                let length =
                    rest.char_indices().skip(1).find(|&(at, c)| c == '\'' && !rest[..at].ends_with('\\'));
                if let Some((at, _)) = length.filter(|&(at, _)| at <= 10) {
                    chars = rest[at + 1..].chars();
                }
            }
            '#' if depth == 0 && line.starts_with('#') => return (0, false),
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            _ => {}
        }
    }
    (depth, in_string)
}

#[cfg(test)]
mod tests {
    use super::{Input, is_complete, kind};

    #[test]
    fn kinds() {
        assert_eq!(kind("  \n# a comment\n"), Input::Empty);
        assert_eq!(kind(":opt fib"), Input::Command("opt", "fib"));
        assert_eq!(kind(":?"), Input::Command("?", ""));
        assert_eq!(kind("# check: f() == 1\nfunction f()::Int64"), Input::Definitions);
        assert_eq!(kind("mutable struct A"), Input::Definitions);
        assert_eq!(kind("functional(1)"), Input::Expression);
        assert_eq!(kind("f(1)"), Input::Expression);
        assert_eq!(kind("x == 1"), Input::Expression);
        assert_eq!(kind(":a => 1"), Input::Command("a", "=> 1"));
        assert_eq!(kind("(a = 1, b = 2)"), Input::Expression);
        assert_eq!(kind("xs = f(1)"), Input::Assignment("xs", "     f(1)".to_owned()));
        assert_eq!(kind("x = y == 2"), Input::Assignment("x", "    y == 2".to_owned()));
    }

    #[test]
    fn an_input_ends_with_its_declarations_and_brackets() {
        assert!(is_complete("f(1)"));
        assert!(!is_complete("f(1,"));
        assert!(is_complete("f(1,\n2)"));
        assert!(is_complete("f(\"(\")") && is_complete("f('(')") && is_complete("f('\\'')"));
        assert!(!is_complete("function f()::Int64"));
        assert!(!is_complete("function f()::Int64\n1 ─     return 1"));
        assert!(is_complete("function f()::Int64\n1 ─     return 1\nend"));
        assert!(!is_complete("struct A\n    x::Int64"));
        assert!(is_complete("struct A end"));
        assert!(is_complete("abstract type A end"));
        assert!(!is_complete("struct A end\nmutable struct B"));
        assert!(!is_complete("# signature: f(x::Int64)\nCodeInfo("));
        assert!(is_complete("# signature: f(x::Int64)\nCodeInfo(\n1 ─     return x\n) => Int64"));
        // An extra bracket and an open string are errors that the reader shows.
        assert!(is_complete("f(1))") && is_complete("f(\"x)"));
    }
}
