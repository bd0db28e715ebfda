//! Images: compiled code and the data needed to restore its program, in one file.
//!
//! ```text
//!   CompiledFunction ─┐            ┌─ text, import table, constants     the code, position-independent
//!   constants         ├─ place ──► ├─ functions, lines, maps, signatures  its description
//!   Module            ┘            ├─ imports                           its references, by name
//!                                  └─ module                            types, globals, functions as IR
//!                                           │ elf                          │ read
//!                                           ▼                              ▼
//!                                      an ELF shared library ─────────► Image ──► loaded by crates/jit
//! ```
//!
//! **Address-free.** The code contains no addresses. It calls its own functions by distance, and takes all
//! other addresses from the *import table*, words after the code that the loader fills in: one word per
//! symbol, for all its uses. So loading patches no code, and a file needs neither dynamic relocations nor
//! dynamic symbols for its imports.
//!
//! | symbol | in the file | resolved at load by |
//! |---|---|---|
//! | compiled function, constant bytes | a distance | nothing: it is already resolved |
//! | routine, C function | its name | the run time |
//! | symbol, module, string constant | its text | permanent objects of the run time |
//! | type, singleton, box | an index into the type list of the module | the run time, for the types of the process |
//! | global variable | its name | cells of the engine |
//! | table of methods | itself | the engine's table for the program |
//! | slot, counter, cells of a profile | refused | an image is a closed set, without its own tiers |
//!
//! **The file.** All addresses in it are file offsets, so each can be found without a section table.
//!
//! | part | permission | content |
//! |---|---|---|
//! | ELF header, program headers | read | for the system's loader and tools |
//! | header | read | magic, version, checksum, ABI id, machine, ranges of all tables (`header.rs`) |
//! | dynamic symbols | read | `brolga_image`, the header; in a library for C also its entries and exports (`exports.rs`) |
//! | tables, module | read | `tables.rs` |
//! | entries for C | execute | one after the other, before the text |
//! | text | execute | |
//! | imports, constants | read, write | |
//!
//! **Reading trusts only the text.** First the magic number and the version are checked, then the length and
//! the checksum of all but the text, then ABI id, machine and targets; only then are the tables read, with
//! bounds checks. The text has a checksum for each function, which is compared when the function is loaded (`text.rs`).
//! Bytes after the sealed part are for tools and may be stripped. The module is read by `brolga_ir::binary` and
//! verified. What machine code does cannot be checked: an image is code, and is opened by an explicit path only.
//!
//! **Determinism.** Functions, constants and imports are in the order of the input; nothing depends on
//! addresses, hash order or time. The same input produces the same bytes.
//!
//! **On demand.** Opening reads what the code needs: imports with their types, and global variables. A
//! function is looked up directly in the tables (`functions.rs`), and the IR of the program is read when it
//! is first requested.
//!
//! **Cost.** Writing is linear in the code. Opening reads all but the text, with one checksum, and passes once over the
//! rows of the table of functions, the imports and the global variables. Code is read when it is needed.
//!
//! Not done: sharing code pages between processes; formats other than ELF.
//!
//! | file | contents |
//! |---|---|
//! | `functions.rs` | functions, found by name in the tables |
//! | `place.rs` | layout and relocation |
//! | `tables.rs` | rows and strings, written and read |
//! | `header.rs` | the header, written and read, and the checks that come first |
//! | `elf.rs` | the enclosing shared library |
//! | `exports.rs` | entries for C |
//! | `versions.rs` | several targets in one image, and the selection of one |
//! | `describe.rs` | the description of an image of any machine |
//! | `read.rs` | from a file to an [`Image`] |
//! | `source.rs` | the open file, or bytes in memory |
//! | `text.rs` | the text, loaded function by function |
//! | `write.rs` | from a program's code to bytes, and the atomic replacement of a file |

