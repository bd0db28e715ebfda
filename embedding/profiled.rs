//! A program for profilers and debuggers to look at: a loop that runs for a while, with the requested listener.
//!
//! ```text
//! $ cargo run --release --example profiled -- map        perf-PID.map, for `perf report`
//! $ cargo run --release --example profiled -- dump       jit-PID.dump, for `perf inject --jit`
//! $ cargo run --release --example profiled -- gdb        names and lines for gdb
//! ```
//!
//! The guide (`docs/guide/src/see.md`) has the commands around it.

use std::error::Error;
use std::path::Path;
use std::sync::Arc;

#[cfg(feature = "gdb")]
use brolga::observe::{CodeListener, GdbInterface, JitDump, PerfMap};
use brolga::options::Mapping;
use brolga::{Engine, Options, Program};

/// The file of the program; its lines are those that tools show.
const FILE: &str = "embedding/profiled.jlir";
const PROGRAM: &str = include_str!("profiled.jlir");

/// The listener of a name, which writes its file to a folder.
fn listener(name: &str, folder: &Path) -> Result<Arc<dyn CodeListener>, Box<dyn Error>> {
    Ok(match name {
        "map" => Arc::new(PerfMap::create_in(folder)?),
        "dump" => Arc::new(JitDump::create_in(folder, FILE)?),
        #[cfg(feature = "gdb")]
        "gdb" => Arc::new(GdbInterface::new(1, FILE)),
        _ => return Err(format!("`{name}` is no listener: map, dump or gdb").into()),
    })
}

/// Compiles the program for a listener, and runs its loop so often.
fn run(listener: Arc<dyn CodeListener>, rounds: i64) -> Result<i64, Box<dyn Error>> {
    // Maps of symbols and breakpoints of debuggers need private pages.
    let engine = Engine::new(Options::new().code_mapping(Mapping::Private))?;
    engine.listen(listener);
    let unit = engine.compile(&Program::read(FILE, PROGRAM.as_bytes())?)?;
    Ok(unit.func::<(i64,), i64>("run")?.call((rounds,))?)
}

fn main() -> Result<(), Box<dyn Error>> {
    let name = std::env::args().nth(1).unwrap_or_else(|| "map".to_owned());
    let folder = if name == "map" { Path::new("/tmp") } else { Path::new(".") };
    println!("{}", run(listener(&name, folder)?, 400_000_000)?);
    Ok(())
}
