//! The destination of `print`.
//!
//! Writing never fails for the program: an error is kept for the embedder to query, and the output after it
//! is dropped. The same happens when more text is buffered in memory than
//! [`RuntimeOptions::output_limit`](crate::RuntimeOptions::output_limit): captured text that is not taken, or
//! text for a writer that another thread is using.
//!
//! The embedder's writer is called inside a fence and without a lock: a panic counts as an error, as does
//! output of the writer to its own runtime. Meanwhile the thread that uses the writer also writes the output
//! of other threads, in order.
//!
//! Not done: back pressure on threads that print faster than the writer writes. At the limit their output is an error.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::{Mutex, PoisonError};
use std::thread::ThreadId;

use crate::c_functions;
use crate::fence::fenced;

/// Where printed text is written.
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

/// The maximum number of bytes of text buffered in memory, unless set by the options.
pub(crate) const OUTPUT_LIMIT: usize = 256 << 20;

/// The open output of a runtime.
pub struct Sink {
    state: Mutex<State>,
    limit: usize,
}

struct State {
    target: Target,
    error: Option<io::Error>,
}

enum Target {
    Stdout,
    Capture(Vec<u8>),
    Writer(Writer),
}

struct Writer {
    /// `None` while a thread uses it.
    idle: Option<Box<dyn Write + Send>>,
    /// The thread that uses it.
    user: Option<ThreadId>,
    /// The queued jobs.
    jobs: VecDeque<Job>,
    /// The bytes of their texts.
    waiting: usize,
}

enum Job {
    Write(Vec<u8>),
    Flush,
}

impl Sink {
    pub(crate) fn new(output: Output, limit: usize) -> Sink {
        let target = match output {
            Output::Stdout => Target::Stdout,
            Output::Capture => Target::Capture(Vec::new()),
            Output::Writer(writer) => {
                Target::Writer(Writer { idle: Some(writer), user: None, jobs: VecDeque::new(), waiting: 0 })
            }
        };
        Sink { state: Mutex::new(State { target, error: None }), limit }
    }

    /// Writes all bytes, or records the error. If another thread is using the embedder's writer, that thread
    /// writes them.
    pub fn write(&self, bytes: &[u8]) {
        let mut state = self.lock();
        if state.error.is_some() {
            return;
        }
        match &mut state.target {
            Target::Stdout => state.error = io::stdout().write_all(bytes).err(),
            Target::Capture(text) => state.error = self.append(text, text.len(), bytes).err(),
            Target::Writer(writer) => {
                let mut job = Vec::new();
                match self.append(&mut job, writer.waiting, bytes) {
                    Ok(()) => {
                        drop(state);
                        self.work(Job::Write(job));
                    }
                    Err(error) => state.error = Some(error),
                }
            }
        }
    }

    /// Appends to a text, if `waiting` bytes and these stay within the limit.
    fn append(&self, text: &mut Vec<u8>, waiting: usize, bytes: &[u8]) -> io::Result<()> {
        if bytes.len() > self.limit.saturating_sub(waiting) {
            let limit = self.limit;
            let text = format!("more than {limit} bytes of output wait in memory (`Options::output_limit`)");
            return Err(io::Error::new(io::ErrorKind::StorageFull, text));
        }
        text.try_reserve(bytes.len()).map_err(|_| io::ErrorKind::OutOfMemory)?;
        text.extend_from_slice(bytes);
        Ok(())
    }

    /// Ensures that everything has left the process, including the text of C functions, or will have left it
    /// when the thread that uses the embedder's writer has caught up.
    pub fn flush(&self) {
        let mut state = self.lock();
        if state.error.is_some() {
            return;
        }
        match &mut state.target {
            Target::Stdout => {
                state.error = io::stdout().flush().and_then(|()| c_functions::flush_output()).err();
            }
            Target::Capture(_) => {}
            Target::Writer(_) => {
                drop(state);
                self.work(Job::Flush);
            }
        }
    }

    /// The output captured since the last call; empty unless the output is [`Output::Capture`].
    pub fn take_captured(&self) -> Vec<u8> {
        match &mut self.lock().target {
            Target::Capture(text) => std::mem::take(text),
            Target::Stdout | Target::Writer(_) => Vec::new(),
        }
    }

    /// The first error since the last call. Output after an error is dropped until then.
    pub fn take_error(&self) -> Option<io::Error> {
        self.lock().error.take()
    }

