//! A table of the functions of Base and Core that printed IR calls and that have no body in text.
//!
//! Julia compiles the cold end of a check into a call such as `invoke Base.throw_boundserror(a, i)::Union{}`. Dumps have
//! the call but not the callee. Interpreter and lowering both take the action of such a callee from this table, so they agree:
//!
//! ```text
//! row      ThrowBoundserror  Base.throw_boundserror  1 to 2 operands  throws BoundsError(operands…)
//!          variant           module and name         arity            what it does
//! ```
//!
//! **Names.** A function is found by its last name ([`BaseFn::from_name`]) in any module: a module sees the exports of Base unless
//! it has its own method. So callers use the table only after [`Module::find_method`](crate::Module::find_method) found none. A
//! call of `Base.error` does not find a method of `Main.error`: they are two functions.
//!
//! Not done: functions with a body worth compiling. They belong in IR text.

use crate::intrinsic::Arity;
use crate::types::Type;
use std::fmt;

/// The action of a function of the table.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum BaseAction {
    /// Throws an exception of this type, made from the operands.
    Throw(&'static str),
    /// Throws the current exception again, or its operand in its place.
    Rethrow,
    /// Returns the operands' texts, concatenated, as a string. Structs declared by the program are not
    /// covered: they may have printing methods that the program lacks.
    Text,
    /// Returns the operand's text as source code (`"a"`, `:b`), as a string; like [`BaseAction::Text`], not
    /// for structs that the program declares.
    Shown,
    /// Writes the operands' texts in order and returns `nothing`.
    Print {
        /// Whether a line end follows.
        newline: bool,
    },
}

struct Row {
    module: &'static str,
    name: &'static str,
    arity: Arity,
    action: BaseAction,
}

macro_rules! base_fns {
    ($($(#[$doc:meta])* $variant:ident $module:literal $name:literal $arity:expr, $action:expr;)*) => {
        /// A function of Base or Core without a body; `Display` prints its name with its module.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum BaseFn { $($(#[$doc])* $variant,)* }

        const ROWS: &[Row] =
            &[$(Row { module: $module, name: $name, arity: $arity, action: $action }),*];

        impl BaseFn {
            /// Every function, in the order of the table.
            pub const ALL: &[BaseFn] = &[$(BaseFn::$variant),*];
        }
    };
}

use BaseAction::{Print, Rethrow, Shown, Text, Throw};

base_fns! {
    /// `(array, index)`, the index being an integer or a tuple of them.
    ThrowBoundserror "Base" "throw_boundserror" Arity::between(1, 2), Throw("BoundsError");
    /// The operands' texts, concatenated, are the message.
    Error "Base" "error" Arity::at_least(1), Throw("ErrorException");
    /// Rethrows the exception being handled, or the operand if there is one.
    Rethrow "Base" "rethrow" Arity::between(0, 1), Rethrow;
    /// `(conversion::Symbol, target type, value)`.
    ThrowInexacterror "Core" "throw_inexacterror" Arity::exactly(3), Throw("InexactError");
    /// `(operator::Symbol, left, right)`.
    ThrowOverflowerrBinaryop "Base.Checked" "throw_overflowerr_binaryop" Arity::exactly(3), Throw("OverflowError");
    /// `(operand)`.
    ThrowOverflowerrNegation "Base.Checked" "throw_overflowerr_negation" Arity::exactly(1), Throw("OverflowError");
    /// `(function::Symbol, argument)`.
    ThrowComplexDomainerror "Base.Math" "throw_complex_domainerror" Arity::exactly(2), Throw("DomainError");
    /// `(function::Symbol, argument)`; the same for arguments below -1.
    ThrowComplexDomainerrorNeg1 "Base.Math" "throw_complex_domainerror_neg1" Arity::exactly(2), Throw("DomainError");
    /// `(argument)`: a negative number raised to a non-integer power.
    ThrowExpDomainerror "Base.Math" "throw_exp_domainerror" Arity::exactly(1), Throw("DomainError");
    /// `(base, exponent)`: an integer raised to a negative power.
    ThrowDomerrPowbysq "Base" "throw_domerr_powbysq" Arity::exactly(2), Throw("DomainError");
    ThrowArgerror "Base" "_throw_argerror" Arity::exactly(1), Throw("ArgumentError");
    /// The text of the operands as a string.
    String "Base" "string" Arity::at_least(0), Text;
    /// The text of the operands.
    Print "Base" "print" Arity::at_least(0), Print { newline: false };
    /// The text of the operands and a line end.
    Println "Base" "println" Arity::at_least(0), Print { newline: true };
    /// The operand's text as source code, as a string.
    Repr "Base" "repr" Arity::exactly(1), Shown;
}

impl BaseFn {
    fn row(self) -> &'static Row {
        &ROWS[self as usize]
    }

    /// The function with this name, bare (`error`) or with its modules (`Base.error`).
    pub fn from_name(name: &str) -> Option<BaseFn> {
        let (module, bare) = name.rsplit_once('.').unwrap_or(("", name));
        BaseFn::ALL.iter().copied().find(|f| f.name() == bare && (module.is_empty() || module == f.module()))
    }

    /// The name without modules.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// The module, with its parents: `Base.Math`.
    pub fn module(self) -> &'static str {
        self.row().module
    }

    /// The number of operands, the function object not counted.
    pub fn arity(self) -> Arity {
        self.row().arity
    }

    pub fn action(self) -> BaseAction {
        self.row().action
    }

    /// Whether the function makes an exception from numbers, optionally preceded by a symbol.
    pub fn throws_numbers(self) -> bool {
        self == BaseFn::ThrowInexacterror || self.thrown_text("", &[], "").is_some()
    }

    /// Whether the first operand is a symbol: the operator or function that is at fault.
    pub fn takes_symbol(self) -> bool {
        matches!(
            self,
            BaseFn::ThrowInexacterror
                | BaseFn::ThrowOverflowerrBinaryop
                | BaseFn::ThrowComplexDomainerror
                | BaseFn::ThrowComplexDomainerrorNeg1
        )
    }

    /// The message of an exception about numbers, made from the texts of the symbol and of the numbers, and
    /// from the first number's type. `None` for other functions.
    pub fn thrown_text(self, symbol: &str, operands: &[String], ty: &str) -> Option<String> {
        let operand = |n: usize| operands.get(n).map_or("", String::as_str);
        let (x, y) = (operand(0), operand(1));
        let complex = |argument: &str| {
            format!(
                "{symbol} was called with a {argument} but will only return a complex result if called with a \
                 complex argument. Try {symbol}(Complex(x))."
            )
        };
        Some(match self {
            BaseFn::ThrowOverflowerrBinaryop => format!("{x} {symbol} {y} overflowed for type {ty}"),
            BaseFn::ThrowOverflowerrNegation => {
                format!("checked arithmetic: cannot compute -x for x = {x}::{ty}")
            }
            BaseFn::ThrowComplexDomainerror => complex("negative real argument"),
            BaseFn::ThrowComplexDomainerrorNeg1 => complex("real argument < -1"),
            BaseFn::ThrowExpDomainerror => "Exponentiation yielding a complex result requires a complex \
                                            argument.\nReplace x^y with (x+0im)^y, Complex(x)^y, or similar."
                .to_owned(),
            BaseFn::ThrowDomerrPowbysq => format!("Cannot raise an integer x to a negative power {y}."),
            _ => return None,
        })
    }

    /// Whether the call returns. The others throw.
    pub fn returns(self) -> bool {
        matches!(self.action(), BaseAction::Print { .. } | BaseAction::Text | BaseAction::Shown)
    }
}

