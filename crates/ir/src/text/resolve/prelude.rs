//! Types of Julia's library that a text names without declaring them.
//!
//! Printed IR says `Dict{String, Int64}` and declares nothing. `prelude.jlir` has such declarations in the text form of this IR, one a line. A
//! line is read when a name in it is looked up and unknown, with what it names in turn; so a program has the types that it uses and no more.
//! A declaration of the text itself comes first.
//!
//! Some types changed when `Memory` came. A line that ends in `# until 1.10` or `# since 1.11` holds for texts without or with that name.
//!
//! Cost: a walk over the lines for each unknown name that begins as types do, nothing for other names.
//!
//! Not done: several texts of one context share its types, so a later one cannot declare a type of the prelude differently.

use super::Resolver;
use super::functions::Functions;
use crate::diag::{Diagnostics, SourceFile};
use crate::types::Decl;

const TEXT: &str = include_str!("prelude.jlir");

impl Resolver<'_> {
    /// Declares the type of this name if the prelude has it.
    pub(super) fn declare_known(&self, name: &str) -> Option<Decl> {
        let line = line_of(name, self.has_memory)?;
        let source = SourceFile::new("prelude", line).ok()?;
        let (file, diagnostics) = super::super::parse(&source);
        debug_assert!(!diagnostics.has_errors(), "{line}");
        let mut inner =
            Resolver::new(source.text(), &self.cx, Diagnostics::default(), Functions::new(&super::Alone));
        inner.has_memory = self.has_memory;
        inner.is_library = true;
        let declared = inner.declare_types(&file.types);
        debug_assert!(!inner.diagnostics.has_errors(), "{line}");
        declared.first().copied()
    }
}

/// The declaration of a type.
fn line_of(name: &str, has_memory: bool) -> Option<&'static str> {
    if !name.starts_with(|c: char| c.is_ascii_uppercase() || c == '_') {
        return None;
    }
    let wrong = if has_memory { "# until 1.10" } else { "# since 1.11" };
    TEXT.lines().find(|line| declared(line) == Some(name) && !line.ends_with(wrong))
}

/// The name that a line declares.
fn declared(line: &str) -> Option<&str> {
    let rest = ["struct ", "mutable struct ", "abstract type ", "primitive type "]
        .iter()
        .find_map(|word| line.strip_prefix(word))?;
    rest.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).next()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Context;
    use crate::text::read;

    /// Each type of both eras is read, and is defined.
    #[test]
    fn every_line_is_read() {
        for memory in ["", "Memory{UInt8}, "] {
            for name in TEXT.lines().filter_map(declared) {
                let cx = Context::new();
                let text =
                    format!("function f(x::Union{{{memory}{name}}})::Nothing\n1 ─ return nothing\nend\n");
                let source = SourceFile::new("test", text).unwrap();
                let (_, diagnostics) = read(&source, &cx);
                assert!(
                    !diagnostics.has_errors(),
                    "{name}: {}",
                    diagnostics.render(&source, &crate::diag::Style::PLAIN)
                );
                let decl = cx.types.find_decl(cx.names.intern(name)).unwrap();
                assert!(cx.types.body(decl).is_some(), "{name}");
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
        assert_eq!(line_of("Dictionary", false), None);
        assert_eq!(line_of("dict", false), None);
    }
}
