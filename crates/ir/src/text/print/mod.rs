//! The one normal form of the text: printing, reading and printing again results in the same text.
//!
//! | file | what it writes |
//! |---|---|
//! | `func` | a function: signature, guards, row numbers |
//! | `op` | a statement |
//! | `value` | constants and names |
//!
//! This file combines them: declarations of non-builtin types, globals, tests, functions. Types come in
//! declaration order, all else in the order of the module.

mod func;
mod op;
mod value;

use std::collections::BTreeSet;
use std::fmt::{self, Display, Write};

pub use func::{FuncText, show_func};

use self::value::{ValueText, function_name, name_text};
use super::resolve::{Call, Check, Outcome, Term, Unit};
use crate::constant::Const;
use crate::context::Context;
use crate::func::{CalleeData, Func};
use crate::module::{Global, GlobalKind, Literal, Module};
use crate::op::{Level, Op};
use crate::types::{Decl, DeclKind, StaticBound, Type, TypeKind};

/// A module as text, with the types that it mentions; `Display` is the text.
pub struct ModuleText<'a> {
    module: &'a Module,
    checks: &'a [Check],
    decls: BTreeSet<Decl>,
}

pub fn show_module(module: &Module) -> ModuleText<'_> {
    let mut used =
        UsedTypes { cx: &module.cx, seen: BTreeSet::new(), decls: BTreeSet::new(), work: Vec::new() };
    used.module(module);
    ModuleText { module, checks: &[], decls: used.decls }
}

/// The text of a unit: its module, its tests, and all types that it declares.
pub fn show_unit(unit: &Unit) -> ModuleText<'_> {
    let mut text = show_module(&unit.module);
    text.checks = &unit.checks;
    text.decls.extend(&unit.types);
    text
}

impl Display for ModuleText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cx = &*self.module.cx;
        let values = ValueText { cx, level: Level::High };
        let mut between = "";
        for &decl in &self.decls {
            f.write_str(between)?;
            type_decl(f, cx, decl)?;
            between = "\n";
        }
        if !self.module.globals().is_empty() {
            f.write_str(between)?;
            between = "\n";
        }
        for global in self.module.globals() {
            global_decl(f, values, global)?;
        }
        if !self.checks.is_empty() {
            f.write_str(between)?;
            between = "\n";
        }
        for check in self.checks {
            check_line(f, values, check)?;
        }
        for (_, func) in self.module.funcs() {
            write!(f, "{between}{}", show_func(cx, func))?;
            between = "\n";
        }
        Ok(())
    }
}

fn type_decl(w: &mut dyn Write, cx: &Context, decl: Decl) -> fmt::Result {
    let data = cx.types.decl(decl);
    let Some(body) = cx.types.body(decl) else { return Ok(()) };
    let show = |ty: Type| cx.types.display_with(ty, &data.params).to_string();
    w.write_str(match &body.kind {
        DeclKind::Struct { mutable: true, .. } => "mutable struct ",
        DeclKind::Struct { .. } => "struct ",
        DeclKind::Abstract => "abstract type ",
        DeclKind::Primitive { .. } | DeclKind::Opaque => "primitive type ",
    })?;
    name_text(w, cx.names.text(data.name))?;
    for (index, &param) in data.params.iter().enumerate() {
        w.write_str(if index == 0 { "{" } else { ", " })?;
        name_text(w, cx.names.text(param))?;
    }
    if !data.params.is_empty() {
        w.write_str("}")?;
    }
    if body.supertype != Type::ANY {
        write!(w, " <: {}", show(body.supertype))?;
    }
    match &body.kind {
        DeclKind::Abstract | DeclKind::Opaque => w.write_str(" end\n"),
        DeclKind::Primitive { bits, .. } => writeln!(w, " {bits} end"),
        DeclKind::Struct { fields, .. } => {
            w.write_str("\n")?;
            for field in fields {
                w.write_str("    ")?;
                w.write_str(if field.is_const { "const " } else { "" })?;
                w.write_str(if field.is_atomic { "@atomic " } else { "" })?;
                name_text(w, cx.names.text(field.name))?;
                writeln!(w, "::{}", show(field.ty))?;
            }
            w.write_str("end\n")
        }
    }
}

fn global_decl(w: &mut dyn Write, values: ValueText<'_>, global: &Global) -> fmt::Result {
    w.write_str(match global.kind {
        GlobalKind::Variable => "global ",
        GlobalKind::ThreadLocal => "global threadlocal ",
        GlobalKind::Constant => "const ",
    })?;
    name_text(w, values.cx.names.text(global.name))?;
    write!(w, "::{} = ", values.cx.types.display(global.ty))?;
    values.term(w, &literal_term(&global.init))?;
    w.write_str("\n")
}

/// A literal of a module as the reader made it.
fn literal_term(literal: &Literal) -> Term {
    match literal {
        Literal::Const(constant) => Term::Const(constant.clone()),
        Literal::Aggregate { ty, fields } => {
            Term::Aggregate { ty: *ty, fields: fields.iter().map(literal_term).collect() }
        }
        Literal::Array { ty, dims, items } => {
            Term::Array { ty: *ty, dims: dims.clone(), items: items.iter().map(literal_term).collect() }
        }
    }
}

