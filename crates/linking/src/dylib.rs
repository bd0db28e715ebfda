//! Dylibs and trackers, as handles.
//!
//! A handle does not keep a dylib open. Operations on a closed one are errors.

use std::sync::{Arc, Weak};

use crate::board::Address;
use crate::error::{Error, Name};
use crate::flags::{Link, LookupKind, Priority, Sees, SymbolFlags, Until};
use crate::generator::Generator;
use crate::ids::{DylibId, Label, Symbol};
use crate::lookup::Lookup;
use crate::machine::{
    self, AddGenerator, AddLinks, Alias, Close, Contents, CreateDylib, CreateTracker, Define, Dependants,
    GeneratorId, How, LinkOrder, RemoveGenerator, RemoveLink, RemoveSymbols, RemoveTracker, SetLinks,
    SymbolFacts, TrackerId, Transfer, WaitsFor,
};
use crate::session::{Definer, Later, Live, Session, Shown, Unit, WeakSession, required};
use crate::target::Target;

/// A dylib of a session.
pub struct Dylib<T: Target> {
    session: Session<T>,
    id: DylibId,
    /// The dylib's own tracker.
    tracker: TrackerId<Live<T>>,
    /// The tracker of definitions made through this handle; `None` for the dylib's own.
    tracked: Option<TrackerId<Live<T>>>,
    name: Arc<str>,
    shown: Arc<Shown<T>>,
}

impl<T: Target> Clone for Dylib<T> {
    fn clone(&self) -> Self {
        Dylib {
            session: self.session.clone(),
            id: self.id,
            tracker: self.tracker,
            tracked: self.tracked,
            name: Arc::clone(&self.name),
            shown: Arc::clone(&self.shown),
        }
    }
}

/// A dylib, without keeping its session alive: for objects owned by the session itself.
pub struct WeakDylib<T: Target> {
    session: WeakSession<T>,
    id: DylibId,
    tracker: TrackerId<Live<T>>,
    tracked: Option<TrackerId<Live<T>>>,
    name: Arc<str>,
    shown: Weak<Shown<T>>,
}

impl<T: Target> WeakDylib<T> {
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The dylib.
    ///
    /// # Errors
    /// The session no longer exists.
    pub fn upgrade(&self) -> Result<Dylib<T>, Error> {
        let (session, shown) = (self.session.upgrade(), self.shown.upgrade());
        let (session, shown) = session.zip(shown).ok_or(Error::SessionEnded)?;
        let dylib = Dylib::new(session, self.id, self.tracker, Arc::clone(&self.name), shown);
        Ok(Dylib { tracked: self.tracked, ..dylib })
    }
}

/// A fact about symbols of a dylib.
pub enum Fact<T: Target> {
    /// Whether a symbol is defined.
    Defined(Symbol, bool),
    /// The result of [`Dylib::ready`] for a symbol.
    Ready(Symbol, Option<T::Address>),
}

/// Definitions, and what takes effect in the same step; parts about missing symbols are ignored.
pub struct Change<T: Target> {
    /// The units to define.
    pub units: Vec<Unit<T>>,
    /// Whether to replace existing definitions.
    pub replace: bool,
    /// The facts it was prepared from: the change is made only if all of them hold.
    pub expected: Vec<Fact<T>>,
    /// Symbols no longer in use. Symbols being materialized stay.
    pub unused: Vec<Symbol>,
    /// Symbols that stay and get other parts; they get the tracker of the new definitions, and these flags.
    pub stay: Vec<(Symbol, SymbolFlags)>,
    /// Symbols of other definitions, which are redefined or get other parts, and keep their trackers.
    pub others: Vec<Symbol>,
}

impl<T: Target> Dylib<T> {
    pub(crate) fn new(
        session: Session<T>,
        id: DylibId,
        tracker: TrackerId<Live<T>>,
        name: Arc<str>,
        shown: Arc<Shown<T>>,
    ) -> Self {
        Dylib { session, id, tracker, tracked: None, name, shown }
    }

    /// A handle that does not keep the session alive.
    #[must_use]
    pub fn downgrade(&self) -> WeakDylib<T> {
        let (session, shown) = (self.session.downgrade(), Arc::downgrade(&self.shown));
        let (id, tracker, tracked, name) = (self.id, self.tracker, self.tracked, Arc::clone(&self.name));
        WeakDylib { session, id, tracker, tracked, name, shown }
    }

