//! Completion of names: commands, functions, types, intrinsics, variables.

use std::collections::BTreeSet;

use brolga_ir::base_fn::BaseFn;
use brolga_ir::builtin::Builtin;
use brolga_ir::intrinsic::Intrinsic;

use crate::commands::COMMANDS;
use crate::prompt::Prompt;

/// Words that begin declarations.
const WORDS: [&str; 7] =
    ["abstract type", "const", "function", "global", "mutable struct", "primitive type", "struct"];

impl Prompt<'_> {
    /// All names that are meaningful at the prompt.
    pub(crate) fn names(&self) -> BTreeSet<String> {
        let mut names: BTreeSet<String> = WORDS.iter().map(|word| (*word).to_owned()).collect();
        names.extend(COMMANDS.iter().map(|command| format!(":{}", command.name)));
        names.extend(Intrinsic::ALL.iter().map(|intrinsic| format!("Base.{}", intrinsic.name())));
        names.extend(Builtin::ALL.iter().map(|builtin| format!("Core.{}", builtin.name())));
        names.extend(BaseFn::ALL.iter().map(|function| format!("{}.{}", function.module(), function.name())));
        let types = &self.session().context().types;
        let declared = types.decls().map(|decl| types.decl(decl).name);
        names.extend(declared.map(|name| self.session().context().names.text(name).to_owned()));
        let methods = self.dylib.methods().unwrap_or_default();
        names.extend(methods.into_iter().flat_map(|method| [method.name, method.symbol]));
        names.extend(self.evaluator.variables().map(|(name, _)| name.to_owned()));
        // Names with other signs are not completed.
        names.retain(|name| !name.starts_with('#') && name.len() > 1);
        names
    }
}

/// The start of the word before the cursor, and the names that begin with it.
pub(crate) fn complete(names: &BTreeSet<String>, line: &str, at: usize) -> (usize, Vec<String>) {
    let before = line.get(..at).unwrap_or(line);
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '!' | ':');
    let start = before.char_indices().rev().take_while(|&(_, c)| is_part(c)).last().map_or(at, |(at, _)| at);
    // `x::Int` completes the type.
    let start = before[start..].rfind("::").map_or(start, |at| start + at + 2);
    let word = &before[start..];
    if word.is_empty() {
        return (start, Vec::new());
    }
    let fits = names.range(word.to_owned()..).take_while(|name| name.starts_with(word));
    (start, fits.cloned().collect())
}

#[cfg(test)]
mod tests {
    use super::complete;

    #[test]
    fn the_word_before_the_cursor_is_completed() {
        let names = ["fib", "fill", "Int32", "Int64", ":opt", "Base.add_int"].map(str::to_owned).into();
        assert_eq!(complete(&names, "fi", 2), (0, vec!["fib".to_owned(), "fill".to_owned()]));
        assert_eq!(complete(&names, "g(fib", 5), (2, vec!["fib".to_owned()]));
        assert_eq!(complete(&names, "x::Int6", 7), (3, vec!["Int64".to_owned()]));
        assert_eq!(complete(&names, ":o", 2), (0, vec![":opt".to_owned()]));
        assert_eq!(complete(&names, "Base.a", 6), (0, vec!["Base.add_int".to_owned()]));
        assert_eq!(complete(&names, "f(", 2).1, Vec::<String>::new());
        assert_eq!(complete(&names, "äfi", 4).1, Vec::<String>::new());
    }
}
