//! Looked-up functions: ready to be called, or requested.

use std::future::Future;
use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use brolga_linking::{self as linking, Answer, Error as LinkError, Label, Link, Lookup, Until, required};
use brolga_runtime::{Runtime, with_attached};

use super::cells::Handle;
use super::error::SessionError;
use super::lazy::BODY;
use super::shared::Shared;
use super::target::{self, Moved, Native, Place};
use super::{Session, Tier};
use brolga_jit::{
    InstanceFacts, LookupError, Params, Scoped, ScopedFunc, ScopedParams, TypedFunc, UntypedFunc, Value,
};

/// A callable function: each call reaches the newest definition. A function that is not [lazy](super::Definitions::lazy) can be called even after
/// the session has released it, together with its callees, unless a tombstone removed it.
///
/// ```
/// # extern crate brolga_engine as brolga;
/// use brolga::{Options, Session, Workers};
/// const HALF: &[u8] = "
/// function half(n::Int64)::Int64
/// 1 ─ %1 = Base.checked_sdiv_int(n, 2)::Int64
/// └──      return %1
/// end".as_bytes();
///
/// let session = Session::new(Options::new(), Workers::Caller)?;
/// let main = session.create_dylib("main")?;
/// main.define(main.read("half.jlir", HALF)?)?;
/// let half = main.function("half")?;
/// assert_eq!(half.symbol(), "half(Int64)");
/// assert_eq!(half.typed::<(i64,), i64>()?.call((8,))?, 4);
/// assert_eq!(half.untyped()?.call(&[8])?, [4]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Function {
    function: Handle,
}

/// A version of a function and the code that serves calls in its worlds, like Julia's `CodeInstance`. docs/sessions.md maps the fields.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct CodeInstance {
    /// The first and the last world in which it is valid; the last is `None` if it is valid in the newest world.
    pub worlds: (u64, Option<u64>),
    /// Its tier; `None` if the function was removed.
    pub tier: Option<Tier>,
    /// The address range of the unit with its code; `None` before it is compiled.
    pub code: Option<Range<usize>>,
    /// The calls that tier 1 has counted; `None` where calls are not counted.
    pub calls: Option<u32>,
    /// The symbols of the functions that its code calls through invoke pointers; undefined ones are omitted.
    pub callees: Vec<String>,
}

impl Function {
    pub(crate) fn new(function: target::Function) -> Function {
        Function { function: Handle::new(function) }
    }

    /// The hold kept by a callable of an eager function. A lazy function is freed with its definition.
    fn kept(&self) -> Option<Arc<Handle>> {
        self.function.is_eager.then(|| Arc::new(self.function.clone()))
    }

    /// Its symbol.
    pub fn symbol(&self) -> &str {
        self.function.symbol()
    }

    /// Returns the function for calls with Rust values of the given types.
    ///
    /// # Errors
    /// The function has other types.
    pub fn typed<A: Params, R: Value>(&self) -> Result<TypedFunc<A, R>, LookupError> {
        let func = self.function.cell.func()?;
        Ok(match self.kept() {
            Some(handle) => func.keeping(handle),
            None => func,
        })
    }

    /// Returns the function for calls inside a scope, with objects among its arguments and results.
    ///
    /// # Errors
    /// The function has other types.
    pub fn scoped<A: ScopedParams, R: Scoped>(&self) -> Result<ScopedFunc<A, R>, LookupError> {
        let func = self.function.cell.func_in()?;
        Ok(match self.kept() {
            Some(handle) => func.keeping(handle),
            None => func,
        })
    }

    /// Returns the function for calls with the bits of low values.
    ///
    /// # Errors
    /// There is no memory for its trampoline.
    pub fn untyped(&self) -> Result<UntypedFunc, LookupError> {
        let func = self.function.cell.untyped()?;
        Ok(match self.kept() {
            Some(handle) => func.keeping(handle),
            None => func,
        })
    }

    /// The function's C entry: the address for calls from C. All calls of this method and all `cfunction`s of programs return the same address. It is valid as long as the
    /// session defines the function or this handle exists; after a removal by tombstone a call throws, as any other does. A thread created by C
    /// is attached to the session's run time by its first call, until it ends. On a stack created by the embedder, the call throws into the compiled code that called C, or ends the
    /// process if there is none.
    ///
    /// # Errors
    /// The function has a parameter or result that C does not have, was removed, or there is no memory.
    pub fn c_address(&self) -> Result<*const (), SessionError> {
        match self.function.cell.c_address() {
            Ok(address) => Ok(std::ptr::with_exposed_provenance(address)),
            Err(error) => Err(SessionError::CEntry(Arc::new(error))),
        }
    }

