//! Programs with objects keep their meaning in native code, at all levels and with collections at any time.
//!
//! The programs are the corpus, the examples and those in `tests/objects/`; their own checks define their meaning. Those in `tests/checked/` are attacks by
//! programs without doors.

#[path = "support/programs.rs"]
mod programs;

use std::thread;

use brolga::ir::builtin::Builtin;
use brolga::options::Roots;
use brolga::{Engine, Evaluator, OptLevel, Options, Program, Verdict};
use programs::programs;

/// The failed checks of the programs, and how many checks there are.
fn failures(
    programs: &[(String, Program)],
    level: OptLevel,
    roots: Roots,
    stress: bool,
) -> (Vec<String>, usize) {
    let mut failed = Vec::new();
    let mut count = 0;
    for (name, program) in programs {
        let options = crate::doors::open(Options::new()).opt_level(level).roots(roots).gc_stress(stress);
        let engine = Engine::new(options).expect("an engine");
        let mut evaluator = Evaluator::native(program, &engine);
        for check in program.checks() {
            count += 1;
            let verdict = evaluator.check(check);
            if verdict != Verdict::Passed {
                let text = program.source().slice(check.span).trim();
                failed.push(format!("{name} at {level:?} with {roots:?} roots: {text}: {verdict:?}"));
            }
        }
    }
    (failed, count)
}

fn hold(programs: &[(String, Program)], levels: &[OptLevel], stress: bool, at_least: usize) {
    for &level in levels {
        for roots in [Roots::Linked, Roots::Maps] {
            let (failed, count) = failures(programs, level, roots, stress);
            assert!(failed.is_empty(), "{}", failed.join("\n"));
            assert!(count >= at_least, "{count} checks");
        }
    }
}

const LEVELS: [OptLevel; 3] = [OptLevel::O0, OptLevel::O2, OptLevel::O3];

#[test]
fn the_corpus_is_native() {
    hold(&programs(&["tests/corpus"]), &LEVELS, false, 150);
}

#[test]
fn the_examples_are_native() {
    hold(&programs(&["examples", "tests/objects"]), &[OptLevel::O0, OptLevel::O2], false, 50);
}

#[test]
fn objects_that_are_used_survive_collections_at_every_safepoint() {
    hold(&programs(&["tests/corpus", "tests/objects"]), &[OptLevel::O0, OptLevel::O2], true, 170);
}

/// The failed checks of programs without doors, by one evaluator for each.
fn failures_of_checked<'p>(
    programs: &'p [(String, Program)],
    how: &str,
    evaluator: impl Fn(&'p Program) -> Evaluator<'p>,
) -> Vec<String> {
    let mut failed = Vec::new();
    for (name, program) in programs {
        let mut evaluator = evaluator(program);
        for check in program.checks() {
            let verdict = evaluator.check(check);
            if verdict != Verdict::Passed {
                let text = program.source().slice(check.span).trim();
                failed.push(format!("{name} {how}: {text}: {verdict:?}"));
            }
        }
    }
    failed
}

