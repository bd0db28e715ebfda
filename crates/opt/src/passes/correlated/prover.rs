//! Proofs of "a is at most b + k" from the tests that dominate a place.
//!
//! ```text
//! 1: sle_int(1, n)  ──yes──►  2: i = φ (1 => 1, 3 => i')              to prove in 2: i ≤ n
//!                                … ult_int(i - 1, n) …                  from 1: 1 ≤ n          tested
//!                             3: eq_int(i, n)  ──no──► i' = i + 1 ─┐     from 3: i' = i + 1 ≤ n  since i ≠ n, and i ≤ n
//!                                  ▲                               │             is the goal, one iteration earlier
//!                                  └───────────────────────────────┘
//! ```
//!
//! Numbers are mathematical: signed integers without a width. A *fact* is the outcome of a branch's test; it holds in the blocks
//! that the branch's edge dominates, and on the edge itself. The length of a new `Memory` is not negative after the call that makes it, which
//! throws otherwise. A goal follows from its ranges, from a fact that leads to an easier
//! goal, or from the definition of one of its sides; the goal for a φ follows from the goals for all its operands, whose proofs may use the goal
//! itself: it holds for the φ of the iteration before (the other side must be made outside of the loop, so that it is the same).
//!
//! Wrapping is harmless where it makes a sum smaller for an upper bound, or larger for a lower one; elsewhere it is
//! proved not to happen. The method follows Bodík, Gupta and Sarkar, "ABCD: eliminating array bounds checks on demand"
//! (2000), with comparisons of any kind as facts and without their graph.
//!
//! Cost: at most [`MAX_GOALS`] goals for a query, [`MAX_DEPTH`] nested, with [`MAX_FACTS`] facts for each.

use super::tested::{Term, Test, ZERO, call_test, cond_tests, term, way_tests};
use crate::ranges::{Range, Ranges, constant, strict, width};
use crate::replace::sized;
use brolga_ir::analysis::{Cfg, DomTree, Rpo};
use brolga_ir::builtin::Builtin;
use brolga_ir::func::ValueDef;
use brolga_ir::intrinsic::Intrinsic;
use brolga_ir::{Block, Func, Inst, Op, Value};
use cranelift_entity::SecondaryMap;
use rustc_hash::FxHashMap;

/// The most goals for one query. Checks in loops take 5 to 20.
const MAX_GOALS: u32 = 96;

/// Nested goals.
const MAX_DEPTH: u32 = 12;

/// The most facts examined for one value. More occur only in long chains of comparisons with constants.
const MAX_FACTS: usize = 12;

/// The most operands of a φ.
const MAX_EDGES: usize = 6;

/// Facts that are kept of the calls of one block.
const MAX_CALLS: usize = 8;

#[derive(Clone, Copy, Debug)]
struct Fact {
    /// Where it holds: in all blocks that this one dominates.
    block: Block,
    /// Except the block itself.
    behind: bool,
    test: Test,
}

/// A place: a block, or an edge from it to another.
#[derive(Clone, Copy)]
pub(super) struct At<'t> {
    pub(super) block: Block,
    /// The further tests that hold on the edge.
    pub(super) way: &'t [Test],
}

/// The query, and the facts for its proof.
pub(super) struct Prover<'a> {
    cfg: &'a Cfg,
    rpo: &'a Rpo,
    tree: &'a DomTree,
    ranges: Ranges,
    facts: Vec<Fact>,
    /// By value: where its facts begin and end in `by_value`.
    of: SecondaryMap<Value, (u32, u32)>,
    by_value: Vec<u32>,
    /// By block: what calls in it prove about their operands.
    calls: FxHashMap<Block, Vec<Test>>,
    /// Facts that calls in the current block have proved so far.
    here: Vec<Test>,
    /// Goals that are being proved for φ.
    assumed: Vec<(Option<Value>, Option<Value>, i128)>,
    goals: u32,
    /// All goals so far.
    pub(super) spent: usize,
}

