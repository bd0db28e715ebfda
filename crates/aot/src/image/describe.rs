//! Describes an image of any machine. The bytes are checked as on opening; no code runs.

use brolga_ir::Arch;

use super::header::{self, Described, machine};
use super::tables::{CALLEES, CODE, CONSTANTS, FUNCTION_WORDS, FUNCTIONS, MODULE, PIECES, Reader, TARGETS};
use super::text::Text;
use super::{Export, ImageError, ImageFile, ImageTarget, read, versions};

/// The description of an image, made by [`describe`]. Sizes are in bytes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Description {
    /// The architecture of its code; `None` for one that this version has no name for.
    pub arch: Option<Arch>,
    /// The ABI id of its code. A run time with another one refuses the image.
    pub abi: u64,
    /// Whether its code handles objects.
    pub needs_heap: bool,
    /// Its targets. All functions have code for the first one.
    pub targets: Vec<ImageTarget>,
    /// The number of functions in machine code: one for each function and target that has its own version.
    pub functions: usize,
    /// The functions that C calls.
    pub exports: Vec<Export>,
    /// The size of the machine code.
    pub code: usize,
    /// The size of constant data.
    pub constants: usize,
    /// The stored program: its declarations and the IR of its functions.
    pub program: Vec<u8>,
}

/// Describes the image in a file's bytes.
///
/// # Errors
/// The bytes are not an image of this version, or it is damaged.
pub fn describe(file: &[u8]) -> Result<Description, ImageError> {
    let damaged = |what: &str| ImageError::Damaged { reason: format!("{what} cannot be read") };
    let file = ImageFile::from(bytes::Bytes::copy_from_slice(file));
    let Described { header, front, text, .. } = header::read_any(&file)?;
    let tables = read::tables(&header.tables, &front);
    let places = [FUNCTIONS, PIECES, CALLEES].map(|table| header.tables[table]);
    let text = Text::new(file, front.clone(), places, text);
    text.ok_or_else(|| damaged("the table of pieces"))?.check()?;
    Ok(Description {
        arch: Arch::ALL.into_iter().find(|&arch| machine(arch) == header.machine),
        abi: header.abi,
        needs_heap: header.needs_heap,
        targets: versions::read(tables[TARGETS]).ok_or_else(|| damaged("the list of targets"))?,
        functions: tables[FUNCTIONS].len() / (4 * FUNCTION_WORDS),
        exports: Reader { tables }.exports().ok_or_else(|| damaged("the table of exports"))?,
        code: header.tables[CODE].length,
        constants: header.tables[CONSTANTS].length,
        program: tables[MODULE].to_vec(),
    })
}
