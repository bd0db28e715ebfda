//! Native code as the target of a session's linking.
//!
//! ```text
//!   session: f(Int64)       ──► address ──► Placed ──► Function: a cell          handles hold it, code is linked to it
//!            a part of it   ──► address ──► Placed ──► Compiled: code in a unit  cells call it
//!                                             ▲
//!                     Code (the session's hold on a cell or a unit) enters its addresses, and removes them when it is dropped
//! ```
//!
//! An address is a word; calling or linking its code needs the owner, which is looked up in the table [`Placed`]. An entry exists
//! from before the session receives its address until after the session has released it.

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use brolga_codegen::sig::FunctionType;
use brolga_ir::FuncId;
use brolga_jit::{CellOwner, IndirectCell, LoadedObject, Unit};
use brolga_linking::{Label, Responsibility, Symbol, SymbolFlags, Target};

pub(crate) use super::cells::Function;
use super::cells::{Entered, Others};
use super::input::{CompilationInput, Origin};
use super::linking;
use super::sync::lock;

/// The types of this crate's sessions: machine code in this process.
pub enum Native {}

impl Target for Native {
    type Address = usize;
    type Code = Code;
}

/// Fails a unit: temporarily if the reason may pass, like a shortage of room, until the next lookup. If the reason is the failure of
/// other units, it remains until one of them is removed or replaced.
pub(crate) fn fail_unit(
    responsibility: Responsibility<Native>,
    may_pass: bool,
    error: impl Into<Box<dyn Error + Send + Sync>>,
    again: impl Into<linking::Unit<Native>>,
) {
    if may_pass {
        responsibility.fail_for_now(error, again);
    } else {
        responsibility.fail_until_changed(error, again);
    }
}

/// The recipe of a lazy function's code.
#[derive(Clone)]
pub(crate) struct Source {
    pub(crate) input: Arc<CompilationInput>,
    pub(crate) id: FuncId,
    pub(crate) symbol: Symbol,
    pub(crate) flags: SymbolFlags,
}

/// Code of a function in a unit.
#[derive(Clone)]
pub(crate) struct Compiled {
    pub(crate) unit: Unit,
    /// The function's name in the unit.
    pub(crate) symbol: Arc<str>,
    /// The program it was compiled from.
    pub(crate) program: Origin,
    /// The source for recompiling it, if it may be evicted.
    pub(crate) source: Option<Source>,
}

impl Function {
    pub(crate) fn ty(&self) -> &FunctionType {
        self.cell.ty()
    }

    pub(crate) fn symbol(&self) -> &str {
        self.cell.name()
    }
}

/// The object at an address that the session returned for a name.
#[derive(Clone)]
pub(crate) enum Place {
    /// A program's function, called through its cell.
    Function(Function),
    /// The code of a function.
    Compiled(Compiled),
    /// A definition of an object file.
    Object(LoadedObject),
}

impl Place {
    pub(crate) fn function(self) -> Option<Function> {
        match self {
            Place::Function(function) => Some(function),
            Place::Compiled(_) | Place::Object(_) => None,
        }
    }

    pub(crate) fn compiled(self) -> Option<Compiled> {
        match self {
            Place::Compiled(compiled) => Some(compiled),
            Place::Function(_) | Place::Object(_) => None,
        }
    }
}

/// A stale look-up result.
pub(crate) struct Moved;

/// The code of a session in memory, by address.
#[derive(Default)]
pub(crate) struct Placed {
    places: RwLock<BTreeMap<usize, Place>>,
}

impl Placed {
    /// The object at an address.
    pub(crate) fn at(&self, address: usize) -> Option<Place> {
        self.places.read().unwrap_or_else(PoisonError::into_inner).get(&address).cloned()
    }

    /// The object at the address of a looked-up name; `None` if the session has not placed it. `leads` returns the current address of the
    /// name.
    ///
    /// # Errors
    /// The name resolves to another address by now, so this address may have been reused.
    pub(crate) fn find(
        &self,
        address: usize,
        leads: impl FnOnce() -> Option<usize>,
    ) -> Result<Option<Place>, Moved> {
        let place = self.at(address);
        // The address of held code, or of a cell's word, is not reused. So if the name still resolves to it, it
        // resolves to the held object.
        let leads_there = leads() == Some(address);
        let is_same = place.is_some() || self.at(address).is_none();
        if leads_there && is_same { Ok(place) } else { Err(Moved) }
    }

    /// The owner of the cell with this identity, if it is the cell of the function with this label, and whether the function is eager.
    pub(crate) fn owner(&self, label: Label, identity: usize) -> Option<(Arc<CellOwner>, bool)> {
        let function = self.at(identity)?.function().filter(|function| function.label == label)?;
        Some((function.owner()?, function.is_eager))
    }

