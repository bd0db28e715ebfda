//! Images as libraries: the functions that C calls, their names and types, and the header that declares them.
//!
//! ```text
//!   fib(Int64)::Int64  ──►  int64_t fib(int64_t a1);     entry in the image, line of the header
//! ```
//!
//! A function can be exported if each argument and the result is an integer of 8 to 64 bits, a `Float32`, `Float64`, `Bool`,
//! `Char` or `Ptr`; the result may also be `nothing`. C handles all other values as objects, through the C API.
//!
//! A C name is an identifier of C and C++ that neither the library itself nor the C API uses. Uniqueness among
//! libraries is not checked: a program that links two libraries with the same name gets the first.
//!
//! Not done: structs by value, strings, arrays.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use brolga_aot::image::Export;
use brolga_codegen::compiled::CompiledFunction;
use brolga_codegen::export::{compile_export, compile_open, is_of_c};
use brolga_codegen::isa::TargetIsa;
use brolga_codegen::sig::{FunctionType, Signature, ValueType};
use brolga_ir::{FuncId, Module};

use crate::error::Error;
use brolga_codegen::native_type::type_of;

/// Julia's types that have an equivalent in C.
const TYPES: &[(&str, &str)] = &[
    ("Int8", "int8_t"),
    ("Int16", "int16_t"),
    ("Int32", "int32_t"),
    ("Int64", "int64_t"),
    ("UInt8", "uint8_t"),
    ("UInt16", "uint16_t"),
    ("UInt32", "uint32_t"),
    ("UInt64", "uint64_t"),
    ("Float32", "float"),
    ("Float64", "double"),
    ("Bool", "bool"),
    ("Char", "uint32_t"),
];

/// Reserved words of C and C++, and names from the headers that the generated header includes.
const RESERVED: &[&str] = &[
    "NULL",
    "alignas",
    "alignof",
    "and",
    "and_eq",
    "asm",
    "auto",
    "bitand",
    "bitor",
    "bool",
    "break",
    "case",
    "catch",
    "char",
    "char16_t",
    "char32_t",
    "char8_t",
    "class",
    "co_await",
    "co_return",
    "co_yield",
    "compl",
    "concept",
    "const",
    "const_cast",
    "consteval",
    "constexpr",
    "constinit",
    "continue",
    "decltype",
    "default",
    "delete",
    "do",
    "double",
    "dynamic_cast",
    "else",
    "enum",
    "errno",
    "explicit",
    "export",
    "extern",
    "false",
    "float",
    "for",
    "friend",
    "goto",
    "if",
    "inline",
    "int",
    "long",
    "main",
    "max_align_t",
    "mutable",
    "namespace",
    "new",
    "noexcept",
    "not",
    "not_eq",
    "nullptr",
    "nullptr_t",
    "offsetof",
    "operator",
    "or",
    "or_eq",
    "private",
    "protected",
    "ptrdiff_t",
    "public",
    "register",
    "reinterpret_cast",
    "requires",
    "restrict",
    "return",
    "short",
    "signed",
    "size_t",
    "sizeof",
    "static",
    "static_assert",
    "static_cast",
    "struct",
    "switch",
    "template",
    "this",
    "thread_local",
    "throw",
    "true",
    "try",
    "typedef",
    "typeid",
    "typename",
    "typeof",
    "typeof_unqual",
    "union",
    "unsigned",
    "using",
    "virtual",
    "void",
    "volatile",
    "wchar_t",
    "while",
    "xor",
    "xor_eq",
];

/// The functions of a program that C calls.
///
/// ```
/// # extern crate brolga_engine as brolga;
/// use brolga::image::{self, Library};
/// use brolga::{Options, Program};
/// let source = "function twice(n::Int64)::Int64\n1 ─ %1 = Base.add_int(n, n)::Int64\n└── return %1\nend\n";
/// # if cfg!(target_arch = "x86_64") {
/// let program = Program::read("twice.jlir", source.as_bytes())?;
/// let library = Library::new("numbers").export("twice");
/// let made = image::build_library(&program, &Options::new(), &library)?;
/// assert!(made.header.contains("int64_t twice(int64_t a1);"));
/// # }
/// # Ok::<(), brolga::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Library {
    name: String,
    exports: Vec<(String, Option<String>)>,
    all: bool,
}

impl Library {
    /// Creates a library of this name, without functions. C opens it with `NAME_open`.
    pub fn new(name: impl Into<String>) -> Library {
        Library { name: name.into(), exports: Vec::new(), all: false }
    }

