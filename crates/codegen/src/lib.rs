//! Low IR to Cranelift IR.
#![forbid(unsafe_code)]

pub mod abi_id;
mod budget;
mod c_header;
pub mod callback;
pub mod compile;
pub mod compiled;
mod counters;
pub mod entry;
pub mod export;
pub mod generate;
mod guard;
pub mod isa;
pub mod lazy;
pub mod linkage;
pub mod native_type;
pub mod origin;
pub mod plain_entry;
pub mod relocate;
pub mod routines;
pub mod same_type;
pub mod sig;
mod single_pass;
pub mod target;
pub mod thread;
pub mod translate;
mod variables;
mod wide;

/// The version of Cranelift, on which code depends.
pub const CRANELIFT_VERSION: &str = cranelift_codegen::VERSION;
