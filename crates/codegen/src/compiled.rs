//! Machine code of one function, before it has an address.
//!
//! ```text
//!   CompiledFunction   code      bytes, no address inside
//!                      relocs    places to fill in ──► symbols   functions, data, routines, types …
//!                      lines     code offset ──► source position
//!                      maps      return address of a call ──► words that hold roots
//! ```
//!
//! Code generators produce it; linkers, object files and images consume it. It names no Cranelift type.

use std::collections::{BTreeMap, BTreeSet};

use cranelift_codegen::binemit::Reloc;

use crate::origin::{InlinedBody, Origin};
use crate::sig::Signature;

/// The largest ordinary frame. The stack check keeps this much room below every frame that passed it; a larger frame
/// needs a guard before it.
pub const MAX_FRAME_BYTES: u32 = 128 << 10;

/// The largest frame, which needs a guard at the entry. Most threads have smaller stacks: there the guard throws, at each
/// level of optimisation.
pub const MAX_GUARDED_FRAME_BYTES: u32 = 1 << 30;

/// Something outside a function that its code refers to. Which table answers is part of the name, so that a compiled
/// function `sin` and the C library's `sin` are two symbols.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Symbol {
    /// A compiled function, by its deterministic name.
    Function(String),
    /// The word that holds the address of a compiled function's current code (`linkage.rs`), by the function's name.
    IndirectCell(String),
    /// The word in which a compiled function counts its entries (`linkage.rs`), by the function's name.
    Counter(String),
    /// The cells in which a first tier counts for its profile (`linkage.rs`).
    Cells,
    /// The table of methods that calls from the unit search, by its address.
    Methods,
    /// A data object, by its deterministic name.
    Data(String),
    /// A routine of the run time (`routines.rs`).
    Routine(String),
    /// A C symbol that a `foreigncall` names, with the library if the call names one.
    Foreign {
        /// The name that the C library exports.
        name: String,
        /// The library that has it; `None` for the process itself.
        library: Option<String>,
        /// Whether the address is 0 if there is no such symbol.
        weak: bool,
    },
    /// The permanent record of a `Symbol` constant with this name.
    Interned(String),
    /// The permanent object of the module with this name.
    Module(String),
    /// The permanent record of a `String` constant with this content.
    Text(Vec<u8>),
    /// The cell of a global variable: a reference to its value.
    Global(String),
    /// The object of a type.
    Type(NamedType),
    /// The only instance of a type, as an object.
    Instance(NamedType),
    /// A permanent object of a primitive type with these bits.
    Boxed {
        ty: NamedType,
        /// The lower half of the bits.
        low: u64,
        /// The upper half.
        high: u64,
    },
}

/// A type with the name that it prints as, which is the same in every process.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct NamedType {
    pub name: Box<str>,
    /// The type, in the context that the function was translated with.
    pub ty: brolga_ir::Type,
}

impl std::fmt::Display for Symbol {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Symbol::Function(name) => write!(f, "function `{name}`"),
            Symbol::IndirectCell(name) => write!(f, "the cell of function `{name}`"),
            Symbol::Counter(name) => write!(f, "the counter of function `{name}`"),
            Symbol::Cells => f.write_str("the cells of the profile"),
            Symbol::Methods => f.write_str("the table of methods"),
            Symbol::Data(name) => write!(f, "data object `{name}`"),
            Symbol::Routine(name) => write!(f, "run-time routine `{name}`"),
            Symbol::Foreign { name, library: None, .. } => write!(f, "C symbol `{name}`"),
            Symbol::Foreign { name, library: Some(library), .. } => {
                write!(f, "C symbol `{name}` of `{library}`")
            }
            Symbol::Interned(name) => write!(f, "symbol constant `:{name}`"),
            Symbol::Module(name) => write!(f, "module `{name}`"),
            Symbol::Text(bytes) => {
                write!(f, "string constant {:?}", String::from_utf8_lossy(bytes))
            }
            Symbol::Global(name) => write!(f, "the global variable `{name}`"),
            Symbol::Type(ty) => write!(f, "type `{}`", ty.name),
            Symbol::Instance(ty) => write!(f, "the instance of type `{}`", ty.name),
            Symbol::Boxed { ty, low, high } => {
                write!(f, "a box of type `{}` with bits 0x{high:016x}{low:016x}", ty.name)
            }
        }
    }
}

