//! Compiled code in a process of its own: a wild pointer, or an attack on the code generator, ends that process and not this one.
//!
//! [`RemoteEngine::spawn`] starts an executor, compiles programs in this process, and loads them into the other one. Functions are called as
//! in process: with numbers in line, with strings and vectors as copies, with the same exceptions and limits. When the executor is lost,
//! calls fail with [`ExecutorLost`], until [`RemoteEngine::restart`] has loaded everything into another one.
//!
//! ```no_run
//! use brolga::executor::{RemoteEngine, Spawn};
//! use brolga::{Options, Program};
//! # const FIB: &str = "";
//!
//! let engine = RemoteEngine::spawn(Options::new(), Spawn::new("brolga-executor"))?;
//! let unit = engine.compile(&Program::read("fib.jlir", FIB.as_bytes())?)?;
//! let fib = unit.func::<(i64,), i64>("fib")?;
//! match fib.call((20,)) {
//!     Ok(value) => println!("{value}"),
//!     Err(error) if error.lost().is_some() => drop(engine.restart()?),
//!     Err(error) => return Err(error.into()),
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Any program becomes an executor by [`serve_controller`]; it needs neither this crate nor a compiler, only the crate
//! `brolga-executor`, whose program of that name does nothing else. An executor in this process, for tests and comparison:
//!
//! ```
//! use brolga::executor::RemoteEngine;
//! use brolga::{Options, Program};
//! const HALF: &str = "
//! function half(n::Int64)::Int64
//! 1 ─ %1 = Base.checked_sdiv_int(n, 2)::Int64
//! └──      return %1
//! end";
//!
//! let engine = RemoteEngine::in_process(Options::new())?;
//! let unit = engine.compile(&Program::read("half.jlir", HALF.as_bytes())?)?;
//! assert_eq!(unit.func::<(i64,), i64>("half")?.call((8,))?, 4);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub use brolga_engine::remote::{
    RemoteEngine, RemoteError, RemoteFunc, RemoteObjects, RemoteParams, RemoteUnit, RemoteValue,
};
pub use brolga_executor::{
    BecomeError, Ending, ExecutorError, ExecutorLost, HandshakeError, HandshakeFact, OpenError,
    ProcessLimits, SendError, ServeError, Spawn, SpawnError, serve_controller, wire::ExecutorRefusal,
    wire::Status, wire::WireError,
};
