//! Evaluates calls of a program, by the interpreter or natively, and compares the results with the program's tests.
//!
//! ```text
//! Call ── arguments ──► Val ──┬─ interpreter ───────────────┬──► Val ── show ──► text
//!                             └─ compile, bridge, call ─────┘     └── is_equal ──► verdict
//! ```
//!
//! In both cases an interpreter creates the arguments and shows the results, so a value has the same text in
//! both. Every call starts from the initial state: globals have their first values, and objects of earlier calls no longer exist.
//! Natively, a function is compiled on its first call, together with its callees; functions without a
//! native form are errors only when they are called. The functions that tests call become one unit at the first test, if all of them
//! have a native form, so that shared callees are compiled once.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use brolga_cache::Fingerprint;
use brolga_codegen::isa::CpuTarget;
use brolga_executor::{ExecutorError, ExecutorLost};
use brolga_interp::{self as interp, Interp, SimMemory, Val};
use brolga_ir::abi::NativeSignature;
use brolga_ir::func::Signature;
use brolga_ir::text::{Call, Check, Outcome as Expected};
use brolga_ir::{Block, Context, Func, FuncId, Level, Type};
use brolga_jit::{CallError, Globals, LowArg, UntypedFunc};
use brolga_opt::lower::LowerErrors;
use brolga_runtime::{Ended, Exception, Fuel, Limits, Runtime, StackFrame, show_trace};

use crate::bridge::{self, BridgeError};
use crate::cached::facts_of_run;
use crate::engine::{Engine, Unit};
use crate::error::Error;
use crate::image::{self, Image};
use crate::program::Program;
use crate::remote::{RemoteEngine, RemoteError, RemoteUnit, RemoteUntyped};
use brolga_codegen::native_type::julia_type;

/// The signal of C's `abort`, on all systems.
const SIGABRT: i32 = 6;

/// Why a call has no value.
#[derive(Debug)]
pub enum Failure {
    /// The call ended with an uncaught exception.
    Thrown {
        /// The exception's type, if the program declares it.
        ty: Option<Type>,
        /// The exception as text.
        text: String,
        /// The frames of compiled code that it came from, the innermost first; empty if the interpreter ran the call.
        trace: Vec<StackFrame>,
    },
    /// The interpreter or typed calls could not continue; the text has the reason and position.
    Stopped(String),
    /// The interpreted program has ended its process by `exit`, `abort` or the like. Compiled code ends the process itself.
    Ended(interp::ProcessEnd),
    /// The system refused a resource that running code needs.
    Refused(String),
    /// The call was not made: it has no native form, or was not compiled.
    NotCompiled(Error),
}

