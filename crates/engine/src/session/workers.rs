//! Who compiles.

use std::sync::Arc;
use std::time::Duration;

use brolga_linking::{Dispatcher, InPlace, Leave, Pool, PoolOptions, Seeded, Token, Tokens};
use brolga_runtime::{Runtime, with_attached};

/// Who compiles.
pub enum Workers {
    /// Threads of the session's own, so many, besides those that wait.
    Pool(usize),
    /// The same, with a limit to what may be queued, or that ask before they work.
    PoolWith(PoolOptions),
    /// Whoever waits, at once.
    Caller,
    /// Whoever waits, in an order that depends on nothing but this seed.
    Seeded(u64),
    /// Whatever runs tasks for the embedder. A [`Pool`] whose last handle may be dropped in a heap scope needs
    /// [`PoolOptions::leave`].
    Own(Arc<dyn Dispatcher>),
}

impl Workers {
    /// Who runs tasks, of a session with this run time, and whether that goes on when nobody waits.
    pub(crate) fn dispatcher(self, runtime: &Arc<Runtime>) -> (Arc<dyn Dispatcher>, bool) {
        let pool = |options: PoolOptions| {
            let leave = options.leave.unwrap_or_else(|| Arc::new(LeaveHeap(runtime.clone())));
            Arc::new(Pool::with(PoolOptions { leave: Some(leave), ..options }))
        };
        match self {
            Workers::Pool(threads) => (pool(PoolOptions { threads, ..PoolOptions::default() }), true),
            Workers::PoolWith(options) => (pool(options), true),
            Workers::Caller => (Arc::new(InPlace::new()), false),
            Workers::Seeded(seed) => (Arc::new(Seeded::new(seed)), false),
            Workers::Own(dispatcher) => (dispatcher, false),
        }
    }
}

/// Waits for threads in a way that lets collections go on, for which they may wait themselves; not at all in a scope, whose borrowed
/// references nobody keeps.
struct LeaveHeap(Arc<Runtime>);

impl Leave for LeaveHeap {
    fn leave(&self, wait: &mut dyn FnMut()) {
        // A thread that cannot be attached is in no heap.
        let waited = with_attached(&self.0, |thread| thread.blocking(&mut *wait));
        if waited.is_err() {
            wait();
        }
    }
}

/// Asks a jobserver (of make or cargo) before more than one thread of a pool works: for [`PoolOptions::tokens`].
pub struct Jobserver(jobserver::Client);

impl Jobserver {
    /// The jobserver that a client talks to.
    pub fn new(client: jobserver::Client) -> Jobserver {
        Jobserver(client)
    }
}

/// How long a thread waits before it asks again.
const WAIT: Duration = Duration::from_millis(2);

impl Tokens for Jobserver {
    fn try_take(&self) -> Option<Token> {
        // A jobserver that cannot be asked gives nothing: one thread goes on without it.
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
