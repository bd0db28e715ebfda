//! The map of symbols that `perf report` reads: `/tmp/perf-PID.map`, one line for each function.
//!
//! ```text
//!   7f12a4001040 5c fib(Int64)          start and size in hexadecimal, name up to the end of the line
//! ```
//!
//! The format has no removal. When bytes are reused, the file has two lines for them, and a profile of the time before
//! may show the later name; [`JitDump`](crate::JitDump) has times.
//!
//! Cost: one write for each unit. After a write has failed nothing more is written ([`PerfMap::error`]).

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use brolga_files::fresh;

use crate::debug::code_map::{CodeListener, CodeUnit};

/// Writes a map of symbols for `perf`.
#[derive(Debug)]
pub struct PerfMap {
    path: PathBuf,
    file: Mutex<Result<File, io::Error>>,
}

impl PerfMap {
    /// A new map where `perf` looks for it.
    pub fn create() -> io::Result<PerfMap> {
        PerfMap::create_in(Path::new("/tmp"))
    }

    /// A new map in a directory, named after this process, replacing any file of that name: anybody may write to `/tmp`.
    pub fn create_in(directory: &Path) -> io::Result<PerfMap> {
        let path = directory.join(format!("perf-{}.map", std::process::id()));
        let file = Mutex::new(Ok(fresh(&path)?));
        Ok(PerfMap { path, file })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The error that ended writing.
    pub fn error(&self) -> Option<String> {
        let file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.as_ref().err().map(io::Error::to_string)
    }
}

impl CodeListener for PerfMap {
    fn loaded(&self, unit: &Arc<CodeUnit>) {
        let mut lines = String::new();
        for function in unit.functions() {
            let name = function.name().replace(['\n', '\r', '\0'], " ");
            // Writing to a string does not fail.
            let _ = writeln!(lines, "{:x} {:x} {name}", function.address(), function.size());
        }
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        if let Ok(open) = &mut *file
            && let Err(error) = open.write_all(lines.as_bytes())
        {
            *file = Err(error);
        }
    }

    fn freed(&self, _: &Arc<CodeUnit>) {}
}
