//! The statements of high IR, by family, and the builtins without their own file.

use super::calls::is_chained;
use super::error::{Eval, Fault, Stop};
use super::exec::{Flow, Then};
use super::generic::number;
use super::value::Val;
use super::{Interp, bytes};
use brolga_ir::Name;
use brolga_ir::builtin::{Builtin, SPLAT_COUNT};
use brolga_ir::entity::Inst;
use brolga_ir::func::Func;
use brolga_ir::intrinsic::{Intrinsic, Shape};
use brolga_ir::op::Op;
use brolga_ir::scalar::{Number, Numbers, Scalar};
use brolga_ir::show::AMBIGUOUS_WORLD;
use brolga_ir::types::{FieldRepr, StaticBound, StaticParam, Type, TypeKind, decl};

/// The result of `muladd_float` or `have_fma` on a processor with FMA.
enum Fused {
    /// Rounded once.
    Once,
    /// FMA is available.
    Yes,
}

impl<'m> Interp<'m> {
    /// A statement that `exec` does not handle itself.
    pub(super) fn high_op(&mut self, func: &'m Func, inst: Inst, op: Op) -> Eval<Flow> {
        match op {
            Op::Intrinsic(intrinsic) => {
                let args = self.all_operands(func, inst)?;
                let target = func.result(inst).map(|v| func.ty(v));
                let of_processor = if self.options.fma { self.with_fma(intrinsic, &args) } else { None };
                match of_processor {
                    Some(Fused::Yes) => Ok(Flow::Value(Val::bool(true))),
                    Some(Fused::Once) => self.intrinsic(Intrinsic::FmaFloat, target, args),
                    None => self.intrinsic(intrinsic, target, args),
                }
            }
            Op::Builtin(builtin) => {
                let args = self.all_operands(func, inst)?;
                self.builtin(builtin, args, Then::Assign)
            }
            Op::Call => {
                let mut args = self.all_operands(func, inst)?;
                if args.is_empty() {
                    return Err(self.bad_count(func, inst, 0));
                }
                let callee = args.remove(0);
                self.apply(callee, args, Then::Assign)
            }
            Op::Invoke(callee) => {
                let args = self.all_operands(func, inst)?;
                self.invoke(func, callee, args)
            }
            Op::New(ty) => {
                let args = self.all_operands(func, inst)?;
                self.new_struct(ty, args).map(Flow::Value)
            }
            Op::SplatNew(ty) => {
                let [tuple] = self.operands(func, inst)?;
                let Some(elements) = self.tuple_elements(&tuple) else {
                    return Err(self.wrong_operand("%splatnew", "a tuple", &tuple));
                };
                if self.types().field_count(ty).is_some_and(|count| count != elements.len()) {
                    return Err(self.message("ErrorException", SPLAT_COUNT));
                }
                self.new_struct(ty, elements).map(Flow::Value)
            }
            Op::Pi => self.operands(func, inst).map(|[value]: [Val; 1]| Flow::Value(value)),
            Op::GetGlobal(name) => self.read_global(name).map(Flow::Value),
            Op::ThrowUndefIfNot(name) => match self.operands(func, inst)? {
                [Val::Bits { ty: Type::BOOL, bits: 0 }] => Err(self.undefined_variable(name)),
                _ => Ok(Flow::NOTHING),
            },
            Op::GcPreserveBegin => {
                self.all_operands(func, inst)?;
                let token = super::Token { serial: self.next_serial(), exceptions: 0 };
                Ok(Flow::Value(Val::Token(token)))
            }
            Op::GcPreserveEnd | Op::LoopInfo(_) | Op::CodeCoverage => Ok(Flow::NOTHING),
            Op::Spend(units) => self.spend_fuel(units),
            Op::BoundsCheck(asked) => Ok(Flow::Value(Val::bool(asked || self.options.checked))),
            Op::StaticParameter(n) => match self.static_parameter(func, n)? {
                (_, Some(value)) => self.static_value(value).map(Flow::Value),
                (name, None) => Err(self.undefined_variable(name)),
            },
            Op::StaticDefined(n) => {
                let (_, value) = self.static_parameter(func, n)?;
                Ok(Flow::Value(Val::bool(value.is_some())))
            }
            Op::CFunction(callee) => {
                let address = self.c_function(func, callee)?;
                let ty = func.result(inst).map_or(Type::PTR, |result| func.ty(result));
                self.address_of_type(ty, address).map(Flow::Value)
            }
            Op::CGlobal(name) => {
                let address = self.c_symbol(name)?;
                let ty = func.result(inst).map_or(Type::PTR, |result| func.ty(result));
                self.address_of_type(ty, address).map(Flow::Value)
            }
            Op::ForeignCall(foreign) => {
                let args = self.all_operands(func, inst)?;
                self.foreign_call(func.foreign(foreign), args)
            }
            _ => Err(Fault::Unsupported(format!("{op:?} has no place in high IR")).into()),
        }
    }

