//! Attacks in the process: the interpreter and native code agree, and the heap stays intact.
//!
//! ```text
//! parts ── read, verify, doors ──► the accepted parts, in one unit for each of two engines
//!          each call: interpreter (checks turned on) ── text of the value or of the exception ── the same natively
//!          each part: a full collection, which checks references, canaries, and that no object remains
//! ```
//!
//! A part that is refused, or has no native form, is omitted. A call whose result the interpreter cannot
//! determine (it stops with an error, or takes too many steps) is made nevertheless: it has to end in time
//! and leave the heap intact.

mod arena;
mod ended;

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use brolga_engine::bridge::{self, BridgeError};
use brolga_engine::{Error, Program, Unit};
use brolga_interp::{self as interp, Interp, Outcome as End, SimMemory, Val};
use brolga_ir::FuncId;
use brolga_ir::abi::NativeSignature;
use brolga_ir::diag::Severity;
use brolga_ir::text::{Call, Check};
use brolga_jit::CallError;
use brolga_runtime::{Limits, Runtime};

use super::{Failure, Trouble, fenced};
use crate::attack::Input;
pub use arena::Arena;
use arena::Named;
use ended::{Ended, Ending};

/// The time limit of a call.
const DEADLINE: Duration = Duration::from_secs(20);
/// The maximum bytes of objects.
const HEAP: usize = 32 << 20;
/// The maximum number of statements of a call in the interpreter.
const STEPS: u64 = 200_000;
/// The start of the interpreter's memory. If engines disagree, the call is interpreted again in memory
/// elsewhere, so that results derived from addresses are not compared.
const FIRST: u64 = 1 << 16;
const ELSEWHERE: u64 = 0x7fa3_5b61_c4d0;

/// The outcomes of an input's programs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Attacked {
    /// Programs that were run.
    pub programs: usize,
    /// Programs that were refused: as text, because of doors, or because they have no native form.
    pub refused: usize,
    /// Calls on which the interpreter and an engine agreed, counted per engine.
    pub agreed: usize,
    /// The number of them that returned.
    pub returned: usize,
    /// Calls whose result the interpreter cannot determine.
    pub undecided: usize,
}

/// Runs the programs of an input, or one of them.
///
/// # Errors
/// The program that violates a check, on its own.
pub fn check_attack(
    seed: u64,
    input: &Input,
    only: Option<usize>,
    arena: &Arena,
) -> Result<Attacked, Box<Failure>> {
    let parts: Vec<usize> = only.map_or((0..input.parts.len()).collect(), |part| vec![part]);
    let failed = |parts: &[usize], trouble| Box::new(Failure { seed, text: input.text(parts).0, trouble });
    let (runtime, engines) = arena.of(seed);
    let made = fenced("compiling", || made(input, &parts, engines)).and_then(|made| made);
    let Some((batch, units)) = made.map_err(|trouble| failed(&parts, trouble))? else {
        return Ok(Attacked { refused: parts.len(), ..Attacked::default() });
    };
    let (programs, refused) = (batch.parts.len(), parts.len() - batch.parts.len());
    let mut attacked = Attacked { programs, refused, ..Attacked::default() };
    let expected = batch.expected(input);
    for ((name, _), unit) in engines.into_iter().zip(&units) {
        let run = Run { program: &batch.program, name, unit, runtime };
        let mut calls = batch.program.checks().iter().zip(&expected);
        for &part in &batch.parts {
            let texts = &input.parts[part].calls;
            let calls = texts.iter().zip(calls.by_ref());
            let ran = calls.into_iter().try_for_each(|(text, (check, expected))| {
                run.compare(text, &check.call, expected, &mut attacked)
            });
            ran.and_then(|()| run.check_heap()).map_err(|trouble| failed(&[part], trouble))?;
        }
    }
    Ok(attacked)
}

/// The code of an input in an engine.
struct Run<'a> {
    program: &'a Program,
    /// The engine's name in reports.
    name: &'a str,
    unit: &'a Unit,
    runtime: &'a Arc<Runtime>,
}

