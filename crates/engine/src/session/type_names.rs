//! The meanings of type names: the declared type that a name means in a dylib.
//!
//! A struct may be declared again with other fields, and unlinked dylibs may each have a `Point`. These are different types, whose names are
//! [homonyms](brolga_ir::Names::homonym): one text, two names. Objects, methods and compiled code of the former type stay what they are.
//!
//! ```text
//!   a   struct Point x end      ──► Point, of a
//!   a   struct Point x; y end   ──► Point@1, of a from the next world on; the former one is `@world(Point, 3:7)`
//!   b   struct Point z end      ──► Point@2, of b               b is not linked to a
//!   c   struct Point x; y end   ──► Point@1                     equal declarations are one type
//! ```
//!
//! The meaning of a name in the programs of dylib `d`, the first that applies:
//!
//! | if | it means |
//! |---|---|
//! | a dylib in the link order of `d` has declared it, `d` itself first | the type that this dylib declared last |
//! | it was declared, but not by a program: by the library, or by the host in the session's context | that type |
//! | otherwise | nothing |
//!
//! A program whose declaration equals the current meaning changes nothing. Else it declares the type that another dylib has declared equally, or a new one: the candidates are tried in
//! this order while the program is read, because the declaration is available only then. So each program has a [`DylibScope`], which keeps its choices; they take effect with
//! the program. Types are read all at once, since a type that refers to a changed type changes with it.
//!
//! The current type of a name is held here; a former one lives as long as something uses it.
//!
//! **Locks**: the choices of a program, this table, then the table of owners and the names of the context.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use brolga_ir::types::Worlds;
use brolga_ir::{Context, NameScope};
use brolga_linking::DylibId;
use smallvec::SmallVec;

use super::owners::{NameUse, Owners, Use};
use super::sync::lock;

/// The dylibs in which a dylib looks up a name.
type Order<'a> = &'a dyn Fn(&str) -> Vec<DylibId>;

/// See the file's header.
#[derive(Default)]
pub(crate) struct TypeNames {
    table: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    known: BTreeMap<Box<str>, Known>,
    /// Whether any name has a further type.
    has_later: bool,
}

/// The types that a program declares, which take effect with it.
pub(crate) struct DeclaredTypes {
    /// The names, each with the number of the homonym.
    names: Vec<(Box<str>, u32)>,
    cx: Arc<Context>,
    /// The session's context.
    session: Arc<Context>,
}

impl DeclaredTypes {
    /// The types declared by the program that was read or built in a context.
    pub(super) fn of(cx: &Arc<Context>, session: &Arc<Context>) -> DeclaredTypes {
        DeclaredTypes { names: declarations(cx), cx: cx.clone(), session: session.clone() }
    }
}

/// The types that the program of a context declares, each with the number of the homonym.
fn declarations(cx: &Context) -> Vec<(Box<str>, u32)> {
    cx.names.scope().map_or_else(Vec::new, |scope| scope.declarations())
}

/// A declared type that is not yet the meaning of its name in the dylib.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct NewType {
    pub(super) name: Box<str>,
    /// The number of the homonym.
    pub(super) count: u32,
    /// The number of the type that the dylib declared before.
    pub(super) former: Option<u32>,
}

/// The types of a name.
#[derive(Default)]
struct Known {
    /// The number of further types declared.
    later: u32,
    /// Whether a program was the first to declare it, rather than the library or the host.
    is_of_program: bool,
    /// Whether the dylib that declared the first type has since replaced it.
    is_first_former: bool,
    /// The meaning in each dylib that has declared the name.
    of: SmallVec<[Declared; 1]>,
}

/// A type that a dylib has declared.
struct Declared {
    dylib: DylibId,
    /// The number of the homonym.
    count: u32,
    /// The world in which it took effect.
    since: u64,
    /// A view that keeps the type alive.
    held: Arc<Context>,
}

impl Known {
    /// The meaning of the name in a dylib with this link order.
    fn meaning(&self, order: &[DylibId]) -> Option<u32> {
        order.iter().find_map(|id| self.own(*id)).map(|known| known.count)
    }

    /// The type that a dylib has declared last.
    fn own(&self, dylib: DylibId) -> Option<&Declared> {
        self.of.iter().find(|known| known.dylib == dylib)
    }

    /// Whether the first type of the name does not belong to a dylib.
    fn is_first_shared(&self) -> bool {
        !self.is_of_program && self.of.iter().all(|known| known.count > 0)
    }
}

impl TypeNames {
    /// The meaning of a name in a dylib with this look-up order; `None` if only other dylibs have declared it.
    fn meaning(&self, order: Order<'_>, name: &str) -> Option<u32> {
        match lock(&self.table).known.get(name) {
            Some(known) => known.meaning(&order(name)).or_else(|| known.is_first_shared().then_some(0)),
            None => Some(0),
        }
    }

