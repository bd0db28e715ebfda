//! Programs that C builds without text: types and functions, then a program for engines or definitions for a dylib.
//!
//! ```text
//!   brolga_module_new ──────► BrolgaModule ── brolga_module_struct ── brolga_module_function ──► BrolgaBuilder ── …, brolga_builder_finish
//!   brolga_dylib_module ──►        │
//!                                  ├── brolga_module_program ──► BrolgaProgram
//!                                  └── brolga_module_define ───► the functions of the dylib
//! ```
//!
//! Types are given by their names, in Julia's syntax: `Int64`, `Vector{Float64}`, `Union{Nothing, Int64}`, a struct of the module or, for the module of a dylib, one that its programs see.

use std::ffi::c_char;
use std::mem::MaybeUninit;
use std::sync::Arc;

use brolga::Program;
use brolga::build::{Builder, Context, Record, Type};

use crate::builder::BrolgaBuilder;
use crate::building::Building;
use crate::definitions::{in_mode, mode_of};
use crate::dylib::BrolgaDylib;
use crate::engine::BrolgaProgram;
use crate::error::{BrolgaCode, BrolgaError, fenced};
use crate::out::{give, given, place};
use crate::text::{c_text, name, names};

/// A program that is being built. Made by `brolga_module_new` or `brolga_dylib_module`, freed by `brolga_module_free`.
pub struct BrolgaModule {
    shared: Arc<Building>,
    /// The dylib that it is for.
    dylib: Option<BrolgaDylib>,
}

/// Begins a program for engines.
#[unsafe(no_mangle)]
#[must_use]
pub extern "C" fn brolga_module_new(
    module: Option<&mut MaybeUninit<*mut BrolgaModule>>,
) -> Option<Box<BrolgaError>> {
    fenced(|| {
        let place = place(module, "module")?;
        give(place, BrolgaModule { shared: Building::new(Context::new()), dylib: None });
        Ok(())
    })
}

/// Begins a program for a dylib, whose types it sees.
#[unsafe(no_mangle)]
#[must_use]
pub extern "C" fn brolga_dylib_module(
    dylib: Option<&BrolgaDylib>,
    module: Option<&mut MaybeUninit<*mut BrolgaModule>>,
) -> Option<Box<BrolgaError>> {
    fenced(|| {
        let (dylib, place) = (given(dylib, "dylib")?, place(module, "module")?);
        let shared = Building::new(dylib.dylib.context());
        give(place, BrolgaModule { shared, dylib: Some(dylib.clone()) });
        Ok(())
    })
}

/// Frees a module. Its builders, and programs that were made of it, stay. Null is nothing.
#[unsafe(no_mangle)]
pub extern "C" fn brolga_module_free(module: Option<Box<BrolgaModule>>) {
    drop(module);
}

/// Declares a struct with `count` fields.
///
/// # Safety
///
/// `name` is null or ends in a zero byte; there are `count` texts that end in a zero byte at `fields`, and at `types`, or these are null.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn brolga_module_struct(
    module: Option<&BrolgaModule>,
    name: *const c_char,
    is_mutable: bool,
    fields: *const *const c_char,
    types: *const *const c_char,
    count: usize,
) -> Option<Box<BrolgaError>> {
    fenced(|| {
        let shared = &given(module, "module")?.shared;
        // SAFETY: by the contract.
        let (name, fields, types) =
            unsafe { (self::name(name)?, names(fields, count, "fields")?, names(types, count, "types")?) };
        let mut record = Record::new(name);
        for (field, ty) in fields.iter().zip(types) {
            record = record.field(field, shared.type_of(ty)?);
        }
        if is_mutable {
            record = record.mutable();
        }
        record.declare(shared.context())?;
        Ok(())
    })
}

/// Begins a function with `count` parameters. `names` may be null: then they have no names. Other functions of the module call it by `brolga_builder_invoke`, also before it is
/// finished.
///
/// # Safety
///
/// `name` and `result` are null or end in a zero byte; there are `count` texts that end in a zero byte at `types`, and at `names`, or these are null.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn brolga_module_function(
    module: Option<&BrolgaModule>,
    name: *const c_char,
    names: *const *const c_char,
    types: *const *const c_char,
    count: usize,
    result: *const c_char,
    builder: Option<&mut MaybeUninit<*mut BrolgaBuilder>>,
) -> Option<Box<BrolgaError>> {
    fenced(|| {
        let (module, place) = (given(module, "module")?, place(builder, "builder")?);
        // SAFETY: by the contract.
        let (name, types, result) =
            unsafe { (self::name(name)?, self::names(types, count, "types")?, c_text(result, "result")?) };
        let given = match names.is_null() {
            true => vec![""; count],
            // SAFETY: by the contract.
            false => unsafe { self::names(names, count, "names") }?,
        };
        let shared = &module.shared;
        let params = given.into_iter().zip(types).map(|(name, ty)| Ok((name, shared.type_of(ty)?)));
        let params = params.collect::<Result<Vec<(&str, Type)>, BrolgaError>>()?;
        let result = shared.type_of(result)?;
        let begin = |context| Builder::high(context, name, &params, result);
        give(place, BrolgaBuilder::new(shared, begin));
        Ok(())
    })
}

/// Makes a program of the functions, verified. The module takes no more.
#[unsafe(no_mangle)]
#[must_use]
pub extern "C" fn brolga_module_program(
    module: Option<&BrolgaModule>,
    program: Option<&mut MaybeUninit<*mut BrolgaProgram>>,
) -> Option<Box<BrolgaError>> {
    fenced(|| {
        let (module, place) = (given(module, "module")?, place(program, "program")?);
        let program = Program::from_module(module.shared.take()?)?;
        give(place, BrolgaProgram { program });
        Ok(())
    })
}

/// Defines the functions in the dylib that the module is for, all or none. `mode` is a `BrolgaMode`. The module takes no more.
#[unsafe(no_mangle)]
#[must_use]
pub extern "C" fn brolga_module_define(module: Option<&BrolgaModule>, mode: u32) -> Option<Box<BrolgaError>> {
    fenced(|| {
        let module = given(module, "module")?;
        let no_dylib =
            || BrolgaError::new(BrolgaCode::Argument, "the module is for no dylib: `brolga_dylib_module`");
        let (dylib, mode) = (&module.dylib.as_ref().ok_or_else(no_dylib)?.dylib, mode_of(mode)?);
        let definitions = dylib.build(module.shared.take()?)?;
        Ok(dylib.define(in_mode(definitions, mode))?)
    })
}
