//! Loops that count, at the edges of integers: the passes on loops do not change their results.
//!
//! ```text
//! f(s, n, len):  for the relation, the step, the tested value, a guard or none, and a check of the index or none
//!     i = s;  acc = 7;  do { poll; check(i); acc = acc * 31 xor i; next = i + step } while test(i or next, n)
//!     return (i, next, acc)                 a failed check throws BoundsError(acc)
//! ```
//!
//! Every such function runs on starts, bounds and lengths around 0 and the ends of the range of an `Int64`, also with constants
//! in their place. A loop that does not end within the steps is only required not to become wrong before.

use brolga_interp::{Interp, Options as Limits, Outcome, SimMemory, Val};
use brolga_ir::diag::SourceFile;
use brolga_ir::text::read;
use brolga_ir::{Context, Module};
use brolga_opt::{Cx, Options, Pass, parse_passes, run_passes};

const MIN: i64 = i64::MIN;
const MAX: i64 = i64::MAX;
const STARTS: [i64; 6] = [0, 1, -2, 5, MAX - 3, MIN];
const BOUNDS: [i64; 8] = [0, 1, 7, 20, MAX - 1, MAX, MIN, MIN + 5];
const LENGTHS: [i64; 5] = [0, 6, 13, MAX, -1];
const MAX_STEPS: u64 = 700;

/// A test of `T` against the bound `B`, and its value while the loop continues.
const TESTS: [(&str, bool); 6] = [
    ("slt_int(T, B)", true),
    ("sle_int(T, B)", true),
    ("slt_int(B, T)", true),
    ("ult_int(T, B)", true),
    ("ne_int(T, B)", true),
    ("eq_int(T, B)", false),
];

/// The addend of the counter that makes `%20`, and the check of that or of `%22`, which is greater by `s`.
const CHECKS: [(i64, &str); 10] = [
    (0, ""),
    (0, "ult_int(%20, len)"),
    (-1, "ult_int(%20, len)"),
    (2, "ult_int(%20, len)"),
    (2, "slt_int(%20, len)"),
    (-2, "sle_int(%20, len)"),
    (3, "sle_int(1, %20)"),
    (-1, "ult_int(%20, B)"),
    (-1, "ult_int(%22, len)"),
    (3, "ult_int(%22, B)"),
];

