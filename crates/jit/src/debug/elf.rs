//! A file of symbols in memory: what debuggers want to know about code that has no file.
//!
//! ```text
//!   header │ .text of each unit: addresses, no bytes │ .symtab │ .strtab │ .debug_abbrev │ .debug_info │ .debug_line │ section table
//! ```
//!
//! An ELF file for this machine whose sections of code say where the code is and do not contain it. Each function is a
//! symbol with its address and size. DWARF 4 says the same again, because debuggers that have it for some code believe only
//! it: each unit is a compilation unit with its functions, and with a line program of one sequence for each function that has
//! lines.
//!
//! Not done: variables, types, frame information (frames have frame pointers, by which debuggers walk them).

use std::sync::Arc;

use crate::debug::code_map::CodeUnit;

/// ELF's number of this machine.
pub(crate) const MACHINE: u16 = if cfg!(target_arch = "x86_64") { 62 } else { 183 };

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
    let dwarf = Dwarf::new(units, source);
    sections.push(Section::new(".debug_abbrev", PROGBITS, ABBREVIATIONS.to_vec()));
    sections.push(Section::new(".debug_info", PROGBITS, dwarf.info));
    sections.push(Section::new(".debug_line", PROGBITS, dwarf.lines));
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

/// The two kinds of entries, each as a tag, whether entries lie in it, and pairs of attribute and form.
#[rustfmt::skip]
const ABBREVIATIONS: [u8; 28] = [
    // A compilation unit: name, language, first address, size, line program.
    1, 0x11, 1, 0x03, 0x08, 0x13, 0x0b, 0x11, 0x01, 0x12, 0x07, 0x10, 0x17, 0, 0,
    // A function: name, first address, size, visible outside.
    2, 0x2e, 0, 0x03, 0x08, 0x11, 0x01, 0x12, 0x07, 0x3f, 0x0c, 0, 0,
];

/// C, whose names debuggers take as they are.
const LANGUAGE: u8 = 2;

struct Dwarf {
    info: Vec<u8>,
    lines: Vec<u8>,
}

impl Dwarf {
    fn new(units: &[Arc<CodeUnit>], source: &str) -> Dwarf {
        let mut dwarf = Dwarf { info: Vec::new(), lines: Vec::new() };
        for unit in units {
            let program = dwarf.lines.len() as u32;
            dwarf.lines.extend(line_program(unit, source));
            let mut body = Vec::new();
            // The version, the place of the abbreviations, the size of an address.
            body.extend(4u16.to_ne_bytes());
            body.extend(0u32.to_ne_bytes());
            body.push(8);
            body.push(1);
            text(&mut body, source);
            body.push(LANGUAGE);
            let addresses = unit.addresses();
            place(&mut body, addresses.start, addresses.len());
            body.extend(program.to_ne_bytes());
            for function in unit.functions() {
                body.push(2);
                text(&mut body, function.name());
                place(&mut body, function.address(), function.size());
                body.push(1);
            }
            body.push(0);
            dwarf.info.extend((body.len() as u32).to_ne_bytes());
            dwarf.info.extend(body);
        }
        dwarf
    }
}

fn text(bytes: &mut Vec<u8>, text: &str) {
    bytes.extend(text.bytes().filter(|byte| *byte != 0));
    bytes.push(0);
}

fn place(bytes: &mut Vec<u8>, address: usize, size: usize) {
    bytes.extend((address as u64).to_ne_bytes());
    bytes.extend((size as u64).to_ne_bytes());
}

/// The line table of a unit. No special opcodes: `set address`, `advance line`, `copy`.
fn line_program(unit: &CodeUnit, source: &str) -> Vec<u8> {
    let mut header = Vec::new();
    // Instructions of one byte, one operation each, statements, line base and range, the first special opcode.
    header.extend([1, 1, 1, 0, 1, 13]);
    // How many operands the standard opcodes 1 to 12 have.
    header.extend([0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1]);
    // No directories; one file without directory, time and size.
    header.push(0);
    text(&mut header, source);
    header.extend([0, 0, 0, 0]);

    let mut program = Vec::new();
    let set_address = |program: &mut Vec<u8>, address: usize| {
        program.extend([0, 9, 2]);
        program.extend((address as u64).to_ne_bytes());
    };
    for function in unit.functions().filter(|function| !function.lines().is_empty()) {
        let mut line = 1i64;
        for &(offset, next) in function.lines() {
            set_address(&mut program, function.address() + offset as usize);
            program.push(3);
            signed_leb128(&mut program, i64::from(next) - line);
            program.push(1);
            line = i64::from(next);
        }
        set_address(&mut program, function.address() + function.size());
        program.extend([0, 1, 1]);
    }

    let mut body = Vec::new();
    body.extend(4u16.to_ne_bytes());
    body.extend((header.len() as u32).to_ne_bytes());
    body.extend(header);
    body.extend(program);
    let mut all = (body.len() as u32).to_ne_bytes().to_vec();
    all.extend(body);
    all
}

fn signed_leb128(bytes: &mut Vec<u8>, mut value: i64) {
    loop {
        let low = value as u8 & 0x7f;
        value >>= 7;
        if value == 0 && low & 0x40 == 0 || value == -1 && low & 0x40 != 0 {
            bytes.push(low);
            return;
        }
        bytes.push(low | 0x80);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_dwarf_has_them() {
        let encoded = |value| {
            let mut bytes = Vec::new();
            signed_leb128(&mut bytes, value);
            bytes
        };
        assert_eq!(encoded(2), [2]);
        assert_eq!(encoded(-2), [0x7e]);
        assert_eq!(encoded(127), [0xff, 0]);
        assert_eq!(encoded(-128), [0x80, 0x7f]);
        assert_eq!(encoded(129), [0x81, 1]);
    }
}
