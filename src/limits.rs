//! Ending and suspending calls: tokens, fuel, interrupts, and calls as futures.
//!
//! [`Limits`](crate::Limits) belong to one call; [`Guests`] runs many calls on one thread. Nothing here can be caught by the program that it ends.

/// Calls as futures that yield after each time slice: one server thread runs many programs in turn.
///
/// Any executor works; dropping a call ends it.
///
/// ```
/// use std::pin::pin;
/// use std::task::{Context, Poll, Waker};
///
/// use brolga::limits::Guests;
/// use brolga::{Engine, Limits, Options, Program};
/// const SPIN: &str = "
/// function spin(n::Int64)::Int64
/// 1 ─      goto #2
/// 2 ┄      goto #2
/// end
/// function half(n::Int64)::Int64
/// 1 ─ %1 = Base.checked_sdiv_int(n, 2)::Int64
/// └──      return %1
/// end";
///
/// let engine = Engine::new(Options::new())?;
/// let unit = engine.compile(&Program::read("two.jlir", SPIN.as_bytes())?)?;
/// let (spin, half) = (unit.func::<(i64,), i64>("spin")?, unit.func::<(i64,), i64>("half")?);
///
/// let (guests, limits) = (Guests::default(), Limits::new());
/// let mut endless = pin!(spin.call_async(&guests, &limits, (1,)));
/// let mut short = pin!(half.call_async(&guests, &limits, (8,)));
/// let mut cx = Context::from_waker(Waker::noop());
/// let result = loop {
///     assert!(endless.as_mut().poll(&mut cx).is_pending(), "it never ends, and never keeps this thread");
///     if let Poll::Ready(result) = short.as_mut().poll(&mut cx) {
///         break result?;
///     }
/// };
/// assert_eq!(result, 4);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(inline)]
pub use brolga_runtime::Guests;

/// Interrupts compiled code that runs on one thread; any thread may raise it.
///
/// ```
/// use std::sync::atomic::{AtomicBool, Ordering};
///
/// use brolga::limits::Interrupt;
/// use brolga::{Engine, Options, Program};
/// const SPIN: &str = "
/// function spin()::Nothing
/// 1 ─      goto #2
/// 2 ┄      goto #2
/// end";
///
/// let engine = Engine::new(Options::new())?;
/// let spin = engine.compile(&Program::read("spin.jlir", SPIN.as_bytes())?)?.func::<(), ()>("spin")?;
/// let (interrupt, ended) = (Interrupt::for_current(engine.runtime())?, AtomicBool::new(false));
/// std::thread::scope(|threads| {
///     // A request before the call is void, so it is repeated.
///     threads.spawn(|| {
///         while !ended.load(Ordering::Relaxed) {
///             interrupt.raise();
///             std::thread::yield_now();
///         }
///     });
///     let stopped = spin.call(()).unwrap_err();
///     ended.store(true, Ordering::Relaxed);
///     assert!(stopped.to_string().starts_with("InterruptException"), "{stopped}");
/// });
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(inline)]
pub use brolga_runtime::Interrupt;

pub use brolga_jit::AsyncCall;
pub use brolga_runtime::{Cancel, Ended, Fuel, GuestCall, GuestError, GuestOptions, LimitError};
