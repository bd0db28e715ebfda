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
//!
//! The cell of a thread-local variable holds the value that threads begin with, and leads compiled code to the cell of the
//! running thread. Whether a variable is thread-local is decided by the program that describes it first.
//!
//! **Types.** Compiled code assumes that a value is of the type that its program declares for the variable. So the builder of a
//! program describes its variables ([`Globals::describe`]), and a value for [`Globals::set`] has to be of all declared types.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use brolga_ir::module::Global;
use brolga_ir::{Context, Type};
use brolga_runtime::Runtime;
use brolga_runtime::heap::{Obj, RootCell, Scope};

/// The global variables of one program in one runtime. Clones share them.
#[derive(Clone)]
pub struct Globals {
    shared: Arc<Shared>,
}

/// What programs declare of a variable.
#[derive(Clone, Default)]
struct Declared {
    types: Vec<(Arc<Context>, Type)>,
    is_thread_local: bool,
}

struct Shared {
    runtime: Arc<Runtime>,
    cells: Mutex<BTreeMap<String, Arc<RootCell>>>,
    declared: Mutex<BTreeMap<String, Declared>>,
}

/// Why a global variable was not set.
#[derive(thiserror::Error, Clone, PartialEq, Eq, Debug)]
pub enum GlobalError {
    /// No unit has a variable of this name.
    #[error("no unit has a global variable `{name}`")]
    Unknown {
        /// The requested name.
        name: String,
    },
    /// The scope is one of another runtime than the variables.
    #[error("the scope belongs to another runtime than the global variables")]
    OtherRuntime,
    /// The value is not of the type that the variable is declared with.
    #[error("the global variable `{name}` is a `{expected}`, and the value a `{got}`")]
    Type {
        /// The variable.
        name: String,
        /// Its type.
        expected: String,
        /// The value's.
        got: String,
    },
}

impl Globals {
    /// No variables yet.
    pub fn new(runtime: &Arc<Runtime>) -> Globals {
        let shared = Shared { runtime: runtime.clone(), cells: Mutex::default(), declared: Mutex::default() };
        Globals { shared: Arc::new(shared) }
    }

    /// The names of variables in linked units, in order.
    pub fn names(&self) -> Vec<String> {
        self.lock().keys().cloned().collect()
    }

    /// Sets or clears the value of a variable; of a thread-local variable, the value of the calling thread.
    ///
    /// # Errors
    /// There is no such variable, it has another type, or the scope is one of another runtime.
    pub fn set<'h>(
        &self,
        scope: &Scope<'_, 'h>,
        name: &str,
        value: Option<Obj<'_, 'h>>,
    ) -> Result<(), GlobalError> {
        self.change(scope, name, value, Scope::set_cell)
    }

    /// As [`Globals::set`], in all threads: those that have a value of a thread-local variable begin again with this one, as
    /// later ones do.
    ///
    /// # Errors
    /// As [`Globals::set`].
    pub fn begin<'h>(
        &self,
        scope: &Scope<'_, 'h>,
        name: &str,
        value: Option<Obj<'_, 'h>>,
    ) -> Result<(), GlobalError> {
        self.change(scope, name, value, Scope::begin_cell)
    }

    fn change<'f, 'h, 'o>(
        &self,
        scope: &Scope<'f, 'h>,
        name: &str,
        value: Option<Obj<'o, 'h>>,
        store: impl FnOnce(&Scope<'f, 'h>, &RootCell, Option<Obj<'o, 'h>>) -> bool,
    ) -> Result<(), GlobalError> {
        if !std::ptr::eq(scope.heap(), self.shared.runtime.heap()) {
            return Err(GlobalError::OtherRuntime);
        }
        let cell = self.lock().get(name).cloned();
        let Some(cell) = cell else { return Err(GlobalError::Unknown { name: name.to_owned() }) };
        if let Some(value) = value {
            for (cx, ty) in self.declared(name).types {
                // No object is of a type that has no form.
                let desc = scope.heap().type_object(&cx, ty).ok();
                if !desc.is_some_and(|desc| scope.is_a(value, &desc)) {
                    let (expected, got) = (cx.types.display(ty).to_string(), value.desc().name().to_owned());
                    return Err(GlobalError::Type { name: name.to_owned(), expected, got });
                }
            }
        }
        match store(scope, &cell, value) {
            true => Ok(()),
            false => Err(GlobalError::OtherRuntime),
        }
    }

    /// Describes a variable of a program, before a unit that names it is linked. If several programs describe it, the types of
    /// all of them hold, and the first decides whether it is thread-local.
    pub fn describe(&self, cx: &Arc<Context>, global: &Global) {
        let description =
            Declared { types: vec![(cx.clone(), global.ty)], is_thread_local: global.is_thread_local() };
        self.note(cx.names.text(global.name), description);
    }

    fn note(&self, name: &str, new: Declared) {
        let mut declared = self.shared.declared.lock().unwrap_or_else(PoisonError::into_inner);
        let is_thread_local = new.is_thread_local;
        let known = declared
            .entry(name.to_owned())
            .or_insert_with(|| Declared { types: Vec::new(), is_thread_local });
        for (cx, ty) in new.types {
            if !known.types.iter().any(|(of, known)| of.is_same(&cx) && *known == ty) {
                // A view that holds only the type.
                let of = cx.view();
                of.types.kind(ty);
                known.types.push((of, ty));
            }
        }
    }

    fn declared(&self, name: &str) -> Declared {
        let declared = self.shared.declared.lock().unwrap_or_else(PoisonError::into_inner);
        declared.get(name).cloned().unwrap_or_default()
    }

    /// The value of a variable, in the calling thread if the variable is thread-local; `None` if it has none, no unit has the
    /// variable, or the scope is one of another runtime.
    pub fn get<'a, 'h>(&self, scope: &'a Scope<'_, 'h>, name: &str) -> Option<Obj<'a, 'h>> {
        let cell = self.lock().get(name).cloned();
        cell.and_then(|cell| scope.get_cell(&cell))
    }

    /// Makes a variable of other programs one of these. No effect if there is no such variable there, or already one here.
    pub fn adopt(&self, name: &str, other: &Globals) {
        let Some(cell) = other.lock().get(name).cloned() else { return };
        self.lock().entry(name.to_owned()).or_insert(cell);
        self.note(name, other.declared(name));
    }

    /// One of the variables, which the result shares.
    pub fn only(&self, name: &str) -> Globals {
        let one = Globals::new(&self.shared.runtime);
        one.adopt(name, self);
        one
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
        let heap = self.shared.runtime.heap();
        let new = || match self.declared(name).is_thread_local {
            true => heap.thread_cell(),
            false => heap.cell(),
        };
        let mut cells = self.lock();
        cells.entry(name.to_owned()).or_insert_with(|| Arc::new(new())).address()
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
