//! Null for words whose object is no longer needed.
//!
//! A word keeps the last object stored into it alive until the next store. That is safe, but a leak, because
//! a call may take as long as the program runs:
//!
//! ```text
//!   store w0, %1
//!   invoke parse(%1)
//!   store w0, null            otherwise the text is never freed
//!   invoke serve()
//! ```
//!
//! A word is *stale* where it may hold an object of a variable that is not live. Before each call of compiled
//! code, of C, or through argument words, the stale words become null. They do not before allocations and
//! polls, which take a negligible time, nor on [doomed](crate::flow) paths: a word may then be stale across
//! them, and becomes null at the next call. Argument words are stale after their call, except for permanent
//! ones. An argument that dies in the call stays in its word during that call, because many functions end
//! with it.
//!
//! Staleness flows forward: a word that is live at the end of a block and not at the head of its successor is
//! stale there. In a handler every word that is not live may be stale. Cost: the words of the frame, as bits,
//! for each block, and a replay of the events of each block until a fixed point, which takes two passes in
//! most programs. If the bits exceed a budget, nothing becomes null.

use crate::bases::{Bases, Root};
use crate::flow::Flow;
use crate::needs::Set;
use crate::slots::{Event, Slots};
use brolga_ir::analysis::Rpo;
use brolga_ir::{Block, Func, Inst, Op};
use cranelift_entity::{EntityRef, SecondaryMap};
use std::ops::Range;

/// Words that become null before a call.
#[derive(Debug)]
pub(crate) struct Null {
    pub(crate) block: Block,
    pub(crate) before: Inst,
    pub(crate) words: Vec<u32>,
}

/// A row of bits for each block.
struct Rows {
    width: usize,
    bits: Vec<u64>,
}

impl Rows {
    fn new(blocks: usize, words: u32) -> Rows {
        let width = (words as usize).div_ceil(64);
        Rows { width, bits: vec![0; blocks * width] }
    }

    fn row(&self, block: Block) -> &[u64] {
        &self.bits[block.index() * self.width..][..self.width]
    }

    fn row_mut(&mut self, block: Block) -> &mut [u64] {
        &mut self.bits[block.index() * self.width..][..self.width]
    }
}

fn set(row: &mut [u64], word: u32) {
    row[word as usize / 64] |= 1 << (word % 64);
}

/// The stale words while a block is walked: bits, and the rows of them that may be non-zero.
#[derive(Default)]
struct Stale {
    bits: Vec<u64>,
    rows: Vec<u32>,
}

impl Stale {
    fn start(&mut self, bits: &[u64]) {
        self.bits.clear();
        self.bits.extend_from_slice(bits);
        self.rows.clear();
        self.rows.extend((0..).zip(bits).filter(|(_, bits)| **bits != 0).map(|(row, _)| row));
    }

    fn add(&mut self, word: u32) {
        if self.bits[word as usize / 64] == 0 {
            self.rows.push(word / 64);
        }
        set(&mut self.bits, word);
    }

    fn remove(&mut self, word: u32) {
        self.bits[word as usize / 64] &= !(1 << (word % 64));
    }

    /// Empties it and passes its former members to `word`.
    fn drain(&mut self, mut word: impl FnMut(u32)) {
        for row in self.rows.drain(..) {
            let mut left = std::mem::take(&mut self.bits[row as usize]);
            while left != 0 {
                word(64 * row + left.trailing_zeros());
                left &= left - 1;
            }
        }
    }
}

/// An event that changes words in a block.
#[derive(Clone, Copy)]
enum Step {
    Stored(u32),
    /// A call with this number of argument words.
    Call(Inst, u32),
    Dead(u32),
}

