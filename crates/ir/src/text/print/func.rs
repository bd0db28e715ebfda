//! A function as text: signature, blocks, guards, row numbers.
//!
//! ```text
//! function fib(n::Int64)::Int64
//! 1 ─ %1 = intrinsic Base.slt_int(n, 2)::Bool     a block's first row: its number, ─ or ┄
//! └──      goto #3 if not %1                      its last row
//! 2 ─      return n                               ┄ if it has more than one incoming edge
//! …
//! end
//! ```
//!
//! Every row counts; a number is shown if another row uses it. The number column is as wide as the greatest
//! number in use, the width of the guard follows from the number of blocks, both as in Julia.
//! Functions that passes left in a broken state are also shown: an unplaced row is `%0`, a block without rows
//! is `(empty)`.

use std::fmt::{self, Display, Write};

use cranelift_entity::SecondaryMap;

use super::value::{ValueText, function_name, name_text};
use crate::context::Context;
use crate::entity::{Block, Inst};
use crate::func::Func;
use crate::names::Name;
use crate::op::{Level, Op};
use crate::signature::StaticsText;
use crate::types::{Type, TypeKind};

/// A function with the data that its text needs; `Display` is the text.
pub struct FuncText<'a> {
    pub(super) cx: &'a Context,
    pub(super) func: &'a Func,
    pub(super) values: ValueText<'a>,
    blocks: SecondaryMap<Block, u32>,
    rows: SecondaryMap<Inst, u32>,
    used: SecondaryMap<Inst, bool>,
    /// Edges into a block; a handler edge counts twice.
    edges: SecondaryMap<Block, u32>,
    /// For each argument, the name that refers to it.
    names: Vec<Option<&'a str>>,
}

pub fn show_func<'a>(cx: &'a Context, func: &'a Func) -> FuncText<'a> {
    FuncText::new(cx, func)
}

