//! The commands of lenses: a call, and the explorer's page.
//!
//! The reference interpreter makes calls, with limits on statements and on the heap, because an unfinished
//! program may do anything: it runs in the editor's server and must not crash it. Its output is part of the
//! answer.

use std::fs;
use std::path::PathBuf;

use brolga_engine::Program;
use brolga_explore as explore;
use brolga_interp::{Interp, Options, Output, SimMemory};
use std::sync::{Arc, Mutex, PoisonError};
use tempfile::TempDir;

use crate::document::Analysis;

/// The command that makes a call. Its arguments are the URI of a document, and a call in the form used in
/// tests.
pub const RUN: &str = "brolga.run";

/// The command that writes the explorer's page of a document. Its argument is the document's URI.
pub const EXPLORE: &str = "brolga.explore";

/// The maximum number of statements of a call: about three seconds.
pub const DEFAULT_STEPS: u64 = 20_000_000;

/// The maximum bytes of a call's objects.
const HEAP: u64 = 256 << 20;

/// The maximum bytes kept of a call's output.
const OUTPUT: usize = 64 << 10;

/// The outcome of a call.
pub(crate) struct Ran {
    /// The value, or the reason why there is none.
    pub(crate) value: Result<String, String>,
    /// The output of the call.
    pub(crate) output: String,
}

/// Keeps the beginning of the output.
struct Kept(Arc<Mutex<Vec<u8>>>);

impl Output for Kept {
    fn write(&mut self, bytes: &[u8]) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let room = OUTPUT.saturating_sub(kept.len());
        kept.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }
}

/// Makes a call of a program.
pub(crate) fn run(analysis: &Analysis, call: &str, steps: u64) -> Ran {
    let kept = Arc::new(Mutex::new(Vec::new()));
    let value = match &analysis.program {
        Some(program) => value(program, call, steps, Kept(kept.clone())),
        None => Err("the program has errors".to_owned()),
    };
    let bytes = std::mem::take(&mut *kept.lock().unwrap_or_else(PoisonError::into_inner));
    Ran { value, output: String::from_utf8_lossy(&bytes).into_owned() }
}

fn value(program: &Program, call: &str, steps: u64, output: Kept) -> Result<String, String> {
    let call = program.call(call).map_err(|error| error.to_string())?;
    let options = Options { max_steps: steps, max_heap_bytes: HEAP, ..Options::default() };
    let mut interp = Interp::new(program.module(), options, Box::new(SimMemory::default()));
    interp.set_output(Box::new(output));
    match interp.run_call(&call) {
        Ok(value) => interp.show(&value).map_err(|outcome| interp.describe(&outcome)),
        Err(outcome) => Err(interp.describe(&outcome)),
    }
}

/// The folder for pages, which is removed when the server ends.
#[derive(Default)]
pub(crate) struct Pages {
    folder: Option<TempDir>,
    count: usize,
}

impl Pages {
    /// The path of the next page.
    ///
    /// # Errors
    /// The folder cannot be created; the text has the reason.
    pub(crate) fn next(&mut self) -> Result<PathBuf, String> {
        let folder = match &mut self.folder {
            Some(folder) => folder,
            none => none.insert(TempDir::with_prefix("brolga-").map_err(|error| error.to_string())?),
        };
        self.count += 1;
        Ok(folder.path().join(format!("explore-{}.html", self.count)))
    }
}

/// Writes the explorer's page of a program.
///
/// # Errors
/// There is no program, or no page; the text has the reason.
pub(crate) fn page(analysis: &Analysis, path: PathBuf) -> Result<PathBuf, String> {
    let Some(program) = &analysis.program else { return Err("the program has errors".to_owned()) };
    let page = explore::page(program, &explore::Options::default()).map_err(|error| error.to_string())?;
    fs::write(&path, page).map_err(|error| format!("cannot write `{}`: {error}", path.display()))?;
    Ok(path)
}
