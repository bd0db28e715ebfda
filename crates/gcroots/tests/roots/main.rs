//! Placement against the oracle: random functions and the text tests, run with a collection at every
//! safepoint; and a check that the oracle detects a missing store of a root.

mod cases;
mod oracle;
mod placed;
mod programs;
mod random;
#[path = "../support/mod.rs"]
mod support;

use brolga_gcroots::{Error, Lowering, Options, Report, place};
use brolga_ir::heap_abi::HeapAbi;
use brolga_ir::op::Region;
use brolga_ir::text::show_func;
use brolga_ir::verify::verify_func;
use brolga_ir::{Context, Func, Level, Op, Type};
use cases::cases;
use cranelift_entity::EntityRef;
use oracle::{Removed, Watched, Wrong};
use random::{Random, Shape, function};
use std::collections::BTreeSet;
use support::{HEAP, read_module};

/// The combinations of options that change how frames are built.
fn variants() -> [Options; 4] {
    let usual = Options::new(HEAP);
    [
        usual,
        Options { shrink_wrap: false, null_dead: false, ..usual },
        Options { lowering: Lowering::Maps, ..usual },
        Options { lowering: Lowering::Maps, budget: 0, ..usual },
    ]
}

fn with_roots(cx: &Context, func: &Func, options: &Options, what: &str) -> (Func, Report) {
    let mut placed = func.clone();
    let report =
        place(&mut placed, cx, options).unwrap_or_else(|e| panic!("{what}: {e:?}\n{}", show_func(cx, func)));
    if let Err(broken) = verify_func(cx, &placed) {
        panic!("{what}: {broken:?}\n{}\n{}", show_func(cx, func), show_func(cx, &placed));
    }
    (placed, report)
}

fn complain(cx: &Context, func: &Func, placed: &Func, wrong: &Wrong, what: &str) -> ! {
    let stands = placed.inst_block(wrong.at).map(|b| 1 + placed.blocks().position(|o| o == b).unwrap_or(0));
    panic!(
        "{what}: {} at {:?} {:?} in block {stands:?}\n{}\n{}",
        wrong.what,
        wrong.at,
        placed.op(wrong.at),
        show_func(cx, func),
        show_func(cx, placed)
    );
}

const SHAPES: [Shape; 4] = [
    Shape { blocks: 1, ops: 12, exceptions: false, plain: false },
    Shape { blocks: 6, ops: 4, exceptions: false, plain: false },
    Shape { blocks: 12, ops: 6, exceptions: false, plain: false },
    Shape { blocks: 5, ops: 6, exceptions: true, plain: false },
];

#[test]
fn values_used_after_a_safepoint_are_rooted() {
    for seed in 1..1500 {
        let shape = SHAPES[seed % SHAPES.len()];
        let mut random = Random::new(seed as u64);
        let (cx, func) = function(&mut random, shape);
        let what = format!("seed {seed}");
        if let Err(broken) = verify_func(&cx, &func) {
            panic!("{what}: the generator is wrong: {broken:?}\n{}", show_func(&cx, &func));
        }
        for options in variants() {
            let (placed, report) = with_roots(&cx, &func, &options, &what);
            if let Err(wrong) = oracle::run(&func, &placed, report.lowering, 40, &mut random) {
                complain(&cx, &func, &placed, &wrong, &what);
            }
        }
    }
}

#[test]
fn the_text_tests_keep_their_roots() {
    for case in cases() {
        let module = read_module(&case.name, &case.input);
        for (_, func) in module.funcs() {
            let mut random = Random::new(7);
            for options in variants() {
                let mut placed = func.clone();
                let Ok(report) = place(&mut placed, &module.cx, &options) else { continue };
                if let Err(wrong) = oracle::run(func, &placed, report.lowering, 300, &mut random) {
                    complain(&module.cx, func, &placed, &wrong, &case.name);
                }
            }
        }
    }
}

#[test]
fn lowered_programs_keep_their_roots() {
    let mut count = 0;
    for programs::Lowered { file, level, what, cx, func } in programs::lowered() {
        let what = format!("{file} at O{}: {what}", level as u8);
        let mut random = Random::new(5);
        for options in variants() {
            let (placed, report) = with_roots(&cx, &func, &options, &what);
            if let Err(wrong) = oracle::run(&func, &placed, report.lowering, 100, &mut random) {
                complain(&cx, &func, &placed, &wrong, &what);
            }
            count += report.stores;
        }
    }
    assert!(count > 100, "{count} stores");
}

/// The removable parts of a placed function: stores of roots into words of the frame, and these words in the
/// maps of safepoints. Neither the words of tracked slots, which are in every map, nor argument words, which
/// may by chance still hold the operand of an earlier call.
fn removable(original: &Func, placed: &Func, lowering: Lowering) -> Vec<Removed> {
    let insts = || original.blocks().flat_map(|b| original.block_insts(b));
    let calls = insts().filter(|&i| matches!(original.op(i), Op::CallArgs(_)));
    let arguments = calls.map(|i| original.args(i).len() as i32).max().unwrap_or(0);
    let header = if lowering == Lowering::Linked { 16 } else { 0 };
    let mut words = BTreeSet::new();
    let mut all = Vec::new();
    let all_insts = || placed.blocks().flat_map(|b| placed.block_insts(b));
    for inst in all_insts() {
        let Op::Store(access) = placed.op(inst) else { continue };
        let value = placed.args(inst)[1];
        if inst.index() >= original.inst_count()
            && access.region == Region::Frame
            && access.offset >= header + 8 * arguments
            && placed.ty(value) == Type::TRACKED
            && placed.as_const(value).is_none()
        {
            words.insert(access.offset as u32);
            all.push(Removed::Store(inst));
        }
    }
    for inst in all_insts() {
        let offsets = placed.root_map(inst).map_or(&[][..], |map| &map.offsets);
        all.extend(offsets.iter().filter(|o| words.contains(o)).map(|&o| Removed::Entry(inst, o)));
    }
    all
}

