//! Takes immutable objects apart: reads of their fields become the values that they were made from.
//!
//! ```text
//! %1 = tuple(a, b)                          %3 = φ (#2 => %1, #4 => %2)      both of tuples
//! %2 = getfield(%1, 2)    ==>  b            %4 = getfield(%3, 1)        ==>  %4 = φ (#2 => a, #4 => c)
//! ```
//!
//! The objects are results of `tuple`, `%new` of an immutable type, `%splatnew` and constants. A φ is taken apart if its
//! type is a concrete immutable and all its operands are such objects or other φ of this kind; only fields that are
//! read get their own φ. The objects themselves lose their uses, and the next `dce` removes them.
//!
//! Phases. 1 find the φ that can be taken apart (a worklist: start with all candidates, remove those that break the rule).
//! 2 visit all `getfield` in reverse postorder and find their value; a field of a φ is made at its first use.
//! 3 add the operands of the new φ, which may need more fields of other φ. 4 one sweep of replacements.
//!
//! Small unions (`Union{Nothing, Tuple{…}}`) are unchanged: their member has to be known first. So is an object
//! with a missing or ill-typed field, whose `getfield` or `%new` throws.
//!
//! Cost: linear in instructions, uses, and the edges of the new φ; `MAX_FIELDS` bounds the last. Needs the order of blocks;
//! breaks the uses. Not done: mutable objects that do not escape.

use crate::facts::Fact;
use crate::pass::{Changed, Pass, PassCx, PassLevel};
use crate::refit::give;
use crate::replace::Replacements;
use crate::rules::{constant_field, field_position};
use brolga_ir::analysis::Uses;
use brolga_ir::builtin::Builtin;
use brolga_ir::constant::Const;
use brolga_ir::{Func, Inst, Op, Type, Types, Value};
use cranelift_entity::EntitySet;
use rustc_hash::FxHashMap;

pub(crate) const PASS: Pass =
    Pass::new("sroa", PassLevel::High, run).needs(&[Fact::Cfg]).breaks(&[Fact::Uses]);

/// A φ of an object with more fields stays: each field that is read would cost as many edges as the φ has.
const MAX_FIELDS: usize = 32;

/// The depth to which a read looks through objects made of fields of other objects. Each level is one instruction, and
/// longer chains do not occur in practice.
const MAX_LOOKS: usize = 64;

fn run(func: &mut Func, cx: &mut PassCx<'_>) -> Changed {
    let phis = splittable_phis(func, cx);
    let mut split = Split { phis, fields: FxHashMap::default(), new: Vec::new() };
    let mut values = Replacements::default();
    let facts = cx.facts;
    'blocks: for &block in facts.rpo().blocks() {
        let mut next = func.first_inst(block);
        while let Some(inst) = next {
            next = func.next_inst(inst);
            let Some((object, index)) = field_read(func, cx.types(), inst) else { continue };
            let Some(found) = split.find(func, cx.types(), &mut values, object, index) else { continue };
            if !cx.spend("fields") {
                break 'blocks;
            }
            let value = split.value(func, cx.types(), found);
            let Some(result) = func.result(inst) else { continue };
            // The read may assert a narrower type than the stored value has.
            if give(func, cx.types(), inst, value) {
                values.set(result, value);
                func.remove_inst(inst);
            }
        }
    }
    split.fill(func, cx, &mut values);
    values.apply(func, cx.context());
    cx.changed()
}

/// The object and the position of the field, if the instruction reads a field that is known to exist.
fn field_read(func: &Func, types: &Types, inst: Inst) -> Option<(Value, usize)> {
    if func.op(inst) != Op::Builtin(Builtin::Getfield) {
        return None;
    }
    let (&[object, field], rest) = func.args(inst).split_first_chunk()?;
    // A memory order is an error on a field that is not atomic. The other operand that may follow is the bounds check.
    let ordered = rest.iter().any(|&v| func.ty(v) != Type::BOOL);
    if ordered { None } else { Some((object, field_position(func, types, func.ty(object), field)?)) }
}

