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
//! **Trust.** Machine code cannot be checked. The reader of the file has checked that it is complete and was made for this run time; the caller that
//! opens it vouches that a code generator of ours has made it.

use std::collections::BTreeMap;
use std::sync::Arc;

use brolga_codegen::compiled::{FrameMap, Symbol};
use brolga_codegen::sig::FunctionType;
use brolga_ir::Context;
use brolga_runtime::objects::MethodTable;
use brolga_runtime::{FrameMaps, FrameMapsInForce, Runtime};

use crate::engine::Jit;
use crate::link::globals::Globals;
use crate::link::image_code::{ImageCode, ImageFunction};
use crate::link::linker::LinkError;
use crate::load::Program;
use crate::program::BuildError;
use crate::unit::Unit;

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
    /// Loads the code of an image. `types` are the functions that can be looked up, which have to be as the image says. The caller vouches for
    /// the code: see the header.
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
        let (indirect, c_callees) = Default::default();
        let program = Program {
            cx: linkage.cx,
            needs_heap: code.needs_heap,
            globals: linkage.globals,
            table: linkage.table,
            foreign: None,
            defers_foreign: true,
            indirect: &indirect,
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
            // SAFETY: the maps are those of the code, by the contract of opening the image, and they lie inside it (`check`); `Code` drops them in
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
