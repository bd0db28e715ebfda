//! Versions for newer worlds: how a cell gets one, and the retirement of the version before.
//!
//! ```text
//!   supersede ──► Superseded (retired with its worlds) ── no thread is in them ──► dropped: the instance leaves its cell
//! ```

use std::any::Any;
use std::sync::Arc;

use brolga_instances::Moving;
use brolga_runtime::RetiredCode;

use super::instance::{Added, Beginning, Instance};
use super::record::Record;
use super::select::Selector;
use crate::unit::Unit;

/// A code instance that calls of newer worlds do not reach. It is to be retired once the newer world has come; when it is dropped, the instance
/// leaves its cell.
#[must_use = "the version is to be retired, with `Runtime::retire`, when its last world is over"]
pub struct Superseded {
    record: Arc<Record>,
    /// Which instance it is; none if one of the same world was replaced, which no thread has seen.
    number: Option<u64>,
    /// The first and the last world in which it is visible.
    worlds: (u64, u64),
    /// The replaced instance, and the unused selector.
    #[expect(dead_code, reason = "dropped without the locks under which instances are added")]
    unused: Option<(Box<Instance>, Selector)>,
    #[expect(dead_code, reason = "held so that whoever is short of room waits for the code")]
    moving: Moving,
}

impl Superseded {
    /// Shows the unit of its code, if it was compiled.
    pub(crate) fn show_unit(&self, show: impl FnOnce(&Unit)) {
        let mut content = self.record.lock();
        let instance = self.number.and_then(|number| content.instances.find(number));
        if let Some(target) = instance.and_then(|instance| instance.code()) {
            show(target.unit());
        }
    }
}

impl std::fmt::Debug for Superseded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Superseded").field(&self.record.name).field(&self.worlds).finish()
    }
}

impl RetiredCode for Superseded {
    /// A frame in its code belongs to a thread that is in one of its worlds.
    fn contains_any(&self, _: &[usize]) -> bool {
        false
    }

    fn worlds(&self) -> Option<(u64, u64)> {
        Some(self.worlds)
    }

    fn keeper(&self) -> Option<&dyn Any> {
        Some(self)
    }
}

impl Drop for Superseded {
    fn drop(&mut self) {
        if let Some(number) = self.number {
            self.record.settle(number);
        }
    }
}

impl Record {
    /// Adds an instance for the worlds from `world` on.
    pub(super) fn supersede(
        record: &Arc<Record>,
        selector: Selector,
        world: u64,
        beginning: Beginning,
    ) -> Superseded {
        let mut content = record.lock();
        let added = content.instances.add(selector, world, beginning);
        record.lead(&mut content);
        drop(content);
        let (number, first, unused) = match added {
            Added::Superseded { number, first } => (Some(number), first, None),
            Added::Replaced(instance, selector) => (None, world, Some((instance, selector))),
        };
        let (record, worlds) = (record.clone(), (first, world.saturating_sub(1).max(first)));
        let moving = record.jit.moving();
        Superseded { record, number, worlds, unused, moving }
    }

    /// A superseded instance that no thread can call any more leaves the cell.
    pub(super) fn settle(&self, number: u64) {
        let mut content = self.lock();
        let Some((instance, selector)) = content.instances.settle(number) else { return };
        self.lead(&mut content);
        drop(content);
        // Every thread that could be in its code has left: the code is dropped at once. Threads of any world pass the
        // selector.
        drop(instance);
        self.retire_selectors(vec![selector]);
    }
}
