//! The stages of a program's compilation without loading it: IR after the passes, listings, an object file.
//!
//! Everything is deterministic: the same program and options yield the same text and bytes in every process.

use std::ops::ControlFlow;

use brolga_aot::{ObjectUnit, emit_object};
use brolga_codegen::compile::{CompileOptions, Limits, Step};
pub use brolga_codegen::compiled::FrameMap;
use brolga_codegen::compiled::{CompiledFunction, RelocTarget, Relocation};
use brolga_codegen::generate::{Generated, Generator};
use brolga_codegen::isa::{CpuTarget, IsaOptions, TargetIsa};
use brolga_codegen::linkage::CallLinkage;
pub use brolga_codegen::origin::Origin;
use brolga_ir::{Arch, Func, Module};
use brolga_opt::OptLevel;

use crate::error::Error;
use crate::options::tier;

/// The machine code of a function, not yet placed.
#[derive(Clone, Debug)]
pub struct MachineCode<'c> {
    /// The function's symbol.
    pub name: &'c str,
    /// The target architecture.
    pub arch: Arch,
    /// The bytes.
    pub bytes: &'c [u8],
    /// The code generator's listing of the instructions.
    pub listing: &'c str,
    /// The relocations in the bytes, in order.
    pub references: Vec<Reference>,
    /// Source positions: offsets in ascending order, each with the [`Place::at`](brolga_ir::func::Place::at) that applies from there on.
    pub lines: &'c [(u32, Origin)],
    /// The bytes of stack that one activation takes, without arguments on the stack.
    pub frame_bytes: u32,
    /// The locations of the roots at calls, by ascending return address.
    pub frame_maps: &'c [FrameMap],
}

/// A relocation in machine code.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Reference {
    /// Its distance from the start of the code.
    pub offset: usize,
    /// Its kind, target and addend: `X86CallPcRel4 function `fib(Int64)` -4`.
    pub text: String,
}

/// Machine code of low functions, position-independent, with listings.
pub struct Code {
    generated: Vec<Generated>,
    isa: TargetIsa,
}

/// Generates code for low functions of a module, as for a file.
pub fn generate<'f>(
    module: &Module,
    funcs: impl IntoIterator<Item = &'f Func>,
    level: OptLevel,
) -> Result<Code, Error> {
    generate_telling(module, funcs, level, &mut |_| {})
}

/// As [`generate`], for any processor of an architecture.
pub fn generate_for<'f>(
    module: &Module,
    funcs: impl IntoIterator<Item = &'f Func>,
    level: OptLevel,
    arch: Arch,
) -> Result<Code, Error> {
    let options = IsaOptions { arch, target: CpuTarget::Generic, ..IsaOptions::default() };
    generate_with(module, funcs, level, options, &mut |_| {})
}

/// The steps of a function's code generation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Generating {
    /// Its code is about to be generated.
    Begins,
    /// It was translated to the code generator's IR.
    Translated,
    /// It was compiled to machine code.
    Compiled,
}

/// As [`generate`]; calls `tell` at each step, for measurements.
pub fn generate_telling<'f>(
    module: &Module,
    funcs: impl IntoIterator<Item = &'f Func>,
    level: OptLevel,
    tell: &mut dyn FnMut(Generating),
) -> Result<Code, Error> {
    generate_with(module, funcs, level, IsaOptions::default(), tell)
}

fn generate_with<'f>(
    module: &Module,
    funcs: impl IntoIterator<Item = &'f Func>,
    level: OptLevel,
    options: IsaOptions,
    tell: &mut dyn FnMut(Generating),
) -> Result<Code, Error> {
    let isa = TargetIsa::position_independent(options).map_err(brolga_jit::JitError::Isa)?;
    let options = CompileOptions { tier: tier(level), listing: true };
    let mut generator = Generator::new(Limits::default());
    let mut generated = Vec::new();
    for func in funcs {
        tell(Generating::Begins);
        let reached = &mut |step| {
            if step == Step::Translated {
                tell(Generating::Translated);
            }
            ControlFlow::Continue(())
        };
        let made = generator.generate_in_steps(&module.cx, func, &isa, options, CallLinkage::FAR, reached);
        tell(Generating::Compiled);
        generated.push(made.map_err(brolga_jit::BuildError::Generate)?);
    }
    Ok(Code { generated, isa })
}

impl Code {
    /// Cranelift's IR of each function.
    pub fn clif(&self) -> impl Iterator<Item = &str> {
        self.generated.iter().filter_map(|made| made.clif.as_deref())
    }

    /// The machine code of each function with its listing.
    pub fn functions(&self) -> impl Iterator<Item = MachineCode<'_>> {
        self.generated.iter().map(|made| machine_code(&made.function, self.isa.arch()))
    }

    /// An object file with all functions and their constants. `name` is the source's name, for the symbol table.
    pub fn object(&self, name: &str) -> Result<Vec<u8>, Error> {
        let functions: Vec<CompiledFunction> =
            self.generated.iter().map(|made| made.function.clone()).collect();
        let data: Vec<_> = self.generated.iter().flat_map(|made| made.constants.iter().cloned()).collect();
        Ok(emit_object(&ObjectUnit { name, functions: &functions, data: &data }, &self.isa)?)
    }
}

fn machine_code(function: &CompiledFunction, arch: Arch) -> MachineCode<'_> {
    let reference = |reloc: &Relocation| {
        let target = match reloc.target {
            RelocTarget::Symbol(index) => function.symbols.get(index as usize).map(ToString::to_string),
            RelocTarget::Offset(offset) => Some(format!("{offset:#x}")),
        };
        let addend = if reloc.addend == 0 { String::new() } else { format!(" {:+}", reloc.addend) };
        let text = format!("{:?} {}{addend}", reloc.kind, target.unwrap_or_default());
        Reference { offset: reloc.offset as usize, text }
    };
    MachineCode {
        name: &function.name,
        arch,
        bytes: &function.code,
        listing: function.listing.as_deref().unwrap_or(""),
        references: function.relocs.iter().map(reference).collect(),
        lines: &function.lines,
        frame_bytes: function.frame_bytes,
        frame_maps: &function.frame_maps,
    }
}
