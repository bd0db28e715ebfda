//! Modules that are printed or written, and read again, are unchanged.

use super::{Failure, Trouble, fenced, verify};
use brolga_ir::diag::{SourceFile, Style};
use brolga_ir::text::{read, show_module};
use brolga_ir::{Context, Module, binary};

/// Verifies a module, prints it, reads the text, and prints the result: the texts must be the same. Does the
/// same with the binary form. Returns the module that was read from the text, which must also have the same
/// meaning; it has the context of the original.
pub fn check_round_trip(seed: u64, module: &Module) -> Result<Module, Box<Failure>> {
    let mut text = String::new();
    let again = round_trip(module, &mut text);
    again.map_err(|trouble| Box::new(Failure { seed, text, trouble }))
}

pub(super) fn round_trip(module: &Module, text: &mut String) -> Result<Module, Trouble> {
    *text = fenced("printing", || show_module(module).to_string())?;
    fenced("verifying", || verify(module))?.map_err(Trouble::Malformed)?;
    let source = SourceFile::new("printed", text.clone()).map_err(|e| Trouble::Unreadable(e.to_string()))?;
    let (unit, findings) = fenced("reading", || read(&source, &module.cx))?;
    if !findings.is_empty() {
        return Err(Trouble::Unreadable(findings.render(&source, &Style::PLAIN)));
    }
    let second = fenced("printing", || show_module(&unit.module).to_string())?;
    if *text != second {
        return Err(Trouble::OtherText { second });
    }
    fenced("verifying", || verify(&unit.module))?.map_err(Trouble::Malformed)?;
    binary_round_trip(module, text)?;
    Ok(unit.module)
}

/// Through the binary form and a separate context: the text and the bytes must be the same.
fn binary_round_trip(module: &Module, text: &str) -> Result<(), Trouble> {
    let bytes = fenced("writing", || binary::write(module))?;
    let read = fenced("reading", || binary::read(&bytes, Context::new()))?;
    let read = read.map_err(|error| Trouble::Unreadable(error.to_string()))?;
    let second = fenced("printing", || show_module(&read).to_string())?;
    if text != second {
        return Err(Trouble::OtherText { second });
    }
    match fenced("writing", || binary::write(&read))? == bytes {
        true => Ok(()),
        false => Err(Trouble::OtherBytes),
    }
}