impl Failure {
    /// The failure, and for an exception one line for each frame that it came from.
    pub fn report(&self) -> String {
        match self {
            Failure::Thrown { trace, .. } => format!("{self}{}", show_trace(trace)),
            _ => self.to_string(),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Thrown { text, .. } => write!(f, "uncaught exception: {text}"),
            Failure::Stopped(text) | Failure::Refused(text) => f.write_str(text),
            Failure::Ended(end) => end.fmt(f),
            Failure::NotCompiled(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Failure {}

/// The outcome of a test.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// The test holds.
    Passed,
    /// The test does not hold.
    Failed {
        /// The expected outcome.
        expected: String,
        /// The actual outcome.
        got: String,
    },
    /// The test has no native form yet.
    Skipped {
        /// The missing part.
        reason: String,
    },
}

/// The outcome of a call whose blocks were counted.
#[derive(Debug)]
pub struct Counted {
    /// Its value, as Julia would show it.
    pub value: Result<String, Failure>,
    /// The number of entries of each block, by function and block. Blocks that were not entered are omitted.
    pub blocks: Vec<(FuncId, Block, u64)>,
}

/// Evaluates calls of one program.
pub struct Evaluator<'p> {
    program: &'p Program,
    engine: Option<Engine>,
    /// Units by the function that they were compiled for.
    units: BTreeMap<FuncId, Unit>,
    /// Whether compiling the tests' functions together was tried.
    tests_are_compiled: bool,
    /// The program's global variables in compiled code.
    globals: Option<Globals>,
    /// The first error in writing interpreted code's output.
    unwritten: Arc<Mutex<Option<io::Error>>>,
    /// Whether interpreted code is checked.
    checked: bool,
    /// Whether interpreted code rounds `muladd_float` once.
    fma: bool,
    /// The limit of the interpreter's heap in bytes.
    heap_limit: u64,
    /// The file to which compiled code is written, and from which it is opened.
    image: Option<PathBuf>,
    /// The fuel of its calls.
    fuel: Option<Fuel>,
    /// The call whose code is stored as a run.
    kept: Option<String>,
    /// The executor in which compiled code runs, if it is not this process.
    remote: Option<Remote>,
}

/// The functions of a program in an executor.
struct Remote {
    engine: RemoteEngine,
    /// Units by the function that they were compiled for.
    units: BTreeMap<FuncId, RemoteUnit>,
    limits: Limits,
}

impl<'p> Evaluator<'p> {
    /// Evaluates by the reference interpreter.
    pub fn interpreted(program: &'p Program) -> Self {
        Evaluator {
            program,
            engine: None,
            units: BTreeMap::new(),
            tests_are_compiled: false,
            globals: None,
            unwritten: Arc::default(),
            checked: false,
            fma: CpuTarget::Native.has_fma(),
            heap_limit: interp::Options::default().max_heap_bytes,
            image: None,
            fuel: None,
            kept: None,
            remote: None,
        }
    }

    /// Evaluates a program without doors by the reference interpreter, with all bounds checks, as an engine with closed doors runs it.
    ///
    /// # Errors
    /// As [`Program::check_doors`].
    pub fn interpreted_checked(program: &'p Program) -> Result<Self, Error> {
        program.check_doors()?;
        Ok(Evaluator { checked: true, ..Evaluator::interpreted(program) })
    }

    /// Interprets with the semantics of code for this target instead of this processor: whether `muladd_float` rounds once ([`Options::cpu_features`](crate::Options::cpu_features)).
    #[must_use]
    pub fn with_cpu_target(self, target: CpuTarget) -> Self {
        Evaluator { fma: target.has_fma(), ..self }
    }

    /// Compiles and runs native code.
    pub fn native(program: &'p Program, engine: &Engine) -> Self {
        let globals = Some(Globals::new(engine.runtime()));
        let settings = engine.settings().1;
        Evaluator {
            program,
            engine: Some(engine.clone()),
            checked: settings.checked,
            fma: settings.cpu.fma,
            globals,
            ..Evaluator::interpreted(program)
        }
    }

    /// As [`Evaluator::native`], in an executor: compiled code is loaded and runs there. Each call has these limits.
    pub fn remote(program: &'p Program, engine: &RemoteEngine, limits: Limits) -> Self {
        let remote = Remote { engine: engine.clone(), units: BTreeMap::new(), limits };
        Evaluator { remote: Some(remote), ..Evaluator::native(program, engine.engine()) }
    }

    /// As [`Evaluator::native`], through images: compiled code is written to this file, one image after the other, and opened from there.
    pub fn through_images(program: &'p Program, engine: &Engine, file: impl Into<PathBuf>) -> Self {
        Evaluator { image: Some(file.into()), ..Evaluator::native(program, engine) }
    }

    /// Runs the code of an image that the engine has opened. Functions without code in it are compiled.
    ///
    /// # Errors
    /// As [`Image::program`].
    pub fn of_image(image: &'p Image, engine: &Engine) -> Result<Self, Error> {
        Ok(Evaluator::of_unit(image.program()?, image.unit(), image.globals(), engine))
    }

    /// Runs the functions of a program that have code in a unit.
    pub(crate) fn of_unit(program: &'p Program, unit: &Unit, globals: &Globals, engine: &Engine) -> Self {
        let module = program.module();
        let has_code = |func: &Func| unit.has(&func.symbol(&module.cx));
        let units = module.funcs().filter(|(_, func)| has_code(func)).map(|(id, _)| (id, unit.clone()));
        let units = units.collect();
        Evaluator { units, globals: Some(globals.clone()), ..Evaluator::native(program, engine) }
    }

    /// If the engine has a cache, stores the code that the first call compiles as the run of this call of the program's text ([`Engine::kept_run`]).
    #[must_use]
    pub fn keeping_run(self, call: &str) -> Self {
        Evaluator { kept: Some(call.to_owned()), ..self }
    }

    /// Limits the interpreter's heap, in bytes. The limit of native code is the engine's
    /// ([`HeapOptions`](brolga_runtime::heap::HeapOptions)).
    #[must_use]
    pub fn with_heap_limit(self, bytes: u64) -> Self {
        Evaluator { heap_limit: bytes, ..self }
    }

    /// Sets the fuel for all calls together, for priced programs ([`Program::priced`], [`Options::fuel`](crate::Options::fuel)).
    #[must_use]
    pub fn with_fuel(self, fuel: &Fuel) -> Self {
        Evaluator { fuel: Some(fuel.clone()), ..self }
    }

    /// Flushes the program's output, and returns the first error since the last call. Output
    /// printed after an error is dropped until then.
    pub fn take_output_error(&mut self) -> Option<io::Error> {
        match &self.engine {
            Some(engine) => {
                engine.runtime().sink().flush();
                let there = self.remote.as_ref().and_then(|remote| remote.engine.take_output_error());
                there.or_else(|| engine.runtime().sink().take_error())
            }
            None => {
                let mut error = self.unwritten.lock().unwrap_or_else(PoisonError::into_inner);
                error.take().or_else(|| io::stdout().flush().err())
            }
        }
    }

    /// The value of a call, as Julia would show it.
    pub fn call(&mut self, call: &Call) -> Result<String, Failure> {
        let mut interp = self.interpreter();
        let val = self.charged_value(call, &mut interp)?;
        shown(&mut interp, &val)
    }

    /// The value of a call. Fuel spent by the interpreter is deducted here; compiled code deducts its own.
    fn charged_value(&mut self, call: &Call, interp: &mut Interp<'p>) -> Result<Val, Failure> {
        let val = self.value(call, interp);
        if let Some(fuel) = self.fuel.as_ref().filter(|_| self.engine.is_none()) {
            fuel.take(interp.fuel_spent());
        }
        val
    }

    /// Interprets a call, in any mode of the evaluator, with at most `max_steps` statements, and counts how often each
    /// block is entered.
    pub fn call_counting(&mut self, call: &Call, max_steps: u64) -> Counted {
        let options = interp::Options { max_steps, ..self.interpreter_options() };
        let mut interp = Interp::new(self.program.module(), options, Box::new(SimMemory::default()));
        interp.count_blocks();
        let val = Evaluator::interpreted(self.program).value(call, &mut interp);
        let counts = interp.block_counts();
        Counted { value: val.and_then(|val| shown(&mut interp, &val)), blocks: counts }
    }

    /// Runs a call `calls` times with the same arguments, and returns the elapsed time by `clock`. Changes of arguments and of global variables
    /// by one call are seen by the next. The function is compiled before the first.
    ///
    /// # Errors
    /// The call has no value, or is not a call of a high function of the program.
    pub fn measure(
        &mut self,
        call: &Call,
        calls: u32,
        clock: &dyn Fn() -> Duration,
    ) -> Result<Duration, Failure> {
        let mut interp = self.interpreter();
        let made = interp.term(&call.callee).and_then(|callee| {
            let args = call.args.iter().map(|arg| interp.term(arg)).collect::<Result<Vec<_>, _>>()?;
            Ok((callee, args))
        });
        let (callee, mut args) = made.map_err(|outcome| stopped(&mut interp, outcome))?;
        let module = self.program.module();
        let types = &module.cx.types;
        let given: Vec<Type> = args.iter().map(|arg| arg.ty(types)).collect();
        let Some(id) = module.find_method(callee.ty(types), &given) else {
            return Err(Failure::Stopped("only calls of a function of the program are measured".to_owned()));
        };
        let Some(engine) = self.engine.clone() else {
            let start = clock();
            for _ in 0..calls {
                let called = interp.call_value(callee.clone(), &args);
                called.map_err(|outcome| stopped(&mut interp, outcome))?;
            }
            return Ok(clock().saturating_sub(start));
        };
        let func = self.compiled(&engine, id, &mut interp)?;
        let signature = NativeSignature::new(types, &module[id].sig)
            .map_err(|_| Failure::Stopped("the function has no native signature".to_owned()))?;
        args.insert(0, callee);
        let took = bridge::measure(&func, &signature, &args, &mut interp, engine.runtime(), calls, clock);
        took.map_err(|error| self.unbridged(error))
    }

    /// Runs a test.
    pub fn check(&mut self, check: &Check) -> Verdict {
        self.compile_tests();
        let mut interp = self.interpreter();
        let got = self.charged_value(&check.call, &mut interp);
        if let Err(Failure::NotCompiled(Error::NotNative(reasons))) = &got {
            return Verdict::Skipped { reason: first_reason(reasons) };
        }
        if let Err(Failure::NotCompiled(Error::Roots {
            reason: reason @ brolga_gcroots::Error::Moving { .. },
            ..
        })) = &got
        {
            return Verdict::Skipped { reason: reason.to_string() };
        }
        let expected = match &check.outcome {
            Expected::Returns(term) => match interp.term(term) {
                Ok(expected) => {
                    if let Ok(got) = &got
                        && interp.is_equal(&expected, got).unwrap_or(false)
                    {
                        return Verdict::Passed;
                    }
                    typed(&mut interp, &expected)
                }
                Err(outcome) => Err(stopped(&mut interp, outcome)),
            },
            Expected::Throws(ty) => {
                let types = &self.program.module().cx.types;
                if let Err(Failure::Thrown { ty: Some(thrown), .. }) = &got
                    && types.is_subtype(*thrown, *ty)
                {
                    return Verdict::Passed;
                }
                Ok(format!("an uncaught exception of type {}", types.display(*ty)))
            }
        };
        let text = |result: Result<String, Failure>| result.unwrap_or_else(|failure| failure.to_string());
        let got = got.and_then(|val| typed(&mut interp, &val));
        Verdict::Failed { expected: text(expected), got: text(got) }
    }

    /// Compiles the functions that tests call into one unit.
    fn compile_tests(&mut self) {
        let Some(engine) = self.engine.clone().filter(|_| !self.tests_are_compiled) else { return };
        self.tests_are_compiled = true;
        let mut interp = self.interpreter();
        let calls = self.program.checks().iter().map(|check| &check.call);
        let mut ids: BTreeSet<FuncId> = calls.filter_map(|call| self.target(call, &mut interp)).collect();
        // Code of an image stays in use.
        ids.retain(|id| !self.units.contains_key(id));
        if ids.is_empty() {
            return;
        }
        // A function without a native form is reported when it is called.
        if let Some(remote) = &mut self.remote {
            remote.units.extend(remote.load(self.program, ids).into_iter().flatten());
            return;
        }
        let globals = self.globals.get_or_insert_with(|| Globals::new(engine.runtime()));
        if let Ok(unit) =
            make(&engine, self.program, ids.iter().copied(), globals, (self.image.as_deref(), None))
        {
            self.units.extend(ids.into_iter().map(|id| (id, unit.clone())));
        }
    }

    /// The program's function that a call dispatches to.
    fn target(&self, call: &Call, interp: &mut Interp<'p>) -> Option<FuncId> {
        let module = self.program.module();
        let types = &module.cx.types;
        let function = interp.term(&call.callee).ok()?.ty(types);
        let given = call.args.iter().map(|arg| Some(interp.term(arg).ok()?.ty(types)));
        let given: Vec<Type> = given.collect::<Option<_>>()?;
        let is_low = |&&id: &&FuncId| module[id].level == Level::Low;
        let low = module.methods(function).iter().find(is_low).copied();
        low.or_else(|| module.find_method(function, &given))
    }

    fn interpreter_options(&self) -> interp::Options {
        let (checked, fma, max_heap_bytes) = (self.checked, self.fma, self.heap_limit);
        interp::Options { checked, fma, max_heap_bytes, ..Default::default() }
    }

    fn interpreter(&self) -> Interp<'p> {
        let memory = Box::new(SimMemory::default());
        let max_fuel = self.fuel.as_ref().map_or(u64::MAX, Fuel::left);
        let options = interp::Options { max_fuel, ..self.interpreter_options() };
        let mut interp = Interp::new(self.program.module(), options, memory);
        let output: Box<dyn interp::Output> = match &self.engine {
            Some(engine) => Box::new(OfRuntime(engine.runtime().clone())),
            None => Box::new(Stdout { error: self.unwritten.clone() }),
        };
        interp.set_output(output);
        interp
    }

    fn value(&mut self, call: &Call, interp: &mut Interp<'p>) -> Result<Val, Failure> {
        let made = interp.term(&call.callee).and_then(|callee| {
            let args = call.args.iter().map(|arg| interp.term(arg)).collect::<Result<Vec<_>, _>>()?;
            Ok((callee, args))
        });
        let (callee, args) = made.map_err(|outcome| stopped(interp, outcome))?;
        let module = self.program.module();
        let types = &module.cx.types;
        let function = callee.ty(types);
        if let Some(&id) = module.methods(function).iter().find(|&&id| module[id].level == Level::Low) {
            return self.low_value(id, &args, interp);
        }
        let given: Vec<Type> = args.iter().map(|arg| arg.ty(types)).collect();
        match (self.engine.clone(), module.find_method(function, &given)) {
            (Some(engine), Some(id)) => self.native_value(&engine, id, callee, args, interp),
            // A callee that is not a function of the program is a builtin, or an exception: neither is compiled code.
            _ => interp.call_value(callee, &args).map_err(|outcome| stopped(interp, outcome)),
        }
    }

    /// The compiled form of a function, with global variables reset to their first values.
    fn compiled(
        &mut self,
        engine: &Engine,
        id: FuncId,
        interp: &mut Interp<'p>,
    ) -> Result<UntypedFunc, Failure> {
        let globals = self.globals.get_or_insert_with(|| Globals::new(engine.runtime()));
        let unit = match self.units.entry(id) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => {
                let kept = self.kept.take();
                let source = self.program.source();
                let run = kept.and_then(|call| Some((engine.cache_of(source.name())?, call)));
                let run = run.map(|(cache, call)| {
                    facts_of_run(&cache, source.name(), source.text().as_bytes(), &call)
                });
                let how = (self.image.as_deref(), run.as_ref());
                let made = make(engine, self.program, [id], globals, how);
                new.insert(made.map_err(Failure::NotCompiled)?)
            }
        };
        bridge::set_globals(globals, interp, engine.runtime())
            .map_err(|error| Failure::Stopped(error.to_string()))?;
        let symbol = self.program.module()[id].symbol(&self.program.module().cx);
        unit.untyped(&symbol).map_err(|error| Failure::NotCompiled(error.into()))
    }

