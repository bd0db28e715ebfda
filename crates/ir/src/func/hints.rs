//! Hints about the instructions, blocks and loops of a function: see [`hints`](crate::hints).
//!
//! | of | here | kept by text and binary form |
//! |---|---|---|
//! | branches and calls | [`Func::hint`] with its parts [`Func::branch_weights`] and [`Func::call_inlining`] | branch weights, inlining |
//! | blocks | [`Func::is_cold`] | no |
//! | loops of low functions | [`Func::loop_note`] | yes |
//!
//! An instruction keeps only the parts of a hint that apply to its operation; setting the others has no
//! effect.

use super::Func;
use crate::entity::{Block, Inst, Meta};
use crate::hints::{BranchWeights, Hint, Inlining};
use crate::op::Op;

impl Func {
    /// Marks a block as hardly ever entered. A hint for code generation that neither text nor binary form
    /// keeps.
    pub fn set_cold(&mut self, block: Block) {
        self.cold.insert(self.own_block(block));
    }

    /// Whether the front end marked a block as cold.
    #[inline]
    pub fn is_cold(&self, block: Block) -> bool {
        self.cold.contains(block)
    }

    /// How often a branch is taken and not taken, if known.
    pub fn branch_weights(&self, inst: Inst) -> Option<BranchWeights> {
        self.hints.get(&inst)?.weights
    }

    /// Sets how often a branch is taken and not taken. Other operations have no branch weights.
    pub fn set_branch_weights(&mut self, inst: Inst, weights: Option<BranchWeights>) {
        if self.op(inst) == Op::Branch && (weights.is_some() || self.hints.contains_key(&inst)) {
            self.hints.entry(inst).or_default().weights = weights;
        }
    }

    pub fn hint(&self, inst: Inst) -> Option<&Hint> {
        self.hints.get(&inst)
    }

    /// Sets the hint of a branch or a call; parts that do not apply to its operation are dropped.
    pub fn set_hint(&mut self, inst: Inst, hint: Hint) {
        let hint = match self.op(inst) {
            Op::Branch | Op::CallArgs(_) | Op::CallRuntime(_) => Hint { inlining: None, ..hint },
            Op::Call => Hint { weights: None, ..hint },
            Op::Invoke(_) => Hint { inlining: hint.inlining, ..Hint::default() },
            _ => Hint::default(),
        };
        if hint == Hint::default() {
            self.hints.remove(&inst);
        } else {
            self.hints.insert(inst, hint);
        }
    }

    /// Whether a call requests or forbids inlining of its callee.
    pub fn call_inlining(&self, inst: Inst) -> Option<Inlining> {
        self.hints.get(&inst)?.inlining
    }

    /// Sets a call's inlining hint. Other operations, and calls of low IR, have none.
    pub fn set_call_inlining(&mut self, inst: Inst, inlining: Option<Inlining>) {
        let hint = self.hints.get(&inst).cloned().unwrap_or_default();
        self.set_hint(inst, Hint { inlining, ..hint });
    }

    /// Copies the hint of an instruction to its copy.
    pub fn copy_hint(&mut self, from: Inst, to: Inst) {
        if let Some(hint) = self.hints.get(&from) {
            self.set_hint(to, hint.clone());
        }
    }

    /// Inverts a branch: swaps its targets and its hint. The caller inverts the condition.
    pub fn swap_branch(&mut self, inst: Inst) {
        if let [yes, no] = self.inst_blocks_mut(inst) {
            std::mem::swap(yes, no);
        }
        if let Some(hint) = self.hints.remove(&inst) {
            self.hints.insert(inst, hint.swapped());
        }
    }

    /// The note of the loop with this head. Low functions have them here, high ones in operations.
    pub fn loop_note(&self, head: Block) -> Option<Meta> {
        self.loop_notes.get(&head).copied()
    }

    /// Sets or removes the note of the loop with this head.
    pub fn set_loop_note(&mut self, head: Block, note: Option<Meta>) {
        match note {
            Some(note) => drop(self.loop_notes.insert(head, note)),
            None => drop(self.loop_notes.remove(&head)),
        }
    }

    /// Moves a loop's note to its new head.
    pub fn move_loop_note(&mut self, from: Block, to: Block) {
        if let Some(note) = self.loop_notes.remove(&from) {
            self.loop_notes.entry(to).or_insert(note);
        }
    }
}
