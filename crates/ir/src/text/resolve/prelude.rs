//! Types of Julia's library that a text may name without declaring them.
//!
//! Printed IR mentions `Dict{String, Int64}` without a declaration. `prelude.jlir` has such declarations in
//! the text form of this IR, one per line. A line is read when one of its names is looked up and unknown,
//! together with the names it uses; so a program has only the types that it uses. A declaration in the text
//! itself takes precedence. A line `const A{T} = B{T, 1}` is an alias of a type.
//!
//! Some types changed. A line that ends in `# until 1.10` or `# since 1.11` applies to texts of those
//! versions, which are recognised by what they name ([`version_of`]): a text without `Memory` is from 1.10.
//!
//! Cost: a look-up for each unknown name; an alias is read at each use.
//!
//! Not done: several texts in one context share its types, so a later one cannot declare a prelude type
//! differently.

use std::sync::LazyLock;

use rustc_hash::FxHashMap;

use super::super::ast::{Expr, ExprKind};
use super::Resolver;
use super::error::ResolveError;
use super::functions::Functions;
use super::types::TypeVar;
use crate::diag::{Diagnostics, SourceFile, Span};
use crate::types::{Decl, Type};

const TEXT: &str = include_str!("prelude.jlir");

/// The lines for each name, in the order of the text.
static LINES: LazyLock<FxHashMap<&str, Vec<&str>>> = LazyLock::new(|| {
    let mut lines = FxHashMap::<&str, Vec<&str>>::default();
    for line in TEXT.lines() {
        if let Some(name) = declared(line) {
            lines.entry(name).or_default().push(line);
        }
    }
    lines
});

/// The minor version of the Julia 1 that printed a text, as far as library types depend on it.
pub(super) fn version_of(source: &str) -> u32 {
    let has_labels = || {
        ["builtin Core.", "builtin Base.", "intrinsic Core.", "intrinsic Base."]
            .iter()
            .any(|label| source.contains(label))
    };
    match source.contains("Memory") {
        _ if source.contains("offset_or_compacted") => 13,
        true if has_labels() => 12,
        true => 11,
        false => 10,
    }
}

impl<'a> Resolver<'a> {
    /// Declares the type with this name if the prelude has it.
    pub(super) fn declare_known(&self, name: &str) -> Option<Decl> {
        let line = line_of(name, self.version).filter(|line| !line.starts_with(ALIAS))?;
        let source = SourceFile::new("prelude", line).ok()?;
        let (file, diagnostics) = super::super::parse(&source);
        debug_assert!(!diagnostics.has_errors(), "{line}");
        let mut inner = self.for_prelude(&source);
        let declared = inner.declare_types(&file.types);
        debug_assert!(!inner.diagnostics.has_errors(), "{line}");
        declared.first().copied()
    }

    fn for_prelude<'s>(&self, source: &'s SourceFile) -> Resolver<'s> {
        let functions = Functions::new(&super::Alone);
        let mut inner = Resolver::new(source.text(), &self.cx, Diagnostics::default(), functions);
        inner.version = self.version;
        inner.is_library = true;
        inner
    }

    /// Whether the prelude has an alias with this name.
    pub(super) fn is_alias(&self, name: &str) -> bool {
        line_of(name, self.version).is_some_and(|line| line.starts_with(ALIAS))
    }

    /// The type that an alias means, with the parameters in the text; missing ones are open. The outer `None`
    /// is an error, the inner one means that there is no such alias.
    pub(super) fn alias(&mut self, name: &str, params: &[Expr<'a>], at: Span) -> Option<Option<Type>> {
        let Some(line) = line_of(name, self.version).and_then(|line| line.strip_prefix(ALIAS)) else {
            return Some(None);
        };
        let source = SourceFile::new("prelude", line).ok()?;
        let (expr, _) = super::super::parse::parse_expr(&source);
        let Some(Expr { kind: ExprKind::Infix(_, parts), .. }) = &expr else { return Some(None) };
        let [head, body] = &parts[..] else { return Some(None) };
        let variables: &[Expr<'_>] = match &head.kind {
            ExprKind::Curly(_, variables) => variables,
            _ => &[],
        };
        if params.len() > variables.len() {
            return self.fail(ResolveError::NotAType, at);
        }
        let mut given = Vec::with_capacity(variables.len());
        for (n, variable) in variables.iter().enumerate() {
            let ExprKind::Name(variable) = &variable.kind else { return Some(None) };
            let value = match params.get(n) {
                Some(param) => self.type_variable(param)?,
                None => self.free_variable().map_or(TypeVar::Free(Type::ANY), TypeVar::Param),
            };
            given.push((variable.to_string().into(), value));
        }
        let mut inner = self.for_prelude(&source);
        inner.type_vars = given;
        inner.exact = self.exact.take();
        let ty = inner.ty(body);
        self.exact = inner.exact.take();
        // Unions of array types of several dimensions have no form here.
        self.has_widened |= inner.has_widened || name.starts_with("Strided") || name.contains("VecOrMat");
        let diagnostics = inner.diagnostics;
        match ty {
            Some(ty) => Some(Some(ty)),
            None => {
                let why = diagnostics.iter().next().map_or_else(String::new, |first| first.message.clone());
                self.fail(ResolveError::BadType { why }, at)
            }
        }
    }
}

