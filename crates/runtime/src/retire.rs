//! The run time's side of `retired.rs`: it requests reports from threads in compiled code, and drops retired
//! code that is free.

use std::any::Any;
use std::sync::Arc;

use crate::heap::{Collection, Unused};
use crate::instance::Runtime;
use crate::retired::{RetiredCode, free};
use crate::thread::with_attached_to;

/// Unused types, kept until no thread is left in the worlds up to `last`: lines of dynamic calls have their
/// addresses.
struct UnusedTypes {
    _types: Unused,
    last: u64,
}

impl RetiredCode for UnusedTypes {
    fn contains_any(&self, _: &[usize]) -> bool {
        false
    }

    fn worlds(&self) -> Option<(u64, u64)> {
        Some((0, self.last))
    }
}

impl Runtime {
    /// Frees code when no thread can be running it. Nothing may lead to it any more: every word that did must
    /// have been changed, with release order.
    pub fn retire(&self, code: impl IntoIterator<Item = Box<dyn RetiredCode>>) {
        self.retire_list().retire_all(code);
        // A thread does not report again each time about code that its frames hold.
        self.report_running(|awaited, held| awaited > held && awaited / 2 >= held);
        self.collect_retired();
        if self.retired() > 0 {
            self.reporters().retain(|reporter| reporter.ask());
            self.collect_retired();
        }
    }

    /// Frees the retired code that no thread can be running. Threads that leave compiled code do the same if
    /// something waits for them.
    pub fn free_retired(&self) {
        self.report_running(|awaited, held| awaited > held);
        self.collect_retired();
    }

    pub(crate) fn collect_retired(&self) {
        free(self.retire_list().collect());
    }

    /// Makes the running thread release the code without frames on its stack, if this much waits for it
    /// compared with what its last report held.
    fn report_running(&self, is_due: impl FnOnce(usize, usize) -> bool) {
        with_attached_to(self, |thread| thread.report_if(is_due));
    }

    /// Frees the unused types, when there are twice as many types as the last time, when they use much of the
    /// heap's limit, or when a call failed because of that: with their objects, by a full collection that
    /// finds them. Does nothing inside a scope. Must be called when a program is compiled.
    pub fn free_unused_types(self: &Arc<Self>) {
        let (heap, types) = (self.heap(), self.heap().types());
        if !types.wants_census() && !types.is_sweep_due(heap.stats().live_bytes, heap.limit()) {
            return;
        }
        // Nothing is collected in a scope; another program or call will retry.
        let _collected = self.enter(|scope| scope.collect_kind(Collection::Full));
        types.end_census();
        let unused = types.take_swept();
        if !unused.is_empty() {
            let last = self.next_world(|_| ()) - 1;
            self.retire([Box::new(UnusedTypes { _types: unused, last }) as Box<dyn RetiredCode>]);
        }
    }

    /// Shows what keeps retired code in memory that waits for threads ([`RetiredCode::keeper`]). `show` must
    /// not retire code, enter or leave: it is called under a lock.
    pub fn look_at_retired(&self, mut show: impl FnMut(&dyn Any)) {
        self.retire_list().look(|code| {
            if let Some(keeper) = code.keeper() {
                show(keeper);
            }
        });
    }

