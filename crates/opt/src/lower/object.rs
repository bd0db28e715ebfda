//! Objects with fields: making them, and their fields.
//!
//! ```text
//! %new(Node, x, nothing)     %1 = boxes of the fields that are stored as pointers
//!                            %2 = alloc(Node)                the collector may run before, not from here on
//!                            store fields                    no barrier: the object is new
//! setfield!(n, :next, m)     store; write_barrier(n, m)
//! getfield(n, :next)         load; UndefRefError if null, where the field is stored as a pointer
//! ```
//!
//! Fields that never change (`const` fields, and the fields of boxed immutable values) are in the region `immutable`, others
//! in `field`.
//!
//! The statement must be plain for this: the exact type of the object, a constant field, the memory order of the
//! field. Anything else is a call of the builtin itself, which implements all of Julia's rules and exceptions.

use super::addr::Addr;
use super::places::{Change, Place, PlaceKind};
use super::value::{Leaves, Val};
use super::{Lowering, Step};
use brolga_ir::builtin::{Builtin, SPLAT_COUNT};
use brolga_ir::constant::Address;
use brolga_ir::op::{Ordering, Region};
use brolga_ir::types::{FieldRepr, Repr};
use brolga_ir::{Const, LowType, Op, RuntimeFn, Type, Value};

/// A field of an object that can be accessed inline.
struct FieldOf {
    object: Value,
    place: Place,
    /// The memory order, if the field is atomic.
    order: Option<Ordering>,
    offset: u32,
}

