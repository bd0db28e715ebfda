//! Entries for methods of other programs that calls may go to which are decided at run time.
//!
//! ```text
//!   program: kind(::Int64), made without an entry, since nothing in it looks for methods
//!                  ▲ called through its cell
//!   entry ─────────┘◄── run time ◄── kind(x), in a program that came later
//! ```
//!
//! The run time calls methods by boxed entries. Functions whose programs make such calls, or handle objects, have them from the beginning;
//! for all others they would be made in vain. Whoever comes later and may call one so makes its entry, when it is linked: what it
//! knows of the function, a declaration, is enough. An entry belongs to the function: it goes when the session lets go of that, and
//! the next one who needs it finds it there.
//!
//! A function is called through its cell, so nothing has to be compiled for its entry, and the entry stays when the body is
//! replaced. If the body brings one of its own, there are two, and both lead to the cell.
//!
//! Cost: one look into a map for each method that a unit may call so; one small function for each that has no entry.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use brolga_codegen::isa::Tier;
use brolga_codegen::ways::Route;
use brolga_jit::{Linkage, Source, Style, Unit};
use brolga_linking::Definition;

use super::linking;
use super::make::Found;
use super::plan::lock;
use super::target::{Native, Place, Placed};
use super::unit::{Loaded, Shared};
use crate::engine::method;
use crate::error::Error;

/// Entries that were made for functions, by the addresses of these.
#[derive(Default)]
pub(crate) struct Entries {
    made: Mutex<BTreeMap<usize, Entry>>,
}

pub(crate) struct Entry {
    /// The world since which it is visible.
    since: u64,
    #[expect(dead_code, reason = "held so that the run time finds it")]
    unit: Unit,
}

impl Entries {
    fn has(&self, address: usize, since: u64) -> bool {
        lock(&self.made).get(&address).is_some_and(|entry| entry.since <= since)
    }

    /// Keeps an entry for a function that whoever calls holds, if the session has not let go of it, and there is none that is visible
    /// to as many.
    fn add(placed: &Placed, address: usize, entry: Entry) {
        let mut made = lock(&placed.entries.made);
        let is_more = made.get(&address).is_none_or(|there| entry.since < there.since);
        // Who takes the function out of the table takes its entry out after that.
        let unneeded = match placed.at(address) {
            Some(_) if is_more => made.insert(address, entry),
            _ => Some(entry),
        };
        drop(made);
        drop(unneeded);
    }

    /// Takes those of functions out, to be dropped without a lock.
    #[must_use]
    pub(crate) fn take(&self, addresses: &[usize]) -> Vec<Entry> {
        let mut made = lock(&self.made);
        addresses.iter().filter_map(|address| made.remove(address)).collect()
    }
}

/// Makes entries for the methods of other programs that code of these functions may call, as far as they have none.
pub(super) fn make(
    shared: &Shared,
    session: &linking::Session<Native>,
    loaded: &Loaded,
    found: &[Definition<Native>],
) -> Result<(), Arc<Error>> {
    let whole = &loaded.whole;
    for definition in found {
        let name = session.names().text(definition.label.symbol);
        let Some(&id) = loaded.known().get(&*name).filter(|_| whole.others.contains(&*name)) else {
            continue;
        };
        let Some(address) = definition.address else { continue };
        if shared.placed.entries.has(address, whole.since()) {
            continue;
        }
        // If it is not there any more, the unit is linked again.
        let place = shared.placed.find(address, || session.leads_to(definition.label));
        let Some(function) = place.ok().flatten().and_then(Place::function) else { continue };
        let module = loaded.plan.module();
        let mut cells = Found::default();
        cells.0.insert(name, function.cell);
        let low = loaded.plan.placed_entry(id)?;
        let style = Style { others: &|_| Route::Slot, ..Style::from(Tier::Baseline) };
        let source = Source { func: &low, ty: None };
        let compiled = shared.jit.compile(&module.cx, &[source], style).map_err(Error::from)?;
        lock(&shared.compiled).bytes += compiled.code_bytes() as u64;
        let methods: Vec<_> = method(module, id).into_iter().collect();
        let linkage = Linkage {
            globals: Some(&whole.globals),
            methods: &methods,
            since: Some(whole.since()),
            slots: Some(&cells),
            ..Linkage::default()
        };
        let unit = shared.jit.link(&compiled, &linkage).map_err(Error::from)?;
        Entries::add(&shared.placed, address, Entry { since: whole.since(), unit });
    }
    Ok(())
}
