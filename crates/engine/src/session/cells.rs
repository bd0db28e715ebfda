//! The indirect cells of a session's functions: their holders, and the removal of functions.
//!
//! ```text
//!   session's tables ── Entered ──┐
//!                                 ├──► CellOwner ──► versions of the function, each for its worlds       (crates/jit/src/cell/)
//!   orphans (below) ──────────────┘
//!   units that call it, handles ─────► IndirectCell: only calls through it
//! ```
//!
//! **Removal advances the world.** When the tables release a cell, it gets a version that is visible from the next world on and throws
//! `CompileError`. Frames in older worlds call the old body until they return.
//!
//! **Orphans.** Handles to eager functions stay valid when the tables have released the function, unless a tombstone removed it. So the cell of
//! an eager function becomes an *orphan* and stays unchanged while a [`Handle`] holds it, or while the code of another live orphan calls it.
//! Functions call each other in cycles, so reference counts do not suffice: orphans are traced from the ones with handles, whenever the
//! tables release code and whenever the last handle to a function is dropped. Unreached cells are removed.
//!
//! **Failures.** An eager function whose body fails is released without a handle. Code that calls it by a devirtualized dynamic call (`needs.rs`) keeps its cell, and each call requests
//! the body again.
//!
//! **Holds.** A function counts its handles in one word, which also says whether it is an orphan. The tables mark it as an orphan and the last
//! handle decrements the count by operations on that word, so one of the two sees the other: one of them traces an orphan without handles.
//!
//! | row | operation | order | pairs with | without it |
//! |---|---|---|---|---|
//! | H1 | hold: fetch and add | Relaxed | – | nothing: no memory access depends on the count |
//! | H2 | release: fetch and subtract | Relaxed | H3 | nothing: one word has a total order, and a release that sees the mark takes the lock under which it was set |
//! | H3 | mark as an orphan: fetch and or, under the lock | Relaxed | H2 | the same, from the other side |
//! | H4 | trace: load, under the lock | Relaxed | – | nothing: a release that this load misses has seen the mark, and traces afterwards |
//!
//! **Locks**: the list of orphans. Locks of cells are taken after it; nothing is removed or freed under it.
//!
//! Cost: a trace visits the orphans and their calls; there are none unless handles outlive definitions.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Weak};

use brolga_jit::{Body, CellOwner, IndirectCell, InstanceFacts, Superseded};
use brolga_linking::Label;
use brolga_runtime::{RetiredCode, Runtime};

use super::sync::lock;

/// The orphans of a session.
pub(crate) struct Cells {
    /// By the identity of their cells.
    orphans: Mutex<Orphans>,
    others: Arc<dyn Others>,
    runtime: Arc<Runtime>,
}

/// The functions that are not orphans.
pub(crate) trait Others: Send + Sync {
    /// The function whose cell has this identity.
    fn function(&self, identity: usize) -> Option<Function>;
}

#[derive(Default)]
struct Orphans(BTreeMap<usize, Orphan>);

/// A cell that no table refers to any more.
struct Orphan {
    owner: Arc<CellOwner>,
    function: Function,
}

impl Cells {
    pub(crate) fn new(others: Arc<dyn Others>, runtime: &Arc<Runtime>) -> Arc<Cells> {
        Arc::new(Cells { orphans: Mutex::default(), others, runtime: runtime.clone() })
    }

    /// The symbols of the functions whose cells have these identities; missing cells are skipped.
    fn symbols(&self, identities: &[usize]) -> Vec<String> {
        let orphan = |identity: &usize| Some(lock(&self.orphans).0.get(identity)?.function.clone());
        let function = |identity: &usize| self.others.function(*identity).or_else(|| orphan(identity));
        let functions = identities.iter().filter_map(function);
        functions.map(|function| function.cell.name().to_owned()).collect()
    }

    /// The hold of the tables on a new cell.
    pub(crate) fn enter(self: &Arc<Self>, label: Label, owner: Arc<CellOwner>, is_eager: bool) -> Entered {
        let (cell, holds, cells) = (owner.cell(), AtomicUsize::new(0), self.clone());
        let listed = Listed { label, cell, is_eager, owner: Arc::downgrade(&owner), cells, holds };
        Entered { owner, function: Function(Arc::new(listed)) }
    }

    /// Called when the tables have released cells. `removed` is set if a tombstone has removed them.
    fn release(&self, entered: Vec<Entered>, removed: bool) {
        let mut gone = Vec::new();
        let mut orphans = Vec::new();
        for Entered { owner, function, .. } in &entered {
            let owner = owner.clone();
            if removed || !function.is_eager {
                gone.push(owner);
            } else if !owner.cell().is_ready() {
                owner.leave();
            } else {
                orphans.push((owner.identity(), Orphan { owner, function: function.clone() }));
            }
        }
        drop(entered);
        let mut known = lock(&self.orphans);
        for (_, orphan) in &orphans {
            orphan.function.holds.fetch_or(ORPHAN, Ordering::Relaxed); // H3
        }
        known.0.extend(orphans);
        gone.extend(known.unreached());
        drop(known);
        self.remove(gone);
    }

    /// Called when the last handle to an orphan was dropped.
    fn trace(&self) {
        let gone = lock(&self.orphans).unreached();
        self.remove(gone);
    }

