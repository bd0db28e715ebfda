//! Calls: methods chosen at compile time and at run time, builtins that call, the functions of Base without a body.
//!
//! The kind of the callee determines the call, in this order:
//!
//! | callee | call |
//! |---|---|
//! | has a method in the module for these arguments | a frame |
//! | the name of a builtin or intrinsic | that operation |
//! | the name of a function of [`BaseFn`] | its action |
//! | the name of an operator on numbers | `generic.rs` |
//! | a type | its constructor: conversion of a number, or the fields in order |
//! | anything else | `MethodError` |
//!
//! An `invoke` names its method by the argument types in the IR. If the module has no method for them, the
//! arguments' own types are tried, and then the rest of the list.

use super::Interp;
use super::error::{Eval, Fault, Stop};
use super::exec::{Flow, Then};
use super::heap::Object;
use super::value::Val;
use brolga_ir::base_fn::{BaseAction, BaseFn};
use brolga_ir::builtin::Builtin;
use brolga_ir::entity::{Callee, FuncId};
use brolga_ir::func::{CalleeData, Func};
use brolga_ir::function_name::bare_name;
use brolga_ir::intrinsic::{Intrinsic, Shape};
use brolga_ir::show::INVOKE_MISFIT;
use brolga_ir::types::{Type, TypeKind};

/// Why an intrinsic called as a value is refused, as in native code.
fn refusal_as_value(op: Intrinsic) -> Option<String> {
    let is_known = op.is_pure() || op.shape() == Shape::Query;
    let by_name_only = (!is_known).then(|| format!("`{op}` as a function that is known at run time only"));
    op.refusal().map(str::to_owned).or(by_name_only)
}

/// The world of the interpreter's program: later worlds are the same, earlier ones lack its methods. In
/// native code the first program of a runtime has this world.
pub(super) const FIRST_WORLD: u64 = 2;

/// Whether a builtin does nothing but choose a call.
pub(super) fn is_chained(builtin: Builtin) -> bool {
    use Builtin::{Applicable, ApplyIterate, Invoke, InvokeInWorld, Invokelatest};
    matches!(builtin, ApplyIterate | Invoke | Invokelatest | InvokeInWorld | Applicable)
}

/// The next step of a builtin that calls a function.
enum Next {
    /// It calls this value.
    Call(Val, Vec<Val>),
    /// It calls this value, without method lookup.
    Base(Val, Vec<Val>),
    /// It calls this method.
    Method(FuncId, Val, Vec<Val>),
    /// It makes no call.
    Value(Val),
}

impl<'m> Interp<'m> {
    /// `invoke`: `args` start with the function object.
    pub(super) fn invoke(&mut self, func: &'m Func, callee: Callee, mut args: Vec<Val>) -> Eval<Flow> {
        let CalleeData::Method { function, args: types, .. } = func.callee(callee) else {
            return Err(Fault::Unsupported("an invoke of a symbol in high IR".to_owned()).into());
        };
        if args.is_empty() {
            return Err(Fault::OperandCount { op: "invoke".to_owned(), given: 0 }.into());
        }
        let key = (self.frame()?.id, callee);
        if let Some(&id) = self.invokes.get(&key) {
            return self.push_call(id, args, Then::Assign);
        }
        if let Some(id) = self.module.find_method(*function, types) {
            self.invokes.insert(key, id);
            return self.push_call(id, args, Then::Assign);
        }
        let object = args.remove(0);
        self.apply(object, args, Then::Assign)
    }

    /// Calls a value.
    pub(super) fn apply(&mut self, callee: Val, args: Vec<Val>, then: Then) -> Eval<Flow> {
        match self.method_of(&callee, &args)? {
            Some(id) => self.push_method(id, callee, args, then),
            None => self.apply_base(callee, args, then),
        }
    }

    /// The program's method that a call reaches, if any.
    fn method_of(&mut self, callee: &Val, args: &[Val]) -> Eval<Option<FuncId>> {
        let types = self.types();
        let key = callee.ty(types);
        let given: Vec<Type> = args.iter().map(|v| v.ty(types)).collect();
        let found = self.visible_method(key, &given);
        if found.is_none() && !self.is_before_program && self.module.is_ambiguous(key, &given) {
            return Err(self.ambiguous_call(callee, args.to_vec()));
        }
        Ok(found)
    }

    fn push_method(&mut self, id: FuncId, callee: Val, args: Vec<Val>, then: Then) -> Eval<Flow> {
        let mut all = Vec::with_capacity(args.len() + 1);
        all.push(callee);
        all.extend(args);
        self.push_call(id, all, then)
    }

