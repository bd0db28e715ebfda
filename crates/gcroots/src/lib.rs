//! Root placement: from low IR with objects to low IR without.
//!
//! ```text
//!  check ─► stack ─► bases ─► refine ─► needs ─► slots ─► frame ─► lower
//!   │        │         │         │        │        │        └ allocation, barriers, tags, argument words
//!   │        │         │         │        │        └ where the frame is linked, filled and unlinked; or `maps`
//!   │        │         │         │        └ where each root is stored, and in which word; `nulls`: where words become null
//!   │        │         │         └ which roots need a slot at which safepoint
//!   │        │         └ roots that other objects keep alive
//!   │        └ which object keeps each pointer's memory alive
//!   └ the rules of pointer classes
//! ```
//!
//! **Guarantee.** At every safepoint, every object that is used afterwards is in a word of a linked frame, is
//! permanent, or is kept alive by such an object.
//!
//! **The convention.** Compiled code and the run time root their own tracked arguments, for as long as they
//! need them; a caller roots the values that it uses after the call. The caller roots the argument words of
//! an `args` call for the whole call, and all operands of a foreign call.
//!
//! Placement runs last, when code no longer moves: alias facts that hold only while roots do are dropped.
//! Functions without objects are unchanged. If the heap does not move objects, values stay in registers and
//! nothing is reloaded; for a moving heap, `reload` runs first.
#![forbid(unsafe_code)]

pub mod check;

mod barrier;
mod bases;
mod class;
mod flow;
mod frame;
mod fresh;
mod lower;
mod maps;
mod needs;
mod nulls;
mod options;
mod ranges;
mod refine;
mod reload;
mod slots;
mod stack;
mod tracked;

use brolga_ir::analysis::{Cfg, DomTree, Loops, Rpo};
use brolga_ir::{Block, Context, Func, Inst, Level, Op};

pub use options::{Error, Lowering, Options, Report};

/// Places roots in a function of low IR and lowers its operations on objects.
pub fn place(func: &mut Func, cx: &Context, options: &Options) -> Result<Report, Error> {
    if func.level != Level::Low {
        return Err(Error::NotLow);
    }
    if !has_objects(func) {
        return Ok(Report { lowering: options.lowering, ..Report::default() });
    }
    if options.verify {
        brolga_ir::verify::verify_func(cx, func).map_err(Error::Ir)?;
    }
    check::classes(func).map_err(Error::Classes)?;
    for block in func.blocks() {
        for inst in func.block_insts(block) {
            if let Op::Alloc(ty) | Op::AllocStack(ty) = func.op(inst) {
                cx.types.object_extent(ty).map_err(Error::Layout)?;
            }
        }
    }

    // Stack objects are lowered for this heap, and if they hold references, for a frame with maps.
    let spare = stack::is_for_options(func, cx, options).then(|| func.clone());
    let objects = stack::place(func, cx, options);
    let cfg = without_unreachable(func);
    let rpo = Rpo::compute(&cfg);
    let tree = DomTree::compute(&cfg);
    let loops = Loops::compute(&cfg, &rpo, &tree);
    let flow = flow::Flow::compute(func, cx, cfg, &rpo, &tree);
    if options.heap.moving
        && let Err(error) = reload::reload(func, cx, &flow)
    {
        if let Some(spare) = spare {
            *func = spare;
        }
        return Err(error);
    }
    let bases = bases::Bases::compute(func, cx, &flow.cfg, &rpo, &tree, &objects);
    let refinements = refine::Refinements::compute(func, &bases, &tree);
    let barriers = barrier::Barriers::compute(func, cx, &bases, &refinements, &flow);
    let insts = || func.blocks().flat_map(|block| func.block_insts(block));
    let safepoints = insts().filter(|&inst| flow::is_safepoint(func, cx, inst)).count();
    let budget = options.budget.saturating_mul(func.inst_count() + 256);
    let needs = needs::Needs::compute(func, cx, &bases, &refinements, &flow, &tree, budget);

    let tracked::Reserved { uses: others, slots: tracked, words: kept } = tracked::reserve(func, &objects);
    let given = options;
    let mut options = *given;
    let coarse = needs.is_none();
    let (slots, most) = match needs {
        Some(mut needs) => {
            let slots = slots::Slots::compute(func, &bases, &mut needs, &flow, &tree, &loops, kept.end);
            if options.lowering == Lowering::Maps && maps::entries(func, cx, &slots, &tree) > budget / 2 {
                options.lowering = Lowering::Linked;
            }
            (slots, needs.most)
        }
        None => {
            // A word is known to be in use in the whole function, and nothing more precise.
            (options.lowering, options.shrink_wrap, options.null_dead) = (Lowering::Linked, false, false);
            (slots::Slots::coarse(func, &bases, &refinements, &flow, kept.end), bases.roots.len())
        }
    };
    let options = &options;
    if let (Lowering::Maps, Lowering::Linked, Some(spare)) = (given.lowering, options.lowering, spare) {
        *func = spare;
        return place(func, cx, &Options { lowering: Lowering::Linked, ..*given });
    }
    let nulls = if options.lowering == Lowering::Linked && options.null_dead {
        nulls::compute(func, &bases, &slots, kept, &flow, &rpo, budget)
    } else {
        Vec::new()
    };
    let plan = frame::Plan {
        bases: &bases,
        slots: &slots,
        others: &others,
        has_tracked_slots: tracked.word.values().any(Option::is_some),
        nulls: &nulls,
    };
    let frame = match options.lowering {
        Lowering::Linked => frame::build(func, cx, options, &plan, &flow, &tree, &loops),
        Lowering::Maps => maps::build(func, cx, options, &plan, &tracked, &flow, &tree),
    };
    lower::lower(func, cx, options, &barriers, &tracked, frame);

    Ok(Report {
        safepoints,
        slots: slots.words as usize,
        stores: slots.stores.len(),
        nulls: nulls.iter().map(|n| n.words.len()).sum(),
        naive_slots: bases.roots.len(),
        naive_stores: bases.roots.len(),
        most,
        lifted: bases.lifted,
        barriers: barriers.kept,
        barriers_removed: barriers.removed,
        coarse,
        lowering: options.lowering,
    })
}

/// Whether there is anything to do. Cost: one pass over the instructions.
fn has_objects(func: &Func) -> bool {
    func.blocks().flat_map(|block| func.block_insts(block)).any(|inst| {
        let managed = |v| class::is_managed(func.ty(v));
        func.args(inst).iter().any(|&v| managed(v))
            || func.results(inst).any(managed)
            || match func.op(inst) {
                Op::SlotAddr(slot) => func.slot(slot).tracked,
                Op::Enter | Op::CallArgs(_) | Op::GcPreserveBegin | Op::GcPreserveEnd => true,
                _ => false,
            }
    })
}

/// Removes unreachable blocks and the φ edges from them.
fn without_unreachable(func: &mut Func) -> Cfg {
    let cfg = Cfg::compute(func);
    let rpo = Rpo::compute(&cfg);
    let dead: Vec<Block> = func.blocks().filter(|&b| !rpo.is_reachable(b)).collect();
    if dead.is_empty() {
        return cfg;
    }
    for &block in &dead {
        func.remove_block(block);
    }
    for &block in rpo.blocks() {
        let phis: Vec<Inst> = func.block_insts(block).take_while(|&i| func.op(i) == Op::Phi).collect();
        for phi in phis {
            func.retain_phi_edges(phi, |from, _| rpo.is_reachable(from));
        }
    }
    Cfg::compute(func)
}
