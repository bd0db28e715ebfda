//! The text of all definitions at a prompt, as one program.
//!
//! The session has the compiled functions; to show compiled forms, commands compile the text. Each
//! declaration is a piece with a key, by which a later declaration replaces it: the symbol of a function, the
//! name of a type or global.
//!
//! Cost: a command that shows a function reads and optimises the whole program again.

use brolga_engine::{Error, Program};
use brolga_ir::diag::SourceFile;
use brolga_ir::text::{self, ast};

/// See the file's header.
#[derive(Default)]
pub(crate) struct Definitions {
    pieces: Vec<Piece>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
struct Piece {
    kind: Kind,
    name: String,
    text: String,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Kind {
    Type,
    Global,
    Function,
}

impl Definitions {
    /// Adds the declarations of a text. `symbols` are the symbols of its functions, in order. Returns the
    /// symbols that were defined before.
    pub(crate) fn add(&mut self, source: &SourceFile, symbols: &[String]) -> Vec<String> {
        let (file, _) = text::parse(source);
        let part = |span: brolga_ir::diag::Span| source.slice(span).to_owned();
        let mut new = Vec::new();
        for ty in &file.types {
            new.push(Piece { kind: Kind::Type, name: ty.name.0.to_string(), text: part(ty.span) });
        }
        for global in &file.globals {
            new.push(Piece { kind: Kind::Global, name: global.name.0.to_string(), text: part(global.span) });
        }
        let functions = file.functions.iter().zip(symbols);
        new.extend(functions.map(|(function, symbol)| Piece {
            kind: Kind::Function,
            name: symbol.clone(),
            text: function_text(source, &file, function),
        }));
        let mut before = Vec::new();
        for piece in new {
            match self.pieces.iter_mut().find(|old| (old.kind, &old.name) == (piece.kind, &piece.name)) {
                Some(old) => {
                    if old.kind == Kind::Function {
                        before.push(old.name.clone());
                    }
                    *old = piece;
                }
                None => self.pieces.push(piece),
            }
        }
        before
    }

    pub(crate) fn symbols(&self) -> Vec<&str> {
        let functions = self.pieces.iter().filter(|piece| piece.kind == Kind::Function);
        functions.map(|piece| piece.name.as_str()).collect()
    }

    /// All definitions as a program.
    pub(crate) fn program(&self) -> Result<Program, Error> {
        let mut pieces: Vec<&Piece> = self.pieces.iter().collect();
        // The sort is stable: declarations of one kind keep the order in which they were made.
        pieces.sort_by_key(|piece| piece.kind);
        let text: Vec<&str> = pieces.iter().map(|piece| piece.text.as_str()).collect();
        let text = text.join("\n\n") + "\n";
        Program::read("<prompt>", text.as_bytes())
    }
}

/// The text of a function, with the preceding comments, which contain the signature of a dump.
fn function_text(source: &SourceFile, file: &ast::File<'_>, function: &ast::Function<'_>) -> String {
    let start = function.signature.as_ref().map_or(function.span.start, |s| s.span.start);
    let start = start.min(function.span.start);
    if !function.is_dump {
        let line = source.text()[..start as usize].rfind('\n').map_or(0, |at| at + 1);
        return source.text()[line..function.span.end as usize].to_owned();
    }
    let ends = file.functions.iter().map(|other| other.span.end);
    let from = ends.filter(|&end| end <= start).max().unwrap_or(0);
    source.text()[from as usize..function.span.end as usize].trim().to_owned()
}

#[cfg(test)]
mod tests {
    use brolga_ir::diag::SourceFile;

    use super::Definitions;

    fn add(definitions: &mut Definitions, text: &str, symbols: &[&str]) -> Vec<String> {
        let symbols: Vec<String> = symbols.iter().map(|s| (*s).to_owned()).collect();
        definitions.add(&SourceFile::new("<test>", text).unwrap(), &symbols)
    }

    #[test]
    fn later_declarations_replace_earlier_ones() {
        let mut definitions = Definitions::default();
        let f = |n: i32| format!("function f(x::Int64)::Int64\n1 ─      return {n}\nend\n");
        let two =
            format!("struct A\n    x::Int64\nend\n\n{}function g()::Int64\n1 ─      return 3\nend", f(1));
        assert!(add(&mut definitions, &two, &["f(Int64)", "g()"]).is_empty());
        assert_eq!(add(&mut definitions, &f(2), &["f(Int64)"]), ["f(Int64)"]);
        let program = definitions.program().unwrap();
        let text = program.source().text();
        assert_eq!(program.module().func_count(), 2, "{text}");
        assert!(text.contains("return 2") && !text.contains("return 1"), "{text}");
        assert!(text.contains("struct A"), "{text}");
    }

    #[test]
    fn dumps_keep_their_headers() {
        let mut definitions = Definitions::default();
        let dump = "# signature: f(x::Int64)\nCodeInfo(\n1 ─     return x\n) => Int64\n";
        add(&mut definitions, dump, &["f(Int64)"]);
        assert_eq!(definitions.program().unwrap().module().func_count(), 1);
    }
}
