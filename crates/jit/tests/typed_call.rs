//! Typed calls: values of every kind, checks of the signature, exceptions, nesting, threads, lifetime.

mod support;

use std::sync::{Arc, OnceLock};

use brolga_codegen::compiled::Symbol;
use brolga_codegen::isa::Tier;
use brolga_codegen::sig::{Abi, FunctionType, Signature, ValueType};
use brolga_jit::{CallError, Jit, LookupError, TypedFunc, Unit, Word};
use brolga_runtime::{ExceptionKind, Interrupt};
use cranelift_codegen::ir::InstBuilder;
use support::{TIERS, compile, engine, int_function, ints, load, recursion};

fn thrown(result: Result<i64, CallError>) -> ExceptionKind {
    match result {
        Err(CallError::Exception(exception)) => exception.kind,
        other => panic!("no exception: {other:?}"),
    }
}

fn fib(jit: &Jit, tier: Tier) -> Unit {
    let signature = ints(1, 1);
    let function = compile(jit, tier, "fib", &signature, |c| {
        c.check_stack();
        let n = c.params()[0];
        let (small, large) = (c.b.create_block(), c.b.create_block());
        let two = c.int(2);
        let is_small = c.b.ins().icmp(cranelift_codegen::ir::condcodes::IntCC::SignedLessThan, n, two);
        c.b.ins().brif(is_small, small, &[], large, &[]);
        c.b.switch_to_block(small);
        c.b.ins().return_(&[n]);
        c.b.switch_to_block(large);
        let (a, b) = (c.b.ins().iadd_imm_s(n, -1), c.b.ins().iadd_imm_s(n, -2));
        let (a, b) = (c.call("fib", &signature, &[a])[0], c.call("fib", &signature, &[b])[0]);
        let sum = c.b.ins().iadd(a, b);
        c.b.ins().return_(&[sum]);
    });
    load(jit, vec![function], vec![int_function("fib", 1)])
}

#[test]
fn a_recursive_function_gives_its_value_on_both_tiers() {
    for tier in TIERS {
        let unit = fib(&engine(), tier);
        assert_eq!(unit.func::<(i64,), i64>("fib").unwrap().call((20,)), Ok(6765));
    }
}

/// A function that returns its arguments, of the given types.
fn echo(jit: &Jit, tier: Tier, types: Vec<ValueType>) -> Unit {
    let result = ValueType::tuple(types.clone());
    let ty = FunctionType::of_leaves("echo", types, result);
    let signature = ty.signature.clone();
    let function = compile(jit, tier, "echo", &signature, |c| {
        let params = c.params();
        if signature.returns_through_memory() {
            let flags = cranelift_codegen::ir::MemFlagsData::trusted();
            for (value, (_, at)) in
                params[1..].iter().zip(brolga_codegen::sig::word_offsets(&signature.results))
            {
                c.b.ins().store(flags, *value, params[0], at);
            }
            c.b.ins().return_(&[]);
        } else {
            c.b.ins().return_(&params);
        }
    });
    load(jit, vec![function], vec![ty])
}

