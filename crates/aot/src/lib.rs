//! Code that outlives the process: what is compiled goes into files.
//!
//! | file | what it holds |
//! |---|---|
//! | `executable.rs` | images as executables, by the system's linker |
//! | `image/` | programs as images: shared libraries that an engine loads |
//! | `object.rs` | compiled functions and their data as a relocatable object file |
#![forbid(unsafe_code)]

pub mod executable;
pub mod image;
mod object;

pub use object::{ObjectError, ObjectUnit, STRING_TYPE, emit_object};
