//! Packages: programs with their machine code in a file, built once and opened by sessions.
//!
//! ```text
//!   brolga_package_build_new ── add_program, add_need, … ── brolga_package_build_write(options, path) ──► file
//!   brolga_dylib_open_package(path) ──► BrolgaPackage ── brolga_package_close
//! ```
//!
//! Both need open doors (`brolga_options_allow_doors`): a package is machine code that runs with all rights of the process.

use std::ffi::c_char;
use std::mem::MaybeUninit;
use std::sync::{Mutex, MutexGuard, PoisonError};

use brolga::session::{OpenedPackage, PackageBuild};

use crate::dependants::dependants;
use crate::dylib::BrolgaDylib;
use crate::error::{BrolgaError, fenced};
use crate::options::BrolgaOptions;
use crate::out::{give, given, place};
use crate::text::{array, c_text, name};

/// Settings and programs of a package. Made by `brolga_package_build_new`, freed by `brolga_package_build_free`.
pub struct BrolgaPackageBuild {
    parts: Mutex<Parts>,
}

struct Parts {
    build: PackageBuild,
    /// Programs by name and text.
    programs: Vec<(String, Vec<u8>)>,
}

/// A package that is open in a session. Freed by `brolga_package_free`, which does not close it.
pub struct BrolgaPackage {
    package: OpenedPackage,
}

impl BrolgaPackageBuild {
    fn parts(&self) -> MutexGuard<'_, Parts> {
        self.parts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, body: impl FnOnce(PackageBuild) -> PackageBuild) {
        let mut parts = self.parts();
        parts.build = body(parts.build.clone());
    }
}

/// Begins a package of this name.
///
/// # Safety
///
/// `name` is null or ends in a zero byte.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn brolga_package_build_new(
    name: *const c_char,
    build: Option<&mut MaybeUninit<*mut BrolgaPackageBuild>>,
) -> Option<Box<BrolgaError>> {
    fenced(|| {
        let place = place(build, "build")?;
        // SAFETY: by the contract.
        let build = PackageBuild::new(unsafe { self::name(name) }?);
        give(place, BrolgaPackageBuild { parts: Mutex::new(Parts { build, programs: Vec::new() }) });
        Ok(())
    })
}

/// Frees the settings of a package. Null is nothing.
#[unsafe(no_mangle)]
pub extern "C" fn brolga_package_build_free(build: Option<Box<BrolgaPackageBuild>>) {
    drop(build);
}

/// Adds a program in the text form, of `length` bytes, which sees those that were added before.
///
/// # Safety
///
/// `name` is null or ends in a zero byte; there are `length` bytes at `text`, or it is null.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn brolga_package_build_add_program(
    build: Option<&BrolgaPackageBuild>,
    name: *const c_char,
    text: *const c_char,
    length: usize,
) -> Option<Box<BrolgaError>> {
    fenced(|| {
        let build = given(build, "build")?;
        // SAFETY: by the contract.
        let (name, text) = unsafe { (self::name(name)?, array(text.cast::<u8>(), length, "text")?) };
        build.parts().programs.push((name.to_owned(), text.to_vec()));
        Ok(())
    })
}

/// Builds on another package, a file, which must be open wherever this one is opened.
///
/// # Safety
///
/// `path` is null or ends in a zero byte.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn brolga_package_build_add_need(
    build: Option<&BrolgaPackageBuild>,
    path: *const c_char,
) -> Option<Box<BrolgaError>> {
    fenced(|| {
        let build = given(build, "build")?;
        // SAFETY: by the contract.
        let path = unsafe { c_text(path, "path") }?;
        build.change(|build| build.needs(path));
        Ok(())
    })
}

/// Builds against a program that will be there where the package is opened, defined lazily and inlinable (`brolga_definitions_set_inlinable`) in a dylib that its own sees. The package has no part of it.
///
/// # Safety
///
/// As `brolga_package_build_add_program`.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn brolga_package_build_add_against(
    build: Option<&BrolgaPackageBuild>,
    name: *const c_char,
    text: *const c_char,
    length: usize,
) -> Option<Box<BrolgaError>> {
    fenced(|| {
        let build = given(build, "build")?;
        // SAFETY: by the contract.
        let (name, text) = unsafe { (self::name(name)?, array(text.cast::<u8>(), length, "text")?) };
        build.change(|build| build.against(name, text));
        Ok(())
    })
}

/// Includes code of both tiers: where the package is opened, functions are promoted after `calls` calls.
#[unsafe(no_mangle)]
#[must_use]
pub extern "C" fn brolga_package_build_set_tiered(
    build: Option<&BrolgaPackageBuild>,
    calls: u32,
) -> Option<Box<BrolgaError>> {
    fenced(|| {
        given(build, "build")?.change(|build| build.tiered(calls));
        Ok(())
    })
}

/// Compiles with `threads` threads. The package is the same for any number.
#[unsafe(no_mangle)]
#[must_use]
pub extern "C" fn brolga_package_build_set_threads(
    build: Option<&BrolgaPackageBuild>,
    threads: usize,
) -> Option<Box<BrolgaError>> {
    fenced(|| {
        given(build, "build")?.change(|build| build.threads(threads));
        Ok(())
    })
}

/// Compiles the programs and writes the package to a file, at once: readers see the old file or the new one. `options` may be null for the defaults, which have closed doors.
///
/// # Safety
///
/// `path` is null or ends in a zero byte.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn brolga_package_build_write(
    build: Option<&BrolgaPackageBuild>,
    options: Option<&BrolgaOptions>,
    path: *const c_char,
) -> Option<Box<BrolgaError>> {
    fenced(|| {
        let build = given(build, "build")?;
        // SAFETY: by the contract.
        let path = unsafe { c_text(path, "path") }?;
        let (settings, programs) = {
            let parts = build.parts();
            (parts.build.clone(), parts.programs.clone())
        };
        let programs: Vec<(&str, &[u8])> =
            programs.iter().map(|(name, text)| (name.as_str(), text.as_slice())).collect();
        let package = settings.build(&programs, BrolgaOptions::made(options))?;
        Ok(brolga::image::write(path, &package.bytes)?)
    })
}

/// Opens a package from a file: defines its programs in the dylib, and finds their code in it from now on. The error says if it does not fit.
///
/// # Safety
///
/// `path` is null or ends in a zero byte.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn brolga_dylib_open_package(
    dylib: Option<&BrolgaDylib>,
    path: *const c_char,
    package: Option<&mut MaybeUninit<*mut BrolgaPackage>>,
) -> Option<Box<BrolgaError>> {
    fenced(|| {
        let (dylib, place) = (given(dylib, "dylib")?, place(package, "package")?);
        // SAFETY: by the contract.
        let path = unsafe { c_text(path, "path") }?;
        give(place, BrolgaPackage { package: dylib.dylib.open_package(path)? });
        Ok(())
    })
}

/// Removes the functions of a package, and looks no more for code in it. `dependants` is a `BrolgaDependants`.
#[unsafe(no_mangle)]
#[must_use]
pub extern "C" fn brolga_package_close(
    package: Option<&BrolgaPackage>,
    dependants: u32,
) -> Option<Box<BrolgaError>> {
    fenced(|| Ok(given(package, "package")?.package.close(self::dependants(dependants)?)?))
}

/// Frees a handle of a package, which stays open. Null is nothing.
#[unsafe(no_mangle)]
pub extern "C" fn brolga_package_free(package: Option<Box<BrolgaPackage>>) {
    drop(package);
}