impl Lowering<'_> {
    // ----- making -----

    /// `%new(T, …)`.
    pub(super) fn new_struct(&mut self, ty: Type) -> Step<()> {
        if let Some((elem, dims)) = self.types.array_parts(ty) {
            return self.new_array(ty, elem, dims);
        }
        if self.is_only_thrown(ty)
            && let Some(result) = self.src.result(self.at)
        {
            // The throw constructs it.
            self.known[result] = super::Known::Thrown;
            return Ok(());
        }
        let count = self.src.args(self.at).len();
        if count > self.types.field_count(ty).unwrap_or(0) || !self.types.is_concrete(ty) {
            return Err(self.bad_operands());
        }
        let fields = (0..count).map(|n| self.operand(n)).collect::<Step<Vec<Val>>>()?;
        let val = self.instance_of(ty, &fields)?;
        self.define(val)
    }

    /// `%splatnew(T, t)`.
    pub(super) fn splat_new(&mut self, ty: Type) -> Step<()> {
        let tuple = self.operand(0)?;
        let Some(elems) = self.types.tuple_elements(tuple.ty).filter(|_| self.types.is_concrete(tuple.ty))
        else {
            return self.splat_unknown(ty, &tuple);
        };
        if self.types.field_count(ty) != Some(elems.len()) || !self.types.is_concrete(ty) {
            return Err(self.bad_operands());
        }
        let same = (0..elems.len()).all(|n| self.types.field_type(ty, n) == Some(elems[n]));
        let unboxed = self.types.repr(ty) == Repr::Aggregate && !self.form(ty)?.is_object();
        let val = if same && unboxed {
            // The same fields have the same layout and the same leaves.
            Val { ty, leaves: tuple.leaves }
        } else {
            let fields = (0..elems.len()).map(|n| self.field(&tuple, n)).collect::<Step<Vec<Val>>>()?;
            self.instance_of(ty, &fields)?
        };
        self.define(val)
    }

    /// `%splatnew` of a tuple whose elements are not known: the run time takes it apart.
    fn splat_unknown(&mut self, ty: Type, tuple: &Val) -> Step<()> {
        let Some(count) = self.types.field_count(ty).filter(|_| self.types.is_concrete(ty)) else {
            return Err(self.bad_operands());
        };
        let function = |l: &Self, name: &str| Val::ghost(l.types.base_function(name));
        let (nfields, getfield) = (function(self, "nfields"), function(self, "getfield"));
        let given = self.apply(&[nfields, tuple.clone()])?;
        let &[given] = &given.leaves[..] else { return Err(self.bad_operands()) };
        let given = self.unbox(given, Type::INT64)?;
        let (&[given], wanted) = (&given.leaves[..], self.word(count as i64)) else {
            return Err(self.bad_operands());
        };
        let same = self.equal(given, wanted);
        let other = self.not(same);
        let text = self.permanent(Address::String(self.cx.names.intern(SPLAT_COUNT)));
        self.throw_if(other, RuntimeFn::ThrowError, &[text]);
        let mut fields = Vec::with_capacity(count);
        for n in 1..=count {
            let n = Val::scalar(Type::INT64, self.word(n as i64));
            fields.push(self.apply(&[getfield.clone(), tuple.clone(), n])?);
        }
        let val = self.instance_of(ty, &fields)?;
        self.define(val)
    }

    /// An instance of a struct type from its leading fields, which are tested to be of the declared types.
    pub(super) fn instance_of(&mut self, ty: Type, fields: &[Val]) -> Step<Val> {
        let mut given = Vec::with_capacity(fields.len());
        for (n, field) in fields.iter().enumerate() {
            let Some(declared) = self.types.field_type(ty, n) else { return Err(self.bad_operands()) };
            given.push(self.checked(field, declared)?);
        }
        if self.types.is_mutable(ty) {
            let object = self.new_object(ty, &given)?;
            return Ok(Val::scalar(ty, object));
        }
        self.aggregate(ty, &given)
    }

    /// A new object with these leading fields.
    pub(super) fn new_object(&mut self, ty: Type, fields: &[Val]) -> Step<Value> {
        let layout = self.layout(ty)?;
        // The referent of a field is made first.
        let mut stored = Vec::with_capacity(fields.len());
        for (field, at) in fields.iter().zip(&layout.fields) {
            let field = self.convert(field.clone(), at.ty)?;
            let reference = match at.repr {
                FieldRepr::Pointer => Some(self.object(&field)?),
                FieldRepr::Inline | FieldRepr::BitsUnion { .. } => None,
            };
            stored.push((field, reference));
        }
        let object = self.value(Op::Alloc(ty), &[], Type::TRACKED);
        for (n, ((field, reference), at)) in stored.iter().zip(&layout.fields).enumerate() {
            let addr = Addr::inside(object, layout.align, self.field_region(ty, n)).at(at.offset);
            match *reference {
                Some(reference) => self.store_low(addr, 0, reference),
                None => self.store(addr, field).map(|_: Leaves| ())?,
            }
        }
        Ok(object)
    }

    fn field_region(&self, ty: Type, n: usize) -> Region {
        let is_const = self.types.fields(ty).and_then(|f| f.get(n)).is_some_and(|f| f.is_const);
        if is_const || !self.types.is_mutable(ty) { Region::Immutable } else { Region::Field }
    }

    // ----- fields -----

    /// The number of the field that operand `n` names, if that is constant and the type has it.
    pub(super) fn constant_field(&mut self, ty: Type, n: usize) -> Step<Option<usize>> {
        let which = self.arg(n)?;
        let count = self.types.field_count(ty).unwrap_or(0);
        Ok(match self.src.as_const(which) {
            Some(&Const::Symbol(name)) => self.types.field_index(ty, name),
            Some(&Const::Bits { ty: Type::INT64, bits }) => {
                usize::try_from(bits).ok().and_then(|n| n.checked_sub(1)).filter(|&n| n < count)
            }
            _ => None,
        })
    }

    /// The memory order among the operands from `first` on; `None` if it is not constant or there is no such order.
    fn field_order(&mut self, first: usize) -> Option<Ordering> {
        let options = self.src.args(self.at).get(first..).unwrap_or_default();
        // The other option is a `Bool` by its type, which the verifier demands.
        let order = options.iter().find(|&&v| self.src.ty(v) != Type::BOOL);
        match order.map(|&v| self.src.as_const(v)) {
            None => Some(Ordering::NotAtomic),
            Some(Some(Const::Symbol(name))) => Ordering::from_name(self.cx.names.text(*name)),
            Some(_) => None,
        }
    }

    /// The field that operand 1 names of the mutable object that operand 0 is, if it can be accessed inline; the memory
    /// order is among the operands from `options` on.
    fn plain_field(&mut self, options: usize, written: bool) -> Step<Option<FieldOf>> {
        let val = self.operand(0)?;
        let &[object] = &val.leaves[..] else { return Ok(None) };
        if !self.types.is_mutable(val.ty)
            || self.types.fields(val.ty).is_none()
            || !self.types.is_concrete(val.ty)
        {
            return Ok(None);
        }
        let Some(n) = self.constant_field(val.ty, 1)? else { return Ok(None) };
        let layout = self.layout(val.ty)?;
        let (Some(decl), Some(at)) = (self.types.fields(val.ty).and_then(|f| f.get(n)), layout.fields.get(n))
        else {
            return Ok(None);
        };
        let order = match (decl.is_atomic, self.field_order(options)) {
            (true, Some(order)) if order != Ordering::NotAtomic => Some(order),
            (false, Some(Ordering::NotAtomic)) => None,
            _ => return Ok(None),
        };
        if written && decl.is_const {
            return Ok(None);
        }
        let addr = Addr::inside(object, layout.align, self.field_region(val.ty, n)).at(at.offset);
        let kind = PlaceKind::Field { addr, repr: at.repr, object };
        Ok(Some(FieldOf { object, place: Place { ty: at.ty, kind }, order, offset: at.offset }))
    }

    /// `getfield(x, f, …)`.
    pub(super) fn getfield(&mut self) -> Step<()> {
        let object = self.arg(0)?;
        if self.src.ty(object) == Type::MODULE {
            return self.global_builtin(Builtin::Getglobal);
        }
        let val = self.val(object)?;
        let ty = val.ty;
        if self.types.array_parts(ty).is_some()
            || self.types.memory_element(ty).is_some()
            || self.types.memory_ref_element(ty).is_some()
        {
            return match self.array_field(&val)? {
                Some(field) => self.define(field),
                None => self.call_builtin(Builtin::Getfield),
            };
        }
        if self.types.is_mutable(ty) {
            return match self.plain_field(2, false)? {
                Some(field) => self.read_field(&field),
                None => self.call_builtin(Builtin::Getfield),
            };
        }
        let immutable =
            matches!(self.types.repr(ty), Repr::Aggregate | Repr::Ghost) && self.types.is_concrete(ty);
        match self.types.field_count(ty) {
            Some(count) if immutable => self.getfield_of(object, &val, count),
            _ => self.call_builtin(Builtin::Getfield),
        }
    }

    fn read_field(&mut self, field: &FieldOf) -> Step<()> {
        let Some(order) = field.order else {
            let val = self.read_place(&field.place)?;
            return self.define(val);
        };
        let ty = field.place.ty;
        let is_reference = matches!(field.place.kind, PlaceKind::Field { repr: FieldRepr::Pointer, .. });
        let is_ordered = !matches!(order, Ordering::Release | Ordering::AcquireRelease);
        if is_ordered && is_reference {
            let address = self.field_address(field.object, field.offset);
            let leaf = self.value(Op::AtomicLoad(order), &[address], Type::TRACKED);
            let val = self.reference(leaf, ty)?;
            return self.define(val);
        }
        if is_ordered && self.is_atomic_scalar(ty)? {
            let address = self.field_address(field.object, field.offset);
            let val = self.load_atomic(address, ty, order)?;
            return self.define(val);
        }
        self.call_builtin(Builtin::Getfield)
    }

    /// The builtins that change a field: `op(x, f, …)`.
    pub(super) fn change_field(&mut self, op: Builtin) -> Step<()> {
        let object = self.arg(0)?;
        let Some(change) = Change::of(op) else { return Err(self.bad_operands()) };
        if change == Change::Set {
            let val = self.val(object)?;
            if self.types.array_parts(val.ty).is_some() && self.set_array_field(&val)? {
                return Ok(());
            }
        }
        let Some(field) = self.plain_field(2 + change.operands(), true)? else {
            return self.call_builtin(op);
        };
        let Some(order) = field.order else {
            return self.change(change, &field.place, 2);
        };
        let ty = field.place.ty;
        let is_reference = matches!(field.place.kind, PlaceKind::Field { repr: FieldRepr::Pointer, .. });
        let is_store = !matches!(order, Ordering::Acquire | Ordering::AcquireRelease);
        if change == Change::Set && is_store && is_reference {
            let given = self.operand(2)?;
            let val = self.checked(&given, ty)?;
            let child = self.object(&val)?;
            let address = self.field_address(field.object, field.offset);
            self.emit(Op::AtomicStore(order), &[address, child], &[]);
            self.barrier(field.object, &[child]);
            return self.define(given);
        }
        if !self.is_atomic_scalar(ty)? {
            return self.call_builtin(op);
        }
        let address = self.field_address(field.object, field.offset);
        match change {
            Change::Set if is_store => {
                let given = self.operand(2)?;
                let val = self.checked(&given, ty)?;
                self.store_atomic(address, &val, order)?;
                self.define(given)
            }
            Change::Swap if order > Ordering::Unordered => self.swap_atomic(address, ty, 2, order),
            Change::Replace if order > Ordering::Unordered => self.replace_atomic(address, ty, 2, order),
            Change::Modify if order > Ordering::Unordered => self.modify_atomic(address, ty, 2, order),
            _ => self.call_builtin(op),
        }
    }

    /// `isdefined(x, f)`.
    pub(super) fn isdefined(&mut self) -> Step<()> {
        let object = self.arg(0)?;
        if self.src.ty(object) == Type::MODULE {
            return self.global_builtin(Builtin::Isdefined);
        }
        let val = self.val(object)?;
        let structure = self.types.is_concrete(val.ty) && self.types.field_count(val.ty).is_some();
        let known = structure && self.types.memory_ref_element(val.ty).is_none();
        let field = match known {
            true => self.constant_field(val.ty, 1)?,
            false => None,
        };
        let Some(n) = field else { return self.call_builtin(Builtin::Isdefined) };
        let layout = self.layout(val.ty)?;
        let Some(at) = layout.fields.get(n) else { return Err(self.bad_operands()) };
        let always = match self.types.is_mutable(val.ty) {
            true => self.types.first_reference(at.ty, at.repr).is_none(),
            // Inline fields are parts of an immutable value.
            false => at.repr != FieldRepr::Pointer,
        };
        let reference = match &val.leaves[..] {
            _ if always => None,
            &[object] if self.form(val.ty)?.is_object() => {
                if self.types.fields(val.ty).and_then(|f| f.get(n)).is_some_and(|f| f.is_atomic) {
                    return self.call_builtin(Builtin::Isdefined);
                }
                let addr = Addr::inside(object, layout.align, self.field_region(val.ty, n)).at(at.offset);
                self.first_reference(addr, at.ty, at.repr)
            }
            _ => self.leaf_of_field(&val, n)?,
        };
        let defined = self.is_set_reference(reference);
        self.define(Val::scalar(Type::BOOL, defined))
    }

    // ----- questions -----

    /// `nfields(x)`.
    pub(super) fn nfields(&mut self) -> Step<()> {
        let val = self.operand(0)?;
        if !self.types.is_concrete(val.ty) || self.static_type(&val).is_some() {
            return self.call_builtin(Builtin::Nfields);
        }
        let count = self.types.field_count(val.ty).unwrap_or(0);
        let count = self.word(count as i64);
        self.define(Val::scalar(Type::INT64, count))
    }

    /// `sizeof(x)`.
    pub(super) fn sizeof(&mut self) -> Step<()> {
        let val = self.operand(0)?;
        if let (Type::STRING | Type::SYMBOL, &[object]) = (val.ty, &val.leaves[..]) {
            let addr = Addr::inside(object, 8, Region::Length);
            let length = self.load_low(addr, super::array::LENGTH, LowType::I64);
            return self.define(Val::scalar(Type::INT64, length));
        }
        let ty = self.static_type(&val).unwrap_or(val.ty);
        match self.types.layout(ty) {
            Ok(layout) if self.types.is_concrete(ty) => {
                let size = self.word(i64::from(layout.size));
                self.define(Val::scalar(Type::INT64, size))
            }
            _ => self.call_builtin(Builtin::Sizeof),
        }
    }

    /// Whether the exception that this statement makes is only thrown, by an entry point that makes it.
    fn is_only_thrown(&mut self, ty: Type) -> bool {
        // A row may declare a wider type than the exception it makes; then `throw` does not see the exception's type.
        let Some(result) = self.src.result(self.at).filter(|&result| self.src.ty(result) == ty) else {
            return false;
        };
        self.throwing_entry(ty).is_some_and(|(entry, part)| {
            let count = usize::from(part.is_some());
            let fits = match (part, self.src.args(self.at)) {
                (None, _) => true,
                (Some(wanted), [given]) => self.src.ty(*given) == wanted,
                _ => false,
            };
            entry != RuntimeFn::Throw
                && fits
                && self.src.args(self.at).len() == count
                && self.is_thrown_once(result)
        })
    }
}
