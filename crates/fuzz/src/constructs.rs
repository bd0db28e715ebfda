//! Programs that repeat one construct of the language `n` times. They reveal algorithms with superlinear cost.
//!
//! ```text
//!   construct, n ─► text ─► read, verified, compiled ─► cost(n)        cost(4n) ≤ 5 · cost(n)
//! ```
//!
//! [`shapes`](super::shapes) has modules of one function for the optimiser. The programs here are texts, so they pass
//! through the whole compiler, and half of them exercise declarations, names, methods and diagnostics. Programs with
//! deliberate errors are marked [`Outcome::Broken`]: they measure how long errors take to find and report. The length
//! of a text is linear in `n`, and its compilation should be too.
//!
//! `benches/sweep.rs` measures how the cost grows.
//!
//! Not done: constructs of low IR; programs in the binary form.

mod pattern;

use std::fmt::Write;

pub use pattern::{Piece, pattern};

/// A construct and the text that repeats it.
#[derive(Clone, Copy, Debug)]
pub struct Construct {
    /// Its name in reports.
    pub name: &'static str,
    /// Whether the text compiles.
    pub outcome: Outcome,
    text: fn(usize) -> String,
}

/// Whether a text compiles.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// It compiles.
    Compiled,
    /// It has errors, so the compiler only reports diagnostics.
    Broken,
}

impl Construct {
    /// The program with `n` repetitions.
    pub fn text(&self, n: usize) -> String {
        (self.text)(n)
    }
}

const fn compiled(name: &'static str, text: fn(usize) -> String) -> Construct {
    Construct { name, outcome: Outcome::Compiled, text }
}

const fn broken(name: &'static str, text: fn(usize) -> String) -> Construct {
    Construct { name, outcome: Outcome::Broken, text }
}

