//! The builder: its output is well-formed, and its errors name the refused part.

use super::*;
use crate::hints::Inlining;
use crate::op::{Ordering, Region};
use crate::verify::verify_func;
use std::sync::Arc;

fn cx() -> Arc<Context> {
    Context::new()
}

fn phis(func: &Func) -> usize {
    func.blocks().flat_map(|b| func.block_insts(b)).filter(|&i| func.op(i) == Op::Phi).count()
}

/// A small deterministic random number generator.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33) as usize % bound
    }
}

#[test]
fn a_variable_that_never_changes_needs_no_phi() {
    let cx = cx();
    let mut b = Builder::high(&cx, "f", &[("x", Type::INT64), ("go", Type::BOOL)], Type::INT64);
    let (x, go) = (b.param(0).unwrap(), b.param(1).unwrap());
    let var = b.declare_var(Type::INT64);
    b.def_var(var, x).unwrap();
    let (head, body, done) = (b.create_block(), b.create_block(), b.create_block());
    b.goto(head).unwrap();
    b.switch_to_block(head).unwrap();
    b.use_var(var).unwrap();
    b.branch(go, body, done).unwrap();
    b.switch_to_block(body).unwrap();
    b.use_var(var).unwrap();
    b.goto(head).unwrap();
    b.switch_to_block(done).unwrap();
    let value = b.use_var(var).unwrap();
    b.ret(&[value]).unwrap();
    let func = b.finish().unwrap();
    assert_eq!(phis(&func), 0);
    let ret = func.terminator(func.last_block().unwrap()).unwrap();
    assert_eq!(func.args(ret), [x]);
}

#[test]
fn wrong_use_is_refused_at_once() {
    let cx = cx();
    let mut b = Builder::high(&cx, "f", &[("x", Type::INT64)], Type::INT64);
    let x = b.param(0).unwrap();
    let says = |e: BuildError| e.to_string();
    assert!(matches!(b.param(1), Err(BuildError::NoParam(1))));
    assert!(matches!(b.param(usize::MAX), Err(BuildError::NoParam(_))));
    assert_eq!(says(b.int(Type::INT8, 300).unwrap_err()), "300 is not a value of type `Int8`");
    assert_eq!(says(b.int(Type::STRING, 1).unwrap_err()), "1 is not a value of type `String`");
    assert!(
        b.int(Type::INT8, -128).is_ok() && b.int(Type::UINT8, 255).is_ok() && b.int(Type::BOOL, 2).is_err()
    );
    assert!(b.int(Type::UINT128, i128::MIN).is_ok() && b.int(Type::INT8, -129).is_err());
    let var = b.declare_var(Type::INT64);
    assert_eq!(says(b.use_var(var).unwrap_err()), "var0 is read before any assignment");
    let half = b.float64(0.5);
    assert_eq!(
        says(b.def_var(var, half).unwrap_err()),
        "var0 has the type `Int64`, but a `Float64` is assigned"
    );
    assert_eq!(
        says(b.convert(Intrinsic::SextInt, x, Type::INT8).unwrap_err()),
        "`sext_int` returns a type that fits the operands, not `Int8` [type-result]"
    );
    assert_eq!(
        says(b.getfield(x, "val").unwrap_err()),
        "`Int64` has no field `val`; it has 0 fields [type-field]"
    );
    assert!(matches!(b.statement(Op::Return, &[x], &[]), Err(BuildError::NeedsResultType(_))));
    assert!(matches!(b.intrinsic(Intrinsic::SextInt, &[x]), Err(BuildError::NeedsResultType("sext_int"))));
    let gone = Value::from_u32(999);
    assert_eq!(
        says(b.intrinsic(Intrinsic::NegInt, &[gone]).unwrap_err()),
        "v999 is not a value of `f`, which has 9 values up to v8: it was made for another function"
    );
    assert_eq!(
        says(b.goto(Block::from_u32(7)).unwrap_err()),
        "block7 is not a block of `f`, which has 1 block up to block0: it was made for another function"
    );
    let mut other = Builder::high(&cx, "g", &[], Type::INT64);
    let _ = other.declare_var(Type::INT64);
    let variable = other.declare_var(Type::INT64);
    assert_eq!(
        says(b.use_var(variable).unwrap_err()),
        "var1 is not a variable of `f`, which has 1 variable up to var0: it was made for another function"
    );
    let entry = b.current_block();
    assert!(matches!(b.goto(entry), Err(BuildError::EntryTarget)));
    assert_eq!(
        says(b.slot_addr(Slot::from_u32(0)).unwrap_err()),
        "slot0 is not a stack slot of `f`, which has none: it was made for another function"
    );
    let next = b.create_block();
    b.seal_block(next).unwrap();
    assert!(matches!(b.goto(next), Err(BuildError::Sealed(_))));
    b.ret(&[x]).unwrap();
    assert!(matches!(b.ret(&[x]), Err(BuildError::BlockEnded(_))));
    assert!(matches!(b.switch_to_block(entry), Err(BuildError::SwitchToEnded(_))));
    assert!(b.finish().is_ok());
}

