//! Dylibs: links, generators, trackers, initialisers.
//!
//! **Closed dylibs.** A closed dylib leaves its name, for messages (`places.rs`). Link orders ignore its id,
//! and drop it when something is appended to them. Nothing walks over closed dylibs.
//!
//! **Links.** A new dylib's link order is the dylib itself, all symbols. Walks over link orders visit each
//! dylib once, so cycles end.
//!
//! **Initialisers** are symbols with side effects only, one for each unit that has any. Opening a dylib, as
//! `dlopen` does, plans the initialisers of it and of everything that it is linked against, dependences
//! first, each once; planning again plans only those added since (`dlupdate`). Releasing the last opening
//! (`dlclose`) names the opened dylibs that no open dylib reaches any more, dependants first; their
//! initialisers are due again when they are deinitialised. A removed or replaced unit takes its record with
//! it. A failed one keeps it, so each opening reports the failure until then: no initialiser is skipped
//! silently. If it can be made again ([`Emit::again`](super::Emit::again)), each opening does so: its
//! dependences may have been redefined.
//!
//! ```text
//!   due ──planned──► busy ──initialized──► done ──released──► busy ──deinitialised──► due
//!    ▲                └── failed ──┐
//!    └─────────────────────────────┘
//! ```
//!
//! A busy dylib belongs to a thread. A plan stops before dylibs that another thread is busy with, so nothing
//! is planned whose dependences have not run; the opening thread waits for that thread, with nothing planned,
//! and plans again (`opening.rs` of the shell). `waits.rs` records the waits between threads: an opening that
//! would close a cycle is refused. Dylibs that the thread itself is busy with are skipped: an initialiser may
//! open what is being opened. A dylib that is being deinitialised belongs to a thread as a whole, even if it
//! has no initialisers.
//!
//! Cost: a plan visits every initialiser of the dylibs that it reaches; each version in an `Initialized` is
//! searched in the list of its dylib.

use std::sync::Arc;
use std::thread::ThreadId;

use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

use super::{
    Doer, Dylib, Event, Garbage, Generating, GeneratorId, Machine, Parts, Read, State, Tracker, TrackerId,
    UnitId, Version,
};
use crate::error::Error;
use crate::flags::{Link, Sees};
use crate::ids::{DylibId, Label};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Init {
    Due,
    Busy(ThreadId),
    Done,
}

/// The record of a unit's initialisers.
pub(super) struct Initializer<P: Parts> {
    pub(super) version: Version<P>,
    pub(super) priority: i32,
    state: Init,
}

impl<P: Parts> Initializer<P> {
    pub(super) fn new(version: Version<P>, priority: i32) -> Self {
        Initializer { version, priority, state: Init::Due }
    }

    pub(super) fn is_busy(&self, by: ThreadId) -> bool {
        self.state == Init::Busy(by)
    }

    pub(super) fn has_run(&self) -> bool {
        self.state == Init::Done
    }
}

/// A new dylib, open, linked against itself.
pub struct CreateDylib<P: Parts> {
    /// Its name, unique among open dylibs.
    pub name: Arc<str>,
    /// Where to publish its ready symbols.
    pub board: P::Board,
    /// Whether it belongs to work begun before the session was stopped, or to its end.
    pub begun: bool,
}

impl<P: Parts> Event<P> for CreateDylib<P> {
    /// The dylib and its own tracker.
    type Reply = Result<(DylibId, TrackerId<P>), Error>;

