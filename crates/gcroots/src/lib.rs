//! Root placement: from low IR with objects to low IR without.
//!
//! ```text
//!  check ─► stack ─► bases ─► refine ─► needs ─► slots ─► frame ─► lower
//!   │        │         │         │        │        │        └ allocation, barriers, tags, argument words
//!   │        │         │         │        │        └ where the frame is linked, filled and taken off; or `maps`
//!   │        │         │         │        └ where each root is stored, and in which word; `nulls`: where words become null
//!   │        │         │         └ which roots need a slot at which safepoint
//!   │        │         └ what is kept alive by something else
//!   │        └ which object keeps each pointer's memory alive
//!   └ the rules of pointer classes
//! ```
//!
//! **The promise.** At every safepoint, every object that is used afterwards is in a word of a linked frame, or is permanent, or is
//! kept alive by one that is.
//!
//! **The convention.** Tracked arguments of compiled code and of the run time are rooted by the callee, as long as it needs
//! them; a caller roots what it uses after the call. The argument words of an `args` call are rooted by the caller for the
//! whole call, and so is everything that a foreign call names.
//!
//! It runs last, when nothing moves any more: alias facts that hold only while roots do are dropped. Functions without objects
//! are left as they are. If the heap does not move objects, values stay in registers and nothing is reloaded; for one that does,
//! `reload` goes first.
#![forbid(unsafe_code)]

pub mod check;

mod barrier;
mod bases;
mod flow;
mod frame;
mod fresh;
mod lower;
mod maps;
mod needs;
mod nulls;
mod ranges;
mod refine;
mod reload;
mod slots;
mod stack;

use brolga_ir::analysis::{Cfg, DomTree, Loops, Rpo};
use brolga_ir::heap_abi::HeapAbi;
use brolga_ir::types::LayoutError;
use brolga_ir::{Block, Context, Func, Inst, Level, Op};
use std::ops::Range;
use thiserror::Error;

/// How the collector finds the words of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Lowering {
    /// Frames are linked from the thread while they are in use.
    Linked,
    /// Each safepoint has a map ([`brolga_ir::func::RootMap`]) of the words that hold its roots. Whoever translates the function
    /// puts the maps into a table by return address, and the collector walks the stack.
    #[default]
    Maps,
}

/// What placement is told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options {
    /// The heap that the code is for.
    pub heap: HeapAbi,
    /// How frames are found.
    pub lowering: Lowering,
    /// Link frames only on paths that need them.
    pub shrink_wrap: bool,
    /// Let no word of a frame keep what is no longer needed alive during a call.
    pub null_dead: bool,
    /// Verify the function in full first, as whoever did not do that before should.
    pub verify: bool,
    /// How large the sets of live roots at the borders of blocks may be, added up over the function, for each of its instructions (and 256
    /// more). Beyond that each root has a word of its own; and where the lists of [`Lowering::Maps`] took half of it, the frame is linked.
    pub budget: usize,
}

impl Options {
    /// Everything on, for a heap.
    pub fn new(heap: HeapAbi) -> Options {
        let lowering = Lowering::Linked;
        Options { heap, lowering, shrink_wrap: true, null_dead: true, verify: true, budget: 32 }
    }
}

/// What placement did.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Report {
    /// Points at which a collection may happen.
    pub safepoints: usize,
    /// Words of the frame, argument words included.
    pub slots: usize,
    /// Stores of roots, argument words not included.
    pub stores: usize,
    /// Stores of null into words that are no longer needed.
    pub nulls: usize,
    /// What a placement would need that gives each tracked value a slot.
    pub naive_slots: usize,
    /// And stores it there where it is made.
    pub naive_stores: usize,
    /// The most roots that need slots at once.
    pub most: usize,
    /// φ and `ifelse` of bases that were added.
    pub lifted: usize,
    /// Write barriers that remain.
    pub barriers: usize,
    /// Write barriers that were found superfluous.
    pub barriers_removed: usize,
    /// Whether each root has a word of its own, because exact sets would be larger than the [budget](Options::budget).
    pub coarse: bool,
    /// How the frame is found.
    pub lowering: Lowering,
}

/// Why a function has no roots placed. It is then as it was.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum Error {
    /// The function is on the high level: whoever calls has not lowered it.
    #[error("root placement is for low IR")]
    NotLow,
    /// The heap moves objects, and the function holds addresses in objects across a safepoint of which nobody can say where they
    /// are afterwards: it is for other heaps.
    #[error("the function holds addresses in objects that move while they are used")]
    Moving {
        /// The instruction that needs such an address, or hides one.
        inst: Inst,
    },
    /// The function breaks rules of the IR: whoever made it is at fault.
    #[error("the function breaks {} rules of low IR", .0.len())]
    Ir(Vec<brolga_ir::verify::Violation>),
    /// The function breaks rules of pointer classes: whoever made it is at fault.
    #[error("{}", .0.first().map_or(String::new(), |v| v.rule.to_string()))]
    Classes(Vec<check::Violation>),
    /// Objects of a type that has no layout are allocated.
    #[error("an object is allocated whose type has no layout")]
    Layout(LayoutError),
}

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

    // What objects of the stack become here is for this heap, and for a frame with maps if they hold references.
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

    let (others, tracked, kept) = reserve(func, &objects);
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
            // Nothing says where a word is in use but the whole function.
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

/// Whether there is anything to do. Cost: one look at each instruction.
fn has_objects(func: &Func) -> bool {
    func.blocks().flat_map(|block| func.block_insts(block)).any(|inst| {
        let managed = |v| bases::is_managed(func.ty(v));
        func.args(inst).iter().any(|&v| managed(v))
            || func.results(inst).any(managed)
            || match func.op(inst) {
                Op::SlotAddr(slot) => func.slot(slot).tracked,
                Op::Enter | Op::CallArgs(_) | Op::GcPreserveBegin | Op::GcPreserveEnd => true,
                _ => false,
            }
    })
}

/// Takes out the blocks that cannot be reached, with the φ edges from them.
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

/// The words that are taken before roots get theirs: argument words, then one for each tracked slot and those of objects on the stack. Gives
/// who uses them, the first word of each slot, and the words of all of these.
fn reserve(
    func: &Func,
    objects: &stack::StackObjects,
) -> (Vec<(Block, Inst, u32)>, lower::TrackedSlots, Range<u32>) {
    let mut others = Vec::new();
    let mut accesses = Vec::new();
    let mut tracked = lower::TrackedSlots::default();
    let mut arguments = 0;
    for block in func.blocks() {
        for inst in func.block_insts(block) {
            match func.op(inst) {
                Op::CallArgs(_) if !func.args(inst).is_empty() => {
                    let count = func.args(inst).len() as u32;
                    arguments = arguments.max(count);
                    others.push((block, inst, count));
                }
                Op::SlotAddr(slot) if func.slot(slot).tracked || objects.is_in_frame(slot) => {
                    accesses.push((block, inst, slot));
                }
                _ => {}
            }
        }
    }
    let mut words = arguments;
    for (block, inst, slot) in accesses {
        if tracked.word[slot].is_none() {
            let count = match func.slot(slot).tracked {
                true => tracked.one(slot, words),
                false => objects.reserve(func, slot, words, &mut tracked),
            };
            words += count;
        }
        let behind = tracked.word[slot].map_or(words, |first| first + func.slot(slot).size / 8);
        others.push((block, inst, behind));
    }
    (others, tracked, arguments..words)
}
