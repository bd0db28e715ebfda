//! Reading the inputs of the command line: files, or the standard input for `-`.

use std::io::Read;
use std::{fs, io};

use brolga::Program;

use super::report::Stop;

/// The argument that means the standard input.
pub(crate) const STDIN: &str = "-";

/// The bytes of an input and the name that messages call it by.
pub(crate) fn bytes(path: &str) -> Result<(&str, Vec<u8>), Stop> {
    if path == STDIN {
        let mut bytes = Vec::new();
        io::stdin().lock().read_to_end(&mut bytes)?;
        return Ok(("<stdin>", bytes));
    }
    match fs::read(path) {
        Ok(bytes) => Ok((path, bytes)),
        Err(error) => Err(Stop::System(format!("cannot read `{path}`: {error}"))),
    }
}

/// A verified program.
pub(crate) fn program(path: &str) -> Result<Program, Stop> {
    let (name, bytes) = bytes(path)?;
    Ok(Program::read(name, &bytes)?)
}