/// Where the value of a field comes from.
#[derive(Clone, Copy)]
enum Found {
    /// It exists.
    Value(Value),
    /// It is a field of this φ.
    Phi(Inst, usize),
    /// It is an element of this tuple, about which nothing is known.
    Element(Inst, Value, usize),
}

struct Split {
    /// The φ that may be taken apart.
    phis: EntitySet<Inst>,
    /// The φ (or the read) made for a field of one of them.
    fields: FxHashMap<(Inst, usize), Value>,
    /// New φ without operands: the old φ, the field, the new one.
    new: Vec<(Inst, usize, Inst)>,
}

impl Split {
    fn find(
        &self,
        func: &Func,
        types: &Types,
        values: &mut Replacements,
        object: Value,
        index: usize,
    ) -> Option<Found> {
        let mut object = values.resolve(object);
        for _ in 0..MAX_LOOKS {
            if let Some(value) = constant_field(func, object, index) {
                return Some(Found::Value(value));
            }
            let def = func.def_inst(object)?;
            let args = func.args(def);
            let next = match func.op(def) {
                Op::Builtin(Builtin::Tuple) => return args.get(index).copied().map(Found::Value),
                Op::New(ty) if is_plain_new(func, types, def, ty) => {
                    return args.get(index).copied().map(Found::Value);
                }
                // The fields are checked against their types, which the tuple's elements must be known to have.
                Op::SplatNew(ty) if splats_plainly(func, types, def, ty) => *args.first()?,
                Op::Phi if self.phis.contains(def) => return Some(Found::Phi(def, index)),
                Op::Copy | Op::Pi if func.ty(*args.first()?) == func.ty(object) => *args.first()?,
                _ => return None,
            };
            let next = values.resolve(next);
            if let Op::SplatNew(_) = func.op(def)
                && !self.is_object(func, next)
            {
                return Some(Found::Element(def, next, index));
            }
            object = next;
        }
        None
    }

    /// Whether [`find`](Split::find) can look into a value.
    fn is_object(&self, func: &Func, value: Value) -> bool {
        match func.def_inst(value) {
            Some(def) => {
                matches!(func.op(def), Op::Builtin(Builtin::Tuple) | Op::New(_) | Op::SplatNew(_))
                    || self.phis.contains(def)
            }
            None => matches!(func.as_const(value), Some(Const::Aggregate { .. })),
        }
    }

    /// The value itself, made if it does not exist.
    fn value(&mut self, func: &mut Func, types: &Types, found: Found) -> Value {
        let (def, index) = match found {
            Found::Value(value) => return value,
            Found::Phi(phi, index) => (phi, index),
            Found::Element(splat, _, index) => (splat, index),
        };
        if let Some(&value) = self.fields.get(&(def, index)) {
            return value;
        }
        let object = func.result(def).map_or(Type::ANY, |v| func.ty(v));
        let new = match found {
            Found::Element(splat, tuple, _) => {
                let position = func.bits(types, Type::INT64, index as u128 + 1);
                let ty = types.field_type(func.ty(tuple), index).unwrap_or(Type::ANY);
                let read = func.make_inst(Op::Builtin(Builtin::Getfield), &[tuple, position], &[], &[ty]);
                func.insert_before(read, splat);
                read
            }
            _ => {
                let ty = types.field_type(object, index).unwrap_or(Type::ANY);
                let phi = func.make_inst(Op::Phi, &[], &[], &[ty]);
                // Next to the old φ, so that it is among the φ of the block.
                func.insert_before(phi, def);
                self.new.push((def, index, phi));
                phi
            }
        };
        func.set_place(new, func.place(def));
        let value = func.result(new).expect("made with one result");
        self.fields.insert((def, index), value);
        value
    }

