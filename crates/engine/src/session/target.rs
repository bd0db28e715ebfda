//! Native code as what a session links.
//!
//! ```text
//!   session: symbol ──► address ──► Placed ──► Function: code in a unit, or a slot     what handles and linking units hold
//!                                     ▲
//!                    Code (the session's hold on a unit) enters its functions, and takes them out when it goes
//! ```
//!
//! An address is a word; who wants to call or to link what lies there needs the unit that owns it, and finds it in the table
//! [`Placed`]. An entry is there from before its address is known to the session until after the session has let go of
//! it. Whoever holds a [`Function`] keeps its code, and all that this code calls, in memory: so nothing has to be waited for
//! when the session lets go.

use std::any::Any;
use std::collections::BTreeMap;
use std::error::Error;
use std::sync::{Arc, PoisonError, RwLock};

use brolga_codegen::sig::FunctionType;
use brolga_jit::{IndirectCell, LoadedObject, Unit};
use brolga_linking::{Responsibility, Symbol, Target};

use super::bends::Bend;
use super::evict::Source;
use super::gates::Access;
use super::lazy::Entered;
use super::linking;

/// What sessions of this crate link: machine code in this process.
pub enum Native {}

impl Target for Native {
    type Address = usize;
    type Code = Code;
    type Slot = linking::NoSlot;
}

/// Fails a unit: for now if the reason may pass, as a shortage of room may before somebody looks again.
pub(crate) fn give_up(
    responsibility: Responsibility<Native>,
    may_pass: bool,
    error: impl Into<Box<dyn Error + Send + Sync>>,
    again: impl Into<linking::Unit<Native>>,
) {
    if may_pass {
        responsibility.fail_for_now(error, again);
    } else {
        responsibility.fail(error);
    }
}

/// A function that is in memory.
#[derive(Clone)]
pub(crate) enum Function {
    /// Code of a unit.
    Code {
        /// The unit.
        unit: Unit,
        /// The function's name in it.
        symbol: Arc<str>,
        /// What it was compiled from.
        program: Origin,
        /// What it can be made from again, if it may be given up.
        source: Option<Source>,
        /// What it, or what it calls, goes through where units call each other in a circle.
        bends: Arc<[Arc<Bend>]>,
        /// What leads to it from other units.
        access: Arc<Access>,
    },
    /// Whatever is behind a slot.
    Slot(IndirectCell),
}

impl Function {
    /// Its type, if it can be called from outside.
    pub(crate) fn ty(&self) -> Option<&FunctionType> {
        match self {
            Function::Code { unit, symbol, .. } => unit.ty(symbol),
            Function::Slot(slot) => Some(slot.ty()),
        }
    }

    pub(crate) fn symbol(&self) -> &str {
        match self {
            Function::Code { symbol, .. } => symbol,
            Function::Slot(slot) => slot.name(),
        }
    }
}

/// The program that code was compiled from: equal for functions that were optimised with each other in sight, and linked to what
/// they had seen.
#[derive(Clone, Default)]
pub(crate) struct Origin(Arc<u8>);

impl PartialEq for Origin {
    fn eq(&self, other: &Origin) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

/// What lies at an address that the session gave to a name.
#[derive(Clone)]
pub(crate) enum Place {
    /// A function of a program.
    Function(Function),
    /// Something that a member of an archive defines.
    Object(LoadedObject),
}

impl Place {
    fn function(self) -> Option<Function> {
        match self {
            Place::Function(function) => Some(function),
            Place::Object(_) => None,
        }
    }
}

/// What was found is not where it was any more.
pub(crate) struct Moved;

/// What a session has in memory, by address.
#[derive(Default)]
pub(crate) struct Placed {
    places: RwLock<BTreeMap<usize, Place>>,
}

impl Placed {
    fn at(&self, address: usize) -> Option<Place> {
        self.places.read().unwrap_or_else(PoisonError::into_inner).get(&address).cloned()
    }

    pub(crate) fn get(&self, address: usize) -> Option<Function> {
        self.at(address).and_then(Place::function)
    }

