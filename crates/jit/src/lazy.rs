//! Functions behind slots: compiled when they are called first, replaced while they are called.
//!
//! ```text
//!   SlotOwner ── one for each function: what is behind the slot; dropping it removes the function
//!       │ slot()
//!       ▼
//!   Slot ────── for callers: units that call the function keep it, and Rust calls through it
//!
//!          first call, or `Slot::materialize`: source.materialize() gives code
//!        Lazy, word = stub ──────────────────────────────────────────────────► Ready, word = code
//!         ▲      │                                                              │      │
//!         │      ▼ the owner goes                           set(code) ──────────┘      │
//!         │     Gone, word = stub                                                      │
//!         └────────────── reset(source); demote, with the source that it had ──────────┘
//! ```
//!
//! A stub's trampoline (`codegen/src/lazy.rs`) calls `brolga_materialize`, which finds the record and does what its state says;
//! in a region in which collections go on without the thread, with no lock held while the source works.
//!
//! **Nobody waits here.** Threads that call first at the same time all ask the source; what the first of them is given is
//! published, and the others go there. To compile once is the source's affair, and so is waiting for whoever compiles, because
//! the source alone knows who runs what it waits for: with one worker, or with compilations that call what is not compiled, a
//! lock here would hang. A source whose answer needs itself has to say so by an error. What it refuses is thrown as
//! `CompileError` with the cause; the next call asks again.
//!
//! A thread that is low on stack has the compiling done on a new thread and waits for it. A panic of the source is caught.
//!
//! **Who keeps what alive.** A unit keeps the slots that its code names. A slot keeps the code that it leads to; when it leads
//! elsewhere, or the function is removed, the code is retired (`retired.rs` of the run time): it goes when the threads have left
//! that were in compiled code then. So functions that call each other through slots go when their owners go. A function that is always the same
//! until it is removed needs less than a slot: a gate (`gates.rs`).
//!
//! **Locks**: a record's state, which is held while nothing foreign runs.
//!
//! Cost: beside compiling, a first call takes about 1 µs; a later call is a load more than a direct one.

mod demote;

use std::any::Any;
use std::error::Error;
use std::panic::resume_unwind;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use brolga_codegen::lazy::{MATERIALIZE, can_be_interpreted};
use brolga_codegen::sig::FunctionType;
use brolga_instances::Moving;
use brolga_runtime::{ExceptionKind, RetiredCode, Thread, fenced};

use crate::code_memory::CodeMemoryError;
use crate::cold::{Cold, Interpret, Interpreted};
use crate::engine::{Jit, Unit};
use crate::entry::{Entry, EntryError};
use crate::slots::{Place, record_of_cell, record_of_counter};
use crate::tiers::{Counting, LoopEntry, Then, Tiers};
use demote::Again;
pub use demote::Held;

/// A source works on a thread with less stack than this only if it cannot have another.
const STACK_TO_COMPILE: usize = 1 << 20;
/// How many causes of an error are said when it is thrown, beside the root.
const CAUSES_SAID: u32 = 8;
/// The stack of a thread that compiles for another.
const HELPER_STACK: usize = 8 << 20;

/// Runs work that another thread waits for.
pub type Elsewhere = Box<dyn FnOnce(&mut dyn FnMut()) + Send>;

/// Makes the code of a function when it is called first.
pub trait Materialize: Send + Sync {
    /// The code. Called on a thread that wants to call the function, or one that compiles ahead; on several at a time when they
    /// come together, and again after an error, or when the code was given up ([`SlotOwner::demote`]).
    fn materialize(&self) -> Result<Target, Box<dyn Error + Send + Sync>>;

    /// Whether what it has refused by this error may be had later. A call asks again in any case; a function that was hot, or a loop, asks
    /// again after twice as many calls, or rounds, if it may.
    fn may_pass(&self, error: &(dyn Error + Send + Sync + 'static)) -> bool {
        let _ = error;
        false
    }

    /// What is to be around a call of [`Materialize::materialize`] on another thread, for which this one waits: it runs what it is
    /// given, once.
    fn elsewhere(&self) -> Elsewhere {
        Box::new(|work| work())
    }
}

/// Code that a slot can lead to. It keeps its unit.
#[derive(Clone, Debug)]
pub struct Target {
    address: usize,
    ty: Arc<FunctionType>,
    unit: Unit,
}

impl Target {
    /// The unit that the code is in.
    pub fn unit(&self) -> &Unit {
        &self.unit
    }

