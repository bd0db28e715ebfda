//! Types and constants of Julia's library that a dump names without any declaration.
//!
//! A printed program should run, except for statements that use such an entity:
//!
//! | named | becomes |
//! |---|---|
//! | a closure of the library, `var"#f#12"`, `var"#f#12"{A, B}` | a subtype of `Function` with a field for each parameter, like a closure |
//! | another type, `Base.Foo{A}` | an abstract type without subtypes or objects, with a warning |
//! | a constant of such a type, `%new` of it, its fields | a `CompileError` when the row is reached |
//!
//! The fields of a closure are named after the captured variables, which only its body shows: a single one's
//! name is found there.

use rustc_hash::FxHashMap;

use super::Resolver;
use super::error::ResolveError;
use crate::diag::{Diagnostic, Finding, Span};
use crate::names::Name;
use crate::op::Level;
use crate::types::{Decl, DeclKind, FieldDecl, Type, TypeError, TypeKind};

/// Why a row throws.
pub(super) const WHY: &str =
    "its type is not declared in the text and not known here; declare it in the `# types:` line";

/// Why a constant makes its row throw.
pub(super) const WHY_CONSTANT: &str =
    "no literal makes it: its type is not known here, or a constructor computes what it holds";

/// The maximum number of bytes in braces that are searched for parameters.
const MOST_BYTES: usize = 4096;

/// The names of the form `var"#f#12"` used as types in a text, with their largest number of parameters.
pub(super) fn closures(source: &str) -> FxHashMap<&str, usize> {
    let mut found = FxHashMap::default();
    for (at, quote) in source.match_indices("var\"#") {
        let (before, quoted) = (&source[..at], &source[at + quote.len() - 1..]);
        let Some((name, rest)) = quoted.split_once('"') else { break };
        let count = match rest.strip_prefix('{') {
            Some(params) => parameters(params),
            None => (rest.starts_with("()") || is_annotation(before)).then_some(0),
        };
        if let Some(count) = count {
            let most: &mut usize = found.entry(name).or_default();
            *most = count.max(*most);
        }
    }
    found
}

/// Whether a name is preceded by `::`, optionally with modules.
fn is_annotation(before: &str) -> bool {
    let path = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.');
    before.trim_end_matches(path).ends_with("::")
}

/// The number of parameters up to the closing brace.
fn parameters(text: &str) -> Option<usize> {
    let (mut depth, mut count) = (0usize, 1);
    for byte in text.bytes().take(MOST_BYTES) {
        match byte {
            b'{' | b'(' => depth += 1,
            b'}' | b')' if depth == 0 => return Some(count),
            b'}' | b')' => depth -= 1,
            b',' if depth == 0 => count += 1,
            b'\n' => return None,
            _ => {}
        }
    }
    None
}

impl<'a> Resolver<'a> {
    /// Fails because of an unknown constant. In the rows of a dump the row throws.
    pub(super) fn fail_unread<T>(&mut self, error: impl Finding, at: Span) -> Option<T> {
        if !self.reads_rows {
            return self.fail(error, at);
        }
        self.unread = Some(format!("the constant `{}`", self.source_text(at)));
        None
    }

    /// Declares a library closure that the text names.
    pub(super) fn declare_closure(&self, name: &str) -> Option<Decl> {
        if !name.starts_with('#') || !self.functions.has_dumps() || self.level != Level::High {
            return None;
        }
        let count = *self.closures.get(name)?;
        let types = &self.cx.types;
        let params: Vec<_> = (1..=count).map(|n| self.cx.names.intern(&format!("T{n}"))).collect();
        let only = if count == 1 { self.captured(name) } else { None };
        let field = |n: usize| FieldDecl {
            name: self.cx.names.intern(only.unwrap_or(&format!("#{}", n + 1))),
            ty: types.param(n as u32),
            is_const: false,
            is_atomic: false,
        };
        let fields = (0..count).map(field).collect();
        let function = types.supertype(self.function_type(&["f".into()]));
        self.guess(name, &params, function, &DeclKind::Struct { mutable: false, fields })
    }

