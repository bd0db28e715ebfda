//! Indirection cells: the word through which compiled code and Rust call a function, and its versions.
//!
//! ```text
//!   CellOwner ────── one for each function: sets the code of the cell; dropping it closes the cell
//!       │ cell()
//!       ▼
//!   IndirectCell ─── for callers: units that call the function keep it, and Rust calls through it
//!
//!          first call, or `IndirectCell::materialize`: source.materialize() returns code
//!        Lazy or Interpreted, word = stub ───────────────────────────────────► Ready, word = code
//!         ▲      │                                                              │      │
//!         │      ▼ close                                    set(code) ──────────┘      │
//!         │     Closed, word = stub                                                    │
//!         └────────────── reset(source); discard, with the source that it had ─────────┘
//! ```
//!
//! | file | what it holds |
//! |---|---|
//! | `place.rs` | the memory of words and stubs |
//! | `materialize.rs` | sources of code |
//! | `instance.rs` | the parts of a code instance (`brolga_instances`) |
//! | `select.rs` | world selectors, while there are several versions |
//! | `record.rs` | publishing, replacing and compiling, under the cell's lock |
//! | `superseded.rs` | versions for newer worlds, and the end of older ones |
//! | `routine.rs` | the routines that stubs call |
//! | `switch.rs` | a cell with frequent switches of its code |
//! | `evict.rs` | discarding code that can be made again |
//!
//! **Worlds.** [`CellOwner::supersede`] adds a version for the worlds from the next one on; calls in older worlds reach their former versions.
//! [`CellOwner::reset`], [`CellOwner::set`] and [`CellOwner::close`] replace all versions: running code reaches the new
//! version at its next call.
//!
//! A stub's trampoline (`codegen/src/lazy.rs`) calls `brolga_materialize`, which finds the record and acts on the state of the version
//! that the thread's world sees, in a region in which collections continue without the thread, with no lock held while the source works.
//!
//! **No waiting here.** Threads that make the first call concurrently all call the source; the first result is
//! published, and the others use it. The source compiles once and waits for the compiling thread, because only it can tell
//! which thread runs the awaited work: with one worker, or with compilations that call functions that are not compiled, a
//! lock here would deadlock. A source that depends on its own result has to return an error. A refusal is thrown as
//! `CompileError` with the cause; the next call tries again.
//!
//! A thread that is low on stack compiles on a new thread and waits for it. A panic of the source is caught.
//!
//! **Ownership.** A unit keeps the cells that its code names. A cell keeps the code that it leads to; when it leads
//! elsewhere, or the function is removed, the code is retired (`retired.rs` of the run time). So functions that call each other through cells
//! are freed when their owners are dropped.
//!
//! | row | operation | order | pairs with | without it |
//! |---|---|---|---|---|
//! | N1 | store or load whether the newest code instance is ready | Relaxed | – | nothing: a caller reads the word (C2 of `brolga_instances::invoke`) |
//! | N2 | store or load whether a cell outlives its owner | Relaxed | – | nothing: the owner is dropped after all that was done with it |
//!
//! **Locks**: a record's code instances, under which no foreign code runs.
//!
//! Cost: beside compiling, a first call takes about 1 µs; a later call is one load more than a direct one.

mod evict;
mod instance;
mod materialize;
mod place;
mod record;
mod routine;
mod select;
mod superseded;
mod switch;

use std::any::Any;
use std::error::Error;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use brolga_codegen::lazy::can_be_interpreted;
use brolga_codegen::sig::FunctionType;
use brolga_instances::Tier;

use crate::engine::Jit;
use crate::entry::c_entry::CEntryError;
use crate::entry::trampoline::{Entry, EntryError};
use crate::memory::error::CodeMemoryError;
use crate::tiering::counting::{Counting, LoopEntry, Then, Tiers};
use crate::tiering::interpreter::{Interpreted, Interpreter};
pub use evict::Held;
use evict::Recipe;
use instance::{Beginning, Instance, State, plain};
pub use materialize::{Elsewhere, Materialize, Target};
pub(crate) use place::{Place, Places};
pub(crate) use record::Record;
pub(crate) use routine::{cell_of_counter, cell_of_data, routine};
pub(crate) use select::{Selector, Selectors};
pub use superseded::Superseded;
pub use switch::Switch;

