//! The cost of calls, exceptions, stack checks and linking on this machine: `cargo run --release -p brolga-jit --example cost`.
//!
//! Each figure is the minimum of several runs, in the unit on its line.

#[path = "mod.rs"]
mod support;

use std::hint::black_box;
use std::time::Instant;

use brolga_codegen::isa::Tier;
use brolga_codegen::sig::{Abi, Signature};
use brolga_jit::{Jit, JitOptions};
use brolga_runtime::{Runtime, RuntimeOptions, with_attached};
use cranelift_codegen::ir::InstBuilder;
use cranelift_codegen::ir::condcodes::IntCC;
use support::{Clif, compile, engine, int_function, ints, load, recursion};

fn least(name: &str, unit: &str, scale: f64, count: u32, mut body: impl FnMut()) {
    let mut best = f64::INFINITY;
    for _ in 0..7 {
        let start = Instant::now();
        for _ in 0..count {
            body();
        }
        best = best.min(start.elapsed().as_secs_f64() / f64::from(count));
    }
    println!("{name:<60} {:>9.2} {unit}", best * scale);
}

fn fib(jit: &Jit, check: bool) -> f64 {
    let signature = ints(1, 1);
    let function = compile(jit, Tier::Optimised, "fib", &signature, |c: &mut Clif<'_>| {
        if check {
            c.check_stack();
        }
        let n = c.params()[0];
        let (small, large) = (c.b.create_block(), c.b.create_block());
        let is_small = c.b.ins().icmp_imm_s(IntCC::SignedLessThan, n, 2);
        c.b.ins().brif(is_small, small, &[], large, &[]);
        c.b.switch_to_block(small);
        c.b.ins().return_(&[n]);
        c.b.switch_to_block(large);
        let callee =
            c.import(brolga_codegen::compiled::Symbol::Function("fib".into()), signature.clif(), true);
        let (a, b) = (c.b.ins().iadd_imm_s(n, -1), c.b.ins().iadd_imm_s(n, -2));
        let a = c.b.ins().call(callee, &[a]);
        let b = c.b.ins().call(callee, &[b]);
        let (a, b) = (c.b.inst_results(a)[0], c.b.inst_results(b)[0]);
        let sum = c.b.ins().iadd(a, b);
        c.b.ins().return_(&[sum]);
    });
    let f = load(jit, vec![function], vec![int_function("fib", 1)]).func::<(i64,), i64>("fib").unwrap();
    let mut best = f64::INFINITY;
    for _ in 0..7 {
        let start = Instant::now();
        black_box(f.call((30,)).unwrap());
        best = best.min(start.elapsed().as_secs_f64() * 1e9 / 2_692_537.0);
    }
    best
}

fn main() {
    let jit = engine();
    let identity = compile(&jit, Tier::Optimised, "id", &ints(1, 1), |c| {
        let x = c.params()[0];
        c.b.ins().return_(&[x]);
    });
    let unit = load(&jit, vec![identity.clone()], vec![int_function("id", 1)]);
    let id = unit.func::<(i64,), i64>("id").unwrap();
    least("typed call, one argument, one result", "ns", 1e9, 1_000_000, || {
        black_box(id.call((black_box(3),)).unwrap());
    });
    let untyped = unit.untyped("id").unwrap();
    least("untyped call", "ns", 1e9, 1_000_000, || {
        black_box(untyped.call(&[3]).unwrap());
    });
    least("finding the thread, and entering", "ns", 1e9, 1_000_000, || {
        black_box(with_attached(jit.runtime(), |thread| thread.enter().outer_exceptions()).unwrap());
    });
    for depth in [0, 20] {
        let down = recursion(&jit, Tier::Optimised, "down", |c| c.throw("brolga_throw_divide", &[]));
        let unit = load(&jit, vec![down], vec![int_function("down", 1)]);
        let down = unit.func::<(i64,), i64>("down").unwrap();
        least(&format!("call that throws {depth} frames deep, message included"), "ns", 1e9, 100_000, || {
            black_box(down.call((depth,)).unwrap_err());
        });
    }
    println!("{:<60} {:>9.2} ns", "fib, each call, without stack check", fib(&jit, false));
    println!("{:<60} {:>9.2} ns", "fib, each call, with stack check", fib(&jit, true));
    least("link and free, one function", "µs", 1e6, 2_000, || {
        drop(load(&jit, vec![identity.clone()], vec![]));
    });
    let hundred: Vec<_> = (0..100)
        .map(|i| {
            let mut function = identity.clone();
            function.name = format!("id{i}");
            function
        })
        .collect();
    least("link and free, 100 functions, each", "µs", 1e4, 200, || {
        drop(load(&jit, hundred.clone(), vec![]));
    });
    let signature = Signature::new([Abi::I64, Abi::F64], [Abi::I64]);
    let mut compiler = jit.compiler();
    for tier in [Tier::Baseline, Tier::Optimised] {
        least(&format!("compiling an entry trampoline, {tier:?}"), "µs", 1e6, 500, || {
            let mut func = brolga_codegen::entry::entry_function(&signature, jit.isa());
            let options = brolga_codegen::compile::CompileOptions { tier, listing: false };
            black_box(compiler.compile("entry", &mut func, vec![], jit.isa(), options).unwrap());
        });
    }
    least("engine and runtime, made and dropped", "µs", 1e6, 200, || {
        let runtime = Runtime::new(RuntimeOptions::default());
        drop(Jit::new(runtime, JitOptions::default()).unwrap());
    });
}