    /// The method that a dynamic call reaches.
    fn visible_method(&self, function: Type, args: &[Type]) -> Option<FuncId> {
        if self.is_before_program { None } else { self.module.find_method(function, args) }
    }

    /// Performs a call without an applicable method.
    fn apply_base(&mut self, callee: Val, args: Vec<Val>, then: Then) -> Eval<Flow> {
        let types = self.types();
        let key = callee.ty(types);
        match *types.kind(key) {
            TypeKind::Function(name) => {
                let text = self.module.cx.names.text(name.name);
                let bare = bare_name(text);
                if let Some(builtin) = Builtin::from_name(bare) {
                    return self.builtin(builtin, args, then);
                }
                if let Some(intrinsic) = Intrinsic::from_name(bare) {
                    return self.intrinsic_function(intrinsic, args, then);
                }
                if let Some(function) = BaseFn::from_name(text) {
                    return self.base_fn(function, args, then);
                }
                match self.generic(bare, &args)? {
                    Some(val) => self.returned(val, then),
                    None => Err(self.method_error(&callee, args)),
                }
            }
            TypeKind::TypeOf(of) => match self.construct(of, &args)? {
                Some(val) => self.returned(val, then),
                None => Err(self.method_error(&callee, args)),
            },
            _ => Err(self.method_error(&callee, args)),
        }
    }

    /// An intrinsic called as a function: a conversion takes its target as first argument.
    fn intrinsic_function(&mut self, op: Intrinsic, mut args: Vec<Val>, then: Then) -> Eval<Flow> {
        if op.shape() == Shape::AtomicModify && !matches!(then, Then::Assign) {
            return Err(Fault::Unsupported(format!("`{op}` as the function of another")).into());
        }
        let mut target = None;
        if op.takes_type() && !args.is_empty() {
            let ty = args.remove(0);
            target = Some(self.type_operand(op.name(), &ty)?);
        }
        if self.options.checked
            && let Some(why) = refusal_as_value(op)
        {
            return Err(self.message("ErrorException", &why));
        }
        match self.intrinsic(op, target, args)? {
            Flow::Value(val) => self.returned(val, then),
            other => Ok(other),
        }
    }

    /// The default constructors: a number converted, or a struct from all its fields.
    pub(super) fn construct(&mut self, ty: Type, args: &[Val]) -> Eval<Option<Val>> {
        let types = self.types();
        if let ([arg], Some(_)) = (args, types.primitive(ty)) {
            return self.convert_number(ty, arg);
        }
        let Some(fields) = types.fields(ty) else { return Ok(None) };
        if !types.is_concrete(ty) || fields.len() != args.len() {
            return Ok(None);
        }
        let mut vals = Vec::with_capacity(args.len());
        for (field, arg) in fields.iter().zip(args) {
            if self.is_a(arg, field.ty) {
                vals.push(arg.clone());
                continue;
            }
            // The default constructor converts, and only numbers can be converted here.
            match self.convert_number(field.ty, arg)? {
                Some(val) => vals.push(val),
                None => return Ok(None),
            }
        }
        self.new_struct(ty, vals).map(Some)
    }

    /// The builtins that call a function.
    pub(super) fn calling_builtin(&mut self, builtin: Builtin, args: Vec<Val>, then: Then) -> Eval<Flow> {
        let outside = self.is_before_program;
        let flow = self.chain(builtin, args, then);
        self.is_before_program = outside;
        flow
    }

    /// Makes the calls of a chain of such builtins, without using stack. The chain may be endless: an array
    /// may contain itself and be splatted.
    ///
    /// A world before the program has none of its methods, so no frame runs in it: it ends with the look-up
    /// of the last call.
    fn chain(&mut self, mut builtin: Builtin, mut args: Vec<Val>, then: Then) -> Eval<Flow> {
        loop {
            let (callee, rest, looks) = match self.next_call(builtin, args)? {
                Next::Call(callee, rest) => (callee, rest, true),
                Next::Base(callee, rest) => (callee, rest, false),
                Next::Method(id, callee, rest) => return self.push_method(id, callee, rest, then),
                Next::Value(val) => return self.returned(val, then),
            };
            if looks && let Some(id) = self.method_of(&callee, &rest)? {
                return self.push_method(id, callee, rest, then);
            }
            match self.builtin_of(&callee) {
                Some(next)
                    if is_chained(next) && next.refusal().is_none() && next.arity().allows(rest.len()) =>
                {
                    self.spend()?;
                    (builtin, args) = (next, rest);
                }
                _ => return self.apply_base(callee, rest, then),
            }
        }
    }