    fn apply(self, machine: &mut Machine<P>) -> Self::Reply {
        if machine.refuses(self.begun) {
            return Err(Error::SessionEnded);
        }
        if machine.by_name.contains_key(&self.name) {
            return Err(Error::DuplicateDylib { dylib: self.name });
        }
        let (trackers, by_name) = (&mut machine.trackers, Arc::clone(&self.name));
        let id = machine.dylibs.insert(|id, serial| {
            Box::new(Dylib {
                name: self.name,
                board: self.board,
                serial,
                symbols: FxHashMap::default(),
                links: vec![Link { dylib: id, sees: Sees::All }],
                generators: Vec::new(),
                default_tracker: trackers.insert(Tracker { dylib: id, units: Default::default() }),
                initializers: Vec::new(),
                opens: 0,
                was_opened: false,
                closing: Vec::new(),
            })
        })?;
        machine.by_name.insert(by_name, id);
        let default_tracker = machine.open(id)?.default_tracker;
        Ok((id, default_tracker))
    }
}

/// Makes a separate tracker for definitions in a dylib.
pub struct CreateTracker {
    pub dylib: DylibId,
    /// Whether it belongs to work begun before the session was stopped, or to its end.
    pub begun: bool,
}

impl<P: Parts> Event<P> for CreateTracker {
    type Reply = Result<TrackerId<P>, Error>;

    fn apply(self, machine: &mut Machine<P>) -> Self::Reply {
        machine.accepting(self.dylib, self.begun)?;
        Ok(machine.trackers.insert(Tracker { dylib: self.dylib, units: Default::default() }))
    }
}

/// Sets a dylib's link order. It applies to lookups from now on, including those by units that are already
/// defined.
pub struct SetLinks {
    pub dylib: DylibId,
    /// The order.
    pub links: Vec<Link>,
}

impl<P: Parts> Event<P> for SetLinks {
    type Reply = Result<(), Error>;

    fn apply(self, machine: &mut Machine<P>) -> Self::Reply {
        machine.check_links(&self.links)?;
        machine.open(self.dylib)?.links = self.links;
        Ok(())
    }
}

/// Appends the links that are not yet in a dylib's link order.
pub struct AddLinks {
    pub dylib: DylibId,
    /// The links to append.
    pub links: Vec<Link>,
    /// The dylib that stays after them, if it is in the order: a library that yields to all others.
    pub before: Option<DylibId>,
}

impl<P: Parts> Event<P> for AddLinks {
    type Reply = Result<(), Error>;

    fn apply(self, machine: &mut Machine<P>) -> Self::Reply {
        machine.check_links(&self.links)?;
        let mut known = std::mem::take(&mut machine.open(self.dylib)?.links);
        machine.sweep(&mut known);
        let is_last = |link: &Link| Some(link.dylib) == self.before;
        let mut at = known.iter().position(is_last).unwrap_or(known.len());
        for link in self.links {
            if !known.contains(&link) {
                known.insert(at, link);
                at += 1;
            }
        }
        machine.open(self.dylib)?.links = known;
        Ok(())
    }
}

/// Removes a dylib from another's link order.
pub struct RemoveLink {
    /// The dylib whose order changes.
    pub dylib: DylibId,
    /// The link to remove.
    pub linked: DylibId,
}

impl<P: Parts> Event<P> for RemoveLink {
    type Reply = Result<(), Error>;

    fn apply(self, machine: &mut Machine<P>) -> Self::Reply {
        machine.check_session("dylib", self.linked.session)?;
        machine.open(self.dylib)?.links.retain(|link| link.dylib != self.linked);
        Ok(())
    }
}

/// Queries link orders. Closed dylibs are in none.
pub enum LinkOrder {
    /// The order of one dylib.
    Own(DylibId),
    /// All dylibs reached from these, in pre-order, without duplicates.
    Reached(Vec<DylibId>),
}

impl<P: Parts> Read<P> for LinkOrder {
    type Reply = Result<Vec<Link>, Error>;

    fn read(self, machine: &Machine<P>) -> Self::Reply {
        match self {
            LinkOrder::Own(dylib) => {
                let mut links = machine.dylibs.get(dylib)?.links.clone();
                machine.sweep(&mut links);
                Ok(links)
            }
            LinkOrder::Reached(roots) => {
                let (pre, _) = machine.walk(roots)?;
                Ok(pre.into_iter().map(|dylib| Link { dylib, sees: Sees::Exported }).collect())
            }
        }
    }
}

