//! The value at the place of a load; see `passes/gvn.rs` for terms and phases.

use super::Fuel;
use super::access::{Access, Known};
use super::settled::Settled;
use crate::alias::{Alias, Aliases, Location};
use crate::loop_copy::split_edge;
use crate::pass::PassCx;
use crate::replace::Replacements;
use brolga_ir::analysis::{Cfg, Rpo};
use brolga_ir::effects::{Effects, effects};
use brolga_ir::{Block, Func, Inst, Op, Type, Types, Value};
use cranelift_entity::SecondaryMap;
use cranelift_entity::packed_option::PackedOption;
use smallvec::SmallVec;

/// The most edges that the search for a load's value visits.
pub(super) const MAX_WAYS: usize = 48;

/// The most accesses that the search for a load's value visits.
pub(super) const MAX_ACCESSES: usize = 128;

/// More φ than this for one load would cost more registers than the load costs time.
const MAX_PHIS: usize = 4;

/// The accesses of a function, block by block.
pub(super) struct Memory<'a> {
    types: &'a Types,
    cfg: &'a Cfg,
    rpo: &'a Rpo,
    aliases: Aliases,
    blocks: SecondaryMap<Block, Vec<Access>>,
    settled: Settled,
    /// By instruction: its number in the list of its block from 1; 0 for everything but loads of memory that changes.
    loads: SecondaryMap<Inst, u32>,
    seen: SecondaryMap<Block, Seen>,
    stamp: u32,
    /// The open blocks before the load in question, its own among them.
    open: Vec<Block>,
    /// Loads that were inserted on an edge.
    added: Vec<(Block, Block, Inst)>,
    /// The φ that were made.
    merged: Vec<Inst>,
}

/// The value that a block leaves at the place in question.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Out {
    /// Nothing.
    #[default]
    Lost,
    /// It is this value.
    Value(Value),
    /// Its value when the block was entered.
    Open,
    /// It is the result of the load in question.
    Own,
}

/// The value at the start of an open block.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum In {
    #[default]
    Unknown,
    Value(Value),
    /// The join of different values at this block.
    Phi(Block),
}

/// The findings about a block for one query.
#[derive(Clone, Copy, Default)]
struct Seen {
    /// The query to which the rest belongs.
    stamp: u32,
    /// Its value at the end; `None` if it was not needed.
    out: Option<Out>,
    /// Whether the block is in the list of open blocks.
    open: bool,
    /// Some incoming edge has no value.
    lacks: bool,
    arrives: In,
    phi: PackedOption<Value>,
}

/// A load, and the data for the search of its value.
struct Question {
    inst: Inst,
    block: Block,
    at: Location,
    ty: Type,
    /// A block at whose end the value is assumed known, in spite of the block's state.
    given: Option<(Block, Value)>,
}

/// The answer.
#[derive(Clone, Copy)]
enum Found {
    Nothing,
    Value(Value),
    /// Available on every incoming edge.
    Merge,
    /// Available on every incoming edge except this block's.
    AllBut(Block),
}

