//! The walk over a function: blocks in reverse postorder, φs, terminators, safepoints.
//!
//! ```text
//! high block                     low blocks
//!   φs                             head   φ of each leaf; values in memory form are copied out; safepoint
//!   statements                     head, then a block for each check
//!   terminator                     tail
//! ```
//!
//! φs get their operands after everything else, because an operand may come from a block that is visited later. The conversion that an operand
//! needs to become a value of the φ's type goes before the predecessor's terminator, in its tail.

use super::error::Refusal;
use super::value::{Leaves, Val};
use super::{Known, Lowering, Options, Reported, Step};
use crate::asserted::Tests;
use crate::loop_note::low_note;
use brolga_ir::analysis::{Cfg, DomTree, Loops, Rpo};
use brolga_ir::constant::Address;
use brolga_ir::func::{MetaData, Place};
use brolga_ir::op::REACHED;
use brolga_ir::{Block, Const, Inst, Op, RuntimeFn, Slot, Type, Value};
use smallvec::SmallVec;

/// A φ whose operands are not yet lowered.
pub(super) struct PendingPhi {
    src: Inst,
    ty: Type,
    /// One φ for each leaf, or none for a value in memory form.
    low: SmallVec<[Inst; 4]>,
    /// The slot that predecessors copy a value in memory form to.
    memory: Option<(Slot, u32)>,
    /// The web that it belongs to.
    web: Option<u32>,
}

