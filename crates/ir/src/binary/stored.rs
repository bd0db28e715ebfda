//! A module in its binary form whose functions are read on request.
//!
//! ```text
//!   open ──► directory, declared types, global variables          cost: their number
//!   declaration(id), listed ──► with the strings and types that they name
//!   module ──► everything, verified                               cost: the file
//! ```
//!
//! Strings are interned once and types are made once. Threads may read concurrently; two that read the same
//! string or type obtain the same one.
//!
//! Not done: bodies of single functions. Passes and verifier look at callees, so a module has either all of
//! its functions or none.

use super::sections::{Directory, FUNCTIONS, GLOBALS, LISTED, List};
use super::tables::{Interned, Tables};
use super::{BinaryError, HEADER, Refusal, WITH_TYPES, check_header, func, read_kind, read_literal};
use crate::context::Context;
use crate::entity::FuncId;
use crate::func::Func;
use crate::module::{Global, Module};
use crate::types::Type;
use crate::verify::verify_module;
use std::sync::Arc;

/// A module in its binary form (see the [module](super)), in bytes that it owns or borrows.
#[derive(Debug)]
pub struct Stored<B> {
    bytes: B,
    directory: Directory,
    interned: Interned,
    functions: List,
    /// The global variables.
    program: Module,
}

impl<B: AsRef<[u8]>> Stored<B> {
    /// Opens what [`write_with_types`](super::write_with_types) returned, with the names and types of a
    /// context. The checksum is not verified: the bytes must be those that were written, since damage that
    /// still decodes goes unnoticed.
    ///
    /// # Errors
    /// The header, a declared type or a global variable is malformed; types are declared differently already.
    pub fn open(bytes: B, cx: Arc<Context>) -> Result<Stored<B>, BinaryError> {
        match bytes.as_ref().get(..HEADER) {
            Some(header) => check_header(header, WITH_TYPES)?,
            None => {
                return Err(BinaryError { offset: bytes.as_ref().len(), refusal: Refusal::Truncated });
            }
        }
        Stored::after_header(bytes, cx)
    }

    /// Like [`Stored::open`], after the header was checked.
    pub(super) fn after_header(bytes: B, cx: Arc<Context>) -> Result<Stored<B>, BinaryError> {
        let all = bytes.as_ref();
        let directory = Directory::read(all)?;
        let interned = Interned::read(all, &directory, &cx)?;
        let functions = directory.list(all, FUNCTIONS)?;
        let tables = Tables::new(all, &cx, &interned);
        let mut program = Module::new(cx.clone());
        let mut globals = directory.source(all, GLOBALS);
        for _ in 0..globals.count()? {
            let offset = globals.offset();
            let name = tables.written(&mut globals)?;
            let ty = tables.ty(&mut globals)?;
            let init = read_literal(tables, &mut globals)?;
            let kind = read_kind(&mut globals)?;
            let added = program.add_global(Global { name, ty, init, kind });
            added.map_err(|error| BinaryError { offset, refusal: Refusal::Module(error) })?;
        }
        globals.finish()?;
        verify_module(&program).map_err(|found| BinaryError::malformed(&program, found, &[]))?;
        Ok(Stored { bytes, directory, interned, functions, program })
    }

    fn tables(&self) -> Tables<'_> {
        Tables::new(self.bytes.as_ref(), &self.program.cx, &self.interned)
    }

    /// The names and types.
    pub fn cx(&self) -> &Arc<Context> {
        &self.program.cx
    }

    /// The module without its functions: the global variables.
    pub fn globals(&self) -> &Module {
        &self.program
    }

    /// The number of functions.
    pub fn func_count(&self) -> usize {
        self.functions.count()
    }

    /// A function without its body: name, level, signature. `None` if there is no function with this number.
    ///
    /// # Errors
    /// It is malformed.
    pub fn declaration(&self, id: FuncId) -> Result<Option<Func>, BinaryError> {
        let number = id.as_u32() as usize;
        if number >= self.func_count() {
            return Ok(None);
        }
        let mut source = self.functions.source(self.bytes.as_ref(), number)?;
        func::read_declaration(self.tables(), &mut source).map(Some)
    }

    /// The types that data outside the module refers to, in the order in which they were written.
    ///
    /// # Errors
    /// One is malformed.
    pub fn listed(&self) -> Result<Vec<Type>, BinaryError> {
        let mut source = self.directory.source(self.bytes.as_ref(), LISTED);
        // Code may also name types containing the variables of a `where`.
        let types = self.tables().parts(&mut source)?;
        source.finish()?;
        Ok(types)
    }

    /// The module, read completely and verified.
    ///
    /// # Errors
    /// Some part of it is malformed, or it does not verify.
    pub fn module(&self) -> Result<Module, BinaryError> {
        let (module, starts) = self.unverified()?;
        verified(&module, &starts)?;
        Ok(module)
    }

    /// The module, read completely, and where each function begins.
    pub(super) fn unverified(&self) -> Result<(Module, Vec<usize>), BinaryError> {
        let (all, tables) = (self.bytes.as_ref(), self.tables());
        tables.read_all()?;
        let mut module = self.program.clone();
        let mut starts = Vec::with_capacity(self.func_count());
        for number in 0..self.func_count() {
            let mut source = self.functions.source(all, number)?;
            let offset = source.offset();
            let func = func::read(tables, &mut source)?;
            source.finish()?;
            let added = module.add_func(func);
            added.map_err(|error| BinaryError { offset, refusal: Refusal::Module(error) })?;
            starts.push(offset);
        }
        Ok((module, starts))
    }
}

/// Verifies a module that was read, whose functions begin at these offsets.
pub(super) fn verified(module: &Module, starts: &[usize]) -> Result<(), BinaryError> {
    verify_module(module).map_err(|found| BinaryError::malformed(module, found, starts))
}
