//! A kernel's C source as a shared library, built by a C compiler and loaded.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{Contender, here};

type Run = unsafe extern "C" fn(i64, i64) -> f64;

/// The folder of kernel sources beside the checkout.
pub(crate) fn sources() -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    root.ancestors().map(|dir| dir.join("shared/kernels")).find(|dir| dir.is_dir())
}

/// The kernel in C by the system's compiler at `-O2`.
#[expect(clippy::disallowed_methods, reason = "`CC` is how a user names the C compiler")]
pub(crate) fn contender(name: &str) -> Result<Contender, String> {
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".to_owned());
    built_by(&compiler, "C", name)
}

/// The kernel in C by clang at `-O2`, if there is a clang.
pub(crate) fn by_clang(name: &str) -> Option<Contender> {
    let is_installed = Command::new("clang").arg("--version").output().is_ok();
    if is_installed { built_by("clang", "clang", name).ok() } else { None }
}

fn built_by(compiler: &str, column: &'static str, name: &str) -> Result<Contender, String> {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("benches/kernels/julia/{name}.c"));
    let beside = sources();
    let source = match &beside {
        _ if own.is_file() => own,
        Some(sources) => sources.join(name).join(format!("{name}.c")),
        None => return Err("no kernel sources beside the checkout".to_owned()),
    };
    let library = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("kernel-{column}-{name}.so"));
    let status = Command::new(compiler)
        .args(["-O2", "-shared", "-fPIC", "-I"])
        .arg(beside.unwrap_or_default().join("common"))
        .arg("-o")
        .arg(&library)
        .arg(&source)
        .arg("-lm")
        .status()
        .map_err(|e| format!("`{compiler}`: {e}"))?;
    if !status.success() {
        return Err(format!("`{compiler}` could not build {}", source.display()));
    }
    // SAFETY: the library was just built from a source without initialisers.
    let library = unsafe { libloading::Library::new(&library) }.map_err(|e| e.to_string())?;
    // SAFETY: every kernel source defines `run` with this signature.
    let run = *unsafe { library.get::<Run>(b"run\0") }.map_err(|e| e.to_string())?;
    Ok(here(column, move |a, b| {
        // The library stays loaded for as long as its function can be called.
        let _loaded = &library;
        // SAFETY: as above; the kernels touch only memory that they allocate.
        Ok(unsafe { run(a, b) })
    }))
}