#[test]
fn every_kind_of_value_passes_in_registers_and_through_memory() {
    let scalar = |name: &str, abi| ValueType::scalar(name, abi);
    for tier in TIERS {
        let jit = engine();
        let small = echo(
            &jit,
            tier,
            vec![scalar("Int8", Abi::I8), scalar("Float32", Abi::F32), scalar("Int128", Abi::I128)],
        );
        let f = small.func::<(i8, f32, i128), (i8, f32, i128)>("echo").unwrap();
        assert_eq!(f.call((-7, 1.5, i128::MIN + 5)), Ok((-7, 1.5, i128::MIN + 5)));

        let types = vec![
            scalar("UInt8", Abi::I8),
            scalar("Int16", Abi::I16),
            scalar("Char", Abi::I32),
            scalar("UInt64", Abi::I64),
            scalar("UInt128", Abi::I128),
            scalar("Bool", Abi::I8),
            scalar("Float32", Abi::F32),
            scalar("Float64", Abi::F64),
            scalar("Ptr{Int32}", Abi::Ptr),
            ValueType::ghost("Nothing"),
            ValueType::tuple(vec![scalar("Int64", Abi::I64), scalar("UInt128", Abi::I128)]),
        ];
        type All = (u8, i16, char, u64, u128, bool, f32, f64, *mut i32, (), (i64, u128));
        let large = echo(&jit, tier, types);
        let f = large.func::<All, All>("echo").unwrap();
        let pointer = std::ptr::without_provenance_mut(16);
        let all = (200, -3, 'θ', u64::MAX, u128::MAX - 2, true, f32::MIN, -0.1, pointer, (), (-9, 1 << 99));
        assert_eq!(f.call(all), Ok(all));

        let untyped = large.untyped("echo").unwrap();
        let bits: Vec<u128> =
            untyped.signature().params.iter().map(|abi| u128::MAX >> (128 - abi.bits())).collect();
        assert_eq!(untyped.call(&bits[1..]), Err(CallError::Count { expected: 11, given: 10 }));
        // Bits do not become an address.
        let index = untyped.signature().params.iter().position(|abi| *abi == Abi::Ptr).unwrap();
        let address = CallError::Address { index: index as u32, bytes: None };
        assert_eq!(untyped.call(&bits), Err(address.clone()));
        let mut args: Vec<Word<'_, '_>> = bits.iter().map(|&bits| Word::Bits(bits)).collect();
        let refused = untyped.call_with(&args);
        assert_eq!(refused, Err(address));
        args[index] = Word::Pointer(std::ptr::without_provenance_mut(usize::MAX));
        assert_eq!(untyped.call_with(&args), Ok(bits.clone()));
        args[0] = Word::Pointer(pointer.cast());
        assert_eq!(untyped.call_with(&args), Err(CallError::Word { index: 0, object: false }));
    }
}

#[test]
fn a_float16_travels_as_its_bits() {
    for tier in TIERS {
        let unit = echo(&engine(), tier, vec![ValueType::scalar("Float16", Abi::F16)]);
        assert_eq!(unit.untyped("echo").unwrap().call(&[0x3c00]), Ok(vec![0x3c00]));
    }
}

#[test]
fn a_wrong_signature_is_an_error_that_says_what_differs() {
    let unit = fib(&engine(), Tier::Baseline);
    let message = |error: LookupError| error.to_string();
    assert_eq!(
        message(unit.func::<(i32,), i64>("fib").map(|_| ()).unwrap_err()),
        "argument 1 of `fib` is `Int64`, which `i32` does not represent"
    );
    assert_eq!(
        message(unit.func::<(), i64>("fib").map(|_| ()).unwrap_err()),
        "`fib` takes 1 argument, not 0"
    );
    assert_eq!(
        message(unit.func::<(i64,), u64>("fib").map(|_| ()).unwrap_err()),
        "the result of `fib` is `Int64`, which `u64` does not represent"
    );
    assert_eq!(
        message(unit.func::<(i64,), i64>("fob").map(|_| ()).unwrap_err()),
        "no function `fob`; there is `fib`"
    );
    assert_eq!(message(unit.untyped("").map(|_| ()).unwrap_err()), "no function ``; there is `fib`");
}

#[test]
fn an_exception_passes_twenty_frames_and_arrives_with_its_message() {
    for tier in TIERS {
        let jit = engine();
        let function = recursion(&jit, tier, "down", |c| {
            let message = c.address(Symbol::Text(b"the bottom".to_vec()));
            c.throw("brolga_throw_argument", &[(Abi::Ptr, message)]);
        });
        let unit = load(&jit, vec![function], vec![int_function("down", 1)]);
        let down = unit.func::<(i64,), i64>("down").unwrap();
        for depth in [0, 1, 20] {
            let Err(CallError::Exception(exception)) = down.call((depth,)) else { panic!("no exception") };
            assert_eq!(exception.to_string(), "ArgumentError: the bottom");
        }
    }
}

#[test]
fn endless_recursion_is_a_stack_overflow_on_every_thread_and_the_thread_goes_on() {
    for tier in TIERS {
        let jit = engine();
        let function = recursion(&jit, tier, "down", |c| {
            let zero = c.int(0);
            c.b.ins().return_(&[zero]);
        });
        let unit = load(&jit, vec![function], vec![int_function("down", 1)]);
        let down = unit.func::<(i64,), i64>("down").unwrap();
        let check = || {
            for _ in 0..3 {
                assert_eq!(thrown(down.call((i64::MAX,))), ExceptionKind::StackOverflowError);
                assert_eq!(down.call((1_000,)), Ok(1_000));
            }
        };
        std::thread::scope(|scope| {
            let large = std::thread::Builder::new().stack_size(64 << 20);
            large.spawn_scoped(scope, || assert_eq!(down.call((100_000,)), Ok(100_000))).unwrap();
            let small = std::thread::Builder::new().stack_size(1 << 20);
            small
                .spawn_scoped(scope, || {
                    check();
                    assert_eq!(thrown(down.call((100_000,))), ExceptionKind::StackOverflowError);
                })
                .unwrap();
            scope.spawn(check);
        });
    }
}

