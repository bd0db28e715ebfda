//! Interned strings.
//!
//! Identifiers, symbols and string constants are compared and hashed far more often than they are read. Each distinct
//! text gets one [`Name`], and equal names are equal texts. The table is shared by all threads that work on one
//! [`Context`](crate::Context); see [`append`](crate::append) for how readers go on while a name is added.
//!
//! The numbers of names depend on the order of interning, so nothing that is printed may be sorted by them.

use crate::append::AppendVec;
use rustc_hash::FxHashMap;
use std::sync::{PoisonError, RwLock};

/// An interned text.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub struct Name(u32);

/// The table of all names of a context.
#[derive(Debug, Default)]
pub struct Names {
    texts: AppendVec<Box<str>>,
    ids: RwLock<FxHashMap<Box<str>, Name>>,
}

impl Names {
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
        let name = Name(ids.len() as u32);
        self.texts.push(name.0, text.into());
        ids.insert(text.into(), name);
        name
    }

    /// The name of `text`, if it was ever interned.
    pub fn find(&self, text: &str) -> Option<Name> {
        self.ids.read().unwrap_or_else(PoisonError::into_inner).get(text).copied()
    }

    /// Whether a name is of this table. One of another may be so by chance: names are numbers.
    pub fn has(&self, name: Name) -> bool {
        self.texts.get(name.0).is_some()
    }

    /// A dense number of a name, for messages about one that is not of the table.
    pub(crate) fn number(name: Name) -> u32 {
        name.0
    }

    /// The text of a name. A name of another context gives whatever text has its number here, or `"?"`.
    pub fn text(&self, name: Name) -> &str {
        self.texts.get(name.0).map_or("?", |text| text)
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
