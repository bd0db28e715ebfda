//! Object files and static archives of other compilers, linked into the process.
//!
//! ```text
//!   archive ── the member that defines it ──► object file ──► LinkUnit: a piece for each section ──► LoadedObject
//! ```
//!
//! ELF for x86-64. Sections with code or data become functions and data objects of one link unit, named after member and
//! section; a reference to a symbol becomes one to its section and an offset. Every undefined symbol is looked up by name, as a C
//! symbol.
//!
//! | relocation | becomes |
//! |---|---|
//! | `R_X86_64_64` | the address |
//! | `R_X86_64_PC32` | the distance; an undefined symbol has to be in reach |
//! | `R_X86_64_PLT32` | the distance; for an undefined symbol that to a jump of our own, which reaches everywhere |
//! | `R_X86_64_GOTPCREL`, `…X`, `REX_…X` | the distance to a word of our own with the address |
//!
//! | symbol | treatment |
//! |---|---|
//! | weak, defined | a strong definition of the same link unit overrides it, also for references of its own file; of several weak ones the first stays |
//! | weak, undefined | its address is null without a definition |
//! | hidden, internal | seen by members of the same archive only |
//! | strong, twice in one link unit | refused |
//! | chosen at run time (`ifunc`), unique in the process, common | refused |
//!
//! Members of an archive that share a weak or a hidden symbol are linked together, so the choice among definitions does not depend on the order of
//! requests.
//!
//! Anything else is refused by name: thread-local storage, relative references in data, other machines, functions that run when a file is
//! loaded or unloaded (`.init_array`, `.ctors`, …). Unwind tables and debug information are left out: no exception and no unwinder
//! passes this code.
//!
//! Nothing here calls the linked code. A `foreigncall` of it trusts it as any C library.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use brolga_codegen::compiled::{CompiledFunction, MadeBy, RelocKind, RelocTarget, Relocation, Symbol};
use object::read::archive::ArchiveFile;
use object::{
    Architecture, File, Object, ObjectSection, ObjectSymbol, RelocationFlags, RelocationTarget, SectionIndex,
    SectionKind, SymbolFlags, SymbolIndex, SymbolSection, elf,
};

use crate::engine::Jit;
use crate::link::foreign::{Foreign, LoadedObject};
use crate::link::linker::{DataObject, DataRelocation, Import, LinkError, LinkUnit, Resolver};

/// Why an object file or archive cannot be used. The file is at fault, or asks for what is not done here.
#[derive(thiserror::Error, Clone, PartialEq, Eq, Debug)]
pub enum ObjectFileError {
    /// It is not what it should be.
    #[error("`{name}` cannot be read: {reason}")]
    Malformed {
        /// The file or member.
        name: String,
        /// The reason.
        reason: String,
    },
    /// It is right, but uses something that cannot be linked here.
    #[error("`{name}` cannot be linked here: {what}")]
    Unsupported {
        /// The file or member.
        name: String,
        /// The kind of construct.
        what: String,
    },
}

/// A jump that reaches everywhere: `jmp [rip + 0]`, and behind it the address.
const JUMP: [u8; 14] = [0xff, 0x25, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];

/// An object file, read and checked.
#[derive(Clone, Debug)]
pub struct ObjectFile {
    unit: LinkUnit,
    /// Where each symbol is that other files may name.
    defined: BTreeMap<String, Defined>,
    /// Its undefined symbols, and whether it can do without them.
    undefined: BTreeMap<String, Strength>,
}

/// A definition of an object file.
#[derive(Clone, Debug)]
struct Defined {
    piece: Symbol,
    offset: u64,
    strength: Strength,
    /// Whether it ends with the link unit.
    is_hidden: bool,
}

/// How much a symbol insists.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Strength {
    /// It gives way to another definition, or may be missing.
    Weak,
    Strong,
}

