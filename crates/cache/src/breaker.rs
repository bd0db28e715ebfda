//! A circuit breaker: a store that fails is not used for a while, because each failure may take as long as a time-out.
//!
//! ```text
//!   errors in a row    1                2              3 …
//!   not used            1/2 s ── try ──  1 s ── try ──  2 s …     at most a minute; one success resets it
//! ```

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// See the file's header.
#[derive(Default)]
pub(crate) struct Breaker {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The number of consecutive errors.
    errors: u32,
    closed_until: Option<Instant>,
}

impl Breaker {
    /// Whether the store is currently used.
    pub(crate) fn is_open(&self) -> bool {
        self.state().closed_until.is_none_or(|until| Instant::now() >= until)
    }

    /// Calls `ask`; `None` if the store is currently not used.
    pub(crate) fn try_now<T, E>(&self, ask: impl FnOnce() -> Result<T, E>) -> Option<Result<T, E>> {
        if !self.is_open() {
            return None;
        }
        let answer = ask();
        let mut state = self.state();
        match answer {
            Ok(_) => *state = State::default(),
            Err(_) => {
                let pause = FIRST_PAUSE.saturating_mul(1 << state.errors.min(16)).min(LONGEST_PAUSE);
                state.errors = state.errors.saturating_add(1);
                state.closed_until = Instant::now().checked_add(pause);
            }
        }
        drop(state);
        Some(answer)
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_closes_it_for_longer_and_longer_and_success_opens_it() {
        let breaker = Breaker::default();
        let fail = || Err::<(), ()>(());
        let again = || breaker.state().closed_until = Some(Instant::now());
        assert_eq!(breaker.try_now(|| Ok::<_, ()>(())), Some(Ok(())));
        assert_eq!(breaker.try_now(fail), Some(Err(())));
        assert_eq!(breaker.try_now(fail), None, "it is left alone");
        // As if the pause had ended.
        again();
        assert_eq!(breaker.try_now(fail), Some(Err(())));
        assert!(breaker.state().closed_until.unwrap() > Instant::now() + FIRST_PAUSE, "the pauses grow");
        again();
        assert_eq!(breaker.try_now(|| Ok::<_, ()>(())), Some(Ok(())));
        assert_eq!(breaker.state().errors, 0, "errors are forgotten");
    }
}
