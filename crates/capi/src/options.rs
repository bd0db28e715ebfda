//! Options of engines and sessions.

use std::ffi::c_char;
use std::sync::Arc;

use brolga::cache::Cache;
use brolga::options::CpuTarget;
use brolga::{Doors, OptLevel, Options, Output};

use crate::error::{BrolgaCode, BrolgaError, fenced};
use crate::out::given;
use crate::text::{c_text, name};

/// Choices for an engine or a session. Made by `brolga_options_new`, freed by `brolga_options_free`; one may be used for several engines.
#[derive(Clone, Debug, Default)]
pub struct BrolgaOptions {
    level: OptLevel,
    heap_limit: Option<usize>,
    code_limit: Option<usize>,
    compile_memory: Option<usize>,
    fuel: bool,
    capture: bool,
    doors: Option<Doors>,
    pub(crate) cache: Option<Arc<Cache>>,
    cpu: CpuTarget,
    /// The targets of images, in the syntax of `Options::cpu_targets`, which has accepted them.
    image_targets: Option<String>,
}

impl BrolgaOptions {
    /// The options; the defaults for a null pointer.
    pub(crate) fn made(options: Option<&BrolgaOptions>) -> Options {
        let BrolgaOptions {
            level,
            heap_limit,
            code_limit,
            compile_memory,
            fuel,
            capture,
            doors,
            cache,
            cpu,
            image_targets,
        } = options.cloned().unwrap_or_default();
        let mut made = Options::new().cpu_target(cpu);
        if let Some(targets) = image_targets {
            // They were accepted before.
            made = made.cpu_targets(&targets).unwrap_or_else(|_| Options::new().cpu_target(cpu));
        }
        made = made.opt_level(level).heap_limit(heap_limit).fuel(fuel).compile_memory(compile_memory);
        if let Some(cache) = cache {
            made = made.cache(cache);
        }
        if let Some(bytes) = code_limit {
            made = made.code_limit(bytes);
        }
        if let Some(doors) = doors {
            made = made.doors(doors);
        }
        if capture { made.output(Output::Capture) } else { made }
    }
}

/// The defaults: programs without doors only, optimised at level 2, no limits except the machine's, printing to the standard output.
#[unsafe(no_mangle)]
#[must_use]
pub extern "C" fn brolga_options_new() -> Box<BrolgaOptions> {
    Box::default()
}

/// Frees options. Null is nothing.
#[unsafe(no_mangle)]
pub extern "C" fn brolga_options_free(options: Option<Box<BrolgaOptions>>) {
    drop(options);
}

/// How much is optimised, from 0 to 3. 0 compiles in the fastest way.
#[unsafe(no_mangle)]
#[must_use]
pub extern "C" fn brolga_options_set_level(
    options: Option<&mut BrolgaOptions>,
    level: u32,
) -> Option<Box<BrolgaError>> {
    fenced(|| {
        let options = given(options, "options")?;
        let found = usize::try_from(level).ok().and_then(|level| OptLevel::ALL.get(level));
        options.level = *found.ok_or_else(|| {
            BrolgaError::new(BrolgaCode::Argument, format!("there is no level {level}: it is 0, 1, 2 or 3"))
        })?;
        Ok(())
    })
}

/// How many bytes objects may take; an allocation beyond that throws `OutOfMemoryError`. 0 is the default: three quarters of the memory of
/// the machine or the container.
#[unsafe(no_mangle)]
#[must_use]
pub extern "C" fn brolga_options_set_heap_limit(
    options: Option<&mut BrolgaOptions>,
    bytes: usize,
) -> Option<Box<BrolgaError>> {
    fenced(|| {
        given(options, "options")?.heap_limit = (bytes > 0).then_some(bytes);
        Ok(())
    })
}