    pub(crate) fn address(&self) -> usize {
        self.address
    }

    pub(crate) fn ty(&self) -> &Arc<FunctionType> {
        &self.ty
    }
}

impl Unit {
    /// The function of that name, for a slot to lead to.
    pub fn target(&self, name: &str) -> Option<Target> {
        let ty = self.shared_ty(name)?;
        let address = self.loaded().function(&ty.symbol)?;
        Some(Target { address, ty: ty.clone(), unit: self.clone() })
    }
}

/// Why a function behind a slot cannot be called.
#[derive(thiserror::Error, Clone, Debug)]
pub enum SlotError {
    /// Its source gave an error.
    #[error("cannot compile `{name}`: {cause}")]
    Failed {
        /// The function.
        name: Arc<str>,
        /// The source's error.
        cause: Arc<dyn Error + Send + Sync>,
    },
    /// Its source panicked. A defect of the source.
    #[error("cannot compile `{name}`: the compiler panicked: {message}")]
    Panicked {
        /// The function.
        name: Arc<str>,
        /// What the panic said.
        message: Arc<str>,
    },
    /// What is to be behind the slot has another type.
    #[error("`{name}` is {expected}, and the code is {actual}")]
    Type {
        /// The function.
        name: Arc<str>,
        /// The slot's type.
        expected: Arc<str>,
        /// The code's.
        actual: Arc<str>,
    },
    /// What is to be behind the slot belongs to another engine.
    #[error("the code for `{name}` belongs to another engine")]
    OtherEngine {
        /// The function.
        name: Arc<str>,
    },
    /// The function is no longer there.
    #[error("`{name}` has been removed")]
    Removed {
        /// The function.
        name: Arc<str>,
    },
}

impl SlotError {
    /// Whether what the source has refused may be had later.
    fn may_pass(&self, source: &(impl Materialize + ?Sized)) -> bool {
        matches!(self, SlotError::Failed { cause, .. } if source.may_pass(&**cause))
    }
}

/// Why there is no slot.
#[derive(thiserror::Error, Debug)]
pub enum NoSlot {
    /// There is no memory for it.
    #[error(transparent)]
    Memory(#[from] CodeMemoryError),
    /// There is no trampoline for the signature.
    #[error(transparent)]
    Entry(#[from] EntryError),
}

impl NoSlot {
    /// Whether freeing units can help.
    pub fn is_shortage(&self) -> bool {
        match self {
            NoSlot::Memory(error) => error.is_shortage(),
            NoSlot::Entry(error) => error.is_shortage(),
        }
    }
}

/// Code that was behind a slot. It holds its runtime, which therefore lives until a thread that leaves has freed the code.
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

/// What is behind a slot.
enum State {
    Lazy(Arc<dyn Materialize>),
    Ready(Target),
    Gone,
}

/// What publishing has put out of use; to be dropped without the lock.
struct Before {
    state: State,
    #[expect(dead_code, reason = "dropped without the lock, like the other")]
    cold: Option<Interpreted>,
}

/// What a call finds behind a slot.
enum Found {
    Source(Arc<dyn Materialize>, u64),
    Code(usize),
    Gone,
}

struct Inside {
    state: State,
    /// Changes when somebody replaces what is behind the slot: what is being compiled then is not wanted any more.
    version: u64,
    /// The number of the change that decided last what is behind the slot, if changes come with numbers.
    turn: u64,
    /// What happens after how many entries, or rounds.
    counting: Counting,
    /// What serves calls while there is no code. Kept behind that only where code may be given up.
    cold: Option<Interpreted>,
    /// How to begin anew when the code is given up; `None` if that cannot be.
    again: Option<Again>,
    /// When the code was made, or called through the stub, last.
    last: u64,
    /// Whether the word leads to the stub although there is code.
    rests: bool,
    /// How many threads ask for code.
    asking: u32,
}

impl Inside {
    /// What is behind a slot from the beginning. Sources are kept only where code may be given up.
    fn new(jit: &Jit, state: State, counting: Counting, cold: Option<Cold>) -> Inside {
        let again = if jit.gives_up() { Again::of(&state, &counting) } else { None };
        Inside {
            state,
            version: 0,
            turn: 0,
            counting,
            cold: cold.map(Interpreted::new),
            again,
            last: 0,
            rests: false,
            asking: 0,
        }
    }
}

/// A slot and what is behind it.
struct Record {
    name: Arc<str>,
    ty: Arc<FunctionType>,
    inside: Mutex<Inside>,
    place: Place,
    #[expect(dead_code, reason = "held so that the stub has somewhere to go")]
    trampoline: Option<Arc<Entry>>,
    jit: Jit,
}

/// The right to decide what is behind a slot. Dropping it removes the function: calls throw `CompileError`.
pub struct SlotOwner {
    record: Arc<Record>,
}

/// A function that is called through its slot. Clones share it.
#[derive(Clone)]
pub struct Slot {
    record: Arc<Record>,
}

/// A slot that may be gone.
pub(crate) struct WeakSlot(Weak<Record>);

impl WeakSlot {
    pub(crate) fn upgrade(&self) -> Option<Slot> {
        self.0.upgrade().map(|record| Slot { record })
    }
}

/// The slot that a counter belongs to.
///
/// # Safety
///
/// The address is that of a counter, as code is linked with it, and somebody keeps its slot.
pub(crate) unsafe fn slot_of_counter(counter: usize) -> Slot {
    // SAFETY: by the contract.
    Slot { record: unsafe { record_at(record_of_counter(counter)) } }
}

/// The slot that a cell belongs to.
///
/// # Safety
///
/// The address is that of a cell, as stubs leave it in the thread, and somebody keeps its slot.
pub(crate) unsafe fn slot_of_cell(cell: usize) -> Slot {
    // SAFETY: by the contract.
    Slot { record: unsafe { record_at(record_of_cell(cell)) } }
}

/// The record at an address.
///
/// # Safety
///
/// A cell has it, and somebody keeps the slot.
unsafe fn record_at(address: usize) -> Arc<Record> {
    let record = std::ptr::with_exposed_provenance::<Record>(address);
    // SAFETY: the address is that of the contents of an `Arc`, which is held elsewhere.
    unsafe {
        Arc::increment_strong_count(record);
        Arc::from_raw(record)
    }
}

/// Finds the slots that a unit's code names.
pub trait FindSlot {
    /// The slot of a function, or why there is none.
    fn slot(&self, name: &str) -> Result<Slot, String>;
}

impl Jit {
    /// A slot for a function of this type, which `source` compiles when it is called first. The type's symbol is the name under
    /// which callers know it.
    pub fn slot(
        &self,
        ty: impl Into<Arc<FunctionType>>,
        source: Arc<dyn Materialize>,
    ) -> Result<SlotOwner, NoSlot> {
        SlotOwner::new(self, ty.into(), source, Counting::new(Then::Nothing, 0), None)
    }
}

impl SlotOwner {
    pub(crate) fn new(
        jit: &Jit,
        ty: Arc<FunctionType>,
        source: Arc<dyn Materialize>,
        counting: Counting,
        cold: Option<Cold>,
    ) -> Result<SlotOwner, NoSlot> {
        // What replaces the function may be interpreted, whether this one is or not.
        let may_be_cold = !matches!(counting.then, Then::Nothing) && can_be_interpreted(&ty.signature);
        let trampoline = jit.lazy_entry(&ty.signature, may_be_cold)?;
        Ok(SlotOwner::at(jit, ty, source, counting, cold, Some(trampoline))?)
    }

    /// The slot of a loop's entry. Its stub leads nowhere: nobody may call through it but the loop, when the code is there.
    pub(crate) fn of_loop(jit: &Jit, entry: LoopEntry) -> Result<SlotOwner, CodeMemoryError> {
        let LoopEntry { ty, source, rounds, .. } = entry;
        let rounds = i32::try_from(rounds).unwrap_or(i32::MAX);
        SlotOwner::at(jit, ty, source, Counting::new(Then::Enter, rounds), None, None)
    }

    fn at(
        jit: &Jit,
        ty: Arc<FunctionType>,
        source: Arc<dyn Materialize>,
        mut counting: Counting,
        cold: Option<Cold>,
        trampoline: Option<Arc<Entry>>,
    ) -> Result<SlotOwner, CodeMemoryError> {
        let place = jit.take_slot()?;
        if let Then::Enter = counting.then {
            place.set_counter(counting.stride());
        }
        let trampoline_address = trampoline.as_ref().map_or(0, |trampoline| trampoline.address);
        let inside = Inside::new(jit, State::Lazy(source), counting, cold);
        let name: Arc<str> = ty.symbol.as_str().into();
        let inside = Mutex::new(inside);
        let mut record = Arc::new(Record { name, ty, inside, place, trampoline, jit: jit.clone() });
        let address = Arc::as_ptr(&record).expose_provenance();
        if let Some(record) = Arc::get_mut(&mut record) {
            record.place.set_cell(address, trampoline_address);
        }
        Ok(SlotOwner { record })
    }

    /// The slot, for those who call.
    pub fn slot(&self) -> Slot {
        Slot { record: self.record.clone() }
    }

    /// A word that no other slot has as long as somebody has this one; no code lies there.
    pub fn identity(&self) -> usize {
        Arc::as_ptr(&self.record).addr()
    }

    /// Lets every call from now on go to this code. What is being compiled for the slot is not wanted any more.
    pub fn set(&self, target: Target) -> Result<(), SlotError> {
        self.record.check(&target)?;
        let mut inside = self.record.lock();
        inside.version += 1;
        let counting = std::mem::replace(&mut inside.counting, Counting::new(Then::Nothing, 0));
        let again = inside.again.take();
        let moving = self.record.jit.moving();
        let before = self.record.publish(&mut inside, target);
        drop(inside);
        drop((counting, again));
        self.record.let_go(before.state, moving);
        Ok(())
    }

    /// Removes the function, as dropping the owner does, until something is put behind the slot again.
    pub fn remove(&self) {
        self.record.close(None, State::Gone, Counting::new(Then::Nothing, 0), None);
    }

    /// Lets the next call compile anew. Calls that have begun go on in the old code.
    pub fn reset(&self, source: Arc<dyn Materialize>) {
        self.record.close(None, State::Lazy(source), Counting::new(Then::Nothing, 0), None);
    }

    /// As [`SlotOwner::reset`], by a change that has this number: one that comes late, behind one with a higher number, is left out.
    pub fn reset_in_turn(&self, turn: u64, source: Arc<dyn Materialize>) {
        self.record.close(Some(turn), State::Lazy(source), Counting::new(Then::Nothing, 0), None);
    }

    /// As [`SlotOwner::reset_in_turn`], for a function that is compiled in two tiers: the second after `threshold` entries.
    /// It is interpreted before, if `cold` says how and the slot was made for a function in tiers.
    pub fn reset_tiered_in_turn(&self, turn: u64, tiers: Arc<dyn Tiers>, threshold: i32, cold: Option<Cold>) {
        let counting = Counting::new(Then::Optimise(tiers.clone()), threshold);
        self.record.close(Some(turn), State::Lazy(tiers), counting, cold);
    }
}

/// A function whose calls are switched between several bodies, by one store each time. Dropping it leaves what was chosen last.
pub struct Switch<'a> {
    record: &'a Record,
    targets: Vec<Target>,
    chosen: usize,
}

impl SlotOwner {
    /// Prepares to let calls go to one of these, or another, as often as one likes: first to the first. Meanwhile nothing else
    /// changes what is behind the slot. Nothing if there are no targets.
    pub fn switch(&mut self, targets: Vec<Target>) -> Result<Option<Switch<'_>>, SlotError> {
        let record = &*self.record;
        for target in &targets {
            record.check(target)?;
        }
        let Some(first) = targets.first().cloned() else { return Ok(None) };
        self.set(first)?;
        Ok(Some(Switch { record: &self.record, targets, chosen: 0 }))
    }
}

impl Switch<'_> {
    /// Lets every call from now on go to the target of that number; false if there is none. Calls that have begun go on.
    pub fn set(&mut self, number: usize) -> bool {
        let Some(target) = self.targets.get(number) else { return false };
        self.record.place.set(target.address);
        self.chosen = number;
        true
    }
}