impl Lowering<'_> {
    pub(super) fn params(&mut self, native: bool) {
        let src = self.src;
        let low: Vec<Value> = self.out.params().to_vec();
        let memory = src.sig.results.first().is_some_and(|&r| self.find_form(r).is_ok_and(|f| f.is_memory()));
        let mut next = usize::from(memory);
        for (param, &value) in src.sig.params.iter().zip(src.params()) {
            let Ok(form) = self.find_form(param.ty) else {
                self.known[value] = Known::Refused;
                continue;
            };
            let range = next..next + form.leaves.len();
            next = range.end;
            let leaves = match low.get(range) {
                Some(leaves) if native => leaves.into(),
                // The function is refused anyway; the walk continues to find all reasons.
                _ => form.low_types().map(|ty| self.out.constant(Const::Undef(ty))).collect(),
            };
            self.set(value, &Val { ty: param.ty, leaves });
        }
    }

    pub(super) fn body(&mut self, options: Options) {
        let src = self.src;
        let cfg = Cfg::compute(src);
        let rpo = Rpo::compute(&cfg);
        self.tests = Tests::compute(src, self.types, &cfg);
        for block in src.blocks().filter(|&b| rpo.is_reachable(b)) {
            let head = self.out.make_block();
            self.out.append_block(head);
            self.heads[block] = head.into();
        }
        if rpo.blocks().is_empty() {
            self.report(Refusal::Malformed { what: "the function has no blocks" });
        }
        self.catch_slots(rpo.blocks());
        self.find_webs(&cfg, &rpo);
        let mut has_loop = false;
        for &block in rpo.blocks() {
            let Some(head) = self.heads[block].expand() else { continue };
            self.cur = head;
            let back = |&pred: &Block| rpo.position(pred) >= rpo.position(block) && rpo.is_reachable(pred);
            let is_loop_head = cfg.preds(block).iter().any(back);
            has_loop |= is_loop_head;
            self.block(block, options.safepoints && is_loop_head);
        }
        self.phi_edges();
        self.loop_notes(&cfg, &rpo);
        if options.entry_reads && has_loop {
            self.read_array_params(&cfg, &rpo);
        }
        if options.safepoints && self.calls {
            let first = self.out.entry().and_then(|b| self.out.first_inst(b));
            self.before = first;
            self.place = first.map_or_else(Place::default, |i| self.out.place(i));
            self.emit(Op::Safepoint, &[], &[]);
        }
    }

    /// Moves the notes about loops for low passes to the heads of their loops.
    fn loop_notes(&mut self, cfg: &Cfg, rpo: &Rpo) {
        let src = self.src;
        let note = |inst: Inst| match src.op(inst) {
            Op::LoopInfo(meta) => low_note(self.types, src.meta(meta)),
            _ => None,
        };
        let blocks = rpo.blocks().iter();
        let noted = blocks.filter_map(|&b| Some((b, src.block_insts(b).find_map(note)?)));
        let noted: Vec<(Block, MetaData)> = noted.collect();
        if noted.is_empty() {
            return;
        }
        let loops = Loops::compute(cfg, rpo, &DomTree::compute(cfg));
        for (block, note) in noted {
            let head = loops.loop_of(block).and_then(|l| self.heads[loops.header(l)].expand());
            if let Some(head) = head {
                let note = self.out.add_meta(note);
                self.out.set_loop_note(head, Some(note));
            }
        }
    }

    fn block(&mut self, block: Block, safepoint: bool) {
        let src = self.src;
        let phis = src.block_insts(block).take_while(|&i| src.op(i) == Op::Phi);
        let first_pending = self.phis.len();
        for phi in phis {
            self.go_to(phi);
            let done = self.phi();
            self.finish_inst(done);
        }
        self.settle_phis(first_pending);
        if safepoint {
            self.emit(Op::Safepoint, &[], &[]);
        }
        let (mut at_head, mut ended) = (true, false);
        for inst in src.block_insts(block) {
            let op = src.op(inst);
            self.go_to(inst);
            at_head &= op == Op::Phi;
            if ended {
                self.report(Refusal::Malformed { what: "a statement is after a terminator" });
                break;
            }
            let done = match op {
                // The φs at the head were lowered before.
                Op::Phi if at_head => continue,
                Op::Phi => Err(self.report(Refusal::Malformed { what: "a φ is after other statements" })),
                _ => self.inst(op),
            };
            self.finish_inst(done);
            if !op.is_terminator() {
                self.end_behind_throw(inst);
            }
            if op.is_terminator() {
                self.tails[block] = self.cur.into();
                ended = true;
            }
        }
        if !ended {
            self.report(Refusal::Malformed { what: "a block does not end in a terminator" });
        }
    }

    /// Ends the block after a statement that always throws, even if the program continues: the rest of the block is lowered
    /// into an unreachable block.
    fn end_behind_throw(&mut self, inst: Inst) {
        let last = self.out.last_inst(self.cur).map(|last| self.out.op(last));
        let ends = |next: Inst| self.src.op(next) == Op::Unreachable;
        if matches!(last, Some(Op::CallRuntime(entry)) if !entry.returns())
            && !self.src.next_inst(inst).is_some_and(ends)
        {
            self.terminate(Op::Unreachable, &[], &[]);
            self.cur = self.next_block();
            let result = self.src.result(inst).filter(|&result| matches!(self.known[result], Known::Nothing));
            if let Some(result) = result.filter(|&result| self.src.ty(result) != Type::BOTTOM)
                && let Ok(val) = self.undefined(self.src.ty(result))
            {
                self.set(result, &val);
            }
        }
    }

    fn go_to(&mut self, inst: Inst) {
        self.at = inst;
        self.place = self.src.place(inst);
    }

    /// A refused statement has no value for others.
    fn finish_inst(&mut self, done: Step<()>) {
        if done.is_err()
            && let Some(result) = self.src.result(self.at)
        {
            self.known[result] = Known::Refused;
        }
    }

    // ----- φ -----

    fn phi(&mut self) -> Step<()> {
        let Some(result) = self.src.result(self.at) else { return Ok(()) };
        let ty = self.src.ty(result);
        let form = self.form(ty)?;
        let mut pending = PendingPhi { src: self.at, ty, low: SmallVec::new(), memory: None, web: None };
        if let Some((web, lows)) = self.mixed_form(result) {
            pending.web = Some(web);
            pending.low = lows.into_iter().map(|low| self.emit(Op::Phi, &[], &[low])).collect();
            let leaves: Leaves = pending.low.iter().filter_map(|&phi| self.out.result(phi)).collect();
            self.set_mixed(result, web, &leaves);
        } else if form.is_memory() {
            pending.memory = Some((self.slot(form.size, form.align), form.size));
        } else {
            pending.low = form.low_types().map(|low| self.emit(Op::Phi, &[], &[low])).collect();
            let leaves = pending.low.iter().filter_map(|&phi| self.out.result(phi)).collect();
            self.set(result, &Val { ty, leaves });
        }
        self.phis.push(pending);
        Ok(())
    }

    /// After the φs of a block: copies the φs in memory form from the slots that the predecessors wrote.
    fn settle_phis(&mut self, first: usize) {
        for n in first..self.phis.len() {
            let PendingPhi { src, ty, memory: Some((from, size)), .. } = self.phis[n] else { continue };
            self.go_to(src);
            let align = self.out.slot(from).align_log2;
            let own = self.slot(size, 1 << align);
            let (to, from) = (self.slot_addr(own), self.slot_addr(from));
            self.copy_bytes(to, from, size);
            if let Some(result) = self.src.result(src) {
                self.set(result, &Val::scalar(ty, to));
            }
        }
    }

    /// The conversion of an operand to its φ's type may need separate blocks, so the predecessors are processed one after
    /// the other, and the edges of the φs are then renamed to the blocks in which they end.
    fn phi_edges(&mut self) {
        let src = self.src;
        let mut by_pred: Vec<(Block, usize, Value)> = Vec::new();
        for (n, pending) in self.phis.iter().enumerate() {
            // An operand that is undefined on its path is not used.
            let edges = src
                .phi_edges(pending.src)
                .filter(|&(_, v)| !matches!(src.as_const(v), Some(Const::Undef(_))));
            by_pred.extend(edges.map(|(pred, value)| (pred, n, value)));
        }
        by_pred.sort_by_key(|&(pred, n, _)| (pred, n));
        let phis = std::mem::take(&mut self.phis);
        let mut edges: Vec<(usize, Block, Leaves)> = Vec::with_capacity(by_pred.len());
        for group in by_pred.chunk_by(|a, b| a.0 == b.0) {
            let pred = group[0].0;
            let Some(tail) = self.tails.get(pred).and_then(|t| t.expand()) else { continue };
            let Some(end) = self.out.terminator(tail) else { continue };
            self.out.remove_inst(end);
            self.cur = tail;
            for &(_, n, value) in group {
                self.go_to(phis[n].src);
                // The failed conversion was reported.
                if let Ok(leaves) = self.phi_edge(&phis[n], value) {
                    edges.push((n, pred, leaves));
                }
            }
            self.out.append_inst(end, self.cur);
            self.tails[pred] = self.cur.into();
        }
        for (n, pred, leaves) in edges {
            let Some(tail) = self.tails[pred].expand() else { continue };
            for (&phi, leaf) in phis[n].low.iter().zip(leaves) {
                self.out.add_phi_edge(phi, tail, leaf);
            }
        }
    }

    /// The operand of a φ at the end of a predecessor.
    fn phi_edge(&mut self, pending: &PendingPhi, value: Value) -> Step<Leaves> {
        if let Some(web) = pending.web {
            return self.mixed_edge(web, value, pending.ty);
        }
        let val = self.val(value)?;
        let val = self.convert(val, pending.ty)?;
        if let (Some((slot, size)), &[from]) = (pending.memory, &val.leaves[..]) {
            let to = self.slot_addr(slot);
            self.copy_bytes(to, from, size);
        }
        Ok(val.leaves)
    }

    /// Whether the statement before an `unreachable` never returns: it throws here, or is a call whose result type has no
    /// values, which is tested or guaranteed by the callee.
    fn never_comes_here(&self) -> bool {
        let last = self.out.last_inst(self.cur).map(|last| self.out.op(last));
        let is_call =
            |&inst: &Inst| matches!(self.src.op(inst), Op::Invoke(_) | Op::Call | Op::ForeignCall(_));
        let call = self.src.prev_inst(self.at).filter(is_call).and_then(|inst| self.src.result(inst));
        matches!(last, Some(Op::CallRuntime(entry)) if !entry.returns())
            || call.is_some_and(|value| self.src.ty(value) == Type::BOTTOM)
    }

    pub(super) fn terminator(&mut self, op: Op) -> Step<()> {
        let src = self.src;
        let targets: SmallVec<[Block; 2]> =
            src.inst_blocks(self.at).iter().filter_map(|&b| self.heads.get(b)?.expand()).collect();
        if targets.len() != op.target_count() {
            return Err(self.report(Refusal::Malformed { what: "a branch to a block that does not exist" }));
        }
        match op {
            Op::Branch => {
                let truth = self.truth_operand(0)?;
                let branch = self.terminate(op, &[truth], &targets);
                if let Some(hint) = src.hint(self.at) {
                    self.out.set_hint(branch, hint.clone());
                }
            }
            Op::Enter => self.enter(&targets),
            Op::Unreachable => {
                if !self.never_comes_here() {
                    let text = self.permanent(Address::String(self.cx.names.intern(REACHED)));
                    self.throw(RuntimeFn::ThrowError, &[text]);
                }
                self.terminate(op, &[], &[]);
            }
            Op::Return => {
                let val = self.operand(0)?;
                let ty = src.sig.results.first().copied().unwrap_or(Type::NOTHING);
                // A signature that was refused is not mentioned again.
                self.find_form(ty).map_err(|_| Reported)?;
                let val = self.convert(val, ty)?;
                let form = self.form(ty)?;
                match (form.is_memory(), &val.leaves[..], self.out.params().first()) {
                    (true, &[from], Some(&to)) => {
                        self.copy_bytes(to, from, form.size);
                        self.terminate(op, &[], &[]);
                    }
                    _ => drop(self.terminate(op, &val.leaves, &[])),
                }
            }
            _ => drop(self.terminate(op, &[], &targets)),
        }
        Ok(())
    }
}
