//! Atomic access to the target of a `Ptr`, and to fields of objects that hold such values.
//!
//! Values of one register only: integers and addresses as they are, floats as their bits. `:not_atomic` is a plain access.
//!
//! `atomic_pointermodify(p, f, y, order)` is one read-modify-write where the processor has it, else a loop:
//!
//! ```text
//!         old0 = atomic load p
//! retry:  old  = φ(old0, seen)
//!         new  = f(old, y)
//!         seen = compare-and-swap p, old, new
//!         goto retry unless seen is old
//! ```
//!
//! The loop has no safepoint of its own: it repeats only when another thread has succeeded.

use super::addr::Addr;
use super::error::Refusal;
use super::value::{Leaves, Val};
use super::{Lowering, Reported, Step};
use brolga_ir::intrinsic::Intrinsic;
use brolga_ir::op::{Ordering, RmwOp};
use brolga_ir::{Const, LowType, Op, Type, TypeKind, Value};

/// How a function of two equal scalars is computed.
pub(super) enum Modify {
    /// In one step; the intrinsic recomputes the new value.
    Rmw(RmwOp, Intrinsic),
    /// In one step; the comparison for "the old value is less", and whether the greater one is kept.
    Choose(RmwOp, Intrinsic, bool),
    /// In a loop.
    Loop(Intrinsic),
}

