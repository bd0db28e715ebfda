//! Dumps in the format of Julia's printer: every expression head with every form of operand, literal, type
//! and line of Julia 1.10 to 1.13.
//!
//! ```text
//! around    CodeInfo( … ) => T     rows with lines and names at the sides     rows between positions of inlined code
//! label     1.10, 1.11: none       1.12, 1.13: `intrinsic`, `builtin`, `dynamic`, `invoke`
//! row       result  statement  ::type
//! operand   %3   x   _2   Main.x   literal   type          in `$(Expr(…))`: :(%3)  :(x)  Core.Argument(2)  :(Main.x)
//! ```
//!
//! The format is taken from `base/show.jl` and `Compiler/src/ssair/show.jl`. A dump has one function whose
//! rows are unrelated, so most of them are meaningless; a reader accepts or refuses each separately. A reader
//! must not report a syntax error, and its errors must name the refused construct.
//!
//! | file | content |
//! |---|---|
//! | `mod` | functions, blocks, rows and the text around them |
//! | `statement` | statements and operands |
//! | `literal` | values as printed by `show` |
//! | `types` | types as printed by `show` |

mod literal;
mod statement;
mod types;

use std::fmt::Write;

use crate::rng::Rng;

/// A group of Julia versions whose printers behave the same.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Version {
    /// 1.10 and 1.11: calls without labels.
    Unlabelled,
    /// 1.12 and 1.13: `intrinsic`, `builtin` and `dynamic` before calls.
    Labelled,
}

/// The text around the rows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Around {
    /// `CodeInfo(` … `) => T`: names of arguments.
    CodeInfo,
    /// Rows with line numbers at the left and names of inlined functions at the right, as printed by
    /// `code_ircode`: `_2` for arguments.
    Gutters,
    /// `CodeInfo(` with lines that state the origin of the following rows.
    Source,
}

/// The maximum number of rows per block.
const ROWS: usize = 4;
/// The maximum number of blocks before the last one.
const BLOCKS: usize = 4;

/// A dump under construction.
struct Dump<'r> {
    rng: &'r mut Rng,
    version: Version,
    around: Around,
    /// Whether each previous row has a value.
    rows: Vec<bool>,
    depth: u32,
}

/// A row without its number.
struct Row {
    block: usize,
    has_result: bool,
    statement: String,
}

/// A dump determined by the stream of numbers. The header declares the names used in the rows.
pub fn printed(rng: &mut Rng) -> String {
    let version = if rng.chance(50) { Version::Unlabelled } else { Version::Labelled };
    let around = *rng.pick(&[Around::CodeInfo, Around::Gutters, Around::Source]).unwrap_or(&Around::CodeInfo);
    let mut dump = Dump { rng, version, around, rows: Vec::new(), depth: 0 };
    dump.function()
}

