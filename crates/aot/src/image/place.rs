//! The layout of an image, and the references of its code.
//!
//! ```text
//!   0 ─ functions, each aligned ─ stubs ┊ pad to a page ┊ import table ─ constants
//! ```
//!
//! | reference | to a definition of the image | to an import |
//! |---|---|---|
//! | `X86CallPcRel4`, `X86PcRel4` | the distance | refused |
//! | `X86CallPltRel4` | the distance | the distance to a stub: `jmp [rip + import]` |
//! | `X86GotPcRel4` | the load becomes `lea` | the distance to the word of the import |
//!
//! In the last row code for files loads an address: `mov r, [rip + word]`. For a definition of the image itself the same bytes with
//! another opcode compute the address, so nothing inside the image has a word.

use std::collections::BTreeMap;

use brolga_codegen::compiled::{CompiledFunction, RelocKind, RelocTarget, Symbol};

use super::{ImageError, ImageParts, PAGE, versions};

pub(super) const FUNCTION_ALIGN: usize = 32;
const CONSTANT_ALIGN: usize = 16;
/// `int3`: what lies between functions.
pub(super) const TRAP: u8 = 0xcc;
/// Offsets are 32 bits, and distances signed ones.
pub(super) const LIMIT: usize = 1 << 30;

/// Code, imports and constants in their places.
pub(super) struct Placed<'a> {
    pub(super) code: Vec<u8>,
    /// Where each function begins.
    pub(super) offsets: Vec<u32>,
    pub(super) imports_at: usize,
    pub(super) imports: Vec<&'a Symbol>,
    pub(super) constants: Vec<u8>,
}

/// Where a symbol leads.
#[derive(Clone, Copy)]
enum Destination {
    /// An offset of the image.
    Own(usize),
    /// A word of the table.
    Import(usize),
}

pub(super) fn place<'a>(parts: &ImageParts<'a>) -> Result<Placed<'a>, ImageError> {
    let mut functions = BTreeMap::new();
    let mut offsets = Vec::with_capacity(parts.functions.len());
    let mut end = 0usize;
    for compiled in parts.functions {
        let function = compiled.function;
        check(function)?;
        let at = end.next_multiple_of(FUNCTION_ALIGN.max(function.align as usize));
        end = at + function.code.len();
        within_limit(end)?;
        offsets.push(at as u32);
        if compiled.version >= parts.targets.len() {
            return Err(malformed(&function.name, "is for a target that the image does not have"));
        }
        if functions.insert((compiled.version, function.name.as_str()), at).is_some() {
            return Err(malformed(&function.name, "is defined twice"));
        }
    }
    let mut imports = Imports::default();
    let mut stubs: BTreeMap<usize, usize> = BTreeMap::new();
    let mut names = BTreeMap::new();
    for (at, (version, name, _)) in parts.constants.iter().enumerate() {
        if names.insert((*version, *name), at).is_some() {
            return Err(malformed(name, "is defined twice"));
        }
    }
    let chains: Vec<Vec<usize>> =
        (0..parts.targets.len()).map(|target| versions::chain(parts.targets, target)).collect();
    // First what is imported, which says where the constants begin.
    for compiled in parts.functions {
        for reloc in &compiled.function.relocs {
            let RelocTarget::Symbol(index) = reloc.target else { continue };
            let symbol = &compiled.function.symbols[index as usize];
            let is_own = match symbol {
                Symbol::Function(name) => own(&functions, &chains[compiled.version], name).is_some(),
                Symbol::Data(name) => own(&names, &chains[compiled.version], name).is_some(),
                _ => false,
            };
            if !is_own {
                let import = imports.add(&compiled.function.name, symbol)?;
                if reloc.kind == RelocKind::X86CallPltRel4 && !stubs.contains_key(&import) {
                    let at = end.next_multiple_of(8);
                    end = at + STUB_BYTES;
                    stubs.insert(import, at);
                }
            }
        }
    }
    within_limit(end)?;
    let imports_at = end.next_multiple_of(PAGE);
    let constants_at = imports_at + 8 * imports.list.len();
    let mut constants = Vec::new();
    let mut constant_offsets = Vec::with_capacity(parts.constants.len());
    for (_, _, bytes) in parts.constants {
        let at = (constants_at + constants.len()).next_multiple_of(CONSTANT_ALIGN);
        constants.resize(at - constants_at, 0);
        constants.extend_from_slice(bytes);
        constant_offsets.push(at);
        within_limit(at + bytes.len())?;
    }
    let mut code = vec![TRAP; end];
    let word = |import: usize| imports_at + 8 * import;
    for (compiled, &at) in parts.functions.iter().zip(&offsets) {
        let (function, at, chain) = (compiled.function, at as usize, &chains[compiled.version]);
        code[at..at + function.code.len()].copy_from_slice(&function.code);
        for reloc in &function.relocs {
            let destination = match reloc.target {
                RelocTarget::Offset(offset) => Destination::Own(at + offset as usize),
                RelocTarget::Symbol(index) => {
                    let symbol = &function.symbols[index as usize];
                    let found = match symbol {
                        Symbol::Function(name) => own(&functions, chain, name),
                        Symbol::Data(name) => own(&names, chain, name).map(|index| constant_offsets[index]),
                        _ => None,
                    };
                    match found {
                        Some(own) => Destination::Own(own),
                        None => Destination::Import(imports.add(&function.name, symbol)?),
                    }
                }
            };
            let refuse = |what: String| ImageError::Reference { function: function.name.clone(), what };
            let place = at + reloc.offset as usize;
            let target = match (reloc.kind, destination) {
                (
                    RelocKind::X86PcRel4 | RelocKind::X86CallPcRel4 | RelocKind::X86CallPltRel4,
                    Destination::Own(own),
                ) => own,
                (RelocKind::X86CallPltRel4, Destination::Import(import)) => stubs[&import],
                (RelocKind::X86GotPcRel4, Destination::Import(import)) => word(import),
                (RelocKind::X86GotPcRel4, Destination::Own(own)) => {
                    if !load_becomes_address(&mut code[at..], reloc.offset as usize) {
                        return Err(refuse("the address of its own code in a way that is not known".into()));
                    }
                    own
                }
                (kind, _) => return Err(refuse(format!("something by {kind:?}"))),
            };
            let distance = (target as i64).checked_add(reloc.addend).map(|to| to - place as i64);
            let distance = distance.and_then(|distance| i32::try_from(distance).ok());
            let Some(distance) = distance else { return Err(refuse("something out of reach".into())) };
            code[place..place + 4].copy_from_slice(&distance.to_le_bytes());
        }
    }
    for (&import, &at) in &stubs {
        code[at..at + 2].copy_from_slice(&[0xff, 0x25]);
        let distance = (word(import) - (at + STUB_BYTES)) as i32;
        code[at + 2..at + STUB_BYTES].copy_from_slice(&distance.to_le_bytes());
    }
    Ok(Placed { code, offsets, imports_at, imports: imports.list, constants })
}

