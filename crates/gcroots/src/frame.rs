//! GC frames: the layout of root slots, and the points where a frame is pushed and popped (shrink wrapping).
//!
//! ```text
//!   +0    4 × number of words                a stack slot; its words:
//!   +8    the previous frame                 │ argument words │ tracked slots │ stored roots │
//!   +16   words                                one area, shared    one each       coloured
//! ```
//!
//! **Pushing.** The frame is pushed before its first use, in the nearest block that dominates all uses and is
//! outside all loops. [Doomed](crate::flow) blocks are handled separately: each highest doomed dominator with
//! uses pushes the frame itself, unless it is already pushed. A push sets the words to null, except those
//! that are stored before the first safepoint.
//!
//! While the frame is linked, dead words are set to null before calls ([`nulls`](crate::nulls)).
//!
//! **Popping.** Before each return, and on each edge that leaves the region dominated by the push. Nothing is
//! popped on paths to an exception: the handler restores the frame that was innermost when its function was
//! entered.
//!
//! ```text
//!   1 ─ goto #3 if not %1            1 ─ goto #3 if not %1
//!   2 ─ invoke f()                   2 ─ push; store w0, %2
//!       invoke g(%2)         ==>         invoke f(); invoke g(%2)
//!       return                           pop; return
//!   3 ─ return                       3 ─ return
//! ```
//!
//! **Functions that catch exceptions**, and those with tracked slots (whose contents are live throughout the
//! function), push their frame at the entry. A handler first restores the innermost frame of its function,
//! because the functions that the exception unwound did not pop theirs.
//!
//! Invariant: no path pushes a frame that is already linked. Every edge that leaves the region dominated by a
//! push, or returns to its block, pops. Edges to doomed blocks do not pop if no doomed block pushes.

use crate::bases::Bases;
use crate::flow::{Flow, is_safepoint};
use crate::nulls::Null;
use crate::slots::{Slots, Store};
use crate::{Lowering, Options};
use brolga_ir::analysis::{DomTree, Loops};
use brolga_ir::cursor::Cursor;
use brolga_ir::func::SlotData;
use brolga_ir::intrinsic::Intrinsic;
use brolga_ir::op::{Access, Region};
use brolga_ir::{Block, Context, Func, Inst, Op, Slot, Type, Value};
use cranelift_entity::SecondaryMap;

/// Bytes before the words of a linked frame.
const LINKS: u32 = 16;

/// The words of a function's frame.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame {
    pub(crate) slot: Slot,
    /// Bytes before the words.
    header: u32,
}

impl Frame {
    /// A frame of `words` words.
    pub(crate) fn new(func: &mut Func, words: u32, lowering: Lowering) -> Frame {
        let header = match lowering {
            Lowering::Linked => LINKS,
            Lowering::Maps => 0,
        };
        Frame { slot: func.add_slot(SlotData::bytes(header + 8 * words, 4)), header }
    }

    pub(crate) fn offset(self, word: u32) -> u32 {
        self.header + 8 * word
    }

    /// The access of a word, relative to the start of the frame.
    pub(crate) fn access(self, word: u32) -> Access {
        access(self.offset(word) as i32, Region::Frame)
    }
}

/// An instruction before which the frame must be linked.
#[derive(Clone, Copy)]
struct FrameUse {
    block: Block,
    at: Inst,
    /// The number of words that the frame must have for this instruction.
    words: u32,
}

/// A place where the frame is linked.
struct Push {
    block: Block,
    before: Inst,
    words: u32,
}

/// The access of an aligned word.
pub(crate) fn access(offset: i32, region: Region) -> Access {
    Access { offset, region, align_log2: 3 }
}

/// The results of root placement that determine the frame.
pub(crate) struct Plan<'a> {
    pub(crate) bases: &'a Bases,
    pub(crate) slots: &'a Slots,
    /// Calls with argument words, and accesses to tracked slots and stack objects: the block, the
    /// instruction, and the number of words that the frame must have for it.
    pub(crate) others: &'a [(Block, Inst, u32)],
    pub(crate) has_tracked_slots: bool,
    pub(crate) nulls: &'a [Null],
}

