//! Where names lead, and whether they are being materialized, without a lookup.

use super::{Dependence, Machine, Parts, Read, State};
use crate::ids::Label;

/// The address that a label leads to now, if it is the given version.
pub struct Leads<P: Parts>(pub Dependence<P>);

impl<P: Parts> Read<P> for Leads<P> {
    type Reply = Option<P::Address>;

    fn read(self, machine: &Machine<P>) -> Self::Reply {
        let Leads(Dependence { label, version }) = self;
        let there = machine.find(label).filter(|there| version.is_none_or(|version| version == *there))?;
        match &machine.entries.get(there)?.state {
            State::Resolved(address, _) => Some(*address),
            State::Emitted(address, _) | State::Ready(address) => *address,
            State::NeverSearched | State::Materializing(_) | State::Failed(_) => None,
        }
    }
}

/// Whether a label has a definition, ready or not.
pub struct IsDefined(pub Label);

impl<P: Parts> Read<P> for IsDefined {
    type Reply = bool;

    fn read(self, machine: &Machine<P>) -> bool {
        machine.find(self.0).is_some()
    }
}

/// Which symbols with the name of a label are being materialized: the whole and its parts.
pub struct IsPending(pub Label);

impl<P: Parts> Read<P> for IsPending {
    type Reply = Vec<Label>;

    fn read(self, machine: &Machine<P>) -> Vec<Label> {
        let whole = self.0.symbol.whole();
        let labels = [whole].into_iter().chain(whole.parts()).map(|symbol| Label { symbol, ..self.0 });
        labels.filter(|label| machine.is_pending(*label)).collect()
    }
}

impl<P: Parts> Machine<P> {
    /// Whether a symbol is being materialized, or waits for what it needs.
    pub(super) fn is_pending(&self, label: Label) -> bool {
        self.entry_at(label).is_some_and(|entry| entry.state.port().is_some())
    }
}
