//! The places in the source that code comes from, and the bodies that were inlined there.
//!
//! ```text
//!   low IR: Place { at, inlined }  ──►  CLIF: a word  ──►  code: offset, Origin { at, inlined }  +  the bodies, by number
//!
//!   word       bits of a LineColumn                 a place of the function itself
//!              0xfff0_0000 + n, not a LineColumn    entry n of the table: a place in an inlined body, or an unknown place of a
//!                                                   function with such bodies, where no earlier row may apply
//! ```
//!
//! A row of an address leads to its frames, the innermost first: the body at `at`, then the function around it at the line of the call, and on.
//!
//! Only bodies whose code is left have an entry. Not done: places after the 1,048,574th of the table are not kept.

use brolga_ir::func::{CalleeData, LineColumn, Place};
use brolga_ir::signature::method_symbol;
use brolga_ir::{Context, Func};
use cranelift_codegen::ir::SourceLoc;

/// The first word that is an index: a column that `LineColumn` does not use.
const TABLE: u32 = 0xfff0_0000;
/// The all-ones word is Cranelift's "no location".
const MOST_ENTRIES: usize = 0x000f_ffff;

/// The source of code.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Origin {
    /// The line and column.
    pub at: LineColumn,
    /// The inlined body that they are in, by its index; `None` for the function's own code.
    pub inlined: Option<u32>,
}

impl From<LineColumn> for Origin {
    fn from(at: LineColumn) -> Origin {
        Origin { at, inlined: None }
    }
}

/// A body that took the place of a call.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct InlinedBody {
    /// The deterministic name of its function.
    pub function: String,
    /// The line of the call.
    pub called_at: LineColumn,
    /// The body that contained the call, by its index, which is lower; `None` if the function itself did.
    pub within: Option<u32>,
}

/// The frames at a place, the innermost first: a name, or `None` for the function itself, and the line there.
pub fn frames(origin: Origin, bodies: &[InlinedBody]) -> impl Iterator<Item = (Option<&str>, LineColumn)> {
    let mut next = Some(origin);
    std::iter::from_fn(move || {
        let Origin { at, inlined } = next.take()?;
        let body = inlined.and_then(|index| Some((index, bodies.get(index as usize)?)));
        next = body.map(|(index, body)| Origin {
            at: body.called_at,
            // Bodies of a damaged file must not form a cycle.
            inlined: body.within.filter(|&within| within < index),
        });
        Some((body.map(|(_, body)| body.function.as_str()), at))
    })
}

/// The table of a function in translation.
#[derive(Default, Debug)]
pub(crate) struct Origins {
    entries: Vec<Origin>,
    bodies: u32,
}

impl Origins {
    pub(crate) fn new(func: &Func) -> Origins {
        Origins { entries: Vec::new(), bodies: func.inlined_calls().len() as u32 }
    }

    /// The word of a place.
    pub(crate) fn word(&mut self, place: Place) -> SourceLoc {
        let inlined = place.inlined().map(|id| id.as_u32()).filter(|&id| id < self.bodies);
        let origin = Origin { at: place.at, inlined };
        let is_own = origin.inlined.is_none();
        if is_own && place.at != LineColumn::UNKNOWN {
            return SourceLoc::new(place.at.bits());
        }
        if is_own && self.bodies == 0 || self.entries.len() == MOST_ENTRIES {
            return SourceLoc::default();
        }
        if self.entries.last() != Some(&origin) {
            self.entries.push(origin);
        }
        SourceLoc::new(TABLE + (self.entries.len() - 1) as u32)
    }

    /// The place of a word.
    pub(crate) fn origin(&self, word: SourceLoc) -> Option<Origin> {
        if word.is_default() {
            return None;
        }
        match word.bits().checked_sub(TABLE) {
            Some(index) => self.entries.get(index as usize).copied(),
            None => LineColumn::from_bits(word.bits()).map(Origin::from),
        }
    }
}

/// Drops rows that change nothing and returns the bodies that the others refer to. `rows` refer to the inlined calls of `func` before, and to
/// the returned bodies afterwards.
pub(crate) fn take_bodies(cx: &Context, func: &Func, rows: &mut Vec<(u32, Origin)>) -> Vec<InlinedBody> {
    rows.dedup_by(|next, row| next.1 == row.1);
    let calls: Vec<_> = func.inlined_calls().collect();
    let mut is_used = vec![false; calls.len()];
    for (_, origin) in rows.iter() {
        let mut next = origin.inlined;
        while let Some(is_used) =
            next.and_then(|index| is_used.get_mut(index as usize)).filter(|used| !**used)
        {
            *is_used = true;
            next = next.and_then(|index| calls[index as usize].within).map(|id| id.as_u32());
        }
    }
    let mut bodies = Vec::new();
    let mut numbers = vec![0; calls.len()];
    for (index, call) in calls.into_iter().enumerate().filter(|&(index, _)| is_used[index]) {
        numbers[index] = bodies.len() as u32;
        bodies.push(InlinedBody {
            function: match &call.callee {
                CalleeData::Method { function, args, .. } => method_symbol(cx, *function, args),
                CalleeData::Symbol { symbol, .. } => cx.names.text(*symbol).to_owned(),
            },
            called_at: call.at,
            within: call.within.and_then(|id| numbers.get(id.as_u32() as usize).copied()),
        });
    }
    for (_, origin) in rows {
        origin.inlined = origin.inlined.and_then(|index| numbers.get(index as usize).copied());
    }
    bodies
}
