//! From expressions to Brolga's IR, by its builder.
//!
//! ```text
//! (define (adder n) (lambda (x) (+ x n)))
//!
//!   function @adder(n::Any)::Any  =  %new(#lambda1, n)          struct #lambda1: one field for each variable that it takes along
//!   function (c::#lambda1)(x::Any)::Any  =  (@+)(x, c.v0)       a method of the closure's type
//! ```
//!
//! All values are objects. A variable that functions share and that changes is a `Core.Box`; any other one is a variable of the builder. All calls are
//! dynamic: the session finds the method in the world of the thread, and the optimiser turns calls of known functions into direct ones. A call of itself
//! in tail position is a jump.

use std::collections::BTreeMap;
use std::sync::Arc;

use brolga::build::{
    Block, Builder, Builtin, Context, DeclKind, FieldDecl, Func, Module, Type, Value, Variable,
};

use super::globals::{Global, Globals, getter, setter, symbol};
use super::reader::Datum;
use super::syntax::{Expr, Lambda, Var, VarInfo};

pub(crate) type Lowered<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// The functions of one form.
pub(crate) struct Lowering<'a> {
    cx: &'a Arc<Context>,
    globals: &'a Globals,
    vars: &'a [VarInfo],
    /// The methods of closures.
    pub(crate) closures: Module,
}

/// Where a variable is.
#[derive(Clone, Copy)]
enum Place {
    Var(Variable),
    Box(Value),
    Value(Value),
}

/// The name of a function in its own body.
enum Own {
    Global(String),
    Local(Var),
    Nothing,
}

/// A function that is being built.
struct Frame<'c> {
    b: Builder<'c>,
    places: BTreeMap<Var, Place>,
    own: Own,
    /// Its parameters, and where they are taken from the start again.
    params: Vec<Variable>,
    head: Block,
}

impl<'a> Lowering<'a> {
    pub(crate) fn new(cx: &'a Arc<Context>, globals: &'a Globals, vars: &'a [VarInfo]) -> Self {
        Lowering { cx, globals, vars, closures: Module::new(cx.clone()) }
    }

    /// A function at the prompt.
    pub(crate) fn define(&mut self, lambda: &Lambda) -> Lowered<Func> {
        let params = self.params(lambda);
        let b = Builder::high(self.cx, &symbol(&lambda.name), &params, Type::ANY);
        self.function(b, lambda, BTreeMap::new(), Own::Global(lambda.name.clone()))
    }

    /// The parameters of a function by their names, all objects.
    fn params(&self, lambda: &Lambda) -> Vec<(&'a str, Type)> {
        lambda.params.iter().map(|&var| (self.vars[var].name.as_str(), Type::ANY)).collect()
    }

    /// An expression as a function of this name without parameters.
    pub(crate) fn expression(&mut self, name: &str, expr: &Expr) -> Lowered<Func> {
        let mut frame = Frame::new(Builder::high(self.cx, name, &[], Type::ANY), Own::Nothing)?;
        frame.b.goto(frame.head)?;
        frame.b.switch_to_block(frame.head)?;
        self.tail(&mut frame, expr)?;
        frame.finish()
    }

    fn function(
        &mut self,
        b: Builder<'a>,
        lambda: &Lambda,
        places: BTreeMap<Var, Place>,
        own: Own,
    ) -> Lowered<Func> {
        let given = (0..lambda.params.len()).map(|n| b.param(n)).collect::<Result<Vec<Value>, _>>()?;
        let mut frame = Frame::new(b, own)?;
        frame.places = places;
        for value in given {
            let variable = frame.b.declare_var(Type::ANY);
            frame.b.def_var(variable, value)?;
            frame.params.push(variable);
        }
        frame.b.goto(frame.head)?;
        frame.b.switch_to_block(frame.head)?;
        for (&var, &variable) in lambda.params.iter().zip(&frame.params.clone()) {
            let place = match self.vars[var].is_boxed() {
                true => {
                    let value = frame.b.use_var(variable)?;
                    Place::Box(frame.b.new_object(Type::BOX, &[value])?)
                }
                false => Place::Var(variable),
            };
            frame.places.insert(var, place);
        }
        self.tail(&mut frame, &lambda.body)?;
        frame.finish()
    }

