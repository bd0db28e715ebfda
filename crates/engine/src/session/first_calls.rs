//! The record of first calls: the functions that were compiled because they were called, in order (used by `call_order.rs`).
//!
//! **Locks**: the record's, then the linking model's.
//!
//! Cost: an entry for each defined function that was compiled at its first call; entries of other functions are dropped when the number has doubled since the last sweep.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use brolga_linking::{DylibId, Label, Session};

use super::sync::lock;
use super::target::Native;

/// The first calls of a session's functions.
#[derive(Default)]
pub(super) struct FirstCalls {
    calls: Mutex<Calls>,
}

#[derive(Default)]
struct Calls {
    known: BTreeSet<(DylibId, Arc<str>)>,
    /// The same functions, in the order of the calls.
    order: Vec<(DylibId, Arc<str>)>,
    /// The number of entries at which undefined functions are swept: twice the number that the last sweep left.
    sweep_at: usize,
}

/// The minimum number of entries for a sweep.
const SWEPT: usize = 1024;

impl FirstCalls {
    /// Records a function that is compiled because it was called.
    pub(super) fn note(&self, session: &Session<Native>, function: Label) {
        let call = (function.dylib, session.names().text(function.symbol));
        let mut calls = lock(&self.calls);
        if !calls.known.insert(call.clone()) {
            return;
        }
        calls.order.push(call);
        if calls.order.len() >= calls.sweep_at.max(SWEPT) {
            let is_defined = |(dylib, function): &(DylibId, Arc<str>)| {
                let symbol = session.names().find(function);
                symbol.is_some_and(|symbol| session.is_defined(Label { dylib: *dylib, symbol }))
            };
            calls.order.retain(is_defined);
            calls.known = calls.order.iter().cloned().collect();
            calls.sweep_at = 2 * calls.order.len();
        }
    }

    /// The dylibs and symbols of the functions, in the order of their first calls.
    pub(super) fn order(&self) -> Vec<(DylibId, Arc<str>)> {
        lock(&self.calls).order.clone()
    }
}
