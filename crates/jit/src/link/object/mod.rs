//! Object files and static archives of other compilers, linked into the process.
//!
//! ```text
//!   archive ── the member that defines it ──► member ─┐
//!   object file ─────────────────────────────► member ┴─► ObjectFile ── imports ──► LoadedObject ── start ──► runs
//! ```
//!
//! | file | content |
//! |---|---|
//! | `error.rs` | why a file cannot be used |
//! | `read.rs` | a file as sections, symbols and relocations; the table of sections |
//! | `forms.rs` | the relocations of x86-64 and aarch64 |
//! | `archive.rs` | archives: which members are linked together |
//! | `layout.rs` | where sections, slots and stubs go |
//! | `place.rs` | addresses of symbols, and bytes in memory |
//! | `stub.rs` | the machine code of stubs |
//! | `own_code.rs` | code that an embedder has made, as an object file |
//! | `start.rs` | functions that choose functions, initialisers, finalisers, unwind tables |
//! | `tls.rs` | thread-local storage by look-up |
//! | `descriptor.rs` | the function that descriptors of thread-local symbols call |
//! | `static_tls.rs` | thread-local storage at a fixed distance from the thread's pointer |
//!
//! Files that are linked together are one unit, in pages of its own, with one table of slots. It is placed where its relative references reach: in code memory, near the
//! library whose data it names, or in the lowest 2 GiB if it has absolute addresses of 32 bits (code that is compiled with `-fno-pic`).
//!
//! | symbol | treatment |
//! |---|---|
//! | strong | overrides weak and common ones; two of one unit are an error |
//! | common | overrides weak ones; the greatest size and alignment of those with the name |
//! | weak, unique in the process (`STB_GNU_UNIQUE`) | the first one, unless the dylib has another definition: then references lead to that |
//! | weak, undefined | null without a definition |
//! | hidden, internal | seen by code of the same dylib only; a strong one is its unit's own if there are several |
//! | of a COMDAT group | of the first group with the name; later ones are left out |
//! | chosen at run time (`ifunc`) | a stub, whose destination is chosen when the unit starts |
//! | thread-local | by `__tls_get_addr` or a descriptor (compiled with `-fPIC`), or by a fixed distance, as long as the system's loader has room |
//! | thread-local, of another unit | the same; by a fixed distance if the other unit has one, or no thread has used its storage yet |
//! | thread-local, of a library | refused |
//! | function of the process, out of reach | a stub; its address is the same everywhere in the unit |
//! | constant of a library, for code with absolute addresses of 32 bits | a copy |
//! | other data of the process, out of reach | refused |
//! | `__start_NAME`, `__stop_NAME` | the ends of the sections `NAME`, which are adjacent |
//! | `_GLOBAL_OFFSET_TABLE_`, `_TLS_MODULE_BASE_`, `__dso_handle`, `__tls_get_addr`, `atexit`, `__cxa_thread_atexit` | of the unit |
//!
//! Refusals name the construct. The unwind table is handed to the system's unwinder, so exceptions of C++ pass from file to file; none may reach compiled code of programs.
//! Debug information is left out. Every function is a symbol for debuggers and profilers.
//!
//! [`Jit::load_object`](crate::Jit::load_object) does not call the code. [`LoadedObject::start`](crate::LoadedObject::start) does, and unloading does if it was started; it takes the embedder's promise
//! for native code.

mod archive;
mod descriptor;
pub(crate) mod error;
mod forms;
mod layout;
mod own_code;
mod place;
mod read;
mod start;
mod static_tls;
mod stub;
pub(crate) mod tls;

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

pub use archive::Archive;
pub use error::ObjectFileError;
pub use own_code::{CodeReference, OwnCode};

use error::{malformed, unsupported};
use forms::{Machine, Target};
use read::{At, Kind, Member, Strength, SymbolRow, Type};

/// Object files that are linked and freed together, read and checked.
#[derive(Clone, Debug)]
pub struct ObjectFile {
    members: Vec<Arc<Member>>,
    /// Sections of groups that an earlier member has, by member and index.
    discarded: BTreeSet<(usize, usize)>,
    /// The definition of each global name.
    defined: BTreeMap<String, Defined>,
    /// Sizes and alignments of common symbols.
    common: BTreeMap<String, (u64, u64)>,
    /// Names that relocations need and nothing here defines.
    undefined: BTreeMap<String, Strength>,
}

/// A definition of a global name.
#[derive(Clone, Copy, Debug)]
struct Defined {
    member: usize,
    symbol: usize,
    strength: Strength,
    is_hidden: bool,
}

impl Defined {
    /// Whether the unit uses its own definition, whatever others have.
    fn is_own(&self) -> bool {
        self.is_hidden && self.strength == Strength::Strong
    }
}

