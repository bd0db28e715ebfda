//! Statements of a function that C builds. Values, blocks and variables are numbers of its builder; an unknown number is an error.
//!
//! ```text
//!   brolga_builder_param, _int, …, _operation ──► value      _block, _switch, _seal: blocks      _variable, _define, _use: values that change
//!   _goto, _branch, _return, _unreachable: ends of blocks    _enter, _leave: handlers            _finish: the function, verified
//! ```
//!
//! Statements are added to the current block, which is the first one in the beginning. Each is checked when it is added, and the function when it is finished.

use std::ffi::c_char;
use std::mem::MaybeUninit;
use std::sync::{Arc, Mutex, PoisonError};

use brolga::build::{Block, BuildError, Builder, Builtin, Context, Intrinsic, Value, Variable};

use crate::building::Building;
use crate::error::{BrolgaCode, BrolgaError, fenced};
use crate::out::{given, place};
use crate::text::{array, c_text, name};

/// A function that is being built. Made by `brolga_module_function`, freed by `brolga_builder_free`.
pub struct BrolgaBuilder {
    // Dropped before what it borrows.
    builder: Mutex<Option<Builder<'static>>>,
    shared: Arc<Building>,
}

impl BrolgaBuilder {
    /// The builder that `begin` makes in the context of the module.
    pub(crate) fn new(
        shared: &Arc<Building>,
        begin: impl FnOnce(&'static Context) -> Builder<'static>,
    ) -> BrolgaBuilder {
        // SAFETY: the context lives as long as `shared`, which is dropped after the builder. No function here returns the borrow.
        let context = unsafe { &*Arc::as_ptr(shared.context()) };
        BrolgaBuilder { builder: Mutex::new(Some(begin(context))), shared: shared.clone() }
    }

    /// Adds something.
    fn add<R>(
        &self,
        body: impl FnOnce(&mut Builder<'static>) -> Result<R, BrolgaError>,
    ) -> Result<R, BrolgaError> {
        let mut builder = self.builder.lock().unwrap_or_else(PoisonError::into_inner);
        body(builder.as_mut().ok_or_else(finished_before)?)
    }
}

#[cold]
fn finished_before() -> BrolgaError {
    BrolgaError::new(BrolgaCode::Argument, "the function was finished before")
}

/// The entity of a number, or an error for the number that none has.
fn entity<T>(number: u32, from: fn(u32) -> T) -> Result<T, BrolgaError> {
    match number {
        u32::MAX => {
            Err(BrolgaError::new(BrolgaCode::Argument, format!("{number} is not a number of a builder")))
        }
        number => Ok(from(number)),
    }
}

fn value(number: u32) -> Result<Value, BrolgaError> {
    entity(number, Value::from_u32)
}

fn block(number: u32) -> Result<Block, BrolgaError> {
    entity(number, Block::from_u32)
}

/// The values of an array of numbers.
///
/// # Safety
///
/// There are `count` numbers at `args`, or it is null.
unsafe fn values(args: *const u32, count: usize) -> Result<Vec<Value>, BrolgaError> {
    // SAFETY: by the contract.
    unsafe { array(args, count, "args") }?.iter().map(|&number| value(number)).collect()
}

/// Adds something without a result.
fn change(
    builder: Option<&BrolgaBuilder>,
    body: impl FnOnce(&mut Builder<'static>) -> Result<(), BrolgaError>,
) -> Option<Box<BrolgaError>> {
    fenced(|| given(builder, "builder")?.add(body))
}

/// Adds something with a value. Its number is written unless the pointer is null.
fn add(
    builder: Option<&BrolgaBuilder>,
    out: Option<&mut MaybeUninit<u32>>,
    body: impl FnOnce(&mut Builder<'static>, &Building) -> Result<Value, BrolgaError>,
) -> Option<Box<BrolgaError>> {
    fenced(|| {
        let builder = given(builder, "builder")?;
        let made = builder.add(|b| body(b, &builder.shared))?;
        if let Some(out) = out {
            out.write(made.as_u32());
        }
        Ok(())
    })
}

/// Frees a builder, whether its function is finished or not. Null is nothing.
#[unsafe(no_mangle)]
pub extern "C" fn brolga_builder_free(builder: Option<Box<BrolgaBuilder>>) {
    drop(builder);
}

/// Verifies the function and adds it to the module. The builder takes no more.
#[unsafe(no_mangle)]
#[must_use]
pub extern "C" fn brolga_builder_finish(builder: Option<&BrolgaBuilder>) -> Option<Box<BrolgaError>> {
    fenced(|| {
        let builder = given(builder, "builder")?;
        let finished = builder.builder.lock().unwrap_or_else(PoisonError::into_inner).take();
        builder.shared.add(finished.ok_or_else(finished_before)?.finish()?)
    })
}

/// The place in the source of the statements that follow: a line and a column from 1; a column 0 is none.
#[unsafe(no_mangle)]
#[must_use]
pub extern "C" fn brolga_builder_set_line(
    builder: Option<&BrolgaBuilder>,
    line: u32,
    column: u32,
) -> Option<Box<BrolgaError>> {
    change(builder, |b| {
        if column == 0 {
            b.set_line(line)
        } else {
            b.set_line_column(line, column)
        }
        Ok(())
    })
}

/// The file in which lines are counted.
///
/// # Safety
///
/// `file` is null or ends in a zero byte.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn brolga_builder_set_file(
    builder: Option<&BrolgaBuilder>,
    file: *const c_char,
) -> Option<Box<BrolgaError>> {
    change(builder, |b| {
        // SAFETY: by the contract.
        b.set_file(unsafe { c_text(file, "file") }?);
        Ok(())
    })
}

/// Returns an argument of the function, counted from 0.
#[unsafe(no_mangle)]
#[must_use]
pub extern "C" fn brolga_builder_param(
    builder: Option<&BrolgaBuilder>,
    index: usize,
    value: Option<&mut MaybeUninit<u32>>,
) -> Option<Box<BrolgaError>> {
    add(builder, value, |b, _| Ok(b.param(index)?))
}

/// Returns a constant of an integer type.
///
/// # Safety
///
/// `ty` is null or ends in a zero byte.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn brolga_builder_int(
    builder: Option<&BrolgaBuilder>,
    ty: *const c_char,
    number: i64,
    value: Option<&mut MaybeUninit<u32>>,
) -> Option<Box<BrolgaError>> {
    add(builder, value, |b, shared| {
        // SAFETY: by the contract.
        let ty = shared.type_of(unsafe { c_text(ty, "ty") }?)?;
        Ok(b.int(ty, number.into())?)
    })
}

/// Returns a `Float64`.
#[unsafe(no_mangle)]
#[must_use]
pub extern "C" fn brolga_builder_float64(
    builder: Option<&BrolgaBuilder>,
    number: f64,
    value: Option<&mut MaybeUninit<u32>>,
) -> Option<Box<BrolgaError>> {
    add(builder, value, |b, _| Ok(b.float64(number)))
}

/// Returns a `Bool`.
#[unsafe(no_mangle)]
#[must_use]
pub extern "C" fn brolga_builder_bool(
    builder: Option<&BrolgaBuilder>,
    truth: bool,
    value: Option<&mut MaybeUninit<u32>>,
) -> Option<Box<BrolgaError>> {
    add(builder, value, |b, _| Ok(b.bool(truth)))
}

/// Returns `nothing`.
#[unsafe(no_mangle)]
#[must_use]
pub extern "C" fn brolga_builder_nothing(
    builder: Option<&BrolgaBuilder>,
    value: Option<&mut MaybeUninit<u32>>,
) -> Option<Box<BrolgaError>> {
    add(builder, value, |b, _| Ok(b.nothing()))
}

/// Returns a `String`.
///
/// # Safety
///
/// `text` is null or ends in a zero byte.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn brolga_builder_string(
    builder: Option<&BrolgaBuilder>,
    text: *const c_char,
    value: Option<&mut MaybeUninit<u32>>,
) -> Option<Box<BrolgaError>> {
    // SAFETY: by the contract.
    add(builder, value, |b, _| Ok(b.string(unsafe { c_text(text, "text") }?)))
}

/// Returns a `Symbol`.
///
/// # Safety
///
/// `text` is null or ends in a zero byte.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn brolga_builder_symbol(
    builder: Option<&BrolgaBuilder>,
    text: *const c_char,
    value: Option<&mut MaybeUninit<u32>>,
) -> Option<Box<BrolgaError>> {
    // SAFETY: by the contract.
    add(builder, value, |b, _| Ok(b.symbol(unsafe { c_text(text, "text") }?)))
}

