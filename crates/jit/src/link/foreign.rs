//! Object files in memory, and their C symbols, kept by the code that is linked to them.

use std::collections::BTreeMap;
use std::sync::Arc;

use brolga_runtime::Doors;

use crate::link::linker::{Import, LoadedUnit};

/// Object files in memory, until the last clone is dropped, and all that was linked to them. Then their finalisers run.
#[derive(Clone, Debug)]
pub struct LoadedObject {
    pub(crate) unit: Arc<LoadedUnit>,
    pub(crate) symbols: Arc<BTreeMap<String, Placed>>,
}

/// A symbol in memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Placed {
    pub(crate) address: usize,
    pub(crate) is_code: bool,
    /// Whether it is a number.
    pub(crate) is_absolute: bool,
}

impl LoadedObject {
    /// Runs what has to run before the code is used: functions that choose functions (`ifunc`), and initialisers. Happens once.
    pub fn start(&self, promise: Doors) {
        self.unit.start(promise);
    }

    /// The symbols that it gives to others, with their addresses.
    pub fn symbols(&self) -> impl Iterator<Item = (&str, usize)> {
        self.symbols.iter().map(|(name, placed)| (name.as_str(), placed.address))
    }

    /// The addresses of the symbols that are in it: all but absolute ones, which are numbers.
    pub fn addresses(&self) -> impl Iterator<Item = usize> {
        self.symbols.values().filter(|placed| !placed.is_absolute).map(|placed| placed.address)
    }
}

/// Where a C symbol is, for what is linked to it.
#[derive(Clone, Debug)]
pub struct Foreign {
    /// Its address.
    pub address: usize,
    /// The object file that it is in, which what is linked keeps in memory; none if it stays there by itself.
    pub object: Option<LoadedObject>,
}

impl Foreign {
    pub(crate) fn import(&self) -> Import {
        Import { address: self.address, owner: self.object.as_ref().map(|object| object.unit.clone()) }
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
