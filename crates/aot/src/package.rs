//! Packages: units of code with the programs that they were compiled from, in one file, for sessions.
//!
//! ```text
//!   programs (modules without code) ─┐                        ┌─ index: key of a unit ──► its bytes (`unit.rs`)
//!   units, by key                    ├─ write ──► file ──► read ─ programs, defined as if read from text
//!   notes: inputs of each unit ──────┘                        └─ notes, which explain why a unit is not used
//! ```
//!
//! An image (`image/`) is a closed set of functions that call each other by distance. A package is an open
//! one: each unit calls others through cells and is linked at its first use, so functions are redefined,
//! evicted, tiered up and removed as if they had been compiled in the process. Each unit has a *key*, a hash
//! of everything that its code depends on. Before compiling a function, the reader computes its key and looks
//! it up here; so a unit with a changed input is never found, and nothing has to be invalidated.
//!
//! | section | contents |
//! |---|---|
//! | name | of the package |
//! | settings | name and text of the common inputs of all keys: level, passes, processor, compiler |
//! | needs | packages that have to be open, by name and build id |
//! | programs | name, tiers and module of each, in the order in which they are defined |
//! | index | rows of key, offset and length, by ascending key |
//! | units | the bytes of units |
//! | notes | for each function and tier, the hashes of the inputs of its compilation |
//!
//! The *build id* is a hash of the whole file, computed by the writer. Equal ids mean equal packages, so a
//! package that was built on another one records the id of that package.
//!
//! **Reading trusts nothing.** First the magic number and the version are checked, then the length and the
//! checksum, then machine and ABI id; all ranges are bounds-checked. Machine code cannot be checked.
//!
//! **Cost.** Reading takes one checksum, and the lists of needs and programs. The index is searched in place;
//! notes are read when a reason is requested.
//!
//! Not done: files above 1 GiB; mapping sections instead of reading them.

use std::fmt;
use std::sync::OnceLock;

use brolga_ir::Arch;

pub use crate::build_id::{BuildId, Key};
use crate::image::tables::{put, row};
use crate::image::{ImageError, machine};

const MAGIC: [u8; 8] = *b"BRLGPKG\x1a";
const VERSION: u32 = 1;
const CHECKSUM: usize = 12;
const LENGTH: usize = 16;
const ABI: usize = 24;
const MACHINE: usize = 32;
const ID: usize = 40;
const DIRECTORY: usize = 72;

const NAME: usize = 0;
const SETTINGS: usize = 1;
const NEEDS: usize = 2;
const PROGRAMS: usize = 3;
const INDEX: usize = 4;
const UNITS: usize = 5;
const NOTES: usize = 6;
const SECTIONS: usize = 7;

/// The number of bytes before the sections.
const HEADER: usize = DIRECTORY + 8 * SECTIONS;
/// The size in bytes of an index row.
const INDEX_ROW: usize = 40;
/// In place of a call count: the program has a single tier.
const NO_TIERS: u32 = u32::MAX;
/// Larger files are neither written nor read.
const LIMIT: usize = 1 << 30;

/// A package that has to be open.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Need {
    pub name: String,
    pub id: BuildId,
}

/// A program of a package.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StoredProgram {
    /// Its name in messages.
    pub name: String,
    /// The number of calls after which a function is compiled by the second tier; `None` if there is a single
    /// tier.
    pub tiers: Option<u32>,
    /// Its module, in binary form.
    pub module: Vec<u8>,
}

/// The kind of an input of a compilation.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Seen {
    /// How the function is compiled and called: eager or lazy, with counters or without.
    Kind,
    /// The global variables of its program.
    Globals,
    /// Its own IR.
    Own,
    /// A function that it may call.
    Callee,
    /// Any function of its program, because calls are resolved at run time.
    Anything,
}

const SEEN: [Seen; 5] = [Seen::Kind, Seen::Globals, Seen::Own, Seen::Callee, Seen::Anything];

/// One input of a compilation.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Edge {
    /// Its kind.
    pub seen: Seen,
    /// The symbol of a callee; empty for others.
    pub name: String,
    /// The hash of the input.
    pub hash: Key,
}

