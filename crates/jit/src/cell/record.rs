//! What is behind a cell, and how it changes.
//!
//! Every change is made under the cell's lock: the list of versions first, then the words that lead to them (`Versions::lead`). Code and
//! sources that a change puts out of use are handed out and dropped, or retired, when the lock is free, because their destructors are foreign.
//!
//! Compiling holds no lock. A version that was replaced while its code was made does not get it: the number of the version tells.

use std::any::Any;
use std::error::Error;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use brolga_codegen::sig::FunctionType;
use brolga_instances::Moving;
use brolga_runtime::{RetiredCode, fenced};

use super::place::Place;
use super::select::Selector;
use super::version::{Added, Beginning, State, Superseded, Version, Versions};
use super::{CellError, IndirectCell, Materialize, Target};
use crate::engine::Jit;
use crate::entry::c_entry::CEntry;
use crate::entry::trampoline::Entry;
use crate::tiering::interpret::{Interpret, Interpreted};
use crate::tiering::tiers::{Counting, Then};

/// A cell and what is behind it.
pub(crate) struct Record {
    pub(super) name: Arc<str>,
    pub(super) ty: Arc<FunctionType>,
    versions: Mutex<Versions>,
    pub(super) place: Place,
    pub(super) c_entry: CEntry,
    #[expect(dead_code, reason = "held so that the stub has somewhere to go")]
    trampoline: Option<Arc<Entry>>,
    pub(super) jit: Jit,
}

/// Code that was behind a cell. It holds its runtime, which therefore lives until a thread that leaves has freed the code.
struct Behind {
    target: Target,
    /// It is freed in front of this.
    #[expect(dead_code, reason = "held so that whoever is short of room waits for it")]
    moving: Moving,
}

impl RetiredCode for Behind {
    fn contains_any(&self, addresses: &[usize]) -> bool {
        self.target.unit.contains_any(addresses)
    }

    fn keeper(&self) -> Option<&dyn Any> {
        Some(&self.target.unit)
    }
}

/// What publishing has put out of use; to be dropped without the lock.
pub(super) struct Before {
    state: State,
    #[expect(dead_code, reason = "dropped without the lock, like the other")]
    interpreted: Option<Interpreted>,
}

/// What a call finds behind a cell.
pub(super) enum Found {
    /// The source of a version, with its number.
    Source(Arc<dyn Materialize>, u64),
    Code(usize),
    Closed,
}

/// A thread that asks for code.
struct Asking<'a>(&'a Record);

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        self.0.lock().asking -= 1;
    }
}

