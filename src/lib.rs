//! The library for embedders; the `brolga` command is a thin layer over it.
//!
#![doc = include_str!("../README.md")]
//!
//! # Reading order
//!
//! | item | what it is |
//! |---|---|
//! | [`Program`] | a program, read from text and verified |
//! | [`Engine`], [`Options`] | compiles programs and links them into the process |
//! | [`Unit`], [`TypedFunc`] | compiled functions, and typed handles to call them |
//! | [`Evaluator`] | calls and tests written as text, run natively or by the interpreter |
//! | [`image`], [`Image`] | programs compiled ahead of time and opened by path |
//! | [`cache`] | code that outlives the process, in a directory, Redis or an object store |
//! | [`Stages`], [`emit`] | the compilation steps one by one, and their listings |
//! | [`build`] | programs built in Rust, statement by statement |
//! | [`executor`] | compiled code in a process of its own |
//! | [`Guests`] | calls as futures that yield after each time slice |
//! | [`session`] | functions compiled on demand by many threads, replaced and removed |
//! | `explore`, with the feature of that name | an HTML page that shows a program from its source to its machine code |
//! | [`events`] | one listener for compilation, publishing, tier changes and collections |
//! | `observe`, with the feature of that name | traces for Perfetto, tables, statistics over measurements |
//! | [`Error`], [`Failure`] | the errors, and whose fault each one is |
//! | [`ir`], [`opt`] | the IR and the optimiser |
//!
//! The page of each main type has an example.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod executor;
#[cfg(doctest)]
mod guide;

/// Compiles whole programs and links them into the process.
///
/// ```
/// use brolga::{Engine, Options, Program};
/// const FIB: &str = "
/// function fib(n::Int64)::Int64
/// 1 ─ %1 = Base.slt_int(n, 2)::Bool
/// └──      goto #3 if not %1
/// 2 ─      return n
/// 3 ─ %4 = Base.sub_int(n, 1)::Int64
/// │   %5 = invoke Main.fib(%4::Int64)::Int64
/// │   %6 = Base.sub_int(n, 2)::Int64
/// │   %7 = invoke Main.fib(%6::Int64)::Int64
/// │   %8 = Base.add_int(%5, %7)::Int64
/// └──      return %8
/// end";
///
/// let engine = Engine::new(Options::new())?;
/// let unit = engine.compile(&Program::read("fib.jlir", FIB.as_bytes())?)?;
/// assert_eq!(unit.func::<(i64,), i64>("fib")?.call((20,))?, 6765);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(inline)]
pub use brolga_engine::Engine;

/// The options of an engine or session, each set by a method.
///
/// ```
/// use brolga::{Engine, OptLevel, Options, Output};
/// let options = Options::new().opt_level(OptLevel::O3).heap_limit(Some(64 << 20)).output(Output::Capture);
/// let engine = Engine::new(options)?;
/// assert_eq!(engine.runtime().heap().options().limit, Some(64 << 20));
/// # Ok::<(), brolga::Error>(())
/// ```
#[doc(inline)]
pub use brolga_engine::Options;

/// A verified program, read from text or built as a module.
///
/// ```
/// use brolga::Program;
/// const TWICE: &str = "
/// ## check: twice(4) == 8
/// function twice(n::Int64)::Int64
/// 1 ─ %1 = Base.add_int(n, n)::Int64
/// └──      return %1
/// end";
///
/// let program = Program::read("twice.jlir", TWICE.as_bytes())?;
/// assert_eq!(program.module().func_count(), 1);
/// assert_eq!(program.checks().len(), 1);
///
/// let error = Program::read("wrong.jlir", TWICE.replace("add_int", "add_itn").as_bytes()).unwrap_err();
/// assert!(error.to_string().contains("wrong.jlir:4:"), "the place of the fault: {error}");
/// # Ok::<(), brolga::Error>(())
/// ```
#[doc(inline)]
pub use brolga_engine::Program;

