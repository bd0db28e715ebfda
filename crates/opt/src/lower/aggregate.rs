//! Immutable values with fields: making them and taking them apart.
//!
//! In registers both are free: a `tuple` lists leaves, a `getfield` picks some. An index that is not constant has to go
//! through memory, because registers cannot be counted:
//!
//! | operand | `getfield(t, i)` |
//! |---|---|
//! | a constant without addresses in it | load from constant bytes |
//! | a value in memory form | load from there |
//! | fields of one type without references | stored to a stack slot, then loaded from there |
//! | a tuple of other fields | a chain of choices, up to `MAX_CHOICES` fields |
//! | anything else | a call of the builtin |
//!
//! The bounds are checked before, unless the statement disables that.

use super::addr::Addr;
use super::value::Val;
use super::{Lowering, Step};
use crate::bounds;
use brolga_ir::abi::FormKind;
use brolga_ir::builtin::Builtin;
use brolga_ir::intrinsic::Intrinsic;
use brolga_ir::op::Region;
use brolga_ir::{Const, LowType, Op, Type, Value};

/// The most fields that a chain of choices selects from.
const MAX_CHOICES: usize = 64;

impl Lowering<'_> {
    pub(super) fn tuple(&mut self) -> Step<()> {
        let fields = self.operands_from(0)?;
        let Some(result) = self.src.result(self.at) else { return Ok(()) };
        let declared = self.src.ty(result);
        let is_known = self.types.is_concrete(declared) && self.find_form(declared).is_ok();
        let ty = match self.types.tuple_elements(declared) {
            Some(elems) if elems.len() == fields.len() && is_known => declared,
            _ => self.tuple_type(&fields)?,
        };
        let val = if self.types.is_concrete(ty) {
            self.aggregate(ty, &fields)?
        } else {
            // Only the elements determine their types.
            let object = self.dynamic_tuple(&fields)?;
            Val::scalar(ty, object)
        };
        self.define(val)
    }

    /// The type of a tuple of the values, as far as it is known.
    pub(super) fn tuple_type(&mut self, fields: &[Val]) -> Step<Type> {
        let elems: Vec<Type> = fields.iter().map(|f| f.ty).collect();
        self.types.tuple_of_values(&elems).map_err(|_| self.bad_operands())
    }

    // ----- fields -----

    /// `getfield` of an immutable value that has `count` fields.
    pub(super) fn getfield_of(&mut self, object: Value, val: &Val, count: usize) -> Step<()> {
        let which = self.arg(1)?;
        let checked = self.checks_bounds(Builtin::Getfield);
        if let Some(n) = self.constant_field(val.ty, 1)? {
            let field = self.field(val, n)?;
            return self.define(field);
        }
        match self.src.as_const(which) {
            Some(&Const::Bits { ty: Type::INT64, bits }) => {
                let (always, index) = (self.truth(true), self.word(bits as u64 as i64));
                self.throw_out_of_bounds(always, val, index)?;
                self.define_nothing()
            }
            Some(_) => self.call_builtin(Builtin::Getfield),
            None => self.getfield_at(object, val, count, checked),
        }
    }

    /// A result for a statement that always throws before it yields one.
    fn define_nothing(&mut self) -> Step<()> {
        match self.src.result(self.at).map(|r| self.src.ty(r)) {
            None | Some(Type::BOTTOM) => Ok(()),
            Some(ty) => {
                let nothing = self.undefined(ty)?;
                self.define(nothing)
            }
        }
    }

    /// Whether the current statement, which is a call of this builtin, checks its bounds.
    pub(super) fn checks_bounds(&self, op: Builtin) -> bool {
        bounds::is_checked(self.src, self.types, self.check_bounds, self.at, op)
    }

    /// `getfield` with an index that is not constant.
    fn getfield_at(&mut self, object: Value, val: &Val, count: usize, checked: bool) -> Step<()> {
        let types = self.types;
        let given = self.operand(1)?;
        let layout = self.layout(val.ty)?;
        // A struct may have undefined fields beside the one selected.
        let is_tuple = types.tuple_elements(val.ty).is_some();
        let (&[index], true) = (&given.leaves[..], given.ty == Type::INT64 && (is_tuple || layout.is_bits()))
        else {
            return self.call_builtin(Builtin::Getfield);
        };
        let same = layout.fields.windows(2).all(|pair| pair[0].ty == pair[1].ty) && layout.is_bits();
        if !same && count > MAX_CHOICES {
            return self.call_builtin(Builtin::Getfield);
        }
        let one = self.word(1);
        let n = self.binary(Intrinsic::SubInt, index, one, LowType::I64);
        if checked {
            let count = self.word(count as i64);
            let bad = self.binary(Intrinsic::UleInt, count, n, LowType::I8);
            self.throw_out_of_bounds(bad, val, index)?;
        }
        let Some(&first) = layout.fields.first() else { return self.define_nothing() };
        if !same {
            return self.choose_field(val, index, count);
        }
        let stride = layout.fields.get(1).map_or(0, |second| second.offset - first.offset);
        let form = self.form(val.ty)?;
        let (base, region) = match (self.constant_data(object), &form.kind, &val.leaves[..]) {
            (_, FormKind::Ghost, _) => return self.define(Val::ghost(first.ty)),
            (Some(data), ..) => (data, Region::Constant),
            (None, FormKind::Memory, &[base]) => (base, Region::Raw),
            _ => {
                let slot = self.slot(form.size, form.align);
                let base = self.slot_addr(slot);
                self.store(Addr::own(base, form.align, Region::Slot), val)?;
                (base, Region::Slot)
            }
        };
        let size = self.word(i64::from(stride));
        // The distance counts from the first field. Counted from the index itself, an index that passes fold to zero after
        // its check would leave a visible access before the slot.
        let distance = self.binary(Intrinsic::MulInt, n, size, LowType::I64);
        let base = self.value(Op::Intrinsic(Intrinsic::AddPtr), &[base, distance], Type::PTR);
        let offset = i64::from(first.offset);
        // The index may be anything, so only the stride's own alignment is known.
        let align = if stride == 0 { 1 } else { form.align.min(1 << stride.trailing_zeros().min(4)) };
        let field = self.load(Addr { offset, ..Addr::own(base, align, region) }, first.ty)?;
        self.define(field)
    }

    fn choose_field(&mut self, val: &Val, index: Value, count: usize) -> Step<()> {
        let Some(result) = self.src.result(self.at) else { return Ok(()) };
        let types = self.types;
        let ty = self.src.ty(result);
        if !(0..count).all(|n| types.field_type(val.ty, n).is_some_and(|field| types.is_subtype(field, ty))) {
            // The index may select a field of another type than the row asserts.
            return self.choose_object(val, index, count, Type::ANY);
        }
        if self.form(ty)?.is_object() {
            return self.choose_object(val, index, count, ty);
        }
        let mut chosen: Option<Val> = None;
        for n in (0..count).rev() {
            let field = self.field(val, n)?;
            let field = self.convert(field, ty)?;
            chosen = Some(match chosen {
                None => field,
                Some(other) => {
                    let number = self.word(n as i64 + 1);
                    let here = self.equal(index, number);
                    self.choose_val(here, &field, &other)
                }
            });
        }
        match chosen {
            Some(val) => self.define(val),
            None => self.define_nothing(),
        }
    }

    /// Only the selected field becomes an object.
    fn choose_object(&mut self, val: &Val, index: Value, count: usize, ty: Type) -> Step<()> {
        let mut join = self.join();
        for n in 0..count {
            let no = match count - n {
                1 => None,
                _ => {
                    let number = self.word(n as i64 + 1);
                    let here = self.equal(index, number);
                    Some(self.split(here))
                }
            };
            let field = self.field(val, n)?;
            let field = self.convert(field, ty)?;
            self.leave_to(&mut join, field.leaves);
            if let Some(no) = no {
                self.continue_in(no);
            }
        }
        let leaves = self.meet(join);
        self.define(Val { ty, leaves })
    }

    /// One of two values of the same type, leaf by leaf.
    fn choose_val(&mut self, truth: Value, a: &Val, b: &Val) -> Val {
        let leaves = a.leaves.iter().zip(&b.leaves).map(|(&a, &b)| self.choose(truth, a, b)).collect();
        Val { ty: a.ty, leaves }
    }

    pub(super) fn ifelse(&mut self) -> Step<()> {
        let truth = self.truth_operand(0)?;
        let (a, b) = (self.operand(1)?, self.operand(2)?);
        let Some(result) = self.src.result(self.at) else { return Ok(()) };
        let declared = self.src.ty(result);
        let ty = if a.ty == b.ty { a.ty } else { declared };
        let (a, b) = (self.convert(a, ty)?, self.convert(b, ty)?);
        let val = self.choose_val(truth, &a, &b);
        self.define(val)
    }

    pub(super) fn fieldtype(&mut self) -> Step<()> {
        let val = self.operand(0)?;
        let field = match self.static_type(&val) {
            Some(ty) => self.constant_field(ty, 1)?.and_then(|n| self.types.field_type(ty, n)),
            None => None,
        };
        match field {
            Some(field) => {
                let ty = self.type_of(field)?;
                self.define(Val::ghost(ty))
            }
            None => self.call_builtin(Builtin::Fieldtype),
        }
    }
}
