//! A program on its way to machine code, by many threads at once.
//!
//! ```text
//!   component (functions that call each other in a cycle)      idle ── claimed ──► busy ── optimised ──► done
//!        │ calls                                                   ▲ only when all that it calls is done
//!        ▼
//!   component
//! ```
//!
//! Passes look into callees (inlining, summaries), so what becomes of a function depends on the forms that its callees have
//! at that moment. The rule is that of [`Stages`](crate::Stages), whatever the threads do: a component is optimised by one
//! thread, in the order of the module, when everything else that it calls is optimised. So a function sees the final forms of what
//! it calls, but for its own component, of which it sees the functions before it final and those after it as they were read. The
//! result is the same with one thread and with many (`tests/session`).
//!
//! Final forms stand beside the first ones in the module ([`Module::supersede`](brolga_ir::Module::supersede)), which is
//! otherwise not changed; nothing else is shared. A thread whose component needs others does those that nobody has begun, and
//! waits for the rest. A thread that is waited for waits for nobody above it, so one always continues.
//!
//! Functions are optimised on demand. Lowering, placing of roots and code generation look at one function alone.
//!
//! **Replaceable callees.** A call that goes through a slot, or to another program, may come to go to another body while the caller runs.
//! Of such callees nothing but types is known to callers: no summaries. Their bodies may be inlined, since a copy stays what it is.
//!
//! Cost: one walk over all calls when the plan is made; then the passes, once for each function.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use brolga_gcroots::Lowering as Roots;
use brolga_ir::heap_abi::HeapAbi;
use brolga_ir::{Func, FuncId, Level, Module};
use brolga_opt::callgraph::{bottom_up, callees};
use brolga_opt::defined::test_module;
use brolga_opt::lower::{self, lower, lower_beside};
use brolga_opt::osr::{Exit, leave_loops};
use brolga_opt::summary::summarise_module;
use brolga_opt::{OptLevel, optimize, optimize_replaceable};
use brolga_runtime::events::Events;

use super::profile::Profile;
use super::scope::declaration;
use super::sync::lock;
use crate::error::Error;
use crate::stages::{place, watched};

/// How far a component is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Idle,
    Busy,
    Done,
}

struct Progress {
    /// By component.
    states: Vec<State>,
    /// How many components were finished.
    finished: u64,
    /// Threads that wait for one to be.
    waiting: usize,
}

/// Functions that call each other in a cycle, or one that does not.
struct Component {
    funcs: Vec<FuncId>,
    /// The components that these call; all have lower numbers.
    calls: Vec<usize>,
}

/// See the file's header.
pub(crate) struct Plan {
    module: Module,
    level: OptLevel,
    options: brolga_opt::Options,
    roots: Roots,
    /// The heap on which the code runs.
    heap: &'static HeapAbi,
    /// The counts of an earlier tier, for the passes.
    advice: Option<Arc<Profile>>,
    /// Functions whose callers may come to call others instead.
    replaceable: BTreeSet<FuncId>,
    components: Vec<Component>,
    /// The component of each high function.
    component_of: BTreeMap<FuncId, usize>,
    failed: Mutex<BTreeMap<FuncId, Arc<Error>>>,
    progress: Mutex<Progress>,
    changed: Condvar,
}

impl Plan {
    /// A plan for a module whose functions are verified. Functions without a body are defined elsewhere.
    pub(crate) fn new(
        mut module: Module,
        level: OptLevel,
        options: brolga_opt::Options,
        roots: Roots,
        heap: &'static HeapAbi,
        advice: Option<Arc<Profile>>,
        replaceable: BTreeSet<FuncId>,
    ) -> Plan {
        test_module(&mut module);
        if level > OptLevel::O0 {
            summarise(&mut module, &replaceable);
        }
        let order = bottom_up(&module);
        let mut component_of = BTreeMap::new();
        for (number, funcs) in order.iter().enumerate() {
            component_of.extend(funcs.iter().map(|&id| (id, number)));
        }
        let components = order.into_iter().enumerate().map(|(number, funcs)| {
            let called = funcs.iter().flat_map(|&id| callees(&module, &module[id]));
            let mut calls: Vec<usize> = called.filter_map(|id| component_of.get(&id).copied()).collect();
            calls.sort_unstable();
            calls.dedup();
            calls.retain(|&callee| callee != number);
            Component { funcs, calls }
        });
        let components: Vec<Component> = components.collect();
        let progress = Progress { states: vec![State::Idle; components.len()], finished: 0, waiting: 0 };
        Plan {
            module,
            level,
            options,
            roots,
            heap,
            advice,
            replaceable,
            components,
            component_of,
            failed: Mutex::default(),
            progress: Mutex::new(progress),
            changed: Condvar::new(),
        }
    }

    /// The module. Functions that were asked for are in their final forms.
    pub(crate) fn module(&self) -> &Module {
        &self.module
    }

    /// The functions that have to be linked together with `id`, in order: its component.
    pub(crate) fn component(&self, id: FuncId) -> Vec<FuncId> {
        self.component_of.get(&id).map_or_else(|| vec![id], |&number| self.components[number].funcs.clone())
    }

