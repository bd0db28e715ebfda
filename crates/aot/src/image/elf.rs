//! The shared library around an image.
//!
//! Addresses are offsets in the file. Five program headers: the readable, the executable and the writable
//! part, the dynamic table, and the non-executable stack. Local symbols name the functions, for profilers,
//! debuggers and disassemblers; the dynamic symbols are the header and, in a library for C, its entries and
//! exports (`exports.rs`).

use object::elf as e;
use object::write::elf::{FileHeader, ProgramHeader, Rel, SectionHeader, Sym, Writer as Elf};
use object::write::{StringId, WritableBuffer};

use super::exports::{EXPORTS_BYTES, Entries, ROUTINES, ROUTINES_AT};
use super::header::{self, Header, PROGRAM_HEADERS, Place, machine};
use super::place::{LIMIT, Placed};
use super::tables::{self, TABLES, Writer};
use super::{Compiled, ImageError, ImageParts, PAGE};

const HEADER_SYMBOL: &[u8] = b"brolga_image";
/// The size in bytes of a dynamic table entry, and of a relocation.
const DYNAMIC_BYTES: usize = 16;
const RELA_BYTES: usize = 24;
const TABLE_ALIGN: usize = 16;

/// A section of the file: its name, type, flags and range.
struct Section {
    name: StringId,
    sh_type: u32,
    flags: u64,
    place: Place,
    align: usize,
}

