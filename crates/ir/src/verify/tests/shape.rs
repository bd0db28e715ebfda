//! Structure, level, constants, SSA, exceptions, and how violations are shown.

use super::super::*;
use super::Bench;
use crate::builtin::Builtin;
use crate::constant::Address;
use crate::cursor::Cursor;
use crate::diag::{SourceFile, Span, Style};
use crate::func::{CalleeData, Place, Signature};
use crate::intrinsic::Intrinsic;
use crate::op::Op;
use cranelift_entity::EntityRef;

// ----- structure -----

#[test]
fn a_function_needs_a_block_and_a_block_an_end() {
    let mut b = Bench::high(&[], Type::NOTHING);
    b.expect(&["structure-terminator: the block does not end in a jump, `return` or `unreachable`"]);
    let entry = b.func.entry().unwrap();
    b.func.remove_block(entry);
    b.expect(&["structure-empty: the function has no blocks"]);
}

#[test]
fn nothing_follows_a_terminator() {
    let mut b = Bench::high(&[Type::INT64], Type::INT64);
    let x = b.arg(1);
    b.ret(x);
    b.op(Op::Copy, &[x], Type::INT64);
    b.ret(x);
    b.expect(&[
        "structure-after-terminator: the value is after the end of its block",
        "structure-after-terminator: `return` is after the end of its block",
    ]);
}

#[test]
fn targets_stand_in_the_function() {
    let mut b = Bench::high(&[Type::BOOL], Type::NOTHING);
    let [entry, gone, end] = b.blocks();
    let flag = b.arg(1);
    let nothing = b.nothing();
    b.bottom(entry).branch(flag, gone, end);
    b.bottom(end).ret(&[nothing]);
    b.bottom(gone).ret(&[nothing]);
    b.expect(&[]);
    b.func.remove_block(gone);
    b.expect(&["structure-target: `goto … if not` leads to a block that is not placed"]);
    let branch = b.func.terminator(entry).unwrap();
    b.func.set_inst_blocks(branch, &[end]);
    b.expect(&["structure-target-count: `goto … if not` names 1 blocks, not 2"]);
    b.func.set_inst_blocks(branch, &[end, Block::new(77)]);
    b.expect(&["structure-id: `goto … if not` names block 77, which does not exist"]);
}

#[test]
fn the_entry_is_no_target() {
    let mut b = Bench::high(&[], Type::NOTHING);
    let [entry] = b.blocks();
    b.bottom(entry).goto(entry);
    b.expect(&["structure-entry: the first block is a target"]);
}

#[test]
fn phi_stand_first() {
    let mut b = Bench::high(&[Type::INT64], Type::INT64);
    let [entry, next] = b.blocks();
    let x = b.arg(1);
    b.bottom(entry).goto(next);
    b.op(Op::Copy, &[x], Type::INT64);
    let phi = b.last().ins_with_blocks(Op::Phi, &[x], &[entry], &[Type::INT64]);
    let phi = b.func.result(phi).unwrap();
    b.ret(phi);
    b.expect(&["structure-phi: a φ is after another statement of its block"]);
}

#[test]
fn a_handler_is_entered_by_exceptions_only() {
    let mut b = Bench::high(&[Type::BOOL], Type::NOTHING);
    let [entry, body, handler, out] = b.blocks();
    let nothing = b.nothing();
    let enter = b.bottom(entry).ins_with_blocks(Op::Enter, &[], &[body, handler], &[Type::TOKEN]);
    let token = b.func.result(enter).unwrap();
    b.bottom(body).ins(Op::Leave, &[token], &[]);
    b.bottom(body).goto(handler);
    b.bottom(handler).ins(Op::PopException, &[token], &[]);
    b.bottom(handler).goto(out);
    b.bottom(out).ret(&[nothing]);
    b.expect(&["structure-handler: a handler is entered by something else than an exception"]);
    let jump = b.func.terminator(body).unwrap();
    b.func.set_inst_blocks(jump, &[out]);
    b.expect(&[]);
}

