//! C functions that call the program: addresses of functions (`cfunction`), calls through them, and `qsort`
//! and `bsearch`.
//!
//! ```text
//! foreigncall ──► Job ─┬─ next call ──► frame of the program's function, whose `Then` is the job
//!                      │     ▲                     │ returns, or throws: the exception is pending, C gets zero
//!                      │     └─────────────────────┘
//!                      └─ done ──► result of the foreigncall; the pending exception, if any
//! ```
//!
//! A job is the state between two of its calls, so nested callbacks use no Rust stack and are subject to the
//! same limits as all calls.
//!
//! **Exceptions** do not propagate through C frames. One that leaves the function is pending; C receives
//! zeros and makes no further calls until it has returned; then the exception continues after the
//! `foreigncall`.
//!
//! `qsort` is a stable merge sort of positions: the elements stay in place until the order is known, and
//! functions receive their addresses. C does not specify which elements are compared, nor the order of equal
//! ones.

use super::Interp;
use super::error::{Eval, Fault, Stop};
use super::exec::{Flow, Then};
use super::jobs::{Job, Next, Search, Sort, Waiting};
use super::memory::{ForeignCall, MemoryError};
use super::value::Val;
use brolga_ir::entity::{Callee, FuncId};
use brolga_ir::func::{CalleeData, Func};
use brolga_ir::op::Level;
use brolga_ir::types::{LowType, PtrClass, Type};

const PTR: LowType = LowType::Ptr(PtrClass::Raw);

impl<'m> Interp<'m> {
    /// `cfunction`: the address of a function for C.
    pub(super) fn c_function(&mut self, func: &'m Func, callee: Callee) -> Eval<u64> {
        let id = match func.callee(callee) {
            CalleeData::Method { function, args, .. } => self.module.find_method(*function, args),
            CalleeData::Symbol { symbol, .. } => {
                self.module.named(*symbol).find(|&id| self.module[id].level == Level::Low)
            }
        };
        let Some(id) = id else {
            return Err(Fault::UnknownFunction("the function of a `cfunction`".to_owned()).into());
        };
        if let Some(address) = self.addresses.entry(id) {
            return Ok(address);
        }
        let address = self.memory.allocate(1, 16)?;
        self.addresses.set_entry(id, address);
        Ok(address)
    }

    /// A call of a program function through its address, or of a C function that takes one; `None` for any
    /// other call.
    pub(super) fn c_callback(&mut self, call: &ForeignCall<'_>, result: Type) -> Eval<Option<Flow>> {
        let bad_call = || Stop::from(MemoryError::BadCall { name: call.name.to_owned() });
        let words = |range: std::ops::Range<usize>| {
            let args = call.args.get(range);
            let fit = args.is_some_and(|args| args.iter().all(|&(form, _)| fits(form, PTR)));
            if fit && call.variadic_after.is_none() { Ok(()) } else { Err(bad_call()) }
        };
        let word = |n: usize| call.args[n].1 as u64;
        let (function, job) = match call.name {
            "qsort" if call.args.len() == 4 => {
                words(0..4)?;
                if call.result.is_some() {
                    return Err(bad_call());
                }
                let (base, size) = (word(0), word(2));
                // Positions have 32 bits; elements of size zero have no order.
                let count = u32::try_from(word(1)).ok().filter(|_| size > 0).ok_or_else(bad_call)?;
                self.read_elements(base, u64::from(count), size)?;
                (word(3), Job::Sort(Sort::new(base, count as usize, size)))
            }
            "bsearch" if call.args.len() == 5 => {
                words(0..5)?;
                if !call.result.is_none_or(|form| fits(form, PTR)) {
                    return Err(bad_call());
                }
                let (key, base, high, size) = (word(0), word(1), word(2), word(3));
                (word(4), Job::Search(Search { key, base, size, low: 0, high, found: false }))
            }
            _ => return Ok(None),
        };
        let Some(function) = self.addresses.entry_at(function) else {
            return Err(Fault::Unsupported(format!(
                "a call of `{}` with a function that is not one of the program's",
                call.name
            ))
            .into());
        };
        self.c_arguments(function, &[(PTR, 0), (PTR, 0)], Some(LowType::I32), call.name)?;
        self.continue_c(Waiting { function, job, result, exception: None }).map(Some)
    }

    /// Calls a program function through its address.
    pub(super) fn call_entry(
        &mut self,
        function: FuncId,
        call: &ForeignCall<'_>,
        result: Type,
    ) -> Eval<Flow> {
        let args = self.c_arguments(function, call.args, call.result, call.name)?;
        self.continue_c(Waiting { function, job: Job::Entry { args, answer: None }, result, exception: None })
    }

