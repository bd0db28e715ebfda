//! The content of a cell, and its changes.
//!
//! Every change is made under the cell's lock: the list of code instances first, then the words that lead to them
//! ([`Record::lead`]). Code and sources that a change makes unused are returned, and dropped or retired without the lock,
//! because their destructors are foreign.
//!
//! | row | operation | order | pairs with | without it |
//! |---|---|---|---|---|
//! | N1 | store whether the newest instance is ready; `mod.rs` loads it | Relaxed | – | nothing: a caller reads the word (C2 of `brolga_instances::invoke`) |
//!
//! Compiling holds no lock. An instance that was replaced while its code was made does not get the code: its number has changed.

use std::any::Any;
use std::error::Error;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use brolga_codegen::sig::FunctionType;
use brolga_instances::{Instances, Moving, Tier};
use brolga_runtime::{RetiredCode, fenced};

use super::instance::{Beginning, Content, Instance, State};
use super::materialize::{Materialize, Target};
use super::place::Place;
use super::select::Selector;
use super::{CellError, IndirectCell};
use crate::engine::Jit;
use crate::entry::c_entry::CEntry;
use crate::entry::trampoline::Entry;
use crate::tiering::counting::{Counting, Then};
use crate::tiering::interpreter::Interpret;

/// A cell and its content.
pub(crate) struct Record {
    pub(super) name: Arc<str>,
    pub(super) ty: Arc<FunctionType>,
    content: Mutex<Content>,
    /// Whether the newest code instance is ready. Written with the words.
    pub(super) is_ready: AtomicBool,
    pub(super) place: Place,
    pub(super) c_entry: CEntry,
    #[expect(dead_code, reason = "held so that the stub has somewhere to go")]
    trampoline: Option<Arc<Entry>>,
    pub(super) jit: Jit,
}

/// Former code of a cell. It holds its runtime, which therefore lives until a thread that leaves has freed the code.
struct Retired {
    target: Target,
    /// It is freed before this.
    #[expect(dead_code, reason = "held so that whoever is short of room waits for it")]
    moving: Moving,
}

impl RetiredCode for Retired {
    fn contains_any(&self, addresses: &[usize]) -> bool {
        self.target.unit().contains_any(addresses)
    }

    fn keeper(&self) -> Option<&dyn Any> {
        Some(self.target.unit())
    }
}

/// The result of a call's look-up in a cell.
pub(super) enum Found {
    /// The source of an instance, with its number.
    Source(Arc<dyn Materialize>, u64),
    Code(usize),
    Closed,
}