    fn native_value(
        &mut self,
        engine: &Engine,
        id: FuncId,
        callee: Val,
        mut args: Vec<Val>,
        interp: &mut Interp<'p>,
    ) -> Result<Val, Failure> {
        let module = self.program.module();
        let signature = NativeSignature::new(&module.cx.types, &module[id].sig)
            .map_err(|_| Failure::Stopped("the function has no native signature".to_owned()));
        args.insert(0, callee);
        if self.remote.is_some() {
            return self.remote_value(id, &signature?, &args, interp);
        }
        let func = self.compiled(engine, id, interp)?;
        let signature = signature?;
        let mut call = || bridge::call(&func, &signature, &args, interp, engine.runtime());
        let called = match &self.fuel {
            Some(fuel) => engine.runtime().limited(&Limits::new().fuelled_by(fuel), call),
            None => Ok(call()),
        };
        let value = called.map_err(|error| Failure::Stopped(error.to_string()))?;
        value.map_err(|error| self.unbridged(error))
    }

    /// A call in the executor.
    fn remote_value(
        &mut self,
        id: FuncId,
        signature: &NativeSignature,
        args: &[Val],
        interp: &mut Interp<'p>,
    ) -> Result<Val, Failure> {
        let (func, limits) = self.remote_func(id)?;
        if bridge::is_bits(signature) {
            let low = bridge::low_args(signature, args, interp).map_err(|error| self.unbridged(error))?;
            let (results, room) = func.call_low(low, &limits).map_err(|error| self.uncalled(error))?;
            let value = bridge::low_result(signature, &results, room, interp);
            return value.map_err(|error| self.unbridged(error));
        }
        func.call_objects(interp, args, &limits).map_err(|error| self.uncalled(error))
    }

