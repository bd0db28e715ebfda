//! The protocols in all interleavings that loom explores. Run by
//!
//! ```sh
//! RUSTFLAGS="--cfg loom" CARGO_TARGET_DIR=target/loom cargo test -p brolga-instances --lib --release models
//! ```
//!
//! | model | protocol | what would fail |
//! |---|---|---|
//! | `a_word_is_replaced_under_its_callers` | `invoke.rs`, with `reclaim.rs` | code runs before it is visible, or after it was freed |
//! | `a_superseded_instance_is_called_in_its_worlds` | `instance.rs`, with both | a call reaches code of another world, or code that was freed |
//! | `a_report_lets_go` | reports at safepoints | the same |
//! | `a_thread_that_stays_lets_go` | reports by others for a thread that stays | the same |
//! | `a_staying_thread_is_asked_while_its_frames_exist` | the same | the same; others read frames that change |
//! | `a_thread_short_of_room_finds_room_that_others_free` | `room.rs` | a thread is refused memory although some will be free |
//!
//! The models' own words, which represent the bytes of code:
//!
//! | row | operation | order | pairs with | without it |
//! |---|---|---|---|---|
//! | M1 | what a protocol must make visible | Relaxed | – | a stronger order would hide a protocol that does not make it visible |
//! | M2 | the newest world, as the run time counts it | SeqCst | – | nothing: the run time's rows D1 and D2 have this order |
//!
//! `tests/weaken.sh` weakens the rows one by one; each time, a model must fail.

use std::num::NonZeroUsize;
use std::sync::Arc;

use loom::cell::UnsafeCell;
use loom::thread;

use crate::instance::{Added, Beginning, Code, Instances, Parts, Select, State};
use crate::invoke::InvokePointer;
use crate::reclaim::Reclaimer;
use crate::room::{Attempt, Evicted, Moving, Room};
use crate::sync::{AtomicUsize, Mutex, Ordering, lock};

const SLOTS: usize = 6;

/// Code, indexed by address.
struct Memory([Bytes; SLOTS]);

/// The bytes are only accessed, which lets loom find unordered accesses; the state records whether they are
/// valid.
struct Bytes {
    bytes: UnsafeCell<()>,
    /// 0 before they are written, 1 while valid, 2 after they are freed.
    state: AtomicUsize,
}

impl Memory {
    fn new() -> Memory {
        Memory(std::array::from_fn(|_| Bytes { bytes: UnsafeCell::new(()), state: AtomicUsize::new(0) }))
    }

    fn set(&self, at: NonZeroUsize, state: usize) {
        let code = &self.0[at.get()];
        code.bytes.with_mut(|_| ());
        code.state.store(state, Ordering::Relaxed); // M1
    }

    fn write(&self, at: NonZeroUsize) {
        self.set(at, 1);
    }

    fn free(&self, at: NonZeroUsize) {
        self.set(at, 2);
    }

    /// Runs the code at the address.
    fn run(&self, at: NonZeroUsize) {
        let code = &self.0[at.get()];
        code.bytes.with(|_| ());
        let state = code.state.load(Ordering::Relaxed); // M1
        assert_ne!(state, 0, "code runs before it is seen");
        assert_ne!(state, 2, "code runs after it was freed");
    }
}

fn at(address: usize) -> NonZeroUsize {
    NonZeroUsize::new(address).expect("addresses of models are not null")
}

fn model(run: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(run);
}

/// A word leads to a stub at address 1, then to code at 2, then at 3. Stubs are not freed.
#[test]
fn a_word_is_replaced_under_its_callers() {
    model(|| {
        let memory = Arc::new(Memory::new());
        memory.write(at(1));
        let word = Arc::new(InvokePointer::new(1));
        let reclaimer = Reclaimer::new();
        let caller = {
            let (memory, word, thread) = (memory.clone(), word.clone(), reclaimer.participant());
            thread::spawn(move || {
                for _ in 0..2 {
                    let pin = thread.pin();
                    memory.run(at(word.load()));
                    drop(pin);
                }
            })
        };
        memory.write(at(2));
        word.store(2);
        memory.write(at(3));
        word.store(3);
        reclaimer.retire(at(2));
        for code in reclaimer.collect() {
            memory.free(code);
        }
        caller.join().expect("the caller's thread");
        for code in reclaimer.collect() {
            memory.free(code);
        }
        assert_eq!(reclaimer.waiting(), 0);
    });
}