impl Run<'_> {
    /// Makes a call and compares its end with the expected one.
    fn compare(
        &self,
        text: &str,
        call: &Call,
        expected: &Ending,
        attacked: &mut Attacked,
    ) -> Result<(), Trouble> {
        let Some(callee) = callee(self.program, call) else { return Ok(()) };
        let got = fenced("a call", || native(self.program, self.unit, callee, call, self.runtime))?;
        let is_decided = expected.how.is_decided() && got.how.is_decided();
        let differs =
            || !expected.agrees(&got) && interpreted(self.program, call, ELSEWHERE).agrees(expected);
        // A program whose result the interpreter cannot determine may not terminate: then reaching the
        // deadline is correct.
        let is_late = got.how == Ended::Late && expected.how.is_decided();
        if is_late || is_decided && differs() {
            let [one, other] = expected.different(&got);
            let outcomes = vec![("interpreter".to_owned(), one), (self.name.to_owned(), other)];
            return Err(Trouble::Differs { call: text.to_owned(), outcomes, opt_limit: None });
        }
        attacked.agreed += usize::from(is_decided);
        attacked.undecided += usize::from(!is_decided);
        attacked.returned += usize::from(matches!(got.how, Ended::Value(_)));
        Ok(())
    }

    /// A full collection, which checks the heap.
    fn check_heap(&self) -> Result<(), Trouble> {
        let collected = fenced("verifying the heap", || self.runtime.enter(|scope| scope.collect()))?;
        collected.map_err(|error| Trouble::Malformed(error.to_string()))
    }
}

/// The accepted parts of an input.
struct Batch {
    parts: Vec<usize>,
    program: Program,
}

impl Batch {
    /// The expected end of each call.
    fn expected(&self, input: &Input) -> Vec<Ending> {
        let parts = self.parts.iter().map(|&part| &input.parts[part]);
        let compared = parts.flat_map(|part| part.calls.iter().map(|_| part.is_compared));
        let expect = |(check, is_compared): (&Check, bool)| match is_compared {
            true => interpreted(&self.program, &check.call, FIRST),
            false => Ending::undecided("left open"),
        };
        self.program.checks().iter().zip(compared).map(expect).collect()
    }
}

/// Reads the parts, omitting those that are refused.
fn read(input: &Input, parts: &[usize]) -> Result<Option<Batch>, Trouble> {
    let mut parts = parts.to_vec();
    loop {
        if parts.is_empty() {
            return Ok(None);
        }
        let (text, starts) = input.text(&parts);
        let error = match Program::read("attack.jlir", text.as_bytes()) {
            Ok(program) => match program.check_doors() {
                Ok(()) => return Ok(Some(Batch { parts, program })),
                Err(error) => error,
            },
            Err(error) => error,
        };
        let Error::Broken(broken) = &error else { return Err(Trouble::Unreadable(error.to_string())) };
        let errors = broken.findings.iter().filter(|finding| finding.severity == Severity::Error);
        let lines = errors.map(|finding| broken.source.position(finding.at.start).line as usize);
        // The last part that begins at or before the line.
        let refused: BTreeSet<usize> =
            lines.filter_map(|line| starts.partition_point(|&start| start <= line).checked_sub(1)).collect();
        if refused.is_empty() {
            return Err(Trouble::Unreadable(error.to_string()));
        }
        let mut number = 0;
        parts.retain(|_| {
            number += 1;
            !refused.contains(&(number - 1))
        });
    }
}

/// The accepted parts with a native form, and their code in each engine.
fn made(input: &Input, parts: &[usize], engines: [&Named; 2]) -> Result<Option<(Batch, Vec<Unit>)>, Trouble> {
    let mut parts = parts.to_vec();
    'parts: loop {
        let Some(batch) = read(input, &parts)? else { return Ok(None) };
        let called: BTreeSet<FuncId> =
            batch.program.checks().iter().filter_map(|check| callee(&batch.program, &check.call)).collect();
        let mut units = Vec::new();
        for (name, engine) in engines {
            match engine.compile_only(&batch.program, called.iter().copied()) {
                Ok(unit) => units.push(unit),
                Err(error) => {
                    // A dynamic call reaches every function, so a function without a native form prevents the
                    // others from being compiled.
                    let Error::NotNative(reasons) = &error else {
                        return Err(Trouble::Refused { engine: name.clone(), why: error.to_string() });
                    };
                    let before = batch.parts.len();
                    parts = batch.parts;
                    parts.retain(|part| !reasons.function.starts_with(&format!("p{part}(")));
                    if parts.len() == before {
                        return Err(Trouble::Refused { engine: name.clone(), why: error.to_string() });
                    }
                    continue 'parts;
                }
            }
        }
        return Ok(Some((batch, units)));
    }
}

