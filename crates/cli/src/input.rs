//! Reading the inputs of the command line: files, or the standard input for `-`.

use std::io;
use std::path::Path;

use brolga::Program;
use brolga_files::{FileError, Kind, Links, MOST_TEXT, read, read_at_most};

use super::report::Stop;

/// The argument that means the standard input.
pub(crate) const STDIN: &str = "-";

/// The bytes of an input and the name that messages call it by.
pub(crate) fn bytes(path: &str) -> Result<(&str, Vec<u8>), Stop> {
    let (name, read) = match path {
        STDIN => ("<stdin>", read_at_most(io::stdin().lock(), 0, MOST_TEXT)),
        path => (path, read(Path::new(path), Links::Followed, MOST_TEXT)),
    };
    match read {
        Ok(bytes) => Ok((name, bytes)),
        Err(error @ FileError::Unusual { found: Kind::Fifo | Kind::Device, .. }) => {
            let text = format!(
                "cannot read `{name}`: {error}; a program from elsewhere is read by `-` from the standard input"
            );
            Err(Stop::System(text))
        }
        Err(error) => Err(Stop::System(format!("cannot read `{name}`: {error}"))),
    }
}

/// A verified program.
pub(crate) fn program(path: &str) -> Result<Program, Stop> {
    let (name, bytes) = bytes(path)?;
    Ok(Program::read(name, &bytes)?)
}