/// The functions of one program, by name.
///
/// ```
/// use brolga::{Engine, Options, Program};
/// const TWICE: &str = "
/// function twice(n::Int64)::Int64
/// 1 ─ %1 = Base.add_int(n, n)::Int64
/// └──      return %1
/// end
/// function twice(x::Float64)::Float64
/// 1 ─ %1 = Base.add_float(x, x)::Float64
/// └──      return %1
/// end";
///
/// let engine = Engine::new(Options::new())?;
/// let unit = engine.compile(&Program::read("twice.jlir", TWICE.as_bytes())?)?;
/// assert_eq!(unit.symbols().collect::<Vec<_>>(), ["twice(Float64)", "twice(Int64)"]);
/// let twice = unit.func::<(f64,), f64>("twice(Float64)")?;
/// drop(unit);
/// assert_eq!(twice.call((1.5,))?, 3.0, "a function keeps its code");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(inline)]
pub use brolga_engine::Unit;

/// Evaluates calls written as text, natively or by the interpreter, and runs a program's tests.
///
/// ```
/// use brolga::{Engine, Evaluator, Options, Program, Verdict};
/// const HALF: &str = "
/// ## check: half(9) == 4
/// function half(n::Int64)::Int64
/// 1 ─ %1 = Base.checked_sdiv_int(n, 2)::Int64
/// └──      return %1
/// end";
///
/// let program = Program::read("half.jlir", HALF.as_bytes())?;
/// let engine = Engine::new(Options::new())?;
/// for mut evaluator in [Evaluator::interpreted(&program), Evaluator::native(&program, &engine)] {
///     assert_eq!(evaluator.call(&program.call("half(-7)")?)?, "-3");
///     assert_eq!(evaluator.check(&program.checks()[0]), Verdict::Passed);
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(inline)]
pub use brolga_engine::Evaluator;

/// The compilation steps one by one, for inspection.
///
/// ```
/// use brolga::ir::text::show_func;
/// use brolga::opt::{Cx, Options};
/// use brolga::{OptLevel, Program, Stages};
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

/// A program compiled ahead of time.
///
/// ```
/// use brolga::{Doors, Engine, Options, Program, image};
/// const HALF: &str = "
/// function half(n::Int64)::Int64
/// 1 ─ %1 = Base.checked_sdiv_int(n, 2)::Int64
/// └──      return %1
/// end";
///
/// if cfg!(target_arch = "x86_64") {
///     let bytes = image::build(&Program::read("half.jlir", HALF.as_bytes())?, &Options::new())?;
///     // SAFETY: the image is the one that was just made.
///     let doors = unsafe { Doors::open() };
///     let opened = Engine::new(Options::new().doors(doors))?.open_bytes(bytes)?;
///     assert_eq!(opened.unit().func::<(i64,), i64>("half")?.call((8,))?, 4);
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(inline)]
pub use brolga_engine::Image;

/// An error that says whose fault it is; for broken input it has all findings with their positions.
///
/// ```
/// use brolga::{Error, Fault, Program};
/// let error = Program::read("wrong.jlir", b"function f(n::Int64)::Int64\nend\n").unwrap_err();
/// assert_eq!(error.fault(), Fault::Program);
/// let Error::Broken(broken) = error else { panic!("{error}") };
/// assert_eq!(broken.findings.total(), 1);
/// assert!(broken.to_string().starts_with("error[syntax-rows]: the function has no statement\n  --> wrong.jlir:1:1"));
/// ```
#[doc(inline)]
pub use brolga_engine::Error;

/// Programs that see each other; a function is compiled at its first lookup.
///
/// ```
/// use brolga::{Options, Session, Workers};
/// const HALF: &str = "
/// function half(n::Int64)::Int64
/// 1 ─ %1 = Base.checked_sdiv_int(n, 2)::Int64
/// └──      return %1
/// end";
///
/// let session = Session::new(Options::new(), Workers::Pool(1))?;
/// let main = session.create_dylib("main")?;
/// main.define(main.read("half.jlir", HALF.as_bytes())?)?;
/// assert_eq!(session.stats().compiled_functions, 0);
/// assert_eq!(main.func::<(i64,), i64>("half")?.call((8,))?, 4);
/// assert_eq!(session.stats().compiled_functions, 1);
/// session.end();
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(inline)]
pub use brolga_engine::Session;

/// Why a step on symbols failed: the whole chain of causes, down to the root.
///
/// ```
/// use brolga::{Options, Session, SessionError, Workers};
/// let session = Session::new(Options::new(), Workers::Caller)?;
/// let main = session.create_dylib("main")?;
/// let error = main.function("nothing").unwrap_err();
/// assert!(matches!(error, SessionError::Link(_)), "{error}");
/// assert!(error.to_string().contains("nothing"), "{error}");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(inline)]
pub use brolga_engine::SessionError;

