//! Generates the code of an image on several threads, with the same result for any number of threads.
//!
//! ```text
//!   functions, wave by wave ── optimised, lowered, roots placed ──► low functions        (a wave: the callees of the previous one)
//!   (version, function), heaviest first ── machine code ──► assembled in program order
//! ```
//!
//! The output of a thread does not depend on others: the passes see final forms of callees (`pipeline.rs`), and code generation sees one function. So each
//! function is a separate shard, taken by the next free thread; program order, not the order of completion, determines its place in the image.
//!
//! The heaviest functions are taken first, so that no thread starts a long one at the end. The weight is the number of instructions and blocks.
//!
//! **Memory.** A thread has the intermediate forms of one function at a time; low functions and machine code of all functions are kept until the image is written,
//! with any number of threads.
//!
//! **Errors.** All functions of a wave are tried; the first failing function in program order determines the error.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use brolga_ir::func::CalleeData;
use brolga_ir::{Func, FuncId, Level};
use brolga_opt::Cx;

use crate::error::Error;
use crate::options::{BuildReport, Progress, ToldProgress, ToldReport};
use crate::pipeline::{Pipeline, Run};
use crate::stages::dispatches;
use crate::sync::lock;

/// The threads that build an image, and the receivers of its progress and report.
pub(crate) struct Emission<'a> {
    threads: usize,
    progress: Option<&'a ToldProgress>,
    pub(crate) report: Option<&'a ToldReport>,
    /// The number of completed steps, and of all steps discovered so far.
    steps: Mutex<(usize, usize)>,
}

impl<'a> Emission<'a> {
    /// Uses this many threads; zero means one.
    pub(crate) fn new(
        threads: usize,
        progress: Option<&'a ToldProgress>,
        report: Option<&'a ToldReport>,
    ) -> Emission<'a> {
        Emission { threads, progress, report, steps: Mutex::default() }
    }

    /// Reports a completed step for this function.
    pub(crate) fn step(&self, symbol: &str) {
        let Some(told) = self.progress else { return };
        let (done, of) = {
            let mut steps = lock(&self.steps);
            steps.0 += 1;
            steps.1 = steps.1.max(steps.0);
            *steps
        };
        told(Progress { symbol, done, of });
    }

    /// Sets the number of remaining steps.
    pub(crate) fn left(&self, steps: usize) {
        let mut known = lock(&self.steps);
        known.1 = known.0 + steps;
    }

    /// The low forms of the functions and all their callees. A dynamic call may reach any method, so with one all methods are included. Each function
    /// will have code for up to `versions` versions.
    pub(crate) fn linked(
        &self,
        pipeline: &Pipeline<'_>,
        roots: impl IntoIterator<Item = FuncId>,
        versions: usize,
        report: &mut BuildReport,
    ) -> Result<BTreeMap<FuncId, Func>, Error> {
        let begun = Instant::now();
        let module = pipeline.module();
        let symbols: BTreeMap<String, FuncId> =
            module.funcs().map(|(id, func)| (func.symbol(&module.cx), id)).collect();
        let (mut done, mut seen) = (BTreeMap::new(), BTreeSet::new());
        let mut wave: BTreeSet<FuncId> = roots.into_iter().collect();
        let mut is_open = false;
        while !wave.is_empty() {
            seen.extend(wave.iter().copied());
            let ids: Vec<FuncId> = std::mem::take(&mut wave).into_iter().collect();
            self.left(ids.len() + (done.len() + ids.len()) * versions);
            let lows = self.all(&ids, report, |&id| {
                let low = pipeline.placed(&mut Run { cx: &mut Cx::default(), report: None }, id);
                self.step(module.cx.names.text(module[id].name));
                low
            });
            for (id, low) in ids.into_iter().zip(lows) {
                let low = low?;
                for (_, callee) in low.callees() {
                    if let CalleeData::Symbol { symbol, .. } = callee {
                        wave.extend(symbols.get(module.cx.names.text(*symbol)));
                    }
                }
                if dispatches(&module.cx, &low) && !std::mem::replace(&mut is_open, true) {
                    let is_method = |func: &Func| func.level == Level::High && func.entry().is_some();
                    wave.extend(module.funcs().filter(|(_, func)| is_method(func)).map(|(id, _)| id));
                }
                done.insert(id, low);
            }
            wave.retain(|id| !seen.contains(id));
        }
        report.functions = done.len();
        report.optimise = begun.elapsed();
        Ok(done)
    }

    /// The results of `work` for all items, in their order. Earlier items are taken first.
    pub(crate) fn all<T: Sync, R: Send>(
        &self,
        items: &[T],
        report: &mut BuildReport,
        work: impl Fn(&T) -> R + Sync,
    ) -> Vec<R> {
        let threads = self.threads.min(items.len()).max(1);
        report.threads.resize(report.threads.len().max(threads), Duration::ZERO);
        let (next, made) = (Mutex::new(0), Mutex::new(BTreeMap::new()));
        let run = |busy: &mut Duration| {
            let begun = Instant::now();
            loop {
                let at = {
                    let mut next = lock(&next);
                    let at = *next;
                    *next += 1;
                    at
                };
                let Some(item) = items.get(at) else { break };
                let result = work(item);
                lock(&made).insert(at, result);
            }
            *busy += begun.elapsed();
        };
        let (here, others) = report.threads.split_at_mut(1);
        std::thread::scope(|scope| {
            for busy in others.iter_mut().take(threads - 1) {
                scope.spawn(|| run(busy));
            }
            run(&mut here[0]);
        });
        lock(&made).split_off(&0).into_values().collect()
    }
}

/// The weight of a function.
pub(crate) fn weight(func: &Func) -> usize {
    func.inst_count() + func.blocks().count()
}