/// Returns a type as a value.
///
/// # Safety
///
/// `ty` is null or ends in a zero byte.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn brolga_builder_type(
    builder: Option<&BrolgaBuilder>,
    ty: *const c_char,
    value: Option<&mut MaybeUninit<u32>>,
) -> Option<Box<BrolgaError>> {
    add(builder, value, |b, shared| {
        // SAFETY: by the contract.
        let ty = shared.type_of(unsafe { c_text(ty, "ty") }?)?;
        Ok(b.type_value(ty))
    })
}

/// Returns a function as a value, by its name.
///
/// # Safety
///
/// `name` is null or ends in a zero byte.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn brolga_builder_function(
    builder: Option<&BrolgaBuilder>,
    name: *const c_char,
    value: Option<&mut MaybeUninit<u32>>,
) -> Option<Box<BrolgaError>> {
    // SAFETY: by the contract.
    add(builder, value, |b, _| Ok(b.function_object(unsafe { self::name(name) }?)))
}

/// Adds an intrinsic or a builtin, by Julia's name: `add_int`, `sitofp`, `arrayref`. `ty` is the type of its result; it may be null for intrinsics whose result follows from their operands. It is needed for conversions,
/// whose operand here is the value alone, and for builtins.
///
/// # Safety
///
/// `name` and `ty` are null or end in a zero byte; there are `count` numbers at `args`, or it is null.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn brolga_builder_operation(
    builder: Option<&BrolgaBuilder>,
    name: *const c_char,
    args: *const u32,
    count: usize,
    ty: *const c_char,
    value: Option<&mut MaybeUninit<u32>>,
) -> Option<Box<BrolgaError>> {
    add(builder, value, |b, shared| {
        // SAFETY: by the contract.
        let (name, args) = unsafe { (self::name(name)?, values(args, count)?) };
        let ty = match ty.is_null() {
            true => None,
            // SAFETY: by the contract.
            false => Some(shared.type_of(unsafe { c_text(ty, "ty") }?)?),
        };
        match (Intrinsic::from_name(name), Builtin::from_name(name), ty, &args[..]) {
            (Some(intrinsic), _, None, args) => Ok(b.intrinsic(intrinsic, args)?),
            (Some(intrinsic), _, Some(ty), &[only]) => Ok(b.convert(intrinsic, only, ty)?),
            (Some(intrinsic), _, Some(ty), args) => {
                let made = b.intrinsic(intrinsic, args)?;
                match b.type_of(made)? == ty {
                    true => Ok(made),
                    false => Err(BrolgaError::new(BrolgaCode::Program, format!("`{name}` has another type"))),
                }
            }
            (None, Some(builtin), Some(ty), args) => Ok(b.builtin(builtin, args, ty)?),
            (None, Some(builtin), None, _) => Err(BuildError::NeedsResultType(builtin.name()).into()),
            (None, None, ..) => {
                Err(BrolgaError::new(BrolgaCode::Argument, format!("there is no operation `{name}`")))
            }
        }
    })
}