impl<'a> Prover<'a> {
    /// Collects the facts of all reachable blocks.
    pub(super) fn new(func: &Func, cfg: &'a Cfg, rpo: &'a Rpo, tree: &'a DomTree) -> Prover<'a> {
        // Usually each edge of a branch yields two facts.
        let mut facts = Vec::with_capacity(2 * rpo.blocks().len());
        let mut tests = Vec::new();
        let mut calls: FxHashMap<Block, Vec<Test>> = FxHashMap::default();
        for &block in rpo.blocks() {
            for test in func.block_insts(block).filter_map(|inst| call_test(func, inst)) {
                facts.push(Fact { block, behind: true, test });
                let known = calls.entry(block).or_default();
                if known.len() < MAX_CALLS {
                    known.push(test);
                }
            }
            let [pred] = *cfg.preds(block) else { continue };
            way_tests(func, pred, block, &mut tests);
            facts.extend(tests.drain(..).map(|test| Fact { block, behind: false, test }));
        }
        let (of, by_value) = by_value(&facts, func.value_count());
        let ranges = Ranges::of(func, rpo);
        Prover {
            cfg,
            rpo,
            tree,
            ranges,
            facts,
            of,
            by_value,
            calls,
            here: Vec::new(),
            assumed: Vec::new(),
            goals: 0,
            spent: 0,
        }
    }

    /// Moves to the start of a block: later queries refer to it.
    pub(super) fn enter_block(&mut self) {
        self.here.clear();
    }

    /// Advances past an instruction of the block.
    pub(super) fn pass_by(&mut self, func: &Func, inst: Inst) {
        if self.here.len() < MAX_CALLS {
            self.here.extend(call_test(func, inst));
        }
    }

    /// The range of a value wherever it is.
    pub(super) fn range(&self, func: &Func, value: Value) -> Option<Range> {
        self.ranges.get(func, value)
    }

    /// The known value of a condition in a block.
    pub(super) fn known(&self, cond: Value, block: Block) -> Option<bool> {
        self.numbers(cond).find_map(|n| match self.holds(n, block) {
            Some(Test::Known(_, truth)) => Some(truth),
            _ => None,
        })
    }

    /// The positions of the indices of facts about a value.
    fn numbers(&self, value: Value) -> impl Iterator<Item = u32> + use<> {
        let (start, end) = self.of[value];
        (start..end).take(MAX_FACTS)
    }

    /// The fact whose index is at this position, if it holds in the block.
    fn holds(&self, at: u32, block: Block) -> Option<Test> {
        let fact = self.facts[self.by_value[at as usize] as usize];
        let holds = match fact.behind {
            true => self.tree.strictly_dominates(fact.block, block),
            false => self.tree.dominates(fact.block, block),
        };
        holds.then_some(fact.test)
    }

    /// Whether `a <= b + k` can be proved in a block.
    pub(super) fn at_most(&mut self, func: &Func, a: Value, b: Value, k: i128, block: Block) -> bool {
        let (a, b) = (term(func, a), term(func, b));
        self.ask(func, a, b, k, block)
    }

    /// Whether `value <= k` can be proved.
    pub(super) fn at_most_number(&mut self, func: &Func, value: Value, k: i128, block: Block) -> bool {
        let value = term(func, value);
        self.ask(func, value, ZERO, k, block)
    }

    /// Whether `value >= k` can be proved.
    pub(super) fn at_least_number(&mut self, func: &Func, value: Value, k: i128, block: Block) -> bool {
        let value = term(func, value);
        self.ask(func, ZERO, value, -k, block)
    }

    /// Whether two values can be proved to be equal in a block where a condition has the given value.
    pub(super) fn equal_when(
        &mut self,
        func: &Func,
        a: Value,
        b: Value,
        (cond, truth): (Value, bool),
        block: Block,
    ) -> bool {
        let mut way = self.here.clone();
        cond_tests(func, cond, truth, &mut way);
        let at = At { block, way: &way };
        let (a, b) = (term(func, a), term(func, b));
        [(a, b), (b, a)].into_iter().all(|(a, b)| {
            self.goals = MAX_GOALS;
            self.assumed.clear();
            self.goal(func, a.value, b.value, i128::from(b.plus) - i128::from(a.plus), at, MAX_DEPTH)
        })
    }

    fn ask(&mut self, func: &Func, a: Term, b: Term, k: i128, block: Block) -> bool {
        self.goals = MAX_GOALS;
        self.assumed.clear();
        let here = std::mem::take(&mut self.here);
        let at = At { block, way: &here };
        let found =
            self.goal(func, a.value, b.value, k + i128::from(b.plus) - i128::from(a.plus), at, MAX_DEPTH);
        self.here = here;
        found
    }

    fn range_of(&self, func: &Func, value: Option<Value>) -> Option<Range> {
        match value {
            Some(value) => self.ranges.get(func, value),
            None => Some(Range::ZERO),
        }
    }

    /// Whether `a <= b + k`.
    fn goal(
        &mut self,
        func: &Func,
        a: Option<Value>,
        b: Option<Value>,
        k: i128,
        at: At<'_>,
        depth: u32,
    ) -> bool {
        if a == b {
            return k >= 0;
        }
        if self.assumed.iter().any(|&(p, q, c)| p == a && q == b && c <= k) {
            return true;
        }
        let (Some(left), Some(depth)) = (self.goals.checked_sub(1), depth.checked_sub(1)) else {
            return false;
        };
        (self.goals, self.spent) = (left, self.spent + 1);
        let (Some(x), Some(y)) = (self.range_of(func, a), self.range_of(func, b)) else { return false };
        if i128::from(x.hi) <= i128::from(y.lo) + k {
            return true;
        }
        if i128::from(x.lo) > i128::from(y.hi) + k {
            return false;
        }
        // Arithmetic leaves one goal, facts leave several, and a φ one for each incoming edge.
        a.is_some_and(|a| self.by_smaller_side(func, a, b, k, at, depth))
            || b.is_some_and(|b| self.by_larger_side(func, a, b, k, at, depth))
            || self.by_facts_cheaply(func, a, b, k, at, depth)
            || self.by_phi(func, a, b, k, depth)
            || self.by_choice(func, a, b, k, at, depth)
    }

    /// By the operands of a φ on one of the sides.
    fn by_phi(&mut self, func: &Func, a: Option<Value>, b: Option<Value>, k: i128, depth: u32) -> bool {
        let phi = |side: Option<Value>| {
            side.and_then(|v| func.def_inst(v)).filter(|&inst| func.op(inst) == Op::Phi)
        };
        let goal = (a, b, k);
        phi(a).is_some_and(|phi| {
            self.for_all_edges(func, phi, b, goal, |s, x, at| {
                s.goal(func, x.value, b, k - i128::from(x.plus), at, depth)
            })
        }) || phi(b).is_some_and(|phi| {
            self.for_all_edges(func, phi, a, goal, |s, x, at| {
                s.goal(func, a, x.value, k + i128::from(x.plus), at, depth)
            })
        })
    }

    /// As [`Self::by_facts`], with half of the goals: facts about a counter lead to each other many times before they fail,
    /// and the proof may be in the φ.
    fn by_facts_cheaply(
        &mut self,
        func: &Func,
        a: Option<Value>,
        b: Option<Value>,
        k: i128,
        at: At<'_>,
        depth: u32,
    ) -> bool {
        let kept = self.goals / 2;
        self.goals -= kept;
        let found = self.by_facts(func, a, b, k, at, depth);
        self.goals += kept;
        found
    }

    /// From a test on the edge, or a fact about one of the sides.
    fn by_facts(
        &mut self,
        func: &Func,
        a: Option<Value>,
        b: Option<Value>,
        k: i128,
        at: At<'_>,
        depth: u32,
    ) -> bool {
        a.into_iter().chain(b).any(|side| {
            at.way.iter().any(|&test| self.by_test(func, (a, b, k), test, at, depth))
                || self.numbers(side).any(|n| {
                    let test = self.holds(n, at.block);
                    test.is_some_and(|test| self.by_test(func, (a, b, k), test, at, depth))
                })
        })
    }

    /// From one test.
    fn by_test(
        &mut self,
        func: &Func,
        (a, b, k): (Option<Value>, Option<Value>, i128),
        test: Test,
        at: At<'_>,
        depth: u32,
    ) -> bool {
        match test {
            Test::AtMost(p, q, c) => self.by_way_of(func, (a, b, k), (p, q, i128::from(c)), at, depth),
            Test::UnsignedAtMost(p, q, c) => {
                // If the larger is not negative, neither is the other, and both compare as signed integers.
                let lower = (ZERO, p, 0);
                (self.by_way_of(func, (a, b, k), (p, q, i128::from(c)), at, depth)
                    || self.by_way_of(func, (a, b, k), lower, at, depth))
                    && self.goal(func, None, q.value, i128::from(q.plus), at, depth)
            }
            Test::Differ(p, q) => [(p, q), (q, p)].into_iter().any(|(p, q)| {
                let c = i128::from(q.plus) - i128::from(p.plus);
                // p ≤ q - 1 follows from p ≤ q, and q - 1 ≤ b + k remains to be shown; or a ≤ p + k + 1.
                let least = p.value == a && self.goal(func, q.value, b, k + 1 - c, at, depth);
                let most = !least && q.value == b && self.goal(func, a, p.value, k + 1 - c, at, depth);
                (least || most) && self.goal(func, p.value, q.value, c, at, depth)
            }),
            Test::Known(..) => false,
        }
    }

    /// From `p <= q + c` where p is a or q is b.
    fn by_way_of(
        &mut self,
        func: &Func,
        (a, b, k): (Option<Value>, Option<Value>, i128),
        (p, q, c): (Term, Term, i128),
        at: At<'_>,
        depth: u32,
    ) -> bool {
        let c = c + i128::from(q.plus) - i128::from(p.plus);
        (p.value == a && self.goal(func, q.value, b, k - c, at, depth))
            || (q.value == b && self.goal(func, a, p.value, k - c, at, depth))
    }

    /// From what computes the smaller side.
    fn by_smaller_side(
        &mut self,
        func: &Func,
        a: Value,
        b: Option<Value>,
        k: i128,
        at: At<'_>,
        depth: u32,
    ) -> bool {
        use Intrinsic as I;
        if let Some((x, c, all)) = sum(func, a) {
            // Downwards a sum may wrap to something large.
            let (x, c, least) = (term(func, x), i128::from(c), i128::from(all.lo));
            let plus = i128::from(x.plus);
            return self.goal(func, x.value, b, k - c - plus, at, depth)
                && (c >= 0 || self.goal(func, None, x.value, plus + c - least, at, depth));
        }
        let Some(inst) = func.def_inst(a) else { return false };
        match (func.op(inst), func.args(inst)) {
            (Op::Intrinsic(I::SubInt), &[x, y]) => {
                self.goal(func, Some(x), b, k, at, depth)
                    && self.natural(func, x, at, depth)
                    && self.natural(func, y, at, depth)
            }
            (Op::Intrinsic(I::AndInt), &[x, y]) => [x, y]
                .into_iter()
                .any(|one| self.goal(func, Some(one), b, k, at, depth) && self.natural(func, one, at, depth)),
            (Op::Intrinsic(I::LshrInt | I::AshrInt | I::SdivInt | I::UdivInt), &[x, y]) => {
                self.goal(func, Some(x), b, k, at, depth)
                    && self.ranges.get(func, y).is_some_and(Range::is_natural)
                    && self.natural(func, x, at, depth)
            }
            (Op::Intrinsic(I::SremInt | I::UremInt), &[x, y]) => {
                let positive = self.ranges.get(func, y).is_some_and(|r| r.lo > 0);
                positive
                    && (self.goal(func, Some(y), b, k + 1, at, depth)
                        || (self.goal(func, Some(x), b, k, at, depth) && self.natural(func, x, at, depth)))
            }
            (Op::Intrinsic(I::ZextInt), &[x]) => {
                self.goal(func, Some(x), b, k, at, depth) && self.natural(func, x, at, depth)
            }
            _ => false,
        }
    }

    /// From both operands of a choice on one of the sides. Comes last: the operands have fewer facts than the choice.
    fn by_choice(
        &mut self,
        func: &Func,
        a: Option<Value>,
        b: Option<Value>,
        k: i128,
        at: At<'_>,
        depth: u32,
    ) -> bool {
        let operands = |side: Option<Value>| {
            let inst = side.and_then(|v| func.def_inst(v))?;
            match (func.op(inst), func.args(inst)) {
                (Op::Builtin(Builtin::Ifelse), &[_, x, y]) => Some([term(func, x), term(func, y)]),
                _ => None,
            }
        };
        operands(a).is_some_and(|all| {
            all.into_iter().all(|x| self.goal(func, x.value, b, k - i128::from(x.plus), at, depth))
        }) || operands(b).is_some_and(|all| {
            all.into_iter().all(|y| self.goal(func, a, y.value, k + i128::from(y.plus), at, depth))
        })
    }

    /// From what computes the larger side.
    fn by_larger_side(
        &mut self,
        func: &Func,
        a: Option<Value>,
        b: Value,
        k: i128,
        at: At<'_>,
        depth: u32,
    ) -> bool {
        if let Some((y, c, all)) = sum(func, b) {
            // Upwards a sum may wrap to something small.
            let (y, c, greatest) = (term(func, y), i128::from(c), i128::from(all.hi));
            let plus = i128::from(y.plus);
            return self.goal(func, a, y.value, k + c + plus, at, depth)
                && (c <= 0 || self.goal(func, y.value, None, greatest - c - plus, at, depth));
        }
        let Some(inst) = func.def_inst(b) else { return false };
        match (func.op(inst), func.args(inst)) {
            (Op::Intrinsic(Intrinsic::ZextInt), &[y]) => {
                self.goal(func, a, Some(y), k, at, depth) && self.natural(func, y, at, depth)
            }
            _ => false,
        }
    }

    fn natural(&mut self, func: &Func, value: Value, at: At<'_>, depth: u32) -> bool {
        self.goal(func, None, Some(value), 0, at, depth)
    }

    /// Proves a goal for all operands of a φ, where it may be assumed for the φ itself.
    fn for_all_edges(
        &mut self,
        func: &Func,
        phi: Inst,
        other: Option<Value>,
        goal: (Option<Value>, Option<Value>, i128),
        mut prove: impl FnMut(&mut Self, Term, At<'_>) -> bool,
    ) -> bool {
        let Some(block) = func.inst_block(phi) else { return false };
        let made = other.and_then(|v| func.def_inst(v)).map(|def| func.inst_block(def));
        let outside = match made {
            None => true,
            Some(made) => made.is_some_and(|made| self.tree.strictly_dominates(made, block)),
        };
        let edges = func.args(phi).len();
        if !outside || edges > MAX_EDGES || self.cfg.preds(block).len() > MAX_EDGES {
            return false;
        }
        self.assumed.push(goal);
        let mut tests = Vec::new();
        let all = (0..edges).all(|n| {
            let (pred, value) = (func.inst_blocks(phi)[n], func.args(phi)[n]);
            if !self.rpo.is_reachable(pred) {
                return true;
            }
            tests.clear();
            way_tests(func, pred, block, &mut tests);
            tests.extend(self.calls.get(&pred).into_iter().flatten());
            prove(self, term(func, value), At { block: pred, way: &tests })
        });
        self.assumed.pop();
        all
    }
}

/// The numbers of the facts about each value, ascending: by value, the range of its indices in the second list.
fn by_value(facts: &[Fact], values: usize) -> (SecondaryMap<Value, (u32, u32)>, Vec<u32>) {
    let sides = |fact: &Fact| {
        let (a, b) = match fact.test {
            Test::AtMost(a, b, _) | Test::Differ(a, b) | Test::UnsignedAtMost(a, b, _) => (a.value, b.value),
            Test::Known(value, _) => (Some(value), None),
        };
        a.into_iter().chain(b)
    };
    // First the counts, then the next free positions.
    let mut of: SecondaryMap<Value, (u32, u32)> = sized(values);
    for value in facts.iter().flat_map(sides) {
        of[value].1 += 1;
    }
    let mut all = 0;
    for range in of.values_mut() {
        (range.0, range.1, all) = (all, all, all + range.1);
    }
    let mut by_value = vec![0; all as usize];
    for (n, fact) in facts.iter().enumerate() {
        for value in sides(fact) {
            by_value[of[value].1 as usize] = n as u32;
            of[value].1 += 1;
        }
    }
    (of, by_value)
}

/// A value that is another plus a constant, wrapped to its type.
fn sum(func: &Func, value: Value) -> Option<(Value, i64, Range)> {
    let ValueDef::Result(inst, 0) = func.value_def(value) else { return None };
    let (Op::Intrinsic(op), &[x, y]) = (func.op(inst), func.args(inst)) else { return None };
    let c = constant(func, y)?;
    let c = match strict(op).unwrap_or(op) {
        Intrinsic::AddInt => c,
        Intrinsic::SubInt => c.checked_neg()?,
        _ => return None,
    };
    Some((x, c, Range::all(width(func.ty(value))?)))
}
