//! SSA: every definition precedes its uses on all paths.

use super::Checker;
use crate::entity::{Block, Inst, Value};
use crate::func::ValueDef;
use crate::op::Op;
use crate::types::Type;
use cranelift_entity::{EntityRef, EntitySet, SecondaryMap};
use std::collections::VecDeque;

/// Rules about definitions and uses.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SsaRule {
    /// `ssa-dominance`: the definition does not dominate the use.
    NotDominated {
        /// The operand's number, from 0.
        operand: usize,
        /// The definition.
        def: Inst,
        /// A path from the entry to the use that avoids the definition; empty if both are in one block.
        path: Vec<Block>,
    },
    /// `ssa-not-placed`: the operand's instruction is not placed.
    NotPlaced {
        /// The operand's number, from 0.
        operand: usize,
        def: Inst,
    },
    /// `ssa-phi-edge`: a φ names a block that is not a predecessor.
    NotPredecessor { block: Block, preds: Vec<Block> },
    /// `ssa-phi-twice`: a φ names a predecessor twice.
    EdgeTwice { block: Block },
    /// `ssa-phi-dominance`: the definition does not dominate the end of the predecessor.
    EdgeNotDominated {
        /// The predecessor.
        block: Block,
        /// The definition.
        def: Inst,
        /// A path from the entry through the predecessor that avoids the definition.
        path: Vec<Block>,
    },
    /// `ssa-phic`: a φᶜ names something other than a ϒ.
    NotUpsilon {
        /// The operand's number, from 0.
        operand: usize,
    },
    /// `ssa-phic-place`: a φᶜ outside a handler.
    PhiCNotInHandler,
    /// `ssa-upsilon`: a ϒ is named by something other than a φᶜ.
    UpsilonUsed { upsilon: Inst },
    /// `ssa-token`: a token is used or made by an operation that does not handle tokens.
    Token,
    /// `ssa-preserve`: `gc_preserve_end` names something other than a `gc_preserve_begin`.
    NotPreserve,
}

