//! Code that outlives the process: what is compiled goes into files.
//!
//! | file | what it holds |
//! |---|---|
//! | `object.rs` | compiled functions and their data as a relocatable object file |
#![forbid(unsafe_code)]

mod object;

pub use object::{ObjectError, ObjectUnit, STRING_TYPE, emit_object};