    /// The builtin named by a function.
    fn builtin_of(&self, callee: &Val) -> Option<Builtin> {
        match *self.types().kind(callee.ty(self.types())) {
            TypeKind::Function(name) => Builtin::from_name(bare_name(self.module.cx.names.text(name.name))),
            _ => None,
        }
    }

    /// The call that a builtin makes.
    fn next_call(&mut self, builtin: Builtin, mut args: Vec<Val>) -> Eval<Next> {
        match builtin {
            Builtin::Invokelatest => {
                self.is_before_program = false;
                let callee = args.remove(0);
                Ok(Next::Call(callee, args))
            }
            Builtin::InvokeInWorld => {
                // A world is a `UInt64`, or a non-negative `Int64`.
                let world = match &args[0] {
                    Val::Bits { ty: Type::UINT64, bits } => u64::try_from(*bits).ok(),
                    other => other.as_int64().and_then(|world| u64::try_from(world).ok()),
                };
                let Some(world) = world else {
                    return Err(self.type_error(builtin.name(), Type::UINT64, args[0].clone()));
                };
                self.is_before_program = world < FIRST_WORLD;
                let callee = args.remove(1);
                Ok(Next::Call(callee, args.split_off(1)))
            }
            Builtin::Invoke => {
                let rest = args.split_off(2);
                let (callee, signature) = (args[0].clone(), args[1].clone());
                let signature = self.invoke_signature(&signature, &rest)?;
                let declared = self.types().tuple_elements(signature);
                let found = declared.and_then(|types| self.visible_method(callee.ty(self.types()), types));
                Ok(match found {
                    Some(id) => Next::Method(id, callee, rest),
                    // Base has methods without a body in any text.
                    None => Next::Base(callee, rest),
                })
            }
            Builtin::Applicable => {
                let callee = args.remove(0);
                let types = self.types();
                let given: Vec<Type> = args.iter().map(|v| v.ty(types)).collect();
                Ok(Next::Value(Val::bool(self.visible_method(callee.ty(types), &given).is_some())))
            }
            _ => {
                // `_apply_iterate(iterate, f, containers...)`
                let containers = args.split_off(2);
                let callee = args.remove(1);
                let mut all = Vec::new();
                for container in containers {
                    self.collect(&container, &mut all)?;
                }
                Ok(Next::Call(callee, all))
            }
        }
    }

    /// The tuple type passed to `invoke`, which the arguments must match.
    fn invoke_signature(&mut self, signature: &Val, args: &[Val]) -> Eval<Type> {
        let types = self.types();
        let ty = self.type_operand("invoke", signature)?;
        if !matches!(types.kind(ty), TypeKind::Tuple { .. }) {
            let expected = types.types_of_tuples();
            let expected = self.made(expected)?;
            return Err(self.type_error("invoke", expected, signature.clone()));
        }
        let given: Vec<Type> = args.iter().map(|arg| arg.ty(types)).collect();
        let given = types.tuple(&given);
        if types.is_subtype(self.made(given)?, ty) {
            return Ok(ty);
        }
        let args = self.new_tuple(args.to_vec())?;
        Err(self.type_error(INVOKE_MISFIT, ty, args))
    }

    /// The elements produced by iterating over a container.
    fn collect(&mut self, container: &Val, into: &mut Vec<Val>) -> Eval<()> {
        if let Some(elements) = self.tuple_elements(container) {
            into.extend(elements);
            return Ok(());
        }
        if let &Val::Object { id, .. } = container {
            let range = match self.heap.get(id) {
                Some(Object::Array(array)) => Some((array.memory, array.offset, array.length())),
                Some(Object::Memory(memory)) => Some((id, 0, memory.length)),
                _ => None,
            };
            if let Some((memory, offset, length)) = range {
                self.reserve(length)?;
                for n in 0..length as i64 {
                    match self.element(memory, offset.wrapping_add(n))? {
                        Some(val) => into.push(val),
                        None => return Err(self.exception("UndefRefError", Vec::new())),
                    }
                }
                return Ok(());
            }
        }
        let ty = self.type_text(container.ty(self.types()));
        Err(Fault::Unsupported(format!("iterating over a `{ty}`: only tuples and arrays are known")).into())
    }

    // ----- functions of Base without a body -----

