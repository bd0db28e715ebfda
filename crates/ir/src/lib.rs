//! The types and SSA form of the IR.
#![forbid(unsafe_code)]

pub mod builtin;
pub mod intrinsic;
