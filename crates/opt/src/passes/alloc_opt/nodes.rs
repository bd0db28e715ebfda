//! Finds the nodes, their accesses, and the groups that do not escape.

use super::MAX_FIELDS;
use crate::pass::PassCx;
use crate::rules::field_position;
use brolga_ir::analysis::Liveness;
use brolga_ir::builtin::Builtin;
use brolga_ir::constant::Const;
use brolga_ir::effects::{ArgFlow, Summary};
use brolga_ir::op::Ordering;
use brolga_ir::types::{DeclKind, Field, FieldRepr, PrimitiveRepr};
use brolga_ir::{Block, Func, Inst, Op, Type, Types, Value};
use cranelift_entity::{EntitySet, SecondaryMap};

/// A node by its number.
pub(super) type NodeId = usize;

pub(super) struct Node {
    /// The `%new` or φ.
    pub(super) inst: Inst,
    pub(super) ty: Type,
    /// All values that are this object.
    names: Vec<Value>,
    /// The next node on the path to the group's representative.
    above: NodeId,
}

/// An instruction's access to a node.
#[derive(Clone, Copy)]
pub(super) enum Access {
    New,
    Phi,
    Load {
        field: usize,
    },
    Store {
        field: usize,
        value: Value,
    },
    IsDefined {
        field: usize,
    },
    /// Another name.
    Name,
    /// Passed to a function that does not keep it and does nothing but change objects that are passed to it.
    Pass,
}

/// The accesses of a block in order.
type BlockAccesses = Vec<(Inst, NodeId, Access)>;

pub(super) struct Nodes {
    pub(super) nodes: Vec<Node>,
    /// By value: its node's number, from 1.
    of: SecondaryMap<Value, u32>,
    /// By node: whether the group that the node represents escapes.
    out: Vec<bool>,
    /// The accesses of all blocks in reverse postorder.
    pub(super) accesses: Vec<(Block, BlockAccesses)>,
    /// Instructions that keep objects alive.
    pub(super) preserves: Vec<Inst>,
    /// The number of visits to calls that take objects.
    pub(super) looks: u64,
}

impl Nodes {
    pub(super) fn of(&self, value: Value) -> Option<NodeId> {
        self.of[value].checked_sub(1).map(|n| n as usize)
    }

    /// The representative of the group.
    pub(super) fn group(&self, mut node: NodeId) -> NodeId {
        while self.nodes[node].above != node {
            node = self.nodes[node].above;
        }
        node
    }

    pub(super) fn is_out(&self, node: NodeId) -> bool {
        self.out[self.group(node)]
    }

    /// Excludes the group of the node from the rewrite.
    pub(super) fn exclude(&mut self, node: NodeId) {
        let group = self.group(node);
        self.out[group] = true;
    }

    fn join(&mut self, a: NodeId, b: NodeId) {
        let (a, b) = (self.group(a), self.group(b));
        // The older node represents both, so chains of φ stay short: each node but the root points to an older one.
        let (low, high) = (a.min(b), a.max(b));
        self.nodes[high].above = low;
        self.out[low] |= self.out[high];
    }

    fn add(&mut self, inst: Inst, ty: Type, value: Value) {
        let id = self.nodes.len();
        self.nodes.push(Node { inst, ty, names: vec![value], above: id });
        self.out.push(false);
        self.of[value] = id as u32 + 1;
    }
}

/// Whether a field of an object that was made without it has no value, rather than zero bits.
pub(super) fn may_be_undefined(types: &Types, ty: Type) -> bool {
    types.first_reference(ty, types.field_repr(ty)).is_some()
}

pub(super) fn find(func: &Func, cx: &PassCx<'_>) -> Nodes {
    let mut found = Nodes {
        nodes: Vec::new(),
        of: SecondaryMap::new(),
        out: Vec::new(),
        accesses: Vec::new(),
        preserves: Vec::new(),
        looks: 0,
    };
    let types = cx.types();
    for &block in cx.facts.rpo().blocks() {
        for inst in func.block_insts(block) {
            let Some(result) = func.result(inst) else { continue };
            let ty = func.ty(result);
            match func.op(inst) {
                Op::New(ty) if is_plain_new(func, types, inst, ty) => found.add(inst, ty, result),
                Op::Phi if is_struct(types, ty) => found.add(inst, ty, result),
                Op::Pi | Op::Copy => {
                    let Some(node) = func.args(inst).first().and_then(|&v| found.of(v)) else { continue };
                    if types.is_subtype(found.nodes[node].ty, ty) {
                        found.of[result] = node as u32 + 1;
                        found.nodes[node].names.push(result);
                    }
                }
                _ => {}
            }
        }
    }
    if !found.nodes.is_empty() {
        uses(func, cx, &mut found);
        phis(func, cx, &mut found);
        found.looks = passes(func, &mut found);
    }
    found
}

