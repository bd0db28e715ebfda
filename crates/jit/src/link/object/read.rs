//! An ELF relocatable file as sections, symbols and relocations. Everything that placement relies on is checked here.
//!
//! | section | becomes |
//! |---|---|
//! | executable | code |
//! | writable, `.data.rel.ro*` | read-only once it is relocated |
//! | writable, without bytes in the file | writable and zero |
//! | thread-local | a part of the template of the thread-local block |
//! | `.init_array*`, `.ctors*` | functions that run at loading, by priority |
//! | `.fini_array*`, `.dtors*` | functions that run at unloading, by priority |
//! | `.eh_frame` | the unwind table |
//! | not allocated, notes | left out |

use std::collections::BTreeSet;

use object::read::elf::{ElfFile64, FileHeader, SectionHeader, Sym};
use object::{
    LittleEndian, Object, ObjectComdat, ObjectSection, ObjectSymbol, RelocationFlags, RelocationTarget,
    SymbolSection, elf,
};

use super::error::{ObjectFileError, malformed, unsupported};
use super::forms::{self, Form, Machine};

type Elf<'d> = ElfFile64<'d, LittleEndian>;

/// Zeroed memory and files have to be smaller: offsets in a unit are 32 bits wide.
const MAX_SECTION: u64 = 1 << 30;

/// Each thread has its own copy of thread-local sections.
const MAX_TLS: u64 = 1 << 24;

/// The greatest alignment of a section: units are placed at multiples of a page.
const MAX_ALIGN: u64 = 4096;

const FOR_LINK_TIME: &str = "code for link-time optimisation (compile with -fno-lto)";

/// The priority of functions without one.
const NO_PRIORITY: u32 = 65_535;

/// A file, read and checked.
#[derive(Debug)]
pub(super) struct Member {
    pub(super) name: String,
    pub(super) machine: Machine,
    /// By index in the file; `None` for a section that is left out.
    pub(super) sections: Vec<Option<Section>>,
    /// By index in the file.
    pub(super) symbols: Vec<SymbolRow>,
    /// COMDAT groups: the name, and the sections.
    pub(super) groups: Vec<(String, Vec<usize>)>,
}

/// A section that takes memory, or lists functions to run.
#[derive(Debug)]
pub(super) struct Section {
    pub(super) name: String,
    pub(super) kind: Kind,
    pub(super) align: usize,
    pub(super) size: usize,
    /// Empty when the section is zero.
    pub(super) bytes: Vec<u8>,
    pub(super) relocs: Vec<Reloc>,
}

/// The use of a section.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    Code,
    ReadOnly,
    Writable,
    /// In each thread.
    Tls,
    Unwind,
    /// Addresses of functions to call at loading, by rising priority; backwards within a section of `.ctors`.
    Init {
        priority: u32,
        backwards: bool,
    },
    /// The same for unloading.
    Fini {
        priority: u32,
        backwards: bool,
    },
}

/// A place to fill in.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reloc {
    pub(super) offset: usize,
    pub(super) form: Form,
    pub(super) symbol: usize,
    pub(super) addend: i64,
}

/// A symbol.
#[derive(Debug)]
pub(super) struct SymbolRow {
    pub(super) name: String,
    pub(super) at: At,
    pub(super) strength: Strength,
    /// Whether other files may define or name it.
    pub(super) is_global: bool,
    /// Whether only files that are linked with its own may name it.
    pub(super) is_hidden: bool,
    pub(super) ty: Type,
    pub(super) size: u64,
}

/// Where a symbol is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum At {
    Undefined,
    Section { index: usize, offset: u64 },
    Absolute(u64),
    Common { size: u64, align: u64 },
}

/// The entity that a symbol names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Type {
    Function,
    /// A function that returns the address of the function.
    Indirect,
    Tls,
    Other,
}

/// Which of several definitions is taken: the greatest, and the first of equal ones.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Strength {
    /// Also of a reference: it may be missing.
    Weak,
    Common,
    Strong,
}

