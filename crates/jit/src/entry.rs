//! Entry trampolines in memory, one for each native signature, and the one of boxed entries; shared by all functions of an engine.
//!
//! A trampoline costs a compile and a page, so it is kept after its last user is gone. The number kept is bounded: a
//! program that goes through many signatures gives up those not in use.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use brolga_codegen::compile::{CompileError, CompiledFunction, Symbol};
use brolga_codegen::entry::{boxed_entry_function, compile_entry, entry_function};
use brolga_codegen::isa::HostIsa;
use brolga_codegen::sig::Signature;

use crate::linker::{Import, LinkError, LinkUnit, Linker, LoadedUnit, Resolver};

/// More trampolines than this are kept only while they are in use.
const MAX_IDLE: usize = 256;

/// The name of the one function in a trampoline's unit.
const NAME: &str = "entry";

/// A trampoline in memory.
#[derive(Debug)]
pub(crate) struct Entry {
    /// `extern "C" fn(thread, callee, args, results) -> i32`, see `codegen::entry`.
    pub(crate) address: usize,
    #[expect(dead_code, reason = "held so that the trampoline stays in memory")]
    unit: Arc<LoadedUnit>,
}

/// Why there is no trampoline.
#[derive(thiserror::Error, Debug)]
pub enum EntryError {
    /// It could not be compiled. A defect.
    #[error(transparent)]
    Compile(#[from] CompileError),
    /// It could not be linked, for lack of memory.
    #[error(transparent)]
    Link(#[from] LinkError),
}

/// Trampolines by signature.
#[derive(Default)]
pub(crate) struct Entries {
    by_signature: Mutex<BTreeMap<Signature, Arc<Entry>>>,
    boxed: OnceLock<Entry>,
}

impl Entries {
    pub(crate) fn get(
        &self,
        signature: &Signature,
        isa: &HostIsa,
        linker: &dyn Linker,
    ) -> Result<Arc<Entry>, EntryError> {
        if let Some(known) = self.lock().get(signature) {
            return Ok(known.clone());
        }
        // Compiled without the lock; of two threads that do the same, the first one's is kept.
        let made = Arc::new(make(compile_entry(NAME, entry_function(signature, isa), isa)?, linker)?);
        let mut entries = self.lock();
        if entries.len() >= MAX_IDLE {
            entries.retain(|_, entry| Arc::strong_count(entry) > 1);
        }
        Ok(entries.entry(signature.clone()).or_insert(made).clone())
    }

    /// The trampoline of boxed entries.
    pub(crate) fn boxed(&self, isa: &HostIsa, linker: &dyn Linker) -> Result<&Entry, EntryError> {
        if let Some(known) = self.boxed.get() {
            return Ok(known);
        }
        let made = make(compile_entry(NAME, boxed_entry_function(isa), isa)?, linker)?;
        Ok(self.boxed.get_or_init(|| made))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<Signature, Arc<Entry>>> {
        self.by_signature.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn make(compiled: CompiledFunction, linker: &dyn Linker) -> Result<Entry, EntryError> {
    let unit = linker.link(&LinkUnit { functions: vec![compiled], data: Vec::new() }, &Nothing)?;
    let address =
        unit.function(NAME).ok_or_else(|| LinkError::Backend { reason: "lost a function".into() })?;
    Ok(Entry { address, unit })
}

/// A trampoline refers to nothing.
struct Nothing;

impl Resolver for Nothing {
    fn resolve(&self, _: &Symbol) -> Result<Import, String> {
        Err("a trampoline refers to nothing".into())
    }
}