    /// The types that a program of a dylib with this link order may declare by a name, in the order in which they are tried. `is_there` tells whether there is a type of that name
    /// before programs declare some.
    fn candidates(&self, order: &[DylibId], name: &str, is_there: bool) -> Vec<u32> {
        let mut table = lock(&self.table);
        let new = Known { is_of_program: !is_there, ..Known::default() };
        let known = table.known.entry(name.into()).or_insert(new);
        let first = (!known.is_first_former).then_some(0);
        let mut all = Vec::new();
        for count in known.meaning(order).into_iter().chain(first).chain(known.of.iter().map(|one| one.count))
        {
            if !all.contains(&count) {
                all.push(count);
            }
        }
        all
    }

    /// Allocates the number of a further type of a name.
    fn another(&self, name: &str) -> u32 {
        let mut table = lock(&self.table);
        table.has_later = true;
        let known = table.known.entry(name.into()).or_default();
        known.later += 1;
        known.later
    }

    /// The declared types that are not yet the meanings of their names in a dylib with this look-up order.
    pub(crate) fn new_in(&self, dylib: DylibId, order: Order<'_>, declared: &DeclaredTypes) -> Vec<NewType> {
        let table = lock(&self.table);
        let new = |(name, count): &(Box<str>, u32)| {
            let known = table.known.get(name);
            let is_there = || declared.cx.types.find_own(declared.cx.names.homonym(name, *count)).is_some();
            if known.and_then(|known| known.meaning(&order(name))) == Some(*count) || !is_there() {
                return None;
            }
            let former = known.and_then(|known| known.own(dylib)).map(|own| own.count);
            Some(NewType { name: name.clone(), count: *count, former })
        };
        declared.names.iter().filter_map(new).collect()
    }

    /// The number of the type that a dylib has declared last by a name.
    pub(crate) fn own(&self, dylib: DylibId, name: &str) -> Option<u32> {
        lock(&self.table).known.get(name)?.own(dylib).map(|own| own.count)
    }

    /// Brings the new types of a dylib's program into force, from a world on. Former types end there. The result must be dropped without a lock.
    #[must_use]
    pub(crate) fn declare(
        &self,
        dylib: DylibId,
        declared: &DeclaredTypes,
        new: Vec<NewType>,
        world: u64,
    ) -> Vec<Arc<Context>> {
        let mut former = Vec::new();
        let mut table = lock(&self.table);
        for NewType { name, count, .. } in new {
            // A view of the program's context has its scope, which refers to these tables: a cycle.
            let held = declared.session.view();
            // From now on the view holds the type.
            let _held = held.types.find_own(held.names.homonym(&name, count));
            let known = table.known.entry(name.clone()).or_default();
            let new = Declared { dylib, count, since: world, held };
            let Some(own) = known.of.iter_mut().find(|one| one.dylib == dylib) else {
                known.of.push(new);
                continue;
            };
            let old = std::mem::replace(own, new);
            if known.of.iter().all(|one| one.count != old.count) {
                known.is_first_former |= old.count == 0;
                end(&old, &name, world);
            }
            former.push(old.held);
        }
        former
    }

    /// Removes a type that a dylib has declared. The result must be dropped without a lock.
    #[must_use]
    pub(crate) fn forget(&self, dylib: DylibId, name: &str, count: u64) -> Option<Arc<Context>> {
        let mut table = lock(&self.table);
        let known = table.known.get_mut(name)?;
        let at = known.of.iter().position(|one| one.dylib == dylib && u64::from(one.count) == count)?;
        let gone = known.of.remove(at).held;
        if known.later == 0 && !known.is_of_program && known.of.is_empty() {
            table.known.remove(name);
        }
        Some(gone)
    }

    /// A symbol with the numbers of the types that its names mean in a dylib with this look-up order. `None` if the session has no numbered types.
    pub(crate) fn symbol(&self, order: Order<'_>, text: &str) -> Option<String> {
        let table = lock(&self.table);
        if !table.has_later {
            return None;
        }
        let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == '!';
        let (mut symbol, mut rest) = (String::new(), text);
        while !rest.is_empty() {
            let (word, after) = rest.split_at(rest.find(|c| !is_part(c)).unwrap_or(rest.len()));
            symbol.push_str(word);
            let count = table.known.get(word).and_then(|known| known.meaning(&order(word))).unwrap_or(0);
            // A function or field may have the same name.
            let is_type = !after.starts_with(['@', '(']) && !after.starts_with("::");
            if count > 0 && is_type {
                symbol.push_str(&format!("@{count}"));
            }
            let next = after.chars().next().map_or(0, char::len_utf8);
            symbol.push_str(&after[..next]);
            rest = &after[next..];
        }
        Some(symbol)
    }

