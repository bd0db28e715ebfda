//! Finds values that are the same constant whenever they are computed, together with the branches that they decide.
//!
//! ```text
//! 1: goto 2                                        unseen         "no path seen yet computes it"
//! 2: %1 = φ (1 => 5, 4 => %2)                     /   |   \
//!    branch eq_int(%1, 5), 3, 5      ==>      … 4     5     6 …     "this constant"
//! 3: %2 = φ (…) … goto 4                          \   |   /
//! 5: (never entered) %1 becomes 7 …                varies         "anything"
//! ```
//!
//! Values and edges are assumed unseen until shown otherwise, so a value in a loop is a constant if the loop cannot change
//! it, and a branch that such a constant decides keeps its dead side unseen (Wegman and Zadeck, "Constant
//! propagation with conditional branches", 1991). A value only moves down, at most twice, so this ends.
//!
//! A constant may be of any kind that can be interned, types and tuples too: φ, copies and choices pass it on; pure intrinsics of
//! bits are computed by the reference semantics. A missing φ edge has no value: the φ is then not used.
//!
//! Uses of constant values become the constants; `simplify-cfg` folds the branches, and `dce` drops unused instructions.
//!
//! Cost: each instruction is visited once for each newly seen edge into its block and twice for each operand. Needs the uses and
//! breaks them. Not done: ranges (`correlated`); memory; tuples that are made of constants.

use crate::facts::Fact;
use crate::heads::head_phis;
use crate::pass::{Changed, Pass, PassCx, PassLevel};
use crate::replace::{Replacements, sized};
use crate::rules::evaluate;
use brolga_ir::analysis::{Rpo, Uses};
use brolga_ir::builtin::Builtin;
use brolga_ir::scalar::Outcome;
use brolga_ir::{Block, Func, Inst, Op, Type, Types, Value};
use cranelift_entity::{EntitySet, SecondaryMap};
use smallvec::SmallVec;

pub(crate) const PASS: Pass =
    Pass::new("sccp", PassLevel::Both, run).needs(&[Fact::Cfg, Fact::Uses]).breaks(&[Fact::Uses]);

/// Knowledge about a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum State {
    #[default]
    Unseen,
    /// It is this constant.
    Const(Value),
    Varies,
}

/// Whether all operands of some φ are the same constant.
pub(crate) fn may_find(func: &Func) -> bool {
    let settled = |inst: Inst| match *func.args(inst) {
        [first, ..] => func.as_const(first).is_some() && func.args(inst).iter().all(|&v| v == first),
        _ => false,
    };
    func.blocks().any(|block| head_phis(func, block).any(settled))
}

fn run(func: &mut Func, cx: &mut PassCx<'_>) -> Changed {
    let Some(entry) = func.entry() else { return Changed::No };
    let solver = Solver {
        types: cx.types(),
        uses: cx.facts.uses(),
        states: sized(func.value_count()),
        entered: EntitySet::new(),
        edges: sized(func.inst_count()),
        blocks: vec![entry],
        insts: Vec::new(),
    };
    let states = solver.solve(func);
    apply(func, cx, &states)
}