#[test]
fn a_report_lets_go() {
    model(|| {
        let (memory, word) = (Arc::new(Memory::new()), Arc::new(InvokePointer::new(2)));
        memory.write(at(2));
        let reclaimer = Reclaimer::new();
        let reader = {
            let (memory, word, thread) = (memory.clone(), word.clone(), reclaimer.participant());
            thread::spawn(move || {
                let pin = thread.pin();
                let code = at(word.load());
                memory.run(code);
                // A safepoint in a loop that does not return: the frame is in the called code.
                thread.report(|item| *item == code);
                memory.run(code);
                memory.run(at(word.load()));
                drop(pin);
            })
        };
        memory.write(at(3));
        word.store(3);
        reclaimer.retire(at(2));
        for code in reclaimer.collect() {
            memory.free(code);
        }
        reader.join().expect("the reader's thread");
    });
}

/// The parts of the functions in the model. Code is its address.
enum Model {}

impl Parts for Model {
    type Source = ();
    type Interpreter = ();
    type Code = NonZeroUsize;
    type Profile = ();
    type Recipe = ();
    type Selector = Selector;
}

impl Code for NonZeroUsize {
    fn entry(&self) -> usize {
        self.get()
    }

    fn edges(&self) -> impl Iterator<Item = usize> {
        std::iter::empty()
    }
}

/// The data of a selector, whose address is [`SELECTOR`].
#[derive(Clone)]
struct Selector(Arc<(AtomicUsize, InvokePointer, InvokePointer)>);

const SELECTOR: usize = 5;

impl Select for Selector {
    fn begin(self, since: u64) -> Selector {
        self.0.0.store(since as usize, Ordering::Relaxed); // M1
        self
    }

    fn address(&self) -> usize {
        SELECTOR
    }

    fn lead(&self, newer: usize, older: usize) {
        self.0.1.store(newer);
        self.0.2.store(older);
    }
}

/// Retired code in the model.
enum Gone {
    /// The superseded instance of this number.
    Instance(u64),
    Code(NonZeroUsize),
}

/// Code at 1 is superseded by code at 2 in world 2. Each call reaches the code of its world, and the old code
/// is freed when no thread is in an older one.
#[test]
fn a_superseded_instance_is_called_in_its_worlds() {
    model(|| {
        let (memory, word) = (Arc::new(Memory::new()), Arc::new(InvokePointer::new(0)));
        memory.write(at(1));
        memory.write(at(SELECTOR));
        let beginning = |code| Beginning { state: State::Ready(at(code)), profile: (), recipe: None };
        let mut instances = Instances::<Model>::new(beginning(1));
        instances.lead(&word, 0);
        let newest = Arc::new(AtomicUsize::new(1));
        let selector =
            Selector(Arc::new((AtomicUsize::new(0), InvokePointer::new(0), InvokePointer::new(0))));
        let reclaimer = Reclaimer::new();
        let caller = {
            let (memory, word, newest) = (memory.clone(), word.clone(), newest.clone());
            let (selector, thread) = (selector.clone(), reclaimer.participant());
            thread::spawn(move || {
                let pin = thread.pin();
                let world = newest.load(Ordering::SeqCst); // M2
                for _ in 0..2 {
                    let mut to = word.load();
                    if to == SELECTOR {
                        memory.run(at(SELECTOR));
                        let (since, newer, older) = &*selector.0;
                        let is_new = world >= since.load(Ordering::Relaxed); // M1
                        to = if is_new { newer.load() } else { older.load() };
                    }
                    assert_eq!(to, world, "a call reaches the code of its world");
                    memory.run(at(to));
                }
                drop(pin);
            })
        };
        memory.write(at(2));
        let added = instances.add(selector, 2, beginning(2));
        instances.lead(&word, 0);
        newest.store(2, Ordering::SeqCst); // M2
        let Added::Superseded { number, first: 0 } = added else { panic!("the first is superseded") };
        reclaimer.retire(Gone::Instance(number));
        let free = |instances: &mut Instances<Model>, reclaimer: &Reclaimer<Gone>| {
            for gone in reclaimer.collect() {
                match gone {
                    Gone::Code(code) => memory.free(code),
                    Gone::Instance(number) => {
                        let (old, _selector) = instances.settle(number).expect("it was superseded");
                        instances.lead(&word, 0);
                        memory.free(*old.code().expect("it was ready"));
                        reclaimer.retire(Gone::Code(at(SELECTOR)));
                    }
                }
            }
        };
        free(&mut instances, &reclaimer);
        free(&mut instances, &reclaimer);
        caller.join().expect("the caller's thread");
        free(&mut instances, &reclaimer);
        free(&mut instances, &reclaimer);
        assert_eq!(reclaimer.waiting(), 0);
        assert_eq!(word.load(), 2, "the word leads directly to what is left");
    });
}

