//! The message loop of the server: it handles messages in order, and computes diagnostics while no message is
//! pending.
//!
//! ```text
//!  begun ── initialize ──► served ── shutdown ──► ending ── exit ──► ended
//! ```
//!
//! Requests in the wrong state, of unknown methods, or with malformed parameters are answered with the
//! protocol's errors. Between two messages at most one document is analysed. So during fast typing,
//! diagnostics are computed only for the newest version.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use brolga_engine::{format, read_unit};
use crossbeam_channel::{Sender, TryRecvError};
use lsp_server::{Connection, ErrorCode, Message, Notification, Request, RequestId};
use lsp_types::{
    CodeLensOptions, CodeLensParams, CompletionOptions, CompletionParams, DidChangeTextDocumentParams,
    DidCloseTextDocumentParams, DidOpenTextDocumentParams, DocumentFormattingParams, DocumentSymbolParams,
    DocumentSymbolResponse, ExecuteCommandOptions, ExecuteCommandParams, GotoDefinitionParams, HoverParams,
    HoverProviderCapability, InitializeParams, Location, MessageType, OneOf, Position, PositionEncodingKind,
    PrepareRenameResponse, PublishDiagnosticsParams, ReferenceParams, RenameOptions, RenameParams,
    ServerCapabilities, ShowDocumentParams, ShowMessageParams, TextDocumentPositionParams,
    TextDocumentSyncCapability, TextDocumentSyncKind, TextDocumentSyncOptions, TextEdit, Uri,
    WorkDoneProgressOptions, WorkspaceEdit,
};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::commands::{self, DEFAULT_STEPS, EXPLORE, Pages, RUN};
use crate::document::{Analysis, Document, fenced};
use crate::jobs::{Answer, Jobs, refused};
use crate::text::{Places, Text};
use crate::{completion, findings, hover, outline, rename, transport};

/// How a server ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ended {
    /// The client sent `shutdown`, then `exit`.
    Well,
    /// The client disconnected, or sent `exit` without `shutdown`.
    Abruptly,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Begun,
    Served,
    Ending,
}

struct Server {
    client: Sender<Message>,
    jobs: Jobs,
    documents: BTreeMap<String, (Uri, Document)>,
    state: State,
    /// Whether the client can show a document.
    shows_documents: bool,
    steps: u64,
    pages: Pages,
    /// The id of the last request to the client.
    asked: i32,
}

/// Serves a client until it sends `exit` or disconnects.
pub fn serve(connection: Connection) -> Ended {
    let mut server = Server {
        client: connection.sender.clone(),
        jobs: Jobs::new(connection.sender.clone()),
        documents: BTreeMap::new(),
        state: State::Begun,
        shows_documents: false,
        steps: DEFAULT_STEPS,
        pages: Pages::default(),
        asked: 0,
    };
    loop {
        let message = match connection.receiver.try_recv() {
            Ok(message) => message,
            Err(TryRecvError::Disconnected) => return Ended::Abruptly,
            Err(TryRecvError::Empty) => {
                if server.publish_one() {
                    continue;
                }
                match connection.receiver.recv() {
                    Ok(message) => message,
                    Err(_) => return Ended::Abruptly,
                }
            }
        };
        match message {
            Message::Request(request) => server.request(request),
            Message::Notification(notification) if notification.method == "exit" => {
                return if server.state == State::Ending { Ended::Well } else { Ended::Abruptly };
            }
            Message::Notification(notification) => server.notification(notification),
            // The server ignores the responses to its requests.
            Message::Response(_) => {}
        }
    }
}

/// The parameters of a message.
fn params<T: DeserializeOwned>(value: Value) -> Result<T, String> {
    serde_json::from_value(value).map_err(|error| error.to_string())
}

fn to_value<T: Serialize>(value: T) -> Answer {
    serde_json::to_value(value).map_err(|error| error.to_string())
}

