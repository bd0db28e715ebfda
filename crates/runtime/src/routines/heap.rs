//! Heap routines called by compiled code, in addition to its own instructions (`abi.rs`).
//!
//! | routine | safepoint | result |
//! |---|---|---|
//! | `brolga_gc_alloc(thread, bytes, tag)` | yes | a zeroed object of this size; null: `OutOfMemoryError` is pending |
//! | `brolga_gc_memory(thread, tag, length)` | yes | a `Memory`; null: `OutOfMemoryError` or `ArgumentError` is pending |
//! | `brolga_gc_string(thread, length)` | yes | a `String` of zero bytes; null: `OutOfMemoryError` is pending |
//! | `brolga_gc_box_int(thread, value)` | yes | a boxed `Int64`, permanent if small; null as above |
//! | `brolga_gc_weak_ref(thread, object)` | yes | a `WeakRef`; null as above. The argument is kept alive by the routine |
//! | `brolga_gc_write(thread, object)` | no | the slow path of the store barrier, for one field or many |
//! | `brolga_gc_write_at(thread, object, address)` | no | the same for one reference of a `Memory`, at this address |
//! | `brolga_thread_cell(thread, cell)` | no | the thread's own cell of a thread-local variable |
//! | `brolga_gc_leave(thread)` | – | before a blocking foreign call: collections continue without this thread |
//! | `brolga_gc_enter(thread)` | yes | after it; a callback into compiled code in between enters the heap again |
//!
//! **Contract with compiled code.** The thread is the running one, inside a [`HeapEntry`](crate::HeapEntry).
//! Every object that is live across a safepoint is in a root slot of a linked GC frame. Tags belong to types
//! of this heap. A null result is thrown immediately: the caller continues to `brolga_unwind`.

use std::ptr::NonNull;

use crate::heap::{
    CellWord, Heap, LENGTH, MEMORY_DATA, MEMORY_ELEMENTS, Object, OutOfMemory, allocate_at_hand, desc_of_tag,
};
use crate::pending::{Detail, ExceptionKind};
use crate::thread::Thread;

/// Calls `body` with the thread's heap; null if there is no memory.
pub(super) fn with_heap(thread: &Thread, body: impl FnOnce(&Heap) -> Result<Object, OutOfMemory>) -> *mut u8 {
    let made = match thread.runtime() {
        Some(runtime) => body(runtime.heap()),
        None => Err(OutOfMemory { requested: 0 }),
    };
    match made {
        Ok(object) => object.pointer().as_ptr(),
        Err(_) => {
            thread.throw(ExceptionKind::OutOfMemoryError, Detail::None);
            std::ptr::null_mut()
        }
    }
}

pub(crate) extern "C" fn brolga_gc_alloc(thread: &Thread, bytes: usize, tag: u64) -> *mut u8 {
    // SAFETY: tags belong to types of the thread's heap (module header).
    let desc = unsafe { desc_of_tag(tag) };
    with_heap(thread, |heap| heap.allocate(thread.mutator(), desc, bytes))
}

pub(crate) extern "C" fn brolga_gc_memory(thread: &Thread, tag: u64, length: i64) -> *mut u8 {
    let Ok(count) = u64::try_from(length) else {
        thread.throw(ExceptionKind::ArgumentError, Detail::None);
        return std::ptr::null_mut();
    };
    // SAFETY: as above.
    let desc = unsafe { desc_of_tag(tag) };
    let bytes = desc.size_with_length(|| count);
    let fill = |memory: Object| {
        memory.set_word_at(LENGTH, count);
        memory.set_word_at(MEMORY_DATA, (memory.address() + MEMORY_ELEMENTS) as u64);
        memory
    };
    // Without asking for the runtime, which counts its users.
    if let Some(memory) = allocate_at_hand(thread.mutator(), desc, bytes) {
        return fill(memory).pointer().as_ptr();
    }
    with_heap(thread, |heap| {
        if bytes > isize::MAX as usize {
            return Err(OutOfMemory { requested: bytes });
        }
        Ok(fill(heap.allocate(thread.mutator(), desc, bytes)?))
    })
}

pub(crate) extern "C" fn brolga_gc_string(thread: &Thread, length: i64) -> *mut u8 {
    if let Some(text) = string_at_hand(thread, length) {
        return text.pointer().as_ptr();
    }
    with_heap(thread, |heap| {
        let Ok(count) = u64::try_from(length) else {
            return Err(OutOfMemory { requested: usize::MAX });
        };
        let desc = heap.types().string();
        let bytes = desc.size_with_length(|| count);
        if bytes > isize::MAX as usize {
            return Err(OutOfMemory { requested: bytes });
        }
        let text = heap.allocate(thread.mutator(), desc, bytes)?;
        text.set_word_at(LENGTH, count);
        thread.mutator().string.set(desc.tag());
        Ok(text)
    })
}

