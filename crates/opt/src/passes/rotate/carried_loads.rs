//! Moves loads that an iteration makes for the next one to the iteration that uses them: `for x in v` as front ends print
//! it.
//!
//! ```text
//! p: %a = load(q + 0)                         p:
//! h: %x = φ (p => %a, l => %b)                h: %s = φ (p => 2, l => %n)
//!    %s = φ (p => 2, l => %n)          ==>       %x = load(q + 8·%s - 16)
//!    …                                           …
//! l: %b = load(q + 8·%s - 8)                  l: %n = add_int(%s, 1)
//!    %n = add_int(%s, 1)   goto h                goto h
//! ```
//!
//! Then only counters pass from iteration to iteration. The latch loads from the next iteration's address, one step of its
//! counter further; with the counter's start it is the address of the load before the loop. Nothing after either load writes
//! there before the head, and the load in the latch has no other use. The first one may have other uses, as where several
//! loops read from the same start: then it stays.
//!
//! Cost: the φ of heads; addresses and uses of the whole function where some φ has two loads. Not done: indices with more than one part;
//! loads in other blocks than the latch.

use crate::alias::{Address, Aliases, Root, linear};
use crate::counted::{Recurrence, Shape, is_invariant};
use crate::heads::head_phis;
use crate::pass::PassCx;
use crate::replace::Replacements;
use brolga_ir::analysis::{Cfg, Loops, Rpo, Uses};
use brolga_ir::cursor::Cursor;
use brolga_ir::effects::effects;
use brolga_ir::intrinsic::Intrinsic;
use brolga_ir::op::Access;
use brolga_ir::{Block, Func, Inst, Op, Type, Types, Value};

/// The most blocks between the first load and the head.
const MAX_BACK: usize = 32;

/// A φ of two loads, and the one load that replaces it.
struct Carried {
    phi: Inst,
    /// The load before the loop, and the load in the latch.
    loads: [Inst; 2],
    /// Whether the first load has no other use.
    is_first_free: bool,
    header: Block,
    /// The object that keeps the memory alive.
    owner: Option<Value>,
    root: Value,
    /// The counter of the iteration, and the distance that the address moves in a step.
    counter: Value,
    factor: u64,
    access: Access,
}

/// Rewrites all such φ; returns the heads of their loops.
pub(super) fn run(func: &mut Func, cx: &mut PassCx<'_>, cfg: &Cfg, rpo: &Rpo, loops: &Loops) -> Vec<Block> {
    let mut known = None;
    let mut all = Vec::new();
    for l in loops.iter() {
        let Some(shape) = Shape::of(cfg, loops, l) else { continue };
        for phi in head_phis(func, shape.header) {
            let Some(loads) = two_loads(func, &shape, phi) else { continue };
            let (aliases, uses) =
                known.get_or_insert_with(|| (Aliases::of(func, cx.types(), rpo), Uses::compute(func)));
            let [is_first_free, is_next_free] = loads.map(|load| is_used_once(func, uses, load));
            if is_next_free && stand_late(func, cx.types(), cfg, &shape, loads) {
                all.extend(carried(func, loops, aliases, &shape, phi, loads, is_first_free));
            }
        }
    }
    let mut values = Replacements::default();
    let mut heads = Vec::new();
    for one in all {
        if !cx.spend("loads moved to their iteration") {
            break;
        }
        rewrite(func, cx.types(), &mut values, &one);
        heads.push(one.header);
    }
    values.apply(func, cx.context());
    heads
}

/// The loads that a φ gets from the preheader and from the latch, if both are of one kind.
fn two_loads(func: &Func, shape: &Shape, phi: Inst) -> Option<[Inst; 2]> {
    let (start, next) = shape.edges(func, phi)?;
    let loads = [func.def_inst(start)?, func.def_inst(next)?];
    let [Op::Load(a), Op::Load(b)] = loads.map(|load| func.op(load)) else { return None };
    let alike = a.region == b.region && func.ty(start) == func.ty(next);
    let straight = func.terminator(shape.latch).is_some_and(|end| func.op(end) == Op::Goto);
    (alike && straight && func.inst_block(loads[1]) == Some(shape.latch)).then_some(loads)
}

fn is_used_once(func: &Func, uses: &Uses, load: Inst) -> bool {
    func.result(load).is_some_and(|v| uses.single(v).is_some())
}

