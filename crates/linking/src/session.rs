//! The session: one lock around the machine, and what is done when it is released.
//!
//! ```text
//!   handle ── event ──► lock ── step ── boards ── unlock ──► slots, answers, tasks, wakers, drops, code to free ──► reply
//! ```
//!
//! The lock is held for one step, microseconds. Boards are written inside it: they mirror the tables. Everything else of the
//! effects is done outside, by the thread that made the step: it calls user code (wakers, dispatchers, destructors), which
//! may make further steps. Slots are stored to outside as well, so two threads may store to one slot in the wrong order; a
//! store has a number, and one that comes late is left out (`slot.rs`). One question is asked inside: whoever makes a change
//! (`Dylib::change`) may look there, for the last time, whether he still wants it.
//!
//! Ending: no more work is taken, but from those who are in the middle of some: what a task of the session (the continuation of a lookup is one), a
//! responsibility, a generator's request, an opening or the end itself
//! looks up and defines is taken until everything was deinitialised. Openings and closings under way in other threads ([`Session::undertake`]) are
//! waited for. Tasks are drained (one that waits for a responsibility that its holder neither keeps nor
//! drops keeps the session waiting, and so do continuations that look things up again and again); opened dylibs are deinitialised, the youngest first, and what that has begun is drained; everything is
//! removed, and what was not ready fails; code is handed to the host, whose grace period it is.

use std::fmt;
use std::marker::PhantomData;
use std::sync::{Arc, Weak};
use std::thread::{ThreadId, current};

use smallvec::SmallVec;

use crate::board::{Address, Board};
use crate::dispatch::{self, Dispatcher, SessionDoer, Task, doers, fenced};
use crate::error::{Error, Failure, Name};
use crate::flags::{Link, LookupKind, Need, Priority, Until, Want};
use crate::generator::{Generator, Request};
use crate::ids::{DylibId, Label, SessionId, Symbol};
use crate::lookup::{Delivered, Lookup, Ticket};
use crate::machine::{
    self, Begin, Close, Dependants, Doer, Effects, Event, Finish, Found, IsDefined, IsUnderWay, Leads,
    LinkOrder, Machine, NewUnit, Parts, Remaining, Renew, Stop, Undertake,
};
use crate::names::{Names, SymbolRef, SymbolScope};
use crate::openings::Openings;
use crate::promise::Promise;
use crate::responsibility::{MaterializationUnit, Responsibility};
use crate::slot::SlotCell;
use crate::sync::{Mutex, lock};
use crate::target::Target;

/// The machine's parts, for a target.
pub struct Live<T>(PhantomData<fn() -> T>);

impl<T: Target> Parts for Live<T> {
    type Address = T::Address;
    type Code = T::Code;
    type Source = Box<dyn MaterializationUnit<T>>;
    type Generator = Arc<dyn Generator<T>>;
    type Ticket = Ticket<T>;
    type Slot = Arc<SlotCell<T>>;
    type Board = Arc<Shown<T>>;
}

/// Ready symbols of a dylib. Handles read it; nobody else can.
pub struct Shown<T> {
    pub(crate) board: Board,
    target: PhantomData<fn() -> T>,
}

impl<T> Shown<T> {
    pub(crate) fn new() -> Self {
        Shown { board: Board::new(), target: PhantomData }
    }
}

/// A symbol that a lookup found.
pub type Definition<T> = Found<Live<T>>;
/// A version of a symbol: what a name leads to until it is removed or replaced.
pub type Version<T> = machine::Version<Live<T>>;
/// A unit to define in a dylib.
pub type Unit<T> = NewUnit<Live<T>>;
/// A symbol that code refers to.
pub type Dependence<T> = machine::Dependence<Live<T>>;
/// Symbols of a unit that need the same things.
pub type Group<T> = machine::Group<Live<T>>;
/// A lookup's answer.
pub type Answer<T> = machine::Answer<Live<T>>;

/// The embedder's side of a session. No lock is held in any call.
pub trait Host<T: Target>: Send + Sync {
    /// Nothing in the session leads to this code any more; running threads may. The order is that in which it shall be freed.
    fn retire(&self, code: Vec<T::Code>) {
        drop(code);
    }

    /// This code was removed, and those who refer to it stay ([`Dependants::Tombstone`]): make the references trap. It is retired behind that.
    fn entomb(&self, code: &T::Code) {
        let _ = code;
    }

    /// `user`, which is ready, refers to `removed`, which was removed under it.
    fn orphaned(&self, user: Name, removed: Name) {
        let _ = (user, removed);
    }

