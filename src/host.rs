//! Values between Rust and programs: what calls take and return, and what host functions receive.
//!
//! | in Rust | in programs | called by |
//! |---|---|---|
//! | numbers, `bool`, `()`, tuples, structs with `#[derive(Brolga)]` | the same | [`TypedFunc`](crate::TypedFunc) |
//! | [`Text`], [`Vector`], [`Handle`] | `String`, `Vector{T}`, any object | [`ScopedFunc`](crate::ScopedFunc) |
//! | [`Word`] | the bits of any plain value | [`UntypedFunc`](crate::UntypedFunc) |
//!
//! Numbers and structs are copied. An object belongs to the heap; a [`Handle`] keeps it alive for one scope, and a
//! [`Persistent`](crate::heap::Persistent) until it is dropped. Rust functions for programs are defined by
//! [`Dylib::define_fn`](crate::session::Dylib::define_fn).

/// Any object, as a [`Root`](crate::heap::Root) of the scope.
///
/// ```
/// use brolga::host::Handle;
/// use brolga::{Engine, Options, Program};
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
/// use brolga::host::Vector;
/// use brolga::{Engine, Options, Program};
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

pub use brolga_ir::show::{bits_to_char, char_to_bits};
pub use brolga_jit::{
    CEntryError, NoValue, Params, PlainEntry, PlainForm, RawEntry, Scoped, ScopedParams, StructValue, Text,
    Value, ValueError, Word, WrongArgument,
};
pub use brolga_runtime::Struct;