    /// The value of a type parameter. Recursion follows the nesting of types.
    fn static_value(&mut self, value: Type) -> Eval<Val> {
        let types = self.types();
        let Some((ty, elems)) = types.value_elements(value) else {
            let constant = types.param_constant(value);
            return self.simple_const(&constant);
        };
        let elems: Vec<Type> = elems.to_vec();
        let parts = elems.into_iter().map(|elem| self.static_value(elem).map(Some));
        Ok(Val::aggregate(ty, parts.collect::<Eval<Vec<_>>>()?))
    }

    /// The name of a static parameter, and its value in this call; `None` if it is undefined.
    fn static_parameter(&mut self, func: &Func, number: u32) -> Eval<(Name, Option<Type>)> {
        let sig = &func.sig;
        let Some(&StaticParam { name, bound }) = sig.statics.get(number) else {
            return Err(Fault::Unsupported(format!("static parameter {number}, which there is not")).into());
        };
        let value = match bound {
            StaticBound::Value(value) => Some(value),
            StaticBound::Undefined => None,
            StaticBound::Open { .. } => {
                let mut args: Vec<Val> = Vec::new();
                for &param in func.params().get(1..).unwrap_or_default() {
                    args.push(self.operand(param)?);
                }
                if sig.vararg
                    && let Some(rest) = args.pop()
                {
                    args.extend(self.tuple_elements(&rest).unwrap_or_default());
                }
                let types = self.types();
                let given: Vec<Type> = args.iter().map(|arg| arg.ty(types)).collect();
                let bound = sig.pattern().and_then(|pattern| types.bind_statics(pattern, &given));
                bound.and_then(|values| values.get(number as usize - 1).copied()).flatten()
            }
        };
        Ok((name, value))
    }

    /// The result of an intrinsic on a processor with FMA, if it differs from other processors. The operation
    /// exists for 32 and 64 bits. An intrinsic called as a value is Julia's own routine, which does not use
    /// it.
    fn with_fma(&self, op: Intrinsic, args: &[Val]) -> Option<Fused> {
        let has = |ty: Type| matches!(ty, Type::FLOAT32 | Type::FLOAT64);
        match (op, args) {
            (Intrinsic::MuladdFloat, [x, ..]) => has(x.ty(self.types())).then_some(Fused::Once),
            (Intrinsic::HaveFma, [Val::Type(ty)]) => has(*ty).then_some(Fused::Yes),
            _ => None,
        }
    }

