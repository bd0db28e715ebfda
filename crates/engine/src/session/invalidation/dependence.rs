//! The dependences of a function's code: the bodies that may be inlined into it, and the dynamic calls that may be devirtualized in it.
//!
//! ```text
//!   top ── invoke ──► middle (imported, with its body) ── dynamic ──► base      top depends on middle, and on all methods that may be base
//!   top ── invoke ──► own                                                       own has its own note, which leads to top
//! ```
//!
//! Bodies of other programs are traversed, because inlining from them is decided in the module that imports them: the notes of their own programs do not record it.
//!
//! Cost: one walk over the statements of each function; a walk over the imported bodies for each function that may reach them.

use std::collections::BTreeSet;

use brolga_ir::func::CalleeData;
use brolga_ir::{FuncId, Module};
use rustc_hash::FxHashMap;

use crate::session::reach::{Reach, decides_later, may_reach, reach};

/// The dependences of a module's functions.
pub(crate) struct Dependences<'m> {
    pub(super) module: &'m Module,
    /// The number of functions, from the first, that have their own notes.
    own: usize,
    seen: FxHashMap<FuncId, Direct>,
}

/// The direct dependences of one body.
struct Direct {
    /// Functions with bodies that it calls statically.
    callees: BTreeSet<FuncId>,
    /// Imported functions with bodies that its dynamic calls may reach.
    decided: Vec<FuncId>,
    reach: Reach,
    looks: bool,
}

/// The dependences of a function.
#[derive(Default)]
pub(super) struct Dependence {
    /// Functions with bodies that are called statically.
    pub(super) callees: BTreeSet<FuncId>,
    /// The methods that dynamic calls may reach.
    pub(super) reach: Reach,
    /// Whether there are calls that are dispatched at run time.
    pub(super) looks: bool,
}

impl<'m> Dependences<'m> {
    /// For a module whose first `own` functions have their own notes.
    pub(crate) fn new(module: &'m Module, own: usize) -> Dependences<'m> {
        Dependences { module, own, seen: FxHashMap::default() }
    }

    /// The dependences of a function, including what it may inline from other programs.
    pub(super) fn dependence(&mut self, id: FuncId) -> Dependence {
        let mut all = Dependence::default();
        let (mut pending, mut done) = (vec![id], BTreeSet::from([id]));
        while let Some(at) = pending.pop() {
            let own = self.own;
            let direct = self.direct(at);
            let imported = |callee: &FuncId| callee.as_u32() as usize >= own;
            let inner = direct.callees.iter().copied().filter(imported).chain(direct.decided.iter().copied());
            pending.extend(inner.filter(|callee| done.insert(*callee)));
            all.callees.extend(&direct.callees);
            all.reach.add(&direct.reach);
            all.looks |= direct.looks;
        }
        all.callees.remove(&id);
        all
    }

    fn direct(&mut self, id: FuncId) -> &Direct {
        let (module, own) = (self.module, self.own);
        self.seen.entry(id).or_insert_with(|| {
            let func = &module[id];
            let has_body = |callee: &FuncId| module[*callee].entry().is_some();
            let called = func.callees().filter_map(|(_, callee)| match callee {
                CalleeData::Method { function, args, .. } => module.find_method(*function, args),
                CalleeData::Symbol { .. } => None,
            });
            let looks =
                func.blocks().flat_map(|b| func.block_insts(b)).any(|inst| decides_later(func.op(inst)));
            let reach = reach(module, func);
            let mut decided = BTreeSet::new();
            for call in &reach.calls {
                let fits = |id: &&FuncId| may_reach(&module.cx.types, &call.args, &module[**id]);
                decided.extend(module.methods(call.function).iter().filter(fits));
            }
            let with_all = reach.clone().functions(module).into_iter().filter(|&f| !reach.only_calls(f));
            decided.extend(with_all.flat_map(|function| module.methods(function)));
            let is_imported = |id: &FuncId| id.as_u32() as usize >= own && has_body(id);
            let decided = decided.into_iter().filter(is_imported).collect();
            Direct { callees: called.filter(has_body).collect(), decided, reach, looks }
        })
    }
}