    /// An expression whose value the function returns.
    fn tail(&mut self, f: &mut Frame<'a>, expr: &Expr) -> Lowered<()> {
        match expr {
            Expr::If(test, then, other) => {
                let (yes, no) = self.branch(f, test)?;
                for (block, expr) in [(yes, then), (no, other)] {
                    f.b.switch_to_block(block)?;
                    self.tail(f, expr)?;
                }
                Ok(())
            }
            Expr::Begin(all) => match all.split_last() {
                Some((last, before)) => {
                    for expr in before {
                        self.value(f, expr)?;
                    }
                    self.tail(f, last)
                }
                None => self.ret(f, expr),
            },
            Expr::Let(var, value, body) => {
                self.bind(f, *var, value)?;
                self.tail(f, body)
            }
            Expr::Call(callee, args) if f.is_own(callee) && args.len() == f.params.len() => {
                let args = args.iter().map(|arg| self.value(f, arg)).collect::<Lowered<Vec<Value>>>()?;
                for (variable, value) in f.params.clone().into_iter().zip(args) {
                    f.b.def_var(variable, value)?;
                }
                Ok(f.b.goto(f.head)?)
            }
            expr => self.ret(f, expr),
        }
    }

    fn ret(&mut self, f: &mut Frame<'a>, expr: &Expr) -> Lowered<()> {
        let value = self.value(f, expr)?;
        Ok(f.b.ret(&[value])?)
    }

    /// The value of an expression. The reader bounds its depth.
    fn value(&mut self, f: &mut Frame<'a>, expr: &Expr) -> Lowered<Value> {
        match expr {
            Expr::Const(datum) => self.datum(f, datum),
            Expr::Nothing => Ok(f.b.nothing()),
            Expr::Local(var) => f.read(*var),
            Expr::Global(name) => match self.globals.get(name) {
                Some(Global::Variable(number)) => {
                    let getter = f.b.function_object(&getter(number));
                    Ok(f.b.call(getter, &[], Type::ANY)?)
                }
                Some(Global::Function(_) | Global::Library) => Ok(f.b.function_object(&symbol(name))),
                None => Err(format!("there is no `{name}`").into()),
            },
            Expr::Set(var, value) => {
                let value = self.value(f, value)?;
                f.write(*var, value)?;
                Ok(f.b.nothing())
            }
            Expr::SetGlobal(name, value) => {
                let value = self.value(f, value)?;
                let Some(Global::Variable(number)) = self.globals.get(name) else {
                    return Err(format!("set!: there is no variable `{name}`").into());
                };
                let setter = f.b.function_object(&setter(number));
                f.b.call(setter, &[value], Type::ANY)?;
                Ok(f.b.nothing())
            }
            Expr::If(test, then, other) => {
                let result = f.b.declare_var(Type::ANY);
                let (yes, no) = self.branch(f, test)?;
                let done = f.b.create_block();
                for (block, expr) in [(yes, then), (no, other)] {
                    f.b.switch_to_block(block)?;
                    let value = self.value(f, expr)?;
                    f.b.def_var(result, value)?;
                    f.b.goto(done)?;
                }
                f.b.seal_block(done)?;
                f.b.switch_to_block(done)?;
                Ok(f.b.use_var(result)?)
            }
            Expr::Begin(all) => {
                let mut last = f.b.nothing();
                for expr in all {
                    last = self.value(f, expr)?;
                }
                Ok(last)
            }
            Expr::Let(var, value, body) => {
                self.bind(f, *var, value)?;
                self.value(f, body)
            }
            Expr::Lambda(lambda) => self.closure(f, lambda),
            Expr::Call(callee, args) => {
                // A name that is not defined yet may be a function by the time of the call.
                let callee = match &**callee {
                    Expr::Global(name) if self.globals.get(name).is_none() => {
                        f.b.function_object(&symbol(name))
                    }
                    callee => self.value(f, callee)?,
                };
                let args = args.iter().map(|arg| self.value(f, arg)).collect::<Lowered<Vec<Value>>>()?;
                Ok(f.b.call(callee, &args, Type::ANY)?)
            }
        }
    }

