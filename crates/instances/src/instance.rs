//! Code instances: the code of a function, each instance for the worlds in which it is valid.
//!
//! ```text
//!   instances  [worlds 0..6: ready a] [7..8: ready b] [9..: lazy]         a call in world 8 reaches b
//!   word ──► selector 9 ──► selector 7                                    one instance: word ──► its code, or the stub
//!
//!          first call, serves by interpreting      code is made
//!   Lazy, Interpreted ─────────────────────────────────────────► Ready ──► Ready, better code
//!       ▲        word = stub                                       │       word = code
//!       └──────────────── replaced, or discarded ◄─────────────────┘
//!   Closed: word = stub; calls throw
//! ```
//!
//! A function has one word that calls go through ([`InvokePointer`]), from its definition to its end. It selects from a list of code instances.
//! A redefinition adds one that is valid from the next world on. The instance before is *superseded*: threads in older worlds still call it.
//! It leaves the list when no thread can be in one of its worlds ([`Instances::settle`]), and then the word leads directly to the remaining one.
//!
//! Only the newest instance counts calls, is promoted to the next tier, is interpreted and may be discarded.
//!
//! Everything here is data under the lock of the function's owner; only [`Instances::lead`] writes words that other threads read without it.
//! The owner defines the parts of an instance ([`Parts`]): this crate handles addresses and worlds.
//!
//! Invariants: V1, the list is never empty, and its worlds ascend without overlap; V2, there is one selector between each instance and the next,
//! older ones first; V3, the words agree with the list whenever the owner's lock is free; V4, the thread that takes an instance out of the list drops it
//! without the lock, because its parts are foreign, and retires the former target of a word.

use crate::invoke::InvokePointer;
use crate::tier::Tier;

/// The parts of the code instances of one kind of function.
pub trait Parts {
    /// Makes the code.
    type Source;
    /// Serves calls while there is no code.
    type Interpreter;
    /// The code: its entry, its references, its debug data. A holder keeps it in memory.
    type Code: Code;
    /// Counters, and the action at their limit.
    type Profile;
    /// How code is made again that was discarded.
    type Recipe;
    /// Code between the word and the instances that tells worlds apart.
    type Selector: Select;
}

/// Code of an instance.
pub trait Code {
    /// The address that calls go to.
    fn entry(&self) -> usize;
    /// The identities of the functions that it was compiled to call.
    fn edges(&self) -> impl Iterator<Item = usize>;
}

/// Lets calls of different worlds go to different code.
pub trait Select {
    /// Tells worlds from `since` on from older ones. Before anything leads to it.
    fn begin(self, since: u64) -> Self;
    /// The address that calls go to.
    fn address(&self) -> usize;
    /// Lets calls go elsewhere, by the rules of [`InvokePointer::store`].
    fn lead(&self, newer: usize, older: usize);
}

/// The target of calls of an instance.
pub enum State<P: Parts> {
    /// Nothing yet: the first call has the code made.
    Lazy(P::Source),
    /// Tier 0: calls are interpreted, until the code is made.
    Interpreted(P::Source, P::Interpreter),
    /// Code.
    Ready(P::Code),
    /// Nothing: calls throw.
    Closed,
}

/// The initial content of a new instance.
pub struct Beginning<P: Parts> {
    /// Its state.
    pub state: State<P>,
    /// The counters.
    pub profile: P::Profile,
    /// How its code is made again, if that can be.
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
    /// How the code is made again after it was discarded; `None` if that cannot be.
    pub recipe: Option<P::Recipe>,
    /// When the code was made, or called through the stub, last.
    pub last_use: u64,
    /// Whether calls go to the stub although there is code.
    pub rests: bool,
}

impl<P: Parts> CodeInstance<P> {
    fn new(number: u64, first: u64, beginning: Beginning<P>) -> CodeInstance<P> {
        let Beginning { state, profile, recipe } = beginning;
        let worlds = (first, u64::MAX);
        // An instance that is ready from the beginning has no better one to come.
        let tier = if matches!(state, State::Ready(_)) { Tier::Optimised } else { Tier::Interpreted };
        CodeInstance { number, worlds, state, tier, profile, recipe, last_use: 0, rests: false }
    }