    /// Adds a function, given by its symbol (`fib(Int64)`), or by its bare name if only one method has it. C calls it
    /// by its bare name.
    #[must_use]
    pub fn export(mut self, function: impl Into<String>) -> Library {
        self.exports.push((function.into(), None));
        self
    }

    /// As [`Library::export`], with another C name.
    #[must_use]
    pub fn export_as(mut self, function: impl Into<String>, name: impl Into<String>) -> Library {
        self.exports.push((function.into(), Some(name.into())));
        self
    }

    /// Adds all functions that have C types and whose bare names are valid in C and belong to only one method.
    #[must_use]
    pub fn export_all(mut self) -> Library {
        self.all = true;
        self
    }
}

/// An image with entries for C.
#[derive(Clone, Debug)]
pub struct LibraryImage {
    /// The bytes of the image, a shared library.
    pub image: Vec<u8>,
    /// The header for C and C++. It includes `brolga.h`, the header of the C API.
    pub header: String,
    /// The functions that C calls, by symbol.
    pub functions: Vec<String>,
}

/// A library with resolved names and types.
pub(crate) struct Resolved {
    name: String,
    functions: Vec<Exported>,
    /// The C names of the functions.
    names: BTreeSet<String>,
}

/// A function that C calls.
struct Exported {
    export: Export,
    signature: Signature,
    /// Its declaration, and its Julia type.
    declaration: String,
    described: String,
}

impl Resolved {
    pub(crate) fn new(module: &Module, library: &Library) -> Result<Resolved, Error> {
        if let Some(fault) = bad_name(&library.name) {
            let reason = format!("`{}` is not a name for a library, because it {fault}", library.name);
            return Err(Error::Export { function: library.name.clone(), reason });
        }
        let mut resolved =
            Resolved { name: library.name.clone(), functions: Vec::new(), names: BTreeSet::new() };
        for (function, name) in &library.exports {
            let id = found(module, function)?;
            let bare = module[id].spelled_name(&module.cx);
            resolved.add(module, id, name.as_deref().unwrap_or(&bare))?;
        }
        if library.all {
            let mut methods: BTreeMap<String, usize> = BTreeMap::new();
            for (_, func) in module.funcs() {
                *methods.entry(func.spelled_name(&module.cx)).or_default() += 1;
            }
            let known: BTreeSet<String> = resolved.symbols().into_iter().collect();
            for (id, func) in module.funcs() {
                let bare = func.spelled_name(&module.cx);
                if methods.get(&bare) == Some(&1) && !known.contains(&func.symbol(&module.cx)) {
                    // Functions that C cannot call are left out.
                    let _ = resolved.add(module, id, &bare);
                }
            }
        }
        if resolved.functions.is_empty() {
            let reason = "no function of the program has types of C and a name for C".to_owned();
            return Err(Error::Export { function: library.name.clone(), reason });
        }
        Ok(resolved)
    }

    fn add(&mut self, module: &Module, id: FuncId, name: &str) -> Result<(), Error> {
        let symbol = module[id].symbol(&module.cx);
        let refused = |reason: String| Error::Export { function: symbol.clone(), reason };
        if let Some(fault) = bad_name(name) {
            let told = format!(
                "`{name}` is not a name for C, because it {fault}: choose another one (`{symbol}=NAME`)"
            );
            return Err(refused(told));
        }
        if name == self.open_name() || self.names.contains(name) {
            return Err(refused(format!(
                "the library has another function that C calls by the name `{name}`"
            )));
        }
        let ty = type_of(module, id);
        let ty = ty.ok_or_else(|| refused("it has no native form".to_owned()))?;
        let (result, params) = c_types(&ty).map_err(|foreign| {
            let takes = format!(
                "`{foreign}` is not a type of C: integers of 8 to 64 bits, `Float32`, `Float64`, `Bool`, \
                 `Char`, `Ptr` and `Nothing` as a result are"
            );
            refused(takes)
        })?;
        let params: Vec<String> =
            params.iter().enumerate().map(|(at, ty)| spaced(ty, &format!("a{}", at + 1))).collect();
        let params = if params.is_empty() { "void".to_owned() } else { params.join(", ") };
        let declaration = spaced(result, &format!("{name}({params})"));
        let described = format!("{symbol}::{}", ty.result.name);
        let export = Export { function: symbol.clone(), name: name.to_owned() };
        self.names.insert(name.to_owned());
        self.functions.push(Exported { export, signature: ty.signature, declaration, described });
        Ok(())
    }