/// Appends a generator to a dylib's generators.
pub struct AddGenerator<P: Parts> {
    pub dylib: DylibId,
    pub generator: P::Generator,
    /// The tracker with which it is removed; `None` for the dylib's own.
    pub tracker: Option<TrackerId<P>>,
    /// Whether it belongs to work begun before the session was stopped, or to its end.
    pub begun: bool,
}

impl<P: Parts> Event<P> for AddGenerator<P> {
    type Reply = Result<GeneratorId, (Error, P::Generator)>;

    fn apply(self, machine: &mut Machine<P>) -> Self::Reply {
        let id = GeneratorId(machine.next_generator);
        let tracker = machine.tracker_for(self.dylib, self.tracker, self.begun);
        match tracker.and_then(|tracker| Ok((tracker, machine.dylibs.get_mut(self.dylib)?))) {
            Err(error) => return Err((error, self.generator)),
            Ok((tracker, dylib)) => {
                dylib.generators.push(Generating { id, generator: self.generator, tracker });
            }
        }
        machine.next_generator += 1;
        Ok(id)
    }
}

/// Removes a generator from its dylib. What it has defined stays.
pub struct RemoveGenerator {
    pub dylib: DylibId,
    pub generator: GeneratorId,
}

impl<P: Parts> Event<P> for RemoveGenerator {
    type Reply = Result<(), Error>;

    fn apply(self, machine: &mut Machine<P>) -> Self::Reply {
        let dylib = machine.open(self.dylib)?;
        let at = dylib.generators.iter().position(|known| known.id == self.generator);
        let gone = dylib.generators.remove(at.ok_or(Error::Removed)?);
        machine.drop_generators([gone]);
        Ok(())
    }
}

impl<P: Parts> Machine<P> {
    /// Stops using the generators; lookups that wait for their answers continue as if they did not exist.
    pub(super) fn drop_generators(&mut self, gone: impl IntoIterator<Item = Generating<P>>) {
        for Generating { id, generator, .. } in gone {
            let waiting = self.requests.iter().filter(|(_, request)| request.generator == id);
            let waiting: Vec<_> = waiting.map(|(request, _)| request).collect();
            waiting.into_iter().for_each(|request| self.generated(request, &Ok(())));
            self.effects.garbage.push(Garbage::Generator(generator));
        }
    }
}

/// Plans the initialisers of a dylib and of everything that it is linked against.
pub struct Initializers {
    pub dylib: DylibId,
    /// Whether this is an opening, to be released; otherwise only new ones are planned.
    pub open: bool,
    /// The thread that will run them.
    pub by: ThreadId,
    /// The work of that thread.
    pub doers: SmallVec<[Doer; 2]>,
}

/// The next step of an opening.
pub enum Plan<P: Parts> {
    /// There are initialisers to run.
    Run {
        /// They are looked up, until ready, and run in this order.
        run: Vec<(Label, Version<P>)>,
        /// Whether another thread is busy with what comes next: the rest is planned afterwards.
        more: bool,
    },
    /// Another thread is busy with the next initialiser or dylib. The tables record that this thread waits
    /// for it, until the next [`Initialized`] of that thread or the next plan of this one.
    Wait,
    /// Like [`Plan::Wait`], but that thread waits for this one, possibly through others. The label is the
    /// initialiser's; `None` if that thread is deinitialising a dylib.
    Never(Option<Label>),
    /// No initialiser of these dylibs is due, and no other thread is busy with one, or with a dylib.
    Done,
}

impl<P: Parts> Event<P> for Initializers {
    type Reply = Result<Plan<P>, Error>;

