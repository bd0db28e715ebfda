//! Code of an image: one piece of machine code whose references outward go through a table of addresses.
//!
//! ```text
//!   run of pages   ┌──────────────────────────┬───────────────┬───────────────┐
//!                  │ code, as it is in the file │ imports       │ constants     │
//!                  └──────────────────────────┴───────────────┴───────────────┘
//!                    distances between the three are those in the file: nothing in the code is patched
//! ```
//!
//! Loading copies code and constants, and writes one address for each import: the cost of an image's relocation is its number of different
//! symbols, not of its calls. Everything else, look-ups, methods, frame maps, traces, listeners, is as for units that were compiled here.
//!
//! **Trust.** Machine code cannot be checked. Who reads the file has checked that it is whole and was made for this run time; that it does what
//! a code generator of ours would make it do is the word of whoever opens it.

use std::collections::BTreeMap;
use std::sync::Arc;

use brolga_codegen::compiled::{FrameMap, Symbol};
use brolga_codegen::sig::{FunctionType, Signature};
use brolga_ir::Context;
use brolga_runtime::objects::MethodTable;
use brolga_runtime::{FrameMaps, FrameMapsInForce, Runtime};

use crate::debug::code_map::{CodeMap, CodeUnit, PlacedFunction};
use crate::engine::{Jit, Program, Unit};
use crate::link::globals::Globals;
use crate::link::linker::{LinkError, LoadedUnit};
use crate::memory::code_memory::CodeMemory;
use crate::memory::reservation::{Part, Parts};
use crate::memory::space::Memory;
use crate::program::BuildError;

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
    /// Source positions: code offsets in rising order, each with the position that holds from there on.
    pub lines: Vec<(u32, u32)>,
    /// Where the roots of calls lie, by rising return address.
    pub frame_maps: Vec<FrameMap>,
    /// Its signature, if it can be looked up or called by dispatch.
    pub signature: Option<Signature>,
}

/// Code of an image as it is in the file.
#[derive(Clone, Copy, Debug)]
pub struct ImageCode<'a> {
    /// The machine code.
    pub code: &'a [u8],
    /// The constants, behind the imports.
    pub constants: &'a [u8],
    /// From the start of the code to the imports: whole pages.
    pub imports_at: usize,
    /// The imports, in the order of the table.
    pub imports: &'a [Symbol],
    /// The functions, by offset.
    pub functions: &'a [ImageFunction],
    /// Whether its code handles objects.
    pub needs_heap: bool,
}

/// The environment that an image is linked to, beside the runtime.
#[derive(Clone, Copy)]
pub struct ImageLinkage<'a> {
    /// The context of the types in its imports.
    pub cx: &'a Arc<Context>,
    /// The program's global variables.
    pub globals: &'a Globals,
    /// Where dynamic calls look that begin in the image.
    pub table: &'a MethodTable,
}

impl std::fmt::Debug for ImageLinkage<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ImageLinkage").finish_non_exhaustive()
    }
}

impl Jit {
    /// Loads the code of an image. `types` are the functions that can be looked up, which have to be as the image says. See the header for who
    /// vouches for the code.
    pub fn load_image(
        &self,
        code: &ImageCode<'_>,
        types: Vec<FunctionType>,
        linkage: &ImageLinkage<'_>,
    ) -> Result<Unit, BuildError> {
        check(code)?;
        let by_name: BTreeMap<&str, &ImageFunction> =
            code.functions.iter().map(|function| (function.name.as_str(), function)).collect();
        for (name, recorded) in types.iter().map(|ty| (ty.symbol.as_str(), &ty.signature)) {
            let actual = by_name.get(name).and_then(|function| function.signature.as_ref());
            if actual != Some(recorded) {
                return Err(BuildError::Signature {
                    name: name.to_owned(),
                    recorded: recorded.clone(),
                    actual: actual.cloned().unwrap_or_default(),
                });
            }
        }
        let (slots, c_callees) = Default::default();
        let program = Program {
            cx: linkage.cx,
            needs_heap: code.needs_heap,
            globals: linkage.globals,
            table: linkage.table,
            foreign: None,
            defers_foreign: true,
            slots: &slots,
            c_callees: &c_callees,
            cells: None,
            new: None,
        };
        let types = types.into_iter().map(Arc::new);
        let unit = self.load_placed(types, &[], Some(program), Vec::new(), |resolver| {
            let (mut imports, mut owners, mut unresolved) = (Vec::new(), Vec::new(), Vec::new());
            for symbol in code.imports {
                match resolver.resolve(symbol) {
                    Ok(import) => {
                        imports.push(import.address);
                        owners.extend(import.owner);
                    }
                    Err(why) => unresolved.push((symbol.clone(), why)),
                }
            }
            if !unresolved.is_empty() {
                return Err(LinkError::Unresolved { symbols: unresolved });
            }
            let loaded = self.place_image(code, &imports, &owners)?;
            // SAFETY: the maps are those of the code, by the word of whoever opens the image, and they lie inside it (`check`); `Code` drops them in
            // front of what they describe.
            let maps = unsafe { put_in_force(self.runtime(), code, loaded.code().addresses().start) };
            Ok((loaded, maps))
        })?;
        Ok(unit)
    }
}

