//! Infers the types of φ from the paths that can be taken, and folds the type tests that these decide.
//!
//! ```text
//! 2: %1 = φ (1 => 0.5, 5 => %4)::Any                 2: %1 = φ (1 => 0.5, 5 => %2)::Float64
//!    … branch isa(%1, Float64), 3, 4                    …
//! 3: %2 = add_float(π(%1, Float64), 1.5)      ==>    3: %2 = add_float(%1, 1.5)
//! 4: %3 = call +(%1, 1.5)                            (4 is never entered)
//! 5: %4 = φ (3 => %2, 4 => %3)::Any
//! ```
//!
//! A front end without types emits this once `union-split` has tested for the usual types: the other operands never occur, and that is known as soon as all paths of
//! a loop are looked at together. This is `sccp` over types: a value has been seen with no type, or with a type, and a branch on a test that
//! all seen types decide has one edge. So a loop is first assumed to be entered with the types from before it, and a value only gets more types, at most
//! [`MAX_TYPES`] and then its declared one. A test of a value of several types is of those that the tests above it have left (`asserted`). The type of every other row is the declared one, which holds whenever the row has been executed.
//!
//! A φ gets the type that was found if that is concrete or a union of types of numbers, which need no box; a branch with one edge gets a constant for its condition. What
//! follows from the new types is done by `inst-simplify`, and the edges go with `simplify-cfg`; an edge that is never taken brings no value until then.
//!
//! Cost: a visit to each instruction, and one more for each new type of an operand. Needs the graph and the uses; breaks the uses. Not done: fields;
//! results of calls; pairs of types, of which tests of two values leave some.

use crate::asserted::Tests;
use crate::facts::Fact;
use crate::heads::head_phis;
use crate::pass::{Changed, Pass, PassCx, PassLevel};
use crate::refit::assert_type;
use crate::replace::{Replacements, sized};
use brolga_ir::analysis::Uses;
use brolga_ir::builtin::Builtin;
use brolga_ir::constant::Const;
use brolga_ir::intrinsic::Intrinsic;
use brolga_ir::{Block, Func, Inst, Op, Type, Types, Value};
use cranelift_entity::{EntitySet, SecondaryMap};

pub(crate) const PASS: Pass =
    Pass::new("infer", PassLevel::High, run).needs(&[Fact::Cfg, Fact::Uses]).breaks(&[Fact::Uses]);

/// The most types of one value before it has its declared type. Each may cause another visit of the users.
const MAX_TYPES: usize = 4;

/// Knowledge about a value: a bound of its type; `Union{}` if no path yet computes it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct State {
    ty: Type,
    truth: Truth,
}

/// The truth values that a condition may have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Truth {
    yes: bool,
    no: bool,
}

impl Truth {
    const NEITHER: Truth = Truth { yes: false, no: false };
    const EITHER: Truth = Truth { yes: true, no: true };

    const fn of(truth: bool) -> Truth {
        Truth { yes: truth, no: !truth }
    }
}

impl State {
    const UNSEEN: State = State { ty: Type::BOTTOM, truth: Truth::NEITHER };

    /// A value of this type of which nothing else is known.
    const fn any(ty: Type) -> State {
        State { ty, truth: Truth::EITHER }
    }

    const fn truth(truth: Truth) -> State {
        State { ty: Type::BOOL, truth }
    }

    fn is_unseen(self) -> bool {
        self.ty == Type::BOTTOM
    }
}

impl Default for State {
    fn default() -> State {
        State::UNSEEN
    }
}

/// Whether the function may have something to infer: it tests types.
pub(crate) fn may_find(func: &Func) -> bool {
    let mut insts = func.blocks().flat_map(|block| func.block_insts(block));
    insts.any(|inst| func.op(inst) == Op::Builtin(Builtin::Isa))
}

