//! The linking model as a pure machine: `step(event)` changes the tables and says what is to be done.
//!
//! ```text
//!                ┌──────────────────────── Machine ────────────────────────┐
//!   event ──────►│ dylibs ─► entries (symbol, State) ─► units ─► trackers  │──────► (reply, Effects)
//!                │             ▲ waiters    ports ▼                        │
//!                │          queries         graph (what waits for what)    │
//!                └─────────────────────────────────────────────────────────┘
//! ```
//!
//! No lock, no callback, no clock, no thread: whoever owns the machine runs the effects when it has unlocked it, so user
//! code and user destructors cannot meet the lock. Every list in the effects has a fixed order.
//!
//! | state of a symbol | owns | left by |
//! |---|---|---|
//! | never searched | | a lookup, or a dependence on it: its whole unit starts |
//! | materializing | who waits | resolve, fail, removal |
//! | resolved | address, who waits | emit, fail, removal |
//! | emitted | address, who waits | the last thing that it transitively needs is emitted; or fails; removal |
//! | ready | address | removal, replacement |
//! | failed | the failure with its causes | removal, replacement; being promised again, if it failed because of another symbol that was removed or replaced |
//!
//! A symbol's *version* is its entry's key: a name that was removed and defined again is another version, and a
//! dependence on the old one is refused. An entry outlives its name while ready units use it.
//!
//! When the session is stopped, events that bring something new are taken if they are *begun*: if they belong to what was begun before, or to
//! the end. The maker of the event says so in it.
//!
//! Files: `define` (into the tables), `change` (with what goes with it), `search` (lookups), `duty` (what responsibilities do), `settle` (starting, readiness,
//! failure), `remove` (out of the tables), `redirect` (slots), `dylibs` (links, generators, initialisers), `places` (the table of dylibs), `intake` (names and identifiers from outside), `emit` (emission), `undertaking` (what the end waits for), `graph` and
//! `forest` (waiting), `waits` (circles of threads that wait), `circles` (circles of units that do), `check` (invariants).

mod change;
mod check;
mod circles;
mod define;
mod duty;
mod dylibs;
mod emit;
mod forest;
mod graph;
mod intake;
mod places;
mod redirect;
mod remove;
mod search;
mod settle;
mod undertaking;
mod waits;

use std::collections::{BTreeSet, VecDeque};
use std::fmt::Debug;
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

pub use change::{Change, RemoveOrphans};
pub use define::{Alias, Define, FailForNow, NewUnit, Renew};
pub use duty::{
    Attach, Begin, Claim, Delegate, Dependence, Duty, Fail, HandBack, Requested, Resolve, UnitHome,
};
pub use dylibs::{
    AddGenerator, AddLinks, Closing, CreateDylib, CreateTracker, Initialized, Initializers, LinkOrder,
    Opened, Plan, Release, RemoveGenerator, RemoveLink, SetLinks,
};
pub use emit::{Complete, Emit, Group, Incomplete};
pub use redirect::{Aliasee, IsDefined, Leads, Redirect};
pub use remove::{Close, Dependants, Remaining, RemoveSymbols, RemoveTracker, Stop, Transfer};
pub use search::{Cancel, Generated, Lookup, WaitsFor};
pub use undertaking::{Finish, IsUnderWay, Undertake};
pub use waits::{Await, Block, Doer, NeededBy, Unblock};

use crate::error::{Cause, Error, Failure, Name};
use crate::flags::{Link, LookupKind, Priority, SymbolFlags, Until, Want};
use crate::ids::{DylibId, Key, Label, SessionId, Slab, Symbol};
use crate::names::{Names, Released};
use graph::{Graph, Node, Port};

/// The types that the machine carries and never looks into.
pub trait Parts: Sized + 'static {
    /// Where a symbol is.
    type Address: Copy + Debug + Send + 'static;
    /// The owner of code or data: returned when the unit is removed.
    type Code: Send + 'static;
    /// How a unit is materialized.
    type Source: Send + 'static;
    /// Something that defines missing symbols on demand.
    type Generator: Clone + Send + 'static;
    /// Whom a lookup's answer goes to.
    type Ticket: Send + 'static;
    /// Where a redirectable symbol's calls go through.
    type Slot: Clone + Send + 'static;
    /// Where ready symbols of a dylib are published.
    type Board: Clone + Send + 'static;
}

