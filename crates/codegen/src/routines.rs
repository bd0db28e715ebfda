//! The routines of the run time that code generation itself calls, by name.
//!
//! They complement the entry points that low IR names (`RuntimeFn` of `ir`). Code refers to either as
//! [`Symbol::Routine`](crate::compiled::Symbol) and calls it with the host's C convention; the run time defines each as an
//! `extern "C"` function of the same name (a test in `jit` compares the lists). A `RuntimeFn` takes the
//! thread before the parameters of its row. Rules:
//!
//! - No parameter or result is narrower than 32 bits, because C conventions differ in whether caller or callee extends narrow values.
//!   `Bool` and the bits of a `Float16` are passed in the low bits of an `I32`, zero-extended.
//! - A 128-bit integer is passed as two `I64` halves, low first; a 128-bit result is stored through a pointer before the other parameters.
//! - No routine unwinds except two. One that throws leaves the exception in the thread and returns; the code then calls
//!   `brolga_unwind` (or jumps to its own handler), which does not return. `brolga_safepoint` calls that itself.
//! - `Thread` is the thread structure's address.
//! - A routine marked `keeps_registers` saves every register that it touches: it is called by `preserve_all`. It has no
//!   result.

use cranelift_codegen::ir::Signature as ClifSignature;
use cranelift_codegen::isa::CallConv;

use crate::sig::{Abi, c_signature};

/// One routine: its name and native signature.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Routine {
    /// The linked name.
    pub name: &'static str,
    /// Parameters.
    pub params: &'static [Abi],
    /// Result.
    pub result: Option<Abi>,
    /// Whether it leaves all registers as they were.
    pub keeps_registers: bool,
}

impl Routine {
    /// The Cranelift signature, given the host's C convention.
    pub fn clif(&self, host: CallConv) -> ClifSignature {
        let convention = if self.keeps_registers { CallConv::PreserveAll } else { host };
        c_signature(convention, self.params, self.result.as_slice())
    }
}

/// The routine of that name.
pub fn routine(name: &str) -> Option<&'static Routine> {
    ROUTINES.iter().find(|r| r.name == name)
}

macro_rules! routines {
    ($($(#[$doc:meta])* $name:literal ($($param:ident),*) $(-> $result:ident)? $(, $keeps:ident)?;)*) => {
        /// All routines.
        pub const ROUTINES: &[Routine] = &[$(Routine {
            name: $name,
            params: &[$(abi!($param)),*],
            result: routines!(@result $($result)?),
            keeps_registers: routines!(@keeps $($keeps)?),
        },)*];
    };
    (@keeps) => { false };
    (@keeps keeps_registers) => { true };
    (@result) => { None };
    (@result $result:ident) => { Some(abi!($result)) };
}

macro_rules! abi {
    (Thread) => {
        Abi::Ptr
    };
    ($kind:ident) => {
        Abi::$kind
    };
}

routines! {
    // Exceptions.

    // (thread): continues at the innermost handler; does not return.
    "brolga_unwind" (Thread);
    // (thread): throws for a failed stack check.
    "brolga_throw_stack_overflow" (Thread);
    // (thread): throws the exception that is being handled once more.
    "brolga_rethrow" (Thread);
    // (thread, depth): forgets the exceptions above a depth, for `pop_exception`.
    "brolga_pop_exception" (Thread, I64);
    // Answers requests to the thread, which is in the pinned register; returns, or throws.
    "brolga_safepoint" (), keeps_registers;

    // The same by the C convention, for a thread that has a handler in the running function: not 0 if an exception is pending.
    "brolga_safepoint_status" (Thread) -> I32;

    // (thread, symbol): the address of the C function with this name, if there was none when the code was linked; 0 if an exception is pending.
    "brolga_foreign_symbol" (Thread, Ptr) -> Ptr;
    "brolga_given_symbol" (Thread, Ptr) -> Ptr;

    // 128-bit integers. Division by zero yields 0; the code checks before.

    "brolga_i128_div" (Ptr, I64, I64, I64, I64);
    "brolga_i128_rem" (Ptr, I64, I64, I64, I64);
    "brolga_u128_div" (Ptr, I64, I64, I64, I64);
    "brolga_u128_rem" (Ptr, I64, I64, I64, I64);
    "brolga_i128_to_f32" (I64, I64) -> F32;
    "brolga_i128_to_f64" (I64, I64) -> F64;
    "brolga_u128_to_f32" (I64, I64) -> F32;
    "brolga_u128_to_f64" (I64, I64) -> F64;
    // Towards zero; out of range saturates and NaN yields 0. A Float32 or Float16 is widened first.
    "brolga_f64_to_i128" (Ptr, F64);
    "brolga_f64_to_u128" (Ptr, F64);

    // Float16.

    "brolga_f16_to_f32" (I32) -> F32;
    "brolga_f32_to_f16" (F32) -> I32;
    "brolga_f64_to_f16" (F64) -> I32;

    // Routines that Cranelift calls itself on processors without the instruction.

    "brolga_fma_f32" (F32, F32, F32) -> F32;
    "brolga_fma_f64" (F64, F64, F64) -> F64;
    "brolga_ceil_f32" (F32) -> F32;
    "brolga_ceil_f64" (F64) -> F64;
    "brolga_floor_f32" (F32) -> F32;
    "brolga_floor_f64" (F64) -> F64;
    "brolga_trunc_f32" (F32) -> F32;
    "brolga_trunc_f64" (F64) -> F64;
    "brolga_nearest_f32" (F32) -> F32;
    "brolga_nearest_f64" (F64) -> F64;
    "brolga_memcpy" (Ptr, Ptr, I64) -> Ptr;
    "brolga_memmove" (Ptr, Ptr, I64) -> Ptr;
    "brolga_memset" (Ptr, I32, I64) -> Ptr;
    "brolga_memcmp" (Ptr, Ptr, I64) -> I32;
    // Remainder with the sign of the dividend, as C's `fmod`.
    "brolga_rem_f32" (F32, F32) -> F32;
    "brolga_rem_f64" (F64, F64) -> F64;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_nothing_is_narrow() {
        let mut names: Vec<_> = ROUTINES.iter().map(|r| r.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), ROUTINES.len());
        for routine in ROUTINES {
            let narrow = |abi: &Abi| abi.bits() < 32 || *abi == Abi::I128;
            assert!(!routine.params.iter().chain(&routine.result).any(narrow), "{}", routine.name);
            assert!(!routine.keeps_registers || routine.result.is_none(), "{}", routine.name);
        }
    }
}
