//! Loops over memory, with and without overlap: their code at `O3`, lanes included, computes the same as the interpreter.
//!
//! A function is made for each type of element and each combination of elements. It fills a stack slot, walks over three parts of
//! it whose places and length are arguments, and returns the result of a reduction and a digest of the slot. Places are chosen so
//! that the parts are the same, are apart, or overlap by less than a vector.

use std::fmt::Write as _;

use brolga::options::CpuTarget;
use brolga::{Engine, Evaluator, OptLevel, Options, Program};
use brolga_ir::{Func, Module, Op};

const BYTES: usize = 512;
const ELEMENTS: [&str; 6] = ["i8", "i16", "i32", "i64", "f32", "f64"];
const INT_WAYS: [&str; 6] = [
    "│ %z = add_int(%x, %y)::T\n",
    "│ %u = sub_int(%x, %k)::T\n│ %z = xor_int(%u, %y)::T\n",
    "│ %u = slt_int(%x, %y)::i8\n│ %z = ifelse(%u, %x, %y)::T\n",
    "│ %u = ult_int(%k, %y)::i8\n│ %z = ifelse(%u, %k, %x)::T\n",
    "│ %u = shl_int(%x, 3)::T\n│ %v = neg_int(%y)::T\n│ %z = or_int(%u, %v)::T\n",
    "│ %u = mul_int(%x, %y)::T\n│ %z = not_int(%u)::T\n",
];
const FLOAT_WAYS: [&str; 4] = [
    "│ %z = add_float(%x, %y)::T\n",
    "│ %u = mul_float(%x, %k)::T\n│ %z = sub_float(%u, %y)::T\n",
    "│ %u = lt_float(%x, %y)::i8\n│ %z = ifelse(%u, %y, %k)::T\n",
    "│ %u = abs_float(%x)::T\n│ %v = sqrt_llvm(%u)::T\n│ %z = muladd_float(%v, %k, %y)::T\n",
];
const REDUCTIONS: [&str; 3] = ["add_int", "xor_int", "and_int"];

/// The loads, the stores, the operation between them, and the reduction.
const MIXED: [(&str, &str, &str, Option<&str>); 19] = [
    ("i8", "i32", "│ %z = sext_int(i32, %x)::i32\n", Some("add_int")),
    ("i8", "i32", "│ %u = xor_int(%x, %y)::i8\n│ %z = zext_int(i32, %u)::i32\n", Some("add_int")),
    ("i8", "i16", "│ %z = sext_int(i16, %x)::i16\n", None),
    ("i16", "i32", "│ %z = zext_int(i32, %x)::i32\n", Some("xor_int")),
    ("i32", "i64", "│ %z = sext_int(i64, %x)::i64\n", Some("add_int")),
    ("i32", "i64", "│ %z = zext_int(i64, %x)::i64\n", None),
    ("i64", "i32", "│ %u = add_int(%x, %y)::i64\n│ %z = trunc_int(i32, %u)::i32\n", None),
    ("i32", "i8", "│ %z = trunc_int(i8, %x)::i8\n", None),
    ("i32", "f64", "│ %u = sitofp(f64, %x)::f64\n│ %z = mul_float(%u, 1.5)::f64\n", None),
    ("f32", "f64", "│ %u = fpext(f64, %x)::f64\n│ %z = add_float(%u, 0.25)::f64\n", None),
    ("f64", "f32", "│ %u = mul_float(%x, %k)::f64\n│ %z = fptrunc(f32, %u)::f32\n", None),
    ("f64", "i64", "│ %u = lt_float(%x, %k)::i8\n│ %z = zext_int(i64, %u)::i64\n", Some("add_int")),
    ("i32", "i64", "│ %u = slt_int(%x, %y)::i8\n│ %z = zext_int(i64, %u)::i64\n", Some("add_int")),
    ("i8", "i64", "│ %z = sext_int(i64, %x)::i64\n", Some("add_int")),
    ("i16", "i64", "│ %u = add_int(%x, %y)::i16\n│ %z = zext_int(i64, %u)::i64\n", Some("xor_int")),
    ("i64", "i8", "│ %u = xor_int(%x, %y)::i64\n│ %z = trunc_int(i8, %u)::i8\n", None),
    ("i64", "f64", "│ %v = xor_int(%x, %m)::i64\n│ %z = sitofp(f64, %v)::f64\n", None),
    ("i64", "f64", "│ %z = sitofp(f64, %m)::f64\n", None),
    ("i64", "i64", "│ %u = sub_int(%m, %x)::i64\n│ %z = xor_int(%u, %m)::i64\n", Some("add_int")),
];

fn bytes_of(element: &str) -> usize {
    match element {
        "i8" => 1,
        "i16" => 2,
        "i32" | "f32" => 4,
        _ => 8,
    }
}

/// Gives the rows names that are numbers.
fn numbered(text: &str) -> String {
    let mut numbers: Vec<&str> = Vec::new();
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('%') {
        out.push_str(&rest[..=at]);
        rest = &rest[at + 1..];
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(rest.len());
        let (name, behind) = rest.split_at(end);
        let number = numbers.iter().position(|&known| known == name).unwrap_or_else(|| {
            numbers.push(name);
            numbers.len() - 1
        });
        let _ = write!(out, "{}", number + 1);
        rest = behind;
    }
    out + rest
}

