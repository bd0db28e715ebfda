//! Entries for C, which make an image a library that C programs link against.
//!
//! ```text
//!   execute   entries     fib: … lea r, [exports]; mov r, [routine]; call r …
//!   write     exports     +0  0 until the image is open, then the C library's handle for it
//!                         +8  the distance from the header of the image
//!                         +16 the number of exports
//!             routines    the addresses of `brolga_exports_call` and `brolga_exports_open`, set by the system's loader
//! ```
//!
//! Entries and exports belong to the copy of the file that the system's loader maps. They are outside the
//! text that an engine copies, and do not refer to it, so an image with entries is opened like one without.
//!
//! One process can have several libraries: their entries find their own exports by distance. The exports have
//! no symbol, because an executable copies the data that it names. The words of the routines have the only
//! relocations in the file. The library is marked as not unloadable, since its exports stay in use.

use std::collections::BTreeSet;

use brolga_codegen::compiled::{RelocKind, RelocTarget, Symbol};
use brolga_codegen::export::{EXPORTS, EXPORTS_CALL, EXPORTS_OPEN};
use brolga_ir::Arch;

use super::place::{FUNCTION_ALIGN, load_becomes_address, trap};
use super::{ImageError, Library};

/// The routines, in the order of their words.
pub(super) const ROUTINES: [&str; 2] = [EXPORTS_CALL, EXPORTS_OPEN];
/// The offset of the routines' words in the exports.
pub(super) const ROUTINES_AT: usize = 24;
/// Bytes of the exports, including these words.
pub(super) const EXPORTS_BYTES: usize = ROUTINES_AT + 8 * ROUTINES.len();

/// The laid-out entries.
pub(super) struct Entries<'a> {
    /// The machine code, before relocation.
    pub(super) code: Vec<u8>,
    /// The name, offset and length of each entry.
    pub(super) places: Vec<(&'a str, usize, usize)>,
    /// The offsets of fields, each with its target as an offset in the exports, and its addend.
    fields: Vec<(usize, usize, i64)>,
}

pub(super) fn place<'a>(library: &Library<'a>) -> Result<Entries<'a>, ImageError> {
    let mut names = BTreeSet::new();
    let mut entries = Entries { code: Vec::new(), places: Vec::new(), fields: Vec::new() };
    let functions = library.exports.iter().map(|(export, entry)| (export.name.as_str(), entry));
    for (name, entry) in functions.chain([(library.open.name.as_str(), library.open)]) {
        let malformed = |fault| ImageError::Malformed { name: name.to_owned(), fault };
        if name.contains('\0') {
            return Err(malformed("has a NUL byte in its name, which no symbol table can hold"));
        }
        if !names.insert(name) {
            return Err(malformed("is exported twice"));
        }
        let at = entries.code.len().next_multiple_of(FUNCTION_ALIGN);
        entries.code.resize(at, trap(Arch::X86_64));
        entries.code.extend_from_slice(&entry.code);
        entries.places.push((name, at, entry.code.len()));
        for reloc in &entry.relocs {
            let symbol = match reloc.target {
                RelocTarget::Symbol(index) => entry.symbols.get(index as usize),
                RelocTarget::Offset(_) => None,
            };
            let is_inside = reloc.offset as usize + reloc.kind.size() <= entry.code.len();
            let field = at + reloc.offset as usize;
            let behind = match symbol {
                Some(Symbol::Routine(name)) => {
                    let number = ROUTINES.iter().position(|known| known == name);
                    number.map(|number| ROUTINES_AT + 8 * number)
                }
                Some(Symbol::Data(name)) if name == EXPORTS => Some(0),
                _ => None,
            };
            let behind = behind.filter(|_| is_inside && reloc.kind == RelocKind::X86GotPcRel4);
            let behind = behind.ok_or_else(|| malformed("refers to more than an entry for C does"))?;
            if behind == 0 && load_becomes_address(reloc.kind, &mut entries.code, field).is_none() {
                return Err(malformed("takes an address in a way that is not known"));
            }
            entries.fields.push((field, behind, reloc.addend));
        }
    }
    Ok(entries)
}

impl Entries<'_> {
    /// The code at `at`, relocated for exports at file offset `exports_at`.
    pub(super) fn linked(&self, at: usize, exports_at: usize) -> Option<Vec<u8>> {
        let mut code = self.code.clone();
        for &(field, behind, addend) in &self.fields {
            let target = exports_at + behind;
            let distance = (target as i64).checked_add(addend)? - (at + field) as i64;
            let distance = i32::try_from(distance).ok()?;
            code.get_mut(field..field + 4)?.copy_from_slice(&distance.to_le_bytes());
        }
        Some(code)
    }

    /// The exports, `behind` bytes after the header, with the words of the routines. `count` functions are
    /// exported.
    pub(super) fn record(&self, behind: usize, count: usize) -> Vec<u8> {
        let mut bytes: Vec<u8> =
            [0, behind as u64, count as u64].into_iter().flat_map(u64::to_le_bytes).collect();
        bytes.resize(EXPORTS_BYTES, 0);
        bytes
    }
}