    /// A function in the executor, with global variables reset to their first values, and the limits of its calls.
    fn remote_func(&mut self, id: FuncId) -> Result<(RemoteUntyped, Limits), Failure> {
        let (program, fuel) = (self.program, self.fuel.clone());
        let Some(remote) = &mut self.remote else {
            return Err(Failure::Stopped("there is no executor".to_owned()));
        };
        if !remote.units.contains_key(&id) {
            let loaded = remote.load(program, [id]).map_err(|error| match error {
                RemoteError::Program(error) => Failure::NotCompiled(error),
                RemoteError::Executor(error) => unexecuted(&program.module().cx, error),
                other => Failure::Refused(other.to_string()),
            })?;
            remote.units.extend(loaded);
        }
        let limits = match &fuel {
            Some(fuel) => remote.limits.clone().fuelled_by(fuel),
            None => remote.limits.clone(),
        };
        // It was just loaded, if it was missing.
        let unit =
            remote.units.get(&id).ok_or_else(|| Failure::Stopped("the function is not loaded".into()))?;
        let symbol = program.module()[id].symbol(&program.module().cx);
        let func = unit.reset().and_then(|()| unit.untyped(&symbol));
        let func = func.map_err(|error| unexecuted(&program.module().cx, error))?;
        Ok((func, limits))
    }

