//! The frame around every pass, in one place: dump, facts, time, fence, check, verify, count, dump.
//!
//! ```text
//! step 4 of 9, `late dce`
//!   dump before ─> provide needs ─> start clock ─> fence( run ) ─> stop clock ─> drop breaks ─> compare facts ─> verify ─> dump after
//!                                                    │                                             │                │
//!                                                 panic ──> OptError::Crash                OptError::Crash     OptError::Broken
//! ```
//!
//! A pass that changed nothing is not run again on the same unchanged function, and a pass for loops, objects or errors not on a function without;
//! such a step has its row like any other.
//!
//! A pass that panics, or whose function does not verify afterwards, is a bug of ours. The error names pass,
//! function, step and the number of rewrites until then, for `--opt-limit`; the process continues.
//!
//! The scope reads no clock and prints nothing: both are closures of the caller.

use crate::error::{CrashNote, OptError};
use crate::facts::{Fact, Facts};
use crate::fuel::Fuel;
use crate::options::{COMPILE_MEMORY, Options, memory_of};
use crate::pass::{Changed, Pass, PassClock, PassCx};
use crate::report::{Report, StepReport};
use brolga_ir::func::Signature;
use brolga_ir::verify::{source_span, verify_func_in};
use brolga_ir::{Func, Level, Module, Name};
use std::cell::OnceCell;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// State that outlives the optimisation of one function: fuel, the clock, and where dumps go.
pub struct Cx<'a> {
    /// The counter that all rewrites spend from.
    pub fuel: Fuel,
    clock: Option<Clock<'a>>,
    sink: Option<Sink<'a>>,
    watcher: Option<Watcher<'a>>,
    stop: Option<Stop<'a>>,
}

/// Work with a name that begins or ends: a step of a pipeline that has something to do, or the work of a caller of
/// [`Cx::tell`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Moment {
    /// It begins.
    Begin(&'static str),
    /// It ends, also by a panic of a pass.
    End,
}

type Watcher<'a> = Box<dyn FnMut(Moment) + Send + 'a>;
type Stop<'a> = Box<dyn Fn() -> bool + Send + 'a>;
type Clock<'a> = Box<dyn FnMut() -> u64 + Send + 'a>;
type Sink<'a> = Box<dyn FnMut(&Dump<'_>) + Send + 'a>;

impl<'a> Cx<'a> {
    /// Allows `opt_limit` rewrites, or any number of them; no clock and no sink.
    pub fn new(opt_limit: Option<u64>) -> Self {
        Self { fuel: Fuel::new(opt_limit), clock: None, sink: None, watcher: None, stop: None }
    }

    /// Measures passes with this clock, which may count any unit. Instructions are counted as well.
    #[must_use]
    pub fn with_clock(mut self, clock: impl FnMut() -> u64 + Send + 'a) -> Self {
        self.clock = Some(Box::new(clock));
        self
    }

    /// Sets a query for whether to stop, with [`OptError::Stopped`]. It is made before each pass, and in passes at each 64th
    /// instruction or rewrite.
    #[must_use]
    pub fn with_stop(mut self, stop: impl Fn() -> bool + Send + 'a) -> Self {
        self.stop = Some(Box::new(stop));
        self
    }

    /// An error if it is time to stop.
    pub fn check_time(&self) -> Result<(), OptError> {
        match &self.stop {
            Some(stop) if stop() => Err(OptError::Stopped),
            _ => Ok(()),
        }
    }

    /// The time, if there is a clock.
    pub fn now(&mut self) -> Option<u64> {
        self.clock.as_mut().map(|clock| clock())
    }

    /// Sets a watcher for the beginning and end of passes, which do not nest.
    #[must_use]
    pub fn with_watcher(mut self, watcher: impl FnMut(Moment) + Send + 'a) -> Self {
        self.watcher = Some(Box::new(watcher));
        self
    }

    /// Notifies the watcher, if there is one, of work that is not a pass.
    pub fn within<T>(&mut self, label: &'static str, work: impl FnOnce() -> T) -> T {
        self.tell(Moment::Begin(label));
        let done = work();
        self.tell(Moment::End);
        done
    }

    /// Notifies the watcher, if there is one. Each beginning has an end.
    pub fn tell(&mut self, moment: Moment) {
        if let Some(watcher) = &mut self.watcher {
            watcher(moment);
        }
    }