    /// Runs a job on the embedder's writer, and jobs queued meanwhile, unless another thread is using the
    /// writer and will run it.
    fn work(&self, job: Job) {
        let here = std::thread::current().id();
        let mut state = self.lock();
        let Target::Writer(writer) = &mut state.target else { return };
        if writer.user == Some(here) {
            // It would write forever.
            state.error = Some(io::Error::other("a writer prints to the runtime that prints to it"));
            return;
        }
        if let Job::Write(bytes) = &job {
            writer.waiting += bytes.len();
        }
        writer.jobs.push_back(job);
        let Some(mut out) = writer.idle.take() else { return };
        writer.user = Some(here);
        while let Some(job) = state.next() {
            drop(state);
            let done = fenced(|| match job {
                Job::Write(bytes) => out.write_all(&bytes),
                Job::Flush => out.flush(),
            });
            let done = done.unwrap_or_else(|text| {
                Err(io::Error::other(format!("the writer of the output panicked: {text}")))
            });
            state = self.lock();
            if state.error.is_none() {
                state.error = done.err();
            }
        }
        if let Target::Writer(writer) = &mut state.target {
            (writer.idle, writer.user) = (Some(out), None);
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        // No foreign code runs under the lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// The writer's next job; after an error, `None`.
    fn next(&mut self) -> Option<Job> {
        let Target::Writer(writer) = &mut self.target else { return None };
        if self.error.is_some() {
            writer.jobs.clear();
            writer.waiting = 0;
        }
        let job = writer.jobs.pop_front();
        if let Some(Job::Write(bytes)) = &job {
            writer.waiting -= bytes.len();
        }
        job
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;
    use std::sync::{Arc, OnceLock};

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
        let sink = Sink::new(Output::Writer(Box::new(Full)), OUTPUT_LIMIT);
        sink.write(b"x");
        sink.flush();
        assert_eq!(sink.take_error().map(|e| e.kind()), Some(io::ErrorKind::StorageFull));
        assert!(sink.take_error().is_none());
    }

    type Act = dyn FnMut(&[u8]) -> io::Result<usize> + Send;

    struct Acting(Box<Act>);

    impl Write for Acting {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            (self.0)(bytes)
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn sink(act: impl FnMut(&[u8]) -> io::Result<usize> + Send + 'static) -> Sink {
        Sink::new(Output::Writer(Box::new(Acting(Box::new(act)))), OUTPUT_LIMIT)
    }

    /// Captured text, and text for a writer that is in use: another thread prints here meanwhile.
    #[test]
    fn text_that_waits_in_memory_is_bounded() {
        let sink = Sink::new(Output::Capture, 5);
        sink.write(b"123");
        sink.write(b"456");
        assert_eq!(sink.take_error().map(|error| error.kind()), Some(io::ErrorKind::StorageFull));
        sink.write(b"45");
        assert_eq!(sink.take_captured(), b"12345");
        let shared: Arc<OnceLock<Sink>> = Arc::default();
        let other = shared.clone();
        let act = move |bytes: &[u8]| {
            let written = other.clone();
            let print = move || written.get().map(|sink| (sink.write(b"1234"), sink.write(b"5678")));
            std::thread::spawn(print).join().expect("no panic");
            Ok(bytes.len())
        };
        let writer = Output::Writer(Box::new(Acting(Box::new(act))));
        assert!(shared.set(Sink::new(writer, 5)).is_ok());
        let sink = shared.get().expect("it was set");
        sink.write(b"ab");
        assert_eq!(sink.take_error().map(|error| error.kind()), Some(io::ErrorKind::StorageFull));
    }

    #[test]
    fn writers_that_panic_or_claim_too_much_are_errors() {
        let panics = sink(|_| std::panic::resume_unwind(Box::new("no")));
        panics.write(b"x");
        let error = panics.take_error().map(|error| error.to_string());
        assert_eq!(error.as_deref(), Some("the writer of the output panicked: no"));
        let claims = sink(|bytes| Ok(bytes.len() + 5));
        claims.write(b"x");
        assert!(claims.take_error().is_some());
        claims.write(b"x");
        assert!(claims.take_error().is_some(), "the writer is there again");
    }

    #[test]
    fn a_writer_that_prints_to_itself_ends() {
        let place = Arc::new(OnceLock::<Sink>::new());
        let inside = place.clone();
        let own = sink(move |bytes| {
            if let Some(own) = inside.get() {
                own.write(b"again");
            }
            Ok(bytes.len())
        });
        let own = place.get_or_init(|| own);
        own.write(b"x");
        assert!(own.take_error().is_some());
    }

    #[test]
    fn output_during_a_write_is_written_in_order() {
        let (begun, has_begun) = channel();
        let (go_on, wait) = channel();
        let (written, all) = channel();
        let slow = sink(move |bytes| {
            begun.send(()).unwrap();
            wait.recv().unwrap();
            written.send(bytes.to_vec()).unwrap();
            Ok(bytes.len())
        });
        std::thread::scope(|threads| {
            threads.spawn(|| slow.write(b"1"));
            has_begun.recv().unwrap();
            // Returns although the writer is blocked.
            slow.write(b"2");
            slow.write(b"3");
            (0..3).for_each(|_| go_on.send(()).unwrap());
        });
        assert_eq!(all.try_iter().collect::<Vec<_>>(), [b"1", b"2", b"3"]);
    }
}
