//! The entry points of the run time that compiled code calls.
//!
//! Low IR names them by this enum and never by address, so that the same function can be interpreted, linked
//! into a process or written to an image. A row states the symbol that the linker resolves, the low types of
//! the arguments and results, and whether the call returns.
//!
//! | kind | action |
//! |---|---|
//! | throws | records an exception and does not return |
//! | prints | writes to the output |
//! | allocates | returns an object, or null with an exception recorded; a collection may happen |
//! | resizes | changes the length of an array; returns the array, or null with an exception recorded; a collection may happen |
//! | reads | returns a part of an object, or null with an exception recorded; a collection may happen |
//! | refills | changes a counter of the thread; returns an object, or null with an exception recorded; a collection may happen |
//! | asks | queries objects; no collection, no exception |
//! | finds | returns what the same call returns anywhere in the activation; no collection, no exception |
//! | barrier | records a store; no collection, no exception |
//! | handles | works on the exceptions of the thread |
//! | region | begins or ends a region in which collections do not wait for the thread |
//! | args | takes an array of objects and its length; returns an object, or null with an exception recorded |
//!
//! The throwing entries record an exception in the thread and do not return. Their arguments are the parts of
//! the message: the address of a symbol's record, a string, or a number.

use crate::types::Type;
use std::fmt;

