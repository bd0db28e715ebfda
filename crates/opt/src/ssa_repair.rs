//! Values with several definitions: every use gets the definition that reaches it, through new φ where several do.
//!
//! ```text
//! p: %1 = slt_int(0, n)     h: %2 = slt_int(i, n)          one variable, defined as %1 in p and as %2 in h
//!            \                /
//!             x: … uses of %2 …          ==>   x: %3 = φ (p => %1, h => %2);  … uses of %3 …
//! ```
//!
//! A pass that copies code records which values exist twice and where; when the graph is final, one call repairs
//! all uses. For each variable: a walk back from its uses to its definitions finds the blocks where it is needed; in
//! these blocks, in reverse postorder, the incoming definitions are merged until nothing changes. A block with two
//! different ones gets a φ, which it keeps, so this ends.
//!
//! Cost: one sweep over the function, then for each variable the blocks and edges between its definitions and its uses.
//! Uses that cannot be reached from the entry stay as they are.

use crate::refit::{differs, refit};
use brolga_ir::analysis::{Cfg, Rpo};
use brolga_ir::{Block, Context, Func, Inst, Op, Value};
use cranelift_entity::SecondaryMap;
use cranelift_entity::packed_option::PackedOption;

/// The values that are made in several places.
#[derive(Debug, Default)]
pub(crate) struct Repair {
    vars: Vec<Var>,
    /// By value: its number in `vars`, from 1.
    of: SecondaryMap<Value, u32>,
}

#[derive(Debug)]
struct Var {
    value: Value,
    /// The blocks at whose end a definition holds.
    defs: Vec<(Block, Value)>,
}

/// An operand that is a variable.
#[derive(Clone, Copy)]
struct Use {
    var: u32,
    inst: Inst,
    index: usize,
}

impl Repair {
    /// Records that at the end of each block of `defs`, and in it after the definition, the paired value replaces `value`.
    pub(crate) fn add(&mut self, value: Value, defs: Vec<(Block, Value)>) {
        self.vars.push(Var { value, defs });
        self.of[value] = self.vars.len() as u32;
    }

    /// Replaces all uses of variables by the reaching definitions. `cfg` and `rpo` belong to the current function.
    pub(crate) fn apply(self, func: &mut Func, cx: &Context, cfg: &Cfg, rpo: &Rpo) {
        if self.vars.is_empty() {
            return;
        }
        let mut uses = self.uses(func, rpo);
        // Stable, so the uses of one variable stay in the order of the function.
        uses.sort_by_key(|u| u.var);
        let mut mend = Mend { cx, cfg, rpo, blocks: SecondaryMap::new(), stamp: 0, needed: Vec::new() };
        for group in uses.chunk_by(|a, b| a.var == b.var) {
            mend.var(func, &self.vars[group[0].var as usize], group);
        }
    }

    fn uses(&self, func: &Func, rpo: &Rpo) -> Vec<Use> {
        let mut uses = Vec::new();
        for block in func.blocks().filter(|&b| rpo.is_reachable(b)) {
            for inst in func.block_insts(block) {
                for (index, &arg) in func.args(inst).iter().enumerate() {
                    if let Some(var) = self.of[arg].checked_sub(1) {
                        uses.push(Use { var, inst, index });
                    }
                }
            }
        }
        uses
    }
}

/// Knowledge about the current variable in a block.
#[derive(Clone, Copy, Default)]
struct State {
    /// The variable for which the rest holds.
    stamp: u32,
    /// The definition in this block.
    defined: PackedOption<Value>,
    /// The incoming value.
    arrives: PackedOption<Value>,
    /// The φ that makes what arrives.
    phi: PackedOption<Inst>,
}

struct Mend<'a> {
    cx: &'a Context,
    cfg: &'a Cfg,
    rpo: &'a Rpo,
    blocks: SecondaryMap<Block, State>,
    stamp: u32,
    /// The blocks in which the variable is live-in.
    needed: Vec<Block>,
}

impl Mend<'_> {
    fn var(&mut self, func: &mut Func, var: &Var, uses: &[Use]) {
        self.stamp += 1;
        self.needed.clear();
        for &(block, value) in &var.defs {
            self.blocks[block] = State { stamp: self.stamp, defined: value.into(), ..State::default() };
        }
        for &one in uses {
            if let Some(block) = place_of(func, one) {
                self.need(block);
            }
        }
        let mut next = 0;
        while let Some(&block) = self.needed.get(next) {
            next += 1;
            for &pred in self.cfg.preds(block) {
                self.need(pred);
            }
        }
        let rpo = self.rpo;
        self.needed.sort_unstable_by_key(|&b| rpo.position(b));
        self.merge(func, var.value);
        self.fill(func);
        for &one in uses {
            if let Some(value) = place_of(func, one).and_then(|block| self.leaves(block)) {
                let before = func.ty(func.args(one.inst)[one.index]);
                func.args_mut(one.inst)[one.index] = value;
                if differs(func, before, value) {
                    refit(func, self.cx, one.inst, &[(one.index, before)]);
                }
            }
        }
    }

    /// Notes that the variable is used in or after a block, unless that has its own definition.
    fn need(&mut self, block: Block) {
        if self.rpo.is_reachable(block) && self.blocks[block].stamp != self.stamp {
            self.blocks[block] = State { stamp: self.stamp, ..State::default() };
            self.needed.push(block);
        }
    }

    /// The value at the end of a block.
    fn leaves(&self, block: Block) -> Option<Value> {
        let state = self.blocks[block];
        if state.stamp != self.stamp {
            return None;
        }
        state.defined.expand().or(state.arrives.expand())
    }

    /// Determines the incoming value of each block, with a φ where there are several.
    fn merge(&mut self, func: &mut Func, value: Value) {
        loop {
            let mut changed = false;
            for n in 0..self.needed.len() {
                let block = self.needed[n];
                if self.blocks[block].phi.is_some() {
                    continue;
                }
                let mut arrives = None;
                let mut differ = false;
                for &pred in self.cfg.preds(block) {
                    let Some(leaves) = self.leaves(pred) else { continue };
                    differ |= arrives.is_some_and(|a| a != leaves);
                    arrives = Some(leaves);
                }
                if differ {
                    let phi = func.make_inst(Op::Phi, &[], &[], &[func.ty(value)]);
                    if let Some(first) = func.first_inst(block) {
                        func.set_place(phi, func.place(first));
                    }
                    func.prepend_inst(phi, block);
                    self.blocks[block].phi = phi.into();
                    arrives = func.result(phi);
                }
                if self.blocks[block].arrives.expand() != arrives {
                    self.blocks[block].arrives = arrives.into();
                    changed = true;
                }
            }
            if !changed {
                return;
            }
        }
    }

    fn fill(&self, func: &mut Func) {
        for &block in &self.needed {
            let Some(phi) = self.blocks[block].phi.expand() else { continue };
            let mut preds: Vec<Block> = self.cfg.preds(block).to_vec();
            preds.sort_unstable_by_key(|&p| (self.rpo.position(p), p));
            preds.dedup();
            for pred in preds {
                if let Some(leaves) = self.leaves(pred) {
                    func.add_phi_edge(phi, pred, leaves);
                }
            }
        }
    }
}

/// The block at whose end (for a φ) or in which an operand is read.
fn place_of(func: &Func, one: Use) -> Option<Block> {
    match func.op(one.inst) {
        Op::Phi => func.inst_blocks(one.inst).get(one.index).copied(),
        _ => func.inst_block(one.inst),
    }
}