fn run(func: &mut Func, cx: &mut PassCx<'_>) -> Changed {
    let Some(entry) = func.entry() else { return Changed::No };
    if !may_find(func) {
        return Changed::No;
    }
    let mut solver = Solver {
        types: cx.types(),
        tests: Tests::compute(func, cx.types(), cx.facts.cfg()),
        uses: cx.facts.uses(),
        states: sized(func.value_count()),
        entered: EntitySet::new(),
        edges: sized(func.inst_count()),
        blocks: vec![entry],
        insts: Vec::new(),
    };
    solver.solve(func);
    let (narrowed, decided) = solver.found(func);
    apply(func, cx, &narrowed, &decided);
    cx.changed()
}

/// A φ, the type that it gets, and its operands with whether their edges are taken.
struct Narrowed {
    phi: Inst,
    ty: Type,
    edges: Vec<(Block, Value, bool)>,
}

struct Solver<'a> {
    types: &'a Types,
    tests: Tests,
    uses: &'a Uses,
    states: SecondaryMap<Value, State>,
    /// The blocks that some path enters.
    entered: EntitySet<Block>,
    /// By terminator: which of its targets are entered from there, as bits.
    edges: SecondaryMap<Inst, u8>,
    /// Blocks with a new incoming edge.
    blocks: Vec<Block>,
    /// Instructions with a changed operand.
    insts: Vec<Inst>,
}

