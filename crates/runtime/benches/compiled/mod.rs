//! Objects as compiled code makes them: by the offsets of `HeapAbi` from the thread, with `brolga_gc_alloc` as the slow path.

use std::ptr::{null_mut, with_exposed_provenance};

use brolga_ir::Context;
use brolga_ir::heap_abi::HeapAbi;
use brolga_ir::types::{DeclKind, FieldDecl, Type, decl};
use brolga_runtime::heap::{DEFAULT_ABI, GcFrame, HeapOptions, HeapStats, MEMORY_ELEMENTS, SizeClass};
use brolga_runtime::{Runtime, RuntimeOptions, Thread, with_attached};

const ABI: HeapAbi = DEFAULT_ABI;

pub(crate) type Object = *mut *mut u8;

/// The source of objects.
pub(crate) trait Allocator {
    /// An object of two words, zeroed.
    fn pair(&self) -> Object;
    /// Stores a reference into an object that may be old.
    fn store(&self, object: Object, index: usize, value: Object);
    /// Calls `body` with `N` root slots, which are null.
    fn rooted<const N: usize, R>(&self, body: impl FnOnce(*mut [Object; N]) -> R) -> R;
    /// Frees an object, if that is explicit.
    fn free(&self, object: Object);
    /// A table of `length` references.
    fn table(&self, length: usize) -> Object;
    /// As `store`, into a table: the barrier learns where.
    fn store_slot(&self, object: Object, index: usize, value: Object) {
        self.store(object, index, value);
    }
    /// The offset of a table's first reference, in words.
    const FIRST: usize;
}

type Alloc = extern "C" fn(*const Thread, usize, u64) -> *mut u8;
type Memory = extern "C" fn(*const Thread, u64, i64) -> *mut u8;
type Write = extern "C" fn(*const Thread, *mut u8);
type WriteAt = extern "C" fn(*const Thread, *mut u8, *mut u8);

/// Compiled code's thread, and the addresses of its routines.
pub(crate) struct Compiled {
    thread: *const Thread,
    pair: u64,
    any: u64,
    bytes: u64,
    run: usize,
    alloc: Alloc,
    memory: Memory,
    write: Write,
    write_at: WriteAt,
}

impl Compiled {
    /// An array of this many bytes.
    #[allow(dead_code, reason = "one of two benches makes them")]
    pub(crate) fn bytes(&self, length: usize) -> Object {
        let memory = (self.memory)(self.thread, self.bytes, length as i64);
        assert!(!memory.is_null(), "out of memory");
        memory.cast()
    }
}

#[repr(C)]
struct Frame<const N: usize> {
    head: GcFrame,
    roots: [Object; N],
}

const CELL: usize = 24;

impl Allocator for Compiled {
    #[inline(always)]
    fn pair(&self) -> Object {
        // SAFETY: the sequence of `HeapAbi`; the thread is the running one.
        unsafe {
            let run = self.thread.cast::<u8>().add(self.run).cast::<*mut u8>().cast_mut();
            let cell = run.read();
            let end = cell.wrapping_add(CELL);
            if end > run.add(1).read() {
                let object = (self.alloc)(self.thread, 16, self.pair);
                assert!(!object.is_null(), "out of memory");
                return object.cast();
            }
            run.write(end);
            cell.cast::<u64>().write(self.pair);
            let object: Object = cell.add(8).cast();
            object.write(null_mut());
            object.add(1).write(null_mut());
            object
        }
    }
    #[inline(always)]
    fn store(&self, object: Object, index: usize, value: Object) {
        // SAFETY: as above; the tag is the word before the object.
        unsafe {
            object.add(index).write(value.cast());
            if object.cast::<u64>().sub(1).read() & ABI.tag_old != 0 {
                (self.write)(self.thread, object.cast());
            }
        }
    }
    #[inline(always)]
    fn store_slot(&self, object: Object, index: usize, value: Object) {
        // SAFETY: as above.
        unsafe {
            object.add(index).write(value.cast());
            if object.cast::<u64>().sub(1).read() & ABI.tag_old != 0 {
                (self.write_at)(self.thread, object.cast(), object.add(index).cast());
            }
        }
    }
    #[inline(always)]
    fn rooted<const N: usize, R>(&self, body: impl FnOnce(*mut [Object; N]) -> R) -> R {
        // SAFETY: as above; the frame is unlinked before it is dropped.
        unsafe {
            let top = self.thread.cast::<u8>().add(ABI.gc_stack).cast::<*mut GcFrame>().cast_mut();
            let mut frame =
                Frame::<N> { head: GcFrame { count: N << 2, previous: top.read() }, roots: [null_mut(); N] };
            top.write((&raw mut frame).cast());
            let result = body(&raw mut frame.roots);
            top.write(frame.head.previous);
            result
        }
    }
    fn free(&self, _: Object) {}
    const FIRST: usize = MEMORY_ELEMENTS / 8;
    fn table(&self, length: usize) -> Object {
        let memory = (self.memory)(self.thread, self.any, length as i64);
        assert!(!memory.is_null(), "out of memory");
        memory.cast()
    }
}

