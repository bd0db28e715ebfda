//! Copies of the blocks of a loop, and the division of a counted loop into a part that may assume more and the rest.
//!
//! ```text
//!   p ─> h … l ─┬─> x            p ─ start < limit? ─┬─> m ─> h' … l' ─┬─> e ─ as in l ─┬─> d
//!        ^──────┘          ==>                       │        ^────────┘                │
//!                                                    └─> r <────────────────────────────┘
//!                                                        └─> h … l ─┬─> d ─> x
//!                                                            ^──────┘
//! ```
//!
//! [`split_at`] makes the second picture of the first. The *main* loop `h' … l'` executes the iterations whose counter is less
//! than `limit`, without wrapping in the range of its type; the *rest*, the loop as it was, executes those that remain, if
//! any. The caller chooses a limit up to which every iteration's test holds ([`end_of`] and less), so the order of all
//! observable effects stays. The caller establishes the assumptions of the main loop: that an index is in range (`irce`) or that
//! several iterations follow each other without a test (`unroll`).
//!
//! Values of the loop that are used after it have two definitions afterwards; both functions leave the choice to
//! `ssa_repair`. Copyable instructions: [`is_copyable`].
//!
//! Cost: the copied instructions; [`Escapes`] visits the uses of the loop's values once.

use crate::counted::{Counted, Relation, Shape, Signed, Tested, signed};
use crate::heads::head_phis;
use crate::ssa_repair::Repair;
use brolga_ir::analysis::{Loop, Loops, Uses};
use brolga_ir::builtin::Builtin;
use brolga_ir::constant::Const;
use brolga_ir::cursor::Cursor;
use brolga_ir::effects::effects;
use brolga_ir::intrinsic::{self, Intrinsic};
use brolga_ir::{Block, Func, Inst, Op, Type, Types, Value};
use rustc_hash::{FxHashMap, FxHashSet};

/// The copies of blocks and values.
#[derive(Debug, Default)]
pub(crate) struct Copied {
    pub(crate) blocks: FxHashMap<Block, Block>,
    pub(crate) values: FxHashMap<Value, Value>,
}

impl Copied {
    /// The copy of a value; what was not copied is its own copy.
    pub(crate) fn value(&self, value: Value) -> Value {
        self.values.get(&value).copied().unwrap_or(value)
    }

    /// The copy of a block; what was not copied is its own copy.
    pub(crate) fn block(&self, block: Block) -> Block {
        self.blocks.get(&block).copied().unwrap_or(block)
    }
}

/// How many instructions a loop has that would be copied, or `None` if one may not be: an instruction whose place is part of its
/// meaning, or a handler's entrance.
pub(crate) fn is_copyable(func: &Func, types: &Types, loops: &Loops, l: Loop) -> Option<usize> {
    let mut count = 0;
    for inst in loops.blocks(l).iter().flat_map(|&b| func.block_insts(b)) {
        let op = func.op(inst);
        let fixed = effects(func, types, inst).pinned && op != Op::Phi;
        if (fixed && !op.is_terminator()) || op == Op::Enter {
            return None;
        }
        count += usize::from(!matches!(op, Op::Phi | Op::Goto | Op::Safepoint));
    }
    Some(count)
}

/// The values of a loop that are used outside of it, each with its block.
#[derive(Debug)]
pub(crate) struct Escapes(Vec<(Value, Block)>);

impl Escapes {
    pub(crate) fn of(func: &Func, loops: &Loops, uses: &Uses, l: Loop) -> Escapes {
        let mut found = Vec::new();
        for &block in loops.blocks(l) {
            for inst in func.block_insts(block) {
                let outside = |inst: Inst| func.inst_block(inst).is_none_or(|b| !loops.contains(l, b));
                let escapes = |&v: &Value| uses.of(v).iter().any(|one| outside(one.inst));
                found.extend(func.results(inst).filter(escapes).map(|v| (v, block)));
            }
        }
        Escapes(found)
    }

