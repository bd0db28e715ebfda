//! Numbers as objects: intrinsics called as functions, operators, constructors. Their semantics are defined
//! by [`brolga_ir::scalar`].

use std::sync::Arc;

use brolga_ir::Context;
use brolga_ir::intrinsic::{Intrinsic, Shape};
use brolga_ir::scalar::{Converted, Number, Numbers, ScalarError};
use brolga_ir::types::Type;

use crate::heap::{Root, TypeDesc};
use crate::pending::ExceptionKind;

use super::call::{Done, Ops};
use super::place::At;
use super::relations::egal;
use super::throw::Raised;

impl<'f, 'h> Ops<'_, 'f, 'h> {
    /// Objects as numbers of one context; `None` for an object that is not a primitive value.
    fn numbers(&self, args: &[Root<'f, 'h>]) -> (Arc<Context>, Vec<Option<Number>>) {
        let objects = self.objects(args);
        let cx = self.runtime.heap().types().context_of(objects.iter().map(|object| object.desc()));
        let types = self.runtime.heap().types();
        let number = |object| {
            let bits = At::boxed(object)?.bits()?;
            Some(Number { ty: types.type_in(object.desc(), &cx)?, bits })
        };
        let numbers = objects.into_iter().map(number).collect();
        (cx, numbers)
    }

    fn box_number(&mut self, cx: &Arc<Context>, number: Number) -> Done<'f, 'h> {
        self.scope.box_bits(cx, number.ty, number.bits)
    }

    fn scalar_error(&mut self, error: ScalarError) -> Raised {
        match error {
            ScalarError::DivideError => self.scope.raise_kind(ExceptionKind::DivideError),
            ScalarError::Misuse(misuse) => self.unsupported(&misuse.to_string()),
        }
    }

    /// An intrinsic called as a function: a conversion takes its target as first argument.
    pub(crate) fn intrinsic_function(&mut self, op: Intrinsic, args: &[Root<'f, 'h>]) -> Done<'f, 'h> {
        if let Some(refusal) = op.refusal() {
            return Err(self.unsupported(refusal));
        }
        let (target, args) = match args {
            [ty, rest @ ..] if op.takes_type() => (Some(self.type_operand(op.name(), *ty)?), rest),
            _ => (None, args),
        };
        if !op.arity().allows(args.len()) {
            return Err(self.bad_count(op.name(), args.len()));
        }
        if op.shape() == Shape::Query {
            return self.scope.bool(false);
        }
        if !op.is_pure() {
            return Err(self.unsupported(&format!("`{op}` as a function that is known at run time only")));
        }
        let (cx, numbers) = self.numbers(args);
        let Some(numbers) = numbers.into_iter().collect::<Option<Vec<_>>>() else {
            return Err(self.unsupported(&format!("{op} takes primitive values")));
        };
        let result = match (op.shape(), target) {
            (_, Some(target)) => self.runtime.heap().types().type_in(target, &cx),
            (Shape::IntCompare | Shape::FloatCompare, None) => Some(Type::BOOL),
            (_, None) => numbers.first().map(|number| number.ty),
        };
        let outcome = match result {
            Some(result) => Numbers(&cx.types).intrinsic(op, result, &numbers),
            None => Ok(None),
        };
        match outcome {
            Ok(Some((number, None))) => self.box_number(&cx, number),
            Ok(Some((number, Some(wrapped)))) => {
                let parts = [self.box_number(&cx, number)?, self.scope.bool(wrapped)?];
                self.scope.tuple(&parts)
            }
            Ok(None) => Err(self.unsupported(&format!("{op} does not have such a result type"))),
            Err(error) => Err(self.scalar_error(error)),
        }
    }

    /// The value of an operator of Base; `None` if there is no such method.
    pub(crate) fn operator(
        &mut self,
        name: &str,
        args: &[Root<'f, 'h>],
    ) -> Result<Option<Root<'f, 'h>>, Raised> {
        let (cx, numbers) = self.numbers(args);
        if let ("==" | "!=", &[a, b]) = (name, args)
            && !Numbers(&cx.types).are_numbers(&numbers)
        {
            let same = egal(self.object(a), self.object(b));
            return self.scope.bool(same == (name == "==")).map(Some);
        }
        let Some(numbers) = numbers.into_iter().collect::<Option<Vec<_>>>() else { return Ok(None) };
        match Numbers(&cx.types).operator(name, &numbers) {
            Ok(Some(number)) => self.box_number(&cx, number).map(Some),
            Ok(None) => Ok(None),
            Err(error) => Err(self.scalar_error(error)),
        }
    }

    /// `T(x)` on numbers; `None` if there is no such conversion.
    fn convert_number(&mut self, of: &TypeDesc, arg: Root<'f, 'h>) -> Result<Option<Root<'f, 'h>>, Raised> {
        let (_, numbers) = self.numbers(&[arg]);
        let Some(&Some(number)) = numbers.first() else { return Ok(None) };
        // Number types are the same in every context.
        let (cx, ty) = (of.context().clone(), of.ty().unwrap_or(Type::ANY));
        match Numbers(&cx.types).convert(ty, number) {
            Ok(Converted::To(number)) => self.box_number(&cx, number).map(Some),
            Ok(Converted::NoMethod) => Ok(None),
            Ok(Converted::Inexact) => {
                let target = self.scope.add_root(of.object());
                let args = self.scope.tuple(&[target, arg])?;
                let name = self.scope.symbol(of.name());
                Err(self.scope.raise_fields(ExceptionKind::InexactError, &[Some(name), Some(args)]))
            }
            Err(error) => Err(self.scalar_error(error)),
        }
    }

    /// The default constructors: a number converted, or a struct from all its fields.
    pub(crate) fn construct(
        &mut self,
        of: &TypeDesc,
        args: &[Root<'f, 'h>],
    ) -> Result<Option<Root<'f, 'h>>, Raised> {
        let (cx, ty) = (of.context().clone(), of.ty().unwrap_or(Type::ANY));
        if let (&[arg], Some(_)) = (args, cx.types.primitive(ty)) {
            return self.convert_number(of, arg);
        }
        let Some(fields) = cx.types.fields(ty) else { return Ok(None) };
        if !cx.types.is_concrete(ty) || fields.len() != args.len() {
            return Ok(None);
        }
        let mut values = Vec::with_capacity(args.len());
        for (field, &arg) in fields.iter().zip(args) {
            let wanted = self.scope.desc_of(&cx, field.ty)?;
            if self.is_a(self.object(arg), &wanted) {
                values.push(Some(arg));
                continue;
            }
            // The default constructor converts, and only numbers can be converted here.
            match self.convert_number(&wanted, arg)? {
                Some(value) => values.push(Some(value)),
                None => return Ok(None),
            }
        }
        self.scope.new_struct(&cx, ty, &values).map(Some)
    }
}