/// The types of the numbers that a throw carries without objects.
const CARRIED: [Type; 15] = [
    Type::BOOL,
    Type::CHAR,
    Type::INT8,
    Type::INT16,
    Type::INT32,
    Type::INT64,
    Type::INT128,
    Type::UINT8,
    Type::UINT16,
    Type::UINT32,
    Type::UINT64,
    Type::UINT128,
    Type::FLOAT16,
    Type::FLOAT32,
    Type::FLOAT64,
];

/// A throw whose operands are numbers, as compiled code passes it without objects: the exception object is made on
/// demand. The symbol and the bits of the numbers are separate operands.
///
/// ```text
/// throw_overflowerr_binaryop(:+, x, y)      function, types of x and y         :+, bits of x, bits of y
/// throw_inexacterror(:trunc, Int8, x)       function, Int8 and the type of x   :trunc, nothing, bits of x
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Thrown {
    /// The function that throws.
    pub function: BaseFn,
    /// The types of the numbers; the target type in place of the first one's for an `InexactError`.
    pub types: [Option<Type>; 2],
}

impl Thrown {
    /// Packs into a number: function, then types, eight bits each. `None` if a type cannot be carried.
    pub fn pack(self) -> Option<u32> {
        let mut code = self.function as u32;
        for (n, ty) in self.types.into_iter().enumerate() {
            let number = match ty {
                None => 0,
                Some(ty) => 1 + CARRIED.iter().position(|&known| known == ty)? as u32,
            };
            code |= number << (8 * (n + 1));
        }
        Some(code)
    }

    /// The inverse of [`Thrown::pack`]; `None` if the number is not a packed throw.
    pub fn unpack(code: u32) -> Option<Thrown> {
        let [function, first, second, 0] = code.to_le_bytes() else { return None };
        let function = BaseFn::ALL.get(usize::from(function)).copied()?;
        let ty = |number: u8| match number {
            0 => Some(None),
            n => CARRIED.get(usize::from(n) - 1).copied().map(Some),
        };
        Some(Thrown { function, types: [ty(first)?, ty(second)?] })
    }
}

impl fmt::Display for BaseFn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.module(), self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Context;

    #[test]
    fn throws_survive_their_numbers() {
        for &function in BaseFn::ALL {
            for types in [[None, None], [Some(Type::INT128), None], [Some(Type::BOOL), Some(Type::FLOAT64)]] {
                let thrown = Thrown { function, types };
                assert_eq!(thrown.pack().and_then(Thrown::unpack), Some(thrown));
            }
        }
        assert_eq!(Thrown { function: BaseFn::Error, types: [Some(Type::ANY), None] }.pack(), None);
        for code in [u32::MAX, 0xff, 0xff00, 0xff_0000, 1 << 24] {
            assert_eq!(Thrown::unpack(code), None, "{code:#x}");
        }
    }

    #[test]
    fn names_find_their_function_with_and_without_module() {
        for &f in BaseFn::ALL {
            assert_eq!(BaseFn::from_name(f.name()), Some(f));
            assert_eq!(BaseFn::from_name(&f.to_string()), Some(f));
        }
        assert_eq!(BaseFn::from_name("Core.error"), None);
        assert_eq!(BaseFn::from_name("sin"), None);
    }

    #[test]
    fn thrown_types_are_builtin_exceptions() {
        let cx = Context::new();
        for &f in BaseFn::ALL {
            if let BaseAction::Throw(name) = f.action() {
                let decl = cx.types.find_decl(cx.names.intern(name)).unwrap();
                let ty = cx.types.nominal(decl, &[]).unwrap();
                assert!(cx.types.is_exception(ty), "{name}");
                assert!(!f.returns());
            }
        }
    }
}