    fn uncalled(&self, error: ExecutorError) -> Failure {
        unexecuted(&self.program.module().cx, error)
    }

    fn unbridged(&self, error: BridgeError) -> Failure {
        unbridged(&self.program.module().cx, error)
    }

    /// Calls a low function, which takes and returns registers: scalars are passed as their bits, several results as a tuple.
    fn low_value(&mut self, id: FuncId, args: &[Val], interp: &mut Interp<'p>) -> Result<Val, Failure> {
        let module = self.program.module();
        let types = &module.cx.types;
        let Signature { params, results, .. } = &module[id].sig;
        let bits: Option<Vec<u128>> = args.iter().map(Val::as_bits).collect();
        let Some(bits) = bits.filter(|bits| bits.len() == params.len()) else {
            let name = module[id].symbol(&module.cx);
            return Err(Failure::Stopped(format!(
                "the low function `{name}` takes {} scalars",
                params.len()
            )));
        };
        let given: Vec<Val> =
            params.iter().zip(bits).map(|(param, bits)| Val::bits(types, param.ty, bits)).collect();
        let got: Vec<u128> = match self.engine.clone() {
            Some(_) if self.remote.is_some() => {
                let (func, limits) = self.remote_func(id)?;
                let bits = given.iter().filter_map(Val::as_bits).map(LowArg::Bits).collect();
                let (results, _) = func.call_low(bits, &limits).map_err(|error| self.uncalled(error))?;
                results
            }
            Some(engine) => {
                let bits: Vec<u128> = given.iter().filter_map(Val::as_bits).collect();
                let func = self.compiled(&engine, id, interp)?;
                func.call(&bits).map_err(|error| match error {
                    CallError::Exception(exception) => thrown(&self.program.module().cx, &exception),
                    CallError::Attach(error) => Failure::Refused(error.to_string()),
                    other => Failure::Stopped(other.to_string()),
                })?
            }
            None => {
                let got = interp.call_low(id, &given).map_err(|outcome| stopped(interp, outcome))?;
                got.iter().filter_map(Val::as_bits).collect()
            }
        };
        let lows = results.iter().filter_map(|ty| ty.as_low());
        let mut vals: Vec<Val> =
            lows.zip(got).map(|(low, bits)| Val::bits(types, julia_type(types, low), bits)).collect();
        match vals.len() {
            0 => Ok(Val::NOTHING),
            1 => Ok(vals.remove(0)),
            _ => interp.tuple(&vals).map_err(|outcome| stopped(interp, outcome)),
        }
    }
}

