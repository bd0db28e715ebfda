//! The linking model as a pure state machine: `step(event)` changes the tables and returns the effects to perform.
//!
//! ```text
//!                ┌──────────────────────── Machine ────────────────────────┐
//!   event ──────►│ dylibs ─► entries (symbol, State) ─► units ─► trackers  │──────► (reply, Effects)
//!                │             ▲ waiters    ports ▼                        │
//!                │          queries         graph of waiting units         │
//!                └─────────────────────────────────────────────────────────┘
//! ```
//!
//! It has no lock, callback, clock or thread. The owner of the machine performs the effects after it has released its
//! lock, so user code and user destructors never run under the lock. Every list in the effects has a fixed order. A
//! query of the tables is a [`Read`]: it has a reply and no effects.
//!
//! | state of a symbol | owns | left by |
//! |---|---|---|
//! | never searched | | a lookup, or a dependence on it: its whole unit starts |
//! | materializing | waiters | resolve, fail, removal |
//! | resolved | address, waiters | emit, fail, removal |
//! | emitted | address, waiters | the last of its transitive dependences is emitted, or one fails; removal |
//! | ready | address | removal, replacement |
//! | failed | the failure with its causes | removal, replacement; being promised again, if it failed because of another symbol that was removed or replaced |
//!
//! A symbol's *version* is its entry's key: a name that was removed and defined again is another version, and a
//! dependence on the old one is refused. An entry outlives its name while ready units use it.
//!
//! A *part* ([`Symbol::part`]) has a name as long as its whole has one. When the whole is removed or replaced, the
//! part is too, in the same step; a part that is being materialized makes both busy.
//!
//! After the session is stopped, an event that adds work is accepted only if it is *begun*: if it belongs to
//! work that began before the stop, or to the end itself. The creator of the event sets this.
//!
//! | file | contents |
//! |---|---|
//! | `define`, `change` | adding definitions; changes of definitions and names in one step |
//! | `search` | lookups |
//! | `duty`, `emit` | operations of responsibilities; emission |
//! | `settle` | starting units, readiness, failure |
//! | `remove` | removal |
//! | `observe` | events for an observer |
//! | `leads`, `contents` | where names lead; the contents of a dylib |
//! | `dylibs`, `places` | links, generators, initialisers; the table of dylibs |
//! | `intake` | checks of names and identifiers from outside |
//! | `undertaking` | work that the end of the session waits for |
//! | `graph`, `forest` | the graph of waiting units |
//! | `waits`, `cycles` | cycles of waiting threads; cycles of waiting units |
//! | `callers` | units that a call under limits would abandon while others wait |
//! | `check` | invariants |

mod callers;
mod change;
mod check;
mod contents;
mod cycles;
mod define;
mod duty;
mod dylibs;
mod emit;
mod forest;
mod graph;
mod intake;
mod leads;
mod observe;
mod places;
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

pub use callers::{Abandon, IsWantedBeside};
pub use change::Change;
pub use contents::{Contents, Progress, SymbolFacts};
pub use define::{Alias, AtOpening, Define, FailForNow, How, NewUnit, Renew};
pub use duty::{
    Attach, Begin, Claim, Delegate, Dependence, Duty, Fail, HandBack, Requested, Resolve, UnitHome,
};
pub use dylibs::{
    AddGenerator, AddLinks, Closing, CreateDylib, CreateTracker, Initialized, Initializers, LinkOrder,
    Opened, Plan, Release, RemoveGenerator, RemoveLink, SetLinks,
};
pub use emit::{Complete, Emit, Group, Incomplete};
pub use leads::{IsDefined, IsPending, Leads};
pub use observe::{Happened, Observe, Observed};
pub use remove::{Close, Dependants, Remaining, RemoveSymbols, RemoveTracker, Stop, Transfer};
pub use search::{Cancel, Generated, Lookup, WaitsFor};
pub use undertaking::{Finish, IsUnderWay, Undertake};
pub use waits::{Await, Block, Doer, NeededBy, Unblock};

