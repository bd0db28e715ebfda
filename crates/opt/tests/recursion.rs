//! Recursive functions from a seed, before and after the passes about recursion: the same value for every argument.
//!
//! A function has a base case and one or two blocks that call the function itself: once at the end, with sums, products and
//! other things between the call and the return, and sometimes once before that.

use std::fmt::Write as _;

use brolga_interp::{Interp, Options as Limits, SimMemory, Val};
use brolga_ir::diag::SourceFile;
use brolga_ir::text::read;
use brolga_ir::{Context, FuncId, Module, Type};
use brolga_opt::{Cx, Options, parse_passes, run_passes};

const SEEDS: u64 = 400;

struct Dice(u64);

impl Dice {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) % n
    }
}

/// Statements with their numbers, which count every statement.
#[derive(Default)]
struct Text {
    lines: String,
    count: u32,
    /// The label that the open block has to print before its first statement.
    label: Option<u32>,
}

impl Text {
    fn put(&mut self, statement: &str, gives: bool) -> String {
        self.count += 1;
        let label = self.label.take().map_or("│ ".to_owned(), |n| format!("{n} ─ "));
        let name = format!("%{}", self.count);
        let left = if gives { format!("{name} = ") } else { String::new() };
        writeln!(self.lines, "{label}{left}{statement}").unwrap();
        name
    }

    fn open(&mut self, label: u32) {
        self.label = Some(label);
    }

    fn value(&mut self, statement: &str) -> String {
        self.put(&format!("{statement}::Int64"), true)
    }
}

fn pick<'a>(dice: &mut Dice, from: &'a [String]) -> &'a str {
    &from[dice.below(from.len() as u64) as usize]
}

/// A block that ends with a call of `f` and operations on its result; returns the value to be returned.
fn recursive_block(dice: &mut Dice, text: &mut Text) -> String {
    let mut values = vec!["n".to_owned(), "a".to_owned(), "7".to_owned(), "-1".to_owned()];
    for _ in 0..dice.below(3) {
        let op = ["add_int", "mul_int", "xor_int"][dice.below(3) as usize];
        let (x, y) = (pick(dice, &values).to_owned(), pick(dice, &values).to_owned());
        values.push(text.value(&format!("Base.{op}({x}, {y})")));
    }
    if dice.below(3) == 0 {
        let less = text.value("Base.sub_int(n, 2)");
        let arg = pick(dice, &values).to_owned();
        values.push(text.value(&format!("invoke Main.f({less}::Int64, {arg}::Int64)")));
    }
    let less = text.value("Base.sub_int(n, 1)");
    let arg = pick(dice, &values).to_owned();
    let mut result = text.value(&format!("invoke Main.f({less}::Int64, {arg}::Int64)"));
    for _ in 0..dice.below(4) {
        let other = pick(dice, &values).to_owned();
        let (x, y) = if dice.below(2) == 0 { (&result, &other) } else { (&other, &result) };
        // Mostly what accumulates; a difference, a division and a second use of the result do not.
        result = match dice.below(12) {
            0..5 => text.value(&format!("Base.add_int({x}, {y})")),
            5..9 => text.value(&format!("Base.mul_int({x}, {y})")),
            9 => text.value(&format!("Base.sub_int({x}, {y})")),
            10 => text.value(&format!("Base.checked_sdiv_int({x}, 3)")),
            _ => text.value(&format!("Base.add_int({result}, {result})")),
        };
        if dice.below(4) == 0 {
            let (x, y) = (pick(dice, &values).to_owned(), pick(dice, &values).to_owned());
            values.push(text.value(&format!("Base.mul_int({x}, {y})")));
        }
    }
    if dice.below(8) == 0 { pick(dice, &values).to_owned() } else { result }
}

fn program(seed: u64) -> String {
    let mut dice = Dice(seed);
    let mut text = Text::default();
    text.open(1);
    let small = text.put("Base.slt_int(n, 1)::Bool", true);
    text.put(&format!("goto #3 if not {small}"), false);
    text.open(2);
    let base = ["n", "a", "5"][dice.below(3) as usize];
    text.put(&format!("return {base}"), false);
    text.open(3);
    let bit = text.value("Base.and_int(a, 1)");
    let odd = text.put(&format!("Base.eq_int({bit}, 1)::Bool"), true);
    text.put(&format!("goto #5 if not {odd}"), false);
    let joined = dice.below(2) == 0;
    let mut ends = Vec::new();
    for label in [4, 5] {
        text.open(label);
        ends.push(recursive_block(&mut dice, &mut text));
        let end = ends.last().cloned().unwrap_or_default();
        text.put(&if joined { "goto #6".to_owned() } else { format!("return {end}") }, false);
    }
    if joined {
        text.open(6);
        let phi = text.value(&format!("φ (#4 => {}, #5 => {})", ends[0], ends[1]));
        text.put(&format!("return {phi}"), false);
    }
    format!("function f(n::Int64, a::Int64)::Int64\n{}end\n", text.lines)
}

fn values(module: &Module) -> Vec<String> {
    let mut found = Vec::new();
    for (n, a) in (-1..6).flat_map(|n| [0, 1, 6, -5].map(|a| (n, a))) {
        let limits = Limits { max_steps: 100_000, ..Limits::default() };
        let mut interp = Interp::new(module, limits, Box::new(SimMemory::default()));
        let int = |v: i64| Val::bits(&module.cx.types, Type::INT64, u128::from(v as u64));
        found.push(format!("{:?}", interp.call(FuncId::from_u32(0), &[int(n), int(a)])));
    }
    found
}

#[test]
fn passes_about_recursion_keep_the_meaning() {
    let options = Options { verify_each: true, ..Options::default() };
    let mut changed = [0; 2];
    for seed in 0..SEEDS {
        let text = program(seed);
        let source = SourceFile::new("f", &text).unwrap();
        let (unit, found) = read(&source, &Context::new());
        assert!(!found.has_errors(), "{text}");
        let expected = values(&unit.module);
        for (index, list) in [
            "tail-recursion",
            "unfold-recursion",
            "simplify-cfg,tail-recursion,unfold-recursion,inst-simplify",
        ]
        .into_iter()
        .enumerate()
        {
            for limit in [None, Some(1), Some(3)] {
                let mut after = unit.module.clone();
                let id = FuncId::from_u32(0);
                let passes = parse_passes(list).unwrap();
                let func = after[id].clone();
                let done = run_passes(&after, func, &passes, &options, &mut Cx::new(limit));
                let (func, report) = done.unwrap_or_else(|error| panic!("{error}\n{text}"));
                after[id] = func;
                assert_eq!(values(&after), expected, "{list}, fuel {limit:?}, of\n{text}");
                if index < 2 && limit.is_none() && report.rewrites() > 0 {
                    changed[index] += 1;
                }
            }
        }
    }
    assert!(changed.iter().all(|&count| count > SEEDS / 3), "{changed:?}");
}