/// A symbol that object files offer to others.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Given<'a> {
    pub name: &'a str,
    /// Whether only code of the same dylib may name it.
    pub is_hidden: bool,
    /// Whether another definition of the dylib is taken if there is one.
    pub gives_way: bool,
}

/// The target of a reference.
#[derive(Clone, Copy, Debug)]
enum Meaning<'a> {
    /// A place in a section, or an absolute value, with its symbol.
    Own {
        member: usize,
        index: usize,
        row: &'a SymbolRow,
    },
    Common(&'a str),
    Provided(Provided<'a>),
    Import(&'a str),
    /// A section that is left out.
    Nothing,
}

/// A symbol that the linker defines.
#[derive(Clone, Copy, Debug)]
enum Provided<'a> {
    Table,
    /// The start of the thread-local block.
    ThreadBlock,
    DsoHandle,
    AtExit,
    Start(&'a str),
    Stop(&'a str),
}

impl ObjectFile {
    /// Reads an object file. `name` is its name in messages and debuggers.
    ///
    /// # Errors
    /// It is damaged, is not for this machine, or needs an unsupported construct.
    pub fn parse(name: &str, bytes: &[u8]) -> Result<ObjectFile, ObjectFileError> {
        ObjectFile::of(vec![Arc::new(Member::read(name, bytes, Machine::HOST)?)])
    }

    /// Files as one, to be linked and freed together. They see each other's hidden symbols.
    ///
    /// # Errors
    /// Two of them define one strong symbol.
    pub fn together(files: impl IntoIterator<Item = ObjectFile>) -> Result<ObjectFile, ObjectFileError> {
        ObjectFile::of(files.into_iter().flat_map(|file| file.members).collect())
    }

    fn of(members: Vec<Arc<Member>>) -> Result<ObjectFile, ObjectFileError> {
        let mut file = ObjectFile {
            discarded: discarded(&members),
            members,
            defined: BTreeMap::new(),
            common: BTreeMap::new(),
            undefined: BTreeMap::new(),
        };
        file.define()?;
        file.find_undefined();
        Ok(file)
    }

    /// Fills the table of definitions.
    fn define(&mut self) -> Result<(), ObjectFileError> {
        for (number, member) in self.members.iter().enumerate() {
            for (index, row) in member.symbols.iter().enumerate() {
                let is_here = match row.at {
                    At::Undefined => false,
                    At::Absolute(_) | At::Common { .. } => true,
                    At::Section { index, .. } => is_kept(&self.discarded, member, number, index),
                };
                if !row.is_global || !is_here {
                    continue;
                }
                if let At::Common { size, align } = row.at {
                    let (most, aligned) = self.common.entry(row.name.clone()).or_default();
                    (*most, *aligned) = ((*most).max(size), (*aligned).max(align));
                }
                let is_hidden = row.is_hidden;
                let new = Defined { member: number, symbol: index, strength: row.strength, is_hidden };
                match self.defined.entry(row.name.clone()) {
                    Entry::Vacant(free) => drop(free.insert(new)),
                    Entry::Occupied(mut first) => match (first.get().strength, row.strength) {
                        (Strength::Strong, Strength::Strong) => {
                            let what =
                                format!("the symbol `{}`, which another member defines as well", row.name);
                            return Err(unsupported(&member.name, what));
                        }
                        (before, now) if now > before => drop(first.insert(new)),
                        _ => {}
                    },
                }
            }
        }
        Ok(())
    }

    /// Records the undefined symbols of relocations.
    fn find_undefined(&mut self) {
        let mut undefined: BTreeMap<String, Strength> = BTreeMap::new();
        for (number, _, section) in self.kept() {
            for reloc in &section.relocs {
                if let Meaning::Import(name) = self.meaning(number, reloc.symbol, &BTreeSet::new()) {
                    let strength = self.members[number].symbols[reloc.symbol].strength;
                    let known = undefined.entry(name.to_owned()).or_insert(strength);
                    *known = (*known).max(strength);
                }
            }
        }
        self.undefined = undefined;
    }

    /// Checks what relocations refer to. References between files are checked after all have been merged.
    fn check_references(&self, overridden: &BTreeSet<String>) -> Result<(), ObjectFileError> {
        for (number, _, section) in self.kept() {
            let member = &self.members[number];
            for reloc in &section.relocs {
                let name = &member.symbols[reloc.symbol].name;
                let is_tls = reloc.form.target.is_thread_local();
                match self.meaning(number, reloc.symbol, overridden) {
                    Meaning::Own { member: of, row, .. } => {
                        let is_any = matches!(reloc.form.target, Target::TlsModule | Target::ModulePair);
                        let in_block = self.section_of(of, row).is_some_and(|own| own.kind == Kind::Tls);
                        if in_block != is_tls && !is_any {
                            let what =
                                format!("a reference to `{name}` of the wrong kind in `{}`", section.name);
                            return Err(malformed(&member.name, what));
                        }
                    }
                    // An unwind table may describe omitted code; such entries are empty.
                    Meaning::Nothing
                        if section.kind != Kind::Unwind && section.name != ".gcc_except_table" =>
                    {
                        let what =
                            format!("a reference to `{name}`, which is left out, in `{}`", section.name);
                        return Err(unsupported(&member.name, what));
                    }
                    Meaning::Import(_) | Meaning::Nothing | Meaning::Common(_) | Meaning::Provided(_) => {}
                }
            }
        }
        Ok(())
    }

    /// The sections that take part, with member and index.
    fn kept(&self) -> impl Iterator<Item = (usize, usize, &read::Section)> {
        self.members.iter().enumerate().flat_map(move |(number, member)| {
            member.sections.iter().enumerate().filter_map(move |(index, section)| {
                let is_here = !self.discarded.contains(&(number, index));
                section.as_ref().filter(|_| is_here).map(|section| (number, index, section))
            })
        })
    }

    /// The section that a symbol is in.
    fn section_of(&self, member: usize, row: &SymbolRow) -> Option<&read::Section> {
        match row.at {
            At::Section { index, .. } => self.members[member].sections.get(index)?.as_ref(),
            _ => None,
        }
    }

    /// The target of a member's reference to its symbol. `overridden` are names with another definition than the one here.
    fn meaning<'a>(&'a self, member: usize, symbol: usize, overridden: &BTreeSet<String>) -> Meaning<'a> {
        let row = &self.members[member].symbols[symbol];
        if !row.is_global {
            return match row.at {
                At::Section { index, .. }
                    if !is_kept(&self.discarded, &self.members[member], member, index) =>
                {
                    Meaning::Nothing
                }
                _ => Meaning::Own { member, index: symbol, row },
            };
        }
        match self.defined.get(&row.name) {
            Some(found) if found.is_own() || !overridden.contains(&row.name) => {
                let (member, index) = (found.member, found.symbol);
                let row = &self.members[member].symbols[index];
                match row.at {
                    At::Common { .. } => Meaning::Common(&row.name),
                    _ => Meaning::Own { member, index, row },
                }
            }
            Some(_) => Meaning::Import(&row.name),
            None => self.provided(&row.name).map_or(Meaning::Import(&row.name), Meaning::Provided),
        }
    }

    fn provided<'a>(&self, name: &'a str) -> Option<Provided<'a>> {
        let is_section = |section: &&str| {
            self.members
                .iter()
                .flat_map(|member| member.sections.iter().flatten())
                .any(|own| own.name == *section)
        };
        match name {
            "_GLOBAL_OFFSET_TABLE_" => Some(Provided::Table),
            "_TLS_MODULE_BASE_" => Some(Provided::ThreadBlock),
            "__dso_handle" => Some(Provided::DsoHandle),
            "atexit" => Some(Provided::AtExit),
            _ => {
                let start = || name.strip_prefix("__start_").filter(is_section).map(Provided::Start);
                let stop = || name.strip_prefix("__stop_").filter(is_section).map(Provided::Stop);
                start().or_else(stop)
            }
        }
    }

    /// The symbols that it offers to others.
    pub fn defined(&self) -> impl Iterator<Item = Given<'_>> {
        self.defined.iter().map(|(name, defined)| {
            let gives_way = defined.strength != Strength::Strong || defined.is_hidden;
            Given { name, is_hidden: defined.is_hidden, gives_way }
        })
    }

    /// The type of a definition.
    fn type_of(&self, defined: &Defined) -> Type {
        self.members[defined.member].symbols[defined.symbol].ty
    }

    /// The symbols that it needs from others, those that may be missing included.
    pub fn undefined(&self) -> impl Iterator<Item = &str> {
        self.undefined.keys().map(String::as_str).filter(|name| tls::own(name).is_none())
    }
}

/// Whether a section takes part.
fn is_kept(discarded: &BTreeSet<(usize, usize)>, member: &Member, number: usize, index: usize) -> bool {
    let is_there = member.sections.get(index).is_some_and(Option::is_some);
    is_there && !discarded.contains(&(number, index))
}

/// The sections of groups that an earlier member has.
fn discarded(members: &[Arc<Member>]) -> BTreeSet<(usize, usize)> {
    let mut first: BTreeMap<&str, usize> = BTreeMap::new();
    let mut discarded = BTreeSet::new();
    for (number, member) in members.iter().enumerate() {
        for (name, sections) in &member.groups {
            if *first.entry(name).or_insert(number) != number {
                discarded.extend(sections.iter().map(|&index| (number, index)));
            }
        }
    }
    discarded
}
