//! Attacks in the process: the interpreter and native code agree, and the heap is whole.
//!
//! ```text
//! parts ── read, verify, doors ──► those that are programs, in one unit for each of two engines
//!          each call: interpreter (checks turned on) ── text of the value or of the exception ── the same natively
//!          each part: a full collection, which checks references, canaries, and that nothing is left
//! ```
//!
//! A part that is refused, or has no native form, is left out. A call that the interpreter does not decide (it stops with an error, or takes too many steps) is made all the
//! same: it has to end in time and leave the heap whole.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use brolga_engine::bridge::{self, BridgeError};
use brolga_engine::{Engine, Error, Options, Program, Unit};
use brolga_gcroots::Lowering as Roots;
use brolga_interp::{self as interp, Interp, Outcome as End, SimMemory, Val};
use brolga_ir::FuncId;
use brolga_ir::abi::NativeSignature;
use brolga_ir::diag::Severity;
use brolga_ir::text::{Call, Check};
use brolga_jit::CallError;
use brolga_opt::OptLevel;
use brolga_runtime::heap::{HeapOptions, Stress};
use brolga_runtime::{Limits, Output, Runtime};

use super::{Failure, Trouble, fenced};
use crate::attack::{Bounds, Input, Part};

/// The time of a call.
const DEADLINE: Duration = Duration::from_secs(2);
/// Bytes of objects.
const HEAP: usize = 32 << 20;
/// Statements of a call in the interpreter.
const STEPS: u64 = 200_000;
/// One input in so many is run with a collection at every safepoint.
const STRESSED: u64 = 16;

/// How the programs of an input ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Attacked {
    /// Programs that were run.
    pub programs: usize,
    /// Programs that are refused: as text, because of doors, or because they have no native form.
    pub refused: usize,
    /// Calls on which both agreed, in one engine each.
    pub agreed: usize,
    /// How many of them returned.
    pub returned: usize,
    /// Calls that the interpreter does not decide.
    pub undecided: usize,
}

/// The engines that attacks are run by: with closed doors, on heaps with canaries.
pub struct Arena {
    usual: Arc<Runtime>,
    stressed: Arc<Runtime>,
    engines: Vec<(String, Engine)>,
    stressed_engines: Vec<(String, Engine)>,
}

impl Arena {
    /// The engines of this process.
    ///
    /// # Errors
    /// There is no code generator for the processor, or no memory for code.
    pub fn new() -> Result<Arena, Error> {
        let (usual, engines) = engines(Stress::Off)?;
        let (stressed, stressed_engines) = engines_under_stress()?;
        Ok(Arena { usual, stressed, engines, stressed_engines })
    }

    /// The two engines of a seed.
    fn of(&self, seed: u64) -> (&Arc<Runtime>, [&(String, Engine); 2]) {
        let (runtime, engines) = match seed % STRESSED {
            3 => (&self.stressed, &self.stressed_engines),
            _ => (&self.usual, &self.engines),
        };
        // O0 and O2 as a rule, O1 and O3 at times; the kinds of roots change places.
        let [low, high] = if seed % 8 == 5 { [1, 3] } else { [0, 2] };
        let kind = (seed / 2 % 2) as usize;
        (runtime, [&engines[2 * low + kind], &engines[2 * high + 1 - kind]])
    }
}

fn engines_under_stress() -> Result<(Arc<Runtime>, Vec<(String, Engine)>), Error> {
    engines(Stress::Paced(256))
}

fn engines(stress: Stress) -> Result<(Arc<Runtime>, Vec<(String, Engine)>), Error> {
    let mut runtime: Option<Arc<Runtime>> = None;
    let mut engines = Vec::new();
    for level in OptLevel::ALL {
        for roots in [Roots::Linked, Roots::Maps] {
            let heap = HeapOptions {
                limit: Some(HEAP),
                stress,
                poison: true,
                verify: true,
                canaries: true,
                ..HeapOptions::default()
            };
            let options = Options::new().opt_level(level).roots(roots).heap(heap).output(Output::Capture);
            let engine = match &runtime {
                Some(runtime) => Engine::on(runtime, options)?,
                None => Engine::new(options)?,
            };
            runtime.get_or_insert_with(|| engine.runtime().clone());
            let stressed = if stress == Stress::Off { "" } else { ", collections at safepoints" };
            engines.push((format!("native code at {level:?} with {roots:?} roots{stressed}"), engine));
        }
    }
    let runtime = runtime.unwrap_or_else(|| engines[0].1.runtime().clone());
    Ok((runtime, engines))
}

