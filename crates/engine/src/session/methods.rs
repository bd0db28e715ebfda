//! The methods of a session: what calls reach that are decided at run time.
//!
//! ```text
//!   define, redefine ── in the step in which it comes into force ──► rows for the worlds from the next one on, by label
//!   removed, closed, given way ──► the row is invisible from the next world on
//!
//!   first call ──► row ──► label looked up: the cell of the function, or its code ──► boxed entry, linked to it
//! ```
//!
//! Each high function of each program has a row from its definition on, whatever kind of definition it is, in the one method table of the session's
//! runtime. So a dynamic call finds all methods that are visible in its world, of whatever program, also those that were defined after the caller was
//! compiled. Nothing is compiled for it ahead.
//!
//! A function behind a cell keeps its row when it is redefined: the entry calls through the cell, which tells the worlds apart. A function that gets
//! another cell, or that has none, gets a new row, and the old one is hidden in the same world.
//!
//! **Removal.** The linking model says which labels have lost their definitions, behind its step. By then a label may have been defined again, so a row
//! goes only if its label is undefined at a moment at which the row was listed already: definitions list their rows in their own step.
//!
//! **Locks**: the list; inside of it, the runtime's lock of method changes. Rows are dropped without it.
//!
//! Cost: a row for each function; a look-up and a small function for each method that is called.

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::{Arc, Mutex, Weak};

use brolga_codegen::ways::Route;
use brolga_ir::{FuncId, Module};
use brolga_jit::{Linkage, Unit};
use brolga_linking::{Label, Link, LookupKind, Priority, Sees, Until, WeakSession, required};
use brolga_runtime::Runtime;
use brolga_runtime::objects::{CodeEntry, Elsewhere, EntrySource, MethodEntry, Methods, NewMethods};

use super::error::SessionError;
use super::lazy::elsewhere;
use super::linking;
use super::make::Found;
use super::plan::lock;
use super::target::{Moved, Native, Place};
use super::unit::Shared;
use crate::boxed::{Declared, row};

/// See the file's header.
pub(crate) struct SessionMethods {
    runtime: Arc<Runtime>,
    rows: Mutex<Rows>,
}

#[derive(Default)]
struct Rows {
    by_label: BTreeMap<Label, Row>,
    /// How many rows there have been.
    count: u64,
}

struct Row {
    number: u64,
    methods: Methods,
}

/// Methods that come into force with a definition.
#[derive(Default)]
pub(crate) struct NewRows {
    labels: Vec<Label>,
    rows: NewMethods,
}

impl NewRows {
    /// Adds a function of a module, if calls may go to it that are decided at run time.
    pub(super) fn add(
        &mut self,
        shared: &Arc<Shared>,
        session: &linking::Session<Native>,
        label: Label,
        (module, id): (&Module, FuncId),
    ) {
        let (session, shared) = (session.downgrade(), Arc::downgrade(shared));
        let entry = |declared| MethodEntry::deferred(Entry { session, shared, label, declared });
        if let Some(row) = row(module, id, entry) {
            self.labels.push(label);
            self.rows.add(&module.cx, row);
        }
    }
}

impl SessionMethods {
    pub(crate) fn new(runtime: &Arc<Runtime>) -> SessionMethods {
        SessionMethods { runtime: runtime.clone(), rows: Mutex::default() }
    }

    /// Whether a function has a row.
    pub(super) fn has(&self, label: Label) -> bool {
        lock(&self.rows).by_label.contains_key(&label)
    }

    /// Makes the next world, in which these methods are visible instead of those of the same labels. `prepare` is told its number. The result is to be
    /// dropped without a lock.
    #[must_use]
    pub(super) fn change(&self, new: NewRows, prepare: impl FnOnce(u64)) -> Vec<Methods> {
        let mut rows = lock(&self.rows);
        let before = |label: &Label| rows.by_label.remove(label).map(|row| row.methods);
        let mut old: Vec<Methods> = new.labels.iter().filter_map(before).collect();
        let (_, added) = self.runtime.change_methods(new.rows, &mut old, prepare);
        for (label, methods) in new.labels.into_iter().zip(added) {
            rows.count += 1;
            let number = rows.count;
            rows.by_label.insert(label, Row { number, methods });
        }
        old
    }

