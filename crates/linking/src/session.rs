//! The session: one lock around the machine, and the effects performed after it is released.
//!
//! ```text
//!   handle ── event ──► lock ── step ── boards ── unlock ──► answers, tasks, wakers, drops, code to free ──► reply
//! ```
//!
//! The lock is held for one step, a few microseconds. Boards mirror the tables, so they are written under the lock. All
//! other effects run after the release, on the thread that made the step, because they call user code (wakers,
//! dispatchers, destructors), which may make further steps.
//!
//! [`Session::end`], in order:
//!
//! 1. New work is refused, except on behalf of work that has begun: lookups and definitions by tasks of the session (continuations of
//!    lookups are tasks), responsibilities, generators' requests, openings and the end itself are accepted until
//!    everything is deinitialised.
//! 2. It waits for openings and closings on other threads ([`Session::undertake`]).
//! 3. The tasks are drained. A task that waits for a responsibility whose holder neither fulfils nor drops it
//!    blocks the end, as does a continuation that keeps starting lookups.
//! 4. Opened dylibs are deinitialised, the latest first, and the tasks that this started are drained.
//! 5. Everything is removed, and symbols that are not ready fail. Code is handed to the host, which frees it after its
//!    own grace period.

use std::any::Any;
use std::fmt;
use std::marker::PhantomData;
use std::sync::{Arc, OnceLock, Weak};
use std::task::Waker;
use std::thread::{ThreadId, current};

use crate::board::{Address, Board};
use crate::dispatch::{self, Dispatcher, SessionDoer, Task, fenced, when_caught};
use crate::error::{Cause, Error, Failure, Name};
use crate::flags::{Link, Need, Priority, Want};
use crate::ids::{DylibId, Label, SessionId, Symbol};
use crate::machine::{
    self, Ask, Attach, Begin, Close, Dependants, Doer, Effects, Event, Fail, Finish, Found, IsDefined,
    IsPending, IsUnderWay, Leads, LinkOrder, Machine, NewUnit, Observe, Observed, Parts, Read, Remaining,
    Renew, Stop, Undertake, UnitId,
};
use crate::names::{Names, SymbolRef, SymbolScope};
use crate::openings::Openings;
use crate::sync::{Mutex, lock};
use crate::target::Target;
use crate::ticket::{Continuation, Delivered, Ticket};

/// The types that the machine is instantiated with for a target.
pub struct Live<T>(PhantomData<fn() -> T>);

impl<T: Target> Parts for Live<T> {
    type Address = T::Address;
    type Code = T::Code;
    type Source = Box<dyn Materializer<T>>;
    type Generator = Arc<dyn Definer<T>>;
    type Ticket = Ticket<Answer<T>>;
    type Board = Arc<Shown<T>>;
}

/// The session's interface to the source of a unit; [`MaterializationUnit`](crate::MaterializationUnit) is built on it.
pub trait Materializer<T: Target>: Send {
    /// Reports that another definition overrides one of the unit's symbols.
    fn lose(&mut self, symbol: Symbol);

    /// Materializes the duty's unit.
    fn begin(self: Box<Self>, duty: Duty<T>);
}

/// The session's interface to a source of missing symbols; [`Generator`](crate::Generator) is built on it.
pub trait Definer<T: Target>: Send + Sync {
    /// Answers a request.
    fn answer(&self, session: Session<T>, ask: Ask<Live<T>>);
}

/// The obligation to materialize a unit. Dropping it while it is open fails the unit.
pub struct Duty<T: Target> {
    pub(crate) session: Session<T>,
    pub(crate) unit: UnitId<Live<T>>,
    pub(crate) open: bool,
}

impl<T: Target> Duty<T> {
    pub(crate) fn new(session: Session<T>, unit: UnitId<Live<T>>) -> Self {
        Duty { session, unit, open: true }
    }

