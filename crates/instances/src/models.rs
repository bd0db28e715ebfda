//! The protocols in all interleavings that loom finds. Run by
//!
//! ```sh
//! RUSTFLAGS="--cfg loom" CARGO_TARGET_DIR=target/loom cargo test -p brolga-instances --lib --release models
//! ```
//!
//! | model | protocol | what would go wrong |
//! |---|---|---|
//! | `a_reader_is_told_a_legal_state` | `protocol.rs`, C3 to C7 | an entry without its code, or without its signature |
//! | `two_publishers` | C1, C2 | halves of two publishers |
//! | `native_code_read_alone` | C1, C5, C9 | an address is seen before its code |
//! | `an_installed_entry` | C6, C8 | a trampoline is seen before its code |
//! | `publication_over_an_installed_entry` | C3, C6 | an entry is seen before what it needs |
//! | `upgraded_code_is_freed_behind_its_readers` | `reclaim.rs` with `protocol.rs` | code is freed under a reader |
//! | `a_slot_is_replaced_under_its_callers` | C5, C9 of a slot's word, with `reclaim.rs` | code runs before it is seen, or after it was freed |
//! | `a_report_lets_go` | reports at safepoints | the same |
//! | `a_thread_that_stays_lets_go` | what others ask in the stead of a thread that stays | the same |
//! | `who_stays_is_asked_while_its_frames_stand` | the same | the same; others read frames that change |
//! | `whoever_is_short_finds_what_others_give_up` | `room.rs` | there will be room, and somebody is refused |
//!
//! The models' own words, which stand for the bytes of code:
//!
//! | row | operation | order | pairs with | without it |
//! |---|---|---|---|---|
//! | M1 | what a protocol must make visible | Relaxed | – | a stronger order would hide that the protocol does not |
//!
//! `tests/weaken.sh` weakens the rows one by one: each time a model must fail.

use std::num::NonZeroUsize;
use std::sync::Arc;

use loom::cell::UnsafeCell;
use loom::thread;

use crate::protocol::{CodeInstance, CodeWord, Entry, Signature};
use crate::reclaim::Reclaimer;
use crate::room::{Attempt, Evicted, Moving, Room};
use crate::sync::{AtomicUsize, Mutex, Ordering, lock};

const SLOTS: usize = 6;

/// Code by address.
struct Memory([Code; SLOTS]);

/// The bytes are touched only, which is enough for loom to find accesses that nothing orders; the state says what they are.
struct Code {
    bytes: UnsafeCell<()>,
    /// 0 until written, 1 while there, 2 when freed.
    state: AtomicUsize,
}

