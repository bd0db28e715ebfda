//! Replaces a tree's scalars by its vectors.
//!
//! A vector follows the last of its scalars, and so precedes the last scalar of each of its users.

use super::tree::{Bundle, Node, Tree};
use crate::replace::Replacements;
use brolga_ir::cursor::Cursor;
use brolga_ir::{Context, Func, Inst, Op, Type, Value};
use rustc_hash::FxHashMap;

pub(super) fn emit(func: &mut Func, cx: &Context, tree: &Tree) {
    let lasts = tree.bundles.iter().filter_map(|b| b.last);
    let behind = lasts.filter_map(|last| Some((last, func.next_inst(last)?))).collect();
    let mut emit = Emit { func, cx, tree, behind, made: vec![None; tree.bundles.len()] };
    for (index, bundle) in tree.bundles.iter().enumerate() {
        if let Node::Phi(_) = bundle.node {
            let mut at = Cursor::new(emit.func);
            emit.made[index] = Some(at.at_first_insertion_point(tree.block).phi(Type::V128));
        }
    }
    for (index, bundle) in tree.bundles.iter().enumerate() {
        match &bundle.node {
            Node::Phi(edges) => {
                for &(block, part) in edges {
                    let value = emit.vector(part, None);
                    if let Some(phi) = emit.made[index].and_then(|v| emit.func.def_inst(v)) {
                        emit.func.add_phi_edge(phi, block, value);
                    }
                }
            }
            Node::Store(_) => emit.store(bundle),
            _ => {}
        }
    }
    emit.finish();
}

struct Emit<'a> {
    func: &'a mut Func,
    cx: &'a Context,
    tree: &'a Tree,
    /// By last scalar of a vector: the next instruction. Vectors are inserted before it, in the order in which they are
    /// made.
    behind: FxHashMap<Inst, Inst>,
    made: Vec<Option<Value>>,
}

impl Emit<'_> {
    /// The vector of a node, for a user whose own vector follows `user`.
    fn vector(&mut self, index: usize, user: Option<Inst>) -> Value {
        if let Some(made) = self.made[index] {
            return made;
        }
        let bundle = &self.tree.bundles[index];
        let made = match &bundle.node {
            &Node::Constant(bits) => self.func.bits(&self.cx.types, Type::V128, bits),
            Node::Gather(None) => return self.gather(bundle, user),
            Node::Gather(Some(_)) => self.gather(bundle, None),
            Node::Lanes(op, parts) => {
                let operands: Vec<Value> = parts.iter().map(|&part| self.vector(part, bundle.last)).collect();
                let op = Op::Lanes(*op, self.tree.lanes);
                self.at(bundle.last).ins_value(op, &operands, Type::V128)
            }
            _ => {
                let (op, args) =
                    (self.func.op(bundle.members[0]), self.func.args(bundle.members[0]).to_vec());
                self.at(bundle.last).ins_value(op, &args, Type::V128)
            }
        };
        self.made[index] = Some(made);
        made
    }

    fn store(&mut self, bundle: &Bundle) {
        let Node::Store(stored) = bundle.node else { return };
        let value = self.vector(stored, bundle.last);
        let first = bundle.members[0];
        let (op, address) = (self.func.op(first), self.func.args(first)[0]);
        self.at(bundle.last).ins(op, &[address, value], &[]);
    }

    /// The position after an instruction and the vectors already inserted after it; the end of the block without one.
    fn at(&mut self, last: Option<Inst>) -> Cursor<'_> {
        let next = last.and_then(|i| self.behind.get(&i).copied());
        let mut at = Cursor::new(self.func);
        match next {
            Some(next) => at.before(next),
            None => at.before_terminator(self.tree.block),
        };
        at
    }

    fn gather(&mut self, bundle: &Bundle, user: Option<Inst>) -> Value {
        let lanes = self.tree.lanes;
        let mut at = match bundle.node {
            Node::Gather(Some(block)) => {
                let mut at = Cursor::new(self.func);
                at.before_terminator(block);
                at
            }
            _ => self.at(user),
        };
        let first = bundle.values[0];
        let mut all = at.ins_value(Op::Splat(lanes), &[first], Type::V128);
        for (&value, lane) in bundle.values.iter().zip(0u8..).filter(|&(&v, _)| v != first) {
            all = at.ins_value(Op::InsertLane(lanes, lane), &[all, value], Type::V128);
        }
        all
    }

    /// Extracts lanes that have other uses, and removes the scalars.
    fn finish(mut self) {
        let lanes = self.tree.lanes;
        let ty = Type::low(lanes.element());
        let mut values = Replacements::default();
        for extract in &self.tree.extracts {
            let bundle = &self.tree.bundles[extract.bundle];
            let vector = self.vector(extract.bundle, None);
            let mut at = Cursor::new(self.func);
            match at.func.def_inst(vector).filter(|_| !matches!(bundle.node, Node::Phi(_))) {
                Some(def) => at.after(def),
                None => at.at_first_insertion_point(self.tree.block),
            };
            let lane = at.ins_value(Op::ExtractLane(lanes, extract.lane as u8), &[vector], ty);
            values.set(bundle.values[extract.lane], lane);
        }
        values.apply(self.func, self.cx);
        for &member in self.tree.bundles.iter().flat_map(|b| &b.members) {
            self.func.remove_inst(member);
        }
    }
}
