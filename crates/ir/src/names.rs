//! Interned strings.
//!
//! Identifiers, symbols and string constants are compared and hashed far more often than they are read. Each distinct
//! text gets one [`Name`], and equal names are equal texts. The table is shared by all threads and programs that work on
//! one [`Context`](crate::Context); see [`views`](crate::views) for the holders of a name, and its end.
//!
//! The names of the builtin types have the first numbers in every context. They are made once and shared, so a new table is empty:
//!
//! ```text
//!   0 … n-1   fixed, one table for the process, never changed: read without a lock
//!   n …       of this context
//! ```
//!
//! The numbers of names depend on the order of interning, so nothing that is printed may be sorted by them.

use crate::meter::Meter;
use crate::views::{Store, View, Weighed};
use rustc_hash::{FxBuildHasher, FxHashMap};
use std::hash::BuildHasher;
use std::sync::Arc;

/// An interned text.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub struct Name(u32);

/// Names that every context has. They never change.
#[derive(Debug, Default)]
pub(crate) struct FixedNames {
    texts: Vec<Arc<str>>,
    ids: FxHashMap<Arc<str>, Name>,
}

/// The names of a context, as one of its views has them.
#[derive(Debug, Default)]
pub struct Names {
    fixed: Arc<FixedNames>,
    texts: View<str>,
}

impl Weighed for str {
    fn bytes(&self) -> usize {
        // With the counts of its holders, rounded by the allocator.
        self.len() + 32
    }
}

impl Names {
    /// A table that has these names, and charges others to a meter.
    pub(crate) fn with_fixed(fixed: Arc<FixedNames>, meter: &Arc<Meter>) -> Names {
        let first = fixed.texts.len() as u32;
        Names { fixed, texts: View::of(Arc::new(Store::beginning_at(first)), meter) }
    }

    /// Another view of the same names, which holds none yet, and charges them to a meter.
    pub(crate) fn another(&self, meter: &Arc<Meter>) -> Names {
        Names { fixed: self.fixed.clone(), texts: self.texts.another(meter) }
    }

    /// The names of a table without fixed ones, as the fixed ones of others.
    pub(crate) fn freeze(&self) -> FixedNames {
        let texts: Vec<Arc<str>> = (0..).map_while(|at| self.texts.hold(at).cloned()).collect();
        let ids = texts.iter().zip(0..).map(|(text, at)| (text.clone(), Name(at))).collect();
        FixedNames { texts, ids }
    }

    /// The bytes of the names that the view holds, about.
    pub(crate) fn bytes(&self) -> usize {
        self.texts.bytes()
    }

    /// The name of `text`, made if it does not exist.
    pub fn intern(&self, text: &str) -> Name {
        if let Some(&name) = self.fixed.ids.get(text) {
            return name;
        }
        Name(self.texts.intern(FxBuildHasher.hash_one(text), |found| found == text, || text.into()))
    }

    /// The name of `text`, if it has a holder.
    pub fn find(&self, text: &str) -> Option<Name> {
        let known = || self.texts.find(FxBuildHasher.hash_one(text), |found| found == text).map(Name);
        self.fixed.ids.get(text).copied().or_else(known)
    }

    /// Whether a name is of this table. One of another may be so by chance: names are numbers.
    pub fn has(&self, name: Name) -> bool {
        self.get(name).is_some()
    }

    /// A number of a name, for messages about one that is not of the table.
    pub(crate) fn number(name: Name) -> u32 {
        name.0
    }

    /// The text of a name. A name of another context gives the text that has its number here, or `"?"`.
    pub fn text(&self, name: Name) -> &str {
        self.get(name).unwrap_or("?")
    }

    /// The text of a name that is not fixed, for holders without a view.
    pub(crate) fn hold(&self, name: Name) -> Option<Arc<str>> {
        self.texts.hold(name.0).cloned()
    }

    fn get(&self, name: Name) -> Option<&str> {
        match self.fixed.texts.get(name.0 as usize) {
            Some(text) => Some(text),
            None => self.texts.get(name.0),
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
