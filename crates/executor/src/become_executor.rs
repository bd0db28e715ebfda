//! A process that becomes an executor: its standard input is the connection to its controller.
//!
//! ```text
//!   controller ── starts the program with a socket as its standard input ── key (32 bytes), handshake ──► serve
//! ```
//!
//! The socket is private to the two processes, so the key may be sent on it. Programs find an empty standard input.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::net::UnixStream;

use brolga_cache::CacheKey;

use crate::serve::{ServeError, serve};

/// Why a process is not, or no more, an executor.
#[derive(thiserror::Error, Debug)]
pub enum BecomeError {
    /// Its standard input is not a connection to a controller.
    #[error(
        "the standard input is not a connection to a controller: this program is started by one, and not by hand"
    )]
    NoController,
    /// The connection failed, or the sides refuse each other.
    #[error(transparent)]
    Serve(#[from] ServeError),
}

/// Serves the controller that has started this process, until it ends or closes the connection. For programs that are executors: call it
/// before anything reads the standard input, and end the process when it returns.
///
/// # Errors
/// The process was not started by a controller, the two refuse each other, or the connection failed.
pub fn serve_controller() -> Result<(), BecomeError> {
    let mut stream = connection().map_err(|_| BecomeError::NoController)?;
    let mut key = [0; 32];
    stream.read_exact(&mut key).map_err(|_| BecomeError::NoController)?;
    Ok(serve(stream, &CacheKey::new(key))?)
}

pub(crate) fn connection() -> io::Result<UnixStream> {
    let input = io::stdin();
    rustix::net::sockopt::socket_type(&input)?;
    let stream = rustix::io::fcntl_dupfd_cloexec(&input, 3)?;
    rustix::stdio::dup2_stdin(File::open("/dev/null")?)?;
    Ok(stream.into())
}
