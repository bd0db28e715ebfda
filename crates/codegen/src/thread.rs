//! The thread in compiled code: the offsets of its words, and the four sequences that use them.
//!
//! The thread structure belongs to the run time; its address is in the pinned register (r15, x21) for as long as
//! compiled code runs. Compiled code uses these words of it, and no others:
//!
//! ```text
//!   thread +0   handler      innermost handler record, never null inside compiled code
//!          +8   stack_limit  lowest stack pointer that a frame may have
//!          +16  poll         not 0: this thread is requested at a safepoint
//!          +24  lazy         the data of the stub that was called last (`lazy.rs`)
//!          +32  inline_cache the cache of dynamic calls
//!          +40  gc_stack     innermost GC frame; root placement has the words after it from the heap
//!          +48  exit_fp      frame pointer of the compiled code that called out last
//!          +56  exit_pc      the address that this call returns to
//!          +64  entry        innermost entry record
//!          +72  exceptions   how many exceptions are being handled or thrown
//!
//!   record +0   previous     the record that was innermost before
//!          +8   pc           where an exception continues: the landing pad
//!          +16  sp           stack pointer there
//!          +24  fp           frame pointer there
//!
//!   entry  +0   a handler record, whose fp is the trampoline's
//!   record +32  exit_fp      the thread's words when the trampoline was called
//!          +40  exit_pc
//!          +48  previous     the entry record that was innermost before
//! ```
//!
//! **Frames of compiled code** can be found while the thread is outside of it. A thread that leaves compiled code
//! records the frame pointer and the return address: routines of the run time do it when they are called, code does it before calls of C
//! functions ([`note_exit`]). An entry trampoline saves the words of the exit above it and restores them. From
//! there the chain of saved frame pointers leads to the trampoline, and its record to the next stretch.
//!
//! **Throwing.** The thrower leaves the exception in the thread (a `brolga_throw_*` routine, which returns) and then
//! calls `brolga_unwind`, which takes the innermost record off the list and jumps to its pc. Only sp, fp and the program counter
//! are restored: a record is only made for a `try_call` of a `tail` callee, and Cranelift
//! treats all registers as clobbered on the exceptional edge of such a call. The pinned register is an exception: it
//! holds the same thread everywhere, so it needs no restoring.
//!
//! **Try.** A function makes one record (`Handler::new`), links it (`Handler::link`; in a loop `Handler::fill` stores the invariant words
//! at the function's start), stores the landing pad's address before
//! each call that may throw (`Handler::call_indirect`, `Handler::call`; every edge has its own pad), and unlinks the record on
//! the normal exit (`Handler::unlink`). On the exceptional exit the record is already off the list.
//!
//! **Stack check.** `check_stack` is at the start of every function that calls compiled code or routines of the run time.
//! It tests the stack pointer after the frame is made. Callees without a check (a leaf,
//! a routine) use the reserve below the limit: one frame of `compile::MAX_FRAME_BYTES` and as much again for routines.
//!
//! **Poll.** The load is atomic because Cranelift deletes a plain one that it believes redundant.
//!
//! Not done: targets without a pinned register.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{
    Block, BlockArg, DebugTag, ExceptionTableData, ExceptionTableItem, ExternalName, FuncRef,
    GlobalValueData, Inst, InstBuilder, MemFlagsData, SigRef, StackSlot, StackSlotData, StackSlotKind, Type,
    UserExternalName, Value, types,
};
use cranelift_frontend::FunctionBuilder;

use crate::compiled::RETURN_ADDRESS;
use crate::isa::TargetIsa;

/// Offset of the innermost handler record in the thread structure.
pub const THREAD_HANDLER: i32 = 0;
/// Offset of the stack limit in the thread structure.
pub const THREAD_STACK_LIMIT: i32 = 8;
/// Offset of the 32-bit poll word in the thread structure.
pub const THREAD_POLL: i32 = 16;

/// Offset of the word in which a stub identifies its function.
pub const THREAD_LAZY: i32 = 24;
/// Offset of the address of the global inline cache in the thread structure.
pub const THREAD_INLINE_CACHE: i32 = 32;
/// Offset of the innermost GC frame in the thread structure.
pub const THREAD_GC_STACK: i32 = 40;

