//! Hovers: text about the name or row under the pointer.
//!
//! | at the pointer | shown |
//! |---|---|
//! | a row, or its label | the row, type, effects, uses, its optimised form |
//! | a parameter | its type and uses |
//! | a function | signatures and the comments above them, known effects |
//! | a type, a global | its declaration |
//! | a block | its predecessors and successors |
//!
//! Cost: for the first row of a function in a version, optimising the function.

use brolga_explore::Fate;
use brolga_ir::analysis::{Cfg, Uses};
use brolga_ir::builtin::Builtin;
use brolga_ir::diag::Span;
use brolga_ir::effects::{Effects, Regions, effects};
use brolga_ir::intrinsic::Intrinsic;
use brolga_ir::{Func, Inst, Value};
use lsp_types::{Hover, HoverContents, MarkupContent, MarkupKind};

use crate::document::Analysis;
use crate::index::{DeclItem, FunctionItem, Symbol};

/// The maximum number of rows shown per kind.
const SHOWN: usize = 8;

pub(crate) fn hover(analysis: &Analysis, offset: usize) -> Option<Hover> {
    let found = analysis.index.at(offset);
    let named = found.and_then(|occurrence| {
        let symbol = analysis.index.symbols.get(occurrence.symbol as usize)?;
        Some((about(analysis, symbol, occurrence.symbol)?, occurrence.span))
    });
    let (text, span) = match named {
        Some(named) => named,
        None => {
            let (span, function) = analysis.index.row_at(offset)?;
            (row(analysis, span, function), span)
        }
    };
    Some(Hover {
        contents: HoverContents::Markup(MarkupContent { kind: MarkupKind::Markdown, value: text }),
        range: Some(analysis.text.range(span)),
    })
}

fn about(analysis: &Analysis, symbol: &Symbol, number: u32) -> Option<String> {
    let index = &analysis.index;
    match symbol {
        Symbol::Row { .. } => {
            let (span, function) = index.row_of(number)?;
            Some(row(analysis, span, function))
        }
        Symbol::Param { function, index } => param(analysis, *function, *index),
        Symbol::Block { function, number } => block(analysis, *function, *number),
        Symbol::Function(name) => Some(function(analysis, name, number)),
        Symbol::Type(name) | Symbol::Global(name) => {
            let decl = index.decls.iter().find(|decl| decl.name == *name)?;
            Some(declaration(analysis, decl))
        }
    }
}

fn code(text: &str) -> String {
    format!("```jlir\n{}\n```\n", text.trim_end())
}

/// The rows of a list as code, up to the maximum.
fn listed(rows: &[String]) -> String {
    let mut text = rows.iter().take(SHOWN).map(String::as_str).collect::<Vec<_>>().join("\n");
    if rows.len() > SHOWN {
        text.push_str(&format!("\n… and {} more", rows.len() - SHOWN));
    }
    code(&text)
}

fn row(analysis: &Analysis, span: Span, number: u32) -> String {
    let statement = analysis.text.slice(span);
    let mut text = code(statement);
    let Some((_, func)) = analysis.func(number) else {
        text.push_str("\nThe program has errors, so nothing more is known.\n");
        return text;
    };
    let insts: Vec<Inst> = instructions(func).filter(|&inst| func.place(inst).start == span.start).collect();
    let types = analysis.program.iter().map(|program| &program.module().cx.types).next();
    if let (Some(types), Some(&inst)) = (types, insts.last()) {
        let uses = Uses::compute(func);
        for value in func.results(inst) {
            text.push_str(&format!("\n**Type** `{}`", types.display(func.ty(value))));
            text.push_str(&format!(" · {}\n", used(analysis, func, &uses, value)));
        }
        text.push_str(&format!("\n**Effects** {}\n", effects_text(&effects(func, types, inst))));
    }
    text.push_str(&match &*analysis.fates(number) {
        Ok(fates) => match fates.of(span.start) {
            Some(fate) => fate_text(fate, fates.refusal()),
            None => String::new(),
        },
        Err(reason) => format!("\nThe optimiser says nothing about it: {reason}\n"),
    });
    text
}