/// How a call ended, as text.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Ended {
    Value(String),
    Thrown(String),
    Undecided(String),
    /// Compiled code does not do it, as docs/ir.md says.
    LeftOut,
}

impl Ended {
    /// Whether two engines that ended like this agree.
    fn agrees(&self, other: &Ended) -> bool {
        match (self, other) {
            (Ended::Value(a), Ended::Value(b)) | (Ended::Thrown(a), Ended::Thrown(b)) => {
                a == b || comparable(a) == comparable(b)
            }
            _ => false,
        }
    }
}

impl std::fmt::Display for Ended {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Ended::Value(text) => write!(f, "{text}"),
            Ended::Thrown(text) => write!(f, "throws {text}"),
            Ended::Undecided(text) => write!(f, "cannot go on: {text}"),
            Ended::LeftOut => f.write_str("does what native code does not do"),
        }
    }
}

/// Runs the programs of an input, or one of them.
///
/// # Errors
/// A program for which something does not hold, alone.
pub fn check_attack(
    seed: u64,
    input: &Input,
    only: Option<usize>,
    arena: &Arena,
) -> Result<Attacked, Box<Failure>> {
    let parts: Vec<usize> = only.map_or((0..input.parts.len()).collect(), |part| vec![part]);
    let failed = |part: Option<usize>, trouble| {
        let parts = part.map_or(parts.clone(), |part| vec![part]);
        let text = input.text(&parts, Bounds::Unchecked).0;
        Box::new(Failure { seed, text, trouble })
    };
    let mut attacked = Attacked::default();
    let (runtime, engines) = arena.of(seed);
    let made = fenced("compiling", || made(input, &parts, engines)).and_then(|made| made);
    let Some((batch, units)) = made.map_err(|trouble| failed(None, trouble))? else {
        return Ok(Attacked { refused: parts.len(), ..attacked });
    };
    let Batch { parts: kept, attacker, oracle } = batch;
    (attacked.programs, attacked.refused) = (kept.len(), parts.len() - kept.len());
    let compared = kept.iter().flat_map(|&part| {
        let Part { calls, is_compared, .. } = &input.parts[part];
        calls.iter().map(|_| *is_compared)
    });
    let expect = |(check, is_compared): (&Check, bool)| match is_compared {
        true => interpreted(&oracle, &check.call),
        false => (Ended::Undecided("left open".to_owned()), Vec::new()),
    };
    let expected: Vec<(Ended, Vec<u8>)> = oracle.checks().iter().zip(compared).map(expect).collect();
    for ((name, _), unit) in engines.into_iter().zip(&units) {
        let mut calls = attacker.checks().iter().zip(&expected);
        for &part in &kept {
            let of_part: Vec<_> = calls.by_ref().take(input.parts[part].calls.len()).collect();
            for ((check, (expected, printed)), text) in of_part.into_iter().zip(&input.parts[part].calls) {
                let Some(callee) = callee(&attacker, &check.call) else { continue };
                let ended = fenced("a call", || native(&attacker, unit, callee, &check.call, runtime));
                let (got, got_printed) = ended.map_err(|trouble| failed(Some(part), trouble))?;
                let is_late = matches!(&got, Ended::Undecided(why) if why == LATE);
                let is_decided = !matches!(expected, Ended::Undecided(_))
                    && !matches!(got, Ended::Undecided(_) | Ended::LeftOut);
                if is_late || is_decided && !(expected.agrees(&got) && same_output(printed, &got_printed)) {
                    let shown = |ended: &Ended, printed: &[u8]| match printed {
                        [] => ended.to_string(),
                        printed => format!("{ended}, prints {:?}", String::from_utf8_lossy(printed)),
                    };
                    let [one, other] = different(
                        &comparable(&shown(expected, printed)),
                        &comparable(&shown(&got, &got_printed)),
                    );
                    let outcomes = vec![("interpreter".to_owned(), one), (name.clone(), other)];
                    return Err(failed(
                        Some(part),
                        Trouble::Differs { call: text.clone(), outcomes, opt_limit: None },
                    ));
                }
                attacked.agreed += usize::from(is_decided);
                attacked.undecided += usize::from(!is_decided);
                attacked.returned += usize::from(matches!(got, Ended::Value(_)));
            }
            fenced("verifying the heap", || whole(runtime))
                .and_then(|whole| whole)
                .map_err(|trouble| failed(Some(part), trouble))?;
        }
    }
    Ok(attacked)
}

