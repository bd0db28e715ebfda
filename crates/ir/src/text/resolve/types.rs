//! Expressions to types.
//!
//! Julia prints more types than this IR has: `Vector{<:Integer}`, `Array{T, 1} where T`, `Core.Const(5)`. A
//! type that is only an annotation may be widened, so the first two become their generic type (`Vector`,
//! which is a supertype) and the last the type of its value. A variable makes everything around it generic,
//! up to its `where`: no `Vector{Vector{T}}` is a `Vector{Vector}`. Named tuples have no generic type, so
//! they become `Any`. An undeclared name is an error. The types of tests are not widened (`exact`).

use std::borrow::Cow;

use rustc_hash::FxHashSet;

use super::super::ast::{Expr, ExprKind, Literal};
use super::error::ResolveError;
use super::near::near;
use super::spelling::is_literal_name;
use super::{Resolver, Term, last_name};
use crate::constant::Const;
use crate::diag::{Diagnostic, Span};
use crate::function_name::{BASE, FunctionName};
use crate::op::Level;
use crate::types::{Decl, LowType, MAX_WIDTH, Type, TypeError, Worlds, decl};

/// The approximate maximum of bytes that the names and types of a program may take.
const MOST_TYPES: usize = 64 << 20;

/// Julia's aliases of types.
const ALIASES: [(&str, Type); 23] = [
    ("Int", Type::INT64),
    ("UInt", Type::UINT64),
    ("Cvoid", Type::NOTHING),
    ("Cchar", Type::INT8),
    ("Cuchar", Type::UINT8),
    ("Cshort", Type::INT16),
    ("Cushort", Type::UINT16),
    ("Cint", Type::INT32),
    ("Cuint", Type::UINT32),
    ("Csize_t", Type::UINT64),
    ("Cfloat", Type::FLOAT32),
    ("Cdouble", Type::FLOAT64),
    ("Clong", Type::INT64),
    ("Culong", Type::UINT64),
    ("Clonglong", Type::INT64),
    ("Culonglong", Type::UINT64),
    ("Cssize_t", Type::INT64),
    ("Cptrdiff_t", Type::INT64),
    ("Cintmax_t", Type::INT64),
    ("Cuintmax_t", Type::UINT64),
    ("Cwchar_t", Type::INT32),
    ("NamedTuple", Type::ANY),
    ("Vararg", Type::ANY),
];

/// The meaning of a name in a type besides a declared type.
#[derive(Clone, Copy)]
pub(super) enum TypeVar {
    /// A parameter of the current declaration.
    Param(Type),
    /// A variable of `where`, with its upper bound.
    Free(Type),
}

impl<'a> Resolver<'a> {
    /// Whether the types take too much memory, as when the text has many like `NTuple{4096, T}`. The error is
    /// reported once.
    pub(super) fn has_too_many_types(&mut self, at: Span) -> bool {
        let is_full = self.cx.bytes() > MOST_TYPES;
        if is_full && !std::mem::replace(&mut self.has_most_types, true) {
            let why = format!("the types of the program take more than {} MiB", MOST_TYPES >> 20);
            let _: Option<()> = self.fail(ResolveError::BadType { why }, at);
        }
        is_full
    }

    /// The type written as `expr`.
    pub(super) fn ty(&mut self, expr: &Expr<'a>) -> Option<Type> {
        if self.has_too_many_types(expr.span) {
            return None;
        }
        match &expr.kind {
            ExprKind::Name(name) => self.named_type(std::slice::from_ref(name), expr.span),
            ExprKind::Path(parts) => self.named_type(parts, expr.span),
            ExprKind::Curly(base, params) => self.binding(expr.span, |r| r.instance(base, params, expr.span)),
            ExprKind::Macro(name, fields) if name == "NamedTuple" => {
                self.named_tuple_macro(fields, expr.span)
            }
            ExprKind::Macro(name, fields) if name == "Kwargs" => {
                let values = self.named_tuple_macro(fields, expr.span)?;
                self.keywords(values, expr.span)
            }
            ExprKind::Macro(name, parts) if name == "world" && !parts.is_empty() => {
                match self.former(parts) {
                    Some(decl) => self.nominal(decl, &[], expr.span),
                    None => self.ty(&parts[0]),
                }
            }
            ExprKind::Macro(name, fields) if name == "Param" && self.level == Level::Low => {
                self.param_macro(fields, expr.span)
            }
            ExprKind::Where(..) if self.exact.is_some() => self.tested_where(expr),
            ExprKind::Where(body, vars) => {
                let outer = self.type_vars.len();
                for var in vars {
                    self.bind_type_var(var);
                }
                let (ty, free) = self.noting_free(|r| r.ty(body));
                self.type_vars.truncate(outer);
                // The type's own variables are not among the enclosing ones.
                self.lowest_free =
                    self.lowest_free.min(free.filter(|&free| free < outer).unwrap_or(usize::MAX));
                ty
            }
            ExprKind::Call(callee, args) => self.type_call(callee, args, expr.span),
            ExprKind::Quote(inner) | ExprKind::QuoteNode(inner) | ExprKind::Interpolation(inner) => {
                self.ty(inner)
            }
            ExprKind::Macro(name, _) => self.fail(
                ResolveError::Unsupported { what: format!("`@{name}`"), why: "no such type exists here" },
                expr.span,
            ),
            _ => self.fail(ResolveError::NotAType, expr.span),
        }
    }