    /// Sets the sink for the functions that the options request.
    #[must_use]
    pub fn with_sink(mut self, sink: impl FnMut(&Dump<'_>) + Send + 'a) -> Self {
        self.sink = Some(Box::new(sink));
        self
    }
}

impl Default for Cx<'_> {
    fn default() -> Self {
        Self::new(None)
    }
}

impl std::fmt::Debug for Cx<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cx")
            .field("fuel", &self.fuel)
            .field("clock", &self.clock.is_some())
            .field("sink", &self.sink.is_some())
            .field("watcher", &self.watcher.is_some())
            .field("stop", &self.stop.is_some())
            .finish()
    }
}

/// A function at one moment between passes.
#[derive(Clone, Copy, Debug)]
pub struct Dump<'a> {
    /// Whether the pass is about to run or has run.
    pub when: When,
    /// The pass.
    pub pass: &'static str,
    /// The step's name in its pipeline.
    pub label: &'static str,
    /// The step's number, from 1.
    pub step: usize,
    /// How many steps there are.
    pub steps: usize,
    /// How many rewrites had been made when the function looked like this.
    pub rewrites: u64,
    /// Whether this pass changed it; [`Changed::No`] before it runs.
    pub changed: Changed,
    /// The time and the counters of this run of the pass; `None` before it runs.
    pub row: Option<&'a StepReport>,
    /// The function's symbol.
    pub symbol: &'a str,
    /// The module that the function belongs to.
    pub module: &'a Module,
    /// The function.
    pub func: &'a Func,
}

/// On which side of a pass a [`Dump`] was made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum When {
    /// The pass has not yet run.
    Before,
    /// The pass has run.
    After,
}

/// A pass under the name that it has in a pipeline.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    /// Unique in its pipeline and stage.
    pub label: &'static str,
    /// The pass that runs.
    pub pass: &'static Pass,
    /// The functions in which it may have something to do.
    pub visit: Visit,
    /// Whether it is a pass of the embedder.
    pub is_extra: bool,
}

/// The functions in which a step may have something to do: decided before facts are computed for it.
#[derive(Clone, Copy, Debug)]
pub enum Visit {
    /// In all.
    Always,
    /// In functions with loops.
    Loops,
    /// In functions that satisfy this predicate.
    Asks(fn(&Func) -> bool),
}

/// Runs the steps of a pipeline over one function.
pub(crate) struct PassScope<'s, 'c> {
    module: &'s Module,
    options: &'s Options,
    cx: &'s mut Cx<'c>,
    /// The function's symbol, computed on demand, for messages.
    symbol: OnceCell<String>,
    steps: usize,
    facts: Facts,
    /// How many passes have changed the function.
    changes: u64,
    /// By pass that changed nothing: `changes` at that time.
    idle: Vec<(&'static Pass, u64)>,
    report: Report,
}

impl<'s, 'c> PassScope<'s, 'c> {
    /// Runs all steps; the report has a row for each that ran. The facts hold for the function after the last step.
    pub(crate) fn run(
        module: &'s Module,
        func: &mut Func,
        steps: &[Step],
        options: &'s Options,
        cx: &'s mut Cx<'c>,
    ) -> Result<(Report, Facts), OptError> {
        let mut scope = PassScope {
            module,
            options,
            cx,
            symbol: OnceCell::new(),
            steps: steps.len(),
            facts: Facts::default(),
            changes: 0,
            idle: Vec::with_capacity(steps.len()),
            report: Report { steps: Vec::with_capacity(steps.len()), ..Report::default() },
        };
        if options.verify_each {
            scope.verify(func, None)?;
        }
        scope.check_size(func)?;
        for (index, step) in steps.iter().enumerate() {
            scope.cx.check_time()?;
            if step.pass.required || !options.skip.contains(&step.pass.name) {
                scope.step(func, *step, index + 1)?;
            }
        }
        Ok((scope.report, scope.facts))
    }

