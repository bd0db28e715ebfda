//! The pipeline on one thread: functions on demand, with fuel, a clock, dumps and a report.
//!
//! ```text
//! module ──► high(id) ──► low(id) ──► placed(id)
//!                                     linked(roots): with all callees
//! ```
//!
//! `pipeline.rs` has the steps and the order of functions. Engines and the command use this file; tools inspect each step.
//!
//! Cost: a copy of the module, and the cost of the pipeline.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use brolga_gcroots::Lowering as Roots;
use brolga_ir::constant::Address;
use brolga_ir::func::CalleeData;
use brolga_ir::heap_abi::HeapAbi;
use brolga_ir::{Const, Context, Func, FuncId, Level, Module, Op, RuntimeFn, Value};
use brolga_opt::{Cx, Moment, OptLevel, Pass, Report, StepReport, run_passes};
use brolga_runtime::heap::DEFAULT_ABI;

use crate::error::Error;
use crate::pipeline::{Pipeline, Run, Settings};

/// The function of Julia's run time that looks up a method.
const LOOKUP: &str = "jl_gf_invoke_lookup";

/// One run of passes over functions of a module.
pub struct Stages<'o, 'c> {
    pipeline: Pipeline<'o>,
    cx: Cx<'c>,
    report: Report,
}

/// Functions that are linked together, in the order of the module.
#[derive(Clone, Debug)]
pub struct Linked {
    /// The functions.
    pub funcs: BTreeMap<FuncId, Func>,
    /// The method of finding roots for their boxed entries, which are compiled at dynamic calls.
    pub(crate) roots: Roots,
}

impl<'o, 'c> Stages<'o, 'c> {
    /// Creates a run at this level over functions of `module`, which must be verified. `cx` holds the fuel, the clock and the receiver of
    /// dumps.
    pub fn new(module: &Module, level: OptLevel, options: &'o brolga_opt::Options, cx: Cx<'c>) -> Self {
        let options = Cow::Borrowed(options);
        let settings = Settings { level, options, roots: Roots::Linked, heap: DEFAULT_ABI, advice: None };
        let pipeline = Pipeline::new(module.clone(), settings, BTreeSet::new());
        Stages { pipeline, cx, report: Report::default() }
    }

    /// The same run for code with another method of finding roots. Code for files links its frames.
    #[must_use]
    pub fn with_roots(self, roots: Roots) -> Self {
        let heap = self.pipeline.settings().heap;
        Stages { pipeline: self.pipeline.for_heap(roots, heap), ..self }
    }

    /// The same run for code on a heap other than the default ([`Heap::abi`](brolga_runtime::heap::Heap::abi)).
    #[must_use]
    pub fn on_heap(self, heap: &HeapAbi) -> Self {
        let roots = self.pipeline.settings().roots;
        Stages { pipeline: self.pipeline.for_heap(roots, *heap), ..self }
    }

    /// A function after the passes on high IR; a low function unchanged.
    pub fn high(&mut self, id: FuncId) -> Result<Func, Error> {
        match self.level_of(id)? {
            Level::High => self.step(|pipeline, run| pipeline.settled(run, id)),
            Level::Low => Ok(self.pipeline.module()[id].clone()),
        }
    }

    /// A function after the passes for its own level of the IR.
    pub fn optimised(&mut self, id: FuncId) -> Result<Func, Error> {
        self.level_of(id)?;
        self.step(|pipeline, run| pipeline.settled(run, id))
    }