/// A thread that requests code.
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
        if let Then::Enter = beginning.profile.then {
            place.set_counter(beginning.profile.stride());
        }
        let to = trampoline.as_ref().map_or(0, |trampoline| trampoline.address);
        let name: Arc<str> = ty.symbol.as_str().into();
        let content = Mutex::new(Content { instances: Instances::new(beginning), asking: 0 });
        let (c_entry, jit, is_ready) = (CEntry::default(), jit.clone(), AtomicBool::new(false));
        let mut record = Arc::new(Record { name, ty, content, is_ready, place, c_entry, trampoline, jit });
        let address = Arc::as_ptr(&record).expose_provenance();
        if let Some(record) = Arc::get_mut(&mut record) {
            record.place.set_data(address, to);
        }
        record
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Content> {
        // Nothing panics between the steps of a change.
        self.content.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Updates the words from the list.
    pub(super) fn lead(&self, content: &mut Content) {
        content.instances.lead(self.place.invoke_pointer(), self.place.stub());
        self.is_ready.store(content.instances.newest().code().is_some(), Ordering::Relaxed); // N1
    }

    /// Whether calls may go to this code.
    pub(super) fn check(&self, target: &Target) -> Result<(), CellError> {
        let name = || self.name.clone();
        if !self.ty.is_called_like(target.ty()) {
            let (expected, actual) = (self.ty.describe(), target.ty().describe_beside(&self.ty));
            return Err(CellError::Type { name: name(), expected: expected.into(), actual: actual.into() });
        }
        if !target.unit().jit().is(&self.jit) {
            return Err(CellError::OtherEngine { name: name() });
        }
        Ok(())
    }

    /// Directs calls of an instance to its first code, which has been checked. The caller drops the previous content without
    /// the lock.
    #[must_use]
    fn publish(&self, instance: &mut Instance, target: Target) -> State {
        let goes_up = matches!(instance.profile.then, Then::Optimise(_));
        let tier = if goes_up { Tier::Baseline } else { Tier::Optimised };
        instance.publish(target, tier, self.jit.upgrades().tick())
    }

    /// Retires the previous content of the cell. It holds foreign values, whose destructors may come back here: no lock is
    /// held. `moving` has counted it since it became unused.
    fn let_go(&self, before: State, moving: Moving) {
        if let State::Ready(target) = before {
            self.jit.runtime().retire([Box::new(Retired { target, moving }) as Box<dyn RetiredCode>]);
        }
    }

    /// Replaces all instances by one, for all worlds: the function is closed, redefined or given other code for running
    /// frames as well.
    pub(super) fn replace_all(&self, beginning: Beginning) {
        self.replace_locked(self.lock(), beginning);
    }

    /// The same, under the lock, which is free afterwards.
    pub(super) fn replace_locked(&self, mut content: MutexGuard<'_, Content>, beginning: Beginning) {
        // A thread that is short of room waits for the code from the moment on at which it is unreachable.
        let moving = self.jit.moving();
        let (before, selectors) = content.instances.replace_all(beginning);
        self.lead(&mut content);
        drop(content);
        for instance in before {
            // The other parts of the instance are dropped without the lock as well.
            self.let_go(instance.into_state(), self.jit.moving());
        }
        drop(moving);
        self.retire_selectors(selectors);
    }

    /// Retires former code of the word.
    pub(super) fn retire_target(&self, target: Target) {
        self.let_go(State::Ready(target), self.jit.moving());
    }

    pub(super) fn retire_selectors(&self, selectors: Vec<Selector>) {
        if !selectors.is_empty() {
            let retired = selectors.into_iter().map(|selector| Box::new(selector) as Box<dyn RetiredCode>);
            self.jit.runtime().retire(retired);
        }
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
            // Its destructor is the source's own code.
            drop(source);
            let mut content = self.lock();
            let Some(instance) = content.instances.find(number) else {
                // The source is no longer needed.
                drop(content);
                drop(made);
                continue;
            };
            if let Some(target) = instance.code() {
                let address = target.address();
                drop(content);
                drop(made);
                return Ok(address);
            }
            let target = made?;
            let address = target.address();
            let before = self.publish(instance, target);
            let counter = match instance.profile.then {
                Then::Enter => 0,
                _ => instance.profile.stride(),
            };
            let is_newest = content.instances.newest().number() == number;
            self.lead(&mut content);
            if is_newest {
                // After the word: a later query gets this address.
                self.place.set_counter(counter);
            }
            drop(content);
            drop(before);
            return Ok(address);
        }
    }

    /// Publishes code that was not requested, for the instances that accept what it was made from.
    pub(super) fn provide(&self, made_from: &dyn Any, target: &Target) {
        if self.check(target).is_err() {
            return;
        }
        let mut content = self.lock();
        let newest = content.instances.newest().number();
        let (mut before, mut counter) = (Vec::new(), None);
        for instance in content.instances.all() {
            if instance.source().is_some_and(|source| source.accepts(made_from)) {
                before.push(self.publish(instance, target.clone()));
                counter = (instance.number() == newest).then(|| instance.profile.stride());
            }
        }
        self.lead(&mut content);
        counter.into_iter().for_each(|counter| self.place.set_counter(counter));
        drop(content);
        // Sources are foreign, and dropped without the lock.
        drop(before);
    }

    /// The target of calls in a world.
    pub(super) fn find(&self, world: u64) -> Found {
        let mut content = self.lock();
        let instance = content.instances.at(world);
        let wakes = std::mem::replace(&mut instance.rests, false);
        if wakes {
            instance.last_use = self.jit.upgrades().tick();
        }
        let found = match instance.state() {
            State::Ready(target) => Found::Code(target.address()),
            State::Lazy(source) | State::Interpreted(source, _) => {
                Found::Source(source.clone(), instance.number())
            }
            State::Closed => Found::Closed,
        };
        if wakes {
            self.lead(&mut content);
        }
        found
    }

    /// Sets the next limit after a tier-up or continuation failed: it is tried again after that many calls or iterations.
    fn count_again(&self, number: u64, then: Then) {
        let mut content = self.lock();
        let Some(instance) = content.instances.find(number) else {
            // An unused answer is dropped without the lock.
            drop(content);
            return;
        };
        let mut counting = Counting::new(then, instance.profile.count.max(1).saturating_mul(2));
        self.place.set_counter(counting.stride());
        let before = std::mem::replace(&mut instance.profile, counting);
        drop(content);
        drop(before);
    }

    /// Records that this thread requests code, until it has published or dropped the code.
    fn asking(&self) -> Asking<'_> {
        self.lock().asking += 1;
        Asking(self)
    }

    /// The source's code, if it has the cell's type.
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

