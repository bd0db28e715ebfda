//! Global variables of a program: cells that its units share.
//!
//! ```text
//!   unit ──┐
//!   unit ──┼──► Globals ──► name ──► cell of the heap ──► value
//!   Rust ──┘
//! ```
//!
//! Compiled code reads and writes a variable through the address of its cell, which is a root of the heap. A cell is made when
//! the first unit that names it is linked, and is empty until it is set: a read then throws `UndefVarError`. Units keep the
//! cells that they were linked to.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use brolga_runtime::Runtime;
use brolga_runtime::heap::{Obj, RootCell, Scope};

/// The global variables of one program in one runtime. Clones share them.
#[derive(Clone)]
pub struct Globals {
    shared: Arc<Shared>,
}

struct Shared {
    runtime: Arc<Runtime>,
    cells: Mutex<BTreeMap<String, Arc<RootCell>>>,
}

impl Globals {
    /// No variables yet.
    pub fn new(runtime: &Arc<Runtime>) -> Globals {
        let cells = Mutex::default();
        Globals { shared: Arc::new(Shared { runtime: runtime.clone(), cells }) }
    }

    /// The names that linked units know, in order.
    pub fn names(&self) -> Vec<String> {
        self.lock().keys().cloned().collect()
    }

    /// Gives a variable a value, or none; false when no unit knows it, or the scope is one of another runtime. It is for the
    /// caller to give what the variable's type allows.
    pub fn set<'h>(&self, scope: &Scope<'_, 'h>, name: &str, value: Option<Obj<'_, 'h>>) -> bool {
        let cell = self.lock().get(name).cloned();
        cell.is_some_and(|cell| scope.set_cell(&cell, value))
    }

    /// The value of a variable; `None` if it has none, no unit knows it, or the scope is one of another runtime.
    pub fn get<'a, 'h>(&self, scope: &'a Scope<'_, 'h>, name: &str) -> Option<Obj<'a, 'h>> {
        let cell = self.lock().get(name).cloned();
        cell.and_then(|cell| scope.get_cell(&cell))
    }

    /// Makes a variable, if there is none of that name.
    pub fn declare(&self, name: &str) {
        self.address(name);
    }

    pub(crate) fn belong_to(&self, runtime: &Arc<Runtime>) -> bool {
        Arc::ptr_eq(&self.shared.runtime, runtime)
    }

    /// The address of a variable's cell, which is kept as long as these globals.
    pub(crate) fn address(&self, name: &str) -> usize {
        let mut cells = self.lock();
        let cell = cells.entry(name.to_owned());
        cell.or_insert_with(|| Arc::new(self.shared.runtime.heap().cell())).address()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, Arc<RootCell>>> {
        self.shared.cells.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Globals {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.names()).finish()
    }
}