/// The threads that compile.
///
/// ```
/// use brolga::{Options, Session, Workers};
/// for workers in [Workers::Pool(2), Workers::Caller, Workers::Seeded(7)] {
///     Session::new(Options::new(), workers)?.end();
/// }
/// # Ok::<(), brolga::Error>(())
/// ```
#[doc(inline)]
pub use brolga_engine::Workers;

#[doc(inline)]
pub use brolga_cache as cache;
pub use brolga_engine::{
    Broken, Counted, CpuTarget, Failure, Fault, KeptRun, Verdict, emit, image, read_unit, session,
};
#[cfg(feature = "explore")]
pub use brolga_explore as explore;
pub use brolga_gcroots::Lowering as Roots;
pub use brolga_interp as interp;
pub use brolga_ir as ir;
#[doc(inline)]
pub use brolga_ir::Arch;

/// Programs built in Rust: each statement is checked when it is added.
///
/// ```
/// use brolga::build::{BuildError, Builder, Record};
/// use brolga::ir::intrinsic::Intrinsic;
/// use brolga::ir::{Context, Module, Type};
/// use brolga::{Engine, Options, Program};
///
/// /// `total = 0; while 0 < n; try total += 100 ÷ n catch; total = -1 end; n -= 1 end; total`, on lines 1 to 3 of a file.
/// fn quotients(cx: &Context) -> Result<brolga::ir::Func, BuildError> {
///     let mut b = Builder::high(cx, "quotients", &[("n", Type::INT64)], Type::INT64);
///     b.set_file("quotients.src");
///     let (total, n) = (b.declare_named_var("total", Type::INT64), b.declare_named_var("n", Type::INT64));
///     let (zero, one) = (b.int(Type::INT64, 0)?, b.int(Type::INT64, 1)?);
///     let hundred = b.int(Type::INT64, 100)?;
///     let given = b.param(0)?;
///     b.set_line_column(1, 1);
///     b.def_var(total, zero)?;
///     b.def_var(n, given)?;
///     b.while_loop(
///         |b| {
///             let n = b.use_var(n)?;
///             b.intrinsic(Intrinsic::SltInt, &[zero, n])
///         },
///         |b| {
///             b.set_line(2);
///             b.try_catch(
///                 |b| {
///                     let at = b.use_var(n)?;
///                     let part = b.intrinsic(Intrinsic::CheckedSdivInt, &[hundred, at])?;
///                     let sum = b.use_var(total)?;
///                     let sum = b.intrinsic(Intrinsic::AddInt, &[sum, part])?;
///                     b.def_var(total, sum)
///                 },
///                 |b, _exception| b.int(Type::INT64, -1).and_then(|failed| b.def_var(total, failed)),
///             )?;
///             b.set_line(3);
///             let at = b.use_var(n)?;
///             let next = b.intrinsic(Intrinsic::SubInt, &[at, one])?;
///             b.def_var(n, next)
///         },
///     )?;
///     let total = b.use_var(total)?;
///     b.ret(&[total])?;
///     b.finish()
/// }
///
/// let cx = Context::new();
/// let mut module = Module::new(cx.clone());
/// module.add_func(quotients(&cx)?)?;
/// // Types are declared beside functions.
/// let point = Record::new("Point").field("x", Type::FLOAT64).field("y", Type::FLOAT64).declare(&cx)?;
/// assert_eq!(cx.types.display(point).to_string(), "Point");
/// let unit = Engine::new(Options::new())?.compile(&Program::from_module(module)?)?;
/// assert_eq!(unit.func::<(i64,), i64>("quotients")?.call((3,))?, 33 + 50 + 100);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(inline)]
pub use brolga_ir::build;

/// A function called with Rust values, on any thread.
///
/// ```
/// use brolga::{Engine, Options, Program, TypedFunc};
/// const SWAP: &str = "
/// function swap(pair::Tuple{Int64, Bool})::Tuple{Bool, Int64}
/// 1 ─ %1 = Base.getfield(pair, 1)::Int64
/// │   %2 = Base.getfield(pair, 2)::Bool
/// │   %3 = Core.tuple(%2, %1)::Tuple{Bool, Int64}
/// └──      return %3
/// end";
///
/// let engine = Engine::new(Options::new())?;
/// let unit = engine.compile(&Program::read("swap.jlir", SWAP.as_bytes())?)?;
/// let swap: TypedFunc<((i64, bool),), (bool, i64)> = unit.func("swap")?;
/// let other = swap.clone();
/// assert_eq!(std::thread::spawn(move || other.call(((7, true),))).join().unwrap()?, (true, 7));
/// assert_eq!(swap.call(((8, false),))?, (false, 8));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(inline)]
pub use brolga_jit::TypedFunc;