impl Member {
    /// Reads a file for `machine`.
    pub(super) fn read(name: &str, bytes: &[u8], machine: Machine) -> Result<Member, ObjectFileError> {
        let file = open(name, bytes, machine)?;
        let reader = Reader { name, file: &file, machine };
        let count = file.sections().map(|section| section.index().0 + 1).max().unwrap_or(0);
        let mut sections: Vec<Option<Section>> = Vec::new();
        sections.resize_with(count, || None);
        for section in file.sections() {
            sections[section.index().0] = reader.section(&section)?;
        }
        let symbols = reader.symbols(&sections)?;
        for section in file.sections() {
            if let Some(kept) = &mut sections[section.index().0] {
                kept.relocs = reader.relocations(&section, kept, &symbols)?;
            }
        }
        let groups = reader.groups(count)?;
        Ok(Member { name: name.to_owned(), machine, sections, symbols, groups })
    }

    /// The names of a file's global symbols alone, for an archive's index; `None` if the file is for another machine.
    pub(super) fn names(bytes: &[u8], machine: Machine) -> Option<Vec<Name>> {
        let file = open("", bytes, machine).ok()?;
        let in_group: BTreeSet<usize> = file
            .comdats()
            .flat_map(|group| group.sections().map(|index| index.0).collect::<Vec<_>>())
            .collect();
        let names = file.symbols().filter(|symbol| symbol.is_global()).filter_map(|symbol| {
            let name = symbol.name().ok().filter(|name| !name.is_empty())?.to_owned();
            let row = symbol.elf_symbol();
            Some(Name {
                name,
                is_defined: !symbol.is_undefined(),
                is_hidden: is_hidden(row.st_other()),
                is_weak: symbol.is_weak(),
                is_tls: row.st_type() == elf::STT_TLS,
                is_in_group: symbol.section_index().is_some_and(|index| in_group.contains(&index.0)),
            })
        });
        Some(names.collect())
    }
}

/// A name in an archive's member.
pub(super) struct Name {
    pub(super) name: String,
    pub(super) is_defined: bool,
    pub(super) is_hidden: bool,
    pub(super) is_weak: bool,
    /// Whether all definitions of it are the same by the rules of C++.
    pub(super) is_in_group: bool,
    pub(super) is_tls: bool,
}

fn open<'d>(name: &str, bytes: &'d [u8], machine: Machine) -> Result<Elf<'d>, ObjectFileError> {
    /// The starts of LLVM's bitcode, plain and wrapped.
    const BITCODE: [[u8; 4]; 2] = [[b'B', b'C', 0xc0, 0xde], [0xde, 0xc0, 0x17, 0x0b]];
    if bytes.first_chunk().is_some_and(|start| BITCODE.contains(start)) {
        return Err(unsupported(name, FOR_LINK_TIME));
    }
    let file = Elf::parse(bytes).map_err(|error| malformed(name, error))?;
    let header = file.elf_header();
    let found = header.e_machine.get(LittleEndian);
    if found != machine.number() {
        return Err(unsupported(name, format!("code for another machine (ELF machine {found})")));
    }
    match header.e_type(LittleEndian) {
        elf::ET_REL => Ok(file),
        elf::ET_DYN | elf::ET_EXEC => Err(unsupported(
            name,
            "a linked program or shared library (`Dylib::add_library` opens libraries)",
        )),
        other => Err(unsupported(name, format!("an ELF file of type {other}"))),
    }
}

fn is_hidden(st_other: u8) -> bool {
    matches!(st_other & 3, elf::STV_HIDDEN | elf::STV_INTERNAL)
}

/// The priority in the rest of a section's name: `.101` after `.init_array`.
fn priority_of(rest: &str) -> u32 {
    rest.strip_prefix('.').and_then(|text| text.parse().ok()).unwrap_or(NO_PRIORITY)
}

/// The same after `.ctors`, where numbers count down from the priority of functions without one.
fn old_priority_of(rest: &str) -> u32 {
    if rest.is_empty() { NO_PRIORITY } else { NO_PRIORITY - priority_of(rest).min(NO_PRIORITY) }
}

struct Reader<'a, 'd> {
    name: &'a str,
    file: &'a Elf<'d>,
    machine: Machine,
}

type ElfSection<'d, 'f> = object::read::elf::ElfSection64<'d, 'f, LittleEndian>;