    fn step(&mut self, func: &mut Func, step: Step, number: usize) -> Result<(), OptError> {
        let pass = step.pass;
        if !pass.level.takes(func.level) {
            return Err(OptError::WrongLevel { pass: pass.name, level: func.level });
        }
        if self.options.print_before.has(pass.name) {
            self.dump(func, step, number, (When::Before, Changed::No), None);
        }
        let mut row = StepReport::new(step.label, pass.name);
        row.runs = 1;
        row.insts_before = self.size(func);
        let (mut inlined, mut is_begun, mut was_over) = (Vec::new(), false, false);
        let head = step.is_extra.then(|| (func.name, func.level, func.sig.clone()));
        let start = self.now();
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            if self.has_nothing_to_do(func, step) {
                return Changed::No;
            }
            is_begun = true;
            self.cx.tell(Moment::Begin(step.label));
            self.facts.provide(pass.needs, func);
            let clock = PassClock::new(self.cx.stop.as_deref());
            let mut cx = PassCx {
                module: self.module,
                options: self.options,
                facts: &self.facts,
                fuel: &mut self.cx.fuel,
                report: &mut row,
                inlined: &mut inlined,
                clock: &clock,
            };
            let changed = (pass.run)(func, &mut cx);
            was_over = clock.was_over();
            changed
        }));
        row.time = self.now().saturating_sub(start);
        if is_begun {
            self.cx.tell(Moment::End);
        }
        let changed = outcome.map_err(|panic| OptError::Crash {
            note: self.note(func, step, number),
            message: panic_text(&*panic),
        })?;
        if was_over {
            return Err(OptError::Stopped);
        }
        if changed == Changed::Yes {
            row.changed = 1;
            self.changes += 1;
            self.facts.drop_broken(pass.breaks);
            self.check_size(func)?;
        } else if is_begun {
            // A skipped step does not show what its pass would have done.
            self.idle.push((pass, self.changes));
        }
        row.insts_after = if changed == Changed::Yes { self.size(func) } else { row.insts_before };
        if cfg!(debug_assertions) {
            self.check_promises(func, changed, &row, &self.note(func, step, number))?;
        }
        let shown = self.options.print_after.has(pass.name).then(|| row.clone());
        self.report.add(row);
        self.report.inlined.extend(inlined);
        if let Some(head) = head {
            self.check_extra(func, head, self.note(func, step, number))?;
        } else if self.options.verify_each && changed == Changed::Yes {
            self.verify(func, Some(self.note(func, step, number)))?;
        }
        if let Some(row) = &shown {
            self.dump(func, step, number, (When::After, changed), Some(row));
        }
        Ok(())
    }

    /// Trusts no report of an embedder's pass about its changes. Callers rely on the head of the function.
    fn check_extra(
        &mut self,
        func: &Func,
        head: (Name, Level, Signature),
        note: CrashNote,
    ) -> Result<(), OptError> {
        self.facts = Facts::default();
        if head != (func.name, func.level, func.sig.clone()) {
            let message = "it changed the name, the level or the signature of the function".to_owned();
            return Err(OptError::Crash { note, message });
        }
        self.verify(func, Some(note))
    }

    /// A function may not become larger than the options allow, in memory or in statements.
    fn check_size(&self, func: &Func) -> Result<(), OptError> {
        let (bytes, limit) = (memory_of(func), self.options.compile_memory.unwrap_or(COMPILE_MEMORY));
        if bytes > limit {
            return Err(OptError::TooMuchMemory { symbol: self.symbol(func).to_owned(), bytes, limit });
        }
        let Some(limit) = self.options.max_statements else { return Ok(()) };
        let count = func.blocks().map(|block| func.block_insts(block).count()).sum();
        if count <= limit {
            return Ok(());
        }
        Err(OptError::TooLarge { symbol: self.symbol(func).to_owned(), count, limit })
    }

    /// Whether the function is unchanged since the pass last had no effect, or the step does not apply to it.
    fn has_nothing_to_do(&mut self, func: &Func, step: Step) -> bool {
        let same =
            |&(pass, changes): &(&'static Pass, u64)| changes == self.changes && pass.name == step.pass.name;
        if self.idle.iter().rev().any(same) {
            return true;
        }
        match step.visit {
            Visit::Always => false,
            Visit::Loops => {
                self.facts.provide(&[Fact::Loops], func);
                self.facts.loops().is_empty()
            }
            Visit::Asks(asks) => !asks(func),
        }
    }

    /// A pass's declaration has to be true.
    fn check_promises(
        &self,
        func: &Func,
        changed: Changed,
        row: &StepReport,
        note: &CrashNote,
    ) -> Result<(), OptError> {
        let crash = |message: String| Err(OptError::Crash { note: note.clone(), message });
        if changed == Changed::No && row.rewrites > 0 {
            return crash(format!("it made {} rewrites and says that it changed nothing", row.rewrites));
        }
        match self.facts.stale(func).as_slice() {
            [] => Ok(()),
            stale => crash(format!("it broke facts that it does not declare: {stale:?}")),
        }
    }

    fn verify(&self, func: &Func, after: Option<CrashNote>) -> Result<(), OptError> {
        let Err(violations) = verify_func_in(self.module, func) else { return Ok(()) };
        let first = violations.first();
        let message = first.map(|v| v.diagnostic(&self.module.cx, func, &source_span(func)).message);
        Err(OptError::Broken {
            after: after.map(Box::new),
            symbol: self.symbol(func).to_owned(),
            message: message.unwrap_or_default(),
            violations,
            func: Box::new(func.clone()),
        })
    }

    /// The function's name for the linker.
    fn symbol(&self, func: &Func) -> &str {
        self.symbol.get_or_init(|| symbol_of(self.module, func))
    }

    fn note(&self, func: &Func, step: Step, number: usize) -> CrashNote {
        CrashNote {
            pass: step.pass.name,
            label: step.label,
            step: number,
            steps: self.steps,
            func: self.symbol(func).to_owned(),
            rewrites: self.cx.fuel.spent(),
        }
    }

    fn now(&mut self) -> u64 {
        self.cx.clock.as_mut().map_or(0, |clock| clock())
    }

    fn size(&self, func: &Func) -> u64 {
        match self.cx.clock {
            Some(_) => func.blocks().map(|b| func.block_insts(b).count() as u64).sum(),
            None => 0,
        }
    }

    fn dump(
        &mut self,
        func: &Func,
        step: Step,
        number: usize,
        (when, changed): (When, Changed),
        row: Option<&StepReport>,
    ) {
        let symbol = self.symbol.get_or_init(|| symbol_of(self.module, func));
        if let Some(sink) = &mut self.cx.sink {
            sink(&Dump {
                when,
                pass: step.pass.name,
                label: step.label,
                step: number,
                steps: self.steps,
                rewrites: self.cx.fuel.spent(),
                changed,
                row,
                symbol,
                module: self.module,
                func,
            });
        }
    }
}