    pub(crate) fn fail(&mut self, cause: Cause) {
        if std::mem::replace(&mut self.open, false) {
            self.session.step(Fail { unit: self.unit, cause });
        }
    }

    pub(crate) fn attach(&self, code: T::Code) -> Result<(), T::Code> {
        self.session.step(Attach { unit: self.unit, code })
    }

    /// Discards the obligation without failing the unit, which was removed or will be materialized later.
    fn put_off(mut self) {
        self.open = false;
    }
}

impl<T: Target> Drop for Duty<T> {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            return self.fail(Cause::Abandoned);
        }
        if std::mem::replace(&mut self.open, false) {
            let (session, unit) = (self.session.clone(), self.unit);
            when_caught(move |message| session.step(Fail { unit, cause: Cause::Panicked(message) }));
        }
    }
}

/// The ready symbols of a dylib, which only handles can read.
pub struct Shown<T> {
    pub(crate) board: Board,
    /// Set as soon as the dylib may not be the first one of its link order.
    pub(crate) reordered: OnceLock<()>,
    target: PhantomData<fn() -> T>,
}

impl<T> Shown<T> {
    pub(crate) fn new() -> Self {
        Shown { board: Board::new(), reordered: OnceLock::new(), target: PhantomData }
    }
}

/// A symbol that a lookup found.
pub type Definition<T> = Found<Live<T>>;
/// A version of a symbol: the definition that a name leads to until it is removed or replaced.
pub type Version<T> = machine::Version<Live<T>>;
/// A unit to define in a dylib.
pub type Unit<T> = NewUnit<Live<T>>;
/// A symbol that code refers to.
pub type Dependence<T> = machine::Dependence<Live<T>>;
/// Symbols of a unit with the same dependences.
pub type Group<T> = machine::Group<Live<T>>;
/// A lookup's answer.
pub type Answer<T> = machine::Answer<Live<T>>;

/// The embedder's side of a session. No lock is held in any call.
pub trait Host<T: Target>: Send + Sync {
    /// Takes code that no table of the session leads to any more; threads may still run it. The host frees it
    /// in this order.
    fn retire(&self, code: Vec<T::Code>) {
        drop(code);
    }

    /// Makes references to this code trap: it was removed, and its dependants stay ([`Dependants::Tombstone`]). The code is
    /// retired afterwards.
    fn mark_removed(&self, code: &T::Code) {
        let _ = code;
    }

    /// Reports that `user`, which is ready, refers to `removed`, which was removed.
    fn orphaned(&self, user: Name, removed: Name) {
        let _ = (user, removed);
    }

    /// Reports labels that lost their definitions: removed, or weak and overridden. They may have been defined again since
    /// ([`Session::is_defined`]). Called before the former definitions are retired.
    fn unnamed(&self, session: &Session<T>, labels: &[Label]) {
        let _ = (session, labels);
    }

    /// Reports symbols that failed while no lookup was waiting for them. Later lookups get the failure too.
    fn unheard(&self, failure: &Arc<Failure>) {
        let _ = failure;
    }

    /// Reports events of symbols, if the session [is observed](Session::observe): the events of one step, in
    /// order. Other threads may report later steps first.
    fn observed(&self, events: Vec<Observed>) {
        drop(events);
    }

    /// The innermost call under limits of this thread, as a number unique to that call; 0 if there is none.
    /// Lookups belong to it, unless they are made inside a task.
    fn caller(&self) -> u64 {
        0
    }

    /// Whether such a call of this thread has ended, so that waiting is pointless.
    fn has_ended(&self, caller: u64) -> bool {
        let _ = caller;
        false
    }

    /// Arranges for `waker` to be called when a call of this thread ends, until the result is dropped.
    fn wake_at_end(&self, waker: &Waker) -> Option<Box<dyn Any>> {
        let _ = waker;
        None
    }
}

/// A host that drops code immediately and ignores reports: for code that handles keep alive, and for tests.
pub struct PlainHost;

