//! The cost of placement per instruction, and its gain over a placement without liveness.
//!
//! ```text
//! cargo bench -p brolga-gcroots
//! ```
//!
//! The first table has nanoseconds of processor time per instruction, for functions of 100 to 100,000
//! instructions; a rising row shows a cost that is not linear. The second compares words and stores with a
//! placement that assigns each tracked value its own word and stores it at its definition; the third does the
//! same for the programs of the corpus and the examples that have objects, at O2. The last line is a function
//! of 50,000 blocks.
//!
//! | shape | difficulty |
//! |---|---|
//! | straight | one block, every call is a safepoint, each value lives for three calls |
//! | chain | the same with a block for each call |
//! | diamonds | a φ of objects after each branch, one side throws |
//! | loops | a loop in each step that uses a value from before it |
//! | long | 32 values that live from the beginning to the end |
//! | lists | allocations, barriers, loads from immutable fields |
//! | regions | one block with many overlapping preserved regions |
//! | wide | one call with all earlier loads as operands |
//! | doomed | in each step a path to a throw with many uses |
//! | last | one block, and every object is used at its end |
//! | far | the same with a block for each object |

#[path = "../../../benches/kernels/clock.rs"]
mod clock;
#[path = "../tests/roots/programs.rs"]
mod programs;
#[path = "../tests/support/mod.rs"]
mod support;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use brolga_gcroots::{Lowering, Options, Report, place};
use brolga_ir::cursor::Cursor;
use brolga_ir::func::{CalleeData, Param};
use brolga_ir::op::{Access, Region};
use brolga_opt::OptLevel;
use clock::cpu_seconds;
use support::HEAP;

use brolga_ir::{Block, Callee, Context, Func, Level, Op, RuntimeFn, Signature, Type, Value};

const FIELD: Access = Access { offset: 0, region: Region::Field, align_log2: 3 };

/// A function under construction.
struct Maker<'a> {
    at: Cursor<'a>,
    cx: &'a Context,
    make: Callee,
    uses: Callee,
    flag: Value,
    /// The most recent values.
    recent: Vec<Value>,
    /// The open regions.
    begun: VecDeque<Value>,
}

/// See the table above.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Shape {
    Straight,
    Chain,
    Diamonds,
    Loops,
    Long,
    Lists,
    Regions,
    Wide,
    Doomed,
    Last,
    Far,
}