    /// These labels do not lead anywhere any more: they were removed, or gave way. They may have been defined again since
    /// ([`Session::is_defined`]). Called before what they led to is retired.
    fn unnamed(&self, session: &Session<T>, labels: &[Label]) {
        let _ = (session, labels);
    }

    /// Symbols failed that nobody was waiting for. Later look-ups are told too.
    fn unheard(&self, failure: &Failure) {
        let _ = failure;
    }
}

/// A host that drops code at once and says nothing: for code that handles keep alive, and for tests.
pub struct PlainHost;

impl<T: Target> Host<T> for PlainHost {}

/// A host that drops code when every thread that was pinned by `crossbeam_epoch::pin` at that moment has been unpinned.
pub struct EpochHost;

impl<T: Target> Host<T> for EpochHost {
    fn retire(&self, code: Vec<T::Code>) {
        let guard = crossbeam_epoch::pin();
        guard.defer(move || drop(code));
        guard.flush();
    }
}

pub(crate) struct Inner<T: Target> {
    names: Arc<Names>,
    machine: Mutex<Machine<Live<T>>>,
    dispatcher: Arc<dyn Dispatcher>,
    host: Box<dyn Host<T>>,
    openings: Openings,
}

impl<T: Target> Drop for Inner<T> {
    /// The last handle is gone: whatever is there is removed, as at the end, but nothing is deinitialised.
    fn drop(&mut self) {
        let mut machine = lock(&self.machine);
        machine.step(Stop { entirely: true });
        let dylibs = machine.step(Remaining).0.into_iter().map(|(dylib, _)| dylib).collect();
        let (_, mut effects) = machine.step(Close { dylibs, dependants: Dependants::Keep, stay_open: false });
        drop(machine);
        for store in effects.slots.drain(..) {
            store.slot.store(store.serial, store.target);
        }
        for (ticket, answer) in effects.answers.drain(..) {
            match fenced(|| ticket.deliver_alone(answer)) {
                Some(Delivered::Task(task)) => drop(fenced(|| self.dispatcher.dispatch(task))),
                Some(Delivered::Wake(waker)) => drop(fenced(|| waker.wake())),
                Some(Delivered::Heard) | None => {}
            }
        }
        let_go(&*self.host, effects.dropped, effects.retired, effects.garbage);
    }
}

/// Drops what the tables had, and hands code to the host. Where the embedder's code panics, the rest is done nevertheless.
fn let_go<T: Target>(
    host: &dyn Host<T>,
    dropped: Vec<(Box<dyn MaterializationUnit<T>>, Vec<Symbol>)>,
    retired: Vec<T::Code>,
    garbage: Vec<machine::Garbage<Live<T>>>,
) {
    for (mut source, lost) in dropped {
        fenced(move || lost.into_iter().for_each(|symbol| source.discard(symbol)));
    }
    if !retired.is_empty() {
        fenced(|| host.retire(retired));
    }
    fenced(move || drop(garbage));
}

/// A handle to a session. See the file's header.
///
/// **Dropping.** A session ends by [`Session::end`]. One whose last handle is dropped without that is taken down in the same way, but for what needs a caller:
/// its opened dylibs are not deinitialised. Dylibs, trackers, lookups, responsibilities, requests and tasks that are queued or run are handles: a thread that
/// waits for a lookup is answered first, and a task in flight is finished. A handle stored inside of the session (in a generator, a unit, a continuation)
/// keeps it; [`Session::downgrade`] and [`Dylib::downgrade`](crate::Dylib::downgrade) are for these. The last handle may be dropped by any thread, a task's too: code goes to the host
/// on that thread.
pub struct Session<T: Target>(Arc<Inner<T>>);

impl<T: Target> Clone for Session<T> {
    fn clone(&self) -> Self {
        Session(Arc::clone(&self.0))
    }
}

/// A handle that does not keep the session.
pub struct WeakSession<T: Target>(Weak<Inner<T>>);

impl<T: Target> WeakSession<T> {
    /// The session, if somebody still has it.
    #[must_use]
    pub fn upgrade(&self) -> Option<Session<T>> {
        self.0.upgrade().map(Session)
    }
}

impl<T: Target> fmt::Debug for Session<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (versions, units, queries, waiting) = lock(&self.0.machine).counts();
        write!(
            f,
            "session of {versions} symbols, {units} units, {queries} lookups; {waiting} units are not ready"
        )
    }
}