/// Adds a call of the method of a function for the types of the arguments, by the function's name. That it is there is checked when the program is made.
///
/// # Safety
///
/// `name` and `ty` are null or end in a zero byte; there are `count` numbers at `args`, or it is null.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn brolga_builder_invoke(
    builder: Option<&BrolgaBuilder>,
    name: *const c_char,
    args: *const u32,
    count: usize,
    ty: *const c_char,
    value: Option<&mut MaybeUninit<u32>>,
) -> Option<Box<BrolgaError>> {
    add(builder, value, |b, shared| {
        // SAFETY: by the contract.
        let (name, args, ty) =
            unsafe { (self::name(name)?, values(args, count)?, shared.type_of(c_text(ty, "ty")?)?) };
        Ok(b.invoke(name, &args, ty)?)
    })
}

/// Adds a call of a value, whose method is found when it is called.
///
/// # Safety
///
/// `ty` is null or ends in a zero byte; there are `count` numbers at `args`, or it is null.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn brolga_builder_call(
    builder: Option<&BrolgaBuilder>,
    function: u32,
    args: *const u32,
    count: usize,
    ty: *const c_char,
    value: Option<&mut MaybeUninit<u32>>,
) -> Option<Box<BrolgaError>> {
    add(builder, value, |b, shared| {
        // SAFETY: by the contract.
        let (args, ty) = unsafe { (values(args, count)?, shared.type_of(c_text(ty, "ty")?)?) };
        Ok(b.call(self::value(function)?, &args, ty)?)
    })
}

