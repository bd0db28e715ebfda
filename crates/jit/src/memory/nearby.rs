//! Code memory at addresses that a unit of object files can reach others from: near a library, or low.
//!
//! Most units are in the engine's code memory. Each other reservation serves all units that it is near enough for, and stays as long as the engine; a unit that would take
//! most of the engine's code memory has one as well. The engine's limit of memory holds for all of them together.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use crate::memory::code_memory::{CodeMemory, CodeMemoryOptions, Mapping};
use crate::memory::error::CodeMemoryError;
use crate::memory::reservation::{CodeMemoryStats, Parts};
use crate::memory::space::Draft;

/// Bytes of a reservation.
const RESERVE: usize = 64 << 20;

/// Bytes that a unit needs at most beside its own: its parts are whole pages.
const SLACK: usize = 1 << 20;

/// Reservations beside the engine's own.
#[derive(Default)]
pub(crate) struct Nearby {
    all: Mutex<Vec<CodeMemory>>,
}

impl Nearby {
    /// Pages for one unit, all of them within `allowed`; `None` if no such addresses are free.
    pub(crate) fn draft(
        &self,
        main: &CodeMemory,
        parts: Parts,
        allowed: &Range<usize>,
    ) -> Result<Option<Draft>, CodeMemoryError> {
        let bytes = parts.total().unwrap_or(usize::MAX);
        let is_large = bytes > main.addresses().len() / 2;
        if is_within(main, allowed) && !is_large {
            return main.draft(parts).map(Some);
        }
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        let in_use = main.stats().in_use + all.iter().map(|memory| memory.stats().in_use).sum::<usize>();
        if let Some(limit) = main.limit().filter(|&limit| in_use.saturating_add(bytes) > limit) {
            return Err(CodeMemoryError::Limit { bytes, in_use, limit });
        }
        for memory in all.iter().filter(|memory| is_within(memory, allowed)) {
            if let Ok(draft) = memory.draft(parts) {
                return Ok(Some(draft));
            }
        }
        let reserve = bytes.saturating_add(SLACK).max(RESERVE);
        let options = CodeMemoryOptions { reserve, mapping: Mapping::Private, limit: None };
        let Some(memory) = CodeMemory::within(options, allowed) else { return Ok(None) };
        let draft = memory.draft(parts)?;
        all.push(memory);
        Ok(Some(draft))
    }

    /// Adds their use to `stats`.
    pub(crate) fn add_to(&self, stats: &mut CodeMemoryStats) {
        for memory in self.all.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            let own = memory.stats();
            stats.reserved += own.reserved;
            stats.in_use += own.in_use;
            stats.mapped += own.mapped;
            stats.resident += own.resident;
            stats.runs += own.runs;
            stats.freed += own.freed;
            stats.lost += own.lost;
        }
    }
}

fn is_within(memory: &CodeMemory, allowed: &Range<usize>) -> bool {
    let own = memory.addresses();
    allowed.start <= own.start && own.end <= allowed.end
}