pub const ALL: &[Construct] = &[
    // Declarations and names.
    compiled("functions", |n| repeat(n, |i| function(&format!("f{i}"), "x::Int64", |b| b.ret("x")))),
    compiled("functions around a large one", |n| {
        let small = |name: &str| {
            repeat(n, |i| {
                function(&format!("{name}{i}"), "x::Int64", |b| {
                    call_c(b);
                    b.ret("x");
                })
            })
        };
        let large = function("large", "x::Int64", |b| {
            (0..n).for_each(|_| looping(b, |b| drop(call_c(b))));
            b.ret("x");
        });
        small("f") + &large + &small("g")
    }),
    compiled("comments", |n| repeat(n, |i| format!("# line {i}\n")) + &identity("f")),
    compiled("tests", |n| repeat(n, |i| format!("# check: f({i}) == {i}\n")) + &identity("f")),
    compiled("long name", |n| identity(&"n".repeat(n))),
    compiled("long string", |n| one(|b| print_string(b, &"s".repeat(n)))),
    compiled("structs", |n| repeat(n, |i| format!("struct S{i}\n    x::Int64\nend\n")) + &identity("f")),
    compiled("struct in struct by reference", |n| {
        let first = "mutable struct S0\n    x::Int64\nend\n".to_owned();
        first + &repeat(n, |i| format!("mutable struct S{}\n    x::Main.S{i}\nend\n", i + 1)) + &identity("f")
    }),
    compiled("fields of a struct", |n| {
        format!("mutable struct S\n{}end\n", repeat(n, |i| format!("    x{i}::Int64\n"))) + &identity("f")
    }),
    compiled("abstract types in a chain", |n| {
        let chain = repeat(n, |i| format!("abstract type A{} <: A{i} end\n", i + 1));
        "abstract type A0 end\n".to_owned() + &chain + &identity("f")
    }),
    compiled("abstract types side by side", |n| {
        "abstract type A end\n".to_owned()
            + &repeat(n, |i| format!("abstract type A{i} <: A end\n"))
            + &identity("f")
    }),
    compiled("methods of a chain of types", |n| {
        let chain = repeat(n, |i| format!("abstract type A{} <: A{i} end\n", i + 1));
        "abstract type A0 end\n".to_owned()
            + &chain
            + &repeat(n, |i| function("f", &format!("x::Main.A{i}"), |b| b.ret("1")))
    }),
    compiled("methods of one name", methods),
    compiled("methods of one name, called", |n| {
        let mut calls = Body::new();
        for i in 0..n {
            let made = calls.value(&format!("%new(Main.S{i}, {i})::Main.S{i}"));
            calls.value(&format!("invoke Main.f({made}::Main.S{i})::Int64"));
        }
        methods(n) + &calls.end("all", "", "0")
    }),
    compiled("methods of one name, called dynamically", |n| {
        let mut calls = Body::new();
        for i in 0..n {
            let made = calls.value(&format!("%new(Main.S{i}, {i})::Main.S{i}"));
            calls.value(&format!("dynamic Main.f({made})::Any"));
        }
        methods(n) + &calls.end("all", "", "0")
    }),
    compiled("methods of one name, ambiguous", |n| {
        repeat(n, |i| {
            let of =
                if i % 2 == 0 { format!("x::Main.S{i}, y::Any") } else { format!("x::Any, y::Main.S{i}") };
            format!("struct S{i}\n    x::Int64\nend\n") + &function("f", &of, |b| b.ret("1"))
        })
    }),
    compiled("global variables", |n| {
        let mut reads = Body::new();
        let globals = repeat(n, |i| format!("global g{i}::Int64 = {i}\n"));
        (0..n).for_each(|i| drop(reads.value(&format!("Main.g{i}::Int64"))));
        globals + &reads.end("f", "", "0")
    }),
    compiled("global variables, each in a function", |n| {
        repeat(n, |i| {
            format!("global g{i}::Int64 = {i}\n")
                + &function(&format!("f{i}"), "x::Int64", |b| {
                    b.line(&format!("Base.setglobal!(Main, :g{i}, x)::Int64"));
                    let read = b.value(&format!("Main.g{i}::Int64"));
                    b.ret(&read)
                })
        })
    }),
    compiled("union of many types", |n| {
        // The number of members of a union is limited.
        let members: Vec<String> = (0..n.min(64)).map(|i| format!("Main.S{i}")).collect();
        repeat(n, |i| format!("mutable struct S{i}\n    x::Int64\nend\n"))
            + &function("f", &format!("x::Union{{{}}}", members.join(", ")), |b| b.ret("1"))
    }),
    compiled("tuple types", |n| {
        repeat(n, |i| format!("struct S{i}\n    x::Int64\nend\n"))
            + &repeat(n, |i| {
                function(&format!("f{i}"), &format!("x::Tuple{{Main.S{i}, Int64}}"), |b| b.ret("1"))
            })
    }),
    compiled("vector types", |n| {
        repeat(n, |i| format!("mutable struct S{i}\n    x::Int64\nend\n"))
            + &repeat(n, |i| {
                function(&format!("f{i}"), &format!("x::Vector{{Main.S{i}}}"), |b| {
                    let length = b.value("Base.arraylen(x)::Int64");
                    b.ret(&length)
                })
            })
    }),
    compiled("isa, type by type", |n| {
        let mut tests = Body::new();
        for i in 0..n {
            tests.value(&format!("(x isa Main.S{i})::Bool"));
        }
        repeat(n, |i| format!("mutable struct S{i}\n    x::Int64\nend\n")) + &tests.end("f", "x::Any", "1")
    }),
    // Findings.
    broken("unknown types of fields", |n| {
        repeat(n, |i| format!("struct S{i}\n    x::Main.Unknown{i}\nend\n"))
    }),
    broken("unknown supertypes", |n| {
        repeat(n, |i| format!("struct S{i} <: Unknown{i}\n    x::Int64\nend\n"))
    }),
    broken("unknown intrinsics", |n| {
        one(|b| (0..n).for_each(|i| drop(b.value(&format!("intrinsic Base.ad_int{i}(x, x)::Int64")))))
    }),
    compiled("unknown functions", |n| {
        one(|b| (0..n).for_each(|i| drop(b.value(&format!("invoke Main.unknown{i}(x::Int64)::Int64")))))
    }),
    broken("unknown fields", |n| {
        let mut reads = Body::new();
        (0..n).for_each(|i| drop(reads.value(&format!("Base.getfield(x, :unknown{i})::Int64"))));
        "struct S\n    known::Int64\nend\n".to_owned() + &reads.end("f", "x::Main.S", "1")
    }),
    broken("unknown values", |n| {
        one(|b| (0..n).for_each(|i| drop(b.value(&format!("Base.add_int(x, %{})::Int64", 900_000 + i)))))
    }),
    broken("unknown variables", |n| {
        one(|b| (0..n).for_each(|i| drop(b.value(&format!("Base.add_int(x, unknown{i})::Int64")))))
    }),
    broken("unknown labels", |n| {
        one(|b| {
            for i in 0..n {
                b.line(&format!("goto #{} if not true", 900_000 + i));
                b.block();
            }
        })
    }),
    broken("types twice", |n| {
        repeat(n, |i| format!("struct S{0}\n    x::Int64\nend\nstruct S{0}\n    y::Int8\nend\n", i))
    }),
    broken("functions twice", |n| repeat(n, |i| identity(&format!("f{i}")) + &identity(&format!("f{i}")))),
    broken("one function often", |n| repeat(n, |_| identity("f"))),
    broken("wrong types", |n| one(|b| (0..n).for_each(|_| drop(b.value("Base.add_int(x, 1.5)::Int64"))))),
    broken("missing results", |n| one(|b| (0..n).for_each(|_| drop(b.value("Base.slt_int(x, 1)::Int64"))))),
    broken("nonsense", |n| repeat(n, |i| format!("?{i} !!\n"))),
    // Straight code.
    compiled("sums in a chain", |n| one(|b| chain(b, n, |last| format!("Base.add_int({last}, x)::Int64")))),
    compiled("independent sums", |n| {
        one(|b| (0..n).for_each(|i| drop(b.value(&format!("Base.add_int(x, {i})::Int64")))))
    }),
    compiled("values alive together", |n| {
        one(|b| {
            let values: Vec<String> =
                (0..n).map(|i| b.value(&format!("Base.mul_int(x, {i})::Int64"))).collect();
            values
                .iter()
                .fold("x".to_owned(), |sum, value| b.value(&format!("Base.xor_int({sum}, {value})::Int64")));
        })
    }),
    compiled("the same sum", |n| one(|b| (0..n).for_each(|_| drop(b.value("Base.add_int(x, 1)::Int64"))))),
    compiled("checked sums", |n| {
        one(|b| chain(b, n, |last| format!("Base.checked_sdiv_int({last}, x)::Int64")))
    }),
    compiled("floats in a chain", |n| {
        let mut body = Body::new();
        let first = body.value("Base.sitofp(Float64, x)::Float64");
        let mut last = first.clone();
        (0..n).for_each(|_| last = body.value(&format!("Base.mul_float({last}, {first})::Float64")));
        body.value(&format!("Base.fptosi(Int64, {last})::Int64"));
        body.end("f", "x::Int64", "x")
    }),
    compiled("choices in a chain", |n| {
        one(|b| {
            let is = b.value("Base.slt_int(x, 5)::Bool");
            chain(b, n, |last| format!("Core.ifelse({is}, {last}, x)::Int64"));
        })
    }),
    compiled("conversions", |n| {
        one(|b| {
            let mut last = "x".to_owned();
            for _ in 0..n {
                let short = b.value(&format!("Base.trunc_int(Int32, {last})::Int32"));
                last = b.value(&format!("Base.sext_int(Int64, {short})::Int64"));
            }
        })
    }),
    compiled("string constants", |n| one(|b| (0..n).for_each(|i| print_string(b, &format!("text {i}"))))),
    compiled("symbol constants", |n| {
        let mut body = Body::new();
        (0..n).for_each(|i| drop(body.value(&format!("Base.compilerbarrier(:type, :s{i})::Any"))));
        body.end("f", "x::Int64", "x")
    }),
    compiled("large numbers", |n| {
        one(|b| chain(b, n, |last| format!("Base.xor_int({last}, {})::Int64", i64::MAX - 7)))
    }),
    // Memory.
    compiled("loads and stores", |n| {
        let mut body = Body::new();
        for i in 0..n {
            let at = i % 64 + 1;
            let value = body.value(&format!("Base.pointerref(p, {at}, 1)::Int64"));
            body.line(&format!("Base.pointerset(p, {value}, {}, 1)::Ptr{{Int64}}", (i * 7) % 64 + 1));
        }
        body.end("f", "p::Ptr{Int64}", "1")
    }),
    compiled("array elements", |n| {
        let mut body = Body::new();
        for i in 0..n {
            let value = body.value(&format!("Base.arrayref(true, v, {})::Int64", i % 100 + 1));
            body.line(&format!("Base.arrayset(true, v, {value}, {})::Vector{{Int64}}", (i * 7) % 100 + 1));
        }
        body.end("f", "v::Vector{Int64}", "1")
    }),
    compiled("fields read and written", |n| {
        let mut body = Body::new();
        for i in 0..n {
            let (from, to) = if i % 2 == 0 { ("a", "b") } else { ("b", "a") };
            let value = body.value(&format!("Base.getfield(s, :{from})::Int64"));
            body.line(&format!("Base.setfield!(s, :{to}, {value})::Int64"));
        }
        "mutable struct S\n    a::Int64\n    b::Int64\nend\n".to_owned() + &body.end("f", "s::Main.S", "1")
    }),
    compiled("objects made and dropped", |n| {
        let mut body = Body::new();
        for _ in 0..n {
            let made = body.value("%new(Main.S, x)::Main.S");
            body.value(&format!("Base.getfield({made}, :a)::Int64"));
        }
        "mutable struct S\n    a::Int64\nend\n".to_owned() + &body.end("f", "x::Int64", "1")
    }),
    compiled("objects in a list", |n| {
        let mut body = Body::new();
        let mut last = "nothing".to_owned();
        (0..n).for_each(|_| last = body.value(&format!("%new(Main.L, {last}, x)::Main.L")));
        let mut text = "mutable struct L\n    next::Any\n    x::Int64\nend\n".to_owned();
        text += &body.end_as("f", "x::Int64", "Any", &last);
        text
    }),
    compiled("objects alive over calls", |n| {
        // Each call records all roots that are live there, so their number is bounded to keep the records linear in
        // `n`.
        let mut body = Body::new();
        let made: Vec<String> = (0..50).map(|_| body.value("%new(Main.S, x)::Main.S")).collect();
        (0..n).for_each(|i| drop(body.value(&format!("dynamic Main.g({})::Any", made[i % 50]))));
        "mutable struct S\n    a::Int64\nend\n".to_owned()
            + &function("g", "s::Main.S", |b| b.ret("1"))
            + &body.end("f", "x::Int64", "1")
    }),
    compiled("preserved objects", |n| {
        let mut body = Body::new();
        for _ in 0..n {
            let made = body.value("%new(Main.S, x)::Main.S");
            let token = body.value(&format!("$(Expr(:gc_preserve_begin, :({made})))"));
            body.line(&format!("$(Expr(:gc_preserve_end, :({token})))"));
        }
        "mutable struct S\n    a::Int64\nend\n".to_owned() + &body.end("f", "x::Int64", "1")
    }),
    compiled("elements of a tuple", |n| {
        // The length of a tuple is limited.
        let n = n.min(1000);
        let (values, types) = (vec!["x"; n].join(", "), vec!["Int64"; n].join(", "));
        one(|b| {
            let made = b.value(&format!("Core.tuple({values})::Tuple{{{types}}}"));
            (0..n).for_each(|i| drop(b.value(&format!("Base.getfield({made}, {})::Int64", i + 1))));
        })
    }),
    // Calls.
    compiled("calls of one function", |n| {
        identity("g") + &one(|b| (0..n).for_each(|_| drop(b.value("invoke Main.g(x::Int64)::Int64"))))
    }),
    compiled("calls of many functions", |n| {
        repeat(n, |i| identity(&format!("g{i}")))
            + &one(|b| (0..n).for_each(|i| drop(b.value(&format!("invoke Main.g{i}(x::Int64)::Int64")))))
    }),
    compiled("calls in a chain", |n| {
        identity("f0")
            + &repeat(n, |i| {
                function(&format!("f{}", i + 1), "x::Int64", |b| call_and_add(b, &format!("f{i}")))
            })
    }),
    compiled("calls in a chain, callers first", |n| {
        repeat(n, |i| function(&format!("f{i}"), "x::Int64", |b| call_and_add(b, &format!("f{}", i + 1))))
            + &identity(&format!("f{n}"))
    }),
    compiled("calls in a ring", |n| {
        repeat(n, |i| {
            function(&format!("f{i}"), "x::Int64", |b| call_and_add(b, &format!("f{}", (i + 1) % n)))
        })
    }),
    compiled("functions that call two others", |n| {
        identity("f0")
            + &repeat(n, |i| {
                function(&format!("f{}", i + 1), "x::Int64", |b| {
                    let one = b.value(&format!("invoke Main.f{}(x::Int64)::Int64", i / 2));
                    let two = b.value(&format!("invoke Main.f{i}({one}::Int64)::Int64"));
                    b.ret(&two)
                })
            })
    }),
    compiled("calls of C, each in a function", |n| {
        repeat(n, |i| {
            function(&format!("f{i}"), "x::Int64", |b| {
                let called = call_c(b);
                b.ret(&called)
            })
        })
    }),
    compiled("calls of C in one function", |n| one(|b| (0..n).for_each(|_| drop(call_c(b))))),
    compiled("functions given to C", |n| {
        repeat(n, |i| {
            identity(&format!("g{i}"))
                + &function(&format!("f{i}"), "x::Int64", |b| {
                    b.value(&format!("$(Expr(:cfunction, Ptr{{Nothing}}, :(:g{i}), Int64, svec(Int64), :(:ccall)))::Ptr{{Nothing}}"));
                    let called = call_c(b);
                    b.ret(&called)
                })
        })
    }),
    compiled("parameters", |n| {
        let n = n.min(1000);
        let params: Vec<String> = (0..n).map(|i| format!("x{i}::Int64")).collect();
        function("f", &params.join(", "), |b| {
            let sum =
                (0..n).fold("x0".to_owned(), |sum, i| b.value(&format!("Base.add_int({sum}, x{i})::Int64")));
            b.ret(&sum)
        })
    }),
    // Control flow.
    compiled("blocks in a row", |n| {
        one(|b| {
            for _ in 0..n {
                b.line(&format!("goto #{}", b.label + 1));
                b.block();
            }
        })
    }),
    compiled("ifs in a row", |n| {
        one(|b| {
            for i in 0..n {
                let is = b.value(&format!("Base.slt_int(x, {i})::Bool"));
                let label = b.label;
                b.line(&format!("goto #{} if not {is}", label + 2));
                b.block();
                b.line(&format!("goto #{}", label + 2));
                b.block();
                b.value(&format!("φ (#{label} => {i}, #{} => x)::Int64", label + 1));
            }
        })
    }),
    compiled("ifs in ifs", |n| {
        one(|b| {
            for i in 0..n {
                let is = b.value(&format!("Base.slt_int(x, {i})::Bool"));
                b.line(&format!("goto #{} if not {is}", n + 1));
                b.block();
            }
        })
    }),
    compiled("exits to one block", |n| {
        one(|b| {
            for i in 0..n {
                let is = b.value(&format!("(x === {i})::Bool"));
                b.line(&format!("goto #{} if not {is}", b.label + 2));
                b.block();
                b.line(&format!("goto #{}", 2 * n + 2));
                b.block();
            }
            b.line(&format!("goto #{}", 2 * n + 2));
            b.block();
            let edges: Vec<String> = (0..n).map(|i| format!("#{} => {i}", 2 * i + 2)).collect();
            b.value(&format!("φ ({}, #{} => x)::Int64", edges.join(", "), 2 * n + 1));
        })
    }),
    compiled("loops in a row", |n| one(|b| (0..n).for_each(|_| looping(b, |_| ())))),
    compiled("loops in loops", |n| one(|b| nest(b, n))),
    compiled("φ of one loop", |n| {
        one(|b| {
            let entry = b.label;
            b.line(&format!("goto #{}", entry + 1));
            b.block();
            let first = b.next;
            for i in 0..n {
                b.value(&format!("φ (#{entry} => {i}, #{} => %{})::Int64", entry + 2, first + (i + 1) % n));
            }
            let is = b.value(&format!("Base.slt_int(%{first}, x)::Bool"));
            b.line(&format!("goto #{} if not {is}", entry + 3));
            b.block();
            b.line(&format!("goto #{}", entry + 1));
            b.block();
        })
    }),
    compiled("invariants of a loop", |n| {
        one(|b| looping(b, |b| (0..n).for_each(|i| drop(b.value(&format!("Base.mul_int(x, {i})::Int64"))))))
    }),
    compiled("handlers in a row", |n| one(|b| (0..n).for_each(|_| handler(b, |b| drop(call_c(b)))))),
    compiled("handlers in handlers", |n| one(|b| handlers(b, n.min(1000)))),
    compiled("blocks that nothing reaches", |n| {
        one(|b| {
            for _ in 0..n {
                b.line(&format!("goto #{}", n + 1));
                b.block();
            }
        })
    }),
];