/// Attacks: with closed doors no operand turns a check off, and no type that a row asserts is believed.
#[test]
fn programs_without_doors_have_one_outcome() {
    let programs = programs(&["tests/checked"]);
    let count: usize = programs.iter().map(|(_, program)| program.checks().len()).sum();
    assert!(count >= 90, "{count} checks");
    let interpreted = |program| Evaluator::interpreted_checked(program).expect("no doors");
    let mut failed = failures_of_checked(&programs, "interpreted", interpreted);
    for level in [OptLevel::O0, OptLevel::O1, OptLevel::O2, OptLevel::O3] {
        for (roots, stress) in [(Roots::Linked, false), (Roots::Maps, false), (Roots::Maps, true)] {
            let engine = Engine::new(Options::new().opt_level(level).roots(roots).gc_stress(stress));
            let engine = engine.expect("an engine");
            let how = format!("at {level:?} with {roots:?} roots, stress {stress}");
            failed.extend(failures_of_checked(&programs, &how, |p| Evaluator::native(p, &engine)));
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

/// A program that calls each builtin which checks bounds out of bounds, by name and as a value, without the check.
fn unchecked_accesses() -> String {
    let before = "1 ─ %1 = Core.memorynew(Memory{Int64}, 0)::Memory{Int64}
│   %2 = Core.memoryrefnew(%1)::MemoryRef{Int64}
│   %3 = Core.tuple(x, x)::Tuple{Int64, Int64}
│   %4 = $(Expr(:foreigncall, :(:jl_alloc_array_1d), Vector{Int64}, svec(Any, Int64), 0, :(:ccall), Vector{Int64}, 2))::Vector{Int64}
";
    let mut text = String::new();
    let checking = Builtin::ALL.iter().filter(|builtin| !builtin.bounds_operands(usize::MAX).is_empty());
    for (n, builtin) in checking.enumerate() {
        let args = match builtin {
            Builtin::Getfield => "%3, x, false",
            Builtin::Memoryrefnew => "%2, x, false",
            Builtin::Memoryrefget | Builtin::MemoryrefIsassigned => "%2, :not_atomic, false",
            Builtin::Memoryrefset | Builtin::Memoryrefswap => "%2, x, :not_atomic, false",
            Builtin::Memoryrefmodify => "%2, Base.:+, x, :not_atomic, false",
            Builtin::Memoryrefreplace => "%2, x, x, :not_atomic, :not_atomic, false",
            Builtin::Memoryrefsetonce => "%2, x, :not_atomic, :not_atomic, false",
            Builtin::Arrayref => "false, %4, x",
            Builtin::Arrayset => "false, %4, x, x",
            new => panic!("the operands of {new} that are out of bounds"),
        };
        let outcome = |form: &str| match builtin {
            Builtin::MemoryrefIsassigned => format!("# check: {form}{n}(3) == false\n"),
            _ => format!("# throws: {form}{n}(3) BoundsError\n"),
        };
        text += &format!("{}{}", outcome("named"), outcome("value"));
        let calls = [
            ("named", format!("Core.{builtin}({args})")),
            ("value", format!("Core.invokelatest(Core.{builtin}, {args})")),
        ];
        for (form, call) in calls {
            text += &format!(
                "function {form}{n}(x::Int64)::Any\n{before}│   %5 = {call}::Any\n└──      return %5\nend\n"
            );
        }
    }
    text
}

#[test]
fn each_builtin_checks_bounds_in_each_form() {
    let program = Program::read("accesses.jlir", unchecked_accesses().as_bytes()).expect("a program");
    let programs = [("accesses".to_owned(), program)];
    let interpreted = |program| Evaluator::interpreted_checked(program).expect("no doors");
    let mut failed = failures_of_checked(&programs, "interpreted", interpreted);
    for level in [OptLevel::O0, OptLevel::O1, OptLevel::O2, OptLevel::O3] {
        let engine = Engine::new(Options::new().opt_level(level)).expect("an engine");
        failed.extend(failures_of_checked(&programs, &level.to_string(), |p| Evaluator::native(p, &engine)));
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

/// With open doors a program may make a reference that is 8 bytes off an element of 24. The run time does not take it for one to that element.
#[test]
fn a_reference_to_the_middle_of_an_element_is_refused_by_the_run_time() {
    let text = "# throws: f(768614336404564652) BoundsError
# check: f(2) == 5
struct Three
    a::Any
    b::Int64
    c::Int64
end
function f(x::Int64)::Any
1 ─ %1 = Core.memorynew(Memory{Three}, 2)::Memory{Three}
│   %2 = Core.memoryrefnew(%1, 2, true)::MemoryRef{Three}
│   %3 = %new(Three, 5, 6, 7)::Three
│        Core.memoryrefset!(%2, %3, :not_atomic, true)::Three
│   %5 = Core.memoryrefnew(%1, x, false)::MemoryRef{Three}
│   %6 = Core.invokelatest(Core.memoryrefget, %5, :not_atomic, false)::Three
│   %7 = Base.getfield(%6, :a)::Any
└──      return %7
end
";
    let programs = [("text".to_owned(), Program::read("text.jlir", text.as_bytes()).expect("a program"))];
    for level in [OptLevel::O0, OptLevel::O1, OptLevel::O2, OptLevel::O3] {
        let (failed, _) = failures(&programs, level, Roots::Maps, false);
        assert!(failed.is_empty(), "{}", failed.join("\n"));
    }
}

/// Both give the same outcome of a call, down to the names in an exception.
#[test]
fn exceptions_say_the_same_natively() {
    let wanted = ["claims", "type_errors"];
    let programs = programs(&["tests/objects"]);
    let mut count = 0;
    for (name, program) in programs.iter().filter(|(name, _)| wanted.iter().any(|w| name.contains(w))) {
        let said = |mut evaluator: Evaluator<'_>| -> Vec<String> {
            let calls = program.checks().iter().map(|check| match evaluator.call(&check.call) {
                Ok(value) => value,
                Err(failure) => failure.to_string(),
            });
            calls.collect()
        };
        let expected = said(Evaluator::interpreted(program));
        for level in [OptLevel::O0, OptLevel::O1, OptLevel::O2, OptLevel::O3] {
            let engine = Engine::new(crate::doors::open(Options::new()).opt_level(level)).expect("an engine");
            let found = said(Evaluator::native(program, &engine));
            for ((check, expected), found) in program.checks().iter().zip(&expected).zip(&found) {
                let text = program.source().slice(check.span).trim();
                assert_eq!(found, expected, "{name} at {level:?}: {text}");
                count += 1;
            }
        }
    }
    assert!(count >= 400, "{count} calls");
}

/// How many examples each of the threads that share a heap calls.
const TURNS: usize = if cfg!(feature = "gc-stress") { 4 } else { 40 };

/// Four threads allocate, dispatch, throw and catch in one heap, and collect under each other.
#[test]
fn threads_share_a_heap() {
    for roots in [Roots::Linked, Roots::Maps] {
        share_a_heap(roots);
    }
}

fn share_a_heap(roots: Roots) {
    let programs = programs(&["examples"]);
    let engine = Engine::new(crate::doors::open(Options::new()).roots(roots)).expect("an engine");
    let units: Vec<_> = [
        ("binary_trees.jlir", (8, 0), 25_774.0),
        ("shapes.jlir", (256, 8), 804.881_490_572_574_4),
        ("exceptions.jlir", (3_000, 1), 0.0),
        ("sort_cmp.jlir", (100, 4), 4_080_224_364.0),
    ]
    .into_iter()
    .map(|(name, args, value)| {
        let (_, program) = programs.iter().find(|(known, _)| known == name).expect("an example");
        let unit = engine.compile(program).expect("a unit");
        let run = unit.func::<(i64, i64), f64>("run").expect("a function");
        let wanted = run.call(args).expect("a value");
        assert!(value == 0.0 || wanted == value, "{name}: {wanted}");
        (run, args, wanted)
    })
    .collect();
    thread::scope(|scope| {
        for first in 0..4 {
            let units = &units;
            scope.spawn(move || {
                for (run, args, wanted) in units.iter().cycle().skip(first).take(TURNS) {
                    assert_eq!(run.call(*args), Ok(*wanted));
                }
            });
        }
    });
    engine.runtime().enter(|scope| scope.collect()).expect("a scope");
    assert_eq!(engine.runtime().heap().stats().live_objects, 0);
}

#[path = "support/doors.rs"]
mod doors;