/// The function and tier of a unit, and the inputs of its compilation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Note {
    /// The symbol of the function.
    pub function: String,
    /// 1 for the first of two tiers, 2 for code after all passes.
    pub tier: u32,
    /// The inputs that it was compiled from.
    pub edges: Vec<Edge>,
}

/// The contents of a package.
#[derive(Clone, Copy, Debug)]
pub struct PackageParts<'a> {
    pub name: &'a str,
    /// The ABI id of the code.
    pub abi: u64,
    /// The names and values of the settings that every key depends on.
    pub settings: &'a [(String, String)],
    /// The packages that it was built on.
    pub needs: &'a [Need],
    pub programs: &'a [StoredProgram],
    /// The units, by ascending key, without duplicates.
    pub units: &'a [(Key, &'a [u8])],
    /// The inputs of the units' compilations, by function and tier.
    pub notes: &'a [Note],
}

/// A package as a file. `hash` computes the build id from all other bytes.
///
/// # Errors
/// The package is too large.
pub fn write(parts: &PackageParts<'_>, hash: impl FnOnce(&[u8]) -> Key) -> Result<Vec<u8>, ImageError> {
    let mut sections: [Vec<u8>; SECTIONS] = Default::default();
    sections[NAME].extend_from_slice(parts.name.as_bytes());
    for (name, text) in parts.settings {
        bytes(&mut sections[SETTINGS], name.as_bytes());
        bytes(&mut sections[SETTINGS], text.as_bytes());
    }
    for need in parts.needs {
        bytes(&mut sections[NEEDS], need.name.as_bytes());
        sections[NEEDS].extend_from_slice(&need.id.0);
    }
    for program in parts.programs {
        bytes(&mut sections[PROGRAMS], program.name.as_bytes());
        let tiers = program.tiers.map_or(NO_TIERS, |calls| calls.min(NO_TIERS - 1));
        put(&mut sections[PROGRAMS], &[tiers]);
        bytes(&mut sections[PROGRAMS], &program.module);
    }
    for (key, unit) in parts.units {
        let at = sections[UNITS].len();
        sections[INDEX].extend_from_slice(key);
        put(&mut sections[INDEX], &[at as u32, unit.len() as u32]);
        sections[UNITS].extend_from_slice(unit);
        if sections[UNITS].len() > LIMIT {
            return Err(ImageError::TooLarge { bytes: sections[UNITS].len(), limit: LIMIT });
        }
    }
    for note in parts.notes {
        bytes(&mut sections[NOTES], note.function.as_bytes());
        put(&mut sections[NOTES], &[note.tier, note.edges.len() as u32]);
        for edge in &note.edges {
            put(&mut sections[NOTES], &[edge.seen as u32]);
            bytes(&mut sections[NOTES], edge.name.as_bytes());
            sections[NOTES].extend_from_slice(&edge.hash);
        }
    }
    let total = HEADER + sections.iter().map(Vec::len).sum::<usize>();
    if total > LIMIT {
        return Err(ImageError::TooLarge { bytes: total, limit: LIMIT });
    }
    let mut file = Vec::with_capacity(total);
    file.extend(MAGIC);
    put(&mut file, &[VERSION, 0]);
    file.extend((total as u64).to_le_bytes());
    file.extend(parts.abi.to_le_bytes());
    put(&mut file, &[u32::from(machine(Arch::HOST)), 0]);
    file.extend([0; 32]);
    let mut at = HEADER;
    for section in &sections {
        put(&mut file, &[at as u32, section.len() as u32]);
        at += section.len();
    }
    sections.iter().for_each(|section| file.extend_from_slice(section));
    let id = hash(&file);
    file[ID..DIRECTORY].copy_from_slice(&id);
    let sum = checksum(&file);
    file[CHECKSUM..LENGTH].copy_from_slice(&sum.to_le_bytes());
    Ok(file)
}

/// Writes the length of the bytes, then the bytes.
fn bytes(section: &mut Vec<u8>, bytes: &[u8]) {
    put(section, &[bytes.len() as u32]);
    section.extend_from_slice(bytes);
}

