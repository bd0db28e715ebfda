//! Removes stores that are never read.
//!
//! ```text
//!    store(p, x)     overwritten below       ==>
//!    store(%s, y)    a slot, never read      ==>
//!    store(p, z)                                    store(p, z)
//!    store(%t, z)    a slot, read above only ==>
//!    return                                         return
//! ```
//!
//! Phase 1. An *own* object is a slot or new memory whose address stays in the function (`crate::alias`). If nothing in the function reads
//! an own object, nothing that writes it is needed. Removing a copy may leave its source unread, so this runs [`MAX_ITERATIONS`] times.
//!
//! Phase 2. Blocks are walked from their ends, successors first, with two facts about what comes later:
//!
//! | fact | holds for a place | lost at |
//! |---|---|---|
//! | *overwritten* | stored to on every path before anything reads it | an instruction that may read it; for all but own objects also one that may throw or not end, since memory is then visible outside; the instruction that makes a part of its address |
//! | *ends* | every path leaves the function, and only the listed own objects are read before | back edges of a loop |
//!
//! A store is dead if its place is overwritten, or if it is in an own object that is not read before the function ends. A
//! handler may read any memory when something throws, so in a function with handlers every instruction that may throw ends both
//! facts: also a poll, and a call that may find no stack, or a removed callee. Stores to memory that never changes
//! afterwards are left alone: its loads are not distinguished from constants.
//!
//! Cost: one visit to each instruction with at most [`MAX_PLACES`] places. Breaks the uses. Not done: places around loops;
//! stores of the current value; parts of a store.

use crate::alias::{Aliases, Location, Root};
use crate::facts::Fact;
use crate::pass::{Changed, Pass, PassCx, PassLevel};
use brolga_ir::effects::effects;
use brolga_ir::op::Region;
use brolga_ir::{Block, Func, Inst, Op, Types, Value};
use cranelift_entity::SecondaryMap;
use smallvec::SmallVec;

pub(crate) const PASS: Pass = Pass::new("dse", PassLevel::Low, run).needs(&[Fact::Cfg]).breaks(&[Fact::Uses]);

/// Places that are known to be overwritten. Initialising an object stores to fewer in a row.
const MAX_PLACES: usize = 16;

/// Chains of copies shrink by one copy per iteration.
const MAX_ITERATIONS: usize = 3;

fn run(func: &mut Func, cx: &mut PassCx<'_>) -> Changed {
    let rpo = cx.facts.rpo();
    let writes =
        |func: &Func, b: Block| func.block_insts(b).any(|i| matches!(func.op(i), Op::Store(_) | Op::MemCopy));
    if !rpo.blocks().iter().any(|&b| writes(func, b)) {
        return Changed::No;
    }
    let aliases = Aliases::of(func, cx.types(), rpo);
    for _ in 0..MAX_ITERATIONS {
        if !drop_unread_objects(func, cx, &aliases) {
            break;
        }
    }
    drop_overwritten(func, cx, &aliases);
    cx.changed()
}

/// The locations that a store or a copy of memory writes.
fn written(func: &Func, types: &Types, aliases: &Aliases, inst: Inst) -> Option<Location> {
    match func.op(inst) {
        Op::Store(_) => aliases.access(func, types, inst),
        Op::MemCopy => aliases.copied(func, types, inst).map(|(to, _)| to),
        _ => None,
    }
}

/// The locations that a load or a copy of memory reads.
fn read(func: &Func, types: &Types, aliases: &Aliases, inst: Inst) -> Option<Location> {
    match func.op(inst) {
        Op::Load(_) => aliases.access(func, types, inst),
        Op::MemCopy => aliases.copied(func, types, inst).map(|(_, from)| from),
        _ => None,
    }
}

/// Phase 1. True if something was removed.
fn drop_unread_objects(func: &mut Func, cx: &mut PassCx<'_>, aliases: &Aliases) -> bool {
    let (rpo, types) = (cx.facts.rpo(), cx.types());
    let insts = || rpo.blocks().iter().flat_map(|&b| func.block_insts(b));
    let mut roots: Vec<Root> =
        insts().filter_map(|i| Some(read(func, types, aliases, i)?.address.root)).collect();
    roots.sort_unstable();
    roots.dedup();
    let unread = |root: Root| aliases.stays(root) && roots.binary_search(&root).is_err();
    let dead: Vec<Inst> = insts()
        .filter(|&i| written(func, types, aliases, i).is_some_and(|at| unread(at.address.root)))
        .collect();
    let mut any = false;
    for inst in dead {
        if !cx.spend("stores to what is never read") {
            break;
        }
        func.remove_inst(inst);
        any = true;
    }
    any
}

