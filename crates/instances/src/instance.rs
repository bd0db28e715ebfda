//! Code instances: the compiled forms of a function, each valid in a range of worlds.
//!
//! ```text
//!   instances  [worlds 0..6: ready a] [7..8: ready b] [9..: lazy]         a call in world 8 reaches b
//!   word ──► selector 9 ──► selector 7                                    a single instance: word ──► its code, or the stub
//!
//!          first call, interpreted                  code is made
//!   Lazy, Interpreted ─────────────────────────────────────────► Ready ──► Ready, better code
//!       ▲        word = stub                                       │       word = code
//!       └──────────────── replaced, or discarded ◄─────────────────┘
//!   Closed: word = stub; calls throw
//! ```
//!
//! A function has one word that calls go through ([`InvokePointer`]), from its definition to its end. It
//! selects from a list of code instances. A redefinition adds an instance that is valid from the next world
//! on. The previous instance is *superseded*: threads in older worlds still call it. It is removed from the
//! list when no thread can be in one of its worlds ([`Instances::settle`]); the word then leads directly to
//! the remaining one.
//!
//! Only the newest instance counts calls, is promoted to the next tier, is interpreted and may be discarded.
//!
//! All data here is guarded by the lock of the function's owner; only [`Instances::lead`] writes words that
//! other threads read without it. The owner defines the parts of an instance ([`Parts`]): this crate handles
//! addresses and worlds.
//!
//! Invariants: V1, the list is never empty, and its worlds ascend without overlap; V2, there is one selector
//! between each instance and the next, older ones first; V3, the words agree with the list whenever the
//! owner's lock is free; V4, the thread that removes an instance from the list drops it without the lock,
//! because its parts are foreign, and retires the former target of a word.

use crate::invoke::InvokePointer;
use crate::tier::Tier;

/// The components of the code instances of one kind of function.
pub trait Parts {
    /// The input from which the code is made.
    type Source;
    /// Serves calls while there is no code.
    type Interpreter;
    /// The code: its entry, its references, its debug data. It stays in memory while it is held.
    type Code: Code;
    /// Counters, and the action at their limit.
    type Profile;
    /// The information needed to compile discarded code again.
    type Recipe;
    /// Code between the word and the instances that dispatches on the caller's world.
    type Selector: Select;
}

/// Code of an instance.
pub trait Code {
    /// The address that calls go to.
    fn entry(&self) -> usize;
    /// The identities of the functions that it was compiled to call.
    fn edges(&self) -> impl Iterator<Item = usize>;
}

/// Directs calls from different worlds to different code.
pub trait Select {
    /// Sets the boundary: worlds from `since` on are the newer ones. Called before anything leads to the
    /// selector.
    fn begin(self, since: u64) -> Self;
    /// The address that calls go to.
    fn address(&self) -> usize;
    /// Changes the targets, following the rules of [`InvokePointer::store`].
    fn lead(&self, newer: usize, older: usize);
}

/// The target of an instance's calls.
pub enum State<P: Parts> {
    /// No code yet: the first call requests it.
    Lazy(P::Source),
    /// Tier 0: calls are interpreted until the code is made.
    Interpreted(P::Source, P::Interpreter),
    Ready(P::Code),
    /// No code: calls throw.
    Closed,
}

/// The initial content of a new instance.
pub struct Beginning<P: Parts> {
    pub state: State<P>,
    /// The counters.
    pub profile: P::Profile,
    /// How its code is compiled again, if that is possible.
    pub recipe: Option<P::Recipe>,
}

/// One version of a function: see the file's header.
pub struct CodeInstance<P: Parts> {
    number: u64,
    worlds: (u64, u64),
    state: State<P>,
    tier: Tier,
    /// The counters.
    pub profile: P::Profile,
    /// How the code is compiled again after it was discarded; `None` if that is impossible.
    pub recipe: Option<P::Recipe>,
    /// When the code was made, or last called through the stub.
    pub last_use: u64,
    /// Whether calls go to the stub although there is code.
    pub rests: bool,
}

impl<P: Parts> CodeInstance<P> {
    fn new(number: u64, first: u64, beginning: Beginning<P>) -> CodeInstance<P> {
        let Beginning { state, profile, recipe } = beginning;
        let worlds = (first, u64::MAX);
        // An instance that starts with code is not replaced by a better one.
        let tier = if matches!(state, State::Ready(_)) { Tier::Optimised } else { Tier::Interpreted };
        CodeInstance { number, worlds, state, tier, profile, recipe, last_use: 0, rests: false }
    }

