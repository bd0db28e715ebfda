//! Shrinks a program while it still shows a fault.
//!
//! ```text
//! module ──► change ──► verified? ──► does it still fail? ── yes ──► the change is kept ─┐
//!    ▲                     no │              no │                                       │
//!    └────────────────────────┴─────────────────┴───────────────────────────────────────┘  until no change is kept
//! ```
//!
//! A closure provided by the caller decides whether a verified module shows the fault. Changes are tried from
//! large to small, so that most of a program is gone before individual operands are tried:
//!
//! | change | applied to |
//! |---|---|
//! | omitted | functions, globals; in halves, quarters, … single ones |
//! | cut short: a block returns immediately | blocks, from the first |
//! | made unconditional | branches: the condition becomes a constant |
//! | omitted | handlers: their region is kept without them |
//! | cleaned up | a function, with `simplify-cfg`, `inst-simplify`, `dce` |
//! | omitted, with simple values for their results | statements; in halves, quarters, … |
//! | replaced by a simple value | operands; constants become 0, 1, or half of their value |
//! | replaced by a simple value | a φ: one of its operands |
//! | omitted | hints; in halves, quarters, … single ones |
//!
//! A *simple value* is a constant of the type, otherwise an argument of the function, otherwise undefined.
//!
//! One pass tries every change at every position; passes are repeated while they make progress and tries are
//! left ([`Limits`]). The result depends only on the module and the closure's answers. Cost: each try copies
//! the module, verifies it, and calls the closure. Not done: types, struct fields and function parameters are
//! not changed.

mod changes;

use brolga_ir::verify::verify_module;
use brolga_ir::{Func, FuncId, Level, Module};

/// The limits of a reduction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// The maximum number of queries to the caller.
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
    /// The smallest failing module found; the original if nothing could be omitted.
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

/// The size of a module: its number of statements.
pub fn size(module: &Module) -> usize {
    module.funcs().map(|(_, f)| f.blocks().map(|b| f.block_insts(b).count()).sum::<usize>()).sum()
}

struct Search<'a> {
    /// The best module so far.
    module: Module,
    fails: &'a mut dyn FnMut(&Module) -> bool,
    tries: usize,
    limit: usize,
}

impl Search<'_> {
    /// Tries every change everywhere. Returns whether one was kept.
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

    /// Omits runs of items, the longest runs first and from the end, because later items mostly depend on
    /// earlier ones.
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

    /// Tries a change at all its positions in a function, from the last to the first, in ever shorter runs.
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
