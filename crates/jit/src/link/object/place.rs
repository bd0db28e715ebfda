//! A unit of object files in memory: addresses of symbols, values of relocations, bytes of stubs.

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use brolga_codegen::compiled::Symbol;

use super::error::{ObjectFileError, unsupported};
use super::forms::{self, Base, Target};
use super::layout::{Imports, Key, Layout, Slot, Stub, slot};
use super::read::{At, Kind, Reloc, Section, Strength, Type};
use super::start::{self, Plan, Started};
use super::tls::{self, Registered, Template, ThreadLocal};
use super::{Meaning, ObjectFile, Provided, descriptor, stub};
use crate::debug::code_map::{CodeUnit, PlacedFunction};
use crate::engine::Jit;
use crate::link::foreign::{Entity, Foreign, LoadedObject, Placed};
use crate::link::linker::{LinkError, LoadedUnit};
use crate::memory::reservation::Part;
use crate::memory::space::{Draft, Memory, TRAP};

/// Relative references reach a little less far than this, which leaves room for addends.
const REACH: usize = (1 << 31) - (1 << 24);

/// Addresses that fit absolute references of 32 bits, with and without a sign.
const LOW: Range<usize> = 0..REACH;

impl Jit {
    /// Links object files. `imports` has the symbols that they need; missing ones are looked up among the C symbols of the
    /// run time. References to `overridden` names lead to imports, although the files define them. None of their code runs
    /// before [`LoadedObject::start`].
    ///
    /// # Errors
    /// Something is missing, out of reach, or not done here; there is no memory.
    pub fn load_object(
        &self,
        object: &ObjectFile,
        imports: &BTreeMap<String, Foreign>,
        overridden: &BTreeSet<String>,
    ) -> Result<LoadedObject, LinkError> {
        object.check_references(overridden)?;
        let (imported, owners) = self.imports(object, imports, overridden)?;
        check_imports(object, &imported, overridden)?;
        let too_large = || {
            let name = object.members.first().map_or("object file", |member| &member.name);
            unsupported(name, "4 GiB of sections or more")
        };
        let layout = Layout::new(object, overridden, &imported).ok_or_else(too_large)?;
        let allowed = allowed(&layout, &imported)?;
        let draft = self.draft_within(layout.sizes, &allowed)?.ok_or_else(|| nowhere(&layout))?;
        let bases = Part::ALL.map(|part| draft.addresses(part).start);
        let mut unit = Unit {
            object,
            overridden,
            layout,
            imported,
            bases,
            tls: None,
            thread_offset: 0,
            distances: BTreeMap::new(),
        };
        unit.register_tls()?;
        unit.find_distances()?;
        self.fill(unit, draft, owners)
    }

    /// Writes the unit and enters it.
    fn fill(
        &self,
        mut unit: Unit<'_>,
        mut draft: Draft,
        owners: Vec<Arc<LoadedUnit>>,
    ) -> Result<LoadedObject, LinkError> {
        unit.write(&mut draft)?;
        let plan = unit.plan()?;
        let code = unit.describe(&draft);
        let symbols = unit.symbols();
        let tls = unit.tls.take();
        let module = tls.as_ref().map(|registered| registered.module());
        let run = draft.seal()?;
        let started = Box::new(Started::new(plan, tls));
        let entry = self.code_map().enter(code);
        let loaded = Arc::new(LoadedUnit::of_object(entry, Memory::Run(run), owners, started));
        if let Some(module) = module {
            let unit: Arc<dyn Any + Send + Sync> = loaded.clone();
            module.belong_to(&unit);
        }
        Ok(LoadedObject { unit: loaded, symbols: Arc::new(symbols) })
    }

