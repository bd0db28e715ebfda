//! The own linker: blocks of shared stripes, written through a second mapping.
//!
//! ```text
//!   code block   ┌──────────┬─┬───────────────────┬─────────┬─┬──────────┐
//!                │ f        │t│ g                 │ veneers │t│ h        │    t  traps up to the next alignment
//!                └──────────┴─┴───────────────────┴─────────┴─┴──────────┘
//!   data block   ┌────┬──────────┐   one for read-only, one for writable objects
//!                └────┴──────────┘
//! ```
//!
//! Sizes and offsets are known before anything is placed; then code is copied and patched, and is executable at once. Where
//! dual mapping is refused, the same layout is used in a run of pages that is sealed at the end.
//!
//! A veneer (aarch64) is reserved for each destination outside of the unit that a function calls near, and for every one in
//! units so large that a call may not reach.
//!
//! Cost (`benches/link.rs`): only copies and look-ups; no system call, if no chunk is added.

use std::sync::Arc;

use brolga_codegen::compiled::{CompiledFunction, RelocKind, RelocTarget, Relocation};

use crate::debug::code_map::CodeMap;
use crate::link::linker::{
    DataObject, Destination, FUNCTION_ALIGN, LinkError, LinkUnit, Linker, LoadedUnit, Resolved, Resolver,
    describe,
};
use crate::memory::code_memory::CodeMemory;
use crate::memory::error::CodeMemoryError;
use crate::memory::reservation::CodeMemoryStats;
use crate::memory::reservation::{Part, Parts};
use crate::memory::space::{Blocks, Draft, Memory, TRAP};
use brolga_codegen::relocate::{ARM64_CALL_REACH, VENEER_BYTES, relocate, veneer};

/// Links into blocks of shared pages.
pub struct Loader {
    memory: CodeMemory,
    map: Arc<CodeMap>,
}

impl Loader {
    /// A linker into the given memory, which adds loaded units to the index.
    pub fn new(memory: CodeMemory, map: Arc<CodeMap>) -> Loader {
        Loader { memory, map }
    }
}

impl Linker for Loader {
    fn link(&self, unit: &LinkUnit, resolver: &dyn Resolver) -> Result<Arc<LoadedUnit>, LinkError> {
        let mut resolved = Resolved::new(unit, resolver)?;
        let layout = Layout::new(&resolved)?;
        let mut space = Space::new(&self.memory, &layout)?;
        let code = space.addresses(Part::Code);
        resolved.check_reach(code.clone())?;
        let addresses = Addresses {
            functions: layout.functions.iter().map(|offset| code.start + *offset as usize).collect(),
            data: layout.data.iter().map(|(part, offset)| space.addresses(*part).start + offset).collect(),
        };
        place(&mut space, &layout, &resolved, &addresses)?;
        let memory = space.seal()?;
        let by_name = std::mem::take(&mut resolved.functions_by_name);
        let described = describe(unit, code.start, code.len(), &layout.functions, by_name);
        let data = resolved.data_table(&addresses.data);
        Ok(Arc::new(LoadedUnit::new(self.map.enter(described), data, memory, resolved.owners)))
    }

    fn stats(&self) -> CodeMemoryStats {
        self.memory.stats()
    }
}

/// The offset of everything from the start of its part.
struct Layout {
    sizes: Parts,
    aligns: Parts,
    functions: Vec<u32>,
    data: Vec<(Part, usize)>,
}

impl Layout {
    fn new(resolved: &Resolved<'_>) -> Result<Layout, LinkError> {
        let unit = resolved.unit;
        let mut sizes = Parts::default();
        let mut aligns = Parts { code: FUNCTION_ALIGN as usize, read_only: 1, writable: 1 };
        // Twice the bytes leave room for alignment and veneers.
        let is_far = 2 * unit.functions.iter().map(|f| f.code.len() as u64).sum::<u64>() >= ARM64_CALL_REACH;
        let mut functions = Vec::with_capacity(unit.functions.len());
        for (function, symbols) in unit.functions.iter().zip(&resolved.function_symbols) {
            let veneers = far_calls(function, symbols, is_far) * VENEER_BYTES;
            let size = veneers_offset(function) + veneers;
            let at = put(&mut sizes.code, &mut aligns.code, size, function.align.max(FUNCTION_ALIGN));
            functions.push(at.and_then(|at| u32::try_from(at).ok()).ok_or_else(|| too_large(sizes.code))?);
        }
        let mut data = Vec::with_capacity(unit.data.len());
        for DataObject { bytes, align, writable, .. } in &unit.data {
            let (part, size, most) = match writable {
                true => (Part::Writable, &mut sizes.writable, &mut aligns.writable),
                false => (Part::ReadOnly, &mut sizes.read_only, &mut aligns.read_only),
            };
            // An object without bytes has its own address, too.
            let at = put(size, most, bytes.len().max(1), *align);
            data.push((part, at.ok_or_else(|| too_large(*size))?));
        }
        Ok(Layout { sizes, aligns, functions, data })
    }
}

