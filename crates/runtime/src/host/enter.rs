//! The functions through which compiled code calls typed host functions, one for each number of arguments.
//!
//! ```text
//!   enterN(state, registers…) ── fenced ──► [look up the thread, keep it from running code] ──► read arguments ──► closure
//!        └──► value and 0; or no value and the key of a settlement in `later.rs`
//! ```

use std::sync::Arc;

use brolga_ir::types::TypeError;
use brolga_ir::{Context, Type};

use super::later::{Later, Settlement};
use super::value::{HostArg, HostOutcome, HostResult, Shown};
use crate::fence::fenced;
use crate::instance::Runtime;
use crate::thread::{Thread, with_attached_to};

/// A closure with the state needed to call it.
pub(super) struct State<F> {
    body: F,
    /// The address of the runtime, which is compared but never dereferenced.
    runtime: usize,
    later: Arc<Later>,
}

impl<F> State<F> {
    pub(super) fn new(body: F, runtime: &Arc<Runtime>, later: Arc<Later>) -> State<F> {
        State { body, runtime: Arc::as_ptr(runtime).addr(), later }
    }

    /// Calls `body` with the running thread. If `body` has views, the thread counts as inside a scope
    /// meanwhile.
    fn on_thread<R>(
        &self,
        has_views: bool,
        body: impl FnOnce(Option<&Thread>) -> Result<R, String>,
    ) -> Result<R, String> {
        let called = with_attached_to(std::ptr::without_provenance(self.runtime), |thread| match has_views {
            true => thread.as_in_scope(|| body(Some(thread))),
            false => body(Some(thread)),
        });
        called.unwrap_or_else(|| Err("this thread runs no compiled code of the runtime".to_owned()))
    }

    /// The registers returned to compiled code.
    fn back<O: HostOutcome>(
        &self,
        called: Result<Result<O::Value, String>, String>,
    ) -> <O::Value as HostResult>::Back {
        match called {
            Ok(Ok(value)) => value.back(|settlement| self.later.leave(settlement)),
            Ok(Err(text)) => O::Value::failed(self.later.leave(Settlement::Throw(text))),
            Err(text) => {
                let text = format!("a function of the host panicked: {text}");
                O::Value::failed(self.later.leave(Settlement::Throw(text)))
            }
        }
    }
}

/// Returns an error if two of the views conflict.
fn apart(shown: &[Option<Shown>]) -> Result<(), String> {
    let mut views = shown.iter().flatten();
    while let Some(one) = views.next() {
        if views.clone().any(|other| one.clashes(other)) {
            return Err(
                "a function of the host was given overlapping vectors, one of them to change".to_owned()
            );
        }
    }
    Ok(())
}

/// A closure that programs call with arguments in registers. `M` is its type as a function pointer, which is
/// inferred.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a typed host function",
    note = "it is a closure with up to eight arguments whose types are written out, all of `HostArg`; its result is of `HostOutcome`; \
            it is `Send`, `Sync` and `'static`"
)]
pub trait TypedHost<M>: Send + Sync + 'static {
    /// Whether the value itself is returned.
    #[doc(hidden)]
    const IS_DIRECT: bool;

    /// Its types in programs: arguments, result.
    #[doc(hidden)]
    fn signature(cx: &Context) -> Result<(Vec<Type>, Type), TypeError>;

    /// The address of the function that compiled code calls.
    #[doc(hidden)]
    fn address() -> usize;
}

macro_rules! arities {
    ($($enter:ident: $($ty:ident $arg:ident),*;)*) => {$(
        /// # Safety
        ///
        /// The registers are what compiled code passes for the types of the arguments, on an attached thread;
        /// objects among them stay alive for the call.
        #[allow(clippy::too_many_arguments, reason = "as many as the closure has")]
        unsafe extern "C" fn $enter<F, O, $($ty),*>(
            state: &State<F>,
            $($arg: $ty::Register),*
        ) -> <O::Value as HostResult>::Back
        where
            F: for<'a> Fn($($ty::View<'a>),*) -> O,
            O: HostOutcome,
            $($ty: HostArg),*
        {
            let called = fenced(|| {
                let call = |_thread: Option<&Thread>| {
                    if const { 0 $(+ $ty::IS_VIEW as usize)* > 1 } {
                        // SAFETY: by the contract; the thread counts as inside a scope.
                        apart(&[$(unsafe { $ty::shown($arg) }),*])?;
                    }
                    // SAFETY: by the contract. The thread is looked up below; collections wait for it, and if
                    // there are views no code runs on it. Of overlapping views none may be mutable.
                    $(let $arg = unsafe { $ty::look($arg, _thread) }?;)*
                    (state.body)($($arg),*).outcome()
                };
                let has_views = const { false $(|| $ty::IS_VIEW)* };
                if const { false $(|| $ty::IS_VIEW || $ty::NEEDS_THREAD)* } {
                    state.on_thread(has_views, call)
                } else {
                    call(None)
                }
            });
            state.back::<O>(called)
        }

        impl<F, O, $($ty),*> TypedHost<fn($($ty),*) -> O> for F
        where
            F: Fn($($ty),*) -> O + for<'a> Fn($($ty::View<'a>),*) -> O + Send + Sync + 'static,
            O: HostOutcome,
            $($ty: HostArg),*
        {
            const IS_DIRECT: bool = O::Value::IS_DIRECT;

            fn signature(cx: &Context) -> Result<(Vec<Type>, Type), TypeError> {
                Ok((vec![$($ty::ty(cx)?),*], O::Value::ty(cx)?))
            }

            fn address() -> usize {
                let enter: unsafe extern "C" fn(&State<F>, $($ty::Register),*) -> <O::Value as HostResult>::Back =
                    $enter::<F, O, $($ty),*>;
                (enter as *const ()).expose_provenance()
            }
        }
    )*};
}

arities! {
    enter0: ;
    enter1: A a;
    enter2: A a, B b;
    enter3: A a, B b, C c;
    enter4: A a, B b, C c, D d;
    enter5: A a, B b, C c, D d, E e;
    enter6: A a, B b, C c, D d, E e, G g;
    enter7: A a, B b, C c, D d, E e, G g, H h;
    enter8: A a, B b, C c, D d, E e, G g, H h, I i;
}