fn callee(program: &Program, call: &Call) -> Option<FuncId> {
    let module = program.module();
    let mut interp = Interp::new(module, interp::Options::default(), Box::new(SimMemory::default()));
    let function = interp.term(&call.callee).ok()?.ty(&module.cx.types);
    module.methods(function).first().copied()
}

/// The output of interpreted code.
#[derive(Clone, Default)]
struct Printed(Rc<RefCell<Vec<u8>>>);

impl interp::Output for Printed {
    fn write(&mut self, bytes: &[u8]) {
        self.0.borrow_mut().extend_from_slice(bytes);
    }
}

/// The end of a call in an interpreter whose memory begins at `first`.
fn interpreted(program: &Program, call: &Call, first: u64) -> Ending {
    // Bounds are always checked, as in engines.
    let options = interp::Options {
        checked: true,
        max_steps: STEPS,
        max_heap_bytes: HEAP as u64,
        ..Default::default()
    };
    let mut interp = Interp::new(program.module(), options, Box::new(SimMemory::at(first)));
    let printed = Printed::default();
    interp.set_output(Box::new(printed.clone()));
    let how = match interp.run_call(call) {
        Ok(val) => shown(&mut interp, &val),
        Err(End::Thrown(exception)) => match interp.show_error(&exception) {
            Ok(text) => Ended::Thrown(text),
            Err(_) => Ended::Undecided("the exception has no text".to_owned()),
        },
        Err(End::OutOfFuel) => Ended::Undecided("too many steps".to_owned()),
        Err(End::Error(error)) => Ended::Undecided(error.to_string()),
        Err(End::Ended(end)) => Ended::Undecided(end.to_string()),
    };
    drop(interp);
    Ending { how, printed: printed.0.take() }
}

fn shown(interp: &mut Interp<'_>, val: &Val) -> Ended {
    let types = &interp.module().cx.types;
    let ty = types.display(val.type_of(types)).to_string();
    match interp.show(val) {
        Ok(text) => Ended::Value(format!("{text}::{ty}")),
        Err(_) => Ended::Undecided("the value has no text".to_owned()),
    }
}

fn native(program: &Program, unit: &Unit, id: FuncId, call: &Call, runtime: &Arc<Runtime>) -> Ending {
    let module = program.module();
    let mut interp = Interp::new(module, interp::Options::default(), Box::new(SimMemory::default()));
    let how = called(&mut interp, unit, id, call, runtime).unwrap_or_else(Ended::Undecided);
    Ending { how: how.or_left_out(), printed: runtime.sink().take_captured() }
}

/// The end of a call of compiled code; an error tells why the call could not be made, or its value not be
/// converted.
fn called(
    interp: &mut Interp<'_>,
    unit: &Unit,
    id: FuncId,
    call: &Call,
    runtime: &Arc<Runtime>,
) -> Result<Ended, String> {
    let module = interp.module();
    let func = unit.untyped(&module[id].symbol(&module.cx)).map_err(|error| error.to_string())?;
    let signature = NativeSignature::new(&module.cx.types, &module[id].sig)
        .map_err(|_| "the function has no native signature".to_owned())?;
    let terms = std::iter::once(&call.callee).chain(&call.args);
    let vals: Result<Vec<Val>, End> = terms.map(|term| interp.term(term)).collect();
    let vals = vals.map_err(|_| "an argument is not a value".to_owned())?;
    let limits = Limits::new().timeout(DEADLINE);
    let limited = runtime.limited(&limits, || bridge::call(&func, &signature, &vals, interp, runtime));
    let Ok(result) = limited else { return Ok(Ended::Late) };
    match result {
        Ok(val) => Ok(shown(interp, &val)),
        Err(BridgeError::Call(CallError::Exception(exception))) => Ok(Ended::Thrown(exception.to_string())),
        Err(BridgeError::Object(brolga_runtime::ObjectCallError::Exception(exception))) => {
            Ok(Ended::Thrown(exception.to_string()))
        }
        Err(error) => Err(error.to_string()),
    }
}
