//! Images: compiled code and the data that restore its program, in one file.
//!
//! ```text
//!   CompiledFunction ─┐            ┌─ text, import table, constants     the code, position-independent
//!   constants         ├─ place ──► ├─ functions, lines, maps, signatures  its description
//!   Module            ┘            ├─ imports                           its needs, by name
//!                                  └─ module                            types, globals, functions as IR
//!                                           │ elf                          │ read
//!                                           ▼                              ▼
//!                                      an ELF shared library ─────────► Image ──► crates/jit puts it into memory
//! ```
//!
//! **Address-free.** The code contains no addresses. It calls its own functions by distance, and takes all other addresses from
//! the *import table*, words after the code that the loader fills: one word for each different symbol, for all its
//! uses. So loading patches no code, and a file needs no dynamic relocation and no dynamic symbol for its imports.
//!
//! | symbol | in the file | resolved at load by |
//! |---|---|---|
//! | compiled function, constant bytes | a distance | nothing: it is resolved |
//! | routine, C function | its name | the run time |
//! | symbol, module, string constant | its text | permanent objects of the run time |
//! | type, singleton, box | a place in the type list of the module | the run time, for the types of the process |
//! | global variable | its name | cells that the engine makes |
//! | table of methods | itself | the table that the engine makes for the program |
//! | slot, counter, cells of a profile | refused | an image is a closed set, without its own tiers |
//!
//! **The file.** All addresses in it are offsets of the file, so each can be looked up without a section table.
//!
//! | part | permission | content |
//! |---|---|---|
//! | ELF header, program headers | read | for the system's loader and tools |
//! | header | read | magic, version, checksum, ABI id, machine, places of all tables (`header.rs`) |
//! | dynamic symbols | read | `brolga_image`, the header; of a library for C, its entries and exports (`exports.rs`) |
//! | tables, module | read | `tables.rs` |
//! | entries for C | execute | one after the other, before the text |
//! | text | execute | |
//! | imports, constants | read, write | |
//!
//! **Reading trusts only the text.** Magic and version first, then the length and the checksum of the whole file, then ABI id, machine and
//! targets; only then tables are read, with bounds checks. The module is read by `brolga_ir::binary` and verified. Machine code
//! cannot be checked: an image is code, and is opened by an explicit path only.
//!
//! **Determinism.** Functions, constants and imports are in the order of the input; nothing depends on addresses, hash order or time. The same input
//! gives the same bytes.
//!
//! **On demand.** Opening reads what the code needs: imports with their types, and global variables. A function is looked up in the tables where they lie
//! (`functions.rs`), and the IR of the program is read when it is first requested.
//!
//! **Cost.** Writing is linear in the code. Opening is one checksum, one look at each row of the table of functions, the imports and the global
//! variables.
//!
//! Not done: mapping the file instead of copying it, leaving out the code of targets that are not chosen, other formats than ELF.
//!
//! | file | what it holds |
//! |---|---|
//! | `functions.rs` | functions, found by name in the tables |
//! | `place.rs` | the layout, and the references |
//! | `tables.rs` | rows and strings, both ways |
//! | `header.rs` | the header, both ways, and the checks that come first |
//! | `elf.rs` | the shared library around it |
//! | `exports.rs` | entries for C |
//! | `versions.rs` | several targets in one image, and the choice between them |
//! | `read.rs` | from bytes to an [`Image`] |
//! | `write.rs` | from a program's code to bytes, and bytes into a file in one step |

mod elf;
mod exports;
mod functions;
mod header;
mod place;
mod read;
pub(crate) mod tables;
#[cfg(test)]
mod tests;
mod versions;
mod write;

use brolga_codegen::compiled::{CompiledFunction, FrameMap, Symbol};
use brolga_codegen::sig::Signature;
use brolga_ir::binary::Stored;
use brolga_ir::func::LineColumn;
use brolga_ir::{Arch, Module};
use bytes::Bytes;

use crate::build_id::BuildId;

pub use functions::{Found, FrameRows, Functions};
pub(crate) use header::machine;
pub use header::{BYTES as HEADER_BYTES, Expected, is_header_of};
pub use read::{read, read_file};
pub use versions::{ImageTarget, Rejected};
pub use write::{build, write_file};

/// Distances between code and imports are whole pages of this size; a loader with larger pages refuses the image.
pub const PAGE: usize = 4096;

/// The contents of an image.
#[derive(Clone, Copy, Debug)]
pub struct ImageParts<'a> {
    /// The architecture of the code.
    pub arch: Arch,
    /// The functions, compiled position-independent.
    pub functions: &'a [Compiled<'a>],
    /// Constant bytes by version and name, aligned to 16 bytes.
    pub constants: &'a [(usize, &'a str, &'a [u8])],
    /// The program.
    pub module: &'a Module,
    /// Whether its code handles objects.
    pub needs_heap: bool,
    /// The ABI id of the code (`brolga_codegen::abi_id`).
    pub abi: u64,
    /// The targets; all functions have code for the first one.
    pub targets: &'a [ImageTarget],
    /// The functions that C calls.
    pub library: Option<&'a Library<'a>>,
}