/// A loop as text. Where `start` and `bound` are given they stand for the arguments.
struct Shape {
    test: (&'static str, bool),
    on_next: bool,
    step: i64,
    guarded: bool,
    check: (i64, &'static str),
    start: Option<i64>,
    bound: Option<i64>,
}

impl Shape {
    fn text(&self) -> String {
        let Shape { test: (test, holds), on_next, step, guarded, check: (added, check), .. } = *self;
        let or_arg = |given: Option<i64>, arg: &str| given.map_or(arg.to_owned(), |n| n.to_string());
        let (start, bound) = (or_arg(self.start, "s"), or_arg(self.bound, "n"));
        let with = |tested: &str| test.replace('T', tested).replace('B', &bound);
        let first = if guarded { with(&start) } else { "slt_int(0, 1)".to_owned() };
        let first_branch = if guarded && !holds { "goto #2 if not %1 else #6" } else { "goto #6 if not %1" };
        let tested = with(if on_next { "%31" } else { "%10" });
        let branch = if holds { "goto #7 if not %32 else #3" } else { "goto #3 if not %32 else #7" };
        let check = if check.is_empty() { "slt_int(0, 1)".to_owned() } else { check.replace('B', &bound) };
        format!(
            "low function f(s::i64, n::i64, len::i64)::(i64, i64, i64)\n\
             1 ─ %1 = {first}::i8\n└── {first_branch}\n\
             2 ─ goto #3\n\
             3 ┄ %10 = φ (#2 => {start}, #4 => %31)::i64\n│ %11 = φ (#2 => 7, #4 => %13)::i64\n│ safepoint()\n\
             │ %20 = add_int(%10, {added})::i64\n│ %22 = add_int(s, %20)::i64\n│ %21 = {check}::i8\n└── goto #5 if not %21\n\
             4 ─ %12 = mul_int(%11, 31)::i64\n│ %13 = xor_int(%12, %10)::i64\n│ %31 = add_int(%10, {step})::i64\n\
             │ %32 = {tested}::i8\n└── {branch}\n\
             5 ─ brolga_throw_bounds(%11)\n└── unreachable\n\
             6 ─ return (0, 0, 0)\n\
             7 ─ return (%10, %31, %13)\nend\n"
        )
    }

    fn module(&self) -> Module {
        let text = self.text();
        let source = SourceFile::new("loop", &text).unwrap();
        let (unit, found) = read(&source, &Context::new());
        assert!(!found.has_errors(), "{found:?}\n{text}");
        unit.module
    }
}

fn shapes() -> impl Iterator<Item = Shape> {
    let tests = TESTS.into_iter().flat_map(|test| [true, false].map(|on_next| (test, on_next)));
    let steps = tests.flat_map(|t| [1, 3, -1].map(|step| (t, step)));
    let guards = steps.flat_map(|t| [true, false].map(|guarded| (t, guarded)));
    let checks = guards.flat_map(|t| CHECKS.map(|check| (t, check)));
    let constants =
        [(None, None), (Some(1), None), (Some(MAX - 9), None), (Some(0), Some(7)), (None, Some(12))];
    checks.flat_map(move |((((test, on_next), step), guarded), check)| {
        constants.map(|(start, bound)| Shape { test, on_next, step, guarded, check, start, bound })
    })
}

/// The outcome of a call; `None` if it did not end.
fn call(module: &Module, args: [i64; 3], max_steps: u64) -> Option<String> {
    let limits = Limits { max_steps, ..Limits::default() };
    let mut interp = Interp::new(module, limits, Box::new(SimMemory::default()));
    let (id, _) = module.funcs().next().unwrap();
    match interp.call_low(id, &args.map(low)) {
        Ok(values) => Some(format!("{:?}", values.iter().map(Val::as_bits).collect::<Vec<_>>())),
        Err(Outcome::OutOfFuel) => None,
        Err(other) => Some(format!("{other:?}")),
    }
}

fn low(value: i64) -> Val {
    Val::Bits { ty: brolga_ir::Type::I64, bits: u128::from(value as u64) }
}

fn after(module: &Module, passes: &[&'static Pass], what: &str) -> Module {
    let (id, func) = module.funcs().next().unwrap();
    let options = Options { verify_each: true, ..Options::default() };
    let done = run_passes(module, func.clone(), passes, &options, &mut Cx::default());
    let mut after = module.clone();
    after[id] = done.unwrap_or_else(|error| panic!("{error}\n{what}")).0;
    after
}

/// Compares every loop with itself after some passes.
fn check(passes: &str) {
    let list = parse_passes(passes).unwrap();
    let mut ended = 0;
    for (n, shape) in shapes().enumerate() {
        let before = shape.module();
        let after = after(&before, &list, &shape.text());
        // A part of all arguments for each, another part for each.
        let all = STARTS
            .into_iter()
            .flat_map(|s| BOUNDS.map(|b| (s, b)))
            .flat_map(|(s, b)| LENGTHS.map(|l| [s, b, l]));
        for args in all.skip(n % 23).step_by(23) {
            let Some(expected) = call(&before, args, MAX_STEPS) else { continue };
            ended += 1;
            let found = call(&after, args, MAX_STEPS);
            assert_eq!(Some(expected), found, "{passes}: {args:?}\n{}", shape.text());
        }
    }
    assert!(ended > 10_000, "only {ended} calls ended");
}

#[test]
fn indvars_keeps_the_meaning() {
    check("indvars");
}

#[test]
fn irce_keeps_the_meaning() {
    check("irce");
}

#[test]
fn unrolling_keeps_the_meaning() {
    check("unroll-full,unroll");
}

#[test]
fn polling_rarely_keeps_the_meaning() {
    check("polls");
}

/// Loops of several thousand iterations: polls come once for one or two thousand.
#[test]
fn long_loops_that_poll_rarely_keep_the_meaning() {
    const ARGS: [[i64; 3]; 7] = [
        [0, 1, 0],
        [0, 5000, 0],
        [-3000, 1500, 0],
        [MAX - 4000, MAX - 1, 0],
        [MAX - 4000, MAX, 0],
        [MIN, MIN + 6001, 0],
        [7, 3, 0],
    ];
    const STEPS: u64 = 100_000;
    let passes = parse_passes("polls").unwrap();
    let long = |shape: &Shape| {
        shape.on_next && shape.check.1.is_empty() && shape.start.is_none() && shape.bound.is_none()
    };
    let mut ended = 0;
    for shape in shapes().filter(long) {
        let before = shape.module();
        let after = after(&before, &passes, &shape.text());
        for args in ARGS {
            let Some(expected) = call(&before, args, STEPS) else { continue };
            ended += 1;
            assert_eq!(Some(expected), call(&after, args, 2 * STEPS), "{args:?}\n{}", shape.text());
        }
    }
    assert!(ended > 100, "only {ended} calls ended");
}

#[test]
fn all_together_keep_the_meaning() {
    check(
        "inst-simplify,loop-simplify,rotate,licm,indvars,loop-delete,unswitch,irce,unroll-full,strength-reduce,unroll,\
         inst-simplify,strength-reduce,polls,simplify-cfg,dce",
    );
}