    /// Whether no value escapes.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Notes that all these copies make the values as well.
    pub(crate) fn repair(self, copies: &[Copied], repair: &mut Repair) {
        for (value, block) in self.0 {
            let copied = copies.iter().map(|copy| (copy.block(block), copy.value(value)));
            repair.add(value, std::iter::once((block, value)).chain(copied).collect());
        }
    }
}

/// Which instructions are left out of a copy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Polls {
    /// None.
    Copied,
    /// Safepoints: stop requests are polled often enough elsewhere.
    Left,
}

/// Copies the blocks of a loop, its head first, and puts the copies after `after`. Jumps between them lead to the copies,
/// all others keep their targets, with new edges for the φ there. A φ that has an entry in `values` is replaced by that
/// value: these are not copied.
pub(crate) fn copy_blocks(
    func: &mut Func,
    blocks: &[Block],
    after: Block,
    values: FxHashMap<Value, Value>,
    polls: Polls,
) -> Copied {
    let mut copied = Copied { blocks: FxHashMap::default(), values };
    let mut last = after;
    for &block in blocks {
        let new = func.make_block();
        func.insert_block_after(new, last);
        if func.is_cold(block) {
            func.set_cold(new);
        }
        copied.blocks.insert(block, new);
        last = new;
    }
    let inside: FxHashSet<Block> = copied.blocks.values().copied().collect();
    let mut made = Vec::new();
    for &block in blocks {
        let mut next = func.first_inst(block);
        while let Some(inst) = next {
            next = func.next_inst(inst);
            let op = func.op(inst);
            let given = func.result(inst).is_some_and(|v| copied.values.contains_key(&v));
            if given || (op == Op::Safepoint && polls == Polls::Left) {
                continue;
            }
            let args = func.args(inst).to_vec();
            let targets: Vec<Block> = func.inst_blocks(inst).iter().map(|&b| copied.block(b)).collect();
            let types: Vec<Type> = func.results(inst).map(|v| func.ty(v)).collect();
            let new = func.make_inst(op, &args, &targets, &types);
            func.set_place(new, func.place(inst));
            func.copy_hint(inst, new);
            func.append_inst(new, copied.block(block));
            copied.values.extend(func.results(inst).zip(func.results(new)));
            made.push(new);
        }
    }
    let head = blocks.first().map(|&b| copied.block(b));
    for inst in made {
        for arg in func.args_mut(inst) {
            *arg = copied.value(*arg);
        }
        // Blocks other than the head have predecessors outside the loop only if those are unreachable, and none of those
        // leads to a copy.
        if func.op(inst) == Op::Phi && func.inst_block(inst) != head {
            func.retain_phi_edges(inst, |from, _| inside.contains(&from));
        }
    }
    for &block in blocks {
        let mut targets = func.successors(block).to_vec();
        targets.retain(|t| !copied.blocks.contains_key(t));
        targets.dedup();
        for target in targets {
            for phi in head_phis(func, target).collect::<Vec<_>>() {
                let value = func.phi_edges(phi).find(|&(b, _)| b == block).map(|(_, v)| v);
                if let Some(value) = value {
                    func.add_phi_edge(phi, copied.block(block), copied.value(value));
                }
            }
        }
    }
    copied
}

/// Replaces a block by another in the φ edges of a block.
pub(crate) fn rename_pred(func: &mut Func, block: Block, from: Block, to: Block) {
    for phi in head_phis(func, block).collect::<Vec<_>>() {
        for pred in func.inst_blocks_mut(phi).iter_mut().filter(|p| **p == from) {
            *pred = to;
        }
    }
}

/// Removes the φ edges from a block that is no longer a predecessor.
pub(crate) fn drop_pred(func: &mut Func, block: Block, pred: Block) {
    for phi in head_phis(func, block).collect::<Vec<_>>() {
        func.retain_phi_edges(phi, |from, _| from != pred);
    }
}