fn is_struct(types: &Types, ty: Type) -> bool {
    let mutable = matches!(types.nominal_kind(ty), Some(DeclKind::Struct { mutable: true, .. }));
    mutable && types.is_concrete(ty) && types.field_count(ty).is_some_and(|count| count <= MAX_FIELDS)
}

/// A `%new` that cannot throw, whose missing fields have no value or zero bits.
fn is_plain_new(func: &Func, types: &Types, inst: Inst, ty: Type) -> bool {
    let args = func.args(inst);
    let Some(fields) = types.fields(ty).filter(|_| is_struct(types, ty)) else { return false };
    args.len() <= fields.len()
        && args.iter().zip(fields).all(|(&v, field)| types.is_subtype(func.ty(v), field.ty))
        && args.iter().enumerate().all(|(n, &v)| counts_as_set(func, types, ty, n, v))
        && fields[args.len()..]
            .iter()
            .all(|field| may_be_undefined(types, field.ty) || zero_bits(types, field.ty))
}

/// Whether a field of a mutable object has a value when it holds this one: a value that is stored inline counts as unset
/// while its first reference is null.
fn counts_as_set(func: &Func, types: &Types, owner: Type, field: usize, value: Value) -> bool {
    let Some(&field) = types.layout(owner).ok().and_then(|layout| layout.fields.get(field)) else {
        return false;
    };
    let (mut at, mut value) = (field, Some(value));
    while at.repr == FieldRepr::Inline && types.memory_ref_element(at.ty).is_none() {
        let Ok(layout) = types.layout(at.ty) else { return false };
        let Some(&first) = layout.pointers.first() else { return true };
        let around = |field: &Field| (field.offset..field.offset + field.size).contains(&first);
        let Some(n) = layout.fields.iter().position(around) else { return false };
        let part = value.and_then(|value| part_of(func, value, n));
        // Tuples have all their elements; a struct may have been made without its last fields.
        if part.is_none() && types.tuple_elements(at.ty).is_none() {
            return false;
        }
        (at, value) = (layout.fields[n], part);
    }
    true
}

/// Part `n` of an immutable value that is visibly made here.
fn part_of(func: &Func, value: Value, n: usize) -> Option<Value> {
    let made = func.def_inst(value).map(|def| (func.op(def), func.args(def)));
    match (made, func.as_const(value)) {
        (Some((Op::New(_) | Op::Builtin(Builtin::Tuple), parts)), _) => parts.get(n).copied(),
        (_, Some(Const::Aggregate { fields, .. })) => fields.get(n).copied(),
        _ => None,
    }
}

/// Whether a value of zero bits can be written as a constant.
fn zero_bits(types: &Types, ty: Type) -> bool {
    matches!(types.primitive(ty), Some((_, repr)) if repr != PrimitiveRepr::Bits)
}

/// The field that the operands of an access name, if it is accessed like any other.
fn plain_field(func: &Func, types: &Types, ty: Type, field: Value, rest: &[Value]) -> Option<usize> {
    let index = field_position(func, types, ty, field)?;
    let is_atomic = types.fields(ty)?.get(index)?.is_atomic;
    let is_usual = |&v: &Value| match func.as_const(v) {
        Some(Const::Symbol(name)) => types.names().text(*name) == Ordering::NotAtomic.name(),
        _ => func.ty(v) == Type::BOOL,
    };
    (!is_atomic && rest.iter().all(is_usual)).then_some(index)
}

/// The access of an instruction to the node that is its first operand.
fn access(func: &Func, types: &Types, inst: Inst, ty: Type) -> Option<Access> {
    match (func.op(inst), func.args(inst)) {
        (Op::Builtin(Builtin::Getfield), [_, field, rest @ ..]) => {
            Some(Access::Load { field: plain_field(func, types, ty, *field, rest)? })
        }
        (Op::Builtin(Builtin::Setfield), [_, field, value, rest @ ..]) => {
            let field = plain_field(func, types, ty, *field, rest)?;
            let decl = types.fields(ty)?.get(field)?;
            let fits = !decl.is_const
                && types.is_subtype(func.ty(*value), decl.ty)
                && counts_as_set(func, types, ty, field, *value);
            fits.then_some(Access::Store { field, value: *value })
        }
        (Op::Builtin(Builtin::Isdefined), [_, field]) => {
            Some(Access::IsDefined { field: plain_field(func, types, ty, *field, &[])? })
        }
        _ => None,
    }
}