use crate::error::{Cause, Error, Failure, Name};
use crate::flags::{Link, LookupKind, Priority, SymbolFlags, Until, Want};
use crate::ids::{DylibId, Key, Label, SessionId, Slab, Symbol};
use crate::names::{Names, Released};
use graph::{Graph, Node, Port};

/// The types that the machine stores and never inspects.
pub trait Parts: Sized + 'static {
    /// The address of a symbol.
    type Address: Copy + Debug + Send + 'static;
    /// The owner of code or data: returned when the unit is removed.
    type Code: Send + 'static;
    /// How a unit is materialized.
    type Source: Send + 'static;
    /// Something that defines missing symbols on demand.
    type Generator: Clone + Send + 'static;
    /// The receiver of a lookup's answer.
    type Ticket: Send + 'static;
    /// The table in which the ready symbols of a dylib are published.
    type Board: Clone + Send + 'static;
}

/// A version of a symbol.
pub type Version<P> = Key<Entry<P>>;
/// A unit: definitions that are materialized, and removed, as a whole.
pub type UnitId<P> = Key<Unit<P>>;
/// A resource tracker.
pub type TrackerId<P> = Key<Tracker<P>>;
/// A lookup.
pub type QueryId<P> = Key<Query<P>>;
/// A request to a generator.
pub type RequestId<P> = Key<Request<P>>;
/// A definition generator in a dylib.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct GeneratorId(pub(crate) u64);