/// A string of zero bytes, if the thread has made one before and has a free cell of that size at hand.
fn string_at_hand(thread: &Thread, length: i64) -> Option<Object> {
    let (mutator, count) = (thread.mutator(), u64::try_from(length).ok()?);
    let tag = Some(mutator.string.get()).filter(|&tag| tag != 0)?;
    // SAFETY: the tag names the string type of the thread's heap, which the thread is in.
    let desc = unsafe { desc_of_tag(tag) };
    let text = allocate_at_hand(mutator, desc, desc.size_with_length(|| count))?;
    text.set_word_at(LENGTH, count);
    Some(text)
}

pub(crate) extern "C" fn brolga_gc_box_int(thread: &Thread, value: i64) -> *mut u8 {
    with_heap(thread, |heap| {
        if let Some(small) = heap.types().small_int(value) {
            return Ok(small);
        }
        let boxed = heap.allocate(thread.mutator(), heap.types().int64(), size_of::<i64>())?;
        boxed.set_word_at(0, value.cast_unsigned());
        Ok(boxed)
    })
}

pub(crate) extern "C" fn brolga_gc_weak_ref(thread: &Thread, object: NonNull<u8>) -> *mut u8 {
    // SAFETY: compiled code passes a live object, which a local root keeps so across the allocation.
    let object = unsafe { Object::from_pointer(object) };
    let mutator = thread.mutator();
    mutator.locals.borrow_mut().push(Some(object));
    let made = with_heap(thread, |heap| heap.new_weak_ref(mutator, object));
    mutator.locals.borrow_mut().pop();
    made
}

pub(crate) extern "C" fn brolga_gc_write(thread: &Thread, object: NonNull<u8>) {
    if let Some(runtime) = thread.runtime() {
        // SAFETY: compiled code passes a live object.
        runtime.heap().remember(thread.mutator(), unsafe { Object::from_pointer(object) });
    }
}

pub(crate) extern "C" fn brolga_gc_write_at(thread: &Thread, object: NonNull<u8>, address: usize) {
    if let Some(runtime) = thread.runtime() {
        // SAFETY: compiled code passes a live object.
        let object = unsafe { Object::from_pointer(object) };
        runtime.heap().remember_at(thread.mutator(), object, address.wrapping_sub(object.address()));
    }
}

/// The address of the thread's cell of the variable with this cell.
pub(crate) extern "C" fn brolga_thread_cell(thread: &Thread, cell: usize) -> usize {
    // SAFETY: compiled code passes the address of the cell of a global variable, which its unit keeps.
    let word = unsafe { CellWord::at(cell) };
    match word.key().and_then(|key| thread.mutator().cells.find(key)) {
        Some(known) => known,
        None => thread.runtime().map_or(cell, |r| r.heap().cell_of_thread(thread.mutator(), word)),
    }
}

pub(crate) extern "C" fn brolga_gc_leave(thread: &Thread) {
    if let Some(runtime) = thread.runtime() {
        let paused = runtime.heap().pause(thread.mutator());
        thread.mutator().left.borrow_mut().push(paused);
    }
}