/// The callee of the callback in the nesting test.
static INNER: OnceLock<TypedFunc<(i64,), i64>> = OnceLock::new();

/// Called by compiled code: calls compiled code, which throws below a certain level, and survives that.
extern "C" fn callback(level: i64) -> i64 {
    match INNER.get().unwrap().call((level - 1,)) {
        Ok(value) => value + 100,
        Err(CallError::Exception(exception)) if exception.kind == ExceptionKind::DivideError => -1,
        Err(other) => panic!("{other}"),
    }
}

#[test]
fn nested_entries_unwind_one_level_each() {
    let jit = engine();
    // nest(level) = level == 0 ? throw : level odd ? 1000 + callback(level) : (callback(level); throw)
    let function = compile(&jit, Tier::Optimised, "nest", &ints(1, 1), |c| {
        let level = c.params()[0];
        let (deeper, bottom) = (c.b.create_block(), c.b.create_block());
        c.b.ins().brif(level, deeper, &[], bottom, &[]);
        c.b.switch_to_block(bottom);
        c.throw("brolga_throw_divide", &[]);
        c.b.switch_to_block(deeper);
        let foreign = Symbol::Foreign { name: "nesting_callback".into(), library: None, weak: false };
        let given = c.call_c(foreign, &[Abi::I64], Some(Abi::I64), &[level])[0];
        let odd = c.b.ins().band_imm_s(level, 1);
        let (even, back) = (c.b.create_block(), c.b.create_block());
        c.b.ins().brif(odd, back, &[], even, &[]);
        c.b.switch_to_block(even);
        c.throw("brolga_throw_divide", &[]);
        c.b.switch_to_block(back);
        let result = c.b.ins().iadd_imm_s(given, 1000);
        c.b.ins().return_(&[result]);
    });
    // SAFETY: the function has the C signature that the code states, and does not unwind.
    unsafe { jit.runtime().foreign().define("nesting_callback", callback as *const ()) };
    let unit = load(&jit, vec![function], vec![int_function("nest", 1)]);
    let nest = INNER.get_or_init(|| unit.func("nest").unwrap());
    assert_eq!(thrown(nest.call((0,))), ExceptionKind::DivideError);
    // Level 1 survives the exception of level 0; level 2 throws itself after level 1 came back; and so on.
    assert_eq!(nest.call((1,)), Ok(999));
    assert_eq!(thrown(nest.call((2,))), ExceptionKind::DivideError);
    assert_eq!(nest.call((3,)), Ok(999));
    assert_eq!(thrown(nest.call((40,))), ExceptionKind::DivideError);
}

#[test]
fn code_catches_what_its_callee_throws_and_values_survive() {
    for tier in TIERS {
        let jit = engine();
        // catch(n) = try down(n) catch; 10n end, where down throws after n frames if n is odd.
        let down = recursion(&jit, tier, "down", |c| c.throw("brolga_throw_undef_ref", &[]));
        let catch = compile(&jit, tier, "catch", &ints(1, 1), |c| {
            use brolga_codegen::thread::{Handler, current_thread, exception_depth};
            let n = c.params()[0];
            let thread = current_thread(&mut c.b);
            let depth = exception_depth(&mut c.b, thread);
            let handler = Handler::new(&mut c.b);
            handler.link(&mut c.b, thread);
            let callee = c.import(Symbol::Function("down".into()), ints(1, 1).clif(), false);
            let (normal, landing) = (c.b.create_block(), c.b.create_block());
            let value = c.b.append_block_param(normal, cranelift_codegen::ir::types::I64);
            handler.call(&mut c.b, callee, &[n], normal, landing);
            c.b.switch_to_block(normal);
            let thread = current_thread(&mut c.b);
            handler.unlink(&mut c.b, thread);
            c.b.ins().return_(&[value]);
            c.b.switch_to_block(landing);
            let thread = current_thread(&mut c.b);
            c.routine("brolga_pop_exception", &[thread, depth]);
            let ten = c.int(10);
            let result = c.b.ins().imul(n, ten);
            c.b.ins().return_(&[result]);
        });
        let unit = load(&jit, vec![down, catch], vec![int_function("catch", 1), int_function("down", 1)]);
        let catch = unit.func::<(i64,), i64>("catch").unwrap();
        for n in [0, 1, 20] {
            assert_eq!(catch.call((n,)), Ok(10 * n));
        }
        // The list of handlers is as before: the next exception arrives in Rust.
        assert_eq!(
            thrown(unit.func::<(i64,), i64>("down").unwrap().call((3,))),
            ExceptionKind::UndefRefError
        );
    }
}

