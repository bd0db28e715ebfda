//! The part of a program that some functions may reach, for images that contain only this part.
//!
//! ```text
//!   entries ──► functions that they call ─┐
//!                    ▲                     ├──► types that these name ──► methods of callees of such a type ─┐
//!                    └──────────────────────────────────────────────────────────────────────────────────────┘
//! ```
//!
//! **Targets of dynamic calls.** A callee is an object, and its type is named by a reached function: as a constant, as the type of
//! a value, in `new`, or inside such a type, as a parameter, element or field; or by a global variable. So the methods of those types are
//! kept, and the methods of named types as callees, which are constructors. The callee of a call that is resolved at compile time
//! is not an object, so `f(1)` does not keep the other methods of `f`.
//!
//! **Kept**: all global variables, because their names may be computed at run time. **Not kept**: functions found only by name at run time, for which the
//! language has no operation.
//!
//! Cost: one walk over the reached functions, and one over the methods for each new type of a callee.

use std::collections::{BTreeMap, BTreeSet};

use brolga_ir::constant::Const;
use brolga_ir::func::CalleeData;
use brolga_ir::module::Literal;
use brolga_ir::types::{DeclKind, TypeKind};
use brolga_ir::{Func, FuncId, Level, Module, Name, Op, Type};
use brolga_opt::callgraph::callees;

use crate::error::Error;

/// The functions with these names, each a symbol or a bare name, which stands for all of its methods.
///
/// # Errors
/// There is no function with one of the names.
pub(crate) fn named(module: &Module, names: &[String]) -> Result<Vec<FuncId>, Error> {
    let mut ids = Vec::new();
    for name in names {
        let before = ids.len();
        let is_named =
            |func: &Func| func.symbol(&module.cx) == *name || func.spelled_name(&module.cx) == *name;
        ids.extend(module.funcs().filter(|(_, func)| is_named(func)).map(|(id, _)| id));
        if ids.len() == before {
            return Err(Error::NoEntry { name: Some(name.clone()) });
        }
    }
    Ok(ids)
}

/// The functions that the text of a call may name: each word that is a bare name stands for all of its methods.
pub(crate) fn named_in(module: &Module, call: &str) -> Vec<FuncId> {
    let is_of_word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '!' | '.');
    let words: BTreeSet<&str> = call.split(|c| !is_of_word(c)).filter(|word| !word.is_empty()).collect();
    let is_named = |func: &Func| words.contains(func.spelled_name(&module.cx).as_str());
    module.funcs().filter(|(_, func)| is_named(func)).map(|(id, _)| id).collect()
}

/// A module with the functions that `entries` may reach, and the entries' numbers there.
pub(crate) fn trimmed(module: &Module, entries: &[FuncId]) -> (Module, Vec<FuncId>) {
    let mut reach = Reach::new(module);
    reach.run(entries);
    let mut kept = module.without_functions();
    let mut numbers: BTreeMap<FuncId, FuncId> = BTreeMap::new();
    for (id, func) in module.funcs().filter(|(id, _)| reach.functions.contains(id)) {
        // The functions of a module have distinct symbols.
        numbers.extend(kept.add_func(func.clone()).map(|number| (id, number)));
    }
    (kept, entries.iter().filter_map(|id| numbers.get(id).copied()).collect())
}

struct Reach<'a> {
    module: &'a Module,
    by_symbol: BTreeMap<Name, FuncId>,
    functions: BTreeSet<FuncId>,
    open: Vec<FuncId>,
    types: BTreeSet<Type>,
}

