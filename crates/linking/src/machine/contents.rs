//! A snapshot of a dylib's contents, for display.

use std::sync::Arc;

use super::{Event, Machine, Parts, State, Version};
use crate::error::{Error, Name};
use crate::flags::SymbolFlags;
use crate::ids::{DylibId, Symbol};

/// The state of a symbol.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Progress {
    /// Defined, and not looked up yet.
    Defined,
    /// Being materialized.
    Materializing,
    /// It has an address.
    Resolved,
    /// Its memory is final; a dependence is not ready.
    Emitted,
    /// It may be used.
    Ready,
    /// It could not be materialized.
    Failed,
}

/// A symbol of a dylib.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct SymbolFacts {
    /// Its name.
    pub symbol: Symbol,
    /// The text of its name.
    pub text: Arc<str>,
    pub flags: SymbolFlags,
    pub progress: Progress,
    /// Symbols that it waits for, all of one unit.
    pub waits_for: Vec<Name>,
    /// The symbols of other units that use it.
    pub users: Vec<Name>,
}

/// The symbols of a dylib, in the order of their names.
pub struct Contents(pub DylibId);

impl<P: Parts> Event<P> for Contents {
    type Reply = Result<Vec<SymbolFacts>, Error>;

    fn apply(self, machine: &mut Machine<P>) -> Self::Reply {
        let symbols = machine.dylibs.get(self.0)?.symbols.iter();
        let versions: Vec<Version<P>> = symbols.map(|(_, version)| *version).collect();
        let mut all: Vec<SymbolFacts> =
            versions.into_iter().filter_map(|version| machine.facts(version)).collect();
        all.sort_by(|a, b| a.text.cmp(&b.text));
        Ok(all)
    }
}

impl<P: Parts> Machine<P> {
    fn facts(&mut self, version: Version<P>) -> Option<SymbolFacts> {
        // Finding the unit that a symbol waits for walks a path and shortens it.
        let port = self.entries.get(version)?.state.port();
        let witness = port.map(|port| self.graph.witness(port)).unwrap_or_default();
        let entry = self.entries.get(version)?;
        let progress = match &entry.state {
            State::NeverSearched => Progress::Defined,
            State::Materializing(_) => Progress::Materializing,
            State::Resolved(..) => Progress::Resolved,
            State::Emitted(..) => Progress::Emitted,
            State::Ready(_) => Progress::Ready,
            State::Failed(_) => Progress::Failed,
        };
        let users = entry.users.iter().filter(|user| **user != entry.unit && self.is_user(**user, version));
        let users: Vec<Version<P>> =
            users.filter_map(|user| self.units.get(*user)).flat_map(|unit| unit.entries.to_vec()).collect();
        Some(SymbolFacts {
            symbol: entry.label.symbol,
            text: self.names.text(entry.label.symbol),
            flags: entry.flags,
            progress,
            waits_for: self.sorted_names(&witness),
            users: self.sorted_names(&users),
        })
    }

    fn sorted_names(&self, versions: &[Version<P>]) -> Vec<Name> {
        let mut names = self.names_of_versions(versions);
        names.sort();
        names.dedup();
        names
    }
}