impl Server {
    /// Analyses one document whose version is not analysed yet, and sends its diagnostics. Returns false if
    /// there is none.
    fn publish_one(&mut self) -> bool {
        let new = self.documents.iter_mut().find(|(_, (_, document))| document.is_new());
        let Some((name, (uri, document))) = new else { return false };
        let analysis = document.analysis(name);
        let published = findings::published(uri, &analysis);
        self.notify("textDocument/publishDiagnostics", published);
        true
    }

    fn notify(&self, method: &str, params: impl Serialize) {
        // Sending fails only after the client has disconnected.
        let _gone = self.client.send(Notification::new(method.to_owned(), params).into());
    }

    fn log(&self, text: String) {
        self.notify("window/logMessage", ShowMessageParams { typ: MessageType::WARNING, message: text });
    }

    fn notification(&mut self, notification: Notification) {
        let Notification { method, params: value } = notification;
        let done = match method.as_str() {
            "$/cancelRequest" => self.cancel(&value),
            transport::MALFORMED => Err(value.as_str().unwrap_or("not a message").to_owned()),
            _ if self.state != State::Served => Ok(()),
            "textDocument/didOpen" => params(value).map(|opened| self.open(opened)),
            "textDocument/didChange" => params(value).and_then(|changed| self.change(changed)),
            "textDocument/didClose" => params(value).map(|closed| self.close(closed)),
            _ => Ok(()),
        };
        if let Err(reason) = done {
            self.log(format!("`{method}`: {reason}"));
        }
    }

    fn cancel(&self, value: &Value) -> Result<(), String> {
        let id: RequestId = params(value.get("id").cloned().unwrap_or_default())?;
        self.jobs.cancel(&id);
        Ok(())
    }

    fn open(&mut self, opened: DidOpenTextDocumentParams) {
        let item = opened.text_document;
        let name = item.uri.as_str().to_owned();
        match Text::new(item.text) {
            Some(text) => {
                self.jobs.note_version(&name, Some(item.version));
                self.documents.insert(name, (item.uri, Document::new(item.version, text)));
            }
            None => self.log(format!("`{name}` is too large")),
        }
    }

    fn change(&mut self, changed: DidChangeTextDocumentParams) -> Result<(), String> {
        let name = changed.text_document.uri.as_str();
        let Some((_, document)) = self.documents.get_mut(name) else {
            return Err(format!("`{name}` is not open"));
        };
        let mut text = document.text.clone();
        for edit in changed.content_changes {
            text = text.replaced(edit.range, &edit.text).ok_or_else(|| format!("`{name}` is too large"))?;
        }
        let version = changed.text_document.version;
        document.change(version, text);
        self.jobs.note_version(name, Some(version));
        Ok(())
    }

    fn close(&mut self, closed: DidCloseTextDocumentParams) {
        let uri = closed.text_document.uri;
        self.documents.remove(uri.as_str());
        self.jobs.note_version(uri.as_str(), None);
        let none = PublishDiagnosticsParams { uri, diagnostics: Vec::new(), version: None };
        self.notify("textDocument/publishDiagnostics", none);
    }

    fn request(&mut self, request: Request) {
        let Request { id, method, params: value } = request;
        let refusal = match (self.state, method.as_str()) {
            (State::Begun, "initialize") => None,
            (State::Begun, _) => Some((ErrorCode::ServerNotInitialized, "the first request is `initialize`")),
            (State::Served, "initialize") => {
                Some((ErrorCode::InvalidRequest, "the server has begun already"))
            }
            (State::Served, _) => None,
            (State::Ending, _) => Some((ErrorCode::InvalidRequest, "the server is shutting down")),
        };
        if let Some((code, reason)) = refusal {
            let _gone = self.client.send(refused(id, code, reason).into());
            return;
        }
        self.jobs.begin(&id);
        match fenced(|| self.answered(&id, &method, value)) {
            // A job on another thread will answer.
            Ok(None) => {}
            Ok(Some(Asked::Answer(answer))) => self.jobs.answer(id, answer),
            Ok(Some(Asked::Refused(code, reason))) => {
                self.jobs.forget(&id);
                let _gone = self.client.send(refused(id, code, reason).into());
            }
            Err(reason) => self.jobs.answer(id, Err(reason)),
        }
    }