/// Replaces a target of a terminator.
pub(crate) fn retarget(func: &mut Func, end: Inst, from: Block, to: Block) {
    for target in func.inst_blocks_mut(end).iter_mut().filter(|t| **t == from) {
        *target = to;
    }
}

/// A terminator becomes a jump.
pub(crate) fn make_jump(func: &mut Func, end: Inst, target: Block) {
    func.set_op(end, Op::Goto, &[]);
    func.set_inst_blocks(end, &[target]);
}

/// A new block after `after` that jumps to `target`, with the target's source location.
pub(crate) fn jump_block(func: &mut Func, after: Block, target: Block) -> Block {
    let block = func.make_block();
    func.insert_block_after(block, after);
    let jump = func.make_inst(Op::Goto, &[], &[target], &[]);
    if let Some(first) = func.first_inst(target) {
        func.set_place(jump, func.place(first));
    }
    func.append_inst(jump, block);
    block
}

/// Splits the edge from `from` to `to` with a new block.
pub(crate) fn split_edge(func: &mut Func, from: Block, to: Block) -> Block {
    let between = jump_block(func, from, to);
    if let Some(end) = func.terminator(from) {
        retarget(func, end, to, between);
    }
    rename_pred(func, to, from, between);
    between
}

/// Inserts an integer operation before the terminator of a block.
pub(crate) fn ins(func: &mut Func, block: Block, op: Intrinsic, args: &[Value], ty: Type) -> Value {
    Cursor::new(func).before_terminator(block).ins_value(Op::Intrinsic(op), args, ty)
}

/// The smaller of two signed 64-bit integers, at the end of a block.
pub(crate) fn smaller(func: &mut Func, block: Block, a: Value, b: Value) -> Value {
    if a == b {
        return a;
    }
    let less = ins(func, block, Intrinsic::SltInt, &[a, b], Type::I8);
    let choose = Op::Builtin(Builtin::Ifelse);
    Cursor::new(func).before_terminator(block).ins_value(choose, &[less, a, b], Type::I64)
}

/// The step of a loop that can be split: it counts upwards in 64 bits, and its test is signed or for equality, or unsigned where it starts with a
/// natural number. Then signed and unsigned comparisons with a natural bound agree; a bound that is negative as a signed
/// integer precedes all iterations, until the counter is negative as well.
pub(crate) fn splittable_step(func: &Func, counted: &Counted) -> Option<i128> {
    let step = counted.test.counter.const_step(func).filter(|&s| s > 0)?;
    let test = &counted.test;
    let natural = || signed(func, test.counter.start).is_some_and(|start| start >= 0);
    let has_end = has_end(test.relation) || test.relation == Relation::Less(Signed::No) && natural();
    (has_end && func.ty(test.counter.value) == Type::I64).then_some(step)
}

/// The step of a loop that can be split if it turns out to be greater than zero: as [`splittable_step`], but not a constant.
pub(crate) fn unknown_step(func: &Func, counted: &Counted) -> Option<Value> {
    let test = &counted.test;
    let may_count = has_end(test.relation) && test.counter.const_step(func).is_none();
    (may_count && func.ty(test.counter.value) == Type::I64).then_some(test.counter.step)
}

/// Whether every value before some end passes a test. A counter may jump over the bound from which it has to differ; the iterations before it are the
/// same then.
fn has_end(relation: Relation) -> bool {
    matches!(relation, Relation::Less(Signed::Yes) | Relation::AtMost(Signed::Yes) | Relation::Differs)
}

/// As [`end_of`], or less: no step from before it wraps.
pub(crate) fn end_in_range(func: &mut Func, types: &Types, counted: &Counted) -> Value {
    let end = end_of(func, types, counted);
    match splittable_step(func, counted) {
        Some(step @ 2..) => {
            let most = func.bits(types, Type::I64, (i128::from(i64::MAX) - step + 1) as u128);
            smaller(func, counted.shape.preheader, most, end)
        }
        _ => end,
    }
}