    /// Its identity.
    #[must_use]
    pub fn id(&self) -> DylibId {
        self.id
    }

    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    #[must_use]
    pub fn session(&self) -> &Session<T> {
        &self.session
    }

    #[must_use]
    pub fn label(&self, symbol: Symbol) -> Label {
        Label { dylib: self.id, symbol }
    }

    /// The dylib as a place to search for exported symbols.
    #[must_use]
    pub fn exported(&self) -> Link {
        Link { dylib: self.id, sees: Sees::Exported }
    }

    /// The dylib as a place to search for all symbols.
    #[must_use]
    pub fn all(&self) -> Link {
        Link { dylib: self.id, sees: Sees::All }
    }

    /// The address of a ready symbol of the dylib, hidden or not. Takes no lock and starts nothing. The user
    /// of the address must hold something that keeps code alive from before this call.
    #[must_use]
    pub fn ready(&self, symbol: Symbol) -> Option<T::Address> {
        self.shown.board.get(symbol).map(T::Address::from_word)
    }

    /// Whether it is the first one of its link order, so that a symbol that is [ready](Dylib::ready) here is
    /// the one that a lookup finds. Takes no lock, unless the embedder has set another order.
    #[must_use]
    pub fn is_first(&self) -> bool {
        let leads = |links: Vec<Link>| links.first().is_some_and(|link| link.dylib == self.id);
        self.shown.reordered.get().is_none() || self.links().is_ok_and(leads)
    }

    /// Looks symbols up in its link order, as a program does at run time.
    pub fn lookup(&self, symbols: impl IntoIterator<Item = Symbol>) -> Lookup<T> {
        // A closed dylib is searched nevertheless: the lookup reports that it is closed.
        let order = self.links().unwrap_or_else(|_| vec![self.all()]);
        let wants = required(symbols);
        self.session.lookup_with(order, wants, Until::Ready, LookupKind::Dynamic, Priority::Blocking)
    }

    /// The address of a symbol: immediately if it is ready in this dylib and that is the first one in its
    /// link order, otherwise by [`Dylib::lookup`].
    ///
    /// # Errors
    /// As for [`Lookup::wait`].
    pub fn address(&self, name: &str) -> Result<T::Address, Error> {
        let known = self.session.names().find(name);
        if let Some(address) = known.and_then(|symbol| self.ready(symbol)).filter(|_| self.is_first()) {
            return Ok(address);
        }
        let held = self.session.symbol(name);
        let found = self.lookup([held.symbol()]).wait_one()?;
        found.address.ok_or_else(|| Error::NotFound { symbols: vec![self.session.name(found.label)] })
    }

    /// Defines a unit, tracked by the dylib itself.
    ///
    /// # Errors
    /// Symbols are already defined; the dylib is closed; the session has ended.
    pub fn define(&self, unit: impl Into<Unit<T>>) -> Result<(), Error> {
        self.define_all(vec![unit.into()], None)
    }

    /// Defines units, all or none.
    ///
    /// # Errors
    /// As for [`Dylib::define`]; also if the tracker was removed or belongs to another dylib.
    pub fn define_all(&self, units: Vec<Unit<T>>, tracker: Option<&Tracker<T>>) -> Result<(), Error> {
        self.put(units, tracker, How::Define)
    }

    /// Defines units, replacing existing definitions: names lead to the new definitions from now on; ready
    /// code that uses the old ones keeps them.
    ///
    /// # Errors
    /// As for [`Dylib::define_all`], but symbols being materialized are busy, and others are not duplicates.
    pub fn redefine(&self, units: Vec<Unit<T>>, tracker: Option<&Tracker<T>>) -> Result<(), Error> {
        self.put(units, tracker, How::Replace)
    }

    fn put(&self, units: Vec<Unit<T>>, tracker: Option<&Tracker<T>>, how: How) -> Result<(), Error> {
        let (tracker, begun) = (tracker.map(|tracker| tracker.id).or(self.tracked), self.session.is_within());
        let define = Define { dylib: self.id, tracker, units, how, begun };
        let defined = self.session.step(define);
        defined.map_err(|(error, _)| error)
    }

