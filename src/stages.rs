//! From verified high IR to optimised low IR, function by function.
//!
//! ```text
//! module ──► high(id): passes on high IR ──► low(id): lower, passes on low IR ──► closure(roots): all that they call
//! ```
//!
//! Functions are taken on demand, so a program in which one function has no native form can still run the others.
//! Passes read the callees of a function in the program's own module, which nobody changes: the order in which functions
//! are taken does not matter.

use std::collections::BTreeMap;

use brolga_ir::func::CalleeData;
use brolga_ir::{Func, FuncId, Level, Module};
use brolga_opt::lower::{self, lower};
use brolga_opt::{Cx, OptLevel, Pass, Report, optimize, run_passes};

use crate::error::Error;

/// One run of passes over functions of a module.
pub struct Stages<'m, 'c> {
    module: &'m Module,
    level: OptLevel,
    options: &'m brolga_opt::Options,
    cx: Cx<'c>,
    report: Report,
}

impl<'m, 'c> Stages<'m, 'c> {
    /// A run at this level. `cx` holds the fuel, the clock and where dumps go.
    pub fn new(module: &'m Module, level: OptLevel, options: &'m brolga_opt::Options, cx: Cx<'c>) -> Self {
        Stages { module, level, options, cx, report: Report::default() }
    }

    /// A function after the passes on high IR; a low function as it is.
    pub fn high(&mut self, id: FuncId) -> Result<Func, Error> {
        match self.module.func(id).level {
            Level::High => self.optimised(id),
            Level::Low => Ok(self.module.func(id).clone()),
        }
    }

    /// A function after the passes for its own level of the IR.
    pub fn optimised(&mut self, id: FuncId) -> Result<Func, Error> {
        self.pipeline(self.module.func(id).clone())
    }

    /// A function after these passes.
    pub fn passes(&mut self, id: FuncId, passes: &[&'static Pass]) -> Result<Func, Error> {
        let func = self.module.func(id).clone();
        let (func, report) = run_passes(self.module, func, passes, self.options, &mut self.cx)?;
        self.report.merge(report);
        Ok(func)
    }

    /// A function after lowering and the passes on low IR.
    pub fn low(&mut self, id: FuncId) -> Result<Func, Error> {
        let high = self.high(id)?;
        let low = lower(self.module, &high, &lower::Options::default())?;
        self.pipeline(low)
    }

    /// The low form of these functions and of all that they call, directly or not, in the order of the module.
    pub fn closure(
        &mut self,
        roots: impl IntoIterator<Item = FuncId>,
    ) -> Result<BTreeMap<FuncId, Func>, Error> {
        let symbols: BTreeMap<String, FuncId> =
            self.module.funcs().map(|(id, _)| (self.module.symbol(id), id)).collect();
        let mut done = BTreeMap::new();
        let mut pending: Vec<FuncId> = roots.into_iter().collect();
        while let Some(id) = pending.pop() {
            if done.contains_key(&id) {
                continue;
            }
            let low = self.low(id)?;
            for (_, callee) in low.callees() {
                if let CalleeData::Symbol { symbol, .. } = callee {
                    pending.extend(symbols.get(self.module.cx.names.text(*symbol)));
                }
            }
            done.insert(id, low);
        }
        Ok(done)
    }

    /// What the passes did so far.
    pub fn report(&self) -> &Report {
        &self.report
    }

    fn pipeline(&mut self, func: Func) -> Result<Func, Error> {
        let (func, report) = optimize(self.module, func, self.level, self.options, &mut self.cx)?;
        self.report.merge(report);
        Ok(func)
    }
}
