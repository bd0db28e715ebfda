//! Variables of a front end as values and φ.
//!
//! After Braun and others, "Simple and Efficient Construction of Static Single Assignment Form" (2013), without its
//! recursion: a φ is the variable's value in its block from the moment that it is made, so its operands can
//! be looked up one after another from a work list, and each look-up adds at most further φ to the list.
//!
//! ```text
//! value(x, block):   assigned in block            that value
//!                    not sealed                   a φ without operands, completed when the block is sealed
//!                    one predecessor              value(x, predecessor), walking up in a loop
//!                    several                      a φ, put on the work list
//!                    none                         no value: the path has no assignment
//! ```
//!
//! **Handlers.** An exception may leave a protected block after any statement, so a variable read by a
//! handler cannot be a φ of values at block ends:
//!
//! ```text
//!   x = 1                     ϒ 1 ────────────┐  added when it is known that the handler reads x
//!   enter ──► body            …               ├─► φᶜ   x in the handler: what the last ϒ that ran has stored
//!          └► handler         x = 2: ϒ 2 ─────┘  added at each assignment between enter and leave, for each handler in force
//! ```
//!
//! The handlers in force at the head of a block are taken from the block that jumps there. Unread ϒ are
//! removed at the end, as is a φᶜ of a variable that never changes under its handler.
//!
//! For a path without an assignment, a φ gets no edge and a φᶜ gets a ϒ that stores nothing. Redundant φ are
//! replaced at the end, all in one pass: a φ whose operands are itself and one other value is that value,
//! which may make further φ redundant.

use crate::analysis::{Cfg, Rpo};
use crate::constant::Const;
use crate::entity::{Block, Inst, Value};
use crate::func::{Func, ValueName};
use crate::names::Name;
use crate::op::Op;
use crate::types::Type;
use cranelift_entity::{EntityRef, SecondaryMap, entity_impl};
use rustc_hash::FxHashMap;

/// A variable of a front end.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Variable(u32);
entity_impl!(Variable, "var");

#[derive(Debug, Default)]
pub(super) struct Vars {
    types: Vec<Type>,
    /// The names that debuggers show.
    names: FxHashMap<Variable, Name>,
    /// The variable's value at the end of the block as far as it is built; `None` if no path there assigns.
    values: FxHashMap<(Variable, Block), Option<Value>>,
    blocks: SecondaryMap<Block, BlockVars>,
    /// φ waiting for operands.
    work: Vec<(Inst, Variable, Block)>,
    /// All φ that were made here.
    phis: Vec<Inst>,
    /// All φᶜ, each with its variable and handler.
    phics: Vec<(Inst, Variable, Block)>,
    /// The ϒ of a variable for a handler, placed at assignments.
    upsilons: FxHashMap<(Variable, Block), Vec<Inst>>,
}

/// A handler in force, and the token of its `enter`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Protection {
    pub(super) handler: Block,
    pub(super) token: Value,
}

#[derive(Clone, Debug, Default)]
struct BlockVars {
    preds: Vec<Block>,
    sealed: bool,
    /// φ that were made before the block was sealed.
    open: Vec<(Inst, Variable)>,
    /// The handlers in force where it begins, innermost last; `None` until a jump to it is known.
    at_head: Option<Vec<Protection>>,
    /// The handlers in force at its end as far as it is built.
    at_end: Vec<Protection>,
    is_handler: bool,
    /// Whether variables were assigned in it before any jump to it was known.
    assigned_early: bool,
}

impl Vars {
    pub(super) fn declare(&mut self, ty: Type) -> Variable {
        self.types.push(ty);
        Variable::new(self.types.len() - 1)
    }

    pub(super) fn declare_named(&mut self, name: Name, ty: Type) -> Variable {
        let variable = self.declare(ty);
        self.names.insert(variable, name);
        variable
    }

