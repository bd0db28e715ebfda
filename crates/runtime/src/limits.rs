//! Limits of calls: a deadline, a token that any thread may cancel, fuel. The end that they bring cannot be caught.
//!
//! ```text
//!   limited ── a frame on the thread ──► body ──► calls of compiled code ──► the frame goes; the call's own result, or how it ended
//!                   ▲       ▲
//!        Watch: its deadline │         each writes why into the frame, then sets the end bit of the thread's poll word
//!                          Cancel
//! ```
//!
//! **The end.** While the bit is set, every poll throws, and `brolga_unwind` skips all handlers of compiled code up to the entry from Rust
//! (`routines/unwind.rs`). So a handler gets neither the end nor an exception thrown on its way. A host function in between gets the error of
//! its own call and may return anything: the code that called it ends at its next poll. The bit stays until the innermost frame that has
//! ended is left. `finally` blocks of the program do not run.
//!
//! **Nesting.** A limited call within a limited call has its own limits and the outer ones; the end of the outer call ends the inner one as well.
//!
//! **Polls** are at loop heads, and at the entries of functions that call. Code without either terminates.
//!
//! **Fuel** is counted by the program itself (`brolga_ir::fuel`) in words of the thread (`thread/fuel.rs`). A limited call takes all that is in the tank, no
//! more than an outer call has left, and puts back what it has not used. A call that runs out ends at that statement, and not at a poll, so its effects
//! until then are the same on every target and at every level.
//!
//! Cost: a lock, and for deadlines those of `watch.rs`; in compiled code nothing, except for fuel.
//!
//! **Finalizers** that call compiled code are under the limits of the call that triggered the collection (`heap/finalize.rs`).
//!
//! Not done: interrupting a routine of the run time, a C function, a collection, or a stage of Cranelift in a function: the call ends after them.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::{Duration, Instant};

use crate::instance::Runtime;
use crate::thread::{AttachError, Interrupt, with_attached, with_attached_to};
use crate::watch::{EndFrame, Ended, WokenAtEnd};

/// Why something under limits has no result.
#[derive(thiserror::Error, Clone, Copy, PartialEq, Eq, Debug)]
pub enum LimitError {
    /// A limit was reached, perhaps before anything was called.
    #[error(transparent)]
    Ended(#[from] Ended),
    /// The thread cannot run compiled code.
    #[error(transparent)]
    Attach(#[from] AttachError),
    /// The system gives no thread that watches the clock.
    #[error("there is no thread for deadlines")]
    NoWatch,
    /// The limit is fuel, and no program of the run time has prices.
    #[error("nothing takes fuel: programs get prices by `Options::fuel`")]
    NoPrices,
}

/// A token by which its holders end the calls that were given it. Clones are one token.
///
/// It is sticky: once cancelled, calls with it end at once, also those that begin later, until it is [cleared](Cancel::clear).
#[derive(Clone, Default)]
pub struct Cancel {
    shared: Arc<Mutex<Cancelling>>,
}

#[derive(Default)]
struct Cancelling {
    is_cancelled: bool,
    /// The calls under way.
    frames: Vec<Arc<EndFrame>>,
}

impl Cancel {
    /// A token that is not cancelled.
    pub fn new() -> Cancel {
        Cancel::default()
    }

    /// Ends all calls with this token, those under way and those that begin before it is cleared.
    pub fn cancel(&self) {
        let mut shared = self.lock();
        shared.is_cancelled = true;
        shared.frames.iter().for_each(|frame| frame.end(Ended::Cancelled));
    }

    /// Whether it is cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.lock().is_cancelled
    }

    /// Calls that begin from now on are not ended. Ended calls stay ended.
    pub fn clear(&self) {
        self.lock().is_cancelled = false;
    }

    fn lock(&self) -> MutexGuard<'_, Cancelling> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Cancel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Cancel({})", self.is_cancelled())
    }
}

/// A tank of fuel: how much programs that have prices may do ([`brolga_ir::fuel`]). Clones are one tank.
///
/// A limited call takes what is in it, and puts back what it has not used. Of several calls at a time the first one has all of it.
#[derive(Clone, Default)]
pub struct Fuel {
    units: Arc<Mutex<u64>>,
}