impl ObjectFile {
    /// Reads an object file. `name` is how messages and symbol tables call it.
    pub fn parse(name: &str, bytes: &[u8]) -> Result<ObjectFile, ObjectFileError> {
        let mut file = ObjectFile::parse_open(name, bytes)?;
        file.settle();
        Ok(file)
    }

    /// Reads an object file that others may be joined to: references to weak symbols of its own are by name until
    /// [`ObjectFile::settle`].
    fn parse_open(name: &str, bytes: &[u8]) -> Result<ObjectFile, ObjectFileError> {
        let file = open(name, bytes)?;
        let mut reader = Reader {
            name,
            file: &file,
            pieces: BTreeMap::new(),
            unit: LinkUnit::default(),
            undefined: BTreeMap::new(),
            extra: BTreeSet::new(),
        };
        for section in file.sections() {
            reader.place(&section)?;
        }
        for section in file.sections() {
            reader.section(&section)?;
        }
        let mut defined = BTreeMap::new();
        for symbol in file.symbols().filter(is_offered) {
            let Some(index) = symbol.section_index() else { continue };
            if let Some(piece) = reader.pieces.get(&index.0) {
                let text = symbol.name().map_err(|error| malformed(name, error))?;
                if file.section_by_index(index).is_ok_and(|section| symbol.address() > section.size()) {
                    return Err(malformed(name, format!("`{text}` lies behind its section")));
                }
                let what = match elf_type(&symbol) {
                    elf::STT_GNU_IFUNC => "which is chosen at run time (`ifunc`)",
                    _ if elf_binding(&symbol) == elf::STB_GNU_UNIQUE => "which is unique in the process",
                    _ => {
                        let found = Defined {
                            piece: piece.clone(),
                            offset: symbol.address(),
                            strength: strength(&symbol),
                            is_hidden: is_hidden(&symbol),
                        };
                        defined.insert(text.to_owned(), found);
                        continue;
                    }
                };
                return Err(unsupported(name, format!("the symbol `{text}`, {what}")));
            }
        }
        Ok(ObjectFile { unit: reader.unit, defined, undefined: reader.undefined })
    }

    /// Takes another file in, to be linked and freed together. Of two definitions of one symbol the strong one stays, or the first of two
    /// weak ones.
    fn join(&mut self, name: &str, other: ObjectFile) -> Result<(), ObjectFileError> {
        self.unit.functions.extend(other.unit.functions);
        self.unit.data.extend(other.unit.data);
        for (symbol, place) in other.defined {
            match self.defined.entry(symbol) {
                Entry::Vacant(free) => drop(free.insert(place)),
                Entry::Occupied(mut first) => match (first.get().strength, place.strength) {
                    (_, Strength::Weak) => {}
                    (Strength::Weak, Strength::Strong) => drop(first.insert(place)),
                    (Strength::Strong, Strength::Strong) => {
                        let what =
                            format!("the symbol `{}`, which another member defines as well", first.key());
                        return Err(unsupported(name, what));
                    }
                },
            }
        }
        for (symbol, strength) in other.undefined {
            self.need(symbol, strength);
        }
        Ok(())
    }

    fn need(&mut self, symbol: String, strength: Strength) {
        note_need(&mut self.undefined, symbol, strength);
    }

    /// References between the joined files are resolved from now on.
    fn settle(&mut self) {
        let defined = &self.defined;
        self.undefined.retain(|name, _| !defined.contains_key(name));
        let found = |symbol: &Symbol| match symbol {
            Symbol::Foreign { name, .. } => defined.get(name),
            _ => None,
        };
        for function in &mut self.unit.functions {
            for reloc in &mut function.relocs {
                let RelocTarget::Symbol(index) = reloc.target else { continue };
                // Each relocation has its own symbol.
                let Some(symbol) = function.symbols.get_mut(index as usize) else { continue };
                if let Some(found) = found(symbol) {
                    reloc.addend = reloc.addend.wrapping_add(found.offset as i64);
                    *symbol = found.piece.clone();
                }
            }
        }
        for reloc in self.unit.data.iter_mut().flat_map(|object| &mut object.relocs) {
            if let Some(found) = found(&reloc.symbol) {
                reloc.addend = reloc.addend.wrapping_add(found.offset as i64);
                reloc.symbol = found.piece.clone();
            }
        }
    }

