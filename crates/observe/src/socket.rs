//! A socket through which another process of the same user inspects a session: [`serve`] opens it,
//! [`Watcher`] sends requests.
//!
//! ```text
//! brolga top ── "snapshot\n" ──►  thread of the connection ── Session::stats, functions ──► one line of JSON, a Snapshot
//! ```
//!
//! **Permissions.** The socket is created in a new folder that only the user can enter, is set to mode 0600
//! there, and is then linked to its path: other users can never connect. An existing file at the path is
//! kept, unless it is a socket without a listener.
//!
//! **Requests.** The only request is for a snapshot. A malformed request is answered with an error; one
//! longer than [`MAX_REQUEST`] ends the connection. There are at most [`MAX_CLIENTS`] connections.
//!
//! **The end.** Dropping [`Served`] removes the file and releases the session; connections end at their next request.
//!
//! Cost: a waiting thread, and one for each connection; a snapshot visits all functions of the session.
//!
//! Not done: systems other than Unix.

use std::fs::{self, DirBuilder, Permissions};
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use brolga_engine::Session;

use crate::live::Live;
use crate::snapshot::Snapshot;

/// The maximum number of concurrent connections.
pub const MAX_CLIENTS: usize = 16;

/// The maximum size of a request in bytes.
pub const MAX_REQUEST: u64 = 256;

/// The maximum size of an answer in bytes.
const MAX_ANSWER: u64 = 256 << 20;

/// The only request.
const REQUEST: &str = "snapshot";

/// The time for which a client waits for an answer.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The maximum number of names tried for the folder.
const TRIES: u32 = 64;

/// The state of an open socket.
struct State {
    /// `None` after it was closed.
    session: Option<Session>,
    clients: usize,
}

struct Shared {
    state: Mutex<State>,
    live: Option<Arc<Live>>,
    since: Instant,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An open socket, until it is dropped.
#[must_use = "the socket is closed when this is dropped"]
pub struct Served {
    shared: Arc<Shared>,
    path: PathBuf,
}

impl Served {
    /// The path of the socket.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // Dropping a session may run its finalisers, which must not happen under the lock.
        let session = self.shared.lock().session.take();
        drop(session);
        // The accepting thread checks the state at each connection.
        let _woken = UnixStream::connect(&self.path);
        let _gone = fs::remove_file(&self.path);
    }
}

impl std::fmt::Debug for Served {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Served").field("path", &self.path).finish_non_exhaustive()
    }
}

/// Serves a session to processes of this user, through a socket at `path`. Compile times and the queue are
/// available if the [events](brolga_runtime::events) of its run time have no other listener; earlier
/// compilations are not included.
///
/// # Errors
/// There is a file at the path that is not a socket, or is a socket with a listener; or the system refuses.
pub fn serve(session: &Session, path: impl AsRef<Path>) -> io::Result<Served> {
    let live = Arc::new(Live::new());
    let live = session.runtime().events().listen(live.clone()).then_some(live);
    serve_with(session, live, path)
}

/// Like [`serve`], with a listener that is already registered with the session's run time.
///
/// # Errors
/// Like [`serve`].
pub fn serve_with(session: &Session, live: Option<Arc<Live>>, path: impl AsRef<Path>) -> io::Result<Served> {
    let path = path.as_ref();
    let listener = bind(path)?;
    let state = Mutex::new(State { session: Some(session.clone()), clients: 0 });
    let shared = Arc::new(Shared { state, live, since: Instant::now() });
    let served = Served { shared: shared.clone(), path: path.to_owned() };
    thread::Builder::new().name("brolga top".to_owned()).spawn(move || accept(&listener, &shared))?;
    Ok(served)
}

/// A listening socket at this path, with mode 0600.
fn bind(path: &Path) -> io::Result<UnixListener> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let folder = private_folder(parent)?;
    let made = bind_in(&folder, path);
    let _gone = fs::remove_dir_all(&folder);
    made
}

