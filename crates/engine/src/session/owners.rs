//! The owners of function names: the function that a name means in a dylib.
//!
//! Two dylibs that are not linked may each define a function `kind`. They are different functions: neither has a method of the other, and a value of
//! one dispatches to its own methods wherever it is passed. In the IR their names are [homonyms](brolga_ir::Names::homonym): one text, two names. So
//! method tables, inlining and dispatch, which compare names, need no dylibs.
//!
//! ```text
//!   a   function kind(x::Any)     ──► kind, owner a
//!   b   function kind(x::Int64)   ──► kind, owner b          b is not linked to a
//!   c   function kind(x::Bool)    ──► kind, owner a          c is linked to a: a method of a's function, as by Julia's `import`
//! ```
//!
//! The meaning of a name in the programs of dylib `d`, the first that applies:
//!
//! | if the name has | it means |
//! |---|---|
//! | an owner in the link order of `d`, `d` itself first | the function of the first one |
//! | no owner, and `d` has used it before | the function without methods that it meant then |
//! | no owner, and all dylibs that have used it are linked to `d` or `d` to them | the same |
//! | owners and users that `d` does not see | a new function without methods |
//!
//! The names that a definition uses are noted in the step that brings it into force: a refused definition leaves no trace.
//!
//! A definition makes `d` the owner of an unowned function, if all dylibs that have used it are linked to `d`; else `d` gets its own function.
//! So the order of definitions matters in one case: a name that a program mentions before a dylib to which it is linked defines it. The
//! program means the function that is then defined, unless a dylib without that link has mentioned the name with it.
//!
//! If a dylib re-exports a name of another one, the other one counts as coming after it in each link order (`link_orders.rs`). A function with only hidden methods
//! belongs to its owner: for all other dylibs its name has no owner there.
//!
//! All dylibs share the library: a method that a dylib adds to a function of Base is seen by all.
//!
//! **Locks**: the lock of the table, then the one of the context's names.
//!
//! Cost: a look-up for each function name in a text that is read. An entry for each name that a defined program defines or mentions; entries with one
//! function whose name no program uses any more are dropped when the table has doubled since the last sweep.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use brolga_ir::Context;
use brolga_ir::function_name::{MAIN, is_library};
use brolga_linking::machine::GeneratorId;
use brolga_linking::{DylibId, Symbol};
use smallvec::SmallVec;

use super::link_orders::{Exports, LinkOrders, Reexport};
use super::sync::lock;

/// The minimum number of names for a sweep.
const SWEPT: usize = 256;

/// See the file's header.
#[derive(Default)]
pub(crate) struct Owners {
    table: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    /// The functions by the path of their module and their name, in the order of their homonyms.
    functions: BTreeMap<Box<str>, BTreeMap<Box<str>, Homonyms>>,
    orders: LinkOrders,
    /// The number of names.
    count: usize,
    /// The number of names at which unused ones are swept.
    sweep_at: usize,
}

/// The functions of a name: nearly always one.
type Homonyms = SmallVec<[Homonym; 1]>;

/// One of the functions of a name.
#[derive(Default)]
struct Homonym {
    owner: Option<DylibId>,
    /// Whether the name means it only for its owner: it has only hidden methods.
    is_hidden: bool,
    /// The dylibs whose programs have used it, each once.
    users: SmallVec<[DylibId; 1]>,
}

impl Homonym {
    fn add_user(&mut self, dylib: DylibId) {
        if !self.users.contains(&dylib) {
            self.users.push(dylib);
        }
    }
}

/// How a program uses a name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Use {
    /// It defines a method of the function.
    Defines,
    /// It mentions the function.
    Mentions,
}

/// A function that a program uses: the path of its module, its name, and the number of the homonym that it means in the program.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct NameUse {
    pub(crate) module: Box<str>,
    pub(crate) name: Box<str>,
    pub(crate) what: Use,
    pub(crate) count: u32,
    /// Whether the methods that it defines are hidden.
    pub(crate) is_hidden: bool,
}