fn symbol_of(module: &Module, func: &Func) -> String {
    match func.sig.params.is_empty() {
        false => func.symbol(&module.cx),
        true => module.cx.names.text(func.name).to_owned(),
    }
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    match (panic.downcast_ref::<&str>(), panic.downcast_ref::<String>()) {
        (Some(text), _) => (*text).to_owned(),
        (_, Some(text)) => text.clone(),
        _ => "a panic without a message".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pass::PassLevel;
    use brolga_ir::func::Signature;
    use brolga_ir::{Context, Level, Op};

    const fn pass(name: &'static str, run: fn(&mut Func, &mut PassCx<'_>) -> Changed) -> Pass {
        Pass::new(name, PassLevel::Both, run)
    }

    static LOOKS: Pass = pass("looks", |_, cx| {
        cx.count("looks", 1);
        Changed::No
    });
    static CHANGES: Pass = pass("changes", |_, _| Changed::Yes);

    #[test]
    fn a_pass_looks_again_only_at_what_has_changed() {
        let cx = Context::new();
        let mut func = Func::new(cx.names.intern("f"), Level::Low, Signature::default());
        let block = func.make_block();
        func.append_block(block);
        let end = func.make_inst(Op::Return, &[], &[], &[]);
        func.append_inst(end, block);
        let module = Module::new(cx);
        let step = |label, pass, visit| Step { label, pass, visit, is_extra: false };
        let steps = [
            step("first", &LOOKS, Visit::Always),
            step("same", &LOOKS, Visit::Always),
            step("changes", &CHANGES, Visit::Always),
            step("changed", &LOOKS, Visit::Always),
            step("changes again", &CHANGES, Visit::Always),
            step("without loops", &LOOKS, Visit::Loops),
            step("without what is requested", &LOOKS, Visit::Asks(|_| false)),
            step("behind steps that were not taken", &LOOKS, Visit::Always),
        ];
        let (options, mut cx) = (Options::default(), Cx::default());
        let (report, _) = PassScope::run(&module, &mut func, &steps, &options, &mut cx).unwrap();
        let looked = |row: &&StepReport| row.counters.contains(&("looks", 1));
        let labels: Vec<&str> = report.steps.iter().filter(looked).map(|row| row.label).collect();
        assert_eq!(labels, ["first", "changed", "behind steps that were not taken"]);
        assert_eq!(report.steps.len(), steps.len());
    }
}
