//! Eager functions of different programs that call each other.
//!
//! ```text
//!   f, which calls g ──► linked to g's address ──► g, which calls f: its address waits for f's, so one of them links in another way
//!
//!   f ── its own slot ──► g ── f's address ──► f        emitted together, ready together
//! ```
//!
//! Code that calls directly is linked when what it calls has an address. In a circle of units nobody would ever be, so the session lets the
//! unit that closes it go on without the address (`lookup_to_link`), and that unit calls what has none yet through a slot: a *bend*. Who
//! gives the function its address puts the code behind the slot before anybody can see it, and behind that the slot stays as it is: whoever is linked to a function
//! keeps it, also when it is redefined. A bend waits for one version of the function: if that is removed while it is being linked, it finds no bend that
//! waits for the next one.
//!
//! **Who keeps what alive.** The slot leads to code that leads back to the one who calls through it, so somebody outside of the circle has to decide
//! when that ends: a bend belongs to the entry of its unit in [`Placed`], to the entries of all units that are linked to that
//! one, and to handles of theirs, the ones that Rust calls among them. With the last of them the slot is closed, and the circle goes.
//!
//! Cost: nothing without circles; in one, a load more for the calls that go through the slot.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, Weak};

use brolga_codegen::sig::FunctionType;
use brolga_jit::{CellOwner, IndirectCell, NoCell, Target};
use brolga_linking::{Definition, Label, Version};

use super::lazy::Body;
use super::linking;
use super::plan::lock;
use super::target::{Function, Native, Placed};
use super::unit::Shared;

/// A call that goes through a slot because it closes a circle.
pub(crate) struct Bend {
    owner: CellOwner,
    /// What it leads to: this version, and no other of that name.
    to: Definition<Native>,
    awaited: Arc<Awaited>,
}

impl Bend {
    pub(crate) fn slot(&self) -> IndirectCell {
        self.owner.cell()
    }

    /// Lets it lead to its function.
    pub(crate) fn lead(&self, target: Target) {
        // What is of another type is refused again by who calls it.
        let _ = self.owner.set(target);
    }

    /// From now on calls through it throw `CompileError`.
    pub(crate) fn close(&self) {
        self.owner.close();
    }
}

impl Drop for Bend {
    fn drop(&mut self) {
        let mut by_version = lock(&self.awaited.by_version);
        if let Some(waiting) = by_version.get_mut(&self.to.version) {
            waiting.retain(|bend| bend.strong_count() > 0);
            if waiting.is_empty() {
                by_version.remove(&self.to.version);
            }
        }
    }
}

/// Bends whose functions have no address yet.
#[derive(Default)]
pub(crate) struct Awaited {
    by_version: Mutex<BTreeMap<Version<Native>, Vec<Weak<Bend>>>>,
}

impl Awaited {
    /// Bends that lead to these functions, which are about to have addresses.
    pub(crate) fn take(&self, own: &[Definition<Native>]) -> Vec<Arc<Bend>> {
        let mut by_version = lock(&self.by_version);
        let waiting = own.iter().filter_map(|own| by_version.remove(&own.version));
        let waiting: Vec<Weak<Bend>> = waiting.flatten().collect();
        drop(by_version);
        waiting.iter().filter_map(Weak::upgrade).collect()
    }

    /// What was taken waits on: the functions have got no addresses after all.
    pub(crate) fn put_back(&self, bends: &[Arc<Bend>]) {
        let mut by_version = lock(&self.by_version);
        for bend in bends {
            by_version.entry(bend.to.version).or_default().push(Arc::downgrade(bend));
        }
    }
}

/// Lets bends lead to the functions that they wait for.
pub(crate) fn lead(bends: &[Arc<Bend>], function: impl Fn(Label) -> Option<Function>) {
    for bend in bends {
        if let Some(Function::Code { unit, symbol, access, .. }) = function(bend.to.label)
            && let Some(target) = unit.target(&symbol)
        {
            access.lead(bend, target);
        }
    }
}

/// All bends on the ways from a unit: its own, and those of what it was linked to.
pub(crate) fn all(
    own: impl Iterator<Item = Arc<Bend>>,
    placed: &Placed,
    found: &[Definition<Native>],
) -> Arc<[Arc<Bend>]> {
    let mut all: Vec<Arc<Bend>> = own.collect();
    for address in found.iter().filter_map(|definition| definition.address) {
        if let Some(Function::Code { bends, .. }) = placed.get(address) {
            all.extend(bends.iter().cloned());
        }
    }
    all.sort_by_key(|bend| Arc::as_ptr(bend).addr());
    all.dedup_by_key(|bend| Arc::as_ptr(bend).addr());
    all.into()
}

/// A slot for a function of this type, which leads to what was found as soon as that has an address.
pub(crate) fn bend(
    shared: &Arc<Shared>,
    session: &linking::Session<Native>,
    to: Definition<Native>,
    ty: FunctionType,
) -> Result<Arc<Bend>, NoCell> {
    let source = Body::of_symbol(shared, session, to.label);
    let owner = shared.jit.cell(ty, source)?;
    let bend = Arc::new(Bend { owner, to, awaited: shared.awaited.clone() });
    shared.awaited.put_back(std::slice::from_ref(&bend));
    // It may have come before anybody knew that it is waited for.
    if let Some(function) = session.leads_to(to).and_then(|address| shared.placed.get(address)) {
        lead(&shared.awaited.take(&[to]), |_| Some(function.clone()));
    }
    Ok(bend)
}
