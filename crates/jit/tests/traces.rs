//! Stack traces: an exception that leaves compiled code lists the functions and lines that it came through.

mod support;

use brolga_codegen::compiled::CompiledFunction;
use brolga_codegen::isa::Tier;
use brolga_jit::{CallError, Jit, JitOptions, Unit};
use brolga_runtime::{Exception, MAX_FRAMES, Runtime, RuntimeOptions, StackFrame, Traces};
use cranelift_codegen::ir::{InstBuilder, SourceLoc};
use support::{TIERS, compile, engines, int_function, ints, load, recursion};

fn thrown(unit: &Unit, name: &str, argument: i64) -> Exception {
    match unit.func::<(i64,), i64>(name).unwrap().call((argument,)) {
        Err(CallError::Exception(exception)) => *exception,
        other => panic!("{other:?}"),
    }
}

fn shown(exception: &Exception) -> Vec<String> {
    exception.trace().iter().map(StackFrame::to_string).collect()
}

/// Throws on line 7.
fn thrower(jit: &Jit, tier: Tier) -> CompiledFunction {
    compile(jit, tier, "thrower", &ints(1, 1), |c| {
        c.b.set_srcloc(SourceLoc::new(7));
        c.throw("brolga_throw_divide", &[]);
    })
}

/// Calls `callee` on line 20.
fn caller(jit: &Jit, tier: Tier, name: &str, callee: &str) -> CompiledFunction {
    compile(jit, tier, name, &ints(1, 1), |c| {
        let x = c.params()[0];
        c.b.set_srcloc(SourceLoc::new(20));
        let value = c.call(callee, &ints(1, 1), &[x])[0];
        c.b.set_srcloc(SourceLoc::new(21));
        let next = c.b.ins().iadd_imm_s(value, 1);
        c.b.ins().return_(&[next]);
    })
}

#[test]
fn a_trace_names_functions_and_lines_across_units() {
    for tier in TIERS {
        for jit in engines() {
            let below = load(&jit, vec![thrower(&jit, tier)], vec![]);
            let functions =
                vec![caller(&jit, tier, "middle", "thrower"), caller(&jit, tier, "outer", "middle")];
            let types = vec![int_function("outer", 1), int_function("middle", 1)];
            let unit =
                support::try_load(&jit, functions, vec![], types, std::slice::from_ref(&below)).unwrap();
            let exception = thrown(&unit, "outer", 1);
            assert_eq!(shown(&exception), ["thrower at line 7", "middle at line 20", "outer at line 20"]);
            assert_eq!(shown(&thrown(&unit, "middle", 1)), ["thrower at line 7", "middle at line 20"]);
            // Addresses can be looked up separately while the code is loaded.
            let innermost = jit.symbolize(exception.trace()[0].address).unwrap();
            assert_eq!((innermost.function.as_str(), innermost.line), ("thrower", Some(7)));
        }
    }
}

#[test]
fn a_deep_trace_is_cut() {
    let [jit, ..] = engines();
    let down = recursion(&jit, Tier::Optimised, "down", |c| c.throw("brolga_throw_divide", &[]));
    let unit = load(&jit, vec![down], vec![int_function("down", 1)]);
    assert_eq!(thrown(&unit, "down", 10).trace().len(), 11);
    assert_eq!(thrown(&unit, "down", 10_000).trace().len(), MAX_FRAMES);
    let overflow = recursion(&jit, Tier::Optimised, "overflow", |c| c.throw("brolga_throw_divide", &[]));
    let unit = load(&jit, vec![overflow], vec![int_function("overflow", 1)]);
    let trace = thrown(&unit, "overflow", i64::MAX).trace().to_vec();
    assert!(
        trace.len() == MAX_FRAMES && trace.iter().all(|frame| frame.function.as_deref() == Some("overflow"))
    );
}

#[test]
fn traces_can_be_switched_off() {
    let runtime = Runtime::new(RuntimeOptions { traces: Traces::Off, ..RuntimeOptions::default() });
    let jit = Jit::new(runtime, JitOptions::default()).unwrap();
    let unit = load(&jit, vec![thrower(&jit, Tier::Optimised)], vec![int_function("thrower", 1)]);
    assert_eq!(shown(&thrown(&unit, "thrower", 1)), Vec::<String>::new());
}
