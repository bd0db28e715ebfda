//! Loops that count: values that change by the same amount in every iteration, and the number of iterations.
//!
//! ```text
//! p: goto h                                   preheader
//! h: %i = φ (p => start, l => %next)          a *recurrence*: start, start + step, start + 2·step, …
//!    …
//! l: %next = add_int(%i, step)                the latch
//!    %c = slt_int(%next, bound)               the *test*: the loop continues while `next < bound`
//!    goto x if not %c, else h
//! ```
//!
//! All arithmetic is modulo 2^width, as in the IR. A test is brought into one form: a [`Relation`] between the recurrence, before
//! (`Tested::This`) or after (`Tested::Next`) the step, and a value that does not change in the loop; the loop *continues* while
//! it holds.
//!
//! **Iterations.** [`Counted::iterations`] is the exact number of times the head is executed if start, step and bound are constants and
//! nothing else leaves the loop. If the sequence leaves the range of its type before the loop ends, it wraps and the loop continues; then there
//! is no answer. [`most_iterations`] is an upper bound, from any test that every iteration reaches; it also uses that a
//! value that is shifted right becomes 0.
//!
//! **Facts before the loop.** [`Counted::is_guarded`] finds the test of the first iteration, as `rotate` leaves it, among the branches
//! that lead to the preheader.
//!
//! Cost: the φ of the head, and a walk over at most [`MAX_GUARDS`] blocks. Not done: recurrences of recurrences; steps that
//! are subtracted (`inst-simplify` makes them sums); integers of 128 bits have no iterations.

use brolga_ir::analysis::{Cfg, DomTree, Loop, Loops};
use brolga_ir::intrinsic::Intrinsic;
use brolga_ir::{Block, Func, Inst, Op, Type, Value};

/// The most single predecessors examined for the test of the first iteration.
const MAX_GUARDS: usize = 4;

/// The blocks of a loop with one entering edge and one back edge.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub(crate) l: Loop,
    pub(crate) preheader: Block,
    pub(crate) header: Block,
    pub(crate) latch: Block,
}

impl Shape {
    pub(crate) fn of(cfg: &Cfg, loops: &Loops, l: Loop) -> Option<Shape> {
        let preheader = loops.preheader(cfg, l)?;
        let mut latches = loops.latches(cfg, l);
        let latch = latches.next()?;
        latches.next().is_none().then_some(Shape { l, preheader, header: loops.header(l), latch })
    }

    /// The operands of a φ of the head from the preheader and from the latch.
    pub(crate) fn edges(&self, func: &Func, phi: Inst) -> Option<(Value, Value)> {
        let from = |block| func.phi_edges(phi).find(|&(b, _)| b == block).map(|(_, v)| v);
        Some((from(self.preheader)?, from(self.latch)?))
    }
}

/// Whether a value is the same in every iteration of a loop.
pub(crate) fn is_invariant(func: &Func, loops: &Loops, l: Loop, value: Value) -> bool {
    func.def_inst(value).and_then(|def| func.inst_block(def)).is_none_or(|b| !loops.contains(l, b))
}

/// A value that changes by the same amount in every iteration.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Recurrence {
    /// Its value in an iteration: the result of a φ of the head.
    pub(crate) value: Value,
    /// Its value in the first iteration.
    pub(crate) start: Value,
    /// Its value in the next iteration.
    pub(crate) next: Value,
    /// The addend.
    pub(crate) step: Value,
}

impl Recurrence {
    /// The recurrence that a φ of the head makes.
    pub(crate) fn of(func: &Func, loops: &Loops, shape: &Shape, phi: Inst) -> Option<Recurrence> {
        let value = func.result(phi)?;
        let (start, next) = shape.edges(func, phi)?;
        let add = func.def_inst(next)?;
        let step = match (func.op(add), func.args(add)) {
            (Op::Intrinsic(Intrinsic::AddInt | Intrinsic::AddPtr), &[a, step]) if a == value => step,
            (Op::Intrinsic(Intrinsic::AddInt), &[step, b]) if b == value => step,
            _ => return None,
        };
        is_invariant(func, loops, shape.l, step).then_some(Recurrence { value, start, next, step })
    }

    /// The step, if it is a constant.
    pub(crate) fn const_step(&self, func: &Func) -> Option<i128> {
        signed(func, self.step)
    }
}

/// The recurrences of a loop.
pub(crate) fn recurrences<'a>(
    func: &'a Func,
    loops: &'a Loops,
    shape: &'a Shape,
) -> impl Iterator<Item = Recurrence> + 'a {
    let phis = func.block_insts(shape.header).take_while(|&i| func.op(i) == Op::Phi);
    phis.filter_map(move |phi| Recurrence::of(func, loops, shape, phi))
}