struct Solver<'a> {
    types: &'a Types,
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
    fn solve(mut self, func: &mut Func) -> SecondaryMap<Value, State> {
        loop {
            if let Some(inst) = self.insts.pop() {
                if func.inst_block(inst).is_some_and(|b| self.entered.contains(b)) {
                    self.visit(func, inst);
                }
            } else if let Some(block) = self.blocks.pop() {
                let first_time = self.entered.insert(block);
                let mut next = func.first_inst(block);
                while let Some(inst) = next.filter(|&i| first_time || func.op(i) == Op::Phi) {
                    next = func.next_inst(inst);
                    self.visit(func, inst);
                }
            } else {
                return self.states;
            }
        }
    }

    fn state(&self, func: &Func, value: Value) -> State {
        match func.def_inst(value) {
            Some(_) => self.states[value],
            None if func.as_const(value).is_some() => State::Const(value),
            None => State::Varies,
        }
    }

    fn visit(&mut self, func: &mut Func, inst: Inst) {
        if func.op(inst).is_terminator() {
            return self.visit_end(func, inst);
        }
        // A varying value stays so; a φ of many edges is visited for each of them.
        if func.results(inst).next().is_some() && func.results(inst).all(|v| self.states[v] == State::Varies)
        {
            return;
        }
        let mut results = func.results(inst);
        match self.outcome(func, inst) {
            Found::Nothing => {}
            Found::One(state) => {
                if let Some(result) = results.next() {
                    self.lower(func, result, state);
                }
                results.for_each(|other| self.lower(func, other, State::Varies));
            }
            Found::Two(a, b) => results.zip([a, b]).for_each(|(v, c)| self.lower(func, v, State::Const(c))),
        }
    }

    /// Moves a value down to `state`, or to the bottom if it was something else.
    fn lower(&mut self, func: &Func, value: Value, state: State) {
        let old = self.states[value];
        let new = match (old, state) {
            (State::Unseen, new) => new,
            (old, new) if old == new => return,
            _ => State::Varies,
        };
        // A result may be asserted to be narrower than the constant: then this code is never reached.
        let fits = |c: Value| self.types.is_subtype(func.ty(c), func.ty(value));
        let new = match new {
            State::Const(c) if !fits(c) => State::Varies,
            other => other,
        };
        if new != old {
            self.states[value] = new;
            self.insts.extend(self.uses.of(value).iter().map(|u| u.inst));
        }
    }

    fn outcome(&self, func: &mut Func, inst: Inst) -> Found {
        let args = func.args(inst);
        match (func.op(inst), args) {
            (Op::Phi, _) => {
                let ways = func.inst_blocks(inst).iter().zip(args);
                let block = func.inst_block(inst);
                let entered = ways.filter(|&(&p, _)| block.is_some_and(|b| self.is_edge(func, p, b)));
                let mut meet = State::Unseen;
                for (_, &value) in entered {
                    meet = match (meet, self.state(func, value)) {
                        (one, State::Unseen) | (State::Unseen, one) => one,
                        (one, other) if one == other => one,
                        _ => State::Varies,
                    };
                }
                Found::state(meet)
            }
            (Op::Copy | Op::Pi, &[value]) => Found::state(self.state(func, value)),
            (Op::Builtin(Builtin::Ifelse), &[cond, yes, no]) => {
                let chosen = match self.state(func, cond) {
                    State::Unseen => return Found::Nothing,
                    State::Const(c) => func.as_bits(c).map(|bits| if bits == 0 { no } else { yes }),
                    State::Varies => None,
                };
                match (chosen, self.state(func, yes), self.state(func, no)) {
                    (Some(value), ..) => Found::state(self.state(func, value)),
                    (None, one, other) if one == other => Found::state(one),
                    (None, State::Unseen, _) | (None, _, State::Unseen) => Found::Nothing,
                    _ => Found::One(State::Varies),
                }
            }
            (Op::Intrinsic(op), _) if op.is_pure() => {
                let mut constants: SmallVec<[Value; 4]> = SmallVec::new();
                for &arg in args {
                    match self.state(func, arg) {
                        State::Unseen => return Found::Nothing,
                        State::Const(c) => constants.push(c),
                        State::Varies => return Found::One(State::Varies),
                    }
                }
                self.computed(func, inst, &constants)
            }
            _ => Found::One(State::Varies),
        }
    }

    /// A pure intrinsic of constants.
    fn computed(&self, func: &mut Func, inst: Inst, constants: &[Value]) -> Found {
        let types: SmallVec<[Type; 2]> = func.results(inst).map(|v| func.ty(v)).collect();
        match (evaluate(func, self.types, inst, constants), &types[..]) {
            (Some(Outcome::One(value)), &[ty]) => {
                Found::One(State::Const(func.bits(self.types, ty, value.bits())))
            }
            (Some(Outcome::Pair(value, wrapped)), &[ty, flag]) => Found::Two(
                func.bits(self.types, ty, value.bits()),
                func.bits(self.types, flag, u128::from(wrapped)),
            ),
            _ => Found::One(State::Varies),
        }
    }

    fn visit_end(&mut self, func: &Func, inst: Inst) {
        let targets = func.inst_blocks(inst);
        let taken = match (func.op(inst), func.args(inst)) {
            (Op::Branch, &[cond]) => match self.state(func, cond) {
                State::Unseen => 0,
                State::Const(c) => func.as_bits(c).map_or(3, |bits| if bits == 0 { 2 } else { 1 }),
                State::Varies => 3,
            },
            _ => 3,
        };
        let new = taken & !self.edges[inst];
        self.edges[inst] |= taken;
        for (n, &target) in targets.iter().enumerate() {
            if new >> n & 1 != 0 {
                self.blocks.push(target);
            }
        }
        // Results of `enter` are tokens.
        for result in func.results(inst) {
            self.lower(func, result, State::Varies);
        }
    }

    fn is_edge(&self, func: &Func, from: Block, to: Block) -> bool {
        let Some(end) = func.terminator(from) else { return false };
        let bits = self.edges[end];
        func.inst_blocks(end).iter().enumerate().any(|(n, &t)| t == to && bits >> n & 1 != 0)
    }
}

/// The result of an instruction.
enum Found {
    /// It is not known yet.
    Nothing,
    One(State),
    Two(Value, Value),
}

impl Found {
    fn state(state: State) -> Found {
        if state == State::Unseen { Found::Nothing } else { Found::One(state) }
    }
}

fn apply(func: &mut Func, cx: &mut PassCx<'_>, states: &SecondaryMap<Value, State>) -> Changed {
    let mut values = Replacements::default();
    let rpo: &Rpo = cx.facts.rpo();
    'all: for &block in rpo.blocks() {
        for inst in func.block_insts(block) {
            for result in func.results(inst) {
                let State::Const(c) = states[result] else { continue };
                if cx.facts.uses().is_unused(result) {
                    continue;
                }
                if !cx.spend("constants") {
                    break 'all;
                }
                values.set(result, c);
            }
        }
    }
    values.apply(func, cx.context());
    cx.changed()
}
