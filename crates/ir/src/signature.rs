//! Signatures of functions, and their linker symbols.
//!
//! ```text
//!  signature  f(x::Int64, y::T)::T where {T <: Real}        symbol  f(Int64, T) where {T <: Real}
//! ```

use std::fmt::Write as _;

use crate::context::Context;
use crate::names::Name;
use crate::types::{Pattern, StaticBound, Statics, Type, TypeKind};

/// The parameters and results of a function.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Signature {
    pub params: Vec<Param>,
    /// The results: one type in a high function, any number of low types in a low one.
    pub results: Vec<Type>,
    /// Whether the last argument collects all remaining ones in a tuple.
    pub vararg: bool,
    /// The variables of its `where`.
    pub statics: Statics,
}

impl Signature {
    /// The patterns of a signature with open variables.
    pub fn pattern(&self) -> Option<Pattern<'_>> {
        let pattern = Pattern { statics: &self.statics, vararg: self.vararg };
        self.statics.is_open().then_some(pattern)
    }
}

/// An argument of a function.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Param {
    /// Its name, if it has one.
    pub name: Option<Name>,
    /// Its type; for a collecting argument the tuple type.
    pub ty: Type,
}

/// The linker symbol of a high function with this signature. Methods that differ only in their variables have
/// different symbols.
pub fn func_symbol(cx: &Context, sig: &Signature) -> String {
    let Some((function, args)) = sig.params.split_first() else { return String::new() };
    if !sig.statics.is_open() {
        return symbol(cx, function.ty, args.iter().map(|arg| arg.ty), &[]);
    }
    let statics = &sig.statics;
    let names: Vec<Name> = statics.params.iter().map(|param| param.name).collect();
    let patterns = statics.patterns.get(1..).unwrap_or_default();
    let text = symbol(cx, function.ty, patterns.iter().copied(), &names);
    text + &StaticsText { cx, statics, is_symbol: true }.to_string()
}

/// The ` where {…}` of a signature.
pub(crate) struct StaticsText<'a> {
    pub(crate) cx: &'a Context,
    pub(crate) statics: &'a Statics,
    /// Whether it is a part of a symbol.
    pub(crate) is_symbol: bool,
}

impl std::fmt::Display for StaticsText<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<Name> = self.statics.params.iter().map(|param| param.name).collect();
        let shown = |ty| {
            let shown = self.cx.types.display_with(ty, &names);
            if self.is_symbol { shown.unique() } else { shown }
        };
        f.write_str(" where {")?;
        for (n, param) in self.statics.params.iter().enumerate() {
            f.write_str(if n > 0 { ", " } else { "" })?;
            if let StaticBound::Open { lower, .. } = param.bound
                && lower != Type::BOTTOM
            {
                write!(f, "{} <: ", shown(lower))?;
            }
            crate::ident::write_name(f, self.cx.names.text(param.name))?;
            match param.bound {
                StaticBound::Open { lower, upper } if upper != Type::ANY || lower != Type::BOTTOM => {
                    write!(f, " <: {}", shown(upper))?;
                }
                StaticBound::Open { .. } => {}
                StaticBound::Value(ty) => write!(f, " = {}", shown(ty))?,
                StaticBound::Undefined => f.write_str(" = #undef")?,
            }
        }
        f.write_str("}")
    }
}

/// The linker symbol of the method of `function` for these argument types.
pub fn method_symbol(cx: &Context, function: Type, args: &[Type]) -> String {
    symbol(cx, function, args.iter().copied(), &[])
}

fn symbol(cx: &Context, function: Type, args: impl Iterator<Item = Type>, variables: &[Name]) -> String {
    let mut text = String::new();
    let written = match cx.types.kind(function) {
        TypeKind::Function(name) => write!(text, "{}", name.display(&cx.names)),
        _ => write!(text, "(::{})", cx.types.display(function).unique()),
    };
    // Writing to a string cannot fail.
    let _ = written;
    text.push('(');
    for (i, arg) in args.enumerate() {
        text.push_str(if i > 0 { ", " } else { "" });
        let _ = write!(text, "{}", cx.types.display_with(arg, variables).unique());
    }
    text.push(')');
    text
}
