//! Turns a throw into a jump where the handler is in the same function and no other code can see the exception.
//!
//! ```text
//! 1: %1 = enter 2, 5                               1: %1 = enter 2, 5
//! 2: … goto 4 if not c                             2: … goto 4 if not c
//! 3: %2 = new(Failed, x)                           3: %2 = new(Failed, x)
//!    throw(%2); unreachable                           leave(%1); %8 = getfield(%2, :code)
//! 4: … leave(%1)                          ==>         goto 6
//! 5: %3 = the_exception()                          4: … leave(%1)
//!    %4 = typeassert(%3, Failed)                   5: %3 = the_exception() …
//!    %5 = getfield(%4, :code)                         %5 = getfield(%4, :code); pop_exception(%1); goto 6
//!    pop_exception(%1)                             6: %9 = φ (3 => %8, 5 => %5)
//!    … %5 …                                           … %9 …
//! ```
//!
//! Inlining brings such pairs together: an exception that was thrown three calls down is an object that is made, read, and then unused, and `sroa`
//! and `alloc-opt` remove it.
//!
//! **Semantics.** An exception is on the exception stack from its throw to its `pop_exception`, where a call could find it (`rethrow`). So the
//! handler up to there has to be pure computation: it neither calls nor throws nor writes. It is copied to the throw,
//! with the thrown value instead of `the_exception`. An assertion on its type must be known to hold. Traces are only taken of exceptions that
//! leave compiled code, so none is lost. Exceptions of checks and of calls stay unchanged, and so does the `enter`.
//!
//! **Handlers that choose.** The path through a handler is followed up to its `pop_exception`, where the type of the thrown value decides each branch:
//!
//! ```text
//! 5: %3 = the_exception(); %4 = isa(%3, Lost); goto 7 if not %4          of a thrown Failed: 5, 7
//! 6: … pop_exception(%1)                                                   of a thrown Lost:   5, 6
//! 7: %6 = isa(%3, Failed); … pop_exception(%1)                             of a thrown Any:    unchanged
//! ```
//!
//! **Other exceptions.** A `pop_exception` also removes the other exceptions since its `enter`: exceptions of inner regions
//! whose handling has not ended. A jump would leave them on the stack, so no throw after such a handler and before its
//! `pop_exception` becomes one.
//!
//! **φᶜ.** It would read the value of the last ϒ: an ordinary variable if every path from the `enter` to the throw passes a ϒ (I1),
//! and if no ϒ of it is in an inner region (I2), from which an exception would carry its value along an implicit edge.
//!
//! Cost: one visit to each instruction of functions with handlers; for each `enter` and type of a thrown value, of which there are at most `MAX_THROWS`
//! pairs, a walk over the blocks after the handler; `MAX_HEAD` copies for each throw. Breaks the graph and the uses. Not
//! done: throws by functions of Base; regions in which nothing throws any more.

use crate::asserted::{Tests, may_fail};
use crate::facts::Fact;
use crate::heads::rename_phi_blocks;
use crate::pass::{Changed, Pass, PassCx, PassLevel};
use crate::refit::assert_type;
use crate::replace::Replacements;
use crate::ssa_repair::Repair;
use brolga_ir::analysis::{Cfg, DomTree, Handlers, Rpo};
use brolga_ir::builtin::Builtin;
use brolga_ir::constant::Const;
use brolga_ir::effects::effects;
use brolga_ir::{Block, Context, Func, Inst, Op, Type, Types, Value};
use cranelift_entity::packed_option::PackedOption;
use cranelift_entity::{EntitySet, SecondaryMap};
use rustc_hash::FxHashMap;

pub(crate) const PASS: Pass =
    Pass::new("local-throw", PassLevel::High, run).needs(&[Fact::Cfg]).breaks(&[Fact::Cfg, Fact::Uses]);

/// Instructions of a handler that are copied to a throw.
const MAX_HEAD: usize = 16;

