//! From verified high IR to optimised low IR, function by function.
//!
//! ```text
//! module ──► high(id): passes on high IR ──► low(id): lower, passes on low IR ──► placed(id): roots placed
//!                                                                                 linked(roots): all that they call
//! ```
//!
//! Functions are taken on demand, so a program in which one function has no native form can still run the others. Before
//! a function its callees are optimised, so that what is inlined is optimised already; functions that call each other in a
//! circle are taken in the order of the module. So what becomes of a function does not depend on what else is requested.
//!
//! Cost: a copy of the module, one walk over its calls, and the passes.

use std::collections::{BTreeMap, BTreeSet};

use brolga_gcroots::Lowering as Roots;
use brolga_ir::func::CalleeData;
use brolga_ir::heap_abi::HeapAbi;
use brolga_ir::{Context, Func, FuncId, Level, Module, Op, RuntimeFn};
use brolga_opt::callgraph::{bottom_up, callees};
use brolga_opt::defined::test_module;
use brolga_opt::lower::{self, lower};
use brolga_opt::summary::summarise_module;
use brolga_opt::{Cx, Moment, OptLevel, Pass, Report, StepReport, optimize, run_passes};
use brolga_runtime::events::{Event, Events, Stage};
use brolga_runtime::heap::DEFAULT_ABI;

use crate::error::Error;

/// One run of passes over functions of a module.
pub struct Stages<'o, 'c> {
    /// The module; functions in `done` are optimised.
    module: Module,
    done: BTreeSet<FuncId>,
    /// The place of each high function in the order of callees before callers.
    rank: BTreeMap<FuncId, usize>,
    level: OptLevel,
    roots: Roots,
    options: &'o brolga_opt::Options,
    heap: HeapAbi,
    cx: Cx<'c>,
    report: Report,
}

/// Functions that are linked together, in the order of the module.
#[derive(Clone, Debug)]
pub struct Linked {
    /// The functions.
    pub funcs: BTreeMap<FuncId, Func>,
    /// How the roots of their boxed entries are found, which are compiled when calls go to them that are decided at run time.
    pub(crate) roots: Roots,
}

impl<'o, 'c> Stages<'o, 'c> {
    /// A run at this level over functions of `module`, which must be verified. `cx` holds the fuel, the clock and where
    /// dumps go.
    pub fn new(module: &Module, level: OptLevel, options: &'o brolga_opt::Options, cx: Cx<'c>) -> Self {
        let order = bottom_up(module).into_iter().flatten();
        let rank = order.enumerate().map(|(rank, id)| (id, rank)).collect();
        let (done, report) = (BTreeSet::new(), Report::default());
        let mut module = module.clone();
        test_module(&mut module);
        if level > OptLevel::O0 {
            summarise_module(&mut module);
        }
        // Of the program as it is now, whatever passes remove: what becomes of a function does not depend on what was optimised before.
        module.note_facts();
        let roots = Roots::Linked;
        Stages { module, done, rank, level, roots, options, heap: DEFAULT_ABI, cx, report }
    }

    /// The same run for code whose roots are found in another way. Code for files links its frames.
    #[must_use]
    pub fn with_roots(self, roots: Roots) -> Self {
        Stages { roots, ..self }
    }

    /// The same run for code that runs on another heap than the default one ([`Heap::abi`](brolga_runtime::heap::Heap::abi)).
    #[must_use]
    pub fn on_heap(self, heap: &HeapAbi) -> Self {
        Stages { heap: *heap, ..self }
    }

    /// A function after the passes on high IR; a low function as it is.
    pub fn high(&mut self, id: FuncId) -> Result<Func, Error> {
        if self.level_of(id)? == Level::High {
            self.optimise(id)?;
        }
        Ok(self.module[id].clone())
    }

    /// A function after the passes for its own level of the IR.
    pub fn optimised(&mut self, id: FuncId) -> Result<Func, Error> {
        self.level_of(id)?;
        self.optimise(id)?;
        Ok(self.module[id].clone())
    }