    /// The symbols that the files need and do not define.
    fn imports<'a>(
        &self,
        object: &'a ObjectFile,
        given: &BTreeMap<String, Foreign>,
        overridden: &BTreeSet<String>,
    ) -> Result<(Imports<'a>, Vec<Arc<LoadedUnit>>), LinkError> {
        let (mut found, mut owners, mut missing) = (BTreeMap::new(), Vec::new(), Vec::new());
        let lost = object.defined.iter().filter(|(name, own)| overridden.contains(*name) && !own.is_own());
        let lost = lost.map(|(name, _)| (name.as_str(), Strength::Strong));
        let needs = object.undefined.iter().map(|(name, strength)| (name.as_str(), *strength));
        for (name, strength) in needs.chain(lost) {
            let foreign = given.get(name);
            if let Some(object) = foreign.and_then(|foreign| foreign.object.as_ref())
                && !owners.iter().any(|known| Arc::ptr_eq(known, &object.unit))
            {
                owners.push(object.unit.clone());
            }
            match self.import(name, strength, foreign) {
                Ok(import) => {
                    found.insert(name, import);
                }
                Err(reason) => {
                    let symbol = Symbol::Foreign { name: name.to_owned(), library: None, weak: false };
                    missing.push((symbol, reason));
                }
            }
        }
        match missing.is_empty() {
            true => Ok((found, owners)),
            false => Err(LinkError::Unresolved { symbols: missing }),
        }
    }

    fn import(&self, name: &str, strength: Strength, given: Option<&Foreign>) -> Result<Placed, String> {
        let entity = |is_code| if is_code { Entity::Code } else { Entity::Data };
        if let Some(address) = tls::own(name) {
            return Ok(Placed { address, entity: Entity::Code });
        }
        if let Some(foreign) = given {
            let address = foreign.address;
            let is_code = || start::is_code(address) || self.code_map().unit(address).is_some();
            let here = || Placed { address, entity: entity(is_code()) };
            return Ok(foreign.placed(name).unwrap_or_else(here));
        }
        match self.runtime().foreign().given(name) {
            Ok(address) => Ok(Placed { address, entity: entity(start::is_code(address)) }),
            Err(_) if strength == Strength::Weak => Ok(Placed::default()),
            Err(error) => Err(error.to_string()),
        }
    }
}

/// Checks that references to thread-local symbols of other units, and no other references, are made as such.
fn check_imports(
    object: &ObjectFile,
    imports: &Imports<'_>,
    overridden: &BTreeSet<String>,
) -> Result<(), ObjectFileError> {
    for (number, _, section) in object.kept() {
        for reloc in &section.relocs {
            let Meaning::Import(name) = object.meaning(number, reloc.symbol, overridden) else { continue };
            let Some(import) = imports.get(name) else { continue };
            let is_missing = import.address == 0;
            let what = match (import.thread_local(), reloc.form.target) {
                (None, target) if !target.is_thread_local() => continue,
                (_, Target::Pair | Target::Descriptor) if is_missing => continue,
                (Some(_), Target::Pair | Target::Descriptor | Target::ThreadSlot | Target::ThreadOffset) => {
                    continue;
                }
                (Some(_), _) => format!("an address of `{name}`, which is different in each thread"),
                (None, _) if is_missing => format!("the thread-local symbol `{name}`, which is missing"),
                (None, _) => {
                    format!(
                        "a thread-local reference to `{name}`, which no object file defines as thread-local"
                    )
                }
            };
            return Err(unsupported(&object.members[number].name, what));
        }
    }
    Ok(())
}

/// The addresses at which a unit may be.
fn allowed(layout: &Layout<'_>, imported: &Imports<'_>) -> Result<Range<usize>, LinkError> {
    let mut allowed = if layout.low.is_some() { LOW } else { 0..usize::MAX };
    for (name, file) in &layout.near {
        let target = imported.get(name).map_or(0, |import| import.address);
        allowed =
            allowed.start.max(target.saturating_sub(REACH))..allowed.end.min(target.saturating_add(REACH));
        if allowed.is_empty() {
            return Err(out_of_reach(file, name).into());
        }
    }
    Ok(allowed)
}

/// The system has no addresses where the unit has to be.
fn nowhere(layout: &Layout<'_>) -> ObjectFileError {
    match (layout.near.first_key_value(), layout.low) {
        (Some((name, file)), _) => out_of_reach(file, name),
        (None, file) => {
            let what = "absolute addresses of 32 bits, for which there is no memory (compile with -fPIC)";
            unsupported(file.unwrap_or("object file"), what)
        }
    }
}

/// A reference to data that cannot reach it.
pub(super) fn out_of_reach(file: &str, name: &str) -> ObjectFileError {
    unsupported(file, format!("the data symbol `{name}`, which is out of reach (compile with -fPIC)"))
}

/// A unit whose place is known.
struct Unit<'a> {
    object: &'a ObjectFile,
    overridden: &'a BTreeSet<String>,
    layout: Layout<'a>,
    imported: Imports<'a>,
    /// By part.
    bases: [usize; 3],
    tls: Option<Registered>,
    /// The distance of static thread-local storage from the thread's pointer.
    thread_offset: isize,
    /// The same for thread-local symbols of other units.
    distances: BTreeMap<&'a str, isize>,
}