    fn base_fn(&mut self, function: BaseFn, args: Vec<Val>, then: Then) -> Eval<Flow> {
        if !function.arity().allows(args.len()) {
            let callee = Val::Singleton(self.types().base_function(function.name()));
            return Err(self.method_error(&callee, args));
        }
        match function.action() {
            BaseAction::Rethrow => Err(self.rethrown(args.first())),
            BaseAction::Print { .. } if args.first().is_some_and(|io| self.is_io(io)) => {
                let callee = Val::Singleton(self.types().function(self.name(function.name())));
                Err(self.method_error(&callee, args))
            }
            BaseAction::Print { newline } => {
                for arg in &args {
                    let bytes = self.print_bytes(arg)?;
                    self.output.write(&bytes);
                }
                if newline {
                    self.output.write(b"\n");
                }
                self.returned(Val::NOTHING, then)
            }
            BaseAction::Text | BaseAction::Shown
                if args.iter().any(|arg| self.types().has_own_text(arg.ty(self.types()))) =>
            {
                let callee = Val::Singleton(self.types().function(self.name(function.name())));
                Err(self.method_error(&callee, args))
            }
            BaseAction::Text => {
                let mut bytes = Vec::new();
                for arg in &args {
                    bytes.extend(self.print_bytes(arg)?);
                }
                let text = self.new_string(bytes)?;
                self.returned(text, then)
            }
            BaseAction::Shown => {
                let bytes = self.shown_bytes(&args[0])?;
                let text = self.new_string(bytes)?;
                self.returned(text, then)
            }
            BaseAction::Throw(_) => Err(self.base_exception(function, &args)?),
        }
    }

    /// Rethrows an exception, or the one being handled.
    pub(super) fn rethrown(&mut self, exception: Option<&Val>) -> Stop {
        match exception.or(self.exceptions.last()) {
            Some(exception) => Stop::Throw(exception.clone()),
            None => self.message("ErrorException", "rethrow() not allowed outside a catch block"),
        }
    }

    /// Whether a value is a stream to print to.
    fn is_io(&self, val: &Val) -> bool {
        self.find_type("IO").is_some_and(|io| self.is_a(val, io))
    }

    /// The exception that a throwing function of the table makes from its arguments.
    pub(super) fn base_exception(&mut self, function: BaseFn, args: &[Val]) -> Eval<Stop> {
        let name = match function.action() {
            BaseAction::Throw(name) => name,
            _ => "ErrorException",
        };
        Ok(match (function, args) {
            (BaseFn::ThrowBoundserror, [array, index @ ..]) => match index {
                [index] => self.bounds_error(array.clone(), index.clone()),
                _ => match self.find_type(name) {
                    Some(ty) => Stop::Throw(self.new_struct(ty, vec![array.clone()])?),
                    None => self.exception(name, Vec::new()),
                },
            },
            (BaseFn::ThrowInexacterror, [func, ..]) if !matches!(func, Val::Symbol(_)) => {
                self.type_error("InexactError", Type::SYMBOL, func.clone())
            }
            (BaseFn::ThrowInexacterror, [func, ty, val]) => {
                let rest = self.new_tuple(vec![ty.clone(), val.clone()])?;
                self.exception(name, vec![func.clone(), rest])
            }
            (function, args) if function.throws_numbers() => {
                let (symbol, numbers) = args.split_at(usize::from(function.takes_symbol()).min(args.len()));
                let symbol = symbol.first().map(|symbol| self.printed(symbol)).transpose()?;
                let texts = numbers.iter().map(|x| self.printed(x)).collect::<Eval<Vec<String>>>()?;
                let first = numbers.first().cloned().unwrap_or(Val::NOTHING);
                let ty = self.type_text(first.type_of(self.types()));
                let text = function.thrown_text(&symbol.unwrap_or_default(), &texts, &ty);
                match (name, text.unwrap_or_default()) {
                    ("DomainError", text) => self.domain_error(&first, &text)?,
                    (_, text) => self.message(name, &text),
                }
            }
            _ => {
                let mut text = Vec::new();
                for arg in args {
                    text.extend(self.print_bytes(arg)?);
                }
                let text = self.new_string(text)?;
                self.exception(name, vec![text])
            }
        })
    }

    fn domain_error(&mut self, val: &Val, text: &str) -> Eval<Stop> {
        let text = self.new_string(text.as_bytes().to_vec())?;
        Ok(self.exception("DomainError", vec![val.clone(), text]))
    }

    fn printed(&mut self, val: &Val) -> Eval<String> {
        Ok(String::from_utf8_lossy(&self.print_bytes(val)?).into_owned())
    }
}