/// The bytes of the file. The sealed part precedes everything that only tools read.
pub(super) fn write(
    parts: &ImageParts<'_>,
    placed: &Placed<'_>,
    entries: Option<&Entries<'_>>,
    writer: &Writer,
    targets: &[u8],
    module: &[u8],
) -> Result<Vec<u8>, ImageError> {
    let failed = |error: object::write::Error| ImageError::Damaged { reason: error.to_string() };
    let import_bytes = 8 * placed.imports.len();
    // The local symbols of a function's versions differ, for tools.
    let local_name = |compiled: &Compiled<'_>| match (compiled.version, parts.targets.get(compiled.version)) {
        (1.., Some(target)) => format!("{}.{}", compiled.function.name, target.name),
        _ => compiled.function.name.clone(),
    };
    let local_names: Vec<String> = parts.functions.iter().map(local_name).collect();
    let mut buffer = Vec::new();
    let buffer_ref: &mut dyn WritableBuffer = &mut buffer;
    let mut elf = Elf::new(object::Endianness::Little, true, buffer_ref);

    // Ranges are reserved in the order in which they are written.
    elf.reserve_file_header();
    elf.reserve_program_headers(PROGRAM_HEADERS);
    let header_at = elf.reserve(header::BYTES, 8);
    debug_assert_eq!(header_at, header::AT);
    let symbol = elf.add_dynamic_string(HEADER_SYMBOL);
    let dynamic_symbol = elf.reserve_dynamic_symbol_index();
    debug_assert_eq!(dynamic_symbol.0, 1);
    // After the header symbol: the routines, and the entries.
    let mut strings_of_c: Vec<StringId> = Vec::new();
    let mut hashes = vec![None, Some(e::hash(HEADER_SYMBOL))];
    if let Some(entries) = entries {
        let of_entries = entries.places.iter().map(|&(name, ..)| (name, Some(e::hash(name.as_bytes()))));
        for (name, hash) in ROUTINES.into_iter().map(|name| (name, None)).chain(of_entries) {
            strings_of_c.push(elf.add_dynamic_string(name.as_bytes()));
            elf.reserve_dynamic_symbol_index();
            hashes.push(hash);
        }
    }
    let (buckets, chains) = (hashes.len() as u32 - 1, hashes.len() as u32);
    let hash_at = elf.reserve_hash(buckets, chains);
    let dynsym_at = elf.reserve_dynsym();
    let dynstr_at = elf.reserve_dynstr();
    let dynstr_bytes = elf.dynstr_len();
    let relocations_at = entries.map(|_| elf.reserve_relocations(ROUTINES.len(), true));
    let mut places = [Place::default(); TABLES];
    let contents: [&[u8]; TABLES] = {
        let mut contents: [&[u8]; TABLES] = [&[]; TABLES];
        contents[tables::CODE] = &placed.code;
        contents[tables::CONSTANTS] = &placed.constants;
        contents[tables::FUNCTIONS] = &writer.functions;
        contents[tables::LINES] = &writer.lines;
        contents[tables::INLINED] = &writer.inlined;
        contents[tables::MAPS] = &writer.maps;
        contents[tables::WORDS] = &writer.words;
        contents[tables::SIGNATURES] = &writer.signatures;
        contents[tables::IMPORTS] = &writer.imports;
        contents[tables::STRINGS] = &writer.strings;
        contents[tables::TARGETS] = targets;
        contents[tables::MODULE] = module;
        contents[tables::EXPORTS] = &writer.exports;
        contents[tables::NAMES] = &writer.names;
        contents[tables::INDEX] = &writer.index;
        contents[tables::PIECES] = &writer.pieces;
        contents[tables::CALLEES] = &writer.callees;
        contents
    };
    for index in tables::FUNCTIONS..TABLES {
        let offset = elf.reserve(contents[index].len(), TABLE_ALIGN);
        places[index] = Place { offset, length: contents[index].len() };
    }
    let read_end = elf.reserved_len();
    let entries_at = entries.map(|entries| elf.reserve(entries.code.len(), PAGE));
    let text_at = elf.reserve(placed.code.len(), PAGE);
    places[tables::CODE] = Place { offset: text_at, length: placed.code.len() };
    let imports_at = text_at + placed.imports_at;
    elf.reserve_until(imports_at);
    elf.reserve(import_bytes + placed.constants.len(), 1);
    places[tables::CONSTANTS] = Place { offset: imports_at + import_bytes, length: placed.constants.len() };
    let record_at = entries.map(|_| elf.reserve(EXPORTS_BYTES, 8));
    let dynamics: Vec<(i64, u64)> = [
        (e::DT_HASH, hash_at as u64),
        (e::DT_STRTAB, dynstr_at as u64),
        (e::DT_SYMTAB, dynsym_at as u64),
        (e::DT_STRSZ, dynstr_bytes as u64),
        (e::DT_SYMENT, 24),
    ]
    .into_iter()
    .chain(relocations_at.into_iter().flat_map(|at| {
        let rows =
            [(e::DT_RELA, at), (e::DT_RELASZ, RELA_BYTES * ROUTINES.len()), (e::DT_RELAENT, RELA_BYTES)];
        let flags = (e::DT_FLAGS_1, u64::from(e::DF_1_NODELETE));
        rows.map(|(tag, value)| (tag, value as u64)).into_iter().chain([flags])
    }))
    .chain([(e::DT_NULL, 0)])
    .collect();
    let dynamic_at = elf.reserve_dynamic(dynamics.len());
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
    let for_c = entries.zip(entries_at).zip(record_at).map(|((entries, at), record_at)| {
        let place = Place { offset: at, length: entries.code.len() };
        let flags = alloc | u64::from(e::SHF_EXECINSTR);
        let entries_section = section(&mut elf, b".brolga.entries", flags, place, PAGE);
        let place = Place { offset: record_at, length: EXPORTS_BYTES };
        let flags = alloc | u64::from(e::SHF_WRITE);
        section(&mut elf, b".brolga.exports", flags, place, 8);
        (entries, at, entries_section, record_at)
    });
    let relocations_name = relocations_at.map(|at| {
        let name = elf.add_section_name(b".rela.dyn");
        elf.reserve_section_index();
        (name, at)
    });
    elf.reserve_hash_section_index();
    elf.reserve_dynsym_section_index();
    elf.reserve_dynstr_section_index();
    elf.reserve_dynamic_section_index();
    let names: Vec<StringId> = local_names.iter().map(|name| elf.add_string(name.as_bytes())).collect();
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

    // Written in the same order.
    let file_header = FileHeader {
        os_abi: e::ELFOSABI_NONE,
        abi_version: 0,
        e_type: e::ET_DYN,
        e_machine: machine(parts.arch),
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
    program_header(e::PT_LOAD, e::PF_R | e::PF_X, entries_at.unwrap_or(text_at), text_end, PAGE);
    program_header(e::PT_LOAD, e::PF_R | e::PF_W, imports_at, write_end, PAGE);
    program_header(
        e::PT_DYNAMIC,
        e::PF_R | e::PF_W,
        dynamic_at,
        dynamic_at + dynamics.len() * DYNAMIC_BYTES,
        8,
    );
    program_header(e::PT_GNU_STACK, e::PF_R | e::PF_W, 0, 0, 16);
    let told = Header {
        machine: machine(parts.arch),
        abi: parts.abi,
        needs_heap: parts.needs_heap,
        imports_at: placed.imports_at,
        tables: places,
    };
    elf.pad_until(header_at);
    elf.write(&told.bytes());
    elf.write_hash(buckets, chains, |index| hashes.get(index as usize).copied().flatten());
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
    if let Some((entries, at, entries_section, _)) = for_c {
        let routines = ROUTINES.map(|_| (None, e::STT_NOTYPE, 0, 0));
        let functions = entries.places.iter().map(|&(_, offset, size)| {
            (Some(entries_section), e::STT_FUNC, (at + offset) as u64, size as u64)
        });
        for (&name, symbol) in strings_of_c.iter().zip(routines.into_iter().chain(functions)) {
            let (section, kind, st_value, st_size) = symbol;
            elf.write_dynamic_symbol(&Sym {
                name: Some(name),
                section,
                st_info: e::STB_GLOBAL << 4 | kind,
                st_other: e::STV_DEFAULT,
                st_shndx: e::SHN_UNDEF,
                st_value,
                st_size,
            });
        }
    }
    elf.write_dynstr();
    if let Some((.., record_at)) = for_c {
        elf.write_align_relocation();
        for number in 0..ROUTINES.len() {
            let r_offset = (record_at + ROUTINES_AT + 8 * number) as u64;
            let (r_sym, r_type) = (2 + number as u32, e::R_X86_64_GLOB_DAT);
            elf.write_relocation(true, &Rel { r_offset, r_sym, r_type, r_addend: 0 });
        }
    }
    for index in tables::FUNCTIONS..TABLES {
        elf.pad_until(places[index].offset);
        elf.write(contents[index]);
    }
    if let Some((entries, at, _, record_at)) = for_c {
        let Some(code) = entries.linked(at, record_at) else {
            return Err(ImageError::TooLarge { bytes: write_end, limit: LIMIT });
        };
        elf.pad_until(at);
        elf.write(&code);
    }
    elf.pad_until(text_at);
    elf.write(&placed.code);
    elf.pad_until(imports_at + import_bytes);
    elf.write(&placed.constants);
    if let Some((entries, _, _, record_at)) = for_c {
        elf.pad_until(record_at);
        let count = parts.library.map_or(0, |library| library.exports.len());
        elf.write(&entries.record(record_at - header_at, count));
    }
    elf.write_align_dynamic();
    for (tag, value) in dynamics {
        elf.write_dynamic(tag, value).map_err(failed)?;
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
    if let Some((name, at)) = relocations_name {
        let symbols = elf.dynsym_index();
        elf.write_section_header(&SectionHeader {
            name: Some(name),
            sh_type: e::SHT_RELA,
            sh_flags: alloc,
            sh_addr: at as u64,
            sh_offset: at as u64,
            sh_size: (RELA_BYTES * ROUTINES.len()) as u64,
            sh_link: symbols.0,
            sh_info: 0,
            sh_addralign: 8,
            sh_entsize: RELA_BYTES as u64,
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
    header::seal(&mut buffer, write_end, text_at..imports_at);
    Ok(buffer)
}