    /// The parameters of a function as seen by C: without the function object.
    fn c_params(&self, function: FuncId) -> &'m [brolga_ir::func::Param] {
        let func = &self.module[function];
        let skipped = usize::from(func.level == Level::High).min(func.sig.params.len());
        &func.sig.params[skipped..]
    }

    /// The bits that each parameter of a function receives under C's convention: integers and addresses use
    /// one sequence of registers, floats another, and extra arguments are ignored. An error if that leaves
    /// bits undetermined.
    fn c_arguments(
        &self,
        function: FuncId,
        args: &[(LowType, u128)],
        result: Option<LowType>,
        name: &str,
    ) -> Eval<Vec<u128>> {
        let bad_call = || Stop::from(MemoryError::BadCall { name: name.to_owned() });
        let sig = &self.module[function].sig;
        let given = sig.results.first().and_then(|&ty| self.c_form(ty));
        let result_fits = result.is_none_or(|wanted| given.is_some_and(|given| holds(given, wanted)));
        if !result_fits || sig.vararg {
            return Err(bad_call());
        }
        let (mut floats, mut integers): (Vec<_>, Vec<_>) = args.iter().partition(|(form, _)| is_float(*form));
        floats.reverse();
        integers.reverse();
        let params = self.c_params(function).iter().map(|param| {
            let wanted = self.c_form(param.ty)?;
            let row = if is_float(wanted) { &mut floats } else { &mut integers };
            row.pop().filter(|(given, _)| holds(*given, wanted)).map(|(_, bits)| bits)
        });
        params.collect::<Option<Vec<u128>>>().ok_or_else(bad_call)
    }

    /// Runs a C call up to its next call of the program, or to its end.
    fn continue_c(&mut self, mut waiting: Waiting) -> Eval<Flow> {
        loop {
            let args = match self.next_of_job(&mut waiting.job)? {
                Next::Call(args) => args,
                Next::Done(bits) => {
                    if let Some(exception) = waiting.exception {
                        return Err(Stop::Throw(exception));
                    }
                    return Ok(Flow::Value(match bits {
                        Some(bits) if waiting.result != Type::NOTHING => {
                            Val::bits(self.types(), waiting.result, bits)
                        }
                        _ => Val::NOTHING,
                    }));
                }
            };
            if waiting.exception.is_none() {
                match self.push_c_call(waiting.function, &args) {
                    Ok(()) => {
                        self.wait_for_innermost(waiting)?;
                        return Ok(Flow::Called);
                    }
                    Err(Stop::Throw(exception)) => waiting.exception = Some(exception),
                    Err(stop) => return Err(stop),
                }
            }
            waiting.job.answer(0);
        }
    }

    fn push_c_call(&mut self, function: FuncId, bits: &[u128]) -> Eval<()> {
        let params = self.c_params(function);
        let func = &self.module[function];
        let object = (func.level == Level::High).then(|| func.sig.params.first()).flatten();
        let mut args: Vec<Val> = object.map(|param| Val::Singleton(param.ty)).into_iter().collect();
        for (param, &bits) in params.iter().zip(bits) {
            if param.ty == Type::BOOL && bits as u8 > 1 {
                let given = Val::bits(self.types(), Type::UINT8, bits);
                return Err(self.bad_operand("a function for C", "a Bool of 0 or 1", &given));
            }
            args.push(Val::bits(self.types(), param.ty, bits));
        }
        self.push_call(function, args, Then::Assign).map(|_| ())
    }

    /// Resumes C after the program's function has returned.
    pub(super) fn return_to_c(&mut self, mut waiting: Waiting, vals: &[Val]) -> Eval<Flow> {
        waiting.job.answer(vals.first().and_then(Val::as_bits).unwrap_or(0));
        self.continue_c(waiting)
    }

    /// Resumes C after an exception has left the program's function.
    pub(super) fn throw_to_c(&mut self, mut waiting: Waiting, exception: Val) -> Eval<Flow> {
        waiting.exception = Some(exception);
        waiting.job.answer(0);
        self.continue_c(waiting)
    }

    fn next_of_job(&mut self, job: &mut Job) -> Eval<Next> {
        Ok(match job {
            Job::Entry { args, answer: None } => Next::Call(std::mem::take(args)),
            Job::Entry { answer, .. } => Next::Done(*answer),
            Job::Sort(sort) => match sort.next() {
                Some((a, b)) => Next::Call(vec![sort.address(a), sort.address(b)]),
                None => {
                    let elements = self.read_elements(sort.base, sort.from.len() as u64, sort.size)?;
                    let size = sort.size as usize;
                    let mut sorted = Vec::with_capacity(elements.len());
                    for &position in &sort.from {
                        sorted.extend_from_slice(&elements[position as usize * size..][..size]);
                    }
                    if !sorted.is_empty() {
                        self.memory.store(sort.base, 1, &sorted)?;
                    }
                    Next::Done(None)
                }
            },
            Job::Search(search) => match search.middle() {
                Some(middle) if search.found => Next::Done(Some(search.address(middle).into())),
                Some(middle) => Next::Call(vec![search.key.into(), search.address(middle).into()]),
                None => Next::Done(Some(0)),
            },
        })
    }

    /// The bytes of `count` elements.
    fn read_elements(&mut self, base: u64, count: u64, size: u64) -> Eval<Vec<u8>> {
        let bytes =
            count.checked_mul(size).ok_or(MemoryError::OutOfBounds { address: base, size: u64::MAX })?;
        if bytes == 0 {
            return Ok(Vec::new());
        }
        // Both ends are checked first: a bogus length must not become an allocation.
        let last =
            base.checked_add(bytes - 1).ok_or(MemoryError::OutOfBounds { address: base, size: bytes })?;
        for address in [base, last] {
            self.memory.load(address, 1, &mut [0])?;
        }
        let mut elements = vec![0; usize::try_from(bytes).unwrap_or(usize::MAX)];
        self.memory.load(base, 1, &mut elements)?;
        Ok(elements)
    }
}

/// Addresses are declared as `Ptr` or as 64-bit integers.
pub(super) fn fits(given: LowType, wanted: LowType) -> bool {
    let is_word = |t: LowType| matches!(t, LowType::Ptr(_) | LowType::I64);
    given == wanted || (is_word(given) && is_word(wanted))
}

fn is_float(form: LowType) -> bool {
    matches!(form, LowType::F16 | LowType::F32 | LowType::F64)
}

/// Whether a register holding a value of one form has all bits of the other.
fn holds(given: LowType, wanted: LowType) -> bool {
    let is_integer = |form: LowType| matches!(form, LowType::Ptr(_)) || form.is_int() && form.bytes() <= 8;
    given == wanted || (is_integer(given) && is_integer(wanted) && given.bytes() >= wanted.bytes())
}
