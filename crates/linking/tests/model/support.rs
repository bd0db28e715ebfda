//! Shared parts of the tests: plain parts for the bare machine, random numbers, a target for sessions,
//! hand-driven units.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use brolga_linking::machine::Parts;
use brolga_linking::{
    AtOpening, Dispatcher, Dylib, Error, Failure, InPlace, MaterializationUnit, Name, PlainHost,
    Responsibility, Session, Symbol, SymbolFlags, Target, Unit, unit,
};

/// Parts that are numbers.
pub(crate) struct Plain;

impl Parts for Plain {
    type Address = u64;
    type Code = u64;
    type Source = u64;
    type Generator = u64;
    type Ticket = u64;
    type Board = ();
}

/// Random numbers from a seed.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16
    }

    /// A number below `end`.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        (self.next() % end.max(1) as u64) as usize
    }

    /// True once in `n` times.
    pub(crate) fn once_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    pub(crate) fn pick<T: Copy>(&mut self, from: &[T]) -> Option<T> {
        (!from.is_empty()).then(|| from[self.below(from.len())])
    }

    pub(crate) fn shuffle<T>(&mut self, items: &mut [T]) {
        for end in (1..items.len()).rev() {
            let other = self.below(end + 1);
            items.swap(end, other);
        }
    }
}

/// A target whose code counts how often it was returned.
pub(crate) struct Words;

impl Target for Words {
    type Address = u64;
    type Code = Owned;
}

/// Code that counts its drops.
pub(crate) struct Owned(pub(crate) Arc<AtomicUsize>);

impl Drop for Owned {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

pub(crate) const E: SymbolFlags = SymbolFlags::EXPORTED;

pub(crate) fn weak_flag() -> SymbolFlags {
    E | SymbolFlags::WEAK
}

/// A session that runs tasks in place, with one dylib.
pub(crate) fn in_place() -> (Session<Words>, Dylib<Words>) {
    with(Arc::new(InPlace::new()))
}

pub(crate) fn with(dispatcher: Arc<dyn Dispatcher>) -> (Session<Words>, Dylib<Words>) {
    let session = Session::new(dispatcher, Box::new(PlainHost));
    let main = session.create_dylib("main").expect("a dylib");
    (session, main)
}

/// Responsibilities that tests handle themselves.
pub(crate) type Kept = Arc<Mutex<Vec<Responsibility<Words>>>>;

/// A unit whose responsibility is put into `kept`.
pub(crate) fn keep(symbols: &[(Symbol, SymbolFlags)], kept: &Kept) -> Unit<Words> {
    let kept = Arc::clone(kept);
    unit(symbols.to_vec(), move |responsibility| kept.lock().expect("kept").push(responsibility))
}

pub(crate) fn take(kept: &Kept) -> Responsibility<Words> {
    kept.lock().expect("kept").pop().expect("a responsibility was taken")
}

/// A unit that is made immediately, with addresses, and needs nothing.
pub(crate) fn made(symbols: &[(Symbol, SymbolFlags, u64)]) -> Unit<Words> {
    let addresses: Vec<(Symbol, u64)> =
        symbols.iter().map(|(symbol, _, address)| (*symbol, *address)).collect();
    let flags: Vec<(Symbol, SymbolFlags)> =
        symbols.iter().map(|(symbol, flags, _)| (*symbol, *flags)).collect();
    unit(flags, move |responsibility| {
        // Symbols that gave way to others no longer concern the unit.
        let own = responsibility.symbols().expect("in force");
        let left =
            addresses.iter().copied().filter(|(symbol, _)| own.iter().any(|(known, _)| known == symbol));
        let left: Vec<(Symbol, u64)> = left.collect();
        responsibility.resolve(left).expect("resolved").emit([]).expect("emitted");
    })
}

/// A unit that must not be run; reports its drop and its lost symbols.
pub(crate) struct Never {
    pub(crate) symbols: Vec<(Symbol, SymbolFlags)>,
    pub(crate) initializer: Option<Symbol>,
    pub(crate) lost: Arc<Mutex<Vec<Symbol>>>,
    pub(crate) dropped: Arc<AtomicUsize>,
}

impl Never {
    pub(crate) fn new(symbols: &[(Symbol, SymbolFlags)]) -> Never {
        Never { symbols: symbols.to_vec(), initializer: None, lost: Arc::default(), dropped: Arc::default() }
    }

    pub(crate) fn unit(self) -> Unit<Words> {
        let unit: Box<dyn MaterializationUnit<Words>> = Box::new(self);
        unit.into()
    }
}

impl Drop for Never {
    fn drop(&mut self) {
        self.dropped.fetch_add(1, Ordering::SeqCst);
    }
}

impl MaterializationUnit<Words> for Never {
    fn symbols(&self) -> Vec<(Symbol, SymbolFlags)> {
        self.symbols.clone()
    }

    fn initializer(&self) -> Option<AtOpening> {
        self.initializer.map(AtOpening::from)
    }

    fn discard(&mut self, symbol: Symbol) {
        self.lost.lock().expect("lost").push(symbol);
    }

    fn materialize(self: Box<Self>, responsibility: Responsibility<Words>) {
        responsibility.fail("this unit must not be run");
    }
}

pub(crate) fn count(counter: &AtomicUsize) -> usize {
    counter.load(Ordering::SeqCst)
}

/// The symbols' texts.
pub(crate) fn texts(names: &[Name]) -> Vec<String> {
    names.iter().map(|name| name.symbol.to_string()).collect()
}

/// The failure in `result`.
pub(crate) fn failure<V>(result: Result<V, Error>) -> Arc<Failure> {
    match result {
        Err(Error::Failed(failure)) => failure,
        Err(other) => panic!("another error: {other}"),
        Ok(_) => panic!("no error"),
    }
}
