//! The indirect cells of a session's functions: who holds them, and when a function is removed.
//!
//! ```text
//!   session's tables ── Entered ──┐
//!                                 ├──► CellOwner ──► versions of the function, each for its worlds       (crates/jit/src/cell/)
//!   orphans (below) ──────────────┘
//!   units that call it, handles ─────► IndirectCell: calls through it, decides nothing
//! ```
//!
//! **Removal is a world event.** A cell that the tables let go of gets a version that is visible from the next world on and throws
//! `CompileError`. Frames in older worlds call the old body to their end.
//!
//! **Orphans.** Handles to eager functions stay good when the tables have let go of the function, unless a tombstone removed it. So the cell of
//! an eager function becomes an *orphan* and stays as it is while a [`Handle`] holds it, or while code behind another such orphan calls it.
//! Functions call each other in cycles, so no count of references can tell: the orphans are traced from those with handles, whenever the
//! tables let go of code and whenever the last handle to a function goes. Cells that the trace does not reach are removed.
//!
//! **Locks**: the list of cells. Locks of cells are taken below it; nothing is removed or freed under it.
//!
//! Cost: an entry in a map for each cell. A trace visits the orphans and their calls; there are none unless handles outlive definitions.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, Weak};

use brolga_jit::{Body, CellOwner, IndirectCell, Superseded};
use brolga_linking::{Label, Symbol};
use brolga_runtime::{RetiredCode, Runtime};

use super::sync::lock;

/// The cells of a session, by what tells them from each other: several of one name may be there at once, and the name leads to one of them
/// at most.
pub(crate) struct Cells {
    state: Mutex<State>,
    runtime: Arc<Runtime>,
}

#[derive(Default)]
struct State {
    owners: BTreeMap<usize, (Label, Weak<CellOwner>)>,
    orphans: BTreeMap<usize, Orphan>,
}

/// A cell that no table leads to any more.
struct Orphan {
    owner: Arc<CellOwner>,
    handles: Arc<Handles>,
}

impl Cells {
    pub(crate) fn new(runtime: &Arc<Runtime>) -> Arc<Cells> {
        Arc::new(Cells { state: Mutex::default(), runtime: runtime.clone() })
    }

    /// The owner of the cell with this identity, if it is that of a function of this name.
    pub(crate) fn owner(&self, label: Label, identity: usize) -> Option<Arc<CellOwner>> {
        let state = lock(&self.state);
        let (of, owner) = state.owners.get(&identity)?;
        (*of == label).then(|| owner.upgrade())?
    }

    /// All cells that the tables lead to, in the order of their names.
    pub(crate) fn all(&self) -> Vec<(Label, Arc<CellOwner>)> {
        let state = lock(&self.state);
        let there = state.owners.values().filter_map(|(label, owner)| Some((*label, owner.upgrade()?)));
        let mut there: Vec<(Label, Arc<CellOwner>)> = there.collect();
        drop(state);
        there.sort_by_key(|(label, _)| *label);
        there
    }

    /// Lists a cell for as long as what this gives is held. `body` is the symbol of the body of an eager function.
    pub(crate) fn enter(
        self: &Arc<Self>,
        label: Label,
        owner: Arc<CellOwner>,
        body: Option<Symbol>,
    ) -> Entered {
        lock(&self.state).owners.insert(owner.identity(), (label, Arc::downgrade(&owner)));
        let function = Function { cell: owner.cell(), body, handles: Arc::default() };
        Entered { cells: self.clone(), owner, function }
    }

    /// The tables have let go of these. `removed` says that a tombstone has removed them.
    fn release(&self, entered: Vec<Entered>, removed: bool) {
        let mut gone = Vec::new();
        let mut orphans = Vec::new();
        for Entered { owner, function, .. } in &entered {
            let owner = owner.clone();
            if removed || function.body.is_none() {
                gone.push(owner);
            } else {
                orphans.push((owner.identity(), Orphan { owner, handles: function.handles.clone() }));
            }
        }
        // They leave the list.
        drop(entered);
        let mut state = lock(&self.state);
        state.orphans.extend(orphans);
        gone.extend(state.unreached());
        drop(state);
        self.remove(gone);
    }

