//! Finds where fields that `%new` left out are certain to have a value.
//!
//! One bit for each such field of each node of a group. Bits go forward; at a join a field is defined if it is on every edge,
//! and a φ takes the bit of its operand on the edge. Starting from "defined" everywhere, bits only fall, so iterations end.
//! A group with a read that may find no value is skipped; so is one that would need more than `MAX_BITS`.

use super::nodes::{Access, NodeId, Nodes, may_be_undefined};
use crate::pass::PassCx;
use brolga_ir::{Block, Func, Inst, Op};
use cranelift_entity::SecondaryMap;
use rustc_hash::FxHashMap;

/// A set of bits is one number.
const MAX_BITS: u32 = u64::BITS;

/// The fields that some `%new` of their group leaves out, with their bits.
pub(super) type Partial = FxHashMap<(NodeId, usize), u32>;

/// Drops the groups with reads that may find no value.
pub(super) fn check(func: &Func, cx: &PassCx<'_>, nodes: &mut Nodes) -> Partial {
    let partial = partial_fields(func, cx, nodes);
    if !partial.is_empty() {
        let lost = Solver { func, cx, nodes, partial: &partial }.unsure_reads();
        for node in lost {
            nodes.exclude(node);
        }
    }
    partial
}

fn partial_fields(func: &Func, cx: &PassCx<'_>, nodes: &mut Nodes) -> Partial {
    let types = cx.types();
    // By group: the number of leading fields that every `%new` initialises.
    let mut given: FxHashMap<NodeId, usize> = FxHashMap::default();
    for node in (0..nodes.nodes.len()).filter(|&n| !nodes.is_out(n)) {
        let inst = nodes.nodes[node].inst;
        if let Op::New(_) = func.op(inst) {
            let least = given.entry(nodes.group(node)).or_insert(usize::MAX);
            *least = func.args(inst).len().min(*least);
        }
    }
    let mut partial = Partial::default();
    let mut bit = 0;
    for node in 0..nodes.nodes.len() {
        let Some(&least) = given.get(&nodes.group(node)) else { continue };
        let fields = types.fields(nodes.nodes[node].ty).unwrap_or_default();
        for (field, decl) in fields.iter().enumerate().skip(least) {
            if !may_be_undefined(types, decl.ty) {
                continue;
            }
            if bit == MAX_BITS {
                nodes.exclude(node);
                break;
            }
            partial.insert((node, field), bit);
            bit += 1;
        }
    }
    partial
}

struct Solver<'a> {
    func: &'a Func,
    cx: &'a PassCx<'a>,
    nodes: &'a Nodes,
    partial: &'a Partial,
}

impl Solver<'_> {
    /// The nodes with a read of a field that may have no value.
    fn unsure_reads(&self) -> Vec<NodeId> {
        let mut ends: SecondaryMap<Block, u64> = SecondaryMap::with_default(u64::MAX);
        let mut changed = true;
        while changed {
            changed = false;
            for (block, accesses) in &self.nodes.accesses {
                let mut state = self.start(&ends, *block);
                for &(inst, node, access) in accesses {
                    state = self.step(&ends, state, inst, node, access);
                }
                changed |= ends[*block] != state;
                ends[*block] = state;
            }
        }
        let mut unsure = Vec::new();
        for (block, accesses) in &self.nodes.accesses {
            let mut state = self.start(&ends, *block);
            for &(inst, node, access) in accesses {
                if let Access::Load { field } = access
                    && self.partial.get(&(node, field)).is_some_and(|&bit| state >> bit & 1 == 0)
                {
                    unsure.push(node);
                }
                state = self.step(&ends, state, inst, node, access);
            }
        }
        unsure
    }

    /// The join of all edges into a block.
    fn start(&self, ends: &SecondaryMap<Block, u64>, block: Block) -> u64 {
        let facts = self.cx.facts;
        let preds = facts.cfg().preds(block).iter().filter(|&&p| facts.rpo().is_reachable(p));
        preds.fold(u64::MAX, |all, &p| all & ends[p])
    }

    fn step(
        &self,
        ends: &SecondaryMap<Block, u64>,
        state: u64,
        inst: Inst,
        node: NodeId,
        access: Access,
    ) -> u64 {
        let defined = |field: usize| match access {
            Access::New => Some(field < self.func.args(inst).len()),
            Access::Store { field: stored, .. } => (field == stored).then_some(true),
            // A field of a φ is defined if it is defined in the operand of each edge.
            Access::Phi => Some(self.func.phi_edges(inst).all(|(pred, value)| {
                let bit = self.nodes.of(value).and_then(|n| self.partial.get(&(n, field)));
                bit.is_none_or(|&bit| ends[pred] >> bit & 1 == 1)
            })),
            Access::Load { .. } | Access::IsDefined { .. } | Access::Name | Access::Pass => None,
        };
        let count = self.cx.types().field_count(self.nodes.nodes[node].ty).unwrap_or(0);
        (0..count).fold(state, |state, field| match (self.partial.get(&(node, field)), defined(field)) {
            (Some(&bit), Some(defined)) => state & !(1 << bit) | u64::from(defined) << bit,
            _ => state,
        })
    }
}
