//! Where `print` writes.
//!
//! Writing never fails for the program: an error is kept for the embedder to ask for, and what follows it is dropped.

use std::io::{self, Write};
use std::sync::{Mutex, PoisonError};

/// Where printed text goes.
#[derive(Default)]
pub enum Output {
    /// The standard output of the process.
    #[default]
    Stdout,
    /// Memory; see [`Sink::take_captured`].
    Capture,
    /// The embedder's writer.
    Writer(Box<dyn Write + Send>),
}

/// The open output of a runtime.
pub struct Sink {
    state: Mutex<State>,
}

struct State {
    target: Target,
    error: Option<io::Error>,
}

enum Target {
    Stdout,
    Capture(Vec<u8>),
    Writer(Box<dyn Write + Send>),
}

impl Sink {
    pub(crate) fn new(output: Output) -> Sink {
        let target = match output {
            Output::Stdout => Target::Stdout,
            Output::Capture => Target::Capture(Vec::new()),
            Output::Writer(writer) => Target::Writer(writer),
        };
        Sink { state: Mutex::new(State { target, error: None }) }
    }

    /// Writes all bytes, or keeps the error.
    pub fn write(&self, bytes: &[u8]) {
        self.with(|target| match target {
            Target::Stdout => io::stdout().write_all(bytes),
            Target::Capture(text) => {
                text.extend_from_slice(bytes);
                Ok(())
            }
            Target::Writer(writer) => writer.write_all(bytes),
        });
    }

    /// Makes sure that everything has left the process.
    pub fn flush(&self) {
        self.with(|target| match target {
            Target::Stdout => io::stdout().flush(),
            Target::Capture(_) => Ok(()),
            Target::Writer(writer) => writer.flush(),
        });
    }

    /// What was captured since the last time; nothing unless the output is [`Output::Capture`].
    pub fn take_captured(&self) -> Vec<u8> {
        match &mut self.lock().target {
            Target::Capture(text) => std::mem::take(text),
            Target::Stdout | Target::Writer(_) => Vec::new(),
        }
    }

    /// The first error since the last time this was asked. Output after an error is dropped until then.
    pub fn take_error(&self) -> Option<io::Error> {
        self.lock().error.take()
    }

    fn with(&self, act: impl FnOnce(&mut Target) -> io::Result<()>) {
        let mut state = self.lock();
        if state.error.is_none() {
            state.error = act(&mut state.target).err();
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        // A writer that panicked left nothing of ours half done.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_kept_and_silences_what_follows() {
        struct Full;
        impl Write for Full {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::ErrorKind::StorageFull.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let sink = Sink::new(Output::Writer(Box::new(Full)));
        sink.write(b"x");
        sink.flush();
        assert_eq!(sink.take_error().map(|e| e.kind()), Some(io::ErrorKind::StorageFull));
        assert!(sink.take_error().is_none());
    }
}
