//! Methods of Base for the core types, written in the IR's text form.
//!
//! A dump has the methods that a program calls statically, but not the methods that a dynamic call could reach. So a program that uses a
//! function of the prelude gets the methods of the prelude, unless the use is an `invoke` of a method that the program has:
//!
//! ```text
//! %5 = Base.length(%4)::Any        dispatch                         length(Array), length(Tuple), length(String)
//! %6 = invoke Base.length(s)…      it has `Base.length(MyList)`     nothing: the callee is fixed
//! ```
//!
//! A method of the program with the same signature stays. The programs of a session share one copy (`session/library.rs`).
//!
//! Cost: a walk over the constants of the program; a part of the text is read when it is needed.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use brolga_ir::diag::SourceFile;
use brolga_ir::func::CalleeData;
use brolga_ir::func::Place;
use brolga_ir::function_name::BASE;
use brolga_ir::{Const, Context, FuncId, Module, Op, Type, TypeKind, text};

/// A text of the prelude, and the types it requires.
struct Part {
    text: &'static str,
    needs: &'static [&'static str],
    /// The kind of buffer that the text is for, if it is generic over several.
    buffer: Option<&'static Buffer>,
}

/// A kind of `IOBuffer`: the words that are substituted for its types in a text.
struct Buffer {
    words: [(&'static str, &'static str); 4],
    /// Whether a program declares the buffer and its fields with these types; any declaration is accepted for fields of type `Any`.
    fits: fn(&Context) -> bool,
}

const ANY_BUFFER: Buffer = Buffer {
    words: [("BUFFER", "GenericIOBuffer"), ("DATA", "Any"), ("SIZE", "Any"), ("FLAG", "Any")],
    fits: |_| true,
};

/// Until Julia 1.10.
const VECTOR_BUFFER: Buffer = Buffer {
    words: [
        ("BUFFER", "GenericIOBuffer{Vector{UInt8}}"),
        ("DATA", "Vector{UInt8}"),
        ("SIZE", "Int64"),
        ("FLAG", "Bool"),
    ],
    fits: |cx| cx.types.vector(Type::UINT8).is_ok_and(|bytes| has_fields(cx, bytes, false)),
};

/// Since Julia 1.11.
const MEMORY_BUFFER: Buffer = Buffer {
    words: [
        ("BUFFER", "GenericIOBuffer{Memory{UInt8}}"),
        ("DATA", "Memory{UInt8}"),
        ("SIZE", "Int64"),
        ("FLAG", "Bool"),
    ],
    fits: |cx| cx.types.memory(Type::UINT8).is_ok_and(|bytes| has_fields(cx, bytes, true)),
};

const fn part(text: &'static str, needs: &'static [&'static str]) -> Part {
    Part { text, needs, buffer: None }
}

const fn writing(buffer: &'static Buffer) -> Part {
    Part { text: include_str!("prelude_buffer.jlir"), needs: &["GenericIOBuffer"], buffer: Some(buffer) }
}

const fn dates(buffer: &'static Buffer) -> Part {
    Part { text: include_str!("prelude_dates_print.jlir"), needs: &DATES, buffer: Some(buffer) }
}

const DATES: [&str; 4] = ["GenericIOBuffer", "Date", "UTInstant", "Day"];

const PARTS: [Part; 17] = [
    part(include_str!("prelude.jlir"), &[]),
    part(include_str!("prelude_more.jlir"), &[]),
    part(include_str!("prelude_strings.jlir"), &[]),
    part(include_str!("prelude_text.jlir"), &[]),
    part(include_str!("prelude_digits.jlir"), &[]),
    part(include_str!("prelude_chars.jlir"), &[]),
    part(include_str!("prelude_numbers.jlir"), &[]),
    part(include_str!("prelude_collections.jlir"), &[]),
    part(include_str!("prelude_dict.jlir"), &["Dict"]),
    part(include_str!("prelude_io.jlir"), &["GenericIOBuffer"]),
    writing(&ANY_BUFFER),
    writing(&VECTOR_BUFFER),
    writing(&MEMORY_BUFFER),
    part(include_str!("prelude_dates.jlir"), &DATES),
    dates(&ANY_BUFFER),
    dates(&VECTOR_BUFFER),
    dates(&MEMORY_BUFFER),
];

impl Part {
    /// The text with the types of its buffer substituted.
    fn text(&self) -> Cow<'static, str> {
        let words = self.buffer.map(|buffer| buffer.words);
        let replaced = |text: String, (word, ty): (&str, &str)| text.replace(word, ty);
        match words {
            Some(words) => Cow::Owned(words.into_iter().fold(self.text.to_owned(), replaced)),
            None => Cow::Borrowed(self.text),
        }
    }

    /// Whether a program has the types that the text requires, in the required form.
    fn fits(&self, cx: &Context) -> bool {
        let has_type = |name: &&str| cx.types.find_decl(cx.names.intern(name)).is_some();
        self.needs.iter().all(has_type) && self.buffer.is_none_or(|buffer| (buffer.fits)(cx))
    }
}