impl<'a> Unit<'a> {
    fn register_tls(&mut self) -> Result<(), LinkError> {
        let needs_exits = tls::EXITS.iter().any(|name| self.imported.contains_key(name));
        let is_needed =
            needs_exits || self.layout.tls.size > 0 || self.layout.slots.contains_key(&Slot::Module);
        if !is_needed {
            return Ok(());
        }
        let registered = tls::register(self.table());
        let module = registered.module();
        self.tls = Some(registered);
        let Some(template) = self.template()? else { return Ok(()) };
        if let Some(file) = self.layout.static_tls {
            let (bytes, align) = (template.bytes.len(), template.align);
            self.thread_offset = module.fix(&template).ok_or_else(|| {
                let what = format!("{bytes} bytes of thread-local storage, aligned to {align}, in the block of each thread, where there is no room (compile with -fPIC)");
                unsupported(file, what)
            })?;
        }
        module.fill(template);
        Ok(())
    }

    fn find_distances(&mut self) -> Result<(), LinkError> {
        for (&name, &file) in &self.layout.imported_static_tls {
            let symbol = self.imported.get(name).and_then(Placed::thread_local);
            let distance = symbol.and_then(ThreadLocal::distance).ok_or_else(|| {
                let what = format!(
                    "a fixed distance of the thread-local symbol `{name}` of another unit from the thread's pointer: threads have used it, or there is no room (compile with -fPIC)"
                );
                unsupported(file, what)
            })?;
            self.distances.insert(name, distance);
        }
        Ok(())
    }

    fn at(&self, part: Part, offset: usize) -> usize {
        self.bases[part as usize] + offset
    }

    fn table(&self) -> usize {
        self.at(Part::ReadOnly, self.layout.table)
    }

    /// Whether references from anywhere in the unit reach an address.
    fn reaches(&self, address: usize) -> bool {
        let is_low = self.layout.low.is_none() || LOW.contains(&address);
        let sizes = self.layout.sizes;
        let reaches = |part| self.at(part, 0).abs_diff(address) < REACH - sizes.of(part).min(REACH);
        is_low && Part::ALL.into_iter().all(reaches)
    }

    fn stub(&self, key: Key<'a>) -> Option<(usize, Stub)> {
        self.layout.stubs.get(&key).map(|stub| (self.at(Part::Code, stub.at), *stub))
    }

    /// The address of a definition; `None` if it is left out.
    fn address(&self, meaning: Meaning<'a>) -> Option<usize> {
        match meaning {
            Meaning::Own { row, .. } if row.ty == Type::Indirect => Some(self.stub(Key::of(meaning))?.0),
            Meaning::Own { member, row, .. } => match row.at {
                At::Absolute(value) => Some(value as usize),
                At::Section { index, offset } => {
                    let &(part, at) = self.layout.sections.get(&(member, index))?;
                    Some(self.at(part, at) + offset as usize)
                }
                At::Common { .. } | At::Undefined => None,
            },
            Meaning::Common(name) => Some(self.at(Part::Writable, *self.layout.common.get(name)?)),
            Meaning::Import(name) => {
                if let Some(&(copy, _)) = self.layout.copies.get(name) {
                    return Some(self.at(Part::ReadOnly, copy));
                }
                let import = self.imported.get(name)?;
                match self.stub(Key::of(meaning)) {
                    Some((stub, Stub { is_canonical: true, .. })) if !self.reaches(import.address) => {
                        Some(stub)
                    }
                    _ => Some(import.address),
                }
            }
            Meaning::Provided(Provided::Table | Provided::DsoHandle) => Some(self.table()),
            Meaning::Provided(Provided::AtExit) => Some(self.at(Part::Code, self.layout.at_exit?)),
            Meaning::Provided(Provided::Start(name)) => {
                self.layout.named.get(name).map(|&(part, start, _)| self.at(part, start))
            }
            Meaning::Provided(Provided::Stop(name)) => {
                self.layout.named.get(name).map(|&(part, _, end)| self.at(part, end))
            }
            Meaning::Provided(Provided::ThreadBlock) | Meaning::Nothing => None,
        }
    }

