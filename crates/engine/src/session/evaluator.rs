//! Evaluates expressions, given as text, with the functions of a dylib: for prompts, debuggers and scripts.
//!
//! ```text
//! text ── read_expression ──► constants, variables, calls
//!                                  │ a function of the dylib, or of the prelude   method chosen, compiled code called, result copied out
//!                                  │ a type, a builtin, the rest of Base           the interpreter
//!                                  ▼
//!                                 Val ── show ──► text
//! ```
//!
//! Values between calls belong to the interpreter. A call copies its arguments into the session's heap and its result out again, so a function that
//! changes an object changes a copy: variables hold values, not objects of the session.
//!
//! Every call runs in the newest world, so it reaches the newest definitions.
//!
//! Cost: linear in the number of functions that the dylib sees, plus the calls.
//!
//! Not done: global variables of programs by name; arrays and named tuples whose items are calls.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use brolga_interp::{self as interp, Interp, Outcome, SimMemory, Val};
use brolga_ir::abi::NativeSignature;
use brolga_ir::diag::SourceFile;
use brolga_ir::text::{self, Expression};
use brolga_ir::{Context, Level, Module, Type};
use brolga_jit::UntypedFunc;
use brolga_runtime::Runtime;

use super::dylib::Dylib;
use super::error::SessionError;
use crate::bridge::{self, BridgeError};
use crate::error::Broken;
use crate::evaluate::Failure;
use crate::prelude;

/// Evaluates calls and expressions given as text, with variables: what a prompt needs.
///
/// ```
/// # extern crate brolga_engine as brolga;
/// # use brolga_ir as ir;
/// use brolga::session::Evaluator;
/// use brolga::{Options, Session, Workers};
/// use ir::Module;
/// const HALF: &[u8] = "
/// function half(n::Int64)::Int64
/// 1 ─ %1 = Base.checked_sdiv_int(n, 2)::Int64
/// └──      return %1
/// end".as_bytes();
///
/// let session = Session::new(Options::new(), Workers::Caller)?;
/// let main = session.create_dylib("main")?;
/// main.define(main.read("half.jlir", HALF)?)?;
/// let names = Module::new(session.context().view());
/// let mut evaluator = Evaluator::new(&main, &names);
/// let four = evaluator.evaluate("input 1", "half(8)")?;
/// evaluator.set("x", four);
/// let two = evaluator.evaluate("input 2", "half(x)")?;
/// assert_eq!((evaluator.show(&two)?, evaluator.type_text(&two)), ("2".to_owned(), "Int64".to_owned()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Evaluator<'m> {
    dylib: Dylib,
    interp: Interp<'m>,
    variables: BTreeMap<String, Val>,
}

/// The output of interpreted builtins: the session's output.
struct ToSink(Arc<Runtime>);

impl interp::Output for ToSink {
    fn write(&mut self, bytes: &[u8]) {
        self.0.sink().write(bytes);
    }
}