/// The spelling of a function: `f`, `A.g`.
pub(super) fn spelled<'n>(module: &str, name: &'n str) -> Cow<'n, str> {
    if module == MAIN { Cow::Borrowed(name) } else { Cow::Owned(format!("{module}.{name}")) }
}

impl Table {
    fn sees(&self, dylib: DylibId, other: DylibId, name: &str) -> bool {
        dylib == other || self.orders.of(dylib, name).contains(&other)
    }

    fn homonyms(&self, module: &str, name: &str) -> &[Homonym] {
        self.functions.get(module).and_then(|names| names.get(name)).map_or(&[], |found| found)
    }

    /// The index of the function that a name means in a dylib; the index after the last for a new function.
    fn find(&self, dylib: DylibId, module: &str, name: &str) -> usize {
        let (homonyms, spelled) = (self.homonyms(module, name), spelled(module, name));
        let is_of =
            |known: &Homonym, id: DylibId| known.owner == Some(id) && (id == dylib || !known.is_hidden);
        let order = self.orders.of(dylib, &spelled).into_iter();
        let owned = order.filter_map(|id| homonyms.iter().position(|known| is_of(known, id))).next();
        let free = |is: &dyn Fn(&Homonym) -> bool| {
            homonyms.iter().position(|known| known.owner.is_none() && is(known))
        };
        let is_related =
            |user: &DylibId| self.sees(*user, dylib, &spelled) || self.sees(dylib, *user, &spelled);
        owned
            .or_else(|| free(&|known| known.users.contains(&dylib)))
            .or_else(|| free(&|known| known.users.iter().all(is_related)))
            .unwrap_or(homonyms.len())
    }

    /// The index of the function that a name means in a program with this use; the index after the last for a new function.
    fn meaning(&self, dylib: DylibId, module: &str, name: &str, what: Use) -> usize {
        let (at, homonyms) = (self.find(dylib, module, name), self.homonyms(module, name));
        let spelled = spelled(module, name);
        let is_shared = |known: &Homonym| {
            known.owner.is_none() && !known.users.iter().all(|user| self.sees(*user, dylib, &spelled))
        };
        match what {
            Use::Defines if homonyms.get(at).is_some_and(is_shared) => homonyms.len(),
            _ => at,
        }
    }

    fn note(&mut self, dylib: DylibId, named: &NameUse) {
        let homonyms = self.homonyms_mut(&named.module, &named.name);
        let at = named.count as usize;
        // Only the first homonym of the library's names is noted before.
        homonyms.resize_with(homonyms.len().max(at + 1), Homonym::default);
        homonyms[at].add_user(dylib);
        if named.what == Use::Defines && !is_library(&named.module) {
            let homonym = &mut homonyms[at];
            homonym.is_hidden = named.is_hidden && (homonym.owner.is_none() || homonym.is_hidden);
            homonym.owner.get_or_insert(dylib);
        }
    }

    fn homonyms_mut(&mut self, module: &str, name: &str) -> &mut Homonyms {
        let names = self.functions.entry(module.into()).or_default();
        self.count += usize::from(!names.contains_key(name));
        names.entry(name.into()).or_default()
    }
}

impl Owners {
    /// Sets the link order of a dylib.
    pub(crate) fn set_order(&self, dylib: DylibId, order: impl IntoIterator<Item = DylibId>) {
        lock(&self.table).orders.set(dylib, order);
    }

    /// Adds a re-export of a dylib.
    pub(super) fn reexport(&self, dylib: DylibId, reexport: Reexport) {
        lock(&self.table).orders.add_reexport(dylib, reexport);
    }

    /// Ends the re-export with this symbol.
    pub(super) fn end_reexport(&self, dylib: DylibId, symbol: Symbol) {
        lock(&self.table).orders.remove_reexport(dylib, symbol);
    }