/// Where words become null, block by block. The words of tracked slots, `kept`, belong to the function.
pub(crate) fn compute(
    func: &Func,
    bases: &Bases,
    slots: &Slots,
    kept: Range<u32>,
    flow: &Flow,
    rpo: &Rpo,
    budget: usize,
) -> Vec<Null> {
    let blocks = flow.cfg.block_count();
    let rows = blocks.saturating_mul(slots.words.div_ceil(64) as usize);
    if slots.words == 0 || rows > budget {
        return Vec::new();
    }
    let mut steps: SecondaryMap<Block, Vec<Step>> = SecondaryMap::new();
    let mut live_in = Rows::new(blocks, slots.words);
    let mut live_out = Rows::new(blocks, slots.words);
    let word = |variable: u32| slots.stores[variable as usize].word;
    let mut died = Died {
        words: Set::new(slots.words as usize),
        roots: vec![0; slots.words as usize],
        passed: Set::new(bases.roots.len()),
    };
    for &block in rpo.blocks() {
        steps[block] = steps_of(func, bases, slots, block, &mut died);
        slots.ranges.live_in(block).iter().for_each(|&v| set(live_in.row_mut(block), word(v)));
        slots.ranges.live_out(block).iter().for_each(|&v| set(live_out.row_mut(block), word(v)));
    }
    // The stale words at the heads and at the ends of blocks.
    let mut heads = Rows::new(blocks, slots.words);
    let mut ends = Rows::new(blocks, slots.words);
    for &handler in flow.handlers() {
        let words = (0..slots.words).filter(|w| !kept.contains(w));
        words.for_each(|w| set(heads.row_mut(handler), w));
    }
    let mut changed = true;
    let mut row = vec![0; heads.width];
    let mut stale = Stale::default();
    while changed {
        changed = false;
        for &block in rpo.blocks() {
            row.copy_from_slice(heads.row(block));
            for &pred in flow.cfg.preds(block) {
                for (n, bits) in row.iter_mut().enumerate() {
                    *bits |= ends.row(pred)[n] | live_out.row(pred)[n];
                }
            }
            for (n, bits) in row.iter_mut().enumerate() {
                *bits &= !live_in.row(block)[n];
            }
            heads.row_mut(block).copy_from_slice(&row);
            stale.start(&row);
            replay(&steps[block], flow.doom(block).is_some(), &mut stale, |_, stale| stale.drain(|_| {}));
            if ends.row(block) != stale.bits {
                ends.row_mut(block).copy_from_slice(&stale.bits);
                changed = true;
            }
        }
    }
    let mut nulls = Vec::new();
    for &block in rpo.blocks() {
        stale.start(heads.row(block));
        replay(&steps[block], flow.doom(block).is_some(), &mut stale, |before, stale| {
            let mut words = Vec::new();
            stale.drain(|word| words.push(word));
            words.sort_unstable();
            if !words.is_empty() {
                nulls.push(Null { block, before, words });
            }
        });
    }
    nulls
}

/// The deaths since the last call of a block: words, and by word the root. And the roots passed to a call.
struct Died {
    words: Set,
    roots: Vec<Root>,
    passed: Set,
}

fn steps_of(func: &Func, bases: &Bases, slots: &Slots, block: Block, died: &mut Died) -> Vec<Step> {
    let mut steps = Vec::new();
    let step = |steps: &mut Vec<Step>, died: &mut Died, event: Event| match event {
        Event::Begin(variable) => {
            let word = slots.stores[variable as usize].word;
            died.words.remove(word);
            steps.push(Step::Stored(word));
        }
        Event::End(variable) => {
            let store = slots.stores[variable as usize];
            died.roots[store.word as usize] = store.root;
            died.words.insert(store.word);
        }
    };
    let mut events = slots.events[block].iter().peekable();
    for inst in func.block_insts(block) {
        let arguments = match func.op(inst) {
            Op::CallArgs(_) => func.args(inst).len() as u32,
            Op::CallSymbol(_) | Op::ForeignCall(_) => 0,
            _ => continue,
        };
        let at = slots.position(inst);
        while let Some(&&(_, event)) = events.peek().filter(|e| e.0 < at || (e.0 == at && e.1.is_begin())) {
            step(&mut steps, died, event);
            events.next();
        }
        func.args(inst).iter().filter_map(|&v| bases.root(v)).for_each(|root| {
            died.passed.insert(root);
        });
        let is_passed = |word: &u32| died.passed.contains(died.roots[*word as usize]);
        let (passed, gone): (Vec<u32>, Vec<u32>) =
            died.words.list().iter().partition(|&word| is_passed(word));
        died.words.clear();
        died.passed.clear();
        steps.extend(gone.into_iter().map(Step::Dead));
        steps.push(Step::Call(inst, arguments));
        let operands = func.args(inst).iter().take(arguments as usize).zip(0..);
        let held = operands.filter(|&(&v, _)| bases.root(v).is_some());
        steps.extend(held.map(|(_, word)| Step::Dead(word)));
        steps.extend(passed.into_iter().map(Step::Dead));
    }
    for &(_, event) in events {
        step(&mut steps, died, event);
    }
    steps.extend(died.words.list().iter().map(|&word| Step::Dead(word)));
    died.words.clear();
    steps
}

/// Applies a block's events to the stale words. `null` removes them where they become null, before a call.
fn replay(steps: &[Step], doomed: bool, stale: &mut Stale, mut null: impl FnMut(Inst, &mut Stale)) {
    for &step in steps {
        match step {
            Step::Stored(word) => stale.remove(word),
            Step::Dead(word) => stale.add(word),
            Step::Call(call, arguments) => {
                // The call overwrites these.
                (0..arguments).for_each(|w| stale.remove(w));
                if !doomed {
                    null(call, stale);
                }
            }
        }
    }
}
