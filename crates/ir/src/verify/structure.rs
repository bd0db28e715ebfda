//! Structure: blocks and their ends, and what has a fixed place or a fixed number of parts.

use super::{Checker, Site};
use crate::builtin::Builtin;
use crate::entity::{Block, Inst};
use crate::intrinsic::{Arity, Intrinsic, Shape};
use crate::op::{Level, Op};
use crate::types::Type;

/// Rules about blocks and their ends.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum StructureRule {
    /// `structure-id`: something is named that does not belong to the function, or a type or name that does not belong to its context.
    Id {
        /// The kind of id: `value`, `block`, `callee`, `type` …
        kind: &'static str,
        /// Its number.
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
    /// `structure-target-count`: a terminator does not have as many targets as it needs, or a φ not as many blocks as
    /// operands.
    TargetCount {
        /// How many there are.
        given: usize,
        /// How many there should be.
        wanted: usize,
    },
    /// `structure-target`: the target is not in the function's order.
    TargetNotPlaced {
        /// The target.
        target: Block,
    },
    /// `structure-entry`: the entry is a target.
    EntryEntered {
        /// The jump.
        from: Inst,
    },
    /// `structure-phi`: a φ stands after another statement.
    PhiNotAtHead {
        /// The statement before which it belongs.
        after: Inst,
    },
    /// `structure-handler`: a handler is entered by something else than an exception of its `enter`.
    HandlerEntered {
        /// The `enter` whose handler it is.
        enter: Inst,
        /// The other way in.
        from: Inst,
    },
    /// `structure-never-returns`: a statement that does not come back is not followed by `unreachable`.
    NotUnreachable,
    /// `structure-operand-count`: the number of operands is wrong.
    OperandCount {
        /// How many there are.
        given: usize,
        /// How many there should be.
        wanted: Arity,
    },
    /// `structure-result-count`: the number of results is wrong.
    ResultCount {
        /// How many there are.
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

    /// Whether control can continue after the statement. A ϒ without value has the type `Union{}` and comes back.
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
        let wanted = self.operand_arity(inst);
        if !wanted.allows(given) {
            self.at(inst, StructureRule::OperandCount { given, wanted });
            return false;
        }
        let (least, most) = self.result_arity(inst);
        let given = func.results(inst).len();
        if !(least..=most).contains(&given) {
            self.at(inst, StructureRule::ResultCount { given, least, most });
            return false;
        }
        true
    }

    fn operand_arity(&self, inst: Inst) -> Arity {
        let func = self.func;
        let exactly = |n: usize| Arity::exactly(n.min(255) as u8);
        match func.op(inst) {
            // The order is gone when a fence is lowered.
            Op::Intrinsic(Intrinsic::AtomicFence) if func.level == Level::Low => Arity::between(0, 2),
            Op::Intrinsic(op) => op.arity(),
            Op::Builtin(op) => op.arity(),
            Op::Phi | Op::PhiC | Op::GcPreserveBegin | Op::Return => Arity::at_least(0),
            Op::Copy
            | Op::Branch
            | Op::Pi
            | Op::PopException
            | Op::ThrowUndefIfNot(_)
            | Op::GcPreserveEnd
            | Op::SplatNew(_)
            | Op::Load(_)
            | Op::AtomicLoad(_)
            | Op::TypeOf
            | Op::PointerFromObjref => Arity::exactly(1),
            // Calls say more about a wrong number than a number can.
            Op::ForeignCall(_) | Op::New(_) | Op::CallSymbol(_) | Op::CallArgs(_) => Arity::at_least(0),
            Op::Call | Op::Invoke(_) | Op::Leave | Op::WriteBarrier => Arity::at_least(1),
            Op::Upsilon => Arity::between(0, 1),
            Op::Goto
            | Op::Unreachable
            | Op::Enter
            | Op::GetGlobal(_)
            | Op::TheException
            | Op::BoundsCheck(_)
            | Op::LoopInfo(_)
            | Op::CodeCoverage
            | Op::Spend(_)
            | Op::StaticParameter(_)
            | Op::StaticDefined(_)
            | Op::SlotAddr(_)
            | Op::Safepoint
            | Op::Alloc(_)
            | Op::AllocStack(_)
            | Op::ThreadAddr => Arity::exactly(0),
            Op::CFunction(_) => Arity::exactly(if self.func.level == Level::High { 1 } else { 0 }),
            Op::Store(_) | Op::AtomicStore(_) | Op::AtomicRmw(..) | Op::GcLoaded => Arity::exactly(2),
            Op::AtomicCas(_) | Op::MemCopy => Arity::exactly(3),
            Op::CallRuntime(f) => exactly(f.params().len()),
            Op::Lanes(op, _) => op.arity(),
            Op::Splat(_) | Op::ExtractLane(..) => Arity::exactly(1),
            Op::InsertLane(..) => Arity::exactly(2),
            Op::LaneSelect => Arity::exactly(3),
        }
    }

    fn result_arity(&self, inst: Inst) -> (usize, usize) {
        let func = self.func;
        match func.op(inst) {
            Op::Goto | Op::Branch | Op::Return | Op::Unreachable => (0, 0),
            // Statements for their effect: text may give them a type.
            Op::Enter
            | Op::Leave
            | Op::PopException
            | Op::ThrowUndefIfNot(_)
            | Op::GcPreserveEnd
            | Op::LoopInfo(_)
            | Op::CodeCoverage
            | Op::Spend(_) => (0, 1),
            Op::Builtin(Builtin::Ifelse) => (1, 1),
            // A struct may come back in several registers; how many is part of the types (`calls.rs`).
            Op::ForeignCall(_) if func.level == Level::Low => (0, usize::from(u16::MAX)),
            Op::Builtin(_) | Op::Call | Op::Invoke(_) | Op::ForeignCall(_) => (0, 1),
            Op::Intrinsic(op) => match (op.shape(), func.level) {
                (Shape::CheckedPair, Level::Low) => (2, 2),
                (Shape::AtomicFence, Level::Low) => (0, 0),
                (Shape::AtomicFence | Shape::PtrStore | Shape::AtomicStore | Shape::Foreign, _) => (0, 1),
                _ => (1, 1),
            },
            Op::Phi
            | Op::Copy
            | Op::New(_)
            | Op::SplatNew(_)
            | Op::Pi
            | Op::Upsilon
            | Op::PhiC
            | Op::GetGlobal(_)
            | Op::TheException
            | Op::GcPreserveBegin
            | Op::BoundsCheck(_)
            | Op::StaticParameter(_)
            | Op::StaticDefined(_)
            | Op::CFunction(_)
            | Op::Load(_)
            | Op::AtomicLoad(_)
            | Op::AtomicRmw(..)
            | Op::AtomicCas(_)
            | Op::SlotAddr(_)
            | Op::Alloc(_)
            | Op::AllocStack(_)
            | Op::TypeOf
            | Op::GcLoaded
            | Op::PointerFromObjref
            | Op::CallArgs(_)
            | Op::ThreadAddr
            | Op::Lanes(..)
            | Op::Splat(_)
            | Op::ExtractLane(..)
            | Op::InsertLane(..)
            | Op::LaneSelect => (1, 1),
            Op::Store(_) | Op::AtomicStore(_) | Op::MemCopy | Op::Safepoint | Op::WriteBarrier => (0, 0),
            Op::CallSymbol(_) => (0, usize::from(u16::MAX)),
            Op::CallRuntime(f) => (f.results().len(), f.results().len()),
        }
    }
}
