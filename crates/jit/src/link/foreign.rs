//! Object files in memory, and their C symbols, kept by the code that is linked to them.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::link::linker::{Import, LoadedUnit};

/// An object file in memory, until the last clone is dropped, and all that was linked to it.
#[derive(Clone, Debug)]
pub struct LoadedObject {
    pub(crate) unit: Arc<LoadedUnit>,
    pub(crate) symbols: BTreeMap<String, usize>,
}

impl LoadedObject {
    /// The symbols that it gives to others, with their addresses.
    pub fn symbols(&self) -> impl Iterator<Item = (&str, usize)> {
        self.symbols.iter().map(|(name, address)| (name.as_str(), *address))
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