/// Blocks of a handler up to the end of the exception.
const MAX_BLOCKS: usize = 8;

/// Regions inside the region of one `enter`. If there are more, its throws stay.
const MAX_INNER: usize = 16;

/// Throws of a function that are examined, whether they become jumps or not.
const MAX_THROWS: usize = 64;

/// A throw with a handler in this function.
struct Site {
    throw: Inst,
    block: Block,
    thrown: Value,
    enter: Inst,
}

/// The actions of a handler with an exception of some type until it is over.
struct Head {
    /// The blocks on the path, the handler's first.
    blocks: Vec<Block>,
    /// Their computations.
    insts: Vec<Inst>,
    /// The names that the exception has there.
    names: Vec<Value>,
    pop: Inst,
    /// Blocks at whose ends exceptions of inner regions may be on the stack.
    handling: EntitySet<Block>,
}

fn run(func: &mut Func, cx: &mut PassCx<'_>) -> Changed {
    let has_handlers = func.blocks().any(|b| func.terminator(b).is_some_and(|t| func.op(t) == Op::Enter));
    if !has_handlers {
        return Changed::No;
    }
    let handlers = Handlers::compute(func, cx.facts.cfg(), cx.facts.rpo());
    let tree = DomTree::compute(cx.facts.cfg());
    let (sites, upsilons) = find(func, cx, &handlers);
    let mut jumps: Vec<(Site, usize)> = Vec::new();
    let mut heads: Vec<((Inst, Type), Option<Head>)> = Vec::new();
    for site in sites.into_iter().take(MAX_THROWS) {
        let key = (site.enter, func.ty(site.thrown));
        let at = heads.iter().position(|(known, _)| *known == key).unwrap_or_else(|| {
            heads.push((key, head(func, cx, &tree, &handlers, key)));
            heads.len() - 1
        });
        let Some(head) = &heads[at].1 else { continue };
        if !head.handling.contains(site.block)
            && is_plain(func, cx, head, &site)
            && are_variables(func, &tree, &handlers, &upsilons, head, &site)
        {
            if !cx.spend("throws that jump") {
                break;
            }
            jumps.push((site, at));
        }
    }
    if !jumps.is_empty() {
        let heads: Vec<Option<Head>> = heads.into_iter().map(|(_, head)| head).collect();
        rewrite(func, cx.context(), &heads, &jumps, &upsilons);
    }
    cx.changed()
}

/// A ϒ, its position, and the innermost handler in force there.
struct Stored {
    upsilon: Inst,
    block: Block,
    inside: Option<Inst>,
}

/// The throws under a handler, and by φᶜ all values stored for it, in the order of the blocks.
fn find(func: &Func, cx: &PassCx<'_>, handlers: &Handlers) -> (Vec<Site>, FxHashMap<Inst, Vec<Stored>>) {
    let mut sites = Vec::new();
    let mut readers: FxHashMap<Inst, Vec<Inst>> = FxHashMap::default();
    let insts = || cx.facts.rpo().blocks().iter().flat_map(|&b| func.block_insts(b));
    for phi in insts().filter(|&inst| func.op(inst) == Op::PhiC) {
        for upsilon in func.args(phi).iter().filter_map(|&v| func.def_inst(v)) {
            readers.entry(upsilon).or_default().push(phi);
        }
    }
    let mut stored: FxHashMap<Inst, Vec<Stored>> = FxHashMap::default();
    for &block in cx.facts.rpo().blocks() {
        let mut inside = handlers.at_head(block);
        for inst in func.block_insts(block) {
            match (func.op(inst), func.args(inst)) {
                (Op::Upsilon, _) => {
                    for &phi in readers.get(&inst).into_iter().flatten() {
                        stored.entry(phi).or_default().push(Stored { upsilon: inst, block, inside });
                    }
                }
                (Op::Builtin(Builtin::Throw), &[thrown]) => {
                    let ends = func.next_inst(inst).is_some_and(|next| func.op(next) == Op::Unreachable);
                    if let (Some(enter), true) = (inside, ends) {
                        sites.push(Site { throw: inst, block, thrown, enter });
                    }
                }
                _ => inside = handlers.after(func, inst, inside),
            }
        }
    }
    (sites, stored)
}

