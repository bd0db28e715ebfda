//! Computes both sides of a short branch and chooses.
//!
//! ```text
//! p: goto a if c, else b                   p: %1 = sub_int(x, 87)
//! a: %1 = sub_int(x, 87); goto j              %2 = sub_int(x, 48)
//! b: %2 = sub_int(x, 48); goto j    ==>       %3 = ifelse(c, %1, %2)
//! j: %3 = φ (a => %1, b => %2)                (all of j)
//! ```
//!
//! A branch on random data is often mispredicted, and each time costs as much as fifteen to
//! twenty sums; the processor's conditional move costs one. So a side may have a few operations of one cycle each,
//! [`MAX_COST`] on both sides together, and at most [`MAX_CHOSEN`] values may be chosen.
//!
//! | not converted | because |
//! |---|---|
//! | a side that loads, divides, may throw or computes with floats | it costs more than the branch, or must not happen |
//! | φ of 128 bits, and of floats but for the lesser or the greater of two that are compared | the processor has no conditional move for them; Cranelift would branch |
//! | φ of pointers to objects | the result of `ifelse` would be another root |
//! | a side that is cold | the branch is predicted |
//! | a position that is kept while others are tried (`v[i] > v[best] ? i : best`) | the next condition would wait for the choice and a load; the branch, which is predicted, waits for neither |
//! | a value that may be undefined | it may be passed on, but `ifelse` computes with it |
//!
//! Blocks are visited from the end of the function, and a short block after the branch that has no other predecessor is
//! merged at once, so that nested choices become one line; `simplify-cfg` merges the long ones.
//!
//! Cost: each block's end, and the instructions of short sides. Breaks every fact. Not done: branches whose probability is known;
//! sides that end in different blocks; stores.

use crate::facts::Fact;
use crate::heads::{head_phis, rename_phi_blocks};
use crate::pass::{Changed, Pass, PassCx, PassLevel};
use crate::replace::Replacements;
use crate::undefined::MaybeUndefined;
use brolga_ir::analysis::Cfg;
use brolga_ir::builtin::Builtin;
use brolga_ir::cursor::Cursor;
use brolga_ir::effects::effects;
use brolga_ir::intrinsic::Intrinsic;
use brolga_ir::{Block, Func, Inst, Op, Type, Types, Value};
use cranelift_entity::SecondaryMap;
use cranelift_entity::packed_option::PackedOption;
use smallvec::{SmallVec, smallvec};

pub(crate) const PASS: Pass =
    Pass::new("if-convert", PassLevel::Low, run).needs(&[Fact::Cfg]).breaks(&[Fact::Cfg, Fact::Uses]);

/// The cost limit of both sides together, in operations of one cycle.
const MAX_COST: u32 = 4;
/// From this ratio on, the likelier edge of a branch counts as the only one.
const MAX_BIAS: u32 = 16;
/// How many values may be chosen.
const MAX_CHOSEN: usize = 2;
/// How many instructions are looked at for what a condition is made of.
const MAX_LOOKED_AT: u32 = 16;
/// Instructions of a block that is merged: a side, a choice for each φ, and the terminators. A longer one is not a side of
/// another branch, and would move once for each branch above it.
const MAX_TAKEN_IN: usize = 12;

fn run(func: &mut Func, cx: &mut PassCx<'_>) -> Changed {
    let (cfg, rpo) = (cx.facts.cfg(), cx.facts.rpo());
    let mut graph = Graph::of(cfg, rpo.blocks());
    let mut values = Replacements::default();
    let mut undefined = None;
    for &block in rpo.blocks().iter().rev() {
        let Some(choice) = Choice::at(func, cx.types(), &graph, &mut values, block) else { continue };
        let undefined = undefined.get_or_insert_with(|| MaybeUndefined::of(func, cfg, rpo));
        if choice.computes_with(func, undefined) {
            continue;
        }
        if !cx.spend("converted branches") {
            break;
        }
        choice.convert(func, &mut graph);
        take_in(func, &mut graph, &mut values, block);
    }
    values.apply(func, cx.context());
    if cx.changed() == Changed::Yes {
        rename_phi_blocks(func, &graph.ends);
    }
    cx.changed()
}

/// The graph as it changes.
struct Graph {
    /// By block: the number of its incoming edges.
    ways_in: SecondaryMap<Block, usize>,
    /// By block that merged others: the block that φ edges name for its end.
    name: SecondaryMap<Block, PackedOption<Block>>,
    /// By such a name: the block that ends there now.
    ends: SecondaryMap<Block, PackedOption<Block>>,
}

impl Graph {
    fn of(cfg: &Cfg, blocks: &[Block]) -> Graph {
        let mut ways_in = SecondaryMap::new();
        for &block in blocks {
            ways_in[block] = cfg.preds(block).len();
        }
        Graph { ways_in, name: SecondaryMap::new(), ends: SecondaryMap::new() }
    }

    fn name(&self, block: Block) -> Block {
        self.name[block].expand().unwrap_or(block)
    }
}