/// Offset of the frame pointer at the last exit in the thread structure.
pub const THREAD_EXIT_FP: i32 = 48;
/// Offset of the return address of the last exit in the thread structure.
pub const THREAD_EXIT_PC: i32 = 56;
/// Offset of the innermost entry record in the thread structure.
pub const THREAD_ENTRY: i32 = 64;

/// Offset of the number of exceptions in the thread structure.
pub const THREAD_EXCEPTIONS: i32 = 72;

/// Offset of the enclosing record in a handler record.
pub const HANDLER_PREVIOUS: i32 = 0;
/// Offset of the landing pad in a handler record.
pub const HANDLER_PC: i32 = 8;
/// Offset of the stack pointer in a handler record.
pub const HANDLER_SP: i32 = 16;
/// Offset of the frame pointer in a handler record.
pub const HANDLER_FP: i32 = 24;
/// Size of a handler record.
pub const HANDLER_BYTES: u32 = 32;

/// Offset of the outer frame pointer in an entry record.
pub const ENTRY_EXIT_FP: i32 = 32;
/// Offset of the outer return address in an entry record.
pub const ENTRY_EXIT_PC: i32 = 40;
/// Offset of the outer entry record in an entry record.
pub const ENTRY_PREVIOUS: i32 = 48;
/// Size of an entry record.
pub const ENTRY_BYTES: u32 = 56;
/// Offset of the stamp that lines of the global inline cache begin with in the thread's world.
pub const INLINE_CACHE_STAMP: i32 = 0;
/// Offset of the identity of the table that calls look in, which is 0 outside of all worlds.
pub const INLINE_CACHE_TABLE: i32 = 8;
/// Offset of its identity in a table of methods.
pub const METHODS_IDENTITY: i32 = 0;
/// Offset of the first line.
pub const INLINE_CACHE_FIRST: i32 = 64;
/// Offset of the entry's address in a line.
pub const LINE_ADDRESS: i32 = 8;
/// Offset of the first tag in a line.
pub const LINE_TAGS: i32 = 16;
/// The most operands of a call that has a line.
pub const LINE_KEYS: usize = 6;
/// How far the tags so far are rotated before the next is mixed in.
pub const LINE_ROTATE: u32 = 7;
/// The multiplier of the mixed tags.
pub const LINE_MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;
/// How far the product is shifted to the right.
pub const LINE_SHIFT: u32 = 50;
/// The mask of the product: the offset of a line from the first one.
pub const LINE_MASK: u64 = 0x3fc0;
/// Bytes of the tag before an object.
pub const TAG_BYTES: i32 = 8;
/// Bits of a tag that are not the address of the type.
pub const TAG_BITS: i64 = 15;

const POINTER: Type = types::I64;

/// The thread's own words are always there and aligned.
fn flags() -> MemFlagsData {
    MemFlagsData::trusted()
}

/// The address of the thread structure. Reading the register is never merged: read it once per function.
pub fn current_thread(b: &mut FunctionBuilder<'_>) -> Value {
    b.ins().get_pinned_reg(POINTER)
}

/// Branches to `overflow` when the frame of this function is below the limit, and continues in a new block otherwise.
/// `overflow` takes no arguments, throws `StackOverflowError`, and should be cold.
pub fn check_stack(b: &mut FunctionBuilder<'_>, thread: Value, overflow: Block) {
    let sp = b.ins().get_stack_pointer(POINTER);
    let limit = b.ins().load(POINTER, flags(), thread, THREAD_STACK_LIMIT);
    let exhausted = b.ins().icmp(IntCC::UnsignedLessThan, sp, limit);
    let go_on = b.create_block();
    b.ins().brif(exhausted, overflow, &[], go_on, &[]);
    b.switch_to_block(go_on);
}

/// Branches to `slow` when this thread is requested at a safepoint, and continues in `go_on` otherwise. `slow` calls
/// `brolga_safepoint` and should be cold.
pub fn poll(b: &mut FunctionBuilder<'_>, thread: Value, slow: Block, go_on: Block) {
    let address = b.ins().iadd_imm_s(thread, i64::from(THREAD_POLL));
    let wanted = b.ins().atomic_load(types::I32, flags(), address);
    b.ins().brif(wanted, slow, &[], go_on, &[]);
}