/// The actions of the handler of an `enter` with an exception of this type until it is over, if the type decides that.
fn head(
    func: &Func,
    cx: &PassCx<'_>,
    tree: &DomTree,
    handlers: &Handlers,
    (enter, thrown): (Inst, Type),
) -> Option<Head> {
    let &[body, handler] = func.inst_blocks(enter) else { return None };
    if body == handler || cx.facts.cfg().preds(handler).len() != 1 {
        return None;
    }
    let token = func.result(enter)?;
    let (mut blocks, mut insts, mut names) = (vec![handler], Vec::new(), Vec::new());
    let mut at = func.first_inst(handler);
    let pop = loop {
        let inst = at?;
        at = func.next_inst(inst);
        let op = func.op(inst);
        if op == Op::PopException && func.args(inst).first() == Some(&token) {
            break inst;
        }
        if op.is_terminator() {
            let next = next_block(func, cx.types(), inst, thrown, &names)?;
            if blocks.len() == MAX_BLOCKS || blocks.contains(&next) {
                return None;
            }
            at = func.first_inst(next);
            blocks.push(next);
            continue;
        }
        if is_name(func, inst, &blocks, &names) {
            names.extend(func.result(inst));
        }
        insts.push(inst);
        if insts.len() > MAX_HEAD {
            return None;
        }
    };
    let inner: Vec<Inst> =
        handlers.enters().iter().copied().filter(|&inner| is_inside(handlers, inner, enter)).collect();
    if inner.len() > MAX_INNER || speaks_again(func, cx.facts.cfg(), tree, handlers, enter, pop) {
        return None;
    }
    let mut handling = EntitySet::new();
    inner.into_iter().for_each(|inner| handled(func, cx.facts.cfg(), inner, &mut handling));
    Some(Head { blocks, insts, names, pop, handling })
}

/// Whether an instruction after the `pop_exception` of an `enter` may only occur in its handler, which the jump bypasses.
fn speaks_again(func: &Func, cfg: &Cfg, tree: &DomTree, handlers: &Handlers, enter: Inst, pop: Inst) -> bool {
    let (Some(token), Some(home)) = (func.result(enter), func.inst_block(pop)) else { return true };
    let handler_of = |enter: Inst| func.inst_blocks(enter).get(1).copied();
    let Some(handler) = handler_of(enter) else { return true };
    let is_elsewhere = |block: Block| {
        let mut others = handlers.enters().iter().filter(|&&other| other != enter);
        others.any(|&other| handler_of(other).is_some_and(|other| tree.dominates(other, block)))
    };
    let speaks = |block: Block, inst: Inst| match func.op(inst) {
        Op::PopException => func.args(inst).first() == Some(&token),
        Op::TheException => !is_elsewhere(block),
        _ => false,
    };
    let mut behind = std::iter::successors(func.next_inst(pop), |&inst| func.next_inst(inst));
    if behind.any(|inst| speaks(home, inst)) {
        return true;
    }
    let mut seen: EntitySet<Block> = EntitySet::new();
    let mut open: Vec<Block> = cfg.succs(home).to_vec();
    while let Some(block) = open.pop() {
        // A return to the handler is in it again.
        if block == handler || !seen.insert(block) {
            continue;
        }
        if func.block_insts(block).any(|inst| speaks(block, inst)) {
            return true;
        }
        open.extend(cfg.succs(block));
    }
    false
}