/// A function under construction: its text, the number of the next value, and the label of the current block.
struct Body {
    text: String,
    next: usize,
    label: usize,
    begins: bool,
}

impl Body {
    fn new() -> Body {
        Body { text: String::new(), next: 1, label: 1, begins: true }
    }

    /// Adds a statement whose value has no use. It takes a value number nevertheless.
    fn line(&mut self, statement: &str) {
        let gutter = if std::mem::take(&mut self.begins) {
            format!("{} ─ ", self.label)
        } else {
            "│   ".to_owned()
        };
        self.next += 1;
        let _ = writeln!(self.text, "{gutter}     {statement}");
    }

    /// Adds a statement with a value, and returns the value's name.
    fn value(&mut self, statement: &str) -> String {
        let name = format!("%{}", self.next);
        let gutter = if std::mem::take(&mut self.begins) {
            format!("{} ─ ", self.label)
        } else {
            "│   ".to_owned()
        };
        self.next += 1;
        let _ = writeln!(self.text, "{gutter}{name} = {statement}");
        name
    }

    /// Begins the next block.
    fn block(&mut self) {
        self.label += 1;
        self.begins = true;
    }

    fn ret(&mut self, value: &str) {
        self.line(&format!("return {value}"));
    }

    fn end(self, name: &str, params: &str, value: &str) -> String {
        self.end_as(name, params, "Int64", value)
    }