fn instructions(func: &Func) -> impl Iterator<Item = Inst> + '_ {
    func.blocks().flat_map(|block| func.block_insts(block))
}

/// The number of uses of a value, and the rows that use it.
fn used(analysis: &Analysis, func: &Func, uses: &Uses, value: Value) -> String {
    let all = uses.of(value);
    let mut labels: Vec<String> = Vec::new();
    for used in all.iter().take(SHOWN) {
        let place = func.place(used.inst);
        let statement = analysis.text.slice(Span::new(place.start, place.end));
        let label = statement.split_once(" = ").map_or(statement, |(label, _)| label).trim_end();
        let mut label: String = label.chars().take(24).collect();
        if label.chars().count() == 24 {
            label.push('…');
        }
        labels.push(format!("`{label}`"));
    }
    labels.dedup();
    let more = if all.len() > SHOWN { ", …" } else { "" };
    match all.len() {
        0 => "not used".to_owned(),
        1 => format!("used once, by {}", labels.join(", ")),
        n => format!("used {n} times, by {}{more}", labels.join(", ")),
    }
}

fn fate_text(fate: &Fate, refusal: Option<&str>) -> String {
    let mut text = String::new();
    if fate.high.is_empty() && fate.low.is_empty() {
        match fate.removed_by {
            Some(pass) => text.push_str(&format!("\n**Optimised** (`-O2`) away by `{pass}`\n")),
            None => text.push_str("\n**Optimised** (`-O2`): nothing is left of it\n"),
        }
    }
    for (title, rows) in [("Optimised", &fate.high), ("Low IR", &fate.low), ("Machine code", &fate.code)] {
        if !rows.is_empty() {
            text.push_str(&format!("\n**{title}** (`-O2`)\n{}", listed(rows)));
        }
    }
    if let (true, Some(reason)) = (fate.code.is_empty(), refusal) {
        text.push_str(&format!("\nNo machine code is shown: {}\n", reason.lines().next().unwrap_or("")));
    }
    text
}

fn effects_text(effects: &Effects) -> String {
    if *effects == Effects::PURE {
        return "none: computes its result from its operands".to_owned();
    }
    let said = [
        (!effects.nothrow, "may throw"),
        (!effects.terminates, "may not end"),
        (!effects.consistent, "not the same for equal operands"),
        (!effects.noub, "undefined for some operands"),
        (effects.may_safepoint, "may collect"),
        (effects.pinned, "does not move"),
        (effects.fence, "a fence"),
        (effects.is_removable(), "removed if its result is not used"),
    ];
    let mut words: Vec<String> =
        said.iter().filter(|(holds, _)| *holds).map(|(_, word)| (*word).to_owned()).collect();
    for (verb, regions) in [("reads", effects.reads), ("writes", effects.writes)] {
        if !regions.is_empty() {
            words.push(format!("{verb} {}", regions_text(regions)));
        }
    }
    words.join(", ")
}

fn regions_text(regions: Regions) -> String {
    if regions.contains(Regions::ALL) {
        return "any memory".to_owned();
    }
    let names = [
        (Regions::RAW, "memory of C"),
        (Regions::SLOT, "stack slots"),
        (Regions::FIELDS, "fields"),
        (Regions::ELEMENTS, "elements"),
        (Regions::GLOBALS, "globals"),
        (Regions::TASK, "the task's state"),
        (Regions::OUTSIDE, "the world outside"),
        (Regions::HEADERS, "headers of arrays"),
    ];
    let named = names.iter().filter(|(region, _)| regions.contains(*region)).map(|(_, name)| *name);
    named.collect::<Vec<_>>().join(" and ")
}

