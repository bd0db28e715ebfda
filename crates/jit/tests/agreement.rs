//! Numbers and names that code generation and the run time both define: they agree.

mod support;

use std::mem::offset_of;

use brolga_codegen::routines::ROUTINES;
use brolga_codegen::{compiled, thread};
use brolga_runtime::heap::DEFAULT_ABI;
use brolga_runtime::objects::{self, InlineCacheLayout, MethodTable};
use brolga_runtime::{EntryRecord, HandlerRecord, STACK_RESERVE, ThreadLayout};

#[test]
fn offsets_in_machine_code_are_those_of_the_structures() {
    for (code, structure) in [
        (thread::THREAD_HANDLER, ThreadLayout::HANDLER),
        (thread::THREAD_STACK_LIMIT, ThreadLayout::STACK_LIMIT),
        (thread::THREAD_POLL, ThreadLayout::POLL),
        (thread::THREAD_LAZY, ThreadLayout::LAZY),
        (thread::THREAD_INLINE_CACHE, ThreadLayout::INLINE_CACHE),
        (thread::INLINE_CACHE_STAMP, InlineCacheLayout::STAMP),
        (thread::INLINE_CACHE_TABLE, InlineCacheLayout::TABLE),
        (thread::METHODS_IDENTITY, MethodTable::IDENTITY),
        (thread::INLINE_CACHE_FIRST, InlineCacheLayout::FIRST),
        (thread::LINE_ADDRESS, InlineCacheLayout::ADDRESS),
        (thread::LINE_TAGS, InlineCacheLayout::KEYS),
        (thread::TAG_BYTES, DEFAULT_ABI.tag_bytes),
        (thread::TAG_BITS as i32, DEFAULT_ABI.tag_bits as usize),
        (thread::THREAD_GC_STACK, DEFAULT_ABI.gc_stack),
        (thread::THREAD_EXIT_FP, ThreadLayout::EXIT_FP),
        (thread::THREAD_EXIT_PC, ThreadLayout::EXIT_PC),
        (thread::THREAD_ENTRY, ThreadLayout::ENTRY),
        (thread::THREAD_EXCEPTIONS, ThreadLayout::EXCEPTIONS),
        (thread::ENTRY_EXIT_FP, offset_of!(EntryRecord, exit_fp)),
        (thread::ENTRY_EXIT_PC, offset_of!(EntryRecord, exit_pc)),
        (thread::ENTRY_PREVIOUS, offset_of!(EntryRecord, previous)),
        (thread::ENTRY_BYTES as i32, size_of::<EntryRecord>()),
        (thread::HANDLER_PREVIOUS, offset_of!(HandlerRecord, previous)),
        (thread::HANDLER_PC, offset_of!(HandlerRecord, pc)),
        (thread::HANDLER_SP, offset_of!(HandlerRecord, sp)),
        (thread::HANDLER_FP, offset_of!(HandlerRecord, fp)),
        (thread::HANDLER_BYTES as i32, size_of::<HandlerRecord>()),
    ] {
        assert_eq!(code as usize, structure);
    }
}

#[test]
fn code_looks_where_the_run_time_writes() {
    assert_eq!((thread::LINE_KEYS, thread::LINE_ROTATE), (objects::LINE_KEYS, objects::LINE_ROTATE));
    assert_eq!(
        (thread::LINE_MULTIPLIER, thread::LINE_SHIFT),
        (objects::LINE_MULTIPLIER, objects::LINE_SHIFT)
    );
    assert_eq!(thread::LINE_MASK, objects::LINE_MASK);
}

#[test]
fn the_reserve_below_the_stack_limit_holds_an_unchecked_frame_and_as_much_for_routines() {
    assert_eq!(STACK_RESERVE, 2 * compiled::MAX_FRAME_BYTES as usize);
}

#[test]
fn every_routine_that_code_may_call_exists() {
    let jit = support::engine();
    for routine in ROUTINES {
        assert!(jit.runtime().routine(routine.name).is_some(), "{}", routine.name);
    }
    // Names that a compile makes up for Cranelift's own calls.
    for name in ["ceil", "floor", "trunc", "nearest", "fma"] {
        for float in ["f32", "f64"] {
            assert!(brolga_codegen::routines::routine(&format!("brolga_{name}_{float}")).is_some());
        }
    }
}
