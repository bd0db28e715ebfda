//! Places that can be read and changed: fields of mutable objects, elements of memories, global variables.
//!
//! Julia has the same changes for all of them, which are implemented once here; each family finds its own places.
//!
//! | change | returns | writes |
//! |---|---|---|
//! | set | the new value | always |
//! | swap | the old value | always |
//! | modify | `Pair(old, f(old, x))` | the result of `f`, which is called again if it has changed the place |
//! | replace | `(old = …, success = …)` | if the old value is `===` the expected one |
//! | set once | whether it wrote | if the place was empty |
//!
//! A stored value is tested to be of the place's type, unless that is known: a `TypeError` if it is not.
//!
//! **Atomic fields** are read and set in one access if they hold a reference, and changed by any operation if they hold a
//! primitive value of at most 64 bits. The run time does all other atomic operations, reads included, so that all use its
//! lock.

use super::addr::Addr;
use super::element::Element;
use super::value::{Leaves, Val};
use super::{Lowering, Step};
use brolga_ir::abi::FormKind;
use brolga_ir::builtin::Builtin;
use brolga_ir::constant::Address;
use brolga_ir::module::Global;
use brolga_ir::op::Region;
use brolga_ir::types::FieldRepr;
use brolga_ir::{Const, LowType, Name, Op, PtrClass, RuntimeFn, Type, Value};

/// The function in the `TypeError` of an asserted type.
pub(super) const TYPEASSERT: &str = "typeassert";

/// A place, which holds a value of type `ty` or nothing.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub(super) ty: Type,
    pub(super) kind: PlaceKind,
}

/// Where a place is.
#[derive(Clone, Debug)]
pub(super) enum PlaceKind {
    /// A field, in an object.
    Field { addr: Addr, repr: FieldRepr, object: Value },
    /// An element.
    Element(Element),
    /// A global variable, by the address of the cell that refers to its value, in this thread.
    Global { cell: Value, name: Name },
}

/// A kind of change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Change {
    Set,
    Swap,
    Modify,
    Replace,
    SetOnce,
}

impl Change {
    /// The change that a builtin makes.
    pub(super) fn of(builtin: Builtin) -> Option<Change> {
        Some(match builtin {
            Builtin::Setfield | Builtin::Setglobal | Builtin::Memoryrefset => Change::Set,
            Builtin::Swapfield | Builtin::Swapglobal | Builtin::Memoryrefswap => Change::Swap,
            Builtin::Modifyfield | Builtin::Modifyglobal | Builtin::Memoryrefmodify => Change::Modify,
            Builtin::Replacefield | Builtin::Replaceglobal | Builtin::Memoryrefreplace => Change::Replace,
            Builtin::Setfieldonce | Builtin::Setglobalonce | Builtin::Memoryrefsetonce => Change::SetOnce,
            _ => return None,
        })
    }

    /// How many operands it has.
    pub(super) fn operands(self) -> usize {
        match self {
            Change::Set | Change::Swap | Change::SetOnce => 1,
            Change::Modify | Change::Replace => 2,
        }
    }
}

