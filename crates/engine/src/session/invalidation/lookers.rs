//! The functions that call one function dynamically, by the type of the first argument. So a new method finds the callers that it may concern
//! without visiting the others.

use std::collections::{BTreeMap, BTreeSet};

use brolga_ir::Type;
use brolga_linking::Label;

/// The functions with dynamic calls of one function.
#[derive(Default)]
pub(super) struct Lookers {
    /// By the type of the first argument.
    by_first: BTreeMap<Type, BTreeSet<Label>>,
    others: BTreeSet<Label>,
}

impl Lookers {
    pub(super) fn at(&mut self, first: Option<Type>) -> &mut BTreeSet<Label> {
        match first {
            Some(first) => self.by_first.entry(first).or_default(),
            None => &mut self.others,
        }
    }

    pub(super) fn remove(&mut self, first: Option<Type>, label: Label) {
        let labels = self.at(first);
        labels.remove(&label);
        if let Some(first) = first.filter(|_| labels.is_empty()) {
            self.by_first.remove(&first);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.by_first.is_empty() && self.others.is_empty()
    }

    /// The functions whose calls may reach a method, by its first parameter.
    pub(super) fn of(&self, first: Option<Type>) -> impl Iterator<Item = Label> + '_ {
        let only = first.map(|first| self.by_first.get(&first));
        let all = only.is_none().then(|| self.by_first.values()).into_iter().flatten();
        only.flatten().into_iter().chain(all).chain([&self.others]).flatten().copied()
    }
}
