//! Inputs from a pipe or a file: no editor, no history, and the status tells whether there was an error.

use std::io::{self, BufRead, Write};

use crate::language::{Foreign, Language};
use crate::options::{Ended, Options};
use crate::prompt::start;
use crate::shell::{Reply, Shell};

/// Processes inputs until the end of `input`. Results go to `out`, errors to `err`; an error does not end the
/// processing.
///
/// # Errors
/// The input cannot be read, or the output cannot be written.
pub fn run(
    options: &Options,
    input: &mut dyn BufRead,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<io::Result<Ended>, brolga_engine::Error> {
    start(options, |prompt, loaded| converse(prompt, loaded, input, out, err))
}

/// Like [`run`], in another language.
///
/// # Errors
/// The input cannot be read, or the output cannot be written.
pub fn run_in(
    language: &mut dyn Language,
    options: &Options,
    input: &mut dyn BufRead,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> io::Result<Ended> {
    let (mut prompt, loaded) = Foreign::new(language, options);
    converse(&mut prompt, loaded, input, out, err)
}

fn converse(
    prompt: &mut dyn Shell,
    loaded: Vec<Reply>,
    input: &mut dyn BufRead,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> io::Result<Ended> {
    let is_complete = prompt.is_complete();
    let mut ended = Ended::Well;
    for reply in loaded {
        if let Reply::Failed(text) = reply {
            writeln!(err, "{text}")?;
            ended = Ended::WithErrors;
        }
    }
    let mut text = String::new();
    loop {
        let mut bytes = Vec::new();
        let is_end = input.read_until(b'\n', &mut bytes)? == 0;
        let line = String::from_utf8_lossy(&bytes);
        let is_blank = line.trim().is_empty();
        text.push_str(&line);
        if !is_end && !is_blank && !is_complete(&text) {
            continue;
        }
        let whole = std::mem::take(&mut text);
        match prompt.submit(&whole) {
            Reply::Nothing => {}
            Reply::Shown(text) => writeln!(out, "{text}")?,
            Reply::Failed(text) => {
                out.flush()?;
                writeln!(err, "{text}")?;
                ended = Ended::WithErrors;
            }
            Reply::Quit => break,
        }
        out.flush()?;
        if let Some(error) = prompt.session().runtime().sink().take_error() {
            return Err(error);
        }
        if is_end {
            break;
        }
    }
    Ok(ended)
}