    /// A handle has gone that was the last one to its function.
    fn trace(&self) {
        let mut state = lock(&self.state);
        let gone = state.unreached();
        drop(state);
        self.remove(gone);
    }

    /// Removes functions from the next world on.
    fn remove(&self, gone: Vec<Arc<CellOwner>>) {
        supersede(&self.runtime, gone.into_iter().map(|owner| (owner, Body::Removed)));
    }
}

impl State {
    /// Takes the orphans out that no handle reaches.
    fn unreached(&mut self) -> Vec<Arc<CellOwner>> {
        if self.orphans.is_empty() {
            return Vec::new();
        }
        let held = self.orphans.iter().filter(|(_, orphan)| orphan.handles.are_there());
        let mut pending: Vec<usize> = held.map(|(identity, _)| *identity).collect();
        let mut reached: BTreeSet<usize> = pending.iter().copied().collect();
        while let Some(orphan) = pending.pop().and_then(|identity| self.orphans.get(&identity)) {
            let callees = orphan.owner.cell().callees().into_iter();
            pending.extend(
                callees.filter(|callee| self.orphans.contains_key(callee) && reached.insert(*callee)),
            );
        }
        let (kept, gone) =
            std::mem::take(&mut self.orphans).into_iter().partition(|(at, _)| reached.contains(at));
        self.orphans = kept;
        let gone: BTreeMap<usize, Orphan> = gone;
        gone.into_values().map(|orphan| orphan.owner).collect()
    }
}

/// Gives functions other bodies, from the next world on. Where there is no memory for another code instance, all worlds get the new one.
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
            // The end of an owner runs code of others.
            owners.push(owner);
        }
    });
    retire(runtime, superseded);
}

/// Lets superseded versions go when no thread is in one of their worlds.
pub(super) fn retire(runtime: &Runtime, superseded: impl IntoIterator<Item = Superseded>) {
    let retired = superseded.into_iter().map(|old| Box::new(old) as Box<dyn RetiredCode>);
    runtime.retire(retired.collect::<Vec<_>>());
}

/// The tables' hold on a cell, which is listed meanwhile.
pub(crate) struct Entered {
    cells: Arc<Cells>,
    owner: Arc<CellOwner>,
    function: Function,
}

impl Entered {
    pub(crate) fn owner(&self) -> &Arc<CellOwner> {
        &self.owner
    }

    /// The function, for those who look it up.
    pub(crate) fn function(&self) -> &Function {
        &self.function
    }

    /// The tables have let go of these functions.
    pub(crate) fn release(entered: Vec<Entered>, removed: bool) {
        let Some(cells) = entered.first().map(|first| first.cells.clone()) else { return };
        cells.release(entered, removed);
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        lock(&self.cells.state).owners.remove(&self.owner.identity());
    }
}

/// A function behind its cell.
#[derive(Clone)]
pub(crate) struct Function {
    pub(crate) cell: IndirectCell,
    /// The symbol of its body, if a look-up waits for that: if it is eager.
    pub(crate) body: Option<Symbol>,
    handles: Arc<Handles>,
}

impl Function {
    /// The data that keeps the function callable when the session does not know it any more; none for lazy functions.
    pub(crate) fn handle(&self, cells: &Arc<Cells>) -> Option<Arc<Handle>> {
        self.body?;
        let mut live = lock(&self.handles.live);
        let there = live.upgrade();
        let handle = there.unwrap_or_else(|| {
            let handle = Arc::new(Handle { cells: cells.clone() });
            *live = Arc::downgrade(&handle);
            handle
        });
        Some(handle)
    }
}

/// The handles to a function.
#[derive(Default)]
struct Handles {
    live: Mutex<Weak<Handle>>,
}

impl Handles {
    fn are_there(&self) -> bool {
        lock(&self.live).strong_count() > 0
    }
}

/// The data that all handles to a function share. It keeps the list of cells, and so the orphans, also when the session is dropped.
pub(crate) struct Handle {
    cells: Arc<Cells>,
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.cells.trace();
    }
}
