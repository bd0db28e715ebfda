//! The layout of an image, and the relocation of its code.
//!
//! ```text
//!   0 ─ functions, each aligned ─ stubs ┊ pad to a page ┊ import table ─ constants
//! ```
//!
//! | reference | to a definition of the image | to an import |
//! |---|---|---|
//! | `X86CallPcRel4`, `X86PcRel4`, `Aarch64AdrPrelPgHi21`, `Aarch64AddAbsLo12Nc` | the distance | refused |
//! | `X86CallPltRel4`, `Arm64Call` | the distance | the distance to a stub |
//! | `X86GotPcRel4`, `Aarch64AdrGotPage21`, `Aarch64Ld64GotLo12Nc` | the load becomes an address computation | the distance to the word of the import |
//!
//! In the last row, code for files loads an address: `mov r, [rip + word]`, and
//! `adrp r, word; ldr r, [r, word]`. For a definition in the image itself, the same bytes with another opcode
//! compute the address, `lea` and `add`, so targets inside the image need no word.
//!
//! A stub jumps to an import: `jmp [rip + word]`, and `adrp x16, word; ldr x16, [x16, word]; br x16`. `adrp`
//! works on pages of 4 KiB, so the loader preserves addresses modulo [`PAGE`].

use std::collections::BTreeMap;

use brolga_codegen::compiled::{CompiledFunction, RelocKind, RelocTarget, Symbol};
use brolga_codegen::relocate::relocate;
use brolga_ir::Arch;

use super::{ImageError, ImageParts, PAGE, versions};

pub(super) const FUNCTION_ALIGN: usize = 32;
const CONSTANT_ALIGN: usize = 16;
/// The filler byte between functions; it decodes as a trap (`int3`, `udf`).
pub(super) const fn trap(arch: Arch) -> u8 {
    match arch {
        Arch::X86_64 => 0xcc,
        Arch::Aarch64 => 0,
    }
}

/// Offsets are 32 bits wide, and distances signed.
pub(super) const LIMIT: usize = 1 << 30;

/// Code, imports and constants after layout.
pub(super) struct Placed<'a> {
    pub(super) code: Vec<u8>,
    /// The offset of each function.
    pub(super) offsets: Vec<u32>,
    pub(super) imports_at: usize,
    pub(super) imports: Vec<&'a Symbol>,
    pub(super) constants: Vec<u8>,
    /// For each function, the functions that its code refers to, by number.
    pub(super) callees: Vec<Vec<u32>>,
    /// The end of the last function.
    pub(super) tail_at: usize,
}