    /// An intrinsic on values; `target` is the target type of a conversion.
    pub(super) fn intrinsic(&mut self, op: Intrinsic, target: Option<Type>, args: Vec<Val>) -> Eval<Flow> {
        if let Some(refusal) = op.refusal() {
            return Err(Fault::Unsupported(refusal.to_owned()).into());
        }
        if !op.arity().allows(args.len()) {
            return Err(Fault::OperandCount { op: op.to_string(), given: args.len() }.into());
        }
        if op.shape() == Shape::Query {
            // The reference processor has no FMA: `fma_float` is exact without it.
            return Ok(Flow::Value(Val::bool(false)));
        }
        if !op.is_pure() {
            return self.pointer_intrinsic(op, args);
        }
        let first = args.first().map_or(Type::ANY, |v| v.ty(self.types()));
        let result = match op.shape() {
            Shape::Convert(_) => match target {
                Some(ty) => ty,
                None => return Err(Fault::OperandCount { op: op.to_string(), given: args.len() }.into()),
            },
            Shape::IntCompare | Shape::FloatCompare => Type::BOOL,
            _ => first,
        };
        match self.scalar_op(op, result, &args)? {
            (val, None) => Ok(Flow::Value(val)),
            (val, Some(wrapped)) => self.new_tuple(vec![val, Val::bool(wrapped)]).map(Flow::Value),
        }
    }

    /// A pure intrinsic; the flag is whether a checked operation wrapped.
    pub(super) fn scalar_op(
        &mut self,
        op: Intrinsic,
        result: Type,
        args: &[Val],
    ) -> Eval<(Val, Option<bool>)> {
        let mut given = Vec::with_capacity(args.len());
        let numbers = Numbers(self.types());
        for arg in args {
            match number(arg).filter(|&n| numbers.scalar(n).is_some()) {
                Some(number) => given.push(number),
                None => return Err(self.bad_operand(op.name(), "a primitive value", arg)),
            }
        }
        match numbers.intrinsic(op, result, &given) {
            Ok(Some((Number { ty, bits }, wrapped))) => Ok((Val::Bits { ty, bits }, wrapped)),
            Ok(None) => Err(Fault::TypeMismatch {
                expected: "a primitive type".to_owned(),
                given: self.type_text(result),
            }
            .into()),
            Err(error) => Err(self.scalar_error(error)),
        }
    }

    pub(super) fn scalar(&self, val: &Val) -> Option<Scalar> {
        Numbers(self.types()).scalar(number(val)?)
    }

    /// A builtin function on values. Builtins that call pass `then` on.
    pub(super) fn builtin(&mut self, builtin: Builtin, args: Vec<Val>, then: Then) -> Eval<Flow> {
        if let Some(refusal) = builtin.refusal() {
            return Err(Fault::Unsupported(format!("`{builtin}`: {refusal}")).into());
        }
        if !builtin.arity().allows(args.len()) {
            return Err(Fault::OperandCount { op: builtin.to_string(), given: args.len() }.into());
        }
        match builtin {
            _ if is_chained(builtin) => self.calling_builtin(builtin, args, then),
            Builtin::Modifyfield | Builtin::Modifyglobal | Builtin::Memoryrefmodify => {
                let Then::Assign = then else {
                    return Err(Fault::Unsupported(format!("`{builtin}` as the function of another")).into());
                };
                self.modifying_builtin(builtin, &args)
            }
            _ => {
                let val = self.plain_builtin(builtin, args)?;
                self.returned(val, then)
            }
        }
    }

