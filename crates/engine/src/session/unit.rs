//! Functions of a program as a unit of the session's tables, which is materialized at the first lookup.
//!
//! ```text
//!   CodegenUnit ── make_low ──► Lowered ── generate ──► Output ── imports looked up ──► link ──► complete ──► ready, with its imports
//!                                                                     ▲                                  │
//!                                                                     └── an import was redefined ───────┘
//! ```
//!
//! Cached code is found and linked at once. Between two stages a worker may take other units through the first stage (`continue_with`). The references of the
//! code are looked up in the dylib's link order until they are resolved, and recorded as the needs of the unit: it is ready when all functions that it
//! may call statically are ready (`needs.rs`).
//!
//! A callee of a unit may be redefined before the unit is in the tables. Then the unit is not entered, and is linked again.

use std::sync::{Arc, OnceLock};

use brolga_ir::FuncId;
use brolga_jit::{LoopEntry, Target};
use brolga_linking::{
    Definition, Dependence, Label, MaterializationUnit, Responsibility, Symbol, SymbolFlags, Until,
};
use brolga_runtime::events::{Event, Tier};

use super::compile::{Output, find, generate, link_unit, make_low, wants};
use super::input::CompilationInput;
use super::lazy::{self, BODY};
use super::linking;
use super::needs::{Need, Needs};
use super::shared::Shared;
use super::target::{Code, Native, Source, fail_unit};
use super::tiering::osr::loop_entry;
use crate::error::Error;

/// See the file's header.
#[derive(Clone)]
pub(crate) struct CodegenUnit {
    pub(crate) shared: Arc<Shared>,
    pub(crate) input: Arc<CompilationInput>,
    pub(crate) ids: Vec<FuncId>,
    pub(crate) symbols: Vec<(Symbol, SymbolFlags)>,
}

impl CodegenUnit {
    /// A unit that repeats this one, in case there is no room for it or for a unit that it needs.
    pub(super) fn again(
        shared: &Arc<Shared>,
        input: &Arc<CompilationInput>,
        ids: &[FuncId],
        symbols: &[(Symbol, SymbolFlags)],
    ) -> CodegenUnit {
        let symbols = symbols.to_vec();
        CodegenUnit { shared: shared.clone(), input: input.clone(), ids: ids.to_vec(), symbols }
    }
}

impl From<CodegenUnit> for linking::Unit<Native> {
    fn from(functions: CodegenUnit) -> Self {
        (Box::new(functions) as Box<dyn MaterializationUnit<Native>>).into()
    }
}

impl MaterializationUnit<Native> for CodegenUnit {
    fn symbols(&self) -> Vec<(Symbol, SymbolFlags)> {
        self.symbols.clone()
    }

    fn materialize(self: Box<Self>, responsibility: Responsibility<Native>) {
        compile_and_link(self.shared, self.input, &self.ids, responsibility);
    }
}

/// Materializes functions of a program, stage by stage: between two stages the worker may take other units through the
/// first stage.
pub(crate) fn compile_and_link(
    shared: Arc<Shared>,
    input: Arc<CompilationInput>,
    ids: &[FuncId],
    responsibility: Responsibility<Native>,
) {
    let cache = shared.recipe.cache.as_ref();
    let facts = cache.and_then(|cache| input.facts_of(cache, ids));
    if let (Some(cache), Some(facts)) = (cache, &facts)
        && let Some(output) = find(&input.cached(cache), &input, ids, facts)
    {
        return look_up_and_link(shared, input, output, responsibility);
    }
    if let (Some(cache), true) = (cache, facts.is_some()) {
        input.note(cache, ids);
    }
    let made = make_low(&shared, &input, ids, &in_vain(&shared, &responsibility));
    let low = match made {
        Ok(low) => low,
        Err(error) => return end(&shared, &input, ids, responsibility, error),
    };
    let ids = ids.to_vec();
    responsibility.continue_with(low.weight(), move |responsibility| {
        let made = generate(&shared, &input, low, facts.as_ref(), &in_vain(&shared, &responsibility));
        let output = match made {
            Ok(output) => output,
            Err(error) => return end(&shared, &input, &ids, responsibility, error),
        };
        let weight = output.weight;
        responsibility.continue_with(weight, move |responsibility| {
            look_up_and_link(shared, input, output, responsibility);
        });
    });
}

/// Returns whether a compilation on this thread is useless: a limited call that the thread is in has ended, and no other thread waits for the functions. Once others do,
/// the thread finishes them.
fn in_vain<'a>(
    shared: &'a Shared,
    responsibility: &'a Responsibility<Native>,
) -> impl Fn() -> bool + Sync + 'a {
    let is_wanted = OnceLock::new();
    move || {
        let runtime = shared.jit.runtime();
        if is_wanted.get().is_some() || !runtime.has_ended() {
            return false;
        }
        let is_in_vain = !responsibility.is_wanted_beside(&runtime.ended_calls());
        if !is_in_vain {
            // Computed once: it walks over the waiting lookups.
            is_wanted.get_or_init(|| ());
        }
        is_in_vain
    }
}