    /// Ends the block; all but `#f` is true.
    fn branch(&mut self, f: &mut Frame<'a>, test: &Expr) -> Lowered<(Block, Block)> {
        let value = self.value(f, test)?;
        let (yes, no) = (f.b.create_block(), f.b.create_block());
        let falsity = f.b.bool(false);
        let is_false = f.b.builtin(Builtin::Egal, &[value, falsity], Type::BOOL)?;
        f.b.branch(is_false, no, yes)?;
        f.b.seal_block(yes)?;
        f.b.seal_block(no)?;
        Ok((yes, no))
    }

    fn bind(&mut self, f: &mut Frame<'a>, var: Var, value: &Expr) -> Lowered<()> {
        let value = self.value(f, value)?;
        let place = match self.vars[var].is_boxed() {
            true => Place::Box(f.b.new_object(Type::BOX, &[value])?),
            false => {
                let variable = f.b.declare_var(Type::ANY);
                f.b.def_var(variable, value)?;
                Place::Var(variable)
            }
        };
        f.places.insert(var, place);
        Ok(())
    }

    /// A closure: an object of a type of its own, which has a method.
    fn closure(&mut self, f: &mut Frame<'a>, lambda: &Lambda) -> Lowered<Value> {
        let mut free = Vec::new();
        let mut bound: Vec<Var> = lambda.params.iter().copied().chain(lambda.own).collect();
        find_free(&lambda.body, &mut bound, &mut free);
        let taken = free.iter().map(|&var| f.shared(var)).collect::<Lowered<Vec<Value>>>()?;
        let boxed = |&var: &Var| if self.vars[var].is_boxed() { Type::BOX } else { Type::ANY };
        let ty = self.closure_type(&lambda.name, &free.iter().map(boxed).collect::<Vec<Type>>())?;

        let params = self.params(lambda);
        let mut b = Builder::method_of(self.cx, ty, &params, Type::ANY);
        let object = b.callee()?;
        let mut places = BTreeMap::new();
        for (n, &var) in free.iter().enumerate() {
            let value = b.getfield(object, &format!("v{n}"))?;
            let place = if self.vars[var].is_boxed() { Place::Box(value) } else { Place::Value(value) };
            places.insert(var, place);
        }
        places.extend(lambda.own.map(|own| (own, Place::Value(object))));
        let own = lambda.own.map_or(Own::Nothing, Own::Local);
        let method = self.function(b, lambda, places, own)?;
        self.closures.add_func(method).map_err(|error| format!("{error:?}"))?;
        Ok(f.b.new_object(ty, &taken)?)
    }

    /// A type for closures that capture values of the given types.
    fn closure_type(&self, name: &str, fields: &[Type]) -> Lowered<Type> {
        let (types, names) = (&self.cx.types, &self.cx.names);
        let told = |error: brolga::build::TypeError| error.display(types).to_string();
        let name = names.intern(&format!("#{name}{}", self.globals.number()));
        let decl = types.declare(name, &[]).map_err(told)?;
        let field = |(n, &ty): (usize, &Type)| FieldDecl::new(names.intern(&format!("v{n}")), ty);
        let fields = fields.iter().enumerate().map(field).collect();
        let function = types.find_builtin(names.intern("Function")).ok_or("there is no type `Function`")?;
        let function = types.nominal(function, &[]).map_err(told)?;
        types.define(decl, function, DeclKind::Struct { mutable: false, fields }).map_err(told)?;
        Ok(types.nominal(decl, &[]).map_err(told)?)
    }