    /// A builtin that calls nothing.
    fn plain_builtin(&mut self, builtin: Builtin, args: Vec<Val>) -> Eval<Val> {
        let types = self.types();
        match (builtin, args.as_slice()) {
            (Builtin::Egal, [a, b]) => self.egal(a, b).map(Val::bool),
            (Builtin::Typeof, [x]) => Ok(Val::Type(x.type_of(types))),
            (Builtin::Sizeof, [x]) => self.size_of_value(x),
            (Builtin::Subtype, [a, b]) => {
                let (a, b) = (self.type_operand("<:", a)?, self.type_operand("<:", b)?);
                Ok(Val::bool(types.is_subtype(a, b)))
            }
            (Builtin::Isa, [x, ty]) => {
                let ty = self.type_operand("isa", ty)?;
                Ok(Val::bool(self.is_a(x, ty)))
            }
            (Builtin::Typeassert, [x, ty]) => {
                let ty = self.type_operand("typeassert", ty)?;
                if self.is_a(x, ty) {
                    Ok(x.clone())
                } else {
                    Err(self.type_error("typeassert", ty, x.clone()))
                }
            }
            (Builtin::ApplyType, [generic, params @ ..]) => self.apply_type(generic, params),
            (Builtin::Fieldtype, [ty, field, ..]) => self.field_type(ty, field),
            (Builtin::Nfields, [x]) => {
                let count = match x {
                    Val::Struct(data) => data.fields().len(),
                    _ => types.field_count(x.type_of(types)).unwrap_or(0),
                };
                Ok(Val::int64(count as i64))
            }
            (Builtin::Tuple, _) => self.new_tuple(args),
            (Builtin::Ifelse, [condition, a, b]) => match condition {
                Val::Bits { ty: Type::BOOL | Type::I8, bits: 1 } => Ok(a.clone()),
                Val::Bits { ty: Type::BOOL | Type::I8, bits: 0 } => Ok(b.clone()),
                other => Err(self.type_error("ifelse", Type::BOOL, other.clone())),
            },
            (Builtin::Throw, [exception]) => Err(Stop::Throw(exception.clone())),
            (Builtin::ThrowMethoderror, [callee, rest @ ..]) => Err(self.method_error(callee, rest.to_vec())),
            (Builtin::Donotdelete | Builtin::Finalizer | Builtin::CurrentScope, _) => Ok(Val::NOTHING),
            (Builtin::Compilerbarrier, [_, x]) | (Builtin::Blackbox, [x]) => Ok(x.clone()),
            (
                Builtin::Getfield
                | Builtin::Setfield
                | Builtin::Swapfield
                | Builtin::Replacefield
                | Builtin::Setfieldonce
                | Builtin::Isdefined,
                _,
            ) => self.field_builtin(builtin, &args),
            (op, _) if op.is_of_global() => self.global_builtin(builtin, &args),
            _ => self.array_builtin(builtin, &args),
        }
    }

    /// `modifyfield!`, `modifyglobal!`, `memoryrefmodify!`
    fn modifying_builtin(&mut self, builtin: Builtin, args: &[Val]) -> Eval<Flow> {
        let (place, f, x) = match (builtin, args) {
            (Builtin::Modifyfield, [object, field, f, x, order @ ..]) => {
                (self.field_place("modifyfield!", object, field, order.first())?, f, x)
            }
            (Builtin::Modifyglobal, [module, name, f, x, ..]) => (self.global_place(module, name)?, f, x),
            (Builtin::Memoryrefmodify, [reference, f, x, _, checked]) => {
                let checked = self.bounds_operand("memoryrefmodify!", checked)?;
                (self.element_place(reference, checked)?, f, x)
            }
            _ => return Err(Fault::OperandCount { op: builtin.to_string(), given: args.len() }.into()),
        };
        self.modify(builtin.name(), place, f.clone(), x.clone())
    }

    /// A type given as a value.
    pub(super) fn type_operand(&mut self, op: &str, val: &Val) -> Eval<Type> {
        match val {
            Val::Type(ty) => Ok(*ty),
            other => {
                let expected = self.find_type("Type").unwrap_or(Type::DATATYPE);
                Err(self.type_error(op, expected, other.clone()))
            }
        }
    }

    pub(super) fn flag_operand(&mut self, op: &str, val: &Val) -> Eval<bool> {
        match val.as_bool() {
            Some(flag) => Ok(flag),
            None => Err(self.type_error(op, Type::BOOL, val.clone())),
        }
    }

    /// Whether bounds are checked, from the operand that says so.
    pub(super) fn bounds_operand(&mut self, op: &str, val: &Val) -> Eval<bool> {
        Ok(self.flag_operand(op, val)? || self.options.checked)
    }

    /// The elements of a tuple or named tuple.
    pub(super) fn tuple_elements(&self, val: &Val) -> Option<Vec<Val>> {
        match val {
            Val::Singleton(ty) => {
                self.types().tuple_elements(*ty).is_some_and(<[Type]>::is_empty).then(Vec::new)
            }
            Val::Struct(data) => {
                self.types().tuple_elements(data.ty())?;
                data.fields().iter().cloned().collect()
            }
            _ => None,
        }
    }

