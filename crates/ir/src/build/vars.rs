//! Variables of a front end as values and φ.
//!
//! After Braun and others, "Simple and Efficient Construction of Static Single Assignment Form" (2013), without its
//! recursion: a φ is the variable's value in its block from the moment that it is made, so its operands can be looked up
//! one after another from a work list, and looking one up may at most add further φ to the list.
//!
//! ```text
//! value(x, block):   assigned in block            that value
//!                    not sealed                   a φ without operands, completed when the block is sealed
//!                    one predecessor              value(x, predecessor), walking up in a loop
//!                    several                      a φ, put on the work list
//!                    none                         no value: the path has no assignment
//! ```
//!
//! A path without assignment gives a φ no edge. φ that turn out to be one value are replaced at the end, all in one sweep:
//! a φ whose operands are itself and one other value is that value, which may make further φ so.

use crate::analysis::{Cfg, Rpo};
use crate::constant::Const;
use crate::entity::{Block, Inst, Value};
use crate::func::Func;
use crate::op::Op;
use crate::types::Type;
use cranelift_entity::{EntityRef, SecondaryMap, entity_impl};
use rustc_hash::FxHashMap;

/// A variable of a front end.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Variable(u32);
entity_impl!(Variable, "var");

#[derive(Debug, Default)]
pub(super) struct Vars {
    types: Vec<Type>,
    /// The variable's value at the end of the block as far as it is built; `None` if no path there assigns.
    values: FxHashMap<(Variable, Block), Option<Value>>,
    blocks: SecondaryMap<Block, BlockVars>,
    /// φ that wait for operands.
    work: Vec<(Inst, Variable, Block)>,
    /// All φ that were made here.
    phis: Vec<Inst>,
}

#[derive(Clone, Debug, Default)]
struct BlockVars {
    preds: Vec<Block>,
    sealed: bool,
    /// φ that were made before the block was sealed.
    open: Vec<(Inst, Variable)>,
}

impl Vars {
    pub(super) fn declare(&mut self, ty: Type) -> Variable {
        self.types.push(ty);
        Variable::new(self.types.len() - 1)
    }

    pub(super) fn ty(&self, variable: Variable) -> Option<Type> {
        self.types.get(variable.index()).copied()
    }

    pub(super) fn preds(&self, block: Block) -> &[Block] {
        &self.blocks[block].preds
    }

    pub(super) fn is_sealed(&self, block: Block) -> bool {
        self.blocks[block].sealed
    }

    pub(super) fn mark_sealed(&mut self, block: Block) {
        self.blocks[block].sealed = true;
    }

    /// Notes an edge; a φ names a block once, however many edges come from it.
    pub(super) fn add_pred(&mut self, block: Block, pred: Block) {
        let preds = &mut self.blocks[block].preds;
        // The edges of one terminator come one after the other.
        if preds.last() != Some(&pred) {
            preds.push(pred);
        }
    }

    pub(super) fn define(&mut self, variable: Variable, block: Block, value: Value) {
        self.values.insert((variable, block), Some(value));
    }

    /// The value of a declared variable at the end of a block as far as it is built; `None` if no path to it assigns.
    pub(super) fn value(&mut self, func: &mut Func, variable: Variable, block: Block) -> Option<Value> {
        let value = self.look_up(func, variable, block);
        self.complete(func);
        value
    }

    /// Finds the value without completing the φ that this needs.
    fn look_up(&mut self, func: &mut Func, variable: Variable, block: Block) -> Option<Value> {
        let mut passed = Vec::new();
        let mut at = block;
        let value = loop {
            if let Some(&known) = self.values.get(&(variable, at)) {
                break known;
            }
            passed.push(at);
            let state = &self.blocks[at];
            match state.preds[..] {
                _ if !state.sealed => {
                    let phi = self.make_phi(func, variable, at);
                    self.blocks[at].open.push((phi, variable));
                    break func.result(phi);
                }
                [] => break None,
                // A chain as long as the function is a cycle that nothing leads into.
                [_] if passed.len() > func.block_count() => break None,
                [only] => at = only,
                _ => {
                    let phi = self.make_phi(func, variable, at);
                    self.work.push((phi, variable, at));
                    break func.result(phi);
                }
            }
        };
        for block in passed {
            self.values.insert((variable, block), value);
        }
        value
    }

