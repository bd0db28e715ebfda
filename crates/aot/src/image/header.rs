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
//! The checksum is a CRC-32 of the sealed part without the text, with zeros in its own position: it detects every
//! change of up to 32 consecutive bits, and misses any other with a probability of 2⁻³². It detects damage, not
//! malice. The text has checksums of its own, one for each function (`text.rs`), which the first one covers.

use std::ops::Range;

use brolga_ir::Arch;
use bytes::Bytes;

use super::tables::{CODE, CONSTANTS, FUNCTION_WORDS, FUNCTIONS, PIECES, TABLES};
use super::{ImageError, ImageFile, PAGE};

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

impl ImageFile {
    /// Whether the header that the system's loader has put into memory equals the file's.
    ///
    /// # Errors
    /// As [`ImageFile::bytes`].
    pub fn has_header(&self, in_memory: &[u8; BYTES]) -> Result<bool, ImageError> {
        Ok(self.start(AT + BYTES)?.get(AT..) == Some(in_memory))
    }
}

/// Writes the end of the sealed part and its checksum into a file; `text` has its own checksums.
pub(super) fn seal(file: &mut [u8], end: usize, text: Range<usize>) {
    if let Some(field) = file.get_mut(AT + 16..AT + 24) {
        field.copy_from_slice(&(end as u64).to_le_bytes());
    }
    let of = |range: Range<usize>| file.get(range).unwrap_or_default();
    let sum = checksum(of(AT..text.start), of(text.end..end));
    if let Some(field) = file.get_mut(AT + CHECKSUM..AT + CHECKSUM + 4) {
        field.copy_from_slice(&sum.to_le_bytes());
    }
}

/// Corrects the checksums of damaged bytes, so that tests reach the checks after them. Does nothing without a header.
pub fn seal_again(file: &mut [u8]) {
    let word = |file: &[u8], at: usize| {
        file.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |word| u32::from_le_bytes(*word) as usize)
    };
    let place = |file: &[u8], table: usize| {
        let at = AT + DIRECTORY + 8 * table;
        (word(file, at), word(file, at + 4))
    };
    let end = word(file, AT + 16).min(file.len());
    let text_at = place(file, CODE).0;
    let text = text_at..text_at.saturating_add(word(file, AT + 40)).min(end);
    let ((functions, bytes), (pieces, _)) = (place(file, FUNCTIONS), place(file, PIECES));
    let count = bytes / (4 * FUNCTION_WORDS);
    let offset = |file: &[u8], row: usize, column: usize| {
        word(file, functions.saturating_add(4 * (FUNCTION_WORDS * row + column)))
    };
    let tail =
        |file: &[u8]| count.checked_sub(1).map_or(0, |row| offset(file, row, 2) + offset(file, row, 3));
    for row in 0..=count.min(file.len()) {
        let start = |row| if row < count { offset(file, row, 2) } else { tail(file) };
        let stop = if row < count { start(row + 1) } else { text.len() };
        let code = file.get(text.start.saturating_add(start(row))..text.start.saturating_add(stop));
        let sum = checksum_of(&[code.unwrap_or_default()]);
        if let Some(field) = file.get_mut(pieces.saturating_add(8 * row)..).and_then(<[u8]>::first_chunk_mut)
        {
            *field = sum.to_le_bytes();
        }
    }
    if text.start >= AT + BYTES && text.start <= text.end {
        seal(file, end, text);
    }
}

/// The checksum of a sealed part: from the header to the text, and from there on.
fn checksum(front: &[u8], back: &[u8]) -> u32 {
    let (before, rest) = front.split_at(CHECKSUM.min(front.len()));
    checksum_of(&[before, &[0; 4], rest.get(4..).unwrap_or_default(), back])
}

/// The CRC-32 of bytes.
pub(super) fn checksum_of(parts: &[&[u8]]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    parts.iter().for_each(|part| hasher.update(part));
    hasher.finalize()
}

/// Everything but the text, which is read at opening.
pub(super) struct Described {
    pub(super) header: Header,
    /// The file up to the text.
    pub(super) front: Bytes,
    /// The text in the file, with the padding up to the imports.
    pub(super) text: Range<usize>,
    /// From the imports to the end of the sealed part.
    pub(super) back: Bytes,
}

