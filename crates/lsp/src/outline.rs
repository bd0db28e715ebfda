//! The outline of a document, and lenses above its tests and functions.

use brolga_ir::diag::Span;
use lsp_types::{CodeLens, Command, DocumentSymbol, Range, SymbolKind};
use serde_json::json;

use crate::commands::{EXPLORE, RUN};
use crate::document::Analysis;
use crate::index::{DeclKind, FunctionItem};
use crate::text::Places;

/// The declarations, functions and blocks of a document, in the order of the text.
pub(crate) fn symbols(analysis: &Analysis) -> Vec<DocumentSymbol> {
    let (text, index) = (&analysis.text, &analysis.index);
    let mut places = Places::new(text);
    let mut symbols = Vec::new();
    for decl in &index.decls {
        let kind = match decl.kind {
            DeclKind::Struct => SymbolKind::STRUCT,
            DeclKind::OtherType => SymbolKind::CLASS,
            DeclKind::Global => SymbolKind::VARIABLE,
            DeclKind::Const => SymbolKind::CONSTANT,
        };
        let fields = decl.fields.iter().map(|(name, span)| {
            let range = places.range(*span);
            symbol(name.clone(), None, SymbolKind::FIELD, range, range, Vec::new())
        });
        let fields = fields.collect();
        let (range, name) = (places.range(decl.span), places.range(decl.name_span));
        symbols.push(symbol(decl.name.clone(), None, kind, range, name, fields));
    }
    for item in &index.functions {
        let blocks = item.blocks.iter().map(|block| {
            let end = block.rows.last().map_or(block.span.end, |row| row.end);
            let range = places.range(Span::new(block.span.start, end.max(block.span.end)));
            let head = places.range(block.span);
            symbol(format!("#{}", block.number), None, SymbolKind::KEY, range, head, Vec::new())
        });
        let blocks = blocks.collect();
        let detail = text.slice(item.signature).trim().to_owned();
        let (range, name) = (places.range(item.span), places.range(item.name_span));
        symbols.push(symbol(item.name.clone(), Some(detail), SymbolKind::FUNCTION, range, name, blocks));
    }
    symbols.sort_by_key(|symbol| (symbol.range.start.line, symbol.range.start.character));
    symbols
}

#[expect(deprecated, reason = "a field of the protocol's structure that has to be given")]
fn symbol(
    name: String,
    detail: Option<String>,
    kind: SymbolKind,
    range: Range,
    selection_range: Range,
    children: Vec<DocumentSymbol>,
) -> DocumentSymbol {
    // Clients refuse symbols without a name, and names outside their ranges.
    let name = if name.is_empty() { "?".to_owned() } else { name };
    let inside = range.start <= selection_range.start && selection_range.end <= range.end;
    let selection_range = if inside { selection_range } else { Range::new(range.start, range.start) };
    let children = Some(children).filter(|children| !children.is_empty());
    DocumentSymbol { name, detail, kind, tags: None, deprecated: None, range, selection_range, children }
}

/// Lenses: "run" above tests and functions without parameters, "explore" above functions.
pub(crate) fn lenses(uri: &str, analysis: &Analysis) -> Vec<CodeLens> {
    let (text, index) = (&analysis.text, &analysis.index);
    let mut places = Places::new(text);
    let mut lenses = Vec::new();
    let mut lens = |range: Range, title: &str, command: &str, argument: &str| {
        let command = Command {
            title: title.to_owned(),
            command: command.to_owned(),
            arguments: Some(vec![json!(uri), json!(argument)]),
        };
        lenses.push(CodeLens { range, command: Some(command), data: None });
    };
    for check in &index.checks {
        lens(places.range(check.span), "run", RUN, text.slice(check.call).trim());
    }
    for item in &index.functions {
        let range = places.range(Span::new(item.signature.start, item.signature.end));
        if item.params.is_empty() && !is_object(item) {
            lens(range, "run", RUN, &format!("{}()", item.name));
        }
        lens(range, "explore", EXPLORE, &item.name);
    }
    lenses.sort_by_key(|lens| (lens.range.start.line, lens.range.start.character));
    lenses
}

/// Whether it is a method of objects, or has no name.
fn is_object(item: &FunctionItem) -> bool {
    item.name.contains("::") || item.name_span.start == item.name_span.end
}
