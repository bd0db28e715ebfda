//! Loading: compiled code is placed in memory, with every symbol resolved, and becomes a [`Unit`].
//!
//! Symbols of a unit are resolved in this order:
//!
//! | symbol                | by                                                     |
//! |-----------------------|--------------------------------------------------------|
//! | function, data object | the unit itself, then the units that it may see, in order |
//! | cell, counter         | the linker's caller ([`FindCell`](crate::FindCell))       |
//! | routine               | the tables of this crate and of the run time (`routines.rs`) |
//! | C symbol              | the runtime's [`Foreign`](brolga_runtime::Foreign)     |
//! | constant, type        | a permanent object of the runtime                      |

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use brolga_codegen::callback::callback_name;
use brolga_codegen::compiled::{NamedType, Symbol};
use brolga_codegen::sig::FunctionType;
use brolga_instances::Moving;
use brolga_ir::types::LayoutError;
use brolga_ir::{Context, Type};
use brolga_runtime::objects::{CodeEntry, CodeOwner, EntryCaller, MethodTable};
use brolga_runtime::{FrameMapsInForce, Runtime};

use crate::cell::{CellOwner, IndirectCell};
use crate::engine::Jit;
use crate::link::foreign::{Foreign, Outside};
use crate::link::globals::Globals;
use crate::link::linker::{Import, LinkError, LinkUnit, LoadedUnit, Resolver};
use crate::link::maps;
use crate::tiering::profile::Cells;
use crate::unit::types::Types;
use crate::unit::{Contents, MethodKeeper, Unit};

/// The routine that finds a C symbol when it is called, and the one for code with symbols of its own.
const FOREIGN_SYMBOL: &str = "brolga_foreign_symbol";
const GIVEN_SYMBOL: &str = "brolga_given_symbol";

/// Facts about the program of the code.
#[derive(Clone, Copy)]
pub(crate) struct Program<'a> {
    /// The context of its types.
    pub(crate) cx: &'a Arc<Context>,
    /// Whether its code handles objects.
    pub(crate) needs_heap: bool,
    pub(crate) globals: &'a Globals,
    /// The table that its dynamic calls search.
    pub(crate) table: &'a MethodTable,
    /// C symbols that come before those that the runtime finds.
    pub(crate) foreign: Option<&'a BTreeMap<String, Foreign>>,
    /// Whether calls look up C symbols that are missing at link time.
    pub(crate) defers_foreign: bool,
    /// Where it finds other C symbols.
    pub(crate) outside: Outside,
    /// The indirection cells that its code names.
    pub(crate) indirect: &'a BTreeMap<&'a str, Result<IndirectCell, String>>,
    /// The words of the functions whose C entries it names.
    pub(crate) c_callees: &'a BTreeSet<Symbol>,
    /// The cells that it counts in.
    pub(crate) cells: Option<&'a Cells>,
    /// The counter of the code until it can be evicted.
    pub(crate) new: Option<&'a Moving>,
}

impl Jit {
    /// Loads a unit. `types` describes the functions that can be looked up in it; `visible` are the units whose functions
    /// and data it may refer to. [`Jit::build`] is the safe equivalent.
    ///
    /// # Safety
    ///
    /// L1: the code keeps the conventions of `codegen` (calling convention, pinned register, handler records, the
    /// signatures of routines, frame maps). L2: each type's signature is the one that the code of its symbol was compiled with.
    pub unsafe fn load(
        &self,
        unit: &LinkUnit,
        types: impl IntoIterator<Item = FunctionType>,
        visible: &[Unit],
    ) -> Result<Unit, LinkError> {
        // SAFETY: by the contract.
        unsafe { self.load_program(unit, types.into_iter().map(Arc::new), visible, None, Vec::new()) }
    }

    /// As [`Jit::load`], with facts about the program of the code.
    ///
    /// # Safety
    ///
    /// L1 and L2.
    pub(crate) unsafe fn load_program(
        &self,
        unit: &LinkUnit,
        types: impl IntoIterator<Item = Arc<FunctionType>>,
        visible: &[Unit],
        program: Option<Program<'_>>,
        loops: Vec<CellOwner>,
    ) -> Result<Unit, LinkError> {
        let place = |resolver: &dyn Resolver| {
            let loaded = self.link_unit(unit, resolver, program.and_then(|program| program.new))?;
            // SAFETY: by the contract; `Code` drops the maps before the code.
            let maps = unsafe { maps::put_in_force(self.runtime(), unit, &loaded) };
            Ok((loaded, maps))
        };
        self.load_placed(types, visible, program, loops, place)
    }

