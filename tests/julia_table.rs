//! The tables of `docs/julia.md` are correct, because tests generate them.
//!
//! ```text
//! types       each declaration of the prelude is read on demand by a program that names the type
//! functions   each call below is made by dispatch, interpreted and native, and its value stands beside it
//! ```
//!
//! `BLESS=1 cargo test --test julia_table` writes the tables into the page. A function of the prelude without a row fails the test.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use brolga::{Engine, Evaluator, OptLevel, Options, Program};

/// A function of Base and arguments to try it with. A second row of a function shows another method, or what it throws.
const CALLS: &[(&str, &[&str])] = &[
    ("identity", &["1"]),
    ("getproperty", &["Pair(1, 2)", ":second"]),
    ("setproperty!", &["[1, 2]", ":x", "1"]),
    ("fieldnames", &["UnitRange{Int64}"]),
    ("convert", &["Float64", "1"]),
    ("+", &["1", "2.5"]),
    ("-", &["5", "7"]),
    ("*", &["3", "4"]),
    ("/", &["1", "4"]),
    ("÷", &["7", "2"]),
    ("div", &["-7", "2"]),
    ("%", &["-7", "2"]),
    ("rem", &["7", "0"]),
    ("mod", &["-7", "2"]),
    ("fld", &["-7", "2"]),
    ("cld", &["7", "2"]),
    ("^", &["2", "10"]),
    ("^", &["2.0", "0.5"]),
    ("<<", &["1", "4"]),
    (">>", &["-8", "1"]),
    (">>>", &["-1", "60"]),
    ("<", &["1", "1.5"]),
    ("<", &["\"a\"", "\"b\""]),
    (">=", &["\"a\"", "\"b\""]),
    ("<=", &["2", "2"]),
    (">", &["2", "3"]),
    (">=", &["2", "3"]),
    ("==", &["1", "1.0"]),
    ("==", &["\"a\"", "\"a\""]),
    ("!=", &["1", "2"]),
    ("isequal", &["NaN", "NaN"]),
    ("isless", &["1", "2"]),
    ("isless", &["1.0", "NaN"]),
    ("isless", &["'a'", "'b'"]),
    ("isless", &[":b", ":a"]),
    ("cmp", &["\"ab\"", "\"b\""]),
    ("!", &["true"]),
    ("~", &["0x0f"]),
    ("&", &["6", "3"]),
    ("|", &["6", "3"]),
    ("⊻", &["6", "3"]),
    ("xor", &["6", "3"]),
    ("abs", &["-3"]),
    ("min", &["3", "1", "2"]),
    ("max", &["3", "1", "2"]),
    ("iseven", &["4"]),
    ("isodd", &["4"]),
    ("isnan", &["1.0"]),
    ("sqrt", &["2.25"]),
    ("sqrt", &["-1.0"]),
    ("floor", &["2.5"]),
    ("ceil", &["2.5"]),
    ("trunc", &["-2.5"]),
    ("round", &["2.5"]),
    ("exp", &["0.0"]),
    ("exp2", &["3.0"]),
    ("log", &["1"]),
    ("log2", &["8.0"]),
    ("log10", &["-1.0"]),
    ("sin", &["0.0"]),
    ("cos", &["0"]),
    ("tan", &["0.0"]),
    ("atan", &["0.0"]),
    ("sinh", &["0.0"]),
    ("cosh", &["0.0"]),
    ("tanh", &["0.0"]),
    ("isnothing", &["nothing"]),
    ("length", &["\"aä😀\""]),
    ("length", &["[1, 2, 3]"]),
    ("length", &["(1, 'b')"]),
    ("length", &["2:5"]),
    ("isempty", &["\"\""]),
    ("firstindex", &["[1, 2]"]),
    ("lastindex", &["(1, 2, 3)"]),
    ("lastindex", &["\"aä😀\""]),
    ("firstindex", &["\"aä\""]),
    ("ncodeunits", &["\"aä\""]),
    ("getindex", &["[1, 2, 3]", "2"]),
    ("getindex", &["[1 2; 3 4]", "2", "1"]),
    ("getindex", &["(1, 2)", "3"]),
    ("setindex!", &["[1, 2, 3]", "9", "2"]),
    ("setindex!", &["[1.0, 2.0]", "9", "2"]),
    ("setindex!", &["[1, 2]", "2.5", "2"]),
    ("first", &["(4, 5)"]),
    ("last", &["[4, 5]"]),
    ("iterate", &["[7, 8]"]),
    ("iterate", &["\"ä\""]),
    ("iterate", &["2:3", "2"]),
    ("iterate", &["5"]),
    ("eachindex", &["[7, 8]"]),
    (":", &["2", "5"]),
    (":", &["1", "3", "8"]),
    (":", &["9", "-4", "-2"]),
    ("collect", &["9:-4:-2"]),
    ("size", &["[1 2 3; 4 5 6]", "2"]),
    ("push!", &["[1, 2]", "3"]),
    ("pop!", &["[1, 2]"]),
    ("pop!", &["Int64[]"]),
    ("in", &["2", "[1, 2]"]),
    ("sum", &["[1, 2, 3]"]),
    ("sum", &["(1, 2.5)"]),
    ("join", &["[1, 2, 3]", "\", \"", "\" and \""]),
    ("findnext", &["\"na\"", "\"banana\"", "4"]),
    ("findfirst", &["\"x\"", "\"banana\""]),
    ("findfirst", &["\"\"", "\"a\""]),
    ("occursin", &["\"ä\"", "\"bär\""]),
    ("startswith", &["\"abc\"", "\"ab\""]),
    ("repr", &["(\"a\", 'b', :c)"]),
    ("repr", &["[1:3, 4:5]"]),
    ("string", &["2:3:9"]),
    ("string", &["'a':'c'"]),
    ("string", &["-1//2"]),
    ("string", &["1.5 - 2.0im"]),
    ("string", &["(1 => 2) => 3"]),
    ("repr", &["CartesianIndex(1, 2)"]),
    ("repr", &["SubString{String}(\"a\\\"bc\", 1, 2)"]),
    ("zero", &["5"]),
    ("zero", &["2.5"]),
    ("zero", &["0x05"]),
    ("one", &["Float64"]),
    ("iszero", &["0.0"]),
    ("isone", &["1"]),
    ("sign", &["-5"]),
    ("sign", &["-0.0"]),
    ("signbit", &["-0.0"]),
    ("copysign", &["2.0", "-1.0"]),
    ("abs2", &["-3"]),
    ("inv", &["4"]),
    ("isinf", &["-Inf"]),
    ("isfinite", &["NaN"]),
    ("isinteger", &["2.0"]),
    ("float", &["3"]),
    ("round", &["Int64", "2.5"]),
    ("floor", &["Int64", "-2.5"]),
    ("ceil", &["Int64", "2.2"]),
    ("trunc", &["Int64", "NaN"]),
    ("mod", &["-5.5", "2"]),
    ("^", &["2", "0.5"]),
    ("÷", &["-7.5", "2.0"]),
    ("div", &["7.0", "0.0"]),
    ("gcd", &["-12", "18"]),
    ("lcm", &["4", "6"]),
    ("divrem", &["-7", "2"]),
    ("fldmod", &["-7", "2"]),
    ("mod1", &["6", "3"]),
    ("clamp", &["5", "1", "3"]),
    ("minmax", &["3", "1.5"]),
    ("muladd", &["2", "3.5", "4"]),
    ("fma", &["2.0", "3.0", "4.0"]),
    ("hypot", &["3.0", "4.0"]),
    ("cbrt", &["27.0"]),
    ("count_ones", &["7"]),
    ("count_zeros", &["7"]),
    ("trailing_zeros", &["8"]),
    ("leading_zeros", &["1"]),
    ("ispow2", &["8"]),
    ("typemax", &["Int8"]),
    ("typemin", &["Int64"]),
    ("eps", &["Float64"]),
    ("<", &["'a'", "'b'"]),
    ("+", &["'a'", "1"]),
    ("-", &["'ö'", "'a'"]),
    ("codepoint", &["'€'"]),
    ("isdigit", &["'5'"]),
    ("isascii", &["'ö'"]),
    ("isspace", &["'\\t'"]),
    ("isletter", &["'ö'"]),
    ("uppercase", &["'ö'"]),
    ("lowercase", &["'Ä'"]),
    ("prod", &["(2, 3, 4)"]),
    ("maximum", &["[3, 7, 5]"]),
    ("minimum", &["(4, 2.5)"]),
    ("minimum", &["()"]),
    ("reduce", &["Base.max", "(1, 3, 2)"]),
    ("foldl", &["Base.:(-)", "(10, 3, 2)"]),
    ("sum", &["Base.abs", "[-1, 2, -3]"]),
    ("any", &["Base.iseven", "[1, 3]"]),
    ("any", &["(false, true)"]),
    ("all", &["Base.isodd", "[1, 3]"]),
    ("all", &["(true, 1)"]),
    ("count", &["Base.isodd", "[1, 2, 3]"]),
    ("foreach", &["Base.abs", "(1, 2)"]),
    ("findfirst", &["Base.iseven", "[1, 4, 6]"]),
    ("copy", &["[1, 2]"]),
    ("collect", &["2:4"]),
    ("append!", &["[1]", "(2, 3)"]),
    ("filter", &["Base.isodd", "[1, 2, 3]"]),
    ("reverse", &["[1, 2, 3]"]),
    ("reverse", &["(1, 2.5)"]),
    ("reverse", &["\"añb\""]),
    ("map", &["Base.abs", "(-1, 2.5)"]),
    ("popfirst!", &["[1, 2]"]),
    ("pushfirst!", &["[1.0]", "2"]),
    ("empty!", &["[1, 2]"]),
    ("fill!", &["[1.0, 2.0]", "7"]),
    ("eltype", &["[1.0]"]),
    ("size", &["[1, 2]"]),
    ("keys", &["[1, 2]"]),
    ("something", &["nothing", "3"]),
    ("coalesce", &["missing", "3"]),
    ("ismissing", &["missing"]),
    ("!==", &["1", "1.0"]),
    ("*", &["\"a\"", "'b'"]),
    ("*", &["\"a\"", "\"b\"", "\"c\""]),
    ("repeat", &["\"ab\"", "3"]),
    ("repeat", &["\"ab\"", "-1"]),
    ("^", &["\"ab\"", "2"]),
    ("first", &["\"öx\""]),
    ("last", &["\"xö\""]),
    ("getindex", &["\"xö\"", "2"]),
    ("getindex", &["\"xö\"", "3"]),
    ("getindex", &["\"xö\"", "4"]),
    ("endswith", &["\"abc\"", "\"bc\""]),
    ("contains", &["\"abc\"", "\"d\""]),
    ("uppercase", &["\"straße\""]),
    ("lowercase", &["\"ABC\""]),
    ("lpad", &["7", "3", "\"0\""]),
    ("rpad", &["\"ab\"", "7", "\"xyz\""]),
    ("lpad", &["\"abc\"", "2"]),
    ("string", &["\"a\"", "1", "2.5", ":s", "'c'"]),
];