    /// Makes a change, if its expected facts hold; the first result says whether it was made. Its
    /// consequences take place when the second result is dropped: so the caller may hold a lock under which
    /// its own tables change together with these.
    ///
    /// # Errors
    /// As for [`Dylib::define_all`] or, if it replaces, [`Dylib::redefine`]. Then nothing has changed.
    pub fn change(&self, change: Change<T>) -> (Result<bool, Error>, Later<T>) {
        let Change { units, replace, expected, unused, stay, others } = change;
        let (tracker, begun) = (self.tracked, self.session.is_within());
        let how = if replace { How::Replace } else { How::Define };
        let define = Define { dylib: self.id, tracker, units, how, begun };
        let change = machine::Change { define, unused, stay, others };
        self.session.step_if(change, |is_defined| {
            expected.iter().all(|fact| match *fact {
                Fact::Defined(symbol, is_so) => is_defined(self.label(symbol)) == is_so,
                // Boards are written under the lock.
                Fact::Ready(symbol, address) => {
                    self.shown.board.get(symbol) == address.map(T::Address::to_word)
                }
            })
        })
    }

    /// Defines symbols that have the addresses of others, all or none.
    ///
    /// # Errors
    /// As for [`Dylib::define`].
    pub fn alias(&self, aliases: impl IntoIterator<Item = Alias>) -> Result<(), Error> {
        self.define_all(aliases.into_iter().map(Unit::<T>::from).collect(), None)
    }

    /// Its link order.
    ///
    /// # Errors
    /// The dylib is closed.
    pub fn links(&self) -> Result<Vec<Link>, Error> {
        self.session.read(LinkOrder::Own(self.id))
    }

    /// Sets its link order, which applies to lookups from now on.
    ///
    /// # Errors
    /// The dylib is closed.
    pub fn set_links(&self, links: Vec<Link>) -> Result<(), Error> {
        if links.first().is_none_or(|link| link.dylib != self.id) {
            let _ = self.shown.reordered.set(());
        }
        self.session.step(SetLinks { dylib: self.id, links })
    }

    /// Appends the links that are not yet in its link order.
    ///
    /// # Errors
    /// The dylib is closed.
    pub fn add_links(&self, links: Vec<Link>) -> Result<(), Error> {
        self.session.step(AddLinks { dylib: self.id, links, before: None })
    }

    /// Like [`Dylib::add_links`], but inserts before a dylib that must stay last, if that is in the order.
    ///
    /// # Errors
    /// The dylib is closed.
    pub fn add_links_before(&self, links: Vec<Link>, last: DylibId) -> Result<(), Error> {
        self.session.step(AddLinks { dylib: self.id, links, before: Some(last) })
    }

    /// Removes a dylib from its link order.
    ///
    /// # Errors
    /// The dylib is closed.
    pub fn remove_link(&self, linked: DylibId) -> Result<(), Error> {
        if linked == self.id {
            let _ = self.shown.reordered.set(());
        }
        self.session.step(RemoveLink { dylib: self.id, linked })
    }

    /// Appends a generator.
    ///
    /// # Errors
    /// The dylib is closed.
    pub fn add_generator(&self, generator: impl Generator<T> + 'static) -> Result<GeneratorId, Error> {
        let generator: Arc<dyn Definer<T>> = Arc::new(generator);
        let begun = self.session.is_within();
        let add = AddGenerator { dylib: self.id, generator, tracker: self.tracked, begun };
        self.session.step(add).map_err(|(error, _)| error)
    }

    /// Removes a generator. What it has defined stays.
    ///
    /// # Errors
    /// It does not exist; the dylib is closed.
    pub fn remove_generator(&self, generator: GeneratorId) -> Result<(), Error> {
        self.session.step(RemoveGenerator { dylib: self.id, generator })
    }

    /// A handle to the same dylib: definitions made through it are tracked by `tracker`, unless specified
    /// otherwise.
    #[must_use]
    pub fn tracked_by(&self, tracker: &Tracker<T>) -> Dylib<T> {
        Dylib { tracked: Some(tracker.id), ..self.clone() }
    }

    /// A tracker for definitions in this dylib.
    ///
    /// # Errors
    /// The dylib is closed.
    pub fn create_tracker(&self, on_drop: OnDrop) -> Result<Tracker<T>, Error> {
        let begun = self.session.is_within();
        let id = self.session.step(CreateTracker { dylib: self.id, begun })?;
        Ok(Tracker { session: self.session.clone(), id, on_drop })
    }

