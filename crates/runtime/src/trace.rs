//! Stack traces: where compiled code was when it threw.
//!
//! ```text
//!   throw routine ──► Thread::push ── frames of compiled code ──► return addresses, stored with the exception on the thread's stack
//!   exception arrives in Rust ── Symbolizers of the runtime ──► Exception::trace: functions and lines, the innermost first
//! ```
//!
//! A throw records only the addresses, by the chain of frame pointers; names are looked up when the exception
//! leaves compiled code, while that code still exists. A rethrown exception keeps its trace.
//!
//! | [`Traces`] | throws with the cost of a trace                                                     |
//! |------------|-------------------------------------------------------------------------------------|
//! | `Off`      | none                                                                                |
//! | `Leaving`  | those without a handler in compiled code, which leave it                              |
//! | `All`      | all, so that a caught and rethrown exception keeps the trace of its origin            |
//!
//! Cost: a comparison for each throw; for a recorded trace, about 3 ns per frame, and 0.1 µs per frame for
//! names. Frames beyond [`MAX_FRAMES`] are omitted.

use std::cell::RefCell;
use std::ops::Range;
use std::sync::{Arc, PoisonError, RwLock, Weak};

use brolga_ir::func::LineColumn;
use brolga_ir::function_name::BOXED_ENTRY;

use crate::frames::Frames;

/// Frames in one trace.
pub const MAX_FRAMES: usize = 64;

/// Which exceptions have a stack trace.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Traces {
    /// None.
    Off,
    /// Exceptions that leave compiled code without a handler.
    #[default]
    Leaving,
    /// All.
    All,
}

/// One activation in a stack trace.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StackFrame {
    /// The address in the code: the last byte of the call that was under way.
    pub address: usize,
    /// The function; `None` for code without a symbolizer.
    pub function: Option<String>,
    /// The source line, if known.
    pub line: Option<u32>,
    /// The column, if known.
    pub column: Option<u32>,
    /// Whether the function's body was inlined: it has the address and the activation of the next frame in the trace.
    pub inlined: bool,
}

impl std::fmt::Display for StackFrame {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.function {
            Some(function) => write!(f, "{function}")?,
            None => write!(f, "{:#x}", self.address)?,
        }
        match LineColumn::new(self.line.unwrap_or(0), self.column.unwrap_or(0)) {
            LineColumn::UNKNOWN => {}
            place => write!(f, " at line {place}")?,
        }
        f.write_str(if self.inlined { " [inlined]" } else { "" })
    }
}

/// Frames that are shown at most; a longer trace ends with the number of the others.
const SHOWN_FRAMES: usize = 24;

/// Shows a trace, one line for each frame, indented; a frame that repeats, as in a recursion, has one line with its number. Empty without frames.
pub fn show_trace(frames: &[StackFrame]) -> impl std::fmt::Display {
    let same = |a: &StackFrame, b: &StackFrame| {
        (&a.function, a.line, a.column, a.inlined) == (&b.function, b.line, b.column, b.inlined)
            && a.function.is_some()
    };
    std::fmt::from_fn(move |f| {
        let mut left = frames.len();
        for (index, run) in frames.chunk_by(same).enumerate() {
            if index == SHOWN_FRAMES {
                return write!(f, "\n  and {} more", brolga_ir::diag::counted(left, "frame"));
            }
            left -= run.len();
            write!(f, "\n  in {}", run[0])?;
            if run.len() > 1 {
                write!(f, ", {} times", run.len())?;
            }
        }
        Ok(())
    })
}

/// Maps addresses of compiled code to functions.
pub trait Symbolizer: Send + Sync {
    /// Calls `frame` with each function that the code at an address comes from, and the place in its source: bodies that were inlined, the
    /// innermost first, and the function itself. `false` if the address is in no function.
    fn locate(&self, address: usize, frame: &mut dyn FnMut(&str, LineColumn)) -> bool;
}

/// The symbolizers of a runtime.
#[derive(Default)]
pub(crate) struct Symbolizers {
    known: RwLock<Vec<Weak<dyn Symbolizer>>>,
}

impl Symbolizers {
    /// Adds one, for as long as another owner holds it.
    pub(crate) fn add(&self, symbolizer: Weak<dyn Symbolizer>) {
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        known.retain(|known| known.strong_count() > 0);
        known.push(symbolizer);
    }

    /// The frames for return addresses.
    pub(crate) fn frames(&self, return_addresses: &[usize]) -> Arc<[StackFrame]> {
        if return_addresses.is_empty() {
            return Arc::default();
        }
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        let mut frames: Vec<StackFrame> = Vec::with_capacity(return_addresses.len());
        for return_address in return_addresses {
            let address = return_address.saturating_sub(1);
            let first = frames.len();
            let mut add = |function: Option<String>, place: LineColumn| {
                let (line, column) = (place.line(), place.column());
                frames.push(StackFrame { address, function, line, column, inlined: true });
            };
            let mut named = |function: &str, place: LineColumn| add(Some(function.to_owned()), place);
            let is_found = |symbolizer: &Weak<dyn Symbolizer>| {
                symbolizer.upgrade().is_some_and(|symbolizer| symbolizer.locate(address, &mut named))
            };
            if !known.iter().any(is_found) {
                add(None, LineColumn::UNKNOWN);
            }
            if let Some(last) = frames[first..].last_mut() {
                last.inlined = false;
            }
        }
        // Adapters of functions that are called with objects are not functions of the program.
        frames.retain(|frame| frame.function.as_ref().is_none_or(|name| !name.ends_with(BOXED_ENTRY)));
        frames.into()
    }
}