/// A function called with raw bits, for when its types are not available in Rust.
///
/// ```
/// use brolga::{Engine, Options, Program};
/// const AREA: &str = "
/// struct Rectangle
///     width::Float64
///     height::Float64
/// end
/// function area(of::Rectangle)::Float64
/// 1 ─ %1 = Base.getfield(of, :width)::Float64
/// │   %2 = Base.getfield(of, :height)::Float64
/// │   %3 = Base.mul_float(%1, %2)::Float64
/// └──      return %3
/// end";
///
/// let engine = Engine::new(Options::new())?;
/// let unit = engine.compile(&Program::read("area.jlir", AREA.as_bytes())?)?;
/// let area = unit.untyped("area")?;
/// // A struct of two floats travels as these.
/// let fields = [3.0f64, 4.0].map(|side| u128::from(side.to_bits()));
/// assert_eq!(area.call(&fields)?, [u128::from(12.0f64.to_bits())]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(inline)]
pub use brolga_jit::UntypedFunc;

/// A function that takes or returns objects; it is called inside a scope.
///
/// ```
/// use brolga::{Engine, Options, Program, ScopedFunc, Text};
/// const SAME: &str = "
/// function same(text::String)::String
/// 1 ─      return text
/// end";
///
/// let engine = Engine::new(Options::new())?;
/// let unit = engine.compile(&Program::read("same.jlir", SAME.as_bytes())?)?;
/// let same: ScopedFunc<(Text,), Text> = unit.func_in("same")?;
/// assert_eq!(engine.runtime().enter(|scope| same.call(scope, ("ada",)))??, "ada");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(inline)]
pub use brolga_jit::ScopedFunc;

/// Any object, as a [`Root`](heap::Root) of the scope.
///
/// ```
/// use brolga::{Engine, Handle, Options, Program};
/// const SAME: &str = "
/// function same(text::String)::String
/// 1 ─      return text
/// end";
///
/// let engine = Engine::new(Options::new())?;
/// let unit = engine.compile(&Program::read("same.jlir", SAME.as_bytes())?)?;
/// let same = unit.func_in::<(Handle,), Handle>("same")?;
/// engine.runtime().enter(|scope| {
///     let text = scope.string(b"ada")?;
///     let same = same.call(scope, (text,))?;
///     scope.collect();
///     assert_eq!(same.get(scope).text(), Some("ada"));
///     Ok::<(), brolga::CallError>(())
/// })??;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(inline)]
pub use brolga_jit::Handle;

/// A vector of numbers, copied in and out.
///
/// ```
/// use brolga::{Engine, Options, Program, Vector};
/// const SET: &str = "
/// function set(of::Vector{Int64}, at::Int64, to::Int64)::Vector{Int64}
/// 1 ─      Base.arrayset(true, of, to, at)::Vector{Int64}
/// └──      return of
/// end";
///
/// let engine = Engine::new(Options::new())?;
/// let unit = engine.compile(&Program::read("set.jlir", SET.as_bytes())?)?;
/// let set = unit.func_in::<(Vector<i64>, i64, i64), Vector<i64>>("set")?;
/// engine.runtime().enter(|scope| {
///     assert_eq!(set.call(scope, (&[1, 2, 3], 2, 20))?, [1, 20, 3]);
///     assert_eq!(set.call(scope, (&[1, 2, 3], 4, 20)).unwrap_err().to_string().lines().next(), Some("BoundsError: attempt to access 3-element Vector{Int64} at index [4]"));
///     Ok::<(), brolga::CallError>(())
/// })??;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(inline)]
pub use brolga_jit::Vector;