impl<T: Target> Session<T> {
    /// A session without dylibs.
    #[must_use]
    pub fn new(dispatcher: Arc<dyn Dispatcher>, host: Box<dyn Host<T>>) -> Self {
        let names = Arc::new(Names::default());
        let machine = Mutex::new(Machine::new(Arc::clone(&names)));
        Session(Arc::new(Inner { names, machine, dispatcher, host, openings: Openings::default() }))
    }

    /// The number that its identifiers carry.
    #[must_use]
    pub fn id(&self) -> SessionId {
        lock(&self.0.machine).id()
    }

    /// A handle that does not keep the session: for what the session itself keeps.
    #[must_use]
    pub fn downgrade(&self) -> WeakSession<T> {
        WeakSession(Arc::downgrade(&self.0))
    }

    /// The symbol of `text`, for as long as the result is there or the symbol is in a table.
    #[must_use]
    pub fn symbol(&self, text: &str) -> SymbolRef {
        self.0.names.hold(text)
    }

    /// A scope that keeps the symbols that it interns until it is dropped.
    #[must_use]
    pub fn scope(&self) -> SymbolScope {
        SymbolScope::new(&self.0.names)
    }

    /// The symbol of `text`, for the life of the session. Names that come and go are better had by [`Session::symbol`] or [`Session::scope`].
    #[must_use]
    pub fn intern(&self, text: &str) -> Symbol {
        self.0.names.intern(text)
    }

    /// All names.
    #[must_use]
    pub fn names(&self) -> &Arc<Names> {
        &self.0.names
    }

    /// The address that a label leads to now, if it has been resolved; of a [`Definition`], if it is that version still. Starts nothing.
    #[must_use]
    pub fn leads_to(&self, at: impl Into<Dependence<T>>) -> Option<T::Address> {
        self.step(Leads(at.into()))
    }

    /// Whether a label leads anywhere, ready or not. Starts nothing.
    #[must_use]
    pub fn is_defined(&self, label: Label) -> bool {
        self.step(IsDefined(label))
    }

    /// Gives a symbol that is ready back to a source, as if nobody had looked it up, and lets go of what was ready: for what
    /// can be made again. `false` if the symbol leads elsewhere than to `address`, is not alone in its unit, or is used by others.
    pub fn renew(&self, label: Label, address: T::Address, unit: impl Into<Unit<T>>) -> bool
    where
        T::Address: PartialEq,
    {
        let renewed = self.step(Renew { label, address, unit: unit.into() });
        // A refused unit is dropped here, behind the lock.
        renewed.is_ok()
    }

    /// Who is busy with initialisers.
    pub(crate) fn openings(&self) -> &Openings {
        &self.0.openings
    }

    /// The dispatcher.
    #[must_use]
    pub fn dispatcher(&self) -> &dyn Dispatcher {
        &*self.0.dispatcher
    }

    /// Looks symbols up in dylibs, the first that has a symbol wins.
    pub fn lookup(&self, order: Vec<Link>, wants: Vec<Want>, until: Until) -> Lookup<T> {
        self.lookup_with(order, wants, until, LookupKind::Static, Priority::Normal)
    }

    /// The same, with all there is to say.
    pub fn lookup_with(
        &self,
        order: Vec<Link>,
        wants: Vec<Want>,
        until: Until,
        kind: LookupKind,
        priority: Priority,
    ) -> Lookup<T> {
        let promise = Arc::new(Promise::new());
        let ticket = Ticket::promise(Arc::clone(&promise));
        let (owner, perhaps, begun) = (None, SmallVec::new(), self.is_within());
        let query =
            self.step(machine::Lookup { order, wants, kind, until, priority, ticket, owner, perhaps, begun });
        Lookup::new(self.clone(), query, promise, None)
    }

    /// As [`Session::lookup`], for somebody who does not continue without the answer once he awaits it.
    pub(crate) fn lookup_for(
        &self,
        owner: Doer,
        order: Vec<Link>,
        wants: Vec<Want>,
        until: Until,
    ) -> Lookup<T> {
        let promise = Arc::new(Promise::new());
        let ticket = Ticket::promise(Arc::clone(&promise));
        let (kind, priority) = (LookupKind::Static, Priority::Normal);
        let doer = Some(owner);
        let (owner, perhaps, begun) = (None, SmallVec::from_iter(doer), true);
        let query =
            self.step(machine::Lookup { order, wants, kind, until, priority, ticket, owner, perhaps, begun });
        Lookup::new(self.clone(), query, promise, doer)
    }