    /// The symbols that it gives to others, and whether each gives way to another definition.
    pub fn defined(&self) -> impl Iterator<Item = (&str, bool)> {
        let visible = self.defined.iter().filter(|(_, defined)| !defined.is_hidden);
        visible.map(|(name, defined)| (name.as_str(), defined.strength == Strength::Weak))
    }

    /// The symbols that it needs from others, those that may be missing included.
    pub fn undefined(&self) -> impl Iterator<Item = &str> {
        self.undefined.keys().map(String::as_str)
    }
}

fn note_need(needs: &mut BTreeMap<String, Strength>, symbol: String, strength: Strength) {
    let known = needs.entry(symbol).or_insert(strength);
    if strength == Strength::Strong {
        *known = strength;
    }
}

fn malformed(name: &str, reason: impl std::fmt::Display) -> ObjectFileError {
    ObjectFileError::Malformed { name: name.to_owned(), reason: reason.to_string() }
}

fn unsupported(name: &str, what: impl Into<String>) -> ObjectFileError {
    ObjectFileError::Unsupported { name: name.to_owned(), what: what.into() }
}

fn open<'d>(name: &str, bytes: &'d [u8]) -> Result<File<'d>, ObjectFileError> {
    let file = File::parse(bytes).map_err(|error| malformed(name, error))?;
    if file.architecture() != Architecture::X86_64 || !cfg!(target_arch = "x86_64") {
        return Err(unsupported(name, format!("code for {:?}", file.architecture())));
    }
    Ok(file)
}

/// The two halves of a symbol's `st_info`, and its `st_other`.
fn elf_info<'d>(symbol: &impl ObjectSymbol<'d>) -> (u8, u8, u8) {
    match symbol.flags() {
        SymbolFlags::Elf { st_info, st_other } => (st_info & 15, st_info >> 4, st_other),
        _ => (0, 0, 0),
    }
}

fn elf_type<'d>(symbol: &impl ObjectSymbol<'d>) -> u8 {
    elf_info(symbol).0
}

fn elf_binding<'d>(symbol: &impl ObjectSymbol<'d>) -> u8 {
    elf_info(symbol).1
}

fn is_hidden<'d>(symbol: &impl ObjectSymbol<'d>) -> bool {
    matches!(elf_info(symbol).2 & 3, elf::STV_HIDDEN | elf::STV_INTERNAL)
}

fn strength<'d>(symbol: &impl ObjectSymbol<'d>) -> Strength {
    if symbol.is_weak() { Strength::Weak } else { Strength::Strong }
}

/// Whether other files may name a symbol.
fn is_offered<'d>(symbol: &impl ObjectSymbol<'d>) -> bool {
    symbol.is_global() && !symbol.is_undefined() && symbol.name().is_ok_and(|name| !name.is_empty())
}

struct Reader<'a, 'd> {
    name: &'a str,
    file: &'a File<'d>,
    /// The symbols of sections.
    pieces: BTreeMap<usize, Symbol>,
    unit: LinkUnit,
    undefined: BTreeMap<String, Strength>,
    /// Jumps and words of our own that were made.
    extra: BTreeSet<String>,
}