    /// Names a value after the variable, if that has a name.
    pub(super) fn name(&self, func: &mut Func, variable: Variable, value: Value) {
        if let (Some(&name), Some(ty)) = (self.names.get(&variable), self.ty(variable)) {
            func.name_value(ValueName { value, name, ty });
        }
    }

    pub(super) fn ty(&self, variable: Variable) -> Option<Type> {
        self.types.get(variable.index()).copied()
    }

    /// The number of declared variables.
    pub(super) fn count(&self) -> usize {
        self.types.len()
    }

    pub(super) fn preds(&self, block: Block) -> &[Block] {
        &self.blocks[block].preds
    }

    pub(super) fn is_sealed(&self, block: Block) -> bool {
        self.blocks[block].sealed
    }

    /// No block jumps to the entry.
    pub(super) fn mark_entry(&mut self, block: Block) {
        self.blocks[block].sealed = true;
        self.blocks[block].at_head = Some(Vec::new());
    }

    /// Records an edge; a φ names a block once, however many edges come from it.
    pub(super) fn add_pred(&mut self, block: Block, pred: Block) {
        let preds = &mut self.blocks[block].preds;
        // The edges of one terminator are consecutive.
        if preds.last() != Some(&pred) {
            preds.push(pred);
        }
    }

    pub(super) fn define(&mut self, variable: Variable, block: Block, value: Value) {
        self.values.insert((variable, block), Some(value));
        let state = &mut self.blocks[block];
        state.assigned_early |= state.at_head.is_none();
    }

    /// The handlers in force at the end of a block as far as it is built, innermost last.
    pub(super) fn protections(&self, block: Block) -> &[Protection] {
        &self.blocks[block].at_end
    }

    /// Makes the ϒ of an assignment for each handler in force; the caller inserts them after it.
    pub(super) fn store_for_handlers(
        &mut self,
        func: &mut Func,
        variable: Variable,
        block: Block,
        value: Value,
    ) -> Vec<Inst> {
        let mut stores = Vec::new();
        for protection in self.blocks[block].at_end.clone() {
            let store = func.make_inst(Op::Upsilon, &[value], &[], &[self.types[variable.index()]]);
            self.upsilons.entry((variable, protection.handler)).or_default().push(store);
            stores.push(store);
        }
        stores
    }

    /// Checks that a block may jump to others with the handlers in force at its end. `enters` means that the
    /// jump is an `enter`: its second target is a new handler, which protects the first. The error is the
    /// target that already has different handlers.
    pub(super) fn check_protection(&self, from: Block, targets: &[Block], enters: bool) -> Result<(), Block> {
        let outside = &self.blocks[from].at_end;
        for (n, &target) in targets.iter().enumerate() {
            let state = &self.blocks[target];
            // The token of a new handler is in no list yet, so a protected block that already has a list has
            // other handlers.
            let is_protected = enters && n == 0;
            let differs = match &state.at_head {
                Some(known) => is_protected || known != outside,
                None => state.assigned_early && (is_protected || !outside.is_empty()),
            };
            if differs || (is_protected && targets[1..].contains(&target)) {
                return Err(target);
            }
        }
        Ok(())
    }

    /// Records that a block jumps to others with the handlers that are in force there, after
    /// [`check_protection`](Self::check_protection). `entered` is the handler that protects the first target;
    /// it is the second target.
    pub(super) fn protect(
        &mut self,
        func: &mut Func,
        from: Block,
        targets: &[Block],
        entered: Option<Protection>,
    ) {
        let outside = self.blocks[from].at_end.clone();
        for (n, &target) in targets.iter().enumerate() {
            let mut wanted = outside.clone();
            wanted.extend(entered.filter(|_| n == 0));
            if let Some(Protection { handler, .. }) = entered
                && n == 1
                && !std::mem::replace(&mut self.blocks[handler].is_handler, true)
            {
                self.phis_become_phics(func, handler);
            }
            let state = &mut self.blocks[target];
            if state.at_head.is_none() {
                state.at_end.clone_from(&wanted);
                state.at_head = Some(wanted);
            }
        }
    }