impl Maker<'_> {
    fn step(&mut self, shape: Shape) {
        match shape {
            Shape::Straight => self.straight(),
            Shape::Chain => self.chain(),
            Shape::Diamonds => self.diamonds(),
            Shape::Loops => self.loops(),
            Shape::Long => self.long(),
            Shape::Lists => self.lists(),
            Shape::Regions => self.regions(),
            Shape::Wide => self.wide(),
            Shape::Doomed => self.doomed(),
            Shape::Last | Shape::Far => self.last(shape),
        }
    }

    fn back(&self, by: usize) -> Value {
        self.recent[self.recent.len().saturating_sub(by + 1)]
    }

    fn make(&mut self) -> Value {
        let value = self.at.ins_value(Op::CallSymbol(self.make), &[], Type::TRACKED);
        self.recent.push(value);
        value
    }

    fn use_one(&mut self, value: Value) {
        self.at.ins(Op::CallSymbol(self.uses), &[value], &[]);
    }

    fn next_block(&mut self) -> Block {
        let next = self.at.func.make_block();
        self.at.func.append_block(next);
        next
    }

    fn straight(&mut self) {
        self.make();
        let old = self.back(2);
        self.use_one(old);
    }

    fn chain(&mut self) {
        self.straight();
        let next = self.next_block();
        self.at.goto(next);
        self.at.at_bottom(next);
    }

    fn diamonds(&mut self) {
        let above = self.make();
        let before = self.at.block().expect("a block");
        let [left, fails, join] = [self.next_block(), self.next_block(), self.next_block()];
        self.at.branch(self.flag, left, join);
        self.at.at_bottom(left);
        let made = self.make();
        self.at.branch(self.flag, join, fails);
        self.at.at_bottom(fails);
        let boxed = self.make();
        self.use_one(above);
        self.at.ins(Op::CallRuntime(RuntimeFn::Throw), &[boxed], &[]);
        self.at.unreachable();
        self.recent.pop();
        self.at.at_bottom(join);
        let phi = self.at.phi(Type::TRACKED);
        let phi_inst = self.at.func.def_inst(phi).expect("a φ");
        self.at.func.add_phi_edge(phi_inst, before, above);
        self.at.func.add_phi_edge(phi_inst, left, made);
        self.at.at_bottom(join);
        // A value defined on one side is not available after the join.
        self.recent.pop();
        self.recent.push(phi);
    }

    fn loops(&mut self) {
        let above = self.make();
        let [head, rest] = [self.next_block(), self.next_block()];
        self.at.goto(head);
        self.at.at_bottom(head);
        self.use_one(above);
        self.at.branch(self.flag, head, rest);
        self.at.at_bottom(rest);
    }

    fn regions(&mut self) {
        let kept = self.make();
        let token = self.at.ins_value(Op::GcPreserveBegin, &[kept], Type::TOKEN);
        self.begun.push_back(token);
        self.use_one(kept);
        if self.begun.len() > 4
            && let Some(token) = self.begun.pop_front()
        {
            self.at.ins(Op::GcPreserveEnd, &[token], &[]);
        }
    }

    fn wide(&mut self) {
        let from = self.recent[0];
        let offset = 8 * (self.recent.len() as i32 - 1);
        let value = self.at.ins_value(Op::Load(Access { offset, ..FIELD }), &[from], Type::TRACKED);
        self.recent.push(value);
    }

    fn doomed(&mut self) {
        let above = self.make();
        let [fails, rest] = [self.next_block(), self.next_block()];
        self.at.branch(self.flag, rest, fails);
        self.at.at_bottom(fails);
        let boxed = self.at.ins_value(Op::CallSymbol(self.make), &[], Type::TRACKED);
        for by in 0..8 {
            self.use_one(self.back(by));
        }
        self.at.ins(Op::CallRuntime(RuntimeFn::Throw), &[boxed], &[]);
        self.at.unreachable();
        self.at.at_bottom(rest);
        self.use_one(above);
    }

    fn last(&mut self, shape: Shape) {
        let made = self.make();
        self.use_one(made);
        if shape == Shape::Far {
            let next = self.next_block();
            self.at.goto(next);
            self.at.at_bottom(next);
        }
    }

    fn long(&mut self) {
        let value = if self.recent.len() < 32 { self.make() } else { self.recent[0] };
        self.use_one(value);
    }

    fn lists(&mut self) {
        let next = self.back(0);
        let ty = self.cx.types.vector(Type::INT64).expect("a type");
        let node = self.cx.types.tuple(&[ty]).expect("a type");
        let object = self.at.ins_value(Op::Alloc(node), &[], Type::TRACKED);
        self.at.ins(Op::Store(FIELD), &[object, next], &[]);
        self.at.ins(Op::WriteBarrier, &[object, next], &[]);
        let load = Op::Load(Access { region: Region::Immutable, ..FIELD });
        let child = self.at.ins_value(load, &[object], Type::TRACKED);
        self.use_one(object);
        self.use_one(child);
        self.recent.push(object);
    }
}

/// Adds steps until the function has this many instructions; 32 values stay in use until the end.
fn function(shape: Shape, instructions: usize) -> (Arc<Context>, Func) {
    let cx = Context::new();
    let sig = Signature {
        params: vec![Param { name: None, ty: Type::TRACKED }, Param { name: None, ty: Type::I8 }],
        results: vec![Type::TRACKED],
        vararg: false,
        ..Signature::default()
    };
    let mut func = Func::new(cx.names.intern("f"), Level::Low, sig);
    let [object, flag] = func.params()[..] else { panic!("two arguments") };
    let mut symbol = |name: &str, params: &[Type], results: &[Type]| {
        let symbol = cx.names.intern(name);
        func.add_callee(CalleeData::Symbol { symbol, params: params.into(), results: results.into() })
    };
    let make = symbol("make", &[], &[Type::TRACKED]);
    let uses = symbol("use", &[Type::TRACKED], &[]);
    let mut at = Cursor::new(&mut func);
    at.append_block();
    let mut maker = Maker { at, cx: &cx, make, uses, flag, recent: vec![object], begun: VecDeque::new() };
    while maker.at.func.inst_count() < instructions {
        maker.step(shape);
    }
    if matches!(shape, Shape::Long | Shape::Last | Shape::Far) {
        for value in maker.recent.clone() {
            maker.use_one(value);
        }
    }
    if shape == Shape::Wide {
        let all = maker.recent.clone();
        let callee = CalleeData::Symbol {
            symbol: cx.names.intern("all"),
            params: vec![Type::TRACKED; all.len()].into(),
            results: [].into(),
        };
        let callee = maker.at.func.add_callee(callee);
        maker.at.ins(Op::CallSymbol(callee), &all, &[]);
    }
    let last = maker.back(0);
    maker.at.ret(&[last]);
    (cx, func)
}