/// A symbol that a lookup found.
pub struct Found<P: Parts> {
    /// The symbol and its dylib.
    pub label: Label,
    pub flags: SymbolFlags,
    /// Its address; `None` if the lookup was for flags only.
    pub address: Option<P::Address>,
    /// The version that was found, for dependences.
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

/// A lookup's answer: the definitions, in the order of the wants.
pub type Answer<P> = Result<Vec<Found<P>>, Error>;

/// How a unit is materialized.
pub enum Source<P: Parts> {
    /// By the embedder.
    Work(P::Source),
    /// The addresses are known.
    Absolute(Vec<(Symbol, P::Address)>),
    /// It has the address of another symbol, which is searched in the link. Created by [`Alias`].
    Alias(Link, Symbol),
}

/// A unit to materialize.
pub struct Work<P: Parts> {
    /// The unit; the receiver is responsible for it.
    pub unit: UnitId<P>,
    /// How it is materialized.
    pub source: P::Source,
    /// Its symbols that are overridden by other definitions.
    pub lost: Vec<Symbol>,
    /// How urgent it is.
    pub priority: Priority,
}

/// A request to a generator, to be started.
pub struct Ask<P: Parts> {
    /// To be answered by [`Generated`].
    pub request: RequestId<P>,
    pub generator: P::Generator,
    /// The dylib to define symbols in.
    pub dylib: DylibId,
    /// The tracker of what it defines.
    pub tracker: TrackerId<P>,
    /// The missing symbols.
    pub symbols: Vec<Symbol>,
    pub kind: LookupKind,
    /// How urgent it is.
    pub priority: Priority,
}

/// The work after a step, in this order. The first list mirrors the tables, so it is applied before the next
/// step, under the same lock.
pub struct Effects<P: Parts> {
    /// Ready symbols to publish (an address) or to retract (`None`).
    pub publish: Vec<(P::Board, Symbol, Option<P::Address>)>,
    /// Finished lookups. Wakers run after the tasks are queued.
    pub answers: Vec<(P::Ticket, Answer<P>)>,
    /// Generators to ask.
    pub asks: Vec<Ask<P>>,
    /// Units to materialize.
    pub work: Vec<Work<P>>,
    /// Sources that will not run, with their overridden symbols. The owner reports the symbols to the source and drops
    /// it.
    pub dropped: Vec<(P::Source, Vec<Symbol>)>,
    /// Unreachable code, in the order in which it is to be freed.
    pub retired: Vec<P::Code>,
    /// Whether references to the retired code remain and must trap ([`Dependants::Tombstone`]).
    pub marks_removed: bool,
    /// Ready code that refers to removed symbols: (user, removed symbol).
    pub orphaned: Vec<(Label, Label)>,
    /// Labels that had a definition before this step and have none after it.
    pub unnamed: Vec<Label>,
    /// Root failures of this step that no lookup was waiting for.
    pub unheard: Vec<Arc<Failure>>,
    /// Events for an observer.
    pub observed: Vec<Observed>,
    /// Embedder values that the tables held, to be dropped.
    pub garbage: Vec<Garbage<P>>,
    /// Whether threads that wait inside tasks may need more units than before, so dispatchers must check their queues
    /// again.
    pub waits_changed: bool,
    /// Names that the tables no longer hold: dropped last, because the lists above need their texts.
    pub released: Released,
}

/// An embedder value whose destructor must not run inside a step.
pub enum Garbage<P: Parts> {
    /// A removed generator.
    Generator(P::Generator),
    /// The board of a closed dylib.
    Board(P::Board),
    /// A failure that no symbol has any more.
    Failure(Arc<Failure>),
    /// A cause that was copied into failures, or that no symbol failed with.
    Cause(Cause),
}

impl<P: Parts> Default for Effects<P> {
    fn default() -> Self {
        Effects {
            publish: Vec::new(),
            answers: Vec::new(),
            asks: Vec::new(),
            work: Vec::new(),
            dropped: Vec::new(),
            retired: Vec::new(),
            marks_removed: false,
            orphaned: Vec::new(),
            unnamed: Vec::new(),
            unheard: Vec::new(),
            observed: Vec::new(),
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

/// A query of the tables, which changes nothing and has no effects.
pub trait Read<P: Parts> {
    /// The answer to the caller.
    type Reply;

    /// Reads the tables. Called by [`Machine::read`].
    fn read(self, machine: &Machine<P>) -> Self::Reply;
}

/// The lookups that wait for a symbol, each with the index of its want, and the port for edges of other units.
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

    fn waiting(&self) -> Option<&Pending<P>> {
        match self {
            State::Materializing(pending) | State::Resolved(_, pending) | State::Emitted(_, pending) => {
                Some(pending)
            }
            State::NeverSearched | State::Ready(_) | State::Failed(_) => None,
        }
    }

    fn port(&self) -> Option<Port<Version<P>>> {
        self.waiting().map(|pending| pending.port)
    }
}

/// One version of a symbol.
pub struct Entry<P: Parts> {
    label: Label,
    flags: SymbolFlags,
    unit: UnitId<P>,
    state: State<P>,
    /// Whether the dylib's table has this version.
    named: bool,
    /// Units emitted with a dependence on this; some may be removed already.
    users: SmallVec<[UnitId<P>; 1]>,
}

enum Phase<P: Parts> {
    Lazy {
        source: Source<P>,
        lost: Vec<Symbol>,
    },
    Materializing(Node<Version<P>>),
    /// Emitted or failed, according to the states of the entries; it has no responsibility any more.
    Done,
}

/// Definitions that are materialized, and removed, as a whole.
pub struct Unit<P: Parts> {
    dylib: DylibId,
    tracker: TrackerId<P>,
    entries: SmallVec<[Version<P>; 1]>,
    phase: Phase<P>,
    codes: Vec<P::Code>,
    /// The source for another attempt. Used if the unit fails before it is ready, for a temporary reason;
    /// kept after a failure if the unit represents initialisers, or failed because of another unit.
    again: Option<Source<P>>,
    /// The versions that it depends on since its emission.
    uses: SmallVec<[Version<P>; 1]>,
    /// Whether it is an alias: it has the address of another symbol.
    is_alias: bool,
    /// Whether a generator has defined it: other definitions replace it.
    is_generated: bool,
    /// The aliasee whose address an alias waits for.
    alias_of: Option<Version<P>>,
    /// Lookups on which its materialization is blocked; some may be answered already.
    waits: SmallVec<[QueryId<P>; 1]>,
    /// Lookups whose continuations may finish its materialization.
    possible_waits: SmallVec<[QueryId<P>; 1]>,
}

/// A set of units that are removed together.
pub struct Tracker<P: Parts> {
    dylib: DylibId,
    units: BTreeSet<UnitId<P>>,
}

/// A generator of a dylib.
struct Generating<P: Parts> {
    id: GeneratorId,
    generator: P::Generator,
    /// The tracker with which it, and what it defines, is removed.
    tracker: TrackerId<P>,
}

struct Dylib<P: Parts> {
    name: Arc<str>,
    board: P::Board,
    /// Its number in the order of creation.
    serial: u64,
    symbols: FxHashMap<Symbol, Version<P>>,
    links: Vec<Link>,
    generators: Vec<Generating<P>>,
    default_tracker: TrackerId<P>,
    initializers: Vec<dylibs::Initializer<P>>,
    opens: u64,
    /// Whether it must be deinitialised when no open dylib reaches it, even if it has no initialisers.
    was_opened: bool,
    /// The threads that deinitialise it now. A thread may be listed more than once: a finaliser may open and close its own
    /// dylib.
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
    /// Whether a requested symbol had been released when the lookup was made.
    is_stale: bool,
    kind: LookupKind,
    until: Until,
    priority: Priority,
    purpose: Purpose<P>,
    /// The generators and symbols whose requests for this lookup were answered.
    asked: FxHashSet<(GeneratorId, Symbol)>,
    /// Requests without an answer yet.
    asking: FxHashSet<RequestId<P>>,
    /// The number of symbols that have not reached the requested state.
    outstanding: usize,
    /// The symbols, when all are matched.
    versions: SmallVec<[Version<P>; 1]>,
    found: Vec<Option<Found<P>>>,
    /// The work that is blocked on the answer, if known.
    owner: Option<Doer>,
    /// The call under limits that the answer belongs to, if it is for that alone; otherwise 0.
    caller: u64,
}

/// A request to a generator under way.
pub struct Request<P: Parts> {
    generator: GeneratorId,
    symbols: Vec<Symbol>,
    queries: Vec<QueryId<P>>,
    /// Lookups on which the generator is blocked; some may be answered already.
    waits: SmallVec<[QueryId<P>; 1]>,
    /// Lookups whose continuations may answer the request.
    possible_waits: SmallVec<[QueryId<P>; 1]>,
}

/// Which definitions, lookups, dylibs and trackers are accepted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Intake {
    All,
    /// Those belonging to work that began before the session was stopped, or to its end.
    Begun,
    Nothing,
}

enum Todo<P: Parts> {
    Search(QueryId<P>),
    Aliased(UnitId<P>, Answer<P>),
    /// A user of this unit was removed, and the unit has no names.
    Collect(UnitId<P>),
    /// The symbol whose failure this unit inherited has lost its name.
    Revive(UnitId<P>),
}

/// The state machine.
pub struct Machine<P: Parts> {
    session: SessionId,
    names: Arc<Names>,
    dylibs: places::Dylibs<P>,
    /// The dylibs that are not closed.
    by_name: FxHashMap<Arc<str>, DylibId>,
    /// The dylibs with more openings than closings.
    opened: BTreeSet<DylibId>,
    entries: Slab<Entry<P>>,
    units: Slab<Unit<P>>,
    trackers: Slab<Tracker<P>>,
    queries: Slab<Query<P>>,
    requests: Slab<Request<P>>,
    asking: FxHashMap<(GeneratorId, Symbol), RequestId<P>>,
    next_generator: u64,
    /// By failed unit: units that failed because of it and have another attempt; some may be removed already.
    stranded: FxHashMap<UnitId<P>, SmallVec<[UnitId<P>; 1]>>,
    graph: Graph<Version<P>>,
    /// Threads that wait inside tasks.
    blocked: Vec<waits::Blocked<P>>,
    /// Whether this step added waits.
    has_new_waits: bool,
    /// Lookups with known owners that began to wait in this step.
    new_lookups: Vec<QueryId<P>>,
    intake: Intake,
    /// For each thread, the number of its undertakings.
    under_way: FxHashMap<std::thread::ThreadId, usize>,
    /// The remaining work of this step; empty between steps.
    todo: VecDeque<Todo<P>>,
    effects: Effects<P>,
    is_observed: bool,
    /// The number of events recorded.
    observed: u64,
}

impl<P: Parts> Machine<P> {
    /// An empty session that interns its names in `names`.
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
            stranded: FxHashMap::default(),
            graph: Graph::new(session),
            blocked: Vec::new(),
            has_new_waits: false,
            new_lookups: Vec::new(),
            intake: Intake::All,
            under_way: FxHashMap::default(),
            todo: VecDeque::new(),
            effects: Effects::default(),
            is_observed: false,
            observed: 0,
        }
    }