    /// Turns the variables that were read in a block before it became a handler into φᶜ.
    fn phis_become_phics(&mut self, func: &mut Func, handler: Block) {
        for (phi, variable) in std::mem::take(&mut self.blocks[handler].open) {
            func.set_op(phi, Op::PhiC, &[]);
            self.phis.retain(|&other| other != phi);
            self.phics.push((phi, variable, handler));
        }
    }

    /// Removes the innermost `count` handlers in force in a block from here on.
    pub(super) fn leave(&mut self, block: Block, count: usize) {
        let at_end = &mut self.blocks[block].at_end;
        at_end.truncate(at_end.len().saturating_sub(count));
    }

    /// Adds the operands of all φᶜ. A variable that never changes under its handler needs none.
    fn finish_handlers(
        &mut self,
        func: &mut Func,
        instead: &mut FxHashMap<Value, Value>,
    ) -> Result<(), Variable> {
        let mut at = 0;
        // Looking up a variable before one handler may look it up in another.
        while let Some(&(phic, variable, handler)) = self.phics.get(at) {
            at += 1;
            let ty = self.types[variable.index()];
            let mut before = Vec::new();
            for n in 0..self.blocks[handler].preds.len() {
                let pred = self.blocks[handler].preds[n];
                before.push((pred, self.look_up(func, variable, pred)));
                self.complete(func);
            }
            let changes = self.upsilons.remove(&(variable, handler)).unwrap_or_default();
            if let ([(_, Some(only))], []) = (&before[..], &changes[..])
                && let Some(own) = func.result(phic)
            {
                instead.insert(own, *only);
                func.remove_inst(phic);
                continue;
            }
            if changes.is_empty() && before.iter().all(|(_, value)| value.is_none()) {
                return Err(variable);
            }
            let mut stores = Vec::new();
            for (pred, value) in before {
                let operands: Vec<Value> = value.into_iter().collect();
                let store = func.make_inst(Op::Upsilon, &operands, &[], &[ty]);
                if let Some(enter) = func.terminator(pred) {
                    func.set_place(store, func.place(enter));
                    func.insert_before(store, enter);
                }
                stores.push(store);
            }
            stores.extend(changes);
            let operands: Vec<Value> = stores.into_iter().filter_map(|store| func.result(store)).collect();
            func.set_op(phic, Op::PhiC, &operands);
        }
        for (_, unread) in std::mem::take(&mut self.upsilons) {
            unread.into_iter().for_each(|store| func.remove_inst(store));
        }
        Ok(())
    }

    /// The value of a declared variable at the end of a block as far as it is built; `None` if no path to it assigns.
    pub(super) fn value(&mut self, func: &mut Func, variable: Variable, block: Block) -> Option<Value> {
        let value = self.look_up(func, variable, block);
        self.complete(func);
        value
    }

    /// Finds the value without completing the φ that it needs.
    fn look_up(&mut self, func: &mut Func, variable: Variable, block: Block) -> Option<Value> {
        let mut passed = Vec::new();
        let mut at = block;
        let value = loop {
            if let Some(&known) = self.values.get(&(variable, at)) {
                break known;
            }
            passed.push(at);
            let state = &self.blocks[at];
            if state.is_handler {
                let phic = self.make_phi(func, Op::PhiC, variable, at);
                self.phics.push((phic, variable, at));
                break func.result(phic);
            }
            match state.preds[..] {
                _ if !state.sealed => {
                    let phi = self.make_phi(func, Op::Phi, variable, at);
                    self.phis.push(phi);
                    self.blocks[at].open.push((phi, variable));
                    break func.result(phi);
                }
                [] => break None,
                // A chain as long as the function is a cycle without an entry.
                [_] if passed.len() > func.block_count() => break None,
                [only] => at = only,
                _ => {
                    let phi = self.make_phi(func, Op::Phi, variable, at);
                    self.phis.push(phi);
                    self.work.push((phi, variable, at));
                    break func.result(phi);
                }
            }
        };
        for block in passed {
            self.values.insert((variable, block), value);
        }
        value
    }

