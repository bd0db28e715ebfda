//! The C API: engines, sessions, dylibs, calls, host functions, errors and limits, as opaque handles.
//!
//! ```text
//!   BrolgaOptions ─► BrolgaEngine ── compile(BrolgaProgram) ──► BrolgaUnit ──┐
//!                 └► BrolgaSession ── BrolgaDylib ── define, host functions ─┴─► BrolgaFunction ── call ──► BrolgaValue
//!                          │              ├── BrolgaDefinitions, BrolgaTracker: options and lifetime
//!                          │              ├── BrolgaCSymbol: object files, archives, libraries, addresses
//!                          │              ├── BrolgaMissing, BrolgaResponsibility, BrolgaPromised: symbols that C defines on demand
//!                          │              └── BrolgaRequest, BrolgaSymbols: look-ups without waiting, lists
//!                          └── BrolgaRuntime: objects, output, interrupts, activities
//!   BrolgaModule ── BrolgaBuilder: programs without text        BrolgaPackageBuild, BrolgaPackage: programs with their code in files
//! ```
//!
//! `include/brolga.h` is generated from this crate (`tests/capi_header.sh`), and `tests/capi.rs` compares it with the source.
//!
//! **Rules for every function.**
//!
//! | rule | how it is enforced |
//! |---|---|
//! | a null pointer is an error or, where no error can be returned, has no effect | every pointer is an `Option` in the signature, or goes through `text.rs` |
//! | a failure is an owned [`BrolgaError`](error::BrolgaError); null is success | all bodies run in `error::fenced` |
//! | a plain call and a function of an image keep their error for the thread | `plain.rs`, `image.rs` |
//! | an array is null only if its length is 0 | `text::array`, `text::room` |
//! | a message names functions of C | `names.rs` |
//! | no panic reaches C | `error::fenced` turns one into an error; functions that cannot fail only read, drop or return a value, and `extern "C"` aborts on a panic, as a plain call does |
//! | an output is written on success, and unchanged otherwise | `out::give` |
//! | a handle keeps what it needs alive | each holds its session, engine or code: handles may be freed in any order |
//! | handles may be used by several threads, but not while one frees them | all are `Send + Sync`, which is checked below |
//! | data of a C function is freed once, also if the call that passes it fails | `callback::Data` is created first |
//! | an obligation (`BrolgaMissing`, `BrolgaResponsibility`) is ended once, by a function that frees it | it is a `Box` there |
//! | a number for a choice is a value of its `enum` | it is a `uint32_t` in the signature, and is checked |
//!
//! **Obligations of C.** A pointer is null, or came from this library and was not freed, or refers to as many elements as
//! its length argument says; a C function that is called here returns, does not `longjmp` and does not throw; an obligation is ended eventually. No function here can check that.
//!
//! Not done: transforms of modules, building images, low functions; structs by value (they are objects); 128-bit numbers; stores of the cache other than directories.
#![warn(missing_docs)]

pub mod activity;
pub mod builder;
mod building;
pub mod c_symbols;
pub mod cache;
pub mod callback;
pub mod debuggers;
pub mod definitions;
pub mod dependants;
pub mod dylib;
pub mod engine;
pub mod error;
pub mod exports;
pub mod field;
pub mod function;
pub mod generator;
pub mod host;
pub mod image;
pub mod limits;
pub mod look_up;
pub mod materializer;
pub mod module;
mod names;
pub mod numbers;
pub mod object;
pub mod options;
mod out;
pub mod package;
pub mod plain;
pub mod promise;
pub mod report;
pub mod runtime;
pub mod session;
pub mod symbols;
pub mod text;
pub mod tracker;
pub mod value;

const _: () = {
    const fn shared_between_threads<T: Send + Sync>() {}
    shared_between_threads::<builder::BrolgaBuilder>();
    shared_between_threads::<c_symbols::BrolgaCSymbol>();
    shared_between_threads::<cache::BrolgaCache>();
    shared_between_threads::<definitions::BrolgaDefinitions>();
    shared_between_threads::<dylib::BrolgaDylib>();
    shared_between_threads::<engine::BrolgaEngine>();
    shared_between_threads::<engine::BrolgaProgram>();
    shared_between_threads::<engine::BrolgaUnit>();
    shared_between_threads::<error::BrolgaError>();
    shared_between_threads::<function::BrolgaFunction>();
    shared_between_threads::<generator::BrolgaMissing>();
    shared_between_threads::<limits::BrolgaLimits>();
    shared_between_threads::<look_up::BrolgaRequest>();
    shared_between_threads::<materializer::BrolgaResponsibility>();
    shared_between_threads::<module::BrolgaModule>();
    shared_between_threads::<object::BrolgaObject>();
    shared_between_threads::<options::BrolgaOptions>();
    shared_between_threads::<runtime::BrolgaInterrupt>();
    shared_between_threads::<runtime::BrolgaRuntime>();
    shared_between_threads::<package::BrolgaPackage>();
    shared_between_threads::<package::BrolgaPackageBuild>();
    shared_between_threads::<promise::BrolgaPromised>();
    shared_between_threads::<session::BrolgaSession>();
    shared_between_threads::<symbols::BrolgaSymbols>();
    shared_between_threads::<tracker::BrolgaTracker>();
};