impl Fuel {
    /// A tank with so many units.
    pub fn new(units: u64) -> Fuel {
        Fuel { units: Arc::new(Mutex::new(units)) }
    }

    /// The units in it.
    pub fn left(&self) -> u64 {
        *self.lock()
    }

    /// Puts so many units into it.
    pub fn add(&self, units: u64) {
        let mut left = self.lock();
        *left = left.saturating_add(units);
    }

    /// Takes so many units out of it, as far as there are.
    pub fn take(&self, units: u64) {
        let mut left = self.lock();
        *left = left.saturating_sub(units);
    }

    fn take_all(&self) -> u64 {
        std::mem::take(&mut *self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, u64> {
        self.units.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Fuel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Fuel({})", self.left())
    }
}

/// Limits for calls. Several may be set; the first one that is reached counts.
#[derive(Clone, Default, Debug)]
pub struct Limits {
    deadline: Option<Instant>,
    timeout: Option<Duration>,
    cancel: Option<Cancel>,
    fuel: Option<Fuel>,
}

impl Limits {
    /// No limits.
    pub fn new() -> Limits {
        Limits::default()
    }

    /// Ends at this time.
    #[must_use]
    pub fn deadline(self, at: Instant) -> Limits {
        Limits { deadline: Some(at), ..self }
    }

    /// Each call ends after this time, from its start.
    #[must_use]
    pub fn timeout(self, after: Duration) -> Limits {
        Limits { timeout: Some(after), ..self }
    }

    /// The time at which a call ends that begins now. One that no clock shows never comes.
    fn end(&self) -> Option<Instant> {
        let after = self.timeout.and_then(|after| Instant::now().checked_add(after));
        after.into_iter().chain(self.deadline).min()
    }

    /// Ends when the token is cancelled.
    #[must_use]
    pub fn cancelled_by(self, cancel: &Cancel) -> Limits {
        Limits { cancel: Some(cancel.clone()), ..self }
    }

    /// Ends when the tank is empty. Only programs that have prices take from it (`Options::fuel`); where there is none, a call under this limit is an error.
    #[must_use]
    pub fn fuelled_by(self, fuel: &Fuel) -> Limits {
        Limits { fuel: Some(fuel.clone()), ..self }
    }
}

/// Wakers that limited calls call when they end, until this is dropped.
pub struct WakeAtEnd {
    _wakes: Vec<WokenAtEnd>,
}

/// Limits in force on the running thread, until this is dropped.
struct InForce<'r> {
    runtime: &'r Arc<Runtime>,
    frame: Arc<EndFrame>,
    deadline: Option<(Instant, u64)>,
    cancel: Option<Cancel>,
    fuel: Option<Burning>,
}

/// A tank in use.
struct Burning {
    tank: Fuel,
    /// The units that were in it, and the part of them that the call has.
    taken: u64,
    given: u64,
    /// The units of a call further out.
    outer: Option<u64>,
}

impl Drop for InForce<'_> {
    fn drop(&mut self) {
        if let Some(key) = self.deadline {
            self.runtime.watch().take_back(key);
        }
        if let Some(cancel) = &self.cancel {
            cancel.lock().frames.retain(|frame| !Arc::ptr_eq(frame, &self.frame));
        }
        // From here on no other code ends the frame. The thread was attached when it was made.
        let _left = with_attached(self.runtime, |thread| {
            if let Some(burning) = &self.fuel {
                let used = burning.given - thread.fuel_left().unwrap_or(0).min(burning.given);
                burning.tank.add(burning.taken - used);
                thread.set_fuel(burning.outer.map(|outer| outer - used));
            }
            thread.leave_limits(&self.frame);
        });
    }
}

impl Runtime {
    /// Whether a limited call of this thread has reached a limit, so that what it still does is in vain.
    pub fn has_ended(self: &Arc<Self>) -> bool {
        // A thread that runs no compiled code of the runtime is under no limit of it, and need not be attached to say so.
        with_attached_to(Arc::as_ptr(self), |thread| thread.is_ending()).unwrap_or(false)
    }