impl<'a> FuncText<'a> {
    fn new(cx: &'a Context, func: &'a Func) -> FuncText<'a> {
        let mut text = FuncText {
            cx,
            func,
            values: ValueText { cx, level: func.level },
            blocks: SecondaryMap::new(),
            rows: SecondaryMap::new(),
            used: SecondaryMap::new(),
            edges: SecondaryMap::new(),
            names: Vec::new(),
        };
        let mut row = 0;
        for (index, block) in func.blocks().enumerate() {
            text.blocks[block] = index as u32 + 1;
            for inst in func.block_insts(block) {
                row += 1;
                text.rows[inst] = row;
                for used in func.args(inst).iter().filter_map(|&arg| func.def_inst(arg)) {
                    text.used[used] = true;
                }
            }
            for (way, &to) in func.successors(block).iter().enumerate() {
                let handler = way == 1 && func.terminator(block).is_some_and(|t| func.op(t) == Op::Enter);
                text.edges[to] += 1 + u32::from(handler);
            }
        }
        let names: Vec<Option<&str>> = func
            .sig
            .params
            .iter()
            .map(|p| p.name.map(|n| cx.names.text(n)).filter(|n| !is_slot_name(n)))
            .collect();
        // If two arguments have one name, the text means the last.
        text.names =
            (0..names.len()).map(|n| names[n].filter(|name| !names[n + 1..].contains(&Some(name)))).collect();
        text
    }

    pub(super) fn block_number(&self, block: Block) -> u32 {
        self.blocks[block]
    }

    pub(super) fn row_number(&self, inst: Inst) -> u32 {
        self.rows[inst]
    }

    pub(super) fn is_argument_name(&self, text: &str) -> bool {
        self.names.contains(&Some(text))
    }

    /// An argument as an operand.
    pub(super) fn argument(&self, w: &mut dyn Write, number: u32) -> fmt::Result {
        match self.names.get(number as usize).copied().flatten() {
            Some(name) => name_text(w, name),
            None if number == 0 && self.func.level == Level::High => w.write_str("#self#"),
            None => write!(w, "_{}", number + 1),
        }
    }

    fn signature(&self, w: &mut dyn Write) -> fmt::Result {
        let func = self.func;
        let types = &self.cx.types;
        let params = match func.level {
            Level::Low => {
                w.write_str("low function ")?;
                name_text(w, self.cx.names.text(func.name))?;
                &func.sig.params[..]
            }
            Level::High => {
                w.write_str("function ")?;
                let object = func.sig.params.first();
                match object.map(|object| (types.kind(object.ty), object)) {
                    Some((TypeKind::Function(name), _)) => function_name(w, self.cx, *name)?,
                    Some((_, object)) => {
                        w.write_str("(")?;
                        if let Some(name) = self.names[0] {
                            name_text(w, name)?;
                        }
                        write!(w, "::{})", types.display(object.ty))?;
                    }
                    None => name_text(w, self.cx.names.text(func.name))?,
                }
                func.sig.params.get(1..).unwrap_or(&[])
            }
        };
        w.write_str("(")?;
        let statics = &func.sig.statics;
        let variables: Vec<Name> = statics.params.iter().map(|param| param.name).collect();
        let first = func.sig.params.len() - params.len();
        for (index, param) in params.iter().enumerate() {
            w.write_str(if index > 0 { ", " } else { "" })?;
            if let Some(name) = self.names[first + index] {
                name_text(w, name)?;
            }
            let collects = func.sig.vararg && index + 1 == params.len();
            let ty = statics.patterns.get(first + index).copied().unwrap_or(param.ty);
            let shown = match types.kind(ty) {
                TypeKind::Tuple { vararg: Some(rest), elems } if collects && elems.is_empty() => *rest,
                _ => ty,
            };
            write!(w, "::{}{}", types.display_with(shown, &variables), if collects { "..." } else { "" })?;
        }
        w.write_str(")::")?;
        match (&func.sig.results[..], func.level) {
            ([one], _) => write!(w, "{}", types.display(*one))?,
            ([], Level::High) => write!(w, "{}", types.display(Type::ANY))?,
            (many, _) => {
                w.write_str("(")?;
                for (index, &ty) in many.iter().enumerate() {
                    write!(w, "{}{}", if index > 0 { ", " } else { "" }, types.display(ty))?;
                }
                w.write_str(")")?;
            }
        }
        if !statics.params.is_empty() {
            write!(w, "{}", StaticsText { cx: self.cx, statics, is_symbol: false })?;
        }
        match func.inlining.filter(|_| func.level == Level::High) {
            Some(inlining) => write!(w, " {}", inlining.word()),
            None => Ok(()),
        }
    }

    fn body(&self, w: &mut dyn Write) -> fmt::Result {
        let func = self.func;
        let guard = func.blocks().count().to_string().len();
        let greatest = func.blocks().flat_map(|b| func.block_insts(b)).filter(|&i| self.used[i]).last();
        let column = greatest.map_or(0, |inst| self.rows[inst].to_string().len());
        for block in func.blocks() {
            let next = func.next_block(block);
            let number = self.blocks[block].to_string();
            let dash = if self.edges[block] <= 1 { "─" } else { "┄" };
            let header = format!("{number} {dash}{}", "─".repeat(guard - number.len()));
            if func.first_inst(block).is_none() {
                writeln!(w, "{header} (empty)")?;
            }
            let note = func.loop_note(block);
            for inst in func.block_insts(block) {
                let is_last = func.next_inst(inst).is_none();
                if let Some(note) = note.filter(|_| is_last) {
                    match func.prev_inst(inst) {
                        None => w.write_str(&header)?,
                        Some(_) => write!(w, "│ {:guard$}", "")?,
                    }
                    write!(w, " {:width$}", "", width = column + 4)?;
                    self.loop_info(w, note)?;
                    w.write_str("\n")?;
                }
                if func.prev_inst(inst).is_none() && !(is_last && note.is_some()) {
                    w.write_str(&header)?;
                } else if is_last {
                    write!(w, "└─{}", "─".repeat(guard))?;
                } else {
                    write!(w, "│ {:guard$}", "")?;
                }
                if self.used[inst] {
                    write!(w, " %{:<column$} = ", self.rows[inst])?;
                } else {
                    write!(w, " {:width$}", "", width = column + 4)?;
                }
                self.statement(w, inst, next)?;
                w.write_str("\n")?;
            }
        }
        Ok(())
    }
}

impl Display for FuncText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.signature(f)?;
        f.write_str("\n")?;
        self.body(f)?;
        f.write_str("end\n")
    }
}

/// `_2` and similar names refer to arguments by number.
fn is_slot_name(name: &str) -> bool {
    name.strip_prefix('_').is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_digit()))
}