/// The value of an integer constant of at most 64 bits, read as signed.
pub(crate) fn signed(func: &Func, value: Value) -> Option<i128> {
    let width = int_width(func, value)?;
    let bits = func.as_bits(value)? as i128;
    Some(bits << (128 - width) >> (128 - width))
}

/// The width of an integer or address of at most 64 bits.
pub(crate) fn int_width(func: &Func, value: Value) -> Option<u32> {
    let ty = func.ty(value);
    let low = ty.as_low().filter(|low| ty == Type::PTR || low.is_int())?;
    Some(low.bits()).filter(|&bits| bits <= 64)
}

/// How a tested value and its bound compare while a loop continues.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Relation {
    /// `tested < bound`, signed or not.
    Less(Signed),
    /// `tested <= bound`, signed or not.
    AtMost(Signed),
    /// `tested > bound`, signed or not.
    Greater(Signed),
    /// `tested >= bound`, signed or not.
    AtLeast(Signed),
    /// They differ.
    Differs,
}

/// How the bits of an integer are read by a comparison.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Signed {
    Yes,
    No,
}

impl Relation {
    /// The relation between `a` and `b` while `compare(a, b)` has the given value. Equality is not a condition on which
    /// loops continue.
    fn of(compare: Intrinsic, holds: bool) -> Option<Relation> {
        let relation = match compare {
            Intrinsic::SltInt => Relation::Less(Signed::Yes),
            Intrinsic::SleInt => Relation::AtMost(Signed::Yes),
            Intrinsic::UltInt => Relation::Less(Signed::No),
            Intrinsic::UleInt => Relation::AtMost(Signed::No),
            Intrinsic::NeInt if holds => return Some(Relation::Differs),
            Intrinsic::EqInt if !holds => return Some(Relation::Differs),
            _ => return None,
        };
        Some(if holds { relation } else { relation.negated() })
    }

    fn negated(self) -> Relation {
        match self {
            Relation::Less(s) => Relation::AtLeast(s),
            Relation::AtMost(s) => Relation::Greater(s),
            Relation::Greater(s) => Relation::AtMost(s),
            Relation::AtLeast(s) => Relation::Less(s),
            Relation::Differs => Relation::Differs,
        }
    }

    /// The relation of `b` to `a`, if this one relates `a` to `b`.
    pub(crate) fn swapped(self) -> Relation {
        match self {
            Relation::Less(s) => Relation::Greater(s),
            Relation::AtMost(s) => Relation::AtLeast(s),
            Relation::Greater(s) => Relation::Less(s),
            Relation::AtLeast(s) => Relation::AtMost(s),
            Relation::Differs => Relation::Differs,
        }
    }

    fn signedness(self) -> Signed {
        match self {
            Relation::Less(s) | Relation::AtMost(s) | Relation::Greater(s) | Relation::AtLeast(s) => s,
            Relation::Differs => Signed::Yes,
        }
    }
}

/// Two values and the relation that holds between them when a branch takes one of its edges.
pub(crate) fn related(func: &Func, branch: Inst, taken: usize) -> Option<(Value, Relation, Value)> {
    let &[cond] = func.args(branch) else { return None };
    related_by(func, cond, taken == 0)
}

/// Two values and the relation that holds between them when a condition has this value.
fn related_by(func: &Func, cond: Value, truth: bool) -> Option<(Value, Relation, Value)> {
    let compare = func.def_inst(cond)?;
    let (Op::Intrinsic(op), &[a, b]) = (func.op(compare), func.args(compare)) else { return None };
    Some((a, Relation::of(op, truth)?, b))
}

/// The two parts of a conjunction.
fn conjunction(func: &Func, cond: Value) -> Option<[Value; 2]> {
    let made = func.def_inst(cond)?;
    match (func.op(made), func.args(made)) {
        (Op::Intrinsic(Intrinsic::AndInt), &[a, b]) => Some([a, b]),
        _ => None,
    }
}

/// Which value of a recurrence is tested.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Tested {
    /// The value in this iteration.
    This,
    /// The value in the next iteration.
    Next,
}

/// A branch out of a loop that compares a recurrence with a bound.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Test {
    pub(crate) branch: Inst,
    /// The target that is outside.
    pub(crate) exit: Block,
    pub(crate) counter: Recurrence,
    pub(crate) tested: Tested,
    /// The loop continues while this holds between the counter and the bound.
    pub(crate) relation: Relation,
    pub(crate) bound: Value,
}

