//! What is printed reads back as what it was.

use super::{Failure, Trouble, fenced, verify};
use brolga_ir::Module;
use brolga_ir::diag::{SourceFile, Style};
use brolga_ir::text::{read, show_module};

/// Verifies a module, prints it, reads the text, and prints that again: the same text. Gives the module that was read, which must
/// also mean the same; it has the context of the first.
pub fn check_round_trip(seed: u64, module: &Module) -> Result<Module, Box<Failure>> {
    let mut text = String::new();
    let again = round_trip(module, &mut text);
    again.map_err(|trouble| Box::new(Failure { seed, text, trouble }))
}

fn round_trip(module: &Module, text: &mut String) -> Result<Module, Trouble> {
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
    Ok(unit.module)
}
