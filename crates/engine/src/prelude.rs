//! Methods of Base for the core types, in the IR's own text.
//!
//! A dump has the methods that a program was seen to call, not those that a call by dispatch could reach. So a program that uses a
//! function of the prelude gets the methods of the prelude, unless it is an `invoke` of a method that the program has:
//!
//! ```text
//! %5 = Base.length(%4)::Any        dispatch                         length(Array), length(Tuple), length(String)
//! %6 = invoke Base.length(s)…      it has `Base.length(MyList)`     nothing: the callee is known
//! ```
//!
//! A method of the program with the same signature stays. Programs of a session get none: what one defines the others see.
//!
//! Cost: a walk over the constants of the program; the text is read when something of it is needed.

use std::collections::BTreeSet;

use brolga_ir::diag::SourceFile;
use brolga_ir::func::CalleeData;
use brolga_ir::func::Place;
use brolga_ir::function_name::BASE;
use brolga_ir::{Const, Module, Op, Type, TypeKind, text};

/// A text of the prelude, and the types without which it means nothing.
struct Part {
    text: &'static str,
    needs: &'static [&'static str],
}

const PARTS: [Part; 4] = [
    Part { text: include_str!("prelude.jlir"), needs: &[] },
    Part { text: include_str!("prelude_more.jlir"), needs: &[] },
    Part { text: include_str!("prelude_io.jlir"), needs: &["GenericIOBuffer"] },
    Part {
        text: include_str!("prelude_dates.jlir"),
        needs: &["GenericIOBuffer", "Date", "UTInstant", "Day"],
    },
];

/// Adds the methods of the prelude that a module asks for.
pub(crate) fn complete(module: &mut Module) {
    let (names, types) = (&module.cx.names, &module.cx.types);
    let has_type = |name: &str| types.find_decl(names.intern(name)).is_some();
    let parts: Vec<&Part> =
        PARTS.iter().filter(|part| part.needs.iter().all(|name| has_type(name))).collect();
    let mut read: Vec<Option<Module>> = vec![None; parts.len()];
    let mut seen = 0;
    loop {
        let wanted = wanted(module, seen, &parts);
        seen = module.func_count();
        if wanted.is_empty() {
            return;
        }
        for (part, read) in parts.iter().zip(&mut read) {
            let is_wanted = |name: &str| part.has(name);
            let named = |&ty: &Type| match *module.cx.types.kind(ty) {
                TypeKind::Function(function) => is_wanted(module.cx.names.text(function.name)),
                _ => false,
            };
            if read.is_none() && wanted.iter().any(named) {
                let Ok(source) = SourceFile::new("prelude", part.text) else { return };
                *read = Some(text::read(&source, &module.cx).0.module);
            }
        }
        for (_, func) in read.iter().flatten().flat_map(|prelude| prelude.funcs()) {
            let callee = func.sig.params.first().map(|object| object.ty);
            if callee.is_some_and(|callee| wanted.contains(&callee)) {
                let mut func = func.clone();
                // There is no line of the program to show for it.
                let insts: Vec<_> = func.blocks().flat_map(|block| func.block_insts(block)).collect();
                insts.into_iter().for_each(|inst| func.set_place(inst, Place::default()));
                // A method of the program with this signature stays.
                let _added = module.add_func(func);
            }
        }
    }
}

/// The functions that a module's functions from a number on use, that the prelude has, and whose methods in the module may not be all: those
/// without methods, those that a call by dispatch may reach, and those that are called with types for which there is no method.
fn wanted(module: &Module, from: usize, parts: &[&Part]) -> BTreeSet<Type> {
    let has = |name: &str| parts.iter().any(|part| part.has(name));
    let mut wanted = BTreeSet::new();
    for (_, func) in module.funcs().skip(from) {
        for inst in func.blocks().flat_map(|block| func.block_insts(block)) {
            let mut operands = func.args(inst);
            if let Op::Invoke(callee) = func.op(inst)
                && let CalleeData::Method { function, args, .. } = func.callee(callee)
                && module.find_method(*function, args).is_some()
            {
                operands = operands.get(1..).unwrap_or_default();
            }
            for &value in operands {
                let Some(&Const::Singleton(ty)) = func.as_const(value) else { continue };
                let TypeKind::Function(function) = *module.cx.types.kind(ty) else { continue };
                let (home, name) =
                    (module.cx.names.text(function.module), module.cx.names.text(function.name));
                if home == BASE && has(name) {
                    wanted.insert(ty);
                }
            }
        }
    }
    wanted
}