impl Checker<'_> {
    pub(super) fn ssa(&mut self) {
        let func = self.func;
        let mut named = EntitySet::new();
        let mut preds = EntitySet::new();
        let handlers = self.handlers();
        for block in func.blocks() {
            preds.clear();
            for &pred in self.cfg.preds(block) {
                preds.insert(pred);
            }
            for inst in func.block_insts(block) {
                match func.op(inst) {
                    Op::Phi => self.phi(inst, block, &preds, &mut named),
                    Op::PhiC => {
                        if handlers[block].is_none() {
                            self.at(inst, SsaRule::PhiCNotInHandler);
                        }
                        self.phic(inst);
                    }
                    _ => self.uses(inst),
                }
                self.tokens(inst);
            }
        }
    }

    /// By block: the `enter` whose handler it is.
    pub(super) fn handlers(&self) -> SecondaryMap<Block, Option<Inst>> {
        let mut handlers = SecondaryMap::new();
        for block in self.func.blocks() {
            if let Some(end) = self.func.terminator(block)
                && self.func.op(end) == Op::Enter
                && let Some(&handler) = self.func.inst_blocks(end).get(1)
            {
                handlers[handler] = Some(end);
            }
        }
        handlers
    }

    fn uses(&mut self, inst: Inst) {
        let func = self.func;
        // A region may begin on one of several paths.
        if func.op(inst) == Op::GcPreserveEnd {
            return;
        }
        let Some(block) = func.inst_block(inst) else { return };
        for (operand, &value) in func.args(inst).iter().enumerate() {
            let Some(def) = self.placed_def(inst, operand, value) else { continue };
            if func.op(def) == Op::Upsilon {
                self.at(inst, SsaRule::UpsilonUsed { upsilon: def });
            } else if self.tree.is_reachable(block)
                && !self.tree.inst_dominates(func, &mut self.order, def, inst)
            {
                let home = func.inst_block(def).filter(|&h| h != block);
                let path = home.map_or(Vec::new(), |home| self.path_around(home, block));
                self.at(inst, SsaRule::NotDominated { operand, def, path });
            }
        }
    }

    /// The instruction that defines an operand, which must be placed.
    fn placed_def(&mut self, inst: Inst, operand: usize, value: Value) -> Option<Inst> {
        let ValueDef::Result(def, _) = self.func.value_def(value) else { return None };
        if self.func.inst_block(def).is_some_and(|b| self.func.is_placed(b)) {
            return Some(def);
        }
        self.at(inst, SsaRule::NotPlaced { operand, def });
        None
    }

    fn phi(&mut self, inst: Inst, block: Block, preds: &EntitySet<Block>, named: &mut EntitySet<Block>) {
        let func = self.func;
        named.clear();
        for (operand, (from, value)) in func.phi_edges(inst).enumerate() {
            if !preds.contains(from) {
                let preds = self.cfg.preds(block).to_vec();
                self.at(inst, SsaRule::NotPredecessor { block: from, preds });
                continue;
            }
            if !named.insert(from) {
                self.at(inst, SsaRule::EdgeTwice { block: from });
            }
            let Some(def) = self.placed_def(inst, operand, value) else { continue };
            if func.op(def) == Op::Upsilon {
                self.at(inst, SsaRule::UpsilonUsed { upsilon: def });
                continue;
            }
            let dominated = self.tree.value_dominates_end(func, value, from);
            if self.tree.is_reachable(from) && !dominated {
                let path = func.inst_block(def).map_or(Vec::new(), |home| self.path_around(home, from));
                self.at(inst, SsaRule::EdgeNotDominated { block: from, def, path });
            }
        }
    }

    fn phic(&mut self, inst: Inst) {
        for (operand, &value) in self.func.args(inst).iter().enumerate() {
            let is_upsilon = self.func.def_inst(value).is_some_and(|def| self.func.op(def) == Op::Upsilon);
            if !is_upsilon {
                self.at(inst, SsaRule::NotUpsilon { operand });
            } else {
                self.placed_def(inst, operand, value);
            }
        }
    }

    fn tokens(&mut self, inst: Inst) {
        let func = self.func;
        let op = func.op(inst);
        let makes = matches!(op, Op::Enter | Op::GcPreserveBegin);
        let takes = matches!(op, Op::Leave | Op::PopException | Op::GcPreserveEnd);
        let is_token = |v: &Value| func.ty(*v) == Type::TOKEN;
        let made_right = func.results(inst).all(|v| is_token(&v) == makes);
        let taken_right = func.args(inst).iter().all(|v| is_token(v) == takes);
        if !made_right || !taken_right {
            self.at(inst, SsaRule::Token);
        } else if op == Op::GcPreserveEnd
            && !self
                .arg(inst, 0)
                .and_then(|v| func.def_inst(v))
                .is_some_and(|d| func.op(d) == Op::GcPreserveBegin)
        {
            self.at(inst, SsaRule::NotPreserve);
        }
    }

    /// A shortest path from the entry to `to` that does not pass through `around`.
    fn path_around(&self, around: Block, to: Block) -> Vec<Block> {
        let Some(entry) = self.func.entry() else { return Vec::new() };
        let mut came_from: Vec<Option<Block>> = vec![None; self.cfg.block_count()];
        let mut queue = VecDeque::from([entry]);
        while let Some(block) = queue.pop_front() {
            if block == to {
                break;
            }
            for &next in self.cfg.succs(block) {
                if next != around && next != entry && came_from[next.index()].is_none() {
                    came_from[next.index()] = Some(block);
                    queue.push_back(next);
                }
            }
        }
        let mut path: Vec<Block> =
            std::iter::successors(Some(to), |&b| came_from[b.index()]).take(self.cfg.block_count()).collect();
        path.reverse();
        path
    }
}