impl<T: Target> Host<T> for PlainHost {}

/// A host that drops code when every thread that `crossbeam_epoch::pin` had pinned at retirement is unpinned.
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
    /// Removes everything, like [`Session::end`], but deinitialises nothing.
    fn drop(&mut self) {
        let mut machine = lock(&self.machine);
        machine.step(Stop { entirely: true });
        let dylibs = machine.read(Remaining).into_iter().map(|(dylib, _)| dylib).collect();
        let (_, mut effects) = machine.step(Close { dylibs, dependants: Dependants::Keep, stay_open: false });
        drop(machine);
        for (ticket, answer) in effects.answers.drain(..) {
            match fenced(|| ticket.deliver(answer)) {
                Some(Delivered::Then(priority, _, then, answer)) => {
                    let task = Task::new(priority, move || then(answer));
                    fenced(|| self.dispatcher.dispatch(task));
                }
                Some(Delivered::Wake(waker)) => drop(fenced(|| waker.wake())),
                Some(Delivered::Heard) | None => {}
            }
        }
        release(&*self.host, effects.dropped, effects.retired, effects.garbage);
    }
}

/// Drops objects removed from the tables, and hands code to the host. A panic in one of the embedder's functions does not
/// prevent the other calls.
fn release<T: Target>(
    host: &dyn Host<T>,
    dropped: Vec<(Box<dyn Materializer<T>>, Vec<Symbol>)>,
    retired: Vec<T::Code>,
    garbage: Vec<machine::Garbage<Live<T>>>,
) {
    for (mut source, lost) in dropped {
        fenced(move || lost.into_iter().for_each(|symbol| source.lose(symbol)));
    }
    if !retired.is_empty() {
        fenced(|| host.retire(retired));
    }
    fenced(move || drop(garbage));
}

/// A handle to a session.
///
/// **Dropping.** A session ends by [`Session::end`]. A session whose last handle is dropped without that is taken down in
/// the same way, but its opened dylibs are not deinitialised, which needs a caller. Dylibs, trackers, lookups,
/// responsibilities, requests, and queued or running tasks are handles too: a thread that waits for a lookup is answered
/// first, and a running task finishes. A handle stored inside the session (in a generator, a unit, a continuation) keeps
/// it alive; store [`Session::downgrade`] or [`Dylib::downgrade`](crate::Dylib::downgrade) there. The last handle may be
/// dropped on any thread, including a task's; code goes to the host on that thread.
pub struct Session<T: Target>(Arc<Inner<T>>);

impl<T: Target> Clone for Session<T> {
    fn clone(&self) -> Self {
        Session(Arc::clone(&self.0))
    }
}

/// A handle that does not keep the session alive.
pub struct WeakSession<T: Target>(Weak<Inner<T>>);

impl<T: Target> WeakSession<T> {
    /// The session, unless its last handle was dropped.
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
    /// Starts or stops reporting events of symbols to the host ([`Host::observed`]).
    pub fn observe(&self, is_observed: bool) {
        self.step(Observe(is_observed));
    }

    /// A session without dylibs.
    #[must_use]
    pub fn new(dispatcher: Arc<dyn Dispatcher>, host: Box<dyn Host<T>>) -> Self {
        let names = Arc::new(Names::default());
        let machine = Mutex::new(Machine::new(Arc::clone(&names)));
        Session(Arc::new(Inner { names, machine, dispatcher, host, openings: Openings::default() }))
    }

    /// The number carried by identifiers of this session.
    #[must_use]
    pub fn id(&self) -> SessionId {
        lock(&self.0.machine).id()
    }

    /// A handle that does not keep the session alive, for objects that the session itself owns.
    #[must_use]
    pub fn downgrade(&self) -> WeakSession<T> {
        WeakSession(Arc::downgrade(&self.0))
    }

    /// The symbol of `text`, valid while the result exists or the symbol is in a table.
    #[must_use]
    pub fn symbol(&self, text: &str) -> SymbolRef {
        self.0.names.hold(text)
    }