mod describe;
mod elf;
mod exports;
mod functions;
mod header;
mod place;
mod read;
mod source;
pub(crate) mod tables;
#[cfg(test)]
mod tests;
mod text;
mod versions;
mod write;

use brolga_codegen::compiled::{CompiledFunction, FrameMap, Symbol};
use brolga_codegen::origin::{InlinedBody, Origin};
use brolga_codegen::sig::Signature;
use brolga_ir::binary::Stored;
use brolga_ir::{Arch, Module};
use bytes::Bytes;

use crate::build_id::BuildId;

pub use describe::{Description, describe};
pub use functions::{Found, FrameRows, Functions};
pub(crate) use header::machine;
#[doc(hidden)]
pub use header::seal_again as seal;
pub use header::{BYTES as HEADER_BYTES, Expected};
pub use read::{read, read_file};
pub use source::ImageFile;
pub use text::{Text, WriteCode};
pub use versions::{ImageTarget, Rejected};
pub use write::{build, write_file};

/// The granularity of the distances between code and imports; a loader with larger pages refuses the image.
pub const PAGE: usize = 4096;

/// The contents of an image.
#[derive(Clone, Copy, Debug)]
pub struct ImageParts<'a> {
    /// The architecture of the code.
    pub arch: Arch,
    /// The functions, compiled position-independent.
    pub functions: &'a [Compiled<'a>],
    /// Constant bytes, aligned to 16 bytes, each with its version and name.
    pub constants: &'a [(usize, &'a str, &'a [u8])],
    /// The program.
    pub module: &'a Module,
    /// Whether the code handles objects.
    pub needs_heap: bool,
    /// The ABI id of the code (`brolga_codegen::abi_id`).
    pub abi: u64,
    /// The targets; all functions have code for the first one.
    pub targets: &'a [ImageTarget],
    /// The functions exported to C.
    pub library: Option<&'a Library<'a>>,
}

/// The contents of a library for C.
#[derive(Clone, Copy, Debug)]
pub struct Library<'a> {
    /// The function by which C opens the library.
    pub open: &'a CompiledFunction,
    /// The exported functions, in the order of their numbers, each with its entry (`brolga_codegen::export`).
    pub exports: &'a [(Export, CompiledFunction)],
}

/// A function exported to C.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Export {
    /// The deterministic name of the function.
    pub function: String,
    /// Its name in C.
    pub name: String,
}

/// A function of an image to be written.
#[derive(Clone, Copy, Debug)]
pub struct Compiled<'a> {
    /// Its code.
    pub function: &'a CompiledFunction,
    /// The index of the target that the code is for.
    pub version: usize,
    /// Its signature, if it can be looked up or called by dispatch.
    pub signature: Option<&'a Signature>,
}

/// An image that was read.
#[derive(Debug)]
pub struct Image {
    /// The program.
    pub module: Stored<Bytes>,
    /// The machine code, read when it is needed.
    pub code: Text,
    /// The number of bytes of machine code.
    pub code_bytes: usize,
    /// The constants, which follow the imports.
    pub constants: Bytes,
    /// The distance from the start of the code to the imports.
    pub imports_at: usize,
    /// The imports of the code, in the order of the import table.
    pub imports: Vec<Symbol>,
    /// One entry per function: the selected version.
    pub functions: Functions,
    /// The roots at each call.
    pub frames: FrameRows,
    /// The name of the selected target.
    pub target: String,
    /// The functions exported to C, in the order of their numbers.
    pub exports: Vec<Export>,
    /// Whether the code handles objects.
    pub needs_heap: bool,
}

