//! Types of builtins. A builtin checks its operands at run time, which covers everything that their types
//! leave open; only calls that can never succeed are reported.

use super::{CallRule, Checker, FieldRef, TypeRule};
use crate::builtin::Builtin;
use crate::constant::Const;
use crate::entity::Inst;
use crate::op::{Level, Op};
use crate::types::{DeclKind, Type, TypeKind};

impl Checker<'_> {
    pub(super) fn builtin(&mut self, inst: Inst, op: Builtin) {
        if let Some(why) = op.refusal() {
            self.at(inst, CallRule::Refused { name: op.name(), why });
            return;
        }
        let args = self.func.args(inst);
        if args.iter().any(|&v| self.func.ty(v) == Type::BOTTOM) {
            return;
        }
        for n in op.bounds_operands(args.len()) {
            let is_order = op == Builtin::Getfield && self.func.ty(args[n]) == Type::SYMBOL;
            if !is_order {
                self.bounds_check(inst, n);
            }
        }
        match op {
            Builtin::Egal | Builtin::Isa | Builtin::Subtype | Builtin::Isdefined | Builtin::Applicable => {
                self.result_compatible(inst, Type::BOOL);
            }
            Builtin::Typeof => self.result_compatible(inst, Type::DATATYPE),
            Builtin::Sizeof | Builtin::Nfields => self.result_compatible(inst, Type::INT64),
            Builtin::Typeassert => {
                if let Some(&Const::Type { of: ty, .. }) = self.arg_const(inst, 1) {
                    self.result_compatible(inst, ty);
                }
            }
            Builtin::Tuple => {
                let types: Vec<Type> = args.iter().map(|&v| self.func.ty(v)).collect();
                self.tuple(inst, &types);
            }
            Builtin::Getfield => self.getfield(inst),
            Builtin::Setfield => {
                self.changed_field(inst, 2);
                self.result_compatible(inst, self.arg_type(inst, 2));
            }
            Builtin::Swapfield => {
                if let Some(ty) = self.changed_field(inst, 2) {
                    self.result_compatible(inst, ty);
                }
            }
            Builtin::Replacefield => {
                self.replace_orders(inst, 4);
                if let Some(ty) = self.changed_field(inst, 3) {
                    self.result_fields(inst, [ty, Type::BOOL]);
                }
            }
            Builtin::Modifyfield => {
                // Operand 3 is an operand of the function, not the new value.
                if let Some(ty) = self.changed_field(inst, usize::MAX) {
                    self.result_fields(inst, [ty, ty]);
                }
            }
            Builtin::Setfieldonce => {
                self.changed_field(inst, 2);
                self.result_compatible(inst, Type::BOOL);
            }
            Builtin::Getglobal
            | Builtin::Setglobal
            | Builtin::Swapglobal
            | Builtin::Modifyglobal
            | Builtin::Replaceglobal
            | Builtin::Setglobalonce => self.global(inst, op),
            Builtin::Isdefinedglobal => self.result_compatible(inst, Type::BOOL),
            Builtin::Memorynew => self.memorynew(inst),
            Builtin::Memoryrefnew => self.memoryrefnew(inst),
            Builtin::Memoryrefget => self.memoryref(inst, 1, None),
            Builtin::Memoryrefset | Builtin::Memoryrefswap => self.memoryref(inst, 2, Some(1)),
            Builtin::Memoryrefsetonce => {
                self.memoryref_operand(inst);
                self.result_compatible(inst, Type::BOOL);
            }
            Builtin::Memoryrefmodify => {
                self.memoryref_operand(inst);
            }
            Builtin::Memoryrefreplace => {
                self.replace_orders(inst, 3);
                self.memoryref_operand(inst);
            }
            Builtin::Memoryrefoffset => {
                self.memoryref_operand(inst);
                self.result_compatible(inst, Type::INT64);
            }
            Builtin::MemoryrefIsassigned => {
                self.memoryref_operand(inst);
                self.result_compatible(inst, Type::BOOL);
            }
            Builtin::Arrayref => {
                if let Some(elem) = self.array(inst, 1, 2) {
                    self.result_compatible(inst, elem);
                }
            }
            Builtin::Arrayset => {
                if let Some(elem) = self.array(inst, 1, 3) {
                    self.operand_may_fit(inst, 2, elem);
                    self.result_compatible(inst, self.arg_type(inst, 1));
                }
            }
            Builtin::Arraylen => {
                self.array(inst, 0, usize::MAX);
                self.result_compatible(inst, Type::INT64);
            }
            Builtin::Arraysize => {
                self.array(inst, 0, usize::MAX);
                self.operand_may_fit(inst, 1, Type::INT64);
                self.result_compatible(inst, Type::INT64);
            }
            Builtin::Ifelse => self.ifelse(inst),
            Builtin::Compilerbarrier => {
                self.operand_may_fit(inst, 0, Type::SYMBOL);
                self.result_holds(inst, 1);
            }
            Builtin::Blackbox => self.result_holds(inst, 0),
            _ => {}
        }
    }

    fn tuple(&mut self, inst: Inst, types: &[Type]) {
        let Some(given) = self.result_type(inst) else { return };
        let holds = match self.types.kind(given) {
            TypeKind::Tuple { elems, vararg: None } if elems.len() == types.len() => {
                self.func.args(inst).iter().zip(elems).all(|(&v, &e)| self.fits(v, e))
            }
            // The elements are values, so their types are high types and the tuple type exists.
            _ => self.types.tuple(types).is_ok_and(|t| self.types.is_subtype(t, given)),
        };
        if !holds {
            match self.types.tuple(types) {
                Ok(made) => self.at(inst, TypeRule::Result { given, wanted: made.into() }),
                Err(_) => self.at(inst, TypeRule::Result { given, wanted: "a tuple of the operands".into() }),
            }
        }
    }

    fn ifelse(&mut self, inst: Inst) {
        let wanted = if self.func.level == Level::High { Type::BOOL } else { Type::I8 };
        self.operand_may_fit(inst, 0, wanted);
        self.result_holds(inst, 1);
        self.result_holds(inst, 2);
    }

    // ----- fields -----

    /// The field that operand 1 names, if it is a constant.
    fn field_operand(&self, inst: Inst) -> Option<FieldRef> {
        match *self.arg_const(inst, 1)? {
            Const::Symbol(name) => Some(FieldRef::Name(name)),
            Const::Bits { ty: Type::INT64, bits } => Some(FieldRef::Number(bits as i64)),
            _ => None,
        }
    }

    /// The position and type of a field; an error if the type is certain not to have such a field.
    fn field(&mut self, inst: Inst, object: Type) -> Option<(usize, Type)> {
        let types = self.types;
        let Some(field) = self.field_operand(inst) else {
            let selector = self.arg_type(inst, 1);
            if types.is_disjoint(selector, Type::SYMBOL) && types.is_disjoint(selector, Type::INT64) {
                self.bad_operand(inst, 1, "a field's name or number");
            }
            return None;
        };
        let by_runtime = matches!(types.nominal_kind(object), Some(DeclKind::Opaque))
            || matches!(types.kind(object), TypeKind::TypeOf(_));
        let is_open = !types.is_concrete(object) || by_runtime;
        let found = match field {
            FieldRef::Name(name) => types.field_index(object, name),
            FieldRef::Number(number) => usize::try_from(number).ok().and_then(|n| n.checked_sub(1)),
        };
        let found = found.and_then(|index| Some((index, types.field_type(object, index)?)));
        // The elements of a tuple are known even if their types are not concrete.
        let is_tuple = types.tuple_elements(object).is_some();
        // A read with an index known to be out of bounds throws at run time, if it is ever reached. So does a
        // read of a missing keyword argument, whose code remains after a test that is false.
        let by_keyword = matches!(self.types.kind(object), TypeKind::NamedTuple { .. });
        let throws = self.func.op(inst) == Op::Builtin(Builtin::Getfield)
            && (by_keyword || matches!(field, FieldRef::Number(_)));
        if found.is_none() && (!is_open || is_tuple) && !throws {
            self.at(inst, TypeRule::NoField { object, field });
        }
        found
    }

    fn getfield(&mut self, inst: Inst) {
        let object = self.arg_type(inst, 0);
        let given = match self.runtime_field(inst, object) {
            Some(known) => known,
            None => self.field(inst, object).map(|(_, ty)| ty),
        };
        if let Some(ty) = given {
            self.result_compatible(inst, ty);
        }
    }

    /// The fields of types laid out by the run time: `None` if the type is not one of them, `Some(None)` if
    /// the field's type is unknown.
    fn runtime_field(&mut self, inst: Inst, object: Type) -> Option<Option<Type>> {
        let types = self.types;
        if !matches!(types.nominal_kind(object), Some(DeclKind::Opaque)) {
            return None;
        }
        let Some(FieldRef::Name(name)) = self.field_operand(inst) else { return Some(None) };
        let text = self.cx.names.text(name);
        let found = if let Some((elem, dims)) = types.array_parts(object) {
            let dims = (dims as usize).min(crate::types::MAX_WIDTH);
            match text {
                "ref" => types.memory_ref(elem).ok(),
                "size" => types.tuple(&vec![Type::INT64; dims]).ok(),
                _ => None,
            }
        } else if types.memory_element(object).is_some() {
            match text {
                "length" => Some(Type::INT64),
                "ptr" => types.ptr(Type::NOTHING).ok(),
                _ => None,
            }
        } else if let Some(elem) = types.memory_ref_element(object) {
            match text {
                "mem" => types.memory(elem).ok(),
                "ptr_or_offset" => types.ptr(Type::NOTHING).ok(),
                _ => None,
            }
        } else {
            return Some(None);
        };
        if found.is_none() {
            self.at(inst, TypeRule::NoField { object, field: FieldRef::Name(name) });
        }
        Some(found)
    }

    /// The type of the field that is written; `value` is the number of the stored operand.
    fn changed_field(&mut self, inst: Inst, value: usize) -> Option<Type> {
        let types = self.types;
        let object = self.arg_type(inst, 0);
        if let Some((elem, _)) = types.array_parts(object) {
            // Growing an array in place sets its reference and size.
            return self.runtime_field(inst, object).flatten().filter(|_| elem != Type::BOTTOM);
        }
        let is_struct = types.field_count(object).is_some() && types.is_concrete(object);
        if is_struct && !types.is_mutable(object) {
            self.at(inst, TypeRule::Immutable { object, field: None });
            return None;
        }
        let (index, ty) = self.field(inst, object)?;
        if types.fields(object).and_then(|f| f.get(index)).is_some_and(|f| f.is_const) {
            let field = self.field_operand(inst);
            self.at(inst, TypeRule::Immutable { object, field });
        }
        self.operand_may_fit(inst, value, ty);
        Some(ty)
    }

    fn global(&mut self, inst: Inst, op: Builtin) {
        let (Some(module), Some(&Const::Symbol(name))) = (self.module, self.arg_const(inst, 1)) else {
            return;
        };
        let Some(global) = module.global(name) else {
            self.at(inst, CallRule::UnknownGlobal { name });
            return;
        };
        match op {
            Builtin::Getglobal => self.result_compatible(inst, global.ty),
            Builtin::Setglobal => {
                self.operand_may_fit(inst, 2, global.ty);
                self.result_compatible(inst, self.arg_type(inst, 2));
            }
            Builtin::Swapglobal => {
                self.operand_may_fit(inst, 2, global.ty);
                self.result_compatible(inst, global.ty);
            }
            Builtin::Replaceglobal => {
                self.replace_orders(inst, 4);
                self.result_fields(inst, [global.ty, Type::BOOL]);
            }
            Builtin::Modifyglobal => self.result_fields(inst, [global.ty, global.ty]),
            _ => self.result_compatible(inst, Type::BOOL),
        }
    }

    // ----- arrays and memory -----

    fn memorynew(&mut self, inst: Inst) {
        self.operand_may_fit(inst, 1, Type::INT64);
        match self.arg_const(inst, 0) {
            Some(&Const::Type { of: ty, .. }) if self.types.memory_element(ty).is_some() => {
                self.result_compatible(inst, ty);
            }
            Some(_) => self.bad_operand(inst, 0, "a `Memory` type"),
            None => {}
        }
    }

    fn memoryrefnew(&mut self, inst: Inst) {
        let base = self.arg_type(inst, 0);
        let elem = self.types.memory_element(base).or(self.types.memory_ref_element(base));
        match elem {
            Some(elem) => {
                if let Ok(ty) = self.types.memory_ref(elem) {
                    self.result_compatible(inst, ty);
                }
            }
            None if self.types.is_concrete(base) => self.bad_operand(inst, 0, "a `Memory` or `MemoryRef`"),
            None => {}
        }
        self.operand_may_fit(inst, 1, Type::INT64);
    }

    /// Whether bounds are checked must be a `Bool`: passes drop checks that cannot fail, and must not lose a
    /// `TypeError`.
    fn bounds_check(&mut self, inst: Inst, operand: usize) {
        let Some(value) = self.arg(inst, operand) else { return };
        let given = self.func.ty(value);
        if !self.fits(value, Type::BOOL) {
            self.at(inst, TypeRule::Operand { operand, given, wanted: Type::BOOL.into() });
        }
    }

    fn memoryref_operand(&mut self, inst: Inst) -> Option<Type> {
        let ty = self.arg_type(inst, 0);
        let elem = self.types.memory_ref_element(ty);
        if elem.is_none() && self.types.is_concrete(ty) {
            self.bad_operand(inst, 0, "a `MemoryRef`");
        }
        elem
    }

    /// Access to an element; operand `order` is the memory order.
    fn memoryref(&mut self, inst: Inst, order: usize, value: Option<usize>) {
        let elem = self.memoryref_operand(inst);
        self.order(inst, order);
        let Some(elem) = elem else { return };
        if let Some(value) = value {
            self.operand_may_fit(inst, value, elem);
        }
        self.result_compatible(inst, elem);
    }

    /// The element type of the array in operand `n`; the operands from `indices` on must be integers.
    fn array(&mut self, inst: Inst, n: usize, indices: usize) -> Option<Type> {
        let ty = self.arg_type(inst, n);
        let elem = self.types.array_parts(ty).map(|(elem, _)| elem);
        if elem.is_none() && self.types.is_concrete(ty) {
            self.bad_operand(inst, n, "an `Array`");
        }
        for index in indices..self.func.args(inst).len() {
            self.operand_may_fit(inst, index, Type::INT64);
        }
        elem
    }
}
