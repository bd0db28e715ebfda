//! The host of the linking model: removal of code, cells and methods, and limits of calls.
//!
//! | the linking model | here |
//! |---|---|
//! | has removed the definition of a label | its row in the method table is hidden from the next world on; callers are recompiled (`recompile.rs`); a declaration is dropped (`declared.rs`) |
//! | marks a definition as removed | its cell is marked: handles do not keep it |
//! | has a failure that no lookup waits for | it is reported to the embedder ([`Session::report_failures`]) |
//! | retires code | cells get a version that throws, or become orphans (`cells.rs`); bytes wait for the threads that run them |

use std::any::Any;
use std::sync::{Arc, OnceLock, Weak};
use std::task::Waker;

use brolga_linking::{Failure, Host, Label, Observed};
use brolga_runtime::Runtime;

use super::cells::Entered;
use super::method_table::MethodTable;
use super::sync::lock;
use super::target::{Code, Native};
use super::{Inner, Session, linking};

/// The host of the linking model: a session of machine code.
pub(crate) struct Removal {
    pub(crate) methods: Arc<MethodTable>,
    pub(crate) runtime: Arc<Runtime>,
    /// Set when the session is created.
    pub(crate) session: Arc<OnceLock<Weak<Inner>>>,
}

impl Host<Native> for Removal {
    fn unnamed(&self, session: &linking::Session<Native>, labels: &[Label]) {
        let Some(inner) = self.session.get().and_then(Weak::upgrade) else {
            return drop(self.methods.remove(session, labels));
        };
        let here = Session { inner };
        let one_at_a_time = lock(&here.inner.changes);
        let gone = (self.methods.remove(session, labels), here.forget_declared(labels));
        drop(one_at_a_time);
        drop(gone);
        here.recompile_after_removal(labels);
    }

    fn unheard(&self, failure: &Arc<Failure>) {
        if let Some(inner) = self.session.get().and_then(Weak::upgrade) {
            inner.report(&linking::Error::Failed(failure.clone()).into());
        }
    }

    fn observed(&self, events: Vec<Observed>) {
        if let Some(inner) = self.session.get().and_then(Weak::upgrade) {
            inner.show(&events);
        }
    }

    fn mark_removed(&self, code: &Code) {
        code.mark_removed();
    }

    fn retire(&self, mut code: Vec<Code>) {
        let (mut gone, mut removed) = (Vec::new(), Vec::new());
        for (entered, is_removed) in code.iter_mut().filter_map(Code::take_cell) {
            if is_removed { removed.push(entered) } else { gone.push(entered) }
        }
        Entered::release(removed, true);
        Entered::release(gone, false);
        drop(code);
    }

    fn caller(&self) -> u64 {
        self.runtime.limited_call()
    }

    fn has_ended(&self, caller: u64) -> bool {
        self.runtime.ended_calls().first().is_some_and(|&outermost| outermost <= caller)
    }

    fn wake_at_end(&self, waker: &Waker) -> Option<Box<dyn Any>> {
        Some(Box::new(self.runtime.wake_at_end(waker)))
    }
}
