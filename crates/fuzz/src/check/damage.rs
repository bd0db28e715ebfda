//! Damaged inputs: reading any of them returns a module or errors with positions. A module can then be
//! verified, printed, interpreted and compiled, or is refused with a reason; its compiled code is never run.

use super::{Failure, Trouble, fenced};
use crate::rng::Rng;
use crate::values;
use brolga_codegen::compile::CompileError;
use brolga_codegen::generate::GenerateError;
use brolga_codegen::isa::Tier;
use brolga_codegen::translate::TranslateError;
use brolga_engine::build;
use brolga_engine::{Error, Stages};
use brolga_interp::{Interp, Options, SimMemory};
use brolga_ir::diag::{Diagnostics, SourceFile, Style};
use brolga_ir::verify::verify_module;
use brolga_ir::{Context, Level, Module, Type, binary, text};
use brolga_jit::{BuildError, Jit};
use brolga_opt::{Cx, OptLevel};

/// The fate of an input.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reading {
    /// It was refused with errors.
    Refused,
    /// It is a module.
    Accepted,
}

/// Reads bytes as IR text. With `jit`, an accepted module is also compiled.
pub fn check_text(seed: u64, bytes: &[u8], jit: Option<&Jit>) -> Result<Reading, Box<Failure>> {
    let read = read_text(bytes).and_then(|module| exercised(seed, module, jit));
    read.map_err(|trouble| {
        let text = String::from_utf8_lossy(bytes).into_owned();
        Box::new(Failure { seed, text, trouble })
    })
}

/// Reads bytes as a module in binary form. With `jit`, an accepted module is also compiled.
pub fn check_binary(seed: u64, bytes: &[u8], jit: Option<&Jit>) -> Result<Reading, Box<Failure>> {
    let read = read_binary(bytes).and_then(|module| exercised(seed, module, jit));
    read.map_err(|trouble| {
        let lines: Vec<String> = bytes.chunks(32).map(|line| format!("{line:02x?}\n")).collect();
        Box::new(Failure { seed, text: lines.concat(), trouble })
    })
}

fn read_text(bytes: &[u8]) -> Result<Option<Module>, Trouble> {
    let source = match fenced("making a source", || text::from_bytes("input", bytes))? {
        Ok(source) => source,
        Err(not_text) => {
            if let text::NotText::InvalidUtf8 { source, diagnostic } = &*not_text {
                let mut findings = Diagnostics::default();
                findings.push(diagnostic.clone());
                check_findings(source, &findings)?;
            }
            return Ok(None);
        }
    };
    let (unit, findings) = fenced("reading", || text::read(&source, &Context::new()))?;
    check_findings(&source, &findings)?;
    Ok((!findings.has_errors()).then_some(unit.module))
}

/// Checks that every finding refers to a position in the input, has a message, and can be shown.
pub(super) fn check_findings(source: &SourceFile, findings: &Diagnostics) -> Result<(), Trouble> {
    let text = source.text();
    for finding in findings {
        let places = std::iter::once(finding.at).chain(finding.related.iter().map(|&(at, _)| at));
        for at in places {
            if text.get(at.range()).is_none() || finding.message.is_empty() {
                return Err(Trouble::BadPlace { code: finding.code, span: (at.start, at.end) });
            }
        }
    }
    fenced("rendering the findings", || drop(findings.render(source, &Style::PLAIN)))
}

fn read_binary(bytes: &[u8]) -> Result<Option<Module>, Trouble> {
    match fenced("reading", || binary::read(bytes, Context::new()))? {
        Ok(module) => Ok(Some(module)),
        Err(error) if error.offset > bytes.len() || error.to_string().is_empty() => {
            let at = u32::try_from(error.offset).unwrap_or(u32::MAX);
            Err(Trouble::BadPlace { code: "binary", span: (at, at) })
        }
        Err(_) => Ok(None),
    }
}

/// Applies all other operations to a module that was read.
fn exercised(seed: u64, module: Option<Module>, jit: Option<&Jit>) -> Result<Reading, Trouble> {
    let Some(module) = module else { return Ok(Reading::Refused) };
    if fenced("verifying", || verify_module(&module))?.is_err() {
        return Ok(Reading::Refused);
    }
    fenced("printing", || text::show_module(&module).to_string())?;
    fenced("writing", || binary::write(&module))?;
    fenced("interpreting", || interpret(seed, &module))?;
    if let Some(jit) = jit {
        fenced("compiling", || compile(&module, jit))??;
    }
    Ok(Reading::Accepted)
}

/// Runs every function for a few steps. Its outcome does not matter.
fn interpret(seed: u64, module: &Module) {
    let options = Options { max_steps: 2000, max_depth: 100, max_heap_bytes: 1 << 20, ..Options::default() };
    let mut rng = Rng::new(seed);
    for (id, func) in module.funcs().filter(|(_, func)| func.level == Level::High) {
        let mut interp = Interp::new(module, options, Box::new(SimMemory::with_limit(1 << 16)));
        let types: Vec<Type> = func.sig.params.iter().skip(1).map(|p| p.ty).collect();
        let literals = values::arguments(&mut rng, &module.cx, &types).unwrap_or_default();
        let args: Result<Vec<_>, _> =
            literals.iter().map(|arg| super::engine::to_val(&mut interp, &module.cx, arg)).collect();
        if let Ok(args) = args {
            // Without literals for the arguments the call itself is refused, which is worth a try, too.
            drop(interp.call(id, &args));
        }
    }
}

/// Compiles every function with its callees. A refusal needs a reason that is due to the program.
fn compile(module: &Module, jit: &Jit) -> Result<(), Trouble> {
    let options = super::engine::verifying();
    let mut stages = Stages::new(module, OptLevel::O2, &options, Cx::default());
    for (id, _) in module.funcs() {
        let defect = |error: String| Err(Trouble::Refused { engine: "the compiler".to_owned(), why: error });
        let lows = match stages.linked([id]) {
            Ok(lows) => lows,
            Err(Error::NotNative(_)) => continue,
            Err(error) => return defect(error.to_string()),
        };
        match build(jit, module, &lows, Tier::Optimised, None) {
            Ok(_) => {}
            Err(BuildError::Link(_)) => {}
            Err(BuildError::Generate(
                GenerateError::Compile(CompileError::TooLarge { .. })
                | GenerateError::Translate(TranslateError::Foreign { .. }),
            )) => {}
            Err(error) => return defect(error.to_string()),
        }
    }
    Ok(())
}
