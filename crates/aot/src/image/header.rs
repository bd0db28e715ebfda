//! The header: writing, reading, and the checks that precede all others.
//!
//! ```text
//!   0  magic: 8 bytes          24  ABI id             48  0
//!   8  version                 32  machine            52  0
//!  12  checksum                36  flags              56  tables: offset and length of each, 32 bits
//!  16  end of the sealed part  40  imports, from the code
//! ```
//!
//! It follows the program headers, at [`AT`].
//!
//! **The sealed part** is what the system's loader maps: from the header to the end of the last segment.
//! The reader uses nothing else. Symbols and section headers come after it, and the ELF header counts them,
//! so `strip` and `objcopy` leave an image valid.
//!
//! The checksum is a CRC-32 of the sealed part with zeros in its own position: it detects every change of up
//! to 32 consecutive bits, and misses any other with a probability of 2⁻³². It detects damage, not malice.

use brolga_ir::Arch;

use super::tables::TABLES;
use super::{ImageError, PAGE};

const MAGIC: [u8; 8] = *b"BRLGIMG\x1a";
const VERSION: u32 = 5;
/// The number of program headers that precede it.
pub(super) const PROGRAM_HEADERS: u32 = 5;
/// The offset of the header.
pub(super) const AT: usize = 64 + 56 * PROGRAM_HEADERS as usize;
const CHECKSUM: usize = 12;
const ABI: usize = 24;
const MACHINE: usize = 32;
const DIRECTORY: usize = 56;
/// The size of the header in bytes.
pub const BYTES: usize = DIRECTORY + 8 * TABLES;
const NEEDS_HEAP: u32 = 1;
const ELF_MAGIC: [u8; 4] = *b"\x7fELF";

/// The properties of this process that code depends on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Expected<'a> {
    /// The architecture.
    pub arch: Arch,
    /// The ABI id.
    pub abi: u64,
    /// The features of the processor that code may use, by Cranelift's names.
    pub features: &'a [String],
}

/// A table's range in the file.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Place {
    pub(super) offset: usize,
    pub(super) length: usize,
}

/// The contents of the header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Header {
    pub(super) machine: u16,
    pub(super) abi: u64,
    pub(super) needs_heap: bool,
    pub(super) imports_at: usize,
    pub(super) tables: [Place; TABLES],
}

/// The architecture's number in ELF's list of machines.
pub(crate) const fn machine(arch: Arch) -> u16 {
    match arch {
        Arch::X86_64 => object::elf::EM_X86_64,
        Arch::Aarch64 => object::elf::EM_AARCH64,
    }
}

impl Header {
    /// The bytes, without the checksum and the length of the file.
    pub(super) fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(BYTES);
        bytes.extend(MAGIC);
        bytes.extend(VERSION.to_le_bytes());
        bytes.extend([0; 12]);
        bytes.extend(self.abi.to_le_bytes());
        bytes.extend(u32::from(self.machine).to_le_bytes());
        bytes.extend(if self.needs_heap { NEEDS_HEAP } else { 0 }.to_le_bytes());
        bytes.extend((self.imports_at as u32).to_le_bytes());
        bytes.extend([0; 12]);
        for place in self.tables {
            bytes.extend((place.offset as u32).to_le_bytes());
            bytes.extend((place.length as u32).to_le_bytes());
        }
        bytes
    }
}

/// Whether the header that the system's loader has put into memory equals the header of `file`.
pub fn is_header_of(in_memory: &[u8; BYTES], file: &[u8]) -> bool {
    file.get(AT..AT + BYTES) == Some(in_memory)
}

/// Writes the end of the sealed part and its checksum into a file.
pub(super) fn seal(file: &mut [u8], end: usize) {
    if let Some(field) = file.get_mut(AT + 16..AT + 24) {
        field.copy_from_slice(&(end as u64).to_le_bytes());
    }
    let sum = checksum(file.get(AT..end).unwrap_or_default());
    if let Some(field) = file.get_mut(AT + CHECKSUM..AT + CHECKSUM + 4) {
        field.copy_from_slice(&sum.to_le_bytes());
    }
}

/// The checksum of a sealed part.
fn checksum(sealed: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    let (before, rest) = sealed.split_at(CHECKSUM.min(sealed.len()));
    hasher.update(before);
    hasher.update(&[0; 4]);
    hasher.update(rest.get(4..).unwrap_or_default());
    hasher.finalize()
}

/// Reads the header of a file and checks it against the file and this process.
pub(super) fn read(file: &[u8], expected: &Expected<'_>) -> Result<Header, ImageError> {
    let (header, end) = checked(file)?;
    let (found, known) = (word(header, MACHINE), machine(expected.arch));
    if found != u32::from(known) {
        return Err(ImageError::Machine { found: found as u16, known });
    }
    let abi = wide(header, ABI);
    if abi != expected.abi {
        return Err(ImageError::Abi { found: abi, known: expected.abi });
    }
    contents((header, end))
}

/// Reads the header of a file for whatever machine and ABI, and checks it against the file.
pub(super) fn read_any(file: &[u8]) -> Result<Header, ImageError> {
    contents(checked(file)?)
}

fn word(header: &[u8; BYTES], at: usize) -> u32 {
    u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
}

fn wide(header: &[u8; BYTES], at: usize) -> u64 {
    u64::from(word(header, at)) | u64::from(word(header, at + 4)) << 32
}

/// The header of a file of this version whose sealed part is as it was written, and the end of that part.
fn checked(file: &[u8]) -> Result<(&[u8; BYTES], usize), ImageError> {
    let not = |reason| Err(ImageError::NotAnImage { reason });
    if file.get(..4) != Some(&ELF_MAGIC) {
        return not("it is not an ELF file");
    }
    let Some(header) = file.get(AT..).and_then(<[u8]>::first_chunk::<BYTES>) else {
        return not("it ends before the header of an image");
    };
    if header[..8] != MAGIC {
        return not("it has no header of an image");
    }
    if word(header, 8) != VERSION {
        return Err(ImageError::Version { found: word(header, 8), known: VERSION });
    }
    let end = wide(header, 16);
    let sealed = usize::try_from(end).ok().and_then(|end| file.get(AT..end));
    let Some(sealed) = sealed.filter(|sealed| sealed.len() >= BYTES) else {
        let reason = format!("it has {} bytes, and was written with {end} or more", file.len());
        return Err(ImageError::Damaged { reason });
    };
    if checksum(sealed) != word(header, CHECKSUM) {
        let reason = "its bytes do not have the checksum that was written with them".to_owned();
        return Err(ImageError::Damaged { reason });
    }
    Ok((header, sealed.len() + AT))
}

/// The contents of a header, with tables inside the sealed part, which ends at `end`.
fn contents((header, end): (&[u8; BYTES], usize)) -> Result<Header, ImageError> {
    let damaged = |reason: &str| Err(ImageError::Damaged { reason: reason.to_owned() });
    let mut tables = [Place::default(); TABLES];
    for (index, place) in tables.iter_mut().enumerate() {
        let at = DIRECTORY + 8 * index;
        *place = Place { offset: word(header, at) as usize, length: word(header, at + 4) as usize };
        if place.offset > end || place.length > end - place.offset {
            return damaged("a table is outside the sealed part");
        }
    }
    let imports_at = word(header, 40) as usize;
    if !imports_at.is_multiple_of(PAGE) {
        return damaged("the imports do not begin with a page");
    }
    let (machine, abi) = (word(header, MACHINE) as u16, wide(header, ABI));
    Ok(Header { machine, abi, needs_heap: word(header, 36) & NEEDS_HEAP != 0, imports_at, tables })
}