/// Whether a program declares the buffer over `bytes` with Julia's fields, since 1.11 or before.
fn has_fields(cx: &Context, bytes: Type, since_memory: bool) -> bool {
    let (names, types) = (&cx.names, &cx.types);
    let decl = types.find_decl(names.intern("GenericIOBuffer"));
    let Some(ty) = decl.and_then(|decl| types.nominal(decl, &[bytes]).ok()) else { return false };
    let has = |name: &str, ty_of_field: Type| {
        let name = names.intern(name);
        let mut fields = types.fields(ty).into_iter().flatten();
        fields.any(|field| field.name == name && field.ty == ty_of_field)
    };
    types.is_mutable(ty)
        && has("data", bytes)
        && ["size", "ptr", "maxsize"].iter().all(|name| has(name, Type::INT64))
        && ["writable", "append"].iter().all(|name| has(name, Type::BOOL))
        && has("reinit", Type::BOOL) == since_memory
}

/// The functions of the texts by name, each with the parts that define methods of it.
static FUNCTIONS: LazyLock<BTreeMap<&'static str, BTreeSet<usize>>> = LazyLock::new(|| {
    let mut functions: BTreeMap<&str, BTreeSet<usize>> = BTreeMap::new();
    for (number, part) in PARTS.iter().enumerate() {
        for line in part.text.lines() {
            let Some(rest) = line.strip_prefix("function Base.") else { continue };
            let rest = rest.strip_prefix(':').unwrap_or(rest);
            let Some((name, _)) = rest.split_once('(') else { continue };
            // `Base.:(:)` alone has its name in parentheses.
            let name = if name.is_empty() { ":" } else { name };
            functions.entry(name).or_default().insert(number);
        }
    }
    functions
});

/// The names of the functions that the prelude has methods of; their module is `Base`.
pub fn names() -> impl Iterator<Item = &'static str> {
    FUNCTIONS.keys().copied()
}

/// Whether the prelude has methods of the function with objects of this type.
pub(crate) fn has(cx: &Context, function: Type) -> bool {
    parts_of(cx, function).is_some()
}

/// The type that a function has in another context.
pub(crate) fn in_context(from: &Context, function: Type, to: &Context) -> Option<Type> {
    let TypeKind::Function(function) = *from.types.kind(function) else { return None };
    Some(to.types.function_named(function.taken_over(&from.names, &to.names)))
}

fn parts_of(cx: &Context, function: Type) -> Option<&'static BTreeSet<usize>> {
    let TypeKind::Function(function) = *cx.types.kind(function) else { return None };
    let is_base = cx.names.text(function.module) == BASE;
    FUNCTIONS.get(cx.names.text(function.name)).filter(|_| is_base)
}

/// Appends the prelude methods that a module needs to its own functions. Returns the methods that are valid in every program; the others require types that
/// this one declares.
pub(crate) fn complete(module: &mut Module) -> BTreeSet<FuncId> {
    let wanted = wanted(module, 0);
    Prelude::default().add(module, wanted, &mut BTreeSet::new())
}

/// The prelude as modules of one context: a text is read when a part of it is needed.
#[derive(Default)]
pub(crate) struct Prelude {
    read: [Option<Module>; PARTS.len()],
}