impl Record {
    pub(super) fn new(
        jit: &Jit,
        ty: Arc<FunctionType>,
        place: Place,
        mut beginning: Beginning,
        trampoline: Option<Arc<Entry>>,
    ) -> Arc<Record> {
        if let Then::Enter = beginning.counting.then {
            place.set_counter(beginning.counting.stride());
        }
        let to = trampoline.as_ref().map_or(0, |trampoline| trampoline.address);
        let name: Arc<str> = ty.symbol.as_str().into();
        let versions = Mutex::new(Versions::new(jit, beginning));
        let (c_entry, jit) = (CEntry::default(), jit.clone());
        let mut record = Arc::new(Record { name, ty, versions, place, c_entry, trampoline, jit });
        let address = Arc::as_ptr(&record).expose_provenance();
        if let Some(record) = Arc::get_mut(&mut record) {
            record.place.set_data(address, to);
        }
        record
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Versions> {
        // Nothing panics between the steps of a change.
        self.versions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether calls may go to this code.
    pub(super) fn check(&self, target: &Target) -> Result<(), CellError> {
        let name = || self.name.clone();
        if !self.ty.is_called_like(&target.ty) {
            let (expected, actual) = (self.ty.describe(), target.ty.describe_beside(&self.ty));
            return Err(CellError::Type { name: name(), expected: expected.into(), actual: actual.into() });
        }
        if !target.unit.jit().is(&self.jit) {
            return Err(CellError::OtherEngine { name: name() });
        }
        Ok(())
    }

    /// Lets calls of a version go to code that has been checked.
    #[must_use]
    fn publish(&self, version: &mut Version, target: Target) -> Before {
        (version.rests, version.last) = (false, self.jit.hot().tick());
        let interpreted = if version.recipe.is_none() { version.interpreted.take() } else { None };
        Before { state: std::mem::replace(&mut version.state, State::Ready(target)), interpreted }
    }

    /// Retires what was behind the cell. What it holds is foreign, and its end may come back here: no lock is held.
    /// `moving` counts it since it was there.
    fn let_go(&self, before: State, moving: Moving) {
        if let State::Ready(target) = before {
            self.jit.runtime().retire([Box::new(Behind { target, moving }) as Box<dyn RetiredCode>]);
        }
    }

    /// Puts one version in the place of all, for all worlds.
    pub(super) fn replace_all(&self, beginning: Beginning) {
        self.replace_locked(self.lock(), beginning);
    }

    /// The same, under the lock, which is free afterwards.
    pub(super) fn replace_locked(&self, mut versions: MutexGuard<'_, Versions>, beginning: Beginning) {
        // Whoever is short of room waits for the code from the moment on in which nothing leads to it.
        let moving = self.jit.moving();
        let (before, selectors) = versions.replace_all(&self.jit, beginning);
        versions.lead(&self.place);
        drop(versions);
        for version in before {
            // The other parts of the version are dropped without the lock as well.
            self.let_go(version.state, self.jit.moving());
        }
        drop(moving);
        self.retire_selectors(selectors);
    }

    /// Retires code that the word has led to.
    pub(super) fn retire_target(&self, target: Target) {
        self.let_go(State::Ready(target), self.jit.moving());
    }

    fn retire_selectors(&self, selectors: Vec<Selector>) {
        if !selectors.is_empty() {
            let retired = selectors.into_iter().map(|selector| Box::new(selector) as Box<dyn RetiredCode>);
            self.jit.runtime().retire(retired);
        }
    }

    /// Adds a version for the worlds from `world` on.
    pub(super) fn supersede(
        record: &Arc<Record>,
        selector: Selector,
        world: u64,
        beginning: Beginning,
    ) -> Superseded {
        let mut versions = record.lock();
        let added = versions.add(&record.jit, selector, world, beginning);
        versions.lead(&record.place);
        drop(versions);
        let (number, first, unused) = match added {
            Added::Superseded { number, first } => (Some(number), first, None),
            Added::Replaced(version, selector) => (None, world, Some((version, selector))),
        };
        let (record, worlds) = (record.clone(), (first, world.saturating_sub(1).max(first)));
        let moving = record.jit.moving();
        Superseded { record, number, worlds, unused, moving }
    }

    /// A superseded version that no thread can call any more leaves the cell.
    pub(super) fn settle(&self, number: u64) {
        let mut versions = self.lock();
        let Some((version, selector)) = versions.settle(number) else { return };
        versions.lead(&self.place);
        drop(versions);
        // Every thread that could be in its code has left: the code goes at once. Threads of any world pass the selector.
        drop(version);
        self.retire_selectors(vec![selector]);
    }

    /// The address of the code that calls in a world reach, compiled now if it has to be.
    pub(super) fn materialize(&self, world: u64) -> Result<usize, CellError> {
        loop {
            let (source, number) = match self.find(world) {
                Found::Code(address) => return Ok(address),
                Found::Closed => return Err(CellError::Removed { name: self.name.clone() }),
                Found::Source(source, number) => (source, number),
            };
            let _asking = self.asking();
            let made = self.ask(|| source.materialize());
            // Its end is the source's own code.
            drop(source);
            let mut versions = self.lock();
            let Some(version) = versions.find(number) else {
                // What it was made from is not wanted any more.
                drop(versions);
                drop(made);
                continue;
            };
            if let State::Ready(target) = &version.state {
                let address = target.address;
                drop(versions);
                drop(made);
                return Ok(address);
            }
            let target = made?;
            let address = target.address;
            let before = self.publish(version, target);
            let counter = match version.counting.then {
                Then::Enter => 0,
                _ => version.counting.stride(),
            };
            let is_newest = versions.newest().number == number;
            versions.lead(&self.place);
            if is_newest {
                // Behind the word: whoever asks then is told to go there.
                self.place.set_counter(counter);
            }
            drop(versions);
            drop(before);
            return Ok(address);
        }
    }

    /// Publishes code that nobody has asked for, for the versions that accept what it was made from.
    pub(super) fn provide(&self, made_from: &dyn Any, target: &Target) {
        if self.check(target).is_err() {
            return;
        }
        let mut versions = self.lock();
        let newest = versions.newest().number;
        let (mut before, mut counter) = (Vec::new(), None);
        for version in versions.all() {
            if matches!(&version.state, State::Lazy(source) if source.accepts(made_from)) {
                before.push(self.publish(version, target.clone()));
                counter = (version.number == newest).then(|| version.counting.stride());
            }
        }
        versions.lead(&self.place);
        counter.into_iter().for_each(|counter| self.place.set_counter(counter));
        drop(versions);
        // Sources are foreign, and dropped without the lock.
        drop(before);
    }

    /// What calls in a world reach.
    pub(super) fn find(&self, world: u64) -> Found {
        let mut versions = self.lock();
        let version = versions.at(world);
        let wakes = std::mem::replace(&mut version.rests, false);
        if wakes {
            version.last = self.jit.hot().tick();
        }
        let found = match &version.state {
            State::Ready(target) => Found::Code(target.address),
            State::Lazy(source) => Found::Source(source.clone(), version.number),
            State::Closed => Found::Closed,
        };
        if wakes {
            versions.lead(&self.place);
        }
        found
    }

    /// What was wanted after so many calls or iterations was not to be had: after how many something happens again.
    fn count_again(&self, number: u64, then: Then) {
        let mut versions = self.lock();
        let Some(version) = versions.find(number) else {
            // What was brought is dropped without the lock.
            drop(versions);
            return;
        };
        let mut counting = Counting::new(then, version.counting.count.max(1).saturating_mul(2));
        self.place.set_counter(counting.stride());
        let before = std::mem::replace(&mut version.counting, counting);
        drop(versions);
        drop(before);
    }

    /// Notes that this thread asks for code, until it has put it behind the cell, or let it go.
    fn asking(&self) -> Asking<'_> {
        self.lock().asking += 1;
        Asking(self)
    }

    /// What the source gives, if it fits.
    fn ask(
        &self,
        make: impl FnOnce() -> Result<Target, Box<dyn Error + Send + Sync>>,
    ) -> Result<Target, CellError> {
        let name = || self.name.clone();
        match fenced(make) {
            Ok(Ok(target)) => self.check(&target).map(|()| target),
            Ok(Err(cause)) => Err(CellError::Failed { name: name(), cause: cause.into() }),
            Err(message) => Err(CellError::Panicked { name: name(), message: message.into() }),
        }
    }
}

/// What tiers, loops and the interpreter ask of a cell. It concerns the newest version.
impl IndirectCell {
    /// Notes that the counter has gone below zero; whether the function is to be put into the queue. Not a safepoint.
    pub(crate) fn became_hot(&self) -> bool {
        let mut versions = self.record.lock();
        let newest = versions.newest();
        let awaited = match newest.counting.then {
            Then::Optimise(_) => matches!(newest.state, State::Ready(_)),
            Then::Enter => matches!(newest.state, State::Lazy(_)),
            Then::Nothing => false,
        };
        let (next, wanted) = newest.counting.exhausted();
        self.record.place.set_counter(next);
        awaited && wanted
    }

