//! The types and SSA form of the IR.
#![forbid(unsafe_code)]

pub mod abi;
pub mod analysis;
mod append;
pub mod base_fn;
pub mod binary;
pub mod build;
pub mod builtin;
pub mod constant;
mod context;
pub mod cursor;
pub mod diag;
pub mod effects;
pub mod entity;
pub mod eq_table;
pub mod func;
pub mod hashing;
pub mod heap_abi;
pub mod ident;
pub mod interp;
pub mod intrinsic;
pub mod lanes;
pub mod module;
mod names;
pub mod odds;
pub mod op;
mod order;
pub mod runtime_fn;
pub mod scalar;
pub mod show;
pub mod text;
pub mod types;
pub mod unicode;
pub mod verify;

pub use constant::Const;
pub use context::Context;
pub use entity::{Block, Callee, Foreign, FuncId, Inst, Meta, Slot, Value};
pub use func::{Func, Param, Signature};
pub use module::Module;
pub use names::{Name, Names};
pub use op::{Level, Op};
pub use runtime_fn::{RuntimeFn, RuntimeKind};
pub use types::{LowType, PtrClass, Type, TypeKind, Types};
