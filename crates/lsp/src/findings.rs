//! Findings of the reader and the verifier as diagnostics of the protocol.

use brolga_ir::diag::{Diagnostic, Severity, Span};
use lsp_types::{
    DiagnosticRelatedInformation, DiagnosticSeverity, Location, NumberOrString, PublishDiagnosticsParams, Uri,
};

use crate::document::Analysis;
use crate::text::Places;

/// The diagnostics of a version of a document.
pub(crate) fn published(uri: &Uri, analysis: &Analysis) -> PublishDiagnosticsParams {
    let mut places = Places::new(&analysis.text);
    let mut diagnostics: Vec<_> =
        analysis.findings.iter().map(|finding| diagnostic(uri, &mut places, finding)).collect();
    if analysis.dropped > 0 {
        diagnostics.push(lsp_types::Diagnostic {
            range: places.range(Span::default()),
            severity: Some(DiagnosticSeverity::INFORMATION),
            source: Some("brolga".to_owned()),
            message: format!("{} more findings are not shown", analysis.dropped),
            ..Default::default()
        });
    }
    PublishDiagnosticsParams { uri: uri.clone(), diagnostics, version: Some(analysis.version) }
}

fn diagnostic(uri: &Uri, places: &mut Places<'_>, finding: &Diagnostic) -> lsp_types::Diagnostic {
    let mut message = finding.message.clone();
    if !finding.label.is_empty() {
        message.push_str(&format!(" ({})", finding.label));
    }
    finding.notes.iter().for_each(|note| message.push_str(&format!("\n{note}")));
    let related = finding.related.iter().map(|(span, text)| DiagnosticRelatedInformation {
        location: Location::new(uri.clone(), places.range(*span)),
        message: text.clone(),
    });
    let related: Vec<_> = related.collect();
    lsp_types::Diagnostic {
        range: places.range(finding.at),
        severity: Some(match finding.severity {
            Severity::Error => DiagnosticSeverity::ERROR,
            Severity::Warning => DiagnosticSeverity::WARNING,
        }),
        code: Some(NumberOrString::String(finding.code.to_owned())),
        source: Some("brolga".to_owned()),
        message,
        related_information: (!related.is_empty()).then_some(related),
        ..Default::default()
    }
}
