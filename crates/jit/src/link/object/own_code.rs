//! Machine code that an embedder has made itself, as an object file with one function.
//!
//! ```text
//!   bytes, alignment, places that refer to C symbols ──► .text, one global symbol, relocations ──► ObjectFile: placed, linked and freed as any other
//! ```
//!
//! So there is one linker, with the same refusals as for files of compilers.
//!
//! Not done: data beside the code, and unwinding through it by C++ exceptions. An object file has both.

use object::write::{Object, Relocation, Symbol, SymbolSection};
use object::{
    Architecture, BinaryFormat, Endianness, RelocationFlags, SectionKind, SymbolFlags, SymbolKind,
    SymbolScope, elf,
};

use super::ObjectFile;
use super::error::{ObjectFileError, malformed};

/// How code refers to a C symbol.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CodeReference {
    /// Eight bytes with the address.
    Absolute,
    /// A call or jump of this machine: on x86-64 the four bytes with the distance from their end, on aarch64 the instruction `b` or `bl`. It reaches the whole address space.
    Call,
}

#[derive(Clone, Debug)]
struct Reference {
    at: u64,
    how: CodeReference,
    to: String,
    addend: i64,
}

/// The largest alignment of code: a page.
const MOST_ALIGN: u64 = 4096;

#[cfg(not(target_arch = "aarch64"))]
const ARCHITECTURE: Architecture = Architecture::X86_64;
#[cfg(not(target_arch = "aarch64"))]
const ABSOLUTE: u32 = elf::R_X86_64_64;
#[cfg(not(target_arch = "aarch64"))]
const CALL: u32 = elf::R_X86_64_PLT32;
/// The distance is counted from the end of the four bytes, and the relocation counts from their beginning.
#[cfg(not(target_arch = "aarch64"))]
const CALL_FROM_ITS_END: i64 = 4;

#[cfg(target_arch = "aarch64")]
const ARCHITECTURE: Architecture = Architecture::Aarch64;
#[cfg(target_arch = "aarch64")]
const ABSOLUTE: u32 = elf::R_AARCH64_ABS64;
#[cfg(target_arch = "aarch64")]
const CALL: u32 = elf::R_AARCH64_CALL26;
/// The distance is counted from the instruction.
#[cfg(target_arch = "aarch64")]
const CALL_FROM_ITS_END: i64 = 0;

/// Machine code of a function, for this machine: it follows C's calling convention, and neither throws nor unwinds.
#[derive(Clone, Debug)]
pub struct OwnCode {
    bytes: Vec<u8>,
    align: u64,
    references: Vec<Reference>,
}

impl OwnCode {
    /// These bytes, which begin with the function's first instruction. They refer to nothing and are aligned to 16.
    #[must_use]
    pub fn new(bytes: impl Into<Vec<u8>>) -> OwnCode {
        OwnCode { bytes: bytes.into(), align: 16, references: Vec::new() }
    }

    /// Aligned to a power of two.
    #[must_use]
    pub fn aligned(mut self, align: u64) -> OwnCode {
        self.align = align;
        self
    }

    /// With a reference to a C symbol at a distance from the beginning. `addend` is added to the symbol's address.
    #[must_use]
    pub fn referring(
        mut self,
        at: u64,
        how: CodeReference,
        symbol: impl Into<String>,
        addend: i64,
    ) -> OwnCode {
        self.references.push(Reference { at, how, to: symbol.into(), addend });
        self
    }
}

impl ObjectFile {
    /// The function `name` with this code.
    ///
    /// # Errors
    /// There are no bytes; the alignment is not a power of two up to 4096; a reference is outside of the bytes.
    pub fn of_code(name: &str, code: &OwnCode) -> Result<ObjectFile, ObjectFileError> {
        let OwnCode { bytes, align, references } = code;
        if bytes.is_empty() {
            return Err(malformed(name, "there is no code"));
        }
        if !align.is_power_of_two() || *align > MOST_ALIGN {
            return Err(malformed(
                name,
                format_args!("code is aligned to a power of two up to {MOST_ALIGN}, not to {align}"),
            ));
        }
        let mut file = Object::new(BinaryFormat::Elf, ARCHITECTURE, Endianness::Little);
        let section = file.add_section(Vec::new(), b".text".to_vec(), SectionKind::Text);
        file.append_section_data(section, bytes, *align);
        let place = SymbolSection::Section(section);
        file.add_symbol(symbol(name, SymbolKind::Text, place, bytes.len() as u64));
        for Reference { at, how, to, addend } in references {
            let (size, r_type, addend) = match how {
                CodeReference::Absolute => (8, ABSOLUTE, *addend),
                CodeReference::Call => (4, CALL, addend.saturating_sub(CALL_FROM_ITS_END)),
            };
            if at.checked_add(size).is_none_or(|end| end > bytes.len() as u64) {
                let what =
                    format_args!("the reference to `{to}` at {at} is not within its {} bytes", bytes.len());
                return Err(malformed(name, what));
            }
            let known = file.symbol_id(to.as_bytes());
            let undefined = || file_symbol(to);
            let to = known.unwrap_or_else(|| file.add_symbol(undefined()));
            let relocation =
                Relocation { offset: *at, symbol: to, addend, flags: RelocationFlags::Elf { r_type } };
            file.add_relocation(section, relocation).map_err(|error| malformed(name, error))?;
        }
        let written = file.write().map_err(|error| malformed(name, error))?;
        ObjectFile::parse(name, &written)
    }
}

/// A symbol that is missing.
fn file_symbol(name: &str) -> Symbol {
    symbol(name, SymbolKind::Unknown, SymbolSection::Undefined, 0)
}

fn symbol(name: &str, kind: SymbolKind, section: SymbolSection, size: u64) -> Symbol {
    let (name, scope, flags) = (name.as_bytes().to_vec(), SymbolScope::Dynamic, SymbolFlags::None);
    Symbol { name, value: 0, size, kind, scope, weak: false, section, flags }
}
