//! Moves and clears elements of memories in stretches. Between two stretches pending requests to the thread
//! are handled, so neither a limit nor a collection waits for a long move. Elements of size zero are not
//! touched: there may be more of them than any loop could visit.

use crate::heap::{ObjectKind, Root};

use super::call::Ops;
use super::place::{Place, STRETCH, clear, copy_element, copy_plain};
use super::throw::Raised;

/// A `Memory`, and the position of an element in it.
type Start<'f, 'h> = (Root<'f, 'h>, usize);

impl<'f, 'h> Ops<'_, 'f, 'h> {
    /// Copies elements over others of a `Memory` of the same type; the ranges are in bounds and may overlap.
    /// A safepoint.
    pub(crate) fn move_elements(
        &mut self,
        to: Start<'f, 'h>,
        from: Start<'f, 'h>,
        count: usize,
    ) -> Result<(), Raised> {
        if self.has_empty_elements(from.0) {
            return Ok(());
        }
        // From the end, so that nothing is overwritten before it is copied.
        let is_backward = to.1 > from.1 && self.object(to.0) == self.object(from.0);
        let mut left = count;
        while left > 0 {
            let length = left.min(STRETCH);
            let at = if is_backward { left - length } else { count - left };
            self.move_stretch((to.0, to.1 + at), (from.0, from.1 + at), length, is_backward);
            left -= length;
            self.poll_within()?;
        }
        Ok(())
    }

    fn move_stretch(&self, to: Start<'f, 'h>, from: Start<'f, 'h>, count: usize, is_backward: bool) {
        let places = |n: usize| Some((self.place_at(from, n)?, self.place_at(to, n)?));
        if places(0).is_some_and(|(from, to)| copy_plain(from, to, count)) {
            return;
        }
        for n in 0..count {
            if let Some((from, to)) = places(if is_backward { count - 1 - n } else { n }) {
                copy_element(self.scope, from, to);
            }
        }
    }

    /// Resets elements to their state in a fresh `Memory`. A safepoint.
    pub(crate) fn clear_elements(&mut self, first: Start<'f, 'h>, count: usize) -> Result<(), Raised> {
        if self.has_empty_elements(first.0) {
            return Ok(());
        }
        for start in (0..count).step_by(STRETCH) {
            let stretch = start..count.min(start + STRETCH);
            stretch.filter_map(|n| self.place_at(first, n)).for_each(clear);
            self.poll_within()?;
        }
        Ok(())
    }

    fn place_at(&self, (memory, start): Start<'f, 'h>, n: usize) -> Option<Place<'h>> {
        Place::element(self.object(memory), start.checked_add(n)?)
    }

    fn has_empty_elements(&self, memory: Root<'f, 'h>) -> bool {
        matches!(self.object(memory).desc().kind(), ObjectKind::Memory(element) if element.is_empty())
    }
}
