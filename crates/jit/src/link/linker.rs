//! Linking in process: compiled functions and data become memory that can run.
//!
//! A [`LinkUnit`] is placed as a whole and freed as a whole. Before anything is placed, every name is resolved and every
//! relocation checked here, once for all implementations of [`Linker`]:
//!
//! | refused                                              | error                          |
//! |------------------------------------------------------|--------------------------------|
//! | two definitions of one name                          | [`LinkError::Duplicate`]       |
//! | a symbol that neither the unit nor the resolver has  | [`LinkError::Unresolved`], all of them at once |
//! | a relocation outside its code, a symbol index outside the table, an alignment that pages cannot provide | [`LinkError::Malformed`] |
//! | a relative reference to something outside its reach  | [`LinkError::OutOfReach`]      |
//!
//! so an implementation only copies and patches, and has no reason to panic.
//!
//! Definitions in the unit come first, then the resolver. A resolved address may belong to another loaded unit; the
//! new unit then keeps that one alive.

use std::collections::BTreeMap;
use std::sync::Arc;

use brolga_codegen::compiled::{CompiledFunction, RelocKind, RelocTarget, Symbol};
use brolga_runtime::Doors;

use crate::debug::code_map::{CodeUnit, MapEntry, PlacedFunction};
use crate::link::object::error::ObjectFileError;
use crate::memory::error::CodeMemoryError;
use crate::memory::reservation::CodeMemoryStats;
use crate::memory::space::Memory;

/// The least alignment of a function: what the processors fetch at once.
pub(crate) const FUNCTION_ALIGN: u32 = 32;

/// Alignments up to this are honoured: every system has pages at least this large.
const MAX_ALIGN: u32 = 4096;

/// Addends beyond this could carry a reference between two places in code memory out of reach.
const MAX_ADDEND: u64 = 1 << 29;

/// A place in a data object that holds an address.
#[derive(Clone, PartialEq, Debug)]
pub struct DataRelocation {
    /// Where it is, from the start of the object.
    pub offset: u32,
    /// The target.
    pub symbol: Symbol,
    /// Added to the address.
    pub addend: i64,
}

/// Bytes that code refers to.
#[derive(Clone, PartialEq, Debug)]
pub struct DataObject {
    /// Its deterministic name.
    pub name: String,
    /// The initial bytes.
    pub bytes: Vec<u8>,
    /// Required alignment, a power of two.
    pub align: u32,
    /// Whether the program may write to it.
    pub writable: bool,
    /// Addresses in it.
    pub relocs: Vec<DataRelocation>,
}

/// Functions and data that are linked and freed together.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct LinkUnit {
    pub functions: Vec<CompiledFunction>,
    /// The data objects.
    pub data: Vec<DataObject>,
}

/// The address of a symbol that a unit refers to but does not define.
#[derive(Clone, Debug)]
pub struct Import {
    pub address: usize,
    /// The unit that contains it, if any.
    pub owner: Option<Arc<LoadedUnit>>,
}

/// Resolves symbols that a unit does not define: the address, or the reason for its absence.
pub trait Resolver {
    /// The symbol's address.
    fn resolve(&self, symbol: &Symbol) -> Result<Import, String>;
}

