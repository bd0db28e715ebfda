//! Object files in memory, and their C symbols, kept by the code that is linked to them.

use std::collections::BTreeMap;
use std::sync::Arc;

use brolga_runtime::Doors;

use crate::link::linker::{Import, LoadedUnit};
use crate::link::object::tls::ThreadLocal;
use crate::link::object::{ObjectFileError, error};

/// Object files in memory, until the last clone and everything linked to them are dropped. Then their finalisers run.
#[derive(Clone, Debug)]
pub struct LoadedObject {
    pub(crate) unit: Arc<LoadedUnit>,
    pub(crate) symbols: Arc<BTreeMap<String, Placed>>,
}

/// A symbol in memory.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Placed {
    /// Its address; for a thread-local symbol, a word of its unit that is never read.
    pub(crate) address: usize,
    pub(crate) entity: Entity,
}

impl Placed {
    pub(crate) fn thread_local(&self) -> Option<ThreadLocal> {
        match self.entity {
            Entity::ThreadLocal(symbol) => Some(symbol),
            Entity::Code | Entity::Data | Entity::Number => None,
        }
    }
}

/// The kind of a symbol's address.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) enum Entity {
    Code,
    #[default]
    Data,
    /// Nothing: the address is a number.
    Number,
    /// A copy in each thread.
    ThreadLocal(ThreadLocal),
}

impl LoadedObject {
    /// Runs the code that must run before any other: functions that choose functions (`ifunc`), and initialisers. Once.
    pub fn start(&self, promise: Doors) {
        self.unit.start(promise);
    }

    /// The symbols that it offers to others, with their addresses.
    pub fn symbols(&self) -> impl Iterator<Item = (&str, usize)> {
        self.symbols.iter().map(|(name, placed)| (name.as_str(), placed.address))
    }

    /// The addresses of the symbols that are in it: all but absolute ones, which are numbers.
    pub fn addresses(&self) -> impl Iterator<Item = usize> {
        self.symbols.values().filter(|placed| placed.entity != Entity::Number).map(|placed| placed.address)
    }

    /// The symbol that a name of another file means: its own name, or an alias with the same address.
    pub(crate) fn placed(&self, name: &str, address: usize) -> Option<Placed> {
        let named = self.symbols.get(name).filter(|placed| placed.address == address);
        named.or_else(|| self.symbols.values().find(|placed| placed.address == address)).copied()
    }
}

/// The place of a C symbol, for code that is linked to it.
#[derive(Clone, Debug)]
pub struct Foreign {
    /// Its address.
    pub address: usize,
    /// The object file that contains it, which linked code keeps in memory; `None` if it stays in memory anyway.
    pub object: Option<LoadedObject>,
}

impl Foreign {
    /// The symbol in the object file.
    pub(crate) fn placed(&self, name: &str) -> Option<Placed> {
        self.object.as_ref().and_then(|object| object.placed(name, self.address))
    }

    /// Where it is in this thread: its address, unless it is thread-local.
    ///
    /// # Errors
    /// There is no memory for the thread's copy.
    pub fn in_this_thread(&self, name: &str) -> Result<usize, ObjectFileError> {
        match self.placed(name).and_then(|placed| placed.thread_local()) {
            Some(symbol) => symbol.address().ok_or_else(|| {
                let what = "a thread-local symbol without memory for its copy in this thread";
                error::unsupported(name, what)
            }),
            None => Ok(self.address),
        }
    }

    pub(crate) fn import(&self, name: &str) -> Result<Import, String> {
        if self.placed(name).is_some_and(|placed| placed.thread_local().is_some()) {
            return Err("it is thread-local: a C function has to return its address".into());
        }
        Ok(Import { address: self.address, owner: self.object.as_ref().map(|object| object.unit.clone()) })
    }
}

/// Where code finds C symbols that it is not linked to by [`Linkage::foreign`](crate::Linkage::foreign).
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Outside {
    /// In the process.
    #[default]
    Process,
    /// Among those that any program may name ([`Foreign::given`](brolga_runtime::Foreign::given)).
    Given,
}