#[test]
fn unreachable_follows_an_instruction_that_never_returns() {
    let mut b = Bench::high(&[Type::INT64], Type::INT64);
    let x = b.arg(1);
    b.op(Op::Builtin(Builtin::Throw), &[x], Type::BOTTOM);
    b.ret(x);
    b.expect(&["structure-never-returns: `throw` never comes back, but `unreachable` does not follow"]);
    let mut b = Bench::low(&[], &[]);
    b.effect(Op::CallRuntime(crate::RuntimeFn::ThrowDivide), &[]);
    b.last().unreachable();
    b.expect(&[]);
}

#[test]
fn counts() {
    let mut b = Bench::high(&[Type::INT64], Type::INT64);
    let x = b.arg(1);
    b.op(Op::Intrinsic(Intrinsic::AddInt), &[x], Type::INT64);
    b.effect(Op::Copy, &[x]);
    b.last().ins(Op::Builtin(Builtin::Tuple), &[], &[Type::ANY, Type::ANY]);
    b.ret(x);
    b.expect(&[
        "structure-operand-count: `add_int` takes 2 operands, not 1",
        "structure-result-count: the value has 1 results, not 0",
        "structure-result-count: `tuple` has 0 to 1 results, not 2",
    ]);
    let mut b = Bench::high(&[], Type::NOTHING);
    b.effect(Op::Invoke(crate::Callee::new(3)), &[Value::new(0)]);
    b.expect(&["structure-id: `invoke` names callee 3, which does not exist"]);
}

// ----- level -----

#[test]
fn each_level_calls_its_own_kind_of_callee() {
    let mut b = Bench::high(&[], Type::NOTHING);
    let symbol = b.cx.names.intern("f()");
    let callee = b.func.add_callee(CalleeData::Symbol { symbol, params: [].into(), results: [].into() });
    let object = b.arg(0);
    b.op(Op::Invoke(callee), &[object], Type::NOTHING);
    let nothing = b.nothing();
    b.ret(nothing);
    b.expect(&["call-callee: `invoke` names a symbol and not a method"]);
    let mut b = Bench::low(&[], &[]);
    let function = b.cx.types.function(b.cx.names.intern("f"));
    let method = CalleeData::Method { function, args: [].into(), result: Type::NOTHING };
    let callee = b.func.add_callee(method);
    b.effect(Op::CallSymbol(callee), &[]);
    b.last().ret(&[]);
    b.expect(&["call-callee: the call names a method and not a symbol"]);
}

#[test]
fn levels_do_not_mix() {
    let mut b = Bench::high(&[Type::INT64], Type::INT64);
    let x = b.arg(1);
    b.effect(Op::Safepoint, &[]);
    let low = b.int(Type::I64, 1);
    b.op(Op::Copy, &[low], Type::I64);
    b.ret(x);
    b.expect(&[
        "level-operation: `safepoint` does not exist in high IR",
        "level-type: the value has a value of type `i64`, which does not exist in high IR",
    ]);
    let mut b = Bench::low(&[Type::INT64], &[]);
    b.last().ret(&[]);
    b.expect(&["level-signature: the signature has the type `Int64`, which does not exist in low IR"]);
    let mut b = Bench::low(&[Type::PTR, Type::I64], &[Type::I64]);
    let (p, i) = (b.arg(1), b.arg(2));
    let loaded = b.op(Op::Intrinsic(Intrinsic::Pointerref), &[p, i, i], Type::I64);
    b.ret(loaded);
    b.expect(&["level-operation: `pointerref` does not exist in low IR"]);
}

