//! The table of operations: facts for the reader, the printer, the verifier, the passes and lowering.
//!
//! | column | read by |
//! |---|---|
//! | [`Op::name`] | printer and reader of low IR; messages of the verifier |
//! | [`Op::level`] | verifier, inlining, the list of doors |
//! | [`Op::operands`] | verifier, reader |
//! | [`Op::results`] | verifier |
//!
//! One row for each operation, in one match, so a new operation does not compile without a row. Rows of
//! intrinsics, builtins and entry points of the run time are in their own tables (`intrinsic.rs`,
//! `builtin.rs`, `runtime_fn.rs`), which the rows here refer to.
//!
//! Not here: effects (`effects/rules.rs`) and operand types (`verify/`), which depend on the instruction and
//! not on the operation alone, and doors (`doors.rs`), with the reason for each.

use super::{Level, Op};
use crate::builtin::Builtin;
use crate::intrinsic::{Arity, Intrinsic, Shape};

/// A row of the table.
struct Facts {
    name: &'static str,
    /// The only level that has the operation; `None` for both.
    level: Option<Level>,
    operands: Arity,
    results: Arity,
}

const NONE: Arity = Arity::exactly(0);
const ONE: Arity = Arity::exactly(1);
const TWO: Arity = Arity::exactly(2);
const THREE: Arity = Arity::exactly(3);
const ANY: Arity = Arity::at_least(0);
const SOME: Arity = Arity::at_least(1);
/// For a statement executed for its effect: text may state a type for it.
const MAYBE: Arity = Arity::between(0, 1);

const fn both(name: &'static str, operands: Arity, results: Arity) -> Facts {
    Facts { name, level: None, operands, results }
}

const fn high(name: &'static str, operands: Arity, results: Arity) -> Facts {
    Facts { name, level: Some(Level::High), operands, results }
}

const fn low(name: &'static str, operands: Arity, results: Arity) -> Facts {
    Facts { name, level: Some(Level::Low), operands, results }
}

/// The number of parameters or results of an entry point of the run time.
fn count<T>(list: &[T]) -> Arity {
    Arity::exactly(list.len().min(255) as u8)
}

impl Op {
    /// Low operations that consist of their name and operands.
    pub const PLAIN_LOW: [Op; 8] = [
        Op::MemCopy,
        Op::Safepoint,
        Op::TypeOf,
        Op::WriteBarrier,
        Op::GcLoaded,
        Op::PointerFromObjref,
        Op::ThreadAddr,
        Op::LaneSelect,
    ];