fn checksum(file: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(file.get(..CHECKSUM).unwrap_or_default());
    hasher.update(&[0; 4]);
    hasher.update(file.get(LENGTH..).unwrap_or_default());
    hasher.finalize()
}

/// Whether the bytes begin like a package.
pub fn is_package(bytes: &[u8]) -> bool {
    bytes.starts_with(&MAGIC)
}

/// A package that was read.
pub struct Package {
    file: Vec<u8>,
    sections: [(usize, usize); SECTIONS],
    abi: u64,
    name: String,
    id: BuildId,
    settings: Vec<(String, String)>,
    needs: Vec<Need>,
    programs: Vec<Placed>,
    notes: OnceLock<Vec<Note>>,
}

impl Package {
    /// Reads a package for code with this ABI id.
    ///
    /// # Errors
    /// The bytes are not a package, or it is damaged or has another version, machine or ABI.
    pub fn read(file: Vec<u8>, abi: u64) -> Result<Package, ImageError> {
        let package = Package::read_any(file)?;
        match package.abi == abi {
            true => Ok(package),
            false => Err(ImageError::Abi { found: package.abi, known: abi }),
        }
    }

    /// As [`Package::read`], for code with whatever ABI id.
    ///
    /// # Errors
    /// The bytes are not a package, or it is damaged or has another version or machine.
    pub fn read_any(file: Vec<u8>) -> Result<Package, ImageError> {
        let damaged = |reason: &str| ImageError::Damaged { reason: reason.to_owned() };
        if !is_package(&file) {
            return Err(ImageError::NotAnImage { reason: "it has no header of a package" });
        }
        if file.len() > LIMIT {
            return Err(ImageError::TooLarge { bytes: file.len(), limit: LIMIT });
        }
        let header: &[u8; HEADER] = file.first_chunk().ok_or_else(|| damaged("it ends inside its header"))?;
        let word = |at: usize| row::<1>(&header[at..at + 4], 0).map_or(0, |[word]| word);
        let wide = |at: usize| u64::from(word(at)) | u64::from(word(at + 4)) << 32;
        if word(8) != VERSION {
            return Err(ImageError::Version { found: word(8), known: VERSION });
        }
        if wide(LENGTH) != file.len() as u64 {
            return Err(damaged(&format!(
                "it says that it has {} bytes, and it has {}",
                wide(LENGTH),
                file.len()
            )));
        }
        if word(CHECKSUM) != checksum(&file) {
            return Err(damaged("its checksum is wrong"));
        }
        if word(MACHINE) != u32::from(machine(Arch::HOST)) {
            return Err(ImageError::Machine { found: word(MACHINE) as u16, known: machine(Arch::HOST) });
        }
        let abi = wide(ABI);
        let mut id = [0; 32];
        id.copy_from_slice(&header[ID..DIRECTORY]);
        let mut sections = [(0, 0); SECTIONS];
        for (at, section) in sections.iter_mut().enumerate() {
            let (offset, length) = (word(DIRECTORY + 8 * at) as usize, word(DIRECTORY + 8 * at + 4) as usize);
            let end = offset.checked_add(length).filter(|&end| end <= file.len() && offset >= HEADER);
            *section = (offset, end.ok_or_else(|| damaged("a section is outside it"))?);
        }
        let of = |section: usize| &file[sections[section].0..sections[section].1];
        let name = String::from_utf8(of(NAME).to_vec()).map_err(|_| damaged("its name is not text"))?;
        let settings = settings(of(SETTINGS)).ok_or_else(|| damaged("its settings cannot be read"))?;
        let needs = needs(of(NEEDS)).ok_or_else(|| damaged("its needs cannot be read"))?;
        let programs = programs(of(PROGRAMS), sections[PROGRAMS].0);
        let programs = programs.ok_or_else(|| damaged("its list of programs cannot be read"))?;
        if !of(INDEX).len().is_multiple_of(INDEX_ROW) {
            return Err(damaged("its index cannot be read"));
        }
        let id = BuildId(id);
        Ok(Package { sections, abi, name, id, settings, needs, programs, notes: OnceLock::new(), file })
    }

