//! Functions that are compiled apart from the session's tables, because no symbol leads to them.
//!
//! | function | who holds its code |
//! |---|---|
//! | the continuation of a loop (`osr.rs`) | the cell of the loop's entry |
//! | a version that was superseded before it was compiled (`lazy.rs`) | the version in the function's cell |
//!
//! Its callees are looked up when it is compiled, in the link order of its dylib, and waited for. They are cells, through which the thread
//! reaches the versions that its world sees. It is optimised with the program in sight that it was defined in.
//!
//! Cost: a copy of its program's functions and one compile.

use std::error::Error;
use std::sync::Arc;

use brolga_ir::{FuncId, Module};
use brolga_jit::Target;
use brolga_linking::{DylibId, LookupKind, Priority, Until};

use super::compile::{compile as compile_low, link_unit, wants};
use super::input::CompilationInput;
use super::linking;
use super::shared::Shared;
use super::target::Native;

/// Compiles one function of `module`, which is a copy of the program of `input`, and links it.
pub(super) fn compile(
    shared: &Arc<Shared>,
    session: &linking::Session<Native>,
    dylib: DylibId,
    input: &Arc<CompilationInput>,
    module: Module,
    only: FuncId,
) -> Result<Target, Box<dyn Error + Send + Sync>> {
    let symbol = module[only].symbol(&module.cx);
    let input = shared.input(module, &[only], input.facts(), None, input.profile());
    let output = compile_low(shared, &input, &[only])?;
    let names = session.scope();
    let wants = wants(&names, &output);
    let unit = loop {
        let mut found = Vec::new();
        if !wants.is_empty() {
            let (order, kind) = (session.links(dylib)?, LookupKind::Static);
            found = session.lookup_with(order, wants.clone(), Until::Ready, kind, Priority::Idle).wait()?;
        }
        // If not, somebody has redefined meanwhile what was found.
        if let Some(unit) = link_unit(shared, session, &input, &output, &found, &[], None)? {
            break unit;
        }
    };
    unit.target(&symbol).ok_or_else(|| "its code has no such function".into())
}