impl Drop for Switch<'_> {
    fn drop(&mut self) {
        let chosen = self.targets.swap_remove(self.chosen);
        let mut inside = self.record.lock();
        let moving = self.record.jit.moving();
        let before = self.record.publish(&mut inside, chosen);
        drop(inside);
        self.record.let_go(before.state, moving);
        for target in self.targets.drain(..) {
            self.record.let_go(State::Ready(target), self.record.jit.moving());
        }
    }
}

impl Drop for SlotOwner {
    fn drop(&mut self) {
        self.remove();
    }
}

impl Slot {
    /// The name under which callers know the function.
    pub fn name(&self) -> &str {
        &self.record.name
    }

    /// The function's type.
    pub fn ty(&self) -> &FunctionType {
        &self.record.ty
    }

    /// The engine that it belongs to.
    pub fn jit(&self) -> &Jit {
        &self.record.jit
    }

    /// Compiles the function unless it is compiled, as its first call would.
    pub fn materialize(&self) -> Result<(), SlotError> {
        self.record.materialize().map(|_| ())
    }

    /// Whether a call would find code.
    pub fn is_ready(&self) -> bool {
        matches!(self.record.lock().state, State::Ready(_))
    }

    /// Notes that the counter has gone below zero; whether the function is to be put into the queue. Not a safepoint.
    pub(crate) fn became_hot(&self) -> bool {
        let mut inside = self.record.lock();
        let awaited = match inside.counting.then {
            Then::Optimise(_) => matches!(inside.state, State::Ready(_)),
            Then::Enter => matches!(inside.state, State::Lazy(_)),
            Then::Nothing => false,
        };
        let (next, wanted) = inside.counting.exhausted();
        self.record.place.set_counter(next);
        awaited && wanted
    }

