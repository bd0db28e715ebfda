//! The code of an image by several threads, the same for any number of them.
//!
//! ```text
//!   functions, wave by wave ── optimised, lowered, roots placed ──► low functions        (a wave: what the one before it calls)
//!   (version, function), heaviest first ── machine code ──► put together in the order of the program
//! ```
//!
//! The output of a thread does not depend on others: the passes see final forms of callees (`pipeline.rs`), and code generation sees one function. So each
//! function is a separate shard, taken by the next free thread; its place in the image follows the program's order, not the order of completion.
//!
//! The heaviest functions are taken first, so that no thread has a long one left at the end. The weight is the number of instructions and blocks.
//!
//! **Memory.** A thread has the intermediate forms of one function at a time; low functions and machine code of all are kept until the image is written,
//! with any number of threads.
//!
//! **Errors.** All functions of a wave are tried; the error is that of the first one in the order of the program.

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

/// The threads that make an image, and the receivers of its progress and report.
pub(crate) struct Emission<'a> {
    threads: usize,
    progress: Option<&'a ToldProgress>,
    pub(crate) report: Option<&'a ToldReport>,
    /// Steps that are done, and all of them as far as they are known.
    steps: Mutex<(usize, usize)>,
}

impl<'a> Emission<'a> {
    /// So many threads; none are one.
    pub(crate) fn new(
        threads: usize,
        progress: Option<&'a ToldProgress>,
        report: Option<&'a ToldReport>,
    ) -> Emission<'a> {
        Emission { threads, progress, report, steps: Mutex::default() }
    }

    /// A step is done, which was about this function.
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

    /// So many steps are left.
    pub(crate) fn left(&self, steps: usize) {
        let mut known = lock(&self.steps);
        known.1 = known.0 + steps;
    }

    /// The low forms of the functions and of all that they call. A dynamic call may go to any method, so with one all methods belong to them. Each
    /// will have code for so many versions, as far as is known.
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

    /// The results of `work` for all items, in their order. Items in front are taken first.
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

/// How heavy a function is.
pub(crate) fn weight(func: &Func) -> usize {
    func.inst_count() + func.blocks().count()
}