/// The best of several runs.
fn placed(shape: Shape, instructions: usize, lowering: Lowering) -> (f64, usize, Report) {
    let (cx, func) = function(shape, instructions);
    let options = Options { verify: false, lowering, ..Options::new(HEAP) };
    let count = func.inst_count();
    let mut best = f64::INFINITY;
    let mut report = Report::default();
    for _ in 0..3 {
        let mut func = func.clone();
        let start = cpu_seconds();
        report = place(&mut func, &cx, &options).expect("a function in order");
        best = best.min((cpu_seconds() - start) * 1e9 / count as f64);
    }
    (best, count, report)
}

fn main() {
    let shapes = [
        Shape::Straight,
        Shape::Chain,
        Shape::Diamonds,
        Shape::Loops,
        Shape::Long,
        Shape::Lists,
        Shape::Regions,
        Shape::Wide,
        Shape::Doomed,
        Shape::Last,
        Shape::Far,
    ];
    let sizes = [100, 1_000, 10_000, 100_000];
    println!("nanoseconds for each instruction, by the number of instructions: linked frames, and maps");
    println!(
        "{:10} {:>8} {:>8} {:>8} {:>8} {:>10} {:>8} {:>8} {:>8}",
        "", "100", "1,000", "10,000", "100,000", "100", "1,000", "10,000", "100,000"
    );
    let mut reports = Vec::new();
    for shape in shapes {
        let name = format!("{shape:?}").to_lowercase();
        print!("{name:10}");
        for lowering in [Lowering::Linked, Lowering::Maps] {
            for size in sizes {
                let (time, _, report) = placed(shape, size, lowering);
                print!(" {time:8.0}");
                if (size, lowering) == (1_000, Lowering::Linked) {
                    reports.push((name.clone(), report));
                }
            }
            print!("  ");
        }
        println!();
    }
    println!("\nfunctions of 1,000 instructions");
    println!("{:10} {:>11} {:>8} {:>8} {:>8}", "", "safepoints", "words", "stores", "naive");
    for (name, r) in reports {
        println!("{name:10} {:11} {:8} {:8} {:8}", r.safepoints, r.slots, r.stores, r.naive_stores);
    }
    println!("\nprograms at O2: functions with objects, and their sums");
    println!(
        "{:24} {:>9} {:>10} {:>6} {:>6} {:>6} {:>11} {:>8} {:>5}",
        "", "functions", "safepoints", "words", "stores", "nulls", "naive words", "barriers", "gone"
    );
    let mut total = (0, Report::default());
    for (file, (count, sum)) in programs() {
        row(&file, count, &sum);
        total = (total.0 + count, added(total.1, sum));
    }
    row("all", total.0, &total.1);
    let (time, count, report) = placed(Shape::Chain, 150_000, Lowering::Linked);
    println!(
        "\n50,000 blocks, {count} instructions: {:.0} ms, {time:.0} ns for each, {} words",
        time * count as f64 / 1e6,
        report.slots
    );
}

/// The reports of the programs' functions at O2, summed per file.
fn programs() -> BTreeMap<String, (usize, Report)> {
    let mut files: BTreeMap<String, (usize, Report)> = BTreeMap::new();
    for mut program in programs::lowered() {
        if program.level != OptLevel::O2 {
            continue;
        }
        let report = place(&mut program.func, &program.cx, &Options::new(HEAP)).expect(&program.what);
        if report.naive_slots > 0 {
            let (count, sum) = files.entry(program.file).or_default();
            (*count, *sum) = (*count + 1, added(*sum, report));
        }
    }
    files
}

fn added(a: Report, b: Report) -> Report {
    Report {
        safepoints: a.safepoints + b.safepoints,
        slots: a.slots + b.slots,
        stores: a.stores + b.stores,
        nulls: a.nulls + b.nulls,
        naive_slots: a.naive_slots + b.naive_slots,
        naive_stores: a.naive_stores + b.naive_stores,
        most: a.most.max(b.most),
        lifted: a.lifted + b.lifted,
        barriers: a.barriers + b.barriers,
        barriers_removed: a.barriers_removed + b.barriers_removed,
        coarse: a.coarse || b.coarse,
        lowering: b.lowering,
    }
}

fn row(name: &str, count: usize, r: &Report) {
    println!(
        "{name:24} {count:9} {:10} {:6} {:6} {:6} {:11} {:8} {:5}",
        r.safepoints, r.slots, r.stores, r.nulls, r.naive_slots, r.barriers, r.barriers_removed
    );
}
