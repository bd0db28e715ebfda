//! `brolga fmt FILES…`: rewrites programs in the normal form of the text.

use std::fs;
use std::io::Write as _;

use brolga::format;
use brolga::unstable::read_unit;

use super::report::{Stop, err, out};
use super::{Done, input};

/// Rewrites programs in the normal form of the text.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "A dump of Julia's typed IR becomes the text form. A comment inside a function has no place in the \
                        normal form; a file that has one is left as it is, and the comment is shown."
)]
pub(crate) struct Args {
    /// The programs; `-` reads the standard input and prints the result
    #[arg(required = true)]
    files: Vec<String>,
    /// Change nothing; name the files that are not in normal form and end with status 1
    #[arg(long)]
    check: bool,
}

pub(crate) fn run(args: &Args) -> Done {
    let mut differing = false;
    for file in &args.files {
        let (name, bytes) = input::bytes(file)?;
        let (source, unit) = read_unit(name, &bytes)?;
        let formatted = format(&source, &unit)?;
        let differs = formatted.as_bytes() != bytes;
        if args.check {
            differing |= differs;
            if differs {
                err(format_args!("{name} is not in normal form"));
            }
        } else if file == input::STDIN {
            out(formatted.trim_end())?;
        } else if differs {
            replace(file, &formatted)?;
        }
    }
    if differing { Err(Stop::Failed) } else { Ok(()) }
}

/// Writes a file beside the old one and renames it, so no reader ever sees half of it.
fn replace(path: &str, text: &str) -> Done {
    let cannot = |error| Stop::System(format!("cannot write `{path}`: {error}"));
    let temporary = format!("{path}.{}.tmp", std::process::id());
    let written =
        brolga_files::fresh(temporary.as_ref()).and_then(|mut file| file.write_all(text.as_bytes()));
    written.and_then(|()| fs::rename(&temporary, path)).map_err(cannot)
}
