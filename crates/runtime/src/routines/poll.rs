//! The slow path of a safepoint, which compiled code calls when there are requests to its thread.
//!
//! `brolga_safepoint` preserves every register, so that a poll does not affect the register allocation of a
//! loop: a call by the C convention would spill live values, and every float, in the loop, which makes a loop
//! that adds floats up to seven times slower. So the call uses Cranelift's `preserve_all`: the callee saves,
//! and there is no result. There is no argument either, because that would occupy a register in the loop; the
//! thread is in the pinned register.
//!
//! ```text
//! compiled code ── call ──> brolga_safepoint ── saves all ──> …_status(thread) ──┬─ 0: restores all, returns
//!                                                                              └─ 1: brolga_unwind(thread)
//! ```
//!
//! Vector registers are saved up to the 128 bits that Cranelift uses.
//!
//! Cost: about 400 bytes of stack, from the reserve below the stack limit, and some fifty instructions.
//!
//! Not done: processors other than x86-64 and aarch64; Windows.

use std::arch::naked_asm;

use super::unwind::brolga_unwind;
use crate::thread::{Thread, ThreadLayout};

/// Handles the requests to the thread: returns 1 if an exception is pending afterwards.
pub(crate) extern "C" fn brolga_safepoint_status(thread: &Thread) -> u32 {
    thread.safepoint().into()
}

/// Handles the requests to the thread, and returns with all registers preserved or continues at the innermost
/// handler.
///
/// # Safety
///
/// Only compiled code may call it, with its thread in the pinned register, as for [`brolga_unwind`].
#[cfg(all(target_arch = "x86_64", not(windows)))]
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn brolga_safepoint() {
    naked_asm!(
        "push rbp",
        "mov rbp, rsp",
        "push rdi",
        "push rsi",
        "push rax",
        "push rcx",
        "push rdx",
        "push r8",
        "push r9",
        "push r10",
        "push r11",
        // Where compiled code was left (`frames.rs`).
        "mov rax, [rbp]",
        "mov [r15 + {exit_fp}], rax",
        "mov rax, [rbp + 8]",
        "mov [r15 + {exit_pc}], rax",
        // The stack pointer is nine words below an aligned address; one more word aligns it for the vectors and the call.
        "sub rsp, 264",
        "movups [rsp], xmm0",
        "movups [rsp + 16], xmm1",
        "movups [rsp + 32], xmm2",
        "movups [rsp + 48], xmm3",
        "movups [rsp + 64], xmm4",
        "movups [rsp + 80], xmm5",
        "movups [rsp + 96], xmm6",
        "movups [rsp + 112], xmm7",
        "movups [rsp + 128], xmm8",
        "movups [rsp + 144], xmm9",
        "movups [rsp + 160], xmm10",
        "movups [rsp + 176], xmm11",
        "movups [rsp + 192], xmm12",
        "movups [rsp + 208], xmm13",
        "movups [rsp + 224], xmm14",
        "movups [rsp + 240], xmm15",
        "mov rdi, r15",
        "call {answer}",
        "test eax, eax",
        "jne 2f",
        "movups xmm0, [rsp]",
        "movups xmm1, [rsp + 16]",
        "movups xmm2, [rsp + 32]",
        "movups xmm3, [rsp + 48]",
        "movups xmm4, [rsp + 64]",
        "movups xmm5, [rsp + 80]",
        "movups xmm6, [rsp + 96]",
        "movups xmm7, [rsp + 112]",
        "movups xmm8, [rsp + 128]",
        "movups xmm9, [rsp + 144]",
        "movups xmm10, [rsp + 160]",
        "movups xmm11, [rsp + 176]",
        "movups xmm12, [rsp + 192]",
        "movups xmm13, [rsp + 208]",
        "movups xmm14, [rsp + 224]",
        "movups xmm15, [rsp + 240]",
        "add rsp, 264",
        "pop r11",
        "pop r10",
        "pop r9",
        "pop r8",
        "pop rdx",
        "pop rcx",
        "pop rax",
        "pop rsi",
        "pop rdi",
        "pop rbp",
        "ret",
        "2:",
        "mov rdi, r15",
        "jmp {unwind}",
        exit_fp = const ThreadLayout::EXIT_FP,
        exit_pc = const ThreadLayout::EXIT_PC,
        answer = sym brolga_safepoint_status,
        unwind = sym brolga_unwind,
    )
}

