//! A program: functions, globals and tests, read from text and verified.
//!
//! ```text
//! bytes ── UTF-8 ──► SourceFile ── read ──► Unit ── prelude ── verify ──► Program
//!            └─────────────┴───────────────────────────────┴─► Error::Broken, with positions
//! ```
//!
//! Invariant: the module of a [`Program`] verifies. Passes, lowering and both engines rely on it.

use std::collections::BTreeSet;
use std::sync::Arc;

use brolga_ir::diag::{Diagnostic, Diagnostics, Severity, SourceFile, Span};
use brolga_ir::text::{self, Call, Check, NotText};
use brolga_ir::verify::{
    GlobalViolation, ModuleViolations, missing_callees, point_into_printout, source_span, verify_module,
};
use brolga_ir::{Context, FuncId, Module, Type, doors, fuel};
use brolga_opt::lower::is_julia_function;

use crate::error::{Broken, Error};
use crate::main_call::{UntakenArguments, main_call};
use crate::{prelude, varargs};

/// A verified module with its source text and the tests in it.
#[derive(Clone, Debug)]
pub struct Program {
    source: SourceFile,
    unit: text::Unit,
    /// The number of functions, first in the module, that do not come from the prelude.
    written: usize,
    /// The prelude methods that a session's library has as well. Other methods added by the prelude depend on types of the program.
    common: BTreeSet<FuncId>,
    /// Whether its functions are priced.
    is_priced: bool,
    /// Whether one of them takes fuel as written.
    spends: bool,
}

impl Program {
    /// Reads a program in the text form (`.jlir`) or as a dump of Julia's typed IR. `name` identifies it in messages.
    pub fn read(name: &str, bytes: &[u8]) -> Result<Program, Error> {
        Program::read_in(&Context::new(), name, bytes)
    }

    /// As [`Program::read`], with the names and types of a context. Programs in one context share their types: a type that two of them declare is one
    /// type, objects of one are objects of the other, and an engine describes it once. Their declarations must be equal.
    pub fn read_in(cx: &Arc<Context>, name: &str, bytes: &[u8]) -> Result<Program, Error> {
        let (source, mut unit) = read_unit_in(name, bytes, cx, &text::Alone)?;
        let own = unit.module.func_count();
        let common = prelude::complete(&mut unit.module);
        varargs::instantiate(&mut unit.module);
        check_read(&source, &unit.module, own, Callees::Late)?;
        let spends = fuel::spends(&unit.module, own);
        Ok(Program { source, unit, written: own, common, is_priced: false, spends })
    }

    /// Takes a built module and verifies it. The findings in its first broken function are shown in that function's
    /// printed form.
    pub fn from_module(module: Module) -> Result<Program, Error> {
        check_built(&module, module.func_count(), Callees::Late)?;
        let unit = text::Unit { module, checks: Vec::new(), types: Vec::new() };
        let own = unit.module.func_count();
        let spends = fuel::spends(&unit.module, own);
        Ok(Program {
            source: SourceFile::new("<module>", "")?,
            unit,
            written: own,
            common: BTreeSet::new(),
            is_priced: false,
            spends,
        })
    }

    /// Takes a module that was verified when it was read.
    pub(crate) fn of_verified(module: Module) -> Result<Program, Error> {
        let unit = text::Unit { module, checks: Vec::new(), types: Vec::new() };
        let own = unit.module.func_count();
        let spends = fuel::spends(&unit.module, own);
        Ok(Program {
            source: SourceFile::new("<image>", "")?,
            unit,
            written: own,
            common: BTreeSet::new(),
            is_priced: false,
            spends,
        })
    }

    /// The text; empty for a built program.
    pub fn source(&self) -> &SourceFile {
        &self.source
    }

    /// Functions, globals, declared types and tests.
    pub fn unit(&self) -> &text::Unit {
        &self.unit
    }

    /// Functions and globals.
    pub fn module(&self) -> &Module {
        &self.unit.module
    }

    /// Checks that the program has no doors, operations that escape the checks ([`brolga_ir::doors`]). An engine or session refuses a program with doors, unless
    /// its doors are open ([`Options::doors`](crate::Options::doors)).
    ///
    /// # Errors
    /// The program has doors: [`Error::Broken`] with the position and name of each.
    pub fn check_doors(&self) -> Result<(), Error> {
        match self.source.text().is_empty() {
            true => no_doors_built(&self.unit.module, self.written()),
            false => no_doors_read(&self.source, &self.unit.module, self.written()),
        }
    }

