//! The names of functions: a module and a name in it.
//!
//! ```text
//! f, Main.f          module Main       f
//! A.g, Main.A.g      module A          A.g        modules inside `Main` are named without it
//! Base.max           module Base       Base.max
//! Core.throw_…       module Base       Base.throw_…
//! ```
//!
//! `Base`, `Core` and the modules inside them are the *library*. They bind most of each other's names, and a
//! text names a function by the module through which its caller sees it, so the library counts as one module,
//! `Base`, unless a program defines a function by its full path (`Base.Iterators.filter`).
//!
//! The path of a module is one [`Name`], as written: its parts separated by dots, with `var"…"` around those
//! that are not identifiers. So equal paths are equal names. A function of `Main` is spelled by its name
//! alone.

use std::fmt;

use crate::ident::{is_identifier, write_name};
use crate::names::{Name, Names};

/// The module of programs.
pub const MAIN: &str = "Main";
/// The module that represents the library.
pub const BASE: &str = "Base";

/// The end of the symbol of a boxed entry: the form of a function for callers that do not have its signature.
pub const BOXED_ENTRY: &str = "#boxed";

/// The identity of a function.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct FunctionName {
    /// The path of its module as written, without a leading `Main.`.
    pub module: Name,
    /// Its name in the module.
    pub name: Name,
}

/// A function's name without everything up to its last dot.
pub fn bare_name(name: &str) -> &str {
    name.rsplit_once('.').map_or(name, |(_, bare)| if bare.is_empty() { name } else { bare })
}

impl FunctionName {
    /// The function that a text names: `f`, `A.g`, `Base.max`. If the part before the last dot is not a
    /// module path, the text names a function of `Main`.
    pub fn parse(names: &Names, text: &str) -> FunctionName {
        let path = text.rsplit_once('.').filter(|(path, name)| {
            !name.is_empty() && path.split('.').all(is_identifier) && !name.starts_with('"')
        });
        match path {
            Some((path, name)) => {
                let exact = module_path(path.split('.'));
                let module = if is_library(&exact) { BASE } else { &exact };
                FunctionName::of(names, module, name)
            }
            None => FunctionName::of(names, MAIN, text),
        }
    }

    /// The function with this name in a module, given by path, as programs with these names see it.
    pub fn of(names: &Names, module: &str, name: &str) -> FunctionName {
        // All programs see one library.
        let name = if is_library(module) { names.intern(name) } else { names.of_function(module, name) };
        FunctionName { module: names.intern(module), name }
    }

    /// The same function in another table of names.
    pub fn taken_over(self, from: &Names, to: &Names) -> FunctionName {
        FunctionName { module: to.take_over(from, self.module), name: to.take_over(from, self.name) }
    }

    /// Its name in the module, without its path.
    pub fn bare(self, names: &Names) -> &str {
        bare_name(names.text(self.name))
    }

    /// Whether it is a function of `Main`.
    pub fn is_main(self, names: &Names) -> bool {
        names.text(self.module) == MAIN
    }

    /// The readable name: `f`, `A.g`. Unlike [`FunctionName::display`], without quotes around odd names.
    pub fn spelled(self, names: &Names) -> String {
        match names.text(self.module) {
            MAIN => names.text(self.name).to_owned(),
            module => format!("{module}.{}", names.text(self.name)),
        }
    }

    /// The name as a text spells it, unique among all names: `f`, `A.g`, `Base.var"+"`.
    pub fn display(self, names: &Names) -> FunctionNameDisplay<'_> {
        FunctionNameDisplay { name: self, names }
    }
}

/// A function's name with the table that holds its texts; made by [`FunctionName::display`].
#[derive(Clone, Copy, Debug)]
pub struct FunctionNameDisplay<'a> {
    name: FunctionName,
    names: &'a Names,
}

impl fmt::Display for FunctionNameDisplay<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // `:` alone is the colon of Base.
        if !self.name.is_main(self.names) || self.names.text(self.name.name) == ":" {
            write!(f, "{}.", self.names.text(self.name.module))?;
        }
        write_name(f, self.names.text(self.name.name))
    }
}

/// The path of a module from its parts, as in [`FunctionName::module`].
pub fn module_path<'p>(parts: impl IntoIterator<Item = &'p str>) -> String {
    let mut path = String::new();
    for part in parts {
        // `Main.A` is `A`.
        if path == MAIN {
            path.clear();
        }
        path.push_str(if path.is_empty() { "" } else { "." });
        // Writing to a string cannot fail.
        let _ = write_name(&mut path, part);
    }
    path
}

/// Whether a module belongs to the library.
pub fn is_library(path: &str) -> bool {
    matches!(path.split_once('.').map_or(path, |(first, _)| first), "Base" | "Core")
}

/// Whether a text is the path of a module as written.
pub fn is_module_path(path: &str) -> bool {
    let mut rest = path;
    loop {
        let len = match rest.strip_prefix("var\"") {
            Some(quoted) => match end_of_quoted(quoted) {
                Some(len) => "var\"".len() + len,
                None => return false,
            },
            None => rest.find('.').unwrap_or(rest.len()),
        };
        let (part, behind) = rest.split_at(len);
        // A quoted identifier would be a second spelling.
        let inner = part.strip_prefix("var\"").and_then(|inner| inner.strip_suffix('"'));
        if is_identifier(inner.unwrap_or(part)) == inner.is_some() {
            return false;
        }
        match behind.strip_prefix('.') {
            Some(next) => rest = next,
            // Such paths are second spellings of other modules.
            None => return behind.is_empty() && !path.starts_with("Main.") && path != "Core",
        }
    }
}

/// Where the text after `var"` ends, its closing quote included.
fn end_of_quoted(text: &str) -> Option<usize> {
    let mut backslashes = 0;
    for (at, c) in text.char_indices() {
        match c {
            '"' if backslashes % 2 == 0 => return Some(at + 1),
            _ if c.is_control() => return None,
            _ => {}
        }
        backslashes = if c == '\\' { backslashes + 1 } else { 0 };
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_one_spelling() {
        let names = Names::default();
        let shown = |text: &str| {
            let name = FunctionName::parse(&names, text);
            (name.display(&names).to_string(), name.spelled(&names))
        };
        for (text, display, spelled) in [
            ("f", "f", "f"),
            ("Main.f", "f", "f"),
            ("A.g", "A.g", "A.g"),
            ("Main.A.B.g", "A.B.g", "A.B.g"),
            ("Base.max", "Base.max", "Base.max"),
            ("Core.max", "Base.max", "Base.max"),
            ("Base.Math.max", "Base.max", "Base.max"),
            ("Base.+", "Base.var\"+\"", "Base.+"),
            ("#f#1", "var\"#f#1\"", "#f#1"),
            ("..", "var\"..\"", ".."),
            ("a b.c", "var\"a b.c\"", "a b.c"),
        ] {
            assert_eq!(shown(text), (display.to_owned(), spelled.to_owned()), "{text}");
        }
        assert_ne!(
            FunctionName::parse(&names, "A.g"),
            FunctionName { module: names.intern(MAIN), name: names.intern("A.g") }
        );
    }

    #[test]
    fn paths_are_told_from_other_texts() {
        for good in ["Main", "A", "A.B", "Base.Math", &module_path(["a.b", "C"]), &module_path(["\\\"", "x"])]
        {
            assert!(is_module_path(good), "{good}");
        }
        for bad in
            ["", ".", "A.", ".A", "A..B", "a b", "Main.A", "Core", "var\"A\"", "var\"x", "var\"x\"y", "1"]
        {
            assert!(!is_module_path(bad), "{bad}");
        }
    }
}