fn check_line(w: &mut dyn Write, values: ValueText<'_>, check: &Check) -> fmt::Result {
    let throws = matches!(check.outcome, Outcome::Throws(_));
    w.write_str(if throws { "# throws: " } else { "# check: " })?;
    call(w, values, &check.call)?;
    match &check.outcome {
        Outcome::Returns(value) => {
            w.write_str(" == ")?;
            values.term(w, value)?;
        }
        Outcome::Throws(ty) => write!(w, " {}", values.cx.types.display(*ty))?,
    }
    w.write_str("\n")
}

fn call(w: &mut dyn Write, values: ValueText<'_>, call: &Call) -> fmt::Result {
    match &call.callee {
        Term::Const(Const::Singleton(ty)) => match values.cx.types.kind(*ty) {
            TypeKind::Function(name) => function_name(w, values.cx, *name)?,
            _ => values.term(w, &call.callee)?,
        },
        callee => values.term(w, callee)?,
    }
    w.write_str("(")?;
    for (index, arg) in call.args.iter().enumerate() {
        w.write_str(if index > 0 { ", " } else { "" })?;
        values.term(w, arg)?;
    }
    w.write_str(")")
}

/// Finds the declared types that a module mentions, and those that these mention.
struct UsedTypes<'a> {
    cx: &'a Context,
    seen: BTreeSet<Type>,
    decls: BTreeSet<Decl>,
    work: Vec<Type>,
}

impl UsedTypes<'_> {
    fn module(&mut self, module: &Module) {
        for global in module.globals() {
            self.work.push(global.ty);
            self.literal(&global.init);
        }
        for (_, func) in module.funcs() {
            self.func(func);
        }
        self.drain();
    }

    fn literal(&mut self, literal: &Literal) {
        match literal {
            Literal::Const(constant) => self.constant(constant),
            Literal::Aggregate { ty, fields } => {
                self.work.push(*ty);
                fields.iter().for_each(|field| self.literal(field));
            }
            Literal::Array { ty, items, .. } => {
                self.work.push(*ty);
                items.iter().for_each(|item| self.literal(item));
            }
        }
    }

    fn constant(&mut self, constant: &Const) {
        self.work.push(constant.ty());
        if let Const::Type { of, .. } = constant {
            self.work.push(*of);
        }
    }

    fn func(&mut self, func: &Func) {
        self.work.extend(func.sig.params.iter().map(|p| p.ty));
        self.work.extend(&func.sig.results);
        self.work.extend(&func.sig.statics.patterns);
        for param in &func.sig.statics.params {
            match param.bound {
                StaticBound::Open { lower, upper } => self.work.extend([lower, upper]),
                StaticBound::Value(ty) => self.work.push(ty),
                StaticBound::Undefined => {}
            }
        }
        for inst in func.blocks().flat_map(|block| func.block_insts(block)) {
            self.work.extend(func.results(inst).map(|v| func.ty(v)));
            for &arg in func.args(inst) {
                self.operand(func, arg);
            }
            match func.op(inst) {
                Op::New(ty) | Op::SplatNew(ty) => self.work.push(ty),
                Op::Invoke(callee) | Op::CFunction(callee) => {
                    if let CalleeData::Method { function, args, result } = func.callee(callee) {
                        self.work.extend([*function, *result]);
                        self.work.extend(args);
                    }
                }
                Op::ForeignCall(foreign) => {
                    let data = func.foreign(foreign);
                    self.work.push(data.result);
                    self.work.extend(&data.params);
                }
                _ => {}
            }
        }
    }

    fn operand(&mut self, func: &Func, value: crate::entity::Value) {
        // Parts of constants are at most as deep as their types, which are limited.
        match func.as_const(value) {
            Some(Const::Aggregate { ty, fields }) => {
                self.work.push(*ty);
                for &field in fields {
                    self.operand(func, field);
                }
            }
            Some(constant) => self.constant(constant),
            None => {}
        }
    }

    fn drain(&mut self) {
        let types = &self.cx.types;
        while let Some(ty) = self.work.pop() {
            if !self.seen.insert(ty) {
                continue;
            }
            match types.kind(ty) {
                TypeKind::Nominal { decl, params } => {
                    self.work.extend(params);
                    self.decl(*decl);
                }
                TypeKind::Generic(decl) => self.decl(*decl),
                TypeKind::Tuple { elems, vararg } => {
                    self.work.extend(elems);
                    self.work.extend(vararg);
                }
                TypeKind::NamedTuple { tuple, .. } => self.work.push(*tuple),
                TypeKind::Union(members) | TypeKind::Values(members) => self.work.extend(members),
                TypeKind::TypeOf(of) => self.work.push(*of),
                TypeKind::NTuple { elem, .. } => self.work.push(*elem),
                TypeKind::UnionAll { bounds, body } => {
                    self.work.extend(bounds.iter().flat_map(|&(lower, upper)| [lower, upper]));
                    self.work.push(*body);
                }
                TypeKind::Bits { ty, .. } => self.work.push(*ty),
                _ => {}
            }
        }
    }

    fn decl(&mut self, decl: Decl) {
        if self.cx.types.is_builtin(decl) || !self.decls.insert(decl) {
            return;
        }
        if let Some(body) = self.cx.types.body(decl) {
            self.work.push(body.supertype);
            if let DeclKind::Struct { fields, .. } = &body.kind {
                self.work.extend(fields.iter().map(|f| f.ty));
            }
        }
    }
}