    /// The answer to a request; `None` if a job on another thread will answer it.
    fn answered(&mut self, id: &RequestId, method: &str, value: Value) -> Option<Asked> {
        macro_rules! asked {
            ($with:expr) => {
                match params(value) {
                    Ok(params) => Some(Asked::Answer($with(params))),
                    Err(reason) => Some(Asked::Refused(ErrorCode::InvalidParams, reason)),
                }
            };
        }
        match method {
            "initialize" => asked!(|params| self.initialize(&params)),
            "shutdown" => {
                self.state = State::Ending;
                Some(Asked::Answer(Ok(Value::Null)))
            }
            "textDocument/definition" => asked!(|params: GotoDefinitionParams| {
                self.places(params.text_document_position_params, Wanted::Definitions)
            }),
            "textDocument/references" => asked!(|params: ReferenceParams| {
                let wanted = match params.context.include_declaration {
                    true => Wanted::All,
                    false => Wanted::Uses,
                };
                self.places(params.text_document_position, wanted)
            }),
            "textDocument/prepareRename" => asked!(|params: TextDocumentPositionParams| {
                let (analysis, offset) = self.at(&params)?;
                let (range, placeholder) = rename::prepare(&analysis, offset)?;
                to_value(PrepareRenameResponse::RangeWithPlaceholder { range, placeholder })
            }),
            "textDocument/rename" => asked!(|params: RenameParams| self.rename(&params)),
            "textDocument/formatting" => asked!(|params: DocumentFormattingParams| {
                let analysis = self.analysis(&params.text_document.uri)?;
                to_value(formatted(&analysis)?)
            }),
            "textDocument/completion" => asked!(|params: CompletionParams| {
                let (analysis, offset) = self.at(&params.text_document_position)?;
                to_value(completion::list(&analysis, offset))
            }),
            "textDocument/documentSymbol" => asked!(|params: DocumentSymbolParams| {
                let analysis = self.analysis(&params.text_document.uri)?;
                to_value(DocumentSymbolResponse::Nested(outline::symbols(&analysis)))
            }),
            "textDocument/codeLens" => asked!(|params: CodeLensParams| {
                let uri = params.text_document.uri;
                let analysis = self.analysis(&uri)?;
                to_value(outline::lenses(uri.as_str(), &analysis))
            }),
            "textDocument/hover" => match params::<HoverParams>(value) {
                Ok(params) => self.hover(id, &params.text_document_position_params),
                Err(reason) => Some(Asked::Refused(ErrorCode::InvalidParams, reason)),
            },
            "workspace/executeCommand" => match params::<ExecuteCommandParams>(value) {
                Ok(params) => self.command(id, &params),
                Err(reason) => Some(Asked::Refused(ErrorCode::InvalidParams, reason)),
            },
            _ => Some(Asked::Refused(ErrorCode::MethodNotFound, format!("`{method}` is not served"))),
        }
    }

    fn initialize(&mut self, params: &InitializeParams) -> Answer {
        let window = params.capabilities.window.as_ref();
        self.shows_documents =
            window.and_then(|window| window.show_document.as_ref()).is_some_and(|it| it.support);
        let options = params.initialization_options.as_ref();
        if let Some(steps) = options.and_then(|options| options.get("steps")).and_then(Value::as_u64) {
            self.steps = steps;
        }
        self.state = State::Served;
        Ok(json!({
            "capabilities": capabilities(),
            "serverInfo": { "name": "brolga", "version": env!("CARGO_PKG_VERSION") },
        }))
    }

    fn analysis(&mut self, uri: &Uri) -> Result<Arc<Analysis>, String> {
        match self.documents.get_mut(uri.as_str()) {
            Some((_, document)) => {
                let is_new = document.is_new();
                let analysis = document.analysis(uri.as_str());
                if is_new {
                    self.notify("textDocument/publishDiagnostics", findings::published(uri, &analysis));
                }
                Ok(analysis)
            }
            None => Err(format!("`{}` is not open", uri.as_str())),
        }
    }

