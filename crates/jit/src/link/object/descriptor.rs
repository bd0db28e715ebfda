//! Descriptors of thread-local symbols: the function that they call.
//!
//! ```text
//!   a descriptor: five words of the unit
//!   ┌──────────────────┬───────────────┬────────┬────────┬───────────────┐
//!   │ find_descriptor  │ third word ───┼► module│ offset │ area of `xsave`│
//!   └──────────────────┴───────────────┴────────┴────────┴───────────────┘
//!   code:  rax = the descriptor; call *(rax)  ──►  rax = the symbol's distance from the thread's pointer
//! ```
//!
//! Code that is compiled for descriptors (`-mtls-dialect=gnu2`; the default on aarch64) assumes that the call changes no
//! other register, vectors included. So all of them that the C functions below may use are saved. On x86-64 `xsave` saves
//! vectors of every width, as the processor and the system have them; the size of its area is queried once per descriptor.
//!
//! **Cost**: a call saves and restores all vector registers. Not done: on aarch64, what vectors of SVE have beyond 128 bits is not saved.

use super::tls::{self, ThreadLocal};

/// Words of a descriptor.
pub(super) const WORDS: usize = 5;

/// The words of a descriptor that is at an address.
pub(super) fn words(at: usize, symbol: ThreadLocal) -> [usize; WORDS] {
    let pair = at + 2 * size_of::<usize>();
    [find_descriptor as *const () as usize, pair, symbol.module, symbol.offset, area()]
}

/// The states that `xsave` saves: x87, SSE, AVX and the three of AVX-512. No C function uses the tiles of AMX.
#[cfg(target_arch = "x86_64")]
const STATES: u32 = 0b1110_0111;

/// Bytes that `xsave` needs for the states; 0 where there is no such instruction.
#[cfg(target_arch = "x86_64")]
fn area() -> usize {
    use std::arch::x86_64::__cpuid_count;

    /// The legacy area, and the header.
    const LEAST: u32 = 576;
    if !std::arch::is_x86_feature_detected!("xsave") {
        return 0;
    }
    let end_of = |state: u32| {
        let described = __cpuid_count(0xd, state);
        described.eax + described.ebx
    };
    let wide = (2..32).filter(|state| STATES >> state & 1 == 1).map(end_of);
    wide.max().unwrap_or(LEAST).max(LEAST) as usize
}

#[cfg(target_arch = "aarch64")]
fn area() -> usize {
    0
}

/// The distance of a thread-local symbol from the thread's pointer. Preserves all registers but the one of the argument and the result.
///
/// # Safety
///
/// The first register is the address of a descriptor; only code that is compiled for descriptors calls it.
#[cfg(target_arch = "x86_64")]
#[unsafe(naked)]
unsafe extern "C" fn find_descriptor() {
    std::arch::naked_asm!(
        "push rbp",
        "mov rbp, rsp",
        "push rbx",
        "push rcx",
        "push rdx",
        "push rsi",
        "push rdi",
        "push r8",
        "push r9",
        "push r10",
        "push r11",
        "mov rdi, [rax + 8]",
        // The area is at a multiple of 64. `rbx` is its size.
        "mov rbx, [rdi + 16]",
        "sub rsp, rbx",
        "and rsp, -64",
        "test rbx, rbx",
        "je 2f",
        // `xrstor` takes a header that `xsave` has not written whole.
        "xor edx, edx",
        "mov [rsp + 512], rdx",
        "mov [rsp + 520], rdx",
        "mov [rsp + 528], rdx",
        "mov [rsp + 536], rdx",
        "mov [rsp + 544], rdx",
        "mov [rsp + 552], rdx",
        "mov [rsp + 560], rdx",
        "mov [rsp + 568], rdx",
        "mov eax, {states}",
        "xsave64 [rsp]",
        "jmp 3f",
        "2:",
        "sub rsp, 512",
        "fxsave64 [rsp]",
        "3:",
        "call {get_addr}",
        "sub rax, fs:0",
        "mov rcx, rax",
        "test rbx, rbx",
        "je 4f",
        "xor edx, edx",
        "mov eax, {states}",
        "xrstor64 [rsp]",
        "jmp 5f",
        "4:",
        "fxrstor64 [rsp]",
        "5:",
        "mov rax, rcx",
        // Where the nine registers are.
        "lea rsp, [rbp - 72]",
        "pop r11",
        "pop r10",
        "pop r9",
        "pop r8",
        "pop rdi",
        "pop rsi",
        "pop rdx",
        "pop rcx",
        "pop rbx",
        "pop rbp",
        "ret",
        states = const STATES,
        get_addr = sym tls::get_addr,
    )
}