/// Adds an instance of a struct, from its fields.
///
/// # Safety
///
/// `ty` is null or ends in a zero byte; there are `count` numbers at `args`, or it is null.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn brolga_builder_object(
    builder: Option<&BrolgaBuilder>,
    ty: *const c_char,
    args: *const u32,
    count: usize,
    value: Option<&mut MaybeUninit<u32>>,
) -> Option<Box<BrolgaError>> {
    add(builder, value, |b, shared| {
        // SAFETY: by the contract.
        let (args, ty) = unsafe { (values(args, count)?, shared.type_of(c_text(ty, "ty")?)?) };
        Ok(b.new_object(ty, &args)?)
    })
}

/// Adds a tuple.
///
/// # Safety
///
/// There are `count` numbers at `args`, or it is null.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn brolga_builder_tuple(
    builder: Option<&BrolgaBuilder>,
    args: *const u32,
    count: usize,
    value: Option<&mut MaybeUninit<u32>>,
) -> Option<Box<BrolgaError>> {
    // SAFETY: by the contract.
    add(builder, value, |b, _| Ok(b.tuple(&unsafe { values(args, count) }?)?))
}

/// Adds a read of an element of a tuple, or of a field of a struct, counted from 1. Of checked arithmetic 1 is the number and 2 whether it has overflowed.
#[unsafe(no_mangle)]
#[must_use]
pub extern "C" fn brolga_builder_element(
    builder: Option<&BrolgaBuilder>,
    object: u32,
    index: u32,
    value: Option<&mut MaybeUninit<u32>>,
) -> Option<Box<BrolgaError>> {
    add(builder, value, |b, _| Ok(b.element(self::value(object)?, index)?))
}

/// Adds a read of a field, by name.
///
/// # Safety
///
/// `field` is null or ends in a zero byte.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn brolga_builder_getfield(
    builder: Option<&BrolgaBuilder>,
    object: u32,
    field: *const c_char,
    value: Option<&mut MaybeUninit<u32>>,
) -> Option<Box<BrolgaError>> {
    // SAFETY: by the contract.
    add(builder, value, |b, _| Ok(b.getfield(self::value(object)?, unsafe { c_text(field, "field") }?)?))
}

/// Adds a write of a field of a mutable struct, by name.
///
/// # Safety
///
/// `field` is null or ends in a zero byte.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn brolga_builder_setfield(
    builder: Option<&BrolgaBuilder>,
    object: u32,
    field: *const c_char,
    value: u32,
) -> Option<Box<BrolgaError>> {
    change(builder, |b| {
        // SAFETY: by the contract.
        let field = unsafe { c_text(field, "field") }?;
        Ok(b.setfield(self::value(object)?, field, self::value(value)?)?)
    })
}

/// Declares a variable: it may be defined in several blocks, and has the value of the way by which a use is reached. `name` is for debuggers and may be null.
///
/// # Safety
///
/// `name` and `ty` are null or end in a zero byte.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn brolga_builder_variable(
    builder: Option<&BrolgaBuilder>,
    name: *const c_char,
    ty: *const c_char,
    variable: Option<&mut MaybeUninit<u32>>,
) -> Option<Box<BrolgaError>> {
    fenced(|| {
        let (builder, place) = (given(builder, "builder")?, place(variable, "variable")?);
        // SAFETY: by the contract.
        let ty = builder.shared.type_of(unsafe { c_text(ty, "ty") }?)?;
        let variable = match name.is_null() {
            true => builder.add(|b| Ok(b.declare_var(ty)))?,
            false => {
                // SAFETY: by the contract.
                let name = unsafe { self::name(name) }?;
                builder.add(|b| Ok(b.declare_named_var(name, ty)))?
            }
        };
        place.write(variable.as_u32());
        Ok(())
    })
}

