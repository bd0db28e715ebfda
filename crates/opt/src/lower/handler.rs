//! Exception handlers.
//!
//! ```text
//! 1 ─ %1 = enter #3               1: depth = brolga_exception_depth(); %1 = enter 2, 3
//! 2 ─ %2 = ϒ (x)::Int64           2: store slot, x
//! │   …                              …
//! └── leave %1; goto #4              leave(%1)
//! 3 ─ %3 = φᶜ (%2)::Int64         3: load slot
//! │   %4 = the_exception             brolga_current_exception()
//! │   pop_exception %1               brolga_pop_exception(depth)
//! ```
//!
//! In low IR too, every instruction of the region that may throw has an implicit edge to the handler. So a value
//! that the handler uses is computed before the `enter`, or goes through memory: each φᶜ has its own slots, one for each of
//! its leaves, and a ϒ writes the slots of every φᶜ that names it. References have slots that are registered with the
//! collector.
//!
//! A φᶜ that control reaches past no ϒ, or past one of `#undef`, has an arbitrary value; the program tests that by a φᶜ of
//! a `Bool` before it uses the first. References are null then, so that they keep no unused object alive.

use super::addr::Addr;
use super::value::{Leaves, Val};
use super::{Known, Lowering, Step};
use brolga_ir::abi::Form;
use brolga_ir::func::SlotData;
use brolga_ir::op::Region;
use brolga_ir::{Block, Const, LowType, Op, PtrClass, RuntimeFn, Slot, Type, Value};
use std::rc::Rc;

/// Where the ϒ of a φᶜ put its leaves.
pub(super) struct CatchSlots {
    ty: Type,
    /// One for each leaf, or one for a value in memory form.
    slots: Box<[Slot]>,
}