    /// As [`Jit::load_program`], for code that `place` puts into memory. It returns the code and the maps of its frames, and
    /// is responsible for their contracts.
    pub(crate) fn load_placed(
        &self,
        types: impl Into<Types>,
        visible: &[Unit],
        program: Option<Program<'_>>,
        loops: Vec<CellOwner>,
        place: impl FnOnce(&dyn Resolver) -> Result<(Arc<LoadedUnit>, Option<FrameMapsInForce>), LinkError>,
    ) -> Result<Unit, LinkError> {
        if program.is_some_and(|program| !self.runtime().owns(program.table)) {
            let reason = "the table of methods belongs to another runtime".into();
            return Err(LinkError::Backend { reason });
        }
        let table = Arc::new(program.map_or(self.runtime().methods(), |program| program.table).clone());
        let (runtime, indirect) = (self.runtime(), RefCell::default());
        let resolver = Visible { jit: self, runtime, units: visible, program, table: &table, indirect };
        let placed = place(&resolver)?;
        let indirect = resolver.indirect.into_inner();
        let contents = Contents {
            placed,
            types: types.into(),
            // A cell may lead to any function.
            needs_heap: program.is_some_and(|program| program.needs_heap) || !indirect.is_empty(),
            cx: program.map(|program| program.cx.clone()),
            globals: program.map(|program| program.globals.clone()),
            table,
            edges: indirect.iter().map(IndirectCell::identity).collect(),
            held: Box::new((indirect, loops)),
            cells: program.and_then(|program| program.cells).cloned(),
        };
        Ok(Unit::new(self, contents, visible))
    }

    /// The function of a unit with this symbol, which is a boxed entry, as the run time calls it. It keeps the unit's code.
    pub(crate) fn boxed_code(&self, unit: &Unit, symbol: &str) -> Result<CodeEntry, LinkError> {
        let boxed = self.boxed_entry()?;
        // SAFETY: the address is a trampoline's of this type, by `codegen::entry`; the entry's owner keeps it.
        let call: EntryCaller =
            unsafe { std::mem::transmute(std::ptr::with_exposed_provenance::<()>(boxed.address)) };
        let Some(address) = unit.loaded().function(symbol) else {
            let fault = "is a method's entry and not in the unit";
            return Err(LinkError::Malformed { name: symbol.to_owned(), fault });
        };
        // A call in flight holds the owner, which may be the last part of the engine when it returns.
        let keeper: MethodKeeper = (unit.code().clone(), boxed.unit.clone());
        let owner: CodeOwner = Arc::new(keeper);
        // SAFETY: the code at the address is a boxed entry, whose signature `Jit::link_boxed` compared, and the owner keeps it and all that it
        // refers to, and the trampoline.
        Ok(unsafe { CodeEntry::new(address, call, owner) })
    }
}

struct Visible<'a> {
    jit: &'a Jit,
    runtime: &'a Arc<Runtime>,
    units: &'a [Unit],
    program: Option<Program<'a>>,
    /// The table that calls in the unit search; the unit keeps it.
    table: &'a Arc<MethodTable>,
    /// The indirection cells that were found.
    indirect: RefCell<Vec<IndirectCell>>,
}

impl Visible<'_> {
    /// The word that calls of a function go through.
    fn word(&self, name: &str) -> Result<usize, String> {
        Ok(self.cell(name)?.word())
    }

    /// The C entry of this name, if it belongs to a function with a word, which the unit keeps.
    fn c_entry(&self, name: &str) -> Option<Result<usize, String>> {
        let program = self.program?;
        let of = |callee: &&Symbol| matches!(callee, Symbol::IndirectCell(function) if callback_name(function) == name);
        let Symbol::IndirectCell(function) = program.c_callees.iter().find(of)? else { return None };
        let cell = match self.cell(function) {
            Ok(cell) => cell,
            Err(error) => return Some(Err(error)),
        };
        Some(cell.c_address().map_err(|error| error.to_string()))
    }

    fn cell(&self, name: &str) -> Result<IndirectCell, String> {
        let found = self.program.and_then(|program| program.indirect.get(name));
        let cell = found.ok_or("its cell was not requested")?.clone()?;
        if !cell.jit().is(self.jit) {
            return Err("its cell belongs to another engine".into());
        }
        self.indirect.borrow_mut().push(cell.clone());
        Ok(cell)
    }

    fn in_units(&self, find: impl Fn(&LoadedUnit) -> Option<usize>) -> Result<Import, String> {
        for unit in self.units {
            if let Some(address) = find(unit.loaded()) {
                // Its constants would be freed with its own runtime.
                if !Arc::ptr_eq(unit.jit().runtime(), self.runtime) {
                    return Err("defined in a unit of another runtime".into());
                }
                return Ok(Import { address, owner: Some(unit.loaded().clone()) });
            }
        }
        Err("not defined in any visible unit".into())
    }
}