    /// What is at the address that a name was found to lead to; nothing if that is not of the session. `leads` says where the name
    /// leads now.
    ///
    /// # Errors
    /// The name leads elsewhere by now, so that something else may have come to lie there.
    pub(crate) fn find_any(
        &self,
        address: usize,
        leads: impl FnOnce() -> Option<usize>,
    ) -> Result<Option<Place>, Moved> {
        let place = self.at(address);
        // What is held makes no room for another: code keeps its place, and a slot its word. So if the name leads there still, it leads
        // to what is held.
        let leads_there = leads() == Some(address);
        let is_same = place.is_some() || self.at(address).is_none();
        if leads_there && is_same { Ok(place) } else { Err(Moved) }
    }

    /// As [`Placed::find_any`], if it is a function of a program.
    pub(crate) fn find(
        &self,
        address: usize,
        leads: impl FnOnce() -> Option<usize>,
    ) -> Result<Option<Function>, Moved> {
        Ok(self.find_any(address, leads)?.and_then(Place::function))
    }

    pub(crate) fn len(&self) -> usize {
        self.places.read().unwrap_or_else(PoisonError::into_inner).len()
    }

    fn write(&self) -> std::sync::RwLockWriteGuard<'_, BTreeMap<usize, Place>> {
        self.places.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What has to stay as long as code, beside what it refers to.
pub(crate) type Kept = Arc<dyn Any + Send + Sync>;

/// A session's hold on what it has linked.
pub struct Code {
    placed: Arc<Placed>,
    addresses: Vec<usize>,
    #[expect(dead_code, reason = "held for the code")]
    kept: Option<Kept>,
}

impl Code {
    /// Enters functions of a unit, each with a symbol and its name in the unit. Says where they are.
    pub(crate) fn enter(
        placed: &Arc<Placed>,
        (unit, program, source, bends): (&Unit, &Origin, Option<Source>, Arc<[Arc<Bend>]>),
        symbols: impl IntoIterator<Item = (Symbol, Arc<str>)>,
        kept: Option<Kept>,
    ) -> (Code, Vec<(Symbol, usize)>) {
        let found = symbols.into_iter().filter_map(|(symbol, name)| {
            let address = unit.loaded().function(&name)?;
            Some((symbol, name, address))
        });
        let found: Vec<(Symbol, Arc<str>, usize)> = found.collect();
        let mut places = placed.write();
        for (_, name, address) in &found {
            let (unit, symbol, program, source, bends) =
                (unit.clone(), name.clone(), program.clone(), source.clone(), bends.clone());
            let function = Function::Code { unit, symbol, program, source, bends, access: Arc::default() };
            places.insert(*address, Place::Function(function));
        }
        drop(places);
        let found: Vec<(Symbol, usize)> = found.into_iter().map(|(symbol, _, at)| (symbol, at)).collect();
        let addresses = found.iter().map(|(_, address)| *address).collect();
        (Code { placed: placed.clone(), addresses, kept }, found)
    }

    /// What leads to its functions from other units.
    pub(crate) fn access(&self) -> Vec<Arc<Access>> {
        let access = |&address: &usize| match self.placed.get(address)? {
            Function::Code { access, .. } => Some(access),
            Function::Slot(_) => None,
        };
        self.addresses.iter().filter_map(access).collect()
    }

    /// Enters what an object file defines.
    pub(crate) fn enter_object(placed: &Arc<Placed>, object: &LoadedObject) -> Code {
        let addresses: Vec<usize> = object.symbols().map(|(_, address)| address).collect();
        let entered = addresses.iter().map(|&address| (address, Place::Object(object.clone())));
        placed.write().extend(entered);
        Code { placed: placed.clone(), addresses, kept: None }
    }

    /// Enters a slot, by the word that tells it from others as long as somebody has it. No code can be there.
    pub(crate) fn enter_slot(placed: &Arc<Placed>, entered: Entered) -> (Code, usize) {
        let (address, slot) = (entered.owner().identity(), entered.owner().cell());
        placed.write().insert(address, Place::Function(Function::Slot(slot)));
        let kept: Kept = Arc::new(entered);
        (Code { placed: placed.clone(), addresses: vec![address], kept: Some(kept) }, address)
    }
}

impl Drop for Code {
    fn drop(&mut self) {
        let mut places = self.placed.write();
        let gone: Vec<_> = self.addresses.iter().map(|address| places.remove(address)).collect();
        // Memory is returned without the lock.
        drop(places);
        drop(gone);
    }
}
