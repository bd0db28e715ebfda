//! A scripted client: sends requests, waits for answers, and keeps other messages meanwhile.

use std::thread::{self, JoinHandle};
use std::time::Duration;

use brolga_lsp::{Connection, Ended, serve};
use lsp_server::{Message, Notification, Request, RequestId, Response};
use serde_json::{Value, json};

/// The time after which a server without an answer counts as hanging.
const TIMEOUT: Duration = Duration::from_secs(120);

pub(crate) const URI: &str = "file:///tmp/p.jlir";

pub(crate) struct Client {
    connection: Connection,
    server: JoinHandle<Ended>,
    asked: i32,
    /// Notifications and requests from the server, in order.
    pub(crate) told: Vec<(String, Value)>,
}

impl Client {
    /// A client before `initialize`.
    pub(crate) fn raw() -> Client {
        let (connection, other) = Connection::memory();
        Client { connection, server: thread::spawn(move || serve(other)), asked: 0, told: Vec::new() }
    }

    /// A client of an initialized server.
    pub(crate) fn new() -> Client {
        let mut client = Client::raw();
        let begun = client
            .ask("initialize", json!({ "capabilities": {}, "initializationOptions": { "steps": 200_000 } }));
        assert_eq!(begun.unwrap()["serverInfo"]["name"], "brolga");
        client.tell("initialized", json!({}));
        client
    }

    /// A client with a document open.
    pub(crate) fn with(text: &str) -> Client {
        let mut client = Client::new();
        client.open(text);
        client
    }

    pub(crate) fn open(&mut self, text: &str) {
        let item = json!({ "uri": URI, "languageId": "jlir", "version": 1, "text": text });
        self.tell("textDocument/didOpen", json!({ "textDocument": item }));
    }

    pub(crate) fn change(&mut self, version: i32, edits: Value) {
        let document = json!({ "uri": URI, "version": version });
        self.tell("textDocument/didChange", json!({ "textDocument": document, "contentChanges": edits }));
    }

    pub(crate) fn tell(&mut self, method: &str, params: Value) {
        self.connection.sender.send(Notification::new(method.to_owned(), params).into()).unwrap();
    }

    /// Sends a request without waiting.
    pub(crate) fn begin(&mut self, method: &str, params: Value) -> RequestId {
        self.asked += 1;
        let id = RequestId::from(self.asked);
        self.connection.sender.send(Request::new(id.clone(), method.to_owned(), params).into()).unwrap();
        id
    }

    /// The answer to a request, or the code and the text of its error.
    pub(crate) fn answer(&mut self, wanted: &RequestId) -> Result<Value, (i32, String)> {
        loop {
            match self.next() {
                Message::Response(Response { id, response_result }) if id == *wanted => {
                    return response_result.map_err(|error| (error.code, error.message));
                }
                Message::Response(other) => panic!("an answer without a request: {other:?}"),
                _ => {}
            }
        }
    }

    fn next(&mut self) -> Message {
        let message = self.connection.receiver.recv_timeout(TIMEOUT).expect("the server says something");
        match &message {
            Message::Notification(it) => self.told.push((it.method.clone(), it.params.clone())),
            Message::Request(it) => self.told.push((it.method.clone(), it.params.clone())),
            Message::Response(_) => {}
        }
        message
    }

    pub(crate) fn ask(&mut self, method: &str, params: Value) -> Result<Value, (i32, String)> {
        let id = self.begin(method, params);
        self.answer(&id)
    }

    /// Sends a request about a position of the document.
    pub(crate) fn ask_at(
        &mut self,
        method: &str,
        (line, character): (u32, u32),
    ) -> Result<Value, (i32, String)> {
        self.ask(method, at(line, character))
    }

    /// Waits for the diagnostics of a version.
    pub(crate) fn diagnostics(&mut self, version: i32) -> Vec<Value> {
        loop {
            let found = self.told.iter().find(|(method, params)| {
                method == "textDocument/publishDiagnostics" && params["version"] == version
            });
            if let Some((_, params)) = found {
                return params["diagnostics"].as_array().unwrap().clone();
            }
            self.next();
        }
    }

    /// Shuts the server down.
    pub(crate) fn end(mut self) {
        assert_eq!(self.ask("shutdown", Value::Null), Ok(Value::Null));
        self.tell("exit", Value::Null);
        assert_eq!(self.server.join().unwrap(), Ended::Well);
    }

    /// Ends the server without a `shutdown` request.
    pub(crate) fn leave(self) -> Ended {
        drop(self.connection);
        self.server.join().unwrap()
    }
}

pub(crate) fn at(line: u32, character: u32) -> Value {
    json!({ "textDocument": { "uri": URI }, "position": { "line": line, "character": character } })
}

/// The position of the `skip`-th occurrence of `part` in a text, in lines and units of UTF-16.
pub(crate) fn position(text: &str, part: &str, skip: usize) -> (u32, u32) {
    let (offset, _) = text.match_indices(part).nth(skip).unwrap_or_else(|| panic!("`{part}` is in the text"));
    let line_start = text[..offset].rfind('\n').map_or(0, |end| end + 1);
    let line = text[..offset].matches('\n').count();
    (line as u32, text[line_start..offset].encode_utf16().count() as u32)
}
