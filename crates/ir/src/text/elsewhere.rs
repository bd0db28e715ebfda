//! Recognises texts in other languages that people paste: LLVM IR, and Julia source instead of Julia's
//! printed IR.
//!
//! The findings for such a text are unhelpful. So when a text has errors, its lines are searched for
//! beginnings that our text never has, and the first finding gets a note that says what is read here. A
//! guess: it changes no outcome.

/// A language that this reader does not accept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Language {
    Llvm,
    Julia,
}

impl Language {
    /// The note for a text in the language.
    pub(super) fn note(self) -> &'static str {
        match self {
            Language::Llvm => {
                "this looks like LLVM IR; Brolga reads its own text form, which is Julia's printed IR: `1 ─ %1 = Base.add_int(a, b)::Int64`"
            }
            Language::Julia => {
                "this looks like Julia source; Brolga reads the IR that Julia prints of it: the output of `@code_typed f(x)` or `Base.code_ircode(f, (T,))`"
            }
        }
    }
}

/// Beginnings of lines of LLVM IR that are not instructions.
const LLVM_LINES: [&str; 8] = [
    "; ModuleID",
    "; Function Attrs",
    "source_filename = ",
    "target datalayout",
    "target triple",
    "attributes #",
    "define ",
    "declare ",
];

/// LLVM instructions without a result, with the first word of what follows.
const LLVM_EFFECTS: [&str; 9] = [
    "ret void",
    "ret i",
    "ret ptr",
    "ret double",
    "ret float",
    "br label ",
    "br i1 ",
    "store ",
    "call void ",
];

/// LLVM instructions with a result.
const LLVM_VALUES: [&str; 36] = [
    "add",
    "sub",
    "mul",
    "sdiv",
    "udiv",
    "srem",
    "urem",
    "shl",
    "lshr",
    "ashr",
    "and",
    "or",
    "xor",
    "fadd",
    "fsub",
    "fmul",
    "fdiv",
    "icmp",
    "fcmp",
    "load",
    "alloca",
    "getelementptr",
    "bitcast",
    "inttoptr",
    "ptrtoint",
    "zext",
    "sext",
    "trunc",
    "sitofp",
    "fptosi",
    "phi",
    "select",
    "call",
    "tail",
    "extractvalue",
    "insertvalue",
];

/// Words that begin lines of Julia source, but not of any text that this reader accepts.
const JULIA_WORDS: [&str; 16] = [
    "using",
    "import",
    "module",
    "baremodule",
    "export",
    "macro",
    "if",
    "elseif",
    "else",
    "for",
    "while",
    "try",
    "catch",
    "let",
    "begin",
    "return",
];

/// The language of the first recognised line.
pub(super) fn guess(text: &str) -> Option<Language> {
    text.lines().find_map(|line| {
        let line = line.trim();
        if is_llvm(line) {
            Some(Language::Llvm)
        } else if is_julia(line) {
            Some(Language::Julia)
        } else {
            None
        }
    })
}

fn is_llvm(line: &str) -> bool {
    if let Some(start) = LLVM_LINES.iter().find(|start| line.starts_with(**start)) {
        // A function is recognised by the `@` of its symbol.
        return !matches!(*start, "define " | "declare ") || line.contains('@');
    }
    if LLVM_EFFECTS.iter().any(|start| line.starts_with(start)) {
        return true;
    }
    let Some((name, rest)) = line.split_once(" = ") else { return false };
    let word = rest.split_whitespace().next().unwrap_or("");
    name.starts_with('%') && !name.contains(' ') && LLVM_VALUES.contains(&word)
}

fn is_julia(line: &str) -> bool {
    let word = line.split(|c: char| c.is_whitespace() || c == '(').next().unwrap_or("");
    if JULIA_WORDS.contains(&word) {
        return true;
    }
    if line.strip_prefix('@').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_alphabetic())) {
        return true;
    }
    // `f(x) = 2x`
    let short = line.split_once(") = ").map_or("", |(head, _)| head);
    short.starts_with(|c: char| c.is_ascii_alphabetic()) && short.contains('(')
}

#[cfg(test)]
mod tests {
    use super::{Language, guess};

    #[test]
    fn lines_tell_their_language() {
        use Language::{Julia, Llvm};
        let rows = [
            ("define i32 @f(i32 %0) {", Some(Llvm)),
            ("  %3 = add nsw i32 %0, %1", Some(Llvm)),
            ("  ret i32 %3", Some(Llvm)),
            ("define the price", None),
            ("using LinearAlgebra", Some(Julia)),
            ("    if(n < 2)", Some(Julia)),
            ("f(x) = 2x", Some(Julia)),
            ("@inline function f(x)", Some(Julia)),
            ("1 ─ %1 = Base.add_int(a, b)::Int64", None),
            ("└──      return %1", None),
            ("function f(x::Int64)::Int64", None),
            ("# check: f(1) == 2", None),
            ("global x::Int64 = 5", None),
        ];
        for (line, expected) in rows {
            assert_eq!(guess(line), expected, "{line}");
        }
    }
}