#[test]
fn errors_of_the_whole_function_are_reported_at_the_end() {
    let cx = cx();
    let mut b = Builder::high(&cx, "f", &[("c", Type::BOOL)], Type::INT64);
    let c = b.param(0).unwrap();
    let (left, right) = (b.create_block(), b.create_block());
    b.branch(c, left, right).unwrap();
    b.switch_to_block(left).unwrap();
    let one = b.int(Type::INT64, 1).unwrap();
    let sum = b.intrinsic(Intrinsic::AddInt, &[one, one]).unwrap();
    b.ret(&[sum]).unwrap();
    b.switch_to_block(right).unwrap();
    b.ret(&[sum]).unwrap();
    let error = b.finish().unwrap_err();
    let BuildError::Malformed { diagnostics, .. } = &error else { panic!("{error}") };
    assert_eq!(diagnostics[0].code, "ssa-dominance");
    assert!(error.to_string().contains("return %"));
}

#[test]
fn low_level_functions() {
    let cx = cx();
    let mut b = Builder::low(&cx, "f", &[Type::I64], &[Type::I64]);
    let x = b.param(0).unwrap();
    let slot = b.create_slot(8, 3);
    let addr = b.slot_addr(slot).unwrap();
    let access = Access { offset: 0, region: Region::Slot, align_log2: 3 };
    b.store(access, addr, x).unwrap();
    let far = Access { offset: 4, ..access };
    assert!(matches!(b.store(far, addr, x), Err(BuildError::Rule { code: "low-slot", .. })));
    let y = b.load(access, addr, Type::I64).unwrap();
    let (sum, wrapped) = b.checked(Intrinsic::CheckedSaddInt, x, y).unwrap();
    assert_eq!(b.type_of(wrapped).unwrap(), Type::I8);
    let (fine, bad) = (b.create_block(), b.create_block());
    b.branch(wrapped, bad, fine).unwrap();
    b.switch_to_block(bad).unwrap();
    b.call_runtime(RuntimeFn::ThrowDivide, &[]).unwrap();
    b.switch_to_block(fine).unwrap();
    b.statement(Op::AtomicStore(Ordering::Release), &[addr, sum], &[]).unwrap();
    let called = b.call_symbol("g", &[sum], &[Type::I64]).unwrap();
    b.ret(&called).unwrap();
    assert!(b.finish().is_ok());
}

#[test]
fn methods_are_found_by_their_types() {
    let cx = cx();
    let mut b = Builder::high(&cx, "twice", &[("x", Type::INT64)], Type::INT64);
    let x = b.param(0).unwrap();
    let sum = b.intrinsic(Intrinsic::AddInt, &[x, x]).unwrap();
    b.ret(&[sum]).unwrap();
    let mut module = Module::new(cx.clone());
    module.add_func(b.finish().unwrap()).unwrap();
    let mut b = Builder::high(&cx, "main", &[], Type::INT64);
    let one = b.int(Type::INT64, 1).unwrap();
    let half = b.float64(0.5);
    let error = b.call_method(&module, "twice", &[half]).unwrap_err();
    assert_eq!(error.to_string(), "no method takes twice(Float64); there is twice(Int64)");
    let two = b.call_method(&module, "twice", &[one]).unwrap();
    let pair = b.tuple(&[two, half]).unwrap();
    let first = b.element(pair, 1).unwrap();
    assert!(matches!(b.setfield(pair, "x", two), Err(BuildError::Rule { code: "type-immutable", .. })));
    b.ret(&[first]).unwrap();
    module.add_func(b.finish().unwrap()).unwrap();
    assert!(crate::verify::verify_module(&module).is_ok());
}

#[test]
fn long_chains_need_no_deep_stack() {
    let cx = cx();
    let mut b = Builder::high(&cx, "f", &[("x", Type::INT64), ("c", Type::BOOL)], Type::INT64);
    let (x, c) = (b.param(0).unwrap(), b.param(1).unwrap());
    let var = b.declare_var(Type::INT64);
    b.def_var(var, x).unwrap();
    for n in 0..20_000 {
        let (left, join) = (b.create_block(), b.create_block());
        b.branch(c, left, join).unwrap();
        b.switch_to_block(left).unwrap();
        if n % 1000 == 0 {
            b.def_var(var, x).unwrap();
        }
        b.goto(join).unwrap();
        b.switch_to_block(join).unwrap();
    }
    let value = b.use_var(var).unwrap();
    b.ret(&[value]).unwrap();
    let func = b.finish().unwrap();
    assert_eq!(phis(&func), 0);
}

