//! Calls of compiled code from C.
//!
//! ```text
//!   compiled code ──foreigncall──► C ──NAME#c──► brolga_callback ──trampoline──► NAME
//!        ▲                         │                   │ threw: the exception stays in the thread, C gets zeros
//!        └── continues with it ──────┘                   ▼
//! ```
//!
//! C passes no thread, so the routine looks it up among the threads attached to the running operating-system
//! thread. A thread made by C is attached on its first call, and detached when it ends. The rest is as in a
//! call of compiled code from Rust: the thread enters the heap, is pinned, and is in the world of the outer
//! compiled code, or in the newest one. Calls use the method table of the unit from which C got the function,
//! not the outer code's.
//!
//! **Exceptions** do not propagate through C frames, which do not support that. One that leaves the function
//! is *carried* (`carried.rs`): it stays on the thread's stack of exceptions, which keeps it alive, C
//! receives zeros, and further callbacks before C returns yield zeros without running. When C returns to
//! compiled code, that code checks for it (`brolga_carried_exception`) and rethrows it. Code that does not
//! check, because its program passes no function to C, leaves it to its caller.
//!
//! **No return.** C may end the thread or the process in the middle of the call (`thread/end.rs`). The frames
//! here own nothing that needs a destructor.
//!
//! **Stacks.** On a stack made by the embedder (`makecontext`, fibers) the limit of the thread's own stack is
//! meaningless, so the call throws there, into the outer compiled code.
//!
//! **Aborts**, with a message: a thread that cannot be attached, because its stack is too small or not the
//! system's; a thread that is inside a Rust scope; and an exception on a thread without outer compiled code.

use std::io::Write;
use std::mem::ManuallyDrop;
use std::sync::Arc;

use crate::heap::Persistent;
use crate::instance::Runtime;
use crate::objects::MethodTable;
use crate::thread::{AttachError, Thread, with_attached, with_attached_to};

/// The trampoline: thread, callee, arguments, results; not 0 if it threw.
type EntryFn = unsafe extern "C" fn(*const Thread, usize, *const u64, *mut u64) -> i32;

/// Calls compiled code from C. Nonzero: an exception is pending.
///
/// # Safety
///
/// `entry` is the trampoline for functions with the callee's signature, and the words are what it reads and
/// writes. The code and the table stay for as long as C may call the code.
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
        // SAFETY: the entry called by C exists by the contract, and belongs to something that holds the
        // engine, which holds the runtime. So the pointer comes from an `Arc` that has owners.
        let runtime_held = ManuallyDrop::new(unsafe { Arc::from_raw(runtime) });
        attach(&runtime_held);
        with_attached_to(runtime, call).unwrap_or_else(|| abort("a thread that C has made is ending"))
    })
}

/// Attaches the running thread, made by C, to a runtime. Not inlined: it leaves nothing on the stack that a
/// jump over these frames would leak.
#[cold]
#[inline(never)]
fn attach(runtime: &Arc<Runtime>) {
    if let Err(error) = with_attached(runtime, |_| ()) {
        abort(&format!("C called a function of a program: {error}"));
    }
}

/// The call threw; its exception is the last one of the thread.
struct Threw {
    /// The root of the exception, if the thread has left the heap.
    kept: Option<Persistent>,
}

/// Makes the call, and returns the exception that it threw, if any.
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
        // SAFETY: by the contract. The thread is the running one, and has been entered as `enter` and
        // `enter_own_heap` require. The trampoline returns on both exits.
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

/// Ends the process: C waits for a result that does not exist.
#[expect(clippy::disallowed_methods, reason = "there is no handler for an error, and C cannot be left")]
fn abort(text: &str) -> ! {
    // It does not matter whether it can be written.
    let _ = writeln!(std::io::stderr(), "brolga: {text}");
    std::process::abort();
}
