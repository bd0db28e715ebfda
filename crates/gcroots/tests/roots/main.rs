//! Placement against the oracle: random functions and the text tests, run with a collection at every safepoint; and whether the
//! oracle notices when a store of a root is missing.

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
use brolga_ir::{Const, Context, Func, Inst, Level, Op, Type};
use cases::cases;
use cranelift_entity::EntityRef;
use oracle::Wrong;
use random::{Random, Shape, function};
use support::{HEAP, read_module};

/// All that changes how frames are built.
fn variants() -> [Options; 3] {
    let usual = Options::new(HEAP);
    [
        usual,
        Options { shrink_wrap: false, null_dead: false, ..usual },
        Options { lowering: Lowering::Maps, ..usual },
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
fn what_is_used_after_a_safepoint_is_rooted() {
    for seed in 1..1500 {
        let shape = SHAPES[seed % SHAPES.len()];
        let mut random = Random::new(seed as u64);
        let (cx, func) = function(&mut random, shape);
        let what = format!("seed {seed}");
        if let Err(broken) = verify_func(&cx, &func) {
            panic!("{what}: the generator is wrong: {broken:?}\n{}", show_func(&cx, &func));
        }
        for options in variants() {
            let (placed, _) = with_roots(&cx, &func, &options, &what);
            if let Err(wrong) = oracle::run(&func, &placed, options.lowering, 40, &mut random) {
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
                if place(&mut placed, &module.cx, &options).is_err() {
                    continue;
                }
                if let Err(wrong) = oracle::run(func, &placed, options.lowering, 300, &mut random) {
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
            if let Err(wrong) = oracle::run(&func, &placed, options.lowering, 100, &mut random) {
                complain(&cx, &func, &placed, &wrong, &what);
            }
            count += report.stores;
        }
    }
    assert!(count > 100, "{count} stores");
}

/// The stores of roots in a placed function: into words of the frame, of something that is not null. Argument words may hold
/// by chance what a call before put there.
fn root_stores(original: &Func, placed: &Func) -> Vec<Inst> {
    let insts = || original.blocks().flat_map(|b| original.block_insts(b));
    let calls = insts().filter(|&i| matches!(original.op(i), Op::CallArgs(_)));
    let arguments = calls.map(|i| original.args(i).len() as i32).max().unwrap_or(0);
    let is_root_store = |&inst: &Inst| {
        let Op::Store(access) = placed.op(inst) else { return false };
        let value = placed.args(inst)[1];
        inst.index() >= original.inst_count()
            && access.region == Region::Frame
            && access.offset >= 16 + 8 * arguments
            && placed.ty(value) == Type::TRACKED
            && placed.as_const(value).is_none()
    };
    placed.blocks().flat_map(|b| placed.block_insts(b)).filter(is_root_store).collect()
}

/// How many stores there are, and how many of them nobody misses.
fn missed(func: &Func, placed: &Func, random: &mut Random) -> (usize, Vec<Inst>) {
    let stores = root_stores(func, placed);
    // Null instead of the root, or else what was in the word before may keep the object alive by chance.
    let unnoticed = |&store: &Inst| {
        let mut without = placed.clone();
        let null = without.constant(Const::Bits { ty: Type::TRACKED, bits: 0 });
        without.args_mut(store)[1] = null;
        oracle::run(func, &without, Lowering::Linked, 1500, random).is_ok()
    };
    (stores.len(), stores.iter().copied().filter(unnoticed).collect())
}

#[test]
fn every_store_in_the_text_tests_is_missed() {
    for case in cases() {
        let module = read_module(&case.name, &case.input);
        for (_, func) in module.funcs() {
            let options = Options { lowering: Lowering::Linked, ..case.options };
            let mut placed = func.clone();
            if place(&mut placed, &module.cx, &options).is_err() {
                continue;
            }
            let (_, unnoticed) = missed(func, &placed, &mut Random::new(11));
            if let Some(&store) = unnoticed.first() {
                let wrong = Wrong { what: "this store may be left out".to_owned(), at: store };
                complain(&module.cx, func, &placed, &wrong, &case.name);
            }
        }
    }
}

/// In these functions a missing root shows, mostly: an object may have two names, and a path on which it matters may end before
/// it does, in a loop without end.
#[test]
fn stores_in_random_functions_are_missed() {
    let (mut stores, mut unnoticed) = (0, 0);
    for seed in 1..200 {
        let shape = Shape { plain: true, ..SHAPES[seed % SHAPES.len()] };
        let mut random = Random::new(seed as u64);
        let (cx, func) = function(&mut random, shape);
        let (placed, _) = with_roots(&cx, &func, &Options::new(HEAP), "a random function");
        let (all, silent) = missed(&func, &placed, &mut random);
        stores += all;
        unnoticed += silent.len();
    }
    assert!(stores > 300 && unnoticed * 10 < stores, "{unnoticed} of {stores} stores are not missed");
}

#[test]
fn what_placement_is_not_for_is_refused() {
    let (cx, mut func) = function(&mut Random::new(1), SHAPES[0]);
    let before = show_func(&cx, &func).to_string();
    let moving = Options::new(HeapAbi { moving: true, ..HEAP });
    let dirty = Options::new(HeapAbi { zeroed: false, ..HEAP });
    assert_eq!(place(&mut func, &cx, &moving), Err(Error::Moving));
    assert_eq!(place(&mut func, &cx, &dirty), Err(Error::NotZeroed));
    func.level = Level::High;
    assert_eq!(place(&mut func, &cx, &Options::new(HEAP)), Err(Error::NotLow));
    func.level = Level::Low;
    assert_eq!(show_func(&cx, &func).to_string(), before);
}