/// The parts of an image that is a library for C.
#[derive(Clone, Copy, Debug)]
pub struct Library<'a> {
    /// The function by which C opens the library.
    pub open: &'a CompiledFunction,
    /// The functions that C calls, in the order of their numbers, each with its entry (`brolga_codegen::export`).
    pub exports: &'a [(Export, CompiledFunction)],
}

/// A function that C calls.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Export {
    /// Its deterministic name.
    pub function: String,
    /// Its name for C.
    pub name: String,
}

/// A function of an image to be.
#[derive(Clone, Copy, Debug)]
pub struct Compiled<'a> {
    /// Its code.
    pub function: &'a CompiledFunction,
    /// The target that the code is for, by number.
    pub version: usize,
    /// Its signature, if it can be looked up or called by dispatch.
    pub signature: Option<&'a Signature>,
}

/// An image that was read.
#[derive(Debug)]
pub struct Image {
    /// The program.
    pub module: Stored<Bytes>,
    /// The machine code.
    pub code: Bytes,
    /// The constants, which lie behind the imports.
    pub constants: Bytes,
    /// From the start of the code to the imports.
    pub imports_at: usize,
    /// The imports of the code, in the order of the table.
    pub imports: Vec<Symbol>,
    /// The functions, of each the version that was chosen.
    pub functions: Functions,
    /// Where the roots of calls lie.
    pub frames: FrameRows,
    /// The name of the target that was chosen.
    pub target: String,
    /// The functions that C calls, in the order of their numbers.
    pub exports: Vec<Export>,
    /// Whether its code handles objects.
    pub needs_heap: bool,
}

/// A function of an image that was read.
#[derive(Clone, PartialEq, Debug)]
pub struct Function {
    /// Its deterministic name.
    pub name: String,
    /// Where its code begins, from the start of the code.
    pub offset: u32,
    /// The bytes of its code.
    pub size: u32,
    /// Bytes of stack that one activation takes.
    pub frame_bytes: u32,
    /// Code offsets in rising order, each with the place in the source that holds from there on.
    pub lines: Vec<(u32, LineColumn)>,
    /// Where the roots of calls lie, by rising return address.
    pub frame_maps: Vec<FrameMap>,
    /// Its signature, if it can be looked up or called by dispatch.
    pub signature: Option<Signature>,
}

/// Why there is no image. Nothing of it was run.
#[derive(thiserror::Error, Debug)]
pub enum ImageError {
    /// The system refused the file.
    #[error("cannot {what} `{path}`: {source}")]
    File {
        /// The requested one.
        what: &'static str,
        /// The file.
        path: String,
        /// The system's words.
        source: std::io::Error,
    },
    /// The file is no image.
    #[error("this is no image: {reason}")]
    NotAnImage {
        /// How that shows.
        reason: &'static str,
    },
    /// The image has another format version.
    #[error("the image has format version {found}, and this is version {known}: build it again")]
    Version {
        /// The file's.
        found: u32,
        /// Ours.
        known: u32,
    },
    /// The file is not as it was written.
    #[error("the image is damaged: {reason}; build it again")]
    Damaged {
        /// How that shows.
        reason: String,
    },
    /// The image was made by a compiler whose code takes other layouts for granted.
    #[error(
        "the image was made for ABI {found:016x}, and this run time has {known:016x}: build it again with this version and heap"
    )]
    Abi {
        /// The file's.
        found: u64,
        /// Ours.
        known: u64,
    },
    /// The image is for another kind of processor.
    #[error("the image is for the machine {found} of ELF's list, and this is {known}")]
    Machine {
        /// The file's.
        found: u16,
        /// Ours.
        known: u16,
    },
    /// The package was compiled with other settings than the session compiles with.
    #[error("the package was made for {what} `{found}`, and this session compiles for `{known}`")]
    Settings {
        /// The name of the first one that differs.
        what: String,
        /// The package's.
        found: String,
        /// The session's.
        known: String,
    },
    /// The package was built on another one, which is not open.
    #[error("the package needs `{name}` of build {id}, {}", opened(.open))]
    Needs {
        /// The name of the other one.
        name: String,
        /// Its build id.
        id: BuildId,
        /// The build id of the package of that name that is open, if there is one.
        open: Option<BuildId>,
    },
    /// The image has no target that the processor has all features of.
    #[error("no target of the image fits this processor: {}", versions::reasons(.rejected))]
    Targets {
        /// The targets, with the missing features.
        rejected: Vec<Rejected>,
    },
    /// The program in the image is refused.
    #[error("the program in the image is refused: {0}")]
    Module(#[from] brolga_ir::binary::BinaryError),
    /// The code refers to something that images do not hold.
    #[error("`{function}` refers to {what}, which an image cannot hold")]
    Reference {
        /// The function.
        function: String,
        /// The symbol that it refers to.
        what: String,
    },
    /// The image would be larger than its tables can say.
    #[error("the image has {bytes} bytes; the limit is {limit}")]
    TooLarge {
        /// How many it has.
        bytes: usize,
        /// How many are allowed.
        limit: usize,
    },
    /// Functions that C calls are not made for this architecture.
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
        /// The fault.
        fault: &'static str,
    },
}

/// Which build of a needed package is open, in words.
fn opened(open: &Option<BuildId>) -> String {
    match open {
        Some(id) => format!("and build {id} is open: build the package again"),
        None => "which is not open".to_owned(),
    }
}
