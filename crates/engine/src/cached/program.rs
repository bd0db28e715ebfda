//! Compiles programs of an engine function by function from the cache.
//!
//! ```text
//!   wanted ──► key ──► found: its code names further functions ──────┐
//!                └──► not found: passes; then, of many, code; stored ──┴──► all of them joined, linked as one unit
//! ```
//!
//! Another process may be compiling the same functions: then this one waits for its units, and compiles what is missing.
//!
//! Each stage takes many functions, as without a cache: one that goes through all stages alone finds the processor's caches full of other stages.
//!
//! Functions and code are the same as without a cache: functions of a program call each other by PC-relative calls, cached or not. Passes run
//! only when the first function is not found.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use brolga_cache::Fingerprint;
use brolga_codegen::compiled::Symbol;
use brolga_codegen::linkage::CallKind;
use brolga_codegen::sig::FunctionType;
use brolga_gcroots::Lowering as Roots;
use brolga_ir::func::CalleeData;
use brolga_ir::heap_abi::HeapAbi;
use brolga_ir::{Func, FuncId, Level, Module};
use brolga_jit::{Compiled, Jit, Source, Style};
use brolga_opt::OptLevel;

use super::{CodeCache, Kept, Keys, time_of_functions};
use crate::error::Error;
use crate::options::tier;
use crate::pipeline::watched;
use crate::stages::{Stages, dispatches};
use brolga_codegen::native_type::{function_type, type_of};

/// The number of functions that a stage takes.
const TOGETHER: usize = 128;

/// The settings of a compilation.
pub(crate) struct How<'a> {
    pub(crate) jit: &'a Jit,
    pub(crate) level: OptLevel,
    pub(crate) opt: &'a brolga_opt::Options,
    pub(crate) roots: Roots,
    pub(crate) heap: &'a HeapAbi,
}

/// A program from a cache.
pub(crate) struct FromCache {
    pub(crate) compiled: Compiled,
    /// All its functions, those among them that were found, and the facts of their units.
    pub(crate) ids: Vec<FuncId>,
    pub(crate) loaded: BTreeSet<FuncId>,
    pub(crate) facts: Vec<Fingerprint>,
}

/// A function before code generation.
struct Missing {
    id: FuncId,
    facts: Fingerprint,
    low: Func,
    opens: bool,
    /// The time of the passes.
    cost: Duration,
}

fn find(cache: &CodeCache, module: &Module, id: FuncId, facts: &Fingerprint) -> Option<Kept> {
    cache.find(facts, &module.cx, |_| Some(vec![Arc::new(type_of(module, id)?)]))
}

/// The code of the functions and of all their callees.
pub(crate) fn compile_program(
    cache: &CodeCache,
    how: &How<'_>,
    module: &Module,
    roots: impl IntoIterator<Item = FuncId>,
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<FromCache, Error> {
    let keys = Keys::new(module, false);
    let symbols: BTreeMap<String, FuncId> =
        module.funcs().map(|(id, func)| (func.symbol(&module.cx), id)).collect();
    let mut stages: Option<Stages<'_, '_>> = None;
    let mut done: BTreeMap<FuncId, Compiled> = BTreeMap::new();
    let mut loaded = BTreeSet::new();
    let mut missing: Vec<Missing> = Vec::new();
    let mut pending: Vec<FuncId> = roots.into_iter().collect();
    // The number of a function covers all that it may reach, so the roots' numbers identify the work.
    let mut all = cache.facts("functions of a program");
    pending.iter().filter_map(|&id| keys.get(module, id, &|_| 0)).for_each(|key| all.facts(&key));
    let all = all.finish();
    let is_there = cache.wants(&all, time_of_functions(module.func_count()));
    let mut facts_of: BTreeMap<FuncId, Fingerprint> = BTreeMap::new();
    let mut is_open = false;
    while let Some(id) = pending.pop() {
        if facts_of.contains_key(&id) {
            continue;
        }
        let mut facts = cache.facts("function of a program");
        keys.get(module, id, &|_| 0).into_iter().for_each(|key| facts.facts(&key));
        let facts = facts.finish();
        facts_of.insert(id, facts);
        let opens = match find(cache, module, id, &facts) {
            Some(kept) => {
                for import in kept.compiled.imports() {
                    if let Symbol::Function(name) = import {
                        pending.extend(symbols.get(name));
                    }
                }
                loaded.insert(id);
                done.insert(id, kept.compiled);
                kept.words.contains(&1)
            }
            None => {
                let start = Instant::now();
                let stages = stages.get_or_insert_with(|| {
                    let cx = watched(how.jit.runtime().events()).with_stop(stop);
                    let stages = Stages::new(module, how.level, how.opt, cx);
                    stages.with_roots(how.roots).on_heap(how.heap)
                });
                let low = stages.placed(id)?;
                stages.check_time()?;
                for (_, callee) in low.callees() {
                    if let CalleeData::Symbol { symbol, .. } = callee {
                        pending.extend(symbols.get(module.cx.names.text(*symbol)));
                    }
                }
                let opens = dispatches(&module.cx, &low);
                missing.push(Missing { id, facts, low, opens, cost: start.elapsed() });
                opens
            }
        };
        if opens && !std::mem::replace(&mut is_open, true) {
            // A dynamic call may reach any method.
            let is_method = |id: &FuncId| module[*id].level == Level::High && module[*id].entry().is_some();
            pending.extend(module.funcs().map(|(id, _)| id).filter(is_method));
        }
    }
    let others = |name: &str| if symbols.contains_key(name) { CallKind::Near } else { CallKind::Far };
    let source = |one: &'_ Missing| function_type(module, one.id, &one.low).into();
    let style = || Style::from(tier(how.level));
    let stop = || stop();
    if !cache.is_writable()
        && let Some(first) = missing.first().map(|one| one.id)
    {
        // Units of single functions are for a cache that takes them.
        let types: Vec<Arc<FunctionType>> = missing.iter().map(source).collect();
        let sources = missing.iter().zip(types).map(|(one, ty)| Source { func: &one.low, ty: Some(ty) });
        let sources: Vec<Source<'_>> = sources.collect();
        let style = Style { others: &others, stop: &stop, ..style() };
        done.insert(first, how.jit.compile(&module.cx, &sources, style)?);
        missing.clear();
    }
    for some in missing.chunks(TOGETHER) {
        let mut made = Vec::with_capacity(some.len());
        for one in some {
            // It may have come meanwhile.
            let late = if cache.has(&one.facts) { find(cache, module, one.id, &one.facts) } else { None };
            if let Some(kept) = late {
                loaded.insert(one.id);
                done.insert(one.id, kept.compiled);
                continue;
            }
            let start = Instant::now();
            let (ty, style) = (Some(source(one)), Style { others: &others, stop: &stop, ..style() });
            let compiled = how.jit.compile(&module.cx, &[Source { func: &one.low, ty }], style)?;
            made.push((one, compiled, one.cost + start.elapsed()));
        }
        for (one, compiled, cost) in made {
            let notes = (&[][..], &[u32::from(one.opens)][..]);
            cache.keep(&one.facts, &module.cx, &compiled, notes, cost);
            done.insert(one.id, compiled);
        }
    }
    if !is_there {
        // Who waits for these functions finds that they are there.
        cache.keep_bytes(&all, Duration::ZERO, || Some(Vec::new()));
    }
    let (ids, facts) = facts_of.into_iter().unzip();
    Ok(FromCache { compiled: Compiled::joined(&module.cx, done.into_values()), ids, loaded, facts })
}
