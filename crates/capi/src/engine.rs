//! Engines, programs and units: a program compiled at once.

use std::ffi::c_char;
use std::mem::MaybeUninit;
use std::sync::Arc;

use brolga::build::{Context, Func, Type};
use brolga::image::Image;
use brolga::{Engine, Program, Unit};

use crate::error::{BrolgaError, fenced};
use crate::function::{BrolgaFunction, Types};
use crate::options::BrolgaOptions;
use crate::out::{give, given, place};
use crate::runtime::BrolgaRuntime;
use crate::text::{array, name};

/// Compiles programs and links them into the process.
pub struct BrolgaEngine {
    engine: Engine,
    runtime: BrolgaRuntime,
}

impl BrolgaEngine {
    pub(crate) fn engine(&self) -> &Engine {
        &self.engine
    }

    /// The functions of an image.
    pub(crate) fn opened(&self, image: &brolga::image::Image) -> BrolgaUnit {
        let (unit, declared) = (image.unit().clone(), Declared::Image(image.clone()));
        BrolgaUnit { unit, declared, runtime: self.runtime.clone() }
    }
}

/// A program, read and verified.
pub struct BrolgaProgram {
    pub(crate) program: Program,
}

/// Compiled functions of one program.
pub struct BrolgaUnit {
    unit: Unit,
    declared: Declared,
    runtime: BrolgaRuntime,
}

/// The source of the types of a unit's functions.
enum Declared {
    Program(Box<Program>),
    Image(Image),
}

impl Declared {
    /// The symbol and result type of the function with a name or symbol.
    fn find(&self, name: &str) -> Result<Option<(String, Option<Type>)>, BrolgaError> {
        let cx = self.context();
        let told = |func: &Func| (func.symbol(cx), func.sig.results.first().copied());
        Ok(match self {
            Declared::Program(program) => {
                let is_named = |func: &&Func| func.symbol(cx) == name || func.spelled_name(cx) == name;
                program.module().funcs().map(|(_, func)| func).find(is_named).map(told)
            }
            Declared::Image(image) => image.declaration(name)?.as_ref().map(told),
        })
    }

    fn context(&self) -> &Arc<Context> {
        match self {
            Declared::Program(program) => &program.module().cx,
            Declared::Image(image) => image.context(),
        }
    }
}

/// Makes an engine with a run time of its own. `options` may be null for the defaults.
#[unsafe(no_mangle)]
#[must_use]
pub extern "C" fn brolga_engine_new(
    options: Option<&BrolgaOptions>,
    engine: Option<&mut MaybeUninit<*mut BrolgaEngine>>,
) -> Option<Box<BrolgaError>> {
    fenced(|| {
        let place = place(engine, "engine")?;
        let engine = Engine::new(BrolgaOptions::made(options))?;
        let runtime = BrolgaRuntime::new(engine.runtime());
        give(place, BrolgaEngine { engine, runtime });
        Ok(())
    })
}

/// Returns a handle of the engine's run time.
#[unsafe(no_mangle)]
#[must_use]
pub extern "C" fn brolga_engine_runtime(
    engine: Option<&BrolgaEngine>,
    runtime: Option<&mut MaybeUninit<*mut BrolgaRuntime>>,
) -> Option<Box<BrolgaError>> {
    fenced(|| {
        let (engine, place) = (given(engine, "engine")?, place(runtime, "runtime")?);
        give(place, engine.runtime.clone());
        Ok(())
    })
}

/// Frees an engine. Its compiled code stays as long as there are handles to it. Null is nothing.
#[unsafe(no_mangle)]
pub extern "C" fn brolga_engine_free(engine: Option<Box<BrolgaEngine>>) {
    drop(engine);
}

/// Reads and verifies a program in the text form, of `length` bytes. `name` is how messages call it.
///
/// # Safety
///
/// `name` is null or ends in a zero byte; there are `length` bytes at `text`, or it is null.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn brolga_program_read(
    name: *const c_char,
    text: *const c_char,
    length: usize,
    program: Option<&mut MaybeUninit<*mut BrolgaProgram>>,
) -> Option<Box<BrolgaError>> {
    fenced(|| {
        let place = place(program, "program")?;
        // SAFETY: by the contract.
        let (name, text) = unsafe { (self::name(name)?, array(text.cast::<u8>(), length, "text")?) };
        give(place, BrolgaProgram { program: Program::read(name, text)? });
        Ok(())
    })
}

/// Frees a program. Null is nothing.
#[unsafe(no_mangle)]
pub extern "C" fn brolga_program_free(program: Option<Box<BrolgaProgram>>) {
    drop(program);
}

/// Compiles all functions of a program.
#[unsafe(no_mangle)]
#[must_use]
pub extern "C" fn brolga_engine_compile(
    engine: Option<&BrolgaEngine>,
    program: Option<&BrolgaProgram>,
    unit: Option<&mut MaybeUninit<*mut BrolgaUnit>>,
) -> Option<Box<BrolgaError>> {
    fenced(|| {
        let (engine, program) = (given(engine, "engine")?, given(program, "program")?);
        let place = place(unit, "unit")?;
        let unit = engine.engine.compile(&program.program)?;
        let (declared, runtime) =
            (Declared::Program(Box::new(program.program.clone())), engine.runtime.clone());
        give(place, BrolgaUnit { unit, declared, runtime });
        Ok(())
    })
}

/// Returns a function of a unit by its name (`fib`), if only one method has it, or by its symbol (`fib(Int64)`).
///
/// # Safety
///
/// `name` is null or ends in a zero byte.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn brolga_unit_function(
    unit: Option<&BrolgaUnit>,
    name: *const c_char,
    function: Option<&mut MaybeUninit<*mut BrolgaFunction>>,
) -> Option<Box<BrolgaError>> {
    fenced(|| {
        let (unit, place) = (given(unit, "unit")?, place(function, "function")?);
        // SAFETY: by the contract.
        let name = unsafe { self::name(name) }?;
        let func = unit.unit.untyped(name)?;
        let (symbol, result) = unit.declared.find(name)?.unwrap_or_else(|| (name.to_owned(), None));
        let cx = unit.declared.context();
        let result = result.map(|ty| cx.types.display(ty).to_string()).unwrap_or_default();
        let types = Types::of_symbol(&symbol, &result);
        give(place, BrolgaFunction::new(func, &symbol, types, cx, &unit.runtime, unit.unit.clone()));
        Ok(())
    })
}

/// Frees a unit. Its code stays as long as there are handles to its functions. Null is nothing.
#[unsafe(no_mangle)]
pub extern "C" fn brolga_unit_free(unit: Option<Box<BrolgaUnit>>) {
    drop(unit);
}