    /// What serves a call in a world while there is no code.
    pub(crate) fn interprets(&self, world: u64) -> Option<Arc<dyn Interpret>> {
        let mut versions = self.record.lock();
        let version = versions.at(world);
        if !matches!(version.state, State::Lazy(_)) {
            return None;
        }
        version.interpreted.as_mut()?.begin()
    }

    /// A call in a world was served so, which took so many statements: whether the code is to be asked for now.
    pub(crate) fn was_interpreted(&self, world: u64, work: u64) -> bool {
        let mut versions = self.record.lock();
        let version = versions.at(world);
        matches!(version.state, State::Lazy(_))
            && version.interpreted.as_mut().is_some_and(|interpreted| interpreted.served(work))
    }

    /// Whether a loop is to go on in the code behind the cell. Not a safepoint.
    pub(crate) fn leads_on(&self) -> bool {
        let leads = self.is_ready();
        if leads {
            // Every other thread is to ask at its next iteration.
            self.record.place.set_counter(0);
        }
        leads
    }

    /// Compiles what lies behind the cell, for whoever has asked in the queue; whether it has. A loop whose code cannot be had
    /// is not asked for again, unless it may be had later.
    pub(crate) fn compile_asked(&self) -> bool {
        let (Found::Source(source, number), record) = (self.record.find(u64::MAX), &self.record) else {
            return false;
        };
        let Err(error) = record.materialize(u64::MAX) else { return true };
        let then = if error.may_pass(&*source) { Then::Enter } else { Then::Nothing };
        let is_loop = matches!(record.lock().newest().counting.then, Then::Enter);
        if is_loop {
            record.count_again(number, then);
        }
        false
    }

    /// Lets the cell lead to better code; false if there is none to be had any more.
    pub(crate) fn optimise(&self) -> Result<bool, CellError> {
        let record = &self.record;
        let mut versions = record.lock();
        let newest = versions.newest();
        let number = newest.number;
        // What has been replaced since it became hot is another function, which has to become hot itself.
        if !matches!(newest.state, State::Ready(_)) {
            return Ok(false);
        }
        let Then::Optimise(tiers) = std::mem::replace(&mut newest.counting.then, Then::Nothing) else {
            return Ok(false);
        };
        drop(versions);
        let _asking = record.asking();
        let target = match record.ask(|| tiers.optimise()) {
            Ok(target) => target,
            Err(error) => {
                if error.may_pass(&*tiers) {
                    record.count_again(number, Then::Optimise(tiers));
                }
                return Err(error);
            }
        };
        drop(tiers);
        let mut versions = record.lock();
        let Some(version) = versions.find(number).filter(|version| matches!(version.state, State::Ready(_)))
        else {
            drop(versions);
            drop(target);
            return Ok(false);
        };
        let moving = record.jit.moving();
        let before = record.publish(version, target);
        versions.lead(&record.place);
        drop(versions);
        record.let_go(before.state, moving);
        Ok(true)
    }
}