/// The first value of the counter, as a signed integer, past all iterations that pass the test; computed at the end of the
/// preheader. If there is no such integer it is the least one, so that no iteration is before it.
pub(crate) fn end_of(func: &mut Func, types: &Types, counted: &Counted) -> Value {
    let test = counted.test;
    // An iteration follows one whose counter passed, so testing before the step lets one step more pass; ending earlier is right too.
    match test.relation {
        Relation::AtMost(_) if test.tested == Tested::Next => {
            let one = func.bits(types, Type::I64, 1);
            match signed(func, test.bound) {
                Some(n) => func.bits(types, Type::I64, (n + 1) as u128),
                None => ins(func, counted.shape.preheader, Intrinsic::AddInt, &[test.bound, one], Type::I64),
            }
        }
        _ => test.bound,
    }
}

/// When the main loop is entered.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Enter {
    /// If the counter starts below the limit.
    Below,
    /// If it does and this is true.
    BelowAnd(Value),
    /// If this is true; it implies the former.
    If(Value),
}

/// The result of [`split_at`].
pub(crate) struct Split {
    /// The iterations of the main loop, in their order; each is a copy of the loop.
    pub(crate) iterations: Vec<Copied>,
}

/// Copies a loop `count` times after a copy of it, so that each continues with the values that the one before it ended with.
/// The latches still end as the loop's latch does. None uses a value of the loop itself, so that `ssa_repair` can
/// distinguish them.
pub(crate) fn chain(
    func: &mut Func,
    blocks: &[Block],
    shape: &Shape,
    first: Copied,
    count: usize,
) -> Vec<Copied> {
    let mut iterations = vec![first];
    for _ in 0..count {
        let Some(before) = iterations.last() else { break };
        let values = carried(func, shape, shape.latch, |v| before.value(v));
        let end = blocks.iter().map(|&b| before.block(b)).next_back().unwrap_or(shape.latch);
        iterations.push(copy_blocks(func, blocks, end, values, Polls::Left));
    }
    iterations
}

/// The operands of the φ of the head over the edge from a block.
pub(crate) fn carried(
    func: &mut Func,
    shape: &Shape,
    from: Block,
    value: impl Fn(Value) -> Value,
) -> FxHashMap<Value, Value> {
    let mut values = FxHashMap::default();
    for phi in head_phis(func, shape.header).collect::<Vec<_>>() {
        let Some(result) = func.result(phi) else { continue };
        let arrives = func.phi_edges(phi).find(|&(b, _)| b == from).map(|(_, v)| value(v));
        let ty = func.ty(result);
        // Without an edge the value is undefined.
        values.insert(result, arrives.unwrap_or_else(|| func.constant(Const::Undef(ty))));
    }
    values
}

/// Connects the end of each iteration but the last to the next one.
pub(crate) fn join_iterations(func: &mut Func, shape: &Shape, iterations: &[Copied]) {
    for pair in iterations.windows(2) {
        if let Some(end) = func.terminator(pair[0].block(shape.latch)) {
            make_jump(func, end, pair[1].block(shape.header));
        }
    }
}

