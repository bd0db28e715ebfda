//! Modules in binary form and packages, forged so that their checksums are correct.
//!
//! ```text
//! seed ─► original ─► changed fields, updated checksums ─► read ──► refused with a reason
//!                                                        └────► printed, written, read again; each declaration; without doors: called
//! ```
//!
//! A package is machine code and is trusted as such; its code is run only if the index and the units are the
//! original's, so that a call runs code that was compiled for its callee, or compiles it.

use std::sync::Arc;

use brolga_engine::session::{Evaluator, PackageBuild, Session, Workers};
use brolga_engine::{Options, Program};
use brolga_ir::binary::{self, Stored};
use brolga_ir::text::show_module;
use brolga_ir::{Context, FuncId, Module, Type};
use brolga_runtime::{Limits, Output};

use super::checked::{DEADLINE, HEAP};
use super::{Fate, Fault, Guarded, doors, without_doors};
use crate::check::{Trouble, fenced, is_called};
use crate::generate::{Features, Options as Generated, generate};
use crate::mutate;
use crate::rng::Rng;

/// The number of forgeries per module.
const EACH: u64 = 16;
/// The number of packages to forge.
const PACKAGES: u64 = 6;
/// The number of functions called per package.
const CALLS: usize = 3;

/// A forged module in binary form; the form used in images if the seed is odd.
#[must_use]
pub fn forged_module(seed: u64) -> Vec<u8> {
    let options = Generated { functions: 3, size: 30, features: Features::CHECKED, ..Generated::default() };
    let module = generate(seed / EACH, &options);
    let original = match seed.is_multiple_of(2) {
        true => binary::write(&module),
        false => binary::write_with_types(&module, &[Type::INT64, Type::STRING, Type::ANY]),
    };
    mutate::module(&mut Rng::new(seed), &original)
}

/// Reads a module and uses its contents.
///
/// # Errors
/// A panic, or a refusal without a reason.
pub fn module(guarded: &Guarded, bytes: &[u8], seed: u64) -> Result<Fate, Fault> {
    let used = || {
        let module = match read(bytes, seed) {
            Ok(module) => module,
            Err(error) if error.to_string().is_empty() => {
                return Err(Fault("a refusal without a reason".to_owned()));
            }
            Err(_) => return Ok(Fate::Broken),
        };
        let again = binary::read(&binary::write(&module), Context::new());
        let again = again.map_err(|error| Fault(format!("what was read is not read again: {error}")))?;
        if show_module(&again).to_string() != show_module(&module).to_string() {
            return Err(Fault("a module that was written and read again is another".to_owned()));
        }
        Ok(Program::from_module(module).map_or(Fate::Broken, |program| guarded.run(&program, seed)))
    };
    fenced("using a forged module", used).map_err(|trouble: Trouble| Fault(trouble.to_string()))?
}

fn read(bytes: &[u8], seed: u64) -> Result<Module, binary::BinaryError> {
    if seed.is_multiple_of(2) {
        return binary::read(bytes, Context::new());
    }
    let stored = Stored::open(bytes, Context::new())?;
    for number in (0..=stored.func_count()).rev() {
        // Each is malformed or valid independently of the others.
        let _ = stored.declaration(FuncId::from_u32(number as u32));
    }
    let _ = stored.listed();
    stored.module()
}

/// The original packages.
pub struct Packages {
    originals: Vec<Vec<u8>>,
}

impl Packages {
    #[must_use]
    pub fn build() -> Packages {
        let build = |seed: u64| {
            let text = without_doors(2 * seed);
            PackageBuild::new("forged").build(&[("forged.jlir", text.as_bytes())], options())
        };
        // Programs that sessions refuse are not suitable as originals.
        let originals: Vec<_> =
            (0..PACKAGES).filter_map(|seed| build(seed).ok()).map(|made| made.bytes).collect();
        Packages { originals }
    }

    /// A forged package, and whether its code is the original's.
    #[must_use]
    pub fn forged(&self, seed: u64) -> (Vec<u8>, bool) {
        let mut rng = Rng::new(seed);
        let original = rng.pick(&self.originals).cloned().unwrap_or_default();
        mutate::package(&mut rng, &original)
    }
}