impl Lowering<'_> {
    /// Allocates the slots of all φᶜ in these blocks.
    pub(super) fn catch_slots(&mut self, blocks: &[Block]) {
        let src = self.src;
        for inst in blocks.iter().flat_map(|&b| src.block_insts(b)).filter(|&i| src.op(i) == Op::PhiC) {
            let Some(result) = src.result(inst) else { continue };
            let ty = src.ty(result);
            // A type without form is refused when the φᶜ is reached.
            let Ok(form) = self.find_form(ty) else { continue };
            let slots = if form.is_memory() {
                Box::from([self.slot(form.size, form.align)])
            } else {
                form.leaves.iter().map(|leaf| self.leaf_slot(leaf.low)).collect()
            };
            self.catches.insert(inst, Rc::new(CatchSlots { ty, slots }));
            for upsilon in src.args(inst).iter().filter_map(|&v| src.def_inst(v)) {
                self.upsilons.entry(upsilon).or_default().push(inst);
            }
        }
    }

    fn leaf_slot(&mut self, low: LowType) -> Slot {
        match low {
            LowType::Ptr(PtrClass::Tracked) => self.out.add_slot(SlotData::reference()),
            low => self.slot(low.bytes(), low.bytes()),
        }
    }

    fn leaf_addr(&mut self, slot: Slot, low: LowType) -> Addr {
        let base = self.slot_addr(slot);
        Addr::own(base, low.bytes(), Region::Slot)
    }

    pub(super) fn upsilon(&mut self) -> Step<()> {
        let src = self.src;
        let val = match src.args(self.at).first() {
            Some(&value) if !matches!(src.as_const(value), Some(Const::Undef(_))) => Some(self.val(value)?),
            _ => None,
        };
        for catch in self.upsilons.get(&self.at).cloned().unwrap_or_default() {
            let Some(catch) = self.catches.get(&catch).cloned() else { continue };
            let form = self.form(catch.ty)?;
            let Some(val) = &val else {
                self.forget(&form, &catch);
                continue;
            };
            let val = self.convert(val.clone(), catch.ty)?;
            if let (true, &[slot], &[from]) = (form.is_memory(), &catch.slots[..], &val.leaves[..]) {
                let to = self.slot_addr(slot);
                self.copy_bytes(to, from, form.size);
                continue;
            }
            for (&slot, &leaf) in catch.slots.iter().zip(&val.leaves) {
                let addr = self.leaf_addr(slot, self.low(leaf));
                self.store_low(addr, 0, leaf);
            }
        }
        Ok(())
    }

    /// Clears a φᶜ's references, so that it keeps nothing alive.
    fn forget(&mut self, form: &Form, catch: &CatchSlots) {
        for (leaf, &slot) in form.leaves.iter().zip(&catch.slots) {
            if leaf.low == LowType::Ptr(PtrClass::Tracked) {
                let null = self.null();
                let addr = self.leaf_addr(slot, leaf.low);
                self.store_low(addr, 0, null);
            }
        }
    }

    pub(super) fn phi_c(&mut self) -> Step<()> {
        let Some(result) = self.src.result(self.at) else { return Ok(()) };
        let form = self.form(self.src.ty(result))?;
        let Some(catch) = self.catches.get(&self.at).cloned() else { return Err(self.bad_operands()) };
        if let (true, &[slot]) = (form.is_memory(), &catch.slots[..]) {
            // The slot may be written again while this value lives.
            let own = self.slot(form.size, form.align);
            let (to, from) = (self.slot_addr(own), self.slot_addr(slot));
            self.copy_bytes(to, from, form.size);
            return self.define(Val::scalar(catch.ty, to));
        }
        let mut leaves = Leaves::new();
        for (leaf, &slot) in form.leaves.iter().zip(&catch.slots) {
            let addr = self.leaf_addr(slot, leaf.low);
            leaves.push(self.load_low(addr, 0, leaf.low));
        }
        self.define(Val { ty: catch.ty, leaves })
    }

    /// `enter`: the terminator with these targets.
    pub(super) fn enter(&mut self, targets: &[Block]) {
        let depth = self.value(Op::CallRuntime(RuntimeFn::ExceptionDepth), &[], Type::I64);
        let inst = self.out.make_inst(Op::Enter, &[], targets, &[Type::TOKEN]);
        self.out.set_place(inst, self.place);
        self.out.append_inst(inst, self.cur);
        if let (Some(result), Some(token)) = (self.src.result(self.at), self.out.result(inst)) {
            self.known[result] = Known::Handler { token, depth };
        }
    }

    fn handler(&mut self, value: Value) -> Step<(Value, Value)> {
        match self.known[value] {
            Known::Handler { token, depth } => Ok((token, depth)),
            _ => Err(self.bad_operands()),
        }
    }

    pub(super) fn leave(&mut self) -> Step<()> {
        let src = self.src;
        let tokens = src.args(self.at).iter().map(|&v| Ok(self.handler(v)?.0)).collect::<Step<Leaves>>()?;
        self.emit(Op::Leave, &tokens, &[]);
        self.define(Val::ghost(Type::NOTHING))
    }

    pub(super) fn pop_exception(&mut self) -> Step<()> {
        let token = self.arg(0)?;
        let (_, depth) = self.handler(token)?;
        self.emit(Op::CallRuntime(RuntimeFn::PopException), &[depth], &[]);
        self.define(Val::ghost(Type::NOTHING))
    }

    pub(super) fn the_exception(&mut self) -> Step<()> {
        let current = self.value(Op::CallRuntime(RuntimeFn::CurrentException), &[], Type::TRACKED);
        self.define(Val::scalar(Type::ANY, current))
    }

    // ----- gc_preserve -----

    /// Keeps the references among the operands alive; emits nothing if there are none.
    pub(super) fn preserve(&mut self) -> Step<()> {
        let mut references = Leaves::new();
        for val in self.operands_from(0)? {
            references.extend(val.leaves.into_iter().filter(|&leaf| self.out.ty(leaf) == Type::TRACKED));
        }
        let token = match references.is_empty() {
            true => None,
            false => Some(self.value(Op::GcPreserveBegin, &references, Type::TOKEN)),
        };
        if let Some(result) = self.src.result(self.at) {
            self.known[result] = Known::Preserved(token);
        }
        Ok(())
    }

    pub(super) fn end_preserve(&mut self) -> Step<()> {
        let token = self.arg(0)?;
        match self.known[token] {
            Known::Preserved(Some(token)) => {
                self.emit(Op::GcPreserveEnd, &[token], &[]);
            }
            Known::Preserved(None) => {}
            _ => return Err(self.bad_operands()),
        }
        self.define(Val::ghost(Type::NOTHING))
    }
}