impl<'m> Evaluator<'m> {
    /// Creates an evaluator without variables. `module` holds the names and types of the values: pass an empty module in a view of the session's context,
    /// `Module::new(session.context().view())`.
    pub fn new(dylib: &Dylib, module: &'m Module) -> Evaluator<'m> {
        let mut interp = Interp::new(module, interp::Options::default(), Box::<SimMemory>::default());
        interp.set_output(Box::new(ToSink(dylib.session().runtime().clone())));
        Evaluator { dylib: dylib.clone(), interp, variables: BTreeMap::new() }
    }

    /// Evaluates an expression. `name` identifies the text in messages.
    ///
    /// # Errors
    /// The text is broken ([`Error::Broken`](crate::Error::Broken) in [`Failure::NotCompiled`]), no method takes the arguments, a function cannot be compiled, or a call threw.
    pub fn evaluate(&mut self, name: &str, text: &str) -> Result<Val, Failure> {
        let (expression, _names) = self.read(name, text)?;
        self.value(&expression)
    }

    /// Reads an expression; the second result keeps its names and types alive until it has been evaluated. Function names are resolved in the dylib.
    fn read(&self, name: &str, text: &str) -> Result<(Expression, Arc<Context>), Failure> {
        let source = SourceFile::new(name, text).map_err(|error| Failure::NotCompiled(error.into()))?;
        let functions = self.dylib.function_names().map_err(refused)?;
        let is_variable = |name: &str| self.variables.contains_key(name);
        let cx = self.dylib.context();
        match text::read_expression(&source, &cx, &functions, &is_variable) {
            Ok(expression) => Ok((expression, cx)),
            Err(findings) => Err(Failure::NotCompiled(Box::new(Broken { source, findings }).into())),
        }
    }

    /// Runs the outermost call of an expression `calls` times, with arguments that are evaluated once, and returns the time by a clock. A call that changes its
    /// arguments changes them for the next call. The function is compiled beforehand.
    ///
    /// # Errors
    /// As [`Evaluator::evaluate`]; or the expression is not a call of a function of the session.
    pub fn measure(
        &mut self,
        name: &str,
        text: &str,
        calls: u32,
        clock: &dyn Fn() -> Duration,
    ) -> Result<Duration, Failure> {
        let (Expression::Call { callee, args, .. }, _names) = self.read(name, text)? else {
            return Err(Failure::Stopped("only calls are measured".to_owned()));
        };
        let (callee, args) = self.operands(&callee, &args)?;
        let Some(found) = self.find(&callee, &args)? else {
            return Err(Failure::Stopped("only calls of a function of the session are measured".to_owned()));
        };
        let all: Vec<Val> = std::iter::once(callee).chain(args).collect();
        let (func, signature) = found;
        let runtime = self.dylib.session().runtime().clone();
        let took = bridge::measure(&func, &signature, &all, &mut self.interp, &runtime, calls, clock);
        took.map_err(|error| self.unbridged(error))
    }

    /// Sets a variable's value, replacing the previous one.
    pub fn set(&mut self, name: &str, value: Val) {
        self.variables.insert(name.to_owned(), value);
    }

    /// The variables, in the order of their names.
    pub fn variables(&self) -> impl Iterator<Item = (&str, &Val)> {
        self.variables.iter().map(|(name, value)| (name.as_str(), value))
    }

    /// A value as Julia would show it.
    ///
    /// # Errors
    /// There is no memory for its text.
    pub fn show(&mut self, value: &Val) -> Result<String, Failure> {
        self.interp.show(value).map_err(|outcome| self.stopped(outcome))
    }

    /// The type of a value, as text.
    pub fn type_text(&self, value: &Val) -> String {
        let types = &self.interp.module().cx.types;
        types.display(value.type_of(types)).to_string()
    }

    /// Evaluates an expression. The recursion follows the nesting of the text, which the reader bounds.
    fn value(&mut self, expression: &Expression) -> Result<Val, Failure> {
        match expression {
            Expression::Constant(term) => self.interp.term(term).map_err(|outcome| self.stopped(outcome)),
            Expression::Variable(name) => {
                let value = self.variables.get(name).cloned();
                value.ok_or_else(|| Failure::Stopped(format!("there is no variable `{name}`")))
            }
            Expression::Call { callee, args, .. } => {
                let (callee, args) = self.operands(callee, args)?;
                self.call(callee, args)
            }
        }
    }

    fn operands(&mut self, callee: &Expression, args: &[Expression]) -> Result<(Val, Vec<Val>), Failure> {
        let callee = self.value(callee)?;
        Ok((callee, args.iter().map(|arg| self.value(arg)).collect::<Result<_, _>>()?))
    }

    fn call(&mut self, callee: Val, args: Vec<Val>) -> Result<Val, Failure> {
        let Some((func, signature)) = self.find(&callee, &args)? else {
            return self.interp.call_value(callee, &args).map_err(|outcome| self.stopped(outcome));
        };
        let all: Vec<Val> = std::iter::once(callee).chain(args).collect();
        let runtime = self.dylib.session().runtime().clone();
        let called = bridge::call(&func, &signature, &all, &mut self.interp, &runtime);
        called.map_err(|error| self.unbridged(error))
    }

    /// The session's method that a call dispatches to, compiled; `None` if the callee is not a function of the session.
    fn find(&self, callee: &Val, args: &[Val]) -> Result<Option<(UntypedFunc, NativeSignature)>, Failure> {
        let cx = &self.interp.module().cx;
        let types = &cx.types;
        let function = callee.ty(types);
        let is_base = prelude::has(cx, function);
        if is_base {
            self.dylib.link_library(BTreeSet::from([function])).map_err(refused)?;
        }
        let Some(declared) = self.dylib.declared(function).map_err(refused)? else { return Ok(None) };
        let given: Vec<Type> = args.iter().map(|arg| arg.ty(types)).collect();
        let Some(id) = declared.find_method(function, &given) else {
            // The interpreter has some functions of Base itself.
            return if is_base { Ok(None) } else { Err(self.no_method(&declared, function, &given)) };
        };
        let signature = NativeSignature::new(&declared.cx.types, &declared[id].sig)
            .map_err(|_| Failure::Stopped("the function has no native signature".to_owned()))?;
        let found = self.dylib.function(&declared[id].symbol(&declared.cx)).map_err(refused)?;
        found.compile().map_err(refused)?;
        let func = found.untyped().map_err(|error| refused(error.into()))?;
        Ok(Some((func, signature)))
    }

    fn unbridged(&self, error: BridgeError) -> Failure {
        crate::evaluate::unbridged(&self.interp.module().cx, error)
    }

    fn no_method(&self, declared: &Module, function: Type, given: &[Type]) -> Failure {
        let cx = &declared.cx;
        let types: Vec<String> = given.iter().map(|&ty| format!("::{}", cx.types.display(ty))).collect();
        let methods = declared.methods(function).iter().map(|&id| &declared[id]);
        let methods: Vec<String> = methods
            .filter(|func| func.level == Level::High)
            .map(|func| format!("`{}`", func.symbol(cx)))
            .collect();
        let name = declared.methods(function).first().map(|&id| declared[id].spelled_name(cx));
        Failure::Stopped(format!(
            "no method of `{}` takes ({}); there is {}",
            name.unwrap_or_default(),
            types.join(", "),
            methods.join(", ")
        ))
    }

    fn stopped(&mut self, outcome: Outcome) -> Failure {
        crate::evaluate::stopped(&mut self.interp, outcome)
    }
}

/// Converts an error of the session to a failed evaluation.
fn refused(error: SessionError) -> Failure {
    match &error {
        SessionError::Program(program) => Failure::Stopped(program.to_string()),
        _ => {
            let mut text = error.to_string();
            for cause in error.causes() {
                text.push_str("\n  ");
                text.push_str(&cause);
            }
            Failure::Stopped(text)
        }
    }
}

#[cfg(test)]
mod tests {
    use brolga_ir::Module;

