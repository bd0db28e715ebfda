//! Loops that fill and copy memory, at places that overlap in every way: the routines of `loop-idiom` give the same result as the
//! interpreter, iteration by iteration.
//!
//! A function is made for each width and each way to count. It numbers the bytes of new memory, copies within it, and returns a
//! digest of it. Either the places are arguments, so that the code tests whether they overlap, or their distance is a constant.

use std::collections::BTreeSet;

use brolga::{Engine, Evaluator, OptLevel, Options, Program};
use brolga_ir::{Func, Module, Op};

const WIDTHS: [(&str, usize); 6] = [("i8", 1), ("i16", 2), ("f32", 4), ("i64", 8), ("f64", 8), ("i128", 16)];
const LEVELS: [OptLevel; 4] = [OptLevel::O0, OptLevel::O1, OptLevel::O2, OptLevel::O3];

/// How the rounds of a loop go: whether there is one, the first value of the counter, its step, the test on the next one, and the number of the element.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Way {
    Up,
    Down,
    UpFromTheEnd,
}

impl Way {
    fn rows(self) -> [&'static str; 5] {
        match self {
            Way::Up => ["slt_int(0, _4)", "0", "1", "slt_int(%16, _4)", "add_int(%15, 0)"],
            Way::Down => ["sle_int(1, _4)", "_4", "-1", "sle_int(1, %16)", "sub_int(%15, 1)"],
            Way::UpFromTheEnd => ["sle_int(1, _4)", "1", "1", "sle_int(%16, _4)", "sub_int(_4, %15)"],
        }
    }
}

