//! The types that an embedder chooses for a session: addresses, code, and the words that redirectable calls go through.

use crate::board::Address;

/// The types of a session's contents, chosen by the embedder.
pub trait Target: Sized + Send + Sync + 'static {
    /// Where a symbol is.
    type Address: Address;
    /// The owner of code or data of a unit; dropped when nothing leads there any more.
    type Code: Send + 'static;
    /// The word that calls of redirectable symbols go through.
    type Slot: Slot<Self::Address>;
}

/// A word that calls go through.
pub trait Slot<A>: Send + Sync + 'static {
    /// Leads calls to `target`: one store, with release ordering. Must not call the session.
    fn bind(&self, target: A);

    /// Leads calls to whatever asks the session ([`crate::Dylib::bind`]) and then calls what it says. As `bind`.
    fn arm(&self);
}

/// The slot of targets without redirectable symbols. No value of it exists, so redirectable symbols and lazy re-exports cannot be defined there.
#[derive(Clone, Copy, Debug)]
pub enum NoSlot {}

impl<A> Slot<A> for NoSlot {
    fn bind(&self, _target: A) {
        match *self {}
    }

    fn arm(&self) {
        match *self {}
    }
}