/// Many short calls within one entry into compiled code.
///
/// ```
/// use brolga::{Engine, Options, Program};
/// const HALF: &str = "
/// function half(n::Int64)::Int64
/// 1 ─ %1 = Base.checked_sdiv_int(n, 2)::Int64
/// └──      return %1
/// end";
///
/// let engine = Engine::new(Options::new())?;
/// let unit = engine.compile(&Program::read("half.jlir", HALF.as_bytes())?)?;
/// let half = unit.func::<(i64,), i64>("half")?;
/// let sum = engine.activate(|activation| {
///     (0..10).map(|n| half.call_within(activation, (n,))).sum::<Result<i64, _>>()
/// })??;
/// assert_eq!(sum, 20);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(inline)]
pub use brolga_jit::Activation;

/// Why a call returned no value: in most cases an exception.
///
/// ```
/// use brolga::{CallError, Engine, ExceptionKind, Options, Program};
/// const DIVIDE: &str = "
/// function divide(n::Int64, by::Int64)::Int64
/// 1 ─ %1 = Base.checked_sdiv_int(n, by)::Int64
/// └──      return %1
/// end";
///
/// let engine = Engine::new(Options::new())?;
/// let unit = engine.compile(&Program::read("divide.jlir", DIVIDE.as_bytes())?)?;
/// match unit.func::<(i64, i64), i64>("divide")?.call((1, 0)) {
///     Err(CallError::Exception(thrown)) => assert_eq!(thrown.kind, ExceptionKind::DivideError),
///     other => panic!("{other:?}"),
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(inline)]
pub use brolga_jit::CallError;

/// Why a look-up failed: there is no such function, or its types differ from the requested Rust types.
///
/// ```
/// use brolga::{Engine, LookupError, Options, Program};
/// const HALF: &str = "
/// function half(n::Int64)::Int64
/// 1 ─ %1 = Base.checked_sdiv_int(n, 2)::Int64
/// └──      return %1
/// end";
///
/// let engine = Engine::new(Options::new())?;
/// let unit = engine.compile(&Program::read("half.jlir", HALF.as_bytes())?)?;
/// assert!(matches!(unit.func::<(i64,), f64>("half"), Err(LookupError::Result { .. })));
/// assert!(matches!(unit.func::<(), i64>("half"), Err(LookupError::Count { .. })));
/// let error = unit.func::<(i64,), i64>("halve").unwrap_err();
/// assert_eq!(error.to_string(), "no function `halve`; there is `half(Int64)`");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(inline)]
pub use brolga_jit::LookupError;

#[cfg(feature = "gdb")]
pub use brolga_jit::GdbInterface;
pub use brolga_jit::{
    CodeFunction, CodeListener, CodeMemoryStats, CodeUnit, JitDump, LinkerKind, Mapping, NoValue, Params,
    PerfMap, RawEntry, Scoped, ScopedParams, Symbolized, Text, UnitId, UnwindTables, Value, ValueError, Word,
    WrongArgument,
};
#[cfg(feature = "observe")]
pub use brolga_observe as observe;
pub use brolga_opt as opt;
pub use brolga_opt::{CheckBounds, CpuFeatures, OptLevel};

/// The heap, the output and the methods that engines and sessions use; several may share one runtime.
///
/// ```
/// use brolga::{Engine, Options};
/// let one = Engine::new(Options::new())?;
/// let other = Engine::on(one.runtime(), Options::new())?;
/// let kept = one.runtime().enter(|scope| {
///     let text = scope.string(b"shared").unwrap();
///     scope.persistent(text.get(scope))
/// })?;
/// other.runtime().enter(|scope| {
///     assert_eq!(scope.get_persistent(&kept).and_then(|text| text.text()), Some("shared"));
/// })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(inline)]
pub use brolga_runtime::Runtime;

/// An exception that left compiled code: its kind, its message and its stack trace.
///
/// ```
/// use brolga::{CallError, Engine, Options, Program};
/// const DIVIDE: &str = "
/// function divide(n::Int64, by::Int64)::Int64
/// 1 ─ %1 = Base.checked_sdiv_int(n, by)::Int64
/// └──      return %1
/// end";
///
/// let engine = Engine::new(Options::new())?;
/// let unit = engine.compile(&Program::read("divide.jlir", DIVIDE.as_bytes())?)?;
/// let error = unit.func::<(i64, i64), i64>("divide")?.call((1, 0)).unwrap_err();
/// let CallError::Exception(thrown) = error else { panic!("{error}") };
/// assert_eq!((thrown.kind.name(), &*thrown.message), ("DivideError", "integer division error"));
/// assert_eq!(thrown.trace()[0].function.as_deref(), Some("divide(Int64, Int64)"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(inline)]
pub use brolga_runtime::Exception;

