//! The library that embedders use; the `brolga` command is a few calls into it.
//!
#![doc = include_str!("../README.md")]
//!
//! # Reading order
//!
//! | item | what it is |
//! |---|---|
//! | [`Program`] | text, read and verified |
//! | [`Engine`], [`Options`] | compiles programs and links them into the process |
//! | [`Unit`], [`TypedFunc`] | compiled functions, and the typed way to call them |
//! | [`Evaluator`] | calls and tests by their text, natively or by the interpreter |
//! | [`image`], [`Image`] | programs built ahead of time and opened by path |
//! | [`Stages`], [`emit`] | the steps one by one, and what they look like |
//! | [`session`] | functions compiled when needed, by many threads, replaced and removed |
//! | `explore`, with the feature of that name | a program from its source to machine code, as a page for a browser |
//! | [`events`] | one listener that is told of compiling, publishing, tiers and collections |
//! | `observe`, with the feature of that name | traces for Perfetto, tables, statistics of measurements |
//! | [`Error`], [`Failure`] | what can go wrong, and whose fault it is |
//! | [`ir`], [`opt`] | the IR and the optimiser themselves |
#![forbid(unsafe_code)]

pub use brolga_engine::{
    Broken, Counted, CpuTarget, Engine, Error, Evaluator, Failure, Fault, Image, Options, Program, Session,
    SessionError, Stages, Unit, Verdict, Workers, emit, format, image, read_unit, session,
};
#[cfg(feature = "explore")]
pub use brolga_explore as explore;
pub use brolga_gcroots::Lowering as Roots;
pub use brolga_ir as ir;
#[cfg(feature = "gdb")]
pub use brolga_jit::GdbInterface;
pub use brolga_jit::{
    Activation, CallError, CodeFunction, CodeListener, CodeMemoryStats, CodeUnit, Handle, JitDump,
    LinkerKind, LookupError, Mapping, NoValue, Params, PerfMap, RawEntry, Scoped, ScopedFunc, ScopedParams,
    Symbolized, Text, TypedFunc, UnitId, UntypedFunc, UnwindTables, Value, ValueError, Vector, Word,
    WrongArgument,
};
#[cfg(feature = "observe")]
pub use brolga_observe as observe;
pub use brolga_opt as opt;
pub use brolga_opt::{CheckBounds, CpuFeatures, OptLevel};
pub use brolga_runtime::{
    Exception, ExceptionKind, Interrupt, Output, Runtime, StackFrame, Traces, events, heap, objects,
};