/// What a deadline says.
const LATE: &str = "it does not end in time";

/// What the run time says of operations that native code does not do.
const LEFT_OUT: [&str; 3] = [
    "by a name that is known at run time only",
    "as a function that is known at run time only",
    "CompileError",
];

/// A text without addresses, and without the messages of `ErrorException`s: what is said of operands that no operation takes is not compared.
fn comparable(text: &str) -> String {
    let mut text = without_messages(text);
    let mut from = 0;
    while let Some(at) = text[from..].find("@0x").map(|at| from + at + 3) {
        let end = text[at..].find(|c: char| !c.is_ascii_hexdigit()).map_or(text.len(), |end| at + end);
        text.replace_range(at..end, "");
        from = at;
    }
    text
}

fn same_output(one: &[u8], other: &[u8]) -> bool {
    let text = |bytes| comparable(&String::from_utf8_lossy(bytes));
    one == other || text(one) == text(other)
}

fn without_messages(text: &str) -> String {
    const NAME: &str = "ErrorException(";
    let (mut left, mut kept) = (text, String::new());
    while let Some(at) = left.find(NAME) {
        let (before, rest) = left.split_at(at + NAME.len());
        kept.push_str(before);
        // Inside of a string, the quotes are escaped once or more.
        let quote = rest.find('"').filter(|&at| rest[..at].bytes().all(|byte| byte == b'\\'));
        let end = quote.and_then(|quote| {
            let close = format!("{})", &rest[..=quote]);
            rest[quote + 1..].find(&close).map(|end| quote + 1 + end + close.len() - 1)
        });
        left = match end {
            Some(end) => {
                kept.push('_');
                &rest[end..]
            }
            None => rest,
        };
    }
    kept + left
}

/// Two texts without most of what they have in common.
fn different(one: &str, other: &str) -> [String; 2] {
    const AROUND: usize = 120;
    let same = one.chars().zip(other.chars()).take_while(|(a, b)| a == b).count();
    let of = |text: &str| {
        let dots = if same > AROUND { "…" } else { "" };
        let shown: String = text.chars().skip(same.saturating_sub(AROUND)).take(2 * AROUND).collect();
        format!("{dots}{shown}")
    };
    [of(one), of(other)]
}

struct Batch {
    parts: Vec<usize>,
    /// As the attacker writes it.
    attacker: Program,
    /// As the interpreter runs it.
    oracle: Program,
}