    /// Removes functions from the next world on.
    fn remove(&self, gone: Vec<Arc<CellOwner>>) {
        supersede(&self.runtime, gone.into_iter().map(|owner| (owner, Body::Removed)));
    }
}

impl Orphans {
    /// Removes and returns the orphans that no handle reaches.
    fn unreached(&mut self) -> Vec<Arc<CellOwner>> {
        if self.0.is_empty() {
            return Vec::new();
        }
        let held = self.0.iter().filter(|(_, orphan)| orphan.function.is_held());
        let mut pending: Vec<usize> = held.map(|(identity, _)| *identity).collect();
        let mut reached: BTreeSet<usize> = pending.iter().copied().collect();
        while let Some(orphan) = pending.pop().and_then(|identity| self.0.get(&identity)) {
            let callees = orphan.owner.cell().callees().into_iter();
            pending.extend(callees.filter(|callee| self.0.contains_key(callee) && reached.insert(*callee)));
        }
        let (kept, gone) = std::mem::take(&mut self.0).into_iter().partition(|(at, _)| reached.contains(at));
        self.0 = kept;
        let gone: BTreeMap<usize, Orphan> = gone;
        gone.into_values().map(|orphan| orphan.owner).collect()
    }
}

/// Sets new bodies of functions, visible from the next world on. If there is no memory for another code instance, all worlds get the new one.
pub(super) fn supersede(runtime: &Runtime, bodies: impl IntoIterator<Item = (Arc<CellOwner>, Body)>) {
    // Memory is reserved before the step, in which nothing may fail.
    let mut reserved = Vec::new();
    for (owner, body) in bodies {
        match owner.reserve() {
            Ok(memory) => reserved.push((owner, memory, body)),
            Err(_) => owner.reset(body),
        }
    }
    if reserved.is_empty() {
        return;
    }
    let (mut superseded, mut owners) =
        (Vec::with_capacity(reserved.len()), Vec::with_capacity(reserved.len()));
    runtime.next_world(|world| {
        for (owner, memory, body) in reserved.drain(..) {
            superseded.push(owner.supersede(memory, world, body));
            // Dropping an owner runs foreign code.
            owners.push(owner);
        }
    });
    retire(runtime, superseded);
}

/// Frees superseded versions once no thread is in one of their worlds.
pub(super) fn retire(runtime: &Runtime, superseded: impl IntoIterator<Item = Superseded>) {
    let retired = superseded.into_iter().map(|old| Box::new(old) as Box<dyn RetiredCode>);
    runtime.retire(retired.collect::<Vec<_>>());
}

/// The tables' hold on a cell.
pub(crate) struct Entered {
    owner: Arc<CellOwner>,
    function: Function,
}

impl Entered {
    pub(crate) fn owner(&self) -> &Arc<CellOwner> {
        &self.owner
    }

    /// The function, for lookups.
    pub(crate) fn function(&self) -> &Function {
        &self.function
    }

    /// Called when the tables have released functions.
    pub(crate) fn release(entered: Vec<Entered>, removed: bool) {
        let Some(cells) = entered.first().map(|first| first.function.cells.clone()) else { return };
        cells.release(entered, removed);
    }
}

/// A function called through its cell.
#[derive(Clone)]
pub(crate) struct Function(Arc<Listed>);

/// The state of a function called through its cell.
pub(crate) struct Listed {
    pub(crate) label: Label,
    pub(crate) cell: IndirectCell,
    /// Whether look-ups wait for its body.
    pub(crate) is_eager: bool,
    owner: Weak<CellOwner>,
    /// Keeps the orphans alive after the session is dropped.
    cells: Arc<Cells>,
    /// The number of handles, and [`ORPHAN`].
    holds: AtomicUsize,
}

/// The bit that marks an orphan in the count of handles.
const ORPHAN: usize = 1 << (usize::BITS - 1);

impl Deref for Function {
    type Target = Listed;

    fn deref(&self) -> &Listed {
        &self.0
    }
}

impl Listed {
    /// The owner of the cell, unless it was released.
    pub(super) fn owner(&self) -> Option<Arc<CellOwner>> {
        self.owner.upgrade()
    }

    /// Its code instances, oldest first, each with the symbols of its callees.
    pub(super) fn instances(&self) -> Vec<(InstanceFacts, Vec<String>)> {
        let all = self.cell.instances().into_iter();
        all.map(|facts| {
            let callees = self.cells.symbols(&facts.callees);
            (facts, callees)
        })
        .collect()
    }

    /// Whether there are handles.
    fn is_held(&self) -> bool {
        self.holds.load(Ordering::Relaxed) & !ORPHAN != 0 // H4
    }
}

/// A hold on a function: an eager function can be called even after the session has released it.
pub(crate) struct Handle(Function);

impl Handle {
    pub(crate) fn new(function: Function) -> Handle {
        function.holds.fetch_add(1, Ordering::Relaxed); // H1
        Handle(function)
    }
}

impl Deref for Handle {
    type Target = Function;

    fn deref(&self) -> &Function {
        &self.0
    }
}

impl Clone for Handle {
    fn clone(&self) -> Handle {
        Handle::new(self.0.clone())
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        let last = self.holds.fetch_sub(1, Ordering::Relaxed); // H2
        if last == ORPHAN | 1 {
            self.cells.trace();
        }
    }
}