/// Where a block continues when an exception of this type has these names.
fn next_block(func: &Func, types: &Types, end: Inst, thrown: Type, names: &[Value]) -> Option<Block> {
    match (func.op(end), func.args(end), func.inst_blocks(end)) {
        (Op::Goto, _, &[next]) => Some(next),
        (Op::Branch, &[condition], &[yes, no]) => {
            let def = func.def_inst(condition)?;
            let (Op::Builtin(Builtin::Isa), &[of, asked]) = (func.op(def), func.args(def)) else {
                return None;
            };
            let Some(&Const::Type { of: asked, .. }) = func.as_const(asked) else { return None };
            match (names.contains(&of), types.is_subtype(thrown, asked), types.is_disjoint(thrown, asked)) {
                (true, true, false) => Some(yes),
                (true, false, true) => Some(no),
                _ => None,
            }
        }
        _ => None,
    }
}

/// Whether an instruction on the path returns the exception, or another name of it.
fn is_name(func: &Func, inst: Inst, blocks: &[Block], names: &[Value]) -> bool {
    match func.op(inst) {
        Op::TheException => true,
        Op::Pi | Op::Copy | Op::Builtin(Builtin::Typeassert) => {
            func.args(inst).first().is_some_and(|of| names.contains(of))
        }
        Op::Phi => arriving(func, inst, blocks).is_some_and(|of| names.contains(&of)),
        _ => false,
    }
}

/// The operand of a φ for the predecessor on the path.
fn arriving(func: &Func, phi: Inst, blocks: &[Block]) -> Option<Value> {
    let at = blocks.iter().position(|&block| func.inst_block(phi) == Some(block))?;
    let before = *blocks.get(at.checked_sub(1)?)?;
    func.phi_edges(phi).find(|&(from, _)| from == before).map(|(_, value)| value)
}

/// Adds the blocks at whose ends the exception of an `enter` may be on the stack.
fn handled(func: &Func, cfg: &Cfg, enter: Inst, found: &mut EntitySet<Block>) {
    let token = func.result(enter);
    let ends = |inst: Inst| func.op(inst) == Op::PopException && func.args(inst).first().copied() == token;
    let mut seen: EntitySet<Block> = EntitySet::new();
    let mut open: Vec<Block> = func.inst_blocks(enter).get(1).copied().into_iter().collect();
    while let Some(block) = open.pop() {
        if seen.insert(block) && !func.block_insts(block).any(ends) {
            found.insert(block);
            open.extend(cfg.succs(block));
        }
    }
}

/// Whether the head only computes when this is what was thrown.
fn is_plain(func: &Func, cx: &PassCx<'_>, head: &Head, site: &Site) -> bool {
    let types = cx.types();
    head.insts.iter().all(|&inst| match (func.op(inst), func.args(inst)) {
        (Op::PhiC | Op::TheException | Op::Pi | Op::Copy, _) => true,
        (Op::Builtin(Builtin::Typeassert), &[asserted, ty]) if head.names.contains(&asserted) => {
            match func.as_const(ty) {
                Some(&Const::Type { of: ty, .. }) => types.is_subtype(func.ty(site.thrown), ty),
                _ => false,
            }
        }
        (Op::Phi, _) => arriving(func, inst, &head.blocks).is_some(),
        _ => {
            let does = effects(func, types, inst);
            let computes = does.is_removable() && does.nothrow && does.notaskstate;
            computes && !does.pinned && !does.fence && !may_fail(func, types, &Tests::none(), inst)
        }
    })
}

/// Whether the region of an `enter` is inside another's.
fn is_inside(handlers: &Handlers, enter: Inst, region: Inst) -> bool {
    let mut at = handlers.outer(enter);
    while let Some(outer) = at.filter(|&outer| outer != region) {
        at = handlers.outer(outer);
    }
    at == Some(region)
}

