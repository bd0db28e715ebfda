//! Functions that are promised before they exist: signatures now, a program at the first lookup.
//!
//! For embedders with their own representation: until the lookup the session keeps a closure, with a syntax tree or anything else
//! that it needs. The program that the closure makes may have other functions besides the promised ones; they are linked
//! with them and are invisible to other code. A program that lacks a promised function, or has it with another result, is refused: callers have been
//! compiled for the types of the promise.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex};

use brolga_ir::func::{self, Param};
use brolga_ir::{Context, Func, FuncId, FunctionName, Level, Module, Type};
use brolga_linking::{MaterializationUnit, Responsibility, Symbol, SymbolFlags};

use super::SessionError;
use super::definitions::Definitions;
use super::imports::with_own;
use super::input::{CompilationInput, ProgramFacts};
use super::shared::Shared;
use super::sync::lock;
use super::target::Native;
use super::unit::compile_and_link;
use brolga_codegen::native_type::type_of;

/// A promised function: its name and types.
///
/// ```
/// # extern crate brolga_engine as brolga;
/// # use brolga_ir as ir;
/// use brolga::session::Signature;
/// use brolga::{Options, Session, Workers};
/// use ir::intrinsic::Intrinsic;
/// use ir::{Module, Type, build::Builder};
///
/// let session = Session::new(Options::new(), Workers::Caller)?;
/// let main = session.create_dylib("main")?;
/// // The front end keeps whatever it has; the module is built at the first call.
/// let factor = 3;
/// main.promise(&[Signature::new("scaled", &[Type::INT64], Type::INT64)], move |dylib| {
///     let cx = dylib.session().context().view();
///     let mut b = Builder::high(&cx, "scaled", &[("x", Type::INT64)], Type::INT64);
///     let (x, factor) = (b.param(0)?, b.int(Type::INT64, factor)?);
///     let scaled = b.intrinsic(Intrinsic::MulInt, &[x, factor])?;
///     b.ret(&[scaled])?;
///     let func = b.finish()?;
///     let mut module = Module::new(cx);
///     module.add_func(func)?;
///     Ok(module)
/// })?;
/// assert_eq!(main.func::<(i64,), i64>("scaled")?.call((5,))?, 15);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Signature {
    /// The name, prefixed with its module unless that is `Main` (`f`, `A.g`).
    pub name: String,
    /// The types of the arguments.
    pub params: Vec<Type>,
    /// The type of the result.
    pub result: Type,
}

impl Signature {
    /// Creates a signature.
    pub fn new(name: &str, params: &[Type], result: Type) -> Signature {
        Signature { name: name.to_owned(), params: params.to_vec(), result }
    }

    /// The declaration: a function without a body.
    pub(crate) fn declare(&self, cx: &Context) -> Func {
        let function = FunctionName::parse(&cx.names, &self.name);
        let types = [cx.types.function_named(function)].into_iter().chain(self.params.iter().copied());
        let params = types.map(|ty| Param { name: None, ty }).collect();
        Func::new(
            cx.names.intern(cx.names.text(function.name)),
            Level::High,
            func::Signature {
                params,
                results: vec![self.result],
                vararg: false,
                ..func::Signature::default()
            },
        )
    }
}

/// The closure that makes the program, in the context of the session.
pub(crate) type Make = Box<dyn FnOnce() -> Result<Definitions, SessionError> + Send>;

pub(crate) struct Promise {
    pub(crate) shared: Arc<Shared>,
    pub(crate) symbols: Vec<(Symbol, SymbolFlags)>,
    pub(crate) make: Arc<Mutex<Option<Make>>>,
    /// The declarations; their functions have cells.
    pub(crate) declared: Arc<Module>,
}

impl MaterializationUnit<Native> for Promise {
    fn symbols(&self) -> Vec<(Symbol, SymbolFlags)> {
        self.symbols.clone()
    }

    fn materialize(self: Box<Self>, responsibility: Responsibility<Native>) {
        let Promise { shared, make, declared, .. } = *self;
        // A unit is materialized once.
        let Some(make) = lock(&make).take() else { return };
        match make().and_then(|made| load(&shared, made, &declared)) {
            Ok((input, own)) => compile_and_link(shared, input, &own, responsibility),
            Err(error) => responsibility.fail(error),
        }
    }
}

fn load(
    shared: &Shared,
    made: Definitions,
    declared: &Module,
) -> Result<(Arc<CompilationInput>, Vec<FuncId>), SessionError> {
    let own: Vec<FuncId> = made.module.funcs().map(|(id, _)| id).take(made.own).collect();
    check_kept(declared, &made.module, &own)?;
    let promised = declared.funcs().map(|(id, _)| declared.symbol_of(id)).collect();
    let runtime = shared.jit.runtime();
    let dylib = made.imported.as_ref().map(|(dylib, _)| dylib.linking.id());
    let bindings = match dylib {
        Some(dylib) => with_own(made.bindings, &made.module, &own, dylib),
        None => made.bindings,
    };
    let (sources, callees) = ((None, Arc::new(bindings)), made.manner.callees);
    let facts = ProgramFacts::new(runtime, &made.module, sources, false, promised, callees, |_| None);
    let facts = Arc::new(facts?);
    Ok((Arc::new(shared.input(made.module, &own, facts, None, None)), own))
}

/// Refuses a program that lacks a promised function, or has it with another result.
fn check_kept(declared: &Module, made: &Module, own: &[FuncId]) -> Result<(), SessionError> {
    let made_types: BTreeMap<String, FuncId> =
        own.iter().map(|&id| (made[id].symbol(&made.cx), id)).collect();
    for (id, promised) in declared.funcs() {
        let is_kept = made_types.get(&promised.symbol(&declared.cx)).is_some_and(|&other| {
            let is_called_alike = match (type_of(declared, id), type_of(made, other)) {
                (Some(promised), Some(made)) => promised.is_called_like(&made),
                (promised, made) => promised.is_none() && made.is_none(),
            };
            is_called_alike && with_result(declared, id) == with_result(made, other)
        });
        if !is_kept {
            let name = promised.spelled_name(&declared.cx);
            let of_name = own.iter().filter(|&&id| made[id].spelled_name(&made.cx) == name);
            return Err(SessionError::Unkept {
                promised: with_result(declared, id),
                made: of_name.map(|&id| with_result(made, id)).collect(),
            });
        }
    }
    Ok(())
}

/// The symbol of a function with the type of its result.
fn with_result(module: &Module, id: FuncId) -> String {
    let func = &module[id];
    let mut text = func.symbol(&module.cx);
    for &result in &func.sig.results {
        let _ = write!(text, "::{}", module.cx.types.display(result));
    }
    text
}