    /// `%new`
    pub(super) fn new_struct(&mut self, ty: Type, args: Vec<Val>) -> Eval<Val> {
        let types = self.types();
        if let Some((_, dims)) = types.array_parts(ty) {
            return self.new_array_object(ty, dims, args);
        }
        let count = match types.field_count(ty) {
            Some(count) if types.is_concrete(ty) => count,
            _ => {
                return Err(
                    Fault::Unsupported(format!("`{}` cannot be made by %new", self.type_text(ty))).into()
                );
            }
        };
        if args.len() > count {
            return Err(Fault::OperandCount {
                op: format!("%new({})", self.type_text(ty)),
                given: args.len(),
            }
            .into());
        }
        let layout = types.layout(ty).ok();
        let mut fields = Vec::with_capacity(count);
        for (n, arg) in args.into_iter().enumerate() {
            let wanted = types.field_type(ty, n).unwrap_or(Type::ANY);
            if !self.is_a(&arg, wanted) {
                return Err(self.type_error("new", wanted, arg));
            }
            fields.push(Some(arg));
        }
        for n in fields.len()..count {
            let field = layout.and_then(|l| l.fields.get(n));
            fields.push(field.and_then(|f| bytes::fresh(types, f.ty, f.repr)));
        }
        if types.is_mutable(ty) {
            self.reserve(count as u64)?;
            self.make(ty, super::heap::Object::Struct(fields))
        } else {
            Ok(Val::aggregate(ty, fields))
        }
    }

    /// `sizeof`
    fn size_of_value(&mut self, val: &Val) -> Eval<Val> {
        let types = self.types();
        let size = match val {
            Val::Type(ty) => match types.layout(*ty) {
                Ok(layout) => u64::from(layout.size),
                Err(_) => {
                    let text = format!("Type {} does not have a definite size.", self.type_text(*ty));
                    return Err(self.message("ErrorException", &text));
                }
            },
            Val::Symbol(name) => self.module.cx.names.text(*name).len() as u64,
            Val::Object { id, ty } => {
                if let Some(bytes) = self.text(*id)? {
                    bytes.len() as u64
                } else if let Some((elem, length)) = self.extent(*id) {
                    let size = match types.field_repr(elem) {
                        FieldRepr::Pointer => 8,
                        FieldRepr::Inline => bytes::size_of(types, elem)?,
                        // The selectors are stored after all elements and do not count.
                        FieldRepr::BitsUnion { .. } => types
                            .union_extent(types.members(&elem))
                            .map_or(8, |(size, align)| u64::from(size.next_multiple_of(align))),
                    };
                    size.saturating_mul(length)
                } else {
                    bytes::size_of(types, *ty)?
                }
            }
            other => bytes::size_of(types, other.ty(types))?,
        };
        Ok(Val::int64(size as i64))
    }

    fn apply_type(&mut self, generic: &Val, params: &[Val]) -> Eval<Val> {
        let types = self.types();
        self.count_tables()?;
        let generic = self.type_operand("apply_type", generic)?;
        let mut given = Vec::with_capacity(params.len());
        for param in params {
            given.push(match param {
                Val::Type(ty) => *ty,
                Val::Symbol(name) => types.sym(*name),
                other => match other.as_int64() {
                    Some(n) => types.int(n),
                    None => return Err(self.type_error("apply_type", Type::DATATYPE, other.clone())),
                },
            });
        }
        let ty = match types.kind(generic) {
            TypeKind::Generic(decl) => types.nominal(*decl, &given),
            TypeKind::Tuple { elems, vararg: Some(Type::ANY) } if elems.is_empty() => types.tuple(&given),
            _ if generic == Type::UNION => types.union(&given),
            _ if given.is_empty() => Ok(generic),
            _ => {
                return Err(Fault::Unsupported(format!(
                    "`{}` takes no type parameters",
                    self.type_text(generic)
                ))
                .into());
            }
        };
        self.made(ty).map(Val::Type)
    }