/// The interface of tiers, loops and the interpreter to a cell. It concerns the newest code instance.
impl IndirectCell {
    /// Notes that the counter has gone below zero; whether the function is to be put into the queue. Not a safepoint.
    pub(crate) fn became_hot(&self) -> bool {
        let mut content = self.record.lock();
        let newest = content.instances.newest();
        let awaited = match newest.profile.then {
            Then::Optimise(_) => newest.code().is_some(),
            Then::Enter => newest.source().is_some(),
            Then::Nothing => false,
        };
        let (next, wanted) = newest.profile.exhausted();
        self.record.place.set_counter(next);
        awaited && wanted
    }

    /// The interpreter of a call in a world while there is no code.
    pub(crate) fn interprets(&self, world: u64) -> Option<Arc<dyn Interpret>> {
        self.record.lock().instances.at(world).interpreter()?.begin()
    }

    /// Records a call in a world that the interpreter served, and its number of statements; whether the code is to be
    /// requested now.
    pub(crate) fn was_interpreted(&self, world: u64, work: u64) -> bool {
        let mut content = self.record.lock();
        content.instances.at(world).interpreter().is_some_and(|interpreted| interpreted.served(work))
    }

    /// Whether a loop is to continue in the code of the cell. Not a safepoint.
    pub(crate) fn leads_on(&self) -> bool {
        let leads = self.is_ready();
        if leads {
            // Every other thread checks again at its next iteration.
            self.record.place.set_counter(0);
        }
        leads
    }

    /// Compiles the cell's code, for the requests in the queue; whether it has. The code of a loop is not requested again
    /// after a failure, unless it may succeed later.
    pub(crate) fn compile_asked(&self) -> bool {
        let (Found::Source(source, number), record) = (self.record.find(u64::MAX), &self.record) else {
            return false;
        };
        let Err(error) = record.materialize(u64::MAX) else { return true };
        let then = if error.may_pass(&*source) { Then::Enter } else { Then::Nothing };
        let is_loop = matches!(record.lock().instances.newest().profile.then, Then::Enter);
        if is_loop {
            record.count_again(number, then);
        }
        false
    }

    /// Directs the cell to better code; false if none can be made any more.
    pub(crate) fn optimise(&self) -> Result<bool, CellError> {
        let record = &self.record;
        let mut content = record.lock();
        let newest = content.instances.newest();
        let number = newest.number();
        // A function that has been replaced since it became hot is another one, which has to become hot itself.
        if newest.code().is_none() {
            return Ok(false);
        }
        let Then::Optimise(tiers) = std::mem::replace(&mut newest.profile.then, Then::Nothing) else {
            return Ok(false);
        };
        drop(content);
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
        let mut content = record.lock();
        let Some(instance) = content.instances.find(number).filter(|instance| instance.code().is_some())
        else {
            drop(content);
            drop(target);
            return Ok(false);
        };
        let moving = record.jit.moving();
        let before = instance.publish(target, Tier::Optimised, record.jit.upgrades().tick());
        record.lead(&mut content);
        drop(content);
        record.let_go(before, moving);
        Ok(true)
    }
}
