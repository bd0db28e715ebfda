//! Compiles programs of an engine function by function from the cache.
//!
//! ```text
//!   wanted ──► key ──► found: its code names further functions ──────┐
//!                └──► not found: passes, code, stored ───────────────┴──► all of them joined, linked as one unit
//! ```
//!
//! Functions and code are the same as without a cache: functions of a program call each other by PC-relative calls, cached or not. Passes run
//! only when the first function is not found.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use brolga_codegen::compiled::Symbol;
use brolga_codegen::linkage::CallKind;
use brolga_gcroots::Lowering as Roots;
use brolga_ir::heap_abi::HeapAbi;
use brolga_ir::{FuncId, Level, Module};
use brolga_jit::{Compiled, Jit, Source, Style};
use brolga_opt::OptLevel;

use super::{CodeCache, Keys};
use crate::error::Error;
use crate::options::tier;
use crate::pipeline::watched;
use crate::stages::{Stages, dispatches};
use brolga_codegen::native_type::{function_type, type_of};

/// The settings of a compilation.
pub(crate) struct How<'a> {
    pub(crate) jit: &'a Jit,
    pub(crate) level: OptLevel,
    pub(crate) opt: &'a brolga_opt::Options,
    pub(crate) roots: Roots,
    pub(crate) heap: &'a HeapAbi,
}

/// The code of the functions and of all their callees, with the list of all functions.
pub(crate) fn compile_program(
    cache: &CodeCache,
    how: &How<'_>,
    module: &Module,
    roots: impl IntoIterator<Item = FuncId>,
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<(Compiled, Vec<FuncId>), Error> {
    let keys = Keys::new(module, |_| 0, false);
    let symbols: BTreeMap<String, FuncId> =
        module.funcs().map(|(id, func)| (func.symbol(&module.cx), id)).collect();
    let mut stages: Option<Stages<'_, '_>> = None;
    let mut done: BTreeMap<FuncId, Compiled> = BTreeMap::new();
    let mut pending: Vec<FuncId> = roots.into_iter().collect();
    let mut is_open = false;
    while let Some(id) = pending.pop() {
        if done.contains_key(&id) {
            continue;
        }
        let facts = keys.get(id).map(|key| {
            let mut facts = cache.facts("function of a program");
            facts.facts(key);
            facts.finish()
        });
        let types = |id| type_of(module, id).map(|ty| vec![Arc::new(ty)]);
        let found = facts.as_ref().and_then(|facts| cache.find(facts, &module.cx, |_| types(id)));
        let (compiled, opens) = match found {
            Some(kept) => (kept.compiled, kept.words.contains(&1)),
            None => {
                let start = Instant::now();
                let stages = stages.get_or_insert_with(|| {
                    let cx = watched(how.jit.runtime().events()).with_stop(stop);
                    let stages = Stages::new(module, how.level, how.opt, cx);
                    stages.with_roots(how.roots).on_heap(how.heap)
                });
                let low = stages.placed(id)?;
                stages.check_time()?;
                let others =
                    |name: &str| if symbols.contains_key(name) { CallKind::Near } else { CallKind::Far };
                let style = Style { others: &others, stop: &|| stop(), ..Style::from(tier(how.level)) };
                let source = Source { func: &low, ty: Some(function_type(module, id, &low).into()) };
                let compiled = how.jit.compile(&module.cx, &[source], style)?;
                let opens = dispatches(&module.cx, &low);
                if let Some(facts) = &facts {
                    let notes = (&[][..], &[u32::from(opens)][..]);
                    cache.keep(facts, &module.cx, &compiled, notes, start.elapsed());
                }
                (compiled, opens)
            }
        };
        for import in compiled.imports() {
            if let Symbol::Function(name) = import {
                pending.extend(symbols.get(name));
            }
        }
        if opens && !std::mem::replace(&mut is_open, true) {
            // A dynamic call may reach any method.
            let is_method = |id: &FuncId| module[*id].level == Level::High && module[*id].entry().is_some();
            pending.extend(module.funcs().map(|(id, _)| id).filter(is_method));
        }
        done.insert(id, compiled);
    }
    let ids = done.keys().copied().collect();
    Ok((Compiled::joined(&module.cx, done.into_values()), ids))
}