    /// The innermost limited call that this thread is in, as a number; 0 if there is none. An inner call has a greater number than an outer
    /// one, and no two calls of a runtime have the same.
    pub fn limited_call(self: &Arc<Self>) -> u64 {
        self.of_limits(|limits| limits.last().map_or(0, |frame| frame.number()))
    }

    /// The limited calls of this thread that have ended, with those inside of them, by their numbers.
    pub fn ended_calls(self: &Arc<Self>) -> Vec<u64> {
        self.of_limits(|limits| {
            let ended = limits.iter().skip_while(|frame| frame.ended().is_none());
            ended.map(|frame| frame.number()).collect()
        })
    }

    /// Calls `waker` when a limited call that this thread is in ends, until the result is dropped. The thread may wait meanwhile.
    pub fn wake_at_end(self: &Arc<Self>, waker: &Waker) -> WakeAtEnd {
        let frames: Vec<Arc<EndFrame>> = self.of_limits(|limits| limits.to_vec());
        WakeAtEnd { _wakes: frames.iter().map(|frame| frame.wake_at_end(waker.clone())).collect() }
    }

    /// A thread that runs no compiled code of the runtime is in no limited call of it.
    fn of_limits<R: Default>(self: &Arc<Self>, look: impl FnOnce(&[Arc<EndFrame>]) -> R) -> R {
        with_attached_to(Arc::as_ptr(self), |thread| thread.with_limits(look)).unwrap_or_default()
    }

