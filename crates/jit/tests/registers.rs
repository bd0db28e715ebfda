//! The host's callee-saved registers are as before after a call into compiled code, whichever way it came back.
//!
//! A naked function fills every callee-saved register of the C convention with a pattern, calls through the doorway and
//! compares. Compiled code has the thread in one of them and clobbers the others. And a safepoint that nobody wanted leaves
//! all registers of compiled code as they were.

#![cfg(all(target_arch = "x86_64", unix))]

mod support;

use std::arch::naked_asm;

use brolga_jit::{CallError, TypedFunc};
use cranelift_codegen::ir::{InstBuilder, MemFlagsData, types};
use support::{TIERS, compile, engine, int_function, ints, load};

type Doorway = extern "C" fn(&TypedFunc<(i64,), i64>, i64) -> i64;

/// Calls `doorway(function, argument)` with patterns in all callee-saved registers. The result is the doorway's, or -99 when
/// one of them has changed.
///
/// # Safety
///
/// The arguments are as their types say.
#[unsafe(naked)]
unsafe extern "C" fn with_patterns(
    doorway: Doorway,
    function: &TypedFunc<(i64,), i64>,
    argument: i64,
) -> i64 {
    naked_asm!(
        "push rbx",
        "push rbp",
        "push r12",
        "push r13",
        "push r14",
        "push r15",
        "sub rsp, 8",
        "mov rax, rdi",
        "mov rdi, rsi",
        "mov rsi, rdx",
        "mov rbx, 0x1111",
        "mov rbp, 0x2222",
        "mov r12, 0x3333",
        "mov r13, 0x4444",
        "mov r14, 0x5555",
        "mov r15, 0x6666",
        "call rax",
        "sub rbx, 0x1111",
        "sub rbp, 0x2222",
        "sub r12, 0x3333",
        "sub r13, 0x4444",
        "sub r14, 0x5555",
        "sub r15, 0x6666",
        "or rbx, rbp",
        "or rbx, r12",
        "or rbx, r13",
        "or rbx, r14",
        "or rbx, r15",
        "mov rcx, -99",
        "test rbx, rbx",
        "cmovne rax, rcx",
        "add rsp, 8",
        "pop r15",
        "pop r14",
        "pop r13",
        "pop r12",
        "pop rbp",
        "pop rbx",
        "ret",
    )
}

extern "C" fn doorway(function: &TypedFunc<(i64,), i64>, argument: i64) -> i64 {
    match function.call((argument,)) {
        Ok(value) => value,
        Err(CallError::Exception(_)) => -1,
        Err(_) => -2,
    }
}

#[test]
fn callee_saved_registers_survive_both_ways_out() {
    for tier in TIERS {
        let jit = engine();
        // Reads many words that stay live over a call, so that every register is used, and throws in between if asked.
        let busy = compile(&jit, tier, "busy", &ints(1, 1), |c| {
            let argument = c.params()[0];
            let thread = brolga_codegen::thread::current_thread(&mut c.b);
            let flags = MemFlagsData::trusted();
            let words: Vec<_> =
                (0..3).cycle().take(24).map(|i| c.b.ins().load(types::I64, flags, thread, 8 * i)).collect();
            let inner = c.call("maybe", &ints(1, 1), &[argument])[0];
            let sum = words.into_iter().reduce(|a, b| c.b.ins().bxor(a, b)).unwrap();
            let zero = c.b.ins().band_imm_s(sum, 0);
            let result = c.b.ins().iadd(inner, zero);
            c.b.ins().return_(&[result]);
        });
        let maybe = compile(&jit, tier, "maybe", &ints(1, 1), |c| {
            let argument = c.params()[0];
            let (throw, back) = (c.b.create_block(), c.b.create_block());
            c.b.ins().brif(argument, throw, &[], back, &[]);
            c.b.switch_to_block(throw);
            c.throw("brolga_throw_divide", &[]);
            c.b.switch_to_block(back);
            let value = c.int(77);
            c.b.ins().return_(&[value]);
        });
        let unit = load(&jit, vec![busy, maybe], vec![int_function("busy", 1)]);
        let function = unit.func::<(i64,), i64>("busy").unwrap();
        for _ in 0..3 {
            // SAFETY: the arguments are as their types say.
            unsafe {
                assert_eq!(with_patterns(doorway, &function, 0), 77);
                assert_eq!(with_patterns(doorway, &function, 1), -1);
            }
        }
    }
}

#[test]
fn a_safepoint_keeps_integers_and_floats() {
    for tier in TIERS {
        let jit = engine();
        // More values of either kind than there are registers are alive over the safepoint.
        let busy = compile(&jit, tier, "busy", &ints(1, 1), |c| {
            let argument = c.params()[0];
            let words: Vec<_> = (1..=20).map(|i| c.b.ins().imul_imm_s(argument, i)).collect();
            let floats: Vec<_> =
                words.iter().map(|&word| c.b.ins().fcvt_from_sint(types::F64, word)).collect();
            c.routine("brolga_safepoint", &[]);
            let again: Vec<_> =
                floats.into_iter().map(|float| c.b.ins().fcvt_to_sint_sat(types::I64, float)).collect();
            let sum = words.into_iter().chain(again).reduce(|a, b| c.b.ins().iadd(a, b)).unwrap();
            c.b.ins().return_(&[sum]);
        });
        let unit = load(&jit, vec![busy], vec![int_function("busy", 1)]);
        let function = unit.func::<(i64,), i64>("busy").unwrap();
        for argument in [1, -3, 1 << 40] {
            assert_eq!(function.call((argument,)), Ok(2 * 210 * argument));
        }
    }
}
