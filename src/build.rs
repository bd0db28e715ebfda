//! Programs built in Rust: each statement is checked when it is added.
//!
//! ```
//! use brolga::build::{BuildError, Builder, Context, Intrinsic, Module, Record, Type};
//! use brolga::{Engine, Options, Program};
//!
//! /// `total = 0; while 0 < n; try total += 100 ÷ n catch; total = -1 end; n -= 1 end; total`, on lines 1 to 3 of a file.
//! fn quotients(cx: &Context) -> Result<brolga::build::Func, BuildError> {
//!     let mut b = Builder::high(cx, "quotients", &[("n", Type::INT64)], Type::INT64);
//!     b.set_file("quotients.src");
//!     let (total, n) = (b.declare_named_var("total", Type::INT64), b.declare_named_var("n", Type::INT64));
//!     let (zero, one) = (b.int(Type::INT64, 0)?, b.int(Type::INT64, 1)?);
//!     let hundred = b.int(Type::INT64, 100)?;
//!     let given = b.param(0)?;
//!     b.set_line_column(1, 1);
//!     b.def_var(total, zero)?;
//!     b.def_var(n, given)?;
//!     b.while_loop(
//!         |b| {
//!             let n = b.use_var(n)?;
//!             b.intrinsic(Intrinsic::SltInt, &[zero, n])
//!         },
//!         |b| {
//!             b.set_line(2);
//!             b.try_catch(
//!                 |b| {
//!                     let at = b.use_var(n)?;
//!                     let part = b.intrinsic(Intrinsic::CheckedSdivInt, &[hundred, at])?;
//!                     let sum = b.use_var(total)?;
//!                     let sum = b.intrinsic(Intrinsic::AddInt, &[sum, part])?;
//!                     b.def_var(total, sum)
//!                 },
//!                 |b, _exception| b.int(Type::INT64, -1).and_then(|failed| b.def_var(total, failed)),
//!             )?;
//!             b.set_line(3);
//!             let at = b.use_var(n)?;
//!             let next = b.intrinsic(Intrinsic::SubInt, &[at, one])?;
//!             b.def_var(n, next)
//!         },
//!     )?;
//!     let total = b.use_var(total)?;
//!     b.ret(&[total])?;
//!     b.finish()
//! }
//!
//! let cx = Context::new();
//! let mut module = Module::new(cx.clone());
//! module.add_func(quotients(&cx)?)?;
//! // Types are declared beside functions.
//! let point = Record::new("Point").field("x", Type::FLOAT64).field("y", Type::FLOAT64).declare(&cx)?;
//! assert_eq!(cx.types.display(point).to_string(), "Point");
//! let unit = Engine::new(Options::new())?.compile(&Program::from_module(module)?)?;
//! assert_eq!(unit.func::<(i64,), i64>("quotients")?.call((3,))?, 33 + 50 + 100);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub use brolga_ir::base_fn::BaseFn;
pub use brolga_ir::build::{BuildError, Builder, ForeignId, Record, Variable, shapes};
pub use brolga_ir::builtin::Builtin;
pub use brolga_ir::diag::{Diagnostic, Diagnostics, Severity, Span};
pub use brolga_ir::func::ForeignData;
pub use brolga_ir::intrinsic::Intrinsic;
pub use brolga_ir::module::ModuleError;
pub use brolga_ir::types::{DeclKind, FieldDecl, LayoutError, TypeError};
pub use brolga_ir::{Block, Context, Func, FuncId, Level, Module, Param, Signature, Type, Value};
