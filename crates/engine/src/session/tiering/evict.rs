//! Eviction of code when code memory is short; a later call compiles it again.
//!
//! ```text
//!   linking ── no room ──► CodeEvictor::evict ── least recently called first ► the parts of f(Int64): promises again   (linking model)
//!                                                                         slot of f(Int64): calls its stub        (jit/src/cell/evict.rs)
//!   next call of f ──► stub ──► body looked up ──► compiled from the same form of its program as the first time
//! ```
//!
//! Only a session with [`Options::code_limit`](crate::Options::code_limit) has an evictor, and only there the code of a lazy function keeps its
//! source. The evictor takes code called through cells. It never takes code of eager functions, functions of promised programs and functions
//! defined `together`, boxed entries, cells and trampolines. If nothing else is left, a request for room is an error.
//!
//! **Order.** First code that was put to rest at the last shortage and has not been called since; then the code that was compiled, or
//! called after a rest, longest ago. Each time half of the remaining code is put to rest. So calls of code in use have no overhead, except for one
//! call by the stub after each shortage.
//!
//! **Nothing to evict** is not an error while other threads are evicting or compiling code
//! (`crates/instances/src/room.rs`). Linked code counts as being compiled until the session's tables have it, and then until its waiters
//! have it. A unit that still finds no room fails only for its current waiters, not for later ones; so do the units
//! that wait for it (`CodegenUnit::again`).
//!
//! **Freeing.** Code is freed when no thread runs it. A thread that waits for a compilation reports the code of its frames,
//! and delays nothing else. A thread that runs for long without a call by a stub or a safepoint delays the freeing of code that is evicted
//! meanwhile; all threads in compiled code delay the freeing of code that dynamic calls may reach. So sessions with a pool evict code before
//! the memory is full: they keep a quarter of the limit free or waiting for such threads. Evicted or replaced code that is out of use
//! is not counted (`CodeMemoryStats::retired`).
//!
//! A function is evicted with all its tiers, except one that other code depends on.
//!
//! Cost: each eviction visits all cells.

use brolga_runtime::events::Event;
use std::sync::{Arc, Weak};

use brolga_jit::{CellOwner, Evicted, Evictor, Held};
use brolga_linking::{Label, WeakSession};

use crate::session::linking;
use crate::session::shared::Shared;
use crate::session::target::{Compiled, Native, Place, Source};
use crate::session::unit::CodegenUnit;
use crate::sync::lock;

/// Enables eviction of a session's code when there are more than `limit` bytes of it.
pub(crate) fn set_limit(shared: &Arc<Shared>, session: &linking::Session<Native>, limit: usize) {
    let evictor = CodeEvictor { shared: Arc::downgrade(shared), session: session.downgrade() };
    shared.set_evictor(Arc::new(evictor), limit);
}

/// The unit that compiles evicted code again.
fn unit_of(source: Source, shared: &Arc<Shared>) -> linking::Unit<Native> {
    let Source { input, id, symbol, flags } = source;
    CodegenUnit { shared: shared.clone(), input, ids: vec![id], symbols: vec![(symbol, flags)] }.into()
}

/// See the file's header.
struct CodeEvictor {
    shared: Weak<Shared>,
    session: WeakSession<Native>,
}

impl Evictor for CodeEvictor {
    fn evict(&self, bytes: usize) -> Evicted {
        let Some((shared, session)) = self.shared.upgrade().zip(self.session.upgrade()) else {
            return Evicted::Nothing;
        };
        let held = |(label, owner): (Label, Arc<CellOwner>)| (owner.held(), label, owner);
        // Code that is being compiled for a caller is not in its cell yet, and can be evicted once it is.
        let (awaited, all): (Vec<_>, Vec<_>) =
            shared.placed.cells().into_iter().partition(|(_, owner)| owner.is_awaited());
        let mut held: Vec<(Option<Held>, Label, Arc<CellOwner>)> = all.into_iter().map(held).collect();
        // First the functions whose slot has no code: their code was compiled too late.
        held.sort_by_key(|(held, label, _)| (held.map(|held| (!held.rests, held.last)), *label));
        let (mut freed, mut evicted) = (0, 0);
        let mut stay = Vec::new();
        for (held, label, owner) in held {
            // A function that has lost its name stays for its callers: it cannot be compiled again.
            if session.leads_to(label) != Some(owner.identity()) {
                continue;
            }
            let gone = match freed < bytes {
                true => self.discard(&shared, &session, label, &owner, held),
                false => 0,
            };
            freed += gone;
            evicted += u64::from(gone > 0);
            let events = shared.jit.runtime().events();
            if gone > 0 && events.is_on() {
                let function = session.name(label).to_string();
                events.tell(Event::Evicted { function: &function, bytes: gone });
            }
            stay.extend(held.filter(|_| gone == 0).map(|_| owner));
        }
        for owner in stay.iter().take(stay.len() / 2) {
            owner.rest();
        }
        lock(&shared.compiled).evicted += evicted;
        shared.jit.runtime().free_retired();
        let is_made = |(label, _): &(Label, Arc<CellOwner>)| {
            bodies(*label).any(|label| session.leads_to(label).is_some())
        };
        match evicted {
            0 if awaited.iter().any(is_made) => Evicted::Soon,
            0 => Evicted::Nothing,
            _ => Evicted::Some,
        }
    }
}

/// A function's bodies, the highest tier first.
fn bodies(label: Label) -> impl Iterator<Item = Label> {
    label.symbol.parts().into_iter().rev().map(move |symbol| Label { symbol, ..label })
}

impl CodeEvictor {
    /// Resets a function to its state before the first call, except for code that is needed. Returns the evicted bytes.
    fn discard(
        &self,
        shared: &Arc<Shared>,
        session: &linking::Session<Native>,
        label: Label,
        owner: &CellOwner,
        held: Option<Held>,
    ) -> usize {
        let (mut is_kept, mut is_known, mut freed) = (false, false, 0);
        for label in bodies(label) {
            let Some(at) = session.leads_to(label) else { continue };
            let is_behind = held.is_some_and(|held| held.address == at);
            is_known |= is_behind;
            // Holding it while its address is compared keeps the address from being reused.
            match shared.placed.at(at).and_then(Place::compiled) {
                Some(Compiled { source: Some(source), unit, .. })
                    if session.renew(label, at, unit_of(source.clone(), shared)) =>
                {
                    freed += unit.loaded().code().addresses().len();
                }
                _ => is_kept |= is_behind,
            }
        }
        // A version that the session has released exists only for the cell.
        if let Some(held) = held.filter(|_| !is_kept)
            && owner.discard(held.address)
            && !is_known
        {
            freed += held.bytes;
        }
        freed
    }
}
