//! Interned strings.
//!
//! Identifiers, symbols and string constants are compared and hashed far more often than they are read. Each distinct
//! text gets one [`Name`], and equal names are equal texts. The table is shared by all threads and programs
//! that work on one [`Context`](crate::Context); [`views`](crate::views) describes the holders of a name, and
//! when it is freed.
//!
//! The names of the builtin types have the first numbers in every context. They are made once and shared, so a new table is empty:
//!
//! ```text
//!   0 … n-1   fixed, one table for the process, never changed: read without a lock
//!   n …       of this context
//! ```
//!
//! The numbers of names depend on the order of interning, so nothing that is printed may be sorted by number.
//!
//! **Homonyms.** Programs that do not see each other may each have a function `kind` or a type `Point`, and a
//! program may declare `Point` again. These have different names with one text: the first name is the text's
//! own, the others are *homonyms*, counted from 1. A [`NameScope`] decides which one a program means.
//!
//! ```text
//!   0 … 2³¹-1     texts                                2³¹ …     homonyms: a text and a count
//! ```

use crate::meter::Meter;
use crate::views::{Store, View, Weighed};
use rustc_hash::{FxBuildHasher, FxHashMap};
use std::hash::BuildHasher;
use std::ops::Range;
use std::sync::Arc;

/// The number of the first homonym.
const HOMONYMS: u32 = 1 << 31;

/// Decides which of several functions or declared types with the same name a program means.
pub trait NameScope: Send + Sync {
    /// The homonym count of a function, given the path of its module and its name: 0 for the first.
    fn function(&self, module: &str, name: &str) -> u32;

    /// The homonym count of a declared type: 0 for the first.
    fn declared(&self, name: &str) -> u32;

    /// The homonym count of the type that a program declares by this name, which may exist already. From then
    /// on the name refers to it.
    fn declare(&self, name: &str) -> u32;

    /// Called when a declaration differs from the existing one. Returns whether the name now refers to
    /// another type: then the program's declarations are read again.
    fn redeclare(&self, name: &str) -> bool;

    /// The types that programs have declared.
    fn declarations(&self) -> Vec<(Box<str>, u32)>;
}

/// A further name with the same text as another.
#[derive(PartialEq, Eq, Hash, Debug)]
pub(crate) struct Homonym {
    text: Arc<str>,
    count: u32,
}

/// A reference that keeps a non-fixed name alive.
#[derive(Clone, Debug)]
pub(crate) enum HeldName {
    Text(Arc<str>),
    Homonym(Arc<Homonym>),
}

impl HeldName {
    pub(crate) fn text(&self) -> &str {
        match self {
            HeldName::Text(text) => text,
            HeldName::Homonym(homonym) => &homonym.text,
        }
    }
}

/// An interned text.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub struct Name(u32);

/// The names that every context has. Immutable.
#[derive(Debug, Default)]
pub(crate) struct FixedNames {
    texts: Vec<Arc<str>>,
    ids: FxHashMap<Arc<str>, Name>,
}

/// The names of a context, as seen by one of its views.
pub struct Names {
    fixed: Arc<FixedNames>,
    texts: View<str>,
    homonyms: View<Homonym>,
    /// Decides which functions and types the programs of this view mean; without it, the first of each name.
    scope: Option<Arc<dyn NameScope>>,
}

fn view<E: ?Sized + Weighed>(numbers: Range<u32>, meter: &Arc<Meter>) -> View<E> {
    View::of(Arc::new(Store::with_numbers(numbers)), meter)
}

impl Default for Names {
    fn default() -> Names {
        Names::with_fixed(Arc::default(), &Arc::default())
    }
}

impl Weighed for Homonym {
    fn bytes(&self) -> usize {
        Weighed::bytes(&*self.text) + size_of::<Homonym>()
    }
}

impl Weighed for str {
    fn bytes(&self) -> usize {
        // Includes the reference counts, rounded by the allocator.
        self.len() + 32
    }
}

impl Names {
    /// A table with these fixed names, which charges others to a meter.
    pub(crate) fn with_fixed(fixed: Arc<FixedNames>, meter: &Arc<Meter>) -> Names {
        let first = fixed.texts.len() as u32;
        let (texts, homonyms) = (view(first..HOMONYMS, meter), view(HOMONYMS..u32::MAX, meter));
        Names { fixed, texts, homonyms, scope: None }
    }

    /// Another view of the same names, initially empty, for programs in `scope`. It charges names to a meter.
    pub(crate) fn another(&self, scope: Option<Arc<dyn NameScope>>, meter: &Arc<Meter>) -> Names {
        let (texts, homonyms) = (self.texts.another(meter), self.homonyms.another(meter));
        Names { fixed: self.fixed.clone(), texts, homonyms, scope }
    }

    /// Decides which functions and types the programs of this view mean.
    pub fn scope(&self) -> Option<&Arc<dyn NameScope>> {
        self.scope.as_ref()
    }

    /// The names of a table without fixed ones, to be the fixed names of other tables.
    pub(crate) fn freeze(&self) -> FixedNames {
        let texts: Vec<Arc<str>> = (0..).map_while(|at| self.texts.hold(at).cloned()).collect();
        let ids = texts.iter().zip(0..).map(|(text, at)| (text.clone(), Name(at))).collect();
        FixedNames { texts, ids }
    }