/// Whether a call can be removed if the objects that it changes are not read: it returns, its result is unused, and it does
/// not capture operand `n`.
fn is_mere_pass(func: &Func, inst: Inst, n: usize, used: &EntitySet<Value>) -> bool {
    let Op::Invoke(callee) = func.op(inst) else { return false };
    let Some(Summary { effects, args }) = func.callee_summary(callee) else { return false };
    let unused = func.results(inst).all(|v| !used.contains(v));
    unused && effects.nothrow && effects.terminates && !args.elsewhere && !args.captures(n)
}

/// The results of calls that have uses.
fn used_results(func: &Func) -> EntitySet<Value> {
    let mut used = EntitySet::new();
    for &value in func.blocks().flat_map(|b| func.block_insts(b)).flat_map(|inst| func.args(inst)) {
        if func.def_inst(value).is_some_and(|def| matches!(func.op(def), Op::Invoke(_))) {
            used.insert(value);
        }
    }
    used
}

/// An object that is passed stays if it is read as well, or if the call changes an object that stays.
fn passes(func: &Func, found: &mut Nodes) -> u64 {
    let of_kind = |found: &Nodes, wanted: fn(Access) -> bool| -> Vec<(Inst, NodeId)> {
        let all = found.accesses.iter().flat_map(|(_, accesses)| accesses);
        all.filter(|&&(_, _, access)| wanted(access)).map(|&(inst, node, _)| (inst, node)).collect()
    };
    let passed = of_kind(found, |access| matches!(access, Access::Pass));
    if passed.is_empty() {
        return 0;
    }
    let mut groups: EntitySet<Inst> = EntitySet::new();
    let stands_for = |found: &Nodes, node| found.nodes[found.group(node)].inst;
    for &(_, node) in &passed {
        groups.insert(stands_for(found, node));
    }
    for (_, node) in of_kind(found, |access| matches!(access, Access::Load { .. } | Access::IsDefined { .. }))
    {
        if groups.contains(stands_for(found, node)) {
            found.exclude(node);
        }
    }
    exclude_with_calls(func, found)
}

/// The calls that take objects, with the objects that each takes.
fn calls(found: &Nodes) -> Vec<(Inst, Vec<NodeId>)> {
    let all = found.accesses.iter().flat_map(|(_, accesses)| accesses);
    let passed: Vec<_> = all.filter(|&&(_, _, access)| matches!(access, Access::Pass)).collect();
    // The accesses of one instruction are adjacent.
    let calls = passed.chunk_by(|a, b| a.0 == b.0);
    calls.map(|call| (call[0].0, call.iter().map(|&&(_, node, _)| node).collect())).collect()
}

/// A call stays if it changes an object that stays, and then all objects passed to it stay too. Returns the number of visits
/// to calls: one for each, and one more for each object that it changes and that is found to stay.
pub(super) fn exclude_with_calls(func: &Func, found: &mut Nodes) -> u64 {
    let calls = calls(found);
    let mut looks = 0;
    // By group: the calls that change its objects.
    let mut changed_by: Vec<Vec<usize>> = vec![Vec::new(); found.nodes.len()];
    let mut made: Vec<usize> = Vec::new();
    for (at, (inst, _)) in calls.iter().enumerate() {
        let Op::Invoke(callee) = func.op(*inst) else { continue };
        let flow = func.callee_summary(callee).map_or(ArgFlow::ANY, |summary| summary.args);
        let changed = func.args(*inst).iter().enumerate().filter(|&(n, _)| flow.writes(n));
        let mut is_made = false;
        for node in changed.map(|(_, &value)| found.of(value)) {
            match node {
                Some(node) if !found.is_out(node) => changed_by[found.group(node)].push(at),
                _ => is_made = true,
            }
        }
        if is_made {
            made.push(at);
        }
    }
    while let Some(at) = made.pop() {
        looks += 1;
        for &node in &calls[at].1 {
            if !found.is_out(node) {
                found.exclude(node);
                made.append(&mut changed_by[found.group(node)]);
            }
        }
    }
    looks
}

