//! Input of events: names, which the tables hold from then on, and identifiers, which may belong to another
//! session.
//!
//! The tables hold the symbols of entries, of lookups under way, of requests to generators, and the aliasees
//! of sources. Each event that contains symbols first holds all of them, or is refused, so no table has a
//! freed name. The tables release names in the effects of a step
//! ([`Effects::released`](super::Effects::released)), after what the step publishes, so a name is freed after
//! its address was retracted.

use super::{Machine, Parts, Source};
use crate::error::Error;
use crate::flags::Link;
use crate::ids::{SessionId, Symbol};

impl<P: Parts> Source<P> {
    /// The symbol that it refers to, which is held while it is in the tables.
    pub(super) fn aliasee(&self) -> Option<Symbol> {
        match self {
            Source::Alias(_, symbol) => Some(*symbol),
            Source::Work(_) | Source::Absolute(_) => None,
        }
    }

    /// Where that symbol is searched.
    pub(super) fn home(&self) -> Option<&Link> {
        match self {
            Source::Alias(from, _) => Some(from),
            Source::Work(_) | Source::Absolute(_) => None,
        }
    }
}

impl<P: Parts> Machine<P> {
    /// Refuses an identifier of another session.
    pub(super) fn check_session(&self, what: &'static str, of: SessionId) -> Result<(), Error> {
        if of == self.session { Ok(()) } else { Err(Error::OtherSession { what, of, here: self.session }) }
    }

    /// Refuses links to another session.
    pub(super) fn check_links<'a>(&self, links: impl IntoIterator<Item = &'a Link>) -> Result<(), Error> {
        links.into_iter().try_for_each(|link| self.check_session("dylib", link.dylib.session))
    }

    /// Holds the names of all the symbols; returns those to release with [`Machine::release`].
    ///
    /// # Errors
    /// One name no longer exists; then none is held.
    pub(super) fn hold(&mut self, symbols: impl Iterator<Item = Symbol>) -> Result<Vec<Symbol>, Error> {
        let mut held = Vec::new();
        for symbol in symbols {
            if !self.names.retain(symbol) {
                self.release(held);
                return Err(Error::Unknown { what: "symbol" });
            }
            if self.names.is_counted(symbol) {
                held.push(symbol);
            }
        }
        Ok(held)
    }

    /// Releases names when the effects of this step are done.
    pub(super) fn release(&mut self, symbols: impl IntoIterator<Item = Symbol>) {
        for symbol in symbols {
            self.effects.released.add(&self.names, symbol);
        }
    }

    /// Holds the name that `source` refers to; `None` if the name no longer exists, or the link leads to
    /// another session.
    pub(super) fn hold_source(&mut self, source: Option<Source<P>>) -> Option<Source<P>> {
        let names = source.as_ref().and_then(Source::aliasee);
        let is_own = self.check_links(source.as_ref().and_then(Source::home)).is_ok();
        if is_own && names.is_none_or(|symbol| self.names.retain(symbol)) {
            return source;
        }
        source.into_iter().for_each(|source| self.drop_unheld(source, Vec::new()));
        None
    }
}
