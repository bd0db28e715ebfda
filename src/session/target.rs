//! Native code as what a session links.
//!
//! ```text
//!   session: symbol ──► address ──► Placed ──► Function { unit, symbol }      what handles and linking units hold
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
use std::sync::{Arc, PoisonError, RwLock};

use brolga_jit::Unit;
use brolga_session::Target;

/// What sessions of this crate link: machine code in this process.
pub enum Native {}

impl Target for Native {
    type Address = usize;
    type Code = Code;
    type Slot = ();
}

/// A function that is in memory.
#[derive(Clone)]
pub(crate) struct Function {
    pub(crate) unit: Unit,
    pub(crate) symbol: Arc<str>,
}

/// The functions of a session that are in memory, by address.
#[derive(Default)]
pub(crate) struct Placed {
    functions: RwLock<BTreeMap<usize, Function>>,
}

impl Placed {
    pub(crate) fn get(&self, address: usize) -> Option<Function> {
        self.functions.read().unwrap_or_else(PoisonError::into_inner).get(&address).cloned()
    }

    pub(crate) fn len(&self) -> usize {
        self.functions.read().unwrap_or_else(PoisonError::into_inner).len()
    }

    fn write(&self) -> std::sync::RwLockWriteGuard<'_, BTreeMap<usize, Function>> {
        self.functions.write().unwrap_or_else(PoisonError::into_inner)
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
    /// Enters functions of a unit. Says where they are.
    pub(crate) fn enter(
        placed: &Arc<Placed>,
        unit: &Unit,
        symbols: impl IntoIterator<Item = Arc<str>>,
        kept: Option<Kept>,
    ) -> (Code, Vec<(Arc<str>, usize)>) {
        let found = symbols.into_iter().filter_map(|symbol| {
            let address = unit.loaded().function(&symbol)?;
            Some((symbol, address))
        });
        let found: Vec<(Arc<str>, usize)> = found.collect();
        let mut functions = placed.write();
        for (symbol, address) in &found {
            functions.insert(*address, Function { unit: unit.clone(), symbol: symbol.clone() });
        }
        drop(functions);
        let addresses = found.iter().map(|(_, address)| *address).collect();
        (Code { placed: placed.clone(), addresses, kept }, found)
    }
}

impl Drop for Code {
    fn drop(&mut self) {
        let mut functions = self.placed.write();
        let gone: Vec<_> = self.addresses.iter().map(|address| functions.remove(address)).collect();
        // Memory is returned without the lock.
        drop(functions);
        drop(gone);
    }
}