/// Visits every use of every node.
fn uses(func: &Func, cx: &PassCx<'_>, found: &mut Nodes) {
    let (types, rpo) = (cx.types(), cx.facts.rpo());
    let after_handlers = after_handlers(func, cx);
    let used = used_results(func);
    for block in func.blocks().filter(|&b| !rpo.is_reachable(b)) {
        for &value in func.block_insts(block).flat_map(|inst| func.args(inst)) {
            if let Some(node) = found.of(value) {
                found.exclude(node);
            }
        }
    }
    for &block in rpo.blocks() {
        let mut accesses = Vec::new();
        for inst in func.block_insts(block) {
            let own = func.result(inst).and_then(|v| found.of(v));
            let is_node = own.filter(|&n| found.nodes[n].inst == inst);
            if let Some(node) = is_node {
                let access = if func.op(inst) == Op::Phi { Access::Phi } else { Access::New };
                accesses.push((inst, node, access));
                if after_handlers.contains(block) {
                    found.exclude(node);
                }
            }
            for (n, &value) in func.args(inst).iter().enumerate() {
                let Some(node) = found.of(value) else { continue };
                let ty = found.nodes[node].ty;
                let known = match func.op(inst) {
                    _ if after_handlers.contains(block) => false,
                    Op::Phi => is_node.filter(|&phi| found.nodes[phi].ty == ty).is_some_and(|phi| {
                        found.join(phi, node);
                        true
                    }),
                    Op::Pi | Op::Copy if own == Some(node) => {
                        accesses.push((inst, node, Access::Name));
                        true
                    }
                    Op::GcPreserveBegin => {
                        found.preserves.push(inst);
                        true
                    }
                    Op::Invoke(_) if is_mere_pass(func, inst, n, &used) => {
                        accesses.push((inst, node, Access::Pass));
                        true
                    }
                    _ if n == 0 => match access(func, types, inst, ty) {
                        Some(access) => {
                            accesses.push((inst, node, access));
                            true
                        }
                        None => false,
                    },
                    _ => false,
                };
                if !known {
                    found.exclude(node);
                }
            }
        }
        found.accesses.push((block, accesses));
    }
}

/// The blocks that can be reached from a handler.
fn after_handlers(func: &Func, cx: &PassCx<'_>) -> EntitySet<Block> {
    let cfg = cx.facts.cfg();
    let enters = func.blocks().filter_map(|b| func.terminator(b)).filter(|&t| func.op(t) == Op::Enter);
    let mut work: Vec<Block> = enters.filter_map(|t| func.inst_blocks(t).get(1).copied()).collect();
    let mut reached = EntitySet::new();
    while let Some(block) = work.pop() {
        if reached.insert(block) {
            work.extend(cfg.succs(block));
        }
    }
    reached
}

/// Every operand of a φ must be an object of its group, and no object may continue under two names.
fn phis(func: &Func, cx: &PassCx<'_>, found: &mut Nodes) {
    let is_phi = |inst| func.op(inst) == Op::Phi;
    for phi in 0..found.nodes.len() {
        let inst = found.nodes[phi].inst;
        if is_phi(inst) && func.args(inst).iter().any(|&v| found.of(v).is_none()) {
            found.exclude(phi);
        }
    }
    let left: Vec<NodeId> =
        (0..found.nodes.len()).filter(|&n| is_phi(found.nodes[n].inst) && !found.is_out(n)).collect();
    if left.is_empty() {
        return;
    }
    let liveness = Liveness::compute(func, cx.facts.cfg());
    // The nodes that an edge carries, as they are met: a second φ of a block with the same operand would be a second name.
    let mut carried: Vec<(Block, Block, NodeId)> = Vec::new();
    for phi in left {
        let Some(block) = func.inst_block(found.nodes[phi].inst) else { continue };
        let edges: Vec<(Block, Value)> = func.phi_edges(found.nodes[phi].inst).collect();
        for (pred, value) in edges {
            let Some(node) = found.of(value) else { continue };
            let lives_on = |&name: &Value| liveness.is_live_in(name, block);
            if node != phi && found.nodes[node].names.iter().any(lives_on) {
                found.exclude(phi);
            }
            carried.push((block, pred, node));
        }
    }
    carried.sort_unstable();
    for pair in carried.windows(2) {
        if pair[0] == pair[1] {
            found.exclude(pair[0].2);
        }
    }
}
