//! Functions compiled outside the session's tables, because they have no symbol.
//!
//! | function | holder of its code |
//! |---|---|
//! | the continuation of a loop (`osr.rs`) | the cell of the loop's entry |
//! | a version that was superseded before it was compiled (`lazy.rs`) | the version in the function's cell |
//!
//! The compilation looks up the callees in the link order of the dylib and waits for them. They are cells, through which the thread
//! reaches the versions of its world. The function is optimised together with the program that defined it.
//!
//! Cost: a copy of its program's functions and one compile.

use std::error::Error;
use std::sync::Arc;

use brolga_cache::Fingerprint;
use brolga_codegen::sig::FunctionType;
use brolga_ir::{FuncId, Module};
use brolga_jit::Target;
use brolga_linking::{DylibId, LookupKind, Priority, Until};

use super::compile::{Output, compile as compile_low, link_unit, wants};
use super::input::CompilationInput;
use super::linking;
use super::needs::Needs;
use super::shared::Shared;
use super::target::Native;

/// Compiles one function of `module`, which is a copy of the program of `input`, and links it. Its code is stored in the cache under these facts.
pub(super) fn compile(
    shared: &Arc<Shared>,
    session: &linking::Session<Native>,
    dylib: DylibId,
    input: &Arc<CompilationInput>,
    (module, only): (Module, FuncId),
    facts: Option<&Fingerprint>,
) -> Result<Target, Failed> {
    let symbol = module[only].symbol(&module.cx);
    let input = shared.input(module, &[only], input.facts(), None, input.profile());
    let output = compile_low(shared, &input, &[only], facts)?;
    link(shared, session, dylib, &input, &output, &symbol)
}

/// Links the function of this type that the cache has under these facts, if any. It calls functions of the program of `input`.
pub(super) fn find(
    shared: &Arc<Shared>,
    session: &linking::Session<Native>,
    dylib: DylibId,
    input: &CompilationInput,
    ty: &Arc<FunctionType>,
    facts: &Fingerprint,
) -> Result<Option<Target>, Failed> {
    let Some(cache) = &shared.recipe.cache else { return Ok(None) };
    let Some((compiled, _)) = input.cached(cache).find_unit(facts, input.module(), Some(vec![ty.clone()]))
    else {
        return Ok(None);
    };
    let output = Output { compiled, loops: Vec::new(), ids: Vec::new(), weight: 0, is_loaded: true };
    link(shared, session, dylib, input, &output, &ty.symbol).map(Some)
}

type Failed = Box<dyn Error + Send + Sync>;

fn link(
    shared: &Arc<Shared>,
    session: &linking::Session<Native>,
    dylib: DylibId,
    input: &CompilationInput,
    output: &Output,
    symbol: &str,
) -> Result<Target, Failed> {
    let names = session.scope();
    let wants = wants(&names, input, output, &Needs::of(input, &output.ids, &output.compiled));
    let unit = loop {
        let mut found = Vec::new();
        if !wants.is_empty() {
            let (order, kind) = (session.links(dylib)?, LookupKind::Static);
            found = session.lookup_with(order, wants.clone(), Until::Ready, kind, Priority::Idle).wait()?;
        }
        // If not, the found definition was redefined meanwhile.
        if let Some(unit) = link_unit(shared, session, input, output, &found, &[], None)? {
            break unit;
        }
    };
    unit.target(symbol).ok_or_else(|| "its code has no such function".into())
}