#[test]
fn signatures() {
    let mut b = Bench::high(&[Type::INT64], Type::INT64);
    let x = b.arg(1);
    b.ret(x);
    b.func.sig.vararg = true;
    b.expect(&["level-vararg: the last argument collects others, but its type `Int64` is not a tuple"]);
    b.func.sig.vararg = false;
    b.func.sig.results.push(Type::INT64);
    b.expect(&[
        "level-result: a high function has one result, not 2",
        "type-return: `return` has 1 values, but the function has 2 results",
    ]);
    let cx = Context::new();
    let mut func = Func::new(
        cx.names.intern("f"),
        Level::High,
        Signature { results: vec![Type::ANY], ..Signature::default() },
    );
    Cursor::new(&mut func).append_block();
    let mut b = Bench { cx, func, module: None };
    b.last().unreachable();
    b.expect(&["level-function-object: a high function needs argument 0, the function object"]);
}

// ----- constants -----

#[test]
fn constants_are_what_they_say() {
    let mut b = Bench::high(&[], Type::NOTHING);
    let f = &mut b.func;
    f.constant(Const::Bits { ty: Type::INT8, bits: 256 });
    f.constant(Const::Bits { ty: Type::BOOL, bits: 2 });
    f.constant(Const::Bits { ty: Type::STRING, bits: 0 });
    f.constant(Const::Singleton(Type::INT64));
    f.constant(Const::Type { of: Type::BOTTOM, ty: Type::DATATYPE });
    f.constant(Const::Address(Address::Data(4)));
    let one = f.constant(Const::Bits { ty: Type::INT64, bits: 1 });
    let pair = b.cx.types.tuple(&[Type::INT64, Type::FLOAT64]).unwrap();
    f.constant(Const::Aggregate { ty: pair, fields: [one, one].into() });
    f.constant(Const::Aggregate { ty: pair, fields: [one].into() });
    f.constant(Const::Aggregate { ty: pair, fields: [one, Value::new(900)].into() });
    b.last().unreachable();
    b.expect(&[
        "constant-bits: a constant of type `Int8` cannot have the bits 0x100",
        "constant-bits: a constant of type `Bool` cannot have the bits 0x2",
        "constant-bits: a constant of type `String` cannot have the bits 0x0",
        "constant-singleton: `Int64` has not exactly one value",
        "constant-type: the type `Union{}` as a constant is not of type `DataType`",
        "constant-data: there are no constant bytes number 4; the function has 0",
        "constant-field: field 2 of a constant of type `Tuple{Int64, Float64}` is `Int64` and not `Float64`",
        "constant-aggregate: a constant of type `Tuple{Int64, Float64}` cannot be made of 1 fields",
        "constant-field: field 2 of a constant of type `Tuple{Int64, Float64}` is not an earlier constant and not `Float64`",
    ]);
}

#[test]
fn constants_are_no_larger_than_types() {
    let cx = Context::new();
    let decl = cx.types.declare(cx.names.intern("Two"), &[]).unwrap();
    let fields = ["a", "b"].map(|n| crate::types::FieldDecl::new(cx.names.intern(n), Type::ANY)).into();
    let kind = crate::types::DeclKind::Struct { mutable: false, fields };
    cx.types.define(decl, Type::ANY, kind).unwrap();
    let two = cx.types.nominal(decl, &[]).unwrap();
    let doubled = |times: usize, deep: bool| {
        let mut b = Bench::over(cx.clone(), Level::High, &[], &[Type::NOTHING]);
        let zero = b.int(Type::INT64, 0);
        let mut value = zero;
        for _ in 0..times {
            let other = if deep { zero } else { value };
            value = b.func.constant(Const::Aggregate { ty: two, fields: [value, other].into() });
        }
        b.op(Op::Copy, &[value], two);
        b.last().unreachable();
        b.says()
    };
    let message = "constant-size: a constant of type `Two` nests too deep or has too many parts";
    assert_eq!(doubled(15, false), [""; 0]);
    assert_eq!(doubled(60, false), [message]);
    assert_eq!(doubled(100, true), [""; 0]);
    assert_eq!(doubled(100_000, true), [message]);
}

// ----- ssa -----

