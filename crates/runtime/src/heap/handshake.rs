//! The words by which a mutator and the collector exclude each other from the heap.
//!
//! Two words per mutator. The mutator writes `running`, the collector `stop`; each side stores its own word
//! and then reads the other's:
//!
//! ```text
//!   mutator: try_enter         collector                      mutator: leave
//!   running = 1                stop = 1 in every mutator      running = 0
//!   light fence                heavy fence                    light fence
//!   stop? ── yes: running = 0  waits until none is running    stop? ── yes: tells the collector
//! ```
//!
//! Each side has a fence between its store and its load of the other's word ([`Fences`]), so at least one of
//! the two sees the other: a mutator that enters and a collector that stops it cannot both succeed, and a
//! waiting collector is notified. Entering and leaving are frequent, so their fence is the light one.
//!
//! | row | operation | order | pairs with | without it |
//! |-----|-----------|-------|------------|------------|
//! | H1  | try_enter: fence between `running` and `stop` | light | H5 | mutator and collector touch the heap together |
//! | H2  | try_enter: load `stop` | Acquire | H7 | the mutator would not see what the collector did: cells freed, fields cleared |
//! | H3  | leave, and try_enter that is refused: clear `running` | Release | H6 | the collector would not see the mutator's last stores |
//! | H4  | leave: fence between `running` and `stop` | light | H5 | the collector sees the mutator run, waits, and is not notified |
//! | H5  | stop: fence between all `stop` words and the first `running` | heavy | H1, H4 | as H1, H4 |
//! | H6  | is_running: load | Acquire | H3 | as H3, whether the mutator left before the request or after |
//! | H7  | release: clear `stop` | Release | H2 | as H2, from the other side |
//! | H8  | set `running`; set `stop`; leave, must_stop: load `stop` | Relaxed | – | nothing: the fences order them, and a mutator that must stop takes the world's lock |
//!
//! **Model.** `RUSTFLAGS="--cfg loom" cargo test -p brolga-runtime --lib handshake --release` tries all
//! interleavings of two mutators and a collector; it fails if any of H1 to H7 is weakened
//! (`tests/weaken.sh`). Its fences are symmetric. Not modelled: the poll words, and the locks and condition
//! variables of `world.rs`, which a flag replaces that records that the collector was notified.

use brolga_instances::Fences;
#[cfg(all(test, loom))]
use loom::sync::atomic::{AtomicBool, Ordering};
#[cfg(all(test, loom))]
use model::{heavy, light};
#[cfg(not(all(test, loom)))]
use real::{heavy, light};
#[cfg(not(all(test, loom)))]
use std::sync::atomic::{AtomicBool, Ordering};

/// The words of one mutator.
#[derive(Debug)]
pub(crate) struct Handshake {
    running: AtomicBool,
    stop: AtomicBool,
    fences: Fences,
}

impl Handshake {
    pub(crate) fn new(fences: Fences) -> Handshake {
        Handshake { running: AtomicBool::new(false), stop: AtomicBool::new(false), fences }
    }

    /// The mutator tries to run. If it is refused, the collector may have seen it running and be waiting for
    /// it, and must be notified.
    #[inline]
    pub(crate) fn try_enter(&self) -> bool {
        self.running.store(true, Ordering::Relaxed); // H8
        light(self.fences); // H1
        let refused = self.stop.load(Ordering::Acquire); // H2
        if refused {
            self.running.store(false, Ordering::Release); // H3
        }
        !refused
    }

    /// The mutator stops running; returns whether the collector must be notified.
    #[inline]
    pub(crate) fn leave(&self) -> bool {
        self.running.store(false, Ordering::Release); // H3
        light(self.fences); // H4
        self.stop.load(Ordering::Relaxed) // H8
    }