/// How many bytes compiled code may take at one time. A session evicts code that was not called for long; what does not fit all the same is
/// an error. 0 sets no limit.
#[unsafe(no_mangle)]
#[must_use]
pub extern "C" fn brolga_options_set_code_limit(
    options: Option<&mut BrolgaOptions>,
    bytes: usize,
) -> Option<Box<BrolgaError>> {
    fenced(|| {
        given(options, "options")?.code_limit = (bytes > 0).then_some(bytes);
        Ok(())
    })
}

/// How many bytes compiling one function may take, as estimated from its size; a larger function is an error. 0 is the default: 2 GiB.
#[unsafe(no_mangle)]
#[must_use]
pub extern "C" fn brolga_options_set_compile_memory(
    options: Option<&mut BrolgaOptions>,
    bytes: usize,
) -> Option<Box<BrolgaError>> {
    fenced(|| {
        given(options, "options")?.compile_memory = (bytes > 0).then_some(bytes);
        Ok(())
    })
}

/// Whether programs take fuel in calls under limits: `brolga_limits_set_fuel`. How much a call takes depends on the program and its arguments alone.
#[unsafe(no_mangle)]
#[must_use]
pub extern "C" fn brolga_options_set_fuel(
    options: Option<&mut BrolgaOptions>,
    fuel: bool,
) -> Option<Box<BrolgaError>> {
    fenced(|| {
        given(options, "options")?.fuel = fuel;
        Ok(())
    })
}

/// Whether the program's output is kept for `brolga_runtime_take_output` instead of written to the standard output.
#[unsafe(no_mangle)]
#[must_use]
pub extern "C" fn brolga_options_set_capture(
    options: Option<&mut BrolgaOptions>,
    capture: bool,
) -> Option<Box<BrolgaError>> {
    fenced(|| {
        given(options, "options")?.capture = capture;
        Ok(())
    })
}

/// The processor that code is for, by name: `native` is this one and the default, `generic` any of its architecture; on x86-64 also `x86-64-v2`, `x86-64-v3`, `x86-64-v4`. Making an engine or a session for
/// what this processor does not have is an error.
///
/// # Safety
///
/// `name` is null or ends in a zero byte.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn brolga_options_set_cpu(
    options: Option<&mut BrolgaOptions>,
    name: *const c_char,
) -> Option<Box<BrolgaError>> {
    fenced(|| {
        let options = given(options, "options")?;
        // SAFETY: by the contract.
        let name = unsafe { self::name(name) }?;
        options.cpu = CpuTarget::from_name(name).ok_or_else(|| {
            let all = CpuTarget::ALL.map(|target| format!("`{}`", target.name())).join(", ");
            BrolgaError::new(
                BrolgaCode::Argument,
                format!("there is no processor `{name}`: it is one of {all}"),
            )
        })?;
        Ok(())
    })
}

/// The processors that packages are built for, in Julia's syntax: `generic;x86-64-v3,-fma;x86-64-v4,clone_all`. The best one is chosen where a package is opened.
///
/// # Safety
///
/// `targets` is null or ends in a zero byte.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn brolga_options_set_image_targets(
    options: Option<&mut BrolgaOptions>,
    targets: *const c_char,
) -> Option<Box<BrolgaError>> {
    fenced(|| {
        let options = given(options, "options")?;
        // SAFETY: by the contract.
        let targets = unsafe { c_text(targets, "targets") }?;
        Options::new().cpu_targets(targets)?;
        options.image_targets = Some(targets.to_owned());
        Ok(())
    })
}

/// Takes programs that are not checked as well: with pointers, calls of C functions, low IR, and symbols of C that the host defines. Without this a program
/// with such a door is refused, with the place of each.
///
/// # Safety
///
/// The host answers for what goes through the doors: addresses are valid for the accesses through them, C functions exist with the signatures that
/// programs state and keep to them, indices whose check is turned off are in range.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn brolga_options_allow_doors(
    options: Option<&mut BrolgaOptions>,
) -> Option<Box<BrolgaError>> {
    fenced(|| {
        // SAFETY: by the contract.
        given(options, "options")?.doors = Some(unsafe { Doors::open() });
        Ok(())
    })
}