    /// The priced program ([`brolga_ir::fuel`]), as an engine with [`Options::fuel`](crate::Options::fuel) compiles it: for the interpreter.
    #[must_use]
    pub fn priced(self) -> Program {
        let module = self.priced_module();
        Program { unit: text::Unit { module, ..self.unit }, is_priced: true, ..self }
    }

    pub(crate) fn priced_module(&self) -> Module {
        let mut module = self.module().clone();
        if !self.is_priced {
            fuel::price(&mut module, |at| !self.common.contains(&FuncId::from_u32(at as u32)));
        }
        module
    }

    /// Whether calls of it take fuel.
    pub(crate) fn takes_fuel(&self) -> bool {
        self.is_priced || self.spends
    }

    /// Whether its functions are priced.
    pub(crate) fn is_priced(&self) -> bool {
        self.is_priced
    }

    /// The number of functions, first in the module, that do not come from the prelude.
    pub(crate) fn written(&self) -> usize {
        self.written
    }

    /// The module with the functions of the prelude after all others, the number of others, and the functions to which the prelude has added methods.
    /// Methods that depend on types of the program count as others.
    pub(crate) fn into_parts(self) -> (Module, usize, BTreeSet<Type>) {
        // The first parameter of a method is its function's object.
        let object = |id: &FuncId| self.module()[*id].sig.params.first().map(|object| object.ty);
        let added: BTreeSet<Type> = self.common.iter().filter_map(object).collect();
        if added.is_empty() {
            let module = self.unit.module;
            let own = module.func_count();
            return (module, own, added);
        }
        let module = self.module();
        let mut sorted = module.without_functions();
        let (behind, own): (Vec<FuncId>, Vec<FuncId>) =
            module.funcs().map(|(id, _)| id).partition(|id| self.common.contains(id));
        for &id in own.iter().chain(&behind) {
            // The functions of a module have distinct symbols.
            let _ = sorted.add_func(module[id].clone());
        }
        (sorted, own.len(), added)
    }

    /// The names and types of the program, for [`Program::read_in`] and for built modules.
    pub fn context(&self) -> &Arc<Context> {
        &self.unit.module.cx
    }

    /// The `# check:` and `# throws:` lines, in order.
    pub fn checks(&self) -> &[Check] {
        &self.unit.checks
    }

    /// Checks that every method and C function that the program calls exists: a call of a missing one throws when it is reached.
    /// `has_symbol` tells which C functions exist besides functions of Julia's run time.
    pub fn check_complete(&self, has_symbol: impl Fn(&str) -> bool) -> Result<(), Error> {
        let module = self.module();
        let mut findings = Diagnostics::default();
        let missing = missing_callees(module, |name| is_julia_function(name) || has_symbol(name));
        for (id, violations) in &missing {
            let func = &module[*id];
            let span = source_span(func);
            violations.iter().for_each(|v| findings.push(v.diagnostic(&module.cx, func, &span)));
        }
        if findings.has_errors() {
            return Err(Box::new(Broken { source: self.source.clone(), findings }).into());
        }
        Ok(())
    }

    /// The text of the call that starts the program with these arguments: `main()`, or `main` with a vector of them. `None` if it has no `main`.
    ///
    /// # Errors
    /// There are arguments, and no method `main(Vector{String})`.
    pub fn main_call(&self, args: &[Vec<u8>]) -> Result<Option<String>, UntakenArguments> {
        let cx = &self.module().cx;
        let methods = self.module().methods(cx.types.function_of("main"));
        let symbols: Vec<String> = methods.iter().map(|&id| self.module()[id].symbol(cx)).collect();
        main_call(symbols.iter().map(String::as_str), args)
    }

    /// Reads a call of one of the program's functions, such as `fib(35)`.
    pub fn call(&self, text: &str) -> Result<Call, Error> {
        let source = SourceFile::new("call", text)?;
        text::read_call(&source, self.module())
            .map_err(|findings| Box::new(Broken { source, findings }).into())
    }
}

/// Reads a source without verifying it.
pub fn read_unit(name: &str, bytes: &[u8]) -> Result<(SourceFile, text::Unit), Error> {
    read_unit_in(name, bytes, &Context::new(), &text::Alone)
}

/// As [`read_unit`], with the names and types of a context, and with other programs visible.
pub(crate) fn read_unit_in(
    name: &str,
    bytes: &[u8],
    cx: &Arc<Context>,
    others: &dyn text::Surroundings,
) -> Result<(SourceFile, text::Unit), Error> {
    let source = text::from_bytes(name, bytes).map_err(|error| match *error {
        NotText::TooLarge(error) => Error::TooLarge(error),
        NotText::InvalidUtf8 { source, diagnostic } => {
            let mut findings = Diagnostics::default();
            findings.push(diagnostic);
            Box::new(Broken { source, findings }).into()
        }
    })?;
    let (unit, findings) = text::read_among(&source, cx, others);
    if findings.has_errors() {
        return Err(Box::new(Broken { source, findings }).into());
    }
    Ok((source, unit))
}

