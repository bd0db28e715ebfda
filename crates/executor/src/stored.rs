//! Programs as bytes for an executor: declarations, code without addresses, boxed entries; sealed with the key of the connection.
//!
//! ```text
//!   seal (32) │ Stored: module of declarations │ unit (`brolga_aot::unit`) │ boxed entries, each a unit of its own
//! ```
//!
//! The unit is in the form of the cache ([`brolga_aot::unit`]): machine code, relocations by symbols, frame maps. Its words say which
//! declared functions are methods. Boxed entries are what a method table calls, and are linked when a call first reaches them; the executor
//! has no optimiser that could make them.
//!
//! **Trust.** Machine code cannot be checked, so a program is only read if its seal is of the key: whoever has the key may run code.

use std::collections::BTreeMap;
use std::sync::Arc;

use brolga_aot::unit::{self, StoredUnit};
use brolga_cache::{CacheKey, Seal};
use brolga_codegen::native_type::type_of;
use brolga_codegen::sig::FunctionType;
use brolga_ir::{Context, FuncId, Level, Module, binary};
use brolga_jit::Compiled;
use serde::{Deserialize, Serialize};

use crate::wire::{Blob, ExecutorRefusal, decode};

const PURPOSE: &str = "brolga executor: a program with its code";
const SEAL: usize = 32;

/// The word of a method in a unit.
const IS_METHOD: u32 = 1;

/// A program without its seal.
#[derive(Serialize, Deserialize)]
struct Stored {
    /// Whether its calls take fuel.
    takes_fuel: bool,
    /// Declarations of the functions with code, types, and global variables with their first values.
    declared: Blob,
    code: Blob,
    boxed: Vec<StoredEntry>,
}

/// The boxed entry of a function.
#[derive(Serialize, Deserialize)]
pub(crate) struct StoredEntry {
    /// The function's symbol.
    of: String,
    /// The symbol of the entry in its unit.
    pub(crate) symbol: String,
    pub(crate) code: Blob,
}

/// A program with its code, which is sealed.
pub struct Sealing<'a> {
    /// The module of the functions.
    pub module: &'a Module,
    /// The functions with code.
    pub functions: &'a [FuncId],
    /// Their code.
    pub compiled: &'a Compiled,
    /// The boxed entries of functions, with their symbols.
    pub boxed: &'a [(FuncId, String, Compiled)],
    pub takes_fuel: bool,
}

/// Why a program cannot be sent.
#[derive(thiserror::Error, Clone, PartialEq, Eq, Debug)]
pub enum SendError {
    /// The type of a function depends on its low form.
    #[error("`{0}` has no type that its declaration shows, so it cannot be called in another process")]
    NoType(String),
    /// The code or a table is too large for the format.
    #[error("the code of the program is too large for one unit")]
    TooLarge,
}

impl Sealing<'_> {
    /// The sealed bytes.
    ///
    /// # Errors
    /// A function has no type, or the program is too large.
    pub fn seal(&self, key: &CacheKey) -> Result<Vec<u8>, SendError> {
        let module = self.module;
        let mut declared = module.without_functions();
        let mut words = Vec::with_capacity(self.functions.len());
        for &id in self.functions {
            let func = &module[id];
            if type_of(module, id).is_none() {
                return Err(SendError::NoType(func.symbol(&module.cx)));
            }
            let is_method = func.level == Level::High && func.entry().is_some();
            words.push(if is_method { IS_METHOD } else { 0 });
            // The functions of a module have distinct symbols.
            let _ = declared.add_func(func.unreachable());
        }
        let unit = |compiled: &Compiled, words: &[u32]| {
            unit::write(&declared.cx, &compiled.code(), &[], words).map(Blob).ok_or(SendError::TooLarge)
        };
        let boxed = self.boxed.iter().map(|(id, symbol, compiled)| {
            let (of, symbol) = (module[*id].symbol(&module.cx), symbol.clone());
            Ok(StoredEntry { of, symbol, code: unit(compiled, &[])? })
        });
        let stored = Stored {
            takes_fuel: self.takes_fuel,
            declared: Blob(binary::write(&declared)),
            code: unit(self.compiled, &words)?,
            boxed: boxed.collect::<Result<_, _>>()?,
        };
        let bytes = postcard::to_extend(&stored, vec![0; SEAL]);
        let mut bytes = bytes.map_err(|_| SendError::TooLarge)?;
        let seal = key.seal(PURPOSE, &[&bytes[SEAL..]]);
        bytes[..SEAL].copy_from_slice(seal.as_bytes());
        Ok(bytes)
    }
}

/// A program that was read.
pub(crate) struct Opened {
    pub(crate) module: Module,
    pub(crate) compiled: Compiled,
    /// The functions that dynamic calls may reach.
    pub(crate) methods: Vec<FuncId>,
    /// The boxed entries, by the symbols of their functions.
    pub(crate) boxed: BTreeMap<String, StoredEntry>,
    pub(crate) takes_fuel: bool,
}

/// Reads a sealed program.
pub(crate) fn open(sealed: &[u8], key: &CacheKey) -> Result<Opened, ExecutorRefusal> {
    let Some((seal, bytes)) = sealed.split_first_chunk::<SEAL>() else { return Err(ExecutorRefusal::Seal) };
    if key.seal(PURPOSE, &[bytes]) != Seal::of_bytes(*seal) {
        return Err(ExecutorRefusal::Seal);
    }
    open_unsealed(bytes)
}

/// Reads a program whose seal was checked.
pub(crate) fn open_unsealed(bytes: &[u8]) -> Result<Opened, ExecutorRefusal> {
    let broken = |error: &dyn std::fmt::Display| ExecutorRefusal::Program(error.to_string());
    let stored: Stored = decode(bytes).map_err(|error| broken(&error))?;
    let module = binary::read(&stored.declared.0, Context::new()).map_err(|error| broken(&error))?;
    let types: Option<Vec<Arc<FunctionType>>> =
        module.funcs().map(|(id, _)| type_of(&module, id).map(Arc::new)).collect();
    let types = types.ok_or_else(|| broken(&"a function has no type"))?;
    let StoredUnit { code, words, .. } =
        unit::read(&stored.code.0, &module.cx).map_err(|error| broken(&error))?;
    let compiled = Compiled::of_code(&module.cx, code, types).map_err(|error| broken(&error))?;
    let is_method = |id: &FuncId| words.get(id.as_u32() as usize) == Some(&IS_METHOD);
    let methods = module.funcs().map(|(id, _)| id).filter(is_method).collect();
    let boxed = stored.boxed.into_iter().map(|entry| (entry.of.clone(), entry)).collect();
    Ok(Opened { module, compiled, methods, boxed, takes_fuel: stored.takes_fuel })
}
