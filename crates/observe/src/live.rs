//! A listener that keeps sums of compile times and tasks, for live views.
//!
//! Unlike a [`Trace`](crate::Trace) it keeps no events, so it may listen for as long as the process runs.
//!
//! ```text
//! Begin, End      the time of the innermost span goes to its stage, and of `Upgrade`, `Generate` and `Link` to the function as well
//! Queued, Started the number of queued tasks
//! ```
//!
//! Cost: a lock and an addition per event.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use brolga_runtime::events::{Event, EventListener, Stage};

/// The maximum number of functions with sums. Events of others count only for the session.
const MAX_FUNCTIONS: usize = 1 << 16;

/// The sums, as a listener. See the file's header.
#[derive(Default)]
pub struct Live {
    state: Mutex<Sums>,
}

/// The sums at one moment.
#[derive(Clone, Default)]
pub(crate) struct Sums {
    /// The number of queued tasks.
    pub(crate) queued: u64,
    pub(crate) upgrades: u64,
    pub(crate) invalidations: u64,
    pub(crate) evictions: u64,
    pub(crate) interrupts: u64,
    /// The time spent compiling; nested spans are counted once.
    pub(crate) compiling: Duration,
    /// The compile times of functions, by symbol.
    pub(crate) functions: BTreeMap<String, Duration>,
    open: BTreeMap<u64, Vec<OpenSpan>>,
    threads: Vec<ThreadId>,
}

/// A span that has not ended.
#[derive(Clone)]
struct OpenSpan {
    stage: Stage,
    name: String,
    /// The time when it, or the last span inside it, began or ended.
    since: Instant,
    own: Duration,
}

impl Live {
    /// A listener that has not received any events.
    pub fn new() -> Live {
        Live::default()
    }

    fn lock(&self) -> MutexGuard<'_, Sums> {
        // Every change leaves the sums in a valid state.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The sums so far.
    pub(crate) fn sums(&self) -> Sums {
        self.lock().clone()
    }
}

impl Sums {
    fn thread(&mut self) -> u64 {
        let id = thread::current().id();
        let known = self.threads.iter().position(|thread| *thread == id);
        known.unwrap_or_else(|| {
            self.threads.push(id);
            self.threads.len() - 1
        }) as u64
    }

    fn begin(&mut self, stage: Stage, name: &str, now: Instant) {
        let thread = self.thread();
        let open = self.open.entry(thread).or_default();
        if let Some(outer) = open.last_mut() {
            outer.own += now.saturating_duration_since(outer.since);
        }
        open.push(OpenSpan { stage, name: name.to_owned(), since: now, own: Duration::ZERO });
    }

    fn end(&mut self, stage: Stage, now: Instant) {
        let thread = self.thread();
        let Some(open) = self.open.get_mut(&thread) else { return };
        let Some(span) = open.pop_if(|span| span.stage == stage) else { return };
        if let Some(outer) = open.last_mut() {
            outer.since = now;
        } else {
            self.open.remove(&thread);
        }
        if !matches!(stage, Stage::Optimise | Stage::Generate | Stage::Link | Stage::Upgrade) {
            return;
        }
        let own = span.own + now.saturating_duration_since(span.since);
        self.compiling += own;
        if let Some(time) = self.functions.get_mut(&span.name) {
            *time += own;
        } else if !span.name.is_empty() && self.functions.len() < MAX_FUNCTIONS {
            self.functions.insert(span.name, own);
        }
    }
}

impl EventListener for Live {
    fn event(&self, event: Event<'_>) {
        let now = Instant::now();
        let mut sums = self.lock();
        match event {
            // The time of a pass is attributed to the function that it works on.
            Event::Begin { stage: Stage::Pass | Stage::Phase, .. }
            | Event::End { stage: Stage::Pass | Stage::Phase } => {}
            Event::Begin { stage, name } => sums.begin(stage, name, now),
            Event::End { stage } => sums.end(stage, now),
            Event::Queued { .. } => sums.queued += 1,
            Event::Started { .. } => sums.queued = sums.queued.saturating_sub(1),
            Event::TieredUp { .. } => sums.upgrades += 1,
            Event::Invalidated { .. } => sums.invalidations += 1,
            Event::Evicted { .. } => sums.evictions += 1,
            Event::Interrupted => sums.interrupts += 1,
            // The session and the heap count the other events.
            _ => {}
        }
    }
}

/// Forwards events to several listeners, in order, because a run time has only one.
pub struct Several(Vec<Arc<dyn EventListener>>);

impl Several {
    /// A listener that forwards events to `listeners`.
    pub fn new(listeners: Vec<Arc<dyn EventListener>>) -> Several {
        Several(listeners)
    }
}

impl EventListener for Several {
    fn event(&self, event: Event<'_>) {
        self.0.iter().for_each(|listener| listener.event(event));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_goes_to_the_innermost_span() {
        let live = Arc::new(Live::new());
        let both = Several::new(vec![live.clone(), Arc::new(crate::Trace::new())]);
        both.event(Event::Queued { task: 1 });
        both.event(Event::Queued { task: 2 });
        both.event(Event::Started { task: 1 });
        both.event(Event::Begin { stage: Stage::Upgrade, name: "f(Int64)" });
        both.event(Event::Begin { stage: Stage::Generate, name: "f(Int64)" });
        both.event(Event::End { stage: Stage::Generate });
        // An end without a beginning is ignored.
        both.event(Event::End { stage: Stage::Link });
        both.event(Event::TieredUp { function: "f(Int64)" });
        both.event(Event::End { stage: Stage::Upgrade });
        let sums = live.sums();
        assert_eq!((sums.queued, sums.upgrades), (1, 1));
        assert_eq!(sums.functions.keys().collect::<Vec<_>>(), ["f(Int64)"]);
        assert_eq!(sums.functions["f(Int64)"], sums.compiling);
        assert!(sums.open.is_empty());
    }
}
