//! A cell that switches its calls between several bodies, by one store each time.

use super::instance::{State, plain};
use super::materialize::Target;
use super::record::Record;
use super::{CellError, CellOwner};

/// A function whose calls are switched between several bodies, by one store each time. Dropping it keeps the last choice.
pub struct Switch<'a> {
    record: &'a Record,
    targets: Vec<Target>,
    chosen: usize,
}

impl CellOwner {
    /// Prepares to switch calls between the targets, any number of times; they go to the first one at first. Meanwhile
    /// nothing else changes the cell. `None` if there are no targets.
    ///
    /// # Errors
    /// A target has another type, or belongs to another engine.
    pub fn switch(&mut self, targets: Vec<Target>) -> Result<Option<Switch<'_>>, CellError> {
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
    /// Directs every later call to the target of that number; false if there is none. Calls that have begun continue.
    pub fn set(&mut self, number: usize) -> bool {
        let Some(target) = self.targets.get(number) else { return false };
        self.record.place.set(target.address());
        self.chosen = number;
        true
    }
}

impl Drop for Switch<'_> {
    fn drop(&mut self) {
        let chosen = self.targets.swap_remove(self.chosen);
        self.record.replace_all(plain(State::Ready(chosen)));
        for target in self.targets.drain(..) {
            self.record.retire_target(target);
        }
    }
}