/// Why a unit could not be linked. Nothing of it remains.
#[derive(thiserror::Error, Debug)]
pub enum LinkError {
    /// Symbols without a definition, each with the reason. The program or the embedder's tables are at fault.
    #[error("{}", list_unresolved(.symbols))]
    Unresolved {
        /// All of them, in order.
        symbols: Vec<(Symbol, String)>,
    },
    /// A name is defined twice in one unit.
    #[error("{symbol} is defined twice")]
    Duplicate {
        /// The name.
        symbol: Symbol,
    },
    /// The unit contradicts itself: a fault of its builder.
    #[error("malformed link unit: `{name}` {fault}")]
    Malformed {
        /// The function or data object.
        name: String,
        fault: &'static str,
    },
    /// A relative reference to an address further away than it can express. Such references must go to symbols of the
    /// same code memory only.
    #[error("`{name}` refers to {symbol}, which is out of reach of a relative reference")]
    OutOfReach {
        /// The referring function.
        name: String,
        /// The target.
        symbol: Symbol,
    },
    /// An object file needs a construct that cannot be linked here.
    #[error(transparent)]
    Object(#[from] ObjectFileError),
    /// There is no memory for it.
    #[error(transparent)]
    Memory(#[from] CodeMemoryError),
    /// The code of an image cannot be read, or is not as it was written.
    #[error("{reason}")]
    Unread {
        /// The reason.
        reason: String,
    },
    /// The linker below failed in a way that the checks should have excluded. A defect.
    #[error("linker failed: {reason}")]
    Backend {
        /// Its words.
        reason: String,
    },
}

impl LinkError {
    /// Whether freeing units can help.
    pub fn is_shortage(&self) -> bool {
        matches!(self, LinkError::Memory(error) if error.is_shortage())
    }
}

fn list_unresolved(symbols: &[(Symbol, String)]) -> String {
    let lines: Vec<String> = symbols.iter().map(|(symbol, reason)| format!("{symbol}: {reason}")).collect();
    format!("unresolved: {}", lines.join("; "))
}

/// Describes a unit whose functions are at `offsets` from `base`, in ascending order, and which ends at `bytes`. `by_name`
/// are the indices of its functions by name.
pub(crate) fn describe(
    unit: &LinkUnit,
    base: usize,
    bytes: usize,
    offsets: &[u32],
    by_name: Box<[u32]>,
) -> CodeUnit {
    let placed = unit.functions.iter().zip(offsets).map(|(function, &offset)| PlacedFunction {
        name: &function.name,
        offset,
        size: function.code.len() as u32,
        frame_bytes: function.frame_bytes,
        lines: &function.lines,
        inlined: &function.inlined,
        file: function.file.as_deref(),
        variables: &function.variables,
    });
    CodeUnit::new(placed, base, bytes, by_name)
}

/// Places link units in memory.
pub trait Linker: Send + Sync {
    /// Links a unit; `resolver` resolves the symbols that it does not define.
    fn link(&self, unit: &LinkUnit, resolver: &dyn Resolver) -> Result<Arc<LoadedUnit>, LinkError>;

    /// The state of its memory.
    fn stats(&self) -> CodeMemoryStats;
}

/// A unit in memory. The memory is returned when it is dropped; running its code or reading its data requires a handle to it.
pub struct LoadedUnit {
    /// Dropped before the memory, so that no address outside of loaded code is ever found.
    code: MapEntry,
    /// Names and addresses, by name.
    data: Box<[(String, usize)]>,
    #[expect(dead_code, reason = "held so that the unit stays in memory")]
    memory: Memory,
    /// Units that this one refers to, held so that they stay in memory.
    owners: Vec<Arc<LoadedUnit>>,
    /// The start of a unit of object files. Dropping it ends the unit.
    started: Option<Box<dyn Start>>,
}

/// The start of a unit of object files.
pub(crate) trait Start: Send + Sync {
    /// Runs the code that must run before any other, once.
    fn start(&self, promise: Doors);
}

impl Drop for LoadedUnit {
    fn drop(&mut self) {
        // Finalisers may call into the units that this one refers to.
        drop(self.started.take());
        release(std::mem::take(&mut self.owners), |unit| std::mem::take(&mut unit.owners));
    }
}

/// Drops values that hold others of their kind, one after the other: chains can be longer than the stack allows. `held`
/// takes from one what it holds.
pub(crate) fn release<T>(mut open: Vec<Arc<T>>, held: impl Fn(&mut T) -> Vec<Arc<T>>) {
    while let Some(one) = open.pop() {
        if let Some(mut last) = Arc::into_inner(one) {
            open.append(&mut held(&mut last));
        }
    }
}

impl LoadedUnit {
    /// `data` is sorted by name.
    pub(crate) fn new(
        code: MapEntry,
        data: Box<[(String, usize)]>,
        memory: Memory,
        owners: Vec<Arc<LoadedUnit>>,
    ) -> LoadedUnit {
        LoadedUnit { code, data, memory, owners, started: None }
    }

    /// A unit of object files.
    pub(crate) fn of_object(
        code: MapEntry,
        memory: Memory,
        owners: Vec<Arc<LoadedUnit>>,
        started: Box<dyn Start>,
    ) -> LoadedUnit {
        LoadedUnit { code, data: Box::default(), memory, owners, started: Some(started) }
    }

    /// Runs the code that must run before any other code of object files, once.
    pub(crate) fn start(&self, promise: Doors) {
        if let Some(started) = &self.started {
            started.start(promise);
        }
    }

    /// Its code, described.
    pub fn code(&self) -> &CodeUnit {
        self.code.unit()
    }

    /// The address of a function, valid while this unit is held.
    pub fn function(&self, name: &str) -> Option<usize> {
        self.find(name).ok().flatten()
    }

    /// As [`LoadedUnit::function`]; code of an image may have to be read for it.
    ///
    /// # Errors
    /// The code cannot be read: the reason.
    pub(crate) fn find(&self, name: &str) -> Result<Option<usize>, String> {
        self.code().address_of(name)
    }

    /// The address of a data object, valid while this unit is held.
    pub fn data(&self, name: &str) -> Option<usize> {
        let at = self.data.binary_search_by(|(known, _)| known.as_str().cmp(name)).ok()?;
        self.data.get(at).map(|(_, address)| *address)
    }

    /// Names, addresses and sizes of all functions, by name.
    pub fn functions(&self) -> impl Iterator<Item = (&str, usize, usize)> {
        self.code().functions_by_name().map(|function| (function.name(), function.address(), function.size()))
    }
}

impl std::fmt::Debug for LoadedUnit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LoadedUnit").field("functions", self.code()).finish_non_exhaustive()
    }
}