    fn datum(&self, f: &mut Frame<'a>, datum: &Datum) -> Lowered<Value> {
        Ok(match datum {
            Datum::Int(int) => f.b.int(Type::INT64, i128::from(*int))?,
            Datum::Float(float) => f.b.float64(*float),
            Datum::Bool(truth) => f.b.bool(*truth),
            Datum::Str(text) => f.b.string(text),
            Datum::Symbol(name) => f.b.symbol(name),
            Datum::List(items) => {
                let nil = f.b.function_object(&symbol("nil"));
                let mut list = f.b.call(nil, &[], Type::ANY)?;
                for item in items.iter().rev() {
                    let (item, cons) = (self.datum(f, item)?, f.b.function_object(&symbol("cons")));
                    list = f.b.call(cons, &[item, list], Type::ANY)?;
                }
                list
            }
        })
    }
}

impl<'c> Frame<'c> {
    fn new(mut b: Builder<'c>, own: Own) -> Lowered<Self> {
        let head = b.create_block();
        Ok(Frame { b, places: BTreeMap::new(), own, params: Vec::new(), head })
    }

    fn finish(mut self) -> Lowered<Func> {
        self.b.seal_block(self.head)?;
        Ok(self.b.finish()?)
    }

    /// Whether an expression is the function itself.
    fn is_own(&self, expr: &Expr) -> bool {
        match (expr, &self.own) {
            (Expr::Global(name), Own::Global(own)) => name == own,
            (Expr::Local(var), Own::Local(own)) => var == own,
            _ => false,
        }
    }

    fn place(&self, var: Var) -> Lowered<Place> {
        self.places.get(&var).copied().ok_or_else(|| "a variable has no place".into())
    }

    fn read(&mut self, var: Var) -> Lowered<Value> {
        Ok(match self.place(var)? {
            Place::Var(variable) => self.b.use_var(variable)?,
            Place::Box(object) => self.b.getfield(object, "contents")?,
            Place::Value(value) => value,
        })
    }

    fn write(&mut self, var: Var, value: Value) -> Lowered<()> {
        match self.place(var)? {
            Place::Var(variable) => Ok(self.b.def_var(variable, value)?),
            Place::Box(object) => Ok(self.b.setfield(object, "contents", value)?),
            Place::Value(_) => Err("a loop cannot be assigned".into()),
        }
    }

    /// The form in which a closure captures a variable.
    fn shared(&mut self, var: Var) -> Lowered<Value> {
        match self.place(var)? {
            Place::Box(object) => Ok(object),
            _ => self.read(var),
        }
    }
}

/// The variables of an expression that are not bound in it, each once.
fn find_free(expr: &Expr, bound: &mut Vec<Var>, free: &mut Vec<Var>) {
    let mut found = |var: Var, bound: &[Var]| {
        if !bound.contains(&var) && !free.contains(&var) {
            free.push(var);
        }
    };
    match expr {
        Expr::Const(_) | Expr::Nothing | Expr::Global(_) => {}
        Expr::Local(var) => found(*var, bound),
        Expr::Set(var, value) => {
            found(*var, bound);
            find_free(value, bound, free);
        }
        Expr::SetGlobal(_, value) => find_free(value, bound, free),
        Expr::If(test, then, other) => {
            [test, then, other].into_iter().for_each(|expr| find_free(expr, bound, free));
        }
        Expr::Begin(all) => all.iter().for_each(|expr| find_free(expr, bound, free)),
        Expr::Let(var, value, body) => {
            find_free(value, bound, free);
            // Each variable of a form has its own number.
            bound.push(*var);
            find_free(body, bound, free);
        }
        Expr::Lambda(lambda) => {
            bound.extend(lambda.params.iter().copied().chain(lambda.own));
            find_free(&lambda.body, bound, free);
        }
        Expr::Call(callee, args) => {
            find_free(callee, bound, free);
            args.iter().for_each(|arg| find_free(arg, bound, free));
        }
    }
}