fn function(name: &str, types: (&str, &str), way: &str, reduction: Option<&str>) -> String {
    function_over(BYTES, name, types, way, reduction)
}

/// A function over so many bytes.
fn function_over(
    all: usize,
    name: &str,
    (element, to): (&str, &str),
    way: &str,
    reduction: Option<&str>,
) -> String {
    let (size, to_size) = (bytes_of(element), bytes_of(to));
    let float = element.starts_with('f');
    let fill = if float { "sitofp" } else { "bitcast" };
    let fill = match element {
        "i64" => "│ %f = mul_int(%i, 40503)::i64\n".to_owned(),
        "f32" | "f64" => format!("│ %f = {fill}({element}, %i)::{element}\n"),
        _ => format!("│ %g = mul_int(%i, 40503)::i64\n│ %f = trunc_int({element}, %g)::{element}\n"),
    };
    let constant = if float {
        format!("│ %k = sitofp({element}, _5)::{element}\n")
    } else {
        match element {
            "i64" => "│ %k = add_int(_5, 0)::i64\n".to_owned(),
            _ => format!("│ %k = trunc_int({element}, _5)::{element}\n"),
        }
    };
    let (zero, carried, reduced) = match reduction {
        None => (String::new(), String::new(), "0".to_owned()),
        Some(op) => (
            format!("│ %s = φ (#4 => {to}(-3), #5 => %t)::{to}\n"),
            format!("│ %t = {op}(%s, %z)::{to}\n"),
            "%r".to_owned(),
        ),
    };
    let result = match (reduction, to) {
        (None, _) => String::new(),
        (Some(_), "i64") => format!("│ %r = φ (#3 => 0, #5 => %t)::{to}\n"),
        (Some(_), _) => {
            format!("│ %q = φ (#3 => {to}(0), #5 => %t)::{to}\n│ %r = zext_int(i64, %q)::i64\n")
        }
    };
    let text = format!(
        "low function {name}(::i64, ::i64, ::i64, ::i64, ::i64)::(i64, i64)
1 ─ %p = slot_addr(0; size = {all}, align = 8)::ptr
└──      goto #2
2 ┄ %i = φ (#1 => 0, #2 => %j)::i64
{fill}│ %o = mul_int(%i, {size})::i64
│ %a = add_ptr(%p, %o)::ptr
│ store(%a, %f; offset = 0, region = raw, align = 1)
│ %j = add_int(%i, 1)::i64
│ %c = slt_int(%j, {count})::i8
└──      goto #3 if not %c else #2
3 ─ %A = add_ptr(%p, _1)::ptr
│ %B = add_ptr(%p, _2)::ptr
│ %C = add_ptr(%p, _3)::ptr
{constant}│ %d = slt_int(0, _4)::i8
└──      goto #6 if not %d
4 ─      goto #5
5 ┄ %m = φ (#4 => 0, #5 => %n)::i64
{zero}│ %O = mul_int(%m, {size})::i64
│ %E = add_ptr(%A, %O)::ptr
│ %x = load(%E; offset = 0, region = raw, align = 1)::{element}
│ %F = add_ptr(%B, %O)::ptr
│ %y = load(%F; offset = 0, region = raw, align = 1)::{element}
{way}{carried}│ %R = mul_int(%m, {to_size})::i64
│ %G = add_ptr(%C, %R)::ptr
│ store(%G, %z; offset = 0, region = raw, align = 1)
│ %n = add_int(%m, 1)::i64
│ %H = slt_int(%n, _4)::i8
└──      goto #6 if not %H else #5
6 ┄ {first}
{result_rows}└──      goto #7
7 ┄ %I = φ (#6 => 0, #7 => %J)::i64
│ %D = φ (#6 => 0, #7 => %K)::i64
│ %L = add_ptr(%p, %I)::ptr
│ %M = load(%L; offset = 0, region = raw, align = 1)::i8
│ %N = zext_int(i64, %M)::i64
│ %P = mul_int(%D, 31)::i64
│ %K = add_int(%P, %N)::i64
│ %J = add_int(%I, 1)::i64
│ %Q = slt_int(%J, {all})::i8
└──      goto #8 if not %Q else #7
8 ─      return ({reduced}, %K)
end

",
        count = all / size,
        way = way.replace('T', element),
        first =
            result.lines().next().map_or(String::new(), |row| row.trim_start_matches('│').trim().to_owned()),
        result_rows = result.lines().skip(1).fold(String::new(), |rows, row| rows + row + "\n"),
    );
    let text = text.replace("6 ┄ \n└──      goto #7", "6 ┄      goto #7");
    numbered(&text)
}

/// Whether the pipeline finds something to do in lanes.
fn in_lanes(module: &Module, func: Func) -> bool {
    let options = brolga_opt::Options::default();
    let mut cx = brolga_opt::Cx::new(None);
    let (func, _) = brolga_opt::optimize(module, func, OptLevel::O3, &options, &mut cx).unwrap();
    let ops = func.blocks().flat_map(|b| func.block_insts(b)).map(|inst| func.op(inst));
    ops.into_iter().any(|op| matches!(op, Op::Lanes(..)))
}

#[test]
fn loops_over_memory_compute_the_same_in_lanes() {
    let mut text = String::new();
    let mut names = Vec::new();
    for element in ELEMENTS {
        let ways: &[&str] = if element.starts_with('f') { &FLOAT_WAYS } else { &INT_WAYS };
        for (n, way) in ways.iter().enumerate() {
            let reduction = (!element.starts_with('f') && n < REDUCTIONS.len()).then(|| REDUCTIONS[n]);
            let name = format!("walk_{element}_{n}");
            text.push_str(&function(&name, (element, element), way, reduction));
            names.push(name);
        }
    }
    for (n, (from, to, way, reduction)) in MIXED.into_iter().enumerate() {
        let name = format!("mixed_{n}");
        text.push_str(&function(&name, (from, to), way, reduction));
        names.push(name);
    }
    let program = Program::read("loops", text.as_bytes()).unwrap_or_else(|error| panic!("{error}\n{text}"));
    for (_, func) in program.module().funcs() {
        let name = program.module().cx.names.text(func.name);
        // Products have no lanes of 8 bits, and slow ones of 64 without FMA.
        let has_lanes = !matches!(name, "walk_i8_5" | "walk_i64_5");
        assert_eq!(in_lanes(program.module(), func.clone()), has_lanes, "`{name}`");
    }
    let engines = [OptLevel::O0, OptLevel::O3]
        .map(|l| Engine::new(crate::doors::open(Options::new()).opt_level(l)).unwrap());
    let mut interpreted = Evaluator::interpreted(&program);
    let mut native: Vec<Evaluator<'_>> = engines.iter().map(|e| Evaluator::native(&program, e)).collect();
    for (name, scale) in names.iter().flat_map(|name| [(name, 1), (name, 2)]) {
        for (a, b, c) in
            [(0, 64, 128), (0, 0, 0), (0, 8, 16), (64, 0, 8), (16, 8, 0), (0, 128, 136), (1, 17, 3)]
        {
            for count in [0, 1, 2, 5, 16, 17, 30, 47, 59] {
                // Bytes overlap by less than a vector at places that are closer.
                let [a, b, c] = [a, b, c].map(|place| place * scale);
                if [a, b, c].iter().any(|place| place + 8 * count > BYTES) {
                    continue;
                }
                let call = program.call(&format!("{name}({a}, {b}, {c}, {count}, -7)")).unwrap();
                let expected = interpreted.call(&call).unwrap();
                for (native, level) in native.iter_mut().zip(["O0", "O3"]) {
                    let got = native.call(&call).unwrap();
                    assert_eq!(expected, got, "{level}: {name}({a}, {b}, {c}, {count})");
                }
            }
        }
    }
}

/// Trips of several vectors, which are executed in registers of 256 or 512 bits where there are any.
#[test]
fn long_trips_compute_the_same_in_wide_registers() {
    const ALL: usize = 3072;
    let mut text = String::new();
    let mut names = Vec::new();
    for element in ELEMENTS {
        let ways: &[&str] = if element.starts_with('f') { &FLOAT_WAYS } else { &INT_WAYS };
        for (n, way) in ways.iter().enumerate() {
            let reduction = (!element.starts_with('f') && n < REDUCTIONS.len()).then(|| REDUCTIONS[n]);
            names.push(format!("long_{element}_{n}"));
            text.push_str(&function_over(ALL, &names[names.len() - 1], (element, element), way, reduction));
        }
    }
    let program = Program::read("loops", text.as_bytes()).unwrap_or_else(|error| {
        panic!(
            "{error}
{text}"
        )
    });
    let engine = |target| {
        let options = crate::doors::open(Options::new()).opt_level(OptLevel::O2).cpu_target(target);
        Engine::new(options).ok()
    };
    // Of a processor below `x86-64-v3` or of another architecture the second one is refused.
    let engines: Vec<Engine> = [CpuTarget::Native, CpuTarget::X86V3].into_iter().filter_map(engine).collect();
    let mut interpreted = Evaluator::interpreted(&program);
    let mut native: Vec<Evaluator<'_>> = engines.iter().map(|e| Evaluator::native(&program, e)).collect();
    for name in &names {
        for (a, b, c) in [(0, 1000, 2000), (0, 0, 0), (8, 0, 1200), (3, 1100, 1104)] {
            for count in [15, 64, 129] {
                let call = program.call(&format!("{name}({a}, {b}, {c}, {count}, -7)")).unwrap();
                let expected = interpreted.call(&call).unwrap();
                for native in &mut native {
                    assert_eq!(expected, native.call(&call).unwrap(), "{name}({a}, {b}, {c}, {count})");
                }
            }
        }
    }
}

#[path = "support/doors.rs"]
mod doors;
