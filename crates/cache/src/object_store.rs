//! Entries in any service supported by the crate `opendal`: object stores, key-value stores, file systems.
//!
//! The embedder makes the operator, with its address and its layers, and enables the services that it needs
//! in its own dependency on `opendal`. An entry is an object under its name, in folders as in a
//! directory (`ab/cdef…`). The service decides how long objects are kept.
//!
//! `opendal` is asynchronous: requests run on a thread of the store, and the caller waits for the answer, up
//! to a limit. So the store may be called from any thread, including a task of another executor, whose thread
//! it blocks meanwhile.

use std::future::Future;
use std::sync::mpsc;
use std::time::Duration;

use opendal::{ErrorKind, Operator};
use tokio::runtime::{Builder, Runtime};

use crate::store::{CacheStore, EntryName, StoreError};

/// See the file's header.
pub struct ObjectStore {
    operator: Operator,
    timeout: Duration,
    /// `None` only while it is dropped.
    runtime: Option<Runtime>,
}

impl ObjectStore {
    /// A store of the objects reachable through an operator. No request takes longer than `timeout`.
    ///
    /// # Errors
    /// The system refuses a thread for the requests.
    pub fn new(operator: Operator, timeout: Duration) -> Result<ObjectStore, StoreError> {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.map_err(|error| StoreError::new("opendal", error))?;
        Ok(ObjectStore { operator, timeout, runtime: Some(runtime) })
    }

    fn failed(&self, reason: impl std::fmt::Display) -> StoreError {
        StoreError::new(self.describe(), reason)
    }

    /// Waits for a request.
    fn wait<T: Send + 'static>(
        &self,
        request: impl Future<Output = opendal::Result<T>> + Send + 'static,
    ) -> Result<opendal::Result<T>, StoreError> {
        let runtime = self.runtime.as_ref().ok_or_else(|| self.failed("it is being closed"))?;
        let (sender, receiver) = mpsc::sync_channel(1);
        let task = runtime.spawn(async move {
            // The receiver is gone if the request took too long.
            let _ = sender.send(request.await);
        });
        receiver.recv_timeout(self.timeout).map_err(|_| {
            task.abort();
            self.failed(format!("no answer in {:?}", self.timeout))
        })
    }
}

fn path(name: &EntryName) -> String {
    let text = name.to_string();
    let (folder, file) = text.split_at(2);
    format!("{folder}/{file}")
}

impl CacheStore for ObjectStore {
    fn describe(&self) -> String {
        let info = self.operator.info();
        format!("{} {}{}", info.scheme(), info.name(), info.root())
    }

    fn get(&self, name: &EntryName) -> Result<Option<Vec<u8>>, StoreError> {
        let (operator, path) = (self.operator.clone(), path(name));
        match self.wait(async move { operator.read(&path).await })? {
            Ok(bytes) => Ok(Some(bytes.to_vec())),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(self.failed(error)),
        }
    }

    fn put(&self, name: &EntryName, entry: &[u8]) -> Result<(), StoreError> {
        let (operator, path, entry) = (self.operator.clone(), path(name), entry.to_vec());
        let written = self.wait(async move { operator.write(&path, entry).await })?;
        written.map(drop).map_err(|error| self.failed(error))
    }
}

impl Drop for ObjectStore {
    fn drop(&mut self) {
        // In a task of an executor it would be an error to wait for its thread.
        self.runtime.take().into_iter().for_each(Runtime::shutdown_background);
    }
}

impl std::fmt::Debug for ObjectStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("ObjectStore").field(&self.describe()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn in_memory() -> ObjectStore {
        let operator = Operator::new(opendal::services::Memory::default()).unwrap();
        ObjectStore::new(operator, Duration::from_secs(5)).unwrap()
    }

    #[test]
    fn objects_are_entries() {
        let store = in_memory();
        let name = EntryName::new([0xab; 32]);
        assert_eq!(store.get(&name).unwrap(), None);
        store.put(&name, b"one").unwrap();
        store.put(&name, b"two").unwrap();
        assert_eq!(store.get(&name).unwrap().as_deref(), Some(&b"two"[..]));
        assert!(store.describe().contains("memory"), "{store:?}");
    }

    #[test]
    fn a_store_works_and_is_dropped_inside_a_task() {
        let runtime = Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let store = in_memory();
            let name = EntryName::new([1; 32]);
            store.put(&name, b"one").unwrap();
            assert_eq!(store.get(&name).unwrap().as_deref(), Some(&b"one"[..]));
        });
    }

    #[test]
    fn a_request_without_answer_is_an_error_in_time() {
        let mut store = in_memory();
        store.timeout = Duration::from_millis(20);
        let never = store.wait(std::future::pending::<opendal::Result<()>>());
        assert!(never.unwrap_err().to_string().contains("no answer"));
    }
}
