//! The offsets of a unit's parts from the start of the memory of each permission. They are known before there is memory.
//!
//! ```text
//!   code        sections │ stubs, thunk of `atexit`
//!   read-only   sections │ sections named as C identifiers, by name │ .eh_frame, 0 │ handle, slots
//!   writable    sections │ the same                                      │ common symbols │ words of stubs
//! ```
//!
//! Sections whose name is a C identifier are adjacent to others of the same name, so that `__start_NAME` and `__stop_NAME`
//! enclose them. Every other section is followed by a byte of its own, so that a label at its end is not at the start of
//! another section.

use std::collections::{BTreeMap, BTreeSet};

use super::forms::{Machine, Target};
use super::read::{Kind, Reloc, Type};
use super::{Meaning, ObjectFile, Provided};
use super::{descriptor, start};
use crate::link::foreign::{Entity, Placed};
use crate::memory::reservation::{Part, Parts};

/// Bytes reserved for a stub.
pub(super) const STUB_BYTES: usize = 32;

/// The alignment of copied constants: the greatest of a type without an alignment of its own.
const COPY_ALIGN: usize = 64;

/// Entries of unwind tables are multiples of this.
const UNWIND_ALIGN: usize = 4;

/// Bytes of a word of the table.
const WORD: usize = 8;

/// Imports by name. One that may be missing, and is, is data at 0.
pub(super) type Imports<'a> = BTreeMap<&'a str, Placed>;

/// The use of a slot or a stub.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Key<'a> {
    Own(usize, usize),
    Name(&'a str),
    Start(&'a str),
    Stop(&'a str),
}

impl<'a> Key<'a> {
    /// The key of a reference that has an address.
    pub(super) fn of(meaning: Meaning<'a>) -> Key<'a> {
        match meaning {
            Meaning::Own { member, index, .. } => Key::Own(member, index),
            Meaning::Common(name) | Meaning::Import(name) => Key::Name(name),
            Meaning::Provided(Provided::Table) => Key::Name("_GLOBAL_OFFSET_TABLE_"),
            Meaning::Provided(Provided::ThreadBlock) => Key::Name("_TLS_MODULE_BASE_"),
            Meaning::Provided(Provided::DsoHandle) => Key::Name("__dso_handle"),
            Meaning::Provided(Provided::AtExit) => Key::Name("atexit"),
            Meaning::Provided(Provided::Start(name)) => Key::Start(name),
            Meaning::Provided(Provided::Stop(name)) => Key::Stop(name),
            Meaning::Nothing => Key::Name(""),
        }
    }
}

/// A jump that reaches everywhere.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stub {
    /// Where it is in the code.
    pub(super) at: usize,
    /// Whether the unit uses its address as the function's if the function is out of reach.
    pub(super) is_canonical: bool,
}

/// Words of the table.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Slot<'a> {
    /// The address of something, plus an addend.
    Address { member: usize, symbol: usize, key: Key<'a>, addend: i64 },
    /// Module and offset.
    Pair { member: usize, symbol: usize, addend: i64 },
    /// See `descriptor.rs`.
    Descriptor { member: usize, symbol: usize, addend: i64 },
    /// The distance from the thread's pointer.
    Thread { member: usize, symbol: usize, addend: i64 },
    /// The module, and 0.
    Module,
}

impl Slot<'_> {
    fn bytes(self) -> usize {
        let words = match self {
            Slot::Address { .. } | Slot::Thread { .. } => 1,
            Slot::Pair { .. } | Slot::Module => 2,
            Slot::Descriptor { .. } => descriptor::WORDS,
        };
        words * WORD
    }
}

/// The slot of a relocation, and the addend for its address.
pub(super) fn slot<'a>(
    machine: Machine,
    member: usize,
    reloc: &Reloc,
    key: Key<'a>,
) -> Option<(Slot<'a>, i64)> {
    // The addend of aarch64 is the symbol's, the one of x86-64 the slot's.
    let (inner, outer) = match machine {
        Machine::Aarch64 => (reloc.addend, 0),
        Machine::X86_64 => (0, reloc.addend),
    };
    let symbol = reloc.symbol;
    match reloc.form.target {
        Target::Slot => {
            // One word for all references to a name.
            let (member, symbol) =
                if let Key::Own(member, symbol) = key { (member, symbol) } else { (member, symbol) };
            Some((Slot::Address { member, symbol, key, addend: inner }, outer))
        }
        Target::Pair => Some((Slot::Pair { member, symbol, addend: inner }, outer)),
        Target::Descriptor => Some((Slot::Descriptor { member, symbol, addend: inner }, outer)),
        Target::ThreadSlot => Some((Slot::Thread { member, symbol, addend: inner }, outer)),
        Target::ModulePair => Some((Slot::Module, outer)),
        _ => None,
    }
}