    /// The row of the operation in a function of this level.
    #[inline]
    fn facts(self, at: Level) -> Facts {
        match self {
            Op::Intrinsic(op) => intrinsic(op, at),
            Op::Phi => both("φ", ANY, ONE),
            Op::Copy => both("copy", ONE, ONE),
            // A struct may be returned in several registers, whose number follows from the types
            // (`verify/calls.rs`).
            Op::ForeignCall(_) if at == Level::Low => both("foreigncall", ANY, ANY),
            // A dedicated message for calls explains a wrong number better than an arity.
            Op::ForeignCall(_) => both("foreigncall", ANY, MAYBE),
            Op::Goto => both("goto", NONE, NONE),
            Op::Branch => both("goto … if not", ONE, NONE),
            Op::Return => both("return", ANY, NONE),
            Op::Unreachable => both("unreachable", NONE, NONE),
            Op::Enter => both("enter", NONE, MAYBE),
            Op::Leave => both("leave", SOME, MAYBE),
            // At the high level the operand is the function object.
            Op::CFunction(_) => both("cfunction", if at == Level::High { ONE } else { NONE }, ONE),
            Op::CGlobal(_) => both("cglobal", NONE, ONE),
            Op::GcPreserveBegin => both("gc_preserve_begin", ANY, ONE),
            Op::GcPreserveEnd => both("gc_preserve_end", ONE, MAYBE),
            Op::Builtin(op @ Builtin::Ifelse) => both(op.name(), op.arity(), ONE),

            Op::Builtin(op) => high(op.name(), op.arity(), MAYBE),
            Op::Call => high("call", SOME, MAYBE),
            Op::Invoke(_) => high("invoke", SOME, MAYBE),
            Op::New(_) => high("%new", ANY, ONE),
            Op::SplatNew(_) => high("%splatnew", ONE, ONE),
            Op::Pi => high("π", ONE, ONE),
            Op::Upsilon => high("ϒ", MAYBE, ONE),
            Op::PhiC => high("φᶜ", ANY, ONE),
            Op::GetGlobal(_) => high("global", NONE, ONE),
            Op::TheException => high("the_exception", NONE, ONE),
            Op::PopException => high("pop_exception", ONE, MAYBE),
            Op::ThrowUndefIfNot(_) => high("throw_undef_if_not", ONE, MAYBE),
            Op::BoundsCheck(_) => high("boundscheck", NONE, ONE),
            Op::LoopInfo(_) => high("loopinfo", NONE, MAYBE),
            Op::CodeCoverage => high("code_coverage_effect", NONE, MAYBE),
            Op::Spend(_) => high("spend", NONE, MAYBE),
            Op::StaticParameter(_) => high("static_parameter", NONE, ONE),
            Op::StaticDefined(_) => high("isdefined", NONE, ONE),

            Op::Load(_) => low("load", ONE, ONE),
            Op::Store(_) => low("store", TWO, NONE),
            Op::AtomicLoad(_) => low("atomic_load", ONE, ONE),
            Op::AtomicStore(_) => low("atomic_store", TWO, NONE),
            Op::AtomicRmw(..) => low("atomic_rmw", TWO, ONE),
            Op::AtomicCas(_) => low("atomic_cas", THREE, ONE),
            Op::SlotAddr(_) => low("slot_addr", NONE, ONE),
            Op::MemCopy => low("mem_copy", THREE, NONE),
            Op::CallSymbol(_) => low("invoke", ANY, ANY),
            Op::CallRuntime(f) => low(f.symbol(), count(f.params()), count(f.results())),
            Op::Safepoint => low("safepoint", NONE, NONE),
            Op::Alloc(_) => low("alloc", NONE, ONE),
            Op::AllocStack(_) => low("alloc_stack", NONE, ONE),
            Op::TypeOf => low("type_of", ONE, ONE),
            Op::WriteBarrier => low("write_barrier", SOME, NONE),
            Op::GcLoaded => low("gc_loaded", TWO, ONE),
            Op::PointerFromObjref => low("pointer_from_objref", ONE, ONE),
            Op::CallArgs(_) => low("call_args", ANY, ONE),
            Op::ThreadAddr => low("thread_addr", NONE, ONE),
            Op::Lanes(op, _) => low("lanes", op.arity(), ONE),
            Op::Splat(_) => low("splat", ONE, ONE),
            Op::ExtractLane(..) => low("extract_lane", ONE, ONE),
            Op::InsertLane(..) => low("insert_lane", TWO, ONE),
            Op::LaneSelect => low("lane_select", THREE, ONE),
        }
    }

    /// The name: the word that the text of low IR begins with, the head in an expression `$(Expr(:name, …))`,
    /// or Julia's sign.
    pub fn name(self) -> &'static str {
        self.facts(Level::High).name
    }

    /// The only level that has the operation; `None` for operations of both.
    #[inline]
    pub fn level(self) -> Option<Level> {
        self.facts(Level::High).level
    }

    /// The number of operands in a function of this level.
    pub fn operands(self, at: Level) -> Arity {
        self.facts(at).operands
    }

    /// The number of results in a function of this level.
    pub fn results(self, at: Level) -> Arity {
        self.facts(at).results
    }

    /// Whether the operation ends its block.
    #[inline]
    pub fn is_terminator(self) -> bool {
        matches!(self, Op::Goto | Op::Branch | Op::Return | Op::Unreachable | Op::Enter)
    }

    /// The number of blocks that a terminator names; φ names one for each operand, all others none.
    pub fn target_count(self) -> usize {
        match self {
            Op::Goto => 1,
            Op::Branch | Op::Enter => 2,
            _ => 0,
        }
    }
}

fn intrinsic(op: Intrinsic, at: Level) -> Facts {
    let results = match (op.shape(), at) {
        (Shape::CheckedPair, Level::Low) => TWO,
        (Shape::AtomicFence, Level::Low) => NONE,
        (Shape::AtomicFence | Shape::PtrStore | Shape::AtomicStore | Shape::Foreign, _) => MAYBE,
        _ => ONE,
    };
    // Lowering drops the order of a fence.
    let is_low_fence = op == Intrinsic::AtomicFence && at == Level::Low;
    both(op.name(), if is_low_fence { Arity::between(0, 2) } else { op.arity() }, results)
}

#[cfg(test)]
mod tests {
    use super::{Level, Op};

    #[test]
    fn plain_low_operations_are_low_and_have_names_of_their_own() {
        for (at, op) in Op::PLAIN_LOW.iter().enumerate() {
            assert_eq!(op.level(), Some(Level::Low));
            assert!(Op::PLAIN_LOW[..at].iter().all(|other| other.name() != op.name()));
        }
    }
}
