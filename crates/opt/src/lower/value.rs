//! The low form of a high value: its type and its leaves.
//!
//! A [`Val`] has the narrowest type that is known, which may be narrower than the statement's: `typeof(1)` is a
//! `Type{Int64}` where the statement declares `DataType`, and a `compilerbarrier` has its operand's type where the statement
//! declares `Any`. Uses convert to the type that they need (`convert`). So a value whose declared type is boxed is
//! boxed only at uses that need the box.
//!
//! Conversely, a statement may declare a narrower type than its operation has. This asserted type is tested
//! (`asserted`); the code throws `TypeError` if the test fails. So each value is of its type, and the verifier's rules
//! for operands hold for native values.
//!
//! A permanent object (a string, a symbol, a type, the instance of a ghost) is a constant address, converted to a reference by
//! a `bitcast`. That is an instruction, which must dominate its uses, so it is emitted at each use.

use super::addr::Addr;
use super::error::Refusal;
use super::{Known, Lowering, Reported, Step};
use brolga_ir::abi::{self, Form, FormKind, NotNative};
use brolga_ir::constant::Address;
use brolga_ir::intrinsic::Intrinsic;
use brolga_ir::module::Literal;
use brolga_ir::op::Region;
use brolga_ir::{Const, LowType, Name, Op, PtrClass, Type, TypeKind, Value};
use smallvec::SmallVec;
use std::rc::Rc;

/// The low values that carry one high value.
pub(super) type Leaves = SmallVec<[Value; 4]>;

/// A high value in native form.
#[derive(Clone, Debug)]
pub(super) struct Val {
    pub(super) ty: Type,
    /// Its leaves, as many as the form of the type has.
    pub(super) leaves: Leaves,
}

impl Val {
    /// The only value of a singleton type, which has no leaves.
    pub(super) fn ghost(ty: Type) -> Val {
        Val { ty, leaves: Leaves::new() }
    }

    /// A value in one register.
    pub(super) fn scalar(ty: Type, leaf: Value) -> Val {
        Val { ty, leaves: Leaves::from_slice(&[leaf]) }
    }
}