/// Adds an object to a part and returns its offset.
fn put(size: &mut usize, most: &mut usize, bytes: usize, align: u32) -> Option<usize> {
    let at = size.checked_next_multiple_of(align as usize)?;
    *size = at.checked_add(bytes)?;
    *most = (*most).max(align as usize);
    Some(at)
}

fn too_large(bytes: usize) -> LinkError {
    LinkError::Memory(CodeMemoryError::Full { bytes, free: 0, reserved: 0 })
}

/// How many calls of a function may need a veneer.
fn far_calls(function: &CompiledFunction, symbols: &[Destination], is_far: bool) -> usize {
    let may_be_far = |reloc: &&Relocation| match reloc.target {
        RelocTarget::Symbol(index) if reloc.kind == RelocKind::Arm64Call => {
            is_far || matches!(symbols[index as usize], Destination::Import(_))
        }
        _ => false,
    };
    function.relocs.iter().filter(may_be_far).count()
}

/// Where the veneers of a function begin, from its start.
fn veneers_offset(function: &CompiledFunction) -> usize {
    function.code.len().next_multiple_of(4)
}

/// Final addresses, in the order of the unit.
struct Addresses {
    functions: Vec<usize>,
    data: Vec<usize>,
}

impl Addresses {
    fn of(&self, destination: Destination, imports: &[usize]) -> usize {
        match destination {
            Destination::Function(index) => self.functions[index],
            Destination::Data(index) => self.data[index],
            Destination::Import(index) => imports[index],
        }
    }
}

fn place(
    space: &mut Space,
    layout: &Layout,
    resolved: &Resolved<'_>,
    addresses: &Addresses,
) -> Result<(), LinkError> {
    let unit = resolved.unit;
    space.fill_code();
    for (index, function) in unit.functions.iter().enumerate() {
        let (at, start) = (layout.functions[index] as usize, addresses.functions[index]);
        space.write(Part::Code, at, &function.code);
        let mut veneers = veneers_offset(function);
        for reloc in &function.relocs {
            let target = match reloc.target {
                RelocTarget::Symbol(symbol) => {
                    let destination = resolved.function_symbols[index][symbol as usize];
                    addresses.of(destination, &resolved.imports)
                }
                RelocTarget::Offset(offset) => start + offset as usize,
            };
            let target = (target as u64).wrapping_add_signed(reloc.addend);
            let offset = reloc.offset as usize;
            let patched =
                |target| relocate(reloc.kind, &function.code[offset..], (start + offset) as u64, target);
            let patch = patched(target).or_else(|| {
                // Only calls can be extended, by a veneer.
                if reloc.kind != RelocKind::Arm64Call {
                    return None;
                }
                space.write(Part::Code, at + veneers, &veneer(target));
                let through = patched((start + veneers) as u64);
                veneers += VENEER_BYTES;
                through
            });
            let patch = patch.ok_or_else(|| LinkError::Backend {
                reason: format!("{:?} in `{}` is out of reach", reloc.kind, function.name),
            })?;
            space.write(Part::Code, at + offset, patch.bytes());
        }
    }
    for ((object, destinations), (part, at)) in unit.data.iter().zip(&resolved.data_symbols).zip(&layout.data)
    {
        space.write(*part, *at, &object.bytes);
        for (reloc, destination) in object.relocs.iter().zip(destinations) {
            let target = addresses.of(*destination, &resolved.imports) as u64;
            let bytes = target.wrapping_add_signed(reloc.addend).to_le_bytes();
            space.write(*part, at + reloc.offset as usize, &bytes);
        }
    }
    Ok(())
}

/// Room for one unit while it is being written.
enum Space {
    Blocks(Blocks),
    Draft(Draft),
}

impl Space {
    fn new(memory: &CodeMemory, layout: &Layout) -> Result<Space, CodeMemoryError> {
        Ok(match memory.has_blocks() {
            true => Space::Blocks(memory.allocate_blocks(layout.sizes, layout.aligns)?),
            false => Space::Draft(memory.draft(layout.sizes)?),
        })
    }

    fn addresses(&self, part: Part) -> std::ops::Range<usize> {
        match self {
            Space::Blocks(blocks) => blocks.addresses(part),
            Space::Draft(draft) => draft.addresses(part),
        }
    }

    fn write(&mut self, part: Part, at: usize, bytes: &[u8]) {
        match self {
            Space::Blocks(blocks) => blocks.write(part, at, bytes),
            Space::Draft(draft) => draft.write(part, at, bytes),
        }
    }

    /// Fills the code with traps.
    fn fill_code(&mut self) {
        match self {
            Space::Blocks(blocks) => blocks.fill(Part::Code, TRAP),
            Space::Draft(draft) => draft.fill(Part::Code, TRAP),
        }
    }

    fn seal(self) -> Result<Memory, CodeMemoryError> {
        Ok(match self {
            Space::Blocks(blocks) => Memory::Blocks(blocks.seal()?),
            Space::Draft(draft) => Memory::Run(draft.seal()?),
        })
    }
}