    /// Adds the operands of the new φ.
    fn fill(&mut self, func: &mut Func, cx: &mut PassCx<'_>, values: &mut Replacements) {
        while let Some((old, index, new)) = self.new.pop() {
            let edges: Vec<_> = func.phi_edges(old).collect();
            cx.count("new φ", 1);
            for (block, object) in edges {
                // The search for splittable φ has made sure of every operand.
                let found = self.find(func, cx.types(), values, object, index);
                let value = match found {
                    Some(found) => self.value(func, cx.types(), found),
                    None => {
                        let ty = func.result(new).map_or(Type::ANY, |v| func.ty(v));
                        func.constant(Const::Undef(ty))
                    }
                };
                func.add_phi_edge(new, block, value);
            }
        }
    }
}

/// A `%new` of an immutable type that has all its fields and cannot throw.
fn is_plain_new(func: &Func, types: &Types, inst: Inst, ty: Type) -> bool {
    let args = func.args(inst);
    types.is_concrete(ty)
        && !types.is_mutable(ty)
        && types.field_count(ty) == Some(args.len())
        && args
            .iter()
            .enumerate()
            .all(|(n, &v)| types.field_type(ty, n).is_some_and(|field| types.is_subtype(func.ty(v), field)))
}

/// A `%splatnew` of an immutable type whose fields the tuple's elements are known to fit.
fn splats_plainly(func: &Func, types: &Types, inst: Inst, ty: Type) -> bool {
    let Some(&tuple) = func.args(inst).first() else { return false };
    let Some(elems) = types.tuple_elements(func.ty(tuple)) else { return false };
    types.is_concrete(ty)
        && !types.is_mutable(ty)
        && types.field_count(ty) == Some(elems.len())
        && elems
            .iter()
            .enumerate()
            .all(|(n, &elem)| types.field_type(ty, n).is_some_and(|field| types.is_subtype(elem, field)))
}

/// The φ of concrete immutables whose operands are all objects that can be taken apart.
fn splittable_phis(func: &Func, cx: &PassCx<'_>) -> EntitySet<Inst> {
    let types = cx.types();
    let rpo = cx.facts.rpo();
    let mut phis = EntitySet::new();
    let mut candidates = Vec::new();
    for &block in rpo.blocks() {
        for phi in func.block_insts(block).filter(|&i| func.op(i) == Op::Phi) {
            let Some(ty) = func.result(phi).map(|v| func.ty(v)) else { continue };
            let fields = types.field_count(ty).unwrap_or(0);
            if types.is_concrete(ty) && !types.is_mutable(ty) && (1..=MAX_FIELDS).contains(&fields) {
                phis.insert(phi);
                candidates.push(phi);
            }
        }
    }
    if candidates.is_empty() {
        return phis;
    }
    // Most functions have no such φ, so the uses are not a fact that the pass needs.
    let uses = Uses::compute(func);
    // The operand of a φ has to be an object, for all uses of the φ; a removed φ removes those that it flows into.
    let mut work = candidates;
    while let Some(phi) = work.pop() {
        if !phis.contains(phi) {
            continue;
        }
        let is_object = |&value: &Value| is_known_object(func, types, &phis, value);
        if func.args(phi).is_empty() || !func.args(phi).iter().all(is_object) {
            phis.remove(phi);
            let users = func.results(phi).flat_map(|v| uses.of(v)).map(|u| u.inst);
            work.extend(users.filter(|&user| func.op(user) == Op::Phi));
        }
    }
    phis
}

/// Whether a value is made by an instruction that [`Split::find`] looks into for every field.
fn is_known_object(func: &Func, types: &Types, phis: &EntitySet<Inst>, value: Value) -> bool {
    let Some(def) = func.def_inst(value) else {
        return matches!(func.as_const(value), Some(Const::Aggregate { .. }));
    };
    match func.op(def) {
        Op::Builtin(Builtin::Tuple) => true,
        Op::New(ty) => is_plain_new(func, types, def, ty),
        Op::Phi => phis.contains(def),
        _ => false,
    }
}