/// The reason why the function of a cell cannot be called.
#[derive(thiserror::Error, Clone, Debug)]
pub enum CellError {
    /// Its source returned an error.
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
        /// The panic's message.
        message: Arc<str>,
    },
    /// The new content of the cell has another type.
    #[error("`{name}` is {expected}, and the code is {actual}")]
    Type {
        /// The function.
        name: Arc<str>,
        /// The cell's type.
        expected: Arc<str>,
        /// The code's.
        actual: Arc<str>,
    },
    /// The new content of the cell belongs to another engine.
    #[error("the code for `{name}` belongs to another engine")]
    OtherEngine {
        /// The function.
        name: Arc<str>,
    },
    /// The function was removed.
    #[error("`{name}` has been removed")]
    Removed {
        /// The function.
        name: Arc<str>,
    },
}

impl CellError {
    /// Whether the source may succeed later.
    fn may_pass(&self, source: &(impl Materialize + ?Sized)) -> bool {
        matches!(self, CellError::Failed { cause, .. } if source.may_pass(&**cause))
    }
}

/// The reason why there is no cell.
#[derive(thiserror::Error, Debug)]
pub enum NoCell {
    /// There is no memory for it.
    #[error(transparent)]
    Memory(#[from] CodeMemoryError),
    /// There is no trampoline for the signature.
    #[error(transparent)]
    Entry(#[from] EntryError),
}

impl NoCell {
    /// Whether freeing units can help.
    pub fn is_shortage(&self) -> bool {
        match self {
            NoCell::Memory(error) => error.is_shortage(),
            NoCell::Entry(error) => error.is_shortage(),
        }
    }
}

/// The right to set the versions of a cell. Dropping it closes the cell, unless it was [left](CellOwner::leave): calls throw
/// `CompileError`. If the newest version is already removed, older ones stay for the threads in their worlds.
pub struct CellOwner {
    record: Arc<Record>,
    is_left: AtomicBool,
}

/// A snapshot of a code instance, for displays.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct InstanceFacts {
    /// The first and the last world in which it is valid.
    pub worlds: (u64, u64),
    /// Its tier; `None` if the function was removed.
    pub tier: Option<Tier>,
    /// The addresses of its unit's code; `None` if it is not compiled.
    pub code: Option<Range<usize>>,
    /// The [identities](CellOwner::identity) of the cells that its code calls.
    pub callees: Vec<usize>,
    /// The number of calls that its code counted; `None` if it does not count.
    pub counted: Option<u32>,
}

/// A function that is called through its cell. Clones share it.
#[derive(Clone)]
pub struct IndirectCell {
    pub(crate) record: Arc<Record>,
}

/// Finds the cells that a unit's code names.
pub trait FindCell {
    /// The cell of a function, or the reason for its absence.
    fn cell(&self, name: &str) -> Result<IndirectCell, String>;
}

impl Jit {
    /// A cell for a function of this type, which `source` compiles at its first call. The type's symbol is its name for
    /// callers.
    pub fn cell(
        &self,
        ty: impl Into<Arc<FunctionType>>,
        source: Arc<dyn Materialize>,
    ) -> Result<CellOwner, NoCell> {
        CellOwner::new(self, ty.into(), Body::Once(source))
    }

    /// The cell of a function of this type that is not there: calls throw `CompileError`.
    pub fn removed(&self, ty: impl Into<Arc<FunctionType>>) -> Result<IndirectCell, NoCell> {
        // Without its owner the cell stays closed.
        Ok(CellOwner::new(self, ty.into(), Body::Removed)?.cell())
    }
}

/// Memory for the version that [`CellOwner::supersede`] adds, so that it cannot fail.
pub struct Reserved(Selector);

impl std::fmt::Debug for Reserved {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Reserved")
    }
}