impl Dump<'_> {
    fn function(&mut self) -> String {
        let result = if self.rng.chance(50) { "Any".to_owned() } else { self.ty() };
        let mut text = format!(
            "# signature: f(x::Int64, y::Float64, a::Any, s::String, v::Vector{{Int64}}, b::Bool)::{result}\n\
             # types: struct Foo; a::Any; end\n\
             # types: mutable struct Cell{{T}}; v::T; end\n\
             # types: struct var\"#f#1\" <: Function; end\n\
             # globals: global counter::Int64 = 1\n\
             # globals: const table::Vector{{Int64}} = [1, 2]\n"
        );
        let rows = self.blocks();
        let body = self.laid_out(&rows);
        match self.around {
            Around::Gutters => text.push_str(&body),
            // Writing to a string cannot fail.
            _ => drop(write!(text, "CodeInfo(\n{body}) => {result}\n")),
        }
        text
    }

    /// Consecutive blocks with forward edges; optionally a handler; and the end.
    fn blocks(&mut self) -> Vec<Row> {
        // A refused row hides the others, so most dumps are small.
        let (most_blocks, most_rows) = if self.rng.chance(70) { (1, 1) } else { (BLOCKS, ROWS) };
        let count = self.rng.between(1, most_blocks);
        let mut rows = Vec::new();
        for block in 1..=count {
            for _ in 0..self.rng.between(1, most_rows) {
                let (statement, has_result) = self.statement(block);
                self.push(&mut rows, block, has_result, statement);
            }
            let end = match self.rng.below(3) {
                0 => Some(format!("goto #{}", block + 1)),
                1 => {
                    let condition = self.condition();
                    Some(format!("goto #{} if not {condition}", self.rng.between(block + 1, count + 1)))
                }
                _ => None,
            };
            if let Some(end) = end {
                self.push(&mut rows, block, false, end);
            }
        }
        let last = if self.rng.chance(25) { self.handler(&mut rows, count + 1) } else { count + 1 };
        let end = match self.rng.below(4) {
            0 => "unreachable".to_owned(),
            _ => format!("return {}", self.operand()),
        };
        self.push(&mut rows, last, false, end);
        rows
    }

    /// A region with a handler that begins in `block`: `enter`, `leave`, φᶜ, the exception, `pop_exception`.
    /// Returns the block after it.
    fn handler(&mut self, rows: &mut Vec<Row>, block: usize) -> usize {
        let value = self.operand();
        let ty = self.ty();
        let upsilon = self.push(rows, block, true, format!("ϒ ({value})::{ty}"));
        let scope =
            if self.rng.chance(20) { format!(" with scope {}", self.plain_operand()) } else { String::new() };
        let entered = self.push(rows, block, true, format!("enter #{}{scope}", block + 2));
        let (statement, has_result) = self.statement(block + 1);
        self.push(rows, block + 1, has_result, statement);
        self.push(rows, block + 1, false, format!("$(Expr(:leave, :(%{entered})))"));
        self.push(rows, block + 2, true, format!("φᶜ (%{upsilon})::{ty}"));
        self.push(rows, block + 2, true, "$(Expr(:the_exception))::Any".to_owned());
        self.push(rows, block + 2, false, format!("$(Expr(:pop_exception, :(%{entered})))::Nothing"));
        block + 3
    }

    /// Adds a row; returns its number.
    fn push(&mut self, rows: &mut Vec<Row>, block: usize, has_result: bool, statement: String) -> usize {
        rows.push(Row { block, has_result, statement });
        self.rows.push(has_result);
        self.rows.len()
    }

    /// The rows with their numbers, rails and margins.
    fn laid_out(&mut self, rows: &[Row]) -> String {
        let width = rows.len().to_string().len();
        let blocks = rows.last().map_or(1, |row| row.block).to_string().len();
        let mut text = String::new();
        for (index, row) in rows.iter().enumerate() {
            let is_first = index == 0 || rows[index - 1].block != row.block;
            let is_last = rows.get(index + 1).is_none_or(|next| next.block != row.block);
            let dashes = |count: usize| "─".repeat(count);
            let number = row.block.to_string();
            let rail = match (is_first, is_last) {
                (true, _) => {
                    let joint = if index > 0 && self.rng.chance(40) { "┄" } else { "─" };
                    let fill = dashes(blocks - number.len());
                    format!("{number} {joint}{fill} ")
                }
                (false, true) => format!("└─{} ", dashes(blocks)),
                (false, false) => format!("│{} ", " ".repeat(blocks + 1)),
            };
            let result =
                if row.has_result { format!("%{:<width$} = ", index + 1) } else { " ".repeat(width + 4) };
            let inner = match self.around {
                Around::Source if !is_first && self.rng.chance(30) => {
                    let (file, callee) = (self.file(), self.callee_name());
                    let _ = writeln!(
                        text,
                        "│{} ┌ @ {file}:{} within `{callee}`",
                        " ".repeat(blocks + 1),
                        self.rng.below(900)
                    );
                    "│"
                }
                _ => "",
            };
            let gutter = match self.around {
                Around::Gutters if self.rng.chance(40) => format!("{:<4}", self.rng.between(1, 999)),
                Around::Gutters => "    ".to_owned(),
                _ => String::new(),
            };
            let side = match self.around {
                Around::Gutters if self.rng.chance(60) => {
                    let marks = *self.rng.pick(&["│", "│╻", "│╻╷", "││╻", "│││┃", "││┃│"]).unwrap_or(&"│");
                    format!("  {marks}  {}", self.callee_name())
                }
                Around::Gutters => "  │".to_owned(),
                _ => String::new(),
            };
            let _ = writeln!(text, "{gutter}{rail}{inner}{result}{}{side}", row.statement);
        }
        text
    }

    fn file(&mut self) -> &'static str {
        self.one_of(&["int.jl", "./promotion.jl", "REPL[3]", "/usr/share/julia/base/array.jl", "In[1]"])
    }

    fn callee_name(&mut self) -> &'static str {
        self.one_of(&["+", "getindex", "iterate", "#sort#5", "==", "macro expansion", "Type##kw", "(::Foo)"])
    }

    fn one_of(&mut self, items: &[&'static str]) -> &'static str {
        self.rng.pick(items).copied().unwrap_or_default()
    }

    /// Runs `inner` one level deeper; returns `flat` if the nesting is already deep.
    fn nested(&mut self, flat: &str, inner: impl FnOnce(&mut Self) -> String) -> String {
        const DEEPEST: u32 = 4;
        if self.depth >= DEEPEST {
            return flat.to_owned();
        }
        self.depth += 1;
        let text = inner(self);
        self.depth -= 1;
        text
    }

    /// `count` texts separated by commas.
    fn list(&mut self, count: usize, mut item: impl FnMut(&mut Self) -> String) -> String {
        let items: Vec<String> = (0..count).map(|_| item(self)).collect();
        items.join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_determines_its_dump_and_all_surroundings_occur() {
        let dump = |seed| printed(&mut Rng::new(seed));
        assert_eq!(dump(3), dump(3));
        let all: Vec<String> = (0..200).map(dump).collect();
        let has = |word: &str| all.iter().any(|dump| dump.contains(word));
        for word in
            ["within `", "  │╻", "intrinsic ", "φᶜ", "$(Expr(:foreigncall", "%splatnew", "dynamic invoke"]
        {
            assert!(has(word), "{word}");
        }
    }
}
