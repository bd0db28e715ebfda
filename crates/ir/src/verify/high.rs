//! Types of high IR: the operands that each statement requires, and the results that it may assert.

use super::{CallRule, Checker, TypeRule, Wanted};
use crate::constant::Const;
use crate::entity::{Inst, Value};
use crate::func::CalleeData;
use crate::names::Name;
use crate::op::{Op, Ordering};
use crate::types::{DeclKind, StaticBound, Type, TypeKind};

impl<'a> Checker<'a> {
    pub(super) fn high(&mut self, inst: Inst) {
        let func = self.func;
        match func.op(inst) {
            Op::Intrinsic(op) => self.intrinsic(inst, op),
            Op::Builtin(op) => self.builtin(inst, op),
            Op::Phi => {
                let result = self.result_type(inst).unwrap_or(Type::ANY);
                for n in 0..func.args(inst).len() {
                    self.operand_fits(inst, n, result);
                }
            }
            Op::Copy => self.result_holds(inst, 0),
            Op::ForeignCall(foreign) => self.foreign_call(inst, foreign),
            Op::Branch => self.operand_fits(inst, 0, Type::BOOL),
            Op::Return => self.returned(inst),
            Op::Invoke(callee) => match func.callee(callee) {
                CalleeData::Method { function, args, result } => {
                    self.invoke(inst, *function, args, *result);
                }
                CalleeData::Symbol { .. } => self.at(inst, CallRule::NotMethod),
            },
            Op::CFunction(callee) => match func.callee(callee) {
                CalleeData::Method { function, args, .. } => self.c_function(inst, *function, args),
                CalleeData::Symbol { .. } => self.at(inst, CallRule::NotMethod),
            },
            Op::CGlobal(_) => self.address_result(inst),
            Op::New(ty) => self.new_object(inst, ty),
            Op::SplatNew(ty) => self.splat_new(inst, ty),
            Op::Pi => {
                let ty = self.arg_type(inst, 0);
                self.result_compatible(inst, ty);
            }
            // A ϒ without an operand stores "undefined".
            Op::Upsilon => self.result_holds(inst, 0),
            Op::PhiC => {
                let result = self.result_type(inst).unwrap_or(Type::ANY);
                for n in 0..func.args(inst).len() {
                    let stored = self.stored_by(inst, n);
                    if let Some(value) = stored.filter(|&v| !self.fits(v, result)) {
                        let (given, wanted) = (self.func.ty(value), result.into());
                        self.at(inst, TypeRule::Operand { operand: n, given, wanted });
                    }
                }
            }
            Op::GetGlobal(name) => self.get_global(inst, name),
            Op::ThrowUndefIfNot(_) => self.operand_fits(inst, 0, Type::BOOL),
            Op::BoundsCheck(_) => self.result_is(inst, Type::BOOL),
            Op::StaticParameter(number) => {
                if let Some(bound) = self.static_parameter(inst, number)
                    && let StaticBound::Value(value) = bound
                {
                    let ty = self.types.static_type(value);
                    self.result_compatible(inst, ty);
                }
            }
            Op::StaticDefined(number) => {
                self.static_parameter(inst, number);
                self.result_is(inst, Type::BOOL);
            }
            // `ssa` and `exceptions` check tokens; the remaining statements have no type rule.
            _ => {}
        }
    }

    fn static_parameter(&mut self, inst: Inst, number: u32) -> Option<StaticBound> {
        let statics = &self.func.sig.statics;
        let found = statics.get(number).map(|param| param.bound);
        if found.is_none() {
            self.at(inst, TypeRule::StaticParameter { number, count: statics.params.len() });
        }
        found
    }

    /// The value stored by the ϒ that operand `n` names.
    fn stored_by(&self, inst: Inst, n: usize) -> Option<Value> {
        let upsilon = self.func.def_inst(self.arg(inst, n)?)?;
        (self.func.op(upsilon) == Op::Upsilon).then(|| self.arg(upsilon, 0)).flatten()
    }