/// Removals that no run detects.
fn unmissed(
    func: &Func,
    placed: &Func,
    lowering: Lowering,
    random: &mut Random,
) -> (usize, Vec<(Removed, Watched)>) {
    let all = removable(func, placed, lowering);
    let unnoticed = |&removed: &Removed| {
        let watched = oracle::search(func, placed, lowering, removed, 600, random).ok()?;
        Some((removed, watched))
    };
    (all.len(), all.iter().filter_map(unnoticed).collect())
}

const LOWERINGS: [Lowering; 2] = [Lowering::Linked, Lowering::Maps];

#[test]
fn every_root_in_the_text_tests_is_missed() {
    for case in cases() {
        let module = read_module(&case.name, &case.input);
        for (_, func) in module.funcs() {
            for lowering in LOWERINGS {
                // Without a budget, roots are stored that no safepoint needs.
                let options = Options { lowering, budget: Options::new(HEAP).budget, ..case.options };
                let mut placed = func.clone();
                if place(&mut placed, &module.cx, &options).is_err() {
                    continue;
                }
                let (_, unnoticed) = unmissed(func, &placed, lowering, &mut Random::new(11));
                if let Some((removed, _)) = unnoticed.first() {
                    let (Removed::Store(at) | Removed::Entry(at, _)) = *removed;
                    let wrong = Wrong { what: format!("this may be left out: {removed:?}"), at };
                    complain(&module.cx, func, &placed, &wrong, &case.name);
                }
            }
        }
    }
}

/// In random functions each missing root is detected, unless another word of the frame held the object at
/// each collection: an object may have two names.
#[test]
fn roots_in_random_functions_are_missed() {
    let (mut all, mut two_names) = (0, 0);
    for seed in 1..100 {
        let shape = Shape { plain: true, ..SHAPES[seed % SHAPES.len()] };
        let mut random = Random::new(seed as u64);
        let (cx, func) = function(&mut random, shape);
        for lowering in LOWERINGS {
            let options = Options { lowering, ..Options::new(HEAP) };
            let (placed, _) = with_roots(&cx, &func, &options, "a random function");
            let (count, unnoticed) = unmissed(&func, &placed, lowering, &mut random);
            all += count;
            for (removed, watched) in unnoticed {
                let (Removed::Store(at) | Removed::Entry(at, _)) = removed;
                if watched.met == 0 || watched.lost > 0 {
                    let wrong = Wrong { what: format!("{removed:?} is not missed: {watched:?}"), at };
                    complain(&cx, &func, &placed, &wrong, &format!("seed {seed}"));
                }
                two_names += 1;
            }
        }
    }
    assert!(all > 500 && two_names * 10 < all, "{two_names} of {all}");
}

#[test]
fn placement_refuses_functions_that_are_not_low() {
    let (cx, mut func) = function(&mut Random::new(1), SHAPES[0]);
    let before = show_func(&cx, &func).to_string();
    func.level = Level::High;
    assert_eq!(place(&mut func, &cx, &Options::new(HEAP)), Err(Error::NotLow));
    func.level = Level::Low;
    assert_eq!(show_func(&cx, &func).to_string(), before);
}

/// The heap may move everything at every safepoint.
fn on_a_moving_heap(cx: &Context, func: &Func, random: &mut Random, what: &str) -> bool {
    let heap = HeapAbi { moving: true, ..HEAP };
    for lowering in LOWERINGS {
        let options = Options { lowering, ..Options::new(heap) };
        let mut placed = func.clone();
        match place(&mut placed, cx, &options) {
            Err(Error::Moving { .. }) => return false,
            Err(other) => panic!("{what}: {other:?}"),
            Ok(_) => {}
        }
        if let Err(broken) = verify_func(cx, &placed) {
            panic!("{what}: {broken:?}\n{}\n{}", show_func(cx, func), show_func(cx, &placed));
        }
        if let Err(wrong) = oracle::run_moving(func, &placed, lowering, 60, random) {
            complain(cx, func, &placed, &wrong, what);
        }
    }
    true
}

#[test]
fn moved_objects_are_loaded_again() {
    let (mut taken, mut refused) = (0, 0);
    for seed in 1..1000 {
        let mut random = Random::new(seed as u64);
        let (cx, func) = function(&mut random, SHAPES[seed % SHAPES.len()]);
        match on_a_moving_heap(&cx, &func, &mut random, &format!("seed {seed}")) {
            true => taken += 1,
            false => refused += 1,
        }
    }
    assert!(taken > 300, "{refused} of {} are refused", taken + refused);
}
