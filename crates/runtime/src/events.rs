//! Events of a run time, for one listener: compiling, publishing, tiers, collections.
//!
//! ```text
//!   compiler, linker, heap ── Events::tell ──► EventListener (a trace, a table, an embedder's `tracing` layer)
//! ```
//!
//! Nothing is measured here: a listener reads the clock when it is called, on the thread of the event. Spans
//! on one thread nest.
//!
//! **Rules for listeners.** A listener is called in the middle of compilations and collections, while its
//! thread or others hold locks of the run time, and while compiled code holds references without roots. So it
//! must not enter the heap, call compiled code, or call the engine or session. Its panics do not propagate.
//! Parts of a collection are reported while the other threads are stopped, so it must not wait for a lock
//! that a thread may hold at a safepoint.
//!
//! | row | operation | order | pairs with | without it |
//! |---|---|---|---|---|
//! | N1 | number a task | Relaxed | – | nothing: each number is used once |
//!
//! Cost: a load and a branch for each event without a listener; events are as rare as compilations and
//! collections.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

pub use brolga_instances::Tier;

use crate::fence::fenced;

/// Work with a beginning and an end on one thread.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[non_exhaustive]
pub enum Stage {
    /// A task of a session's dispatcher.
    Task,
    /// Passes, lowering and root placement.
    Optimise,
    /// One of the passes, by its name in the pipeline; or lowering, or root placement.
    Pass,
    /// Generating machine code from low IR.
    Generate,
    /// Placing code in memory and resolving its references.
    Link,
    /// Recompiling a function, or a long-running loop, for the next tier.
    Upgrade,
    /// A collection, including the time to stop the other threads.
    Collect,
    /// A phase of a collection, by name: `stop threads`, `mark`, `weak references`, `verify`, `sweep`. All
    /// phases but the first are reported while the other threads are stopped.
    Phase,
    /// Finalizers after a collection.
    Finalize,
}

impl Stage {
    /// Its name in traces and tables.
    pub fn name(self) -> &'static str {
        match self {
            Stage::Task => "task",
            Stage::Optimise => "optimise",
            Stage::Pass => "pass",
            Stage::Generate => "generate code",
            Stage::Link => "link",
            Stage::Upgrade => "upgrade",
            Stage::Collect => "collect",
            Stage::Phase => "phase",
            Stage::Finalize => "finalizers",
        }
    }
}

/// Something that happened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Event<'e> {
    /// A span begins on this thread.
    Begin {
        /// Its kind.
        stage: Stage,
        /// Its subject, such as a function; empty if there is none.
        name: &'e str,
    },
    /// The innermost span of this thread ends.
    End {
        /// Its kind.
        stage: Stage,
    },
    /// A task was passed to a dispatcher.
    Queued {
        /// Its number, unique in the run time.
        task: u64,
    },
    /// A queued task begins on this thread. Its span follows.
    Started { task: u64 },
    /// Code of a function is in force.
    Published {
        /// The function.
        function: &'e str,
        /// The tier of the code.
        tier: Tier,
        /// Whether the code is from a cache or package, and was not compiled here.
        is_loaded: bool,
    },
    /// A function has code of the next tier.
    TieredUp {
        /// The function.
        function: &'e str,
    },
    /// Threads have left a running loop for better code. Reported the first time, and whenever the number has
    /// doubled: a loop may be left as often as it is entered.
    LeftLoop {
        /// The continuation.
        function: &'e str,
        /// The number of times so far.
        times: u64,
    },
    /// A function lost its code because something that it depends on was defined.
    Invalidated {
        /// The function.
        function: &'e str,
        /// The reason, as text.
        reason: &'e str,
    },
    /// A function lost its code because code memory was short.
    Evicted {
        /// The function.
        function: &'e str,
        /// The number of bytes freed.
        bytes: usize,
    },
    /// A collection has ended.
    Collected {
        /// Whether it traced all objects.
        is_full: bool,
        /// How long the other threads were stopped, or being stopped.
        pause: Duration,
        /// Bytes in blocks that now hold objects.
        used: usize,
    },
    /// An interrupt has reached compiled code on this thread.
    Interrupted,
}

/// An observer of events. The module documentation states what it may do.
pub trait EventListener: Send + Sync {
    /// Called for each event, on its thread.
    fn event(&self, event: Event<'_>);
}

/// Passes events of a run time to its listener.
#[derive(Default)]
pub struct Events {
    listener: OnceLock<Arc<dyn EventListener>>,
    tasks: AtomicU64,
}

impl Events {
    /// Makes `listener` receive all events from now on; returns `false` if there already is a listener, which
    /// stays.
    pub fn listen(&self, listener: Arc<dyn EventListener>) -> bool {
        self.listener.set(listener).is_ok()
    }

    /// Whether there is a listener: for events whose names are expensive to make.
    #[inline]
    pub fn is_on(&self) -> bool {
        self.listener.get().is_some()
    }

    /// Passes an event to the listener, if there is one.
    #[inline]
    pub fn tell(&self, event: Event<'_>) {
        if let Some(listener) = self.listener.get() {
            // The panic hook has reported the panic; there is nothing else to do with it.
            let _panicked = fenced(|| listener.event(event));
        }
    }

    /// A number for a task, unique in this run time.
    pub fn number_task(&self) -> u64 {
        self.tasks.fetch_add(1, Ordering::Relaxed) // N1
    }

    /// Begins a span that ends when the result is dropped. `name` is called only if there is a listener.
    pub fn span<N: AsRef<str>>(&self, stage: Stage, name: impl FnOnce() -> N) -> Span<'_> {
        let is_on = self.is_on();
        if is_on {
            self.tell(Event::Begin { stage, name: name().as_ref() });
        }
        // A listener added in between must not see the end of a span that it did not see begin.
        Span { events: is_on.then_some(self), stage }
    }
}

impl fmt::Debug for Events {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Events").field("is_on", &self.is_on()).finish()
    }
}

/// A span that ends when it is dropped.
#[must_use = "a span ends when it is dropped"]
#[derive(Debug)]
pub struct Span<'e> {
    events: Option<&'e Events>,
    stage: Stage,
}

impl Drop for Span<'_> {
    fn drop(&mut self) {
        if let Some(events) = self.events {
            events.tell(Event::End { stage: self.stage });
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::{Event, EventListener, Events, Stage};

    #[derive(Default)]
    struct Log(Mutex<Vec<String>>);

    impl EventListener for Log {
        fn event(&self, event: Event<'_>) {
            assert!(!matches!(event, Event::Interrupted), "panics stay with the listener");
            self.0.lock().unwrap().push(format!("{event:?}"));
        }
    }

    #[test]
    fn spans_that_began_before_the_listener_do_not_end() {
        let (events, log) = (Events::default(), Arc::new(Log::default()));
        let early = events.span(Stage::Link, || -> &str { unreachable!("there is no listener") });
        assert!(events.listen(log.clone()) && !events.listen(log.clone()));
        drop(early);
        events.tell(Event::Interrupted);
        drop(events.span(Stage::Generate, || "f"));
        let told = log.0.lock().unwrap();
        assert_eq!(*told, ["Begin { stage: Generate, name: \"f\" }", "End { stage: Generate }"]);
    }
}