    /// A function after these passes and no others.
    pub fn passes(&mut self, id: FuncId, passes: &[&'static Pass]) -> Result<Func, Error> {
        self.level_of(id)?;
        let module = self.pipeline.module();
        let (func, report) =
            run_passes(module, module[id].clone(), passes, &self.pipeline.settings().options, &mut self.cx)?;
        self.report.merge(report);
        Ok(func)
    }

    /// A function after lowering and the passes on low IR.
    pub fn low(&mut self, id: FuncId) -> Result<Func, Error> {
        self.level_of(id)?;
        self.step(|pipeline, run| pipeline.low(run, id))
    }

    /// A function ready for code generation: low, with its roots placed for the heap.
    pub fn placed(&mut self, id: FuncId) -> Result<Func, Error> {
        self.level_of(id)?;
        self.step(|pipeline, run| pipeline.placed(run, id))
    }

    /// Runs a step other than a pass, and reports its time under this name, if there is a clock.
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

    /// Reports the time that a step other than a pass took, by the clock.
    pub fn note_time(&mut self, label: &'static str, time: u64) {
        self.report.add(StepReport { runs: 1, time, ..StepReport::new(label, label) });
    }

    /// Returns an error if the time limit is exceeded.
    pub fn check_time(&self) -> Result<(), Error> {
        Ok(self.cx.check_time()?)
    }

    /// The time, if there is a clock.
    pub fn now(&mut self) -> Option<u64> {
        self.cx.now()
    }

    /// The placed form of the functions and of all their callees, direct or not. A dynamic call may
    /// reach any method of the module, so with one all methods are included.
    pub fn linked(&mut self, roots: impl IntoIterator<Item = FuncId>) -> Result<Linked, Error> {
        let module = self.pipeline.module();
        let cx = module.cx.clone();
        let symbols: BTreeMap<String, FuncId> =
            module.funcs().map(|(id, func)| (func.symbol(&cx), id)).collect();
        let mut done = BTreeMap::new();
        let mut pending: Vec<FuncId> = roots.into_iter().collect();
        let mut is_open = false;
        while let Some(id) = pending.pop() {
            if done.contains_key(&id) {
                continue;
            }
            self.check_time()?;
            let low = self.placed(id)?;
            for (_, callee) in low.callees() {
                if let CalleeData::Symbol { symbol, .. } = callee {
                    pending.extend(symbols.get(cx.names.text(*symbol)));
                }
            }
            if dispatches(&cx, &low) && !std::mem::replace(&mut is_open, true) {
                pending.extend(self.methods());
            }
            done.insert(id, low);
        }
        Ok(Linked { funcs: done, roots: self.pipeline.settings().roots })
    }

    /// The functions that can be called by dispatch.
    fn methods(&self) -> impl Iterator<Item = FuncId> + '_ {
        let is_method = |func: &Func| func.level == Level::High && func.entry().is_some();
        self.pipeline.module().funcs().filter(move |(_, func)| is_method(func)).map(|(id, _)| id)
    }

    /// The report of the passes so far.
    pub fn report(&self) -> &Report {
        &self.report
    }

    /// The level of a function; an error if the id is not the module's.
    fn level_of(&self, id: FuncId) -> Result<Level, Error> {
        let module = self.pipeline.module();
        let count = module.func_count();
        module.func(id).map(|func| func.level).ok_or(Error::ForeignFunction { id, count })
    }

    fn step<R>(&mut self, step: impl FnOnce(&Pipeline<'o>, &mut Run<'_, 'c>) -> R) -> R {
        step(&self.pipeline, &mut Run { cx: &mut self.cx, report: Some(&mut self.report) })
    }
}

/// Whether a low function has dynamic calls or looks up methods.
pub(crate) fn dispatches(cx: &Context, low: &Func) -> bool {
    let mut ops = low.blocks().flat_map(|block| low.block_insts(block)).map(|inst| low.op(inst));
    let looks_up = || {
        (0..low.value_count() as u32).any(|value| match low.as_const(Value::from_u32(value)) {
            Some(Const::Address(Address::Symbol(name))) => cx.names.text(*name) == LOOKUP,
            _ => false,
        })
    };
    ops.any(|op| match op {
        Op::CallRuntime(
            RuntimeFn::Apply | RuntimeFn::ApplyLatest | RuntimeFn::ApplyBuiltin | RuntimeFn::ApplyIterate,
        ) => true,
        Op::CallRuntime(RuntimeFn::JuliaCall) => looks_up(),
        _ => false,
    })
}