/// Whether each φᶜ is a variable on all paths to the throw: I1 and I2.
fn are_variables(
    func: &Func,
    tree: &DomTree,
    handlers: &Handlers,
    upsilons: &FxHashMap<Inst, Vec<Stored>>,
    head: &Head,
    site: &Site,
) -> bool {
    let Some(home) = func.inst_block(site.enter) else { return false };
    let is_inner = |inside: Option<Inst>| inside.is_some_and(|enter| is_inside(handlers, enter, site.enter));
    head.insts.iter().filter(|&&inst| func.op(inst) == Op::PhiC).all(|phi| {
        let Some(stored) = upsilons.get(phi) else { return false };
        stored.iter().all(|one| !is_inner(one.inside))
            && stored
                .iter()
                .any(|one| tree.dominates(home, one.block) && tree.dominates(one.block, site.block))
    })
}

fn rewrite(
    func: &mut Func,
    cx: &Context,
    heads: &[Option<Head>],
    jumps: &[(Site, usize)],
    upsilons: &FxHashMap<Inst, Vec<Stored>>,
) {
    let rest = split(func, heads, jumps);
    let mut copier = Copier { cx, stand_ins: Vec::new(), names: Vec::new() };
    // The replacements for the values of heads, by block. Paths through one handler share values.
    let mut values: Vec<Value> = Vec::new();
    let mut copies: FxHashMap<Value, Vec<(Block, Value)>> = FxHashMap::default();
    for (site, at) in jumps {
        let (Some(head), Some(to), Some(block)) = (&heads[*at], rest[*at], func.inst_block(site.throw))
        else {
            continue;
        };
        for (value, copy) in copier.jump(func, head, site, block, to) {
            let of = copies.entry(value).or_default();
            if of.is_empty() {
                values.push(value);
            }
            of.push((block, copy));
        }
    }
    let cfg = Cfg::compute(func);
    let rpo = Rpo::compute(&cfg);
    let mut computed = Repair::default();
    for value in values {
        let mut defs = copies.remove(&value).unwrap_or_default();
        let home = func.def_inst(value).and_then(|def| func.inst_block(def));
        defs.extend(home.map(|home| (home, value)));
        computed.add(value, defs);
    }
    computed.apply(func, cx, &cfg, &rpo);
    // Only now are the values that each ϒ stores final.
    let mut stored = Repair::default();
    let mut values = Replacements::default();
    for &(phi, stand_in) in &copier.stand_ins {
        let nothing = func.constant(Const::Undef(func.ty(stand_in)));
        stored.add(stand_in, definitions(func, upsilons.get(&phi), nothing));
        // A use that no definition reaches is never executed.
        values.set(stand_in, nothing);
    }
    stored.apply(func, cx, &cfg, &rpo);
    for &name in &copier.names {
        if let (Some(result), Some(&value)) = (func.result(name), func.args(name).first()) {
            values.set(result, value);
        }
        func.remove_inst(name);
    }
    values.apply(func, cx);
}

/// Splits the last block of each head after its `pop_exception`. Returns the blocks that follow.
fn split(func: &mut Func, heads: &[Option<Head>], jumps: &[(Site, usize)]) -> Vec<Option<Block>> {
    let mut rest: Vec<Option<Block>> = vec![None; heads.len()];
    let mut ends: SecondaryMap<Block, PackedOption<Block>> = SecondaryMap::new();
    for &(_, at) in jumps {
        let (Some(head), None) = (&heads[at], rest[at]) else { continue };
        let ends_there = |n: &usize| heads[*n].as_ref().is_some_and(|other| other.pop == head.pop);
        if let Some(behind) = (0..heads.len()).filter(ends_there).find_map(|n| rest[n]) {
            rest[at] = Some(behind);
            continue;
        }
        let (Some(first), Some(block)) = (func.next_inst(head.pop), func.inst_block(head.pop)) else {
            continue;
        };
        let behind = func.make_block();
        func.insert_block_after(behind, block);
        func.split_block(first, behind);
        let goto = func.make_inst(Op::Goto, &[], &[behind], &[]);
        func.append_inst(goto, block);
        ends[block] = behind.into();
        rest[at] = Some(behind);
    }
    rename_phi_blocks(func, &ends);
    rest
}