impl Lowering<'_> {
    /// The value at a place. Throws if there is none.
    pub(super) fn read_place(&mut self, place: &Place) -> Step<Val> {
        match &place.kind {
            PlaceKind::Field { addr, repr, .. } => {
                let reference = self.first_reference(*addr, place.ty, *repr);
                self.load_defined(*addr, place.ty, *repr, reference)
            }
            PlaceKind::Element(element) => self.load_element(element),
            PlaceKind::Global { cell, name } => {
                let name = self.symbol(*name);
                let leaf = self.load_cell(*cell);
                let undefined = self.is_null(leaf);
                self.throw_if(undefined, RuntimeFn::ThrowUndefVar, &[name]);
                self.unbox(leaf, place.ty)
            }
        }
    }

    /// The reference of a field of a mutable object or of an element that is null while it is not set; `None` if it is
    /// always set.
    pub(super) fn first_reference(&mut self, addr: Addr, ty: Type, repr: FieldRepr) -> Option<Value> {
        let first = self.types.first_reference(ty, repr)?;
        Some(self.load_low(addr, first, LowType::Ptr(PtrClass::Tracked)))
    }

    /// The value at such a place. Throws if its first reference is null.
    pub(super) fn load_defined(
        &mut self,
        addr: Addr,
        ty: Type,
        repr: FieldRepr,
        reference: Option<Value>,
    ) -> Step<Val> {
        match reference {
            Some(reference) if repr == FieldRepr::Pointer => self.reference(reference, ty),
            Some(reference) => {
                self.throw_if_null(reference);
                self.load(addr, ty)
            }
            None => self.load(addr, ty),
        }
    }

    fn load_cell(&mut self, cell: Value) -> Value {
        let addr = Addr::inside(cell, 8, Region::Field);
        self.load_low(addr, 0, LowType::Ptr(PtrClass::Tracked))
    }

    /// Whether there is a value at a place.
    pub(super) fn is_set(&mut self, place: &Place) -> Step<Value> {
        let reference = match &place.kind {
            PlaceKind::Field { addr, repr, .. } => self.first_reference(*addr, place.ty, *repr),
            PlaceKind::Element(element) => self.element_reference(element),
            PlaceKind::Global { cell, .. } => Some(self.load_cell(*cell)),
        };
        Ok(self.is_set_reference(reference))
    }

    /// Whether a place is set whose reference, if there is one, is null while it is not.
    pub(super) fn is_set_reference(&mut self, reference: Option<Value>) -> Value {
        match reference {
            Some(reference) => {
                let null = self.is_null(reference);
                self.not(null)
            }
            None => self.truth(true),
        }
    }

    /// Writes a value of the place's type.
    pub(super) fn write_place(&mut self, place: &Place, val: &Val) -> Step<()> {
        match &place.kind {
            PlaceKind::Field { addr, repr, object } => self.store_stored(*addr, val, *repr, Some(*object)),
            PlaceKind::Element(element) => self.store_element(element, val),
            PlaceKind::Global { cell, .. } => {
                let object = self.object(val)?;
                // The cell is a root of its own, so no write barrier is needed.
                let addr = Addr::inside(*cell, 8, Region::Field);
                self.store_low(addr, 0, object);
                Ok(())
            }
        }
    }

    /// Changes a place. The operands of the change begin at `first`.
    pub(super) fn change(&mut self, change: Change, place: &Place, first: usize) -> Step<()> {
        match change {
            Change::Set => {
                let given = self.operand(first)?;
                let val = self.checked(&given, place.ty)?;
                self.write_place(place, &val)?;
                self.define(given)
            }
            Change::Swap => {
                let given = self.operand(first)?;
                let val = self.checked(&given, place.ty)?;
                let old = self.read_place(place)?;
                self.write_place(place, &val)?;
                self.define(old)
            }
            Change::Modify => {
                let (function, operand) = (self.operand(first)?, self.operand(first + 1)?);
                let known = self.known_modify(function.ty, place.ty, operand.ty).is_some();
                let (old, new) = match known {
                    true => {
                        let old = self.read_place(place)?;
                        let new = self.modified(&function, &old, &operand)?;
                        (old, self.checked(&new, place.ty)?)
                    }
                    false => self.modified_unchanged(place, &function, &operand)?,
                };
                self.write_place(place, &new)?;
                self.define_pair(place.ty, old, new)
            }
            Change::Replace => {
                let (expected, given) = (self.operand(first)?, self.operand(first + 1)?);
                let val = self.checked(&given, place.ty)?;
                let old = self.read_place(place)?;
                let same = self.is_same(&old, &expected)?;
                let mut join = self.join();
                let no = self.split(same);
                self.write_place(place, &val)?;
                self.leave_to(&mut join, Leaves::new());
                self.continue_in(no);
                self.leave_to(&mut join, Leaves::new());
                self.meet(join);
                self.define_replaced(place.ty, old, same)
            }
            Change::SetOnce => {
                let given = self.operand(first)?;
                let val = self.checked(&given, place.ty)?;
                let set = self.is_set(place)?;
                let free = self.not(set);
                let mut join = self.join();
                let no = self.split(free);
                self.write_place(place, &val)?;
                self.leave_to(&mut join, Leaves::new());
                self.continue_in(no);
                self.leave_to(&mut join, Leaves::new());
                self.meet(join);
                self.define(Val::scalar(Type::BOOL, free))
            }
        }
    }

    /// The value of a place and what a function makes of it. A function that changes the place itself is called again.
    fn modified_unchanged(&mut self, place: &Place, function: &Val, operand: &Val) -> Step<(Val, Val)> {
        let carried = if self.form(place.ty)?.is_memory() { Type::ANY } else { place.ty };
        let first = self.read_place(place)?;
        // Each iteration makes a new copy in memory, so its object is carried.
        let first = self.convert(first, carried)?;
        let (before, head) = (self.cur, self.next_block());
        self.terminate(Op::Goto, &[], &[head]);
        self.cur = head;
        let mut phis = Vec::with_capacity(first.leaves.len());
        let mut leaves = Leaves::new();
        for &leaf in &first.leaves {
            let phi = self.emit(Op::Phi, &[], &[self.out.ty(leaf)]);
            self.out.add_phi_edge(phi, before, leaf);
            leaves.push(self.out.result(phi).ok_or_else(|| self.bad_operands())?);
            phis.push(phi);
        }
        self.emit(Op::Safepoint, &[], &[]);
        let old = Val { ty: carried, leaves };
        let given = self.convert(old.clone(), place.ty)?;
        let new = self.modified(function, &given, operand)?;
        let new = self.checked(&new, place.ty)?;
        let now = self.read_place(place)?;
        let now = self.convert(now, carried)?;
        let same = self.is_same(&now, &old)?;
        for (&phi, &leaf) in phis.iter().zip(&now.leaves) {
            self.out.add_phi_edge(phi, self.cur, leaf);
        }
        let go_on = self.next_block();
        self.terminate(Op::Branch, &[same], &[go_on, head]);
        self.cur = go_on;
        Ok((given, new))
    }

    /// The result of the function of `modify…!` for the old value.
    pub(super) fn modified(&mut self, function: &Val, old: &Val, operand: &Val) -> Step<Val> {
        if old.ty == operand.ty
            && let Some(known) = self.known_modify(function.ty, old.ty, operand.ty)
            && let (&[a], &[b]) = (&old.leaves[..], &operand.leaves[..])
        {
            let new = self.computed(&known, a, b);
            return Ok(Val::scalar(old.ty, new));
        }
        if let Some(id) = self.unit.module.find_method(function.ty, &[old.ty, operand.ty])
            && !self.unit.module.is_open(function.ty)
            && [function.ty, old.ty, operand.ty].iter().all(|&ty| self.types.is_concrete(ty))
        {
            return self.call(id, function.clone(), vec![old.clone(), operand.clone()]);
        }
        self.apply(&[function.clone(), old.clone(), operand.clone()])
    }

    /// `Pair(old, new)` is the result.
    pub(super) fn define_pair(&mut self, ty: Type, old: Val, new: Val) -> Step<()> {
        let pair = self.types.find_builtin(self.cx.names.intern("Pair"));
        let pair = pair.and_then(|decl| self.types.nominal(decl, &[ty, ty]).ok());
        let pair = pair.ok_or_else(|| self.bad_operands())?;
        let val = self.aggregate(pair, &[old, new])?;
        self.define(val)
    }

    /// `(old = …, success = …)` is the result.
    pub(super) fn define_replaced(&mut self, ty: Type, old: Val, success: Value) -> Step<()> {
        let replaced = self.replaced_type(ty)?;
        let val = self.aggregate(replaced, &[old, Val::scalar(Type::BOOL, success)])?;
        self.define(val)
    }

    /// The result type of `replace…!`.
    fn replaced_type(&mut self, ty: Type) -> Step<Type> {
        let names = ["old", "success"].map(|n| self.cx.names.intern(n));
        let tuple = self.types.tuple(&[ty, Type::BOOL]);
        tuple.and_then(|tuple| self.types.named_tuple(&names, tuple)).map_err(|_| self.bad_operands())
    }

    // ----- global variables -----

    /// The place of a global variable: its cell, or the running thread's.
    pub(super) fn global_place(&mut self, name: Name) -> Place {
        let global = self.unit.module.global(name);
        let ty = global.map_or(Type::ANY, |global| global.ty);
        let mut cell = self.address(Address::Global(name));
        if global.is_some_and(Global::is_thread_local) {
            cell = self.value(Op::CallRuntime(RuntimeFn::ThreadCell), &[cell], Type::PTR);
        }
        Place { ty, kind: PlaceKind::Global { cell, name } }
    }

    /// Reads a global variable. One that is never assigned has its first value, if copies of that are indistinguishable.
    pub(super) fn global(&mut self, name: Name) -> Step<()> {
        let module = self.unit.module;
        if let Some(global) = module.global(name)
            && !self.unit.module.facts().is_assigned(name)
            && !global.init.is_shared(self.types)
        {
            let val = self.literal(&global.init)?;
            return self.define(val);
        }
        let place = self.global_place(name);
        let val = self.read_place(&place)?;
        self.define(val)
    }

    /// The builtins on global variables: `op(module, :name, …)`. All modules of a program share them.
    pub(super) fn global_builtin(&mut self, op: Builtin) -> Step<()> {
        let module = self.arg(0)?;
        if self.src.ty(module) != Type::MODULE {
            let module = self.val(module)?;
            self.tested("getglobal", &module, Type::MODULE)?;
        }
        let name = self.arg(1)?;
        let Some(&Const::Symbol(name)) = self.src.as_const(name) else {
            return self.refuse_late(&format!(
                "`{op}` of a global variable whose name is computed is not compiled to native code"
            ));
        };
        match op {
            Builtin::Getglobal => return self.global(name),
            Builtin::GetBindingType => {
                let ty = self.global_place(name).ty;
                let ty = self.type_of(ty)?;
                return self.define(Val::ghost(ty));
            }
            Builtin::Isdefinedglobal | Builtin::Isdefined => {
                let place = self.global_place(name);
                let set = self.is_set(&place)?;
                return self.define(Val::scalar(Type::BOOL, set));
            }
            _ => {}
        }
        let Some(change) = Change::of(op) else { return Err(self.bad_operands()) };
        let place = self.global_place(name);
        self.change(change, &place, 2)
    }

    // ----- types of what is written -----

    /// A value converted to the type that the current statement's operation requires; throws `TypeError` in its name if it
    /// is not of that type.
    pub(super) fn checked(&mut self, val: &Val, to: Type) -> Step<Val> {
        self.tested(self.asks(), val, to)
    }

    /// The name of the current statement's operation in a `TypeError`.
    pub(super) fn asks(&self) -> &'static str {
        match self.src.op(self.at) {
            Op::Builtin(op) => op.name(),
            Op::Intrinsic(op) => op.name(),
            Op::Branch => "if",
            _ => "new",
        }
    }

    /// A value converted to the type that a row asserts; throws `TypeError` if it is not of that type.
    pub(super) fn asserted(&mut self, val: &Val, to: Type) -> Step<Val> {
        self.tested(TYPEASSERT, val, to)
    }

    fn tested(&mut self, asks: &str, val: &Val, to: Type) -> Step<Val> {
        if !self.types.is_subtype(val.ty, to) {
            let is = self.is_a(val, to)?;
            self.throw_unless_type(asks, is, val, to)?;
        }
        self.convert(val.clone(), to)
    }

    /// Throws `TypeError` in the name of `asks` unless `is` is 1.
    pub(super) fn throw_unless_type(&mut self, asks: &str, is: Value, val: &Val, ty: Type) -> Step<()> {
        let bad = match self.out.as_bits(is) {
            Some(1) => return Ok(()),
            Some(_) => self.truth(true),
            None => self.not(is),
        };
        self.throw_if_with(bad, |lowering| {
            let got = lowering.object(val)?;
            let asks = lowering.symbol(lowering.cx.names.intern(asks));
            let expected = lowering.address(Address::Type(ty));
            lowering.throw(RuntimeFn::ThrowTypeAssert, &[asks, expected, got]);
            Ok(())
        })
    }

    /// Whether a value of this type may be changed atomically in place.
    pub(super) fn is_atomic_scalar(&mut self, ty: Type) -> Step<bool> {
        let form = self.form(ty)?;
        let narrow = form.leaves.first().is_some_and(|leaf| leaf.low != LowType::I128);
        Ok(form.kind == FormKind::Scalar && self.types.primitive(ty).is_some() && narrow)
    }

    /// The address of a field, for atomic access.
    pub(super) fn field_address(&mut self, object: Value, offset: u32) -> Value {
        if offset == 0 {
            return self.value(
                Op::Intrinsic(brolga_ir::intrinsic::Intrinsic::Bitcast),
                &[object],
                Type::DERIVED,
            );
        }
        self.moved(object, i64::from(offset))
    }
}
