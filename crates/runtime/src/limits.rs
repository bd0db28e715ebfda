//! Limits of calls: a deadline, a token that any thread may cancel, fuel. Reaching one ends the call in a way
//! that cannot be caught.
//!
//! ```text
//!   limited ── a frame on the thread ──► body ──► calls of compiled code ──► the frame is removed; the call's own result, or how it ended
//!                   ▲       ▲
//!        Watch: its deadline │         each writes the reason into the frame, then sets the end bit of the thread's poll word
//!                          Cancel
//! ```
//!
//! **The end.** While the bit is set, every poll throws, and `brolga_unwind` skips all handlers of compiled
//! code up to the entry from Rust (`routines/unwind.rs`). So no handler receives the end, nor an exception
//! thrown on its way. A host function in between receives the error of its own call and may return anything:
//! the code that called it ends at its next poll. The bit stays set until the innermost ended frame is left.
//! `finally` blocks of the program do not run.
//!
//! **Nesting.** A limited call within a limited call is subject to its own limits and the outer ones; the end
//! of the outer call also ends the inner one.
//!
//! **Polls** are at loop heads, and at the entries of functions that call. Code without either terminates.
//!
//! **Fuel** is counted by the program itself (`brolga_ir::fuel`) in words of the thread (`thread/fuel.rs`). A
//! limited call takes all that is in the tank, but no more than an outer call has left, and returns what it
//! has not used. A call that runs out ends at that statement, not at a poll, so its effects until then are
//! the same on every target and at every level.
//!
//! Cost: a lock, plus the cost of `watch.rs` for deadlines; none in compiled code, except for fuel.
//!
//! **Finalizers** that call compiled code are subject to the limits of the call that triggered the collection
//! (`heap/finalize.rs`).
//!
//! Not done: interrupting a routine of the run time, a C function, a collection, or a Cranelift stage of a
//! function: the call ends after them.

mod elsewhere;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::{Duration, Instant};

use crate::instance::Runtime;
use crate::thread::{AttachError, Interrupt, with_attached, with_attached_to};
use crate::watch::{EndFrame, Ended, WokenAtEnd};

pub use elsewhere::Remaining;

/// Why a limited call has no result.
#[derive(thiserror::Error, Clone, Copy, PartialEq, Eq, Debug)]
pub enum LimitError {
    /// A limit was reached, possibly before anything was called.
    #[error(transparent)]
    Ended(#[from] Ended),
    /// The thread cannot run compiled code.
    #[error(transparent)]
    Attach(#[from] AttachError),
    /// The system could not create the thread that watches the clock.
    #[error("there is no thread for deadlines")]
    NoWatch,
    /// The limit is fuel, and no program of the run time has prices.
    #[error("nothing takes fuel: programs get prices by `Options::fuel`")]
    NoPrices,
}

/// A token by which its holders end the calls that use it. Clones share one token.
///
/// It is sticky: once cancelled, calls with it end immediately, including those that begin later, until it is
/// [cleared](Cancel::clear).
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

    /// Stops ending calls that begin from now on. Ended calls stay ended.
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

/// A tank of fuel, which limits the work of priced programs ([`brolga_ir::fuel`]). Clones share one tank.
///
/// A limited call takes its contents, and returns what it has not used. Of concurrent calls the first one
/// gets all of it.
#[derive(Clone, Default)]
pub struct Fuel {
    units: Arc<Mutex<u64>>,
}

impl Fuel {
    /// A tank with `units` units.
    pub fn new(units: u64) -> Fuel {
        Fuel { units: Arc::new(Mutex::new(units)) }
    }

    /// The units in it.
    pub fn left(&self) -> u64 {
        *self.lock()
    }

    /// Adds units.
    pub fn add(&self, units: u64) {
        let mut left = self.lock();
        *left = left.saturating_add(units);
    }

    /// Removes units, down to zero.
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

/// Limits for calls. Several may be set; the first one reached takes effect.
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

    /// Ends calls at this time.
    #[must_use]
    pub fn deadline(self, at: Instant) -> Limits {
        Limits { deadline: Some(at), ..self }
    }

    /// Ends each call after this time, counted from its start. A time beyond the clock's range sets no limit.
    #[must_use]
    pub fn timeout(self, after: Duration) -> Limits {
        Limits { timeout: Some(after), ..self }
    }

    /// The time at which a call ends that begins now. A time beyond the clock's range never comes.
    fn end(&self) -> Option<Instant> {
        let after = self.timeout.and_then(|after| Instant::now().checked_add(after));
        after.into_iter().chain(self.deadline).min()
    }

    /// Ends calls when the token is cancelled.
    #[must_use]
    pub fn cancelled_by(self, cancel: &Cancel) -> Limits {
        Limits { cancel: Some(cancel.clone()), ..self }
    }

    /// Ends calls when the tank is empty. Only priced programs use fuel (`Options::fuel`); if no program of the
    /// run time is priced, a call under this limit is an error.
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
    /// The units that were in it, and the part that the call received.
    taken: u64,
    given: u64,
    /// The remaining units of an outer call.
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
        // From here on no other code ends the frame. The thread was attached when the frame was made.
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
    /// Whether a limited call of this thread has reached a limit, so that further work in it is useless.
    pub fn has_ended(self: &Arc<Self>) -> bool {
        // A thread that runs no compiled code of the runtime is under none of its limits, and need not be
        // attached for this query.
        with_attached_to(Arc::as_ptr(self), |thread| thread.is_ending()).unwrap_or(false)
    }

    /// The innermost limited call of this thread, as a number; 0 if there is none. An inner call has a
    /// greater number than an outer one, and numbers are unique in a runtime.
    pub fn limited_call(self: &Arc<Self>) -> u64 {
        self.of_limits(|limits| limits.last().map_or(0, |frame| frame.number()))
    }

    /// The numbers of the limited calls of this thread that have ended, including their inner calls.
    pub fn ended_calls(self: &Arc<Self>) -> Vec<u64> {
        self.of_limits(|limits| {
            let ended = limits.iter().skip_while(|frame| frame.ended().is_none());
            ended.map(|frame| frame.number()).collect()
        })
    }

    /// Calls `waker` when a limited call of this thread ends, until the result is dropped. The thread may
    /// wait meanwhile.
    pub fn wake_at_end(self: &Arc<Self>, waker: &Waker) -> WakeAtEnd {
        let frames: Vec<Arc<EndFrame>> = self.of_limits(|limits| limits.to_vec());
        WakeAtEnd { _wakes: frames.iter().map(|frame| frame.wake_at_end(waker.clone())).collect() }
    }

    /// A thread that runs no compiled code of the runtime is in none of its limited calls.
    fn of_limits<R: Default>(self: &Arc<Self>, look: impl FnOnce(&[Arc<EndFrame>]) -> R) -> R {
        with_attached_to(Arc::as_ptr(self), |thread| thread.with_limits(look)).unwrap_or_default()
    }

    /// Runs `body` under limits: compiled code of this runtime that it calls on this thread ends when one is
    /// reached, regardless of the program's handlers.
    ///
    /// Each call in `body` that is ended returns an `InterruptException`, as does each further one: there is
    /// no result in time.
    ///
    /// # Errors
    /// A limit was reached before `body` returned (if before it began, it does not run), the thread cannot be
    /// attached, or the limit is fuel and no program is priced.
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