    /// What serves a call while there is no code.
    pub(crate) fn interprets(&self) -> Option<Arc<dyn Interpret>> {
        let mut inside = self.record.lock();
        if !matches!(inside.state, State::Lazy(_)) {
            return None;
        }
        inside.cold.as_mut()?.begin()
    }

    /// A call was served so, which took so many statements: whether the code is to be asked for now.
    pub(crate) fn was_interpreted(&self, work: u64) -> bool {
        let mut inside = self.record.lock();
        matches!(inside.state, State::Lazy(_)) && inside.cold.as_mut().is_some_and(|cold| cold.served(work))
    }

    /// Whether a loop is to go on in the code behind the slot. Not a safepoint.
    pub(crate) fn leads_on(&self) -> bool {
        let leads = matches!(self.record.lock().state, State::Ready(_));
        if leads {
            // Every other thread is to ask at its next round.
            self.record.place.set_counter(0);
        }
        leads
    }

    /// Compiles what lies behind the slot, for whoever has asked in the queue; whether it has. A loop whose code cannot be had
    /// is not asked for again, unless it may be had later.
    pub(crate) fn compile_asked(&self) -> bool {
        let (Found::Source(source, version), record) = (self.record.find(), &self.record) else {
            return false;
        };
        let Err(error) = record.materialize() else { return true };
        let then = if error.may_pass(&*source) { Then::Enter } else { Then::Nothing };
        let is_loop = matches!(record.lock().counting.then, Then::Enter);
        if is_loop {
            record.count_again(version, then);
        }
        false
    }