impl Visible<'_> {
    /// The address of a permanent object that a type describes.
    fn object(
        &self,
        named: &NamedType,
        address: impl FnOnce(&Arc<Context>, Type) -> Result<usize, LayoutError>,
    ) -> Result<Import, String> {
        let cx = self.program.ok_or("code without a program has no types")?.cx;
        match address(cx, named.ty) {
            Ok(address) => Ok(Import { address, owner: None }),
            Err(error) => Err(error.display(&cx.types).to_string()),
        }
    }
}

impl Resolver for Visible<'_> {
    fn resolve(&self, symbol: &Symbol) -> Result<Import, String> {
        let outside = |address| Import { address, owner: None };
        match symbol {
            Symbol::Function(name) => match self.c_entry(name) {
                Some(found) => found.map(outside),
                None => self.in_units(|unit| unit.function(name)),
            },
            Symbol::Data(name) => self.in_units(|unit| unit.data(name)),
            Symbol::IndirectCell(name) => self.word(name).map(outside),
            Symbol::Counter(name) => self.cell(name).map(|cell| outside(cell.counter_address())),
            Symbol::Cells => {
                let cells = self.program.and_then(|program| program.cells).ok_or("there are no cells")?;
                Ok(outside(cells.address()))
            }
            Symbol::Methods => Ok(outside(Arc::as_ptr(self.table).expose_provenance())),
            Symbol::Routine(name) => match self.program.map(|program| program.outside) {
                Some(Outside::Given) if *name == FOREIGN_SYMBOL => {
                    self.jit.routines().resolve(&Symbol::Routine(GIVEN_SYMBOL.into()))
                }
                _ => self.jit.routines().resolve(symbol),
            },
            Symbol::Foreign { name, library, weak } => {
                let given = self.program.and_then(|program| program.foreign?.get(name));
                if let (None, Some(given)) = (library, given) {
                    return given.import(name);
                }
                let foreign = self.runtime.foreign();
                let found = match self.program.map(|program| program.outside) {
                    Some(Outside::Given) => foreign.given(name),
                    Some(Outside::Process) | None => foreign.resolve(name, library.as_deref()),
                };
                match found {
                    Ok(address) => Ok(outside(address)),
                    // The code looks it up when it calls it.
                    Err(_) if *weak && self.program.is_some_and(|program| program.defers_foreign) => {
                        Ok(outside(0))
                    }
                    Err(error) => Err(error.to_string()),
                }
            }
            Symbol::Interned(name) => Ok(outside(self.runtime.symbol(name).address())),
            Symbol::Module(name) => Ok(outside(self.runtime.module(name).address())),
            Symbol::Text(content) => Ok(outside(self.runtime.string(content).address())),
            Symbol::Type(ty) => self.object(ty, |cx, ty| self.runtime.type_address(cx, ty)),
            Symbol::Instance(ty) => self.object(ty, |cx, ty| self.runtime.instance_address(cx, ty)),
            Symbol::Boxed { ty, low, high } => {
                let bits = u128::from(*high) << 64 | u128::from(*low);
                self.object(ty, |cx, ty| self.runtime.boxed_address(cx, ty, bits))
            }
            Symbol::Global(name) => match self.program {
                Some(Program { globals, .. }) if globals.belong_to(self.runtime) => {
                    Ok(outside(globals.address(name)))
                }
                Some(_) => Err("the global variables belong to another runtime".into()),
                None => Err("code without a program has no global variables".into()),
            },
        }
    }
}