    fn end_as(mut self, name: &str, params: &str, result: &str, value: &str) -> String {
        self.ret(value);
        format!("function {name}({params})::{result}\n{}end\n", self.text)
    }
}

fn repeat(n: usize, one: impl FnMut(usize) -> String) -> String {
    (0..n).map(one).collect()
}

fn function(name: &str, params: &str, fill: impl FnOnce(&mut Body)) -> String {
    let mut body = Body::new();
    fill(&mut body);
    format!("function {name}({params})::Int64\n{}end\n", body.text)
}

fn identity(name: &str) -> String {
    function(name, "x::Int64", |b| b.ret("x"))
}

/// The function `f(x::Int64)` with the statements of `fill`; it returns `x`.
fn one(fill: impl FnOnce(&mut Body)) -> String {
    let mut body = Body::new();
    fill(&mut body);
    body.end("f", "x::Int64", "x")
}

fn methods(n: usize) -> String {
    repeat(n, |i| {
        format!("struct S{i}\n    x::Int64\nend\n") + &function("f", &format!("x::Main.S{i}"), |b| b.ret("1"))
    })
}

/// Adds `n` statements, each of which uses the value of the one before.
fn chain(b: &mut Body, n: usize, statement: impl Fn(&str) -> String) {
    let mut last = "x".to_owned();
    (0..n).for_each(|_| last = b.value(&statement(&last)));
}