#[test]
fn running_code_is_interrupted_from_another_thread() {
    let jit = engine();
    let function = compile(&jit, Tier::Optimised, "spin", &ints(0, 1), |c| {
        use brolga_codegen::thread::{current_thread, poll};
        let (head, slow) = (c.b.create_block(), c.b.create_block());
        let thread = current_thread(&mut c.b);
        c.b.ins().jump(head, &[]);
        c.b.switch_to_block(head);
        poll(&mut c.b, thread, slow, head);
        c.b.switch_to_block(slow);
        c.routine("brolga_safepoint", &[]);
        c.b.ins().jump(head, &[]);
    });
    let unit = load(&jit, vec![function], vec![int_function("spin", 0)]);
    let spin = unit.func::<(), i64>("spin").unwrap();
    std::thread::scope(|scope| {
        let (handle, interrupt) = std::sync::mpsc::channel();
        let running = scope.spawn(move || {
            handle.send(Interrupt::for_current(jit.runtime()).unwrap()).unwrap();
            thrown(spin.call(()))
        });
        let interrupt = interrupt.recv().unwrap();
        // A request before the entry is void, so it is repeated until the code stops.
        while !running.is_finished() {
            interrupt.raise();
            std::thread::yield_now();
        }
        assert_eq!(running.join().unwrap(), ExceptionKind::InterruptException);
    });
}

#[test]
fn many_threads_call_at_once() {
    let unit = fib(&engine(), Tier::Optimised);
    let f = unit.func::<(i64,), i64>("fib").unwrap();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..200 {
                    assert_eq!(f.call((15,)), Ok(610));
                }
            });
        }
    });
}

#[test]
fn a_handle_outlives_engine_and_unit_and_the_last_one_frees_the_code() {
    let jit = engine();
    let unit = fib(&jit, Tier::Optimised);
    let f = unit.func::<(i64,), i64>("fib").unwrap();
    // The trampoline stays with the engine.
    let with_unit = jit.stats().runs;
    let weak = Arc::downgrade(unit.loaded());
    drop(unit);
    assert_eq!(f.call((10,)), Ok(55));
    assert_eq!(jit.stats().runs, with_unit);
    drop(f);
    assert!(weak.upgrade().is_none());
    assert_eq!(jit.stats().runs, with_unit - 1);

    let f = fib(&jit, Tier::Baseline).func::<(i64,), i64>("fib").unwrap();
    drop(jit);
    assert_eq!(f.call((10,)), Ok(55));
}

#[test]
fn compiled_code_prints_through_the_runtime() {
    let jit = engine();
    let function = compile(&jit, Tier::Baseline, "hello", &Signature::default(), |c| {
        let thread = brolga_codegen::thread::current_thread(&mut c.b);
        let text = c.address(Symbol::Text("Größe ".as_bytes().to_vec()));
        let symbol = c.address(Symbol::Interned("sym".into()));
        let print = |name: &str| Symbol::Routine(name.into());
        c.call_c(print("brolga_print_string"), &[Abi::Ptr, Abi::Ptr], None, &[thread, text]);
        c.call_c(print("brolga_print_symbol"), &[Abi::Ptr, Abi::Ptr], None, &[thread, symbol]);
        c.b.ins().return_(&[]);
    });
    let ty = FunctionType::of_leaves("hello", vec![], ValueType::ghost("Nothing"));
    let unit = load(&jit, vec![function], vec![ty]);
    assert_eq!(unit.func::<(), ()>("hello").unwrap().call(()), Ok(()));
    assert_eq!(jit.runtime().sink().take_captured(), "Größe sym".as_bytes());
}