    // ----- operands -----

    /// Operand `n` is certain to have the type.
    pub(super) fn operand_fits(&mut self, inst: Inst, operand: usize, wanted: Type) {
        if let Some(value) = self.arg(inst, operand)
            && !self.fits(value, wanted)
        {
            let given = self.func.ty(value);
            self.at(inst, TypeRule::Operand { operand, given, wanted: wanted.into() });
        }
    }

    /// Operand `n` may have the type, which is checked at run time.
    pub(super) fn operand_may_fit(&mut self, inst: Inst, operand: usize, wanted: Type) {
        if let Some(value) = self.arg(inst, operand)
            && !self.fits(value, wanted)
            && self.types.is_disjoint(self.func.ty(value), wanted)
        {
            let given = self.func.ty(value);
            self.at(inst, TypeRule::Operand { operand, given, wanted: wanted.into() });
        }
    }

    pub(super) fn bad_operand(&mut self, inst: Inst, operand: usize, wanted: impl Into<Wanted>) {
        let given = self.arg_type(inst, operand);
        self.at(inst, TypeRule::Operand { operand, given, wanted: wanted.into() });
    }

    /// A constant memory order is one of the seven.
    pub(super) fn order(&mut self, inst: Inst, operand: usize) {
        self.operand_may_fit(inst, operand, Type::SYMBOL);
        if let Some(&Const::Symbol(symbol)) = self.arg_const(inst, operand)
            && Ordering::from_name(self.cx.names.text(symbol)).is_none()
        {
            self.at(inst, TypeRule::Order { symbol });
        }
    }

    /// The orders of a replacement: success, then failure, which must not be stricter. Missing operands have
    /// defaults.
    pub(super) fn replace_orders(&mut self, inst: Inst, success: usize) {
        let named = |n: usize| match self.arg_const(inst, n) {
            Some(&Const::Symbol(symbol)) => Ordering::from_name(self.cx.names.text(symbol)),
            _ => None,
        };
        if let (Some(success), Some(failure)) = (named(success), named(success + 1))
            && failure > success
        {
            self.at(inst, TypeRule::FailureOrder { success, failure });
        }
    }

    // ----- results -----

    /// The result has exactly this type, or the statement does not return.
    pub(super) fn result_is(&mut self, inst: Inst, wanted: Type) {
        if let Some(given) = self.result_type(inst)
            && given != wanted
            && given != Type::BOTTOM
        {
            self.at(inst, TypeRule::Result { given, wanted: wanted.into() });
        }
    }

    /// The result may have the type of the operation.
    pub(super) fn result_compatible(&mut self, inst: Inst, wanted: Type) {
        if let Some(given) = self.result_type(inst)
            && given != Type::BOTTOM
            && wanted != Type::BOTTOM
            && self.types.is_disjoint(given, wanted)
        {
            self.at(inst, TypeRule::Result { given, wanted: wanted.into() });
        }
    }

    /// The result type contains the operation's type.
    pub(super) fn result_above(&mut self, inst: Inst, wanted: Type) {
        if let Some(given) = self.result_type(inst)
            && given != Type::BOTTOM
            && !self.types.is_subtype(wanted, given)
        {
            self.at(inst, TypeRule::Result { given, wanted: wanted.into() });
        }
    }

    /// The result type contains operand `n`'s.
    pub(super) fn result_holds(&mut self, inst: Inst, n: usize) {
        if let (Some(given), Some(value)) = (self.result_type(inst), self.arg(inst, n))
            && !self.fits(value, given)
        {
            let wanted = self.func.ty(value).into();
            self.at(inst, TypeRule::Result { given, wanted });
        }
    }

    // ----- statements -----

    fn returned(&mut self, inst: Inst) {
        for (n, &ty) in self.returned_types(inst).iter().enumerate() {
            self.operand_fits(inst, n, ty);
        }
    }

