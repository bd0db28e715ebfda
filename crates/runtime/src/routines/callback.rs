//! Calls of compiled code by C.
//!
//! ```text
//!   compiled code ──foreigncall──► C ──NAME#c──► brolga_callback ──trampoline──► NAME
//!        ▲                         │                   │ threw: the exception stays in the thread, C gets zeros
//!        └── continues with it ──────┘                   ▼
//! ```
//!
//! C passes no thread, so the routine looks it up among those of the running operating-system thread. A thread that C has made is attached by its first call, and detached when it ends. The rest is as in a call of compiled code
//! from Rust: the thread enters the heap, is pinned, and is in the world of the outer compiled code, or in the newest one.
//! Calls use the method table of the unit that C has the function from, not that of the outer code.
//!
//! **Exceptions** do not leave through frames of C, which do not support that. One that leaves the function is *carried* (`carried.rs`):
//! it stays on the thread's stack of exceptions, which keeps it alive, C gets zeros, and further callbacks before C returns give zeros
//! without running. When C returns to compiled code, that asks (`brolga_carried_exception`), and the exception continues from there. Code
//! that does not ask, because its program gives no function to C, loses it to its caller.
//!
//! **No return.** C may end the thread or the process in the middle of the call (`thread/end.rs`). The frames here own nothing that
//! needs a destructor.
//!
//! **Stacks.** On a stack that the embedder has made (`makecontext`, fibers) the limit of the thread's own stack says nothing, so the call throws there, into the outer compiled code.
//!
//! **Aborts**, with a message: a thread that cannot be attached, because its stack is too small or not the system's; a thread that is inside a scope of Rust; and an
//! exception on a thread without outer compiled code.

use std::io::Write;
use std::mem::ManuallyDrop;
use std::sync::Arc;

use crate::heap::Persistent;
use crate::instance::Runtime;
use crate::objects::MethodTable;
use crate::thread::{AttachError, Thread, with_attached, with_attached_to};

/// The trampoline: thread, callee, arguments, results; not 0 if it threw.
type EntryFn = unsafe extern "C" fn(*const Thread, usize, *const u64, *mut u64) -> i32;

/// Calls compiled code for C. Not 0: an exception waits.
///
/// # Safety
///
/// `entry` is the trampoline for functions of the callee's signature, and the words are what that reads and writes. The code stays for as
/// long as C may call it, and so does the table.
pub(crate) unsafe extern "C" fn brolga_callback(
    runtime: *const Runtime,
    methods: &MethodTable,
    entry: EntryFn,
    callee: usize,
    args: *const u64,
    results: *mut u64,
) -> i32 {
    let call = |thread: &Thread| {
        let Some(runtime) = thread.hold_runtime() else {
            abort("C called a function of a program whose runtime is gone");
        };
        if thread.in_scope() {
            abort("C called a function of a program on a thread that is inside a scope of its runtime");
        }
        if thread.is_carrying() {
            return 1;
        }
        // SAFETY: by the contract.
        let threw = unsafe { activate(thread, &runtime, methods, entry, callee, args, results) };
        match threw {
            Some(threw) => {
                thread.carry(threw.kept);
                1
            }
            None => 0,
        }
    };
    with_attached_to(runtime, call).unwrap_or_else(|| {
        // SAFETY: the entry that C has called is there by the contract, and belongs to what holds the engine, which holds the runtime. So the pointer is of an `Arc` with holders.
        let runtime_held = ManuallyDrop::new(unsafe { Arc::from_raw(runtime) });
        attach(&runtime_held);
        with_attached_to(runtime, call).unwrap_or_else(|| abort("a thread that C has made is ending"))
    })
}

/// Attaches the running thread, which C has made, to a runtime. Not inlined: it leaves nothing on the stack that a jump over these frames would leak.
#[cold]
#[inline(never)]
fn attach(runtime: &Arc<Runtime>) {
    if let Err(error) = with_attached(runtime, |_| ()) {
        abort(&format!("C called a function of a program: {error}"));
    }
}

/// An exception has come out of a call, the last one of the thread.
struct Threw {
    /// The root of the exception, if the thread is not in the heap any more.
    kept: Option<Persistent>,
}

/// The call itself, and the exception that came out of it.
///
/// # Safety
///
/// As for [`brolga_callback`]. The thread is the running one.
unsafe fn activate(
    thread: &Thread,
    runtime: &Runtime,
    methods: &MethodTable,
    entry: EntryFn,
    callee: usize,
    args: *const u64,
    results: *mut u64,
) -> Option<Threw> {
    let (is_inside, in_heap) = (thread.is_inside(), thread.mutator().inside.get());
    let _entry = thread.enter_own_heap(runtime);
    let entered = thread.enter();
    let _world = thread.enter_world(methods);
    let status = match thread.is_on_own_stack() {
        // SAFETY: by the contract. The thread is the running one, and is entered as `enter` and `enter_own_heap` say. The trampoline comes back
        // on either way out.
        true => unsafe { entry(thread, callee, args, results) },
        false => {
            thread.throw_constant_refusal(&AttachError::OtherStack.to_string());
            1
        }
    };
    let threw = status != 0 || entered.carries();
    if !threw {
        return None;
    }
    if !is_inside {
        let exception = entered.take_exception();
        abort(&format!("an exception left a function that C called, and there is no handler: {exception}"));
    }
    Some(Threw { kept: if in_heap { None } else { thread.keep_exception(runtime) } })
}

/// Ends the process: C waits for a result that there is not.
#[expect(clippy::disallowed_methods, reason = "there is no handler for an error, and C cannot be left")]
fn abort(text: &str) -> ! {
    // It does not matter whether it is read.
    let _ = writeln!(std::io::stderr(), "brolga: {text}");
    std::process::abort();
}
