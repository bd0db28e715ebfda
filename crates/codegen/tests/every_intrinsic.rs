//! Every scalar intrinsic at every width passes Cranelift's verifier and compiles on both tiers.
//!
//! The results of the code are checked where it can run (`tests/` of the root package); this checks only that the code generator
//! has a translation for everything that low IR may express, and that Cranelift takes it.

use brolga_codegen::compile::{CompileOptions, Compiler};
use brolga_codegen::isa::{IsaOptions, TargetIsa, Tier};
use brolga_codegen::linkage::CallLinkage;
use brolga_codegen::translate::{TranslateError, TranslateOptions, Translator};
use brolga_ir::intrinsic::{Convert, Intrinsic, Shape};
use brolga_ir::{Context, Func, Level, LowType, Op, Param, Signature, Type};
use cranelift_codegen::ir::Function;

const INTS: [LowType; 5] = [LowType::I8, LowType::I16, LowType::I32, LowType::I64, LowType::I128];
const FLOATS: [LowType; 3] = [LowType::F16, LowType::F32, LowType::F64];

/// Operand and result types of all instances of an intrinsic.
fn instances(op: Intrinsic) -> Vec<(Vec<LowType>, Vec<LowType>)> {
    let ints = |args: usize| INTS.iter().map(move |&t| (vec![t; args], vec![t])).collect();
    let floats = |args: usize| FLOATS.iter().map(move |&t| (vec![t; args], vec![t])).collect();
    let pairs = |from: &[LowType], to: &[LowType], keep: fn(u32, u32) -> bool| {
        let all = from.iter().flat_map(|&f| to.iter().map(move |&t| (f, t)));
        all.filter(|(f, t)| keep(f.bits(), t.bits())).map(|(f, t)| (vec![f], vec![t])).collect()
    };
    match op.shape() {
        Shape::IntUnary => ints(1),
        Shape::IntBinary | Shape::IntDivide => ints(2),
        Shape::Shift => {
            let all = INTS.iter().flat_map(|&x| INTS.iter().map(move |&count| (vec![x, count], vec![x])));
            all.collect()
        }
        Shape::IntCompare => INTS.iter().map(|&t| (vec![t; 2], vec![LowType::I8])).collect(),
        Shape::CheckedPair => INTS.iter().map(|&t| (vec![t; 2], vec![t, LowType::I8])).collect(),
        Shape::FloatUnary => floats(1),
        Shape::FloatBinary => floats(2),
        Shape::FloatTernary => floats(3),
        Shape::FloatCompare => FLOATS.iter().map(|&t| (vec![t; 2], vec![LowType::I8])).collect(),
        Shape::Convert(kind) => match kind {
            Convert::Bits => {
                let all = [&INTS[..], &FLOATS[..]].concat();
                pairs(&all, &all, |f, t| f == t)
            }
            Convert::SignExtend | Convert::ZeroExtend => pairs(&INTS, &INTS, |f, t| f < t),
            Convert::Truncate => pairs(&INTS, &INTS, |f, t| f > t),
            Convert::FloatToSigned | Convert::FloatToUnsigned => pairs(&FLOATS, &INTS, |_, _| true),
            Convert::SignedToFloat | Convert::UnsignedToFloat => pairs(&INTS, &FLOATS, |_, _| true),
            Convert::FloatTruncate => pairs(&FLOATS, &FLOATS, |f, t| f > t),
            Convert::FloatExtend => pairs(&FLOATS, &FLOATS, |f, t| f < t),
        },
        _ => Vec::new(),
    }
}

fn function(cx: &Context, op: Intrinsic, args: &[LowType], results: &[LowType]) -> Func {
    let types = |list: &[LowType]| list.iter().map(|&low| Type::low(low)).collect::<Vec<_>>();
    let sig = Signature {
        params: types(args).into_iter().map(|ty| Param { name: None, ty }).collect(),
        results: types(results),
        vararg: false,
        ..Signature::default()
    };
    let mut func = Func::new(cx.names.intern(op.name()), Level::Low, sig);
    let block = func.make_block();
    func.append_block(block);
    let params = func.params().to_vec();
    let inst = func.make_inst(Op::Intrinsic(op), &params, &[], &types(results));
    func.append_inst(inst, block);
    let values: Vec<_> = func.results(inst).collect();
    let ret = func.make_inst(Op::Return, &values, &[], &[]);
    func.append_inst(ret, block);
    func
}

#[test]
fn every_scalar_intrinsic_compiles_at_every_width() {
    let cx = Context::new();
    let isa = TargetIsa::new(IsaOptions { verify_clif: true, check_regalloc: true, ..IsaOptions::default() })
        .unwrap();
    let (mut translator, mut compiler) = (Translator::new(), Compiler::default());
    let mut clif = Function::new();
    let mut count = 0;
    for &op in Intrinsic::ALL {
        for (args, results) in instances(op) {
            let func = function(&cx, op, &args, &results);
            for tier in [Tier::Baseline, Tier::Optimised] {
                let options =
                    TranslateOptions { order_branches: tier == Tier::Optimised, ..Default::default() };
                let made = translator.translate(&cx, &func, &isa, options, CallLinkage::FAR, &mut clif);
                let made = made.unwrap_or_else(|e| panic!("{op} {args:?}: {e}"));
                let options = CompileOptions { tier, listing: false };
                let code = compiler.compile(op.name(), &mut clif, made.symbols, &isa, options);
                let code = code.unwrap_or_else(|e| panic!("{op} {args:?}: {e}"));
                assert!(!code.code.is_empty());
                count += 1;
            }
        }
    }
    assert!(count > 800, "only {count} instances");
}

#[test]
fn wrong_types_are_refused_and_the_translator_goes_on() {
    let cx = Context::new();
    let isa = TargetIsa::new(IsaOptions { verify_clif: true, ..IsaOptions::default() }).unwrap();
    let mut translator = Translator::new();
    let mut clif = Function::new();
    let mut translate = |args: &[LowType], results: &[LowType]| {
        let func = function(&cx, Intrinsic::AddInt, args, results);
        translator.translate(&cx, &func, &isa, TranslateOptions::default(), CallLinkage::FAR, &mut clif)
    };
    let bad = translate(&[LowType::I64, LowType::I32], &[LowType::I64]).unwrap_err();
    assert!(matches!(bad, TranslateError::Types { .. }), "{bad}");
    let bad = translate(&[LowType::I64, LowType::I64], &[LowType::I32]).unwrap_err();
    assert!(matches!(bad, TranslateError::Types { .. }), "{bad}");
    assert!(translate(&[LowType::I64, LowType::I64], &[LowType::I64]).is_ok());
}