    /// A scope that keeps the symbols that it interns until it is dropped.
    #[must_use]
    pub fn scope(&self) -> SymbolScope {
        SymbolScope::new(&self.0.names)
    }

    /// The symbol of `text`, for the lifetime of the session. For temporary names use [`Session::symbol`] or
    /// [`Session::scope`].
    #[must_use]
    pub fn intern(&self, text: &str) -> Symbol {
        self.0.names.intern(text)
    }

    #[must_use]
    pub fn names(&self) -> &Arc<Names> {
        &self.0.names
    }

    /// The address that a label leads to now, if it is resolved; for a [`Definition`], only if it is still
    /// that version. Starts no compilation.
    #[must_use]
    pub fn leads_to(&self, at: impl Into<Dependence<T>>) -> Option<T::Address> {
        self.read(Leads(at.into()))
    }

    /// Whether a label has a definition, ready or not. Starts no compilation.
    #[must_use]
    pub fn is_defined(&self, label: Label) -> bool {
        self.read(IsDefined(label))
    }

    /// The symbols with the name of a label that are being materialized, or wait for what they need: the whole and its parts.
    #[must_use]
    pub fn pending(&self, label: Label) -> Vec<Label> {
        self.read(IsPending(label))
    }

    /// Evicts the code of a ready symbol: `unit` will materialize it again when it is next looked up. `false` if the symbol does
    /// not lead to `address`, is not alone in its unit, or has dependants.
    pub fn renew(&self, label: Label, address: T::Address, unit: impl Into<Unit<T>>) -> bool
    where
        T::Address: PartialEq,
    {
        let renewed = self.step(Renew { label, address, unit: unit.into() });
        // A refused unit is dropped here, after the lock is released.
        renewed.is_ok()
    }

    /// The embedder's side.
    pub(crate) fn host(&self) -> &dyn Host<T> {
        &*self.0.host
    }

    /// Threads that wait for initialisers on other threads.
    pub(crate) fn openings(&self) -> &Openings {
        &self.0.openings
    }

    #[must_use]
    pub fn dispatcher(&self) -> &dyn Dispatcher {
        &*self.0.dispatcher
    }

    /// Whether this thread is executing work of the session.
    pub(crate) fn is_within(&self) -> bool {
        dispatch::is_within(self.address())
    }

    /// Runs `work` to completion before the session ends: [`Session::end`] waits for it, and this thread's
    /// lookups and definitions are accepted meanwhile. Opening and closing a dylib already does this.
    ///
    /// # Errors
    /// The session has ended; `work` was not run.
    pub fn undertake<R>(&self, work: impl FnOnce() -> R) -> Result<R, Error> {
        let by = current().id();
        self.step(Undertake { by, begun: self.is_within() })?;
        let _under_way = UnderWay { session: self, by };
        let doer = Some(Doer::thread(by));
        Ok(dispatch::within(SessionDoer { session: self.address(), doer }, work))
    }

    /// The address that identifies the session within the process.
    pub(crate) fn address(&self) -> usize {
        Arc::as_ptr(&self.0).addr()
    }

    /// The link order of a dylib.
    ///
    /// # Errors
    /// It is closed.
    pub fn links(&self, dylib: DylibId) -> Result<Vec<Link>, Error> {
        self.read(LinkOrder::Own(dylib))
    }