/// The distance of a thread-local symbol from the thread's pointer. Preserves all registers but the one of the argument and the result, and the link register.
///
/// # Safety
///
/// The first register is the address of a descriptor; only code that is compiled for descriptors calls it.
#[cfg(target_arch = "aarch64")]
#[unsafe(naked)]
unsafe extern "C" fn find_descriptor() {
    std::arch::naked_asm!(
        "sub sp, sp, #672",
        "stp x29, x30, [sp]",
        "mov x29, sp",
        "stp x1, x2, [sp, #16]",
        "stp x3, x4, [sp, #32]",
        "stp x5, x6, [sp, #48]",
        "stp x7, x8, [sp, #64]",
        "stp x9, x10, [sp, #80]",
        "stp x11, x12, [sp, #96]",
        "stp x13, x14, [sp, #112]",
        "stp x15, x16, [sp, #128]",
        "stp x17, x18, [sp, #144]",
        "stp q0, q1, [sp, #160]",
        "stp q2, q3, [sp, #192]",
        "stp q4, q5, [sp, #224]",
        "stp q6, q7, [sp, #256]",
        "stp q8, q9, [sp, #288]",
        "stp q10, q11, [sp, #320]",
        "stp q12, q13, [sp, #352]",
        "stp q14, q15, [sp, #384]",
        "stp q16, q17, [sp, #416]",
        "stp q18, q19, [sp, #448]",
        "stp q20, q21, [sp, #480]",
        "stp q22, q23, [sp, #512]",
        "stp q24, q25, [sp, #544]",
        "stp q26, q27, [sp, #576]",
        "stp q28, q29, [sp, #608]",
        "stp q30, q31, [sp, #640]",
        "ldr x0, [x0, #8]",
        "bl {get_addr}",
        "mrs x1, tpidr_el0",
        "sub x0, x0, x1",
        "ldp x1, x2, [sp, #16]",
        "ldp x3, x4, [sp, #32]",
        "ldp x5, x6, [sp, #48]",
        "ldp x7, x8, [sp, #64]",
        "ldp x9, x10, [sp, #80]",
        "ldp x11, x12, [sp, #96]",
        "ldp x13, x14, [sp, #112]",
        "ldp x15, x16, [sp, #128]",
        "ldp x17, x18, [sp, #144]",
        "ldp q0, q1, [sp, #160]",
        "ldp q2, q3, [sp, #192]",
        "ldp q4, q5, [sp, #224]",
        "ldp q6, q7, [sp, #256]",
        "ldp q8, q9, [sp, #288]",
        "ldp q10, q11, [sp, #320]",
        "ldp q12, q13, [sp, #352]",
        "ldp q14, q15, [sp, #384]",
        "ldp q16, q17, [sp, #416]",
        "ldp q18, q19, [sp, #448]",
        "ldp q20, q21, [sp, #480]",
        "ldp q22, q23, [sp, #512]",
        "ldp q24, q25, [sp, #544]",
        "ldp q26, q27, [sp, #576]",
        "ldp q28, q29, [sp, #608]",
        "ldp q30, q31, [sp, #640]",
        "ldp x29, x30, [sp]",
        "add sp, sp, #672",
        "ret",
        get_addr = sym tls::get_addr,
    )
}