    /// The place of a thread-local symbol; `None` if it is missing.
    fn thread_local(&self, meaning: Meaning<'a>) -> Option<ThreadLocal> {
        let module = self.tls.as_ref().map_or(0, Registered::id);
        match meaning {
            Meaning::Own { member, row, .. } => {
                let At::Section { index, offset } = row.at else { return None };
                let start = self.layout.tls.offsets.get(&(member, index))?;
                Some(ThreadLocal { module, offset: start + offset as usize })
            }
            Meaning::Provided(Provided::ThreadBlock) => Some(ThreadLocal { module, offset: 0 }),
            Meaning::Import(name) => self.imported.get(name)?.thread_local(),
            Meaning::Common(_) | Meaning::Provided(_) | Meaning::Nothing => None,
        }
    }

    /// The offset of a thread-local symbol in its block.
    fn tls_offset(&self, meaning: Meaning<'a>) -> Option<usize> {
        Some(self.thread_local(meaning)?.offset)
    }

    /// The distance of a thread-local symbol from the thread's pointer.
    fn thread_offset_of(&self, meaning: Meaning<'a>) -> Option<usize> {
        let start = self.thread_offset;
        match meaning {
            Meaning::Import(name) => Some(*self.distances.get(name)? as usize),
            _ => Some(self.tls_offset(meaning)?.wrapping_add_signed(start)),
        }
    }

    /// Fills in the places of a section that is at `address`. References to omitted sections become 0, which does not end an
    /// unwind table.
    fn relocate(
        &self,
        member: usize,
        section: &Section,
        address: usize,
        bytes: &mut [u8],
    ) -> Result<(), LinkError> {
        for reloc in &section.relocs {
            let meaning = self.object.meaning(member, reloc.symbol, self.overridden);
            let Some(place) = bytes.get_mut(reloc.offset..) else { continue };
            if matches!(meaning, Meaning::Nothing) {
                place.iter_mut().take(reloc.form.size()).for_each(|byte| *byte = 0);
                continue;
            }
            let at = address + reloc.offset;
            let mut values = self.values(member, reloc, meaning).into_iter().flatten();
            let wrote = values.any(|target| {
                let value = self.counted(reloc.form.base, target, at);
                forms::write(reloc.form.write, place, value).is_some()
            });
            if !wrote {
                let file = &self.object.members[member];
                let (name, section) = (&file.symbols[reloc.symbol].name, &section.name);
                let what = format!(
                    "a reference to `{name}` in `{section}`, which is out of reach (compile with -fPIC)"
                );
                return Err(unsupported(&file.name, what).into());
            }
        }
        Ok(())
    }

    /// The target of a relocation with its addend, and the one of a call that does not reach the first.
    fn values(&self, member: usize, reloc: &Reloc, meaning: Meaning<'a>) -> [Option<usize>; 2] {
        let plus = |at: usize| at.wrapping_add_signed(reloc.addend as isize);
        let key = Key::of(meaning);
        let machine = self.object.members[member].machine;
        match reloc.form.target {
            Target::Symbol => [self.address(meaning).map(plus), None],
            Target::Call => [self.address(meaning).map(plus), self.stub(key).map(|(stub, _)| plus(stub))],
            Target::Slot | Target::Pair | Target::Descriptor | Target::ModulePair | Target::ThreadSlot => {
                let found = slot(machine, member, reloc, key).and_then(|(slot, addend)| {
                    let at = self.at(Part::ReadOnly, *self.layout.slots.get(&slot)?);
                    Some(at.wrapping_add_signed(addend as isize))
                });
                [found, None]
            }
            Target::Table => [Some(plus(self.table())), None],
            Target::Size => {
                let row = &self.object.members[member].symbols[reloc.symbol];
                let row = if let Meaning::Own { row, .. } = meaning { row } else { row };
                [Some(plus(row.size as usize)), None]
            }
            Target::TlsModule => [self.tls.as_ref().map(Registered::id), None],
            Target::TlsOffset => [self.tls_offset(meaning).map(plus), None],
            Target::ThreadOffset => [self.thread_offset_of(meaning).map(plus), None],
        }
    }

    fn counted(&self, base: Base, target: usize, place: usize) -> i64 {
        const PAGE: usize = 4095;
        let value = match base {
            Base::Zero => target,
            Base::Place => target.wrapping_sub(place),
            Base::Page => (target & !PAGE).wrapping_sub(place & !PAGE),
            Base::Table => target.wrapping_sub(self.table()),
            Base::TablePage => target.wrapping_sub(self.table() & !PAGE),
        };
        value as i64
    }