/// Functions of the prelude that other functions of it need, or that take a type which a literal cannot give.
const INNER: &[&str] = &[
    "character_of",
    "dict_at",
    "dict_index",
    "dict_is_filled",
    "dict_length",
    "fld_days",
    "get",
    "haskey",
    "io_room",
    "list_backwards",
    "list_mapped",
    "padded_digits",
    "padding",
    "pairwise_blocksize",
    "print",
    "println",
    "show",
    "splat_elements",
    "write",
    "write_text",
    "yearmonthday",
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_owned()
}

fn value(name: &str, args: &[&str]) -> String {
    // A call's text knows the functions that the program names.
    let is_function = |arg: &str| arg.starts_with("Base.");
    let given = || args.iter().enumerate().filter(|(_, arg)| !is_function(arg));
    let params: Vec<String> = given().map(|(n, _)| format!("x{n}::Any")).collect();
    let operand =
        |(n, arg): (usize, &&str)| if is_function(arg) { (*arg).to_owned() } else { format!("x{n}") };
    let operands: Vec<String> = args.iter().enumerate().map(operand).collect();
    let callee =
        if name.starts_with(|c: char| c.is_alphabetic()) { name.to_owned() } else { format!(":({name})") };
    let text = format!(
        "function tried({})::Any\n1 ─ %1 = dynamic Base.{callee}({})::Any\n└──      return %1\nend\n",
        params.join(", "),
        operands.join(", ")
    );
    let program = Program::read("tried", text.as_bytes()).unwrap_or_else(|error| panic!("{name}: {error}"));
    let values: Vec<&str> = given().map(|(_, arg)| *arg).collect();
    let call = format!("tried({})", values.join(", "));
    let call = program.call(&call).unwrap_or_else(|error| panic!("{name}: {error}"));
    let shown = |mut evaluator: Evaluator<'_>| match evaluator.call(&call) {
        Ok(value) => format!("`{value}`"),
        Err(failure) => {
            let text = failure.to_string();
            let error = text.trim_start_matches("uncaught exception: ");
            format!("throws `{}`", error.split([':', '(', ' ']).next().unwrap_or_default())
        }
    };
    let interpreted = shown(Evaluator::interpreted(&program));
    let engine = Engine::new(crate::doors::open(Options::new()).opt_level(OptLevel::O2)).expect("an engine");
    assert_eq!(shown(Evaluator::native(&program, &engine)), interpreted, "{name}");
    interpreted
}

