//! What a program becomes on its way to machine code, without loading it: IR after the passes, listings, an object file.
//!
//! Everything is deterministic: the same program and options give the same text and bytes in every process.

use brolga_aot::{ObjectUnit, emit_object};
use brolga_codegen::compile::{CompileOptions, Limits};
use brolga_codegen::generate::{Generated, Generator};
use brolga_codegen::isa::{HostIsa, IsaOptions};
use brolga_ir::{Func, Module};
use brolga_opt::OptLevel;

use crate::error::Error;
use crate::options::tier;

pub use brolga_codegen::compile::{CompiledFunction as Function, RelocKind, RelocTarget, Relocation, Symbol};

/// Machine code of low functions, position-independent, with listings.
pub struct Code {
    generated: Vec<Generated>,
    isa: HostIsa,
}

/// Generates code for low functions of a module, as for a file.
pub fn generate<'f>(
    module: &Module,
    funcs: impl IntoIterator<Item = &'f Func>,
    level: OptLevel,
) -> Result<Code, Error> {
    let isa = HostIsa::position_independent(IsaOptions::default()).map_err(brolga_jit::JitError::Isa)?;
    let options = CompileOptions { tier: tier(level), listing: true };
    let mut generator = Generator::new(Limits::default());
    let mut generated = Vec::new();
    for func in funcs {
        let made = generator.generate(&module.cx, func, &isa, options, &|_| false);
        generated.push(made.map_err(brolga_jit::BuildError::Generate)?);
    }
    Ok(Code { generated, isa })
}

impl Code {
    /// Cranelift's IR of each function.
    pub fn clif(&self) -> impl Iterator<Item = &str> {
        self.generated.iter().filter_map(|made| made.clif.as_deref())
    }

    /// The machine code of each function with what it refers to and its listing.
    pub fn functions(&self) -> impl Iterator<Item = &Function> {
        self.generated.iter().map(|made| &made.function)
    }

    /// An object file with all functions and their constants. `name` is that of the source, for the symbol table.
    pub fn object(&self, name: &str) -> Result<Vec<u8>, Error> {
        let functions: Vec<Function> = self.functions().cloned().collect();
        let data: Vec<_> = self.generated.iter().flat_map(|made| made.constants.iter().cloned()).collect();
        Ok(emit_object(&ObjectUnit { name, functions: &functions, data: &data }, &self.isa)?)
    }
}