/// Emits pushes, stores and pops of the frame. `None` if the function needs none.
pub(crate) fn build(
    func: &mut Func,
    cx: &Context,
    options: &Options,
    plan: &Plan<'_>,
    flow: &Flow,
    tree: &DomTree,
    loops: &Loops,
) -> Option<Frame> {
    let stores =
        plan.slots.stores.iter().map(|s| FrameUse { block: s.block, at: s.before, words: s.word + 1 });
    let others = plan.others.iter().map(|&(block, at, words)| FrameUse { block, at, words });
    let uses: Vec<FrameUse> = stores.chain(others).collect();
    let words = uses.iter().map(|u| u.words).max().unwrap_or(0);
    let frame = (words > 0).then(|| Frame::new(func, words, Lowering::Linked));
    let pushes = match frame {
        None => Vec::new(),
        Some(_) if flow.catches() || plan.has_tracked_slots || !options.shrink_wrap => {
            let entry = tree.preorder()[0];
            let before = uses.iter().filter(|u| u.block == entry).map(|u| u.at);
            let first = before.min_by_key(|&at| plan.slots.position(at)).filter(|_| !flow.catches());
            let head = brolga_ir::cursor::first_insertion_point(func, entry);
            let at = first.or(if flow.catches() { head } else { func.terminator(entry) })?;
            vec![Push { block: entry, before: at, words }]
        }
        Some(_) => pushes(func, &uses, plan.slots, flow, tree, loops),
    };
    let mut stores: SecondaryMap<Block, Vec<Store>> = SecondaryMap::new();
    plan.slots.stores.iter().for_each(|&store| stores[store.block].push(store));
    restore_in_handlers(func, options, frame, flow, tree);
    let mut builder = Builder { func, cx, options, frame };
    for push in &pushes {
        let stored = builder.stored_first(plan.slots, push, &stores[push.block]);
        builder.push(push, &stored);
    }
    if let Some(frame) = frame {
        let mut linked: SecondaryMap<Block, bool> = SecondaryMap::new();
        pushes.iter().for_each(|push| linked[push.block] = true);
        for &block in tree.preorder() {
            linked[block] |= tree.idom(block).is_some_and(|above| linked[above]);
        }
        for null in plan.nulls.iter().filter(|null| linked[null.block]) {
            builder.null(frame, null);
        }
        fill(builder.func, plan, frame);
        let doomed_push = pushes.iter().any(|p| flow.doom(p.block).is_some());
        for push in &pushes {
            builder.pops(push, flow, tree, doomed_push);
        }
    }
    frame
}

/// Emits the stores of roots.
pub(crate) fn fill(func: &mut Func, plan: &Plan<'_>, frame: Frame) {
    for store in &plan.slots.stores {
        let value = plan.bases.roots[store.root as usize].0;
        let mut at = Cursor::new(func);
        let base = at.before(store.before).ins_value(Op::SlotAddr(frame.slot), &[], Type::PTR);
        at.ins(Op::Store(frame.access(store.word)), &[base, value], &[]);
    }
}

/// The points where the frame is pushed. None dominates another.
fn pushes(
    func: &Func,
    uses: &[FrameUse],
    slots: &Slots,
    flow: &Flow,
    tree: &DomTree,
    loops: &Loops,
) -> Vec<Push> {
    let mut sorted: Vec<FrameUse> = uses.to_vec();
    sorted.sort_by_key(|u| (flow.doom(u.block), slots.position(u.at)));
    let (normal, doomed): (Vec<FrameUse>, Vec<FrameUse>) =
        sorted.into_iter().partition(|u| flow.doom(u.block).is_none());
    let mut places: Vec<Push> = Vec::new();
    let mut normal_place = point(func, &normal, tree, loops);
    for group in doomed.chunk_by(|a, b| flow.doom(a.block) == flow.doom(b.block)) {
        let Some(place) = point(func, group, tree, loops) else { continue };
        if flow.doom(place.block).is_some() {
            places.push(place);
            continue;
        }
        // An infinite loop is entered from a block that may return, so its push, which is outside the loop,
        // is merged with the normal one.
        normal_place = match normal_place {
            None => Some(place),
            Some(other) => {
                let words = other.words.max(place.words);
                let block = tree.common_dominator(other.block, place.block).unwrap_or(other.block);
                let same = [other, place].into_iter().find(|p| p.block == block);
                let at = |block| Some(Push { block, before: func.terminator(block)?, words });
                match same {
                    Some(push) => Some(Push { words, ..push }),
                    None => at(out_of_loops(block, tree, loops)),
                }
            }
        };
    }
    if let Some(normal) = normal_place {
        let covered = |p: &Push| tree.dominates(normal.block, p.block);
        let words = places.iter().filter(|p| covered(p)).map(|p| p.words).max().unwrap_or(0);
        places.retain(|p| !covered(p));
        places.insert(0, Push { words: normal.words.max(words), ..normal });
    }
    places
}