/// A branch with one or two short sides.
struct Choice {
    end: Inst,
    /// The blocks between the branch and the join, which are removed.
    sides: SmallVec<[Block; 2]>,
    join: Block,
    /// By φ of the join with an edge from here: its operand if the condition holds, and otherwise.
    phis: SmallVec<[(Inst, Value, Value); 4]>,
    /// The blocks that the φ name for the two edges.
    names: [Block; 2],
}

impl Choice {
    fn at(
        func: &Func,
        types: &Types,
        graph: &Graph,
        values: &mut Replacements,
        block: Block,
    ) -> Option<Choice> {
        let end = func.terminator(block).filter(|&t| func.op(t) == Op::Branch)?;
        let &[yes, no] = func.inst_blocks(end) else { return None };
        // A branch that is strongly biased is predicted, and then costs less than the wasted computation.
        if yes == no || func.branch_weights(end).is_some_and(|weights| weights.is_biased(MAX_BIAS)) {
            return None;
        }
        let side = |b: Block| join_of_side(func, graph, b).map(|join| (b, join));
        let (sides, join): (SmallVec<[Block; 2]>, Block) = match (side(yes), side(no)) {
            (Some((_, a)), Some((_, b))) if a == b => (smallvec![yes, no], a),
            (Some((_, join)), _) if join == no => (smallvec![yes], no),
            (_, Some((_, join))) if join == yes => (smallvec![no], yes),
            _ => return None,
        };
        if join == block || sides.contains(&join) {
            return None;
        }
        let mut cost = 0;
        for inst in sides.iter().flat_map(|&b| func.block_insts(b)).filter(|&i| !func.op(i).is_terminator()) {
            cost += cost_of(func, types, inst)?;
            if cost > MAX_COST {
                return None;
            }
        }
        let names = [yes, no].map(|b| if sides.contains(&b) { graph.name(b) } else { block });
        let mut phis = SmallVec::new();
        let mut chosen = 0;
        for phi in head_phis(func, join) {
            let from = |name| func.phi_edges(phi).find(|&(b, _)| b == name).map(|(_, v)| v);
            match (func.op(phi), names.map(from)) {
                (Op::Phi, [None, None]) => {}
                (Op::Phi, [Some(x), Some(y)]) => {
                    let [x, y] = [x, y].map(|v| values.resolve(v));
                    chosen += usize::from(x != y);
                    let is_one_step = is_movable(func.ty(x)) || is_extreme(func, func.args(end)[0], x, y);
                    if x != y && !is_one_step || chosen > MAX_CHOSEN {
                        return None;
                    }
                    let cond = func.args(end)[0];
                    if x != y && (keeps_position(func, cond, x, y) || keeps_position(func, cond, y, x)) {
                        return None;
                    }
                    phis.push((phi, x, y));
                }
                _ => return None,
            }
        }
        Some(Choice { end, sides, join, phis, names })
    }

    fn hoisted<'f>(&'f self, func: &'f Func) -> impl Iterator<Item = Inst> + 'f {
        let all = self.sides.iter().flat_map(|&side| func.block_insts(side));
        all.filter(|&i| !func.op(i).is_terminator())
    }

    /// Whether an operation would use a value that may be undefined.
    fn computes_with(&self, func: &Func, undefined: &MaybeUndefined) -> bool {
        let chosen = self.phis.iter().filter(|(_, x, y)| x != y).flat_map(|&(_, x, y)| [x, y]);
        let operands = self.hoisted(func).flat_map(|i| func.args(i).iter().copied());
        chosen.chain(operands).any(|v| undefined.has(func, v))
    }

    fn convert(self, func: &mut Func, graph: &mut Graph) {
        let Some(block) = func.inst_block(self.end) else { return };
        for inst in self.hoisted(func).collect::<SmallVec<[Inst; 8]>>() {
            func.remove_inst(inst);
            func.insert_before(inst, self.end);
        }
        let cond = func.args(self.end)[0];
        for (phi, x, y) in self.phis {
            let value = if x == y {
                x
            } else {
                let ty = func.ty(x);
                let mut at = Cursor::new(func);
                at.before(self.end);
                at.ins_value(Op::Builtin(Builtin::Ifelse), &[cond, x, y], ty)
            };
            func.retain_phi_edges(phi, |from, _| !self.names.contains(&from));
            func.add_phi_edge(phi, block, value);
        }
        func.set_op(self.end, Op::Goto, &[]);
        func.set_inst_blocks(self.end, &[self.join]);
        for side in self.sides {
            while let Some(inst) = func.last_inst(side) {
                func.remove_inst(inst);
            }
            func.remove_block(side);
        }
        graph.ways_in[self.join] -= 1;
    }
}

/// The successor of a block that only computes and has only the branch as predecessor.
fn join_of_side(func: &Func, graph: &Graph, side: Block) -> Option<Block> {
    let end = func.terminator(side).filter(|&t| func.op(t) == Op::Goto)?;
    let &[join] = func.inst_blocks(end) else { return None };
    (graph.ways_in[side] == 1 && !func.is_cold(side) && func.entry() != Some(side)).then_some(join)
}