impl Remote {
    /// Loads functions as one unit.
    fn load(
        &self,
        program: &Program,
        ids: impl IntoIterator<Item = FuncId> + Clone,
    ) -> Result<Vec<(FuncId, RemoteUnit)>, RemoteError> {
        let unit = self.engine.compile_only(program, ids.clone())?;
        Ok(ids.into_iter().map(|id| (id, unit.clone())).collect())
    }
}

/// The failure for a call in an executor without a value.
fn unexecuted(cx: &Arc<Context>, error: ExecutorError) -> Failure {
    match error {
        ExecutorError::Call(error) => unbridged(cx, BridgeError::Call(error)),
        // As in process, the program has ended its process.
        ExecutorError::Lost(ExecutorLost { status: Some(status), ended: None, .. }) => {
            Failure::Ended(interp::ProcessEnd::Exit(status))
        }
        ExecutorError::Lost(ExecutorLost { signal: Some(SIGABRT), ended: None, .. }) => {
            Failure::Ended(interp::ProcessEnd::Abort)
        }
        ExecutorError::Lost(lost) => Failure::Refused(lost.to_string()),
        other => Failure::Stopped(other.to_string()),
    }
}

/// The failure for a call of compiled code without a value, with types of a context.
pub(crate) fn unbridged(cx: &Arc<Context>, error: BridgeError) -> Failure {
    match error {
        BridgeError::Call(CallError::Exception(exception)) => thrown(cx, &exception),
        BridgeError::Object(brolga_runtime::ObjectCallError::Exception(exception)) => thrown(cx, &exception),
        BridgeError::Call(CallError::Attach(error)) => Failure::Refused(error.to_string()),
        BridgeError::Object(brolga_runtime::ObjectCallError::Attach(error)) => {
            Failure::Refused(error.to_string())
        }
        other => Failure::Stopped(other.to_string()),
    }
}

