//! The functions of Base and Core that printed IR calls and no text gives a body for, as one table.
//!
//! Julia compiles the cold end of a check into a call such as `invoke Base.throw_boundserror(a, i)::Union{}`. Dumps carry
//! the call but not the callee. Interpreter and lowering both ask this table what such a callee does, so that they agree:
//!
//! ```text
//! row      ThrowBoundserror  Base.throw_boundserror  1 to 2 operands  throws BoundsError(operands…)
//!          variant           module and name         arity            what it does
//! ```
//!
//! **Names.** A function is found by its last name alone ([`BaseFn::from_name`]), because its type `typeof(error)` holds no
//! module. A method that the module defines itself comes first: callers ask here only after
//! [`Module::find_method`](crate::Module::find_method) found none.
//!
//! Not done: functions with a body worth compiling. They belong into IR text.

use crate::intrinsic::Arity;
use std::fmt;

/// What a function of the table does.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum BaseAction {
    /// Throws an exception of this type, made from the operands.
    Throw(&'static str),
    /// Throws the current exception again, or its operand in its place.
    Rethrow,
    /// Writes the operands as text, one after the other, and returns `nothing`.
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
        /// A function of Base or Core without a body; `Display` gives its name with its module.
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

use BaseAction::{Print, Rethrow, Throw};

base_fns! {
    /// `(array, index)`, the index being an integer or a tuple of them.
    ThrowBoundserror "Base" "throw_boundserror" Arity::between(1, 2), Throw("BoundsError");
    /// The operands printed one after the other are the message.
    Error "Base" "error" Arity::at_least(1), Throw("ErrorException");
    /// Without operand the exception that is being handled, with one that.
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
    /// `(argument)`: a negative number raised to a power that is no integer.
    ThrowExpDomainerror "Base.Math" "throw_exp_domainerror" Arity::exactly(1), Throw("DomainError");
    /// `(base, exponent)`: an integer raised to a negative power.
    ThrowDomerrPowbysq "Base" "throw_domerr_powbysq" Arity::exactly(2), Throw("DomainError");
    /// The operand is the message.
    ThrowArgerror "Base" "_throw_argerror" Arity::exactly(1), Throw("ArgumentError");
    /// The text of the operands.
    Print "Base" "print" Arity::at_least(0), Print { newline: false };
    /// The text of the operands and a line end.
    Println "Base" "println" Arity::at_least(0), Print { newline: true };
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

    /// What it does.
    pub fn action(self) -> BaseAction {
        self.row().action
    }

    /// Whether the call comes back. The others throw.
    pub fn returns(self) -> bool {
        matches!(self.action(), BaseAction::Print { .. })
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