/// Reads everything but the text of a file, and checks it against the file and this process.
pub(super) fn read(file: &ImageFile, expected: &Expected<'_>) -> Result<Described, ImageError> {
    let described = read_any(file)?;
    let Header { machine: found, abi, .. } = described.header;
    let known = machine(expected.arch);
    if found != known {
        return Err(ImageError::Machine { found, known });
    }
    if abi != expected.abi {
        return Err(ImageError::Abi { found: abi, known: expected.abi });
    }
    Ok(described)
}

/// Reads everything but the text of a file for whatever machine and ABI, and checks it against the file.
pub(super) fn read_any(file: &ImageFile) -> Result<Described, ImageError> {
    let start = file.start(AT + BYTES)?;
    let (header, end) = checked(&start, file.length())?;
    let damaged = |reason: &str| ImageError::Damaged { reason: reason.to_owned() };
    let text_at = word(header, DIRECTORY + 8 * CODE) as usize;
    let imports_at = word(header, 40) as usize;
    if !imports_at.is_multiple_of(PAGE) {
        return Err(damaged("the imports do not begin with a page"));
    }
    let text = text_at..text_at.saturating_add(imports_at);
    if text_at < AT + BYTES || text.end > end {
        return Err(damaged("the code is outside the sealed part"));
    }
    let (front, back) = (file.read(0..text.start)?, file.read(text.end..end)?);
    if front.get(..start.len()) != Some(&*start)
        || checksum(front.get(AT..).unwrap_or_default(), &back) != word(header, CHECKSUM)
    {
        return Err(damaged("its bytes do not have the checksum that was written with them"));
    }
    let header = contents(header, &text, end)?;
    Ok(Described { header, front, text, back })
}

fn word(header: &[u8; BYTES], at: usize) -> u32 {
    u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
}

fn wide(header: &[u8; BYTES], at: usize) -> u64 {
    u64::from(word(header, at)) | u64::from(word(header, at + 4)) << 32
}

/// The header of this version at the start of a file with this length, and the end of its sealed part.
fn checked(start: &[u8], length: usize) -> Result<(&[u8; BYTES], usize), ImageError> {
    let not = |reason| Err(ImageError::NotAnImage { reason });
    if start.get(..4) != Some(&ELF_MAGIC) {
        return not("it is not an ELF file");
    }
    let Some(magic) = start.get(AT..AT + 8) else {
        return not("it ends before the header of an image");
    };
    if magic != MAGIC {
        return not("it has no header of an image");
    }
    // The place of the version is the same in all versions, and the size of the header is not.
    if let Some(version) = start.get(AT + 8..).and_then(<[u8]>::first_chunk)
        && u32::from_le_bytes(*version) != VERSION
    {
        return Err(ImageError::Version { found: u32::from_le_bytes(*version), known: VERSION });
    }
    let Some(header) = start.get(AT..).and_then(<[u8]>::first_chunk::<BYTES>) else {
        return not("it ends before the header of an image");
    };
    let end = wide(header, 16);
    let sealed = usize::try_from(end).ok().filter(|&end| end <= length && end >= AT + BYTES);
    let Some(sealed) = sealed else {
        let reason = format!("it has {length} bytes, and was written with {end} or more");
        return Err(ImageError::Damaged { reason });
    };
    Ok((header, sealed))
}

/// The contents of a header. Tables are before the text, and constants after it, up to `end`.
fn contents(header: &[u8; BYTES], text: &Range<usize>, end: usize) -> Result<Header, ImageError> {
    let damaged = |reason: &str| Err(ImageError::Damaged { reason: reason.to_owned() });
    let mut tables = [Place::default(); TABLES];
    for (index, place) in tables.iter_mut().enumerate() {
        let at = DIRECTORY + 8 * index;
        *place = Place { offset: word(header, at) as usize, length: word(header, at + 4) as usize };
        let part = match index {
            CODE => text.clone(),
            CONSTANTS => text.end..end,
            FUNCTIONS.. => 0..text.start,
        };
        if place.offset < part.start || place.offset > part.end || place.length > part.end - place.offset {
            return damaged("a table is outside its part of the file");
        }
    }
    let (machine, abi) = (word(header, MACHINE) as u16, wide(header, ABI));
    let imports_at = text.len();
    Ok(Header { machine, abi, needs_heap: word(header, 36) & NEEDS_HEAP != 0, imports_at, tables })
}