/// When a call of a missing method is refused.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) enum Callees {
    /// When the call is reached: dumps lack rarely called methods.
    Late,
    /// At once: a session links only existing methods.
    #[default]
    AtOnce,
}

/// The verifier's findings in a module, except in functions that were imported after the first `own`.
fn found_in(module: &Module, own: usize, callees: Callees) -> ModuleViolations {
    let mut found = verify_module(module).err().unwrap_or_default();
    if callees == Callees::AtOnce {
        for (id, missing) in missing_callees(module, |_| true) {
            match found.funcs.binary_search_by_key(&id, |(known, _)| *known) {
                Ok(at) => found.funcs[at].1.extend(missing),
                Err(at) => found.funcs.insert(at, (id, missing)),
            }
        }
    }
    found.funcs.retain(|(id, _)| (id.as_u32() as usize) < own);
    found
}

/// The calls in the first `own` functions of a module whose methods are missing, as text.
pub(crate) fn missing_methods(module: &Module, own: usize) -> Vec<String> {
    let mut missing = Vec::new();
    for (id, violations) in missing_callees(module, |_| true) {
        if (id.as_u32() as usize) < own {
            let (func, span) = (&module[id], source_span(&module[id]));
            missing.extend(violations.iter().map(|v| v.diagnostic(&module.cx, func, &span).message));
        }
    }
    missing.sort();
    missing.dedup();
    missing
}

/// Verifies the first `own` functions of a module that was read, and its globals. Findings have positions in the text.
pub(crate) fn check_read(
    source: &SourceFile,
    module: &Module,
    own: usize,
    callees: Callees,
) -> Result<(), Error> {
    let found = found_in(module, own, callees);
    let mut findings = Diagnostics::default();
    for (id, violations) in &found.funcs {
        let func = &module[*id];
        let span = source_span(func);
        violations.iter().for_each(|v| findings.push(v.diagnostic(&module.cx, func, &span)));
    }
    found.globals.iter().for_each(|violation| findings.push(global_finding(module, violation)));
    if findings.has_errors() {
        return Err(Box::new(Broken { source: source.clone(), findings }).into());
    }
    Ok(())
}

/// Verifies the first `own` functions of a built module, and its globals. The findings in the first broken
/// function are shown in its printed form.
pub(crate) fn check_built(module: &Module, own: usize, callees: Callees) -> Result<(), Error> {
    let found = found_in(module, own, callees);
    let (source, all) = match found.funcs.first() {
        Some((id, violations)) => point_into_printout(&module.cx, &module[*id], violations),
        None if found.globals.is_empty() => return Ok(()),
        None => {
            let all = found.globals.iter().map(|violation| global_finding(module, violation));
            (SourceFile::new("<module>", "")?, all.collect())
        }
    };
    let mut findings = Diagnostics::default();
    all.into_iter().for_each(|finding| findings.push(finding));
    Err(Box::new(Broken { source, findings }).into())
}

/// Checks that the first `own` functions of a module that was read have no doors.
pub(crate) fn no_doors_read(source: &SourceFile, module: &Module, own: usize) -> Result<(), Error> {
    let mut findings = Diagnostics::default();
    for (id, found) in doors::of(module, own) {
        let func = &module[id];
        let span = source_span(func);
        found.iter().for_each(|v| findings.push(v.diagnostic(&module.cx, func, &span)));
    }
    match findings.has_errors() {
        true => Err(Box::new(Broken { source: source.clone(), findings }).into()),
        false => Ok(()),
    }
}

/// Checks that the first `own` functions of a built module have no doors. The error shows the doors of the first function with any in its
/// printed form.
pub(crate) fn no_doors_built(module: &Module, own: usize) -> Result<(), Error> {
    let found = doors::of(module, own);
    let Some((id, doors)) = found.first() else { return Ok(()) };
    let (source, all) = point_into_printout(&module.cx, &module[*id], doors);
    let mut findings = Diagnostics::default();
    all.into_iter().for_each(|finding| findings.push(finding));
    Err(Box::new(Broken { source, findings }).into())
}

fn global_finding(module: &Module, violation: &GlobalViolation) -> Diagnostic {
    Diagnostic {
        severity: Severity::Error,
        code: "module-global",
        message: violation.message(&module.cx),
        // Globals do not keep their positions.
        at: Span::default(),
        label: String::new(),
        related: Vec::new(),
        notes: Vec::new(),
    }
}
