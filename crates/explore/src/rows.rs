//! A function as rows: the result of a pass, in a form that can be compared with the results of other passes.
//!
//! The text of a function numbers rows and blocks by their position, so that removing one row changes all
//! rows below it. Rows here refer to instructions and blocks by their ids, which passes keep:
//!
//! ```text
//! │   %3 = intrinsic Base.add_int(%1, n)::Int64     row of instruction 7:   intrinsic Base.add_int(%5, n)::Int64
//! └──      goto #4 if not %3                        row of instruction 8:   goto §9 if not %8
//! ```
//!
//! Ids in a row are greater by one than the compiler's: `%0` is an unplaced instruction, and the row of a
//! loop's note has no instruction. The page computes numbers again, and shows `%3 = ` if a row is used.
//!
//! Invariant: the rows are the same as in [`show_func`], in the same order; it alone defines the text of a
//! statement.

use brolga_ir::analysis::{Cfg, DomTree, Loops, Rpo};
use brolga_ir::text::show_func;
use brolga_ir::{Block, Context, Func, Inst};

/// A function after a pass.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Snapshot {
    /// The line with the signature.
    pub(crate) signature: String,
    /// The rows of all blocks, in order.
    pub(crate) rows: Vec<Row>,
    /// For each block: id, rows, cold, immediate dominator, head of the innermost loop, depth, successors
    /// (the number, then each). Dominators, heads and successors are positions of blocks, or -1.
    pub(crate) blocks: Vec<i64>,
}

/// A row: an instruction or a loop's note.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Row {
    /// The instruction's id plus one; 0 for a note.
    pub(crate) inst: u32,
    /// The statement, with ids instead of numbers.
    pub(crate) text: String,
    /// The program's row that it comes from; 0 if unknown.
    pub(crate) origin: u32,
}

/// The rows of a function whose instructions have their origins as lines.
pub(crate) fn snapshot(cx: &Context, func: &Func) -> Snapshot {
    let text = show_func(cx, func).to_string();
    let mut lines = text.lines();
    let signature = lines.next().unwrap_or_default().to_owned();
    let insts: Vec<Inst> = func.blocks().flat_map(|block| func.block_insts(block)).collect();
    let blocks: Vec<Block> = func.blocks().collect();
    let names = Names { insts: &insts, blocks: &blocks };
    let guard = blocks.len().to_string().len() + 3;
    let mut rows = Vec::with_capacity(insts.len());
    for &block in &blocks {
        if func.first_inst(block).is_none() {
            lines.next();
        }
        for inst in func.block_insts(block) {
            let origin = func.place(inst).at.line().unwrap_or(0);
            if func.loop_note(block).is_some() && func.next_inst(inst).is_none() {
                let text = statement(lines.next().unwrap_or_default(), guard).to_owned();
                rows.push(Row { inst: 0, text, origin });
            }
            let has_targets = !func.inst_blocks(inst).is_empty();
            let mut text = names.by_id(statement(lines.next().unwrap_or_default(), guard), has_targets);
            if let Some(map) = func.root_map(inst) {
                let words: Vec<String> = map.offsets.iter().map(|offset| format!("+{offset}")).collect();
                text.push_str(&format!("  # roots: slot {} at {}", map.slot.as_u32(), words.join(" ")));
            }
            rows.push(Row { inst: inst.as_u32() + 1, text, origin });
        }
    }
    Snapshot { signature, rows, blocks: graph(func, &blocks) }
}

/// The line of each instruction in the function's text, from 0, in the order of rows.
pub(crate) fn row_lines(func: &Func) -> Vec<u32> {
    let mut line = 0;
    let mut found = Vec::new();
    for block in func.blocks() {
        line += u32::from(func.first_inst(block).is_none());
        for inst in func.block_insts(block) {
            line += u32::from(func.loop_note(block).is_some() && func.next_inst(inst).is_none());
            line += 1;
            found.push(line);
        }
    }
    found
}

/// The text after the guard, which is `guard` characters wide, and after the row's number.
fn statement(line: &str, guard: usize) -> &str {
    let behind = line.char_indices().nth(guard).map_or("", |(at, _)| &line[at..]);
    match behind.strip_prefix('%') {
        Some(numbered) => numbered.split_once(" = ").map_or(behind, |(_, statement)| statement.trim_start()),
        None => behind.trim_start(),
    }
}

