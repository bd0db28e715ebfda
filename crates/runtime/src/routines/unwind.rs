//! The jump from a throw to its handler.
//!
//! `brolga_unwind(thread)` pops the innermost record off the thread's list, loads its stack and frame pointer
//! into the registers and jumps to its landing pad. It abandons all frames in between, which belong only to
//! compiled code:
//!
//! - a routine records an exception and returns before its caller unwinds;
//! - every entry from Rust links its own record, so a jump never crosses a Rust frame.
//!
//! **The end of a limited call** (`limits.rs`) skips all handlers: while its bit of the poll word is set, the
//! record used is the innermost entry from Rust, at the start of the entry record.
//!
//! The landing pad expects nothing in the other registers (Cranelift treats all as clobbered on the exceptional edge of a
//! call to a `tail` function), and the pinned register (r15, x21) holds the thread before and after.
//!
//! Cost: nine instructions and one indirect jump.
//!
//! Not done: processors other than x86-64 and aarch64; Windows; hardware shadow stacks, which reject this jump.

use std::arch::naked_asm;
use std::mem::offset_of;

use crate::frames::HandlerRecord;
use crate::heap::POLL_END;
use crate::thread::ThreadLayout;

/// Continues at the innermost handler of the thread.
///
/// # Safety
///
/// Only compiled code may call it, with its thread, whose list of handlers must not be empty; every record in it must belong
/// to a frame that is still on the stack.
#[cfg(all(target_arch = "x86_64", not(windows)))]
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn brolga_unwind(_thread: *mut ()) -> ! {
    naked_asm!(
        "mov rcx, [rdi + {handler}]",
        "test dword ptr [rdi + {poll}], {end}",
        "jz 2f",
        "mov rcx, [rdi + {entry}]",
        "2:",
        "mov rdx, [rcx + {previous}]",
        "mov [rdi + {handler}], rdx",
        "mov rsp, [rcx + {sp}]",
        "mov rbp, [rcx + {fp}]",
        "jmp [rcx + {pc}]",
        handler = const ThreadLayout::HANDLER,
        entry = const ThreadLayout::ENTRY,
        poll = const ThreadLayout::POLL,
        end = const POLL_END,
        previous = const offset_of!(HandlerRecord, previous),
        pc = const offset_of!(HandlerRecord, pc),
        sp = const offset_of!(HandlerRecord, sp),
        fp = const offset_of!(HandlerRecord, fp),
    )
}

/// Continues at the innermost handler of the thread.
///
/// # Safety
///
/// Only compiled code may call it, with its thread, whose list of handlers must not be empty; every record in it must belong
/// to a frame that is still on the stack.
#[cfg(target_arch = "aarch64")]
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn brolga_unwind(_thread: *mut ()) -> ! {
    naked_asm!(
        "ldr x9, [x0, #{handler}]",
        "ldr w10, [x0, #{poll}]",
        "tst w10, #{end}",
        "b.eq 2f",
        "ldr x9, [x0, #{entry}]",
        "2:",
        "ldr x10, [x9, #{previous}]",
        "str x10, [x0, #{handler}]",
        "ldr x10, [x9, #{sp}]",
        "mov sp, x10",
        "ldr x29, [x9, #{fp}]",
        "ldr x10, [x9, #{pc}]",
        "br x10",
        handler = const ThreadLayout::HANDLER,
        entry = const ThreadLayout::ENTRY,
        poll = const ThreadLayout::POLL,
        end = const POLL_END,
        previous = const offset_of!(HandlerRecord, previous),
        pc = const offset_of!(HandlerRecord, pc),
        sp = const offset_of!(HandlerRecord, sp),
        fp = const offset_of!(HandlerRecord, fp),
    )
}
