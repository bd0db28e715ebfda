//! Brolga turns a Julia-like SSA IR into fast native code.
#![forbid(unsafe_code)]

pub mod fuzz;
