//! C entries: the addresses by which C calls functions.
//!
//! ```text
//!   C ──► NAME#c ── brolga_callback ──► trampoline ── [word] ──► the target of the word
//!            └ belongs to the function's cell
//! ```
//!
//! A function has at most one C entry, so its address is always the same. The entry goes through the cell's word: it lives as long
//! as the cell, independently of its current code and of the code that took the address. After a removal it throws, as
//! other calls do.
//!
//! Functions of a program that is compiled at once have no words; their entries are in the unit that takes the address
//! (`codegen/src/callback.rs`).
//!
//! Cost: some 200 bytes for each function whose address is taken.

use std::sync::{Arc, OnceLock};

use brolga_codegen::callback::{callback_name, compile_c_entry};
use brolga_codegen::compiled::Symbol;
use brolga_codegen::sig::{Abi, FunctionType};
use brolga_runtime::objects::MethodTable;

use crate::engine::Jit;
use crate::entry::trampoline::{Entry, EntryError};
use crate::link::linker::{Import, LinkError, LinkUnit, LoadedUnit, Resolver};

/// Why a function has no C entry.
#[derive(thiserror::Error, Debug)]
pub enum CEntryError {
    /// Its arguments or its result are not single values of C.
    #[error(
        "`{name}` is {ty}, which C cannot call: each argument and the result has to be a number or a pointer"
    )]
    Type { name: String, ty: String },
    /// The entry could not be made.
    #[error(transparent)]
    Entry(#[from] EntryError),
}

impl CEntryError {
    /// Whether it may pass: there was no memory.
    #[must_use]
    pub fn is_shortage(&self) -> bool {
        matches!(self, CEntryError::Entry(error) if error.is_shortage())
    }
}

/// The C entry of a function, made at the first request for its address.
#[derive(Default)]
pub(crate) struct CEntry(OnceLock<Made>);

struct Made {
    address: usize,
    #[expect(dead_code, reason = "held so that the code stays in memory")]
    unit: Arc<LoadedUnit>,
    #[expect(dead_code, reason = "held so that the code has somewhere to go")]
    trampoline: Arc<Entry>,
    #[expect(dead_code, reason = "held for its address, which the code has")]
    table: Arc<MethodTable>,
}

impl CEntry {
    /// The address, if it was requested.
    pub(crate) fn known(&self) -> Option<usize> {
        self.0.get().map(|made| made.address)
    }

    /// The address, for a function that is called through the word at an address.
    pub(crate) fn address(&self, jit: &Jit, ty: &FunctionType, word: usize) -> Result<usize, CEntryError> {
        if let Some(made) = self.0.get() {
            return Ok(made.address);
        }
        let signature = &ty.signature;
        let is_value = |abi: &Abi| !matches!(abi, Abi::Object | Abi::I128 | Abi::V128);
        let has_values = signature.params.iter().chain(&signature.results).all(is_value);
        if !has_values || signature.results.len() > 1 || signature.returns_through_memory() {
            return Err(CEntryError::Type { name: ty.name.clone(), ty: ty.describe() });
        }
        let compiled = compile_c_entry(&ty.symbol, signature, jit.isa()).map_err(EntryError::from)?;
        let (trampoline, table) = (jit.entry(signature)?, Arc::new(jit.runtime().methods().clone()));
        let unit = LinkUnit { functions: vec![compiled], data: Vec::new() };
        let resolver = References { jit, trampoline: trampoline.address, word, table: &table };
        let unit = jit.link_unit(&unit, &resolver, None).map_err(EntryError::from)?;
        let address = unit.function(&callback_name(&ty.symbol));
        let lost = || EntryError::from(LinkError::Backend { reason: "lost a function".into() });
        let made = Made { address: address.ok_or_else(lost)?, unit, trampoline, table };
        // Of two threads that do the same, the first one's is kept.
        Ok(self.0.get_or_init(|| made).address)
    }
}

/// The references of a C entry's code.
struct References<'a> {
    jit: &'a Jit,
    trampoline: usize,
    word: usize,
    table: &'a Arc<MethodTable>,
}

impl Resolver for References<'_> {
    fn resolve(&self, symbol: &Symbol) -> Result<Import, String> {
        let address = match symbol {
            Symbol::Function(_) => self.trampoline,
            Symbol::IndirectCell(_) => self.word,
            Symbol::Methods => Arc::as_ptr(self.table).expose_provenance(),
            _ => return self.jit.routines().resolve(symbol),
        };
        Ok(Import { address, owner: None })
    }
}
