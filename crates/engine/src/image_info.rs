//! The identity, program, targets and sizes of an image of any machine. No code of the image runs.
//!
//! The identity is a hash of all bytes of the file. The program's is a hash of its IR in binary form, so an image is stale exactly if its
//! source, read again, has another one ([`program_id`]). A trimmed image has a part of its program, and so an identity of its own.

use std::fmt;

use brolga_aot::image::{Description, ImageError, ImageTarget, describe};
use brolga_cache::{Digest, Fingerprint};
use brolga_codegen::target::spoken;
use brolga_ir::binary::Stored;
use brolga_ir::diag::counted;
use brolga_ir::{Context, Module, binary};
use brolga_jit::abi::abi_of;
use brolga_runtime::heap::DEFAULT_ABI;

use crate::error::Error;
use crate::program::Program;

/// The facts of an image, collected by [`info`]. `Display` writes one line per fact.
#[derive(Debug)]
pub struct ImageInfo {
    /// The hash of the file.
    pub id: Fingerprint,
    /// The hash of its program.
    pub program: Fingerprint,
    /// The number of functions in the program.
    pub functions: usize,
    /// Whether its code has the ABI of this version with the default heap.
    pub fits: bool,
    /// The size of the file in bytes.
    pub bytes: usize,
    /// The contents of the header and tables.
    pub description: Description,
}

/// Describes the image in a file's bytes.
///
/// # Errors
/// The bytes are not an image of this version, or it is damaged.
pub fn info(bytes: &[u8]) -> Result<ImageInfo, Error> {
    let description = describe(bytes)?;
    let stored = Stored::open(description.program.as_slice(), Context::new()).map_err(ImageError::from)?;
    let module = stored.module().map_err(ImageError::from)?;
    let mut file = Digest::new("image");
    file.bytes(bytes);
    Ok(ImageInfo {
        id: file.finish(),
        program: id_of(&module),
        functions: module.func_count(),
        fits: description.abi == abi_of(&DEFAULT_ABI),
        bytes: bytes.len(),
        description,
    })
}

/// The identity of a program: equal for equal IR, wherever and whenever it is read.
pub fn program_id(program: &Program) -> Fingerprint {
    id_of(program.module())
}

pub(crate) fn id_of(module: &Module) -> Fingerprint {
    let mut digest = Digest::new("program");
    digest.bytes(&binary::write(module));
    digest.finish()
}

impl fmt::Display for ImageInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Description { arch, abi, needs_heap, targets, functions, exports, code, constants, program } =
            &self.description;
        writeln!(f, "id         {:?}", self.id)?;
        writeln!(f, "program    {:?}, {}", self.program, counted(self.functions, "function"))?;
        let whose = if self.fits { "this version" } else { "another version or heap: build it again" };
        writeln!(f, "machine    {}, ABI {abi:016x} of {whose}", arch.map_or("unknown", |arch| arch.name()))?;
        for ImageTarget { name, features, .. } in targets {
            let features = match features.is_empty() {
                true => "nothing beyond the baseline".to_owned(),
                false => spoken(features),
            };
            writeln!(f, "target     {name}: {features}")?;
        }
        for export in exports {
            writeln!(f, "export     {} as {}", export.function, export.name)?;
        }
        writeln!(
            f,
            "code       {code} bytes; {functions} functions, counting versions for targets and entries"
        )?;
        writeln!(f, "constants  {constants} bytes")?;
        writeln!(f, "ir         {} bytes", program.len())?;
        writeln!(f, "file       {} bytes", self.bytes)?;
        write!(f, "heap       {}", if *needs_heap { "its code handles objects" } else { "not used" })
    }
}