#[test]
fn definitions_dominate_uses() {
    let mut b = Bench::high(&[Type::BOOL, Type::INT64], Type::INT64);
    let [entry, left, join] = b.blocks();
    let (flag, x) = (b.arg(1), b.arg(2));
    b.bottom(entry).branch(flag, left, join);
    let value = b.bottom(left).ins_value(Op::Copy, &[x], Type::INT64);
    b.bottom(left).goto(join);
    b.bottom(join).ret(&[value]);
    b.expect(&[
        "ssa-dominance: operand 1 of `return` is not defined on every path to it; a path without the definition: #1 → #3",
    ]);
    let def = b.func.def_inst(value).unwrap();
    b.func.remove_inst(def);
    b.expect(&["ssa-not-placed: operand 1 of `return` is not defined anywhere"]);
    let ret = b.func.terminator(join).unwrap();
    let late = b.func.make_inst(Op::Copy, &[value], &[], &[Type::INT64]);
    b.func.insert_before(late, ret);
    b.func.insert_before(def, ret);
    b.expect(&["ssa-dominance: operand 1 of the value is used before it is defined"]);
}

#[test]
fn unreachable_blocks_may_use_anything() {
    let mut b = Bench::high(&[Type::INT64], Type::INT64);
    let [entry, dead, dead_too] = b.blocks();
    let x = b.arg(1);
    b.bottom(entry).ret(&[x]);
    let value = b.bottom(dead).ins_value(Op::Copy, &[x], Type::INT64);
    b.bottom(dead).ret(&[value]);
    b.bottom(dead_too).ret(&[value]);
    b.expect(&[]);
}

#[test]
fn phi_edges() {
    let mut b = Bench::high(&[Type::BOOL, Type::INT64], Type::INT64);
    let [entry, left, right, join] = b.blocks();
    let (flag, x) = (b.arg(1), b.arg(2));
    b.bottom(entry).branch(flag, left, right);
    let value = b.bottom(left).ins_value(Op::Copy, &[x], Type::INT64);
    b.bottom(left).goto(join);
    b.bottom(right).goto(join);
    let phi = b.bottom(join).ins_with_blocks(Op::Phi, &[value, x], &[left, right], &[Type::INT64]);
    let result = b.func.result(phi).unwrap();
    b.bottom(join).ret(&[result]);
    b.expect(&[]);
    b.func.set_inst_blocks(phi, &[right, entry]);
    b.expect(&[
        "ssa-phi-dominance: the value that the φ takes from #3 is not defined on every path; a path without the definition: #1 → #3",
        "ssa-phi-edge: the φ names #1, which does not lead here; predecessors: #2, #3",
    ]);
    b.func.set_inst_blocks(phi, &[left, left]);
    b.expect(&["ssa-phi-twice: the φ names #2 twice"]);
    b.func.set_inst_blocks(phi, &[left]);
    b.expect(&["structure-target-count: `φ` names 1 blocks, not 2"]);
}