/// The thread-local block.
#[derive(Default)]
pub(super) struct TlsLayout {
    pub(super) offsets: BTreeMap<(usize, usize), usize>,
    pub(super) size: usize,
    pub(super) align: usize,
}

/// See the file's header.
#[derive(Default)]
pub(super) struct Layout<'a> {
    pub(super) sizes: Parts,
    /// By member and index.
    pub(super) sections: BTreeMap<(usize, usize), (Part, usize)>,
    /// Start and end of the sections with a name.
    pub(super) named: BTreeMap<&'a str, (Part, usize, usize)>,
    pub(super) common: BTreeMap<&'a str, usize>,
    /// Constants of libraries that are copied, each with its size.
    pub(super) copies: BTreeMap<&'a str, (usize, usize)>,
    pub(super) stubs: BTreeMap<Key<'a>, Stub>,
    /// The words from which stubs take their destinations when those are chosen at run time.
    pub(super) words: BTreeMap<Key<'a>, usize>,
    pub(super) at_exit: Option<usize>,
    /// The table begins with the word whose address is the handle of the unit.
    pub(super) table: usize,
    pub(super) slots: BTreeMap<Slot<'a>, usize>,
    pub(super) tls: TlsLayout,
    pub(super) unwind: Option<usize>,
    /// The first file whose thread-local storage has to be at a fixed distance from the thread's pointer.
    pub(super) static_tls: Option<&'a str>,
    /// Thread-local symbols of other units that need such storage, with the file that requires it.
    pub(super) imported_static_tls: BTreeMap<&'a str, &'a str>,
    /// The first file with absolute addresses of 32 bits.
    pub(super) low: Option<&'a str>,
    /// The imported data that has to be in reach, with the file that requires it.
    pub(super) near: BTreeMap<&'a str, &'a str>,
}

