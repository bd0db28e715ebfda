//! Groups: the units of one program, which are one entry of the store, so that one request brings all that was compiled before.
//!
//! ```text
//!   Cache::group ──► fetch ──► units by their facts ──► Group::find
//!                                 ▲
//!                    Group::keep ─┴─► fresh ── after a quarter of a second, or Group::publish ──► a batch at the end of the entry
//! ```
//!
//! A group is named by what does not change when a function does, such as the name of a program; a unit by all that it depends on. So a changed program
//! finds the units of its unchanged functions, and programs that share a name share an entry.
//!
//! **Nobody waits for a store** longer than a tenth of the time that the result would take to make ([`Group::want`]); units that arrive later are still
//! found, whenever they are looked up. Nothing is prepared for a store that does not take it.
//!
//! **One maker.** A process that needs a missing unit claims its making; meanwhile others wait for the owner of the claim, at most [`LONGEST_WAIT`]. The owner's units
//! are published every [`PUBLISHED_AFTER`]; in a near store others see them, and wait on, because only holders of the key can make them. Who stops waiting has them. The claim ends with its process.
//! If its owner has published nothing, nobody waits for another one: the store may be full.
//!
//! **Size.** Units accumulate in an entry. An entry that is damaged, has more than [`MANY`] batches, or more than [`LARGE`] bytes, is replaced by the next process
//! that publishes: with the units that it has used, and with others up to half of that size.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::batch::Unit;
use crate::digest::Fingerprint;
use crate::guard::{Shared, add, micros};
use crate::line::Job;
use crate::store::{Claim, EntryName};

/// How long an entry waits before it asks for a claim again.
const CLAIM_PAUSE: Duration = Duration::from_millis(3);
/// Larger payloads are not kept.
const MAX_PAYLOAD: usize = 256 << 20;
/// The number of bytes beyond which an entry loses units that are not used.
const LARGE: usize = 8 << 20;
/// The number of batches beyond which an entry is replaced.
const MANY: usize = 64;
/// When fresh units are published at the latest.
const PUBLISHED_AFTER: Duration = Duration::from_millis(250);
/// How long a process waits for others that make what it wants, without news of them.
const LONGEST_WAIT: Duration = Duration::from_secs(1);
/// The same, for what is made quickly.
const SHORTEST_WAIT: Duration = Duration::from_millis(200);

/// A unit that was found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Found {
    /// The payload passed to [`Group::keep`].
    pub payload: Vec<u8>,
    /// The time that it saves, in microseconds.
    pub(crate) saved: u64,
    pub(crate) facts: Fingerprint,
}

/// The units of one program in a [`Cache`](crate::Cache). Clones share them.
#[derive(Clone)]
pub struct Group {
    pub(crate) shared: Arc<Shared>,
    pub(crate) entry: Arc<Entry>,
}