    /// `@Param{0}`: a variable of a `where` by its number.
    fn param_macro(&mut self, fields: &[Expr<'a>], at: Span) -> Option<Type> {
        let number = match fields {
            [Expr { kind: ExprKind::Literal(Literal::Int { negative: false, magnitude }), .. }] => {
                usize::try_from(magnitude.get()).ok().filter(|&number| number < MAX_WIDTH)
            }
            _ => None,
        };
        match number {
            Some(number) => Some(self.cx.types.param(number as u32)),
            None => self.fail(ResolveError::NotAType, at),
        }
    }

    /// The former type `@world(Point, 3:7)`. `None` if the name still means what it meant in these worlds.
    fn former(&self, parts: &[Expr<'a>]) -> Option<Decl> {
        let [named, worlds] = parts else { return None };
        let name = match &named.kind {
            ExprKind::Name(name) => name,
            ExprKind::Path(parts) => last_name(parts),
            _ => return None,
        };
        let ExprKind::Infix(op, ends) = &worlds.kind else { return None };
        let number = |expr: &Expr<'a>| match &expr.kind {
            ExprKind::Literal(Literal::Int { negative: false, magnitude }) => {
                u64::try_from(magnitude.get()).ok()
            }
            _ => None,
        };
        match ends.as_slice() {
            [first, last] if op == ":" => {
                let worlds = Worlds { first: number(first)?, last: number(last)? };
                self.cx.types.find_former(name, worlds)
            }
            _ => None,
        }
    }

    /// Whether `expr` has the form of a type and its outermost name is one; reports nothing otherwise.
    pub(super) fn looks_like_type(&self, expr: &Expr<'a>) -> bool {
        match &expr.kind {
            ExprKind::Name(name) => self.is_type_name(name),
            ExprKind::Path(parts) => self.is_type_name(last_name(parts)),
            ExprKind::Curly(base, _) | ExprKind::Where(base, _) => self.looks_like_type(base),
            ExprKind::Macro(name, parts) if name == "world" => {
                parts.first().is_some_and(|named| self.looks_like_type(named))
            }
            ExprKind::Macro(..) => true,
            ExprKind::Call(callee, _) => {
                matches!(&callee.kind, ExprKind::Name(n) if matches!(&**n, "typeof"))
                    || matches!(&callee.kind, ExprKind::Path(p) if matches!(last_name(p), "Typeof" | "typeof"))
            }
            _ => false,
        }
    }

    pub(super) fn is_type_name(&self, name: &str) -> bool {
        const BUILT_IN: [&str; 10] =
            ["Any", "Union", "Tuple", "NTuple", "Vararg", "NamedTuple", "Vector", "Matrix", "Type", "Colon"];
        BUILT_IN.contains(&name)
            || self.type_vars.iter().any(|(var, _)| var == name)
            || ALIASES.iter().any(|(alias, _)| *alias == name)
            || self.is_alias(name)
            || self.level == Level::Low && LowType::from_name(name).is_some()
            || matches!(self.consts.get(name), Some(Term::Const(Const::Type { .. })))
            || self.find_decl(name).is_some()
    }

    pub(super) fn made(&mut self, made: Result<Type, TypeError>, at: Span) -> Option<Type> {
        match made {
            Ok(ty) => Some(ty),
            Err(error) => {
                let why = error.display(&self.cx.types).to_string();
                self.fail(ResolveError::BadType { why }, at)
            }
        }
    }

    /// A type by its name, qualified or not.
    fn named_type(&mut self, parts: &[Cow<'_, str>], at: Span) -> Option<Type> {
        let name = last_name(parts);
        if let Some(var) = self.type_var(name) {
            return Some(match var {
                TypeVar::Param(ty) | TypeVar::Free(ty) => ty,
            });
        }
        // Names that a program may declare: `struct Token`, `struct Cint`.
        let is_declared = self.own_decl(parts).is_some();
        if self.level == Level::Low
            && let Some(low) = LowType::from_name(name)
        {
            return Some(Type::low(low));
        }
        if let Some(&(_, ty)) = ALIASES.iter().find(|(alias, _)| *alias == name && !is_declared) {
            self.has_widened |= name == "NamedTuple";
            return Some(ty);
        }
        match name {
            _ if is_declared => {}
            "Any" => return Some(Type::ANY),
            "Vector" | "Matrix" => {
                if self.exact.is_some() {
                    let dims = if name == "Vector" { 1 } else { 2 };
                    return self.binding(at, |r| {
                        let elem = r.free_variable()?;
                        let array = r.cx.types.array(elem, dims);
                        r.made(array, at)
                    });
                }
                self.has_widened = true;
                let generic = self.cx.types.nominal(decl::ARRAY, &[]);
                return self.made(generic, at);
            }
            "Tuple" => {
                let any = self.cx.types.tuple_vararg(&[], Type::ANY);
                return self.made(any, at);
            }
            "Token" => return Some(Type::TOKEN),
            "Colon" => return Some(self.function_type(&[Cow::Borrowed(":")])),
            _ => {}
        }
        if let Some(Term::Const(Const::Type { of, .. })) = self.consts.get(name) {
            return Some(*of);
        }
        match self.decl_of(parts) {
            Some(decl) => {
                let ty = self.cx.types.nominal(decl, &[]);
                self.made(ty, at)
            }
            None => self.binding(at, |r| r.named_otherwise(name, &[], at)),
        }
    }

    /// The meaning of a name as a variable; free ones are recorded.
    fn type_var(&mut self, name: &str) -> Option<TypeVar> {
        let (at, &(_, var)) = self.type_vars.iter().enumerate().rfind(|(_, (var, _))| var == name)?;
        if let TypeVar::Free(_) = var {
            self.lowest_free = self.lowest_free.min(at);
        }
        Some(var)
    }

    /// Runs `body`, and returns which of the free variables it met was bound first. The caller passes on what
    /// concerns enclosing types.
    fn noting_free<R>(&mut self, body: impl FnOnce(&mut Self) -> R) -> (R, Option<usize>) {
        let before = std::mem::replace(&mut self.lowest_free, usize::MAX);
        let result = body(self);
        let found = std::mem::replace(&mut self.lowest_free, before);
        (result, (found != usize::MAX).then_some(found))
    }

    /// Runs `body`; returns whether it met free variables.
    fn is_open<R>(&mut self, body: impl FnOnce(&mut Self) -> R) -> (R, bool) {
        let (result, free) = self.noting_free(body);
        self.lowest_free = self.lowest_free.min(free.unwrap_or(usize::MAX));
        (result, free.is_some())
    }

    /// The declaration that an unqualified name means.
    pub(super) fn find_decl(&self, name: &str) -> Option<Decl> {
        self.decl_of(&[Cow::Borrowed(name)])
    }

    /// The declaration that a name means, qualified or not. `Box` is the declared type, if there is one, and
    /// `Core.Box` the builtin.
    fn decl_of(&self, parts: &[Cow<'_, str>]) -> Option<Decl> {
        let name = last_name(parts);
        self.own_decl(parts).or_else(|| self.library_decl(name))
    }

    /// The declared, non-builtin type that a name means.
    fn own_decl(&self, parts: &[Cow<'_, str>]) -> Option<Decl> {
        let (text, names) = (last_name(parts), &self.cx.names);
        let is_cores = parts.len() > 1 && matches!(&*parts[0], "Core" | "Base") || self.is_library;
        if is_cores && self.cx.types.find_builtin(names.find(text)?).is_some() {
            return None;
        }
        self.cx.types.find_own(if self.is_library { names.find(text)? } else { names.find_declared(text)? })
    }

    /// The declaration that a name means in Julia's library, whose types literals and C function calls use.
    pub(super) fn library_decl(&self, name: &str) -> Option<Decl> {
        let (types, names) = (&self.cx.types, &self.cx.names);
        // A type of a program that this one does not see does not belong to the library.
        let own = |known| types.find_own(known).filter(|_| names.find_declared(name) == Some(known));
        let known = names.find(name).and_then(|known| types.find_builtin(known).or_else(|| own(known)));
        known.or_else(|| self.declare_known(name)).or_else(|| self.declare_closure(name))
    }

    /// A type without a declaration: an alias, or a type that a dump names without declaring it.
    fn named_otherwise(&mut self, name: &str, params: &[Expr<'a>], at: Span) -> Option<Type> {
        if let Some(ty) = self.alias(name, params, at)? {
            return Some(ty);
        }
        match self.declare_unknown(name, at) {
            Some(decl) => self.nominal(decl, params, at),
            None => self.unknown_type(name, at),
        }
    }

    fn unknown_type(&mut self, name: &str, at: Span) -> Option<Type> {
        let diagnostic = Diagnostic::error(&ResolveError::UnknownType { name: name.to_owned() }, at);
        if !self.looks_for_similar() {
            self.diagnostics.push(diagnostic);
            return None;
        }
        let cx = self.cx.clone();
        let declared = cx.types.decls().map(|d| cx.names.text(cx.types.decl(d).name));
        let built_in =
            ALIASES.iter().map(|(alias, _)| *alias).chain(["Any", "Tuple", "Vector", "Matrix", "NTuple"]);
        let near = near(name, declared.chain(built_in));
        self.push_near(diagnostic, &near);
        None
    }

    /// `Base{params…}`.
    fn instance(&mut self, base: &Expr<'a>, params: &[Expr<'a>], at: Span) -> Option<Type> {
        let parts = match &base.kind {
            ExprKind::Name(name) => std::slice::from_ref(name),
            ExprKind::Path(parts) => &parts[..],
            _ => return self.fail(ResolveError::NotAType, base.span),
        };
        let name = last_name(parts);
        match (name, params) {
            ("Union", _) => {
                let members =
                    params.iter().map(|member| self.union_member(member)).collect::<Option<Vec<_>>>()?;
                let union = self.cx.types.union(&members);
                self.made(union, at)
            }
            ("Tuple", _) => self.tuple(params, at),
            ("NTuple", [count, elem]) => {
                let elem = self.ty(elem)?;
                let tuple = match self.length(count)? {
                    Some(count) => self.cx.types.ntuple(count, elem),
                    None => self.cx.types.tuple_vararg(&[], elem),
                };
                self.made(tuple, at)
            }
            ("NTuple", [count]) => {
                let tuple = match self.length(count)? {
                    Some(count) => self.cx.types.ntuple(count, Type::ANY),
                    None => self.cx.types.tuple_vararg(&[], Type::ANY),
                };
                self.made(tuple, at)
            }
            ("Vararg", [elem, ..]) => self.ty(elem),
            ("NamedTuple", [_]) => {
                self.has_widened = true;
                Some(Type::ANY)
            }
            ("NamedTuple", [names, tuple]) => self.named_tuple(names, tuple, at),
            ("Type", [of]) => match self.type_param(of)? {
                TypeArg::Type(of) => {
                    let ty = self.cx.types.type_of(of);
                    self.made(ty, at)
                }
                TypeArg::Open(of) => {
                    self.has_widened |= of != Type::ANY;
                    self.named_type(&[Cow::Borrowed("Type")], at)
                }
            },
            ("Vector" | "Matrix", [elem]) => {
                let dims = if name == "Vector" { 1 } else { 2 };
                match self.type_param(elem)? {
                    TypeArg::Type(elem) => {
                        let array = self.cx.types.array(elem, dims);
                        self.made(array, at)
                    }
                    TypeArg::Open(_) => self.named_type(&[Cow::Borrowed("Vector")], at),
                }
            }
            // The general form of `Memory{T}`: kind, elements, address space.
            ("GenericMemory" | "GenericMemoryRef", [kind, elem, ..]) => {
                if !matches!(&kind.kind, ExprKind::Symbol(kind) if kind == "not_atomic") {
                    if self.functions.has_dumps() {
                        let atomic = if name == "GenericMemory" { "AtomicMemory" } else { "AtomicMemoryRef" };
                        let decl = self.library_decl(atomic)?;
                        return self.nominal(decl, std::slice::from_ref(elem), at);
                    }
                    let what = format!("`{name}` of another kind than `:not_atomic`");
                    return self.fail(
                        ResolveError::Unsupported { what, why: "elements are plain memory" },
                        kind.span,
                    );
                }
                let decl = if name == "GenericMemory" { decl::MEMORY } else { decl::MEMORY_REF };
                self.nominal(decl, std::slice::from_ref(elem), at)
            }
            _ => match self.decl_of(parts) {
                Some(decl) => self.nominal(decl, params, at),
                None => self.named_otherwise(name, params, base.span),
            },
        }
    }

    /// A declared type with parameters; its generic type if any is open.
    fn nominal(&mut self, decl: Decl, params: &[Expr<'a>], at: Span) -> Option<Type> {
        let mut types = Vec::with_capacity(params.len());
        let mut open = params.len() < self.cx.types.decl(decl).params.len();
        let mut is_free = !open;
        for param in params {
            match self.type_param(param)? {
                TypeArg::Type(ty) => types.push(ty),
                TypeArg::Open(bound) => {
                    open = true;
                    is_free &= bound == Type::ANY;
                }
            }
        }
        if self.exact.is_some() && !types.is_empty() {
            let left = self.cx.types.decl(decl).params.len().saturating_sub(types.len());
            types.extend((0..left).map_while(|_| self.free_variable()));
            open = types.len() < self.cx.types.decl(decl).params.len();
        }
        // `Dict{K, V} where {K, V}` is the generic type.
        let spelled = |param: &Expr<'a>| self.source.get(param.span.range()).unwrap_or("");
        is_free &=
            types.is_empty() && params.iter().map(spelled).collect::<FxHashSet<_>>().len() == params.len();
        self.has_widened |= open && !params.is_empty() && !is_free;
        let ty = self.cx.types.nominal(decl, if open { &[] } else { &types });
        self.made(ty, at)
    }

    /// A member of a union; the bound of `<:Bound`.
    fn union_member(&mut self, member: &Expr<'a>) -> Option<Type> {
        if !matches!(&member.kind, ExprKind::Prefix(..)) {
            return self.ty(member);
        }
        match self.type_param(member)? {
            TypeArg::Type(ty) => Some(ty),
            TypeArg::Open(bound) => {
                self.has_widened = true;
                Some(bound)
            }
        }
    }

    /// `Tuple{A, B, Vararg{C}}`, and `Tuple{A, Vararg{C, N} where N}` as printed by Julia up to 1.6.
    fn tuple(&mut self, params: &[Expr<'a>], at: Span) -> Option<Type> {
        let mut elems = Vec::with_capacity(params.len());
        let mut rest = None;
        for (index, param) in params.iter().enumerate() {
            let (param, vars) = vararg_of_any_length(param);
            let vararg = match &param.kind {
                ExprKind::Name(name) if name == "Vararg" => Some(&[][..]),
                ExprKind::Curly(base, args) if matches!(&base.kind, ExprKind::Name(n) if n == "Vararg") => {
                    Some(&args[..])
                }
                _ => None,
            };
            match vararg {
                None => match self.type_param(param)? {
                    TypeArg::Type(ty) => elems.push(ty),
                    TypeArg::Open(ty) => {
                        self.has_widened = true;
                        elems.push(ty);
                    }
                },
                Some(_) if index + 1 != params.len() => return self.fail(ResolveError::NotAType, param.span),
                Some([]) => rest = Some(Type::ANY),
                Some([elem]) => rest = Some(self.ty(elem)?),
                Some([elem, Expr { kind: ExprKind::Name(count), .. }]) if vars.contains(&&**count) => {
                    rest = Some(self.ty(elem)?);
                }
                Some([elem, count]) => {
                    let elem = self.ty(elem)?;
                    let length = self.length(count)?;
                    let tuple = match length {
                        Some(length) => self.cx.types.ntuple(length, elem),
                        None => self.cx.types.tuple_vararg(&[], elem),
                    };
                    let tuple = self.made(tuple, param.span)?;
                    if elems.is_empty() {
                        return Some(tuple);
                    }
                    match self.cx.types.tuple_elements(tuple) {
                        Some(known) => elems.extend(known),
                        // An open length after other elements is widened to any length.
                        None => {
                            self.has_widened = true;
                            rest = Some(elem);
                        }
                    }
                }
                Some(_) => return self.fail(ResolveError::NotAType, param.span),
            }
        }
        let tuple = match rest {
            Some(rest) => self.cx.types.tuple_vararg(&elems, rest),
            None => self.cx.types.tuple(&elems),
        };
        self.made(tuple, at)
    }

    /// `NamedTuple{(:a, :b), Tuple{A, B}}`.
    fn named_tuple(&mut self, names: &Expr<'a>, tuple: &Expr<'a>, at: Span) -> Option<Type> {
        let ExprKind::Tuple(symbols) = &names.kind else {
            if matches!(&names.kind, ExprKind::Name(name) if self.type_var(name).is_some()) {
                self.has_widened = true;
                return Some(Type::ANY);
            }
            return self.fail(ResolveError::NotAType, names.span);
        };
        let mut fields = Vec::with_capacity(symbols.len());
        for symbol in symbols {
            match &symbol.kind {
                ExprKind::Symbol(name) => fields.push(self.cx.names.intern(name)),
                _ => return self.fail(ResolveError::NotAType, symbol.span),
            }
        }
        let tuple = match self.type_param(tuple)? {
            TypeArg::Type(tuple) => tuple,
            TypeArg::Open(_) => {
                self.has_widened = true;
                return Some(Type::ANY);
            }
        };
        let ty = self.cx.types.named_tuple(&fields, tuple);
        self.made(ty, at)
    }

    /// `@NamedTuple{a::A, b}`.
    fn named_tuple_macro(&mut self, fields: &[Expr<'a>], at: Span) -> Option<Type> {
        let mut names = Vec::with_capacity(fields.len());
        let mut elems = Vec::with_capacity(fields.len());
        let mut has_open = false;
        for field in fields {
            let (name, ty) = match &field.kind {
                ExprKind::Annotated(Some(name), ty) => {
                    let (ty, is_open) = self.is_open(|r| r.ty(ty));
                    has_open |= is_open;
                    (&name.kind, ty?)
                }
                kind => (kind, Type::ANY),
            };
            let ExprKind::Name(name) = name else { return self.fail(ResolveError::NotAType, field.span) };
            names.push(self.cx.names.intern(name));
            elems.push(ty);
        }
        let ty = self.cx.types.tuple(&elems).and_then(|tuple| self.cx.types.named_tuple(&names, tuple));
        let ty = self.made(ty, at)?;
        Some(if has_open { Type::ANY } else { ty })
    }

    /// `@Kwargs{a::A, b::B}`: `Pairs` of the names and the values, whose common type is exact only for equal
    /// types.
    fn keywords(&mut self, values: Type, at: Span) -> Option<Type> {
        let decl = self.library_decl("Pairs")?;
        let cx = self.cx.clone();
        let fields = cx.types.fields(values).map_or(&[][..], |fields| fields);
        let common = match fields {
            [] => Type::BOTTOM,
            [first, rest @ ..] if rest.iter().all(|field| field.ty == first.ty) => first.ty,
            _ => Type::ANY,
        };
        let names = self.cx.types.tuple(&vec![Type::SYMBOL; fields.len()]);
        let names = self.made(names, at)?;
        let pairs = self.cx.types.nominal(decl, &[Type::SYMBOL, common, names, values]);
        self.made(pairs, at)
    }

    /// `typeof(f)`, `Core.Const(v)`, `Core.PartialStruct(T, …)` and the other lattice elements of Julia's
    /// inference.
    fn type_call(&mut self, callee: &Expr<'a>, args: &[Expr<'a>], at: Span) -> Option<Type> {
        let name = match &callee.kind {
            ExprKind::Name(name) => &**name,
            ExprKind::Path(parts) => last_name(parts),
            _ => return self.fail(ResolveError::NotAType, at),
        };
        match (name, args) {
            ("typeof" | "Typeof", [of]) => match &of.kind {
                _ if self.looks_like_type(of) => {
                    let of = self.ty(of)?;
                    if name == "typeof" {
                        return Some(self.cx.types.type_of_type(of));
                    }
                    let ty = self.cx.types.type_of(of);
                    self.made(ty, at)
                }
                ExprKind::Name(name) | ExprKind::Symbol(name) => {
                    Some(self.function_type(std::slice::from_ref(name)))
                }
                ExprKind::Path(parts) => Some(self.function_type(parts)),
                _ => self.fail(ResolveError::NotAType, of.span),
            },
            ("Const", [value, ..]) => {
                let function = self.function_in_constant(value);
                match function.or_else(|| self.term(value, None)) {
                    Some(term) => Some(term.ty()),
                    None => self.unread.take().map(|_| Type::ANY),
                }
            }
            ("PartialStruct" | "PartialOpaque" | "LimitedAccuracy", [ty, ..]) => self.ty(ty),
            ("Conditional" | "InterConditional", _) => Some(Type::BOOL),
            ("PartialTypeVar", _) => self.named_type(&[Cow::Borrowed("TypeVar")], at),
            _ => self.fail(ResolveError::NotAType, at),
        }
    }

    /// The type of what a signature names: `Type{T}` for a constructor, else a function type.
    pub(super) fn named_object(&self, parts: &[Cow<'_, str>], is_dump: bool) -> Type {
        let decl = self.decl_of(parts);
        let constructed = decl.and_then(|decl| self.cx.types.nominal(decl, &[]).ok());
        constructed.and_then(|ty| self.cx.types.type_of(ty).ok()).unwrap_or_else(|| {
            let (module, name) = self.functions.module_defined(parts, is_dump);
            self.function_in(&module, name)
        })
    }

    /// The type of the function that a name means, qualified or not.
    pub(super) fn function_type(&self, parts: &[Cow<'_, str>]) -> Type {
        // There is only one `(:)`, whose type has the name `Colon`.
        let is_library = parts.len() == 1 || matches!(&*parts[0], BASE | "Core");
        if last_name(parts) == ":" && is_library && !self.functions.defines(parts) {
            return self.function_in(BASE, ":");
        }
        let (module, name) = self.functions.module_of(parts);
        self.function_in(&module, name)
    }

    fn function_in(&self, module: &str, name: &str) -> Type {
        self.cx.types.function_named(FunctionName::of(&self.cx.names, module, name))
    }

    /// The value of a static parameter: a type, an integer or a symbol.
    pub(super) fn static_value(&mut self, value: &Expr<'a>) -> Option<Type> {
        match self.type_param(value)? {
            TypeArg::Type(ty) => Some(ty),
            TypeArg::Open(_) => self.fail(ResolveError::NotAType, value.span),
        }
    }

    /// A parameter of an alias.
    pub(super) fn type_variable(&mut self, param: &Expr<'a>) -> Option<TypeVar> {
        Some(match self.type_param(param)? {
            TypeArg::Type(ty) => TypeVar::Param(ty),
            TypeArg::Open(bound) => TypeVar::Free(bound),
        })
    }

    /// A parameter in braces: a type, an integer, a symbol, or something open such as `<:Integer`.
    fn type_param(&mut self, param: &Expr<'a>) -> Option<TypeArg> {
        match &param.kind {
            ExprKind::Literal(Literal::Int { negative, magnitude }) => {
                let value = i64::try_from(magnitude.get()).ok().map(|m| if *negative { -m } else { m });
                match value {
                    Some(value) => Some(TypeArg::Type(self.cx.types.int(value))),
                    None => self.fail(ResolveError::NotAType, param.span),
                }
            }
            ExprKind::Symbol(name) => {
                let name = self.cx.names.intern(name);
                Some(TypeArg::Type(self.cx.types.sym(name)))
            }
            ExprKind::Prefix(op, bound) if op == "<:" => {
                let bound = self.ty(bound)?;
                let variable = self.new_variable(Type::BOTTOM, bound);
                Some(variable.map_or(TypeArg::Open(bound), TypeArg::Type))
            }
            ExprKind::Prefix(op, bound) if op == ">:" => {
                let bound = self.ty(bound)?;
                let variable = self.new_variable(bound, Type::ANY);
                Some(variable.map_or(TypeArg::Open(Type::ANY), TypeArg::Type))
            }
            // `<:Vector{T} where T` parses as `(<:Vector{T}) where T`.
            ExprKind::Where(body, vars) if matches!(&body.kind, ExprKind::Prefix(op, _) if matches!(&**op, "<:" | ">:")) =>
            {
                let ExprKind::Prefix(op, bound) = &body.kind else { return None };
                let bound = Expr::new(param.span, ExprKind::Where(bound.clone(), vars.clone()));
                self.type_param(&Expr::new(param.span, ExprKind::Prefix(op.clone(), Box::new(bound))))
            }
            ExprKind::Name(name) if matches!(&**name, "true" | "false") => {
                Some(TypeArg::Type(self.cx.types.bits_value(Type::BOOL, u128::from(name == "true"))))
            }
            ExprKind::Prefix(op, _) if op == "-" => self.value_param(param),
            // A constant of the program: `Val{Main.GEMM}`.
            ExprKind::Name(_) | ExprKind::Path(_) if self.names_value(param) => self.value_param(param),
            ExprKind::Literal(_) | ExprKind::NamedTuple(_) | ExprKind::Infix(..) => self.value_param(param),
            ExprKind::Call(callee, _) if !self.looks_like_type(param) && !self.is_lattice_element(callee) => {
                self.value_param(param)
            }
            ExprKind::Tuple(elems) => {
                let elems = elems.iter().map(|elem| match self.type_param(elem)? {
                    TypeArg::Type(value) if self.cx.types.is_value(value) => Some(value),
                    _ => self.fail(
                        ResolveError::Unsupported {
                            what: "this element of a tuple as a type parameter".to_owned(),
                            why: "the elements are numbers, characters, symbols, values without fields, and tuples of them",
                        },
                        elem.span,
                    ),
                });
                let elems = elems.collect::<Option<Vec<Type>>>()?;
                let made = self.cx.types.tuple_value(&elems);
                self.made(made, param.span).map(TypeArg::Type)
            }
            _ => {
                let (ty, is_open) = self.is_open(|r| r.ty(param));
                ty.map(if is_open { TypeArg::Open } else { TypeArg::Type })
            }
        }
    }

    /// Whether a name refers to a value: a constant of the text that is not a type, `nothing`, a function.
    fn names_value(&self, param: &Expr<'a>) -> bool {
        let name = match &param.kind {
            ExprKind::Name(name) => &**name,
            ExprKind::Path(parts) => last_name(parts),
            _ => return false,
        };
        // Types begin with a capital letter.
        let is_type_like = name.starts_with(|c: char| c.is_uppercase() || c == '#');
        let is_qualified = matches!(param.kind, ExprKind::Path(_));
        let is_value = self.consts.contains_key(name)
            || is_literal_name(name)
            || self.is_function_name(name)
            || is_qualified && !is_type_like;
        !self.looks_like_type(param) && is_value
    }

    /// A value in braces.
    fn value_param(&mut self, param: &Expr<'a>) -> Option<TypeArg> {
        match self.term(param, None)? {
            Term::Const(Const::Bits { ty, bits }) => Some(TypeArg::Type(self.cx.types.bits_value(ty, bits))),
            Term::Const(Const::Symbol(name)) => Some(TypeArg::Type(self.cx.types.sym(name))),
            Term::Const(Const::Singleton(ty)) => Some(TypeArg::Type(self.cx.types.bits_value(ty, 0))),
            // An annotation may be widened; a test of the type is refused.
            _ if self.functions.has_dumps() && self.level == Level::High => {
                self.has_widened = true;
                Some(TypeArg::Open(Type::ANY))
            }
            _ => self.fail(
                ResolveError::Unsupported {
                    what: "this type parameter".to_owned(),
                    why: "parameters are types, numbers, characters, symbols, values without fields, and tuples of them",
                },
                param.span,
            ),
        }
    }

    /// `Core.Const(…)`, `Core.PartialStruct(…)` and similar, in which Julia's inference has found more than a
    /// type. Only the type counts.
    fn is_lattice_element(&self, callee: &Expr<'a>) -> bool {
        let name = match &callee.kind {
            ExprKind::Name(name) => &**name,
            ExprKind::Path(parts) => last_name(parts),
            _ => "",
        };
        const ELEMENTS: [&str; 7] = [
            "Const",
            "PartialStruct",
            "PartialOpaque",
            "LimitedAccuracy",
            "Conditional",
            "InterConditional",
            "PartialTypeVar",
        ];
        ELEMENTS.contains(&name)
    }

    /// A variable of `where`: `T`, `T <: Bound`, `Bound >: T` or `Low <: T <: High`.
    fn bind_type_var(&mut self, var: &Expr<'a>) {
        let (name, bound) = match &var.kind {
            ExprKind::Infix(op, args) if op == "<:" && args.len() == 2 => match &args[0].kind {
                ExprKind::Infix(_, inner) if inner.len() == 2 => (&inner[1], self.ty(&args[1])),
                _ => (&args[0], self.ty(&args[1])),
            },
            ExprKind::Infix(_, args) if !args.is_empty() => (&args[0], Some(Type::ANY)),
            _ => (var, Some(Type::ANY)),
        };
        match (&name.kind, bound) {
            (ExprKind::Name(name), Some(bound)) => self.type_vars.push((name.clone(), TypeVar::Free(bound))),
            (ExprKind::Name(_), None) => {}
            _ => {
                self.fail::<()>(ResolveError::NotAType, name.span);
            }
        }
    }
}

enum TypeArg {
    Type(Type),
    /// Any subtype of this type.
    Open(Type),
}

/// `Vararg{T, N}` in `Vararg{T, N} where N`, with the names after its `where`; any other parameter unchanged.
fn vararg_of_any_length<'e, 'a>(param: &'e Expr<'a>) -> (&'e Expr<'a>, Vec<&'e str>) {
    let (mut body, mut names) = (param, Vec::new());
    while let ExprKind::Where(inner, vars) = &body.kind {
        names.extend(vars.iter().filter_map(|var| match &var.kind {
            ExprKind::Name(name) => Some(&**name),
            _ => None,
        }));
        body = inner;
    }
    match &body.kind {
        ExprKind::Curly(base, _) if matches!(&base.kind, ExprKind::Name(name) if name == "Vararg") => {
            (body, names)
        }
        _ => (param, Vec::new()),
    }
}