    /// A snapshot of the function's code instances, oldest first: the versions that some thread may be in, and the newest.
    ///
    /// ```
    /// # extern crate brolga_engine as brolga;
    /// use brolga::{Options, Session, Workers};
    /// let session = Session::new(Options::new(), Workers::Caller)?;
    /// let main = session.create_dylib("main")?;
    /// let text = "function twice(n::Int64)::Int64\n1 ─ %1 = invoke Main.add(n::Int64, n::Int64)::Int64\n└── return %1\nend
    /// function add(a::Int64, b::Int64)::Int64\n1 ─ %1 = Base.add_int(a, b)::Int64\n└── return %1\nend";
    /// main.define(main.read("twice.jlir", text.as_bytes())?.replaceable())?;
    /// let twice = main.function("twice")?;
    /// let instances = twice.code_instances();
    /// assert_eq!(instances.len(), 1);
    /// assert!(instances[0].worlds.1.is_none() && instances[0].code.is_none(), "it is compiled when it is called");
    /// twice.typed::<(i64,), i64>()?.call((4,))?;
    /// let compiled = &twice.code_instances()[0];
    /// assert!(compiled.code.is_some());
    /// assert_eq!(compiled.callees, ["add(Int64, Int64)"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn code_instances(&self) -> Vec<CodeInstance> {
        let instance = |(facts, callees): (InstanceFacts, Vec<String>)| {
            let InstanceFacts { worlds: (first, last), tier, code, counted, .. } = facts;
            let last = (last < u64::MAX).then_some(last);
            CodeInstance { worlds: (first, last), tier, code, calls: counted, callees }
        };
        self.function.instances().into_iter().map(instance).collect()
    }

    /// Compiles the function, if it is lazy and has not been compiled.
    ///
    /// # Errors
    /// It cannot be compiled; calls throw the same error.
    pub fn compile(&self) -> Result<(), SessionError> {
        let cell = &self.function.cell;
        match cell.is_ready() {
            true => Ok(()),
            false => waiting(cell.jit().runtime(), || Ok(cell.materialize()?)),
        }
    }
}

/// The result of a look-up. A ready symbol needs no wait.
pub(super) fn answer(runtime: &Arc<Runtime>, lookup: Lookup<Native>) -> Result<Answer<Native>, SessionError> {
    match lookup.is_done() {
        true => Ok(lookup.wait()),
        false => waiting(runtime, || Ok(lookup.wait())),
    }
}

/// Runs `body`, which may wait for other threads. These may wait for a collection, which must not wait for this thread then.
pub(super) fn waiting<R>(
    runtime: &Arc<Runtime>,
    body: impl FnOnce() -> Result<R, SessionError>,
) -> Result<R, SessionError> {
    let mut body = Some(body);
    let waited = with_attached(runtime, |thread| thread.blocking(|| body.take().map(|body| body())));
    match (waited, body) {
        (Ok(Ok(Some(done))), _) => done,
        (Ok(Err(_)), _) => Err(SessionError::InScope),
        // A thread that cannot run compiled code is not attached to a heap.
        (_, Some(body)) => body(),
        (_, None) => Err(LinkError::Stalled.into()),
    }
}

impl std::fmt::Debug for Function {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Function({})", self.symbol())
    }
}

/// A requested function: a future that can also be waited for. Dropping it stops the wait; work in progress continues, and work
/// that no other lookup has queued is not started.
///
/// ```
/// # extern crate brolga_engine as brolga;
/// use brolga::{Options, Session, Workers};
/// const HALF: &[u8] = "
/// function half(n::Int64)::Int64
/// 1 ─ %1 = Base.checked_sdiv_int(n, 2)::Int64
/// └──      return %1
/// end".as_bytes();
///
/// let session = Session::new(Options::new(), Workers::Pool(1))?;
/// let main = session.create_dylib("main")?;
/// main.define(main.read("half.jlir", HALF)?)?;
/// let request = main.request("half"); // or `.await` it
/// let half = request.wait()?;
/// assert_eq!(half.typed::<(i64,), i64>()?.call((8,))?, 4);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "a request that is dropped is cancelled"]
pub struct Request {
    state: State,
    name: String,
    session: linking::Session<Native>,
    shared: Arc<Shared>,
}