/// An entry of the store, as far as the process has read it.
pub(crate) struct Entry {
    pub(crate) name: EntryName,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    units: BTreeMap<Fingerprint, Kept>,
    /// Units that are not published.
    fresh: Vec<Fingerprint>,
    /// When the first of them was made, or its claim taken.
    first: Option<Instant>,
    /// The time that making them took, in microseconds.
    cost: u64,
    /// Whether the store has answered; `None` before its answer.
    answer: Option<bool>,
    /// Whether others make these.
    wants: BTreeMap<Fingerprint, Want>,
    claims: Vec<Claim>,
    /// Of the stored entry.
    bytes: usize,
    batches: usize,
    is_damaged: bool,
    /// How long callers have waited for others.
    waited: Duration,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Want {
    Asked,
    /// Another one makes it.
    Elsewhere,
    /// It is there, or to be made here.
    Settled,
}

#[derive(Clone)]
struct Kept {
    bytes: Arc<Vec<u8>>,
    at: Range<usize>,
    cost: u64,
    is_used: bool,
}

impl Kept {
    fn payload(&self) -> &[u8] {
        &self.bytes[self.at.clone()]
    }
}

impl Entry {
    pub(crate) fn new(name: EntryName) -> Entry {
        Entry { name, state: Mutex::default(), changed: Condvar::new() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A tenth of the time that the units took which are not published.
    pub(crate) fn grace(&self) -> Duration {
        Duration::from_micros(self.state().cost / 10)
    }

    pub(crate) fn is_fresh(&self) -> bool {
        !self.state().fresh.is_empty()
    }

    fn has(&self, facts: &Fingerprint) -> bool {
        self.state().units.contains_key(facts)
    }

    /// Whether the caller of [`Group::want`] has what it wanted, or has made it.
    fn is_settled(&self, facts: &Fingerprint) -> bool {
        self.state().wants.get(facts).is_none_or(|want| *want == Want::Settled)
    }

    fn settle(&self, facts: &Fingerprint, want: Want) {
        self.state().wants.entry(*facts).and_modify(|known| *known = want);
        self.changed.notify_all();
    }

    /// Reads the entry.
    pub(crate) fn fetch(&self, shared: &Shared) {
        let is_again = self.state().answer.is_some();
        let answer = shared.get(&self.name, is_again);
        let mut state = self.state();
        state.answer = Some(answer.is_some());
        if let Some(bytes) = answer.flatten() {
            let opened = shared.sealer.open(&self.name, &bytes);
            add(&shared.counts.read, bytes.len() as u64);
            add(&shared.counts.refused, u64::from(opened.is_damaged));
            (state.bytes, state.batches, state.is_damaged) = (bytes.len(), opened.batches, opened.is_damaged);
            let fresh: BTreeSet<Fingerprint> = state.fresh.iter().copied().collect();
            let bytes = Arc::new(bytes);
            for row in opened.rows.into_iter().filter(|row| !fresh.contains(&row.facts)) {
                let is_used = state.units.get(&row.facts).is_some_and(|known| known.is_used);
                let kept = Kept { bytes: Arc::clone(&bytes), at: row.payload, cost: row.cost, is_used };
                state.units.insert(row.facts, kept);
            }
        }
        drop(state);
        self.changed.notify_all();
    }

    /// Claims the making of a unit, or finds that it is there.
    pub(crate) fn want(self: &Arc<Self>, shared: &Arc<Shared>, facts: Fingerprint) {
        if self.is_settled(&facts) || self.has(&facts) {
            return self.settle(&facts, Want::Settled);
        }
        match shared.claim(&shared.claim_name(&facts)) {
            None => self.settle(&facts, Want::Settled),
            Some(Some(claim)) => {
                self.fetch(shared);
                let mut state = self.state();
                // An owner that has published nothing could not, and the next one could not, either.
                let is_first = state.wants.get(&facts) == Some(&Want::Asked);
                if !state.units.contains_key(&facts) && is_first {
                    state.claims.push(claim);
                    // Who waits sees that something is made.
                    state.first.get_or_insert(Instant::now());
                }
                drop(state);
                self.settle(&facts, Want::Settled);
            }
            Some(None) => {
                self.settle(&facts, Want::Elsewhere);
                // Unless nobody is left who wants it, or the caller does so.
                if Arc::strong_count(self) > 1 && !shared.is_near() {
                    self.ask_for(shared, facts, CLAIM_PAUSE);
                }
            }
        }
    }

    /// Claims the making of a unit later.
    fn ask_for(self: &Arc<Self>, shared: &Arc<Shared>, facts: Fingerprint, after: Duration) {
        let (entry, own) = (Arc::clone(self), Arc::clone(shared));
        let work = Box::new(move || entry.want(&own, facts));
        shared.line.add(after, Job { publishes: None, work });
    }

    /// Adds the fresh units to the entry, and releases the claims.
    pub(crate) fn publish(&self, shared: &Shared) {
        let mut state = self.state();
        let fresh = std::mem::take(&mut state.fresh);
        state.first = (!state.wants.is_empty()).then(Instant::now);
        let mut units: Vec<(Fingerprint, Kept)> =
            fresh.iter().filter_map(|facts| Some((*facts, state.units.get(facts)?.clone()))).collect();
        let is_anew = state.is_damaged || state.batches >= MANY || state.bytes > LARGE;
        if is_anew && !units.is_empty() {
            let mut room = LARGE / 2;
            let fresh: BTreeSet<&Fingerprint> = fresh.iter().collect();
            for (facts, kept) in &state.units {
                let is_kept = kept.is_used || room >= kept.at.len();
                if is_kept && !fresh.contains(facts) {
                    room = room.saturating_sub(kept.at.len());
                    units.push((*facts, kept.clone()));
                }
            }
        }
        drop(state);
        let mut written = None;
        if !units.is_empty() && shared.is_writable() {
            let rows: Vec<Unit<'_>> = units
                .iter()
                .map(|(facts, kept)| Unit { facts: *facts, cost: kept.cost, payload: kept.payload() })
                .collect();
            let batch = shared.sealer.seal(&self.name, &rows);
            written = shared.put(&self.name, &batch, is_anew, fresh.len() as u64).then_some(batch.len());
        }
        let mut state = self.state();
        match written {
            Some(bytes) if is_anew => (state.bytes, state.batches, state.is_damaged) = (bytes, 1, false),
            Some(bytes) => (state.bytes, state.batches) = (state.bytes + bytes, state.batches + 1),
            None => {}
        }
        state.cost = 0;
        let claims = match state.wants.is_empty() {
            true => std::mem::take(&mut state.claims),
            // Published on the way.
            false => Vec::new(),
        };
        drop(state);
        drop(claims);
        self.changed.notify_all();
    }
}

impl Group {
    /// The group of an entry that is fetched from now on.
    pub(crate) fn fetched(shared: &Arc<Shared>, entry: Arc<Entry>) -> Group {
        if shared.is_near() {
            entry.fetch(shared);
        } else {
            let (own, fetched) = (Arc::clone(shared), Arc::clone(&entry));
            let work = Box::new(move || fetched.fetch(&own));
            shared.line.add(Duration::ZERO, Job { publishes: None, work });
        }
        Group { shared: Arc::clone(shared), entry }
    }

    /// The group of an entry that this process has.
    pub(crate) fn of(shared: &Arc<Shared>, entry: Arc<Entry>) -> Group {
        Group { shared: Arc::clone(shared), entry }
    }

    /// Publishes what is fresh now, in the background.
    pub(crate) fn publish_now(&self) {
        self.shared.line.publish_now(self.entry.name, self.publishing());
    }

    fn publishing(&self) -> Box<dyn FnOnce() + Send> {
        let (shared, entry) = (Arc::clone(&self.shared), Arc::clone(&self.entry));
        Box::new(move || entry.publish(&shared))
    }

    /// Waits until the store has answered, but no longer than this or [`Cache::patience`](crate::Cache::patience), the longer one; whether it has.
    pub fn wait(&self, patience: Duration) -> bool {
        let (begun, mut state) = (Instant::now(), self.entry.state());
        let patience = self.shared.patience.max(patience);
        while state.answer.is_none() {
            let left = patience.saturating_sub(begun.elapsed());
            if left.is_zero() {
                break;
            }
            let waited = self.entry.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner);
            state = waited.0;
        }
        let has_answered = state.answer == Some(true);
        drop(state);
        add(&self.shared.counts.waited, micros(begun.elapsed()));
        has_answered
    }

    /// Whether this unit is there; if not, the caller is about to make it, and others wait for it until [`Group::publish`]. `cost` is how long that will
    /// take: the caller waits up to a tenth of it for the store ([`Cache::patience`](crate::Cache::patience) at least), and up to ten times of it, but at most a second, for
    /// another process that is making it.
    pub fn want(&self, facts: &Fingerprint, cost: Duration) -> bool {
        let (begun, mut state) = (Instant::now(), self.entry.state());
        if state.units.contains_key(facts) {
            return true;
        }
        if state.answer == Some(false) {
            return false;
        }
        state.wants.insert(*facts, Want::Asked);
        let longest =
            LONGEST_WAIT.min(SHORTEST_WAIT.max(cost.saturating_mul(10))).saturating_sub(state.waited);
        let patience = self.shared.patience.max(cost / 10);
        drop(state);
        let is_near = self.shared.is_near();
        match is_near {
            true => self.entry.want(&self.shared, *facts),
            false => self.entry.ask_for(&self.shared, *facts, Duration::ZERO),
        }
        let mut state = self.entry.state();
        let (mut is_elsewhere, mut last_news, mut units) = (false, begun, state.units.len());
        let is_there = loop {
            let want = state.wants.get(facts).copied().unwrap_or(Want::Settled);
            is_elsewhere |= want == Want::Elsewhere;
            let is_there = state.units.contains_key(facts);
            let patience = if want == Want::Elsewhere { longest } else { patience };
            let mut left = patience.saturating_sub(last_news.elapsed());
            if is_there || want == Want::Settled {
                break is_there;
            }
            if left.is_zero() && want == Want::Elsewhere && is_near {
                // Only who has the key adds units: the owner of the claim is alive.
                drop(state);
                self.entry.fetch(&self.shared);
                state = self.entry.state();
                if state.units.len() > units {
                    (last_news, units, left) = (Instant::now(), state.units.len(), longest);
                }
            }
            if left.is_zero() {
                break is_there;
            }
            let left = if is_near { left.min(CLAIM_PAUSE) } else { left };
            let waited = self.entry.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner);
            state = waited.0;
            if is_near {
                drop(state);
                self.entry.want(&self.shared, *facts);
                state = self.entry.state();
            }
        };
        if is_there {
            state.wants.remove(facts);
        }
        if is_elsewhere {
            state.waited += begun.elapsed();
        }
        drop(state);
        add(&self.shared.counts.waited, micros(begun.elapsed()));
        is_there
    }

