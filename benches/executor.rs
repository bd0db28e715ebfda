//! Calls and loading in an executor of its own process, beside the same in this process.
//!
//! ```text
//! cargo bench --bench executor
//! ```
//!
//! | bench | one iteration |
//! |---|---|
//! | `call/typed` | Rust calls a compiled function of one integer, in process, without an executor |
//! | `call/in_process` | the same through the trait of executors, in this process |
//! | `call/process` | the same in another process: one message in each direction |
//! | `text/in_process`, `text/process` | a function takes and returns a string, which is copied |
//! | `vector/in_process`, `vector/process` | a function takes a vector of 1,000 integers, which is copied |
//! | `load/in_process/n`, `load/process/n` | a sealed program of n functions is loaded, and retired |
//! | `compile/n` | the same program is compiled and linked without an executor |
//!
//! The executor is this program again, with the argument `executor`.

use std::hint::black_box;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use brolga::cache::CacheKey;
use brolga::executor::{RemoteEngine, Spawn, serve_controller};
use brolga::{Engine, Options, Program};
use brolga_engine::remote::seal_program;
use brolga_executor::{Executor, InProcess, Process, Receiver, UnitId};
use brolga_jit::JitOptions;
use criterion::Criterion;

const PROGRAM: &str = r#"
function next(x::Int64)::Int64
1 ─ %1 = Base.add_int(x, 1)::Int64
└──      return %1
end

function label(text::String, n::Int64)::String
1 ─ %1 = invoke Base.string(text::String, n::Int64)::String
└──      return %1
end

function length(v::Vector{Int64})::Int64
1 ─ %1 = Base.arraylen(v)::Int64
└──      return %1
end
"#;

/// A program of `count` small functions.
fn functions(count: usize) -> Program {
    let mut text = String::new();
    for at in 0..count {
        text.push_str(&format!(
            "function f{at}(n::Int64)::Int64\n1 ─ %1 = Base.slt_int(n, {at})::Bool\n└──      goto #3 if not %1\n2 ─ %3 = \
             Base.mul_int(n, {at})::Int64\n└──      return %3\n3 ─ %5 = Base.sub_int(n, {at})::Int64\n│   %6 = \
             Base.checked_sdiv_int(%5, n)::Int64\n└──      return %6\nend\n",
        ));
    }
    Program::read("functions.jlir", text.as_bytes()).expect("a program")
}

struct Silent;

impl Receiver for Silent {
    fn print(&self, _: &[u8]) {}

    fn unwritten(&self, _: io::Error) {}
}

fn spawn() -> Spawn {
    Spawn::new(std::env::current_exe().expect("this program")).arg("executor")
}

fn calls(c: &mut Criterion) {
    let program = Program::read("calls.jlir", PROGRAM.as_bytes()).expect("a program");
    let engine = Engine::new(Options::new()).expect("an engine");
    let next = engine.compile(&program).expect("a unit").func::<(i64,), i64>("next").expect("a function");
    c.bench_function("call/typed", |b| b.iter(|| next.call((black_box(1),)).expect("a number")));
    let here = RemoteEngine::in_process(Options::new()).expect("an engine");
    let there = RemoteEngine::spawn(Options::new(), spawn()).expect("an engine");
    for (name, engine) in [("in_process", here), ("process", there)] {
        let unit = engine.compile(&program).expect("a unit");
        let next = unit.func::<(i64,), i64>("next").expect("a function");
        c.bench_function(&format!("call/{name}"), |b| {
            b.iter(|| next.call((black_box(1),)).expect("a number"));
        });
        let label = unit.func_of::<(String, i64), String>("label").expect("a function");
        c.bench_function(&format!("text/{name}"), |b| {
            b.iter(|| label.call(("some text ".to_owned(), 7)).expect("a text"));
        });
        let length = unit.func_of::<(Vec<i64>,), i64>("length").expect("a function");
        let numbers: Vec<i64> = (0..1000).collect();
        c.bench_function(&format!("vector/{name}"), |b| {
            b.iter(|| length.call((numbers.clone(),)).expect("a number"));
        });
    }
}

fn loading(c: &mut Criterion) {
    let engine = Engine::new(Options::new()).expect("an engine");
    let process = Process::spawn(spawn(), Arc::new(Silent)).expect("an executor");
    let key: &CacheKey = process.key();
    let runtime = Engine::new(Options::new()).expect("an engine").runtime().clone();
    let here = InProcess::new(runtime, JitOptions::default(), key.clone()).expect("an executor");
    for count in [1_000, 10_000] {
        let program = functions(count);
        let sealed = seal_program(&engine, &program, key).expect("a sealed program");
        println!("{count} functions: {} bytes", sealed.len());
        let executors: [(&str, &dyn Executor); 2] = [("in_process", &here), ("process", &process)];
        for (name, executor) in executors {
            let mut number = 0;
            c.bench_function(&format!("load/{name}/{count}"), |b| {
                b.iter(|| {
                    number += 1;
                    executor.load(UnitId(number), &sealed).expect("a unit");
                    executor.retire(UnitId(number)).expect("a unit");
                });
            });
        }
        c.bench_function(&format!("compile/{count}"), |b| {
            b.iter(|| engine.compile(&program).expect("a unit"));
        });
    }
}

fn main() {
    if std::env::args().nth(1).as_deref() == Some("executor") {
        // The controller sees how it ended.
        let _ = serve_controller();
        return;
    }
    let long = Duration::from_secs(2);
    let mut c = Criterion::default().sample_size(10).measurement_time(long).configure_from_args();
    calls(&mut c);
    loading(&mut c);
    c.final_summary();
}