    /// The collector requests that the mutators stop. Afterwards [`Handshake::is_running`] tells which of
    /// them to wait for.
    pub(crate) fn request<'h>(fences: Fences, all: impl Iterator<Item = &'h Handshake>) {
        for handshake in all {
            handshake.stop.store(true, Ordering::Relaxed); // H8
        }
        heavy(fences); // H5
    }

    pub(crate) fn is_running(&self) -> bool {
        self.running.load(Ordering::Acquire) // H6
    }

    /// The collector allows the mutator to run again.
    pub(crate) fn release(&self) {
        self.stop.store(false, Ordering::Release); // H7
    }

    /// Whether the collector has requested that the mutator stop.
    pub(crate) fn must_stop(&self) -> bool {
        self.stop.load(Ordering::Relaxed) // H8
    }
}

/// The real fences, or loom's in the model.
#[cfg(not(all(test, loom)))]
mod real {
    use brolga_instances::Fences;

    #[inline]
    pub(super) fn light(fences: Fences) {
        fences.light();
    }

    pub(super) fn heavy(fences: Fences) {
        fences.heavy();
    }
}

/// The heap is a cell that detects concurrent accesses, and accesses not ordered after earlier ones.
#[cfg(all(test, loom))]
mod model {
    use super::Handshake;
    use brolga_instances::Fences;
    use loom::cell::UnsafeCell;
    use loom::sync::atomic::{Ordering, fence};
    use loom::sync::{Arc, Condvar, Mutex};
    use loom::thread;

    /// Models only see loom's fences.
    pub(super) fn light(_: Fences) {
        fence(Ordering::SeqCst);
    }

    pub(super) use light as heavy;

    /// The words of the mutators, and what each may access while it runs.
    struct World<const N: usize> {
        words: [Handshake; N],
        heaps: [UnsafeCell<u32>; N],
        lock: Mutex<()>,
        stopped: Condvar,
    }

    impl<const N: usize> World<N> {
        fn touch(&self, heap: usize) {
            // The model checks the right to write; nothing needs to be written.
            self.heaps[heap].with_mut(|_| ());
        }

        fn tell(&self) {
            drop(self.lock.lock().unwrap());
            self.stopped.notify_all();
        }

        fn leave(&self, own: usize) {
            if self.words[own].leave() {
                self.tell();
            }
        }

        fn mutate(&self, own: usize, rounds: usize) {
            for _ in 0..rounds {
                // A refused mutator would wait; here it retries or stops.
                if !self.words[own].try_enter() {
                    self.tell();
                    continue;
                }
                self.touch(own);
                if !self.words[own].must_stop() {
                    self.touch(own);
                }
                self.leave(own);
            }
        }

        fn collect(&self) {
            let mut lock = self.lock.lock().unwrap();
            Handshake::request(Fences::symmetric(), self.words.iter());
            while self.words.iter().any(Handshake::is_running) {
                lock = self.stopped.wait(lock).unwrap();
            }
            (0..N).for_each(|heap| self.touch(heap));
            self.words.iter().for_each(Handshake::release);
            drop(lock);
        }
    }

    fn check<const N: usize>(rounds: usize, collections: usize) {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(3);
        builder.check(move || {
            let world = Arc::new(World::<N> {
                words: std::array::from_fn(|_| Handshake::new(Fences::symmetric())),
                heaps: std::array::from_fn(|_| UnsafeCell::new(0)),
                lock: Mutex::new(()),
                stopped: Condvar::new(),
            });
            let mutators: Vec<_> = (0..N)
                .map(|own| {
                    let world = world.clone();
                    thread::spawn(move || world.mutate(own, rounds))
                })
                .collect();
            (0..collections).for_each(|_| world.collect());
            mutators.into_iter().for_each(|mutator| mutator.join().unwrap());
        });
    }

    #[test]
    fn a_mutator_and_a_collector_are_never_inside_together() {
        check::<1>(2, 2);
    }

    #[test]
    fn two_mutators_and_a_collector_are_never_inside_together() {
        check::<2>(1, 1);
    }
}