    /// Compiles the entries, and the function that opens the library.
    pub(crate) fn entries(
        &self,
        isa: &TargetIsa,
    ) -> Result<(Vec<(Export, CompiledFunction)>, CompiledFunction), Error> {
        let refused = |function: &str, error: brolga_codegen::compile::CompileError| Error::Export {
            function: function.to_owned(),
            reason: error.to_string(),
        };
        let entry = |(index, exported): (usize, &Exported)| {
            let Exported { export, signature, .. } = exported;
            let made = compile_export(&export.name, signature, index as u32, isa);
            Ok((export.clone(), made.map_err(|error| refused(&export.function, error))?))
        };
        let entries = self.functions.iter().enumerate().map(entry).collect::<Result<Vec<_>, Error>>()?;
        let name = self.open_name();
        let open = compile_open(&name, isa).map_err(|error| refused(&name, error))?;
        Ok((entries, open))
    }

    fn open_name(&self) -> String {
        format!("{}_open", self.name)
    }

    /// The symbols of the functions.
    pub(crate) fn symbols(&self) -> Vec<String> {
        self.functions.iter().map(|exported| exported.export.function.clone()).collect()
    }

    /// The text of the header.
    pub(crate) fn header(&self) -> String {
        let (name, open) = (&self.name, self.open_name());
        let guard = format!("{}_BROLGA_IMAGE_H", name.to_ascii_uppercase());
        let mut text = format!(
            "/* The functions of the image `{name}`.
 *
 * Generated by `brolga image build`; do not edit. A program links with the image and with the C library of Brolga.
 *
 * A function that throws gives 0, and so does one whose image cannot be opened. The error is kept for the thread until
 * `brolga_exports_take_error` gives it to the caller, who frees it; errors behind the first one are dropped until then.
 */

#ifndef {guard}
#define {guard}

#include \"brolga.h\"

#ifdef __cplusplus
extern \"C\" {{
#endif

/* Opens the image. The first call of a function does so, too, with the options of NULL. Once it is open this does nothing. */
BROLGA_CHECKED BrolgaError *{open}(const BrolgaOptions *options);
"
        );
        for Exported { declaration, described, .. } in &self.functions {
            // A name of the program could end the comment.
            let described = described.replace("*/", "* /");
            // Writing to a string cannot fail.
            let _ = write!(text, "\n/* {described} */\n{declaration};\n");
        }
        text.push_str("\n#ifdef __cplusplus\n}\n#endif\n\n#endif\n");
        text
    }
}

/// The function with this bare name or symbol.
fn found(module: &Module, wanted: &str) -> Result<FuncId, Error> {
    let plain = |text: &str| text.chars().filter(|c| !c.is_whitespace()).collect::<String>();
    let symbol = plain(wanted);
    if let Some((id, _)) = module.funcs().find(|(_, func)| plain(&func.symbol(&module.cx)) == symbol) {
        return Ok(id);
    }
    let refused = |reason: String| Err(Error::Export { function: wanted.to_owned(), reason });
    let named = module.funcs().filter(|(_, func)| func.spelled_name(&module.cx) == wanted);
    let named: Vec<FuncId> = named.map(|(id, _)| id).collect();
    match named.as_slice() {
        &[only] => Ok(only),
        [] => refused("the program has no such function".to_owned()),
        several => {
            let symbols: BTreeSet<String> =
                several.iter().map(|&id| format!("`{}`", module[id].symbol(&module.cx))).collect();
            refused(format!("it may be any of {}", symbols.into_iter().collect::<Vec<_>>().join(", ")))
        }
    }
}

/// The C types of result and parameters; the error is the name of the first type that C does not have.
fn c_types(ty: &FunctionType) -> Result<(&'static str, Vec<&'static str>), String> {
    let of = |value: &ValueType| {
        let foreign = || value.name.clone();
        let is_scalar = value.leaves.len() == 1;
        let known = TYPES.iter().find(|(julia, _)| *julia == value.name).map(|(_, c)| *c);
        let known =
            known.or_else(|| (value.name == "Ptr" || value.name.starts_with("Ptr{")).then_some("void *"));
        known.filter(|_| is_scalar).ok_or_else(foreign)
    };
    let result =
        if ty.result.name == "Nothing" && ty.result.leaves.is_empty() { "void" } else { of(&ty.result)? };
    let params = ty.params.iter().map(of).collect::<Result<Vec<_>, _>>()?;
    if !is_of_c(&ty.signature) || ty.signature.params.len() != params.len() {
        return Err(ty.describe());
    }
    Ok((result, params))
}

