//! Values that are live at the entry or exit of a block.
//!
//! A walk from each use of a value back to its definition marks the blocks on the way (Boissinot and others,
//! "Computing Liveness Sets for SSA-Form Programs", 2011). Values are taken in ascending order, so a block's list is sorted
//! and "already marked" is a test of its last element. This needs no bit sets, and the cost is the size of
//! the answer: for 50,000 blocks and 100,000 values bit sets would take a gigabyte, while real programs need
//! a few entries per block.
//!
//! Notation: *live-in* values are needed on entry and defined elsewhere; the block's own φs are not among
//! them, and an operand of a φ is *live-out* of the predecessor it is paired with. Constants are never live.
//! Arguments are defined at the head of the entry. An operand of `φᶜ` names an instruction and is not a use.
//!
//! Not done: exceptions have no edges, so a value that a handler uses is not live-out of the protected blocks.

use super::cfg::Cfg;
use super::uses::Uses;
use crate::entity::{Block, Value};
use crate::func::{Func, ValueDef};
use crate::op::Op;
use cranelift_entity::EntityRef;

/// Live-in and live-out values of every block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Liveness {
    live_in: Vec<Vec<Value>>,
    live_out: Vec<Vec<Value>>,
}

impl Liveness {
    /// Computes the live values of `func`, in which definitions must dominate uses.
    pub fn compute(func: &Func, cfg: &Cfg) -> Liveness {
        let count = func.block_count();
        let mut live = Liveness { live_in: vec![Vec::new(); count], live_out: vec![Vec::new(); count] };
        let uses = Uses::compute(func);
        let mut work = Vec::new();
        for index in 0..func.value_count() {
            let value = Value::new(index);
            let home = match func.value_def(value) {
                ValueDef::Const(_) => continue,
                ValueDef::Param(_) => func.entry(),
                ValueDef::Result(inst, _) => func.inst_block(inst),
            };
            let Some(home) = home else { continue };
            for &used in uses.of(value) {
                let Some(user) = func.inst_block(used.inst) else { continue };
                match func.op(used.inst) {
                    Op::PhiC => {}
                    Op::Phi => {
                        let from = func.inst_blocks(used.inst).get(used.index as usize).copied();
                        if let Some(from) = from.filter(|&b| func.is_block(b)) {
                            live.leaves(value, from, home, &mut work);
                        }
                    }
                    _ if user == home => {}
                    _ => work.push(user),
                }
                while let Some(block) = work.pop() {
                    if live.live_in[block.index()].last() == Some(&value) {
                        continue;
                    }
                    live.live_in[block.index()].push(value);
                    for &pred in cfg.preds(block) {
                        live.leaves(value, pred, home, &mut work);
                    }
                }
            }
        }
        live
    }

    /// Marks `value` live-out of `block`, and queues the block unless it defines the value.
    fn leaves(&mut self, value: Value, block: Block, home: Block, work: &mut Vec<Block>) {
        let out = &mut self.live_out[block.index()];
        if out.last() != Some(&value) {
            out.push(value);
            if block != home {
                work.push(block);
            }
        }
    }

    /// The values that are needed on entry to the block, ascending.
    pub fn live_in(&self, block: Block) -> &[Value] {
        &self.live_in[block.index()]
    }

    /// The values that are needed after the block, ascending.
    pub fn live_out(&self, block: Block) -> &[Value] {
        &self.live_out[block.index()]
    }

    /// Whether the value is needed on entry to the block.
    pub fn is_live_in(&self, value: Value, block: Block) -> bool {
        self.live_in(block).binary_search(&value).is_ok()
    }