/// The definition of this name in the first target of a chain that has one.
fn own(named: &BTreeMap<(usize, &str), usize>, chain: &[usize], name: &str) -> Option<usize> {
    chain.iter().find_map(|&version| named.get(&(version, name)).copied())
}

/// `jmp [rip + distance]`.
const STUB_BYTES: usize = 6;

/// Makes `mov r, [rip + d]` into `lea r, [rip + d]`, whose distance lies at `at`.
pub(super) fn load_becomes_address(code: &mut [u8], at: usize) -> bool {
    let Some([opcode, mode]) = at.checked_sub(2).and_then(|from| code.get_mut(from..at)) else {
        return false;
    };
    let is_load = *opcode == 0x8b && *mode & 0xc7 == 0x05;
    if is_load {
        *opcode = 0x8d;
    }
    is_load
}

/// The import table.
#[derive(Default)]
struct Imports<'a> {
    list: Vec<&'a Symbol>,
    known: BTreeMap<&'a Symbol, usize>,
}

impl<'a> Imports<'a> {
    fn add(&mut self, function: &str, symbol: &'a Symbol) -> Result<usize, ImageError> {
        if let Some(&known) = self.known.get(symbol) {
            return Ok(known);
        }
        match symbol {
            Symbol::IndirectCell(_)
            | Symbol::Counter(_)
            | Symbol::Cells
            | Symbol::Function(_)
            | Symbol::Data(_) => {
                let what = symbol.to_string();
                return Err(ImageError::Reference { function: function.to_owned(), what });
            }
            Symbol::Methods
            | Symbol::Routine(_)
            | Symbol::Foreign { .. }
            | Symbol::Interned(_)
            | Symbol::Module(_)
            | Symbol::Text(_)
            | Symbol::Global(_)
            | Symbol::Type(_)
            | Symbol::Instance(_)
            | Symbol::Boxed { .. } => {}
        }
        let index = self.list.len();
        self.list.push(symbol);
        self.known.insert(symbol, index);
        Ok(index)
    }
}

fn check(function: &CompiledFunction) -> Result<(), ImageError> {
    let fault = |fault| Err(malformed(&function.name, fault));
    if function.name.contains('\0') {
        return fault("has a NUL byte in its name, which no symbol table can hold");
    }
    if function.code.is_empty() {
        return fault("has no code");
    }
    if !function.align.is_power_of_two() || function.align as usize > PAGE {
        return fault("has an alignment that pages cannot give");
    }
    function.check_relocations().or_else(fault)
}

fn malformed(name: &str, fault: &'static str) -> ImageError {
    ImageError::Malformed { name: name.to_owned(), fault }
}

fn within_limit(bytes: usize) -> Result<(), ImageError> {
    if bytes > LIMIT { Err(ImageError::TooLarge { bytes, limit: LIMIT }) } else { Ok(()) }
}