/// A declaration of a name with a type.
fn spaced(ty: &str, name: &str) -> String {
    if ty.ends_with('*') { format!("{ty}{name}") } else { format!("{ty} {name}") }
}

/// Whether `stdint.h` may declare a name as a type or define it as a macro: `intmax_t`, `INT64_MAX`, `SIZE_MAX`.
fn is_of_stdint(name: &str) -> bool {
    let is = |begins: &[&str], ends: &[&str]| {
        begins.iter().any(|&begin| name.starts_with(begin)) && ends.iter().any(|&end| name.ends_with(end))
    };
    is(&["int", "uint"], &["_t"])
        || is(&["INT", "UINT"], &["_MAX", "_MIN", "_WIDTH", "_C"])
        || is(&["PTRDIFF_", "SIG_ATOMIC_", "SIZE_", "WCHAR_", "WINT_"], &["_MAX", "_MIN", "_WIDTH"])
}

/// The reason why a name is invalid in C.
fn bad_name(name: &str) -> Option<&'static str> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if name.is_empty() || !name.chars().all(is_word) || name.starts_with(|c: char| c.is_ascii_digit()) {
        Some("is not an identifier of C")
    } else if RESERVED.contains(&name) || is_of_stdint(name) {
        Some("has a meaning in C or C++")
    } else if name.strip_prefix('_').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_uppercase())) {
        Some("is reserved by C")
    } else if ["__", "brolga_", "BROLGA_", "Brolga"].iter().any(|&begin| name.starts_with(begin)) {
        Some("begins as names of the C library or of Brolga do")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::Program;

    const SOURCE: &str = "
function add(a::Int32, b::Float64)::Float64
1 ─ return b
end
function text(s::String)::String
1 ─ return s
end
function twice(n::Int64)::Int64
1 ─ return n
end
function twice(x::Float64)::Float64
1 ─ return x
end
function void(p::Ptr{Nothing}, yes::Bool)::Nothing
1 ─ return nothing
end
";

    fn resolved(library: &Library) -> Result<Resolved, String> {
        let program = Program::read("library.jlir", SOURCE.as_bytes()).unwrap();
        Resolved::new(program.module(), library).map_err(|error| error.to_string())
    }

    #[test]
    fn functions_have_declarations() {
        let library = Library::new("lib").export("add").export_as("twice( Float64 )", "twice_f");
        let header = resolved(&library.export_as("void", "nothing_at_all")).unwrap().header();
        for line in [
            "double add(int32_t a1, double a2);",
            "double twice_f(double a1);",
            "void nothing_at_all(void *a1, bool a2);",
            "BROLGA_CHECKED BrolgaError *lib_open(const BrolgaOptions *options);",
            "/* add(Int32, Float64)::Float64 */",
        ] {
            assert!(header.lines().any(|known| known == line), "{line} in {header}");
        }
    }

    #[test]
    fn all_means_those_that_c_can_call() {
        assert_eq!(resolved(&Library::new("lib").export_all()).unwrap().symbols(), ["add(Int32, Float64)"]);
    }

    #[test]
    fn mistakes_have_names() {
        let message = |library: &Library| resolved(library).err().unwrap_or_default();
        let lib = || Library::new("lib");
        assert!(message(&lib().export("none")).contains("no such function"));
        assert!(message(&lib().export("twice")).contains("`twice(Float64)`, `twice(Int64)`"));
        assert!(message(&lib().export("text")).contains("`String` is not a type of C"));
        assert!(message(&lib().export("void")).contains("has a meaning in C"));
        assert!(message(&lib().export_as("add", "a-b")).contains("is not an identifier"));
        assert!(message(&lib().export_as("add", "_Bool")).contains("is reserved by C"));
        for name in ["NULL", "intmax_t", "uint_fast8_t", "INT64_MAX", "UINT8_C", "SIZE_MAX", "max_align_t"] {
            assert!(message(&lib().export_as("add", name)).contains("has a meaning in C"), "{name}");
        }
        assert!(message(&lib().export_as("add", "BrolgaError")).contains("of Brolga"));
        assert!(resolved(&lib().export_as("add", "_add")).is_ok());
        assert!(message(&lib().export_as("add", "lib_open")).contains("another function"));
        assert!(message(&lib().export("add").export_as("void", "add")).contains("another function"));
        assert!(message(&Library::new("a.b").export("add")).contains("not a name for a library"));
        assert!(message(&lib()).contains("no function of the program"));
    }
}
