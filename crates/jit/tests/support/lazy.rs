//! A program of low functions, each of which is a unit of its own and is compiled when it is called first.

#![allow(dead_code, reason = "each test file uses its part")]

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::{Arc, Mutex, OnceLock, Weak};

use brolga_codegen::isa::Tier;
use brolga_codegen::linkage::CallKind;
use brolga_codegen::sig::{Abi, FunctionType, Signature, ValueType};
use brolga_codegen::translate::signature_of;
use brolga_ir::diag::SourceFile;
use brolga_ir::verify::verify_module;
use brolga_ir::{Context, Func, text};
use brolga_jit::{
    CallError, CellOwner, Compiled, FindCell, IndirectCell, Jit, Linkage, Materialize, Source, Style, Target,
    Unit,
};
use brolga_runtime::ExceptionKind;

/// The message of the `CompileError` that a call has thrown.
pub(crate) fn thrown<T: std::fmt::Debug>(result: Result<T, CallError>) -> String {
    match result {
        Err(CallError::Exception(exception)) => {
            assert_eq!(exception.kind, ExceptionKind::CompileError, "{exception}");
            exception.to_string()
        }
        other => panic!("no exception: {other:?}"),
    }
}

/// `step` and `stride` have different results, `count` calls `step` that many times, and `split` has another type.
pub(crate) const STEPS: &str = "
low function step(n::i64)::i64
1 ─ %1 = add_int(n, 1)::i64
└──      return %1
end

low function stride(n::i64)::i64
1 ─ %1 = add_int(n, 2)::i64
└──      return %1
end

low function split(n::i64)::(i64, i64)
1 ─ return (n, n)
end