impl<'d> Reader<'_, 'd> {
    /// Decides what a section becomes.
    fn place(&mut self, section: &impl ObjectSection<'d>) -> Result<(), ObjectFileError> {
        let text = section.name().unwrap_or("");
        let runs = [".init_array", ".fini_array", ".preinit_array", ".ctors", ".dtors", ".init", ".fini"];
        // `.init_array.101` has a priority.
        let is_of =
            |one: &str| text.strip_prefix(one).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
        let types = [elf::SHT_INIT_ARRAY, elf::SHT_FINI_ARRAY, elf::SHT_PREINIT_ARRAY];
        let is_array = matches!(section.kind(), SectionKind::Elf(kind) if types.contains(&kind));
        if section.size() > 0 && (is_array || runs.into_iter().any(is_of)) {
            let what = format!("functions that run when it is loaded or unloaded (`{text}`)");
            return Err(unsupported(self.name, what));
        }
        let name = format!("{}#{}{}", self.name, section.index().0, section.name().unwrap_or(""));
        let is_left_out = section.size() == 0 || section.name().is_ok_and(|name| name == ".eh_frame");
        match section.kind() {
            _ if is_left_out => {}
            SectionKind::Text => drop(self.pieces.insert(section.index().0, Symbol::Function(name))),
            SectionKind::Data
            | SectionKind::ReadOnlyData
            | SectionKind::ReadOnlyDataWithRel
            | SectionKind::ReadOnlyString
            | SectionKind::UninitializedData => {
                drop(self.pieces.insert(section.index().0, Symbol::Data(name)))
            }
            _ => {}
        }
        Ok(())
    }

    fn section(&mut self, section: &impl ObjectSection<'d>) -> Result<(), ObjectFileError> {
        if matches!(section.kind(), SectionKind::Tls | SectionKind::UninitializedTls) && section.size() > 0 {
            return Err(unsupported(self.name, "thread-local storage"));
        }
        let Some(piece) = self.pieces.get(&section.index().0).cloned() else { return Ok(()) };
        let align = u32::try_from(section.align().max(1))
            .map_err(|_| malformed(self.name, "a section is aligned beyond all memory"))?;
        let data = section.data().map_err(|error| malformed(self.name, error))?;
        match piece {
            Symbol::Function(name) => {
                let mut function = code(name, with_end(data.to_vec()), align);
                for (offset, relocation) in section.relocations() {
                    let offset =
                        u32::try_from(offset).map_err(|_| malformed(self.name, "a section is huge"))?;
                    let (kind, symbol, addend) = self.in_code(&relocation)?;
                    let target = RelocTarget::Symbol(function.symbols.len() as u32);
                    function.symbols.push(symbol);
                    function.relocs.push(Relocation { offset, kind, target, addend });
                }
                self.unit.functions.push(function);
            }
            Symbol::Data(name) => {
                let bytes = match section.kind() {
                    SectionKind::UninitializedData => {
                        let size = usize::try_from(section.size()).ok().filter(|size| *size <= 1 << 30);
                        vec![0; size.ok_or_else(|| malformed(self.name, "a section is huge"))?]
                    }
                    _ => data.to_vec(),
                };
                let bytes = with_end(bytes);
                let writable = matches!(section.kind(), SectionKind::Data | SectionKind::UninitializedData);
                let mut relocs = Vec::new();
                for (offset, relocation) in section.relocations() {
                    let offset =
                        u32::try_from(offset).map_err(|_| malformed(self.name, "a section is huge"))?;
                    if r_type(&relocation) != Some(elf::R_X86_64_64) {
                        return Err(self.strange(&relocation, "data"));
                    }
                    let (symbol, at) = self.target(&relocation)?;
                    relocs.push(DataRelocation {
                        offset,
                        symbol,
                        addend: relocation.addend().wrapping_add(at),
                    });
                }
                self.unit.data.push(DataObject { name, bytes, align, writable, relocs });
            }
            _ => {}
        }
        Ok(())
    }

    /// The form of a relocation in code.
    fn in_code(
        &mut self,
        relocation: &object::Relocation,
    ) -> Result<(RelocKind, Symbol, i64), ObjectFileError> {
        let (symbol, at) = self.target(relocation)?;
        let addend = relocation.addend().wrapping_add(at);
        match (r_type(relocation), &symbol) {
            (Some(elf::R_X86_64_64), _) => Ok((RelocKind::Abs8, symbol, addend)),
            (Some(elf::R_X86_64_PLT32), Symbol::Foreign { name, .. }) => {
                let jump = format!("{}#jump {name}", self.name);
                if self.extra.insert(jump.clone()) {
                    let mut function = code(jump.clone(), JUMP.to_vec(), 16);
                    let target = RelocTarget::Symbol(0);
                    function.symbols.push(symbol.clone());
                    function.relocs.push(Relocation { offset: 6, kind: RelocKind::Abs8, target, addend: 0 });
                    self.unit.functions.push(function);
                }
                Ok((RelocKind::X86CallPcRel4, Symbol::Function(jump), addend))
            }
            (Some(elf::R_X86_64_PC32 | elf::R_X86_64_PLT32), _) => Ok((RelocKind::X86PcRel4, symbol, addend)),
            (Some(elf::R_X86_64_GOTPCREL | elf::R_X86_64_GOTPCRELX | elf::R_X86_64_REX_GOTPCRELX), _) => {
                let word = format!("{}#word {symbol} {at}", self.name);
                if self.extra.insert(word.clone()) {
                    let relocs = vec![DataRelocation { offset: 0, symbol, addend: at }];
                    let (name, bytes) = (word.clone(), vec![0; 8]);
                    self.unit.data.push(DataObject { name, bytes, align: 8, writable: false, relocs });
                }
                Ok((RelocKind::X86PcRel4, Symbol::Data(word), relocation.addend()))
            }
            _ => Err(self.strange(relocation, "code")),
        }
    }

    /// Where a relocation points: a piece and an offset in it, or something undefined.
    fn target(&mut self, relocation: &object::Relocation) -> Result<(Symbol, i64), ObjectFileError> {
        let RelocationTarget::Symbol(SymbolIndex(index)) = relocation.target() else {
            return Err(self.strange(relocation, "a section"));
        };
        let symbol = self.file.symbol_by_index(SymbolIndex(index));
        let symbol = symbol.map_err(|error| malformed(self.name, error))?;
        let name = symbol.name().unwrap_or("").to_owned();
        match symbol.section() {
            // Another file may have a definition that goes first.
            SymbolSection::Section(SectionIndex(section))
                if symbol.is_weak() && self.pieces.contains_key(&section) && !name.is_empty() =>
            {
                Ok((Symbol::Foreign { name, library: None, weak: false }, 0))
            }
            SymbolSection::Section(SectionIndex(section)) => match self.pieces.get(&section) {
                Some(piece) => Ok((piece.clone(), symbol.address() as i64)),
                None => Err(unsupported(self.name, format!("a reference to `{name}`, which is left out"))),
            },
            SymbolSection::Undefined if !name.is_empty() => {
                note_need(&mut self.undefined, name.clone(), strength(&symbol));
                Ok((Symbol::Foreign { name, library: None, weak: false }, 0))
            }
            _ => Err(unsupported(self.name, format!("the symbol `{name}`, which is in no section"))),
        }
    }

    fn strange(&self, relocation: &object::Relocation, place: &str) -> ObjectFileError {
        let kind = r_type(relocation).map_or_else(|| "?".to_owned(), |kind| kind.to_string());
        unsupported(self.name, format!("a relocation of type {kind} in {place}"))
    }
}