    /// Lets the slot lead to better code; false if there is none to be had any more.
    pub(crate) fn optimise(&self) -> Result<bool, SlotError> {
        let record = &self.record;
        let mut inside = record.lock();
        let version = inside.version;
        // What has been replaced since it became hot is another function, which has to become hot itself.
        if !matches!(inside.state, State::Ready(_)) {
            return Ok(false);
        }
        let Then::Optimise(tiers) = std::mem::replace(&mut inside.counting.then, Then::Nothing) else {
            return Ok(false);
        };
        drop(inside);
        let _asking = record.asking();
        let target = match record.ask(|| tiers.optimise()) {
            Ok(target) => target,
            Err(error) => {
                if error.may_pass(&*tiers) {
                    record.count_again(version, Then::Optimise(tiers));
                }
                return Err(error);
            }
        };
        drop(tiers);
        let mut inside = record.lock();
        if inside.version != version || !matches!(inside.state, State::Ready(_)) {
            drop(inside);
            drop(target);
            return Ok(false);
        }
        let moving = record.jit.moving();
        let before = record.publish(&mut inside, target);
        drop(inside);
        record.let_go(before.state, moving);
        Ok(true)
    }

    pub(crate) fn downgrade(&self) -> WeakSlot {
        WeakSlot(Arc::downgrade(&self.record))
    }