impl Solver<'_> {
    fn solve(&mut self, func: &Func) {
        loop {
            if let Some(inst) = self.insts.pop() {
                if func.inst_block(inst).is_some_and(|b| self.entered.contains(b)) {
                    self.visit(func, inst);
                }
            } else if let Some(block) = self.blocks.pop() {
                let first_time = self.entered.insert(block);
                for inst in func.block_insts(block) {
                    if first_time || func.op(inst) == Op::Phi {
                        self.visit(func, inst);
                    }
                }
            } else {
                return;
            }
        }
    }

    fn state(&self, func: &Func, value: Value) -> State {
        if func.def_inst(value).is_some() {
            return self.states[value];
        }
        let ty = func.ty(value);
        match func.as_bits(value).filter(|_| ty == Type::BOOL) {
            Some(bits) => State::truth(Truth::of(bits != 0)),
            None => State::any(ty),
        }
    }

    fn visit(&mut self, func: &Func, inst: Inst) {
        if func.op(inst).is_terminator() {
            self.visit_end(func, inst);
        }
        let mut results = func.results(inst);
        let Some(first) = results.next() else { return };
        let found = self.outcome(func, inst, func.ty(first));
        self.raise(func, first, found);
        results.for_each(|other| self.raise(func, other, State::any(func.ty(other))));
    }

    /// Adds what a value may be.
    fn raise(&mut self, func: &Func, value: Value, found: State) {
        let (old, declared) = (self.states[value], func.ty(value));
        let ty = self.either(old.ty, found.ty, declared);
        let ty = if self.types.is_subtype(ty, declared) { ty } else { declared };
        let truth = Truth { yes: old.truth.yes || found.truth.yes, no: old.truth.no || found.truth.no };
        let new = State { ty, truth };
        if new != old {
            self.states[value] = new;
            self.insts.extend(self.uses.of(value).iter().map(|u| u.inst));
        }
    }

    /// A type that has all values of both; `most` if there is none of few members.
    fn either(&self, a: Type, b: Type, most: Type) -> Type {
        if self.types.is_subtype(b, a) {
            return a;
        }
        if self.types.is_subtype(a, b) {
            return b;
        }
        let both = self.types.union(&[a, b]).ok();
        both.filter(|union| self.types.members(union).len() <= MAX_TYPES).unwrap_or(most)
    }

    fn join(&self, a: State, b: State, most: Type) -> State {
        let truth = Truth { yes: a.truth.yes || b.truth.yes, no: a.truth.no || b.truth.no };
        State { ty: self.either(a.ty, b.ty, most), truth }
    }

    fn outcome(&self, func: &Func, inst: Inst, declared: Type) -> State {
        let args = func.args(inst);
        let state = |value| self.state(func, value);
        match (func.op(inst), args) {
            (Op::Phi, _) => {
                let taken = self.taken(func, inst).filter(|&(.., taken)| taken);
                taken.fold(State::UNSEEN, |all, (_, value, _)| self.join(all, state(value), declared))
            }
            (Op::Copy | Op::Pi, &[value]) | (Op::Builtin(Builtin::Typeassert), &[value, _]) => state(value),
            (Op::Builtin(Builtin::Ifelse), &[condition, yes, no]) => {
                let truth = state(condition).truth;
                let of = |may: bool, value| if may { state(value) } else { State::UNSEEN };
                self.join(of(truth.yes, yes), of(truth.no, no), declared)
            }
            (Op::Builtin(Builtin::Isa), &[value, wanted]) => {
                match (self.tested(func, inst, value), func.as_const(wanted)) {
                    (seen, _) if seen.is_unseen() => State::UNSEEN,
                    (seen, Some(&Const::Type { of, .. })) if self.types.is_subtype(seen.ty, of) => {
                        State::truth(Truth::of(true))
                    }
                    (seen, Some(&Const::Type { of, .. })) if self.types.is_disjoint(seen.ty, of) => {
                        State::truth(Truth::of(false))
                    }
                    _ => State::any(declared),
                }
            }
            (Op::Builtin(Builtin::Egal), &[a, b]) => match (state(a), state(b)) {
                (a, b) if a.is_unseen() || b.is_unseen() => State::UNSEEN,
                (a, b) if self.types.is_disjoint(a.ty, b.ty) => State::truth(Truth::of(false)),
                _ => State::any(declared),
            },
            (Op::Intrinsic(op), args) if declared == Type::BOOL => self.connective(func, op, args),
            _ => State::any(declared),
        }
    }

    /// A value at a test, given the tests above.
    fn tested(&self, func: &Func, test: Inst, value: Value) -> State {
        let seen = self.state(func, value);
        let Some(block) = func.inst_block(test).filter(|_| self.types.members(&seen.ty).len() > 1) else {
            return seen;
        };
        State { ty: self.tests.narrowed(func, self.types, value, block, seen.ty), ..seen }
    }

    /// A condition of conditions.
    fn connective(&self, func: &Func, op: Intrinsic, args: &[Value]) -> State {
        let truth = |value| self.state(func, value).truth;
        match (op, args) {
            (Intrinsic::NotInt, &[a]) => {
                let a = truth(a);
                self.seen_truth(Truth { yes: a.no, no: a.yes })
            }
            (Intrinsic::AndInt | Intrinsic::OrInt, &[a, b]) => {
                let (a, b) = (truth(a), truth(b));
                if a == Truth::NEITHER || b == Truth::NEITHER {
                    return State::UNSEEN;
                }
                match op {
                    Intrinsic::AndInt => self.seen_truth(Truth { yes: a.yes && b.yes, no: a.no || b.no }),
                    _ => self.seen_truth(Truth { yes: a.yes || b.yes, no: a.no && b.no }),
                }
            }
            _ => State::any(Type::BOOL),
        }
    }

    fn seen_truth(&self, truth: Truth) -> State {
        if truth == Truth::NEITHER { State::UNSEEN } else { State::truth(truth) }
    }

    fn visit_end(&mut self, func: &Func, inst: Inst) {
        let taken = match (func.op(inst), func.args(inst)) {
            (Op::Branch, &[condition]) => {
                let truth = self.state(func, condition).truth;
                u8::from(truth.yes) | u8::from(truth.no) << 1
            }
            _ => 3,
        };
        let new = taken & !self.edges[inst];
        self.edges[inst] |= taken;
        for (n, &target) in func.inst_blocks(inst).iter().enumerate() {
            if new >> n & 1 != 0 {
                self.blocks.push(target);
            }
        }
    }

    /// The edges of a φ with whether a path takes them.
    fn taken<'f>(
        &self,
        func: &'f Func,
        phi: Inst,
    ) -> impl Iterator<Item = (Block, Value, bool)> + use<'_, 'f> {
        let block = func.inst_block(phi);
        func.phi_edges(phi).map(move |(from, value)| {
            let end = func.terminator(from).zip(block);
            let taken = end.is_some_and(|(end, to)| {
                let bits = self.edges[end];
                func.inst_blocks(end).iter().enumerate().any(|(n, &t)| t == to && bits >> n & 1 != 0)
            });
            (from, value, taken)
        })
    }

    /// The φ with better types, and the branches that are decided, with their condition.
    fn found(&self, func: &Func) -> (Vec<Narrowed>, Vec<(Inst, bool)>) {
        let (mut narrowed, mut decided) = (Vec::new(), Vec::new());
        for block in func.blocks().filter(|&block| self.entered.contains(block)) {
            for phi in head_phis(func, block).filter(|&phi| func.op(phi) == Op::Phi) {
                let Some(result) = func.result(phi) else { continue };
                let (ty, declared) = (self.states[result].ty, func.ty(result));
                if ty != declared && self.needs_no_box(ty) && !self.types.is_subtype(declared, ty) {
                    narrowed.push(Narrowed { phi, ty, edges: self.taken(func, phi).collect() });
                }
            }
            let Some(end) = func.terminator(block) else { continue };
            if let (Op::Branch, &[condition], &[yes, no]) =
                (func.op(end), func.args(end), func.inst_blocks(end))
                && func.as_const(condition).is_none()
                && yes != no
                && matches!(self.edges[end], 1 | 2)
            {
                decided.push((end, self.edges[end] == 1));
            }
        }
        (narrowed, decided)
    }

    /// Whether values of a type are better than objects of unknown type.
    fn needs_no_box(&self, ty: Type) -> bool {
        let all_numbers = || self.types.members(&ty).iter().all(|&m| self.types.primitive(m).is_some());
        ty != Type::BOTTOM && (self.types.is_concrete(ty) || all_numbers())
    }
}

