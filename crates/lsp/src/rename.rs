//! Renaming of rows, parameters and functions.
//!
//! ```text
//! symbol ──► refused? ──► edits of all occurrences ──► the new text is read ──► the same program? ──► edits
//! ```
//!
//! The index resolves names by the text; the reader checks the result: the renamed program must have the same
//! functions, instructions, operands and callees as before. So a name that is already used, or shadows
//! another one, is refused.
//!
//! Not done: types, globals and blocks; functions of dumps, whose headers were printed by Julia.

use brolga_engine::Program;
use brolga_ir::diag::Span;
use brolga_ir::func::CalleeData;
use brolga_ir::ident::is_identifier;
use brolga_ir::{Func, FuncId, Module, Op};
use lsp_types::{Range, TextEdit};

use crate::document::{Analysis, fenced};
use crate::index::{Occurrence, Symbol};
use crate::text::Places;

/// The renamable name at the position, and its range.
///
/// # Errors
/// There is no such name; the text has the reason.
pub(crate) fn prepare(analysis: &Analysis, offset: usize) -> Result<(Range, String), String> {
    let found = renamable(analysis, offset)?;
    Ok((analysis.text.range(found.span), analysis.text.slice(found.span).to_owned()))
}

/// The edits that rename the symbol at a position.
///
/// # Errors
/// The symbol cannot be renamed, or not to this name; the text has the reason.
pub(crate) fn rename(analysis: &Analysis, offset: usize, new: &str) -> Result<Vec<TextEdit>, String> {
    let found = renamable(analysis, offset)?;
    let symbol = &analysis.index.symbols[found.symbol as usize];
    let new = new.trim();
    let written = match symbol {
        Symbol::Row { .. } => {
            let digits = new.strip_prefix('%').unwrap_or(new);
            match digits.parse::<u32>() {
                Ok(number) if number > 0 && digits.bytes().all(|byte| byte.is_ascii_digit()) => {
                    format!("%{number}")
                }
                _ => return Err("a row is named by a number: `%7`".to_owned()),
            }
        }
        _ if is_identifier(new) => new.to_owned(),
        _ => return Err(format!("`{new}` is not a name")),
    };
    let old = analysis.text.slice(found.span);
    if old == written {
        return Ok(Vec::new());
    }
    if matches!(symbol, Symbol::Function(_)) && is_global_name(analysis, &written) {
        // The reader would merge two functions into one with more methods.
        return Err(format!("`{written}` is a name already"));
    }
    // `_2` and `#self#` keep their meaning.
    let places = analysis.index.places(found.symbol).filter(|place| analysis.text.slice(place.span) == old);
    let spans: Vec<Span> = places.map(|place| place.span).collect();
    let mut text = String::with_capacity(analysis.text.as_str().len());
    let mut from = 0;
    for span in &spans {
        text.push_str(&analysis.text.as_str()[from..span.start as usize]);
        text.push_str(&written);
        from = span.end as usize;
    }
    text.push_str(&analysis.text.as_str()[from..]);
    same_program(analysis, &text).map_err(|reason| format!("`{old}` cannot become `{written}`: {reason}"))?;
    let mut places = Places::new(&analysis.text);
    Ok(spans.into_iter().map(|span| TextEdit::new(places.range(span), written.clone())).collect())
}

fn renamable(analysis: &Analysis, offset: usize) -> Result<Occurrence, String> {
    let index = &analysis.index;
    let Some(found) = index.at(offset) else { return Err("there is no name here".to_owned()) };
    let symbol = index.symbols.get(found.symbol as usize);
    let refused = |reason: &str| Err(reason.to_owned());
    let defined = index.places(found.symbol).any(|place| place.is_definition);
    match symbol {
        None => return refused("there is no name here"),
        Some(Symbol::Block { .. }) => {
            return refused("blocks are numbered by their order; `brolga fmt` does that");
        }
        Some(Symbol::Type(_)) => return refused("types are not renamed"),
        Some(Symbol::Global(_)) => return refused("globals are not renamed"),
        Some(Symbol::Function(name)) => {
            let dump = |place: &Occurrence| {
                index.functions.iter().any(|item| item.is_dump && item.name_span == place.span)
            };
            if !defined {
                return Err(format!("this file does not define `{name}`"));
            }
            if index.places(found.symbol).any(|place| dump(&place)) {
                return Err(format!("`{name}` is a dump, whose header is what Julia has printed"));
            }
        }
        Some(Symbol::Param { .. }) if analysis.text.slice(found.span).starts_with('_') => {
            return refused("this names the argument by its number");
        }
        Some(Symbol::Row { .. } | Symbol::Param { .. }) if !defined => {
            return refused("nothing in the function defines it");
        }
        Some(Symbol::Row { .. } | Symbol::Param { .. }) => {}
    }
    if analysis.program.is_none() {
        return refused("the program has errors, so it is unknown whether it stays the same");
    }
    Ok(found)
}

/// Whether a function, type or global of the text has this name, in any module.
fn is_global_name(analysis: &Analysis, name: &str) -> bool {
    analysis.index.symbols.iter().any(|symbol| match symbol {
        Symbol::Function(path) => path.rsplit('.').next() == Some(name),
        Symbol::Type(known) | Symbol::Global(known) => known == name,
        Symbol::Row { .. } | Symbol::Param { .. } | Symbol::Block { .. } => false,
    })
}

/// Checks that a text is the same program except for names.
fn same_program(analysis: &Analysis, text: &str) -> Result<(), String> {
    let Some(old) = &analysis.program else { return Err("the program has errors".to_owned()) };
    let new = fenced(|| Program::read(&analysis.name, text.as_bytes()))?;
    let new = new.map_err(|error| match error {
        brolga_engine::Error::Broken(broken) => {
            let first = broken.findings.iter().next().map(|finding| finding.message.clone());
            first.unwrap_or_else(|| "the program would have errors".to_owned())
        }
        other => other.to_string(),
    })?;
    let (old, new) = (old.module(), new.module());
    let differs = || "another name would change its meaning".to_owned();
    if old.func_count() != new.func_count() {
        return Err(differs());
    }
    let same = |(before, after): (&Func, &Func)| {
        before.level == after.level && shape(old, before) == shape(new, after)
    };
    let mut pairs = old.funcs().map(|(_, func)| func).zip(new.funcs().map(|(_, func)| func));
    if pairs.all(same) { Ok(()) } else { Err(differs()) }
}

type Row = (std::mem::Discriminant<Op>, Vec<u32>, Vec<u32>, Option<Option<FuncId>>);

/// A function without names: operations, operands, targets, and callees.
fn shape(module: &Module, func: &Func) -> Vec<Row> {
    let callee = |op: Op| match op {
        Op::Invoke(callee) | Op::CFunction(callee) | Op::CallSymbol(callee) => match func.callee(callee) {
            CalleeData::Method { function, args, .. } => Some(module.find_method(*function, args)),
            CalleeData::Symbol { symbol, .. } => Some(module.named(*symbol).next()),
        },
        _ => None,
    };
    let row = |inst| {
        let args = func.args(inst).iter().map(|value| value.as_u32()).collect();
        let blocks = func.inst_blocks(inst).iter().map(|block| block.as_u32()).collect();
        let op = func.op(inst);
        (std::mem::discriminant(&op), args, blocks, callee(op))
    };
    func.blocks().flat_map(|block| func.block_insts(block)).map(row).collect()
}
