//! Trampolines in memory, shared by all functions of an engine: for each native signature the entry from Rust and the one from stubs,
//! and, once, the entry of boxed functions.
//!
//! A trampoline costs a compile and a page, so it is kept after its last user. The number of unused ones is bounded: a
//! program with many signatures frees them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use brolga_codegen::compile::CompileError;
use brolga_codegen::compiled::{CompiledFunction, Symbol};
use brolga_codegen::entry::{boxed_entry_function, compile_entry, entry_function};
use brolga_codegen::isa::TargetIsa;
use brolga_codegen::lazy::compile_lazy;
use brolga_codegen::sig::Signature;
use brolga_runtime::Runtime;

use crate::link::linker::{Import, LinkError, LinkUnit, Linker, LoadedUnit, Resolver};

/// More trampolines than this are kept only while they are in use.
const MAX_IDLE: usize = 256;

/// The name of the one function in a trampoline's unit.
const NAME: &str = "entry";

/// A trampoline in memory.
#[derive(Debug)]
pub(crate) struct Entry {
    /// The entry: see `codegen::entry` and `codegen::lazy`.
    pub(crate) address: usize,
    /// Keeps the trampoline in memory.
    pub(crate) unit: Arc<LoadedUnit>,
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

impl EntryError {
    /// Whether freeing units can help.
    pub(crate) fn is_shortage(&self) -> bool {
        matches!(self, EntryError::Link(error) if error.is_shortage())
    }
}

/// Trampolines by signature.
#[derive(Default)]
pub(crate) struct Entries {
    by_signature: Mutex<BySignature>,
    lazy: Mutex<BySignature>,
    interpreted: Mutex<BySignature>,
    boxed: OnceLock<Entry>,
}

type BySignature = BTreeMap<Signature, Arc<Entry>>;

impl Entries {
    pub(crate) fn get(
        &self,
        signature: &Signature,
        isa: &TargetIsa,
        linker: &dyn Linker,
    ) -> Result<Arc<Entry>, EntryError> {
        get_or_make(&self.by_signature, signature, || {
            make(compile_entry(NAME, entry_function(signature, isa), isa)?, linker, &Nothing)
        })
    }

    /// The trampoline of functions that are not compiled, and are interpreted first if that is requested.
    pub(crate) fn lazy(
        &self,
        signature: &Signature,
        interpreted: bool,
        isa: &TargetIsa,
        linker: &dyn Linker,
        routines: &Routines<'_>,
    ) -> Result<Arc<Entry>, EntryError> {
        let table = if interpreted { &self.interpreted } else { &self.lazy };
        get_or_make(table, signature, || {
            make(compile_lazy(NAME, signature, isa, interpreted)?, linker, routines)
        })
    }

    /// The trampoline of boxed entries.
    pub(crate) fn boxed(&self, isa: &TargetIsa, linker: &dyn Linker) -> Result<&Entry, EntryError> {
        get_or_make_one(&self.boxed, || {
            make(compile_entry(NAME, boxed_entry_function(isa), isa)?, linker, &Nothing)
        })
    }
}

fn get_or_make_one(
    entry: &OnceLock<Entry>,
    make: impl FnOnce() -> Result<Entry, EntryError>,
) -> Result<&Entry, EntryError> {
    if let Some(known) = entry.get() {
        return Ok(known);
    }
    // Of two threads that do the same, the first one's is kept.
    let made = make()?;
    Ok(entry.get_or_init(|| made))
}

fn get_or_make(
    entries: &Mutex<BySignature>,
    signature: &Signature,
    make: impl FnOnce() -> Result<Entry, EntryError>,
) -> Result<Arc<Entry>, EntryError> {
    let lock = || entries.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = lock().get(signature) {
        return Ok(known.clone());
    }
    // Compiled without the lock; of two threads that do the same, the first one's is kept.
    let made = Arc::new(make()?);
    let mut entries = lock();
    let is_full = entries.len() >= MAX_IDLE;
    let idle: Vec<_> = entries.extract_if(.., |_, entry| is_full && Arc::strong_count(entry) == 1).collect();
    let kept = entries.entry(signature.clone()).or_insert_with(|| made.clone()).clone();
    // Listeners are notified of freed entries, and may request entries.
    drop(entries);
    drop((idle, made));
    Ok(kept)
}

fn make(
    compiled: CompiledFunction,
    linker: &dyn Linker,
    resolver: &dyn Resolver,
) -> Result<Entry, EntryError> {
    let unit = linker.link(&LinkUnit { functions: vec![compiled], data: Vec::new() }, resolver)?;
    let address =
        unit.function(NAME).ok_or_else(|| LinkError::Backend { reason: "lost a function".into() })?;
    Ok(Entry { address, unit })
}

/// A routine of this crate, by its name.
pub(crate) type FindRoutine = fn(&str) -> Option<usize>;

/// Routines of this crate and of the run time.
pub(crate) struct Routines<'a> {
    pub(crate) runtime: &'a Runtime,
    pub(crate) own: FindRoutine,
}

impl Resolver for Routines<'_> {
    fn resolve(&self, symbol: &Symbol) -> Result<Import, String> {
        let address = match symbol {
            Symbol::Routine(name) => (self.own)(name).or_else(|| self.runtime.routine(name)),
            _ => None,
        };
        let found = address.map(|address| Import { address, owner: None });
        found.ok_or_else(|| "the run time does not have it".into())
    }
}

/// An entry trampoline refers to nothing.
struct Nothing;

impl Resolver for Nothing {
    fn resolve(&self, _: &Symbol) -> Result<Import, String> {
        Err("a trampoline refers to nothing".into())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;
    use std::time::Duration;

    use brolga_codegen::sig::Abi;
    use brolga_runtime::{Runtime, RuntimeOptions};

    use super::*;
    use crate::debug::code_map::{CodeListener, CodeUnit};
    use crate::engine::{Jit, JitOptions};

    /// Requests an entry when code is freed the first time.
    struct Asks {
        /// Taken at the request: the engine holds its listeners.
        jit: Mutex<Option<Jit>>,
        /// Whether it was given one.
        given: OnceLock<bool>,
    }

    impl CodeListener for Asks {
        fn loaded(&self, _: &Arc<CodeUnit>) {}

        fn freed(&self, _: &Arc<CodeUnit>) {
            self.given.get_or_init(|| {
                let (jit, (done, is_done)) = (self.jit.lock().unwrap().take().unwrap(), channel());
                // Another thread, so that a lock that is held is seen and not waited for.
                std::thread::spawn(move || done.send(jit.entry(&Signature::new(vec![], vec![])).is_ok()));
                is_done.recv_timeout(Duration::from_secs(20)) == Ok(true)
            });
        }
    }

    #[test]
    fn a_listener_to_freed_trampolines_may_request_others() {
        let jit = Jit::new(Runtime::new(RuntimeOptions::default()), JitOptions::default()).unwrap();
        let asks = Arc::new(Asks { jit: Mutex::new(Some(jit.clone())), given: OnceLock::new() });
        jit.listen(asks.clone());
        let _kept = jit.entry(&Signature::new(vec![], vec![])).unwrap();
        let kinds = [Abi::I8, Abi::I16, Abi::I32, Abi::I64];
        for n in 0..MAX_IDLE {
            let params: Vec<Abi> = (0..4).map(|digit| kinds[n >> (2 * digit) & 3]).collect();
            drop(jit.entry(&Signature::new(params, vec![])).unwrap());
        }
        // The last one found the table full of unused ones.
        assert_eq!(asks.given.get(), Some(&true));
    }
}
