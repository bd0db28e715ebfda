//! Hints about inlining, for front ends with better information than the cost model's.
//!
//! ```
//! use brolga_ir::{Context, Type, build::{BuildError, Builder}, hints::Inlining, text::show_func};
//!
//! fn build(cx: &Context) -> Result<brolga_ir::Func, BuildError> {
//!     let mut b = Builder::high(cx, "caller", &[("x", Type::INT64)], Type::INT64);
//!     b.set_inlining(Inlining::Never)?; // into callers of `caller`
//!     let x = b.param(0)?;
//!     let y = b.invoke("kernel", &[x], Type::INT64)?;
//!     b.set_call_inlining(y, Inlining::Always)?; // of this call
//!     b.ret(&[y])?;
//!     b.finish()
//! }
//!
//! let cx = Context::new();
//! let text = show_func(&cx, &build(&cx).unwrap()).to_string();
//! assert!(text.starts_with("function caller(x::Int64)::Int64 noinline\n"));
//! assert!(text.contains("invoke Main.kernel(x::Int64)::Int64 inline\n"));
//! ```

use super::{BuildError, Builder};
use crate::entity::Value;
use crate::hints::Inlining;
use crate::op::Level;

impl Builder<'_> {
    /// Sets whether the body of this function replaces calls of it that have no hint of their own.
    pub fn set_inlining(&mut self, inlining: Inlining) -> Result<(), BuildError> {
        if self.func.level == Level::Low {
            return Err(BuildError::NeverInlined(None));
        }
        self.func.inlining = Some(inlining);
        Ok(())
    }

    /// Sets whether the body of the callee replaces the call that produces this value, overriding the
    /// callee's hint.
    pub fn set_call_inlining(&mut self, call: Value, inlining: Inlining) -> Result<(), BuildError> {
        let value = self.known(call)?;
        let never = BuildError::NeverInlined(Some(value));
        let Some(inst) = self.func.def_inst(value) else { return Err(never) };
        self.func.set_call_inlining(inst, Some(inlining));
        if self.func.call_inlining(inst).is_none() { Err(never) } else { Ok(()) }
    }
}
