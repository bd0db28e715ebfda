//! Immutable values with fields: making them and taking them apart.
//!
//! In registers both are free: a `tuple` lists leaves, a `getfield` picks some. An index that is not constant has to go
//! through memory, because registers cannot be counted:
//!
//! | operand | `getfield(t, i)` |
//! |---|---|
//! | a constant without addresses in it | load from constant bytes |
//! | a value in memory form | load from there |
//! | fields of one type | stored to a stack slot, then loaded from there |
//! | fields of several types | a chain of choices, up to `MAX_CHOICES` fields |
//!
//! The bounds are checked before, unless the statement says not to.

use super::error::Refusal;
use super::memory::Addr;
use super::value::Val;
use super::{Known, Lowering, Step};
use brolga_ir::abi::{FormKind, NotNative};
use brolga_ir::intrinsic::Intrinsic;
use brolga_ir::op::Region;
use brolga_ir::{Const, LowType, Op, RuntimeFn, Type, Value};

/// More fields than this are not chosen from one by one.
const MAX_CHOICES: usize = 64;

impl Lowering<'_> {
    pub(super) fn tuple(&mut self) -> Step<()> {
        let count = self.src.args(self.at).len();
        let fields = (0..count).map(|n| self.operand(n)).collect::<Step<Vec<Val>>>()?;
        let Some(result) = self.src.result(self.at) else { return Ok(()) };
        let declared = self.src.ty(result);
        let ty = match self.types.tuple_elements(declared) {
            Some(elems) if elems.len() == count && self.find_form(declared).is_ok() => declared,
            _ => {
                let elems: Vec<Type> = fields.iter().map(|f| f.ty).collect();
                self.types.tuple(&elems).map_err(|_| self.bad_operands())?
            }
        };
        let val = self.aggregate(ty, &fields)?;
        self.define(val)
    }

    pub(super) fn new_struct(&mut self, ty: Type) -> Step<()> {
        if self.types.is_exception(ty) && self.find_form(ty).is_err() {
            // Its only native use is to be thrown, and the throw looks here for the parts.
            if let Some(result) = self.src.result(self.at) {
                self.known[result] = Known::Exception(self.at);
            }
            return Ok(());
        }
        if self.types.is_mutable(ty) {
            return Err(self.not_native(NotNative::Heap(ty)));
        }
        self.form(ty)?;
        let count = self.src.args(self.at).len();
        let declared = self.types.field_count(ty).unwrap_or(0);
        if count > declared {
            return Err(self.bad_operands());
        }
        let undefined = (count..declared).filter_map(|n| self.types.field_type(ty, n));
        if undefined.clone().any(|field| field == Type::STRING || field == Type::SYMBOL) {
            let what = format!("a `{}` with an undefined field", self.types.display(ty));
            return Err(self.report(Refusal::Unsupported { what }));
        }
        let fields = (0..count).map(|n| self.operand(n)).collect::<Step<Vec<Val>>>()?;
        let val = self.aggregate(ty, &fields)?;
        self.define(val)
    }

    pub(super) fn splat_new(&mut self, ty: Type) -> Step<()> {
        let tuple = self.operand(0)?;
        if self.types.is_mutable(ty) {
            return Err(self.not_native(NotNative::Heap(ty)));
        }
        let Some(elems) = self.types.tuple_elements(tuple.ty) else { return Err(self.bad_operands()) };
        if self.types.field_count(ty) != Some(elems.len()) {
            return Err(self.bad_operands());
        }
        self.form(ty)?;
        let same = (0..elems.len()).all(|n| self.types.field_type(ty, n) == Some(elems[n]));
        let val = if same {
            // The same fields have the same layout and the same leaves.
            Val { ty, leaves: tuple.leaves }
        } else {
            let fields = (0..elems.len()).map(|n| self.field(&tuple, n)).collect::<Step<Vec<Val>>>()?;
            self.aggregate(ty, &fields)?
        };
        self.define(val)
    }

    // ----- fields -----

    pub(super) fn getfield(&mut self) -> Step<()> {
        let (object, which) = (self.arg(0)?, self.arg(1)?);
        if let Some(&Const::Module(_)) = self.src.as_const(object) {
            return self.getglobal();
        }
        let val = self.val(object)?;
        if self.union_members(val.ty).is_some() {
            let what = format!("`getfield` of a `{}`", self.types.display(val.ty));
            return Err(self.report(Refusal::Unsupported { what }));
        }
        let Some(count) = self.types.field_count(val.ty) else { return Err(self.bad_operands()) };
        let checked = self.bounds_checked(2);
        match self.src.as_const(which) {
            Some(Const::Symbol(name)) => match self.types.field_index(val.ty, *name) {
                Some(n) => {
                    let field = self.field(&val, n)?;
                    self.define(field)
                }
                None => {
                    let what = format!(
                        "`getfield` of `{}`, which `{}` does not have,",
                        self.cx.names.text(*name),
                        self.types.display(val.ty)
                    );
                    Err(self.report(Refusal::Unsupported { what }))
                }
            },
            Some(&Const::Bits { ty: Type::INT64, bits }) => {
                let index = bits as u64 as i64;
                match usize::try_from(index).ok().and_then(|n| n.checked_sub(1)).filter(|&n| n < count) {
                    Some(n) => {
                        let field = self.field(&val, n)?;
                        self.define(field)
                    }
                    None => {
                        let (always, index) = (self.truth(true), self.word(index));
                        self.throw_if(always, RuntimeFn::ThrowBounds, &[index]);
                        self.define_nothing()
                    }
                }
            }
            _ => self.getfield_at(object, &val, count, checked),
        }
    }

    /// A result for a statement that has thrown before it gets that far.
    fn define_nothing(&mut self) -> Step<()> {
        match self.src.result(self.at).map(|r| self.src.ty(r)) {
            None | Some(Type::BOTTOM) => Ok(()),
            Some(ty) => {
                let nothing = self.undefined(ty)?;
                self.define(nothing)
            }
        }
    }

    /// Whether the operands from `first` on leave the bounds check on: only a `false` among them turns it off.
    fn bounds_checked(&self, first: usize) -> bool {
        let off = |&value: &Value| match self.known[value] {
            Known::Leaves { start, count: 1, .. } => {
                self.pool.get(start as usize).and_then(|&leaf| self.out.as_bits(leaf)) == Some(0)
            }
            _ => self.src.as_bits(value) == Some(0),
        };
        let options = self.src.args(self.at).get(first..).unwrap_or_default();
        !options.iter().filter(|&&v| self.src.ty(v) == Type::BOOL).any(off)
    }

    /// `getfield` with an index that is not constant.
    fn getfield_at(&mut self, object: Value, val: &Val, count: usize, checked: bool) -> Step<()> {
        let types = self.types;
        let (index, ty) = self.scalar_operand(1)?;
        if ty != Type::INT64 {
            return Err(self.bad_operands());
        }
        let one = self.word(1);
        let n = self.binary(Intrinsic::SubInt, index, one, LowType::I64);
        if checked {
            let count = self.word(count as i64);
            let bad = self.binary(Intrinsic::UleInt, count, n, LowType::I8);
            self.throw_if(bad, RuntimeFn::ThrowBounds, &[index]);
        }
        let layout = types.layout(val.ty).map_err(|why| self.not_native(NotNative::NoLayout(why)))?;
        let Some(&first) = layout.fields.first() else { return self.define_nothing() };
        if layout.fields.iter().any(|f| f.ty != first.ty) {
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
        // The distance counts from the first field. Counted from the index itself, an index that turns out to be zero
        // behind its check would leave an access in front of the slot in plain sight.
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
        let ty = self.src.ty(result);
        if count > MAX_CHOICES {
            let what = format!("a variable index into the large type `{}`", self.types.display(val.ty));
            return Err(self.report(Refusal::Unsupported { what }));
        }
        let mut chosen: Option<Val> = None;
        for n in (0..count).rev() {
            let field = self.field(val, n)?;
            // Who declared the result knows that the index never means a field of another type.
            if self.types.is_disjoint(field.ty, ty) {
                continue;
            }
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

    /// One of two values of the same type, leaf by leaf.
    fn choose_val(&mut self, truth: Value, a: &Val, b: &Val) -> Val {
        let leaves = a.leaves.iter().zip(&b.leaves).map(|(&a, &b)| self.choose(truth, a, b)).collect();
        Val { ty: a.ty, leaves }
    }

    pub(super) fn ifelse(&mut self) -> Step<()> {
        let (truth, ty) = self.scalar_operand(0)?;
        if ty != Type::BOOL {
            return Err(self.bad_operands());
        }
        let (a, b) = (self.operand(1)?, self.operand(2)?);
        let Some(result) = self.src.result(self.at) else { return Ok(()) };
        let declared = self.src.ty(result);
        let ty = if a.ty == b.ty { a.ty } else { declared };
        let (a, b) = (self.convert(a, ty)?, self.convert(b, ty)?);
        let val = self.choose_val(truth, &a, &b);
        self.define(val)
    }

    // ----- questions -----

    pub(super) fn nfields(&mut self) -> Step<()> {
        let val = self.operand(0)?;
        match self.types.field_count(val.ty) {
            Some(count) if self.union_members(val.ty).is_none() => {
                let count = self.word(count as i64);
                self.define(Val::scalar(Type::INT64, count))
            }
            _ => Err(self.bad_operands()),
        }
    }

    pub(super) fn isdefined(&mut self) -> Step<()> {
        let val = self.operand(0)?;
        let which = self.arg(1)?;
        let count = self.types.field_count(val.ty).unwrap_or(0);
        // The fields of a native value are always there.
        let defined = match self.src.as_const(which) {
            Some(Const::Symbol(name)) => self.types.field_index(val.ty, *name).is_some(),
            Some(&Const::Bits { ty: Type::INT64, bits }) => (1..=count as u128).contains(&bits),
            _ => return Err(self.bad_operands()),
        };
        if self.union_members(val.ty).is_some() {
            return Err(self.bad_operands());
        }
        let defined = self.truth(defined);
        self.define(Val::scalar(Type::BOOL, defined))
    }

    pub(super) fn sizeof(&mut self) -> Step<()> {
        let val = self.operand(0)?;
        let ty = self.static_type(&val).unwrap_or(val.ty);
        match self.types.layout(ty) {
            Ok(layout) => {
                let size = self.word(i64::from(layout.size));
                self.define(Val::scalar(Type::INT64, size))
            }
            Err(_) => {
                let what = format!("`sizeof` of a `{}`", self.types.display(ty));
                Err(self.report(Refusal::Unsupported { what }))
            }
        }
    }

    pub(super) fn fieldtype(&mut self) -> Step<()> {
        let ty = self.type_operand(0)?;
        let which = self.arg(1)?;
        let index = match self.src.as_const(which) {
            Some(Const::Symbol(name)) => self.types.field_index(ty, *name),
            Some(&Const::Bits { ty: Type::INT64, bits }) => {
                usize::try_from(bits).ok().and_then(|n| n.checked_sub(1))
            }
            _ => None,
        };
        match index.and_then(|n| self.types.field_type(ty, n)) {
            Some(field) => {
                let ty = self.type_of(field)?;
                self.define(Val::ghost(ty))
            }
            None => Err(self.bad_operands()),
        }
    }
}