fn bind_in(folder: &Path, path: &Path) -> io::Result<UnixListener> {
    let hidden = folder.join("s");
    let listener = UnixListener::bind(&hidden)?;
    fs::set_permissions(&hidden, Permissions::from_mode(0o600))?;
    // A hard link does not replace an existing file.
    match fs::hard_link(&hidden, path) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            if !fs::symlink_metadata(path)?.file_type().is_socket() {
                let text = format!("`{}` exists, and is not a socket", path.display());
                return Err(io::Error::new(ErrorKind::AlreadyExists, text));
            }
            match UnixStream::connect(path) {
                Err(refused) if refused.kind() == ErrorKind::ConnectionRefused => fs::remove_file(path)?,
                Err(other) => return Err(other),
                Ok(_) => {
                    let text = format!("another process listens to `{}`", path.display());
                    return Err(io::Error::new(ErrorKind::AddrInUse, text));
                }
            }
            fs::hard_link(&hidden, path)?;
        }
        other => other?,
    }
    Ok(listener)
}

/// A new folder that only the user can enter.
fn private_folder(parent: &Path) -> io::Result<PathBuf> {
    let process = std::process::id();
    let mut number = 0;
    loop {
        let folder = parent.join(format!(".brolga-{process}-{number}"));
        match DirBuilder::new().mode(0o700).create(&folder) {
            Ok(()) => return Ok(folder),
            Err(error) if error.kind() == ErrorKind::AlreadyExists && number < TRIES => number += 1,
            Err(error) => return Err(error),
        }
    }
}

/// Accepts connections until the socket is closed.
fn accept(listener: &UnixListener, shared: &Arc<Shared>) {
    for stream in listener.incoming() {
        let mut state = shared.lock();
        if state.session.is_none() {
            return;
        }
        // A failed connection does not affect the others.
        let Ok(stream) = stream else { continue };
        if state.clients >= MAX_CLIENTS {
            continue;
        }
        state.clients += 1;
        drop(state);
        let connection = shared.clone();
        let run = move || {
            let _left = answer(&stream, &connection);
            connection.lock().clients -= 1;
        };
        if thread::Builder::new().name("brolga top".to_owned()).spawn(run).is_err() {
            shared.lock().clients -= 1;
        }
    }
}

/// Answers requests until the client disconnects.
fn answer(stream: &UnixStream, shared: &Shared) -> io::Result<()> {
    // Do not wait for a client that does not read.
    stream.set_write_timeout(Some(TIMEOUT))?;
    let (mut input, mut output) = (BufReader::new(stream), stream);
    loop {
        let mut line = Vec::new();
        (&mut input).take(MAX_REQUEST).read_until(b'\n', &mut line)?;
        if line.pop() != Some(b'\n') {
            return Ok(());
        }
        let answer = match line.trim_ascii() == REQUEST.as_bytes() {
            true => {
                let session = shared.lock().session.clone();
                let Some(session) = session else { return Ok(()) };
                Snapshot::of(&session, shared.since, shared.live.as_deref()).to_json()
            }
            false => "{\"error\":\"the request is `snapshot`\"}".to_owned(),
        };
        output.write_all(answer.as_bytes())?;
        output.write_all(b"\n")?;
    }
}

/// A connection to a session that another process serves.
#[derive(Debug)]
pub struct Watcher {
    input: BufReader<UnixStream>,
}

impl Watcher {
    /// Connects to a socket opened by [`serve`].
    ///
    /// # Errors
    /// There is no such socket, or it has no listener.
    pub fn connect(path: impl AsRef<Path>) -> io::Result<Watcher> {
        let stream = UnixStream::connect(path)?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        stream.set_write_timeout(Some(TIMEOUT))?;
        Ok(Watcher { input: BufReader::new(stream) })
    }

    /// The current state of the session.
    ///
    /// # Errors
    /// The session has ended ([`ErrorKind::UnexpectedEof`]), or the answer is not a snapshot.
    pub fn snapshot(&mut self) -> io::Result<Snapshot> {
        let ended = || io::Error::new(ErrorKind::UnexpectedEof, "the session has ended");
        self.input.get_ref().write_all(format!("{REQUEST}\n").as_bytes()).map_err(|error| {
            match error.kind() {
                ErrorKind::BrokenPipe | ErrorKind::ConnectionReset => ended(),
                _ => error,
            }
        })?;
        let mut line = Vec::new();
        (&mut self.input).take(MAX_ANSWER).read_until(b'\n', &mut line).map_err(|error| {
            match error.kind() {
                ErrorKind::ConnectionReset => ended(),
                _ => error,
            }
        })?;
        if line.last() != Some(&b'\n') {
            return Err(ended());
        }
        let invalid = |text: String| io::Error::new(ErrorKind::InvalidData, text);
        let line = String::from_utf8(line).map_err(|error| invalid(error.to_string()))?;
        Snapshot::from_json(&line).map_err(invalid)
    }
}