/// A version of a symbol.
pub type Version<P> = Key<Entry<P>>;
/// A unit: what is materialized, and removed, as one.
pub type UnitId<P> = Key<Unit<P>>;
/// A resource tracker.
pub type TrackerId<P> = Key<Tracker<P>>;
/// A lookup.
pub type QueryId<P> = Key<Query<P>>;
/// A question to a generator.
pub type RequestId<P> = Key<Request<P>>;
/// A definition generator in a dylib.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct GeneratorId(pub(crate) u64);

/// A symbol that a lookup found.
pub struct Found<P: Parts> {
    /// Which one.
    pub label: Label,
    /// Its flags.
    pub flags: SymbolFlags,
    /// Its address; none when the lookup only asked for flags.
    pub address: Option<P::Address>,
    /// The version that was found, for dependences and redirects.
    pub version: Version<P>,
}

impl<P: Parts> Clone for Found<P> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<P: Parts> Copy for Found<P> {}

impl<P: Parts> Debug for Found<P> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?} at {:?}", self.label, self.address)
    }
}

/// A lookup's answer: what was found, in the order of the wants.
pub type Answer<P> = Result<Vec<Found<P>>, Error>;

/// How a unit comes to be.
pub enum Source<P: Parts> {
    /// Somebody materializes it.
    Work(P::Source),
    /// The addresses are known.
    Absolute(Vec<(Symbol, P::Address)>),
    /// It has the address of another symbol, searched there. Made by [`Alias`].
    Alias(Link, Symbol),
    /// Its address is that of a stub whose calls go through a slot.
    Slot {
        /// The stub.
        stub: P::Address,
        /// The slot.
        slot: P::Slot,
        /// The target of the slot after the first call; none when it is redirected by hand.
        aliasee: Option<(Link, Symbol)>,
    },
}

/// A unit to materialize.
pub struct Work<P: Parts> {
    /// The unit; whoever gets this is responsible for it.
    pub unit: UnitId<P>,
    /// How it is materialized.
    pub source: P::Source,
    /// Symbols of it that gave way to others.
    pub lost: Vec<Symbol>,
    /// How urgent it is.
    pub priority: Priority,
}

/// A question to a generator.
pub struct Ask<P: Parts> {
    /// To be answered by [`Generated`].
    pub request: RequestId<P>,
    /// Who is asked.
    pub generator: P::Generator,
    /// Where the definitions shall go.
    pub dylib: DylibId,
    /// The missing symbols.
    pub symbols: Vec<Symbol>,
    /// Who wants it.
    pub kind: LookupKind,
    /// How urgent it is.
    pub priority: Priority,
}

/// A store to a slot. Stores to one slot are numbered; an earlier one must not follow a later one.
pub struct SlotStore<P: Parts> {
    /// The slot.
    pub slot: P::Slot,
    /// The target; none arms the slot again, so that the next call asks the session.
    pub target: Option<P::Address>,
    /// The store's number.
    pub serial: u64,
}

/// The work after a step, in this order. The first list belongs to the step itself: it is applied before the
/// next step, because it mirrors the tables.
pub struct Effects<P: Parts> {
    /// Ready exported symbols to publish (an address) or to take back (none).
    pub publish: Vec<(P::Board, Symbol, Option<P::Address>)>,
    /// Slots to set.
    pub slots: SmallVec<[SlotStore<P>; 1]>,
    /// Lookups that are done. A waiter is woken by an answer when the work is queued.
    pub answers: Vec<(P::Ticket, Answer<P>)>,
    /// Generators to ask.
    pub asks: Vec<Ask<P>>,
    /// Units to materialize.
    pub work: Vec<Work<P>>,
    /// Sources that will not be run, with what gave way to others: tell them and drop them.
    pub dropped: Vec<(P::Source, Vec<Symbol>)>,
    /// Code that nothing leads to any more, in the order in which it shall be freed.
    pub retired: Vec<P::Code>,
    /// Whether what still refers to that code has lost it ([`Dependants::Tombstone`]).
    pub entombs: bool,
    /// Ready code that refers to symbols which were removed under it: (user, removed symbol).
    pub orphaned: Vec<(Label, Label)>,
    /// Labels that led somewhere before this step and do not lead anywhere behind it.
    pub unnamed: Vec<Label>,
    /// Failures at the root of this step that no lookup was told.
    pub unheard: Vec<Arc<Failure>>,
    /// Values of users that the tables held: to be dropped.
    pub garbage: Vec<Garbage<P>>,
    /// Threads wait in the middle of tasks, and what is needed for that may be more than it was.
    pub waits_changed: bool,
    /// Names that the tables do not hold any more: dropped last, when nothing above needs their texts.
    pub released: Released,
}