    /// Whether the value is needed after the block.
    pub fn is_live_out(&self, value: Value, block: Block) -> bool {
        self.live_out(block).binary_search(&value).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Type;
    use crate::analysis::graphs::{Random, func_of, large_graphs, random_graph};
    use crate::analysis::{DomTree, InstOrder};
    use crate::entity::Inst;
    use std::collections::BTreeSet;

    /// Puts values, uses that they dominate, and φ into the blocks of a graph. A use is at most `window`
    /// blocks after its definition.
    fn with_values(mut func: Func, seed: u64, window: usize) -> Func {
        let cfg = Cfg::compute(&func);
        let tree = DomTree::compute(&cfg);
        let mut random = Random(seed);
        let zero = func.constant(crate::Const::Bits { ty: Type::I64, bits: 0 });
        let blocks: Vec<Block> = tree.preorder().to_vec();
        let mut values: Vec<(Value, Block)> = Vec::new();
        for &block in &blocks {
            let end = func.terminator(block).unwrap();
            let copy = func.make_inst(Op::Copy, &[zero], &[], &[Type::I64]);
            func.insert_before(copy, end);
            values.push((func.result(copy).unwrap(), block));
        }
        for (n, &block) in blocks.iter().enumerate() {
            let end = func.terminator(block).unwrap();
            let near = &values[(n + 1).saturating_sub(window)..=n];
            let (value, home) = near[random.below(near.len())];
            if tree.dominates(home, block) {
                let copy = func.make_inst(Op::Copy, &[value], &[], &[Type::I64]);
                func.insert_before(copy, end);
            }
            let mut preds = cfg.preds(block).to_vec();
            preds.sort();
            preds.dedup();
            let phi = func.make_inst(Op::Phi, &[], &[], &[Type::I64]);
            for pred in preds {
                let (value, home) = near[random.below(near.len())];
                if tree.is_reachable(pred) && tree.dominates(home, pred) {
                    func.add_phi_edge(phi, pred, value);
                }
            }
            func.prepend_inst(phi, block);
        }
        func
    }

    /// Solves the equations by iterating until nothing changes.
    fn naive(func: &Func, cfg: &Cfg) -> Vec<(BTreeSet<Value>, BTreeSet<Value>)> {
        let mut sets = vec![(BTreeSet::new(), BTreeSet::new()); func.block_count()];
        loop {
            let before = sets.clone();
            for block in func.blocks() {
                let mut out: BTreeSet<Value> = BTreeSet::new();
                for &succ in cfg.succs(block) {
                    out.extend(sets[succ.index()].0.iter());
                    for phi in func.block_insts(succ).filter(|&i| func.op(i) == Op::Phi) {
                        out.extend(func.phi_edges(phi).filter(|e| e.0 == block).map(|e| e.1));
                    }
                }
                out.retain(|&v| func.as_const(v).is_none());
                let mut now = out.clone();
                for inst in func.block_insts(block).collect::<Vec<Inst>>().into_iter().rev() {
                    for result in func.results(inst) {
                        now.remove(&result);
                    }
                    if func.op(inst) != Op::Phi {
                        now.extend(func.args(inst).iter().filter(|&&v| func.as_const(v).is_none()));
                    }
                }
                sets[block.index()] = (now, out);
            }
            if sets == before {
                return sets;
            }
        }
    }

    #[test]
    fn agrees_with_the_equations() {
        for seed in 1..150 {
            let func = with_values(random_graph(seed, 20), seed, 20);
            let cfg = Cfg::compute(&func);
            let live = Liveness::compute(&func, &cfg);
            let expected = naive(&func, &cfg);
            for block in func.blocks() {
                let (ins, outs) = &expected[block.index()];
                assert_eq!(live.live_in(block), ins.iter().copied().collect::<Vec<_>>(), "seed {seed}");
                assert_eq!(live.live_out(block), outs.iter().copied().collect::<Vec<_>>(), "seed {seed}");
            }
        }
    }

    #[test]
    fn a_value_around_a_loop() {
        let func = with_values(func_of(&[&[1], &[1, 2], &[]]), 7, 3);
        let cfg = Cfg::compute(&func);
        let tree = DomTree::compute(&cfg);
        let mut order = InstOrder::new();
        let live = Liveness::compute(&func, &cfg);
        for block in func.blocks() {
            for &value in live.live_in(block) {
                let first = func.first_inst(block).unwrap();
                assert!(tree.value_dominates(&func, &mut order, value, first));
                assert!(live.is_live_in(value, block));
            }
        }
    }

    #[test]
    fn large_graphs_cost_what_the_answer_costs() {
        // In the other shapes values live through the whole function, so the answer itself is quadratic.
        let local = |(name, _): &(&str, Func)| matches!(*name, "chain" | "ladder");
        for (name, func) in large_graphs(50_000).into_iter().filter(local) {
            let func = with_values(func, 3, 10);
            let live = Liveness::compute(&func, &Cfg::compute(&func));
            let total: usize = func.blocks().map(|b| live.live_in(b).len()).sum();
            assert!(total < 1_000_000, "{name}: {total}");
        }
    }
}
