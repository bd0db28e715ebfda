//! Linking with `cranelift-jit`: one module for each link unit.
//!
//! The module only gets input that `linker.rs` has checked. Functions of the unit are anonymous in it and imports have names of
//! our own making, so no name from outside reaches it, and it never looks a symbol up in the process. Memory comes from one run
//! of our code memory, whose size is known beforehand: a module allocates its objects in the order of definition, so the
//! same arithmetic yields the same total. The run is shared by the module's memory provider and the loaded unit; the module
//! is dropped as soon as the unit is sealed, and the run when the unit is.
//!
//! Cost (`tests/support/cost.rs` of this crate): 11 µs to link and free one function alone, 0.3 µs each for a hundred together.

use std::io;
use std::sync::Arc;

use brolga_codegen::compiled::{CompiledFunction, RelocKind, RelocTarget};
use brolga_codegen::isa::{TargetIsa, Tier};
use cranelift_codegen::isa::OwnedTargetIsa;
use cranelift_jit::{BranchProtection, JITBuilder, JITMemoryKind, JITMemoryProvider, JITModule};
use cranelift_module::{
    DataDescription, DataId, FuncId, Linkage, Module, ModuleError, ModuleReloc, ModuleRelocTarget,
    ModuleResult, default_libcall_names,
};

use crate::debug::code_map::CodeMap;
use crate::link::linker::{
    DataObject, Destination, FUNCTION_ALIGN, LinkError, LinkUnit, Linker, LoadedUnit, Resolved, Resolver,
    describe,
};
use crate::memory::code_memory::CodeMemory;
use crate::memory::error::CodeMemoryError;
use crate::memory::reservation::CodeMemoryStats;
use crate::memory::reservation::Parts;
use crate::memory::space::{Memory, Run};

/// Space that `cranelift-jit` reserves after a function for each aarch64 call.
const VENEER_BYTES: usize = 24;

/// Links with `cranelift-jit`.
pub struct CraneliftLinker {
    isa: OwnedTargetIsa,
    memory: CodeMemory,
    map: Arc<CodeMap>,
}

impl CraneliftLinker {
    /// A linker into the given memory, which adds loaded units to the index.
    pub fn new(isa: &TargetIsa, memory: CodeMemory, map: Arc<CodeMap>) -> CraneliftLinker {
        CraneliftLinker { isa: isa.for_tier(Tier::Optimised).clone(), memory, map }
    }
}

impl Linker for CraneliftLinker {
    fn link(&self, unit: &LinkUnit, resolver: &dyn Resolver) -> Result<Arc<LoadedUnit>, LinkError> {
        let mut resolved = Resolved::new(unit, resolver)?;
        let run = Arc::new(self.memory.allocate(plan(unit))?);
        let addresses = run.addresses();
        resolved.check_reach(addresses.clone())?;
        let Placed { functions, data } = self.place(&resolved, &run)?;
        let Some(run) = Arc::into_inner(run) else {
            return Err(backend("the module outlived its use"));
        };
        // The module allocates functions in the order of their definition, upwards from the start of the run.
        let offsets: Vec<u32> = functions.iter().map(|address| (address - addresses.start) as u32).collect();
        let by_name = std::mem::take(&mut resolved.functions_by_name);
        let code = describe(unit, addresses.start, run.parts().code, &offsets, by_name);
        let data = resolved.data_table(&data);
        Ok(Arc::new(LoadedUnit::new(self.map.enter(code), data, Memory::Run(run), resolved.owners)))
    }

    fn stats(&self) -> CodeMemoryStats {
        self.memory.stats()
    }
}

/// Addresses, in the order of the unit.
struct Placed {
    functions: Vec<usize>,
    data: Vec<usize>,
}

impl CraneliftLinker {
    fn place(&self, resolved: &Resolved<'_>, run: &Arc<Run>) -> Result<Placed, LinkError> {
        let mut builder = JITBuilder::with_isa(self.isa.clone(), default_libcall_names());
        builder.memory_provider(Box::new(Provider::new(run.clone())));
        for (index, address) in resolved.imports.iter().enumerate() {
            builder.symbol(import_name(index), std::ptr::with_exposed_provenance(*address));
        }
        let mut module = JITModule::new(builder);
        let declared = Declared::new(&mut module, resolved)?;
        let unit = resolved.unit;
        for (index, function) in unit.functions.iter().enumerate() {
            let relocs = declared.relocations(index, function, &resolved.function_symbols[index]);
            let align = function_align(function).into();
            module
                .define_function_bytes(declared.functions[index], align, &function.code, &relocs)
                .map_err(module_failed)?;
        }
        for (index, object) in unit.data.iter().enumerate() {
            let data = declared.data_description(object, &resolved.data_symbols[index]);
            module.define_data(declared.data[index], &data).map_err(module_failed)?;
        }
        module.finalize_definitions().map_err(module_failed)?;

        let address = |code: *const u8| code.expose_provenance();
        Ok(Placed {
            functions: declared
                .functions
                .iter()
                .map(|id| address(module.get_finalized_function(*id)))
                .collect(),
            data: declared.data.iter().map(|id| address(module.get_finalized_data(*id).0)).collect(),
        })
    }
}

/// The module's ids of everything in a unit.
struct Declared {
    functions: Vec<FuncId>,
    data: Vec<DataId>,
    imports: Vec<FuncId>,
}

