//! The inside, for tools: no version promises anything about it. [`ir`](crate::ir), [`opt`](crate::opt) and [`interp`](crate::interp) belong to it.

/// The compilation steps one by one, for inspection.
///
/// ```
/// use brolga::observe::show_func;
/// use brolga::opt::{Cx, Options};
/// use brolga::unstable::Stages;
/// use brolga::{OptLevel, Program};
/// const FOUR: &str = "
/// function four()::Int64
/// 1 ─ %1 = Base.add_int(2, 2)::Int64
/// └──      return %1
/// end";
///
/// let program = Program::read("four.jlir", FOUR.as_bytes())?;
/// let options = Options::default();
/// let mut stages = Stages::new(program.module(), OptLevel::O2, &options, Cx::default());
/// let (id, _) = program.module().funcs().next().unwrap();
/// let optimised = stages.optimised(id)?;
/// assert!(show_func(program.context(), &optimised).to_string().contains("return 4"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(inline)]
pub use brolga_engine::Stages;

pub use brolga_engine::{Counted, KeptRun, main_call, read_unit};
