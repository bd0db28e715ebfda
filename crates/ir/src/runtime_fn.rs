//! The entry points of the run time that compiled code calls.
//!
//! Low IR names them by this enum and never by address, so that the same function can be interpreted, linked into a
//! process or written to an image. A row gives the symbol that the linker resolves, the low types of the arguments and
//! results, and whether the call comes back.
//!
//! The throwing entries record an exception in the thread and do not come back. What they are given is what the message
//! needs: the address of a symbol's or string's record, or an integer.

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

            /// The low types of the arguments; the thread is passed beside them.
            pub fn params(self) -> &'static [Type] {
                match self { $(RuntimeFn::$variant => &[$(Type::$param),*],)* }
            }

            /// The low types of the results.
            pub fn results(self) -> &'static [Type] {
                match self { $(RuntimeFn::$variant => &[$(Type::$result)?],)* }
            }

            fn kind(self) -> Kind {
                match self { $(RuntimeFn::$variant => Kind::$kind,)* }
            }
        }
    };
}

enum Kind {
    Throws,
    Prints,
}

runtime_fns! {
    /// Throws `DivideError()`.
    ThrowDivide "brolga_throw_divide" () Throws;
    /// Throws `BoundsError` for an index.
    ThrowBounds "brolga_throw_bounds" (I64) Throws;
    /// Throws `OverflowError` for the operator whose symbol is given.
    ThrowOverflow "brolga_throw_overflow" (PTR) Throws;
    /// Throws `InexactError` for the conversion whose symbol is given.
    ThrowInexact "brolga_throw_inexact" (PTR) Throws;
    /// Throws `DomainError` for the function whose symbol is given and the float argument that it got.
    ThrowDomain "brolga_throw_domain" (PTR, F64) Throws;
    /// Throws `ErrorException` with the string.
    ThrowError "brolga_throw_error" (PTR) Throws;
    /// Throws `ArgumentError` with the string.
    ThrowArgument "brolga_throw_argument" (PTR) Throws;
    /// Throws `UndefVarError` for the variable whose symbol is given.
    ThrowUndefVar "brolga_throw_undef_var" (PTR) Throws;
    /// Throws `UndefRefError()`.
    ThrowUndefRef "brolga_throw_undef_ref" () Throws;
    /// Throws `TypeError` in the context whose symbol is given.
    ThrowType "brolga_throw_type" (PTR) Throws;
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
    PrintString "brolga_print_string" (PTR) Prints;
    /// Prints the name of a symbol.
    PrintSymbol "brolga_print_symbol" (PTR) Prints;
    /// Prints `nothing`.
    PrintNothing "brolga_print_nothing" () Prints;
    /// Prints an address.
    PrintPtr "brolga_print_ptr" (PTR) Prints;
}

impl RuntimeFn {
    /// Whether the call comes back. The others throw.
    pub fn returns(self) -> bool {
        matches!(self.kind(), Kind::Prints)
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