impl<'a> Memory<'a> {
    /// Collects the accesses of all reachable blocks.
    pub(super) fn of(func: &Func, types: &'a Types, cfg: &'a Cfg, rpo: &'a Rpo) -> Memory<'a> {
        let aliases = Aliases::of(func, types, rpo);
        let mut blocks: SecondaryMap<Block, Vec<Access>> = SecondaryMap::new();
        let mut loads = SecondaryMap::new();
        for &block in rpo.blocks() {
            for inst in func.block_insts(block) {
                let effects = effects(func, types, inst);
                let known = known(func, types, &aliases, &effects, inst);
                if known.is_some() || effects.fence || !effects.writes.is_empty() {
                    blocks[block].push(Access { inst, effects, known });
                    if known.is_some_and(|k| !k.stored) {
                        loads[inst] = blocks[block].len() as u32;
                    }
                }
            }
        }
        let accesses = rpo.blocks().iter().flat_map(|&b| blocks[b].iter().map(move |access| (b, access)));
        let settled = Settled::of(func, types, &aliases, accesses);
        Memory {
            types,
            cfg,
            rpo,
            aliases,
            blocks,
            settled,
            loads,
            seen: SecondaryMap::new(),
            stamp: 0,
            open: Vec::new(),
            added: Vec::new(),
            merged: Vec::new(),
        }
    }

    /// Whether the instruction loads from memory that may change.
    pub(super) fn is_load(&self, inst: Inst) -> bool {
        self.loads[inst] != 0
    }

    /// Replaces a load by the known value of its place.
    pub(super) fn forward(
        &mut self,
        func: &mut Func,
        cx: &mut PassCx<'_>,
        values: &mut Replacements,
        inst: Inst,
    ) -> Fuel {
        let Some(block) = func.inst_block(inst) else { return Fuel::Left };
        let n = self.loads[inst] as usize - 1;
        let Some(Known { at, ty, value: own, .. }) = self.blocks[block][n].known else { return Fuel::Left };
        let at = at.resolved(|v| values.resolve(v));
        let mut question = Question { inst, block, at, ty, given: None };
        let mut budget = MAX_ACCESSES;
        let settled = self.settled.value(func, &self.aliases, values, (&at, ty), block);
        let found = match settled {
            Some(value) => Found::Value(value),
            None => match self.scan(func, values, &question, block, n, &mut budget) {
                Out::Value(value) => Found::Value(value),
                Out::Open => self.look_back(func, values, &question, budget),
                _ => Found::Nothing,
            },
        };
        let mut load = None;
        let counter = match found {
            Found::Nothing => return Fuel::Left,
            Found::Value(_) => "forwarded loads",
            Found::Merge => "merged loads",
            Found::AllBut(way) => {
                let args: SmallVec<[Value; 2]> = func.args(inst).into();
                let copy = func.make_inst(func.op(inst), &args, &[], &[ty]);
                let Some(value) = func.result(copy) else { return Fuel::Left };
                func.set_place(copy, func.place(inst));
                load = Some((way, copy));
                question.given = Some((way, value));
                if self.collect(func, values, &question, &mut { budget }).is_none() {
                    return Fuel::Left;
                }
                "loads moved to an entering edge"
            }
        };
        let value = match found {
            Found::Value(value) => value,
            _ => {
                self.solve(block);
                let phis = self.open.iter().filter(|&&b| self.seen[b].arrives == In::Phi(b)).count();
                if phis > MAX_PHIS || self.seen[block].arrives == In::Unknown {
                    return Fuel::Left;
                }
                own
            }
        };
        if !cx.spend(counter) {
            return Fuel::Empty;
        }
        if let Some((way, copy)) = load {
            self.add_load(func, (way, block), copy, question.at);
        }
        let value = if value == own { self.merge(func, block, ty, own) } else { value };
        values.set(own, value);
        func.remove_inst(inst);
        Fuel::Left
    }

    /// The value that the accesses of a block before number `end` leave at the place.
    fn scan(
        &self,
        func: &Func,
        values: &mut Replacements,
        question: &Question,
        block: Block,
        end: usize,
        budget: &mut usize,
    ) -> Out {
        for access in self.blocks[block][..end].iter().rev() {
            if access.inst == question.inst {
                return Out::Own;
            }
            let Some(left) = budget.checked_sub(1) else { return Out::Lost };
            *budget = left;
            let touched = access.effects.reads | access.effects.writes;
            if !access.effects.fence && !touched.overlaps(question.at.regions) {
                continue;
            }
            let Some(known) = access.known else {
                let Access { inst, effects, .. } = access;
                if self.aliases.may_write(func, self.types, *inst, effects, &question.at) {
                    return Out::Lost;
                }
                continue;
            };
            let at = known.at.resolved(|v| values.resolve(v));
            match self.aliases.alias(func, &at, &question.at) {
                Alias::Must if known.ty == question.ty => return Out::Value(values.resolve(known.value)),
                Alias::Must | Alias::May if known.stored => return Out::Lost,
                _ => {}
            }
        }
        Out::Open
    }

    /// Searches the paths to the block of the load for the place.
    fn look_back(
        &mut self,
        func: &Func,
        values: &mut Replacements,
        question: &Question,
        mut budget: usize,
    ) -> Found {
        if self.collect(func, values, question, &mut budget) != Some(true) {
            return Found::Nothing;
        }
        self.mark_lacking();
        let block = question.block;
        if !self.seen[block].lacks {
            return Found::Merge;
        }
        let lacks = |p: Block| match self.seen[p].out {
            Some(Out::Value(_) | Out::Own) => false,
            Some(Out::Open) => self.seen[p].lacks,
            Some(Out::Lost) | None => true,
        };
        let mut ways =
            self.cfg.preds(block).iter().copied().filter(|&p| self.rpo.is_reachable(p) && lacks(p));
        let (Some(way), None) = (ways.next(), ways.next()) else { return Found::Nothing };
        let closes_loop = self.rpo.position(way) >= self.rpo.position(block);
        let movable = !closes_loop
            && !func.args(question.inst).iter().any(|&v| made_in(func, v, block))
            && func.terminator(way).is_some_and(|t| matches!(func.op(t), Op::Goto | Op::Branch))
            && self.always_executed(func, block, question.inst);
        if movable { Found::AllBut(way) } else { Found::Nothing }
    }

    /// Whether no instruction of a block before this one may throw, not end, or pin it.
    fn always_executed(&self, func: &Func, block: Block, inst: Inst) -> bool {
        let returns = |i: Inst| {
            let does = effects(func, self.types, i);
            does.nothrow && does.terminates && !does.fence
        };
        let before = || func.block_insts(block).take_while(|&i| i != inst);
        before().nth(MAX_ACCESSES).is_none() && before().all(returns)
    }

    /// Finds the open blocks from which the load is reached. `None` if there are too many; otherwise whether any block
    /// determines the place.
    fn collect(
        &mut self,
        func: &Func,
        values: &mut Replacements,
        question: &Question,
        budget: &mut usize,
    ) -> Option<bool> {
        self.stamp += 1;
        self.open.clear();
        self.push_open(question.block);
        let (mut any, mut ways, mut next) = (false, 0, 0);
        while let Some(&block) = self.open.get(next) {
            next += 1;
            // The value at the function's start is unknown. And before the block that defines a part of the address, that
            // part has its value of the iteration before.
            if self.cfg.entry() == Some(block) || question.at.parts().any(|v| made_in(func, v, block)) {
                self.seen[block].lacks = true;
                continue;
            }
            for &pred in self.cfg.preds(block).iter().filter(|&&p| self.rpo.is_reachable(p)) {
                ways += 1;
                if ways > MAX_WAYS {
                    return None;
                }
                self.touch(pred);
                // A handler is entered from wherever an exception was thrown, not from the end of the block of its `enter`.
                if func.terminator(pred).is_some_and(|t| func.op(t) == Op::Enter) {
                    self.seen[block].lacks = true;
                    continue;
                }
                let out = match (self.seen[pred].out, question.given) {
                    (Some(out), _) => out,
                    (None, Some((given, value))) if given == pred => Out::Value(value),
                    _ => self.scan(func, values, question, pred, self.blocks[pred].len(), budget),
                };
                self.seen[pred].out = Some(out);
                match out {
                    Out::Lost => self.seen[block].lacks = true,
                    Out::Value(_) | Out::Own => any = true,
                    Out::Open => self.push_open(pred),
                }
            }
        }
        let rpo = self.rpo;
        self.open.sort_unstable_by_key(|&b| rpo.position(b));
        Some(any)
    }

    /// Resets the findings about a block from another query.
    fn touch(&mut self, block: Block) {
        if self.seen[block].stamp != self.stamp {
            self.seen[block] = Seen { stamp: self.stamp, ..Seen::default() };
        }
    }

    fn push_open(&mut self, block: Block) {
        self.touch(block);
        if !std::mem::replace(&mut self.seen[block].open, true) {
            self.open.push(block);
        }
    }

    /// Marks the open blocks that have an incoming edge without a value.
    fn mark_lacking(&mut self) {
        loop {
            let mut changed = false;
            for &block in &self.open {
                let brings_nothing = |p: &Block| {
                    let seen = &self.seen[*p];
                    self.rpo.is_reachable(*p) && seen.out == Some(Out::Open) && seen.lacks
                };
                if !self.seen[block].lacks && self.cfg.preds(block).iter().any(brings_nothing) {
                    self.seen[block].lacks = true;
                    changed = true;
                }
            }
            if !changed {
                return;
            }
        }
    }

    /// The value at the end of a block, when the load in question is in `home`.
    fn leaves(&self, block: Block, home: Block) -> In {
        match self.seen[block].out {
            Some(Out::Value(value)) => In::Value(value),
            Some(Out::Open) => self.seen[block].arrives,
            Some(Out::Own) => self.seen[home].arrives,
            Some(Out::Lost) | None => In::Unknown,
        }
    }

    /// Determines the incoming value of each open block. A block with different incoming values is settled, so this ends.
    fn solve(&mut self, home: Block) {
        loop {
            let mut changed = false;
            for n in 0..self.open.len() {
                let block = self.open[n];
                let mut arrives = In::Unknown;
                for &pred in self.cfg.preds(block).iter().filter(|&&p| self.rpo.is_reachable(p)) {
                    let leaves = self.leaves(pred, home);
                    arrives = match arrives {
                        _ if leaves == In::Unknown => arrives,
                        In::Unknown => leaves,
                        one if one == leaves => one,
                        _ => In::Phi(block),
                    };
                }
                let old = self.seen[block].arrives;
                if old != In::Phi(block) && old != arrives {
                    self.seen[block].arrives = arrives;
                    changed = true;
                }
            }
            if !changed {
                return;
            }
        }
    }

    /// Makes the φ, and returns the incoming value of the block of the load.
    fn merge(&mut self, func: &mut Func, home: Block, ty: Type, own: Value) -> Value {
        for &block in &self.open {
            if self.seen[block].arrives == In::Phi(block) {
                let phi = func.make_inst(Op::Phi, &[], &[], &[ty]);
                if let Some(first) = func.first_inst(block) {
                    func.set_place(phi, func.place(first));
                }
                func.prepend_inst(phi, block);
                self.merged.push(phi);
                self.seen[block].phi = func.result(phi).into();
            }
        }
        for &block in &self.open {
            let phi = self.seen[block].phi.expand().and_then(|v| func.def_inst(v));
            let Some(phi) = phi.filter(|_| self.seen[block].arrives == In::Phi(block)) else { continue };
            let mut preds: Vec<Block> = self.cfg.preds(block).to_vec();
            preds.sort_unstable_by_key(|&p| (self.rpo.position(p), p));
            preds.dedup();
            for pred in preds.into_iter().filter(|&p| self.rpo.is_reachable(p)) {
                if let Some(value) = self.value_of(self.leaves(pred, home)) {
                    func.add_phi_edge(phi, pred, value);
                }
            }
        }
        self.value_of(self.seen[home].arrives).unwrap_or(own)
    }

    fn value_of(&self, arrives: In) -> Option<Value> {
        match arrives {
            In::Unknown => None,
            In::Value(value) => Some(value),
            In::Phi(block) => self.seen[block].phi.expand(),
        }
    }

    /// Puts a load on the edge from one block to another.
    fn add_load(&mut self, func: &mut Func, (from, to): (Block, Block), load: Inst, at: Location) {
        let (Some(end), Some(value)) = (func.terminator(from), func.result(load)) else { return };
        if func.op(end) != Op::Goto {
            self.added.push((from, to, load));
            return;
        }
        func.insert_before(load, end);
        let known = Known { at, value, ty: func.ty(value), stored: false };
        let effects = effects(func, self.types, load);
        self.blocks[from].push(Access { inst: load, effects, known: Some(known) });
    }

    /// Removes the φ that merge one value with themselves: the operand from the latch was a load when they were made, and
    /// has been forwarded since.
    pub(super) fn fold_phis(&self, func: &mut Func, values: &mut Replacements) {
        let mut open = self.merged.clone();
        loop {
            let before = open.len();
            open.retain(|&phi| {
                let Some(own) = func.result(phi) else { return false };
                let mut others = func.args(phi).iter().map(|&v| values.resolve(v)).filter(|&v| v != own);
                let Some(first) = others.next() else { return true };
                if others.any(|v| v != first) {
                    return true;
                }
                values.set(own, first);
                func.remove_inst(phi);
                false
            });
            if open.len() == before {
                return;
            }
        }
    }

    /// Makes a block for every edge of a branch that has loads.
    pub(super) fn place_loads(mut self, func: &mut Func) {
        // Stable: loads of one edge stay in the order in which they were added.
        self.added.sort_by_key(|&(from, to, _)| (from, to));
        for group in self.added.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1)) {
            let (from, to, _) = group[0];
            let between = split_edge(func, from, to);
            let Some(jump) = func.terminator(between) else { continue };
            for &(.., load) in group {
                func.insert_before(load, jump);
            }
        }
    }
}

fn made_in(func: &Func, value: Value, block: Block) -> bool {
    func.def_inst(value).and_then(|def| func.inst_block(def)) == Some(block)
}

/// The value that a load or a store leaves at its place.
fn known(func: &Func, types: &Types, aliases: &Aliases, effects: &Effects, inst: Inst) -> Option<Known> {
    // Memory that never changes needs no analysis here.
    if effects.fence || (effects.reads | effects.writes).is_empty() {
        return None;
    }
    let at = aliases.access(func, types, inst)?;
    let stored = !effects.writes.is_empty();
    let value = if stored { *func.args(inst).get(1)? } else { func.result(inst)? };
    Some(Known { at, value, ty: func.ty(value), stored })
}
