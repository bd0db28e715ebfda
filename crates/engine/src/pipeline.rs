//! The pipeline: from verified high IR to low IR with roots, function by function, on one thread or many.
//!
//! ```text
//!   module ──► settled(id): passes on high IR ──► low(id): lower, passes on low IR ──► placed(id): roots placed for the heap
//!
//!   component (an SCC of the call graph)                        idle ── claimed ──► busy ── optimised ──► done
//!        │ calls                                                   ▲ only when all its callees are done
//!        ▼
//!   component
//! ```
//!
//! Engines use it on one thread ([`Stages`](crate::Stages)), sessions on all their threads, with the profile of an earlier tier if there is one.
//!
//! Functions are optimised on demand, so a program in which one function has no native form can still run the others. Passes read callees
//! (inlining, summaries), so the result for a function depends on the current forms of its callees. The rule, for any schedule
//! of threads: one thread optimises an SCC, in the order of the module, after all its callees outside are optimised. So a
//! function sees the final forms of its callees; in its own SCC it sees the final forms of functions before it and the input forms of functions after
//! it. The result is the same with one thread and with many (`tests/session`), and does not depend on other requests.
//!
//! The module keeps final forms in addition to the first ones ([`Module::supersede`](brolga_ir::Module::supersede)), and is
//! otherwise unchanged; nothing else is shared. A thread whose component needs others optimises the idle ones, and
//! waits for the rest. Only callers wait for callees, so some thread always makes progress.
//!
//! Lowering, root placement and code generation read only one function.
//!
//! **Replaceable callees.** A call through a cell, or to another program, may reach another body while the caller runs.
//! Callers may rely on the types of such callees, but not on summaries. Their bodies may be inlined, since a copy does not change.
//!
//! **Errors.** A function on which passes fail keeps its error. A run that exceeds its time leaves its component to the next run.
//!
//! Cost: one walk over all calls when the pipeline is created; then the passes, once per function.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use brolga_gcroots::Lowering as Roots;
use brolga_ir::heap_abi::HeapAbi;
use brolga_ir::{Context, Func, FuncId, Level, Module};
use brolga_opt::callgraph::{bottom_up, callees, components, reached};
use brolga_opt::defined::test_module;
use brolga_opt::lower::{self, lower, lower_beside};
use brolga_opt::osr::{Exit, leave_loops};
use brolga_opt::summary::summarise_module;
use brolga_opt::{Cx, Moment, OptError, OptLevel, Report, StepReport, optimize, optimize_replaceable};
use brolga_runtime::events::{Event, Events, Stage};

use crate::error::Error;
use crate::session::tiering::profile::Profile;
use crate::sync::lock;

/// The progress of a component.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Idle,
    Busy,
    Done,
}

struct Progress {
    /// The state of each component.
    states: Vec<State>,
    /// How often a thread has finished its work on a component.
    finished: u64,
    /// The number of threads that wait for a component.
    waiting: usize,
}

/// An SCC of the call graph.
struct Component {
    funcs: Vec<FuncId>,
    /// The components that its functions call; all have lower numbers.
    calls: Vec<usize>,
}

/// The target of the code, and the compilation options.
#[derive(Clone)]
pub(crate) struct Settings<'o> {
    pub(crate) level: OptLevel,
    pub(crate) options: Cow<'o, brolga_opt::Options>,
    /// The method of finding roots.
    pub(crate) roots: Roots,
    /// The heap on which the code runs.
    pub(crate) heap: HeapAbi,
    /// The profile of an earlier tier, for the passes.
    pub(crate) advice: Option<Arc<Profile>>,
}

/// One thread's state in the pipeline: fuel, clock and dumps, and the sink for reports of passes, if any.
pub(crate) struct Run<'r, 'c> {
    pub(crate) cx: &'r mut Cx<'c>,
    pub(crate) report: Option<&'r mut Report>,
}