    /// Ends the session. Passes each opened dylib to `deinitialize`, which may look symbols up. Waits for openings and
    /// closings on other threads, unless they wait for this one. Must not be called by a task. A second call does
    /// nothing.
    pub fn end(&self, mut deinitialize: impl FnMut(DylibId)) {
        if !self.step(Stop { entirely: false }) {
            return;
        }
        let by = current().id();
        self.0.openings.wait_while(|| self.step(IsUnderWay { by }));
        self.0.dispatcher.drain();
        for (dylib, _) in self.read(Remaining).into_iter().filter(|(_, was_opened)| *was_opened) {
            let end = SessionDoer { session: self.address(), doer: None };
            dispatch::within(end, || deinitialize(dylib));
        }
        self.step(Stop { entirely: true });
        self.0.dispatcher.drain();
        let dylibs = self.read(Remaining).into_iter().map(|(dylib, _)| dylib).collect();
        // All dylibs close in one step, so no name keeps a definition; handles keep the code that they call.
        let closed = self.step(Close { dylibs, dependants: Dependants::Keep, stay_open: false });
        debug_assert!(closed.is_ok(), "`Dependants::Keep` is never refused");
    }

    /// The numbers of symbol versions, units, lookups, and units that wait for others.
    #[must_use]
    pub fn counts(&self) -> (usize, usize, usize, usize) {
        lock(&self.0.machine).counts()
    }

    /// The names of a label, for messages.
    #[must_use]
    pub fn name(&self, label: Label) -> Name {
        lock(&self.0.machine).name(label)
    }

    /// Checks the invariants of all tables; for tests.
    ///
    /// # Errors
    /// The first inconsistency.
    pub fn check(&self) -> Result<(), String> {
        lock(&self.0.machine).check()
    }

    /// Runs one event and performs its effects.
    pub(crate) fn step<E: Event<Live<T>>>(&self, event: E) -> E::Reply {
        dispatch::tell_if_caught();
        let (reply, effects) = {
            let mut machine = lock(&self.0.machine);
            Self::publish(machine.step(event))
        };
        self.perform(effects);
        reply
    }

    /// Reads from the tables under the lock.
    pub(crate) fn read<R: Read<Live<T>>>(&self, read: R) -> R::Reply {
        lock(&self.0.machine).read(read)
    }

    /// Makes a change, if it is possible and `agree` returns true: `agree` is passed a function that tells
    /// what is defined.
    pub(crate) fn step_if(
        &self,
        change: machine::Change<Live<T>>,
        agree: impl FnOnce(&dyn Fn(Label) -> bool) -> bool,
    ) -> (Result<bool, Error>, Later<T>) {
        dispatch::tell_if_caught();
        let later = |effects, refused| Later { session: self.clone(), effects, refused };
        let mut machine = lock(&self.0.machine);
        let refused = match machine.may_change(&change) {
            Ok(()) if agree(&|label| machine.is_defined(label)) => None,
            Ok(()) => Some(Ok(false)),
            Err(error) => Some(Err(error)),
        };
        if let Some(refused) = refused {
            return (refused, later(None, change.define.units));
        }
        let (reply, effects) = Self::publish(machine.step(change));
        drop(machine);
        match reply {
            Ok(()) => (Ok(true), later(Some(effects), Vec::new())),
            Err((error, units)) => (Err(error), later(Some(effects), units)),
        }
    }

    /// Writes to the boards, under the lock.
    fn publish<R>((reply, mut effects): (R, Effects<Live<T>>)) -> (R, Effects<Live<T>>) {
        for (shown, symbol, address) in effects.publish.drain(..) {
            shown.board.set(symbol, address.map(Address::to_word));
        }
        (reply, effects)
    }