    /// Declares a type that the text does not declare; a separate one if other programs declare it
    /// differently.
    fn guess(&self, name: &str, params: &[Name], supertype: Type, kind: &DeclKind) -> Option<Decl> {
        let (types, names) = (&self.cx.types, &self.cx.names);
        let declare = || {
            let decl = types.declare(names.declare(name), params)?;
            types.define(decl, supertype, kind.clone()).map(|()| decl)
        };
        loop {
            match declare() {
                Err(TypeError::Redeclared { .. }) if names.redeclare(name) => {}
                Err(_) => return None,
                Ok(decl) => {
                    self.guessed.borrow_mut().insert(decl);
                    return Some(decl);
                }
            }
        }
    }

    /// The name of the variable that the body of a closure reads, if there is only one.
    fn captured(&self, name: &str) -> Option<&'a str> {
        let quoted = format!("var\"{name}\"");
        let mut bodies = self
            .source
            .split("# signature: (")
            .skip(1)
            .filter(|body| body.split_once(')').is_some_and(|(callee, _)| callee.contains(&quoted)));
        let body = bodies.next()?;
        let names = ["getfield(#self#, :", "getfield(_1, :"].iter().flat_map(|read| body.split(read).skip(1));
        let mut names = names.filter_map(|rest| rest.split([')', ',']).next());
        let first = names.next()?;
        names.all(|name| name == first).then_some(first)
    }

    /// Declares a type of which only the name and the number of parameters are known.
    pub(super) fn declare_unknown(&mut self, name: &str, at: Span) -> Option<Decl> {
        if !self.functions.has_dumps()
            || self.level != Level::High
            || !name.starts_with(|c: char| c.is_uppercase())
        {
            return None;
        }
        let spelled = format!("{name}{{");
        let uses = self.source.match_indices(&*spelled).take(64);
        let count =
            uses.filter_map(|(at, _)| parameters(&self.source[at + spelled.len()..])).max().unwrap_or(0);
        let params: Vec<_> = (1..=count).map(|n| self.cx.names.intern(&format!("T{n}"))).collect();
        let decl = self.guess(name, &params, Type::ANY, &DeclKind::Abstract)?;
        self.unknown.push((name.to_owned(), at));
        Some(decl)
    }

    pub(super) fn warn_of_unknown(&mut self) {
        for (name, at) in std::mem::take(&mut self.unknown) {
            let note = "rows that make or read an object of it throw a `CompileError` when they are reached; declare it in the `# types:` line";
            let warning = Diagnostic::warning(&ResolveError::UnknownType { name }, at).with_note(note);
            self.diagnostics.push(warning);
        }
    }

    pub(super) fn guessed_decl(&self, ty: Type) -> Option<Decl> {
        let decl = match *self.cx.types.kind(ty) {
            TypeKind::Nominal { decl, .. } | TypeKind::Generic(decl) => decl,
            _ => return None,
        };
        self.guessed.borrow().contains(&decl).then_some(decl)
    }

    /// Whether the type is a guess that does not have `fields` fields.
    pub(super) fn is_unknown(&self, ty: Type, fields: usize) -> bool {
        self.guessed_decl(ty).is_some() && self.cx.types.field_count(ty) != Some(fields)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closures_are_types_and_not_functions() {
        let text = "invoke Base.:(var\"#sort#1\")(x) (self::Base.var\"#g#2\")(x) var\"#h#3\"{A{B, C}, D} var\"#k#4\"()";
        let found = closures(text);
        let mut found: Vec<_> = found.into_iter().collect();
        found.sort_unstable();
        assert_eq!(found, [("#g#2", 0), ("#h#3", 2), ("#k#4", 0)]);
    }
}