/// The target of a symbol.
#[derive(Clone, Copy)]
enum Destination {
    /// An offset of the image.
    Own(usize),
    /// A word of the import table.
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
    let tail_at = end;
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
    // The imports are collected first; their number determines where the constants begin.
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
                let is_call = matches!(reloc.kind, RelocKind::X86CallPltRel4 | RelocKind::Arm64Call);
                if is_call && !stubs.contains_key(&import) {
                    let at = end.next_multiple_of(8);
                    end = at + stub_bytes(parts.arch);
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
    let mut code = vec![trap(parts.arch); end];
    let mut callees = vec![Vec::new(); offsets.len()];
    let word = |import: usize| imports_at + 8 * import;
    for ((compiled, &at), callees) in parts.functions.iter().zip(&offsets).zip(&mut callees) {
        let (function, at, chain) = (compiled.function, at as usize, &chains[compiled.version]);
        code[at..at + function.code.len()].copy_from_slice(&function.code);
        for reloc in &function.relocs {
            let destination = match reloc.target {
                RelocTarget::Offset(offset) => Destination::Own(at + offset as usize),
                RelocTarget::Symbol(index) => {
                    let symbol = &function.symbols[index as usize];
                    let found = match symbol {
                        Symbol::Function(name) => {
                            let found = own(&functions, chain, name);
                            let row = found.and_then(|at| offsets.binary_search(&(at as u32)).ok());
                            callees.extend(row.map(|row| row as u32));
                            found
                        }
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
            let mut kind = reloc.kind;
            let target = match (reloc.kind, destination) {
                (
                    RelocKind::X86PcRel4
                    | RelocKind::X86CallPcRel4
                    | RelocKind::X86CallPltRel4
                    | RelocKind::Arm64Call
                    | RelocKind::Aarch64AdrPrelPgHi21
                    | RelocKind::Aarch64AddAbsLo12Nc
                    | RelocKind::Aarch64AdrGotPage21,
                    Destination::Own(own),
                ) => own,
                (RelocKind::X86CallPltRel4 | RelocKind::Arm64Call, Destination::Import(import)) => {
                    stubs[&import]
                }
                (
                    RelocKind::X86GotPcRel4
                    | RelocKind::Aarch64AdrGotPage21
                    | RelocKind::Aarch64Ld64GotLo12Nc,
                    Destination::Import(import),
                ) => word(import),
                (RelocKind::X86GotPcRel4 | RelocKind::Aarch64Ld64GotLo12Nc, Destination::Own(own)) => {
                    let Some(of_address) = load_becomes_address(kind, &mut code[at..], reloc.offset as usize)
                    else {
                        return Err(refuse("the address of its own code in a way that is not known".into()));
                    };
                    kind = of_address;
                    own
                }
                (kind, _) => return Err(refuse(format!("something by {kind:?}"))),
            };
            // Only distances matter, so the image is relocated as if it were loaded at 0.
            let to = (target as u64).wrapping_add_signed(reloc.addend);
            let Some(patch) = relocate(kind, &code[place..], place as u64, to) else {
                return Err(refuse("something out of reach".into()));
            };
            code[place..place + patch.bytes().len()].copy_from_slice(patch.bytes());
        }
    }
    for (&import, &at) in &stubs {
        write_stub(parts.arch, &mut code, at, word(import)).ok_or_else(|| too_large(word(import)))?;
    }
    for callees in &mut callees {
        callees.sort_unstable();
        callees.dedup();
    }
    Ok(Placed { code, offsets, imports_at, imports: imports.list, constants, callees, tail_at })
}

/// The definition of this name in the first target of a chain that has one.
fn own(named: &BTreeMap<(usize, &str), usize>, chain: &[usize], name: &str) -> Option<usize> {
    chain.iter().find_map(|&version| named.get(&(version, name)).copied())
}

/// The size of a stub in bytes.
const fn stub_bytes(arch: Arch) -> usize {
    match arch {
        Arch::X86_64 => 6,
        Arch::Aarch64 => 12,
    }
}

/// Writes a stub at `at` that jumps through a word; `None` if the word is out of reach.
fn write_stub(arch: Arch, code: &mut [u8], at: usize, word: usize) -> Option<()> {
    match arch {
        Arch::X86_64 => {
            let distance = i32::try_from(word - (at + stub_bytes(arch))).ok()?;
            code[at..at + 2].copy_from_slice(&[0xff, 0x25]);
            code[at + 2..at + 6].copy_from_slice(&distance.to_le_bytes());
        }
        Arch::Aarch64 => {
            let page = relocate(RelocKind::Aarch64AdrPrelPgHi21, &ADRP_X16, at as u64, word as u64)?;
            let load = relocate(RelocKind::Aarch64Ld64GotLo12Nc, &LDR_X16, (at + 4) as u64, word as u64)?;
            code[at..at + 4].copy_from_slice(page.bytes());
            code[at + 4..at + 8].copy_from_slice(load.bytes());
            code[at + 8..at + 12].copy_from_slice(&BR_X16);
        }
    }
    Some(())
}

/// `adrp x16, .`; the standard reserves x16 for linkers.
const ADRP_X16: [u8; 4] = 0x9000_0010_u32.to_le_bytes();
/// `ldr x16, [x16]`.
const LDR_X16: [u8; 4] = 0xf940_0210_u32.to_le_bytes();
/// `br x16`.
const BR_X16: [u8; 4] = 0xd61f_0200_u32.to_le_bytes();

/// Turns a load of an address from a word into the computation of the address, and returns the relocation
/// kind for it: `mov r, [rip + d]`, whose distance is at `at`, becomes `lea r, [rip + d]`; `ldr r, [s, d]`,
/// which is itself at `at`, becomes `add r, s, d`.
pub(super) fn load_becomes_address(kind: RelocKind, code: &mut [u8], at: usize) -> Option<RelocKind> {
    if kind == RelocKind::Aarch64Ld64GotLo12Nc {
        let bytes: &mut [u8; 4] = code.get_mut(at..)?.first_chunk_mut()?;
        let load = u32::from_le_bytes(*bytes);
        // The offset is 0 before relocation.
        let is_load = load & 0xffff_fc00 == 0xf940_0000;
        *bytes = (0x9100_0000 | load & 0x3ff).to_le_bytes();
        return is_load.then_some(RelocKind::Aarch64AddAbsLo12Nc);
    }
    let [opcode, mode] = at.checked_sub(2).and_then(|from| code.get_mut(from..at))? else { return None };
    let is_load = *opcode == 0x8b && *mode & 0xc7 == 0x05;
    *opcode = 0x8d;
    is_load.then_some(RelocKind::X86PcRel4)
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
        return fault("has an alignment larger than a page");
    }
    function.check_relocations().or_else(fault)
}

fn malformed(name: &str, fault: &'static str) -> ImageError {
    ImageError::Malformed { name: name.to_owned(), fault }
}

fn within_limit(bytes: usize) -> Result<(), ImageError> {
    if bytes > LIMIT { Err(too_large(bytes)) } else { Ok(()) }
}

fn too_large(bytes: usize) -> ImageError {
    ImageError::TooLarge { bytes, limit: LIMIT }
}
