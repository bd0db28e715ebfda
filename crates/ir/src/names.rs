//! Interned strings.
//!
//! Identifiers, symbols and string constants are compared and hashed far more often than they are read. Each distinct
//! text gets one [`Name`], and equal names are equal texts. The table is shared by all threads that work on one
//! [`Context`](crate::Context); see [`append`](crate::append) for how readers go on while a name is added.
//!
//! The names of the builtin types have the first numbers in every context. They are made once and shared, so a new table is empty:
//!
//! ```text
//!   0 … n-1   fixed, one table for the process, never changed: read without a lock
//!   n …       of this context, freed with it
//! ```
//!
//! The numbers of names depend on the order of interning, so nothing that is printed may be sorted by them.

use crate::append::AppendVec;
use rustc_hash::FxHashMap;
use std::sync::{Arc, PoisonError, RwLock};

/// An interned text.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub struct Name(u32);

/// Names that every context has. They never change.
#[derive(Debug, Default)]
pub(crate) struct FixedNames {
    texts: Vec<Arc<str>>,
    ids: FxHashMap<Arc<str>, Name>,
}

/// The table of all names of a context.
#[derive(Debug, Default)]
pub struct Names {
    fixed: Arc<FixedNames>,
    texts: AppendVec<Arc<str>>,
    ids: RwLock<FxHashMap<Arc<str>, Name>>,
}

impl Names {
    /// A table that has these names.
    pub(crate) fn with_fixed(fixed: Arc<FixedNames>) -> Names {
        Names { fixed, ..Names::default() }
    }

    /// The names of a table without fixed ones, as the fixed ones of others.
    pub(crate) fn freeze(&self) -> FixedNames {
        let ids = self.ids.read().unwrap_or_else(PoisonError::into_inner).clone();
        let texts = (0..ids.len() as u32).filter_map(|at| self.texts.get(at).cloned()).collect();
        FixedNames { texts, ids }
    }

    /// The name of `text`, made if it does not exist.
    pub fn intern(&self, text: &str) -> Name {
        if let Some(name) = self.find(text) {
            return name;
        }
        let mut ids = self.ids.write().unwrap_or_else(PoisonError::into_inner);
        // Another thread may have been faster between the two locks.
        if let Some(&name) = ids.get(text) {
            return name;
        }
        // Four thousand million distinct texts do not fit into memory, so the count stays below the id space.
        let at = ids.len() as u32;
        let name = Name(self.fixed.texts.len() as u32 + at);
        let text: Arc<str> = text.into();
        self.texts.push(at, text.clone());
        ids.insert(text, name);
        name
    }

    /// The name of `text`, if it was ever interned.
    pub fn find(&self, text: &str) -> Option<Name> {
        let known = || self.ids.read().unwrap_or_else(PoisonError::into_inner).get(text).copied();
        self.fixed.ids.get(text).copied().or_else(known)
    }

    /// Whether a name is of this table. One of another may be so by chance: names are numbers.
    pub fn has(&self, name: Name) -> bool {
        self.get(name).is_some()
    }

    /// A dense number of a name, for messages about one that is not of the table.
    pub(crate) fn number(name: Name) -> u32 {
        name.0
    }

    /// The text of a name. A name of another context gives whatever text has its number here, or `"?"`.
    pub fn text(&self, name: Name) -> &str {
        self.get(name).map_or("?", |text| text)
    }

    fn get(&self, name: Name) -> Option<&Arc<str>> {
        match name.0.checked_sub(self.fixed.texts.len() as u32) {
            None => self.fixed.texts.get(name.0 as usize),
            Some(at) => self.texts.get(at),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_texts_have_equal_names() {
        let names = Names::default();
        let a = names.intern("θ");
        assert_eq!(a, names.intern("θ"));
        assert_ne!(a, names.intern("λ"));
        assert_eq!(names.text(a), "θ");
        assert_eq!(names.find("μ"), None);
    }

    #[test]
    fn threads_agree_on_names() {
        let names = Names::default();
        let all: Vec<Vec<Name>> = std::thread::scope(|s| {
            let work = || (0..500).map(|i| names.intern(&format!("n{i}"))).collect::<Vec<_>>();
            let handles: Vec<_> = (0..4).map(|_| s.spawn(work)).collect();
            handles.into_iter().map(|h| h.join().unwrap()).collect()
        });
        assert!(all.windows(2).all(|w| w[0] == w[1]));
        assert_eq!(names.text(all[0][17]), "n17");
    }
}
