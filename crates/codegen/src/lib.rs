//! Low IR to Cranelift IR.
#![forbid(unsafe_code)]