fn options() -> Options {
    doors::open().heap_limit(Some(HEAP)).output(Output::Capture)
}

/// Opens a package and uses its contents, if its code is the original's.
///
/// # Errors
/// A panic, or a refusal without a reason.
pub fn package(bytes: Vec<u8>, is_code_kept: bool) -> Result<Fate, Fault> {
    let used = || {
        let session = Session::new(options(), Workers::Caller).map_err(|error| Fault(error.to_string()))?;
        let dylib = session.create_dylib("main").map_err(|error| Fault(error.to_string()))?;
        let modules: Vec<_> = mutate::modules_of(&bytes)
            .into_iter()
            .filter_map(|range| binary::read(&bytes[range], Context::new()).ok())
            .collect();
        let opened = match dylib.open_package_bytes(bytes) {
            Ok(opened) => opened,
            Err(error) if error.to_string().is_empty() => {
                return Err(Fault("a refusal without a reason".to_owned()));
            }
            Err(_) => return Ok(Fate::Broken),
        };
        let mut calls = 0;
        for module in modules.iter().filter(|_| is_code_kept) {
            let Ok(program) = Program::from_module(module.clone()) else { continue };
            if program.check_doors().is_err() {
                return Ok(Fate::Doors);
            }
            let mut evaluator = Evaluator::new(&dylib, module);
            for call in texts_of_calls(module).into_iter().take(CALLS) {
                let limits = Limits::new().timeout(DEADLINE);
                let ended = session.runtime().limited(&limits, || evaluator.evaluate("call", &call).is_ok());
                calls += usize::from(ended.is_ok());
            }
        }
        let _ = opened.units();
        session.end();
        Ok(if calls == 0 { Fate::NotRun } else { Fate::Ran(calls) })
    };
    fenced("using a forged package", used).map_err(|trouble: Trouble| Fault(trouble.to_string()))?
}

/// Calls of the functions whose arguments can be written as plain text.
fn texts_of_calls(module: &Module) -> Vec<String> {
    let literal = |ty: Type| match ty {
        Type::INT64 => Some("3"),
        Type::FLOAT64 => Some("1.5"),
        Type::BOOL => Some("true"),
        _ => None,
    };
    let cx: &Arc<Context> = &module.cx;
    let call = |func: &brolga_ir::Func| {
        let args: Option<Vec<&str>> = func.sig.params.iter().skip(1).map(|param| literal(param.ty)).collect();
        let name = cx.types.display(func.sig.params.first()?.ty).to_string();
        let name = name.strip_prefix("typeof(")?.strip_suffix(')')?.to_owned();
        Some(format!("{name}({})", args?.join(", ")))
    };
    module.funcs().filter(|(_, func)| is_called(cx, func)).filter_map(|(_, func)| call(func)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forged_modules_are_refused_or_used() {
        let guarded = Guarded::new().unwrap();
        let (mut refused, mut ran) = (0, 0);
        for seed in 0..1500 {
            match module(&guarded, &forged_module(seed), seed) {
                Ok(Fate::Broken) => refused += 1,
                Ok(Fate::Ran(_)) => ran += 1,
                Ok(Fate::Doors | Fate::NotRun) => {}
                Err(fault) => panic!("seed {seed}: {fault}"),
            }
        }
        assert!(refused > 300 && ran > 100, "{refused} refused, {ran} ran");
    }

    #[test]
    fn forged_packages_are_refused_or_used() {
        let packages = Packages::build();
        assert!(!packages.originals.is_empty());
        let original = packages.originals[0].clone();
        assert!(matches!(package(original, true), Ok(Fate::Ran(_))), "the original is right");
        let (mut refused, mut ran) = (0, 0);
        for seed in 0..300 {
            let (bytes, is_code_kept) = packages.forged(seed);
            match package(bytes, is_code_kept) {
                Ok(Fate::Broken) => refused += 1,
                Ok(Fate::Ran(_)) => ran += 1,
                Ok(Fate::Doors | Fate::NotRun) => {}
                Err(fault) => panic!("seed {seed}: {fault}"),
            }
        }
        assert!(refused > 50 && ran > 10, "{refused} refused, {ran} ran");
    }
}