fn r_type(relocation: &object::Relocation) -> Option<u32> {
    match relocation.flags() {
        RelocationFlags::Elf { r_type } => Some(r_type),
        _ => None,
    }
}

/// A section with one byte more: a label at its end lies in it too, and never where something else begins. An address of a symbol so says
/// whose it is.
fn with_end(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes.push(0xCC);
    bytes
}

fn code(name: String, code: Vec<u8>, align: u32) -> CompiledFunction {
    CompiledFunction {
        name,
        code,
        align,
        relocs: Vec::new(),
        symbols: Vec::new(),
        frame_bytes: 0,
        frame_maps: Vec::new(),
        lines: Vec::new(),
        file: None,
        variables: Vec::new(),
        made_by: MadeBy::Other,
        listing: None,
    }
}

/// A static archive. Members are read on request.
#[derive(Clone, Debug)]
pub struct Archive {
    bytes: Arc<[u8]>,
    /// Names and places of members.
    members: Vec<(String, Range<usize>)>,
    /// The member that defines a symbol that others see; the first one, if there are several.
    index: BTreeMap<String, usize>,
    /// The same for symbols that members alone see.
    hidden: BTreeMap<String, usize>,
    /// Members that are linked together because they share a symbol, by member; those that are alone are not here.
    groups: BTreeMap<usize, Arc<[usize]>>,
}

