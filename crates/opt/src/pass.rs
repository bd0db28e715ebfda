//! Passes, and their input.
//!
//! A pass is one file in `passes/` with one `PASS`. It does not dump, time, verify or log: [`PassScope`](crate::scope) does
//! that around it. It reads the facts that it declared, spends fuel for every rewrite, and returns whether it changed anything.
//!
//! ```text
//! pub(crate) const PASS: Pass = Pass { name: "dce", level: PassLevel::Both, …, run };
//!
//! fn run(func: &mut Func, cx: &mut PassCx<'_>) -> Changed { … if cx.spend("removed") { … } … }
//! ```

use crate::facts::{Fact, Facts};
use crate::fuel::Fuel;
use crate::options::Options;
use crate::replace::visit;
use crate::report::StepReport;
use brolga_ir::{Context, Func, FuncId, Inst, Level, Module, Types};
use std::cell::Cell;
use std::ops::ControlFlow;

/// A pass: its name, when it may run, and the function that runs it.
#[derive(Clone, Copy, Debug)]
pub struct Pass {
    /// Its name: the file, the flag, the folder of its tests and its row in reports.
    pub name: &'static str,
    /// The level of the functions that it takes.
    pub level: PassLevel,
    /// Whether the pipelines are wrong without it; it then cannot be switched off.
    pub required: bool,
    /// Facts to compute before it starts.
    pub needs: &'static [Fact],
    /// Facts that no longer hold after it changed the function.
    pub breaks: &'static [Fact],
    /// The pass.
    pub run: fn(&mut Func, &mut PassCx<'_>) -> Changed,
}

impl Pass {
    /// A pass that needs no facts, breaks none, and may be switched off.
    pub const fn new(
        name: &'static str,
        level: PassLevel,
        run: fn(&mut Func, &mut PassCx<'_>) -> Changed,
    ) -> Pass {
        Pass { name, level, required: false, needs: &[], breaks: &[], run }
    }

    /// Sets the needed facts.
    pub(crate) const fn needs(self, needs: &'static [Fact]) -> Pass {
        Pass { needs, ..self }
    }

    /// Sets the facts that the pass breaks.
    pub(crate) const fn breaks(self, breaks: &'static [Fact]) -> Pass {
        Pass { breaks, ..self }
    }

    /// Marks the pass as required by the pipelines.
    pub(crate) const fn required(self) -> Pass {
        Pass { required: true, ..self }
    }
}

/// The levels of functions that a pass takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PassLevel {
    /// High IR only.
    High,
    /// Low IR only.
    Low,
    /// Both.
    Both,
}

impl PassLevel {
    /// Whether the pass accepts functions of this level.
    pub fn takes(self, level: Level) -> bool {
        match self {
            PassLevel::Both => true,
            PassLevel::High => level == Level::High,
            PassLevel::Low => level == Level::Low,
        }
    }
}

/// Whether a pass changed the function.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub enum Changed {
    /// It is unchanged.
    No,
    /// It is changed.
    Yes,
}

/// The input of a pass beside the function.
pub struct PassCx<'a> {
    /// The functions that the function may call, in their current form. The function itself may be there in an older form.
    pub module: &'a Module,
    /// The options of the run.
    pub options: &'a Options,
    /// The facts that the pass declared in `needs`, as they were when it started.
    pub facts: &'a Facts,
    pub(crate) fuel: &'a mut Fuel,
    pub(crate) report: &'a mut StepReport,
    pub(crate) inlined: &'a mut Vec<FuncId>,
    pub(crate) clock: &'a PassClock<'a>,
}

/// Checks the time limit of a compilation in the middle of a pass.
pub(crate) struct PassClock<'a> {
    stop: Option<&'a (dyn Fn() -> bool + Send + 'a)>,
    /// The number of queries.
    asked: Cell<u32>,
    is_over: Cell<bool>,
}

impl<'a> PassClock<'a> {
    /// The number of queries for each reading of the clock, which may be a system call.
    const EACH: u32 = 64;

    pub(crate) fn new(stop: Option<&'a (dyn Fn() -> bool + Send + 'a)>) -> PassClock<'a> {
        PassClock { stop, asked: Cell::new(0), is_over: Cell::new(false) }
    }

    /// Whether the pass saw the time run out, so that it left the function half done.
    pub(crate) fn was_over(&self) -> bool {
        self.is_over.get()
    }

    fn is_over(&self) -> bool {
        let Some(stop) = self.stop else { return false };
        let asked = self.asked.get().wrapping_add(1);
        self.asked.set(asked);
        if asked.is_multiple_of(Self::EACH) && stop() {
            self.is_over.set(true);
        }
        self.is_over.get()
    }
}

impl<'a> PassCx<'a> {
    /// The types of the function's context.
    pub fn types(&self) -> &'a Types {
        &self.module.cx.types
    }

    /// The context of the function.
    pub fn context(&self) -> &'a Context {
        &self.module.cx
    }

    /// Takes a unit of fuel for one rewrite, and counts it under `counter` if there is one. `false` means that the
    /// rewrite must not happen: there is no fuel, or no time.
    #[must_use]
    pub fn spend(&mut self, counter: &'static str) -> bool {
        let given = !self.clock.is_over() && self.fuel.spend();
        if given {
            self.report.rewrites += 1;
            self.report.count(counter, 1);
        }
        given
    }

    /// Rewrites, in the order of the text, the instructions for which `find` returns a value, while there is fuel.
    /// Statements that `rewrite` inserts before an instruction are not visited.
    pub(crate) fn rewrite_each<T>(
        &mut self,
        func: &mut Func,
        counter: &'static str,
        find: impl Fn(&Func, &Self, Inst) -> Option<T>,
        mut rewrite: impl FnMut(&mut Func, &mut Self, Inst, T),
    ) -> Changed {
        visit(func, |func, inst| {
            if self.clock.is_over() {
                return ControlFlow::Break(());
            }
            if let Some(found) = find(func, self, inst) {
                if !self.spend(counter) {
                    return ControlFlow::Break(());
                }
                rewrite(func, self, inst, found);
            }
            ControlFlow::Continue(())
        });
        self.changed()
    }

    /// Counts something that costs no fuel of its own.
    pub fn count(&mut self, counter: &'static str, by: u64) {
        self.report.count(counter, by);
    }

    /// Notes that the body of a function became part of this one, or that its summary was relied on.
    pub fn inlined(&mut self, func: FuncId) {
        self.inlined.push(func);
    }

    /// How many rewrites the pass has made so far.
    pub fn rewrites(&self) -> u64 {
        self.report.rewrites
    }

    /// [`Changed::Yes`] if the pass has made a rewrite so far.
    pub fn changed(&self) -> Changed {
        if self.report.rewrites > 0 { Changed::Yes } else { Changed::No }
    }
}