fn print_string(b: &mut Body, text: &str) {
    b.line(&format!("invoke Main.print(\"{text}\"::String)::Nothing"));
}

fn call_and_add(b: &mut Body, name: &str) {
    let called = b.value(&format!("invoke Main.{name}(x::Int64)::Int64"));
    let sum = b.value(&format!("Base.add_int({called}, 1)::Int64"));
    b.ret(&sum);
}

fn call_c(b: &mut Body) -> String {
    b.value("$(Expr(:foreigncall, :(:labs), Int64, svec(Int64), 0, :(:ccall), :(x)))::Int64")
}

/// Adds a counted loop around the statements of `fill`, which must not begin a block.
fn looping(b: &mut Body, fill: impl FnOnce(&mut Body)) {
    let entry = b.label;
    b.line(&format!("goto #{}", entry + 1));
    b.block();
    let at = b.next;
    // The φ names the increment, whose number is known only after the body: a placeholder is replaced by the φ below.
    let place = b.text.len();
    b.value("?");
    let is = b.value(&format!("Base.slt_int(%{at}, x)::Bool"));
    b.line(&format!("goto #{} if not {is}", entry + 3));
    b.block();
    fill(b);
    let more = b.value(&format!("Base.add_int(%{at}, 1)::Int64"));
    b.line(&format!("goto #{}", entry + 1));
    let counter = format!("{} ─ %{at} = φ (#{entry} => 0, #{} => {more})::Int64\n", entry + 1, entry + 2);
    let old = b.text[place..].find('\n').map_or(b.text.len(), |end| place + end + 1);
    b.text.replace_range(place..old, &counter);
    b.block();
}