impl Archive {
    /// Reads the members' names and definitions. A member that is no object file for this machine defines nothing.
    pub fn parse(name: &str, bytes: impl Into<Arc<[u8]>>) -> Result<Archive, ObjectFileError> {
        let bytes: Arc<[u8]> = bytes.into();
        let archive = ArchiveFile::parse(&*bytes).map_err(|error| malformed(name, error))?;
        let (mut members, mut index, mut hidden) = (Vec::new(), BTreeMap::new(), BTreeMap::new());
        // Definitions and references may join members.
        let mut definers: BTreeMap<String, (Vec<usize>, Strength)> = BTreeMap::new();
        let mut users: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for member in archive.members() {
            let member = member.map_err(|error| malformed(name, error))?;
            let (from, size) = member.file_range();
            let range = from as usize..from.saturating_add(size) as usize;
            let Some(content) = bytes.get(range.clone()) else {
                return Err(malformed(name, "a member ends behind the file, or is not in it"));
            };
            let text = String::from_utf8_lossy(member.name()).into_owned();
            let number = members.len();
            members.push((text, range));
            let Ok(file) = open(&members[number].0, content) else { continue };
            for symbol in file.symbols() {
                let text = symbol.name().unwrap_or("").to_owned();
                if is_offered(&symbol) {
                    let names = if is_hidden(&symbol) { &mut hidden } else { &mut index };
                    names.entry(text.clone()).or_insert(number);
                    let (by, weakest) = definers.entry(text).or_insert((Vec::new(), Strength::Strong));
                    by.push(number);
                    if strength(&symbol) == Strength::Weak {
                        *weakest = Strength::Weak;
                    }
                } else if symbol.is_undefined() && !text.is_empty() {
                    users.entry(text).or_default().push(number);
                }
            }
        }
        let weak =
            definers.values().filter(|(_, weakest)| *weakest == Strength::Weak).map(|(by, _)| by.clone());
        let shared =
            hidden.iter().filter(|(name, _)| !index.contains_key(*name)).filter_map(|(name, &by)| {
                let mut together = users.get(name)?.clone();
                together.push(by);
                Some(together)
            });
        let groups = groups(members.len(), weak.chain(shared));
        Ok(Archive { bytes, members, index, hidden, groups })
    }

    /// The member that defines a symbol.
    pub fn member_with(&self, symbol: &str) -> Option<usize> {
        self.index.get(symbol).copied()
    }

    /// Reads a member, and those that it needs and that need it, and those that share a symbol with one, which are linked together. Says which
    /// they are.
    pub fn component(&self, number: usize) -> Result<(ObjectFile, BTreeSet<usize>), ObjectFileError> {
        let mut files: BTreeMap<usize, ObjectFile> = BTreeMap::new();
        let mut callers: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
        let mut open = vec![number];
        while let Some(at) = open.pop() {
            if files.contains_key(&at) {
                continue;
            }
            let file = self.member(at)?;
            let with = |name: &str| self.member_with(name).or_else(|| self.hidden.get(name).copied());
            for needed in file.undefined().filter_map(with) {
                callers.entry(needed).or_default().insert(at);
                open.push(needed);
            }
            for &other in self.groups.get(&at).into_iter().flat_map(|group| group.iter()) {
                callers.entry(at).or_default().insert(other);
                open.push(other);
            }
            files.insert(at, file);
        }
        let mut component = BTreeSet::new();
        let mut open = vec![number];
        while let Some(at) = open.pop() {
            if component.insert(at) {
                open.extend(callers.get(&at).into_iter().flatten());
            }
        }
        let mut joined: Option<ObjectFile> = None;
        for (at, file) in files.into_iter().filter(|(at, _)| component.contains(at)) {
            match &mut joined {
                None => joined = Some(file),
                Some(joined) => joined.join(&self.members[at].0, file)?,
            }
        }
        let mut joined = joined.ok_or_else(|| malformed("archive", "there is no such member"))?;
        joined.settle();
        Ok((joined, component))
    }

