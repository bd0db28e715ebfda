//! Shrinks a program while it still shows a fault.
//!
//! ```text
//! module ──► change ──► verified? ──► does it still fail? ── yes ──► the change stays ──┐
//!    ▲                     no │              no │                                       │
//!    └────────────────────────┴─────────────────┴───────────────────────────────────────┘  until no change stays
//! ```
//!
//! A closure of the caller decides whether a verified module shows the fault. Changes go from large to small,
//! so that most of a program is gone before single operands are tried:
//!
//! | change | of |
//! |---|---|
//! | left out | functions, globals; in halves, quarters, … single ones |
//! | cut short: a block returns at once | blocks, the first first |
//! | one way only | branches: the condition becomes a constant |
//! | left out | handlers: their region stays without them |
//! | cleaned up | a function, by `simplify-cfg`, `inst-simplify`, `dce` |
//! | left out, with simple values for their results | statements; in halves, quarters, … |
//! | a simple value | operands; constants become 0, 1, or half of their value |
//! | a simple value | a φ: one of its operands |
//! | left out | hints; in halves, quarters, … single ones |
//!
//! A *simple value* is a constant of the type, else an argument of the function, else undefined.
//!
//! A round is one try of every change at every place; rounds follow while one made progress and tries are left ([`Limits`]).
//! The result depends on the module and the closure's answers only. Cost: each try copies the module, verifies it, and calls the closure.
//! Not done: types, fields of structs and parameters of functions stay as they are.

mod changes;

use brolga_ir::verify::verify_module;
use brolga_ir::{Func, FuncId, Level, Module};

/// How much is tried.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// The number of queries to the caller.
    pub tries: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { tries: 5000 }
    }
}

/// The outcome of a reduction.
#[derive(Clone, Debug)]
pub struct Reduced {
    /// The smallest module found that fails; the given one if nothing could be left out.
    pub module: Module,
    /// The number of queries made to the caller.
    pub tries: usize,
}

/// Reduces a module for which `fails` holds. If it does not hold, the module is returned unchanged.
pub fn reduce(module: &Module, limits: Limits, fails: &mut dyn FnMut(&Module) -> bool) -> Reduced {
    let mut search = Search { module: module.clone(), fails, tries: 1, limit: limits.tries };
    if (search.fails)(module) {
        while search.round() {}
    }
    Reduced { module: search.module, tries: search.tries }
}

/// The number of statements of a module: how large it is.
pub fn size(module: &Module) -> usize {
    module.funcs().map(|(_, f)| f.blocks().map(|b| f.block_insts(b).count()).sum::<usize>()).sum()
}

struct Search<'a> {
    /// The best so far.
    module: Module,
    fails: &'a mut dyn FnMut(&Module) -> bool,
    tries: usize,
    limit: usize,
}

impl Search<'_> {
    /// Tries every change everywhere. True if one stayed.
    fn round(&mut self) -> bool {
        let before = (self.module.func_count(), self.module.globals().len());
        self.leave_out_functions();
        self.leave_out_globals();
        let mut progress = before != (self.module.func_count(), self.module.globals().len());
        for id in self.ids() {
            for change in changes::ALL {
                progress |= self.change_everywhere(id, *change);
            }
        }
        progress
    }

    fn ids(&self) -> Vec<FuncId> {
        self.module.funcs().filter(|(_, f)| f.level == Level::High).map(|(id, _)| id).collect()
    }

    /// Keeps a candidate if it verifies and fails.
    fn keep(&mut self, candidate: Module) -> bool {
        if self.tries >= self.limit || verify_module(&candidate).is_err() {
            return false;
        }
        self.tries += 1;
        let fails = (self.fails)(&candidate);
        if fails {
            self.module = candidate;
        }
        fails
    }

    fn keep_func(&mut self, id: FuncId, func: Func) -> bool {
        let mut candidate = self.module.clone();
        candidate[id] = func;
        self.keep(candidate)
    }

    fn leave_out_functions(&mut self) {
        let all = |search: &Self| search.module.func_count();
        self.leave_out(all, |module, out| {
            let mut rest = module.without_functions();
            for (id, func) in module.funcs() {
                if !out.contains(&(id.as_u32() as usize)) {
                    rest.add_func(func.clone()).ok()?;
                }
            }
            Some(rest)
        });
    }

    fn leave_out_globals(&mut self) {
        let all = |search: &Self| search.module.globals().len();
        self.leave_out(all, |module, out| {
            let mut rest = Module::new(module.cx.clone());
            for (n, global) in module.globals().iter().enumerate() {
                if !out.contains(&n) {
                    rest.add_global(global.clone()).ok()?;
                }
            }
            for (_, func) in module.funcs() {
                rest.add_func(func.clone()).ok()?;
            }
            Some(rest)
        });
    }

    /// Leaves out runs of things, the longest runs first and from the end, because what comes later mostly needs what came
    /// before.
    fn leave_out(
        &mut self,
        count: impl Fn(&Self) -> usize,
        without: impl Fn(&Module, std::ops::Range<usize>) -> Option<Module>,
    ) {
        let mut length = count(self);
        while length > 0 {
            let mut end = count(self);
            while end > 0 {
                let start = end.saturating_sub(length);
                if let Some(candidate) = without(&self.module, start..end) {
                    self.keep(candidate);
                }
                end = start;
            }
            length /= 2;
        }
    }

    /// Tries a change at all its places in a function, from the last to the first, in runs that get shorter.
    fn change_everywhere(&mut self, id: FuncId, change: changes::Change) -> bool {
        let mut progress = false;
        let mut length = if change.in_runs { (change.places)(&self.module[id]) } else { 1 };
        while length > 0 {
            let mut end = (change.places)(&self.module[id]);
            while end > 0 && self.tries < self.limit {
                let start = end.saturating_sub(length);
                let changed = (change.at)(&self.module, &self.module[id], start..end);
                progress |= changed.into_iter().any(|func| self.keep_func(id, func));
                end = start;
            }
            length /= 2;
        }
        progress
    }
}