    /// Looks symbols up, and hands the answer to `then`, in a task. Lookups of the task belong to this lookup: if this one was begun before the
    /// session ends, it is finished.
    pub fn lookup_then(
        &self,
        order: Vec<Link>,
        wants: Vec<Want>,
        until: Until,
        priority: Priority,
        then: impl FnOnce(Answer<T>) + Send + 'static,
    ) {
        self.lookup_then_for(None, order, wants, until, priority, then);
    }

    /// As [`Session::lookup_then`], for somebody who continues in the task.
    pub(crate) fn lookup_then_for(
        &self,
        owner: Option<Doer>,
        order: Vec<Link>,
        wants: Vec<Want>,
        until: Until,
        priority: Priority,
        then: impl FnOnce(Answer<T>) + Send + 'static,
    ) {
        let ticket = Ticket::then(priority, owner, then);
        let kind = LookupKind::Static;
        let perhaps = if owner.is_some() { SmallVec::new() } else { doers(self.address()) };
        let begun = self.is_within();
        self.step(machine::Lookup { order, wants, kind, until, priority, ticket, owner, perhaps, begun });
    }

    /// Whether this thread is in the middle of something of the session.
    pub(crate) fn is_within(&self) -> bool {
        dispatch::is_within(self.address())
    }

    /// Does something that is finished before the session ends: [`Session::end`] waits for it, and what this thread looks up and defines
    /// meanwhile is taken. Openings and closings of dylibs are such things by themselves.
    ///
    /// # Errors
    /// The session has ended, and nothing is done.
    pub fn undertake<R>(&self, work: impl FnOnce() -> R) -> Result<R, Error> {
        let by = current().id();
        self.step(Undertake { by, begun: self.is_within() })?;
        let _under_way = UnderWay { session: self, by };
        let doer = Some(Doer::thread(by));
        Ok(dispatch::within(SessionDoer { session: self.address(), doer }, work))
    }

    /// The identity of the session.
    pub(crate) fn address(&self) -> usize {
        Arc::as_ptr(&self.0).addr()
    }

    /// The link order of a dylib.
    ///
    /// # Errors
    /// It is closed.
    pub fn links(&self, dylib: DylibId) -> Result<Vec<Link>, Error> {
        self.step(LinkOrder::Own(dylib))
    }

    /// Ends the session; see the file's header. Dylibs that were opened are handed to `deinitialize`, which may look symbols up. Must
    /// not be called by a task. Openings and closings of other threads are waited for, if they do not wait for this one.
    /// Nothing happens the second time.
    pub fn end(&self, mut deinitialize: impl FnMut(DylibId)) {
        if !self.step(Stop { entirely: false }) {
            return;
        }
        let by = current().id();
        self.0.openings.wait_while(|| self.step(IsUnderWay { by }));
        self.0.dispatcher.drain();
        for (dylib, _) in self.step(Remaining).into_iter().filter(|(_, was_opened)| *was_opened) {
            let end = SessionDoer { session: self.address(), doer: None };
            dispatch::within(end, || deinitialize(dylib));
        }
        self.step(Stop { entirely: true });
        self.0.dispatcher.drain();
        let dylibs = self.step(Remaining).into_iter().map(|(dylib, _)| dylib).collect();
        // All of them close at once, so nothing has a name that could keep anything, and handles keep what they call.
        let closed = self.step(Close { dylibs, dependants: Dependants::Keep, stay_open: false });
        debug_assert!(closed.is_ok(), "to keep is never refused");
    }

    /// How many versions of symbols, units, and lookups there are, and how many units wait for others.
    #[must_use]
    pub fn counts(&self) -> (usize, usize, usize, usize) {
        lock(&self.0.machine).counts()
    }

    /// The names of a label, for messages.
    #[must_use]
    pub fn name(&self, label: Label) -> Name {
        lock(&self.0.machine).name(label)
    }

    /// Checks the tables. For tests: visits everything.
    ///
    /// # Errors
    /// The first inconsistency.
    pub fn check(&self) -> Result<(), String> {
        lock(&self.0.machine).check()
    }

    /// Runs one event, and what it entails.
    pub(crate) fn step<E: Event<Live<T>>>(&self, event: E) -> E::Reply {
        dispatch::tell_if_caught();
        let (reply, effects) = {
            let mut machine = lock(&self.0.machine);
            Self::publish(machine.step(event))
        };
        self.perform(effects);
        reply
    }