/// The nearest point that dominates all uses and is outside all loops.
fn point(func: &Func, uses: &[FrameUse], tree: &DomTree, loops: &Loops) -> Option<Push> {
    let mut block = uses.first()?.block;
    for u in uses {
        block = tree.common_dominator(block, u.block)?;
    }
    let words = uses.iter().map(|u| u.words).max()?;
    let outside = out_of_loops(block, tree, loops);
    let first = uses.iter().find(|u| u.block == block && outside == block).map(|u| u.at);
    Some(Push { block: outside, before: first.or_else(|| func.terminator(outside))?, words })
}

fn out_of_loops(mut block: Block, tree: &DomTree, loops: &Loops) -> Block {
    while let Some(mut around) = loops.loop_of(block) {
        while let Some(parent) = loops.parent(around) {
            around = parent;
        }
        match tree.idom(loops.header(around)) {
            Some(above) => block = above,
            // The entry has no predecessors, so it is not in a loop.
            None => return block,
        }
    }
    block
}

struct Builder<'a> {
    func: &'a mut Func,
    cx: &'a Context,
    options: &'a Options,
    frame: Option<Frame>,
}

impl Builder<'_> {
    /// The words that stores in the push's block initialise after the push and before the first safepoint.
    fn stored_first(&self, slots: &Slots, push: &Push, stores: &[Store]) -> Vec<bool> {
        let mut stored = vec![false; push.words as usize];
        let from = slots.position(push.before);
        let mut rest = std::iter::successors(Some(push.before), |&i| self.func.next_inst(i));
        let first = rest.find(|&i| is_safepoint(self.func, self.cx, i));
        let until = first.map_or(u32::MAX, |i| slots.position(i));
        let mut store = |word: u32| {
            if let Some(stored) = stored.get_mut(word as usize) {
                *stored = true;
            }
        };
        for s in stores {
            if (from..=until).contains(&slots.position(s.before)) {
                store(s.word);
            }
        }
        // The argument words of a call are stored before it.
        if let Some(call) = first.filter(|&i| matches!(self.func.op(i), Op::CallArgs(_))) {
            (0..self.func.args(call).len() as u32).for_each(store);
        }
        stored
    }

    fn push(&mut self, push: &Push, stored: &[bool]) {
        let Some(frame) = self.frame else { return };
        let types = &self.cx.types;
        let mut at = Cursor::new(self.func);
        let base = at.before(push.before).ins_value(Op::SlotAddr(frame.slot), &[], Type::PTR);
        let null = at.func.bits(types, Type::TRACKED, 0);
        let is_stored = |word: u32| stored.get(word as usize).is_none_or(|&stored| stored);
        let mut word = 0;
        while word < push.words {
            let first = frame.access(word);
            // Clears two words with one vector store where they are aligned.
            if first.offset % 16 == 0 && !is_stored(word) && !is_stored(word + 1) {
                let nulls = at.func.bits(types, Type::V128, 0);
                at.ins(Op::Store(first), &[base, nulls], &[]);
                word += 2;
                continue;
            }
            if !is_stored(word) {
                at.ins(Op::Store(first), &[base, null], &[]);
            }
            word += 1;
        }
        let count = at.int(types, Type::I64, i128::from(push.words) * 4);
        at.ins(Op::Store(access(0, Region::Frame)), &[base, count], &[]);
        let (thread, link) = thread_word(&mut at, self.options);
        let previous = at.ins_value(Op::Load(link), &[thread], Type::PTR);
        at.ins(Op::Store(access(8, Region::Frame)), &[base, previous], &[]);
        at.ins(Op::Store(link), &[thread, base], &[]);
    }

    fn null(&mut self, frame: Frame, null: &Null) {
        let mut at = Cursor::new(self.func);
        let base = at.before(null.before).ins_value(Op::SlotAddr(frame.slot), &[], Type::PTR);
        let value = at.func.bits(&self.cx.types, Type::TRACKED, 0);
        for &word in &null.words {
            at.ins(Op::Store(frame.access(word)), &[base, value], &[]);
        }
    }

    fn pop(&mut self, frame: Frame, before: Inst) {
        let mut at = Cursor::new(self.func);
        let base = at.before(before).ins_value(Op::SlotAddr(frame.slot), &[], Type::PTR);
        let previous = at.ins_value(Op::Load(access(8, Region::Frame)), &[base], Type::PTR);
        let (thread, link) = thread_word(&mut at, self.options);
        at.ins(Op::Store(link), &[thread, previous], &[]);
    }

    /// Emits a pop on every exit from the region dominated by the push.
    fn pops(&mut self, push: &Push, flow: &Flow, tree: &DomTree, doomed_push: bool) {
        let Some(frame) = self.frame else { return };
        let mut work = vec![push.block];
        while let Some(block) = work.pop() {
            work.extend(tree.children(block));
            let Some(end) = self.func.terminator(block) else { continue };
            if self.func.op(end) == Op::Return {
                self.pop(frame, end);
                continue;
            }
            let leaves = |target: Block| {
                let outside = target == push.block || !tree.dominates(push.block, target);
                // Edges to doomed blocks need no pop, unless a doomed block pushes the frame again.
                outside && (doomed_push || flow.doom(target).is_none())
            };
            let targets = self.func.inst_blocks(end).to_vec();
            match targets.iter().filter(|&&t| leaves(t)).count() {
                0 => {}
                all if all == targets.len() => self.pop(frame, end),
                _ => {
                    for (n, &target) in targets.iter().enumerate().filter(|&(_, &t)| leaves(t)) {
                        let middle = self.split_edge(block, end, n, target);
                        self.pop(frame, middle);
                    }
                }
            }
        }
    }

    /// Splits an edge; returns the jump of the new block.
    fn split_edge(&mut self, from: Block, end: Inst, number: usize, to: Block) -> Inst {
        let middle = self.func.make_block();
        self.func.insert_block_after(middle, from);
        self.func.inst_blocks_mut(end)[number] = middle;
        let jump = Cursor::new(self.func).at_bottom(middle).goto(to);
        let phis: Vec<Inst> = self.func.block_insts(to).take_while(|&i| self.func.op(i) == Op::Phi).collect();
        for phi in phis {
            for block in self.func.inst_blocks_mut(phi).iter_mut().filter(|b| **b == from) {
                *block = middle;
            }
        }
        jump
    }
}