/// Splits a loop at a limit that was made at the end of the preheader; a trip through the main loop is `count` iterations, and the
/// limit is such that all of them may be executed if the counter is below it and that the counter does not wrap in them.
pub(crate) fn split_at(
    func: &mut Func,
    loops: &Loops,
    counted: &Counted,
    limit: Value,
    enter: Enter,
    count: usize,
) -> Split {
    let Counted { shape, test } = *counted;
    let place = func.terminator(shape.preheader).map(|t| func.place(t)).unwrap_or_default();
    split_edge(func, shape.latch, test.exit);
    let blocks = loops.blocks(shape.l);
    let first = copy_blocks(func, blocks, shape.preheader, FxHashMap::default(), Polls::Copied);
    let iterations = chain(func, blocks, &shape, first, count.saturating_sub(1));
    join_iterations(func, &shape, &iterations);
    let (header, end) = (iterations[0].block(shape.header), &iterations[iterations.len() - 1]);
    let latch = end.block(shape.latch);

    // The entry.
    let main_pre = jump_block(func, shape.preheader, header);
    let rest = jump_block(func, latch, shape.header);
    let below = |func: &mut Func| {
        ins(func, shape.preheader, Intrinsic::SltInt, &[test.counter.start, limit], Type::I8)
    };
    let enters = match enter {
        Enter::Below => below(func),
        Enter::BelowAnd(known) => {
            let below = below(func);
            ins(func, shape.preheader, Intrinsic::AndInt, &[below, known], Type::I8)
        }
        Enter::If(enters) => enters,
    };
    if let Some(jump) = func.terminator(shape.preheader) {
        func.set_op(jump, Op::Branch, &[enters]);
        func.set_inst_blocks(jump, &[main_pre, rest]);
    }

    // The end of a trip through the main loop, and after it the test that the loop had.
    let goes_on = ins(func, latch, Intrinsic::SltInt, &[end.value(test.counter.next), limit], Type::I8);
    let after_main = func.make_block();
    func.insert_block_after(after_main, latch);
    let branch = func.make_inst(Op::Branch, &[goes_on], &[header, after_main], &[]);
    func.set_place(branch, place);
    if let Some(old) = func.terminator(latch) {
        func.remove_inst(old);
        // The test there no longer ends an iteration.
        func.set_branch_weights(old, None);
        func.append_inst(old, after_main);
        retarget(func, old, end.block(shape.header), rest);
        compare_in(func, old, after_main, latch);
    }
    func.append_inst(branch, latch);

    // Start and step of the main loop; the rest starts where the main loop ended.
    let phis: Vec<Inst> = head_phis(func, shape.header).collect();
    for phi in phis {
        let Some(result) = func.result(phi) else { continue };
        let from = |block| func.phi_edges(phi).find(|&(b, _)| b == block).map(|(_, v)| v);
        let (start, last) = (from(shape.preheader), from(shape.latch).map(|v| end.value(v)));
        if let Some(main_phi) = func.def_inst(iterations[0].value(result)) {
            func.retain_phi_edges(main_phi, |_, _| false);
            add_edges(func, main_phi, [(main_pre, start), (latch, last)]);
        }
        let merged = func.make_inst(Op::Phi, &[], &[], &[func.ty(result)]);
        func.set_place(merged, func.place(phi));
        func.prepend_inst(merged, rest);
        add_edges(func, merged, [(shape.preheader, start), (after_main, last)]);
        func.retain_phi_edges(phi, |b, _| b != shape.preheader);
        add_edges(func, phi, [(rest, func.result(merged))]);
    }
    Split { iterations }
}

/// Recomputes the comparison of a moved branch in its new block: the loop needs it no more, and none of its values is used
/// after the loop.
fn compare_in(func: &mut Func, branch: Inst, block: Block, from: Block) {
    let Some(compare) = func.args(branch).first().and_then(|&cond| func.def_inst(cond)) else { return };
    let is_compare =
        matches!(func.op(compare), Op::Intrinsic(op) if op.shape() == intrinsic::Shape::IntCompare);
    if func.inst_block(compare) != Some(from) || !is_compare {
        return;
    }
    let args = func.args(compare).to_vec();
    let copy = func.make_inst(func.op(compare), &args, &[], &[Type::I8]);
    func.set_place(copy, func.place(compare));
    func.prepend_inst(copy, block);
    if let Some(cond) = func.result(copy) {
        func.args_mut(branch)[0] = cond;
    }
}

fn add_edges<const N: usize>(func: &mut Func, phi: Inst, edges: [(Block, Option<Value>); N]) {
    for (block, value) in edges {
        if let Some(value) = value {
            func.add_phi_edge(phi, block, value);
        }
    }
}