/// Records where compiled code is left, before a call that does not record it itself. Calls of one function have different
/// numbers. The call gets the tag that is returned, by which its return address is found. Code for object files, in which no
/// label has an address before it is loaded, notes none.
pub fn note_exit(b: &mut FunctionBuilder<'_>, thread: Value, number: u32, isa: &TargetIsa) -> DebugTag {
    let pc = if isa.is_for_objects() {
        b.ins().iconst(POINTER, 0)
    } else {
        let name = UserExternalName::new(RETURN_ADDRESS, number);
        let name = b.func.declare_imported_user_function(name);
        let global = b.create_global_value(GlobalValueData::Symbol {
            name: ExternalName::user(name),
            offset: 0.into(),
            colocated: true,
            tls: false,
        });
        b.ins().symbol_value(POINTER, global)
    };
    let fp = b.ins().get_frame_pointer(POINTER);
    b.ins().store(flags(), fp, thread, THREAD_EXIT_FP);
    b.ins().store(flags(), pc, thread, THREAD_EXIT_PC);
    DebugTag::User(number)
}

/// The number of exceptions that are being handled or thrown: the depth that `pop_exception` restores. Only calls change it.
pub fn exception_depth(b: &mut FunctionBuilder<'_>, thread: Value) -> Value {
    b.ins().load(POINTER, flags(), thread, THREAD_EXCEPTIONS)
}

/// The entry record of a trampoline, with a handler record in it.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// The handler for everything that the trampoline calls.
    pub handler: Handler,
}

/// The words of a thread that an entry record keeps, and where.
const KEPT: [(i32, i32); 3] =
    [(THREAD_EXIT_FP, ENTRY_EXIT_FP), (THREAD_EXIT_PC, ENTRY_EXIT_PC), (THREAD_ENTRY, ENTRY_PREVIOUS)];

impl Entry {
    /// Makes the record and links both records.
    pub fn link(b: &mut FunctionBuilder<'_>, thread: Value) -> Entry {
        let handler = Handler::with_bytes(b, ENTRY_BYTES);
        handler.link(b, thread);
        let record = b.ins().stack_addr(POINTER, handler.slot, 0);
        for (word, kept) in KEPT {
            let value = b.ins().load(POINTER, flags(), thread, word);
            b.ins().store(flags(), value, record, kept);
        }
        b.ins().store(flags(), record, thread, THREAD_ENTRY);
        Entry { handler }
    }

    /// Takes the entry record out of the list and restores the words of the exit. Removal of the handler record depends on
    /// the exit.
    pub fn unlink(&self, b: &mut FunctionBuilder<'_>, thread: Value) {
        let record = b.ins().stack_addr(POINTER, self.handler.slot, 0);
        for (word, kept) in KEPT {
            let value = b.ins().load(POINTER, flags(), record, kept);
            b.ins().store(flags(), value, thread, word);
        }
    }
}

/// The handler record of the function being built; one serves all its handlers.
#[derive(Clone, Copy, Debug)]
pub struct Handler {
    slot: StackSlot,
    /// Whether the invariant words have been stored already.
    is_filled: bool,
}

impl Handler {
    /// Reserves memory for the record.
    pub fn new(b: &mut FunctionBuilder<'_>) -> Handler {
        Handler::with_bytes(b, HANDLER_BYTES)
    }

    /// Reserves memory for a record that begins with this one.
    fn with_bytes(b: &mut FunctionBuilder<'_>, bytes: u32) -> Handler {
        let align = HANDLER_BYTES.trailing_zeros() as u8;
        let slot = b.create_sized_stack_slot(StackSlotData::new(StackSlotKind::ExplicitSlot, bytes, align));
        Handler { slot, is_filled: false }
    }

    /// Stores the words that linking would store each time, at a place that dominates all linking. In a function the
    /// previous innermost record is always the same: code that links another record removes it before the function
    /// continues.
    pub fn fill(&mut self, b: &mut FunctionBuilder<'_>, thread: Value) {
        self.store_common(b, thread);
        self.is_filled = true;
    }

