//! Sessions: names, definitions, and when they may be used.
//!
//! A session emulates a dynamic linker for code that does not exist yet. A definition refers to the source of
//! its code; a lookup starts that source, and is answered when the symbol, with everything that it
//! transitively needs, may be called. The model is LLVM's ORC, in three layers that can be understood
//! separately:
//!
//! ```text
//!   Session, Dylib, Lookup, Responsibility, …     handles: safe to share, blocking or futures
//!   ────────────────────────────────────────
//!   one short lock, dispatcher, ready boards      the shell: runs effects when the lock is released
//!   ────────────────────────────────────────
//!   Machine::step(event) -> (reply, effects)      pure: tables in, tables out
//! ```
//!
//! This crate does not depend on code generation, memory or signals; addresses, code and sources of definitions are
//! types of the embedder ([`machine::Parts`]). It therefore builds in seconds, and its locks and atomics can be model-checked.
//!
//! Guarantees, and the parts that uphold them:
//!
//! | promise | kept by |
//! |---|---|
//! | a ready symbol's needs are ready | `machine/graph.rs`: each waiting unit is below one unit that is not emitted |
//! | every lookup is answered, or the session can report what it waits for | each state owns its waiters; dropping a responsibility fails it |
//! | readiness costs near linear time, in any order | the same graph: logarithmic for each edge |
//! | an error has the whole chain of causes | [`Failure`]: made once for each step of the chain, shared by all receivers |
//! | removing code that is in use is an explicit decision | [`machine::Dependants`]: deny, cascade, tombstone, keep |
//! | a version is not mistaken for another of the same name | [`machine::Version`]s in dependences |
//! | a stale identifier, or one of another session, is refused | generations and sessions in `ids.rs`, counts in `names.rs` |
//! | user code and destructors never run under the lock | [`machine::Effects`] own all of it until the lock is released |
//! | a limit of one call fails no other | `machine/callers.rs`: a unit is abandoned only if nothing else waits for it |
//!
//! Terms. A *unit* is materialized, and removed, as a whole; the materializing task has the *responsibility*.
//! A symbol is *resolved* when it has an address, *emitted* when its memory is final, *ready* when all it
//! needs is emitted.
//!
//! | files, in reading order | contents |
//! |---|---|
//! | `flags`, `ids`, `error`, `names` (on `uses`) | the terms |
//! | `machine` | the pure machine |
//! | `target` | the types that an embedder chooses |
//! | `ticket` | receivers of answers |
//! | `session` | the lock, the effects, the embedder's interface; calls units and generators in one place each |
//! | `dylib`, `lookup`, `responsibility`, `generator` | handles, and what users of the session implement |
//! | `dispatch`, `promise` | tasks, waiting |
//! | `opening`, `openings` | initialisers: which thread runs them, which threads wait for it |
//! | `board` | ready symbols, read without a lock |
//!
//! Not done: negative answers of generators are not cached.

#![forbid(unsafe_code)]

mod board;
mod dispatch;
mod dylib;
mod error;
mod flags;
mod generator;
mod ids;
mod lookup;
pub mod machine;
#[cfg(all(test, loom))]
mod models;
mod names;
mod opening;
mod openings;
mod promise;
mod responsibility;
mod session;
mod sync;
mod target;
mod ticket;
mod uses;

pub use board::Address;
pub use dispatch::Latch;
pub use dispatch::{
    Dispatcher, Doing, InPlace, Leave, MAX_THREADS, Needed, OnExecutor, Pool, PoolOptions, PoolQueue, Seeded,
    Task, Token, Tokens,
};
pub use dylib::{Change, Dylib, Fact, OnDrop, Tracker, WeakDylib};
pub use error::{Cause, Error, Failure, Foreign, Name};
pub use flags::{Link, LookupKind, Need, Priority, Sees, SymbolFlags, Until, Want};
pub use generator::{Addresses, Generator, Reexports, Request};
pub use ids::{DylibId, Key, Label, SessionId, Symbol, SymbolPart};
pub use lookup::Lookup;
pub use machine::{Alias, AtOpening, Dependants, Happened, Observed, Progress, SymbolFacts};
pub use names::{Names, Released, SymbolRef, SymbolScope};
pub use responsibility::{MaterializationUnit, Resolved, Responsibility, absolute, names_only, unit};
pub use session::{
    Answer, Definition, Dependence, EpochHost, Group, Host, Later, PlainHost, Session, Unit, Version,
    WeakSession, required, weak,
};
pub use target::Target;