fn thrown(cx: &Arc<Context>, exception: &Exception) -> Failure {
    Failure::Thrown {
        ty: exception.type_in(cx),
        text: exception.to_string(),
        trace: exception.trace().to_vec(),
    }
}

/// Compiles the functions and their callees, through an image if requested, or stored as a run under the given facts.
fn make(
    engine: &Engine,
    program: &Program,
    ids: impl IntoIterator<Item = FuncId>,
    globals: &Globals,
    (image, run): (Option<&Path>, Option<&Fingerprint>),
) -> Result<Unit, Error> {
    let Some(path) = image else { return engine.compile_with(program, ids, globals, run) };
    engine.need_open_doors()?;
    let module = program.module();
    image::write(path, &engine.making().image(module, ids, None)?)?;
    let file = image::ImageFile::open(path)?;
    Ok(engine.open_in(&file, module.cx.clone(), globals)?.unit)
}

/// The first reason why a function has no native form, and how many more there are.
fn first_reason(reasons: &LowerErrors) -> String {
    let function = &reasons.function;
    match reasons.errors.as_slice() {
        [] => format!("`{function}` has no native form"),
        [only] => format!("`{function}`: {only}"),
        [first, rest @ ..] => format!("`{function}`: {first} (and {} more)", rest.len()),
    }
}

/// The text of a value, as Julia's `show` writes it.
fn shown(interp: &mut Interp<'_>, val: &Val) -> Result<String, Failure> {
    interp.show(val).map_err(|outcome| stopped(interp, outcome))
}

/// The text of a value and its type: different values may have the same text.
fn typed(interp: &mut Interp<'_>, val: &Val) -> Result<String, Failure> {
    let types = &interp.module().cx.types;
    let ty = types.display(val.type_of(types)).to_string();
    Ok(format!("{}::{ty}", shown(interp, val)?))
}

pub(crate) fn stopped(interp: &mut Interp<'_>, outcome: interp::Outcome) -> Failure {
    match outcome {
        interp::Outcome::Thrown(val) => {
            let types = &interp.module().cx.types;
            let ty = val.type_of(types);
            // Showing an exception can itself run out of memory; its type is still available.
            let text = interp.show_error(&val).unwrap_or_else(|_| types.display(ty).to_string());
            Failure::Thrown { ty: Some(ty), text, trace: Vec::new() }
        }
        interp::Outcome::Error(error) => Failure::Stopped(error.to_string()),
        interp::Outcome::OutOfFuel if interp.is_out_of_fuel() => Failure::Stopped(Ended::Fuel.to_string()),
        interp::Outcome::Ended(end) => Failure::Ended(end),
        interp::Outcome::OutOfFuel => Failure::Stopped("the call took more steps than allowed".to_owned()),
    }
}

/// The output of a native evaluator's interpreter: the output of compiled code. The interpreter runs calls of bodiless functions, such as `println(1)`.
struct OfRuntime(Arc<Runtime>);

impl interp::Output for OfRuntime {
    fn write(&mut self, bytes: &[u8]) {
        self.0.sink().write(bytes);
    }
}

/// The output of the interpreted program. The first error is kept for the host, and later output is dropped.
struct Stdout {
    error: Arc<Mutex<Option<io::Error>>>,
}

impl interp::Output for Stdout {
    fn write(&mut self, bytes: &[u8]) {
        let mut error = self.error.lock().unwrap_or_else(PoisonError::into_inner);
        if error.is_none() {
            *error = io::stdout().write_all(bytes).err();
        }
    }
}