/// The traces of the exceptions on a thread's stack.
#[derive(Default)]
pub(crate) struct TraceStack {
    traces: RefCell<TakenTraces>,
}

/// The traces, consecutively. Allocates only when it outgrows its largest size so far.
#[derive(Default)]
struct TakenTraces {
    /// The index on the stack of exceptions, ascending, and where the addresses begin; not every exception
    /// has a trace.
    starts: Vec<(usize, usize)>,
    addresses: Vec<usize>,
}

impl TakenTraces {
    fn pop(&mut self, depth: usize) {
        while let Some((_, start)) = self.starts.pop_if(|(place, _)| *place >= depth) {
            self.addresses.truncate(start);
        }
    }

    /// The addresses of the exception at `place`.
    fn range(&self, place: usize) -> Range<usize> {
        let Some(at) = self.starts.iter().rposition(|(known, _)| *known == place) else { return 0..0 };
        self.starts[at].1..self.starts.get(at + 1).map_or(self.addresses.len(), |(_, next)| *next)
    }
}

impl TraceStack {
    /// Records the frames of the exception pushed at `place`.
    pub(crate) fn take(&self, place: usize, frames: Frames<'_>) {
        let traces = &mut *self.traces.borrow_mut();
        traces.pop(place);
        traces.starts.push((place, traces.addresses.len()));
        traces.addresses.extend(frames.take(MAX_FRAMES).map(|frame| frame.return_address));
    }

    /// The exception at `place` is the one at `from`, rethrown. The traces at `place` and above are dropped.
    pub(crate) fn again(&self, from: usize, place: usize) {
        let traces = &mut *self.traces.borrow_mut();
        let trace = traces.addresses[traces.range(from)].to_vec();
        traces.pop(place);
        if !trace.is_empty() {
            traces.starts.push((place, traces.addresses.len()));
            traces.addresses.extend(trace);
        }
    }

    /// Drops the traces of exceptions from `depth` on.
    pub(crate) fn pop(&self, depth: usize) {
        self.traces.borrow_mut().pop(depth);
    }

    /// The return addresses of the exception at `place`, written to `room`; empty if they were not recorded.
    pub(crate) fn get<'r>(&self, place: usize, room: &'r mut [usize; MAX_FRAMES]) -> &'r [usize] {
        let traces = self.traces.borrow();
        let trace = &traces.addresses[traces.range(place)];
        let (room, _) = room.split_at_mut(trace.len().min(MAX_FRAMES));
        room.copy_from_slice(&trace[..room.len()]);
        room
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Below(usize);

    impl Symbolizer for Below {
        fn locate(&self, address: usize, frame: &mut dyn FnMut(&str, LineColumn)) -> bool {
            let place = LineColumn::new(address as u32, self.0 as u32 - 10);
            let is_below = address < self.0;
            if is_below {
                frame("inner", LineColumn::UNKNOWN);
                frame(&format!("f{}", self.0), place);
            }
            is_below
        }
    }

    #[test]
    fn the_first_symbolizer_that_knows_and_still_lives_is_believed() {
        let symbolizers = Symbolizers::default();
        let (low, high): (Arc<dyn Symbolizer>, Arc<dyn Symbolizer>) =
            (Arc::new(Below(10)), Arc::new(Below(20)));
        symbolizers.add(Arc::downgrade(&low));
        symbolizers.add(Arc::downgrade(&high));
        let shown =
            || symbolizers.frames(&[10, 11, 21]).iter().map(StackFrame::to_string).collect::<Vec<_>>();
        let inner = "inner [inlined]";
        assert_eq!(shown(), [inner, "f10 at line 9", inner, "f20 at line 10:10", "0x14"]);
        drop(high);
        assert_eq!(shown(), [inner, "f10 at line 9", "0xa", "0x14"]);
    }

    #[test]
    fn traces_go_with_their_exceptions() {
        let stack = TraceStack::default();
        let get = |place| stack.get(place, &mut [0; MAX_FRAMES]).to_vec();
        *stack.traces.borrow_mut() = TakenTraces { starts: vec![(0, 0), (2, 1)], addresses: vec![1, 3, 4] };
        assert_eq!((get(0), get(1), get(2)), (vec![1], vec![], vec![3, 4]));
        stack.again(2, 3);
        assert_eq!(get(3), [3, 4]);
        // The rethrown exception replaces those that it skipped.
        stack.again(3, 1);
        assert_eq!((get(0), get(1), get(2)), (vec![1], vec![3, 4], vec![]));
        stack.pop(1);
        assert_eq!((get(0), get(1)), (vec![1], vec![]));
    }
}
