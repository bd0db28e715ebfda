//! What the executor has, as the controller has sent it: enough to load it again.
//!
//! ```text
//!   units: number ──► sealed bytes          cells: number ──► symbol, unit
//! ```
//!
//! A table changes after the executor has, under one lock, so a restarted executor gets what its predecessor had. Calls do not take the
//! lock: they use the executor that is there when they begin. A restarted executor is there when everything is loaded.
//!
//! Units and cells leave with their last handles. A handle that is dropped while the executor is lost has nothing to tell it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use brolga_cache::CacheKey;
use brolga_executor::{CellId, Executor, ExecutorError, InProcess, Process, UnitId};

use super::Printed;
use super::error::RemoteError;
use crate::engine::Engine;

/// Where the executor is.
#[derive(Clone)]
pub(super) enum Place {
    Process(Arc<Process>),
    InProcess(Arc<InProcess>, CacheKey),
}

/// The units and cells of the executor.
#[derive(Default)]
pub(super) struct Tables {
    units: BTreeMap<UnitId, Arc<[u8]>>,
    cells: BTreeMap<CellId, (Arc<str>, UnitId)>,
    /// The number of the next unit or cell.
    next: u32,
}

/// A remote engine.
pub(crate) struct Shared {
    pub(crate) engine: Engine,
    place: RwLock<Place>,
    tables: Mutex<Tables>,
    pub(super) printed: Arc<Printed>,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let tables = self.tables();
        let mut shown = f.debug_struct("RemoteEngine");
        shown.field("units", &tables.units.len()).field("cells", &tables.cells.len());
        shown.field("process", &self.process()).finish_non_exhaustive()
    }
}

/// Loads a unit and leads cells to it.
fn replay(executor: &dyn Executor, tables: &Tables) -> Result<(), ExecutorError> {
    for (&unit, program) in &tables.units {
        executor.load(unit, program)?;
    }
    for (&cell, (symbol, unit)) in &tables.cells {
        executor.cell(cell, symbol)?;
        executor.lead(cell, *unit)?;
    }
    Ok(())
}

impl Tables {
    fn number(&mut self) -> u32 {
        self.next += 1;
        self.next
    }
}

impl Shared {
    pub(super) fn new(engine: Engine, place: Place, printed: Arc<Printed>) -> Shared {
        Shared { engine, place: RwLock::new(place), tables: Mutex::default(), printed }
    }

    fn tables(&self) -> MutexGuard<'_, Tables> {
        // Nothing panics between the steps of a change.
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn place(&self) -> Place {
        self.place.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The executor that works now.
    pub(crate) fn executor(&self) -> Arc<dyn Executor> {
        match self.place() {
            Place::Process(process) => process,
            Place::InProcess(executor, _) => executor,
        }
    }

    pub(super) fn process(&self) -> Option<Arc<Process>> {
        match self.place() {
            Place::Process(process) => Some(process),
            Place::InProcess(..) => None,
        }
    }

    /// The key of programs for the executor.
    pub(super) fn key(&self) -> CacheKey {
        match self.place() {
            Place::Process(process) => process.key().clone(),
            Place::InProcess(_, key) => key,
        }
    }

    pub(super) fn restart(&self) -> Result<bool, RemoteError> {
        let tables = self.tables();
        let Some(process) = self.process().filter(|process| process.lost().is_some()) else {
            return Ok(false);
        };
        let another = Arc::new(process.another()?);
        replay(&*another, &tables)?;
        *self.place.write().unwrap_or_else(PoisonError::into_inner) = Place::Process(another);
        Ok(true)
    }

    /// Loads a sealed program.
    pub(super) fn load(&self, program: Arc<[u8]>) -> Result<UnitId, ExecutorError> {
        let mut tables = self.tables();
        let unit = UnitId(tables.number());
        self.executor().load(unit, &program)?;
        tables.units.insert(unit, program);
        Ok(unit)
    }

    /// Makes a cell that leads to the function of a unit.
    pub(super) fn cell(&self, symbol: &str, unit: UnitId) -> Result<CellId, ExecutorError> {
        let mut tables = self.tables();
        let (cell, executor) = (CellId(tables.number()), self.executor());
        executor.cell(cell, symbol)?;
        if let Err(error) = executor.lead(cell, unit) {
            // The first error is the one to report.
            let _ = executor.drop_cell(cell);
            return Err(error);
        }
        tables.cells.insert(cell, (symbol.into(), unit));
        Ok(cell)
    }

    /// Leads cells to a unit. The tables change first: another executor has them as intended.
    pub(super) fn lead(&self, cells: &[CellId], unit: UnitId) -> Result<(), ExecutorError> {
        let mut tables = self.tables();
        for cell in cells {
            if let Some((_, of)) = tables.cells.get_mut(cell) {
                *of = unit;
            }
        }
        let executor = self.executor();
        cells.iter().try_for_each(|&cell| executor.lead(cell, unit))
    }

    pub(super) fn drop_cell(&self, cell: CellId) {
        let mut tables = self.tables();
        tables.cells.remove(&cell);
        // An executor that is lost has no cells.
        let _ = self.executor().drop_cell(cell);
    }

    pub(super) fn retire(&self, unit: UnitId) {
        let mut tables = self.tables();
        tables.units.remove(&unit);
        let _ = self.executor().retire(unit);
    }
}