impl Run<'_, '_> {
    /// Runs a step other than a pass, and reports its time under this name if there is a clock.
    pub(crate) fn timed<T>(&mut self, label: &'static str, work: impl FnOnce() -> T) -> T {
        let start = self.cx.now();
        let done = self.cx.within(label, work);
        if let (Some(start), Some(end), Some(report)) = (start, self.cx.now(), &mut self.report) {
            report.add(StepReport {
                runs: 1,
                time: end.saturating_sub(start),
                ..StepReport::new(label, label)
            });
        }
        done
    }

    /// The results of a run of passes over a function.
    fn reported(&mut self, optimised: Result<(Func, Report), OptError>) -> Result<Func, OptError> {
        let (func, report) = optimised?;
        if let Some(all) = &mut self.report {
            all.merge(report);
        }
        Ok(func)
    }
}

/// See the file's header.
pub(crate) struct Pipeline<'o> {
    module: Module,
    settings: Settings<'o>,
    /// Functions whose bodies may be replaced under their callers.
    replaceable: BTreeSet<FuncId>,
    components: Vec<Component>,
    /// The component of each high function.
    component_of: BTreeMap<FuncId, usize>,
    /// The components by static calls alone that have several functions, by function; `None` if there are none.
    linked: Option<BTreeMap<FuncId, Vec<FuncId>>>,
    failed: Mutex<BTreeMap<FuncId, OptError>>,
    progress: Mutex<Progress>,
    changed: Condvar,
}