/// Processor time of the running thread, in nanoseconds.
pub(crate) fn processor_time() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a local of the right type.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}

/// Calls a program on a heap with these options; returns its result and the heap's statistics.
pub(crate) fn on_heap<R>(options: HeapOptions, program: impl FnOnce(&Compiled) -> R) -> (R, HeapStats) {
    let runtime = Runtime::new(RuntimeOptions { heap: options, ..RuntimeOptions::default() });
    let cx = Context::new();
    let pair = cx.types.declare(cx.names.intern("Pair2"), &[]).expect("a new name");
    let field = |name| FieldDecl::new(cx.names.intern(name), Type::ANY);
    let kind = DeclKind::Struct { mutable: true, fields: [field("a"), field("b")].into() };
    cx.types.define(pair, Type::ANY, kind).expect("a good body");
    let describe = |ty| runtime.heap().describe(&cx, ty).expect("a concrete type");
    let pair = describe(cx.types.nominal(pair, &[]).expect("a type"));
    let any = describe(cx.types.nominal(decl::MEMORY, &[Type::ANY]).expect("a type"));
    let bytes = describe(cx.types.nominal(decl::MEMORY, &[Type::UINT8]).expect("a type"));
    let routine = |name| with_exposed_provenance::<()>(runtime.routine(name).expect("a routine"));
    let class = SizeClass::of(pair.size(), pair.align()).expect("a small object");
    assert_eq!(class.cell_bytes(), CELL);
    let result = with_attached(&runtime, |thread| {
        let _entry = thread.enter_heap(&runtime).expect("its own runtime");
        // SAFETY: the routines have these signatures.
        let compiled = unsafe {
            Compiled {
                thread,
                pair: pair.tag(),
                any: any.tag(),
                bytes: bytes.tag(),
                run: ABI.runs + class.index() * ABI.run_bytes,
                alloc: std::mem::transmute::<*const (), Alloc>(routine("brolga_gc_alloc")),
                memory: std::mem::transmute::<*const (), Memory>(routine("brolga_gc_memory")),
                write_at: std::mem::transmute::<*const (), WriteAt>(routine("brolga_gc_write_at")),
                write: std::mem::transmute::<*const (), Write>(routine("brolga_gc_write")),
            }
        };
        program(&compiled)
    });
    (result.expect("a large enough stack"), runtime.heap().stats())
}

/// A complete tree.
#[inline(never)]
pub(crate) fn build<A: Allocator>(a: &A, depth: u32) -> Object {
    if depth == 0 {
        return a.pair();
    }
    a.rooted::<2, _>(|roots| {
        // SAFETY: the slots are in the frame; a new object has two words, and there is no safepoint between
        // its allocation and the stores.
        unsafe {
            (&raw mut (*roots)[0]).write(build(a, depth - 1));
            (&raw mut (*roots)[1]).write(build(a, depth - 1));
            let object = a.pair();
            object.write((*roots)[0].cast());
            object.add(1).write((*roots)[1].cast());
            object
        }
    })
}
