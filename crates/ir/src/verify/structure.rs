//! Structure: blocks and their terminators, instructions with a fixed position, and numbers of operands and
//! results.

use super::{Checker, Site};
use crate::entity::{Block, Inst};
use crate::intrinsic::Arity;
use crate::op::{Level, Op};
use crate::types::Type;

/// Rules about blocks and their ends.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum StructureRule {
    /// `structure-id`: an id that does not belong to the function, or a type or name that does not belong to
    /// its context.
    Id {
        /// The kind of id: `value`, `block`, `callee`, `type` …
        kind: &'static str,
        number: u32,
    },
    /// `structure-empty`: the function has no blocks.
    NoBlocks,
    /// `structure-terminator`: the block does not end in a terminator.
    NoTerminator,
    /// `structure-after-terminator`: a terminator has instructions after it.
    AfterTerminator {
        /// The terminator before.
        terminator: Inst,
    },
    /// `structure-target-count`: a terminator has the wrong number of targets, or a φ has different numbers
    /// of blocks and operands.
    TargetCount {
        given: usize,
        /// The required number.
        wanted: usize,
    },
    /// `structure-target`: the target is not in the function's order.
    TargetNotPlaced { target: Block },
    /// `structure-entry`: the entry is a target.
    EntryEntered {
        /// The jump.
        from: Inst,
    },
    /// `structure-phi`: a φ after another statement.
    PhiNotAtHead {
        /// The statement before it.
        after: Inst,
    },
    /// `structure-handler`: a handler is entered by an edge other than its `enter`'s exception edge.
    HandlerEntered {
        /// The `enter` whose handler it is.
        enter: Inst,
        /// The source of the other edge.
        from: Inst,
    },
    /// `structure-never-returns`: a statement that does not return is not followed by `unreachable`.
    NotUnreachable,
    /// `structure-operand-count`: the number of operands is wrong.
    OperandCount {
        given: usize,
        /// The accepted numbers.
        wanted: Arity,
    },
    /// `structure-result-count`: the number of results is wrong.
    ResultCount {
        given: usize,
        /// The least number.
        least: usize,
        /// The greatest number.
        most: usize,
    },
}

impl Checker<'_> {
    pub(super) fn structure(&mut self) {
        let func = self.func;
        let Some(entry) = func.entry() else {
            self.report(Site::Func, StructureRule::NoBlocks);
            return;
        };
        // By block: the `enter` whose handler it is.
        let mut handler_of = cranelift_entity::SecondaryMap::<Block, Option<Inst>>::new();
        for block in func.blocks() {
            self.block(block);
            let Some(end) = func.terminator(block) else { continue };
            for &target in func.inst_blocks(end) {
                if !func.is_placed(target) {
                    self.at(end, StructureRule::TargetNotPlaced { target });
                } else if target == entry {
                    self.report(Site::Block(entry), StructureRule::EntryEntered { from: end });
                }
            }
            if func.op(end) == Op::Enter
                && let Some(&handler) = func.inst_blocks(end).get(1)
            {
                handler_of[handler] = Some(end);
            }
        }
        for block in func.blocks() {
            let Some(end) = func.terminator(block) else { continue };
            for (n, &target) in func.inst_blocks(end).iter().enumerate() {
                if let Some(enter) = handler_of[target]
                    && !(func.op(end) == Op::Enter && n == 1)
                {
                    self.report(Site::Block(target), StructureRule::HandlerEntered { enter, from: end });
                }
            }
        }
    }

    fn block(&mut self, block: Block) {
        let func = self.func;
        let mut terminator = None;
        let mut head_ended_by = None;
        for inst in func.block_insts(block) {
            let op = func.op(inst);
            if let Some(terminator) = terminator {
                self.at(inst, StructureRule::AfterTerminator { terminator });
            }
            if op.is_terminator() {
                terminator = Some(inst);
            }
            let targets = func.inst_blocks(inst).len();
            let wanted = if op == Op::Phi { func.args(inst).len() } else { op.target_count() };
            if targets != wanted {
                self.at(inst, StructureRule::TargetCount { given: targets, wanted });
            }
            match (op, head_ended_by) {
                (Op::Phi, Some(after)) => self.at(inst, StructureRule::PhiNotAtHead { after }),
                (Op::Phi, None) => {}
                _ => head_ended_by = head_ended_by.or(Some(inst)),
            }
            if !self.comes_back(inst) {
                let next = func.next_inst(inst).map(|n| func.op(n));
                if next != Some(Op::Unreachable) {
                    self.at(inst, StructureRule::NotUnreachable);
                }
            }
        }
        if func.terminator(block).is_none() && terminator.is_none() {
            self.report(Site::Block(block), StructureRule::NoTerminator);
        }
    }

    /// Whether control can continue after the statement. A ϒ without a value has the type `Union{}` and
    /// continues.
    fn comes_back(&self, inst: Inst) -> bool {
        let func = self.func;
        match func.op(inst) {
            Op::Upsilon | Op::Phi | Op::PhiC | Op::Copy | Op::Pi => true,
            Op::CallRuntime(f) => f.returns(),
            _ => func.level == Level::Low || self.result_type(inst) != Some(Type::BOTTOM),
        }
    }

    /// Checks the number of operands and results; `false` if one is wrong.
    pub(super) fn counts(&mut self, inst: Inst) -> bool {
        let func = self.func;
        let given = func.args(inst).len();
        let wanted = func.op(inst).operands(func.level);
        if !wanted.allows(given) {
            self.at(inst, StructureRule::OperandCount { given, wanted });
            return false;
        }
        let given = func.results(inst).len();
        let wanted = func.op(inst).results(func.level);
        if !wanted.allows(given) {
            let (least, most) = (usize::from(wanted.min), wanted.max.map_or(usize::MAX, usize::from));
            self.at(inst, StructureRule::ResultCount { given, least, most });
            return false;
        }
        true
    }
}