/// A value of a user whose destructor must not run inside a step.
pub enum Garbage<P: Parts> {
    /// A slot whose symbol is gone.
    Slot(P::Slot),
    /// A generator that was taken out.
    Generator(P::Generator),
    /// Where symbols of a dylib that was closed were published.
    Board(P::Board),
    /// A failure that nobody can ask for any more.
    Failure(Arc<Failure>),
    /// A cause that was copied into failures, or that concerned nothing.
    Cause(Cause),
}

impl<P: Parts> Default for Effects<P> {
    fn default() -> Self {
        Effects {
            publish: Vec::new(),
            slots: SmallVec::new(),
            answers: Vec::new(),
            asks: Vec::new(),
            work: Vec::new(),
            dropped: Vec::new(),
            retired: Vec::new(),
            entombs: false,
            orphaned: Vec::new(),
            unnamed: Vec::new(),
            unheard: Vec::new(),
            garbage: Vec::new(),
            waits_changed: false,
            released: Released::default(),
        }
    }
}

/// An event and its reply.
pub trait Event<P: Parts> {
    /// The answer to the caller.
    type Reply;

    /// Changes the tables. Called by [`Machine::step`].
    fn apply(self, machine: &mut Machine<P>) -> Self::Reply;
}

/// Who waits for a symbol, and the port that other units' edges lead to.
struct Pending<P: Parts> {
    port: Port<Version<P>>,
    waiters: SmallVec<[(QueryId<P>, usize); 1]>,
}

enum State<P: Parts> {
    NeverSearched,
    Materializing(Pending<P>),
    Resolved(P::Address, Pending<P>),
    Emitted(Option<P::Address>, Pending<P>),
    Ready(Option<P::Address>),
    Failed(Arc<Failure>),
}

impl<P: Parts> State<P> {
    fn pending(&mut self) -> Option<&mut Pending<P>> {
        match self {
            State::Materializing(pending) | State::Resolved(_, pending) | State::Emitted(_, pending) => {
                Some(pending)
            }
            State::NeverSearched | State::Ready(_) | State::Failed(_) => None,
        }
    }

    fn port(&self) -> Option<Port<Version<P>>> {
        match self {
            State::Materializing(pending) | State::Resolved(_, pending) | State::Emitted(_, pending) => {
                Some(pending.port)
            }
            State::NeverSearched | State::Ready(_) | State::Failed(_) => None,
        }
    }
}

/// One version of a symbol.
pub struct Entry<P: Parts> {
    label: Label,
    flags: SymbolFlags,
    unit: UnitId<P>,
    state: State<P>,
    /// Whether the dylib's table leads here.
    named: bool,
    /// Units that were emitted with a dependence on this; some may be gone.
    users: SmallVec<[UnitId<P>; 1]>,
}

enum Phase<P: Parts> {
    Lazy {
        source: Source<P>,
        lost: Vec<Symbol>,
    },
    Materializing(Node<Version<P>>),
    /// Somebody's responsibility no more: the entries say how it went.
    Done,
}

struct SlotRecord<P: Parts> {
    slot: P::Slot,
    aliasee: Option<(Link, Symbol)>,
    target: Option<Version<P>>,
    serial: u64,
    was_bound: bool,
}

/// Definitions that are materialized, and removed, as one.
pub struct Unit<P: Parts> {
    dylib: DylibId,
    tracker: TrackerId<P>,
    entries: SmallVec<[Version<P>; 1]>,
    phase: Phase<P>,
    codes: Vec<P::Code>,
    /// The source that makes it again, if it fails for a reason that passes before it is ready; or if it has failed and stands for initialisers, or has failed because
    /// of another unit.
    again: Option<Source<P>>,
    /// The versions that it depends on since its emission.
    uses: SmallVec<[Version<P>; 1]>,
    slot: Option<SlotRecord<P>>,
    /// Whether it is nothing but an address of something else, or will be.
    is_alias: bool,
    /// For an alias that waits for its aliasee's address: that.
    alias_of: Option<Version<P>>,
    /// Lookups without which whoever makes it does not continue; some may be answered.
    waits: SmallVec<[QueryId<P>; 1]>,
    /// Lookups that whoever makes it has made for a continuation, which may be what ends it.
    hopes: SmallVec<[QueryId<P>; 1]>,
}

/// A set of units that are removed together.
pub struct Tracker<P: Parts> {
    dylib: DylibId,
    units: BTreeSet<UnitId<P>>,
}