    /// The approximate size in bytes of the names that the view holds.
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

    /// The name of a module's function as a program of this view means it.
    pub(crate) fn of_function(&self, module: &str, name: &str) -> Name {
        let count = self.scope.as_ref().map_or(0, |scope| scope.function(module, name));
        self.homonym(name, count)
    }

    /// The name of the type that a program of this view declares.
    pub fn declare(&self, name: &str) -> Name {
        let count = self.scope.as_ref().map_or(0, |scope| scope.declare(name));
        self.homonym(name, count)
    }

    /// See [`NameScope::redeclare`].
    pub fn redeclare(&self, name: &str) -> bool {
        self.scope.as_ref().is_some_and(|scope| scope.redeclare(name))
    }

    /// The name of the declared type that a program of this view means, if anything holds it.
    pub(crate) fn find_declared(&self, name: &str) -> Option<Name> {
        match self.scope.as_ref().map_or(0, |scope| scope.declared(name)) {
            0 => self.find(name),
            count => Some(self.homonym(name, count)),
        }
    }

    /// The name with this count among those with this text: 0 for the text's own.
    pub fn homonym(&self, text: &str, count: u32) -> Name {
        if count == 0 {
            return self.intern(text);
        }
        let is = |found: &Homonym| found.count == count && *found.text == *text;
        let make = || Arc::new(Homonym { text: text.into(), count });
        Name(self.homonyms.intern(FxBuildHasher.hash_one((text, count)), is, make))
    }

    /// The count of a name among those with the same text: 0 for the text's own.
    pub fn count(&self, name: Name) -> u32 {
        self.homonyms.get(name.0).map_or(0, |homonym| homonym.count)
    }

    /// The name of this table for a name of another table.
    pub fn take_over(&self, from: &Names, name: Name) -> Name {
        self.homonym(from.text(name), from.count(name))
    }

    /// Whether this view holds the name of `text`.
    pub(crate) fn holds(&self, text: &str) -> bool {
        let number = self.texts.find_key(FxBuildHasher.hash_one(text), |found| found == text);
        self.fixed.ids.contains_key(text) || number.is_some_and(|number| self.texts.held(number).is_some())
    }

    /// The name of `text`, if anything holds it.
    pub fn find(&self, text: &str) -> Option<Name> {
        let known = || self.texts.find(FxBuildHasher.hash_one(text), |found| found == text).map(Name);
        self.fixed.ids.get(text).copied().or_else(known)
    }

    /// Whether a name belongs to this table. A foreign name may pass by chance: names are numbers.
    pub fn has(&self, name: Name) -> bool {
        self.get(name).is_some()
    }

    /// The number of a name, for messages about foreign names.
    pub(crate) fn number(name: Name) -> u32 {
        name.0
    }

    /// The text of a name. For a foreign name, the text that has its number here, or `"?"`.
    pub fn text(&self, name: Name) -> &str {
        self.get(name).unwrap_or("?")
    }

    /// Keeps a non-fixed name alive for holders without a view.
    pub(crate) fn hold(&self, name: Name) -> Option<HeldName> {
        match name.0 < HOMONYMS {
            true => self.texts.hold(name.0).cloned().map(HeldName::Text),
            false => self.homonyms.hold(name.0).cloned().map(HeldName::Homonym),
        }
    }

    fn get(&self, name: Name) -> Option<&str> {
        match self.fixed.texts.get(name.0 as usize) {
            Some(text) => Some(text),
            None if name.0 < HOMONYMS => self.texts.get(name.0),
            None => self.homonyms.get(name.0).map(|homonym| &*homonym.text),
        }
    }
}

impl std::fmt::Debug for Names {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Names")
            .field("texts", &self.texts)
            .field("homonyms", &self.homonyms)
            .finish_non_exhaustive()
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
    fn homonyms_have_one_text_and_different_names() {
        struct Second;
        impl NameScope for Second {
            fn function(&self, module: &str, name: &str) -> u32 {
                u32::from((module, name) == ("Main", "kind"))
            }

            fn declared(&self, _: &str) -> u32 {
                0
            }

            fn declare(&self, _: &str) -> u32 {
                0
            }

            fn redeclare(&self, _: &str) -> bool {
                false
            }

            fn declarations(&self) -> Vec<(Box<str>, u32)> {
                Vec::new()
            }
        }
        let names = Names::default();
        let first = names.intern("kind");
        let second = names.homonym("kind", 1);
        assert_ne!(first, second);
        assert_eq!((names.homonym("kind", 0), names.homonym("kind", 1)), (first, second));
        assert_eq!((names.text(second), names.count(second), names.count(first)), ("kind", 1, 0));
        let view = names.another(Some(Arc::new(Second)), &Arc::default());
        assert_eq!((view.of_function("Main", "kind"), view.of_function("A", "kind")), (second, first));
        let other = Names::default();
        let taken = other.take_over(&names, second);
        assert_eq!((other.text(taken), other.count(taken)), ("kind", 1));
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
