//! Look-ups of functions: one, several, and without waiting.
//!
//! ```text
//!   brolga_dylib_function ──► waits, and compiles meanwhile ──► BrolgaFunction
//!   brolga_dylib_request ──► BrolgaRequest ── is_done, wait ──► BrolgaFunction
//!   brolga_dylib_request_then ──► … a thread of the session ──► answer(error, function), once
//! ```
//!
//! **Answers by callback.** The look-up is a future polled by a task of the session: its completion queues such a task, so the C function runs without a lock and may call any function of this library. If it is woken during a poll,
//! it is polled again. A look-up that the session drops incomplete, because it or its threads end, is answered with an error.

use std::ffi::{c_char, c_void};
use std::future::Future;
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use brolga::SessionError;
use brolga::session::linking::{Priority, Task};
use brolga::session::{Function, Request};

use crate::dylib::BrolgaDylib;
use crate::error::{BrolgaCode, BrolgaError, fenced};
use crate::function::{BrolgaFunction, Types};
use crate::out::{give, given, place};
use crate::text::{name, names, room};

/// Gets the answer of a look-up, once: a function, or an error; the other one is null. Both belong to the function of C. It may be called before the call that asks returns, and on any thread.
pub type BrolgaAnswerFn =
    Option<unsafe extern "C" fn(data: *mut c_void, error: *mut BrolgaError, function: *mut BrolgaFunction)>;

/// A pending look-up.
pub struct BrolgaRequest {
    dylib: BrolgaDylib,
    name: String,
    /// `None` after the wait.
    request: Mutex<Option<Request>>,
}

/// The list of types in a symbol, as text.
fn list(symbol: &str) -> &str {
    symbol.find('(').map_or("", |at| &symbol[at..])
}

/// The handle of a function that was found by a name.
fn handle(of: &BrolgaDylib, name: &str, found: Function) -> Result<BrolgaFunction, BrolgaError> {
    let methods = of.dylib.methods()?;
    // An alias has the code of a function with another name, so only that function's types matter. Other methods of the name may be visible.
    let named = methods.iter().find(|method| method.symbol == name);
    let named = named.or_else(|| {
        methods.iter().find(|method| method.name == name && list(&method.symbol) == list(found.symbol()))
    });
    let method = named.or_else(|| methods.iter().find(|method| method.symbol == found.symbol()));
    let symbol = method.map_or(found.symbol(), |method| &method.symbol).to_owned();
    let result = method.and_then(|method| method.result.as_deref()).unwrap_or("");
    let types = Types::of_symbol(&symbol, result);
    // Function names have the meanings that they have in the dylib.
    let context = of.dylib.context();
    Ok(BrolgaFunction::new(found.untyped()?, &symbol, types, &context, &of.runtime, found))
}

/// Returns a function that the dylib sees, by its name (`fib`), if only one method has it, or by its symbol (`fib(Int64)`). Waits until it can be called, and
/// compiles meanwhile.
///
/// # Safety
///
/// `name` is null or ends in a zero byte.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn brolga_dylib_function(
    dylib: Option<&BrolgaDylib>,
    name: *const c_char,
    function: Option<&mut MaybeUninit<*mut BrolgaFunction>>,
) -> Option<Box<BrolgaError>> {
    fenced(|| {
        let (of, place) = (given(dylib, "dylib")?, place(function, "function")?);
        // SAFETY: by the contract.
        let name = unsafe { self::name(name) }?;
        give(place, handle(of, name, of.dylib.function(name)?)?);
        Ok(())
    })
}

/// Returns functions by their names, all or none, each as `brolga_dylib_function` finds it. They are compiled together, by several threads if the session has some.
///
/// # Safety
///
/// There are `count` texts that end in a zero byte at `names`, or it is null, and there is room for `count` pointers at `functions`, or it is null.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn brolga_dylib_functions(
    dylib: Option<&BrolgaDylib>,
    names: *const *const c_char,
    count: usize,
    functions: *mut *mut BrolgaFunction,
) -> Option<Box<BrolgaError>> {
    fenced(|| {
        let of = given(dylib, "dylib")?;
        // SAFETY: by the contract.
        let names = unsafe { self::names(names, count, "names") }?;
        // SAFETY: by the contract.
        let room = unsafe { room(functions, count, "functions") }?;
        let found = of.dylib.functions(&names)?;
        let handles = names.iter().zip(found).map(|(name, found)| handle(of, name, found));
        let handles = handles.collect::<Result<Vec<_>, _>>()?;
        handles.into_iter().zip(room).for_each(|(handle, place)| give(place, handle));
        Ok(())
    })
}

/// Asks for a function, as `brolga_dylib_function`, without waiting for it. A name that is not found is an error of the wait. The caller frees the request with `brolga_request_free`.
/// In a session without threads of its own the thread that waits compiles.
///
/// # Safety
///
/// `name` is null or ends in a zero byte.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn brolga_dylib_request(
    dylib: Option<&BrolgaDylib>,
    name: *const c_char,
    request: Option<&mut MaybeUninit<*mut BrolgaRequest>>,
) -> Option<Box<BrolgaError>> {
    fenced(|| {
        let (dylib, place) = (given(dylib, "dylib")?, place(request, "request")?);
        // SAFETY: by the contract.
        let name = unsafe { self::name(name) }?.to_owned();
        let request = Mutex::new(Some(dylib.dylib.request(&name)));
        give(place, BrolgaRequest { dylib: dylib.clone(), name, request });
        Ok(())
    })
}