impl<'o> Pipeline<'o> {
    /// The pipeline of a module whose functions are verified. Functions without a body are defined elsewhere; for the `replaceable` ones callers rely
    /// only on the types.
    pub(crate) fn new(
        mut module: Module,
        settings: Settings<'o>,
        replaceable: BTreeSet<FuncId>,
    ) -> Pipeline<'o> {
        test_module(&mut module);
        if settings.level > OptLevel::O0 {
            summarise(&mut module, &replaceable);
        }
        let order = bottom_up(&module);
        let linked = order.iter().any(|funcs| funcs.len() > 1).then(|| statically_linked(&module));
        let mut component_of = BTreeMap::new();
        for (number, funcs) in order.iter().enumerate() {
            component_of.extend(funcs.iter().map(|&id| (id, number)));
        }
        let components = order.into_iter().enumerate().map(|(number, funcs)| {
            let called = funcs.iter().flat_map(|&id| reached(&module, &module[id]));
            let mut calls: Vec<usize> = called.filter_map(|id| component_of.get(&id).copied()).collect();
            calls.sort_unstable();
            calls.dedup();
            calls.retain(|&callee| callee != number);
            Component { funcs, calls }
        });
        let components: Vec<Component> = components.collect();
        let progress = Progress { states: vec![State::Idle; components.len()], finished: 0, waiting: 0 };
        Pipeline {
            module,
            settings,
            replaceable,
            components,
            component_of,
            linked,
            failed: Mutex::default(),
            progress: Mutex::new(progress),
            changed: Condvar::new(),
        }
    }

    /// The module. Requested functions are in their final forms.
    pub(crate) fn module(&self) -> &Module {
        &self.module
    }

    pub(crate) fn settings(&self) -> &Settings<'o> {
        &self.settings
    }

    /// The same pipeline for another method of finding roots or another heap. Passes depend on neither.
    pub(crate) fn for_heap(mut self, roots: Roots, heap: HeapAbi) -> Self {
        (self.settings.roots, self.settings.heap) = (roots, heap);
        self
    }

    /// The functions that must be linked together with `id`, in order: those that it calls statically and that call it statically, directly or not.
    pub(crate) fn component(&self, id: FuncId) -> Vec<FuncId> {
        let found = self.linked.as_ref().and_then(|linked| linked.get(&id));
        found.cloned().unwrap_or_else(|| vec![id])
    }

    /// A function in its own level, after the passes of that level.
    pub(crate) fn settled(&self, run: &mut Run<'_, '_>, id: FuncId) -> Result<Func, Error> {
        match self.module[id].level {
            Level::Low => self.passes(run, self.module[id].clone()),
            Level::High => {
                self.settle(run, id)?;
                Ok(self.module[id].clone())
            }
        }
    }

    /// A function after lowering and the passes on low IR.
    pub(crate) fn low(&self, run: &mut Run<'_, '_>, id: FuncId) -> Result<Func, Error> {
        if self.module[id].level == Level::Low {
            return self.settled(run, id);
        }
        self.settle(run, id)?;
        let options = lower::Options::with(self.settings.level, &self.settings.options);
        let low = run.timed("lower", || lower(&self.module, &self.module[id], &options))?;
        self.passes(run, low)
    }

    /// A function ready for code generation: optimised, low, with its roots placed.
    pub(crate) fn placed(&self, run: &mut Run<'_, '_>, id: FuncId) -> Result<Func, Error> {
        let low = self.low(run, id)?;
        self.place(run, low)
    }

    /// As [`Pipeline::placed`], with OSR checks in loops; also returns these loops.
    pub(crate) fn leaving(&self, run: &mut Run<'_, '_>, id: FuncId) -> Result<(Func, Vec<Exit>), Error> {
        let cx = &self.module.cx;
        if self.module[id].level == Level::Low {
            return Ok((self.placed(run, id)?, Vec::new()));
        }
        self.settle(run, id)?;
        let Some(leaving) = leave_loops(cx, &self.module[id].symbol(cx), &self.module[id]) else {
            return Ok((self.placed(run, id)?, Vec::new()));
        };
        let (beside, options) =
            (leaving.beside(), lower::Options::with(self.settings.level, &self.settings.options));
        let low = run.timed("lower", || lower_beside(&self.module, &beside, &leaving.func, &options))?;
        let mut low = self.passes(run, low)?;
        leaving.mark_checks(&mut low);
        Ok((self.place(run, low)?, leaving.exits))
    }

    fn place(&self, run: &mut Run<'_, '_>, low: Func) -> Result<Func, Error> {
        let Settings { options, roots, heap, .. } = &self.settings;
        run.timed("place roots", || place(&self.module.cx, low, options, *roots, heap))
    }

    /// The passes for a function's level.
    fn passes(&self, run: &mut Run<'_, '_>, func: Func) -> Result<Func, Error> {
        let optimised = optimize(&self.module, func, self.settings.level, &self.settings.options, run.cx);
        Ok(run.reported(optimised)?)
    }

    /// Brings a high function and all its callees into their final forms.
    fn settle(&self, run: &mut Run<'_, '_>, id: FuncId) -> Result<(), Error> {
        if let Some(&root) = self.component_of.get(&id) {
            let mut pending = self.unsettled(root);
            while !pending.is_empty() {
                let seen = lock(&self.progress).finished;
                let before = pending.len();
                let mut left = Vec::new();
                for number in pending {
                    if !self.try_settle(run, number)? {
                        left.push(number);
                    }
                }
                pending = left;
                if pending.len() == before {
                    self.wait(seen);
                }
            }
        }
        match lock(&self.failed).get(&id) {
            Some(error) => Err(error.clone().into()),
            None => Ok(()),
        }
    }

    /// Components below and with `root` that are not done, callees first.
    fn unsettled(&self, root: usize) -> Vec<usize> {
        let progress = lock(&self.progress);
        let mut found = BTreeSet::new();
        let mut open = vec![root];
        while let Some(number) = open.pop() {
            // The callees of a component are settled before it.
            if progress.states[number] != State::Done && found.insert(number) {
                open.extend(&self.components[number].calls);
            }
        }
        found.into_iter().collect()
    }

    /// Whether the component is done, possibly by this call.
    ///
    /// # Errors
    /// The time limit of the run is exceeded; the component is idle again.
    fn try_settle(&self, run: &mut Run<'_, '_>, number: usize) -> Result<bool, OptError> {
        let component = &self.components[number];
        {
            let mut progress = lock(&self.progress);
            match progress.states[number] {
                State::Done => return Ok(true),
                State::Idle if component.calls.iter().all(|&at| progress.states[at] == State::Done) => {}
                State::Idle | State::Busy => return Ok(false),
            }
            progress.states[number] = State::Busy;
        }
        // Also when a pass panics: waiting threads continue, with the unchanged function.
        let mut finish = Finish { pipeline: self, number, state: State::Done };
        let Settings { level, options, advice, .. } = &self.settings;
        for &id in &component.funcs {
            let mut func = self.module[id].clone();
            if let Some(profile) = advice {
                profile.advise(&self.module.cx, &mut func);
            }
            let passes = if self.replaceable.contains(&id) { optimize_replaceable } else { optimize };
            let optimised = passes(&self.module, func, *level, options, run.cx);
            match run.reported(optimised) {
                Ok(func) => self.module.supersede(id, func),
                Err(OptError::Stopped) => {
                    finish.state = State::Idle;
                    return Err(OptError::Stopped);
                }
                Err(error) => drop(lock(&self.failed).insert(id, error)),
            }
        }
        Ok(true)
    }

    /// Waits until work on a component has ended more often than `seen`.
    fn wait(&self, seen: u64) {
        let mut progress = lock(&self.progress);
        progress.waiting += 1;
        while progress.finished == seen {
            progress = self.changed.wait(progress).unwrap_or_else(PoisonError::into_inner);
        }
        progress.waiting -= 1;
    }
}