/// Interrupts compiled code that runs on one thread; any thread may raise it.
///
/// ```
/// use std::sync::atomic::{AtomicBool, Ordering};
///
/// use brolga::{Engine, Interrupt, Options, Program};
/// const SPIN: &str = "
/// function spin()::Nothing
/// 1 ─      goto #2
/// 2 ┄      goto #2
/// end";
///
/// let engine = Engine::new(Options::new())?;
/// let spin = engine.compile(&Program::read("spin.jlir", SPIN.as_bytes())?)?.func::<(), ()>("spin")?;
/// let (interrupt, ended) = (Interrupt::for_current(engine.runtime())?, AtomicBool::new(false));
/// std::thread::scope(|threads| {
///     // A request before the call is void, so it is repeated.
///     threads.spawn(|| {
///         while !ended.load(Ordering::Relaxed) {
///             interrupt.raise();
///             std::thread::yield_now();
///         }
///     });
///     let stopped = spin.call(()).unwrap_err();
///     ended.store(true, Ordering::Relaxed);
///     assert!(stopped.to_string().starts_with("InterruptException"), "{stopped}");
/// });
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(inline)]
pub use brolga_runtime::Interrupt;

/// Limits that end a call in a way its program cannot catch: a timeout, or a cancelled token.
///
/// ```
/// use std::time::Duration;
///
/// use brolga::{CallError, Cancel, Ended, Engine, Limits, Options, Program};
/// // It catches everything, and begins again.
/// const STUBBORN: &str = "
/// function stubborn()::Nothing
/// 1 ─      goto #2
/// 2 ┄ %2 = enter #5
/// 3 ─      goto #4
/// 4 ┄      goto #4
/// 5 ┄      $(Expr(:pop_exception, :(%2)))::Nothing
/// └──      goto #2
/// end";
///
/// let engine = Engine::new(Options::new())?;
/// let unit = engine.compile(&Program::read("stubborn.jlir", STUBBORN.as_bytes())?)?;
/// let stubborn = unit.func::<(), ()>("stubborn")?;
/// let limits = Limits::new().timeout(Duration::from_millis(5));
/// assert_eq!(stubborn.call_limited(&limits, ()), Err(CallError::Ended(Ended::Deadline)));
///
/// // A token is sticky: what was cancelled before the call does not begin.
/// let cancel = Cancel::new();
/// cancel.cancel();
/// let limits = Limits::new().cancelled_by(&cancel);
/// assert_eq!(stubborn.call_limited(&limits, ()), Err(CallError::Ended(Ended::Cancelled)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(inline)]
pub use brolga_runtime::Limits;

pub use brolga_jit::{AsyncCall, StructValue};

/// Derives the mapping of a Rust struct to a struct of programs, for typed calls and host functions.
///
/// ```
/// use brolga::{Brolga, Options, Session, Workers};
/// const MIRROR: &str = "
/// struct Point
///     x::Float64
///     y::Float64
/// end
/// function mirror(of::Point)::Point
/// 1 ─ %1 = invoke Main.origin()::Point
/// │   %2 = Base.getfield(%1, :x)::Float64
/// │   %3 = Base.getfield(of, :x)::Float64
/// │   %4 = Base.getfield(of, :y)::Float64
/// │   %5 = Base.sub_float(%2, %3)::Float64
/// │   %6 = %new(Point, %5, %4)::Point
/// └──      return %6
/// end";
///
/// #[derive(Brolga, PartialEq, Debug)]
/// #[repr(C)]
/// struct Point {
///     x: f64,
///     y: f64,
/// }
///
/// let session = Session::new(Options::new(), Workers::Caller)?;
/// let main = session.create_dylib("main")?;
/// main.define_fn("origin", || Point { x: 1.0, y: 0.0 })?;
/// main.define(main.read("mirror.jlir", MIRROR.as_bytes())?)?;
/// let mirror = main.func::<(Point,), Point>("mirror")?;
/// assert_eq!(mirror.call((Point { x: 3.0, y: 4.0 },))?, Point { x: -2.0, y: 4.0 });
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[cfg(feature = "derive")]
#[doc(inline)]
pub use brolga_derive::Brolga;
pub use brolga_runtime::Struct;