    /// Whether the names of the types in a symbol mean these types.
    pub(crate) fn is_meant(&self, order: Order<'_>, symbol: &str) -> bool {
        let mut parts = symbol.split('@');
        let mut text = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let plain = part.trim_start_matches(|c: char| c.is_ascii_digit());
            // Without a number it is a macro: `@NamedTuple{…}`.
            text.push_str(if plain.len() == part.len() { "@" } else { "" });
            text.push_str(plain);
        }
        self.symbol(order, &text).is_none_or(|meant| meant == symbol)
    }
}

/// Records the worlds of a type that is no longer the meaning of its name.
fn end(old: &Declared, name: &str, world: u64) {
    let cx = &old.held;
    if let Some(decl) = cx.types.find_own(cx.names.homonym(name, old.count)) {
        cx.types.end_declaration(decl, Worlds { first: old.since, last: world.saturating_sub(1) });
    }
}

/// The meanings of names in the programs of a dylib, and what a program declares.
pub(crate) struct DylibScope {
    /// The session's context.
    pub(crate) cx: Arc<Context>,
    pub(crate) owners: Arc<Owners>,
    pub(crate) types: Arc<TypeNames>,
    pub(crate) dylib: DylibId,
    /// The recorded uses of functions by the program; all other names count as mentioned.
    pub(crate) uses: Vec<NameUse>,
    /// The types that the program declares.
    pub(crate) choices: Mutex<BTreeMap<Box<str>, Choice>>,
}

/// The type that a program declares by a name.
pub(crate) struct Choice {
    candidates: Vec<u32>,
    at: usize,
    /// Whether the last candidate is a new, unshared type.
    is_new: bool,
}

impl Choice {
    /// Chooses a new, unshared type.
    fn add(&mut self, count: u32) {
        self.candidates.push(count);
        (self.at, self.is_new) = (self.candidates.len() - 1, true);
    }

    fn count(&self) -> u32 {
        self.candidates.get(self.at).copied().unwrap_or(0)
    }
}

impl DylibScope {
    /// Declares the types of a context's program, which is read again in this scope: its functions may not mention them all.
    pub(super) fn declare_again(&self, cx: &Context) {
        let choice = |(name, count)| (name, Choice { candidates: vec![count], at: 0, is_new: false });
        lock(&self.choices).extend(declarations(cx).into_iter().map(choice));
    }

    /// Holds the declared types in a context.
    pub(super) fn hold_declared(&self, cx: &Context) {
        for (name, count) in self.declarations() {
            let _held = cx.types.find_own(cx.names.homonym(&name, count));
        }
    }

    /// The number of a further type of a name, which no program of the context has declared. Sessions may share a context.
    fn another(&self, name: &str) -> u32 {
        let cx = self.cx.view();
        loop {
            let count = self.types.another(name);
            if cx.types.find_own(cx.names.homonym(name, count)).is_none() {
                return count;
            }
        }
    }
}

impl NameScope for DylibScope {
    fn function(&self, module: &str, name: &str) -> u32 {
        let known = self.uses.iter().find(|named| *named.module == *module && *named.name == *name);
        let what = known.map_or(Use::Mentions, |named| named.what);
        self.owners.meaning(self.dylib, module, name, what)
    }

    fn declared(&self, name: &str) -> u32 {
        if let Some(choice) = lock(&self.choices).get(name) {
            return choice.count();
        }
        // No type has the maximum number.
        self.types.meaning(&|name| self.owners.order(self.dylib, name), name).unwrap_or(u32::MAX)
    }

    fn declare(&self, name: &str) -> u32 {
        let mut choices = lock(&self.choices);
        let choice = choices.entry(name.into()).or_insert_with(|| {
            // In a separate view, which does not hold the name.
            let cx = self.cx.view();
            let is_there = cx.names.find(name).is_some_and(|name| cx.types.find_own(name).is_some());
            let candidates = self.types.candidates(&self.owners.order(self.dylib, name), name, is_there);
            Choice { candidates, at: 0, is_new: false }
        });
        if choice.candidates.is_empty() {
            choice.add(self.another(name));
        }
        choice.count()
    }

    fn redeclare(&self, name: &str) -> bool {
        let mut choices = lock(&self.choices);
        let Some(choice) = choices.get_mut(name) else { return false };
        if choice.at + 1 < choice.candidates.len() {
            choice.at += 1;
            return true;
        }
        let is_left = !choice.is_new;
        if is_left {
            choice.add(self.another(name));
        }
        is_left
    }

    fn declarations(&self) -> Vec<(Box<str>, u32)> {
        lock(&self.choices).iter().map(|(name, choice)| (name.clone(), choice.count())).collect()
    }
}
