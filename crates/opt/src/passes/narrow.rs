//! Asserts the type of a φ in its predecessors, so that values of that type need no box.
//!
//! ```text
//! b: …  goto t         %1 :: Float64                b: …  goto t
//! c: …  goto t         %2 :: Any                    c: %5 = typeassert(%2, Float64);  goto t
//! t: %3 = φ (b => %1, c => %2)::Any        ==>      t: %4 = φ (b => %1, c => %5)::Float64
//!    %4 = typeassert(%3, Float64)
//! ```
//!
//! A call that `union-split` has split leaves such φ: the known methods return plain numbers, the remaining call
//! for other methods an object, and the φ of both would box every number only for the assertion to unbox it.
//!
//! **Which.** The φ and its assertion are in one block, with nothing observable between them, so that the assertion is
//! made exactly when the block is entered. At least one value is of the type already. Other values are asserted at the end of
//! their predecessor, which must have no other successor, and there are at most `MAX_TESTS` of them.
//!
//! **Cycles.** An assertion at the end of a block may be one of a φ of that block, and is visited in turn. A narrowed φ
//! is recognised by its type, and the value that flows back into a cycle is the narrowed φ, so each pair of a φ and a type is visited
//! once.
//!
//! The old φ keeps its other uses, and is removed by the next `dce` if it has none.
//!
//! Cost: a visit to each instruction, and the edges and the block of each φ that is asserted; nothing where there are no assertions.
//! Needs nothing; breaks the uses. Not done: `isa` of a φ; assertions in later blocks.

use crate::asserted::{Tests, may_fail};
use crate::facts::Fact;
use crate::pass::{Changed, Pass, PassCx, PassLevel};
use crate::replace::Replacements;
use brolga_ir::builtin::Builtin;
use brolga_ir::constant::Const;
use brolga_ir::effects::effects;
use brolga_ir::{Block, Func, Inst, Op, Type, Types, Value};
use rustc_hash::FxHashMap;

pub(crate) const PASS: Pass = Pass::new("narrow", PassLevel::High, run).breaks(&[Fact::Uses]);

/// The most assertions that replace one. Each is a test and a path to an error.
const MAX_TESTS: usize = 2;

/// Instructions between a φ and its assertion: the block is searched for every φ.
const MAX_BETWEEN: usize = 32;

fn run(func: &mut Func, cx: &mut PassCx<'_>) -> Changed {
    let insts = func.blocks().flat_map(|b| func.block_insts(b));
    let mut work: Vec<Inst> = insts.filter(|&i| func.op(i) == Op::Builtin(Builtin::Typeassert)).collect();
    if work.is_empty() {
        return Changed::No;
    }
    work.reverse();
    // The replacement of an assertion may be the operand of another that is visited later: `values` holds its current form.
    let mut values = Replacements::default();
    let mut narrowed: FxHashMap<(Inst, Type), Value> = FxHashMap::default();
    while let Some(assert) = work.pop() {
        let Some(found) = find(func, cx.types(), &mut values, &narrowed, assert) else { continue };
        if !cx.spend("assertions") {
            break;
        }
        let new = match found {
            Found::Narrowed(value) => value,
            Found::Phi(plan) => {
                let new = plan.apply(func, assert, &mut work);
                narrowed.insert((plan.phi, plan.ty), new);
                new
            }
        };
        if let Some(old) = func.result(assert) {
            values.set(old, new);
        }
        func.remove_inst(assert);
    }
    values.apply(func, cx.context());
    cx.changed()
}

enum Found {
    /// The φ has been narrowed to this value.
    Narrowed(Value),
    Phi(Plan),
}

/// How a φ is narrowed.
struct Plan {
    phi: Inst,
    /// The asserted type, which the new φ has as well.
    ty: Type,
    edges: Vec<(Block, Edge)>,
}

