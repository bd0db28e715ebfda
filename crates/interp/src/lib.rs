//! The reference interpreter of the IR: the oracle of all tests.
//!
//! A crate of its own, so that it shares no code with lowering and code generation, which it checks. Its parts are listed in `interp/mod.rs`.
#![forbid(unsafe_code)]

mod interp;

pub use interp::*;
