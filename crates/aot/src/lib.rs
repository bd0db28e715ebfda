//! Code that outlives the process: compiled code in files.
//!
//! | file | what it holds |
//! |---|---|
//! | `build_id.rs` | which build of a package a file is |
//! | `executable.rs` | images as executables, by the system's linker |
//! | `image/` | programs as images: shared libraries that an engine loads |
//! | `package.rs` | packages: units with their programs, for sessions |
//! | `unit.rs` | units of code for a cache: the tables of images, with relocations |
//! | `object.rs` | compiled functions and their data as a relocatable object file |
#![forbid(unsafe_code)]

mod build_id;
pub mod executable;
pub mod image;
mod object;
pub mod package;
pub mod unit;

pub use object::{ObjectError, ObjectUnit, STRING_TYPE, emit_object};