    /// The address of the word.
    pub(crate) fn word(&self) -> usize {
        self.record.place.word()
    }

    /// The address of the counter.
    pub(crate) fn counter_address(&self) -> usize {
        self.record.place.counter_address()
    }

    /// Where a call goes now.
    pub(crate) fn code(&self) -> usize {
        self.record.place.get()
    }
}

impl std::fmt::Debug for Slot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Slot").field(&self.record.name).finish()
    }
}

impl std::fmt::Debug for SlotOwner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("SlotOwner").field(&self.record.name).finish()
    }
}

/// A thread that asks for code.
struct Asking<'a>(&'a Record);

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        self.0.lock().asking -= 1;
    }
}

impl Record {
    fn lock(&self) -> MutexGuard<'_, Inside> {
        // Nothing panics between the steps of a change.
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether calls may go to this code.
    fn check(&self, target: &Target) -> Result<(), SlotError> {
        let name = || self.name.clone();
        if !self.ty.is_called_like(&target.ty) {
            let (expected, actual) = (self.ty.describe(), target.ty.describe_beside(&self.ty));
            return Err(SlotError::Type { name: name(), expected: expected.into(), actual: actual.into() });
        }
        if !target.unit.jit().is(&self.jit) {
            return Err(SlotError::OtherEngine { name: name() });
        }
        Ok(())
    }

    /// Lets calls go to code that has been checked.
    #[must_use]
    fn publish(&self, inside: &mut Inside, target: Target) -> Before {
        self.place.set(target.address);
        (inside.rests, inside.last) = (false, self.jit.hot().tick());
        let cold = if inside.again.is_none() { inside.cold.take() } else { None };
        Before { state: std::mem::replace(&mut inside.state, State::Ready(target)), cold }
    }

    /// Gives up what was behind the slot. What it holds is foreign, and its end may come back here: no lock is held.
    /// `moving` counts it since it was there.
    fn let_go(&self, before: State, moving: Moving) {
        if let State::Ready(target) = before {
            self.jit.runtime().retire([Box::new(Behind { target, moving }) as Box<dyn RetiredCode>]);
        }
    }

    /// Lets calls go to the stub, unless a later turn has decided.
    fn close(&self, turn: Option<u64>, state: State, counting: Counting, cold: Option<Cold>) {
        let mut inside = self.lock();
        if turn.is_some_and(|turn| turn < inside.turn) {
            // What was brought is dropped without the lock.
            drop(inside);
            return;
        }
        let (version, turn, asking) = (inside.version + 1, turn.unwrap_or(inside.turn), inside.asking);
        let moving = self.jit.moving();
        self.place.set(self.place.stub());
        let anew = Inside { version, turn, asking, ..Inside::new(&self.jit, state, counting, cold) };
        let before = std::mem::replace(&mut *inside, anew);
        drop(inside);
        self.let_go(before.state, moving);
    }

    /// The address of the code, compiled now if it has to be.
    fn materialize(&self) -> Result<usize, SlotError> {
        loop {
            let (source, version) = match self.find() {
                Found::Code(address) => return Ok(address),
                Found::Gone => return Err(SlotError::Removed { name: self.name.clone() }),
                Found::Source(source, version) => (source, version),
            };
            let _asking = self.asking();
            let made = self.ask(|| source.materialize());
            // Its end is the source's own code.
            drop(source);
            let mut inside = self.lock();
            if inside.version != version {
                // What it was made from is not wanted any more.
                drop(inside);
                drop(made);
                continue;
            }
            if let State::Ready(target) = &inside.state {
                let address = target.address;
                drop(inside);
                drop(made);
                return Ok(address);
            }
            let target = made?;
            let address = target.address;
            let before = self.publish(&mut inside, target);
            // Behind the word: whoever asks then is told to go there.
            self.place.set_counter(match inside.counting.then {
                Then::Enter => 0,
                _ => inside.counting.stride(),
            });
            drop(inside);
            drop(before);
            return Ok(address);
        }
    }

    /// What is behind the slot.
    fn find(&self) -> Found {
        let mut inside = self.lock();
        if inside.rests {
            self.wake(&mut inside);
        }
        match &inside.state {
            State::Ready(target) => Found::Code(target.address),
            State::Lazy(source) => Found::Source(source.clone(), inside.version),
            State::Gone => Found::Gone,
        }
    }

