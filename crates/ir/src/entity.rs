//! The ids of a function's parts.
//!
//! Each is a number below 2³² − 1 that is meaningful only in the [`Func`](crate::Func) (or
//! [`Module`](crate::Module)) that made it. Facts about entities live in side tables indexed by them.

use cranelift_entity::entity_impl;

macro_rules! entities {
    ($($(#[$doc:meta])* $name:ident $prefix:literal;)*) => { $(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(u32);
        entity_impl!($name, $prefix);
    )* };
}

entities! {
    /// A basic block.
    Block "block";
    /// An instruction: a statement of the printed IR.
    Inst "inst";
    /// A value: the result of an instruction, an argument, or a constant.
    Value "v";
    /// A constant of a function.
    ConstId "const";
    /// A function called by a function.
    Callee "callee";
    /// The signature and name of a C function called by a function.
    Foreign "foreign";
    /// A piece of stack memory of an activation.
    Slot "slot";
    /// A note to later passes, such as a `@simd` mark.
    Meta "meta";
    /// A call that the body of its callee took the place of.
    Inlined "inlined";
    /// A function of a module.
    FuncId "func";
}