    fn write(&self, draft: &mut Draft) -> Result<(), LinkError> {
        draft.fill(Part::Code, TRAP);
        for (member, index, section) in self.object.kept() {
            let Some(&(part, at)) = self.layout.sections.get(&(member, index)) else { continue };
            if !section.bytes.is_empty() {
                let mut bytes = section.bytes.clone();
                self.relocate(member, section, self.at(part, at), &mut bytes)?;
                draft.write(part, at, &bytes);
            }
        }
        for (name, &(at, size)) in &self.layout.copies {
            let address = self.imported.get(name).map_or(0, |import| import.address);
            draft.write(Part::ReadOnly, at, &start::constant(address, size));
        }
        for (&slot, &at) in &self.layout.slots {
            let words = self.words_of(slot, self.at(Part::ReadOnly, at));
            let bytes: Vec<u8> = words.into_iter().flat_map(|word| (word as u64).to_le_bytes()).collect();
            draft.write(Part::ReadOnly, at, &bytes);
        }
        for (&key, stub) in &self.layout.stubs {
            let code = match (self.layout.words.get(&key), key) {
                (Some(&word), _) => stub::chosen(self.at(Part::Code, stub.at), self.at(Part::Writable, word)),
                (None, Key::Name(name)) => {
                    stub::jump(self.imported.get(name).map_or(0, |import| import.address))
                }
                (None, _) => Vec::new(),
            };
            draft.write(Part::Code, stub.at, &code);
        }
        if let Some(at) = self.layout.at_exit {
            draft.write(Part::Code, at, &stub::at_exit(self.table(), start::cxa_atexit()));
        }
        Ok(())
    }

    /// The words of a slot that is at an address.
    fn words_of(&self, slot: Slot<'a>, at: usize) -> Vec<usize> {
        let meaning = |member, symbol| self.object.meaning(member, symbol, self.overridden);
        // A symbol that may be missing, and is, is in no module.
        let pair = |member, symbol, addend: i64| {
            let missing = ThreadLocal { module: 0, offset: 0 };
            let ThreadLocal { module, offset } =
                self.thread_local(meaning(member, symbol)).unwrap_or(missing);
            ThreadLocal { module, offset: offset.wrapping_add_signed(addend as isize) }
        };
        match slot {
            Slot::Address { member, symbol, addend, .. } => {
                let address = self.address(meaning(member, symbol)).unwrap_or(0);
                vec![address.wrapping_add_signed(addend as isize)]
            }
            Slot::Pair { member, symbol, addend } => {
                let ThreadLocal { module, offset } = pair(member, symbol, addend);
                vec![module, offset]
            }
            Slot::Descriptor { member, symbol, addend } => {
                descriptor::words(at, pair(member, symbol, addend)).to_vec()
            }
            Slot::Thread { member, symbol, addend } => {
                let offset = self.thread_offset_of(meaning(member, symbol)).unwrap_or(0);
                vec![offset.wrapping_add_signed(addend as isize)]
            }
            Slot::Module => vec![self.tls.as_ref().map_or(0, Registered::id), 0],
        }
    }

    /// The first content of the thread-local block of each thread.
    fn template(&self) -> Result<Option<Template>, LinkError> {
        let tls = &self.layout.tls;
        if tls.size == 0 {
            return Ok(None);
        }
        let mut bytes = vec![0; tls.size];
        for (member, index, section) in self.object.kept() {
            let Some(&at) = tls.offsets.get(&(member, index)) else { continue };
            let mut own = section.bytes.clone();
            self.relocate(member, section, 0, &mut own)?;
            bytes[at..at + own.len()].copy_from_slice(&own);
        }
        Ok(Some(Template { bytes: bytes.into(), align: tls.align }))
    }

    /// The code that runs when the unit starts and ends.
    fn plan(&self) -> Result<Plan, LinkError> {
        let choices = self.layout.words.iter().filter_map(|(&key, &word)| {
            let Key::Own(member, index) = key else { return None };
            let row = &self.object.members[member].symbols[index];
            let At::Section { index, offset } = row.at else { return None };
            let &(part, at) = self.layout.sections.get(&(member, index))?;
            Some((self.at(Part::Writable, word), self.at(part, at) + offset as usize))
        });
        Ok(Plan {
            choices: choices.collect(),
            init: self.functions(|kind| match kind {
                Kind::Init { priority, backwards } => Some((priority, backwards)),
                _ => None,
            })?,
            fini: self.functions(|kind| match kind {
                Kind::Fini { priority, backwards } => Some((priority, backwards)),
                _ => None,
            })?,
            handle: self.table(),
            unwind: self.layout.unwind.map(|at| self.at(Part::ReadOnly, at)),
        })
    }