/// Whether nothing between the loads and the head may change the memory that they read.
fn stand_late(func: &Func, types: &Types, cfg: &Cfg, shape: &Shape, [first, next]: [Inst; 2]) -> bool {
    let reads = effects(func, types, next).reads;
    let keeps = |inst: Inst| {
        let does = effects(func, types, inst);
        !does.fence && !does.writes.overlaps(reads)
    };
    let behind_keep =
        |load: Inst, block: Block| func.block_insts(block).skip_while(|&inst| inst != load).all(keeps);
    // The first load's block dominates the preheader: a walk back from there meets it on all paths.
    let Some(home) = func.inst_block(first) else { return false };
    let mut between = if shape.preheader == home { vec![] } else { vec![shape.preheader] };
    let mut looked_at = 0;
    while let Some(&block) = between.get(looked_at) {
        if !func.block_insts(block).all(keeps) {
            return false;
        }
        for &pred in cfg.preds(block) {
            if pred != home && !between.contains(&pred) {
                if between.len() == MAX_BACK {
                    return false;
                }
                between.push(pred);
            }
        }
        looked_at += 1;
    }
    behind_keep(first, home) && behind_keep(next, shape.latch)
}

fn carried(
    func: &Func,
    loops: &Loops,
    aliases: &Aliases,
    shape: &Shape,
    phi: Inst,
    loads: [Inst; 2],
    is_first_free: bool,
) -> Option<Carried> {
    let [(first, _), (next, access)] = [place(func, aliases, loads[0])?, place(func, aliases, loads[1])?];
    let (Root::Value(root), Some((counter, factor))) = (next.root, next.index) else { return None };
    let (Op::Phi, def) = func.def_inst(counter).map(|def| (func.op(def), def))? else { return None };
    if func.inst_block(def) != Some(shape.header) || func.ty(counter) != Type::I64 {
        return None;
    }
    let r = Recurrence::of(func, loops, shape, def)?;
    let step = r.const_step(func)? as u64;
    let disp = next.disp.wrapping_sub(factor.wrapping_mul(step));
    // Where the first iteration would read.
    let (index, start) = linear(func, r.start);
    let index = index.map(|(value, times)| (value, times.wrapping_mul(factor)));
    let meets = index == first.index && factor.wrapping_mul(start).wrapping_add(disp) == first.disp;
    let owners = loads.map(|load| owner(func, load));
    let fixed = |v: Value| is_invariant(func, loops, shape.l, v);
    let whole = first.root == next.root
        && meets
        && func.ty(root) == Type::PTR
        && fixed(root)
        && owners[0] == owners[1]
        && owners[1].is_none_or(fixed);
    let offset = i32::try_from(disp.cast_signed()).ok().filter(|_| whole)?;
    let access = Access { offset, ..access };
    Some(Carried {
        phi,
        loads,
        is_first_free,
        header: shape.header,
        owner: owners[1],
        root,
        counter,
        factor,
        access,
    })
}

/// The place that a load reads: its address with the offset of the access.
fn place(func: &Func, aliases: &Aliases, load: Inst) -> Option<(Address, Access)> {
    let (Op::Load(access), &[address]) = (func.op(load), func.args(load)) else { return None };
    let mut at = aliases.address(address);
    at.disp = at.disp.wrapping_add(i64::from(access.offset).cast_unsigned());
    Some((at, access))
}

/// The value that keeps the memory of a load alive.
fn owner(func: &Func, load: Inst) -> Option<Value> {
    let def = func.def_inst(*func.args(load).first()?)?;
    match (func.op(def), func.args(def)) {
        (Op::GcLoaded, &[owner, _]) => Some(owner),
        _ => None,
    }
}

fn rewrite(func: &mut Func, types: &Types, values: &mut Replacements, one: &Carried) {
    let Some(old) = func.result(one.phi) else { return };
    let (ty, place) = (func.ty(old), func.place(one.loads[1]));
    let mut at = Cursor::new(func);
    at.at_first_insertion_point(one.header).with_place(place);
    let factor = at.int(types, Type::I64, i128::from(one.factor.cast_signed()));
    let distance = at.ins_value(Op::Intrinsic(Intrinsic::MulInt), &[one.counter, factor], Type::I64);
    let mut address = at.ins_value(Op::Intrinsic(Intrinsic::AddPtr), &[one.root, distance], Type::PTR);
    if let Some(owner) = one.owner {
        address = at.ins_value(Op::GcLoaded, &[owner, address], Type::LOADED);
    }
    let loaded = at.ins_value(Op::Load(one.access), &[address], ty);
    values.set(old, loaded);
    func.remove_inst(one.phi);
    let [first, next] = one.loads;
    func.remove_inst(next);
    if one.is_first_free {
        func.remove_inst(first);
    }
}
