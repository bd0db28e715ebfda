//! Dumps in Julia's format: read, or refused by name.

use super::damage::check_findings;
use super::round_trip::round_trip;
use super::{Failure, Reading, Trouble, fenced};
use brolga_ir::Context;
use brolga_ir::diag::{Diagnostic, Severity, SourceFile, Style};
use brolga_ir::text;
use brolga_ir::verify::verify_module;

/// Reads a dump. An error has to name the refused construct, because Julia never prints syntax errors. A
/// module that was read and verifies is printed, read again and printed: the text must be the same.
pub fn check_printed(seed: u64, dump: &str) -> Result<Reading, Box<Failure>> {
    checked(dump).map_err(|trouble| Box::new(Failure { seed, text: dump.to_owned(), trouble }))
}

fn checked(dump: &str) -> Result<Reading, Trouble> {
    let source = SourceFile::new("dump", dump).map_err(|error| Trouble::Unreadable(error.to_string()))?;
    let (unit, findings) = fenced("reading", || text::read(&source, &Context::new()))?;
    check_findings(&source, &findings)?;
    let faults = || findings.iter().filter(|finding| finding.severity == Severity::Error);
    if let Some(fault) = faults().find(|fault| !is_named(fault)) {
        return Err(Trouble::NotNamed(fault.render(&source, &Style::PLAIN)));
    }
    if faults().next().is_some() || fenced("verifying", || verify_module(&unit.module))?.is_err() {
        return Ok(Reading::Refused);
    }
    round_trip(&unit.module, &mut String::new())?;
    Ok(Reading::Accepted)
}

/// Whether an error names the refused construct; "this is not a type" does not.
fn is_named(fault: &Diagnostic) -> bool {
    !fault.code.starts_with("syntax") && !fault.message.starts_with("this is not a")
}
