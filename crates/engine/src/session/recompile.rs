//! Recompilation of callers that depend on functions defined or removed elsewhere.
//!
//! ```text
//!   definition in force ──┐
//!                         ├──► the callers that it reaches (`invalidation.rs`), dylib by dylib ──► recompiled, in one step per dylib
//!   removal, afterwards ──┘                                                                   └──► or at their next call (`deferred.rs`)
//! ```
//!
//! A removal reaches callers whose dynamic calls may go to the removed method: the compiler may have devirtualized them. The linking model reports
//! removed labels after its step, for all kinds of removal: by name, by a tracker, with their dylib.

use std::collections::{BTreeMap, BTreeSet};

use brolga_linking::{DylibId, Label};

use super::batch::Batch;
use super::deferred::{self, Redefined};
use super::dylib::Dylib;
use super::error::SessionError;
use super::invalidation::{Change, Hit};
use super::{Session, linking};

impl Dylib {
    /// Recompiles functions of this dylib, except those that have been recompiled or redefined since. `kept` receives the names
    /// of functions that no longer fit the types of their callees.
    pub(super) fn recompile(&self, hits: &[Hit], kept: &mut Vec<linking::Name>) -> Result<(), SessionError> {
        loop {
            kept.clear();
            let (hits, seen) = self.session.inner.edges.still(hits);
            if hits.is_empty() {
                return Ok(());
            }
            let mut new = Batch::new(self, true);
            (new.basis.hits, new.basis.seen) = (hits.iter().map(Hit::noted).collect(), seen);
            new.recompile(hits, seen, kept)?;
            if new.define(&mut BTreeSet::new())?.is_some() {
                return Ok(());
            }
        }
    }
}

impl Session {
    /// Recompiles functions, dylib by dylib. If a dylib's callers cannot be recompiled now, they are recompiled when they are called.
    pub(super) fn recompile_callers(&self, hits: Vec<Hit>, redefined: &mut Redefined) {
        let mut by_dylib: BTreeMap<DylibId, Vec<Hit>> = BTreeMap::new();
        for hit in hits {
            by_dylib.entry(hit.label.dylib).or_default().push(hit);
        }
        for (id, mut hits) in by_dylib {
            // A dylib leaves the list when it is found closed.
            let Some(linking) = self.home(id) else {
                self.inner.edges.forget_all(id, u64::MAX);
                continue;
            };
            let dylib = Dylib::new(self.clone(), linking);
            let mut kept = Vec::new();
            match dylib.recompile(&hits, &mut kept) {
                Ok(()) => {}
                // Functions of a closed dylib are not called any more.
                Err(SessionError::Link(linking::Error::DylibClosed { .. })) => self.forget_dylib(id),
                // The definitions are in force, so callers with the former bodies must not be called again.
                Err(_) => {
                    hits.retain(|hit| !kept.contains(&self.linking().name(hit.label)));
                    deferred::defer(&dylib, hits, redefined);
                }
            }
            redefined.kept.extend(kept);
        }
    }

    /// Recompiles functions whose dynamic calls may have been devirtualized to removed methods.
    pub(super) fn recompile_after_removal(&self, labels: &[Label]) {
        if !self.inner.edges.has_dynamic_calls() {
            return;
        }
        let gone = labels.iter().filter(|label| !self.linking().is_defined(**label));
        // A separate view: the session's would hold the names and types forever.
        let cx = &self.inner.cx.view();
        let offered = |&label: &Label| {
            let (scope, symbol) = (self.scope(label.dylib), self.linking().names().text(label.symbol));
            let methods = scope.map(|scope| scope.offered(&symbol)).unwrap_or_default();
            methods.into_iter().map(move |gone| Change::removal(label, gone, cx))
        };
        let changes: Vec<Change> = gone.flat_map(offered).collect();
        let (hits, _) = self.inner.edges.hit(&changes);
        self.recompile_callers(hits, &mut Redefined::default());
    }
}