pub(crate) extern "C" fn brolga_gc_enter(thread: &Thread) {
    let left = thread.mutator().left.borrow_mut().pop();
    if let (Some(runtime), Some(paused)) = (thread.runtime(), left) {
        runtime.heap().resume(thread.mutator(), paused);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::heap::{GcFrame, Generations, HeapOptions, Stress, TypeRef};
    use crate::instance::{Runtime, RuntimeOptions};
    use crate::thread::with_attached;
    use brolga_ir::Context;
    use brolga_ir::types::{Type, decl};
    use std::sync::Arc;

    fn runtime(heap: HeapOptions) -> Arc<Runtime> {
        Runtime::new(RuntimeOptions { heap, ..RuntimeOptions::default() })
    }

    /// `Core.Box`, whose only field is a reference.
    fn cell(runtime: &Runtime) -> TypeRef {
        runtime.heap().describe(&Context::new(), Type::BOX).unwrap()
    }

    #[repr(C)]
    struct Frame {
        head: GcFrame,
        roots: [*mut u8; 2],
    }

    /// Builds a list as compiled code would: the head in a root slot, everything else in registers.
    #[test]
    fn objects_in_gc_frames_survive_and_others_are_freed() {
        for generations in [Generations::Off, Generations::On] {
            let runtime = runtime(HeapOptions {
                generations,
                stress: Stress::EverySafepoint,
                poison: true,
                verify: true,
                ..HeapOptions::default()
            });
            let tag = cell(&runtime).tag();
            with_attached(&runtime, |thread| {
                let _entry = thread.enter_own_heap(&runtime);
                let mut frame = Frame {
                    head: GcFrame { count: 2 << 2, previous: thread.mutator().gc_stack() },
                    roots: [std::ptr::null_mut(); 2],
                };
                // SAFETY: the frame stays until the end of the closure, and its slots hold live objects or null.
                unsafe { thread.mutator().set_gc_stack((&raw mut frame).cast()) };
                let root = (&raw mut frame.roots).cast::<*mut u8>();
                for _ in 0..200 {
                    let new = brolga_gc_alloc(thread, 8, tag);
                    // SAFETY: the new object has one reference, to the object in the slot; the slots are in
                    // the frame.
                    unsafe {
                        new.cast::<*mut u8>().write(root.read());
                        root.write(new);
                        root.add(1).write(brolga_gc_alloc(thread, 8, tag));
                    }
                }
                let mut length = 0;
                // SAFETY: as above; each box refers to the previous one.
                let mut at = unsafe { root.read() };
                while !at.is_null() {
                    length += 1;
                    // SAFETY: as above.
                    at = unsafe { at.cast::<*mut u8>().read() };
                }
                assert_eq!(length, 200);
                runtime.heap().collect(thread.mutator(), crate::heap::Collection::Full);
                assert_eq!(runtime.heap().stats().live_objects, 201);
            })
            .unwrap();
            // Leaving the entry has dropped the frame.
            runtime.enter(|scope| scope.collect()).unwrap();
            assert_eq!(runtime.heap().stats().live_objects, 0);
        }
    }

    #[test]
    fn running_out_of_memory_is_a_pending_exception() {
        let runtime = runtime(HeapOptions { limit: Some(1 << 20), ..HeapOptions::default() });
        let cx = Context::new();
        let memory = cx.types.nominal(decl::MEMORY, &[Type::INT64]).unwrap();
        let memory = runtime.heap().describe(&cx, memory).unwrap();
        with_attached(&runtime, |thread| {
            let _entry = thread.enter_own_heap(&runtime);
            for length in [1 << 20, i64::MAX, -1] {
                assert!(brolga_gc_memory(thread, memory.tag(), length).is_null());
            }
            let kinds: Vec<_> = (0..3).rev().map(|depth| thread.take_exception(depth).kind).collect();
            use ExceptionKind as K;
            assert_eq!(kinds, [K::ArgumentError, K::OutOfMemoryError, K::OutOfMemoryError]);
            assert!(!brolga_gc_memory(thread, memory.tag(), 1000).is_null());
        })
        .unwrap();
    }

    #[test]
    fn weak_references_and_boxes_are_made_for_compiled_code() {
        let runtime = runtime(HeapOptions { stress: Stress::EverySafepoint, ..HeapOptions::default() });
        let tag = cell(&runtime).tag();
        with_attached(&runtime, |thread| {
            let _entry = thread.enter_own_heap(&runtime);
            let small = brolga_gc_box_int(thread, 7);
            assert_eq!(small, brolga_gc_box_int(thread, 7));
            assert_ne!(brolga_gc_box_int(thread, 7000), small);
            let target = NonNull::new(brolga_gc_alloc(thread, 8, tag)).unwrap();
            let weak = NonNull::new(brolga_gc_weak_ref(thread, target)).unwrap();
            // SAFETY: there is no safepoint in between.
            let weak = unsafe { Object::from_pointer(weak) };
            assert_eq!(weak.pointer_at(0).map(Object::pointer), Some(target));
            brolga_gc_leave(thread);
            brolga_gc_enter(thread);
        })
        .unwrap();
    }

    /// A foreign call between a leave and an enter calls compiled code, which takes part in collections like
    /// any other.
    #[test]
    fn a_call_back_between_leaving_and_entering_is_an_entry_of_its_own() {
        let runtime = runtime(HeapOptions::default());
        with_attached(&runtime, |thread| {
            let depth = || thread.mutator().depth.get();
            let entry = thread.enter_own_heap(&runtime);
            brolga_gc_leave(thread);
            let elsewhere = || runtime.enter(|scope| scope.collect()).is_ok();
            assert!(std::thread::scope(|s| s.spawn(elsewhere).join()).is_ok_and(|collected| collected));
            assert_eq!(depth(), 0);
            let back = thread.enter_own_heap(&runtime);
            assert_eq!(depth(), 1);
            // An exception leaves the called-back code in the middle of such a call of its own.
            brolga_gc_leave(thread);
            brolga_gc_leave(thread);
            drop(back);
            assert_eq!(depth(), 0);
            brolga_gc_enter(thread);
            assert_eq!(depth(), 1);
            brolga_gc_enter(thread);
            assert_eq!(depth(), 1, "nothing was left");
            drop(entry);
            assert_eq!(depth(), 0);
        })
        .unwrap();
    }

    #[test]
    fn constants_are_objects() {
        let runtime = runtime(HeapOptions::default());
        let (text, symbol) = (runtime.string(b"text").address(), runtime.symbol("sym").address());
        for (address, name) in [(text, "String"), (symbol, "Symbol")] {
            let pointer = NonNull::new(std::ptr::with_exposed_provenance_mut(address)).unwrap();
            // SAFETY: the record of a constant.
            let object = unsafe { Object::from_pointer(pointer) };
            assert_eq!(object.desc().name(), name);
        }
    }
}