    /// What was wanted after so many calls or rounds was not to be had: after how many something happens again.
    fn count_again(&self, version: u64, then: Then) {
        let mut inside = self.lock();
        if inside.version != version {
            // What was brought is dropped without the lock.
            drop(inside);
            return;
        }
        let mut counting = Counting::new(then, inside.counting.count.max(1).saturating_mul(2));
        self.place.set_counter(counting.stride());
        let before = std::mem::replace(&mut inside.counting, counting);
        drop(inside);
        drop(before);
    }

    /// Notes that this thread asks for code, until it has put it behind the slot, or let it go.
    fn asking(&self) -> Asking<'_> {
        self.lock().asking += 1;
        Asking(self)
    }

    /// What the source gives, if it fits.
    fn ask(
        &self,
        make: impl FnOnce() -> Result<Target, Box<dyn Error + Send + Sync>>,
    ) -> Result<Target, SlotError> {
        let name = || self.name.clone();
        match fenced(make) {
            Ok(Ok(target)) => self.check(&target).map(|()| target),
            Ok(Err(cause)) => Err(SlotError::Failed { name: name(), cause: cause.into() }),
            Err(message) => Err(SlotError::Panicked { name: name(), message: message.into() }),
        }
    }
}

/// The routines that this crate adds to those of the run time.
pub(crate) fn routine(name: &str) -> Option<usize> {
    (name == MATERIALIZE).then_some(brolga_materialize as *const () as usize)
}

/// What is said of an error that is thrown: all its causes down to the root, of many the first ones and the root.
fn in_words(error: &SlotError) -> String {
    let mut text = error.to_string();
    let SlotError::Failed { cause, .. } = error else { return text };
    let mut left = CAUSES_SAID;
    let mut last = None;
    let mut next = cause.source();
    while let Some(cause) = next {
        next = cause.source();
        last = (left == 0).then_some(cause);
        if left > 0 {
            let words = cause.to_string();
            // An error that is nothing but its cause says the same.
            if !text.ends_with(&words) {
                left -= 1;
                text.push_str("; ");
                text.push_str(&words);
            }
        }
    }
    if let Some(root) = last {
        text.push_str("; …; ");
        text.push_str(&root.to_string());
    }
    text
}

/// What a lazy trampoline calls: the address of the code that the stub stands for, or 0 when an exception is pending.
extern "C" fn brolga_materialize(thread: &Thread) -> usize {
    // SAFETY: the trampoline is only reached through a stub, which has left the address of its cell. The code that called the
    // stub keeps the slot, and with it place and record.
    let record = unsafe { record_at(record_of_cell(thread.lazy())) };
    let stack = thread.stack_left();
    let make = || if stack >= STACK_TO_COMPILE { record.materialize() } else { on_new_thread(&record) };
    // What it throws is put into words by the source's own code as well. The word is read behind that.
    let made = thread.blocking(|| fenced(|| make().map_err(|error| in_words(&error))));
    let refused = match made {
        // Destructors of the source have run meanwhile, which may have replaced and freed what was made. So the word is read last:
        // what it leads to stays until this thread's next safepoint, or blocking call.
        Ok(Ok(Ok(_))) => return record.place.get(),
        Ok(Ok(Err(text)) | Err(text)) => text,
        Err(error) => error.to_string(),
    };
    thread.throw_text(ExceptionKind::CompileError, &refused);
    0
}

/// Compiles on a thread that has enough stack. If the system gives none, on this one.
fn on_new_thread(record: &Record) -> Result<usize, SlotError> {
    let Found::Source(source, _) = record.find() else { return record.materialize() };
    let around = source.elsewhere();
    drop(source);
    std::thread::scope(|scope| {
        let work = || {
            let mut made = None;
            around(&mut || made = Some(record.materialize()));
            made.unwrap_or_else(|| record.materialize())
        };
        match std::thread::Builder::new().stack_size(HELPER_STACK).spawn_scoped(scope, || fenced(work)) {
            Ok(thread) => match thread.join() {
                Ok(Ok(made)) => made,
                Ok(Err(message)) => {
                    Err(SlotError::Panicked { name: record.name.clone(), message: message.into() })
                }
                Err(payload) => resume_unwind(payload),
            },
            Err(_) => record.materialize(),
        }
    })
}
