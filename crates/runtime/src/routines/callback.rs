//! Calls of compiled code by C.
//!
//! ```text
//!   compiled code ──foreigncall──► C ──NAME#c──► brolga_callback ──trampoline──► NAME
//!        ▲                         │                   │ threw: the exception stays in the thread, C gets zeros
//!        └── continues with it ──────┘                   ▼
//! ```
//!
//! C passes no thread, so the routine looks it up among those of the running operating-system thread. The rest is as in a call of compiled code
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
//! **Aborts**, with a message: a thread that was never attached, a thread that is inside a scope of Rust, and an
//! exception on a thread without outer compiled code.

use std::io::Write;

use crate::heap::Persistent;
use crate::instance::Runtime;
use crate::objects::MethodTable;
use crate::thread::{Thread, with_attached_to};

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
    let called = with_attached_to(runtime, |thread| {
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
    });
    called.unwrap_or_else(|| {
        abort("C called a function of a program on a thread that is not attached to its runtime")
    })
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
    // SAFETY: by the contract. The thread is the running one, and is entered as `enter` and `enter_own_heap` say. The trampoline comes back
    // on either way out.
    let status = unsafe { entry(thread, callee, args, results) };
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
