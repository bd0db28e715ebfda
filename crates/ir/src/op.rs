//! The operations of instructions.
//!
//! An instruction is an [`Op`], operands, results, and for terminators and φ a list of blocks. Everything that is not a
//! value is part of the `Op`, which is small, copyable and comparable: two instructions with equal `Op`, operands and
//! result types compute the same result, effects apart.
//!
//! | level | operations |
//! |---|---|
//! | both | intrinsics, `ifelse`, φ, copies, `goto`, branches, `return`, `unreachable`, `foreigncall`, `cfunction`, `enter`, `leave`, preserve |
//! | high | builtins, calls, `new`, π, ϒ, φᶜ, exceptions, globals, static parameters, notes on loops and coverage |
//! | low | loads, stores, atomics, stack addresses, copies of memory, calls of symbols and of the run time, safepoints, objects, vectors |
//!
//! `op/facts.rs` has the table of their facts.

mod facts;

use std::fmt;

use crate::builtin::Builtin;
use crate::entity::{Callee, Foreign, Meta, Slot};
use crate::intrinsic::Intrinsic;
use crate::lanes::Lanes;
use crate::names::Name;
use crate::runtime_fn::RuntimeFn;
use crate::types::Type;

/// The two levels of the IR.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Level {
    /// Julia types, calls, objects.
    High,
    /// Registers and memory.
    Low,
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Level::High => "high",
            Level::Low => "low",
        })
    }
}

/// The message of the exception that a high function throws at an `unreachable`.
pub const REACHED: &str = "control reached `unreachable`";