/// How a place in the code is filled in. Only these occur on the hosts of `isa.rs`; all else is refused at compile time.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum RelocKind {
    /// The 64-bit address.
    Abs8,
    /// x86-64: the 32-bit distance from the end of the field (the addend corrects for the field itself).
    X86PcRel4,
    /// x86-64: as `X86PcRel4`, in a call.
    X86CallPcRel4,
    /// aarch64: the distance in a `bl`, reached through a veneer when it is far.
    Arm64Call,
    /// aarch64: the page in an `adrp`.
    Aarch64AdrPrelPgHi21,
    /// aarch64: the low 12 bits in an `add`.
    Aarch64AddAbsLo12Nc,
    /// x86-64, files only: the distance to the entry of a function in the procedure linkage table.
    X86CallPltRel4,
    /// x86-64, files only: the distance to the symbol's address in the global offset table.
    X86GotPcRel4,
    /// aarch64, files only: the page of the symbol's address in the global offset table.
    Aarch64AdrGotPage21,
    /// aarch64, files only: the low 12 bits of the symbol's address in the global offset table, in a load.
    Aarch64Ld64GotLo12Nc,
}

impl RelocKind {
    /// Bytes of the code that are rewritten.
    pub const fn size(self) -> usize {
        match self {
            RelocKind::Abs8 => 8,
            _ => 4,
        }
    }

    /// Whether the target has to be within ±2 GiB.
    pub const fn is_relative(self) -> bool {
        !matches!(self, RelocKind::Abs8)
    }

    /// Whether a linker has to make a table for it: only in position-independent code.
    pub const fn needs_table(self) -> bool {
        matches!(
            self,
            RelocKind::X86CallPltRel4
                | RelocKind::X86GotPcRel4
                | RelocKind::Aarch64AdrGotPage21
                | RelocKind::Aarch64Ld64GotLo12Nc
        )
    }

    /// Cranelift's name for it, for linkers built on Cranelift's.
    pub const fn clif(self) -> Reloc {
        match self {
            RelocKind::Abs8 => Reloc::Abs8,
            RelocKind::X86PcRel4 => Reloc::X86PCRel4,
            RelocKind::X86CallPcRel4 => Reloc::X86CallPCRel4,
            RelocKind::Arm64Call => Reloc::Arm64Call,
            RelocKind::Aarch64AdrPrelPgHi21 => Reloc::Aarch64AdrPrelPgHi21,
            RelocKind::Aarch64AddAbsLo12Nc => Reloc::Aarch64AddAbsLo12Nc,
            RelocKind::X86CallPltRel4 => Reloc::X86CallPLTRel4,
            RelocKind::X86GotPcRel4 => Reloc::X86GOTPCRel4,
            RelocKind::Aarch64AdrGotPage21 => Reloc::Aarch64AdrGotPage21,
            RelocKind::Aarch64Ld64GotLo12Nc => Reloc::Aarch64Ld64GotLo12Nc,
        }
    }

    pub(crate) fn from_clif(reloc: Reloc) -> Option<RelocKind> {
        Some(match reloc {
            Reloc::Abs8 => RelocKind::Abs8,
            Reloc::X86PCRel4 => RelocKind::X86PcRel4,
            Reloc::X86CallPCRel4 => RelocKind::X86CallPcRel4,
            Reloc::Arm64Call => RelocKind::Arm64Call,
            Reloc::Aarch64AdrPrelPgHi21 => RelocKind::Aarch64AdrPrelPgHi21,
            Reloc::Aarch64AddAbsLo12Nc => RelocKind::Aarch64AddAbsLo12Nc,
            Reloc::X86CallPLTRel4 => RelocKind::X86CallPltRel4,
            Reloc::X86GOTPCRel4 => RelocKind::X86GotPcRel4,
            Reloc::Aarch64AdrGotPage21 => RelocKind::Aarch64AdrGotPage21,
            Reloc::Aarch64Ld64GotLo12Nc => RelocKind::Aarch64Ld64GotLo12Nc,
            _ => return None,
        })
    }
}

/// The target of a relocation.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum RelocTarget {
    /// An entry of [`CompiledFunction::symbols`].
    Symbol(u32),
    /// An offset in the function itself.
    Offset(u32),
}

/// The namespace of external names that stand for return addresses: `u1:N` is the address that the call tagged N returns to.
pub const RETURN_ADDRESS: u32 = 1;