/// A function of an image that was read.
#[derive(Clone, PartialEq, Debug)]
pub struct Function {
    /// Its deterministic name.
    pub name: String,
    /// The offset of its code from the start of the image's code.
    pub offset: u32,
    /// The size of its code in bytes.
    pub size: u32,
    /// The stack bytes per activation.
    pub frame_bytes: u32,
    /// Ascending code offsets, each with the source position that applies from there on.
    pub lines: Vec<(u32, Origin)>,
    /// The inlined bodies that the positions refer to; an outer one precedes those within it.
    pub inlined: Vec<InlinedBody>,
    /// The roots at each call, by ascending return address.
    pub frame_maps: Vec<FrameMap>,
    /// Its signature, if it can be looked up or called by dispatch.
    pub signature: Option<Signature>,
}

/// Why an image was refused. None of its code was run.
#[derive(thiserror::Error, Debug)]
pub enum ImageError {
    /// The system refused the file.
    #[error("cannot {what} `{path}`: {source}")]
    File {
        /// The action that failed.
        what: &'static str,
        path: String,
        /// The system's error.
        source: std::io::Error,
    },
    /// The file is not an image.
    #[error("this is not an image: {reason}")]
    NotAnImage {
        /// The evidence.
        reason: &'static str,
    },
    /// The image has another format version.
    #[error("the image has format version {found}, and this is version {known}: build it again")]
    Version {
        /// The version of the file.
        found: u32,
        /// The version of this compiler.
        known: u32,
    },
    /// The file is not as it was written.
    #[error("the image is damaged: {reason}; build it again")]
    Damaged {
        /// The evidence.
        reason: String,
    },
    /// The image was made by a compiler that assumes other layouts.
    #[error(
        "the image was made for ABI {found:016x}, and this run time has {known:016x}: build it again with this version and heap"
    )]
    Abi {
        /// The ABI id of the image.
        found: u64,
        /// The ABI id of this run time.
        known: u64,
    },
    /// The image is for another architecture.
    #[error("the image is for the machine {found} of ELF's list, and this is {known}")]
    Machine {
        /// The ELF machine number of the file.
        found: u16,
        /// The ELF machine number of this process.
        known: u16,
    },
    /// The package was compiled with settings that differ from the session's.
    #[error("the package was made for {what} `{found}`, and this session compiles for `{known}`")]
    Settings {
        /// The name of the first setting that differs.
        what: String,
        /// The package's value.
        found: String,
        /// The session's value.
        known: String,
    },
    /// The package was built on another one, which is not open.
    #[error("the package needs `{name}` of build {id}, {}", opened(.open))]
    Needs {
        /// The name of the other package.
        name: String,
        id: BuildId,
        /// The build id of the open package of that name, if there is one.
        open: Option<BuildId>,
    },
    /// The processor does not have all the features of any target.
    #[error("no target of the image fits this processor: {}", versions::reasons(.rejected))]
    Targets {
        /// The targets, each with the missing features.
        rejected: Vec<Rejected>,
    },
    /// The module in the image is refused.
    #[error("the program in the image is refused: {0}")]
    Module(#[from] brolga_ir::binary::BinaryError),
    /// The code refers to something that images cannot contain.
    #[error("`{function}` refers to {what}, which an image cannot hold")]
    Reference {
        function: String,
        /// The referenced symbol.
        what: String,
    },
    /// The image would exceed the limit of its tables.
    #[error("the image has {bytes} bytes; the limit is {limit}")]
    TooLarge {
        /// The size of the image in bytes.
        bytes: usize,
        /// The maximum size in bytes.
        limit: usize,
    },
    /// Exports to C are not supported for this architecture.
    #[error("functions that C calls are made for x86_64 only so far, and the image is for {arch}")]
    Unsupported {
        /// The architecture.
        arch: Arch,
    },
    /// A name is defined twice, or a function contradicts itself. The caller is at fault.
    #[error("`{name}` {fault}")]
    Malformed {
        /// The function or constant.
        name: String,
        fault: &'static str,
    },
}

/// A message part: which build of a needed package is open.
fn opened(open: &Option<BuildId>) -> String {
    match open {
        Some(id) => format!("and build {id} is open: build the package again"),
        None => "which is not open".to_owned(),
    }
}