struct Names<'a> {
    insts: &'a [Inst],
    blocks: &'a [Block],
}

impl Names<'_> {
    /// A statement with ids in place of row numbers, and of block numbers if it refers to blocks.
    fn by_id(&self, statement: &str, has_targets: bool) -> String {
        let mut text = String::with_capacity(statement.len() + 8);
        let mut rest = statement;
        let mut before = ' ';
        while let Some(c) = rest.chars().next() {
            let digits = rest[c.len_utf8()..].bytes().take_while(u8::is_ascii_digit).count();
            let number = rest.get(1..=digits).and_then(|digits| digits.parse::<usize>().ok());
            let place = number.and_then(|number| number.checked_sub(1));
            let taken = match (c, place) {
                ('"', _) => {
                    let length = string_length(rest);
                    text.push_str(&rest[..length]);
                    length
                }
                ('%', _) if digits > 0 => {
                    let inst = place.and_then(|place| self.insts.get(place));
                    text.push_str(&format!("%{}", inst.map_or(0, |inst| inst.as_u32() + 1)));
                    1 + digits
                }
                ('#', Some(place)) if has_targets && matches!(before, ' ' | '(') => {
                    match self.blocks.get(place) {
                        Some(block) => text.push_str(&format!("§{}", block.as_u32() + 1)),
                        None => text.push_str(&rest[..=digits]),
                    }
                    1 + digits
                }
                _ => {
                    text.push(c);
                    c.len_utf8()
                }
            };
            before = c;
            rest = &rest[taken..];
        }
        text
    }
}

/// The length in bytes of the string literal at the start of a text.
fn string_length(text: &str) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// The control-flow graph with dominators and loops, in the format of [`Snapshot::blocks`].
fn graph(func: &Func, blocks: &[Block]) -> Vec<i64> {
    let cfg = Cfg::compute(func);
    let (rpo, tree) = (Rpo::compute(&cfg), DomTree::compute(&cfg));
    let loops = Loops::compute(&cfg, &rpo, &tree);
    let mut position = vec![-1; cfg.block_count()];
    for (at, block) in blocks.iter().enumerate() {
        position[block.as_u32() as usize] = at as i64;
    }
    let at = |block: Option<Block>| block.map_or(-1, |block| position[block.as_u32() as usize]);
    let mut flat = Vec::with_capacity(9 * blocks.len());
    for &block in blocks {
        let succs = cfg.succs(block);
        let head = loops.loop_of(block).map(|l| loops.header(l));
        let rows = func.block_insts(block).count()
            + usize::from(func.loop_note(block).is_some() && func.first_inst(block).is_some());
        flat.extend([i64::from(block.as_u32()) + 1, rows as i64, i64::from(func.is_cold(block))]);
        flat.extend([at(tree.idom(block)), at(head), i64::from(loops.depth_of(block)), succs.len() as i64]);
        flat.extend(succs.iter().map(|&succ| at(Some(succ))));
    }
    flat
}

#[cfg(test)]
mod tests {
    use super::{Names, statement};
    use brolga_ir::{Block, Inst};

    #[test]
    fn numbers_become_ids_outside_strings_only() {
        let insts = [Inst::from_u32(10), Inst::from_u32(11)];
        let blocks = [Block::from_u32(4), Block::from_u32(6)];
        let names = Names { insts: &insts, blocks: &blocks };
        assert_eq!(names.by_id("goto #2 if not %1", true), "goto §7 if not %11");
        assert_eq!(names.by_id("f(\"%1 \\\" #2\", %2, %9, #2)", true), "f(\"%1 \\\" #2\", %12, %0, §7)");
        assert_eq!(names.by_id("Main.f#2(%new(T))", false), "Main.f#2(%new(T))");
    }

    #[test]
    fn guards_and_numbers_are_no_part_of_a_statement() {
        assert_eq!(statement("1 ─ %1 = π (x, Int64)", 4), "π (x, Int64)");
        assert_eq!(statement("│        Base.f(%1)::Any", 4), "Base.f(%1)::Any");
        assert_eq!(statement("10 ─ %1  = f(\" = \")::Any", 5), "f(\" = \")::Any");
        assert_eq!(statement("", 4), "");
    }
}
