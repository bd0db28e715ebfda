//! Messages over a pair of streams.
//!
//! ```text
//! Content-Length: 52\r\n\r\n{"jsonrpc":"2.0", …}        one message, in both directions
//! ```
//!
//! A frame with a malformed message is skipped, and reported to the server ([`MALFORMED`]). A malformed
//! header, or one that announces more than [`MAX_BYTES`], ends the connection: the start of the next message
//! is unknown. The queue of messages is bounded, so a client that writes faster than it is served is blocked.
//!
//! The reader's thread is not joined: it may wait for the client forever.

use std::io::{self, BufRead, Read, Write};
use std::thread;

use crossbeam_channel::{Sender, bounded, unbounded};
use lsp_server::{Connection, Message, Notification};

/// The maximum size of a message in bytes.
pub(crate) const MAX_BYTES: usize = 256 << 20;

/// The maximum size of a header in bytes.
const MAX_HEADER: u64 = 4096;

/// The maximum number of messages queued for the server.
const QUEUE: usize = 256;

/// The notification that replaces a frame with a malformed message; its parameter is a description.
pub(crate) const MALFORMED: &str = "$/brolga/malformed";

/// The notification after which nothing is written. Threads that still try to write do not delay the end.
pub(crate) const END: &str = "$/brolga/end";

/// A connection over streams, and the writer's thread. The thread ends at [`END`], when all senders are gone,
/// or with the stream's error.
///
/// # Errors
/// The system refuses to create threads.
pub(crate) fn connect(
    mut input: impl BufRead + Send + 'static,
    mut output: impl Write + Send + 'static,
) -> io::Result<(Connection, thread::JoinHandle<io::Result<()>>)> {
    let (to_client, from_server) = unbounded::<Message>();
    let (to_server, from_client) = bounded::<Message>(QUEUE);
    let writer = thread::Builder::new().name("lsp writer".to_owned()).spawn(move || {
        let is_end = |message: &Message| matches!(message, Message::Notification(it) if it.method == END);
        let mut messages = from_server.into_iter().take_while(|message| !is_end(message));
        messages.try_for_each(|message| message.write(&mut output))
    })?;
    thread::Builder::new().name("lsp reader".to_owned()).spawn(move || {
        // The server treats the end of the stream and an error alike: there are no more requests.
        let _ended = read(&mut input, &to_server);
    })?;
    Ok((Connection { sender: to_client, receiver: from_client }, writer))
}

/// Reads messages until the stream or the server ends.
fn read(input: &mut impl BufRead, server: &Sender<Message>) -> io::Result<()> {
    while let Some(length) = header(input)? {
        let mut content = Vec::new();
        if input.take(length as u64).read_to_end(&mut content)? < length {
            return Ok(());
        }
        let message = serde_json::from_slice(&content).unwrap_or_else(|error| {
            Message::Notification(Notification::new(MALFORMED.to_owned(), error.to_string()))
        });
        if server.send(message).is_err() {
            return Ok(());
        }
    }
    Ok(())
}

/// The length of the next message; `None` at the end of the stream.
fn header(input: &mut impl BufRead) -> io::Result<Option<usize>> {
    let invalid = |text: &str| io::Error::new(io::ErrorKind::InvalidData, text);
    let mut length = None;
    loop {
        let mut line = Vec::new();
        if input.take(MAX_HEADER).read_until(b'\n', &mut line)? == 0 {
            return Ok(None);
        }
        let line = String::from_utf8(line).map_err(|_| invalid("a header that is not text"))?;
        let line = line.strip_suffix('\n').ok_or_else(|| invalid("a header without an end"))?.trim_end();
        if line.is_empty() {
            break;
        }
        let (name, value) = line.split_once(':').ok_or_else(|| invalid("a header without a value"))?;
        if name.trim().eq_ignore_ascii_case("content-length") {
            let bytes = value.trim().parse().ok().filter(|&bytes| bytes <= MAX_BYTES);
            length = Some(bytes.ok_or_else(|| invalid("a malformed length"))?);
        }
    }
    length.map(Some).ok_or_else(|| invalid("no length"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn received(bytes: &[u8]) -> Vec<Message> {
        let (connection, writer) = connect(io::Cursor::new(bytes.to_vec()), io::sink()).unwrap();
        let messages = connection.receiver.iter().collect();
        drop(connection);
        writer.join().unwrap().unwrap();
        messages
    }

    fn frame(content: &str) -> Vec<u8> {
        format!("Content-Length: {}\r\n\r\n{content}", content.len()).into_bytes()
    }

    #[test]
    fn frames_without_a_message_are_skipped() {
        let mut bytes = frame("{\"broken\"");
        bytes.extend(frame("[1, 2]"));
        bytes.extend(frame("{\"jsonrpc\":\"2.0\",\"method\":\"exit\"}"));
        let methods: Vec<String> = received(&bytes)
            .into_iter()
            .map(|message| match message {
                Message::Notification(notification) => notification.method,
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(methods, [MALFORMED, MALFORMED, "exit"]);
    }

    #[test]
    fn broken_headers_end_the_connection() {
        for bytes in [
            &b"Content-Length: 99999999999999999999\r\n\r\n"[..],
            b"Content-Length: 18446744073709551615\r\n\r\n",
            b"Content-Length: -1\r\n\r\n{}",
            b"Content-Length 5\r\n\r\n",
            b"Content-Type: x\r\n\r\n",
            b"\xff\xfe\r\n",
            b"Content-Length: 10\r\n\r\n{}",
            b"",
        ] {
            assert!(received(bytes).is_empty(), "{bytes:?}");
        }
        assert!(received(&[b'x'; 100_000]).is_empty());
    }
}