/// The variable named by `UndefVarError` when an undefined value is used.
pub const UNDEFINED: &str = "#undef";

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Op {
    // ----- both levels -----
    /// A primitive operation on bits, memory or the processor. Conversions take their target from the result type.
    Intrinsic(Intrinsic),
    /// `φ`: the operand of the predecessor that control came from. The instruction's blocks are parallel to
    /// its operands. After a predecessor that is not listed, the value is undefined and must not be used.
    Phi,
    /// The operand itself: a statement that consists of a literal or another value.
    Copy,
    /// Calls a C function: operands as in its signature, then values that stay rooted during the call. If the
    /// signature names no function, the first operand is its address.
    ForeignCall(Foreign),
    /// Continues at the one target.
    Goto,
    /// Continues at the first target if the operand is true, else at the second.
    Branch,
    /// Ends the function with the operands as its results.
    Return,
    /// Marks a point that control never reaches.
    Unreachable,
    /// Installs an exception handler: continues at the first target; an exception continues at the second.
    Enter,
    /// Removes the handlers of the operands, which are tokens of `enter`, innermost first.
    Leave,
    /// The address of a C function that calls compiled code. At the high level the operand is the function
    /// object, and the callee is a method; at the low level there is no operand, and the callee is a symbol.
    CFunction(Callee),
    /// The address of a function or variable of C, by name. If it is missing, the operation throws
    /// `CompileError`.
    CGlobal(Name),
    /// Keeps the operands alive until its `gc_preserve_end`.
    GcPreserveBegin,
    /// Ends the `gc_preserve_begin` that made the operand.
    GcPreserveEnd,

    // ----- high level -----
    /// A builtin function of Julia. Only `ifelse` remains at the low level.
    Builtin(Builtin),
    /// Calls the first operand with the others, dispatched at run time.
    Call,
    /// Calls a method chosen at compile time. The first operand is the function object.
    Invoke(Callee),
    /// Makes an instance of a struct type from its leading fields.
    New(Type),
    /// Makes an instance of a struct type from the elements of the tuple operand.
    SplatNew(Type),
    /// `π`: the operand, known to have the result type here.
    Pi,
    /// `ϒ`: stores the operand, or "undefined", for the φᶜ that names this instruction.
    Upsilon,
    /// `φᶜ`: the value stored by the last executed ϒ among the instructions of the operands.
    PhiC,
    /// Reads a global variable.
    GetGlobal(Name),
    /// The exception that the handler is handling.
    TheException,
    /// Ends the handling of the exception that the operand's handler caught.
    PopException,
    /// Throws `UndefVarError` for this variable unless the operand is true.
    ThrowUndefIfNot(Name),
    /// Whether bounds are checked here.
    BoundsCheck(bool),
    /// A note about the loop that this block closes.
    LoopInfo(Meta),
    /// The place of a coverage counter.
    CodeCoverage,
    /// Spends `n` units of the call's fuel; the call ends if fewer are left (`fuel.rs`).
    Spend(u32),
    /// The value of a static parameter, by its number from 1.
    StaticParameter(u32),
    /// Whether a static parameter has a value.
    StaticDefined(u32),

    // ----- low level -----
    /// Reads memory at the operand.
    Load(Access),
    /// Writes the second operand to memory at the first.
    Store(Access),
    /// Reads memory at the operand, atomically.
    AtomicLoad(Ordering),
    /// Writes the second operand to memory at the first, atomically.
    AtomicStore(Ordering),
    /// Replaces memory at the first operand by the operation's result for the old value and the second operand; returns the
    /// old value.
    AtomicRmw(RmwOp, Ordering),
    /// Compares memory at the first operand with the second and replaces it by the third if they are equal; returns
    /// the old value.
    AtomicCas(Ordering),
    /// The address of a stack slot.
    SlotAddr(Slot),
    /// Copies memory from the second operand to the first, which do not overlap; the third is the number of bytes.
    MemCopy,
    /// Calls compiled code by its symbol.
    CallSymbol(Callee),
    CallRuntime(RuntimeFn),
    /// A point where a collection may happen and stop requests are handled.
    Safepoint,
    /// Makes an object of this concrete struct type; its fields are zero.
    Alloc(Type),
    /// Like `Alloc`, but the object may be in the frame of the function. It lives until the function returns
    /// or this instruction is executed again, and no reference may outlive it. Lowering may allocate it on
    /// the heap instead.
    AllocStack(Type),
    /// The type object of the operand, an object.
    TypeOf,
    /// Tells the collector that the remaining operands were stored into the first, an object.
    WriteBarrier,
    /// The second operand, an address that is valid while the first, an object, is alive.
    GcLoaded,
    /// The address of the operand, an object. It does not keep the object alive; `GcPreserveBegin` does.
    PointerFromObjref,
    /// Calls an entry point of the run time that takes an array of objects.
    CallArgs(RuntimeFn),
    /// The address of the current thread's structure.
    ThreadAddr,
    /// An intrinsic lane by lane; see [`lanes`](crate::lanes).
    Lanes(Intrinsic, Lanes),
    /// The operand in every lane.
    Splat(Lanes),
    /// A lane of the operand, by its number.
    ExtractLane(Lanes, u8),
    /// The first operand with one lane replaced by the second.
    InsertLane(Lanes, u8),
    /// The bits of the second operand where the first has ones, else the bits of the third.
    LaneSelect,
}

/// How memory is accessed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Access {
    /// Byte offset added to the address.
    pub offset: i32,
    /// The memory accessed; accesses to different regions never overlap.
    pub region: Region,
    /// The known alignment of the address with the offset: 2 to this power.
    pub align_log2: u8,
}

/// Kinds of memory, which do not overlap unless stated.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub enum Region {
    /// Memory reached through a `Ptr`, including the inside of objects, so it overlaps `Field` and `Element`.
    Raw,
    /// Stack slots whose address never leaves the function.
    Slot,
    /// Bytes that never change.
    Constant,
    /// Fields of mutable objects.
    Field,
    /// Memory that never changes once its object is initialised: fields of immutable objects, the address of
    /// a `Memory`'s elements.
    Immutable,
    /// Elements of `Memory`.
    Element,
    /// The header of an `Array`: the address of its elements, its `Memory`, its size. Its integers are sizes,
    /// never negative.
    Header,
    /// Root slots and the links between GC frames.
    Frame,
    /// The thread structure.
    Thread,
    /// The number of elements of a `Memory` and of bytes of a `String`: never changes, from 0 to [`Region::LONGEST`].
    /// There may be more elements of size zero; their number is in `Immutable`.
    Length,
    /// The size of an array with one dimension and elements of nonzero size, in its header: from 0 to [`Region::LONGEST`].
    Size,
}

