//! Turns the fields of groups that stay inside into variables.

use super::MAX_VARIABLES;
use super::defined::Partial;
use super::nodes::{Access, NodeId, Nodes, exclude_with_calls};
use crate::pass::PassCx;
use crate::refit::give;
use crate::replace::Replacements;
use crate::ssa_repair::Repair;
use brolga_ir::constant::Const;
use brolga_ir::{Block, Func, Inst, Op, Type, Value};
use rustc_hash::FxHashMap;

/// A question about a field.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Asked {
    Value,
    IsDefined,
}

/// A field of a node that is read.
struct Variable {
    /// A placeholder for the incoming value. It has no definition in the function.
    stand_in: Value,
    /// Its values at the end of blocks.
    ends: Vec<(Block, Value)>,
}

pub(super) fn rewrite(func: &mut Func, cx: &mut PassCx<'_>, nodes: &mut Nodes, partial: &Partial) {
    let asked = asked(nodes, partial);
    afford(cx, nodes, &asked);
    // A call stays if it changes an object for which there was no fuel.
    exclude_with_calls(func, nodes);
    let any = (0..nodes.nodes.len()).any(|n| !nodes.is_out(n));
    if !any {
        return;
    }
    let mut rewriter = Rewriter {
        nodes,
        partial,
        asked,
        variables: Vec::new(),
        of: FxHashMap::default(),
        now: FxHashMap::default(),
        values: Replacements::default(),
        dead: Vec::new(),
    };
    rewriter.make_variables(func, cx);
    for at in 0..rewriter.nodes.accesses.len() {
        rewriter.block(func, cx, at);
    }
    rewriter.finish(func, cx);
}

/// By group: the fields that are read, ascending.
type AskedFields = FxHashMap<NodeId, Vec<(usize, Asked)>>;

fn asked(nodes: &Nodes, partial: &Partial) -> AskedFields {
    let mut asked = AskedFields::default();
    for &(_, node, access) in nodes.accesses.iter().flat_map(|(_, accesses)| accesses) {
        let field = match access {
            Access::Load { field } => (field, Asked::Value),
            Access::IsDefined { field } if partial.contains_key(&(node, field)) => (field, Asked::IsDefined),
            _ => continue,
        };
        asked.entry(nodes.group(node)).or_default().push(field);
    }
    // The order of the table does not matter: each entry is changed by itself.
    for fields in asked.values_mut() {
        fields.sort_unstable();
        fields.dedup();
    }
    asked
}

/// Drops the groups for which there is no room or no fuel.
fn afford(cx: &mut PassCx<'_>, nodes: &mut Nodes, asked: &AskedFields) {
    let mut sizes: FxHashMap<NodeId, usize> = FxHashMap::default();
    for node in 0..nodes.nodes.len() {
        *sizes.entry(nodes.group(node)).or_default() += 1;
    }
    let mut room = MAX_VARIABLES;
    for node in 0..nodes.nodes.len() {
        if nodes.group(node) != node || nodes.is_out(node) {
            continue;
        }
        let fields = asked.get(&node).map_or(0, Vec::len);
        let wanted = fields * sizes.get(&node).copied().unwrap_or(1);
        if wanted > room || !cx.spend("objects") {
            nodes.exclude(node);
        } else {
            room -= wanted;
        }
    }
}

struct Rewriter<'a> {
    nodes: &'a Nodes,
    partial: &'a Partial,
    asked: AskedFields,
    variables: Vec<Variable>,
    /// The number of a variable.
    of: FxHashMap<(NodeId, usize, Asked), usize>,
    /// The current values of the variables that the current block has touched.
    now: FxHashMap<usize, Value>,
    values: Replacements,
    dead: Vec<Inst>,
}