impl Test {
    /// The test at the end of a block of the loop.
    pub(crate) fn at(func: &Func, loops: &Loops, shape: &Shape, block: Block) -> Option<Test> {
        let (branch, exit, taken) = way_out(func, loops, shape.l, block)?;
        let (a, relation, b) = related(func, branch, taken)?;
        let (tested, relation, bound) = if is_invariant(func, loops, shape.l, b) {
            (a, relation, b)
        } else {
            is_invariant(func, loops, shape.l, a).then_some((b, relation.swapped(), a))?
        };
        let found = recurrences(func, loops, shape).find(|r| tested == r.value || tested == r.next)?;
        let which = if tested == found.value { Tested::This } else { Tested::Next };
        Some(Test { branch, exit, counter: found, tested: which, relation, bound })
    }

    /// The number of the iteration, from 1, in which the loop is left, if everything is constant and the sequence does not
    /// wrap before.
    fn iterations(&self, func: &Func) -> Option<u64> {
        let width = int_width(func, self.counter.value)?;
        let mask = (1i128 << width) - 1;
        let unsigned = self.relation.signedness() == Signed::No;
        let read = |v: Value| signed(func, v).map(|n| if unsigned { n & mask } else { n });
        let (start, bound, step) =
            (read(self.counter.start)?, read(self.bound)?, self.counter.const_step(func)?);
        let (lowest, highest) = if unsigned { (0, mask) } else { (-(mask >> 1) - 1, mask >> 1) };
        // Everything is counted upwards, as distances from the first tested value.
        let down = step < 0;
        let step = step.abs();
        let first = if self.tested == Tested::Next { start + if down { -step } else { step } } else { start };
        let (distance, room) =
            if down { (first - bound, first - lowest) } else { (bound - first, highest - first) };
        if step == 0 || room < 0 {
            return None;
        }
        // How many tests are passed before one fails: the tested value is then `first` + `passed` steps.
        let passed = match self.relation {
            Relation::Less(_) if !down => (distance + step - 1).div_euclid(step),
            Relation::Greater(_) if down => (distance + step - 1).div_euclid(step),
            Relation::AtMost(_) if !down => distance.div_euclid(step) + 1,
            Relation::AtLeast(_) if down => distance.div_euclid(step) + 1,
            Relation::Differs if distance % step == 0 && distance >= 0 => distance / step,
            _ => return None,
        };
        let passed = passed.max(0);
        (passed * step <= room).then(|| u64::try_from(passed + 1).ok())?
    }
}

/// The branch at the end of a block with one target outside the loop, that target, and the number of the other.
pub(crate) fn way_out(func: &Func, loops: &Loops, l: Loop, block: Block) -> Option<(Inst, Block, usize)> {
    let branch = func.terminator(block).filter(|&t| func.op(t) == Op::Branch)?;
    match *func.inst_blocks(branch) {
        [a, b] if loops.contains(l, a) && !loops.contains(l, b) => Some((branch, b, 0)),
        [a, b] if loops.contains(l, b) && !loops.contains(l, a) => Some((branch, a, 1)),
        _ => None,
    }
}

/// A loop whose latch ends in the test of a counter.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Counted {
    pub(crate) shape: Shape,
    pub(crate) test: Test,
}

impl Counted {
    pub(crate) fn of(func: &Func, cfg: &Cfg, loops: &Loops, l: Loop) -> Option<Counted> {
        let shape = Shape::of(cfg, loops, l)?;
        let test = Test::at(func, loops, &shape, shape.latch)?;
        Some(Counted { shape, test })
    }

    /// How often the head is executed, if the test is the only exit.
    pub(crate) fn iterations(&self, func: &Func) -> Option<u64> {
        self.test.iterations(func)
    }

    /// Whether the loop has fewer than `iterations` iterations on average, by the branch weights of its test.
    pub(crate) fn is_short(&self, func: &Func, iterations: usize) -> bool {
        let (Some(weights), &[yes, _]) =
            (func.branch_weights(self.test.branch), func.inst_blocks(self.test.branch))
        else {
            return false;
        };
        let weights = if yes == self.test.exit { weights.swapped() } else { weights };
        // The head is executed once more than the back edge is taken.
        u64::from(weights.yes()) < u64::from(weights.no()) * (iterations as u64 - 1)
    }

