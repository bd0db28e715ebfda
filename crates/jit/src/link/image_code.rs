//! Code of an image in the file and in memory: copied, with one address for each import (`image.rs` has the picture).

use std::sync::Arc;

use brolga_codegen::compiled::{FrameMap, Symbol};
use brolga_codegen::origin::{InlinedBody, Origin};
use brolga_codegen::sig::{FunctionType, Signature};

use crate::debug::code_map::{CodeMap, CodeUnit, Described, Directory, PlacedFunction};
use crate::link::linker::{LinkError, LoadedUnit};
use crate::memory::code_memory::CodeMemory;
use crate::memory::reservation::{Part, Parts};
use crate::memory::space::Memory;

/// A function of an image.
#[derive(Clone, Debug)]
pub struct ImageFunction {
    /// Its deterministic name.
    pub name: String,
    /// Where its code begins, from the start of the image's code.
    pub offset: u32,
    /// The bytes of its code.
    pub size: u32,
    /// Bytes of stack that one activation takes, beside arguments on the stack.
    pub frame_bytes: u32,
    /// Source positions: code offsets in ascending order, each with the position that holds from there on.
    pub lines: Vec<(u32, Origin)>,
    /// The inlined bodies that the positions refer to.
    pub inlined: Vec<InlinedBody>,
    /// The locations of the roots of calls, by ascending return address.
    pub frame_maps: Vec<FrameMap>,
    /// Its signature, if it can be looked up or called by dispatch.
    pub signature: Option<Signature>,
}

/// The functions of an image, which are found when they are requested. Names and types do not change.
pub trait ImageFunctions: Send + Sync {
    /// Where the function of that name begins, from the start of the image's code.
    fn offset(&self, name: &str) -> Option<u32>;

    /// The type of the function of that name, for calls; `None` if it cannot be called.
    ///
    /// # Errors
    /// The image contradicts itself: the reason.
    fn ty(&self, name: &str) -> Result<Option<FunctionType>, String>;

    /// The names of all functions that can be called, in order.
    fn names(&self) -> Vec<String>;

    /// All functions by ascending offset, each with whether it is found by its name.
    fn describe(&self) -> Vec<(bool, ImageFunction)>;
}

/// Code of an image as it is in the file.
#[derive(Clone, Copy)]
pub struct ImageCode<'a> {
    /// The machine code.
    pub code: &'a [u8],
    /// The constants, which follow the imports.
    pub constants: &'a [u8],
    /// From the start of the code to the imports: whole pages.
    pub imports_at: usize,
    /// The imports, in the order of the table.
    pub imports: &'a [Symbol],
    pub functions: &'a Arc<dyn ImageFunctions>,
    /// Whether its code handles objects.
    pub needs_heap: bool,
}

impl std::fmt::Debug for ImageCode<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ImageCode").field("imports", &self.imports).finish_non_exhaustive()
    }
}

/// The functions of code in memory.
struct Placed {
    functions: Arc<dyn ImageFunctions>,
    bytes: u32,
}

impl Directory for Placed {
    fn offset(&self, name: &str) -> Option<u32> {
        self.functions.offset(name).filter(|&offset| offset < self.bytes)
    }

    fn describe(&self) -> Described {
        let functions = self.functions.describe();
        let mut by_name: Vec<u32> = (0..functions.len() as u32).collect();
        by_name.retain(|&index| functions[index as usize].0);
        by_name.sort_unstable_by_key(|&index| functions[index as usize].1.name.as_str());
        let placed = functions.iter().map(|(_, function)| PlacedFunction {
            name: &function.name,
            offset: function.offset,
            size: function.size,
            frame_bytes: function.frame_bytes,
            lines: &function.lines,
            inlined: &function.inlined,
            file: None,
            variables: &[],
        });
        Described::new(placed, by_name.into_boxed_slice())
    }
}

/// Puts the code into a run of pages, with the addresses of its imports.
pub(crate) fn place(
    memory: &CodeMemory,
    map: &Arc<CodeMap>,
    code: &ImageCode<'_>,
    imports: &[usize],
    owners: &[Arc<LoadedUnit>],
) -> Result<Arc<LoadedUnit>, LinkError> {
    let table: Vec<u8> = imports.iter().flat_map(|address| (*address as u64).to_le_bytes()).collect();
    let read_only = table.len() + code.constants.len();
    let mut draft = memory.draft(Parts { code: code.code.len(), read_only, writable: 0 })?;
    let start = draft.addresses(Part::Code).start;
    let distance = draft.addresses(Part::ReadOnly).start - start;
    if distance != code.imports_at {
        let reason = format!(
            "the image was made for pages that put the imports {} bytes after the code, and here they are {distance} after it",
            code.imports_at
        );
        return Err(LinkError::Backend { reason });
    }
    draft.write(Part::Code, 0, code.code);
    draft.write(Part::ReadOnly, 0, &table);
    draft.write(Part::ReadOnly, table.len(), code.constants);
    let functions = Placed { functions: code.functions.clone(), bytes: code.code.len() as u32 };
    let described = CodeUnit::of_directory(start, code.code.len(), Arc::new(functions));
    let run = draft.seal()?;
    Ok(Arc::new(LoadedUnit::new(map.enter(described), Box::default(), Memory::Run(run), owners.to_vec())))
}