    /// Applies `event`. Returns its reply and the effects to perform.
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
            // Breaking a cycle may answer lookups for which aliases wait; this adds work, hence the loop.
            self.break_lookup_cycles();
            if self.todo.is_empty() {
                break;
            }
        }
        self.break_cycles();
        let mut effects = std::mem::take(&mut self.effects);
        // The label of a replaced definition has another definition, so it is not unnamed.
        effects.unnamed.retain(|label| self.find(*label).is_none());
        (reply, effects)
    }

    /// Queries the tables.
    pub fn read<R: Read<P>>(&self, read: R) -> R::Reply {
        read.read(self)
    }

    /// The number carried by identifiers of this session.
    #[must_use]
    pub fn id(&self) -> SessionId {
        self.session
    }

    /// Whether an event that adds work is refused; see the file's header for `begun`.
    fn refuses(&self, begun: bool) -> bool {
        match self.intake {
            Intake::All => false,
            Intake::Begun => !begun,
            Intake::Nothing => true,
        }
    }

    /// The numbers of symbol versions, units, lookups, and units that wait for others.
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

    /// As [`Machine::names_of`], each name once: of a symbol and its parts.
    fn names_without_repetition(&self, labels: impl IntoIterator<Item = Label>) -> Vec<Name> {
        let mut seen = FxHashSet::default();
        let is_first = |label: &Label| seen.insert((label.dylib, label.symbol.whole()));
        self.names_of(labels.into_iter().filter(is_first).collect::<Vec<_>>())
    }

    fn names_of_versions(&self, versions: &[Version<P>]) -> Vec<Name> {
        let entries = versions.iter().filter_map(|version| self.entries.get(*version));
        self.names_of(entries.map(|entry| entry.label))
    }

    /// The dylib, if it is not closed.
    fn open(&mut self, id: DylibId) -> Result<&mut Dylib<P>, Error> {
        self.dylibs.get_mut(id)
    }

    /// The dylib, if it is not closed and the session accepts the work.
    fn accepting(&mut self, id: DylibId, begun: bool) -> Result<&mut Dylib<P>, Error> {
        if self.refuses(begun) {
            return Err(Error::SessionEnded);
        }
        self.open(id)
    }

    fn find(&self, label: Label) -> Option<Version<P>> {
        self.dylibs.get(label.dylib).ok()?.symbols.get(&label.symbol).copied()
    }

    fn entry_at(&self, label: Label) -> Option<&Entry<P>> {
        self.entries.get(self.find(label)?)
    }
}

/// Adds `key` to `list`. Before the list grows, dead keys and duplicates are removed. Amortised constant time.
fn push_swept<T>(list: &mut SmallVec<[Key<T>; 1]>, key: Key<T>, alive: impl Fn(Key<T>) -> bool) {
    if list.len() == list.capacity() {
        list.retain(|known| alive(*known));
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
    fn repeated_keys_do_not_grow_the_list() {
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