    /// Whether the test would have let the first iteration pass: the relation of the test is known to hold between the counter's
    /// start and the bound when the preheader is entered. Reads no block of another loop, which may be changing at the
    /// moment.
    pub(crate) fn is_guarded(&self, func: &Func, cfg: &Cfg, loops: &Loops) -> bool {
        let Test { counter, relation, bound, .. } = self.test;
        if let (Some(start), Some(bound)) = (signed(func, counter.start), signed(func, bound)) {
            return match relation {
                Relation::Less(Signed::Yes) => start < bound,
                Relation::AtMost(Signed::Yes) => start <= bound,
                Relation::Greater(Signed::Yes) => start > bound,
                Relation::AtLeast(Signed::Yes) => start >= bound,
                Relation::Differs => start != bound,
                _ => false,
            };
        }
        self.is_known_before(func, cfg, loops, |found| {
            found == (counter.start, relation, bound) || found == (bound, relation.swapped(), counter.start)
        })
    }

    /// Whether a 64-bit value was tested not to be negative before the preheader is entered.
    pub(crate) fn is_natural_before(&self, func: &Func, cfg: &Cfg, loops: &Loops, value: Value) -> bool {
        self.is_known_before(func, cfg, loops, |(a, relation, b)| {
            let (other, relation) = if b == value { (a, relation) } else { (b, relation.swapped()) };
            let least = signed(func, other).filter(|_| a == value || b == value);
            match relation {
                Relation::AtMost(Signed::Yes) => least.is_some_and(|least| least >= 0),
                Relation::Less(Signed::Yes) => least.is_some_and(|least| least >= -1),
                _ => false,
            }
        })
    }

    /// Whether a branch that dominates the preheader establishes the fact.
    fn is_known_before(
        &self,
        func: &Func,
        cfg: &Cfg,
        loops: &Loops,
        says: impl Fn((Value, Relation, Value)) -> bool,
    ) -> bool {
        let mut at = self.shape.preheader;
        for _ in 0..MAX_GUARDS {
            let around =
                |b: Block| loops.loop_of(b).is_none_or(|outer| loops.contains_loop(outer, self.shape.l));
            let Some(before) = cfg.single_pred(at).filter(|&b| around(b)) else { return false };
            if let Some(branch) = func.terminator(before).filter(|&t| func.op(t) == Op::Branch)
                && let Some(taken) = func.inst_blocks(branch).iter().position(|&b| b == at)
                && let Some(&cond) = func.args(branch).first()
            {
                let tells = |cond: Value| related_by(func, cond, taken == 0).is_some_and(&says);
                // Where a conjunction is true, so are its parts.
                let parts = if taken == 0 { conjunction(func, cond) } else { None };
                if tells(cond) || parts.is_some_and(|parts| parts.into_iter().any(tells)) {
                    return true;
                }
            }
            at = before;
        }
        false
    }
}

/// An upper bound of how often the head of a loop is executed each time the loop is entered.
pub(crate) fn most_iterations(func: &Func, cfg: &Cfg, tree: &DomTree, loops: &Loops, l: Loop) -> Option<u64> {
    let shape = Shape::of(cfg, loops, l)?;
    let exits = loops.exits(cfg, l).map(|(from, _)| from);
    let every_iteration =
        exits.filter(|&from| loops.loop_of(from) == Some(l) && tree.dominates(from, shape.latch));
    every_iteration
        .filter_map(|from| {
            let test = Test::at(func, loops, &shape, from);
            test.and_then(|t| t.iterations(func)).or_else(|| shifts_out(func, loops, &shape, from))
        })
        .min()
}

/// The iterations after which a value that is shifted right by a constant in each is 0, if a test leaves the loop then.
fn shifts_out(func: &Func, loops: &Loops, shape: &Shape, block: Block) -> Option<u64> {
    let (branch, _, taken) = way_out(func, loops, shape.l, block)?;
    let (a, Relation::Differs, b) = related(func, branch, taken)? else { return None };
    let tested = [(a, b), (b, a)].into_iter().find(|&(_, zero)| func.as_bits(zero) == Some(0))?.0;
    let phis = func.block_insts(shape.header).take_while(|&i| func.op(i) == Op::Phi);
    let shifted = phis.filter_map(|phi| Some((func.result(phi)?, shape.edges(func, phi)?.1)));
    for (value, next) in shifted.filter(|&(value, next)| tested == value || tested == next) {
        let shift = func.def_inst(next)?;
        if let (Op::Intrinsic(Intrinsic::LshrInt), &[of, by]) = (func.op(shift), func.args(shift))
            && of == value
            && let Some(by @ 1..) = func.as_bits(by)
        {
            let width = u128::from(int_width(func, value)?);
            // One iteration more where the value before the shift is tested.
            return u64::try_from(width.div_ceil(by) + 1).ok();
        }
    }
    None
}