    /// Performs the effects of a step. A panic in one of the embedder's functions does not prevent the other effects.
    fn perform(&self, effects: Effects<Live<T>>) {
        if effects.waits_changed {
            fenced(|| self.0.dispatcher.look_again());
        }
        if !effects.observed.is_empty() {
            fenced(|| self.0.host.observed(effects.observed));
        }
        for failure in effects.unheard {
            fenced(|| self.0.host.unheard(&failure));
        }
        let (mut tasks, mut wakers) = (Vec::new(), Vec::new());
        for (ticket, answer) in effects.answers {
            match fenced(|| ticket.deliver(answer)) {
                Some(Delivered::Then(priority, doer, then, answer)) => {
                    tasks.push(self.continuation(priority, doer, then, answer));
                }
                Some(Delivered::Wake(waker)) => wakers.push(waker),
                Some(Delivered::Heard) | None => {}
            }
        }
        for ask in effects.asks {
            let session = self.clone();
            tasks.push(self.task(ask.priority, Some(Doer::request(ask.request)), move || {
                let generator = Arc::clone(&ask.generator);
                generator.answer(session, ask);
            }));
        }
        for work in effects.work {
            let duty = Duty::new(self.clone(), work.unit);
            let (unit, source, lost) = (work.unit, work.source, work.lost);
            tasks.push(self.task(work.priority, Some(Doer::unit(unit)), move || {
                // The unit may have been removed, or lost its last lookup, while it was queued.
                let begun = duty.session.step(Begin { unit, source, lost });
                let Some((mut source, lost)) = begun else { return duty.put_off() };
                for symbol in lost {
                    source.lose(symbol);
                }
                source.begin(duty);
            }));
        }
        if !tasks.is_empty() {
            fenced(|| self.0.dispatcher.dispatch_all(tasks));
        }
        // A waker may run a continuation that waits for tasks of this step, so these are queued first.
        for waker in wakers {
            fenced(|| waker.wake());
        }
        for code in effects.retired.iter().filter(|_| effects.marks_removed) {
            fenced(|| self.0.host.mark_removed(code));
        }
        for (user, removed) in effects.orphaned {
            fenced(|| self.0.host.orphaned(self.name(user), self.name(removed)));
        }
        if !effects.unnamed.is_empty() {
            fenced(|| self.0.host.unnamed(self, &effects.unnamed));
        }
        release(&*self.0.host, effects.dropped, effects.retired, effects.garbage);
    }

    /// The task that runs a continuation with its answer.
    fn continuation(
        &self,
        priority: Priority,
        doer: Option<Doer>,
        then: Continuation<Answer<T>>,
        answer: Answer<T>,
    ) -> Task {
        // A lookup that is refused because the session ends is not counted as begun.
        if doer.is_none() && matches!(answer, Err(Error::SessionEnded)) {
            return Task::new(priority, move || then(answer));
        }
        // A queued task is a handle: without one, the dispatcher may be dropped with the session, and the task with it.
        let held = self.clone();
        self.task(priority, doer, move || {
            then(answer);
            drop(held);
        })
    }

    /// A task that runs `work` on behalf of `doer`, if that is known.
    pub(crate) fn task(
        &self,
        priority: Priority,
        doer: Option<Doer>,
        work: impl FnOnce() + Send + 'static,
    ) -> Task {
        Task::new(priority, work).for_doer(SessionDoer { session: self.address(), doer })
    }
}

/// The consequences of a [change](crate::Dylib::change), which take place when this is dropped: work is
/// queued, lookups are answered, the host is notified of lost names. If the change was not made, its units
/// are dropped.
#[must_use = "the consequences take place when it is dropped, which must be without a lock"]
pub struct Later<T: Target> {
    session: Session<T>,
    effects: Option<Effects<Live<T>>>,
    refused: Vec<Unit<T>>,
}

impl<T: Target> Drop for Later<T> {
    fn drop(&mut self) {
        self.refused.clear();
        if let Some(effects) = self.effects.take() {
            self.session.perform(effects);
        }
    }
}

/// Marks the thread as executing work of the session until dropped; see [`Session::undertake`].
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

/// Wants for symbols that must exist.
pub fn required(symbols: impl IntoIterator<Item = Symbol>) -> Vec<Want> {
    symbols.into_iter().map(|symbol| Want { symbol, need: Need::Required, at: None }).collect()
}

/// Wants for symbols that may be missing.
pub fn weak(symbols: impl IntoIterator<Item = Symbol>) -> Vec<Want> {
    symbols.into_iter().map(|symbol| Want { symbol, need: Need::Weak, at: None }).collect()
}