impl Part {
    /// Whether the text has a function.
    fn has(&self, name: &str) -> bool {
        self.text.lines().any(|line| {
            let rest = line.strip_prefix("function Base.");
            let rest = rest.and_then(|rest| rest.strip_prefix(':').unwrap_or(rest).strip_prefix(name));
            rest.is_some_and(|rest| rest.starts_with('('))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use brolga_ir::Context;
    use brolga_ir::verify::verify_module;

    /// Functions of the C library that the prelude calls.
    const C_LIBRARY: [&str; 15] = [
        "atan", "cos", "cosh", "exp", "exp2", "log", "log10", "log2", "memcmp", "memmove", "pow", "sin",
        "sinh", "tan", "tanh",
    ];

    #[test]
    fn the_text_is_right_and_calls_nothing_that_it_has_not() {
        let types = "mutable struct GenericIOBuffer{T}\n    data::T\n    size::Int64\nend\n\
                     struct Day\n    value::Int64\nend\n\
                     struct UTInstant{P}\n    periods::P\nend\n\
                     struct Date\n    instant::UTInstant{Day}\nend\n";
        for part in PARTS {
            let cx = Context::new();
            if !part.needs.is_empty() {
                text::read(&SourceFile::new("types", types).unwrap(), &cx);
            }
            // A part may call those that are there whenever it is.
            let is_there = |other: &&Part| other.needs.iter().all(|name| part.needs.contains(name));
            let texts: String = PARTS.iter().filter(is_there).map(|part| part.text).collect();
            let source = SourceFile::new("prelude", &*texts).unwrap();
            let (unit, findings) = text::read(&source, &cx);
            assert!(!findings.has_errors(), "{findings:?}");
            assert_eq!(verify_module(&unit.module), Ok(()));
            let missing = brolga_ir::verify::missing_callees(&unit.module, |name| {
                brolga_opt::lower::is_julia_function(name) || C_LIBRARY.contains(&name)
            });
            assert!(missing.is_empty(), "{missing:?}");
        }
    }

    #[test]
    fn a_program_gets_what_it_names_and_has_not() {
        let add = |text: &str| {
            let source = SourceFile::new("program", text).unwrap();
            let (unit, findings) = text::read(&source, &Context::new());
            assert!(!findings.has_errors(), "{findings:?}");
            let mut module = unit.module;
            let own = module.func_count();
            complete(&mut module);
            let added = module.funcs().skip(own);
            added.map(|(_, func)| func.symbol(&module.cx)).collect::<Vec<_>>()
        };
        let call = "function f(x::Any)::Any\n1 ─ %1 = Base.isempty(x)::Any\n└──      return %1\nend\n";
        assert_eq!(
            add(call),
            ["Base.isempty(Array)", "Base.isempty(Tuple{Vararg{Any}})", "Base.isempty(String)"]
        );
        let own = "function Base.isempty(x::Int64)::Bool\n1 ─      return false\nend\n";
        assert_eq!(add(&format!("{own}{call}")).len(), 3);
        let known = "function f(x::Int64)::Bool\n1 ─ %1 = invoke Base.isempty(x::Int64)::Bool\n└──      return %1\nend\n";
        assert!(add(&format!("{own}{known}")).is_empty());
        let same = "function Base.isempty(x::String)::Bool\n1 ─      return false\nend\n";
        assert_eq!(add(&format!("{same}{call}")).len(), 2);
        // A method of the prelude brings its callees.
        let root = "function f(x::Int64)::Any\n1 ─ %1 = Base.sqrt(x)::Any\n└──      return %1\nend\n";
        assert_eq!(add(root), ["Base.sqrt(Float64)", "Base.sqrt(Float32)", "Base.sqrt(Int64)"]);
        assert!(add("function f()::Nothing\n1 ─      return nothing\nend\n").is_empty());
    }
}