    /// Hides the methods of labels that do not lead anywhere any more, from the next world on.
    pub(super) fn remove(&self, session: &linking::Session<Native>, labels: &[Label]) {
        let rows = lock(&self.rows);
        let listed = labels.iter().filter_map(|label| Some((*label, rows.by_label.get(label)?.number)));
        let listed: Vec<(Label, u64)> = listed.collect();
        drop(rows);
        // A label that is listed and undefined has no newer definition.
        let gone: Vec<(Label, u64)> =
            listed.into_iter().filter(|(label, _)| !session.is_defined(*label)).collect();
        if gone.is_empty() {
            return;
        }
        let mut rows = lock(&self.rows);
        let mut old = Vec::with_capacity(gone.len());
        for (label, number) in gone {
            if rows.by_label.get(&label).is_some_and(|row| row.number == number) {
                old.extend(rows.by_label.remove(&label).map(|row| row.methods));
            }
        }
        drop(rows);
        self.runtime.change_methods(NewMethods::default(), &mut old, |_| {});
        // Those of one world go together, without a lock.
        drop(old);
    }
}

/// Makes the entry of a function of a session.
struct Entry {
    session: WeakSession<Native>,
    shared: Weak<Shared>,
    label: Label,
    declared: Declared,
}

impl Entry {
    /// The function, which is compiled first if it has no cell.
    fn find(
        &self,
        shared: &Shared,
        session: &linking::Session<Native>,
    ) -> Result<Place, Box<dyn Error + Send + Sync>> {
        let home = Link { dylib: self.label.dylib, sees: Sees::All };
        let (kind, wants) = (LookupKind::Static, required([self.label.symbol]));
        loop {
            let lookup =
                session.lookup_with(vec![home], wants.clone(), Until::Ready, kind, Priority::Blocking);
            let found = lookup.wait_one()?;
            let placed = match found.address {
                Some(address) => shared.placed.find(address, || session.leads_to(found.label)),
                None => Ok(None),
            };
            match placed {
                Ok(Some(place)) => return Ok(place),
                Ok(None) => {
                    let name = session.name(found.label).to_string();
                    return Err(SessionError::NotFunction { name }.into());
                }
                // It has been redefined since the look-up.
                Err(Moved) => {}
            }
        }
    }
}

impl EntrySource for Entry {
    fn make(&self) -> Result<CodeEntry, Box<dyn Error + Send + Sync>> {
        let session = self.session.upgrade().ok_or(linking::Error::SessionEnded)?;
        let shared = self.shared.upgrade().ok_or(linking::Error::SessionEnded)?;
        let place = self.find(&shared, &session)?;
        let name: Arc<str> = session.names().text(self.label.symbol);
        let (mut visible, mut slots): (Vec<Unit>, Found) = Default::default();
        let route = match place {
            Place::Function(function) => {
                if let Some(declared) = self.declared.function_type(&name)
                    && !declared.is_called_like(function.ty())
                {
                    return Err(Box::new(crate::Error::Changed {
                        function: name.to_string(),
                        expected: declared.describe(),
                        found: function.ty().describe_beside(&declared),
                    }));
                }
                slots.0.insert(name, function.cell);
                Route::Slot
            }
            // Functions without a native form have no cell.
            Place::Compiled(compiled) => {
                visible.push(compiled.unit);
                Route::Far
            }
            Place::Object(_) => return Err(SessionError::NotFunction { name: name.to_string() }.into()),
        };
        let (compiled, symbol) = self.declared.compile(&shared.jit, &shared.recipe(), route)?;
        lock(&shared.compiled).bytes += compiled.code_bytes() as u64;
        let linkage = Linkage { visible: &visible, slots: Some(&slots), ..Linkage::default() };
        Ok(shared.jit.link_boxed(&compiled, &symbol, &linkage)?)
    }

    fn elsewhere(&self) -> Elsewhere {
        elsewhere()
    }
}
