//! Executes several iterations of a loop at once, one in each lane of a vector.
//!
//! ```text
//! h: %x = load(a + 8·i)                    m: %v = load(a + 8·i)::v128                   iterations i and i+1
//!    %y = mul_float(%x, k)          ==>       %w = lanes(mul_float, f64x2, %v, {k, k})
//!    store(b + 8·i, %y)                       store(b + 8·i, %w)
//!    goto h if i+1 < n                        goto m if i+2 < n - 1
//!                                          h: as before, for the remaining iterations
//! ```
//!
//! | file | what it does |
//! |---|---|
//! | `plan` | the instructions that become vectors, and their legality |
//! | `overlap` | accesses that must not overlap: proofs, and tests before the loop |
//! | `emit` | the vectors |
//!
//! **Which loops.** One block, one exit, a counter that goes up by a constant in 64 bits and is tested after its step, as `rotate`,
//! `irce` and `simplify-cfg` leave them; by one where there are loads or stores. Every load and store advances by one element in each iteration, and all operations on their values exist
//! in lanes (`brolga_ir::lanes`). Nothing may throw or call. A counter may be an operand: in lanes it is its first value plus the distances of the iterations.
//! Values computed from counters alone are in lanes if they are stored or added up, and stay scalar if they form an address.
//!
//! **How long trips are.** A trip has at least as many iterations as the widest elements have lanes. A value is then one vector; narrower ones fill the low
//! lanes of theirs, from loads of fewer bytes. It has up to eight times as many, where a value is several vectors: the test of the counter is shared by
//! more work, reductions are carried in several vectors that do not wait for each other ([`plan::Plan::carried`]), and narrow elements fill their vectors.
//! Limits are the known iterations, the number of instructions, and accesses that are a few elements apart. Conversions lead from one width to another in steps:
//!
//! ```text
//! %b  16 bytes                        each step makes two vectors of one, of its low and its high half
//! %b  16 bytes, which are summed up   each step adds the two up, so that one vector of 64-bit sums is left
//! %i  two 64-bit integers as floats   sums with large exponents; processors without AVX-512 have no instruction
//! ```
//!
//! **Correctness.** Lanes compute the values of iterations. Loads and stores keep their order within a trip; between the
//! iterations of a trip, an access of a later iteration moves before one of an earlier iteration only if both are known not to overlap. Where
//! that is unknown, the addresses are compared before the loop, and the original loop runs if they may overlap. Sums
//! and products over all iterations (*reductions*) are computed lane by lane and combined after the loop, which is another
//! order: that is exact for integers, and permitted for floats only by the `_fast` operations.
//!
//! The original loop executes the remaining iterations; `loop_copy` explains why the order stays.
//!
//! Cost: each loop's block, and the pairs of its accesses, of which there are at most [`plan::MAX_ACCESSES`]. Breaks the graph. Not
//! done: conditions that are branches, elements that are not neighbours. Vectors of 256 and 512 bits are made of the neighbours of a trip where code is generated.

mod emit;
pub(crate) mod overlap;
mod plan;

use crate::address::Addresses;
use crate::alias::Aliases;
use crate::counted::Counted;
use crate::facts::Fact;
use crate::likely::ColdBlocks;
use crate::loop_note::LoopNote;
use crate::pass::{Changed, Pass, PassCx, PassLevel};
use crate::ssa_repair::Repair;
use crate::undefined::MaybeUndefined;
use brolga_ir::Func;
use brolga_ir::analysis::{Cfg, Rpo};

pub(crate) const PASS: Pass = Pass::new("vectorize", PassLevel::Low, run)
    .needs(&[Fact::Cfg, Fact::Loops, Fact::Uses])
    .breaks(&[Fact::Cfg, Fact::Uses]);

/// How many instructions all copies together may have.
const MAX_GROWTH: usize = 4000;
/// A loop that ends sooner by its branch weights pays for the tests before it, and hardly enters the lanes.
const SHORTEST: usize = 4;

fn run(func: &mut Func, cx: &mut PassCx<'_>) -> Changed {
    let (cfg, loops, uses) = (cx.facts.cfg(), cx.facts.loops(), cx.facts.uses());
    if loops.is_empty() {
        return Changed::No;
    }
    let rpo = cx.facts.rpo();
    // Computed for the first loop with a plan, so before any loop changes; most functions have none.
    let mut analyses = None;
    let mut repair = Repair::default();
    let mut growth = 0;
    for l in loops.iter().filter(|&l| loops.is_innermost(l)) {
        let Some(counted) = Counted::of(func, cfg, loops, l) else { continue };
        let note = LoopNote::of(func, cx.types(), loops.header(l));
        if !note.vectorize || counted.is_short(func, SHORTEST) || loops.exits(cfg, l).count() != 1 {
            continue;
        }
        let Some(mut plan) = plan::Plan::of(func, cx.types(), loops, uses, cx.options.cpu, &counted) else {
            continue;
        };
        let (undefined, aliases, cold) = analyses.get_or_insert_with(|| {
            let undefined = MaybeUndefined::of(func, cfg, rpo);
            (undefined, Aliases::of(func, cx.types(), rpo), ColdBlocks::of(func, cfg, rpo))
        });
        let known = [counted.test.bound, counted.test.counter.start];
        if cold.has(loops.header(l)) || known.iter().any(|&v| undefined.has(func, v)) {
            continue;
        }
        let addresses = Addresses::of(func, loops, undefined, counted.shape);
        let checks = loop {
            match overlap::checks(func, cx.types(), aliases, &addresses, &plan) {
                Some(checks) => break Some(checks),
                None if plan.shorten() => {}
                None => break None,
            }
        };
        let Some(checks) = checks else { continue };
        let size = func.block_insts(counted.shape.header).count();
        if growth + size > MAX_GROWTH {
            continue;
        }
        if !cx.spend("vectorized loops") {
            break;
        }
        growth += size;
        cx.count("checks", checks.len() as u64);
        let main = emit::emit(func, cx.types(), loops, uses, &plan, &checks, &mut repair);
        if let Some(main) = main.filter(|_| plan.has_long_trips()) {
            // Unrolling again would only share the vectors of which a trip already has several.
            let note = func.add_meta(LoopNote::never_unrolled(cx.context()));
            func.set_loop_note(main, Some(note));
        }
    }
    if cx.changed() == Changed::Yes {
        let cfg = Cfg::compute(func);
        repair.apply(func, cx.context(), &cfg, &Rpo::compute(&cfg));
    }
    cx.changed()
}
