//! Threads for long work, and cancelled requests.
//!
//! | job | thread |
//! |---|---|
//! | hover, which optimises | one, in the order of requests |
//! | a command, which runs a program or writes a page | its own, at most [`MAX_COMMANDS`] |
//!
//! A request is *pending* from its arrival to its answer. It is answered with an error if the client has
//! cancelled it, or has changed the text meanwhile: the client will request the newest version.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use crossbeam_channel::{Sender, unbounded};
use lsp_server::{ErrorCode, Message, RequestId, Response};
use serde_json::Value;

use crate::document::fenced;

/// The maximum number of commands that run concurrently.
pub(crate) const MAX_COMMANDS: usize = 4;

/// The stack size of a thread that compiles or interprets.
const STACK: usize = 64 << 20;

/// The outcome of a job: the answer, or the reason why there is none.
pub(crate) type Answer = Result<Value, String>;

type Job = Box<dyn FnOnce() + Send>;

/// The state that threads share.
#[derive(Default)]
struct Shared {
    /// Requests without an answer, each with whether it is cancelled.
    pending: BTreeMap<RequestId, bool>,
    /// The newest versions of documents.
    versions: BTreeMap<String, i32>,
    commands: usize,
}

/// The threads for long work. Dropping it does not wait.
pub(crate) struct Jobs {
    shared: Arc<Mutex<Shared>>,
    client: Sender<Message>,
    hovers: Sender<Job>,
}

fn lock(shared: &Mutex<Shared>) -> MutexGuard<'_, Shared> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Sends the answer to a request, unless it was cancelled or is outdated.
fn answer(shared: &Mutex<Shared>, client: &Sender<Message>, id: RequestId, answer: Answer) {
    let cancelled = lock(shared).pending.remove(&id).unwrap_or(false);
    let response = match answer {
        _ if cancelled => refused(id, ErrorCode::RequestCanceled, "the request was cancelled"),
        Ok(value) => Response::new_ok(id, value),
        Err(reason) => refused(id, ErrorCode::RequestFailed, reason),
    };
    // A client that has disconnected needs no answer.
    let _gone = client.send(response.into());
}

/// The response to a request that cannot be answered.
pub(crate) fn refused(id: RequestId, code: ErrorCode, reason: impl Into<String>) -> Response {
    Response::new_err(id, code as i32, reason.into())
}

impl Jobs {
    /// Threads that answer a client.
    pub(crate) fn new(client: Sender<Message>) -> Jobs {
        let (hovers, queue) = unbounded::<Job>();
        let run = move || queue.into_iter().for_each(|job: Job| job());
        // If the thread cannot be created, the queue has no receiver: hovers are refused, and everything else
        // works.
        let _thread = thread::Builder::new().name("lsp hover".to_owned()).stack_size(STACK).spawn(run);
        Jobs { shared: Arc::default(), client, hovers }
    }

    /// Records the arrival of a request.
    pub(crate) fn begin(&self, id: &RequestId) {
        lock(&self.shared).pending.insert(id.clone(), false);
    }

    /// Records that the client has cancelled a request.
    pub(crate) fn cancel(&self, id: &RequestId) {
        if let Some(cancelled) = lock(&self.shared).pending.get_mut(id) {
            *cancelled = true;
        }
    }

    /// Removes a request that was refused.
    pub(crate) fn forget(&self, id: &RequestId) {
        lock(&self.shared).pending.remove(id);
    }

    pub(crate) fn answer(&self, id: RequestId, value: Answer) {
        answer(&self.shared, &self.client, id, value);
    }

    /// Records the new version of a document, or that it was closed.
    pub(crate) fn note_version(&self, uri: &str, version: Option<i32>) {
        let versions = &mut lock(&self.shared).versions;
        match version {
            Some(version) => versions.insert(uri.to_owned(), version),
            None => versions.remove(uri),
        };
    }

    /// Answers a request about a version of a document later, unless the version is then outdated.
    pub(crate) fn hover(
        &self,
        id: RequestId,
        uri: String,
        version: i32,
        work: impl FnOnce() -> Answer + Send + 'static,
    ) {
        let (shared, client, waiting) = (self.shared.clone(), self.client.clone(), id.clone());
        let job: Job = Box::new(move || {
            let (cancelled, newest) = {
                let shared = lock(&shared);
                let cancelled = shared.pending.get(&id).copied().unwrap_or(false);
                (cancelled, shared.versions.get(&uri).copied())
            };
            if !cancelled && newest != Some(version) {
                lock(&shared).pending.remove(&id);
                let reason = "the text has changed meanwhile";
                let _gone = client.send(refused(id, ErrorCode::ContentModified, reason).into());
                return;
            }
            let value = if cancelled { Ok(Value::Null) } else { fenced(work).and_then(|value| value) };
            answer(&shared, &client, id, value);
        });
        if self.hovers.send(job).is_err() {
            self.answer(waiting, Err("there is no thread to do it".to_owned()));
        }
    }

    /// Answers a request on its own thread.
    pub(crate) fn command(&self, id: RequestId, work: impl FnOnce() -> Answer + Send + 'static) {
        {
            let mut shared = lock(&self.shared);
            if shared.commands >= MAX_COMMANDS {
                drop(shared);
                return self.answer(id, Err(format!("{MAX_COMMANDS} commands are running")));
            }
            shared.commands += 1;
        }
        let (shared, client, waiting) = (self.shared.clone(), self.client.clone(), id.clone());
        let run = move || {
            let value = fenced(work).and_then(|value| value);
            lock(&shared).commands -= 1;
            answer(&shared, &client, id, value);
        };
        if thread::Builder::new().name("lsp command".to_owned()).stack_size(STACK).spawn(run).is_err() {
            lock(&self.shared).commands -= 1;
            self.answer(waiting, Err("there is no thread to do it".to_owned()));
        }
    }
}

impl Drop for Jobs {
    fn drop(&mut self) {
        // Pending hovers find no document, and are not computed.
        lock(&self.shared).versions.clear();
    }
}