/// The compilation scheme of a version of a function.
pub enum Body {
    /// It is compiled once.
    Once(Arc<dyn Materialize>),
    /// It is compiled in two tiers, the second after `threshold` entries; interpreted before, if there is an interpreter and
    /// the cell was made for a function in tiers.
    Tiered {
        /// Compiles both.
        tiers: Arc<dyn Tiers>,
        /// The number of entries after which the second tier is requested.
        threshold: i32,
        /// The interpreter that serves calls while there is no code.
        interpreter: Option<Interpreter>,
    },
    /// The function is removed: calls throw `CompileError`.
    Removed,
}

impl Body {
    /// The initial content of a code instance with this body.
    fn begin(self, jit: &Jit) -> Beginning {
        let recipe = if jit.evicts() { Recipe::of(&self) } else { None };
        let beginning = match self {
            Body::Once(source) => plain(State::Lazy(source)),
            Body::Tiered { tiers, threshold, interpreter } => {
                let profile = Counting::new(Then::Optimise(tiers.clone()), threshold);
                let state = match interpreter {
                    Some(interpreter) => State::Interpreted(tiers, Interpreted::new(interpreter)),
                    None => State::Lazy(tiers),
                };
                Beginning { state, profile, recipe: None }
            }
            Body::Removed => plain(State::Closed),
        };
        Beginning { recipe, ..beginning }
    }
}

impl CellOwner {
    pub(crate) fn new(jit: &Jit, ty: Arc<FunctionType>, body: Body) -> Result<CellOwner, NoCell> {
        // The replacement of the function may be interpreted even if this one is not.
        let may_be_interpreted = matches!(body, Body::Tiered { .. }) && can_be_interpreted(&ty.signature);
        let trampoline = jit.lazy_entry(&ty.signature, may_be_interpreted)?;
        Ok(CellOwner::at(jit, ty, body.begin(jit), Some(trampoline))?)
    }

    /// The cell of a loop's entry. Its stub has no target: only the loop calls through it, when the code is there.
    pub(crate) fn of_loop(jit: &Jit, entry: LoopEntry) -> Result<CellOwner, CodeMemoryError> {
        let LoopEntry { ty, source, iterations, .. } = entry;
        let iterations = i32::try_from(iterations).unwrap_or(i32::MAX);
        let profile = Counting::new(Then::Enter, iterations);
        let beginning = Beginning { state: State::Lazy(source), profile, recipe: None };
        CellOwner::at(jit, ty, beginning, None)
    }

    fn at(
        jit: &Jit,
        ty: Arc<FunctionType>,
        beginning: Beginning,
        trampoline: Option<Arc<Entry>>,
    ) -> Result<CellOwner, CodeMemoryError> {
        let record = Record::new(jit, ty, jit.take_place()?, beginning, trampoline);
        Ok(CellOwner { record, is_left: AtomicBool::new(false) })
    }

    /// The cell, for callers.
    pub fn cell(&self) -> IndirectCell {
        IndirectCell { record: self.record.clone() }
    }

    /// An address that is unique among live cells; it is not a code address.
    pub fn identity(&self) -> usize {
        self.cell().identity()
    }

    /// Directs every later call, in any world, to this code. Cancels a compilation under way for the cell.
    ///
    /// # Errors
    /// The code has another type, or belongs to another engine.
    pub fn set(&self, target: Target) -> Result<(), CellError> {
        self.record.check(&target)?;
        self.record.replace_all(plain(State::Ready(target)));
        Ok(())
    }

    /// Removes the function in all worlds, as dropping the owner does, until the cell gets another version.
    pub fn close(&self) {
        self.record.replace_all(Body::Removed.begin(&self.record.jit));
    }

    /// Leaves the cell as it is to the units that call it, when the owner is dropped: a call of a function that is not
    /// compiled calls its source.
    pub fn leave(&self) {
        self.is_left.store(true, Ordering::Relaxed); // N2
    }

    /// Makes the next call, in any world, compile another body. Calls that have begun continue in the old code.
    pub fn reset(&self, body: Body) {
        self.record.replace_all(body.begin(&self.record.jit));
    }