/// Assigns another value to a variable from here on.
#[unsafe(no_mangle)]
#[must_use]
pub extern "C" fn brolga_builder_define(
    builder: Option<&BrolgaBuilder>,
    variable: u32,
    value: u32,
) -> Option<Box<BrolgaError>> {
    change(builder, |b| Ok(b.def_var(entity(variable, Variable::from_u32)?, self::value(value)?)?))
}

/// Returns the value of a variable at this place.
#[unsafe(no_mangle)]
#[must_use]
pub extern "C" fn brolga_builder_use(
    builder: Option<&BrolgaBuilder>,
    variable: u32,
    value: Option<&mut MaybeUninit<u32>>,
) -> Option<Box<BrolgaError>> {
    add(builder, value, |b, _| Ok(b.use_var(entity(variable, Variable::from_u32)?)?))
}

/// Makes a block.
#[unsafe(no_mangle)]
#[must_use]
pub extern "C" fn brolga_builder_block(
    builder: Option<&BrolgaBuilder>,
    block: Option<&mut MaybeUninit<u32>>,
) -> Option<Box<BrolgaError>> {
    fenced(|| {
        let (builder, place) = (given(builder, "builder")?, place(block, "block")?);
        place.write(builder.add(|b| Ok(b.create_block()))?.as_u32());
        Ok(())
    })
}

/// Adds statements to this block from now on.
#[unsafe(no_mangle)]
#[must_use]
pub extern "C" fn brolga_builder_switch(
    builder: Option<&BrolgaBuilder>,
    block: u32,
) -> Option<Box<BrolgaError>> {
    change(builder, |b| Ok(b.switch_to_block(self::block(block)?)?))
}

/// Says that no more jumps to the block will be added. Blocks that are not sealed are when the function is finished; sealing early saves work.
#[unsafe(no_mangle)]
#[must_use]
pub extern "C" fn brolga_builder_seal(
    builder: Option<&BrolgaBuilder>,
    block: u32,
) -> Option<Box<BrolgaError>> {
    change(builder, |b| Ok(b.seal_block(self::block(block)?)?))
}

/// Ends the block: continues at another one.
#[unsafe(no_mangle)]
#[must_use]
pub extern "C" fn brolga_builder_goto(
    builder: Option<&BrolgaBuilder>,
    block: u32,
) -> Option<Box<BrolgaError>> {
    change(builder, |b| Ok(b.goto(self::block(block)?)?))
}

/// Ends the block: continues at `then` if the condition, a `Bool`, is true, else at `other`.
#[unsafe(no_mangle)]
#[must_use]
pub extern "C" fn brolga_builder_branch(
    builder: Option<&BrolgaBuilder>,
    condition: u32,
    then: u32,
    other: u32,
) -> Option<Box<BrolgaError>> {
    change(builder, |b| Ok(b.branch(value(condition)?, block(then)?, block(other)?)?))
}

/// Ends the block: returns from the function.
#[unsafe(no_mangle)]
#[must_use]
pub extern "C" fn brolga_builder_return(
    builder: Option<&BrolgaBuilder>,
    value: u32,
) -> Option<Box<BrolgaError>> {
    change(builder, |b| Ok(b.ret(&[self::value(value)?])?))
}

/// Ends the block, whose end is never reached: after a call that always throws.
#[unsafe(no_mangle)]
#[must_use]
pub extern "C" fn brolga_builder_unreachable(builder: Option<&BrolgaBuilder>) -> Option<Box<BrolgaError>> {
    change(builder, |b| Ok(b.unreachable()?))
}

/// Ends the block: continues at `body`; exceptions thrown before the token is left continue at `handler`.
#[unsafe(no_mangle)]
#[must_use]
pub extern "C" fn brolga_builder_enter(
    builder: Option<&BrolgaBuilder>,
    body: u32,
    handler: u32,
    token: Option<&mut MaybeUninit<u32>>,
) -> Option<Box<BrolgaError>> {
    add(builder, token, |b, _| Ok(b.enter(block(body)?, block(handler)?)?))
}

/// Leaves the innermost handler, by its token. The block of the handler is entered without it.
#[unsafe(no_mangle)]
#[must_use]
pub extern "C" fn brolga_builder_leave(
    builder: Option<&BrolgaBuilder>,
    token: u32,
) -> Option<Box<BrolgaError>> {
    change(builder, |b| Ok(b.leave(&[value(token)?])?))
}