/// How an alias line begins.
const ALIAS: &str = "const ";

/// The declaration of a name: the last line that applies to a version.
fn line_of(name: &str, version: u32) -> Option<&'static str> {
    LINES.get(name)?.iter().rev().copied().find(|line| holds(line, version))
}

fn holds(line: &str, version: u32) -> bool {
    let minor = |text: &str| text.parse::<u32>().unwrap_or(0);
    match (line.split_once(" # since 1."), line.split_once(" # until 1.")) {
        (Some((_, since)), _) => version >= minor(since),
        (_, Some((_, until))) => version <= minor(until),
        _ => true,
    }
}

/// The name declared by a line.
fn declared(line: &str) -> Option<&str> {
    let rest = ["struct ", "mutable struct ", "abstract type ", "primitive type ", ALIAS]
        .iter()
        .find_map(|word| line.strip_prefix(word))?;
    match rest.strip_prefix("var\"") {
        Some(quoted) => quoted.split('"').next(),
        None => rest.split(|c: char| !(c.is_alphanumeric() || c == '_')).next(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Context;
    use crate::text::read;

    /// Every type of both version ranges is read and defined.
    #[test]
    fn every_line_is_read() {
        for (version, says) in
            [(10, ""), (11, "Memory"), (12, "Memory, builtin Core."), (13, "Memory, offset_or_compacted")]
        {
            assert_eq!(version_of(says), version);
            for line in TEXT.lines().filter(|line| holds(line, version)) {
                let Some(name) = declared(line) else { continue };
                let cx = Context::new();
                let text =
                    format!("# {says}\nfunction f(x::var\"{name}\")::Nothing\n1 ─ return nothing\nend\n");
                let source = SourceFile::new("test", text).unwrap();
                let (_, diagnostics) = read(&source, &cx);
                assert!(
                    !diagnostics.has_errors(),
                    "{name}: {}",
                    diagnostics.render(&source, &crate::diag::Style::PLAIN)
                );
                let decl = cx.types.find_decl(cx.names.intern(name));
                assert!(
                    line.starts_with(ALIAS) || decl.is_some_and(|d| cx.types.body(d).is_some()),
                    "{name}"
                );
            }
        }
    }

    #[test]
    fn a_text_that_declares_a_type_has_its_own() {
        let cx = Context::new();
        let text =
            "struct Dict{K, V}; only::K; end\nfunction f(x::Dict{Int64, Int64})::Int64\n1 ─ return 1\nend\n";
        let source = SourceFile::new("test", text).unwrap();
        assert!(!read(&source, &cx).1.has_errors());
        let decl = cx.types.find_decl(cx.names.intern("Dict")).unwrap();
        let ty = cx.types.nominal(decl, &[crate::Type::INT64; 2]).unwrap();
        assert_eq!(cx.types.field_count(ty), Some(1));
    }

    #[test]
    fn other_names_stay_unknown() {
        assert_eq!(line_of("Dictionary", 11), None);
        assert_eq!(line_of("dict", 11), None);
    }
}
