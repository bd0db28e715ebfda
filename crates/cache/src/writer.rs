//! Pending entries: a thread writes them, so that compilation does not wait for files or servers.
//!
//! ```text
//!   Cache::keep ──► pending: name → entry ──► the writer's thread ──► CacheStore::put
//!                      │           └─ more than MAX_PENDING bytes: the caller writes
//!   Cache::find ───────┘ pending entries are found
//! ```
//!
//! The thread starts with the first entry and ends when the writer is dropped, which waits until all entries
//! are written; [`Writer::flush`] waits and keeps the thread. A process that ends without either only loses
//! the pending entries: stores write complete entries or none.
//!
//! Invariant: an entry is pending until the store has answered, so it is always in the writer or in the
//! store.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};

use crate::store::EntryName;

/// The maximum number of pending bytes.
const MAX_PENDING: usize = 64 << 20;

/// Writes an entry to the store and counts it; it does not panic, and its outcome is not reported.
pub(crate) type Put = dyn Fn(&EntryName, &[u8]) + Send + Sync;

/// A thread that writes entries, and the pending entries.
pub(crate) struct Writer {
    shared: Arc<Shared>,
}

struct Shared {
    put: Box<Put>,
    state: Mutex<State>,
    /// An entry was added, or the writer is dropped.
    work: Condvar,
    /// Nothing is pending.
    idle: Condvar,
}

#[derive(Default)]
struct State {
    pending: BTreeMap<EntryName, Arc<Vec<u8>>>,
    bytes: usize,
    is_dropped: bool,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    pub(crate) fn new(put: Box<Put>) -> Writer {
        let (state, work, idle) = (Mutex::default(), Condvar::new(), Condvar::new());
        Writer { shared: Arc::new(Shared { put, state, work, idle }) }
    }

    /// Writes an entry later, or immediately if there is no thread or too many bytes are pending.
    pub(crate) fn write(&self, name: EntryName, entry: Vec<u8>) {
        let entry = Arc::new(entry);
        let mut state = self.shared.state();
        if state.bytes + entry.len() <= MAX_PENDING && self.has_thread(&mut state) {
            state.bytes += entry.len();
            if let Some(older) = state.pending.insert(name, entry) {
                state.bytes -= older.len();
            }
            drop(state);
            self.shared.work.notify_one();
        } else {
            drop(state);
            (self.shared.put)(&name, &entry);
        }
    }

    fn has_thread(&self, state: &mut State) -> bool {
        if state.thread.is_none() {
            let shared = Arc::clone(&self.shared);
            state.thread = Builder::new().name("brolga-cache".to_owned()).spawn(move || shared.run()).ok();
        }
        state.thread.is_some()
    }

    /// An entry that is not written yet.
    pub(crate) fn pending(&self, name: &EntryName) -> Option<Vec<u8>> {
        // The bytes are copied after the lock is released.
        let entry = self.shared.state().pending.get(name).cloned();
        entry.map(Arc::unwrap_or_clone)
    }

    /// Waits until nothing is pending, including entries that are added meanwhile.
    pub(crate) fn flush(&self) {
        let is_busy = |state: &mut State| !state.pending.is_empty();
        drop(
            self.shared.idle.wait_while(self.shared.state(), is_busy).unwrap_or_else(PoisonError::into_inner),
        );
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        let mut state = self.shared.state();
        state.is_dropped = true;
        let thread = state.thread.take();
        drop(state);
        self.shared.work.notify_one();
        // The thread does not panic; if it did, there would be nothing to do here.
        let _ = thread.map(JoinHandle::join);
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self) {
        let mut state = self.state();
        loop {
            let Some((name, entry)) = state.pending.first_key_value() else {
                self.idle.notify_all();
                if state.is_dropped {
                    return;
                }
                state = self.work.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let (name, entry) = (*name, Arc::clone(entry));
            drop(state);
            (self.put)(&name, &entry);
            state = self.state();
            // A newer entry with the same name may have been added meanwhile; it is still to be written.
            if state.pending.get(&name).is_some_and(|pending| Arc::ptr_eq(pending, &entry)) {
                state.pending.remove(&name);
                state.bytes -= entry.len();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, Sender, channel};
    use std::sync::{Arc, Mutex};

    use super::{MAX_PENDING, Writer};
    use crate::store::EntryName;

    fn name(n: u8) -> EntryName {
        EntryName::new([n; 32])
    }

    type Written = Arc<Mutex<Vec<(EntryName, Vec<u8>)>>>;

    /// A writer whose every write waits for a permit; and the entries written.
    fn held() -> (Writer, Sender<()>, Written) {
        let (permit, permits): (Sender<()>, Receiver<()>) = channel();
        let (permits, written) = (Mutex::new(permits), Arc::new(Mutex::new(Vec::new())));
        let log = Arc::clone(&written);
        let writer = Writer::new(Box::new(move |name, entry| {
            let _ = permits.lock().unwrap().recv();
            log.lock().unwrap().push((*name, entry.to_vec()));
        }));
        (writer, permit, written)
    }

    #[test]
    fn entries_are_found_while_they_are_pending_and_written_at_the_end() {
        let (writer, permit, written) = held();
        writer.write(name(1), vec![1]);
        writer.write(name(2), vec![2]);
        assert_eq!(writer.pending(&name(1)), Some(vec![1]));
        assert_eq!(writer.pending(&name(2)), Some(vec![2]));
        assert_eq!(writer.pending(&name(3)), None);
        drop(permit);
        writer.flush();
        assert_eq!(writer.pending(&name(1)), None);
        writer.write(name(3), vec![3]);
        drop(writer);
        assert_eq!(*written.lock().unwrap(), [(name(1), vec![1]), (name(2), vec![2]), (name(3), vec![3])]);
    }

    #[test]
    fn a_newer_entry_of_a_name_is_the_last_that_is_written() {
        let (writer, permit, written) = held();
        writer.write(name(1), vec![1]);
        writer.write(name(1), vec![2, 2]);
        assert_eq!(writer.pending(&name(1)), Some(vec![2, 2]));
        drop(permit);
        drop(writer);
        assert_eq!(written.lock().unwrap().last(), Some(&(name(1), vec![2, 2])));
    }

    #[test]
    fn callers_write_when_too_much_waits() {
        let (writer, permit, written) = held();
        permit.send(()).unwrap();
        writer.write(name(1), vec![0; MAX_PENDING + 1]);
        assert_eq!(written.lock().unwrap().len(), 1, "no thread is in it");
        drop(permit);
        writer.flush();
    }
}