low function count(n::i64)::i64
1 ─      goto #2
2 ┄ %2 = φ (#1 => 0, #3 => %6)::i64
│   %3 = φ (#1 => n, #3 => %7)::i64
│   %4 = ne_int(%3, 0)::i8
└──      goto #4 if not %4
3 ─ %6 = invoke step(%2)::i64
│   %7 = sub_int(%3, 1)::i64
└──      goto #2
4 ─      return %2
end
";

/// The action of a test when a function is about to be compiled: it may refuse, or compile another one in its place.
pub(crate) type Hook =
    dyn Fn(&Program, &str) -> Result<Option<String>, Box<dyn Error + Send + Sync>> + Send + Sync;

pub(crate) struct Program {
    pub(crate) jit: Jit,
    cx: Arc<Context>,
    funcs: BTreeMap<String, Func>,
    tier: Tier,
    owners: OnceLock<BTreeMap<String, CellOwner>>,
    hook: Box<Hook>,
    /// The compiled functions, in order.
    pub(crate) compiled: Mutex<Vec<String>>,
}

/// One function of a program. It is compiled once, for any number of requests.
struct One {
    program: Weak<Program>,
    name: String,
    made: Mutex<Option<Target>>,
}

impl One {
    fn new(program: &Arc<Program>, name: &str) -> Arc<One> {
        Arc::new(One { program: Arc::downgrade(program), name: name.to_owned(), made: Mutex::default() })
    }
}

impl Program {
    pub(crate) fn new(jit: &Jit, tier: Tier, source: &str) -> Arc<Program> {
        Program::with_hook(jit, tier, source, Box::new(|_, _| Ok(None)))
    }

    pub(crate) fn with_hook(jit: &Jit, tier: Tier, source: &str, hook: Box<Hook>) -> Arc<Program> {
        let cx = Context::new();
        let (unit, findings) = text::read(&SourceFile::new("lazy.jlir", source).unwrap(), &cx);
        assert!(!findings.has_errors(), "{findings:?}");
        let verified = verify_module(&unit.module);
        assert!(verified.is_ok(), "{verified:?}");
        let named = |func: &Func| (cx.names.text(func.name).to_owned(), func.clone());
        let funcs = unit.module.funcs().map(|(_, func)| named(func)).collect();
        let (jit, owners, compiled) = (jit.clone(), OnceLock::new(), Mutex::default());
        let program = Arc::new(Program { jit, cx, funcs, tier, owners, hook, compiled });
        let owner = |name: &String| {
            (name.clone(), program.jit.cell(program.ty(name), One::new(&program, name)).unwrap())
        };
        let owners = program.funcs.keys().map(owner).collect();
        assert!(program.owners.set(owners).is_ok());
        program
    }

    /// The signature of a function, each value on its own.
    pub(crate) fn ty(&self, name: &str) -> FunctionType {
        let signature: Signature = signature_of(&self.funcs[name]).unwrap();
        let value = |abi: &Abi| match abi {
            Abi::I64 => ValueType::scalar("Int64", Abi::I64),
            abi => ValueType::scalar("?", *abi),
        };
        let params = signature.params.iter().map(value).collect();
        let result = match &signature.results[..] {
            [one] => value(one),
            many => ValueType::tuple(many.iter().map(value).collect()),
        };
        FunctionType { symbol: name.into(), name: name.into(), params, result, signature }
    }

    pub(crate) fn owner(&self, name: &str) -> &CellOwner {
        &self.owners.get().unwrap()[name]
    }

    pub(crate) fn cell(&self, name: &str) -> IndirectCell {
        self.owner(name).cell()
    }

    /// The source of a function.
    pub(crate) fn source(self: &Arc<Program>, name: &str) -> Arc<dyn Materialize> {
        One::new(self, name)
    }

    /// Compiles a function now, as a unit of its own that reaches all others through cells.
    pub(crate) fn target(&self, name: &str) -> Target {
        self.target_style(name, Style { others: &|_| CallKind::Cell, ..self.tier.into() })
    }

    pub(crate) fn target_style(&self, name: &str, style: Style<'_>) -> Target {
        self.target_with(name, style, self)
    }

    /// The same with cells that are found elsewhere.
    pub(crate) fn target_with(&self, name: &str, style: Style<'_>, cells: &dyn FindCell) -> Target {
        let linkage = Linkage { indirect: Some(cells), ..Linkage::default() };
        self.unit(&[name], style, &linkage).target(name).unwrap()
    }

    /// A unit of several functions.
    pub(crate) fn unit(&self, names: &[&str], style: Style<'_>, linkage: &Linkage<'_>) -> Unit {
        self.jit.link(&self.compile(names, style), linkage).unwrap()
    }

    /// Such a unit before it is linked.
    pub(crate) fn compile(&self, names: &[&str], style: Style<'_>) -> Compiled {
        let source = |name: &&str| Source { func: &self.funcs[*name], ty: Some(self.ty(name).into()) };
        let sources: Vec<Source<'_>> = names.iter().map(source).collect();
        self.jit.compile(&self.cx, &sources, style).unwrap()
    }

    /// How often a function has been compiled.
    pub(crate) fn count(&self, name: &str) -> usize {
        self.compiled.lock().unwrap().iter().filter(|known| *known == name).count()
    }

    pub(crate) fn call(&self, name: &str, argument: i64) -> Result<i64, brolga_jit::CallError> {
        self.cell(name).func::<(i64,), i64>().unwrap().call((argument,))
    }
}

impl FindCell for Program {
    fn cell(&self, name: &str) -> Result<IndirectCell, String> {
        let owners = self.owners.get().ok_or("too early")?;
        owners.get(name).map(CellOwner::cell).ok_or_else(|| "no such function".to_owned())
    }
}

impl Materialize for One {
    fn materialize(&self) -> Result<Target, Box<dyn Error + Send + Sync>> {
        let program = self.program.upgrade().ok_or("the program is gone")?;
        // A compilation that panicked has made nothing.
        let mut made = self.made.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if let Some(made) = &*made {
            return Ok(made.clone());
        }
        let instead = (program.hook)(&program, &self.name)?;
        program.compiled.lock().unwrap().push(self.name.clone());
        Ok(made.insert(program.target(instead.as_deref().unwrap_or(&self.name))).clone())
    }
}