    /// Runs `body` under limits: compiled code of this runtime that it calls on this thread ends when one is reached, with any handlers of the program.
    ///
    /// Each call in `body` that is ended gives an `InterruptException`, and so does each further one: there is no result in time.
    ///
    /// # Errors
    /// A limit was reached before `body` came back; if that was so at the beginning, it does not run. The thread cannot be attached. The limit is fuel, and no program has prices.
    pub fn limited<R>(self: &Arc<Self>, limits: &Limits, body: impl FnOnce() -> R) -> Result<R, LimitError> {
        if limits.fuel.is_some() && !self.has_prices() {
            return Err(LimitError::NoPrices);
        }
        let deadline = limits.end();
        if deadline.is_some_and(|at| at <= Instant::now()) {
            return Err(Ended::Deadline.into());
        }
        let thread = Interrupt::for_current(self)?;
        let (number, has_fuel) = (self.watch().number(), limits.fuel.is_some());
        let frame = Arc::new(EndFrame::new(number, has_fuel, move || thread.end()));
        with_attached(self, |thread| thread.enter_limits(frame.clone()))?;
        let mut in_force = InForce { runtime: self, frame, deadline: None, cancel: None, fuel: None };
        if let Some(cancel) = &limits.cancel {
            let mut shared = cancel.lock();
            if shared.is_cancelled {
                drop(shared);
                return Err(Ended::Cancelled.into());
            }
            shared.frames.push(in_force.frame.clone());
            in_force.cancel = Some(cancel.clone());
        }
        if let Some(at) = deadline {
            in_force.deadline = Some(self.watch().add(at, &in_force.frame).ok_or(LimitError::NoWatch)?);
        }
        if let Some(tank) = &limits.fuel {
            in_force.fuel = with_attached(self, |thread| {
                let (taken, outer) = (tank.take_all(), thread.fuel_left());
                let given = outer.map_or(taken, |outer| outer.min(taken));
                thread.set_fuel(Some(given));
                Some(Burning { tank: tank.clone(), taken, given, outer })
            })?;
        }
        let result = body();
        match in_force.frame.ended() {
            Some(ended) => Err(ended.into()),
            None => Ok(result),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::instance::RuntimeOptions;

    fn runtime() -> Arc<Runtime> {
        Runtime::new(RuntimeOptions::default())
    }

    /// Whether compiled code on this thread would end at its next poll.
    fn ends(runtime: &Arc<Runtime>) -> bool {
        with_attached(runtime, |thread| thread.is_ending()).unwrap()
    }

    #[test]
    fn a_token_is_sticky_until_it_is_cleared() {
        let (runtime, cancel) = (runtime(), Cancel::new());
        let limits = Limits::new().cancelled_by(&cancel);
        assert_eq!(runtime.limited(&limits, || ends(&runtime)), Ok(false));
        cancel.cancel();
        let refused = runtime.limited(&limits, || unreachable!("it was cancelled before"));
        assert_eq!(refused, Err(LimitError::Ended(Ended::Cancelled)));
        cancel.clear();
        let ended = runtime.limited(&limits, || {
            cancel.cancel();
            assert!(ends(&runtime));
            cancel.clear();
            assert!(ends(&runtime), "what was ended stays ended");
        });
        assert_eq!(ended, Err(LimitError::Ended(Ended::Cancelled)));
        assert!(!ends(&runtime));
        assert_eq!(runtime.limited(&limits, || 1), Ok(1));
    }

    #[test]
    fn deadlines_end_and_those_that_have_passed_run_nothing() {
        let runtime = runtime();
        let past = Limits::new().deadline(Instant::now());
        let refused = runtime.limited(&past, || unreachable!("it was over before"));
        assert_eq!(refused, Err(LimitError::Ended(Ended::Deadline)));
        let soon = Limits::new().timeout(Duration::from_millis(1));
        let ended = runtime.limited(&soon, || {
            while !ends(&runtime) {
                std::thread::yield_now();
            }
        });
        assert_eq!(ended, Err(LimitError::Ended(Ended::Deadline)));
        assert!(!ends(&runtime));
        assert_eq!(runtime.limited(&Limits::new().timeout(Duration::MAX), || 1), Ok(1));
        assert_eq!(runtime.limited(&Limits::new().timeout(Duration::from_secs(3600)), || 1), Ok(1));
    }

    #[test]
    fn a_waiting_thread_is_woken_when_its_call_ends() {
        struct Count(std::sync::atomic::AtomicUsize);
        impl std::task::Wake for Count {
            fn wake(self: Arc<Self>) {
                self.0.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            }
        }
        let (runtime, outer, inner) = (runtime(), Cancel::new(), Cancel::new());
        let count = Arc::new(Count(Default::default()));
        let woken = || count.0.load(std::sync::atomic::Ordering::SeqCst);
        let waker = Waker::from(count.clone());
        assert_eq!((runtime.limited_call(), runtime.ended_calls()), (0, Vec::new()));
        let limits = |cancel: &Cancel| Limits::new().cancelled_by(cancel);
        let ended = runtime.limited(&limits(&outer), || {
            let first = runtime.limited_call();
            drop(runtime.wake_at_end(&waker));
            let inner_ended = runtime.limited(&limits(&inner), || {
                let second = runtime.limited_call();
                assert!(second > first && first > 0);
                let _wakes = runtime.wake_at_end(&waker);
                inner.cancel();
                assert_eq!((woken(), runtime.ended_calls()), (1, vec![second]));
                outer.cancel();
                assert_eq!((woken(), runtime.ended_calls()), (2, vec![first, second]));
                let _late = runtime.wake_at_end(&waker);
                assert_eq!(woken(), 4, "both have ended before");
            });
            assert_eq!(inner_ended, Err(LimitError::Ended(Ended::Cancelled)));
            assert_eq!(runtime.ended_calls(), vec![first]);
        });
        assert_eq!(ended, Err(LimitError::Ended(Ended::Cancelled)));
        assert_eq!((runtime.limited_call(), woken()), (0, 4));
    }

    #[test]
    fn an_inner_end_stays_inside_and_an_outer_one_stays() {
        let runtime = runtime();
        let (outer, inner) = (Cancel::new(), Cancel::new());
        let (of_outer, of_inner) = (Limits::new().cancelled_by(&outer), Limits::new().cancelled_by(&inner));
        let done = runtime.limited(&of_outer, || {
            let ended = runtime.limited(&of_inner, || inner.cancel());
            assert_eq!(ended, Err(LimitError::Ended(Ended::Cancelled)));
            assert!(!ends(&runtime));
            inner.clear();
            assert_eq!(runtime.limited(&of_inner, || outer.cancel()), Ok(()));
            assert!(ends(&runtime));
        });
        assert_eq!(done, Err(LimitError::Ended(Ended::Cancelled)));
        assert!(!ends(&runtime));
    }
}