struct Dylib<P: Parts> {
    name: Arc<str>,
    board: P::Board,
    /// Its place in the order in which dylibs were made.
    serial: u64,
    symbols: FxHashMap<Symbol, Version<P>>,
    links: Vec<Link>,
    generators: Vec<(GeneratorId, P::Generator)>,
    default_tracker: TrackerId<P>,
    initializers: Vec<dylibs::Initializer<P>>,
    opens: u64,
    /// Whether it is to be deinitialised when nothing open reaches it, whatever its initialisers say.
    was_opened: bool,
    /// Who deinitialises it now, each thread as often as it does: a finaliser may open and close its own dylib.
    closing: Vec<std::thread::ThreadId>,
}

enum Purpose<P: Parts> {
    Ticket(P::Ticket),
    Alias(UnitId<P>),
}

/// A lookup under way.
pub struct Query<P: Parts> {
    order: Vec<Link>,
    wants: Vec<Want>,
    /// Whether a name that was wanted is gone.
    is_stale: bool,
    kind: LookupKind,
    until: Until,
    priority: Priority,
    purpose: Purpose<P>,
    /// Questions that have been answered for this lookup.
    asked: FxHashSet<(GeneratorId, Symbol)>,
    /// Questions without an answer yet.
    asking: FxHashSet<RequestId<P>>,
    /// Symbols that are not there yet.
    outstanding: usize,
    /// The symbols, when all are matched.
    versions: SmallVec<[Version<P>; 1]>,
    found: Vec<Option<Found<P>>>,
    /// Who is known not to continue without the answer.
    owner: Option<Doer>,
}

/// A question to a generator under way.
pub struct Request<P: Parts> {
    generator: GeneratorId,
    symbols: Vec<Symbol>,
    queries: Vec<QueryId<P>>,
    /// Lookups without which the generator does not continue; some may be answered.
    waits: SmallVec<[QueryId<P>; 1]>,
    /// Lookups that the generator has made for a continuation, which may be what answers.
    hopes: SmallVec<[QueryId<P>; 1]>,
}

/// Whose definitions, lookups, dylibs and trackers are taken.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Intake {
    All,
    /// Those that belong to what was begun before.
    Begun,
    Nothing,
}

enum Todo<P: Parts> {
    Search(QueryId<P>),
    Aliased(UnitId<P>, Answer<P>),
    /// A user of this unit, which has no name, is gone.
    Collect(UnitId<P>),
    /// The failure that this unit inherited has lost its name.
    Revive(UnitId<P>),
}

/// See the file's header.
pub struct Machine<P: Parts> {
    session: SessionId,
    names: Arc<Names>,
    dylibs: places::Dylibs<P>,
    /// Those that are not closed.
    by_name: FxHashMap<Arc<str>, DylibId>,
    /// Those with openings that were not taken back.
    opened: BTreeSet<DylibId>,
    entries: Slab<Entry<P>>,
    units: Slab<Unit<P>>,
    trackers: Slab<Tracker<P>>,
    queries: Slab<Query<P>>,
    requests: Slab<Request<P>>,
    asking: FxHashMap<(GeneratorId, Symbol), RequestId<P>>,
    next_generator: u64,
    /// Redirectable symbols whose slots lead to a version; some may be gone, or lead elsewhere.
    slots: FxHashMap<Version<P>, SmallVec<[Version<P>; 1]>>,
    /// By failed units: units that failed because of them and can be made again; some may be gone.
    stranded: FxHashMap<UnitId<P>, SmallVec<[UnitId<P>; 1]>>,
    graph: Graph<Version<P>>,
    /// Threads that wait in the middle of tasks.
    blocked: Vec<waits::Blocked<P>>,
    /// Whether somebody has come to wait for more in this step.
    has_new_waits: bool,
    /// Lookups with known owners that have come to wait in this step.
    lodged: Vec<QueryId<P>>,
    intake: Intake,
    /// Threads that have undertaken something, each as often as it has.
    under_way: FxHashMap<std::thread::ThreadId, usize>,
    /// The remaining work of this step; empty between steps.
    todo: VecDeque<Todo<P>>,
    effects: Effects<P>,
}

impl<P: Parts> Machine<P> {
    /// An empty session whose names are `names`.
    #[must_use]
    pub fn new(names: Arc<Names>) -> Self {
        let session = SessionId::fresh();
        Machine {
            session,
            names,
            dylibs: places::Dylibs::new(session),
            by_name: FxHashMap::default(),
            opened: BTreeSet::new(),
            entries: Slab::new(session),
            units: Slab::new(session),
            trackers: Slab::new(session),
            queries: Slab::new(session),
            requests: Slab::new(session),
            asking: FxHashMap::default(),
            next_generator: 0,
            slots: FxHashMap::default(),
            stranded: FxHashMap::default(),
            graph: Graph::new(session),
            blocked: Vec::new(),
            has_new_waits: false,
            lodged: Vec::new(),
            intake: Intake::All,
            under_way: FxHashMap::default(),
            todo: VecDeque::new(),
            effects: Effects::default(),
        }
    }

