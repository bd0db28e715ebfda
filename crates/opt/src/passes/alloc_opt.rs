//! Objects that do not escape the function become values: no allocation, no stores, no loads.
//!
//! ```text
//! %1 = new(RefValue{Int64}, 0)                      s' = φ (entry => 0, b => s'')
//! b: %2 = getfield(%1, :x)                          b: s'' = add_int(s', i)
//!    %3 = add_int(%2, i)                    ==>
//!    setfield!(%1, :x, %3)
//! e: %4 = getfield(%1, :x)                          e: …                                   %4 is the value of s here
//! ```
//!
//! Words. A *node* is a `%new` of a mutable struct, or a φ of objects of one such type; a π or copy of a node is the node by
//! another name. Nodes that flow into each other through φ form a *group*, which is taken apart as a whole or not at all. A
//! *variable* is a field of a node.
//!
//! **Which.** Every use of every name of the group reads or writes a known field with a value that fits, tests whether one is
//! defined, keeps the object alive, or is a φ of the group. Any other use is an escape: the object is returned, stored, passed,
//! put into a tuple, compared. Where a φ takes a node, the node must not be used afterwards under its own name, so that each
//! object has one name at a time (invariant I1); liveness shows that.
//!
//! **Passed.** An object may be passed to a function that, by its [summary](crate::summary), does not capture it. If the object is not read here,
//! and the call returns, its result is unused and it changes only such objects, then the call is removed with them:
//!
//! ```text
//! %1 = new(Counter, 0);  %2 = invoke bump!(%1, x)      ==>   nothing
//! ```
//!
//! **Memories** that are only written are removed as well, with the arrays around them: `memories`.
//!
//! **Undefined fields.** A pointer field without a value throws when it is read. `defined` computes where a field surely has one; a
//! group with a read elsewhere stays. `isdefined` becomes a variable of its own.
//!
//! **Handlers.** Values that a handler sees came through no edge that carries values. Objects made or used in a block that can be
//! reached from a handler stay.
//!
//! Phases of an iteration: 1 `nodes` (reads). 2 `defined` (reads). 3 `rewrite`: each block tracks the values of its variables; a read
//! without one reads a φ at the head of its block; `ssa_repair` finds the edges of all φ. An object in a field
//! may become removable when its holder is removed, hence the iterations.
//!
//! Cost: linear in instructions for each of `MAX_ITERATIONS` iterations, plus, for each variable that is read, the blocks between its
//! writes and its reads; `MAX_FIELDS` and `MAX_VARIABLES` bound these. Needs the graph; breaks the uses. Not done: arrays and
//! `Memory` that are read; objects that escape on some paths only; a φ of objects and other values (`Union{Nothing, T}`).

mod defined;
mod memories;
mod nodes;
mod rewrite;

use crate::facts::Fact;
use crate::pass::{Changed, Pass, PassCx, PassLevel};
use brolga_ir::builtin::Builtin;
use brolga_ir::{Func, Op};

pub(crate) const PASS: Pass =
    Pass::new("alloc-opt", PassLevel::High, run).needs(&[Fact::Cfg]).breaks(&[Fact::Uses]);

/// Objects that hold objects that hold objects: each level needs an iteration. Deeper nests are rare, and the next run of the pass
/// continues.
const MAX_ITERATIONS: usize = 4;

/// An object with more fields stays: each that is read costs φ.
const MAX_FIELDS: usize = 32;

/// Fields of nodes that may become variables in one iteration: each may put a φ into every block between its writes and reads.
const MAX_VARIABLES: usize = 512;

fn run(func: &mut Func, cx: &mut PassCx<'_>) -> Changed {
    let (mut objects, mut memories) = (false, false);
    for inst in func.blocks().flat_map(|b| func.block_insts(b)) {
        match func.op(inst) {
            Op::New(ty) => objects |= cx.types().is_mutable(ty),
            Op::Builtin(Builtin::Memorynew) => memories = true,
            _ => {}
        }
    }
    if !objects && !memories {
        return Changed::No;
    }
    for _ in 0..MAX_ITERATIONS {
        let before = cx.rewrites();
        if objects {
            let mut nodes = nodes::find(func, cx);
            if nodes.looks > 0 {
                cx.count("calls looked at", nodes.looks);
            }
            let partial = defined::check(func, cx, &mut nodes);
            rewrite::rewrite(func, cx, &mut nodes, &partial);
        }
        if memories {
            memories::remove(func, cx);
        }
        if cx.rewrites() == before {
            break;
        }
    }
    cx.changed()
}