/// The items in lines of at most 160 characters, with dots between them.
fn listed(items: impl Iterator<Item = String>) -> String {
    let (mut text, mut width) = (String::new(), 0);
    for item in items {
        let length = item.chars().count() + 3;
        if !text.is_empty() {
            text.push_str(if width + length > 160 { " ·\n" } else { " · " });
        }
        width = if width + length > 160 { length } else { width + length };
        text.push_str(&item);
    }
    text + "\n"
}

fn functions() -> String {
    listed(CALLS.iter().map(|(name, args)| {
        let spelled = if name.starts_with(|c: char| c.is_alphabetic()) || args.len() != 2 {
            format!("{name}({})", args.join(", "))
        } else {
            args.join(&format!(" {name} "))
        };
        format!("`{spelled}` → {}", value(name, args))
    }))
}

/// The declarations of the prelude.
fn declarations() -> Vec<String> {
    let path = root().join("crates/ir/src/text/resolve/prelude.jlir");
    let text = std::fs::read_to_string(path).expect("the prelude of types");
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with("# "));
    lines.map(str::to_owned).collect()
}

fn types() -> String {
    listed(declarations().into_iter().map(|line| {
        let (decl, version) = line.split_once(" # ").unwrap_or((&line, ""));
        let decl = decl.trim_end_matches("end").trim().trim_end_matches(';');
        let (head, _) = decl.split_once("; ").unwrap_or((decl, ""));
        let is_name = |word: &&str| {
            word.starts_with("var\"") || word.starts_with(|c: char| c.is_uppercase() || c == '_')
        };
        let name = head.split([' ', '{']).find(is_name);
        let name = name.expect("a name");
        let memory = if version.contains("since") { ", m::Memory{UInt8}" } else { "" };
        let text =
            format!("# signature: f(x::{name}{memory})::Int64\nCodeInfo(\n1 ─     return 1\n) => Int64\n");
        if let Err(error) = Program::read(name, text.as_bytes()) {
            panic!("{name}: {error}");
        }
        let version = if version.is_empty() { String::new() } else { format!(" ({version})") };
        format!("`{head}`{version}")
    }))
}

