//! The observations of a first tier, for the second.
//!
//! ```text
//!   as read ── number ──► sites ──┬─► first tier: passes, code that counts in the cells ──────► cells
//!                                 └─► second tier: advise (reads the cells) ──► passes ──► code          (also continuations of loops)
//! ```
//!
//! A *site* identifies a branch or dynamic call in the functions as they were read: it is the number of its first cell. Both tiers start
//! with the same functions, so a number means the same in both. Passes preserve sites, so an inlined or copied branch
//! counts for the function that it was written in. Sites from another source belong to other cells, and are removed.
//!
//! | counted | becomes | used by |
//! |---|---|---|
//! | the outcomes of a branch | branch weights | block order, inlining, selects instead of branches, loops |
//! | types at a dynamic call | observed types | `union-split`: a test, and a call of the method it selects |
//!
//! Correctness never depends on a profile: counts may be lost, few, or outdated. A call of an observed method
//! is guarded by a test, with the original call in the other branch. The method table implies that the test selects the right method, as for
//! every devirtualized call: a new method of its function recompiles the caller (`invalidation.rs`).
//!
//! The profile lives as long as the code that counts in it. A redefined function has a new one.
//!
//! Cost: the cells (`crates/jit/src/tiering/profile.rs`) of all functions of a program in two tiers; a walk over them for each tier. Not done: observations of
//! tier 0's interpreter; iteration counts of loops.

use std::sync::Arc;

use brolga_ir::hints::{BranchWeights, Hint, Seen, Site};
use brolga_ir::{Context, Func, Inst, Level, Module, Op, Type};
use brolga_jit::Cells;
use brolga_runtime::Runtime;

/// The minimum count for a conclusion.
const FEWEST: u64 = 16;

/// See the file's header.
pub(crate) struct Profile {
    cells: Cells,
    runtime: Arc<Runtime>,
}

impl Profile {
    /// Assigns a site to every branch and dynamic call of a module's high functions. `None` if there are no sites.
    pub(crate) fn number(runtime: &Arc<Runtime>, module: &mut Module) -> Option<Arc<Profile>> {
        let mut next = 0;
        let ids: Vec<_> = module.funcs().map(|(id, _)| id).collect();
        for id in ids {
            let func = &mut module[id];
            for inst in insts(func) {
                let cells = match func.op(inst) {
                    _ if func.level != Level::High => None,
                    Op::Branch => Some(1),
                    Op::Call => Cells::of_call(func.args(inst).len()),
                    _ => None,
                };
                let site = u32::try_from(next).ok().zip(cells).map(|(cell, cells)| {
                    next += cells;
                    Site { cell, swapped: false }
                });
                let hint = func.hint(inst).cloned().unwrap_or_default();
                if hint.site != site {
                    func.set_hint(inst, Hint { site, ..hint });
                }
            }
        }
        (next > 0).then(|| Arc::new(Profile { cells: Cells::new(next), runtime: runtime.clone() }))
    }

    /// The cells in which code counts.
    pub(crate) fn cells(&self) -> &Cells {
        &self.cells
    }

    /// Annotates a function, whose instructions have sites, with the observations at them.
    pub(crate) fn advise(&self, cx: &Arc<Context>, func: &mut Func) {
        for inst in insts(func) {
            let Some(hint) = func.hint(inst).cloned() else { continue };
            let Some(Site { cell, swapped }) = hint.site else { continue };
            let new = match func.op(inst) {
                Op::Branch => {
                    let (yes, no) = self.cells.branch(cell as usize);
                    if yes + no < FEWEST {
                        continue;
                    }
                    let weights = BranchWeights::of_counts(yes, no);
                    Hint {
                        weights: if swapped { weights.map(BranchWeights::swapped) } else { weights },
                        ..hint
                    }
                }
                Op::Call => Hint { seen: self.seen(cx, cell, func.args(inst).len()), ..hint },
                _ => continue,
            };
            func.set_hint(inst, new);
        }
    }

    /// The argument types of at least a quarter of a call's executions, most frequent first.
    fn seen(&self, cx: &Arc<Context>, cell: u32, operands: usize) -> Vec<Seen> {
        let (total, lines) = self.cells.call(cell as usize, operands);
        let frequent = lines.into_iter().filter(|&(_, count)| total >= FEWEST && count * 4 >= total);
        let typed = frequent.filter_map(|(tags, count)| {
            let ty = |&tag: &u64| self.runtime.type_of_tag(cx, tag).filter(|&ty| is_told_by_tag(cx, ty));
            let types = tags.iter().map(ty).collect::<Option<_>>()?;
            Some(Seen { types, count: u32::try_from(count).unwrap_or(u32::MAX) })
        });
        let mut seen: Vec<Seen> = typed.collect();
        seen.sort_by_key(|seen| std::cmp::Reverse(seen.count));
        seen
    }
}

/// Whether the tag of an object determines everything that dispatch can test. Types are objects of one type, but methods distinguish them.
fn is_told_by_tag(cx: &Context, ty: Type) -> bool {
    cx.types.is_concrete(ty)
        && ty != Type::DATATYPE
        && !cx.types.is_subtype(ty, cx.types.supertype(Type::DATATYPE))
}

fn insts(func: &Func) -> Vec<Inst> {
    func.blocks().flat_map(|block| func.block_insts(block)).collect()
}
