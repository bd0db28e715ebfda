//! Damaged inputs: whatever is read, the answer is a module or errors with places.

use super::{Failure, Trouble, fenced};
use brolga_ir::Context;
use brolga_ir::diag::{Diagnostics, SourceFile, Style};
use brolga_ir::text;

/// Reads bytes that should be a text of IR. True if they are.
pub fn check_text(seed: u64, bytes: &[u8]) -> Result<bool, Failure> {
    read_text(bytes).map_err(|trouble| {
        let text = String::from_utf8_lossy(bytes).into_owned();
        Failure { seed, text, trouble }
    })
}

fn read_text(bytes: &[u8]) -> Result<bool, Trouble> {
    let source = match fenced("making a source", || text::from_bytes("input", bytes))? {
        Ok(source) => source,
        Err(not_text) => {
            if let text::NotText::InvalidUtf8 { source, diagnostic } = &*not_text {
                let mut findings = Diagnostics::default();
                findings.push(diagnostic.clone());
                check_findings(source, &findings)?;
            }
            return Ok(false);
        }
    };
    let (_unit, findings) = fenced("reading", || text::read(&source, &Context::new()))?;
    check_findings(&source, &findings)?;
    Ok(!findings.has_errors())
}

/// Every finding points into the input, says something, and can be shown.
fn check_findings(source: &SourceFile, findings: &Diagnostics) -> Result<(), Trouble> {
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