    /// Runs an event, then, if nothing speaks against it and `agree` says so, a change; and what they entail. Between them nothing comes.
    pub(crate) fn step_if(
        &self,
        first: impl Event<Live<T>>,
        change: machine::Change<Live<T>>,
        agree: impl FnOnce(&dyn Fn(Label) -> bool) -> bool,
    ) -> Result<bool, Error> {
        let mut change = Some(change);
        let mut machine = lock(&self.0.machine);
        let (_, before) = Self::publish(machine.step(first));
        let may = change.as_ref().map_or(Ok(()), |change| machine.may_change(change));
        let made = match may {
            Ok(()) if agree(&|label| machine.is_defined(label)) => {
                change.take().map(|change| Self::publish(machine.step(change)))
            }
            _ => None,
        };
        drop(machine);
        // A refused change is dropped without the lock.
        drop(change);
        self.perform(before);
        may?;
        let Some((reply, effects)) = made else { return Ok(false) };
        self.perform(effects);
        reply.map(|()| true).map_err(|(error, _)| error)
    }

    /// Writes what belongs to a step itself.
    fn publish<R>((reply, mut effects): (R, Effects<Live<T>>)) -> (R, Effects<Live<T>>) {
        for (shown, symbol, address) in effects.publish.drain(..) {
            shown.board.set(symbol, address.map(Address::to_word));
        }
        (reply, effects)
    }

    /// Does what a step entails. The embedder's code is part of that; where it panics, the rest is done nevertheless.
    fn perform(&self, effects: Effects<Live<T>>) {
        for store in effects.slots {
            store.slot.store(store.serial, store.target);
        }
        if effects.waits_changed {
            fenced(|| self.0.dispatcher.look_again());
        }
        for failure in effects.unheard {
            fenced(|| self.0.host.unheard(&failure));
        }
        let (mut tasks, mut wakers) = (Vec::new(), Vec::new());
        for (ticket, answer) in effects.answers {
            match fenced(|| ticket.deliver(self, answer)) {
                Some(Delivered::Task(task)) => tasks.push(task),
                Some(Delivered::Wake(waker)) => wakers.push(waker),
                Some(Delivered::Heard) | None => {}
            }
        }
        for ask in effects.asks {
            let session = self.clone();
            tasks.push(self.task(ask.priority, Some(Doer::request(ask.request)), move || {
                let generator = Arc::clone(&ask.generator);
                generator.generate(Request::new(session, ask));
            }));
        }
        for work in effects.work {
            let responsibility = Responsibility::new(self.clone(), work.unit);
            let (unit, source, lost) = (work.unit, work.source, work.lost);
            tasks.push(self.task(work.priority, Some(Doer::unit(unit)), move || {
                // It may have been removed while it was queued, or nobody may want it any more.
                let begun = responsibility.session().step(Begin { unit, source, lost });
                let Some((mut source, lost)) = begun else { return responsibility.put_off() };
                for symbol in lost {
                    source.discard(symbol);
                }
                source.materialize(responsibility);
            }));
        }
        if !tasks.is_empty() {
            fenced(|| self.0.dispatcher.dispatch_all(tasks));
        }
        // A continuation inside of the waker may wait for what this step has begun, so that is queued by now.
        for waker in wakers {
            fenced(|| waker.wake());
        }
        for code in effects.retired.iter().filter(|_| effects.entombs) {
            fenced(|| self.0.host.entomb(code));
        }
        for (user, removed) in effects.orphaned {
            fenced(|| self.0.host.orphaned(self.name(user), self.name(removed)));
        }
        if !effects.unnamed.is_empty() {
            fenced(|| self.0.host.unnamed(self, &effects.unnamed));
        }
        let_go(&*self.0.host, effects.dropped, effects.retired, effects.garbage);
    }

    /// A task of `work`, which is done for `doer`, if anybody is known to wait for it.
    pub(crate) fn task(
        &self,
        priority: Priority,
        doer: Option<Doer>,
        work: impl FnOnce() + Send + 'static,
    ) -> Task {
        Task::new(priority, work).for_doer(SessionDoer { session: self.address(), doer })
    }
}

/// The undertaking of a thread, until this is dropped.
struct UnderWay<'a, T: Target> {
    session: &'a Session<T>,
    by: ThreadId,
}

impl<T: Target> Drop for UnderWay<'_, T> {
    fn drop(&mut self) {
        self.session.step(Finish { by: self.by });
        self.session.openings().look_again();
    }
}

/// Every symbol required.
pub fn required(symbols: impl IntoIterator<Item = Symbol>) -> Vec<Want> {
    symbols.into_iter().map(|symbol| Want { symbol, need: Need::Required }).collect()
}

/// Every symbol only if it is there.
pub fn weak(symbols: impl IntoIterator<Item = Symbol>) -> Vec<Want> {
    symbols.into_iter().map(|symbol| Want { symbol, need: Need::Weak }).collect()
}