    /// The functions of an array, by ascending priority.
    fn functions(&self, of: impl Fn(Kind) -> Option<(u32, bool)>) -> Result<Vec<usize>, LinkError> {
        let mut found: Vec<(u32, Vec<usize>)> = Vec::new();
        for (member, _, section) in self.object.kept() {
            let Some((priority, backwards)) = of(section.kind) else { continue };
            let mut bytes = section.bytes.clone();
            self.relocate(member, section, 0, &mut bytes)?;
            let words = bytes
                .chunks_exact(8)
                .map(|word| u64::from_le_bytes(word.try_into().unwrap_or_default()) as usize);
            // The old sections begin and end with words that are not addresses.
            let mut functions: Vec<usize> = words.filter(|&word| word != 0 && word != usize::MAX).collect();
            if backwards {
                functions.reverse();
            }
            found.push((priority, functions));
        }
        found.sort_by_key(|(priority, _)| *priority);
        Ok(found.into_iter().flat_map(|(_, functions)| functions).collect())
    }

    /// The symbols that others may use.
    fn symbols(&self) -> BTreeMap<String, Placed> {
        let placed = |(name, defined): (&'a String, &super::Defined)| {
            if self.overridden.contains(name) {
                return None;
            }
            let (member, symbol) = (defined.member, defined.symbol);
            let meaning = self.object.meaning(member, symbol, self.overridden);
            if self.object.type_of(defined) == Type::Tls {
                let word = self.layout.slots.get(&Slot::Pair { member, symbol, addend: 0 })?;
                let entity = Entity::ThreadLocal(self.thread_local(meaning)?);
                return Some((name.clone(), Placed { address: self.at(Part::ReadOnly, *word), entity }));
            }
            let address = self.address(meaning)?;
            let code = self.at(Part::Code, 0);
            let is_code = (code..code + self.layout.sizes.code).contains(&address);
            let entity = match self.object.members[member].symbols[symbol].is_absolute() {
                true => Entity::Number,
                false if is_code => Entity::Code,
                false => Entity::Data,
            };
            Some((name.clone(), Placed { address, entity }))
        };
        self.object.defined.iter().filter_map(placed).collect()
    }

    /// The functions, for debuggers and profilers. A section of code without functions counts as one.
    fn describe(&self, draft: &Draft) -> CodeUnit {
        let mut rows: BTreeMap<u32, (String, u32)> = BTreeMap::new();
        for (number, member) in self.object.members.iter().enumerate() {
            let mut named: BTreeSet<usize> = BTreeSet::new();
            // If a function has several names, the global one is kept.
            let functions =
                member.symbols.iter().filter(|row| matches!(row.ty, Type::Function | Type::Indirect));
            let (global, local): (Vec<_>, Vec<_>) = functions.partition(|row| row.is_global);
            for row in global.into_iter().chain(local) {
                let At::Section { index, offset } = row.at else { continue };
                let Some(&(Part::Code, at)) = self.layout.sections.get(&(number, index)) else { continue };
                if row.size > 0 {
                    named.insert(index);
                    let size = row.size.min(self.layout.sizes.code as u64) as u32;
                    rows.entry((at + offset as usize) as u32).or_insert_with(|| (row.name.clone(), size));
                }
            }
            for (index, section) in member.sections.iter().enumerate() {
                let Some(&(Part::Code, at)) = self.layout.sections.get(&(number, index)) else { continue };
                if let Some(section) = section.as_ref().filter(|own| own.size > 0 && !named.contains(&index))
                {
                    let name = format!("{}#{index}{}", member.name, section.name);
                    rows.entry(at as u32).or_insert((name, section.size as u32));
                }
            }
        }
        let mut by_name: Vec<u32> = (0..rows.len() as u32).collect();
        let names: Vec<&str> = rows.values().map(|(name, _)| name.as_str()).collect();
        by_name.sort_by_key(|&at| names[at as usize]);
        let placed = rows.iter().map(|(&offset, (name, size))| PlacedFunction {
            name,
            offset,
            size: *size,
            frame_bytes: 0,
            lines: &[],
            inlined: &[],
            file: None,
            variables: &[],
        });
        let code = draft.addresses(Part::Code);
        CodeUnit::of_object(placed, code.start, self.layout.sizes.code, by_name.into())
    }
}
