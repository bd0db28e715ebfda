//! The inputs and outputs of root placement: options, statistics, errors.
//!
//! The steps import this file; it imports none of them.

use brolga_ir::Inst;
use brolga_ir::heap_abi::HeapAbi;
use brolga_ir::types::LayoutError;
use thiserror::Error;

use crate::check;

/// How the collector finds the words of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Lowering {
    /// Frames are linked from the thread while they are in use.
    Linked,
    /// Each safepoint has a map ([`brolga_ir::func::RootMap`]) of the words that hold its roots. Code
    /// generation puts the maps into a table indexed by return address, and the collector walks the stack.
    #[default]
    Maps,
}

impl Lowering {
    /// Its name, which is part of cache keys.
    pub fn name(self) -> &'static str {
        match self {
            Lowering::Linked => "linked",
            Lowering::Maps => "maps",
        }
    }
}

/// Options of root placement.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options {
    /// The heap that the code is compiled for.
    pub heap: HeapAbi,
    /// How frames are found.
    pub lowering: Lowering,
    /// Link frames only on paths that need them.
    pub shrink_wrap: bool,
    /// Clear dead root slots before calls, so that they keep no garbage alive.
    pub null_dead: bool,
    /// Verify the whole function first: for callers that have not done so.
    pub verify: bool,
    /// The limit on the sizes of the live sets at block boundaries, summed over the function, per instruction
    /// (plus 256). Beyond it each root has its own word; and where the lists of [`Lowering::Maps`] exceed
    /// half of it, the frame is linked.
    pub budget: usize,
}

impl Options {
    /// Everything enabled, for a heap.
    pub fn new(heap: HeapAbi) -> Options {
        let lowering = Lowering::Linked;
        Options { heap, lowering, shrink_wrap: true, null_dead: true, verify: true, budget: 32 }
    }
}

/// Statistics of one placement.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Report {
    /// Points at which a collection may happen.
    pub safepoints: usize,
    /// Words of the frame, argument words included.
    pub slots: usize,
    /// Stores of roots, not counting argument words.
    pub stores: usize,
    /// Stores of null into dead words.
    pub nulls: usize,
    /// The number of words in a placement with one slot for each tracked value.
    pub naive_slots: usize,
    /// The number of stores in such a placement, one for each definition.
    pub naive_stores: usize,
    /// The maximum number of roots that need slots at the same time.
    pub most: usize,
    /// Added φ and `ifelse` of bases.
    pub lifted: usize,
    /// Write barriers that remain.
    pub barriers: usize,
    /// Write barriers that are redundant and removed.
    pub barriers_removed: usize,
    /// Whether each root has its own word, because exact sets would be larger than the [budget](Options::budget).
    pub coarse: bool,
    /// How the collector finds the frame's words.
    pub lowering: Lowering,
}

/// The reason why placement failed. The function is then unchanged.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum Error {
    /// The function is high IR; it has to be lowered first.
    #[error("root placement is for low IR")]
    NotLow,
    /// The heap moves objects, and the function needs interior addresses across a safepoint that cannot be
    /// recomputed after it.
    #[error("the function holds addresses in objects that move while they are used")]
    Moving {
        /// The instruction that needs such an address, or hides one.
        inst: Inst,
    },
    /// The function breaks rules of the IR.
    #[error("the function breaks {} rules of low IR", .0.len())]
    Ir(Vec<brolga_ir::verify::Violation>),
    /// The function breaks rules of pointer classes.
    #[error("{}", .0.first().map_or(String::new(), |v| v.rule.to_string()))]
    Classes(Vec<check::Violation>),
    /// The function allocates objects of a type without a layout.
    #[error("an object is allocated whose type has no layout")]
    Layout(LayoutError),
}
