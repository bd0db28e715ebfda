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
//! A method of the program with the same signature stays. The programs of a session share one copy (`session/library.rs`).
//!
//! Cost: a walk over the constants of the program; the text is read when something of it is needed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use brolga_ir::diag::SourceFile;
use brolga_ir::func::CalleeData;
use brolga_ir::func::Place;
use brolga_ir::function_name::{BASE, FunctionName};
use brolga_ir::{Const, Context, Module, Op, Type, TypeKind, text};

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

/// The functions of the texts by name, each with the parts that have methods of it.
static FUNCTIONS: LazyLock<BTreeMap<&'static str, BTreeSet<usize>>> = LazyLock::new(|| {
    let mut functions: BTreeMap<&str, BTreeSet<usize>> = BTreeMap::new();
    for (number, part) in PARTS.iter().enumerate() {
        for line in part.text.lines() {
            let Some(rest) = line.strip_prefix("function Base.") else { continue };
            let rest = rest.strip_prefix(':').unwrap_or(rest);
            let Some((name, _)) = rest.split_once('(') else { continue };
            functions.entry(name).or_default().insert(number);
        }
    }
    functions
});

/// The names of the functions that the prelude has methods of; their module is `Base`.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    FUNCTIONS.keys().copied()
}

/// Whether the prelude has methods of the function with objects of this type.
pub(crate) fn has(cx: &Context, function: Type) -> bool {
    parts_of(cx, function).is_some()
}

/// Whether all methods that the prelude has of a function mean something in every program.
pub(crate) fn is_common(cx: &Context, function: Type) -> bool {
    parts_of(cx, function).is_some_and(|parts| parts.iter().all(|&part| PARTS[part].needs.is_empty()))
}

/// The type that a function has in another context.
pub(crate) fn in_context(from: &Context, function: Type, to: &Context) -> Option<Type> {
    let TypeKind::Function(function) = *from.types.kind(function) else { return None };
    let name = |name| to.names.intern(from.names.text(name));
    let function = FunctionName { module: name(function.module), name: name(function.name) };
    Some(to.types.function_named(function))
}

fn parts_of(cx: &Context, function: Type) -> Option<&'static BTreeSet<usize>> {
    let TypeKind::Function(function) = *cx.types.kind(function) else { return None };
    let is_base = cx.names.text(function.module) == BASE;
    FUNCTIONS.get(cx.names.text(function.name)).filter(|_| is_base)
}

/// Adds the methods of the prelude that a module asks for, behind its own functions.
pub(crate) fn complete(module: &mut Module) {
    let wanted = wanted(module, 0);
    Prelude::default().add(module, wanted, &mut BTreeSet::new());
}

/// The prelude as modules of one context: a text is read when something of it is needed.
#[derive(Default)]
pub(crate) struct Prelude {
    read: [Option<Module>; PARTS.len()],
}

impl Prelude {
    /// Adds the methods of the wanted functions to a module, and those of the functions that these methods use. `known` holds the functions whose methods are
    /// elsewhere already, with the part that they come from; those that are added join them.
    pub(crate) fn add(
        &mut self,
        module: &mut Module,
        mut wanted: BTreeSet<Type>,
        known: &mut BTreeSet<(Type, usize)>,
    ) {
        while !wanted.is_empty() {
            let seen = module.func_count();
            for function in wanted {
                for &part in parts_of(&module.cx, function).into_iter().flatten() {
                    if !known.contains(&(function, part)) && self.add_from(part, function, module) {
                        known.insert((function, part));
                    }
                }
            }
            wanted = self::wanted(module, seen);
        }
    }

    /// Adds the methods of a function that a part has; false if the part means nothing in the context.
    fn add_from(&mut self, part: usize, function: Type, module: &mut Module) -> bool {
        let Part { text, needs } = &PARTS[part];
        let (names, types) = (&module.cx.names, &module.cx.types);
        let has_type = |name: &&str| types.find_decl(names.intern(name)).is_some();
        if !needs.iter().all(has_type) {
            return false;
        }
        let read = self.read[part].get_or_insert_with(|| match SourceFile::new("prelude", *text) {
            Ok(source) => text::read(&source, &module.cx).0.module,
            Err(_) => Module::new(module.cx.clone()),
        });
        for (_, func) in read.funcs() {
            if func.sig.params.first().is_some_and(|object| object.ty == function) {
                let mut func = func.clone();
                // There is no line of the program to show for it.
                let insts: Vec<_> = func.blocks().flat_map(|block| func.block_insts(block)).collect();
                insts.into_iter().for_each(|inst| func.set_place(inst, Place::default()));
                // A method of the program with this signature stays.
                let _added = module.add_func(func);
            }
        }
        true
    }
}

/// The functions that a module's functions from a number on use, that the prelude has, and whose methods in the module may not be all: those
/// without methods, those that a call by dispatch may reach, and those that are called with types for which there is no method.
pub(crate) fn wanted(module: &Module, from: usize) -> BTreeSet<Type> {
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
                if has(&module.cx, ty) {
                    wanted.insert(ty);
                }
            }
        }
    }
    wanted
}

#[cfg(test)]
mod tests {
    use super::*;
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