/// The target of a symbol of a unit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Destination {
    /// A function of the unit, by index.
    Function(usize),
    /// A data object of the unit, by index.
    Data(usize),
    /// An import, by index.
    Import(usize),
}

/// A unit that passed every check, with its names resolved.
pub(crate) struct Resolved<'a> {
    pub(crate) unit: &'a LinkUnit,
    /// For each function, the destination of each of its symbols.
    pub(crate) function_symbols: Vec<Vec<Destination>>,
    /// For each data object, the destination of each of its relocations.
    pub(crate) data_symbols: Vec<Vec<Destination>>,
    /// Addresses of imports.
    pub(crate) imports: Vec<usize>,
    /// Units that own an import.
    pub(crate) owners: Vec<Arc<LoadedUnit>>,
    /// Indices of the functions, by name.
    pub(crate) functions_by_name: Box<[u32]>,
    /// Indices of the data objects, by name.
    data_by_name: Box<[u32]>,
}

impl<'a> Resolved<'a> {
    /// Checks a unit and resolves its names. Checks that depend on the unit's place are left to `check_reach`.
    pub(crate) fn new(unit: &'a LinkUnit, resolver: &dyn Resolver) -> Result<Resolved<'a>, LinkError> {
        let mut names = Names::of(unit)?;
        for function in &unit.functions {
            check_function(function)?;
        }
        for object in &unit.data {
            check_data(object)?;
        }
        let mut resolve = |symbol: &'a Symbol| names.destination(symbol, resolver);
        let function_symbols =
            unit.functions.iter().map(|f| f.symbols.iter().map(&mut resolve).collect()).collect();
        let data_symbols =
            unit.data.iter().map(|d| d.relocs.iter().map(|r| resolve(&r.symbol)).collect()).collect();
        let Names { functions, data, imports, owners, unresolved, .. } = names;
        let indices =
            |by_name: BTreeMap<&str, usize>| by_name.into_values().map(|index| index as u32).collect();
        if !unresolved.is_empty() {
            let symbols = unresolved.into_iter().map(|(symbol, why)| (symbol.clone(), why)).collect();
            return Err(LinkError::Unresolved { symbols });
        }
        let (functions_by_name, data_by_name) = (indices(functions), indices(data));
        let resolved = Resolved {
            unit,
            function_symbols,
            data_symbols,
            imports,
            owners,
            functions_by_name,
            data_by_name,
        };
        resolved.check_absolute()?;
        Ok(resolved)
    }

    /// Names and addresses of the data objects, by name; `addresses` are in the order of the unit.
    pub(crate) fn data_table(&self, addresses: &[usize]) -> Box<[(String, usize)]> {
        let row = |&index: &u32| (self.unit.data[index as usize].name.clone(), addresses[index as usize]);
        self.data_by_name.iter().map(row).collect()
    }

    /// Every address plus its addend must be an address.
    fn check_absolute(&self) -> Result<(), LinkError> {
        let sane = |destination: Destination, addend: i64| match destination {
            Destination::Import(at) => self.imports[at].checked_add_signed(addend as isize).is_some(),
            Destination::Function(_) | Destination::Data(_) => addend.unsigned_abs() < MAX_ADDEND,
        };
        for (function, symbols) in self.unit.functions.iter().zip(&self.function_symbols) {
            for reloc in &function.relocs {
                let fits = match reloc.target {
                    RelocTarget::Symbol(at) => sane(symbols[at as usize], reloc.addend),
                    RelocTarget::Offset(_) => reloc.addend.unsigned_abs() < MAX_ADDEND,
                };
                if !fits {
                    return Err(malformed(&function.name, "has an addend beyond all memory"));
                }
                if reloc.kind.needs_table() {
                    return Err(malformed(&function.name, "was compiled for a file, not for this process"));
                }
            }
        }
        for (object, symbols) in self.unit.data.iter().zip(&self.data_symbols) {
            if !object.relocs.iter().zip(symbols).all(|(reloc, at)| sane(*at, reloc.addend)) {
                return Err(malformed(&object.name, "has an addend beyond all memory"));
            }
        }
        Ok(())
    }

    /// Relative references must reach from anywhere in `memory`. Within code memory they do, by the size of its
    /// reservation; imports from elsewhere are checked one by one.
    pub(crate) fn check_reach(&self, memory: std::ops::Range<usize>) -> Result<(), LinkError> {
        for (function, symbols) in self.unit.functions.iter().zip(&self.function_symbols) {
            for reloc in function.relocs.iter().filter(|reloc| reloc.kind.is_relative()) {
                let RelocTarget::Symbol(index) = reloc.target else { continue };
                let Destination::Import(import) = symbols[index as usize] else { continue };
                // The veneer of a call reaches everywhere.
                if reloc.kind == RelocKind::Arm64Call {
                    continue;
                }
                let target = self.imports[import].wrapping_add_signed(reloc.addend as isize);
                // One page of slack covers what the processor counts from: the end of the field, or its page.
                let reach = (1usize << 31) - MAX_ALIGN as usize;
                let far = |at: usize| target.abs_diff(at) >= reach;
                if far(memory.start) || far(memory.end) {
                    let symbol = function.symbols[index as usize].clone();
                    return Err(LinkError::OutOfReach { name: function.name.clone(), symbol });
                }
            }
        }
        Ok(())
    }
}

/// The names of a unit, while they are being resolved.
struct Names<'a> {
    functions: BTreeMap<&'a str, usize>,
    data: BTreeMap<&'a str, usize>,
    known: BTreeMap<&'a Symbol, usize>,
    imports: Vec<usize>,
    owners: Vec<Arc<LoadedUnit>>,
    unresolved: BTreeMap<&'a Symbol, String>,
}