/// Fails the functions. If a limited call has ended, the next call may have enough time, and lookups that arrived since are served by
/// another task; a function for which `Options::compile_limit` is too short has failed until it is redefined.
fn end(
    shared: &Arc<Shared>,
    input: &Arc<CompilationInput>,
    ids: &[FuncId],
    responsibility: Responsibility<Native>,
    error: Arc<Error>,
) {
    let ended = shared.jit.runtime().ended_calls();
    if error.is_stopped() && !ended.is_empty() {
        let Ok(symbols) = responsibility.symbols() else { return };
        let again = CodegenUnit::again(shared, input, ids, &symbols);
        return responsibility.abandon(error, Box::new(again), &ended);
    }
    responsibility.fail(error);
}

fn look_up_and_link(
    shared: Arc<Shared>,
    input: Arc<CompilationInput>,
    output: Output,
    responsibility: Responsibility<Native>,
) {
    // The lookup holds the requested names.
    let (names, needs) = (responsibility.session().scope(), Needs::of(&input, &output.ids, &output.compiled));
    let all = wants(&names, &input, &output, &needs);
    responsibility.lookup_answer(all, Until::Resolved, move |responsibility, found| match found {
        Ok(found) => link(shared, input, (output, &needs), responsibility, &found),
        Err(error) => {
            let Ok(symbols) = responsibility.symbols() else { return };
            let again = CodegenUnit::again(&shared, &input, &output.ids, &symbols);
            fail_unit(responsibility, error.passes(), error, again);
        }
    });
}

/// The source of a function that is alone in its unit, for recompiling it after eviction.
fn source_of(
    shared: &Shared,
    input: &Arc<CompilationInput>,
    ids: &[FuncId],
    symbols: &[(Symbol, SymbolFlags)],
) -> Option<Source> {
    match (symbols, ids) {
        (&[(symbol, flags)], &[id]) if !input.facts.is_eager && !input.types.is_empty() => {
            let source = Source { input: input.clone(), id, symbol, flags };
            shared.evicts_code().then_some(source)
        }
        _ => None,
    }
}

/// The definitions that a unit was linked to and waits for.
fn dependences(
    session: &linking::Session<Native>,
    needs: &Needs,
    found: &[Definition<Native>],
) -> Vec<Dependence<Native>> {
    let is_decided = |found: &&Definition<Native>| {
        needs.function(&session.names().text(found.label.symbol)) == Need::Decided
    };
    found.iter().filter(|found| !is_decided(found)).map(|&found| found.into()).collect()
}

fn link(
    shared: Arc<Shared>,
    input: Arc<CompilationInput>,
    (output, needs): (Output, &Needs),
    responsibility: Responsibility<Native>,
    found: &[Definition<Native>],
) {
    let session = responsibility.session().clone();
    let (Ok(own), Ok(dylib)) = (responsibility.definitions(), responsibility.dylib()) else { return };
    let symbols: Vec<(Symbol, SymbolFlags)> = own.iter().map(|own| (own.label.symbol, own.flags)).collect();
    let iterations = input.counting.map_or(0, |counting| counting.iterations);
    let loops =
        output.loops.iter().map(|found| loop_entry(found, &shared, &session, dylib, &input, iterations));
    let source = source_of(&shared, &input, &output.ids, &symbols);
    let again = CodegenUnit::again(&shared, &input, &output.ids, &symbols);
    let loops: Vec<LoopEntry> = loops.collect();
    let new = shared.jit.unmade();
    let unit = link_unit(&shared, &session, &input, &output, found, &loops, Some(&new));
    let unit = match unit {
        Ok(Some(unit)) => unit,
        // An import was redefined meanwhile.
        Ok(None) => return look_up_and_link(shared, input, output, responsibility),
        Err(error) => return fail_unit(responsibility, error.is_shortage(), Arc::new(error), again),
    };
    let is_loaded = output.is_loaded;
    let names: Vec<(Symbol, Arc<str>)> =
        symbols.iter().map(|&(symbol, _)| (symbol, session.names().text(symbol))).collect();
    let published: Vec<Arc<str>> = match shared.jit.runtime().events().is_on() {
        true => names.iter().map(|(_, name)| name.clone()).collect(),
        false => Vec::new(),
    };
    let bodies = names.iter().filter(|(symbol, _)| *symbol == symbol.part(BODY));
    let bodies = bodies.filter_map(|(body, name)| Some((body.whole(), unit.target(name)?)));
    let bodies: Vec<(Symbol, Target)> = bodies.collect();
    let compiled = (&unit, &input.facts.origin, source);
    let (code, addresses) = Code::enter(&shared.placed, compiled, names);
    let needs = dependences(&session, needs, found);
    let unfinished = responsibility.complete(code, addresses, needs, Some(again.into()));
    if unfinished.is_none() {
        for (symbol, target) in &bodies {
            let function = Label { dylib, symbol: *symbol };
            lazy::provide(&shared, &session, function, &input.facts.origin, target.clone());
        }
    }
    // From here on the unit may be evicted.
    drop((bodies, unit, new));
    match unfinished {
        // A callee was redefined meanwhile, and the unit has not been published.
        Some(responsibility) => look_up_and_link(shared, input, output, responsibility),
        None => {
            for function in &published {
                let tier = if input.counting.is_some() { Tier::Baseline } else { Tier::Optimised };
                shared.jit.runtime().events().tell(Event::Published { function, tier, is_loaded });
            }
            shared.keep_room();
        }
    }
}
