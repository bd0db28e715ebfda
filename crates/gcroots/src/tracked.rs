//! The frame words that are reserved before roots get words.
//!
//! ```text
//!   word  0 …                 argument words of `call_args`, shared by all calls
//!         arguments …         tracked stack slots (one word each), and objects on the stack that hold references
//!         end of `words` …    roots (`slots`)
//! ```
//!
//! Tracked slots and the references of objects on the stack are roots from the function's entry to its end.
//! Cost: linear.

use std::ops::Range;

use brolga_ir::{Block, Func, Inst, Op, Slot};
use cranelift_entity::SecondaryMap;

use crate::stack::StackObjects;

/// The frame words of stack slots.
#[derive(Debug, Default)]
pub(crate) struct TrackedSlots {
    /// The first word of each slot.
    pub(crate) word: SecondaryMap<Slot, Option<u32>>,
    /// The words that hold references; they are roots from the entry to the end.
    pub(crate) kept: Vec<u32>,
}

impl TrackedSlots {
    /// Assigns words from `first` on to a slot and returns their number.
    fn assign(&mut self, func: &Func, objects: &StackObjects, slot: Slot, first: u32) -> u32 {
        self.word[slot] = Some(first);
        if func.slot(slot).tracked {
            self.kept.push(first);
            return 1;
        }
        self.kept.extend(objects.references(slot).map(|offset| first + offset / 8));
        func.slot(slot).size / 8
    }
}

/// The result of [`reserve`].
pub(crate) struct Reserved {
    /// The instructions that use reserved words, each with the end of the words that it needs.
    pub(crate) uses: Vec<(Block, Inst, u32)>,
    /// The words of stack slots.
    pub(crate) slots: TrackedSlots,
    /// The words of stack slots; argument words precede them.
    pub(crate) words: Range<u32>,
}

/// Reserves argument words, a word for each tracked slot, and the words of objects on the stack.
pub(crate) fn reserve(func: &Func, objects: &StackObjects) -> Reserved {
    let mut uses = Vec::new();
    let mut accesses = Vec::new();
    let mut arguments = 0;
    for block in func.blocks() {
        for inst in func.block_insts(block) {
            match func.op(inst) {
                Op::CallArgs(_) if !func.args(inst).is_empty() => {
                    let count = func.args(inst).len() as u32;
                    arguments = arguments.max(count);
                    uses.push((block, inst, count));
                }
                Op::SlotAddr(slot) if func.slot(slot).tracked || objects.is_in_frame(slot) => {
                    accesses.push((block, inst, slot));
                }
                _ => {}
            }
        }
    }
    let mut slots = TrackedSlots::default();
    let mut end = arguments;
    for (block, inst, slot) in accesses {
        if slots.word[slot].is_none() {
            end += slots.assign(func, objects, slot, end);
        }
        let behind = slots.word[slot].map_or(end, |first| first + func.slot(slot).size / 8);
        uses.push((block, inst, behind));
    }
    Reserved { uses, slots, words: arguments..end }
}
