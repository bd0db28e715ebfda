//! A file of symbols in memory, for debuggers: code in memory has no file of its own.
//!
//! ```text
//!   header │ .text of each unit: addresses, no bytes │ .symtab │ .strtab │ DWARF (`dwarf.rs`) │ section table
//! ```
//!
//! An ELF file for this machine whose sections of code have the addresses of the code and not its bytes. Each function is a
//! symbol with its address and size. DWARF repeats this, because debuggers that have DWARF for some code use nothing else.

use std::sync::Arc;

use crate::debug::code_map::CodeUnit;
use crate::debug::{MACHINE, dwarf};

const HEADER_BYTES: u64 = 64;
const SECTION_BYTES: usize = 64;

/// Kinds of sections.
const PROGBITS: u32 = 1;
const SYMTAB: u32 = 2;
const STRTAB: u32 = 3;
const NOBITS: u32 = 8;

/// Flags of sections: has addresses, is code.
const ALLOC: u64 = 2;
const EXECUTABLE: u64 = 4;

/// One section, before its place in the file is known.
struct Section {
    name: &'static str,
    kind: u32,
    flags: u64,
    address: u64,
    /// The size of one without bytes in the file.
    size: u64,
    bytes: Vec<u8>,
    link: u32,
    info: u32,
    entry: u64,
}

impl Section {
    fn new(name: &'static str, kind: u32, bytes: Vec<u8>) -> Section {
        let size = bytes.len() as u64;
        Section { name, kind, flags: 0, address: 0, size, bytes, link: 0, info: 0, entry: 0 }
    }
}

/// The symbols and lines of units, as a file.
pub(crate) fn symbol_file(units: &[Arc<CodeUnit>], source: &str) -> Vec<u8> {
    let mut sections = vec![Section::new("", 0, Vec::new())];
    let mut symbols = vec![0; 24];
    let mut strings = vec![0];
    for unit in units {
        let addresses = unit.addresses();
        let mut code = Section::new(".text", NOBITS, Vec::new());
        (code.flags, code.address, code.size) =
            (ALLOC | EXECUTABLE, addresses.start as u64, addresses.len() as u64);
        for function in unit.functions() {
            symbols.extend((strings.len() as u32).to_ne_bytes());
            // A global function.
            symbols.extend([0x12, 0]);
            symbols.extend((sections.len() as u16).to_ne_bytes());
            symbols.extend((function.address() as u64).to_ne_bytes());
            symbols.extend((function.size() as u64).to_ne_bytes());
            text(&mut strings, function.name());
        }
        sections.push(code);
    }
    let mut table = Section::new(".symtab", SYMTAB, symbols);
    (table.link, table.info, table.entry) = (sections.len() as u32 + 1, 1, 24);
    sections.push(table);
    sections.push(Section::new(".strtab", STRTAB, strings));
    // Data that does not fit DWARF is left out: symbols are always there.
    for (name, bytes) in dwarf::sections(units, source).unwrap_or_default() {
        sections.push(Section::new(name, PROGBITS, bytes));
    }
    write(sections)
}

fn write(mut sections: Vec<Section>) -> Vec<u8> {
    let names_index = sections.len();
    let mut names = vec![];
    let mut name_offsets = Vec::new();
    for name in sections.iter().map(|section| section.name).chain([".shstrtab"]) {
        name_offsets.push(names.len() as u32);
        names.extend(name.bytes());
        names.push(0);
    }
    sections.push(Section::new(".shstrtab", STRTAB, names));

    let mut body = Vec::new();
    let mut table = Vec::with_capacity(sections.len() * SECTION_BYTES);
    for (section, name) in sections.iter().zip(name_offsets) {
        body.resize(body.len().next_multiple_of(8), 0);
        let offset = HEADER_BYTES + body.len() as u64;
        body.extend(&section.bytes);
        table.extend(name.to_ne_bytes());
        table.extend(section.kind.to_ne_bytes());
        for word in [section.flags, section.address, offset, section.size] {
            table.extend(word.to_ne_bytes());
        }
        table.extend(section.link.to_ne_bytes());
        table.extend(section.info.to_ne_bytes());
        // Alignment, and the size of one entry.
        for word in [8, section.entry] {
            table.extend(word.to_ne_bytes());
        }
    }
    body.resize(body.len().next_multiple_of(8), 0);

    let mut file = Vec::new();
    // 64 bits, the byte order, version 1.
    file.extend(b"\x7fELF");
    file.extend([2, if cfg!(target_endian = "little") { 1 } else { 2 }, 1]);
    file.resize(16, 0);
    // A program, so that symbols are addresses.
    file.extend(2u16.to_ne_bytes());
    file.extend(MACHINE.to_ne_bytes());
    file.extend(1u32.to_ne_bytes());
    for word in [0, 0, HEADER_BYTES + body.len() as u64] {
        file.extend(word.to_ne_bytes());
    }
    file.extend(0u32.to_ne_bytes());
    for half in [HEADER_BYTES as u16, 0, 0, SECTION_BYTES as u16, sections.len() as u16, names_index as u16] {
        file.extend(half.to_ne_bytes());
    }
    file.extend(body);
    file.extend(table);
    file
}

fn text(bytes: &mut Vec<u8>, text: &str) {
    bytes.extend(text.bytes().filter(|byte| *byte != 0));
    bytes.push(0);
}
