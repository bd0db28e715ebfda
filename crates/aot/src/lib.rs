//! Compiled code in files, so that it outlives the process.
//!
//! | file | contents |
//! |---|---|
//! | `build_id.rs` | the identity of a package's build |
//! | `executable.rs` | images as executables, linked by the system's linker |
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