/// The locations of the roots of one call.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct FrameMap {
    /// The address that the call returns to, from the start of the code.
    pub return_offset: u32,
    /// The words that hold roots during the call, as distances from the frame pointer.
    pub words: Box<[i32]>,
}

/// A place in the code that needs an address.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Relocation {
    /// Where the place is, from the start of the code.
    pub offset: u32,
    /// How it is filled in.
    pub kind: RelocKind,
    pub target: RelocTarget,
    /// Added to the target's address.
    pub addend: i64,
}

/// Which code generator made a function, and how.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MadeBy {
    /// The single pass (`single_pass/mod.rs`).
    SinglePass,
    /// Cranelift, with the settings of the tier.
    Cranelift,
    /// Cranelift, with single-pass register allocation because the function is too big for backtracking.
    CraneliftOversized,
    /// Another producer: it was read from an object file, or written for a test.
    Other,
}

/// Machine code of one function, not yet placed.
#[derive(Clone, PartialEq, Debug)]
pub struct CompiledFunction {
    /// The function's deterministic name.
    pub name: String,
    /// The bytes.
    pub code: Vec<u8>,
    /// Required alignment of the first byte, a power of two.
    pub align: u32,
    /// Places to fill in.
    pub relocs: Vec<Relocation>,
    /// The targets of the relocations, by index.
    pub symbols: Vec<Symbol>,
    /// Bytes of stack that one activation takes, beside arguments on the stack.
    pub frame_bytes: u32,
    /// The roots of calls, by ascending return address. Calls without an entry have none, or link them.
    pub frame_maps: Vec<FrameMap>,
    /// Source positions: code offsets in ascending order, each with the position that holds from there on.
    pub lines: Vec<(u32, Origin)>,
    /// The inlined bodies that the positions refer to; an outer one precedes those within it.
    pub inlined: Vec<InlinedBody>,
    /// The file its line numbers refer to, if the function records it.
    pub file: Option<String>,
    /// Variables of the source, and where they are, for debuggers. A cache and an image do not keep them.
    pub variables: Vec<Variable>,
    /// The code generator.
    pub made_by: MadeBy,
    /// The listing of the machine code, if requested.
    pub listing: Option<String>,
}

impl CompiledFunction {
    /// Checks that its relocations are inside its code and have valid targets.
    ///
    /// # Errors
    /// The error is the end of a sentence about the function.
    pub fn check_relocations(&self) -> Result<(), &'static str> {
        for reloc in &self.relocs {
            if reloc.offset as usize + reloc.kind.size() > self.code.len() {
                return Err("has a relocation outside of its code");
            }
            let inside = match reloc.target {
                RelocTarget::Symbol(index) => (index as usize) < self.symbols.len(),
                RelocTarget::Offset(offset) => offset as usize <= self.code.len(),
            };
            if !inside {
                return Err("has a relocation to nothing");
            }
        }
        Ok(())
    }
}

/// A variable of the source.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Variable {
    pub name: String,
    /// The name of its type.
    pub ty: String,
    /// How its bits are shown.
    pub shown: Shown,
    /// Its places, each with the range of code offsets in which it is there.
    pub places: Vec<(u32, u32, VariablePlace)>,
}

/// How the bits of a variable are shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shown {
    /// As a signed integer of this many bytes.
    Signed(u8),
    /// As an unsigned integer of this many bytes.
    Unsigned(u8),
    /// As a float of this many bytes.
    Float(u8),
    /// As true or false, in a byte.
    Bool,
    /// As the address of an object.
    Address,
}

/// Where a variable is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum VariablePlace {
    /// In a register, by DWARF's number.
    Register(u16),
    /// In the frame, at this offset from the canonical frame address, which is two words above the frame pointer.
    Frame(i64),
}

/// Functions that were compiled together, with everything needed to link them: the part that outlives the process.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct UnitCode {
    pub functions: Vec<CompiledFunction>,
    /// Constant bytes that they refer to, by name.
    pub constants: Vec<(String, Vec<u8>)>,
    /// The requested signatures.
    pub signatures: BTreeMap<String, Option<Signature>>,
    /// The signatures that calls assume for functions elsewhere.
    pub calls: BTreeSet<(String, Signature)>,
    /// The words of the functions whose C entries they take the addresses of.
    pub c_callees: BTreeSet<Symbol>,
    /// Whether they handle objects.
    pub needs_heap: bool,
    /// How many cells of a profile they count in.
    pub cells: usize,
}