    fn make_phi(&mut self, func: &mut Func, op: Op, variable: Variable, block: Block) -> Inst {
        let phi = func.make_inst(op, &[], &[], &[self.types[variable.index()]]);
        if !func.is_placed(block) {
            func.append_block(block);
        }
        func.prepend_inst(phi, block);
        if let Some(value) = func.result(phi) {
            self.name(func, variable, value);
        }
        phi
    }

    fn complete(&mut self, func: &mut Func) {
        while let Some((phi, variable, block)) = self.work.pop() {
            for n in 0..self.blocks[block].preds.len() {
                let pred = self.blocks[block].preds[n];
                if let Some(value) = self.look_up(func, variable, pred) {
                    func.add_phi_edge(phi, pred, value);
                }
            }
        }
    }

    pub(super) fn seal(&mut self, func: &mut Func, block: Block) {
        if std::mem::replace(&mut self.blocks[block].sealed, true) {
            return;
        }
        let open = std::mem::take(&mut self.blocks[block].open);
        self.work.extend(open.into_iter().map(|(phi, variable)| (phi, variable, block)));
        self.complete(func);
    }

    /// Seals the remaining blocks, adds operands to φᶜ, and replaces redundant φ. The error is a variable
    /// that a handler reads and nothing assigns.
    pub(super) fn finish(&mut self, func: &mut Func) -> Result<(), Variable> {
        for block in (0..func.block_count()).map(Block::new) {
            self.seal(func, block);
        }
        let mut instead: FxHashMap<Value, Value> = FxHashMap::default();
        self.finish_handlers(func, &mut instead)?;
        let rpo = Rpo::compute(&Cfg::compute(func));
        let mut is_phi = vec![false; func.inst_count()];
        let mut users: FxHashMap<Value, Vec<Inst>> = FxHashMap::default();
        for &phi in &self.phis {
            is_phi[phi.index()] = true;
            for &value in func.args(phi) {
                users.entry(value).or_default().push(phi);
            }
        }
        let mut work = self.phis.clone();
        while let Some(phi) = work.pop() {
            let Some(own) = func.result(phi).filter(|_| is_phi[phi.index()]) else { continue };
            let mut only = None;
            let several = func
                .args(phi)
                .iter()
                .map(|&v| resolve(&mut instead, v))
                .any(|value| value != own && *only.get_or_insert(value) != value);
            // A missing edge is an undefined value: any value will do as long as it is available, which only
            // one defined above all predecessors is certain to be.
            let reachable = |blocks: &[Block]| blocks.iter().filter(|&&b| rpo.is_reachable(b)).count();
            let complete = func.inst_block(phi).is_some_and(|block| {
                reachable(&self.blocks[block].preds) == reachable(func.inst_blocks(phi))
            });
            let value = match only {
                _ if several => continue,
                Some(_) if !complete => continue,
                Some(value) => value,
                None => func.constant(Const::Undef(func.ty(own))),
            };
            is_phi[phi.index()] = false;
            instead.insert(own, value);
            func.remove_inst(phi);
            let affected = users.remove(&own).unwrap_or_default();
            work.extend(affected.iter().filter(|p| is_phi[p.index()]));
            users.entry(value).or_default().extend(affected);
        }
        func.replace_values(|value| resolve(&mut instead, value));
        Ok(())
    }
}

/// The final replacement of a value; paths are shortened on the way.
fn resolve(instead: &mut FxHashMap<Value, Value>, value: Value) -> Value {
    let mut last = value;
    while let Some(&next) = instead.get(&last) {
        last = next;
    }
    let mut at = value;
    while let Some(next) = instead.get_mut(&at) {
        at = std::mem::replace(next, last);
    }
    last
}