    use super::{Evaluator, Failure};
    use crate::options::Options;
    use crate::session::{Dylib, Session, Workers};

    const FIB: &str = "function fib(n::Int64)::Int64\n1 ─ %1 = Base.slt_int(n, 2)::Bool\n└──      goto #3 if not %1\n\
                       2 ─      return n\n3 ─ %4 = Base.sub_int(n, 1)::Int64\n│   %5 = invoke Main.fib(%4::Int64)::Int64\n\
                       │   %6 = Base.sub_int(n, 2)::Int64\n│   %7 = invoke Main.fib(%6::Int64)::Int64\n\
                       │   %8 = Base.add_int(%5, %7)::Int64\n└──      return %8\nend\n";

    const NODE: &str = "mutable struct Node\n    val::Int64\nend\n\
                        function twice(n::Node)::Node\n1 ─ %1 = Base.getfield(n, :val)::Int64\n\
                        │   %2 = Base.add_int(%1, %1)::Int64\n│   %3 = %new(Main.Node, %2)::Node\n└──      return %3\nend\n\
                        function value(n::Node)::Int64\n1 ─ %1 = Base.getfield(n, :val)::Int64\n└──      return %1\nend\n";

    fn dylib() -> Dylib {
        let session = Session::new(Options::new(), Workers::Caller).unwrap();
        let dylib = session.create_dylib("prompt").unwrap();
        for program in [FIB, NODE] {
            let program = dylib.read("<test>", program.as_bytes()).unwrap();
            dylib.define(program.lazy()).unwrap();
        }
        dylib
    }

