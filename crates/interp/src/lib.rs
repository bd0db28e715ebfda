//! The reference interpreter of the IR: the oracle of all tests.
//!
//! A separate crate, so that it shares no code with lowering and code generation, which it checks.
//! `interp/mod.rs` lists its parts.
#![forbid(unsafe_code)]

mod interp;

pub use interp::*;
