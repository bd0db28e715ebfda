//! Units of packages: looked up before the cache, and collected when a package is built.
//!
//! ```text
//!   key of a unit ──► opened packages, newest first ────► the cache ──► compiled here
//!                                                                        ├─ a package is being built: stored in it, with its edges
//!                                                                        └─ a package has a unit for this function under another key: the reason is reported
//! ```
//!
//! **Why a unit is not used.** Its key is the hash of all inputs of its code, so it shows *that* an input has changed but not which one. A package also has, for
//! each function and tier, the hashes of the single inputs ([`Edge`]); their difference from the current ones is the reason.
//!
//! **Locks**: each is held briefly, never nested.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex};

use brolga_aot::package::{BuildId, Edge, Key, Note, Package, Seen};

use crate::sync::lock;

/// A function that was compiled although a package has code for it, because a dependency of that code has changed.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Recompiled {
    /// The symbol of the function.
    pub function: String,
    /// 1 for the first of two tiers, 2 for code after all passes.
    pub tier: u32,
    /// The package.
    pub package: String,
    /// The changes; at least one.
    pub reasons: Vec<Reason>,
}

/// Why code of a package is not used.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[non_exhaustive]
pub enum Reason {
    /// It is compiled or called differently: eager or lazy, with or without counters.
    Kind,
    /// Global variables of its program differ, have other first values, or are assigned by other functions.
    Globals,
    /// The function itself differs.
    Own,
    /// A function that it may call differs, or calls other functions.
    Callee(String),
    /// A function that it may call did not exist.
    NewCallee(String),
    /// A function that it may have called no longer exists.
    GoneCallee(String),
    /// It has dynamic calls, and a function of its program differs.
    Anything,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::Kind => f.write_str("it is compiled in another way: eager, lazy or in tiers"),
            Reason::Globals => f.write_str("global variables of its program have changed"),
            Reason::Own => f.write_str("it has changed"),
            Reason::Callee(name) => write!(f, "`{name}` has changed"),
            Reason::NewCallee(name) => write!(f, "`{name}` has come"),
            Reason::GoneCallee(name) => write!(f, "`{name}` has gone"),
            Reason::Anything => f.write_str(
                "functions of its program have changed, and it makes calls that are decided at run time",
            ),
        }
    }
}

impl fmt::Display for Recompiled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (tier {}) of package {}: ", self.function, self.tier, self.package)?;
        for (at, reason) in self.reasons.iter().enumerate() {
            write!(f, "{}{reason}", if at > 0 { "; " } else { "" })?;
        }
        Ok(())
    }
}

/// The units and notes of a package under construction.
#[derive(Debug, Default)]
pub(crate) struct Collected {
    pub(crate) units: BTreeMap<Key, Vec<u8>>,
    pub(crate) notes: BTreeMap<(String, u32), Vec<Edge>>,
}

/// The packages of a session.
#[derive(Debug, Default)]
pub(crate) struct Packages {
    opened: Mutex<Vec<Arc<Package>>>,
    /// The compiled units; `None` if no package is being built.
    collected: Option<Mutex<Collected>>,
    recompiled: Mutex<BTreeMap<(String, u32), Recompiled>>,
}

impl Packages {
    /// The packages of a session that builds one.
    pub(crate) fn collecting() -> Packages {
        Packages { collected: Some(Mutex::default()), ..Packages::default() }
    }

    /// Whether keys of units are needed.
    pub(crate) fn are_used(&self) -> bool {
        self.collected.is_some() || !lock(&self.opened).is_empty()
    }

    /// The build id of the newest open package of a name.
    pub(crate) fn open(&self, name: &str) -> Option<BuildId> {
        lock(&self.opened).iter().rev().find(|package| package.name() == name).map(|package| package.id())
    }

    /// Starts looking for code in a package.
    pub(crate) fn add(&self, package: Arc<Package>) {
        lock(&self.opened).push(package);
    }

    /// Stops looking for code in a package.
    pub(crate) fn remove(&self, package: &Arc<Package>) {
        lock(&self.opened).retain(|other| !Arc::ptr_eq(other, package));
    }