fn param(analysis: &Analysis, function: u32, index: u32) -> Option<String> {
    let item = analysis.index.functions.get(function as usize)?;
    let name = item.params.get(index as usize)?.as_deref().unwrap_or("_");
    let Some((_, func)) = analysis.func(function) else {
        return Some(code(name) + &format!("\nA parameter of `{}`\n", item.name));
    };
    // The first parameter of a high function is the function object.
    let objects = func.params().len().saturating_sub(item.params.len());
    let value = *func.params().get(index as usize + objects)?;
    let types = &analysis.program.as_ref()?.module().cx.types;
    let uses = used(analysis, func, &Uses::compute(func), value);
    let shown = code(&format!("{name}::{}", types.display(func.ty(value))));
    Some(format!("{shown}\nA parameter of `{}` · {uses}\n", item.name))
}

fn block(analysis: &Analysis, function: u32, number: u32) -> Option<String> {
    let item = analysis.index.functions.get(function as usize)?;
    let position = item.blocks.iter().position(|block| block.number == number)?;
    let rows = item.blocks[position].rows.len();
    let mut text = format!("**Block {number}** of `{}`, {rows} rows\n", item.name);
    let (_, func) = analysis.func(function)?;
    let cfg = Cfg::compute(func);
    let blocks: Vec<_> = func.blocks().collect();
    // The reader may split blocks at handlers in older forms; then the numbers differ from those in the text.
    if blocks.len() == item.blocks.len() {
        let named = |list: &[brolga_ir::Block]| {
            let numbers = list.iter().filter_map(|block| blocks.iter().position(|known| known == block));
            numbers.map(|at| format!("#{}", item.blocks[at].number)).collect::<Vec<_>>().join(", ")
        };
        let (from, to) = (named(cfg.preds(blocks[position])), named(cfg.succs(blocks[position])));
        if !from.is_empty() {
            text.push_str(&format!("\nfrom {from}\n"));
        }
        if !to.is_empty() {
            text.push_str(&format!("\ncontinues at {to}\n"));
        }
    }
    Some(text)
}

fn function(analysis: &Analysis, name: &str, number: u32) -> String {
    let places: Vec<_> = analysis.index.places(number).collect();
    let mut text = String::new();
    let methods = analysis.index.functions.iter().enumerate();
    let methods = methods
        .filter(|(_, item)| places.iter().any(|place| place.is_definition && place.span == item.name_span));
    for (at, item) in methods.take(SHOWN) {
        text.push_str(&code(analysis.text.slice(item.signature)));
        text.push_str(&comments(analysis, item));
        let summary = analysis.func(at as u32).and_then(|(_, func)| func.summary);
        if let Some(summary) = summary {
            text.push_str(&format!("\n**Effects** {}\n", effects_text(&summary.effects)));
        }
    }
    let calls = places.iter().filter(|place| !place.is_definition).count();
    if text.is_empty() {
        text = code(name);
        let kind = match (Intrinsic::from_name(name), Builtin::from_name(name)) {
            (Some(_), _) => "An intrinsic",
            (_, Some(_)) => "A builtin",
            _ => "A function that this file does not define",
        };
        text.push_str(&format!("\n{kind}\n"));
    }
    text.push_str(&format!("\nnamed {calls} times in this file\n"));
    text
}

/// The comments directly above a function.
fn comments(analysis: &Analysis, item: &FunctionItem) -> String {
    let before = &analysis.text.as_str()[..item.span.start as usize];
    let lines = before.lines().rev().take_while(|line| {
        let header = ["# check:", "# throws:", "# signature:", "# types:", "# globals:"];
        line.starts_with('#') && !header.iter().any(|header| line.starts_with(header))
    });
    let mut lines: Vec<&str> = lines.map(|line| line.trim_start_matches('#').trim()).collect();
    lines.reverse();
    if lines.is_empty() { String::new() } else { format!("\n{}\n", lines.join("\n")) }
}

fn declaration(analysis: &Analysis, decl: &DeclItem) -> String {
    code(analysis.text.slice(decl.span))
}