/// Adds `n` nested loops: the heads from the outermost, the innermost body, and the ends from the innermost.
fn nest(b: &mut Body, n: usize) {
    // Block 1 enters; 2 + k is the head of loop k; n + 2 is the innermost body; n + 3 + k ends loop n - 1 - k; 2n + 3
    // follows the loops.
    b.line("goto #2");
    b.block();
    let heads = b.next;
    // Three statements for each head, one for the body, two for each end.
    let ends = heads + 3 * n + 1;
    let behind = 2 * n + 3;
    for k in 0..n {
        let end = n - 1 - k;
        let before = if k == 0 { 1 } else { k + 1 };
        b.value(&format!("φ (#{before} => 0, #{} => %{})::Int64", n + 3 + end, ends + 2 * end));
        let is = b.value(&format!("Base.slt_int(%{}, x)::Bool", heads + 3 * k));
        // A loop that has ended continues at the end of the one around it.
        let out = if k == 0 { behind } else { n + 3 + end + 1 };
        b.line(&format!("goto #{out} if not {is}"));
        b.block();
    }
    b.line(&format!("goto #{}", n + 3));
    b.block();
    for end in 0..n {
        let k = n - 1 - end;
        b.value(&format!("Base.add_int(%{}, 1)::Int64", heads + 3 * k));
        b.line(&format!("goto #{}", k + 2));
        b.block();
    }
}