/// Reads the parts, without those that are refused.
fn read(input: &Input, parts: &[usize]) -> Result<Option<Batch>, Trouble> {
    let mut parts = parts.to_vec();
    loop {
        if parts.is_empty() {
            return Ok(None);
        }
        let (text, starts) = input.text(&parts, Bounds::Unchecked);
        let error = match Program::read("attack.jlir", text.as_bytes()) {
            Ok(attacker) => match attacker.check_doors() {
                Ok(()) => {
                    let text = input.text(&parts, Bounds::Checked).0;
                    let oracle = Program::read("attack.jlir", text.as_bytes())
                        .map_err(|error| Trouble::Unreadable(error.to_string()))?;
                    return Ok(Some(Batch { parts, attacker, oracle }));
                }
                Err(error) => error,
            },
            Err(error) => error,
        };
        let Error::Broken(broken) = &error else { return Err(Trouble::Unreadable(error.to_string())) };
        let errors = broken.findings.iter().filter(|finding| finding.severity == Severity::Error);
        let lines = errors.map(|finding| broken.source.position(finding.at.start).line as usize);
        // The last part that begins before the line.
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

/// The parts that are programs with a native form, and their code in each engine.
fn made(
    input: &Input,
    parts: &[usize],
    engines: [&(String, Engine); 2],
) -> Result<Option<(Batch, Vec<Unit>)>, Trouble> {
    let mut parts = parts.to_vec();
    'parts: loop {
        let Some(batch) = read(input, &parts)? else { return Ok(None) };
        let called: BTreeSet<FuncId> =
            batch.attacker.checks().iter().filter_map(|check| callee(&batch.attacker, &check.call)).collect();
        let mut units = Vec::new();
        for (name, engine) in engines {
            match engine.compile_only(&batch.attacker, called.iter().copied()) {
                Ok(unit) => units.push(unit),
                Err(error) => {
                    // A dynamic call reaches every function, so one without a native form is in the way of the others.
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

/// What interpreted code prints.
#[derive(Clone, Default)]
struct Printed(Rc<RefCell<Vec<u8>>>);

impl interp::Output for Printed {
    fn write(&mut self, bytes: &[u8]) {
        self.0.borrow_mut().extend_from_slice(bytes);
    }
}

fn interpreted(program: &Program, call: &Call) -> (Ended, Vec<u8>) {
    let options =
        interp::Options { max_steps: STEPS, max_heap_bytes: HEAP as u64, ..interp::Options::default() };
    let mut interp = Interp::new(program.module(), options, Box::new(SimMemory::default()));
    let printed = Printed::default();
    interp.set_output(Box::new(printed.clone()));
    let ended = match interp.run_call(call) {
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
    (ended, printed.0.take())
}

fn shown(interp: &mut Interp<'_>, val: &Val) -> Ended {
    let types = &interp.module().cx.types;
    let ty = types.display(val.type_of(types)).to_string();
    match interp.show(val) {
        Ok(text) => Ended::Value(format!("{text}::{ty}")),
        Err(_) => Ended::Undecided("the value has no text".to_owned()),
    }
}

fn native(
    program: &Program,
    unit: &Unit,
    id: FuncId,
    call: &Call,
    runtime: &Arc<Runtime>,
) -> (Ended, Vec<u8>) {
    let module = program.module();
    let mut interp = Interp::new(module, interp::Options::default(), Box::new(SimMemory::default()));
    let ended = (|| {
        let undecided = |why: String| Ended::Undecided(why);
        let func =
            unit.untyped(&module[id].symbol(&module.cx)).map_err(|error| undecided(error.to_string()))?;
        let signature = NativeSignature::new(&module.cx.types, &module[id].sig)
            .map_err(|_| undecided("no native signature".to_owned()))?;
        let mut vals = vec![interp.term(&call.callee).map_err(|_| undecided("no callee".to_owned()))?];
        for arg in &call.args {
            vals.push(interp.term(arg).map_err(|_| undecided("no argument".to_owned()))?);
        }
        let limits = Limits::new().timeout(DEADLINE);
        let called =
            runtime.limited(&limits, || bridge::call(&func, &signature, &vals, &mut interp, runtime));
        match called.map_err(|_| undecided(LATE.to_owned()))? {
            Ok(val) => Ok(shown(&mut interp, &val)),
            Err(BridgeError::Call(CallError::Exception(exception))) => {
                Ok(Ended::Thrown(exception.to_string()))
            }
            Err(BridgeError::Object(brolga_runtime::CallError::Exception(exception))) => {
                Ok(Ended::Thrown(exception.to_string()))
            }
            Err(error) => Err(undecided(error.to_string())),
        }
    })();
    let mut ended = ended.unwrap_or_else(|undecided| undecided);
    if let Ended::Value(text) | Ended::Thrown(text) = &ended
        && LEFT_OUT.iter().any(|part| text.contains(part))
    {
        ended = Ended::LeftOut;
    }
    (ended, runtime.sink().take_captured())
}

/// A full collection, which checks the heap.
fn whole(runtime: &Arc<Runtime>) -> Result<(), Trouble> {
    let collected = runtime.enter(|scope| scope.collect());
    collected.map_err(|error| Trouble::Malformed(error.to_string()))
}
