//! Functions of Base that are called by generated loops over ranges, as defined in Julia.
//!
//! ```text
//! steprange_last(start, step, stop)    the last element of a range with a step, or an ArgumentError
//! iterate(r), iterate(r, i)            the next number, twice, or nothing; for UnitRange{Int64}
//! ```

use brolga_ir::build::{BuildError, Builder};
use brolga_ir::builtin::Builtin;
use brolga_ir::intrinsic::Intrinsic;
use brolga_ir::{Context, Func, Module, Type, Value};

/// The function that returns the last element of a range with a step.
pub(super) const LAST: &str = "Base.steprange_last";

/// The result type of `iterate` for ranges of `Int64`.
pub(super) fn next_type(cx: &Context) -> Option<Type> {
    let pair = cx.types.tuple(&[Type::INT64, Type::INT64]).ok()?;
    cx.types.union(&[Type::NOTHING, pair]).ok()
}

/// Adds the functions of Base that loops call: `steprange_last` and the methods of `iterate`. Steps are never
/// zero unless statements may throw.
pub(super) fn add_functions(cx: &Context, throws: bool, module: &mut Module) {
    for func in [steprange_last(cx, throws), iterate_first(cx), iterate_next(cx)] {
        let func = func.expect("the functions below are well-formed");
        module.add_func(func).expect("their names are distinct");
    }
}

fn steprange_last(cx: &Context, throws: bool) -> Result<Func, BuildError> {
    let int = Type::INT64;
    let mut b = Builder::high(cx, LAST, &[("start", int), ("step", int), ("stop", int)], int);
    let (start, step, stop) = (b.param(0)?, b.param(1)?, b.param(2)?);
    let zero = b.int(int, 0)?;
    let [bad, good, empty, full] = std::array::from_fn(|_| b.create_block());
    let is_zero = b.builtin(Builtin::Egal, &[step, zero], Type::BOOL)?;
    b.branch(is_zero, bad, good)?;
    b.switch_to_block(bad)?;
    if throws {
        let message = b.string("step cannot be zero");
        b.invoke("Base._throw_argerror", &[message], Type::BOTTOM)?;
        b.unreachable()?;
    } else {
        b.ret(&[start])?;
    }
    b.switch_to_block(good)?;
    let distance = b.intrinsic(Intrinsic::SubInt, &[stop, start])?;
    let rest = b.intrinsic(Intrinsic::CheckedSremInt, &[distance, step])?;
    let last = b.intrinsic(Intrinsic::SubInt, &[stop, rest])?;
    let up = b.intrinsic(Intrinsic::SltInt, &[zero, step])?;
    let falls = b.intrinsic(Intrinsic::SltInt, &[stop, start])?;
    let backward = b.builtin(Builtin::Egal, &[up, falls], Type::BOOL)?;
    let same = b.builtin(Builtin::Egal, &[stop, start], Type::BOOL)?;
    let other = b.intrinsic(Intrinsic::NotInt, &[same])?;
    let is_empty = b.intrinsic(Intrinsic::AndInt, &[backward, other])?;
    b.branch(is_empty, empty, full)?;
    b.switch_to_block(empty)?;
    let before = b.intrinsic(Intrinsic::SubInt, &[start, step])?;
    b.ret(&[before])?;
    b.switch_to_block(full)?;
    b.ret(&[last])?;
    b.finish()
}

/// A range type of Base.
pub(super) fn range_of(cx: &Context, name: &str, params: &[Type]) -> Option<Type> {
    cx.types.nominal(cx.types.find_decl(cx.names.intern(name))?, params).ok()
}

pub(super) fn unit_range(cx: &Context) -> Type {
    range_of(cx, "UnitRange", &[Type::INT64]).unwrap_or(Type::ANY)
}

fn iterate_first(cx: &Context) -> Result<Func, BuildError> {
    let result = next_type(cx).unwrap_or(Type::ANY);
    let mut b = Builder::high(cx, "Base.iterate", &[("r", unit_range(cx))], result);
    let range = b.param(0)?;
    let (start, stop) = (b.getfield(range, "start")?, b.getfield(range, "stop")?);
    let is_empty = b.intrinsic(Intrinsic::SltInt, &[stop, start])?;
    ends(&mut b, is_empty, |_| Ok(start))?;
    b.finish()
}

fn iterate_next(cx: &Context) -> Result<Func, BuildError> {
    let result = next_type(cx).unwrap_or(Type::ANY);
    let mut b = Builder::high(cx, "Base.iterate", &[("r", unit_range(cx)), ("i", Type::INT64)], result);
    let (range, state) = (b.param(0)?, b.param(1)?);
    let stop = b.getfield(range, "stop")?;
    let is_last = b.builtin(Builtin::Egal, &[state, stop], Type::BOOL)?;
    ends(&mut b, is_last, |b| {
        let one = b.int(Type::INT64, 1)?;
        b.intrinsic(Intrinsic::AddInt, &[state, one])
    })?;
    b.finish()
}

/// Returns `nothing` if there is no next number, otherwise the number twice.
fn ends(
    b: &mut Builder<'_>,
    is_done: Value,
    next: impl FnOnce(&mut Builder<'_>) -> Result<Value, BuildError>,
) -> Result<(), BuildError> {
    let (done, more) = (b.create_block(), b.create_block());
    b.branch(is_done, done, more)?;
    b.switch_to_block(done)?;
    let nothing = b.nothing();
    b.ret(&[nothing])?;
    b.switch_to_block(more)?;
    let number = next(b)?;
    let pair = b.tuple(&[number, number])?;
    b.ret(&[pair])
}