    fn field_type(&mut self, ty: &Val, field: &Val) -> Eval<Val> {
        let ty = self.type_operand("fieldtype", ty)?;
        let index = match field {
            Val::Symbol(name) => self.types().field_index(ty, *name),
            other => other.as_int64().and_then(|n| usize::try_from(n.checked_sub(1)?).ok()),
        };
        match index.and_then(|n| self.types().field_type(ty, n)) {
            Some(found) => Ok(Val::Type(found)),
            None => match field {
                Val::Symbol(_) => Err(self.exception("FieldError", vec![Val::Type(ty), field.clone()])),
                _ => Err(self.bounds_error(Val::Type(ty), field.clone())),
            },
        }
    }

    pub(super) fn undefined_variable(&mut self, name: brolga_ir::Name) -> Stop {
        let Some(ty) = self.find_type("UndefVarError") else {
            return Fault::Unsupported("`UndefVarError` does not exist".to_owned()).into();
        };
        let world = Val::Bits { ty: Type::UINT64, bits: 0 };
        Stop::Throw(Val::aggregate(ty, vec![Some(Val::Symbol(name)), Some(world), None]))
    }

    /// `MethodError(callee, args, 0)`
    pub(super) fn method_error(&mut self, callee: &Val, args: Vec<Val>) -> Stop {
        self.method_error_in(0, callee, args)
    }

    /// The `MethodError` of an ambiguous call.
    pub(super) fn ambiguous_call(&mut self, callee: &Val, args: Vec<Val>) -> Stop {
        self.method_error_in(AMBIGUOUS_WORLD, callee, args)
    }

    fn method_error_in(&mut self, world: u64, callee: &Val, args: Vec<Val>) -> Stop {
        let world = Val::Bits { ty: Type::UINT64, bits: world.into() };
        match self.new_tuple(args) {
            Ok(args) => self.exception("MethodError", vec![callee.clone(), args, world]),
            Err(stop) => stop,
        }
    }

    /// `BoundsError(a, i)`
    pub(super) fn bounds_error(&mut self, a: Val, i: Val) -> Stop {
        let Some(ty) = self.find_type("BoundsError") else {
            return Fault::Unsupported("`BoundsError` does not exist".to_owned()).into();
        };
        match self.new_struct(ty, vec![a, i]) {
            Ok(exception) => Stop::Throw(exception),
            Err(stop) => stop,
        }
    }

    /// The `Pair` that `modify…!` returns.
    pub(super) fn pair(&mut self, of: Type, old: Val, new: Val) -> Eval<Val> {
        let types = self.types();
        let Some(pair) = types.find_builtin(self.name("Pair")) else {
            return Err(Fault::Unsupported("`Pair` does not exist".to_owned()).into());
        };
        let ty = self.made(types.nominal(pair, &[of, of]))?;
        Ok(Val::aggregate(ty, vec![Some(old), Some(new)]))
    }

    /// The named tuple that `replace…!` returns.
    pub(super) fn replaced(&mut self, of: Type, old: Val, success: bool) -> Eval<Val> {
        let types = self.types();
        let tuple = self.made(types.tuple(&[of, Type::BOOL]))?;
        let ty = self.made(types.named_tuple(&[self.name("old"), self.name("success")], tuple))?;
        Ok(Val::aggregate(ty, vec![Some(old), Some(Val::bool(success))]))
    }

    /// The pointee type and the address of a value of type `Ptr{T}`; `None` for other values.
    pub(super) fn pointee_of(&self, val: &Val) -> Option<(Type, u64)> {
        let Val::Bits { ty, bits } = *val else { return None };
        let (found, &[pointee]) = self.types().nominal_parts(ty)? else { return None };
        (found == decl::PTR).then_some((pointee, bits as u64))
    }
}