macro_rules! runtime_fns {
    ($($(#[$doc:meta])* $variant:ident $symbol:literal ($($param:ident),*) $(-> $result:ident)? $kind:ident;)*) => {
        /// An entry point of the run time.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
        pub enum RuntimeFn { $($(#[$doc])* $variant,)* }

        impl RuntimeFn {
            /// All entry points.
            pub const ALL: &[RuntimeFn] = &[$(RuntimeFn::$variant,)*];

            /// The symbol that the linker resolves.
            pub fn symbol(self) -> &'static str {
                match self { $(RuntimeFn::$variant => $symbol,)* }
            }

            /// The low types of the arguments; the thread is passed in addition.
            pub fn params(self) -> &'static [Type] {
                match self { $(RuntimeFn::$variant => &[$(Type::$param),*],)* }
            }

            /// The low types of the results.
            pub fn results(self) -> &'static [Type] {
                match self { $(RuntimeFn::$variant => &[$(Type::$result)?],)* }
            }

            /// The kind of the routine.
            pub fn kind(self) -> RuntimeKind {
                match self { $(RuntimeFn::$variant => RuntimeKind::$kind,)* }
            }
        }
    };
}

/// Kinds of entry points; see [the module](self).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum RuntimeKind {
    /// Records an exception and does not return.
    Throws,
    /// Writes to the output.
    Prints,
    /// Returns an object, or null with an exception recorded.
    Allocates,
    /// Changes the length of an array. Returns the array, or null with an exception recorded.
    Resizes,
    /// Returns what an object holds, or null with an exception recorded.
    Reads,
    /// Refills a counter of the thread. Returns an object, or null with an exception recorded.
    Refills,
    /// Queries objects.
    Asks,
    /// Returns the same for the same arguments during the whole activation of a function.
    Finds,
    /// Records a store.
    Barrier,
    /// Works on the exceptions of the thread.
    Handles,
    /// Begins or ends a region in which collections do not wait for the thread.
    Region,
    /// Takes an array of objects and its length; returns an object, or null with an exception recorded.
    Args,
}

runtime_fns! {
    /// Throws `DivideError()`.
    ThrowDivide "brolga_throw_divide" () Throws;
    /// Throws `BoundsError` for an index.
    ThrowBounds "brolga_throw_bounds" (I64) Throws;
    /// Throws the exception that a function of Base makes from a symbol and numbers: the packed
    /// [`Thrown`](crate::base_fn::Thrown), the symbol, and the low and high halves of both numbers.
    ThrowOperands "brolga_throw_operands" (I64, PTR, I64, I64, I64, I64) Throws;
    /// Throws `ErrorException` with the string.
    ThrowError "brolga_throw_error" (TRACKED) Throws;
    /// Throws `ArgumentError` with the string.
    ThrowArgument "brolga_throw_argument" (TRACKED) Throws;
    /// Throws `UndefVarError` for the variable whose symbol is given.
    ThrowUndefVar "brolga_throw_undef_var" (PTR) Throws;
    /// Throws `UndefRefError()`.
    ThrowUndefRef "brolga_throw_undef_ref" () Throws;
    /// Prints a signed integer of at most 64 bits.
    PrintInt "brolga_print_int" (I64) Prints;
    /// Prints an unsigned integer of at most 64 bits; the second argument is its width in bits.
    PrintUInt "brolga_print_uint" (I64, I32) Prints;
    /// Prints a 128-bit integer given as low and high half; the third argument is 1 for signed.
    PrintInt128 "brolga_print_int128" (I64, I64, I32) Prints;
    /// Prints a float given as its bits; the second argument is its width in bits.
    PrintFloat "brolga_print_float" (I64, I32) Prints;
    /// Prints `true` or `false`.
    PrintBool "brolga_print_bool" (I8) Prints;
    /// Prints a character given as its bits.
    PrintChar "brolga_print_char" (I32) Prints;
    /// Prints the text of a string.
    PrintString "brolga_print_string" (TRACKED) Prints;
    /// Prints the name of a symbol.
    PrintSymbol "brolga_print_symbol" (TRACKED) Prints;
    /// Prints `nothing`.
    PrintNothing "brolga_print_nothing" () Prints;
    PrintPtr "brolga_print_ptr" (PTR) Prints;
    /// Prints an object.
    PrintAny "brolga_print_any" (TRACKED) Prints;
    /// A zeroed object of `n` bytes and this type.
    GcAlloc "brolga_gc_alloc" (I64, PTR) -> TRACKED Allocates;
    /// A `Memory` of this type with `n` elements.
    GcMemory "brolga_gc_memory" (PTR, I64) -> TRACKED Allocates;
    /// A `String` of `n` zero bytes.
    GcString "brolga_gc_string" (I64) -> TRACKED Allocates;
    /// Appends `n` undefined elements to a vector.
    ArrayGrowEnd "brolga_array_grow_end" (TRACKED, I64) -> TRACKED Resizes;
    /// Removes the last `n` elements of a vector.
    ArrayDelEnd "brolga_array_del_end" (TRACKED, I64) -> TRACKED Resizes;
    /// Removes the first `n` elements of a vector.
    ArrayDelBeg "brolga_array_del_beg" (TRACKED, I64) -> TRACKED Resizes;
    /// A boxed `Int64`.
    BoxInt "brolga_gc_box_int" (I64) -> TRACKED Allocates;
    /// A reference that does not keep its object alive.
    WeakRef "brolga_gc_weak_ref" (TRACKED) -> TRACKED Allocates;
    /// Returns `nothing`, or null if a program function called from C ended with an exception, which is
    /// rethrown here.
    CarriedException "brolga_carried_exception" () -> TRACKED Allocates;
    /// `getfield` of an object of any type by a field's name or number.
    GetField "brolga_get_field" (TRACKED, TRACKED) -> TRACKED Reads;
    /// The number of elements of a tuple.
    TupleLength "brolga_tuple_length" (TRACKED) -> I64 Asks;
    /// The element of a tuple with a number, from 1.
    TupleElement "brolga_tuple_element" (TRACKED, I64) -> TRACKED Reads;
    /// Called when the thread's fuel counter is below zero: refills it and returns `nothing`, or null if the
    /// call has no fuel left, which ends it.
    Refuel "brolga_refuel" () -> TRACKED Refills;
    /// The cell of the running thread of a thread-local variable, by the address of the variable's cell; of
    /// any other variable, its cell.
    ThreadCell "brolga_thread_cell" (PTR) -> PTR Finds;
    /// Records a store into an old object.
    GcWrite "brolga_gc_write" (TRACKED) Barrier;
    /// Records a store of one reference into an old `Memory`, at this address.
    GcWriteAt "brolga_gc_write_at" (TRACKED, PTR) Barrier;
    /// The thread is about to block.
    GcLeave "brolga_gc_leave" () Region;
    /// The thread has blocked.
    GcEnter "brolga_gc_enter" () Region;
    /// Throws an object.
    Throw "brolga_throw" (TRACKED) Throws;
    /// Throws `TypeError`: a function, named by a symbol, expected a value of a type and received an object.
    ThrowTypeAssert "brolga_throw_type_assert" (PTR, PTR, TRACKED) Throws;
    /// Throws `BoundsError` for an array and an index.
    ThrowBoundsOf "brolga_throw_bounds_of" (TRACKED, I64) Throws;
    /// Throws `BoundsError(of, (index,))`.
    ThrowBoundsIn "brolga_throw_bounds_in" (TRACKED, I64) Throws;
    /// Rethrows the exception being handled.
    Rethrow "brolga_rethrow" () Throws;
    /// The exception being handled, as an object that the thread keeps alive.
    CurrentException "brolga_current_exception" () -> TRACKED Handles;
    /// The number of exceptions being handled.
    ExceptionDepth "brolga_exception_depth" () -> I64 Handles;
    /// Drops the exceptions above a depth.
    PopException "brolga_pop_exception" (I64) Handles;
    /// Whether an object has a type: 1 or 0.
    Isa "brolga_isa" (TRACKED, PTR) -> I32 Asks;
    /// Whether one type is a subtype of another: 1 or 0.
    Subtype "brolga_subtype" (TRACKED, TRACKED) -> I32 Asks;
    /// Whether two objects are indistinguishable (`===`): 1 or 0. Null equals only null.
    Egal "brolga_egal" (TRACKED, TRACKED) -> I32 Asks;
    /// The hash of an object (`objectid`).
    ObjectId "brolga_object_id" (TRACKED) -> I64 Asks;
    /// Calls the first object with the others.
    Apply "brolga_apply" (PTR, I64) -> TRACKED Args;
    /// Calls the first object with the others, in the newest world.
    ApplyLatest "brolga_apply_latest" (PTR, I64) -> TRACKED Args;
    /// Calls the builtin whose function is the first object with the others, without method lookup.
    ApplyBuiltin "brolga_apply_builtin" (PTR, I64) -> TRACKED Args;
    /// Calls the second object with the elements of the following objects; the first is the function that
    /// iterates.
    ApplyIterate "brolga_apply_iterate" (PTR, I64) -> TRACKED Args;
    /// A tuple of the objects.
    Tuple "brolga_tuple" (PTR, I64) -> TRACKED Args;
    /// Calls the function of Julia's run time named by the first object, a symbol, with the others.
    JuliaCall "brolga_julia_call" (PTR, I64) -> TRACKED Args;
    /// The static parameter of a call: takes the `where` of the method as a type
    /// ([`Statics::to_type`](crate::types::Statics::to_type)), its number, and the arguments. Throws
    /// `UndefVarError` if it has no value.
    StaticParameter "brolga_static_parameter" (PTR, I64) -> TRACKED Args;
    /// Whether the static parameter of a call has a value, with the same operands.
    StaticDefined "brolga_static_defined" (PTR, I64) -> TRACKED Args;
}

impl RuntimeFn {
    /// Whether the call returns. The others throw.
    pub fn returns(self) -> bool {
        self.kind() != RuntimeKind::Throws
    }

    /// Whether it takes an array of objects and its length, so that low IR may list the objects instead.
    pub fn takes_array(self) -> bool {
        self.kind() == RuntimeKind::Args
    }

    /// Whether a null result means that an exception was recorded.
    pub fn may_fail(self) -> bool {
        matches!(
            self.kind(),
            RuntimeKind::Allocates
                | RuntimeKind::Resizes
                | RuntimeKind::Reads
                | RuntimeKind::Refills
                | RuntimeKind::Args
        )
    }

    /// Whether a collection may happen during the call.
    pub fn may_safepoint(self) -> bool {
        !matches!(self.kind(), RuntimeKind::Asks | RuntimeKind::Finds | RuntimeKind::Barrier)
    }

    /// The entry point with this symbol.
    pub fn from_symbol(symbol: &str) -> Option<RuntimeFn> {
        RuntimeFn::ALL.iter().copied().find(|f| f.symbol() == symbol)
    }
}

impl fmt::Display for RuntimeFn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.symbol())
    }
}