    /// Removes names: all or none. See [`RemoveSymbols`].
    ///
    /// # Errors
    /// Some are missing, or being materialized.
    pub fn remove(&self, symbols: impl IntoIterator<Item = Symbol>) -> Result<(), Error> {
        self.session.step(RemoveSymbols { dylib: self.id, symbols: symbols.into_iter().collect() })
    }

    /// Removes everything, and all trackers.
    ///
    /// # Errors
    /// The policy refuses.
    pub fn clear(&self, dependants: Dependants) -> Result<(), Error> {
        self.session.step(Close { dylibs: vec![self.id], dependants, stay_open: true })
    }

    /// Removes what the dylib itself tracks.
    ///
    /// # Errors
    /// The policy refuses, or the dylib is closed.
    pub fn remove_untracked(&self, dependants: Dependants) -> Result<(), Error> {
        self.session.step(RemoveTracker { tracker: self.tracker, dependants })
    }

    /// A snapshot of its symbols, in the order of their names.
    ///
    /// # Errors
    /// The dylib is closed.
    pub fn symbols(&self) -> Result<Vec<SymbolFacts>, Error> {
        self.session.step(Contents(self.id))
    }

    /// Symbols that a symbol waits for, all of one unit that is not emitted. Empty if it is ready or failed.
    #[must_use]
    pub fn waits_for(&self, symbol: Symbol) -> Vec<Name> {
        let labels = self.session.step(WaitsFor(self.label(symbol)));
        labels.into_iter().map(|label| self.session.name(label)).collect()
    }
}

/// What happens to a tracker's definitions when its handle is dropped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OnDrop {
    /// They stay, tracked by the dylib.
    Keep,
    /// They are removed; what ready code uses stays until it is no longer used.
    Remove,
}

/// Definitions that are removed together.
pub struct Tracker<T: Target> {
    session: Session<T>,
    id: TrackerId<Live<T>>,
    on_drop: OnDrop,
}

impl<T: Target> Tracker<T> {
    /// Removes what it tracks, and the tracker.
    ///
    /// # Errors
    /// The policy refuses, and nothing was removed; or it was already removed.
    pub fn remove(&self, dependants: Dependants) -> Result<(), Error> {
        self.session.step(RemoveTracker { tracker: self.id, dependants })
    }

    /// Moves what it tracks to `to`, and removes the tracker. Does nothing if they are the same.
    ///
    /// # Errors
    /// One of them was already removed, or they belong to different dylibs.
    pub fn transfer_to(&self, to: &Tracker<T>) -> Result<(), Error> {
        self.session.step(Transfer { from: self.id, to: Some(to.id) })
    }
}

impl<T: Target> Drop for Tracker<T> {
    fn drop(&mut self) {
        // It may have been removed already: then there is nothing to do.
        let _ = match self.on_drop {
            OnDrop::Keep => self.session.step(Transfer { from: self.id, to: None }),
            OnDrop::Remove => {
                self.session.step(RemoveTracker { tracker: self.id, dependants: Dependants::Keep })
            }
        };
    }
}

impl<T: Target> Session<T> {
    /// Makes a dylib, which is linked against itself.
    ///
    /// # Errors
    /// The name is taken, or the session has ended.
    pub fn create_dylib(&self, name: &str) -> Result<Dylib<T>, Error> {
        let name: Arc<str> = name.into();
        let shown = Arc::new(Shown::new());
        let (board, begun) = (Arc::clone(&shown), self.is_within());
        let (id, tracker) = self.step(CreateDylib { name: Arc::clone(&name), board, begun })?;
        Ok(Dylib::new(self.clone(), id, tracker, name, shown))
    }

    /// Dylibs reached by link orders from `roots`, in pre-order, without duplicates.
    ///
    /// # Errors
    /// One of them is closed.
    pub fn reached(&self, roots: &[&Dylib<T>]) -> Result<Vec<DylibId>, Error> {
        let roots = roots.iter().map(|dylib| dylib.id()).collect();
        Ok(self.read(LinkOrder::Reached(roots))?.into_iter().map(|link| link.dylib).collect())
    }

    /// Removes everything from dylibs and closes them, all or none.
    ///
    /// # Errors
    /// The policy refuses.
    pub fn close_dylibs(&self, dylibs: &[&Dylib<T>], dependants: Dependants) -> Result<(), Error> {
        let dylibs = dylibs.iter().map(|dylib| dylib.id()).collect();
        self.step(Close { dylibs, dependants, stay_open: false })
    }
}
