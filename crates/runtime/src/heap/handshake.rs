//! The word in which a mutator and the collector agree on who may touch the heap.
//!
//! One word per mutator, two bits. The mutator owns `RUNNING`, the collector `STOP`:
//!
//! ```text
//!              try_enter                    request
//!      0 ◄──────────────────► RUNNING ──────────────────► RUNNING|STOP      the collector waits
//!      │        leave                                          │ leave
//!      │ request                     release                   ▼
//!      └────────────────────────────────────────────────────► STOP          the collector works; try_enter fails
//! ```
//!
//! Both bits are in one word, so each side's read-modify-write sees the other's: a mutator that enters and a collector that
//! stops it cannot both succeed, and no fence between two words is needed.
//!
//! | row | operation | order | pairs with | without it |
//! |-----|-----------|-------|------------|------------|
//! | H1  | try_enter: 0 → RUNNING | Acquire | H6 | the mutator would not see what the collector did: cells freed, fields cleared |
//! | H2  | try_enter fails | Relaxed | – | nothing: the mutator goes to wait under the world's lock |
//! | H3  | leave: clear RUNNING | Release | H5 | the collector would not see the mutator's last stores |
//! | H4  | request: set STOP | Relaxed | – | nothing: the collector looks whether the mutator runs before it does anything (H5) |
//! | H5  | is_running: load | Acquire | H3 | as H3, whether the mutator left before the request or after |
//! | H6  | release: clear STOP | Release | H1 | as H1, from the other side |
//! | H7  | must_stop: load | Relaxed | – | nothing: a mutator that sees it leaves and enters again, which synchronise |
//!
//! **Model.** `RUSTFLAGS="--cfg loom" cargo test -p brolga-runtime --lib handshake --release` tries all interleavings of two
//! mutators and a collector; it fails if any of H1, H3, H5 and H6 is weakened. What it cannot see: the locks and conditions of
//! `world.rs`, which only decide who waits, and the poll words.

#[cfg(all(test, loom))]
use loom::sync::atomic::{AtomicU32, Ordering};
#[cfg(not(all(test, loom)))]
use std::sync::atomic::{AtomicU32, Ordering};

const RUNNING: u32 = 1;
const STOP: u32 = 2;

/// The word of one mutator.
#[derive(Default, Debug)]
pub(crate) struct Handshake(AtomicU32);

impl Handshake {
    /// The mutator wants to run; refused while it is to stop.
    pub(crate) fn try_enter(&self) -> bool {
        self.0
            .compare_exchange(
                0,
                RUNNING,
                Ordering::Acquire, // H1
                Ordering::Relaxed, // H2
            )
            .is_ok()
    }

    /// The mutator stops running; whether the collector waits for that.
    pub(crate) fn leave(&self) -> bool {
        self.0.fetch_and(!RUNNING, Ordering::Release) & STOP != 0 // H3
    }

    /// The collector wants the mutator to stop; whether it is running, as far as this alone tells ([`Handshake::is_running`]
    /// is what counts).
    pub(crate) fn request(&self) -> bool {
        self.0.fetch_or(STOP, Ordering::Relaxed) & RUNNING != 0 // H4
    }

    /// Whether the mutator runs.
    pub(crate) fn is_running(&self) -> bool {
        self.0.load(Ordering::Acquire) & RUNNING != 0 // H5
    }

    /// The collector lets the mutator run again.
    pub(crate) fn release(&self) {
        self.0.fetch_and(!STOP, Ordering::Release); // H6
    }

    /// Whether the collector wants the mutator to stop.
    pub(crate) fn must_stop(&self) -> bool {
        self.0.load(Ordering::Relaxed) & STOP != 0 // H7
    }
}

/// The heap is a cell that tells who touches it at the same time, or without having seen what was done before.
#[cfg(all(test, loom))]
mod model {
    use super::Handshake;
    use loom::cell::UnsafeCell;
    use loom::sync::Arc;
    use loom::thread;

    /// The words of the mutators, and what each of them may touch while it runs.
    struct World<const N: usize> {
        words: [Handshake; N],
        heaps: [UnsafeCell<u32>; N],
    }

    impl<const N: usize> World<N> {
        fn touch(&self, heap: usize) {
            // Having the right to write is what the model looks at; nothing needs to be written.
            self.heaps[heap].with_mut(|_| ());
        }

        fn mutate(&self, own: usize, rounds: usize) {
            for _ in 0..rounds {
                // A mutator that is refused would wait; here it comes again or not at all.
                if self.words[own].try_enter() {
                    self.touch(own);
                    if self.words[own].must_stop() {
                        self.words[own].leave();
                        continue;
                    }
                    self.touch(own);
                    self.words[own].leave();
                }
            }
        }

        fn collect(&self) {
            for word in &self.words {
                word.request();
            }
            while self.words.iter().any(Handshake::is_running) {
                thread::yield_now();
            }
            (0..N).for_each(|heap| self.touch(heap));
            self.words.iter().for_each(Handshake::release);
        }
    }

    fn check<const N: usize>(rounds: usize, collections: usize) {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(3);
        builder.check(move || {
            let world = Arc::new(World::<N> {
                words: std::array::from_fn(|_| Handshake::default()),
                heaps: std::array::from_fn(|_| UnsafeCell::new(0)),
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