impl<'a> Names<'a> {
    fn of(unit: &'a LinkUnit) -> Result<Names<'a>, LinkError> {
        let mut functions = BTreeMap::new();
        for (index, function) in unit.functions.iter().enumerate() {
            if functions.insert(function.name.as_str(), index).is_some() {
                return Err(LinkError::Duplicate { symbol: Symbol::Function(function.name.clone()) });
            }
        }
        let mut data = BTreeMap::new();
        for (index, object) in unit.data.iter().enumerate() {
            if data.insert(object.name.as_str(), index).is_some() {
                return Err(LinkError::Duplicate { symbol: Symbol::Data(object.name.clone()) });
            }
        }
        Ok(Names {
            functions,
            data,
            known: BTreeMap::new(),
            imports: Vec::new(),
            owners: Vec::new(),
            unresolved: BTreeMap::new(),
        })
    }

    /// An unresolved symbol gets a destination that is never used, because its unit is refused.
    fn destination(&mut self, symbol: &'a Symbol, resolver: &dyn Resolver) -> Destination {
        let own = match symbol {
            Symbol::Function(name) => self.functions.get(name.as_str()).map(|at| Destination::Function(*at)),
            Symbol::Data(name) => self.data.get(name.as_str()).map(|at| Destination::Data(*at)),
            _ => None,
        };
        if let Some(own) = own {
            return own;
        }
        if let Some(&index) = self.known.get(symbol) {
            return Destination::Import(index);
        }
        let index = self.imports.len();
        match resolver.resolve(symbol) {
            Ok(import) => {
                self.imports.push(import.address);
                if let Some(owner) = import.owner
                    && !self.owners.iter().any(|known| Arc::ptr_eq(known, &owner))
                {
                    self.owners.push(owner);
                }
            }
            Err(why) => {
                self.imports.push(0);
                self.unresolved.insert(symbol, why);
            }
        }
        self.known.insert(symbol, index);
        Destination::Import(index)
    }
}

fn malformed(name: &str, fault: &'static str) -> LinkError {
    LinkError::Malformed { name: name.to_string(), fault }
}

fn check_function(function: &CompiledFunction) -> Result<(), LinkError> {
    let fault = |fault| Err(malformed(&function.name, fault));
    if function.code.is_empty() {
        return fault("has no code");
    }
    if !function.align.is_power_of_two() || function.align > MAX_ALIGN {
        return fault("has an alignment larger than a page");
    }
    let mut patched: Vec<u32> = function.relocs.iter().map(|reloc| reloc.offset).collect();
    patched.sort_unstable();
    if patched.windows(2).any(|pair| pair[0] == pair[1]) {
        return fault("has two relocations in one place");
    }
    function.check_relocations().or_else(fault)
}

fn check_data(object: &DataObject) -> Result<(), LinkError> {
    let fault = |fault| Err(malformed(&object.name, fault));
    if !object.align.is_power_of_two() || object.align > MAX_ALIGN {
        return fault("has an alignment larger than a page");
    }
    let address = RelocKind::Abs8.size();
    if object.relocs.iter().any(|reloc| reloc.offset as usize + address > object.bytes.len()) {
        return fault("has a relocation outside of its bytes");
    }
    Ok(())
}
