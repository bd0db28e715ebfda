//! φ, φᶜ and `return` whose types are narrower than their operands.
//!
//! Julia's inference may have found more about a value than its row says: that a dominating test excludes
//! other types, or that an edge is never taken. The value then *has* the narrower type. Here an assertion on
//! the edge makes that explicit:
//!
//! ```text
//! 1 ─ %2 = memoryrefget(%1)::Any                          goto #4 if not %4
//! └──      goto #3 if not %4                          4 ─ %9 = π (%2, Int64)
//! 3 ┄ %7 = φ (#2 => 0, #1 => %2)::Int64               3 ┄ %7 = φ (#2 => 0, #4 => %9)::Int64
//! ```
//!
//! | operand and its row's type | becomes |
//! |---|---|
//! | overlap | a π at the end of the edge, which throws a `TypeError` if it does not hold |
//! | are disjoint | no operand: the value is undefined on this edge, and its use throws an `UndefVarError` |
//!
//! A φᶜ is treated the same way through the ϒ that it names: a π before the ϒ, or an undefined ϒ.

use super::body::Body;
use crate::entity::{Block, Inst, Value};
use crate::op::Op;
use crate::types::Type;

use rustc_hash::FxHashMap;

/// How the type of an operand relates to the type of its row.
enum Fit {
    Surely,
    Perhaps,
    Never,
}

impl Body<'_, '_> {
    /// See the file's header. Runs once all operands are set.
    pub(super) fn narrow(&mut self) {
        let blocks: Vec<Block> = self.func.blocks().collect();
        let insts: Vec<Inst> = blocks.into_iter().flat_map(|block| self.func.block_insts(block)).collect();
        let mut readers = FxHashMap::<Value, u32>::default();
        for &phic in insts.iter().filter(|&&inst| self.func.op(inst) == Op::PhiC) {
            self.func.args(phic).iter().for_each(|&upsilon| *readers.entry(upsilon).or_default() += 1);
        }
        for inst in insts {
            match self.func.op(inst) {
                Op::Phi => self.narrow_phi(inst),
                Op::PhiC => self.narrow_phic(inst, &readers),
                Op::Return => {
                    if let (&[value], &[wanted]) = (self.func.args(inst), &self.func.sig.results[..]) {
                        self.assert_operand(inst, value, wanted);
                    }
                }
                Op::Copy => {
                    if let (&[value], Some(result)) = (self.func.args(inst), self.func.result(inst))
                        && let Fit::Perhaps = self.fit(value, self.func.ty(result))
                    {
                        self.func.set_op(inst, Op::Pi, &[value]);
                    }
                }
                _ => {}
            }
        }
    }

    fn fit(&self, value: Value, wanted: Type) -> Fit {
        let types = &self.r.cx.types;
        let (given, constant) = (self.func.ty(value), self.func.as_const(value));
        if types.is_subtype(given, wanted) || constant.is_some_and(|it| types.is_type_in(it, wanted)) {
            Fit::Surely
        } else if types.is_disjoint(given, wanted) {
            Fit::Never
        } else {
            Fit::Perhaps
        }
    }

    /// Asserts the only operand of an instruction before it, unless its type always or never matches.
    fn assert_operand(&mut self, inst: Inst, value: Value, wanted: Type) {
        if let Fit::Perhaps = self.fit(value, wanted)
            && let Some(value) = self.asserted(inst, inst, value, wanted)
        {
            self.func.args_mut(inst)[0] = value;
        }
    }

    /// The value, asserted before `at`, with the place of `row`.
    fn asserted(&mut self, at: Inst, row: Inst, value: Value, wanted: Type) -> Option<Value> {
        let value = self.insert_before(at, Op::Pi, &[value], wanted)?;
        if let Some(pi) = self.func.def_inst(value) {
            self.func.set_place(pi, self.func.place(row));
        }
        Some(value)
    }

    fn narrow_phi(&mut self, phi: Inst) {
        let (Some(to), Some(result)) = (self.func.inst_block(phi), self.func.result(phi)) else { return };
        let wanted = self.func.ty(result);
        let edges: Vec<(Block, Value)> = self.func.phi_edges(phi).collect();
        let mut values = Vec::with_capacity(edges.len());
        let mut blocks = Vec::with_capacity(edges.len());
        for (from, value) in edges {
            let (from, value) = match self.fit(value, wanted) {
                Fit::Surely => (from, value),
                Fit::Never => continue,
                Fit::Perhaps => {
                    // A missing edge violates another rule.
                    let Some(edge) = self.edge(from, to) else { return };
                    let end = self.func.terminator(edge);
                    match end.and_then(|end| self.asserted(end, phi, value, wanted)) {
                        Some(value) => (edge, value),
                        None => return,
                    }
                }
            };
            values.push(value);
            blocks.push(from);
        }
        self.func.set_op(phi, Op::Phi, &values);
        self.func.set_inst_blocks(phi, &blocks);
    }

    fn narrow_phic(&mut self, phic: Inst, readers: &FxHashMap<Value, u32>) {
        let Some(result) = self.func.result(phic) else { return };
        let wanted = self.func.ty(result);
        for stored in self.func.args(phic).to_vec() {
            let Some(upsilon) = self.func.def_inst(stored).filter(|&inst| self.func.op(inst) == Op::Upsilon)
            else {
                continue;
            };
            let &[value] = self.func.args(upsilon) else { continue };
            match self.fit(value, wanted) {
                // A ϒ that another φᶜ also reads stays.
                Fit::Never if readers.get(&stored) == Some(&1) => self.func.set_op(upsilon, Op::Upsilon, &[]),
                _ => self.assert_operand(upsilon, value, wanted),
            }
        }
    }

    /// The block for code on the edge: its source, if that has no other successor, else a new block on the
    /// edge.
    fn edge(&mut self, from: Block, to: Block) -> Option<Block> {
        let end = self.func.terminator(from)?;
        let targets = self.func.inst_blocks(end);
        if !targets.contains(&to) {
            return None;
        }
        if targets.iter().all(|&target| target == to) {
            return Some(from);
        }
        let edge = self.func.make_block();
        self.func.insert_block_after(edge, from);
        let goto = self.func.make_inst(Op::Goto, &[], &[to], &[]);
        self.func.append_inst(goto, edge);
        self.func
            .inst_blocks_mut(end)
            .iter_mut()
            .filter(|target| **target == to)
            .for_each(|target| *target = edge);
        let phis: Vec<Inst> =
            self.func.block_insts(to).filter(|&inst| self.func.op(inst) == Op::Phi).collect();
        for phi in phis {
            let blocks = self.func.inst_blocks_mut(phi).iter_mut();
            blocks.filter(|block| **block == from).for_each(|block| *block = edge);
        }
        Some(edge)
    }
}
