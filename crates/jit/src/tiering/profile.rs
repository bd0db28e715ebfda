//! The cells in which code of a first tier counts branches and calls.
//!
//! ```text
//!   branch          │ times, times true << 32 │
//!   dynamic call    │ calls noted │ count, tag, tag, … │ count, tag, tag, … │ …     KINDS lines, each for one tuple of types
//! ```
//!
//! The compiling caller assigns each branch and call a site, which is the number of its first cell (`brolga_ir::hints`);
//! code counts in the cells that it is linked to ([`Linkage::cells`](crate::Linkage)), and its unit keeps them. The compile
//! of the second tier reads them.
//!
//! A call with more than `KINDS` different tuples has the first of them in its lines; the sum of their counts is
//! less than the number of calls, which shows that there are others.
//!
//! **Orderings.** All accesses are relaxed; accesses of code are plain moves. A cell is one word, so a value that is read
//! was written, by an unknown thread at an unknown time: counts may be lost, and the tags of a line may come from two
//! threads' calls. The user of a profile must be correct for any content of it. Linking checks that all sites of the code
//! are inside the cells.
//!
//! | row | operation | order | pairs with | without it |
//! |---|---|---|---|---|
//! | P1 | read or write a cell | Relaxed | – | nothing: it is a hint |
//!
//! Cost: 8 bytes for a branch, and 8 + 32 (n + 1) for a call with n operands.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use brolga_codegen::linkage::{SEEN, SEEN_OPERANDS};
use brolga_ir::{Func, Inst, Op, RuntimeFn};

/// How many tuples of types a call has lines for.
const KINDS: usize = 4;

/// The cells of a profile. Clones share them.
#[derive(Clone)]
pub struct Cells(Arc<[AtomicU64]>);

impl Cells {
    /// `count` cells, all zero.
    pub fn new(count: usize) -> Cells {
        Cells((0..count).map(|_| AtomicU64::new(0)).collect())
    }

    /// How many cells a dynamic call takes; `None` if it has too many operands to be recorded.
    pub fn of_call(operands: usize) -> Option<usize> {
        (1..=SEEN_OPERANDS).contains(&operands).then_some(1 + KINDS * (1 + operands))
    }

    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }

    /// The number of cells that the code of a low function needs, if it counts.
    pub(crate) fn of_sites(func: &Func) -> usize {
        let end = |inst: Inst| {
            let cells = match func.op(inst) {
                Op::Branch => Some(1),
                Op::CallRuntime(RuntimeFn::Apply) => {
                    let operands = func.args(inst).get(1).and_then(|&count| func.as_bits(count));
                    operands.and_then(|operands| Cells::of_call(usize::try_from(operands).ok()?))
                }
                _ => None,
            };
            Some(func.hint(inst)?.site?.cell as usize + cells?)
        };
        let insts = func.blocks().flat_map(|block| func.block_insts(block));
        insts.filter_map(end).max().unwrap_or(0)
    }

    pub(crate) fn address(&self) -> usize {
        self.0.as_ptr().expose_provenance()
    }

    fn get(&self, cell: usize) -> u64 {
        self.0.get(cell).map_or(0, |cell| cell.load(Ordering::Relaxed)) // P1
    }

    /// How often the condition of a branch was true, and how often false.
    pub fn branch(&self, cell: usize) -> (u64, u64) {
        let word = self.get(cell);
        let (times, yes) = (word & u64::from(u32::MAX), word >> 32);
        (yes, times.saturating_sub(yes))
    }

    /// The number of calls that were recorded at a dynamic call, and the tags that they were made with, each with its count.
    pub fn call(&self, cell: usize, operands: usize) -> (u64, Vec<(Vec<u64>, u64)>) {
        let line = |n: usize| cell + 1 + n * (1 + operands);
        let lines = (0..KINDS).map(|n| {
            let tags = (1..=operands).map(|at| self.get(line(n) + at)).collect();
            (tags, self.get(line(n)))
        });
        (self.get(cell), lines.filter(|&(_, count)| count > 0).collect())
    }
}

impl std::fmt::Debug for Cells {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Cells").field(&self.0.len()).finish()
    }
}

/// The routine of this file.
pub(crate) fn routine(name: &str) -> Option<usize> {
    (name == SEEN).then_some(brolga_seen as *const () as usize)
}

/// The routine of tier 1 at a dynamic call that is still counted. Not a safepoint.
extern "C" fn brolga_seen(site: usize, operands: usize, a: u64, b: u64, c: u64, d: u64) {
    let tags = [a, b, c, d];
    let Some((tags, cells)) = tags.get(..operands).zip(Cells::of_call(operands)) else { return };
    // SAFETY: compiled code passes the address of the first of the cells that its site has, whose number is `of_call`'s, in
    // the `Cells` that its unit keeps and that exposed their provenance: `Jit::link` has compared `of_sites` with their
    // number. They are only ever accessed as atomic words, or by compiled code in one move.
    let cells: &[AtomicU64] =
        unsafe { std::slice::from_raw_parts(std::ptr::with_exposed_provenance(site), cells) };
    note(cells, tags);
}

fn note(cells: &[AtomicU64], tags: &[u64]) {
    let get = |cell: &AtomicU64| cell.load(Ordering::Relaxed); // P1
    let set = |cell: &AtomicU64, word| cell.store(word, Ordering::Relaxed); // P1
    let add = |cell: &AtomicU64| set(cell, get(cell).saturating_add(1));
    let Some((total, lines)) = cells.split_first() else { return };
    add(total);
    for line in lines.chunks_exact(1 + tags.len()) {
        let (count, known) = (&line[0], &line[1..]);
        if get(count) == 0 {
            known.iter().zip(tags).for_each(|(cell, &tag)| set(cell, tag));
        } else if known.iter().zip(tags).any(|(cell, &tag)| get(cell) != tag) {
            continue;
        }
        add(count);
        return;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_with_many_kinds_says_that_there_are_others() {
        let cells = Cells::new(1 + Cells::of_call(2).unwrap());
        for n in 0..10 {
            note(&cells.0[1..], &[7, n % 5]);
        }
        let (total, seen) = cells.call(1, 2);
        assert_eq!(total, 10);
        assert_eq!(seen, (0..4).map(|n| (vec![7, n], 2)).collect::<Vec<_>>());
        assert_eq!(Cells::of_call(5), None);
    }

    #[test]
    fn a_branch_is_two_counts_in_one_word() {
        let cells = Cells::new(1);
        cells.0[0].store(10 + (3 << 32), Ordering::Relaxed); // P1
        assert_eq!(cells.branch(0), (3, 7));
        assert_eq!(cells.branch(1), (0, 0), "there is no such cell");
    }
}