impl Prelude {
    /// Adds the methods of the wanted functions to a module, and the methods of the functions that they use. `known` holds the functions whose methods exist
    /// elsewhere already, with the part that they come from; added functions are inserted into it. Returns the same as [`complete`].
    pub(crate) fn add(
        &mut self,
        module: &mut Module,
        mut wanted: BTreeSet<Type>,
        known: &mut BTreeSet<(Type, usize)>,
    ) -> BTreeSet<FuncId> {
        let mut common = BTreeSet::new();
        while !wanted.is_empty() {
            let seen = module.func_count();
            for function in wanted {
                for &part in parts_of(&module.cx, function).into_iter().flatten() {
                    if known.contains(&(function, part)) {
                        continue;
                    }
                    let Some(added) = self.add_from(part, function, module) else { continue };
                    known.insert((function, part));
                    if PARTS[part].needs.is_empty() {
                        common.extend(added);
                    }
                }
            }
            wanted = self::wanted(module, seen);
        }
        common
    }

    /// Adds a part's methods of a function; none if the context lacks the types that the part requires.
    fn add_from(&mut self, part: usize, function: Type, module: &mut Module) -> Option<Vec<FuncId>> {
        let part_of = &PARTS[part];
        if !part_of.fits(&module.cx) {
            return None;
        }
        let mut added = Vec::new();
        let read = self.read[part].get_or_insert_with(|| match SourceFile::new("prelude", part_of.text()) {
            Ok(source) => text::read_library(&source, &module.cx).0.module,
            Err(_) => Module::new(module.cx.clone()),
        });
        for (_, func) in read.funcs() {
            if func.sig.params.first().is_some_and(|object| object.ty == function) {
                let mut func = func.clone();
                // The program has no line for it.
                let insts: Vec<_> = func.blocks().flat_map(|block| func.block_insts(block)).collect();
                insts.into_iter().for_each(|inst| func.set_place(inst, Place::default()));
                // A method of the program with this signature stays.
                added.extend(module.add_func(func));
            }
        }
        Some(added)
    }
}

/// The functions of the prelude that a module's functions, starting at `from`, use and whose methods in the module may be incomplete: functions
/// without methods, functions that a dynamic call may reach, and functions that are called with types for which there is no method.
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

    /// C functions that the prelude calls, besides functions of Julia's run time.
    const C_LIBRARY: [&str; 20] = [
        "atan",
        "cbrt",
        "cos",
        "cosh",
        "exp",
        "exp2",
        "hypot",
        "log",
        "log10",
        "log2",
        "memcmp",
        "memmove",
        "pow",
        "sin",
        "sinh",
        "tan",
        "tanh",
        "utf8proc_category",
        "utf8proc_tolower",
        "utf8proc_toupper",
    ];

    #[test]
    fn the_text_is_right_and_calls_nothing_that_it_has_not() {
        // Fields that differ from Julia's, and the fields until 1.10.
        let few = "mutable struct GenericIOBuffer{T}\n    data::T\n    size::Int64\nend\n";
        let old = "mutable struct GenericIOBuffer{T}\n    data::T\n    writable::Bool\n    append::Bool\n    size::Int64\n    \
                   maxsize::Int64\n    ptr::Int64\nend\n";
        let new = old.replace("    append", "    reinit::Bool\n    append");
        let dates = "struct Day\n    value::Int64\nend\n\
                     struct UTInstant{P}\n    periods::P\nend\n\
                     struct Date\n    instant::UTInstant{Day}\nend\n";
        let all = [few, old, &new].map(|buffer| format!("{buffer}{dates}"));
        let all_types = all.each_ref().map(String::as_str);
        for (types, part) in
            all_types.into_iter().flat_map(|types| PARTS.iter().map(move |part| (types, part)))
        {
            let cx = Context::new();
            if !part.needs.is_empty() {
                let names = format!("{types}function uses(x::Dict)::Nothing\n1 ─      return nothing\nend\n");
                text::read(&SourceFile::new("types", names).unwrap(), &cx);
            }
            if !part.fits(&cx) {
                continue;
            }
            // A part may call functions that exist whenever the part does.
            let is_there =
                |other: &&Part| other.needs.iter().all(|name| part.needs.contains(name)) && other.fits(&cx);
            let texts: String = PARTS.iter().filter(is_there).map(Part::text).collect();
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
        // A method of the prelude requires its callees.
        let root = "function f(x::Int64)::Any\n1 ─ %1 = Base.sqrt(x)::Any\n└──      return %1\nend\n";
        assert_eq!(add(root), ["Base.sqrt(Float64)", "Base.sqrt(Float32)", "Base.sqrt(Int64)"]);
        assert!(add("function f()::Nothing\n1 ─      return nothing\nend\n").is_empty());
    }
}