    /// Distinguishes it from all other instances that the function has had.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.number
    }

    /// The first and the last world in which it is valid.
    #[must_use]
    pub fn worlds(&self) -> (u64, u64) {
        self.worlds
    }

    #[must_use]
    pub fn state(&self) -> &State<P> {
        &self.state
    }

    /// Its tier; `None` if it is closed.
    #[must_use]
    pub fn tier(&self) -> Option<Tier> {
        match self.state {
            State::Lazy(_) | State::Interpreted(..) | State::Ready(_) => Some(self.tier),
            State::Closed => None,
        }
    }

    #[must_use]
    pub fn code(&self) -> Option<&P::Code> {
        match &self.state {
            State::Ready(code) => Some(code),
            State::Lazy(_) | State::Interpreted(..) | State::Closed => None,
        }
    }

    /// The source of its code, if there is no code yet.
    #[must_use]
    pub fn source(&self) -> Option<&P::Source> {
        match &self.state {
            State::Lazy(source) | State::Interpreted(source, _) => Some(source),
            State::Ready(_) | State::Closed => None,
        }
    }

    /// The interpreter that serves calls while there is no code.
    pub fn interpreter(&mut self) -> Option<&mut P::Interpreter> {
        match &mut self.state {
            State::Interpreted(_, interpreter) => Some(interpreter),
            State::Lazy(_) | State::Ready(_) | State::Closed => None,
        }
    }

    /// Replaces the state by code, after which the words have to be led there. Returns the previous state, to
    /// be dropped without the lock, and retired if it is code.
    #[must_use]
    pub fn publish(&mut self, code: P::Code, tier: Tier, now: u64) -> State<P> {
        (self.tier, self.rests, self.last_use) = (tier, false, now);
        std::mem::replace(&mut self.state, State::Ready(code))
    }

    /// The state of a removed instance.
    #[must_use]
    pub fn into_state(self) -> State<P> {
        self.state
    }

    /// The address for its calls.
    fn entry(&self, stub: usize) -> usize {
        match self.code() {
            Some(code) if !self.rests => code.entry(),
            _ => stub,
        }
    }
}

/// The code instances of one function.
pub struct Instances<P: Parts> {
    list: Vec<CodeInstance<P>>,
    selectors: Vec<P::Selector>,
    next_number: u64,
}

/// The outcome of adding an instance.
pub enum Added<P: Parts> {
    /// The instance with this number is superseded; it was valid from `first` on.
    Superseded {
        /// The instance's number.
        number: u64,
        /// Its first world.
        first: u64,
    },
    /// An instance of the same world was replaced, which no thread has seen, so the selector is not needed.
    Replaced(Box<CodeInstance<P>>, P::Selector),
}

impl<P: Parts> Instances<P> {
    /// A single instance, for all worlds.
    pub fn new(beginning: Beginning<P>) -> Instances<P> {
        Instances { list: vec![CodeInstance::new(0, 0, beginning)], selectors: Vec::new(), next_number: 1 }
    }

    pub fn newest(&mut self) -> &mut CodeInstance<P> {
        let last = self.list.len() - 1; // V1
        &mut self.list[last]
    }

    /// The instance reached by a call in a world.
    pub fn at(&mut self, world: u64) -> &mut CodeInstance<P> {
        let behind = self.list.partition_point(|instance| instance.worlds.0 <= world);
        &mut self.list[behind.saturating_sub(1)] // V1
    }

    /// The instance with this number, if it is in the list.
    pub fn find(&mut self, number: u64) -> Option<&mut CodeInstance<P>> {
        self.list.iter_mut().find(|instance| instance.number == number)
    }

    /// The instance, if there is exactly one.
    pub fn only(&mut self) -> Option<&mut CodeInstance<P>> {
        match self.list.as_mut_slice() {
            [only] => Some(only),
            _ => None,
        }
    }

    /// All instances, oldest first.
    pub fn all(&mut self) -> impl Iterator<Item = &mut CodeInstance<P>> {
        self.list.iter_mut()
    }

    /// The identities of the functions that their code calls.
    pub fn edges(&self) -> Vec<usize> {
        self.list.iter().filter_map(CodeInstance::code).flat_map(Code::edges).collect()
    }

    fn number(&mut self) -> u64 {
        let number = self.next_number;
        self.next_number += 1;
        number
    }

    /// Adds an instance that is valid from a world on. It replaces one that is valid from the same world on.
    pub fn add(&mut self, selector: P::Selector, since: u64, beginning: Beginning<P>) -> Added<P> {
        let number = self.number();
        let newest = self.newest();
        let (superseded, first) = (newest.number, newest.worlds.0);
        if first >= since {
            let replaced = std::mem::replace(newest, CodeInstance::new(number, first, beginning));
            return Added::Replaced(Box::new(replaced), selector);
        }
        newest.worlds.1 = since - 1;
        self.list.push(CodeInstance::new(number, since, beginning));
        self.selectors.push(selector.begin(since));
        Added::Superseded { number: superseded, first }
    }

    /// Replaces all instances by one for all worlds; returns the old ones and the selectors, to be retired.
    pub fn replace_all(&mut self, beginning: Beginning<P>) -> (Vec<CodeInstance<P>>, Vec<P::Selector>) {
        let number = self.number();
        let only = vec![CodeInstance::new(number, 0, beginning)];
        (std::mem::replace(&mut self.list, only), std::mem::take(&mut self.selectors))
    }

    /// Removes a superseded instance, with the selector that is no longer needed.
    pub fn settle(&mut self, number: u64) -> Option<(CodeInstance<P>, P::Selector)> {
        let at = self.list.iter().position(|instance| instance.number == number)?;
        if at + 1 == self.list.len() {
            return None;
        }
        let instance = self.list.remove(at);
        // The selector that remains between its neighbours starts at the later one: V2.
        let selector = self.selectors.remove(at.saturating_sub(1));
        Some((instance, selector))
    }

    /// Sets the words as the list requires: V3. Calls without code go to the stub.
    pub fn lead(&self, word: &InvokePointer, stub: usize) {
        let mut to = self.list.first().map_or(stub, |oldest| oldest.entry(stub));
        for (instance, selector) in self.list.iter().skip(1).zip(&self.selectors) {
            selector.lead(instance.entry(stub), to);
            to = selector.address();
        }
        word.store(to);
    }
}
