//! Objects on the stack: `alloc_stack` becomes a slot with a tag word, followed by the object.
//!
//! ```text
//!   %1 = alloc_stack(T)        %2 = slot_addr(s)                      s:  +0   type | permanent
//!                       ==>    %3 = add_ptr(%2, 8)                        +8   fields: words without references, and words that are roots
//!                              %1 = bitcast(%3)::tracked
//!                              store(%1, T | permanent; offset = -8)
//!                              store(%1, 0) …                         unless the following code writes the word
//! ```
//!
//! To the collector the object is a permanent one: it neither frees nor moves nor scans it, so rooting the
//! object elsewhere, in a callee for example, does no harm. The frame keeps the referents of the object
//! alive: the words of its references are in the list of each safepoint, like the words of tracked slots. A
//! linked frame has no room for words that are not references, such as a tag, so an object with references is
//! allocated on the heap there, as by `alloc`; and so is one whose alignment exceeds a word.
//!
//! Barriers on stores into the object are removed. If it is one of several operands of a φ, its tag says that
//! it is not old.
//!
//! This step runs first, so the rest of placement only has to handle the slots. Cost: linear, except for the
//! search for stores after an object (`fresh`).

use crate::fresh;
use crate::{Lowering, Options};
use brolga_ir::constant::Address;
use brolga_ir::cursor::Cursor;
use brolga_ir::func::SlotData;
use brolga_ir::intrinsic::Intrinsic;
use brolga_ir::op::{Access, Region};
use brolga_ir::{Const, Context, Func, Inst, Op, Slot, Type, Value};
use cranelift_entity::{EntitySet, SecondaryMap};

/// The slots that contain objects: the byte offset of each reference.
#[derive(Debug, Default)]
pub(crate) struct StackObjects {
    references: SecondaryMap<Slot, Option<Vec<u32>>>,
}

impl StackObjects {
    /// Whether the slot has to be in the frame.
    pub(crate) fn is_in_frame(&self, slot: Slot) -> bool {
        self.references[slot].as_ref().is_some_and(|offsets| !offsets.is_empty())
    }

    /// Whether the slot contains an object.
    pub(crate) fn has(&self, slot: Slot) -> bool {
        self.references[slot].is_some()
    }

    /// The offsets of the references of the object in the slot.
    pub(crate) fn references(&self, slot: Slot) -> impl Iterator<Item = u32> {
        self.references[slot].iter().flatten().copied()
    }
}

/// Whether the lowering of stack objects depends on these options: the heap, and for objects with references
/// whether the frame is linked.
pub(crate) fn is_for_options(func: &Func, cx: &Context, options: &Options) -> bool {
    let has_references = |ty| cx.types.layout(ty).is_ok_and(|layout| !layout.is_bits());
    let mut insts = func.blocks().flat_map(|block| func.block_insts(block));
    insts.any(|inst| match func.op(inst) {
        Op::AllocStack(ty) => {
            options.heap.moving || (options.lowering == Lowering::Maps && has_references(ty))
        }
        _ => false,
    })
}

/// Assigns a slot to every object on the stack.
pub(crate) fn place(func: &mut Func, cx: &Context, options: &Options) -> StackObjects {
    let mut objects = StackObjects::default();
    let insts = |func: &Func, wanted: fn(Op) -> bool| -> Vec<Inst> {
        func.blocks()
            .flat_map(|block| func.block_insts(block))
            .filter(|&inst| wanted(func.op(inst)))
            .collect()
    };
    let mut on_stack: EntitySet<Value> = EntitySet::new();
    for inst in insts(func, |op| matches!(op, Op::AllocStack(_))) {
        let Op::AllocStack(ty) = func.op(inst) else { continue };
        let extent = cx.types.object_extent(ty);
        let pointers = cx.types.layout(ty).map(|layout| layout.pointers.clone());
        let (Ok((size, align)), Ok(pointers), Some(object)) = (extent, pointers, func.result(inst)) else {
            func.set_op(inst, Op::Alloc(ty), &[]);
            continue;
        };
        if align > 8 || (options.lowering == Lowering::Linked && !pointers.is_empty()) {
            func.set_op(inst, Op::Alloc(ty), &[]);
            continue;
        }
        let words = size.div_ceil(8);
        let tag_bytes = options.heap.tag_bytes as u32;
        let slot = func.add_slot(SlotData::bytes(tag_bytes + 8 * words, 3));
        objects.references[slot] = Some(pointers.iter().map(|offset| tag_bytes + offset).collect());
        on_stack.insert(object);
        let zeros = fresh::unwritten(func, cx, inst, size, usize::MAX);
        let types = &cx.types;
        let mut at = Cursor::new(func);
        let start = at.before(inst).ins_value(Op::SlotAddr(slot), &[], Type::PTR);
        let skipped = at.int(types, Type::I64, tag_bytes.into());
        let inside = at.ins_value(Op::Intrinsic(Intrinsic::AddPtr), &[start, skipped], Type::PTR);
        at.func.set_op(inst, Op::Intrinsic(Intrinsic::Bitcast), &[inside]);
        at.after(inst);
        let of = at.func.constant(Const::Address(Address::Type(ty)));
        let permanent = at.int(types, Type::I64, options.heap.tag_permanent.into());
        let tag = at.ins_value(Op::Intrinsic(Intrinsic::AddPtr), &[of, permanent], Type::PTR);
        at.ins(Op::Store(field(-(tag_bytes as i32), Region::Header)), &[object, tag], &[]);
        let zero = at.int(types, Type::I64, 0);
        let null = at.int(types, Type::TRACKED, 0);
        for offset in zeros.into_iter().flatten() {
            let nothing = if pointers.contains(&offset) { null } else { zero };
            at.ins(Op::Store(field(offset as i32, Region::Field)), &[object, nothing], &[]);
        }
    }
    if !on_stack.is_empty() {
        for barrier in insts(func, |op| op == Op::WriteBarrier) {
            if func.args(barrier).first().is_some_and(|&parent| on_stack.contains(parent)) {
                func.remove_inst(barrier);
            }
        }
    }
    objects
}

fn field(offset: i32, region: Region) -> Access {
    Access { offset, region, align_log2: 3 }
}