    fn apply(self, machine: &mut Machine<P>) -> Self::Reply {
        machine.unpark(self.by);
        if machine.refuses(machine.under_way.contains_key(&self.by)) {
            return Err(Error::SessionEnded);
        }
        let (_, post) = machine.walk([self.dylib])?;
        if self.open {
            machine.open(self.dylib)?.opens += 1;
            machine.opened.insert(self.dylib);
        }
        post.iter().for_each(|id| machine.promise_initializers_again(*id));
        let (mut plan, mut behind) = (Vec::new(), None);
        'order: for id in post {
            let dylib = machine.open(id)?;
            if let Some(other) = dylib.closing.iter().copied().find(|&other| other != self.by) {
                behind = Some((None, other));
                break;
            }
            for initializer in &mut dylib.initializers {
                match initializer.state {
                    Init::Due => {
                        initializer.state = Init::Busy(self.by);
                        plan.push(initializer.version);
                    }
                    Init::Busy(other) if other != self.by => {
                        behind = Some((Some(initializer.version), other));
                        break 'order;
                    }
                    Init::Busy(_) | Init::Done => {}
                }
            }
        }
        let label = |version: Version<P>| Some((machine.entries.get(version)?.label, version));
        let run: Vec<_> = plan.into_iter().filter_map(label).collect();
        let behind = behind.map(|(version, other)| (version.and_then(label), other));
        match behind {
            behind if !run.is_empty() => Ok(Plan::Run { run, more: behind.is_some() }),
            None => Ok(Plan::Done),
            Some((_, other)) if machine.park(self.by, self.doers, other) => Ok(Plan::Wait),
            Some((what, _)) => Ok(Plan::Never(what.map(|(label, _)| label))),
        }
    }
}

/// Planned initialisers have run, or have not; or their effects were undone.
pub struct Initialized<P: Parts> {
    pub versions: Vec<Version<P>>,
    /// Whether they have run; otherwise they are due again.
    pub done: bool,
    /// The dylib, if it was deinitialised as a whole: others may open it, if no other thread is
    /// deinitialising it.
    pub closed: Option<DylibId>,
    /// The thread that planned it.
    pub by: ThreadId,
}

impl<P: Parts> Event<P> for Initialized<P> {
    type Reply = ();

    fn apply(self, machine: &mut Machine<P>) {
        machine.unpark_behind(self.by);
        if let Some(dylib) = self.closed.and_then(|closed| machine.open(closed).ok()) {
            let known = dylib.closing.iter().position(|&by| by == self.by);
            known.map(|at| dylib.closing.swap_remove(at));
        }
        for version in self.versions {
            // A version removed in the meantime has taken its record with it.
            let Some(dylib) = machine.entries.get(version).map(|entry| entry.label.dylib) else { continue };
            let Ok(dylib) = machine.open(dylib) else { continue };
            if let Some(known) = dylib.initializers.iter_mut().find(|known| known.version == version) {
                known.state = if self.done { Init::Done } else { Init::Due };
            }
        }
    }
}

/// Everything that a dylib reaches has been initialised. If it is held open, it must be deinitialised
/// eventually; if its opening was undone in the meantime, now.
pub struct Opened {
    pub dylib: DylibId,
    /// The thread that would deinitialise.
    pub by: ThreadId,
}

impl<P: Parts> Event<P> for Opened {
    type Reply = Result<Vec<Closing<P>>, Error>;

    fn apply(self, machine: &mut Machine<P>) -> Self::Reply {
        if !machine.opened.contains(&self.dylib) {
            return machine.unheld(self.dylib, self.by);
        }
        for id in machine.walk([self.dylib])?.0 {
            machine.open(id)?.was_opened = true;
        }
        Ok(Vec::new())
    }
}

/// Undoes one opening of a dylib.
pub struct Release {
    pub dylib: DylibId,
    /// The thread that will deinitialise the result.
    pub by: ThreadId,
}

/// A dylib to be deinitialised, with its initialisers that have run: afterwards they are due again
/// ([`Initialized`]).
pub struct Closing<P: Parts> {
    pub dylib: DylibId,
    /// Its initialisers.
    pub versions: Vec<Version<P>>,
}