    /// A function after these passes and no others.
    pub fn passes(&mut self, id: FuncId, passes: &[&'static Pass]) -> Result<Func, Error> {
        self.level_of(id)?;
        let func = self.module[id].clone();
        let (func, report) = run_passes(&self.module, func, passes, self.options, &mut self.cx)?;
        self.report.merge(report);
        Ok(func)
    }

    /// A function after lowering and the passes on low IR.
    pub fn low(&mut self, id: FuncId) -> Result<Func, Error> {
        if self.level_of(id)? == Level::Low {
            return self.optimised(id);
        }
        self.optimise(id)?;
        let low = self.timed("lower", |stages| {
            lower(&stages.module, &stages.module[id], &lower::Options::with(stages.level, stages.options))
        })?;
        self.pipeline(low)
    }

    /// A function in the form that becomes machine code: low, with its roots placed for the heap.
    pub fn placed(&mut self, id: FuncId) -> Result<Func, Error> {
        let low = self.low(id)?;
        self.timed("place roots", |stages| {
            place(&stages.module.cx, low, stages.options, stages.roots, &stages.heap)
        })
    }

    /// Does something that is no pass, and reports how long it took under this name, where there is a clock.
    pub fn timed<T>(&mut self, label: &'static str, work: impl FnOnce(&mut Self) -> T) -> T {
        let start = self.cx.now();
        self.cx.tell(Moment::Begin(label));
        let done = work(self);
        self.cx.tell(Moment::End);
        if let (Some(start), Some(end)) = (start, self.cx.now()) {
            self.note_time(label, end.saturating_sub(start));
        }
        done
    }

    /// Reports that something that is no pass took so long by the clock.
    pub fn note_time(&mut self, label: &'static str, time: u64) {
        self.report.add(StepReport { runs: 1, time, ..StepReport::new(label, label) });
    }

    /// An error if it is time to stop.
    pub fn check_time(&self) -> Result<(), Error> {
        Ok(self.cx.check_time()?)
    }

    /// The time, if there is a clock.
    pub fn now(&mut self) -> Option<u64> {
        self.cx.now()
    }

    /// The placed form of these functions and of all that they call, directly or not. A call that is decided at run time may
    /// go to any method of the module, so all of them belong to it then.
    pub fn linked(&mut self, roots: impl IntoIterator<Item = FuncId>) -> Result<Linked, Error> {
        self.linked_telling(roots, &mut |_| {})
    }

    /// The same; `placed` hears of each function that is done, by its symbol.
    pub(crate) fn linked_telling(
        &mut self,
        roots: impl IntoIterator<Item = FuncId>,
        placed: &mut dyn FnMut(&str),
    ) -> Result<Linked, Error> {
        let symbols: BTreeMap<String, FuncId> =
            self.module.funcs().map(|(id, func)| (func.symbol(&self.module.cx), id)).collect();
        let mut done = BTreeMap::new();
        let mut pending: Vec<FuncId> = roots.into_iter().collect();
        let mut is_open = false;
        while let Some(id) = pending.pop() {
            if done.contains_key(&id) {
                continue;
            }
            self.check_time()?;
            let low = self.placed(id)?;
            placed(self.module.cx.names.text(low.name));
            for (_, callee) in low.callees() {
                if let CalleeData::Symbol { symbol, .. } = callee {
                    pending.extend(symbols.get(self.module.cx.names.text(*symbol)));
                }
            }
            if dispatches(&low) && !std::mem::replace(&mut is_open, true) {
                pending.extend(self.methods());
            }
            done.insert(id, low);
        }
        Ok(Linked { funcs: done, roots: self.roots })
    }

    /// The functions that can be called by dispatch.
    fn methods(&self) -> impl Iterator<Item = FuncId> + '_ {
        let is_method = |func: &Func| func.level == Level::High && func.entry().is_some();
        self.module.funcs().filter(move |(_, func)| is_method(func)).map(|(id, _)| id)
    }

    /// The report of the passes so far.
    pub fn report(&self) -> &Report {
        &self.report
    }

    /// The level of a function, which may be none of the module's.
    fn level_of(&self, id: FuncId) -> Result<Level, Error> {
        let count = self.module.func_count();
        self.module.func(id).map(|func| func.level).ok_or(Error::ForeignFunction { id, count })
    }

    /// Optimises a function in the module, and what it calls before it.
    fn optimise(&mut self, root: FuncId) -> Result<(), Error> {
        let mut wanted = BTreeSet::new();
        let mut pending = vec![root];
        while let Some(id) = pending.pop() {
            if !self.done.contains(&id) && wanted.insert(id) {
                pending.extend(callees(&self.module, &self.module[id]));
            }
        }
        let mut order: Vec<FuncId> = wanted.into_iter().collect();
        // Low functions have no rank and come first; nobody looks into them.
        order.sort_by_key(|id| self.rank.get(id));
        for id in order {
            let func = self.pipeline(self.module[id].clone())?;
            self.module.refine(id, func);
            self.done.insert(id);
        }
        Ok(())
    }

    fn pipeline(&mut self, func: Func) -> Result<Func, Error> {
        let (func, report) = optimize(&self.module, func, self.level, self.options, &mut self.cx)?;
        self.report.merge(report);
        Ok(func)
    }
}

/// A state of passes that tells these events when passes begin and end, if somebody listens.
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

/// Places the roots of a low function, for the default heap.
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

/// Whether a low function makes calls that are decided at run time.
pub(crate) fn dispatches(low: &Func) -> bool {
    let mut ops = low.blocks().flat_map(|block| low.block_insts(block)).map(|inst| low.op(inst));
    ops.any(|op| {
        let Op::CallRuntime(function) = op else { return false };
        matches!(
            function,
            RuntimeFn::Apply | RuntimeFn::ApplyLatest | RuntimeFn::ApplyBuiltin | RuntimeFn::ApplyIterate
        )
    })
}
