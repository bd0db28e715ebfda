//! The table of dylibs, whose slots are reused.
//!
//! ```text
//!   DylibId = (slot, generation, session) ──► Open(dylib) ── close ──► Closed(name) ── 64 others closed ──► the next generation
//! ```
//!
//! An id that outlives its dylib refers to a closed one, even after another dylib has taken the slot; an id
//! of another session refers to nothing. The names of the most recently closed dylibs are kept for messages.
//! Cost: one indexed load and two comparisons.

use std::collections::VecDeque;
use std::sync::Arc;
use std::thread::ThreadId;

use super::{Dylib, Parts, Version};
use crate::error::Error;
use crate::ids::{DylibId, SessionId};

struct Place<P: Parts> {
    generation: u32,
    tenant: Tenant<P>,
}

enum Tenant<P: Parts> {
    Open(Box<Dylib<P>>),
    /// The name of the last one, for messages.
    Closed(Arc<str>),
}

/// The dylibs of a session, by slot.
pub(super) struct Dylibs<P: Parts> {
    session: SessionId,
    places: Vec<Place<P>>,
    /// Slots of closed dylibs, most recently closed last.
    free: VecDeque<u32>,
    /// The number of dylibs ever made.
    made: u64,
}

/// A slot stays empty until this many more are: messages about the most recently closed dylibs can use their
/// names.
const REMEMBERED: usize = 64;

impl<P: Parts> Dylibs<P> {
    pub(super) fn new(session: SessionId) -> Self {
        Dylibs { session, places: Vec::new(), free: VecDeque::new(), made: 0 }
    }

    /// A slot for a dylib, which `make` makes from its id and its serial number.
    pub(super) fn insert(
        &mut self,
        make: impl FnOnce(DylibId, u64) -> Box<Dylib<P>>,
    ) -> Result<DylibId, Error> {
        let vacant = if self.free.len() > REMEMBERED { self.free.pop_front() } else { None };
        let full = |_| Error::Unknown { what: "room for a dylib" };
        let index = vacant.map_or_else(|| u32::try_from(self.places.len()).map_err(full), Ok)?;
        let last = self.places.get(index as usize).map_or(0, |place| place.generation);
        let id = DylibId { index, generation: last + 1, session: self.session };
        let place = Place { generation: id.generation, tenant: Tenant::Open(make(id, self.made)) };
        self.made += 1;
        match self.places.get_mut(index as usize) {
            Some(vacant) => *vacant = place,
            None => self.places.push(place),
        }
        Ok(id)
    }

    /// Why there is no open dylib with this id.
    fn refusal(&self, id: DylibId) -> Error {
        if id.session != self.session {
            return Error::OtherSession { what: "dylib", of: id.session, here: self.session };
        }
        match self.name(id) {
            Some(name) => Error::DylibClosed { dylib: Arc::clone(name) },
            // By now its slot belongs to another one.
            None => Error::DylibClosed { dylib: "?".into() },
        }
    }

    /// The dylib, if it is open.
    pub(super) fn get(&self, id: DylibId) -> Result<&Dylib<P>, Error> {
        match self.places.get(id.index as usize) {
            Some(Place { generation, tenant: Tenant::Open(dylib) })
                if (*generation, self.session) == (id.generation, id.session) =>
            {
                Ok(dylib)
            }
            _ => Err(self.refusal(id)),
        }
    }

    /// The dylib, if it is open.
    pub(super) fn get_mut(&mut self, id: DylibId) -> Result<&mut Dylib<P>, Error> {
        self.get(id)?;
        match self.places.get_mut(id.index as usize) {
            Some(Place { tenant: Tenant::Open(dylib), .. }) => Ok(dylib),
            _ => Err(Error::Unknown { what: "dylib" }),
        }
    }

    /// The name of an open or recently closed dylib.
    pub(super) fn name(&self, id: DylibId) -> Option<&Arc<str>> {
        let place = self.places.get(id.index as usize)?;
        let is_it = (place.generation, self.session) == (id.generation, id.session);
        is_it.then_some(match &place.tenant {
            Tenant::Open(dylib) => &dylib.name,
            Tenant::Closed(name) => name,
        })
    }

    /// The initialisers that a thread is busy with.
    pub(super) fn busy(&self, by: ThreadId) -> impl Iterator<Item = Version<P>> {
        let open = self.places.iter().filter_map(|place| match &place.tenant {
            Tenant::Open(dylib) => Some(dylib),
            Tenant::Closed(_) => None,
        });
        let known = open.flat_map(|dylib| &dylib.initializers);
        known.filter(move |known| known.is_busy(by)).map(|known| known.version)
    }

    /// Closes the dylib, if it is open, and returns it.
    pub(super) fn close(&mut self, id: DylibId) -> Option<Box<Dylib<P>>> {
        let closed = Tenant::Closed(Arc::clone(&self.get(id).ok()?.name));
        let place = self.places.get_mut(id.index as usize)?;
        let Tenant::Open(dylib) = std::mem::replace(&mut place.tenant, closed) else { return None };
        // A slot whose generations are exhausted stays empty.
        if place.generation < u32::MAX {
            self.free.push_back(id.index);
        }
        Some(dylib)
    }
}