    /// Reads a member.
    fn member(&self, number: usize) -> Result<ObjectFile, ObjectFileError> {
        let member =
            self.members.get(number).and_then(|(name, range)| Some((name, self.bytes.get(range.clone())?)));
        let (name, bytes) = member.ok_or_else(|| malformed("archive", "there is no such member"))?;
        // Members may have one name.
        ObjectFile::parse_open(&format!("{name}({number})"), bytes)
    }
}

/// The classes of members that sets with members in common give; by member, without those that are alone.
fn groups(count: usize, sets: impl Iterator<Item = Vec<usize>>) -> BTreeMap<usize, Arc<[usize]>> {
    /// The first of a member's class, as far as it is known.
    fn first(leads: &mut [usize], mut at: usize) -> usize {
        while leads[at] != at {
            leads[at] = leads[leads[at]];
            at = leads[at];
        }
        at
    }
    let mut leads: Vec<usize> = (0..count).collect();
    for set in sets {
        for &other in set.iter().skip(1) {
            let (a, b) = (first(&mut leads, set[0]), first(&mut leads, other));
            leads[a.max(b)] = a.min(b);
        }
    }
    let mut classes: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for at in 0..count {
        classes.entry(first(&mut leads, at)).or_default().push(at);
    }
    let mut groups = BTreeMap::new();
    for class in classes.into_values().filter(|class| class.len() > 1) {
        let class: Arc<[usize]> = class.into();
        groups.extend(class.iter().map(|&at| (at, class.clone())));
    }
    groups
}

impl Jit {
    /// Links an object file. `imports` has what it needs; what it does not have is looked up as the run time
    /// looks up C symbols.
    pub fn load_object(
        &self,
        object: &ObjectFile,
        imports: &BTreeMap<String, Foreign>,
    ) -> Result<LoadedObject, LinkError> {
        let imports = Imports { jit: self, imports, needs: &object.undefined };
        let unit = self.link_unit(&object.unit, &imports, None)?;
        let address = |(name, defined): (&String, &Defined)| {
            let start = match &defined.piece {
                Symbol::Function(name) => unit.function(name),
                Symbol::Data(name) => unit.data(name),
                _ => None,
            };
            Some((name.clone(), start?.wrapping_add(defined.offset as usize)))
        };
        let visible = object.defined.iter().filter(|(_, defined)| !defined.is_hidden);
        let symbols = visible.filter_map(address).collect();
        Ok(LoadedObject { unit, symbols })
    }
}

struct Imports<'a> {
    jit: &'a Jit,
    imports: &'a BTreeMap<String, Foreign>,
    needs: &'a BTreeMap<String, Strength>,
}

impl Resolver for Imports<'_> {
    fn resolve(&self, symbol: &Symbol) -> Result<Import, String> {
        let Symbol::Foreign { name, .. } = symbol else { return Err("not in the object file".into()) };
        if let Some(given) = self.imports.get(name) {
            return Ok(given.import());
        }
        match self.jit.runtime().foreign().resolve(name, None) {
            Ok(address) => Ok(Import { address, owner: None }),
            Err(_) if self.needs.get(name) == Some(&Strength::Weak) => Ok(Import { address: 0, owner: None }),
            Err(error) => Err(error.to_string()),
        }
    }
}
