//! Limits of calls: a timeout, fuel, and cancellation by any thread.
//!
//! ```text
//!   BrolgaLimits ── brolga_function_call_limited ──► value, or an error with the code `BROLGA_CODE_ENDED`
//!        ▲ brolga_limits_cancel, on any thread
//! ```

use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use brolga::Limits;
use brolga::limits::{Cancel, Fuel, LimitError};

use crate::error::{BrolgaCode, BrolgaError, fenced};
use crate::function::{BrolgaFunction, give_value};
use crate::out::given;
use crate::runtime::BrolgaRuntime;
use crate::value::BrolgaValue;

/// Limits for calls. Made by `brolga_limits_new`, freed by `brolga_limits_free`; several calls on several threads may have the same.
#[derive(Debug, Default)]
pub struct BrolgaLimits {
    cancel: Cancel,
    set: Mutex<Set>,
}

#[derive(Debug, Default)]
struct Set {
    /// The time limit of each call, from its start.
    timeout: Option<Duration>,
    /// The fuel of all calls together.
    fuel: Option<Fuel>,
}

impl BrolgaLimits {
    fn set(&self) -> MutexGuard<'_, Set> {
        self.set.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The limits of a call that starts now.
    pub(crate) fn of_call(&self) -> Limits {
        let set = self.set();
        let mut limits = Limits::new().cancelled_by(&self.cancel);
        if let Some(timeout) = set.timeout {
            limits = limits.timeout(timeout);
        }
        match &set.fuel {
            Some(fuel) => limits.fuelled_by(fuel),
            None => limits,
        }
    }
}

fn ended(error: LimitError) -> BrolgaError {
    let code = match error {
        LimitError::Ended(_) => BrolgaCode::Ended,
        LimitError::Attach(_) | LimitError::NoWatch => BrolgaCode::Machine,
        LimitError::NoPrices => BrolgaCode::Argument,
    };
    BrolgaError::new(code, error.to_string())
}

/// No limits but that calls may be cancelled.
#[unsafe(no_mangle)]
#[must_use]
pub extern "C" fn brolga_limits_new() -> Box<BrolgaLimits> {
    Box::default()
}

/// Frees limits, which no call has any more. Null is nothing.
#[unsafe(no_mangle)]
pub extern "C" fn brolga_limits_free(limits: Option<Box<BrolgaLimits>>) {
    drop(limits);
}

/// How long each call may take, in nanoseconds from its beginning. 0 sets no limit.
#[unsafe(no_mangle)]
#[must_use]
pub extern "C" fn brolga_limits_set_timeout(
    limits: Option<&BrolgaLimits>,
    nanoseconds: u64,
) -> Option<Box<BrolgaError>> {
    fenced(|| {
        given(limits, "limits")?.set().timeout =
            (nanoseconds > 0).then_some(Duration::from_nanos(nanoseconds));
        Ok(())
    })
}

/// How much fuel the calls that begin from now on may take, all together. Programs take some where the options say so (`brolga_options_set_fuel`).
#[unsafe(no_mangle)]
#[must_use]
pub extern "C" fn brolga_limits_set_fuel(
    limits: Option<&BrolgaLimits>,
    units: u64,
) -> Option<Box<BrolgaError>> {
    fenced(|| {
        given(limits, "limits")?.set().fuel = Some(Fuel::new(units));
        Ok(())
    })
}

/// The fuel that is left; 0 if none was given.
#[unsafe(no_mangle)]
pub extern "C" fn brolga_limits_fuel_left(limits: Option<&BrolgaLimits>) -> u64 {
    limits.and_then(|limits| limits.set().fuel.as_ref().map(Fuel::left)).unwrap_or(0)
}

/// Ends all calls with these limits, those under way on any thread and those that begin before `brolga_limits_clear`. Null is nothing.
#[unsafe(no_mangle)]
pub extern "C" fn brolga_limits_cancel(limits: Option<&BrolgaLimits>) {
    if let Some(limits) = limits {
        limits.cancel.cancel();
    }
}

/// Calls that begin from now on are not cancelled. Null is nothing.
#[unsafe(no_mangle)]
pub extern "C" fn brolga_limits_clear(limits: Option<&BrolgaLimits>) {
    if let Some(limits) = limits {
        limits.cancel.clear();
    }
}

/// As `brolga_function_call`, under limits: where one is reached, the call ends, whatever the program catches, and the error has the code `BROLGA_CODE_ENDED`. Null limits
/// are none.
///
/// # Safety
///
/// There are `count` values at `args`, each with the member set that its kind says; objects among them are live handles.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn brolga_function_call_limited(
    function: Option<&BrolgaFunction>,
    limits: Option<&BrolgaLimits>,
    args: *const BrolgaValue,
    count: usize,
    result: Option<&mut MaybeUninit<BrolgaValue>>,
) -> Option<Box<BrolgaError>> {
    fenced(|| {
        let function = given(function, "function")?;
        let limits = limits.map_or_else(Limits::new, BrolgaLimits::of_call);
        // SAFETY: by the contract.
        let called =
            function.runtime().runtime.limited(&limits, || unsafe { function.call_values(args, count) });
        give_value(called.map_err(ended)??, result);
        Ok(())
    })
}

/// A function of C that makes calls under limits.
pub type BrolgaLimitedFn = Option<unsafe extern "C" fn(data: *mut c_void)>;

/// Calls `body` with `data`, on this thread: all calls of functions of the run time in it, of every kind, are one call under limits. Where a limit is reached, the call that runs, and each
/// call after it in `body`, is an error with the exception `InterruptException`, which programs do not catch; when `body` has returned, this function returns an error with the code `BROLGA_CODE_ENDED`. Null limits are none.
///
/// # Safety
///
/// `body` returns: no exception of C++ and no `longjmp` leaves it.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn brolga_runtime_limited(
    runtime: Option<&BrolgaRuntime>,
    limits: Option<&BrolgaLimits>,
    body: BrolgaLimitedFn,
    data: *mut c_void,
) -> Option<Box<BrolgaError>> {
    fenced(|| {
        let (runtime, body) = (given(runtime, "runtime")?, given(body, "body")?);
        let limits = limits.map_or_else(Limits::new, BrolgaLimits::of_call);
        // SAFETY: by the contract.
        runtime.runtime.limited(&limits, || unsafe { body(data) }).map_err(ended)
    })
}
