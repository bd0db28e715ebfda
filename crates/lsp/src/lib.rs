//! A language server for the IR's text: serves editors that show `.jlir` files.
//!
//! ```text
//!                      changes            the newest version of a text, when no message is pending
//! client ──► transport ──────► server ──────────────────────────────► analysis ──► diagnostics
//!                                 │ requests about names                  │
//!                                 │ ◄── definition, references, rename, formatting, completion, symbols, lenses
//!                                 └──► hover ──► thread that optimises        ──► answers by id
//!                                 └──► commands ──► threads that run and explore
//! ```
//!
//! | file | content |
//! |---|---|
//! | `transport` | messages over streams |
//! | `server` | the loop, the answers |
//! | `jobs` | threads for long work; cancelled requests |
//! | `document` | a text, and the analysis of a version of it |
//! | `text` | positions in units of UTF-16 |
//! | `index` | names, and their occurrences |
//! | `findings`, `hover`, `completion`, `outline`, `rename`, `commands` | the parts of the protocol |
//!
//! Invariants: only `exit` and the end of the stream end the server; every request has one answer; a panic of
//! the compiler is a diagnostic or an error. The interpreter runs programs, with limits.
//!
//! Cost: a version of a text is read and verified once, when no message is pending or a request needs it, in
//! time linear in the text. A hover over a row optimises the row's function once for each version.
//!
//! Not done: names defined in other files.
#![forbid(unsafe_code)]

mod commands;
mod completion;
mod document;
mod findings;
mod hover;
mod index;
mod jobs;
mod outline;
mod rename;
mod server;
mod text;
mod transport;

use std::io;

pub use commands::{DEFAULT_STEPS, EXPLORE, RUN};
pub use lsp_server::Connection;
use lsp_server::Notification;
pub use server::{Ended, serve};

/// Serves the client connected to the standard input and output until it disconnects.
///
/// # Errors
/// The system refuses to create threads, or writing to the client fails.
pub fn serve_stdio() -> io::Result<Ended> {
    let input = io::BufReader::new(io::stdin());
    let (connection, writer) = transport::connect(input, io::stdout())?;
    let client = connection.sender.clone();
    let ended = serve(connection);
    // The writer may have ended with an error, which its thread returns.
    let _gone = client.send(Notification::new(transport::END.to_owned(), ()).into());
    match writer.join() {
        Ok(written) => written.map(|()| ended),
        Err(_) => Err(io::Error::other("the thread that writes to the client has panicked")),
    }
}
