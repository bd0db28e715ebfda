//! Loops that copy memory, element by element.
//!
//! ```text
//! x = load(s + w·%i)    store(d + w·%i, x)
//! ```
//!
//! An iteration may read bytes that earlier iterations wrote. The routine reads all bytes before it writes any, or in order:
//!
//! | destination and source | routine | because |
//! |---|---|---|
//! | are never the same memory (`alias`), or a distance of all iterations or more apart | `mem_copy` | |
//! | have one base, and the destination is not above, iterations go up | `memmove` | no later iteration, and no later chunk, reads the bytes that one writes |
//! | have one base, and the destination is above by some iterations | none | iterations repeat their own writes |
//! | anything else | `mem_copy` if they are apart, tested before the loop; else the loop | |
//!
//! All iterations are executed, so first and last bytes are addresses and do not wrap.
//!
//! Only bits are copied: references need the collector's barriers. The loaded value has no other use, or that would be an effect.

use super::{MIN_ITERATIONS, Stores, Walk, is_open};
use crate::address::Addresses;
use crate::alias::Aliases;
use crate::loop_copy::ins;
use crate::passes::vectorize::overlap::{ask_apart, never_meet};
use crate::undefined::MaybeUndefined;
use brolga_ir::analysis::{Loops, Rpo};
use brolga_ir::intrinsic::Intrinsic;
use brolga_ir::op::Region;
use brolga_ir::{Block, Func, LowType, Op, PtrClass, Type, Types, Value};

/// A loop that copies.
pub(super) struct Transfer {
    pub(super) from: Walk,
    order: Order,
}

/// Knowledge about the order of destination and source.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Order {
    /// They have no byte in common.
    Apart,
    /// The destination is not above the source.
    Down,
    /// Nothing.
    Ask,
}

/// The facts by which copies are found.
pub(super) struct Copies<'a> {
    rpo: &'a Rpo,
    /// Made for the first copy.
    aliases: Option<Aliases>,
}

impl<'a> Copies<'a> {
    pub(super) fn new(rpo: &'a Rpo) -> Copies<'a> {
        Copies { rpo, aliases: None }
    }

    /// The copy that a loop makes.
    pub(super) fn copied(
        &mut self,
        func: &Func,
        types: &Types,
        loops: &Loops,
        undefined: &MaybeUndefined,
        stores: &Stores,
    ) -> Option<Transfer> {
        let value = *func.args(stores.inst).get(1)?;
        let load = func.def_inst(value)?;
        let (Op::Load(read), Op::Store(written)) = (func.op(load), func.op(stores.inst)) else { return None };
        let shape = stores.counted.shape;
        let inside = func.inst_block(load).is_some_and(|block| loops.contains(shape.l, block));
        let is_bits = !matches!(func.ty(value).as_low()?, LowType::Ptr(class) if class != PtrClass::Raw);
        let copied = |region| is_open(region) || region == Region::Slot || region == Region::Field;
        let stays = matches!(read.region, Region::Constant | Region::Immutable | Region::Length);
        if !inside || !is_bits || !copied(written.region) || !(copied(read.region) || stays) {
            return None;
        }
        let addresses = Addresses::of(func, loops, undefined, shape);
        let from = Walk::of(func, &addresses, &stores.counted, load, read, stores.to.size)?;
        let order = match by_distance(func, stores, &from)? {
            Order::Ask => {
                let aliases = self.aliases.get_or_insert_with(|| Aliases::of(func, types, self.rpo));
                let to_at = aliases.access(func, types, stores.inst)?;
                let from_at = aliases.access(func, types, load)?;
                if never_meet(func, aliases, &to_at, &from_at) { Order::Apart } else { Order::Ask }
            }
            Order::Down if !is_open(written.region) || !is_open(read.region) => return None,
            known => known,
        };
        Some(Transfer { from, order })
    }
}

/// The order by the distance of two walks; `None` if a routine would not help.
fn by_distance(func: &Func, stores: &Stores, from: &Walk) -> Option<Order> {
    let (to, from) = (&stores.to.sum, &from.sum);
    if to.factor != from.factor {
        return None;
    }
    if (to.base, &to.terms) != (from.base, &from.terms) {
        return Some(Order::Ask);
    }
    let distance = to.constant.wrapping_sub(from.constant);
    let up = stores.goes_up(func);
    let apart = |iterations: u64| {
        u128::from(distance.unsigned_abs()) >= u128::from(iterations) * stores.to.size as u128
    };
    match stores.iterations {
        Some(iterations) if apart(iterations) => Some(Order::Apart),
        _ if up && distance <= 0 => Some(Order::Down),
        None if apart(MIN_ITERATIONS) => Some(Order::Ask),
        _ => None,
    }
}

impl Transfer {
    /// Whether the routine is called only for memory that does not overlap.
    pub(super) fn is_apart(&self) -> bool {
        self.order != Order::Down
    }

    /// The run-time test at the end of a block; `None` if none is needed.
    pub(super) fn ask(
        &self,
        func: &mut Func,
        at: Block,
        to: Value,
        from: Value,
        bytes: Value,
    ) -> Option<Value> {
        if self.order != Order::Ask {
            return None;
        }
        let ends = [to, from].map(|low| (low, ins(func, at, Intrinsic::AddPtr, &[low, bytes], Type::PTR)));
        Some(ask_apart(func, at, ends[0], ends[1]))
    }
}