    /// Installs code for uncompiled versions whose sources accept its origin. Does nothing if it is of another type, or
    /// belongs to another engine.
    pub fn provide(&self, made_from: &dyn Any, target: Target) {
        self.record.provide(made_from, &target);
    }

    /// Reserves memory for one more version.
    ///
    /// # Errors
    /// There is no memory.
    pub fn reserve(&self) -> Result<Reserved, NoCell> {
        Ok(Reserved(self.record.jit.take_selector()?))
    }

    /// Adds a version for calls in worlds from `world` on; calls in older worlds reach their former versions. To be called
    /// before threads can be in that world ([`Runtime::next_world`](brolga_runtime::Runtime::next_world)). Runs no foreign code.
    pub fn supersede(&self, reserved: Reserved, world: u64, body: Body) -> Superseded {
        Record::supersede(&self.record, reserved.0, world, body.begin(&self.record.jit))
    }
}

impl Drop for CellOwner {
    fn drop(&mut self) {
        let is_left = self.is_left.load(Ordering::Relaxed); // N2
        if !is_left && !matches!(self.record.lock().instances.newest().state(), State::Closed) {
            self.close();
        }
    }
}

impl IndirectCell {
    /// The name of the function for callers.
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

    /// Compiles the newest version of the function unless it is compiled, as its first call would.
    ///
    /// # Errors
    /// It cannot be compiled, or was removed.
    pub fn materialize(&self) -> Result<(), CellError> {
        self.record.materialize(u64::MAX).map(|_| ())
    }

    /// The [identities](CellOwner::identity) of the cells that this cell's code calls, in all versions.
    pub fn callees(&self) -> Vec<usize> {
        self.record.lock().instances.edges()
    }

    /// The tier of the newest code instance; `None` if it was removed. A function that is compiled once is in the highest tier when it has code.
    pub fn tier(&self) -> Option<Tier> {
        self.record.lock().instances.newest().tier()
    }

    /// A snapshot of the newest code instance.
    pub fn facts(&self) -> InstanceFacts {
        self.facts_of(self.record.lock().instances.newest())
    }

    /// Snapshots of the code instances, oldest first.
    pub fn instances(&self) -> Vec<InstanceFacts> {
        self.record.lock().instances.all().map(|instance| self.facts_of(instance)).collect()
    }

    fn facts_of(&self, instance: &Instance) -> InstanceFacts {
        let code = instance.code();
        InstanceFacts {
            worlds: instance.worlds(),
            tier: instance.tier(),
            code: code.map(|target| target.unit().loaded().code().addresses()),
            callees: code.map_or_else(Vec::new, |target| target.unit().code().edges().to_vec()),
            counted: instance.profile.counted(self.record.place.count()),
        }
    }

    /// Whether a call in the newest world would find code.
    pub fn is_ready(&self) -> bool {
        self.record.is_ready.load(Ordering::Relaxed) // N1
    }

    /// The address by which C calls the function: always the same, valid while a handle to the cell exists.
    ///
    /// # Errors
    /// C does not have a parameter or result type, or there is no memory.
    pub fn c_address(&self) -> Result<usize, CEntryError> {
        self.record.c_entry.address(&self.record.jit, &self.record.ty, self.word())
    }

    /// The address by which C calls the function, if it was requested.
    pub fn known_c_address(&self) -> Option<usize> {
        self.record.c_entry.known()
    }

    pub(crate) fn identity(&self) -> usize {
        Arc::as_ptr(&self.record).addr()
    }

    pub(crate) fn downgrade(&self) -> Weak<Record> {
        Arc::downgrade(&self.record)
    }

    /// The address of the word.
    pub(crate) fn word(&self) -> usize {
        self.record.place.word()
    }

    /// The address of the counter.
    pub(crate) fn counter_address(&self) -> usize {
        self.record.place.counter_address()
    }

    /// The current target of calls.
    pub(crate) fn code(&self) -> usize {
        self.record.place.get()
    }
}

impl std::fmt::Debug for IndirectCell {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("IndirectCell").field(&self.record.name).finish()
    }
}

impl std::fmt::Debug for CellOwner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("CellOwner").field(&self.record.name).finish()
    }
}
