//! A listener that keeps events, each with its time and thread.
//!
//! Invariants. T1: rows are in the order of their times, because the time is read under the lock. T2: the
//! spans of a thread nest: an end without a beginning is dropped, and [`Trace::rows`] ends open spans. T3: a
//! beginning reserves the row of its end, so spans nest in a full trace, too.
//!
//! Cost: a lock, a time and a row of about 100 bytes per event; up to [`MAX_ROWS`].

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use brolga_runtime::events::{Event, EventListener, Stage, Tier};

/// The maximum number of rows in a trace. Later events are counted and dropped.
pub const MAX_ROWS: usize = 1 << 20;

/// See the file's header.
pub struct Trace {
    start: Instant,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    rows: Vec<Row>,
    threads: Vec<Thread>,
    /// The number of open spans, each of which has a reserved row for its end.
    open: usize,
    /// The number of queued tasks by name, and the names of tasks that have started.
    queued: BTreeMap<u64, usize>,
    dropped: u64,
}

struct Thread {
    id: ThreadId,
    name: String,
    /// The open spans, innermost last, each with whether it is in the rows.
    open: Vec<(Stage, bool)>,
}

/// An event with its time.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    /// The time since the trace began.
    pub(crate) at: Duration,
    /// Index of the thread.
    pub(crate) thread: usize,
    pub(crate) what: What,
}

#[derive(Clone, Debug)]
pub(crate) enum What {
    Begin(Stage, String),
    End(Stage),
    Queued(u64),
    Started(u64),
    Published { function: String, tier: Tier },
    TieredUp(String),
    LeftLoop { function: String, times: u64 },
    Invalidated { function: String, reason: String },
    Evicted { function: String, bytes: usize },
    Collected { is_full: bool, pause: Duration, used: usize },
    Interrupted,
}

/// The recorded events.
pub(crate) struct Kept {
    pub(crate) rows: Vec<Row>,
    /// The names of the threads, by index.
    pub(crate) threads: Vec<String>,
    pub(crate) dropped: u64,
}

impl Default for Trace {
    fn default() -> Trace {
        Trace::new()
    }
}

impl Trace {
    /// A trace whose times count from now.
    pub fn new() -> Trace {
        Trace { start: Instant::now(), state: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Every change leaves the rows in a valid state.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of events that did not fit.
    pub fn dropped(&self) -> u64 {
        self.lock().dropped
    }

    /// All rows; open spans and waits end now.
    pub(crate) fn kept(&self) -> Kept {
        let state = self.lock();
        let (mut rows, now) = (state.rows.clone(), self.start.elapsed());
        for (thread, Thread { open, .. }) in state.threads.iter().enumerate() {
            let open = open.iter().rev().filter(|(_, is_kept)| *is_kept);
            rows.extend(open.map(|&(stage, _)| Row { at: now, thread, what: What::End(stage) }));
        }
        rows.extend(state.queued.iter().map(|(&task, &thread)| Row {
            at: now,
            thread,
            what: What::Started(task),
        }));
        let threads = state.threads.iter().map(|thread| thread.name.clone()).collect();
        Kept { rows, threads, dropped: state.dropped }
    }
}

impl State {
    fn thread(&mut self) -> usize {
        let current = thread::current();
        let known = self.threads.iter().position(|thread| thread.id == current.id());
        known.unwrap_or_else(|| {
            let name = current.name().map_or_else(|| format!("thread {}", self.threads.len()), str::to_owned);
            self.threads.push(Thread { id: current.id(), name, open: Vec::new() });
            self.threads.len() - 1
        })
    }

    fn has_room(&self) -> bool {
        self.rows.len() + self.open + self.queued.len() + 1 < MAX_ROWS
    }

    fn push(&mut self, at: Duration, thread: usize, what: What) {
        let is_kept = match &what {
            What::Begin(stage, _) => {
                let is_kept = self.has_room();
                self.threads[thread].open.push((*stage, is_kept));
                self.open += usize::from(is_kept);
                is_kept
            }
            What::End(stage) => match self.threads[thread].open.pop_if(|(open, _)| open == stage) {
                Some((_, is_kept)) => {
                    self.open -= usize::from(is_kept);
                    is_kept
                }
                None => return,
            },
            What::Queued(task) => {
                let is_kept = self.has_room();
                if is_kept {
                    self.queued.insert(*task, thread);
                }
                is_kept
            }
            What::Started(task) => match self.queued.remove(task) {
                Some(_) => true,
                None => return,
            },
            _ => self.has_room(),
        };
        if is_kept {
            self.rows.push(Row { at, thread, what });
        } else {
            self.dropped += 1;
        }
    }
}

impl EventListener for Trace {
    fn event(&self, event: Event<'_>) {
        let what = match event {
            Event::Begin { stage, name } => What::Begin(stage, name.to_owned()),
            Event::End { stage } => What::End(stage),
            Event::Queued { task } => What::Queued(task),
            Event::Started { task } => What::Started(task),
            Event::Published { function, tier, .. } => {
                What::Published { function: function.to_owned(), tier }
            }
            Event::TieredUp { function } => What::TieredUp(function.to_owned()),
            Event::LeftLoop { function, times } => What::LeftLoop { function: function.to_owned(), times },
            Event::Invalidated { function, reason } => {
                What::Invalidated { function: function.to_owned(), reason: reason.to_owned() }
            }
            Event::Evicted { function, bytes } => What::Evicted { function: function.to_owned(), bytes },
            Event::Collected { is_full, pause, used } => What::Collected { is_full, pause, used },
            Event::Interrupted => What::Interrupted,
            // Events that this trace does not record.
            _ => return,
        };
        let mut state = self.lock();
        let thread = state.thread();
        state.push(self.start.elapsed(), thread, what);
    }
}