impl Declared {
    fn new(module: &mut JITModule, resolved: &Resolved<'_>) -> Result<Declared, LinkError> {
        // The signature only matters to code that the module compiles itself, and it compiles none.
        let signature = module.make_signature();
        let unit = resolved.unit;
        Ok(Declared {
            functions: unit
                .functions
                .iter()
                .map(|_| module.declare_anonymous_function(&signature).map_err(module_failed))
                .collect::<Result<_, _>>()?,
            data: unit
                .data
                .iter()
                .map(|object| module.declare_anonymous_data(object.writable, false).map_err(module_failed))
                .collect::<Result<_, _>>()?,
            imports: (0..resolved.imports.len())
                .map(|index| {
                    module
                        .declare_function(&import_name(index), Linkage::Import, &signature)
                        .map_err(module_failed)
                })
                .collect::<Result<_, _>>()?,
        })
    }

    fn target(&self, destination: Destination) -> ModuleRelocTarget {
        match destination {
            Destination::Function(index) => self.functions[index].into(),
            Destination::Data(index) => self.data[index].into(),
            Destination::Import(index) => self.imports[index].into(),
        }
    }

    fn relocations(
        &self,
        index: usize,
        function: &CompiledFunction,
        symbols: &[Destination],
    ) -> Vec<ModuleReloc> {
        let convert = |reloc: &brolga_codegen::compiled::Relocation| ModuleReloc {
            offset: reloc.offset,
            kind: reloc.kind.clif(),
            name: match reloc.target {
                RelocTarget::Symbol(at) => self.target(symbols[at as usize]),
                RelocTarget::Offset(offset) => {
                    ModuleRelocTarget::FunctionOffset(self.functions[index], offset)
                }
            },
            addend: reloc.addend,
        };
        function.relocs.iter().map(convert).collect()
    }

    fn data_description(&self, object: &DataObject, symbols: &[Destination]) -> DataDescription {
        let mut data = DataDescription::new();
        data.define(object.bytes.clone().into_boxed_slice());
        data.set_align(object.align.into());
        for (reloc, destination) in object.relocs.iter().zip(symbols) {
            let target = data.import_global_value(self.target(*destination));
            data.write_data_addr(reloc.offset, target, reloc.addend);
        }
        data
    }
}

fn import_name(index: usize) -> String {
    format!("import{index}")
}

fn backend(reason: impl Into<String>) -> LinkError {
    LinkError::Backend { reason: reason.into() }
}

fn module_failed(error: ModuleError) -> LinkError {
    match error {
        // The module seals the run, and cannot return our errors.
        ModuleError::Allocation { err } => match err.downcast::<CodeMemoryError>() {
            Ok(memory) => memory.into(),
            Err(err) => backend(err.to_string()),
        },
        _ => backend(error.to_string()),
    }
}

fn function_align(function: &CompiledFunction) -> u32 {
    function.align.max(FUNCTION_ALIGN)
}

/// The requests to the memory provider below.
fn plan(unit: &LinkUnit) -> Parts {
    let mut parts = Parts::default();
    let place = |part: &mut usize, align: u32, size: usize| {
        *part = part.saturating_add(align as usize - 1) / align as usize * align as usize;
        *part = part.saturating_add(size);
    };
    for function in &unit.functions {
        let calls = function.relocs.iter().filter(|reloc| reloc.kind == RelocKind::Arm64Call).count();
        place(&mut parts.code, function_align(function), function.code.len() + calls * VENEER_BYTES);
    }
    for object in &unit.data {
        let part = if object.writable { &mut parts.writable } else { &mut parts.read_only };
        // `cranelift-jit` allocates one byte for an empty object.
        place(part, object.align, object.bytes.len().max(1));
    }
    parts
}

/// Hands out one run, part by part.
struct Provider {
    run: Arc<Run>,
    used: Parts,
}

impl Provider {
    fn new(run: Arc<Run>) -> Provider {
        Provider { run, used: Parts::default() }
    }
}

impl JITMemoryProvider for Provider {
    fn allocate(&mut self, size: usize, align: u64, kind: JITMemoryKind) -> io::Result<*mut u8> {
        let Parts { code, read_only, writable } = self.run.parts();
        let (start, limit, used) = match kind {
            JITMemoryKind::Executable => (0, code, &mut self.used.code),
            JITMemoryKind::ReadOnly => (code, read_only, &mut self.used.read_only),
            JITMemoryKind::Writable => (code + read_only, writable, &mut self.used.writable),
        };
        let placed = usize::try_from(align)
            .ok()
            .and_then(|align| used.checked_next_multiple_of(align))
            .and_then(|at| Some((at, at.checked_add(size)?)))
            .filter(|(_, end)| *end <= limit);
        let Some((at, end)) = placed else {
            return Err(io::ErrorKind::OutOfMemory.into());
        };
        *used = end;
        Ok(self.run.base().as_ptr().wrapping_add(start + at))
    }

    // The run is returned when its last holder drops it.
    unsafe fn free_memory(&mut self) {}

    fn finalize(&mut self, _: BranchProtection) -> ModuleResult<()> {
        // Branch protection is a setting that `TargetIsa` never enables.
        self.run.seal().map_err(|error| ModuleError::Allocation { err: io::Error::other(error) })
    }
}