/// Whether a request has its answer, so that a wait is short. A request that was waited for, and null, have.
#[unsafe(no_mangle)]
pub extern "C" fn brolga_request_is_done(request: Option<&BrolgaRequest>) -> bool {
    request.is_none_or(|request| lock(&request.request).as_ref().is_none_or(Request::is_done))
}

/// Waits for the function of a request, and compiles meanwhile. A second wait is an error.
#[unsafe(no_mangle)]
#[must_use]
pub extern "C" fn brolga_request_wait(
    request: Option<&BrolgaRequest>,
    function: Option<&mut MaybeUninit<*mut BrolgaFunction>>,
) -> Option<Box<BrolgaError>> {
    fenced(|| {
        let (request, place) = (given(request, "request")?, place(function, "function")?);
        let taken = lock(&request.request).take();
        let gone = || BrolgaError::new(BrolgaCode::Argument, "the request was waited for before");
        let found = taken.ok_or_else(gone)?.wait()?;
        give(place, handle(&request.dylib, &request.name, found)?);
        Ok(())
    })
}

/// Frees a request. What it has begun continues; what it has queued, and nobody else waits for, is not begun. Null is nothing.
#[unsafe(no_mangle)]
pub extern "C" fn brolga_request_free(request: Option<Box<BrolgaRequest>>) {
    drop(request);
}

/// Asks for a function, as `brolga_dylib_function`, and has `answer` called with it, or with the error, once; not if this is an error itself. In a session without threads of its own that is done by
/// this call, or on the thread that makes the last missing symbol. The session stays until the answer.
///
/// # Safety
///
/// `name` is null or ends in a zero byte. `answer` is what `BrolgaAnswerFn` says, may be called on any thread, and returns: no exception of C++ and no `longjmp` leaves it.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn brolga_dylib_request_then(
    dylib: Option<&BrolgaDylib>,
    name: *const c_char,
    answer: BrolgaAnswerFn,
    data: *mut c_void,
) -> Option<Box<BrolgaError>> {
    fenced(|| {
        let (dylib, answer) = (given(dylib, "dylib")?, given(answer, "answer")?);
        // SAFETY: by the contract.
        let name = unsafe { self::name(name) }?.to_owned();
        let request = dylib.dylib.request(&name);
        let answer = Mutex::new(Some(Answer { call: answer, data }));
        let asked = Asked { dylib: dylib.clone(), name, answer, state: Mutex::new(State::Idle(request)) };
        Arc::new(asked).poll();
        Ok(())
    })
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A C function that receives an answer.
struct Answer {
    call: unsafe extern "C" fn(*mut c_void, *mut BrolgaError, *mut BrolgaFunction),
    data: *mut c_void,
}

// SAFETY: the data is passed only to the function that came with it, which may be called on any thread by the contract of `brolga_dylib_request_then`.
unsafe impl Send for Answer {}

impl Answer {
    fn give(self, answer: Result<BrolgaFunction, BrolgaError>) {
        let (error, function) = match answer {
            Ok(function) => (std::ptr::null_mut(), Box::into_raw(Box::new(function))),
            Err(error) => (Box::into_raw(Box::new(error)), std::ptr::null_mut()),
        };
        // SAFETY: by the contract of `brolga_dylib_request_then`; both belong to the function from here on.
        unsafe { (self.call)(self.data, error, function) };
    }
}

/// A look-up whose result is passed to a C function.
struct Asked {
    dylib: BrolgaDylib,
    name: String,
    answer: Mutex<Option<Answer>>,
    state: Mutex<State>,
}

enum State {
    /// It is not being polled.
    Idle(Request),
    /// A thread polls it; `again` is set if it was woken meanwhile.
    Polled {
        again: bool,
    },
    Answered,
}

impl Asked {
    fn poll(self: Arc<Self>) {
        let mut request = {
            let mut state = lock(&self.state);
            match std::mem::replace(&mut *state, State::Answered) {
                State::Idle(request) => {
                    *state = State::Polled { again: false };
                    request
                }
                State::Polled { .. } => return *state = State::Polled { again: true },
                State::Answered => return,
            }
        };
        let waker = Waker::from(self.clone());
        let found = loop {
            match Pin::new(&mut request).poll(&mut Context::from_waker(&waker)) {
                Poll::Ready(found) => break found,
                Poll::Pending => {
                    let mut state = lock(&self.state);
                    if let State::Polled { again: true } = *state {
                        *state = State::Polled { again: false };
                        continue;
                    }
                    return *state = State::Idle(request);
                }
            }
        };
        *lock(&self.state) = State::Answered;
        drop(request);
        self.tell(found);
    }

    fn tell(&self, found: Result<Function, SessionError>) {
        // A panic is a defect, and becomes the error of the answer.
        let mut made = None;
        let error = fenced(|| {
            made = Some(handle(&self.dylib, &self.name, found?)?);
            Ok(())
        });
        let answer = lock(&self.answer).take();
        if let Some(answer) = answer {
            let unmade = || BrolgaError::new(BrolgaCode::Internal, "a defect of Brolga: no answer");
            answer.give(match error {
                Some(error) => Err(*error),
                None => made.ok_or_else(unmade),
            });
        }
    }
}

impl Wake for Asked {
    fn wake(self: Arc<Self>) {
        // The waking thread has other work to finish first, for which the C function might wait.
        let session = self.dylib.dylib.session().clone();
        session.linking().dispatcher().dispatch(Task::new(Priority::Blocking, move || self.poll()));
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        let answer = self.answer.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(answer) = answer {
            let text = format!("`{}` was asked for, and its session has ended before the answer", self.name);
            answer.give(Err(BrolgaError::new(BrolgaCode::Lookup, text)));
        }
    }
}