impl Memory {
    fn new() -> Memory {
        Memory(std::array::from_fn(|_| Code { bytes: UnsafeCell::new(()), state: AtomicUsize::new(0) }))
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

/// Addresses 1, 2: entry and code.
#[test]
fn a_reader_is_told_a_legal_state() {
    model(|| {
        let (memory, instance) = (Arc::new(Memory::new()), Arc::new(CodeInstance::new()));
        let publisher = {
            let (memory, instance) = (memory.clone(), instance.clone());
            thread::spawn(move || {
                memory.write(at(1));
                memory.write(at(2));
                assert_eq!(instance.publish(at(1), at(2), Signature::Specialised), Ok(()));
            })
        };
        match instance.read() {
            Entry::None => {}
            Entry::Invoke(invoke) => memory.run(invoke),
            Entry::Compiled { invoke, specptr, signature } => {
                memory.run(invoke);
                memory.run(specptr);
                assert_eq!(signature, Signature::Specialised);
            }
        }
        publisher.join().expect("the publisher's thread");
    });
}

/// Addresses 1, 2: entry and code of the first publisher; 3, 4: of the second.
#[test]
fn two_publishers() {
    let publish = |memory: &Memory, instance: &CodeInstance, (invoke, code, signature)| {
        memory.write(at(invoke));
        memory.write(at(code));
        let won = instance.publish(at(invoke), at(code), signature).is_ok();
        let Entry::Compiled { invoke, specptr, signature } = instance.read() else {
            panic!("both are told of the winner's code");
        };
        memory.run(invoke);
        memory.run(specptr);
        let whole = [(1, 2, Signature::Specialised), (3, 4, Signature::Args)];
        assert!(whole.contains(&(invoke.get(), specptr.get(), signature)), "halves of two publishers");
        assert_eq!(won, specptr == at(code));
    };
    model(move || {
        let (memory, instance) = (Arc::new(Memory::new()), Arc::new(CodeInstance::new()));
        let other = {
            let (memory, instance) = (memory.clone(), instance.clone());
            thread::spawn(move || publish(&memory, &instance, (1, 2, Signature::Specialised)))
        };
        publish(&memory, &instance, (3, 4, Signature::Args));
        other.join().expect("the other publisher's thread");
    });
}

#[test]
fn native_code_read_alone() {
    model(|| {
        let (memory, instance) = (Arc::new(Memory::new()), Arc::new(CodeInstance::new()));
        let publisher = {
            let (memory, instance) = (memory.clone(), instance.clone());
            thread::spawn(move || {
                memory.write(at(1));
                memory.write(at(2));
                assert_eq!(instance.publish(at(1), at(2), Signature::Specialised), Ok(()));
                memory.write(at(3));
                assert_eq!(instance.upgrade(at(2), at(3)), Ok(()));
            })
        };
        for _ in 0..2 {
            if let Some(code) = instance.specptr() {
                memory.run(code);
            }
        }
        publisher.join().expect("the publisher's thread");
    });
}

/// Address 5 is a trampoline.
#[test]
fn an_installed_entry() {
    model(|| {
        let (memory, instance) = (Arc::new(Memory::new()), Arc::new(CodeInstance::new()));
        let installer = {
            let (memory, instance) = (memory.clone(), instance.clone());
            thread::spawn(move || {
                memory.write(at(5));
                assert_eq!(instance.install(at(5)), Ok(()));
            })
        };
        match instance.read() {
            Entry::None => {}
            Entry::Invoke(invoke) => memory.run(invoke),
            Entry::Compiled { .. } => panic!("nobody publishes"),
        }
        installer.join().expect("the installer's thread");
    });
}

/// Address 5 is a trampoline, 1 an entry that reads the native code itself.
#[test]
fn publication_over_an_installed_entry() {
    model(|| {
        let (memory, instance) = (Arc::new(Memory::new()), Arc::new(CodeInstance::new()));
        memory.write(at(5));
        assert_eq!(instance.install(at(5)), Ok(()));
        let publisher = {
            let (memory, instance) = (memory.clone(), instance.clone());
            thread::spawn(move || {
                memory.write(at(1));
                memory.write(at(2));
                assert_eq!(instance.publish(at(1), at(2), Signature::Args), Ok(()));
            })
        };
        match instance.read() {
            Entry::None => panic!("it was callable from the start"),
            Entry::Invoke(invoke) => {
                memory.run(invoke);
                if invoke == at(1) {
                    memory.run(instance.specptr().expect("the entry's native code"));
                }
            }
            Entry::Compiled { invoke, specptr, .. } => {
                assert_eq!((invoke, specptr), (at(1), at(2)));
                memory.run(invoke);
                memory.run(specptr);
            }
        }
        publisher.join().expect("the publisher's thread");
        assert!(matches!(instance.read(), Entry::Compiled { .. }));
    });
}

#[test]
fn upgraded_code_is_freed_behind_its_readers() {
    model(|| {
        let (memory, instance) = (Arc::new(Memory::new()), Arc::new(CodeInstance::new()));
        memory.write(at(1));
        memory.write(at(2));
        assert_eq!(instance.publish(at(1), at(2), Signature::Specialised), Ok(()));
        let reclaimer = Reclaimer::new();
        let reader = {
            let (memory, instance, thread) = (memory.clone(), instance.clone(), reclaimer.participant());
            thread::spawn(move || {
                for _ in 0..2 {
                    let pin = thread.pin();
                    memory.run(instance.specptr().expect("published code"));
                    drop(pin);
                }
            })
        };
        memory.write(at(3));
        assert_eq!(instance.upgrade(at(2), at(3)), Ok(()));
        reclaimer.retire(at(2));
        for code in reclaimer.collect() {
            memory.free(code);
        }
        reader.join().expect("the reader's thread");
        for code in reclaimer.collect() {
            memory.free(code);
        }
        assert_eq!(reclaimer.waiting(), 0);
    });
}

/// A slot leads to a stub at address 1, then to code at 2, then at 3. Stubs stay.
#[test]
fn a_slot_is_replaced_under_its_callers() {
    model(|| {
        let memory = Arc::new(Memory::new());
        memory.write(at(1));
        let word = Arc::new(CodeWord::new(1));
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
        let (memory, instance) = (Arc::new(Memory::new()), Arc::new(CodeInstance::new()));
        memory.write(at(1));
        memory.write(at(2));
        assert_eq!(instance.publish(at(1), at(2), Signature::Specialised), Ok(()));
        let reclaimer = Reclaimer::new();
        let reader = {
            let (memory, instance, thread) = (memory.clone(), instance.clone(), reclaimer.participant());
            thread::spawn(move || {
                let pin = thread.pin();
                let code = instance.specptr().expect("published code");
                memory.run(code);
                // A safepoint in a loop that does not return: the frame lies in what was called.
                thread.report(|item| *item == code);
                memory.run(code);
                memory.run(instance.specptr().expect("published code"));
                drop(pin);
            })
        };
        memory.write(at(3));
        assert_eq!(instance.upgrade(at(2), at(3)), Ok(()));
        reclaimer.retire(at(2));
        for code in reclaimer.collect() {
            memory.free(code);
        }
        reader.join().expect("the reader's thread");
    });
}

#[test]
fn a_thread_that_stays_lets_go() {
    model(|| {
        let (memory, word) = (Arc::new(Memory::new()), Arc::new(CodeWord::new(1)));
        memory.write(at(1));
        let reclaimer = Reclaimer::new();
        let caller = {
            let (memory, word, thread) = (memory.clone(), word.clone(), reclaimer.participant());
            thread::spawn(move || {
                let pin = thread.pin();
                // It waits for something, in no code.
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

/// The frame says which code it lies in, and is gone when it says 0.
#[test]
fn who_stays_is_asked_while_its_frames_stand() {
    model(|| {
        let (memory, word) = (Arc::new(Memory::new()), Arc::new(CodeWord::new(1)));
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

/// Room for one piece of code, as others see it.
struct Place {
    room: Room,
    /// Whether it is taken, and how often it was freed.
    memory: Mutex<(bool, u64)>,
    /// Whether what takes it can be given up.
    is_held: Mutex<bool>,
    /// What was given up and is not free.
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
        assert!(before.is_none(), "it was given up once");
        Evicted::Some
    }

    /// Frees what nobody runs, as any thread may.
    fn free(&self) {
        let retired = lock(&self.retired).take();
        if retired.is_some() {
            let mut memory = lock(&self.memory);
            memory.0 = false;
            memory.1 += 1;
        }
        drop(retired);
    }

    /// Makes code where there is no room, and holds it so that it may be given up.
    fn make(&self) -> Result<(), ()> {
        let new = self.room.unmade();
        let wait = || {
            self.free();
            thread::yield_now();
            true
        };
        let made = self.room.make(&new, || self.attempt(), || self.evict(), wait, || lock(&self.memory).1);
        if made.is_ok() {
            *lock(&self.is_held) = true;
        }
        made
    }
}

#[test]
fn whoever_is_short_finds_what_others_give_up() {
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