impl Lowering<'_> {
    /// The native form of a type. Reports an error of the current statement if it has none.
    pub(super) fn form(&mut self, ty: Type) -> Step<Rc<Form>> {
        self.find_form(ty).map_err(|why| self.not_native(why))
    }

    pub(super) fn find_form(&mut self, ty: Type) -> Result<Rc<Form>, NotNative> {
        let types = self.types;
        self.forms.entry(ty).or_insert_with(|| abi::form(types, ty).map(Rc::new)).clone()
    }

    /// Reports that a type has no native form.
    pub(super) fn not_native(&mut self, why: NotNative) -> Reported {
        let refusal = self.refusal_of(why);
        self.report(refusal)
    }

    pub(super) fn refusal_of(&self, why: NotNative) -> Refusal {
        Refusal::Form { why: why.display(self.types).to_string() }
    }

    // ----- operands and results -----

    /// The high value of an operand of the current statement.
    pub(super) fn arg(&mut self, n: usize) -> Step<Value> {
        match self.src.args(self.at).get(n) {
            Some(&value) => Ok(value),
            None => Err(self.bad_operands()),
        }
    }

    /// An operand of the current statement in native form.
    pub(super) fn operand(&mut self, n: usize) -> Step<Val> {
        let value = self.arg(n)?;
        self.val(value)
    }

    /// Whether an operand of the current statement was refused, which makes another error redundant.
    pub(super) fn has_refused_operand(&self) -> bool {
        self.src.args(self.at).iter().any(|&v| matches!(self.known[v], Known::Refused))
    }

    /// A high value in native form.
    pub(super) fn val(&mut self, value: Value) -> Step<Val> {
        match self.known[value] {
            Known::Leaves { ty, start, count } => {
                let start = start as usize;
                let leaves = self.pool[start..start + usize::from(count)].into();
                Ok(Val { ty, leaves })
            }
            Known::Mixed { .. } => {
                let mixed = self.mixed(value).ok_or_else(|| self.bad_operands())?;
                self.boxed_mixed(mixed, self.src.ty(value))
            }
            Known::Refused => Err(Reported),
            Known::Thrown | Known::Handler { .. } | Known::Preserved(_) => {
                Err(self.report(Refusal::Malformed { what: "a token is used as a value" }))
            }
            Known::Nothing if self.src.as_const(value).is_some() => self.constant(value),
            Known::Nothing => {
                Err(self.report(Refusal::Malformed { what: "a value is used that is not defined before" }))
            }
        }
    }

    /// Records the native form of a high value.
    pub(super) fn set(&mut self, value: Value, val: &Val) {
        let start = self.pool.len() as u32;
        self.pool.extend_from_slice(&val.leaves);
        // A form has at most `MAX_LEAVES` leaves.
        self.known[value] = Known::Leaves { ty: val.ty, start, count: val.leaves.len() as u8 };
    }

    /// Defines the result of the current statement, after a test if the statement asserts a narrower type.
    pub(super) fn define(&mut self, val: Val) -> Step<()> {
        let Some(result) = self.src.result(self.at) else { return Ok(()) };
        let wanted = self.src.ty(result);
        let val = if self.types.is_subtype(val.ty, wanted) { val } else { self.asserted(&val, wanted)? };
        self.set(result, &val);
        Ok(())
    }

    /// Reports that the operands do not fit the operation.
    pub(super) fn bad_operands(&mut self) -> Reported {
        let op = self.op_name();
        self.report(Refusal::Operands { op })
    }

    /// An operand as a `Bool`; the code throws `TypeError` if it is not one.
    pub(super) fn truth_operand(&mut self, n: usize) -> Step<Value> {
        let value = self.arg(n)?;
        if let Some(mixed) = self.mixed(value) {
            let (asks, given) = (self.asks(), self.src.ty(value));
            if let Some(val) = self.mixed_asserted(asks, mixed, given, Type::BOOL)? {
                return val.leaves.first().copied().ok_or_else(|| self.bad_operands());
            }
        }
        let val = self.operand(n)?;
        let val = self.checked(&val, Type::BOOL)?;
        val.leaves.first().copied().ok_or_else(|| self.bad_operands())
    }

    /// An operand that is one register, with its type.
    pub(super) fn scalar_operand(&mut self, n: usize) -> Step<(Value, Type)> {
        let val = self.operand(n)?;
        let form = self.form(val.ty)?;
        match (&form.kind, &val.leaves[..]) {
            (FormKind::Scalar, &[leaf]) if !form.is_object() => Ok((leaf, val.ty)),
            _ => Err(self.bad_operands()),
        }
    }

    // ----- constants -----

    /// A constant in native form.
    fn constant(&mut self, value: Value) -> Step<Val> {
        let src = self.src;
        let Some(data) = src.as_const(value) else { return Err(self.bad_operands()) };
        let val = match data {
            Const::Aggregate { ty, fields } => return self.constant_aggregate(value, *ty, fields),
            Const::Undef(ty) => return self.undefined(*ty),
            other => self.simple_constant(other)?,
        };
        self.cache_constant(value, &val);
        Ok(val)
    }

    /// Caches the native form of a constant if it has no instructions, whose position may not dominate other uses.
    fn cache_constant(&mut self, value: Value, val: &Val) {
        if val.leaves.iter().all(|&leaf| self.out.as_const(leaf).is_some()) {
            self.set(value, val);
        }
    }

    pub(super) fn simple_constant(&mut self, data: &Const) -> Step<Val> {
        match *data {
            Const::Bits { ty, bits } => {
                let form = self.form(ty)?;
                match form.low_types().next() {
                    Some(low) => {
                        let leaf = self.out.bits(self.types, low, bits);
                        Ok(Val::scalar(ty, leaf))
                    }
                    None => Ok(Val::ghost(ty)),
                }
            }
            Const::Singleton(ty) => {
                self.form(ty)?;
                Ok(Val::ghost(ty))
            }
            Const::String(text) => Ok(Val::scalar(Type::STRING, self.permanent(Address::String(text)))),
            Const::Symbol(name) => Ok(Val::scalar(Type::SYMBOL, self.permanent(Address::Symbol(name)))),
            Const::Type { of, .. } => Ok(Val::ghost(self.type_of(of)?)),
            Const::Module(name) => Ok(Val::scalar(Type::MODULE, self.permanent(Address::Module(name)))),
            Const::Address(_) | Const::Aggregate { .. } | Const::Undef(_) => Err(self.bad_operands()),
        }
    }

    /// `Type{T}`.
    pub(super) fn type_of(&mut self, ty: Type) -> Step<Type> {
        self.types.type_of(ty).map_err(|_| self.bad_operands())
    }

    pub(super) fn address(&mut self, address: Address) -> Value {
        self.out.constant(Const::Address(address))
    }

    /// A permanent object.
    pub(super) fn permanent(&mut self, address: Address) -> Value {
        let raw = self.address(address);
        self.value(Op::Intrinsic(Intrinsic::Bitcast), &[raw], Type::TRACKED)
    }

    /// The null reference.
    pub(super) fn null(&mut self) -> Value {
        self.int(LowType::Ptr(PtrClass::Tracked), 0)
    }

    /// The address of the record of a symbol.
    pub(super) fn symbol(&mut self, name: Name) -> Value {
        self.address(Address::Symbol(name))
    }

    fn constant_aggregate(&mut self, value: Value, ty: Type, fields: &[Value]) -> Step<Val> {
        let form = self.form(ty)?;
        if form.is_memory()
            && let Some(data) = self.constant_data(value)
        {
            let val = Val::scalar(ty, data);
            self.set(value, &val);
            return Ok(val);
        }
        let parts = fields.iter().map(|&f| self.val(f)).collect::<Step<Vec<Val>>>()?;
        let val = self.aggregate(ty, &parts)?;
        self.cache_constant(value, &val);
        Ok(val)
    }

    /// The address of a constant's bytes; `None` if it contains references, or parts that have no known bytes.
    pub(super) fn constant_data(&mut self, value: Value) -> Option<Value> {
        let number = match self.data.get(&value) {
            Some(&number) => number,
            None => {
                let Const::Aggregate { ty, .. } = self.src.as_const(value)? else { return None };
                let layout = self.types.layout(*ty).ok().filter(|layout| layout.is_bits())?;
                let mut bytes = vec![0; layout.size as usize];
                self.write_constant(value, *ty, &mut bytes)?;
                let number = self.out.add_data(&bytes);
                self.data.insert(value, number);
                number
            }
        };
        Some(self.address(Address::Data(number)))
    }

    /// Writes a constant to the bytes of a field of type `ty`. Recursion follows the nesting of types.
    fn write_constant(&self, value: Value, ty: Type, bytes: &mut [u8]) -> Option<()> {
        match self.src.as_const(value)? {
            &Const::Bits { ty: given, bits } => {
                let size = self.types.layout(given).ok()?.size as usize;
                bytes.get_mut(..size)?.copy_from_slice(bits.to_le_bytes().get(..size)?);
                self.write_selector(given, ty, bytes)
            }
            Const::Singleton(given) => self.write_selector(*given, ty, bytes),
            Const::Aggregate { ty: given, fields } => {
                let layout = self.types.layout(*given).ok()?;
                for (&field, at) in fields.iter().zip(&layout.fields) {
                    let range = at.offset as usize..(at.offset + at.size) as usize;
                    self.write_constant(field, at.ty, bytes.get_mut(range)?)?;
                }
                self.write_selector(*given, ty, bytes)
            }
            _ => None,
        }
    }

    /// Writes the selector of the member `given` if the field's type `ty` is a union.
    fn write_selector(&self, given: Type, ty: Type, bytes: &mut [u8]) -> Option<()> {
        if given == ty {
            return Some(());
        }
        let members = self.types.members(&ty);
        let number = members.iter().position(|&m| m == given)?;
        let (payload, _) = self.types.union_extent(members)?;
        *bytes.get_mut(payload as usize)? = number as u8;
        Some(())
    }

    /// The first leaf of field `n` of an unboxed aggregate: for a field with a reference, the reference, which may be null.
    pub(super) fn leaf_of_field(&mut self, val: &Val, n: usize) -> Step<Option<Value>> {
        let form = self.form(val.ty)?;
        Ok(match &form.kind {
            FormKind::Aggregate(parts) => parts.get(n).and_then(|part| val.leaves.get(part.first)).copied(),
            _ => None,
        })
    }

    /// An arbitrary value of a type.
    pub(super) fn undefined(&mut self, ty: Type) -> Step<Val> {
        let form = self.form(ty)?;
        if form.is_memory() {
            let slot = self.slot(form.size, form.align);
            return Ok(Val::scalar(ty, self.slot_addr(slot)));
        }
        let leaves = form.low_types().map(|low| self.out.constant(Const::Undef(low))).collect();
        Ok(Val { ty, leaves })
    }

    /// Zero leaves, for fields without initial values.
    fn zero(&mut self, form: &Form) -> Leaves {
        let zero = |low| match low {
            LowType::Ptr(PtrClass::Tracked) => self.null(),
            low => self.int(low, 0),
        };
        form.leaves.iter().map(|leaf| leaf.low).map(zero).collect()
    }

    /// A constant of the module that has no identity. Recursion follows the nesting of types.
    pub(super) fn literal(&mut self, literal: &Literal) -> Step<Val> {
        match literal {
            Literal::Const(data) => self.simple_constant(data),
            Literal::Aggregate { ty, fields } => {
                let parts = fields.iter().map(|f| self.literal(f)).collect::<Step<Vec<Val>>>()?;
                self.aggregate(*ty, &parts)
            }
            Literal::Array { .. } => Err(self.bad_operands()),
        }
    }

    // ----- aggregates -----

    /// A value of an immutable type from its leading fields. The other fields are zero, so references are undefined.
    pub(super) fn aggregate(&mut self, ty: Type, fields: &[Val]) -> Step<Val> {
        let form = self.form(ty)?;
        match &form.kind {
            FormKind::Ghost => Ok(Val::ghost(ty)),
            FormKind::Aggregate(parts) => {
                let mut leaves = Leaves::new();
                for (n, part) in parts.iter().enumerate() {
                    let Some(field) = fields.get(n) else {
                        leaves.extend(self.zero(&part.form));
                        continue;
                    };
                    let field = self.convert(field.clone(), part.form.ty)?;
                    match part.form.is_object() {
                        true => {
                            let reference = self.object(&field)?;
                            if self.out.as_const(reference).is_none() {
                                self.defined.insert(reference, self.cur);
                            }
                            leaves.push(reference);
                        }
                        false => leaves.extend(field.leaves),
                    }
                }
                Ok(Val { ty, leaves })
            }
            FormKind::Memory => {
                let layout = self.layout(ty)?;
                let slot = self.slot(form.size, form.align);
                let base = self.slot_addr(slot);
                for (field, at) in fields.iter().zip(&layout.fields) {
                    let field = self.convert(field.clone(), at.ty)?;
                    let addr = Addr::own(base, form.align, Region::Raw).at(at.offset);
                    self.store(addr, &field)?;
                }
                for at in layout.fields.iter().skip(fields.len()) {
                    self.store_zero(Addr::own(base, form.align, Region::Raw).at(at.offset), at.ty)?;
                }
                Ok(Val::scalar(ty, base))
            }
            FormKind::Scalar if form.is_object() => {
                let object = self.new_object(ty, fields)?;
                Ok(Val::scalar(ty, object))
            }
            FormKind::Never | FormKind::Scalar | FormKind::Union(_) => Err(self.bad_operands()),
        }
    }

    /// Writes the value of a field that `%new` leaves out: zero bits, and no object. Recursion follows the nesting of types.
    fn store_zero(&mut self, addr: Addr, ty: Type) -> Step<()> {
        let form = self.form(ty)?;
        match &form.kind {
            FormKind::Memory => {
                let layout = self.layout(ty)?;
                layout.fields.iter().try_for_each(|field| self.store_zero(addr.at(field.offset), field.ty))
            }
            _ => {
                let leaves = self.zero(&form);
                self.store(addr, &Val { ty, leaves }).map(drop)
            }
        }
    }

    /// Field `n`, from 0, of an immutable value that has fields. Throws if it is undefined.
    pub(super) fn field(&mut self, val: &Val, n: usize) -> Step<Val> {
        let form = self.form(val.ty)?;
        if let FormKind::Aggregate(parts) = &form.kind {
            let Some(part) = parts.get(n) else { return Err(self.bad_operands()) };
            let leaves: Leaves =
                val.leaves.get(part.first..part.first + part.form.leaves.len()).unwrap_or_default().into();
            return match leaves[..] {
                [leaf] if part.form.is_object() => self.reference(leaf, part.form.ty),
                _ => Ok(Val { ty: part.form.ty, leaves }),
            };
        }
        let layout = self.layout(val.ty)?;
        let Some(&field) = layout.fields.get(n) else { return Err(self.bad_operands()) };
        match (&form.kind, &val.leaves[..]) {
            (FormKind::Ghost, _) => Ok(Val::ghost(field.ty)),
            (FormKind::Memory, &[base]) => {
                self.load(Addr::own(base, form.align, Region::Raw).at(field.offset), field.ty)
            }
            (FormKind::Scalar, &[object]) if form.is_object() => {
                let addr = Addr::inside(object, layout.align, Region::Immutable).at(field.offset);
                self.load_stored(addr, field.ty, field.repr)
            }
            _ => Err(self.bad_operands()),
        }
    }

    /// The `T` of a value of type `Type{T}`: the value as a type, if it is known.
    pub(super) fn static_type(&self, val: &Val) -> Option<Type> {
        match self.types.kind(val.ty) {
            TypeKind::TypeOf(ty) => Some(*ty),
            _ => None,
        }
    }
}
