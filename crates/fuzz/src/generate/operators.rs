//! Methods of operators, which are called through dispatch at run time by the types of their operands.
//!
//! ```text
//! function Base.:+(x::Int64, y::Int64)::Int64        as in the library, or with another sum
//! function Base.:+(x::Float64, y::Int64)::Float64
//! function Base.:+(x::Own, y::Int64)::Own            struct Own; v::Int64; end
//! ```
//!
//! The optimiser tests operands for the types of such methods and calls the matching one, so each method adds
//! a test that can fail to the code of a call. A module has methods for some operators only: the others
//! follow the rules of Base for numbers. A method that deviates from these rules shows whether every path to
//! an operator considers methods first.

use crate::rng::Rng;
use brolga_ir::build::{BuildError, Builder};
use brolga_ir::intrinsic::Intrinsic;
use brolga_ir::types::{DeclKind, FieldDecl};
use brolga_ir::{Context, Func, Module, Type, Value};

/// An operator with its intrinsics on integers and on floats.
struct Operator {
    name: &'static str,
    int: Intrinsic,
    float: Option<Intrinsic>,
}

const fn operator(name: &'static str, int: Intrinsic, float: Option<Intrinsic>) -> Operator {
    Operator { name, int, float }
}

const OPERATORS: [Operator; 10] = [
    operator("+", Intrinsic::AddInt, Some(Intrinsic::AddFloat)),
    operator("-", Intrinsic::SubInt, Some(Intrinsic::SubFloat)),
    operator("*", Intrinsic::MulInt, Some(Intrinsic::MulFloat)),
    operator("<", Intrinsic::SltInt, Some(Intrinsic::LtFloat)),
    operator("<=", Intrinsic::SleInt, Some(Intrinsic::LeFloat)),
    operator("==", Intrinsic::EqInt, Some(Intrinsic::EqFloat)),
    operator("!=", Intrinsic::NeInt, Some(Intrinsic::NeFloat)),
    operator("&", Intrinsic::AndInt, None),
    operator("|", Intrinsic::OrInt, None),
    operator("⊻", Intrinsic::XorInt, None),
];

/// The operand types of methods, in the order of their numbers.
const PAIRS: [(Type, Type); 5] = [
    (Type::INT64, Type::INT64),
    (Type::FLOAT64, Type::FLOAT64),
    (Type::FLOAT64, Type::INT64),
    (Type::INT64, Type::FLOAT64),
    (Type::INT32, Type::INT32),
];

impl Operator {
    fn compares(&self) -> bool {
        matches!(self.name, "<" | "<=" | "==" | "!=")
    }

    fn result(&self, of: Type) -> Type {
        if self.compares() { Type::BOOL } else { of }
    }

    /// The method for numbers of two types; `None` if the operator is not defined on them.
    fn of_numbers(
        &self,
        cx: &Context,
        (x, y): (Type, Type),
        other: bool,
    ) -> Option<Result<Func, BuildError>> {
        let floats = [x, y].contains(&Type::FLOAT64);
        let op = if floats { self.float? } else { self.int };
        let ty = if floats { Type::FLOAT64 } else { x };
        let result = self.result(ty);
        Some(self.method(cx, x, y, result, |b, mut x, mut y| {
            for operand in [&mut x, &mut y] {
                if b.type_of(*operand)? != ty {
                    *operand = b.convert(Intrinsic::Sitofp, *operand, ty)?;
                }
            }
            let value = b.intrinsic(op, &[x, y])?;
            match other {
                true if self.compares() => b.intrinsic(Intrinsic::NotInt, &[value]),
                true if !floats => {
                    let more = b.int(ty, 100)?;
                    b.intrinsic(Intrinsic::AddInt, &[value, more])
                }
                _ => Ok(value),
            }
        }))
    }

    /// A method on the module's own numbers, whose other operand is such a number, an integer, or any value.
    fn of_own(&self, cx: &Context, own: Type, (x, y): (Type, Type)) -> Result<Func, BuildError> {
        let result = self.result(own);
        self.method(cx, x, y, result, |b, x, y| {
            let mut inside = |v: Value| match b.type_of(v)? {
                Type::INT64 => Ok(v),
                ty if ty == own => b.getfield(v, "v"),
                _ => b.int(Type::INT64, 3),
            };
            let (x, y) = (inside(x)?, inside(y)?);
            let value = b.intrinsic(self.int, &[x, y])?;
            if self.compares() { Ok(value) } else { b.new_object(own, &[value]) }
        })
    }

    fn method(
        &self,
        cx: &Context,
        x: Type,
        y: Type,
        result: Type,
        body: impl FnOnce(&mut Builder<'_>, Value, Value) -> Result<Value, BuildError>,
    ) -> Result<Func, BuildError> {
        let mut b = Builder::high(cx, &format!("Base.{}", self.name), &[("x", x), ("y", y)], result);
        let (x, y) = (b.param(0)?, b.param(1)?);
        let value = body(&mut b, x, y)?;
        b.ret(&[value])?;
        b.finish()
    }
}

/// The module's own number type.
pub(super) fn own_number(cx: &Context) -> Option<Type> {
    let field = FieldDecl::new(cx.names.intern("v"), Type::INT64);
    let decl = cx.types.declare(cx.names.intern("Own"), &[]).ok()?;
    let kind = DeclKind::Struct { mutable: false, fields: [field].into() };
    cx.types.define(decl, Type::ANY, kind).ok()?;
    cx.types.nominal(decl, &[]).ok()
}

/// Adds methods of some operators to a module.
pub(super) fn add_methods(rng: &mut Rng, cx: &Context, own: Option<Type>, module: &mut Module) {
    for operator in OPERATORS {
        let likely = if matches!(operator.name, "+" | "*" | "<") { 60 } else { 25 };
        if !rng.chance(likely) {
            continue;
        }
        for pair in PAIRS {
            let (is_there, other) = (rng.chance(if pair.0 == Type::INT32 { 25 } else { 85 }), rng.chance(8));
            if is_there && let Some(func) = operator.of_numbers(cx, pair, other) {
                add(module, func);
            }
        }
        if let Some(own) = own {
            for pair in [(own, own), (own, Type::INT64), (Type::ANY, own)] {
                add(module, operator.of_own(cx, own, pair));
            }
        }
    }
}

fn add(module: &mut Module, func: Result<Func, BuildError>) {
    let func = func.expect("the methods above are well-formed");
    module.add_func(func).expect("no two of them have the same types");
}
