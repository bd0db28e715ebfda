//! The types and SSA form of the IR.
#![forbid(unsafe_code)]

mod append;
pub mod builtin;
mod context;
pub mod ident;
pub mod intrinsic;
mod names;
pub mod types;

pub use context::Context;
pub use names::{Name, Names};
pub use types::{LowType, PtrClass, Type, TypeKind, Types};