/// A function of the bytes there are, two places and a number of elements, which stores from the second place on, and so far behind.
fn function(name: &str, ty: &str, size: usize, way: Way, behind: i64) -> String {
    let [first, start, step, test, element] = way.rows();
    format!(
        "low function {name}(::i64, ::i64, ::i64, ::i64)::i64
1 ─ %1 = $(Expr(:foreigncall, :(:malloc), ptr, svec(i64), 0, :(:ccall), :(_1)))::ptr
└──      goto #2
2 ┄ %3 = φ (#1 => 0, #2 => %7)::i64
│   %4 = mul_int(%3, 40503)::i64
│   %5 = add_ptr(%1, %3)::ptr
│   store(%5, %4; offset = 0, region = raw, align = 1)
│   %7 = add_int(%3, 8)::i64
│   %8 = slt_int(%7, _1)::i8
└──      goto #3 if not %8 else #2
3 ─ %10 = {first}::i8
└──      goto #6 if not %10
4 ─      goto #5
5 ┄ %15 = φ (#4 => {start}, #5 => %16)::i64
│        safepoint()
│   %20 = {element}::i64
│   %21 = mul_int(%20, {size})::i64
│   %22 = add_int(_2, %21)::i64
│   %23 = add_int(_3, %21)::i64
│   %24 = add_ptr(%1, %22)::ptr
│   %25 = add_ptr(%1, %23)::ptr
│   %26 = load(%24; offset = 0, region = raw, align = 1)::{ty}
│        store(%25, %26; offset = {behind}, region = raw, align = 1)
│   %16 = add_int(%15, {step})::i64
│   %30 = {test}::i8
└──      goto #6 if not %30 else #5
6 ┄      goto #7
7 ┄ %41 = φ (#6 => 0, #7 => %47)::i64
│   %42 = φ (#6 => 0, #7 => %46)::i64
│   %43 = add_ptr(%1, %41)::ptr
│   %44 = load(%43; offset = 0, region = raw, align = 1)::i64
│   %45 = mul_int(%42, 31)::i64
│   %46 = xor_int(%45, %44)::i64
│   %47 = add_int(%41, 8)::i64
│   %48 = slt_int(%47, _1)::i8
└──      goto #8 if not %48 else #7
8 ─      $(Expr(:foreigncall, :(:free), Nothing, svec(ptr), 0, :(:ccall), :(%1)))
└──      return %46
end
"
    )
}

/// Whether the pipeline gives a loop to a routine that copies.
fn has_routine(module: &Module, func: Func) -> bool {
    let mut cx = brolga_opt::Cx::new(None);
    let options = brolga_opt::Options::default();
    let (func, _) = brolga_opt::optimize(module, func, OptLevel::O2, &options, &mut cx).unwrap();
    let moves = |op| match op {
        Op::MemCopy => true,
        Op::ForeignCall(f) => func.foreign(f).name.is_some_and(|n| module.cx.names.text(n) == "memmove"),
        _ => false,
    };
    func.blocks().flat_map(|b| func.block_insts(b)).any(|inst| moves(func.op(inst)))
}

/// Calls a function in the interpreter and in native code at each level.
fn check(program: &Program, engines: &[Engine], calls: &[String]) {
    let mut interpreted = Evaluator::interpreted(program);
    let mut native: Vec<Evaluator<'_>> = engines.iter().map(|e| Evaluator::native(program, e)).collect();
    for text in calls {
        let call = program.call(text).unwrap();
        let expected = interpreted.call(&call).unwrap();
        for (native, level) in native.iter_mut().zip(LEVELS) {
            assert_eq!(expected, native.call(&call).unwrap(), "{level:?}: {text}");
        }
    }
}

fn engines() -> Vec<Engine> {
    LEVELS
        .iter()
        .map(|&level| Engine::new(crate::doors::open(Options::new()).opt_level(level)).unwrap())
        .collect()
}

#[test]
fn copies_to_places_that_may_overlap_are_those_of_the_loop() {
    let (mut text, mut calls) = (String::new(), Vec::new());
    for (ty, size) in WIDTHS {
        for way in [Way::Up, Way::Down, Way::UpFromTheEnd] {
            let name = format!("{way:?}_{ty}").to_lowercase();
            text += &function(&name, ty, size, way, 0);
            let n = 70;
            let all = (n * size) as i64;
            for distance in
                [0, 1, -1, 7, -7, size as i64, -(size as i64), all - 1, 1 - all, all, -all, all + 8]
            {
                let from = all + 16;
                calls.push(format!("{name}({}, {from}, {}, {n})", 4 * all + 64, from + distance));
            }
            calls.push(format!("{name}(64, 8, 16, 1)"));
            calls.push(format!("{name}(64, 8, 16, 0)"));
        }
    }
    let program = Program::read("loops", text.as_bytes()).unwrap_or_else(|error| panic!("{error}\n{text}"));
    for (_, func) in program.module().funcs() {
        assert!(has_routine(program.module(), func.clone()), "{}", program.module().cx.names.text(func.name));
    }
    check(&program, &engines(), &calls);
}

#[test]
fn copies_at_a_known_distance_are_those_of_the_loop() {
    let (mut text, mut calls, mut with) = (String::new(), Vec::new(), Vec::new());
    for (ty, size) in WIDTHS {
        for way in [Way::Up, Way::Down] {
            let one = size as i64;
            for distance in BTreeSet::from([0, 1, -1, 7, -7, one, -one, 70 * one]) {
                let sign = if distance < 0 { "below" } else { "above" };
                let name = format!("{way:?}_{ty}_{sign}_{}", distance.abs()).to_lowercase();
                // One place for both.
                text += &function(&name, ty, size, way, distance).replace("add_int(_3,", "add_int(_2,");
                let from = 80 * size as i64 + 64;
                calls.push(format!("{name}({}, {from}, 0, 70)", 4 * from));
                calls.push(format!("{name}({}, {from}, 0, 90)", 4 * from));
                if way == Way::Up && distance <= 0 {
                    with.push(name);
                }
            }
        }
    }
    let program = Program::read("loops", text.as_bytes()).unwrap_or_else(|error| panic!("{error}\n{text}"));
    for (_, func) in program.module().funcs() {
        let name = program.module().cx.names.text(func.name);
        let far = name.ends_with(&format!("_{}", 70 * size_of_name(name)));
        assert_eq!(
            has_routine(program.module(), func.clone()),
            far || with.iter().any(|n| n == name),
            "{name}"
        );
    }
    check(&program, &engines(), &calls);
}

fn size_of_name(name: &str) -> usize {
    WIDTHS.iter().find(|(ty, _)| name.split('_').nth(1) == Some(ty)).map_or(0, |&(_, size)| size)
}

#[test]
fn copies_of_many_chunks_are_those_of_the_loop() {
    let text = function("asked", "i64", 8, Way::Up, 0)
        + &function("below", "i64", 8, Way::Up, -8).replace("add_int(_3,", "add_int(_2,")
        + &function("down", "i64", 8, Way::Down, 0);
    let program = Program::read("loops", text.as_bytes()).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let calls: Vec<String> = [
        "asked(400000, 8, 200000, 20000)",
        "asked(400000, 200000, 8, 20000)",
        "asked(400000, 64, 16, 20000)",
        "asked(400000, 16, 64, 20000)",
        "below(400000, 8, 0, 20000)",
        "below(400000, 8, 0, 8192)",
        "down(400000, 16, 64, 20000)",
        "down(400000, 16, 200000, 20000)",
    ]
    .map(str::to_owned)
    .into();
    check(&program, &engines(), &calls);
}

#[path = "support/doors.rs"]
mod doors;