impl Rewriter<'_> {
    fn fields(&self, node: NodeId) -> Vec<(usize, Asked)> {
        self.asked.get(&self.nodes.group(node)).cloned().unwrap_or_default()
    }

    fn make_variables(&mut self, func: &mut Func, cx: &PassCx<'_>) {
        for node in (0..self.nodes.nodes.len()).filter(|&n| !self.nodes.is_out(n)) {
            for (field, asked) in self.fields(node) {
                let ty = match asked {
                    Asked::Value => cx.types().field_type(self.nodes.nodes[node].ty, field),
                    Asked::IsDefined => Some(Type::BOOL),
                };
                let nothing = func.constant(Const::Undef(ty.unwrap_or(Type::ANY)));
                let inst = func.make_inst(Op::Copy, &[nothing], &[], &[ty.unwrap_or(Type::ANY)]);
                let Some(stand_in) = func.result(inst) else { continue };
                self.of.insert((node, field, asked), self.variables.len());
                self.variables.push(Variable { stand_in, ends: Vec::new() });
            }
        }
    }

    fn block(&mut self, func: &mut Func, cx: &PassCx<'_>, at: usize) {
        let nodes = self.nodes;
        let (block, accesses) = &nodes.accesses[at];
        for &(inst, node, access) in accesses.iter().filter(|&&(_, node, _)| !nodes.is_out(node)) {
            match access {
                Access::Phi => self.enter_phi(func, *block, inst, node),
                Access::New => self.start(func, cx, inst, node),
                Access::Name => {}
                // A call takes several.
                Access::Pass if self.dead.last() == Some(&inst) => continue,
                Access::Pass => {}
                Access::Store { field, value } => {
                    self.set(node, field, Asked::Value, value);
                    let yes = func.bits(cx.types(), Type::BOOL, 1);
                    self.set(node, field, Asked::IsDefined, yes);
                    self.replace(func, cx, inst, value);
                    continue;
                }
                Access::Load { field } => {
                    let value = self.read(func, cx, *block, (node, field, Asked::Value));
                    self.replace(func, cx, inst, value);
                    continue;
                }
                Access::IsDefined { field } => {
                    let value = if self.partial.contains_key(&(node, field)) {
                        self.read(func, cx, *block, (node, field, Asked::IsDefined))
                    } else {
                        func.bits(cx.types(), Type::BOOL, 1)
                    };
                    self.replace(func, cx, inst, value);
                    continue;
                }
            }
            self.dead.push(inst);
        }
        let mut left: Vec<(usize, Value)> = self.now.drain().collect();
        left.sort_unstable();
        for (variable, value) in left {
            self.variables[variable].ends.push((*block, value));
        }
    }

    fn set(&mut self, node: NodeId, field: usize, asked: Asked, value: Value) {
        if let Some(&variable) = self.of.get(&(node, field, asked)) {
            self.now.insert(variable, value);
        }
    }

    /// The variables of a φ are φ of the variables that its operands have at the ends of the predecessors.
    fn enter_phi(&mut self, func: &mut Func, block: Block, inst: Inst, node: NodeId) {
        for (field, asked) in self.fields(node) {
            let edges: Vec<(Block, Value)> = func
                .phi_edges(inst)
                .filter_map(|(pred, value)| {
                    let from = self.of.get(&(self.nodes.of(value)?, field, asked))?;
                    Some((pred, self.variables[*from].stand_in))
                })
                .collect();
            let Some(&variable) = self.of.get(&(node, field, asked)) else { continue };
            let value = head_phi(func, block, self.variables[variable].stand_in, &edges);
            self.now.insert(variable, value);
        }
    }

    /// The initial fields of a new object.
    fn start(&mut self, func: &mut Func, cx: &PassCx<'_>, inst: Inst, node: NodeId) {
        for (field, asked) in self.fields(node) {
            let given = func.args(inst).get(field).copied();
            let value = match (asked, given) {
                (Asked::IsDefined, given) => func.bits(cx.types(), Type::BOOL, u128::from(given.is_some())),
                (Asked::Value, Some(value)) => value,
                (Asked::Value, None) => {
                    let ty = cx.types().field_type(self.nodes.nodes[node].ty, field).unwrap_or(Type::ANY);
                    match self.partial.contains_key(&(node, field)) {
                        // No read finds it.
                        true => func.constant(Const::Undef(ty)),
                        false => func.bits(cx.types(), ty, 0),
                    }
                }
            };
            self.set(node, field, asked, value);
        }
    }

    fn read(&mut self, func: &mut Func, cx: &PassCx<'_>, block: Block, of: (NodeId, usize, Asked)) -> Value {
        let Some(&variable) = self.of.get(&of) else { return func.constant(Const::Undef(Type::ANY)) };
        if let Some(&value) = self.now.get(&variable) {
            return value;
        }
        let rpo = cx.facts.rpo();
        let mut preds: Vec<Block> =
            cx.facts.cfg().preds(block).iter().copied().filter(|&p| rpo.is_reachable(p)).collect();
        preds.sort_unstable_by_key(|&p| rpo.position(p));
        preds.dedup();
        // The only predecessor was visited before.
        if let ([pred], Some(&(block, value))) = (preds.as_slice(), self.variables[variable].ends.last())
            && *pred == block
        {
            return value;
        }
        let stand_in = self.variables[variable].stand_in;
        let edges: Vec<(Block, Value)> = preds.into_iter().map(|pred| (pred, stand_in)).collect();
        let value = head_phi(func, block, stand_in, &edges);
        self.now.insert(variable, value);
        value
    }

    /// Replaces the result of an instruction by `value`. The result may be asserted to be narrower; the assertion stays.
    fn replace(&mut self, func: &mut Func, cx: &PassCx<'_>, inst: Inst, value: Value) {
        if give(func, cx.types(), inst, value) {
            if let Some(result) = func.result(inst) {
                self.values.set(result, value);
            }
            self.dead.push(inst);
        }
    }

    fn finish(mut self, func: &mut Func, cx: &PassCx<'_>) {
        for &inst in &self.nodes.preserves {
            let kept: Vec<Value> = func
                .args(inst)
                .iter()
                .copied()
                .filter(|&v| self.nodes.of(v).is_none_or(|node| self.nodes.is_out(node)))
                .collect();
            func.set_op(inst, Op::GcPreserveBegin, &kept);
        }
        for &inst in &self.dead {
            func.remove_inst(inst);
        }
        let mut repair = Repair::default();
        for variable in self.variables {
            repair.add(variable.stand_in, variable.ends);
            // A use that no definition reaches is never executed.
            let nothing = func.constant(Const::Undef(func.ty(variable.stand_in)));
            self.values.set(variable.stand_in, nothing);
        }
        repair.apply(func, cx.context(), cx.facts.cfg(), cx.facts.rpo());
        self.values.apply(func, cx.context());
    }
}

/// A φ at the head of a block, of the type of `like`.
fn head_phi(func: &mut Func, block: Block, like: Value, edges: &[(Block, Value)]) -> Value {
    let (blocks, values): (Vec<Block>, Vec<Value>) = edges.iter().copied().unzip();
    let phi = func.make_inst(Op::Phi, &values, &blocks, &[func.ty(like)]);
    if let Some(first) = func.first_inst(block) {
        func.set_place(phi, func.place(first));
    }
    func.prepend_inst(phi, block);
    func.result(phi).unwrap_or(like)
}
