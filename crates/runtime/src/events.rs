//! Events of a run time, for one listener: compiling, publishing, tiers, collections.
//!
//! ```text
//!   compiler, linker, heap ── Events::tell ──► EventListener (a trace, a table, an embedder's `tracing` layer)
//! ```
//!
//! Nothing is measured here: a listener reads the clock when it is called, on the thread of the event. Spans of one thread nest.
//!
//! **Rules for listeners.** A listener is called in the middle of compilations and collections, while its thread or others hold locks of the run time, and
//! while compiled code holds references without roots. So it must not enter the heap, call compiled code, or call the engine or session. Its panics end at
//! the call. Parts of a collection are reported while the other threads are stopped, so it must not wait for a lock that a thread may hold at a safepoint.
//!
//! | row | operation | order | pairs with | without it |
//! |---|---|---|---|---|
//! | N1 | number a task | Relaxed | – | nothing: a number that is used once |
//!
//! Cost: a load and a branch for each event while there is no listener; events are as rare as compilations and collections.

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
    /// One pass of them, by its name in the pipeline; or lowering, or root placement.
    Pass,
    /// Machine code from low IR.
    Generate,
    /// Code into memory, its references resolved.
    Link,
    /// A function, or a loop that continues for long, is compiled again for the next tier.
    Upgrade,
    /// A collection, with the time that it takes to stop the other threads.
    Collect,
    /// A part of a collection, by its name: `stop threads`, `mark`, `weak references`, `verify`, `sweep`. Parts but the first are told while the other threads
    /// are stopped.
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

/// Something that has happened.
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
    /// A task was given to a dispatcher.
    Queued {
        /// Its number, which no other task of the run time has.
        task: u64,
    },
    /// A queued task begins on this thread. Its span follows.
    Started {
        /// Its number.
        task: u64,
    },
    /// Code of a function is in force.
    Published {
        /// The function.
        function: &'e str,
        /// The tier that it is of.
        tier: Tier,
    },
    /// A function has code of the next tier.
    TieredUp {
        /// The function.
        function: &'e str,
    },
    /// Threads have left a loop for better code while it ran. Told the first time, and whenever the number has doubled: a loop may be left as often as
    /// it is entered.
    LeftLoop {
        /// The continuation.
        function: &'e str,
        /// How often by now.
        times: u64,
    },
    /// A function lost its code because something that it depends on was defined.
    Invalidated {
        /// The function.
        function: &'e str,
        /// The reason, as text.
        reason: &'e str,
    },
    /// A function lost its code because memory for code was short.
    Evicted {
        /// The function.
        function: &'e str,
        /// The bytes that are free by it.
        bytes: usize,
    },
    /// A collection has ended.
    Collected {
        /// Whether it looked at all objects.
        is_full: bool,
        /// How long the other threads were stopped, or asked to stop.
        pause: Duration,
        /// Bytes in blocks that hold objects now.
        used: usize,
    },
    /// An interrupt has reached compiled code on this thread.
    Interrupted,
}

/// An observer of events. See the module's page for what it may do.
pub trait EventListener: Send + Sync {
    /// Something has happened on this thread.
    fn event(&self, event: Event<'_>);
}

/// The way from a run time to its listener.
#[derive(Default)]
pub struct Events {
    listener: OnceLock<Arc<dyn EventListener>>,
    tasks: AtomicU64,
}

impl Events {
    /// Tells `listener` about all events from now on; `false` if there is a listener already, which stays.
    pub fn listen(&self, listener: Arc<dyn EventListener>) -> bool {
        self.listener.set(listener).is_ok()
    }

    /// Whether there is a listener: for events whose names cost something to make.
    #[inline]
    pub fn is_on(&self) -> bool {
        self.listener.get().is_some()
    }

    /// Tells the listener, if there is one.
    #[inline]
    pub fn tell(&self, event: Event<'_>) {
        if let Some(listener) = self.listener.get() {
            // The panic hook has reported a panic; nothing more can be done with it.
            let _panicked = fenced(|| listener.event(event));
        }
    }

    /// A number for a task that no other one of this run time has.
    pub fn number_task(&self) -> u64 {
        self.tasks.fetch_add(1, Ordering::Relaxed) // N1
    }

    /// Begins a span, which ends when the result is dropped. `name` is called only if there is a listener.
    pub fn span<N: AsRef<str>>(&self, stage: Stage, name: impl FnOnce() -> N) -> Span<'_> {
        let is_on = self.is_on();
        if is_on {
            self.tell(Event::Begin { stage, name: name().as_ref() });
        }
        // Of a listener that comes meanwhile the span is not begun.
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
