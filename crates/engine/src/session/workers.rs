//! The threads that run compilation tasks.

use brolga_linking::Error as LinkError;
use brolga_linking::Latch;
use brolga_runtime::events::{Event, Stage};
use std::sync::{Arc, Weak};
use std::time::Duration;

use brolga_jit::{Upgrade, Upgrades};
use brolga_linking::{
    Dispatcher, InPlace, Leave, Pool, PoolOptions, PoolQueue, Priority, Seeded, Task, Token, Tokens,
};
use brolga_runtime::{Runtime, with_attached};

/// The threads that run compilation tasks.
pub enum Workers {
    /// This number of threads owned by the session, in addition to waiting threads.
    Pool(usize),
    /// The same, with a limit on the queue, or with threads that need a permit to work.
    PoolWith(PoolOptions),
    /// The waiting threads, immediately.
    Caller,
    /// The waiting thread, in an order that depends only on this seed.
    Seeded(u64),
    /// A dispatcher of the embedder. A [`Pool`] whose last handle may be dropped in a heap scope needs
    /// [`PoolOptions::leave`].
    Own(Arc<dyn Dispatcher>),
}

/// A dispatcher that reports its tasks to the run time's listener, if there is one.
struct Told {
    tasks: Arc<dyn Dispatcher>,
    runtime: Arc<Runtime>,
}

impl Told {
    fn told(&self, task: Task) -> Task {
        let events = self.runtime.events();
        if !events.is_on() {
            return task;
        }
        let number = events.number_task();
        events.tell(Event::Queued { task: number });
        let runtime = self.runtime.clone();
        Task::new(task.priority(), move || {
            runtime.events().tell(Event::Started { task: number });
            let _span = runtime.events().span(Stage::Task, || "");
            task.run();
        })
    }
}

impl Dispatcher for Told {
    fn dispatch(&self, task: Task) {
        self.tasks.dispatch(self.told(task));
    }

    fn dispatch_all(&self, tasks: Vec<Task>) {
        self.tasks.dispatch_all(tasks.into_iter().map(|task| self.told(task)).collect());
    }

    fn takes_rest(&self, weight: u32) -> bool {
        self.tasks.takes_rest(weight)
    }

    fn dispatch_rest(&self, rest: Task) {
        self.tasks.dispatch_rest(self.told(rest));
    }

    fn wait(&self, latch: &dyn Latch) -> Result<(), LinkError> {
        self.tasks.wait(latch)
    }

    fn look_again(&self) {
        self.tasks.look_again();
    }

    fn drain(&self) {
        self.tasks.drain();
    }
}

impl Workers {
    /// Returns the dispatcher of a session with this run time, and the receiver of upgrades if it runs tasks that no thread waits for.
    pub(crate) fn dispatcher(self, runtime: &Arc<Runtime>) -> (Arc<dyn Dispatcher>, Option<Background>) {
        let (tasks, background) = self.make(runtime);
        (Arc::new(Told { tasks, runtime: runtime.clone() }), background)
    }

    fn make(self, runtime: &Arc<Runtime>) -> (Arc<dyn Dispatcher>, Option<Background>) {
        let pool = |options: PoolOptions| {
            let leave = options.leave.unwrap_or_else(|| Arc::new(LeaveHeap(runtime.clone())));
            let pool = Pool::with(PoolOptions { leave: Some(leave), ..options });
            let queue = Background::Pool(pool.queue());
            (Arc::new(pool) as Arc<dyn Dispatcher>, Some(queue))
        };
        match self {
            Workers::Pool(threads) => pool(PoolOptions { threads, ..PoolOptions::default() }),
            Workers::PoolWith(options) => pool(options),
            Workers::Caller => (Arc::new(InPlace::new()), None),
            Workers::Seeded(seed) => (Arc::new(Seeded::new(seed)), None),
            Workers::Own(dispatcher) => {
                let own = Background::Own(Arc::downgrade(&dispatcher));
                (dispatcher, Some(own))
            }
        }
    }
}

/// Runs upgrades as idle tasks of the session's dispatcher. Does not keep the dispatcher alive: code may outlive its session.
pub(crate) enum Background {
    /// The queue of the session's pool, which accepts tasks from running compiled code.
    Pool(PoolQueue),
    /// A dispatcher of the embedder, whose code is called at a safepoint.
    Own(Weak<dyn Dispatcher>),
}

impl Upgrades for Background {
    fn enqueue(&self, upgrade: Upgrade) -> Option<Box<dyn FnOnce() + Send>> {
        let task = Task::new(Priority::Idle, move || {
            upgrade.run();
        });
        match self {
            Background::Pool(queue) => {
                // If the pool is shut down, the session has ended: the function stays in its tier.
                let _shut_down = queue.push(task);
                None
            }
            Background::Own(dispatcher) => {
                let dispatcher = dispatcher.clone();
                Some(Box::new(move || {
                    if let Some(dispatcher) = dispatcher.upgrade() {
                        dispatcher.dispatch(task);
                    }
                }))
            }
        }
    }
}

/// Waits for threads while letting collections continue, for which these threads may wait themselves. Does not wait in a scope, whose borrowed
/// references are not rooted.
struct LeaveHeap(Arc<Runtime>);

impl Leave for LeaveHeap {
    fn leave(&self, wait: &mut dyn FnMut()) {
        // A thread that cannot be attached is not in a heap.
        let waited = with_attached(&self.0, |thread| thread.blocking(&mut *wait));
        if waited.is_err() {
            wait();
        }
    }
}

/// Acquires tokens from a jobserver (of make or cargo) before more than one thread of a pool works: for [`PoolOptions::tokens`].
pub struct Jobserver(jobserver::Client);

impl Jobserver {
    /// Uses the jobserver of this client.
    pub fn new(client: jobserver::Client) -> Jobserver {
        Jobserver(client)
    }
}

/// The time that a thread waits before it tries again.
const WAIT: Duration = Duration::from_millis(2);

impl Tokens for Jobserver {
    fn try_take(&self) -> Option<Token> {
        // If the jobserver does not respond, one thread continues without a token.
        let token = self.0.try_acquire().ok().flatten();
        if token.is_none() {
            #[expect(
                clippy::disallowed_methods,
                reason = "a pipe that other processes share has no waiting that a pool could end"
            )]
            std::thread::sleep(WAIT);
        }
        Some(Box::new(token?))
    }
}