/// The names of the functions that the preludes of methods define.
fn prelude_functions() -> BTreeSet<String> {
    let folder = root().join("crates/engine/src");
    let files = [
        "prelude.jlir",
        "prelude_more.jlir",
        "prelude_strings.jlir",
        "prelude_text.jlir",
        "prelude_chars.jlir",
        "prelude_numbers.jlir",
        "prelude_collections.jlir",
        "prelude_dict.jlir",
        "prelude_io.jlir",
        "prelude_buffer.jlir",
        "prelude_dates.jlir",
    ];
    let texts = files.map(|file| std::fs::read_to_string(folder.join(file)).expect("a prelude"));
    let names = texts.iter().flat_map(|text| text.lines()).filter_map(|line| {
        let name = line.strip_prefix("function Base.")?.trim_start_matches(':');
        let name = name.split('(').next().filter(|name| !name.is_empty());
        Some(name.unwrap_or(":").to_owned())
    });
    names.collect()
}

#[test]
fn the_page_says_what_is_there() {
    let tried: BTreeSet<&str> = CALLS.iter().map(|&(name, _)| name).collect();
    let untried: Vec<String> = prelude_functions()
        .into_iter()
        .filter(|name| !tried.contains(name.as_str()) && !INNER.contains(&name.as_str()))
        .collect();
    assert!(untried.is_empty(), "no row tries {untried:?}");
    let path = root().join("docs/julia.md");
    let page = std::fs::read_to_string(&path).expect("the page");
    let mut made = page.clone();
    for (name, table) in [("types", types()), ("functions", functions())] {
        let (open, close) = (format!("<!-- made by tests/julia_table.rs: {name} -->\n"), "<!-- end -->");
        let start = made.find(&open).unwrap_or_else(|| panic!("no place for the {name}")) + open.len();
        let end = start + made[start..].find(close).expect("the end of the table");
        made.replace_range(start..end, &table);
    }
    #[expect(
        clippy::disallowed_methods,
        reason = "how all tests of this repository are told to write what they expect"
    )]
    if std::env::var("BLESS").is_ok() {
        std::fs::write(&path, &made).expect("the page can be written");
        return;
    }
    assert!(page == made, "docs/julia.md is not what its tables say: BLESS=1 cargo test --test julia_table");
}

#[test]
fn an_undeclared_type_is_an_error() {
    let text = "function f(x::Zebra)::Int64\n1 ─     return 1\nend\n";
    let error = Program::read("zebra", text.as_bytes()).expect_err("there is no such type");
    assert!(error.to_string().contains("Zebra"), "{error}");
}

#[path = "support/doors.rs"]
mod doors;
