//! Operators of Base on numbers, reached by dispatch on boxed values, and conversion between numbers.
//! [`brolga_ir::scalar`] defines their results.

use super::Interp;
use super::error::{Eval, Fault, Stop};
use super::value::Val;
use brolga_ir::scalar::{Converted, Number, Numbers, ScalarError};
use brolga_ir::types::Type;

/// A value of a primitive type.
pub(super) fn number(val: &Val) -> Option<Number> {
    let Val::Bits { ty, bits } = *val else { return None };
    Some(Number { ty, bits })
}

fn val(Number { ty, bits }: Number) -> Val {
    Val::Bits { ty, bits }
}

impl Interp<'_> {
    /// The value of an operator on numbers; `None` if there is no such method.
    pub(super) fn generic(&mut self, name: &str, args: &[Val]) -> Eval<Option<Val>> {
        let numbers = Numbers(self.types());
        match (name, args) {
            ("==" | "!=", [a, b]) if !numbers.are_numbers(&[number(a), number(b)]) => {
                return self.egal(a, b).map(|same| Some(Val::bool(same == (name == "=="))));
            }
            _ => {}
        }
        let Some(args) = args.iter().map(number).collect::<Option<Vec<_>>>() else { return Ok(None) };
        match numbers.operator(name, &args) {
            Ok(result) => Ok(result.map(val)),
            Err(error) => Err(self.scalar_error(error)),
        }
    }

    pub(super) fn scalar_error(&self, error: ScalarError) -> Stop {
        match error {
            ScalarError::DivideError => self.exception("DivideError", Vec::new()),
            ScalarError::Misuse(misuse) => Fault::Scalar(misuse).into(),
        }
    }

    /// `T(x)` on numbers: the conversion must be exact unless the target is a float. `None` if `x` is not a
    /// number or `T` not a type that numbers convert to.
    pub(super) fn convert_number(&mut self, ty: Type, from: &Val) -> Eval<Option<Val>> {
        let Some(given) = number(from) else { return Ok(None) };
        match Numbers(self.types()).convert(ty, given) {
            Ok(Converted::To(number)) => Ok(Some(val(number))),
            Ok(Converted::NoMethod) => Ok(None),
            Ok(Converted::Inexact) => {
                let (name, args) = (self.type_text(ty), vec![Val::Type(ty), from.clone()]);
                let args = self.new_tuple(args)?;
                Err(self.exception("InexactError", vec![Val::Symbol(self.name(&name)), args]))
            }
            Err(error) => Err(self.scalar_error(error)),
        }
    }
}