/// The components of several functions by static calls, by function.
fn statically_linked(module: &Module) -> BTreeMap<FuncId, Vec<FuncId>> {
    let high = |id: &FuncId| module[*id].level == Level::High;
    let found = components(module, &|id| callees(module, &module[id]));
    let several = found.into_iter().map(|funcs| funcs.into_iter().filter(high).collect::<Vec<FuncId>>());
    let several = several.filter(|funcs| funcs.len() > 1);
    several.flat_map(|funcs| funcs.clone().into_iter().map(move |id| (id, funcs.clone()))).collect()
}

/// Sets the summaries of functions, except replaceable ones, on which callers must not rely.
fn summarise(module: &mut Module, replaceable: &BTreeSet<FuncId>) {
    let has_body = |id: &FuncId| module[*id].entry().is_some();
    if !replaceable.iter().any(has_body) {
        return summarise_module(module);
    }
    let ids: Vec<FuncId> = module.funcs().map(|(id, _)| id).collect();
    if ids.iter().all(|id| replaceable.contains(id)) {
        return;
    }
    let mut seen = Module::new(module.cx.clone());
    for &id in &ids {
        let func = &module[id];
        // Names and types are unique, as in the module itself.
        let _ = seen.add_func(if replaceable.contains(&id) { func.declaration() } else { func.clone() });
    }
    summarise_module(&mut seen);
    for id in ids {
        let summary = seen.func(id).and_then(|func| func.summary);
        module[id].summary = summary.filter(|_| !replaceable.contains(&id));
    }
}

/// Ends the work on a component, also on a panic.
struct Finish<'a, 'o> {
    pipeline: &'a Pipeline<'o>,
    number: usize,
    state: State,
}

impl Drop for Finish<'_, '_> {
    fn drop(&mut self) {
        let mut progress = lock(&self.pipeline.progress);
        progress.states[self.number] = self.state;
        progress.finished += 1;
        let is_awaited = progress.waiting > 0;
        drop(progress);
        // Notifying is a system call even without waiters.
        if is_awaited {
            self.pipeline.changed.notify_all();
        }
    }
}

/// A context for passes that reports the start and end of passes to these events, if there is a listener.
pub(crate) fn watched(events: &Events) -> Cx<'_> {
    if !events.is_on() {
        return Cx::default();
    }
    Cx::default().with_watcher(|moment| {
        events.tell(match moment {
            Moment::Begin(name) => Event::Begin { stage: Stage::Pass, name },
            Moment::End => Event::End { stage: Stage::Pass },
        });
    })
}

/// Places the roots of a low function for a heap.
pub(crate) fn place(
    cx: &Context,
    mut low: Func,
    options: &brolga_opt::Options,
    lowering: Roots,
    heap: &HeapAbi,
) -> Result<Func, Error> {
    let verify = options.verify_each || cfg!(debug_assertions);
    let placing = brolga_gcroots::Options { verify, lowering, ..brolga_gcroots::Options::new(*heap) };
    match brolga_gcroots::place(&mut low, cx, &placing) {
        Ok(_) => Ok(low),
        Err(reason) => Err(Error::Roots { function: cx.names.text(low.name).to_owned(), reason }),
    }
}