impl<'a> Layout<'a> {
    pub(super) fn new(
        object: &'a ObjectFile,
        overridden: &BTreeSet<String>,
        imports: &Imports<'a>,
    ) -> Option<Layout<'a>> {
        let mut layout = Layout::default();
        layout.put_sections(object)?;
        for (name, &(size, align)) in &object.common {
            let at = put(&mut layout.sizes.writable, size.max(1) as usize, align as usize)?;
            layout.common.insert(name, at);
        }
        layout.table = put(&mut layout.sizes.read_only, WORD, WORD)?;
        for (member, _, section) in object.kept() {
            for reloc in &section.relocs {
                let meaning = object.meaning(member, reloc.symbol, overridden);
                layout.put_helpers(object, member, reloc, meaning, imports)?;
            }
        }
        if layout.low.is_some() {
            layout.put_copies(imports)?;
        }
        // Other units may name symbols that are chosen at run time, and thread-local symbols.
        for defined in object.defined.values() {
            let (member, symbol) = (defined.member, defined.symbol);
            match object.type_of(defined) {
                Type::Indirect => layout.put_chosen(Key::Own(member, symbol))?,
                Type::Tls => layout.put_slot(Slot::Pair { member, symbol, addend: 0 })?,
                Type::Function | Type::Other => {}
            }
        }
        Some(layout)
    }

    fn put_sections(&mut self, object: &'a ObjectFile) -> Option<()> {
        let mut order = Vec::new();
        for (member, index, section) in object.kept() {
            let class = match section.kind {
                Kind::Init { .. } | Kind::Fini { .. } => continue,
                Kind::Tls => {
                    let tls = &mut self.tls;
                    tls.align = tls.align.max(section.align);
                    let at = put(&mut tls.size, section.size, section.align)?;
                    tls.offsets.insert((member, index), at);
                    continue;
                }
                Kind::Unwind => (2, ""),
                _ if is_c_name(&section.name) => (1, section.name.as_str()),
                _ => (0, ""),
            };
            order.push((class, (member, index), section));
        }
        order.sort_by_key(|&(class, place, _)| (class, place));
        for (class, place, section) in order {
            let part = match section.kind {
                Kind::Code => Part::Code,
                Kind::Writable => Part::Writable,
                _ => Part::ReadOnly,
            };
            let size = size_of(&mut self.sizes, part);
            let with_end = section.size + usize::from(class.0 == 0);
            // Between entries of the unwind table there may be no zeros.
            let align = if section.kind == Kind::Unwind { UNWIND_ALIGN } else { section.align };
            let at = put(size, with_end, align)?;
            let end = *size;
            self.sections.insert(place, (part, at));
            match class.0 {
                1 => {
                    let known = self.named.entry(class.1).or_insert((part, at, end));
                    if known.0 == part {
                        known.2 = end;
                    }
                }
                2 => {
                    self.unwind.get_or_insert(at);
                }
                _ => {}
            }
        }
        // An entry of length 0 ends the table.
        if self.unwind.is_some() {
            self.sizes.read_only = self.sizes.read_only.checked_add(UNWIND_ALIGN)?;
        }
        Some(())
    }

    /// Makes room for the slot and the stub of a relocation, and records what it has to reach.
    fn put_helpers(
        &mut self,
        object: &'a ObjectFile,
        member: usize,
        reloc: &Reloc,
        meaning: Meaning<'a>,
        imports: &Imports<'a>,
    ) -> Option<()> {
        let file = &object.members[member];
        let key = Key::of(meaning);
        if let Some((slot, _)) = slot(file.machine, member, reloc, key) {
            self.put_slot(slot)?;
        }
        if reloc.form.is_low() && !matches!(meaning, Meaning::Own { row, .. } if row.is_absolute()) {
            self.low.get_or_insert(&file.name);
        }
        let form = reloc.form;
        if matches!(form.target, Target::ThreadOffset | Target::ThreadSlot) {
            match meaning {
                Meaning::Import(name) => drop(self.imported_static_tls.entry(name).or_insert(&file.name)),
                _ => drop(self.static_tls.get_or_insert(&file.name)),
            }
        }
        match meaning {
            Meaning::Own { row, .. } if row.ty == Type::Indirect => self.put_chosen(key),
            Meaning::Import(name) if form.is_near() || form.is_low() => {
                let import = imports.get(name).copied().unwrap_or_default();
                let is_code = import.entity == Entity::Code;
                if is_code || form.target == Target::Call {
                    return self.put_stub(key, is_code && form.target == Target::Symbol);
                }
                if import.address != 0 {
                    self.near.entry(name).or_insert(&file.name);
                }
                Some(())
            }
            Meaning::Provided(Provided::AtExit) if self.at_exit.is_none() => {
                self.at_exit = Some(put(&mut self.sizes.code, STUB_BYTES, STUB_BYTES)?);
                Some(())
            }
            _ => Some(()),
        }
    }

    /// A unit in low addresses reaches no library: it has copies of the constants that it names.
    fn put_copies(&mut self, imports: &Imports<'a>) -> Option<()> {
        for name in std::mem::take(&mut self.near) {
            match imports.get(name.0).and_then(|import| start::constant_at(import.address)) {
                Some(size) => {
                    let at = put(&mut self.sizes.read_only, size, COPY_ALIGN)?;
                    self.copies.insert(name.0, (at, size));
                }
                None => drop(self.near.insert(name.0, name.1)),
            }
        }
        Some(())
    }

    fn put_slot(&mut self, slot: Slot<'a>) -> Option<()> {
        if !self.slots.contains_key(&slot) {
            let at = put(&mut self.sizes.read_only, slot.bytes(), WORD)?;
            self.slots.insert(slot, at);
        }
        Some(())
    }

    fn put_stub(&mut self, key: Key<'a>, is_canonical: bool) -> Option<()> {
        if let Some(known) = self.stubs.get_mut(&key) {
            known.is_canonical |= is_canonical;
            return Some(());
        }
        let at = put(&mut self.sizes.code, STUB_BYTES, STUB_BYTES)?;
        self.stubs.insert(key, Stub { at, is_canonical });
        Some(())
    }

    /// A stub to a destination that is chosen when the unit starts.
    fn put_chosen(&mut self, key: Key<'a>) -> Option<()> {
        self.put_stub(key, true)?;
        if !self.words.contains_key(&key) {
            let word = put(&mut self.sizes.writable, WORD, WORD)?;
            self.words.insert(key, word);
        }
        Some(())
    }
}

fn size_of(sizes: &mut Parts, part: Part) -> &mut usize {
    match part {
        Part::Code => &mut sizes.code,
        Part::ReadOnly => &mut sizes.read_only,
        Part::Writable => &mut sizes.writable,
    }
}

/// Adds bytes to a part and returns their offset; `None` if it is too large for an offset.
fn put(size: &mut usize, bytes: usize, align: usize) -> Option<usize> {
    let at = size.checked_next_multiple_of(align)?;
    *size = at.checked_add(bytes).filter(|&end| u32::try_from(end).is_ok())?;
    Some(at)
}

fn is_c_name(name: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_alphabetic() || byte == b'_';
    name.bytes().next().is_some_and(is_letter)
        && name.bytes().all(|byte| is_letter(byte) || byte.is_ascii_digit())
}
