//! Outcomes of calls, and their agreement between engines.

use super::leaves::type_of;
use brolga_ir::module::Literal;
use brolga_ir::types::PrimitiveRepr;
use brolga_ir::{Const, Context};
use std::fmt::{self, Write};

/// How a call ended.
#[derive(Clone, PartialEq, Debug)]
pub enum Outcome {
    /// With a value.
    Returned(Literal),
    /// With an exception of this type; `ErrorException` and the like also have a message.
    Threw {
        /// The name of the exception's type.
        kind: String,
        /// The message of an `ErrorException` or `ArgumentError`; other exceptions are compared by their type.
        message: Option<String>,
    },
    /// The engine could not continue, which a well-formed program must never cause.
    Failed(String),
    /// The step limit was reached.
    OutOfFuel,
}

impl Outcome {
    /// Whether the outcomes of two engines agree. NaNs of the same type agree regardless of their bits.
    pub fn agrees(&self, other: &Outcome, cx: &Context) -> bool {
        match (self, other) {
            (Outcome::Returned(a), Outcome::Returned(b)) => same_value(a, b, cx),
            (Outcome::Failed(_), _) | (_, Outcome::Failed(_)) => false,
            _ => self == other,
        }
    }

    /// The outcome as text, with values as bits.
    pub fn display<'a>(&'a self, cx: &'a Context) -> impl fmt::Display + 'a {
        struct Show<'a>(&'a Outcome, &'a Context);
        impl fmt::Display for Show<'_> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self.0 {
                    Outcome::Returned(value) => f.write_str(&show(value, self.1)),
                    Outcome::Threw { kind, message: None } => write!(f, "throws {kind}"),
                    Outcome::Threw { kind, message: Some(message) } => {
                        write!(f, "throws {kind}({message:?})")
                    }
                    Outcome::Failed(why) => write!(f, "cannot go on: {why}"),
                    Outcome::OutOfFuel => f.write_str("runs out of steps"),
                }
            }
        }
        Show(self, cx)
    }
}

/// Equal types and bits; or for floats, both NaN.
fn same_value(a: &Literal, b: &Literal, cx: &Context) -> bool {
    match (a, b) {
        (Literal::Aggregate { ty: s, fields: x }, Literal::Aggregate { ty: t, fields: y }) => {
            s == t && x.len() == y.len() && x.iter().zip(y).all(|(x, y)| same_value(x, y, cx))
        }
        _ => a == b || (type_of(a) == type_of(b) && is_nan(a, cx) && is_nan(b, cx)),
    }
}

fn is_nan(value: &Literal, cx: &Context) -> bool {
    let Literal::Const(Const::Bits { ty, bits }) = value else { return false };
    let infinity = match cx.types.primitive(*ty) {
        Some((16, PrimitiveRepr::Float)) => 0x7c00,
        Some((32, PrimitiveRepr::Float)) => 0x7f80_0000,
        Some((64, PrimitiveRepr::Float)) => 0x7ff0_0000_0000_0000,
        _ => return false,
    };
    // Without the sign, every bit pattern above infinity is a NaN.
    let sign = (infinity << 1) & !infinity & !(infinity - 1);
    bits & !sign > infinity
}

/// A literal as text; for floats also the bits, because engines differ there.
pub fn show(value: &Literal, cx: &Context) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = match value {
        Literal::Const(Const::Bits { ty, bits }) => write!(text, "{}(0x{bits:x})", cx.types.display(*ty)),
        Literal::Const(Const::Singleton(ty)) => write!(text, "{}()", cx.types.display(*ty)),
        Literal::Const(Const::String(name)) => write!(text, "{:?}", cx.names.text(*name)),
        Literal::Const(Const::Symbol(name)) => write!(text, "Symbol({:?})", cx.names.text(*name)),
        Literal::Const(other) => write!(text, "{other:?}"),
        Literal::Aggregate { ty, fields } => {
            let fields: Vec<String> = fields.iter().map(|f| show(f, cx)).collect();
            write!(text, "{}({})", cx.types.display(*ty), fields.join(", "))
        }
        Literal::Array { ty, dims, items } => {
            let items: Vec<String> = items.iter().map(|item| show(item, cx)).collect();
            write!(text, "{}{dims:?}[{}]", cx.types.display(*ty), items.join(", "))
        }
    };
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use brolga_ir::Type;

    #[test]
    fn nans_agree_and_zeros_of_other_sign_do_not() {
        let cx = Context::new();
        let of = |ty, bits| Outcome::Returned(Literal::Const(Const::Bits { ty, bits }));
        let agrees = |ty, a, b| of(ty, a).agrees(&of(ty, b), &cx);
        assert!(agrees(Type::FLOAT16, 0x7e00, 0xfc01));
        assert!(agrees(Type::FLOAT32, 0x7fc0_0000, 0xff80_0001));
        assert!(agrees(Type::FLOAT64, 0x7ff8 << 48, 0xfff0_0000_0000_0001));
        assert!(!agrees(Type::FLOAT64, 0x7ff0 << 48, 0x7ff8 << 48));
        assert!(!agrees(Type::FLOAT32, 0, 1 << 31));
        assert!(!agrees(Type::UINT32, 0x7fc0_0000, 0x7fc0_0001));
        assert!(!Outcome::Failed(String::new()).agrees(&Outcome::Failed(String::new()), &cx));
    }
}