/// Restores the function's innermost frame at the head of each handler. The functions that the exception
/// unwound may have pushed frames, even if this function has none.
pub(crate) fn restore_in_handlers(
    func: &mut Func,
    options: &Options,
    linked: Option<Frame>,
    flow: &Flow,
    tree: &DomTree,
) {
    if !flow.catches() {
        return;
    }
    let mut at = Cursor::new(func);
    at.at_first_insertion_point(tree.preorder()[0]);
    let entry: Option<Value> = match linked {
        Some(_) => None,
        None => {
            let (thread, link) = thread_word(&mut at, options);
            Some(at.ins_value(Op::Load(link), &[thread], Type::PTR))
        }
    };
    let mut done: SecondaryMap<Block, bool> = SecondaryMap::new();
    for &handler in flow.handlers() {
        if std::mem::replace(&mut done[handler], true) {
            continue;
        }
        at.at_first_insertion_point(handler);
        let innermost = match (entry, linked) {
            (Some(value), _) => value,
            (None, Some(frame)) => at.ins_value(Op::SlotAddr(frame.slot), &[], Type::PTR),
            (None, None) => continue,
        };
        let (thread, link) = thread_word(&mut at, options);
        at.ins(Op::Store(link), &[thread, innermost], &[]);
    }
}

/// The thread pointer, and the access to its word for the innermost frame.
fn thread_word(at: &mut Cursor<'_>, options: &Options) -> (Value, Access) {
    let thread = at.ins_value(Op::ThreadAddr, &[], Type::PTR);
    (thread, access(options.heap.gc_stack as i32, Region::Thread))
}

pub(crate) fn word_address(at: &mut Cursor<'_>, cx: &Context, frame: Frame, word: u32) -> Value {
    let base = at.ins_value(Op::SlotAddr(frame.slot), &[], Type::PTR);
    let offset = at.int(&cx.types, Type::I64, i128::from(frame.offset(word)));
    at.ins_value(Op::Intrinsic(Intrinsic::AddPtr), &[base, offset], Type::PTR)
}