    /// The form of a function that becomes machine code: optimised, low, with its roots placed.
    pub(crate) fn placed(&self, events: &Events, id: FuncId) -> Result<Func, Arc<Error>> {
        let low = match self.module[id].level {
            Level::Low => self.pipeline(events, self.module[id].clone())?,
            Level::High => {
                self.settle(events, id)?;
                let options = lower::Options::with(self.level, &self.options);
                let low = watched(events).within("lower", || lower(&self.module, &self.module[id], &options));
                self.pipeline(events, low.map_err(Error::from)?)?
            }
        };
        let place = || place(&self.module.cx, low, &self.options, self.roots, self.heap);
        Ok(watched(events).within("place roots", place)?)
    }

    /// As [`Plan::placed`], with loops that can be left, and these.
    pub(crate) fn leaving(&self, events: &Events, id: FuncId) -> Result<(Func, Vec<Exit>), Arc<Error>> {
        let cx = &self.module.cx;
        if self.module[id].level == Level::Low {
            return Ok((self.placed(events, id)?, Vec::new()));
        }
        self.settle(events, id)?;
        let Some(leaving) = leave_loops(cx, &self.module[id].symbol(&self.module.cx), &self.module[id])
        else {
            return Ok((self.placed(events, id)?, Vec::new()));
        };
        let (beside, options) = (leaving.beside(), lower::Options::with(self.level, &self.options));
        let lower = || lower_beside(&self.module, &beside, &leaving.func, &options);
        let low = watched(events).within("lower", lower).map_err(Error::from)?;
        let mut low = self.pipeline(events, low)?;
        leaving.mark_questions(&mut low);
        let place = || place(cx, low, &self.options, self.roots, self.heap);
        Ok((watched(events).within("place roots", place)?, leaving.exits))
    }

    fn pipeline(&self, events: &Events, func: Func) -> Result<Func, Arc<Error>> {
        let optimised = optimize(&self.module, func, self.level, &self.options, &mut watched(events));
        Ok(optimised.map_err(Error::from)?.0)
    }

    /// Sees to it that a high function and all that it calls have their final forms.
    fn settle(&self, events: &Events, id: FuncId) -> Result<(), Arc<Error>> {
        if let Some(&root) = self.component_of.get(&id) {
            let mut pending = self.unsettled(root);
            while !pending.is_empty() {
                let seen = lock(&self.progress).finished;
                let before = pending.len();
                pending.retain(|&number| !self.try_settle(events, number));
                if pending.len() == before {
                    self.wait(seen);
                }
            }
        }
        match lock(&self.failed).get(&id) {
            Some(error) => Err(error.clone()),
            None => Ok(()),
        }
    }

    /// Components below and with `root` that are not done, callees first.
    fn unsettled(&self, root: usize) -> Vec<usize> {
        let progress = lock(&self.progress);
        let mut found = BTreeSet::new();
        let mut open = vec![root];
        while let Some(number) = open.pop() {
            // The callees of a component were compiled before it.
            if progress.states[number] != State::Done && found.insert(number) {
                open.extend(&self.components[number].calls);
            }
        }
        found.into_iter().collect()
    }

    /// Whether the component is done, perhaps just now by us.
    fn try_settle(&self, events: &Events, number: usize) -> bool {
        let component = &self.components[number];
        {
            let mut progress = lock(&self.progress);
            match progress.states[number] {
                State::Done => return true,
                State::Idle if component.calls.iter().all(|&at| progress.states[at] == State::Done) => {}
                State::Idle | State::Busy => return false,
            }
            progress.states[number] = State::Busy;
        }
        // Also when a pass panics: whoever waits continues, with the function as it was.
        let _finish = Finish { plan: self, number };
        for &id in &component.funcs {
            let mut func = self.module[id].clone();
            if let Some(profile) = &self.advice {
                profile.advise(&self.module.cx, &mut func);
            }
            let pipeline = if self.replaceable.contains(&id) { optimize_replaceable } else { optimize };
            match pipeline(&self.module, func, self.level, &self.options, &mut watched(events)) {
                Ok((func, _)) => self.module.supersede(id, func),
                Err(error) => drop(lock(&self.failed).insert(id, Arc::new(error.into()))),
            }
        }
        true
    }

    /// Waits until more than `seen` components are finished.
    fn wait(&self, seen: u64) {
        let mut progress = lock(&self.progress);
        progress.waiting += 1;
        while progress.finished == seen {
            progress = self.changed.wait(progress).unwrap_or_else(PoisonError::into_inner);
        }
        progress.waiting -= 1;
    }
}

/// Gives functions their summaries, but for those that may be replaced, of which others must not know.
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
        // Each is one of one name and types, as in the module itself.
        let _ = seen.add_func(if replaceable.contains(&id) { declaration(func) } else { func.clone() });
    }
    summarise_module(&mut seen);
    for id in ids {
        let summary = seen.func(id).and_then(|func| func.summary);
        module[id].summary = summary.filter(|_| !replaceable.contains(&id));
    }
}

struct Finish<'a> {
    plan: &'a Plan,
    number: usize,
}

impl Drop for Finish<'_> {
    fn drop(&mut self) {
        let mut progress = lock(&self.plan.progress);
        progress.states[self.number] = State::Done;
        progress.finished += 1;
        let is_awaited = progress.waiting > 0;
        drop(progress);
        // To wake nobody is a system call all the same.
        if is_awaited {
            self.plan.changed.notify_all();
        }
    }
}