/// The statements of `fill` under a handler.
fn handler(b: &mut Body, fill: impl FnOnce(&mut Body)) {
    let label = b.label;
    let token = b.value(&format!("enter #{}", label + 2));
    b.block();
    fill(b);
    b.line(&format!("$(Expr(:leave, :({token})))"));
    b.line(&format!("goto #{}", label + 3));
    b.block();
    b.line(&format!("$(Expr(:pop_exception, :({token})))::Nothing"));
    b.line(&format!("goto #{}", label + 3));
    b.block();
}

/// Adds nested handlers: entered from the outermost, left from the innermost.
fn handlers(b: &mut Body, n: usize) {
    // Block 1 + k enters handler k; n + 1 is the body; n + 2 + k leaves handler n - 1 - k, and 2n + 2 + k is its catch
    // block; 3n + 2 follows all of them.
    let tokens: Vec<String> = (0..n)
        .map(|k| {
            let token = b.value(&format!("enter #{}", 2 * n + 2 + (n - 1 - k)));
            b.block();
            token
        })
        .collect();
    let behind = 3 * n + 2;
    let leaves = |k: usize| n + 2 + (n - 1 - k);
    call_c(b);
    b.line(&format!("goto #{}", leaves(n - 1)));
    b.block();
    for (k, token) in tokens.iter().enumerate().rev() {
        b.line(&format!("$(Expr(:leave, :({token})))"));
        b.line(&format!("goto #{}", if k == 0 { behind } else { leaves(k - 1) }));
        b.block();
    }
    for (k, token) in tokens.iter().enumerate().rev() {
        b.line(&format!("$(Expr(:pop_exception, :({token})))::Nothing"));
        // The handlers around it are still in force.
        b.line(&format!("goto #{}", if k == 0 { behind } else { leaves(k - 1) }));
        b.block();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use brolga_engine::Program;

    #[test]
    fn every_construct_has_its_outcome_at_any_size() {
        let mut failed = Vec::new();
        for construct in ALL {
            for n in [2, 5, 30] {
                match (Program::read("construct.jlir", construct.text(n).as_bytes()), construct.outcome) {
                    (Ok(_), Outcome::Compiled) | (Err(_), Outcome::Broken) => {}
                    (Ok(_), _) => failed.push(format!("{} {n}: not broken", construct.name)),
                    (Err(error), _) => {
                        let text: String = error.to_string().chars().take(600).collect();
                        failed.push(format!("{} {n}: {text}", construct.name));
                        break;
                    }
                }
            }
        }
        assert!(failed.is_empty(), "{}", failed.join("\n"));
    }
}