    #[test]
    fn calls_nest_and_variables_hold_values() {
        let dylib = dylib();
        let module = Module::new(dylib.session().context().view());
        let mut evaluator = Evaluator::new(&dylib, &module);
        let mut shown = |text: &str| {
            let value = evaluator.evaluate("<test>", text).map_err(|failure| failure.to_string())?;
            evaluator.set("x", value.clone());
            Ok::<_, String>(format!("{}::{}", evaluator.show(&value).unwrap(), evaluator.type_text(&value)))
        };
        assert_eq!(shown("fib(10)").unwrap(), "55::Int64");
        assert_eq!(shown("fib(Base.add_int(fib(5), 5))").unwrap(), "55::Int64");
        assert_eq!(shown("x + 1").unwrap(), "56::Int64");
        assert_eq!(shown("(x, 1.5)").unwrap(), "(56, 1.5)::Tuple{Int64, Float64}");
        assert_eq!(shown("value(twice(Node(21)))").unwrap(), "42::Int64");
        assert_eq!(shown("value(twice(Node(x)))").unwrap(), "84::Int64");
        assert_eq!(shown("-2.0").unwrap(), "-2.0::Float64");
        let error = shown("fib(1.5)").unwrap_err();
        assert_eq!(error, "no method of `fib` takes (::Float64); there is `fib(Int64)`");
        assert!(shown("fib(1.5)::Int64").is_err());
        // A clock that advances by one second with each reading.
        let asked = std::cell::Cell::new(0);
        let clock = || std::time::Duration::from_secs(asked.replace(asked.get() + 1));
        for text in ["fib(5)", "value(Node(5))"] {
            let took = evaluator.measure("<test>", text, 100, &clock).unwrap();
            assert_eq!(took.as_secs(), 1, "{text}");
        }
        for text in ["1", "Node(1)"] {
            assert!(evaluator.measure("<test>", text, 1, &clock).is_err(), "{text}");
        }
    }

    #[test]
    fn a_broken_text_is_shown_with_its_place() {
        let dylib = dylib();
        let module = Module::new(dylib.session().context().view());
        let mut evaluator = Evaluator::new(&dylib, &module);
        for text in ["fub(1)", "fib(", "fib(y)", "", "return 1", "fib(1) fib(2)"] {
            let failure = evaluator.evaluate("<test>", text).unwrap_err();
            assert!(matches!(failure, Failure::NotCompiled(crate::Error::Broken(_))), "{text}: {failure}");
        }
    }

    #[test]
    fn methods_are_listed_and_follow_redefinition() {
        let dylib = dylib();
        let names: Vec<String> = dylib.methods().unwrap().into_iter().map(|m| m.symbol).collect();
        assert_eq!(names, ["fib(Int64)", "twice(Node)", "value(Node)"]);
        let module = Module::new(dylib.session().context().view());
        let mut evaluator = Evaluator::new(&dylib, &module);
        let again = "function fib(n::Int64)::Int64\n1 ─     return n\nend\n";
        dylib.redefine(dylib.read("<test>", again.as_bytes()).unwrap().lazy()).unwrap();
        let value = evaluator.evaluate("<test>", "fib(10)").unwrap();
        assert_eq!(evaluator.show(&value).unwrap(), "10");
    }
}