#[derive(Clone, Copy)]
enum Edge {
    /// The value is of the type.
    Fits(Value),
    /// It has to be asserted.
    Test(Value),
    /// The φ itself flows back.
    Own,
}

fn find(
    func: &Func,
    types: &Types,
    values: &mut Replacements,
    narrowed: &FxHashMap<(Inst, Type), Value>,
    assert: Inst,
) -> Option<Found> {
    let &[object, wanted] = func.args(assert) else { return None };
    let &Const::Type { of: ty, .. } = func.as_const(wanted)? else { return None };
    let phi = func.def_inst(values.resolve(object)).filter(|&def| func.op(def) == Op::Phi)?;
    // The row may assert a narrower type than the assertion's. Such an assertion is not moved.
    if func.result(assert).is_none_or(|v| func.ty(v) != ty) || ty == Type::BOTTOM {
        return None;
    }
    if let Some(&value) = narrowed.get(&(phi, ty)) {
        return Some(Found::Narrowed(value));
    }
    let block = func.inst_block(phi)?;
    if func.inst_block(assert) != Some(block) || !follows(func, types, phi, assert) {
        return None;
    }
    let own = func.result(phi)?;
    let edges: Vec<(Block, Edge)> = func
        .phi_edges(phi)
        .map(|(pred, value)| {
            let value = values.resolve(value);
            let known = func.def_inst(value).and_then(|def| narrowed.get(&(def, ty)));
            let edge = match known {
                _ if value == own => Edge::Own,
                Some(&known) => Edge::Fits(known),
                None if types.is_subtype(func.ty(value), ty) => Edge::Fits(value),
                None => Edge::Test(value),
            };
            (pred, edge)
        })
        .collect();
    let leads_on = |pred: Block| func.terminator(pred).is_some_and(|t| func.op(t) == Op::Goto);
    let tests = || edges.iter().filter(|(_, edge)| matches!(edge, Edge::Test(_)));
    let gains = edges.iter().any(|(_, edge)| matches!(edge, Edge::Fits(_)));
    let fits = gains && tests().count() <= MAX_TESTS && tests().all(|&(pred, _)| leads_on(pred));
    fits.then_some(Found::Phi(Plan { phi, ty, edges }))
}

/// Whether the assertion follows the φ in its block, with nothing between them that must not happen if it fails.
fn follows(func: &Func, types: &Types, phi: Inst, assert: Inst) -> bool {
    let mut at = func.next_inst(phi);
    for _ in 0..MAX_BETWEEN {
        let Some(inst) = at else { return false };
        if inst == assert {
            return true;
        }
        let harmless = matches!(func.op(inst), Op::Phi | Op::PhiC | Op::Copy | Op::Pi)
            || effects(func, types, inst).is_removable();
        if !harmless || may_fail(func, types, &Tests::none(), inst) {
            return false;
        }
        at = func.next_inst(inst);
    }
    false
}

impl Plan {
    /// Makes the new φ beside the old one. New assertions are added to the worklist.
    fn apply(&self, func: &mut Func, assert: Inst, work: &mut Vec<Inst>) -> Value {
        let wanted = func.args(assert)[1];
        let new = func.make_inst(Op::Phi, &[], &[], &[self.ty]);
        func.set_place(new, func.place(self.phi));
        func.insert_before(new, self.phi);
        let result = func.result(new).expect("made with one result");
        for &(pred, edge) in &self.edges {
            let value = match edge {
                Edge::Fits(value) => value,
                Edge::Own => result,
                Edge::Test(value) => {
                    let op = Op::Builtin(Builtin::Typeassert);
                    let test = func.make_inst(op, &[value, wanted], &[], &[self.ty]);
                    func.set_place(test, func.place(assert));
                    if let Some(end) = func.terminator(pred) {
                        func.insert_before(test, end);
                    }
                    work.push(test);
                    func.result(test).expect("made with one result")
                }
            };
            func.add_phi_edge(new, pred, value);
        }
        result
    }
}