pub use brolga_runtime::{Cancel, Ended, Fuel, GuestCall, GuestError, GuestOptions, LimitError};

/// Calls as futures that yield after each time slice: one server thread runs many programs in turn.
///
/// Any executor works; dropping a call ends it.
///
/// ```
/// use std::pin::pin;
/// use std::task::{Context, Poll, Waker};
///
/// use brolga::{Engine, Guests, Limits, Options, Program};
/// const SPIN: &str = "
/// function spin(n::Int64)::Int64
/// 1 ─      goto #2
/// 2 ┄      goto #2
/// end
/// function half(n::Int64)::Int64
/// 1 ─ %1 = Base.checked_sdiv_int(n, 2)::Int64
/// └──      return %1
/// end";
///
/// let engine = Engine::new(Options::new())?;
/// let unit = engine.compile(&Program::read("two.jlir", SPIN.as_bytes())?)?;
/// let (spin, half) = (unit.func::<(i64,), i64>("spin")?, unit.func::<(i64,), i64>("half")?);
///
/// let (guests, limits) = (Guests::default(), Limits::new());
/// let mut endless = pin!(spin.call_async(&guests, &limits, (1,)));
/// let mut short = pin!(half.call_async(&guests, &limits, (8,)));
/// let mut cx = Context::from_waker(Waker::noop());
/// let result = loop {
///     assert!(endless.as_mut().poll(&mut cx).is_pending(), "it never ends, and never keeps this thread");
///     if let Poll::Ready(result) = short.as_mut().poll(&mut cx) {
///         break result?;
///     }
/// };
/// assert_eq!(result, 4);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(inline)]
pub use brolga_runtime::Guests;

/// Where `print` writes.
///
/// ```
/// use brolga::{Engine, Options, Output, Program};
/// const HELLO: &str = "
/// function hello(n::Int64)::Nothing
/// 1 ─      invoke Base.println(\"n = \"::String, n::Int64)::Nothing
/// └──      return nothing
/// end";
///
/// let engine = Engine::new(Options::new().output(Output::Capture))?;
/// let unit = engine.compile(&Program::read("hello.jlir", HELLO.as_bytes())?)?;
/// unit.func::<(i64,), ()>("hello")?.call((7,))?;
/// assert_eq!(engine.runtime().sink().take_captured(), b"n = 7\n");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(inline)]
pub use brolga_runtime::Output;

/// The embedder's permission to run programs that are not fully checked.
///
/// An engine or session refuses programs with *doors*, operations that escape the checks ([`ir::doors`]), unless its options contain this value.
///
/// ```
/// use brolga::{Doors, Engine, Options, Program};
/// const PEEK: &str = "
/// function peek(address::UInt64)::Int64
/// 1 ─ %1 = Base.bitcast(Ptr{Int64}, address)::Ptr{Int64}
/// │   %2 = Base.pointerref(%1, 1, 1)::Int64
/// └──      return %2
/// end";
///
/// let program = Program::read("peek.jlir", PEEK.as_bytes())?;
/// let refused = Engine::new(Options::new())?.compile(&program).unwrap_err();
/// assert!(refused.to_string().contains("the door `pointer`"), "{refused}");
///
/// // SAFETY: `peek` is called with the address of a number that is there.
/// let doors = unsafe { Doors::open() };
/// let peek = Engine::new(Options::new().doors(doors))?.compile(&program)?.func::<(u64,), i64>("peek")?;
/// let number = 42_i64;
/// assert_eq!(peek.call(((&raw const number).expose_provenance() as u64,))?, 42);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(inline)]
pub use brolga_runtime::Doors;

pub use brolga_runtime::CallError as ObjectCallError;
pub use brolga_runtime::{ExceptionKind, StackFrame, Traces, events, heap, objects};

/// Formats a source text and keeps its comments.
///
/// ```
/// use brolga::{Program, format};
/// let source = b"# halves\nfunction half( n::Int64 )::Int64\n1 \xe2\x94\x80 return n\nend\n";
/// let program = Program::read("half.jlir", source)?;
/// let text = format(program.source(), program.unit())?;
/// assert!(text.starts_with("# halves\nfunction half(n::Int64)::Int64\n"), "{text}");
/// # Ok::<(), brolga::Error>(())
/// ```
#[doc(inline)]
pub use brolga_engine::format;