enum State {
    /// The result is available.
    Known(Option<Result<Function, SessionError>>),
    Asked(Lookup<Native>),
    /// The function has been redefined since it was ready: its body is being looked up.
    Body(Function, Lookup<Native>),
}

impl Request {
    pub(crate) fn known(name: &str, session: &Session, answer: Result<Function, SessionError>) -> Request {
        Request::new(name, session, State::Known(Some(answer)))
    }

    pub(crate) fn asked(name: &str, session: &Session, lookup: Lookup<Native>) -> Request {
        Request::new(name, session, State::Asked(lookup))
    }

    fn new(name: &str, session: &Session, state: State) -> Request {
        let shared = session.inner.shared.clone();
        Request { state, name: name.to_owned(), session: session.linking().clone(), shared }
    }

    /// Whether the result is available.
    pub fn is_done(&self) -> bool {
        match &self.state {
            State::Known(_) => true,
            State::Asked(lookup) | State::Body(_, lookup) => lookup.is_done(),
        }
    }

    /// Waits for the function. Meanwhile the thread compiles, if there is something to compile.
    ///
    /// # Errors
    /// The function is not found, cannot be compiled or cannot be called by Rust; or the thread is inside a scope
    /// and would have to wait.
    pub fn wait(mut self) -> Result<Function, SessionError> {
        loop {
            let runtime = self.shared.jit.runtime().clone();
            let next = match self.state {
                State::Known(answer) => return answer.unwrap_or(Err(LinkError::Stalled.into())),
                State::Asked(lookup) => {
                    let found = answer(&runtime, lookup).and_then(address_of)?;
                    function_at(&self.shared, &self.session, &self.name, found)
                }
                State::Body(function, lookup) => match answer(&runtime, lookup)? {
                    Ok(_) => return Ok(function),
                    Err(error) => return Err(error.into()),
                },
            };
            match next {
                Ok(function) => return function,
                Err(state) => self.state = state,
            }
        }
    }
}

impl Future for Request {
    type Output = Result<Function, SessionError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        loop {
            let next = match &mut this.state {
                State::Known(answer) => return answer.take().map_or(Poll::Pending, Poll::Ready),
                State::Asked(lookup) => {
                    let found = address_of(ready!(Pin::new(lookup).poll(context)))?;
                    function_at(&this.shared, &this.session, &this.name, found)
                }
                State::Body(function, lookup) => match ready!(Pin::new(lookup).poll(context)) {
                    Ok(_) => return Poll::Ready(Ok(function.clone())),
                    Err(error) => return Poll::Ready(Err(error.into())),
                },
            };
            match next {
                Ok(function) => return Poll::Ready(function),
                Err(state) => this.state = state,
            }
        }
    }
}

fn address_of(answer: Answer<Native>) -> Result<(Label, usize), SessionError> {
    let found = answer?.into_iter().next();
    let address = found.and_then(|found| Some((found.label, found.address?)));
    address.ok_or_else(|| LinkError::NotFound { symbols: Vec::new() }.into())
}

/// The function at an address returned by the session. If the name resolves to another address by now, it is looked up again; if it is eager and was defined
/// again since it was ready, so is its body.
fn function_at(
    shared: &Shared,
    session: &linking::Session<Native>,
    name: &str,
    (label, address): (Label, usize),
) -> Result<Result<Function, SessionError>, State> {
    let look_up = |Label { dylib, symbol }| {
        let order = vec![Link { dylib, sees: linking::Sees::All }];
        session.lookup(order, required([symbol]), Until::Ready)
    };
    let found = shared.placed.find(address, || session.leads_to(label));
    match found.map(|place| place.and_then(Place::function)) {
        Ok(Some(function)) => {
            // An alias has the cell, and so the body, of its original.
            let Label { dylib, symbol } = function.label;
            let waits = function.is_eager && !function.cell.is_ready();
            let function = Function::new(function);
            match waits {
                false => Ok(Ok(function)),
                true => Err(State::Body(function, look_up(Label { dylib, symbol: symbol.part(BODY) }))),
            }
        }
        Ok(None) => Ok(Err(SessionError::NotFunction { name: name.to_owned() })),
        Err(Moved) => Err(State::Asked(look_up(label))),
    }
}
