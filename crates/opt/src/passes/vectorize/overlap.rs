//! Which accesses of a loop may overlap in different iterations of one trip.
//!
//! An access that walks over memory touches, in the iteration whose counter is `start + k`, the bytes from `low + size·k` on. Two of
//! which one writes are in order if
//!
//! | they | because |
//! |---|---|
//! | have the same root and counter, and equal displacements | they meet in the same iteration only, and keep their order there |
//! | have the same root and counter, and displacements a trip or more apart | no two iterations of one trip meet |
//! | are never the same memory (`alias`) | |
//! | are compared before the loop: `low + size·iterations` of one is at most `low` of the other | |
//!
//! All accesses of these iterations are executed, so the sums are addresses and do not wrap.

use super::plan::{Plan, Vector};
use crate::alias::{Alias, Aliases, Location, linear};
use crate::counted::Recurrence;
use crate::loop_copy::ins;
use brolga_ir::intrinsic::Intrinsic;
use brolga_ir::{Block, Func, Inst, Op, Type, Types, Value};

/// More comparisons before a loop are not made.
const MAX_CHECKS: usize = 8;

/// Memory that an access walks over, one element in each iteration: from `root + size · start + disp` on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Walk {
    pub(super) root: Value,
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
        accesses.push((writes, at, walk(func, plan, inst, &at)?));
    }
    let mut found: Vec<(Walk, Walk)> = Vec::new();
    for (n, (a_writes, a_at, a)) in accesses.iter().enumerate() {
        for (b_writes, b_at, b) in &accesses[n + 1..] {
            if !a_writes && !b_writes {
                continue;
            }
            if a.root == b.root && a.start == b.start && a.size == b.size {
                let apart = a.disp.wrapping_sub(b.disp).cast_signed().unsigned_abs();
                let trip = a.size * plan.iterations as u64;
                if apart == 0 || apart >= trip {
                    continue;
                }
                return None;
            }
            let never = never_meet(func, aliases, a_at, b_at);
            if never || found.contains(&(*a, *b)) || found.contains(&(*b, *a)) {
                continue;
            }
            let comparable = [a, b].iter().all(|walk| func.ty(walk.root) == Type::PTR);
            if !comparable || found.len() == MAX_CHECKS {
                return None;
            }
            found.push((*a, *b));
        }
    }
    Some(found)
}

/// Whether what two accesses touch is never the same memory, in whichever iterations.
pub(crate) fn never_meet(func: &Func, aliases: &Aliases, a: &Location, b: &Location) -> bool {
    // Of one root, `alias` compares what lies in the same iteration; of two, its answer holds for all iterations.
    let iterations = a.address.root != b.address.root || !a.regions.overlaps(b.regions);
    iterations && aliases.alias(func, a, b) == Alias::No
}

/// Whether two pieces of memory have no byte in common, asked at the end of a block; each is given by its first byte and the one behind the
/// last.
pub(crate) fn ask_apart(func: &mut Func, at: Block, a: (Value, Value), b: (Value, Value)) -> Value {
    let a_first = ins(func, at, Intrinsic::UleInt, &[a.1, b.0], Type::I8);
    let b_first = ins(func, at, Intrinsic::UleInt, &[b.1, a.0], Type::I8);
    ins(func, at, Intrinsic::OrInt, &[a_first, b_first], Type::I8)
}

/// An access as a walk: its address goes up by the size of the element in every iteration.
fn walk(func: &Func, plan: &Plan, inst: Inst, at: &Location) -> Option<Walk> {
    let size = at.size?;
    let (Op::Load(access) | Op::Store(access)) = func.op(inst) else { return None };
    let counter = |value: Value| -> Option<(&Recurrence, bool)> {
        plan.counters.iter().find_map(|r| {
            let next = value == r.next;
            (next || value == r.value).then_some((r, next))
        })
    };
    let inside = |value: Value| {
        let block = func.def_inst(value).and_then(|i| func.inst_block(i));
        block == Some(plan.counted.shape.header)
    };
    // An addition in the loop to an invariant, or to another counter.
    let (mut root, mut index) = (*func.args(inst).first()?, None);
    let mut disp = i64::from(access.offset).cast_unsigned();
    while inside(root) && counter(root).is_none() {
        let add = func.def_inst(root)?;
        let (base, offset) = match (func.op(add), func.args(add)) {
            (Op::Intrinsic(Intrinsic::AddPtr), &[base, offset]) => (base, offset),
            // The same address; the object that keeps the memory alive takes no part in it.
            (Op::GcLoaded, &[_, address]) => {
                root = address;
                continue;
            }
            _ => return None,
        };
        let (varies, fixed) = linear(func, offset);
        if varies.is_some() && index.is_some() {
            return None;
        }
        index = index.or(varies);
        disp = disp.wrapping_add(fixed);
        root = base;
    }
    let mut ahead = |next: bool| disp = disp.wrapping_add(if next { size } else { 0 });
    let start = match (counter(root), index) {
        (Some((r, next)), None) if r.const_step(func) == Some(size.into()) => {
            ahead(next);
            root = r.start;
            None
        }
        (None, Some((index, factor))) => {
            let (r, next) = counter(index)?;
            if r.const_step(func) != Some(1) || factor != size || func.ty(r.value) != Type::I64 {
                return None;
            }
            ahead(next);
            Some(r.start)
        }
        _ => return None,
    };
    let known = start.and_then(|start| func.as_bits(start)).map(|bits| bits as u64);
    let disp = disp.wrapping_add(known.unwrap_or(0).wrapping_mul(size));
    Some(Walk { root: address(func, root), start: start.filter(|_| known.is_none()), disp, size })
}

/// The address of a root, which the collector does not track.
fn address(func: &Func, root: Value) -> Value {
    match func.def_inst(root).map(|inst| (func.op(inst), func.args(inst))) {
        Some((Op::GcLoaded, &[_, address])) => address,
        _ => root,
    }
}
