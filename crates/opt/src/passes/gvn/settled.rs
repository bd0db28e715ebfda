//! Headers of arrays that are written where the array is made, and never again.
//!
//! ```text
//! %4 = alloc(Matrix{Float64})
//! store(%4, %3; offset = 0, region = header)         nothing else in the function may write there:
//! store(%4, n; offset = 16, region = header)         load(%4; offset = 16) is n everywhere after this block
//! ```
//!
//! The search backwards from a load finds this too, but stops where there are many paths, as in a function of several nested loops.
//!
//! Cost: each store to a header in the block of its array is compared with the writers of headers, of which there are at most [`MAX_WRITERS`].
//! Not done: fields of other objects.

use super::access::{Access, Known};
use crate::alias::{Alias, Aliases, Location, Root};
use crate::replace::Replacements;
use brolga_ir::effects::Regions;
use brolga_ir::{Block, Func, Op, Type, Types, Value};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// In a function with more instructions that write headers nothing is settled.
const MAX_WRITERS: usize = 64;

/// By array: its block, and the stores there.
#[derive(Default)]
pub(super) struct Settled {
    arrays: FxHashMap<Value, (Block, SmallVec<[Known; 4]>)>,
}

impl Settled {
    pub(super) fn of<'a>(
        func: &Func,
        types: &Types,
        aliases: &Aliases,
        accesses: impl Iterator<Item = (Block, &'a Access)>,
    ) -> Settled {
        let writes =
            |access: &Access| access.effects.fence || access.effects.writes.overlaps(Regions::HEADERS);
        let writers: Vec<(Block, &Access)> =
            accesses.filter(|(_, access)| writes(access)).take(MAX_WRITERS + 1).collect();
        let mut settled = Settled::default();
        if writers.len() > MAX_WRITERS {
            return settled;
        }
        for &(block, writer) in &writers {
            let Some(known) = writer.known else { continue };
            let Root::Value(array) = known.at.address.root else { continue };
            let Some(made) = func.def_inst(array) else { continue };
            let is_array = matches!(func.op(made), Op::Alloc(ty) if types.array_parts(ty).is_some());
            let others = || writers.iter().filter(|(_, other)| other.inst != writer.inst);
            let is_settled = is_array
                && func.inst_block(made) == Some(block)
                && !others()
                    .any(|(_, other)| aliases.may_write(func, types, other.inst, &other.effects, &known.at));
            if is_settled {
                settled.arrays.entry(array).or_insert_with(|| (block, SmallVec::new())).1.push(known);
            }
        }
        settled
    }

    /// The value at a place that a load in another block reads.
    pub(super) fn value(
        &self,
        func: &Func,
        aliases: &Aliases,
        values: &mut Replacements,
        (at, ty): (&Location, Type),
        block: Block,
    ) -> Option<Value> {
        let Root::Value(array) = at.address.root else { return None };
        let (_, stores) = self.arrays.get(&array).filter(|(made, _)| *made != block)?;
        let is_there = |known: &&Known| known.ty == ty && aliases.alias(func, &known.at, at) == Alias::Must;
        stores.iter().find(is_there).map(|known| values.resolve(known.value))
    }
}