    /// The analysis of a document, and the offset of a position in it.
    fn at(&mut self, at: &TextDocumentPositionParams) -> Result<(Arc<Analysis>, usize), String> {
        let analysis = self.analysis(&at.text_document.uri)?;
        let offset = analysis.text.offset(at.position);
        Ok((analysis, offset))
    }

    /// The occurrences of the symbol at a position.
    fn places(&mut self, at: TextDocumentPositionParams, wanted: Wanted) -> Answer {
        let (analysis, offset) = self.at(&at)?;
        let Some(found) = analysis.index.at(offset) else { return Ok(Value::Null) };
        let mut places = Places::new(&analysis.text);
        let wanted = analysis.index.places(found.symbol).filter(|place| match wanted {
            Wanted::Definitions => place.is_definition,
            Wanted::Uses => !place.is_definition,
            Wanted::All => true,
        });
        let uri = at.text_document.uri;
        to_value(wanted.map(|place| Location::new(uri.clone(), places.range(place.span))).collect::<Vec<_>>())
    }

    #[expect(
        clippy::mutable_key_type,
        reason = "the protocol's type has addresses for keys, which nothing changes"
    )]
    fn rename(&mut self, params: &RenameParams) -> Answer {
        let (analysis, offset) = self.at(&params.text_document_position)?;
        let edits = rename::rename(&analysis, offset, &params.new_name)?;
        let uri = params.text_document_position.text_document.uri.clone();
        let changes = std::iter::once((uri, edits)).collect();
        to_value(WorkspaceEdit { changes: Some(changes), ..WorkspaceEdit::default() })
    }

    fn hover(&mut self, id: &RequestId, at: &TextDocumentPositionParams) -> Option<Asked> {
        let (analysis, offset) = match self.at(at) {
            Ok(found) => found,
            Err(reason) => return Some(Asked::Answer(Err(reason))),
        };
        let uri = at.text_document.uri.as_str().to_owned();
        let version = analysis.version;
        self.jobs.hover(id.clone(), uri, version, move || to_value(hover::hover(&analysis, offset)));
        None
    }

    fn command(&mut self, id: &RequestId, params: &ExecuteCommandParams) -> Option<Asked> {
        let text = |at: usize| params.arguments.get(at).and_then(Value::as_str);
        let invalid = |reason: &str| Some(Asked::Refused(ErrorCode::InvalidParams, reason.to_owned()));
        let Some(uri) = text(0).and_then(|uri| uri.parse::<Uri>().ok()) else {
            return invalid("the first argument is the address of a document");
        };
        let analysis = match self.analysis(&uri) {
            Ok(analysis) => analysis,
            Err(reason) => return Some(Asked::Answer(Err(reason))),
        };
        let client = self.client.clone();
        match params.command.as_str() {
            RUN => {
                let Some(call) = text(1).map(str::to_owned) else {
                    return invalid("the second argument is a call");
                };
                let steps = self.steps;
                self.jobs.command(id.clone(), move || {
                    let ran = commands::run(&analysis, &call, steps);
                    let (typ, said) = match &ran.value {
                        Ok(value) => (MessageType::INFO, format!("{call} = {value}")),
                        Err(reason) => (MessageType::ERROR, format!("{call}: {reason}")),
                    };
                    let output = ran.output.trim_end();
                    let message = if output.is_empty() { said } else { format!("{said}\n{output}") };
                    let message = ShowMessageParams { typ, message };
                    let _gone = client.send(Notification::new("window/showMessage".to_owned(), message).into());
                    Ok(json!({ "value": ran.value.as_ref().ok(), "error": ran.value.as_ref().err(), "output": ran.output }))
                });
            }
            EXPLORE => {
                let path = match self.pages.next() {
                    Ok(path) => path,
                    Err(reason) => return Some(Asked::Answer(Err(reason))),
                };
                self.asked += 1;
                let (asked, shows) = (RequestId::from(self.asked), self.shows_documents);
                self.jobs.command(id.clone(), move || {
                    let path = commands::page(&analysis, path)?;
                    match file_uri(&path).parse() {
                        Ok(uri) if shows => {
                            let show = ShowDocumentParams {
                                uri,
                                external: Some(true),
                                take_focus: None,
                                selection: None,
                            };
                            let show = Request::new(asked, "window/showDocument".to_owned(), show);
                            let _gone = client.send(show.into());
                        }
                        _ => {
                            let message = format!("the page is {}", path.display());
                            let message = ShowMessageParams { typ: MessageType::INFO, message };
                            let shown = Notification::new("window/showMessage".to_owned(), message);
                            let _gone = client.send(shown.into());
                        }
                    }
                    Ok(json!({ "page": path }))
                });
            }
            other => return invalid(&format!("`{other}` is not a command")),
        }
        None
    }
}