    /// The number of pieces of retired code that wait for threads.
    pub fn retired(&self) -> usize {
        self.retire_list().waiting()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::instance::RuntimeOptions;
    use crate::retired::{Retired, may_hold};
    use crate::thread::with_attached;

    struct Counted(Arc<AtomicUsize>);

    impl RetiredCode for Counted {
        fn contains_any(&self, _: &[usize]) -> bool {
            false
        }
    }

    impl Drop for Counted {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// Panics on drop, and counts as well.
    struct Panics(#[expect(dead_code, reason = "dropped behind the panic")] Counted);

    impl RetiredCode for Panics {
        fn contains_any(&self, _: &[usize]) -> bool {
            false
        }
    }

    impl Drop for Panics {
        fn drop(&mut self) {
            std::panic::resume_unwind(Box::new("a destructor"));
        }
    }

    #[test]
    fn panics_of_what_goes_stay_below_compiled_code() {
        let runtime = Runtime::new(RuntimeOptions::default());
        let freed = Arc::new(AtomicUsize::new(0));
        let both = || -> [Retired; 2] {
            [Box::new(Panics(Counted(freed.clone()))), Box::new(Counted(freed.clone()))]
        };
        runtime.retire(both());
        assert_eq!(freed.load(Ordering::SeqCst), 2);
        with_attached(&runtime, |thread| {
            let entered = thread.enter();
            std::thread::scope(|scope| scope.spawn(|| runtime.retire(both())).join())
                .expect("the other thread");
            assert_eq!((freed.load(Ordering::SeqCst), runtime.retired()), (2, 2));
            // The action of a safepoint for a thread with a request.
            assert!(!thread.safepoint());
            assert_eq!(freed.load(Ordering::SeqCst), 4, "none of its frames lies there");
            drop(entered);
            let outermost = thread.enter();
            runtime.retire_list().retire_all(both());
            drop(outermost);
        })
        .expect("the thread can be attached");
        runtime.free_retired();
        assert_eq!((freed.load(Ordering::SeqCst), runtime.retired()), (6, 0));
    }

    #[test]
    fn code_that_panics_when_it_is_asked_may_be_running() {
        struct Unknown;
        impl RetiredCode for Unknown {
            fn contains_any(&self, addresses: &[usize]) -> bool {
                assert!(addresses[0] > 1, "unknown");
                false
            }
        }
        let code: Retired = Box::new(Unknown);
        assert!(may_hold(&code, &[1, 2], None) && may_hold(&code, &[0, 2], None));
        assert!(!may_hold(&code, &[2, 3], None) && !may_hold(&code, &[], None));
    }

    #[test]
    fn code_that_is_visible_in_a_world_of_the_thread_may_be_called() {
        struct Visible;
        impl RetiredCode for Visible {
            fn contains_any(&self, _: &[usize]) -> bool {
                false
            }

            fn worlds(&self) -> Option<(u64, u64)> {
                Some((5, 7))
            }
        }
        let code: Retired = Box::new(Visible);
        let held = |worlds| may_hold(&code, &[8], Some(worlds));
        assert!(held((5, 5)) && held((7, 9)) && held((1, 6)) && held((4, 8)));
        assert!(!held((1, 4)) && !held((8, 9)));
        assert!(!may_hold(&code, &[8], None), "a thread outside of all worlds");
    }

    #[test]
    fn code_waits_for_the_outermost_entry() {
        let runtime = Runtime::new(RuntimeOptions::default());
        let freed = Arc::new(AtomicUsize::new(0));
        let retire = || runtime.retire([Box::new(Counted(freed.clone())) as Box<dyn RetiredCode>]);
        let state = || (freed.load(Ordering::SeqCst), runtime.retired());
        retire();
        assert_eq!(state(), (1, 0), "no thread runs code");
        with_attached(&runtime, |thread| {
            let outer = thread.enter();
            let inner = thread.enter();
            // Another thread cannot tell what this one runs.
            std::thread::scope(|scope| scope.spawn(retire).join()).expect("the other thread");
            drop(inner);
            assert_eq!(state(), (1, 1));
            drop(outer);
            assert_eq!(state(), (2, 0), "the thread that left freed it");
        })
        .expect("the thread can be attached");
    }

    #[test]
    fn a_blocked_thread_holds_up_only_code_that_it_runs() {
        let runtime = Runtime::new(RuntimeOptions::default());
        let freed = Arc::new(AtomicUsize::new(0));
        let state = || (freed.load(Ordering::SeqCst), runtime.retired());
        let retire = || runtime.retire([Box::new(Counted(freed.clone())) as Retired]);
        let elsewhere = || std::thread::scope(|scope| scope.spawn(retire).join()).expect("the other thread");
        with_attached(&runtime, |thread| {
            let entered = thread.enter();
            elsewhere();
            assert_eq!(state(), (0, 1));
            let blocked = thread.blocking(|| {
                elsewhere();
                assert_eq!(state(), (2, 0), "what was retired before as well");
                let inner = thread.enter();
                elsewhere();
                assert_eq!(state(), (2, 1), "what it entered may run it");
                drop(inner);
                elsewhere();
                assert_eq!(state(), (4, 0));
            });
            assert_eq!(blocked, Ok(()));
            elsewhere();
            assert_eq!(state(), (4, 1), "it continues");
            drop(entered);
            assert_eq!(state(), (5, 0));
        })
        .expect("the thread can be attached");
        runtime
            .enter(|scope| {
                with_attached(&runtime, |thread| {
                    let entered = thread.enter();
                    scope.blocking(elsewhere);
                    assert_eq!(state(), (6, 0));
                    elsewhere();
                    assert_eq!(state(), (6, 1), "it continues");
                    drop(entered);
                })
            })
            .expect("a scope")
            .expect("the thread can be attached");
    }

    #[test]
    fn a_thread_that_retires_code_reports_the_code_it_runs() {
        let runtime = Runtime::new(RuntimeOptions::default());
        let freed = Arc::new(AtomicUsize::new(0));
        let state = || (freed.load(Ordering::SeqCst), runtime.retired());
        let counted = || Counted(freed.clone());
        with_attached(&runtime, |thread| {
            let entered = thread.enter();
            runtime.retire([Box::new(counted()) as Retired]);
            assert_eq!(state(), (1, 0), "no frame lies there");
            runtime.retire_list().retire_all([Box::new(counted()) as Retired]);
            assert_eq!(state(), (1, 1));
            runtime.free_retired();
            assert_eq!(state(), (2, 0), "and who waits for room says so, too");
            drop(entered);
        })
        .expect("the thread can be attached");
    }
}
