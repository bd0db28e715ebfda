//! The methods of a session, for dynamic calls.
//!
//! ```text
//!   define, redefine ── in the step that takes effect ──► rows for the worlds from the next one on, by label
//!   removed, closed, overridden ──► the row is invisible from the next world on
//!
//!   first call ──► row ──► label looked up: the cell of the function, or its code ──► boxed entry, linked to it
//! ```
//!
//! Each high function of each program has a row from its definition on, of any kind, in the one method table of the session's
//! runtime. So a dynamic call finds all methods that are visible in its world, of any program, also methods defined after the caller was
//! compiled. Nothing is compiled for it in advance.
//!
//! A function with a cell keeps its row when it is redefined: the entry calls through the cell, which selects by world. A function that gets
//! another cell, or has none, gets a new row, and the old row is hidden in the same world. So does a function that other dylibs may have methods of: among methods with
//! one signature, calls go to the one defined last.
//!
//! **Removal.** After its step, the linking model reports the labels that have lost their definitions. By then a label may have been defined again, so a
//! row is hidden only if its label is undefined while the row is already listed: definitions list their rows in their own step.
//!
//! **Locks**: the list; inside it, the runtime's lock of method changes. Rows are dropped without it.
//!
//! Cost: a row for each function; a look-up and a small function for each method called dynamically.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use brolga_ir::{FuncId, Module};
use brolga_linking::Label;
use brolga_runtime::Runtime;
use brolga_runtime::objects::{MethodEntry, Methods, NewMethods};

use super::linking;
use super::sync::lock;
use super::target::Native;
use crate::boxed::{Declared, row};

/// See the file's header.
pub(crate) struct MethodTable {
    runtime: Arc<Runtime>,
    rows: Mutex<Rows>,
}

#[derive(Default)]
struct Rows {
    by_label: BTreeMap<Label, Row>,
    /// The number of rows created so far.
    count: u64,
}

struct Row {
    number: u64,
    /// The function: its name and the number of the homonym.
    function: (Box<str>, u32),
    methods: Methods,
}

/// The generic function that a module's function is a method of: its name and the number of the homonym.
fn function(module: &Module, id: FuncId) -> (Box<str>, u32) {
    let (cx, func) = (&module.cx, &module[id]);
    let count = func.function_name(cx).map_or(0, |function| cx.names.count(function.name));
    (func.spelled_name(cx).into(), count)
}

/// Methods that take effect with a definition.
#[derive(Default)]
pub(crate) struct NewRows {
    labels: Vec<(Label, (Box<str>, u32))>,
    rows: NewMethods,
}

impl NewRows {
    /// An empty set. Methods of the session's library are overridden by all others.
    pub(super) fn new(is_library: bool) -> NewRows {
        let rows = if is_library { NewMethods::of_library() } else { NewMethods::default() };
        NewRows { labels: Vec::new(), rows }
    }

    /// Adds a function of a module, if dynamic calls may reach it. `entry` makes its boxed entry.
    pub(super) fn add(
        &mut self,
        label: Label,
        (module, id): (&Module, FuncId),
        entry: impl FnOnce(Declared) -> MethodEntry,
    ) {
        if let Some(row) = row(module, id, entry) {
            self.labels.push((label, function(module, id)));
            self.rows.add(&module.cx, row);
        }
    }
}

impl MethodTable {
    pub(crate) fn new(runtime: &Arc<Runtime>) -> MethodTable {
        MethodTable { runtime: runtime.clone(), rows: Mutex::default() }
    }

    /// Whether a label has a row of the generic function that a module's function is a method of.
    pub(super) fn has(&self, label: Label, module: &Module, id: FuncId) -> bool {
        lock(&self.rows).by_label.get(&label).is_some_and(|row| row.function == function(module, id))
    }

    /// Makes the next world, in which these methods replace the ones with the same labels. `prepare` receives its number. The result must be
    /// dropped without a lock.
    #[must_use]
    pub(super) fn change(&self, new: NewRows, prepare: impl FnOnce(u64)) -> Vec<Methods> {
        let mut rows = lock(&self.rows);
        let before = |(label, _): &(Label, _)| rows.by_label.remove(label).map(|row| row.methods);
        let mut old: Vec<Methods> = new.labels.iter().filter_map(before).collect();
        let (_, added) = self.runtime.change_methods(new.rows, &mut old, prepare);
        for ((label, function), methods) in new.labels.into_iter().zip(added) {
            rows.count += 1;
            let number = rows.count;
            rows.by_label.insert(label, Row { number, function, methods });
        }
        old
    }

    /// Hides the methods of undefined labels, from the next world on. The result must be dropped at once, without a lock.
    #[must_use]
    pub(super) fn remove(&self, session: &linking::Session<Native>, labels: &[Label]) -> Vec<Methods> {
        let rows = lock(&self.rows);
        let listed = labels.iter().filter_map(|label| Some((*label, rows.by_label.get(label)?.number)));
        let listed: Vec<(Label, u64)> = listed.collect();
        drop(rows);
        // A listed, undefined label has no newer definition.
        let gone: Vec<(Label, u64)> =
            listed.into_iter().filter(|(label, _)| !session.is_defined(*label)).collect();
        if gone.is_empty() {
            return Vec::new();
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
        old
    }
}