    /// One step: what `event` replies, and what is to be done.
    pub fn step<E: Event<P>>(&mut self, event: E) -> (E::Reply, Effects<P>) {
        let reply = event.apply(self);
        loop {
            while let Some(todo) = self.todo.pop_front() {
                match todo {
                    Todo::Search(query) => self.search(query),
                    Todo::Aliased(unit, answer) => self.aliased(unit, answer),
                    Todo::Collect(unit) => self.collect(unit),
                    Todo::Revive(unit) => self.revive(unit),
                }
            }
            // An alias may wait for an answer that is given there.
            self.open_circles();
            if self.todo.is_empty() {
                break;
            }
        }
        self.break_cycles();
        let mut effects = std::mem::take(&mut self.effects);
        // A replaced definition still has its name.
        effects.unnamed.retain(|label| self.find(*label).is_none());
        (reply, effects)
    }

    /// The number that its identifiers carry.
    #[must_use]
    pub fn id(&self) -> SessionId {
        self.session
    }

    /// Whether something new is refused; what is `begun` belongs to what was begun before the session was stopped, or to its end.
    fn refuses(&self, begun: bool) -> bool {
        match self.intake {
            Intake::All => false,
            Intake::Begun => !begun,
            Intake::Nothing => true,
        }
    }

    /// How many versions of symbols, units, and lookups there are, and how many units' nodes wait.
    #[must_use]
    pub fn counts(&self) -> (usize, usize, usize, usize) {
        (self.entries.len(), self.units.len(), self.queries.len(), self.graph.len())
    }

    pub(crate) fn name(&self, label: Label) -> Name {
        let dylib = self.dylibs.name(label.dylib).map_or_else(|| "?".into(), Arc::clone);
        Name { dylib, symbol: self.names.text(label.symbol) }
    }

    fn names_of(&self, labels: impl IntoIterator<Item = Label>) -> Vec<Name> {
        labels.into_iter().map(|label| self.name(label)).collect()
    }

    /// How messages name versions.
    fn names_of_versions(&self, versions: &[Version<P>]) -> Vec<Name> {
        let name = |version: &Version<P>| {
            let entry = self.entries.get(*version)?;
            let mut name = self.name(entry.label);
            if entry.flags.has(SymbolFlags::INNER)
                && let Some((outer, _)) = name.symbol.rsplit_once('#')
            {
                name.symbol = outer.into();
            }
            Some(name)
        };
        versions.iter().filter_map(name).collect()
    }

    /// The dylib, when it is open.
    fn open(&mut self, id: DylibId) -> Result<&mut Dylib<P>, Error> {
        self.dylibs.get_mut(id)
    }

    /// The dylib, when it is open and the session still takes such work.
    fn accepting(&mut self, id: DylibId, begun: bool) -> Result<&mut Dylib<P>, Error> {
        if self.refuses(begun) {
            return Err(Error::SessionEnded);
        }
        self.open(id)
    }

    fn find(&self, label: Label) -> Option<Version<P>> {
        self.dylibs.get(label.dylib).ok()?.symbols.get(&label.symbol).copied()
    }
}

/// Adds `key` to `list`; before the list grows, keys of things that are gone are swept out. Constant, amortised.
fn push_swept<T>(list: &mut SmallVec<[Key<T>; 1]>, key: Key<T>, alive: impl Fn(Key<T>) -> bool) {
    if list.len() == list.capacity() {
        list.retain(|known| alive(*known));
        // A slot that is led to and fro comes many times.
        list.sort_unstable();
        list.dedup();
        if list.len() * 2 > list.capacity() {
            list.reserve(list.len());
        }
    }
    list.push(key);
}

#[cfg(test)]
mod tests {
    use smallvec::SmallVec;

    use super::push_swept;
    use crate::ids::{SessionId, Slab};

    #[test]
    fn a_key_that_comes_many_times_is_kept_a_few_times() {
        let mut slab = Slab::new(SessionId::fresh());
        let (first, second) = (slab.insert(1), slab.insert(2));
        let mut list = SmallVec::new();
        for _ in 0..1000 {
            push_swept(&mut list, first, |_| true);
            push_swept(&mut list, second, |_| true);
        }
        assert!(list.len() <= 8, "{}", list.len());
        assert!(list.contains(&first) && list.contains(&second));
    }
}
