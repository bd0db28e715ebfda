//! Code of an image in the file and in memory, with one address for each import (`image.rs` has the picture).
//!
//! Where code memory has a second mapping, a function is put into memory when its address is requested, with all functions that its code refers to
//! ([`ImageFunctions::load`]); the rest of the pages stay without memory. Where it has none, and for listeners, which look at the code, everything is.

use std::ops::Range;
use std::sync::Arc;

use brolga_codegen::compiled::{FrameMap, Symbol};
use brolga_codegen::origin::{InlinedBody, Origin};
use brolga_codegen::sig::{FunctionType, Signature};

use crate::debug::code_map::{CodeMap, CodeUnit, Described, Directory, PlacedFunction};
use crate::link::linker::{LinkError, LoadedUnit};
use crate::memory::code_memory::CodeMemory;
use crate::memory::reservation::{Part, Parts};
use crate::memory::space::{Memory, Sparse};

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

/// Receives machine code: its offset from the start of the image's code, and the bytes.
pub type WriteCode<'w> = &'w mut dyn FnMut(usize, &[u8]);

/// The functions of an image, which are found and loaded when they are requested. Names and types do not change.
pub trait ImageFunctions: Send + Sync {
    /// Where the function of that name begins, from the start of the image's code. Before it returns it has written the function and all functions that its code refers
    /// to, unless they were written before.
    ///
    /// # Errors
    /// The code cannot be read, or is not as it was written: the reason.
    fn load(&self, name: &str, write: WriteCode<'_>) -> Result<Option<u32>, String>;

    /// Writes what all functions rely on.
    ///
    /// # Errors
    /// As [`ImageFunctions::load`].
    fn load_common(&self, write: WriteCode<'_>) -> Result<(), String>;

    /// Writes all code.
    ///
    /// # Errors
    /// As [`ImageFunctions::load`].
    fn load_all(&self, write: WriteCode<'_>) -> Result<(), String>;

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
    /// The bytes of machine code.
    pub bytes: usize,
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
    /// Where code is written when it is needed; `None` if all code is in memory.
    sparse: Option<Arc<Sparse>>,
}

impl Directory for Placed {
    fn offset(&self, name: &str) -> Result<Option<u32>, String> {
        let found = match &self.sparse {
            Some(sparse) => self.functions.load(name, &mut sparse.writer())?,
            None => self.functions.load(name, &mut |_, _| ())?,
        };
        Ok(found.filter(|&offset| offset < self.bytes))
    }

    fn complete(&self) {
        if let Some(sparse) = &self.sparse {
            // Listeners do not see code that cannot be read; its look-up returns the error.
            let _ = self.functions.load_all(&mut sparse.writer());
        }
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
    let parts = Parts { code: code.bytes, read_only, writable: 0 };
    let unread = |reason| LinkError::Unread { reason };
    let (start, sparse, memory) = match memory.sparse(parts)? {
        Some(sparse) => {
            let start =
                check_distance(&sparse.addresses(Part::Code), &sparse.addresses(Part::ReadOnly), code)?;
            sparse.write(Part::ReadOnly, 0, &table);
            sparse.write(Part::ReadOnly, table.len(), code.constants);
            code.functions.load_common(&mut sparse.writer()).map_err(unread)?;
            let sparse = Arc::new(sparse);
            (start, Some(sparse.clone()), Memory::Sparse(sparse))
        }
        None => {
            let mut draft = memory.draft(parts)?;
            let start = check_distance(&draft.addresses(Part::Code), &draft.addresses(Part::ReadOnly), code)?;
            let written = code.functions.load_all(&mut |at, bytes| draft.write(Part::Code, at, bytes));
            written.map_err(unread)?;
            draft.write(Part::ReadOnly, 0, &table);
            draft.write(Part::ReadOnly, table.len(), code.constants);
            (start, None, Memory::Run(draft.seal()?))
        }
    };
    let functions = Placed { functions: code.functions.clone(), bytes: code.bytes as u32, sparse };
    let described = CodeUnit::of_directory(start, code.bytes, Arc::new(functions));
    Ok(Arc::new(LoadedUnit::new(map.enter(described), Box::default(), memory, owners.to_vec())))
}

/// The start of the code, if the imports are as far from it as the code takes for granted.
fn check_distance(
    text: &Range<usize>,
    imports: &Range<usize>,
    code: &ImageCode<'_>,
) -> Result<usize, LinkError> {
    let distance = imports.start - text.start;
    match distance == code.imports_at {
        true => Ok(text.start),
        false => Err(LinkError::Backend {
            reason: format!(
                "the image was made for pages that put the imports {} bytes after the code, and here they are {distance} after it",
                code.imports_at
            ),
        }),
    }
}
