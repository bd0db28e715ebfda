//! Completion of the word before the cursor: rows and blocks of the function, parameters, names of the text, and names of the language.
//!
//! The text before the word determines the candidates: `%` a row, `#` a block, `::` a type; otherwise all
//! names. The text is often invalid during typing, so names are taken from its syntax tree.
//!
//! Not done: candidates by type; names that other files define.

use std::collections::BTreeMap;

use brolga_ir::Context;
use brolga_ir::base_fn::BaseFn;
use brolga_ir::builtin::Builtin;
use brolga_ir::diag::Span;
use brolga_ir::intrinsic::Intrinsic;
use lsp_types::{CompletionItem, CompletionItemKind, CompletionList, CompletionTextEdit, TextEdit};

use crate::document::Analysis;
use crate::index::{DeclKind, Symbol};

/// The maximum number of names in an answer.
const MOST: usize = 200;

/// Words that begin declarations and statements.
const WORDS: [&str; 9] =
    ["abstract type", "const", "function", "global", "goto", "invoke", "mutable struct", "return", "struct"];

/// Names by their text, each with its kind.
type Names = BTreeMap<String, CompletionItemKind>;

/// The names that begin with the word before an offset.
pub(crate) fn list(analysis: &Analysis, offset: usize) -> CompletionList {
    let text = analysis.text.as_str();
    let before = text.get(..offset).unwrap_or("");
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '!' | '.');
    let start =
        before.char_indices().rev().take_while(|&(_, c)| is_part(c)).last().map_or(offset, |(at, _)| at);
    let (start, names) = match before[..start].chars().next_back() {
        Some('%') => (start - 1, rows(analysis, offset)),
        Some('#') => (start - 1, blocks(analysis, offset)),
        Some(':') if before[..start].ends_with("::") => (start, types(analysis)),
        _ => (start, everything(analysis, offset)),
    };
    let word = &before[start..];
    let range = analysis.text.range(Span::new(start as u32, offset as u32));
    let mut fits = names.range(word.to_owned()..).take_while(|(name, _)| name.starts_with(word));
    let items: Vec<CompletionItem> =
        fits.by_ref().take(MOST).map(|(name, &kind)| item(name, kind, range)).collect();
    CompletionList { is_incomplete: fits.next().is_some(), items }
}

fn item(name: &str, kind: CompletionItemKind, range: lsp_types::Range) -> CompletionItem {
    let edit = CompletionTextEdit::Edit(TextEdit { range, new_text: name.to_owned() });
    CompletionItem {
        label: name.to_owned(),
        kind: Some(kind),
        text_edit: Some(edit),
        ..CompletionItem::default()
    }
}

/// The function at an offset, or the last one that begins before it: a function that is being typed has no
/// end.
fn function_at(analysis: &Analysis, offset: usize) -> Option<usize> {
    analysis.index.functions.iter().rposition(|function| function.span.start as usize <= offset)
}

fn rows(analysis: &Analysis, offset: usize) -> Names {
    let Some(at) = function_at(analysis, offset) else { return Names::new() };
    let label = |symbol: &Symbol| match symbol {
        Symbol::Row { function, label } if *function as usize == at => Some(format!("%{label}")),
        _ => None,
    };
    let names = analysis.index.symbols.iter().filter_map(label);
    names.map(|name| (name, CompletionItemKind::VARIABLE)).collect()
}

fn blocks(analysis: &Analysis, offset: usize) -> Names {
    let Some(at) = function_at(analysis, offset) else { return Names::new() };
    let blocks = analysis.index.functions[at].blocks.iter();
    blocks.map(|block| (format!("#{}", block.number), CompletionItemKind::REFERENCE)).collect()
}

fn types(analysis: &Analysis) -> Names {
    let own = analysis
        .index
        .decls
        .iter()
        .filter(|decl| matches!(decl.kind, DeclKind::Struct | DeclKind::OtherType));
    let mut names: Names = own.map(|decl| (decl.name.clone(), CompletionItemKind::STRUCT)).collect();
    let cx = Context::new();
    let known = cx.types.decls().map(|decl| cx.names.text(cx.types.decl(decl).name).to_owned());
    // Names with other signs are not completed.
    let known = known.filter(|name| name.starts_with(|c: char| c.is_alphabetic()));
    names.extend(known.map(|name| (name, CompletionItemKind::CLASS)));
    names
}

fn everything(analysis: &Analysis, offset: usize) -> Names {
    let index = &analysis.index;
    let mut names = types(analysis);
    names.extend(WORDS.map(|word| (word.to_owned(), CompletionItemKind::KEYWORD)));
    let functions = Intrinsic::ALL.iter().map(|intrinsic| format!("Base.{}", intrinsic.name()));
    let functions = functions.chain(Builtin::ALL.iter().map(|builtin| format!("Core.{}", builtin.name())));
    let methods = BaseFn::ALL.iter().map(|function| format!("{}.{}", function.module(), function.name()));
    names.extend(functions.chain(methods).map(|name| (name, CompletionItemKind::FUNCTION)));
    for function in &index.functions {
        names.insert(format!("Main.{}", function.name), CompletionItemKind::FUNCTION);
        names.insert(function.name.clone(), CompletionItemKind::FUNCTION);
    }
    let globals = index.decls.iter().filter(|decl| matches!(decl.kind, DeclKind::Global | DeclKind::Const));
    names.extend(globals.map(|decl| (decl.name.clone(), CompletionItemKind::CONSTANT)));
    if let Some(at) = function_at(analysis, offset) {
        let params = index.functions[at].params.iter().flatten();
        names.extend(params.map(|name| (name.clone(), CompletionItemKind::VARIABLE)));
    }
    names
}