#[test]
fn upsilons_and_tokens() {
    let mut b = Bench::high(&[Type::INT64], Type::INT64);
    let [entry, body, handler, out] = b.blocks();
    let x = b.arg(1);
    let upsilon = b.bottom(entry).ins_value(Op::Upsilon, &[x], Type::INT64);
    let enter = b.bottom(entry).ins_with_blocks(Op::Enter, &[], &[body, handler], &[Type::TOKEN]);
    let token = b.func.result(enter).unwrap();
    b.bottom(body).ins(Op::Leave, &[token], &[]);
    b.bottom(body).goto(out);
    let phic = b.bottom(handler).ins_value(Op::PhiC, &[upsilon], Type::INT64);
    b.bottom(handler).ins(Op::TheException, &[], &[Type::ANY]);
    b.bottom(handler).ins(Op::PopException, &[token], &[]);
    let ret = b.bottom(handler).ret(&[phic]);
    b.bottom(out).ret(&[x]);
    b.expect(&[]);
    b.func.args_mut(ret)[0] = upsilon;
    b.expect(&["ssa-upsilon: `return` uses a ϒ, which only φᶜ may"]);
    b.func.args_mut(ret)[0] = token;
    b.expect(&[
        "type-operand: operand 1 of `return` has the type `Token`, not `Int64`",
        "ssa-token: `return` mixes tokens with other values",
    ]);
    b.func.args_mut(ret)[0] = phic;
    let def = b.func.def_inst(phic).unwrap();
    b.func.args_mut(def)[0] = x;
    b.expect(&["ssa-phic: operand 1 of a φᶜ is not a ϒ"]);
    b.func.args_mut(def)[0] = upsilon;
    let misplaced = b.func.make_inst(Op::PhiC, &[upsilon], &[], &[Type::INT64]);
    b.func.prepend_inst(misplaced, out);
    let exception = b.func.make_inst(Op::TheException, &[], &[], &[Type::ANY]);
    b.func.prepend_inst(exception, out);
    b.expect(&[
        "ssa-phic-place: a φᶜ is outside of a handler",
        "exception-none: `the_exception` is where no exception is being handled",
    ]);
}

#[test]
fn preserve_tokens() {
    let mut b = Bench::high(&[Type::ANY], Type::NOTHING);
    let x = b.arg(1);
    let nothing = b.nothing();
    let token = b.op(Op::GcPreserveBegin, &[x], Type::TOKEN);
    let end = b.effect(Op::GcPreserveEnd, &[token]);
    b.ret(nothing);
    b.expect(&[]);
    b.func.args_mut(end)[0] = x;
    b.expect(&["ssa-token: `gc_preserve_end` mixes tokens with other values"]);
    let leave = b.func.make_inst(Op::Leave, &[token], &[], &[]);
    b.func.insert_before(leave, end);
    b.func.args_mut(end)[0] = token;
    b.expect(&["exception-token: operand 1 is not a token of `enter`"]);
}

// ----- exceptions -----

#[test]
fn handlers_nest() {
    let mut b = Bench::high(&[Type::BOOL], Type::NOTHING);
    let [entry, inner, body, inner_handler, outer_handler, out] = b.blocks();
    let nothing = b.nothing();
    let outer = b.bottom(entry).ins_with_blocks(Op::Enter, &[], &[inner, outer_handler], &[Type::TOKEN]);
    let outer = b.func.result(outer).unwrap();
    let second = b.bottom(inner).ins_with_blocks(Op::Enter, &[], &[body, inner_handler], &[Type::TOKEN]);
    let second = b.func.result(second).unwrap();
    let leave = b.bottom(body).ins(Op::Leave, &[second, outer], &[]);
    b.bottom(body).goto(out);
    b.bottom(inner_handler).ins(Op::PopException, &[second], &[]);
    let leave_outer = b.bottom(inner_handler).ins(Op::Leave, &[outer], &[]);
    b.bottom(inner_handler).goto(out);
    let pop = b.bottom(outer_handler).ins(Op::PopException, &[outer], &[]);
    b.bottom(outer_handler).goto(out);
    b.bottom(out).ret(&[nothing]);
    b.expect(&[]);
    b.func.set_op(leave, Op::Leave, &[outer, second]);
    let join = "exception-join: the handlers in force depend on the way into the block";
    assert_eq!(b.says()[0], "exception-leave: operand 1 of `leave` is not the innermost handler");
    b.func.set_op(leave, Op::Leave, &[second]);
    assert_eq!(
        b.says()[1],
        format!("{join}; handlers in force on the edge from #3: 1; handlers in force on the edge from #5: 0")
    );
    b.func.set_op(leave, Op::Leave, &[second, outer]);
    b.func.remove_inst(leave_outer);
    let jump = b.func.terminator(inner_handler).unwrap();
    b.func.remove_inst(jump);
    b.bottom(inner_handler).ret(&[nothing]);
    b.expect(&["exception-return: the function returns while a handler is in force"]);
    b.func.args_mut(pop)[0] = second;
    assert!(b.says().contains(
        &"exception-pop: `pop_exception` is outside of the handler whose exception it ends".to_owned()
    ));
}