    fn section(&self, section: usize) -> &[u8] {
        let (start, end) = self.sections[section];
        &self.file[start..end]
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn id(&self) -> BuildId {
        self.id
    }

    /// The ABI id of its code.
    pub fn abi(&self) -> u64 {
        self.abi
    }

    /// The names and values of the settings that every key depends on.
    pub fn settings(&self) -> &[(String, String)] {
        &self.settings
    }

    /// The packages that it was built on.
    pub fn needs(&self) -> &[Need] {
        &self.needs
    }

    /// The programs, in order: name, tiers and module.
    pub fn programs(&self) -> impl Iterator<Item = (&str, Option<u32>, &[u8])> {
        let module = |(start, end): (usize, usize)| &self.file[start..end];
        self.programs.iter().map(move |(name, tiers, place)| (name.as_str(), *tiers, module(*place)))
    }

    /// How many units there are.
    pub fn unit_count(&self) -> usize {
        self.section(INDEX).len() / INDEX_ROW
    }

    /// The file.
    pub fn into_bytes(self) -> Vec<u8> {
        self.file
    }

    /// The bytes of the unit with a key.
    pub fn unit(&self, key: &Key) -> Option<&[u8]> {
        let (rows, rest) = self.section(INDEX).as_chunks::<INDEX_ROW>();
        debug_assert!(rest.is_empty(), "the length was checked");
        let at = rows.binary_search_by(|row| row[..32].cmp(key)).ok()?;
        let [offset, length] = row::<2>(&rows[at][32..], 0)?;
        self.section(UNITS).get(offset as usize..)?.get(..length as usize)
    }

    /// The inputs of the units' compilations, by function and tier; empty if the list cannot be read.
    pub fn notes(&self) -> &[Note] {
        self.notes.get_or_init(|| notes(self.section(NOTES)).unwrap_or_default())
    }
}

impl fmt::Debug for Package {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Package").field("name", &self.name).field("id", &self.id).finish_non_exhaustive()
    }
}

/// A section that is read from its front.
struct Source<'a>(&'a [u8]);