    fn store_common(&self, b: &mut FunctionBuilder<'_>, thread: Value) {
        let record = b.ins().stack_addr(POINTER, self.slot, 0);
        let previous = b.ins().load(POINTER, flags(), thread, THREAD_HANDLER);
        let sp = b.ins().get_stack_pointer(POINTER);
        let fp = b.ins().get_frame_pointer(POINTER);
        b.ins().store(flags(), previous, record, HANDLER_PREVIOUS);
        b.ins().store(flags(), sp, record, HANDLER_SP);
        b.ins().store(flags(), fp, record, HANDLER_FP);
    }

    /// Fills the record except for the landing pad, and links it at the head of the thread's list. A later call that may
    /// throw goes through `call*`, which store the pad, or reports the exception to the function, which then continues at
    /// its handler itself.
    pub fn link(&self, b: &mut FunctionBuilder<'_>, thread: Value) {
        if !self.is_filled {
            self.store_common(b, thread);
        }
        let record = b.ins().stack_addr(POINTER, self.slot, 0);
        b.ins().store(flags(), record, thread, THREAD_HANDLER);
    }

    /// Links the record again, after an exception has removed it.
    pub fn relink(&self, b: &mut FunctionBuilder<'_>, thread: Value) {
        let record = b.ins().stack_addr(POINTER, self.slot, 0);
        b.ins().store(flags(), record, thread, THREAD_HANDLER);
    }

    /// Removes the record from the list, on a path without an exception.
    pub fn unlink(&self, b: &mut FunctionBuilder<'_>, thread: Value) {
        let record = b.ins().stack_addr(POINTER, self.slot, 0);
        let previous = b.ins().load(POINTER, flags(), record, HANDLER_PREVIOUS);
        b.ins().store(flags(), previous, thread, THREAD_HANDLER);
    }

    /// Calls a compiled function under this handler and ends the block. Results go to `normal`, as its parameters; an
    /// exception arrives in `landing`, which takes none.
    pub fn call(
        &self,
        b: &mut FunctionBuilder<'_>,
        callee: FuncRef,
        args: &[Value],
        normal: Block,
        landing: Block,
    ) -> Inst {
        let signature = b.func.dfg.ext_funcs[callee].signature;
        self.arm(b);
        let table = exception_table(b, signature, normal, landing);
        b.ins().try_call(callee, args, table)
    }

    /// As [`Handler::call`], through an address.
    pub fn call_indirect(
        &self,
        b: &mut FunctionBuilder<'_>,
        signature: SigRef,
        callee: Value,
        args: &[Value],
        normal: Block,
        landing: Block,
    ) -> Inst {
        self.arm(b);
        let table = exception_table(b, signature, normal, landing);
        b.ins().try_call_indirect(callee, args, table)
    }

    /// Stores the landing pad of the call that is about to end this block. Cranelift does not let an instruction name
    /// the entry block, so a call there moves to a block of its own.
    fn arm(&self, b: &mut FunctionBuilder<'_>) {
        let Some(mut block) = b.current_block() else { return };
        if b.func.layout.entry_block() == Some(block) {
            block = b.create_block();
            b.ins().jump(block, &[]);
            b.switch_to_block(block);
        }
        let pc = b.ins().get_exception_handler_address(POINTER, block, 0);
        let record = b.ins().stack_addr(POINTER, self.slot, 0);
        b.ins().store(flags(), pc, record, HANDLER_PC);
    }
}

fn exception_table(
    b: &mut FunctionBuilder<'_>,
    signature: SigRef,
    normal: Block,
    landing: Block,
) -> cranelift_codegen::ir::ExceptionTable {
    let count = b.func.dfg.signatures[signature].returns.len() as u32;
    let pool = &mut b.func.dfg.value_lists;
    let normal = cranelift_codegen::ir::BlockCall::new(normal, (0..count).map(BlockArg::TryCallRet), pool);
    let landing = cranelift_codegen::ir::BlockCall::new(landing, std::iter::empty(), pool);
    let table = ExceptionTableData::new(signature, normal, [ExceptionTableItem::Default(landing)]);
    b.func.dfg.exception_tables.push(table)
}