/// The cost of an operation in cycles; `None` if it must not be speculated.
fn cost_of(func: &Func, types: &Types, inst: Inst) -> Option<u32> {
    let does = effects(func, types, inst);
    if !does.may_be_hoisted() || does.may_safepoint || !does.reads.is_empty() {
        return None;
    }
    let fits = |v: Value| is_movable(func.ty(v));
    if !func.results(inst).all(fits) || !func.args(inst).iter().all(|&v| fits(v)) {
        return None;
    }
    match func.op(inst) {
        Op::Copy => Some(0),
        Op::Intrinsic(Intrinsic::MulInt) => {
            // A product with these factors is one addition with an operand that is shifted, or a shift.
            let is_sum = func.args(inst).iter().any(|&v| matches!(func.as_bits(v), Some(2..=5 | 8 | 9)));
            Some(if is_sum { 1 } else { 3 })
        }
        Op::Intrinsic(i) => is_short(i).then_some(1),
        Op::Builtin(Builtin::Ifelse) => Some(1),
        _ => None,
    }
}

/// Whether the processor takes one cycle for it.
fn is_short(op: Intrinsic) -> bool {
    use Intrinsic::*;
    matches!(
        op,
        AddInt
            | SubInt
            | NegInt
            | AndInt
            | OrInt
            | XorInt
            | NotInt
            | ShlInt
            | LshrInt
            | AshrInt
            | TruncInt
            | ZextInt
            | SextInt
            | EqInt
            | NeInt
            | SltInt
            | SleInt
            | UltInt
            | UleInt
            | AddPtr
            | SubPtr
    )
}

/// Whether a conditional move chooses between values of this type.
fn is_movable(ty: Type) -> bool {
    matches!(ty, Type::I8 | Type::I16 | Type::I32 | Type::I64 | Type::PTR)
}

/// Whether `x` if the condition holds and else `y` is the lesser or the greater of two floats that the condition compares, for which the processor has an
/// instruction. For zeros and NaN it yields the same operand as the choice.
fn is_extreme(func: &Func, condition: Value, x: Value, y: Value) -> bool {
    let Some(compare) = func.def_inst(condition) else { return false };
    let (Op::Intrinsic(Intrinsic::LtFloat), &[a, b]) = (func.op(compare), func.args(compare)) else {
        return false;
    };
    matches!(func.ty(a), Type::F32 | Type::F64) && ((a, b) == (x, y) || (b, a) == (x, y))
}

/// Whether the condition looks at memory at a position that a φ keeps, and the choice is between that position and one that is not made of it.
fn keeps_position(func: &Func, cond: Value, kept: Value, other: Value) -> bool {
    let is_phi = func.def_inst(kept).is_some_and(|inst| func.op(inst) == Op::Phi);
    is_phi && is_made_of(func, cond, kept, true) && !is_made_of(func, other, kept, false)
}

/// Whether a value is computed from another one, through a load if `by_load`.
fn is_made_of(func: &Func, value: Value, from: Value, by_load: bool) -> bool {
    let (mut ahead, mut steps): (SmallVec<[(Value, bool); 8]>, _) = (smallvec![(value, !by_load)], 0);
    while let Some((value, loaded)) = ahead.pop() {
        if value == from && loaded {
            return true;
        }
        let Some(inst) = func.def_inst(value).filter(|&inst| func.op(inst) != Op::Phi) else { continue };
        steps += 1;
        if steps > MAX_LOOKED_AT {
            return false;
        }
        let loaded = loaded || matches!(func.op(inst), Op::Load(_));
        ahead.extend(func.args(inst).iter().map(|&arg| (arg, loaded)));
    }
    false
}

/// Merges the target of a jump if it has no other predecessor.
fn take_in(func: &mut Func, graph: &mut Graph, values: &mut Replacements, block: Block) {
    let Some(jump) = func.terminator(block) else { return };
    let &[next] = func.inst_blocks(jump) else { return };
    if graph.ways_in[next] != 1 || func.entry() == Some(next) || next == block {
        return;
    }
    if func.block_insts(next).take(MAX_TAKEN_IN + 1).count() > MAX_TAKEN_IN {
        return;
    }
    let phis: Vec<Inst> = head_phis(func, next).collect();
    if phis.iter().any(|&phi| func.args(phi).len() != 1) {
        return;
    }
    for phi in phis {
        if let (&[value], Some(result)) = (func.args(phi), func.result(phi)) {
            values.set(result, value);
            func.remove_inst(phi);
        }
    }
    func.remove_inst(jump);
    if let Some(first) = func.first_inst(next) {
        func.split_block(first, block);
    }
    func.remove_block(next);
    let name = graph.name(next);
    graph.name[block] = name.into();
    graph.ends[name] = block.into();
}