/// Random programs over a few variables, built with and without early sealing: both verify, and where every
/// path assigns a variable, reading it succeeds.
#[test]
fn random_programs_are_well_formed() {
    let cx = cx();
    for seed in 1..200u64 {
        let mut random = Random(seed.wrapping_mul(0x2545_f491_4f6c_dd1d) | 1);
        let mut b = Builder::high(&cx, "f", &[("x", Type::INT64), ("c", Type::BOOL)], Type::INT64);
        let (x, c) = (b.param(0).unwrap(), b.param(1).unwrap());
        let vars: Vec<Variable> = (0..3).map(|_| b.declare_var(Type::INT64)).collect();
        for &var in &vars {
            b.def_var(var, x).unwrap();
        }
        let count = 2 + random.below(20);
        let blocks: Vec<Block> = (0..count).map(|_| b.create_block()).collect();
        b.goto(blocks[0]).unwrap();
        let order: Vec<Block> = blocks.clone();
        for (n, &block) in order.iter().enumerate() {
            b.switch_to_block(block).unwrap();
            for _ in 0..random.below(4) {
                let (from, to) = (vars[random.below(3)], vars[random.below(3)]);
                let a = b.use_var(from).unwrap();
                let sum = b.intrinsic(Intrinsic::AddInt, &[a, x]).unwrap();
                b.def_var(to, sum).unwrap();
            }
            match random.below(4) {
                0 => {
                    let value = b.use_var(vars[0]).unwrap();
                    b.ret(&[value]).unwrap();
                }
                1 => b.goto(blocks[random.below(count)]).unwrap(),
                _ => b.branch(c, blocks[(n + 1) % count], blocks[random.below(count)]).unwrap(),
            }
        }
        let func = b.finish().unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        assert!(verify_func(&cx, &func).is_ok());
        for block in func.blocks() {
            for phi in func.block_insts(block).filter(|&i| func.op(i) == Op::Phi) {
                let own = func.result(phi).unwrap();
                let mut others: Vec<Value> = func.args(phi).iter().copied().filter(|&v| v != own).collect();
                others.dedup();
                assert!(others.len() > 1 || func.args(phi).is_empty(), "seed {seed}: a φ that is one value");
            }
        }
    }
}

#[test]
fn inlining_is_asked_of_calls_and_high_functions() {
    let cx = cx();
    let mut b = Builder::high(&cx, "f", &[("x", Type::INT64)], Type::ANY);
    let x = b.param(0).unwrap();
    let sum = b.intrinsic(Intrinsic::AddInt, &[x, x]).unwrap();
    let called = b.invoke("g", &[sum], Type::INT64).unwrap();
    let g = b.function_object("g");
    let found = b.call(g, &[called], Type::ANY).unwrap();
    let asked = |b: &Builder<'_>, value| b.func().call_inlining(b.func().def_inst(value).unwrap());
    b.set_call_inlining(called, Inlining::Never).unwrap();
    b.set_call_inlining(found, Inlining::Never).unwrap();
    b.set_call_inlining(found, Inlining::Always).unwrap();
    assert_eq!((asked(&b, called), asked(&b, found)), (Some(Inlining::Never), Some(Inlining::Always)));
    for value in [x, sum, g] {
        let error = b.set_call_inlining(value, Inlining::Always).unwrap_err();
        assert!(matches!(error, BuildError::NeverInlined(Some(no_call)) if no_call == value));
    }
    assert_eq!(asked(&b, sum), None);
    let foreign = Value::from_u32(9999);
    assert!(matches!(
        b.set_call_inlining(foreign, Inlining::Never),
        Err(BuildError::Foreign { id: ForeignId::Value(_), .. })
    ));
    let mut low = Builder::low(&cx, "f", &[Type::I64], &[]);
    assert_eq!(
        low.set_inlining(Inlining::Never).unwrap_err().to_string(),
        "functions of low IR are not inlined"
    );
    let x = low.param(0).unwrap();
    let got = low.call_symbol("g", &[x], &[Type::I64]).unwrap()[0];
    assert!(matches!(low.set_call_inlining(got, Inlining::Never), Err(BuildError::NeverInlined(Some(_)))));
}