impl Lowering<'_> {
    /// The memory order that an operand names, if the operation allows it.
    fn order(&mut self, op: Intrinsic, n: usize, allowed: impl Fn(Ordering) -> bool) -> Step<Ordering> {
        let value = self.arg(n)?;
        let order = match self.src.as_const(value) {
            Some(Const::Symbol(name)) => Ordering::from_name(self.cx.names.text(*name)),
            _ => None,
        };
        match order {
            Some(order) if allowed(order) => Ok(order),
            _ => Err(self.report(Refusal::MemoryOrder { op: op.to_string() })),
        }
    }

    fn load_order(&mut self, op: Intrinsic, n: usize) -> Step<Ordering> {
        self.order(op, n, |o| !matches!(o, Ordering::Release | Ordering::AcquireRelease))
    }

    fn store_order(&mut self, op: Intrinsic, n: usize) -> Step<Ordering> {
        self.order(op, n, |o| !matches!(o, Ordering::Acquire | Ordering::AcquireRelease))
    }

    fn rmw_order(&mut self, op: Intrinsic, n: usize) -> Step<Ordering> {
        self.order(op, n, |o| o > Ordering::Unordered)
    }

    /// The address operand and the type there, which must fit into a register of at most 64 bits.
    fn atomic_pointer(&mut self, op: Intrinsic) -> Step<(Value, Type, Type)> {
        let (pointer, ty, pointee) = self.pointer_operand(0)?;
        let form = self.form(pointee)?;
        let plain = self.types.primitive(pointee).is_some();
        match form.low_types().next().and_then(Type::as_low) {
            Some(low) if plain && low != LowType::I128 => Ok((pointer, ty, pointee)),
            _ => Err(self.no_atomic(op, pointee)),
        }
    }

    fn no_atomic(&mut self, op: Intrinsic, ty: Type) -> Reported {
        let what = format!("`{op}` of a `{}`", self.types.display(ty));
        self.report(Refusal::Unsupported { what })
    }

    /// An operand that is to be of the scalar type `ty`, as atomic memory holds it.
    fn atomic_operand(&mut self, n: usize, ty: Type) -> Step<Value> {
        let val = self.operand(n)?;
        let val = self.checked(&val, ty)?;
        self.held(&val)
    }

    /// A scalar as atomic memory holds it.
    fn held(&mut self, val: &Val) -> Step<Value> {
        match val.leaves[..] {
            [leaf] if self.low(leaf).is_float() => Ok(self.bits_of(leaf)),
            [leaf] => Ok(leaf),
            _ => Err(self.bad_operands()),
        }
    }

    /// The content of atomic memory as a value of type `ty`.
    fn unheld(&mut self, held: Value, ty: Type) -> Step<Value> {
        let form = self.form(ty)?;
        let Some(leaf) = form.leaves.first() else { return Err(self.bad_operands()) };
        let value = self.bitcast(held, leaf.low);
        Ok(if ty == Type::BOOL { self.lowest_bit(value) } else { value })
    }

    fn held_type(&mut self, ty: Type) -> Step<Type> {
        let form = self.form(ty)?;
        let Some(leaf) = form.leaves.first() else { return Err(self.bad_operands()) };
        let int = LowType::int(leaf.low.bits()).filter(|_| leaf.low.is_float());
        Ok(Type::low(int.unwrap_or(leaf.low)))
    }

    fn plain_addr(&self, pointer: Value, held: Type) -> Addr {
        let align = held.as_low().map_or(1, LowType::bytes);
        Addr::pointer(pointer, 0, align)
    }

    pub(super) fn atomic_fence(&mut self, op: Intrinsic) -> Step<()> {
        let order = self.order(op, 0, |o| o > Ordering::Monotonic)?;
        let order = self.int(LowType::I8, order as u128);
        self.emit(Op::Intrinsic(op), &[order], &[]);
        self.define(Val::ghost(Type::NOTHING))
    }

    pub(super) fn atomic_load(&mut self, op: Intrinsic) -> Step<()> {
        let (pointer, _, ty) = self.atomic_pointer(op)?;
        let order = self.load_order(op, 1)?;
        let held = self.held_type(ty)?;
        if order == Ordering::NotAtomic {
            let addr = self.plain_addr(pointer, held);
            let val = self.load(addr, ty)?;
            return self.define(val);
        }
        let val = self.load_atomic(pointer, ty, order)?;
        self.define(val)
    }

    /// The scalar of type `ty` at an address.
    pub(super) fn load_atomic(&mut self, address: Value, ty: Type, order: Ordering) -> Step<Val> {
        let held = self.held_type(ty)?;
        let value = self.value(Op::AtomicLoad(order), &[address], held);
        Ok(Val::scalar(ty, self.unheld(value, ty)?))
    }

    /// Writes a scalar to an address.
    pub(super) fn store_atomic(&mut self, address: Value, val: &Val, order: Ordering) -> Step<()> {
        let value = self.held(val)?;
        self.emit(Op::AtomicStore(order), &[address, value], &[]);
        Ok(())
    }

    pub(super) fn atomic_store(&mut self, op: Intrinsic) -> Step<()> {
        let (pointer, pointer_type, ty) = self.atomic_pointer(op)?;
        let value = self.atomic_operand(1, ty)?;
        match self.store_order(op, 2)? {
            Ordering::NotAtomic => {
                let addr = self.plain_addr(pointer, self.out.ty(value));
                self.store_low(addr, 0, value);
            }
            order => {
                self.emit(Op::AtomicStore(order), &[pointer, value], &[]);
            }
        }
        self.define(Val::scalar(pointer_type, pointer))
    }

    pub(super) fn atomic_swap(&mut self, op: Intrinsic) -> Step<()> {
        let (pointer, _, ty) = self.atomic_pointer(op)?;
        let order = self.rmw_order(op, 2)?;
        self.swap_atomic(pointer, ty, 1, order)
    }

    /// Operand `n` replaces the scalar at an address.
    pub(super) fn swap_atomic(&mut self, address: Value, ty: Type, n: usize, order: Ordering) -> Step<()> {
        let value = self.atomic_operand(n, ty)?;
        let held = self.out.ty(value);
        let old = self.value(Op::AtomicRmw(RmwOp::Xchg, order), &[address, value], held);
        let old = self.unheld(old, ty)?;
        self.define(Val::scalar(ty, old))
    }

    pub(super) fn atomic_replace(&mut self, op: Intrinsic) -> Step<()> {
        let (pointer, _, ty) = self.atomic_pointer(op)?;
        let order = self.rmw_order(op, 3)?;
        self.load_order(op, 4)?;
        self.replace_atomic(pointer, ty, 1, order)
    }

    /// Operand `n + 1` replaces the scalar at an address if that equals operand `n`, as no value of another type does.
    pub(super) fn replace_atomic(&mut self, address: Value, ty: Type, n: usize, order: Ordering) -> Step<()> {
        let expected = self.operand(n)?;
        let new = self.atomic_operand(n + 1, ty)?;
        let comparable = self.is_a(&expected, ty)?;
        let (old, done) = match self.out.as_bits(comparable) {
            Some(0) => self.read_instead(address, ty, order)?,
            Some(_) => self.swap_if(address, &expected, new, ty, order)?,
            None => {
                let mut join = self.join();
                let no = self.split(comparable);
                let (old, done) = self.swap_if(address, &expected, new, ty, order)?;
                self.leave_to(&mut join, Leaves::from_slice(&[old, done]));
                self.continue_in(no);
                let (old, done) = self.read_instead(address, ty, order)?;
                self.leave_to(&mut join, Leaves::from_slice(&[old, done]));
                let leaves = self.meet(join);
                let &[old, done] = &leaves[..] else { return Err(self.bad_operands()) };
                (old, done)
            }
        };
        self.define_replaced(ty, Val::scalar(ty, old), done)
    }

    /// The old value, and whether the new one was written in its place.
    fn swap_if(
        &mut self,
        address: Value,
        expected: &Val,
        new: Value,
        ty: Type,
        order: Ordering,
    ) -> Step<(Value, Value)> {
        let expected = self.convert(expected.clone(), ty)?;
        let expected = self.held(&expected)?;
        let held = self.out.ty(new);
        let seen = self.value(Op::AtomicCas(order), &[address, expected, new], held);
        let done = self.same_bits(seen, expected);
        Ok((self.unheld(seen, ty)?, done))
    }

    /// The current value, and "nothing was written".
    fn read_instead(&mut self, address: Value, ty: Type, order: Ordering) -> Step<(Value, Value)> {
        let order = match order {
            Ordering::Release => Ordering::Monotonic,
            Ordering::AcquireRelease => Ordering::Acquire,
            order => order,
        };
        let held = self.held_type(ty)?;
        let value = self.value(Op::AtomicLoad(order), &[address], held);
        Ok((self.unheld(value, ty)?, self.truth(false)))
    }

    pub(super) fn atomic_modify(&mut self, op: Intrinsic) -> Step<()> {
        let (pointer, _, ty) = self.atomic_pointer(op)?;
        let order = self.rmw_order(op, 3)?;
        self.modify_atomic(pointer, ty, 1, order)
    }

    /// The function in operand `n` computes the new value from the scalar at an address and operand `n + 1`.
    pub(super) fn modify_atomic(&mut self, address: Value, ty: Type, n: usize, order: Ordering) -> Step<()> {
        let (function, y) = (self.operand(n)?, self.operand(n + 1)?);
        let (old, new) = match self.known_modify(function.ty, ty, y.ty) {
            Some(Modify::Rmw(rmw, again)) => {
                let y = self.held(&y)?;
                let held = self.out.ty(y);
                let old = self.value(Op::AtomicRmw(rmw, order), &[address, y], held);
                let new = self.value(Op::Intrinsic(again), &[old, y], held);
                (old, new)
            }
            Some(ref known @ Modify::Choose(rmw, ..)) => {
                let y = self.held(&y)?;
                let held = self.out.ty(y);
                let old = self.value(Op::AtomicRmw(rmw, order), &[address, y], held);
                (old, self.computed(known, old, y))
            }
            Some(known @ Modify::Loop(_)) => {
                let Some(&leaf) = y.leaves.first() else { return Err(self.bad_operands()) };
                self.retry(address, ty, order, |l, old| Ok(l.computed(&known, old, leaf)))?
            }
            None => self.retry(address, ty, order, |l, old| {
                let called = l.modified(&function, &Val::scalar(ty, old), &y)?;
                let new = l.checked(&called, ty)?;
                new.leaves.first().copied().ok_or(Reported)
            })?,
        };
        let (old, new) = (self.unheld(old, ty)?, self.unheld(new, ty)?);
        self.define_pair(ty, Val::scalar(ty, old), Val::scalar(ty, new))
    }

    /// The new value that a known function makes of two equal scalars.
    pub(super) fn computed(&mut self, known: &Modify, old: Value, y: Value) -> Value {
        match *known {
            Modify::Rmw(_, op) | Modify::Loop(op) => {
                let ty = self.out.ty(old);
                self.value(Op::Intrinsic(op), &[old, y], ty)
            }
            Modify::Choose(_, less, keeps_greater) => {
                let less = self.binary(less, old, y, LowType::I8);
                if keeps_greater { self.choose(less, y, old) } else { self.choose(less, old, y) }
            }
        }
    }

    /// How Base's function of that name works on two values of one primitive type; `None` for all other functions.
    pub(super) fn known_modify(&self, function: Type, ty: Type, operand: Type) -> Option<Modify> {
        use brolga_ir::types::PrimitiveRepr;
        let TypeKind::Function(name) = self.types.kind(function) else { return None };
        let module = self.unit.module;
        if ty != operand || module.find_method(function, &[ty, operand]).is_some() || module.is_open(function)
        {
            return None;
        }
        let name = self.cx.names.text(name.name);
        match (self.types.primitive(ty)?.1, name) {
            (PrimitiveRepr::Float, "+") => Some(Modify::Loop(Intrinsic::AddFloat)),
            (PrimitiveRepr::Float, "-") => Some(Modify::Loop(Intrinsic::SubFloat)),
            (PrimitiveRepr::Float, "*") => Some(Modify::Loop(Intrinsic::MulFloat)),
            (PrimitiveRepr::Float, "/") => Some(Modify::Loop(Intrinsic::DivFloat)),
            (PrimitiveRepr::Signed | PrimitiveRepr::Unsigned, "+") => {
                Some(Modify::Rmw(RmwOp::Add, Intrinsic::AddInt))
            }
            (PrimitiveRepr::Signed | PrimitiveRepr::Unsigned, "-") => {
                Some(Modify::Rmw(RmwOp::Sub, Intrinsic::SubInt))
            }
            (PrimitiveRepr::Signed | PrimitiveRepr::Unsigned, "*") => Some(Modify::Loop(Intrinsic::MulInt)),
            (PrimitiveRepr::Signed | PrimitiveRepr::Unsigned | PrimitiveRepr::Bool, "&") => {
                Some(Modify::Rmw(RmwOp::And, Intrinsic::AndInt))
            }
            (PrimitiveRepr::Signed | PrimitiveRepr::Unsigned | PrimitiveRepr::Bool, "|") => {
                Some(Modify::Rmw(RmwOp::Or, Intrinsic::OrInt))
            }
            (PrimitiveRepr::Signed | PrimitiveRepr::Unsigned | PrimitiveRepr::Bool, "xor" | "⊻") => {
                Some(Modify::Rmw(RmwOp::Xor, Intrinsic::XorInt))
            }
            (PrimitiveRepr::Signed, "max") => Some(Modify::Choose(RmwOp::Smax, Intrinsic::SltInt, true)),
            (PrimitiveRepr::Unsigned, "max") => Some(Modify::Choose(RmwOp::Umax, Intrinsic::UltInt, true)),
            (PrimitiveRepr::Signed, "min") => Some(Modify::Choose(RmwOp::Smin, Intrinsic::SltInt, false)),
            (PrimitiveRepr::Unsigned, "min") => Some(Modify::Choose(RmwOp::Umin, Intrinsic::UltInt, false)),
            _ => None,
        }
    }

    /// The loop shown in the file's header. `compute` makes the new value, of type `ty`, from the old one. Returns both in
    /// their memory form.
    fn retry(
        &mut self,
        pointer: Value,
        ty: Type,
        order: Ordering,
        compute: impl FnOnce(&mut Self, Value) -> Step<Value>,
    ) -> Step<(Value, Value)> {
        let held = self.held_type(ty)?;
        let first = self.value(Op::AtomicLoad(Ordering::Monotonic), &[pointer], held);
        let before = self.cur;
        let head = self.next_block();
        self.terminate(Op::Goto, &[], &[head]);
        self.cur = head;
        let phi = self.emit(Op::Phi, &[], &[held]);
        let Some(old) = self.out.result(phi) else { return Err(self.bad_operands()) };
        self.out.add_phi_edge(phi, before, first);
        let given = self.unheld(old, ty)?;
        let new = compute(self, given)?;
        let new = if self.low(new).is_float() { self.bits_of(new) } else { new };
        let seen = self.value(Op::AtomicCas(order), &[pointer, old, new], held);
        let done = self.same_bits(seen, old);
        self.out.add_phi_edge(phi, self.cur, seen);
        let go_on = self.next_block();
        self.terminate(Op::Branch, &[done], &[go_on, head]);
        self.cur = go_on;
        Ok((old, new))
    }
}