    /// All cells, in the order of their labels.
    pub(crate) fn cells(&self) -> Vec<(Label, Arc<CellOwner>)> {
        let places = self.places.read().unwrap_or_else(PoisonError::into_inner);
        let cell = |place: &Place| match place {
            Place::Function(function) => Some((function.label, function.owner()?)),
            Place::Compiled(_) | Place::Object(_) => None,
        };
        let mut all: Vec<(Label, Arc<CellOwner>)> = places.values().filter_map(cell).collect();
        drop(places);
        all.sort_by_key(|(label, _)| *label);
        all
    }

    pub(crate) fn len(&self) -> usize {
        self.places.read().unwrap_or_else(PoisonError::into_inner).len()
    }

    fn write(&self) -> std::sync::RwLockWriteGuard<'_, BTreeMap<usize, Place>> {
        self.places.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Others for Placed {
    fn function(&self, identity: usize) -> Option<Function> {
        self.at(identity).and_then(Place::function)
    }
}

/// A session's hold on linked code.
pub struct Code {
    placed: Arc<Placed>,
    addresses: Vec<usize>,
    cell: Option<Entered>,
    /// Functions whose C entries it refers to: they are kept, and throw when they are removed.
    kept: Vec<IndirectCell>,
    /// Whether a tombstone has removed the code.
    is_removed: Mutex<bool>,
}

impl Code {
    fn new(placed: &Arc<Placed>, addresses: Vec<usize>) -> Code {
        let is_removed = Mutex::default();
        Code { placed: placed.clone(), addresses, cell: None, kept: Vec::new(), is_removed }
    }

    /// Enters the code of a unit's functions, each with a symbol and its name in the unit. Returns their addresses.
    pub(crate) fn enter(
        placed: &Arc<Placed>,
        (unit, program, source): (&Unit, &Origin, Option<Source>),
        symbols: impl IntoIterator<Item = (Symbol, Arc<str>)>,
    ) -> (Code, Vec<(Symbol, usize)>) {
        let found = symbols.into_iter().filter_map(|(symbol, name)| {
            let address = unit.loaded().function(&name)?;
            Some((symbol, name, address))
        });
        let found: Vec<(Symbol, Arc<str>, usize)> = found.collect();
        let mut places = placed.write();
        for (_, name, address) in &found {
            let (unit, symbol, program, source) =
                (unit.clone(), name.clone(), program.clone(), source.clone());
            places.insert(*address, Place::Compiled(Compiled { unit, symbol, program, source }));
        }
        drop(places);
        let found: Vec<(Symbol, usize)> = found.into_iter().map(|(symbol, _, at)| (symbol, at)).collect();
        let addresses = found.iter().map(|(_, address)| *address).collect();
        (Code::new(placed, addresses), found)
    }

    /// Also holds functions whose C entries the unit refers to.
    pub(crate) fn keeping(mut self, functions: impl IntoIterator<Item = IndirectCell>) -> Code {
        self.kept.extend(functions);
        self
    }

    /// The code of a unit without its own code.
    pub(crate) fn nothing(placed: &Arc<Placed>) -> Code {
        Code::new(placed, Vec::new())
    }

    /// Enters the definitions of an object file.
    pub(crate) fn enter_object(placed: &Arc<Placed>, object: &LoadedObject) -> Code {
        let addresses: Vec<usize> = object.addresses().collect();
        let entered = addresses.iter().map(|&address| (address, Place::Object(object.clone())));
        placed.write().extend(entered);
        Code::new(placed, addresses)
    }

    /// Enters a cell, by the address of the word that identifies it while it exists. Code cannot have this address.
    pub(crate) fn enter_cell(placed: &Arc<Placed>, entered: Entered) -> (Code, usize) {
        let (address, function) = (entered.owner().identity(), entered.function().clone());
        placed.write().insert(address, Place::Function(function));
        let mut code = Code::new(placed, vec![address]);
        code.cell = Some(entered);
        (code, address)
    }

    /// Records that a tombstone has removed the code.
    pub(crate) fn mark_removed(&self) {
        *lock(&self.is_removed) = true;
    }

    /// Removes and returns the cell, if any, and whether a tombstone has removed it.
    pub(crate) fn take_cell(&mut self) -> Option<(Entered, bool)> {
        let is_removed = *lock(&self.is_removed);
        self.cell.take().map(|entered| (entered, is_removed))
    }
}

impl Drop for Code {
    fn drop(&mut self) {
        let mut places = self.placed.write();
        let gone: Vec<_> = self.addresses.iter().map(|address| places.remove(address)).collect();
        // Memory is freed without the lock.
        drop(places);
        drop(gone);
    }
}