impl<'a> Source<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    fn word(&mut self) -> Option<u32> {
        row::<1>(self.take(4)?, 0).map(|[word]| word)
    }

    fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = self.word()?;
        self.take(length as usize)
    }

    fn text(&mut self) -> Option<String> {
        String::from_utf8(self.bytes()?.to_vec()).ok()
    }

    fn key(&mut self) -> Option<Key> {
        self.take(32)?.try_into().ok()
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

fn settings(section: &[u8]) -> Option<Vec<(String, String)>> {
    let (mut source, mut found) = (Source(section), Vec::new());
    while !source.is_empty() {
        found.push((source.text()?, source.text()?));
    }
    Some(found)
}

fn needs(section: &[u8]) -> Option<Vec<Need>> {
    let (mut source, mut found) = (Source(section), Vec::new());
    while !source.is_empty() {
        found.push(Need { name: source.text()?, id: BuildId(source.key()?) });
    }
    Some(found)
}

/// A program: its name, its tiers, and the range of its module in the file.
type Placed = (String, Option<u32>, (usize, usize));

/// The programs of a section that begins at `start` in the file.
fn programs(section: &[u8], start: usize) -> Option<Vec<Placed>> {
    let (mut source, mut found) = (Source(section), Vec::new());
    while !source.is_empty() {
        let (name, tiers) = (source.text()?, source.word()?);
        let module = source.bytes()?;
        let end = start + section.len() - source.0.len();
        found.push((name, Some(tiers).filter(|&tiers| tiers != NO_TIERS), (end - module.len(), end)));
    }
    Some(found)
}

fn notes(section: &[u8]) -> Option<Vec<Note>> {
    let (mut source, mut found) = (Source(section), Vec::new());
    while !source.is_empty() {
        let (function, tier, count) = (source.text()?, source.word()?, source.word()?);
        let mut edges = Vec::new();
        for _ in 0..count {
            let seen = *SEEN.get(source.word()? as usize)?;
            edges.push(Edge { seen, name: source.text()?, hash: source.key()? });
        }
        found.push(Note { function, tier, edges });
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ABI: u64 = 77;

    fn file() -> Vec<u8> {
        let edge = |seen, name: &str, byte| Edge { seen, name: name.to_owned(), hash: [byte; 32] };
        let units: [(Key, &[u8]); 3] = [([1; 32], b"one"), ([2; 32], b""), ([9; 32], b"three")];
        let edges = vec![edge(Seen::Own, "", 3), edge(Seen::Callee, "g(Int64)", 4)];
        let parts = PackageParts {
            name: "app",
            abi: ABI,
            settings: &[("level".to_owned(), "O2".to_owned())],
            needs: &[Need { name: "base".to_owned(), id: BuildId([5; 32]) }],
            programs: &[
                StoredProgram { name: "a.jlir".to_owned(), tiers: None, module: b"module a".to_vec() },
                StoredProgram { name: "b.jlir".to_owned(), tiers: Some(7), module: Vec::new() },
            ],
            units: &units,
            notes: &[Note { function: "f(Int64)".to_owned(), tier: 2, edges }],
        };
        write(&parts, |bytes| [bytes.len() as u8; 32]).unwrap()
    }

    #[test]
    fn a_package_is_read_as_it_was_written() {
        let package = Package::read(file(), ABI).unwrap();
        assert_eq!((package.name(), package.unit_count()), ("app", 3));
        assert_eq!(package.settings(), [("level".to_owned(), "O2".to_owned())]);
        assert_eq!(package.needs()[0].name, "base");
        let programs: Vec<_> = package.programs().collect();
        assert_eq!(programs, [("a.jlir", None, &b"module a"[..]), ("b.jlir", Some(7), &b""[..])]);
        assert_eq!(package.unit(&[1; 32]), Some(&b"one"[..]));
        assert_eq!(package.unit(&[2; 32]), Some(&b""[..]));
        assert_eq!(package.unit(&[9; 32]), Some(&b"three"[..]));
        assert_eq!(package.unit(&[3; 32]), None);
        let [note] = package.notes() else { panic!("{:?}", package.notes()) };
        assert_eq!((note.function.as_str(), note.tier, note.edges.len()), ("f(Int64)", 2, 2));
        assert_eq!(note.edges[1].name, "g(Int64)");
    }

    #[test]
    fn the_reason_of_a_refusal_is_said() {
        let refused = |change: &dyn Fn(&mut Vec<u8>)| {
            let mut file = file();
            change(&mut file);
            Package::read(file, ABI).unwrap_err().to_string()
        };
        assert!(refused(&|file| file[0] = b'X').contains("no header of a package"));
        assert!(refused(&|file| file[8] = 99).contains("version 99"));
        assert!(refused(&|file| file.truncate(file.len() - 1)).contains("damaged"));
        assert!(refused(&|file| file.truncate(20)).contains("ends inside its header"));
        assert!(refused(&|file| *file.last_mut().unwrap() ^= 1).contains("checksum"));
        assert!(Package::read(file(), ABI + 1).unwrap_err().to_string().contains("ABI"));
    }

    #[test]
    fn no_flipped_byte_behind_the_checksum_is_a_panic() {
        let whole = file();
        for at in 0..whole.len() {
            for bit in 0..8 {
                let mut file = whole.clone();
                file[at] ^= 1 << bit;
                assert!(Package::read(file.clone(), ABI).is_err(), "bit {bit} of byte {at}");
                // Like a writer that updates the checksum.
                let sum = checksum(&file);
                file[CHECKSUM..LENGTH].copy_from_slice(&sum.to_le_bytes());
                if let Ok(package) = Package::read(file, ABI) {
                    package.programs().for_each(drop);
                    package.notes();
                    assert!((0..=255).filter(|&byte| package.unit(&[byte; 32]).is_some()).count() <= 3);
                }
            }
        }
    }
}