/// The values that the ϒ of a φᶜ store, by the blocks at whose ends they hold.
fn definitions(func: &Func, stored: Option<&Vec<Stored>>, nothing: Value) -> Vec<(Block, Value)> {
    let mut defs: Vec<(Block, Value)> = Vec::new();
    for one in stored.into_iter().flatten() {
        let Some(block) = func.inst_block(one.upsilon) else { continue };
        let value = func.args(one.upsilon).first().copied().unwrap_or(nothing);
        // The last ϒ of a block counts.
        match defs.last_mut().filter(|(last, _)| *last == block) {
            Some(last) => last.1 = value,
            None => defs.push((block, value)),
        }
    }
    defs
}

/// The replacements for the values of a head, in their order.
type Made = Vec<(Value, Value)>;

struct Copier<'a> {
    cx: &'a Context,
    /// By copy of a φᶜ: a placeholder for its value.
    stand_ins: Vec<(Inst, Value)>,
    /// Copies that only rename a value, for the repair.
    names: Vec<Inst>,
}

impl Copier<'_> {
    /// Replaces a throw by the head's computations and a jump. Returns the replacements of the head's values.
    fn jump(&mut self, func: &mut Func, head: &Head, site: &Site, block: Block, to: Block) -> Made {
        let place = func.place(site.throw);
        let end = func.next_inst(site.throw);
        func.remove_inst(site.throw);
        if let Some(end) = end {
            func.remove_inst(end);
        }
        let append = |func: &mut Func, op, args: &[Value], blocks: &[Block], results: &[Type]| {
            let inst = func.make_inst(op, args, blocks, results);
            func.set_place(inst, place);
            func.append_inst(inst, block);
            inst
        };
        if let Some(token) = func.result(site.enter) {
            append(func, Op::Leave, &[token], &[], &[]);
        }
        let ty = func.ty(site.thrown);
        let thrown = append(func, Op::Copy, &[site.thrown], &[], &[ty]);
        self.names.push(thrown);
        let thrown = func.result(thrown).unwrap_or(site.thrown);
        let mut made = Made::default();
        let now = |made: &Made, value: Value| {
            made.iter().find(|(of, _)| *of == value).map_or(value, |&(_, copy)| copy)
        };
        for &inst in &head.insts {
            let Some(result) = func.result(inst) else { continue };
            let ty = func.ty(result);
            let args: Vec<Value> = func.args(inst).iter().map(|&v| now(&made, v)).collect();
            let value = match func.op(inst) {
                Op::PhiC => {
                    let nothing = func.constant(Const::Undef(ty));
                    let stand_in = func.make_inst(Op::Copy, &[nothing], &[], &[ty]);
                    let stand_in = func.result(stand_in).unwrap_or(nothing);
                    self.stand_ins.push((inst, stand_in));
                    let name = append(func, Op::Copy, &[stand_in], &[], &[ty]);
                    self.names.push(name);
                    func.result(name)
                }
                _ if head.names.contains(&result) => Some(thrown),
                Op::Phi => arriving(func, inst, &head.blocks).map(|value| now(&made, value)),
                op => {
                    let copy = append(func, op, &args, &[], &[ty]);
                    func.result(copy)
                }
            };
            let value = value.unwrap_or(result);
            // Assertions about the exception stay.
            let value = match self.cx.types.is_subtype(func.ty(value), ty) {
                true => value,
                false => {
                    let (op, args) = assert_type(func, &self.cx.types, value, ty);
                    let asserted = append(func, op, &args, &[], &[ty]);
                    func.result(asserted).unwrap_or(value)
                }
            };
            made.push((result, value));
        }
        append(func, Op::Goto, &[], &[to], &[]);
        made
    }
}