    fn make_phi(&mut self, func: &mut Func, variable: Variable, block: Block) -> Inst {
        let phi = func.make_inst(Op::Phi, &[], &[], &[self.types[variable.index()]]);
        if !func.is_placed(block) {
            func.append_block(block);
        }
        func.prepend_inst(phi, block);
        self.phis.push(phi);
        phi
    }

    fn complete(&mut self, func: &mut Func) {
        while let Some((phi, variable, block)) = self.work.pop() {
            for n in 0..self.blocks[block].preds.len() {
                let pred = self.blocks[block].preds[n];
                if let Some(value) = self.look_up(func, variable, pred) {
                    func.add_phi_edge(phi, pred, value);
                }
            }
        }
    }

    pub(super) fn seal(&mut self, func: &mut Func, block: Block) {
        if std::mem::replace(&mut self.blocks[block].sealed, true) {
            return;
        }
        let open = std::mem::take(&mut self.blocks[block].open);
        self.work.extend(open.into_iter().map(|(phi, variable)| (phi, variable, block)));
        self.complete(func);
    }

    /// Seals what is not sealed and replaces φ that are one value.
    pub(super) fn finish(&mut self, func: &mut Func) {
        for block in (0..func.block_count()).map(Block::new) {
            self.seal(func, block);
        }
        let rpo = Rpo::compute(&Cfg::compute(func));
        let mut is_phi = vec![false; func.inst_count()];
        let mut users: FxHashMap<Value, Vec<Inst>> = FxHashMap::default();
        for &phi in &self.phis {
            is_phi[phi.index()] = true;
            for &value in func.args(phi) {
                users.entry(value).or_default().push(phi);
            }
        }
        let mut instead: FxHashMap<Value, Value> = FxHashMap::default();
        let mut work = self.phis.clone();
        while let Some(phi) = work.pop() {
            let Some(own) = func.result(phi).filter(|_| is_phi[phi.index()]) else { continue };
            let mut only = None;
            let several = func
                .args(phi)
                .iter()
                .map(|&v| resolve(&mut instead, v))
                .any(|value| value != own && *only.get_or_insert(value) != value);
            // A missing edge is an undefined value, for which any will do as long as it is there: only one that is
            // defined above all predecessors surely is.
            let reachable = |blocks: &[Block]| blocks.iter().filter(|&&b| rpo.is_reachable(b)).count();
            let complete = func.inst_block(phi).is_some_and(|block| {
                reachable(&self.blocks[block].preds) == reachable(func.inst_blocks(phi))
            });
            let value = match only {
                _ if several => continue,
                Some(_) if !complete => continue,
                Some(value) => value,
                None => func.constant(Const::Undef(func.ty(own))),
            };
            is_phi[phi.index()] = false;
            instead.insert(own, value);
            func.remove_inst(phi);
            let affected = users.remove(&own).unwrap_or_default();
            work.extend(affected.iter().filter(|p| is_phi[p.index()]));
            users.entry(value).or_default().extend(affected);
        }
        func.replace_values(|value| resolve(&mut instead, value));
    }
}

/// The final replacement of a value; paths are shortened on the way.
fn resolve(instead: &mut FxHashMap<Value, Value>, value: Value) -> Value {
    let mut last = value;
    while let Some(&next) = instead.get(&last) {
        last = next;
    }
    let mut at = value;
    while let Some(next) = instead.get_mut(&at) {
        at = std::mem::replace(next, last);
    }
    last
}