#[test]
fn a_thread_that_stays_lets_go() {
    model(|| {
        let (memory, word) = (Arc::new(Memory::new()), Arc::new(InvokePointer::new(1)));
        memory.write(at(1));
        let reclaimer = Reclaimer::new();
        let caller = {
            let (memory, word, thread) = (memory.clone(), word.clone(), reclaimer.participant());
            thread::spawn(move || {
                let pin = thread.pin();
                // It waits, and has no frames in code.
                let stay = thread.stay(|_| false);
                let inner = thread.pin();
                memory.run(at(word.load()));
                drop(inner);
                drop(stay);
                memory.run(at(word.load()));
                drop(pin);
            })
        };
        memory.write(at(2));
        word.store(2);
        reclaimer.retire(at(1));
        for code in reclaimer.collect() {
            memory.free(code);
        }
        caller.join().expect("the caller's thread");
    });
}

/// The address of the code that the frame is in, or 0 when the frame is gone.
#[test]
fn a_staying_thread_is_asked_while_its_frames_exist() {
    model(|| {
        let (memory, word) = (Arc::new(Memory::new()), Arc::new(InvokePointer::new(1)));
        memory.write(at(1));
        let reclaimer = Reclaimer::new();
        let caller = reclaimer.participant();
        let replacer = {
            let (memory, word, reclaimer) = (memory.clone(), word.clone(), reclaimer.clone());
            thread::spawn(move || {
                memory.write(at(2));
                word.store(2);
                reclaimer.retire(at(1));
                for code in reclaimer.collect() {
                    memory.free(code);
                }
            })
        };
        let frame = Arc::new(AtomicUsize::new(0));
        let pin = caller.pin();
        let code = at(word.load());
        memory.run(code);
        frame.store(code.get(), Ordering::Relaxed); // M1
        let seen = frame.clone();
        let stay = caller.stay(move |item: &NonZeroUsize| {
            let code = seen.load(Ordering::Relaxed); // M1
            assert_ne!(code, 0, "frames are read that change");
            item.get() == code
        });
        drop(stay);
        // It returns to the frame.
        memory.run(code);
        frame.store(0, Ordering::Relaxed); // M1
        memory.run(at(word.load()));
        drop(pin);
        replacer.join().expect("the replacer's thread");
        for code in reclaimer.collect() {
            memory.free(code);
        }
        assert_eq!(reclaimer.waiting(), 0);
    });
}

/// Memory for a single piece of code, as other threads see it.
struct Place {
    room: Room,
    /// Whether it is in use, and how often it was freed.
    memory: Mutex<(bool, u64)>,
    /// Whether the code in it can be evicted.
    is_held: Mutex<bool>,
    /// Evicted code that is not free yet.
    retired: Mutex<Option<Moving>>,
}

impl Place {
    fn attempt(&self) -> Attempt<(), ()> {
        let mut memory = lock(&self.memory);
        if std::mem::replace(&mut memory.0, true) { Attempt::Short(()) } else { Attempt::Made(()) }
    }

    fn evict(&self) -> Evicted {
        if !std::mem::take(&mut *lock(&self.is_held)) {
            return Evicted::Nothing;
        }
        let before = lock(&self.retired).replace(self.room.moving());
        assert!(before.is_none(), "it was evicted once");
        Evicted::Some
    }

    /// Frees retired code that no thread runs; any thread may do so.
    fn free(&self) {
        let retired = lock(&self.retired).take();
        if retired.is_some() {
            let mut memory = lock(&self.memory);
            memory.0 = false;
            memory.1 += 1;
        }
        drop(retired);
    }

    /// Makes code when memory is full, and holds it so that it can be evicted.
    fn make(&self) -> Result<(), ()> {
        let new = self.room.unmade();
        let wait = || {
            self.free();
            thread::yield_now();
            true
        };
        let made = self.room.reserve(&new, || self.attempt(), || self.evict(), wait, || lock(&self.memory).1);
        if made.is_ok() {
            *lock(&self.is_held) = true;
        }
        made
    }
}

#[test]
fn a_thread_short_of_room_finds_room_that_others_free() {
    model(|| {
        let place = Arc::new(Place {
            room: Room::new(),
            memory: Mutex::new((true, 0)),
            is_held: Mutex::new(true),
            retired: Mutex::new(None),
        });
        let other = {
            let place = place.clone();
            thread::spawn(move || assert_eq!(place.make(), Ok(()), "the other one is refused"))
        };
        assert_eq!(place.make(), Ok(()), "it will be free");
        other.join().expect("the other thread");
    });
}
