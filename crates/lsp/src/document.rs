//! A document of the client, and the analysis of one version of it.
//!
//! ```text
//! text ──► syntax tree ──► names ─────────────────────────► Analysis
//!      └─► Program::read ──► program, or findings ────────►
//! ```
//!
//! An analysis is computed once per version and never changes, so threads share it. Its findings come from
//! the reader; if there are none, from the verifier; if there are none there either, calls of missing methods
//! are warnings.
//!
//! A panic of the compiler is also a finding, and the document then has no program.

use std::any::Any;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};

use brolga_engine::{Error, Program};
use brolga_explore::{Fates, fates};
use brolga_ir::diag::{Diagnostic, Severity, SourceFile, Span};
use brolga_ir::{Context, FuncId};
use brolga_opt::OptLevel;

use crate::index::Index;
use crate::text::Text;

/// A document that the client has open.
pub(crate) struct Document {
    pub(crate) version: i32,
    pub(crate) text: Text,
    analysis: Option<Arc<Analysis>>,
}

impl Document {
    pub(crate) fn new(version: i32, text: Text) -> Document {
        Document { version, text, analysis: None }
    }

    /// Replaces the text by another version.
    pub(crate) fn change(&mut self, version: i32, text: Text) {
        *self = Document::new(version, text);
    }

    /// Whether this version has not been analysed yet.
    pub(crate) fn is_new(&self) -> bool {
        self.analysis.is_none()
    }

    /// The analysis of this version.
    pub(crate) fn analysis(&mut self, name: &str) -> Arc<Analysis> {
        let (version, text) = (self.version, &self.text);
        let made = self.analysis.get_or_insert_with(|| Arc::new(Analysis::of(name, version, text)));
        made.clone()
    }
}

type FatesOrReason = Arc<Result<Fates, String>>;

/// A version of a document, read and verified.
pub(crate) struct Analysis {
    pub(crate) name: String,
    pub(crate) version: i32,
    pub(crate) text: Text,
    pub(crate) index: Index,
    /// The program, if there are no errors. Its functions have the same numbers as in the index.
    pub(crate) program: Option<Program>,
    pub(crate) findings: Vec<Diagnostic>,
    /// The number of findings beyond the limit of the reader or the verifier.
    pub(crate) dropped: usize,
    /// The fates of the rows of the functions for which they were requested.
    fates: Mutex<BTreeMap<u32, FatesOrReason>>,
}

impl Analysis {
    pub(crate) fn of(name: &str, version: i32, text: &Text) -> Analysis {
        let mut analysis = Analysis {
            name: name.to_owned(),
            version,
            text: text.clone(),
            index: Index::default(),
            program: None,
            findings: Vec::new(),
            dropped: 0,
            fates: Mutex::default(),
        };
        let Ok(source) = SourceFile::new(name, text.as_str()) else { return analysis };
        if let Err(reason) = fenced(|| analysis.read(&source)) {
            analysis.program = None;
            analysis.findings.push(finding(Severity::Error, "bug", reason));
        }
        analysis
    }

    fn read(&mut self, source: &SourceFile) {
        let (file, _) = brolga_ir::text::parse(source);
        self.index = Index::of(source.text(), &file);
        drop(file);
        let (_, found) = brolga_ir::text::read(source, &Context::new());
        self.findings.extend(found.iter().cloned());
        self.dropped = found.dropped();
        if found.has_errors() {
            return;
        }
        match Program::read(source.name(), source.text().as_bytes()) {
            Ok(program) => {
                if let Err(error) = program.check_complete(|_| true) {
                    self.take(error, Severity::Warning);
                }
                self.program = Some(program);
            }
            Err(error) => self.take(error, Severity::Error),
        }
    }

    /// Adds the findings of an error, with at most this severity.
    fn take(&mut self, error: Error, severity: Severity) {
        match error {
            Error::Broken(broken) => {
                let found = broken.findings.iter().filter(|finding| finding.severity == Severity::Error);
                self.findings.extend(found.map(|found| Diagnostic { severity, ..found.clone() }));
                self.dropped += broken.findings.dropped();
            }
            other => self.findings.push(finding(severity, "program", other.to_string())),
        }
    }

    /// The function of the program with this number in the index.
    pub(crate) fn func(&self, function: u32) -> Option<(FuncId, &brolga_ir::Func)> {
        let id = FuncId::from_u32(function);
        Some((id, self.program.as_ref()?.module().func(id)?))
    }

    /// The fates of a function's rows in the optimiser.
    pub(crate) fn fates(&self, function: u32) -> FatesOrReason {
        let known = |fates: &BTreeMap<u32, FatesOrReason>| fates.get(&function).cloned();
        if let Some(fates) = known(&self.fates.lock().unwrap_or_else(PoisonError::into_inner)) {
            return fates;
        }
        let made = match (self.program.as_ref(), self.func(function)) {
            (Some(program), Some((id, _))) => match fenced(|| fates(program.module(), id, OptLevel::O2)) {
                Ok(Ok(fates)) => Ok(fates),
                Ok(Err(error)) => Err(error.to_string()),
                Err(reason) => Err(reason),
            },
            _ => Err("the program has errors".to_owned()),
        };
        let made = Arc::new(made);
        self.fates.lock().unwrap_or_else(PoisonError::into_inner).insert(function, made.clone());
        made
    }
}

fn finding(severity: Severity, code: &'static str, message: String) -> Diagnostic {
    Diagnostic {
        severity,
        code,
        message,
        at: Span::default(),
        label: String::new(),
        related: Vec::new(),
        notes: Vec::new(),
    }
}

/// Runs a part of the compiler. A panic in it is returned as a message.
pub(crate) fn fenced<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    // State changed by the closure is discarded, or only shown to the user.
    catch_unwind(AssertUnwindSafe(work))
        .map_err(|panic| format!("this is a bug in Brolga: {}", said(&*panic)))
}

fn said(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("it does not say why")
}