    /// The types that a `return` returns, if it has an operand for each.
    pub(super) fn returned_types(&mut self, inst: Inst) -> &'a [Type] {
        let func = self.func;
        let (given, wanted) = (func.args(inst).len(), func.sig.results.len());
        if given != wanted {
            self.at(inst, TypeRule::ReturnCount { given, wanted });
            return &[];
        }
        &func.sig.results
    }

    fn new_object(&mut self, inst: Inst, ty: Type) {
        let given = self.func.args(inst).len();
        if !self.types.is_concrete(ty) {
            self.at(inst, TypeRule::New { ty, why: "it is not concrete" });
            return;
        }
        if let Some((elem, dims)) = self.types.array_parts(ty) {
            self.new_array(inst, ty, elem, dims);
        } else if let Some(fields) = self.types.field_count(ty) {
            let is_tuple = self.types.tuple_elements(ty).is_some();
            if given > fields || (is_tuple && given < fields) {
                self.at(inst, TypeRule::FieldCount { ty, given, fields });
            }
            for n in 0..given.min(fields) {
                let wanted = self.types.field_type(ty, n).unwrap_or(Type::BOTTOM);
                self.operand_may_fit(inst, n, wanted);
            }
            let is_left_out = |n| {
                self.types.field_type(ty, n).is_some_and(|field| self.types.always_refers_to_memory(field))
            };
            if !self.types.is_mutable(ty) && (given..fields).any(is_left_out) {
                self.at(inst, TypeRule::New { ty, why: "a `MemoryRef` in it is given no value" });
            }
        } else {
            let why = match self.types.nominal_kind(ty) {
                Some(DeclKind::Opaque) => "only the run time makes its objects",
                _ => "it has no fields",
            };
            self.at(inst, TypeRule::New { ty, why });
        }
        self.result_above(inst, ty);
    }

    /// An array is made from the `MemoryRef` of its first element and its size.
    fn new_array(&mut self, inst: Inst, ty: Type, elem: Type, dims: u32) {
        let given = self.func.args(inst).len();
        if given != 2 {
            self.at(inst, TypeRule::FieldCount { ty, given, fields: 2 });
            return;
        }
        if let Ok(reference) = self.types.memory_ref(elem) {
            self.operand_fits(inst, 0, reference);
        }
        // Dimensions beyond the width limit of types cannot be declared, so the tuple exists.
        if let Ok(size) = self.types.tuple(&vec![Type::INT64; (dims as usize).min(crate::types::MAX_WIDTH)]) {
            self.operand_fits(inst, 1, size);
        }
    }

    fn splat_new(&mut self, inst: Inst, ty: Type) {
        let given = self.arg_type(inst, 0);
        let Some(fields) = self.types.field_count(ty).filter(|_| self.types.is_concrete(ty)) else {
            self.at(inst, TypeRule::New { ty, why: "it is not a concrete type with fields" });
            return;
        };
        match self.types.tuple_elements(given) {
            Some(elems) if elems.len() != fields => {
                self.at(inst, TypeRule::FieldCount { ty, given: elems.len(), fields });
            }
            Some(elems) => {
                let wanted = (0..fields).map(|n| self.types.field_type(ty, n).unwrap_or(Type::BOTTOM));
                if elems.iter().zip(wanted).any(|(&e, w)| self.types.is_disjoint(e, w) && e != w) {
                    self.bad_operand(inst, 0, "a tuple of the fields' types");
                }
            }
            None if matches!(self.types.kind(given), TypeKind::Tuple { .. } | TypeKind::Any) => {}
            None => self.bad_operand(inst, 0, "a tuple"),
        }
        self.result_above(inst, ty);
    }

    fn get_global(&mut self, inst: Inst, name: Name) {
        let Some(module) = self.module else { return };
        match module.global(name) {
            Some(global) => self.result_compatible(inst, global.ty),
            None => self.at(inst, CallRule::UnknownGlobal { name }),
        }
    }
}
