//! A compiler and a run time for language implementers: functions in a typed, Julia-like SSA IR become native code inside the process. They are
//! compiled when they are needed, on as many threads as the embedder likes, and are replaced and removed while code runs.
//!
//! Safe Rust and programs without *doors* break no memory: every program is verified, operations that escape the checks need the embedder's
//! [`Doors`], and no input makes this library panic.
//!
//! ```
//! use brolga::{CallError, Engine, Options, Program};
//!
//! let text = "
//! function mean(total::Int64, count::Int64)::Int64
//! 1 ─ %1 = Base.checked_sdiv_int(total, count)::Int64
//! └──      return %1
//! end";
//! let engine = Engine::new(Options::new())?;
//! let unit = engine.compile(&Program::read("mean.jlir", text.as_bytes())?)?;
//! let mean = unit.func::<(i64, i64), i64>("mean")?;
//! assert_eq!(mean.call((12, 4))?, 3);
//! let Err(CallError::Exception(thrown)) = mean.call((12, 0)) else { panic!("a division by zero") };
//! assert_eq!(thrown.kind.name(), "DivideError");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Core concepts
//!
//! | type | what it is | owns, and lives |
//! |---|---|---|
//! | [`Program`] | verified functions, read from text or built by [`build`] | its IR; independent of engines |
//! | [`Engine`] | compiles whole programs | shares a [`Runtime`]; may be dropped before what it compiled |
//! | [`Unit`] | the functions of one compiled program | their code, together with every handle to them |
//! | [`TypedFunc`], [`ScopedFunc`], [`UntypedFunc`] | handles to call one function, from any thread | the code, until the last is dropped |
//! | [`Session`] | programs that see each other, compiled on demand, replaced and removed ([`session`]) | its code, until it ends; in use by a thread, code waits for that thread |
//! | [`Runtime`] | heap, output, methods | shared by engines and sessions; freed with the last of them |
//! | [`heap::Scope`] | a thread's visit to the heap | the roots that were made in it |
//! | [`image::Image`] | a program compiled ahead of time | its mapping; functions keep it |
//! | [`cache::Cache`] | code that outlives the process | its stores; sessions and engines share it |
//! | [`executor::RemoteEngine`] | an engine whose code runs in another process | that process |
//!
//! All of them are `Send` and `Sync`, except what belongs to a scope. [`Options`] are set once, for an engine or session; [`Limits`] are set for each call.
//! The guide in `docs/guide` goes from the first call to tuning.
//!
//! | module | has |
//! |---|---|
//! | [`build`] | programs built in Rust, and the types that front ends need |
//! | [`session`] | dylibs, trackers, definitions, look-ups |
//! | [`host`] | values between Rust and programs |
//! | [`heap`] | objects |
//! | [`limits`] | cancellation, fuel, interrupts, calls as futures |
//! | [`options`] | what [`Options`] take |
//! | [`image`], [`cache`] | code that outlives the process |
//! | [`executor`] | code in a process of its own |
//! | [`observe`] | events, debuggers, profilers, listings |
//! | `explore`, with the feature of that name | a page that shows a program from its source to its machine code |
//! | `unstable`, `ir`, `opt`, `interp`, with the feature `unstable` | the inside, without promises |
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod build;
pub mod executor;
#[cfg(doctest)]
mod guide;
pub mod heap;
pub mod host;
pub mod limits;
pub mod observe;
pub mod options;
#[cfg(feature = "unstable")]
pub mod unstable;

#[doc(inline)]
pub use brolga_cache as cache;
#[doc(inline)]
pub use brolga_engine::{image, session};
#[cfg(feature = "explore")]
pub use brolga_explore as explore;
#[cfg(feature = "unstable")]
pub use brolga_interp as interp;
#[cfg(feature = "unstable")]
pub use brolga_ir as ir;
#[cfg(feature = "unstable")]
pub use brolga_opt as opt;

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

/// A function that takes or returns objects; it is called inside a scope.
///
/// ```
/// use brolga::host::Text;
/// use brolga::{Engine, Options, Program, ScopedFunc};
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

/// Limits that end a call in a way its program cannot catch: a timeout, or a cancelled token.
///
/// ```
/// use std::time::Duration;
///
/// use brolga::limits::{Cancel, Ended};
/// use brolga::{CallError, Engine, Limits, Options, Program};
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
/// An engine or session refuses programs with *doors*, operations that escape the checks ([`options::Door`]), unless its options contain this value.
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

pub use brolga_engine::{Broken, Failure, Fault, Verdict};
pub use brolga_opt::OptLevel;
pub use brolga_runtime::ExceptionKind;
