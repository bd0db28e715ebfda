//! From syntax trees to Brolga's IR, by its builder.

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::Arc;

use brolga::build::{Builder, Context, ForeignData, Func, Intrinsic, Module, Type, Value};

use super::syntax::{Expr, Function};

type Built<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// A module with one function. The receiver of the module resolves its callees.
pub(crate) fn module(cx: &Arc<Context>, function: &Function) -> Built<Module> {
    let mut module = Module::new(cx.clone());
    module.add_func(build(cx, function)?).map_err(|error| format!("{error:?}"))?;
    Ok(module)
}

/// A function in the IR.
pub(crate) fn build(cx: &Context, function: &Function) -> Built<Func> {
    let float = Type::FLOAT64;
    let params: Vec<(&str, Type)> = function.params.iter().map(|name| (name.as_str(), float)).collect();
    let mut lower = Lower { b: Builder::high(cx, &function.name, &params, float), names: BTreeMap::new() };
    for (n, name) in function.params.iter().enumerate() {
        let value = lower.b.param(n)?;
        lower.names.insert(name.clone(), value);
    }
    let result = lower.expr(&function.body)?;
    lower.b.ret(&[result])?;
    Ok(lower.b.finish()?)
}

/// A module with a function of C under its own name.
pub(crate) fn foreign(cx: &Arc<Context>, name: &str, arity: usize) -> Built<Module> {
    let float = Type::FLOAT64;
    let params = vec![("", float); arity];
    let mut b = Builder::high(cx, name, &params, float);
    let args = (0..arity).map(|n| b.param(n)).collect::<Result<Vec<Value>, _>>()?;
    let callee = ForeignData {
        name: Some(cx.names.intern(name)),
        result: float,
        params: vec![float; arity].into(),
        variadic_after: None,
    };
    let call = b.foreign_call(callee, &args, &[])?;
    let result = b.func().result(call).ok_or("a C function without a result")?;
    b.ret(&[result])?;
    let mut module = Module::new(cx.clone());
    module.add_func(b.finish()?).map_err(|error| format!("{error:?}"))?;
    Ok(module)
}

struct Lower<'c> {
    b: Builder<'c>,
    names: BTreeMap<String, Value>,
}

impl Lower<'_> {
    /// The value of an expression. The parser bounds its depth.
    fn expr(&mut self, expr: &Expr) -> Built<Value> {
        match expr {
            Expr::Number(number) => Ok(self.b.float64(*number)),
            Expr::Name(name) => {
                self.names.get(name).copied().ok_or_else(|| format!("there is no `{name}` here").into())
            }
            Expr::Call(name, args) => {
                let args = args.iter().map(|arg| self.expr(arg)).collect::<Built<Vec<_>>>()?;
                Ok(self.b.invoke(name, &args, Type::FLOAT64)?)
            }
            Expr::Binary(operator, left, right) => {
                let operands = [self.expr(left)?, self.expr(right)?];
                let intrinsic = match operator {
                    '+' => Intrinsic::AddFloat,
                    '-' => Intrinsic::SubFloat,
                    '*' => Intrinsic::MulFloat,
                    '/' => Intrinsic::DivFloat,
                    _ => {
                        let less = self.b.intrinsic(Intrinsic::LtFloat, &operands)?;
                        let (one, zero) = (self.b.float64(1.0), self.b.float64(0.0));
                        return Ok(self.b.ifelse(less, one, zero)?);
                    }
                };
                Ok(self.b.intrinsic(intrinsic, &operands)?)
            }
            Expr::If(condition, then, other) => {
                let condition = self.expr(condition)?;
                let zero = self.b.float64(0.0);
                let holds = self.b.intrinsic(Intrinsic::NeFloat, &[condition, zero])?;
                let result = self.b.declare_var(Type::FLOAT64);
                let (yes, no, done) = (self.b.create_block(), self.b.create_block(), self.b.create_block());
                self.b.branch(holds, yes, no)?;
                for (block, branch) in [(yes, then), (no, other)] {
                    self.b.seal_block(block)?;
                    self.b.switch_to_block(block)?;
                    let value = self.expr(branch)?;
                    self.b.def_var(result, value)?;
                    self.b.goto(done)?;
                }
                self.b.seal_block(done)?;
                self.b.switch_to_block(done)?;
                Ok(self.b.use_var(result)?)
            }
            Expr::Let(name, value, body) => {
                let value = self.expr(value)?;
                let outer = self.names.insert(name.clone(), value);
                let result = self.expr(body)?;
                match outer {
                    Some(outer) => self.names.insert(name.clone(), outer),
                    None => self.names.remove(name),
                };
                Ok(result)
            }
        }
    }
}