impl<'a> Reach<'a> {
    fn new(module: &'a Module) -> Reach<'a> {
        let low = module.funcs().filter(|(_, func)| func.level == Level::Low);
        let by_symbol = low.map(|(id, func)| (func.name, id)).collect();
        Reach { module, by_symbol, functions: BTreeSet::new(), open: Vec::new(), types: BTreeSet::new() }
    }

    fn run(&mut self, entries: &[FuncId]) {
        for global in self.module.globals() {
            self.name_type(global.ty);
            self.name_literal(&global.init);
        }
        entries.iter().for_each(|&id| self.reach(id));
        // Methods of callees of many types, such as all `Poly{T}`, are not found by any single type.
        let types = &self.module.cx.types;
        for (id, func) in self.module.funcs().filter(|(_, func)| func.level == Level::High) {
            let callee = func.sig.params.first().map(|param| param.ty);
            if callee
                .is_some_and(|ty| !types.is_concrete(ty) && !matches!(types.kind(ty), TypeKind::TypeOf(_)))
            {
                self.reach(id);
            }
        }
        while let Some(id) = self.open.pop() {
            let func = &self.module[id];
            callees(self.module, func).into_iter().for_each(|id| self.reach(id));
            self.look_into(func);
        }
    }

    fn reach(&mut self, id: FuncId) {
        if self.functions.insert(id) {
            self.open.push(id);
        }
    }

    /// The types that a function names, and the functions that it calls by symbol.
    fn look_into(&mut self, func: &Func) {
        for (_, data) in func.callees() {
            match data {
                CalleeData::Method { function, args, result } => {
                    args.iter().for_each(|&ty| self.name_type(ty));
                    self.name_type(*result);
                    if self.module.find_method(*function, args).is_none() {
                        // Its target is resolved at run time.
                        self.name_type(*function);
                    }
                }
                CalleeData::Symbol { symbol, .. } => {
                    if let Some(&id) = self.by_symbol.get(symbol) {
                        self.reach(id);
                    }
                }
            }
        }
        // The first parameter is the function object itself, which is named where it is used.
        func.sig.params.iter().skip(1).for_each(|param| self.name_type(param.ty));
        func.sig.results.iter().for_each(|&ty| self.name_type(ty));
        for inst in func.blocks().flat_map(|block| func.block_insts(block)) {
            let is_chosen = matches!(func.op(inst), Op::Invoke(_) | Op::CFunction(_));
            let (results, args) = (func.results(inst), func.args(inst));
            let values = results.chain(args.iter().skip(usize::from(is_chosen)).copied());
            for value in values {
                self.name_type(func.ty(value));
                if let Some(Const::Type { of: ty, .. } | Const::Undef(ty)) = func.as_const(value) {
                    self.name_type(*ty);
                }
            }
            if let Op::New(ty) | Op::SplatNew(ty) | Op::Alloc(ty) | Op::AllocStack(ty) = func.op(inst) {
                self.name_type(ty);
            }
        }
    }

    fn name_literal(&mut self, literal: &Literal) {
        let mut work = vec![literal];
        while let Some(literal) = work.pop() {
            self.name_type(literal.ty());
            match literal {
                Literal::Const(Const::Type { of, .. }) => self.name_type(*of),
                Literal::Const(_) => {}
                Literal::Aggregate { fields, .. } => work.extend(fields),
                Literal::Array { items, .. } => work.extend(items),
            }
        }
    }

    /// Records that objects of a type, and of its component types, may exist: methods of callees of these types are reached.
    fn name_type(&mut self, ty: Type) {
        let module = self.module;
        let mut work = vec![ty];
        while let Some(ty) = work.pop() {
            if !self.types.insert(ty) {
                continue;
            }
            let types = &module.cx.types;
            module.methods(ty).iter().for_each(|&id| self.reach(id));
            if let Ok(callee) = types.type_of(ty) {
                module.methods(callee).iter().for_each(|&id| self.reach(id));
            }
            match types.kind(ty) {
                TypeKind::Nominal { decl, params } => {
                    work.extend(params);
                    if let Some(body) = types.body(*decl)
                        && let DeclKind::Struct { fields, .. } = &body.kind
                    {
                        work.extend(fields.iter().map(|field| field.ty));
                    }
                }
                TypeKind::Tuple { elems, vararg } => {
                    work.extend(elems);
                    work.extend(*vararg);
                }
                TypeKind::NamedTuple { tuple, .. } => work.push(*tuple),
                TypeKind::Union(members) | TypeKind::Values(members) => work.extend(members),
                TypeKind::TypeOf(of) => work.push(*of),
                TypeKind::Bits { ty, .. } => work.push(*ty),
                TypeKind::NTuple { count, elem } => work.extend([*count, *elem]),
                TypeKind::UnionAll { bounds, body } => {
                    work.extend(bounds.iter().flat_map(|&(lower, upper)| [lower, upper]));
                    work.push(*body);
                }
                TypeKind::Bottom
                | TypeKind::Any
                | TypeKind::Generic(_)
                | TypeKind::Function(_)
                | TypeKind::Param(_)
                | TypeKind::Int(_)
                | TypeKind::Sym(_)
                | TypeKind::Low(_)
                | TypeKind::Token => {}
            }
        }
    }
}
