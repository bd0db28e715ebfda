//! The cost of cells: calls through them, first calls, replacement of the code behind them.
//!
//! ```text
//! cargo bench --bench cells
//! ```
//!
//! Each figure is the best of several rounds, in nanoseconds. Calls are made by a compiled loop, each with the result of the one
//! before; the loop itself is in the figure, the same in all rows. The first calls find compiled code, so
//! they only measure the path to it: the stub, the trampoline, the record, and the typed call, whose own cost is in the row
//! above.

// The module of the tests of cells.
#[path = "../crates/jit/tests/support/lazy.rs"]
mod lazy;

use std::error::Error;
use std::sync::Arc;
use std::time::Instant;

use brolga_codegen::isa::Tier;
use brolga_codegen::linkage::CallKind;
use brolga_jit::{Jit, JitOptions, Linkage, Materialize, Style, Target};
use brolga_runtime::{Runtime, RuntimeOptions};
use lazy::{Program, STEPS};

const CALLS: i64 = 50_000;
const CALL_ROUNDS: usize = 40;
const ROUNDS: usize = 15;
const CELLS: usize = 1_000;
const UPGRADES: usize = 10_000;

/// The least nanoseconds of one of `count` operations that `body` does.
fn best(count: usize, mut body: impl FnMut()) -> f64 {
    let round = |_| {
        let start = Instant::now();
        body();
        start.elapsed().as_nanos() as f64 / count as f64
    };
    (0..ROUNDS).map(round).fold(f64::INFINITY, f64::min)
}

/// Code that was made before.
struct Made(Target);

impl Materialize for Made {
    fn materialize(&self) -> Result<Target, Box<dyn Error + Send + Sync>> {
        Ok(self.0.clone())
    }
}

fn main() {
    let jit = Jit::new(Runtime::new(RuntimeOptions::default()), JitOptions::default()).unwrap();
    let program = Program::new(&jit, Tier::Optimised, STEPS);
    let (far, cell): (Style<'_>, _) =
        (Tier::Optimised.into(), Style { others: &|_| CallKind::Cell, ..Tier::Optimised.into() });
    let counting = Style { counted: &|name| name == "step", ..far };
    let cells = Linkage { indirect: Some(&*program), ..Linkage::default() };

    let near = program.unit(&["step", "count"], far, &Linkage::default());
    let below = [program.unit(&["step"], far, &Linkage::default())];
    let apart = program.unit(&["count"], far, &Linkage { visible: &below, ..Linkage::default() });
    let through = program.unit(&["count"], cell, &cells);
    program.owner("step").set(program.target_style("step", far)).unwrap();
    let counts = Program::new(&jit, Tier::Optimised, STEPS);
    let cells = Linkage { indirect: Some(&*counts), ..Linkage::default() };
    let counted = counts.unit(&["count"], cell, &cells);
    counts.owner("step").set(counts.target_style("step", counting)).unwrap();
    let rows = [
        ("direct call, one unit", near),
        ("direct call, between units", apart),
        ("call through a cell", through),
        ("call through a cell, callee counts", counted),
    ];
    // Row after row in each iteration, so that what else the machine does meets all of them.
    let mut costs = [f64::INFINITY; 4];
    for _ in 0..CALL_ROUNDS {
        for ((_, unit), cost) in rows.iter().zip(&mut costs) {
            let count = unit.func::<(i64,), i64>("count").unwrap();
            *cost = cost.min(best(CALLS as usize, || assert_eq!(count.call((CALLS,)), Ok(CALLS))));
        }
    }
    for ((label, _), cost) in rows.iter().zip(costs) {
        println!("{label:40} {cost:8.2}");
    }

    let target = program.target_style("step", far);
    let step = program.cell("step").func::<(i64,), i64>().unwrap();
    let again = best(CELLS, || (0..CELLS).for_each(|_| assert!(step.call((1,)).is_ok())));
    println!("{:40} {again:8.2}", "call from Rust through a cell");
    let mut first = f64::INFINITY;
    for _ in 0..ROUNDS {
        let owner = |_| jit.cell(program.ty("step"), Arc::new(Made(target.clone()))).unwrap();
        let owners: Vec<_> = (0..CELLS).map(owner).collect();
        let calls: Vec<_> = owners.iter().map(|owner| owner.cell().func::<(i64,), i64>().unwrap()).collect();
        let start = Instant::now();
        calls.iter().for_each(|call| assert!(call.call((1,)).is_ok()));
        first = first.min(start.elapsed().as_nanos() as f64 / CELLS as f64);
    }
    println!("{:40} {first:8.2}", "the same, first call");
    let owner = program.owner("step");
    let both = [target, program.target_style("step", far)];
    let upgrade = best(UPGRADES, || {
        (0..UPGRADES).for_each(|n| owner.set(both[n % 2].clone()).unwrap());
    });
    println!("{:40} {upgrade:8.2}", "replace what is behind a cell");
    let mut redirected = jit.cell(program.ty("step"), Arc::new(Made(both[0].clone()))).unwrap();
    let mut switch = redirected.switch(both.to_vec()).unwrap().expect("there are two");
    let redirect = best(UPGRADES, || {
        (0..UPGRADES).for_each(|n| assert!(std::hint::black_box(&mut switch).set(n % 2)));
    });
    println!("{:40} {redirect:8.2}", "redirect to prepared code");
    drop(switch);
    let (before, made) = (jit.stats().in_use, CELLS);
    let cell = |_| jit.cell(program.ty("step"), Arc::new(Made(both[0].clone()))).unwrap();
    let owners: Vec<_> = (0..made).map(cell).collect();
    let bytes = (jit.stats().in_use - before) as f64 / made as f64;
    drop(owners);
    println!("{:40} {bytes:8.2}", "bytes of code memory for a cell");
}