/// Which occurrences of a symbol are requested.
#[derive(Clone, Copy)]
enum Wanted {
    Definitions,
    Uses,
    All,
}

/// The outcome of a request on the server's thread.
enum Asked {
    Answer(Answer),
    Refused(ErrorCode, String),
}

/// Bytes of a path that are not escaped in a URI.
const PATH: &AsciiSet = &NON_ALPHANUMERIC.remove(b'/').remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// The `file:` URI of an absolute path.
fn file_uri(path: &Path) -> String {
    format!("file://{}", percent_encode(path.as_os_str().as_encoded_bytes(), PATH))
}

fn formatted(analysis: &Analysis) -> Result<Vec<TextEdit>, String> {
    let text = analysis.text.as_str();
    let unit = read_unit(&analysis.name, text.as_bytes());
    let formatted = unit.and_then(|(source, unit)| format(&source, &unit)).map_err(|error| match error {
        brolga_engine::Error::Broken(broken) => {
            let first = broken.findings.iter().next();
            let place = |at: Position| format!("line {}", at.line + 1);
            first.map_or("the text has errors".to_owned(), |finding| {
                format!("{}: {}", place(analysis.text.range(finding.at).start), finding.message)
            })
        }
        other => other.to_string(),
    })?;
    let edit = TextEdit::new(analysis.text.whole(), formatted.clone());
    Ok(if formatted == text { Vec::new() } else { vec![edit] })
}

fn capabilities() -> ServerCapabilities {
    ServerCapabilities {
        position_encoding: Some(PositionEncodingKind::UTF16),
        text_document_sync: Some(TextDocumentSyncCapability::Options(TextDocumentSyncOptions {
            open_close: Some(true),
            change: Some(TextDocumentSyncKind::INCREMENTAL),
            ..TextDocumentSyncOptions::default()
        })),
        completion_provider: Some(CompletionOptions {
            trigger_characters: Some(["%", "#", ":", "."].map(str::to_owned).to_vec()),
            ..CompletionOptions::default()
        }),
        hover_provider: Some(HoverProviderCapability::Simple(true)),
        definition_provider: Some(OneOf::Left(true)),
        references_provider: Some(OneOf::Left(true)),
        rename_provider: Some(OneOf::Right(RenameOptions {
            prepare_provider: Some(true),
            work_done_progress_options: WorkDoneProgressOptions::default(),
        })),
        document_formatting_provider: Some(OneOf::Left(true)),
        document_symbol_provider: Some(OneOf::Left(true)),
        code_lens_provider: Some(CodeLensOptions { resolve_provider: Some(false) }),
        execute_command_provider: Some(ExecuteCommandOptions {
            commands: vec![RUN.to_owned(), EXPLORE.to_owned()],
            work_done_progress_options: WorkDoneProgressOptions::default(),
        }),
        ..ServerCapabilities::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_encoded_in_uris() {
        let uri = file_uri(Path::new("/tmp/my pages #1 é/a-b_c.html"));
        assert_eq!(uri, "file:///tmp/my%20pages%20%231%20%C3%A9/a-b_c.html");
        assert!(uri.parse::<Uri>().is_ok());
    }
}