    /// The package that has a unit.
    pub(crate) fn find(&self, key: &Key) -> Option<Arc<Package>> {
        let opened = lock(&self.opened);
        opened.iter().rev().find(|package| package.unit(key).is_some()).cloned()
    }

    /// Adds a unit to the package under construction.
    pub(crate) fn collect(&self, key: &Key, unit: &[u8]) {
        if let Some(collected) = &self.collected {
            lock(collected).units.insert(*key, unit.to_vec());
        }
    }

    /// Notes that a function is compiled in this tier, against these inputs.
    pub(crate) fn note(&self, function: &str, tier: u32, edges: impl FnOnce() -> Vec<Edge>) {
        if let Some(collected) = &self.collected {
            lock(collected).notes.insert((function.to_owned(), tier), edges());
            return;
        }
        let is_of = |note: &&Note| note.function == function && note.tier == tier;
        let opened = lock(&self.opened).clone();
        let noted =
            opened.iter().rev().find_map(|package| Some((package, package.notes().iter().find(is_of)?)));
        let Some((package, note)) = noted else { return };
        let (function, package) = (function.to_owned(), package.name().to_owned());
        let reasons = reasons(&note.edges, &edges());
        if !reasons.is_empty() {
            let recompiled = Recompiled { function: function.clone(), tier, package, reasons };
            lock(&self.recompiled).insert((function, tier), recompiled);
        }
    }

    /// The functions that were compiled although a package has code for them, by symbol and tier.
    pub(crate) fn recompiled(&self) -> Vec<Recompiled> {
        lock(&self.recompiled).values().cloned().collect()
    }

    pub(crate) fn take_collected(&self) -> Collected {
        self.collected.as_ref().map(|collected| std::mem::take(&mut *lock(collected))).unwrap_or_default()
    }
}

/// The differences between the inputs that code was compiled against and the current ones.
fn reasons(before: &[Edge], now: &[Edge]) -> Vec<Reason> {
    let by_name = |edges: &[Edge]| -> BTreeMap<(Seen, String), Key> {
        edges.iter().map(|edge| ((edge.seen, edge.name.clone()), edge.hash)).collect()
    };
    let (before, now) = (by_name(before), by_name(now));
    let reason = |seen: Seen, callee: Reason| match seen {
        Seen::Kind => Reason::Kind,
        Seen::Globals => Reason::Globals,
        Seen::Own => Reason::Own,
        Seen::Callee => callee,
        Seen::Anything => Reason::Anything,
    };
    let mut found = Vec::new();
    for ((seen, name), hash) in &now {
        match before.get(&(*seen, name.clone())) {
            Some(known) if known == hash => {}
            Some(_) => found.push(reason(*seen, Reason::Callee(name.clone()))),
            None => found.push(reason(*seen, Reason::NewCallee(name.clone()))),
        }
    }
    for (seen, name) in before.keys().filter(|key| !now.contains_key(*key)) {
        found.push(reason(*seen, Reason::GoneCallee(name.clone())));
    }
    found.sort();
    found.dedup();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_what_differs() {
        let edge = |seen, name: &str, byte| Edge { seen, name: name.to_owned(), hash: [byte; 32] };
        let before = [
            edge(Seen::Own, "", 1),
            edge(Seen::Globals, "", 2),
            edge(Seen::Callee, "f()", 3),
            edge(Seen::Callee, "g()", 4),
        ];
        assert_eq!(reasons(&before, &before), []);
        let now = [
            edge(Seen::Own, "", 1),
            edge(Seen::Globals, "", 9),
            edge(Seen::Callee, "f()", 8),
            edge(Seen::Callee, "h()", 4),
        ];
        let (changed, come, gone) = ("f()".to_owned(), "h()".to_owned(), "g()".to_owned());
        let expected =
            [Reason::Globals, Reason::Callee(changed), Reason::NewCallee(come), Reason::GoneCallee(gone)];
        assert_eq!(reasons(&before, &now), expected);
    }
}