    /// The symbols and generators of a dylib's re-exports of another one.
    pub(super) fn reexports(&self, dylib: DylibId, from: DylibId) -> Vec<(Symbol, GeneratorId)> {
        lock(&self.table).orders.reexports(dylib, from)
    }

    /// The re-exports of a dylib: the other dylibs, and the names.
    pub(super) fn reexported(&self, dylib: DylibId) -> Vec<(DylibId, Arc<Exports>)> {
        lock(&self.table).orders.reexported(dylib)
    }

    /// Whether a dylib re-exports anything.
    pub(super) fn has_reexports(&self) -> bool {
        lock(&self.table).orders.has_reexports()
    }

    /// The dylibs in which a dylib looks up a name, itself first.
    pub(crate) fn order(&self, dylib: DylibId, name: &str) -> Vec<DylibId> {
        lock(&self.table).orders.of(dylib, name)
    }

    /// The dylibs in which a name is looked up along a link order.
    pub(super) fn along(&self, links: &[DylibId], name: &str) -> Vec<DylibId> {
        lock(&self.table).orders.along(links, name)
    }

    /// Whether a dylib looks up any name in another one.
    pub(super) fn sees(&self, dylib: DylibId, other: DylibId) -> bool {
        lock(&self.table).orders.sees(dylib, other)
    }

    /// The dylibs in which any name is looked up along a link order.
    pub(super) fn reached(&self, links: &[DylibId]) -> Vec<DylibId> {
        lock(&self.table).orders.reached(links)
    }

    /// The number of the homonym that a name means in a program with this use.
    pub(crate) fn meaning(&self, dylib: DylibId, module: &str, name: &str, what: Use) -> u32 {
        lock(&self.table).meaning(dylib, module, name, what) as u32
    }

    /// Whether the names still mean the functions recorded for a program of a dylib.
    pub(crate) fn mean(&self, dylib: DylibId, names: &[NameUse]) -> bool {
        let table = lock(&self.table);
        let is_meant = |named: &NameUse| {
            let NameUse { module, name, what, count, .. } = named;
            is_library(module) || table.meaning(dylib, module, name, *what) == *count as usize
        };
        names.iter().all(is_meant)
    }

    /// Notes the uses of functions by a program of a dylib that takes effect.
    pub(crate) fn note(&self, dylib: DylibId, names: &[NameUse]) {
        let mut table = lock(&self.table);
        names.iter().for_each(|named| table.note(dylib, named));
    }

    /// The dylibs that may have methods of a function, by the path of its module, its name, and the number of the homonym.
    pub(crate) fn users(&self, (module, name): (&str, &str), count: u32) -> SmallVec<[DylibId; 1]> {
        let table = lock(&self.table);
        table
            .homonyms(module, name)
            .get(count as usize)
            .map_or_else(SmallVec::new, |known| known.users.clone())
    }

    /// Removes a closed dylib from the table. Its functions have no methods, and the next dylib that defines one becomes its owner.
    pub(crate) fn forget(&self, dylib: DylibId) {
        let mut table = lock(&self.table);
        table.orders.forget(dylib);
        for homonym in table.functions.values_mut().flat_map(BTreeMap::values_mut).flatten() {
            homonym.owner = homonym.owner.filter(|owner| *owner != dylib);
            homonym.users.retain(|user| *user != dylib);
        }
    }

    /// Drops unused names, if their number has doubled since the last sweep.
    pub(crate) fn sweep(&self, cx: &Context) {
        let mut table = lock(&self.table);
        if table.count < table.sweep_at.max(SWEPT) {
            return;
        }
        // A separate view, so that looking up names holds none.
        let view = cx.view();
        table.functions.retain(|_, names| {
            names.retain(|name, homonyms| homonyms.len() > 1 || view.names.find(name).is_some());
            !names.is_empty()
        });
        table.count = table.functions.values().map(BTreeMap::len).sum();
        table.sweep_at = 2 * table.count;
    }
}