impl<P: Parts> Event<P> for Release {
    /// Dylibs that were opened and that no open dylib reaches any more, in the order in which to deinitialise
    /// them.
    type Reply = Result<Vec<Closing<P>>, Error>;

    fn apply(self, machine: &mut Machine<P>) -> Self::Reply {
        let dylib = machine.open(self.dylib)?;
        dylib.opens = dylib.opens.checked_sub(1).ok_or(Error::Unknown { what: "opening" })?;
        if dylib.opens == 0 {
            machine.opened.remove(&self.dylib);
        }
        machine.unheld(self.dylib, self.by)
    }
}

impl<P: Parts> Machine<P> {
    /// Failed initialisers that are due are promised again, if possible.
    fn promise_initializers_again(&mut self, dylib: DylibId) {
        let known = self.dylibs.get(dylib).into_iter().flat_map(|dylib| &dylib.initializers);
        let due = known.filter(|known| known.state == Init::Due);
        let failed: Vec<UnitId<P>> = due
            .filter_map(|known| self.entries.get(known.version))
            .filter(|entry| matches!(entry.state, State::Failed(_)))
            .map(|entry| entry.unit)
            .collect();
        for unit in failed {
            if let Some(again) = self.units.get_mut(unit).and_then(|unit| unit.again.take()) {
                self.promise_again(unit, again, true);
            }
        }
    }

    /// The dylibs reached by `root` but by no open dylib, if they were opened or some of their initialisers
    /// have run.
    fn unheld(&mut self, root: DylibId, by: ThreadId) -> Result<Vec<Closing<P>>, Error> {
        let held: FxHashSet<DylibId> = self.walk(self.opened.iter().copied())?.0.into_iter().collect();
        let (_, reached) = self.walk([root])?;
        let mut closing = Vec::new();
        for id in reached.into_iter().rev().filter(|id| !held.contains(id)) {
            let dylib = self.open(id)?;
            let was_opened = std::mem::take(&mut dylib.was_opened);
            let mut versions = Vec::new();
            for known in dylib.initializers.iter_mut().filter(|known| known.state == Init::Done) {
                known.state = Init::Busy(by);
                versions.push(known.version);
            }
            if was_opened || !versions.is_empty() {
                dylib.closing.push(by);
                closing.push(Closing { dylib: id, versions });
            }
        }
        Ok(closing)
    }

    /// Removes closed dylibs from a link order.
    fn sweep(&self, links: &mut Vec<Link>) {
        links.retain(|link| !matches!(self.dylibs.get(link.dylib), Err(Error::DylibClosed { .. })));
    }

    /// The dylibs reached by link orders from `roots`, in pre-order and in post-order. Closed dylibs below
    /// the roots are skipped; a closed root is an error.
    fn walk(&self, roots: impl IntoIterator<Item = DylibId>) -> Result<(Vec<DylibId>, Vec<DylibId>), Error> {
        let (mut pre, mut post) = (Vec::new(), Vec::new());
        let mut seen = FxHashSet::default();
        for root in roots {
            let mut path: Vec<(DylibId, usize)> = Vec::new();
            if seen.insert(root) {
                self.dylibs.get(root)?;
                pre.push(root);
                path.push((root, 0));
            }
            while let Some((at, next)) = path.last_mut() {
                let (at, index) = (*at, *next);
                *next += 1;
                match self.dylibs.get(at)?.links.get(index) {
                    None => {
                        post.push(at);
                        path.pop();
                    }
                    Some(&Link { dylib, .. }) => {
                        if !seen.insert(dylib) {
                            continue;
                        }
                        match self.dylibs.get(dylib) {
                            Ok(_) => {
                                pre.push(dylib);
                                path.push((dylib, 0));
                            }
                            Err(Error::DylibClosed { .. }) => {}
                            Err(error) => return Err(error),
                        }
                    }
                }
            }
        }
        Ok((pre, post))
    }
}
