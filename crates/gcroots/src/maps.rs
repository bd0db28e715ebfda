//! Frame maps: the same words, found without links.
//!
//! ```text
//!   linked frames                          frame maps
//!   push; store w0, %1                     store w0, %1
//!   invoke f()                             invoke f()         roots: w0
//!   invoke g(%1)                           invoke g(%1)       roots: none
//!   pop; return                            return
//! ```
//!
//! Each safepoint gets a list of the words that hold roots there ([`RootMap`]). The collector reads no other
//! word, so words need not be null before their first store or after their object died, and no frame is
//! linked or unlinked: a function only pays for its stores. The collector pays instead: it walks the stack
//! and looks up each return address.
//!
//! Handlers restore the thread's innermost linked frame to the one at the entry: the code that threw may link
//! its frames, and a throw does not unlink them.
//!
//! Tracked slots are in every list, so they are null from the entry on. Argument words are in the list of
//! their call.
//!
//! Cost: the size of the lists. They can be quadratic where many objects live past many safepoints;
//! [`entries`] computes their length without building them, and a function whose lists would be too long
//! links its frame instead.

use crate::flow::{Flow, is_safepoint};
use crate::frame::{Frame, Plan, fill, restore_in_handlers};
use crate::needs::Set;
use crate::slots::{Event, Slots};
use crate::tracked::TrackedSlots;
use crate::{Lowering, Options};
use brolga_ir::analysis::DomTree;
use brolga_ir::cursor::Cursor;
use brolga_ir::func::RootMap;
use brolga_ir::{Block, Context, Func, Inst, Op, Type};

/// Fills the frame and lists the words of every safepoint. `None`: the function needs no frame.
pub(crate) fn build(
    func: &mut Func,
    cx: &Context,
    options: &Options,
    plan: &Plan<'_>,
    tracked: &TrackedSlots,
    flow: &Flow,
    tree: &DomTree,
) -> Option<Frame> {
    restore_in_handlers(func, options, None, flow, tree);
    if plan.slots.words == 0 {
        return None;
    }
    let frame = Frame::new(func, plan.slots.words, Lowering::Maps);
    let kept: &[u32] = &tracked.kept;
    let mut live = Set::new(plan.slots.words as usize);
    for &block in tree.preorder() {
        let mut lists = Vec::new();
        each_safepoint(func, cx, plan.slots, block, &mut live, |inst, live| {
            let arguments = match func.op(inst) {
                Op::CallArgs(_) => func.args(inst).len() as u32,
                _ => 0,
            };
            let mut words: Vec<u32> = live.iter().chain(kept).copied().chain(0..arguments).collect();
            words.sort_unstable();
            if !words.is_empty() {
                lists.push((inst, words));
            }
        });
        for (inst, words) in lists {
            let offsets = words.into_iter().map(|w| frame.offset(w)).collect();
            func.set_root_map(inst, RootMap { slot: frame.slot, offsets });
        }
    }
    if !kept.is_empty() {
        let mut at = Cursor::new(func);
        at.at_first_insertion_point(tree.preorder()[0]);
        let base = at.ins_value(Op::SlotAddr(frame.slot), &[], Type::PTR);
        let null = at.func.bits(&cx.types, Type::TRACKED, 0);
        for &word in kept {
            at.ins(Op::Store(frame.access(word)), &[base, null], &[]);
        }
    }
    fill(func, plan, frame);
    Some(frame)
}

/// The total length of all lists, not counting tracked slots and arguments.
pub(crate) fn entries(func: &Func, cx: &Context, slots: &Slots, tree: &DomTree) -> usize {
    let mut entries = 0;
    let mut live = Set::new(slots.words as usize);
    for &block in tree.preorder() {
        each_safepoint(func, cx, slots, block, &mut live, |_, live| entries += live.len());
    }
    entries
}

/// Reports the words that hold roots at each safepoint of a block.
fn each_safepoint(
    func: &Func,
    cx: &Context,
    slots: &Slots,
    block: Block,
    live: &mut Set,
    mut tell: impl FnMut(Inst, &[u32]),
) {
    let word = |variable: u32| slots.stores[variable as usize].word;
    live.clear();
    for &variable in slots.ranges.live_in(block) {
        live.insert(word(variable));
    }
    let mut events = slots.events[block].iter().peekable();
    for inst in func.block_insts(block).filter(|&inst| is_safepoint(func, cx, inst)) {
        let position = slots.position(inst);
        let is_here = |e: &&&(u32, Event)| e.0 < position || (e.0 == position && e.1.is_begin());
        while let Some(&(_, event)) = events.peek().filter(is_here).copied() {
            events.next();
            match event {
                Event::Begin(variable) => {
                    live.insert(word(variable));
                }
                Event::End(variable) => {
                    live.remove(word(variable));
                }
            }
        }
        tell(inst, live.list());
    }
}