fn apply(func: &mut Func, cx: &mut PassCx<'_>, narrowed: &[Narrowed], decided: &[(Inst, bool)]) {
    for &(end, truth) in decided {
        if !cx.spend("branches") {
            return;
        }
        let truth = func.bits(cx.types(), Type::BOOL, u128::from(truth));
        func.args_mut(end)[0] = truth;
    }
    let mut values = Replacements::default();
    let mut made = Vec::new();
    for found in narrowed {
        if !cx.spend("types") {
            break;
        }
        let new = func.make_inst(Op::Phi, &[], &[], &[found.ty]);
        func.set_place(new, func.place(found.phi));
        func.insert_before(new, found.phi);
        if let (Some(old), Some(new)) = (func.result(found.phi), func.result(new)) {
            values.set(old, new);
        }
        made.push((new, found));
    }
    for &(new, found) in &made {
        for &(from, value, taken) in &found.edges {
            let value = values.resolve(value);
            let value = match taken {
                false => func.constant(Const::Undef(found.ty)),
                true if cx.types().is_subtype(func.ty(value), found.ty) => value,
                true => asserted(func, cx.types(), value, found.ty, new, from),
            };
            func.add_phi_edge(new, from, value);
        }
    }
    for (_, found) in made {
        func.remove_inst(found.phi);
    }
    values.apply(func, cx.context());
}

/// A value under the type that it has on the edge from a block.
fn asserted(func: &mut Func, types: &Types, value: Value, ty: Type, phi: Inst, from: Block) -> Value {
    let (op, args) = assert_type(func, types, value, ty);
    let inst = func.make_inst(op, &args, &[], &[ty]);
    func.set_place(inst, func.place(phi));
    match func.terminator(from) {
        Some(end) => func.insert_before(inst, end),
        None => func.append_inst(inst, from),
    }
    func.result(inst).unwrap_or(value)
}
