//! Code of an image: one piece of machine code whose references outward go through a table of addresses.
//!
//! ```text
//!   run of pages   ┌──────────────────────────┬───────────────┬───────────────┐
//!                  │ code, as it is in the file │ imports       │ constants     │
//!                  └──────────────────────────┴───────────────┴───────────────┘
//!                    distances between the three are those in the file: nothing in the code is patched
//! ```
//!
//! Functions are described and put into memory when they are looked up ([`ImageFunctions`](crate::ImageFunctions)), so loading does nothing for a function.
//!
//! Loading copies constants, and writes one address for each import: the cost of an image's relocation is its number of different
//! symbols, not of its calls. Everything else, look-ups, methods, frame maps, traces, listeners, is as for units that were compiled here.
//!
//! **Trust.** Machine code cannot be checked. The reader of the file has checked that it is complete and was made for this run time; the caller that
//! opens it vouches that a code generator of ours has made it.

use std::sync::Arc;

use brolga_ir::Context;
use brolga_runtime::FrameMaps;
use brolga_runtime::objects::MethodTable;

use crate::engine::Jit;
use crate::link::foreign::Outside;
use crate::link::globals::Globals;
use crate::link::image_code::ImageCode;
use crate::link::linker::LinkError;
use crate::load::Program;
use crate::program::BuildError;
use crate::unit::Unit;
use crate::unit::types::{ImageTypes, Types};

/// The environment that an image is linked to, beside the runtime.
#[derive(Clone, Copy)]
pub struct ImageLinkage<'a> {
    /// The context of the types in its imports.
    pub cx: &'a Arc<Context>,
    /// The program's global variables.
    pub globals: &'a Globals,
    /// The table that dynamic calls in the image search.
    pub table: &'a MethodTable,
}

impl std::fmt::Debug for ImageLinkage<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ImageLinkage").finish_non_exhaustive()
    }
}

impl Jit {
    /// Loads the code of an image, and its frame maps. The caller vouches for both: see the header.
    pub fn load_image(
        &self,
        code: &ImageCode<'_>,
        frames: FrameMaps,
        linkage: &ImageLinkage<'_>,
    ) -> Result<Unit, BuildError> {
        if code.bytes == 0 || u32::try_from(code.bytes).is_err() {
            let fault = "has no code, or more than 4 GiB";
            return Err(LinkError::Malformed { name: "<image>".to_owned(), fault }.into());
        }
        let (indirect, c_callees) = Default::default();
        let program = Program {
            cx: linkage.cx,
            needs_heap: code.needs_heap,
            globals: linkage.globals,
            table: linkage.table,
            foreign: None,
            defers_foreign: true,
            outside: Outside::Process,
            indirect: &indirect,
            c_callees: &c_callees,
            cells: None,
            new: None,
        };
        let types = Types::Image(ImageTypes::new(code.functions.clone()));
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
            let maps = (!frames.is_empty()).then(|| {
                // SAFETY: the maps describe the code, by the contract of opening the image; `Code` drops them before what
                // they describe.
                unsafe { self.runtime().add_frame_maps(loaded.code().addresses(), frames) }
            });
            Ok((loaded, maps))
        })?;
        Ok(unit)
    }
}