impl<'d> Reader<'_, 'd> {
    fn section(&self, section: &ElfSection<'d, '_>) -> Result<Option<Section>, ObjectFileError> {
        let header = section.elf_section_header();
        let (flags, ty) = (header.sh_flags(LittleEndian), header.sh_type(LittleEndian));
        let name = section.name().map_err(|error| malformed(self.name, error))?;
        if name == ".note.GNU-stack" && flags & u64::from(elf::SHF_EXECINSTR) != 0 {
            let what = "an executable stack (addresses of nested functions)";
            return Err(unsupported(self.name, what));
        }
        if flags & u64::from(elf::SHF_ALLOC) == 0 || ty == elf::SHT_NOTE {
            return Ok(None);
        }
        let Some(kind) = self.kind(name, flags, ty)? else { return Ok(None) };
        let (size, align) = (section.size(), section.align().max(1));
        if size > if kind == Kind::Tls { MAX_TLS } else { MAX_SECTION } {
            return Err(unsupported(self.name, format!("the section `{name}` of {size} bytes")));
        }
        if !align.is_power_of_two() {
            return Err(malformed(self.name, format!("the section `{name}` is aligned to {align}")));
        }
        if align > MAX_ALIGN {
            return Err(unsupported(
                self.name,
                format!("the section `{name}`, which is aligned to {align} bytes"),
            ));
        }
        let bytes = match ty {
            elf::SHT_NOBITS => Vec::new(),
            _ => section.data().map_err(|error| malformed(self.name, error))?.to_vec(),
        };
        let (size, align) = (size as usize, align as usize);
        let is_odd = kind == Kind::Unwind && size % 4 != 0;
        if ty != elf::SHT_NOBITS && bytes.len() != size || is_odd {
            return Err(malformed(self.name, format!("the section `{name}` is not as long as it should be")));
        }
        Ok(Some(Section { name: name.to_owned(), kind, align, size, bytes, relocs: Vec::new() }))
    }

    fn kind(&self, name: &str, flags: u64, ty: u32) -> Result<Option<Kind>, ObjectFileError> {
        let has = |flag: u32| flags & u64::from(flag) != 0;
        let is_of =
            |base: &str| name.strip_prefix(base).filter(|rest| rest.is_empty() || rest.starts_with('.'));
        let kind = if ty == elf::SHT_INIT_ARRAY || is_of(".init_array").is_some() {
            let priority = is_of(".init_array").map_or(NO_PRIORITY, priority_of);
            Kind::Init { priority, backwards: false }
        } else if ty == elf::SHT_FINI_ARRAY || is_of(".fini_array").is_some() {
            let priority = is_of(".fini_array").map_or(NO_PRIORITY, priority_of);
            Kind::Fini { priority, backwards: false }
        } else if let Some(rest) = is_of(".ctors") {
            Kind::Init { priority: old_priority_of(rest), backwards: true }
        } else if let Some(rest) = is_of(".dtors") {
            Kind::Fini { priority: old_priority_of(rest), backwards: true }
        } else if ty == elf::SHT_PREINIT_ARRAY || [".preinit_array", ".init", ".fini"].contains(&name) {
            let what = format!("functions that run when a program starts or ends (`{name}`)");
            return Err(unsupported(self.name, what));
        } else if name == ".eh_frame" {
            Kind::Unwind
        } else if has(elf::SHF_TLS) {
            Kind::Tls
        } else if has(elf::SHF_EXECINSTR) && has(elf::SHF_WRITE) {
            return Err(unsupported(
                self.name,
                format!("the section `{name}`, which is writable and executable"),
            ));
        } else if has(elf::SHF_EXECINSTR) {
            Kind::Code
        } else if has(elf::SHF_WRITE) && is_of(".data.rel.ro").is_none() {
            Kind::Writable
        } else if ty == elf::SHT_PROGBITS || ty == elf::SHT_NOBITS {
            Kind::ReadOnly
        } else {
            return Ok(None);
        };
        Ok(Some(kind))
    }

    fn symbols(&self, sections: &[Option<Section>]) -> Result<Vec<SymbolRow>, ObjectFileError> {
        let mut symbols: Vec<SymbolRow> = Vec::new();
        for symbol in self.file.symbols() {
            let row = symbol.elf_symbol();
            let name = symbol.name().map_err(|error| malformed(self.name, error))?.to_owned();
            let (value, size) = (row.st_value(LittleEndian), row.st_size(LittleEndian));
            let at = match symbol.section() {
                SymbolSection::Section(index) => {
                    let kept = sections.get(index.0).and_then(Option::as_ref);
                    if kept.is_some_and(|section| value > section.size as u64) {
                        return Err(malformed(self.name, format!("`{name}` is outside of its section")));
                    }
                    At::Section { index: index.0, offset: value }
                }
                SymbolSection::Common => self.common(&name, size, value)?,
                SymbolSection::Absolute => At::Absolute(value),
                _ => At::Undefined,
            };
            let strength = match at {
                _ if symbol.is_weak() || row.st_bind() == elf::STB_GNU_UNIQUE => Strength::Weak,
                At::Common { .. } => Strength::Common,
                _ => Strength::Strong,
            };
            let ty = match row.st_type() {
                elf::STT_GNU_IFUNC => Type::Indirect,
                elf::STT_FUNC => Type::Function,
                elf::STT_TLS => Type::Tls,
                _ => Type::Other,
            };
            let is_global = symbol.is_global() && !name.is_empty();
            let is_hidden = is_hidden(row.st_other());
            if name == "__gnu_lto_slim" {
                return Err(unsupported(self.name, FOR_LINK_TIME));
            }
            let row = SymbolRow { name, at, strength, is_global, is_hidden, ty, size };
            // The first symbol of a file is not one.
            while symbols.len() < symbol.index().0 {
                symbols.push(SymbolRow::nothing());
            }
            symbols.push(row);
        }
        Ok(symbols)
    }

    fn common(&self, name: &str, size: u64, align: u64) -> Result<At, ObjectFileError> {
        let align = align.max(1);
        match size <= MAX_SECTION && align.is_power_of_two() && align <= MAX_ALIGN {
            true => Ok(At::Common { size, align }),
            false => {
                let what = format!("the common symbol `{name}` of {size} bytes, aligned to {align}");
                Err(unsupported(self.name, what))
            }
        }
    }

    fn relocations(
        &self,
        section: &ElfSection<'d, '_>,
        kept: &Section,
        symbols: &[SymbolRow],
    ) -> Result<Vec<Reloc>, ObjectFileError> {
        let mut relocs = Vec::new();
        for (offset, relocation) in section.relocations() {
            let RelocationFlags::Elf { r_type } = relocation.flags() else { continue };
            if r_type == 0 || self.machine.is_hint(r_type) {
                continue;
            }
            if relocation.has_implicit_addend() {
                return Err(unsupported(self.name, "relocations without addends"));
            }
            let form = match forms::form_of(self.machine, r_type) {
                Ok(form) => form,
                Err(what) => {
                    let what = format!("{what} in `{}`, of the relocation type {r_type}", kept.name);
                    return Err(unsupported(self.name, what));
                }
            };
            let size = form.size();
            let fits = usize::try_from(offset)
                .ok()
                .filter(|&at| at.checked_add(size).is_some_and(|end| end <= kept.bytes.len()));
            let Some(offset) = fits else {
                return Err(malformed(self.name, format!("a relocation is outside of `{}`", kept.name)));
            };
            let symbol = match relocation.target() {
                RelocationTarget::Symbol(index) if index.0 < symbols.len() => index.0,
                RelocationTarget::Absolute if !symbols.is_empty() => 0,
                _ => return Err(malformed(self.name, "a relocation refers to a symbol that is not there")),
            };
            relocs.push(Reloc { offset, form, symbol, addend: relocation.addend() });
        }
        Ok(relocs)
    }

    fn groups(&self, count: usize) -> Result<Vec<(String, Vec<usize>)>, ObjectFileError> {
        let mut groups = Vec::new();
        for group in self.file.comdats() {
            let name = group.name().map_err(|error| malformed(self.name, error))?.to_owned();
            let sections: Vec<usize> = group.sections().map(|index| index.0).collect();
            if sections.iter().any(|&index| index >= count) {
                return Err(malformed(
                    self.name,
                    format!("the group `{name}` has a section that is not there"),
                ));
            }
            groups.push((name, sections));
        }
        Ok(groups)
    }
}

impl SymbolRow {
    /// Whether it is a number.
    pub(super) fn is_absolute(&self) -> bool {
        matches!(self.at, At::Absolute(_))
    }

    /// The entry at index 0: the target of relocations without a symbol.
    fn nothing() -> SymbolRow {
        SymbolRow {
            name: String::new(),
            at: At::Absolute(0),
            strength: Strength::Strong,
            is_global: false,
            is_hidden: false,
            ty: Type::Other,
            size: 0,
        }
    }
}