/// Facts about the code after a place in the function.
#[derive(Clone, Debug, Default)]
struct Later {
    overwritten: SmallVec<[Location; 4]>,
    /// The own objects that are read before the function ends; `None` if it need not end.
    ends: Option<SmallVec<[Root; 4]>>,
}

/// Phase 2.
fn drop_overwritten(func: &mut Func, cx: &mut PassCx<'_>, aliases: &Aliases) {
    let (cfg, rpo, types) = (cx.facts.cfg(), cx.facts.rpo(), cx.types());
    let catches = rpo.blocks().iter().any(|&b| func.terminator(b).is_some_and(|t| func.op(t) == Op::Enter));
    let mut starts: SecondaryMap<Block, Option<Later>> = SecondaryMap::new();
    for &block in rpo.blocks().iter().rev() {
        let mut later = meet(aliases, cfg.succs(block).iter().map(|&s| starts[s].as_ref()));
        let mut at = func.last_inst(block);
        while let Some(inst) = at {
            at = func.prev_inst(inst);
            if later.makes_dead(func, types, aliases, inst) {
                if !cx.spend("overwritten stores") {
                    return;
                }
                func.remove_inst(inst);
            } else {
                later.pass(func, types, aliases, inst, catches);
            }
        }
        starts[block] = Some(later);
    }
}

/// The facts that hold on all outgoing edges; an edge to a block that was not visited yet is a back edge, and adds none.
fn meet<'a>(aliases: &Aliases, ways: impl ExactSizeIterator<Item = Option<&'a Later>>) -> Later {
    if ways.len() == 0 {
        return Later { overwritten: SmallVec::new(), ends: Some(SmallVec::new()) };
    }
    let mut all: Option<Later> = None;
    for way in ways {
        let Some(way) = way else { return Later::default() };
        all = Some(match all {
            None => way.clone(),
            Some(mut all) => {
                all.overwritten.retain(|at| way.overwritten.iter().any(|by| aliases.covers(by, at)));
                all.ends = match (all.ends, &way.ends) {
                    (Some(mut roots), Some(more)) => {
                        roots.extend(more.iter().copied());
                        roots.sort_unstable();
                        roots.dedup();
                        (roots.len() <= MAX_PLACES).then_some(roots)
                    }
                    _ => None,
                };
                all
            }
        });
    }
    all.unwrap_or_default()
}

impl Later {
    /// Whether the store of an instruction is dead.
    fn makes_dead(&self, func: &Func, types: &Types, aliases: &Aliases, inst: Inst) -> bool {
        if never_changes(func, inst) {
            return false;
        }
        let Some(at) = written(func, types, aliases, inst) else { return false };
        let root = at.address.root;
        let unread = self.ends.as_ref().is_some_and(|read| aliases.stays(root) && !read.contains(&root));
        unread || self.overwritten.iter().any(|by| aliases.covers(by, &at))
    }

    /// Moves before an instruction that stays.
    fn pass(&mut self, func: &Func, types: &Types, aliases: &Aliases, inst: Inst, catches: bool) {
        let does = effects(func, types, inst);
        let returns = does.nothrow && does.terminates;
        if catches && (!returns || does.may_safepoint) {
            *self = Later::default();
        }
        if !returns {
            self.overwritten.retain(|at| aliases.stays(at.address.root));
        }
        if let Some(at) = written(func, types, aliases, inst)
            && !never_changes(func, inst)
            && self.overwritten.len() < MAX_PLACES
        {
            self.overwritten.push(at);
        }
        if does.fence || !does.reads.is_empty() {
            self.overwritten.retain(|at| !aliases.may_read(func, types, inst, &does, at));
        }
        if let Some(at) = read(func, types, aliases, inst)
            && let Some(read) = &mut self.ends
            && aliases.stays(at.address.root)
            && !read.contains(&at.address.root)
        {
            read.push(at.address.root);
        }
        if self.ends.as_ref().is_some_and(|read| read.len() > MAX_PLACES) {
            self.ends = None;
        }
        let made: SmallVec<[Value; 2]> = func.results(inst).collect();
        if !made.is_empty() {
            // Further up, the value belongs to another iteration.
            self.overwritten.retain(|at| !at.parts().any(|v| made.contains(&v)));
        }
    }
}

/// Whether an instruction stores to memory that is read as if it were constant.
fn never_changes(func: &Func, inst: Inst) -> bool {
    matches!(func.op(inst), Op::Store(access) if matches!(access.region, Region::Immutable | Region::Constant))
}