impl Region {
    /// All regions, by number.
    pub const ALL: [Region; 11] = [
        Region::Raw,
        Region::Slot,
        Region::Constant,
        Region::Field,
        Region::Immutable,
        Region::Element,
        Region::Header,
        Region::Frame,
        Region::Thread,
        Region::Length,
        Region::Size,
    ];

    /// An upper bound of the size of objects in bytes: no address space is larger.
    pub const LONGEST: i64 = (1 << 62) - 1;

    /// The name in low IR text.
    pub fn name(self) -> &'static str {
        match self {
            Region::Raw => "raw",
            Region::Slot => "slot",
            Region::Constant => "constant",
            Region::Field => "field",
            Region::Immutable => "immutable",
            Region::Element => "element",
            Region::Header => "header",
            Region::Frame => "frame",
            Region::Thread => "thread",
            Region::Length => "length",
            Region::Size => "size",
        }
    }
}

/// The order of an atomic access among others, as in Julia (and C++).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub enum Ordering {
    /// `:not_atomic`
    NotAtomic,
    /// `:unordered`
    Unordered,
    /// `:monotonic`
    Monotonic,
    /// `:acquire`
    Acquire,
    /// `:release`
    Release,
    /// `:acquire_release`
    AcquireRelease,
    /// `:sequentially_consistent`
    SequentiallyConsistent,
}

impl Ordering {
    /// All orders, weakest first.
    pub const ALL: [Ordering; 7] = [
        Ordering::NotAtomic,
        Ordering::Unordered,
        Ordering::Monotonic,
        Ordering::Acquire,
        Ordering::Release,
        Ordering::AcquireRelease,
        Ordering::SequentiallyConsistent,
    ];

    /// Julia's symbol for the order.
    pub fn name(self) -> &'static str {
        match self {
            Ordering::NotAtomic => "not_atomic",
            Ordering::Unordered => "unordered",
            Ordering::Monotonic => "monotonic",
            Ordering::Acquire => "acquire",
            Ordering::Release => "release",
            Ordering::AcquireRelease => "acquire_release",
            Ordering::SequentiallyConsistent => "sequentially_consistent",
        }
    }

    /// The order with this symbol.
    pub fn from_name(name: &str) -> Option<Ordering> {
        Ordering::ALL.into_iter().find(|o| o.name() == name)
    }
}

/// The new value of an atomic read-modify-write, from the old value and the operand.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum RmwOp {
    /// The operand.
    Xchg,
    /// Their sum.
    Add,
    /// The old value minus the operand.
    Sub,
    /// Bitwise and.
    And,
    /// Complement of the bitwise and.
    Nand,
    /// Bitwise or.
    Or,
    /// Bitwise exclusive or.
    Xor,
    /// The signed maximum.
    Smax,
    /// The signed minimum.
    Smin,
    /// The unsigned maximum.
    Umax,
    /// The unsigned minimum.
    Umin,
}

impl RmwOp {
    pub const ALL: [RmwOp; 11] = [
        RmwOp::Xchg,
        RmwOp::Add,
        RmwOp::Sub,
        RmwOp::And,
        RmwOp::Nand,
        RmwOp::Or,
        RmwOp::Xor,
        RmwOp::Smax,
        RmwOp::Smin,
        RmwOp::Umax,
        RmwOp::Umin,
    ];

    /// The name in low IR text.
    pub fn name(self) -> &'static str {
        match self {
            RmwOp::Xchg => "xchg",
            RmwOp::Add => "add",
            RmwOp::Sub => "sub",
            RmwOp::And => "and",
            RmwOp::Nand => "nand",
            RmwOp::Or => "or",
            RmwOp::Xor => "xor",
            RmwOp::Smax => "smax",
            RmwOp::Smin => "smin",
            RmwOp::Umax => "umax",
            RmwOp::Umin => "umin",
        }
    }
}
