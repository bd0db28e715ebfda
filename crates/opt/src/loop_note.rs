//! Hints of a loop's author.
//!
//! | part of the note | meaning | read by |
//! |---|---|---|
//! | `(Symbol("llvm.loop.unroll.count"), n)` | that many iterations between two tests; 1 is never | unroll, unroll-full |
//! | `Symbol("llvm.loop.unroll.disable")` | no copies of iterations | unroll, unroll-full |
//! | `Symbol("llvm.loop.unroll.full")` | written out, if the number of iterations is known | unroll-full |
//! | `(Symbol("llvm.loop.vectorize.enable"), 0)` | no lanes | vectorize |
//!
//! The names are those that Julia prints. In high IR the note is an operation (`loopinfo`) in a block of the loop; `lower` puts the
//! parts of the table on the loop's head, where low passes find them. Other parts (`julia.simdloop`) are for high passes.
//!
//! A pass adds the second one to a loop whose iterations it has made long.
//!
//! Hints do not change the rules: a loop that cannot be unrolled stays. A hint applies once, so a pass removes the note
//! from the loop that remains.

use brolga_ir::func::{MetaData, MetaItem};
use brolga_ir::{Block, Context, Func, Types};

const COUNT: &str = "llvm.loop.unroll.count";
const DISABLE: &str = "llvm.loop.unroll.disable";
const FULL: &str = "llvm.loop.unroll.full";
const VECTORIZE: &str = "llvm.loop.vectorize.enable";

/// How often iterations are to be copied.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Unrolling {
    /// As the heuristics decide.
    #[default]
    Any,
    Never,
    /// All of them.
    Full,
    /// This many between two tests; at least two.
    Iterations(usize),
}

/// The hints for a loop.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LoopNote {
    pub(crate) unroll: Unrolling,
    pub(crate) vectorize: bool,
}

impl LoopNote {
    /// A note that forbids copies of iterations.
    pub(crate) fn never_unrolled(cx: &Context) -> MetaData {
        MetaData { items: vec![MetaItem::Name(cx.names.intern(DISABLE))] }
    }

    /// The hint for the loop of a head.
    pub(crate) fn of(func: &Func, types: &Types, head: Block) -> LoopNote {
        let mut note = LoopNote { unroll: Unrolling::Any, vectorize: true };
        let items = func.loop_note(head).map_or(&[][..], |meta| &func.meta(meta).items);
        for item in items {
            let (name, number) = match *item {
                MetaItem::Name(name) => (name, None),
                MetaItem::Pair(name, number) => (name, Some(number)),
                MetaItem::Int(_) | MetaItem::Nothing => continue,
            };
            match (types.names().text(name), number) {
                (DISABLE, None) => note.unroll = Unrolling::Never,
                (FULL, None) => note.unroll = Unrolling::Full,
                (COUNT, Some(count)) => {
                    note.unroll = match usize::try_from(count) {
                        Ok(count @ 2..) => Unrolling::Iterations(count),
                        _ => Unrolling::Never,
                    }
                }
                (VECTORIZE, Some(wanted)) => note.vectorize = wanted != 0,
                _ => {}
            }
        }
        note
    }
}

/// The parts of a note that low passes read; `None` if there is none.
pub(crate) fn low_note(types: &Types, note: &MetaData) -> Option<MetaData> {
    let is_low = |item: &&MetaItem| match **item {
        MetaItem::Name(name) => [DISABLE, FULL].contains(&types.names().text(name)),
        MetaItem::Pair(name, _) => [COUNT, VECTORIZE].contains(&types.names().text(name)),
        MetaItem::Int(_) | MetaItem::Nothing => false,
    };
    let items: Vec<MetaItem> = note.items.iter().filter(is_low).cloned().collect();
    (!items.is_empty()).then_some(MetaData { items })
}
