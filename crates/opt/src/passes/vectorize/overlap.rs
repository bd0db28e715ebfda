//! Which accesses of a loop may overlap in different iterations of one trip.
//!
//! An access that walks over memory touches, in the iteration whose counter is `start + k`, the bytes from `low + size·k`
//! on, where `low` is a sum of invariant values (`u[x + w]` walks from `u + 8·w` on). Two accesses, one of which writes, do
//! not conflict if
//!
//! | they | because |
//! |---|---|
//! | have the same fixed parts and counter, and equal displacements | they meet in the same iteration only, and keep their order there |
//! | have the same fixed parts and counter, and displacements a trip or more apart | no two iterations of one trip meet |
//! | are never the same memory (`alias`) | |
//! | are compared before the loop: `low + size·iterations` of one is at most `low` of the other | |
//!
//! All accesses of these iterations are executed, so the sums are addresses and do not wrap.

use super::plan::{Plan, Vector};
use crate::address::Addresses;
use crate::alias::{Alias, Aliases, Location};
use crate::loop_copy::ins;
use brolga_ir::intrinsic::Intrinsic;
use brolga_ir::{Block, Func, Inst, Op, Type, Types, Value};

/// The most comparisons before a loop.
const MAX_CHECKS: usize = 8;

/// Memory that an access walks over, one element in each iteration: from `root + terms + size · start + disp` on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Walk {
    pub(super) root: Value,
    /// Integers that do not change, each with its factor.
    pub(super) terms: Vec<(Value, i64)>,
    /// The counter's start; 0 if there is none.
    pub(super) start: Option<Value>,
    pub(super) disp: u64,
    pub(super) size: u64,
}

/// The pairs of walks to compare before the loop; `None` if that is not enough.
pub(super) fn checks(
    func: &Func,
    types: &Types,
    aliases: &Aliases,
    addresses: &Addresses<'_>,
    plan: &Plan,
) -> Option<Vec<(Walk, Walk)>> {
    let mut accesses: Vec<(bool, Location, Walk)> = Vec::new();
    for &(inst, vector) in &plan.vectors {
        let writes = match vector {
            Vector::Load(_) => false,
            Vector::Store(_) => true,
            _ => continue,
        };
        let at = aliases.access(func, types, inst)?;
        accesses.push((writes, at, walk(func, addresses, inst, &at)?));
    }
    let mut found: Vec<(Walk, Walk)> = Vec::new();
    for (n, (a_writes, a_at, a)) in accesses.iter().enumerate() {
        for (b_writes, b_at, b) in &accesses[n + 1..] {
            if !a_writes && !b_writes {
                continue;
            }
            if a.goes_with(b) {
                let apart = a.disp.wrapping_sub(b.disp).cast_signed().unsigned_abs();
                let trip = a.size * plan.iterations as u64;
                if apart == 0 || apart >= trip {
                    continue;
                }
                return None;
            }
            let never = never_meet(func, aliases, a_at, b_at);
            let is_found = |(x, y): &(Walk, Walk)| (x == a && y == b) || (x == b && y == a);
            if never || found.iter().any(is_found) {
                continue;
            }
            let comparable = [a, b].iter().all(|walk| func.ty(walk.root) == Type::PTR);
            if !comparable || found.len() == MAX_CHECKS {
                return None;
            }
            found.push((a.clone(), b.clone()));
        }
    }
    Some(found)
}

/// Whether two accesses never touch the same memory, in any two iterations.
pub(crate) fn never_meet(func: &Func, aliases: &Aliases, a: &Location, b: &Location) -> bool {
    // For one root, `alias` compares accesses of the same iteration; for two, its answer holds for all iterations.
    let iterations = a.address.root != b.address.root || !a.regions.overlaps(b.regions);
    iterations && aliases.alias(func, a, b) == Alias::No
}

/// Whether two pieces of memory have no byte in common, tested at the end of a block; each is described by its first byte
/// and one past its last.
pub(crate) fn ask_apart(func: &mut Func, at: Block, a: (Value, Value), b: (Value, Value)) -> Value {
    let a_first = ins(func, at, Intrinsic::UleInt, &[a.1, b.0], Type::I8);
    let b_first = ins(func, at, Intrinsic::UleInt, &[b.1, a.0], Type::I8);
    ins(func, at, Intrinsic::OrInt, &[a_first, b_first], Type::I8)
}

impl Walk {
    /// Whether two walks are the same distance apart in all iterations, by construction.
    fn goes_with(&self, other: &Walk) -> bool {
        let fixed = self.root == other.root && self.terms == other.terms;
        fixed && self.start == other.start && self.size == other.size
    }
}

/// An access as a walk: its address goes up by the size of the element in every iteration.
fn walk(func: &Func, addresses: &Addresses<'_>, inst: Inst, at: &Location) -> Option<Walk> {
    let size = at.size?;
    let (Op::Load(access) | Op::Store(access)) = func.op(inst) else { return None };
    let sum = addresses.sum_of_any(func, *func.args(inst).first()?)?;
    let counter = addresses.counter_of(&sum)?;
    let step = counter.const_step(func)?;
    let (root, start) = match sum.base {
        None if sum.factor == 1 && step == i128::from(size) => (counter.start, None),
        Some(base)
            if i128::from(sum.factor) == i128::from(size)
                && step == 1
                && func.ty(counter.value) == Type::I64 =>
        {
            (base, Some(counter.start))
        }
        _ => return None,
    };
    if sum.by.is_some() {
        return None;
    }
    let known = start.and_then(|start| func.as_bits(start)).map(|bits| bits as u64);
    let disp = sum.constant.wrapping_add(access.offset.into()).cast_unsigned();
    let disp = disp.wrapping_add(known.unwrap_or(0).wrapping_mul(size));
    let start = start.filter(|_| known.is_none());
    Some(Walk { root: address(func, root), terms: sum.terms, start, disp, size })
}

/// The address of a root, which the collector does not track.
fn address(func: &Func, root: Value) -> Value {
    match func.def_inst(root).map(|inst| (func.op(inst), func.args(inst))) {
        Some((Op::GcLoaded, &[_, address])) => address,
        _ => root,
    }
}