// ----- reporting -----

#[test]
fn a_diagnostic_points_at_statement_and_definition() {
    let text = "1 ─      goto #3 if not _2\n2 ─ %2 = f()\n3 ─      return %2\n";
    let source = SourceFile::new("t.jlir", text).unwrap();
    let mut b = Bench::high(&[Type::BOOL, Type::INT64], Type::INT64);
    let [entry, left, join] = b.blocks();
    let (flag, x) = (b.arg(1), b.arg(2));
    b.bottom(entry).branch(flag, left, join);
    let value = b.bottom(left).ins_value(Op::Copy, &[x], Type::INT64);
    b.bottom(left).goto(join);
    let ret = b.bottom(join).ret(&[value]);
    let place = |part: &str| {
        let start = text.find(part).unwrap() as u32;
        Place { start, end: start + part.len() as u32, ..Place::default() }
    };
    let def = b.func.def_inst(value).unwrap();
    b.func.set_place(def, place("%2 = f()"));
    b.func.set_place(ret, place("return %2"));
    let found = b.run();
    let shown = found[0].diagnostic(&b.cx, &b.func, &source_span(&b.func)).render(&source, &Style::PLAIN);
    let expected = "\
error[ssa-dominance]: operand 1 of `return` is not defined on every path to it
  --> t.jlir:3:10
   |
 2 | 2 ─ %2 = f()
   |     -------- defined here
 3 | 3 ─      return %2
   |          ^^^^^^^^^
   = a path without the definition: #1 → #3
";
    assert_eq!(shown, expected);
    assert_eq!(
        source_span(&b.func)(Site::Block(join)),
        Span::new(place("return").start, place("return %2").end)
    );
}

#[test]
fn a_function_without_text_is_printed_and_pointed_at() {
    let mut b = Bench::high(&[Type::INT64, Type::FLOAT64], Type::INT64);
    let (int, float) = (b.arg(1), b.arg(2));
    let sum = b.op(Op::Intrinsic(Intrinsic::AddInt), &[int, float], Type::INT64);
    b.ret(sum);
    let (source, shown) = point_into_printout(&b.cx, &b.func, &b.run());
    let expected = "\
error[type-unequal]: `add_int` takes operands of one type, but operand 1 is `Int64` and operand 2 is `Float64`
  --> <f>:2:5
   |
 2 | 1 ─ %1 = intrinsic Base.add_int(_2, _3)::Int64
   |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
";
    assert_eq!(shown[0].render(&source, &Style::PLAIN), expected);
}

#[test]
fn violations_are_bounded() {
    let mut b = Bench::high(&[Type::INT64], Type::INT64);
    let x = b.arg(1);
    for _ in 0..10_000 {
        b.op(Op::Intrinsic(Intrinsic::AddInt), &[x, x], Type::INT32);
    }
    b.ret(x);
    assert_eq!(b.run().len(), MAX_VIOLATIONS);
}

#[test]
fn a_large_function_is_checked_at_once() {
    let mut b = Bench::high(&[Type::INT64, Type::BOOL], Type::INT64);
    let (x, flag) = (b.arg(1), b.arg(2));
    let mut value = x;
    for _ in 0..20_000 {
        let before = b.func.last_block().unwrap();
        let [left, join] = [(); 2].map(|()| Cursor::new(&mut b.func).append_block());
        b.bottom(before).branch(flag, left, join);
        let sum = b.bottom(left).ins_value(Op::Intrinsic(Intrinsic::AddInt), &[value, x], Type::INT64);
        b.bottom(left).goto(join);
        let phi = b.bottom(join).ins_with_blocks(Op::Phi, &[value, sum], &[before, left], &[Type::INT64]);
        value = b.func.result(phi).unwrap();
    }
    b.ret(value);
    b.expect(&[]);
}
