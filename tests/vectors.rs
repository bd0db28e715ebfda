//! Every operation on lanes, on the edges of its operands: native code and the interpreter agree.
//!
//! A function is made for each operation and each division into lanes. It puts its vectors together from four words, so that
//! any bits can be given, and returns the words of the result.

use std::fmt::Write as _;

use brolga::{Engine, Evaluator, OptLevel, Options, Program};
use brolga_ir::intrinsic::{Intrinsic, Shape};
use brolga_ir::lanes::Lanes;

/// Words with something at the edge of every kind of lane in them.
const WORDS: [u64; 9] = [
    0,
    u64::MAX,
    0x8000_0000_0000_0000,
    0x7fff_8000_7f80_0180,
    0x3ff0_0000_3f80_0000,
    0x7ff0_0000_0000_0000,
    0xfff8_0000_ffc0_0000,
    0x0000_0001_8000_0001,
    0xc059_0000_c2c8_0000,
];

fn vector(text: &mut String, name: usize, low: &str, high: &str) {
    let _ = writeln!(text, "│ %{name} = insert_lane(i64x2, 0, v128(0), {low})::v128");
    let _ = writeln!(text, "│ %{} = insert_lane(i64x2, 1, %{name}, {high})::v128", name + 1);
}

/// The functions, with the name and the number of second operands worth trying of each.
fn functions(text: &mut String) -> Vec<(String, bool)> {
    let mut names = Vec::new();
    let mut function = |name: String, body: &str, shift: bool| {
        let _ = writeln!(text, "low function {name}(::i64, ::i64, ::i64, ::i64)::(i64, i64)");
        text.push_str("1 ─ %1 = slot_addr(0; size = 16, align = 8)::ptr\n");
        vector(text, 2, "_1", "_2");
        vector(text, 4, "_3", "_4");
        text.push_str(body);
        text.push_str("│ store(%1, %9; offset = 0, region = slot, align = 8)\n");
        text.push_str("│ %10 = load(%1; offset = 0, region = slot, align = 8)::v128\n");
        text.push_str("│ %11 = extract_lane(i64x2, 0, %10)::i64\n│ %12 = extract_lane(i64x2, 1, %10)::i64\n");
        text.push_str("└── return (%11, %12)\nend\n\n");
        names.push((name, shift));
    };
    for lanes in Lanes::ALL {
        let division = lanes.name();
        for &op in Intrinsic::ALL.iter().filter(|&&op| lanes.allows(op)) {
            let operands = match op.shape() {
                Shape::IntUnary | Shape::FloatUnary | Shape::Convert(_) => "%3",
                Shape::FloatTernary => "%3, %5, %3",
                Shape::Shift => "%3, _3",
                _ => "%3, %5",
            };
            let body = format!("│ %9 = lanes({op}, {division}, {operands})::v128\n");
            // Names end with the lanes of the result.
            let name = format!("{op}_{division}_{}", lanes.made_by(op).name());
            function(name, &body, op.shape() == Shape::Shift);
        }
        let (element, last) = (lanes.element().name(), lanes.count() - 1);
        let moved = format!(
            "│ %6 = extract_lane({division}, {last}, %3)::{element}\n│ %7 = splat({division}, %6)::v128\n\
             │ %8 = extract_lane({division}, 0, %5)::{element}\n\
             │ %9 = insert_lane({division}, 1, %7, %8)::v128\n"
        );
        function(format!("moved_{division}"), &moved, false);
        for count in [0, 1, lanes.element().bits() - 1, lanes.element().bits(), 200] {
            for op in [Intrinsic::ShlInt, Intrinsic::LshrInt, Intrinsic::AshrInt] {
                if lanes.allows(op) {
                    let body = format!("│ %9 = lanes({op}, {division}, %3, {count})::v128\n");
                    function(format!("{op}_{division}_by_{count}"), &body, false);
                }
            }
        }
    }
    function("chosen".to_owned(), "│ %9 = lane_select(%3, %5, v128(77))::v128\n", false);
    names
}

/// NaNs may differ in sign and payload: what they look like is left open, and so the words are compared as lanes.
fn agree(name: &str, left: &str, right: &str) -> bool {
    let words = |text: &str| -> Option<Vec<u64>> {
        let inner = text.strip_prefix('(')?.strip_suffix(')')?;
        inner.split(", ").map(|word| word.parse::<i64>().ok().map(i64::cast_unsigned)).collect()
    };
    let (Some(left), Some(right)) = (words(left), words(right)) else { return false };
    left.iter().zip(&right).all(|(&a, &b)| {
        let single = |w: u64, n: u32| f32::from_bits((w >> (32 * n)) as u32);
        a == b
            || name.ends_with("f64x2") && f64::from_bits(a).is_nan() && f64::from_bits(b).is_nan()
            || name.ends_with("f32x4")
                && (0..2).all(|n| {
                    let (a, b) = (single(a, n), single(b, n));
                    a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan()
                })
    })
}

#[test]
fn native_lanes_are_those_of_the_interpreter() {
    let mut text = String::new();
    let names = functions(&mut text);
    let program = Program::read("vectors", text.as_bytes()).unwrap_or_else(|error| panic!("{error}"));
    let engine = |level| Engine::new(crate::doors::open(Options::new()).opt_level(level)).unwrap();
    let engines = [OptLevel::O0, OptLevel::O2].map(engine);
    let mut interpreted = Evaluator::interpreted(&program);
    let mut native: Vec<Evaluator<'_>> = engines.iter().map(|e| Evaluator::native(&program, e)).collect();
    for (name, shift) in &names {
        for (n, &a) in WORDS.iter().enumerate() {
            for (m, &b) in WORDS.iter().enumerate() {
                let (c, d) = (WORDS[(n + 1) % WORDS.len()], WORDS[(n + m) % WORDS.len()]);
                let b = if *shift { [0, 1, 7, 8, 15, 31, 63, 64, u64::MAX][m] } else { b };
                let args = [a, c, b, d].map(u64::cast_signed).map(|word| word.to_string());
                let call = program.call(&format!("{name}({})", args.join(", "))).unwrap();
                let expected = interpreted.call(&call).unwrap();
                for (native, level) in native.iter_mut().zip(["O0", "O2"]) {
                    let got = native.call(&call).unwrap();
                    assert!(
                        agree(name, &expected, &got),
                        "{level}: {}: {expected}, natively {got}",
                        args.join(", ")
                    );
                }
            }
        }
    }
}

#[path = "support/doors.rs"]
mod doors;
