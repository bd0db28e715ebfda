//! The shared library around an image.
//!
//! Addresses are offsets of the file. Five program headers: what is read, what is executed, what is written, the dynamic table, and that the stack is not
//! executable. Local symbols name the functions, for profilers, debuggers and disassemblers; the only dynamic symbol is the header's.

use object::elf as e;
use object::write::elf::{FileHeader, ProgramHeader, SectionHeader, Sym, Writer as Elf};
use object::write::{StringId, WritableBuffer};

use super::header::{self, Header, MACHINE, PROGRAM_HEADERS, Place};
use super::place::Placed;
use super::tables::{self, TABLES, Writer};
use super::{ImageError, ImageParts, PAGE};

const HEADER_SYMBOL: &[u8] = b"brolga_image";
/// `DT_HASH`, `DT_STRTAB`, `DT_SYMTAB`, `DT_STRSZ`, `DT_SYMENT`, `DT_NULL`.
const DYNAMICS: usize = 6;
const TABLE_ALIGN: usize = 16;

/// A section of the file: its name, type, flags and place.
struct Section {
    name: StringId,
    sh_type: u32,
    flags: u64,
    place: Place,
    align: usize,
}

/// The bytes of the file.
pub(super) fn write(
    parts: &ImageParts<'_>,
    placed: &Placed<'_>,
    writer: &Writer,
    features: &[u8],
    module: &[u8],
) -> Result<Vec<u8>, ImageError> {
    let failed = |error: object::write::Error| ImageError::Damaged { reason: error.to_string() };
    let import_bytes = 8 * placed.imports.len();
    let mut buffer = Vec::new();
    let buffer_ref: &mut dyn WritableBuffer = &mut buffer;
    let mut elf = Elf::new(object::Endianness::Little, true, buffer_ref);

    // Places, in the order in which they are written.
    elf.reserve_file_header();
    elf.reserve_program_headers(PROGRAM_HEADERS);
    let header_at = elf.reserve(header::BYTES, 8);
    debug_assert_eq!(header_at, header::AT);
    let symbol = elf.add_dynamic_string(HEADER_SYMBOL);
    let dynamic_symbol = elf.reserve_dynamic_symbol_index();
    debug_assert_eq!(dynamic_symbol.0, 1);
    let hash_at = elf.reserve_hash(1, 2);
    let dynsym_at = elf.reserve_dynsym();
    let dynstr_at = elf.reserve_dynstr();
    let dynstr_bytes = elf.dynstr_len();
    let mut places = [Place::default(); TABLES];
    let contents: [&[u8]; TABLES] = {
        let mut contents: [&[u8]; TABLES] = [&[]; TABLES];
        contents[tables::CODE] = &placed.code;
        contents[tables::CONSTANTS] = &placed.constants;
        contents[tables::FUNCTIONS] = &writer.functions;
        contents[tables::LINES] = &writer.lines;
        contents[tables::MAPS] = &writer.maps;
        contents[tables::WORDS] = &writer.words;
        contents[tables::SIGNATURES] = &writer.signatures;
        contents[tables::IMPORTS] = &writer.imports;
        contents[tables::STRINGS] = &writer.strings;
        contents[tables::FEATURES] = features;
        contents[tables::MODULE] = module;
        contents
    };
    for index in tables::FUNCTIONS..TABLES {
        let offset = elf.reserve(contents[index].len(), TABLE_ALIGN);
        places[index] = Place { offset, length: contents[index].len() };
    }
    let read_end = elf.reserved_len();
    let text_at = elf.reserve(placed.code.len(), PAGE);
    places[tables::CODE] = Place { offset: text_at, length: placed.code.len() };
    let imports_at = text_at + placed.imports_at;
    elf.reserve_until(imports_at);
    elf.reserve(import_bytes + placed.constants.len(), 1);
    places[tables::CONSTANTS] = Place { offset: imports_at + import_bytes, length: placed.constants.len() };
    let dynamic_at = elf.reserve_dynamic(DYNAMICS);
    let write_end = elf.reserved_len();

    // Sections for tools.
    let alloc = u64::from(e::SHF_ALLOC);
    let mut sections = Vec::new();
    elf.reserve_null_section_index();
    let mut section = |elf: &mut Elf<'_>, name: &'static [u8], flags: u64, place: Place, align: usize| {
        let name = elf.add_section_name(name);
        sections.push(Section { name, sh_type: e::SHT_PROGBITS, flags, place, align });
        elf.reserve_section_index()
    };
    let tables_at = places[tables::FUNCTIONS].offset;
    let all = Place { offset: tables_at, length: read_end - tables_at };
    let header_place = Place { offset: header_at, length: header::BYTES };
    let header_section = section(&mut elf, b".brolga", alloc, header_place, 8);
    section(&mut elf, b".brolga.tables", alloc, all, TABLE_ALIGN);
    let text_section =
        section(&mut elf, b".text", alloc | u64::from(e::SHF_EXECINSTR), places[tables::CODE], PAGE);
    let writable = Place { offset: imports_at, length: import_bytes + placed.constants.len() };
    section(&mut elf, b".brolga.imports", alloc | u64::from(e::SHF_WRITE), writable, PAGE);
    elf.reserve_hash_section_index();
    elf.reserve_dynsym_section_index();
    elf.reserve_dynstr_section_index();
    elf.reserve_dynamic_section_index();
    let names: Vec<StringId> =
        parts.functions.iter().map(|compiled| elf.add_string(compiled.function.name.as_bytes())).collect();
    for _ in &names {
        elf.reserve_symbol_index(Some(text_section));
    }
    elf.reserve_symtab_section_index();
    elf.reserve_symtab();
    elf.reserve_strtab_section_index();
    elf.reserve_strtab();
    elf.reserve_shstrtab_section_index();
    elf.reserve_shstrtab();
    elf.reserve_section_headers();

    // The same order again.
    let file_header = FileHeader {
        os_abi: e::ELFOSABI_NONE,
        abi_version: 0,
        e_type: e::ET_DYN,
        e_machine: MACHINE,
        e_entry: 0,
        e_flags: 0,
    };
    elf.write_file_header(&file_header).map_err(failed)?;
    elf.write_align_program_headers();
    let mut program_header = |p_type, p_flags, from: usize, to: usize, align: usize| {
        elf.write_program_header(&ProgramHeader {
            p_type,
            p_flags,
            p_offset: from as u64,
            p_vaddr: from as u64,
            p_paddr: from as u64,
            p_filesz: (to - from) as u64,
            p_memsz: (to - from) as u64,
            p_align: align as u64,
        });
    };
    let text_end = text_at + placed.code.len();
    program_header(e::PT_LOAD, e::PF_R, 0, read_end, PAGE);
    program_header(e::PT_LOAD, e::PF_R | e::PF_X, text_at, text_end, PAGE);
    program_header(e::PT_LOAD, e::PF_R | e::PF_W, imports_at, write_end, PAGE);
    program_header(e::PT_DYNAMIC, e::PF_R | e::PF_W, dynamic_at, dynamic_at + DYNAMICS * 16, 8);
    program_header(e::PT_GNU_STACK, e::PF_R | e::PF_W, 0, 0, 16);
    let told = Header {
        abi: parts.abi,
        needs_heap: parts.needs_heap,
        imports_at: placed.imports_at,
        tables: places,
    };
    elf.pad_until(header_at);
    elf.write(&told.bytes());
    elf.write_hash(1, 2, |index| (index == 1).then(|| e::hash(HEADER_SYMBOL)));
    elf.write_null_dynamic_symbol();
    elf.write_dynamic_symbol(&Sym {
        name: Some(symbol),
        section: Some(header_section),
        st_info: e::STB_GLOBAL << 4 | e::STT_OBJECT,
        st_other: e::STV_DEFAULT,
        st_shndx: 0,
        st_value: header_at as u64,
        st_size: header::BYTES as u64,
    });
    elf.write_dynstr();
    for index in tables::FUNCTIONS..TABLES {
        elf.pad_until(places[index].offset);
        elf.write(contents[index]);
    }
    elf.pad_until(text_at);
    elf.write(&placed.code);
    elf.pad_until(imports_at + import_bytes);
    elf.write(&placed.constants);
    elf.write_align_dynamic();
    for (tag, value) in [
        (e::DT_HASH, hash_at),
        (e::DT_STRTAB, dynstr_at),
        (e::DT_SYMTAB, dynsym_at),
        (e::DT_STRSZ, dynstr_bytes),
        (e::DT_SYMENT, 24),
        (e::DT_NULL, 0),
    ] {
        elf.write_dynamic(tag, value as u64).map_err(failed)?;
    }
    elf.write_null_symbol();
    for ((compiled, name), &offset) in parts.functions.iter().zip(&names).zip(&placed.offsets) {
        elf.write_symbol(&Sym {
            name: Some(*name),
            section: Some(text_section),
            st_info: e::STB_LOCAL << 4 | e::STT_FUNC,
            st_other: e::STV_DEFAULT,
            st_shndx: 0,
            st_value: text_at as u64 + u64::from(offset),
            st_size: compiled.function.code.len() as u64,
        });
    }
    elf.write_strtab();
    elf.write_shstrtab();
    elf.write_null_section_header();
    for section in &sections {
        elf.write_section_header(&SectionHeader {
            name: Some(section.name),
            sh_type: section.sh_type,
            sh_flags: section.flags,
            sh_addr: section.place.offset as u64,
            sh_offset: section.place.offset as u64,
            sh_size: section.place.length as u64,
            sh_link: 0,
            sh_info: 0,
            sh_addralign: section.align as u64,
            sh_entsize: 0,
        });
    }
    elf.write_hash_section_header(hash_at as u64);
    elf.write_dynsym_section_header(dynsym_at as u64, 1);
    elf.write_dynstr_section_header(dynstr_at as u64);
    elf.write_dynamic_section_header(dynamic_at as u64);
    elf.write_symtab_section_header(names.len() as u32 + 1);
    elf.write_strtab_section_header();
    elf.write_shstrtab_section_header();
    debug_assert_eq!(elf.reserved_len(), elf.len());
    header::seal(&mut buffer);
    Ok(buffer)
}
