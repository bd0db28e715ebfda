//! Loops as front ends print them compute the same in the interpreter and as machine code of every level: every row of the loop table
//! of lengths from 0 to 70, with arrays that are too short, that are one and the same, and that overlap in one `Memory`.

#[path = "support/loops.rs"]
#[allow(dead_code, reason = "another test looks at the whole table")]
mod loops;

use brolga::{Engine, Evaluator, OptLevel, Options, Program};
use loops::{Container, Kernel, Row};

/// Short ones all, longer ones around the numbers of rounds that a trip may have.
const LENGTHS: [usize; 16] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 16, 17, 33, 64, 70];
/// One more length of the others, another one for each row.
const FURTHER: std::ops::RangeInclusive<usize> = 10..=69;
/// A collection at every safepoint takes its time.
const FEW_LENGTHS: [usize; 6] = [0, 1, 2, 5, 9, 34];

/// An array as text.
fn array(row: Row, length: usize, seed: i64) -> String {
    if length == 0 {
        return format!("{}[]", row.kernel.element());
    }
    let number = |n: usize| {
        let n = (n as i64 * 7919 + seed * 31) % 101 - 50;
        match row.kernel.element() {
            "Int64" => format!("{n}"),
            _ => format!("{n}.5"),
        }
    };
    format!("[{}]", (0..length).map(number).collect::<Vec<_>>().join(", "))
}

/// The calls of a row.
fn calls(row: Row, lengths: &[usize]) -> Vec<String> {
    let name = row.name();
    let k = if row.kernel.element() == "Int64" { "7" } else { "1.25" };
    let mut calls = Vec::new();
    for (n, length) in lengths.iter().copied().enumerate() {
        let beyond = if row.kernel == Kernel::Stencil { 2 } else { 0 };
        let a = array(row, length, n as i64);
        calls.push(format!("try_{name}({a}, {}, {k})", array(row, length + beyond, 5)));
        if row.checked {
            calls.push(format!("try_{name}({a}, {}, {k})", array(row, length / 2, 5)));
            calls.push(format!(
                "try_{name}({a}, {}, {k})",
                array(row, (length + beyond).saturating_sub(1), 5)
            ));
        }
        if row.checked || beyond == 0 {
            calls.push(format!("same_{name}({a}, {k})"));
        }
        if row.container == Container::Vector {
            for distance in [1, 2, 5].into_iter().filter(|d| d + beyond < length) {
                calls.push(format!("shifted_{name}({a}, {distance}, {k})"));
            }
        }
    }
    calls
}

fn agree(levels: &[OptLevel], lengths: &[usize], stress: bool) {
    let rows = || loops::rows().into_iter();
    let text: String = rows().map(|row| row.function() + &row.drivers()).collect();
    let program = Program::read("loops", text.as_bytes()).unwrap_or_else(|error| panic!("{error}"));
    let engines: Vec<Engine> = levels
        .iter()
        .map(|&level| {
            Engine::new(crate::doors::open(Options::new()).opt_level(level).gc_stress(stress)).unwrap()
        })
        .collect();
    let mut interpreted = Evaluator::interpreted(&program);
    let mut native: Vec<Evaluator<'_>> = engines.iter().map(|e| Evaluator::native(&program, e)).collect();
    let further = FURTHER.cycle().step_by(7);
    let all = |(row, length): (Row, usize)| calls(row, &[lengths, &[length]].concat());
    for call in rows().zip(further).flat_map(all) {
        let parsed = program.call(&call).unwrap_or_else(|error| panic!("{call}: {error}"));
        let expected = interpreted.call(&parsed).unwrap_or_else(|error| panic!("{call}: {error:?}"));
        for (native, level) in native.iter_mut().zip(levels) {
            let got = native.call(&parsed).unwrap_or_else(|error| panic!("{level:?}: {call}: {error:?}"));
            // The sums of a marked loop may be taken in another order; these numbers are small enough to be exact in any.
            assert_eq!(expected, got, "{level:?}: {call}");
        }
    }
}

#[test]
fn every_row_computes_the_same_at_every_level() {
    agree(&[OptLevel::O0, OptLevel::O2, OptLevel::O3], &LENGTHS, false);
}

#[test]
#[ignore = "takes minutes in a development build"]
fn every_row_computes_the_same_for_every_length() {
    agree(&OptLevel::ALL, &(0..=70).collect::<Vec<_>>(), false);
}

#[test]
fn every_row_computes_the_same_with_collections_at_every_safepoint() {
    agree(&[OptLevel::O3], &FEW_LENGTHS, true);
}

#[path = "support/doors.rs"]
mod doors;