    /// Tells it from all other instances that the function has had.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.number
    }

    /// The first and the last world in which it is valid.
    #[must_use]
    pub fn worlds(&self) -> (u64, u64) {
        self.worlds
    }

    /// Its state.
    #[must_use]
    pub fn state(&self) -> &State<P> {
        &self.state
    }

    /// Its tier; none if it is closed.
    #[must_use]
    pub fn tier(&self) -> Option<Tier> {
        match self.state {
            State::Lazy(_) | State::Interpreted(..) | State::Ready(_) => Some(self.tier),
            State::Closed => None,
        }
    }

    /// Its code.
    #[must_use]
    pub fn code(&self) -> Option<&P::Code> {
        match &self.state {
            State::Ready(code) => Some(code),
            State::Lazy(_) | State::Interpreted(..) | State::Closed => None,
        }
    }

    /// The recipe of its code, if there is no code.
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

    /// Lets calls go to code, once the words lead there. The previous content is returned, to be dropped without the lock, and retired if it is
    /// code.
    #[must_use]
    pub fn publish(&mut self, code: P::Code, tier: Tier, now: u64) -> State<P> {
        (self.tier, self.rests, self.last_use) = (tier, false, now);
        std::mem::replace(&mut self.state, State::Ready(code))
    }

    /// The content of an instance that is taken out.
    #[must_use]
    pub fn into_state(self) -> State<P> {
        self.state
    }

    /// Where calls of it go.
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
    /// The instance of this number is superseded; it was valid from `first` on.
    Superseded {
        /// Which it is.
        number: u64,
        /// Its first world.
        first: u64,
    },
    /// An instance of the same world was replaced, which no thread has seen, and the selector is not needed.
    Replaced(Box<CodeInstance<P>>, P::Selector),
}

impl<P: Parts> Instances<P> {
    /// One instance, for all worlds.
    pub fn new(beginning: Beginning<P>) -> Instances<P> {
        Instances { list: vec![CodeInstance::new(0, 0, beginning)], selectors: Vec::new(), next_number: 1 }
    }

    /// The newest instance.
    pub fn newest(&mut self) -> &mut CodeInstance<P> {
        let last = self.list.len() - 1; // V1
        &mut self.list[last]
    }

    /// The instance that a call in a world reaches.
    pub fn at(&mut self, world: u64) -> &mut CodeInstance<P> {
        let behind = self.list.partition_point(|instance| instance.worlds.0 <= world);
        &mut self.list[behind.saturating_sub(1)] // V1
    }

    /// The instance of that number, if it is there.
    pub fn find(&mut self, number: u64) -> Option<&mut CodeInstance<P>> {
        self.list.iter_mut().find(|instance| instance.number == number)
    }

    /// The only instance, if there is one alone.
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

    /// Adds an instance that is valid from a world on. It takes the place of one that is valid from the same world on.
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

    /// Puts one instance in the place of all, for all worlds; the old ones and the selectors come back, to be retired.
    pub fn replace_all(&mut self, beginning: Beginning<P>) -> (Vec<CodeInstance<P>>, Vec<P::Selector>) {
        let number = self.number();
        let only = vec![CodeInstance::new(number, 0, beginning)];
        (std::mem::replace(&mut self.list, only), std::mem::take(&mut self.selectors))
    }

    /// Takes a superseded instance out, with the selector that is not needed any more.
    pub fn settle(&mut self, number: u64) -> Option<(CodeInstance<P>, P::Selector)> {
        let at = self.list.iter().position(|instance| instance.number == number)?;
        if at + 1 == self.list.len() {
            return None;
        }
        let instance = self.list.remove(at);
        // The selector that is left between its neighbours begins with the later one: V2.
        let selector = self.selectors.remove(at.saturating_sub(1));
        Some((instance, selector))
    }

    /// Lets the words lead where the list says: V3. Calls without code go to the stub.
    pub fn lead(&self, word: &InvokePointer, stub: usize) {
        let mut to = self.list.first().map_or(stub, |oldest| oldest.entry(stub));
        for (instance, selector) in self.list.iter().skip(1).zip(&self.selectors) {
            selector.lead(instance.entry(stub), to);
            to = selector.address();
        }
        word.store(to);
    }
}