/// Everything that is a place lies inside what it is a place of.
fn check(code: &ImageCode<'_>) -> Result<(), LinkError> {
    let malformed = |name: &str, fault| Err(LinkError::Malformed { name: name.to_owned(), fault });
    if code.code.is_empty() || u32::try_from(code.code.len()).is_err() {
        return malformed("<image>", "has no code, or more than 4 GiB");
    }
    let mut end = 0;
    let mut names = Vec::with_capacity(code.functions.len());
    for function in code.functions {
        let last = u64::from(function.offset) + u64::from(function.size);
        if u64::from(function.offset) < end || function.size == 0 || last > code.code.len() as u64 {
            return malformed(&function.name, "does not lie behind the function in front of it, in the code");
        }
        end = last;
        // A call returns behind its first byte.
        let mut before = 0;
        for map in &function.frame_maps {
            if map.return_offset > function.size || map.return_offset <= before {
                return malformed(&function.name, "has a frame map outside of its code");
            }
            before = map.return_offset;
        }
        names.push(function.name.as_str());
    }
    names.sort_unstable();
    match names.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(LinkError::Duplicate { symbol: Symbol::Function(pair[0].to_owned()) }),
        None => Ok(()),
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
            "the image was made for pages that put the imports {} bytes behind the code, and here they are {distance} behind it",
            code.imports_at
        );
        return Err(LinkError::Backend { reason });
    }
    draft.write(Part::Code, 0, code.code);
    draft.write(Part::ReadOnly, 0, &table);
    draft.write(Part::ReadOnly, table.len(), code.constants);
    let mut by_name: Vec<u32> = (0..code.functions.len() as u32).collect();
    by_name.sort_unstable_by_key(|&index| code.functions[index as usize].name.as_str());
    let placed = code.functions.iter().map(|function| PlacedFunction {
        name: &function.name,
        offset: function.offset,
        size: function.size,
        frame_bytes: function.frame_bytes,
        lines: &function.lines,
    });
    let described = CodeUnit::new(placed, start, code.code.len(), by_name.into_boxed_slice());
    let run = draft.seal()?;
    Ok(Arc::new(LoadedUnit::new(map.enter(described), Box::default(), Memory::Run(run), owners.to_vec())))
}

/// Tells the runtime where calls of the image keep their roots; `None` if none of them does.
///
/// # Safety
///
/// The maps are those of the code at `start`, and the result goes no sooner than the code.
unsafe fn put_in_force(runtime: &Runtime, code: &ImageCode<'_>, start: usize) -> Option<FrameMapsInForce> {
    let maps = || {
        let rows = |function: &'_ ImageFunction| {
            let offset = function.offset;
            let row = move |map: &'_ FrameMap| (offset + map.return_offset, map.words.clone());
            function.frame_maps.iter().map(row).collect::<Vec<_>>()
        };
        code.functions.iter().flat_map(rows)
    };
    maps().next()?;
    let rows: Vec<(u32, Box<[i32]>)> = maps().collect();
    let rows = rows.iter().map(|(offset, words)| (*offset, &**words));
    // SAFETY: by the contract.
    Some(unsafe { runtime.add_frame_maps(start..start + code.code.len(), FrameMaps::new(rows)) })
}
