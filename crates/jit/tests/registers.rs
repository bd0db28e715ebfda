//! A call into compiled code preserves the host's callee-saved registers, on both exits.
//!
//! A naked function fills every callee-saved register of the C convention with a pattern, calls through typed calls and
//! compares. Compiled code has the thread in one of them and clobbers the others. And a safepoint without a request leaves
//! all registers of compiled code as they were.

#![cfg(all(any(target_arch = "x86_64", target_arch = "aarch64"), unix))]

mod support;

use std::arch::naked_asm;

use brolga_jit::{CallError, TypedFunc};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, MemFlagsData, StackSlotData, StackSlotKind, types};
use support::{TIERS, compile, engine, int_function, ints, load};

/// More values than there are registers of either kind.
const COUNT: i32 = 40;

type TypedCall = extern "C" fn(&TypedFunc<(i64,), i64>, i64) -> i64;

/// Calls `typed_call(function, argument)` with patterns in all callee-saved registers. Returns the result of the typed call,
/// or -99 if one of them has changed.
///
/// # Safety
///
/// The arguments are valid for their types.
#[cfg(target_arch = "x86_64")]
#[unsafe(naked)]
unsafe extern "C" fn with_patterns(
    typed_call: TypedCall,
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

/// Calls `typed_call(function, argument)` with patterns in all callee-saved registers. Returns the result of the typed call,
/// or -99 if one of them has changed.
///
/// # Safety
///
/// The arguments are valid for their types.
#[cfg(target_arch = "aarch64")]
#[unsafe(naked)]
unsafe extern "C" fn with_patterns(
    typed_call: TypedCall,
    function: &TypedFunc<(i64,), i64>,
    argument: i64,
) -> i64 {
    naked_asm!(
        "stp x29, x30, [sp, #-160]!",
        "stp x19, x20, [sp, #16]",
        "stp x21, x22, [sp, #32]",
        "stp x23, x24, [sp, #48]",
        "stp x25, x26, [sp, #64]",
        "stp x27, x28, [sp, #80]",
        "stp d8, d9, [sp, #96]",
        "stp d10, d11, [sp, #112]",
        "stp d12, d13, [sp, #128]",
        "stp d14, d15, [sp, #144]",
        "mov x9, x0",
        "mov x0, x1",
        "mov x1, x2",
        "mov x19, #0x119",
        "mov x20, #0x120",
        "mov x21, #0x121",
        "mov x22, #0x122",
        "mov x23, #0x123",
        "mov x24, #0x124",
        "mov x25, #0x125",
        "mov x26, #0x126",
        "mov x27, #0x127",
        "mov x28, #0x128",
        "mov x29, #0x129",
        // The low halves of v8 to v15 are callee-saved; they have other bits than the integers.
        "mvn x10, x19",
        "fmov d8, x10",
        "mvn x10, x20",
        "fmov d9, x10",
        "mvn x10, x21",
        "fmov d10, x10",
        "mvn x10, x22",
        "fmov d11, x10",
        "mvn x10, x23",
        "fmov d12, x10",
        "mvn x10, x24",
        "fmov d13, x10",
        "mvn x10, x25",
        "fmov d14, x10",
        "mvn x10, x26",
        "fmov d15, x10",
        "blr x9",
        // Changed registers leave bits in x9.
        "sub x9, x29, #0x129",
        "sub x10, x28, #0x128",
        "orr x9, x9, x10",
        "sub x10, x27, #0x127",
        "orr x9, x9, x10",
        "sub x10, x26, #0x126",
        "orr x9, x9, x10",
        "sub x10, x25, #0x125",
        "orr x9, x9, x10",
        "sub x10, x24, #0x124",
        "orr x9, x9, x10",
        "sub x10, x23, #0x123",
        "orr x9, x9, x10",
        "sub x10, x22, #0x122",
        "orr x9, x9, x10",
        "sub x10, x21, #0x121",
        "orr x9, x9, x10",
        "sub x10, x20, #0x120",
        "orr x9, x9, x10",
        "sub x10, x19, #0x119",
        "orr x9, x9, x10",
        // A pattern and its complement add up to -1.
        "fmov x10, d8",
        "add x10, x10, #0x11a",
        "orr x9, x9, x10",
        "fmov x10, d9",
        "add x10, x10, #0x121",
        "orr x9, x9, x10",
        "fmov x10, d10",
        "add x10, x10, #0x122",
        "orr x9, x9, x10",
        "fmov x10, d11",
        "add x10, x10, #0x123",
        "orr x9, x9, x10",
        "fmov x10, d12",
        "add x10, x10, #0x124",
        "orr x9, x9, x10",
        "fmov x10, d13",
        "add x10, x10, #0x125",
        "orr x9, x9, x10",
        "fmov x10, d14",
        "add x10, x10, #0x126",
        "orr x9, x9, x10",
        "fmov x10, d15",
        "add x10, x10, #0x127",
        "orr x9, x9, x10",
        "mov x10, #-99",
        "cmp x9, #0",
        "csel x0, x0, x10, eq",
        "ldp d14, d15, [sp, #144]",
        "ldp d12, d13, [sp, #128]",
        "ldp d10, d11, [sp, #112]",
        "ldp d8, d9, [sp, #96]",
        "ldp x27, x28, [sp, #80]",
        "ldp x25, x26, [sp, #64]",
        "ldp x23, x24, [sp, #48]",
        "ldp x21, x22, [sp, #32]",
        "ldp x19, x20, [sp, #16]",
        "ldp x29, x30, [sp], #160",
        "ret",
    )
}

extern "C" fn typed_call(function: &TypedFunc<(i64,), i64>, argument: i64) -> i64 {
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
        // Reads more integers and floats than there are registers, which are live across a call and after it, and throws in
        // between if requested. They begin at every byte, so that the optimiser merges no two of them.
        let busy = compile(&jit, tier, "busy", &ints(1, 1), |c| {
            let argument = c.params()[0];
            let thread = brolga_codegen::thread::current_thread(&mut c.b);
            let mut all = |ty| -> Vec<_> {
                (0..COUNT).map(|at| c.b.ins().load(ty, MemFlagsData::new(), thread, at)).collect()
            };
            let (words, floats) = (all(types::I64), all(types::F64));
            let inner = c.call("maybe", &ints(1, 1), &[argument])[0];
            // All of them are used, twice, and the result does not depend on them.
            let there = words.iter().copied().reduce(|a, b| c.b.ins().isub(a, b)).unwrap();
            let back = words.into_iter().rev().reduce(|a, b| c.b.ins().isub(a, b)).unwrap();
            let float_there = floats.iter().copied().reduce(|a, b| c.b.ins().fsub(a, b)).unwrap();
            let float_back = floats.into_iter().rev().reduce(|a, b| c.b.ins().fdiv(a, b)).unwrap();
            let bits =
                [float_there, float_back].map(|x| c.b.ins().bitcast(types::I64, MemFlagsData::new(), x));
            let all = [there, back].into_iter().chain(bits).reduce(|a, b| c.b.ins().bor(a, b)).unwrap();
            let never = c.b.ins().icmp_imm_s(IntCC::Equal, all, 0x0123_4567_89ab_cdef);
            let never = c.b.ins().uextend(types::I64, never);
            let result = c.b.ins().iadd(inner, never);
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
            // SAFETY: the arguments are valid for their types.
            unsafe {
                assert_eq!(with_patterns(typed_call, &function, 0), 77);
                assert_eq!(with_patterns(typed_call, &function, 1), -1);
            }
        }
    }
}

#[test]
fn a_safepoint_keeps_integers_and_floats() {
    for tier in TIERS {
        let jit = engine();
        // More values of either kind than there are registers are live across the safepoint. They are loaded from memory,
        // after a fence: values that can be recomputed are computed at their uses.
        let busy = compile(&jit, tier, "busy", &ints(1, 1), |c| {
            let argument = c.params()[0];
            let bytes = 2 * 8 * COUNT as u32;
            let slot = c.b.create_sized_stack_slot(StackSlotData::new(StackSlotKind::ExplicitSlot, bytes, 3));
            let float_at = |at| 8 * (COUNT + at);
            for at in 0..COUNT {
                let word = c.b.ins().imul_imm_s(argument, i64::from(at));
                let float = c.b.ins().fcvt_from_sint(types::F64, word);
                c.b.ins().stack_store(types::I64, word, slot, 8 * at);
                c.b.ins().stack_store(types::I64, float, slot, float_at(at));
            }
            c.b.ins().fence();
            let words: Vec<_> =
                (0..COUNT).map(|at| c.b.ins().stack_load(types::I64, types::I64, slot, 8 * at)).collect();
            let floats: Vec<_> = (0..COUNT)
                .map(|at| c.b.ins().stack_load(types::I64, types::F64, slot, float_at(at)))
                .collect();
            c.routine("brolga_safepoint", &[]);
            let again: Vec<_> =
                floats.into_iter().map(|float| c.b.ins().fcvt_to_sint_sat(types::I64, float)).collect();
            let sum = words.into_iter().chain(again).reduce(|a, b| c.b.ins().iadd(a, b)).unwrap();
            c.b.ins().return_(&[sum]);
        });
        let unit = load(&jit, vec![busy], vec![int_function("busy", 1)]);
        let function = unit.func::<(i64,), i64>("busy").unwrap();
        for argument in [1, -3, 1 << 40] {
            assert_eq!(function.call((argument,)), Ok(i64::from(COUNT * (COUNT - 1)) * argument));
        }
    }
}