    /// The unit that depends on these facts, if it is here already. It does not wait.
    pub fn find(&self, facts: &Fingerprint) -> Option<Found> {
        let counts = &self.shared.counts;
        let mut state = self.entry.state();
        let Some(kept) = state.units.get_mut(facts) else {
            add(&counts.misses, 1);
            return None;
        };
        kept.is_used = true;
        let (payload, saved) = (kept.payload().to_vec(), kept.cost);
        drop(state);
        add(&counts.hits, 1);
        add(&counts.saved, saved);
        Some(Found { payload, saved, facts: *facts })
    }

    /// Whether the unit that depends on these facts is here already. It does not wait, and is not counted.
    pub fn has(&self, facts: &Fingerprint) -> bool {
        self.entry.has(facts)
    }

    /// Whether the store takes units, as far as is known.
    pub fn is_writable(&self) -> bool {
        self.shared.is_writable()
    }

    /// Undoes the counting of a hit, and forgets the unit: it is not in the form that its facts promised.
    pub fn refuse(&self, found: &Found) {
        self.shared.refuse(found.saved);
        let mut state = self.entry.state();
        state.units.remove(&found.facts);
        // The next one that publishes writes the entry without it.
        state.is_damaged = true;
    }

    /// Keeps a unit that depends on these facts and took `cost` to make. It reaches the store some time later; look-ups in this process find it immediately.
    /// The payload is not asked for if the store does not take it.
    pub fn keep(&self, facts: &Fingerprint, cost: Duration, payload: impl FnOnce() -> Option<Vec<u8>>) {
        if !self.shared.is_writable() {
            add(&self.shared.counts.left_alone, 1);
            return;
        }
        let Some(payload) = payload().filter(|payload| payload.len() <= MAX_PAYLOAD) else { return };
        let (at, cost) = (0..payload.len(), micros(cost));
        let mut state = self.entry.state();
        let kept = Kept { bytes: Arc::new(payload), at, cost, is_used: true };
        state.units.insert(*facts, kept);
        state.fresh.push(*facts);
        state.cost = state.cost.saturating_add(cost);
        let is_first = state.fresh.len() == 1;
        let is_overdue = state.first.get_or_insert(Instant::now()).elapsed() > PUBLISHED_AFTER;
        // Who has wanted something publishes it.
        let is_timed = state.wants.is_empty();
        drop(state);
        if is_overdue {
            self.publish_now();
        } else if is_first && is_timed {
            let job = Job { publishes: Some(self.entry.name), work: self.publishing() };
            self.shared.line.add(PUBLISHED_AFTER, job);
        }
    }

    /// Adds the units to the store now, in the background; what the caller wanted is made, or will not be.
    pub fn publish(&self) {
        let mut state = self.entry.state();
        state.wants.clear();
        let is_idle = state.fresh.is_empty() && state.claims.is_empty();
        drop(state);
        if !is_idle {
            self.publish_now();
        }
    }
}

impl std::fmt::Debug for Group {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Group").field(&self.entry.name).finish()
    }
}