/// Handles the requests to the thread, and returns with all registers preserved or continues at the innermost
/// handler.
///
/// # Safety
///
/// Only compiled code may call it, with its thread in the pinned register, as for [`brolga_unwind`].
#[cfg(target_arch = "aarch64")]
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn brolga_safepoint() {
    naked_asm!(
        "stp x29, x30, [sp, #-16]!",
        "mov x29, sp",
        "stp x0, x1, [sp, #-16]!",
        "stp x2, x3, [sp, #-16]!",
        "stp x4, x5, [sp, #-16]!",
        "stp x6, x7, [sp, #-16]!",
        "stp x8, x9, [sp, #-16]!",
        "stp x10, x11, [sp, #-16]!",
        "stp x12, x13, [sp, #-16]!",
        "stp x14, x15, [sp, #-16]!",
        "stp x16, x17, [sp, #-16]!",
        // Where compiled code was left (`frames.rs`).
        "ldp x0, x1, [x29]",
        "str x0, [x21, #{exit_fp}]",
        "str x1, [x21, #{exit_pc}]",
        "stp q0, q1, [sp, #-32]!",
        "stp q2, q3, [sp, #-32]!",
        "stp q4, q5, [sp, #-32]!",
        "stp q6, q7, [sp, #-32]!",
        "stp q8, q9, [sp, #-32]!",
        "stp q10, q11, [sp, #-32]!",
        "stp q12, q13, [sp, #-32]!",
        "stp q14, q15, [sp, #-32]!",
        "stp q16, q17, [sp, #-32]!",
        "stp q18, q19, [sp, #-32]!",
        "stp q20, q21, [sp, #-32]!",
        "stp q22, q23, [sp, #-32]!",
        "stp q24, q25, [sp, #-32]!",
        "stp q26, q27, [sp, #-32]!",
        "stp q28, q29, [sp, #-32]!",
        "stp q30, q31, [sp, #-32]!",
        "mov x0, x21",
        "bl {answer}",
        "cbnz w0, 2f",
        "ldp q30, q31, [sp], #32",
        "ldp q28, q29, [sp], #32",
        "ldp q26, q27, [sp], #32",
        "ldp q24, q25, [sp], #32",
        "ldp q22, q23, [sp], #32",
        "ldp q20, q21, [sp], #32",
        "ldp q18, q19, [sp], #32",
        "ldp q16, q17, [sp], #32",
        "ldp q14, q15, [sp], #32",
        "ldp q12, q13, [sp], #32",
        "ldp q10, q11, [sp], #32",
        "ldp q8, q9, [sp], #32",
        "ldp q6, q7, [sp], #32",
        "ldp q4, q5, [sp], #32",
        "ldp q2, q3, [sp], #32",
        "ldp q0, q1, [sp], #32",
        "ldp x16, x17, [sp], #16",
        "ldp x14, x15, [sp], #16",
        "ldp x12, x13, [sp], #16",
        "ldp x10, x11, [sp], #16",
        "ldp x8, x9, [sp], #16",
        "ldp x6, x7, [sp], #16",
        "ldp x4, x5, [sp], #16",
        "ldp x2, x3, [sp], #16",
        "ldp x0, x1, [sp], #16",
        "ldp x29, x30, [sp], #16",
        "ret",
        "2:",
        "mov x0, x21",
        "b {unwind}",
        exit_fp = const ThreadLayout::EXIT_FP,
        exit_pc = const ThreadLayout::EXIT_PC,
        answer = sym brolga_safepoint_status,
        unwind = sym brolga_unwind,
    )
}
